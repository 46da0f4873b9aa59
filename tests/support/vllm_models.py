"""Tiny models of real layouts for vLLM, and tests/support/vllm_server.py as a process."""
import json
import os
import subprocess
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request

from tests.support.clients import INSTALLED
from tests.support.daemon import SOURCE, free_port
from tests.support.package import PACKAGE, variables_of

PYTHON = os.path.join(INSTALLED, 'vllm', 'bin', 'python')
SERVER = os.path.join(SOURCE, 'tests', 'support', 'vllm_server.py')
START_SECONDS = 300
REPLY_SECONDS = 120
COMMON = {'hidden_size': 64, 'intermediate_size': 96, 'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'vocab_size': 128,
          'max_position_embeddings': 64, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu', 'torch_dtype': 'bfloat16', 'tie_word_embeddings': False}
MODELS = {
    'llama': {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'head_dim': 16},
    'qwen2': {'architectures': ['Qwen2ForCausalLM'], 'model_type': 'qwen2'},
    'qwen3': {'architectures': ['Qwen3ForCausalLM'], 'model_type': 'qwen3', 'head_dim': 16, 'tie_word_embeddings': True},
    'experts': {'architectures': ['Qwen3MoeForCausalLM'], 'model_type': 'qwen3_moe', 'head_dim': 16, 'moe_intermediate_size': 32, 'num_experts': 4,
                'num_experts_per_tok': 2, 'norm_topk_prob': True, 'decoder_sparse_step': 1, 'mlp_only_layers': []},
}


def config_of(kind):
    return {**COMMON, **MODELS[kind]}


def shapes_of(kind):
    """{name: shape} of the checkpoint, as Hugging Face has it."""
    shapes = {'model.embed_tokens.weight': (128, 64), 'model.norm.weight': (64,)}
    if not config_of(kind)['tie_word_embeddings']:
        shapes['lm_head.weight'] = (128, 64)
    for layer in range(COMMON['num_hidden_layers']):
        own = {'self_attn.q_proj.weight': (64, 64), 'self_attn.k_proj.weight': (32, 64), 'self_attn.v_proj.weight': (32, 64),
               'self_attn.o_proj.weight': (64, 64), 'input_layernorm.weight': (64,), 'post_attention_layernorm.weight': (64,)}
        if kind == 'qwen2':
            own.update({f'self_attn.{one}_proj.bias': (size,) for one, size in (('q', 64), ('k', 32), ('v', 32))})
        if kind in ('qwen3', 'experts'):
            own.update({'self_attn.q_norm.weight': (16,), 'self_attn.k_norm.weight': (16,)})
        if kind == 'experts':
            own['mlp.gate.weight'] = (4, 64)
            own.update({f'mlp.experts.{expert}.{one}_proj.weight': shape for expert in range(4)
                        for one, shape in (('gate', (32, 64)), ('up', (32, 64)), ('down', (64, 32)))})
        else:
            own.update({f'mlp.{one}_proj.weight': shape for one, shape in (('gate', (96, 64)), ('up', (96, 64)), ('down', (64, 96)))})
        shapes.update({f'model.layers.{layer}.{name}': shape for name, shape in own.items()})
    return shapes


class Refused(Exception):
    """An answer of 4xx or 5xx; its text is the body."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class VllmServer:
    """The server of vllm_server.py. `call` posts JSON, `get` gets it. deltas: whether its ranks have something that applies deltas."""

    def __init__(self, model, folder, tensor_parallel=1, daemon=None, deltas=True, **variables):
        self.port, self.state = free_port(), os.path.join(folder, 'state')
        entries = os.path.join(folder, 'entries')
        announce(entries)
        kernels = ''
        if deltas:
            from tests.support.device_machine import library  # which needs numpy
            kernels = library()
        self.log = open(os.path.join(folder, 'vllm.log'), 'w+')
        environment = {name: value for name, value in os.environ.items() if not name.startswith('DELTABUCKET_')}
        environment.update(PYTHONPATH=os.pathsep.join([PACKAGE, entries, SOURCE]), VLLM_PLUGINS='deltabucket', HOME=folder,
                           **variables_of(daemon), **variables)
        self.process = subprocess.Popen([PYTHON, SERVER, model, str(tensor_parallel), str(self.port), str(free_port()), kernels],
                                        env=environment, stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        limit = time.monotonic() + START_SECONDS
        while True:
            try:
                self.get('/is_paused')
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > limit:
                    printed = self.printed()
                    self.__exit__()
                    raise AssertionError(f'vLLM did not start: {printed[-4000:]}') from None
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def printed(self):
        self.log.seek(0)
        return self.log.read()

    def call(self, route, body=None, **query):
        return self._ask('POST', route, body, query)

    def get(self, route, **query):
        return self._ask('GET', route, None, query)

    def _ask(self, method, route, body, query):
        target = f'http://127.0.0.1:{self.port}{route}?{urllib.parse.urlencode(query)}'
        request = urllib.request.Request(target, None if body is None else json.dumps(body).encode(), {'Content-Type': 'application/json'}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=REPLY_SECONDS) as reply:
                raw = reply.read()
        except urllib.error.HTTPError as failure:
            raise Refused(failure.code, failure.read().decode()) from None
        return json.loads(raw) if raw else None

    def told(self):
        """What the workers tell, by rank."""
        made = {}
        for name in os.listdir(self.state) if os.path.isdir(self.state) else ():
            if name.endswith('.json'):
                with open(os.path.join(self.state, name)) as file:
                    made[int(name[:-5])] = json.load(file)
        return made

    def stage(self, step):
        """Lays a step out in all workers; gives what they tell when that has ended. step: a deltabucket.Step, or what has number, path and deltas."""
        self.call('/init_weight_transfer_engine', {'init_info': self.info_of(step)})
        limit = time.monotonic() + REPLY_SECONDS
        while True:
            told = list(self.told().values())
            if all(one['staged'] == step.number or one['step'] == step.number or one['sentence'] for one in told):
                return told
            if time.monotonic() > limit:
                raise AssertionError(f'Step {step.number} was not laid out: {told}')
            time.sleep(0.01)

    def info_of(self, step):
        return {'step': step.number, 'path': step.path, 'state': self.state, 'deltas': step.deltas()}

    def update(self, number):
        self.call('/start_weight_update', {})
        self.call('/update_weights', {'update_info': {'step': number}})
        self.call('/finish_weight_update', {'weight_version': str(number)})

    def holds(self, path):
        return self.get('/test/holds', path=path)


def announce(folder):
    """Makes the package's entry points known where this folder is in PYTHONPATH, as an installation does."""
    with open(os.path.join(SOURCE, 'python', 'pyproject.toml'), 'rb') as file:
        groups = tomllib.load(file)['project']['entry-points']
    made = os.path.join(folder, 'deltabucket-0.dist-info')
    os.makedirs(made, exist_ok=True)
    with open(os.path.join(made, 'METADATA'), 'w') as file:
        file.write('Metadata-Version: 2.1\nName: deltabucket\nVersion: 0\n')
    with open(os.path.join(made, 'entry_points.txt'), 'w') as file:
        for group, entries in groups.items():
            file.write(f'[{group}]\n' + ''.join(f'{name} = {value}\n' for name, value in entries.items()) + '\n')
