import { definePlugin } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import { sla } from './admission-sla/index.ts';

/** Predicates for letting requests in. */
const plugin: Plugin = definePlugin({
  name: 'admission',
  apiVersion: 1,
  doc: 'Predicates for letting requests in: service-level objectives.',
  provides: { admission: { sla } },
});

export default plugin;
