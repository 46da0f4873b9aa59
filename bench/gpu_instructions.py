#!/usr/bin/env python3
"""usage: bench/gpu_instructions.py [--size BYTES] [--sample BYTES] [--source FILE]
What the kernels for GPUs cost, counted in what NVRTC makes of them; no GPU is needed.

    setup/clients --only gpu; setup/clients --only gpu-tools
    setup/clients --only package build/clients/package/bin/python bench/gpu_instructions.py

For sm_80, sm_90 and sm_100 the kernels are compiled, taken apart by nvdisasm, and each instruction
is told the function of block_kernels.cu that it comes from and the loops around it. How often the
loops go round is known from the tile's size, or counted in real deltas: $DELTABUCKET_SERIES (a
folder with anchors/ and deltas/; tests/data/small without), as bench/gpu_series.py makes them
large, --sample bytes of it (160e6); and with 1 %, 3 % and 30 % of the elements changed, spread
evenly. Then the arithmetic for a checkpoint of --size bytes (16e9), all of whose blocks have
changes, on three GPUs whose numbers, and the latencies taken, stand in this file: makers' data
sheets and published microbenchmarks, not measured here.

    issue     warp instructions / (4 a cycle on each SM), the least that all schedulers together need
    shared    the same for shared memory: 128 bytes a cycle on each SM, as if no banks ever met
    chain     tiles that one SM handles at a time, each as slow as one thread block alone: every
              instruction of its slowest warp waits for the one before, and memory is far
    memory    every word read once, every sector with a change written once
    at least  the largest of the four; at most: their sum, as if nothing overlapped
    read      device_read: a thread for each block; a warp goes through the streams of its threads
              together, each instruction waits for the one before
    alone     the words of one block, with nothing else on the GPU: what is serial in it, such as the
              2,048 scrambles of its hash
"""
import argparse
import collections
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

import numpy

import measure  # noqa: F401  it makes tests importable
from gpu_series import Pair, steps_of

from tests.support.clients import INSTALLED
from tests.support.daemon import CLIENT, DATA
from tests.support.package import package_is_ready

# What is taken for true of the GPUs. Bandwidths in bytes a second; shared memory in bytes of an SM.
Gpu = collections.namedtuple('Gpu', 'name sms clock memory bus shared')
GPUS = {'sm_80': Gpu('A100 SXM 80 GB, PCIe 4', 108, 1.41e9, 2.0e12, 25e9, 164 << 10), 'sm_90': Gpu('H100 SXM, PCIe 5', 132, 1.755e9, 3.35e12, 50e9, 228 << 10),
        'sm_100': Gpu('B200, PCIe 5', 148, 1.85e9, 8.0e12, 50e9, 228 << 10)}
MEMORY_SHARE = 0.9  # of the bandwidth, that a copy reaches
REGISTERS, WARPS, BLOCKS, SCHEDULERS = 65536, 64, 32, 4  # of an SM
# Cycles until what an instruction makes can be used.
ALU, SHARED, L2, DRAM, BARRIER = 4, 30, 280, 700, 30
THREADS, READ_THREADS, WARP = 128, 4, 32
TILE, STRIPE, SECTOR = 8192, 64, 32

# The parts of device_apply for each tile: the warps of a thread block that run it, and what the
# slowest one of them waits for beside its instructions.
Stage = collections.namedtuple('Stage', 'warps waits')
STAGES = {'load_whole': Stage(4, DRAM + BARRIER), 'count_bins': Stage(4, SHARED + BARRIER), 'sum_segments': Stage(3, SHARED + BARRIER),
          'sum_bins': Stage(1, SHARED + BARRIER), 'find_changes': Stage(4, L2 + 8 * SHARED + BARRIER), 'make_changes': Stage(4, L2 + BARRIER),
          'sum_parts': Stage(4, SHARED + BARRIER), 'add_kibs': Stage(1, 8 * SHARED + BARRIER), 'the rest': Stage(4, 2 * BARRIER)}
# Not for whole tiles of words of 16 bits that have steps, which nearly all of a model is.
ELSEWHERE = {'load_part', 'count_few', 'count_bytes', 'sum_last_part', 'change_pairs', 'change_whole', 'pair_words', 'share_threads', 'start_bins'}

Instruction = collections.namedtuple('Instruction', 'text line functions')


def compiled(source, architecture):
    """The cubin, which knows lines."""
    sys.path.insert(0, os.path.join(INSTALLED, 'gpu'))
    # cuda-bindings looks for the library in environments alone, and the library for its other half beside itself, which a sanitizer keeps it from;
    # both take what is there.
    for library in sorted(glob.glob(os.path.join(INSTALLED, 'gpu', 'nvidia', '*', 'lib', 'libnvrtc*.so.*'))):
        ctypes.CDLL(library)
    from cuda.bindings import nvrtc

    def checked(result):
        if result[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            sys.exit(f'NVRTC for {architecture}: {result[0].name}')
        return result[1] if len(result) > 1 else None
    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b'block_kernels.cu', 0, [], []))
    options = [f'--gpu-architecture={architecture}'.encode(), b'-lineinfo']
    checked(nvrtc.nvrtcCompileProgram(program, len(options), options))
    cubin = b' ' * checked(nvrtc.nvrtcGetCUBINSize(program))
    checked(nvrtc.nvrtcGetCUBIN(program, cubin))
    return cubin


def disassembled(cubin):
    with tempfile.NamedTemporaryFile(suffix='.cubin') as file:
        file.write(cubin)
        file.flush()
        found = [os.path.join(at, name) for at, _, names in os.walk(os.path.join(INSTALLED, 'gpu-tools')) for name in names if name == 'nvdisasm']
        if not found:
            sys.exit('setup/clients --only gpu-tools has not installed nvdisasm')
        return subprocess.run([found[0], '-c', '-gi', file.name], capture_output=True, text=True, check=True).stdout


def functions_of(source):
    """The function of each line."""
    found, current = {}, ''
    for number, line in enumerate(source.split('\n'), 1):
        match = re.match(r'(?:static __device__|KERNEL) .*?(\w+)\(', line)
        current = match[1] if match else current
        found[number] = current
        if line == '}':
            current = ''
    return found


class Kernel:
    """One kernel: `code`, Instructions in order, and `loops`, (first, last) of each."""

    def __init__(self, listing, name, functions):
        text = listing[listing.index(f'\n.text.{name}:'):].split('\n.section')[0]
        self.code, labels, self.loops, lines = [], {}, {}, []
        begins = True
        for row in text.split('\n')[1:]:
            if row.startswith('\t.section'):
                break
            label = re.match(r'(\.L_\w+):', row)
            line = re.search(r'//## File .*?", line (\d+)', row)
            code = re.match(r'\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;', row)
            if label:
                labels[label[1]] = len(self.code)
            elif line:  # innermost first
                lines = [int(line[1])] if begins else [*lines, int(line[1])]
                begins = False
            elif code:
                begins = True
                self.code.append(Instruction(code[1], lines[0] if lines else 0, [functions.get(number, '') for number in lines]))
        for place, instruction in enumerate(self.code):
            jump = re.search(r'\bBRA\b.*`\((\.L_\w+)\)', instruction.text)
            if jump and labels[jump[1]] < place:
                self.loops[labels[jump[1]]] = max(place, self.loops.get(labels[jump[1]], 0))

    def around(self, place):
        """The loops around an instruction, the outermost first."""
        return sorted((first, last) for first, last in self.loops.items() if first <= place <= last)

    def owner(self, loop):
        """The function that a loop stands in: that of its last instruction."""
        return self.code[loop[1]].functions[0]


class Counted:
    """What one warp does in a stage for each tile: once, and for each round of the loops that the data turn. Instructions, and cycles of shared
    memory."""

    def __init__(self):
        self.instructions, self.cycles = (dict.fromkeys(('once', 'round', 'eights', 'ranks'), 0.0) for _ in range(2))

    def add(self, instruction, kind, weight):
        self.instructions[kind] += weight
        access = re.search(r'\b(?:LDS|STS|ATOMS)\b(?:\.\w+)*', instruction.text)
        if access:  # 128 bytes a cycle, for the 32 threads of a warp
            self.cycles[kind] += weight * (4 if '.128' in access[0] else 2 if '.64' in access[0] else 1)


def in_all(counted, warps, facts):
    """Of all warps of a thread block, for a tile."""
    rounds = facts.rounds / facts.tiles
    return warps * counted['once'] + rounds * a_round(counted, facts)


def a_round(counted, facts):
    return counted['round'] + facts.eights / facts.rounds * counted['eights'] + facts.ranks / facts.rounds * counted['ranks']


def stage_of(instruction):
    if ELSEWHERE & set(instruction.functions) or 'change_tiles' not in instruction.functions:
        return None
    return next((stage for stage in STAGES if stage in instruction.functions), 'the rest')


# Loops that the data turn: the function, and how many loops of that function are around it.
TURNED = {('find_changes', 1): 'round', ('make_changes', 1): 'round', ('find_word', 0): 'eights', ('find_bit', 0): 'ranks'}
WITH_TURNED = {function for function, _ in TURNED}


def loop_names(kernel):
    """{loop: (function, how many loops of that function are around it)}"""
    names = {}
    for loop in kernel.loops.items():
        owner = kernel.owner(loop)
        names[loop] = owner, sum(kernel.owner(other) == owner for other in kernel.around(loop[0]) if other != loop and other[1] >= loop[1])
    return names


def count_apply(kernel):
    """{stage: Counted}. A loop that was compiled several times, for words of two sizes, counts once."""
    stages, names = {stage: Counted() for stage in STAGES}, loop_names(kernel)
    copies = collections.Counter(names.values())
    for place, instruction in enumerate(kernel.code):
        stage = stage_of(instruction)
        if stage is not None:
            around = [names[loop] for loop in kernel.around(place) if names[loop][0] in WITH_TURNED]
            name = around[-1] if around else None
            stages[stage].add(instruction, TURNED.get(name, 'once'), 1 / copies.get(name, 1))
    return stages


def count_read(kernel):
    """{part: instructions for each change, or for each long step}. The buffer is filled at the first of three places where it may be: the two
    others are for gaps that hardly any block has."""
    names = loop_names(kernel)

    def length(function, level):
        return max(last - first + 1 for (first, last), name in names.items() if name == (function, level))
    fills = sum('bits_fill' in instruction.functions and 'read_ranks' in instruction.functions for instruction in kernel.code)
    sign = length('read_signs', 1)
    return {'rank': length('read_ranks', 1) - fills * 2 // 3, 'sign': sign / SIGNS_UNROLLED + (length('read_signs', 0) - sign) / 32,
            'long step': length('read_long_steps', 0)}


SIGNS_UNROLLED = 4  # rounds of the inner loop of read_signs at once, as NVRTC makes it


def bins_of(row, words):
    """The class of each word."""
    exponents = words.astype(int) >> row['shift'] & row['mask']
    return numpy.clip(int(row['top']) - exponents, 0, int(row['classes']) - 1)


def turns_of(row, places, bins):
    """How device_apply shares the changes of each tile among the threads: the number of the warp among those of all tiles, and the round in which
    it finds the change. places, bins: of the changes, by tile and class."""
    counts, tiles = row['counts'].astype(int), places * 2 // TILE
    threads = numpy.where(counts > 0, 1 + (THREADS - len(counts)) * counts // max(1, counts.sum()), 0)
    first = numpy.concatenate([numpy.cumsum(threads[::-1])[::-1][1:], [0]])
    begins = numpy.flatnonzero(numpy.r_[True, (tiles[1:] != tiles[:-1]) | (bins[1:] != bins[:-1])])
    number = numpy.arange(len(places)) - numpy.repeat(begins, numpy.diff(numpy.r_[begins, len(places)]))
    return tiles * (THREADS // WARP) + (first[bins] + number % threads[bins]) // WARP, number // threads[bins]


class Facts:
    """Counted in a delta, over some of its blocks: tiles; rounds of all warps, and of the slowest warp of each tile; the eights that a warp looks
    through in each round, and the words that it drops in the last of them, as its slowest thread does; changes, those of more than one step, and
    sectors with changes. uneven: what the streams of a warp take together, by the mean of them, where blocks are whole, as most of a large model are."""

    def __init__(self, blocks, words_of, next_of):
        """words_of, next_of: give the words of row number i before and after."""
        self.tiles = self.rounds = self.slowest = self.eights = self.ranks = self.changes = self.sectors = self.long = 0
        rows = [number for number, row in enumerate(blocks) if row['kind'] == 4 and row['elements'] * 2 >= 16 * TILE]
        for number in rows[::max(1, len(rows) // 24)]:
            self._add(blocks[number], words_of(number), next_of(number))
        whole = blocks['counts'][blocks['elements'] == blocks['elements'].max()].astype(int)
        lanes = whole[:len(whole) // READ_THREADS * READ_THREADS].reshape(-1, READ_THREADS, whole.shape[1])
        self.uneven = lanes.max(1).sum() / max(1, lanes.sum()) * READ_THREADS if len(lanes) else 1.0

    def _add(self, row, words, after):
        places = numpy.flatnonzero(words != after)
        bins = bins_of(row, words[places])
        order = numpy.lexsort((places, bins, places * 2 // TILE))
        places, bins = places[order], bins[order]
        warps, rounds = turns_of(row, places, bins)
        slot = numpy.arange(4)[:, None]
        ranks = ((bins_of(row, words[places // 4 * 4 + slot]) == bins) & (slot < places % 4)).sum(0)
        unique, at = numpy.unique(warps * (len(words) + 1) + rounds, return_inverse=True)
        deepest = numpy.zeros((2, len(unique)), int)
        numpy.maximum.at(deepest[0], at, places * 2 % STRIPE // 8 + 1)
        numpy.maximum.at(deepest[1], at, ranks)
        slowest = numpy.zeros(-(-len(words) * 2 // TILE), int)
        numpy.maximum.at(slowest, places * 2 // TILE, rounds + 1)
        self.tiles += len(slowest)
        self.rounds += len(unique)
        self.slowest += int(slowest.sum())
        self.eights += int(deepest[0].sum())
        self.ranks += int(deepest[1].sum())
        self.changes += len(places)
        self.sectors += len(numpy.unique(places * 2 // SECTOR))
        self.long += int((numpy.abs(words[places].astype(int) - after[places]) > 1).sum())


def facts_of(steps, share, sample, folder):
    """Facts of a pair, the share of elements that differ, and bytes of delta for each byte of checkpoint."""
    from tests.support.device_delta import Delta, Device, tensors_of
    base, following, delta = (os.path.join(folder, name) for name in ('base', 'next', 'delta'))
    pair = Pair(steps, sample, share)
    pair.write(base, following)
    subprocess.run(['rm', '-rf', delta], check=True)
    subprocess.run([CLIENT, 'diff', '--quiet', '--format', 'ulp-class', base, following, delta], check=True)
    device = Device(Nowhere(), base)
    laid = Delta(device, delta)
    laid.fill()
    blocks = laid.blocks()
    maps = [numpy.memmap(path, numpy.uint8, 'r') for path in (base, following)]
    files = sorted((device.memory.address + device.places[name], first) for name, (_, _, first, _) in tensors_of(base).items())
    addresses = numpy.array([address for address, _ in files])

    def words(whole, number):
        at = int(blocks[number]['words'])
        address, first = files[int(numpy.searchsorted(addresses, at, 'right')) - 1]
        begin = first + at - address
        return whole[begin:begin + 2 * int(blocks[number]['elements'])].view(numpy.uint16)
    facts = Facts(blocks, lambda number: words(maps[0], number), lambda number: words(maps[1], number))
    return facts, pair.density(), laid.facts.upload_bytes / pair.bytes


class Nowhere:
    """A machine that only lays out."""

    class Memory:
        address = 1 << 20

    def allocate(self, nbytes):
        return self.Memory()

    def host(self, nbytes):
        return numpy.empty(nbytes, numpy.uint8)


def registers_of(listing):
    """Of device_apply, one more than the highest one that is named."""
    code = listing[listing.index('\n.text.device_apply:'):].split('\n\t.section')[0]
    return 1 + max(int(number) for number in re.findall(r'\bR(\d+)\b', code))


def shared_of(cubin, architecture):
    """Bytes of shared memory of a thread block of device_apply: its .nv.shared section, and the KiB that the driver keeps, which that has within
    itself from sm_90 on."""
    names = cubin[int.from_bytes(cubin[0x28:0x30], 'little'):]
    count, size = int.from_bytes(cubin[0x3c:0x3e], 'little'), int.from_bytes(cubin[0x3a:0x3c], 'little')
    strings = int.from_bytes(cubin[0x3e:0x40], 'little')
    header = lambda number: names[number * size:(number + 1) * size]
    place = int.from_bytes(header(strings)[0x18:0x20], 'little')
    for number in range(count):
        begin = place + int.from_bytes(header(number)[:4], 'little')
        if cubin[begin:cubin.index(b'\0', begin)] == b'.nv.shared.device_apply':
            return int.from_bytes(header(number)[0x20:0x28], 'little') + (1024 if architecture < 'sm_90' and len(architecture) == 5 else 0)
    return 0


def resident(gpu, registers, shared):
    """Thread blocks of device_apply on one SM at a time."""
    rounded = -(-registers // 8) * 8
    return min(BLOCKS, WARPS // (THREADS // WARP), REGISTERS // (rounded * THREADS), gpu.shared // max(1, shared))


class Cost:
    """What a tile costs, by stage: warp instructions, cycles of shared memory, and the cycles of one thread block alone."""

    def __init__(self, stages, facts):
        self.issued, self.shared, self.chain = {}, {}, {}
        for name, counted in stages.items():
            self.issued[name] = in_all(counted.instructions, STAGES[name].warps, facts)
            self.shared[name] = in_all(counted.cycles, STAGES[name].warps, facts)
            turns = facts.slowest / facts.tiles if counted.instructions['round'] else 0
            one = counted.instructions['once'] + turns * a_round(counted.instructions, facts)
            self.chain[name] = ALU * one + STAGES[name].waits + max(0, turns - 1) * (L2 + 8 * SHARED)


def show_row(name, *values):
    print(f'  {name:24}' + ''.join(f'{value:>13}' for value in values), flush=True)


def show_times(gpu, here, cost, facts, density, delta, read, size):
    tiles, seconds = size / TILE, {}
    seconds['issue'] = tiles * sum(cost.issued.values()) / (gpu.sms * SCHEDULERS * gpu.clock)
    seconds['shared'] = tiles * sum(cost.shared.values()) / (gpu.sms * gpu.clock)
    seconds['chain'] = tiles / (gpu.sms * here) * sum(cost.chain.values()) / gpu.clock
    written = facts.sectors / facts.tiles * SECTOR / TILE
    seconds['memory'] = size * (1 + written) / (gpu.memory * MEMORY_SHARE)
    changes = density * (1 << 20)
    one = changes * facts.uneven * (read['rank'] + read['sign'] + read['long step'] * facts.long / max(1, facts.changes))
    misses = delta * 2 * (1 << 20) / SECTOR * READ_THREADS * L2  # every sector of every stream of the warp
    seconds['read'] = max((ALU * one + misses) / gpu.clock, size / (2 << 20) / READ_THREADS * one / (gpu.sms * SCHEDULERS * gpu.clock))
    seconds['upload'] = size * delta / gpu.bus
    parts = [seconds[name] for name in ('issue', 'shared', 'chain', 'memory')]
    least, most = max(parts), sum(parts)
    show_row(f'{100 * density:.2f} % changed', *(f'{1e3 * part:.1f} ms' for part in (seconds['upload'], seconds['read'], *parts)),
             f'{1e3 * least:.1f} ms', f'{1e3 * most:.1f} ms', f'{1e3 * (seconds["upload"] + seconds["read"] + least):.0f}-'
             f'{1e3 * (seconds["upload"] + seconds["read"] + most):.0f} ms')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[1])
    parser.add_argument('--size', type=float, default=16e9)
    parser.add_argument('--sample', type=float, default=160e6)
    parser.add_argument('--source', help='another block_kernels.cu, with device_block.h in its place')
    given = parser.parse_args()
    if not package_is_ready():
        sys.exit('setup/clients --only package has not installed what the package needs')
    from deltabucket._library import text_of
    from deltabucket._native import lib
    source = text_of(lib.deltabucket_device_source())
    if given.source:
        with open(given.source) as file:
            source = file.read()
    series = os.environ.get('DELTABUCKET_SERIES', os.path.join(DATA, 'small'))
    with tempfile.TemporaryDirectory(dir='/dev/shm' if os.path.isdir('/dev/shm') else None) as folder:
        steps = steps_of(series)
        counted = [facts_of(steps, share, given.sample, folder) for share in (None, 0.01, 0.03, 0.30)]
    print(f'{given.size / 1e9:.0f} GB of BF16 in blocks of 2 MiB; changes as in {series}, then spread evenly')
    for facts, density, delta in counted:
        print(f'  {100 * density:.2f} %: {100 * delta:.2f} % of the bytes cross the bus; of each tile {facts.changes / facts.tiles:.0f} words change, found in '
              f'{facts.rounds / facts.tiles:.1f} rounds of a warp, {facts.slowest / facts.tiles:.1f} one after the other')
    for architecture, gpu in GPUS.items():
        show_gpu(source, architecture, gpu, counted, given.size)


def show_gpu(source, architecture, gpu, counted, size):
    cubin = compiled(source, architecture)
    listing, functions = disassembled(cubin), functions_of(source)
    stages = count_apply(Kernel(listing, 'device_apply', functions))
    read = count_read(Kernel(listing, 'device_read', functions))
    registers, shared = registers_of(listing), shared_of(cubin, architecture)
    here = resident(gpu, registers, shared)
    print(f'\n{architecture}: {gpu.name}, {gpu.sms} SMs at {gpu.clock / 1e9:.2f} GHz, {gpu.memory / 1e12:.2f} TB/s, bus {gpu.bus / 1e9:.0f} GB/s')
    show_row('device_apply', f'{registers} regs', f'{shared} B', f'{here} an SM')
    show_row('a tile', 'once', 'a round', 'all warps', 'shared', 'chain')
    cost = Cost(stages, counted[0][0])
    for name, part in stages.items():
        show_row(f'  {name}', f'{part.instructions["once"]:.0f}', f'{a_round(part.instructions, counted[0][0]):.0f}', f'{cost.issued[name]:.0f}',
                 f'{cost.shared[name]:.0f}', f'{cost.chain[name]:.0f}')
    chain = sum(cost.chain.values())
    show_row('  all', '', '', f'{sum(cost.issued.values()):.0f}', f'{sum(cost.shared.values()):.0f}', f'{chain:.0f}')
    show_row('alone', f'{1e3 * chain * (2 << 20) / TILE / gpu.clock:.2f} ms', 'of that', 'scrambles', f'{1e3 * cost.chain["add_kibs"] * (2 << 20) / TILE / gpu.clock:.2f} ms')
    show_row('device_read, a change', *(f'{name} {count:.0f}' for name, count in read.items()))
    show_row('', 'upload', 'read', 'issue', 'shared', 'chain', 'memory', 'at least', 'at most', 'together')
    for facts, density, delta in counted:
        show_times(gpu, here, Cost(stages, facts), facts, density, delta, read, size)


if __name__ == '__main__':
    main()
