// Small line icons, drawn here. They say nothing to screen readers: the text beside them, or the button's name, does.
import { html } from '../vendor/htm-preact.js';

const PATHS = {
  alert: 'M8 2.2 14.3 13.4H1.7zM8 6.4v3M8 11.4v.1',
  check: 'M3 8.5 6.5 12 13 4.5',
  cross: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 3.2v-.7h-8v8h.7',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9M10.4 10.4 14 14',
  sun: 'M8 5.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 0 0 0-5.6M8 1.3v1.4M8 13.3v1.4M1.3 8h1.4M13.3 8h1.4M3.3 3.3l1 1M11.7 11.7l1 1M3.3 12.7l1-1M11.7 4.3l1-1',
  moon: 'M13.2 9.7A5.7 5.7 0 0 1 6.3 2.8a5.7 5.7 0 1 0 6.9 6.9z',
  screen: 'M2 3h12v8H2zM5.5 13.5h5',
  person: 'M8 2.5a2.6 2.6 0 1 0 0 5.2a2.6 2.6 0 0 0 0-5.2M2.8 13.8c.5-2.6 2.6-3.9 5.2-3.9s4.7 1.3 5.2 3.9',
  down: 'M4 6.3 8 10.3 12 6.3',
  up: 'M4 9.7 8 5.7 12 9.7',
  right: 'M6.3 4 10.3 8 6.3 12',
  left: 'M9.7 4 5.7 8 9.7 12',
  folder: 'M1.8 4v8.7h12.4V5.3H7.6L6.2 3.3H1.8z',
  file: 'M4 1.8h5.5L12.3 4.6v9.6H4zM9.3 2v2.8h2.8',
  key: 'M5.3 7.2a3 3 0 1 0 0 5.9a3 3 0 0 0 0-5.9M7.5 8 13.5 2.2M11 4.7l2 2',
  pin: 'M5.5 2h5l-.8 4.2 2.3 2.3H4l2.3-2.3zM8 8.5v5.5',
  plus: 'M8 3v10M3 8h10',
  trash: 'M2.5 4.2h11M6 4V2.5h4V4M4 4.2l.6 9.5h6.8l.6-9.5',
  upload: 'M8 10.5V2.5M4.5 5.8 8 2.3l3.5 3.5M2.5 11v2.7h11V11',
  download: 'M8 2.5v8M4.5 7.2 8 10.7l3.5-3.5M2.5 11v2.7h11V11',
  refresh: 'M13.3 6.3A5.6 5.6 0 1 0 13.6 9M13.5 2.5v4h-4',
  branch: 'M4.5 4.8v6.4M4.5 11.2a1.5 1.5 0 1 0 .01 0M4.5 1.8a1.5 1.5 0 1 0 .01 0M11.5 3.3a1.5 1.5 0 1 0 .01 0M11.5 6.3c0 3-4.5 2-6.5 4.2',
  back: 'M6.5 3 2.5 7l4 4M2.7 7h7a3.8 3.8 0 0 1 0 7.5H7',
  pause: 'M5 3v10M11 3v10',
  play: 'M4.5 2.8v10.4L13 8z',
  dots: 'M3 8h.01M8 8h.01M13 8h.01',
  link: 'M6.7 9.3l2.6-2.6M7.5 4.5l1.6-1.6a2.8 2.8 0 0 1 4 4l-1.6 1.6M8.5 11.5l-1.6 1.6a2.8 2.8 0 0 1-4-4l1.6-1.6',
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false"><path d=${PATHS[name]} /></svg>`;
}
