/** What each response of the playground may do in the browser. Everything else is forbidden. */
export const CONTENT_SECURITY_POLICIES: Readonly<Record<'page' | 'policyWorker' | 'optionWorker' | 'other', string>> =
  Object.freeze({
    /** Scripts, styles and data of its own origin; nothing inline, no code from strings, no other origin, no frame around it. */
    page: "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    /** The compiler and core: they may start the worker that checks options, and talk to nobody. */
    policyWorker: "default-src 'none'; script-src 'self'; worker-src 'self'",
    /** The validator makes code from schemas. It can load and reach nothing. */
    optionWorker: "default-src 'none'; script-src 'unsafe-eval'",
    /** Files that run nothing. */
    other: "default-src 'none'",
  });

/** The same as far as a `<meta>` of the page may say it, for servers that send no such header. */
export const META_POLICY: string = CONTENT_SECURITY_POLICIES.page.replace("; frame-ancestors 'none'", '');
