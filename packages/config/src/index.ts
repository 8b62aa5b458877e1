export { createOptionChecker } from './option-checker.ts';
