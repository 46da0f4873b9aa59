"""Runs: published from memory and from paths, followed in a folder and in memory, bit for bit."""
import asyncio
import gc
import json
import os
import pickle
import tempfile
import time
import threading
import unittest
import unittest.mock

from tests.support.checkpoints import expand_small, write_safetensors
from tests.support.clients import read
from tests.support.daemon import Daemon
from tests.support.package import package_is_ready, settings_of, start_script

if not package_is_ready('safetensors'):
    raise unittest.SkipTest('setup/clients has not installed numpy, ml_dtypes, cffi, safetensors')

import ml_dtypes  # noqa: E402
import numpy  # noqa: E402
import deltabucket  # noqa: E402
from deltabucket.tensors import array_of  # noqa: E402

STEPS = 5


def load(path):
    """{name: array} of a safetensors file."""
    raw = bytearray(read(path))
    start = 8 + int.from_bytes(raw[:8], 'little')
    header = json.loads(raw[8:start])
    header.pop('__metadata__', None)
    return {name: array_of(entry['dtype'], entry['shape'],
                           raw[start + entry['data_offsets'][0]:start + entry['data_offsets'][1]])
            for name, entry in header.items()}


def weights(seed, count=4):
    """Tensors of a step: a few elements differ from those of the seed before."""
    random = numpy.random.default_rng(7)
    made = {f'layer.{index}.weight': random.standard_normal((64, 48)).astype(ml_dtypes.bfloat16)
            for index in range(count)}
    for step in range(seed):
        for number, array in enumerate(made.values()):
            array.flat[(step * 31 + number) % array.size] += ml_dtypes.bfloat16(1 + step)
    return made


class RunCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())

    def run_of(self, name=None, **options):
        """A run of this test alone."""
        made = deltabucket.Run(f'models/{name or self.id().rsplit(".", 1)[-1]}',
                               create_bucket=True, **settings_of(self.daemon), **options)
        self.addCleanup(made.close)
        return made

    def assertSame(self, got, wanted):
        """Names, dtypes, shapes and bits."""
        self.assertEqual(list(got), sorted(wanted))
        for name, array in wanted.items():
            self.assertEqual((got[name].dtype, got[name].shape), (array.dtype, array.shape), name)
            self.assertEqual(got[name].tobytes(), array.tobytes(), name)


class Series(RunCase):
    """The real checkpoints of tests/data/small."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.paths = expand_small(cls.folder, STEPS)

    def follow_all(self, run, publish, **options):
        """Publishes each step and takes it up; the arrays of each are those of the file."""
        state = None
        with run.follow(**options) as steps:
            for number, path in enumerate(self.paths):
                wanted = load(path)
                published = publish(run, number, path, wanted)
                self.assertEqual((published.step, published.already), (number, False))
                step = next(steps)
                self.assertEqual((step.number, step.lag, step.came_whole), (number, 0, number == 0))
                self.assertEqual(step.digest, published.digest)
                self.assertSame(step.tensors(), wanted)
                if state is not None:
                    self.check_changes(step, state, wanted)
                    step.apply_into(state)
                else:
                    state = {name: numpy.zeros_like(array) for name, array in wanted.items()}
                    step.apply_into(state)
                self.assertSame(dict(sorted(state.items())), wanted)
            return steps

    def check_changes(self, step, before, after):
        for name in after:
            positions, values = step.changes(name)
            kind = f'u{before[name].itemsize}'
            old, new = before[name].ravel().view(kind), after[name].ravel().view(kind)
            self.assertEqual(positions.tolist(), numpy.flatnonzero(old != new).tolist(), name)
            self.assertEqual(values.tobytes(), new[positions].tobytes(), name)

    def test_from_memory_into_memory(self):
        def publish(run, number, path, wanted):
            return run.publish(wanted, step=number, label=f'label {number}')
        self.follow_all(self.run_of(), publish, keeps_changes=True)

    def test_from_memory_into_a_folder(self):
        into = os.path.join(self.folder, 'into')

        def publish(run, number, path, wanted):
            return run.publish(wanted)
        self.follow_all(self.run_of(), publish, folder=into)
        self.assertSame(dict(sorted(load(os.path.join(into, 'current/model.safetensors')).items())),
                        load(self.paths[-1]))
        with self.run_of().follow(into) as steps:  # goes on from what is there
            step = next(steps)
            self.assertEqual((step.number, step.fetched_bytes), (STEPS, 0))

    def test_from_paths(self):
        def publish(run, number, path, wanted):
            return run.publish(path, step=number)
        self.follow_all(self.run_of(), publish, keeps_changes=True)


class Publishing(RunCase):
    def test_what_was_sent(self):
        run = self.run_of(keep_steps=10)
        first = run.publish(weights(0), label='first', metadata={'reward': '0.5'},
                            files={'config.json': '{"a": 1}', 'sub/bytes': b'\0\1'})
        self.assertGreater(first.anchor_bytes, 0)
        self.assertEqual((first.step, first.delta_bytes), (0, 0))
        second = run.publish(weights(1))
        self.assertEqual((second.step, second.anchor_bytes, second.changed_elements), (1, 0, 4))
        self.assertEqual(second.elements, 4 * 64 * 48)
        self.assertLess(second.delta_bytes, first.anchor_bytes)
        self.assertTrue(run.publish(weights(1), step=1).already)
        infos = list(run.steps())
        self.assertEqual([(info.number, info.label) for info in infos], [(0, 'first'), (1, '')])
        self.assertEqual(infos[0].metadata, {'reward': '0.5'})
        self.assertEqual(infos[0].digest, first.digest)
        self.assertEqual(run.latest().number, 1)
        self.assertEqual(run.status()['head'], 1)
        self.assertIn(str(len('{"a": 1}')), [str(file['size']) for file in
                                            infos[0].manifest['files']
                                            if file['path'] == 'config.json'])

    def test_a_state_folder_goes_on(self):
        state = os.path.join(self.folder, 'state')
        self.run_of(state=state).publish(weights(0))
        self.assertEqual(self.run_of(state=state).publish(weights(1)).step, 1)

    def test_two_publishers(self):
        first, second = self.run_of(), self.run_of(take_over=True)
        first.publish(weights(0))
        with self.assertRaises(deltabucket.Error):
            self.run_of().publish(weights(1))
        second.publish(weights(1), step=1)
        with self.assertRaises(deltabucket.StaleEpoch):
            first.publish(weights(2), step=1)

    def test_two_threads_publish_through_one_publisher(self):
        """Also when both begin at once."""
        run = self.run_of()
        made, handle, opening = [], deltabucket.run.Handle, threading.Event()

        def make(what, *arguments, **options):
            made.append(what)
            opening.set()
            other.join(0.3)  # it waits, or opens one of its own
            return handle(what, *arguments, **options)
        other = threading.Thread(target=lambda: opening.wait() and run.new_epoch())
        other.start()
        with unittest.mock.patch.object(deltabucket.run, 'Handle', make):
            run.publish_rank(weights(0), rank=0, ranks=1)
        other.join()
        self.assertEqual(made, ['publisher'])

    def test_epochs_and_steps_of_one_publisher_in_turn(self):
        """A publisher takes what it has done itself for nobody else's, whether it opened the run for an epoch or for a step."""
        run = self.run_of()
        epochs = []
        for number in range(3):
            self.assertEqual(run.publish_rank(weights(2 * number), rank=0, ranks=1).step, 2 * number)
            epochs.append(run.new_epoch())
            self.assertEqual(run.publish_rank(weights(2 * number + 1), rank=0, ranks=1).step, 2 * number + 1)
        self.assertEqual(epochs, sorted(set(epochs)))

    def test_a_run_that_is_not_there_yet_is_told(self):
        """So a name that was mistyped is seen, in a program that has set up no logging too: WARNING is shown then."""
        with deltabucket.Run('nowhere/polcy', **settings_of(self.daemon)) as run, run.follow() as steps:
            with self.assertLogs('deltabucket', 'WARNING') as logs:
                self.assertIsNone(steps.next(2))
        self.assertIn('nowhere', logs.output[0])

    def test_refusals(self):
        run = self.run_of()
        run.publish(weights(0))
        with self.assertRaises(deltabucket.SchemaMismatch):
            run.publish(weights(0, count=3))
        with self.assertRaises(deltabucket.HeadMoved):
            run.publish(weights(1), step=7)
        with self.assertRaises(deltabucket.NotFound):
            run.publish('/does/not/exist')
        with self.assertRaises(TypeError):
            run.publish([1, 2])
        with self.assertRaises(TypeError):
            run.publish({'a': numpy.zeros(3, complex)})
        with self.assertRaises(ValueError):
            run.publish({'a': numpy.zeros(3)}, metadata={'a\0': 'b'})
        with self.assertRaises(ValueError):
            run.publish('/tmp', files={'config.json': b''})
        with self.assertRaises(ValueError):
            deltabucket.Run('no-slash', **settings_of(self.daemon))
        with self.assertRaises(deltabucket.NotFound):
            deltabucket.Run('nowhere/run', **settings_of(self.daemon)).publish(weights(0))
        self.assertEqual(run.publish(weights(1)).step, 1)

    def test_refusals_name_what_is_wrong(self):
        run = self.run_of()
        cases = {
            "metadata 'loss' is a float": (TypeError, {'metadata': {'loss': 0.3}}),
            "file 'config.json' is a dict": (TypeError, {'files': {'config.json': {'a': 1}}}),
            'step is -5': (ValueError, {'step': -5}),
            'float': (TypeError, {'step': 1.0}),
        }
        for words, (kind, options) in cases.items():
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                run.publish(weights(0), **options)
        with self.assertRaisesRegex(TypeError, r'as its state_dict\(\) is'):
            run.publish(type('Module', (), {'state_dict': dict})())
        with self.assertRaisesRegex(ValueError, 'keep_steps is -3'):
            self.run_of(keep_steps=-3)
        with self.assertRaisesRegex(ValueError, 'DELTABUCKET_RUN'):
            deltabucket.Run(**settings_of(self.daemon))
        self.assertEqual(run.publish(weights(0), step=numpy.int64(0)).step, 0)

    def test_a_run_can_be_sent_to_another_process(self):
        run = self.run_of(take_over=True, progress=False)
        run.publish(weights(0))
        there = pickle.loads(pickle.dumps(run))
        self.addCleanup(there.close)
        self.assertEqual(repr(there), repr(run))
        run.close()
        self.assertEqual(there.latest().number, 0)
        self.assertEqual(there.publish(weights(1)).step, 1)


class Following(RunCase):
    def test_waiting(self):
        run = self.run_of()
        self.assertIsNone(run.wait(-1, timeout=0))
        threading.Timer(0.3, lambda: run.publish(weights(0), label='soon')).start()
        found = run.wait(-1, timeout=60)
        self.assertEqual((found.number, found.label), (0, 'soon'))
        self.assertIsNone(run.wait(0, timeout=0.1))

    def test_an_iteration_waits_for_the_run(self):
        run = self.run_of()
        timer = threading.Timer(0.3, lambda: run.publish(weights(0)))
        timer.start()
        with run.follow() as steps:
            self.assertEqual(next(steps).number, 0)
            self.assertIsNone(steps.next(timeout=0))
        timer.join()

    def test_async(self):
        run = self.run_of()

        async def main():
            seen = []
            run.publish(weights(0))
            async with run.follow() as steps:
                async for step in steps:
                    self.assertSame(step.tensors(), weights(step.number))
                    seen.append(step.number)
                    if step.number == 2:
                        break
                    await asyncio.get_running_loop().run_in_executor(
                        None, run.publish, weights(step.number + 1))
            return seen
        self.assertEqual(asyncio.run(main()), [0, 1, 2])

    def test_arrays_of_steps_that_have_gone(self):
        """Nothing crashes, in memory too, where their bytes are others."""
        run = self.run_of()
        run.publish(weights(0))
        into = os.path.join(self.folder, 'gone')
        memory, folder = run.follow(), run.follow(into, replica='other')
        with memory, folder:
            first, kept = next(memory), next(folder)
            arrays, whole = first.tensors(), kept.tensors()
            run.publish(weights(1), anchor='always')
            memory.next()
            folder.next()
            self.assertSame(whole, weights(0))
            self.assertSame(kept.tensors(), weights(0))
            with self.assertRaisesRegex(ValueError, 'not held'):
                first.tensors()
            with self.assertRaises(ValueError):
                arrays['layer.0.weight'][0] = 1
            last = memory.rollback(0).tensors()
        for array in arrays.values():
            self.assertEqual(array.tobytes(), bytes(array.nbytes))
        self.assertSame(whole, weights(0))
        self.assertSame(last, weights(0))

    def test_rollback(self):
        run = self.run_of()
        for number in range(3):
            run.publish(weights(number))
        with run.follow() as steps:
            self.assertEqual(next(steps).number, 2)
            back = steps.rollback(1)
            self.assertEqual((back.number, back.lag), (1, 1))
            self.assertSame(back.tensors(), weights(1))
            self.assertEqual(next(steps).number, 2)
            with self.assertRaises((deltabucket.NotReady, deltabucket.NotFound)):
                steps.rollback(9)

    def test_a_rollback_of_the_fleet(self):
        """Each follower takes its step, in memory and in a folder, and the newest afterwards; what
        a run has does not depend on it."""
        run = self.run_of()
        memory, folder = run.follow(), run.follow(os.path.join(self.folder, 'back'), max_lag=0)
        with memory, folder:
            for number in range(3):
                run.publish(weights(number))
                for steps in (memory, folder):
                    self.assertEqual(next(steps).number, number)
            state = {name: array.copy() for name, array in folder.step.tensors().items()}
            self.daemon.client('fleet', 'rollback', run.name, 1)
            for steps in (memory, folder):
                back = next(steps)
                self.assertEqual((back.number, back.lag, back.came_whole), (1, 0, True))
                self.assertSame(back.tensors(), weights(1))
                steps.check_lag()
            self.assertEqual(folder.step.fetched_bytes, 0)
            folder.step.apply_into(state)
            self.assertSame(dict(sorted(state.items())), weights(1))
            run.publish(weights(3))
            self.assertEqual((run.latest().number, run.wait(2, timeout=0).number), (3, 3))
            self.assertIsNone(run.wait(3, timeout=0))
            self.assertIsNone(folder.next(timeout=0))
            self.assertEqual(folder.lag(), 0)
            with run.follow(silent=True) as late:
                self.assertEqual(next(late).number, 1)
            self.daemon.client('fleet', 'forward', run.name)
            for steps in (memory, folder):
                self.assertSame(next(steps).tensors(), weights(3))

    def test_a_rollback_wakes_a_task(self):
        run = self.run_of()

        async def main():
            async with run.follow() as steps:
                for number in range(2):
                    run.publish(weights(number))
                    await anext(steps)
                waiting = asyncio.create_task(anext(steps))
                await asyncio.sleep(0.2)
                self.daemon.client('fleet', 'rollback', run.name, 0)
                self.assertEqual((await waiting).number, 0)
        asyncio.run(main())

    def test_the_fleet(self):
        run = self.run_of()
        run.publish(weights(0))
        with run.follow(replica='worker-1') as steps:
            next(steps)
            steps.report('ready')
            self.await_fleet(run, 'worker-1', 'ready')
            self.assertIsNone(next(run.fleet()).pause)
            steps.report('staging', pause=0.0414)
            self.await_fleet(run, 'worker-1', 'staging')
            self.assertEqual(next(run.fleet()).pause, 0.041)
            with self.assertRaisesRegex(ValueError, 'pause is -1'):
                steps.report('ready', pause=-1)
            steps.report('error', 'the engine is out of memory')
            self.await_fleet(run, 'worker-1', 'error')
            self.assertIn('out of memory', next(run.fleet()).error)
            with self.assertRaises(deltabucket.Error):
                steps.report('nonsense')
        limit = time.monotonic() + 60
        while list(run.fleet()):  # a busy server may miss a goodbye, which is said for a second
            self.assertLess(time.monotonic(), limit)
            with run.follow(replica='worker-1') as steps:
                next(steps)

    def await_fleet(self, run, name, state):
        limit = time.monotonic() + 60
        while (found := [(one.id, one.state, one.step, one.lag) for one in run.fleet()]) != \
                [(name, state, 0, 0)]:
            self.assertLess(time.monotonic(), limit, found)
            time.sleep(0.05)

    def test_max_lag(self):
        run = self.run_of()
        run.publish(weights(0))
        with run.follow(max_lag=1) as steps:
            next(steps)
            self.assertEqual(steps.lag(), 0)
            run.publish(weights(1))
            steps.check_lag()
            run.publish(weights(2))
            self.assertEqual(steps.lag(), 2)
            with self.assertRaisesRegex(deltabucket.TooFarBehind, '2 steps behind'):
                steps.check_lag()
            next(steps)
            steps.check_lag()

    def test_a_follower_that_nobody_names_is_gone(self):
        """Also where a step of it is kept: its folder can be followed at once."""
        run = self.run_of()
        run.publish(weights(0))
        into = os.path.join(self.folder, 'unnamed')
        gc.disable()
        self.addCleanup(gc.enable)
        kept = [next(iter(run.follow(into))) for _ in range(2)]
        self.assertEqual([step.number for step in kept], [0, 0])
        self.assertSame(kept[0].tensors(), weights(0))

    def test_what_they_are_shown_as(self):
        run = self.run_of()
        steps = run.follow()
        self.assertIn(f'Follower of {run.name}, no step yet', repr(steps))
        run.publish(weights(0))
        with steps:
            next(steps)
            self.assertIn('<Step 0 of', repr(steps))
        self.assertIn('closed', repr(steps))

    def test_one_follower_in_a_folder(self):
        run = self.run_of()
        run.publish(weights(0))
        into = os.path.join(self.folder, 'one')
        with run.follow(into) as steps:
            next(steps)
            with self.assertRaises(deltabucket.Busy):
                run.follow(into).__enter__()
        with run.follow(into) as steps:
            self.assertEqual(next(steps).number, 0)


class Memory(RunCase):
    """What a follower in memory needs above the weights, in a process of its own."""
    FOLLOWER = """
import sys
import deltabucket
def high_water():
    with open('/proc/self/status') as status:
        return next(int(line.split()[1]) for line in status if line.startswith('VmHWM')) * 1024
before = high_water()
with deltabucket.Run(sys.argv[1]).follow(silent=True) as steps:
    for step in steps:
        print(step.number, step.came_whole, high_water() - before, flush=True)
"""
    SIZE, MOST = 160 << 20, 20 << 20

    @unittest.skipIf('libasan' in os.environ.get('LD_PRELOAD', ''), 'a sanitizer keeps what is freed')
    def test_a_follower_needs_little_beside_the_weights(self):
        random = numpy.random.default_rng(1)
        state = {'a': random.integers(0, 1 << 15, self.SIZE // 2, numpy.uint16).view(ml_dtypes.bfloat16)}
        run = self.run_of()
        run.publish(state)
        process = start_script(self.FOLLOWER, run.name, daemon=self.daemon)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        for step in range(3):
            number, whole, needed = process.stdout.readline().split()
            self.assertEqual((int(number), whole), (step, str(step == 0)))
            self.assertLess(int(needed) - self.SIZE, self.MOST)
            state['a'].view(numpy.uint16)[step::100] ^= 1
            run.publish(state)


class Applying(RunCase):
    def followed(self):
        """A follower at step 1, and state dicts of step 0 with their names."""
        run = self.run_of()
        run.publish(weights(0))
        steps = self.enterContext(run.follow())
        next(steps)
        run.publish(weights(1))
        return next(steps)

    def test_names_are_cleaned(self):
        step = self.followed()
        state = {f'module._orig_mod.{name}': array for name, array in weights(0).items()}
        step.apply_into(state)
        self.assertSame(dict(zip(sorted(weights(0)), state.values())), weights(1))

    def test_a_worker_that_starts_again(self):
        """Its folder has a step before the newest, and its tensors hold anything."""
        run = self.run_of()
        run.publish(weights(0))
        into = os.path.join(self.folder, 'again')
        with run.follow(into) as steps:
            next(steps)
        run.publish(weights(1))
        state = weights(5)
        with run.follow(into) as steps:
            step = next(steps)
            self.assertFalse(step.came_whole)
            step.apply_into(state)
            self.assertSame(state, weights(1))
            run.publish(weights(2))
            next(steps).apply_into(state)
            self.assertSame(state, weights(2))

    def test_a_wrong_base_changes_nothing(self):
        step = self.followed()
        for proves_first in (True, False):
            state = weights(2)
            with self.assertRaises(deltabucket.WrongBase if proves_first else deltabucket.Error) as caught:
                step.apply_into(state, proves_first=proves_first)
            if proves_first:
                self.assertSame(state, weights(2))
                self.assertIn('copy_into', str(caught.exception))
                self.assertEqual(caught.exception.kind, 'wrong_base')
            step.copy_into(state)
            self.assertSame(state, weights(1))

    def test_one_pass(self):
        step = self.followed()
        state = weights(0)
        step.apply_into(state, proves_first=False)
        self.assertSame(state, weights(1))

    def test_refusals(self):
        step = self.followed()
        name = 'layer.0.weight'
        read_only = weights(0)[name]
        read_only.flags.writeable = False
        whole = numpy.zeros((2, 64, 48), ml_dtypes.bfloat16)
        cases = {
            'missing': ({name: weights(0)[name]}, deltabucket.SchemaMismatch),
            'dtype': ({**weights(0), name: weights(0)[name].astype('f2')},
                      deltabucket.SchemaMismatch),
            'shape': ({**weights(0), name: weights(0)[name].T.copy()}, deltabucket.SchemaMismatch),
            'more': ({**weights(0), 'other': numpy.zeros(3)}, deltabucket.SchemaMismatch),
            'read-only': ({**weights(0), name: read_only}, ValueError),
            'not contiguous': ({**weights(0), name: weights(0)[name].T.copy().T}, ValueError),
            'not an array': ({**weights(0), name: [1]}, TypeError),
            'overlapping': ({**weights(0), name: whole[0],
                             'layer.1.weight': whole.reshape(-1)[5:5 + 64 * 48].reshape(64, 48)},
                            ValueError),
            'tied here alone': ({**weights(0), 'layer.1.weight': whole[0], name: whole[0]},
                                deltabucket.SchemaMismatch),
        }
        for what, (state, kind) in cases.items():
            with self.subTest(what), self.assertRaises(kind):
                step.apply_into(state)

    def test_tied_weights(self):
        run = self.run_of()
        made = weights(0)
        made['head'] = made['layer.0.weight']
        run.publish(made)
        with run.follow() as steps:
            self.assertSame(next(steps).tensors(), made)
            state = {name: array.copy() for name, array in made.items() if name != 'head'}
            state['head'] = state['layer.0.weight']
            made['layer.0.weight'][3, 4] = 9
            run.publish(made)
            next(steps).apply_into(state)
        self.assertEqual(state['layer.0.weight'][3, 4], 9)
        self.assertSame(dict(sorted(state.items())), made)


class Tensors(RunCase):
    def test_dtypes_and_shapes(self):
        """Everything that safetensors and numpy both have comes back as it was."""
        random = numpy.random.default_rng(1)
        made = {}
        for name, dtype in deltabucket.tensors.NUMPY_DTYPES.items():
            data = random.integers(0, 2 if name == 'BOOL' else 256, 24 * dtype.itemsize,
                                   dtype=numpy.uint8)
            made[name] = data.view(dtype).reshape(2, 3, 4)
        made.update(scalar=numpy.array(1.5), empty=numpy.zeros((0, 5), 'f4'),
                    one=numpy.zeros((1, 1), ml_dtypes.bfloat16))
        run = self.run_of()
        run.publish(made)
        for options in ({}, {'folder': os.path.join(self.folder, 'dtypes')}):
            with run.follow(**options) as steps:
                self.assertSame(next(steps).tensors(), made)

    def test_what_is_copied_first(self):
        base = numpy.arange(60, dtype='f4').reshape(5, 12)
        made = {'transposed': base.T, 'strided': base[::2, 1::3], 'big-endian': base.astype('>f4'),
                'scalar': numpy.float32(3), 'fortran': numpy.asfortranarray(base),
                'reversed': base[::-1]}
        run = self.run_of()
        run.publish(made)
        with run.follow() as steps:
            got = next(steps).tensors()
        for name, array in made.items():
            numpy.testing.assert_array_equal(got[name], array)

    def test_packed_dtypes(self):
        """numpy has none of them, so their bytes come."""
        path = os.path.join(self.folder, 'packed.safetensors')
        write_safetensors(path, {'a': ('F4', [2, 8], bytes(range(8))),
                                 'b': ('F6_E2M3', [4], b'abc'), 'c': ('F32', [1], b'1234')})
        run = self.run_of()
        run.publish(path)
        with run.follow(os.path.join(self.folder, 'packed')) as steps:
            got = next(steps).tensors()
        self.assertEqual(got['a'].tolist(), [[0, 1, 2, 3], [4, 5, 6, 7]])
        self.assertEqual((got['b'].tobytes(), got['b'].dtype), (b'abc', numpy.uint8))

    def test_wrong_ones(self):
        for value in (numpy.zeros(2, 'c16'), numpy.zeros(2, 'U3'), numpy.zeros(2, object), 'text',
                      numpy.zeros(2, ml_dtypes.int4), numpy.zeros(2, ml_dtypes.float8_e3m4), None):
            with self.subTest(value=value), self.assertRaisesRegex(TypeError, '^the.one '):
                deltabucket.tensors.readable({'the.one': value})
        with self.assertRaises(TypeError):
            deltabucket.tensors.readable({3: numpy.zeros(2)})

    def test_names(self):
        for given, wanted in (
                (['module.a', 'module.b.c'], ['a', 'b.c']),
                (['module.module.a'], ['a']),
                (['module.a', 'b'], ['module.a', 'b']),
                (['_orig_mod.a', 'layers.0._orig_mod.b'], ['a', 'layers.0.b']),
                (['module._orig_mod.a'], ['a']), (['_orig_mod.module.a'], ['a']),
                (['_fsdp_wrapped_module.a._checkpoint_wrapped_module.b'], ['a.b']),
                (['base_model.model.q.lora_A.weight'], ['base_model.model.q.lora_A.weight']),
                (['my_orig_mod.a', 'x.module.b'], ['my_orig_mod.a', 'x.module.b'])):
            self.assertEqual(list(deltabucket.clean_names(given).values()), wanted)
        with self.assertRaisesRegex(ValueError, 'clean=False'):
            deltabucket.clean_names(['a', '_orig_mod.a'])


if __name__ == '__main__':
    unittest.main()
