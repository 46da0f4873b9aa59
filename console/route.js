// Addresses inside the console: `#/runs/models/policy/steps?from=12`.

/** The route of an address: {path: ['runs', 'models', 'policy'], query: URLSearchParams, hash}. */
export function parseRoute(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  return { hash, path: path.split('/').filter(Boolean).map(unescape), query: new URLSearchParams(query) };
}

/** `href('runs', bucket, run)`; an object at the end becomes the query: `href('buckets', bucket, {prefix: 'a/'})`. */
export function href(...segments) {
  const query = typeof segments.at(-1) === 'object' ? segments.pop() : null;
  const path = '#/' + segments.map(encodeURIComponent).join('/');
  const given = Object.entries(query || {}).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** Goes to an address. With `replace` the back button skips the one before. */
export function go(address, { replace } = {}) {
  if (replace) location.replace(address);
  else location.hash = address.replace(/^#/, '');
}

function unescape(segment) {
  try { return decodeURIComponent(segment); } catch (malformed) { return segment; }
}
