"""Engines without plug-ins, as they are started, and the recipes of contrib/engines: `deltabucket follow --exec` brings steps to `vllm serve` in dev mode
(tests/support/vllm_process.py says what of it is not real) and to SGLang's server (sglang_process.py), through their own routes. Each step is, bit by
bit, what the engine's own loader makes of the step's folder.
"""
import json
import os
import shutil
import signal
import tempfile
import time
import unittest

from tests.support.daemon import SOURCE, Daemon
from tests.support.package import package_is_ready
from tests.support.vllm_models import PYTHON, Refused

if not package_is_ready() or not os.path.exists(PYTHON):
    raise unittest.SkipTest('setup/clients has not installed vLLM')

from tests.support.real_engines import SGLANG, RealVllm, Sglang, SglangJudge, Zygote, tail  # noqa: E402
from tests.support.tiny_runs import TinyRun, bring, follow  # noqa: E402

RECIPES = os.path.join(SOURCE, 'contrib', 'engines')
WAIT_SECONDS = 120
STEPS = 25


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.daemon = cls.enterClassContext(Daemon())

    def setUp(self):
        self.into = os.path.join(self.folder, self._testMethodName)
        self.run_ = self.enterContext(TinyRun(self.daemon, f'models/{self._testMethodName}'.replace('_', '-')))
        bring(self.daemon, self.run_.name, self.into)
        self.current = os.path.join(self.into, 'current')
        self.log = os.path.join(self.folder, f'{self._testMethodName}.log')
        self.follower = None

    def follow(self, recipe, **environment):
        """Begins to bring steps to the engine."""
        self.addCleanup(self.end)
        self.follower = follow(self.daemon, self.run_.name, self.into, '--json', '--keep', '2', '--exec', os.path.join(RECIPES, recipe), log=self.log,
                               ENGINE_URL=f'http://127.0.0.1:{self.engine.port}', XDG_RUNTIME_DIR=self.folder, ENGINE_RESUME_TRIES='3', **environment)

    def end(self, number=signal.SIGTERM):
        if self.follower is not None:
            self.follower.send_signal(number)
            self.follower.wait(WAIT_SECONDS)
            self.follower = None

    def events(self):
        with open(self.log) as file:
            said = [json.loads(line) for line in file if line.startswith('{')]
        return [one['event'] for one in said if 'event' in one]

    def wait_for(self, what):
        limit = time.monotonic() + WAIT_SECONDS
        while not what():
            self.assertLess(time.monotonic(), limit, tail(self.log) + self.engine.printed())
            time.sleep(0.02)

    def await_step(self, number):
        """The engine says that it has the step, and goes on."""
        self.wait_for(lambda: self.version() == str(number) and not self.is_paused())
        self.assertHolds(number)

    def path_of(self, number):
        """The newest folder of the step: one that a killed `follow` has left is made again, as NUMBER.1."""
        folder = os.path.join(os.path.realpath(self.into), 'generations')
        found = [name for name in os.listdir(folder) if name.partition('.')[0] == f'{number:06d}' and os.path.isdir(os.path.join(folder, name))]
        self.assertTrue(found, os.listdir(folder))
        return os.path.join(folder, max(found))

    def recipe(self):
        """The process of the recipe, which `follow` has started."""
        found = []
        self.wait_for(lambda: found.extend(self.children()) or found)
        return found[0]

    def children(self):
        with open(f'/proc/{self.follower.pid}/task/{self.follower.pid}/children') as file:
            return [int(word) for word in file.read().split()]


class Vllm(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.zygote = cls.enterClassContext(Zygote(cls.folder))

    def vllm(self, ranks):
        return RealVllm(self.zygote, self.current, self.folder, tensor_parallel=ranks)

    def version(self):
        return self.engine.get('/weight_info')['weight_version']

    def is_paused(self):
        return self.engine.get('/is_paused')['is_paused']

    def assertHolds(self, number):
        self.assertTrue(self.engine.holds(self.path_of(number)), f'vLLM does not hold step {number}')

    def test_steps(self):
        """On two ranks. Another vLLM that loads the folder has the same."""
        self.engine = self.enterContext(self.vllm(2))
        self.follow('vllm')
        for number in range(1, STEPS + 1):
            self.run_.publish()
            self.await_step(number)
        self.end()
        self.assertEqual(set(self.events()), {'step'})
        with self.vllm(2) as other:
            self.assertEqual(other.checksums(), self.engine.checksums())

    def test_what_fails(self):
        """A reload that fails twice is repaired by the third try. One that fails for good leaves parameters without data, under no other version than
        before; the engine goes on, and the step comes again. So it does where the recipe or `follow` is killed."""
        self.engine = self.enterContext(self.vllm(1))
        self.follow('vllm')
        self.engine.rpc('fail_reload', times=2)
        self.await_step(self.run_.publish())
        self.engine.rpc('fail_reload', times=3)
        self.run_.publish()
        self.wait_for(lambda: self.events().count('exec_failed') == 1)
        self.assertEqual((self.version(), self.is_paused()), ('1', False))
        with self.assertRaisesRegex(Refused, 'Cannot copy out of meta tensor'):
            self.engine.checksums()
        self.await_step(2)
        for number, kill in ((3, self.kill_recipe), (4, self.kill_follower)):
            go = os.path.join(self.folder, f'go-{number}')
            self.engine.rpc('hold_reload', path=go)
            self.run_.publish()
            self.wait_for(lambda: os.path.exists(f'{go}.held'))
            kill()
            open(go, 'w').close()
            self.await_step(number)

    def kill_recipe(self):
        """The engine stays paused until `follow` tries again."""
        os.killpg(self.recipe(), signal.SIGKILL)

    def kill_follower(self):
        """What it started goes on by itself; the next one waits for its end."""
        self.end(signal.SIGKILL)
        self.follow('vllm')


@unittest.skipUnless(os.path.exists(os.path.join(SGLANG, 'sglang')), 'setup/clients has not installed SGLang')
class SglangServer(Case):
    def setUp(self):
        super().setUp()
        self.engine = self.enterContext(Sglang(self.current, self.folder))
        self.judge = self.enterContext(SglangJudge(self.folder))

    def version(self):
        return self.engine.get('/model_info')['weight_version']

    def is_paused(self):
        return self.engine.is_paused()

    def assertHolds(self, number):
        self.assertEqual(self.engine.checksums(), self.judge(self.path_of(number)))

    def await_step(self, number):
        """It also generates."""
        super().await_step(number)
        answer = self.engine.call('/generate', {'input_ids': [1, 2, 3], 'sampling_params': {'max_new_tokens': 2, 'temperature': 0}})
        self.assertEqual(answer['meta_info']['weight_version'], str(number))

    def test_steps(self):
        """Then one whose update fails is repaired by the next try; where the recipe, `follow` or the server is killed during an update, the step comes
        all the same. What the judge says is what a server has that loads the folder."""
        self.follow('sglang')
        for number in range(1, STEPS + 1):
            self.run_.publish()
            self.await_step(number)
        self.assertEqual(set(self.events()), {'step'})
        self.end()
        self.follow('sglang', ENGINE_PAUSE='retract')
        self.engine.break_next('fail')
        self.await_step(self.run_.publish())
        for kill in (self.kill_recipe, self.kill_follower, self.kill_server):
            with self.subTest(kill.__name__):
                self.engine.break_next('hold')
                number = self.run_.publish()
                self.wait_for(self.engine.is_held)
                kill()
                self.engine.go()
                self.await_step(number)

    def kill_recipe(self):
        os.killpg(self.recipe(), signal.SIGKILL)

    def kill_follower(self):
        self.end(signal.SIGKILL)
        self.follow('sglang')

    def kill_server(self):
        """It loads the folder when it is started again, on another port, and is told the version by the next start of `follow`."""
        self.engine.__exit__()
        self.end()
        self.engine = self.enterContext(Sglang(self.current, self.folder))
        self.assertFalse(self.is_paused())
        self.assertHolds(int(os.path.basename(os.path.realpath(self.current)).partition('.')[0]))
        self.follow('sglang')


if __name__ == '__main__':
    unittest.main()
