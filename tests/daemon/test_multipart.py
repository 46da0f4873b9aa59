"""Multipart uploads over the S3 face: raw requests with bearer tokens, as any HTTP client would send them."""
import base64
import hashlib
import os
import random
import threading
import unittest
import urllib.parse
import xml.etree.ElementTree as ElementTree
import zlib

from tests.support.daemon import Daemon, bytes_alone

MIB = 1 << 20
PART = 5 * MIB
NAMESPACE = '{http://s3.amazonaws.com/doc/2006-03-01/}'


def element(body, name):
    found = ElementTree.fromstring(body).find(f'.//{NAMESPACE}{name}')
    return None if found is None else found.text


def elements(body, name):
    return [found.text for found in ElementTree.fromstring(body).iter(NAMESPACE + name)]


def crc32(data):
    return base64.b64encode(zlib.crc32(data).to_bytes(4, 'big')).decode()


def multipart_etag(parts):
    return f'"{hashlib.md5(b"".join(hashlib.md5(part).digest() for part in parts)).hexdigest()}-{len(parts)}"'


class Uploads:
    """Multipart requests to one daemon and bucket."""

    def __init__(self, daemon, bucket):
        self.daemon = daemon
        self.bucket = bucket

    def target(self, key, **query):
        return f'/{self.bucket}/{urllib.parse.quote(key)}?{urllib.parse.urlencode(query)}'

    def create(self, key, **headers):
        reply = self.daemon.request('POST', f'/{self.bucket}/{urllib.parse.quote(key)}?uploads', headers=dashed(headers))
        assert reply.status == 200, reply.body
        return element(reply.body, 'UploadId')

    def put(self, key, upload, number, data, connection=None, **headers):
        return self.daemon.request('PUT', self.target(key, partNumber=number, uploadId=upload), data, dashed(headers), connection=connection)

    def copy(self, key, upload, number, source, **headers):
        return self.put(key, upload, number, None, x_amz_copy_source=source, **headers)

    def complete(self, key, upload, parts, **headers):
        """`parts`: (number, ETag) or (number, ETag, further XML)."""
        rows = ''.join(f'<Part><PartNumber>{part[0]}</PartNumber><ETag>{part[1]}</ETag>{"".join(part[2:])}</Part>' for part in parts)
        body = f'<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{rows}</CompleteMultipartUpload>'
        return self.daemon.request('POST', self.target(key, uploadId=upload), body.encode(), dashed(headers))

    def abort(self, key, upload):
        return self.daemon.request('DELETE', self.target(key, uploadId=upload))

    def parts(self, key, upload, **query):
        return self.daemon.request('GET', self.target(key, uploadId=upload, **query))

    def get(self, key, **headers):
        return self.daemon.request('GET', f'/{self.bucket}/{urllib.parse.quote(key)}', headers=dashed(headers))

    def upload(self, key, parts, **headers):
        """Whole: numbered from 1."""
        upload = self.create(key, **headers)
        rows = [(number, self.put(key, upload, number, data).headers['ETag']) for number, data in enumerate(parts, 1)]
        reply = self.complete(key, upload, rows)
        assert reply.status == 200, reply.body
        return reply


def dashed(headers):
    return {name.replace('_', '-'): value for name, value in headers.items()}


class Multipart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()
        assert cls.daemon.request('PUT', '/parts').status == 200
        cls.uploads = Uploads(cls.daemon, 'parts')
        source = random.Random(5)
        cls.data = [source.randbytes(PART), source.randbytes(PART + 77777), source.randbytes(123457)]
        cls.whole = b''.join(cls.data)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def expect(self, reply, status, code):
        self.assertEqual((reply.status, reply.code()), (status, code), reply.body)
        return reply

    def three(self, key, **headers):
        """Three parts uploaded out of order: the upload and its list."""
        upload = self.uploads.create(key, **headers)
        etags = {}
        for number in (3, 1, 2):
            reply = self.uploads.put(key, upload, number, self.data[number - 1])
            self.assertEqual(reply.status, 200, reply.body)
            etags[number] = reply.headers['ETag']
            self.assertEqual(etags[number], f'"{hashlib.md5(self.data[number - 1]).hexdigest()}"')
        return upload, [(number, etags[number]) for number in (1, 2, 3)]

    def test_parts_become_an_object(self):
        key = 'models/ä b+c/weights.bin'
        upload, rows = self.three(key, Content_Type='application/x-weights', x_amz_meta_step='7')
        self.assertEqual(self.uploads.get(key).status, 404)
        reply = self.uploads.complete(key, upload, rows)
        self.assertEqual(reply.status, 200, reply.body)
        etag = multipart_etag(self.data)
        self.assertEqual((element(reply.body, 'ETag'), element(reply.body, 'Key'), element(reply.body, 'Bucket')), (etag, key, 'parts'))
        self.assertEqual(element(reply.body, 'ChecksumType'), 'FULL_OBJECT')
        self.assertTrue(element(reply.body, 'Location').endswith('/parts/' + urllib.parse.quote(key)))
        got = self.uploads.get(key)
        self.assertEqual((got.status, got.headers['ETag'], got.headers['Content-Type'], got.headers['x-amz-meta-step']),
                         (200, etag, 'application/x-weights', '7'))
        self.assertTrue(got.body == self.whole)
        listed = self.daemon.request('GET', '/parts?list-type=2&prefix=models/')
        self.assertEqual((elements(listed.body, 'ETag'), elements(listed.body, 'Size')), ([etag], [str(len(self.whole))]))

    @bytes_alone
    def test_ranges_over_the_borders_of_parts(self):
        key = 'ranged'
        upload, rows = self.three(key)
        self.assertEqual(self.uploads.complete(key, upload, rows).status, 200)
        second = PART
        third = PART + len(self.data[1])
        for first, last in ((0, 0), (second - 1, second), (second, second), (second - 100000, second + 200000), (third - 5, third + 5),
                            (10, third + 10), (third, len(self.whole) - 1), (0, len(self.whole) - 1)):
            got = self.uploads.get(key, Range=f'bytes={first}-{last}')
            self.assertEqual((got.status, got.headers['Content-Range']), (206, f'bytes {first}-{last}/{len(self.whole)}'))
            self.assertTrue(got.body == self.whole[first:last + 1], (first, last))
        got = self.daemon.request('GET', '/parts/ranged?partNumber=2')
        self.assertEqual((got.status, got.headers['x-amz-mp-parts-count']), (206, '3'))
        self.assertTrue(got.body == self.data[1])

    @bytes_alone
    def test_the_list_is_judged(self):
        key = 'judged'
        upload, rows = self.three(key)
        other = '"00000000000000000000000000000000"'
        self.expect(self.uploads.complete(key, upload, []), 400, 'MalformedXML')
        self.expect(self.uploads.complete(key, upload, [rows[1], rows[0]]), 400, 'InvalidPartOrder')
        wrong = self.expect(self.uploads.complete(key, upload, [rows[0], (2, other)]), 400, 'InvalidPart')
        self.assertIn(b'<PartNumber>2</PartNumber>', wrong.body)
        self.assertIn(f'<UploadId>{upload}</UploadId>'.encode(), wrong.body)
        self.expect(self.uploads.complete(key, upload, [rows[0], (4, other)]), 400, 'InvalidPart')
        self.assertEqual(self.uploads.put(key, upload, 4, b'x').status, 200)
        small = self.expect(self.uploads.complete(key, upload, [rows[0], rows[2], (4, f'"{hashlib.md5(b"x").hexdigest()}"')]), 400,
                            'EntityTooSmall')
        for text in (b'<ProposedSize>123457</ProposedSize>', b'<MinSizeAllowed>5242880</MinSizeAllowed>', b'<PartNumber>3</PartNumber>'):
            self.assertIn(text, small.body)
        self.expect(self.uploads.complete(key, upload, rows, x_amz_mp_object_size='1'), 400, 'InvalidRequest')
        bad = self.daemon.request('POST', self.uploads.target(key, uploadId=upload), b'<CompleteMultipartUpload><Part>')
        self.expect(bad, 400, 'MalformedXML')
        self.assertEqual(self.uploads.get(key).status, 404)
        # Part 4 is left out, ETags come in all spellings.
        spelled = [(1, rows[0][1].strip('"')), (2, rows[1][1].replace('"', '&quot;')), rows[2]]
        self.assertEqual(self.uploads.complete(key, upload, spelled, x_amz_mp_object_size=str(len(self.whole))).status, 200)
        self.assertTrue(self.uploads.get(key).body == self.whole)

    def test_completing_twice_is_the_same(self):
        key = 'twice'
        upload, rows = self.three(key)
        first = self.uploads.complete(key, upload, rows)
        again = self.uploads.complete(key, upload, rows)
        self.assertEqual((first.status, again.status), (200, 200))
        self.assertEqual(first.body, again.body)
        self.expect(self.uploads.complete(key, upload, rows[:2]), 404, 'NoSuchUpload')
        self.expect(self.uploads.put(key, upload, 1, b'late'), 404, 'NoSuchUpload')
        self.expect(self.uploads.parts(key, upload), 404, 'NoSuchUpload')
        self.expect(self.uploads.abort(key, upload), 404, 'NoSuchUpload')

    @bytes_alone
    def test_unknown_uploads_and_parts(self):
        key = 'unknown'
        upload = self.uploads.create(key)
        for id_ in ('0' * 32, 'nonsense', ''):
            self.expect(self.uploads.put(key, id_, 1, b'x'), 404, 'NoSuchUpload')
            self.expect(self.uploads.complete(key, id_, [(1, '"00"')]), 404, 'NoSuchUpload')
            self.expect(self.uploads.abort(key, id_), 404, 'NoSuchUpload')
        self.expect(self.uploads.put('another', upload, 1, b'x'), 404, 'NoSuchUpload')
        for number in ('0', '10001', '-1', 'x', ''):
            self.expect(self.uploads.put(key, upload, number, b'x'), 400, 'InvalidArgument')
        self.expect(
            self.daemon.request('PUT', f'/parts/{key}?uploadId={upload}', b'x'),
            405,
            'MethodNotAllowed',
        )
        self.expect(self.daemon.request('POST', '/nobucket/k?uploads'), 404, 'NoSuchBucket')
        self.expect(self.daemon.request('PUT', f'/nobucket/k?partNumber=1&uploadId={upload}', b'x'), 404, 'NoSuchBucket')
        self.assertEqual(self.uploads.abort(key, upload).status, 204)
        self.expect(self.uploads.abort(key, upload), 404, 'NoSuchUpload')

    def test_checksums_of_parts_and_whole(self):
        key = 'composite'
        upload = self.uploads.create(key, x_amz_checksum_algorithm='CRC32')
        rows = []
        for number, data in enumerate(self.data, 1):
            reply = self.uploads.put(key, upload, number, data, x_amz_checksum_crc32=crc32(data))
            self.assertEqual((reply.status, reply.headers['x-amz-checksum-crc32']), (200, crc32(data)), reply.body)
            rows.append((number, reply.headers['ETag'], f'<ChecksumCRC32>{crc32(data)}</ChecksumCRC32>'))
        wrong = self.expect(self.uploads.put(key, upload, 4, b'x', x_amz_checksum_crc32=crc32(b'y')), 400, 'BadDigest')
        self.assertIn(f'<ExpectedDigest>{crc32(b"y")}</ExpectedDigest>'.encode(), wrong.body)
        self.assertIn(f'<CalculatedDigest>{crc32(b"x")}</CalculatedDigest>'.encode(), wrong.body)
        self.expect(self.uploads.put(key, upload, 4, b'x', x_amz_checksum_sha1=base64.b64encode(hashlib.sha1(b'x').digest()).decode()), 400,
                    'InvalidRequest')
        self.expect(self.uploads.put(key, upload, 4, b'x', Content_MD5=base64.b64encode(hashlib.md5(b'y').digest()).decode()), 400, 'BadDigest')
        self.expect(self.uploads.complete(key, upload, [row[:2] for row in rows]), 400, 'InvalidRequest')
        sha1 = f'<ChecksumSHA1>{base64.b64encode(hashlib.sha1(self.data[0]).digest()).decode()}</ChecksumSHA1>'
        for listed, code in (
            ('<ChecksumCRC32>bad</ChecksumCRC32>', 'InvalidArgument'),
            (rows[0][2] + sha1, 'InvalidArgument'),
            (rows[0][2] * 2, 'InvalidArgument'),
            (rows[1][2], 'InvalidPart'),
            (sha1, 'BadDigest'),
            ('<ChecksumCRC32></ChecksumCRC32>', 'InvalidRequest'),
        ):
            self.expect(
                self.uploads.complete(key, upload, [(*rows[0][:2], listed)] + rows[1:]), 400, code
            )
        value = crc32(b''.join(zlib.crc32(data).to_bytes(4, 'big') for data in self.data))
        for sent in (crc32(b'other'), f'{crc32(b"other")}-3', f'{value}-2', f'{value}-4294967295'):
            wrong = self.expect(self.uploads.complete(key, upload, rows, x_amz_checksum_crc32=sent), 400, 'BadDigest')
            self.assertIn(f'<ExpectedDigest>{sent}</ExpectedDigest><CalculatedDigest>{value}-3</CalculatedDigest>'.encode(), wrong.body)
        wrong = self.expect(self.uploads.complete(key, upload, rows, x_amz_checksum_crc32='bad'), 400, 'BadDigest')
        self.assertIn(b'<ExpectedDigest>bad</ExpectedDigest>', wrong.body)
        self.expect(self.uploads.complete(key, upload, rows, x_amz_checksum_type='FULL_OBJECT'), 400, 'InvalidRequest')
        listed = self.uploads.parts(key, upload)
        self.assertEqual((element(listed.body, 'ChecksumAlgorithm'), element(listed.body, 'ChecksumType')), ('CRC32', 'COMPOSITE'))
        self.assertEqual(elements(listed.body, 'ChecksumCRC32'), [crc32(data) for data in self.data])
        reply = self.uploads.complete(key, upload, rows, x_amz_checksum_crc32=f'{value}-3', x_amz_checksum_type='COMPOSITE')
        self.assertEqual((element(reply.body, 'ChecksumCRC32'), element(reply.body, 'ChecksumType')), (f'{value}-3', 'COMPOSITE'), reply.body)
        self.assertEqual(self.uploads.get(key, x_amz_checksum_mode='ENABLED').headers['x-amz-checksum-crc32'], f'{value}-3')

        upload = self.uploads.create('full', x_amz_checksum_algorithm='CRC32', x_amz_checksum_type='FULL_OBJECT')
        rows = [(number, self.uploads.put('full', upload, number, data).headers['ETag']) for number, data in enumerate(self.data, 1)]
        self.expect(self.uploads.complete('full', upload, rows, x_amz_checksum_crc32=value), 400, 'BadDigest')
        self.expect(
            self.uploads.complete('full', upload, [(*rows[0], sha1)] + rows[1:]), 400, 'BadDigest'
        )
        reply = self.uploads.complete('full', upload, rows, x_amz_checksum_crc32=crc32(self.whole))
        self.assertEqual((element(reply.body, 'ChecksumCRC32'), element(reply.body, 'ChecksumType')), (crc32(self.whole), 'FULL_OBJECT'))

        for headers in ({'x_amz_checksum_algorithm': 'CRC64NVME', 'x_amz_checksum_type': 'COMPOSITE'}, {'x_amz_checksum_algorithm': 'SHA256',
                        'x_amz_checksum_type': 'FULL_OBJECT'}, {'x_amz_checksum_type': 'COMPOSITE'}, {'x_amz_checksum_algorithm': 'CRC33'}):
            self.expect(self.daemon.request('POST', '/parts/k?uploads', headers=dashed(headers)), 400, 'InvalidRequest')
        created = self.daemon.request('POST', '/parts/k?uploads', headers={'x-amz-checksum-algorithm': 'SHA256'})
        self.assertEqual((created.headers['x-amz-checksum-algorithm'], created.headers['x-amz-checksum-type']), ('SHA256', 'COMPOSITE'))
        self.uploads.abort('k', element(created.body, 'UploadId'))

    @bytes_alone
    def test_a_part_may_bring_any_checksum_when_none_was_named(self):
        upload = self.uploads.create('unnamed')
        reply = self.uploads.put('unnamed', upload, 1, self.data[2], x_amz_checksum_crc32=crc32(self.data[2]), x_amz_sdk_checksum_algorithm='CRC32')
        self.assertEqual((reply.status, reply.headers['x-amz-checksum-crc32']), (200, crc32(self.data[2])), reply.body)
        self.expect(self.uploads.put('unnamed', upload, 1, b'x', x_amz_checksum_crc32=crc32(b'y')), 400, 'BadDigest')
        row = (1, reply.headers['ETag'], f'<ChecksumCRC32>{crc32(self.data[2])}</ChecksumCRC32>')
        reply = self.uploads.complete('unnamed', upload, [row])
        self.assertEqual(reply.status, 200, reply.body)
        self.assertIsNotNone(element(reply.body, 'ChecksumCRC64NVME'))

    def test_checksums_that_nobody_named(self):
        key = 'nameless'
        upload = self.uploads.create(key)
        self.assertEqual(self.daemon.request('PUT', '/parts/copied', self.data[2]).status, 200)
        reply = self.uploads.put(key, upload, 1, self.data[0])
        copied = self.uploads.copy(key, upload, 2, 'parts/copied')
        replies = (
            reply,
            copied,
            self.uploads.parts(key, upload),
            self.daemon.request('GET', f'/parts?uploads&prefix={key}'),
        )
        for shown in replies:
            self.assertEqual(shown.status, 200, shown.body)
            self.assertNotIn(b'Checksum', shown.body)
            self.assertFalse([name for name in shown.headers if 'checksum' in name])
        rows = [(1, reply.headers['ETag']), (2, element(copied.body, 'ETag'))]
        done = self.uploads.complete(key, upload, rows, x_amz_checksum_crc64nvme='AAAAAAAAAAA=')
        self.assertEqual(
            (done.status, element(done.body, 'ChecksumType')), (200, 'FULL_OBJECT'), done.body
        )
        self.assertNotEqual(element(done.body, 'ChecksumCRC64NVME'), 'AAAAAAAAAAA=')

    def test_copied_parts_have_the_uploads_checksum(self):
        upload = self.uploads.create('taken', x_amz_checksum_algorithm='SHA256')
        sha1 = base64.b64encode(hashlib.sha1(self.data[2]).digest()).decode()
        self.daemon.request('PUT', '/parts/other', self.data[2], {'x-amz-checksum-sha1': sha1})
        copied = self.uploads.copy('taken', upload, 1, 'parts/other').body
        self.assertEqual(
            (element(copied, 'ChecksumSHA256'), element(copied, 'ChecksumSHA1')),
            (base64.b64encode(hashlib.sha256(self.data[2]).digest()).decode(), None),
        )

    def test_one_part_shows_its_own_checksum(self):
        rows = []
        upload = self.uploads.create('each', x_amz_checksum_algorithm='CRC32')
        for number, data in enumerate(self.data, 1):
            etag = self.uploads.put('each', upload, number, data).headers['ETag']
            rows.append((number, etag, f'<ChecksumCRC32>{crc32(data)}</ChecksumCRC32>'))
        self.assertEqual(self.uploads.complete('each', upload, rows).status, 200)
        for method in ('GET', 'HEAD'):
            for number, data in enumerate(self.data, 1):
                got = self.daemon.request(
                    method,
                    f'/parts/each?partNumber={number}',
                    headers={'x-amz-checksum-mode': 'ENABLED'},
                )
                self.assertEqual(
                    (got.status, got.headers['x-amz-checksum-crc32']), (206, crc32(data))
                )

        upload = self.uploads.create('nothing', x_amz_checksum_algorithm='CRC32')
        row = (
            1,
            self.uploads.put('nothing', upload, 1, b'').headers['ETag'],
            f'<ChecksumCRC32>{crc32(b"")}</ChecksumCRC32>',
        )
        self.assertEqual(self.uploads.complete('nothing', upload, [row]).status, 200)
        got = self.daemon.request(
            'GET', '/parts/nothing?partNumber=1', headers={'x-amz-checksum-mode': 'ENABLED'}
        )
        self.assertEqual((got.status, got.headers['x-amz-checksum-crc32']), (200, crc32(b'')))

    def test_numbers_and_sources_are_judged_first(self):
        upload = self.uploads.create('numbers')
        etag = self.uploads.put('numbers', upload, 1, b'x').headers['ETag']
        for number in ('0', '-4', '10001', '99999999999'):
            self.expect(
                self.uploads.complete('numbers', upload, [(number, etag)]), 400, 'InvalidArgument'
            )
        self.expect(self.uploads.complete('numbers', upload, [('one', etag)]), 400, 'MalformedXML')
        for source in (
            'bucket',
            'bucket/',
            '/',
            'bucket/%ZZ',
            '100%/k',
            'bucket/%C3%',
            '192.168.1.1/k',
            'my-buc@k&()t/k',
            '2001:db8::1/k',
        ):
            for id_ in (upload, '0' * 32):
                self.expect(self.uploads.copy('numbers', id_, 1, source), 400, 'InvalidArgument')
        reply = self.daemon.request(
            'PUT', '/no-such-bucket/k?partNumber=1&uploadId=x', headers={'x-amz-copy-source': 'bad'}
        )
        self.expect(reply, 404, 'NoSuchBucket')

    def test_pages_of_uploads_name_both_markers(self):
        self.assertEqual(self.daemon.request('PUT', '/paged-uploads').status, 200)
        uploads = Uploads(self.daemon, 'paged-uploads')
        ids = [uploads.create(key) for key in ('abc/x', 'foo/bar', 'foo/baz', 'xyz/x', 'zzz')]
        seen, query = [], ''
        for wanted in (ids[1], None):
            page = self.daemon.request(
                'GET', f'/paged-uploads?uploads&delimiter=/&max-uploads=2{query}'
            ).body
            seen += elements(page, 'Prefix')[1:]
            if wanted:
                self.assertEqual(
                    (element(page, 'NextKeyMarker'), element(page, 'NextUploadIdMarker')),
                    ('foo/', wanted),
                )
            query = f'&key-marker=foo/&upload-id-marker={wanted}'
        self.assertEqual((seen, elements(page, 'Key')), (['abc/', 'foo/', 'xyz/'], ['zzz']))

    def test_the_last_upload_of_a_part_counts(self):
        key = 'again'
        upload = self.uploads.create(key)
        self.uploads.put(key, upload, 1, self.data[1])
        etag = self.uploads.put(key, upload, 1, self.data[0]).headers['ETag']
        self.assertEqual(elements(self.uploads.parts(key, upload).body, 'ETag'), [etag])
        self.assertEqual(self.uploads.complete(key, upload, [(1, etag)]).status, 200)
        self.assertTrue(self.uploads.get(key).body == self.data[0])

    def test_parts_side_by_side(self):
        key = 'concurrent'
        upload = self.uploads.create(key)
        source = random.Random(11)
        parts = [source.randbytes(PART + number) for number in range(8)]
        etags = {}

        def send(numbers):
            for number in numbers:
                etags[number] = self.uploads.put(key, upload, number, parts[number - 1]).headers['ETag']
        threads = [threading.Thread(target=send, args=([8 - lane, 4 - lane],)) for lane in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        reply = self.uploads.complete(key, upload, sorted(etags.items()))
        self.assertEqual(element(reply.body, 'ETag'), multipart_etag(parts), reply.body)
        self.assertEqual(hashlib.md5(self.uploads.get(key).body).digest(), hashlib.md5(b''.join(parts)).digest())

    def test_completions_side_by_side_agree(self):
        key = 'race'
        upload, rows = self.three(key)
        bodies = []
        threads = [threading.Thread(target=lambda: bodies.append(self.uploads.complete(key, upload, rows))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([reply.status for reply in bodies], [200] * 4)
        self.assertEqual(len({reply.body for reply in bodies}), 1)

    def test_aborting_while_a_part_comes(self):
        key = 'aborted'
        upload = self.uploads.create(key)
        self.uploads.put(key, upload, 1, self.data[0])
        connection = self.daemon.connect()
        connection.putrequest('PUT', self.uploads.target(key, partNumber=2, uploadId=upload))
        connection.putheader('Authorization', 'Bearer root-token-for-tests-0123456789abcdef')
        connection.putheader('Content-Length', str(PART))
        connection.endheaders()
        connection.send(self.data[0][:MIB])
        self.assertEqual(self.uploads.abort(key, upload).status, 204)
        connection.send(self.data[0][MIB:])
        self.assertEqual(connection.getresponse().status, 404)
        connection.close()
        self.expect(self.uploads.complete(key, upload, [(1, 'x')]), 404, 'NoSuchUpload')
        self.assertEqual(self.uploads.get(key).status, 404)

    @bytes_alone
    def test_conditional_completion(self):
        key = 'conditional'
        upload, rows = self.three(key)
        self.expect(self.uploads.complete(key, upload, rows, If_Match='"0123"'), 404, 'NoSuchKey')
        self.assertEqual(self.daemon.request('PUT', '/parts/conditional', b'first').status, 200)
        self.expect(self.uploads.complete(key, upload, rows, If_None_Match='*'), 412, 'PreconditionFailed')
        self.expect(self.uploads.complete(key, upload, rows, If_Match='"0123"'), 412, 'PreconditionFailed')
        self.assertEqual(self.uploads.get(key).body, b'first')
        etag = f'"{hashlib.md5(b"first").hexdigest()}"'
        self.assertEqual(self.uploads.complete(key, upload, rows, If_Match=etag).status, 200)
        # Who did not hear the answer asks again, and is not refused by what it did itself.
        self.assertEqual(self.uploads.complete(key, upload, rows, If_Match=etag).status, 200)

    @bytes_alone
    def test_listing_parts_in_pages(self):
        key = 'listed'
        upload = self.uploads.create(key, x_amz_storage_class='STANDARD_IA')
        for number in (1, 3, 5, 7, 9):
            self.uploads.put(key, upload, number, b'x' * number)
        page = self.uploads.parts(key, upload, **{'max-parts': 2})
        self.assertEqual((elements(page.body, 'PartNumber'), element(page.body, 'IsTruncated'), element(page.body, 'NextPartNumberMarker')),
                         (['1', '3'], 'true', '3'))
        self.assertEqual((element(page.body, 'StorageClass'), element(page.body, 'MaxParts'), element(page.body, 'UploadId')),
                         ('STANDARD_IA', '2', upload))
        page = self.uploads.parts(key, upload, **{'max-parts': 1000, 'part-number-marker': 3})
        self.assertEqual((elements(page.body, 'Size'), element(page.body, 'IsTruncated')), (['5', '7', '9'], 'false'))
        self.expect(self.uploads.parts(key, upload, **{'max-parts': 'many'}), 400, 'InvalidArgument')
        self.uploads.abort(key, upload)

    @bytes_alone
    def test_listing_uploads(self):
        assert self.daemon.request('PUT', '/listing').status == 200
        uploads = Uploads(self.daemon, 'listing')
        made = [(key, uploads.create(key)) for key in ('a/1', 'a/2', 'b', 'b', 'c')]
        whole = self.daemon.request('GET', '/listing?uploads')
        self.assertEqual(list(zip(elements(whole.body, 'Key'), elements(whole.body, 'UploadId'))), made)
        rolled = self.daemon.request('GET', '/listing?uploads&delimiter=/&max-uploads=2')
        self.assertEqual((elements(rolled.body, 'Key'), element(rolled.body, 'IsTruncated')), (['b'], 'true'))
        self.assertIn(b'<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>', rolled.body)
        query = urllib.parse.urlencode({'uploads': '', 'delimiter': '/', 'key-marker': element(rolled.body, 'NextKeyMarker'),
                                        'upload-id-marker': element(rolled.body, 'NextUploadIdMarker')})
        rest = self.daemon.request('GET', f'/listing?{query}')
        self.assertEqual((elements(rest.body, 'UploadId'), element(rest.body, 'IsTruncated')), ([made[3][1], made[4][1]], 'false'))
        self.assertEqual(elements(self.daemon.request('GET', '/listing?uploads&prefix=a/2').body, 'Key'), ['a/2'])
        self.assertEqual(elements(self.daemon.request('GET', '/listing?list-type=2').body, 'Key'), [])
        # Open uploads do not keep a bucket.
        self.assertEqual(self.daemon.request('DELETE', '/listing').status, 204)
        self.expect(uploads.put('b', made[2][1], 1, b'x'), 404, 'NoSuchBucket')

    def test_copied_parts(self):
        self.assertEqual(self.daemon.request('PUT', '/parts/source', self.whole).status, 200)
        etag = self.daemon.request('HEAD', '/parts/source').headers['ETag']
        upload = self.uploads.create('copied')
        ranges = [(7, 7 + PART - 1), (PART, 2 * PART + 1234), (100, 200)]
        rows = []
        for number, (first, last) in enumerate(ranges, 1):
            reply = self.uploads.copy('copied', upload, number, '/parts/source', x_amz_copy_source_range=f'bytes={first}-{last}',
                                      x_amz_copy_source_if_match=etag)
            self.assertEqual(reply.status, 200, reply.body)
            self.assertEqual(element(reply.body, 'ETag'), f'"{hashlib.md5(self.whole[first:last + 1]).hexdigest()}"')
            rows.append((number, element(reply.body, 'ETag')))
        self.assertEqual(self.uploads.complete('copied', upload, rows).status, 200)
        self.assertTrue(self.uploads.get('copied').body == b''.join(self.whole[first:last + 1] for first, last in ranges))

        upload = self.uploads.create('refused')
        for text in ('0-1', 'bytes=5-4', 'bytes=-5', 'bytes=5-', 'bytes=0-1,3-4', 'bytes=a-b'):
            self.expect(self.uploads.copy('refused', upload, 1, '/parts/source', x_amz_copy_source_range=text), 400, 'InvalidArgument')
        beyond = self.uploads.copy('refused', upload, 1, '/parts/source', x_amz_copy_source_range=f'bytes=0-{len(self.whole)}')
        self.expect(beyond, 416, 'InvalidRange')
        told = f'<RangeRequested>bytes=0-{len(self.whole)}</RangeRequested><ActualObjectSize>{len(self.whole)}</ActualObjectSize>'
        self.assertIn(told.encode(), beyond.body)
        self.expect(self.uploads.copy('refused', upload, 1, '/parts/source', x_amz_copy_source_if_none_match=etag), 412, 'PreconditionFailed')
        self.expect(self.uploads.copy('refused', upload, 1, '/parts/none'), 404, 'NoSuchKey')
        self.expect(self.uploads.copy('refused', upload, 1, '/nobucket/k'), 404, 'NoSuchBucket')
        self.expect(self.uploads.copy('refused', '0' * 32, 1, '/parts/source'), 404, 'NoSuchUpload')
        self.uploads.abort('refused', upload)

    @bytes_alone
    def test_copying_takes_read_permission(self):
        self.assertEqual(self.daemon.request('PUT', '/parts/secret/x', b'secret').status, 200)
        token = self.daemon.add_key('--name', 'writer', '--grant', 'parts/open/=write')['token']
        reply = self.daemon.request('POST', '/parts/open/k?uploads', token=token)
        self.assertEqual(reply.status, 200, reply.body)
        upload = element(reply.body, 'UploadId')
        target = self.uploads.target('open/k', partNumber=1, uploadId=upload)
        reply = self.daemon.request('PUT', target, headers={'x-amz-copy-source': '/parts/secret/x'}, token=token)
        self.expect(reply, 403, 'AccessDenied')
        self.assertEqual(self.daemon.request('PUT', target, b'own', token=token).status, 200)
        self.expect(self.daemon.request('POST', '/parts/other?uploads', token=token), 403, 'AccessDenied')

    @bytes_alone
    def test_ten_thousand_parts(self):
        """All but the last need 5 MiB: the first 9,999 are copies by reference of one object, a few of them uploaded."""
        key = 'many'
        self.assertEqual(self.daemon.request('PUT', '/parts/block', self.data[0]).status, 200)
        upload = self.uploads.create(key)
        connection = self.daemon.connect()
        count = int(os.environ.get('DELTABUCKET_TEST_PARTS', '300'))
        step = 10000 // count
        rows = []
        for number in range(step, 10000, step):
            reply = self.uploads.put(key, upload, number, None, connection, x_amz_copy_source='/parts/block')
            self.assertEqual(reply.status, 200, reply.body)
            rows.append((number, element(reply.body, 'ETag')))
        rows.append((10000, self.uploads.put(key, upload, 10000, b'end', connection).headers['ETag']))
        reply = self.uploads.complete(key, upload, rows)
        self.assertEqual(reply.status, 200, reply.body)
        self.assertTrue(element(reply.body, 'ETag').endswith(f'-{len(rows)}"'))
        size = (len(rows) - 1) * PART + 3
        head = self.daemon.request('HEAD', '/parts/many')
        self.assertEqual(head.headers['Content-Length'], str(size))
        for at in (0, PART * (len(rows) // 2) - 50, size - 60):
            got = self.uploads.get(key, Range=f'bytes={at}-{min(at + 99, size - 1)}')
            wanted = (self.data[0] + self.data[0] + b'end')[at % PART:] if at + 100 < size else (self.data[0] + b'end')[-60:]
            self.assertTrue(got.body == wanted[:len(got.body)] and len(got.body) >= 60)
        connection.close()


class Killed(unittest.TestCase):
    def test_uploads_outlive_the_server(self):
        data = [random.Random(3).randbytes(PART), random.Random(4).randbytes(1000)]
        with Daemon(tls=False) as daemon:
            self.assertEqual(daemon.request('PUT', '/parts').status, 200)
            uploads = Uploads(daemon, 'parts')
            upload = uploads.create('k')
            rows = [(1, uploads.put('k', upload, 1, data[0]).headers['ETag'])]
            daemon.kill()
            daemon.start()
            rows.append((2, uploads.put('k', upload, 2, data[1]).headers['ETag']))
            daemon.kill()
            daemon.start()
            self.assertEqual(uploads.complete('k', upload, rows).status, 200)
            daemon.kill()
            daemon.start()
            self.assertEqual(uploads.complete('k', upload, rows).status, 200)
            self.assertTrue(uploads.get('k').body == b''.join(data))

    def test_a_kill_during_completion_leaves_all_or_nothing(self):
        data = [random.Random(5).randbytes(PART), random.Random(6).randbytes(1000)]
        with Daemon(tls=False) as daemon:
            self.assertEqual(daemon.request('PUT', '/parts').status, 200)
            uploads = Uploads(daemon, 'parts')
            for attempt in range(4):
                key = f'k{attempt}'
                upload = uploads.create(key)
                rows = [(number, uploads.put(key, upload, number, part).headers['ETag']) for number, part in enumerate(data, 1)]

                def complete():
                    try:
                        uploads.complete(key, upload, rows)
                    except OSError:
                        pass
                    except Exception:  # the connection broke somewhere inside http.client
                        pass
                thread = threading.Thread(target=complete)
                thread.start()
                thread.join(attempt * 0.002)
                daemon.kill()
                thread.join()
                daemon.start()
                if uploads.get(key).status == 404:
                    self.assertEqual(elements(uploads.parts(key, upload).body, 'PartNumber'), ['1', '2'])
                self.assertEqual(uploads.complete(key, upload, rows).status, 200)
                self.assertTrue(uploads.get(key).body == b''.join(data))


if __name__ == '__main__':
    unittest.main()
