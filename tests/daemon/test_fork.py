"""Runs that begin at a step of another one."""
import json
import os
import shutil
import tempfile
import time
import unittest

from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import Daemon
from tests.support.runs import Run, shard, weights

STEPS = 4


class Fork(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.scratch = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.checkpoints = expand_small(cls.scratch, STEPS)
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        shutil.rmtree(cls.scratch)

    def setUp(self):
        type(self).count += 1
        self.old = Run(self.daemon, f'old{self.count}')
        self.new = f'/v1/runs/models/new{self.count}'

    def fork(self, step, run=None, **more):
        body = json.dumps(dict(more, fork={'run': run or self.old.name, 'step': step}))
        return self.daemon.request('POST', self.new, body)

    def get(self, target):
        return self.daemon.request('GET', self.new + target)

    def test_a_fork_shares_the_bytes_and_goes_its_own_way(self):
        self.old.publish_all(0, 3)
        reply = self.fork(2, keep_steps=7)
        self.assertEqual(reply.status, 200, reply.body)
        run = reply.json()
        old = self.old.call('GET', '/steps/2').json()
        self.assertEqual((run['epoch'], run['head'], run['steps'], run['keep_steps']), (1, 0, 1, 7))
        self.assertEqual(run['parent'], {'run': self.old.name, 'step': 2, 'digest': old['digest']})
        self.assertEqual(self.get('').json()['parent'], run['parent'])
        self.assertNotIn('parent', self.old.call('GET', '').json())
        step = self.get('/steps/0').json()
        self.assertEqual((step['digest'], step['files'], step['base']), (old['digest'], old['files'], None))
        self.assertEqual(self.get('/steps/0/objects/anchor/model.safetensors').body, shard(weights(2)))
        fork = Run(self.daemon, f'new{self.count}')
        self.assertEqual(fork.epoch, 2)
        body = fork.anchor(1)
        body['base'] = {'step': 0, 'digest': old['digest']}
        self.assertEqual(fork.publish(1, body).status, 201)
        self.assertEqual(self.old.call('DELETE', '').status, 204)
        time.sleep(2.5)  # for the sweeper
        self.assertEqual(self.get('/steps/0/objects/anchor/model.safetensors').body, shard(weights(2)))
        self.assertEqual([link['step'] for link in self.get('/path?want=0').json()['links']], [0])

    def test_refusals(self):
        self.old.publish_all(0, 1)
        for body in ('{"fork":5}', '{"fork":{}}', '{"fork":{"run":"x"}}', '{"fork":{"run":"x","step":"1"}}', '{"fork":{"run":"a/b","step":1}}'):
            self.assertEqual(self.daemon.request('POST', self.new, body).status, 400, body)
        for step, run, status, code in ((9, None, 404, 'no_step'), (0, 'nowhere', 404, 'no_run')):
            reply = self.fork(step, run)
            self.assertEqual((reply.status, reply.code()), (status, code))
        self.assertEqual(self.old.call('DELETE', '/steps/0').status, 204)
        self.assertEqual(self.fork(0).code(), 'collected')
        self.assertEqual(self.get('').status, 404)
        self.assertEqual(self.fork(1, expected_epoch=1).code(), 'precondition')
        self.assertEqual(self.fork(1).status, 200)
        reply = self.fork(1)
        self.assertEqual((reply.status, reply.code()), (409, 'exists'))

    def test_who_may_not_read_the_old_run_may_not_fork_it(self):
        self.old.publish_all(0, 0)
        made = self.daemon.request('POST', '/-/keys', f'{{"grants":["models/new{self.count}/=read,write"]}}')
        reply = self.daemon.request('POST', self.new, f'{{"fork":{{"run":"{self.old.name}","step":0}}}}', token=made.json()['token'])
        self.assertEqual((reply.status, reply.code()), (403, 'denied'))

    def test_a_step_without_an_anchor_is_given_one(self):
        for step in range(STEPS + 1):
            self.daemon.client('publish', '--run', f'models/{self.old.name}', '--take-over', '--anchor', 'never', self.checkpoints[step])
        limit = time.monotonic() + 60
        reply = self.fork(2)
        while reply.status == 425 and time.monotonic() < limit:
            self.assertEqual((reply.code(), reply.headers['Retry-After']), ('not_ready', '1'))
            time.sleep(0.2)
            reply = self.fork(2)
        self.assertEqual(reply.status, 200, reply.body)
        into = os.path.join(self.scratch, 'into')
        self.daemon.client('follow', '--run', f'models/new{self.count}', '--into', into, '--once')
        self.assertEqual(sha256(os.path.join(into, 'current', 'model.safetensors')), sha256(self.checkpoints[2]))
        self.daemon.client('publish', '--run', f'models/new{self.count}', self.checkpoints[3], '--take-over')
        self.assertEqual(self.old.call('DELETE', '').status, 204)
        time.sleep(2.5)
        self.daemon.client('follow', '--run', f'models/new{self.count}', '--into', into, '--once')
        self.assertEqual(sha256(os.path.join(into, 'current', 'model.safetensors')), sha256(self.checkpoints[3]))


if __name__ == '__main__':
    unittest.main()
