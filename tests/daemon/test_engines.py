"""The recipes of contrib/engines, run by `deltabucket follow --exec` against a small engine that remembers what it was asked."""
import http.server
import json
import os
import shutil
import tempfile
import threading
import unittest

from tests.support.checkpoints import expand_small
from tests.support.daemon import SOURCE, Daemon

THREADS_MEET = False
ENGINES = os.path.join(SOURCE, 'contrib', 'engines')


class Engine(http.server.ThreadingHTTPServer):
    """Answers 200 to all but the paths in `failing`, as often as that says."""

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.calls, self.failing, self.refusing = [], {}, {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server_port}'

    def paths(self):
        return [path for path, _ in self.calls]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        self.server.calls.append((self.path, json.loads(body or b'{}')))
        failing = self.server.failing.get(self.path, 0)
        refusing = self.server.refusing.get(self.path, 0)
        if failing > 0:
            self.server.failing[self.path] = failing - 1
        if refusing > 0:
            self.server.refusing[self.path] = refusing - 1
        answer = json.dumps({'success': not (failing or refusing), 'message': 'so it went'}).encode()
        self.send_response(500 if failing else 200)
        self.send_header('Content-Length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.checkpoints = expand_small(cls.folder, 2)
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.daemon.request('PUT', '/models')
        for step in (0, 1):
            cls.daemon.client('publish', '--run', 'models/r', '--step', step, cls.checkpoints[step])
        cls.daemon.client('publish', '--run', 'models/r', '--step', 2, cls.checkpoints[1])

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.engine = Engine()
        self.into = tempfile.mkdtemp(prefix='deltabucket-test-"quoted"-')

    def tearDown(self):
        self.engine.shutdown()
        self.engine.server_close()
        shutil.rmtree(self.into)

    def follow(self, engine, step, **environment):
        done = self.daemon.client('follow', '--run', 'models/r', '--into', self.into, '--once', '--step', step, '--json', '--exec', os.path.join(ENGINES, engine),
                                  environment={'ENGINE_URL': self.engine.url, **environment})
        return [json.loads(line)['event'] for line in done.stdout.splitlines()]

    def path_of(self, step):
        return os.path.realpath(os.path.join(self.into, 'generations', f'{step:06d}'))

    VLLM = ['/pause?mode=keep', '/start_weight_update', '/update_weights', '/finish_weight_update', '/resume']
    SGLANG = ['/pause_generation', '/update_weights_from_disk', '/continue_generation']

    def test_vllm(self):
        for step in (0, 1):
            self.engine.calls.clear()
            self.assertEqual(self.follow('vllm', step), ['step'])
            self.assertEqual(self.engine.paths(), self.VLLM)
            self.assertEqual(self.engine.calls[2][1], {'update_info': {'path': self.path_of(step)}})
            self.assertEqual(self.engine.calls[3][1], {'weight_version': str(step)})

    def test_a_step_without_change_pauses_nobody(self):
        self.follow('vllm', 1)
        self.engine.calls.clear()
        self.follow('vllm', 2)
        self.assertEqual(self.engine.calls, [('/update_weight_version', {'new_version': '2'})])

    def test_vllm_gets_its_finish_when_the_update_fails(self):
        self.engine.failing = {'/update_weights': 9}
        self.assertEqual(self.follow('vllm', 0, ENGINE_TRIES='2'), ['step', 'exec_failed'])
        self.assertEqual(self.engine.paths(), self.VLLM[:3] + ['/update_weights', '/finish_weight_update'])
        self.engine.failing.clear()
        self.engine.calls.clear()
        self.assertEqual(self.follow('vllm', 1), ['step'])
        self.assertEqual(self.engine.paths(), self.VLLM)

    def test_vllm_goes_on_with_the_old_weights_when_nothing_began(self):
        self.engine.failing = {'/start_weight_update': 1}
        self.assertEqual(self.follow('vllm', 0), ['step', 'exec_failed'])
        self.assertEqual(self.engine.paths(), ['/pause?mode=keep', '/start_weight_update', '/finish_weight_update', '/resume'])
        self.engine.calls.clear()
        self.engine.failing = {'/pause?mode=keep': 1}
        self.assertEqual(self.follow('vllm', 1), ['step', 'exec_failed'])
        self.assertEqual(self.engine.paths(), ['/pause?mode=keep', '/resume'])

    def test_sglang(self):
        self.assertEqual(self.follow('sglang', 0, ENGINE_PAUSE='retract'), ['step'])
        self.assertEqual(self.engine.paths(), self.SGLANG)
        self.assertEqual(self.engine.calls[0][1], {'mode': 'retract'})
        self.assertEqual(self.engine.calls[1][1], {'model_path': self.path_of(0), 'weight_version': '0', 'flush_cache': True})

    def test_sglang_stays_paused_after_a_refusal(self):
        self.engine.refusing = {'/update_weights_from_disk': 9}
        self.assertEqual(self.follow('sglang', 0, ENGINE_TRIES='2'), ['step', 'exec_failed'])
        self.assertEqual(self.engine.paths(), self.SGLANG[:2] + ['/update_weights_from_disk'])
        self.engine.refusing.clear()
        self.engine.calls.clear()
        self.assertEqual(self.follow('sglang', 1), ['step'])
        self.assertEqual(self.engine.paths(), self.SGLANG)

    def test_an_engine_that_is_not_there_fails_the_command(self):
        self.assertEqual(self.follow('vllm', 0, ENGINE_URL='http://127.0.0.1:1'), ['step', 'exec_failed'])
        self.assertEqual(self.follow('sglang', 1, ENGINE_URL='http://127.0.0.1:1'), ['step', 'exec_failed'])


if __name__ == '__main__':
    unittest.main()
