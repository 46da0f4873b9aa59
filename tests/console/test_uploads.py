"""Uploads from the browser: in parts, over connections that break, paused, and after a reload; what ends is the file, byte for byte."""
import hashlib
import os
import re
import tempfile

from tests.support.clients import content
from tests.support.console import ConsoleCase, address
from tests.support.console_site import Site
from tests.support.relay import Relay

LARGE = 100_000_000
PART = 8 << 20
PARTS = -(-LARGE // PART)


class EmptySite(Site):
    def __enter__(self):
        self.daemon.start()
        return self


class Uploads(ConsoleCase):
    @classmethod
    def make_site(cls):
        return EmptySite(nearly_full=False)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.daemon.request('PUT', '/files')
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.large = cls.make('large.bin', content(LARGE))
        with open(cls.large, 'rb') as file:
            cls.digest = hashlib.sha256(file.read()).hexdigest()

    @classmethod
    def make(cls, name, data):
        path = os.path.join(cls.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as file:
            file.write(data)
        return path

    def setUp(self):
        super().setUp()
        self.enter()

    def choose(self, *paths):
        self.page.get_by_label('Files to upload').set_input_files(list(paths))

    def await_done(self, count=1):
        self.says(re.compile(f'^{count} uploads? done'))

    def expect_large(self, key):
        got = self.ask('GET', f'/files/{key}')
        self.assertEqual((got.status, hashlib.sha256(got.body).hexdigest()), (200, self.digest))

    def watch_parts(self):
        """The numbers of the parts that the page sends from now on."""
        numbers = []

        def note(request):
            found = re.search(r'[?&]partNumber=(\d+)', request.url)
            if found and request.method == 'PUT':
                numbers.append(int(found[1]))
        self.page.on('request', note)
        return numbers

    def test_small_files_and_an_empty_one(self):
        self.open(address('buckets', 'files', prefix='in/'))
        names = {'one.txt': b'one', 'empty': b'', 'with blank & ü.txt': b'x' * 70_000}
        self.choose(*[self.make(name, data) for name, data in names.items()])
        self.await_done(3)
        self.says('with blank & ü.txt')
        for name, data in names.items():
            got = self.ask('GET', '/files/in/' + name.replace(' ', '%20').replace('&', '%26').replace('ü', '%C3%BC'))
            self.assertEqual((got.status, got.body), (200, data), name)
        self.shown('uploads-done')

    def test_a_folder(self):
        for name in ('a/one.bin', 'a/b/two.bin'):
            self.make('tree/' + name, name.encode())
        self.open(address('buckets', 'files', prefix='folders/'))
        self.page.get_by_label('Folder to upload').set_input_files(os.path.join(self.folder, 'tree'))
        self.await_done(2)
        for name in ('a/one.bin', 'a/b/two.bin'):
            self.assertEqual(self.ask('GET', f'/files/folders/tree/{name}').body, name.encode())

    def test_dropped_files(self):
        self.open(address('buckets', 'files', prefix='dropped/'))
        transfer = self.page.evaluate_handle('''() => {
            const transfer = new DataTransfer()
            for (const name of ['x.txt', 'y.txt']) transfer.items.add(new File([name], name, {type: 'text/plain'}))
            return transfer
        }''')
        for event in ('dragenter', 'dragover'):
            self.page.dispatch_event('.drop-zone', event, {'dataTransfer': transfer})
        self.says('Drop to upload to files/dropped/')
        self.page.dispatch_event('.drop-zone', 'drop', {'dataTransfer': transfer})
        self.await_done(2)
        got = self.ask('GET', '/files/dropped/x.txt')
        self.assertEqual((got.body, got.headers['Content-Type']), (b'x.txt', 'text/plain'))

    def test_cut_connections_delay_an_upload_and_change_nothing(self):
        self.allow(r'net::ERR_')
        with Relay(self.daemon.port, cut_at=(20_000_000, 45_000_000, 70_000_000)) as relay:
            self.origin = f'https://127.0.0.1:{relay.port}'
            self.hosts.add(f'127.0.0.1:{relay.port}')
            self.open(address('buckets', 'files'))
            sent = self.watch_parts()
            self.choose(self.large)
            self.await_done()
            self.context.close()
            self.assertEqual(relay.cuts, [])
            # three parts are under way at most when a connection breaks
            self.assertLess(relay.up, LARGE + 3 * 3 * PART + 2_000_000)
        self.assertEqual(sorted(set(sent)), list(range(1, PARTS + 1)))
        self.expect_large('large.bin')

    def test_an_upload_that_a_reload_ended_goes_on_when_the_file_comes_again(self):
        self.open(address('buckets', 'files', prefix='again/'))
        before = self.watch_parts()
        self.pause_part_way()
        self.page.on('dialog', lambda dialog: None)
        stored = self.stored_parts('again/large.bin')
        self.assertGreater(len(stored), 0)
        self.page.reload()
        self.settle()
        after = self.watch_parts()
        del after[:]
        self.choose(self.large)
        self.await_done()
        self.assertEqual(set(after) & set(stored), set())
        self.assertEqual(set(after) | set(stored), set(range(1, PARTS + 1)))
        self.assertTrue(set(stored) <= set(before))
        self.expect_large('again/large.bin')
        self.assertEqual(self.ask('GET', '/files?uploads').body.count(b'<Upload>'), 0)

    def test_pause_and_resume(self):
        self.open(address('buckets', 'files', prefix='paused/'))
        self.pause_part_way()
        self.says('paused')
        self.shown('uploads-paused')
        self.button('Resume paused/large.bin').click()
        self.await_done()
        self.expect_large('paused/large.bin')

    def test_another_file_of_the_same_name_takes_nothing_of_an_open_upload(self):
        self.open(address('buckets', 'files', prefix='other/'))
        self.pause_part_way()
        self.page.reload()
        self.settle()
        other = self.make('other/large.bin', content(LARGE, seed=7))
        self.choose(other)
        self.await_done()
        got = self.ask('GET', '/files/other/large.bin').body
        with open(other, 'rb') as file:
            self.assertEqual(hashlib.sha256(got).hexdigest(), hashlib.sha256(file.read()).hexdigest())

    def test_a_cancelled_upload_leaves_nothing(self):
        self.open(address('buckets', 'files', prefix='cancelled/'))
        self.pause_part_way()
        self.button('Cancel cancelled/large.bin').click()
        self.gone(self.page.locator('.uploads'))
        self.page.wait_for_load_state('networkidle')
        self.assertNotIn(b'cancelled/', self.ask('GET', '/files?uploads').body)
        self.assertEqual(self.ask('GET', '/files/cancelled/large.bin').status, 404)

    def pause_part_way(self):
        """Begins the upload of the large file, and pauses it when some of its parts are stored."""
        prefix = self.page.url.split('prefix=')[1].replace('%2F', '/')
        # Parts go at the pace of a slow network until there is something to pause.
        held = []

        def hold(route):
            if re.search(r'partNumber=([4-9]|\d\d)&?', route.request.url):
                held.append(route)
            else:
                route.continue_()
        self.page.route(re.compile(r'partNumber='), hold)
        self.choose(self.large)
        while len(self.stored_parts(f'{prefix}large.bin')) < 3:
            self.page.wait_for_timeout(50)
        self.button(f'Pause {prefix}large.bin').click()
        self.button(f'Resume {prefix}large.bin').wait_for()
        for route in held:
            route.abort()
        self.page.unroute_all()

    def stored_parts(self, key):
        upload = re.search(rb'<Key>%s</Key><UploadId>(\w+)<' % key.encode(), self.ask('GET', '/files?uploads').body)
        if not upload:
            return []
        return [int(number) for number in re.findall(rb'<PartNumber>(\d+)<', self.ask('GET', f'/files/{key}?uploadId={upload[1].decode()}').body)]


class FullDisk(ConsoleCase):
    def test_an_upload_that_has_no_room_says_so(self):
        self.allow('status of 507')
        self.enter()
        self.open(address('buckets', 'files'))
        with tempfile.NamedTemporaryFile(suffix='.bin') as file:
            file.write(content(LARGE, seed=3))
            file.flush()
            self.page.get_by_label('Files to upload').set_input_files(file.name)
            self.says('disk is full')
            self.button(f'Cancel {os.path.basename(file.name)}').click()
            self.gone(self.page.locator('.uploads'))
