"""Layouts that vLLM makes after loading: each step is, bit by bit, what vLLM's own loader makes of it, or is refused by name."""
import contextlib
import json
import os
import shutil
import time
import unittest

from tests.support.package import package_is_ready, settings_of
from tests.support.vllm_models import PYTHON, Refused

if not package_is_ready() or not os.path.exists(PYTHON):
    raise unittest.SkipTest('setup/clients has not installed vLLM')

import numpy  # noqa: E402
import deltabucket  # noqa: E402
from tests.engines import test_vllm  # noqa: E402
from tests.support.vllm_layouts import FP8_ROWS, compressed, config_of, filled, tensors_of  # noqa: E402
from tests.support.vllm_models import VllmServer  # noqa: E402


class Case(test_vllm.Case):
    def start(self, kind, tensor_parallel=1, config=None, more=None, arguments=None, draft=None, **variables):
        """more: {name: (shape, dtype)} of tensors beside those of the kind. arguments: of vLLM. draft: a folder, for a copy of step 0 as the draft's."""
        self.name = f'layouts/{self._testMethodName}'.replace('_', '-')
        self.weights = {name: filled(self.random, *what) for name, what in {**tensors_of(kind), **(more or {})}.items()}
        self.run_ = self.enterContext(deltabucket.Run(self.name, create_bucket=True, **settings_of(self.daemon)))
        self.run_.publish(self.weights, files={'config.json': json.dumps(config_of(kind) | (config or {}))})
        weights = os.path.join(self.folder, 'weights')
        self.steps = self.run_.follow(weights)
        with self.steps if self.plugin else contextlib.nullcontext(self.enterContext(self.steps)):
            self.step = self.steps.next(60)
        if self.plugin:
            variables.update(DELTABUCKET_RUN=self.name, DELTABUCKET_INTO=weights)
        if draft is not None:
            shutil.copytree(self.step.path, draft)
            arguments = {'speculative_config': {'method': 'mtp', 'model': draft, 'num_speculative_tokens': 1}}
        return self.enterContext(VllmServer(os.path.join(weights, 'current'), self.folder, tensor_parallel, self.daemon,
                                            VLLM_TEST_ARGUMENTS=json.dumps(arguments or {}), **variables))

    def publish(self):
        """A step in which one in twenty elements is another one."""
        for weight in self.weights.values():
            places = self.random.choice(weight.size, max(1, weight.size // 20), replace=False)
            weight.reshape(-1)[places] = filled(self.random, places.size, weight.dtype)
        self.run_.publish(self.weights)

    def bring(self, vllm, count):
        """Steps, each of which vLLM does not hold before it is brought, and does then."""
        for _ in range(count):
            step = self.next()
            told = vllm.stage(step)
            self.assertEqual({one['staged'] for one in told}, {step.number}, told)
            self.assertFalse(vllm.holds(step.path))
            vllm.update(step.number)
            self.assertHolds(vllm, step)

    def refused(self, vllm):
        """The sentences with which a step is not laid out; the one before serves."""
        before, step = self.step, self.next()
        sentences = [one['sentence'] for one in vllm.stage(step)]
        with self.assertRaisesRegex(Refused, 'not laid out'):
            vllm.update(step.number)
        self.assertTrue(vllm.holds(before.path))
        return sentences


class Layouts(Case):
    def test_repacked_in_four_bits(self):
        self.bring(self.start('int4'), 25)

    def test_repacked_in_four_bits_on_two_ranks(self):
        self.bring(self.start('int4', 2), 25)

    def test_fp8_with_transposed_weights_on_two_ranks(self):
        self.bring(self.start('fp8', 2), 5)

    def test_quantised_by_vllm_while_it_loads(self):
        self.bring(self.start('bf16', arguments={'quantization': 'fp8_per_channel'}), 5)

    def test_latent_attention_on_two_ranks(self):
        self.bring(self.start('latent', 2), 5)

    def test_latent_attention_with_tensors_made_of_quantised_ones(self):
        self.bring(self.start('latent-fp8'), 5)

    def test_packed_experts(self):
        self.bring(self.start('experts', VLLM_TEST_PACKED='1'), 5)

    def test_packed_and_padded_experts_on_two_ranks(self):
        self.bring(self.start('experts', 2, VLLM_TEST_PACKED='1'), 5)


class Failures(Case):
    def test_what_fails_leaves_the_step_before(self):
        """Two ranks with repacked parameters: neither takes a step that one of them cannot take, and the next one comes."""
        vllm = self.start('int4', 2)
        first = self.step
        self.bring(vllm, 1)
        vllm.update(first.number)  # back
        self.assertHolds(vllm, first)
        vllm.update(self.step.number)
        self.wrong_base(vllm, self.step, self.next())
        self.broken_rank(vllm, self.steps.step, self.next())
        self.bring(vllm, 1)
        self.spoiled(vllm)
        self.bring(vllm, 1)

    def wrong_base(self, vllm, before, step):
        vllm.stage(step)
        parameter = 'model.layers.0.mlp.down_proj.weight_packed'
        vllm.call('/test/write', rank=1, name=parameter)
        with self.assertRaisesRegex(Refused, 'something else has changed them|Another worker'):
            vllm.update(step.number)
        vllm.call('/test/write', rank=1, name=parameter)
        self.assertHolds(vllm, before)
        vllm.update(step.number)
        self.assertHolds(vllm, step)

    def broken_rank(self, vllm, before, step):
        """What one rank has written is wrong: both take it back."""
        vllm.stage(step)
        vllm.call('/test/break', rank=0, what='pairs')
        with self.assertRaisesRegex(Refused, 'is not there|Another worker'):
            vllm.update(step.number)
        self.assertHolds(vllm, before)

    def spoiled(self, vllm):
        """What cannot be taken back is said, and the next step is written whole."""
        vllm.stage(self.next())
        vllm.call('/test/break', rank=0, what='undo')
        with self.assertRaisesRegex(Refused, 'Spoiled'):
            vllm.update(self.step.number)
        vllm.call('/test/write', rank=1, name='model.layers.1.mlp.down_proj.weight_packed')
        vllm.stage(self.step)
        vllm.update(self.step.number)
        self.assertHolds(vllm, self.step)
        self.assertEqual({told['state'] for told in vllm.told().values()}, {'ready'})

    def test_what_vllm_makes_of_other_ranks_tensors_is_refused(self):
        """Quantised while it loads, with a scale over all ranks: that is agreed on by the ranks, which must not talk while they serve."""
        sentences = self.refused(self.start('bf16', 2, arguments={'quantization': 'fp8_per_channel'}))
        self.assertTrue(all('makes model.layers.0 of what other workers hold' in one for one in sentences), sentences)

    def test_a_number_that_vllm_keeps_in_python_is_refused_when_a_step_changes_it(self):
        """The scales of an FP8 cache, from the checkpoint: vLLM has them as tensors and as numbers."""
        scales = {f'model.layers.{layer}.self_attn.{one}_proj.{one}_scale': ((1,), numpy.float32) for layer in range(2) for one in 'kv'}
        cache = {'num_bits': 8, 'type': 'float', 'symmetric': True, 'strategy': 'tensor', 'dynamic': False}
        vllm = self.start('fp8', config=compressed('float-quantized', *FP8_ROWS, kv_cache_scheme=cache), more=scales,
                          arguments={'kv_cache_dtype': 'fp8_e4m3'})
        first = {name: self.weights[name].copy() for name in scales}
        sentence, = self.refused(vllm)
        self.assertRegex(sentence, r'^model\.layers\.0\.self_attn\.attn\._[kv]_scale_float is not a tensor.* step 1;')
        for name, scale in first.items():
            self.weights[name][:] = scale
        self.run_.publish(self.weights)
        self.step = self.steps.next(60)
        vllm.stage(self.step)
        vllm.update(self.step.number)
        self.assertHolds(vllm, self.step)


class Drafts(Case):
    def test_a_draft_in_the_same_checkpoint_is_brought_too(self):
        vllm = self.start('draft', arguments={'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 1}})
        vllm.call('/start_draft_weight_update')
        vllm.call('/finish_weight_update', {})
        self.bring(vllm, 5)
        self.assertEqual(vllm.told()[0]['draft'], 'It is brought to each step with the model.')

    def test_a_draft_with_a_checkpoint_of_its_own_stays(self):
        other = os.path.join(self.folder, 'other')
        vllm = self.start('draft', draft=other)
        vllm.call('/start_draft_weight_update')
        vllm.call('/finish_weight_update', {})
        self.bring(vllm, 2)
        self.assertEqual(vllm.told()[0]['draft'], 'It has a checkpoint of its own and stays as it was loaded.')


class Plugin(Case):
    plugin = True

    def test_the_plugin_shows_the_draft(self):
        vllm = self.start('draft', arguments={'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 1}})
        self.publish()
        limit = time.monotonic() + 120
        while vllm.get('/deltabucket')['step'] != 1:
            self.assertLess(time.monotonic(), limit, vllm.get('/deltabucket'))
            time.sleep(0.05)
        self.assertTrue(vllm.holds(os.path.join(self.folder, 'weights', 'current')))
        worker, = vllm.get('/deltabucket')['workers']
        self.assertEqual(worker['draft'], 'It is brought to each step with the model.')


if __name__ == '__main__':
    unittest.main()
