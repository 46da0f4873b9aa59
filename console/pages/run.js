import { html } from '../vendor/htm-preact.js';
import { Head } from '../components/page.js';
export default function Page({ route }) { return html`<${Head} title=${route.path.slice(1, 3).join('/')} />`; }
