"""The tarball builds as it is: with its own configure, where there is no autoconf, and with setup/build."""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

from tests.support.debian import run, tarball

# A tarball that wants its configure anew would ask for these.
MISSING = [f'{tool.upper()}=/nonexistent/{tool}' for tool in ('aclocal', 'autoconf', 'autoheader', 'automake')]


class Tarball(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.mkdtemp(prefix='deltabucket-tarball-')
        self.addCleanup(shutil.rmtree, scratch)
        run('tar', 'xf', tarball(), '-C', scratch)
        [self.source] = glob.glob(os.path.join(scratch, 'deltabucket-*'))
        # A repository around it would answer for it.
        self.environment = {**os.environ, 'GIT_DIR': '/nonexistent'}

    def test_configure_and_make_without_autoconf(self):
        build = os.path.join(self.source, 'build', 'own')
        os.makedirs(build)
        run('../../configure', '--silent', '--disable-server', *MISSING, cwd=build, env=self.environment)
        run('make', '-s', '-j', str(os.cpu_count()), cwd=build, env=self.environment)
        run('make', '-s', 'install', f'DESTDIR={self.source}/root', cwd=build, env=self.environment)
        installed = os.path.join(self.source, 'root', 'usr', 'local')
        self.assertIn('deltabucket ', subprocess.run([os.path.join(installed, 'bin', 'deltabucket'), 'version'], capture_output=True, text=True, check=True).stdout)
        self.assertTrue(os.path.exists(os.path.join(installed, 'lib', 'libdeltabucket.so')))
        run('make', '-s', 'uninstall', f'DESTDIR={self.source}/root', cwd=build, env=self.environment)
        self.assertEqual([name for _, _, names in os.walk(installed) for name in names], [])

    def test_setup_build_makes_the_server(self):
        run('setup/build', 'build/server', 'deltabucketd', cwd=self.source, env=self.environment)
        server = os.path.join(self.source, 'build', 'server', 'deltabucketd')
        self.assertIn('deltabucketd ', subprocess.run([server, 'version'], capture_output=True, text=True, check=True).stdout)


if __name__ == '__main__':
    unittest.main()
