"""Moves of the parameters of one rank: by deltas where they hold whole tensors of the checkpoint,
by pairs where they hold parts or casts of them.

A tensor that lies in a parameter as it does in the checkpoint, alone or stacked with others, is the
base that a step's deltas ask for: `deltabucket.gpu` decodes them on the device, changes the tensor
there and proves each block by its hash. Of such tensors a step is never read; only its deltas are.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from deltabucket import errors
from deltabucket.gpu import Machine, Patcher, Prepared
from deltabucket.tensors import NAMES_BY_TORCH
from deltabucket.vllm.change import (Change, Copy, Generation, Maker, Move, Share, change,
                                     elements_of, holds)
from deltabucket.vllm.layout import Slice, View

THREADS = 4  # of the host, beside an engine that serves


class Moves:
    """Lays moves out for the parameters of one rank, while they are in use. For one thread at a
    time; while the parameters are changed, for none."""

    def __init__(self, slices: Sequence[Slice], tensors: Mapping[str, torch.Tensor],
                 machine: Machine | None, makers: Sequence[Maker] = ()) -> None:
        """tensors: of the checkpoint, whose parts lie where `slices` say. machine: what applies
        deltas to the parameters; None: nothing does, and all goes by pairs. makers: know what no
        slice says."""
        self._slices = slices
        self._makers = makers
        self._machine = machine
        self._whole = whole_of(slices, tensors) if machine is not None else {}
        self._parts = [one for one in slices if one.name not in self._whole]
        self._patcher: Patcher | None = None

    def holds(self, step: Generation) -> bool:
        """Whether the parameters that slices say have the bits of the step, all of them."""
        try:
            self._patcher = self._new_patcher(step)
        except errors.WrongBase:
            return False
        return holds(self._parts, step)

    def between(self, old: Generation, new: Generation) -> Move:
        """What leads from the step that the parameters hold to another one. WrongBase when the
        tensors that deltas would change are not those of the old step: all their blocks are proven
        here. Invalid when a delta is damaged, SchemaMismatch when the steps have different
        tensors."""
        prepared = self._prepared(old, new)
        if prepared is None:
            return self._pairs(self._slices, old, new)
        elements = sum(tensor.numel() for tensor in self._whole.values())
        return DeltaMove(prepared, self._pairs(self._parts, old, new), elements)

    def copy(self, new: Generation) -> Copy:
        return Copy(self._slices, new, self._makers)

    def _pairs(self, slices: Sequence[Slice], old: Generation, new: Generation) -> Change:
        return change(slices, old, new).joined(*[one.change(old, new) for one in self._makers])

    def _prepared(self, old: Generation, new: Generation) -> Prepared | None:
        """The step's deltas; None where no deltas lead from the old step to it."""
        if not self._whole or new.came_whole or not old.digest:
            return None
        try:
            if self._patcher is None or (self._patcher.number, self._patcher.digest) != (
                    old.number, old.digest):
                self._patcher = self._new_patcher(old)
            else:
                self._patcher.prove()
        except (errors.Spoiled, errors.WrongBase) as failure:
            raise errors.WrongBase(f'The parameters are not those of step {old.number}: something '
                                   'else has changed them.', kind='wrong_base') from failure
        assert self._patcher is not None
        return self._patcher.prepare(new)

    def _new_patcher(self, step: Generation) -> Patcher | None:
        """Of the tensors that lie whole, which are read from the step. WrongBase when the
        parameters do not have them."""
        if not self._whole:
            return None
        return Patcher(step, self._whole, clean=False, threads=THREADS, machine=self._machine)


class DeltaMove:
    """A Move by deltas, and by pairs of all that they do not reach.

    The base of the deltas was proven when they were laid out. What something else has changed since
    is found by the hashes of the result; then it cannot be proven to be the old step either."""

    def __init__(self, prepared: Prepared, pairs: Change, elements: int,
                 leads_back: bool = False) -> None:
        """elements: of the parameters that the deltas might change. leads_back: the deltas were
        applied, and are taken back."""
        # Of blocks that cross whole nobody has counted the elements.
        self.count = prepared.changes + pairs.count
        self.share = Share(elements, pairs.share.by_pairs, prepared.decoded_bytes)
        self._prepared = prepared
        self._pairs = pairs
        self._leads_back = leads_back

    def is_base(self) -> bool:
        return self._pairs.is_base()

    def apply(self) -> bool:
        self._set_applied(not self._leads_back)
        return self._pairs.apply()

    def undo(self) -> bool:
        are_back = self._pairs.undo()
        self._set_applied(self._leads_back)
        return are_back

    def release(self) -> None:
        """The deltas stay on the device, so that they can be taken back."""
        self._pairs.release()

    def reversed(self) -> DeltaMove:
        return DeltaMove(self._prepared, self._pairs.reversed(), self.share.by_delta,
                         not self._leads_back)

    def _set_applied(self, is_wanted: bool) -> None:
        """Spoiled, DigestMismatch or Invalid as of deltabucket.gpu.Prepared."""
        if not is_wanted:
            self._prepared.take_back()
        elif not self._prepared.is_applied:
            self._prepared.apply()


def cuda_of(device: Any) -> Machine:
    """What applies deltas on this torch device. Unsupported where nothing can."""
    if device.type != 'cuda':
        raise errors.Unsupported(f'The parameters lie on {device.type}; deltas are applied on CUDA '
                                 'devices.', kind='unsupported')
    from deltabucket._cuda import Cuda
    return Cuda(device)


def whole_of(slices: Sequence[Slice], tensors: Mapping[str, torch.Tensor],
             ) -> dict[str, torch.Tensor]:
    """{name: the memory of a parameter in which this tensor of the checkpoint lies whole,
    contiguous and uncast, and nothing else does}, with the tensor's dtype and shape."""
    counts = Counter(one.name for one in slices)
    shared = _shared(slices)
    return {one.name: one.target.on(one.storage).view(tensors[one.name].shape)
            for number, one in enumerate(slices)
            if counts[one.name] == 1 and number not in shared and _is_whole(one, tensors[one.name])}


def _is_whole(one: Slice, tensor: torch.Tensor) -> bool:
    return (one.storage.dtype == tensor.dtype and str(tensor.dtype) in NAMES_BY_TORCH
            and math.prod(one.source.shape) == tensor.numel() > 0 and one.source.offset == 0
            and _is_contiguous(one.source) and _is_contiguous(one.target))


def _is_contiguous(view: View) -> bool:
    step = 1
    for size, stride in zip(reversed(view.shape), reversed(view.stride)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _shared(slices: Sequence[Slice]) -> set[int]:
    """Numbers of the slices whose memory may be that of others, too."""
    shared: set[int] = set()
    last, last_end = -1, 0
    for begin, end, number in sorted(map(_span, slices, range(len(slices)))):
        if begin < last_end:
            shared |= {last, number}
        if end > last_end:
            last, last_end = number, end
    return shared


def _span(one: Slice, number: int) -> tuple[int, int, int]:
    """(address of the target's first byte, that behind its last one, number)"""
    view, width = one.target, one.storage.element_size()
    begin = one.storage.data_ptr() + view.offset * width
    if 0 in view.shape:
        return begin, begin, number
    last = sum((size - 1) * stride for size, stride in zip(view.shape, view.stride))
    return begin, begin + (last + 1) * width, number
