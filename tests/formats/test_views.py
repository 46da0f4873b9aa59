"""Views: a run's steps as objects in TRL's and slime's layouts, read by independent readers of those; made by the server alone."""
import os
import random
import shutil
import tempfile
import time
import unittest
import json

from tests.support.clients import importable
from tests.support.checkpoints import write_safetensors
from tests.support.daemon import Daemon

if not importable('numpy', 'safetensors', 'zstandard', 'xxhash', 'blake3', environment='formats'):
    raise unittest.SkipTest('setup/clients has not installed numpy, safetensors, zstandard, xxhash and blake3')

from tests.formats import container, series, slime  # noqa: E402

STEPS, LARGE_BYTES = 4, 48 << 20


class Views(unittest.TestCase):
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

    def call(self, method, target, body=None):
        return self.daemon.request(method, f'/v1/runs/models/run{target}', json.dumps(body) if body is not None else None)

    def switch(self, status=200, **settings):
        reply = self.call('PUT', '/settings', settings)
        self.assertEqual(reply.status, status, reply.body)
        return reply

    def publish(self, *numbers, path=None):
        for number in numbers:
            self.daemon.client('publish', '--run', 'models/run', '--step', str(number), path or self.steps[number][1])

    def get(self, key, into):
        """A GET waits while the view is made."""
        reply = self.daemon.request('GET', f'/models/{key}', timeout=70)
        self.assertEqual(reply.status, 200, (key, reply.body[:300], self.daemon.log()[-2000:]))
        os.makedirs(os.path.dirname(into), exist_ok=True)
        with open(into, 'wb') as file:
            file.write(reply.body)

    def listed(self, prefix):
        return [line.split('</Key>')[0] for line in self.daemon.request('GET', f'/models?list-type=2&prefix={prefix}').body.decode().split('<Key>')[1:]]

    def path(self, *names):
        return os.path.join(self.scratch, self.id(), *names)

    def wait_for(self, question, wanted, seconds=90):
        end = time.monotonic() + seconds
        while (answer := question()) != wanted and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(answer, wanted, self.daemon.log()[-3000:])

    def test_slime(self):
        """The receiver pulls all versions; a step without change is an empty index."""
        self.publish(0)
        self.switch(view_slime=True)
        self.publish(1, 2)
        self.publish(3, path=self.steps[2][1])
        for number in range(4):
            self.wait_for(lambda: any('safetensors' in key for key in self.listed(f'run/updates/weight_v{number:06d}/')), True)
            for key in self.listed(f'run/updates/weight_v{number:06d}/'):
                self.get(key, self.path(*key.split('/')[2:]))
        receiver = slime.Receiver(container.read(self.path('weight_v000000', 'model.safetensors'))[0])
        for number, wanted in enumerate((0, 1, 2, 2)):
            self.assertTrue(container.same(receiver.pull(self.path(), number), self.steps[wanted][2]))
        self.assertEqual(slime.read_index(self.path('weight_v000003'))['weight_map'], {})

    def publish_large(self, number):
        """So large that its view takes longer to make than a request needs."""
        path = os.path.join(self.scratch, f'large-{number}.safetensors')
        weights = bytearray(random.Random(1).randbytes(LARGE_BYTES))
        weights[1000 * number] ^= 1
        write_safetensors(path, {'w': ('BF16', [len(weights) // 2], bytes(weights))})
        self.publish(number, path=path)

    def ask(self, method, target, body=None):
        return self.daemon.request(method, target, body, headers={'content-type': 'application/json'}, timeout=70)

    def test_the_hub_face_waits_too(self):
        """Right after a publish, huggingface_hub asks for the facts of a file, and downloads nothing when there are none."""
        self.publish_large(0)
        self.switch(view_trl=True)
        self.publish_large(1)
        path = 'run/deltas/step_000001.safetensors'
        facts = self.ask('POST', '/api/buckets/main/models/paths-info', json.dumps({'paths': ['no', path]}))
        self.assertEqual([entry['path'] for entry in facts.json()], [path])
        self.publish_large(2)
        path = 'run/deltas/step_000002.safetensors'
        shown = self.ask('HEAD', f'/buckets/main/models/resolve/{path}')
        self.assertEqual((shown.status, int(shown.headers['X-Linked-Size']) > 0), (200, True))
        self.assertEqual(self.ask('HEAD', '/buckets/main/models/resolve/run/deltas/step_000003.safetensors').status, 404)

    def test_listings_of_the_hub_face_wait_too(self):
        """HfFileSystem finds a file by listing its folder: the first delta, a later one, and with either view."""
        self.publish_large(0)
        self.switch(view_trl=True, view_slime=True)
        for number in (1, 2):
            self.publish_large(number)
            index = f'run/updates/weight_v{number:06d}/model.safetensors.index.json'
            for target, wanted in ((index, index), ('run/deltas?recursive=false', f'run/deltas/step_{number:06d}.safetensors'),
                                   ('run?recursive=false', 'run/deltas'), ('run/updates', index)):
                shown = self.ask('GET', f'/api/buckets/main/models/tree/{target}')
                self.assertIn(wanted, [entry['path'] for entry in shown.json()], target)
        self.publish_large(3)
        shown = self.ask('GET', '/api/buckets/main/models/tree?recursive=false')  # which does not change by a view
        self.assertIn('run/deltas/step_000003.safetensors', shown.headers['x-deltabucket-pending'])
        whole = [entry['path'] for entry in self.ask('GET', '/api/buckets/main/models/tree').json()]
        self.assertIn('run/deltas/step_000003.safetensors', whole)

    def test_listings_name_what_is_pending(self):
        self.publish_large(0)
        self.switch(view_trl=True, view_slime=True)
        self.publish_large(1)
        for target in ('/models?list-type=2&prefix=run/updates/weight_v000001/model', '/models?prefix=run/updates/'):
            self.assertEqual(self.ask('GET', target).headers['x-deltabucket-pending'], 'run/updates/weight_v000001/', target)
        self.assertIsNone(self.ask('GET', '/models?list-type=2&prefix=other').headers['x-deltabucket-pending'])
        self.wait_for(lambda: self.ask('GET', '/models?list-type=2').headers['x-deltabucket-pending'], None)

    def test_clients_may_not_write_there(self):
        self.publish(0, 1)
        self.assertEqual(self.daemon.request('PUT', '/models/run/deltas/notes', 'x').status, 200)
        refused = self.switch(409, view_trl=True)
        self.assertIn('run/deltas/notes', refused.json()['error']['message'])
        self.assertFalse(self.call('GET', '').json()['settings']['view_trl'])
        self.assertEqual(self.daemon.request('DELETE', '/models/run/deltas/notes').status, 204)
        self.switch(view_trl=True)
        key = '/models/run/deltas/step_000001.safetensors'
        self.get(key[len('/models/'):], self.path('d'))
        for method, target in (('PUT', key), ('PUT', '/models/run/deltas/other'), ('DELETE', key), ('POST', key + '?uploads')):
            reply = self.daemon.request(method, target, '')
            self.assertEqual(reply.status, 403, (method, target))
            self.assertIn('`deltabucket runs settings BUCKET/run view_trl=false` turns it off', reply.body.decode())
            self.assertNotIn('runs rm', reply.body.decode())
        self.get(key[len('/models/'):], self.path('again'))
        with open(self.path('d'), 'rb') as one, open(self.path('again'), 'rb') as two:
            self.assertEqual(one.read(), two.read())
        self.assertEqual(self.daemon.request('GET', '/models/run/deltas/step_000009.safetensors').status, 404)
        self.switch(view_trl=False)
        self.assertEqual(self.daemon.request('PUT', '/models/run/deltas/other', 'x').status, 200)

    def test_views_survive_kills(self):
        self.publish(0)
        self.switch(view_trl=True)
        self.publish(1, 2)
        self.daemon.kill()
        self.daemon.start()
        self.wait_for(lambda: self.listed('run/deltas/'), ['run/deltas/step_000001.safetensors', 'run/deltas/step_000002.safetensors'])

    def test_views_go_with_their_steps(self):
        self.publish(0)
        self.switch(view_trl=True, view_slime=True)
        self.publish(1, 2)
        self.daemon.client('publish', '--run', 'models/run', '--anchor', 'always', self.steps[3][1])
        self.wait_for(lambda: len(self.listed('run/deltas/')), 3)
        self.wait_for(lambda: len({key.split('/')[2] for key in self.listed('run/updates/')}), 4)
        self.switch(keep_steps=1)
        self.wait_for(lambda: self.listed('run/deltas/'), ['run/deltas/step_000003.safetensors'])
        self.wait_for(lambda: {key.split('/')[2] for key in self.listed('run/updates/')}, {'weight_v000003'})


if __name__ == '__main__':
    unittest.main()
