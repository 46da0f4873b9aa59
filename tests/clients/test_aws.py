"""The AWS CLI, unmodified: only the endpoint, the keys and the CA are set."""
import os
import shutil
import subprocess
import unittest

from tests.support.checkpoints import sha256
from tests.support.daemon import ROOT_ID, ROOT_SECRET, Daemon

AWS = next((path for path in ('/usr/bin/aws', shutil.which('aws')) if path and os.path.exists(path)), None)


@unittest.skipUnless(AWS, 'the AWS CLI is not installed')
class Aws(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()
        cls.file = os.path.join(cls.daemon.scratch, 'file.bin')
        with open(cls.file, 'wb') as file:
            file.write(os.urandom(5_000_000))
        cls.aws('s3', 'mb', 's3://aws')

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    @classmethod
    def aws(cls, *arguments, check=True, environment=None):
        every = dict(os.environ, **{**dict(AWS_ACCESS_KEY_ID=ROOT_ID, AWS_SECRET_ACCESS_KEY=ROOT_SECRET, AWS_CA_BUNDLE=cls.daemon.ca,
                     AWS_DEFAULT_REGION='us-east-1', HOME=cls.daemon.scratch, AWS_EC2_METADATA_DISABLED='true', AWS_MAX_ATTEMPTS='1'), **(environment or {})})
        done = subprocess.run([AWS, '--endpoint-url', cls.daemon.endpoint, *arguments], env=every, capture_output=True, text=True, timeout=120)
        if check and done.returncode != 0:
            raise AssertionError(f'aws {arguments}: {done.stderr}{done.stdout}')
        return done

    def test_copy_there_and_back(self):
        self.aws('s3', 'cp', self.file, 's3://aws/dir/file.bin')
        self.aws('s3', 'cp', 's3://aws/dir/file.bin', self.file + '.back')
        self.assertEqual(sha256(self.file), sha256(self.file + '.back'))

    def test_large_files_go_in_one_part_as_the_readme_says(self):
        large = os.path.join(self.daemon.scratch, 'large.bin')
        with open(large, 'wb') as file:
            file.write(os.urandom(20_000_000))
        settings = {'AWS_CONFIG_FILE': os.path.join(self.daemon.scratch, 'aws-config'), 'AWS_REQUEST_CHECKSUM_CALCULATION': 'when_required'}
        refused = self.aws('s3', 'cp', large, 's3://aws/large.bin', check=False, environment=settings)
        self.assertIn('NotImplemented', refused.stderr)
        self.aws('configure', 'set', 'default.s3.multipart_threshold', '5GB', environment=settings)
        self.aws('s3', 'cp', large, 's3://aws/large.bin', environment=settings)
        self.aws('s3', 'cp', 's3://aws/large.bin', large + '.back', environment=settings)
        self.assertEqual(sha256(large), sha256(large + '.back'))

    def test_listing(self):
        for i in range(5):
            self.aws('s3api', 'put-object', '--bucket', 'aws', '--key', f'list/{i}/x y+z', '--body', __file__)
        self.assertIn('list/', self.aws('s3', 'ls', 's3://aws').stdout)
        self.assertEqual(self.aws('s3', 'ls', 's3://aws/list/').stdout.count('PRE'), 5)
        self.assertIn('x y+z', self.aws('s3', 'ls', '--recursive', 's3://aws/list/').stdout)
        paged = self.aws('s3api', 'list-objects-v2', '--bucket', 'aws', '--prefix', 'list/', '--page-size', '2', '--query', 'length(Contents)').stdout
        self.assertEqual(paged.strip(), '5')
        self.assertIn('aws', self.aws('s3', 'ls').stdout)

    def test_metadata_and_removal(self):
        self.aws('s3api', 'put-object', '--bucket', 'aws', '--key', 'described', '--body', self.file, '--metadata', 'colour=blue', '--content-type', 'text/x-test')
        head = self.aws('s3api', 'head-object', '--bucket', 'aws', '--key', 'described').stdout
        self.assertIn('"colour": "blue"', head)
        self.assertIn('text/x-test', head)
        self.aws('s3', 'rm', 's3://aws/described')
        gone = self.aws('s3api', 'head-object', '--bucket', 'aws', '--key', 'described', check=False)
        self.assertIn('404', gone.stderr)

    def test_errors_arrive_as_the_client_knows_them(self):
        missing = self.aws('s3', 'cp', 's3://never-made/k', self.file + '.none', check=False)
        self.assertNotEqual(missing.returncode, 0)
        denied = self.aws('s3', 'ls', 's3://aws', check=False, environment={'AWS_SECRET_ACCESS_KEY': 'wrong'})
        self.assertIn('SignatureDoesNotMatch', denied.stderr)


if __name__ == '__main__':
    unittest.main()
