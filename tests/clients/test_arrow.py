"""pyarrow's S3FileSystem, fsspec's s3fs, DuckDB's httpfs, obstore (the Rust crate object_store) and runai-model-streamer, with which vLLM and
SGLang load weights (`--load-format runai_streamer`): files_client.py.

Exceptions: pyarrow is told that it may create and delete buckets, DuckDB to verify certificates (it does not by default) and, where the endpoint is
an address, to use path style; obstore that plain HTTP is allowed; the streamer to use path style. pyarrow and DuckDB take the CA as a setting of their own.
"""
import os
import unittest

from tests.support.clients import FILES_PYTHON, ClientCase, both_schemes, content, write

HERE = os.path.dirname(os.path.abspath(__file__))
READY = os.path.exists(FILES_PYTHON)
MISSING = 'pyarrow, s3fs, DuckDB and obstore are not installed (setup/clients)'


class FilesCase(ClientCase):
    @classmethod
    def prepare(cls):
        cls.file('data.bin', 22_222_222)
        for name in ('a', 'b/c', 'b/d e'):
            write(cls.path('tree', name), content(30_000, len(name)))

    def run_library(self, name, endpoint=None):
        done = self.run_program(FILES_PYTHON, os.path.join(HERE, 'files_client.py'), name, endpoint or self.endpoint, self.folder)
        self.assertEqual(done.stdout, 'passed\n', done.stderr)


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Arrow(FilesCase):
    agent = 'aws-sdk-cpp'

    def test_arrow(self):
        self.run_library('arrow')
        self.assertCalled('CreateMultipartUpload', 'CompleteMultipartUpload', 'GetObject', 'ListObjectsV2', 'DeleteObjects')


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Fsspec(FilesCase):
    agent = 'aiobotocore|Botocore'

    def test_fsspec(self):
        self.run_library('fsspec')
        self.assertCalled('CreateMultipartUpload', 'CompleteMultipartUpload', 'GetObject', 'ListObjectsV2', 'DeleteObjects')


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Duckdb(FilesCase):
    agent = '^duckdb/'

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.daemon.request('PUT', '/duckdb')
        cls.daemon.request('PUT', '/duckdb-virtual')

    def test_path_style(self):
        self.run_library('duckdb')
        self.assertCalled('PutObject', 'GetObject', 'ListObjectsV2')

    def test_virtual_host(self):
        self.run_library('duckdb', self.named_endpoint)


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Obstore(FilesCase):
    agent = '^object_store/'
    ca_variable = 'SSL_CERT_FILE'

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.daemon.request('PUT', '/obstore')

    def test_obstore(self):
        self.run_library('obstore')
        self.assertCalled('CreateMultipartUpload', 'CompleteMultipartUpload', 'GetObject', 'ListObjectsV2', 'DeleteObjects')


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Streamer(FilesCase):
    """It sends the whole URL as the target of each request."""
    agent = '^(CRTS3NativeClient|aws-sdk-cpp)/'

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.daemon.request('PUT', '/streamer')
        with open(cls.path('data.bin'), 'rb') as data:
            cls.daemon.request('PUT', '/streamer/model/shard%201.safetensors', data.read())

    def test_streamer(self):
        self.run_library('streamer')
        self.assertCalled('GetObject', 'ListObjectsV2')


if __name__ == '__main__':
    unittest.main()
