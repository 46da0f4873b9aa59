"""s5cmd (AWS SDK for Go) and minio for Python, with their default configurations."""
import io
import os
import unittest

from tests.support.clients import ClientCase, both_schemes, content, importable, installed, md5, multipart_etag, read, tree, write

S5CMD = installed('s5cmd')
MINIO = importable('minio')
if MINIO:
    import minio
    import minio.commonconfig
    import minio.deleteobjects
    import minio.error
    import minio.versioningconfig


@unittest.skipUnless(S5CMD, 's5cmd is not installed (setup/clients)')
@both_schemes
class S5cmd(ClientCase):
    agent = '^aws-sdk-go/'

    def s5cmd(self, *arguments, check=True, data=None):
        return self.run_program(S5CMD, '--endpoint-url', self.endpoint, *arguments, check=check, data=data)

    def test_everything(self):
        for number in range(12):
            write(self.path('tree', f'd{number % 3}', f'file {number}'), content(20_000, number))
        path, data = self.file('large.bin', 60_000_000)
        self.s5cmd('mb', 's3://s5cmd')
        self.s5cmd('cp', self.path('tree') + '/', 's3://s5cmd/tree/')
        self.s5cmd('cp', path, 's3://s5cmd/large.bin')
        self.assertCalled('UploadPart', 'CompleteMultipartUpload')
        self.s5cmd('cp', 's3://s5cmd/large.bin', path + '.back')
        self.assertSame(read(path + '.back'), data)
        self.s5cmd('sync', 's3://s5cmd/tree/*', self.path('tree.back') + '/')
        self.assertEqual(tree(self.path('tree.back')), tree(self.path('tree')))
        os.remove(self.path('tree', 'd0', 'file 0'))
        self.s5cmd('sync', '--delete', self.path('tree') + '/', 's3://s5cmd/tree/')
        self.assertEqual(len(self.s5cmd('ls', 's3://s5cmd/tree/*').stdout.splitlines()), 11)
        self.s5cmd('mv', 's3://s5cmd/tree/d1/file 1', 's3://s5cmd/moved')
        self.assertEqual(self.s5cmd('cat', 's3://s5cmd/moved').stdout.encode(), content(20_000, 1).decode(errors='replace').encode())
        self.assertIn('s5cmd', self.s5cmd('du', 's3://s5cmd/*').stdout)
        self.s5cmd('rm', 's3://s5cmd/*')
        self.s5cmd('rb', 's3://s5cmd')
        self.assertCalled('DeleteObjects', 'GetObject')


@unittest.skipUnless(MINIO, 'minio for Python is not installed (setup/clients)')
@both_schemes
class MinioPython(ClientCase):
    agent = '^MinIO '

    @classmethod
    def prepare(cls):
        more = {}
        if cls.tls:
            import ssl
            import urllib3
            more['http_client'] = urllib3.PoolManager(cert_reqs=ssl.CERT_REQUIRED, ca_certs=cls.daemon.ca)
        cls.client = minio.Minio(endpoint=cls.endpoint.split('//')[1], access_key=cls.keys[0], secret_key=cls.keys[1], secure=cls.tls, **more)
        cls.client.make_bucket(bucket_name='minio')

    def test_objects(self):
        data = content(12_000_000)
        put = self.client.put_object(bucket_name='minio', object_name='dir/large ü', data=io.BytesIO(data), length=-1, part_size=5 << 20)
        self.assertEqual(put.etag, multipart_etag(data, 5 << 20))
        got = self.client.get_object(bucket_name='minio', object_name='dir/large ü')
        self.assertSame(got.read(), data)
        got.close()
        small = self.client.put_object(bucket_name='minio', object_name='small', data=io.BytesIO(b'small'), length=5, metadata={'colour': 'blue'})
        self.assertEqual(small.etag, md5(b'small'))
        stat = self.client.stat_object(bucket_name='minio', object_name='small')
        self.assertEqual((stat.size, stat.metadata['x-amz-meta-colour']), (5, 'blue'))
        self.client.copy_object(bucket_name='minio', object_name='copy', source=minio.commonconfig.CopySource(bucket_name='minio', object_name='dir/large ü'))
        names = sorted(entry.object_name for entry in self.client.list_objects(bucket_name='minio', recursive=True))
        self.assertEqual(names, ['copy', 'dir/large ü', 'small'])
        doomed = [minio.deleteobjects.DeleteObject(name) for name in names]
        self.assertEqual(list(self.client.remove_objects(bucket_name='minio', delete_object_list=doomed)), [])
        with self.assertRaises(minio.error.S3Error):
            self.client.stat_object(bucket_name='minio', object_name='small')

    def test_versions(self):
        self.client.make_bucket(bucket_name='minio-versions')
        self.client.set_bucket_versioning(bucket_name='minio-versions', config=minio.versioningconfig.VersioningConfig(minio.commonconfig.ENABLED))
        ids = [self.client.put_object(bucket_name='minio-versions', object_name='k', data=io.BytesIO(b'x'), length=1).version_id for _ in range(2)]
        listed = [entry.version_id for entry in self.client.list_objects(bucket_name='minio-versions', include_version=True)]
        self.assertEqual(listed, ids[::-1])


if __name__ == '__main__':
    unittest.main()
