"""Steps applied in place to tensors in the memory of a GPU.

What crosses the bus is the delta. The GPU decodes it, changes the tensors and hashes every block
that the delta has; a block with another hash than the delta says makes all changes be taken back.

    from deltabucket.gpu import Patcher
    with run.follow('/srv/weights') as steps:
        patcher = Patcher(steps.next(), model.state_dict(), load=True)
        for step in steps:
            patcher.apply(step)

torch and cuda-bindings with NVRTC (`pip install 'deltabucket[gpu]'`) do the work on an NVIDIA GPU.
"""
from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy
from numpy.typing import NDArray

from deltabucket import errors
from deltabucket._library import Handle, c_path, defaults, made_of, new_error, text_of
from deltabucket._native import ffi, lib
from deltabucket.follower import Step
from deltabucket.tensors import (CTensors, Memory, check_others, check_same, check_ties,
                                 device_memory, named, ties_of)

BLOCK_BYTES = 112
THREADS = 128  # of a thread block of device_apply and device_undo
READ_THREADS = 4  # of one of device_read: few, as they wait for each other at every step
# Where the members of struct device_block that are read here begin.
HASH_AT, NUMBER_AT = 16, 40
MALFORMED = 1  # in the failures that a kernel leaves; 0 is fine


class DeviceMemory(Protocol):
    """Memory of a device."""
    @property
    def address(self) -> int:
        """The address of its first byte, on the device; a multiple of 16."""


class Machine(Protocol):
    """What a Patcher needs of a device. All calls happen in order, on one stream."""

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Memory on the device, which lives as long as what is returned."""

    def host(self, nbytes: int) -> NDArray[numpy.uint8]:
        """Memory of the host from which copies to the device are fast."""

    def upload(self, target: int, source: NDArray[numpy.uint8]) -> None:
        """Copies to the address on the device, until the next download has ended: so long `source`
        stays as it is, and memory of `host` is kept here."""

    def download(self, source: Any, nbytes: int) -> NDArray[numpy.uint8]:
        """Waits for all that was asked for, and copies from memory that `allocate` gave."""

    def launch(self, kernel: str, grid: int, threads: int, arguments: Sequence[int],
               count: int | None = None) -> None:
        """Starts a kernel of deltabucket_device_source. arguments: addresses; count: goes second,
        as 32 bits."""


@dataclass(frozen=True)
class Applied:
    """What `Patcher.apply` has done.

    step: the number. came_whole: all tensors were copied, as there was no delta to apply. blocks,
    changes: of the deltas. upload_bytes: that crossed to the device; decoded_bytes: of these, what
    the host had to decode. prepare_seconds: laying the deltas out, before anything is changed;
    apply_seconds: from the first copy to the proof, when the tensors must not be read.
    """
    step: int
    came_whole: bool
    blocks: int
    changes: int
    upload_bytes: int
    decoded_bytes: int
    prepare_seconds: float
    apply_seconds: float


class Patcher:
    """Tensors on one device, and the step that they hold. For one thread at a time.

    number: of the step. The tensors must stay where they are in memory.
    """

    def __init__(self, step: Step, tensors: Mapping[str, Any], *, load: bool = False,
                 clean: bool = True, threads: int = 0, machine: Machine | None = None) -> None:
        """step: what the tensors hold; it is proven, block by block, against the step in memory of
        the host. tensors: contiguous torch tensors on one device, each with the dtype and shape of
        the step's tensor of that name; views into larger tensors are fine. Names are cleaned as in
        `Run.publish`. Tensors of the step that are not among them are not touched. Two names may
        share one tensor (tied weights), which is changed once, where the step has the same bytes
        under both, or one of the names alone.
        load: the step is copied into the tensors first, whatever they held.
        threads: of the host, for decoding; 0 for one per core.
        machine: the device; None: the CUDA device that the tensors lie on.

        WrongBase when the tensors hold something else than the step. SchemaMismatch, TypeError,
        ValueError as `Step.apply_into`. Unsupported when there is no CUDA device or no compiler for
        it.
        """
        self.number = step.number
        self._threads = threads
        self._set_targets(step, named(tensors, clean))
        self._machine = machine if machine is not None else _cuda_of(self._targets)
        self._device = self._new_device(step)
        self._hashes = numpy.zeros(self._blocks(), numpy.uint64)
        self._digest = ''  # of the step that the tensors hold; '' while they may hold anything
        if load:
            self.load(step)
            return
        self._hash_host(step)
        if not self._proven():
            raise errors.WrongBase(f'The tensors on the device are not those of step {step.number}.',
                                   kind='wrong_base')
        self._digest = step.digest

    def apply(self, step: Step) -> Applied:
        """Brings the tensors to this step: by its deltas, when it came by ulp-class deltas from the
        step that they hold, otherwise by a copy of the whole: also after a step that was left out,
        after a call that has failed, and for a follower that holds a part of the model.

        The tensors must not be read meanwhile. WrongBase, DigestMismatch or Invalid when a block
        cannot be proven: all changes are taken back then, and proven to be. SchemaMismatch when
        tied weights are not the same in the step: nothing has been changed then. Spoiled when
        taking back fails, or when a copy of the whole cannot be proven: the tensors must not be
        used.
        """
        begun = time.perf_counter()
        deltas = self._leading_to(step)
        if not deltas:
            return self.load(step)
        check_ties(self._ties, _by_name(step))
        for delta in deltas:
            delta.fill(self._machine, self._threads)
        prepared = time.perf_counter()
        self._change(deltas, step)
        return Applied(step.number, False, sum(delta.facts.blocks for delta in deltas),
                       sum(delta.facts.changes for delta in deltas),
                       sum(delta.facts.upload_bytes for delta in deltas),
                       sum(delta.facts.decoded_bytes for delta in deltas),
                       prepared - begun, time.perf_counter() - prepared)

    def load(self, step: Step) -> Applied:
        """Copies the step into the tensors, whatever they held, and proves them. Spoiled when they
        are not what they should be: they must not be used then. SchemaMismatch as of `apply`."""
        begun = time.perf_counter()
        entries = _by_name(step)
        check_ties(self._ties, entries)
        self._digest = ''
        self._hash_host(step)
        prepared = time.perf_counter()
        sent = 0
        for name, target in self._targets.items():
            if target.nbytes and name not in self._ties:
                self._machine.upload(target.address, entries[name].bytes_array())
                sent += target.nbytes
        if not self._proven():
            raise errors.Spoiled(f'The tensors on the device are not those of step {step.number} '
                                 'after it was copied to them; load them anew.', kind='spoiled')
        self._holds(step)
        return Applied(step.number, True, 0, 0, sent, 0, prepared - begun,
                       time.perf_counter() - prepared)

    def prove(self) -> None:
        """Hashes all blocks of all tensors. Spoiled when one is not what it should be: something
        else has written to the tensors, or a call has failed that changed them."""
        if not self._digest or not self._proven():
            self._digest = ''
            raise errors.Spoiled(f'The tensors on the device are not those of step {self.number}; '
                                 'load them anew.', kind='spoiled')

    def _set_targets(self, step: Step, given: Mapping[str, Any]) -> None:
        """Where the step's tensors lie on the device, and which of them are one."""
        entries = _by_name(step)
        self._targets = {name: device_memory(name, given[name]) for name in entries if name in given}
        for name, target in self._targets.items():
            check_same(target, entries[name].dtype, entries[name].shape)
        check_others(given, self._targets, device_memory, step.number)
        self._ties = ties_of(self._targets)
        check_ties(self._ties, entries)

    def _new_device(self, step: Step) -> Handle:
        """The layout of the step's tensors. It knows those that are not here, or are here under
        another name, without an address."""
        addresses = {name: target.address for name, target in self._targets.items()
                     if name not in self._ties}
        described = [Memory(entry.name, entry.dtype, entry.shape, addresses.get(entry.name, 0),
                            entry.nbytes, None) for entry in step.entries()]
        err = new_error()
        tensors = CTensors(described)
        pointer = lib.deltabucket_device_new(tensors.pointer, tensors.count, err)
        if pointer == ffi.NULL:
            raise made_of(err)
        return Handle('device', pointer, lib.deltabucket_device_free)

    def _blocks(self) -> int:
        with self._device.use() as device:
            return int(lib.deltabucket_device_blocks(device))

    def _hash_host(self, step: Step) -> None:
        """Makes the table of hashes that of the step."""
        entries = step.entries()
        places = ffi.new('void *[]', [ffi.cast('void *', entry.address) for entry in entries]
                         or [ffi.NULL])
        with self._device.use() as device:
            lib.deltabucket_device_hash(device, places, self._threads,
                                        ffi.from_buffer('uint64_t *', self._hashes))

    def _proven(self) -> bool:
        """Whether the device holds what the table says."""
        blocks = self._machine.host(max(1, len(self._hashes)) * BLOCK_BYTES)
        with self._device.use() as device:
            count = int(lib.deltabucket_device_keep(
                device, ffi.from_buffer('uint64_t *', self._hashes),
                ffi.from_buffer(blocks)))
        if count == 0:
            return True
        batch = _Batch(self._machine, blocks[:count * BLOCK_BYTES], count)
        return not batch.run(self._machine).any()

    def _leading_to(self, step: Step) -> list[_Delta]:
        """The deltas from what the tensors hold to the step; none where it must be copied. A block
        that no delta has is proven by none: it is right because the tensors are the first one's
        base, which the digests say."""
        if not self._digest or step.came_whole or step.is_part:
            return []
        try:
            deltas = [_Delta(self._device, path) for path in step.deltas()]
        except errors.Unsupported:
            return []
        ends = [delta.ends for delta in deltas]
        at = self._digest
        for base, result in ends:
            if base != at:
                return []
            at = result
        return deltas if at == step.digest else []

    def _change(self, deltas: list[_Delta], step: Step) -> None:
        """Applies the deltas one after the other, or none."""
        held, self._digest = self._digest, ''
        for place, delta in enumerate(deltas):
            failures = delta.apply(self._machine)
            if failures.any():
                self._take_back(deltas[:place + 1], step, failures)
                self._digest = held
                raise _failure_of(failures, step, self.number)
            delta.before = self._hashes[delta.numbers]
            self._hashes[delta.numbers] = delta.hashes
        self._holds(step)

    def _take_back(self, deltas: list[_Delta], step: Step,
                   failures: NDArray[numpy.uint32]) -> None:
        """Undoes these deltas, the last of which has these failures. Spoiled when that cannot be
        proven."""
        for delta in reversed(deltas):
            delta.undo(self._machine)
        for delta in reversed(deltas[:-1]):
            self._hashes[delta.numbers] = delta.before
        if not self._proven():
            raise errors.Spoiled(
                f'{numpy.count_nonzero(failures)} blocks of step {step.number} could not be proven '
                f'on the device, and what was changed could not be taken back: load the tensors '
                'anew.', kind='spoiled')

    def _holds(self, step: Step) -> None:
        self.number = step.number
        self._digest = step.digest


def _by_name(step: Step) -> dict[str, Memory]:
    return {entry.name: entry for entry in step.entries()}


def _failure_of(failures: NDArray[numpy.uint32], step: Step, held: int) -> errors.Error:
    """What the failures of a delta's blocks mean, when step number `held` is there again."""
    if (failures == MALFORMED).any():
        return errors.Invalid(f'The delta to step {step.number} is damaged; the tensors are those '
                              f'of step {held}.', kind='invalid')
    return errors.DigestMismatch(
        f'{numpy.count_nonzero(failures)} blocks of step {step.number} have another hash than its '
        f'delta says; the tensors are those of step {held}.', kind='digest_mismatch')


class _Batch:
    """Blocks on the device, and what comes of them."""

    def __init__(self, machine: Machine, blocks: NDArray[numpy.uint8], count: int) -> None:
        self.count = count
        self.blocks = machine.allocate(count * BLOCK_BYTES)
        self.failures = machine.allocate(count * 4)
        self.results = machine.allocate(count * 8)
        self.upload = self.places = self.steps = self.blocks  # of a batch that has no payloads
        machine.upload(self.blocks.address, blocks)

    def run(self, machine: Machine) -> NDArray[numpy.uint32]:
        """Applies the blocks; gives what became of each."""
        lists = [self.upload.address, self.places.address, self.steps.address]
        machine.launch('device_read', -(-self.count // READ_THREADS), READ_THREADS,
                       [self.blocks.address, *lists, self.failures.address], self.count)
        machine.launch('device_apply', self.count, THREADS,
                       [self.blocks.address, *lists, self.failures.address, self.results.address])
        return machine.download(self.failures, self.count * 4).view(numpy.uint32)


class _Delta:
    """A delta for the tensors of a device. `fill` lays it out in memory of the host."""

    def __init__(self, device: Handle, path: str) -> None:
        """Unsupported when the device does not know the delta's format. facts: its sizes. ends: the
        digests of its base and of its result, '' where it does not say them."""
        self.facts = defaults('deltabucket_device_delta_facts')
        err = new_error()
        with device.use() as pointer:
            opened = lib.deltabucket_device_delta_open(pointer, c_path(path, 'path'), self.facts,
                                                       err)
        if opened == ffi.NULL:
            raise made_of(err)
        self._handle = Handle('delta', opened, lib.deltabucket_device_delta_close, parent=device)
        self.ends = text_of(self.facts.base_digest), text_of(self.facts.result_digest)
        self._batch: _Batch | None = None

    def fill(self, machine: Machine, threads: int) -> None:
        """numbers, hashes: of the blocks, and of what they hold afterwards. Invalid when the delta
        is malformed."""
        self._upload = machine.host(max(16, self.facts.upload_bytes))
        self._blocks = machine.host(max(1, self.facts.blocks) * BLOCK_BYTES)
        err = new_error()
        with self._handle.use() as pointer:
            if lib.deltabucket_device_delta_fill(
                    pointer, ffi.from_buffer(self._upload), ffi.from_buffer(self._blocks), threads,
                    err) != 0:
                raise made_of(err)
        rows = self._blocks[:self.facts.blocks * BLOCK_BYTES].reshape(-1, BLOCK_BYTES)
        self.numbers = rows[:, NUMBER_AT:NUMBER_AT + 4].copy().view(numpy.uint32).ravel()
        self.hashes = rows[:, HASH_AT:HASH_AT + 8].copy().view(numpy.uint64).ravel()
        self.before = self.hashes  # of the same blocks, before `apply`

    def apply(self, machine: Machine) -> NDArray[numpy.uint32]:
        """Changes the tensors; gives what became of each block."""
        if not self.facts.blocks:
            return numpy.zeros(0, numpy.uint32)
        batch = _Batch(machine, self._blocks, self.facts.blocks)
        batch.upload = machine.allocate(len(self._upload))
        batch.places = machine.allocate(max(1, self.facts.changes) * 4)
        batch.steps = machine.allocate(max(1, self.facts.changes) * 2)
        machine.upload(batch.upload.address, self._upload)
        self._batch = batch
        return batch.run(machine)

    def undo(self, machine: Machine) -> None:
        """Takes back what `apply` has changed."""
        batch = self._batch
        if batch is not None:
            machine.launch('device_undo', batch.count, THREADS, [
                batch.blocks.address, batch.upload.address, batch.places.address,
                batch.steps.address])


def _cuda_of(targets: Mapping[str, Memory]) -> Machine:
    from deltabucket._cuda import Cuda
    devices = {target.owner.device for target in targets.values()}  # type: ignore[attr-defined]
    if len(devices) != 1 or next(iter(devices)).type != 'cuda':
        raise ValueError(f'The tensors lie on {", ".join(sorted(map(str, devices))) or "no device"}'
                         '; they must lie on one CUDA device.')
    return Cuda(next(iter(devices)))
