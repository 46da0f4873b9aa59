"""Trainers that never heard of steps: what they put in their own conventions becomes steps, proven and followed like any other; and hot-loads."""
import json
import os
import shutil
import tempfile
import time
import unittest

from tests.support.clients import importable
from tests.support.daemon import Daemon

if not importable('numpy', 'safetensors', 'zstandard', 'xxhash', 'blake3', environment='formats'):
    raise unittest.SkipTest('setup/clients has not installed numpy, safetensors, zstandard, xxhash and blake3')

from tests.formats import container, series, slime, trl  # noqa: E402

STEPS = 4
HOT_LOAD = '/hot_load/v1/models/hot_load'
DEPLOYMENT = {'fireworks-deployment': 'rollouts', 'fireworks-model': 'llm'}


class Adopt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.steps = list(series.walk(cls.scratch, steps=STEPS))

    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__)
        self.assertEqual(self.daemon.request('PUT', '/models').status, 200)

    def open_run(self, **settings):
        self.assertEqual(self.call('POST', '').status, 200)
        reply = self.call('PUT', '/settings', settings)
        self.assertEqual(reply.status, 200, reply.body)

    def call(self, method, target, body=None):
        return self.daemon.request(method, f'/v1/runs/models/run{target}', json.dumps(body) if body is not None else None)

    def put(self, key, path):
        with open(path, 'rb') as file:
            reply = self.daemon.request('PUT', f'/models/{key}', file.read())
        self.assertEqual(reply.status, 200, reply.body)

    def put_folder(self, key, folder):
        """The index last, as trainers do."""
        for name in sorted(os.listdir(folder), key=lambda name: (name.endswith('.json'), name)):
            self.put(f'{key}{name}', os.path.join(folder, name))

    def wait_for(self, question, wanted, seconds=90):
        end = time.monotonic() + seconds
        while (answer := question()) != wanted and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(answer, wanted, self.daemon.log()[-3000:])

    def head(self):
        return self.call('GET', '').json()['head']

    def follow(self):
        """What a worker that follows the run ends with."""
        into = os.path.join(self.scratch, f'follow-{self.id()}')
        self.daemon.client('follow', '--run', 'models/run', '--into', into, '--once')
        folder = os.path.join(into, 'current')
        tensors = {}
        for name in os.listdir(folder):
            if name.endswith('.safetensors'):
                tensors.update(container.read(os.path.join(folder, name))[0])
        return tensors

    def check_steps(self, count, formats):
        for number in range(count):
            self.wait_for(lambda: self.call('GET', f'/steps/{number}').json().get('verified'), 'ok')
        self.assertEqual([self.call('GET', f'/steps/{number}').json()['forms'][0]['format'] for number in range(count)], formats)
        self.assertTrue(container.same(self.follow(), self.steps[count - 1][2]))

    def test_stitch_moves_its_pointer_over_several_versions(self):
        self.open_run(adopt='stitch', adopt_prefix='root/')
        for number in range(STEPS):
            folder = os.path.join(self.scratch, f'{self.id()}-{number}')
            if number:
                slime.write_delta(folder, 'slime-xor', self.steps[number - 1][2], self.steps[number][2], number)
            else:
                os.makedirs(folder)
                shutil.copy(self.steps[0][1], os.path.join(folder, 'model.safetensors'))
            self.put_folder(f'root/updates/{slime.version_name(number)}/', folder)
        self.assertIsNone(self.head())
        for version, head in ((1, 1), (3, 3)):
            self.daemon.request('PUT', '/models/root/latest', f'job-9/weight_v{version:06d}')
            self.wait_for(self.head, head)
        self.assertEqual(self.call('GET', '/steps/3').json()['label'], 'job-9/weight_v000003')
        self.check_steps(STEPS, ['full'] + ['slime-xor'] * (STEPS - 1))

    def test_a_gap_and_a_wrong_delta_do_not_become_steps(self):
        self.open_run(adopt='trl')
        path = os.path.join(self.scratch, 'patch.safetensors')
        trl.write_anchor(path, self.steps[0][2])
        self.put('run/anchors/step_000001.safetensors', path)
        self.wait_for(self.head, 0)
        trl.write_delta('trl-gap', path, self.steps[1][2], self.steps[2][2], 3)
        self.put('run/deltas/step_000003.safetensors', path)
        with open(path, 'wb') as file:
            file.write(b'\xff' * 4096)
        self.put('run/deltas/step_000002.safetensors', path)
        self.wait_for(lambda: self.daemon.log().count('adoption_failed'), 2)
        self.assertEqual(self.head(), 0)
        trl.write_delta('trl-gap', path, self.steps[0][2], self.steps[1][2], 2)
        self.put('run/deltas/step_000002.safetensors', path)
        self.wait_for(self.head, 1)

    def hot_load(self, body, status=200, deployment=None):
        reply = self.daemon.request('POST', HOT_LOAD, json.dumps(body), {'fireworks-deployment': deployment} if deployment else DEPLOYMENT)
        self.assertEqual(reply.status, status, reply.body)
        return reply

    def snapshot(self, identity, number, previous=None):
        folder = os.path.join(self.scratch, f'{self.id()}-{identity}')
        if previous:
            slime.write_delta(folder, 'slime-xor', self.steps[number - 1][2], self.steps[number][2], number, 'adler32')
        else:
            os.makedirs(folder)
            shutil.copy(self.steps[number][1], os.path.join(folder, 'model.safetensors'))
        self.put_folder(f'uploads/{identity}/', folder)
        body = {'identity': identity, 'reset_prompt_cache': True}
        if previous:
            body['incremental_snapshot_metadata'] = {'previous_snapshot_identity': previous, 'compression_format': 'zstd', 'checksum_format': 'alder32'}
        return body

    def test_hot_load(self):
        self.open_run(hot_load='rollouts', hot_load_prefix='uploads/')
        self.hot_load({'identity': 'x'}, 404, 'another')
        first = self.snapshot('base-a', 0)
        self.hot_load(first)
        self.hot_load(first)
        self.hot_load(self.snapshot('delta-b', 1, 'base-a'))
        self.wait_for(self.head, 1)
        self.assertEqual(self.call('PUT', '/replicas/w1', {'state': 'ready', 'step': 1}).status, 200)
        self.assertEqual(self.call('PUT', '/replicas/w2', {'state': 'fetching', 'step': 0, 'wanted': 1}).status, 200)
        status = self.daemon.request('GET', HOT_LOAD, headers=DEPLOYMENT).json()
        self.assertEqual([(one['current_snapshot_identity'], one['readiness'], one['loading_state']['stage']) for one in status['replicas']],
                         [('base-a', False, 'fetching'), ('delta-b', True, 'ready')])
        self.assertEqual(status['replicas'][0]['loading_state']['target_snapshot_identity'], 'delta-b')
        self.assertEqual(self.daemon.request('POST', HOT_LOAD + '/hint', '{}', DEPLOYMENT).status, 200)
        self.check_steps(2, ['full', 'slime-xor'])

    def test_hot_loads_that_are_refused(self):
        self.open_run(hot_load='rollouts', hot_load_prefix='uploads/')
        self.hot_load(self.snapshot('a', 0))
        self.hot_load(self.snapshot('b', 1, 'a'))
        self.assertEqual(self.hot_load(self.snapshot('c', 2, 'a'), 409).json()['error']['code'], 'head_moved')
        self.assertEqual(self.hot_load({'identity': 'd', 'incremental_snapshot_metadata': {'previous_snapshot_identity': 'nobody'}}, 409).json()['error']['code'],
                         'base_missing')
        arc = {'previous_snapshot_identity': 'b', 'compression_format': 'arc_v2', 'checksum_format': 'alder32'}
        self.hot_load({'identity': 'd', 'incremental_snapshot_metadata': arc}, 422)
        self.hot_load({'identity': 'a/b'}, 400)
        reply = self.daemon.request('POST', HOT_LOAD, '{"identity":"d"}')
        self.assertEqual(reply.status, 400, reply.body)
        self.assertEqual(self.daemon.request('POST', HOT_LOAD, '{"identity":"d"}', DEPLOYMENT, token=None).status, 401)
        # A delta that is announced as a full snapshot must not poison the chain.
        self.wait_for(self.head, 1)
        body = self.snapshot('e', 2, 'b')
        del body['incremental_snapshot_metadata']
        self.hot_load(body)
        self.wait_for(lambda: self.daemon.request('GET', HOT_LOAD, headers=DEPLOYMENT).json()['snapshot']['state'], 'failed')
        self.assertEqual(self.head(), 1)


if __name__ == '__main__':
    unittest.main()
