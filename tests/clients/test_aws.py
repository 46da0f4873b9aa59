"""The AWS CLI with its default configuration: Debian's version 2 and the current version 1."""
import json
import os
import unittest

from tests.support.clients import PART, ClientCase, both_schemes, content, installed, md5, multipart_etag, program, read, tree, write
from tests.support.forked_program import ForkedProgram

DEBIAN = program('/usr/bin/aws')
CURRENT = installed('aws')
LARGE = 2 * PART + 777_777


class AwsCase(ClientCase):
    agent = '^aws-cli/'
    program = None

    @classmethod
    def prepare(cls):
        cls.forked = cls.enterClassContext(ForkedProgram(cls.program, 'awscli.clidriver'))
        cls.aws('s3', 'mb', 's3://aws')

    @classmethod
    def run_bytes(cls, command, environment, folder, data, timeout):
        return cls.forked.run(command[1:], environment, folder, data, timeout)

    @classmethod
    def aws(cls, *arguments, check=True, endpoint=None, data=None, **environment):
        return cls.run_program(cls.program, '--endpoint-url', endpoint or cls.endpoint, *arguments, check=check, data=data, **environment)

    @classmethod
    def api(cls, operation, *arguments, **more):
        return json.loads(cls.aws('s3api', operation, '--output', 'json', *arguments, **more).stdout or '{}')


class AwsTransfers:
    def test_copy_there_and_back(self):
        path, data = self.file('file.bin', 5_000_000)
        self.aws('s3', 'cp', path, 's3://aws/dir/file.bin')
        self.aws('s3', 'cp', 's3://aws/dir/file.bin', path + '.back')
        self.assertSame(read(path + '.back'), data)
        self.assertEqual(self.daemon.request('HEAD', '/aws/dir/file.bin').headers['ETag'], f'"{md5(data)}"')

    def test_large_file_goes_in_parts(self):
        path, data = self.file('large.bin', LARGE)
        self.aws('s3', 'cp', path, 's3://aws/large.bin')
        self.assertCalled('CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload')
        self.assertEqual(self.daemon.request('HEAD', '/aws/large.bin').headers['ETag'], f'"{multipart_etag(data)}"')
        self.aws('s3', 'cp', 's3://aws/large.bin', 's3://aws/copy of large.bin')
        self.aws('s3', 'mv', 's3://aws/copy of large.bin', path + '.moved')
        self.assertSame(read(path + '.moved'), data)
        self.assertEqual(self.daemon.request('HEAD', '/aws/copy%20of%20large.bin').status, 404)

    def test_streams(self):
        data = content(PART + 99, 1)
        self.aws('s3', 'cp', '-', 's3://aws/stream', data=data)
        self.aws('s3', 'cp', 's3://aws/stream', self.path('stream'))
        self.assertSame(read(self.path('stream')), data)


class AwsCommands:
    def test_sync(self):
        for name in ('a', 'b/c', 'b/d e', 'ü'):
            write(self.path('tree', name), content(10_000, len(name)))
        self.aws('s3', 'sync', self.path('tree'), 's3://aws/tree')
        self.aws('s3', 'sync', 's3://aws/tree', self.path('tree.back'))
        self.assertEqual(tree(self.path('tree.back')), tree(self.path('tree')))
        self.assertEqual(self.aws('s3', 'sync', self.path('tree'), 's3://aws/tree').stdout, '')
        os.remove(self.path('tree', 'a'))
        self.aws('s3', 'sync', '--delete', self.path('tree'), 's3://aws/tree')
        self.assertNotIn(' a\n', self.aws('s3', 'ls', 's3://aws/tree/').stdout)
        self.aws('s3', 'rm', '--recursive', 's3://aws/tree')
        self.assertEqual(self.aws('s3', 'ls', 's3://aws/tree/', check=False).stdout, '')

    def test_listing(self):
        for number in range(5):
            self.daemon.request('PUT', f'/aws/list/{number}/x%20y+z', body=b'listed')
        self.assertEqual(self.aws('s3', 'ls', 's3://aws/list/').stdout.count('PRE'), 5)
        self.assertIn('x y+z', self.aws('s3', 'ls', '--recursive', 's3://aws/list/').stdout)
        paged = self.aws('s3api', 'list-objects-v2', '--bucket', 'aws', '--prefix', 'list/', '--page-size', '2', '--query', 'length(Contents)').stdout
        self.assertEqual(paged.strip(), '5')
        self.assertIn('aws', self.aws('s3', 'ls').stdout)

    def test_metadata_and_removal(self):
        path, data = self.file('described', 1000)
        self.api('put-object', '--bucket', 'aws', '--key', 'described', '--body', path, '--metadata', 'colour=blue', '--content-type', 'text/x-test')
        head = self.api('head-object', '--bucket', 'aws', '--key', 'described')
        self.assertEqual((head['Metadata'], head['ContentType'], head['ContentLength']), ({'colour': 'blue'}, 'text/x-test', len(data)))
        self.aws('s3', 'rm', 's3://aws/described')
        self.assertIn('404', self.aws('s3api', 'head-object', '--bucket', 'aws', '--key', 'described', check=False).stderr)

    def test_presigned(self):
        path, data = self.file('presigned', 2000)
        self.aws('s3', 'cp', path, 's3://aws/presigned')
        url = self.aws('s3', 'presign', 's3://aws/presigned').stdout.strip()
        reply = self.daemon.request('GET', url[len(self.endpoint):], token=None)
        self.assertEqual((reply.status, reply.body), (200, data))

    def test_versions(self):
        self.aws('s3', 'mb', 's3://aws-versions')
        self.api('put-bucket-versioning', '--bucket', 'aws-versions', '--versioning-configuration', 'Status=Enabled')
        path, _ = self.file('version', 100)
        ids = [self.api('put-object', '--bucket', 'aws-versions', '--key', 'k', '--body', path)['VersionId'] for _ in range(2)]
        self.aws('s3', 'rm', 's3://aws-versions/k')
        listed = self.api('list-object-versions', '--bucket', 'aws-versions')
        self.assertEqual([entry['VersionId'] for entry in listed['Versions']], ids[::-1])
        self.assertEqual(len(listed['DeleteMarkers']), 1)

    def test_errors_arrive_as_the_client_knows_them(self):
        missing = self.aws('s3', 'cp', 's3://never-made/k', self.path('none'), check=False)
        self.assertNotEqual(missing.returncode, 0)
        denied = self.aws('s3', 'ls', 's3://aws', check=False, AWS_SECRET_ACCESS_KEY='wrong')
        self.assertIn('SignatureDoesNotMatch', denied.stderr)


# Every call of the AWS CLI takes a third of a second of the processors: the transfers are tried over both schemes, the rest over one with each program.
@unittest.skipUnless(DEBIAN, 'the AWS CLI of Debian is not installed')
@both_schemes
class AwsDebian(AwsTransfers, AwsCase):
    program = DEBIAN


@unittest.skipUnless(CURRENT, 'the current AWS CLI is not installed (setup/clients)')
@both_schemes
class AwsCurrent(AwsTransfers, AwsCase):
    program = CURRENT


@unittest.skipUnless(DEBIAN, 'the AWS CLI of Debian is not installed')
class AwsDebianCommands(AwsCommands, AwsCase):
    program = DEBIAN


@unittest.skipUnless(CURRENT, 'the current AWS CLI is not installed (setup/clients)')
class AwsCurrentCommands(AwsCommands, AwsCase):
    program = CURRENT
    tls = False


if __name__ == '__main__':
    unittest.main()
