"""DeepSpeed's ZeRO-3 on the CPU, with two processes: each has a part of every parameter, all gather,
one publishes, and what followers get are the bits that DeepSpeed itself saves."""
import concurrent.futures
import os
import tempfile
import unittest

from tests.support.clients import INSTALLED
from tests.support.daemon import Daemon, free_port
from tests.support.package import package_is_ready, run_script, settings_of

if not package_is_ready('torch', 'transformers', environment='torch') or \
        not os.path.isdir(os.path.join(INSTALLED, 'deepspeed', 'deepspeed')):
    raise unittest.SkipTest('setup/clients has not installed PyTorch and DeepSpeed')

import torch  # noqa: E402
import deltabucket  # noqa: E402

RANKS = 2
BEGIN = '''
import os, sys
rank, port, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE='2', MASTER_ADDR='127.0.0.1',
                  MASTER_PORT=port, DS_ACCELERATOR='cpu', OMP_NUM_THREADS='1',
                  TORCH_EXTENSIONS_DIR=sys.argv[4])
import torch, deepspeed, deltabucket
ZERO = {'stage': 3, 'stage3_param_persistence_threshold': 0,
        'stage3_gather_16bit_weights_on_model_save': True}
'''
# Two weights are tied, those of the norm are small enough to stay whole on each rank.
LOOP = BEGIN + '''
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(129, 33)
        self.norm = torch.nn.LayerNorm(33)
        self.register_buffer('numbers', torch.arange(5))
        self.head = torch.nn.Linear(33, 129, bias=False)
        self.head.weight = self.embed.weight
    def forward(self, tokens):
        return self.head(self.norm(self.embed(tokens)))
deepspeed.init_distributed('gloo', auto_mpi_discovery=False)
torch.manual_seed(1)
model = Model()
engine, *_ = deepspeed.initialize(
    model=model, optimizer=torch.optim.SGD(model.parameters(), 0.5),
    config={'train_micro_batch_size_per_gpu': 1, 'zero_allow_untested_optimizer': True,
            'bf16': {'enabled': True},
            'zero_optimization': {**ZERO, 'stage3_param_persistence_threshold': 40}})
run = deltabucket.Run('models/loop', create_bucket=True)
try:
    run.publish(engine.module.state_dict(keep_vars=True))
    sys.exit('a parameter without elements was taken')
except TypeError as failure:
    assert 'gathered' in str(failure), failure
for step in range(3):
    # the engine itself once: its names begin with "module."
    published = deltabucket.publish_model(engine if step == 1 else engine.module, run, step)
    assert (published is None) == (rank == 1)
    engine.save_16bit_model(folder, f'loop-{step}')
    if step:
        assert published is None or 0 < published.changed_elements
    engine.backward(engine(torch.arange(7) + rank).float().square().sum())
    engine.step()
torch.distributed.destroy_process_group()
'''
TRAINER = BEGIN + '''
import transformers, deltabucket.transformers
arguments = transformers.TrainingArguments(
    folder + '/trainer', max_steps=4, per_device_train_batch_size=2, report_to=[], bf16=True,
    save_strategy='no', use_cpu=True, disable_tqdm=True, learning_rate=1e-2,
    deepspeed={'train_micro_batch_size_per_gpu': 'auto', 'bf16': {'enabled': True},
               'zero_allow_untested_optimizer': True, 'zero_optimization': ZERO})
config = transformers.LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=16,
                                  num_hidden_layers=2, num_attention_heads=2,
                                  tie_word_embeddings=False)
torch.manual_seed(1)
model = transformers.LlamaForCausalLM(config)
data = [{'input_ids': list(range(8)), 'labels': list(range(8))}] * 16
run = deltabucket.Run('models/trainer', create_bucket=True)
trainer = transformers.Trainer(model, arguments, train_dataset=data)
trainer.add_callback(deltabucket.transformers.PublishCallback(run, every=2))
trainer.train()
trainer.model_wrapped.save_16bit_model(folder, 'trainer-last')
'''


class Zero3(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())

    def ranks(self, script):
        port = free_port()
        extensions = os.path.join(INSTALLED, 'deepspeed', 'extensions')
        with concurrent.futures.ThreadPoolExecutor(RANKS) as pool:
            for done in pool.map(lambda rank: run_script(
                    script, rank, port, self.folder, extensions, environment='torch',
                    beside=['deepspeed'], daemon=self.daemon, timeout=300), range(RANKS)):
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def follow(self, name):
        run = deltabucket.Run(f'models/{name}', **settings_of(self.daemon))
        self.addCleanup(run.close)
        return run, self.enterContext(run.follow())

    def assertSaved(self, step, name):
        """The step has the names and bits of a file of DeepSpeed's."""
        saved = torch.load(os.path.join(self.folder, name))
        got = step.tensors('torch')
        self.assertEqual(sorted(got), sorted(saved))
        for name, tensor in saved.items():
            self.assertEqual((got[name].dtype, got[name].shape), (tensor.dtype, tensor.shape))
            self.assertTrue(torch.equal(got[name].view(torch.uint8), tensor.view(torch.uint8)),
                            name)

    def test_a_training_loop(self):
        self.ranks(LOOP)
        run, steps = self.follow('loop')
        self.assertEqual([info.number for info in run.steps()], [0, 1, 2])
        for number in range(3):
            self.assertSaved(steps.rollback(number), f'loop-{number}')

    def test_the_trainer_of_transformers(self):
        self.ranks(TRAINER)
        run, steps = self.follow('trainer')
        self.assertEqual([info.label for info in run.steps()], ['step 0', 'step 2', 'step 4'])
        step = next(steps)
        self.assertSaved(step, 'trainer-last')
        self.assertGreater(max(step.tensors('torch')['model.norm.weight'].sub(1).abs()), 0)


if __name__ == '__main__':
    unittest.main()
