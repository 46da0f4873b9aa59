"""PyTorch's side of the package: state dicts, torch.distributed.checkpoint over fsspec, and the
Trainer of transformers. PyPI's torch is large, so it is installed once (setup/clients) and these
tests run on its CPU."""
import collections.abc
import json
import os
import tempfile
import unittest

from tests.support.daemon import Daemon
from tests.support.package import (package_is_ready, run_ranks, run_script,
                                   settings_of)
from tests.support.skips import NO_TORCH

if not package_is_ready('torch', 'transformers', 'fsspec', environment='torch'):
    raise unittest.SkipTest(NO_TORCH)

import numpy  # noqa: E402
import torch  # noqa: E402
import torch.distributed.checkpoint as checkpoint  # noqa: E402
import deltabucket  # noqa: E402
from deltabucket.tensors import TORCH_NAMES, readable  # noqa: E402


class TorchCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())

    def run_of(self, name=None):
        made = deltabucket.Run(f'models/{name or self.id().rsplit(".", 1)[-1]}',
                               create_bucket=True, **settings_of(self.daemon))
        self.addCleanup(made.close)
        return made

    def assertSame(self, got, wanted):
        """Names, dtypes, shapes and bits."""
        self.assertEqual(sorted(got), sorted(wanted))
        for name, tensor in wanted.items():
            self.assertEqual((got[name].dtype, got[name].shape), (tensor.dtype, tensor.shape), name)
            left, right = (one.contiguous().flatten().view(torch.uint8) for one in
                           (got[name], tensor))
            self.assertTrue(torch.equal(left, right), name)


class StateDicts(TorchCase):
    def test_dtypes_and_shapes(self):
        made = {}
        for name, known in TORCH_NAMES.items():
            dtype = getattr(torch, known)
            data = torch.randint(0, 2 if name == 'BOOL' else 256, (24 * dtype.itemsize,),
                                 dtype=torch.uint8)
            made[name] = data.view(dtype).reshape(2, 3, 4)
        made.update(scalar=torch.tensor(1.5), empty=torch.zeros(0, 5))
        run = self.run_of()
        run.publish(made)
        with run.follow() as steps:
            step = next(steps)
            self.assertSame(step.tensors('torch'), made)
            arrays = step.tensors()
            self.assertEqual(arrays['F4'].shape, (2, 3, 4))
            self.assertEqual(arrays['BF16'].tobytes(),
                             made['BF16'].view(torch.uint8).numpy().tobytes())

    def test_no_copy_of_what_is_contiguous(self):
        tensor = torch.zeros(3, 4, dtype=torch.bfloat16)
        view = tensor[1:]
        parameter = torch.nn.Parameter(tensor)
        for value in (tensor, view, parameter):
            self.assertEqual(readable({'a': value})[0].address, value.data_ptr())
        for value in (tensor.T, tensor[:, 1:], tensor[:1].expand(5, 4)):
            self.assertNotEqual(readable({'a': value})[0].address, value.data_ptr())
            self.assertSame({'a': readable({'a': value})[0].owner}, {'a': value})
        conjugate = torch.tensor([1 + 2j], dtype=torch.complex64).conj()
        self.assertEqual(readable({'a': conjugate})[0].owner.tolist(), [1 - 2j])

    def test_refusals(self):
        for value in (torch.zeros(2, dtype=torch.complex128), torch.zeros(2, device='meta'),
                      torch.zeros(2).to_sparse(), torch.quantize_per_tensor(
                          torch.zeros(2), 1, 0, torch.qint8)):
            with self.assertRaisesRegex(TypeError, '^the.one '):
                readable({'the.one': value})

    def test_a_training_loop(self):
        """A model with tied weights and a wrapper is published after each step; another model
        follows, and one worker loads it by load_state_dict."""
        torch.manual_seed(3)
        model, worker = Tied(), Tied()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
        run = self.run_of()
        with run.follow() as steps:
            for number in range(4):
                wrapped = torch.nn.ModuleDict({'module': model})
                deltabucket.publish_model(wrapped, run, number)
                step = next(steps)
                step.apply_into(worker.state_dict())
                self.assertSame(worker.state_dict(), model.state_dict())
                other = Tied()
                other.load_state_dict(step.tensors('torch'))
                self.assertSame(other.state_dict(), model.state_dict())
                self.assertEqual(step.came_whole, number == 0)
                model(torch.arange(5)).square().sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        self.assertIs(worker.head.weight, worker.embed.weight)

    def test_a_state_dict_that_makes_its_tensors_anew(self):
        """Each is gathered once; one that is gone is not taken for another one."""
        gathered = []

        class Sharded(torch.Tensor):
            def full_tensor(self):
                gathered.append(int(self))
                return self.as_subclass(torch.Tensor).clone()

        class Made(collections.abc.Mapping):
            def __len__(self):
                return 100

            def __iter__(self):
                return map(str, range(100))

            def __getitem__(self, name):
                return torch.tensor(int(name)).as_subclass(Sharded)
        got = deltabucket.gathered(Made())
        self.assertEqual({name: int(value) for name, value in got.items()},
                         {str(number): number for number in range(100)})
        self.assertEqual(deltabucket.gathered(Made(), False), {})
        self.assertEqual(gathered, 2 * [*range(100)])

    def test_empty_tensors_where_another_device_is_the_default(self):
        run = self.run_of()
        run.publish({'a': torch.zeros(0, 5)})
        with run.follow() as steps, torch.device('meta'):
            self.assertEqual(next(steps).tensors('torch')['a'].device.type, 'cpu')

    def test_numpy_and_torch_are_one(self):
        run = self.run_of()
        run.publish({'a': torch.arange(6.)})
        self.assertTrue(run.publish({'a': numpy.arange(6, dtype='f4')}, step=0).already)


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(512, 64, dtype=torch.bfloat16)
        self.norm = torch.nn.LayerNorm(64, dtype=torch.bfloat16)
        self.head = torch.nn.Linear(64, 512, bias=False, dtype=torch.bfloat16)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.norm(self.embed(tokens)))


class Checkpoints(TorchCase):
    def test_torch_distributed_checkpoint(self):
        from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader, FsspecWriter
        import fsspec
        from deltabucket.filesystem import DeltaBucketFileSystem
        fsspec.register_implementation('deltabucket', DeltaBucketFileSystem, clobber=True)
        deltabucket.Bucket('dcp-files', **settings_of(self.daemon)).create()
        made = {'model': Tied().state_dict(), 'step': torch.tensor(7)}
        url = 'deltabucket://dcp-files/run/step-7'
        checkpoint.save(made, storage_writer=FsspecWriter(url, **settings_of(self.daemon)),
                        no_dist=True)
        got = {'model': Tied().state_dict(), 'step': torch.tensor(0)}
        checkpoint.load(got, storage_reader=FsspecReader(url, **settings_of(self.daemon)),
                        no_dist=True)
        self.assertSame(got['model'], made['model'])
        self.assertEqual(got['step'].item(), 7)


class Processes(TorchCase):
    def test_workers_of_a_data_loader(self):
        """They are forked while a follower is open, and take weights from their own."""
        done = run_script('''
import torch, deltabucket
run = deltabucket.Run('models/loader', create_bucket=True)
run.publish({'a': torch.arange(4.)})
steps = run.follow()
next(steps)
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        try:
            steps.next(0)
        except deltabucket.UsedAfterFork:
            with deltabucket.Run('models/loader').follow(silent=True) as own:
                return next(own).tensors('torch')['a'][index].clone()
loader = torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context='fork')
print([item.item() for item in loader])
steps.close()
''', environment='torch', daemon=self.daemon)
        self.assertEqual((done.stdout, done.stderr), ('[0.0, 1.0, 2.0, 3.0]\n', ''))

    def run_two(self, script):
        """What two ranks have printed."""
        imports = '''
import sys, torch, deltabucket
from torch.distributed.fsdp import fully_shard
'''
        done = run_ranks(imports, script, (2,), self.folder, environment='torch',
                         daemon=self.daemon)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_sharded_models(self):
        """FSDP2 with two ranks: both gather, one publishes."""
        run = self.run_of('sharded')
        script = '''
rank, folder = int(sys.argv[1]), sys.argv[3]
torch.distributed.init_process_group('gloo', init_method=f'file://{folder}/rendezvous', rank=rank,
                                     world_size=2)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Linear(5, 3))
whole = {name: tensor.clone() for name, tensor in model.state_dict().items()}
mesh = torch.distributed.device_mesh.init_device_mesh('cpu', (2,))
fully_shard(model, mesh=mesh)
run = deltabucket.Run('models/sharded', create_bucket=True)
try:
    run.publish(model.state_dict())
    sys.exit('a sharded tensor was taken')
except TypeError as failure:
    assert 'gathered' in str(failure), failure
published = deltabucket.publish_model(model, run)
assert (published is None) == (rank == 1)
torch.save(whole, f'{folder}/whole-{rank}')
torch.distributed.destroy_process_group()
'''
        self.run_two(script)
        with run.follow() as steps:
            self.assertSame(next(steps).tensors('torch'),
                            torch.load(os.path.join(self.folder, 'whole-0')))

    def test_ranks_of_torch_distributed(self):
        """FSDP2 with two ranks: each publishes a part of the whole tensors. They tell each other
        the epoch, the index and what is wrong."""
        run = self.run_of('ranks')
        script = '''
rank, folder = int(sys.argv[1]), sys.argv[3]
torch.distributed.init_process_group('gloo', init_method=f'file://{folder}/ranks', rank=rank,
                                     world_size=2)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 50), torch.nn.Linear(50, 64)).bfloat16()
other = torch.nn.Sequential(torch.nn.Linear(64, 50), torch.nn.Linear(50, 64)).bfloat16()
other.load_state_dict(model.state_dict())
fully_shard(model, mesh=torch.distributed.device_mesh.init_device_mesh('cpu', (2,)))
run = deltabucket.Run('models/ranks', create_bucket=True)
sizes = []
for step in range(3):
    part = deltabucket.rank_part(model.state_dict())
    sizes.append(sum(tensor.nbytes for tensor in part.values()))
    done = run.publish_rank(part, step, files={'config.json': '{}'} if rank == 0 else {})
    assert (done.step, done.anchor_bytes > 0, done.delta_bytes > 0) == (step, step == 0, step > 0)
    if rank == 0:
        torch.save(other.state_dict(), f'{folder}/rank-{step}')
    with torch.no_grad():
        for one in (model, other):
            for parameter in one.parameters():
                parameter.mul_(2 if step else 1.0078125)
def refused(kind, *arguments, **options):
    try:
        run.publish_rank(*arguments, **options)
        sys.exit(f'{kind} was not raised')
    except kind as failure:
        return str(failure)
if rank == 0:
    refused(TypeError, [1])
else:
    assert 'rank 0: TypeError' in refused(deltabucket.NotReady, part)
if rank == 1:
    refused(ValueError, part, 3, wait=-1)
else:
    assert 'rank 1: ValueError' in refused(deltabucket.NotReady, part, 3)
assert '3, 4' in refused(deltabucket.Invalid, part, 3 + rank)
assert 'from rank 1' in refused(deltabucket.SchemaMismatch, {'0.bias': torch.zeros(50)})
print(sizes[0])
torch.distributed.destroy_process_group()
'''
        sizes = [int(size) for size in self.run_two(script).split()]
        self.assertEqual(len(sizes), 2)
        self.assertLess(max(sizes), 1.2 * min(sizes))
        into = os.path.join(self.folder, 'ranks-engine')
        with run.follow(into) as steps:
            for number in range(3):
                self.assertSame(steps.rollback(number).tensors('torch'),
                                torch.load(os.path.join(self.folder, f'rank-{number}')))
            index = os.path.join(steps.step.path, 'model.safetensors.index.json')
            with open(index) as file:
                self.assertEqual(set(json.load(file)['weight_map'].values()), {
                    'model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'})

    def test_the_trainer_of_transformers(self):
        run = self.run_of('trainer')
        done = run_script('''
import sys, torch, transformers, deltabucket, deltabucket.transformers
config = transformers.LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=16,
                                  num_hidden_layers=1, num_attention_heads=2,
                                  tie_word_embeddings=True)
model = transformers.LlamaForCausalLM(config)
data = [{'input_ids': list(range(8)), 'labels': list(range(8))}] * 16
arguments = transformers.TrainingArguments(
    sys.argv[1], max_steps=4, per_device_train_batch_size=2, report_to=[], save_strategy='no',
    use_cpu=True, disable_tqdm=True)
run = deltabucket.Run('models/trainer', create_bucket=True)
trainer = transformers.Trainer(model, arguments, train_dataset=data)
trainer.add_callback(deltabucket.transformers.PublishCallback(run, every=2))
trainer.train()
torch.save(model.state_dict(), sys.argv[1] + '/last')
with run.follow(sys.argv[1] + '/engine') as steps:
    engine = transformers.AutoModelForCausalLM.from_pretrained(next(steps).path)
print(engine.config.hidden_size)
''', os.path.join(self.folder, 'trainer'), environment='torch', daemon=self.daemon)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1:]), (0, ['16']), done.stderr)
        self.assertEqual([info.label for info in run.steps()], ['step 0', 'step 2', 'step 4'])
        with run.follow(os.path.join(self.folder, 'engine')) as steps:
            step = next(steps)
            self.assertSame(step.tensors('torch'),
                            torch.load(os.path.join(self.folder, 'trainer', 'last')))
            config = os.path.join(step.path, 'config.json')
            with open(config) as file:
                self.assertIn('"LlamaForCausalLM"', file.read())


if __name__ == '__main__':
    unittest.main()
