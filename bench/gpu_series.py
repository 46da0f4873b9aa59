"""Checkpoints of any size made of real steps, for the benches of the GPU kernels.

A large tensor is many copies of the same tensor of a real series, one behind the other. Each copy
is another pair of consecutive steps of the second half of the series, where the share of changes
has settled. When all pairs were used they come again, turned by an offset of their own, so that no
block has the bytes of another one. What a kernel sees is what a larger model would give it: which
exponents there are, which of them change, and where changes crowd. No cache or codec could gain by
the copies: blocks are coded one by one, and a checkpoint is far larger than any cache.
"""
import glob
import json
import os

import numpy

KINDS = {'U16': numpy.uint16, 'U32': numpy.uint32, 'BF16': numpy.uint16}


def read(path):
    with open(path, 'rb') as file:
        raw = file.read()
    start = 8 + int.from_bytes(raw[:8], 'little')
    header = json.loads(raw[8:start])
    header.pop('__metadata__', None)
    return {name: numpy.frombuffer(raw, KINDS[entry['dtype']], (entry['data_offsets'][1] - entry['data_offsets'][0]) // KINDS[entry['dtype']]().itemsize,
                                   start + entry['data_offsets'][0]) for name, entry in header.items()}


def steps_of(series):
    """[{name: the bits of its BF16 elements}] of all steps of a folder with anchors/ and deltas/ (TRL's gap_delta)."""
    anchor, = glob.glob(os.path.join(series, 'anchors', '*.safetensors'))
    steps = [read(anchor)]
    for path in sorted(glob.glob(os.path.join(series, 'deltas', '*.safetensors'))):
        delta, weights = read(path), dict(steps[-1])
        for name in [key[:-4] for key in delta if key.endswith('.val')]:
            weights[name] = weights[name].copy()
            weights[name][numpy.cumsum(delta[f'{name}.idx'].astype(numpy.int64) + 1) - 1] = delta[f'{name}.val']
        steps.append(weights)
    return steps


def one_ulp(words, share, draw):
    """A copy with so many of the words, anywhere, one step up or down."""
    count = int(share * len(words))
    places = draw.choice(len(words), count, replace=False)
    made = words.copy()
    made[places] += draw.choice(numpy.array([1, 0xffff], numpy.uint16), count)
    return made


class Pair:
    """A base and the step after it, of at least `size` bytes. share: None for what the series has changed, else the share of elements that
    differ, spread evenly."""

    def __init__(self, steps, size, share=None):
        self.pairs = list(zip(steps[len(steps) // 2:], steps[len(steps) // 2 + 1:]))
        self.share = share
        self.names = sorted(steps[0])
        model = sum(2 * len(steps[0][name]) for name in self.names)
        self.copies = max(1, -(-int(size) // model))
        self.bytes = self.copies * model
        self.changed = 0

    def pieces(self, name):
        """(base, next) of each copy of a tensor."""
        draw = numpy.random.default_rng([len(name), *name.encode()])
        for copy in range(self.copies):
            base, following = (step[name] for step in self.pairs[copy % len(self.pairs)])
            if copy >= len(self.pairs):
                turn = int(draw.integers(len(base)))
                base, following = numpy.roll(base, turn), numpy.roll(following, turn)
            yield base, following if self.share is None else one_ulp(base, self.share, draw)

    def write(self, base_path, next_path):
        header, at = {}, 0
        for name in self.names:
            count = self.copies * len(self.pairs[0][0][name])
            header[name] = {'dtype': 'BF16', 'shape': [count], 'data_offsets': [at, at + 2 * count]}
            at += 2 * count
        text = json.dumps(header).encode()
        text += b' ' * (-len(text) % 8)
        self.changed = 0
        with open(base_path, 'wb') as base_file, open(next_path, 'wb') as next_file:
            for file in (base_file, next_file):
                file.write(len(text).to_bytes(8, 'little') + text)
            for name in self.names:
                for base, following in self.pieces(name):
                    base_file.write(base)
                    next_file.write(following)
                    self.changed += int(numpy.count_nonzero(base != following))

    def density(self):
        """The share of elements that differ; once written."""
        return self.changed / (self.bytes / 2)
