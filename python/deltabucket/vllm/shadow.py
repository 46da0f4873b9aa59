"""Tensors that vLLM makes of the checkpoint's: made again beside the live ones, a layer at a time.

Quantised, repacked and derived tensors have no place of their own for an element of the checkpoint.
Only vLLM's code knows how they come about: `load_weights`, `process_weights_after_loading`. So there
is a second model of the same class, whose tensors have shapes and no memory. For each layer
that a step changes it gets memory, vLLM loads and processes the step's tensors in it, the outcome is
compared with what the live layer holds, and the memory goes. The places that differ are the change.

Whatever that code leaves in a layer is looked at, also what is not a parameter: the attributes of
the module and of the objects of vLLM that it has. A tensor must have the live one's geometry; all
else must be equal, as a number in Python cannot be changed under a running CUDA graph. The first
time, with the step that the model was loaded from, all bits must be those of the live model, which
proves both.
"""
from __future__ import annotations

import collections
import contextlib
import copy
import enum
import functools
import math
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.model_executor.layers.attention import is_deferred_attention_layer
from vllm.model_executor.layers.quantization.base_config import (QuantizationConfig,
                                                                 QuantizeMethodBase)
from vllm.model_executor.model_loader.reload.layerwise import (finalize_layerwise_processing,
                                                               get_layerwise_info,
                                                               initialize_online_processing)
from vllm.model_executor.model_loader.reload.meta import SKIP_TENSORS, materialize_meta_tensor
from vllm.model_executor.model_loader.utils import (initialize_model,
                                                    process_weights_after_loading)
from vllm.utils.torch_utils import set_default_torch_dtype

from deltabucket import errors
from deltabucket.vllm.change import (Change, Generation, Pairs, bits_of, chunks, holds,
                                     pairs_of)
from deltabucket.vllm.layout import (DERIVING, METHODS, Slice, View, Write, flat, recorded,
                                     unsupported)

# Elements of a tensor that gets memory at once: scales, which vLLM fills with marks when it makes
# them.
SMALL = 1024
PLAIN_METHODS = METHODS - {'UnquantizedFusedMoEMethod'}  # whose layout never changes after loading
COLLECTIVES = {'c10d', 'c10d_functional', '_c10d_functional', 'symm_mem'}
OPEN = ('vllm.model_executor.', 'vllm.v1.attention.')  # whose objects are looked into
VALUES = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size,
          enum.Enum, set, frozenset, slice, torch.layout, torch.memory_format)
NEVER = 1 << 60  # elements short of a layer that is complete
_aten = torch.ops.aten
_MAKERS = {_aten.empty.memory_format, _aten.empty_strided.default, _aten.zeros.default,
           _aten.ones.default, _aten.full.default}
Key = Any  # of an attribute, an entry of a mapping or a place in a sequence
Path = tuple[Key, ...]


def is_needed(model: nn.Module) -> bool:
    """Whether the model may have tensors that are no copies of the checkpoint's."""
    return any(_makes(module) for module in model.modules())


class Shadow:
    """Of one live model. Made in the thread that the model was loaded in, while nothing is computed,
    then used by one thread at a time, while it serves."""

    def __init__(self, live: nn.Module, config: VllmConfig, model_config: Any,
                 device: torch.device, lent: frozenset[int] = frozenset()) -> None:
        """lent: modules that are another model's, by `id`, which are left to that. Unsupported for a
        model that vLLM does not make without memory."""
        if config.parallel_config.enable_eplb:
            raise unsupported('vLLM moves experts among workers while it serves (EPLB)')
        self._model_config = model_config
        self._device = device
        self._live = dict(live.named_modules(remove_duplicate=False))
        self._storages = {tensor.untyped_storage().data_ptr()
                          for tensor in [*live.parameters(), *live.buffers()]}
        self._model = _without_memory(config, model_config, device)
        self._layers: list[Layer] = []
        self._lent = {name for name, module in self._live.items() if id(module) in lent}
        for name, module in self._model.named_modules():
            if name not in self._lent and type(module) is not type(self._live.get(name)):
                raise unsupported(f'{name} is not made twice as the same kind of module')

    def proven(self, held: Generation) -> list[Slice]:
        """The slices that are copies; the layers that are not are kept for `change`. All of the
        live model's parameters are compared with what vLLM makes of the step. WrongBase when they
        are not the same, Unsupported, with the name of the tensor or attribute, for what cannot be
        carried over."""
        writes = self._recorded(held)
        remade = self._closed({name for name, module in self._model.named_modules()
                               if name not in self._lent
                               and _is_remade(module, self._live[name])}
                              | {module for one in writes if one.source is None
                                 for module in one.modules})
        slices = self._slices(writes, remade)
        moved = {name for name, some in _by_module(slices, writes).items()
                 if not holds(some, held) and _makes(self._live[name])}
        if moved:
            remade = self._closed(remade | moved)
            slices = self._slices(writes, remade)
        self._layers = self._grouped(writes, remade)
        for layer in self._layers:
            layer.prove(held)
        return slices

    def change(self, old: Generation, new: Generation) -> Change:
        """What leads from the step before, which the live model holds, to this one, in the tensors
        that are made again."""
        return Change([pairs for layer in self._layers if layer.differs(old, new)
                       for pairs in layer.pairs(new)], sum(one.elements for one in self._layers))

    def copy(self, new: Generation) -> bool:
        """Writes over the live tensors that are made again; says whether they hold it then."""
        return all([layer.copy(new) for layer in self._layers])

    @contextlib.contextmanager
    def on_device(self) -> Iterator[None]:
        """New tensors lie on the device of the live model. Its work goes to the current stream."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._device)
            if self._device.type == 'cuda':
                stack.enter_context(torch.cuda.device(self._device))
            yield

    def _recorded(self, step: Generation) -> list[_Write]:
        """What vLLM writes where when it loads these tensors into the model without memory."""
        owners = _owners(self._model)
        for module in self._model.modules():
            if _is_online(module):
                get_layerwise_info(module).load_numel = -NEVER
        writes = []
        with self.on_device():
            noted = recorded(self._model, step.tensors, frozenset(owners))
        for one in noted:
            found = owners.get(one.target.untyped_storage()._cdata)
            if found is None:
                raise unsupported(f'vLLM copies {one.text} to something that is not a parameter')
            if found[0][0] not in self._lent:
                writes.append(_Write(one, found))
        for module in self._model.modules():
            if _is_online(module):
                get_layerwise_info(module).reset()
        if not writes:
            raise errors.SchemaMismatch('The model takes none of the tensors of the step: they '
                                        'have other names.', kind='schema_mismatch')
        return writes

    def _closed(self, names: set[str]) -> set[str]:
        """With all modules inside of these."""
        inside = {id(one) for name in names for one in self._model.get_submodule(name).modules()}
        return {name for name, module in self._model.named_modules()
                if id(module) in inside and name not in self._lent}

    def _slices(self, writes: Sequence[_Write], remade: set[str]) -> list[Slice]:
        made = []
        for one in writes:
            if one.modules & remade:
                continue
            shadow = getattr(self._model.get_submodule(one.module), one.tensor)
            live = getattr(self._live[one.module], one.tensor, None)
            if not isinstance(live, torch.Tensor) or not _fits(live, shadow):
                raise unsupported(f'vLLM keeps {one.parameter} in another layout than it loads it in')
            assert one.source is not None
            name, = one.names
            made.append(Slice(name, one.source, one.parameter, flat(live), one.target))
        return made

    def _grouped(self, writes: Sequence[_Write], remade: set[str]) -> list[Layer]:
        groups: dict[str, list[str]] = collections.defaultdict(list)
        for name, _ in self._model.named_modules():
            if name in remade:
                groups[_layer_of(name)].append(name)
        return [Layer(group, self, names, list(dict.fromkeys(
            name for one in writes if one.modules & set(names) for name in sorted(one.names))))
                for group, names in groups.items()]


class Layer:
    """Modules of one layer whose tensors are made again together, and the checkpoint's tensors that
    they are made of."""

    def __init__(self, name: str, shadow: Shadow, modules: Sequence[str],
                 tensors: Sequence[str]) -> None:
        self.name = name
        self._shadow = shadow
        self._modules = {one: shadow._model.get_submodule(one) for one in modules}
        self._live = {one: shadow._live[one] for one in modules}
        self._tensors = tensors
        self._carried: set[Path] = set()  # what this layer has made before
        self.elements = 0  # of what it makes
        leaves, nodes = _walked(self._live, {})
        self._shared = {id(value): value for value in [
            *[node for node, _, _ in nodes],
            *[value for value in leaves.values() if isinstance(value, torch.Tensor)]]}

    def differs(self, old: Generation, new: Generation) -> bool:
        return any(not torch.equal(bits_of(old.tensors[name].reshape(-1)),
                                   bits_of(new.tensors[name].reshape(-1))) for name in self._tensors)

    def prove(self, held: Generation) -> None:
        for one, pairs in self._compared(held):
            self.elements += pairs.bits.numel()
            if len(pairs.places):
                raise unsupported(f'vLLM does not make the same {_text(one)} of step {held.number} '
                                  'twice')
        for name, module in self._live.items():
            for key, tensor in module._parameters.items():
                if tensor is not None and (name, '_parameters', key) not in self._carried:
                    raise unsupported(f'vLLM does not make {name}.{key} again')

    def pairs(self, new: Generation) -> list[Pairs]:
        return [pairs for _, pairs in self._compared(new) if len(pairs.places)]

    def copy(self, new: Generation) -> bool:
        """Writes over the live tensors, whatever they hold; says whether they hold it then."""
        with self._made(new) as made:
            for live, tensor in made.values():
                live.copy_(tensor)
            return all(len(_pairs_of(live, tensor).places) == 0 for live, tensor in made.values())

    def _compared(self, step: Generation) -> list[tuple[Path, Pairs]]:
        with self._made(step) as made:
            return [(path, _pairs_of(live, tensor)) for path, (live, tensor) in made.items()]

    @contextlib.contextmanager
    def _made(self, step: Generation) -> Iterator[dict[Path, tuple[torch.Tensor, torch.Tensor]]]:
        """{path: (live tensor, made of this step)}, each of one geometry. Nothing of the live model
        is written to."""
        source = {name: step.tensors[name] for name in self._tensors}
        guard = _Guard(self.name, self._shadow._storages | {
            one.untyped_storage().data_ptr() for one in source.values()})
        with torch.no_grad(), self._shadow.on_device():
            state = _State(self._modules, self._shared)
            try:
                self._make(source, guard)
                yield self._matched(state.made(self._carried), step)
            finally:
                state.restore()

    def _make(self, source: Mapping[str, torch.Tensor], guard: _Guard) -> None:
        try:
            with guard:
                self._load(source)
                self._process()
        except errors.Error:
            raise
        except Exception as failure:
            raise unsupported(f'vLLM does not make {self.name} again while it serves '
                              f'({failure})') from failure

    def _load(self, source: Mapping[str, torch.Tensor]) -> None:
        replaced: dict[int, torch.Tensor] = {}
        for module in self._modules.values():
            if _is_online(module):
                get_layerwise_info(module).reset()
                initialize_online_processing(module)
            for tensors in (module._parameters, module._buffers):
                for name, tensor in tensors.items():
                    if tensor is not None and not (_is_online(module) and tensor.is_meta
                                                   and name not in SKIP_TENSORS):
                        tensors[name] = replaced.setdefault(id(tensor), _with_memory(tensor))
        self._shadow._model.load_weights(source.items())

    def _process(self) -> None:
        """As vLLM's loader does after loading, for these modules."""
        for module in self._modules.values():
            if _is_online(module):
                finalize_layerwise_processing(module, self._shadow._model_config)
        process_weights_after_loading(nn.ModuleList(self._modules.values()),
                                      self._shadow._model_config, self._shadow._device)

    def _matched(self, made: Mapping[Path, Any],
                 step: Generation) -> dict[Path, tuple[torch.Tensor, torch.Tensor]]:
        """With the live counterparts; those that lie in memory of another one once."""
        matched = {}
        for path, value in made.items():
            live = _resolved(self._live, path)
            if isinstance(value, torch.Tensor) and isinstance(live, torch.Tensor):
                if not _fits(live, value):
                    raise unsupported(f'vLLM makes {_text(path)} in another layout than before')
                matched[path] = live.detach(), value.detach()
            elif not _same(live, value):
                raise unsupported(f'{_text(path)} is not a tensor, is made of the weights, and is '
                                  f'another one in step {step.number}')
        self._carried |= set(matched)
        return _once(matched)


class _Write:
    """To a tensor that the first of the owners has, and others too."""

    def __init__(self, noted: Write, owners: Sequence[tuple[str, str]]) -> None:
        self.names = noted.names
        self.modules = {module for module, _ in owners}
        self.module, self.tensor = owners[0]
        self.target = View.of(noted.target)
        self.source = None if noted.source is None else View.of(noted.source)

    @property
    def parameter(self) -> str:
        return f'{self.module}.{self.tensor}'


class _State:
    """What modules and the objects of vLLM that they have hold. shared: what the live model has
    too, by its `id`; it is left alone."""

    def __init__(self, modules: Mapping[str, nn.Module], shared: Mapping[int, Any]) -> None:
        self._modules = modules
        self._shared = shared
        self._leaves, self._nodes = _walked(modules, shared)
        # Tensors that could be written in place.
        self._tensors = [(path, value, value.detach().clone())
                         for path, value in self._leaves.items() if isinstance(value, torch.Tensor)
                         and not value.is_meta and id(value) not in shared]

    def made(self, always: set[Path]) -> dict[Path, Any]:
        """What is new or another since then, by path, and what is at these paths."""
        written = {path for path, value, before in self._tensors if not _equal(value, before)}
        leaves, _ = _walked(self._modules, self._shared)
        return {path: value for path, value in leaves.items()
                if path in always or path in written or self._is_new(path, value)}

    def restore(self) -> None:
        for _, node, before in self._nodes:
            if isinstance(node, list):
                node[:] = before
            else:
                node.clear()
                node.update(before)
        with torch.no_grad():
            for _, value, before in self._tensors:
                if not _equal(value, before):
                    value.copy_(before)

    def _is_new(self, path: Path, value: Any) -> bool:
        if path not in self._leaves:
            return True
        before = self._leaves[path]
        if not isinstance(value, torch.Tensor) or not isinstance(before, torch.Tensor):
            return not _same(before, value)
        if before.is_meta or value is before or not _fits(before, value):
            return value is not before
        return isinstance(value, nn.Parameter) or not _equal(before, value)


class _Guard(TorchDispatchMode):  # type: ignore[misc]
    """Refuses what would disturb the live model: a write to its memory, and talk among workers,
    which must keep to the order that serving has."""

    def __init__(self, name: str, storages: set[int]) -> None:
        super().__init__()
        self._name = name
        self._storages = storages - {0}

    def __torch_dispatch__(self, function: Any, types_: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        if _is_collective(function):
            raise unsupported(f'vLLM makes {self._name} of what other workers hold ({function})')
        if function._schema.is_mutable:
            for tensor in _written(function, args, kwargs or {}):
                if tensor.untyped_storage().data_ptr() in self._storages:
                    raise unsupported(f'vLLM makes {self._name} by writing to the live model '
                                      f'({function})')
        return function(*args, **(kwargs or {}))


class _Weightless(TorchDispatchMode):  # type: ignore[misc]
    """Tensors of more than SMALL elements get no memory."""

    def __torch_dispatch__(self, function: Any, types_: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function in _MAKERS and math.prod(args[0]) > SMALL:
            kwargs.update(device=torch.device('meta'), pin_memory=False)
        return function(*args, **kwargs)


def _without_memory(config: VllmConfig, model_config: Any, device: torch.device) -> nn.Module:
    own = _own_config(config, model_config)
    try:
        with set_current_vllm_config(own), set_default_torch_dtype(model_config.dtype), \
                _registries_kept(), _Weightless(), device:
            model = initialize_model(own, model_config=model_config)
    except Exception as failure:
        raise unsupported(f'vLLM does not make this model without memory ({failure})') from failure
    for module in model.modules():
        get_layerwise_info(module).restore_device = device
    return model


def _own_config(config: VllmConfig, model_config: Any) -> VllmConfig:
    """One in which a model may be made without a trace in the live one's; for a draft with what
    vLLM's proposer sets."""
    own = copy.copy(config)
    speculative = config.speculative_config
    if speculative is not None and model_config is speculative.draft_model_config:
        own.attention_config = copy.copy(config.attention_config)
        own.attention_config.backend = speculative.attention_backend
        own.kernel_config = copy.copy(config.kernel_config)
        own.kernel_config.moe_backend = speculative.moe_backend or config.kernel_config.moe_backend
    own.cache_config = copy.copy(config.cache_config)
    own.compilation_config = copy.copy(config.compilation_config)
    own.compilation_config.static_forward_context = {}
    own.compilation_config.static_all_moe_layers = []
    own.compilation_config.traced_files = set()
    own.compilation_config.enabled_custom_ops = collections.Counter()
    own.compilation_config.disabled_custom_ops = collections.Counter()
    own.quant_config = VllmConfig.get_quantization_config(config.model_config, config.load_config)
    return own


@contextlib.contextmanager
def _registries_kept() -> Iterator[None]:
    """Entries that vLLM has by name, of layers say, are those of the live model afterwards."""
    kept = [(one, dict(one)) for name, module in list(sys.modules.items()) if name.startswith(OPEN)
            for key, one in vars(module).items() if type(one) is dict and not key.startswith('__')]
    try:
        yield
    finally:
        for one, entries in kept:
            one.update(entries)


def _with_memory(tensor: torch.Tensor) -> torch.Tensor:
    """Zeros where there is none, else a copy, with all attributes."""
    if tensor.is_meta:
        return materialize_meta_tensor(tensor).zero_()
    made = tensor.detach().clone()
    made.__class__ = tensor.__class__
    made.__dict__ = tensor.__dict__.copy()
    return made


def _makes(module: nn.Module | None) -> bool:
    """Whether vLLM may make tensors in it after loading."""
    method = getattr(module, 'quant_method', None)
    kinds = {one.__name__ for one in type(module).__mro__}
    return bool(kinds & DERIVING) or (isinstance(method, QuantizeMethodBase)
                                      and type(method).__name__ not in PLAIN_METHODS)


def _is_remade(shadow: nn.Module, live: nn.Module) -> bool:
    """Whether vLLM changes the layout of its tensors after loading, or is known to make others."""
    method = type(getattr(live, 'quant_method', None)).__name__
    if not _makes(live) and not is_deferred_attention_layer(live):
        return False
    if _makes(live) and method not in METHODS:
        return True
    return live._parameters.keys() != shadow._parameters.keys() or any(
        one is not None and (live._parameters[name] is None or not _fits(live._parameters[name], one))
        for name, one in shadow._parameters.items())


def _is_online(module: nn.Module) -> bool:
    """Whether vLLM quantises it while it loads."""
    return bool(getattr(getattr(module, 'quant_method', None), 'uses_meta_device', False))


def _owners(model: nn.Module) -> dict[int, list[tuple[str, str]]]:
    """{storage: (module, name) of each tensor that lies in it}."""
    owners: dict[int, list[tuple[str, str]]] = collections.defaultdict(list)
    for name, module in model.named_modules():
        for key, tensor in [*module._parameters.items(), *module._buffers.items()]:
            if tensor is not None:
                owners[tensor.untyped_storage()._cdata].append((name, key))
    return dict(owners)


def _by_module(slices: Sequence[Slice], writes: Sequence[_Write]) -> dict[str, list[Slice]]:
    modules = {one.parameter: one.module for one in writes}
    made: dict[str, list[Slice]] = collections.defaultdict(list)
    for one in slices:
        made[modules[one.parameter]].append(one)
    return made


def _layer_of(module: str) -> str:
    """Up to the first number: model.layers.3 for all that is in that layer."""
    parts = module.split('.')
    number = next((index for index, part in enumerate(parts) if part.isdigit()), len(parts))
    return '.'.join(parts[:number + 1])


def _fits(first: torch.Tensor, second: torch.Tensor) -> bool:
    return (first.dtype, first.shape, first.stride()) == (second.dtype, second.shape,
                                                          second.stride())


def _once(matched: Mapping[Path, tuple[torch.Tensor, torch.Tensor]]) -> dict[
        Path, tuple[torch.Tensor, torch.Tensor]]:
    """Without the tensors that lie in the memory of another one that has all of it."""
    whole: dict[int, Path] = {}
    for path, (live, _) in matched.items():
        if live.numel() * live.element_size() == live.untyped_storage().nbytes():
            whole.setdefault(live.untyped_storage().data_ptr(), path)
    return {path: pair for path, pair in matched.items()
            if whole.get(pair[0].untyped_storage().data_ptr(), path) == path}


def _pairs_of(live: torch.Tensor, made: torch.Tensor) -> Pairs:
    return pairs_of(flat(live), View.of(live), chunks(live, made.to(live.device)))


def _is_collective(function: Any) -> bool:
    name = function._schema.name
    space, _, short = name.partition('::')
    return space in COLLECTIVES or space == 'vllm' and any(
        word in short for word in ('all_reduce', 'all_gather', 'reduce_scatter', 'all_to_all'))


def _written(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """The tensors that this call writes to."""
    made = []
    for index, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            made += [one for one in (value if isinstance(value, (list, tuple)) else [value])
                     if isinstance(one, torch.Tensor)]
    return made


def _equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether tensors of one geometry have the same bits."""
    return bool(torch.equal(bits_of(first.detach()), bits_of(second.detach())))


def _walked(modules: Mapping[str, nn.Module], shared: Mapping[int, Any]) -> tuple[
        dict[Path, Any], list[tuple[Any, Any, Any]]]:
    """({path: value} of all that is not looked into, (value, a container of it, a copy of that) of
    all that is)."""
    leaves: dict[Path, Any] = {}
    nodes: list[tuple[Any, Any, Any]] = []
    seen: set[int] = set()
    pending: list[tuple[Path, Any]] = [((name,), one) for name, one in modules.items()]
    while pending:
        path, value = pending.pop()
        inside = _inside(value, is_root=len(path) == 1)
        if inside is None or id(value) in shared:
            leaves[path] = value
        elif id(value) not in seen:
            seen.add(id(value))
            nodes += [(value, *one) for one in _containers(value)]
            pending += [((*path, key), one) for key, one in inside.items()]
    return leaves, nodes


def _inside(value: Any, is_root: bool = False) -> dict[Key, Any] | None:
    """What a value holds, by key; None for what is not looked into."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return dict(enumerate(value))
    if isinstance(value, functools.partial):
        return {'func': value.func, 'args': value.args, 'keywords': value.keywords}
    if isinstance(value, types.MethodType):
        return {'self': value.__self__}
    if isinstance(value, types.FunctionType) and value.__closure__:
        return {index: _content(cell) for index, cell in enumerate(value.__closure__)}
    if is_root or _is_open(value):
        return dict(vars(value))
    return None


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _is_open(value: Any) -> bool:
    kind = type(value)
    return kind.__module__.startswith(OPEN) and hasattr(value, '__dict__') and not isinstance(
        value, (nn.Module, torch.Tensor, QuantizationConfig, enum.Enum, type, types.FunctionType))


def _containers(value: Any) -> list[tuple[Any, Any]]:
    """What can be changed in place, with a copy."""
    if isinstance(value, dict):
        return [(value, dict(value))]
    if isinstance(value, list):
        return [(value, list(value))]
    if isinstance(value, nn.Module) or _is_open(value):
        made = [(vars(value), dict(vars(value)))]
        return made + [(one, set(one)) for one in vars(value).values() if isinstance(one, set)]
    return []


def _resolved(live: Mapping[str, nn.Module], path: Path) -> Any:
    """What is there in the live model; the class Missing where nothing is."""
    value: Any = live[path[0]]
    for index, key in enumerate(path[1:]):
        inside = _inside(value, is_root=index == 0)
        if inside is None or key not in inside:
            return Missing
        value = inside[key]
    return value


class Missing:
    """In place of a value that is not there."""


def _same(first: Any, second: Any) -> bool:
    """Whether two values that are no tensors do the same."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, float) and math.isnan(first):
        return math.isnan(second)
    if isinstance(first, (types.FunctionType, types.BuiltinFunctionType)):
        return bool(first.__qualname__ == second.__qualname__)
    if isinstance(first, nn.Module):
        return not any(True for _ in first.parameters())
    return isinstance(first, VALUES) and bool(first == second)


def _text(path: Path) -> str:
    return '.'.join(str(key) for key in path if key not in ('_parameters', '_buffers'))
