"""SIGKILL to a follower at any moment while steps are published: `current` always leads to one whole, right checkpoint, and the next start goes on.

DELTABUCKET_TORTURE=1 makes it 600 kills instead of 60.
"""
import os
import random
import shutil
import subprocess
import tempfile
import time
import unittest

from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon

KILLS = 600 if os.environ.get('DELTABUCKET_TORTURE') else 60


class FollowKill(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.checkpoints = expand_small(self.folder, 12)
        self.sums = {sha256(path): step for step, path in enumerate(self.checkpoints)}

    def tearDown(self):
        shutil.rmtree(self.folder)

    def start(self, daemon, into, *more):
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=daemon.scratch)
        return subprocess.Popen([CLIENT, 'follow', '--run', 'kill/r', '--into', into, '--quiet', *more], env=environment, stderr=subprocess.DEVNULL)

    def held(self, into):
        """The step that `current` leads to; every byte of it is that step's."""
        link = os.path.join(into, 'current')
        if not os.path.lexists(link):
            return -1
        self.assertEqual(os.listdir(link), ['model.safetensors'])
        return self.sums[sha256(os.path.join(link, 'model.safetensors'))]

    def test_follower_killed_at_any_moment(self):
        source = random.Random(7)
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/kill')
            into = os.path.join(daemon.scratch, 'worker')
            part = os.path.join(daemon.scratch, 'part')
            seen = os.path.join(daemon.scratch, 'seen')
            published, before = 0, -1
            daemon.client('publish', '--run', 'kill/r', self.checkpoints[0])
            for kill in range(KILLS):
                command = f'echo $DELTABUCKET_STEP $(sha256sum < $DELTABUCKET_PATH/model.safetensors) >> {seen}'
                followers = [self.start(daemon, into, '--exec', command), self.start(daemon, part, '--rank', '0/2')]
                if kill % 6 == 5 and published + 1 < len(self.checkpoints):
                    published += 1
                    daemon.client('publish', '--run', 'kill/r', '--step', published, self.checkpoints[published])
                time.sleep(source.uniform(0.0, 0.12))
                for follower in followers:
                    follower.kill()
                    follower.wait()
                held = self.held(into)
                self.assertGreaterEqual(held, before)
                before = held
            for folder, more in ((into, []), (part, ['--rank', '0/2'])):
                self.assertEqual(self.start(daemon, folder, '--once', *more).wait(timeout=60), 0)
            self.assertEqual(self.held(into), published)
            self.assertGreater(published, 0)
            with open(seen) as file:  # what the command saw was whole each time
                for line in file:
                    step, digest = line.split()[:2]
                    self.assertEqual(self.sums[digest], int(step))
            self.assertLessEqual(len(os.listdir(os.path.join(into, 'generations'))), 4)
            fresh = os.path.join(daemon.scratch, 'fresh')
            self.assertEqual(self.start(daemon, fresh, '--once', '--rank', '0/2').wait(timeout=60), 0)
            self.assertEqual(sha256(os.path.join(part, 'current', 'model.safetensors')), sha256(os.path.join(fresh, 'current', 'model.safetensors')))


if __name__ == '__main__':
    unittest.main()
