"""The steps face by hand: what curl would do, and each refusal."""
import json
import os
import shutil
import tempfile
import threading
import time
import unittest

from tests.support.checkpoints import expand_small, write_safetensors
from tests.support.daemon import DATA, Daemon


class Steps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.checkpoints = expand_small(cls.folder, 3)
        assert cls.daemon.request('PUT', '/models').status == 200
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        shutil.rmtree(cls.folder)

    def setUp(self):
        type(self).count += 1
        self.run_name = f'run{self.count}'
        self.base = f'/v1/runs/models/{self.run_name}'
        reply = self.call('POST', '')
        self.assertEqual(reply.status, 200, reply.body)
        self.epoch = reply.json()['epoch']

    def call(self, method, target, body=None, headers=None, timeout=120):
        text = json.dumps(body) if isinstance(body, (dict, list)) else body
        return self.daemon.request(method, self.base + target, text, headers, timeout=timeout)

    def digest(self, path):
        return json.loads(self.daemon.client('inspect', '--json', path).stdout)['digest']

    def put(self, name, path):
        with open(path, 'rb') as file:
            reply = self.daemon.request('PUT', f'/models/{self.run_name}/{name}', file.read())
        self.assertEqual(reply.status, 200, reply.body)
        return {'key': f'{self.run_name}/{name}', 'size': os.path.getsize(path), 'digest': reply.headers['x-deltabucket-digest']}

    def anchor(self, step, path, **changes):
        stored = self.put(f'a{step}', path)
        body = {'step': step, 'epoch': self.epoch, 'digest': self.digest(path),
                'files': [{'path': 'model.safetensors', 'size': stored['size'], 'digest': stored['digest']}],
                'forms': [{'kind': 'anchor', 'format': 'full', 'objects': [dict(stored, name='model.safetensors')]}]}
        if step > 0:
            body['base'] = {'step': step - 1, 'digest': self.digest(self.checkpoints[step - 1])}
        body.update(changes)
        return body

    def delta(self, step, **changes):
        made = os.path.join(self.folder, f'{self.run_name}-delta{step}')
        if not os.path.exists(made):
            self.daemon.client('diff', '--format', 'trl-gap', self.checkpoints[step - 1], self.checkpoints[step], made)
        body = self.anchor(step, self.checkpoints[step])
        body['forms'] = [{'kind': 'delta', 'format': 'trl-gap', 'objects': [dict(self.put(f'd{step}', made), name='delta.safetensors')]}]
        body.update(changes)
        return body

    def publish(self, step, body):
        return self.call('PUT', f'/steps/{step}', body)

    def test_publish_and_read_back(self):
        first = self.publish(0, self.anchor(0, self.checkpoints[0]))
        self.assertEqual(first.status, 201, first.body)
        self.assertEqual(self.publish(1, self.delta(1)).status, 201)
        manifest = self.call('GET', '/steps/1').json()
        self.assertEqual((manifest['step'], manifest['base']['step'], manifest['digest']), (1, 0, self.digest(self.checkpoints[1])))
        self.assertEqual(self.call('GET', '').json()['head'], 1)
        self.assertEqual([s['step'] for s in self.call('GET', '/steps').json()['steps']], [0, 1])
        path = self.call('GET', '/path?want=latest').json()
        self.assertIn([(link['step'], link['form']['kind']) for link in path['links']],
                      ([(0, 'anchor'), (1, 'delta')], [(1, 'anchor')]))  # by now the server may have made one
        have = self.call('GET', f"/path?have=0&digest={self.digest(self.checkpoints[0])}&want=latest").json()
        self.assertEqual([link['step'] for link in have['links']], [1])
        wrong = self.call('GET', f"/path?have=0&digest=xxh3-128:{'0' * 32}&want=1").json()
        self.assertEqual(wrong['links'][0]['form']['kind'], 'anchor')
        for link in path['links']:
            for entry in link['form']['objects']:
                self.assertEqual(len(self.call('GET', '/' + entry['url']).body), entry['size'])

    def test_objects_outlive_their_keys(self):
        self.publish(0, self.anchor(0, self.checkpoints[0]))
        url = '/steps/0/objects/anchor/model.safetensors'
        with open(self.checkpoints[0], 'rb') as file:
            want = file.read()
        self.daemon.request('PUT', f'/models/{self.run_name}/a0', b'something else')
        self.assertEqual(self.call('GET', url).body, want)
        self.daemon.request('DELETE', f'/models/{self.run_name}/a0')
        self.assertEqual(self.call('GET', url).body, want)
        self.assertEqual(self.call('GET', url, headers={'Range': 'bytes=100-199'}).body, want[100:200])
        self.assertEqual(self.daemon.request('GET', f'/models/{self.run_name}/a0').status, 404)

    def test_republish(self):
        body = self.anchor(0, self.checkpoints[0])
        self.assertEqual(self.publish(0, body).status, 201)
        self.assertEqual(self.publish(0, body).status, 200)
        other = self.publish(0, self.anchor(0, self.checkpoints[0], label='other'))
        self.assertEqual((other.status, other.code()), (409, 'step_differs'))

    def test_refusals_change_nothing(self):
        body = self.anchor(0, self.checkpoints[0])
        form = body['forms'][0]
        swap = lambda **changes: dict(body, forms=[dict(form, objects=[dict(form['objects'][0], **changes)])])
        table = [
            (1, dict(body, step=1, base={'step': 0, 'digest': body['digest']}), 409, 'head_moved'),
            (1, body, 400, None),
            (0, dict(body, forms=[dict(form, kind='delta', format='trl-gap')]), 400, None),
            (0, dict(body, epoch=self.epoch + 1), 400, None),
            (0, swap(digest='xxh3-128:' + '0' * 32), 422, 'digest_mismatch'),
            (0, swap(size=1), 422, 'digest_mismatch'),
            (0, swap(key='not/there'), 404, None),
            (0, swap(name='../escape'), 400, None),
            (0, dict(body, forms=[]), 400, None),
            (0, 'not json', 400, None),
            (0, '{"epoch": 1, "epoch": 2}', 400, None),
            (0, '[' * 100000, 400, None),
        ]
        for step, request, status, code in table:
            reply = self.publish(step, request)
            self.assertEqual(reply.status, status, (request if isinstance(request, str) else code, reply.body))
            if code:
                self.assertEqual(reply.code(), code)
            self.assertIsNone(self.call('GET', '').json()['head'])

    def test_delta_on_another_base(self):
        self.publish(0, self.anchor(0, self.checkpoints[0]))
        reply = self.publish(1, self.delta(1, base={'step': 0, 'digest': self.digest(self.checkpoints[2])}))
        self.assertEqual((reply.status, reply.code()), (409, 'base_missing'))
        self.assertEqual(self.call('GET', '').json()['head'], 0)

    def test_fenced_epoch(self):
        body = self.anchor(0, self.checkpoints[0])
        self.assertEqual(self.call('POST', '').json()['epoch'], self.epoch + 1)
        reply = self.publish(0, body)
        self.assertEqual((reply.status, reply.code()), (412, 'stale_epoch'))

    def test_schema_is_kept(self):
        self.publish(0, self.anchor(0, self.checkpoints[0]))
        path = os.path.join(self.folder, 'other.safetensors')
        write_safetensors(path, {'stranger': ('BF16', [2], b'\0\1\2\3')})
        reply = self.publish(1, dict(self.anchor(1, path), digest=self.digest(path)))
        self.assertEqual((reply.status, reply.code()), (422, 'schema_mismatch'))
        raw = open(self.checkpoints[1], 'rb').read()
        size = int.from_bytes(raw[:8], 'little')
        header = json.loads(raw[8:8 + size])
        header.pop('__metadata__', None)
        tensors = {name: (e['dtype'], e['shape'], raw[8 + size + e['data_offsets'][0]:8 + size + e['data_offsets'][1]]) for name, e in header.items()}
        dropped = sorted(tensors)[0]
        del tensors[dropped]
        write_safetensors(path, tensors)
        reply = self.publish(1, dict(self.anchor(1, path), digest=self.digest(path)))
        self.assertEqual((reply.status, reply.code()), (422, 'incomplete_anchor'))
        self.assertIn(dropped, reply.json()['error']['message'])

    def test_long_poll(self):
        self.publish(0, self.anchor(0, self.checkpoints[0]))
        self.assertEqual(self.call('GET', '/steps/latest?after=0&wait=0').status, 204)
        begun = time.monotonic()
        self.assertEqual(self.call('GET', '/steps/latest?after=0&wait=1').status, 204)
        self.assertGreaterEqual(time.monotonic() - begun, 0.9)
        answers = []
        waiters = [threading.Thread(target=lambda: answers.append(self.call('GET', '/steps/latest?after=0&wait=60').json()['step'])) for _ in range(20)]
        for waiter in waiters:
            waiter.start()
        time.sleep(0.3)
        self.publish(1, self.delta(1))
        for waiter in waiters:
            waiter.join()
        self.assertEqual(answers, [1] * 20)
        self.assertEqual(self.call('GET', '/steps/latest').json()['step'], 1)

    def test_collecting_steps(self):
        self.publish(0, self.anchor(0, self.checkpoints[0]))
        self.publish(1, self.delta(1))
        both = self.delta(2)
        both['forms'] += self.anchor(2, self.checkpoints[2])['forms']
        self.assertEqual(self.publish(2, both).status, 201)
        self.assertEqual(self.call('DELETE', '/steps/0').code(), 'chain_in_use')
        self.assertEqual(self.call('DELETE', '/steps/2').code(), 'chain_in_use')
        self.assertEqual(self.call('DELETE', '/steps/1').status, 204)
        gone = self.call('GET', '/steps/1')
        self.assertEqual((gone.status, gone.code(), gone.json()['error']['anchor']), (410, 'collected', 2))
        self.assertEqual(self.call('DELETE', '/steps/0').status, 204)
        self.assertEqual([link['step'] for link in self.call('GET', '/path?want=latest').json()['links']], [2])

    def test_deleting_a_run_and_its_bucket(self):
        self.daemon.request('PUT', '/short-lived')
        self.assertEqual(self.daemon.request('POST', '/v1/runs/short-lived/r').status, 200)
        self.assertEqual(self.daemon.request('DELETE', '/short-lived').status, 409)
        self.assertEqual(self.daemon.request('DELETE', '/v1/runs/short-lived/r').status, 204)
        self.assertEqual(self.daemon.request('GET', '/v1/runs/short-lived/r').status, 404)
        self.assertEqual(self.daemon.request('DELETE', '/short-lived').status, 204)

    def test_unknown_things(self):
        for target, status in (('/v1/runs/nobucket/r', 404), ('/v1/runs/models/never', 404), (self.base + '/steps/7', 404),
                               (self.base + '/steps/x', 400)):
            reply = self.daemon.request('GET', target)
            self.assertEqual(reply.status, status, target)
            self.assertTrue(reply.json()['error']['message'])
        self.assertEqual(self.daemon.request('POST', '/v1/runs/models/bad%20name').status, 400)

    def test_an_adoption_that_failed_is_shown_until_the_next_one(self):
        run, status = '/v1/runs/models/adopted', ('status', 'models/adopted')
        with open(os.path.join(DATA, 'small', 'anchors', 'step_000000.safetensors'), 'rb') as file:
            anchor = file.read()
        self.assertEqual(self.daemon.request('POST', run, b'{}').status, 200)
        self.assertEqual(self.daemon.request('PUT', run + '/settings', b'{"adopt":"trl"}').status, 200)
        self.assertNotIn('failed_adoption', self.daemon.request('GET', run).json())
        self.assertNotIn('step', self.daemon.client(*status).stdout.replace('no step', ''))
        self.daemon.request('PUT', '/models/adopted/anchors/step_000007.safetensors', b'not a checkpoint')
        self.daemon.await_log('adoption_failed')
        failed = self.daemon.request('GET', run).json()['failed_adoption']
        self.assertEqual(failed['publish'], 'step_000007')
        self.assertRegex(failed['created'], r'^20\d\d-.*Z$')
        self.assertIn(json.dumps(failed['error'])[1:-1], self.daemon.log())
        said = self.daemon.client(*status).stdout
        self.assertIn(f"the publish step_000007 of {failed['created']} did not become a step: {failed['error']}", said)
        told = [json.loads(line) for line in self.daemon.client('--json', *status).stdout.splitlines()]
        self.assertEqual(told[-1]['failed_adoption'], failed)
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.daemon.request('GET', run).json()['failed_adoption'], failed)
        self.daemon.request('PUT', '/models/adopted/anchors/step_000008.safetensors', anchor)
        while (reply := self.daemon.request('GET', run).json())['head'] is None:
            time.sleep(0.05)
        self.assertNotIn('failed_adoption', reply)
        self.assertNotIn('did not become', self.daemon.client(*status).stdout)

    def test_names_of_runs_are_bounded(self):
        """Whatever the route does with the name: settings put it into a prefix of keys."""
        base = '/v1/runs/models/' + 'n' * 3000
        settings = {'adopt': 'trl', 'adopt_prefix': '{run}/{run}'}
        for method, target, body in (
                ('POST', base, {}), ('PUT', base + '/settings', settings), ('PUT', base + '/settings', {}), ('GET', base, None),
                ('GET', base + '/steps/latest', None), ('GET', base + '/path?want=latest', None), ('DELETE', base, None),
                ('PUT', base + '/pins/p', {'step': 0}), ('GET', base + '/replicas', None), ('GET', base + '/webhook', None)):
            reply = self.daemon.request(method, target, None if body is None else json.dumps(body).encode())
            self.assertIn(reply.status, (400, 404), (method, target))
            self.assertTrue(reply.json()['error']['message'])
        self.assertEqual(self.daemon.request('GET', '/-/health').status, 200)


if __name__ == '__main__':
    unittest.main()
