"""Publishing from memory with libdeltabucket.so: steps of a real run against a real server, what workers get, and what is
left behind."""
import concurrent.futures
import ctypes
import glob
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

from tests.support import library
from tests.support.checkpoints import expand_small, write_safetensors
from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.publishing import Publisher, read_tensors

STEPS = 10
CONFIG = {'config.json': b'{"model_type": "llama"}'}

# Publishes one step from memory, says so, and waits for its end.
LEFT_BEHIND = '''
import sys, time
from tests.support import library
from tests.support.publishing import Publisher, read_tensors
client = library.Client(library.Library(), endpoint=sys.argv[1], token=sys.argv[2])
publisher = Publisher(client.__enter__(), sys.argv[3]).__enter__()
publisher.publish(read_tensors(sys.argv[4]))
print('published', flush=True)
time.sleep(600)
'''


def folders_in_memory(pid):
    return set(glob.glob(f'/dev/shm/deltabucket-{pid}-*'))


class Publish(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.paths = expand_small(cls.folder, STEPS)
        cls.weights = [read_tensors(path) for path in cls.paths]
        cls.library = library.Library()
        cls.daemon = Daemon(tls=False)
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.start()
        cls.daemon.request('PUT', '/models')

    def setUp(self):
        self.run_name = f'models/{self._testMethodName}'
        self.client = library.of_daemon(self.library, self.daemon)
        self.client.__enter__()
        self.addCleanup(self.client.__exit__)
        self.work = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.work)

    def publisher(self, **settings):
        return Publisher(self.client, self.run_name, **settings)

    def refused(self, kind, publisher, *arguments, **more):
        with self.assertRaises(library.Failed) as caught:
            publisher.publish(*arguments, **more)
        self.assertEqual(caught.exception.kind, kind, caught.exception.text)
        return caught.exception.text

    def assert_worker_has(self, step):
        into = os.path.join(self.work, 'worker')
        self.daemon.client('follow', '--once', '--run', self.run_name, '--into', into)
        self.assertEqual(read_tensors(os.path.join(into, 'current', 'model.safetensors')), self.weights[step])
        with open(os.path.join(into, 'current', 'config.json'), 'rb') as file:
            self.assertEqual(file.read(), CONFIG['config.json'])

    def manifest(self, run_name, step):
        told = json.loads(self.client.ask(f'/v1/runs/{run_name}/steps/{step}'))
        return {name: told[name] for name in ('digest', 'schema_digest', 'tensor_digests', 'files') if name in told}

    def test_a_real_run_reaches_workers_bit_for_bit(self):
        with self.publisher() as publisher:
            first = publisher.publish(self.weights[0], CONFIG)
            self.assertGreater(first.anchor_bytes, 0)
            for step in range(1, 6):
                done = publisher.publish(self.weights[step], CONFIG, step=step)
                self.assertEqual((done.step, done.anchor_bytes), (step, 0))
                self.assertGreater(done.delta_bytes, 0)
                self.assert_worker_has(step)
        with self.publisher(take_over=1) as publisher:  # it knows nothing: the head is its baseline
            for step in range(6, STEPS + 1):
                done = publisher.publish(self.weights[step], CONFIG)
                self.assertEqual((done.step, done.anchor_bytes), (step, 0))
                self.assert_worker_has(step)

    def test_it_is_the_step_that_the_command_makes_of_the_file(self):
        with self.publisher() as publisher:
            for step in range(3):
                publisher.publish(self.weights[step], CONFIG)
                source = os.path.join(self.work, 'trained')
                os.makedirs(source, exist_ok=True)
                write_safetensors(os.path.join(source, 'model.safetensors'), dict(sorted(self.weights[step].items())),
                                  {'format': 'pt'})
                with open(os.path.join(source, 'config.json'), 'wb') as file:
                    file.write(CONFIG['config.json'])
                self.daemon.client('publish', '--run', self.run_name + '_file', '--state', os.path.join(self.work, 'state'),
                                   source)
                ours = self.manifest(self.run_name, step)
                self.assertTrue(ours['files'] and ours['digest'])
                self.assertEqual(ours, self.manifest(self.run_name + '_file', step))

    def test_a_second_publisher_must_say_that_it_takes_over(self):
        with self.publisher() as first, self.publisher() as second:
            first.publish(self.weights[0])
            told = self.refused('stale_epoch', second, self.weights[1])
            self.assertIn('add take_over', told)  # the words of the settings, not flags
            self.assertNotIn('--', told)
            with self.publisher(take_over=1) as third:
                third.publish(self.weights[1])
                self.assertIn('another publisher', self.refused('stale_epoch', first, self.weights[1]))
                self.assertEqual(third.publish(self.weights[2]).anchor_bytes, 0)

    def test_the_baseline_is_private_and_goes_with_the_publisher(self):
        before = folders_in_memory(os.getpid())
        with self.publisher() as publisher:
            publisher.publish(self.weights[0])
            (folder,) = folders_in_memory(os.getpid()) - before
            self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
            with self.publisher(take_over=1) as another:  # does not take it for left over
                another.publish(self.weights[1])
            self.assertTrue(os.path.exists(folder))
        self.assertFalse(os.path.exists(folder))
        self.assertEqual(folders_in_memory(os.getpid()), before)

    def test_what_a_killed_process_left_is_removed(self):
        with subprocess.Popen([sys.executable, '-c', LEFT_BEHIND, self.daemon.endpoint, ROOT_TOKEN, self.run_name, self.paths[0]],
                              stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), 'published\n')
            self.assertTrue(folders_in_memory(process.pid))
            process.send_signal(signal.SIGKILL)
        with self.publisher(take_over=1) as publisher:
            self.assertEqual(publisher.publish(self.weights[1]).anchor_bytes, 0)
            self.assertFalse(folders_in_memory(process.pid))

    def test_wrong_tensors_are_named_and_the_publisher_goes_on(self):
        good = dict(self.weights[0])
        name = next(iter(good))
        dtype, shape, content = good[name]
        with self.publisher() as publisher:
            text = self.refused('invalid', publisher, {**good, name: (dtype, shape, content[:-2])})
            self.assertIn(f"'{name}'", text)
            text = self.refused('invalid', publisher, {**good, name: ('BF17', shape, content)})
            self.assertIn(f"'{name}'", text)
            self.assertIn('"BF17"', text)
            self.refused('invalid', publisher, {})
            self.refused('invalid', publisher, good, {'../config.json': b''})
            self.refused('invalid', publisher, good, anchor='sometimes')
            self.refused('invalid', publisher, good, anchor='8')
            self.refused('invalid', publisher, good, format='full')
            publisher.publish(good)
            self.refused('schema_mismatch', publisher, {**good, 'more': ('U8', (1,), b'1')})
            self.assertEqual(publisher.publish(self.weights[1]).anchor_bytes, 0)

    def test_words_of_a_step(self):
        pairs = (ctypes.c_char_p * 3)(b'reward', b'0.5 "high"', None)
        with self.publisher(keep_steps=7) as publisher:
            publisher.publish(self.weights[0], label='warm up', metadata=pairs)
            told = json.loads(self.client.ask(f'/v1/runs/{self.run_name}/steps/0'))
            self.assertEqual((told['label'], told['metadata']), ('warm up', {'reward': '0.5 "high"'}))
            self.assertEqual(json.loads(self.client.ask(f'/v1/runs/{self.run_name}'))['settings']['keep_steps'], 7)
            self.assertGreater(publisher.publish(self.weights[1], anchor='every=1').anchor_bytes, 0)
            self.assertEqual(publisher.publish(self.weights[1], step=1).already, 1)
            self.refused('step_differs', publisher, self.weights[3], step=1)
            self.refused('head_moved', publisher, self.weights[3], step=5)
            self.assertEqual(publisher.publish(self.weights[2], step=2).anchor_bytes, 0)

    def test_paths_are_published_too(self):
        for settings in ({}, {'state': os.path.join(self.work, 'state'), 'take_over': 1}):
            with self.publisher(**settings) as publisher:
                publisher.publish(self.paths[0])
                self.assertEqual(publisher.publish(self.paths[1]).anchor_bytes, 0)
                self.assertEqual(publisher.publish(self.weights[2]).anchor_bytes, 0)
                self.assertEqual(publisher.publish(self.paths[3]).anchor_bytes, 0)

    def test_a_state_folder_outlives_the_publisher(self):
        state = os.path.join(self.work, 'state')
        for step in range(4):
            with self.publisher(state=state) as publisher:
                done = publisher.publish(self.weights[step], CONFIG)
                self.assertEqual((done.step, done.anchor_bytes > 0), (step, step == 0))
        self.assert_worker_has(3)

    def ranks(self, publishers, number, ranks=2, **more):
        """Publishes a step of the real run with a thread for each rank; gives what they have told."""
        names = sorted(self.weights[number])
        shards = [f'model-{rank + 1:05d}-of-{ranks:05d}.safetensors' for rank in range(ranks)]
        index = {'weight_map': {name: shards[place % ranks] for place, name in enumerate(names)}}
        files = {**CONFIG, 'model.safetensors.index.json': json.dumps(index).encode()}
        with concurrent.futures.ThreadPoolExecutor(ranks) as pool:
            return list(pool.map(lambda rank: publishers[rank].publish(
                {name: self.weights[number][name] for name in names[rank::ranks]}, files, rank=rank, ranks=ranks, wait_s=60, **more),
                range(ranks)))

    def test_ranks_reach_workers_bit_for_bit(self):
        into = os.path.join(self.work, 'worker')
        for folder in (None, os.path.join(self.work, 'state')):
            self.run_name = f'models/ranks_{folder is None}'
            with self.publisher(state=folder) as first, self.publisher(state=folder) as second:
                epoch = first.epoch() if folder is None else 0
                for step in range(4):
                    told = self.ranks([first, second], step, epoch=epoch, step=step)
                    self.assertEqual([(one.step, one.anchor_bytes > 0) for one in told], [(step, step == 0)] * 2)
                    digest = json.loads(self.client.ask(f'/v1/runs/{self.run_name}/steps/{step}'))['digest']
                    self.assertEqual({one.digest.decode() for one in told}, {digest})
                    self.daemon.client('follow', '--once', '--run', self.run_name, '--into', into)
                    found = {}
                    for path in glob.glob(os.path.join(into, 'current', '*.safetensors')):
                        found.update(read_tensors(path))
                    self.assertEqual(found, self.weights[step])
            shutil.rmtree(into)

    def test_what_a_rank_must_say(self):
        one = dict(list(self.weights[0].items())[:1])
        with self.publisher() as publisher:
            self.refused('invalid', publisher, one, rank=1)
            self.refused('invalid', publisher, one, rank=2, ranks=2)
            self.refused('invalid', publisher, one, rank=0, ranks=5000)
            self.refused('invalid', publisher, one, ranks=1, format='trl-gap')
            self.refused('invalid', publisher, one, ranks=1, anchor='every=2')
            self.assertIn('epoch', self.refused('invalid', publisher, one, rank=1, ranks=2))
            self.assertIn('index', self.refused('invalid', publisher, one, ranks=2, epoch=1))
            self.assertEqual(publisher.publish(one, ranks=1).step, 0)
            self.assertIn('another one', self.refused('invalid', publisher, one))
            text = self.refused('not_ready', publisher, one, rank=1, ranks=2, epoch=1, wait_s=-1)
            self.assertIn('other ranks', text)
        with self.publisher() as publisher:
            self.refused('stale_epoch', publisher, one)
            with self.assertRaises(library.Failed) as caught:
                publisher.epoch()
            self.assertEqual(caught.exception.kind, 'stale_epoch')
            self.assertIn('take_over', caught.exception.text)

    def test_a_rank_that_waits_is_cancelled(self):
        watch = self.library.watch()
        one = dict(list(self.weights[0].items())[:1])
        with self.publisher() as publisher:
            epoch = publisher.epoch()
            threading.Timer(1, self.library.names.deltabucket_watch_cancel, [watch]).start()
            self.refused('busy', publisher, one, rank=1, ranks=2, epoch=epoch, watch=watch)
        self.library.names.deltabucket_watch_free(watch)

    def test_a_cancelled_call_leaves_a_publisher_that_goes_on(self):
        watch = self.library.watch()
        self.library.names.deltabucket_watch_cancel(watch)
        with self.publisher() as publisher:
            self.refused('busy', publisher, self.weights[0], watch=watch)
            publisher.publish(self.weights[0])
            self.refused('busy', publisher, self.weights[1], watch=watch)
            self.assertEqual(publisher.publish(self.weights[1]).anchor_bytes, 0)
        self.library.names.deltabucket_watch_free(watch)


if __name__ == '__main__':
    unittest.main()
