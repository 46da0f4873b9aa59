"""Which part of which checkpoint tensor lies where in the parameters of this rank.

vLLM knows that only as code: each model's `load_weights` and each parameter's `weight_loader`. So
that code is run, once, with tensors that have shapes and no bytes (device meta), while every copy
that it makes into a parameter is noted and not made. A copy is from a view of the checkpoint's
tensor to a view of a parameter, which says all: tensor parallelism, stacked and transposed
parameters, experts and padding.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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
    storages = {parameter.untyped_storage()._cdata: (name, flat(parameter))
                for name, parameter in model.named_parameters() if parameter.numel()}
    slices = []
    for one in recorded(model, tensors, frozenset(storages)):
        found = storages.get(one.target.untyped_storage()._cdata)
        if found is None:
            raise unsupported(f'vLLM copies {one.text} to something that is not a parameter')
        if one.source is None:
            raise unsupported(f'vLLM changes {one.text} before it copies it into a parameter')
        slices.append(Slice(one.text, View.of(one.source), *found, View.of(one.target)))
    if tensors and not slices:
        raise errors.SchemaMismatch('The model takes none of the tensors of the step: they have '
                                    'other names.', kind='schema_mismatch')
    return slices


@dataclass(frozen=True)
class Write:
    """names: of the checkpoint's tensors that the values come from. source: the part of one of them
    that is copied to `target`, None where anything else is written."""
    names: frozenset[str]
    target: torch.Tensor
    source: torch.Tensor | None

    @property
    def text(self) -> str:
        return ', '.join(sorted(self.names)) or 'a tensor'


def recorded(model: Any, tensors: Mapping[str, torch.Tensor],
             storages: frozenset[int]) -> list[Write]:
    """What vLLM writes where when it loads these tensors. storages: of the parameters, by `_cdata`.
    Changes nothing and reads no bytes. Unsupported when vLLM needs the bytes for that."""
    recorder = _Recorder(storages)
    try:
        with torch.no_grad(), recorder:
            model.load_weights(recorder.given(tensors))
    except Exception as failure:
        raise unsupported(f'vLLM does not load {recorder.name} from its shape alone ({failure})') from failure
    return recorder.writes


class _Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Notes what is written to the parameters when tensors without bytes are loaded, and writes
    nothing."""

    def __init__(self, storages: frozenset[int]) -> None:
        super().__init__()
        self.writes: list[Write] = []
        self.name = ''  # of the tensor that was given last
        self._storages = storages
        self._roots: set[int] = set()
        self._names: dict[int, frozenset[str]] = {}  # of what is in a storage
        self._kept: list[torch.Tensor] = []  # so that no storage takes the place of another one

    def given(self, tensors: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
        for self.name, tensor in tensors.items():
            root = torch.empty(tensor.shape, dtype=tensor.dtype, device='meta')
            self._roots.add(root.untyped_storage()._cdata)
            self._note(root, frozenset([self.name]))
            yield self.name, root

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        if function in FILLS:
            return args[0]
        if function is torch.ops.aten.copy_.default and not self._is_temporary(args[0]):
            target, source = args[:2]
            is_part = source.untyped_storage()._cdata in self._roots and source.shape == target.shape
            self.writes.append(Write(self._names_of(source), target, source if is_part else None))
            return target
        names = self._names_of(*tree_leaves((args, kwargs)))
        if function._schema.is_mutable and not self._is_temporary(args[0]):
            self.writes.append(Write(names, args[0], None))
            return args[0]
        made = function(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            if isinstance(one, torch.Tensor):
                self._note(one, names)
        return made

    def _is_temporary(self, tensor: torch.Tensor) -> bool:
        return tensor.is_meta and tensor.untyped_storage()._cdata not in self._storages

    def _names_of(self, *values: Any) -> frozenset[str]:
        return frozenset[str]().union(*[self._names.get(one.untyped_storage()._cdata, frozenset())
                                        for one in values if isinstance(one, torch.Tensor)])

    def _note(self, tensor: torch.Tensor, names: frozenset[str]) -> None:
        storage = tensor.untyped_storage()._cdata
        if storage in self._storages:
            return
        self._names[storage] = self._names.get(storage, frozenset()) | names
        self._kept.append(tensor)


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
