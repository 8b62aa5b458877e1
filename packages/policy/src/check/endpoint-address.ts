/**
 * Hosts of the metadata services of clouds, as the URL standard writes them: link-local IPv4 and its IPv6-mapped form (AWS, Azure, Google,
 * Oracle), Alibaba's address, AWS by IPv6, Google's name.
 */
const METADATA =
  /^(?:169\.254\.\d+\.\d+|\[::ffff:a9fe:[\da-f]+\]|100\.100\.100\.200|\[::ffff:6464:64c8\]|\[fd00:ec2:.*\]|metadata(?:\.google\.internal)?\.?)$/;

/**
 * The identity of an endpoint from its address as written: `http(s)://host[:port][/path]` without a trailing slash and without a `/v1` at
 * the end, so that base addresses with and without it are one endpoint. What is wrong comes back as `problem`.
 */
export const normaliseAddress = (
  text: string,
): { readonly url: string } | { readonly problem: string; readonly help?: string } => {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return { problem: 'it has no scheme', help: `write \`http://${text}\`` };
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return { problem: 'it is no address' };
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return { problem: `\`${url.protocol.slice(0, -1)}\` is not spoken`, help: 'endpoints speak `http` or `https`' };
  if (url.username !== '' || url.password !== '')
    return { problem: 'it holds a user or a password', help: 'give credentials by `key: { env: "NAME" }`' };
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(text)) return { problem: 'it has a query or a fragment' };
  if (METADATA.test(url.hostname))
    return {
      problem: 'a cloud answers any process of the machine with its credentials there',
      help: 'no model server is at an address of a metadata service; the gateway never connects to one',
    };
  if (/\s/.test(text)) return { problem: 'it holds white space' };
  const path = url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '').replace(/\/+$/, '');
  return { url: `${url.origin}${path}` };
};

/** Whether the text is `host:port` for a listener; an IPv6 host stands in brackets. Port 0 asks for any free one. */
export const isListenAddress = (text: string): boolean => {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^\s:[\]/]*):(\d{1,5})$/.exec(text);
  return match !== null && Number(match[2]) <= 65_535;
};
