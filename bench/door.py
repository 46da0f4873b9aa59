#!/usr/bin/env python3
"""What a neighbour feels while somebody attacks: the latency of its GETs, quiet and during each attack, and the server's
memory before, during and a minute after it. Default settings, over HTTPS; attackers have an address of their own.
Arguments: names of attacks (default: all), --seconds N, --rest N, --http, --from ADDRESS."""
import argparse
import contextlib
import json
import multiprocessing
import resource
import socket
import ssl
import threading
import time

from measure import say
from tests.support.daemon import ROOT_TOKEN, Daemon

OBJECT_BYTES = 4096
REST_SECONDS = 60
MIB = 1 << 20


def head(method, target, *headers):
    return ('\r\n'.join([f'{method} {target} HTTP/1.1', 'Host: h', *headers]) + '\r\n\r\n').encode()


def bearer(token):
    return f'Authorization: Bearer {token}'


def allow_descriptors():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Place:
    """The server as one caller knows it."""

    def __init__(self, daemon, keys, address):
        self.port = daemon.port
        self.keys = keys  # names to tokens
        self.address = address  # that connections come from
        self.tls = ssl.create_default_context(cafile=daemon.ca) if daemon.tls else None

    def connect(self, is_mute=False):
        peer = socket.create_connection(('127.0.0.1', self.port), source_address=(self.address, 0))
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls is None or is_mute:
            return peer
        try:
            return self.tls.wrap_socket(peer, server_hostname='127.0.0.1')
        except OSError:
            peer.close()
            raise


def abandoned_polls(place, stop):
    """Asks for a step that never comes, and closes at once."""
    poll = head('GET', '/v1/runs/public/r/steps/latest?after=0&wait=60')
    while not stop.is_set():
        with contextlib.suppress(OSError), place.connect() as peer:
            peer.sendall(poll)


def idle_connections(place, stop, is_mute=True):
    """Opens connections without a word, as many as descriptors allow, and opens those anew that the server closes."""
    peers = []
    while not stop.is_set():
        try:
            peers.append(place.connect(is_mute))
        except OSError:
            peers = peers[len(peers) // 2:]
        if len(peers) > 15000:
            peers = peers[1000:]
    for peer in peers:
        peer.close()


def idle_sessions(place, stop):
    """The same, but each ends its TLS handshake first."""
    idle_connections(place, stop, is_mute=False)


def held_polls(place, stop):
    """Waits for a step that never comes, on as many connections as it gets."""
    poll = head('GET', '/v1/runs/public/r/steps/latest?after=0&wait=60')
    peers = []
    while not stop.is_set():
        try:
            peers.append(place.connect())
            peers[-1].sendall(poll)
        except OSError:
            peers = peers[len(peers) // 2:]
        if len(peers) > 15000:
            peers = peers[1000:]


def hold_bodies(place, stop, count, request, length):
    """All but the last 100 bytes of a body, then nothing; again and again what the server has ended."""
    body = b' ' * 65536
    peers = {}
    while not stop.is_set():
        for number in range(count):
            if stop.is_set():
                break
            if number in peers:
                continue
            peer = place.connect()
            peer.settimeout(5)
            try:
                peer.sendall(request)
                left = length - 100
                while left > 0:
                    left -= peer.send(body[:left])
                peer.setblocking(False)
                peers[number] = peer
            except OSError:
                peer.close()
        time.sleep(0.5)
        for number, peer in list(peers.items()):
            try:
                if peer.recv(65536) == b'':
                    raise ConnectionError
            except (BlockingIOError, ssl.SSLWantReadError):
                continue
            except OSError:
                pass
            peer.close()
            del peers[number]


def held_manifests(place, stop):
    length = 16 * MIB
    hold_bodies(place, stop, 100, head('PUT', '/v1/runs/own/r/steps/0', bearer(place.keys['attacker']), f'Content-Length: {length}'), length)


def held_listings(place, stop):
    hold_bodies(place, stop, 1000, head('POST', '/api/buckets/main/public/paths-info', f'Content-Length: {MIB}'), MIB)


def held_deletes(place, stop):
    length = 4 * MIB
    hold_bodies(place, stop, 100, head('POST', '/private?delete', bearer(place.keys['prefix']), f'Content-Length: {length}'), length)


def held_deletes_of_nothing(place, stop):
    length = 4 * MIB
    hold_bodies(place, stop, 100, head('POST', '/no-such-bucket?delete', bearer(place.keys['attacker']), f'Content-Length: {length}'), length)


def send_whole(place, stop, request, body, connections):
    def loop():
        while not stop.is_set():
            try:
                with place.connect() as peer:
                    peer.settimeout(30)
                    peer.sendall(request + body)
                    peer.recv(65536)
            except OSError:
                pass
    threads = [threading.Thread(target=loop) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def many_values(place, stop, connections=1):
    body = b'{"x":[' + b'0,' * (8 * MIB - 16) + b'0]}'
    request = head('PUT', '/v1/runs/own/r/steps/0', bearer(place.keys['attacker']), f'Content-Length: {len(body)}')
    send_whole(place, stop, request, body, connections)


def many_values_4(place, stop):
    many_values(place, stop, 4)


def many_attributes(place, stop):
    pairs = b''.join(b' a%d="1"' % i for i in range(330000))
    body = b'<Delete' + pairs[:4 * MIB - 300] + b'"/>'
    request = head('POST', '/own?delete', bearer(place.keys['attacker']), f'Content-Length: {len(body)}')
    send_whole(place, stop, request, body, 1)


def all_streams(place, stop):
    """One key opens as many streams of events as it gets."""
    request = head('GET', '/api/buckets/main/own/events', bearer(place.keys['attacker']))
    peers = []
    while not stop.is_set():
        if len(peers) < 3000:
            peers.append(place.connect())
            peers[-1].sendall(request)
        else:
            time.sleep(0.1)


ATTACKS = {attack.__name__: attack for attack in (
    abandoned_polls, idle_connections, idle_sessions, held_polls, held_manifests, held_listings, held_deletes,
    held_deletes_of_nothing, many_values, many_values_4, many_attributes, all_streams)}


def run_attack(name, place, stop):
    allow_descriptors()
    ATTACKS[name](place, stop)


def read_reply(peer, rest):
    while b'\r\n\r\n' not in rest:
        piece = peer.recv(65536)
        if not piece:
            raise ConnectionError('the server closed the connection')
        rest += piece
    header, rest = rest.split(b'\r\n\r\n', 1)
    length = int(next(line for line in header.split(b'\r\n') if line.lower().startswith(b'content-length')).split(b':')[1])
    while len(rest) < length:
        piece = peer.recv(65536)
        if not piece:
            raise ConnectionError('the server closed the connection')
        rest += piece
    return header, rest[length:]


def be_neighbour(place, stop, out):
    """GETs one after the other, each tenth over a new connection; a pause between them, as a worker has. Milliseconds and failures."""
    times, failures = [], []
    request = head('GET', '/private/object', bearer(place.keys['neighbour']))
    peer, count = None, 0
    while not stop.is_set():
        began = time.monotonic()
        try:
            if peer is None or count % 10 == 0:
                if peer is not None:
                    peer.close()
                peer = place.connect()
                peer.settimeout(30)
            peer.sendall(request)
            header, _ = read_reply(peer, b'')
            if not header.startswith(b'HTTP/1.1 200'):
                failures.append(header.split(b'\r\n')[0].decode())
        except OSError as problem:
            failures.append(repr(problem))
            peer = None
        times.append((time.monotonic() - began) * 1000)
        count += 1
        time.sleep(0.005)
    out.put((times, failures))


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def measure(daemon, neighbour, seconds, attack=None, attacker=None):
    """Latencies and failures of the neighbour, and the most memory, while the attack lasts."""
    stop, end_attack, out, most = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Queue(), 0
    gets = multiprocessing.Process(target=be_neighbour, args=(neighbour, stop, out))
    foe = attack and multiprocessing.Process(target=run_attack, args=(attack, attacker, end_attack))
    if foe:
        foe.start()
    gets.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        most = max(most, daemon.rss_bytes())
        time.sleep(0.2)
    stop.set()
    times, failures = out.get()
    gets.join()
    if foe:
        end_attack.set()
        foe.join(10)
        foe.kill()
    return times, failures, most


def prepare(daemon):
    daemon.request('PUT', '/private')
    daemon.request('PUT', '/own')
    daemon.request('PUT', '/public', headers={'x-amz-acl': 'public-read'})
    daemon.request('PUT', '/private/object', body=b'x' * OBJECT_BYTES)
    for bucket in ('public', 'own'):
        daemon.request('POST', f'/v1/runs/{bucket}/r', body=b'{}')
    grants = {'neighbour': 'private=read', 'attacker': 'own=read,write,list', 'prefix': 'private/elsewhere/=write'}
    keys = {}
    for name, grant in grants.items():
        reply = daemon.request('POST', '/-/keys', body=json.dumps({'name': name, 'grants': [grant]}).encode())
        assert reply.status == 201, reply.body
        keys[name] = reply.json()['token']
    return keys


def show(attack, daemon, options):
    keys = prepare(daemon)
    neighbour, attacker = Place(daemon, keys, '127.0.0.1'), Place(daemon, keys, options.address)
    idle = daemon.rss_bytes()
    quiet, failures, _ = measure(daemon, neighbour, min(10, options.seconds))
    assert not failures, failures[:3]
    times, failures, most = measure(daemon, neighbour, options.seconds, attack, attacker)
    print(f'-- {attack}')
    say('GET p99 quiet', percentile(quiet, .99), 'ms')
    say('GET p99 under attack (want <= 2 x quiet + 20)', percentile(times, .99), 'ms')
    say('GET p50 under attack', percentile(times, .5), 'ms')
    say('failed GETs (want 0)', len(failures), f'of {len(times)} {failures[:1] if failures else ""}')
    say('memory above idle, most (want <= 512)', (most - idle) / MIB, 'MiB')
    time.sleep(options.rest)
    say(f'memory above idle, {options.rest} s later (want <= 64)', (daemon.rss_bytes() - idle) / MIB, 'MiB')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('attacks', nargs='*', default=list(ATTACKS))
    parser.add_argument('--seconds', type=int, default=30)
    parser.add_argument('--rest', type=int, default=REST_SECONDS)
    parser.add_argument('--http', action='store_true')
    parser.add_argument('--from', dest='address', default='127.0.0.2')
    options = parser.parse_args()
    allow_descriptors()
    for name in options.attacks:
        with Daemon(tls=not options.http) as daemon:
            show(name, daemon, options)


if __name__ == '__main__':
    main()
