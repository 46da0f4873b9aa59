"""What trainers save beside the weights stays behind, in each way to publish, and comes with --include."""

import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

from tests.support.checkpoints import sha256, write_safetensors
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon

THREADS_MEET = False
LARGE = (64 << 20) + 1

# As transformers' Trainer with DeepSpeed leaves them.
KEPT = {
    'config.json': 20,
    'generation_config.json': 20,
    'tokenizer.json': 3000,
    'trainer_state.json': 50,
    'latest': 13,
    'zero_to_fp32.py': 100,
}
LEFT = {
    'optimizer.pt': 5000,
    'scheduler.pt': 50,
    'rng_state_0.pth': 60,
    'rng_state_1.pth': 60,
    'training_args.bin': 70,
    'global_step7/mp_rank_00_model_states.pt': 900,
    'global_step7/zero_pp_rank_0_mp_rank_00_optim_states.pt': 900,
    'export.onnx': LARGE,
}


class TrainerFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.start()
        cls.daemon.request('PUT', '/models')

    def setUp(self):
        self.run_name = f'models/{self._testMethodName}'
        self.work = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.work)

    def path(self, *names):
        return os.path.join(self.work, *names)

    def save(self, name, step, shards=1):
        """A folder with the step's weights and what comes with them; what trainers keep is new each time."""
        for file, size in {**KEPT, **LEFT}.items():
            source = random.Random(0 if file in KEPT else step)
            path = self.path(name, file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'wb') as out:
                out.write(source.randbytes(min(size, 5000)))
                out.truncate(size)
        names = [f'model-{shard + 1:05d}-of-{shards:05d}.safetensors' for shard in range(shards)]
        for shard, file in enumerate(names):
            weights = bytearray(random.Random(shard).randbytes(40_000))
            for at in range(0, 2 * 100 * step, 2):
                weights[at] ^= 1
            write_safetensors(self.path(name, file), {f'w{shard}': ('BF16', [200, 100], bytes(weights))})
        with open(self.path(name, 'model.safetensors.index.json'), 'w') as index:
            json.dump({'weight_map': {f'w{shard}': file for shard, file in enumerate(names)}}, index)
        return self.path(name)

    def start(self, *arguments):
        return subprocess.Popen(
            [CLIENT, *arguments],
            env={
                **os.environ,
                'DELTABUCKET_ENDPOINT': self.daemon.endpoint,
                'DELTABUCKET_TOKEN': ROOT_TOKEN,
                'HOME': self.work,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process):
        out, err = process.communicate(timeout=90)
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out.splitlines()[-1]) if out.startswith('{') else out, err

    def client(self, *arguments):
        return self.finish(self.start(*arguments))

    def publish(self, *arguments):
        return self.client('publish', '--run', self.run_name, '--json', *arguments)

    def follow(self):
        """Names and digests of what a worker has."""
        self.client('follow', '--run', self.run_name, '--into', self.path('worker'), '--once')
        current = self.path('worker', 'current')
        found = {}
        for folder, _, names in os.walk(os.path.realpath(current)):
            for name in names:
                path = os.path.join(folder, name)
                found[os.path.relpath(path, os.path.realpath(current))] = sha256(path)
        return found

    def wanted(self, folder, names):
        shards = [name for name in os.listdir(folder) if name.startswith('model')]
        return {name: sha256(os.path.join(folder, name)) for name in [*names, *shards]}

    def test_they_stay_behind_and_it_is_said(self):
        for step in range(3):
            folder = self.save(f'step{step}', step)
            published, said = self.publish(folder)
            self.assertIn(f'left out {len(LEFT)} files', said)
            self.assertIn('--include', said)
            self.assertEqual(step > 0, published['delta_bytes'] > 0)
            self.assertLess(published['checkpoint_bytes'], LARGE)
            self.assertEqual(self.follow(), self.wanted(folder, KEPT))
            shutil.rmtree(self.path(f'step{step - 1}'), ignore_errors=True)

    def test_what_is_included_comes(self):
        first = self.save('step0', 0)
        _, said = self.publish('--include', '*', first)
        self.assertNotIn('left out', said)
        self.assertNotIn('matches no file', said)
        self.assertEqual(self.follow(), self.wanted(first, {**KEPT, **LEFT}))
        second = self.save('step1', 1)
        _, said = self.publish('--include', 'rng_state_*', '--include', 'optimizer.pt', second)
        self.assertIn(f'left out {len(LEFT) - 3} files', said)
        self.assertEqual(self.follow(), self.wanted(second, [*KEPT, 'rng_state_0.pth', 'rng_state_1.pth', 'optimizer.pt']))
        third = self.save('step2', 2)
        published, _ = self.publish(third)
        self.assertGreater(published['delta_bytes'], 0)
        self.assertEqual(self.follow(), self.wanted(third, KEPT))
        repeated, said = self.publish('--step', '2', '--include', 'nosuch*', third)
        self.assertTrue(repeated['already'])
        self.assertIn('--include nosuch* matches no file of the checkpoint', said)

    def test_they_stay_behind_where_the_folder_is_written_over(self):
        for step in range(3):
            folder = self.save('checkpoint', step)
            self.publish(folder)
            self.assertEqual(self.follow(), self.wanted(folder, KEPT))

    def test_files_that_workers_lose_are_named(self):
        """One file where a folder was takes config and tokenizer from all workers."""
        folder = self.save('step0', 0)
        self.publish(folder)
        self.assertNotIn('lose', self.publish(self.save('step1', 1))[1])
        shard = os.path.join(self.save('step2', 2), 'model-00001-of-00001.safetensors')
        said = self.publish(shard)[1]
        self.assertIn(f'this step lacks {len(KEPT)} files of step 1, so workers lose them (config.json, ', said)
        self.assertNotIn('index.json', said)
        self.assertEqual(list(self.follow()), ['model.safetensors'])
        self.assertNotIn('lose', self.publish(shard)[1])
        self.assertNotIn('lose', self.publish(folder)[1])

    def test_ranks_say_what_workers_lose(self):
        for step in range(2):
            folder = self.save(f'step{step}', step, shards=2)
            if step == 1:
                os.remove(os.path.join(folder, 'tokenizer.json'))
            words = ('publish', '--run', self.run_name, '--anchor', 'always', '--state', self.path('state'), folder)
            ranks = [self.start(*words, '--rank', f'{rank}/2') for rank in range(2)]
            said = [self.finish(rank)[1] for rank in ranks]
        self.assertIn('lacks 1 file of step 0, so workers lose it (tokenizer.json)', said[0])
        self.assertNotIn('lose', said[1])

    def test_ranks_leave_them_too(self):
        for step, more in ((0, []), (1, []), (2, ['--include', 'optimizer.pt', '--anchor', 'always'])):
            folder = self.save(f'step{step}', step, shards=2)
            ranks = [
                self.start(
                    'publish', '--run', self.run_name, '--json', '--state', self.path('state'), '--rank', f'{rank}/2', *more, folder
                )
                for rank in range(2)
            ]
            said = [self.finish(rank)[1] for rank in ranks]
            self.assertIn(f'left out {len(LEFT) - len(more) // 4} files', said[0])
            self.assertNotIn('left out', said[1])
            self.assertEqual(self.follow(), self.wanted(folder, [*KEPT, *more[1:2]]))

    def test_a_run_is_judged_before_its_files(self):
        folder = self.save('step0', 0)
        for run in ('models', 'models/-x', 'KKK/x'):
            done = self.start('publish', '--run', run, '--state', self.path('state'), folder)
            said = done.communicate(timeout=90)[1]
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn('left out', said)
        self.assertIn("none can be made of this name: it may hold only a-z, 0-9, '.' and '-'", said)
        self.assertFalse(os.path.exists(self.path('state')))

    def test_what_trainers_pickle_is_not_called_weights(self):
        os.makedirs(self.path('resumed', 'deep'))
        for name in ('optimizer.pt', 'deep/rng_state_0.pth', 'training_args.bin'):
            with open(self.path('resumed', name), 'wb') as file:
                file.write(b'PK\3\4')
        done = self.start('publish', '--run', self.run_name, self.path('resumed'))
        said = done.communicate(timeout=90)[1]
        self.assertIn('holds no .safetensors file', said)
        self.assertNotIn('pickle', said)

    def test_pickled_weights_alone_are_still_named(self):
        os.makedirs(self.path('pickled'))
        with open(self.path('pickled', 'pytorch_model.bin'), 'wb') as file:
            file.truncate(LARGE)
        process = self.start('publish', '--run', self.run_name, self.path('pickled'))
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 13, err)
        self.assertIn('pytorch_model.bin looks like weights in a pickle', err)


if __name__ == '__main__':
    unittest.main()
