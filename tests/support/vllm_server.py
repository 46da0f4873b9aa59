"""vLLM without a GPU: its own models, workers' code, engine client's code, routers and plug-ins in a server that generates nothing. Run by vLLM's
Python: vllm_server.py MODEL-FOLDER TENSOR-PARALLEL PORT RANKS-PORT KERNELS. KERNELS: those of `deltabucket.gpu`, compiled for the host
(tests/support/device_machine.py), which stand for a GPU; '' for none.

Real: the model, gpu_worker.Worker's update session, the factory, AsyncLLM's calls, the routes of /pause to /resume and /health, the loading of
plug-ins. Not real: the engine core with its scheduler (a flag says whether it is paused) and the processes' ways of talking. Routes of its own, for the
tests: /test/holds?path=FOLDER says whether the parameters of all ranks are what vLLM's loader makes of that folder, /test/write?rank=R&name=N changes
a parameter behind everybody's back, and back again the second time, /test/break?rank=R&what=W makes the next move of a rank fail (W: delta, pairs, or
undo: pairs, and it cannot be taken back),
/test/calls lists what the engine core was told.
"""
import asyncio
import contextlib
import copy
import ctypes
import dataclasses
import hashlib
import json
import multiprocessing
import os
import signal
import sys
import unittest.mock

os.environ.update(VLLM_TARGET_DEVICE='cpu', HF_HUB_OFFLINE='1', VLLM_LOGGING_LEVEL='WARNING', OMP_NUM_THREADS='1')


PR_SET_PDEATHSIG = 1  # a rank ends with its server, however that ends
# Run as a program, this folder comes first, and has modules of its own.
sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]


def config_of(folder, tensor_parallel):
    from vllm.engine.arg_utils import EngineArgs
    return EngineArgs(model=folder, skip_tokenizer_init=True, tensor_parallel_size=tensor_parallel, enforce_eager=True, dtype='bfloat16',
                      distributed_executor_backend='mp', weight_transfer_config={'backend': 'deltabucket'}, use_tqdm_on_load=False,
                      **json.loads(os.environ.get('VLLM_TEST_ARGUMENTS', '{}'))).create_engine_config()


def supply_logger():
    """A stand-in for loguru, with which vLLM's code for quantised models prints, where the environment lacks it."""
    with contextlib.suppress(ImportError):
        import loguru  # noqa: F401
        return
    sys.modules['loguru'] = unittest.mock.MagicMock()


def supply_packing():
    """What packs experts for a CPU is compiled code that vLLM's wheel for GPUs lacks. In its place: rows in another order where the test wants packed
    experts, else as they are."""
    import torch
    library = torch.library.Library('_C', 'FRAGMENT')
    library.define('prepack_moe_weight(Tensor weight, Tensor(a!) output, str isa) -> ()')

    def pack(weight, output, isa):
        output.copy_(weight.flip(1) if os.environ.get('VLLM_TEST_PACKED') else weight)
    library.impl('prepack_moe_weight', pack, 'CPU')
    return library


class Runner:
    """The part of a model runner that a worker's update session uses."""

    def __init__(self, model, draft):
        self.model, self.draft = model, draft
        self.lora_resets = 0

    def get_draft_model(self):
        return self.draft

    def get_model(self):
        return self.model

    def reset_lora_state(self):
        self.lora_resets += 1


def machine_of(kernels):
    """What applies deltas in this process, if anything does, which the backend uses from now on."""
    if not kernels:
        return None
    from deltabucket.vllm.engine import StepEngine
    from tests.support.device_machine import DeviceMachine
    machine = DeviceMachine(kernels)
    StepEngine.machine_of = staticmethod(lambda device: machine)
    return machine


class Rank:
    """A worker: vLLM's, without a device."""

    def __init__(self, folder, tensor_parallel, rank, port, kernels):
        import torch
        from vllm.config import set_current_vllm_config
        from vllm.distributed import init_distributed_environment, initialize_model_parallel
        from vllm.distributed.weight_transfer import WeightTransferEngineFactory
        from vllm.plugins import load_general_plugins
        from vllm.v1.worker.gpu_worker import Worker
        torch.set_num_threads(1)
        self.library = supply_packing()
        load_general_plugins()
        self.machine = machine_of(kernels)
        config = config_of(folder, tensor_parallel)
        config.parallel_config.rank = rank
        with set_current_vllm_config(config):
            init_distributed_environment(tensor_parallel, rank, f'tcp://127.0.0.1:{port}', rank, 'gloo')
            initialize_model_parallel(tensor_parallel)
        self.config = config
        self.model = self.loaded(folder)
        worker = Worker.__new__(Worker)
        worker.vllm_config, worker.parallel_config, worker.rank = config, config.parallel_config, rank
        self.draft = self.loaded_draft(folder, self.model)
        worker.speculative_config = config.speculative_config
        worker.model_runner = Runner(self.model, self.draft)
        worker._weight_update_active = worker._weight_update_is_draft = False
        # as Worker.load_model does
        worker.weight_transfer_engine = WeightTransferEngineFactory.create_engine(config.weight_transfer_config, config, torch.device('cpu'), self.model)
        self.worker = worker

    def loaded(self, folder):
        """What vLLM makes of a checkpoint."""
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.model_loader import get_model
        config = copy.copy(self.config)
        config.model_config = copy.copy(config.model_config)
        config.model_config.model = folder
        with set_current_vllm_config(config):
            config.compilation_config.static_forward_context.clear()
            return get_model(vllm_config=config)

    def loaded_draft(self, folder, model):
        """The draft model for this one, with what it shares, or None."""
        import types
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.model_loader import get_model
        from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer
        speculative = self.config.speculative_config
        if speculative is None:
            return None
        config = copy.copy(speculative.draft_model_config)
        config.model = folder if config.model == self.config.model_config.model else config.model
        proposer = types.SimpleNamespace(vllm_config=self.config, use_local_argmax_reduction=False)
        with set_current_vllm_config(self.config):
            proposer.model = get_model(vllm_config=self.config, model_config=config)
        SpecDecodeBaseProposer._maybe_share_embeddings(proposer, model)
        SpecDecodeBaseProposer._maybe_share_lm_head(proposer, model)
        return proposer.model

    def sums(self, model):
        import torch
        return {name: hashlib.sha256(parameter.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
                for name, parameter in [*model.named_parameters(), *model.named_buffers()]}

    def holds(self, path):
        model = self.loaded(path)
        draft = self.loaded_draft(path, model)
        return self.sums(self.model) == self.sums(model) and (draft is None or self.sums(self.draft) == self.sums(draft))

    def write(self, name='model.norm.weight'):
        import torch
        dict(self.model.named_parameters())[name].data.view(torch.uint8).bitwise_xor_(1)

    def break_next(self, what):
        """The next move leaves one element wrong."""
        from tests.support.vllm_broken import Broken
        engine = self.worker.weight_transfer_engine
        find = engine._find

        def broken(number):
            engine._find = find
            staged = find(number)
            if what == 'delta':
                self.machine.before = self.break_delta
                return staged
            return dataclasses.replace(staged, move=Broken(staged.move, what))
        engine._find = broken

    def break_delta(self, kernel):
        """The kernels find another base, and so does whoever looks before they take their work back."""
        if kernel in ('device_apply', 'device_undo'):
            self.write()
            self.machine.before = self.break_delta if kernel == 'device_apply' else lambda kernel: None

    def call(self, method, kwargs):
        own = {'holds': self.holds, 'write': self.write, 'break_next': self.break_next}.get(method)
        return (own or getattr(self.worker, method))(**kwargs)


def run_rank(folder, tensor_parallel, rank, port, kernels, pipe):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    made = Rank(folder, tensor_parallel, rank, port, kernels)
    pipe.send(None)
    while True:
        method, kwargs = pipe.recv()
        try:
            pipe.send((True, made.call(method, kwargs)))
        except Exception as failure:
            pipe.send((False, f'{type(failure).__name__}: {failure}'))


class Ranks:
    def __init__(self, folder, tensor_parallel, port, kernels):
        # Forked, as vLLM's modules take long to be imported: once is enough.
        import vllm.entrypoints.rl.online.api_router  # noqa: F401
        import vllm.model_executor.models.llama  # noqa: F401
        import vllm.v1.worker.gpu_worker  # noqa: F401
        context = multiprocessing.get_context('fork')
        self.pipes = []
        for rank in range(tensor_parallel):
            here, there = context.Pipe()
            context.Process(target=run_rank, args=(folder, tensor_parallel, rank, port, kernels, there), daemon=True).start()
            there.close()
            self.pipes.append(here)
        for pipe in self.pipes:
            pipe.recv()

    def call(self, method, kwargs, only=None):
        pipes = self.pipes if only is None else [self.pipes[only]]
        for pipe in pipes:
            pipe.send((method, kwargs))
        answers = [pipe.recv() for pipe in pipes]
        for is_fine, answer in answers:
            if not is_fine:
                raise Exception(f'Call to collective_rpc method failed: {answer}')
        return [answer for _, answer in answers]


class Core:
    """The engine core as AsyncLLM calls it."""

    def __init__(self):
        self.paused, self.version, self.calls = False, 'default', []

    def note(self, name, *what):
        self.calls.append([name, *what])

    async def pause_generation_async(self, mode, clear_cache):
        self.note('pause', mode)
        self.paused = True

    async def resume_scheduler_async(self):
        self.note('resume')
        self.paused = False

    async def is_scheduler_paused_async(self):
        return self.paused

    async def set_weight_version_async(self, version):
        self.note('version', version)
        self.version = version

    async def get_weight_version_async(self):
        return self.version

    async def reset_prefix_cache_async(self, reset_running_requests, reset_connector):
        self.note('reset_prefix_cache', reset_running_requests)
        return True


class Renderer:
    async def clear_mm_cache_async(self):
        pass


def client_of(ranks, config):
    """AsyncLLM's own methods over these ranks."""
    from vllm.v1.engine.async_llm import AsyncLLM

    class Client:
        def __init__(self):
            self.vllm_config, self.renderer, self.engine_core = config, Renderer(), Core()
            self.lock = asyncio.Lock()

        async def collective_rpc(self, method, timeout=None, args=(), kwargs=None):
            async with self.lock:
                self.engine_core.note('rpc', method)
                return await asyncio.get_running_loop().run_in_executor(None, ranks.call, method, kwargs or {})

        async def check_health(self):
            pass
    for name in ('pause_generation', 'resume_generation', 'is_paused', 'init_weight_transfer_engine', 'start_weight_update', 'update_weights',
                 'start_draft_weight_update', 'finish_weight_update', 'update_weight_version', 'get_weight_version', 'reset_prefix_cache'):
        setattr(Client, name, getattr(AsyncLLM, name))
    return Client()


def app_of(ranks, config):
    from fastapi import FastAPI
    from fastapi.responses import JSONResponse
    from vllm.entrypoints.rl.online.api_router import router
    from vllm.entrypoints.serve.instrumentator.health import router as health
    from vllm.plugins.endpoint_plugins.interface import attach_endpoint_plugins, init_endpoint_plugins_state

    @contextlib.asynccontextmanager
    async def lifespan(app):
        app.state.engine_client = client_of(ranks, config)
        await init_endpoint_plugins_state(app.state.engine_client, app.state, None)
        yield
    app = FastAPI(lifespan=lifespan)
    app.include_router(router)
    app.include_router(health)
    attach_endpoint_plugins(app, ('generate',))

    @app.exception_handler(Exception)
    async def failed(request, failure):
        return JSONResponse({'error': str(failure)}, 500)

    @app.get('/test/holds')
    async def holds(path: str):
        loop = asyncio.get_running_loop()
        async with app.state.engine_client.lock:
            return all(await loop.run_in_executor(None, ranks.call, 'holds', {'path': path}))

    @app.post('/test/write')
    async def write(rank: int, name: str):
        ranks.call('write', {'name': name}, rank)

    @app.post('/test/break')
    async def break_next(rank: int, what: str):
        ranks.call('break_next', {'what': what}, rank)

    @app.get('/test/calls')
    async def calls():
        return app.state.engine_client.engine_core.calls
    return app


def main():
    import uvicorn
    supply_logger()
    folder, tensor_parallel, port, rendezvous = sys.argv[1], *map(int, sys.argv[2:5])
    ranks = Ranks(folder, tensor_parallel, rendezvous, sys.argv[5])
    uvicorn.run(app_of(ranks, config_of(folder, tensor_parallel)), host='127.0.0.1', port=port, log_level='warning')


if __name__ == '__main__':
    main()
