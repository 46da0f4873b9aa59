"""What guards the other modules, tried on pages that are wrong: each fault that a page may have is found."""
import http.server
import threading

from tests.support.browser import BrowserCase

GOOD = b'<!doctype html><html lang="en"><title>Good</title><main><h1>Good</h1><p>Nothing is wrong here.</p></main></html>'
PAGES = {
    '/good': GOOD,
    '/message': GOOD + b'<script>console.error("wrong")</script>',
    '/exception': GOOD + b'<script>nothing.here()</script>',
    '/policy': GOOD + b'<img alt="" src="data:,x">',
    '/dialog': GOOD + b'<script>alert(1)</script>',
    '/host': GOOD + b'<script src="http://localhost:9/x.js"></script>',
    '/axe': GOOD.replace(b'</h1>', b'</h1><input type="text">'),
    '/faint': GOOD.replace(b'<p>', b'<style>@media (prefers-color-scheme: dark) { p { color: #eee } }</style><p>'),
    '/wide': GOOD.replace(b'<p>', b'<p style="width: 900px">'),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.send_header('Content-Security-Policy', "script-src 'unsafe-inline'; img-src 'none'")
        self.end_headers()
        self.wfile.write(PAGES.get(self.path, b''))

    def log_message(self, *_):
        pass


class Guard(BrowserCase):
    @classmethod
    def setUpClass(cls):
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        cls.addClassCleanup(thread.join)
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        cls.origin = f'http://127.0.0.1:{server.server_port}'
        super().setUpClass()

    def found(self, path):
        self.page.goto(self.origin + path)
        self.page.wait_for_load_state('networkidle')
        faults, self.faults = self.faults, []
        return '\n'.join(faults)

    def test_a_good_page_passes(self):
        self.assertEqual(self.found('/good'), '')
        self.shown('good')

    def test_what_a_page_does_wrong_is_found(self):
        for path, said in (('/message', 'console: wrong'), ('/exception', 'nothing is not defined'), ('/policy', 'policy: img-src'),
                           ('/dialog', 'dialog: 1'), ('/host', 'another host: GET http://localhost:9/')):
            with self.subTest(path):
                self.assertIn(said, self.found(path))

    def test_what_looks_wrong_is_found(self):
        self.assertEqual(self.found('/axe'), '')
        with self.assertRaisesRegex(AssertionError, '"rule": "label"'):
            self.axe()
        self.assertEqual(self.found('/faint'), '')
        self.axe()
        self.page.emulate_media(color_scheme='dark')
        with self.assertRaisesRegex(AssertionError, '"rule": "color-contrast"'):
            self.axe()
        self.page.goto(self.origin + '/wide')
        self.page.set_viewport_size({'width': 390, 'height': 844})
        self.assertGreater(self.page.evaluate('document.documentElement.scrollWidth - innerWidth'), 0)

    def test_a_context_of_another_visitor_is_watched_too(self):
        other = self.new_context().new_page()
        other.goto(self.origin + '/message')
        other.wait_for_load_state('networkidle')
        self.assertIn('console: wrong', '\n'.join(self.faults))
        self.faults.clear()
