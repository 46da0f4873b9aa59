"""Without a CA of the server's the system's count, where each distribution keeps them."""
import os
import unittest

from tests.support.daemon import CLIENT, REPLY_SECONDS, ROOT_TOKEN, Daemon
from tests.support.skips import needs_mount
from tests.support.system_cas import PLACES, run_with_system_cas

THREADS_MEET = False
UNREACHABLE = 3


@needs_mount
class SystemCas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon, cls.other = Daemon(), Daemon()
        for daemon in (cls.daemon, cls.other):
            cls.addClassCleanup(daemon.__exit__)
            daemon.start()

    def ask(self, place, pem):
        environment = {'HOME': self.daemon.scratch, 'PATH': os.environ['PATH'], 'DELTABUCKET_TOKEN': ROOT_TOKEN,
                       'DELTABUCKET_ENDPOINT': self.daemon.endpoint, 'DELTABUCKET_CA': ''}
        return run_with_system_cas([CLIENT, 'ls', '--retries', '0'], place, pem, env=environment, timeout=REPLY_SECONDS)

    def test_a_server_of_a_system_ca_is_believed(self):
        for place in PLACES:
            with self.subTest(place):
                done = self.ask(place, self.daemon.ca)
                self.assertEqual((done.returncode, done.stderr), (0, ''))

    def test_a_server_of_another_ca_is_refused(self):
        for place in PLACES:
            with self.subTest(place):
                done = self.ask(place, self.other.ca)
                self.assertEqual(done.returncode, UNREACHABLE)
                self.assertIn('no CA was given', done.stderr)


if __name__ == '__main__':
    unittest.main()
