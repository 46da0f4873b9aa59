"""Reading objects that came in parts: part by part, by ranges, copied, described."""
import base64
import random
import unittest
import zlib

from tests.support.daemon import Daemon
from tests.support.s3 import Bucket, texts, tree

THREADS_MEET = False

PART = 5 << 20


def crc32(body):
    return base64.b64encode(zlib.crc32(body).to_bytes(4, 'big')).decode()


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.bucket = Bucket(cls.daemon, 'parts')
        source = random.Random(5)
        cls.pieces = [source.randbytes(PART), source.randbytes(PART), source.randbytes(1000)]
        cls.whole = b''.join(cls.pieces)
        cls.composite = cls.bucket.upload('composite', cls.pieces, x_amz_checksum_algorithm='CRC32', Content_Type='text/x', x_amz_tagging='a=1')
        cls.full = cls.bucket.upload('full', cls.pieces, x_amz_checksum_algorithm='CRC32', x_amz_checksum_type='FULL_OBJECT')
        assert cls.composite.status == 200 and cls.full.status == 200, cls.composite.body + cls.full.body

    @classmethod
    def tearDownClass(cls):
        cls.bucket.close()
        cls.daemon.__exit__()

    def get(self, key, method='GET', query=None, **headers):
        named = {'x-amz-checksum-mode': 'ENABLED', **{name.replace('_', '-'): value for name, value in headers.items()}}
        return self.bucket.ask(method, key, query=query, headers=named)

    def test_part_by_part(self):
        for key in ('composite', 'full'):
            begin = 0
            for number, piece in enumerate(self.pieces, 1):
                with self.subTest(key=key, part=number):
                    got = self.get(key, query={'partNumber': number})
                    self.assertEqual((got.status, got.body == piece, got.headers['x-amz-mp-parts-count']), (206, True, '3'))
                    self.assertEqual(got.headers['Content-Range'], f'bytes {begin}-{begin + len(piece) - 1}/{len(self.whole)}')
                    self.assertEqual(got.headers['x-amz-checksum-crc32'], crc32(piece))
                    head = self.get(key, method='HEAD', query={'partNumber': number})
                    self.assertEqual((head.status, head.headers['Content-Length'], head.headers['x-amz-checksum-crc32']), (206, str(len(piece)), crc32(piece)))
                begin += len(piece)
            self.assertEqual(self.get(key, query='partNumber=4').code(), 'InvalidPart')

    def test_checksum_of_the_whole(self):
        digests = b''.join(zlib.crc32(piece).to_bytes(4, 'big') for piece in self.pieces)
        got = self.get('composite')
        self.assertEqual((got.body == self.whole, got.headers['x-amz-checksum-crc32'], got.headers['x-amz-checksum-type']),
                         (True, crc32(digests) + '-3', 'COMPOSITE'))
        got = self.get('full', method='HEAD')
        self.assertEqual((got.headers['x-amz-checksum-crc32'], got.headers['x-amz-checksum-type']), (crc32(self.whole), 'FULL_OBJECT'))
        self.assertIsNone(got.headers['x-amz-mp-parts-count'])

    def test_ranges_have_a_checksum_only_when_they_are_a_part(self):
        table = [(0, PART - 1, self.pieces[0]), (PART, 2 * PART - 1, self.pieces[1]), (2 * PART, len(self.whole) - 1, self.pieces[2]),
                 (0, PART, None), (1, PART, None), (0, len(self.whole) - 1, None), (PART, len(self.whole) - 1, None), (0, 0, None)]
        for first, last, piece in table:
            with self.subTest(first=first, last=last):
                got = self.get('full', Range=f'bytes={first}-{last}')
                self.assertEqual((got.status, got.body == self.whole[first:last + 1]), (206, True))
                self.assertEqual(got.headers['x-amz-checksum-crc32'], crc32(piece) if piece else None)

    def test_attributes(self):
        headers = {'x-amz-object-attributes': 'ObjectParts,Checksum,ETag', 'x-amz-max-parts': '2'}
        first = tree(self.bucket.ask('GET', 'composite', query='attributes', headers=headers))
        self.assertTrue(first.findtext('ETag').endswith('-3'))
        self.assertTrue(first.findtext('Checksum/ChecksumCRC32').endswith('-3'))
        parts = first.find('ObjectParts')
        self.assertEqual([parts.findtext(name) for name in ('PartsCount', 'PartNumberMarker', 'NextPartNumberMarker', 'MaxParts', 'IsTruncated')],
                         ['3', '0', '2', '2', 'true'])
        self.assertEqual(texts(parts, 'Part/ChecksumCRC32'), [crc32(piece) for piece in self.pieces[:2]])
        rest = tree(self.bucket.ask('GET', 'composite', query='attributes', headers={**headers, 'x-amz-part-number-marker': '2'})).find('ObjectParts')
        self.assertEqual((texts(rest, 'Part/PartNumber'), texts(rest, 'Part/Size'), rest.findtext('IsTruncated')), (['3'], ['1000'], 'false'))

    def test_copies_keep_the_parts(self):
        copied = self.bucket.copy('parts/composite', 'copy')
        self.assertEqual(copied.status, 200, copied.body)
        got = self.get('copy')
        self.assertEqual((got.body == self.whole, got.headers['ETag'], got.headers['Content-Type'], got.headers['x-amz-tagging-count']),
                         (True, tree(self.composite).findtext('ETag'), 'text/x', '1'))
        self.assertEqual(self.get('copy', query='partNumber=3').body, self.pieces[2])
        recomputed = tree(self.bucket.copy('parts/composite', 'copy', x_amz_checksum_algorithm='CRC32'))
        self.assertEqual((recomputed.findtext('ChecksumCRC32'), recomputed.findtext('ChecksumType')), (crc32(self.whole), 'FULL_OBJECT'))


if __name__ == '__main__':
    unittest.main()
