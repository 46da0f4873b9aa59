"""Shards and questions about chunks over the wire: what registers a file, what is refused, and what of it a crash leaves."""
import json
import os
import random
import struct
import time
import unittest

from tests.support import xet
from tests.support.daemon import Daemon


def pieces_of(seed, count, size=20000):
    source = random.Random(seed)
    return [source.randbytes(size + 100 * i) for i in range(count)]


class Shards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        assert cls.daemon.request('PUT', '/data').status == 200
        assert cls.daemon.request('PUT', '/else').status == 200
        cls.cas = xet.Cas(cls.daemon, 'main/data')
        cls.seed = 0

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def stored(self, count=4):
        """A Xorb that no other test has, stored."""
        type(self).seed += 1
        xorb = xet.Xorb(pieces_of(self.seed, count))
        reply = self.cas.put_xorb(xorb)
        self.assertEqual((reply.status, reply.json()), (200, {'was_inserted': True}))
        return xorb

    def is_there(self, name, cas=None):
        return (cas or self.cas).reconstruction(name).status == 200

    def refused(self, shard, name=None):
        body = shard if isinstance(shard, bytes) else shard.body()
        reply = self.cas.put_shard(body)
        self.assertEqual(reply.status, 400, reply.body)
        self.assertIn('error', reply.json())
        reply = self.cas.put_shard(body, version=2)
        self.assertEqual(reply.status, 200)
        lines = reply.body.decode().splitlines()
        self.assertEqual(len(lines), 1)
        self.assertEqual((json.loads(lines[0])['type'], json.loads(lines[0])['retryable']), ('error', False))
        if name is not None:
            self.assertFalse(self.is_there(name))

    def test_registers_once(self):
        xorb = self.stored()
        name, _ = xet.file_of(xorb)
        self.assertFalse(self.is_there(name))
        self.assertEqual(self.cas.put_shard(xet.shard_of(xorb)).json(), {'result': 1})
        self.assertTrue(self.is_there(name))
        self.assertEqual(self.cas.put_shard(xet.shard_of(xorb)).json(), {'result': 0})
        self.assertEqual(self.cas.request('POST', '/shards', xet.shard_of(xorb).body()).json(), {'result': 0})

    def test_version_2(self):
        xorb = self.stored()
        reply = self.cas.put_shard(xet.shard_of(xorb), version=2)
        self.assertEqual((reply.status, reply.headers['Content-Type'], reply.body), (200, 'application/x-ndjson', b'{"type":"result"}\n'))
        self.assertEqual(int(reply.headers['Content-Length']), len(reply.body))
        self.assertTrue(self.is_there(xet.file_of(xorb)[0]))

    def test_files_of_parts_of_xorbs(self):
        one, two = self.stored(), self.stored()
        terms = [xet.term(one, 2, 4), xet.term(two, 0, 1), xet.term(one, 0, 2), xet.term(one, 2, 3)]
        entries = one.entries[2:4] + two.entries[0:1] + one.entries[0:2] + one.entries[2:3]
        content = b''.join(one.pieces[2:4] + two.pieces[0:1] + one.pieces[0:2] + one.pieces[2:3])
        name = xet.file_hash(entries)
        self.assertEqual(self.cas.put_shard(xet.Shard().add_file(name, terms)).status, 200)  # and no list of xorbs at all
        reply = xet.batch(self.daemon, 'main/data', [{'type': 'addFile', 'path': 'parts', 'xetHash': xet.text(name), 'mtime': 1}])
        self.assertEqual(reply.status, 200, reply.body)
        self.assertEqual(self.daemon.request('GET', '/data/parts').body, content)

    def test_javascript_footer(self):
        xorb = self.stored()
        shard = xet.shard_of(xorb)
        self.assertEqual(self.cas.put_shard(shard.body(footer=True)).json(), {'result': 1})
        self.assertEqual(self.cas.put_shard(shard.body(footer=True)[:-200]).json(), {'result': 0})  # hf_xet 1.2 announces one and sends none
        self.refused(shard.body(footer=True)[:-1])
        self.refused(shard.body() + bytes(200))

    def test_empty_files(self):
        for verified in (True, False):
            self.assertEqual(self.cas.put_shard(xet.Shard().add_file(xet.ZERO, [], verified=verified)).status, 200)
            self.assertEqual(self.cas.put_shard(xet.Shard().add_file(xet.ZERO, [], verified=verified), version=2).body, b'{"type":"result"}\n')
        self.assertEqual(self.cas.put_shard(xet.Shard()).status, 200)
        self.refused(xet.Shard().add_file(xet.raw('638a6bc391964a85939d48f008e8bdbae6a7975e7ca2d87a3ce2492f4e4d8a4c'), []))

    def test_what_is_not_stored(self):
        there, absent = self.stored(), xet.Xorb(pieces_of(1000, 2))
        self.refused(xet.shard_of(absent), xet.file_of(absent)[0])
        self.refused(xet.Shard().add_file(*xet.file_of(there)).add_xorb(absent.hash, absent.entries), xet.file_of(there)[0])

    def test_forged_files(self):
        xorb = self.stored()
        name, (right,) = xet.file_of(xorb)
        other = xet.chunk_hash(b'other')
        forged = [right._replace(range=other), right._replace(bytes=right.bytes - 1), right._replace(first=1), right._replace(end=3),
                  right._replace(end=5), right._replace(first=4), right._replace(first=0xffffffff), right._replace(end=0xffffffff),
                  right._replace(xorb=other)]
        for term in forged:
            with self.subTest(term=term):
                self.refused(xet.Shard().add_file(name, [term]), name)
        self.refused(xet.Shard().add_file(other, [right]), other)
        self.refused(xet.Shard().add_file(xet.ZERO, [right]), name)
        self.refused(xet.Shard().add_file(name, [right, right]), name)

    def test_verification_is_asked_of_every_file(self):
        xorb = self.stored()
        name, terms = xet.file_of(xorb)
        part = xet.file_hash(xorb.entries[:2])
        self.refused(xet.Shard().add_file(name, terms, verified=False), name)
        self.refused(xet.Shard().add_file(part, [xet.term(xorb, 0, 2)]).add_file(name, terms, verified=False), part)

    def test_counts_that_are_not_there(self):
        xorb = self.stored()
        name, terms = xet.file_of(xorb)
        for count in (2, 3, 1 << 31, 0xffffffff):
            for verified in (True, False):
                self.refused(xet.Shard().add_file(name, terms, verified=verified, count=count), name)
            self.refused(xet.Shard().add_file(name, terms).add_xorb(xorb.hash, xorb.entries, count=max(count, 5)), name)

    def test_forged_xorb_lists(self):
        xorb = self.stored()
        name, terms = xet.file_of(xorb)
        lists = [(xorb.entries[:3], None), (xorb.entries + xorb.entries[:1], None), (list(reversed(xorb.entries)), None), (xorb.entries, 1),
                 ([(xet.ZERO, size) for _, size in xorb.entries], None), ([(h, size + 1) for h, size in xorb.entries], None)]
        for entries, total in lists:
            self.refused(xet.Shard().add_file(name, terms).add_xorb(xorb.hash, entries, total=total), name)

    def test_duplicates(self):
        xorb = self.stored()
        name, terms = xet.file_of(xorb)
        shard = xet.Shard().add_file(name, terms, metadata=True).add_file(name, terms)
        shard.add_xorb(xorb.hash, xorb.entries).add_xorb(xorb.hash, xorb.entries)
        self.assertEqual(self.cas.put_shard(shard).json(), {'result': 1})
        self.assertTrue(self.is_there(name))

    def test_truncated_and_garbage(self):
        xorb = self.stored()
        body = xet.shard_of(xorb).body()
        name = xet.file_of(xorb)[0]
        for length in range(0, len(body), 24):
            self.refused(body[:length], name)
        source = random.Random(7)
        for _ in range(20):
            self.refused(source.randbytes(source.randrange(1, 2000)))
            at = source.randrange(len(body) - 8)
            changed = body[:at] + struct.pack('<Q', source.getrandbits(64)) + body[at + 8:]
            self.assertIn(self.cas.put_shard(changed).status, (200, 400))  # reserved fields count nothing
        self.refused(b'\xff' * 4096)

    def test_a_large_shard(self):
        """Over a megabyte it goes through a file."""
        xorb = self.stored(16)
        shard = xet.Shard()
        names = []
        for first in range(16):
            for end in range(first + 1, 17):
                names.append(xet.file_hash(xorb.entries[first:end]))
                shard.add_file(names[-1], [xet.term(xorb, first, end)])
        shard.files *= 80
        self.assertGreater(len(shard.body()), 1500000)
        self.assertEqual(self.cas.put_shard(shard).json(), {'result': 1})
        for name in random.Random(1).sample(names, 20):
            self.assertTrue(self.is_there(name))
        scratch = os.path.join(self.daemon.folder, 'scratch')
        limit = time.monotonic() + 60
        while os.listdir(scratch) and time.monotonic() < limit:
            time.sleep(0.01)
        self.assertEqual(os.listdir(scratch), [])

    def test_other_tenants_need_proof(self):
        """Who has the bytes may register the file from the xorbs of others; who has not, can neither read it nor learn its hashes."""
        xorb = self.stored()
        name, terms = xet.file_of(xorb)
        self.assertEqual(self.cas.put_shard(xet.shard_of(xorb)).status, 200)
        key = self.daemon.add_key('--name', 'stranger', '--namespace', 'stranger')
        self.assertEqual(self.daemon.request('PUT', '/stranger--own', token=key['token']).status, 200)
        stranger = xet.Cas(self.daemon, 'stranger/own', token=key['token'])
        self.assertFalse(self.is_there(name, stranger))
        self.assertEqual(stranger.put_shard(xet.Shard().add_file(name, [terms[0]._replace(range=xet.range_hash([xorb.hash]))])).status, 400)
        answer = xet.parse_answer(stranger.chunk(xorb.entries[0][0]).body)
        self.assertNotIn(xorb.entries[1][0], [h for h, _ in answer.xorbs[0][1]])
        guess = xet.range_hash([h for h, _ in answer.xorbs[0][1]])
        self.assertEqual(stranger.put_shard(xet.Shard().add_file(name, [terms[0]._replace(range=guess)])).status, 400)
        self.assertFalse(self.is_there(name, stranger))
        self.assertEqual(stranger.put_shard(xet.Shard().add_file(name, terms)).json(), {'result': 0})  # with the bytes at hand
        self.assertTrue(self.is_there(name, stranger))

    def test_a_grant_is_of_one_bucket(self):
        xorb = self.stored()
        name, _ = xet.file_of(xorb)
        other = xet.Cas(self.daemon, 'main/else')
        self.assertEqual(self.cas.put_shard(xet.shard_of(xorb)).status, 200)
        self.assertFalse(self.is_there(name, other))
        self.assertEqual(other.put_shard(xet.shard_of(xorb)).json(), {'result': 0})
        self.assertTrue(self.is_there(name, other))

    def test_tokens(self):
        xorb = self.stored()
        reader = xet.Cas(self.daemon, 'main/data', kind='read')
        self.assertEqual(reader.put_shard(xet.shard_of(xorb)).status, 403)
        self.assertEqual(reader.put_shard(xet.shard_of(xorb), version=2).status, 403)
        self.assertEqual(self.daemon.request('POST', '/xet/v1/shards', xet.shard_of(xorb).body(), token=None).status, 401)
        self.assertEqual(self.daemon.request('POST', '/xet/v1/shards', xet.shard_of(xorb).body(), token='xet_bad').status, 401)
        self.assertEqual(self.daemon.request('GET', f'/xet/v1/chunks/default/{xet.text(xorb.hash)}', token=None).status, 401)
        self.assertFalse(self.is_there(xet.file_of(xorb)[0]))


class Chunks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        assert cls.daemon.request('PUT', '/data').status == 200
        cls.cas = xet.Cas(cls.daemon, 'main/data')

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def expect_answer(self, raw_hash):
        reply = self.cas.chunk(raw_hash)
        self.assertEqual((reply.status, reply.headers['Content-Type']), (200, 'application/octet-stream'))
        answer = xet.parse_answer(reply.body)
        self.assertNotEqual(answer.key, xet.ZERO)
        hidden = xet.blake3_keyed(answer.key, raw_hash)
        self.assertIn(hidden, [h for _, entries in answer.xorbs for h, _ in entries])
        self.assertLess(abs(answer.created - time.time()), 60)
        self.assertGreater(answer.expires, time.time() + 3600)
        return answer

    def test_unknown(self):
        self.assertEqual(self.cas.chunk(xet.chunk_hash(b'never seen')).status, 404)
        for bad in ('zz', '0' * 63, '0' * 65, 'A' * 64):
            self.assertEqual(self.cas.request('GET', f'/v1/chunks/default/{bad}').status, 400)

    def test_of_an_upload(self):
        xorb = xet.Xorb(pieces_of(50, 3))
        self.assertEqual(self.cas.put_xorb(xorb).status, 200)
        answer = self.expect_answer(xorb.entries[0][0])
        self.assertEqual(answer.xorbs[0][0], xorb.hash)
        self.assertEqual(answer.xorbs[0][1], [(xet.blake3_keyed(answer.key, h), size) for h, size in xorb.entries])
        self.assertEqual(self.expect_answer(xorb.entries[0][0]).key, answer.key)  # one key a day

    def test_of_an_object_put_through_s3(self):
        """A client that asks need not send what came in another way: it names the xorb in its shard and is done."""
        data = random.Random(60).randbytes(700000)
        self.assertEqual(self.daemon.request('PUT', '/data/through-s3', data).status, 200)
        pieces = xet.chunks(data)
        entries = [(xet.chunk_hash(piece), len(piece)) for piece in pieces]
        limit = time.monotonic() + 60
        while self.cas.chunk(entries[0][0]).status == 404 and time.monotonic() < limit:
            time.sleep(0.02)  # a large upload's chunks enter the index a moment after it
        answer = self.expect_answer(entries[0][0])
        (xorb, listed), = answer.xorbs
        hidden = [xet.blake3_keyed(answer.key, h) for h, _ in entries]
        self.assertEqual([h for h, _ in listed[:len(hidden)]], hidden)
        name = xet.file_hash(entries)
        term = xet.Term(xorb, len(data), 0, len(entries), xet.range_hash([h for h, _ in entries]))
        self.assertEqual(self.cas.put_shard(xet.Shard().add_file(name, [term])).status, 200)
        reply = xet.batch(self.daemon, 'main/data', [{'type': 'addFile', 'path': 'again', 'xetHash': xet.text(name), 'mtime': 1}])
        self.assertEqual(reply.status, 200, reply.body)
        self.assertEqual(self.daemon.request('GET', '/data/again').body, data)

    def test_first_chunk_of_a_file_inside_a_xorb(self):
        """Another client that starts cold asks for it."""
        xorb = xet.Xorb(pieces_of(70, 8))
        self.assertEqual(self.cas.put_xorb(xorb).status, 200)
        shard = xet.Shard()
        for i in range(8):
            shard.add_file(xet.file_hash(xorb.entries[i:i + 1]), [xet.term(xorb, i, i + 1)])
        self.assertEqual(self.cas.put_shard(shard).status, 200)
        self.daemon.stop()
        self.daemon.start()  # the open pack is sealed
        for chunk, _ in xorb.entries:
            self.assertEqual(self.expect_answer(chunk).xorbs[0][0], xorb.hash)


class Crashes(unittest.TestCase):
    def test_killed_between_shard_and_batch(self):
        with Daemon(tls=False) as daemon:
            self.assertEqual(daemon.request('PUT', '/data').status, 200)
            data = random.Random(80).randbytes(500000)
            name, _, shard = xet.Cas(daemon, 'main/data').upload(data)
            daemon.kill()
            daemon.start()
            cas = xet.Cas(daemon, 'main/data')
            self.assertEqual(cas.put_shard(shard).json(), {'result': 0})
            reply = xet.batch(daemon, 'main/data', [{'type': 'addFile', 'path': 'kept', 'xetHash': xet.text(name), 'mtime': 1}])
            self.assertEqual(reply.status, 200, reply.body)
            self.assertEqual(daemon.request('GET', '/data/kept').body, data)

    def test_killed_while_registering(self):
        """What a shard was answered for is there; without an answer the shard is sent again."""
        with Daemon(tls=False) as daemon:
            self.assertEqual(daemon.request('PUT', '/data').status, 200)
            cas = xet.Cas(daemon, 'main/data')
            xorb = xet.Xorb(pieces_of(90, 20))
            self.assertEqual(cas.put_xorb(xorb).status, 200)
            shard, names = xet.Shard(), []
            for first in range(20):
                for end in range(first + 1, 21):
                    names.append(xet.file_hash(xorb.entries[first:end]))
                    shard.add_file(names[-1], [xet.term(xorb, first, end)])
            connection = daemon.connect()
            connection.request('POST', '/xet/v1/shards', body=shard.body(), headers={'Authorization': f'Bearer {cas.token}'})
            time.sleep(0.01)
            daemon.kill()
            connection.close()
            daemon.start()
            cas = xet.Cas(daemon, 'main/data')
            self.assertEqual(cas.put_shard(shard).status, 200)
            for name in random.Random(1).sample(names, 30):
                self.assertEqual(cas.reconstruction(name).status, 200)


if __name__ == '__main__':
    unittest.main()
