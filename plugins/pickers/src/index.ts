import { definePlugin } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import { best } from './picker-best/index.ts';
import { powerOfTwo } from './picker-power-of-two/index.ts';
import { softmax } from './picker-softmax/index.ts';
import { weighted } from './picker-weighted/index.ts';

/** Ways to choose among scored candidates. */
const plugin: Plugin = definePlugin({
  name: 'pickers',
  apiVersion: 1,
  doc: 'Ways to choose among scored candidates.',
  provides: { picker: { best, power_of_two: powerOfTwo, softmax, weighted } },
});

export default plugin;
