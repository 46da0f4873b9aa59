"""Which part of which checkpoint tensor lies where in the parameters of this rank.

vLLM knows that only as code: each model's `load_weights` and each parameter's `weight_loader`. So
that code is run, once, with tensors that have shapes and no bytes (device meta), while every copy
that it makes into a parameter is noted and not made. A copy is from a view of the checkpoint's
tensor to a view of a parameter, which says all: tensor parallelism, stacked and transposed
parameters, experts and padding.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from deltabucket import errors

# What holds the checkpoint's own numbers after vLLM has loaded it.
METHODS = {'UnquantizedLinearMethod', 'UnquantizedEmbeddingMethod', 'UnquantizedFusedMoEMethod'}
# Of padding, which no step changes.
FILLS = {torch.ops.aten.fill_.Scalar, torch.ops.aten.zero_.default}
# Modules that keep tensors made from those of others.
DERIVING = {'MLAAttention'}
# (part of a parameter, part of the checkpoint's tensor) for each write. The second is None where
# anything else is written.
Recorded = list[tuple[torch.Tensor, 'torch.Tensor | None']]


@dataclass(frozen=True)
class View:
    """A tensor's geometry, all in elements: shape, strides, and where it begins in its storage."""
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> View:
        return cls(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())

    def on(self, flat: torch.Tensor) -> torch.Tensor:
        """The same view of another storage, whose elements `flat` has, shape (n,)."""
        return flat.as_strided(self.shape, self.stride, self.offset)

    def places(self, index: torch.Tensor) -> torch.Tensor:
        """index: int64, shape (n,), of elements of the view in row-major order. Gives where they
        lie in the storage, the same shape."""
        places = torch.full_like(index, self.offset)
        for size, stride in zip(reversed(self.shape), reversed(self.stride)):
            places += index.remainder(size) * stride
            index = index.div(size, rounding_mode='floor')
        return places


@dataclass(frozen=True)
class Slice:
    """name: of the checkpoint's tensor. source: a view of it. parameter: the name of the model's.
    storage: all its elements, shape (n,), in the parameter's dtype, the memory that is changed.
    target: a view of that, with the source's shape."""
    name: str
    source: View
    parameter: str
    storage: torch.Tensor
    target: View


def slices_of(model: Any, tensors: Mapping[str, torch.Tensor]) -> list[Slice]:
    """What vLLM would copy where when it loads these tensors. Changes nothing and reads no bytes.

    Unsupported, with the name of the tensor or module, where vLLM does anything to a tensor but
    copy a part of it into a parameter, or keeps other tensors made of it: quantised parameters and
    MLA attention. SchemaMismatch when the model takes none of the tensors.
    """
    _check_modules(model)
    storages = {parameter.untyped_storage()._cdata: (name, flat(parameter))
                for name, parameter in model.named_parameters() if parameter.numel()}
    slices = []
    for name, tensor in tensors.items():
        for target, source in recorded(model, name, tensor, frozenset(storages)):
            found = storages.get(target.untyped_storage()._cdata)
            if found is None:
                raise unsupported(f'vLLM copies {name} to something that is not a parameter')
            if source is None:
                raise unsupported(f'vLLM changes {name} before it copies it into a parameter')
            slices.append(Slice(name, View.of(source), *found, View.of(target)))
    if tensors and not slices:
        raise errors.SchemaMismatch('The model takes none of the tensors of the step: they have '
                                    'other names.', kind='schema_mismatch')
    return slices


class _Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Notes what is written to the parameters when a tensor without bytes is loaded, and writes
    nothing."""

    def __init__(self, root: torch.Tensor, storages: frozenset[int]) -> None:
        super().__init__()
        self.writes: Recorded = []
        self._root = root.untyped_storage()._cdata
        self._storages = storages

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        if function in FILLS:
            return args[0]
        if function is torch.ops.aten.copy_.default:
            return self._copied(*args[:2])
        if function._schema.is_mutable and not self._is_temporary(args[0]):
            self.writes.append((args[0], None))
            return args[0]
        return function(*args, **(kwargs or {}))

    def _is_temporary(self, tensor: torch.Tensor) -> bool:
        return tensor.is_meta and tensor.untyped_storage()._cdata not in self._storages

    def _copied(self, target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        is_part = source.untyped_storage()._cdata == self._root and source.shape == target.shape
        self.writes.append((target, source if is_part else None))
        return target


def recorded(model: Any, name: str, tensor: torch.Tensor, storages: frozenset[int]) -> Recorded:
    """What vLLM writes where when it loads this tensor. storages: of the parameters, by `_cdata`.
    Changes nothing and reads no bytes. Unsupported when vLLM needs the bytes for that."""
    root = torch.empty(tensor.shape, dtype=tensor.dtype, device='meta')
    recorder = _Recorder(root, storages)
    try:
        with torch.no_grad(), recorder:
            model.load_weights([(name, root)])
    except Exception as failure:
        raise unsupported(f'vLLM does not load {name} from its shape alone ({failure})') from failure
    return recorder.writes


def _check_modules(model: Any) -> None:
    for name, module in model.named_modules():
        method = getattr(module, 'quant_method', None)
        kinds = {one.__name__ for one in type(module).__mro__}
        if kinds & DERIVING:
            raise unsupported(f'{name} is a {type(module).__name__}, which keeps tensors made of others')
        if method is not None and type(method).__name__ not in METHODS:
            raise unsupported(f'{name} is loaded by {type(method).__name__}, which changes weights')


def flat(parameter: torch.Tensor) -> torch.Tensor:
    """All elements of the parameter's storage, shape (n,)."""
    count = parameter.untyped_storage().nbytes() // parameter.element_size()
    return parameter.detach().as_strided((count,), (1,), 0)


def unsupported(why: str) -> errors.Unsupported:
    return errors.Unsupported(f'{why}; such a model is updated by reload_weights '
                              '(contrib/engines/vllm).', kind='unsupported')
