import { expect, test } from 'vitest';
import { normaliseAddress } from './endpoint-address.ts';

test.each([
  'http://169.254.169.254',
  'http://169.254.169.254:80/latest/meta-data',
  'https://169.254.170.2/v2',
  'http://2852039166',
  'http://0xa9fea9fe/v1',
  'http://0251.0376.0251.0376',
  'http://169.254.43518',
  'http://[::ffff:169.254.169.254]',
  'http://[::ffff:a9fe:a9fe]:8000',
  'http://100.100.100.200',
  'http://[fd00:ec2::254]',
  'http://metadata.google.internal',
  'http://METADATA.google.internal./',
  'http://metadata',
])('S2: %s is the address of a metadata service and no endpoint', (text) => {
  expect(normaliseAddress(text)).toMatchObject({ problem: expect.stringContaining('credentials') as string });
});

test.each([
  ['http://169.253.169.254', 'http://169.253.169.254'],
  ['http://10.0.0.1:8000/v1/', 'http://10.0.0.1:8000'],
  ['http://metadata.example/v1', 'http://metadata.example'],
  ['http://[fd00:ec3::1]:80', 'http://[fd00:ec3::1]'],
])('%s is one', (text, url) => {
  expect(normaliseAddress(text)).toEqual({ url });
});
