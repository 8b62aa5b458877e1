/** Descriptors for all but traffic: files of the policy, the log, the audit file, the admin listener, the engine itself. */
const KEPT = 256;

/**
 * Client connections that the limit on open files leaves room for: each may need one descriptor of its own and one for its endpoint.
 * Beyond them the process could neither reach endpoints nor answer its operator. Infinity where the system sets no limit.
 */
export function connectionLimit(openFiles: number | undefined): number {
  if (openFiles === undefined || !Number.isFinite(openFiles)) return Number.POSITIVE_INFINITY;
  return Math.max(1, Math.floor((openFiles - KEPT) / 2));
}

/** How many files this process may have open, or undefined if the system does not say. */
export function openFileLimit(): number | undefined {
  const report: typeof process.report & { excludeNetwork?: boolean } = process.report;
  const { excludeNetwork = false } = report;
  // Else a report looks names up.
  report.excludeNetwork = true;
  try {
    const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
    const soft = userLimits?.open_files?.soft;
    return typeof soft === 'number' ? soft : undefined;
  } finally {
    report.excludeNetwork = excludeNetwork;
  }
}
