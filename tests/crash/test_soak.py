"""A server that is used without a pause: memory, open files and disk stay what they are, and at the end the store is sound.

DELTABUCKET_TORTURE=1 makes it 30 minutes over 100,000 keys instead of 12 seconds over 2,000.
"""
import contextlib
import glob
import http.client
import os
import random
import subprocess
import threading
import time
import unittest

from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.runs import Run

TORTURE = os.environ.get('DELTABUCKET_TORTURE')
SECONDS, KEYS = (1800, 100_000) if TORTURE else (12, 2_000)
CALLERS, KEEP_STEPS = 4, 8
SIZES = (100, 900, 4_000, 20_000, 90_000)
AUTHORISED = {'Authorization': f'Bearer {ROOT_TOKEN}'}
SLACK_BYTES = 16 << 20  # of memory, between two thirds of the time
# The journal's logs of 8 MiB since the older of two snapshots, one that is being written, and what SQLite keeps of its logs.
DISK_SLACK_BYTES = 64 << 20
PACKS_OPEN_MAX = 128 + 32  # what is cached (storage/packs/pack_store.c), and what is read or written at the moment


class Sample:
    def __init__(self, daemon):
        self.memory = daemon.rss_bytes()
        opened = []
        for link in glob.glob(f'/proc/{daemon.process.pid}/fd/*'):
            with contextlib.suppress(OSError):  # closed meanwhile
                opened.append(os.readlink(link))
        self.packs = sum('.pack' in path for path in opened)  # the server keeps some open, as there come to be more of them
        self.files = len(opened) - self.packs
        self.disk = int(subprocess.run(['du', '-s', '-B1', daemon.folder], capture_output=True, text=True).stdout.split()[0])


def mean(samples, name):
    return sum(getattr(sample, name) for sample in samples) / len(samples)


class Soak(unittest.TestCase):
    def setUp(self):
        self.stop, self.failures, self.asked = threading.Event(), [], 0
        self.daemon = Daemon(tls=False, arguments=['--gc-interval', '1', '--gc-rate', '0'])
        self.addCleanup(self.daemon.__exit__)
        self.daemon.start()
        self.daemon.request('PUT', '/soak')

    def call(self, number):
        source = random.Random(number)
        connection = self.daemon.connect()
        while not self.stop.is_set():
            key = f'/soak/{number}/{source.randrange(KEYS // CALLERS)}'
            kind = source.choices(('PUT', 'GET', 'DELETE', 'list'), (6, 6, 2, 1))[0]
            target = f'/soak?list-type=2&max-keys=50&prefix={number}/{source.randrange(100)}' if kind == 'list' else key
            connection.request('GET' if kind == 'list' else kind, target, source.randbytes(source.choice(SIZES)) if kind == 'PUT' else None, AUTHORISED)
            reply = connection.getresponse()
            reply.read()
            self.asked += 1
            if reply.status not in (200, 204, 404):
                self.failures.append((kind, target, reply.status))
        connection.close()

    def publish(self):
        run = Run(self.daemon, 'r')
        run.call('PUT', '/settings', {'keep_steps': KEEP_STEPS})
        for step in range(1_000_000):
            if self.stop.wait(0.05):
                return
            reply = run.publish(step)
            if reply.status != 201:
                self.failures.append((step, reply.body))

    def fill(self):
        connection = self.daemon.connect()
        source = random.Random('fill')
        for number in range(CALLERS):
            for key in range(KEYS // CALLERS):
                connection.request('PUT', f'/soak/{number}/{key}', source.randbytes(source.choice(SIZES)), AUTHORISED)
                connection.getresponse().read()
        connection.close()

    def test_nothing_grows(self):
        self.fill()
        threads = [threading.Thread(target=self.call, args=(number,)) for number in range(CALLERS)] + [threading.Thread(target=self.publish)]
        for thread in threads:
            thread.start()
        samples, end = [], time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                time.sleep(SECONDS / 60)
                samples.append(Sample(self.daemon))
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(self.failures[:5], [])
        self.assertGreater(self.asked, 10 * SECONDS)
        third = len(samples) // 3  # a busy machine takes fewer
        self.judge(samples[third:2 * third], samples[2 * third:])
        self.daemon.admin('gc')
        self.daemon.stop()
        self.daemon.check_store()

    def judge(self, middle, last):
        told = [f'{mean(part, "memory") / 2**20:.0f} MiB of memory, {mean(part, "files"):.1f} open files, {mean(part, "packs"):.1f} open packs, {mean(part, "disk") / 2**20:.0f} MiB on disk'
                for part in (middle, last)]
        print(f'{self.asked} requests; {told[0]}, then {told[1]}')
        self.assertLess(mean(last, 'memory'), 1.05 * mean(middle, 'memory') + SLACK_BYTES, told)
        self.assertLess(mean(last, 'files'), mean(middle, 'files') + 4, told)
        self.assertLess(max(sample.packs for sample in last), PACKS_OPEN_MAX, told)
        self.assertLess(mean(last, 'disk'), 1.05 * mean(middle, 'disk') + DISK_SLACK_BYTES, told)


if __name__ == '__main__':
    unittest.main()
