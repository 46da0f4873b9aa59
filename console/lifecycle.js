// Lifecycle rules of a bucket: S3's XML as rows for a form, and back. What the form does not know stays in a rule as it was written.
import { textOf, xml } from './api.js';
import { escapeXml } from './s3.js';

const KNOWN = ['ID', 'Status', 'Prefix', 'Filter', 'Expiration', 'NoncurrentVersionExpiration', 'AbortIncompleteMultipartUpload'];

/** Rows: {id, enabled, prefix, days, marker, olderDays, olderKept, abortDays, more}. Numbers are texts, '' where there is none; `more`: XML of a rule that the form cannot show. */
export function parseRules(text) {
  return text ? [...xml(text).getElementsByTagName('Rule')].map(parseRule) : [];
}

function parseRule(rule) {
  const child = (name) => [...rule.children].find((one) => one.localName === name);
  const within = (name, inner) => (child(name) ? textOf(child(name), inner) : '');
  const filter = child('Filter');
  const isPlain = [...rule.children].every((one) => KNOWN.includes(one.localName)) &&
    (!filter || [...filter.children].every((one) => one.localName === 'Prefix')) && !within('Expiration', 'Date');
  return {
    id: textOf(rule, 'ID'), enabled: textOf(rule, 'Status') === 'Enabled', prefix: filter ? textOf(filter, 'Prefix') : child('Prefix')?.textContent ?? '',
    days: within('Expiration', 'Days'), marker: within('Expiration', 'ExpiredObjectDeleteMarker') === 'true',
    olderDays: within('NoncurrentVersionExpiration', 'NoncurrentDays'), olderKept: within('NoncurrentVersionExpiration', 'NewerNoncurrentVersions'),
    abortDays: within('AbortIncompleteMultipartUpload', 'DaysAfterInitiation'), more: isPlain ? '' : new XMLSerializer().serializeToString(rule).replace(/ xmlns="[^"]*"/g, ''),
  };
}

/** A new rule that does nothing yet. */
export const newRule = () => ({ id: '', enabled: true, prefix: '', days: '', marker: false, olderDays: '', olderKept: '', abortDays: '', more: '' });

/** What is wrong with a row, as a sentence; '' for a good one. */
export function faultOf(rule) {
  if (rule.more) return '';
  for (const [name, value] of [['The days', rule.days], ['The days of older versions', rule.olderDays], ['The days of unfinished uploads', rule.abortDays]]) {
    if (value !== '' && !/^[1-9]\d{0,8}$/.test(value)) return `${name} must be a whole number from 1 on.`;
  }
  if (rule.olderKept !== '' && !/^([1-9]\d?|100)$/.test(rule.olderKept)) return 'The number of older versions that stay must be 1 to 100.';
  if (rule.olderKept !== '' && rule.olderDays === '') return 'Say after how many days older versions go.';
  if (!rule.days && !rule.olderDays && !rule.abortDays && !rule.marker) return 'The rule does nothing: fill in at least one of the days.';
  return '';
}

/** The document of these rows; '' for none. */
export function writeRules(rules) {
  return rules.length ? `<LifecycleConfiguration>${rules.map(writeRule).join('')}</LifecycleConfiguration>` : '';
}

function writeRule(rule) {
  if (rule.more) return rule.more.replace(/<Status>\w*<\/Status>/, `<Status>${rule.enabled ? 'Enabled' : 'Disabled'}</Status>`);
  const expires = rule.days ? `<Days>${rule.days}</Days>` : rule.marker ? '<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>' : '';
  return '<Rule>' + (rule.id ? `<ID>${escapeXml(rule.id)}</ID>` : '') + `<Status>${rule.enabled ? 'Enabled' : 'Disabled'}</Status>` +
    `<Filter><Prefix>${escapeXml(rule.prefix)}</Prefix></Filter>` +
    (expires ? `<Expiration>${expires}</Expiration>` : '') +
    (rule.olderDays ? `<NoncurrentVersionExpiration><NoncurrentDays>${rule.olderDays}</NoncurrentDays>` +
      (rule.olderKept ? `<NewerNoncurrentVersions>${rule.olderKept}</NewerNoncurrentVersions>` : '') + '</NoncurrentVersionExpiration>' : '') +
    (rule.abortDays ? `<AbortIncompleteMultipartUpload><DaysAfterInitiation>${rule.abortDays}</DaysAfterInitiation></AbortIncompleteMultipartUpload>` : '') + '</Rule>';
}

/** What a rule does, in words. */
export function sentences(rule) {
  const said = [];
  if (rule.days) said.push(`objects go after ${days(rule.days)}`);
  if (rule.marker) said.push('delete markers that stand alone go');
  if (rule.olderDays) said.push(`older versions go after ${days(rule.olderDays)}${rule.olderKept ? `, the newest ${rule.olderKept} of them stay` : ''}`);
  if (rule.abortDays) said.push(`unfinished uploads end after ${days(rule.abortDays)}`);
  if (rule.more) said.push('conditions that only the whole document shows');
  return said;
}

const days = (n) => (n === '1' ? '1 day' : `${n} days`);
