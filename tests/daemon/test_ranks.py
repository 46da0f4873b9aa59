"""Many ranks publish one step together: `publish --rank I/N`."""
import glob
import json
import os
import random
import shutil
import subprocess
import time
import unittest

from tests.support.checkpoints import sha256, write_safetensors
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon

USAGE, NOT_FOUND, CONFLICT, NOT_READY = 2, 5, 6, 10
SHARDS = 4


class Ranks(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.daemon.start()
        self.daemon.request('PUT', '/models')
        self.state = os.path.join(self.daemon.scratch, 'shared')

    def tearDown(self):
        self.daemon.__exit__()

    def make(self, step, config='one', shards=range(SHARDS), index=True, name=None, count=SHARDS):
        """A folder with the checkpoint of a step, or with some of its shards, in so many files."""
        folder = os.path.join(self.daemon.scratch, name or f'step{step}')
        os.makedirs(folder)
        names = [f'model-{number + 1:05d}-of-{count:05d}.safetensors' for number in range(count)]
        file_of = {shard: names[shard * count // SHARDS] for shard in range(SHARDS)}
        for name in sorted({file_of[shard] for shard in shards}):
            tensors = {}
            for shard in (shard for shard in shards if file_of[shard] == name):
                weights = bytearray(random.Random(shard).randbytes(60_000))
                for at in random.Random(step).sample(range(0, 60_000, 2), 300 if step else 0):
                    weights[at] ^= 1
                tensors.update({f'layer{shard}.w': ('BF16', [300, 100], bytes(weights)), f'layer{shard}.still': ('F32', [8], bytes(32))})
            write_safetensors(os.path.join(folder, name), tensors, {'format': 'pt'})
        if index:
            with open(os.path.join(folder, 'model.safetensors.index.json'), 'w') as file:
                json.dump({'metadata': {'total_size': 1},
                           'weight_map': {f'layer{s}.{t}': file_of[s] for s in range(SHARDS) for t in ('w', 'still')}}, file)
            with open(os.path.join(folder, 'config.json'), 'w') as file:
                file.write(config)
        return folder

    def start(self, rank, ranks, folder, *more):
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=self.daemon.scratch)
        return subprocess.Popen([CLIENT, 'publish', '--run', 'models/r', '--json', '--quiet', '--rank', f'{rank}/{ranks}', '--state', self.state, '--wait', '60',
                                 *more, folder], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, *processes, code=0):
        said = []
        for process in processes:
            out, err = process.communicate(timeout=90)
            self.assertEqual(process.returncode, code, err)
            said.append(json.loads(out.splitlines()[-1]))
        return said

    def publish(self, folder, *more, ranks=2):
        return self.finish(*[self.start(rank, ranks, folder, *more) for rank in range(ranks)])

    def tree(self, folder):
        return {name: sha256(os.path.join(folder, name)) for name in os.listdir(folder)}

    def check(self, source, name='worker'):
        into = os.path.join(self.daemon.scratch, name)
        self.daemon.client('follow', '--run', 'models/r', '--into', into, '--once')
        self.assertEqual(self.tree(os.path.join(into, 'current')), self.tree(source))

    def head(self):
        return json.loads(self.daemon.request('GET', '/v1/runs/models/r').body)

    def test_ranks_share_a_folder(self):
        for step in range(4):
            said = self.publish(self.make(step), '--step', str(step))
            self.assertEqual([one['step'] for one in said], [step, step])
            self.assertEqual(len({one['digest'] for one in said}), 1)
            self.check(os.path.join(self.daemon.scratch, f'step{step}'))
            if step > 0:
                self.assertLess(sum(one['delta_bytes'] for one in said), 20_000)
                self.assertEqual(sum(one['anchor_bytes'] for one in said), 0)
        self.check(os.path.join(self.daemon.scratch, 'step3'), 'late')
        digest = json.loads(self.daemon.client('inspect', '--json', os.path.join(self.daemon.scratch, 'step3')).stdout)['digest']
        self.assertEqual(self.head()['head_digest'], digest)
        proof = [json.loads(line)['verified'] for line in self.daemon.client('steps', 'models/r', '--json').stdout.splitlines()]
        self.assertNotIn('failed', proof)

    def test_ranks_with_their_own_shards(self):
        for step in range(3):
            self.make(step)
            self.finish(*[self.start(rank, SHARDS, self.make(step, shards=[rank], index=rank == 0, name=f'own{step}-{rank}')) for rank in range(SHARDS)])
            self.check(os.path.join(self.daemon.scratch, f'step{step}'))

    def test_without_an_index_each_step_is_whole(self):
        """Nobody could tell which file of a delta has which tensor."""
        for step in range(3):
            self.make(step, index=False)
            said = self.finish(*[self.start(rank, 2, self.make(step, shards=[rank, rank + 2], index=False, name=f'own{step}-{rank}'))
                                 for rank in range(2)])
            self.assertEqual([(one['step'], one['anchor_bytes'] > 0, one['delta_bytes']) for one in said], [(step, True, 0)] * 2)
            self.check(os.path.join(self.daemon.scratch, f'step{step}'))
        alone = self.start(0, 1, os.path.join(self.daemon.scratch, 'step1'), '--anchor', 'never')
        said = alone.communicate(timeout=90)
        self.assertIn('has no file model.safetensors.index.json', said[1])
        self.assertNotEqual(alone.returncode, 0)

    def test_no_rank_is_ahead_of_the_others(self):
        folder = self.make(0)
        first = self.start(0, 2, folder)
        with self.assertRaises(subprocess.TimeoutExpired):
            first.wait(timeout=2)
        self.assertIsNone(self.head()['head'])
        self.finish(first, self.start(1, 2, folder))
        alone = self.start(1, 2, self.make(1), '--wait', '0')
        self.finish(alone, code=NOT_READY)
        self.assertEqual(self.head()['head'], 0)
        self.publish(os.path.join(self.daemon.scratch, 'step1'))
        self.check(os.path.join(self.daemon.scratch, 'step1'))

    def test_a_step_that_the_others_completed_meanwhile(self):
        """A rank is stopped behind its part, and called again when the step is there: with the same it is done, with another it goes on."""
        self.publish(self.make(0))
        for step in (1, 2):
            folder = self.make(step)
            self.finish(self.start(1, 2, folder, '--wait', '0'), code=NOT_READY)
            self.assertEqual(self.finish(self.start(0, 2, folder))[0]['step'], step)
            if step == 1:
                self.assertEqual(self.finish(self.start(1, 2, folder))[0]['step'], step)
        said = self.publish(self.make(3))
        self.assertEqual([one['step'] for one in said], [3, 3])
        self.check(os.path.join(self.daemon.scratch, 'step3'))

    def test_a_killed_rank_goes_on(self):
        self.publish(self.make(0))
        source = random.Random(1)
        for step in (1, 2, 3):
            folder = self.make(step)
            for _ in range(4):
                processes = [self.start(rank, 2, folder, '--step', str(step)) for rank in range(2)]
                try:
                    processes[0].wait(timeout=source.uniform(0, 0.15))
                except subprocess.TimeoutExpired:
                    pass
                for process in processes:
                    process.kill()
                    process.communicate()
            self.publish(folder, '--step', str(step))
            self.check(folder)

    def test_a_lost_state_is_fetched(self):
        for step in (0, 1):
            self.publish(self.make(step))
        epoch = self.head()['epoch']
        shutil.rmtree(self.state)
        self.publish(self.make(2), '--epoch', str(epoch))
        self.assertEqual(self.head()['epoch'], epoch)
        self.check(os.path.join(self.daemon.scratch, 'step2'))

    def test_ranks_of_a_fenced_trainer_stop(self):
        self.publish(self.make(0))
        self.daemon.request('POST', '/v1/runs/models/r', '{}')
        for rank in (0, 1):
            self.finish(self.start(rank, 2, self.make(rank + 1)), code=CONFLICT)
        self.publish(os.path.join(self.daemon.scratch, 'step1'), '--epoch', str(self.head()['epoch']))
        self.check(os.path.join(self.daemon.scratch, 'step1'))

    def test_the_number_of_ranks_changes(self):
        """Whoever of them comes first, and with what was left of a step that was never completed."""
        for step, (ranks, first) in enumerate(((3, 0), (2, 1), (4, 3), (2, 0), (1, 0), (3, 2))):
            folder = self.make(step)
            early = self.start(first, ranks, folder)
            if step == 4:
                self.assertEqual(early.wait(60), 0)
            else:
                time.sleep(0.5)
            self.finish(early, *[self.start(rank, ranks, folder) for rank in range(ranks) if rank != first])
            self.check(folder)
        stray = self.start(0, 2, self.make(6))
        time.sleep(0.7)
        stray.kill()
        stray.communicate()
        self.publish(os.path.join(self.daemon.scratch, 'step6'), ranks=3)
        self.check(os.path.join(self.daemon.scratch, 'step6'))

    def test_parts_of_an_earlier_attempt(self):
        """They have other content, or other numbers; whoever left them, and whoever comes first."""
        self.publish(self.make(0))
        leftovers = (((1, 2), 3, 0), ((1, 3), 2, 1), ((0, 2), 3, 2), ((0, 2), 2, 0), ((1, 4), 1, 0))
        for step, (old, ranks, first) in enumerate(leftovers, 1):
            self.finish(self.start(*old, self.make(step), '--wait', '0'), code=NOT_READY)
            folder = self.make(step + 100)
            early = self.start(first, ranks, folder)
            time.sleep(0.5)
            said = self.finish(early, *[self.start(rank, ranks, folder) for rank in range(ranks) if rank != first])
            self.assertEqual({one['step'] for one in said}, {step})
            self.check(folder)
        given = ('--epoch', str(self.head()['epoch']))
        self.finish(self.start(0, 2, self.make(6), '--wait', '0', *given), code=NOT_READY)
        self.finish(self.start(0, 2, self.make(106), *given), code=CONFLICT)
        again = json.loads(self.daemon.request('POST', '/v1/runs/models/r', '{}').body)['epoch']
        self.publish(os.path.join(self.daemon.scratch, 'step106'), '--epoch', str(again))
        self.check(os.path.join(self.daemon.scratch, 'step106'))

    def test_a_fenced_trainer_takes_the_run_over(self):
        self.publish(self.make(0), ranks=1)
        fencing = json.loads(self.daemon.request('POST', '/v1/runs/models/r', '{}').body)['epoch']
        folder = self.make(1)
        self.finish(self.start(0, 1, folder), code=CONFLICT)
        self.publish(folder, '--take-over', ranks=1)
        self.assertGreater(self.head()['epoch'], fencing)
        self.check(folder)

    def test_the_weights_are_divided_anew(self):
        """No rank has a base under the names of its shards: the step goes whole, and the next one as deltas."""
        self.publish(self.make(0, count=2), ranks=2)
        for step in (1, 2):
            folder = self.make(step, count=4)
            said = self.publish(folder, ranks=4)
            self.assertEqual({one['anchor_bytes'] > 0 for one in said}, {step == 1})
            self.check(folder)

    def test_a_taker_that_is_refused_has_ended_nobody(self):
        self.publish(self.make(0))
        epoch = self.head()['epoch']
        others = ('--take-over', '--state', os.path.join(self.daemon.scratch, 'others'))
        folder = self.make(1)
        self.finish(self.start(0, 2, folder, *others, '--step', '9'), code=CONFLICT)
        self.finish(self.start(0, 2, os.path.join(self.daemon.scratch, 'none'), *others), code=NOT_FOUND)
        self.assertEqual(self.head()['epoch'], epoch)
        self.publish(folder)
        self.check(folder)

    def test_ranks_wait_for_the_one_that_takes_over(self):
        """It makes its part before the other trainer is ended."""
        self.publish(self.make(0))
        fencing = json.loads(self.daemon.request('POST', '/v1/runs/models/r', '{}').body)['epoch']
        folder = self.make(1)
        early = self.start(1, 2, folder, '--take-over')
        with self.assertRaises(subprocess.TimeoutExpired):
            early.wait(timeout=12)
        self.finish(early, self.start(0, 2, folder, '--take-over'))
        self.assertGreater(self.head()['epoch'], fencing)
        self.check(folder)

    def test_the_first_rank_makes_what_is_missing(self):
        words = ('publish', '--run', 'made/r', '--rank', '0/1', '--state', self.state, '--json', self.make(0))
        refused = self.daemon.client(*words, check=False)
        self.assertEqual((refused.returncode, '--create-bucket makes it' in refused.stderr), (NOT_FOUND, True), refused.stderr)
        made = self.daemon.client(*words, '--create-bucket', '--keep-steps', '7')
        self.assertEqual(json.loads(made.stdout)['step'], 0)
        self.assertEqual(json.loads(self.daemon.request('GET', '/v1/runs/made/r').body)['settings']['keep_steps'], 7)

    def test_more_ranks_than_shards_all_end(self):
        folder = self.make(0)
        for process in [self.start(rank, 8, folder) for rank in range(8)]:
            _, err = process.communicate(timeout=30)
            self.assertEqual((process.returncode, 'there are 4 shards for 8 ranks' in err), (NOT_FOUND, True), err)

    def test_a_baseline_that_lost_bytes_is_fetched(self):
        """The copy of the step before is not synced: a power cut may take some of it."""
        self.publish(self.make(0))
        self.publish(self.make(1))
        shards = glob.glob(os.path.join(self.state, 'rank-00001-of-00002', '*1', 'checkpoint', '*.safetensors'))
        with open(shards[0], 'r+b') as file:
            file.seek(-1000, os.SEEK_END)
            file.write(bytes(500))
        self.publish(self.make(2))
        self.check(os.path.join(self.daemon.scratch, 'step2'))

    def test_another_config_needs_an_anchor(self):
        self.publish(self.make(0))
        folder = self.make(1, config='two')
        refused = self.start(0, 2, folder)
        _, err = refused.communicate(timeout=60)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('--anchor always', err)
        self.publish(folder, '--anchor', 'always')
        self.check(folder)
        self.publish(self.make(2, config='two'))
        self.check(os.path.join(self.daemon.scratch, 'step2'))

    def test_ranks_that_send_different_forms_are_told_what_helps(self):
        self.publish(self.make(0))
        folder = self.make(1)
        self.finish(self.start(0, 2, folder, '--anchor', 'always', '--wait', '0'), code=NOT_READY)
        refused = self.start(1, 2, folder)
        _, err = refused.communicate(timeout=60)
        self.assertEqual((refused.returncode, '--anchor always on every rank helps' in err), (CONFLICT, True), err)
        self.publish(folder, '--anchor', 'always')
        self.check(folder)

    def test_refusals(self):
        folder = self.make(0)
        for more in (['--rank', '2/2'], ['--rank', 'x'], ['--epoch', '1'], ['--rank', '0/2', '--format', 'trl-gap']):
            done = self.daemon.client('publish', '--run', 'models/r', *more, folder, check=False)
            self.assertEqual(done.returncode, USAGE, (more, done.stderr))
        self.finish(self.start(7, 8, folder, '--epoch', '1'), code=NOT_FOUND)


if __name__ == '__main__':
    unittest.main()
