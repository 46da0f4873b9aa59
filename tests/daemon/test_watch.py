"""`deltabucket publish --watch`: sub-folders of a trainer that finish become steps, in order, each
once, whatever ends the watcher in between."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon

THREADS_MEET = False


class Watch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.checkpoints = expand_small(cls.folder, 4)
        cls.daemon = Daemon(tls=False)
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.start()
        cls.daemon.request('PUT', '/models')

    def setUp(self):
        self.run_name = f'models/{self._testMethodName}'
        self.work = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.work)
        self.out = os.path.join(self.work, 'broadcasts')
        self.state = os.path.join(self.work, 'state')
        self.watcher = None
        self.addCleanup(self.stop, signal.SIGKILL)

    def save(self, name, checkpoint, marker='STABLE'):
        """As a trainer does: the files, then the marker."""
        folder = os.path.join(self.out, name)
        os.makedirs(folder)
        shutil.copy(self.checkpoints[checkpoint], os.path.join(folder, 'model.safetensors'))
        if marker:
            self.mark(name, marker)

    def spoil(self, name):
        """A finished sub-folder that is no checkpoint."""
        self.save(name, 0, marker=None)
        with open(os.path.join(self.out, name, 'model.safetensors'), 'r+b') as file:
            file.truncate(1000)
        self.mark(name)

    def mark(self, name, marker='STABLE'):
        with open(os.path.join(self.out, name, marker), 'w'):
            pass

    def start(self, *more, endpoint=None, **environment):
        self.log = os.path.join(self.work, 'log')
        with open(self.log, 'a') as log:
            self.watcher = subprocess.Popen(
                [
                    CLIENT,
                    'publish',
                    '--run',
                    self.run_name,
                    '--watch',
                    self.out,
                    '--state',
                    self.state,
                    '--json',
                    *more,
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    'DELTABUCKET_ENDPOINT': endpoint or self.daemon.endpoint,
                    'DELTABUCKET_TOKEN': ROOT_TOKEN,
                    'HOME': self.work,
                    **environment,
                },
            )

    def stop(self, number=signal.SIGTERM):
        if self.watcher is None:
            return None
        self.watcher.send_signal(number)
        status = self.watcher.wait(60)
        self.watcher = None
        return status

    def labels(self):
        listing = self.daemon.client('steps', self.run_name, '--json', check=False).stdout
        return [json.loads(line)['label'] for line in listing.splitlines() if '"label"' in line]

    def epoch(self):
        listing = self.daemon.client('runs', 'models', '--json').stdout
        runs = [json.loads(line) for line in listing.splitlines()]
        return next(run['epoch'] for run in runs if self.run_name.endswith('/' + run['run']))

    def events(self, name):
        with open(self.log) as log:
            lines = [json.loads(line) for line in log if line.startswith('{')]
        return [line for line in lines if line.get('event') == name]

    def wait_for(self, wanted, look):
        deadline = time.monotonic() + 60
        while (
            look() != wanted
            and time.monotonic() < deadline
            and (self.watcher is None or self.watcher.poll() is None)
        ):
            time.sleep(0.1)
        with open(self.log) as log:
            self.assertEqual(look(), wanted, log.read())

    def says_what_it_waits_for(self):
        with open(self.log) as log:
            return f'watching {self.out} ' in log.read()

    def published(self, *labels):
        self.wait_for(sorted(labels), lambda: sorted(self.labels()))

    def brought(self, step):
        into = os.path.join(self.work, f'into-{step}')
        self.daemon.client(
            'follow', '--run', self.run_name, '--into', into, '--once', '--step', step
        )
        self.assertEqual(os.listdir(os.path.join(into, 'current')), ['model.safetensors'])
        return sha256(os.path.join(into, 'current', 'model.safetensors'))

    def test_each_in_order_once_it_is_marked(self):
        self.start()  # before there is a folder
        self.wait_for(True, self.says_what_it_waits_for)
        time.sleep(1.5)
        self.save('step_9', 0)
        self.published('step_9')
        self.save('step_10', 1, marker=None)
        time.sleep(2.5)
        self.assertEqual(self.labels(), ['step_9'])
        self.mark('step_10')
        self.published('step_9', 'step_10')
        self.assertEqual(
            [event['label'] for event in self.events('published')], ['step_9', 'step_10']
        )
        self.assertEqual(self.brought(1), sha256(self.checkpoints[1]))
        self.assertEqual(self.stop(), 0)

    def test_numbers_and_not_names_are_the_order(self):
        for checkpoint, name in enumerate(('step_9', 'step_10', 'step_100')):
            self.save(name, checkpoint)
        for stray in ('notes', '.step_3', 'step_'):
            self.save(stray, 3)
        self.start()
        self.published('step_9', 'step_10', 'step_100')
        self.assertEqual([event['step'] for event in self.events('published')], [0, 1, 2])
        self.assertEqual(
            [event['label'] for event in self.events('published')],
            ['step_9', 'step_10', 'step_100'],
        )
        self.assertEqual(self.events('skipped'), [])
        self.save('step_50', 3)  # behind what was published
        self.save('step_60', 3, marker=None)
        self.wait_for(['step_50'], lambda: [event['folder'] for event in self.events('skipped')])
        self.mark('step_60')
        self.wait_for(
            ['step_50', 'step_60'], lambda: [event['folder'] for event in self.events('skipped')]
        )
        self.assertEqual(len(self.labels()), 3)
        self.stop()
        self.start()
        time.sleep(2.5)
        self.assertEqual(len(self.events('skipped')), 2)

    def test_a_restart_publishes_nothing_twice(self):
        self.save('step_1', 0)
        self.start()
        self.published('step_1')
        self.assertEqual(self.stop(signal.SIGINT), 130)
        self.save('step_2', 1)
        self.start()
        self.published('step_1', 'step_2')
        self.assertEqual(self.stop(), 0)
        self.state = os.path.join(self.work, 'another machine')
        self.save('step_3', 2)
        self.start()
        self.assertEqual(self.watcher.wait(60), 6)  # it might be a second trainer
        self.start('--take-over')
        self.published('step_1', 'step_2', 'step_3')

    def test_kills_lose_and_repeat_nothing(self):
        for number in range(5):
            self.save(f'step_{number}', number % 4)
        for delay in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4):
            self.start()
            time.sleep(delay)
            self.stop(signal.SIGKILL)
        self.start()
        self.published(*(f'step_{number}' for number in range(5)))
        for number in range(5):
            self.assertEqual(self.brought(number), sha256(self.checkpoints[number % 4]))

    def test_another_marker(self):
        self.save('global_step_1', 0)
        self.save('global_step_2', 1, marker='.finished')
        self.start('--marker', '.finished')
        self.published('global_step_2')

    def test_what_is_no_checkpoint_is_passed_over(self):
        self.save('step_1', 0)
        self.spoil('step_2')
        self.save('step_3', 2)
        self.start()
        self.published('step_1', 'step_3')
        self.assertEqual([event['folder'] for event in self.events('skipped')], ['step_2'])
        self.assertEqual(self.brought(1), sha256(self.checkpoints[2]))

    def test_what_is_passed_over_holds_no_lower_number_back(self):
        """Nobody published it, so what is finished after it may still come before it."""
        self.save('step_4', 0)
        self.start()
        self.published('step_4')
        self.spoil('step_6')
        self.wait_for(['step_6'], lambda: [event['folder'] for event in self.events('skipped')])
        self.save('step_5', 1)
        self.published('step_4', 'step_5')
        time.sleep(2.5)
        self.assertEqual([event['folder'] for event in self.events('skipped')], ['step_6'])
        shutil.rmtree(os.path.join(self.out, 'step_6'))
        time.sleep(2.5)
        self.save('step_6', 2)  # the trainer wrote it anew
        self.published('step_4', 'step_5', 'step_6')
        self.assertEqual(self.brought(2), sha256(self.checkpoints[2]))

    def test_a_seed_by_hand(self):
        """A first step that has no such name: the sub-folders follow on it."""
        self.daemon.client(
            'publish', '--run', self.run_name, '--state', self.state, self.checkpoints[0]
        )
        self.save('step_1', 1)
        self.start()
        self.published('', 'step_1')

    def test_a_server_that_is_away(self):
        other = Daemon(tls=False)
        self.addCleanup(other.__exit__)
        self.save('step_1', 0)
        self.start('--retries', '0', '--create-bucket', endpoint=other.endpoint)
        self.wait_for(True, lambda: len(self.events('retrying')) > 0)
        other.start()
        self.wait_for(['step_1'], lambda: [event['label'] for event in self.events('published')])
        self.assertEqual(self.stop(), 0)

    def test_a_writer_that_is_fenced_ends(self):
        self.save('step_1', 0)
        self.start()
        self.published('step_1')
        self.daemon.client(
            'publish',
            '--run',
            self.run_name,
            '--state',
            os.path.join(self.work, 'other'),
            '--take-over',
            '--label',
            'other',
            self.checkpoints[1],
        )
        self.save('step_2', 1)
        self.assertEqual(self.watcher.wait(60), 6)
        self.watcher = None
        with open(self.log) as log:
            self.assertIn('deltabucket: step_2: ', log.read())

    def test_a_second_watcher_hears_of_the_first_at_once(self):
        """Nothing has to be finished for the refusal; --take-over ends nobody before a checkpoint is there."""
        self.save('step_1', 0)
        self.start()
        self.published('step_1')
        first, state, epoch = self.watcher, self.state, self.epoch()
        self.state = os.path.join(self.work, 'another')
        self.start()
        self.assertEqual(self.watcher.wait(60), 6)
        with open(self.log) as log:
            self.assertIn('--take-over', log.read())
        self.start('--take-over')
        second, self.watcher = self.watcher, first
        self.assertEqual(self.stop(), 0)
        self.assertEqual(self.epoch(), epoch)
        self.watcher = second
        self.save('step_2', 1)
        self.published('step_1', 'step_2')
        self.assertEqual(self.epoch(), epoch + 1)
        self.stop()
        self.state = state
        self.start()
        self.assertEqual(self.watcher.wait(60), 6)
        self.watcher = None

    def said(self):
        with open(self.log) as log:
            return log.read()

    def test_one_watcher_in_a_state_folder(self):
        """It is there for as long as it watches, not only while it publishes."""
        self.start()
        self.wait_for(True, self.says_what_it_waits_for)
        first = self.watcher
        self.addCleanup(first.kill)
        self.start()
        self.assertEqual(self.watcher.wait(60), 9)
        self.assertIn(f'another deltabucket publish works in {self.state}', self.said())
        by_hand = self.daemon.client(
            'publish',
            '--run',
            self.run_name,
            '--state',
            self.state,
            self.checkpoints[0],
            check=False,
        )
        self.assertEqual(by_hand.returncode, 9)
        self.watcher = first
        self.save('step_1', 0)
        self.published('step_1')
        shutil.rmtree(self.state)  # a lost one is begun again, and locked again
        self.save('step_2', 1)
        self.assertEqual(self.watcher.wait(60), 6)
        self.start('--take-over')
        self.published('step_1', 'step_2')
        self.assertEqual(self.stop(), 0)
        self.start()
        time.sleep(1.5)
        self.assertIsNone(self.watcher.poll())

    def test_what_another_publisher_brought_meanwhile(self):
        """A watcher that takes over has looked at the run long before: it looks again."""
        self.save('step_1', 0)
        self.start()
        self.published('step_1')
        first, mine, state = self.watcher, self.out, self.state
        self.addCleanup(first.kill)
        self.out, self.state = os.path.join(self.work, 'theirs'), os.path.join(self.work, 'other')
        self.start('--take-over')
        self.wait_for(True, self.says_what_it_waits_for)
        time.sleep(1.5)
        theirs, self.out = self.out, mine
        self.save('step_2', 1)
        self.save('step_4', 2)
        self.published('step_1', 'step_2', 'step_4')
        self.out = theirs
        self.save('step_3', 1)
        self.wait_for(['step_3'], lambda: [event['folder'] for event in self.events('skipped')])
        self.save('step_4', 2)
        time.sleep(2.5)
        self.assertIsNone(first.poll())  # nothing was published, so it is the writer still
        self.save('step_5', 3)
        self.published('step_1', 'step_2', 'step_4', 'step_5')
        self.assertEqual(self.stop(), 0)
        self.watcher, self.out, self.state = first, mine, state
        self.save('step_6', 3)
        self.assertEqual(self.watcher.wait(60), 6)
        self.watcher = None

    def test_a_server_that_is_not_trusted(self):
        """No wait helps against that."""
        other = Daemon()
        self.addCleanup(other.__exit__)
        other.start()
        self.start('--create-bucket', endpoint=other.endpoint)
        self.assertEqual(self.watcher.wait(60), 3)
        self.assertEqual(self.events('retrying'), [])
        self.assertIn('certificate', self.said())

    def test_what_no_checkpoint_would_mend_is_said_at_once(self):
        plain = os.path.join(self.work, 'plain')
        with open(plain, 'w'):
            pass
        for run, folder, status, said in (
            (self.run_name, plain, 2, '--watch wants a folder'),
            ('nowhere/r', self.out, 5, 'there is no bucket nowhere; --create-bucket makes it'),
            ('No_Where/r', self.out, 5, 'none can be made of this name'),
            ('models/a b', self.out, 2, 'cannot name a run'),
        ):
            done = self.daemon.client('publish', '--run', run, '--watch', folder, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertNotIn('retrying', done.stderr)

    def test_words_that_do_not_go_together(self):
        for words in (
            [],
            ['--watch', self.out, self.checkpoints[0]],
            ['--marker', 'X', self.checkpoints[0]],
            ['--watch', self.out, '--step', '1'],
            ['--watch', self.out, '--label', 'x'],
            ['--watch', self.out, '--marker', 'a/b'],
        ):
            self.assertEqual(
                self.daemon.client(
                    'publish', '--run', self.run_name, *words, check=False
                ).returncode,
                2,
                words,
            )


if __name__ == '__main__':
    unittest.main()
