"""`follow --tensors` and `follow --rank`: sharded engines hold a part of each step."""
import json
import os
import shutil
import struct
import tempfile
import unittest

from tests.support.checkpoints import expand_small, write_safetensors
from tests.support.daemon import Daemon

USAGE, NOT_FOUND = 2, 5


def read_tensors(path):
    """{name: bytes} of one safetensors file."""
    with open(path, 'rb') as file:
        size, = struct.unpack('<Q', file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header.pop('__metadata__', None)
    return {name: data[slice(*facts['data_offsets'])] for name, facts in header.items()}


class Subset(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.checkpoints = expand_small(cls.folder, 4)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.daemon.start()
        self.daemon.request('PUT', '/models')

    def tearDown(self):
        self.daemon.__exit__()

    def publish(self, path):
        self.daemon.client('publish', '--run', 'models/r', path)

    def follow(self, name, *more, check=True):
        into = os.path.join(self.daemon.scratch, name)
        done = self.daemon.client('follow', '--run', 'models/r', '--into', into, '--once', '--json', *more, check=check)
        return done if not check else os.path.join(into, 'current')

    def held(self, current):
        return read_tensors(os.path.join(current, 'model.safetensors'))

    def test_ranks_hold_all_of_it_together(self):
        for path in self.checkpoints[:3]:
            self.publish(path)
            whole = read_tensors(path)
            parts = [self.held(self.follow(f'rank{rank}', '--rank', f'{rank}/3')) for rank in range(3)]
            self.assertEqual(sum(len(part) for part in parts), len(whole))
            self.assertEqual({name: data for part in parts for name, data in part.items()}, whole)
            self.assertTrue(all(parts))

    def test_names_are_chosen_by_glob(self):
        self.publish(self.checkpoints[0])
        names = sorted(read_tensors(self.checkpoints[0]))
        glob = f'{names[0]},{names[-1][:-3]}*'
        self.follow('glob', '--tensors', glob)
        for path in self.checkpoints[1:]:
            self.publish(path)  # several pending steps in one go
        current = self.follow('glob', '--tensors', glob)
        whole = read_tensors(self.checkpoints[-1])
        self.assertEqual(self.held(current), {name: data for name, data in whole.items() if name == names[0] or name.startswith(names[-1][:-3])})
        self.assertEqual(self.follow('none', '--tensors', 'no.such.*', check=False).returncode, NOT_FOUND)
        for wrong in (['--rank', '3/3'], ['--rank', '1'], ['--rank', 'x/2'], ['--rank', '0/2', '--tensors', '*']):
            self.assertEqual(self.follow('none', *wrong, check=False).returncode, USAGE, wrong)

    def test_another_part_comes_from_an_anchor(self):
        self.publish(self.checkpoints[0])
        self.follow('worker', '--rank', '0/2')
        self.publish(self.checkpoints[1])
        current = self.follow('worker', '--rank', '1/2')
        first = self.held(current)
        whole = self.held(self.follow('worker'))
        self.assertEqual(whole, read_tensors(self.checkpoints[1]))
        self.assertLess(len(first), len(whole))

    def test_a_part_that_is_as_it_was_left_is_built_upon(self):
        """The next step comes to it by the delta; nothing is taken for damaged."""
        self.publish(self.checkpoints[0])
        self.follow('worker', '--rank', '0/2')
        self.publish(self.checkpoints[1])
        done = self.daemon.client('follow', '--run', 'models/r', '--into', os.path.join(self.daemon.scratch, 'worker'),
                                  '--once', '--json', '--rank', '0/2')
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([one['event'] for one in events], ['step'], events)
        self.assertEqual(events[0]['links'], 1)

    def test_spoilt_parts_are_replaced(self):
        self.publish(self.checkpoints[0])
        current = self.follow('worker', '--rank', '0/2')
        with open(os.path.join(current, 'model.safetensors'), 'r+b') as file:
            file.seek(-50, os.SEEK_END)
            file.write(b'spoilt')
        self.publish(self.checkpoints[1])
        held = self.held(self.follow('worker', '--rank', '0/2'))
        whole = read_tensors(self.checkpoints[1])
        self.assertEqual(held, {name: whole[name] for name in held})

    def test_folders_with_shards_and_other_files(self):
        def make(step, config):
            folder = os.path.join(self.daemon.scratch, f'sharded{step}')
            os.makedirs(os.path.join(folder, 'tokenizer'))
            for shard in (1, 2):
                write_safetensors(f'{folder}/model-0000{shard}-of-00002.safetensors', {
                    f'layer{shard}.w': ('BF16', [20, 50], bytes((step + shard + i) % 251 for i in range(2000))),
                    f'layer{shard}.n': ('F32', [4], bytes(range(step, step + 16)))})
            with open(f'{folder}/model.safetensors.index.json', 'w') as index:
                json.dump({'weight_map': {f'layer{s}.{t}': f'model-0000{s}-of-00002.safetensors' for s in (1, 2) for t in 'wn'}}, index)
            for name, text in (('config.json', config), ('tokenizer/vocab.txt', 'a b c')):
                with open(os.path.join(folder, name), 'w') as file:
                    file.write(text)
            return folder
        for step, config in enumerate(('one', 'one', 'two', 'two')):
            self.publish(make(step, config))
            current = self.follow('worker', '--tensors', 'layer2.*')
            found = sorted(os.path.relpath(os.path.join(path, name), current) for path, _, names in os.walk(current) for name in names)
            self.assertEqual(found, ['.schema', 'config.json', 'model.safetensors', 'tokenizer/vocab.txt'])
            with open(os.path.join(current, 'config.json')) as file:
                self.assertEqual(file.read(), config)
            shard = read_tensors(os.path.join(self.daemon.scratch, f'sharded{step}', 'model-00002-of-00002.safetensors'))
            self.assertEqual(self.held(current), shard)


if __name__ == '__main__':
    unittest.main()
