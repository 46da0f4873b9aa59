"""safetensors files through the reference library: tensors as flat arrays of bytes with dtype and shape, metadata as strings."""
import collections
import json
import os

import numpy
import safetensors

Tensor = collections.namedtuple('Tensor', 'dtype shape data')  # data: one-dimensional uint8

# The library names dtypes in one way when it reads and in another when it writes.
NAMES = {'BOOL': 'bool', 'U8': 'uint8', 'I8': 'int8', 'U16': 'uint16', 'I16': 'int16', 'F16': 'float16', 'BF16': 'bfloat16', 'U32': 'uint32',
         'I32': 'int32', 'F32': 'float32', 'U64': 'uint64', 'I64': 'int64', 'F64': 'float64', 'F8_E4M3': 'float8_e4m3fn', 'F8_E5M2': 'float8_e5m2'}


class FormatError(Exception):
    """What a strict reader refuses; names the file and the tensor."""


def require(condition, *sentence):
    if not condition:
        raise FormatError(' '.join(map(str, sentence)))


def array(dtype, values):
    """A one-dimensional tensor of these values: `dtype` as safetensors names it."""
    kind = {'U8': '<u1', 'U16': '<u2', 'BF16': '<u2', 'I32': '<i4', 'U32': '<u4'}[dtype]
    values = numpy.ascontiguousarray(values, kind)
    return Tensor(dtype, [values.size], values.view(numpy.uint8))


def read(path):
    """({name: Tensor}, metadata) of a file that the reference reader takes."""
    with open(path, 'rb') as file:
        raw = file.read()
    try:
        entries = safetensors.deserialize(raw)
    except safetensors.SafetensorError as failure:
        raise FormatError(path, failure) from failure
    header = json.loads(raw[8:8 + int.from_bytes(raw[:8], 'little')])
    return ({name: Tensor(entry['dtype'], list(entry['shape']), numpy.frombuffer(entry['data'], numpy.uint8)) for name, entry in entries},
            header.get('__metadata__') or {})


def write(path, tensors, metadata=None):
    """As the reference writer lays files out."""
    kept = {name: numpy.ascontiguousarray(tensor.data) for name, tensor in tensors.items()}  # alive while the library reads it
    specs = {name: safetensors.TensorSpec(dtype=NAMES[tensor.dtype], shape=list(tensor.shape), data_ptr=kept[name].ctypes.data,
                                          data_len=kept[name].size) for name, tensor in tensors.items()}
    with open(path, 'wb') as file:
        file.write(safetensors.serialize(specs, metadata))


def rewrite(template, tensors, path):
    """The file `template` with these tensors' bytes in their places: the same header and layout."""
    with open(template, 'rb') as file:
        raw = bytearray(file.read())
    start = 8 + int.from_bytes(raw[:8], 'little')
    for name, entry in json.loads(raw[8:start]).items():
        if name != '__metadata__':
            begin, end = entry['data_offsets']
            raw[start + begin:start + end] = tensors[name].data.tobytes()
    with open(path, 'wb') as file:
        file.write(raw)


def read_checkpoint(path):
    """All tensors of a full checkpoint: a file, or a folder with or without an index; each tensor in exactly the shard that the index says."""
    if os.path.isfile(path):
        return read(path)[0]
    index = os.path.join(path, 'model.safetensors.index.json')
    if not os.path.exists(index):
        return read(os.path.join(path, 'model.safetensors'))[0]
    with open(index) as file:
        document = json.load(file)
    require('delta_encoding' not in document.get('metadata', {}), index, 'is a delta, not a checkpoint')
    tensors = {}
    for shard in sorted(set(document['weight_map'].values())):
        found, _ = read(os.path.join(path, shard))
        require(set(found) == {name for name, at in document['weight_map'].items() if at == shard}, shard, 'has other tensors than its index says')
        tensors.update(found)
    return tensors


def same(left, right):
    """Whether two sets of tensors are equal bit for bit."""
    return set(left) == set(right) and all(
        left[name].dtype == right[name].dtype and list(left[name].shape) == list(right[name].shape) and numpy.array_equal(left[name].data, right[name].data)
        for name in left)


def write_sharded(folder, tensors, shards, metadata=None, files=()):
    """A checkpoint folder as transformers writes it: tensors dealt to `shards` files in order, the index, and other files {path: text}."""
    os.makedirs(folder)
    names, each = sorted(tensors), -(-len(tensors) // shards)
    weight_map = {}
    for i in range(shards):
        shard = f'model-{i + 1:05d}-of-{shards:05d}.safetensors'
        part = {name: tensors[name] for name in names[i * each:(i + 1) * each]}
        write(os.path.join(folder, shard), part, metadata or {'format': 'pt'})
        weight_map.update(dict.fromkeys(part, shard))
    total = sum(tensor.data.size for tensor in tensors.values())
    with open(os.path.join(folder, 'model.safetensors.index.json'), 'w') as file:
        json.dump({'metadata': {'total_size': total}, 'weight_map': weight_map}, file, indent=2)
    for path, text in dict(files).items():
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), 'w') as file:
            file.write(text)
