"""What a power cut may leave of the copies that a publisher keeps, unsynced: no worker gets it."""
import json
import os
import shutil
import unittest

from tests.support.checkpoints import sha256, write_safetensors
from tests.support.daemon import Daemon

THREADS_MEET = False
SHARDS = 'model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'
INDEX, CONFIG = 'model.safetensors.index.json', 'config.json'
WEIGHTS = SHARDS[1]


def zeros(path):
    size = os.path.getsize(path)
    with open(path, 'r+b') as file:
        file.seek(size // 2)
        file.write(bytes(size - size // 2))


def empty(path):
    os.truncate(path, 0)


def nothing_there(path):
    shutil.rmtree(os.path.dirname(path))


DAMAGES = zeros, empty, os.remove, nothing_there


class PowerCuts(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.daemon.start()
        self.daemon.request('PUT', '/models')
        self.checkpoints = [self.make(step) for step in range(2 + len(DAMAGES))]

    def tearDown(self):
        self.daemon.__exit__()

    def make(self, step):
        folder = os.path.join(self.daemon.scratch, f'checkpoint{step}')
        os.makedirs(folder)
        weights = bytearray(index * 7 % 251 for index in range(60_000))
        for at in range(0, 2 * step, 2):
            weights[30_000 + at] ^= 1
        for shard in SHARDS:
            tensors = {shard: ('BF16', [300, 100], bytes(weights))}
            write_safetensors(os.path.join(folder, shard), tensors, {'format': 'pt'})
        with open(os.path.join(folder, INDEX), 'w') as file:
            weight_map = {shard: shard for shard in SHARDS}
            json.dump({'metadata': {'total_size': 120_000}, 'weight_map': weight_map}, file)
        with open(os.path.join(folder, CONFIG), 'w') as file:
            file.write('{"model_type": "none"}')
        return folder

    def state(self, run):
        return os.path.join(self.daemon.scratch, f'state-{run}')

    def publish(self, run, step, *more):
        """From one place that each step overwrites, so that nothing but the state folder has the step before."""
        place = os.path.join(self.daemon.scratch, f'trained-{run}')
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.checkpoints[step], place)
        self.daemon.client('publish', '--run', f'models/{run}', '--state', self.state(run), *more, place)

    def base(self, run):
        """The step whose copy the state folder has."""
        with open(os.path.join(self.state(run), 'state.json')) as file:
            return json.load(file)['base']['step']

    def check(self, run, step):
        into = os.path.join(self.daemon.scratch, f'worker-{run}')
        self.daemon.client('follow', '--run', f'models/{run}', '--into', into, '--once')
        for name in (*SHARDS, INDEX, CONFIG):
            held = sha256(os.path.join(into, 'current', name))
            published = sha256(os.path.join(self.checkpoints[step], name))
            self.assertEqual(held, published, (run, step, name))

    def damage_baselines(self, run, ranks, *more):
        """Each way, of weights and another file: the next delta is made of what was published."""
        files = [(damage, name) for damage in DAMAGES for name in (WEIGHTS, CONFIG)]
        self.publish(run, 0, *more)
        for step, (damage, name) in enumerate(files, 1):
            own = 'rank-00000-of-00001' if ranks else '.'
            copy = step - 1 if ranks else self.base(run)
            damage(os.path.join(self.state(run), own, f'step-{copy:06d}', 'checkpoint', name))
            self.publish(run, step % len(self.checkpoints), *more)
            self.check(run, step % len(self.checkpoints))
        steps = self.daemon.client('steps', f'models/{run}', '--json').stdout.splitlines()
        forms = [form['kind'] for line in steps for form in json.loads(line)['forms']]
        self.assertEqual(forms.count('delta'), len(files))

    def test_a_damaged_baseline(self):
        self.damage_baselines('plain', False, '--anchor', 'never')

    def test_a_damaged_delta_behind_the_copy(self):
        self.publish('deltas', 0)
        for number, damage in enumerate(DAMAGES):
            self.publish('deltas', 1)
            self.publish('deltas', 2)
            self.assertLess(self.base('deltas'), 3 * number + 2)
            folder = os.path.join(self.state('deltas'), f'step-{3 * number + 2:06d}', 'delta')
            damage(os.path.join(folder, next(name for name in sorted(os.listdir(folder)) if name.endswith('.safetensors'))))
            self.publish('deltas', 3 + number % 2)
            self.check('deltas', 3 + number % 2)

    def test_a_damaged_baseline_of_a_rank(self):
        self.damage_baselines('ranks', True, '--rank', '0/1', '--wait', '60')

    def test_a_damaged_copy_of_the_pending_step(self):
        """The same call again finds its step pending, and takes the checkpoint from its source."""
        self.publish('other', 0)
        self.publish('other', 1)
        with open(os.path.join(self.state('other'), 'state.json')) as file:
            pending = json.load(file)['committed']  # what a call that broke off would have written
        for number, damage in enumerate(DAMAGES):
            run = f'pending{number}'
            self.publish(run, 0)
            with open(os.path.join(self.state(run), 'state.json')) as file:
                state = json.load(file)
            copy = os.path.join(self.state(run), 'step-000001', 'checkpoint')
            shutil.copytree(self.checkpoints[1], copy)
            damage(os.path.join(copy, WEIGHTS))
            with open(os.path.join(self.state(run), 'state.json'), 'w') as file:
                json.dump(dict(state, pending=pending), file)
            self.publish(run, 1, '--anchor', 'always')
            anchor = self.daemon.request('GET', f'/models/{run}/steps/000001/anchor/{WEIGHTS}').body
            with open(os.path.join(self.checkpoints[1], WEIGHTS), 'rb') as file:
                self.assertEqual(anchor, file.read())
            self.check(run, 1)


if __name__ == '__main__':
    unittest.main()
