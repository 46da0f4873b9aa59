"""What leads from one step to another in the parameters of this rank, laid out beforehand.

A `Generation` is a step's folder, a `Change` the pairs (place, bits) in which two of them differ,
and a `Copy` all that one of them has; moves.py has the deltas. Bits are compared and moved as
integers, so a NaN is a value like others.
"""
from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from safetensors import safe_open

from deltabucket import errors
from deltabucket.tensors import Memory, readable
from deltabucket.vllm.layout import Slice, View

CHUNK = 1 << 24  # elements that are compared at a time
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Generation:
    """A step in a follower's folder; a deltabucket.gpu.Source. Its tensors stay readable when the
    folder is removed.

    number: of the step. digest: of all its tensors, '' where no follower has noted it. tensors:
    {name: torch tensor over the files}, which must not be written to."""
    is_part = False

    def __init__(self, number: int, path: str, deltas: Sequence[str] = ()) -> None:
        """deltas: as of `deltas`. NotFound when there is no such folder, or it has no safetensors
        files."""
        self.number = number
        self.digest = _digest_of(path)
        self._deltas = list(deltas)
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

    @property
    def came_whole(self) -> bool:
        return not self._deltas

    def entries(self) -> list[Memory]:
        """All tensors, in byte order of their names."""
        return readable(self.tensors, clean=False)

    def deltas(self) -> list[str]:
        """Paths of the deltas that lead here from a step before, in the order in which they apply.
        They may go before the step does."""
        return self._deltas


@dataclass(frozen=True)
class Share:
    """What goes which way in this rank: elements of the parameters that deltas change, and that
    pairs change; and, as of deltabucket.gpu.Applied, decoded_bytes of the deltas."""
    by_delta: int = 0
    by_pairs: int = 0
    decoded_bytes: int = 0


class Move(Protocol):
    """Brings the parameters of this rank from one step to another. None of it waits for a disk or
    for other ranks. Calls come in the order is_base, apply, undo, release; apply and undo may be
    left out.

    count: elements that it changes in this rank."""
    count: int
    share: Share

    def is_base(self) -> bool:
        """Whether the parameters hold what is expected before `apply`."""

    def apply(self) -> bool:
        """Writes; says whether the parameters hold what they should then."""

    def undo(self) -> bool:
        """Takes back what `apply` has written, also in part; says whether that is proven."""

    def release(self) -> None:
        """Gives memory of the device back that only a pause needs. The move can be made again."""

    def reversed(self) -> Move | None:
        """What leads back when this was applied; None where nothing does. It shares all memory with
        this one, and only one of them may be made at a time."""


class Maker(Protocol):
    """Knows parameters that no `Slice` says, which vLLM has made of others."""

    def change(self, old: Generation, new: Generation) -> Change:
        """What leads from the step before, which these parameters hold, to this one."""

    def copy(self, new: Generation) -> bool:
        """Writes the step over them; says whether they hold it then."""


class Change:
    """A Move of pairs. They cross to the device once, when the pause begins, and lie there until
    `release`."""

    def __init__(self, pairs: Sequence[Pairs], elements: int = 0) -> None:
        """elements: of the parameters that it might have changed."""
        self.count = sum(len(one.places) for one in pairs)
        self.share = Share(by_pairs=elements)
        self._pairs = pairs
        self._sent: Sequence[Pairs] | None = None

    def is_base(self) -> bool:
        return _hold([(one, one.old) for one in self._there()])

    def apply(self) -> bool:
        for one in self._there():
            one.write(one.new)
        return _hold([(one, one.new) for one in self._there()])

    def undo(self) -> bool:
        for one in self._there():
            one.write(one.old)
        return self.is_base()

    def release(self) -> None:
        self._sent = None

    def joined(self, *others: Change) -> Change:
        """With all of these. Shares all memory with them."""
        every = (self, *others)
        return Change([pairs for one in every for pairs in one._pairs],
                      sum(one.share.by_pairs for one in every))

    def reversed(self) -> Change:
        return Change([Pairs(one.bits, one.places, one.new, one.old) for one in self._pairs],
                      self.share.by_pairs)

    def _there(self) -> Sequence[Pairs]:
        """The pairs on the device. One that has no room for all gets them again for each use."""
        if self._sent is None:
            try:
                self._sent = [one.sent() for one in self._pairs]
            except torch.OutOfMemoryError:
                self._sent = self._pairs
        return self._sent


class Copy:
    """A Move of whole slices, and of all that the makers know, from whatever the parameters hold. It
    cannot be taken back."""

    def __init__(self, slices: Sequence[Slice], new: Generation,
                 makers: Sequence[Maker] = ()) -> None:
        self._slices = slices
        self._makers = makers
        self._new = new
        self.count = elements_of(slices)
        self.share = Share(by_pairs=self.count)

    def is_base(self) -> bool:
        return True

    def apply(self) -> bool:
        for one in self._slices:
            one.target.on(one.storage).copy_(_source(one, self._new))
        are_made = all([one.copy(self._new) for one in self._makers])
        return holds(self._slices, self._new) and are_made

    def undo(self) -> bool:
        return False

    def release(self) -> None:
        """Does nothing."""

    def reversed(self) -> None:
        return None


def change(slices: Sequence[Slice], old: Generation, new: Generation) -> Change:
    """Lays out what differs between the steps, in pinned memory where the parameters lie on a
    device. Reads the bytes of these slices of both. SchemaMismatch when the steps have different
    tensors."""
    if old.schema() != new.schema():
        raise errors.SchemaMismatch(f'Step {new.number} has other tensors than step {old.number}.',
                                    kind='schema_mismatch')
    made = [_pairs(one, old, new) for one in slices]
    return Change([one for one in made if len(one.places)], elements_of(slices))


def elements_of(slices: Sequence[Slice]) -> int:
    return sum(math.prod(one.target.shape) for one in slices)


def holds(slices: Sequence[Slice], step: Generation) -> bool:
    """Whether the parameters have the bits of the step, all of them. It may run while the model is
    in use."""
    for one in slices:
        target = one.target.on(one.storage)
        for part, wanted in chunks(target, _source(one, step)):
            if not torch.equal(bits_of(part.cpu()), bits_of(wanted.to(target.dtype))):
                return False
    return True


class Pairs:
    """bits: all elements of a parameter's storage as integers, shape (m,). places: shape (n,), in
    that, int32 where that is enough. old, new: what is there before and after, as such integers,
    shape (n,)."""

    def __init__(self, bits: torch.Tensor, places: torch.Tensor, old: torch.Tensor,
                 new: torch.Tensor) -> None:
        self.bits = bits
        self.places = places
        self.old = old
        self.new = new

    def sent(self) -> Pairs:
        """The same with all of it on the parameter's device, so that `write` needs no more memory
        there, and `differs` as much each time."""
        return Pairs(self.bits, self._there(self.places).long(), self._there(self.old),
                      self._there(self.new))

    def write(self, values: torch.Tensor) -> None:
        self.bits.index_copy_(0, self._there(self.places).long(), self._there(values))

    def differs(self, values: torch.Tensor) -> torch.Tensor:
        """A bool on the device, which nobody has waited for: shape ()."""
        return (self.bits.index_select(0, self._there(self.places)) != self._there(values)).any()

    def _there(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.bits.device, non_blocking=True)


def pairs_of(storage: torch.Tensor, target: View,
             parts: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> Pairs:
    """Where the bits of a parameter change, in pinned memory where it lies on a device.

    storage: all its elements, shape (m,). target: a view of that. parts: what the view holds before
    and after, in row-major order, some elements at a time."""
    indexes, befores, afters = [], [], []
    begin = 0
    for before, after in parts:
        was, becomes = bits_of(before).ravel(), bits_of(after).ravel()
        index = (was != becomes).nonzero().ravel()
        indexes.append((index + begin).cpu())
        befores.append(was[index].cpu())
        afters.append(becomes[index].cpu())
        begin += was.numel()
    bits = bits_of(storage)
    if not indexes:
        return Pairs(bits, torch.empty(0, dtype=torch.int64), bits[:0], bits[:0])
    places = target.places(torch.cat(indexes))
    if bits.numel() < 1 << 31:
        places = places.int()
    lists = places, torch.cat(befores), torch.cat(afters)
    if bits.device.type == 'cuda':
        lists = lists[0].pin_memory(), lists[1].pin_memory(), lists[2].pin_memory()
    return Pairs(bits, *lists)


def _hold(wanted: Sequence[tuple[Pairs, torch.Tensor]]) -> bool:
    """Whether these values are at the places of these pairs; waits for the device once."""
    verdicts = [pairs.differs(values) for pairs, values in wanted]
    return not verdicts or not bool(torch.stack(verdicts).any())


def _digest_of(path: str) -> str:
    """Of all tensors of a generation, as the follower says beside it."""
    try:
        with open(f'{os.path.realpath(path)}.json') as file:
            noted = json.load(file)
    except (OSError, ValueError):
        return ''
    is_whole = isinstance(noted, dict) and 'tensors' not in noted
    return str(noted.get('digest', '')) if is_whole else ''


def _pairs(one: Slice, old: Generation, new: Generation) -> Pairs:
    dtype = one.storage.dtype
    parts = chunks(_source(one, old), _source(one, new))
    return pairs_of(one.storage, one.target,
                    ((before.to(dtype), after.to(dtype)) for before, after in parts))


def _source(one: Slice, step: Generation) -> torch.Tensor:
    tensor = step.tensors[one.name]
    # A tensor of a file is contiguous, but may begin anywhere in the file's memory.
    flat = tensor.reshape(-1)
    shape, stride, offset = one.source.shape, one.source.stride, one.source.offset
    return flat.as_strided(shape, stride, flat.storage_offset() + offset)


def chunks(first: torch.Tensor, second: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Parts of two tensors of one shape, contiguous and in row-major order, some rows at a time."""
    if first.dim() == 0:
        first, second = first.reshape(1), second.reshape(1)
    if not first.numel():
        return
    rows = max(1, CHUNK // max(1, first[0].numel()))
    for begin in range(0, len(first), rows):
        yield first[begin:begin + rows].contiguous(), second[begin:begin + rows].contiguous()


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(INTEGERS[tensor.element_size()])
