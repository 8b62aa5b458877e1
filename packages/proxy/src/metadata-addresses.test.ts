import { expect, it } from 'vitest';
import { guardedLookup, isMetadataAddress } from './metadata-addresses.ts';
import { CHAT, chat, rig } from './rig.fixture.ts';
import { target } from './scripted-router.fixture.ts';

it.each([
  ['169.254.169.254', true],
  ['169.254.170.2', true],
  ['100.100.100.200', true],
  ['[fd00:ec2::254]', true],
  ['::ffff:169.254.169.254', true],
  ['127.0.0.1', false],
  ['10.0.0.1', false],
  ['[::1]', false],
  ['metadata', false],
])('%s is a metadata address: %s', (host, expected) => {
  expect(isMetadataAddress(host)).toBe(expected);
});

const resolved = (addresses: readonly string[], all: boolean): Promise<unknown> =>
  new Promise((resolve) => {
    const lookup = guardedLookup((_host, _options, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: 4 })),
      ),
    );
    lookup('x.test', { all }, (error, address) => resolve(error?.code ?? address));
  });

it('S2: a name that is bound to a metadata address leads nowhere, one that has others leads to those', async () => {
  expect(await resolved(['169.254.169.254'], false)).toBe('SIGNALBOX_METADATA_ADDRESS');
  expect(await resolved(['169.254.169.254'], true)).toBe('SIGNALBOX_METADATA_ADDRESS');
  expect(await resolved(['169.254.169.254', '10.0.0.1'], false)).toBe('10.0.0.1');
  expect(await resolved(['169.254.169.254', '10.0.0.1'], true)).toEqual([{ address: '10.0.0.1', family: 4 }]);
});

it('S2: an endpoint at a metadata address is never connected to', async () => {
  const { router, client } = await rig(() => ({ attempts: [{ target: target('http://169.254.169.254') }] }));
  expect((await client().post(CHAT, chat()).answer()).status).toBe(502);
  expect(router.last.failures).toMatchObject([{ cause: 'connect' }]);
  expect(router.leases).toBe(0);
});
