"""`deltabucket watch` without a terminal: one picture, and a line or an object for each change. tests/clients/test_terminal.py has the terminal."""
import json
import os
import signal
import subprocess
import unittest

from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon, environment_of_programs
from tests.support.runs import Run

RUN = 'models/policy'


class Case(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__)
        self.run_ = Run(self.daemon, 'policy')
        self.run_.publish_all(0, 5)

    def report(self, name, state, **members):
        reply = self.daemon.request('PUT', f'/v1/runs/{RUN}/replicas/{name}', json.dumps({'state': state, **members}))
        self.assertLess(reply.status, 300, reply.body)

    def watch(self, *words):
        """A watcher that goes on, and its first lines."""
        variables = {'DELTABUCKET_ENDPOINT': self.daemon.endpoint, 'DELTABUCKET_TOKEN': ROOT_TOKEN, 'DELTABUCKET_CA': self.daemon.ca, 'HOME': self.daemon.scratch}
        watcher = subprocess.Popen([CLIENT, 'watch', RUN, '--poll', '1', *words], env={**environment_of_programs(), **variables}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watcher.communicate)
        self.addCleanup(watcher.kill)
        return watcher

    def await_event(self, watcher, event, **members):
        """The next object of this kind, with these members."""
        for line in watcher.stdout:
            found = json.loads(line)
            if found['event'] == event:
                self.assertEqual({name: found.get(name) for name in members}, members, found)
                self.assertEqual(found['run'], RUN)
                return found
        raise AssertionError(f'it has ended without {event}: {watcher.stderr.read()}')


class Lines(Case):
    def test_an_object_for_each_change(self):
        self.report('node-1', 'ready', step=5)
        watcher = self.watch('--json')
        self.await_event(watcher, 'run', head=5, epoch=1, steps=6, full_bytes=256)
        self.await_event(watcher, 'fleet', states={'idle': 0, 'fetching': 0, 'staging': 0, 'ready': 1, 'error': 0}, expired=0, without_step=0, oldest=5, lag_steps=0)
        self.run_.publish(6)
        self.await_event(watcher, 'published', step=6)
        self.await_event(watcher, 'proven', step=6)
        self.report('node-1', 'error', step=5, error='the disk is full')
        self.await_event(watcher, 'worker_failed', worker='node-1', state='error', step=5, error='the disk is full', behind_steps=1)
        self.await_event(watcher, 'fleet', oldest=5, lag_steps=1)
        self.report('node-1', 'ready', step=6)
        self.await_event(watcher, 'worker_back', worker='node-1', step=6)
        self.daemon.request('PUT', f'/v1/runs/{RUN}/rollback', json.dumps({'step': 3}))
        self.await_event(watcher, 'rolled_back', step=3)
        self.run_.publish(7)
        self.await_event(watcher, 'published', step=7)  # though nobody is to take it
        self.daemon.request('DELETE', f'/v1/runs/{RUN}/rollback')
        self.await_event(watcher, 'forwarded')
        self.run_.open()
        self.await_event(watcher, 'writer')
        watcher.send_signal(signal.SIGINT)
        self.assertEqual(watcher.wait(60), 130)

    def test_a_server_that_is_away_for_a_while(self):
        watcher = self.watch('--json', '--retries', '0')
        self.await_event(watcher, 'fleet')
        self.daemon.kill()
        self.assertIn('still trying', watcher.stderr.readline())
        self.daemon.start()
        self.run_.publish(6)
        self.await_event(watcher, 'published', step=6)

    def test_a_run_that_goes_ends_it(self):
        watcher = self.watch('--json')
        self.await_event(watcher, 'fleet')
        self.daemon.request('DELETE', f'/v1/runs/{RUN}')
        lines = [json.loads(line) for line in watcher.stdout]
        self.assertEqual((lines[-1]['error']['code'], watcher.wait(60)), ('no_run', 5))

    def test_sentences_for_people(self):
        self.report('node-1', 'ready', step=5)
        watcher = self.watch()
        self.assertRegex(watcher.stdout.readline(), r'^20\S+Z  step 5 is published\n$')
        self.assertRegex(watcher.stdout.readline(), r'  workers: error 0, ready 1, staging 0, fetching 0, idle 0, expired 0, without a step 0; the slowest 0 behind\n$')
        self.report('node-1', 'error', step=5, error='it \033[31m broke\n')
        said = watcher.stdout.readline()
        self.assertTrue(said.endswith('  worker node-1 failed: it ?[31m broke?\n'), said)
        watcher.terminate()
        self.assertEqual(watcher.wait(60), 128 + signal.SIGTERM)

    def test_a_token_that_may_not_see_the_workers(self):
        self.daemon.request('PUT', '/api/buckets/main/models/settings', json.dumps({'private': False}))
        done = self.daemon.client('watch', RUN, '--once', token='')
        self.assertIn('the token may not see the workers', done.stdout)
        self.assertIn('step 5', done.stdout)
        lines = self.daemon.client('watch', RUN, '--once', '--json', token='').stdout.splitlines()
        self.assertEqual([json.loads(line)['event'] for line in lines], ['run'])

    def test_refusals(self):
        self.assertEqual(self.daemon.client('watch', 'models/none', check=False).returncode, 5)
        self.assertEqual(self.daemon.client('watch', 'models', check=False).returncode, 2)
        self.assertEqual(self.daemon.client('watch', RUN, token='wrong', check=False).returncode, 4)


class Once(Case):
    def test_one_picture_with_the_worst_first(self):
        for number in range(30):
            self.report(f'node-{number:02}', 'ready', step=5)
        self.report('node-11', 'fetching', step=2, wanted=5)
        self.report('node-12', 'error', step=3, error='broken')
        self.report('node-13', 'idle')
        done = self.daemon.client('watch', RUN, '--once', '--limit', '4')
        self.assertNotIn('\033', done.stdout)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], rf'^{RUN}   step 5, \d+ s ago   proof \w+   epoch 1$')
        self.assertRegex(lines[3], r'^30 workers, reports up to \d+ s old$')
        self.assertIn('  error           1  #', lines)
        self.assertTrue(any(line.startswith('slowest: 3 steps, ') for line in lines), lines)
        table = lines[next(i for i, line in enumerate(lines) if line.startswith('worker ')) + 1:]
        self.assertEqual([line.split()[0] for line in table], ['node-12', 'node-11', 'node-13', 'node-00', '...'])
        self.assertEqual(table[-1], '... and 26 more')
        self.assertTrue(table[0].endswith('broken'), table)
        objects = [json.loads(line) for line in self.daemon.client('watch', RUN, '--once', '--json', '--limit', '2').stdout.splitlines()]
        self.assertEqual([one['event'] for one in objects], ['run', 'fleet', 'worker', 'worker'])
        self.assertEqual([(one['worker'], one['behind_steps']) for one in objects[2:]], [('node-12', 2), ('node-11', 3)])

    def test_a_run_without_steps_and_workers(self):
        Run(self.daemon, 'empty')
        told = self.daemon.client('watch', 'models/empty', '--once').stdout
        self.assertIn('models/empty   no step yet   epoch 1\n', told)
        self.assertIn('0 workers: none has reported\n', told)


if __name__ == '__main__':
    unittest.main()
