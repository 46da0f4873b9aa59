"""The plug-in in vLLM as it is started (tests/support/vllm_process.py says what of it is not real): data parallelism, several API servers, and processes
that are killed."""
import ast
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

from tests.support.daemon import Daemon
from tests.support.package import PACKAGE, package_is_ready
from tests.support.vllm_models import PYTHON, Refused

if not package_is_ready() or not os.path.exists(PYTHON):
    raise unittest.SkipTest('setup/clients has not installed vLLM')

from tests.support.real_engines import RealVllm, Zygote, is_alive, variables  # noqa: E402
from tests.support.tiny_runs import TinyRun, bring  # noqa: E402

WAIT_SECONDS = 120
SILENT_SECONDS = 2
LOOKS = 20  # at what several API servers answer in turn
CALLS = ('/init_weight_transfer_engine', '/pause', '/start_weight_update', '/update_weights', '/finish_weight_update', '/resume')


@functools.cache
def zygote():
    """One for the module: it imports vLLM."""
    return unittest.enterModuleContext(Zygote(unittest.enterModuleContext(tempfile.TemporaryDirectory())))


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.daemon = cls.enterClassContext(Daemon())
        cls.zygote = zygote()

    def setUp(self):
        self.into = os.path.join(self.folder, self._testMethodName)
        self.current = os.path.join(self.into, 'current')
        self.run_ = self.enterContext(TinyRun(self.daemon, f'models/{self._testMethodName}'.replace('_', '-')))
        self.bring()

    def bring(self):
        bring(self.daemon, self.run_.name, self.into)

    def vllm(self, **options):
        return RealVllm(self.zygote, self.current, self.folder, plugin=True, daemon=self.daemon, into=self.into, **options)

    def wait_for(self, what):
        limit = time.monotonic() + WAIT_SECONDS
        while not what():
            self.assertLess(time.monotonic(), limit, self.engine.printed())
            time.sleep(0.02)

    def step_of(self, path):
        return int(os.path.basename(os.path.realpath(path)))


class Kills(Case):
    """Somebody drives the engine by vLLM's own routes. It is killed, and started again as it was."""

    def test_a_worker_between_any_two_calls(self):
        self.check_all(self.kill_worker)

    def test_the_server_between_any_two_calls(self):
        self.check_all(self.kill_server)

    def check_all(self, kill):
        for count in range(len(CALLS) + 1):
            with self.subTest(calls=count), self.vllm(tensor_parallel=2) as self.engine:
                self.assertTrue(self.engine.holds(self.current))
                self.session(len(CALLS))  # it goes on, whatever became of the engine before
                self.session(count)
                kill()

    def test_a_worker_during_the_update(self):
        """It has written half of its part, and the other one is waiting for it."""
        for rank in (0, 1):
            with self.vllm(tensor_parallel=2) as self.engine:
                self.session(CALLS.index('/update_weights'))
                self.engine.rpc('break_next', dp=0, rank=rank, what='kill')
                workers = self.engine.workers()
                with self.assertRaises((OSError, Refused)):
                    self.update()
                self.check_end(workers)
                self.assertFalse(is_alive(workers[rank]))
        with self.vllm(tensor_parallel=2) as self.engine:
            self.assertTrue(self.engine.holds(self.current))
            self.session(len(CALLS))

    def session(self, count):
        """Brings a new step by so many of the calls."""
        number = self.number = self.run_.publish()
        self.bring()
        path = os.path.realpath(self.current)
        bodies = {CALLS[0]: {'init_info': {'step': number, 'path': path, 'state': self.engine.state}}, CALLS[2]: {},
                  CALLS[3]: {'update_info': {'step': number}}, CALLS[4]: {'weight_version': str(number)}}
        for call in CALLS[:count]:
            if call == '/start_weight_update':
                self.wait_for(lambda: {told['staged'] for told in self.engine.told().values()} == {number})
            self.engine.call(call, bodies.get(call))
        if count > CALLS.index('/update_weights'):
            self.assertTrue(self.engine.holds(path))

    def update(self):
        self.engine.call('/update_weights', {'update_info': {'step': self.number}})

    def kill_worker(self):
        """vLLM ends: the other worker does not serve."""
        workers = self.engine.workers()
        os.kill(workers[1], signal.SIGKILL)
        self.check_end(workers)

    def kill_server(self):
        """Nobody reaches the engine any more: processes that are left may have the port, and answer nothing."""
        os.kill(self.engine.process, signal.SIGKILL)
        self.wait_for(lambda: not is_alive(self.engine.process))
        with self.assertRaises(OSError), urllib.request.urlopen(f'http://127.0.0.1:{self.engine.port}/health', timeout=SILENT_SECONDS):
            pass

    def check_end(self, workers):
        self.wait_for(lambda: not any(map(is_alive, workers)) and not is_alive(self.engine.process))
        with self.assertRaises(OSError):
            self.engine.get('/health')


class Following(Case):
    """The endpoint follows the run."""

    def vllm(self, **options):
        shutil.rmtree(f'{self.into}.engine', ignore_errors=True)
        return super().vllm(run=self.run_.name, **options)

    def await_step(self, number):
        self.wait_for(lambda: self.now()['step'] == number)
        self.assertTrue(self.engine.holds(self.current))
        self.assertEqual(self.step_of(self.current), number)
        self.assertEqual({told['step'] for told in self.engine.told().values()}, {number})
        self.assertEqual(self.engine.get('/is_paused'), {'is_paused': False})

    def now(self):
        return {'step': None, **self.engine.get('/deltabucket')}

    def test_data_parallel_engines_take_a_step_or_none(self):
        """Two engines of a dense model, which know nothing of one another, and an API server for each."""
        with self.vllm(data_parallel=2) as self.engine:
            self.await_step(0)
            self.assertEqual(sorted(self.engine.told()), [0, 1])
            for _ in range(3):
                self.await_step(self.run_.publish())
            for dp in (0, 1):
                with self.subTest(fails=dp):
                    self.one_fails(dp)
            self.spoil()

    def one_fails(self, dp):
        """The engine that has taken the step gives it back, and both go on with the one before."""
        held = self.engine.checksums()
        self.engine.rpc('break_next', dp=dp, rank=0, what='pairs')
        number = self.run_.publish()
        self.wait_for(lambda: self.now()['state'] == 'error')
        told = self.now()
        self.assertEqual((told['step'], {one['step'] for one in told['workers']}), (number - 1, {number - 1}))
        self.assertIn(f'Step {number} was written and is not there.', told['sentence'])
        self.assertEqual(self.engine.checksums(), held)
        self.assertEqual(self.engine.get('/is_paused'), {'is_paused': False})
        self.assertEqual(self.engine.get('/weight_info'), {'weight_version': str(number - 1)})
        self.await_step(number)

    def spoil(self):
        """Neither engine goes on, and every API server says so, until the step is repaired."""
        self.engine.rpc('break_next', dp=1, rank=0, what='undo')
        number = self.run_.publish()
        self.wait_for(lambda: self.now()['state'] == 'spoiled')
        seen = set()
        while self.now()['step'] != number and len(seen) < LOOKS:
            try:
                self.engine.get('/health')
            except Refused as refused:
                seen.add(refused.status)
                self.assertEqual(refused.status, 503)
                self.assertIn('could not be taken back', str(refused))
            self.assertEqual(self.engine.get('/is_paused'), {'is_paused': True})
            break
        self.assertEqual(seen, {503})
        self.await_step(number)
        for _ in range(LOOKS):
            self.assertEqual(self.now()['step'], number)
            self.engine.get('/health')

    def test_the_server_is_killed_while_it_is_paused(self):
        """It comes back with the newest step, at once, and generates. One that somebody else has paused goes on with the next step. Steps come while the bucket's
        server is started again."""
        with self.vllm(tensor_parallel=2) as self.engine:
            self.await_step(0)
            self.engine.call('/pause')
            os.kill(self.engine.process, signal.SIGKILL)
            self.wait_for(lambda: not is_alive(self.engine.process))
        for _ in range(3):
            self.run_.publish()
        with self.vllm(tensor_parallel=2) as self.engine:
            seen = set()
            self.wait_for(lambda: seen.add(self.now()['step']) or 3 in seen)
            self.assertEqual(seen - {-1}, {3}, 'pending steps were taken one by one')
            self.await_step(3)
            self.engine.call('/pause')
            self.await_step(self.run_.publish())
            self.daemon.kill()
            self.assertEqual(self.now()['step'], 4)
            self.daemon.start()
            for _ in range(3):
                self.run_.publish()
            self.await_step(7)


STANDINS = '''
import asyncio, importlib, json, os, types
endpoint = importlib.import_module('deltabucket.vllm.endpoint')
told = []

class Engine:
    vllm_config = types.SimpleNamespace(
        parallel_config=types.SimpleNamespace(world_size_across_dp=2, local_engines_only=False), speculative_config=None)

    async def reset_prefix_cache(self, reset_running_requests):
        pass

    async def resume_generation(self):
        told.append('resumed')

class Steps:
    step, max_lag = None, 2
    arrivals = [(1, 0), (4, 3), (5, 2), (9, 7), (12, 3), (16, 4), None, None, None, (20, 1)]

    async def next_async(self, timeout):
        if not self.arrivals:
            raise SystemExit
        arrival = self.arrivals.pop(0)
        if arrival is not None:
            self.step = types.SimpleNamespace(number=arrival[0], lag=arrival[1])
            return self.step

    def report(self, state, sentence, pause):
        told.append((state, sentence))

    def close(self):
        pass

run = types.SimpleNamespace(follow=lambda into, max_lag: Steps())
'''

LATE = STANDINS + '''
endpoint.RETRY_SECONDS = 0

class Driver(endpoint.Driver):
    async def _take(self, step):
        told.append(step.number)
        self.sentence = ''

try:
    asyncio.run(Driver(Engine(), run, 'into').run())
except SystemExit:
    pass
print(told)
'''

SPOILED = STANDINS + '''
Steps.arrivals = [(9, 7)]
driver = endpoint.Driver(Engine(), run, 'into')
driver.is_spoiled = True
told.append(asyncio.run(driver._next()).number)
open('into.engine', 'w').close()  # nothing can be written there
driver._report('error', 'why')
print(told)
'''

STALE = STANDINS + '''
os.mkdir('into.engine')
driver = endpoint.Driver(Engine(), run, 'into')
driver._calls = 2
for calls in ((2,), (2, 1), (2, 2)):
    for rank, call in enumerate(calls):
        with open(f'into.engine/{rank}.json', 'w') as file:
            json.dump({'step': 3, 'state': 'ready', 'call': call}, file)
    asyncio.run(driver._go_on())
    told.append(driver.is_spoiled)
print(told)
'''


class Alone(unittest.TestCase):
    """The driver, without an engine and without a run."""

    def told(self, script):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PYTHON, '-c', script], env=variables(folder, PYTHONPATH=PACKAGE, VLLM_TARGET_DEVICE='cpu'), cwd=folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return ast.literal_eval(done.stdout.splitlines()[-1])

    def test_steps_that_were_overtaken_are_left_out(self):
        """After three of them it is told, and such a step is not taken for want of a newer one either."""
        told = self.told(LATE)
        self.assertEqual([one for one in told if isinstance(one, int)], [1, 5, 20])
        self.assertEqual(sum('Step 16 came when the run was 4 steps ahead' in one[1] for one in told if not isinstance(one, int)), 2)

    def test_a_spoiled_engine_takes_a_late_step_and_a_full_disk_ends_nothing(self):
        self.assertEqual(self.told(SPOILED), [9, ('error', 'why')])

    def test_an_engine_goes_on_when_all_workers_have_answered_the_last_call(self):
        """What a worker has told before says nothing of what it holds now."""
        self.assertEqual(self.told(STALE), [True, True, 'resumed', False])


if __name__ == '__main__':
    unittest.main()
