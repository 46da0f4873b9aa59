"""Listings against a model of them: random keys, prefixes, delimiters and pages."""
import random
import unittest
import urllib.parse

from tests.support.daemon import Daemon
from tests.support.s3 import Bucket, texts, tree

THREADS_MEET = False

ALPHABET = ['a', 'b', '/', '-', '%', ' ', '+', '&', 'é', '日', '\x01', '<']


def rolled(key, prefix, delimiter):
    """The common prefix that a key is shown as, or None."""
    at = key.find(delimiter, len(prefix)) if delimiter else -1
    return None if at < 0 else key[:at + len(delimiter)]


def listed(keys, prefix, delimiter, after):
    """Keys and prefixes that follow `after`, in order, as (name, is prefix)."""
    found = []
    for key in sorted(keys, key=str.encode):
        if not key.startswith(prefix):
            continue
        common = rolled(key, prefix, delimiter)
        entry = (common or key, common is not None)
        if entry[0].encode() > after.encode() and not (common and after.startswith(common)) and entry not in found[-1:]:
            found.append(entry)
    return found


def unquote(text):
    return urllib.parse.unquote(text)


class Listing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.random = random.Random(20260102)
        cls.bucket = Bucket(cls.daemon, 'listing')
        cls.stored = sorted({''.join(cls.random.choices(ALPHABET, weights=[8, 8, 8] + [1] * 9, k=cls.random.randint(1, 9))) for _ in range(400)}, key=str.encode)
        for key in cls.stored:
            assert cls.bucket.put(key, b'').status == 200, key

    @classmethod
    def tearDownClass(cls):
        cls.bucket.close()
        cls.daemon.__exit__()

    def page(self, **query):
        reply = self.bucket.ask('GET', query={'encoding-type': 'url', **query})
        self.assertEqual(reply.status, 200, reply.body)
        return tree(reply)

    def names(self, root):
        keys = [(unquote(name), False) for name in texts(root, 'Contents/Key') + texts(root, 'Version/Key')]
        prefixes = [(unquote(name), True) for name in texts(root, 'CommonPrefixes/Prefix')]
        self.assertEqual(keys, sorted(keys, key=lambda entry: entry[0].encode()))
        self.assertEqual(prefixes, sorted(prefixes, key=lambda entry: entry[0].encode()))
        return sorted(keys + prefixes, key=lambda entry: entry[0].encode())

    def choose(self):
        prefix = self.random.choice(['', '', 'a', 'b/', 'a/', 'ab', 'zz', self.random.choice(self.stored)[:self.random.randint(0, 4)]])
        delimiter = self.random.choice(['', '/', '/', 'a', 'b/', '-', 'é', '\x01'])
        after = self.random.choice(['', '', 'a/', 'b', self.random.choice(self.stored)])
        return prefix, delimiter, after, self.random.choice([1, 2, 3, 7, 50, 1000])

    def walk(self, version, prefix, delimiter, after, size):
        """All pages of one listing; each full but the last."""
        found, query = [], {'prefix': prefix, 'delimiter': delimiter, 'max-keys': size}
        query.update({'list-type': '2', 'start-after': after} if version == 2 else {'marker': after})
        while True:
            root = self.page(**query)
            names = self.names(root)
            found += names
            if version == 2:
                self.assertEqual(int(root.findtext('KeyCount')), len(names))
            if root.findtext('IsTruncated') == 'false':
                self.assertIsNone(root.findtext('NextContinuationToken'))
                self.assertIsNone(root.findtext('NextMarker'))
                return found
            self.assertEqual(len(names), size)
            if version == 2:
                query['continuation-token'] = root.findtext('NextContinuationToken')
            else:
                self.assertEqual(root.findtext('NextMarker') is not None, bool(delimiter))
                query['marker'] = unquote(root.findtext('NextMarker') or texts(root, 'Contents/Key')[-1])

    def test_every_listing_is_the_models(self):
        for round_number in range(150):
            prefix, delimiter, after, size = self.choose()
            for version in (1, 2):
                with self.subTest(round=round_number, version=version, prefix=prefix, delimiter=delimiter, after=after, size=size):
                    self.assertEqual(self.walk(version, prefix, delimiter, after, size), listed(self.stored, prefix, delimiter, after))

    def test_versions_of_a_plain_bucket_are_its_objects(self):
        for _ in range(40):
            prefix, delimiter, after, size = self.choose()
            found, query = [], {'versions': '', 'prefix': prefix, 'delimiter': delimiter, 'max-keys': size, 'key-marker': after}
            while True:
                root = self.page(**query)
                found += self.names(root)
                if root.findtext('IsTruncated') == 'false':
                    break
                query['key-marker'] = unquote(root.findtext('NextKeyMarker'))
                query['version-id-marker'] = root.findtext('NextVersionIdMarker') or ''
            with self.subTest(prefix=prefix, delimiter=delimiter, after=after, size=size):
                self.assertEqual(found, listed(self.stored, prefix, delimiter, after))

    def test_what_a_row_says(self):
        bucket = Bucket(self.daemon, 'rows')
        reply = bucket.put('a', b'12345', x_amz_storage_class='STANDARD_IA')
        head = bucket.ask('HEAD', 'a')
        row = tree(bucket.ask('GET', query='list-type=2&fetch-owner=true')).find('Contents')
        self.assertEqual({child.tag: child.text for child in row if child.tag not in ('LastModified', 'Owner')},
                         {'Key': 'a', 'ETag': reply.headers['ETag'], 'Size': '5', 'StorageClass': 'STANDARD_IA', 'ChecksumAlgorithm': 'CRC64NVME',
                          'ChecksumType': 'FULL_OBJECT'})
        self.assertEqual(row.findtext('Owner/ID'), 'main')
        self.assertRegex(row.findtext('LastModified'), r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$')
        self.assertIn(row.findtext('LastModified')[11:19], head.headers['Last-Modified'])
        self.assertIsNone(tree(bucket.ask('GET', query='list-type=2')).find('Contents/Owner'))
        self.assertIsNotNone(tree(bucket.ask('GET')).find('Contents/Owner'))
        bucket.close()

    def test_parameters(self):
        for query in ('max-keys=-1', 'max-keys=x', 'max-keys=99999999999', 'encoding-type=base64', 'list-type=2&continuation-token=zz'):
            self.assertEqual(self.bucket.ask('GET', query=query).code(), 'InvalidArgument', query)
        self.assertEqual(tree(self.bucket.ask('GET', query='max-keys=2000&prefix=zz')).findtext('MaxKeys'), '1000')
        empty = tree(self.bucket.ask('GET', query='max-keys=0'))
        self.assertEqual((empty.findtext('IsTruncated'), empty.find('Contents')), ('false', None))
        again = tree(self.bucket.ask('GET', query='list-type=2&continuation-token=&max-keys=1&encoding-type=url'))
        self.assertEqual((again.findtext('ContinuationToken'), again.findtext('KeyCount')), ('', '1'))
        both = self.page(**{'list-type': '2', 'continuation-token': self.stored[5].encode().hex(), 'start-after': self.stored[0], 'max-keys': 1})
        self.assertEqual(self.names(both), [(self.stored[6], False)])
        self.assertEqual(unquote(both.findtext('StartAfter')), self.stored[0])
        self.assertEqual(self.bucket.ask('GET', query='x-id=ListObjects&some=thing&max-keys=1&encoding-type=url').status, 200)


if __name__ == '__main__':
    unittest.main()
