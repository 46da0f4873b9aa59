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
    storages = {parameter.untyped_storage().data_ptr(): (name, _flat(parameter))
                for name, parameter in model.named_parameters() if parameter.numel()}
    slices = []
    for name, tensor in tensors.items():
        for target, source in _copies(model, name, tensor):
            found = storages.get(target.untyped_storage().data_ptr())
            if found is None:
                raise _unsupported(f'vLLM copies {name} to something that is not a parameter')
            slices.append(Slice(name, View.of(source), *found, View.of(target)))
    if tensors and not slices:
        raise errors.SchemaMismatch('The model takes none of the tensors of the step: they have '
                                    'other names.', kind='schema_mismatch')
    return slices


class _Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Notes copies from views of one tensor without bytes, and makes none."""

    def __init__(self, name: str, root: torch.Tensor) -> None:
        super().__init__()
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._name = name
        self._storage = root.untyped_storage()._cdata

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        if function in FILLS:
            return args[0]
        if function is not torch.ops.aten.copy_.default:
            if function._schema.is_mutable:
                raise _unsupported(f'vLLM writes {self._name} by {function}')
            return function(*args, **(kwargs or {}))
        target, source = args[:2]
        if source.untyped_storage()._cdata != self._storage or source.shape != target.shape:
            raise _unsupported(f'vLLM changes {self._name} before it copies it into a parameter')
        self.copies.append((target, source))
        return target


def _copies(model: Any, name: str, tensor: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(part of a parameter, part of the tensor) for each copy."""
    root = torch.empty(tensor.shape, dtype=tensor.dtype, device='meta')
    recorder = _Recorder(name, root)
    try:
        with torch.no_grad(), recorder:
            model.load_weights([(name, root)])
    except errors.Error:
        raise
    except Exception as failure:
        raise _unsupported(f'vLLM does not load {name} from its shape alone ({failure})') from failure
    return recorder.copies


def _check_modules(model: Any) -> None:
    for name, module in model.named_modules():
        method = getattr(module, 'quant_method', None)
        kinds = {one.__name__ for one in type(module).__mro__}
        if kinds & DERIVING:
            raise _unsupported(f'{name} is a {type(module).__name__}, which keeps tensors made of others')
        if method is not None and type(method).__name__ not in METHODS:
            raise _unsupported(f'{name} is loaded by {type(method).__name__}, which changes weights')


def _flat(parameter: torch.Tensor) -> torch.Tensor:
    """All elements of the parameter's storage, shape (n,)."""
    count = parameter.untyped_storage().nbytes() // parameter.element_size()
    return parameter.detach().as_strided((count,), (1,), 0)


def _unsupported(why: str) -> errors.Unsupported:
    return errors.Unsupported(f'{why}; such a model is updated by reload_weights '
                              '(contrib/engines/vllm).', kind='unsupported')
