"""tests/support/daemon.py on a server of ten lines: an end that the test did not ask for fails it,
at the next call of stop() or start() and at the latest when the test is over."""
import os
import signal
import sys
import tempfile
import unittest
from unittest import mock

from tests.support import daemon as support

SERVER = f'''#!{sys.executable}
import http.server, os, signal, sys
place = sys.argv[sys.argv.index('--listen') + 1].split(':')
print(os.environ.get('SAYS', ''), flush=True)
if 'REFUSES' in os.environ:
    sys.exit(1)
signal.signal(signal.SIGTERM, lambda *_: os._exit(int(os.environ.get('STATUS', 0))))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer((place[0], int(place[1])), Handler).serve_forever()
'''


def die(daemon):
    os.kill(daemon.process.pid, signal.SIGKILL)
    daemon.process.wait()


class Ends(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix='deltabucket-test-'))
        path = os.path.join(folder, 'server')
        with open(path, 'w') as file:
            file.write(SERVER)
        os.chmod(path, 0o700)
        self.enterContext(mock.patch.object(support, 'SERVER', path))

    def daemon(self, **environment):
        return support.Daemon(tls=False, environment=environment)

    def test_ends_that_the_test_asked_for(self):
        with self.daemon() as daemon:
            daemon.kill()
            daemon.start()
            self.assertEqual(daemon.stop(), 0)
            daemon.start()
            daemon.kill()
            self.assertEqual(daemon.stop(), -signal.SIGKILL)
        with self.daemon() as daemon:
            os.kill(daemon.process.pid, signal.SIGKILL)
            daemon.await_end()

    def test_an_end_after_the_last_request(self):
        with self.assertRaisesRegex(AssertionError, 'ended with -9'), self.daemon() as daemon:
            die(daemon)

    def test_an_end_before_a_stop_or_a_start(self):
        for step in (support.Daemon.stop, support.Daemon.start):
            with self.daemon() as daemon:
                die(daemon)
                with self.assertRaisesRegex(AssertionError, 'ended with -9'):
                    step(daemon)

    def test_a_bad_status(self):
        with self.assertRaisesRegex(AssertionError, 'ended with 3'), self.daemon(STATUS='3'):
            pass
        with self.daemon(STATUS='3') as daemon:
            with self.assertRaisesRegex(AssertionError, 'ended with 3'):
                daemon.stop()

    def test_a_refused_start_is_told_once(self):
        with self.daemon() as daemon:
            daemon.stop()
            daemon.environment['REFUSES'] = '1'
            with self.assertRaisesRegex(RuntimeError, 'ended with 1'):
                daemon.start()

    def test_what_a_sanitizer_says(self):
        with self.assertRaisesRegex(AssertionError, 'LeakSanitizer'):
            with self.daemon(SAYS='ERROR: LeakSanitizer: so many bytes'):
                pass


if __name__ == '__main__':
    unittest.main()
