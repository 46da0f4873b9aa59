"""Strangers and neighbours that take all they can get, and those that want their part: connections, waits, streams of
events, memory for bodies. The limits are small here; what is measured of the real ones, bench/door.py says."""
import contextlib
import json
import re
import socket
import ssl
import time
import unittest

from tests.support.daemon import REPLY_SECONDS, ROOT_TOKEN, Daemon

CONNECTIONS = 64
MIB = 1 << 20


def head(method, target, token=None, length=None):
    lines = [f'{method} {target} HTTP/1.1', 'Host: 127.0.0.1']
    lines += [f'Authorization: Bearer {token}'] if token else []
    lines += [f'Content-Length: {length}'] if length is not None else []
    return ('\r\n'.join(lines) + '\r\n\r\n').encode()


def hear(peer):
    """The status and all of one answer; (None, b'') when the connection has ended."""
    answer = b''
    while b'\r\n\r\n' not in answer:
        try:
            piece = peer.recv(65536)
        except ConnectionError:
            piece = b''
        if not piece:
            return None, answer
        answer += piece
    if match := re.search(rb'Content-Length: (\d+)\r\n', answer):
        whole = answer.index(b'\r\n\r\n') + 4 + int(match[1])
        while len(answer) < whole:
            answer += peer.recv(whole - len(answer))
    return int(answer[9:12]), answer


class Door(unittest.TestCase):
    tls = False

    @classmethod
    def setUpClass(cls):
        arguments = ['--connections', str(CONNECTIONS), '--body-memory', '64', '--reactors', '2']
        cls.daemon = Daemon(tls=cls.tls, arguments=arguments)
        cls.daemon.start()
        for bucket, acl in (('private', 'private'), ('public', 'public-read')):
            cls.daemon.request('PUT', f'/{bucket}', headers={'x-amz-acl': acl})
            cls.daemon.request('POST', f'/v1/runs/{bucket}/r', b'{}')
        cls.daemon.request('PUT', '/private/object', b'content')
        cls.keys = [cls.add_key(f'key-{number}') for number in range(3)]

    @classmethod
    def add_key(cls, name):
        body = json.dumps({'name': name, 'grants': ['private=read,write,list', 'public=read,list']})
        reply = cls.daemon.request('POST', '/-/keys', body.encode())
        assert reply.status == 201, reply.body
        return reply.json()['token']

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def connect(self, source='127.0.0.1'):
        peer = socket.create_connection(('127.0.0.1', self.daemon.port), REPLY_SECONDS, (source, 0))
        if self.tls:
            context = ssl.create_default_context(cafile=self.daemon.ca)
            peer = context.wrap_socket(peer, server_hostname='127.0.0.1')
        self.addCleanup(peer.close)
        return peer

    def ask(self, request, source='127.0.0.1'):
        peer = self.connect(source)
        peer.sendall(request)
        return peer

    def metric(self, name):
        lines = self.daemon.request('GET', '/-/metrics').body.decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f'deltabucket_{name} '))

    def await_metric(self, name, is_right):
        limit = time.monotonic() + REPLY_SECONDS
        while not is_right(self.metric(name)):
            self.assertLess(time.monotonic(), limit, f'{name} is {self.metric(name)}')
            time.sleep(0.02)

    def await_quiet(self):
        """Nothing waits, and this asks over the one connection that there is."""
        self.await_metric('requests_waiting', lambda count: count == 0)
        self.await_metric('connections', lambda count: count <= 1)

    def check_service(self):
        """What everybody is promised, whatever others do."""
        self.assertEqual(self.daemon.request('GET', '/-/health', token=None).status, 200)
        self.assertEqual(self.daemon.request('GET', '/private/object', token=self.keys[0]).body, b'content')
        self.assertEqual(self.daemon.request('GET', '/-/keys', token=ROOT_TOKEN).status, 200)
        self.assertIn('key-0', self.daemon.admin('keys', 'list').stdout)

    def setUp(self):
        self.await_quiet()

    def test_abandoned_polls_leave_nothing(self):
        poll = head('GET', '/v1/runs/public/r/steps/latest?after=0&wait=60')
        for _ in range(4 * CONNECTIONS):
            with contextlib.suppress(OSError):
                self.ask(poll).close()
        self.check_service()
        self.await_quiet()

    def test_polls_end_with_their_clients(self):
        polls = [self.ask(head('GET', '/v1/runs/private/r/steps/latest?after=0&wait=60', self.keys[0])) for _ in range(20)]
        self.await_metric('requests_waiting', lambda count: count == 20)
        for peer in polls:
            peer.close()
        self.await_quiet()

    def test_resting_strangers_make_room(self):
        resting = []
        for _ in range(3 * CONNECTIONS):
            with contextlib.suppress(OSError):  # a handshake may meet its end
                resting.append(self.connect())
        self.check_service()
        self.assertGreater(self.metric('connections_displaced_total'), 0)

    def test_strangers_do_not_displace_those_with_a_key(self):
        known = self.ask(head('GET', '/private/object', self.keys[0]))
        self.assertEqual(hear(known)[0], 200)
        for _ in range(3 * CONNECTIONS):
            with contextlib.suppress(OSError):
                self.connect()
        known.sendall(head('GET', '/private/object', self.keys[0]))
        self.assertEqual(hear(known)[0], 200)

    def test_one_address_does_not_displace_another(self):
        one = self.connect('127.0.0.2')
        for _ in range(3 * CONNECTIONS):
            with contextlib.suppress(OSError):
                self.connect('127.0.0.3')
        one.sendall(head('GET', '/-/health'))
        self.assertEqual(hear(one)[0], 200)

    def test_a_key_may_wait_on_all_places_until_another_wants_one(self):
        places = CONNECTIONS - CONNECTIONS // 4
        poll = '/v1/runs/private/r/steps/latest?after=0&wait=60'
        polls = []
        for count in (1, places):
            polls += [self.ask(head('GET', poll, self.keys[0])) for _ in range(count - len(polls))]
            self.await_metric('requests_waiting', lambda waiting: waiting == len(polls))
        status, answer = hear(self.ask(head('GET', poll, self.keys[0])))
        self.assertEqual(status, 503)
        self.assertRegex(answer, rb'Retry-After: [2-5]\r\n')
        other = self.ask(head('GET', poll, self.keys[1]))
        self.await_metric('waits_displaced_total', lambda count: count == 1)
        self.assertEqual(hear(polls[0])[0], 503)  # the one that waited longest
        self.assertEqual(self.daemon.request('POST', '/v1/runs/private/r', b'{}').status, 200)
        for peer in [*polls, other]:
            peer.close()

    def test_memory_for_bodies_is_shared(self):
        target = '/v1/runs/private/r/steps/0'
        held = []
        for _ in range(4):
            held.append(self.ask(head('PUT', target, self.keys[0], 16 * MIB)))
            held[-1].sendall(b' ' * (16 * MIB - 100))
            self.await_metric('body_bytes', lambda count: count == len(held) * (16 * MIB - 100))
        refused = self.ask(head('PUT', target, self.keys[0], MIB))
        refused.sendall(b' ' * MIB)
        status, answer = hear(refused)
        self.assertEqual((status, b'Retry-After' in answer), (503, True))
        reply = self.daemon.request('PUT', target, b' ' * (MIB - 2) + b'{}', token=self.keys[1])
        self.assertEqual(reply.status, 400, reply.body)  # it was parsed
        self.assertEqual(hear(held[0])[0], None)
        self.assertEqual(self.metric('bodies_displaced_total'), 1)

    def test_lists_are_refused_before_they_come(self):
        stranger = self.daemon.request('POST', '/-/keys', json.dumps({'grants': ['private/p/=read']}).encode()).json()['token']
        for target, status in (('/private?delete', 403), ('/nothing?delete', 403), ('/api/buckets/main/private/batch', 403)):
            peer = self.connect()
            peer.sendall(head('POST', target, stranger, MIB)[:-2] + b'Expect: 100-continue\r\n\r\n')
            self.assertEqual(hear(peer)[0], status, target)

    def test_large_json_is_parsed_and_has_an_end(self):
        body = b'{"x":[' + b'0,' * (4 * MIB) + b'0]}'
        reply = self.daemon.request('PUT', '/v1/runs/private/r/steps/0', body)
        self.assertEqual((reply.status, b'131072 values' in reply.body), (400, True), reply.body)


class DoorTls(Door):
    tls = True


class Streams(unittest.TestCase):
    def test_one_key_does_not_keep_all_streams(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/private')
            keys = [daemon.request('POST', '/-/keys', b'{"grants":["private=read,list"]}').json()['token'] for _ in range(2)]
            peers = []
            with contextlib.ExitStack() as stack:
                for number in range(1025):
                    peers.append(stack.enter_context(socket.create_connection(('127.0.0.1', daemon.port), REPLY_SECONDS)))
                    peers[-1].sendall(head('GET', '/api/buckets/main/private/events', keys[0]))
                    status, answer = hear(peers[-1])
                    self.assertEqual(status, 200 if number < 1024 else 429)
                self.assertIn(b'Retry-After', answer)
                other = stack.enter_context(socket.create_connection(('127.0.0.1', daemon.port), REPLY_SECONDS))
                other.sendall(head('GET', '/api/buckets/main/private/events', keys[1]))
                self.assertEqual(hear(other)[0], 200)
                said = b''
                while b'event: reconnect' not in said:
                    piece = peers[0].recv(65536)
                    self.assertTrue(piece, said)
                    said += piece


if __name__ == '__main__':
    unittest.main()
