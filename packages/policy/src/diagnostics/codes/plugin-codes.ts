/** E05xx: plugins, options, values of definitions. */
export const pluginCodes = {
  E0501: {
    severity: 'error',
    title: 'plugin not found',
    explanation: 'The package is not installed, or exports no plugin.',
    bad: 'use "@acme/not-installed"',
    good: 'use "@acme/signalbox-carbon" as carbon',
  },
  E0502: {
    severity: 'error',
    title: 'plugin not allowed',
    explanation:
      'A plugin may load if it is a dependency of the nearest `package.json` or named by `--allow-plugin`. A reload never widens that.',
    bad: 'use "some-package"',
    good: 'use "@acme/signalbox-carbon" as carbon',
  },
  E0503: {
    severity: 'error',
    title: 'invalid plugin manifest',
    explanation: 'The manifest of the plugin breaks the contract of the plugin API.',
    bad: 'use "plugin-with-a-broken-manifest"',
    good: 'use "@acme/signalbox-carbon" as carbon',
  },
  E0504: {
    severity: 'error',
    title: 'plugin for another version of the API',
    explanation: 'The `apiVersion` of the plugin is not one that this gateway supports.',
    bad: 'use "plugin-of-the-future"',
    good: 'use "@acme/signalbox-carbon" as carbon',
  },
  E0505: {
    severity: 'error',
    title: 'unknown option',
    explanation: 'The plugin has no such option.',
    bad: 'use "@acme/signalbox-carbon" { refesh: 5m }',
    good: 'use "@acme/signalbox-carbon" { refresh: 5m }',
  },
  E0506: {
    severity: 'error',
    title: 'option of the wrong type',
    explanation: 'The option takes a value of another type.',
    bad: 'use "@acme/signalbox-carbon" { refresh: "often" }',
    good: 'use "@acme/signalbox-carbon" { refresh: 5m }',
  },
  E0507: {
    severity: 'error',
    title: 'missing option',
    explanation: 'The plugin needs this option.',
    bad: 'use "@acme/plugin-that-needs-a-key"',
    good: 'use "@acme/plugin-that-needs-a-key" { key: { env: "KEY" } }',
  },
  E0508: {
    severity: 'error',
    title: 'option out of range',
    explanation: 'The value of the option lies outside what the plugin allows.',
    bad: 'use "@acme/signalbox-carbon" { refresh: 0s }',
    good: 'use "@acme/signalbox-carbon" { refresh: 5m }',
  },
  E0509: {
    severity: 'error',
    title: 'name provided twice',
    explanation:
      'Two plugins, or a plugin and the catalogue, provide the same name. Give one of them an alias by `as`.',
    bad: 'use "plugin-a"\nuse "plugin-b"',
    good: 'use "plugin-a" as a\nuse "plugin-b" as b',
  },
  E0510: {
    severity: 'error',
    title: 'expression of a plugin does not compile',
    explanation: 'A scorer or filter that is given as an expression has an error in it; the message quotes it.',
    bad: 'use "plugin-with-a-broken-expression" as broken\ndefault to any by broken.typo',
    good: 'use "@acme/signalbox-carbon" as carbon',
  },
  E0511: {
    severity: 'error',
    title: 'invalid value in a definition',
    explanation: 'The key takes a value of another type or form.',
    bad: 'define slo "fast" { ttft: "soon" }',
    good: 'define slo "fast" { ttft: 500ms }',
  },
  E0512: {
    severity: 'error',
    title: 'missing key in a definition',
    explanation: 'This kind of definition needs the key.',
    bad: 'define tier "8B" { gpu: "L4" }',
    good: 'define tier "8B" { model: "m", endpoints: ["http://127.0.0.1:1"] }',
  },
  E0513: {
    severity: 'error',
    title: 'secret written in the policy',
    explanation: 'Secrets are given by `{ env: "NAME" }` or `{ file: "path" }`, never as text.',
    bad: 'define tier "8B" { model: "m", endpoints: ["http://127.0.0.1:1"], key: "sk-1" }',
    good: 'define tier "8B" { model: "m", endpoints: ["http://127.0.0.1:1"], key: { env: "KEY" } }',
  },
  E0514: {
    severity: 'error',
    title: 'invalid address',
    explanation:
      'Addresses of endpoints are `http://` or `https://` without user, query or fragment; listeners are `host:port`; networks are IP addresses, with the length of a prefix or without.',
    bad: 'define tier "8B" { model: "m", endpoints: ["10.0.0.1"] }',
    good: 'define tier "8B" { model: "m", endpoints: ["http://10.0.0.1:8000"] }',
  },
} as const;
