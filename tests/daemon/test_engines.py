"""The recipes of contrib/engines, run by `deltabucket follow --exec` against engines as strict as
the stock ones (tests/support/engines.py). Whatever fails, no engine that still runs is paused at
the end of a test.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from unittest import mock

from tests.support import engines
from tests.support.checkpoints import expand_small
from tests.support.daemon import CLIENT, ROOT_TOKEN, SOURCE, Daemon

THREADS_MEET = False
RECIPES = os.path.join(SOURCE, 'contrib', 'engines')


class Case(unittest.TestCase):
    weights = None  # the folder below which the workers' folders lie: the usual one for scratch

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.checkpoints = expand_small(cls.folder, 2)
        cls.daemon = Daemon(tls=False)
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.start()
        cls.daemon.request('PUT', '/models')
        for step in (0, 1):
            cls.daemon.client('publish', '--run', 'models/r', '--step', step, cls.checkpoints[step])
        cls.daemon.client('publish', '--run', 'models/r', '--step', 2, cls.checkpoints[1])

    def setUp(self):
        self.into = tempfile.mkdtemp(prefix='deltabucket-test-"quoted"-', dir=self.weights)
        self.addCleanup(shutil.rmtree, self.into)
        # Recipes of one engine take turns by a file of its name there.
        self.enterContext(mock.patch.dict(os.environ, XDG_RUNTIME_DIR=self.folder))

    def start(self, engine):
        """The engine, which must not be paused at the end of the test if it still runs."""
        self.addCleanup(self.check_end, engine)
        return engine

    def check_end(self, engine):
        engine.settle()
        paused = engine.alive and engine.paused
        engine.close()
        self.assertFalse(paused, 'it was left paused')

    def follow(self, recipe, step, engine, **environment):
        done = self.daemon.client(
            'follow',
            '--run',
            'models/r',
            '--into',
            self.into,
            '--once',
            '--step',
            step,
            '--json',
            '--exec',
            os.path.join(RECIPES, recipe),
            environment={'ENGINE_URL': engine.url, **environment},
            check=False,
        )
        self.said = done.stderr
        events = [json.loads(line).get('event') for line in done.stdout.splitlines()]
        self.assertEqual(done.returncode, 1 if 'exec_failed' in events else 0, done.stderr)
        return [event for event in events if event is not None]

    def path_of(self, step):
        return os.path.realpath(os.path.join(self.into, 'generations', f'{step:06d}'))

    def recipe(self, name, engine, **environment):
        """The recipe by itself, as `follow` would start it for step 1."""
        folder = os.path.join(self.into, 'checkpoint')
        os.makedirs(folder, exist_ok=True)
        shutil.copy(self.checkpoints[1], os.path.join(folder, 'model.safetensors'))
        self.running = subprocess.Popen(
            [os.path.join(RECIPES, name)],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={
                **os.environ,
                'DELTABUCKET_STEP': '1',
                'DELTABUCKET_PATH': folder,
                'DELTABUCKET_CHANGED': '1',
                'ENGINE_URL': engine.url,
                **environment,
            },
        )
        self.addCleanup(self.running.stderr.close)
        self.addCleanup(self.running.wait, 60)
        return self.running


class Vllm(Case):
    STOCK = [
        '/pause',
        '/collective_rpc',
        '/update_weight_version',
        '/reset_prefix_cache',
        '/resume',
    ]
    SESSION = ['/start_weight_update', '/update_weights', '/finish_weight_update']

    def test_a_stock_server(self):
        engine = self.start(engines.Vllm())
        for step in (0, 1):
            engine.calls.clear()
            self.assertEqual(self.follow('vllm', step, engine), ['step'])
            self.assertEqual(engine.paths(), self.STOCK)
            self.assertEqual(
                (engine.weights, engine.version, engine.prefixes),
                (self.path_of(step), str(step), 'none'),
            )

    def test_a_step_without_change_pauses_nobody(self):
        engine = self.start(engines.Vllm())
        self.follow('vllm', 1, engine)
        engine.calls.clear()
        self.assertEqual(self.follow('vllm', 2, engine), ['step'])
        self.assertEqual(engine.calls, [('/update_weight_version', {'new_version': '2'})])

    def test_an_update_that_fails_is_tried_again(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/collective_rpc': ['mix', 'fail']}
        self.assertEqual(self.follow('vllm', 0, engine), ['step'])
        self.assertEqual(engine.weights, self.path_of(0))

    def test_an_update_that_fails_for_good_resumes(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/collective_rpc': ['mix'] * 3}
        self.assertEqual(self.follow('vllm', 0, engine), ['step', 'exec_failed'])
        self.assertEqual(
            engine.paths(),
            ['/pause'] + ['/collective_rpc'] * 3 + ['/reset_prefix_cache', '/resume'],
        )
        self.assertIn('the update failed', self.said)
        self.assertEqual(engine.prefixes, 'none')
        self.assertEqual(self.follow('vllm', 1, engine), ['step'])
        self.assertEqual(engine.weights, self.path_of(1))

    def test_the_weight_version_is_tried_again_by_itself(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/update_weight_version': ['fail', 'fail']}
        self.assertEqual(self.follow('vllm', 0, engine), ['step'])
        self.assertEqual(
            engine.paths(), self.STOCK[:2] + self.STOCK[2:3] * 2 + self.STOCK[2:]
        )

    def test_a_weight_version_that_is_not_taken(self):
        for faults, routes in ((['fail'] * 3, {}), ([], {'/update_weight_version': None})):
            engine = self.start(engines.Vllm())
            engine.routes = {
                path: name for path, name in engine.routes.items() if path not in routes
            }
            engine.faults = {'/update_weight_version': faults}
            shutil.rmtree(self.into)
            self.assertEqual(self.follow('vllm', 0, engine), ['step', 'exec_failed'])
            self.assertEqual(
                engine.paths(), self.STOCK[:2] + self.STOCK[2:3] * 2 + self.STOCK[2:]
            )
            self.assertEqual((engine.weights, engine.prefixes), (self.path_of(0), 'none'))
            self.assertIn('it has the new weights', self.said)

    def test_a_server_without_dev_mode(self):
        engine = self.start(engines.Vllm(dev_mode=False))
        self.assertEqual(self.follow('vllm', 0, engine), ['step', 'exec_failed'])
        self.assertEqual(engine.paths(), ['/pause'])
        self.assertIn('it has no /pause', self.said)

    def test_a_mode_that_there_is_not(self):
        engine = self.start(engines.Vllm())
        self.assertEqual(
            self.follow('vllm', 0, engine, ENGINE_PAUSE='in_place'), ['step', 'exec_failed']
        )
        self.assertIsNone(engine.weights)

    def test_a_pause_whose_answer_is_lost(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/pause': ['drop']}
        self.assertEqual(self.follow('vllm', 0, engine), ['step', 'exec_failed'])
        self.assertEqual(engine.paths(), ['/pause', '/resume'])

    def test_a_resume_that_fails_is_tried_again(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/resume': ['fail', 'fail']}
        self.assertEqual(self.follow('vllm', 0, engine), ['step'])

    def test_an_engine_that_is_lost_in_the_middle(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/collective_rpc': ['die']}
        self.assertEqual(
            self.follow('vllm', 0, engine, ENGINE_RESUME_TRIES='2'), ['step', 'exec_failed']
        )
        self.assertEqual(self.said.count('if it still runs, it is paused'), 1)

    def test_a_resume_that_takes_too_long_is_tried_again(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/resume': ['hang', 'hang']}
        self.assertEqual(self.follow('vllm', 0, engine, ENGINE_SECONDS='2'), ['step'])
        self.assertFalse(engine.paused)
        self.assertEqual(engine.paths().count('/resume'), 3)

    def test_a_resume_is_tried_as_often_as_asked(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/resume': ['fail'] * 9}
        self.assertEqual(
            self.follow('vllm', 0, engine, ENGINE_RESUME_TRIES='4'), ['step', 'exec_failed']
        )
        self.assertEqual(engine.paths().count('/resume'), 4)
        engine.paused = False

    def test_an_update_that_takes_too_long(self):
        """It is not tried on top of itself, and the engine goes on when it is done with it."""
        engine = self.start(engines.Vllm())
        engine.faults = {'/collective_rpc': ['hang']}
        self.assertEqual(
            self.follow('vllm', 0, engine, ENGINE_SECONDS='2'), ['step', 'exec_failed']
        )
        self.assertEqual(
            engine.paths(), ['/pause', '/collective_rpc', '/reset_prefix_cache', '/resume']
        )

    def test_one_that_a_killed_follower_left_ends_first(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/collective_rpc': ['hang']}
        first = self.recipe('vllm', engine)
        self.assertTrue(engine.hanging.wait(60))
        second = self.recipe('vllm', engine)
        with self.assertRaises(subprocess.TimeoutExpired):
            second.wait(1)
        self.assertEqual(engine.paths().count('/pause'), 1)
        engine.let_go.set()
        self.assertEqual((first.wait(60), second.wait(60)), (0, 0))
        self.assertEqual(engine.paths(), 2 * self.STOCK)

    def test_the_pause_is_measured(self):
        report = os.path.join(self.into, 'report')
        engine = self.start(engines.Vllm())
        engine.faults = {'/collective_rpc': ['hang']}
        running = self.recipe('vllm', engine, DELTABUCKET_REPORT=report)
        self.assertTrue(engine.hanging.wait(60))
        time.sleep(0.3)
        self.assertFalse(os.path.exists(report))
        engine.let_go.set()
        self.assertEqual(running.wait(60), 0)
        with open(report) as told:
            self.assertRegex(told.read(), r'\Apause_ms=(?:[3-9]\d\d|\d{4,6})\n\Z')
        engine.calls.clear()
        os.unlink(report)  # without a pause nothing is told
        running = self.recipe('vllm', engine, DELTABUCKET_REPORT=report, DELTABUCKET_CHANGED='0')
        self.assertEqual(running.wait(60), 0)
        self.assertEqual(engine.paths(), ['/update_weight_version'])
        self.assertFalse(os.path.exists(report))

    def test_cached_prefixes_that_stay(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/reset_prefix_cache': ['fail'] * 3}
        self.assertEqual(self.follow('vllm', 0, engine), ['step', 'exec_failed'])
        self.assertIn('it may still cache prefixes of the old weights', self.said)
        self.assertEqual(self.follow('vllm', 1, engine, ENGINE_FLUSH='0'), ['step'])
        self.assertEqual(engine.prefixes, 'old')

    def test_cached_prefixes_are_tried_again(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/reset_prefix_cache': ['fail', 'drop']}
        self.assertEqual(self.follow('vllm', 0, engine), ['step'])
        self.assertEqual(engine.prefixes, 'none')

    def test_settings_that_make_no_sense_send_nothing(self):
        engine = self.start(engines.Vllm())
        for name, values in (
            ('ENGINE_TRIES', ('abc', '0', '08', '-1', '1.5', '1000000', '2 3')),
            ('ENGINE_SECONDS', ('abc', '0')),
            ('ENGINE_RESUME_TRIES', ('abc',)),
            ('ENGINE_FLUSH', ('yes',)),
            ('ENGINE_PAUSE', ('bogus', 'in_place')),
        ):
            for value in values:
                running = self.recipe('vllm', engine, **{name: value})
                self.assertEqual(running.wait(60), 2)
                self.assertIn(f'{name}={value} is n', running.stderr.read())
        self.assertEqual(engine.calls, [])

    def test_a_token(self):
        engine = self.start(engines.Vllm())
        engine.token = 'a "secret"'
        self.assertEqual(self.follow('vllm', 0, engine, ENGINE_TOKEN=engine.token), ['step'])

    def test_an_engine_that_is_not_there(self):
        engine = self.start(engines.Vllm())
        engine.end()
        started = time.monotonic()
        self.assertEqual(self.follow('vllm', 0, engine), ['step', 'exec_failed'])
        self.assertEqual(self.follow('sglang', 1, engine), ['step', 'exec_failed'])
        self.assertLess(time.monotonic() - started, 40)

    def check_killed(self, recipe, engine, path, kill, **environment):
        engine.faults = {path: ['hang']}
        running = self.recipe(recipe, engine, **environment)
        self.assertTrue(engine.hanging.wait(60))
        kill(running)
        self.assertEqual(running.wait(60), 143)
        engine.settle()
        self.assertFalse(engine.paused)
        self.assertIn(engine.paths()[-2], ('/reset_prefix_cache', '/flush_cache'))

    def test_the_script_alone_is_killed(self):
        self.check_killed(
            'vllm',
            self.start(engines.Vllm()),
            '/collective_rpc',
            lambda one: one.send_signal(signal.SIGTERM),
        )

    def test_the_script_and_its_calls_are_killed(self):
        self.check_killed(
            'vllm',
            self.start(engines.Vllm()),
            '/collective_rpc',
            lambda one: os.killpg(one.pid, signal.SIGTERM),
        )

    def test_killed_while_it_pauses(self):
        """Resuming comes after the pause, not before it."""
        engine = self.start(engines.Vllm())
        engine.faults = {'/pause': ['hang']}
        running = self.recipe('vllm', engine)
        self.assertTrue(engine.hanging.wait(60))
        os.killpg(running.pid, signal.SIGTERM)
        time.sleep(1)
        engine.let_go.set()
        self.assertEqual(running.wait(60), 143)
        self.assertEqual(engine.paths(), ['/pause', '/resume'])

    def hung(self, path, **environment):
        """The recipe, and the engine that does not answer its call of the path yet."""
        engine = self.start(engines.Vllm())
        engine.faults = {path: ['hang']}
        running = self.recipe('vllm', engine, **environment)
        self.assertTrue(engine.hanging.wait(60))
        return running, engine

    def test_every_signal_that_asks_it_to_stop(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1):
            running, engine = self.hung('/collective_rpc')
            running.send_signal(number)
            self.assertEqual(running.wait(60), 128 + number)
            self.assertFalse(engine.paused)

    def test_two_signals_at_once(self):
        running, engine = self.hung('/collective_rpc')
        running.send_signal(signal.SIGSTOP)
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT):
            running.send_signal(number)
        running.wait(60)
        self.assertFalse(engine.paused)

    def test_nobody_reads_what_it_says(self):
        running, engine = self.hung('/collective_rpc')
        engine.faults.update({'/reset_prefix_cache': ['fail'], '/resume': ['fail']})
        running.stderr.close()
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(60), 143)
        self.assertFalse(engine.paused)

    def test_its_scratch_folder_is_removed(self):
        scratch = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, scratch)
        running, engine = self.hung('/collective_rpc', TMPDIR=scratch, ENGINE_TRIES='1')
        for name in os.listdir(scratch):
            shutil.rmtree(os.path.join(scratch, name))
        engine.let_go.set()
        running.wait(60)
        self.assertFalse(engine.paused)
        self.assertEqual(os.listdir(scratch), [])

    def follower(self, engine, *under, **environment):
        """A follower with the recipe, under a command that may be given."""
        words = ['follow', '--run', 'models/r', '--into', self.into, '--quiet']
        running = subprocess.Popen(
            [*under, CLIENT, *words, '--exec', os.path.join(RECIPES, 'vllm')],
            env={
                **os.environ,
                'DELTABUCKET_ENDPOINT': self.daemon.endpoint,
                'DELTABUCKET_TOKEN': ROOT_TOKEN,
                'ENGINE_URL': engine.url,
                **environment,
            },
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(running.wait, 60)
        return running

    def test_a_follower_that_is_stopped(self):
        engine = self.start(engines.Vllm())
        engine.faults = {'/collective_rpc': ['hang'], '/resume': ['fail'] * 2}
        follower = self.follower(engine)
        self.assertTrue(engine.hanging.wait(60))
        follower.send_signal(signal.SIGTERM)
        self.assertEqual(follower.wait(60), 0)
        self.assertFalse(engine.paused)

    def test_a_second_signal_ends_the_follower_at_once(self):
        """The recipe goes on by itself."""
        engine = self.start(engines.Vllm())
        engine.faults = {'/pause': ['hang']}
        follower = self.follower(engine)
        self.assertTrue(engine.hanging.wait(60))
        follower.send_signal(signal.SIGTERM)
        with self.assertRaises(subprocess.TimeoutExpired):
            follower.wait(1)
        follower.send_signal(signal.SIGTERM)
        self.assertEqual(follower.wait(5), 143)
        engine.let_go.set()
        deadline = time.monotonic() + 30
        while '/resume' not in engine.paths() and time.monotonic() < deadline:
            time.sleep(0.05)

    def test_a_follower_that_is_process_1(self):
        """The kernel ends all processes of a container together with its first one."""
        under = ['unshare', '--pid', '--fork', '--mount-proc']
        if os.geteuid() != 0:
            under[1:1] = ['--user', '--map-root-user']
        if subprocess.run([*under, 'true'], capture_output=True).returncode != 0:
            self.skipTest('no process namespaces here')
        for faults in ({'/pause': ['hang']}, {'/collective_rpc': ['hang'], '/resume': ['fail'] * 2}):
            engine = self.start(engines.Vllm())
            engine.faults = faults
            follower = self.follower(engine, *under)
            self.assertTrue(engine.hanging.wait(60))
            with open(f'/proc/{follower.pid}/task/{follower.pid}/children') as children:
                os.kill(int(children.read()), signal.SIGTERM)
            with self.assertRaises(subprocess.TimeoutExpired):
                follower.wait(1)
            engine.let_go.set()
            self.assertEqual(follower.wait(60), 0)
            self.assertFalse(engine.paused)
            shutil.rmtree(self.into)
            os.mkdir(self.into)

    def own(self, **options):
        engine = self.start(engines.Vllm(backend=True, **options))
        return engine, {'ENGINE_UPDATE': json.dumps({'path': self.path_of(0)})}

    def test_a_backend_of_ones_own(self):
        engine, environment = self.own()
        self.assertEqual(self.follow('vllm', 0, engine, **environment), ['step'])
        self.assertEqual(
            engine.paths(), ['/pause'] + self.SESSION + ['/reset_prefix_cache', '/resume']
        )
        self.assertEqual((engine.weights, engine.version), (self.path_of(0), '0'))

    def test_each_try_is_a_session(self):
        engine, environment = self.own()
        engine.faults = {'/update_weights': ['mix', 'fail']}
        self.assertEqual(self.follow('vllm', 0, engine, **environment), ['step'])
        self.assertEqual(engine.paths()[1:-2], self.SESSION[:2] * 2 + self.SESSION)

    def test_a_session_that_a_killed_script_left(self):
        engine, environment = self.own()
        engine.session = True
        self.assertEqual(self.follow('vllm', 0, engine, **environment), ['step'])
        self.assertFalse(engine.session)

    def test_a_backend_that_wants_to_be_initialised(self):
        engine, environment = self.own(wants_init=True)
        self.assertEqual(self.follow('vllm', 0, engine, ENGINE_INIT='{}', **environment), ['step'])
        self.assertEqual(engine.paths().count('/init_weight_transfer_engine'), 1)

    def test_no_backend(self):
        engine = self.start(engines.Vllm())
        self.assertEqual(
            self.follow('vllm', 0, engine, ENGINE_UPDATE='{"path":"/x"}', ENGINE_TRIES='1'),
            ['step', 'exec_failed'],
        )


class Sglang(Case):
    CALLS = ['/pause_generation', '/update_weights_from_disk', '/continue_generation']

    def test_a_step(self):
        engine = self.start(engines.Sglang())
        self.assertEqual(self.follow('sglang', 0, engine, ENGINE_PAUSE='retract'), ['step'])
        self.assertEqual(engine.paths(), self.CALLS)
        self.assertEqual(engine.calls[0][1], {'mode': 'retract'})
        self.assertEqual(engine.calls[1][1]['flush_cache'], True)
        self.assertEqual((engine.weights, engine.version), (self.path_of(0), '0'))
        self.assertEqual(engine.prefixes, 'none')

    def test_an_update_that_fails_forgets_what_it_can(self):
        """Not with in_place, the default: SGLang cannot while requests run."""
        for pause, forgotten in (('retract', ['/flush_cache']), ('in_place', [])):
            engine = self.start(engines.Sglang())
            engine.faults = {'/update_weights_from_disk': ['mix']}
            shutil.rmtree(self.into)
            self.assertEqual(
                self.follow('sglang', 0, engine, ENGINE_TRIES='1', ENGINE_PAUSE=pause),
                ['step', 'exec_failed'],
            )
            self.assertEqual(engine.paths(), self.CALLS[:2] + forgotten + self.CALLS[2:])

    def test_a_step_without_change_aborts_nothing(self):
        engine = self.start(engines.Sglang())
        self.follow('sglang', 1, engine)
        engine.calls.clear()
        self.assertEqual(self.follow('sglang', 2, engine), ['step'])
        self.assertEqual(
            (engine.paths(), engine.version, engine.aborted),
            (['/update_weight_version'], '2', False),
        )

    def test_an_update_that_fails_continues(self):
        engine = self.start(engines.Sglang())
        engine.faults = {'/update_weights_from_disk': ['fail', 'mix']}
        self.assertEqual(
            self.follow('sglang', 0, engine, ENGINE_TRIES='2'), ['step', 'exec_failed']
        )
        self.assertEqual(engine.paths(), self.CALLS[:2] + self.CALLS[1:])
        self.assertEqual(self.follow('sglang', 1, engine), ['step'])

    def test_the_script_is_killed(self):
        Vllm.check_killed(
            self,
            'sglang',
            self.start(engines.Sglang()),
            '/update_weights_from_disk',
            lambda one: one.send_signal(signal.SIGTERM),
            ENGINE_PAUSE='retract',
        )

    def test_an_engine_that_is_lost_in_the_middle(self):
        engine = self.start(engines.Sglang())
        engine.faults = {'/update_weights_from_disk': ['die']}
        self.assertEqual(
            self.follow('sglang', 0, engine, ENGINE_RESUME_TRIES='1'), ['step', 'exec_failed']
        )


class PrimeRl(Case):
    CALLS = ['/pause', '/update_weights', '/reset_prefix_cache', '/resume']

    def test_a_step(self):
        engine = self.start(engines.PrimeRl())
        self.assertEqual(self.follow('prime-rl', 0, engine), ['step'])
        self.assertEqual(engine.paths(), self.CALLS)
        self.assertEqual(engine.calls[1][1], {'weight_dir': self.path_of(0)})
        self.assertEqual((engine.weights, engine.prefixes), (self.path_of(0), 'none'))

    def test_a_server_that_cannot_be_told_to_forget(self):
        engine = self.start(engines.PrimeRl(dev_mode=False, forgets=True))
        self.assertEqual(self.follow('prime-rl', 0, engine), ['step'])
        self.assertIn('it has no /reset_prefix_cache', self.said)
        engine.calls.clear()
        self.assertEqual(self.follow('prime-rl', 1, engine, ENGINE_FLUSH='0'), ['step'])
        self.assertEqual(engine.paths(), self.CALLS[:2] + self.CALLS[3:])

    def test_a_step_without_change(self):
        engine = self.start(engines.PrimeRl())
        self.follow('prime-rl', 1, engine)
        engine.calls.clear()
        self.assertEqual(self.follow('prime-rl', 2, engine), ['step'])
        self.assertEqual(engine.calls, [])

    def test_what_fails(self):
        for faults in (
            {'/update_weights': ['mix'] * 3},
            {'/pause': ['drop']},
            {'/pause': ['fail']},
        ):
            engine = self.start(engines.PrimeRl())
            engine.faults = dict(faults)
            shutil.rmtree(self.into)
            self.assertEqual(self.follow('prime-rl', 0, engine), ['step', 'exec_failed'])
            self.assertEqual(engine.paths()[-1], '/resume')
            self.assertEqual(engine.prefixes, 'none')

    def test_the_script_is_killed(self):
        Vllm.check_killed(
            self,
            'prime-rl',
            self.start(engines.PrimeRl()),
            '/update_weights',
            lambda one: one.send_signal(signal.SIGTERM),
        )


class CheckpointEngine(Case):
    weights = '/var/tmp'  # not a memory file system: the recipe refuses it

    def setUp(self):
        super().setUp()
        self.engine = self.start(engines.CheckpointVllm())
        self.sockets = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.sockets)
        self.servers = engines.ParameterServers(self.sockets, 2)
        self.addCleanup(self.servers.close)

    def step(self, step, **environment):
        return self.follow(
            'checkpoint-engine',
            step,
            self.engine,
            ENGINE_SOCKETS=self.servers.sockets,
            ENGINE_TRIES='1',
            **environment,
        )

    def assert_given_back(self):
        self.assertEqual([rank.held for rank in self.servers.ranks], [{}, {}])

    def files(self, step):
        folder = self.path_of(step)
        return sorted(
            os.path.join(folder, name)
            for name in os.listdir(folder)
            if name.endswith('.safetensors')
        )

    def test_steps(self):
        for step in (0, 1):
            self.engine.calls.clear()
            self.assertEqual(self.step(step), ['step'])
            self.assertEqual(
                self.engine.paths(), ['/pause', '/collective_rpc', '/reset_prefix_cache', '/resume']
            )
            self.assertEqual(self.engine.weights, self.files(step))
            self.assert_given_back()

    def test_an_engine_without_pause(self):
        self.engine.routes = {
            path: name
            for path, name in self.engine.routes.items()
            if path in ('/collective_rpc', '/reset_prefix_cache')
        }
        self.assertEqual(self.step(0, ENGINE_PAUSE='none'), ['step'])
        self.assertEqual(self.engine.paths(), ['/collective_rpc', '/reset_prefix_cache'])

    def test_parameter_servers_that_refuse(self):
        self.servers.ranks[1].faults = {'/v1/checkpoints/deltabucket-0/files': ['fail']}
        self.assertEqual(self.step(0), ['step', 'exec_failed'])
        self.assertEqual(self.engine.calls, [])
        self.assert_given_back()

    def test_an_update_that_fails(self):
        self.engine.faults = {'/collective_rpc': ['mix']}
        self.assertEqual(self.step(0), ['step', 'exec_failed'])
        self.assertEqual(
            self.engine.paths(), ['/pause', '/collective_rpc', '/reset_prefix_cache', '/resume']
        )
        self.assert_given_back()

    def test_an_engine_goes_on_before_memory_is_given_back(self):
        self.engine.faults = {'/collective_rpc': ['mix']}
        first = self.servers.ranks[0]
        first.faults = {'/v1/checkpoints/deltabucket-1': [None, 'hang']}
        running = self.recipe(
            'checkpoint-engine',
            self.engine,
            ENGINE_SOCKETS=self.servers.sockets,
            ENGINE_TRIES='1',
        )
        self.assertTrue(first.hanging.wait(30))
        self.assertEqual(self.engine.paths()[-1:], ['/resume'])
        self.assertFalse(self.engine.paused)
        first.let_go.set()
        self.assertEqual(running.wait(60), 1)
        self.assert_given_back()

    def test_the_script_is_killed(self):
        Vllm.check_killed(
            self,
            'checkpoint-engine',
            self.engine,
            '/collective_rpc',
            lambda one: one.send_signal(signal.SIGTERM),
            ENGINE_SOCKETS=self.servers.sockets,
        )
        self.assert_given_back()

    def test_files_that_would_be_removed(self):
        done = subprocess.run(
            [os.path.join(RECIPES, 'checkpoint-engine')],
            capture_output=True,
            text=True,
            timeout=30,
            env={
                **os.environ,
                'DELTABUCKET_STEP': '1',
                'DELTABUCKET_PATH': '/dev/shm/x',
                'ENGINE_SOCKETS': '/x',
            },
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn('/dev/shm', done.stderr)


if __name__ == '__main__':
    unittest.main()
