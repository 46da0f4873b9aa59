"""libdeltabucket.so: settings, objects, failures, threads and cancelling, against a real server."""
import ctypes
import os
import socket
import threading
import time
import unittest

from tests.support import library
from tests.support.checkpoints import expand_small
from tests.support.daemon import Daemon, ROOT_TOKEN, free_port

MIB = 1024 * 1024


class Objects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = library.Library()
        cls.daemon = Daemon()
        cls.daemon.start()
        # the library keeps the hashes of files where the command line does
        os.environ.update(HOME=cls.daemon.scratch, XDG_CACHE_HOME=os.path.join(cls.daemon.scratch, 'cache'))
        with library.of_daemon(cls.library, cls.daemon) as client:
            client.call('make_bucket', 'things')

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def setUp(self):
        self.client = library.of_daemon(self.library, self.daemon)
        self.client.__enter__()
        self.addCleanup(self.client.__exit__)

    def path(self, name):
        return os.path.join(self.daemon.scratch, name)

    def refused(self, kind, *arguments, client=None, **more):
        with self.assertRaises(library.Failed) as caught:
            (client or self.client).call(*arguments, **more)
        self.assertEqual(caught.exception.kind, kind, caught.exception.text)
        return caught.exception

    def assert_logged(self, request_id):
        self.assertNotEqual(request_id, '')
        self.daemon.await_log(f' {request_id} request ')

    def test_files_come_back_as_they_were(self):
        for size in (0, 10, 100_000, 3 * MIB + 17):  # in one request, and by chunks
            content = os.urandom(size)
            with open(self.path('from'), 'wb') as file:
                file.write(content)
            self.client.call('put_file', 'things', f'files/{size}', self.path('from'))
            self.client.call('get_file', 'things', f'files/{size}', self.path('to'))
            with open(self.path('to'), 'rb') as file:
                self.assertEqual(file.read(), content, size)
            ((key, told, modified_ms, etag),) = self.client.found('head', 'things', f'files/{size}')
            self.assertEqual((key, told), (f'files/{size}', size))
            self.assertLess(abs(modified_ms / 1000 - time.time()), 3600)
            self.assertRegex(etag, '^[0-9a-f-]{10,}$')

    def test_bytes_come_back_in_ranges(self):
        content = os.urandom(300_000)
        self.client.call('put', 'things', 'bytes', content, len(content))
        for start, size in ((0, 300_000), (0, 10), (1, 299_999), (299_990, 100), (300_000, 5), (10**15, 5), (7, 0)):
            self.assertEqual(self.client.get('things', 'bytes', start, size), (content[start:start + size], 300_000))
        self.client.call('put', 'things', 'bytes', b'', 0)
        self.assertEqual(self.client.get('things', 'bytes', 0, 10), (b'', 0))

    def test_listings_group_at_the_delimiter_and_end_early(self):
        keys = ['list/a', 'list/b/c', 'list/b/d', 'list/ü x', 'list/z--1', 'list/z--2']
        for key in keys:
            self.client.call('put', 'things', key, key, len(key.encode()))
        found = self.client.found('list', 'things', 'list/', None)
        self.assertEqual([key for key, *_ in found], sorted(keys, key=str.encode))
        self.assertEqual({size for key, size, *_ in found if key == 'list/ü x'}, {9})
        self.assertTrue(all(modified_ms > 10**12 and etag for _, _, modified_ms, etag in found), found)
        folders = self.client.found('list', 'things', 'list/', '/')
        self.assertEqual([entry for entry in folders if entry[0].endswith('/')], [('list/b/', 0, 0, '')])
        self.assertEqual([key for key, *_ in folders], ['list/a', 'list/b/', 'list/z--1', 'list/z--2', 'list/ü x'])
        self.assertEqual([key for key, *_ in self.client.found('list', 'things', 'list/z', '--')], ['list/z--'])
        self.assertEqual(len(self.client.found('list', 'things', 'list/', '', most=2)), 2)
        self.assertEqual(self.client.found('list', 'things', 'nothing/', ''), [])

    def test_a_listing_has_more_than_one_page(self):
        os.mkdir(self.path('many'))
        for number in range(1003):
            with open(self.path(f'many/{number:04}'), 'wb'):
                pass
        self.daemon.client('sync', self.path('many'), 'things/many')
        self.assertEqual([key for key, *_ in self.client.found('list', 'things', 'many/', None)],
                         [f'many/{number:04}' for number in range(1003)])

    def sync(self, **settings):
        """What a sync counts, but for the traffic, and what it tells."""
        told = []
        settings = library.SyncSettings(told=library.TOLD(lambda owner, what, name, size: told.append((what.decode(), name.decode(), size))), **settings)
        out = library.Synced()
        try:
            self.client.call('sync', ctypes.byref(settings), ctypes.byref(out))
        finally:
            self.counts = tuple(getattr(out, name) for name, _ in library.Synced._fields_[1:] if name != 'traffic_bytes')
        return self.counts, sorted(told)

    def test_folders_are_synced(self):
        here, there = self.path('synced').encode(), self.path('synced-there').encode()
        os.makedirs(here + b'/sub')
        for name in (b'a', b'sub/b'):
            with open(os.path.join(here, name), 'wb') as file:
                file.write(name)
        up = {'bucket': b'things', 'prefix': b'synced', 'folder': here, 'direction': b'up'}
        down = dict(up, folder=there, direction=b'down')
        both = [('uploaded', 'a', 1), ('uploaded', 'sub/b', 5)]
        self.assertEqual(self.sync(**up, dry_run=1), ((2, 2, 6, 0, 0), both))
        self.assertEqual(self.client.found('list', 'things', 'synced/', None), [])
        self.assertEqual(self.sync(**up), ((2, 2, 6, 0, 0), both))
        self.assertEqual(self.sync(**up), ((2, 0, 0, 0, 0), []))
        os.remove(here + b'/a')
        self.assertEqual(self.sync(**down), ((2, 2, 6, 0, 0), [('downloaded', 'a', 1), ('downloaded', 'sub/b', 5)]))
        self.assertEqual(self.sync(**up, deletes=1), ((1, 0, 0, 1, 0), [('removed', 'a', 1)]))
        self.assertEqual(self.sync(**down, deletes=1), ((1, 0, 0, 1, 0), [('removed', 'a', 1)]))
        with open(there + b'/sub/b', 'rb') as file:
            self.assertEqual(file.read(), b'sub/b')
        self.assertFalse(os.path.exists(there + b'/a'))

    def test_syncs_that_are_refused(self):
        folder = self.path('unsynced').encode()
        os.makedirs(folder)
        whole = {'bucket': b'things', 'folder': folder, 'direction': b'up'}
        for kind, wrong in (('invalid', {'bucket': None}), ('invalid', {'folder': None}), ('invalid', {'folder': b''}),
                            ('invalid', {'direction': None}), ('invalid', {'direction': b'left'}),
                            ('key_too_long', {'prefix': b'p' * 1025}), ('no_bucket', {'bucket': b'nosuch'}),
                            ('not_found', {'folder': b'/no/such/folder'}), ('not_found', {'deletes': 1})):
            self.client.call('put', 'things', 'kept', b'x', 1)
            with self.assertRaises(library.Failed, msg=wrong) as caught:
                self.sync(**{**whole, **wrong})
            self.assertEqual(caught.exception.kind, kind, caught.exception.text)
            self.assertEqual(self.counts, (0, 0, 0, 0, 0))
        self.refused('invalid', 'sync', None, None)
        settings = library.SyncSettings(**whole)
        settings.size = 0
        self.refused('invalid', 'sync', ctypes.byref(settings), None)
        self.client.call('head', 'things', 'kept', library.FOUND(lambda *_: 0), None)

    def test_removals_that_are_refused_are_counted(self):
        """Keys of a run that are the server's own stay, all others go."""
        (checkpoint,) = expand_small(self.daemon.scratch, 0)
        self.daemon.client('publish', '--run', 'views/policy', '--create-bucket', checkpoint)
        self.daemon.client('runs', 'settings', 'views/policy', 'view_trl=true')
        self.daemon.await_views('views')
        keys = [key for key, *_ in self.client.found('list', 'views', '', None)]
        own = [key for key in keys if key.startswith('policy/anchors/')]
        self.assertTrue(own, keys)
        os.makedirs(self.path('views'))
        with open(self.path('views/new'), 'wb') as file:
            file.write(b'new')
        told = []
        settings = library.SyncSettings(bucket=b'views', folder=self.path('views').encode(), direction=b'up', deletes=1, told=library.TOLD(
            lambda owner, what, name, size: told.append((what, name.decode()))))
        out = library.Synced()
        self.refused('denied', 'sync', ctypes.byref(settings), ctypes.byref(out))
        self.assertEqual((out.files, out.moved, out.removed, out.refused), (1, 1, len(keys) - len(own), len(own)))
        self.assertEqual([name for what, name in told if what == b'refused'], own)

    def test_what_is_removed_is_gone(self):
        self.client.call('put', 'things', 'gone', b'x', 1)
        self.client.call('remove', 'things', 'gone')
        self.client.call('remove', 'things', 'gone')
        self.refused('no_key', 'head', 'things', 'gone', library.FOUND(lambda *_: 0), None)
        self.refused('no_key', 'get_file', 'things', 'gone', self.path('gone'))
        self.assertFalse(os.path.exists(self.path('gone')))

    def test_failures_name_their_kind(self):
        self.refused('bucket_owned', 'make_bucket', 'things')
        self.refused('no_bucket', 'put', 'nosuch', 'key', b'x', 1)
        with open(self.path('large'), 'wb') as file:
            file.write(os.urandom(MIB))
        self.refused('no_bucket', 'put_file', 'nosuch', 'key', self.path('large'))
        self.refused('no_bucket', 'get_file', 'nosuch', 'key', self.path('to'))
        failure = self.refused('not_found', 'put_file', 'things', 'key', self.path('no such file'))
        self.assertEqual(failure.os_errno, 2)
        self.refused('not_found', 'get_file', 'things', 'key', self.path('no/such/folder'))
        self.refused('invalid', 'put_file', 'things', 'key', self.daemon.scratch)
        self.refused('key_too_long', 'put', 'things', 'k' * 1025, b'x', 1)
        for arguments in (('', 'key'), ('things', ''), (None, 'key'), ('things', None)):
            self.refused('invalid', 'remove', *arguments)
        self.refused('invalid', 'put', 'things', 'key', None, 5)
        self.refused('invalid', 'ask', 'v1/runs', library.ANSWER(lambda *_: 0), None)

    def test_the_server_answers_questions(self):
        self.assertIn(b'"runs"', self.client.ask('/v1/runs/things'))
        self.refused('no_run', 'ask', '/v1/runs/things/nosuch', library.ANSWER(lambda *_: 0), None)

    def test_a_refusal_has_the_id_that_the_log_has(self):
        with library.of_daemon(self.library, self.daemon, token='wrong-token-0123456789abcdef0123456789') as client:
            for call in (('put', 'things', 'key', b'x', 1), ('head', 'things', 'key', library.FOUND(lambda *_: 0), None)):
                failure = self.refused('unknown_key_id' if call[0] == 'put' else 'denied', *call, client=client)
                self.assert_logged(failure.request_id)
        self.assert_logged(self.refused('no_key', 'get_file', 'things', 'nosuch', self.path('to')).request_id)
        self.assertEqual(self.refused('invalid', 'remove', '', 'key').request_id, '')

    def test_a_server_that_is_not_trusted_or_not_there(self):
        with library.Client(self.library, endpoint=self.daemon.endpoint, token=ROOT_TOKEN, retries=-1) as client:
            self.refused('untrusted', 'remove', 'things', 'key', client=client)
        with library.Client(self.library, endpoint=f'http://127.0.0.1:{free_port()}', retries=-1) as client:
            failure = self.refused('upstream', 'remove', 'things', 'key', client=client)
            self.assertEqual(failure.request_id, '')

    def test_settings_that_are_wrong_make_no_client(self):
        for kind, settings in (('not_found', {'endpoint': 'https://127.0.0.1', 'ca': '/no/such/file'}),
                               ('invalid', {'endpoint': '127.0.0.1:9000'}), ('invalid', {'endpoint': 'https://'}),
                               ('invalid', {'endpoint': 'https://host', 'token': 'with a blank'}),
                               ('invalid', {'profile': 'nosuch'})):
            with self.assertRaises(library.Failed, msg=settings) as caught, library.Client(self.library, **settings):
                pass
            self.assertEqual(caught.exception.kind, kind, caught.exception.text)

    def test_longer_structs_of_later_versions(self):
        class Longer(ctypes.Structure):
            _fields_ = library.ClientSettings._fields_ + [('later', ctypes.c_uint64)]
        shorter = library.ClientSettings(endpoint=b'http://127.0.0.1:1')
        shorter.size = library.ClientSettings.token.offset
        shorter.token = b'not a token that is read'
        for settings in (shorter, Longer(size=ctypes.sizeof(Longer), endpoint=b'http://127.0.0.1:1')):
            self.library.names.deltabucket_client_free(self.library.made('client_new', ctypes.byref(settings)))
        for kind, settings in (('unsupported', Longer(size=ctypes.sizeof(Longer), endpoint=b'http://127.0.0.1:1', later=1)),
                               ('invalid', Longer(endpoint=b'http://127.0.0.1:1'))):
            with self.assertRaises(library.Failed) as caught:
                self.library.made('client_new', ctypes.byref(settings))
            self.assertEqual(caught.exception.kind, kind)

    def test_threads_share_a_client_and_a_watch(self):
        content = [os.urandom(2 * MIB) for _ in range(4)]
        watch, failures = self.library.watch(), []

        def work(number):
            try:
                path = self.path(f'thread-{number}')
                with open(path, 'wb') as file:
                    file.write(content[number])
                for turn in range(3):
                    self.client.call('put_file', 'things', f'threads/{number}', path, watch=watch)
                    os.unlink(path)
                    self.client.call('get_file', 'things', f'threads/{number}', path, watch=watch)
                    with open(path, 'rb') as file:
                        self.assertEqual(file.read(), content[number])
            except Exception as failure:
                failures.append(failure)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.library.names.deltabucket_watch_free(watch)
        self.assertEqual(failures, [])

    def test_a_connection_serves_one_call_after_the_other(self):
        targets = []

        def serve():
            with server:  # no call waits for a server that has failed
                for calls in (3, 1):  # the fourth call finds the connection closed, and opens one
                    connection, _ = server.accept()
                    with connection:
                        for _ in range(calls):
                            targets.append(connection.recv(10_000).split(b' ')[1])
                            connection.sendall(b'HTTP/1.1 204 No Content\r\n\r\n')
        server = socket.create_server(('127.0.0.1', 0))
        with library.Client(self.library, endpoint=f'http://127.0.0.1:{server.getsockname()[1]}', retries=-1) as client:
            thread = threading.Thread(target=serve)
            thread.start()
            for number in range(4):
                client.call('remove', 'things', f'{number}')
            thread.join()
        self.assertEqual(targets, [b'/things/0', b'/things/1', b'/things/2', b'/things/3'])

    def test_progress_and_notes_are_told(self):
        told = []
        settings = library.WatchSettings(progress=library.PROGRESS(lambda owner, what, done, total: told.append((what, done, total))))
        watch = self.library.watch(settings)
        with open(self.path('watched'), 'wb') as file:
            file.write(os.urandom(96 * MIB))
        self.client.call('put_file', 'things', 'watched', self.path('watched'), watch=watch)
        self.library.names.deltabucket_watch_free(watch)
        self.assertTrue(told)
        for what, done, total in told:
            self.assertIn(what, (b'hashing', b'uploading'))
            self.assertEqual(total, 96 * MIB)
            self.assertLessEqual(done, total)

    def test_a_cancelled_watch_ends_calls_that_wait_and_all_later_ones(self):
        with socket.create_server(('127.0.0.1', 0)) as deaf, \
                library.Client(self.library, endpoint=f'http://127.0.0.1:{deaf.getsockname()[1]}') as client:
            notes = []
            settings = library.WatchSettings(note=library.NOTE(lambda owner, sentence: notes.append(sentence)))
            watch = self.library.watch(settings)

            def cancel():
                accepted, _ = deaf.accept()  # so the call waits for the answer now
                accepted.recv(100)
                self.library.names.deltabucket_watch_cancel(watch)
                accepted.recv(1)  # until the other side gives up
                accepted.close()
            thread = threading.Thread(target=cancel)
            thread.start()
            failure = self.refused('busy', 'remove', 'things', 'key', client=client, watch=watch)
            thread.join()
            self.assertIn('cancelled', failure.text)
            self.refused('busy', 'remove', 'things', 'key', client=client, watch=watch)
            self.library.names.deltabucket_watch_free(watch)
            self.assertEqual(notes, [])

    def test_a_server_that_is_slow_is_told(self):
        self.tells_of_silence('warn')

    def test_a_caller_without_warnings_gets_them_as_notes(self):
        self.tells_of_silence('note')

    def tells_of_silence(self, member):
        with socket.create_server(('127.0.0.1', 0)) as deaf, \
                library.Client(self.library, endpoint=f'http://127.0.0.1:{deaf.getsockname()[1]}') as client:
            def tell(owner, sentence):
                notes.append(sentence)
                self.library.names.deltabucket_watch_cancel(watch)  # also from within a callback
            notes = []
            settings = library.WatchSettings(**{member: library.NOTE(tell)})
            watch = self.library.watch(settings)
            self.refused('busy', 'remove', 'things', 'key', client=client, watch=watch)
            self.library.names.deltabucket_watch_free(watch)
            self.assertEqual(len(notes), 1)
            self.assertIn(b'has not answered', notes[0])
