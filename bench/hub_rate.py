#!/usr/bin/env python3
"""The Hub face with a real huggingface_hub and with our own client: what small changes of large files send, what an upload costs the server, how fast
fetch URLs are beside nginx, and how many small files grow. One run; bytes are those of all request bodies as the server counts them: of a 5 GB file
hf_xet's shard alone has 3 MB."""
import json
import os
import random
import shutil
import subprocess
import tempfile
import time
import urllib.request

from measure import cpu_seconds, median, say, user_seconds
from serve_rate import nginx
from tests.support.daemon import BUILD, CLIENT, ROOT_TOKEN, SOURCE, Daemon

HUB = os.path.join(SOURCE, 'build', 'clients', 'hub', 'bin', 'python')
HERE = os.path.dirname(os.path.abspath(__file__))
MB, MIB = 10 ** 6, 1 << 20
LARGE = int(os.environ.get('DELTABUCKET_BENCH_LARGE', 5 * 10 ** 9))
ROUNDS = 3


def received(daemon):
    """Bytes of request bodies so far."""
    text = daemon.request('GET', '/-/metrics').body.decode()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith('deltabucket_received_bytes_total '))


class Client:
    """One of the two, with a home of its own, warm from one call to the next."""

    def __init__(self, daemon, scratch, name):
        self.daemon, self.name, self.home = daemon, name, os.path.join(scratch, f'home-{name}')
        os.makedirs(self.home)
        self.environment = dict(os.environ, HOME=self.home, XDG_CACHE_HOME=f'{self.home}/cache', HF_HOME=f'{self.home}/hf', HF_ENDPOINT=daemon.endpoint,
                                HF_TOKEN=ROOT_TOKEN, HF_HUB_DISABLE_TELEMETRY='1', HF_HUB_DISABLE_PROGRESS_BARS='1', HF_HUB_DISABLE_UPDATE_CHECK='1',
                                DELTABUCKET_ENDPOINT=daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN)

    def run(self, *words):
        begun, before = time.monotonic(), received(self.daemon)
        subprocess.run(words, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun, received(self.daemon) - before

    def put(self, path, key):
        if self.name == 'hub':
            return self.run(HUB, f'{HERE}/hub_client.py', 'upload', 'main/bench', path, key)
        return self.run(CLIENT, 'put', '--quiet', path, f'bench/{key}')


def write_random(path, size, seed):
    source = random.Random(seed)
    with open(path, 'wb') as file:
        for at in range(0, size, 1 << 22):
            file.write(source.randbytes(min(1 << 22, size - at)))


def change_one_percent(path, size):
    with open(path, 'r+b') as file:
        file.seek(size // 3)
        file.write(os.urandom(size // 100))


def append_mebibyte(path, _size):
    with open(path, 'ab') as file:
        file.write(os.urandom(MIB))


def insert_mebibyte(path, size):
    with open(path, 'r+b') as file:
        file.seek(size // 2)
        rest = file.read()
        file.seek(size // 2)
        file.write(os.urandom(MIB))
        file.write(rest)


SEEDS = ((500 * MB, '1 % of 500 MB changed in one place', change_one_percent, 5.5 * MB), (500 * MB, '1 MiB put into the middle of 500 MB', insert_mebibyte, 1.5 * MIB),
         (LARGE, f'1 MiB added to {LARGE / 1e9:g} GB', append_mebibyte, 1.3 * MIB))


def plain_put(daemon, path):
    begun = time.monotonic()
    subprocess.run(['curl', '-sf', '-T', path, '-H', f'Authorization: Bearer {ROOT_TOKEN}', '-H', 'Expect:', f'{daemon.endpoint}/bench/plain'],
                   check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def bench_seeds(daemon, scratch):
    for number, (size, what, change, most) in enumerate(SEEDS):
        path = f'{scratch}/seed'
        for client in ('hub', 'ours'):
            with_client = Client(daemon, tempfile.mkdtemp(dir=scratch), client)
            write_random(path, size, 100 * number + len(client))
            whole_seconds, whole = with_client.put(path, f'{client}-{number}')
            change(path, size)
            os.sync()
            seconds, sent = with_client.put(path, f'{client}-{number}')
            say(f'{what}, {client}: sent (most {most / MB:.2f})', sent / MB, 'MB')
            say(f'{what}, {client}: first time, sent', whole / MB, 'MB')
            say(f'{what}, {client}: first time', whole_seconds, 's')
            say(f'{what}, {client}: changed', seconds, 's')
        if size <= 500 * MB:
            say(f'{what}: plain S3 PUT of it', plain_put(daemon, path), 's')
        os.unlink(path)


def floors(scratch):
    """Seconds a GB of what an upload is made of, each alone: BLAKE3, checksums and checks of the same records in memory; libmicrohttpd that
    receives bytes and drops them; write(2) into the page cache with fdatasync."""
    programs = ([os.path.join(BUILD, 'bench_xorb_rate')], [os.path.join(BUILD, 'bench_floor_rate'), scratch, 'microhttpd_receive', 'write_fdatasync'])
    texts = [subprocess.run(words, capture_output=True, text=True, check=True).stdout for words in programs]
    return [float(line.split()[-2]) for text in texts for line in text.splitlines()]


def bench_upload(daemon, scratch):
    """The floors are measured again for each round: other work on the machine moves all of them together."""
    names = ('server CPU', 'server CPU in user mode', 'verification alone', 'write and fdatasync alone', 'receiving alone')
    rounds, pid = [], daemon.process.pid
    for number in range(ROUNDS):
        client = Client(daemon, tempfile.mkdtemp(dir=scratch), 'hub')
        write_random(f'{scratch}/gigabyte', 10 ** 9, 1000 + number)
        verify, write, receive = floors(scratch)
        before, user = cpu_seconds([pid]), user_seconds(pid)
        client.put(f'{scratch}/gigabyte', f'gigabyte-{number}')
        rounds.append((cpu_seconds([pid]) - before, user_seconds(pid) - user, verify, write, receive))
    for at, name in enumerate(names):
        say(f'hf_xet upload, 1 GB random: {name}', median([figures[at] for figures in rounds]), 's')
    say('upload CPU against verification alone (want <= 1.5)', median([cpu / verify for cpu, _, verify, _, _ in rounds]), 'x')
    say('upload CPU in user mode against verification alone', median([user / verify for _, user, verify, _, _ in rounds]), 'x')
    say('upload CPU against verification, write and receiving', median([cpu / (verify + write + receive) for cpu, _, verify, write, receive in rounds]), 'x')


def fetch_urls(daemon, key):
    """The fetch entries of a file, as a reader of the bucket gets them."""
    token = daemon.request('GET', '/api/buckets/main/bench/xet-read-token').json()
    file_hash = daemon.request('HEAD', f'/buckets/main/bench/resolve/{key}').headers['X-Xet-Hash']
    request = urllib.request.Request(f"{token['casUrl']}/v1/reconstructions/{file_hash}", headers={'Authorization': f"Bearer {token['accessToken']}"})
    with urllib.request.urlopen(request) as reply:
        entries = json.load(reply)['fetch_info']
    return [(entry['url'], entry['url_range']['start'], entry['url_range']['end']) for name in entries for entry in entries[name]]


def timed_curl(lists):
    """Each list by one connection; its bytes a second, all together."""
    begun = time.monotonic()
    clients = []
    for urls in lists:
        words = []
        for url, first, last in urls:
            words += (['--next'] if words else []) + ['-s', '-f', '-r', f'{first}-{last}', '-o', '/dev/null', url]
        clients.append(subprocess.Popen(['curl', *words]))
    assert all(client.wait() == 0 for client in clients)
    return sum(last - first + 1 for urls in lists for _, first, last in urls) / (time.monotonic() - begun) / 1e9


def bench_fetch(daemon, scratch):
    urls = fetch_urls(daemon, 'gigabyte-0')
    folder = tempfile.mkdtemp(dir=scratch)
    for number, (_, first, last) in enumerate(urls):
        write_random(f'{folder}/{number}', last + 1, number)
    process, port, members = nginx(folder, False)
    theirs = [(f'http://127.0.0.1:{port}/{number}', first, last) for number, (_, first, last) in enumerate(urls)]
    rates, costs, pids = ([], []), ([], []), ([daemon.process.pid], members)
    for _ in range(2 * ROUNDS + 1):
        for who, list_of in enumerate((urls, theirs)):
            before = cpu_seconds(pids[who])
            rates[who].append(timed_curl([list_of[0::4] * 2, list_of[1::4] * 2, list_of[2::4] * 2, list_of[3::4] * 2]))
            costs[who].append(cpu_seconds(pids[who]) - before)
    process.terminate()
    process.wait()
    say('fetch URLs, 4 connections', median(rates[0]), 'GB/s')
    say('nginx, the same ranges', median(rates[1]), 'GB/s')
    say('fetch URLs against nginx (want >= 0.7)', median([a / b for a, b in zip(*rates)]), 'x')
    say('fetch URLs against nginx, CPU', median([b / a for a, b in zip(*costs)]), 'x')


def bench_many(daemon, scratch):
    per_file = []
    for count in (1000, 10000):
        folder = tempfile.mkdtemp(dir=scratch)
        for number in range(count):
            with open(f'{folder}/{number:05}.txt', 'wb') as file:
                file.write(random.Random(number + count).randbytes(500 + number % 4000))
        client = Client(daemon, tempfile.mkdtemp(dir=scratch), 'hub')
        before = cpu_seconds([daemon.process.pid])
        seconds, _ = client.run(HUB, f'{HERE}/hub_client.py', 'sync', 'main/bench', folder, f'many-{count}')
        cost = cpu_seconds([daemon.process.pid]) - before
        listed, _ = client.run(HUB, f'{HERE}/hub_client.py', 'list', 'main/bench', f'many-{count}')
        begun, cpu = time.monotonic(), cpu_seconds([daemon.process.pid])
        cursor = f'/api/buckets/main/bench/tree/many-{count}?recursive=true'
        while cursor:
            reply = daemon.request('GET', cursor)
            link = reply.headers.get('Link')
            cursor = link[1:link.index('>')].removeprefix(daemon.endpoint) if link else None
        say(f'{count} small files: sync', seconds, 's')
        say(f'{count} small files: sync, server CPU', cost, 's')
        say(f'{count} small files: listing by the client', listed, 's')
        say(f'{count} small files: listing alone', time.monotonic() - begun, 's')
        say(f'{count} small files: listing alone, server CPU', cpu_seconds([daemon.process.pid]) - cpu, 's')
        per_file.append(cost / count)
    say('server CPU for each file, 10,000 against 1,000 (want about 1)', per_file[1] / per_file[0], 'x')


def main():
    scratch = tempfile.mkdtemp()
    try:
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/bench')
            bench_upload(daemon, scratch)
            bench_fetch(daemon, scratch)
            bench_many(daemon, scratch)
            bench_seeds(daemon, scratch)
    finally:
        shutil.rmtree(scratch)


if __name__ == '__main__':
    main()
