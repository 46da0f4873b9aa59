"""Inference servers as the recipes of contrib/engines meet them: as strict as the stock ones (vLLM
0.33.0 in dev mode, SGLang 0.5.23, prime-rl's server, checkpoint-engine 0.4.2). A path that they do
not have is 404, a body of another shape 422, a session that failed has ended.

`faults[path]` lists what becomes of the next calls of a path: 'fail' (500, nothing done), 'mix'
(500, half of it done), 'hang' (no answer until `let_go` is set), 'drop' (done, but the connection
ends without an answer), 'die' (the server is gone), or None.
"""

import contextlib
import http.server
import json
import os
import socket
import socketserver
import threading
import time
import urllib.parse
import urllib.request


class Refusal(Exception):
    def __init__(self, status, detail):
        super().__init__(detail)
        self.status, self.detail = status, detail


def require(condition, status, detail):
    if not condition:
        raise Refusal(status, detail)


def text(body, name):
    require(isinstance(body.get(name), str), 422, f'{name}: Input should be a valid string')
    return body[name]


def model_files(folder):
    """What a loader finds in the folder; it takes absolute paths alone."""
    require(os.path.isabs(folder) and os.path.isdir(folder), 500, f'{folder} is not a folder')
    names = [name for name in os.listdir(folder) if name.endswith('.safetensors')]
    require(names, 500, f'{folder} has no weights')
    return names


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def body(self):
        raw = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if not raw:
            return {}
        require(
            self.headers.get('Content-Type') == 'application/json',
            422,
            'Input should be a valid dictionary',
        )
        try:
            read = json.loads(raw)
        except ValueError as failure:
            raise Refusal(422, 'JSON decode error') from failure
        require(isinstance(read, dict), 422, 'Input should be a valid dictionary')
        return read

    def serve(self):
        engine = self.server.engine
        engine.meeting += 1
        try:
            self.answer(engine)
        finally:
            engine.meeting -= 1

    def answer(self, engine):
        target = urllib.parse.urlsplit(self.path)
        try:
            body = self.body()
            engine.calls.append((target.path, body))
            if engine.token is not None:
                require(
                    self.headers.get('Authorization') == f'Bearer {engine.token}',
                    401,
                    'Unauthorized',
                )
            status, answer = engine.meet(
                self, target.path, dict(urllib.parse.parse_qsl(target.query)), body
            )
        except Refusal as refusal:
            status, answer = refusal.status, {'detail': refusal.detail}
        except ConnectionError:
            self.close_connection = True
            return
        with contextlib.suppress(ConnectionError):  # a script that was killed does not listen
            self.reply(status, answer)

    def reply(self, status, answer):
        raw = json.dumps(answer).encode() if answer is not None else b''
        self.send_response(status)
        self.send_header('Content-Length', str(len(raw)))
        self.end_headers()
        if raw:
            self.wfile.write(raw)

    do_POST = do_DELETE = do_GET = serve

    def address_string(self):
        return 'local'

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, engine):
        super().__init__(('127.0.0.1', 0), Handler)
        self.engine = engine


class SocketServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, engine, path):
        super().__init__(path, Handler)
        self.engine = engine


class Engine:
    """What all have in common: a table of calls, and what was done. `weights` is the folder that
    was loaded last, or 'mixed'. `prefixes`: whether some are cached that are older than it."""

    token = None
    routes = {}

    def __init__(self, path=None):
        self.server = SocketServer(self, path) if path else Server(self)
        self.calls, self.faults = [], {}
        self.paused, self.weights, self.version = False, None, None
        self.prefixes = 'none'
        self.let_go, self.hanging = threading.Event(), threading.Event()
        self.alive, self.meeting = True, 0
        threading.Thread(
            target=self.server.serve_forever, kwargs={'poll_interval': 0.02}, daemon=True
        ).start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server.server_port}'

    def paths(self):
        return [path for path, _ in self.calls]

    def close(self):
        self.let_go.set()
        self.end()

    def settle(self):
        """Waits until what was begun is done."""
        self.let_go.set()
        deadline = time.monotonic() + 20
        while self.meeting and time.monotonic() < deadline:
            time.sleep(0.01)

    def end(self):
        if self.alive:
            self.alive = False
            self.server.shutdown()
            self.server.server_close()

    def find(self, path):
        require(path in self.routes, 404, 'Not Found')
        return getattr(self, self.routes[path])

    def meet(self, handler, path, query, body):
        perform = self.find(path)
        require(handler.command == 'POST', 405, 'Method Not Allowed')
        return 200, self.perform(handler, path, lambda: perform(query, body))

    def perform(self, handler, path, act):
        faults = self.faults.get(path, [])
        fault = faults.pop(0) if faults else None
        if fault == 'hang':
            self.hanging.set()
            self.let_go.wait(60)
        if fault == 'mix':
            self.weights, self.prefixes = 'mixed', 'old'
        if fault == 'die':
            threading.Thread(target=self.end).start()
        if fault in ('fail', 'mix', 'die'):
            self.failed(path)
        if fault == 'die':
            handler.connection.shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError
        require(fault not in ('fail', 'mix'), 500, 'it went wrong')
        answer = act()
        if fault == 'drop':
            handler.connection.shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError
        return answer

    def failed(self, path):
        """What a call that fails leaves behind."""

    def load(self, folder):
        model_files(folder)
        self.weights, self.prefixes = folder, 'old'


class Vllm(Engine):
    """With `backend`: a weight transfer backend of one's own that takes {"path"}, and wants to be
    initialised first when `wants_init`."""

    routes = {
        '/pause': 'pause',
        '/resume': 'resume',
        '/collective_rpc': 'collective_rpc',
        '/update_weight_version': 'set_version',
        '/reset_prefix_cache': 'reset_prefix_cache',
        '/init_weight_transfer_engine': 'initialise',
        '/start_weight_update': 'start',
        '/update_weights': 'update',
        '/finish_weight_update': 'finish',
    }

    def __init__(self, dev_mode=True, backend=False, wants_init=False, path=None):
        super().__init__(path)
        self.backend, self.ready, self.session = backend, not wants_init, False
        if not dev_mode:
            self.routes = {}

    def pause(self, query, _):
        mode = query.get('mode', 'abort')
        require(mode in ('abort', 'wait', 'keep'), 422, "Input should be 'abort', 'wait' or 'keep'")
        self.paused = True
        return {'status': 'paused'}

    def resume(self, _, __):
        self.paused = False
        return {'status': 'resumed'}

    def collective_rpc(self, _, body):
        require('method' in body, 400, "Missing 'method' in request body")
        require(
            isinstance(body.get('kwargs', {}), dict) and isinstance(body.get('args', []), list),
            500,
            'no such arguments',
        )
        perform = {'reload_weights': self.reload, **self.extension()}.get(body['method'])
        require(perform is not None, 500, f'the worker has no {body["method"]}')
        try:
            perform(*body.get('args', []), **body.get('kwargs', {}))
        except TypeError as failure:
            raise Refusal(500, str(failure)) from failure
        return {'results': [None]}

    def extension(self):
        return {}

    def reload(self, weights_path=None):
        require(isinstance(weights_path, str), 500, 'the model it was started with')
        self.load(weights_path)

    def set_version(self, _, body):
        self.version = text(body, 'new_version')
        return {'success': True, 'new_version': self.version}

    def reset_prefix_cache(self, query, _):
        done = query.get('reset_running_requests') == 'true'
        self.prefixes = 'none' if done else self.prefixes
        return {'success': done}

    def initialise(self, _, body):
        require(isinstance(body.get('init_info'), dict), 422, 'init_info: Field required')
        require(self.backend, 500, 'Weight transfer not configured')
        self.ready = True
        return {'message': 'Weight transfer initialized'}

    def start(self, _, __):
        require(
            self.backend and not self.session,
            500,
            'start_weight_update called while a weight update is already active',
        )
        self.session = True
        return {'message': 'Weight update started'}

    def update(self, _, body):
        require(
            isinstance(body.get('update_info'), (dict, list)), 422, 'update_info: Field required'
        )
        require(self.session, 500, 'start_weight_update must be called before update_weights.')
        self.session = False  # unless all goes well
        require(self.ready, 500, 'the backend is not initialized')
        require(set(body['update_info']) == {'path'}, 500, 'unexpected keyword argument')
        self.load(body['update_info']['path'])
        self.session = True
        return {'message': 'Weights updated'}

    def finish(self, _, body):
        require(
            isinstance(body.get('weight_version'), (str, type(None))),
            422,
            'Input should be a valid string',
        )
        require(self.session, 500, 'finish_weight_update called without a start.')
        self.session = False
        self.version = body.get('weight_version') or self.version
        return {'message': 'Weight update finished'}

    def failed(self, path):
        self.session = self.session and path != '/update_weights'


class Sglang(Engine):
    """It was started with --load-format dummy: an update that does not name another one is
    refused."""

    routes = {
        '/pause_generation': 'pause',
        '/continue_generation': 'resume',
        '/update_weights_from_disk': 'update',
        '/update_weight_version': 'set_version',
        '/flush_cache': 'flush',
    }

    def __init__(self):
        super().__init__()
        self.aborted = False

    def flush(self, _, __):
        self.prefixes = 'none'

    def pause(self, _, body):
        require(body.get('mode', 'abort') in ('abort', 'in_place', 'retract'), 422, 'invalid mode')
        self.paused = True
        return {'message': 'Generation paused successfully.', 'status': 'ok'}

    def resume(self, _, body):
        require(set(body) <= {'torch_empty_cache'}, 422, 'unexpected field')
        self.paused = False
        return {'message': 'Generation continued successfully.', 'status': 'ok'}

    def update(self, _, body):
        text(body, 'model_path')
        require(
            isinstance(body.get('weight_version', ''), str),
            422,
            'weight_version: Input should be a valid string',
        )
        require(
            isinstance(body.get('flush_cache', True), bool),
            422,
            'flush_cache: Input should be a valid boolean',
        )
        try:
            require(
                body.get('load_format') == 'auto', 400, 'the model loader is not the default one'
            )
            self.load(body['model_path'])
        except Refusal as refusal:
            raise Refusal(
                400, {'success': False, 'message': refusal.detail, 'num_paused_requests': 0}
            ) from refusal
        self.version = body.get('weight_version')
        if body.get('flush_cache', True):
            self.flush(None, None)
        return {
            'success': True,
            'message': 'Succeeded to update model weights.',
            'num_paused_requests': 0,
        }

    def set_version(self, _, body):
        self.version = text(body, 'new_version')
        self.aborted |= body.get('abort_all_requests', True)
        return {'success': True, 'message': 'so it is', 'new_version': self.version}


class PrimeRl(Engine):
    """With `forgets`: an older one, whose update forgets cached prefixes. The others have a call for
    it in dev mode."""

    pause, resume, reset_prefix_cache = Vllm.pause, Vllm.resume, Vllm.reset_prefix_cache

    def __init__(self, dev_mode=True, forgets=False):
        super().__init__()
        self.forgets = forgets
        self.routes = {'/pause': 'pause', '/resume': 'resume', '/update_weights': 'update'}
        if dev_mode:
            self.routes['/reset_prefix_cache'] = 'reset_prefix_cache'

    def update(self, _, body):
        require(isinstance(body.get('weight_dir'), str), 500, 'it waits for a broadcast')
        self.load(body['weight_dir'])
        self.prefixes = 'none' if self.forgets else self.prefixes
        return {'status': 'ok'}


class CheckpointVllm(Vllm):
    """vLLM with checkpoint-engine's worker extension."""

    def extension(self):
        return {'update_weights_from_ipc': self.take}

    def take(self, paths):
        self.weights, self.prefixes = paths, 'old'


class ParameterServers:
    """One for each rank. Gathering and updating are collective: they end when all ranks have been
    asked."""

    def __init__(self, folder, ranks):
        self.barrier = threading.Barrier(ranks, timeout=20)
        self.ranks = [
            ParameterServer(self, rank, os.path.join(folder, f'{rank}.sock'))
            for rank in range(ranks)
        ]

    @property
    def sockets(self):
        return ' '.join(rank.server.server_address for rank in self.ranks)

    def close(self):
        for rank in self.ranks:
            rank.close()

    def meet(self):
        try:
            self.barrier.wait()
        except threading.BrokenBarrierError as failure:
            raise Refusal(500, 'a rank is missing') from failure


class ParameterServer(Engine):
    def __init__(self, group, rank, path):
        super().__init__(path)
        self.group, self.rank, self.held, self.gathered = group, rank, {}, None

    def find(self, path):
        words = path.strip('/').split('/')
        require(words[:2] == ['v1', 'checkpoints'] and len(words) in (3, 4), 404, 'Not Found')
        actions = {'files': self.register, 'gather-metas': self.gather, 'update': self.update}
        require(len(words) == 3 or words[3] in actions, 404, 'Not Found')
        return lambda query, body: actions[words[3]](words[2], body)

    def meet(self, handler, path, query, body):
        if handler.command == 'DELETE' and path.count('/') == 3:
            name = path.split('/')[3]
            return 200, self.perform(handler, path, lambda: self.held.pop(name, None) and None)
        return super().meet(handler, path, query, body)

    def register(self, name, body):
        require(isinstance(body.get('files'), list), 422, 'files: Field required')
        require(name not in self.held, 500, f'checkpoint {name} already registered')
        require(all(os.path.isfile(file) for file in body['files']), 500, 'no such file')
        self.held[name] = body['files']

    def gather(self, name, _):
        self.group.meet()
        self.gathered = name

    def update(self, name, body):
        require(
            isinstance(body.get('update_url', ''), str),
            422,
            'update_url: Input should be a valid string',
        )
        require(
            isinstance(body.get('timeout', 300), (int, float)),
            422,
            'timeout: Input should be a valid number',
        )
        require(self.gathered == name and name in self.held, 500, 'gather_metas was not called')
        self.group.meet()
        if body.get('update_url'):
            self.ask(
                body['update_url'],
                sorted(file for rank in self.group.ranks for file in rank.held[name]),
            )

    @staticmethod
    def ask(url, files):
        request = urllib.request.Request(
            url,
            json.dumps({'method': 'update_weights_from_ipc', 'args': [files]}).encode(),
            {'Content-Type': 'application/json'},
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                answer.read()
        except OSError as failure:
            raise Refusal(500, str(failure)) from failure
