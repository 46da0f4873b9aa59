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


# Elements of what each rank has whole, whatever their number.
NORMS, HEAD_NORMS, ROUTERS = 5 * 64, 4 * 16, 2 * 4 * 64


class Case(unittest.TestCase):
    plugin = False  # whether the plug-in follows the run, and nobody else

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.random = numpy.random.default_rng(7)

    def start(self, kind, tensor_parallel=1, dtype=ml_dtypes.bfloat16, deltas=True):
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
        return self.enterContext(VllmServer(os.path.join(weights, 'current'), self.folder, tensor_parallel, self.daemon, deltas, **variables))

    def publish(self, **options):
        """A step in which one in twenty elements is another one, some of them NaN and infinite."""
        for weight in self.weights.values():
            flat = weight.reshape(-1)
            places = self.random.choice(flat.size, max(1, flat.size // 20), replace=False)
            bits = flat.view({2: numpy.uint16, 4: numpy.uint32}[flat.itemsize])
            bits[places] = self.random.integers(0, 1 << 8 * flat.itemsize, places.size, bits.dtype)
        self.run_.publish(self.weights, **options)

    def next(self, **options):
        self.publish(**options)
        self.step = self.steps.next(60)
        return self.step

    def assertHolds(self, vllm, step):
        self.assertTrue(vllm.holds(step.path), f'vLLM does not hold step {step.number}')
        self.assertEqual({told['step'] for told in vllm.told().values()}, {step.number})


    def shares(self, vllm):
        """For each rank, of how many elements the last step was brought by deltas, and of how many by pairs."""
        return [(told['by_delta'], told['by_pairs']) for _, told in sorted(vllm.told().items())]

    def bring_session(self, vllm):
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


class Steps(Case):
    def bring(self, kind, tensor_parallel, count, whole=None, **options):
        """whole: elements of each rank that lie as whole tensors, which deltas change; None: all."""
        vllm = self.start(kind, tensor_parallel, **options)
        for _ in range(count):
            step = self.next()
            self.assertEqual([told['staged'] for told in vllm.stage(step)], [step.number] * tensor_parallel)
            self.assertFalse(vllm.holds(step.path))
            vllm.update(step.number)
            self.assertHolds(vllm, step)
            self.assertEqual(vllm.get('/weight_info'), {'weight_version': str(step.number)})
            for by_delta, by_pairs in self.shares(vllm):
                self.assertEqual(by_delta, sum(weight.size for weight in self.weights.values()) if whole is None else whole)
                self.assertEqual(by_pairs > 0, whole is not None)
        return vllm

    def test_llama(self):
        self.bring('llama', 1, 25)

    def test_llama_whose_checkpoint_is_cast(self):
        self.bring('llama', 1, 5, whole=0, dtype=numpy.float32)

    def test_llama_where_nothing_applies_deltas(self):
        vllm = self.bring('llama', 1, 2, whole=0, deltas=False)
        self.assertIn('The parameters lie on cpu', vllm.told()[0]['no_deltas'])

    def test_llama_on_two_ranks(self):
        self.bring('llama', 2, 25, whole=NORMS)

    def test_llama_on_four_ranks(self):
        self.bring('llama', 4, 25, whole=NORMS)  # its keys and values lie twice each

    def test_qwen_with_biases(self):
        self.bring('qwen2', 1, 25)

    def test_qwen_with_tied_weights_on_two_ranks(self):
        self.bring('qwen3', 2, 25, whole=NORMS + HEAD_NORMS)

    def test_experts(self):
        self.bring('experts', 1, 25)

    def test_experts_on_two_ranks(self):
        self.bring('experts', 2, 25, whole=NORMS + HEAD_NORMS + ROUTERS)


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
                self.bring_session(vllm)
                self.assertHolds(vllm, self.step)
        self.spoiled(vllm)

    def wrong_base(self, vllm, before, step):
        """One element of one rank is another one: neither rank takes the step."""
        vllm.stage(step)
        vllm.call('/test/write', rank=1, name='model.embed_tokens.weight')
        with self.assertRaisesRegex(Refused, 'something else has changed them|Another worker'):
            vllm.update(step.number)
        self.assertEqual([told['step'] for told in vllm.told().values()], [before.number] * 2)
        vllm.call('/test/write', rank=1, name='model.embed_tokens.weight')
        self.assertHolds(vllm, before)

    def damaged_step(self, vllm, before, step):
        """A folder that is cut short is not laid out."""
        path = os.path.join(self.folder, 'damaged')
        shutil.copytree(step.path, path)
        for name in os.listdir(path):
            if name.endswith('.safetensors'):
                os.truncate(os.path.join(path, name), os.path.getsize(os.path.join(path, name)) - 1)
        told = vllm.stage(types.SimpleNamespace(number=step.number, path=path, deltas=step.deltas))
        self.assertTrue(all(one['state'] == 'error' and one['sentence'] for one in told), told)
        with self.assertRaisesRegex(Refused, 'not laid out'):
            vllm.update(step.number)
        self.assertHolds(vllm, before)

    def broken_rank(self, vllm, before, step):
        """What one rank has written is wrong: both take it back, what deltas have changed and what pairs have."""
        for rank, what, failure in ((0, 'pairs', 'is not there'), (1, 'delta', 'another hash')):
            vllm.stage(step)
            vllm.call('/test/break', rank=rank, what=what)
            with self.assertRaisesRegex(Refused, f'{failure}|Another worker'):
                vllm.update(step.number)
            self.assertHolds(vllm, before)
            vllm.stage(step)
            self.bring_session(vllm)
            self.assertHolds(vllm, step)
            self.assertEqual([by_delta for by_delta, _ in self.shares(vllm)], [0, 0])  # whose deltas have failed once
            before, step = step, self.next()

    def killed(self, vllm, before, step):
        """Whoever drives the engine dies after each of the calls."""
        calls = (('/init_weight_transfer_engine', {}),
                 ('/pause', None), ('/start_weight_update', {}), ('/update_weights', {'update_info': {'step': step.number}}),
                 ('/finish_weight_update', {'weight_version': str(step.number)}), ('/resume', None))
        for count in range(1, len(calls) + 1):
            if count > 1:
                before, step = step, self.next()
            calls[0][1]['init_info'] = vllm.info_of(step)
            calls[3][1]['update_info']['step'] = step.number
            for path, body in calls[:count]:
                if path == '/start_weight_update':
                    vllm.stage(step)
                vllm.call(path, body)
            self.assertTrue(vllm.holds((before if count < 4 else step).path))
            vllm.stage(step)
            self.bring_session(vllm)
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
        self.bring_session(vllm)
        self.assertHolds(vllm, step)
        self.assertEqual({told['state'] for told in vllm.told().values()}, {'ready'})


class Deltas(Case):
    """One engine with one rank, whose parameters have the checkpoint's tensors whole."""

    def test_deltas(self):
        self.vllm = self.start('llama')
        self.all = sum(weight.size for weight in self.weights.values())
        for one in (self.folder_that_is_not_read, self.there_and_back, self.several_at_once, self.steps_that_deltas_do_not_lead_to,
                    self.damaged_delta, self.delta_that_is_not_there, self.wrong_base_before_the_pause, self.wrong_base_in_the_pause):
            with self.subTest(one.__name__):
                one(self.step, self.next())
                if self.vllm.told()[0]['step'] != self.step.number:
                    self.bring(by_delta=0)
                self.next()
                self.bring(by_delta=self.all)

    def bring(self, by_delta):
        self.assertEqual([told['staged'] for told in self.vllm.stage(self.step)], [self.step.number])
        self.bring_session(self.vllm)
        self.assertHolds(self.vllm, self.step)
        self.assertEqual(self.shares(self.vllm), [(by_delta, self.all - by_delta)])

    def folder_that_is_not_read(self, before, step):
        """Its bytes are others, but for the header, and yet the step is right."""
        path = os.path.join(self.folder, 'zeros')
        shutil.copytree(step.path, path)
        shutil.copyfile(f'{step.path}.json', f'{path}.json')
        for name in os.listdir(path):
            if name.endswith('.safetensors'):
                with open(os.path.join(path, name), 'r+b') as file:
                    begin = 8 + int.from_bytes(file.read(8), 'little')
                    file.seek(begin)
                    file.write(bytes(os.path.getsize(file.name) - begin))
        self.vllm.stage(types.SimpleNamespace(number=step.number, path=path, deltas=step.deltas))
        self.bring_session(self.vllm)
        self.assertHolds(self.vllm, step)
        self.assertEqual(self.shares(self.vllm), [(self.all, 0)])

    def there_and_back(self, before, step):
        self.vllm.stage(step)
        kept = types.SimpleNamespace(number=before.number, path=shutil.copytree(before.path, os.path.join(self.folder, 'kept')))
        for held in (step, kept, step):
            self.vllm.update(held.number)
            self.assertHolds(self.vllm, held)
        self.next()
        self.vllm.stage(self.step)
        for held in (kept, step):  # also when the next one is laid out
            self.vllm.update(held.number)
            self.assertHolds(self.vllm, held)
        self.bring(by_delta=self.all)

    def several_at_once(self, before, step):
        self.vllm.stage(step)
        self.vllm.update(step.number)
        for _ in range(3):
            self.publish()
        self.step = self.steps.next(60)
        self.assertEqual(len(self.step.deltas()), 3)
        self.bring(by_delta=self.all)

    def steps_that_deltas_do_not_lead_to(self, before, step):
        self.next()  # the engine has not got the one before
        self.bring(by_delta=0)
        self.next(format='slime-xor')
        self.bring(by_delta=0)
        self.next(anchor='always')
        self.step = types.SimpleNamespace(number=self.step.number, path=self.step.path, deltas=lambda: [])  # it came as the anchor
        self.bring(by_delta=0)

    def damaged_delta(self, before, step):
        """The host finds that it is cut short, and the device that a bit of it is another one."""
        path = os.path.join(self.folder, 'delta')
        file = os.path.join(path, 'delta.safetensors')
        damaged = types.SimpleNamespace(number=step.number, path=step.path, deltas=lambda: [path])
        shutil.copytree(step.deltas()[0], path)
        middle = os.path.getsize(file) // 2
        os.truncate(file, middle)
        told, = self.vllm.stage(damaged)
        self.assertEqual((told['state'], told['staged']), ('error', -1))
        self.assertHolds(self.vllm, before)
        self.bring(by_delta=0)
        damaged.number, damaged.path = self.next().number, self.step.path
        shutil.rmtree(path)
        shutil.copytree(self.step.deltas()[0], path)
        with open(file, 'r+b') as opened:
            opened.seek(middle)
            byte, = opened.read(1)
            opened.seek(middle)
            opened.write(bytes([byte ^ 1]))
        told, = self.vllm.stage(damaged)
        self.assertEqual((told['state'], told['staged']), ('ready', damaged.number))
        with self.assertRaisesRegex(Refused, f'(is damaged|than its delta says); the tensors are those of step {step.number}'):
            self.vllm.update(damaged.number)
        self.assertHolds(self.vllm, step)

    def delta_that_is_not_there(self, before, step):
        told, = self.vllm.stage(types.SimpleNamespace(number=step.number, path=step.path, deltas=lambda: [os.path.join(self.folder, 'none')]))
        self.assertEqual((told['state'], told['staged']), ('error', -1))
        self.assertHolds(self.vllm, before)

    def wrong_base_before_the_pause(self, before, step):
        """Nothing is changed, and it comes once the parameters are right."""
        self.vllm.call('/test/write', rank=0, name='lm_head.weight')
        for _ in range(2):
            told, = self.vllm.stage(step)
            self.assertEqual((told['state'], told['step'], told['staged']), ('error', before.number, -1))
            self.assertIn('something else has changed them', told['sentence'])
        self.vllm.call('/test/write', rank=0, name='lm_head.weight')
        self.assertHolds(self.vllm, before)
        self.bring(by_delta=self.all)

    def wrong_base_in_the_pause(self, before, step):
        """What the deltas have changed is taken back, but nobody can prove what is there then: the next step is copied whole."""
        self.vllm.stage(step)
        self.vllm.call('/test/write', rank=0, name='lm_head.weight')
        with self.assertRaisesRegex(Refused, 'Spoiled'):
            self.vllm.update(step.number)
        told, = self.vllm.told().values()
        self.assertEqual((told['state'], told['step']), ('spoiled', -1))
        self.vllm.call('/test/write', rank=0, name='lm_head.weight')
        self.assertTrue(self.vllm.holds(before.path))


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
        whole = NORMS + HEAD_NORMS
        self.assertEqual([one['by_delta'] for one in told['workers']], [whole, whole])
        self.assertTrue(all(one['by_pairs'] > 0 and one['no_deltas'] == '' for one in told['workers']), told)
        self.fail_once(vllm)
        self.spoil(vllm)

    def fail_once(self, vllm):
        """A step whose deltas fail on one rank comes by pairs to all of them."""
        vllm.call('/test/break', rank=1, what='delta')
        self.publish()
        self.wait_for(lambda: vllm.get('/deltabucket')['step'] == 6)
        self.assertTrue(vllm.holds(os.path.join(self.folder, 'weights', 'current')))
        self.assertEqual([one['by_delta'] for one in vllm.get('/deltabucket')['workers']], [0, 0])

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
        self.wait_for(lambda: vllm.get('/deltabucket')['step'] == 7)
        self.assertTrue(vllm.holds(os.path.join(self.folder, 'weights', 'current')))
        self.assertEqual(vllm.get('/is_paused'), {'is_paused': False})
        vllm.get('/health')


if __name__ == '__main__':
    unittest.main()
