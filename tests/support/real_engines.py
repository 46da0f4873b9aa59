"""vLLM and SGLang as they are started (vllm_process.py, sglang_process.py), for tests."""
import contextlib
import json
import os
import signal
import subprocess
import time

from tests.support.clients import INSTALLED
from tests.support.daemon import SOURCE, free_port
from tests.support.package import PACKAGE, variables_of
from tests.support.vllm_models import PYTHON, Refused, VllmServer, announce

SGLANG = os.path.join(INSTALLED, 'sglang')
START_SECONDS = 300
END_SECONDS = 120


def variables(folder, **more):
    """For an engine's process: none of ours but those that are given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith('DELTABUCKET_')}
    return {**kept, 'HOME': folder, **more}


class Program:
    """A module that runs in vLLM's Python, and answers lines with lines."""

    def __init__(self, *words, env, stderr):
        self.process = subprocess.Popen([PYTHON, '-m', *words], cwd=SOURCE, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)


class Zygote(Program):
    """Starts servers of vLLM, each within seconds."""

    def __init__(self, folder):
        entries = os.path.join(folder, 'entries')
        announce(entries)
        self.log = open(os.path.join(folder, 'zygote.log'), 'w+')
        super().__init__('tests.support.vllm_process', env=variables(folder, PYTHONPATH=os.pathsep.join([PACKAGE, entries, SOURCE])), stderr=self.log)

    def __exit__(self, *failure):
        super().__exit__(*failure)
        self.log.close()

    def start(self, arguments, environment, log):
        self.ask(json.dumps({'arguments': arguments, 'environment': environment, 'log': log}))
        while not (line := self.process.stdout.readline()).strip().isdigit():
            if not line:
                raise AssertionError(f'vLLM cannot be imported: {tail(self.log.name)}')
        return int(line)


def tail(path):
    with open(path, errors='replace') as file:
        return file.read()[-4000:]


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


class RealVllm(VllmServer):
    """`vllm serve MODEL` in dev mode. With `plugin`, its weight transfer backend is ours; with `run`, the endpoint follows it into `into`."""

    def __init__(self, zygote, model, folder, tensor_parallel=1, data_parallel=1, plugin=False, daemon=None, run=None, into=None, **more):
        self.folder, self.zygote, self.port = folder, zygote, free_port()
        self.state = f'{into}.engine' if into else os.path.join(folder, 'state')
        self.arguments = [model, '--host', '127.0.0.1', '--port', str(self.port), '--worker-cls', 'tests.support.vllm_process.Worker',
                          '--skip-tokenizer-init', '--enforce-eager', '--dtype', 'bfloat16', '--tensor-parallel-size', str(tensor_parallel),
                          '--distributed-executor-backend', 'mp', '--data-parallel-size', str(data_parallel)]
        self.environment = {'VLLM_SERVER_DEV_MODE': '1', 'VLLM_PLUGINS': '', 'DELTABUCKET_RUN': run or '', 'DELTABUCKET_INTO': into or '',
                            **variables_of(daemon), **more}
        if plugin:
            self.arguments += ['--weight-transfer-config', '{"backend":"deltabucket"}']
            self.environment['VLLM_PLUGINS'] = 'deltabucket'

    def __enter__(self):
        self.log_path = os.path.join(self.folder, 'vllm.log')
        self.process = self.zygote.start(self.arguments, self.environment, self.log_path)
        limit = time.monotonic() + START_SECONDS
        while True:
            try:
                self.get('/health')
                return self
            except (OSError, Refused):
                if not is_alive(self.process) or time.monotonic() > limit:
                    self.__exit__()
                    raise AssertionError(f'vLLM did not start: {tail(self.log_path)}') from None
                time.sleep(0.05)

    def __exit__(self, *_):
        """Ends all of it at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        self.wait()

    def wait(self):
        """Until no process of it is left."""
        limit = time.monotonic() + END_SECONDS
        while True:
            try:
                os.killpg(self.process, 0)
            except ProcessLookupError:
                return
            if time.monotonic() > limit:
                raise AssertionError(f'processes are left: {tail(self.log_path)}')
            time.sleep(0.05)

    def printed(self):
        return tail(self.log_path)

    def rpc(self, method, **arguments):
        """What the workers of the first engine answer; the others are asked, too."""
        return self.call('/collective_rpc', {'method': method, 'kwargs': arguments})['results']

    def workers(self):
        return [int(process) for process in self.rpc('process')]

    def checksums(self):
        return self.call('/weight_checker', {'action': 'checksum'})['checksums']

    def holds(self, path):
        """Whether all workers of all engines have what vLLM's loader makes of the folder."""
        wanted = {}
        for digests in self.rpc('digests_of', path=path):
            wanted.update((without_engine(name), digest) for name, digest in digests.items())
        held = self.checksums()
        return all(wanted[without_engine(name)] == digest for name, digest in held.items()) and {without_engine(name) for name in held} == set(wanted)


def without_engine(name):
    """Engines of a dense model are alike."""
    return name.split(':', 1)[1]


class Sglang(RealVllm):
    def __init__(self, model, folder, *arguments):
        self.folder, self.port = folder, free_port()
        self.arguments = ['--model-path', model, '--device', 'cpu', '--host', '127.0.0.1', '--port', str(self.port), '--skip-tokenizer-init',
                          '--skip-server-warmup', '--disable-overlap-schedule', '--cuda-graph-backend-decode=disabled',
                          '--cuda-graph-backend-prefill=disabled', '--max-total-tokens', '1024', *arguments]
        self.fault = os.path.join(folder, 'fault')
        self.environment = {**variables_of_sglang(folder), 'SGLANG_FAULT': self.fault}

    def __enter__(self):
        self.log_path = os.path.join(self.folder, 'sglang.log')
        with open(self.log_path, 'a') as log:
            self.process = subprocess.Popen([PYTHON, '-m', 'tests.support.sglang_process', *self.arguments], cwd=SOURCE, env=self.environment,
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        limit = time.monotonic() + START_SECONDS
        while True:
            try:
                self.get('/health')
                return self
            except (OSError, Refused):
                if self.process.poll() is not None or time.monotonic() > limit:
                    self.__exit__()
                    raise AssertionError(f'SGLang did not start: {tail(self.log_path)}') from None
                time.sleep(0.1)

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def break_next(self, what):
        """The next load: fail, hold."""
        with open(f'{self.fault}.part', 'w') as file:
            file.write(what)
        os.rename(f'{self.fault}.part', self.fault)

    def is_held(self):
        return os.path.exists(f'{self.fault}.held')

    def go(self):
        os.unlink(f'{self.fault}.held')

    def is_paused(self):
        try:
            self.get('/ready')
        except Refused:
            return True
        return False

    def checksums(self):
        rank, = self.call('/weights_checker', {'action': 'checksum'})['ranks']
        return rank['checksums']


def variables_of_sglang(folder):
    return variables(folder, PYTHONPATH=os.pathsep.join([SGLANG, SOURCE]), SGLANG_USE_CPU_ENGINE='1', HF_HUB_OFFLINE='1', OMP_NUM_THREADS='1')


class SglangJudge(Program):
    """Says what /weights_checker must tell of a folder."""

    def __init__(self, folder):
        super().__init__('tests.support.sglang_process', '--judge', env=variables_of_sglang(folder), stderr=subprocess.DEVNULL)

    def __call__(self, path):
        self.ask(path)
        return json.loads(self.process.stdout.readline())
