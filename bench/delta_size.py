#!/usr/bin/env python3
"""usage: bench/delta_size.py [SERIES]   bytes per step of `ulp-class` beside what others publish for the same two checkpoints.

SERIES is a folder of one anchor and TRL deltas (anchors/, deltas/), by default $DELTABUCKET_SERIES, else tests/data/small. The rivals are reference encoders in
numpy (tests/formats); payload is the bytes of the tensors that the readers decode, ours with all block headers:

    xor + zstd-1   slime, miles, stitch, ModelExpress: one frame per tensor
    TRL raw, gap   positions and BF16 values
    PULSE-like     row and column deltas and raw values in one zstd-1 frame, as grail's codec 3.1 lays them out
    entropy        the least that positions cost when the old exponent is known, a fair coin for the sign, and the least for |ulp|; per tensor

The limits beside the ratios are promised for the series `dev` (1.35 to 4 % changed).
"""
import glob
import json
import math
import os
import subprocess
import sys
import tempfile

from measure import say

from tests.support.clients import importable
from tests.support.daemon import CLIENT, DATA

if not importable('numpy', 'safetensors', 'zstandard', 'xxhash', 'blake3', environment='formats'):
    sys.exit('setup/clients has not installed numpy, safetensors, zstandard, xxhash and blake3: no rivals to measure')

import numpy  # noqa: E402

from tests.formats import container, slime, trl  # noqa: E402

CLASSES = 12
CHANGED = 'changed'
LIMITS = (('xor + zstd-1', 0.36), ('TRL raw', 0.152), ('TRL gap', None), ('PULSE-like', None), ('entropy', 1.08))


def bits16(tensor):
    return tensor.data.view('<u2')


def narrow(values, kinds):
    """As bytes of the smallest of these dtypes that holds them."""
    largest = values.max(initial=0)
    return values.astype(next(kind for kind in kinds if largest <= numpy.iinfo(kind).max)).tobytes()


def pulse(base, following):
    """Rows count along the first dimension; a column is absolute where its row is another than the one before it."""
    listed, sections, offset = [], [], 0
    for name in sorted(base):
        positions = numpy.flatnonzero(bits16(base[name]) != bits16(following[name]))
        if not positions.size:
            continue
        rows, columns = numpy.divmod(positions, math.prod(base[name].shape[1:]))
        row_steps = numpy.diff(rows, prepend=0)
        first_of_row = numpy.concatenate(([True], numpy.diff(rows) != 0))
        column_steps = numpy.where(first_of_row, columns, numpy.diff(columns, prepend=0))
        parts = (narrow(row_steps, ('<u1', '<u2', '<i4')), narrow(column_steps, ('<u2', '<i4')), bits16(following[name])[positions].tobytes())
        listed.append([name, base[name].shape, int(positions.size), 'bf16', *map(len, parts), offset])
        offset += sum(map(len, parts))
        sections.extend(parts)
    header = json.dumps({'version': 31, 'tensors': listed}).encode()
    return len(slime.compress(len(header).to_bytes(4, 'little') + header + b''.join(sections)))


def xor_zstd(base, following):
    return sum(len(slime.compress(slime.difference('xor', base[name].data, following[name].data)))
               for name in base if not numpy.array_equal(base[name].data, following[name].data))


def trl_bytes(form, base, following):
    return sum(tensor.data.size for tensor in trl.encode(form, base, following, 1)[0].values())


def ordered(bits):
    """BF16 bits as integers in the order of the numbers."""
    wide = bits.astype(numpy.int32)
    return numpy.where(wide & 0x8000, -1 - (wide & 0x7fff), wide)


def binary_entropy(counts, hits):
    """Bits to tell which `hits` of `counts` it was, summed over classes."""
    total = 0.0
    for part in (hits, counts - hits):
        some = part > 0
        total -= (part[some] * numpy.log2(part[some] / counts[some])).sum()
    return total


def entropy(base, following):
    """Changed elements and the bytes that they cost at least."""
    bits = changed = 0
    for name in base:
        old, new = bits16(base[name]), bits16(following[name])
        exponents = (old >> 7) & 255
        classes = numpy.minimum(exponents.max(initial=0) - exponents, CLASSES - 1)
        mask = old != new
        if not mask.any():
            continue
        steps = numpy.abs(ordered(new[mask]) - ordered(old[mask]))
        _, counts = numpy.unique(steps, return_counts=True)
        bits += binary_entropy(numpy.bincount(classes, minlength=CLASSES), numpy.bincount(classes[mask], minlength=CLASSES))
        bits += steps.size - (counts * numpy.log2(counts / steps.size)).sum()
        changed += steps.size
    return changed, bits / 8


def ours(folder, base, following):
    out = os.path.join(folder, 'delta')
    subprocess.run([CLIENT, 'diff', '--quiet', '--format', 'ulp-class', base, following, out], check=True)
    payload = 0
    for path in glob.glob(os.path.join(out, '*.safetensors')):
        payload += sum(tensor.data.size for tensor in container.read(path)[0].values())
        os.remove(path)
    os.rmdir(out)
    return payload


def steps_of(series, folder):
    """For each step: its number, the tensors before and after it, the paths of both."""
    before, path = container.read(glob.glob(os.path.join(series, 'anchors', '*'))[0])[0], os.path.join(folder, 'step_000000')
    container.write(path, before, {'format': 'pt'})
    for number, delta in enumerate(sorted(glob.glob(os.path.join(series, 'deltas', '*'))), 1):
        after, next_path = trl.apply(delta, before)[1], os.path.join(folder, f'step_{number:06d}')
        container.write(next_path, after, {'format': 'pt'})
        yield number, before, after, path, next_path
        os.remove(path)
        before, path = after, next_path


def measure(folder, before, after, path, next_path):
    changed, least = entropy(before, after)
    return {CHANGED: changed, 'ulp-class': ours(folder, path, next_path), 'xor + zstd-1': xor_zstd(before, after),
            'TRL raw': trl_bytes('trl-raw', before, after), 'TRL gap': trl_bytes('trl-gap', before, after), 'PULSE-like': pulse(before, after),
            'entropy': least}


def report(totals, steps, elements):
    print(f'{steps} steps, {elements} elements, {100 * totals[CHANGED] / steps / elements:.2f} % changed on average')
    for name in totals:
        if name != CHANGED:
            say(f'{name}: bits per changed element', 8 * totals[name] / totals[CHANGED], 'bits')
    for name, limit in LIMITS:
        say(f'ulp-class / {name}', totals['ulp-class'] / totals[name], f'(limit {limit})' if limit else '')


def main(series):
    totals, elements = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for number, before, after, path, next_path in steps_of(series, folder):
            row = measure(folder, before, after, path, next_path)
            if not totals:
                elements = sum(tensor.data.size // 2 for tensor in before.values())
                print(f'{"step":>4} {"% changed":>9} ' + ' '.join(f'{name:>12}' for name in row if name != CHANGED))
            print(f'{number:4} {100 * row[CHANGED] / elements:9.2f} ' + ' '.join(f'{row[name]:12.0f}' for name in row if name != CHANGED), flush=True)
            totals = {name: totals.get(name, 0) + row[name] for name in row}
    report(totals, number, elements)


if __name__ == '__main__':
    main(sys.argv[1] if len(sys.argv) > 1 else os.environ.get('DELTABUCKET_SERIES', os.path.join(DATA, 'small')))
