"""A delta laid out by the library for a device, step by step, over the kernels alone: what deltabucket.gpu does between its checks. For the golden
deltas and for bench/gpu_apply.py. Needs the package (tests/support/package.py)."""
import json

import numpy
from deltabucket._library import c_path, defaults, made_of, new_error
from deltabucket._native import ffi, lib
from deltabucket.tensors import CTensors, Memory

BLOCK_BYTES = 112
APPLY_THREADS, READ_THREADS = 128, 4
# struct device_block of weights/device/device_block.h
BLOCK = numpy.dtype([('words', '<u8'), ('payload', '<u8'), ('result_hash', '<u8'), ('payload_bytes', '<u4'), ('elements', '<u4'), ('changes_at', '<u4'),
                     ('changes', '<u4'), ('number', '<u4'), ('counts', '<u4', 12), ('parameters', 'u1', 12), ('classes', 'u1'), ('top', 'u1'),
                     ('shift', 'u1'), ('mask', 'u1'), ('kind', 'u1'), ('width', 'u1'), ('unused', 'u1', 2)])
assert BLOCK.itemsize == BLOCK_BYTES
STEPS = 4  # a kind


def tensors_of(path):
    """{name: (dtype, shape, first byte in the file, end)} of a safetensors file."""
    with open(path, 'rb') as file:
        size = int.from_bytes(file.read(8), 'little')
        header = json.loads(file.read(size))
    header.pop('__metadata__', None)
    return {name: (entry['dtype'], entry['shape'], 8 + size + entry['data_offsets'][0], 8 + size + entry['data_offsets'][1]) for name, entry in header.items()}


class Device:
    """The tensors of a file, one behind the other in memory of a machine, each at a multiple of 16."""

    def __init__(self, machine, path):
        self.machine, self.path = machine, path
        self.tensors = tensors_of(path)
        self.places, at = {}, 0
        for name, (_, _, first, end) in self.tensors.items():
            self.places[name] = at
            at += -(first - end) // 16 * 16 + 16
        self.memory = machine.allocate(max(16, at))
        self.bytes = sum(end - first for _, _, first, end in self.tensors.values())
        described = [Memory(name, dtype, tuple(shape), self.memory.address + self.places[name], end - first, None)
                     for name, (dtype, shape, first, end) in self.tensors.items()]
        self.kept = CTensors(described)
        err = new_error()
        pointer = lib.deltabucket_device_new(self.kept.pointer, self.kept.count, err)
        if pointer == ffi.NULL:
            raise made_of(err)
        self.pointer = ffi.gc(pointer, lib.deltabucket_device_free)

    def load(self):
        """Copies the file there, tensor after tensor."""
        whole = numpy.memmap(self.path, numpy.uint8, 'r')
        for name, (_, _, first, end) in self.tensors.items():
            if end > first:
                self.machine.upload(self.memory.address + self.places[name], whole[first:end])
        self.machine.wait()

    def differs(self, path):
        """Names of the tensors that are not those of another file with the same ones."""
        whole = numpy.memmap(path, numpy.uint8, 'r')
        return [name for name, (_, _, first, end) in tensors_of(path).items()
                if not numpy.array_equal(whole[first:end], self.machine.read(self.memory, self.places[name], end - first))]


class Delta:
    """A delta for a Device; deltabucket's errors when it cannot be one. facts: its sizes."""

    def __init__(self, device, path):
        self.machine, self.device = device.machine, device
        self.facts = defaults('deltabucket_device_delta_facts')
        err = new_error()
        pointer = lib.deltabucket_device_delta_open(device.pointer, c_path(path, 'path'), self.facts, err)
        if pointer == ffi.NULL:
            raise made_of(err)
        self.pointer = ffi.gc(pointer, lib.deltabucket_device_delta_close)
        self.count = int(self.facts.blocks)
        self.upload = self.machine.host(max(16, self.facts.upload_bytes))
        self.table = self.machine.host(max(1, self.count) * BLOCK_BYTES)

    def fill(self, threads=0):
        err = new_error()
        if lib.deltabucket_device_delta_fill(self.pointer, ffi.from_buffer(self.upload), ffi.from_buffer(self.table), threads, err) != 0:
            raise made_of(err)

    def blocks(self):
        return self.table[:self.count * BLOCK_BYTES].view(BLOCK)

    def allocate(self):
        changes = max(1, self.facts.changes)
        sizes = {'blocks': len(self.table), 'payload': len(self.upload), 'places': 4 * changes, 'steps': 2 * changes, 'failures': 4 * max(1, self.count),
                 'hashes': 8 * max(1, self.count)}
        self.memory = {name: self.machine.allocate(size) for name, size in sizes.items()}

    def send(self):
        self.machine.upload(self.memory['blocks'].address, self.table)
        self.machine.upload(self.memory['payload'].address, self.upload)

    def read(self, row=None):
        """row: of the block that is meant; None: all."""
        count = self.count if row is None else 1
        self._launch('device_read', -(-count // READ_THREADS), READ_THREADS, ('failures',), row, count)

    def apply(self, row=None):
        self._launch('device_apply', self.count if row is None else 1, APPLY_THREADS, ('failures', 'hashes'), row)

    def undo(self, row=None):
        self._launch('device_undo', self.count if row is None else 1, APPLY_THREADS, (), row)

    def failures(self):
        return self.machine.download(self.memory['failures'], 4 * self.count).view(numpy.uint32)

    def _launch(self, kernel, grid, threads, more, row, count=None):
        addresses = [self.memory[name].address for name in ('blocks', 'payload', 'places', 'steps', *more)]
        addresses[0] += BLOCK_BYTES * (row or 0)
        if self.count:
            self.machine.launch(kernel, grid, threads, addresses, count)
