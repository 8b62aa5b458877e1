export { readSite } from './site/site.ts';
export type { SiteFile } from './site/site.ts';
