// Numbers, bytes and times as people read them. Bytes are decimal (1 kB is 1000 bytes), as on the command line.
import { clock } from '../api.js';

const grouped = new Intl.NumberFormat('en-US');
const fine = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];
const NONE = '–';

/** 1254304 is `1.25 MB`. */
export function bytes(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return NONE;
  let unit = 0;
  while (Math.abs(n) >= 999.5 && unit < UNITS.length - 1) { n /= 1000; unit++; }
  return `${unit ? n.toPrecision(3) : Math.round(n)} ${UNITS[unit]}`;
}

/** 12345 is `12,345`. */
export function count(n) {
  return n === null || n === undefined || Number.isNaN(n) ? NONE : grouped.format(n);
}

/** 12345 is `12.3 k`; for axes and small places. */
export function short(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return NONE;
  if (Math.abs(n) < 1000) return String(Math.abs(n) < 100 ? Math.round(n * 10) / 10 : Math.round(n));
  const power = Math.min(4, Math.floor(Math.log10(Math.abs(n)) / 3));
  return `${Number((n / 1000 ** power).toPrecision(3))} ${['', 'k', 'M', 'G', 'T'][power]}`;
}

/** A share of 1: 0.0123 is `1.23 %`. */
export function percent(share) {
  if (share === null || share === undefined || !Number.isFinite(share)) return NONE;
  const value = share * 100;
  if (value === 0) return '0 %';
  if (value < 0.01) return '< 0.01 %';
  return `${value >= 99.95 ? Math.round(value) : Number(value.toPrecision(value >= 10 ? 3 : 2))} %`;
}

/** Milliseconds: `820 ms`, `1.2 s`, `3 min 5 s`. */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return NONE;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return span(seconds);
}

/** Seconds, coarsely: `12 s`, `3 min`, `2 h`, `5 d`. */
export function span(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return NONE;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400 * 2) return `${Math.floor(whole / 3600)} h`;
  return `${grouped.format(Math.floor(whole / 86400))} d`;
}

/** How long ago a time of the server was: `12 s ago`; of one that lies ahead: `in 3 min`. */
export function ago(time) {
  if (!time) return NONE;
  const seconds = (clock.now() - Date.parse(time)) / 1000;
  if (seconds < -1) return `in ${span(-seconds)}`;
  return seconds < 1 ? 'now' : `${span(seconds)} ago`;
}

/** A time in the reader's zone, in full. */
export function moment(time) {
  return time ? fine.format(new Date(time)) : NONE;
}

/** `one('step', 1)` is `1 step`, `one('step', 2)` is `2 steps`. */
export function some(noun, n, plural = `${noun}s`) {
  return `${count(n)} ${n === 1 ? noun : plural}`;
}

/** The first 12 digits of a digest `xxh3-128:...`. */
export function digest(text) {
  return text ? text.replace(/^[a-z0-9-]+:/, '').slice(0, 12) : NONE;
}
