import type { PickerDefinition } from '@signalbox/plugin-api';

/** The highest score first, ties by the policy's rule: the order that the host gives when a picker has none of its own. */
export const best: PickerDefinition = {
  doc: 'The highest score first. What applies when no picker is written.',
  setup() {
    return {};
  },
};
