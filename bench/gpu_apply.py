#!/usr/bin/env python3
"""usage: bench/gpu_apply.py [--size BYTES] [--machine cuda|cpu] [--rounds N] [--folder FOLDER] [--hostile N] [--plain]
What a step costs on a GPU, phase by phase, beside copying the whole model and beside TRL's way. On a
machine with an NVIDIA GPU, with the programs built there (setup/build build/check check-programs):

    pip install torch 'cuda-bindings[all]' ./python
    DELTABUCKET_BUILD=$PWD/build/check DELTABUCKET_SERIES=FOLDER python3 bench/gpu_apply.py

A BF16 model of --size bytes (16e9), made of real steps as bench/gpu_series.py says, with the changes
of the series ($DELTABUCKET_SERIES, a folder with anchors/ and deltas/, or else tests/data/small), and
then with 1 %, 3 % and 30 % of the elements changed, spread evenly. Base and next lie in --folder
($TMPDIR), twice the size. Each figure is the median of --rounds rounds (5) in which all take turns.
What the kernels make is compared with the file, byte by byte, and so is what they take back.

    prepare   the library lays the delta out in pinned memory: before the pause, by all processors
    pause     upload, device_read, device_apply with its hashes, and the verdicts back
    take back device_undo
    largest   read and apply of the one block that has most changes, alone
    pinned    a copy of the whole model from pinned memory (1 GB of it, again and again)
    cached    a copy of the whole model from the page cache
    TRL       positions (4 bytes) and values (2) from pinned memory, index_put_ tensor by tensor; it
              proves nothing
    bound     the model read and written once in the memory of the GPU, and the delta over the bus

Then --hostile (200) deltas with damaged payloads, which must leave the base; and, where
compute-sanitizer is found, the same at a small size under its memcheck and racecheck. --plain leaves
the sanitizer out. Without what this needs it says what is missing and ends with 77. --machine cpu runs
the kernels compiled for the processor, slowly: it tests this program, its figures mean nothing.
"""
import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy

from measure import median, say
from gpu_series import Pair, steps_of

from tests.support.daemon import CLIENT, DATA
from tests.support.package import package_is_ready

MISSING = 77
SHARES = (None, 0.01, 0.03, 0.30)
PINNED_BYTES = 1 << 30
SMALL_BYTES = '20e6'


class Processor:
    """This machine as a device, and as a stopwatch."""
    has_torch = False

    def __init__(self):
        from tests.support.device_machine import DeviceMachine
        self.machine = DeviceMachine()

    def seconds(self, work):
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun


class Gpu:
    """The first CUDA device; times are those of its own events."""
    has_torch = True

    def __init__(self):
        import torch
        from deltabucket._cuda import Cuda

        class Machine(Cuda):
            def read(self, source, begin, nbytes):
                return source.tensor[begin:begin + nbytes].cpu().numpy()

            def wait(self):
                torch.cuda.synchronize()
                self._sources.clear()
        self.torch = torch
        self.machine = Machine(torch.device('cuda', 0))
        print(f'{torch.cuda.get_device_name(0)}, torch {torch.__version__}', flush=True)

    def seconds(self, work):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda.synchronize()
        begin.record()
        work()
        end.record()
        self.torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e3


def missing():
    """What keeps the kernels from running on a GPU here; '' for nothing."""
    try:
        import torch
    except ImportError:
        return 'torch'
    if not torch.cuda.is_available():
        return 'a CUDA device that torch knows'
    try:
        from cuda.bindings import nvrtc  # noqa: F401
    except ImportError:
        return "cuda-bindings with NVRTC (pip install 'cuda-bindings[all]')"
    return ''


class Rounds:
    """Seconds of each thing in each round."""

    def __init__(self, device):
        self.device, self.times = device, {}

    def run(self, name, work):
        self.times.setdefault(name, []).append(self.device.seconds(work))

    def host(self, name, work):
        begun = time.perf_counter()
        work()
        self.times.setdefault(name, []).append(time.perf_counter() - begun)

    def median(self, name):
        return median(self.times[name])


class Files:
    """Base, next and delta of one share of changes, in a folder."""

    def __init__(self, steps, size, share, folder):
        self.base, self.next, self.delta = (os.path.join(folder, name) for name in ('base.safetensors', 'next.safetensors', 'delta'))
        shutil.rmtree(self.delta, ignore_errors=True)
        pair = Pair(steps, size, share)
        pair.write(self.base, self.next)
        subprocess.run([CLIENT, 'diff', '--quiet', '--format', 'ulp-class', self.base, self.next, self.delta], check=True)
        self.bytes, self.density = pair.bytes, pair.density()
        self.title = f'{"series" if share is None else "evenly"}, {100 * self.density:.2f} %'


def expect(holds, what):
    if not holds:
        sys.exit(f'gpu_apply: {what}')


def step_once(rounds, files, held, delta):
    """One step there and back, each phase by itself."""
    rounds.host('prepare', delta.fill)
    rounds.run('upload', delta.send)
    rounds.run('read', delta.read)
    rounds.run('apply', delta.apply)
    rounds.host('verdicts', lambda: expect(not delta.failures().any(), 'a block failed'))
    if len(rounds.times['apply']) == 1:
        expect(not held.differs(files.next), 'the result is not the next step')
    rounds.run('take back', delta.undo)
    if len(rounds.times['apply']) == 1:
        expect(not held.differs(files.base), 'what was taken back is not the base')


def largest_alone(rounds, delta):
    row = int(numpy.argmax(delta.blocks()['changes']))
    delta.send()

    def both():
        delta.read(row)
        delta.apply(row)
    rounds.run('largest', both)
    delta.undo(row)


def positions_and_values(files):
    """[(first element in the model, positions, values)] of each tensor, as TRL sends them."""
    from tests.support.device_delta import tensors_of
    base, following = (numpy.memmap(path, numpy.uint8, 'r') for path in (files.base, files.next))
    for name, (_, _, first, end) in tensors_of(files.base).items():
        after = following[first:end].view(numpy.uint16)
        places = numpy.flatnonzero(base[first:end].view(numpy.uint16) != after)
        yield name, places.astype(numpy.int32), after[places]


class Trl:
    """index_put_ of positions and values, tensor by tensor, into a copy of the model."""

    def __init__(self, torch, files, held):
        self.model = held.memory.tensor.clone()
        self.patches = []
        for name, places, values in positions_and_values(files):
            count = len(values)
            sent = [torch.from_numpy(array.view(kind)).pin_memory() for array, kind in ((places, numpy.int32), (values, numpy.int16))]
            begin = held.places[name]
            self.patches.append((self.model[begin:begin + 2 * (held.tensors[name][3] - held.tensors[name][2]) // 2].view(torch.int16), sent, count))

    def __call__(self):
        for tensor, (places, values), count in self.patches:
            if count:
                tensor.index_put_((places.cuda(non_blocking=True).long(),), values.cuda(non_blocking=True))


def copies_once(rounds, torch, files, held, copies):
    """The whole model once over the bus in two ways, and once within the device."""
    pinned, other = copies
    whole = held.memory.tensor

    def from_pinned():
        for at in range(0, len(other), len(pinned)):
            piece = other[at:at + len(pinned)]
            piece.copy_(pinned[:len(piece)], non_blocking=True)

    def from_cache():
        file = numpy.memmap(files.base, numpy.uint8, 'c')
        for at in range(0, min(len(file), len(other)), PINNED_BYTES):
            piece = torch.from_numpy(file[at:at + PINNED_BYTES])[:len(other) - at]
            other[at:at + len(piece)].copy_(piece)
    rounds.run('pinned', from_pinned)
    rounds.host('cached', lambda: (from_cache(), torch.cuda.synchronize()))
    rounds.run('memory', lambda: other.copy_(whole))


def measure_step(device, files, given):
    from tests.support.device_delta import Delta, Device
    rounds = Rounds(device)
    held = Device(device.machine, files.base)
    held.load()
    delta = Delta(held, files.delta)
    delta.fill()
    delta.allocate()
    torch = getattr(device, 'torch', None)
    trl = Trl(torch, files, held) if device.has_torch else None
    copies = device.has_torch and (torch.empty(min(PINNED_BYTES, files.bytes), dtype=torch.uint8, pin_memory=True), torch.empty_like(held.memory.tensor))
    for _ in range(given.rounds):
        step_once(rounds, files, held, delta)
        largest_alone(rounds, delta)
        if device.has_torch:
            rounds.run('TRL', trl)
            copies_once(rounds, torch, files, held, copies)
    show(rounds, files, delta)
    hostile(files, held, delta, given.hostile)


def show(rounds, files, delta):
    facts, ms = delta.facts, lambda name: 1e3 * rounds.median(name)
    pause = sum(rounds.median(name) for name in ('upload', 'read', 'apply', 'verdicts'))
    print(f'-- {files.title} of {files.bytes / 1e9:.2f} GB changed: {facts.blocks} blocks, {facts.changes} changes, {facts.upload_bytes / 1e6:.1f} MB over the '
          f'bus, {100 * facts.decoded_bytes / max(1, facts.upload_bytes):.1f} % of them decoded by the host')
    for name in ('prepare', 'upload', 'read', 'apply', 'verdicts', 'take back', 'largest'):
        say(f'{files.title}: {name}', ms(name), 'ms')
    say(f'{files.title}: pause', 1e3 * pause, 'ms')
    if 'TRL' not in rounds.times:
        return
    bound = rounds.median('memory') + facts.upload_bytes / files.bytes * rounds.median('pinned')
    for name, seconds in (('pinned', rounds.median('pinned')), ('cached', rounds.median('cached')), ('TRL', rounds.median('TRL')), ('bound', bound)):
        say(f'{files.title}: {name}', 1e3 * seconds, 'ms')
        say(f'{files.title}: pause / {name}', pause / seconds, '')


def hostile(files, held, delta, count):
    """Payloads with bytes of chance in them, and undone: nothing else may have changed."""
    draw = numpy.random.default_rng(1)
    whole, verdicts = delta.upload.copy(), numpy.zeros(3, int)
    for _ in range(count):
        delta.upload[:] = whole
        for place in draw.integers(max(1, len(whole)), size=8):
            delta.upload[place] = draw.integers(256)
        delta.send()
        delta.read()
        delta.apply()
        verdicts += numpy.bincount(delta.failures(), minlength=3)
        delta.undo()
    delta.machine.wait()
    delta.upload[:] = whole
    expect(not held.differs(files.base), 'after damaged payloads the base is not there')
    if count:
        print(f'{count} damaged payloads: {verdicts[1]} blocks malformed, {verdicts[2]} with another hash; the base is there')


def sanitize():
    """This program, small, under compute-sanitizer."""
    tool = shutil.which('compute-sanitizer') or shutil.which('/usr/local/cuda/bin/compute-sanitizer')
    if tool is None:
        print('compute-sanitizer is not here: memory and races on the device were not checked')
        return
    for kind in ('memcheck', 'racecheck'):
        command = [tool, '--tool', kind, '--error-exitcode', '9', sys.executable, os.path.abspath(__file__), '--plain', '--size', SMALL_BYTES, '--rounds', '1',
                   '--hostile', '20']
        done = subprocess.run(command, capture_output=True, text=True)
        print(f'compute-sanitizer --tool {kind}: {"nothing found" if done.returncode == 0 else done.stdout[-4000:] + done.stderr[-4000:]}')
        expect(done.returncode == 0, f'{kind} ended with {done.returncode}')


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[1])
    parser.add_argument('--size', type=float, default=16e9)
    parser.add_argument('--machine', choices=('cuda', 'cpu'), default='cuda')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--folder')
    parser.add_argument('--hostile', type=int, default=200)
    parser.add_argument('--plain', action='store_true')
    return parser.parse_args()


def main():
    given = parsed()
    lacks = missing() if given.machine == 'cuda' else ''
    if lacks:
        print(f'gpu_apply: {lacks} is missing; --machine cpu tries this program without a GPU', file=sys.stderr)
        return MISSING
    if importlib.util.find_spec('deltabucket') is None:
        expect(package_is_ready(), 'neither the package deltabucket is here nor what it is built with (setup/clients --only package)')
    device = Gpu() if given.machine == 'cuda' else Processor()
    steps = steps_of(os.environ.get('DELTABUCKET_SERIES', os.path.join(DATA, 'small')))
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for share in SHARES:
            measure_step(device, Files(steps, given.size, share, folder), given)
    if given.machine == 'cuda' and not given.plain:
        sanitize()
    return 0


if __name__ == '__main__':
    sys.exit(main())
