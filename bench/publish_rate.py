#!/usr/bin/env python3
"""usage: bench/publish_rate.py [MB] [ROUNDS]   what publishing and following a step cost beside the least that they have to do.

A BF16 checkpoint of MB (1300) megabytes in one file; each step changes 1.2 % of the elements by one ulp. In each round, one after the other on the
same files: `diff` of the two steps; `publish` by a trainer that leaves each step where it wrote it, and by one that writes over the step before;
`cp` of a checkpoint; `follow --once` of the step, with and without --volatile. All of it is in the page cache. TMPDIR says on which disk.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from measure import median, say

from tests.support.checkpoints import sha256, write_safetensors
from tests.support.daemon import CLIENT, Daemon

TENSORS, CHANGED = 40, 0.012


def make(path, tensors):
    write_safetensors(path, {f'layer{number}': ('BF16', [len(data) // 2], bytes(data)) for number, data in enumerate(tensors)})


def start(size, source):
    """Small numbers, as weights are: exponents of a few values, all mantissas."""
    exponents = bytes(0x3b + byte % 3 for byte in range(256))
    tensors = []
    for _ in range(TENSORS):
        data = bytearray(source.randbytes(size // TENSORS // 2 * 2))
        data[1::2] = data[1::2].translate(exponents)
        tensors.append(data)
    return tensors


def train(tensors, source):
    for data in tensors:
        for at in source.choices(range(0, len(data), 2), k=int(CHANGED * len(data) / 2)):
            data[at] ^= 1


def timed(call):
    started = time.monotonic()
    call()
    return time.monotonic() - started


class Round:
    def __init__(self, daemon, scratch):
        self.daemon, self.scratch, self.times = daemon, scratch, {}

    def path(self, name):
        return os.path.join(self.scratch, name)

    def take(self, name, call):
        self.times.setdefault(name, []).append(timed(call))

    def publish(self, run, path):
        self.daemon.client('publish', '--run', f'models/{run}', '--state', self.path(f'state-{run}'), '--quiet', path)

    def follow(self, into, *more):
        self.daemon.client('follow', '--run', 'models/left', '--into', self.path(into), '--once', '--quiet', *more)

    def run(self, step):
        before, now, place = self.path(f'step{step - 1}'), self.path(f'step{step}'), self.path('place')
        shutil.copyfile(now, place)
        os.sync()
        self.take('diff', lambda: subprocess.run([CLIENT, 'diff', '--quiet', before, now, self.path('delta')], check=True))
        shutil.rmtree(self.path('delta'), ignore_errors=True)
        self.take('publish, each step in a place of its own', lambda: self.publish('left', now))
        self.take('publish, each step over the one before', lambda: self.publish('over', place))
        os.sync()
        self.take('cp', lambda: subprocess.run(['cp', now, self.path('copy')], check=True))
        os.remove(self.path('copy'))
        os.sync()
        self.take('follow', lambda: self.follow('worker'))
        os.sync()
        self.take('follow --volatile', lambda: self.follow('volatile', '--volatile'))
        if sha256(self.path('worker/current/model.safetensors')) != sha256(now):
            raise AssertionError('the worker does not have the step')


def main():
    size, rounds = (int(sys.argv[1]) if len(sys.argv) > 1 else 1300) * 1_000_000, int(sys.argv[2]) if len(sys.argv) > 2 else 5
    source = random.Random(1)
    with Daemon(tls=False) as daemon, tempfile.TemporaryDirectory() as scratch:
        daemon.request('PUT', '/models')
        one = Round(daemon, scratch)
        tensors = start(size, source)
        make(one.path('step0'), tensors)
        shutil.copyfile(one.path('step0'), one.path('place'))
        one.publish('left', one.path('step0'))
        one.publish('over', one.path('place'))
        one.follow('worker')
        one.follow('volatile')
        for step in range(1, rounds + 1):
            train(tensors, source)
            make(one.path(f'step{step}'), tensors)
            one.run(step)
            if step > 1:
                os.remove(one.path(f'step{step - 2}'))
        for name, times in one.times.items():
            say(f'{name}, median', median(times), 's')
        for name, rival in (('publish, each step in a place of its own', 'diff'), ('publish, each step over the one before', 'diff'), ('follow', 'cp'),
                            ('follow --volatile', 'cp')):
            say(f'{name} / {rival}, median', median(a / b for a, b in zip(one.times[name], one.times[rival])), '')


if __name__ == '__main__':
    main()
