"""A run's webhook is told of each step, signed, tried again until it is taken; only hosts that the operator named are called."""
import collections
import contextlib
import hashlib
import hmac
import http.server
import json
import shutil
import socket
import tempfile
import threading
import time
import unittest

from tests.support.checkpoints import expand_small
from tests.support.daemon import Daemon

RUNS_OF_ONE = 20  # more than the server has deliveries under way


class Target:
    """An HTTP server that keeps what it is told; the first `refusals` requests get 500."""

    def __init__(self, refusals=0, told=lambda: None):
        self.seen, self.refusals = [], refusals
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                told()
                target.seen.append((self.path, dict(self.headers), body))
                self.send_response(500 if len(target.seen) <= target.refusals else 204)
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Dripper:
    """Takes any number of requests and answers each a byte at a time, without an end."""

    BEGINNING = b'HTTP/1.1 200 OK\r\nX-Drip: '  # of headers that do not end: nothing is answered

    def __init__(self):
        self.held, self.ended = [], threading.Event()
        self.listening = socket.create_server(('127.0.0.1', 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.take, daemon=True).start()
        threading.Thread(target=self.drip, daemon=True).start()

    def take(self):
        with contextlib.suppress(OSError):  # the end
            while True:
                connection = self.listening.accept()[0]
                connection.setblocking(False)
                self.held.append(connection)

    def drip(self):
        sent = collections.Counter()
        while not self.ended.wait(0.5):
            for connection in list(self.held):
                byte = self.BEGINNING[sent[connection]:][:1] or b'a'
                sent[connection] += 1
                with contextlib.suppress(OSError):
                    connection.send(byte)

    def open(self):
        """How many connections the server still holds."""
        return sum(map(self.is_open, list(self.held)))

    @staticmethod
    def is_open(connection):
        try:
            while connection.recv(65536):
                pass
            return False
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self):
        self.ended.set()
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for connection in self.held:
            connection.close()


class Webhooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.checkpoints = expand_small(cls.scratch, 3)

    def start(self, *arguments):
        self.daemon = Daemon(tls=False, arguments=arguments)
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__)
        self.daemon.request('PUT', '/models')
        self.assertEqual(self.call('POST', '').status, 200)

    def target(self, refusals=0):
        target = Target(refusals)
        self.addCleanup(target.close)
        return target

    def call(self, method, to, body=None, token=None):
        more = {'token': token} if token else {}
        return self.daemon.request(method, f'/v1/runs/models/run{to}', json.dumps(body) if body is not None else None, **more)

    def wait_for(self, question, seconds=90):
        end = time.monotonic() + seconds
        while not question() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertTrue(question(), self.daemon.log()[-2000:])

    def test_steps_are_told_and_signed(self):
        self.start('--webhook-hosts', '127.0.0.1')
        target = self.target()
        reply = self.call('PUT', '/settings', {'webhook': f'http://127.0.0.1:{target.port}/hook?a=b'})
        self.assertEqual(reply.status, 200, reply.body)
        self.daemon.client('publish', '--run', 'models/run', self.checkpoints[0])
        self.daemon.client('publish', '--run', 'models/run', '--label', 'two', self.checkpoints[1])
        self.wait_for(lambda: len(target.seen) == 2)
        secret = self.call('GET', '/webhook').json()['secret']
        for number, (path, headers, body) in enumerate(target.seen):
            self.assertEqual(path, '/hook?a=b')
            fields = dict(field.split('=') for field in headers['X-Deltabucket-Signature'].split(','))
            self.assertEqual(hmac.new(secret.encode(), f'{fields["t"]}.'.encode() + body, hashlib.sha256).hexdigest(), fields['v1'])
            event = json.loads(body)
            self.assertEqual((event['event'], event['run'], event['step']), ('published', 'models/run', number))
            self.assertRegex(headers['X-Deltabucket-Delivery'], '^[0-9a-f]{32}$', 'a number would tell of other runs')
            self.assertEqual(event['digest'], self.call('GET', f'/steps/{number}').json()['digest'])
        self.assertEqual(len({headers['X-Deltabucket-Delivery'] for _, headers, _ in target.seen}), 2)
        self.assertEqual(json.loads(target.seen[1][2])['label'], 'two')
        self.assertNotIn(secret, self.daemon.log())

    def test_what_is_not_taken_is_sent_again_also_after_a_kill(self):
        self.start('--webhook-hosts', '127.0.0.1')
        target = self.target(refusals=1)
        self.call('PUT', '/settings', {'webhook': f'http://127.0.0.1:{target.port}/'})
        self.daemon.client('publish', '--run', 'models/run', self.checkpoints[0])
        self.wait_for(lambda: len(target.seen) == 1)
        self.daemon.kill()
        self.daemon.start()
        self.wait_for(lambda: len(target.seen) == 2)
        self.assertEqual(target.seen[0][2], target.seen[1][2])
        self.assertEqual(target.seen[0][1]['X-Deltabucket-Delivery'], target.seen[1][1]['X-Deltabucket-Delivery'])
        time.sleep(1.5)
        self.assertEqual(len(target.seen), 2)

    def follow(self, bucket, run, port, token):
        """A run of that account, whose webhook goes to that port, and a step of it."""
        path = f'/v1/runs/{bucket}/{run}'
        settings = json.dumps({'webhook': f'http://127.0.0.1:{port}/'})
        for method, to, body in (('POST', '', None), ('PUT', '/settings', settings)):
            reply = self.daemon.request(method, path + to, body, token=token)
            self.assertEqual(reply.status, 200, reply.body)
        self.daemon.client('publish', '--run', f'{bucket}/{run}', self.checkpoints[0], token=token)

    def test_receivers_that_drip_delay_no_other_account(self):
        self.start('--webhook-hosts', '127.0.0.1')
        dripper = Dripper()
        self.addCleanup(dripper.close)
        slow, quick = (self.daemon.add_key('--namespace', name)['token'] for name in ('slow', 'quick'))
        self.assertEqual(self.daemon.request('PUT', '/slow', token=slow).status, 200)
        self.assertEqual(self.daemon.request('PUT', '/quick', token=quick).status, 200)
        for number in range(RUNS_OF_ONE):
            self.follow('slow', f'run{number}', dripper.port, slow)
        self.wait_for(lambda: dripper.open() > 0)
        open_then = []
        target = Target(told=lambda: open_then.append(dripper.open()))
        self.addCleanup(target.close)
        self.follow('quick', 'run', target.port, quick)
        self.wait_for(lambda: open_then, 1200)
        self.assertIn(open_then[0], (1, 2))  # what an account may have under way, and unanswered

    def test_failures_are_logged_without_the_path(self):
        self.start('--webhook-hosts', '127.0.0.1')
        self.call('PUT', '/settings', {'webhook': 'http://127.0.0.1:1/services/s3cr3t'})
        self.daemon.client('publish', '--run', 'models/run', self.checkpoints[0])
        self.wait_for(lambda: 'webhook_failed' in self.daemon.log())
        self.assertIn("The request to '127.0.0.1:1' failed", self.daemon.log())
        self.assertIn('the webhook of run models/run', self.daemon.log())
        self.assertNotIn('s3cr3t', self.daemon.log())

    def test_only_hosts_that_the_operator_named(self):
        self.start('--webhook-hosts', 'hooks.example', '--webhook-hosts', '.inner.example')
        for url, status in (('http://127.0.0.1:1/', 403), ('http://hooks.example/x', 200), ('https://a.inner.example:8443/', 200), ('ftp://hooks.example/', 400),
                            ('http://hooks.example@127.0.0.1/', 400), ('http://evil-inner.example/', 403), ('', 200)):
            self.assertEqual(self.call('PUT', '/settings', {'webhook': url}).status, status, url)

    def test_none_by_default_and_secrets_are_for_writers(self):
        self.start()
        self.assertEqual(self.call('PUT', '/settings', {'webhook': 'http://127.0.0.1:1/'}).status, 403)
        reader = self.daemon.add_key('--grant', 'models/run=read')
        self.assertEqual(self.call('GET', '/webhook', token=reader['token']).status, 403)
        self.assertEqual(self.call('GET', '/webhook').status, 200)


if __name__ == '__main__':
    unittest.main()
