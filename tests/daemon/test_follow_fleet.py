"""The fleet as followers and people at the command line see it: reports, pins, settings, status, anchors that are due."""
import datetime
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from tests.support.checkpoints import expand_small, sha256, write_safetensors
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon
from tests.support.monitoring import scrape

USAGE, NOT_FOUND = 2, 5


class FollowFleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.checkpoints = expand_small(cls.folder, 8)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.daemon.start()
        self.daemon.request('PUT', '/models')

    def tearDown(self):
        self.daemon.__exit__()

    def command(self, *arguments, check=True):
        done = self.daemon.client(*arguments, '--json', check=check)
        return [json.loads(line) for line in done.stdout.splitlines()] if check else done

    def publish(self, step, *more):
        return self.command('publish', '--run', 'models/r', '--step', step, *more, self.checkpoints[step])[-1]

    def into(self, name):
        return os.path.join(self.daemon.scratch, name)

    def follow(self, name, *more, check=True):
        return self.daemon.client('follow', '--run', 'models/r', '--into', self.into(name), '--once', '--replica', name, '--json', *more, check=check)

    def start(self, name, *more, endpoint=None, stderr=subprocess.DEVNULL):
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=endpoint or self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=self.daemon.scratch)
        return subprocess.Popen([CLIENT, 'follow', '--run', 'models/r', '--into', self.into(name), '--replica', name, '--json', *more], env=environment,
                                stdout=subprocess.DEVNULL, stderr=stderr)

    def stop(self, *followers):
        for follower in followers:
            follower.send_signal(signal.SIGTERM)
        for follower in followers:
            self.assertEqual(follower.wait(timeout=90), 0)

    def lose(self, name):
        """A worker that was ready, and was killed."""
        lost = self.start(name)
        self.wait_for(name, state='ready')
        lost.kill()
        lost.wait()

    def replica(self, name):
        return next((entry for entry in self.command('replicas', 'models/r') if entry['id'] == name), None)

    def wait_for(self, name, **facts):
        limit = time.monotonic() + 90
        while True:
            found = self.replica(name)
            if found and all(found.get(key) == value for key, value in facts.items()):
                return found
            self.assertLess(time.monotonic(), limit, (facts, found))
            time.sleep(0.05)

    def test_a_worker_is_seen_in_every_state(self):
        self.publish(0)
        go = self.into('go')
        follower = self.start('worker', '--exec', f'[ $DELTABUCKET_STEP != 1 ] || exit 3; while [ ! -e {go} ]; do sleep 0.02; done')
        self.wait_for('worker', state='staging', wanted=0, step=0)  # what `current` is, and the command still runs
        open(go, 'w').close()
        ready = self.wait_for('worker', state='ready', step=0)
        self.assertEqual((ready['staleness']['steps'], ready['digest']), (0, self.command('steps', 'models/r')[0]['digest']))
        self.publish(1)
        failed = self.wait_for('worker', state='error')
        self.assertIn('status 3', failed['error'])
        self.assertEqual(failed['step'], 1)
        self.publish(2)
        self.wait_for('worker', state='ready', step=2)
        shown = self.daemon.client('replicas', 'models/r').stdout
        self.assertRegex(shown, r'worker +ready +2 +0 \(0 s\)')
        self.stop(follower)
        self.assertIsNone(self.replica('worker'))

    def test_a_quiet_worker_reports_as_often_as_it_is_told(self):
        self.publish(0)
        self.command('runs', 'settings', 'models/r', 'lease_s=10')  # a report every 2 s
        follower = self.start('worker')
        times = [self.wait_for('worker', state='ready', step=0)['updated']]
        limit = time.monotonic() + 90
        while len(times) < 3:
            self.assertLess(time.monotonic(), limit, times)
            found = self.replica('worker')
            self.assertFalse(found['expired'], found)
            times += [found['updated']] if found['updated'] != times[-1] else []
        moments = [datetime.datetime.fromisoformat(moment.replace('Z', '+00:00')) for moment in times]
        self.assertTrue(all(after - before >= datetime.timedelta(seconds=1.9) for before, after in zip(moments, moments[1:])), times)
        self.stop(follower)

    def test_a_worker_of_many_tells_of_each_step_once(self):
        """The others are so many that fetching and staging must have lasted 6 s before they are told."""
        self.publish(0)
        for worker in range(1000):
            self.assertEqual(self.daemon.request('PUT', f'/v1/runs/models/r/replicas/other-{worker}', '{"state":"idle"}').status, 200)
        follower = self.start('worker')
        self.wait_for('worker', state='ready', step=0)
        before = self.reports()
        for step in (1, 2):
            self.publish(step)
            self.wait_for('worker', state='ready', step=step)
        self.assertLessEqual(self.reports() - before, 2 + 2)  # one a step; a busy machine may need 6 s for each; all would be 6
        self.stop(follower)

    def reports(self):
        return scrape(self.daemon).value('deltabucket_replies_total', face='steps', route='PutReplica', status='2xx')

    def test_only_who_stays_or_was_lost_is_seen(self):
        """Ended in order: signed off. Killed: shown until its lease ends. --once and --step: no worker of the fleet."""
        self.publish(0)
        self.follow('once')
        self.assertIsNone(self.replica('once'))
        ended, killed = self.start('ended'), self.start('killed')
        for name in ('ended', 'killed'):
            self.wait_for(name, state='ready')
        killed.kill()
        killed.wait()
        ended.send_signal(signal.SIGINT)
        self.assertEqual(ended.wait(timeout=90), 130)
        self.assertIsNone(self.replica('ended'))
        self.assertEqual(self.replica('killed')['state'], 'ready')

    def test_a_follow_that_fails_at_once_leaves_nothing(self):
        self.publish(0)
        for words, status in ((['--run', 'models/r', '--step', '7', '--once'], NOT_FOUND), (['--run', 'models/none', '--once'], NOT_FOUND),
                              (['--run', 'models/r', '--once', '--retries', '0', '--endpoint', 'http://127.0.0.1:1'], 3)):
            there = self.into('there')
            os.makedirs(there, exist_ok=True)
            for folder in (self.into('new'), there):
                done = self.daemon.client('follow', '--into', folder, *words, check=False)
                self.assertEqual(done.returncode, status, done.stderr)
            self.assertFalse(os.path.exists(self.into('new')))
            self.assertEqual(os.listdir(there), [])
        self.follow('there')
        self.assertEqual(self.daemon.client('follow', '--into', self.into('there'), '--run', 'models/none', '--once', check=False).returncode, 6)
        self.assertIn('current', os.listdir(self.into('there')))

    def remove(self, name):
        """A folder into which a follower writes: what it writes meanwhile goes in the next round."""
        while os.path.exists(self.into(name)):
            shutil.rmtree(self.into(name), ignore_errors=True)

    def test_a_folder_that_is_removed_comes_again(self):
        """Under a follower that waits, when the next poll ends; a later start goes on in what the first one left."""
        self.publish(0)
        follower = self.start('worker', '--poll', '1')
        self.wait_for('worker', state='ready', step=0)
        current = os.path.join(self.into('worker'), 'current')
        self.remove('worker')
        limit = time.monotonic() + 90
        while not os.path.exists(current):
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)
        self.remove('worker')
        self.publish(1)
        self.wait_for('worker', state='ready', step=1)
        self.assertTrue(os.path.exists(os.path.join(current, 'model.safetensors')))
        os.remove(os.path.join(self.into('worker'), '.deltabucket'))
        self.stop(follower)
        before = os.readlink(current)
        self.publish(2)
        self.assertEqual(self.follow('worker').returncode, 0)
        self.assertNotEqual(os.readlink(current), before)

    def test_a_signal_that_comes_twice_is_one(self):
        """As timeout(1) sends it: to the process, then to its group. A worker that died of the second had not signed off."""
        self.publish(0)
        for number in range(5):
            name = f'worker-{number}'
            follower = self.start(name)
            self.wait_for(name, state='ready')
            follower.send_signal(signal.SIGTERM)
            time.sleep(0.001 * number)
            follower.send_signal(signal.SIGTERM)
            self.assertEqual(follower.wait(timeout=90), 0)
            self.assertIsNone(self.replica(name))

    def test_a_command_runs_until_it_has_succeeded(self):
        """A failed command is tried again by the same follower, and by the next one; nothing is ready before."""
        self.publish(0)
        go, seen = self.into('go'), self.into('seen')
        command = f'echo $DELTABUCKET_STEP >> {seen}; [ -e {go} ] || exit 3'
        follower = self.start('worker', '--exec', command, '--poll', '1')
        self.wait_for('worker', state='error', step=0)
        limit = time.monotonic() + 90
        while open(seen).read().count('0') < 3:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)
        self.stop(follower)
        follower = self.start('worker', '--exec', command)
        tries = open(seen).read().count('0')
        while open(seen).read().count('0') == tries:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)
        self.assertEqual(self.wait_for('worker', state='error')['step'], 0)
        open(go, 'w').close()
        self.wait_for('worker', state='ready', step=0)
        self.stop(follower)
        tries = open(seen).read()
        self.follow('worker', '--exec', command)
        self.assertEqual(open(seen).read(), tries)

    def test_a_command_tells_for_how_long_it_paused_its_engine(self):
        """The longest of its engines, for the step that it took; what a command that failed has told does not count."""
        self.publish(0)
        command = '''case $DELTABUCKET_STEP in
            0) echo pause_ms=41 >>$DELTABUCKET_REPORT; echo pause_ms=1410 >>$DELTABUCKET_REPORT ;;
            1) echo pause_ms=7 >>$DELTABUCKET_REPORT; exit 3 ;;
        esac'''
        follower = self.start('worker', '--exec', command)
        self.assertEqual(self.wait_for('worker', state='ready', step=0)['pause_ms'], 1410)
        self.assertRegex(self.daemon.client('replicas', 'models/r').stdout, r'worker +ready +0 +0 \(0 s\) +1410 ms')
        self.publish(1)
        self.assertNotIn('pause_ms', self.wait_for('worker', state='error', step=1))
        self.publish(2)
        self.assertNotIn('pause_ms', self.wait_for('worker', state='ready', step=2))
        self.stop(follower)
        self.assertEqual(sorted(os.listdir(self.into('worker'))), ['.deltabucket', 'current', 'generations'])

    def test_weights_that_no_command_took_count_as_changed(self):
        """A step whose command failed, then steps with its tensors, and with those before it: the engine may have parts of either."""
        seen = self.into('seen')
        command = f'echo $DELTABUCKET_STEP:$DELTABUCKET_CHANGED >> {seen}; [ $DELTABUCKET_STEP != 1 ]'
        for step, checkpoint, status in ((0, 0, 0), (1, 1, 1), (2, 1, 0), (3, 1, 0), (4, 0, 0)):
            self.command('publish', '--run', 'models/r', '--step', step, self.checkpoints[checkpoint])
            self.assertEqual(self.follow('worker', '--exec', command, check=False).returncode, status, step)
        self.follow('worker', '--exec', command + ' ')
        told = open(seen).read().split()
        self.assertEqual([line for line in told if not line.startswith('1:')], ['0:1', '2:1', '3:0', '4:1', '4:1'])
        self.assertEqual({line for line in told if line.startswith('1:')}, {'1:1'})

    def test_one_step_whose_command_failed_is_a_failure(self):
        self.publish(0)
        for more in (), ('--step', '0'):
            done = self.follow('worker', '--exec', 'exit 3', *more, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn('status 3', done.stderr)
        self.follow('worker', '--exec', 'true')

    def test_another_command_runs_for_what_is_held(self):
        self.publish(0)
        for command in ('echo a', 'echo b', 'echo b'):
            self.follow('worker', '--exec', f'{command} >> {self.into("seen")}')
        self.assertEqual(open(self.into('seen')).read().split(), ['a', 'b'])

    def seen(self):
        """The steps that the command ran for."""
        path = self.into('seen')
        return open(path).read().split() if os.path.exists(path) else []

    def test_a_restart_runs_the_command_once_for_the_newest(self):
        note = f'echo $DELTABUCKET_STEP >> {self.into("seen")}'
        self.publish(0)
        self.assertEqual(self.follow('worker', '--exec', 'exit 1', check=False).returncode, 1)
        self.publish(1)
        self.follow('worker', '--exec', note)
        self.assertEqual(self.seen(), ['1'])

    def test_a_restart_runs_the_command_for_the_named_step_alone(self):
        note = f'echo $DELTABUCKET_STEP >> {self.into("seen")}'
        for step in range(3):
            self.publish(step)
        self.follow('worker', '--exec', 'true')
        self.follow('worker', '--step', '1', '--exec', note)
        self.assertEqual(self.seen(), ['1'])
        refused = self.follow('worker', '--step', '9', '--exec', note + ' ', check=False)
        self.assertEqual(refused.returncode, NOT_FOUND)
        self.assertEqual(self.seen(), ['1'])

    def test_a_restart_runs_the_command_for_what_is_held_when_nothing_comes(self):
        """A worker whose server is away still loads the step that it has, and --once fails all the same."""
        note = f'echo $DELTABUCKET_STEP >> {self.into("seen")}'
        self.publish(0)
        self.assertEqual(self.follow('worker', '--exec', 'exit 1', check=False).returncode, 1)
        away = ('--retries', '0', '--endpoint', self.daemon.endpoint)
        self.daemon.stop()
        self.assertEqual(self.follow('worker', *away, '--exec', note, check=False).returncode, 3)
        self.assertEqual(self.seen(), ['0'])
        self.assertEqual(self.follow('worker', *away, '--exec', note, check=False).returncode, 3)
        self.assertEqual(self.seen(), ['0'])
        self.daemon.start()

    def test_a_restart_is_not_ready_before_the_command(self):
        go = self.into('go')
        self.publish(0)
        self.assertEqual(self.follow('worker', '--exec', 'exit 1', check=False).returncode, 1)
        follower = self.start('worker', '--exec', f'while [ ! -e {go} ]; do sleep 0.02; done')
        self.wait_for('worker', state='staging', step=0)
        time.sleep(1)
        self.assertEqual(self.replica('worker')['state'], 'staging')
        open(go, 'w').close()
        self.wait_for('worker', state='ready', step=0)
        self.stop(follower)

    def test_a_worker_without_a_step_is_not_up_to_date(self):
        self.publish(0)
        self.publish(1)
        report = json.dumps({'state': 'error', 'error': 'its disk is full'})
        self.assertEqual(self.daemon.request('PUT', '/v1/runs/models/r/replicas/empty', report).status, 200)
        run = self.command('status')[1]
        self.assertEqual((run['replicas'], run['replicas_in_error'], run['replicas_without_step']), (1, 1, 1))
        self.assertNotIn('lag_steps', run)
        self.assertRegex(self.daemon.client('status', 'models').stdout, r'1 replica, 1 in error, 1 without a step, reports up to \d+ s old\n$')
        report = json.dumps({'state': 'ready', 'step': 0})
        self.assertEqual(self.daemon.request('PUT', '/v1/runs/models/r/replicas/slow', report).status, 200)
        run = self.command('status')[1]
        self.assertEqual((run['replicas'], run['replicas_without_step'], run['lag_steps']), (2, 1, 1))
        self.assertRegex(self.daemon.client('status', 'models').stdout,
                         r'2 replicas, 1 in error, 1 without a step, the slowest 1 behind, reports up to \d+ s old\n$')
        self.assertRegex(self.daemon.client('replicas', 'models/r').stdout, r'error 1, expired 0, without a step 1; reports up to \d+ s old\n$')

    def test_a_run_that_does_not_exist_has_no_table(self):
        missing = self.daemon.client('replicas', 'models/none', check=False)
        self.assertEqual((missing.returncode, missing.stdout), (NOT_FOUND, ''))

    def test_a_worker_that_waits_is_idle(self):
        self.command('runs', 'settings', 'models/r', check=False)
        self.daemon.request('POST', '/v1/runs/models/r', '{}')
        follower = self.start('worker')
        self.wait_for('worker', state='idle')
        self.publish(0)
        self.wait_for('worker', state='ready', step=0)
        self.stop(follower)

    def test_a_worker_waits_for_a_run_without_a_word_about_reports(self):
        told = os.path.join(self.daemon.scratch, 'told')
        with open(told, 'w') as stderr:
            follower = self.start('worker', stderr=stderr)
        limit = time.monotonic() + 60
        while 'waiting: ' not in open(told).read() and time.monotonic() < limit:
            time.sleep(0.05)
        self.publish(0)
        self.wait_for('worker', state='ready', step=0)
        self.stop(follower)
        self.assertIn('waiting: The run', open(told).read())
        self.assertNotIn('report', open(told).read())

    def test_a_part_is_shown(self):
        self.publish(0)
        follower = self.start('worker', '--rank', '1/4')
        self.assertEqual(self.wait_for('worker', state='ready')['tensors'], 'rank 1/4')
        self.stop(follower)

    def test_reports_that_fail_hold_nothing_up(self):
        """A key that may read and not report; a name that the server refuses is refused here already."""
        self.publish(0)
        self.assertEqual(self.follow('worker', '--replica', '../x', check=False).returncode, USAGE)
        self.daemon.request('PUT', '/models?acl', headers={'x-amz-acl': 'public-read'})
        done = self.daemon.client('follow', '--run', 'models/r', '--into', self.into('anonymous'), '--once', token='')
        self.assertEqual(sha256(os.path.join(self.into('anonymous'), 'current', 'model.safetensors')), sha256(self.checkpoints[0]), done.stderr)

    def test_a_worker_keeps_what_it_needs(self):
        """Failure 11: retention passes a worker that is behind, and the worker still comes up by its delta."""
        self.publish(0)
        self.lose('slow')
        self.command('runs', 'settings', 'models/r', 'keep_steps=1')
        for step in range(1, 7):
            self.publish(step)
        self.assertEqual(self.replica('slow')['staleness']['steps'], 6)
        line = json.loads(self.follow('slow').stdout.splitlines()[-1])
        self.assertEqual((line['step'], line['from_anchor']), (6, False))
        self.assertEqual(sha256(os.path.join(self.into('slow'), 'current', 'model.safetensors')), sha256(self.checkpoints[6]))

    def test_pins(self):
        for step in range(3):
            self.publish(step)
        self.command('pins', 'models/r', 'add', 'best', '0')
        self.command('pins', 'models/r', 'add', 'short', '1', '--ttl', '3600')
        pins = self.command('pins', 'models/r')
        self.assertEqual([(pin['name'], pin['step'], pin['expires'] is None) for pin in pins], [('best', 0, True), ('short', 1, False)])
        self.assertIn('best', self.daemon.client('pins', 'models/r').stdout)
        self.command('pins', 'models/r', 'rm', 'best')
        self.assertEqual([pin['name'] for pin in self.command('pins', 'models/r')], ['short'])
        for arguments, code in ((['rm', 'best'], NOT_FOUND), (['add', 'x', '99'], NOT_FOUND), (['add', 'x', 'y'], USAGE), (['add', 'x'], USAGE), (['add', 'a/b', '0'], USAGE),
                                (['nonsense'], USAGE)):
            self.assertEqual(self.command('pins', 'models/r', *arguments, check=False).returncode, code, arguments)

    def test_settings(self):
        self.publish(0)
        self.assertEqual(self.command('runs', 'settings', 'models/r')[0]['lease_s'], 120)
        changed = self.command('runs', 'settings', 'models/r', 'lease_s=30', 'verify=false')[0]
        self.assertEqual((changed['lease_s'], changed['verify'], changed['keep_steps']), (30, False, 64))
        for wrong in ('lease_s=1', 'nonsense=1', 'lease_s=soon'):
            self.assertEqual(self.command('runs', 'settings', 'models/r', wrong, check=False).returncode, USAGE, wrong)
        self.assertEqual(self.command('runs', 'settings', 'models/r', 'lease_s', check=False).returncode, USAGE)
        self.assertEqual(self.command('runs', 'settings', 'models/r')[0], changed)
        self.assertIn('lease_s = 30', self.daemon.client('runs', 'settings', 'models/r').stdout)

    def test_status(self):
        server, *runs = self.command('status')
        self.assertEqual((server['event'], server['ready'], runs), ('server', True, []))
        disk = os.statvfs(self.daemon.scratch)
        self.assertEqual(server['disk_bytes'], disk.f_blocks * disk.f_frsize)
        self.assertLessEqual(server['disk_free_bytes'], server['disk_bytes'])
        self.assertGreater(server['disk_free_bytes'], 0)
        token = self.daemon.add_key('--grant', 'models=read,list')['token']
        self.assertNotIn('disk_bytes', json.loads(self.daemon.client('status', 'models', '--json', token=token).stdout.splitlines()[0]))
        self.publish(0)
        self.lose('worker')
        for step in (1, 2, 3):
            self.publish(step)
        server, run = self.command('status')
        self.assertEqual((run['bucket'], run['run'], run['head'], run['steps'], run['replicas'], run['lag_steps']), ('models', 'r', 3, 4, 1, 3))
        self.assertGreater(run['saved_bytes'], 2 * run['full_bytes'])
        self.assertIn(run['verified'], ('pending', 'ok'))
        self.assertIn('1 replica, ', self.daemon.client('status', 'models').stdout)
        self.assertNotEqual(self.daemon.client('status', check=False, environment={'DELTABUCKET_ENDPOINT': 'http://127.0.0.1:1'}, timeout=120).returncode, 0)

    def test_a_fleets_key_asks_for_its_run(self):
        """It may read the run and nothing else, and is told so where it asks for more."""
        self.publish(0)
        token = self.daemon.add_key('--grant', 'models/r/=read,list')['token']
        said = self.daemon.client('status', 'models/r', '--json', token=token).stdout
        server, run = [json.loads(line) for line in said.splitlines()]
        self.assertTrue(server['ready'])
        self.assertEqual((run['bucket'], run['run'], run['head']), ('models', 'r', 0))
        for words in (['status'], ['status', 'models'], ['runs'], ['runs', 'models']):
            refused = self.daemon.client(*words, token=token, check=False)
            self.assertEqual(refused.returncode, 4, words)
            self.assertIn('may not list all of bucket models; a key for one run may ask for it by '
                          'name: `deltabucket status BUCKET/RUN`', refused.stderr)
        other = self.daemon.client('status', 'models/other', token=token, check=False)
        self.assertEqual(other.returncode, 4)
        misused = self.daemon.client('runs', 'models/r', check=False)
        self.assertIn('`deltabucket status models/r` shows one run', misused.stderr)

    def test_an_anchor_that_is_due_comes_with_the_next_publish(self):
        """Failure 12: what a new reader must fetch grows too long; `publish` brings an anchor without being told."""
        source = random.Random(3)
        path = self.into('dense.safetensors')
        forms, due = [], []
        for step in range(4):
            write_safetensors(path, {'w': ('BF16', [20_000], source.randbytes(40_000)), 'still': ('BF16', [20_000], bytes(40_000))})
            said = self.command('publish', '--run', 'models/dense', '--step', step, path)[-1]
            if step == 0:
                self.command('runs', 'settings', 'models/dense', 'verify=false')  # so that the server makes none itself
            forms.append((said['delta_bytes'] > 0, said['anchor_bytes'] > 0))
            due.append(said['anchor_due'])
        self.assertEqual((forms, due), ([(False, True), (True, False), (True, True), (True, False)], [False, True, False, True]))
        self.assertTrue(self.command('status')[1]['anchor_due'])
        never = self.command('publish', '--run', 'models/dense', '--anchor', 'never', path)[-1]
        self.assertEqual(never['anchor_bytes'], 0)

    def test_a_step_that_failed_its_proof_reaches_nobody(self):
        self.publish(0)
        self.publish(1)
        manifest = json.loads(self.daemon.request('GET', '/v1/runs/models/r/steps/1').body)
        run = json.loads(self.daemon.request('GET', '/v1/runs/models/r').body)
        # A trainer whose step says one thing and whose delta says another.
        bad = dict(manifest, step=2, epoch=run['epoch'], base={'step': 1, 'digest': manifest['digest']}, digest='xxh3-128:' + '1' * 32)
        self.assertEqual(self.daemon.request('PUT', '/v1/runs/models/r/steps/2', json.dumps(bad)).status, 201)
        limit = time.monotonic() + 90
        while self.command('steps', 'models/r')[-1].get('verified') == 'pending':
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)
        failed = self.command('steps', 'models/r')[-1]
        self.assertEqual(failed['verified'], 'failed')
        self.assertIn('FAILED: ' + failed['verify_error'], self.daemon.client('steps', 'models/r').stdout)
        self.assertTrue(self.command('status')[1]['anchor_due'])
        self.assertEqual(json.loads(self.follow('worker').stdout.splitlines()[-1])['step'], 1)


if __name__ == '__main__':
    unittest.main()
