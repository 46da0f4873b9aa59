"""vLLM's models, update sessions and routes on the CPU: steps of a run come into running parameters and are, bit by bit, what vLLM's own loader
makes of the step; whatever fails, the parameters are those of the step before."""
import contextlib
import json
import os
import shutil
import tempfile
import time
import types
import unittest

from tests.support.daemon import Daemon
from tests.support.package import package_is_ready, settings_of
from tests.support.vllm_models import PYTHON, Refused, VllmServer, config_of, shapes_of

if not package_is_ready() or not os.path.exists(PYTHON):
    raise unittest.SkipTest('setup/clients has not installed vLLM')

import ml_dtypes  # noqa: E402
import numpy  # noqa: E402
import deltabucket  # noqa: E402


class Case(unittest.TestCase):
    plugin = False  # whether the plug-in follows the run, and nobody else

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.random = numpy.random.default_rng(7)

    def start(self, kind, tensor_parallel=1, dtype=ml_dtypes.bfloat16):
        """A run with step 0, a follower of it, and vLLM with that step."""
        self.name = f'models/{self._testMethodName}-{kind}-{tensor_parallel}'.replace('_', '-')
        self.weights = {name: self.random.standard_normal(shape).astype(dtype) for name, shape in shapes_of(kind).items()}
        self.run_ = self.enterContext(deltabucket.Run(self.name, create_bucket=True, **settings_of(self.daemon)))
        self.run_.publish(self.weights, files={'config.json': json.dumps(config_of(kind))})
        weights = os.path.join(self.folder, 'weights')
        self.steps = self.run_.follow(weights)
        with self.steps if self.plugin else contextlib.nullcontext(self.enterContext(self.steps)):
            self.step = self.steps.next(60)
        variables = {'DELTABUCKET_RUN': self.name, 'DELTABUCKET_INTO': weights} if self.plugin else {}
        return self.enterContext(VllmServer(os.path.join(weights, 'current'), self.folder, tensor_parallel, self.daemon, **variables))

    def publish(self):
        """A step in which one in twenty elements is another one, some of them NaN and infinite."""
        for weight in self.weights.values():
            flat = weight.reshape(-1)
            places = self.random.choice(flat.size, max(1, flat.size // 20), replace=False)
            bits = flat.view({2: numpy.uint16, 4: numpy.uint32}[flat.itemsize])
            bits[places] = self.random.integers(0, 1 << 8 * flat.itemsize, places.size, bits.dtype)
        self.run_.publish(self.weights)

    def next(self):
        self.publish()
        self.step = self.steps.next(60)
        return self.step

    def assertHolds(self, vllm, step):
        self.assertTrue(vllm.holds(step.path), f'vLLM does not hold step {step.number}')
        self.assertEqual({told['step'] for told in vllm.told().values()}, {step.number})


class Steps(Case):
    def bring(self, kind, tensor_parallel, count, **options):
        vllm = self.start(kind, tensor_parallel, **options)
        for _ in range(count):
            step = self.next()
            self.assertEqual([told['staged'] for told in vllm.stage(step)], [step.number] * tensor_parallel)
            self.assertFalse(vllm.holds(step.path))
            vllm.update(step.number)
            self.assertHolds(vllm, step)
            self.assertEqual(vllm.get('/weight_info'), {'weight_version': str(step.number)})
        return vllm

    def test_llama(self):
        self.bring('llama', 1, 25)

    def test_llama_whose_checkpoint_is_cast(self):
        self.bring('llama', 1, 5, dtype=numpy.float32)

    def test_llama_on_two_ranks(self):
        self.bring('llama', 2, 25)

    def test_llama_on_four_ranks(self):
        self.bring('llama', 4, 3)  # its keys and values lie twice each

    def test_qwen_with_biases(self):
        self.bring('qwen2', 1, 25)

    def test_qwen_with_tied_weights_on_two_ranks(self):
        self.bring('qwen3', 2, 25)

    def test_experts(self):
        self.bring('experts', 1, 25)

    def test_experts_on_two_ranks(self):
        self.bring('experts', 2, 25)


class Failures(Case):
    def test_what_fails_leaves_the_step_before(self):
        """One engine with two ranks: whatever becomes of a step, the one before serves, and the next one comes."""
        vllm = self.start('llama', 2)
        first, step = self.step, self.next()
        vllm.stage(step)
        for number in (1, 0, 1):  # there, back, and there again
            vllm.update(number)
            self.assertHolds(vllm, step if number else first)
        for _ in range(3):
            step = self.next()
        with self.assertRaisesRegex(Refused, 'not laid out'):
            vllm.update(step.number)
        vllm.stage(step)
        vllm.update(step.number)
        self.assertHolds(vllm, step)  # several steps as one
        for failing in (self.wrong_base, self.damaged_step, self.broken_rank, self.killed):
            with self.subTest(failing.__name__):
                before = self.step
                failing(vllm, before, self.next())
                vllm.stage(self.step)
                self.bring(vllm)
                self.assertHolds(vllm, self.step)
        self.spoiled(vllm)

    def bring(self, vllm):
        """A whole session, whatever was left of one before."""
        try:
            vllm.call('/start_weight_update', {})
        except Refused:
            try:
                vllm.call('/finish_weight_update', {})
            except Refused:
                pass
        else:
            vllm.call('/finish_weight_update', {})
        vllm.update(self.step.number)

    def wrong_base(self, vllm, before, step):
        """One element of one rank is another one: neither rank takes the step."""
        vllm.stage(step)
        vllm.call('/test/write', rank=1)
        with self.assertRaisesRegex(Refused, 'something else has changed them|Another worker'):
            vllm.update(step.number)
        self.assertEqual([told['step'] for told in vllm.told().values()], [before.number] * 2)
        vllm.call('/test/write', rank=1)
        self.assertHolds(vllm, before)

    def damaged_step(self, vllm, before, step):
        """A folder that is cut short is not laid out."""
        path = os.path.join(self.folder, 'damaged')
        shutil.copytree(step.path, path)
        for name in os.listdir(path):
            if name.endswith('.safetensors'):
                os.truncate(os.path.join(path, name), os.path.getsize(os.path.join(path, name)) - 1)
        told = vllm.stage(types.SimpleNamespace(number=step.number, path=path))
        self.assertTrue(all(one['state'] == 'error' and one['sentence'] for one in told), told)
        with self.assertRaisesRegex(Refused, 'not laid out'):
            vllm.update(step.number)
        self.assertHolds(vllm, before)

    def broken_rank(self, vllm, before, step):
        """What one rank has written is wrong: both take it back."""
        vllm.stage(step)
        vllm.call('/test/break', rank=0, what='apply')
        with self.assertRaisesRegex(Refused, 'is not there|Another worker'):
            vllm.update(step.number)
        self.assertHolds(vllm, before)

    def killed(self, vllm, before, step):
        """Whoever drives the engine dies after each of the calls."""
        calls = (('/init_weight_transfer_engine', {'init_info': {'step': step.number, 'path': step.path, 'state': vllm.state}}),
                 ('/pause', None), ('/start_weight_update', {}), ('/update_weights', {'update_info': {'step': step.number}}),
                 ('/finish_weight_update', {'weight_version': str(step.number)}), ('/resume', None))
        for count in range(1, len(calls) + 1):
            if count > 1:
                before, step = step, self.next()
            calls[0][1]['init_info'].update(step=step.number, path=step.path)
            calls[3][1]['update_info']['step'] = step.number
            for path, body in calls[:count]:
                if path == '/start_weight_update':
                    vllm.stage(step)
                vllm.call(path, body)
            self.assertTrue(vllm.holds((before if count < 4 else step).path))
            vllm.stage(step)
            self.bring(vllm)
            self.assertHolds(vllm, step)

    def spoiled(self, vllm):
        """What cannot be taken back is said, and the next step repairs it."""
        step = self.next()
        vllm.stage(step)
        vllm.call('/test/break', rank=0, what='undo')
        with self.assertRaisesRegex(Refused, 'Spoiled'):
            vllm.update(step.number)
        self.assertEqual({told['state'] for told in vllm.told().values()}, {'spoiled'})
        with self.assertRaises(Refused):
            vllm.update(step.number)
        vllm.stage(step)
        self.assertEqual({told['state'] for told in vllm.told().values()}, {'spoiled'})
        self.bring(vllm)
        self.assertHolds(vllm, step)
        self.assertEqual({told['state'] for told in vllm.told().values()}, {'ready'})


class Plugin(Case):
    plugin = True

    def wait_for(self, what):
        limit = time.monotonic() + 120
        while not what():
            self.assertLess(time.monotonic(), limit, self.vllm.get('/deltabucket'))
            time.sleep(0.05)

    def test_steps_come_by_themselves(self):
        """The plug-in follows the run; while a step cannot be taken back, nothing is served and /health says so."""
        self.vllm = vllm = self.start('qwen3', 2)
        self.wait_for(lambda: vllm.get('/deltabucket')['step'] == 0)
        for _ in range(5):
            self.publish()
        self.wait_for(lambda: vllm.get('/deltabucket')['step'] == 5)
        self.assertTrue(vllm.holds(os.path.join(self.folder, 'weights', 'current')))
        self.assertEqual(vllm.get('/weight_info'), {'weight_version': '5'})
        told = vllm.get('/deltabucket')
        self.assertEqual((told['state'], told['sentence']), ('following', ''))
        self.assertGreater(told['pause_seconds'], 0)
        calls = [call[:2] for call in vllm.get('/test/calls')]
        session = [['rpc', 'init_weight_transfer_engine'], ['pause', 'keep'], ['rpc', 'start_weight_update'], ['rpc', 'update_weights'],
                   ['rpc', 'finish_weight_update'], ['version', '5'], ['reset_prefix_cache', True], ['resume']]
        self.assertEqual(calls[-len(session):], session)
        replica, = self.run_.fleet()
        self.assertEqual((replica.state, replica.step), ('ready', 5))
        self.spoil(vllm)

    def test_a_rollback_of_the_fleet_is_written_back(self):
        """Into the running parameters, and forward again; the fleet hears how long each pause was."""
        self.vllm = vllm = self.start('qwen3')
        for number in range(1, 4):
            self.publish()
            self.wait_for(lambda: vllm.get('/deltabucket')['step'] == number)
        for words, number in ((('rollback', self.name, 1), 1), (('forward', self.name), 3)):
            self.daemon.client('fleet', *words)
            self.wait_for(lambda: vllm.get('/deltabucket')['step'] == number)
            self.assertTrue(vllm.holds(os.path.join(self.folder, 'weights', 'current')))
            self.assertEqual(vllm.get('/weight_info'), {'weight_version': str(number)})
            self.wait_for(lambda: next(self.run_.fleet()).pause is not None)
            replica, = self.run_.fleet()
            self.assertEqual((replica.state, replica.step, replica.lag), ('ready', number, 0))
            self.assertAlmostEqual(replica.pause, vllm.get('/deltabucket')['pause_seconds'], delta=0.001)

    def spoil(self, vllm):
        """Nothing is served by parameters that nobody can prove, and /health says so, until they are whole again."""
        vllm.call('/test/break', rank=1, what='undo')
        self.publish()
        self.wait_for(lambda: vllm.get('/deltabucket')['state'] == 'spoiled')
        self.assertEqual(vllm.get('/is_paused'), {'is_paused': True})
        with self.assertRaises(Refused) as refused:
            vllm.get('/health')
        self.assertEqual(refused.exception.status, 503)
        self.wait_for(lambda: vllm.get('/deltabucket')['step'] == 6)
        self.assertTrue(vllm.holds(os.path.join(self.folder, 'weights', 'current')))
        self.assertEqual(vllm.get('/is_paused'), {'is_paused': False})
        vllm.get('/health')


if __name__ == '__main__':
    unittest.main()
