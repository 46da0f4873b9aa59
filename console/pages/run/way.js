// The way that a worker would take, as a picture: steps on a line, an arc for each link, and below it the same in words.
import { html, useEffect, useRef, useState } from '../../vendor/htm-preact.js';
import { bytes, count, some } from '../../components/format.js';

const HEIGHT = 132;
const FLOOR = 96;
const SIDE = 28;
const LABELS = 8;
const LISTED = 24;
const KINDS = { anchor: 'Anchor', fold: 'Fold', delta: 'Delta', view: 'View' };

/** `way` is the answer of StepPath. */
export function Way({ way }) {
  if (!way) return null;
  if (way.links.length === 0) return html`<p class="soft">It holds step ${count(way.to)} already: there is nothing to fetch.</p>`;
  return html`<figure class="way">
    <${Picture} way=${way} />
    <figcaption>${summary(way)}</figcaption>
    <ol class="way-links">${way.links.slice(0, LISTED).map((link) => html`<li key=${link.step}><i class=${kindOf(link)}></i>${words(link)}</li>`)}
      ${way.links.length > LISTED && html`<li class="soft">and ${some('more link', way.links.length - LISTED)}</li>`}</ol>
  </figure>`;
}

/** `anchor`, `fold` or `delta`. */
export function kindOf(link) {
  if (link.form.kind === 'anchor' || link.from === null || link.from === undefined) return 'anchor';
  return link.step - link.from > 1 ? 'fold' : 'delta';
}

function summary(way) {
  const start = way.from === null || way.from === undefined ? 'From nothing' : `From step ${count(way.from)}`;
  return html`${start} to step ${count(way.to)}: <strong>${bytes(way.bytes)}</strong> in ${some('link', way.links.length)}.`;
}

function words(link) {
  const kind = kindOf(link);
  const from = kind === 'anchor' ? `step ${count(link.step)}, whole` : `${count(link.from)} → ${count(link.step)}`;
  return html`${KINDS[kind]} ${from} <span class="soft">${bytes(link.form.bytes)}</span>`;
}

function Picture({ way }) {
  const [box, width] = useWidth();
  const stops = [...new Set(way.links.flatMap((link) => (kindOf(link) === 'anchor' ? [link.step] : [link.from, link.step])))].sort((a, b) => a - b);
  const low = Math.min(stops[0], way.from ?? stops[0]);
  const high = way.to;
  const place = (step) => (high === low ? width / 2 : SIDE + ((width - 2 * SIDE) * (step - low)) / (high - low));
  const most = Math.max(...way.links.map((link) => link.form.bytes), 1);
  const labelled = way.links.length <= LABELS;
  return html`<div ref=${box} class="way-picture"><svg width=${width} height=${HEIGHT} viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-label="Picture of the path; the list below says the same">
    <line class="way-floor" x1=${place(low)} x2=${place(high)} y1=${FLOOR} y2=${FLOOR} />
    ${high - low <= 96 && Array.from({ length: high - low + 1 }, (none, i) => html`<circle key=${i} class="way-tick" cx=${place(low + i)} cy=${FLOOR} r="1.5" />`)}
    ${way.links.map((link) => html`<${Link} key=${link.step} link=${link} place=${place} wide=${1.5 + 3 * Math.sqrt(link.form.bytes / most)} labelled=${labelled} />`)}
    ${stops.map((step) => html`<circle key=${step} class="way-stop" cx=${place(step)} cy=${FLOOR} r="4.5" />`)}
    ${apart(stops, place).map((step) => html`<text key=${step} class="way-step" x=${place(step)} y=${FLOOR + 24}>${count(step)}</text>`)}
  </svg></div>`;
}

function Link({ link, place, wide, labelled }) {
  const kind = kindOf(link);
  const to = place(link.step);
  if (kind === 'anchor') {
    return html`<g><line class="way-link anchor" x1=${to} x2=${to} y1="24" y2=${FLOOR - 8} stroke-width=${wide} />
      <rect class="way-source" x=${to - 5} y="14" width="10" height="10" rx="2" />
      ${labelled && html`<text class="way-bytes" x=${to + 12} y="24" text-anchor="start">${bytes(link.form.bytes)}</text>`}</g>`;
  }
  const from = place(link.from);
  const top = FLOOR - Math.min(72, 16 + (to - from) * 0.3);
  return html`<g><path class="way-link ${kind}" d="M${from} ${FLOOR - 6} C${from + (to - from) * 0.2} ${top} ${to - (to - from) * 0.2} ${top} ${to} ${FLOOR - 6}" stroke-width=${wide} />
    ${labelled && to - from > 56 && html`<text class="way-bytes" x=${(from + to) / 2} y=${FLOOR - (FLOOR - top) * 0.75 - 8}>${bytes(link.form.bytes)}</text>`}</g>`;
}

// The two ends are named, and between them the steps whose numbers do not touch.
function apart(stops, place) {
  const last = stops.at(-1);
  const named = [stops[0]];
  for (const step of stops.slice(1, -1)) {
    if (place(step) - place(named.at(-1)) > 52 && place(last) - place(step) > 52) named.push(step);
  }
  return last === stops[0] ? named : [...named, last];
}

function useWidth() {
  const box = useRef(null);
  const [width, setWidth] = useState(640);
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.max(240, Math.floor(entry.contentRect.width))));
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  return [box, width];
}
