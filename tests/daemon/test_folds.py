"""Folds: made by the server behind the publishes, taken by readers that are behind, bit-exact."""
import json
import os
import random
import shutil
import struct
import tempfile
import time
import unittest

from tests.support.checkpoints import sha256, write_safetensors
from tests.support.daemon import Daemon

LAST = 34
ELEMENTS = 40000
PATIENCE = 60


class Series:
    """A model of bf16 weights of which each step moves some by one: in the order of the real ones, the same few again and again."""

    def __init__(self):
        self.random = random.Random(5)
        self.weights = [0x3c00 + self.random.randrange(0x200) + (self.random.randrange(2) << 15) for _ in range(ELEMENTS)]
        self.movers = self.random.sample(range(ELEMENTS), ELEMENTS // 20)

    def step(self):
        for place in self.random.sample(self.movers, ELEMENTS // 70):
            self.weights[place] += self.random.choice((-1, 1))

    def write(self, folder, number):
        os.makedirs(folder, exist_ok=True)
        half = ELEMENTS // 2
        write_safetensors(os.path.join(folder, 'model.safetensors'), {
            'a': ('BF16', [half], struct.pack(f'<{half}H', *self.weights[:half])),
            'b': ('BF16', [ELEMENTS - half], struct.pack(f'<{ELEMENTS - half}H', *self.weights[half:]))})
        with open(os.path.join(folder, 'config.json'), 'w') as config:
            json.dump({'step': number // 20}, config)


def sums(folder):
    return {name: sha256(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}


class Folds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        assert cls.daemon.request('PUT', '/models').status == 200
        series, made = Series(), os.path.join(cls.folder, 'made')
        cls.workers = {}
        for number in range(LAST + 1):
            series.write(made, number)
            cls.daemon.client('publish', '--run', 'models/r', made)
            if number in (1, 2, 3, LAST - 9):
                cls.workers[number] = os.path.join(cls.folder, f'worker{number}')
                cls.follow(number)
            series.step()
        cls.known = sums(made)
        cls.wait_for_skips()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        shutil.rmtree(cls.folder)

    @classmethod
    def follow(cls, worker):
        done = cls.daemon.client('follow', '--run', 'models/r', '--into', cls.workers[worker], '--once', '--json')
        return [json.loads(line) for line in done.stdout.splitlines()][-1]

    @classmethod
    def call(cls, target, **options):
        return cls.daemon.request('GET', '/v1/runs/models/r' + target, **options)

    @classmethod
    def wait_for_skips(cls):
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            cls.skips = cls.call('/path?have=0').json()
            spans = [link['step'] - link['from'] for link in cls.skips['links']]
            if spans[:2] == [16, 16]:
                return
            time.sleep(0.2)
        raise AssertionError(f'no skip folds within {PATIENCE} s: {spans}; {cls.daemon.log()}')

    def single(self, have):
        steps = self.call('/steps?limit=100').json()['steps']
        return sum(form['bytes'] for step in steps if step['step'] > have for form in step['forms'] if form['kind'] == 'delta')

    def test_skip_folds_lead_over_many_steps(self):
        path = self.skips
        self.assertEqual([(link['from'], link['step']) for link in path['links']], [(0, 16), (16, 32), (32, 33), (33, 34)])
        self.assertLess(path['bytes'], 0.8 * self.single(0))
        self.assertEqual(path['bytes'], sum(link['form']['bytes'] for link in path['links']))
        fold = path['links'][0]
        self.assertEqual((fold['form']['kind'], fold['form']['format']), ('delta', 'ulp-class'))
        self.assertEqual(fold['digest'], self.call('/steps/16').json()['digest'])

    def test_objects_of_folds_are_served_like_any_other(self):
        link = self.call('/path?have=0&want=16').json()['links'][0]
        thing = next(thing for thing in link['form']['objects'] if thing['name'] == 'delta.safetensors')
        self.assertEqual(thing['url'], f"folds/0-16/objects/delta.safetensors?v={thing['digest'].removeprefix('xxh3-128:')}")
        whole = self.call('/' + thing['url'])
        self.assertEqual((whole.status, len(whole.body)), (200, thing['size']))
        self.assertIn('immutable', whole.headers['cache-control'])
        self.assertEqual(whole.headers['x-deltabucket-digest'], thing['digest'])
        part = self.call('/' + thing['url'], headers={'Range': 'bytes=10-29'})
        self.assertEqual((part.status, part.body), (206, whole.body[10:30]))
        again = self.call('/' + thing['url'], headers={'If-None-Match': whole.headers['etag']})
        self.assertEqual(again.status, 304)
        self.assertEqual(self.call('/' + thing['url'], token=None).status, 401)
        self.assertEqual(self.call('/folds/0-16/objects/other').code(), 'no_key')
        self.assertEqual(self.daemon.request('GET', '/models/' + thing['key']).status, 404)  # no key shows it

    def test_a_worker_far_behind_gets_one_direct_fold(self):
        told = self.follow(1)
        self.assertEqual((told['step'], told['links'], told['from_anchor']), (LAST, 1, False))
        self.assertLess(told['bytes'], 0.7 * self.single(1))
        self.assertEqual(sums(os.path.join(self.workers[1], 'current')), self.known)
        # The next one at the same step finds it there, without asking.
        links = self.call('/path?have=1').json()['links']
        self.assertEqual([(link['from'], link['step']) for link in links], [(1, LAST)])

    def test_a_worker_some_steps_behind_ends_bit_identical(self):
        told = self.follow(LAST - 9)
        self.assertEqual(told['step'], LAST)
        self.assertLess(told['bytes'], self.single(LAST - 9))
        self.assertEqual(sums(os.path.join(self.workers[LAST - 9], 'current')), self.known)

    def test_who_neither_waits_nor_holds_a_lease_asks_for_nothing(self):
        before = self.call('/path?have=5').json()
        time.sleep(0.5)
        self.assertEqual(self.call('/path?have=5').json(), before)
        self.assertGreater(len(before['links']), 1)

    def test_a_lease_asks_for_the_fold(self):
        lease = self.daemon.request('PUT', '/v1/runs/models/r/replicas/w', json.dumps({'state': 'ready', 'step': 6}))
        self.assertEqual(lease.status, 200, lease.body)
        self.assertGreater(len(self.call('/path?have=6').json()['links']), 1)
        limit = time.monotonic() + PATIENCE
        while len(self.call('/path?have=6').json()['links']) > 1 and time.monotonic() < limit:
            time.sleep(0.1)
        self.assertEqual([(link['from'], link['step']) for link in self.call('/path?have=6').json()['links']], [(6, LAST)])

    def test_files_that_an_anchor_changed_come_with_the_fold(self):
        series, made, worker = Series(), os.path.join(self.folder, 'anchored'), os.path.join(self.folder, 'anchored-worker')
        for number in range(5):
            series.write(made, 20 * number)
            with open(os.path.join(made, f'only-{number}.txt'), 'w') as extra:
                extra.write('tokens' * number)
            self.daemon.client('publish', '--run', 'models/a', '--anchor', 'always', made)
            if number == 0:
                self.daemon.client('follow', '--run', 'models/a', '--into', worker, '--once')
            if number < 4:
                os.remove(os.path.join(made, f'only-{number}.txt'))
            series.step()
        limit = time.monotonic() + PATIENCE
        path = None
        while time.monotonic() < limit:
            path = self.daemon.request('GET', '/v1/runs/models/a/path?have=0').json()
            if len(path['links']) == 1:
                break
            time.sleep(0.1)
        self.assertEqual([(link['form']['kind'], link['from']) for link in path['links']], [('delta', 0)])
        self.assertEqual([thing['name'] for thing in path['links'][0]['form']['objects']],
                         ['delta.safetensors', 'files/config.json', 'files/only-4.txt'])
        self.daemon.client('follow', '--run', 'models/a', '--into', worker, '--once')
        self.assertEqual(sums(os.path.join(worker, 'current')), sums(made))

    def test_a_checkpoint_of_one_file_stays_a_folder_to_its_readers(self):
        """Whether the last step is read from its delta or from an anchor that the server made of it meanwhile."""
        series, made, worker = Series(), os.path.join(self.folder, 'single'), os.path.join(self.folder, 'single-worker')
        path = os.path.join(made, 'model.safetensors')
        for number in range(9):
            series.write(made, number)
            self.daemon.client('publish', '--run', 'models/s', path)
            if number == 1:
                self.daemon.client('follow', '--run', 'models/s', '--into', worker, '--once')
            series.step()
        self.assertEqual(self.daemon.request('GET', f'/models/s/anchors/step_{8:06d}/model.safetensors').status, 200)  # it is made by now
        done = self.daemon.client('follow', '--run', 'models/s', '--into', worker, '--once', '--json')
        told = [json.loads(line) for line in done.stdout.splitlines()][-1]
        self.assertEqual((told['step'], told['links']), (8, 1))
        fold = self.daemon.request('GET', '/v1/runs/models/s/folds/1-8/objects/delta.safetensors').body
        metadata = json.loads(fold[8:8 + struct.unpack('<Q', fold[:8])[0]])['__metadata__']
        self.assertEqual((metadata['result_kind'], metadata['base_step'], metadata['step']), ('folder', '1', '8'))
        self.assertEqual(sums(os.path.join(worker, 'current')), {'model.safetensors': sha256(path)})

    def test_folds_survive_a_restart(self):
        self.daemon.kill()
        self.daemon.start()
        self.follow(2)
        self.assertEqual(sums(os.path.join(self.workers[2], 'current')), self.known)


if __name__ == '__main__':
    unittest.main()
