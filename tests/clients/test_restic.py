"""restic, Debian's: a repository in a bucket, with backup, check, restore and prune. Exception: RESTIC_PASSWORD, without which there is no repository."""
import os
import unittest

from tests.support.clients import ClientCase, both_schemes, content, program, tree, write

RESTIC = program('/usr/bin/restic', 'restic')


@unittest.skipUnless(RESTIC, 'restic is not installed')
@both_schemes
class Restic(ClientCase):
    agent = '^MinIO '
    ca_variable = 'SSL_CERT_FILE'

    @classmethod
    def restic(cls, *arguments, check=True):
        return cls.run_program(RESTIC, '-r', f's3:{cls.endpoint}/restic/repository', *arguments, check=check, RESTIC_PASSWORD='test')

    def test_backup_check_restore_prune(self):
        source = self.path('source')
        for number in range(20):
            write(os.path.join(source, f'd{number % 3}', f'file {number}'), content(150_000, number))
        write(os.path.join(source, 'large'), content(9_000_000))
        self.restic('init')
        self.restic('backup', source)
        write(os.path.join(source, 'later'), b'later')
        self.restic('backup', source)
        self.restic('check', '--read-data')
        self.restic('restore', 'latest', '--target', self.path('restored'))
        self.assertEqual(tree(self.path('restored') + source), tree(source))
        self.assertEqual(len(self.restic('snapshots', '--compact').stdout.split('\n')), 7)
        self.restic('forget', '--keep-last', '1', '--prune')
        self.restic('check', '--read-data')
        self.assertIn('later', self.restic('ls', 'latest').stdout)
        self.assertCalled('PutObject', 'GetObject', 'DeleteObject')


if __name__ == '__main__':
    unittest.main()
