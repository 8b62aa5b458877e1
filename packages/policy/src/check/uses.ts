import { API_VERSION } from '@signalbox/plugin-api';
import type { Json, PluginManifest } from '@signalbox/plugin-api';
import type { UseNode } from '../syntax/ast.ts';
import type { Span } from '../syntax/span.ts';
import { tableOfManifest } from './catalogue/catalogue.ts';
import type { NameTable } from './catalogue/catalogue.ts';
import { reservedWords } from '../syntax/token-types.ts';
import { takenBy } from './lets.ts';
import { checkOptionObject } from './options.ts';
import type { Binding, Block } from './session.ts';
import type { Work } from './work.ts';

export const bindAlias = (work: Work, block: Block, name: string, span: Span, value: Binding): void => {
  const before = work.aliases.get(name);
  const taken = before === undefined ? takenBy(work.session, block, name) : undefined;
  if (before !== undefined)
    work.session.report('E0220', span, `the alias \`${name}\` is used twice`, {
      labels: [{ span: before, message: 'first used here' }],
    });
  else if (taken !== undefined)
    work.session.report(
      'E0211',
      span,
      `\`${name}\` is already the name of ${taken.what}`,
      taken.binding === undefined ? {} : { labels: [{ span: taken.binding.span, message: 'first declared here' }] },
    );
  else {
    work.aliases.set(name, span);
    block.bindings.set(name, value);
    return;
  }
  value.used = true;
};

const PLUGIN_CODES = { not_found: 'E0501', not_allowed: 'E0502', invalid: 'E0503', api_version: 'E0504' } as const;

const manifestProblem = (manifest: PluginManifest): string | undefined => {
  if (
    typeof manifest !== 'object' ||
    manifest === null ||
    !Array.isArray(manifest.entries) ||
    typeof manifest.name !== 'string'
  )
    return 'it has no name or no entries';
  const reserved = manifest.entries.find((entry) => typeof entry?.name !== 'string' || typeof entry.kind !== 'string');
  return reserved === undefined ? undefined : 'one of its entries has no name or no kind';
};

/** Puts the names of a plugin that has no alias beside those of the catalogue. */
const mergeTable = (work: Work, node: UseNode, manifest: PluginManifest, table: NameTable): void => {
  const { catalogue } = work.session;
  const isFirstParty = work.input.firstParty.some((known) => known.name === manifest.name);
  const merge = <T extends { readonly provider: { readonly kind: string; readonly plugin?: string } }>(
    into: ReadonlyMap<string, T>,
    from: ReadonlyMap<string, T>,
  ): void => {
    for (const [name, entry] of from) {
      const before = into.get(name);
      if (before !== undefined && !(isFirstParty && before.provider.plugin === manifest.name)) {
        if (isFirstParty) continue;
        work.session.report(
          'E0509',
          node.package.span,
          `\`${manifest.name}\` provides \`${name}\`, which is already ${before.provider.plugin === undefined ? 'a name of the catalogue' : `provided by \`${before.provider.plugin}\``}`,
          { help: 'give the plugin an alias by `as`' },
        );
        continue;
      }
      (into as Map<string, T>).set(name, entry);
    }
  };
  merge(catalogue.values, table.values);
  merge(catalogue.scorers, table.scorers);
  merge(catalogue.pickers, table.pickers);
  merge(catalogue.admissions, table.admissions);
};

export const checkUse = (work: Work, block: Block, node: UseNode): void => {
  const { session } = work;
  const name = node.package.value;
  const poison = (): void => {
    if (node.alias === undefined) session.incomplete = true;
    else
      bindAlias(work, block, node.alias.text, node.alias.span, {
        kind: 'poison',
        name: node.alias.text,
        span: node.alias.span,
        used: true,
      });
  };
  const resolved = work.input.resolvePlugin(name);
  if (resolved.error !== undefined) {
    const { error } = resolved;
    if (typeof error === 'string') session.report('E0501', node.package.span, error);
    else {
      const help = {
        not_found: `install it: \`npm install ${name}\``,
        not_allowed: `allow it by \`--allow-plugin ${name}\`, or make it a dependency`,
        invalid: undefined,
        api_version: undefined,
      }[error.reason];
      session.report(PLUGIN_CODES[error.reason], node.package.span, error.message, help === undefined ? {} : { help });
    }
    return poison();
  }
  const { manifest } = resolved;
  const problem = manifestProblem(manifest);
  if (problem !== undefined) {
    session.report('E0503', node.package.span, `the manifest of \`${name}\` is invalid: ${problem}`);
    return poison();
  }
  if (manifest.apiVersion !== API_VERSION) {
    session.report(
      'E0504',
      node.package.span,
      `\`${name}\` was written for plugin API ${String(manifest.apiVersion)}, and this build speaks ${API_VERSION}`,
      { help: `install a version of it for API ${API_VERSION}` },
    );
    return poison();
  }
  for (const entry of manifest.entries) {
    if (reservedWords.includes(entry.name))
      session.report(
        'E0215',
        node.package.span,
        `\`${name}\` provides \`${entry.name}\`, which is a word of the grammar`,
      );
  }
  session.observer?.plugin(node, manifest);
  const index = work.uses.length;
  const table = tableOfManifest(manifest, index);
  const binding: Binding | undefined =
    node.alias === undefined
      ? undefined
      : { kind: 'plugin', table, name: node.alias.text, span: node.alias.span, used: false };
  if (binding === undefined) mergeTable(work, node, manifest, table);
  else bindAlias(work, block, binding.name, binding.span, binding);
  let options: { readonly [key: string]: Json } | undefined = {};
  if (manifest.options !== undefined)
    options = checkOptionObject(
      session,
      { scope: 'constant', block, clause: 'use' },
      manifest.options,
      name,
      node.package.span,
      node.options,
    );
  else if (node.options !== undefined && node.options.entries.length > 0) {
    const [first] = node.options.entries;
    session.report('E0505', first?.key.span ?? node.options.span, `\`${name}\` takes no options`);
  }
  work.uses.push({
    package: name,
    ...(node.alias === undefined ? {} : { alias: node.alias.text }),
    plugin: manifest.name,
    options: options ?? {},
    span: node.span,
  });
  work.usedManifests.push(manifest);
  work.unusedChecks.push({ kind: 'use', use: index, span: node.head, name });
};
