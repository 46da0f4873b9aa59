"""Retention of a run whose trainer uploads one anchor and then deltas alone: the server makes anchors of its own before the old steps go."""
import os
import shutil
import tempfile
import time
import unittest

from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import Daemon

STEPS = 22


class Retention(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.checkpoints = expand_small(cls.scratch, STEPS)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__)
        self.assertEqual(self.daemon.request('PUT', '/models').status, 200)

    def call(self, method, target, body=None):
        return self.daemon.request(method, f'/v1/runs/models/r{target}', body)

    def publish(self, first, last):
        for step in range(first, last + 1):
            self.daemon.client('publish', '--run', 'models/r', '--anchor', 'never', '--keep-steps', 2, self.checkpoints[step])

    def kept(self):
        steps = self.call('GET', '/steps?limit=1000').json()['steps']
        return [step['step'] for step in steps if not step.get('collected')]

    def read_anchor(self, step):
        path = os.path.join(self.scratch, 'read')
        reply = self.daemon.request('GET', f'/models/r/anchors/step_{step:06}/model.safetensors')
        self.assertEqual(reply.status, 200, reply.body[:200])
        with open(path, 'wb') as file:
            file.write(reply.body)
        return sha256(path)

    def follow(self):
        into = os.path.join(self.daemon.scratch, f'into{time.monotonic_ns()}')
        self.daemon.client('follow', '--run', 'models/r', '--into', into, '--once')
        return sha256(os.path.join(into, 'current', 'model.safetensors'))

    def test_old_steps_go_once_the_server_has_an_anchor(self):
        self.publish(0, 5)
        self.assertEqual(self.call('PUT', '/pins/early', '{"step":5}').status, 200)
        last = 5
        while self.kept()[0] < 5 and last < STEPS - 2:
            last += 1
            self.publish(last, last)
            limit = time.monotonic() + 60
            while self.call('GET', f'/steps/{last}').json()['verified'] == 'pending' and time.monotonic() < limit:
                time.sleep(0.05)
            time.sleep(0.3)  # for the background to make, once it has proven
        kept = self.kept()
        self.assertEqual(kept[0], 5)
        self.assertEqual(kept[-2:], [last - 1, last])
        self.assertEqual(self.follow(), sha256(self.checkpoints[last]))
        for step in (5, kept[1], last):
            self.assertEqual(self.read_anchor(step), sha256(self.checkpoints[step]))
        self.assertEqual(self.daemon.request('GET', '/models/r/anchors/step_000003/model.safetensors').status, 404)
        self.daemon.kill()
        self.daemon.start()
        self.publish(last + 1, last + 2)
        self.assertEqual(self.follow(), sha256(self.checkpoints[last + 2]))
        self.assertEqual(self.read_anchor(5), sha256(self.checkpoints[5]))
        self.assertEqual(self.call('DELETE', '/pins/early').status, 204)


if __name__ == '__main__':
    unittest.main()
