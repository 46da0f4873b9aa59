"""CopyObject over HTTP."""
import random
import unittest

from tests.support.daemon import Daemon
from tests.support.s3 import Bucket, quote, tree

THREADS_MEET = False


class Copy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.bucket = Bucket(cls.daemon, 'copies')
        cls.other = Bucket(cls.daemon, 'others')

    @classmethod
    def tearDownClass(cls):
        cls.bucket.close()
        cls.other.close()
        cls.daemon.__exit__()

    def test_bytes_and_everything_said_of_them(self):
        for size in (0, 100, 3_000_000):
            body = random.Random(size).randbytes(size)
            self.bucket.put('source', body, Content_Type='text/x', x_amz_meta_a='1', Cache_Control='no-store', x_amz_tagging='t=1')
            reply = self.other.copy('/copies/source', f'copy-{size}')
            self.assertEqual(reply.status, 200, reply.body)
            got = self.other.ask('GET', f'copy-{size}')
            self.assertEqual(got.body, body)
            self.assertEqual(tree(reply).findtext('ETag'), got.headers['ETag'])
            for name, value in (('Content-Type', 'text/x'), ('x-amz-meta-a', '1'), ('Cache-Control', 'no-store'), ('x-amz-tagging-count', '1')):
                self.assertEqual(got.headers[name], value)

    def test_the_copy_outlives_its_source(self):
        body = random.Random(7).randbytes(500_000)
        self.bucket.put('gone', body)
        self.assertEqual(self.bucket.copy('copies/gone', 'kept').status, 200)
        self.bucket.put('gone', b'other')
        self.bucket.ask('DELETE', 'gone')
        self.assertEqual(self.bucket.ask('GET', 'kept').body, body)

    def test_sources_that_need_care(self):
        for key in ('a b+c', 'what?', 'what?versionId=null', 'per%25cent', '日本/語', '/slash', 'q&a=1'):
            with self.subTest(key=key):
                self.assertEqual(self.bucket.put(key, key.encode()).status, 200)
                self.assertEqual(self.bucket.copy(f'copies/{quote(key)}', 'target').status, 200)
                self.assertEqual(self.bucket.ask('GET', 'target').body, key.encode())

    def test_onto_itself(self):
        self.bucket.put('self', b'same', x_amz_meta_a='1')
        self.assertEqual(self.bucket.copy('copies/self', 'self').code(), 'InvalidRequest')
        self.assertEqual(self.bucket.copy('copies/self', 'self', x_amz_metadata_directive='REPLACE', x_amz_meta_b='2').status, 200)
        got = self.bucket.ask('GET', 'self')
        self.assertEqual((got.body, got.headers['x-amz-meta-a'], got.headers['x-amz-meta-b']), (b'same', None, '2'))

    def test_conditions(self):
        etag = self.bucket.put('judged', b'1').headers['ETag']
        past, future = 'Sun, 06 Nov 1994 08:49:37 GMT', 'Tue, 06 Nov 2064 08:49:37 GMT'
        for header, value, status in (('if-match', etag, 200), ('if-match', '"x"', 412), ('if-none-match', etag, 412), ('if-none-match', '"x"', 200),
                                      ('if-modified-since', past, 200), ('if-unmodified-since', past, 412), ('if-unmodified-since', future, 200)):
            with self.subTest(header=header, value=value):
                reply = self.bucket.ask('PUT', 'judged-copy', headers={'x-amz-copy-source': 'copies/judged', f'x-amz-copy-source-{header}': value})
                self.assertEqual(reply.status, status, reply.body)
        self.assertEqual(self.bucket.copy('copies/judged', 'judged-copy', If_None_Match='*').status, 412)
        self.assertEqual(self.bucket.copy('copies/judged', 'judged-absent', If_Match='*').status, 404)

    def test_refusals(self):
        self.bucket.put('here')
        for source, code in (('copies/none', 'NoSuchKey'), ('nobucket/k', 'NoSuchBucket'), ('copies', 'InvalidArgument'),
                             ('copies/here?versionId=rubbish', 'InvalidArgument')):
            self.assertEqual(self.bucket.copy(source, 'target').code(), code, source)
        with_body = self.bucket.ask('PUT', 'target', b'body', headers={'x-amz-copy-source': 'copies/here'})
        self.assertEqual(with_body.code(), 'InvalidArgument')
        self.assertEqual(self.daemon.request('PUT', '/nobucket/k', headers={'x-amz-copy-source': 'copies/here'}).code(), 'NoSuchBucket')

    def test_who_may(self):
        reader = self.daemon.add_key('--grant', 'copies=read')['token']
        self.bucket.put('private')
        refused = self.bucket.ask('PUT', 'target', headers={'x-amz-copy-source': 'copies/private'}, token=reader)
        self.assertEqual(refused.status, 403)
        writer = self.daemon.add_key('--grant', 'others=write')['token']
        refused = self.other.ask('PUT', 'target', headers={'x-amz-copy-source': 'copies/private'}, token=writer)
        self.assertEqual((refused.status, refused.code()), (403, 'AccessDenied'))


if __name__ == '__main__':
    unittest.main()
