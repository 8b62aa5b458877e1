import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { zipOf } from './zip.ts';

const folder = fileURLToPath(new URL('..', import.meta.url));
const pages = fileURLToPath(new URL('../../../docs/reference/diagnostics', import.meta.url));

interface PackageJson {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly publisher?: string;
  readonly displayName?: string;
  readonly description?: string;
  readonly categories?: readonly string[];
  readonly keywords?: readonly string[];
  readonly engines?: { readonly vscode?: string };
  readonly dependencies?: { readonly [name: string]: string };
}

/** Licences under which a dependency may be passed on with the extension. */
const LICENCES: ReadonlySet<string> = new Set([
  'MIT',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  'BlueOak-1.0.0',
]);
const SHIPPED = new Set(['.js', '.cjs', '.mjs', '.json']);

const readJson = (path: string): PackageJson => JSON.parse(readFileSync(path, 'utf8')) as PackageJson;

const filesBelow = function* (directory: string, prefix = ''): Iterable<string> {
  for (const entry of readdirSync(directory, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = `${prefix}${entry.name}`;
    if (entry.isDirectory()) {
      if (entry.name !== 'node_modules') yield* filesBelow(join(directory, entry.name), `${path}/`);
    } else yield path;
  }
};

/** The folder of a package as Node would find it from another one. */
const findPackage = (name: string, from: string): string => {
  for (let at = from; ; at = dirname(at)) {
    const candidate = join(at, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return realpathSync(candidate);
    if (dirname(at) === at) throw new Error(`${name}, which ${from} needs, is not installed`);
  }
};

/** The packages that run with the extension, all levels down, by name. Throws for two versions of one, and for a licence that is not in the list. */
const dependenciesOf = (from: string): ReadonlyMap<string, string> => {
  const found = new Map<string, string>();
  const visit = (at: string): void => {
    for (const name of Object.keys(readJson(join(at, 'package.json')).dependencies ?? {})) {
      const place = findPackage(name, at);
      const before = found.get(name);
      if (before === place) continue;
      if (before !== undefined) throw new Error(`${name} is needed in two versions: ${before} and ${place}`);
      const { license = 'none' } = readJson(join(place, 'package.json'));
      if (!LICENCES.has(license)) throw new Error(`${name} has the licence ${license}, which is not in the list`);
      found.set(name, place);
      visit(place);
    }
  };
  visit(from);
  return found;
};

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** The manifest that Visual Studio Code reads of a package (schema 2011 of VSIX). */
const vsixManifest = (own: PackageJson): string => {
  const {
    name,
    version,
    publisher = '',
    displayName = name,
    description = '',
    categories = [],
    keywords = [],
    engines,
  } = own;
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="${escapeXml(name)}" Version="${escapeXml(version)}" Publisher="${escapeXml(publisher)}"/>
    <DisplayName>${escapeXml(displayName)}</DisplayName>
    <Description xml:space="preserve">${escapeXml(description)}</Description>
    <Tags>${escapeXml(keywords.join(','))}</Tags>
    <Categories>${escapeXml(categories.join(','))}</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="${escapeXml(engines?.vscode ?? '*')}"/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/>
    </Properties>
    <License>extension/LICENSE.txt</License>
  </Metadata>
  <Installation>
    <InstallationTarget Id="Microsoft.VisualStudio.Code"/>
  </Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
  </Assets>
</PackageManifest>
`;
};

const TYPES: { readonly [extension: string]: string } = {
  '.json': 'application/json',
  '.js': 'application/javascript',
  '.cjs': 'application/javascript',
  '.mjs': 'application/javascript',
  '.md': 'text/markdown',
  '.txt': 'text/plain',
  '.svg': 'image/svg+xml',
  '.vsixmanifest': 'text/xml',
};

const contentTypes = (paths: Iterable<string>): string => {
  const extensions = [...new Set([...paths].map((path) => extname(path).toLowerCase()))]
    .filter((one) => one !== '')
    .toSorted();
  const lines = extensions.map(
    (one) => `  <Default Extension="${one}" ContentType="${TYPES[one] ?? 'application/octet-stream'}"/>`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">\n${lines.join('\n')}\n</Types>\n`;
};

/** The manifest as it ships: without what only development needs. */
const shippedManifest = (text: string): string => {
  const {
    devDependencies: _development,
    private: _private,
    ...rest
  } = JSON.parse(text) as { readonly [key: string]: unknown };
  return `${JSON.stringify(rest, null, 2)}\n`;
};

/** The extension as one file for `code --install-extension`. It must be built. */
export const packExtension = (): { readonly name: string; readonly content: Buffer } => {
  const own = readJson(join(folder, 'package.json'));
  if (!existsSync(join(folder, 'dist/extension.js')))
    throw new Error('the extension is not built: run `npm run build`');
  const files = new Map<string, Buffer>();
  const add = (path: string, from: string): void => void files.set(`extension/${path}`, readFileSync(from));
  files.set('extension/package.json', Buffer.from(shippedManifest(readFileSync(join(folder, 'package.json'), 'utf8'))));
  for (const path of ['README.md', 'language-configuration.json', 'syntaxes/route.tmLanguage.json', 'images/route.svg'])
    add(path, join(folder, path));
  add('LICENSE.txt', join(folder, '../../LICENSE'));
  for (const path of filesBelow(join(folder, 'dist')))
    if (path.endsWith('.js')) add(`dist/${path}`, join(folder, 'dist', path));
  for (const path of filesBelow(pages)) add(`docs/reference/diagnostics/${path}`, join(pages, path));
  for (const [name, place] of dependenciesOf(folder))
    for (const path of filesBelow(place))
      if (SHIPPED.has(extname(path)) || /^licen[cs]e/i.test(path))
        add(`node_modules/${name}/${path}`, join(place, path));
  const manifest = ['extension.vsixmanifest', Buffer.from(vsixManifest(own))] as const;
  const all = new Map([manifest, ...files]);
  const types = ['[Content_Types].xml', Buffer.from(contentTypes(all.keys()))] as const;
  return { name: `${own.name}-${own.version}.vsix`, content: zipOf(new Map([types, ...all])) };
};
