"""A Chromium that tests drive with Playwright, and what fails a test whatever it looks at: a message of level error in the console, an exception
that nothing caught, a breach of the Content-Security-Policy, a dialog of a script, and a request to another host.

setup/clients installs Playwright and axe-core; Chromium is Debian's.
"""
import json
import os
import re
import shutil
import sys
import unittest
import urllib.parse

from tests.support.clients import NODE_MODULES, importable, read

AXE = os.path.join(NODE_MODULES, 'axe-core', 'axe.min.js')
SCREENSHOTS = os.environ.get('DELTABUCKET_SCREENSHOTS')  # a folder: then shown() leaves pictures there
DESK, PHONE = {'width': 1280, 'height': 800}, {'width': 390, 'height': 844}
WAIT_MS = 30_000  # only ends what hangs
# Says a breach where everything else is said. Scripts of Playwright are not subject to a page's policy.
WATCH = '''addEventListener('securitypolicyviolation',
    event => console.error('policy: ' + event.effectiveDirective + ' refused ' + event.blockedURI))'''
# Rules that are about whole sites or about taste stay out: what is left is WCAG 2.2 A and AA, and axe's best practices.
AXE_RUN = '''async () => {
    const found = await axe.run(document, {resultTypes: ['violations']})
    return found.violations.map(one => ({rule: one.id, help: one.help,
        nodes: one.nodes.slice(0, 5).map(node => node.html.slice(0, 200) + ' ' + node.failureSummary)}))
}'''


class Browser:
    """One process of Chromium. Contexts of it know nothing of one another."""

    def __init__(self):
        if not importable('playwright', environment='browser'):
            raise RuntimeError('Playwright is missing: setup/clients --only browser installs it')
        from playwright.sync_api import sync_playwright
        program = shutil.which('chromium')
        if not program:
            raise RuntimeError('chromium is missing: setup/install test installs it')
        self.playwright = sync_playwright().start()
        # The sandbox cannot be made by root; /dev/shm is small in containers.
        arguments = ['--disable-dev-shm-usage'] + (['--no-sandbox'] if os.geteuid() == 0 else [])
        self.chromium = self.playwright.chromium.launch(executable_path=program, args=[*arguments, '--ignore-certificate-errors'])

    def close(self):
        self.chromium.close()
        self.playwright.stop()


class BrowserCase(unittest.TestCase):
    """One browser for the class, a context for each test. `origin` is the only place that pages may ask."""
    origin = None
    viewport = DESK

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.faults, self.allowed, self.hosts = [], [], {urllib.parse.urlsplit(self.origin).netloc}
        self.context = self.new_context()
        self.page = self.context.new_page()
        self.addCleanup(self.judge)

    def judge(self):
        result = self._outcome.result
        if any(test is self for test, _ in result.failures + result.errors):
            print(f'{self.id()} ended at {self.page.url}, which says:\n{self.page.inner_text("body")[:3000]}', file=sys.stderr)
        if self.faults:
            raise AssertionError('the browser says:\n' + '\n'.join(self.faults[:20]))

    def allow(self, pattern):
        """A message of the console that this test is about: a request that the server is to refuse, say."""
        self.allowed.append(re.compile(pattern))

    def new_context(self, **options):
        """Another visitor, watched too. The server's certificate is that of a CA that Chromium does not know."""
        context = self.browser.chromium.new_context(ignore_https_errors=True, viewport=self.viewport, **options)
        self.addCleanup(context.close)
        context.set_default_timeout(WAIT_MS)
        context.add_init_script(WATCH)
        context.on('console', self.take_message)
        context.on('weberror', lambda error: self.fault(f'exception: {error.error}'))
        context.on('request', self.take_request)
        context.on('page', lambda page: page.on('dialog', self.take_dialog))
        return context

    def fault(self, text):
        if not any(pattern.search(text) for pattern in self.allowed):
            self.faults.append(text)

    def take_message(self, message):
        if message.type == 'error':
            self.fault(f'console: {message.text} ({message.location.get("url", "")})')

    def take_request(self, request):
        address = urllib.parse.urlsplit(request.url)
        if address.scheme in ('http', 'https', 'ws', 'wss') and address.netloc not in self.hosts:
            self.fault(f'a request to another host: {request.method} {request.url}')

    def take_dialog(self, dialog):
        self.fault(f'dialog: {dialog.message}')
        dialog.dismiss()

    def axe(self, page=None):
        """Fails on any violation that axe-core finds in the page as it stands."""
        page = page or self.page
        if not page.evaluate('() => "axe" in window'):
            page.evaluate(read(AXE).decode())
        found = page.evaluate(AXE_RUN)
        self.assertEqual(found, [], f'{page.url}: {json.dumps(found, indent=1)}')

    def shown(self, name, page=None):
        """Judges the page by axe in light and dark and at a phone's width, where nothing may need sideways scrolling; leaves pictures if asked."""
        page = page or self.page
        for width, scheme in (('desk', 'light'), ('desk', 'dark'), ('phone', 'light')):
            page.set_viewport_size(PHONE if width == 'phone' else self.viewport)
            page.emulate_media(color_scheme=scheme, reduced_motion='reduce')
            with self.subTest(page=name, width=width, scheme=scheme):
                self.axe(page)
                wide = page.evaluate('document.documentElement.scrollWidth - innerWidth')
                self.assertLessEqual(wide, 0, 'the page is wider than the window')
            self.picture(f'{name}-{width}-{scheme}', page)
        page.set_viewport_size(self.viewport)
        page.emulate_media(color_scheme='light')

    def picture(self, name, page=None):
        if SCREENSHOTS:
            (page or self.page).screenshot(path=os.path.join(SCREENSHOTS, f'{name}.png'))
