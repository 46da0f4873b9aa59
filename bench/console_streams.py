#!/usr/bin/env python3
"""usage: bench/console_streams.py   what open consoles cost a server: the share of a core that streams of events take.

50 streams follow all runs, the server's numbers and the 200 replicas of a run: for 30 s beside an idle server, and for 30 s while the replicas renew their
leases (5 a second). The same renewals without a stream are taken off the second figure.
"""
import json
import selectors
import socket
import threading
import time

from measure import cpu_seconds, say
from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.runs import Run

STREAMS = 50
REPLICAS = 200
RENEWALS = 5  # a second: 200 workers, each every 40 s
SECONDS = 30


def open_streams(daemon, selector):
    request = (f'GET /-/events?runs=1&server=1&replicas=models/policy HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {ROOT_TOKEN}\r\n\r\n').encode()
    for _ in range(STREAMS):
        peer = socket.create_connection(('127.0.0.1', daemon.port))
        peer.sendall(request)
        selector.register(peer, selectors.EVENT_READ)


def renew(run, stop):
    number = 0
    while not stop.wait(1 / RENEWALS):
        reply = run.call('PUT', f'/replicas/w-{number % REPLICAS}', json.dumps({'state': 'ready', 'step': 1}))
        assert reply.status == 200, reply.body
        number += 1


def measure(daemon, selector, run=None):
    """The share of a core in percent, and the bytes that came in events."""
    stop = threading.Event()
    renewer = threading.Thread(target=renew, args=(run, stop)) if run else None
    if renewer:
        renewer.start()
    before, began, received = cpu_seconds([daemon.process.pid]), time.monotonic(), 0
    while time.monotonic() - began < SECONDS:
        for key, _ in selector.select(1) if selector.get_map() else [time.sleep(1)] and ():
            piece = key.fileobj.recv(1 << 20)
            assert piece, 'a stream ended'
            received += len(piece)
    share = 100 * (cpu_seconds([daemon.process.pid]) - before) / (time.monotonic() - began)
    stop.set()
    if renewer:
        renewer.join()
    return share, received


def main():
    with Daemon(tls=False, arguments=['--log-level', 'warning']) as daemon:
        run = Run(daemon, 'policy')
        run.publish_all(0, 1)
        for number in range(REPLICAS):
            run.call('PUT', f'/replicas/w-{number}', json.dumps({'state': 'ready', 'step': 1}))
        time.sleep(8)  # the proofs, and the first snapshot of the journal
        selector = selectors.DefaultSelector()
        alone, _ = measure(daemon, selector)
        renewed, _ = measure(daemon, selector, run)
        open_streams(daemon, selector)
        time.sleep(2)
        idle, received = measure(daemon, selector)
        say('a core, idle, without a stream', alone, '%')
        say(f'a core, idle, for {STREAMS} streams (want < 2)', idle, '%')
        say(f'bytes of each stream in {SECONDS} s, idle', received / STREAMS, 'bytes')
        busy, received = measure(daemon, selector, run)
        say(f'a core for {STREAMS} streams and {RENEWALS} renewals a second', busy - renewed, '%')
        say(f'bytes of each stream in {SECONDS} s, with renewals', received / STREAMS, 'bytes')


main()
