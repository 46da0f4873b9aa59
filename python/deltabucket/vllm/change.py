"""What leads from one step to another in the parameters of this rank, laid out beforehand.

A `Generation` is a step's folder, a `Change` the pairs (place, bits) in which two of them differ,
and a `Copy` all that one of them has. Bits are compared and moved as integers, so a NaN is a value
like others.
"""
from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from safetensors import safe_open

from deltabucket import errors
from deltabucket.vllm.layout import Slice

CHUNK = 1 << 24  # elements that are compared at a time
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Generation:
    """A step in a follower's folder. Its tensors stay readable when the folder is removed.

    number: of the step. tensors: {name: torch tensor over the files}, which must not be written
    to."""

    def __init__(self, number: int, path: str) -> None:
        """NotFound when there is no such folder, or it has no safetensors files."""
        self.number = number
        self.tensors: dict[str, torch.Tensor] = {}
        self._files: list[Any] = []
        try:
            names = sorted(name for name in os.listdir(path) if name.endswith('.safetensors'))
            for name in names:
                self._files.append(safe_open(os.path.join(path, name), 'pt'))
        except OSError as failure:
            raise errors.NotFound(f'Step {number} cannot be read: {failure}.',
                                  kind='not_found') from failure
        for file in self._files:
            self.tensors.update((key, file.get_tensor(key)) for key in file.keys())
        if not self.tensors:
            raise errors.NotFound(f'{path} has no safetensors files.', kind='not_found')

    def schema(self) -> dict[str, tuple[torch.dtype, torch.Size]]:
        return {name: (tensor.dtype, tensor.shape) for name, tensor in self.tensors.items()}


class Move(Protocol):
    """Brings the parameters of this rank from one step to another. None of it waits for a disk or
    for other ranks.

    count: elements that it changes in this rank."""
    count: int

    def is_base(self) -> bool:
        """Whether the parameters hold what is expected before `apply`."""

    def apply(self) -> bool:
        """Writes; says whether the parameters hold what they should then."""

    def undo(self) -> bool:
        """Takes back what `apply` has written, also in part; says whether that is proven."""


class Change:
    """A Move of pairs."""

    def __init__(self, pairs: Sequence[_Pairs]) -> None:
        self._pairs = pairs
        self.count = sum(len(one.places) for one in pairs)

    def is_base(self) -> bool:
        return all([one.holds(one.old) for one in self._pairs])

    def apply(self) -> bool:
        for one in self._pairs:
            one.write(one.new)
        return all([one.holds(one.new) for one in self._pairs])

    def undo(self) -> bool:
        for one in self._pairs:
            one.write(one.old)
        return self.is_base()

    def joined(self, *others: Change) -> Change:
        """With all of these. Shares all memory with them."""
        return Change([pairs for one in (self, *others) for pairs in one._pairs])

    def reversed(self) -> Change:
        """What leads back. Shares all memory with this one."""
        return Change([_Pairs(one.bits, one.places, one.new, one.old) for one in self._pairs])


class Copy:
    """A Move of whole slices, from whatever the parameters hold. It cannot be taken back."""

    def __init__(self, slices: Sequence[Slice], new: Generation) -> None:
        self._slices = slices
        self._new = new
        self.count = sum(math.prod(one.target.shape) for one in slices)

    def is_base(self) -> bool:
        return True

    def apply(self) -> bool:
        for one in self._slices:
            one.target.on(one.storage).copy_(_source(one, self._new))
        return holds(self._slices, self._new)

    def undo(self) -> bool:
        return False


def change(slices: Sequence[Slice], old: Generation, new: Generation) -> Change:
    """Lays out what differs between the steps, in pinned memory where the parameters lie on a
    device. Reads the bytes of these slices of both. SchemaMismatch when the steps have different
    tensors."""
    if old.schema() != new.schema():
        raise errors.SchemaMismatch(f'Step {new.number} has other tensors than step {old.number}.',
                                    kind='schema_mismatch')
    made = [_pairs(one, old, new) for one in slices]
    return Change([one for one in made if len(one.places)])


def holds(slices: Sequence[Slice], step: Generation) -> bool:
    """Whether the parameters have the bits of the step, all of them. It may run while the model is
    in use."""
    for one in slices:
        target = one.target.on(one.storage)
        for part, wanted in _chunks(target, _source(one, step)):
            if not torch.equal(_bits(part.cpu()), _bits(wanted.to(target.dtype))):
                return False
    return True


class _Pairs:
    """bits: all elements of a parameter's storage as integers, shape (m,). places: shape (n,), in
    that, int32 where that is enough. old, new: what is there before and after, as such integers,
    shape (n,)."""

    def __init__(self, bits: torch.Tensor, places: torch.Tensor, old: torch.Tensor,
                 new: torch.Tensor) -> None:
        self.bits = bits
        self.places = places
        self.old = old
        self.new = new

    def write(self, values: torch.Tensor) -> None:
        self.bits.index_copy_(0, self._sent(self.places).long(), self._sent(values))

    def holds(self, values: torch.Tensor) -> bool:
        found = self.bits.index_select(0, self._sent(self.places))
        return bool(torch.equal(found, self._sent(values)))

    def _sent(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.bits.device, non_blocking=True)


def _pairs(one: Slice, old: Generation, new: Generation) -> _Pairs:
    dtype = one.storage.dtype
    indexes, befores, afters = [], [], []
    begin = 0
    for before, after in _chunks(_source(one, old), _source(one, new)):
        was, becomes = _bits(before.to(dtype)).ravel(), _bits(after.to(dtype)).ravel()
        index = (was != becomes).nonzero().ravel()
        indexes.append(index + begin)
        befores.append(was[index])
        afters.append(becomes[index])
        begin += was.numel()
    bits = _bits(one.storage)
    if not indexes:
        return _Pairs(bits, torch.empty(0, dtype=torch.int64), bits[:0], bits[:0])
    places = one.target.places(torch.cat(indexes))
    if bits.numel() < 1 << 31:
        places = places.int()
    lists = places, torch.cat(befores), torch.cat(afters)
    if bits.device.type == 'cuda':
        lists = lists[0].pin_memory(), lists[1].pin_memory(), lists[2].pin_memory()
    return _Pairs(bits, *lists)


def _source(one: Slice, step: Generation) -> torch.Tensor:
    tensor = step.tensors[one.name]
    # A tensor of a file is contiguous, but may begin anywhere in the file's memory.
    flat = tensor.reshape(-1)
    shape, stride, offset = one.source.shape, one.source.stride, one.source.offset
    return flat.as_strided(shape, stride, flat.storage_offset() + offset)


def _chunks(first: torch.Tensor, second: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Parts of two tensors of one shape, contiguous and in row-major order, some rows at a time."""
    if first.dim() == 0:
        first, second = first.reshape(1), second.reshape(1)
    if not first.numel():
        return
    rows = max(1, CHUNK // max(1, first[0].numel()))
    for begin in range(0, len(first), rows):
        yield first[begin:begin + rows].contiguous(), second[begin:begin + rows].contiguous()


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(INTEGERS[tensor.element_size()])
