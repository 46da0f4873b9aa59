"""Tags of objects, and what GetObjectAttributes says."""
import unittest
import urllib.parse

from tests.support.daemon import Daemon
from tests.support.s3 import Bucket, tree

THREADS_MEET = False


def document(tags):
    rows = ''.join(f'<Tag><Key>{key}</Key><Value>{value}</Value></Tag>' for key, value in tags)
    return f'<Tagging><TagSet>{rows}</TagSet></Tagging>'.encode()


class Tagging(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.bucket = Bucket(cls.daemon, 'tags')

    @classmethod
    def tearDownClass(cls):
        cls.bucket.close()
        cls.daemon.__exit__()

    def tags(self, key):
        root = tree(self.bucket.ask('GET', key, query='tagging'))
        return [(tag.findtext('Key'), tag.findtext('Value') or '') for tag in root.findall('TagSet/Tag')]

    def test_header_and_documents(self):
        tags = [('a b', 'c+d=e'), ('stage', 'anchor'), ('ü', '')]
        self.assertEqual(
            self.bucket.put('k', b'1', x_amz_tagging=urllib.parse.urlencode(tags[::-1])).status, 200
        )
        self.assertEqual(self.tags('k'), tags)
        self.assertEqual(self.bucket.ask('GET', 'k').headers['x-amz-tagging-count'], '3')
        self.assertEqual(
            self.bucket.ask('PUT', 'k', document(tags[1:] + tags[:1]), query='tagging').status, 200
        )
        self.assertEqual(self.tags('k'), tags)
        self.assertEqual(
            self.bucket.ask('PUT', '', document(tags[1:] + tags[:1]), query='tagging').status, 200
        )
        self.assertEqual(self.tags(''), tags)
        self.assertEqual(self.bucket.ask('PUT', 'k', document([('one', '1')]), query='tagging').status, 200)
        self.assertEqual(self.tags('k'), [('one', '1')])
        self.assertEqual(self.bucket.ask('GET', 'k').body, b'1')
        self.assertEqual(self.bucket.ask('DELETE', 'k', query='tagging').status, 204)
        self.assertEqual(self.tags('k'), [])
        self.assertIsNone(self.bucket.ask('HEAD', 'k').headers['x-amz-tagging-count'])

    def test_limits(self):
        self.bucket.put('limited', b'1', x_amz_tagging='kept=1')
        good = [('k' * 128, 'v' * 256)] + [(f'k{i}', '') for i in range(9)]
        self.assertEqual(self.bucket.ask('PUT', 'limited', document(good), query='tagging').status, 200)
        many = [(f'k{i}', '') for i in range(11)]
        self.assertEqual(
            self.bucket.ask('PUT', 'limited', document(many), query='tagging').code(), 'BadRequest'
        )
        self.assertEqual(
            self.bucket.put('no', b'1', x_amz_tagging=urllib.parse.urlencode(many)).code(),
            'BadRequest',
        )
        for bad in (
            [('k' * 129, '')],
            [('k', 'v' * 257)],
            [('k', '1'), ('k', '2')],
            [('', 'v')],
            [('aws:k', '')],
            [('k!', '')],
            [('a*b', '')],
            [('data%20', '')],
            [('k', 'a,b')],
            [('k', 'a;b')],
            [('k', '(v)')],
            [('k', 'v?')],
        ):
            self.assertEqual(self.bucket.ask('PUT', 'limited', document(bad), query='tagging').code(), 'InvalidTag', bad)
        self.assertEqual(self.bucket.ask('PUT', 'limited', '<Tagging><Tag/></Tagging>', query='tagging').code(), 'MalformedXML')
        self.assertEqual(self.tags('limited'), sorted(good))
        for header in ('=', 'k%', 'k=1&k=2', '=v'):
            self.assertEqual(
                self.bucket.put('no', b'1', x_amz_tagging=header).code(), 'InvalidArgument', header
            )
        for header in ('k?=v', 'k=v%23', 'k$'):
            self.assertEqual(
                self.bucket.put('no', b'1', x_amz_tagging=header).code(), 'InvalidTag', header
            )
        for header, shown in (
            ('&&', []),
            ('k', [('k', '')]),
            ('b=2&a=1&', [('a', '1'), ('b', '2')]),
            ('k%2B+x=%2F', [('k+ x', '/')]),
        ):
            self.assertEqual(self.bucket.put('yes', b'1', x_amz_tagging=header).status, 200)
            self.assertEqual(self.tags('yes'), shown)

    def test_a_new_object_has_its_own_tags(self):
        self.bucket.put('again', b'1', x_amz_tagging='a=1')
        self.bucket.put('again', b'2')
        self.assertEqual(self.tags('again'), [])

    def test_missing(self):
        for method, body in (('GET', None), ('PUT', document([])), ('DELETE', None)):
            self.assertEqual(self.bucket.ask(method, 'none', body, query='tagging').code(), 'NoSuchKey', method)

    def test_attributes(self):
        put = self.bucket.put('described', b'123456789', x_amz_storage_class='GLACIER')
        root = tree(self.bucket.ask('GET', 'described', query='attributes',
                                    headers={'x-amz-object-attributes': 'ETag,Checksum,ObjectParts,StorageClass,ObjectSize'}))
        self.assertEqual(root.tag, 'GetObjectAttributesResponse')
        self.assertEqual(f'"{root.findtext("ETag")}"', put.headers['ETag'])
        self.assertEqual(root.findtext('Checksum/ChecksumCRC64NVME'), 'rosUhgp5mIg=')
        self.assertEqual((root.findtext('StorageClass'), root.findtext('ObjectSize'), root.find('ObjectParts')), ('GLACIER', '9', None))
        self.assertEqual(self.bucket.ask('GET', 'described', query='attributes').code(), 'InvalidRequest')


if __name__ == '__main__':
    unittest.main()
