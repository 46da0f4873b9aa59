"""Tensors in memory for the library and back: numpy, ml_dtypes and torch.

torch is never imported here unless the caller asks for torch tensors; those that are passed in
are known by their methods. Tensors are little-endian, row-major and without gaps for the library:
what is so already is used where it lies, all else is copied first.
"""
from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy
from numpy.typing import NDArray

from deltabucket import errors
from deltabucket._native import ffi

Array = NDArray[Any]

# As safetensors names them. F4, F6_E2M3 and F6_E3M2 are packed, so numpy has only their bytes.
NUMPY_DTYPES: dict[str, numpy.dtype[Any]] = {
    'BOOL': numpy.dtype(numpy.bool_),
    'U8': numpy.dtype(numpy.uint8), 'I8': numpy.dtype(numpy.int8),
    'U16': numpy.dtype('<u2'), 'I16': numpy.dtype('<i2'), 'F16': numpy.dtype('<f2'),
    'U32': numpy.dtype('<u4'), 'I32': numpy.dtype('<i4'), 'F32': numpy.dtype('<f4'),
    'U64': numpy.dtype('<u8'), 'I64': numpy.dtype('<i8'), 'F64': numpy.dtype('<f8'),
    'C64': numpy.dtype('<c8'),
    'BF16': numpy.dtype(ml_dtypes.bfloat16),
    'F8_E4M3': numpy.dtype(ml_dtypes.float8_e4m3fn),
    'F8_E4M3FNUZ': numpy.dtype(ml_dtypes.float8_e4m3fnuz),
    'F8_E5M2': numpy.dtype(ml_dtypes.float8_e5m2),
    'F8_E5M2FNUZ': numpy.dtype(ml_dtypes.float8_e5m2fnuz),
    'F8_E8M0': numpy.dtype(ml_dtypes.float8_e8m0fnu),
}
NAMES_BY_NUMPY = {dtype: name for name, dtype in NUMPY_DTYPES.items()}
TORCH_NAMES = {
    'BOOL': 'bool', 'U8': 'uint8', 'I8': 'int8', 'U16': 'uint16', 'I16': 'int16',
    'U32': 'uint32', 'I32': 'int32', 'U64': 'uint64', 'I64': 'int64', 'F16': 'float16',
    'BF16': 'bfloat16', 'F32': 'float32', 'F64': 'float64', 'C64': 'complex64',
    'F8_E4M3': 'float8_e4m3fn', 'F8_E4M3FNUZ': 'float8_e4m3fnuz', 'F8_E5M2': 'float8_e5m2',
    'F8_E5M2FNUZ': 'float8_e5m2fnuz', 'F8_E8M0': 'float8_e8m0fnu', 'F4': 'float4_e2m1fn_x2',
}
NAMES_BY_TORCH = {f'torch.{torch}': name for name, torch in TORCH_NAMES.items()}
# What wrappers put into names: of a module that was compiled, and of FSDP's and checkpointed ones.
WRAPPERS = re.compile(r'(?:(?<=\.)|^)(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)'
                      r'\.')
PARALLEL = 'module.'
COMPARED_BYTES = 1 << 20


@dataclass(frozen=True)
class Memory:
    """A tensor in memory: what the library gets. `owner` keeps the memory alive.

    dtype: as safetensors names it. shape: in elements. address, nbytes: of the first byte, and how
    many.
    """
    name: str
    dtype: str
    shape: tuple[int, ...]
    address: int
    nbytes: int
    owner: object

    def bytes_array(self) -> NDArray[numpy.uint8]:
        """Its bytes, shape (nbytes,), which may be written where the memory may."""
        if not self.nbytes:
            return numpy.empty(0, numpy.uint8)
        held = ffi.cast('char *', self.address)
        return numpy.frombuffer(ffi.buffer(held, self.nbytes), numpy.uint8)


class CTensors:
    """An array of struct deltabucket_tensor, with all that it points at."""

    def __init__(self, tensors: Sequence[Memory]) -> None:
        self.count = len(tensors)
        self.pointer = ffi.new('struct deltabucket_tensor[]', max(1, len(tensors)))
        self._kept: list[object] = [tensors]
        for made, tensor in zip(self.pointer, tensors):
            made.name = self._keep(ffi.new('char[]', tensor.name.encode()))
            made.dtype = self._keep(ffi.new('char[]', tensor.dtype.encode()))
            made.shape = self._keep(ffi.new('uint64_t[]', list(tensor.shape) or [0]))
            made.rank = len(tensor.shape)
            made.data = ffi.cast('void *', tensor.address)
            made.bytes = tensor.nbytes

    def _keep(self, made: Any) -> Any:
        self._kept.append(made)
        return made


def clean_names(names: Iterable[str]) -> dict[str, str]:
    """{name: name without what wrappers put into it}: `_orig_mod.`, `_fsdp_wrapped_module.` and
    `_checkpoint_wrapped_module.` anywhere, and `module.` in front where every name begins with it.
    ValueError when two names become one."""
    cleaned = {name: WRAPPERS.sub('', name) for name in names}
    while cleaned and all(name.startswith(PARALLEL) for name in cleaned.values()):
        cleaned = {name: WRAPPERS.sub('', short[len(PARALLEL):])
                   for name, short in cleaned.items()}
    sources: dict[str, str] = {}
    for name, short in cleaned.items():
        if short in sources:
            raise ValueError(f'The tensors {sources[short]} and {name} would both be named '
                             f'{short}; pass clean=False to keep their names.')
        sources[short] = name
    return cleaned


def named(tensors: Mapping[str, Any], clean: bool) -> dict[str, Any]:
    """The mapping under cleaned names. TypeError for a name that is not a str."""
    for name in tensors:
        if not isinstance(name, str):
            raise TypeError(f'The name {name!r} of a tensor is a {type(name).__name__}; '
                            'it must be a str.')
        if not name or '\0' in name:
            raise ValueError(f'The name {name!r} of a tensor is empty or holds a zero byte.')
    cleaned = clean_names(tensors) if clean else {name: name for name in tensors}
    return {cleaned[name]: value for name, value in tensors.items()}


def readable(tensors: Mapping[str, Any], clean: bool = True) -> list[Memory]:
    """Tensors that the library may read, in byte order of their names; copied where they are not
    contiguous, not in CPU memory or not little-endian. TypeError for what is not a tensor or has a
    dtype that safetensors does not have."""
    return [_readable(name, value) for name, value
            in sorted(named(tensors, clean).items(), key=lambda pair: pair[0].encode())]


def writable(name: str, value: Any) -> Memory:
    """A tensor that the library may change in place. TypeError, or ValueError when it is read-only
    or would have to be copied."""
    if is_torch(value):
        return _torch_memory(name, value, None)
    if not isinstance(value, numpy.ndarray):
        raise TypeError(f'{name} is a {type(value).__name__}; it must be a numpy array or a torch '
                        'tensor to be changed in place.')
    if not value.flags.writeable:
        raise ValueError(f'{name} is read-only, so it cannot be changed in place.')
    if not value.flags.c_contiguous:
        raise ValueError(f'{name} is not contiguous, so it cannot be changed in place; pass a '
                         'contiguous array.')
    return _numpy_memory(name, value)


def device_memory(name: str, value: Any) -> Memory:
    """A torch tensor in the memory of any device, which something else than the library changes
    there. TypeError, or ValueError when it is not contiguous."""
    if not is_torch(value):
        raise TypeError(f'{name} is a {type(value).__name__}; it must be a torch tensor.')
    return _torch_memory(name, value, None, on_device=True)


def is_torch(value: Any) -> bool:
    """Whether it is a torch.Tensor or a subclass of it."""
    made = getattr(sys.modules.get('torch'), 'Tensor', None)
    return made is not None and isinstance(value, made)


def array_of(dtype: str, shape: Sequence[int], memory: memoryview | bytearray | bytes) -> Array:
    """An array over `memory`: of the dtype and shape where numpy has the dtype. F4, whose pairs
    share a byte, is uint8 with half the last dimension; F6 (and F4 of an odd shape) is flat uint8.
    Without a copy; read-only where the memory is."""
    known = NUMPY_DTYPES.get(dtype)
    if known is None:
        flat: Array = numpy.frombuffer(memory, numpy.uint8) if memory else _empty(numpy.uint8)
        return flat.reshape(packed_shape(dtype, shape, flat.size))
    if 0 in shape:
        return _empty(known).reshape(tuple(shape))
    return numpy.frombuffer(memory, known).reshape(tuple(shape))


def torch_of(dtype: str, shape: Sequence[int], memory: Any) -> Any:
    """A torch tensor over `memory`, a buffer that torch may think it can write, without a copy."""
    import torch
    known = getattr(torch, TORCH_NAMES.get(dtype, ''), None)
    if 0 in shape:
        return torch.empty(tuple(shape), dtype=known or torch.uint8, device='cpu')
    if known is None or dtype == 'F4':
        flat = torch.frombuffer(memory, dtype=torch.uint8)
        made = flat.reshape(packed_shape(dtype, shape, flat.numel()))
        return made if known is None else made.view(known)
    return torch.frombuffer(memory, dtype=known).reshape(tuple(shape))


def packed_shape(dtype: str, shape: Sequence[int], nbytes: int) -> tuple[int, ...]:
    """In bytes, of a tensor whose elements are smaller than one."""
    if dtype == 'F4' and shape and shape[-1] % 2 == 0:
        return (*shape[:-1], shape[-1] // 2)
    return (nbytes,)


def check_same(found: Memory, dtype: str, shape: Sequence[int]) -> None:
    """Raises SchemaMismatch unless the tensor has this dtype and shape."""
    if found.dtype != dtype or found.shape != tuple(shape):
        raise errors.SchemaMismatch(
            f'{found.name} is {found.dtype} {_shape(found.shape)} here and {dtype} '
            f'{_shape(shape)} in the step.', kind='schema_mismatch')


def check_others(given: Mapping[str, Any], targets: Mapping[str, Memory],
                 memory_of: Callable[[str, Any], Memory], step: int) -> None:
    """Raises SchemaMismatch when `given` has a tensor that is neither one of `targets`, which are
    the step's, nor another name of the memory of one."""
    places = {(target.address, target.nbytes) for target in targets.values()}
    for name, value in given.items():
        if name in targets:
            continue
        other = memory_of(name, value)
        if other.nbytes and (other.address, other.nbytes) not in places:
            raise errors.SchemaMismatch(f'{name} is not a tensor of step {step}; leave it out.',
                                        kind='schema_mismatch')


def ties_of(targets: Mapping[str, Memory]) -> dict[str, str]:
    """{name: the name before it with the same memory}. ValueError where tensors overlap in part."""
    tied = {}
    before: Memory | None = None
    for target in sorted(targets.values(), key=lambda one: (one.address, one.nbytes, one.name)):
        if not target.nbytes:
            continue
        if before is None or target.address >= before.address + before.nbytes:
            before = target
        elif (target.address, target.nbytes) == (before.address, before.nbytes):
            tied[target.name] = before.name
        else:
            raise ValueError(f'{before.name} and {target.name} overlap in memory, so they cannot '
                             'be changed in place.')
    return tied


def check_ties(ties: Mapping[str, str], entries: Mapping[str, Memory]) -> None:
    """Raises SchemaMismatch where the step has different bytes for what is one tensor here."""
    for name, before in ties.items():
        if not _same_bytes(entries[before].bytes_array(), entries[name].bytes_array()):
            raise errors.SchemaMismatch(f'{before} and {name} are one tensor here and two in the '
                                        'step.', kind='schema_mismatch')


def _same_bytes(one: NDArray[numpy.uint8], other: NDArray[numpy.uint8]) -> bool:
    """Part by part, since numpy makes an array of what it finds."""
    return len(one) == len(other) and all(
        numpy.array_equal(one[at:at + COMPARED_BYTES], other[at:at + COMPARED_BYTES])
        for at in range(0, len(one), COMPARED_BYTES))


def _shape(shape: Sequence[int]) -> str:
    return 'x'.join(map(str, shape)) or 'scalar'


def _empty(dtype: Any) -> Array:
    made: Array = numpy.empty(0, dtype)
    made.flags.writeable = False
    return made


def _readable(name: str, value: Any) -> Memory:
    if is_torch(value):
        return _torch_memory(name, value, _torch_copy)
    if not isinstance(value, numpy.ndarray):
        if not hasattr(value, '__array__'):
            raise TypeError(f'{name} is a {type(value).__name__}; it must be a numpy array or a '
                            'torch tensor.')
        value = numpy.asarray(value)
    return _numpy_memory(name, value, copies=True)


def _numpy_memory(name: str, value: Array, copies: bool = False) -> Memory:
    """Of an array: a contiguous, little-endian one, unless it may be copied into such a one."""
    dtype = value.dtype.newbyteorder('<') if value.dtype.byteorder == '>' else value.dtype
    known = NAMES_BY_NUMPY.get(dtype)
    if known is None:
        raise TypeError(f'{name} has the dtype {value.dtype}, which safetensors does not have; '
                        f'it must be one of {", ".join(map(str, NAMES_BY_NUMPY))}.')
    if dtype != value.dtype and not copies:
        raise ValueError(f'{name} is big-endian, so it cannot be changed in place.')
    if dtype != value.dtype or not value.flags.c_contiguous:
        value = value.astype(dtype, order='C')
    return Memory(name, known, value.shape, value.ctypes.data, value.nbytes, value)


def _torch_copy(value: Any) -> Any:
    """A contiguous copy in CPU memory, or the tensor itself where it is that already."""
    return value.resolve_conj().resolve_neg().cpu().contiguous()


def _torch_memory(name: str, value: Any, copy: Callable[[Any], Any] | None,
                  on_device: bool = False) -> Memory:
    """The memory of what `copy` makes of the tensor; None: of the tensor itself, which must be
    contiguous, and in CPU memory unless `on_device`."""
    # a parameter of DeepSpeed's ZeRO-3 has no elements while it is partitioned
    if hasattr(value, 'full_tensor') or getattr(value, 'ds_shape', value.shape) != value.shape:
        raise TypeError(f'{name} is sharded (a DTensor, or a parameter of ZeRO-3): gather it on all '
                        'ranks first, with deltabucket.gathered(state_dict) for example.')
    value = value.detach()
    if str(value.layout) != 'torch.strided' or value.is_quantized:
        raise TypeError(f'{name} is sparse or quantized; it must be a dense tensor.')
    if value.device.type == 'meta':
        raise TypeError(f'{name} has no memory (device meta).')
    known = NAMES_BY_TORCH.get(str(value.dtype))
    if known is None:
        raise TypeError(f'{name} has the dtype {value.dtype}, which safetensors does not have; '
                        f'it must be one of {", ".join(NAMES_BY_TORCH)}.')
    if copy is not None:
        value = copy(value)
    elif not on_device and value.device.type != 'cpu':
        raise ValueError(f'{name} is not in CPU memory, so it cannot be changed in place.')
    elif not value.is_contiguous() or value.is_conj() or value.is_neg():
        raise ValueError(f'{name} is not contiguous, so it cannot be changed in place.')
    shape = tuple(value.shape)
    nbytes = math.prod(shape) * value.element_size()
    if known == 'F4':
        if not shape:
            raise TypeError(f'{name} is an F4 scalar, which safetensors cannot hold.')
        shape = (*shape[:-1], shape[-1] * 2)
    return Memory(name, known, shape, value.data_ptr() if nbytes else 0, nbytes, value)
