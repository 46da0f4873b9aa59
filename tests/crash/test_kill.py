"""SIGKILL to the server at any moment while trainers publish and clients put objects: nothing acknowledged may be lost, and the flow goes on.
After some kills the catalog is lost too, and made again from the journal: that loses nothing either.

DELTABUCKET_TORTURE=1 makes it 1,000 kills instead of 50.
"""
import glob
import hashlib
import json
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import Daemon
from tests.support.runs import read_step

KILLS = 1000 if os.environ.get('DELTABUCKET_TORTURE') else 50


class Kill(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.checkpoints = [self.folder_of(step, path) for step, path in enumerate(expand_small(self.folder, 24))]
        self.source = random.Random(5)
        self.losses = []

    def folder_of(self, step, path):
        """Of two files that change with each step, so that a step is of more than one object."""
        folder = os.path.join(self.folder, str(step))
        os.mkdir(folder)
        os.rename(path, os.path.join(folder, 'model.safetensors'))
        with open(os.path.join(folder, 'config.json'), 'w') as config:
            json.dump({'step': step}, config)
        return folder

    def checkpoint(self, step):
        return self.checkpoints[step % len(self.checkpoints)]

    def tearDown(self):
        shutil.rmtree(self.folder)

    def put_objects(self, daemon, acknowledged, stop, seed):
        """Puts objects of mixed sizes until told to stop; notes what was acknowledged, and what may or may not be there."""
        source = random.Random(seed)
        number = 0
        while not stop.is_set():
            number += 1
            body = source.randbytes(source.choice((10, 900, 5_000, 90_000, 400_000, 2_000_000)))
            key = f'{seed}/{number}'
            try:
                if daemon.request('PUT', f'/kill/{key}', body, timeout=10).status == 200:
                    acknowledged[key] = hashlib.sha256(body).hexdigest()
            except OSError:
                time.sleep(0.02)
            except Exception:  # a reply that was cut
                time.sleep(0.02)

    def check(self, daemon, objects, first, steps):
        """These objects, and the steps from `first` on; a worker gets the newest."""
        for key, digest in objects.items():
            got = daemon.request('GET', f'/kill/{key}')
            self.assertEqual((got.status, hashlib.sha256(got.body).hexdigest()), (200, digest), key)
        if steps:
            into = os.path.join(daemon.scratch, f'check{steps}')
            daemon.client('follow', '--run', 'kill/r', '--into', into, '--once')
            for name in ('model.safetensors', 'config.json'):
                self.assertEqual(sha256(os.path.join(into, 'current', name)), sha256(os.path.join(self.checkpoint(steps - 1), name)))
            shutil.rmtree(into)
        for step in range(first, steps):
            read_step(self, daemon, 'kill/r', step)

    def kill_and_start(self, daemon, loses_catalog):
        daemon.kill()
        if loses_catalog:
            for path in glob.glob(f'{daemon.folder}/catalog.db*'):
                os.remove(path)
            rebuilt = daemon.admin('rebuild', check=False)
            if rebuilt.returncode != 0:  # told by the test, once its writers have ended
                self.losses.append(rebuilt.stdout + rebuilt.stderr)
                return
        daemon.start()

    def test_server_killed_while_publishing(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/kill')
            daemon.await_log('snapshot_made')  # from here on there is a journal that leads to all of it
            acknowledged, published, checked, seen = {}, 0, 0, 0
            for kill in range(KILLS):
                stop = threading.Event()
                writers = [threading.Thread(target=self.put_objects, args=(daemon, acknowledged, stop, f'{kill}-{i}')) for i in range(2)]
                for writer in writers:
                    writer.start()
                # The trainer's client is in the middle of it: it retries, and meets the server that was started again.
                killer = threading.Timer(self.source.uniform(0.0, 0.25), self.kill_and_start, (daemon, kill % 7 == 6))
                killer.start()
                while killer.is_alive():
                    done = daemon.client('publish', '--run', 'kill/r', '--step', published, self.checkpoint(published), check=False)
                    self.assertIn(done.returncode, (0, 3), done.stderr)
                    published += done.returncode == 0
                killer.join()
                stop.set()
                for writer in writers:
                    writer.join()
                self.assertEqual(self.losses, [])
                if kill % 10 == 9:  # what is new, and some of the rest: all of it comes at the end
                    known = list(acknowledged)
                    chosen = known[checked:] + self.source.sample(known[:checked], min(checked, 100))
                    self.check(daemon, {key: acknowledged[key] for key in chosen}, seen, published)
                    checked, seen = len(known), published
            self.assertGreater(len(acknowledged), KILLS)
            daemon.client('publish', '--run', 'kill/r', '--step', published, self.checkpoint(published))
            self.check(daemon, acknowledged, 0, published + 1)


if __name__ == '__main__':
    unittest.main()
