"""The daemon itself: first start, restart, stop, lock, reload, limits, damaged and full disks."""
import contextlib
import glob
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from tests.support.daemon import ROOT_TOKEN, SERVER, Daemon
from tests.support.skips import needs_mount


class Lifecycle(unittest.TestCase):
    def test_first_start_prints_the_root_key_once(self):
        with Daemon(tls=False) as daemon:
            for name in ('DELTABUCKET_ROOT_KEY_ID', 'DELTABUCKET_ROOT_SECRET', 'DELTABUCKET_ROOT_TOKEN'):
                daemon.environment.pop(name)
            daemon.stop()
            first = daemon.log()
            daemon.folder = os.path.join(daemon.scratch, 'fresh')
            daemon.start()
            printed = daemon.log()[len(first):]
            token = next(line.split()[-1] for line in printed.splitlines() if 'token' in line.lower())
            self.assertEqual(daemon.request('GET', '/', token=token).status, 200)
            daemon.stop()
            daemon.start()
            self.assertEqual(daemon.log().count(token), printed.count(token))
            self.assertEqual(daemon.request('GET', '/', token=token).status, 200)
            for path in ('master.key', 'tls/ca.key'):
                full = os.path.join(daemon.folder, path)
                if os.path.exists(full):
                    self.assertEqual(os.stat(full).st_mode & 0o077, 0, path)

    def test_acknowledged_objects_survive_kill_and_restart(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/kept')
            bodies = {f'k{i}': os.urandom(size) for i, size in enumerate((0, 10, 2000, 100_000, 300_000, 5_000_000))}
            for key, body in bodies.items():
                self.assertEqual(daemon.request('PUT', f'/kept/{key}', body).status, 200)
            daemon.kill()
            daemon.start()
            for key, body in bodies.items():
                self.assertEqual(daemon.request('GET', f'/kept/{key}').body, body)

    def test_second_daemon_on_one_folder_is_refused(self):
        with Daemon(tls=False) as daemon:
            second = subprocess.run([SERVER, '--data', daemon.folder, '--listen', '127.0.0.1:0', '--http'], capture_output=True, text=True,
                                    env=daemon.environment, timeout=120)
            self.assertNotEqual(second.returncode, 0)
            self.assertIn(daemon.folder, second.stderr)
            self.assertEqual(daemon.request('GET', '/-/ready', token=None).status, 200)

    def test_stop_answers_waiting_workers(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/waiting')
            daemon.request('POST', '/v1/runs/waiting/r')
            answers = []
            waiter = threading.Thread(target=lambda: answers.append(daemon.request('GET', '/v1/runs/waiting/r/steps/latest?wait=60').status))
            waiter.start()
            while b'\ndeltabucket_requests_waiting 1\n' not in daemon.request('GET', '/-/metrics').body:
                self.assertTrue(waiter.is_alive())
                time.sleep(0.02)
            begun = time.monotonic()
            self.assertEqual(daemon.stop(), 0)
            waiter.join()
            self.assertLess(time.monotonic() - begun, 50)  # not the whole minute
            self.assertIn(answers[0], (204, 503))

    def test_a_signal_that_comes_twice_at_once_still_waits_for_requests(self):
        """As timeout(1) sends it: to the process, then to its group."""
        with Daemon(tls=False) as daemon, socket.create_connection(('127.0.0.1', daemon.port)) as peer:
            daemon.request('PUT', '/slow')
            peer.sendall(f'PUT /slow/k HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {ROOT_TOKEN}\r\nContent-Length: 4\r\n'
                         'Expect: 100-continue\r\n\r\n'.encode())
            self.assertIn(b' 100 ', peer.recv(100))
            daemon.process.send_signal(signal.SIGTERM)
            while 'draining' not in daemon.log():
                time.sleep(0.01)
            daemon.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            peer.sendall(b'four')
            self.assertIn(b' 200 ', peer.recv(100))
            daemon.await_end(seconds=60)
            self.assertEqual(daemon.stop(), 0)

    def test_keys_on_a_stopped_store(self):
        with Daemon(tls=False) as daemon:
            daemon.stop()
            key = daemon.add_key('--name', 'offline')
            daemon.start()
            self.assertEqual(daemon.request('GET', '/', token=key['token']).status, 200)

    def test_certificate_is_for_localhost_and_reloads(self):
        with Daemon() as daemon:
            context = ssl.create_default_context(cafile=daemon.ca)
            with socket.create_connection(('127.0.0.1', daemon.port)) as plain, context.wrap_socket(plain, server_hostname='localhost') as tls:
                self.assertIn(('DNS', 'localhost'), tls.getpeercert()['subjectAltName'])
            daemon.process.send_signal(signal.SIGHUP)
            time.sleep(0.3)
            self.assertEqual(daemon.request('GET', '/-/ready', token=None).status, 200)

    def test_unknown_settings_are_refused(self):
        with tempfile.TemporaryDirectory(prefix='deltabucket-test-') as scratch:
            folder = os.path.join(scratch, 'never-made')
            for arguments in (['--nonsense'], ['--listen'], ['--listen', 'nowhere'], ['--listen', '127.0.0.1:http'], ['--listen', '127.0.0.1:65536']):
                done = subprocess.run([SERVER, '--data', folder, *arguments], capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertTrue(done.stderr)
            self.assertFalse(os.path.exists(folder))

    def refuse(self, *arguments, **variables):
        """What a start says that is refused for its settings, before it has made anything."""
        with tempfile.TemporaryDirectory(prefix='deltabucket-test-') as scratch:
            folder = os.path.join(scratch, 'never-made')
            done = subprocess.run([SERVER, '--data', folder, *arguments], capture_output=True,
                                  text=True, timeout=120, env={**os.environ, **variables})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertFalse(os.path.exists(folder))
            return done.stderr

    def test_a_wrong_setting_is_named_with_its_source(self):
        with tempfile.NamedTemporaryFile('w', suffix='.ini') as file:
            file.write('# a comment\n\ntls_cert = /x.pem # behind a value\ntls_key = /dev/null\n')
            file.flush()
            self.assertIn(f'{file.name}:3: tls_cert must be a file that the server can read, '
                          'and /x.pem is not', self.refuse('--config', file.name))
        self.assertIn('the configuration file /tmp is a folder', self.refuse('--config', '/tmp'))
        said = self.refuse(DELTABUCKET_ROOT_TOKEN='a b')
        self.assertIn('environment, DELTABUCKET_ROOT_TOKEN: secret and token are 1 to 128 ', said)
        self.assertNotIn('a b', said)

    def test_an_address_that_is_taken_leaves_no_folder(self):
        with (tempfile.TemporaryDirectory(prefix='deltabucket-test-') as scratch,
              socket.create_server(('127.0.0.1', 0)) as other):
            folder = os.path.join(scratch, 'never-made')
            for address in (f'127.0.0.1:{other.getsockname()[1]}', '192.0.2.1:9000'):
                done = subprocess.run([SERVER, '--data', folder, '--listen', address],
                                      capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, f'cannot listen on {address}: .*--listen')
                self.assertEqual(os.listdir(scratch), [])

    def test_a_comment_behind_the_folder_is_no_part_of_its_name(self):
        with Daemon(tls=False) as daemon:
            daemon.stop()
            path = os.path.join(daemon.scratch, 'd.ini')
            daemon.environment['DELTABUCKET_GC_RAT'] = '1'
            for value in (f'{daemon.folder} # ours', f'"{daemon.folder}" ; ours'):
                with open(path, 'w') as file:
                    file.write(f'data = {value}\nlisten = 127.0.0.1:{daemon.port}\nhttp = yes\n')
                daemon.start([SERVER, '--config', path])
                self.assertEqual(daemon.request('GET', '/').status, 200)
                daemon.stop()
            self.assertCountEqual(os.listdir(daemon.scratch), ['d.ini', 'data', 'log'])
            self.assertIn('did you mean DELTABUCKET_GC_RATE?', daemon.log())

    def test_a_root_secret_that_can_be_guessed_is_refused(self):
        with tempfile.TemporaryDirectory(prefix='deltabucket-test-') as scratch:
            folder = os.path.join(scratch, 'never-made')
            for name in ('DELTABUCKET_ROOT_SECRET', 'DELTABUCKET_ROOT_TOKEN'):
                done = subprocess.run(
                    [SERVER, '--data', folder, '--listen', '127.0.0.1:1'],
                    capture_output=True,
                    text=True,
                    timeout=120,
                    env=dict(os.environ, **{name: 'seven77'}),
                )
                self.assertEqual(done.returncode, 2, done.stderr)
                said = f'deltabucketd: {name} has 7 characters and must have at least 8'
                self.assertTrue(done.stderr.startswith(said), done.stderr)
                self.assertNotIn('seven77', done.stderr)
            self.assertFalse(os.path.exists(folder))

    def test_metrics_are_for_root(self):
        with Daemon(tls=False) as daemon:
            self.assertIn(b'deltabucket_requests_total', daemon.request('GET', '/-/metrics').body)
            self.assertIn(daemon.request('GET', '/-/metrics', token=None).status, (401, 403))


class Limits(unittest.TestCase):
    def raw(self, daemon, request, patience=60, more=1):
        """What comes back until the end, or until nothing more came for `more` seconds after the first answer was whole."""
        with socket.create_connection(('127.0.0.1', daemon.port), timeout=patience) as peer, contextlib.suppress(TimeoutError, ConnectionError):
            answer = b''
            peer.sendall(request)
            while piece := peer.recv(65536):
                answer += piece
                head, ended, body = answer.partition(b'\r\n\r\n')
                length = re.search(rb'(?i)\r\ncontent-length: *(\d+)', head)
                if ended and len(body) >= (int(length[1]) if length else 0):
                    peer.settimeout(more)
        return answer

    def test_short_and_cut_bodies_store_nothing(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/cut')
            for length in (1000, 2_000_000):
                with socket.create_connection(('127.0.0.1', daemon.port)) as peer:
                    peer.sendall(f'PUT /cut/k HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {ROOT_TOKEN}\r\nContent-Length: {length}\r\n\r\n'.encode())
                    peer.sendall(b'x' * (length - 10))
            time.sleep(0.3)
            self.assertEqual(daemon.request('GET', '/cut/k').status, 404)

    def test_expect_is_answered_after_the_checks(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/expect')
            head = lambda bucket, token: (f'PUT /{bucket}/k HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\nContent-Length: 4\r\n'
                                          'Expect: 100-continue\r\n\r\n').encode()
            self.assertTrue(self.raw(daemon, head('expect', ROOT_TOKEN), more=0.2).startswith(b'HTTP/1.1 100'))
            self.assertTrue(self.raw(daemon, head('expect', 'wrong'), more=0.2).startswith(b'HTTP/1.1 403'))
            self.assertTrue(self.raw(daemon, head('missing', ROOT_TOKEN), more=0.2).startswith(b'HTTP/1.1 404'))

    def test_a_body_without_a_certain_end_ends_the_connection(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/framed')
            head = f'PUT /framed/k HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {ROOT_TOKEN}\r\n'
            hidden = f'DELETE /framed HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {ROOT_TOKEN}\r\n\r\n'
            for framing in (f'Content-Length: 0\r\nContent-Length: {len(hidden)}', f'Content-Length: {len(hidden)}\r\nContent-Length: 0',
                            f'Content-Length : {len(hidden)}', f'Content-Length: {len(hidden)}\r\nTransfer-Encoding: chunked',
                            'Transfer-Encoding: xchunked'):
                with self.subTest(framing=framing):
                    answer = self.raw(daemon, f'{head}{framing}\r\n\r\n{hidden}'.encode())
                    self.assertTrue(answer.startswith(b'HTTP/1.1 400 '), answer)
                    self.assertEqual(answer.count(b'HTTP/1.1 '), 1, answer)
            self.assertEqual(daemon.request('HEAD', '/framed').status, 200)

    def test_too_large_and_garbage(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/large')
            auth = f'Host: h\r\nAuthorization: Bearer {ROOT_TOKEN}\r\n'
            big = self.raw(daemon, f'PUT /large/k HTTP/1.1\r\n{auth}Content-Length: {6 << 30}\r\nExpect: 100-continue\r\n\r\n'.encode())
            self.assertIn(b' 400 ', big.split(b'\r\n')[0])
            self.assertIn(b'EntityTooLarge', big)
            for request in (b'\x16\x03\x01garbage\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n', f'PUT /large/k HTTP/1.1\r\n{auth}Content-Length: -5\r\n\r\n'.encode(),
                            b'GET /' + b'a' * 2_000_000 + b' HTTP/1.1\r\n\r\n'):
                answer = self.raw(daemon, request, patience=2)
                self.assertNotIn(b' 200 ', answer.split(b'\r\n')[0])
            self.assertEqual(daemon.request('GET', '/-/ready', token=None).status, 200)

    def test_chunked_upload(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/chunked')
            connection = daemon.connect()
            connection.request('PUT', '/chunked/k', body=iter([b'abc' * 100_000, b'', b'def']), headers={'Authorization': f'Bearer {ROOT_TOKEN}'},
                               encode_chunked=True)
            self.assertEqual(connection.getresponse().read(), b'')
            connection.close()
            self.assertEqual(daemon.request('GET', '/chunked/k').body, b'abc' * 100_000 + b'def')

    def test_many_uploads_at_once(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/many')
            bodies = {i: os.urandom(3_000_000) for i in range(12)}
            statuses = []
            threads = [threading.Thread(target=lambda i=i: statuses.append(daemon.request('PUT', f'/many/{i}', bodies[i]).status)) for i in bodies]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(statuses, [200] * 12)
            for i, body in bodies.items():
                self.assertEqual(daemon.request('GET', f'/many/{i}').body, body)


class Damage(unittest.TestCase):
    def test_a_flipped_bit_is_an_error_and_never_wrong_bytes(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/flip')
            body = os.urandom(2_000_000)
            daemon.request('PUT', '/flip/k', body)
            daemon.stop()
            pack, = glob.glob(f'{daemon.folder}/packs/*/*.pack')
            with open(pack, 'r+b') as file:
                file.seek(1_000_000)
                byte = file.read(1)
                file.seek(1_000_000)
                file.write(bytes([byte[0] ^ 1]))
            daemon.start()
            with self.assertRaises(Exception):
                got = daemon.request('GET', '/flip/k')
                if got.status == 200:
                    self.assertNotEqual(len(got.body), len(body), 'a damaged object was served whole')
                    raise OSError('cut')
                raise OSError(str(got.status))
            self.assertEqual(daemon.request('GET', '/flip/k', headers={'Range': 'bytes=0-99'}).body, body[:100])

    def test_a_newer_catalog_is_refused(self):
        with Daemon(tls=False) as daemon:
            with self.assertRaisesRegex(RuntimeError, '9999'):
                daemon.edit_catalog('PRAGMA user_version = 9999')

    @needs_mount
    def test_full_disk(self):
        disk = tempfile.mkdtemp()
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=24m', 'none', disk], check=True)
        try:
            with Daemon(tls=False, folder=os.path.join(disk, 'data')) as daemon:
                daemon.request('PUT', '/full')
                with open(os.path.join(disk, 'stranger'), 'wb') as file:
                    file.write(bytes(22_500_000))
                self.assertEqual(daemon.request('GET', '/-/ready?write').status, 507)
                self.assertIn(b'full: ', daemon.request('GET', '/-/ready').body)
                os.remove(os.path.join(disk, 'stranger'))
                self.assertEqual(daemon.request('GET', '/-/ready?write').status, 200)
                self.assertEqual(daemon.request('PUT', '/full/first', b'1' * 5000).status, 200)
                status = 200
                for i in range(60):
                    reply = daemon.request('PUT', f'/full/{i}', os.urandom(1_000_000))
                    if reply.status != 200:
                        status = reply.status
                        break
                self.assertEqual(status, 507, reply.body)
                self.assertNotIn(disk.encode(), reply.body)
                # told before the body, which needs a megabyte, or when what was free has gone to the catalog and its journal meanwhile
                self.assertRegex(reply.body.decode(), r'disk is full: [0-9.]+ MB are free, the last '
                                 r'3\.1 MB are kept .*(, and 1\.0 MB are needed|\(disk_reserve\))\.')
                path = os.path.join(daemon.scratch, 'large')
                with open(path, 'wb') as file:
                    file.write(os.urandom(20_000_000))
                refused = daemon.client('put', path, 'full/large', check=False)
                self.assertEqual(refused.returncode, 8, refused.stderr)
                self.assertRegex(refused.stderr, r'disk is full: .* MB are needed; remove objects '
                                 r'.*`deltabucketd gc --end-promises` frees')
                self.assertEqual(daemon.request('GET', '/full/first').body, b'1' * 5000)
                self.assertEqual(daemon.request('DELETE', '/full/0').status, 204)
                daemon.kill()
                daemon.start()
                self.assertEqual(daemon.request('GET', '/full/first').body, b'1' * 5000)
                for i in range(1, 6):
                    self.assertEqual(daemon.request('DELETE', f'/full/{i}').status, 204)
                daemon.admin('gc')
                self.assertEqual(daemon.request('PUT', '/full/after', os.urandom(1_000_000)).status, 200)
        finally:
            subprocess.run(['umount', '-l', disk], check=True)
            os.rmdir(disk)


if __name__ == '__main__':
    unittest.main()
