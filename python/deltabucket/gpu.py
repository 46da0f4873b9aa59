"""Steps applied in place to tensors in the memory of a GPU.

What crosses the bus is the delta. The GPU decodes it, changes the tensors and hashes every block
that the delta has; a block with another hash than the delta says makes all changes be taken back.

    from deltabucket.gpu import Patcher
    with run.follow('/srv/weights') as steps:
        patcher = Patcher(steps.next(), model.state_dict(), load=True)
        for step in steps:
            patcher.apply(step)

`apply` is made of two parts, for programs that read the tensors until the last moment: `prepare`
does all work of the host, and `Prepared.apply` that of the device.

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


class Source(Protocol):
    """What a Patcher looks at of a step; a deltabucket.Step is one."""

    @property
    def number(self) -> int:
        """Of the step."""

    @property
    def digest(self) -> str:
        """Of all tensors of the step; '' where it is not known."""

    @property
    def came_whole(self) -> bool:
        """Whether there are no deltas that lead here."""

    @property
    def is_part(self) -> bool:
        """Whether some of the step's tensors may not be here."""

    def entries(self) -> list[Memory]:
        """All tensors, in memory of the host, in byte order of their names."""

    def deltas(self) -> list[str]:
        """Paths of the deltas that lead here from a step before, in the order in which they
        apply."""


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
    """Tensors on one device, and the step that they hold. For one thread at a time, but for
    `prepare`.

    number: of the step. digest: of the step; '' while the tensors may hold anything. The tensors
    must stay where they are in memory.
    """

    def __init__(self, step: Source, tensors: Mapping[str, Any], *, load: bool = False,
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
        self.digest = ''
        self._threads = threads
        self._set_targets(step, named(tensors, clean))
        self._machine = machine if machine is not None else _cuda_of(self._targets)
        self._device = self._new_device(step)
        self._hashes = numpy.zeros(self._blocks(), numpy.uint64)
        self._applied: Prepared | None = None  # what can be taken back
        if load:
            self.load(step)
            return
        self._hash_host(step)
        if not self._proven():
            raise errors.WrongBase(f'The tensors on the device are not those of step {step.number}.',
                                   kind='wrong_base')
        self.digest = step.digest

    def apply(self, step: Source) -> Applied:
        """Brings the tensors to this step: by its deltas, when it came by ulp-class deltas from the
        step that they hold, otherwise by a copy of the whole: also after a step that was left out,
        after a call that has failed, and for a follower that holds a part of the model.

        The tensors must not be read meanwhile. WrongBase, DigestMismatch or Invalid when a block
        cannot be proven: all changes are taken back then, and proven to be. SchemaMismatch when
        tied weights are not the same in the step: nothing has been changed then. Spoiled when
        taking back fails, or when a copy of the whole cannot be proven: the tensors must not be
        used.
        """
        prepared = self.prepare(step)
        if prepared is None:
            return self.load(step)
        done = prepared.apply()
        prepared.forget()
        return done

    def prepare(self, step: Source) -> Prepared | None:
        """Lays the step's deltas out in memory of the host; None where no deltas lead to it from
        what the tensors hold, so that `load` must copy it. Changes nothing: any thread may do this
        while the tensors are in use, but not while another call changes them. The step's deltas are
        not needed any more then. Invalid when one is malformed, SchemaMismatch as of `apply`."""
        begun = time.perf_counter()
        deltas = self._leading_to(step)
        if deltas is None:
            return None
        check_ties(self._ties, _by_name(step))
        for delta in deltas:
            delta.fill(self._machine, self._threads)
        return Prepared(self, step, deltas, time.perf_counter() - begun)

    def load(self, step: Source) -> Applied:
        """Copies the step into the tensors, whatever they held, and proves them. Spoiled when they
        are not what they should be: they must not be used then. SchemaMismatch as of `apply`."""
        begun = time.perf_counter()
        entries = _by_name(step)
        check_ties(self._ties, entries)
        self._forget()
        self.digest = ''
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
        self.number, self.digest = step.number, step.digest
        return Applied(step.number, True, 0, 0, sent, 0, prepared - begun,
                       time.perf_counter() - prepared)

    def prove(self) -> None:
        """Hashes all blocks of all tensors. Spoiled when one is not what it should be: something
        else has written to the tensors, or a call has failed that changed them."""
        if not self.digest or not self._proven():
            self.digest = ''
            raise errors.Spoiled(f'The tensors on the device are not those of step {self.number}; '
                                 'load them anew.', kind='spoiled')

    def _set_targets(self, step: Source, given: Mapping[str, Any]) -> None:
        """Where the step's tensors lie on the device, and which of them are one."""
        entries = _by_name(step)
        self._targets = {name: device_memory(name, given[name]) for name in entries if name in given}
        for name, target in self._targets.items():
            check_same(target, entries[name].dtype, entries[name].shape)
        check_others(given, self._targets, device_memory, step.number)
        self._ties = ties_of(self._targets)
        check_ties(self._ties, entries)

    def _new_device(self, step: Source) -> Handle:
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

    def _hash_host(self, step: Source) -> None:
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
        batch = _Batch(self._machine, count)
        return not batch.run(self._machine, blocks[:count * BLOCK_BYTES]).any()

    def _leading_to(self, step: Source) -> list[_Delta] | None:
        """The deltas from what the tensors hold to the step; None where it must be copied. A block
        that no delta has is proven by none: it is right because the tensors are the first one's
        base, which the digests say."""
        if not self.digest or step.is_part or step.came_whole:
            return None
        try:
            deltas = [_Delta(self._device, path) for path in step.deltas()]
        except errors.Unsupported:
            return None
        at = self.digest
        for base, result in (delta.ends for delta in deltas):
            if base != at:
                return None
            at = result
        return deltas if at == step.digest else None

    # For Prepared.

    def _change(self, prepared: Prepared) -> None:
        """Applies its deltas one after the other, or none."""
        if (self.number, self.digest) != prepared.base:
            raise errors.WrongBase(
                f'Step {prepared.number} was laid out for step {prepared.base[0]}, and the tensors '
                f'are {f"those of step {self.number}" if self.digest else "of no known step"}.',
                kind='wrong_base')
        self._forget()
        self._applied = prepared
        self._allocate(prepared)
        self.digest = ''
        for delta in prepared.deltas:
            failures = delta.apply(self._machine)
            if failures.any():
                self._take_back(prepared)
                raise _failure_of(failures, prepared)
            delta.before = self._hashes[delta.numbers]
            self._hashes[delta.numbers] = delta.hashes
        self.number, self.digest = prepared.number, prepared.digest

    def _allocate(self, prepared: Prepared) -> None:
        try:
            for delta in prepared.deltas:
                delta.allocate(self._machine)
        except BaseException:
            self._forget()
            raise

    def _take_back(self, prepared: Prepared) -> None:
        """Also what was begun and not ended. Spoiled when the base cannot be proven then."""
        if self._applied is not prepared and (self.number, self.digest) == prepared.base:
            return
        if self._applied is not prepared and self.digest:
            raise ValueError(f'Step {prepared.number} was not the last to be applied, so it cannot '
                             'be taken back.')
        if self._applied is prepared:
            self._undo(prepared)
        if not self.digest:
            raise errors.Spoiled(f'Step {prepared.number} could not be proven on the device, and '
                                 'what was changed could not be taken back: load the tensors anew.',
                                 kind='spoiled')

    def _undo(self, prepared: Prepared) -> None:
        """Leaves no digest when the base cannot be proven."""
        self.digest = ''
        for delta in reversed(prepared.deltas):
            delta.undo(self._machine)
            if delta.before is not None:
                self._hashes[delta.numbers], delta.before = delta.before, None
        self._forget()
        if self._proven():
            self.number, self.digest = prepared.base

    def _forget(self) -> None:
        """What was applied cannot be taken back any more."""
        if self._applied is not None:
            for delta in self._applied.deltas:
                delta.forget()
        self._applied = None


class Prepared:
    """A step laid out in memory of the host for the tensors of a Patcher; `Patcher.prepare` makes
    it. It can be applied, taken back and applied again.

    number, digest: of the step. base: number and digest of the step that the tensors must hold.
    blocks, changes, upload_bytes, decoded_bytes, prepare_seconds: as of Applied.
    """

    def __init__(self, patcher: Patcher, step: Source, deltas: list[_Delta],
                 seconds: float) -> None:
        self.number = step.number
        self.digest = step.digest
        self.base = patcher.number, patcher.digest
        self.deltas = deltas
        self.blocks: int = sum(delta.facts.blocks for delta in deltas)
        self.changes: int = sum(delta.facts.changes for delta in deltas)
        self.upload_bytes: int = sum(delta.facts.upload_bytes for delta in deltas)
        self.decoded_bytes: int = sum(delta.facts.decoded_bytes for delta in deltas)
        self.prepare_seconds = seconds
        self._patcher = patcher

    @property
    def is_applied(self) -> bool:
        """Whether `take_back` would change the tensors."""
        return self._patcher._applied is self

    def apply(self) -> Applied:
        """Copies the deltas to the device, changes the tensors there, and proves them; none of it
        is work of the host. The tensors must not be read meanwhile. WrongBase when the tensors do
        not hold `base`, and when the device has no memory left torch's error: nothing has been
        changed then. DigestMismatch, Invalid and Spoiled as of `Patcher.apply`."""
        begun = time.perf_counter()
        self._patcher._change(self)
        return Applied(self.number, False, self.blocks, self.changes, self.upload_bytes,
                       self.decoded_bytes, self.prepare_seconds, time.perf_counter() - begun)

    def take_back(self) -> None:
        """Brings the tensors back to the step before, and proves all their blocks. It can until
        the next step is applied or copied, or `forget` is called; ValueError later. Does nothing
        when the tensors hold the step before already. Also after an `apply` that some exception has
        ended: Spoiled when not all of it could be taken back."""
        self._patcher._take_back(self)

    def forget(self) -> None:
        """Gives the device's memory back that only `take_back` needs: about 7 bytes for each
        change."""
        if self.is_applied:
            self._patcher._forget()


def _by_name(step: Source) -> dict[str, Memory]:
    return {entry.name: entry for entry in step.entries()}


def _failure_of(failures: NDArray[numpy.uint32], prepared: Prepared) -> errors.Error:
    """What the failures of a delta's blocks mean, when the base is there again."""
    number, held = prepared.number, prepared.base[0]
    if (failures == MALFORMED).any():
        return errors.Invalid(f'The delta to step {number} is damaged; the tensors are those '
                              f'of step {held}.', kind='invalid')
    return errors.DigestMismatch(
        f'{numpy.count_nonzero(failures)} blocks of step {number} have another hash than its '
        f'delta says; the tensors are those of step {held}.', kind='digest_mismatch')


class _Batch:
    """Memory of the device for some blocks, and what comes of them. is_applied: the tensors may be
    changed by it."""

    def __init__(self, machine: Machine, count: int) -> None:
        self.count = count
        self.is_applied = False
        self.blocks = machine.allocate(count * BLOCK_BYTES)
        self.failures = machine.allocate(count * 4)
        self.results = machine.allocate(count * 8)
        self.upload = self.places = self.steps = self.blocks  # of a batch that has no payloads

    def run(self, machine: Machine, blocks: NDArray[numpy.uint8]) -> NDArray[numpy.uint32]:
        """Applies the blocks; gives what became of each."""
        machine.upload(self.blocks.address, blocks)
        lists = [self.upload.address, self.places.address, self.steps.address]
        machine.launch('device_read', -(-self.count // READ_THREADS), READ_THREADS,
                       [self.blocks.address, *lists, self.failures.address], self.count)
        machine.launch('device_apply', self.count, THREADS,
                       [self.blocks.address, *lists, self.failures.address, self.results.address])
        self.is_applied = True
        return machine.download(self.failures, self.count * 4).view(numpy.uint32)

    def undo(self, machine: Machine) -> None:
        """Takes back what `run` has changed."""
        if self.is_applied:
            self.is_applied = False
            machine.launch('device_undo', self.count, THREADS, [
                self.blocks.address, self.upload.address, self.places.address, self.steps.address])


class _Delta:
    """A delta for the tensors of a device: `fill` lays it out in memory of the host, `allocate`
    gets that of the device, and `apply` and `undo` work there.

    facts: its sizes. ends: the digests of its base and of its result, '' where it does not say
    them. numbers, hashes: of its blocks, and of what they hold afterwards. before: what they held,
    while the Patcher's table has `hashes`.
    """

    def __init__(self, device: Handle, path: str) -> None:
        """Unsupported when the device does not know the delta's format."""
        self.facts = defaults('deltabucket_device_delta_facts')
        err = new_error()
        with device.use() as pointer:
            opened = lib.deltabucket_device_delta_open(pointer, c_path(path, 'path'), self.facts,
                                                       err)
        if opened == ffi.NULL:
            raise made_of(err)
        self._handle = Handle('delta', opened, lib.deltabucket_device_delta_close, parent=device)
        self.ends = text_of(self.facts.base_digest), text_of(self.facts.result_digest)
        self.before: NDArray[numpy.uint64] | None = None
        self._batch: _Batch | None = None

    def fill(self, machine: Machine, threads: int) -> None:
        """Invalid when the delta is malformed. Its file is not needed any more then."""
        self._upload = machine.host(max(16, self.facts.upload_bytes))
        self._blocks = machine.host(max(1, self.facts.blocks) * BLOCK_BYTES)
        err = new_error()
        with self._handle.use() as pointer:
            if lib.deltabucket_device_delta_fill(
                    pointer, ffi.from_buffer(self._upload), ffi.from_buffer(self._blocks), threads,
                    err) != 0:
                raise made_of(err)
        self._handle.close()
        rows = self._blocks[:self.facts.blocks * BLOCK_BYTES].reshape(-1, BLOCK_BYTES)
        self.numbers = rows[:, NUMBER_AT:NUMBER_AT + 4].copy().view(numpy.uint32).ravel()
        self.hashes = rows[:, HASH_AT:HASH_AT + 8].copy().view(numpy.uint64).ravel()

    def allocate(self, machine: Machine) -> None:
        if self.facts.blocks:
            self._batch = _Batch(machine, self.facts.blocks)
            self._batch.upload = machine.allocate(len(self._upload))
            self._batch.places = machine.allocate(max(1, self.facts.changes) * 4)
            self._batch.steps = machine.allocate(max(1, self.facts.changes) * 2)

    def apply(self, machine: Machine) -> NDArray[numpy.uint32]:
        """Changes the tensors; gives what became of each block."""
        if self._batch is None:
            return numpy.zeros(0, numpy.uint32)
        machine.upload(self._batch.upload.address, self._upload)
        return self._batch.run(machine, self._blocks)

    def undo(self, machine: Machine) -> None:
        """Takes back what `apply` has changed."""
        if self._batch is not None:
            self._batch.undo(machine)

    def forget(self) -> None:
        """Gives the device's memory back."""
        self._batch = self.before = None


def _cuda_of(targets: Mapping[str, Memory]) -> Machine:
    from deltabucket._cuda import Cuda
    devices = {target.owner.device for target in targets.values()}  # type: ignore[attr-defined]
    if len(devices) != 1 or next(iter(devices)).type != 'cuda':
        raise ValueError(f'The tensors lie on {", ".join(sorted(map(str, devices))) or "no device"}'
                         '; they must lie on one CUDA device.')
    return Cuda(next(iter(devices)))
