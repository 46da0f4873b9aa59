#!/usr/bin/env python3
"""usage: setup/clients --only package build/clients/package/bin/python bench/package_rate.py [MB] [ROUNDS]
What the Python package costs beside the command line, on the same bytes.

A BF16 model of MB (2000) megabytes; each step changes 1.2 % of the elements by one ulp. In each
round, one after the other: `diff` of the step before and this one, as files; `publish` of the state
dict; `apply` of that delta to the file; `apply_into` a second state dict, with the proof before the
first write and in one pass; the step of a follower in memory. The first round, which meets memory
that was never used, is left out, so there must be two. Everything lies in memory (/dev/shm). At the
end: what a follower in memory needs above the checkpoint (its high water, less that of the process
before), in a process of its own, without and with `keeps_changes`.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy

from measure import median, say

from tests.support.checkpoints import write_safetensors
from tests.support.daemon import CLIENT, Daemon
from tests.support.package import package_is_ready, settings_of, start_script

assert package_is_ready(), 'setup/clients --only package brings what the package needs'

import deltabucket  # noqa: E402
import ml_dtypes  # noqa: E402

TENSORS, CHANGED = 40, 0.012

FOLLOWER = """
import sys
import deltabucket
def high_water():
    with open('/proc/self/status') as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith('VmHWM'))
before = high_water()
with deltabucket.Run('models/m').follow(silent=True, keeps_changes=len(sys.argv) > 1) as steps:
    for step in steps:
        print(step.number, high_water() - before, flush=True)
        sys.stdin.readline()
"""


def start(size, source):
    """Small numbers, as weights are."""
    count = size // TENSORS // 2
    return {f'layer{number}': source.normal(0, 0.02, count).astype(ml_dtypes.bfloat16)
            for number in range(TENSORS)}


def train(state, source):
    for tensor in state.values():
        places = source.choice(tensor.size, int(CHANGED * tensor.size), replace=False)
        tensor.view(numpy.uint16)[places] ^= 1


def write(path, state):
    write_safetensors(path, {name: ('BF16', list(tensor.shape), memoryview(tensor.view(numpy.uint8)))
                             for name, tensor in state.items()})


def read_into(state, path):
    """The tensors of the file that `write` has made of such a state."""
    with open(path, 'rb') as file:
        file.seek(-sum(tensor.nbytes for tensor in state.values()), os.SEEK_END)
        for tensor in state.values():
            file.readinto(tensor.view(numpy.uint8))


class Bench:
    def __init__(self, daemon, scratch, size):
        self.daemon, self.scratch, self.times = daemon, scratch, {}
        self.source = numpy.random.default_rng(1)
        self.state = start(size, self.source)
        self.run = deltabucket.Run('models/m', create_bucket=True, progress=False,
                                   **settings_of(daemon))
        self.run.publish(self.state)
        write(self.path('before'), self.state)

    def path(self, name):
        return os.path.join(self.scratch, name)

    def take(self, name, call):
        started = time.monotonic()
        made = call()
        self.times.setdefault(name, []).append(time.monotonic() - started)
        return made

    def command(self, *words):
        subprocess.run([CLIENT, *words, '--quiet'], check=True)

    def round(self, steps, other):
        train(self.state, self.source)
        write(self.path('now'), self.state)
        self.take('diff', lambda: self.command('diff', self.path('before'), self.path('now'),
                                               self.path('delta')))
        self.take('publish', lambda: self.run.publish(self.state))
        self.take('apply', lambda: self.command('apply', self.path('before'), self.path('delta'),
                                                self.path('made')))
        os.remove(self.path('made'))
        step = self.take('follow in memory', lambda: steps.next(60))
        for name, proves_first in (('apply_into, proving first', True), ('apply_into', False)):
            read_into(other, self.path('before'))
            self.take(name, lambda: step.apply_into(other, proves_first=proves_first))
            assert all(numpy.array_equal(other[key].view(numpy.uint16), tensor.view(numpy.uint16))
                       for key, tensor in self.state.items())
        shutil.rmtree(self.path('delta'))
        os.replace(self.path('now'), self.path('before'))

    def report(self):
        for name, times in self.times.items():
            say(f'{name}, median', median(times[1:]), 's')
        for name, rival in (('publish', 'diff'), ('apply_into, proving first', 'apply'),
                            ('apply_into', 'apply'), ('follow in memory', 'apply')):
            pairs = list(zip(self.times[name], self.times[rival]))[1:]
            say(f'{name} / {rival}, median', median(a / b for a, b in pairs), '')


def follower_memory(daemon, bench, size, *options):
    with start_script(FOLLOWER, *options, daemon=daemon) as process:
        process.stdout.readline()
        for _ in range(2):
            train(bench.state, bench.source)
            published = bench.run.publish(bench.state)
            process.stdin.write('\n')
            process.stdin.flush()
            needed = int(process.stdout.readline().split()[1])
        process.kill()
    say(' '.join(['follower in memory, above the checkpoint', *options]), (needed - size) / 1e6, 'MB')
    say('its delta', published.delta_bytes / 1e6, 'MB')


def main(size=2000, rounds=4):
    size = size * 1000000 // TENSORS // 2 * TENSORS * 2
    with Daemon() as daemon, tempfile.TemporaryDirectory(dir='/dev/shm') as scratch:
        bench = Bench(daemon, scratch, size)
        with deltabucket.Run('models/m', progress=False, **settings_of(daemon)).follow(
                silent=True) as steps:
            steps.next(60)
            other = {key: tensor.copy() for key, tensor in bench.state.items()}
            for _ in range(rounds):
                bench.round(steps, other)
        bench.report()
        follower_memory(daemon, bench, size)
        follower_memory(daemon, bench, size, 'keeps_changes')


if __name__ == '__main__':
    main(*map(int, sys.argv[1:]))
