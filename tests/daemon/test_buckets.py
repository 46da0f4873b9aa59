"""Buckets and their settings over HTTP: making, finding, listing, deleting, versioning, tags, ownership, ETag policy, virtual hosts."""
import base64
import hashlib
import http.client
import re
import unittest
import zlib

from tests.support.daemon import Daemon
from tests.support.signer import Signer

THREADS_MEET = False

VERSIONING = b'<VersioningConfiguration><Status>%s</Status></VersioningConfiguration>'


def names(body):
    return re.findall(r'<Name>([^<]*)</Name>', body.decode())


class Buckets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False, arguments=['--domain', 'models.example.org', '--region', 'eu-test'])
        cls.daemon.start()
        cls.request = staticmethod(cls.daemon.request)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def test_life_of_a_bucket(self):
        made = self.request('PUT', '/life')
        self.assertEqual((made.status, made.headers['Location']), (200, '/life'))
        self.assertEqual(self.request('PUT', '/life/').status, 200)
        self.assertEqual(self.request('PUT', '/life/k', b'x').status, 200)
        refused = self.request('DELETE', '/life')
        self.assertEqual((refused.status, refused.code()), (409, 'BucketNotEmpty'))
        self.assertEqual(self.request('DELETE', '/life/k').status, 204)
        upload = self.request('POST', '/life/open?uploads')
        self.assertEqual(upload.status, 200)
        self.assertEqual(self.request('DELETE', '/life').status, 204)
        self.assertEqual(self.request('HEAD', '/life').status, 404)
        self.assertEqual(self.request('PUT', '/life').status, 200)
        self.assertNotIn(b'<Upload>', self.request('GET', '/life?uploads').body)

    def test_versions_and_markers_keep_a_bucket(self):
        self.request('PUT', '/kept')
        self.assertEqual(self.request('PUT', '/kept?versioning', VERSIONING % b'Enabled').status, 200)
        self.assertIn(b'<Status>Enabled</Status>', self.request('GET', '/kept?versioning').body)
        version = self.request('PUT', '/kept/k', b'x').headers['x-amz-version-id']
        marker = self.request('DELETE', '/kept/k').headers['x-amz-version-id']
        self.assertEqual(self.request('DELETE', '/kept').code(), 'BucketNotEmpty')
        self.assertEqual(self.request('DELETE', f'/kept/k?versionId={version}').status, 204)
        self.assertEqual(self.request('DELETE', '/kept').code(), 'BucketNotEmpty')
        self.assertEqual(self.request('DELETE', f'/kept/k?versionId={marker}').status, 204)
        self.assertEqual(self.request('DELETE', '/kept').status, 204)

    def test_names_of_other_faces_are_no_buckets(self):
        """Told as S3 tells it to whoever speaks S3, and as those faces do to others."""
        signer = Signer.of(self.daemon)
        for name in ('api', 'buckets', 'console', 'hot_load', 'v1', 'xet', '-'):
            for method, target, answer in (
                ('PUT', f'/{name}', (400, 'InvalidBucketName')),
                ('DELETE', f'/{name}', (404, 'NoSuchBucket')),
                ('HEAD', f'/{name}', (404, None)),
                ('GET', f'/{name}?list-type=2', (404, 'NoSuchBucket')),
            ):
                headers = signer.headers(method, target)
                reply = self.request(method, target, headers=headers, token=None)
                self.assertEqual((reply.status, reply.code()), answer, (target, reply.body))
        for target in ('/api', '/v1', '/xet/nothing'):
            self.assertEqual(self.request('PUT', target).headers['Content-Type'].split(';')[0],
                             'application/json', target)

    def test_region_is_said_on_every_status(self):
        self.request('PUT', '/where')
        for target, token, status in (('/where', 'root', 200), ('/nowhere-at-all', 'root', 404), ('/where', None, 403)):
            with self.subTest(target=target, token=token):
                reply = self.request('HEAD', target) if token else self.request('HEAD', target, token=None)
                self.assertEqual((reply.status, reply.headers['x-amz-bucket-region'], reply.body), (status, 'eu-test', b''))
        self.assertIn(b'>eu-test</LocationConstraint>', self.request('GET', '/where?location').body)
        self.assertEqual(self.request('GET', '/where?location', token=None).status, 403)
        for asked, told in (
            ('eu-central-1', b'>eu-central-1<'),
            ('EU', b'>EU<'),
            ('us-east-1', b'></'),
            ('a&lt;b', b'>a&lt;b<'),
        ):
            name = f'/where-{told.hex()}'
            body = f'<CreateBucketConfiguration><LocationConstraint>{asked}</LocationConstraint></CreateBucketConfiguration>'
            self.assertEqual(self.request('PUT', name, body).status, 200)
            self.assertEqual(
                self.request('PUT', name, body.replace(asked, 'other')).status, 200
            )  # stays as it is
            self.assertIn(told, self.request('GET', f'{name}?location').body)
        self.assertEqual(self.request('GET', '/nowhere-at-all?location').code(), 'NoSuchBucket')

    def test_pages_of_buckets(self):
        key = self.daemon.add_key('--namespace', 'pages')['token']
        made = [f'page-{n}' for n in range(5)]
        for name in made:
            self.assertEqual(self.request('PUT', '/' + name, token=key).status, 200)
        found, target = [], '/?max-buckets=1'
        while target:
            page = self.request('GET', target, token=key).body
            self.assertLessEqual(len(names(page)), 1)
            found += names(page)
            token = re.search(rb'<ContinuationToken>([^<]+)<', page)
            target = f'/?max-buckets=1&continuation-token={token[1].decode()}' if token else None
        self.assertEqual(found, made)
        self.assertEqual(names(self.request('GET', '/?prefix=page-3', token=key).body), ['page-3'])
        self.assertEqual(names(self.request('GET', '/?bucket-region=elsewhere', token=key).body), [])

    def test_digests_of_settings_are_verified(self):
        self.request('PUT', '/digests')
        body = VERSIONING % b'Enabled'
        right = base64.b64encode(zlib.crc32(body).to_bytes(4, 'big')).decode()
        md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
        table = [({'x-amz-checksum-crc32': right, 'x-amz-sdk-checksum-algorithm': 'CRC32'}, 200), ({'Content-MD5': md5}, 200), ({}, 200),
                 ({'x-amz-checksum-crc32': 'AAAAAA=='}, 400), ({'Content-MD5': base64.b64encode(bytes(16)).decode()}, 400)]
        for headers, status in table:
            with self.subTest(headers=headers):
                reply = self.request('PUT', '/digests?versioning', body, headers)
                self.assertEqual(reply.status, status, reply.body)
                if status == 400:
                    self.assertEqual(reply.code(), 'BadDigest')

    def test_settings_survive_a_restart_and_go_with_the_bucket(self):
        with Daemon(tls=False) as daemon:
            tags = b'<Tagging><TagSet><Tag><Key>team</Key><Value>rl</Value></Tag></TagSet></Tagging>'
            self.assertEqual(daemon.request('PUT', '/lasting', headers={'x-deltabucket-etag': 'fast'}).status, 200)
            self.assertEqual(daemon.request('PUT', '/lasting?tagging', tags).status, 200)
            self.assertEqual(daemon.request('PUT', '/lasting?versioning', VERSIONING % b'Suspended').status, 200)
            daemon.kill()
            daemon.start()
            self.assertIn(b'<Value>rl</Value>', daemon.request('GET', '/lasting?tagging').body)
            shown = daemon.request('GET', '/-/buckets/lasting').json()
            self.assertTrue(shown.pop('created').startswith('20'))
            self.assertEqual(shown, {'bucket': 'lasting', 'namespace': 'main', 'versioning': 'suspended', 'etag': 'fast', 'etag_in_use': 'fast', 'documents': ['tagging']})
            self.assertEqual(daemon.request('PUT', '/-/buckets/lasting', b'{"etag": "default"}').json()['etag_in_use'], 'md5')
            self.assertEqual(daemon.request('DELETE', '/lasting').status, 204)
            self.assertEqual(daemon.request('PUT', '/lasting').status, 200)
            self.assertEqual(daemon.request('GET', '/lasting?tagging').code(), 'NoSuchTagSet')

    def test_the_server_decides_on_etags_of_buckets_without_a_rule(self):
        with Daemon(tls=False, arguments=['--etag', 'fast']) as daemon:
            daemon.request('PUT', '/plain')
            daemon.request('PUT', '/strict', headers={'x-deltabucket-etag': 'md5'})
            self.assertEqual(daemon.request('GET', '/-/buckets/plain').json()['etag_in_use'], 'fast')
            self.assertEqual(daemon.request('GET', '/-/buckets/strict').json()['etag_in_use'], 'md5')
            self.assertEqual(daemon.request('PUT', '/strict/k', b'text').headers['ETag'], f'"{hashlib.md5(b"text").hexdigest()}"')

    def test_what_infrastructure_tools_walk(self):
        self.request('PUT', '/walked')
        table = [('accelerate', 200, 'AccelerateConfiguration'), ('acl', 200, 'FULL_CONTROL'), ('cors', 404, 'NoSuchCORSConfiguration'),
                 ('encryption', 404, 'ServerSideEncryptionConfigurationNotFoundError'), ('lifecycle', 404, 'NoSuchLifecycleConfiguration'),
                 ('location', 200, 'LocationConstraint'), ('logging', 200, 'BucketLoggingStatus'), ('notification', 200, 'NotificationConfiguration'),
                 ('object-lock', 404, 'ObjectLockConfigurationNotFoundError'), ('ownershipControls', 404, 'OwnershipControlsNotFoundError'),
                 ('policy', 404, 'NoSuchBucketPolicy'), ('policyStatus', 200, 'IsPublic'),
                 ('publicAccessBlock', 404, 'NoSuchPublicAccessBlockConfiguration'), ('replication', 404, 'ReplicationConfigurationNotFoundError'),
                 ('requestPayment', 200, 'BucketOwner'), ('tagging', 404, 'NoSuchTagSet'), ('versioning', 200, 'VersioningConfiguration'),
                 ('website', 404, 'NoSuchWebsiteConfiguration')]
        for query, status, text in table:
            with self.subTest(query=query):
                reply = self.request('GET', f'/walked?{query}')
                self.assertEqual(reply.status, status)
                self.assertIn(text.encode(), reply.body)
                self.assertEqual(reply.headers['Content-Type'], 'application/xml')
                if status == 404:
                    self.assertIn(reply.headers['x-amz-request-id'].encode(), reply.body)

    def on_host(self, host, method, target, body=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.daemon.port, timeout=30)
        try:
            return self.request(method, target, body, {'Host': host}, connection=connection)
        finally:
            connection.close()

    def test_virtual_hosts(self):
        for bucket in ('hosted', 'a.b'):
            self.request('PUT', f'/{bucket}x' if bucket == 'a.b' else f'/{bucket}')
        self.request('PUT', '/hosted/k', b'text')
        self.request('PUT', '/a.bx/k', b'dots')
        table = [('hosted.models.example.org', '/k', b'text'), ('hosted.models.example.org:9000', '/k', b'text'),
                 ('HOSTED.Models.Example.ORG', '/k', b'text'), ('a.bx.models.example.org', '/k', b'dots'),
                 ('elsewhere.example.com', '/hosted/k', b'text'), ('models.example.org', '/hosted/k', b'text'),
                 ('127.0.0.1', '/hosted/k', b'text'), ('[::1]:9000', '/hosted/k', b'text')]
        for host, target, body in table:
            with self.subTest(host=host):
                reply = self.on_host(host, 'GET', target)
                self.assertEqual((reply.status, reply.body), (200, body))
        self.assertIn(b'<Key>k</Key>', self.on_host('hosted.models.example.org', 'GET', '/?list-type=2').body)
        self.assertEqual(self.on_host('hosted.models.example.org', 'HEAD', '/').status, 200)
        self.assertEqual(self.on_host('made-here.models.example.org', 'PUT', '/').status, 200)
        self.assertEqual(self.request('HEAD', '/made-here').status, 200)
        root = self.request('POST', '/', b'Action=AssumeRole')
        self.assertEqual((root.status, root.code()), (405, 'MethodNotAllowed'))


if __name__ == '__main__':
    unittest.main()
