"""The AWS SDK for JavaScript (with lib-storage and the presigner) and minio-js, with their default configurations: sdk.mjs and minio.mjs.

Exception: forcePathStyle of the SDK where the endpoint is an address; with a name it uses its default, virtual hosts. Its keys, region and CA
come from the environment (NODE_EXTRA_CA_CERTS).
"""
import os
import shutil
import unittest

from tests.support.clients import NODE_MODULES, ClientCase, both_schemes, program

NODE = program('node', 'nodejs')
HERE = os.path.dirname(os.path.abspath(__file__))
READY = NODE and os.path.isdir(os.path.join(NODE_MODULES, 'minio'))
MISSING = 'Node.js or its packages are not installed (setup/clients)'


class NodeCase(ClientCase):
    ca_variable = 'NODE_EXTRA_CA_CERTS'
    script = None

    @classmethod
    def prepare(cls):
        # Beside node_modules: that is where Node.js looks for packages from.
        cls.copy = shutil.copy(os.path.join(HERE, cls.script), cls.path(cls.script))
        os.symlink(NODE_MODULES, cls.path('node_modules'))
        cls.data, _ = cls.file('data.bin', 12_345_678)

    def node(self, test, endpoint=None):
        done = self.run_program(NODE, self.copy, test, endpoint or self.endpoint, self.data)
        self.assertEqual(done.stdout, 'passed\n', done.stderr)


@unittest.skipUnless(READY, MISSING)
@both_schemes
class JavascriptSdk(NodeCase):
    agent = '^aws-sdk-js/'
    script = 'sdk.mjs'

    def test_objects(self):
        self.node('objects')
        self.assertCalled('PutObject', 'GetObject')

    def test_streams(self):
        self.node('streams')
        self.assertCalled('PutObject', 'UploadPart', 'CompleteMultipartUpload')

    def test_checksums(self):
        self.node('checksums')

    def test_listings(self):
        self.node('listings')
        self.assertCalled('ListObjectsV2', 'DeleteObjects')

    def test_multipart(self):
        self.node('multipart')

    def test_presigned(self):
        self.node('presigned')

    def test_virtual_host(self):
        self.node('objects', self.named_endpoint)
        self.node('streams', self.named_endpoint)
        self.assertEqual(self.daemon.request('HEAD', '/javascript-virtual/stream').status, 200)


@unittest.skipUnless(READY, MISSING)
@both_schemes
class MinioJs(NodeCase):
    agent = '^MinIO '
    script = 'minio.mjs'

    def test_objects(self):
        self.node('objects')
        self.assertCalled('PutObject', 'GetObject')

    def test_files(self):
        self.node('files')

    def test_listings(self):
        self.node('listings')
        self.assertCalled('DeleteObjects')

    def test_presigned(self):
        self.node('presigned')

    def test_buckets(self):
        self.node('buckets')
        self.assertCalled('PutBucketVersioning')


if __name__ == '__main__':
    unittest.main()
