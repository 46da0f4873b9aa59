"""vLLM as it is started, on the CPU: `vllm serve`, with nothing but a worker's device replaced. Run by vLLM's Python, python -m
tests.support.vllm_process, it imports vLLM once, and then starts a server for each line of its input, {"arguments": [...], "environment": {...},
"log": PATH}, by a fork: it prints the server's process. All processes of a server are in its process group.

Real: the API servers with all their routers and plug-ins, AsyncLLM, the engine cores with scheduler and block pool, data parallelism with its
coordinator, the executor and its worker processes, the distributed groups (gloo), the model, Worker.load_model, reload_weights and the update session.
Not real: what runs a model. There is no GPU, so a worker's Runner has the parts of GPUModelRunner that load and reload a model, and generates nothing.
Three things of the environment are left out: the platform's wish to spawn processes rather than fork them, which costs 15 s for each, the SageMaker
routes, whose package is not installed, and the loading through get_model, which imports another one: the loader is called itself.
"""
import contextlib
import ctypes
import dataclasses
import json
import os
import signal
import sys
import time

os.environ.update(VLLM_TARGET_DEVICE='cpu', VLLM_CPU_OMP_THREADS_BIND='nobind', HF_HUB_OFFLINE='1', OMP_NUM_THREADS='1', VLLM_NO_USAGE_STATS='1')

import torch  # noqa: E402
from vllm.model_executor.model_loader import get_model_loader  # noqa: E402
from vllm.model_executor.model_loader.utils import initialize_model  # noqa: E402
from vllm.model_executor.model_loader.weight_checksum import compute_tensor_digests  # noqa: E402
from vllm.utils.torch_utils import set_default_torch_dtype  # noqa: E402
from vllm.v1.worker import gpu_worker  # noqa: E402
from vllm.v1.worker.gpu_model_runner import GPUModelRunner  # noqa: E402
from vllm.v1.worker.worker_base import CompilationTimes  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36


class Runner:
    reload_weights = GPUModelRunner.reload_weights
    get_kv_cache_spec = GPUModelRunner.get_kv_cache_spec
    model_memory_usage = 0

    def __init__(self, config):
        self.vllm_config = config

    def load_model(self, load_dummy_weights):
        self.model = loaded(self.vllm_config, self.vllm_config.model_config.model)

    def get_model(self):
        return self.model

    def get_supported_tasks(self):
        return ('generate',)

    def nothing(self):
        pass

    reset_lora_state = reset_encoder_cache = reset_mm_cache = shutdown = nothing


class Worker(gpu_worker.Worker):
    """A worker without a device, and with calls for the tests."""

    def init_device(self):
        self.device = torch.device('cpu')
        gpu_worker.init_worker_distributed_environment(self.vllm_config, self.rank, self.distributed_init_method, self.local_rank, 'gloo')
        self.model_runner = Runner(self.vllm_config)

    def _scoped_allocator_max_split(self, max_split_size_mb):
        return contextlib.nullcontext()

    def determine_available_memory(self):
        return 1 << 24

    def initialize_from_config(self, kv_cache_config):
        pass

    def compile_or_warm_up_model(self):
        return CompilationTimes(0.0, 0.0)

    def digests_of(self, path):
        """Of the parameters that vLLM's loader makes of a folder, by their names."""
        layers = self.vllm_config.compilation_config.static_forward_context
        self.vllm_config.compilation_config.static_forward_context = {}
        try:
            with gpu_worker.set_current_vllm_config(self.vllm_config):
                return {self._weight_checksum_prefix() + name: digest
                        for name, digest in compute_tensor_digests(loaded(self.vllm_config, path)).items()}
        finally:
            self.vllm_config.compilation_config.static_forward_context = layers

    def process(self):
        return os.getpid()

    def fail_reload(self, times):
        """The next reloads end in the middle: some parameters are new, some old."""
        load = self.model_runner.model.load_weights

        def failing(weights):
            self.failing -= 1
            if self.failing == 0:
                del self.model_runner.model.load_weights
            half = list(weights)
            load(half[:len(half) // 2])
            raise RuntimeError('the disk is gone')
        self.failing = times
        self.model_runner.model.load_weights = failing

    def hold_reload(self, path):
        """The next reload makes the file PATH.held, and waits until PATH exists."""
        load = self.model_runner.model.load_weights

        def held(weights):
            del self.model_runner.model.load_weights
            open(f'{path}.held', 'w').close()
            while not os.path.exists(path):
                time.sleep(0.01)
            return load(weights)
        self.model_runner.model.load_weights = held

    def break_next(self, dp, rank, what):
        """The next change of one worker fails: pairs: one element is wrong; undo: it also cannot be taken back; kill: the worker is killed when half of
        it is written."""
        from tests.support.vllm_broken import Broken
        if (self.parallel_config.data_parallel_index, self.rank) != (dp, rank):
            return
        engine = self.weight_transfer_engine
        find = engine._find

        def broken(number):
            engine._find = find
            staged = find(number)
            return dataclasses.replace(staged, move=Broken(staged.move, what))
        engine._find = broken


def loaded(config, path):
    """The model, with the weights of a folder."""
    model = config.model_config.model
    config.model_config.model = path
    try:
        with set_default_torch_dtype(config.model_config.dtype):
            made = initialize_model(config)
        get_model_loader(config.load_config).load_weights(made, config.model_config)
    finally:
        config.model_config.model = model
    return made


def prepare():
    """Imports what a server needs, and does without what it need not have."""
    import vllm.entrypoints.openai.api_server  # noqa: F401
    import vllm.model_executor.models.llama  # noqa: F401
    from vllm.entrypoints.launchers import app
    from vllm.entrypoints.serve.sagemaker import api_router
    from vllm.platforms.cpu import CpuPlatform
    api_router.attach_router = lambda *_: None
    app.sagemaker_standards_bootstrap = lambda made: made
    check = CpuPlatform.check_and_update_config

    def check_and_fork(config):
        check(config)
        os.environ['VLLM_WORKER_MULTIPROC_METHOD'] = 'fork'
    CpuPlatform.check_and_update_config = staticmethod(check_and_fork)


if __name__ != 'tests.support.vllm_process':  # API servers are spawned where there are several, and import this as __mp_main__
    prepare()


def start(arguments, environment, log):
    child = os.fork()
    if child:
        return child
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(written, 1)
    os.dup2(written, 2)
    from vllm.entrypoints.cli.main import main
    sys.argv = ['vllm', 'serve', *arguments]
    main()
    os._exit(0)


def main():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody else waits for them, nor for those whose parent is killed
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    for line in sys.stdin:
        print(start(**json.loads(line)), flush=True)


if __name__ == '__main__':
    main()
