// Forbidden twice over: chwbl imports nothing of ours and no node: module. The import check fails if this file passes.
import { readFileSync } from 'node:fs';
import { nothing } from '../../policy/src/index.ts';

export const broken: unknown = [readFileSync, nothing];
