#!/usr/bin/env python3
"""PUT of 1 GiB on one connection, synced, MD5 ETag: against the MD5-only rate of one core; and the server's memory during PUT and GET."""
import os
import subprocess
import tempfile
import threading
import time

from measure import cpu_seconds, median, say
from tests.support.daemon import BUILD, ROOT_TOKEN, Daemon

SIZE, ROUNDS = 1 << 30, 3


class PeakRss(threading.Thread):
    def __init__(self, daemon):
        super().__init__()
        self.daemon_process, self.peak, self.running = daemon, 0, True

    def run(self):
        while self.running:
            self.peak = max(self.peak, self.daemon_process.rss_bytes())
            time.sleep(0.01)


def fill(source):
    """New bytes, so that no chunk of them is in the store yet; on the disk, so that writing them back does not run into the measurement."""
    source.seek(0)
    for _ in range(SIZE >> 24):
        source.write(os.urandom(1 << 24))
    source.flush()
    os.sync()


def put(daemon, source):
    subprocess.run(['curl', '-sf', '-T', source.name, '-H', f'Authorization: Bearer {ROOT_TOKEN}', '-H', 'Expect:', f'{daemon.endpoint}/bench/object'],
                   check=True, stdout=subprocess.DEVNULL)


def main():
    md5 = float(subprocess.run([os.path.join(BUILD, 'bench_md5_rate')], capture_output=True, text=True, check=True).stdout.split()[-2])
    with tempfile.NamedTemporaryFile() as source, Daemon(tls=False) as daemon:
        fill(source)
        daemon.request('PUT', '/bench')
        idle = daemon.rss_bytes()
        rates, cost = [], []
        for _ in range(ROUNDS):
            before = cpu_seconds([daemon.process.pid])
            begun = time.monotonic()
            put(daemon, source)
            rates.append(SIZE / (time.monotonic() - begun) / 1e9)
            cost.append((cpu_seconds([daemon.process.pid]) - before) / (SIZE / 1e9))
            fill(source)
        watch = PeakRss(daemon)
        watch.start()
        put(daemon, source)
        put_peak = watch.peak
        subprocess.run(['curl', '-sf', '-o', '/dev/null', '-H', f'Authorization: Bearer {ROOT_TOKEN}', f'{daemon.endpoint}/bench/object'], check=True)
        watch.running = False
        watch.join()
        say('MD5 alone, one core', md5, 'GB/s')
        say('PUT 1 GiB, one connection, synced', median(rates), 'GB/s')
        say('PUT 1 GiB server CPU', median(cost), 's/GB')
        say('PUT rate against MD5 alone (want >= 0.6)', median(rates) / md5, 'x')
        say('server memory above idle during PUT (want < 64)', (put_peak - idle) / (1 << 20), 'MiB')
        say('server memory above idle during PUT and GET (want < 64)', (watch.peak - idle) / (1 << 20), 'MiB')


main()
