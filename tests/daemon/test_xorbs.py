"""Xorbs over HTTP: what is taken, what is refused and leaves nothing, and what is still there after a kill."""
import http.client
import json
import os
import random
import struct
import threading
import time
import unittest

from tests.support import xet
from tests.support.daemon import Daemon, other_letter

MIB = 1 << 20
ZEROS = 131072
HELLO = xet.Xorb([b'Hello World!'])
FRAME = bytes.fromhex('04224d18' '604082' '0e000000' '1f610100ffffffd2506161616161' '00000000')  # 1000 x 'a'
THOUSAND = xet.Xorb([b'a' * 1000])


def lz4_run(byte, size):
    """An LZ4 frame of `size` equal bytes: some 500 bytes for 128 KiB."""
    extra = size - 1 - 5 - 4 - 15
    block = bytes([0x1f, byte, 1, 0]) + b'\xff' * (extra // 255) + bytes([extra % 255]) + bytes([0x50]) + bytes([byte]) * 5
    return bytes.fromhex('04224d18' '6050fb') + struct.pack('<I', len(block)) + block + bytes(4)


def footer(xorb, version=1):
    ends, unpacked, record_end, end = [], [], 0, 0
    for _, size in xorb.entries:
        record_end, end = record_end + 8 + size, end + size
        ends.append(record_end)
        unpacked.append(end)
    n = len(ends)
    hashes, ends, unpacked = b''.join(h for h, _ in xorb.entries), struct.pack(f'<{n}I', *ends), struct.pack(f'<{n}I', *unpacked)
    if version == 0:
        body = b'XETBLOB\0' + xorb.hash + struct.pack('<I', n) + ends + hashes + bytes(16)
    else:
        body = (b'XETBLOB\1' + xorb.hash + b'XBLBHSH\0' + struct.pack('<I', n) + hashes + b'XBLBBND\1' + struct.pack('<I', n) + ends + unpacked +
                struct.pack('<III', n, 52 + 40 * n, 40 + 8 * n) + bytes(16))
    return body + struct.pack('<I', len(body))


def noise(seed, chunks, size):
    source = random.Random(seed)
    return xet.Xorb([source.randbytes(size) for _ in range(chunks)])


def pack_files(daemon):
    return [name for _, _, names in os.walk(os.path.join(daemon.folder, 'packs')) for name in names if name.endswith('.pack')]


def make_bucket(daemon, name='data'):
    assert daemon.request('PUT', f'/{name}').status == 200
    return xet.Cas(daemon, f'main/{name}')


class Xorbs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.cas = make_bucket(cls.daemon)

    def put(self, xorb, body=None):
        return self.cas.put_xorb(xorb, body)

    def is_here(self, xorb):
        return self.cas.request('HEAD', f'/v1/xorbs/default/{xet.text(xorb.hash)}').status == 200

    def grant(self, xorb):
        body = json.dumps({'length': 20, 'checksum': {'algo': 'crc64nvme', 'value': '3879687725877942381'}})
        return self.cas.request('POST', f'/v1/xorb-grants/default/{xet.text(xorb.hash)}', body)

    def test_uploads(self):
        for number, xorb in enumerate((noise(1, 1, 1), noise(2, 1, 8191), noise(3, 3, 65536), noise(4, 20, 131072))):
            self.assertEqual(self.grant(xorb).status, 404)
            first = self.put(xorb)
            self.assertEqual((first.status, first.json()), (200, {'was_inserted': True}), number)
            again = self.put(xorb)
            self.assertEqual((again.status, again.json()), (200, {'was_inserted': False}), number)
            head = self.cas.request('HEAD', f'/v1/xorbs/default/{xet.text(xorb.hash)}')
            self.assertEqual((head.status, int(head.headers['Content-Length'])), (200, len(xorb.body())))
            self.assertEqual(self.grant(xorb).status, 200)

    def test_footers_of_old_clients(self):
        for version in (0, 1):
            xorb = noise(10 + version, 3, 100)
            self.assertEqual(self.put(xorb, xorb.body() + footer(xorb, version)).json(), {'was_inserted': True})
            length = int(self.cas.request('HEAD', f'/v1/xorbs/default/{xet.text(xorb.hash)}').headers['Content-Length'])
            self.assertEqual(length, len(xorb.body()))
            self.assertEqual(self.put(xorb).json(), {'was_inserted': False})

    def test_compressed_records(self):
        body = xet.record(b'', FRAME, scheme=1, size=1000)
        self.assertEqual(self.put(THOUSAND, body).json(), {'was_inserted': True})
        self.assertEqual(self.put(THOUSAND, xet.record(b'', FRAME, scheme=2, size=1000)).json(), {'was_inserted': False})
        self.assertEqual(self.put(THOUSAND).json(), {'was_inserted': False})

    def test_malformed_bodies(self):
        xorb = noise(20, 2, 5000)
        good = xorb.body()
        tail = footer(xorb)
        wrong_end = bytearray(tail)
        wrong_end[40 + 12 + 64 + 12] ^= 1
        bodies = {
            'empty': b'', 'header cut': good[:5], 'second header cut': good[:5008 + 3], 'payload cut': good[:-1], 'bytes behind': good + b'\0',
            'another xorb': noise(21, 2, 5000).body(), 'order': good[5008:] + good[:5008], 'version': b'\1' + good[1:], 'one changed': good[:-1] + b'?',
            'scheme 3': good[:4] + b'\3' + good[5:], 'scheme 65': good[:4] + b'\x41' + good[5:], 'scheme 99': good[:4] + b'\x63' + good[5:],
            'private codec': good[:4] + b'\x40' + good[5:], 'size differs': xet.record(b'x' * 10, size=11), 'size 0': xet.record(b''),
            'chunk too large': xet.record(bytes(131073)), 'payload too large': b'\0\1\0\4\1\1\0\0' + bytes(262145),
            'not a frame': xet.record(b'', b'deadbeef', scheme=1, size=100), 'frame too long': xet.record(b'', FRAME, scheme=1, size=999),
            'frame too short': xet.record(b'', FRAME, scheme=1, size=1001), 'frame followed': xet.record(b'', FRAME + b'\0', scheme=1, size=1000),
            'footer alone': tail, 'footer cut': good + tail[:-1], 'footer followed': good + tail + good, 'footer wrong': good + bytes(wrong_end),
            'footer of another': good + footer(noise(21, 2, 5000)), 'footer version 2': good + tail[:7] + b'\2' + tail[8:],
            'too many': xet.record(b'x') * 8193, 'too much': xet.record(b'', lz4_run(0, ZEROS), scheme=1, size=ZEROS) * 513,
        }
        before = pack_files(self.daemon)
        for what, body in bodies.items():
            with self.subTest(what):
                reply = self.put(xorb, body)
                self.assertEqual(reply.status, 400, reply.body)
                self.assertIn('error', reply.json())
        self.assertFalse(self.is_here(xorb))
        self.assertEqual(pack_files(self.daemon), before)
        self.assertEqual(self.put(xorb).json(), {'was_inserted': True})
        for what, body in bodies.items():
            with self.subTest('known, ' + what):
                self.assertEqual(self.put(xorb, body).status, 400)

    def test_bad_paths_and_tokens(self):
        body = HELLO.body()
        name = xet.text(HELLO.hash)
        for path in (name.upper(), name[:-1], name + '0', name[:-1] + 'g', xet.raw(name).hex()[:63]):
            self.assertEqual(self.cas.request('POST', f'/v1/xorbs/default/{path}', body).status, 400, path)
        reader = xet.Cas(self.daemon, 'main/data', 'read')
        self.assertEqual(reader.put_xorb(HELLO).status, 403)
        self.assertEqual(reader.request('POST', f'/v1/xorb-grants/default/{name}', '{}').status, 403)
        for token in (None, 'xet_nonsense', other_letter(self.cas.token, -4)):
            reply = self.daemon.request('POST', f'/xet/v1/xorbs/default/{name}', body=body, token=token)
            self.assertEqual(reply.status, 401, token)
        self.assertEqual(self.cas.request('POST', f'/v1/xorb-commits/default/{name}/grant/g-1', b'').status, 404)

    def test_one_hash_at_a_time(self):
        xorb = noise(30, 30, 100_000)
        body, answers = xorb.body(), []

        def send():
            answers.append(self.put(xorb, body).json()['was_inserted'])
        threads = [threading.Thread(target=send) for _ in range(6)]
        before = len(pack_files(self.daemon))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(answers), [False] * 5 + [True])
        self.wait_for_packs(before + 1)

    def wait_for_packs(self, count):
        limit = time.monotonic() + 60
        while len(pack_files(self.daemon)) != count and time.monotonic() < limit:
            time.sleep(0.02)
        self.assertEqual(len(pack_files(self.daemon)), count)

    def test_cut_connections_leave_nothing(self):
        xorb = noise(40, 40, 100_000)
        body = xorb.body()
        before = len(pack_files(self.daemon))
        for length in (5, 100_000, len(body) // 2, len(body) - 1):
            connection = http.client.HTTPConnection('127.0.0.1', self.daemon.port)
            connection.putrequest('POST', f'/xet/v1/xorbs/default/{xet.text(xorb.hash)}')
            connection.putheader('Authorization', f'Bearer {self.cas.token}')
            connection.putheader('Content-Length', str(len(body)))
            connection.endheaders()
            connection.send(body[:length])
            connection.close()
        self.wait_for_packs(before)
        self.assertFalse(self.is_here(xorb))

    def test_a_body_that_is_too_long(self):
        connection = http.client.HTTPConnection('127.0.0.1', self.daemon.port)
        connection.putrequest('POST', f'/xet/v1/xorbs/default/{xet.text(HELLO.hash)}')
        connection.putheader('Authorization', f'Bearer {self.cas.token}')
        connection.putheader('Content-Length', str(65 * MIB + 1))
        connection.endheaders()
        self.assertEqual(connection.getresponse().status, 400)
        connection.close()

    def test_bombs_take_bounded_memory(self):
        """Bodies of 300 KB that hold 64 MiB, many at a time."""
        run = xet.record(b'', lz4_run(7, ZEROS), scheme=1, size=ZEROS)
        xorb = xet.Xorb()
        xorb.entries = [(xet.chunk_hash(bytes([7]) * ZEROS), ZEROS)] * 512
        body, statuses = run * 512, []

        def send():
            statuses.append(self.put(xorb, body).status)
            statuses.append(self.put(xorb, run * 5000).status)
        self.put(HELLO)
        before = self.daemon.rss_bytes()
        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(statuses), [200] * 8 + [400] * 8)
        self.assertLess(self.daemon.rss_bytes() - before, 100 * MIB)


class XorbsOverTime(unittest.TestCase):
    def fetch(self, daemon, cas, xorb):
        """The content of the file that is this xorb, as a reader gets it: all its records are raw."""
        name = xet.file_of(xorb)[0]
        entries = cas.reconstruction(name, version=1).json()['fetch_info'][xet.text(xorb.hash)]
        content = b''
        for entry in entries:
            span = entry['url_range']
            path = entry['url'].removeprefix(daemon.endpoint)
            records = daemon.request('GET', path, headers={'Range': f'bytes={span["start"]}-{span["end"]}'}, token=None).body
            while records:
                size = int.from_bytes(records[5:8], 'little')
                content, records = content + records[8:8 + size], records[8 + size:]
        return content

    def test_a_kill_keeps_what_was_acknowledged(self):
        with Daemon(tls=False) as daemon:
            cas = make_bucket(daemon)
            xorbs = [noise(50, 2, 3000), noise(51, 25, 100_000)]
            for xorb in xorbs:
                self.assertEqual(cas.put_xorb(xorb).json(), {'was_inserted': True})
            daemon.kill()
            daemon.start()
            cas = xet.Cas(daemon, 'main/data')
            for xorb in xorbs:
                self.assertEqual(cas.put_xorb(xorb).json(), {'was_inserted': False})
                head = cas.request('HEAD', f'/v1/xorbs/default/{xet.text(xorb.hash)}')
                self.assertEqual((head.status, int(head.headers['Content-Length'])), (200, len(xorb.body())))
                self.assertEqual(cas.put_shard(xet.shard_of(xorb)).status, 200)
                self.assertEqual(self.fetch(daemon, cas, xorb), b''.join(xorb.pieces))

    def test_promises_keep_space(self):
        for hours, deleted in ((1, 0), (0, 1)):
            with Daemon(tls=False, arguments=('--xet-promise', str(hours))) as daemon:
                cas = make_bucket(daemon)
                xorb = noise(60, 10, 100_000)
                cas.put_xorb(xorb)
                report = json.loads(daemon.admin('gc', '--json').stdout)
                self.assertEqual(report['packs_deleted'], deleted)
                head = cas.request('HEAD', f'/v1/xorbs/default/{xet.text(xorb.hash)}')
                self.assertEqual(head.status, 404 if deleted else 200)
                self.assertEqual(cas.put_xorb(xorb).json(), {'was_inserted': deleted == 1})


if __name__ == '__main__':
    unittest.main()
