/** A policy as a gateway keeps it. */
export interface GatewayPolicy {
  readonly text: string;
  /** Paths of the files that it imports, which the playground cannot show. */
  readonly imports: readonly string[];
}

/** The id of the version in force, as `GET /-/policy/versions` tells it; undefined if it tells none. */
export function versionInForce(report: unknown): string | undefined {
  const versions =
    isObject(report) && Array.isArray(report['versions']) ? (report['versions'] as readonly unknown[]) : [];
  const found = versions.find((row) => isObject(row) && row['state'] === 'in_force');
  return isObject(found) && typeof found['id'] === 'string' ? found['id'] : undefined;
}

/** The texts of a version, as `GET /-/policy/versions/ID` tells them, the main file first; undefined if it tells none. */
export function readGatewayPolicy(detail: unknown): GatewayPolicy | undefined {
  const sources = isObject(detail) && isObject(detail['sources']) ? Object.entries(detail['sources']) : [];
  const [main, ...imports] = sources;
  if (main === undefined || typeof main[1] !== 'string') return undefined;
  return { text: main[1], imports: imports.map(([path]) => path) };
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
