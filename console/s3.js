// What the pages ask the S3 face: lists, versions, tags, settings and batches, as plain objects. Every URL is signed by the server
// for the session's key (api.js), so each call does what that key may do.
import { ApiError, api, fetchSigned, path, s3, s3Xml, signed, textOf, xml } from './api.js';

const PAGE = 1000;
const RECORDS = /&#x0*(?:[0-8bcef]|1[0-9a-f]);/gi;  // control characters, which XML 1.0 cannot carry

/** Fails with a sentence where the browser would ask for another key than this one: it takes `.` and `..` out of URLs. */
export function checkAddress(key) {
  if (key.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment))) {
    throw new ApiError(0, 'address', 'A browser cannot ask for a key with a segment "." or "..". Use the command line: deltabucket get.');
  }
}

/** One page below `prefix`: {folders: [prefix], objects: [{key, size, modified, etag}], next}. `next` is the `token` of the page behind. */
export async function listFolder(bucket, prefix, { token, signal } = {}) {
  const query = { 'list-type': '2', delimiter: '/', prefix, 'encoding-type': 'url', 'max-keys': String(PAGE) };
  if (token) query['continuation-token'] = token;
  const root = await s3Xml({ method: 'GET', bucket, query }, { signal });
  return {
    folders: [...root.getElementsByTagName('CommonPrefixes')].map((row) => decode(textOf(row, 'Prefix'))),
    objects: [...root.getElementsByTagName('Contents')].map(objectOf),
    next: textOf(root, 'NextContinuationToken') || undefined,
  };
}

/** Keys below `prefix` with all of their folders, up to `limit`: {objects, complete}. */
export async function listAll(bucket, prefix, limit, signal) {
  const objects = [];
  for (let token; ;) {
    const query = { 'list-type': '2', prefix, 'encoding-type': 'url', 'max-keys': String(PAGE) };
    if (token) query['continuation-token'] = token;
    const root = await s3Xml({ method: 'GET', bucket, query }, { signal });
    objects.push(...[...root.getElementsByTagName('Contents')].map(objectOf));
    token = textOf(root, 'NextContinuationToken');
    if (!token) return { objects, complete: true };
    if (objects.length >= limit) return { objects, complete: false };
  }
}

/** The versions of one key, newest first: {versions: [{key, version, latest, marker, size, modified, etag}], complete}. */
export async function listVersions(bucket, key) {
  const versions = [];
  let query = { versions: '', prefix: key, 'encoding-type': 'url', 'max-keys': String(PAGE) };
  for (let page = 0; page < 20; page++) {
    const root = await s3Xml({ method: 'GET', bucket, query });
    const rows = versionsOf(root);
    versions.push(...rows.filter((row) => row.key === key));
    if (rows.some((row) => row.key !== key) || textOf(root, 'IsTruncated') !== 'true') return { versions, complete: true };
    query = { ...query, ...nextOf(root) };
  }
  return { versions, complete: false };
}

/**
 * Looks for deleted objects below `prefix`, in one page of versions: {objects: [{key, markers, size, deleted}], scanned, next}. `markers`
 * are the versions that hide the newest bytes: without them the object is back. `next` is the `from` of the page behind.
 */
export async function listDeleted(bucket, prefix, from, signal) {
  const query = { versions: '', prefix, 'encoding-type': 'url', 'max-keys': String(PAGE), ...(from ? from.query : {}) };
  const root = await s3Xml({ method: 'GET', bucket, query }, { signal });
  const rows = versionsOf(root);
  const objects = [];
  let at = from ? from.at : {};  // the key whose rows come, newest first; a page may end between two of them
  for (const row of rows) {
    if (row.key !== at.key) at = { key: row.key, markers: [], deleted: row.modified, done: false };
    if (at.done) continue;
    if (row.marker) { at.markers.push(row.version); continue; }
    at.done = true;
    if (at.markers.length) objects.push({ key: at.key, markers: at.markers, deleted: at.deleted, size: row.size });
  }
  return { objects, scanned: rows.length, next: textOf(root, 'IsTruncated') === 'true' ? { at, query: nextOf(root) } : undefined };
}

/** What HEAD tells of an object: {size, type, etag, modified, version, derived, digest, headers: [[name, value]], metadata: [[name, value]], tags}. */
export async function headObject(bucket, key, version) {
  checkAddress(key);
  const { headers } = await s3({ method: 'HEAD', bucket, key, query: version ? { versionId: version } : {} }).catch((fault) => { throw headFault(fault); });
  const all = [...headers.entries()];
  return {
    size: Number(headers.get('content-length')), type: headers.get('content-type') || '', etag: (headers.get('etag') || '').replaceAll('"', ''),
    modified: headers.get('last-modified'), version: headers.get('x-amz-version-id'), derived: headers.get('x-deltabucket-derived') === 'true',
    digest: headers.get('x-deltabucket-digest') || '', tags: Number(headers.get('x-amz-tagging-count') || 0),
    expires: headers.get('x-amz-expiration') || '',
    headers: all.filter(([name]) => ['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'expires'].includes(name)),
    metadata: all.filter(([name]) => name.startsWith('x-amz-meta-')).map(([name, value]) => [name.slice(11), value]),
  };
}

// HEAD has no body that would say it.
function headFault(fault) {
  const words = { 403: 'Your key may not read this object.', 404: 'There is no such object. It may have been deleted; its versions, if there are any, stand below.', 405: 'This version is a delete marker: it says that the object was deleted.' };
  return words[fault.status] ? new ApiError(fault.status, fault.code === 'unknown' ? '' : fault.code, words[fault.status]) : fault;
}

/** The bytes first..last of an object. */
export async function readRange(bucket, key, version, first, last, signal) {
  const [url] = await signed([{ method: 'GET', bucket, key, query: version ? { versionId: version } : {} }]);
  const response = await fetchSigned(url, { headers: { Range: `bytes=${first}-${last}` }, signal });
  return new Uint8Array(await response.arrayBuffer());
}

/** A URL that saves the object under its own name. */
export async function downloadUrl(bucket, key, version) {
  checkAddress(key);
  const name = key.split('/').filter(Boolean).pop() || 'object';
  const escaped = encodeURIComponent(name).replace(/['()*]/g, (sign) => '%' + sign.charCodeAt(0).toString(16).toUpperCase());
  const query = { 'response-content-disposition': `attachment; filename*=UTF-8''${escaped}`, ...(version ? { versionId: version } : {}) };
  return (await signed([{ method: 'GET', bucket, key, query }]))[0];
}

/** A URL for others; it ends after `seconds`, or with the key of this session. */
export async function shareUrl(bucket, key, version, seconds) {
  checkAddress(key);
  return (await signed([{ method: 'GET', bucket, key, query: version ? { versionId: version } : {} }], seconds))[0];
}

/**
 * Deletes objects: [{key, version?}]. Without a version the current one goes, which in a versioned bucket leaves the older ones.
 * Returns what was refused: [{key, code, message}].
 */
export async function deleteObjects(bucket, objects, onProgress) {
  const refused = [];
  for (let at = 0; at < objects.length; at += PAGE) {
    const part = objects.slice(at, at + PAGE);
    const rows = part.map(({ key, version }) =>
      `<Object><Key>${escapeXml(key)}</Key>${version ? `<VersionId>${escapeXml(version)}</VersionId>` : ''}</Object>`);
    const response = await s3({ method: 'POST', bucket, query: { delete: '' } }, { body: `<Delete><Quiet>true</Quiet>${rows.join('')}</Delete>` });
    const root = xml((await response.text()).replace(RECORDS, '\ufffd'));
    refused.push(...[...root.getElementsByTagName('Error')].map((row) =>
      ({ key: textOf(row, 'Key'), code: textOf(row, 'Code'), message: textOf(row, 'Message') })));
    if (onProgress) onProgress(Math.min(at + PAGE, objects.length));
  }
  return refused;
}

/** Makes an older version the current one, by a copy of it. */
export async function restoreVersion(bucket, key, version) {
  checkAddress(key);
  const source = `/${bucket}/${key.split('/').map(encodeURIComponent).join('/')}?versionId=${encodeURIComponent(version)}`;
  const response = await s3({ method: 'PUT', bucket, key, query: { 'x-amz-copy-source': source } });
  const root = xml((await response.text()).replace(RECORDS, '\ufffd'));
  if (root.documentElement.localName === 'Error') throw new ApiError(500, textOf(root, 'Code'), textOf(root, 'Message'));
}

/** The tags of an object: [[key, value]]. */
export async function readTags(bucket, key, version) {
  const root = await s3Xml({ method: 'GET', bucket, key, query: { tagging: '', ...(version ? { versionId: version } : {}) } });
  return [...root.getElementsByTagName('Tag')].map((row) => [textOf(row, 'Key'), textOf(row, 'Value')]);
}

export async function writeTags(bucket, key, tags) {
  const rows = tags.map(([name, value]) => `<Tag><Key>${escapeXml(name)}</Key><Value>${escapeXml(value)}</Value></Tag>`);
  await s3({ method: 'PUT', bucket, key, query: { tagging: '' } }, { body: `<Tagging><TagSet>${rows.join('')}</TagSet></Tagging>` });
}

export const makeBucket = (bucket) => s3({ method: 'PUT', bucket });
export const removeBucket = (bucket) => s3({ method: 'DELETE', bucket });

/** `Enabled`, `Suspended` or '' where it was never set. */
export async function readVersioning(bucket) {
  return textOf(await s3Xml({ method: 'GET', bucket, query: { versioning: '' } }), 'Status');
}

export function writeVersioning(bucket, status) {
  return s3({ method: 'PUT', bucket, query: { versioning: '' } }, { body: `<VersioningConfiguration><Status>${status}</Status></VersioningConfiguration>` });
}

export async function isPublic(bucket) {
  return textOf(await s3Xml({ method: 'GET', bucket, query: { policyStatus: '' } }), 'IsPublic').toLowerCase() === 'true';
}

/** Gives everybody what the canned ACL says: `private`, `public-read` or `public-read-write`. */
export const writeAcl = (bucket, acl) => s3({ method: 'PUT', bucket, query: { acl: '', 'x-amz-acl': acl } });

/** The lifecycle document as text, '' where there is none. */
export async function readLifecycle(bucket) {
  const { documents } = await api(path('-', 'buckets', bucket));
  return documents.includes('lifecycle') ? (await s3({ method: 'GET', bucket, query: { lifecycle: '' } })).text() : '';
}

/** `text` '' removes all rules. */
export function writeLifecycle(bucket, text) {
  return text ? s3({ method: 'PUT', bucket, query: { lifecycle: '' } }, { body: text }) : s3({ method: 'DELETE', bucket, query: { lifecycle: '' } });
}

/** A text as XML has it; characters that XML cannot carry as the server reads them. */
export function escapeXml(text) {
  return text.replace(/[&<>"\u0000-\u001f]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign] || `&#x${sign.charCodeAt(0).toString(16).toUpperCase()};`);
}

// With encoding-type=url: percent-encoded, a blank as + or %20.
const decode = (text) => decodeURIComponent(text.replaceAll('+', '%20'));
const objectOf = (row) => ({ key: decode(textOf(row, 'Key')), size: Number(textOf(row, 'Size')), modified: textOf(row, 'LastModified'), etag: textOf(row, 'ETag').replaceAll('"', '') });
const versionsOf = (root) => [...root.documentElement.children].filter((row) => ['Version', 'DeleteMarker'].includes(row.localName)).map(versionOf);
const nextOf = (root) => ({ 'key-marker': decode(textOf(root, 'NextKeyMarker')), 'version-id-marker': textOf(root, 'NextVersionIdMarker') });
const versionOf = (row) => ({
  ...objectOf(row), version: textOf(row, 'VersionId'), latest: textOf(row, 'IsLatest') === 'true', marker: row.localName === 'DeleteMarker',
});
