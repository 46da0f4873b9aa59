"""A relay of TCP connections between a browser and a server, which can cut them all: a network that fails."""
import contextlib
import socket
import threading

BLOCK = 1 << 16


class Relay:
    """Use as a context manager. `up` counts the bytes that went to the server. `cut_at`: when so many have, every connection breaks, once for each
    number of the list; `close()` breaks them and takes no further ones until `open()`."""

    def __init__(self, port, cut_at=()):
        self.target, self.up, self.cuts = ('127.0.0.1', port), 0, list(cut_at)
        self.lock, self.pairs, self.threads, self.is_open = threading.Lock(), set(), [], True
        self.listener = socket.create_server(('127.0.0.1', 0), backlog=64)
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        self.begin(self.accept)
        return self

    def __exit__(self, *_):
        self.is_open = False
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
        for thread in self.threads:
            thread.join()

    def begin(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments)
        self.threads.append(thread)
        thread.start()

    def close(self):
        self.is_open = False
        self.cut()

    def open(self):
        self.is_open = True

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            end(pair)

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if not self.is_open:
                end((client,))
                continue
            pair = (client, socket.create_connection(self.target))
            with self.lock:
                self.pairs.add(pair)
            self.begin(self.pump, pair, True)
            self.begin(self.pump, pair[::-1], False)

    def pump(self, pair, is_up):
        source, target = pair
        with contextlib.suppress(OSError):
            while data := source.recv(BLOCK):
                target.sendall(data)
                if is_up:
                    self.count(len(data))
        end(pair)

    def count(self, size):
        with self.lock:
            self.up += size
            is_due = bool(self.cuts) and self.up >= self.cuts[0]
            if is_due:
                self.cuts.pop(0)
        if is_due:
            self.cut()


def end(sockets):
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
