"""curl, as it is: bearer tokens and --aws-sigv4 over HTTPS with the private CA."""
import os
import subprocess
import tempfile
import unittest

from tests.support.checkpoints import sha256
from tests.support.daemon import ROOT_ID, ROOT_SECRET, ROOT_TOKEN, Daemon


class Curl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()
        cls.folder = tempfile.mkdtemp(dir=cls.daemon.scratch)
        cls.file = os.path.join(cls.folder, 'file.bin')
        with open(cls.file, 'wb') as file:
            file.write(os.urandom(20_000_000))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def curl(self, *arguments, check=True, cwd=None):
        done = subprocess.run(['curl', '-sS', '--cacert', self.daemon.ca, *arguments], capture_output=True, cwd=cwd, timeout=120)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_bearer_round_trip(self):
        auth = ['-H', f'Authorization: Bearer {ROOT_TOKEN}', '--fail']
        self.curl(*auth, '-X', 'PUT', f'{self.daemon.endpoint}/curl')
        self.curl(*auth, '-T', self.file, f'{self.daemon.endpoint}/curl/dir/file.bin')
        back = os.path.join(self.folder, 'back')
        os.makedirs(back)
        self.curl(*auth, '-O', f'{self.daemon.endpoint}/curl/dir/file.bin', cwd=back)
        self.assertEqual(sha256(os.path.join(back, 'file.bin')), sha256(self.file))

    def test_resumed_download(self):
        auth = ['-H', f'Authorization: Bearer {ROOT_TOKEN}', '--fail']
        self.curl(*auth, '-X', 'PUT', f'{self.daemon.endpoint}/resume')
        self.curl(*auth, '-T', self.file, f'{self.daemon.endpoint}/resume/file.bin')
        part = os.path.join(self.folder, 'part')
        with open(self.file, 'rb') as source, open(part, 'wb') as target:
            target.write(source.read(7_654_321))
        self.curl(*auth, '-C', '-', '-o', part, f'{self.daemon.endpoint}/resume/file.bin')
        self.assertEqual(sha256(part), sha256(self.file))

    def test_upload_from_a_pipe(self):
        auth = ['-H', f'Authorization: Bearer {ROOT_TOKEN}', '--fail']
        self.curl(*auth, '-X', 'PUT', f'{self.daemon.endpoint}/pipe')
        with open(self.file, 'rb') as source:
            done = subprocess.run(['curl', '-sS', '--cacert', self.daemon.ca, *auth, '-T', '-', f'{self.daemon.endpoint}/pipe/k'], stdin=source, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        got = self.curl(*auth, f'{self.daemon.endpoint}/pipe/k').stdout
        with open(self.file, 'rb') as source:
            self.assertEqual(got, source.read())

    def test_aws_sigv4(self):
        sign = ['--aws-sigv4', 'aws:amz:us-east-1:s3', '--user', f'{ROOT_ID}:{ROOT_SECRET}', '--fail', '-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD']
        self.curl(*sign, '-X', 'PUT', f'{self.daemon.endpoint}/signed')
        self.curl(*sign, '-T', self.file, f'{self.daemon.endpoint}/signed/file.bin')
        back = os.path.join(self.folder, 'signed-back')
        self.curl(*sign, '-o', back, f'{self.daemon.endpoint}/signed/file.bin')
        self.assertEqual(sha256(back), sha256(self.file))
        wrong = self.curl('--aws-sigv4', 'aws:amz:us-east-1:s3', '--user', f'{ROOT_ID}:wrong', '-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD',
                          f'{self.daemon.endpoint}/signed/file.bin')
        self.assertIn(b'<Code>SignatureDoesNotMatch</Code>', wrong.stdout)

    def test_without_the_ca_the_connection_is_refused(self):
        done = subprocess.run(['curl', '-sS', f'{self.daemon.endpoint}/-/ready'], capture_output=True)
        self.assertEqual(done.returncode, 60)


if __name__ == '__main__':
    unittest.main()
