"""A rollback as a fleet sees it: followers with --exec go back and forward, whatever the server and the trainer do meanwhile."""
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from tests.daemon.test_derived import metric
from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon

DENIED, GONE, CHANGED = 4, 5, 6
LAST = 5


class Rollback(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.checkpoints = expand_small(cls.folder, LAST)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.daemon.start()
        self.daemon.request('PUT', '/models')
        self.followers = []

    def tearDown(self):
        for follower in self.followers:
            follower.kill()
            follower.communicate()
        self.daemon.__exit__()

    def command(self, *arguments, check=True, **options):
        done = self.daemon.client(*arguments, '--json', check=check, **options)
        return [json.loads(line) for line in done.stdout.splitlines()] if check else done

    def publish(self, step, *more):
        return self.command('publish', '--run', 'models/r', '--step', step, *more, self.checkpoints[step])[-1]

    def rollback(self, step):
        return self.command('fleet', 'rollback', 'models/r', step)[-1]

    def forward(self):
        return self.command('fleet', 'forward', 'models/r')[-1]

    def into(self, name):
        return os.path.join(self.daemon.scratch, name)

    def start(self, name, *more):
        """A follower whose command notes each step that it is called for, and proves its file."""
        note = f'echo $DELTABUCKET_STEP ${{DELTABUCKET_PREVIOUS_STEP:--}} >>{self.into(name)}.steps; sha256sum <$DELTABUCKET_PATH/model.safetensors >>{self.into(name)}.sums'
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=self.daemon.scratch)
        follower = subprocess.Popen([CLIENT, 'follow', '--run', 'models/r', '--into', self.into(name), '--replica', name, '--json', '--exec', note, *more],
                                    env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.followers.append(follower)
        return follower

    def end(self, follower):
        """Its events."""
        follower.send_signal(signal.SIGTERM)
        out, _ = follower.communicate(timeout=90)
        self.assertEqual(follower.returncode, 0)
        self.followers.remove(follower)
        return [json.loads(line) for line in out.splitlines()]

    def calls(self, name):
        """The steps that the command was run for; each had the file of its step."""
        with open(f'{self.into(name)}.steps') as steps, open(f'{self.into(name)}.sums') as sums:
            pairs = [line.split() for line in steps]
            for (step, _), line in zip(pairs, sums, strict=True):
                self.assertEqual(line.split()[0], sha256(self.checkpoints[int(step)]), step)
        return [(int(step), previous) for step, previous in pairs]

    def wait_for(self, name, **facts):
        limit = time.monotonic() + 90
        while True:
            found = next((one for one in self.command('replicas', 'models/r') if one['id'] == name), None)
            if found and all(found.get(key) == value for key, value in facts.items()):
                return found
            self.assertLess(time.monotonic(), limit, (facts, found))
            time.sleep(0.05)

    def test_a_step_that_comes_back_after_a_failed_command_is_given_to_the_engine_again(self):
        """Its folder has the name that it had before; what the engine holds meanwhile nobody knows."""
        self.start('one', '--keep', '0', '--exec', f'echo $DELTABUCKET_STEP >>{self.into("calls")}; test $DELTABUCKET_STEP != 1')
        for step in range(3):
            self.publish(step)
            self.wait_for('one', state='error' if step == 1 else 'ready', step=step)
        self.rollback(1)
        self.wait_for('one', state='error', step=1)
        self.forward()
        self.wait_for('one', state='ready', step=2)
        with open(self.into('calls')) as calls:
            self.assertEqual([step for step, _ in itertools.groupby(map(int, calls))], [0, 1, 2, 1, 2])

    def test_a_fleet_goes_back_and_forward(self):
        followers = [self.start(name) for name in ('one', 'two')]
        for step in range(3):
            self.publish(step)
            for name in ('one', 'two'):
                self.wait_for(name, state='ready', step=step)
        sent = metric(self.daemon, 'sent_bytes_total')
        self.assertEqual(self.rollback(1), {'event': 'rolled_back', 'run': 'models/r', 'step': 1, 'head': 2})
        for name in ('one', 'two'):
            self.assertEqual(self.wait_for(name, state='ready', step=1)['staleness'], {'steps': 0, 'seconds': 0})
        self.assertNotIn('lag_steps', self.command('status', 'models/r')[-1])  # the fleet comes from above
        for target, status in (('steps/2?min_version=2', 200), ('path?want=2&min_version=2', 200), ('path?want=latest&min_version=2', 425)):
            self.assertEqual(self.daemon.request('GET', f'/v1/runs/models/r/{target}').status, status, target)
        self.assertLess(metric(self.daemon, 'sent_bytes_total') - sent, os.path.getsize(self.checkpoints[1]) // 4)  # answers, no weights
        self.assertEqual(self.publish(3)['rollback']['step'], 1)
        self.assertIn('held at step 1', self.daemon.client('publish', '--run', 'models/r', self.checkpoints[4]).stdout)
        self.daemon.kill()
        self.daemon.start()
        third = self.start('three')  # one that knows nothing yet
        self.wait_for('three', state='ready', step=1)
        self.assertEqual(self.forward(), {'event': 'forwarded', 'run': 'models/r', 'head': 4})
        for name in ('one', 'two', 'three'):
            self.wait_for(name, state='ready', step=4)
        for name, follower in zip(('one', 'two'), followers):
            steps = [event for event in self.end(follower) if event['event'] == 'step']
            self.assertEqual([event['step'] for event in steps], [0, 1, 2, 1, 4])
            # Back from what the folder had, forward by deltas.
            self.assertEqual((steps[3]['bytes'], steps[3]['links'], steps[4]['from_anchor']), (0, 0, False))
            self.assertEqual(self.calls(name), [(0, '-'), (1, '0'), (2, '1'), (1, '2'), (4, '1')])
        self.end(third)
        self.assertEqual(self.calls('three'), [(1, '-'), (4, '1')])

    def test_a_step_that_the_folder_let_go_comes_from_an_anchor(self):
        follower = self.start('w')
        for step in range(4):
            self.publish(step)
            self.wait_for('w', state='ready', step=step)
        self.rollback(1)
        self.wait_for('w', state='ready', step=1)
        step = [event for event in self.end(follower) if event['event'] == 'step'][-1]
        self.assertEqual((step['step'], step['from_anchor']), (1, True))
        self.assertGreater(step['bytes'], 0)

    def test_a_part_goes_back_too(self):
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=self.daemon.scratch)
        follower = subprocess.Popen([CLIENT, 'follow', '--run', 'models/r', '--into', self.into('w'), '--replica', 'w', '--json', '--rank', '0/2'],
                                    env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.followers.append(follower)
        sums = []
        for step in range(3):
            self.publish(step)
            self.wait_for('w', state='ready', step=step)
            sums.append(sha256(os.path.join(self.into('w'), 'current', 'model.safetensors')))
        self.rollback(1)
        self.wait_for('w', state='ready', step=1)
        self.assertEqual(sha256(os.path.join(self.into('w'), 'current', 'model.safetensors')), sums[1])
        self.assertNotEqual(sums[1], sums[2])
        self.forward()
        self.wait_for('w', state='ready', step=2)
        self.assertEqual(sha256(os.path.join(self.into('w'), 'current', 'model.safetensors')), sums[2])
        self.assertEqual([event['bytes'] for event in self.end(follower) if event['event'] == 'step'][3], 0)

    def test_what_starts_later_obeys_too(self):
        for step in range(3):
            self.publish(step)
        self.rollback(1)
        words = ('follow', '--run', 'models/r', '--once')
        self.assertEqual(self.command(*words, '--into', self.into('once'))[-1]['step'], 1)
        self.assertEqual(self.command(*words, '--into', self.into('once'))[-1], {'event': 'held', **self.held(1)})
        # A step that is named is that step.
        self.assertEqual(self.command(*words, '--into', self.into('named'), '--step', '2')[-1]['step'], 2)
        self.forward()
        self.assertEqual(self.command(*words, '--into', self.into('once'))[-1]['step'], 2)

    def held(self, step):
        found = self.command('steps', 'models/r')[step]
        return {'run': 'models/r', 'step': step, 'label': '', 'digest': found['digest']}

    def test_an_engine_that_took_half_of_the_newest_is_called_again(self):
        """Its command failed for step 2, so it runs for step 1, though it had succeeded for that before."""
        fails = self.into('fails')
        command = f'echo $DELTABUCKET_STEP $DELTABUCKET_CHANGED >>{self.into("calls")}; [ $DELTABUCKET_STEP != 2 ] || {{ touch {fails}; exit 3; }}'
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=self.daemon.scratch)
        self.publish(0)
        self.publish(1)
        follower = subprocess.Popen([CLIENT, 'follow', '--run', 'models/r', '--into', self.into('w'), '--replica', 'w', '--exec', command],
                                    env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.followers.append(follower)
        self.wait_for('w', state='ready', step=1)
        self.publish(2)
        self.wait_for('w', state='error', step=2)
        self.rollback(1)
        self.wait_for('w', state='ready', step=1)
        with open(self.into('calls')) as calls:
            lines = calls.read().split('\n')
        self.assertEqual(lines[0], '1 1')
        self.assertEqual(lines[-2], '1 1')
        self.assertTrue(os.path.exists(fails))

    def test_its_step_is_kept_and_one_that_is_gone_is_refused(self):
        self.publish(0, '--anchor', 'always', '--keep-steps', '2')
        for step in (1, 2):
            self.publish(step, '--anchor', 'always')
        self.rollback(1)
        refused = self.daemon.request('DELETE', '/v1/runs/models/r/steps/1')
        self.assertEqual((refused.status, refused.code()), (409, 'chain_in_use'))
        for step in (3, 4, 5):
            self.publish(step, '--anchor', 'always')
        kept = [one['step'] for one in self.command('steps', 'models/r') if not one.get('collected')]
        self.assertEqual(kept, [1, 4, 5])
        for step, message in ((0, 'removed'), (9, 'does not exist')):
            done = self.daemon.client('fleet', 'rollback', 'models/r', step, check=False)
            self.assertEqual(done.returncode, GONE)
            self.assertIn(message, done.stderr)
        self.assertEqual(self.command('status', 'models/r')[-1]['rollback']['step'], 1)
        self.assertIn('held at step 1', self.daemon.client('status', 'models/r').stdout)
        self.assertIn('head is step 5, but the fleet is held at step 1', self.daemon.client('replicas', 'models/r').stdout)
        self.assertEqual(self.command('pins', 'models/r'), [])
        self.forward()
        self.forward()  # there is none any more

    def test_only_who_may_write_to_the_run_may_do_it(self):
        self.publish(0)
        token = self.daemon.add_key('--grant', 'models/r/=read,list')['token']
        for words in (('rollback', 'models/r', '0'), ('forward', 'models/r')):
            done = self.daemon.client('fleet', *words, token=token, check=False)
            self.assertEqual(done.returncode, DENIED, done.stderr)
        self.assertEqual(self.daemon.client('fleet', 'rollback', 'models/none', '0', check=False).returncode, GONE)

    def test_a_wait_is_answered_at_once(self):
        self.publish(0)
        self.publish(1)
        connection = self.daemon.connect()
        connection.request('GET', '/v1/runs/models/r/steps/latest?after=1&wait=60', headers={'Authorization': f'Bearer {ROOT_TOKEN}'})
        other = self.daemon.connect()
        other.request('GET', '/v1/runs/models/r/steps/latest?after=1&wait=60&head=true', headers={'Authorization': f'Bearer {ROOT_TOKEN}'})
        self.rollback(0)
        self.assertEqual(json.loads(connection.getresponse().read())['step'], 0)
        self.publish(2)
        self.assertEqual(json.loads(other.getresponse().read())['step'], 2)
        for query, status in (('min_version=1', 425), ('min_version=0', 200), ('after=0', 204), ('after=9', 200)):
            self.assertEqual(self.daemon.request('GET', f'/v1/runs/models/r/steps/latest?{query}').status, status, query)


if __name__ == '__main__':
    unittest.main()
