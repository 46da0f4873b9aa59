// Charts: sparklines in SVG, and uPlot, which is fetched only when a page has a chart.
import { html, useEffect, useRef, useState } from '../vendor/htm-preact.js';
import { count, short } from './format.js';

/** A small line without axes. `points` are numbers, oldest first; `slots` how many fit; `label` says it in words. */
export function Spark({ points, slots = 60, label, kind = '' }) {
  const top = Math.max(1e-9, ...points.filter(Number.isFinite)) * 1.08;
  const place = (value, at) => `${(100 * (slots - points.length + at)) / (slots - 1)},${(36 - 34 * Math.min(1, value / top)).toFixed(2)}`;
  const line = points.map(place).join(' ');
  const first = (100 * (slots - points.length)) / (slots - 1);
  return html`<svg class="spark ${kind}" viewBox="0 0 100 36" preserveAspectRatio="none" role="img" aria-label=${label}>
    <line class="base" x1="0" x2="100" y1="36" y2="36" />
    ${points.length > 1 && html`<g><polygon class="area" points=${`${first},36 ${line} 100,36`} /><polyline class="line" points=${line} /></g>`}
  </svg>`;
}

let loading = null;
/** uPlot and its style sheet, fetched once. */
export function loadPlot() {
  loading = loading || new Promise((resolve, reject) => {
    const sheet = Object.assign(document.createElement('link'), { rel: 'stylesheet', href: new URL('../vendor/uPlot.min.css', import.meta.url).href });
    sheet.onload = () => import('../vendor/uPlot.esm.js').then((module) => resolve(module.default), reject);
    sheet.onerror = reject;
    document.head.append(sheet);
  });
  return loading;
}

/**
 * A chart over whole numbers (steps) or times. `data` is uPlot's: a list of x values, then one list for each series, null where
 * unknown. `series` is a list of {label, color: 'accent' | 'ok' | ..., format(value), fill, bars, points}; `log` makes the y axis
 * logarithmic. `label` says in words what is drawn; the same numbers should stand in a table of the page. `onPick(index)` runs at
 * a click.
 */
export function Chart({ data, series, label, log, height = 180, axisFormat = short, onPick }) {
  const place = useRef(null);
  const plot = useRef(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const [ready, setReady] = useState(null);
  const [theme, setTheme] = useState(0);
  const lone = data[0].length === 1;
  const shape = JSON.stringify([lone, series.map((one) => [one.label, one.color]), log, height, theme]);
  useEffect(() => { let here = true; loadPlot().then((made) => { if (here) setReady(() => made); }, () => {}); return () => { here = false; }; }, []);
  useEffect(() => watchTheme(() => setTheme((n) => n + 1)), []);
  useEffect(() => {
    if (!ready) return undefined;
    const node = place.current;
    const size = () => ({ width: Math.max(120, node.clientWidth), height });
    const made = plot.current = new ready(options({ series, lone, log, axisFormat, size: size(), pick }), data, node);
    const watcher = new ResizeObserver(() => made.setSize(size()));
    watcher.observe(node);
    return () => { watcher.disconnect(); made.destroy(); plot.current = null; };
  }, [ready, shape]);
  useEffect(() => { if (plot.current) plot.current.setData(data); }, [data]);
  return html`<div class="chart" role="img" aria-label=${label} ref=${place} style=${{ height: `${height}px` }}></div>`;
}

/** The value of a colour of style.css, such as `accent`. */
export function color(name) {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** `draw` runs when light turns to dark or back. */
export function watchTheme(draw) {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const chosen = new MutationObserver(draw);
  system.addEventListener('change', draw);
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  return () => { system.removeEventListener('change', draw); chosen.disconnect(); };
}

function options({ series, lone, log, axisFormat, size, pick }) {
  const soft = color('soft');
  const line = color('line');
  const axis = { stroke: soft, font: '12px Inter, system-ui, sans-serif', ticks: { show: false }, border: { show: false } };
  return {
    ...size, padding: [8, 20, 0, 0], legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: { x: { time: false, range: (plot, low, high) => (lone ? [plot.data[0][0] - 1, plot.data[0][0] + 1] : [low, high]) }, y: { distr: log ? 3 : 1, range: log ? undefined : (plot, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, size: 28, values: (plot, ticks) => ticks.map((tick) => ((lone ? tick === plot.data[0][0] : Number.isInteger(tick)) ? count(tick) : '')) },
      { ...axis, grid: { stroke: line, width: 1, filter: (plot, ticks) => (log ? ticks.map(powerOfTen) : ticks) }, size: 64,
        filter: (plot, ticks) => (log ? ticks.map(powerOfTen) : ticks),
        values: (plot, ticks) => ticks.map((tick) => (tick === null ? '' : axisFormat(tick).replace(/\.0+(?= |$)/, ''))) },
    ],
    series: [{}, ...series.map((one) => ({
      label: one.label, stroke: color(one.color || 'accent'), width: 1.5, spanGaps: true,
      fill: one.fill ? color(`${one.color || 'accent'}-wash`) : undefined,
      points: { show: one.points ?? (lone || undefined), size: lone ? 7 : 5, fill: color('surface') },
    }))],
    plugins: [readout(series, pick)],
  };
}

function powerOfTen(tick) { return tick > 0 && Number.isInteger(Number(Math.log10(tick).toFixed(6))) ? tick : null; }

// The values under the pointer, in a line above the chart: nothing covers the lines.
function readout(series, pick) {
  let box;
  const words = (plot, at) => series.map((one, i) => `${one.label} ${(one.format || short)(plot.data[i + 1][at])}`).join(' · ');
  return { hooks: {
    init: (plot) => {
      box = Object.assign(document.createElement('div'), { className: 'chart-readout' });
      plot.over.append(box);
      plot.over.addEventListener('click', () => { if (pick.current && plot.cursor.idx !== null) pick.current(plot.cursor.idx); });
    },
    setCursor: (plot) => {
      const at = plot.cursor.idx;
      box.textContent = at === null || at === undefined ? '' : `${plot.data[0][at]}: ${words(plot, at)}`;
      box.hidden = !box.textContent;
      box.classList.toggle('at-end', plot.cursor.left > plot.over.clientWidth / 2);
    },
  } };
}
