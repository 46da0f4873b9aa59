"""`deltabucket put`, `get` and `sync` send and fetch only what the other side lacks."""
import contextlib
import hashlib
import http.server
import json
import os
import random
import re
import signal
import socket
import stat
import struct
import subprocess
import threading
import time
import unittest

from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon, bytes_alone

DENIED, NOT_FOUND, UNREACHABLE, MALFORMED = 4, 5, 3, 13
MB = 1000 * 1000
MIB = 1024 * 1024


def content(seed, size):
    return random.Random(seed).randbytes(size)


class Proxy:
    """Passes connections on to the server, and cuts all of them once so many bytes went up (or down)."""

    def __init__(self, port, cut_up=None, cut_down=None):
        self.target, self.left = port, {'up': cut_up, 'down': cut_down}
        self.cut = False
        self.sockets = []
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(('127.0.0.1', self.target))
            except OSError:
                return
            if self.cut:
                client.close()
                server.close()
                continue
            self.sockets += [client, server]
            threading.Thread(target=self.pump, args=(client, server, 'up'), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, 'down'), daemon=True).start()

    def pump(self, source, sink, way):
        try:
            while data := source.recv(65536):
                if self.left[way] is not None:
                    self.left[way] -= len(data)
                    if self.left[way] < 0:
                        self.cut = True
                        for each in self.sockets:
                            with contextlib.suppress(OSError):
                                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                                each.shutdown(socket.SHUT_RDWR)
                                each.close()
                        return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()
        for each in self.sockets:
            each.close()


class Meddler:
    """Passes requests on to the server, one by one; `meddle(method, target, status, body)` may change what comes back."""

    def __init__(self, daemon, meddle):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
                headers = {name: value for name, value in self.headers.items() if name.lower() not in ('authorization', 'content-length')}
                if 'Authorization' in self.headers:
                    headers['Authorization'] = self.headers['Authorization']
                reply = daemon.request(self.command, self.path, body or None, headers, token=None, timeout=120)
                status, answer = meddle(self.command, self.path, reply.status, reply.body)
                self.send_response(status)
                for name, value in reply.headers.items():
                    if name.lower() not in ('content-length', 'connection', 'date', 'server', 'transfer-encoding'):
                        self.send_header(name, value)
                self.send_header('Content-Length', reply.headers['Content-Length'] if self.command == 'HEAD' else str(len(answer)))
                self.end_headers()
                self.wfile.write(answer if self.command != 'HEAD' else b'')

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.environment = {'DELTABUCKET_ENDPOINT': f'http://127.0.0.1:{self.server.server_port}'}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self.environment

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class XetCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def setUp(self):
        self.bucket = 'b-' + self._testMethodName.replace('_', '-')[5:45].strip('-')
        self.folder = os.path.join(self.daemon.scratch, self.bucket)
        os.makedirs(self.folder)
        self.daemon.request('PUT', '/' + self.bucket)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, body):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), 'wb') as file:
            file.write(body)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), 'rb') as file:
            return file.read()

    def run_json(self, *arguments, **more):
        return [json.loads(line) for line in self.daemon.client(*arguments, '--json', **more).stdout.splitlines()]

    def put(self, name, key='x', *more):
        return self.run_json('put', self.path(name), f'{self.bucket}/{key}', *more)[-1]

    def get(self, key, name, *more):
        return self.run_json('get', f'{self.bucket}/{key}', self.path(name), *more)[-1]

    def stored(self, key):
        return hashlib.sha256(self.daemon.request('GET', f'/{self.bucket}/{key}', timeout=120).body).digest()

    def assert_stored(self, key, body):
        self.assertEqual(self.stored(key), hashlib.sha256(body).digest())

    def test_a_change_sends_what_changed(self):
        body = bytearray(content(1, 50 * MB))
        self.write('x', body)
        first = self.put('x')
        self.assertEqual(first['bytes'], len(body))
        self.assertLess(first['sent'], len(body) * 1.01)
        self.assert_stored('x', body)
        again = self.put('x')
        self.assertEqual(again['sent'], 0)
        body[20 * MB:20 * MB + 500_000] = content(2, 500_000)  # 1 %
        self.write('x', body)
        self.assertLess(self.put('x')['sent'], 500_000 + 2 * 131072 + 20_000)
        self.assert_stored('x', body)
        body += content(3, 300_000)
        self.write('x', body)
        self.assertLess(self.put('x')['sent'], 300_000 + 131072 + 20_000)
        body[25 * MB:25 * MB] = content(4, 200_000)
        self.write('x', body)
        self.assertLess(self.put('x')['sent'], 200_000 + 3 * 131072 + 20_000)
        self.assert_stored('x', body)

    @bytes_alone
    def test_what_came_by_s3_is_not_sent_again(self):
        body = content(5, 20 * MB)
        self.daemon.request('PUT', f'/{self.bucket}/by-s3', body, timeout=120)
        self.write('x', body)
        self.assertEqual(self.put('x')['sent'], 0)
        self.write('y', body[:10 * MB] + content(6, 100_000) + body[10 * MB:])
        self.assertLess(self.put('y', 'y')['sent'], 100_000 + 3 * 131072 + 20_000)
        self.assert_stored('y', self.read('y'))

    @bytes_alone
    def test_what_shrinks_is_sent_small(self):
        body = b''.join(b'line %09d of a log that repeats itself\n' % i for i in range(200_000))
        self.write('log', body)
        self.assertLess(self.put('log', 'log')['sent'], len(body) // 3)
        self.assert_stored('log', body)
        got = self.get('log', 'back')
        self.assertEqual(self.read('back'), body)
        self.assertLess(got['received'], len(body) // 3)

    @bytes_alone
    def test_what_repeats_is_sent_once(self):
        self.write('zeros', bytes(20 * MB))
        self.assertLess(self.put('zeros', 'zeros')['sent'], 200_000)
        self.assert_stored('zeros', bytes(20 * MB))
        self.get('zeros', 'back')
        self.assertEqual(self.read('back'), bytes(20 * MB))

    @bytes_alone
    def test_sizes_around_the_limits_of_chunks(self):
        for size in (0, 1, 8191, 8192, 65535, 65536, 131072, 131073, 262144, 400_000):
            body = content(size, size)
            self.write('x', body)
            self.put('x', f's{size}')
            self.assert_stored(f's{size}', body)
            self.get(f's{size}', f'back{size}')
            self.assertEqual(self.read(f'back{size}'), body)

    def test_get_uses_what_is_here(self):
        body = bytearray(content(7, 30 * MB))
        self.write('x', body)
        self.put('x')
        self.assertGreater(self.get('x', 'y')['received'], 29 * MB)
        self.assertEqual(self.read('y'), body)
        self.assertEqual(self.get('x', 'y')['received'], 0)
        body[10 * MB:10 * MB + 300_000] = content(8, 310_000)
        self.write('x', body)
        self.put('x')
        self.assertLess(self.get('x', 'y')['received'], 1 * MB)  # the file that is replaced is a seed
        self.assertEqual(self.read('y'), body)
        self.assertLess(self.get('x', 'z', '--seed', self.path('y'))['received'], 500_000)
        self.assertEqual(self.read('z'), body)
        self.assertEqual(sorted(os.listdir(self.folder)), ['x', 'y', 'z'])  # nothing is left over

    @bytes_alone
    def test_plain_is_plain(self):
        body = content(9, 1 * MB)
        self.write('x', body)
        self.assertEqual(self.put('x', 'x', '--plain')['sent'], len(body))
        self.assertEqual(self.put('x', 'x', '--plain')['sent'], len(body))
        self.assertEqual(self.get('x', 'y', '--plain')['received'], len(body))
        self.assertEqual(self.read('y'), body)

    @bytes_alone
    def test_plain_sync_knows_what_came_over_xet(self):
        self.write('tree/x', content(30, 1 * MB))
        self.run_json('sync', self.path('tree'), self.bucket)
        head = self.daemon.request('HEAD', f'/{self.bucket}/x').headers
        self.assertNotIn('x-deltabucket-digest', head)
        self.assertEqual(self.run_json('sync', self.path('tree'), self.bucket, '--plain')[-1]['sent'], 0)
        self.write('tree/x', content(31, 1 * MB))
        self.assertEqual(self.run_json('sync', self.path('tree'), self.bucket, '--plain', '--dry-run')[-1]['event'], 'would_upload')
        self.run_json('sync', self.bucket, self.path('back'), '--plain')
        self.assertEqual(self.read('back/x'), content(30, 1 * MB))

    @bytes_alone
    def test_the_longest_names(self):
        names = ('n' * 255, 'd' * 255 + '/' + 'é' * 127)
        for name in names:
            self.write('tree/' + name, content(34, 400_000) + name.encode())
        self.run_json('sync', self.path('tree'), self.bucket)
        for more in ((), ('--plain',)):
            back = 'back' + ''.join(more)
            self.assertEqual(self.run_json('sync', self.bucket, self.path(back), *more)[-1]['sent'], 2)
            for name in names:
                self.assertEqual(self.read(f'{back}/{name}'), self.read('tree/' + name))
            self.assertEqual(sorted(os.listdir(self.path(back))), ['d' * 255, 'n' * 255])
            self.get(names[0], f'got{back}')
            self.assertEqual(self.read(f'got{back}'), self.read('tree/' + names[0]))

    @bytes_alone
    def test_keys_that_the_hub_does_not_take(self):
        body = content(10, 200_000)
        self.write('x', body)
        for key in ('a//b', 'trailing..', 'b\\s'):
            self.put('x', key)
            self.run_json('get', f'{self.bucket}/{key}', self.path('back'))
            self.assertEqual(self.read('back'), body, key)
            os.remove(self.path('back'))

    @bytes_alone
    def test_a_sentence_says_what_was_sent(self):
        self.write('x', content(11, 1 * MB))
        said = self.daemon.client('put', self.path('x'), f'{self.bucket}/x').stdout
        self.assertIn('1.0 MB, sent 1.0 MB', said)
        self.assertIn('1.0 MB, sent 0 B', self.daemon.client('put', self.path('x'), f'{self.bucket}/x').stdout)
        self.assertIn('1.0 MB, received 1.0 MB', self.daemon.client('get', f'{self.bucket}/x', self.path('y')).stdout)

    @bytes_alone
    def test_the_time_of_the_file_is_kept(self):
        self.write('x', content(12, 100_000))
        os.utime(self.path('x'), ns=(1_700_000_000_123_000_000,) * 2)
        self.put('x')
        self.assertEqual(self.daemon.request('HEAD', f'/{self.bucket}/x').headers['x-amz-meta-mtime'], '1700000000.123')

    @bytes_alone
    def test_an_unchanged_file_is_not_read_again(self):
        body = content(13, 5 * MB)
        path = self.write('x', body)
        os.utime(path, (1_600_000_000, 1_600_000_000))
        time.sleep(2.1)  # the cache trusts files that rested
        self.put('x')
        trace = os.path.join(self.daemon.scratch, 'cache', 'deltabucket', 'hashes')
        self.assertTrue(os.path.exists(trace))
        times = os.stat(path)
        with open(path, 'r+b') as file:  # behind the cache's back: what a changed file costs is that it is read
            file.write(b'?')
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        changed = self.put('x')
        self.assertGreater(changed['sent'], 0)  # the change time told
        self.assert_stored('x', self.read('x'))

    @bytes_alone
    def test_a_damaged_cache_is_no_harm(self):
        self.write('x', content(14, 100_000))
        cache = os.path.join(self.daemon.scratch, 'cache', 'deltabucket')
        os.makedirs(cache, exist_ok=True)
        with open(os.path.join(cache, 'hashes'), 'wb') as file:
            file.write(os.urandom(5000))
        self.put('x')
        self.assert_stored('x', self.read('x'))

    @bytes_alone
    def test_who_may_not_write_is_told(self):
        self.write('x', content(15, 100_000))
        key = self.daemon.add_key('--name', 'reader', '--grant', f'{self.bucket}/=read,list')
        for token in (key['token'], 'nonsense'):
            done = self.daemon.client('put', self.path('x'), f'{self.bucket}/x', token=token, check=False)
            self.assertEqual(done.returncode, DENIED, done.stderr)
        done = self.daemon.client('put', self.path('x'), 'no-such-bucket/x', check=False)
        self.assertEqual(done.returncode, NOT_FOUND)
        self.assertIn('--create-bucket', done.stderr)
        self.assertEqual(self.daemon.client('get', f'{self.bucket}/none', self.path('y'), check=False).returncode, NOT_FOUND)

    @bytes_alone
    def test_a_key_for_a_prefix_puts_and_gets_there(self):
        body = content(16, 600_000)
        self.write('x', body)
        key = self.daemon.add_key('--name', 'part', '--grant', f'{self.bucket}/mine/=read,write,list')
        self.run_json('put', self.path('x'), f'{self.bucket}/mine/x', token=key['token'])
        self.run_json('get', f'{self.bucket}/mine/x', self.path('y'), token=key['token'])
        self.assertEqual(self.read('y'), body)
        self.assertEqual(self.daemon.client('put', self.path('x'), f'{self.bucket}/theirs', token=key['token'], check=False).returncode, DENIED)

    def test_an_upload_that_was_cut_goes_on(self):
        body = content(17, 40 * MB)
        self.write('x', body)
        proxy = Proxy(self.daemon.port, cut_up=25 * MB)
        done = self.daemon.client('put', self.path('x'), f'{self.bucket}/x', '--retries', '0', '--parallel', '2', check=False,
                                  environment={'DELTABUCKET_ENDPOINT': f'http://127.0.0.1:{proxy.port}'})
        proxy.close()
        self.assertEqual(done.returncode, UNREACHABLE, done.stderr)
        self.assertEqual(self.daemon.request('HEAD', f'/{self.bucket}/x').status, 404)
        self.put('x')
        self.assert_stored('x', body)

    def test_a_download_that_was_cut_goes_on(self):
        body = content(18, 60 * MB)
        self.write('x', body)
        self.put('x')
        proxy = Proxy(self.daemon.port, cut_down=45 * MB)
        done = self.daemon.client('get', f'{self.bucket}/x', self.path('y'), '--retries', '0', '--parallel', '2', check=False,
                                  environment={'DELTABUCKET_ENDPOINT': f'http://127.0.0.1:{proxy.port}'})
        proxy.close()
        self.assertEqual(done.returncode, UNREACHABLE, done.stderr)
        self.assertFalse(os.path.exists(self.path('y')))
        self.assertTrue(os.path.exists(self.path('y.part')))
        self.assertLess(self.get('x', 'y')['received'], 55 * MB)
        self.assertEqual(self.read('y'), body)
        self.assertFalse(os.path.exists(self.path('y.part.chunks')))

    @bytes_alone
    def test_an_odd_part_file_is_no_harm(self):
        body = content(19, 3 * MB)
        self.write('x', body)
        self.put('x')
        self.write('y.part', os.urandom(4 * MB))
        self.write('y.part.chunks', os.urandom(10_000))
        self.get('x', 'y')
        self.assertEqual(self.read('y'), body)

    def meddled(self, meddle, *arguments, **more):
        with Meddler(self.daemon, meddle) as environment:
            return self.run_json(*arguments, environment=environment, **more)[-1]

    def once(self, matches, change):
        """Changes the first answer that matches; `self.changed` counts."""
        self.changed = 0

        def meddle(method, target, status, body):
            if self.changed == 0 and matches(method, target):
                self.changed += 1
                return change(status, body)
            return status, body
        return meddle

    def test_a_token_that_is_over_is_renewed(self):
        body = content(40, 1 * MB)
        self.write('x', body)
        refused = self.once(lambda method, target: '/xet/v1/' in target, lambda status, body: (401, b'{"error":"over"}'))
        self.assertGreater(self.meddled(refused, 'put', self.path('x'), f'{self.bucket}/x')['sent'], 0)
        self.assertEqual(self.changed, 1)
        refused = self.once(lambda method, target: '/xet/v2/' in target, lambda status, body: (401, b'{"error":"over"}'))
        got = self.meddled(refused, 'get', f'{self.bucket}/x', self.path('y'))
        self.assertEqual((self.changed, self.read('y')), (1, body))
        self.assertGreater(got['received'], len(body))

    def test_an_address_that_is_over_is_asked_for_again(self):
        body = content(41, 3 * MB)
        self.write('x', body)
        self.put('x')

        def is_fetch(method, target):
            return method == 'GET' and target.startswith('/xet/') and 'reconstructions' not in target and '/chunks/' not in target
        self.meddled(self.once(is_fetch, lambda status, body: (403, b'{"error":"over"}')), 'get', f'{self.bucket}/x', self.path('y'))
        self.assertEqual((self.changed, self.read('y')), (1, body))
        for at in (3, 5000):  # a header of a record, and content that only the whole file's hash proves wrong
            os.remove(self.path('y'))
            flipped = self.once(is_fetch, lambda status, body, at=at: (status, body[:at] + bytes([body[at] ^ 0x40]) + body[at + 1:]))
            self.meddled(flipped, 'get', f'{self.bucket}/x', self.path('y'))
            self.assertEqual((self.changed, self.read('y')), (1, body), at)

        def always(method, target, status, body):
            return (status, body[:5000] + bytes([body[5000] ^ 1]) + body[5001:]) if is_fetch(method, target) else (status, body)
        with Meddler(self.daemon, always) as environment:
            done = self.daemon.client('get', f'{self.bucket}/x', self.path('z'), check=False, environment=environment)
        self.assertEqual(done.returncode, 12, done.stderr)
        self.assertFalse(os.path.exists(self.path('z')))

    @bytes_alone
    def test_a_server_without_these_halves_gets_plain_requests(self):
        def without(method, target, status, body):
            return (404, b'{"error":"none"}') if target.startswith(('/api/', '/xet/')) else (status, body)
        body = content(42, 1 * MB)
        self.write('tree/x', body)
        with Meddler(self.daemon, without) as environment:
            self.assertEqual(self.run_json('put', self.path('tree/x'), f'{self.bucket}/x', environment=environment)[-1]['sent'], len(body))
            self.assertEqual(self.run_json('get', f'{self.bucket}/x', self.path('y'), environment=environment)[-1]['received'], len(body))
            self.assertEqual(self.run_json('sync', self.path('tree'), self.bucket, environment=environment)[-1]['sent'], 0)
            self.write('tree/x', body + b'!')
            self.assertEqual(self.run_json('sync', self.path('tree'), self.bucket, environment=environment)[-1]['sent'], 1)
            self.assertEqual(self.run_json('sync', self.bucket, self.path('back'), environment=environment)[-1]['received_bytes'], len(body) + 1)
        self.assertEqual((self.read('y'), self.read('back/x')), (body, body + b'!'))

    def test_a_server_that_cannot_make_chunks_gives_whole_files(self):
        def unable(method, target, status, body):
            return (501, b'{"error":"too large"}') if 'reconstructions' in target else (status, body)
        for name in 'abc':
            self.write('tree/' + name, content(ord(name), 300_000))
        self.run_json('sync', self.path('tree'), self.bucket)
        self.assertEqual(self.meddled(unable, 'sync', self.bucket, self.path('back'))['sent'], 3)
        self.assertEqual(self.read('back/b'), content(ord('b'), 300_000))
        self.assertEqual(self.meddled(unable, 'get', f'{self.bucket}/c', self.path('c'))['received'], 300_000)
        self.assertEqual((sorted(os.listdir(self.folder)), sorted(os.listdir(self.path('back')))), (['back', 'c', 'tree'], ['a', 'b', 'c']))

    def test_what_came_by_chunks_does_not_come_again_whole(self):
        for name in 'abc':
            self.write('tree/' + name, content(ord(name), 300_000))
        self.run_json('sync', self.path('tree'), self.bucket)
        asked = []

        def unable(method, target, status, body):
            if 'reconstructions' not in target:
                return status, body
            asked.append(target)
            return (status, body) if len(asked) == 1 else (501, b'{"error":"too large"}')
        with Meddler(self.daemon, unable) as environment:
            lines = self.run_json('sync', self.bucket, self.path('back'), '--parallel', '1', environment=environment)
        self.assertEqual(sorted(line['name'] for line in lines[:-1]), ['a', 'b', 'c'])
        self.assertLess(lines[-1]['received_bytes'], 950_000)
        for name in 'abc':
            self.assertEqual(self.read('back/' + name), content(ord(name), 300_000))

    def reconstruction(self, key, first=0, last=''):
        """What a reader is told of a file from byte `first` on (to `last`), straight from the server."""
        info = self.daemon.request('POST', f'/api/buckets/main/{self.bucket}/paths-info', json.dumps({'paths': [key]}).encode(),
                                   {'Content-Type': 'application/json'})
        token = json.loads(self.daemon.request('GET', f'/api/buckets/main/{self.bucket}/xet-read-token').body)['accessToken']
        answer = self.daemon.request('GET', '/xet/v2/reconstructions/' + json.loads(info.body)[0]['xetHash'], None,
                                     {'Authorization': 'Bearer ' + token, 'Range': f'bytes={first}-{last}', 'x-deltabucket-codecs': 'all'}, token=None)
        return json.loads(answer.body)

    def test_a_way_that_writes_over_what_is_in_place(self):
        """A hostile answer about the second range has other bytes in front, where the first range lies already."""
        body = content(43, 16 * MIB)
        self.write('x', body)
        self.put('x')
        second = 8 * MIB
        true = self.reconstruction('x', second)
        self.write('evil', content(44, second - true['offset_into_first_range']))
        self.put('evil', 'evil')
        evil = self.reconstruction('evil')

        def meddle(method, target, status, answer):
            if '/xet/v2/reconstructions/' in target and status < 300:
                told = json.loads(answer)
                if told['terms'] == true['terms'] and told['offset_into_first_range'] == true['offset_into_first_range']:
                    self.hostile += 1
                    xorbs = dict(told['xorbs'])
                    for name, fetches in evil['xorbs'].items():
                        xorbs[name] = xorbs.get(name, []) + fetches
                    return status, json.dumps({'offset_into_first_range': second, 'terms': evil['terms'] + told['terms'], 'xorbs': xorbs}).encode()
            return status, answer
        self.hostile = 0
        with Meddler(self.daemon, meddle) as environment:
            done = self.daemon.client('get', f'{self.bucket}/x', self.path('y'), '--parallel', '1', check=False, environment=environment)
        self.assertEqual(self.hostile, 1)
        if done.returncode == 0:
            self.assertEqual(self.read('y'), body)
        self.get('x', 'y')
        self.assertEqual(self.read('y'), body)

    def test_a_chunk_over_the_end_of_a_range_is_one_chunk(self):
        """A hostile answer about the first range has another chunk where the second range has its end."""
        body = content(48, 16 * MIB)
        self.write('x', body)
        self.put('x')
        second = 8 * MIB
        over = self.reconstruction('x', second, second)['terms'][0]
        self.write('evil', bytes(over['unpacked_length']))
        self.put('evil', 'evil', '--retries', '0')
        evil = self.reconstruction('evil')

        def change(status, answer):
            told = json.loads(answer)
            last = told['terms'][-1]
            last['unpacked_length'] -= over['unpacked_length']
            last['range']['end'] -= 1
            told['terms'][-1:] = [last] * (last['unpacked_length'] > 0) + evil['terms']
            told['xorbs'].update(evil['xorbs'])
            return status, json.dumps(told).encode()
        got = self.meddled(self.once(lambda method, target: '/xet/v2/reconstructions/' in target, change),
                           'get', f'{self.bucket}/x', self.path('y'), '--parallel', '1')
        self.assertEqual(self.changed, 1)
        self.assertGreater(got['received'], len(body) * 3 // 2)  # it was noticed, and came again
        self.assertEqual(self.read('y'), body)

    @bytes_alone
    def test_an_empty_file_with_a_hash_is_no_file(self):
        body = content(45, 1 * MB)
        self.write('x', body)
        self.put('x')

        def meddle(method, target, status, answer):
            if target.endswith('/paths-info'):
                answer = json.dumps([{**entry, 'size': 0} for entry in json.loads(answer)]).encode()
            return status, answer
        with Meddler(self.daemon, meddle) as environment:
            done = self.daemon.client('get', f'{self.bucket}/x', self.path('y'), check=False, environment=environment)
        self.assertEqual(done.returncode, 12, done.stderr)
        self.assertFalse(os.path.exists(self.path('y')))

    @bytes_alone
    def test_a_listing_that_breaks_off_removes_nothing(self):
        for name in 'abc':
            self.write('tree/' + name, content(ord(name), 1000))
        self.run_json('sync', self.path('tree'), self.bucket)

        def meddle(method, target, status, answer):
            if 'list-type=2' in target:
                answer = re.sub(rb'<Contents><Key>[bc]</Key>.*?</Contents>', b'', answer, flags=re.S)
                answer = answer.replace(b'<IsTruncated>false</IsTruncated>', b'<IsTruncated>true</IsTruncated>')
            return status, answer
        with Meddler(self.daemon, meddle) as environment:
            done = self.daemon.client('sync', self.bucket, self.path('tree'), '--delete', check=False, environment=environment)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(sorted(os.listdir(self.path('tree'))), ['a', 'b', 'c'])

    @bytes_alone
    def test_sync_below_a_prefix_that_the_hub_does_not_take(self):
        self.write('tree/x', content(46, 1000))
        for prefix in ('a//b', 'a/./b', 'C:/d', 'a\\b'):
            self.assertEqual(self.run_json('sync', self.path('tree'), f'{self.bucket}/{prefix}')[-1]['sent'], 1)
            self.assertEqual(self.run_json('sync', self.path('tree'), f'{self.bucket}/{prefix}')[-1]['sent'], 0)

    @bytes_alone
    def test_names_of_a_file_and_a_folder_at_once(self):
        for key in ('t/a', 't/a!b', 't/a/b', 't/c'):
            self.daemon.request('PUT', f'/{self.bucket}/{key}', b'1')
        done = self.daemon.client('sync', f'{self.bucket}/t', self.path('back'), check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse(os.path.exists(self.path('back')))

    @bytes_alone
    def test_a_pipe_is_no_seed(self):
        body = content(47, 1 * MB)
        self.write('x', body)
        self.put('x')
        os.mkfifo(self.path('pipe'))
        self.get('x', 'z', '--seed', self.path('pipe'))
        self.assertEqual(self.read('z'), body)

    def test_a_pipe_is_not_replaced(self):
        self.write('x', content(48, 1 * MB))
        self.put('x')
        os.mkfifo(self.path('pipe'))
        done = self.daemon.client('get', f'{self.bucket}/x', self.path('pipe'), check=False)
        self.assertEqual(done.returncode, MALFORMED, done.stderr)
        self.assertIn(f'{self.path("pipe")} is a device, a pipe or a socket', done.stderr)
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path('pipe')).st_mode))

    def test_sync_of_many_small_files(self):
        names = [f'd{i % 7}/f{i}' for i in range(1500)]
        for i, name in enumerate(names):
            self.write('tree/' + name, content(1000 + i, 200 + i))
        tree = self.path('tree')
        first = self.run_json('sync', tree, f'{self.bucket}/p')[-1]
        self.assertEqual((first['files'], first['sent']), (1500, 1500))
        again = self.run_json('sync', tree, f'{self.bucket}/p')[-1]
        self.assertEqual((again['sent'], again['sent_bytes']), (0, 0))
        moved = self.run_json('sync', tree, f'{self.bucket}/q')[-1]  # other names for what is there
        self.assertEqual((moved['sent'], moved['sent_bytes']), (1500, 0))
        back = self.run_json('sync', f'{self.bucket}/q', self.path('back'))[-1]
        self.assertEqual(back['sent'], 1500)
        for i, name in enumerate(names):
            self.assertEqual(self.read('back/' + name), content(1000 + i, 200 + i))
        for name in names[10:]:
            os.remove(self.path('tree/' + name))
        gone = self.run_json('sync', tree, f'{self.bucket}/p', '--delete')
        self.assertEqual(gone[-1]['removed'], 1490)
        listed = self.daemon.request('GET', f'/{self.bucket}?list-type=2&prefix=p/').body
        self.assertEqual(listed.count(b'<Key>'), 10)

    @bytes_alone
    def test_sync_sees_keys_that_the_hub_does_not_take(self):
        for name in ('plain', 'back\\slash', 'c:drive/x'):
            self.write('tree/' + name, name.encode() * 1000)
        self.run_json('sync', self.path('tree'), self.bucket)
        self.assertEqual(self.run_json('sync', self.path('tree'), self.bucket)[-1]['sent'], 0)
        self.assertEqual(self.run_json('sync', self.bucket, self.path('back'))[-1]['sent'], 3)
        self.assertEqual(self.read('back/back\\slash'), b'back\\slash' * 1000)

    def test_sync_of_large_files(self):
        body = bytearray(content(20, 20 * MB))
        self.write('tree/a', body)
        self.write('tree/b', content(21, 9 * MB))
        self.run_json('sync', self.path('tree'), self.bucket)
        back = self.path('back')
        self.run_json('sync', self.bucket, back)
        body[3 * MB:3 * MB + 1000] = content(22, 1000)
        self.write('tree/a', body)
        up = self.run_json('sync', self.path('tree'), self.bucket)[-1]
        self.assertEqual(up['sent'], 1)
        self.assertLess(up['sent_bytes'], 400_000)
        down = self.run_json('sync', self.bucket, back)[-1]
        self.assertEqual(down['sent'], 1)
        self.assertLess(down['received_bytes'], 800_000)
        self.assertEqual(self.read('back/a'), body)


class XetOverTls(unittest.TestCase):
    def test_there_and_back_and_a_wrong_ca(self):
        with Daemon() as daemon:
            path = os.path.join(daemon.scratch, 'x')
            body = content(30, 3 * MB)
            with open(path, 'wb') as file:
                file.write(body)
            daemon.client('put', path, 'box/x', '--create-bucket')
            daemon.client('get', 'box/x', path + '.back')
            with open(path + '.back', 'rb') as file:
                self.assertEqual(file.read(), body)
            done = daemon.client('put', path, 'box/y', '--retries', '0', '--ca', '/etc/ssl/certs/ca-certificates.crt', check=False)
            self.assertEqual(done.returncode, UNREACHABLE)
            self.assertIn('certificate', done.stderr)

    def test_the_server_dies_in_the_middle(self):
        with Daemon(tls=False) as daemon:
            path = os.path.join(daemon.scratch, 'x')
            body = content(31, 60 * MB)
            with open(path, 'wb') as file:
                file.write(body)
            daemon.request('PUT', '/box')
            environment = dict(os.environ, DELTABUCKET_ENDPOINT=daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=daemon.scratch)
            upload = subprocess.Popen([CLIENT, 'put', '--parallel', '2', path, 'box/x'], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            packs = os.path.join(daemon.folder, 'packs')
            limit = time.monotonic() + 60
            while time.monotonic() < limit and upload.poll() is None:
                if os.path.isdir(packs) and sum(entry.stat().st_size for entry in os.scandir(packs) if entry.is_file()) > 1 * MB:
                    break
                time.sleep(0.01)
            daemon.kill()
            daemon.start()
            _, failure = upload.communicate(timeout=120)
            self.assertEqual(upload.returncode, 0, failure)
            self.assertEqual(daemon.request('GET', '/box/x', timeout=120).body, body)
            upload.stdout.close()
            upload.stderr.close()


if __name__ == '__main__':
    unittest.main()
