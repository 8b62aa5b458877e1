// Adds up the vitest reports and the steps of a CI run and prints the closing line. Exits 1 if anything failed or a suite ran no test.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const directory = process.argv[2];
let passed = 0;
let failed = 0;
const problems = [];

const reports = readdirSync(directory).filter((name) => name.endsWith('.json'));
for (const name of reports) {
  const report = JSON.parse(readFileSync(join(directory, name), 'utf8'));
  passed += report.numPassedTests;
  failed += report.numFailedTests;
  const suites = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.every((one) => one.status !== 'failed'),
  );
  failed += suites.length;
  for (const suite of suites) problems.push(`${name}: ${suite.name} could not run: ${suite.message}`);
  for (const suite of report.testResults) {
    for (const one of suite.assertionResults) if (one.status === 'failed') problems.push(`${name}: ${one.fullName}`);
  }
  if (report.numPendingTests > 0 || report.numTodoTests > 0) {
    failed += 1;
    problems.push(
      `${name}: ${report.numPendingTests + report.numTodoTests} tests were skipped; no test may be skipped in CI`,
    );
  }
  if (report.numTotalTests === 0) {
    failed += 1;
    problems.push(`${name}: no test ran`);
  }
}
if (reports.length < 5) {
  failed += 1;
  problems.push(`expected the reports of five suites, found ${reports.join(', ') || 'none'}`);
}
for (const line of readFileSync(join(directory, 'steps'), 'utf8').trim().split('\n')) {
  const [result, name] = line.split(' ');
  if (result === 'pass') passed += 1;
  else {
    failed += 1;
    problems.push(`step ${name} failed`);
  }
}
for (const problem of problems) console.log(problem);
console.log(`\n${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
