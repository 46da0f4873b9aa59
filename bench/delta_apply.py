#!/usr/bin/env python3
"""usage: bench/delta_apply.py [BYTES [FOLDER]]   `diff` and `apply` of one BF16 tensor of BYTES (2 GB) on files.

The checkpoint is made up: weights around 0 kept in 32 bits, one step of equal size for all of them, 1.35 % changed after rounding. `apply` is measured
against writing and syncing the same bytes; memory is what the process had of its own (mapped files are the page cache's).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from measure import say

from tests.support.clients import importable
from tests.support.daemon import CLIENT

if not importable('numpy', environment='formats'):
    sys.exit('setup/clients has not installed numpy')

import numpy  # noqa: E402

PIECE = 1 << 24  # elements
DENSITY = 0.0135
ROUNDS = 3


def to_bf16(values):
    """Rounded to nearest, ties to even."""
    bits = values.view('<u4').astype(numpy.uint64)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype('<u2')


def make_pair():
    """One piece before and after a step; the step is scaled until the share of changed elements is right."""
    draw = numpy.random.default_rng(1)
    weights = draw.normal(0, 0.02, PIECE).astype('<f4')
    directions = draw.choice(numpy.array([-1, 1], '<f4'), PIECE)
    old, step = to_bf16(weights), 1e-6
    for _ in range(4):
        new = to_bf16(weights + numpy.float32(step) * directions)
        step *= DENSITY / numpy.count_nonzero(old != new) * PIECE
    return old, new


def write_checkpoint(path, piece, elements):
    header = json.dumps({'weight': {'dtype': 'BF16', 'shape': [elements], 'data_offsets': [0, 2 * elements]}}).encode()
    header += b' ' * (-len(header) % 8)
    with open(path, 'wb') as file:
        file.write(len(header).to_bytes(8, 'little') + header)
        for at in range(0, elements, PIECE):
            file.write(piece[:min(PIECE, elements - at)].tobytes())


def watch_memory(process, peak):
    while process.poll() is None:
        try:
            with open(f'/proc/{process.pid}/status') as status:
                own = sum(int(line.split()[1]) * 1024 for line in status if line.startswith(('RssAnon', 'RssShmem')))
        except OSError:
            return
        peak[0] = max(peak[0], own)
        time.sleep(0.01)


def run(*arguments):
    """Seconds and peak memory of its own of `deltabucket ARGUMENTS`."""
    begun, peak = time.monotonic(), [0]
    with subprocess.Popen([CLIENT, *arguments, '--quiet']) as process:
        watcher = threading.Thread(target=watch_memory, args=(process, peak))
        watcher.start()
        status = process.wait()
        watcher.join()
    if status != 0:
        sys.exit(f'deltabucket {" ".join(arguments)} ended with {status}')
    return time.monotonic() - begun, peak[0]


def plain_write(source, target):
    """Seconds to write and sync the bytes of `source`, which is in the page cache, to a new file."""
    begun = time.monotonic()
    with open(source, 'rb') as file, open(target, 'wb', buffering=0) as out:
        while data := file.read(1 << 22):
            out.write(data)
        os.fsync(out.fileno())
    return time.monotonic() - begun


def main(size, folder):
    old, new = make_pair()
    base, following, delta, out, plain = (os.path.join(folder, name) for name in ('base.safetensors', 'next.safetensors', 'delta', 'out', 'plain'))
    write_checkpoint(base, old, size // 2)
    write_checkpoint(following, new, size // 2)
    seconds, memory = run('diff', '--format', 'ulp-class', base, following, delta)
    say('diff: weights read and delta written', size / seconds / 1e9, 'GB/s')
    say('diff: peak memory of its own', memory / 2**20, 'MiB')
    applies, plains = [], []
    for _ in range(ROUNDS):
        plains.append(plain_write(following, plain))
        os.remove(plain)
        seconds, memory = run('apply', base, delta, out)
        applies.append(seconds)
        shutil.rmtree(out) if os.path.isdir(out) else os.remove(out)
    say('apply: result written, synced and proven', size / min(applies) / 1e9, 'GB/s')
    say('apply: peak memory of its own', memory / 2**20, 'MiB')
    say('plainly writing and syncing the same bytes', size / min(plains) / 1e9, 'GB/s')
    say('apply / plain write', min(plains) / min(applies), '(limit 0.8)')


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as scratch:
        main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 2_000_000_000, scratch)
