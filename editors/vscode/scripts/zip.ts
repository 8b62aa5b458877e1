import { crc32, deflateRawSync } from 'node:zlib';

const LOCAL_HEADER = 0x04034b50;
const CENTRAL_HEADER = 0x02014b50;
const END_OF_DIRECTORY = 0x06054b50;
const DEFLATED = 8;
const UTF8_NAMES = 0x0800;
const VERSION_2_0 = 20;
/** The first of January 1980, in the form of the format: the same files give the same archive. */
const DATE = 0x0021;

interface Packed {
  readonly name: Buffer;
  readonly packed: Buffer;
  readonly size: number;
  readonly crc: number;
  readonly offset: number;
}

/** Fields that both headers of a file share: flags, method, time, date, checksum, sizes, lengths. */
const sharedFields = ({ name, packed, size, crc }: Packed): Buffer => {
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(VERSION_2_0, 0);
  fields.writeUInt16LE(UTF8_NAMES, 2);
  fields.writeUInt16LE(DEFLATED, 4);
  fields.writeUInt16LE(0, 6);
  fields.writeUInt16LE(DATE, 8);
  fields.writeUInt32LE(crc, 10);
  fields.writeUInt32LE(packed.length, 14);
  fields.writeUInt32LE(size, 18);
  fields.writeUInt16LE(name.length, 22);
  return fields;
};

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

const centralEntry = (file: Packed): Buffer => {
  const rest = Buffer.alloc(14);
  rest.writeUInt32LE(file.offset, 10);
  const version = Buffer.alloc(2);
  version.writeUInt16LE(VERSION_2_0);
  return Buffer.concat([uint32(CENTRAL_HEADER), version, sharedFields(file), rest, file.name]);
};

/** A ZIP archive of files by path, `/` between folders, in the order given (PKWARE APPNOTE 6.3, without ZIP64: below 4 GiB and 65,535 files). */
export const zipOf = (files: ReadonlyMap<string, Buffer>): Buffer => {
  const parts: Buffer[] = [];
  const entries: Packed[] = [];
  let offset = 0;
  for (const [path, content] of files) {
    const file: Packed = {
      name: Buffer.from(path),
      packed: deflateRawSync(content, { level: 9 }),
      size: content.length,
      crc: crc32(content),
      offset,
    };
    const whole = Buffer.concat([uint32(LOCAL_HEADER), sharedFields(file), file.name, file.packed]);
    parts.push(whole);
    entries.push(file);
    offset += whole.length;
  }
  const directory = Buffer.concat(entries.map(centralEntry));
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, directory, uint32(END_OF_DIRECTORY), end]);
};
