"""A .safetensors that is not a shard of the checkpoint, such as a module or another checkpoint in a folder of its own, is a file
like any other: for the publisher, the server and the workers alike."""
import json
import os
import random
import shutil
import tempfile
import time
import unittest

from tests.support.checkpoints import sha256, write_safetensors
from tests.support.daemon import Daemon

THREADS_MEET = False
NOT_FOUND, UNSUPPORTED = 5, 14
INDEX = 'model.safetensors.index.json'
LARGE = (64 << 20) + 1


def tree(folder):
    top = os.path.realpath(folder)
    return {os.path.relpath(os.path.join(at, name), top): sha256(os.path.join(at, name))
            for at, _, names in os.walk(top) for name in names}


class PublishNested(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.start()
        cls.daemon.request('PUT', '/models')

    def setUp(self):
        self.name = self._testMethodName
        self.run_name = f'models/{self.name}'
        self.work = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.work)

    def path(self, *names):
        return os.path.join(self.work, *names)

    def weights(self, path, step, *tensors):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        made = {}
        for tensor in tensors:
            data = bytearray(random.Random(tensor).randbytes(40_000))
            for at in range(0, 200 * step, 2):
                data[at] ^= 1
            made[tensor] = ('BF16', [200, 100], bytes(data))
        write_safetensors(path, made)

    def save(self, name, step, shards=2):
        """A checkpoint; with more than one shard it has an index."""
        names = ['model.safetensors'] if shards == 1 else [f'model-{k + 1:05d}-of-{shards:05d}.safetensors' for k in range(shards)]
        for k, file in enumerate(names):
            self.weights(self.path(name, file), step, f'w{k}')
        if shards > 1:
            with open(self.path(name, INDEX), 'w') as index:
                json.dump({'weight_map': {f'w{k}': file for k, file in enumerate(names)}}, index)
        with open(self.path(name, 'config.json'), 'w') as config:
            config.write('{}')
        return self.path(name)

    def publish(self, *arguments, check=True):
        return self.daemon.client('publish', '--run', self.run_name, '--state', self.path('state'), *arguments, check=check)

    def settle(self):
        """Waits until all steps are judged, and what the server makes of them is made."""
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            steps = self.daemon.request('GET', f'/v1/runs/{self.run_name}/steps').json()['steps']
            if all(step['verified'] != 'pending' for step in steps):
                break
            time.sleep(0.02)
        self.assertEqual([step['verified'] for step in steps], ['ok'] * len(steps), [step.get('verify_error') for step in steps])
        return steps

    def follow(self, worker='worker', *more):
        self.daemon.client('follow', '--run', self.run_name, '--into', self.path(worker), '--once', *more)
        return tree(self.path(worker, 'current'))

    def expect_everywhere(self, wanted):
        """A worker that goes on and one that is new have the same files."""
        self.settle()
        self.assertEqual(self.follow(), wanted)
        self.assertEqual(self.follow(f'new-{random.random()}'), wanted)

    def test_a_module_in_a_folder_of_its_own_comes_along(self):
        for step, tensor in enumerate(['other', 'w0', 'other']):
            folder = self.save('trained', step)
            self.weights(self.path('trained', 'original', 'adapter.safetensors'), step, tensor)
            with open(self.path('trained', 'original', INDEX), 'w') as index:
                json.dump({'weight_map': {tensor: 'adapter.safetensors'}}, index)
            self.assertNotIn('left out', self.publish(folder).stderr)
            self.expect_everywhere(tree(folder))
        self.assertNotIn('left out', self.publish('--anchor', 'always', folder).stderr)
        self.expect_everywhere(tree(folder))
        shutil.rmtree(self.path('trained', 'original'))
        said = self.publish(folder).stderr
        self.assertIn(f'lacks 2 files of step 3, so workers lose them (original/adapter.safetensors, original/{INDEX})', said)
        self.expect_everywhere(tree(folder))

    def test_another_checkpoint_stays_behind(self):
        for step in range(3):
            folder = self.save('trained', step, shards=1)
            wanted = {name: digest for name, digest in tree(folder).items() if not name.startswith('checkpoint-')}
            if step > 0:
                self.save(f'trained/checkpoint-{500 * step}', step)
                said = self.publish(folder).stderr
                self.assertIn(f'left out {4 * step} files that workers do not need', said)
                self.assertIn('(checkpoint-', said)
            else:
                self.publish(folder)
            self.expect_everywhere(wanted)

    def test_another_checkpoint_that_is_included_is_files(self):
        self.publish(self.save('trained', 0, shards=1))
        for step in range(1, 4):
            folder = self.save('trained', step, shards=1)
            self.save('trained/checkpoint-500', step)
            self.weights(self.path('trained', 'checkpoint-500', 'deep', 'model.safetensors'), step, 'w0')
            self.assertNotIn('left out', self.publish('--include', 'checkpoint-500/*', folder).stderr)
            self.expect_everywhere(tree(folder))
        self.publish('--include', '*', '--anchor', 'always', folder)
        self.expect_everywhere(tree(folder))

    def fetch(self, key):
        """The object, once the server has made it."""
        limit = time.monotonic() + 60
        while (reply := self.daemon.request('GET', f'/{self.run_name}/{key}')).status != 200 and time.monotonic() < limit:
            time.sleep(0.1)
        self.assertEqual(reply.status, 200, key)
        return reply.body

    def test_what_the_server_makes_has_them_too(self):
        """Anchors that nobody uploaded, folds and views."""
        self.daemon.client('runs', 'add', self.run_name)
        self.daemon.client('runs', 'settings', self.run_name, 'view_trl=true', 'view_slime=true')
        saved = {}
        for step in range(18):
            folder = self.save('trained', step, shards=1)
            self.weights(self.path('trained', 'heads', 'value.safetensors'), step, 'w0')
            self.publish(*(['--take-over'] if step == 0 else []), folder)
            saved[step] = {name: open(os.path.join(folder, name), 'rb').read() for name in tree(folder)}
            if step == 0:
                self.follow()
        self.settle()
        for step in (17, 9):
            for name, body in saved[step].items():
                self.assertTrue(self.fetch(f'anchors/step_{step:06d}/{name}') == body, f'{step} {name}')
        self.assertTrue(self.fetch('anchors/step_000000.safetensors') == saved[0]['model.safetensors'])
        for name, body in saved[0].items():
            self.assertTrue(self.fetch(f'updates/weight_v000000/{name}') == body, name)
        limit = time.monotonic() + 60
        while len(self.daemon.request('GET', f'/v1/runs/{self.run_name}/path?have=0').json()['links']) > 3:
            self.assertLess(time.monotonic(), limit, 'no folds')
            time.sleep(0.1)
        self.assertEqual(self.follow(), tree(folder))
        self.assertNotIn('step_work_failed', self.daemon.log())

    def test_large_ones_stay_behind(self):
        folder = self.save('trained', 0)
        wanted = tree(folder)
        os.makedirs(self.path('trained', 'original'))
        with open(self.path('trained', 'original', 'consolidated.safetensors'), 'wb') as file:
            file.truncate(LARGE)
        self.assertIn('left out 1 file that workers do not need, 67.1 MB (original/consolidated.safetensors)', self.publish(folder).stderr)
        self.expect_everywhere(wanted)

    def test_what_the_index_does_not_name(self):
        folder = self.save('trained', 0)
        wanted = tree(folder)
        self.weights(self.path('trained', 'adapter_model.safetensors'), 0, 'lora')
        self.weights(self.path('trained', 'extra.safetensors'), 0, 'w0', 'w1')
        with open(self.path('trained', 'broken.safetensors'), 'w') as file:
            file.write('nobody looks into it')
        said = self.publish(folder).stderr
        self.assertIn('left out 3 files that workers do not need', said)
        self.assertIn('(adapter_model.safetensors, broken.safetensors, extra.safetensors)', said)
        self.expect_everywhere(wanted)
        for step in range(1, 4):
            self.save('trained', step)
            self.weights(self.path('trained', 'extra.safetensors'), step, 'w0', 'w1')
            self.assertNotIn('left out', self.publish('--include', '*', folder, *(['--anchor', 'always'] if step == 3 else [])).stderr)
            self.expect_everywhere(tree(folder))

    def test_a_run_that_begins_with_them(self):
        folder = self.save('trained', 0)
        self.weights(self.path('trained', 'extra.safetensors'), 0, 'w0', 'more')
        self.publish('--include', '*', folder)
        self.expect_everywhere(tree(folder))

    def test_a_part_of_the_model_has_the_modules_only(self):
        for step in range(2):
            folder = self.save('trained', step)
            self.weights(self.path('trained', 'heads', 'value.safetensors'), step, 'w0')
            self.weights(self.path('trained', 'extra.safetensors'), step, 'w0')
            self.publish('--include', '*', folder)
            held = self.follow('part', '--tensors', 'w1')
            self.assertEqual(sorted(held), ['.schema', 'config.json', 'heads/value.safetensors', 'model.safetensors'])
            self.assertEqual(held['heads/value.safetensors'], tree(folder)['heads/value.safetensors'])

    def ranks(self, *arguments):
        said = []
        for rank in (1, 0):  # the first one leaves its part and does not wait
            done = self.publish('--rank', f'{rank}/2', '--wait', '0', '--epoch', '1', *arguments, check=False)
            said.append((done.returncode, done.stderr))
        return said[1], said[0]

    def test_ranks_bring_modules_and_refuse_what_they_cannot(self):
        self.daemon.client('runs', 'add', self.run_name)
        folder = self.save('trained', 0)
        self.weights(self.path('trained', 'heads', 'value.safetensors'), 0, 'w0')
        wanted = tree(folder)
        self.weights(self.path('trained', 'extra.safetensors'), 0, 'w0')
        refused = self.ranks('--include', '*', folder)
        for status, said in refused:
            self.assertEqual(status, UNSUPPORTED, said)
            self.assertIn('extra.safetensors is not in the index, and --rank publishes no such file', said)
        first, _ = self.ranks(folder)
        self.assertEqual(first[0], 0, first)
        self.assertIn('left out 1 file that workers do not need, 40.1 kB (extra.safetensors)', first[1])
        self.expect_everywhere(wanted)

    def test_a_link_that_leads_nowhere(self):
        folder = self.save('trained', 0)
        wanted = tree(folder)
        os.symlink(self.path('gone'), self.path('trained', 'optimizer.pt'))
        self.assertIn('left out 1 file', self.publish(folder).stderr)
        self.expect_everywhere(wanted)
        os.symlink(self.path('gone'), self.path('trained', 'tokenizer.json'))
        done = self.publish(folder, check=False)
        self.assertEqual(done.returncode, NOT_FOUND)
        self.assertIn("tokenizer.json' is a link that leads nowhere: bring back what it leads to, or remove it", done.stderr)

    def test_shards_of_a_protocol_in_folders_of_their_own(self):
        """A trainer of its own names no index: each .safetensors is a shard where none lies in the folder itself."""
        self.assertEqual(self.daemon.request('POST', f'/v1/runs/{self.run_name}').status, 200)
        objects, files = [], []
        for rank in range(2):
            self.weights(self.path('own', f'{rank}.safetensors'), 0, f'w{rank}')
            with open(self.path('own', f'{rank}.safetensors'), 'rb') as file:
                body = file.read()
            reply = self.daemon.request('PUT', f'/{self.run_name}/own/{rank}', body)
            facts = {'size': len(body), 'digest': reply.headers['x-deltabucket-digest']}
            name = f'rank{rank}/own.safetensors'
            objects.append({'key': f'{self.name}/own/{rank}', 'name': name, **facts})
            files.append({'path': name, **facts})
        digest = json.loads(self.daemon.client('inspect', '--json', self.path('own')).stdout)['digest']
        body = {'step': 0, 'epoch': 1, 'digest': digest, 'files': files,
                'forms': [{'kind': 'anchor', 'format': 'full', 'objects': objects}]}
        reply = self.daemon.request('PUT', f'/v1/runs/{self.run_name}/steps/0', json.dumps(body))
        self.assertEqual(reply.status, 201, reply.body)
        self.settle()


if __name__ == '__main__':
    unittest.main()
