"""The Xet client of these tests (tests.support.xet) against the published vectors: what it proves of the server is worth what it is itself."""
import os
import unittest

from tests.support import xet
from tests.support.daemon import DATA

THREADS_MEET = False

VECTORS = os.path.join(DATA, 'vectors')


def read_hex(name):
    with open(os.path.join(VECTORS, name)) as file:
        return bytes.fromhex(''.join(file.read().split()))


class XetSupport(unittest.TestCase):
    def test_merkle_vectors(self):
        leaves, cases = [], 0
        with open(os.path.join(VECTORS, 'merkle-vectors.txt')) as file:
            for line in file:
                words = line.split()
                if words[0] == 'case':
                    leaves = []
                elif words[0] == 'leaf':
                    leaves.append((xet.raw(words[1]), int(words[2])))
                elif words[0] == 'xorb':
                    self.assertEqual(xet.text(xet.aggregate(leaves)), words[1])
                    cases += 1
                elif words[0] == 'file' and words[1] == '0' * 64:
                    self.assertEqual(xet.text(xet.file_hash(leaves)), words[2])
        self.assertGreater(cases, 10)

    def test_shards(self):
        hello = xet.Xorb([b'Hello World!'])
        self.assertEqual(xet.shard_of(hello).body(), read_hex('hello-shard.hex'))
        answer = xet.parse_answer(read_hex('hello-dedup-response.hex'))
        self.assertEqual(answer.xorbs, [(hello.hash, hello.entries)])

    def test_chunks(self):
        data = bytes((7 * i + 13) & 255 for i in range(200000))
        self.assertEqual([len(piece) for piece in xet.chunks(data)], [131072, 68928])
        self.assertEqual(xet.text(xet.file_of(xet.Xorb(xet.chunks(data)))[0]),
                         'd88d9e0b760f32c90b7c6592b4cb85251c01bb797371e3c637087b96ac578723')
        pattern = [b'\x3b' * 131072] * 7 + [b'\x3b' * (1000000 - 7 * 131072)]
        self.assertEqual(xet.text(xet.Xorb(pattern).hash), 'a6b5a7f0bb38b6fd5fb39031eb7564e18ea0e7a0b7bea87de54ed1db8bc85884')


if __name__ == '__main__':
    unittest.main()
