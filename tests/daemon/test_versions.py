"""Versioned buckets: what each request says of versions and delete markers."""
import unittest

from tests.support.daemon import Daemon
from tests.support.s3 import Bucket, texts, tree

THREADS_MEET = False

UNKNOWN = '00112233445566778899aabbccddeeff'


class Versions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def setUp(self):
        self.bucket = Bucket(self.daemon, self.id().rpartition('.')[2].replace('_', '-'), 'Enabled')

    def tearDown(self):
        self.bucket.close()

    def put(self, key, body, **headers):
        reply = self.bucket.put(key, body, **headers)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.headers['x-amz-version-id']

    def test_each_write_is_a_version(self):
        ids = [self.put('k', body) for body in (b'1', b'2', b'3')]
        self.assertEqual(len(set(ids)), 3)
        self.assertEqual(self.bucket.ask('GET', 'k').headers['x-amz-version-id'], ids[2])
        for version, body in zip(ids, (b'1', b'2', b'3')):
            got = self.bucket.ask('GET', 'k', query={'versionId': version})
            self.assertEqual((got.body, got.headers['x-amz-version-id']), (body, version))
            self.assertEqual(self.bucket.ask('HEAD', 'k', query={'versionId': version}).headers['x-amz-version-id'], version)
        self.assertEqual(self.bucket.versions(), [('Version', 'k', ids[2], True), ('Version', 'k', ids[1], False), ('Version', 'k', ids[0], False)])
        unchanged = self.bucket.ask('GET', 'k', headers={'If-None-Match': '*'})
        self.assertEqual((unchanged.status, unchanged.headers['x-amz-version-id']), (304, ids[2]))

    def test_delete_markers(self):
        version = self.put('k', b'1')
        gone = self.bucket.ask('DELETE', 'k')
        marker = gone.headers['x-amz-version-id']
        self.assertEqual((gone.status, gone.headers['x-amz-delete-marker']), (204, 'true'))
        for method in ('GET', 'HEAD'):
            got = self.bucket.ask(method, 'k')
            self.assertEqual((got.status, got.headers['x-amz-delete-marker'], got.headers['x-amz-version-id']), (404, 'true', marker))
            got = self.bucket.ask(method, 'k', query={'versionId': marker})
            self.assertEqual((got.status, got.headers['x-amz-delete-marker'], got.headers['Allow']), (405, 'true', 'DELETE'))
        self.assertEqual(self.bucket.ask('GET', 'k', query={'versionId': version}).body, b'1')
        self.assertEqual(self.bucket.keys(), [])
        self.assertEqual(self.bucket.versions(), [('DeleteMarker', 'k', marker, True), ('Version', 'k', version, False)])
        undeleted = self.bucket.ask('DELETE', 'k', query={'versionId': marker})
        self.assertEqual((undeleted.status, undeleted.headers['x-amz-delete-marker'], undeleted.headers['x-amz-version-id']), (204, 'true', marker))
        self.assertEqual(self.bucket.ask('GET', 'k').body, b'1')

    def test_removing_the_newest_uncovers_the_one_before(self):
        first, second = self.put('k', b'1'), self.put('k', b'2')
        gone = self.bucket.ask('DELETE', 'k', query={'versionId': second})
        self.assertEqual((gone.status, gone.headers['x-amz-version-id'], gone.headers['x-amz-delete-marker']), (204, second, None))
        self.assertEqual(self.bucket.ask('GET', 'k').body, b'1')
        self.assertEqual(self.bucket.ask('DELETE', 'k', query={'versionId': first}).status, 204)
        self.assertEqual(self.bucket.ask('GET', 'k').code(), 'NoSuchKey')
        self.assertEqual(self.bucket.versions(), [])

    def test_ids_that_are_none(self):
        self.put('k', b'1')
        for method in ('GET', 'DELETE'):
            self.assertEqual(self.bucket.ask(method, 'k', query='versionId=rubbish').code(), 'InvalidArgument')
        self.assertEqual(self.bucket.ask('GET', 'k', query={'versionId': UNKNOWN}).code(), 'NoSuchVersion')
        self.assertEqual(self.bucket.ask('DELETE', 'k', query={'versionId': UNKNOWN}).status, 204)
        self.assertEqual(self.bucket.ask('GET', 'k', query='versionId=null').code(), 'NoSuchVersion')

    def test_ids_of_other_servers(self):
        version = self.put('k', b'1')
        for foreign in ('3HL4kqtJvjVBH40Nrjfkd', '3f2504e0-4f89-41d3-9a0c-0305e82c3301', 'v' * 64):
            query = {'versionId': foreign}
            for method, more in (('GET', {}), ('GET', {'tagging': ''}), ('GET', {'acl': ''})):
                reply = self.bucket.ask(method, 'k', query={**query, **more})
                self.assertEqual((reply.status, reply.code()), (404, 'NoSuchVersion'))
            self.assertEqual(self.bucket.ask('HEAD', 'k', query=query).status, 404)
            self.assertEqual(
                self.bucket.copy(f'{self.bucket.name}/k?versionId={foreign}', 'copy').code(),
                'NoSuchVersion',
            )
            gone = self.bucket.ask('DELETE', 'k', query=query)
            self.assertEqual(
                (
                    gone.status,
                    gone.headers['x-amz-version-id'],
                    gone.headers['x-amz-delete-marker'],
                ),
                (204, foreign, None),
            )
            row = tree(self.bucket.delete_many([('k', foreign)])).find('Deleted')
            self.assertEqual((row.findtext('VersionId'), row.find('DeleteMarker')), (foreign, None))
        for rubbish in (
            'short',
            'v' * 65,
            'with/slash/and/twenty/bytes',
            'with blanks and twenty bytes',
            '',
        ):
            self.assertEqual(
                self.bucket.ask('GET', 'k', query={'versionId': rubbish}).code(), 'InvalidArgument'
            )
        self.assertEqual(self.bucket.versions(), [('Version', 'k', version, True)])

    def test_suspension(self):
        kept = self.put('k', b'1')
        self.bucket.set_versioning('Suspended')
        self.assertIsNone(self.put('k', b'2'))
        self.assertIsNone(self.put('k', b'3'))
        self.assertIsNone(self.bucket.upload('parts', [b'1']).headers['x-amz-version-id'])
        self.assertIsNone(
            self.bucket.copy(f'{self.bucket.name}/k', 'parts').headers['x-amz-version-id']
        )
        self.bucket.ask('DELETE', 'parts', query='versionId=null')
        self.assertEqual(self.bucket.ask('GET', 'k').headers['x-amz-version-id'], 'null')
        self.assertEqual(self.bucket.versions(), [('Version', 'k', 'null', True), ('Version', 'k', kept, False)])
        gone = self.bucket.ask('DELETE', 'k')
        self.assertEqual((gone.headers['x-amz-delete-marker'], gone.headers['x-amz-version-id']), ('true', 'null'))
        self.assertEqual(self.bucket.versions(), [('DeleteMarker', 'k', 'null', True), ('Version', 'k', kept, False)])
        self.assertEqual(self.bucket.ask('GET', 'k', query={'versionId': kept}).body, b'1')

    def test_deletes_without_versioning(self):
        bucket = Bucket(self.daemon, 'never-versioned')
        for query, named in ((None, None), ({'versionId': 'null'}, 'null')):
            bucket.put('k')
            for _ in range(2):
                gone = bucket.ask('DELETE', 'k', query=query)
                self.assertEqual(
                    (
                        gone.status,
                        gone.headers['x-amz-delete-marker'],
                        gone.headers['x-amz-version-id'],
                    ),
                    (204, None, named),
                )
        bucket.put('k')
        row = tree(bucket.delete_many(['k'])).find('Deleted')
        self.assertEqual([child.tag for child in row], ['Key'])
        bucket.close()

    def test_copies_of_versions(self):
        first = self.put('k', b'1')
        self.put('k', b'2')
        copied = self.bucket.copy(f'{self.bucket.name}/k?versionId={first}', 'copy')
        self.assertEqual(copied.headers['x-amz-copy-source-version-id'], first)
        self.assertEqual(self.bucket.ask('GET', 'copy').headers['x-amz-version-id'], copied.headers['x-amz-version-id'])
        self.assertEqual(self.bucket.ask('GET', 'copy').body, b'1')
        restored = self.bucket.copy(f'{self.bucket.name}/k?versionId={first}', 'k')
        self.assertEqual((restored.status, self.bucket.ask('GET', 'k').body), (200, b'1'))
        marker = self.bucket.ask('DELETE', 'k').headers['x-amz-version-id']
        self.assertEqual(self.bucket.copy(f'{self.bucket.name}/k', 'copy').code(), 'NoSuchKey')
        self.assertEqual(self.bucket.copy(f'{self.bucket.name}/k?versionId={marker}', 'copy').code(), 'InvalidRequest')

    def test_tags_of_versions(self):
        first, second = self.put('k', b'1', x_amz_tagging='a=1'), self.put('k', b'2')
        document = '<Tagging><TagSet><Tag><Key>b</Key><Value>2</Value></Tag></TagSet></Tagging>'
        reply = self.bucket.ask('PUT', 'k', document, query=f'tagging&versionId={first}')
        self.assertEqual((reply.status, reply.headers['x-amz-version-id']), (200, first))
        self.assertEqual(texts(tree(self.bucket.ask('GET', 'k', query=f'tagging&versionId={first}')), 'TagSet/Tag/Key'), ['b'])
        self.assertEqual(texts(tree(self.bucket.ask('GET', 'k', query='tagging')), 'TagSet/Tag/Key'), [])
        reply = self.bucket.ask('DELETE', 'k', query=f'tagging&versionId={second}')
        self.assertEqual((reply.status, reply.headers['x-amz-version-id']), (204, second))
        marker = self.bucket.ask('DELETE', 'k').headers['x-amz-version-id']
        self.assertEqual(self.bucket.ask('GET', 'k', query='tagging').status, 404)
        self.assertEqual(self.bucket.ask('GET', 'k', query=f'tagging&versionId={marker}').status, 405)

    def test_lists_of_deletes(self):
        first, second = self.put('k', b'1'), self.put('k', b'2')
        other = self.put('other', b'1')
        root = tree(self.bucket.delete_many([('k', first), 'other']))
        rows = root.findall('Deleted')
        self.assertEqual((rows[0].findtext('VersionId'), rows[0].findtext('DeleteMarker')), (first, None))
        self.assertEqual((rows[1].findtext('VersionId'), rows[1].findtext('DeleteMarker')), (None, 'true'))
        marker = rows[1].findtext('DeleteMarkerVersionId')
        self.assertEqual(self.bucket.versions(), [('Version', 'k', second, True), ('DeleteMarker', 'other', marker, True), ('Version', 'other', other, False)])
        row = tree(self.bucket.delete_many([('other', marker)])).find('Deleted')
        self.assertEqual((row.findtext('VersionId'), row.findtext('DeleteMarker'), row.findtext('DeleteMarkerVersionId')), (marker, 'true', marker))
        self.assertEqual(self.bucket.ask('GET', 'other').body, b'1')

    def test_pages_of_versions(self):
        wanted = []
        for key in ('a', 'b/1', 'b/2', 'c'):
            ids = [self.put(key, str(number).encode()) for number in range(3)]
            wanted += [(key, version) for version in reversed(ids)]
        for size in (1, 2, 5, 100):
            found, query = [], {'versions': '', 'max-keys': size}
            while True:
                root = tree(self.bucket.ask('GET', query=query))
                found += list(zip(texts(root, 'Version/Key'), texts(root, 'Version/VersionId')))
                if root.findtext('IsTruncated') == 'false':
                    break
                query.update({'key-marker': root.findtext('NextKeyMarker'), 'version-id-marker': root.findtext('NextVersionIdMarker') or ''})
            self.assertEqual(found, wanted, size)
        root = tree(self.bucket.ask('GET', query='versions&delimiter=/'))
        self.assertEqual((sorted(set(texts(root, 'Version/Key'))), texts(root, 'CommonPrefixes/Prefix')), (['a', 'c'], ['b/']))

    def test_conditions_look_at_the_current_version(self):
        etag = self.bucket.put('k', b'1').headers['ETag']
        self.put('k', b'2')
        self.assertEqual(self.bucket.put('k', b'3', If_Match=etag).status, 412)
        self.bucket.ask('DELETE', 'k')
        self.assertEqual(self.bucket.put('k', b'3', If_Match='*').status, 404)
        self.assertEqual(self.bucket.put('k', b'3', If_None_Match='*').status, 200)


if __name__ == '__main__':
    unittest.main()
