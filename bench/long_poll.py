#!/usr/bin/env python3
"""1,000 workers that wait for a step: the server's memory, and how long one publish takes to answer every one of them."""
import selectors
import socket
import tempfile
import threading
import time

from measure import say
from tests.support.checkpoints import expand_small
from tests.support.daemon import ROOT_TOKEN, Daemon

WORKERS = 1000


def main():
    with tempfile.TemporaryDirectory() as folder, Daemon(tls=False) as daemon:
        checkpoints = expand_small(folder, 1)
        daemon.request('PUT', '/models')
        daemon.client('publish', '--run', 'models/r', checkpoints[0])
        selector = selectors.DefaultSelector()
        request = (f'GET /v1/runs/models/r/steps/latest?after=0&wait=60 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {ROOT_TOKEN}\r\n\r\n').encode()
        for _ in range(WORKERS):
            peer = socket.create_connection(('127.0.0.1', daemon.port))
            peer.sendall(request)
            peer.setblocking(False)
            selector.register(peer, selectors.EVENT_READ)
        time.sleep(1)
        assert not selector.select(0), 'a worker was answered before the step'
        say(f'server memory with {WORKERS} workers waiting (want < 100)', daemon.rss_bytes() / (1 << 20), 'MiB')
        answered, first, last = 0, None, None
        published = []
        publisher = threading.Thread(target=lambda: (daemon.client('publish', '--run', 'models/r', checkpoints[1]), published.append(time.monotonic())))
        publisher.start()
        while answered < WORKERS:
            for key, _ in selector.select(10):
                answer = key.fileobj.recv(65536)
                assert answer.startswith(b'HTTP/1.1 200'), answer[:100]
                first = first or time.monotonic()
                last = time.monotonic()
                answered += 1
                selector.unregister(key.fileobj)
                key.fileobj.close()
        publisher.join()
        say('from the first answer to the last (want < 200)', (last - first) * 1000, 'ms')
        say('from the end of the publisher command to the last answer', (last - published[0]) * 1000, 'ms')


main()
