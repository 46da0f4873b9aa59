"""The request log says who asked: the other end of the connection, or whom a trusted proxy names."""

import http.client
import os
import re
import signal
import socket
import unittest

from tests.support.daemon import Daemon

THREADS_MEET = False


class ClientAddress(unittest.TestCase):
    def start(self, *arguments):
        daemon = Daemon(tls=False, arguments=arguments)
        self.addCleanup(daemon.__exit__)
        daemon.start()
        return daemon

    def ask(self, daemon, *forwarded, source='127.0.0.1', connection=None):
        """Asks with these X-Forwarded-For headers; the request's id."""
        connection = connection or http.client.HTTPConnection('127.0.0.1', daemon.port, source_address=(source, 0))
        connection.putrequest('GET', '/-/health')
        for line in forwarded:
            connection.putheader('X-Forwarded-For', line)
        connection.endheaders()
        reply = connection.getresponse()
        reply.read()
        connection.close()
        return reply.headers['x-amz-request-id']

    def assertLogged(self, daemon, wanted):
        """`wanted`: clients by the ids of their requests."""
        daemon.process.send_signal(signal.SIGUSR1)
        for request in wanted:
            daemon.await_log(request)
        logged = dict(re.findall(r' ([0-9a-f]{32}) request .* client=(\S+)', daemon.log()))
        self.assertEqual({request: logged.get(request) for request in wanted}, wanted)

    def test_nobody_is_believed_by_default(self):
        daemon = self.start()
        self.assertLogged(
            daemon,
            {
                self.ask(daemon): '127.0.0.1',
                self.ask(daemon, '203.0.113.5', source='127.0.0.3'): '127.0.0.3',
            },
        )

    def test_a_trusted_proxy_is(self):
        daemon = self.start('--trusted-proxies', '127.0.0.3', '--trusted-proxies', '10.0.0.0/8')
        wanted = {self.ask(daemon, '203.0.113.5', source='127.0.0.4'): '127.0.0.4'}
        for forwarded, client in (
            ((), '127.0.0.3'),
            (('203.0.113.5',), '203.0.113.5'),
            (('1.2.3.4, 203.0.113.5, 10.1.1.1',), '203.0.113.5'),
            (('1.2.3.4', '203.0.113.5'), '203.0.113.5'),
            (('[2001:db8::1]:443',), '2001:db8::1'),
            (('rubbish',), '127.0.0.3'),
            (('1.2.3.4,' * 400 + '203.0.113.5',), '203.0.113.5'),
        ):
            wanted[self.ask(daemon, *forwarded, source='127.0.0.3')] = client
        self.assertLogged(daemon, wanted)

    def test_unix_sockets(self):
        for more, client in (((), 'unix'), (('--trusted-proxies', 'unix'), '203.0.113.5')):
            daemon = Daemon(tls=False)
            self.addCleanup(daemon.__exit__)
            path = os.path.join(daemon.scratch, 'socket')
            daemon.arguments += ['--listen', f'unix:{path}', *more]
            daemon.start()
            connection = http.client.HTTPConnection('localhost')
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(path)
            self.assertLogged(daemon, {self.ask(daemon, '203.0.113.5', connection=connection): client})


if __name__ == '__main__':
    unittest.main()
