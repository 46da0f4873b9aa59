"""Containerfile: the image builds on a Debian 12 of our own, without a registry, runs as a user of its
own, and is healthy as long as the server serves."""
import contextlib
import glob
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

from tests.support.debian import make_root, run, tarball
from tests.support.skips import needs_mount

BASE, IMAGE = 'localhost/deltabucket-test-base', 'localhost/deltabucket-test'
READY_SECONDS = 120  # ends what hangs


@needs_mount
class Container(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix='deltabucket-container-')
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        base = os.path.join(cls.scratch, 'base.tar')
        make_root(base, cls.scratch, 'apt')
        scratch = cls.buildah('from', 'scratch').strip()
        cls.buildah('add', '--quiet', scratch, base, '/')
        cls.buildah('commit', '--quiet', scratch, BASE)
        cls.buildah('rm', scratch)
        os.unlink(base)
        run('tar', 'xf', tarball(), '-C', cls.scratch)
        [source] = glob.glob(os.path.join(cls.scratch, 'deltabucket-*'))
        cls.buildah('build', '--isolation', 'chroot', '--format', 'docker', '--pull-never', '--layers=false', '--build-arg', f'BASE={BASE}', '--tag', IMAGE, source)

    @classmethod
    def command(cls, *words):
        """Images and containers lie in the scratch folder, as plain folders, which needs no module of the kernel."""
        return ['buildah', '--storage-driver', 'vfs', '--root', os.path.join(cls.scratch, 'storage'), '--runroot', os.path.join(cls.scratch, 'run'), *words]

    @classmethod
    def buildah(cls, *words):
        return run(*cls.command(*words))

    def test_the_image_says_how_it_is_run(self):
        facts = json.loads(self.buildah('inspect', '--type', 'image', IMAGE))['Docker']['config']
        self.assertEqual(facts['User'], '10001')
        self.assertEqual(list(facts['ExposedPorts']), ['9000/tcp'])
        self.assertEqual(list(facts['Volumes']), ['/var/lib/deltabucket'])
        self.assertEqual(facts['Entrypoint'], ['/usr/bin/deltabucketd'])
        self.assertEqual(facts['Healthcheck']['Test'][:2], ['CMD', 'curl'])
        self.assertEqual(facts['Labels']['org.opencontainers.image.title'], 'deltabucket')

    def test_a_server_runs_in_it(self):
        config = json.loads(self.buildah('inspect', '--type', 'image', IMAGE))['Docker']['config']
        container = self.buildah('from', '--pull-never', IMAGE).strip()
        self.addCleanup(self.buildah, 'rm', container)
        volume = os.path.join(self.scratch, 'volume')
        os.mkdir(volume, 0o700)
        os.chown(volume, 10001, 10001)

        def inside(*words):
            return self.command('run', '--isolation', 'chroot', '--volume', f'{volume}:/var/lib/deltabucket', container, '--', *words)
        healthy = inside(*config['Healthcheck']['Test'][1:])
        with open(os.path.join(self.scratch, 'output'), 'w+') as output:
            # buildah's isolation has the network of this machine, so the port is a free one.
            server = subprocess.Popen(inside(*config['Entrypoint'], '--listen', '127.0.0.1:0'), stdout=output, stderr=output)
            self.addCleanup(stop, server)
            limit = time.monotonic() + READY_SECONDS
            while subprocess.run(healthy, capture_output=True).returncode != 0:
                output.seek(0)
                self.assertIsNone(server.poll(), output.read())
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.2)
            output.seek(0)
            said = output.read()
        self.assertIn('deltabucketd is ready', said)
        self.assertNotRegex(said, r'db_[a-z0-9]{40}')
        made = json.loads(run(*inside('deltabucketd', 'keys', 'add', '--name', 'me', '--json')))
        self.assertTrue(made['token'])
        self.assertEqual(os.stat(os.path.join(volume, 'catalog.db')).st_uid, 10001)
        stop(server)
        self.assertNotEqual(subprocess.run(healthy, capture_output=True).returncode, 0)


def stop(server):
    """buildah hands the signal on to the server."""
    with contextlib.suppress(ProcessLookupError):
        server.terminate()
    server.wait(60)


if __name__ == '__main__':
    unittest.main()
