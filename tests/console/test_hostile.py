"""What others chose, or built to do harm: names, metadata, headers of files, stored pages, foreign pages. Nothing happens but a sentence."""
import http.server
import json
import struct
import threading
import urllib.parse

from tests.support.console import HEADER, RUN, ConsoleCase, Site, address
from tests.support.console_site import HOSTILE, safetensors
from tests.support.s3 import Bucket

DEEP = b'{"a":' + b'[' * 200_000 + b']' * 200_000 + b'}'
TENSOR = {'dtype': 'F32', 'shape': [1], 'data_offsets': [0, 4]}
# What a file may claim, and a word of what is said of it.
HEADERS = {
    'longer than the file': (struct.pack('<Q', 1 << 62) + b'{}', 'longer than the file'),
    'the whole number': (struct.pack('<Q', 0xffffffffffffffff) + b'{}', 'longer than the file'),
    'empty': (struct.pack('<Q', 0) + b'{}', 'empty'),
    'not JSON': (struct.pack('<Q', 9) + b'<script/>', 'not JSON'),
    'not UTF-8': (struct.pack('<Q', 8) + b'{"\xff\xfe":1}', 'not JSON'),
    'a list': (struct.pack('<Q', 8) + b'[1,2,3 ]', 'not a JSON object'),
    'a number': (struct.pack('<Q', 8) + b'12345678', 'not a JSON object'),
    'deep': (struct.pack('<Q', len(DEEP)) + DEEP, 'nested deeper'),
    'short': (b'abc', 'too few'),
}
TENSORS = {
    'no dtype': ({'shape': [1], 'data_offsets': [0, 4]}, 'no dtype'),
    'a dtype of markup': ({**TENSOR, 'dtype': '<img src=x onerror=alert(9)>'}, 'no dtype'),
    'a shape of texts': ({**TENSOR, 'shape': ['<b>']}, 'not a list of sizes'),
    'a negative shape': ({**TENSOR, 'shape': [-1]}, 'not a list of sizes'),
    'a fraction': ({**TENSOR, 'shape': [1.5]}, 'not a list of sizes'),
    'a huge shape': ({**TENSOR, 'shape': [9007199254740991, 9007199254740991]}, 'another size'),
    'offsets beyond the end': ({**TENSOR, 'data_offsets': [0, 4_000_000_000]}, 'beyond the end'),
    'offsets turned around': ({**TENSOR, 'data_offsets': [4, 0]}, 'no place'),
    'a text': ('tensor', 'no description'),
    'null': (None, 'no description'),
}


def header_of(value):
    text = json.dumps(value).encode()
    return struct.pack('<Q', len(text)) + text + bytes(4)


class Names(ConsoleCase):
    @classmethod
    def make_site(cls):
        return Site(nearly_full=False, workers=3)

    def setUp(self):
        super().setUp()
        self.enter()

    def test_names_of_objects_are_text(self):
        self.open(address('buckets', 'files', prefix='hostile/'))
        self.says('<img src=x onerror=alert(1)>.txt')
        self.says('[U+202E]gpj.exe[U+202C]')
        self.says('a[U+0009]b[U+000D]c')
        self.count(self.page.locator('main img, main script, main iframe, main b'), 0)
        self.shown('hostile')
        self.page.get_by_label('Search this folder').fill('alert')
        self.says('hostile')
        self.page.get_by_label('Choose <img').check()
        self.button('Delete').click()
        self.dialog().get_by_text('<img src=x').wait_for()
        self.open(address('buckets', 'files', view='usage', prefix='hostile/'))
        self.says('<img src=x onerror=alert(1)>.txt')

    def test_each_hostile_object_opens(self):
        self.open('#/buckets/files')
        for name in HOSTILE:
            if name == '..':
                continue
            with self.subTest(name):
                self.go(address('buckets', 'files', object=f'hostile/{name}'))
                self.page.locator('h1', has_text=name.split('/')[-1].replace('\u202e', '[U+202E]').replace('\u202c', '[U+202C]').replace('\t', '[U+0009]').replace('\r', '[U+000D]') or name).wait_for()
                self.says('text/plain')
                self.page.get_by_role('button', name='Download').wait_for()
        self.open(address('buckets', 'files', object='hostile/..'))
        self.says('A browser cannot ask for a key with a segment')

    def test_a_key_of_dots_is_deleted_and_nothing_else(self):
        self.open(address('buckets', 'files', prefix='hostile/'))
        self.page.get_by_label('Choose ..', exact=True).check()
        self.button('Delete').click()
        self.dialog().get_by_role('button', name='Delete 1 object').click()
        self.toast('1 object deleted.')
        listed = self.ask('GET', '/files?list-type=2').body
        self.assertNotIn(b'hostile/..', listed)
        self.assertIn(b'notes.txt', listed)

    def test_metadata_tags_and_types_are_text(self):
        bucket = Bucket(self.daemon, 'meta')
        bucket.put('k', b'x', Content_Type='text/html"><script>alert(10)</script>', x_amz_meta_a='<img src=x onerror=alert(11)>', Cache_Control='<b>x</b>')
        bucket.close()
        self.open(address('buckets', 'meta', object='k'))
        self.says('<img src=x onerror=alert(11)>')
        self.says('<b>x</b>')
        self.count(self.page.locator('main img, main script, main b'), 0)

    def test_addresses_of_the_console_are_text(self):
        self.allow('status of 40[0-9]')
        for where in ('#/buckets/%3Cimg%20src=x%20onerror=alert(12)%3E', '#/%3Cscript%3Ealert(13)%3C/script%3E', '#/runs/javascript:alert(14)/x',
                      '#/buckets/files?prefix=%3Cimg%20src=x%20onerror=alert(15)%3E/', '#/keys?view=%3Cb%3E', '#/buckets/%E0%A4%A', '#/buckets/__proto__', '#/runs/models/constructor'):
            self.page.goto('about:blank')
            self.page.goto(f'{self.origin}/console/{where}')
            self.page.locator('main').wait_for()
            self.settle()
            self.count(self.page.locator('main img, main script, main b'), 0)

    def test_names_of_keys_workers_and_labels_are_text(self):
        self.daemon.add_key('--name', '<img src=x onerror=alert(16)>')
        self.ask('PUT', f'/v1/runs/{RUN}/replicas/evil', body=json.dumps({'state': 'error', 'step': 2, 'host': '<b>host</b>', 'error': '<img src=x onerror=alert(17)>\u202e'}))
        self.open('#/keys')
        self.says('<img src=x onerror=alert(16)>')
        self.open(address('runs', *RUN.split('/'), 'workers'))
        self.says('<img src=x onerror=alert(17)>')
        self.open('#/keys?view=audit')
        self.count(self.page.locator('main img, main script, main b'), 0)

    def test_headers_of_safetensors_files(self):
        bucket = Bucket(self.daemon, 'headers')
        cases = {**HEADERS, **{name: (header_of({'t': tensor}), said) for name, (tensor, said) in TENSORS.items()},
                 'metadata that is a list': (header_of({'__metadata__': [1], 't': TENSOR}), 'metadata')}
        for number, (data, _) in enumerate(cases.values()):
            bucket.put(f'{number}.safetensors', data)
        bucket.close()
        self.open('#/buckets/headers')
        for number, (name, (_, said)) in enumerate(cases.items()):
            with self.subTest(name):
                self.go(address('buckets', 'headers', object=f'{number}.safetensors'))
                self.page.locator('main .notice', has_text=said).wait_for()
                self.count(self.page.locator('main img, main script, main b'), 0)

    def test_names_in_a_header_are_names(self):
        tensors = {name: ('F32', [1], bytes(4)) for name in ('__proto__', 'constructor', 'toString', '<img src=x onerror=alert(18)>')}
        self.ask('PUT', '/files/names.safetensors', body=safetensors(tensors))
        self.open(address('buckets', 'files', object='names.safetensors'))
        for name in tensors:
            self.says(name)
        self.says('4 tensors')
        self.assertEqual(self.page.evaluate('[{}.dtype, {}.shape, Object.keys(Object.prototype).length]'), [None, None, 0])

    def test_a_stored_page_is_not_a_part_of_the_console(self):
        """It is opened in the same origin, with the session's cookie in the browser."""
        reply = self.context.request.post(self.origin + '/-/signed-urls', headers={**HEADER, 'Content-Type': 'application/json'},
                                          data=json.dumps({'expires_s': 900, 'requests': [{'method': 'GET', 'bucket': 'files', 'key': 'page.html'}]}))
        self.allow('Blocked script execution')
        asked = []
        self.page.on('request', lambda request: asked.append(request.url))
        self.page.goto(reply.json()['urls'][0])
        self.page.wait_for_load_state('networkidle')
        self.assertEqual([url for url in asked if '/-/' in url], [])
        self.assertEqual(self.page.evaluate('self.origin'), 'null')

    def test_a_stored_script_is_no_script_of_the_console(self):
        self.ask('PUT', '/files/x.js', body=b'alert(19)', headers={'Content-Type': 'text/javascript'})
        self.ask('PUT', '/files?acl', headers={'x-amz-acl': 'public-read'})
        self.addCleanup(self.ask, 'PUT', '/files?acl', headers={'x-amz-acl': 'private'})
        self.allow('Content Security Policy|policy: script-src')
        self.open()
        for url in ('/files/x.js', '/console/../files/x.js', 'data:text/javascript,alert(20)'):
            loaded = self.page.evaluate('''url => new Promise(end => {
                const script = document.createElement('script')
                script.onload = () => end('ran')
                script.onerror = () => end('refused')
                script.src = url
                document.body.append(script)
            })''', url)
            self.assertEqual(loaded, 'refused', url)


class ForeignHandler(http.server.BaseHTTPRequestHandler):
    """A page of another origin. (Another port is another origin, and the same site: SameSite alone would not keep the cookie back.)"""

    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        self.wfile.write(b'<!doctype html><title>Foreign</title><p>foreign</p>')

    def log_message(self, *_):
        pass


class Foreign(ConsoleCase):
    @classmethod
    def make_site(cls):
        return Site(nearly_full=False, workers=3)

    def setUp(self):
        super().setUp()
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), ForeignHandler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for end in (thread.join, server.server_close, server.shutdown):
            self.addCleanup(end)
        self.foreign = f'http://127.0.0.1:{server.server_port}'
        self.hosts.add(urllib.parse.urlsplit(self.foreign).netloc)
        self.enter()
        self.allow('.')  # a foreign page may say what it likes
        self.before = self.state()
        self.page.goto(self.foreign)

    def state(self):
        keys = [(key['key_id'], key['grants']) for key in self.ask('GET', '/-/keys').json()['keys']]
        return (keys, self.ask('GET', '/').body, self.ask('GET', f'/v1/runs/{RUN}').json()['settings'], len(self.ask('GET', '/-/sessions').json()['sessions']),
                self.ask('GET', '/files?list-type=2').body, self.ask('GET', f'/v1/runs/{RUN}/pins').body)

    def tearDown(self):
        self.assertEqual(self.state(), self.before)
        self.assertEqual(self.context.request.get(self.origin + '/-/session', headers=HEADER).status, 200)

    def test_forms(self):
        for target in ('/-/keys', '/-/gc', '/-/sessions', '/-/session-links', '/-/signed-urls', f'/v1/runs/{RUN}', '/files?delete', '/files'):
            for kind in ('text/plain', 'multipart/form-data'):
                self.page.goto(self.foreign)
                with self.page.expect_navigation():
                    self.page.evaluate('''([action, enctype]) => {
                        const form = document.createElement('form')
                        Object.assign(form, {action, method: 'POST', enctype})
                        const input = document.createElement('input')
                        Object.assign(input, {name: '{"name":"evil","ignore":"', value: '"}'})
                        form.append(input)
                        document.body.append(form)
                        form.submit()
                    }''', [self.origin + target, kind])
                self.assertNotIn('"secret"', self.page.inner_text('body'))

    def test_requests_with_credentials(self):
        for method, target in (('POST', '/-/keys'), ('DELETE', '/-/session'), ('GET', '/-/keys'), ('POST', '/-/signed-urls'), ('PUT', '/stolen'), ('GET', '/-/events?runs=1')):
            for headers in ({}, HEADER, {'Content-Type': 'text/plain'}):
                for mode in ('cors', 'no-cors'):
                    got = self.page.evaluate('''([url, options]) => fetch(url, options).then(reply => reply.text()).catch(() => '')''',
                                             [self.origin + target, {'method': method, 'headers': headers, 'mode': mode, 'credentials': 'include',
                                                                     **({'body': '{}'} if method in ('POST', 'PUT') else {})}])
                    self.assertEqual(got, '', (method, target, headers, mode))

    def test_frames_windows_and_scripts(self):
        for markup in (f'<iframe src="{self.origin}/console/"></iframe>', f'<object data="{self.origin}/console/"></object>', f'<img src="{self.origin}/-/keys">',
                       f'<script src="{self.origin}/console/app.js"></script>', f'<link rel=stylesheet href="{self.origin}/-/session">'):
            self.page.set_content(markup)
            self.page.wait_for_load_state('networkidle')
            for frame in self.page.frames[1:]:
                self.assertEqual(frame.locator('#app, .brand').count(), 0)
