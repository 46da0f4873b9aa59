"""What the tests of the console share: a browser, a site, and visitors that are signed in."""
import json
import urllib.parse

from tests.support.browser import WAIT_MS, BrowserCase
from tests.support.console_site import ROOT, RUN, Site

HEADER = {'X-Deltabucket-Console': '1'}


def address(*segments, **query):
    """The hash of a page."""
    path = '#/' + '/'.join(urllib.parse.quote(segment, safe='') for segment in segments)
    return path + ('?' + urllib.parse.urlencode(query) if query else '')


class ConsoleCase(BrowserCase):
    """One site and one browser for the class. Nobody is signed in when a test begins."""

    @classmethod
    def make_site(cls):
        return Site()

    @classmethod
    def setUpClass(cls):
        cls.site = cls.make_site()
        cls.site.__enter__()
        cls.addClassCleanup(cls.site.__exit__)
        cls.daemon = cls.site.daemon
        cls.origin = cls.site.origin
        super().setUpClass()

    def enter(self, key=ROOT, page=None):
        """Signs the visitor of the page in, without the form."""
        page = page or self.page
        reply = page.context.request.post(self.origin + '/-/sessions', headers={**HEADER, 'Content-Type': 'application/json'},
                                          data=json.dumps(dict(zip(('key_id', 'secret'), key))))
        self.assertEqual(reply.status, 201, reply.text())
        page.context.add_init_script("if (location.pathname.startsWith('/console/')) localStorage.setItem('deltabucket-signed-in', 'yes')")

    def open(self, where='#/', page=None):
        """Opens a page of the console and waits until its head and what it loads are there."""
        page = page or self.page
        page.goto('about:blank')  # a change of the hash alone would load nothing
        page.goto(f'{self.origin}/console/{where}')
        page.locator('h1').wait_for()
        self.settle(page)

    def go(self, where, page=None):
        """The same for a page of the console that is in sight: only the hash changes, which is faster."""
        page = page or self.page
        page.evaluate('hash => { location.hash = hash }', where)
        page.evaluate('() => new Promise(end => setTimeout(end))')
        page.locator('h1').wait_for()
        self.settle(page)

    def settle(self, page=None):
        self.count((page or self.page).locator('.wait'), 0)

    def says(self, text, page=None):
        """Waits until the page has this text."""
        (page or self.page).get_by_text(text).filter(visible=True).first.wait_for(timeout=WAIT_MS)

    def count(self, locator, number):
        """Waits until so many are there."""
        from playwright.sync_api import expect
        expect(locator).to_have_count(number, timeout=WAIT_MS)

    def button(self, name, exact=True):
        return self.page.get_by_role('button', name=name, exact=exact)

    def dialog(self):
        return self.page.get_by_role('dialog')

    def toast(self, text):
        self.page.locator('.toast', has_text=text).first.wait_for()

    def gone(self, locator):
        locator.wait_for(state='detached')

    def ask(self, method, target, **options):
        return self.daemon.request(method, target, **options)


__all__ = ['HEADER', 'ROOT', 'RUN', 'ConsoleCase', 'Site', 'address']
