"""A follower of libdeltabucket.so: the real series of steps, into a folder and into memory, against a real server."""
import ctypes
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from tests.support import library
from tests.support.checkpoints import expand_small, sha256, write_safetensors
from tests.support.daemon import ROOT_TOKEN, Daemon

STEPS = 16
FILE = 'model.safetensors'
MEMORY = None


class Settings(library.Sized):
    _fields_ = [('size', ctypes.c_size_t), ('run', ctypes.c_char_p), ('folder', ctypes.c_char_p), ('replica', ctypes.c_char_p),
                ('is_silent', ctypes.c_int), ('threads', ctypes.c_uint), ('keeps_changes', ctypes.c_int),
                ('tensors', ctypes.c_char_p), ('rank', ctypes.c_uint), ('ranks', ctypes.c_uint)]


class Facts(library.Sized):
    _fields_ = [('size', ctypes.c_size_t), ('number', ctypes.c_uint64), ('digest', ctypes.c_char * 42), ('label', ctypes.c_char_p),
                ('created_ms', ctypes.c_int64), ('newest', ctypes.c_uint64), ('path', ctypes.c_char_p), ('tensor_count', ctypes.c_size_t),
                ('delta_count', ctypes.c_size_t), ('fetched_bytes', ctypes.c_uint64)]


class Tensor(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('dtype', ctypes.c_char_p), ('shape', ctypes.POINTER(ctypes.c_uint64)), ('rank', ctypes.c_size_t),
                ('data', ctypes.c_void_p), ('bytes', ctypes.c_uint64)]


CHANGES = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p, ctypes.c_size_t)


def read_tensors(path):
    """{name: (dtype, shape, bytes)} of a safetensors file."""
    with open(path, 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = file.read()
    header.pop('__metadata__', None)
    return {name: (facts['dtype'], facts['shape'], data[slice(*facts['data_offsets'])]) for name, facts in header.items()}


class Step:
    def __init__(self, names, pointer):
        self.names, self.pointer = names, pointer
        self.facts = Facts()
        names.deltabucket_step_facts(pointer, ctypes.byref(self.facts))
        self.number = self.facts.number

    def tensor(self, index):
        tensor = Tensor()
        self.names.deltabucket_step_tensor(self.pointer, ctypes.c_size_t(index), ctypes.byref(tensor))
        return tensor

    def tensors(self):
        found = [self.tensor(i) for i in range(self.facts.tensor_count)]
        return {one.name.decode(): (one.dtype.decode(), one.shape[:one.rank], ctypes.string_at(one.data, one.bytes)) for one in found}

    def deltas(self):
        function = self.names.deltabucket_step_delta
        function.restype = ctypes.c_char_p
        return [function(self.pointer, ctypes.c_size_t(i)).decode() for i in range(self.facts.delta_count)]

    def changes(self, index):
        """(positions, values), of a tensor with elements of two bytes."""
        told, error = [], library.Error()

        def found(owner, positions, values, count):
            told.append((positions[:count], ctypes.string_at(values, 2 * count)))
            return 0
        if self.names.deltabucket_step_changes(self.pointer, ctypes.c_size_t(index), CHANGES(found), None, ctypes.byref(error)) != 0:
            raise library.Failed(error)
        (answer,) = told
        return answer

    def free(self):
        self.names.deltabucket_step_free(self.pointer)


class Follower:
    def __init__(self, client, folder=MEMORY, run='models/r', watch=None, **settings):
        self.client, self.library, self.names = client, client.library, client.library.names
        self.settings = Settings(run=run.encode(), folder=folder and folder.encode(), **settings)
        self.pointer = self.library.made('follower_open', client.pointer, ctypes.byref(self.settings), watch)

    def next(self, wanted=-1, wait_ms=0, watch=None):
        step = ctypes.c_void_p()
        found = self.library.call('follower_next', self.pointer, wanted, wait_ms, ctypes.byref(step), watch)
        return Step(self.names, step) if found else None

    def report(self, state, sentence=None):
        self.library.call('follower_report', self.pointer, state, sentence)

    def paused(self, milliseconds):
        self.library.call('follower_paused', self.pointer, ctypes.c_uint64(milliseconds))

    def close(self):
        self.names.deltabucket_follower_close(self.pointer)


class Follow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = library.Library()
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.published = expand_small(cls.folder, STEPS)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.daemon = Daemon()
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__)
        self.daemon.request('PUT', '/models')
        self.client = library.of_daemon(self.library, self.daemon)
        self.client.__enter__()
        self.addCleanup(self.client.__exit__)

    def path(self, name):
        return os.path.join(self.daemon.scratch, name)

    def command(self, *arguments):
        return self.daemon.client(*arguments)

    def publish(self, *numbers):
        for number in numbers:
            self.command('publish', '--run', 'models/r', '--step', str(number), '--label', f'train-{number}', '--state', self.path('state'),
                         self.published[number])

    def open(self, folder=MEMORY, **settings):
        follower = Follower(self.client, folder and self.path(folder), **settings)
        self.addCleanup(follower.close)
        return follower

    def expect(self, step, number, deltas=None):
        """The step, with the weights that were published."""
        self.assertIsNotNone(step, number)
        self.assertEqual(step.number, number)
        self.assertEqual(step.tensors(), read_tensors(self.published[number]))
        self.assertEqual(list(step.tensors()), sorted(step.tensors()))
        self.assertEqual(step.facts.label.decode(), f'train-{number}')
        self.assertLess(abs(step.facts.created_ms / 1000 - time.time()), 3600)
        if deltas is not None:
            self.assertEqual((step.facts.delta_count, len([path for path in step.deltas() if os.path.exists(path)])), (deltas, deltas))
        return step

    def in_both(self):
        for number, folder in enumerate((MEMORY, 'worker')):
            with self.subTest(folder=folder):
                yield number, self.open(folder, replica=f'worker-{number}'.encode())

    def test_the_real_series_comes_step_by_step(self):
        followers = [self.open(MEMORY), self.open('worker')]
        for number in range(9):
            self.publish(number)
            for follower in followers:
                step = self.expect(follower.next(), number, deltas=1 if number > 0 else 0)
                self.assertEqual(step.facts.newest, number)
                self.assertEqual(step.facts.path != b'', follower is followers[1])
                if step.facts.path:
                    self.assertEqual(sha256(os.path.join(step.facts.path.decode(), FILE)), sha256(self.published[number]))
                step.free()
                self.assertIsNone(follower.next())

    def test_one_that_comes_late_or_was_away_catches_up(self):
        self.publish(0, 1, 2)
        followers = [self.open(MEMORY), self.open('worker')]
        for follower in followers:
            self.expect(follower.next(), 2, deltas=0).free()
        self.publish(3, 4, 5)
        for follower in followers:
            step = self.expect(follower.next(wait_ms=20000), 5)
            self.assertGreater(step.facts.delta_count, 0)  # a fold, or one by one
            step.free()

    def test_a_fold_leads_over_many_steps(self):
        self.publish(0)
        followers = [self.open(MEMORY), self.open('worker')]
        for follower in followers:
            step = self.expect(follower.next(), 0)
            digest = step.facts.digest.decode()
            step.free()
        self.publish(*range(1, STEPS + 1))
        limit = time.monotonic() + 90
        links = [0, 0]
        while len(links) != 1:
            links = self.daemon.request('GET', f'/v1/runs/models/r/path?want=latest&have=0&digest={digest}&wait=10').json()['links']
            self.assertLess(time.monotonic(), limit, 'the server makes no fold')
        for follower in followers:
            self.expect(follower.next(), STEPS, deltas=1).free()

    def test_a_part_of_the_model(self):
        """In a folder and in memory, by name and by rank; it is what the command line holds."""
        name = next(iter(sorted(read_tensors(self.published[0]))))
        choices = ({'tensors': f'{name},nothing.*'.encode()}, ['--tensors', f'{name},nothing.*']), ({'rank': 1, 'ranks': 3}, ['--rank', '1/3'])
        followers = [(self.open(folder and f'part-{number}', replica=f'{number}-{folder}'.encode(), **choice), folder, words)
                     for number, (choice, words) in enumerate(choices) for folder in (MEMORY, 'folder')]
        for number in range(3):
            self.publish(number)
            for follower, folder, words in followers:
                with self.subTest(folder=folder, words=words):
                    self.command('follow', '--once', '--run', 'models/r', '--into', self.path(words[0]), *words)
                    step = follower.next()
                    wanted = read_tensors(os.path.join(self.path(words[0]), 'current', FILE))
                    self.assertLess(len(wanted), len(read_tensors(self.published[number])))
                    self.assertEqual((step.number, step.tensors()), (number, wanted))
                    self.assertEqual(step.facts.delta_count, 1 if folder and number else 0)
                    if folder:
                        self.assertEqual(sha256(os.path.join(step.facts.path.decode(), FILE)), sha256(os.path.join(self.path(words[0]), 'current', FILE)))
                    step.free()

    def test_parts_that_there_are_not(self):
        self.publish(0)
        for wrong in ({'rank': 1}, {'rank': 2, 'ranks': 2}, {'ranks': 70000}, {'tensors': b''}, {'tensors': b'a', 'ranks': 1}):
            with self.subTest(wrong), self.assertRaises(library.Failed) as caught:
                self.open(MEMORY, **wrong)
            self.assertEqual(caught.exception.kind, 'invalid')
        for folder in (MEMORY, 'worker'):
            with self.assertRaises(library.Failed) as caught:
                self.open(folder, tensors=b'nothing.*').next()
            self.assertEqual(caught.exception.kind, 'not_found')

    def test_a_wanted_step_comes_also_backwards(self):
        self.publish(0, 1, 2, 3)
        for follower in (self.open(MEMORY), self.open('worker')):
            self.expect(follower.next(), 3).free()
            for number in (1, 1, 2, 0, 3):
                self.expect(follower.next(wanted=number), number).free()
            self.assertIsNone(follower.next(wanted=9))

    def test_changes_turn_the_step_before_into_this_one(self):
        self.publish(0)
        followers = [self.open(MEMORY, keeps_changes=1), self.open('worker')]
        for follower in followers:
            step = follower.next()
            with self.assertRaises(library.Failed) as caught:
                step.changes(0)
            self.assertEqual(caught.exception.kind, 'unsupported')
            step.free()
        self.publish(1)
        before, after = read_tensors(self.published[0]), read_tensors(self.published[1])
        for follower in followers:
            step, changed = self.expect(follower.next(), 1), 0
            for index, name in enumerate(sorted(before)):
                data = bytearray(before[name][2])
                positions, values = step.changes(index)
                for turn, position in enumerate(positions):
                    data[2 * position:2 * position + 2] = values[2 * turn:2 * turn + 2]
                self.assertEqual(bytes(data), after[name][2], name)
                self.assertEqual(positions, sorted(set(positions)))
                changed += len(positions)
            self.assertGreater(changed, 0)
            step.free()

    def test_changes_in_memory_are_kept_only_for_those_who_ask(self):
        self.publish(0)
        follower = self.open(MEMORY)
        self.expect(follower.next(), 0).free()
        self.publish(1)
        step = self.expect(follower.next(), 1, deltas=1)
        with self.assertRaisesRegex(library.Failed, 'keeps_changes') as caught:
            step.changes(0)
        self.assertEqual(caught.exception.kind, 'unsupported')
        step.free()

    def test_a_folder_of_the_command_line_goes_on(self):
        self.publish(0, 1)
        self.command('follow', '--run', 'models/r', '--into', self.path('worker'), '--once')
        follower = self.open('worker')
        step = self.expect(follower.next(), 1, deltas=0)
        self.assertEqual(step.facts.fetched_bytes, 0)
        step.free()
        self.assertIsNone(follower.next())
        self.publish(2)
        self.expect(follower.next(), 2, deltas=1).free()
        with self.assertRaises(library.Failed) as caught:
            self.open('worker')
        self.assertEqual(caught.exception.kind, 'busy')

    def test_a_flipped_byte_in_memory_is_cured(self):
        self.publish(0)
        follower = self.open()
        step = self.expect(follower.next(), 0)
        tensor = step.tensor(step.facts.tensor_count - 1)
        at = ctypes.cast(tensor.data, ctypes.POINTER(ctypes.c_uint8))
        at[tensor.bytes // 2] ^= 16
        step.free()
        self.publish(1, 2)
        self.expect(follower.next(), 2, deltas=0).free()
        self.publish(3)
        self.expect(follower.next(), 3, deltas=1).free()

    def test_a_server_that_goes_and_comes_back(self):
        self.publish(0)
        followers = [self.open(MEMORY), self.open('worker')]
        for follower in followers:
            self.expect(follower.next(), 0).free()
        self.daemon.stop()
        for follower in followers:
            for wait_ms in (0, 300):
                with self.assertRaises(library.Failed) as caught:
                    follower.next(wait_ms=wait_ms)
                self.assertEqual(caught.exception.kind, 'upstream')
        found = []
        waiting = [threading.Thread(target=lambda one=follower: found.append(one.next(wait_ms=60000))) for follower in followers]
        for thread in waiting:
            thread.start()
        time.sleep(0.5)
        self.daemon.start()
        self.publish(1)
        for thread in waiting:
            thread.join()
        for step in found:
            self.expect(step, 1, deltas=1).free()

    def test_a_run_that_does_not_exist_yet(self):
        for _, follower in self.in_both():
            self.assertIsNone(follower.next())
            self.assertIsNone(follower.next(wait_ms=300))
        for tell in (lambda: follower.report('ready'), lambda: follower.paused(1)):
            with self.assertRaises(library.Failed) as caught:
                tell()
            self.assertEqual(caught.exception.kind, 'not_ready')
        self.publish(0)
        self.expect(follower.next(), 0).free()

    def cancel_in(self, seconds, follower, **how):
        watch = self.library.watch()
        timer = threading.Timer(seconds, self.library.names.deltabucket_watch_cancel, [watch])
        timer.start()
        with self.assertRaises(library.Failed) as caught:
            follower.next(watch=watch, **how)
        self.assertEqual(caught.exception.kind, 'busy')
        timer.join()
        self.library.names.deltabucket_watch_free(watch)

    def test_cancelling_ends_a_wait(self):
        self.publish(0)
        for _, follower in self.in_both():
            self.expect(follower.next(), 0).free()
            self.cancel_in(0.3, follower, wait_ms=-1)
            self.assertIsNone(follower.next())
        self.cancel_in(0.3, self.open('other', run='models/none'), wait_ms=-1)
        self.publish(1)
        self.expect(follower.next(), 1).free()

    def test_cancelling_ends_a_download_and_the_next_call_goes_on(self):
        path = self.path('large.safetensors')
        write_safetensors(path, {'w': ('U8', [64 << 20], os.urandom(64 << 20))})
        self.command('publish', '--run', 'models/large', path)
        for folder in (MEMORY, 'large'):
            follower = self.open(folder, run='models/large')
            self.cancel_when_it_downloads(follower)
            step = follower.next(wanted=0)
            self.assertEqual(step.tensors(), read_tensors(path))
            step.free()

    def cancel_when_it_downloads(self, follower):
        def progress(owner, what, done, total):
            self.library.names.deltabucket_watch_cancel(watch)
        settings = library.WatchSettings(progress=library.PROGRESS(progress))
        watch = self.library.watch(settings)
        try:
            step = follower.next(watch=watch)
        except library.Failed as failed:
            self.assertEqual(failed.kind, 'busy')
        else:
            step.free()  # it was faster
        self.library.names.deltabucket_watch_free(watch)

    def test_closing_while_the_next_step_is_fetched(self):
        self.publish(0)
        follower = Follower(self.client, self.path('worker'))
        self.expect(follower.next(), 0).free()
        self.publish(1)
        follower.close()
        self.command('follow', '--run', 'models/r', '--into', self.path('worker'), '--once')
        self.assertEqual(sha256(os.path.join(self.path('worker'), 'current', FILE)), sha256(self.published[1]))

    def test_a_step_of_a_folder_outlives_its_generation(self):
        self.publish(0)
        follower = self.open('worker')
        first = follower.next()
        for number in (1, 2, 3):
            self.publish(number)
            self.expect(follower.next(), number).free()
        self.assertFalse(os.path.exists(first.facts.path))
        self.expect(first, 0)
        first.free()

    def fleet(self):
        return {entry['id']: entry for line in self.daemon.client('replicas', 'models/r', '--json').stdout.splitlines() for entry in [json.loads(line)]}

    def wait_for(self, name, **facts):
        limit = time.monotonic() + 60
        while not (name in self.fleet() and all(self.fleet()[name].get(key) == value for key, value in facts.items())):
            self.assertLess(time.monotonic(), limit, (facts, self.fleet()))
            time.sleep(0.05)

    def test_the_fleet_hears_what_the_worker_does(self):
        self.publish(0)
        silent = self.open(MEMORY, replica=b'silent', is_silent=1)
        self.expect(silent.next(), 0).free()
        follower = Follower(self.client, replica=b'loud')
        self.expect(follower.next(), 0).free()
        self.wait_for('loud', state='staging', step=0)
        follower.report('error', 'the engine said no')
        self.wait_for('loud', state='error', error='the engine said no')
        follower.report('ready')
        self.wait_for('loud', state='ready', step=0)
        self.assertEqual(list(self.fleet()), ['loud'])
        self.assertNotIn('pause_ms', self.fleet()['loud'])
        follower.paused(1410)
        follower.report('ready')
        self.wait_for('loud', state='ready', step=0, pause_ms=1410)
        with self.assertRaises(library.Failed) as caught:
            follower.paused(2**63)
        self.assertEqual(caught.exception.kind, 'invalid')
        self.publish(1)
        self.expect(follower.next(), 1).free()
        self.wait_for('loud', state='staging', step=1)
        self.assertNotIn('pause_ms', self.fleet()['loud'])  # that was of the step before
        with self.assertRaises(library.Failed) as caught:
            follower.report('asleep')
        self.assertEqual(caught.exception.kind, 'invalid')
        follower.close()
        self.assertEqual(self.fleet(), {})

    def test_a_rollback_of_the_fleet_is_obeyed(self):
        followers = [follower for _, follower in self.in_both()]
        for step in range(3):
            self.publish(step)
            for follower in followers:
                self.expect(follower.next(), step).free()
        waiting = [threading.Thread(target=lambda follower=follower: found.append(follower.next(wait_ms=60000))) for follower in followers]
        found = []
        for thread in waiting:
            thread.start()
        time.sleep(0.2)
        self.daemon.client('fleet', 'rollback', 'models/r', 1)
        for thread in waiting:
            thread.join()
        for step in found:
            self.expect(step, 1).free()
        for follower in followers:
            self.assertIsNone(follower.next())
        self.daemon.client('fleet', 'forward', 'models/r')
        for follower in followers:
            self.expect(follower.next(), 2).free()

    def left(self, process):
        return glob.glob(f'/dev/shm/deltabucket-{process}-*')

    def test_memory_is_given_back_also_by_a_process_that_was_killed(self):
        self.publish(0)
        code = ('import os, sys\nfrom tests.support import library\nfrom tests.library.test_follow import Follower\n'
                'one = library.Client(library.Library(), endpoint=sys.argv[1], token=sys.argv[2], ca=sys.argv[3])\none.__enter__()\n'
                'assert Follower(one).next().number == 0\nos.kill(os.getpid(), 9)\n')
        process = subprocess.Popen([sys.executable, '-c', code, self.daemon.endpoint, ROOT_TOKEN, self.daemon.ca])
        self.assertEqual(process.wait(), -9)
        (dead,) = self.left(process.pid)
        kept = sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(dead) for name in names)
        self.assertLess(kept, os.path.getsize(self.published[0]) // 10)  # the weights went with the process
        follower = Follower(self.client)
        self.assertEqual(self.left(process.pid), [])
        self.expect(follower.next(), 0).free()
        (alive,) = self.left(os.getpid())
        self.assertEqual(os.stat(alive).st_mode & 0o777, 0o700)
        follower.close()
        self.assertEqual(self.left(os.getpid()), [])
