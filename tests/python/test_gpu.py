"""Steps applied by the kernels for GPUs, which run here compiled for the host: real deltas of a real
server against real torch tensors; and the same source compiled for the GPUs that there are."""
import contextlib
import os
import shutil
import threading
import types
import unittest
import unittest.mock
import weakref

from tests.support.clients import INSTALLED
from tests.support.daemon import Daemon
from tests.support.package import package_is_ready, run_script, settings_of
from tests.support.skips import NO_TORCH

if not package_is_ready('torch', environment='torch'):
    raise unittest.SkipTest(NO_TORCH)
if not os.path.isdir(os.path.join(INSTALLED, 'gpu', 'cuda')):
    raise unittest.SkipTest('setup/clients has not installed NVRTC')

import torch  # noqa: E402
import deltabucket  # noqa: E402
from deltabucket._cuda import Cuda  # noqa: E402
from deltabucket.gpu import Patcher  # noqa: E402
from tests.support.device_machine import DeviceMachine  # noqa: E402


ROWS = 1030  # of the largest tensor, which has two blocks then


def model(seed):
    """Tensors of several blocks, dtypes and sizes; nothing of it repeats."""
    torch.manual_seed(seed)
    return {'embed': torch.randn(ROWS, 1024).to(torch.bfloat16) * 0.02,
            'half': torch.randn(300, 70).to(torch.float16),
            'norm': torch.ones(64, dtype=torch.bfloat16),
            'scale': torch.randn(7),
            'small': torch.randn(500).to(torch.float8_e4m3fn),
            'frozen': torch.randn(1000).to(torch.bfloat16),
            'empty': torch.zeros(0, 4)}


def train(state, share=0.01):
    """One step of an optimizer, as weights in 16 bits see it."""
    for name, tensor in state.items():
        if name in ('frozen', 'empty', 'head'):
            continue
        moved = tensor.float() * (1 + 0.004 * torch.randn(tensor.shape))
        chosen = torch.rand(tensor.shape) < share
        tensor.copy_(torch.where(chosen, moved, tensor.float()).to(tensor.dtype))
    state['embed'].view(torch.int16)[5, 5] ^= -32768  # a change of sign is a change


class Patching(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())

    def setUp(self):
        self.run_ = deltabucket.Run(f'models/{self.id().rsplit(".", 1)[-1]}', create_bucket=True,
                                    **settings_of(self.daemon))
        self.addCleanup(self.run_.close)
        self.state = model(1)
        self.run_.publish(self.state)
        self.steps = self.enterContext(self.run_.follow())
        self.step = self.steps.next(60)
        self.machine = DeviceMachine()
        self.device = {name: torch.full_like(tensor, 3) for name, tensor in self.state.items()}

    def patcher(self, **options):
        return Patcher(self.step, self.device, machine=self.machine, **options)

    def publish(self, **options):
        train(self.state)
        self.run_.publish(self.state, **options)

    def assertHolds(self, wanted):
        for name, tensor in wanted.items():
            self.assertTrue(torch.equal(self.device[name].flatten().view(torch.uint8),
                                        tensor.flatten().view(torch.uint8)), name)

    def copy(self):
        return {name: tensor.clone() for name, tensor in self.state.items()}

    def test_step_after_step(self):
        patcher = self.patcher(load=True)
        self.assertHolds(self.state)
        for _ in range(4):
            self.publish()
            done = patcher.apply(self.steps.next(60))
            self.assertHolds(self.state)
            self.assertFalse(done.came_whole)
            self.assertGreaterEqual(done.blocks, 3)
            self.assertLess(done.upload_bytes, 400_000)
            self.assertEqual(patcher.number, done.step)
        patcher.prove()

    def test_several_deltas_at_once(self):
        patcher = self.patcher(load=True)
        for _ in range(3):
            self.publish()
        done = patcher.apply(self.steps.next(60))
        self.assertEqual((done.step, done.came_whole), (3, False))
        self.assertHolds(self.state)

    def test_views_into_larger_tensors(self):
        """Checkpoint tensors stacked in one parameter."""
        stacked = torch.zeros(ROWS + 16, 1024, dtype=torch.bfloat16)
        self.device['embed'] = stacked[8:8 + ROWS]
        patcher = self.patcher(load=True)
        self.publish()
        patcher.apply(self.steps.next(60))
        self.assertHolds(self.state)
        self.assertFalse(stacked[:8].any() or stacked[8 + ROWS:].any())

    def test_a_part_of_the_tensors(self):
        del self.device['embed'], self.device['scale']
        patcher = self.patcher(load=True)
        self.publish()
        patcher.apply(self.steps.next(60))
        self.assertHolds({name: self.state[name] for name in self.device})

    def test_other_tensors_than_the_step(self):
        with self.assertRaises(deltabucket.WrongBase):
            self.patcher()
        self.patcher(load=True)
        self.patcher()
        self.device['norm'][3] = 2
        with self.assertRaises(deltabucket.WrongBase):
            self.patcher()

    def test_one_weight_was_changed_by_somebody(self):
        """Nothing of the step stays where one block cannot be proven."""
        patcher = self.patcher(load=True)
        before = self.copy()
        self.device['embed'][-1, -1] += 1
        before['embed'][-1, -1] += 1
        self.publish()
        with self.assertRaises(deltabucket.Spoiled):
            patcher.apply(self.steps.next(60))
        self.assertHolds(before)
        self.assertIn('device_undo', self.machine.launched)
        self.state['scale'] += 1
        self.run_.publish(self.state)
        self.assertTrue(patcher.apply(self.steps.next(60)).came_whole)
        self.assertHolds(self.state)

    def test_a_step_that_was_left_out(self):
        """No delta of the next one has the blocks that it has changed."""
        patcher = self.patcher(load=True)
        for name in ('norm', 'scale', 'half'):
            self.state[name] += 1
            self.run_.publish(self.state)
            step = self.steps.next(60)
            if name != 'norm':
                self.assertEqual(patcher.apply(step).came_whole, name == 'scale')
                self.assertHolds(self.state)

    def test_a_call_that_was_interrupted(self):
        """The tensors may hold anything then."""
        patcher = self.patcher(load=True)
        for _ in range(2):
            self.publish()
            step = self.steps.next(60)
            self.machine.before = self.interrupt
            with self.assertRaises(KeyboardInterrupt):
                patcher.apply(step)
            self.machine.before = lambda kernel: None
            with self.assertRaises(deltabucket.Spoiled):
                patcher.prove()
        self.assertTrue(patcher.apply(step).came_whole)
        self.assertHolds(self.state)
        patcher.prove()

    def interrupt(self, kernel):
        raise KeyboardInterrupt

    def test_a_follower_of_a_part(self):
        into = os.path.join(self.daemon.scratch, 'part')
        with self.run_.follow(into, rank=1, ranks=2, replica='part') as steps:
            step = steps.next(60)
            held = {name: self.device[name] for name in step.tensors()}
            self.assertNotIn('embed', held)
            patcher = Patcher(step, held, machine=self.machine, load=True)
            self.publish()
            step = steps.next(60)
            self.assertTrue(step.deltas())
            patcher.apply(step)
        self.assertHolds({name: self.state[name] for name in held})

    def tie(self):
        """Publishes the embedding under a second name; on the device both are one."""
        self.run_ = deltabucket.Run(f'{self.run_.name}-tied', **settings_of(self.daemon))
        self.addCleanup(self.run_.close)
        self.state['head'] = self.state['embed']
        self.run_.publish(self.state)
        self.steps = self.enterContext(self.run_.follow())
        self.step = self.steps.next(60)
        self.device['head'] = self.device['embed'].view(ROWS, 1024)

    def test_tied_weights_are_changed_once(self):
        self.tie()
        patcher = self.patcher(load=True)
        for _ in range(2):
            self.publish()
            self.assertFalse(patcher.apply(self.steps.next(60)).came_whole)
            self.assertHolds(self.state)
        patcher.prove()
        self.device['embed'][-1, -1] += 1
        with self.assertRaises(deltabucket.Spoiled):
            patcher.prove()

    def test_weights_that_are_tied_no_more(self):
        self.tie()
        patcher = self.patcher(load=True)
        before = self.copy()
        self.state['head'] = self.state['embed'].clone()
        self.publish()
        step = self.steps.next(60)
        for call in (patcher.apply, patcher.load,
                     lambda step: Patcher(step, self.device, machine=self.machine)):
            with self.assertRaisesRegex(deltabucket.SchemaMismatch, 'embed and head are one'):
                call(step)
            self.assertHolds(before)
            patcher.prove()
        self.state['head'] = self.state['embed']
        self.publish()
        patcher.apply(self.steps.next(60))
        self.assertHolds(self.state)

    def test_a_second_name_that_the_step_does_not_have(self):
        self.device['head'] = self.device['embed']
        patcher = self.patcher(load=True)
        self.publish()
        patcher.apply(self.steps.next(60))
        self.assertHolds(self.state)

    def test_a_delta_that_was_damaged_on_its_way(self):
        patcher = self.patcher(load=True)
        before = self.copy()
        self.publish()
        step = self.steps.next(60)
        upload = self.machine.upload
        damaged = []

        def flip(target, source):
            if source.nbytes > 5000 and not damaged:
                source = source.copy()
                source[source.nbytes // 2] ^= 16
                damaged.append(True)
            upload(target, source)
        self.machine.upload = flip
        with self.assertRaises((deltabucket.DigestMismatch, deltabucket.Invalid)):
            patcher.apply(step)
        self.assertTrue(damaged)
        self.assertHolds(before)
        self.assertEqual(patcher.number, 0)
        patcher.apply(step)
        self.assertHolds(self.state)

    def test_a_later_delta_fails(self):
        """Then the ones before it are taken back, too."""
        patcher = self.patcher(load=True)
        before = self.copy()
        for _ in range(2):
            self.publish()
        step = self.steps.next(60)
        places = []

        def spoil(kernel):
            if kernel == 'device_apply':
                places.append(kernel)
                if len(places) == 2:
                    self.device['half'].view(torch.int16)[0, 0] ^= 1
            if kernel == 'device_undo' and len(places) == 2:
                places.append(kernel)
                self.device['half'].view(torch.int16)[0, 0] ^= 1
        self.machine.before = spoil
        with self.assertRaises(deltabucket.DigestMismatch):
            patcher.apply(step)
        self.assertHolds(before)
        self.assertEqual(self.machine.launched.count('device_undo'), 2)

    def prepared(self, patcher, count=1):
        """(the tensors before, what is laid out for the steps that follow, as one)"""
        before = self.copy()
        for _ in range(count):
            self.publish()
        return before, patcher.prepare(self.steps.next(60))

    def test_preparing_needs_no_device(self):
        """Another thread does it while the tensors are in use; the delta's files may go then."""
        patcher = self.patcher(load=True)
        before = self.copy()
        self.publish()
        step = self.steps.next(60)
        launched, made = list(self.machine.launched), []
        thread = threading.Thread(target=lambda: made.append(patcher.prepare(step)))
        thread.start()
        thread.join()
        prepared, = made
        for path in step.deltas():
            shutil.rmtree(os.path.dirname(path))
        self.assertEqual((self.machine.launched, patcher.number), (launched, 0))
        self.assertHolds(before)
        done = prepared.apply()
        self.assertEqual((done.step, patcher.number, prepared.is_applied), (1, 1, True))
        self.assertEqual((done.blocks, done.upload_bytes), (prepared.blocks, prepared.upload_bytes))
        self.assertHolds(self.state)

    def test_a_step_that_is_taken_back_and_comes_again(self):
        patcher = self.patcher(load=True)
        for count in (1, 3):
            held = patcher.number
            before, prepared = self.prepared(patcher, count)
            prepared.take_back()  # nothing was applied
            for _ in range(2):
                prepared.apply()
                self.assertHolds(self.state)
                patcher.prove()
                prepared.take_back()
                self.assertHolds(before)
                self.assertEqual((patcher.number, prepared.is_applied), (held, False))
                patcher.prove()
            prepared.apply()
        self.assertHolds(self.state)

    def test_a_step_without_change(self):
        patcher = self.patcher(load=True)
        self.run_.publish(self.state)
        prepared = patcher.prepare(self.steps.next(60))
        done = prepared.apply()
        self.assertEqual((done.came_whole, done.blocks, done.upload_bytes, patcher.number), (False, 0, 0, 1))
        prepared.take_back()
        self.assertEqual(patcher.number, 0)
        self.assertEqual(patcher.apply(self.steps.step).upload_bytes, 0)
        self.assertHolds(self.state)

    def test_how_long_a_step_can_be_taken_back(self):
        patcher = self.patcher(load=True)
        _, first = self.prepared(patcher)
        first.apply()
        _, second = self.prepared(patcher)
        second.apply()
        with self.assertRaisesRegex(ValueError, 'Step 1 was not the last'):
            first.take_back()
        with self.assertRaisesRegex(deltabucket.WrongBase, 'laid out for step 0'):
            first.apply()
        self.assertHolds(self.state)
        second.forget()
        with self.assertRaisesRegex(ValueError, 'Step 2 was not the last'):
            second.take_back()
        self.publish()
        patcher.apply(self.steps.next(60))
        self.assertHolds(self.state)

    def test_how_long_memory_of_the_device_is_kept(self):
        patcher = self.patcher(load=True)
        made = []
        allocate = self.machine.allocate

        def noted(nbytes):
            memory = allocate(nbytes)
            made.append(weakref.ref(memory))
            return memory
        self.machine.allocate = noted
        self.publish()
        patcher.apply(self.steps.next(60))
        self.assertTrue(made and not any(memory() for memory in made))
        _, prepared = self.prepared(patcher)
        prepared.apply()
        self.assertTrue(any(memory() for memory in made))
        prepared.forget()
        self.assertFalse(any(memory() for memory in made))

    def test_taking_back_what_was_interrupted(self):
        patcher = self.patcher(load=True)
        before, prepared = self.prepared(patcher, 2)
        launched = []

        def interrupt(kernel):
            launched.append(kernel)
            if launched.count('device_apply') == 2:
                raise KeyboardInterrupt
        self.machine.before = interrupt
        with self.assertRaises(KeyboardInterrupt):
            prepared.apply()
        self.machine.before = lambda kernel: None
        self.assertEqual(patcher.digest, '')
        prepared.take_back()
        self.assertHolds(before)
        prepared.apply()
        self.assertHolds(self.state)

    def test_a_device_without_memory(self):
        """Nothing was changed and nothing is kept, and it can be tried again."""
        patcher = self.patcher(load=True)
        before, prepared = self.prepared(patcher, 2)
        allocate, made = self.machine.allocate, []

        def full(nbytes):
            if len(made) == 7:  # of the second delta one
                raise MemoryError
            memory = allocate(nbytes)
            made.append(weakref.ref(memory))
            return memory
        self.machine.allocate = full
        with self.assertRaises(MemoryError):
            prepared.apply()
        self.assertEqual([memory() for memory in made], [None] * 7)
        self.machine.allocate = allocate
        self.assertHolds(before)
        patcher.prove()
        prepared.apply()
        self.assertHolds(self.state)

    def test_what_cannot_be_taken_back(self):
        patcher = self.patcher(load=True)
        _, prepared = self.prepared(patcher)
        prepared.apply()
        self.device['embed'][-1, -1] += 1
        for _ in range(2):
            with self.assertRaises(deltabucket.Spoiled):
                prepared.take_back()
        with self.assertRaisesRegex(deltabucket.WrongBase, 'of no known step'):
            prepared.apply()
        self.assertIsNone(patcher.prepare(self.steps.step))
        self.assertTrue(patcher.apply(self.steps.step).came_whole)
        self.assertHolds(self.state)

    def test_formats_that_the_device_does_not_know(self):
        patcher = self.patcher(load=True)
        self.publish(format='slime-xor')
        step = self.steps.next(60)
        self.assertIsNone(patcher.prepare(step))
        done = patcher.apply(step)
        self.assertTrue(done.came_whole)
        self.assertHolds(self.state)

    def test_wrong_tensors(self):
        for name, wrong, failure in (
                ('half', torch.zeros(300, 70, dtype=torch.bfloat16), deltabucket.SchemaMismatch),
                ('half', torch.zeros(70, 300, dtype=torch.float16).t(), ValueError),
                ('more', torch.zeros(3), deltabucket.SchemaMismatch),
                ('norm', self.device['frozen'][:64], ValueError),  # they overlap
                ('scale', torch._neg_view(torch.zeros(7)), ValueError),
                ('half', [1.0], TypeError)):
            with self.subTest(name=name, failure=failure), self.assertRaises(failure):
                Patcher(self.step, {**self.device, name: wrong}, machine=self.machine)
        with self.assertRaisesRegex(ValueError, 'one CUDA device'):
            Patcher(self.step, self.device)


class Torch(types.SimpleNamespace):
    """What Cuda needs of torch and of the driver, without a device."""

    def __init__(self):
        super().__init__(
            uint8=torch.uint8, copies=[], contexts=[], CUstream=lambda stream: stream,
            cuda=types.SimpleNamespace(
                device=contextlib.nullcontext,
                current_stream=lambda device: types.SimpleNamespace(cuda_stream=0)))

    def empty(self, nbytes, pin_memory=False, **options):
        return torch.empty(nbytes, **options)

    def cuCtxSetCurrent(self, context):  # noqa: N802
        self.contexts.append(context)
        return (types.SimpleNamespace(value=0),)

    def cuMemcpyHtoDAsync(self, target, source, nbytes, stream):  # noqa: N802
        self.copies.append(source)
        return (types.SimpleNamespace(value=0),)


class Memory(unittest.TestCase):
    """Of the host, as Cuda handles it."""

    def setUp(self):
        self.cuda = Cuda.__new__(Cuda)
        self.cuda._torch = self.cuda._driver = Torch()
        self.cuda._device, self.cuda._sources, self.cuda._context = 'cpu', [], 'its'

    def test_it_stays_until_the_copy_has_ended(self):
        """torch does not know of the copy, and would give the memory to somebody else."""
        for _ in range(3):
            self.cuda.upload(0, self.cuda.host(1 << 20))
        self.assertEqual(len(set(self.cuda._driver.copies)), 3)
        self.cuda.download(types.SimpleNamespace(tensor=torch.zeros(4)), 4)
        self.assertEqual(self.cuda._sources, [])

    def test_a_thread_that_has_no_context_yet(self):
        """torch makes none for a device that is the current one already."""
        self.cuda.upload(0, self.cuda.host(4))
        self.assertEqual(self.cuda._driver.contexts, ['its'])

    def test_another_default_device(self):
        """As programs set it that load models for a GPU."""
        with torch.device('meta'):
            self.assertEqual(self.cuda.host(4).shape, (4,))


COMPILE = '''
import deltabucket, sys
from deltabucket._cuda import compiled
for architecture in ('sm_80', 'sm_90', 'sm_100'):
    assert compiled(architecture)[:4] == b'\\x7fELF', architecture
try:
    compiled('sm_10')
except deltabucket.Unsupported as failure:
    print(failure)
'''


class Compiling(unittest.TestCase):
    def test_gpus_of_three_generations(self):
        done = run_script(COMPILE, environment='torch', beside=('gpu',))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('NVRTC does not compile the kernels for sm_10: ', done.stdout)

    def test_without_a_compiler(self):
        done = run_script(COMPILE, environment='torch')
        self.assertIn("pip install 'deltabucket[gpu]'", done.stderr)
        with unittest.mock.patch.dict('sys.modules', {'cuda.bindings': None}), \
                self.assertRaisesRegex(deltabucket.Unsupported, 'no compiler'):
            Cuda(torch.device('cuda'))
