"""torch.distributed.checkpoint over a bucket (deltabucket.checkpoint), with one process and with
several, by PyPI's torch on the CPU."""
import os
import pickle
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

from tests.daemon.test_derived import metric
from tests.support.daemon import Daemon
from tests.support.package import (package_is_ready, run_ranks, run_script,
                                   settings_of)
from tests.support.skips import NO_TORCH

if not package_is_ready('torch', 'fsspec', environment='torch'):
    raise unittest.SkipTest(NO_TORCH)

import torch  # noqa: E402
import torch.distributed.checkpoint as checkpoint  # noqa: E402
import deltabucket  # noqa: E402
from deltabucket.checkpoint import BucketReader, BucketWriter  # noqa: E402

MIB = 1 << 20


def state_of(seed, tensors=8, elements=MIB // 4):
    """Tensors of 1 MiB, and what else a state dict holds."""
    torch.manual_seed(seed)
    state = {f'layer.{number}': torch.randn(elements) for number in range(tensors)}
    return {'model': state, 'half': torch.randn(7, 5).to(torch.bfloat16), 'scalar': torch.tensor(3),
            'step': seed, 'note': f'of seed {seed}'}


def empty_of(state):
    """The same with zeros."""
    return {name: empty_of(value) if isinstance(value, dict) else
            torch.zeros_like(value) if isinstance(value, torch.Tensor) else type(value)()
            for name, value in state.items()}


class Counting(deltabucket.Bucket):
    """Counts what it reads."""
    came = 0

    def read_into(self, key, start, into, progress=None):
        self.came += len(into)
        return super().read_into(key, start, into, progress)


class Failing(deltabucket.Bucket):
    """Has no room for files whose names contain `fails`. With `vanishes`, somebody has tidied up
    the scratch folder. With `threads`, each has a file in hand
    before one goes on; then the main one is interrupted, or another one fails."""
    fails = 'nothing'
    vanishes = False
    threads = None
    is_interrupted = False

    def put(self, key, source, progress=None):
        if self.threads:
            self.threads.wait()
            is_main = threading.current_thread() is threading.main_thread()
            if is_main and self.is_interrupted:
                raise KeyboardInterrupt
            if not is_main and not self.is_interrupted:
                raise deltabucket.NoSpace(f'{key} does not fit.', kind='no_space')
            time.sleep(0.2)
        if self.vanishes:
            os.remove(source)
        if self.fails in key:
            raise deltabucket.NoSpace(f'{key} does not fit.', kind='no_space')
        super().put(key, source, progress)


class CheckpointCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())

    def bucket(self, kind=deltabucket.Bucket):
        """A bucket of this test alone, which exists."""
        name = self.id().rsplit('.test_', 1)[-1].replace('_', '-')
        made = kind(name, **settings_of(self.daemon))
        self.addCleanup(made.close)
        made.create()
        return made

    def save(self, state, writer, **options):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # that there is one process, and that one is there
            return checkpoint.save(state, storage_writer=writer, **options)

    def load(self, state, reader, **options):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            checkpoint.load(state, storage_reader=reader, **options)
        return state

    def assertRefused(self, kind, text, call, *arguments, **options):
        """What rank 0 has raised; torch puts it into an exception of its own."""
        with self.assertRaises(checkpoint.CheckpointException) as caught:
            call(*arguments, **options)
        failure = caught.exception.failures[0][0]
        self.assertIsInstance(failure, kind)
        self.assertIn(text, str(failure))

    def assertSame(self, got, wanted):
        for name, value in wanted.items():
            if isinstance(value, dict):
                self.assertSame(got[name], value)
            elif isinstance(value, torch.Tensor):
                self.assertEqual(got[name].dtype, value.dtype)
                self.assertTrue(torch.equal(got[name], value), name)
            else:
                self.assertEqual(got[name], value)


class OneProcess(CheckpointCase):
    def test_what_was_saved_comes_back(self):
        bucket = self.bucket()
        state = state_of(1)
        for prefix, options in (('', {}), ('run/step-1/', {'thread_count': 3}),
                                ('run/step-2', {'single_file_per_rank': False})):
            self.save(state, BucketWriter(bucket, prefix, **options))
            self.assertSame(self.load(empty_of(state), BucketReader(bucket, prefix)), state)
        self.save(state, BucketWriter(bucket), checkpoint_id='run/step-3')
        got = self.load(empty_of(state), BucketReader(bucket), checkpoint_id='run/step-3')
        self.assertSame(got, state)
        names = [one.key for one in bucket.list('run/step-1/')]
        self.assertEqual((len(names), names[0]), (4, 'run/step-1/.metadata'))

    def test_what_has_not_changed_is_not_sent_again(self):
        """One of eight tensors differs; the order in the file may, too."""
        bucket = self.bucket()
        state = state_of(1)
        self.save(state, BucketWriter(bucket, 'step-1'))
        before = metric(self.daemon, 'received_bytes_total')
        state['model']['layer.3'] += 1
        self.save(state, BucketWriter(bucket, 'step-2'))
        self.assertLess(metric(self.daemon, 'received_bytes_total') - before, 2.5 * MIB)
        self.assertSame(self.load(empty_of(state), BucketReader(bucket, 'step-2')), state)
        state['model']['layer.3'] -= 1

    def test_only_what_is_asked_for_is_fetched(self):
        bucket = self.bucket(Counting)
        state = state_of(1)
        self.save(state, BucketWriter(bucket, 'step'))
        part = {'model': {name: state['model'][name] for name in ('layer.2', 'layer.5')}}
        self.assertSame(self.load(empty_of(part), BucketReader(bucket, 'step')), part)
        self.assertLess(bucket.came, 2.5 * MIB)
        bucket.came = 0
        self.load(empty_of(state), BucketReader(bucket, 'step'))
        self.assertGreater(bucket.came, 8 * MIB)

    def test_items_of_all_sizes(self):
        """Larger than one request, than what is fetched ahead, and many small ones."""
        import deltabucket.checkpoint as module
        bucket = self.bucket(Counting)
        state = {'large': torch.arange(3 * MIB), 'model': {
            f'small.{number}': torch.full((number % 7, 3), number) for number in range(300)}}
        limits = {name: getattr(module, name) for name in ('PART_BYTES', 'AHEAD_BYTES')}
        self.save(state, BucketWriter(bucket, 'step', thread_count=2))
        for changed in ({}, {'PART_BYTES': MIB + 1, 'AHEAD_BYTES': 100_000}):
            self.enterContext(unittest.mock.patch.multiple(module, **{**limits, **changed}))
            self.assertSame(self.load(empty_of(state), BucketReader(bucket, 'step')), state)

    def test_a_checkpoint_that_is_written_over_stays_whole_until_the_end(self):
        bucket = self.bucket(Failing)
        first, second = state_of(1), state_of(2)
        self.save(first, BucketWriter(bucket, 'last'))
        self.assertRefused(RuntimeError, 'already exists', self.save, second,
                           BucketWriter(bucket, 'last'))
        for fails, threads in (('.distcp', 1), ('_1.distcp', 2), ('.metadata', 1)):
            bucket.fails = fails
            self.assertRefused(deltabucket.NoSpace, fails, self.save, second, BucketWriter(
                bucket, 'last', overwrite=True, thread_count=threads))
            bucket.fails = 'nothing'
            self.assertSame(self.load(empty_of(first), BucketReader(bucket, 'last')), first)
        bucket.put('last/mine', b'not of the checkpoint')
        for state in (second, first):
            self.save(state, BucketWriter(bucket, 'last', overwrite=True))
            self.assertSame(self.load(empty_of(state), BucketReader(bucket, 'last')), state)
        self.assertEqual(len(bucket.list('last/__')), 1)
        self.assertEqual(bucket.get('last/mine'), b'not of the checkpoint')

    def test_a_save_that_fails_leaves_no_checkpoint_and_no_file_here(self):
        bucket = self.bucket(Failing)
        scratch = os.path.join(self.folder, 'scratch')
        os.mkdir(scratch)
        bucket.fails = '_1.distcp'
        self.assertRefused(
            deltabucket.NoSpace, '_1.distcp', self.save, state_of(1),
            BucketWriter(bucket, 'step', thread_count=2, scratch=scratch))
        bucket.fails, bucket.threads = 'nothing', threading.Barrier(2)
        for bucket.is_interrupted, kind in ((False, deltabucket.NoSpace), (True, KeyboardInterrupt)):
            self.assertRefused(kind, '', self.save, state_of(1), BucketWriter(
                bucket, 'step', thread_count=2, scratch=scratch))
            self.assertEqual(os.listdir(scratch), [])
        bucket.threads, bucket.vanishes = None, True
        self.assertRefused(deltabucket.NotFound, '', self.save, state_of(1),
                           BucketWriter(bucket, 'step', scratch=scratch))
        bucket.vanishes = False
        self.assertRefused(FileNotFoundError, 'nosuch', self.save, state_of(1),
                           BucketWriter(bucket, 'step', thread_count=2, scratch='/nosuch'))
        self.assertRefused(AssertionError, 'no object', self.load,
                           empty_of(state_of(1)), BucketReader(bucket, 'step'))
        nowhere = deltabucket.Bucket('nowhere', **settings_of(self.daemon))
        self.addCleanup(nowhere.close)
        self.assertRefused(deltabucket.NotFound, 'nowhere', self.save, state_of(1),
                           BucketWriter(nowhere, 'step'))

    def test_a_file_that_is_being_made_is_waited_for(self):
        """A thread that has seen no failure is seen itself."""
        files = BucketWriter(self.bucket()).fs
        made, seen = tempfile.mkstemp, []

        def make(**options):
            seen.append(set(files._open))
            return made(**options)
        with unittest.mock.patch('tempfile.mkstemp', make), files._uploaded('key'):
            pass
        self.assertEqual((seen, files._open), ([{'key'}], set()))

    def test_a_file_that_is_too_short_is_told(self):
        bucket = self.bucket()
        state = state_of(1, tensors=2)
        self.save(state, BucketWriter(bucket, 'step'))
        (key,) = (one.key for one in bucket.list('step/__'))
        bucket.put(key, bucket.read(key, 0, MIB))
        self.assertRefused(deltabucket.Damaged, key, self.load, empty_of(state),
                           BucketReader(bucket, 'step'))

    def test_torch_reads_and_writes_the_same_files(self):
        bucket = self.bucket()
        state = state_of(1, tensors=2)
        here, there = os.path.join(self.folder, 'here'), os.path.join(self.folder, 'there')
        self.save(state, checkpoint.FileSystemWriter(here))
        bucket.sync(here, 'step-1', direction='up')
        self.assertSame(self.load(empty_of(state), BucketReader(bucket, 'step-1')), state)
        self.save(state, BucketWriter(bucket, 'step-2'))
        bucket.sync(there, 'step-2', direction='down')
        self.assertSame(self.load(empty_of(state), checkpoint.FileSystemReader(there)), state)

    def test_async_saves(self):
        """What changes after the call has returned is not saved."""
        bucket = self.bucket()
        state, wanted = state_of(1), state_of(1)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            saved = checkpoint.async_save(state, storage_writer=BucketWriter(bucket, 'step'))
            state['model']['layer.0'].zero_()
            saved.result()
        self.assertSame(self.load(empty_of(wanted), BucketReader(bucket, 'step')), wanted)

    def test_writers_can_be_sent_to_other_processes(self):
        bucket = self.bucket()
        state = state_of(1, tensors=1)
        writer, reader = pickle.loads(pickle.dumps((BucketWriter(bucket, 'step'),
                                                    BucketReader(bucket, 'step'))))
        self.assertIsNot(writer.fs.bucket, bucket)
        self.save(state, writer)
        self.assertSame(self.load(empty_of(state), reader), state)


class Ranks(CheckpointCase):
    IMPORTS = '''
import sys, torch, deltabucket
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.fsdp import fully_shard
from deltabucket.checkpoint import BucketReader, BucketWriter
'''
    SCRIPT = '''
rank, ranks, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.distributed.init_process_group('gloo', init_method=f'file://{folder}/{ranks}', rank=rank,
                                     world_size=ranks)
bucket = deltabucket.Bucket('ranks')
def sharded(seed):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(67, 131), torch.nn.Linear(131, 13))
    fully_shard(model, mesh=torch.distributed.device_mesh.init_device_mesh('cpu', (ranks,)))
    return model
def whole(model):
    return {name: tensor.full_tensor() for name, tensor in model.state_dict().items()}
if ranks == 2:
    model = sharded(1)
    for prefix in ('step-1', 'step-2'):
        checkpoint.save({'model': get_model_state_dict(model)},
                        storage_writer=BucketWriter(bucket, prefix, overwrite=True))
    checkpoint.async_save({'model': get_model_state_dict(model)},
                          storage_writer=BucketWriter(bucket, 'step-1', overwrite=True)).result()
    alone = {'of rank': torch.tensor([rank]), 'both': torch.ones(3)}
    for _ in range(2):
        checkpoint.save(alone, storage_writer=BucketWriter(bucket, 'alone', overwrite=True),
                        use_collectives=False)
else:
    model = sharded(2)
    wanted = {name: tensor.clone() for name, tensor in whole(sharded(1)).items()}
    state = {'model': get_model_state_dict(model)}
    for prefix in ('step-1', 'step-2'):
        for tensor in state['model'].values():
            tensor.to_local().zero_()
        checkpoint.load(state, storage_reader=BucketReader(bucket, prefix))
        set_model_state_dict(model, state['model'])
        assert all(torch.equal(tensor, wanted[name]) for name, tensor in whole(model).items())
torch.distributed.destroy_process_group()
'''

    def test_saved_by_two_and_loaded_by_any_number(self):
        """FSDP2: each rank writes and reads its own shards, and others than it wrote."""
        bucket = deltabucket.Bucket('ranks', **settings_of(self.daemon))
        self.addCleanup(bucket.close)
        bucket.create()
        done = run_ranks(self.IMPORTS, self.SCRIPT, (2, 3), self.folder, environment='torch',
                         daemon=self.daemon)
        self.assertEqual(done.returncode, 0, done.stderr)
        model = torch.nn.Sequential(torch.nn.Linear(67, 131), torch.nn.Linear(131, 13))
        torch.manual_seed(1)
        wanted = torch.nn.Sequential(torch.nn.Linear(67, 131), torch.nn.Linear(131, 13))
        got = {'model': model.state_dict()}
        self.assertSame(self.load(got, BucketReader(bucket, 'step-1'))['model'],
                        wanted.state_dict())
        names = [one.key.rsplit('/')[-1] for one in bucket.list('step-1/')]
        self.assertEqual([name[:4] for name in names], ['.met', '__0_', '__1_'])
        names = [one.key.rsplit('/')[-1] for one in bucket.list('alone/')]
        self.assertEqual([name[:4] for name in names], ['__0.', '__0_', '__1.', '__1_'])


class Imports(unittest.TestCase):
    def test_torch_is_imported_where_it_is_used_alone(self):
        done = run_script('import sys, deltabucket; print("torch" in sys.modules)',
                          environment='torch')
        self.assertEqual(done.stdout, 'False\n', done.stderr)


if __name__ == '__main__':
    unittest.main()
