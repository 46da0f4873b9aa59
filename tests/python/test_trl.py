"""TRL's AsyncGRPOTrainer over a run: the trainer of PyPI's TRL trains a small Llama on the CPU, with
deltabucket.trl.WeightTransfer and a rollout worker that follows in memory."""
import os
import subprocess
import tempfile
import threading
import time
import unittest

from tests.support import engines
from tests.support.clients import INSTALLED
from tests.support.daemon import CLIENT, SOURCE, Daemon, environment_of_programs
from tests.support.package import package_is_ready, run_ranks, settings_of, variables_of
from tests.support.skips import NO_TORCH

if not package_is_ready('torch', 'transformers', environment='torch'):
    raise unittest.SkipTest(NO_TORCH)
if not os.path.isdir(os.path.join(INSTALLED, 'trl', 'trl')):
    raise unittest.SkipTest('setup/clients has not installed TRL')

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
import deltabucket  # noqa: E402
from deltabucket.trl import WeightTransfer  # noqa: E402

# Two things of TRL want a GPU and are replaced: its attention is a kernel from the Hub (`Attention`
# is what that one computes), and it asks for the name of the GPU. The rollouts are random tokens with
# the log-probabilities of the worker's own model.
IMPORTS = '''
import atexit, inspect, os, queue, sys, threading
os.environ.update(HF_HUB_OFFLINE='1', HF_HUB_DISABLE_TELEMETRY='1', TRL_EXPERIMENTAL_SILENCE='1')
import datasets, numpy, pyarrow, torch, transformers, tokenizers, trl, deltabucket, deltabucket.trl
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer, packing
from trl.experimental.async_grpo.async_grpo_trainer import WeightTransferProtocol
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample
transformers.LlamaForCausalLM, transformers.AutoModelForCausalLM
'''
TRAINING = '''
kind = ('float32', 'bfloat16')[int(sys.argv[1])]
folder, name, dtype = f'{sys.argv[3]}/{kind}', f'models/{kind}', getattr(torch, kind)

def calls(kind):
    """What a class can be asked for, with the names of the arguments."""
    return {name: list(inspect.signature(method).parameters) for name, method
            in vars(kind).items() if inspect.isfunction(method) and not name.startswith('_')}

assert calls(WeightTransferProtocol) == calls(deltabucket.trl.WeightTransfer)

class Attention:
    def flash_attn_varlen_func(query, key, value, starts_q, starts_k, longest_q, longest_k,
                               softmax_scale, causal, window_size):
        out = []
        for segment in range(len(starts_q) - 1):
            q = query[starts_q[segment]:starts_q[segment + 1]].transpose(0, 1)
            k, v = (one[starts_k[segment]:starts_k[segment + 1]].transpose(0, 1)
                    .repeat_interleave(query.shape[1] // key.shape[1], 0) for one in (key, value))
            mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1])
            out.append(torch.nn.functional.scaled_dot_product_attention(
                q, k, v, mask, scale=softmax_scale).transpose(0, 1))
        return torch.cat(out)

packing._flash_attn = lambda: Attention
torch.cuda.get_device_name = lambda device: 'CPU'

words = {'<pad>': 0, '</s>': 1, **{f'w{index}': index for index in range(2, 64)}}
transformers.PreTrainedTokenizerFast(
    tokenizer_object=tokenizers.Tokenizer(tokenizers.models.WordLevel(words, '<pad>')),
    pad_token='<pad>', eos_token='</s>').save_pretrained(folder)
transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, tie_word_embeddings=True, bos_token_id=1, eos_token_id=1, pad_token_id=0,
    dtype=torch.float32)).save_pretrained(folder)

class Rollouts:
    """A rollout worker in this process. Its model is what its own follower has brought."""
    def __init__(self):
        self.rollout_buffer, self.metrics_queue = queue.Queue(), queue.Queue()
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        self.steps = deltabucket.Run(name).follow()
        self.number, self.seen, self.failure = None, [], None
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        try:
            with self.steps:
                for step in self.steps:
                    step.apply_into(self.model.state_dict())
                    self.number = step.number
                    self.steps.report('ready')
        except BaseException as failure:
            self.failure = failure

    def start(self):
        """The trainer fetches a batch before it trains on the one before."""
        self.roll(1)
        self.roll(1)

    def stop(self):
        self.steps.close()
        self.thread.join()

    def check_health(self, stale_after_s):
        if self.failure is not None:
            raise self.failure

    def update_model_version(self, version):
        self.check_health(0)
        self.compare()
        self.seen.append((version, self.number, transfer.published.step))
        if version > 1:
            self.roll(version)

    def compare(self):
        """The worker has the trainer's weights, bit by bit, once the trainer believes so."""
        wanted = {one: tensor.detach().to(dtype).view(torch.uint8)
                  for one, tensor in sent(trainer).items()}
        got = {one: tensor.detach().view(torch.uint8)
               for one, tensor in self.model.named_parameters()}
        assert sorted(got) == sorted(wanted), (sorted(got), sorted(wanted))
        for one in wanted:
            assert torch.equal(got[one], wanted[one]), one

    def roll(self, version):
        for index in range(4):
            ids = torch.randint(2, 64, (10,))
            with torch.no_grad():
                logits = self.model(ids[None]).logits[0].float().log_softmax(-1)
            known = torch.cat((torch.zeros(1), logits[:-1].gather(1, ids[1:, None])[:, 0]))
            self.rollout_buffer.put(RolloutSample(
                [], [], ids.numpy(), numpy.array([0] * 5 + [1] * 5), known.numpy(),
                1.0 if index % 2 else -1.0, version, index // 2, {'reward': float(index)}))

def sent(trainer):
    return dict(trainer.model.named_parameters())

run = deltabucket.Run(name, create_bucket=True)
transfer = deltabucket.trl.WeightTransfer(run, workers=1, timeout=60, dtype=dtype)
worker = Rollouts()
atexit.register(worker.stop)
trainer = AsyncGRPOTrainer(
    folder, args=AsyncGRPOConfig(
        folder + '/out', max_steps=4, per_device_train_batch_size=4, learning_rate=1e-3,
        gradient_accumulation_steps=1, token_budget=0, bf16=False, gradient_checkpointing=False,
        use_cpu=True, report_to=[], save_strategy='no', logging_steps=1, disable_tqdm=True),
    reward_funcs=lambda **given: [0.0], train_dataset=datasets.Dataset(
        pyarrow.table({'prompt': ['w2'] * 4}), fingerprint='prompts'), rollout_worker=worker, weight_transfer=transfer)
before = {one: tensor.detach().clone() for one, tensor in sent(trainer).items()}
trainer.train()
assert any(not torch.equal(before[one], tensor) for one, tensor in sent(trainer).items())
print(f'{kind} {trl.__version__} {worker.seen}', flush=True)
'''


class Trl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())

    def open_run(self, name):
        run = deltabucket.Run(f'models/{name}', create_bucket=True, **settings_of(self.daemon))
        self.addCleanup(run.close)
        return run

    def test_the_trainer(self):
        """Five syncs, the one before the first step included, in the trainer's dtype and in
        another one. The script asserts that the worker has each."""
        done = run_ranks(IMPORTS, TRAINING, (2,), self.folder, environment='torch',
                         beside=('trl',), daemon=self.daemon)
        self.assertEqual(done.returncode, 0, done.stderr)
        for kind in ('float32', 'bfloat16'):
            with self.subTest(kind):
                self.assertIn(f'{kind} 1.16.0 [(1, 0, 0), (2, 1, 1), (3, 2, 2), (4, 3, 3), '
                              '(5, 4, 4)]', done.stdout.splitlines())
                with self.open_run(kind).follow(silent=True) as steps:
                    made = next(steps).tensors('torch')
                self.assertEqual({str(one.dtype) for one in made.values()}, {f'torch.{kind}'})
                self.assertNotIn('lm_head.weight', made)  # tied: TRL sends one name

    def test_waiting_for_workers(self):
        run = self.open_run('waiting')
        weights = {'a': torch.arange(6.), 'count': torch.tensor(3)}
        transfer = WeightTransfer(run, workers=2, timeout=60, dtype=torch.bfloat16)
        transfer.init_weight_transfer()
        transfer.pause()
        transfer.send_weights(iter(weights.items()))
        self.assertEqual((transfer.published.step, transfer.published.already), (0, False))
        resumed = threading.Thread(target=transfer.resume)
        with run.follow(replica='one') as one, run.follow(replica='two') as two:
            resumed.start()
            self.addCleanup(resumed.join)
            for steps in (one, two):
                self.assertTrue(resumed.is_alive())
                made = next(steps).tensors('torch')
                self.assertEqual(made['a'].dtype, torch.bfloat16)
                self.assertEqual(made['count'].dtype, torch.int64)
                steps.report('ready')
            resumed.join(60)
            self.assertFalse(resumed.is_alive())
            transfer.destroy()
            self.assert_late(WeightTransfer(run, workers=2, timeout=0.2), one, two)

    def assert_late(self, transfer, one, two):
        """A sync that one of two workers has not brought in."""
        transfer.send_weights(iter([('a', torch.ones(6, dtype=torch.bfloat16)),
                                    ('count', torch.tensor(4))]))
        next(one)
        one.report('ready')
        next(two)
        two.report('error', 'the engine does not answer')
        while [one.state for one in self.open_run('waiting').fleet()] != ['ready', 'error']:
            time.sleep(0.05)
        with self.assertRaisesRegex(deltabucket.NotReady, '1 workers of models/waiting serve step '
                                    '1 after 0.2 seconds, 2 must. two is at step 1, error: the '
                                    'engine does not answer'):
            transfer.resume()
        transfer.destroy()

    def test_training_goes_on_in_a_rollback(self):
        run = self.open_run('held')
        transfer = WeightTransfer(run, workers=1, timeout=60)
        with run.follow(replica='one') as steps:
            for number in range(2):
                transfer.send_weights(iter([('a', torch.full((6,), float(number)))]))
                next(steps)
            self.daemon.client('fleet', 'rollback', 'models/held', 0)
            self.assertEqual(next(steps).number, 0)
            steps.report('ready')
            transfer.send_weights(iter([('a', torch.full((6,), 2.0))]))
            transfer.resume()
            self.assertEqual(transfer.published.step, 2)
            self.daemon.client('fleet', 'forward', 'models/held')
            with self.assertRaises(deltabucket.NotReady):
                transfer._timeout = 0
                transfer.resume()

    def test_the_recipe_of_an_engine(self):
        """`deltabucket follow --exec contrib/engines/vllm` beside an engine: a sync has ended when
        the engine has loaded its step, and the engine runs."""
        transfer = WeightTransfer(self.open_run('engine'), workers=1, timeout=60)
        engine = engines.Vllm()
        self.addCleanup(engine.close)
        into = os.path.join(self.folder, 'into')
        command = [CLIENT, 'follow', '--run', 'models/engine', '--into', into, '--poll', '1',
                   '--exec', os.path.join(SOURCE, 'contrib', 'engines', 'vllm')]
        environment = dict(environment_of_programs(), ENGINE_URL=engine.url, XDG_RUNTIME_DIR=self.folder,
                           **variables_of(self.daemon))
        for number in range(3):
            weights = {'a': torch.full((512,), 1.0 + number)}
            transfer.pause()
            transfer.send_weights(iter(weights.items()))
            if number == 0:
                worker = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
                self.addCleanup(worker.wait)
                self.addCleanup(worker.terminate)
            transfer.resume()
            self.assertEqual((engine.version, engine.paused), (str(number), False))
            made = load_file(os.path.join(engine.weights, 'model.safetensors'))
            self.assertTrue(torch.equal(made['a'], weights['a']))

    def test_not_waiting(self):
        transfer = WeightTransfer(self.open_run('alone'), metadata={'trainer': 'trl'})
        transfer.resume()
        transfer.send_weights(iter([('a', torch.arange(4.))]))
        transfer.resume()
        self.assertEqual(self.open_run('alone').latest().metadata, {'trainer': 'trl'})
        with self.assertRaisesRegex(ValueError, 'workers is -1'):
            WeightTransfer(self.open_run('alone'), workers=-1)


if __name__ == '__main__':
    unittest.main()
