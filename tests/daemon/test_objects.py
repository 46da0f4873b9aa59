"""Objects over the S3 face, as any HTTP client sees them."""
import base64
import hashlib
import os
import random
import unittest
import urllib.parse

from tests.support.daemon import Daemon

THREADS_MEET = False


class Objects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()
        cls.request = staticmethod(cls.daemon.request)
        assert cls.request('PUT', '/obj').status == 200

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def put(self, key, body, **headers):
        return self.request('PUT', '/obj/' + urllib.parse.quote(key), body, {name.replace('_', '-'): value for name, value in headers.items()})

    def test_round_trip_of_every_size_class(self):
        source = random.Random(1)
        for size in (0, 1, 1024, 1025, 8192, 262144, 262145, 3_000_000):
            with self.subTest(size=size):
                body = source.randbytes(size)
                reply = self.put(f'size/{size}', body)
                self.assertEqual(reply.status, 200, reply.body)
                self.assertEqual(reply.headers['ETag'], f'"{hashlib.md5(body).hexdigest()}"')
                got = self.request('GET', f'/obj/size/{size}')
                self.assertEqual((got.status, got.body), (200, body))
                self.assertEqual(got.headers['ETag'], reply.headers['ETag'])
                head = self.request('HEAD', f'/obj/size/{size}')
                self.assertEqual((head.status, head.headers['Content-Length'], head.body), (200, str(size), b''))

    def test_ranges(self):
        body = random.Random(2).randbytes(400_000)
        self.put('ranged', body)
        table = [
            ('bytes=0-0', 206, body[:1]), ('bytes=0-399999', 206, body), ('bytes=0-999999', 206, body), ('bytes=65530-131080', 206, body[65530:131081]),
            ('bytes=399999-', 206, body[-1:]), ('bytes=-10', 206, body[-10:]), ('bytes=-500000', 206, body),
            ('bytes=400000-', 416, None), ('bytes=-0', 416, None),
            ('bytes=10-5', 200, body), ('bytes=abc', 200, body), ('foo=0-1', 200, body), ('bytes=0-0,1-2', 200, body), ('bytes=,', 200, body),
        ]
        for header, status, want in table:
            with self.subTest(range=header):
                got = self.request('GET', '/obj/ranged', headers={'Range': header})
                self.assertEqual(got.status, status)
                if status == 416:
                    self.assertEqual(got.code(), 'InvalidRange')
                    self.assertEqual(got.headers['Content-Range'], 'bytes */400000')
                else:
                    self.assertEqual(got.body, want)
                    self.assertEqual('Content-Range' in got.headers, status == 206)

    def test_metadata_and_system_headers_come_back(self):
        self.put('described', b'x', Content_Type='text/plain', Cache_Control='no-store', x_amz_meta_Colour='blue', x_amz_meta_empty='')
        got = self.request('GET', '/obj/described')
        self.assertEqual(got.headers['Content-Type'], 'text/plain')
        self.assertEqual(got.headers['Cache-Control'], 'no-store')
        self.assertEqual(got.headers['x-amz-meta-colour'], 'blue')
        self.assertEqual(got.headers['x-amz-meta-empty'], '')
        too_much = self.put('described', b'y', x_amz_meta_big='z' * 2100)
        self.assertEqual((too_much.status, too_much.code()), (400, 'MetadataTooLarge'))
        self.assertEqual(self.request('GET', '/obj/described').body, b'x')

    def test_conditions(self):
        etag = self.put('conditional', b'one').headers['ETag']
        self.assertEqual(self.put('conditional', b'two', If_None_Match='*').status, 412)
        self.assertEqual(self.put('conditional', b'two', If_Match='"0123"').status, 412)
        self.assertEqual(self.put('not-there', b'two', If_Match=etag).status, 404)
        self.assertEqual(self.request('GET', '/obj/conditional').body, b'one')
        self.assertEqual(self.put('conditional', b'two', If_Match=etag).status, 200)
        self.assertEqual(self.put('fresh', b'new', If_None_Match='*').status, 200)
        now = self.request('HEAD', '/obj/conditional').headers
        self.assertEqual(self.request('GET', '/obj/conditional', headers={'If-None-Match': now['ETag']}).status, 304)
        self.assertEqual(self.request('GET', '/obj/conditional', headers={'If-Match': etag}).status, 412)
        self.assertEqual(self.request('GET', '/obj/conditional', headers={'If-Modified-Since': now['Last-Modified']}).status, 304)

    def test_digests_of_the_body(self):
        reply = self.put('digest', b'body', Content_MD5='AAAAAAAAAAAAAAAAAAAAAA==')
        self.assertEqual((reply.status, reply.code()), (400, 'BadDigest'))
        reply = self.put('digest', b'body', Content_MD5='short')
        self.assertEqual((reply.status, reply.code()), (400, 'InvalidDigest'))
        self.assertEqual(self.request('GET', '/obj/digest').status, 404)

    def test_names_that_need_care(self):
        for key in ('a b+c', '日本/語', 'x//y/./../z', "!*'()&=?#%", 'trailing/', 'p%2Fq'):
            with self.subTest(key=key):
                self.assertEqual(self.put(key, key.encode()).status, 200)
                self.assertEqual(self.request('GET', '/obj/' + urllib.parse.quote(key)).body, key.encode())
        self.assertEqual(self.put('k' * 1024, b'').status, 200)
        long = self.put('k' * 1025, b'')
        self.assertEqual((long.status, long.code()), (400, 'KeyTooLongError'))
        for method, query in (('GET', ''), ('HEAD', ''), ('DELETE', ''), ('GET', '?tagging'), ('GET', '?acl'), ('GET', '?attributes')):
            long = self.request(method, f'/obj/{"k" * 1025}{query}', headers={'x-amz-object-attributes': 'ETag'})
            self.assertEqual(long.status, 400, (method, query))
            if method != 'HEAD':
                self.assertEqual(long.code(), 'KeyTooLongError')
                self.assertIn(b'<Size>1025</Size><MaxSizeAllowed>1024</MaxSizeAllowed>', long.body)
        for target in ('/obj/%zz', '/obj/%ff', '/obj/a%00b'):
            bad = self.request('GET', target)
            self.assertEqual(bad.status, 400, target)

    def test_keys_with_control_characters_are_deleted_as_they_are_listed(self):
        """Listings write what XML has no place for as references; clients send those back, or the characters themselves."""
        for name in ('ctl%01a', 'ctl%1Fb', 'ctl%60a', 'ctl%0D%09'):
            self.assertEqual(self.request('PUT', f'/obj/{name}', b'x').status, 200)
        listed = self.request('GET', '/obj?list-type=2&prefix=ctl').body.decode()
        keys = [piece.split('</Key>')[0] for piece in listed.split('<Key>')[1:]]
        self.assertEqual(keys, ['ctl&#x1;a', 'ctl&#xD;&#x9;', 'ctl&#x1F;b', 'ctl`a'])
        asked = ''.join(f'<Object><Key>{key}</Key></Object>' for key in [*keys[1:], 'ctl\x01a'])
        deleted = self.request('POST', '/obj?delete', f'<Delete>{asked}</Delete>'.encode())
        self.assertEqual(deleted.status, 200, deleted.body)
        self.assertEqual(deleted.body.count(b'<Deleted>'), 4)
        self.assertIn(b'<Key>ctl&#x1;a</Key>', deleted.body)
        self.assertNotIn(b'<Key>', self.request('GET', '/obj?list-type=2&prefix=ctl').body)

    def test_missing_things_are_named(self):
        for target, code, named in (('/obj/none', 'NoSuchKey', b'none'), ('/nobucket/k', 'NoSuchBucket', b'nobucket')):
            got = self.request('GET', target)
            self.assertEqual((got.status, got.code()), (404, code))
            self.assertIn(named, got.body)
            self.assertIn(f"<RequestId>{got.headers['x-amz-request-id']}</RequestId>".encode(), got.body)
        self.assertEqual(self.request('DELETE', '/obj/none').status, 204)
        self.assertEqual(self.request('HEAD', '/obj/none').body, b'')

    def test_overwrite_and_delete(self):
        for body in (b'1' * 5000, b'2' * 700_000, b'3'):
            self.put('changing', body)
            self.assertEqual(self.request('GET', '/obj/changing').body, body)
        self.assertEqual(self.request('DELETE', '/obj/changing').status, 204)
        self.assertEqual(self.request('GET', '/obj/changing').status, 404)

    def test_sub_resources_never_touch_the_object(self):
        self.put('plain', b'kept')
        for query in ('acl', 'tagging', 'uploads', 'uploadId=1&partNumber=1', 'partNumber=1', 'versionId=null', 'retention', 'restore', 'select'):
            with self.subTest(query=query):
                self.assertIn(self.request('PUT', f'/obj/plain?{query}', b'overwritten').status, (400, 404, 405, 501))
        self.assertEqual(self.request('GET', '/obj/plain').body, b'kept')

    def test_sub_resources_on_the_wrong_kind_of_path(self):
        """Judged before anything is looked for: the bucket need not be there, nor the caller known."""
        self.put('misplaced', b'kept')
        self.assertEqual(self.request('PUT', '/misplaced').status, 200)
        rows = [
            ('GET', '/{}/k?uploads', 400, 'InvalidRequest'),
            ('GET', '/{}/k?versions', 400, 'InvalidRequest'),
            ('DELETE', '/{}/k?versions', 400, 'InvalidRequest'),
            ('PUT', '/{}/k?partNumber=1', 405, 'MethodNotAllowed'),
            ('POST', '/{}/k', 405, 'MethodNotAllowed'),
            ('PUT', '/{}/k?policy', 405, 'MethodNotAllowed'),
            ('DELETE', '/{}/k?lifecycle', 405, 'MethodNotAllowed'),
            ('GET', '/{}/k?versioning', 405, 'MethodNotAllowed'),
            ('DELETE', '/{}?uploadId=1', 400, 'InvalidRequest'),
            ('PUT', '/{}?partNumber=1&uploadId=1', 400, 'InvalidRequest'),
            ('DELETE', '/{}?versionId=null', 400, 'InvalidRequest'),
            ('GET', '/{}?attributes', 400, 'InvalidRequest'),
        ]
        for method, target, status, code in rows:
            for bucket, options in (
                ('misplaced', {}),
                ('no-such-bucket', {}),
                ('no-such-bucket', {'token': None}),
            ):
                with self.subTest(method=method, target=target, bucket=bucket, **options):
                    reply = self.request(
                        method,
                        target.format(bucket).replace('misplaced/k', 'obj/misplaced'),
                        **options,
                    )
                    self.assertEqual(
                        (reply.status, reply.code(), reply.headers['Allow'] is None),
                        (status, code, status != 405),
                    )
        reply = self.request('PUT', '/obj/misplaced?uploadId=1', b'x')
        self.assertEqual((reply.status, reply.code()), (405, 'MethodNotAllowed'))
        self.assertEqual(self.request('GET', '/obj/misplaced').body, b'kept')
        self.assertEqual(self.request('HEAD', '/misplaced').status, 200)

    def test_a_marker_that_cannot_be_decoded_is_no_plain_request(self):
        self.put('marked', b'kept')
        self.assertEqual(self.request('DELETE', '/obj/marked?versionId=%zz').code(), 'InvalidURI')
        self.assertEqual(self.request('DELETE', '/obj/marked?versionId=').code(), 'InvalidArgument')
        self.assertEqual(self.request('GET', '/obj/marked').body, b'kept')

    def test_as_many_headers_as_fit_come_back(self):
        wanted = {f'x-amz-meta-{number}': f'v{number}' for number in range(80)}  # Python's client takes 100 headers
        self.assertEqual(self.request('PUT', '/obj/many', b'x', wanted).status, 200)
        got = self.request('GET', '/obj/many').headers
        self.assertEqual({name: got[name] for name in wanted}, wanted)

    def test_storage_class_and_redirect(self):
        self.put('cold', b'x', x_amz_storage_class='DEEP_ARCHIVE', x_amz_website_redirect_location='/warm')
        got = self.request('HEAD', '/obj/cold').headers
        self.assertEqual((got['x-amz-storage-class'], got['x-amz-website-redirect-location']), ('DEEP_ARCHIVE', '/warm'))
        self.put('cold', b'x', x_amz_storage_class='STANDARD')
        self.assertIsNone(self.request('HEAD', '/obj/cold').headers['x-amz-storage-class'])
        self.assertEqual(self.put('cold', b'y', x_amz_storage_class='WARM').code(), 'InvalidStorageClass')
        self.assertEqual(self.put('cold', b'y', x_amz_website_redirect_location='there').code(), 'InvalidRedirectLocation')
        self.assertEqual(self.put('cold', b'y', x_amz_write_offset_bytes='1').code(), 'NotImplemented')

    def test_checksums_of_the_body(self):
        hashes = [(name, base64.b64encode(hashlib.new(name, b'123456789').digest()).decode()) for name in ('md5', 'sha1', 'sha256', 'sha512')]
        for name, value in [('crc32', 'y/Q5Jg=='), ('crc32c', '4waSgw=='), ('crc64nvme', 'rosUhgp5mIg=')] + hashes:
            with self.subTest(checksum=name):
                header = f'x-amz-checksum-{name}'
                reply = self.request('PUT', '/obj/checked', b'123456789', {header: value})
                self.assertEqual((reply.status, reply.headers[header], reply.headers['x-amz-checksum-type']), (200, value, 'FULL_OBJECT'), reply.body)
                got = self.request('GET', '/obj/checked', headers={'x-amz-checksum-mode': 'ENABLED'})
                self.assertEqual(got.headers[header], value)
                self.assertIsNone(self.request('GET', '/obj/checked').headers[header])
                self.assertIsNone(self.request('GET', '/obj/checked', headers={'x-amz-checksum-mode': 'ENABLED', 'Range': 'bytes=0-8'}).headers[header])
                wrong = self.request('PUT', '/obj/checked', b'other', {header: value})
                self.assertEqual((wrong.status, wrong.code()), (400, 'BadDigest'))
                self.assertIn(f'<ExpectedDigest>{value}</ExpectedDigest><CalculatedDigest>'.encode(), wrong.body)
        self.assertEqual(self.request('GET', '/obj/checked').body, b'123456789')

    def test_part_numbers_of_a_single_put(self):
        self.put('single', b'123456789')
        got = self.request('GET', '/obj/single?partNumber=1')
        self.assertEqual((got.status, got.body, got.headers['Content-Range'], got.headers['x-amz-mp-parts-count']), (206, b'123456789', 'bytes 0-8/9', None))
        self.assertEqual(self.request('GET', '/obj/single?partNumber=2').code(), 'InvalidPart')
        self.assertEqual(self.request('HEAD', '/obj/single?partNumber=1').headers['Content-Length'], '9')

    def test_connection_stays_usable_after_an_error(self):
        connection = self.daemon.connect()
        for _ in range(3):
            self.assertEqual(self.request('GET', '/obj/none', connection=connection).status, 404)
            self.assertEqual(self.request('PUT', '/obj/kept-alive', b'x', connection=connection).status, 200)
        connection.close()


class Buckets(unittest.TestCase):
    def test_life_of_a_bucket(self):
        with Daemon(tls=False) as daemon:
            self.assertEqual(daemon.request('HEAD', '/fresh').status, 404)
            self.assertEqual(daemon.request('PUT', '/fresh').status, 200)
            self.assertEqual(daemon.request('PUT', '/fresh').status, 200)
            self.assertEqual(daemon.request('HEAD', '/fresh').headers['x-amz-bucket-region'], 'us-east-1')
            self.assertIn(b'<Name>fresh</Name>', daemon.request('GET', '/').body)
            daemon.request('PUT', '/fresh/key', b'1')
            self.assertEqual(daemon.request('DELETE', '/fresh').code(), 'BucketNotEmpty')
            daemon.request('DELETE', '/fresh/key')
            self.assertEqual(daemon.request('DELETE', '/fresh').status, 204)
            self.assertEqual(daemon.request('DELETE', '/fresh').code(), 'NoSuchBucket')
            for name in ('ab', 'Upper', 'under_score', 'dot..dot', '-dash', 'dash-', '10.0.0.1', 'xn--a', 'x' * 64, 'other--space'):
                with self.subTest(name=name):
                    self.assertEqual(daemon.request('PUT', f'/{name}').status, 400, name)

    def test_listing(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/l' + 'ist')
            keys = sorted([f'a/{i:03d}' for i in range(20)] + [f'b/{i}/x' for i in range(5)] + ['c', 'd e+f', 'z/'])
            for key in keys:
                daemon.request('PUT', '/list/' + urllib.parse.quote(key), key.encode())
            seen, token = [], None
            while True:
                query = {'list-type': 2, 'max-keys': 7, **({'continuation-token': token} if token else {})}
                page = daemon.request('GET', '/list?' + urllib.parse.urlencode(query)).body.decode()
                seen += [part.split('</Key>')[0] for part in page.split('<Key>')[1:]]
                if '<IsTruncated>true' not in page:
                    break
                token = page.split('<NextContinuationToken>')[1].split('<')[0]
            self.assertEqual(seen, keys)
            page = daemon.request('GET', '/list?list-type=2&delimiter=/&encoding-type=url').body.decode()
            prefixes = [part.split('</Prefix>')[0] for part in page.split('<CommonPrefixes><Prefix>')[1:]]
            self.assertEqual(prefixes, ['a/', 'b/', 'z/'])
            self.assertIn('<KeyCount>5</KeyCount>', page)
            page = daemon.request('GET', '/list?list-type=2&prefix=b/&delimiter=/&start-after=b/2/').body.decode()
            self.assertEqual(page.count('<CommonPrefixes>'), 2)
            self.assertIn('<KeyCount>0</KeyCount>', daemon.request('GET', '/list?list-type=2&max-keys=0').body.decode())
            for query in ('max-keys=-1', 'max-keys=x'):
                self.assertEqual(daemon.request('GET', f'/list?list-type=2&{query}').code(), 'InvalidArgument')


if __name__ == '__main__':
    unittest.main()
