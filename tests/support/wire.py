"""HTTP/1.1 as it goes over the wire, for tests that make thousands of requests or look between the
head of a request and its body."""
import socket
import threading

from tests.support.daemon import REPLY_SECONDS

CONTINUE = b'HTTP/1.1 100 '


class WireReply:
    def __init__(self, head, body):
        self.head, self.body = head, body
        self.status = int(head.split(b' ', 2)[1])

    def header(self, name):
        """The first of this name; None when there is none."""
        for line in self.head.split(b'\r\n')[1:]:
            given, _, value = line.partition(b':')
            if given.lower() == name.lower().encode():
                return value.strip().decode('latin-1')
        return None


class Wire:
    """One connection to a daemon that speaks plain HTTP; opened when it is needed, and again when
    the server has closed it."""

    def __init__(self, port):
        self.port = port
        self.socket = None
        self.held = b''

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket, self.held = None, b''

    def ask(self, method, target, body=None, headers=()):
        """`headers`: pairs. What is sent is kept as `sent`."""
        self.sent = self.request(method, target, body, headers)
        self.send(self.sent)
        return self.reply(method)

    def head_only(self, method, target, headers, *, expects, length):
        """Sends no body, whatever the headers announce: gives the reply, or None when the server
        asked for the body. The connection is not used again."""
        self.close()
        more = [('Content-Length', str(length))]
        if expects:
            more.append(('Expect', '100-continue'))
        self.sent = self.request(method, target, None, [*headers, *more])
        self.send(self.sent)
        try:
            while len(self.held) < len(CONTINUE):
                self.read()
            return None if self.held.startswith(CONTINUE) else self.reply(method)
        finally:
            self.close()

    def request(self, method, target, body, headers):
        text = f'{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n'
        text += ''.join(f'{name}: {value}\r\n' for name, value in headers)
        if body is not None:
            text += f'Content-Length: {len(body)}\r\n'
        return text.encode() + b'\r\n' + (body or b'')

    def send(self, data):
        if self.socket is None:
            self.socket = socket.create_connection(('127.0.0.1', self.port), REPLY_SECONDS)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(data)

    def read(self):
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise ConnectionError(f'the server closed the connection behind {self.held!r}')
        self.held += piece

    def reply(self, method):
        while b'\r\n\r\n' not in self.held:
            self.read()
        head, _, self.held = self.held.partition(b'\r\n\r\n')
        reply = WireReply(head, b'')
        if b'text/event-stream' in head.lower():
            return self.stream(reply)
        has_body = method != 'HEAD' and reply.status not in (204, 304)
        length = int(reply.header('content-length') or 0) if has_body else 0
        while len(self.held) < length:
            self.read()
        reply.body, self.held = self.held[:length], self.held[length:]
        if (reply.header('connection') or '').lower() == 'close':
            self.close()
        return reply

    def stream(self, reply):
        """Of a stream without end, what comes until it says that it is ready or new, or its end."""
        try:
            while not any(f'event: {name}'.encode() in self.held for name in ('ready', 'reset', 'hello')):
                self.read()
        except ConnectionError:
            pass
        reply.body = self.held
        self.close()
        return reply


class Wires:
    """A connection for each thread."""

    def __init__(self, port):
        self.port = port
        self.local = threading.local()
        self.all = []

    def mine(self):
        if not hasattr(self.local, 'wire'):
            self.local.wire = Wire(self.port)
            self.all.append(self.local.wire)
        return self.local.wire

    def close(self):
        for wire in self.all:
            wire.close()
