"""PULSE's checkpoints as grail's trainer puts them: a folder checkpoint-{window} with DELTA, FULL
or both, and a marker READY-{window} that comes last. Written from the format's facts; it stands for
the trainer's encoder, which needs torch and a network of its own and is in no package index (the
package `grail` there is another program), and for a reader that goes by the book. What its
repository's own tests state of the encoder is tested in test_pulse.py.
"""
import gzip
import hashlib
import json
import math
import os
import struct

import numpy
import zstandard

from tests.formats import container
from tests.formats.container import Tensor, require

CODECS = {'sparse_codec_v2': 2, 'sparse_codec_v3': 3, 'sparse_codec_v3.1': 31}
PAYLOAD = 'delta_sparse.bin.zst'
# safetensors' names of dtypes, as torch calls them, and the integers of their width.
DTYPES = {
    'BF16': ('bfloat16', '<u2'),
    'F16': ('float16', '<u2'),
    'F32': ('float32', '<u4'),
}
WIDTHS = {'uint8': '<u1', 'uint16': '<u2', 'int32': '<i4'}


def checkpoint_name(window):
    return f'checkpoint-{window}'


def numbers(tensor):
    """The values as grail compares them: a zero equals a zero of the other sign."""
    if tensor.dtype == 'BF16':
        return (tensor.data.view('<u2').astype('<u4') << 16).view('<f4')
    return tensor.data.view({'F16': '<f2', 'F32': '<f4'}[tensor.dtype])


def weights_hash(tensors):
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        shape = str(tuple(tensor.shape))
        total.update(f'{name}torch.{DTYPES[tensor.dtype][0]}{shape}'.encode())
        total.update(tensor.data.tobytes())
    return total.hexdigest()


def columns_of(shape):
    return max(1, math.prod(shape[1:]))


def steps_along(rows, columns):
    """Steps down, and along: a column counts from 0 where the row is another one."""
    down = numpy.diff(rows, prepend=0)
    along = numpy.diff(columns, prepend=0)
    new = down != 0
    new[:1] = True
    return down, numpy.where(new, columns, along)


def width_of(steps, least):
    """The narrowest type that holds all steps."""
    most = int(steps.max(initial=0))
    if least == 'uint8' and most <= 255:
        return 'uint8'
    return 'uint16' if most <= 65535 else 'int32'


def positions(version, flat, shape):
    """The bytes of the positions, and what the header says of them."""
    if version == 2:
        return numpy.diff(flat, prepend=0).astype('<i4').tobytes(), {}
    down, along = steps_along(*numpy.divmod(flat, columns_of(shape)))
    kinds = {'row_dtype': 'int32', 'col_dtype': 'int32'}
    if version == 31:
        kinds = {'row_dtype': width_of(down, 'uint8'), 'col_dtype': width_of(along, 'uint16')}
    first = down.astype(WIDTHS[kinds['row_dtype']]).tobytes()
    second = along.astype(WIDTHS[kinds['col_dtype']]).tobytes()
    said = {'rows_size': len(first), 'cols_size': len(second)}
    return first + second, said | (kinds if version == 31 else {})


def encode(codec, base, following):
    """The frame that leads from one checkpoint to the other."""
    version, records, sections, at = CODECS[codec], [], [], 0
    for name in sorted(base):
        old, new = base[name], following[name]
        torch_name, kind = DTYPES[new.dtype]
        flat = numpy.flatnonzero(numbers(old) != numbers(new))
        if not flat.size:
            continue
        index, said = positions(version, flat, new.shape)
        values = new.data.view(kind)[flat].tobytes()
        records.append(
            {
                'name': name,
                'shape': list(new.shape),
                'num_nonzero': int(flat.size),
                'value_dtype': torch_name,
                'indices_offset': at,
                'indices_size': len(index),
                'values_offset': at + len(index),
                'values_size': len(values),
                **said,
            }
        )
        sections += [index, values]
        at += len(index) + len(values)
    header = json.dumps({'version': version, 'tensors': records}, separators=(',', ':')).encode()
    payload = struct.pack('<I', len(header)) + header + b''.join(sections)
    return zstandard.ZstdCompressor(level=1).compress(payload)


def put(folder, name, data, packs):
    """JSON goes gzipped over the wire, under a name that says so."""
    os.makedirs(folder, exist_ok=True)
    if packs and name.endswith('.json'):
        name, data = name + '.gz', gzip.compress(data, 1)
    with open(os.path.join(folder, name), 'wb') as file:
        file.write(data)


def put_all(folder, window, files, said, packs):
    """The files, metadata.json with their hashes, and what else lies beside them."""
    manifest = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    metadata = {
        'window': window,
        'file_manifest': manifest,
        'training_config': {'lr': 1e-06},
        'git_commit': 'unknown',
        'created_at': 1770000000.25,
        'model_name': 'async_trainer_snapshot',
        'parent_window': max(0, window - 30),
        'env_id': 'mbpp',
        'env_params': {'split': 'train'},
        'prev_window': None,
        'anchor_window': None,
        'weights_hash': None,
        **said,
    }
    for name, data in files.items():
        put(folder, name, data, packs)
    put(folder, 'metadata.json', json.dumps(metadata, indent=2).encode(), packs)
    put(folder, 'manifest.sig', b'00', packs)
    put(folder, said['checkpoint_type'], b'', packs)


def write_delta(folder, codec, base, following, window, before, packs=True):
    """A DELTA folder; `before` is the window of `base`."""
    links = {'prev_window': before, 'anchor_window': before}
    facts = {'format': codec, 'threshold': 0.0, **links, 'shapes': {}}
    files = {
        PAYLOAD: encode(codec, base, following),
        'delta_metadata.json': json.dumps(facts, indent=2).encode(),
    }
    said = {'checkpoint_type': 'DELTA', **links, 'weights_hash': weights_hash(following)}
    put_all(folder, window, files, said, packs)


def write_full(folder, tensors, window, shards=1, packs=True):
    """A FULL folder: the checkpoint as transformers saves it, in one file or with an index."""
    texts = {'config.json': '{"model_type": "qwen2"}\n', 'merges.txt': '#version: 0.2\n'}
    container.write_sharded(folder, tensors, shards, files=texts)
    files = {}
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with open(path, 'rb') as file:
            files[name] = file.read()
        os.unlink(path)
    if shards == 1:
        del files['model.safetensors.index.json']
        files['model.safetensors'] = files.pop('model-00001-of-00001.safetensors')
    put_all(folder, window, files, {'checkpoint_type': 'FULL'}, packs)


def open_json(folder, name):
    packed = os.path.join(folder, name + '.gz')
    if os.path.exists(packed):
        with gzip.open(packed) as file:
            return file.read()
    with open(os.path.join(folder, name), 'rb') as file:
        return file.read()


def read_positions(version, record, data):
    count = record['num_nonzero']
    if version == 2:
        return numpy.cumsum(numpy.frombuffer(data, '<i4').astype(numpy.int64))
    rows = WIDTHS[record.get('row_dtype', 'int32')]
    columns = WIDTHS[record.get('col_dtype', 'int32')]
    down = numpy.frombuffer(data, rows, count).astype(numpy.int64)
    along = numpy.frombuffer(data, columns, count, offset=record['rows_size'])
    row, column, flat = 0, 0, []
    for i, (step, further) in enumerate(zip(down.tolist(), along.tolist())):
        row += step
        column = further if step or i == 0 else column + further
        flat.append(row * columns_of(record['shape']) + column)
    return numpy.array(flat, numpy.int64)


def apply(folder, base):
    """The tensors that the delta in `folder` makes of these."""
    metadata = json.loads(open_json(folder, 'metadata.json'))
    codec = json.loads(open_json(folder, 'delta_metadata.json'))['format']
    with open(os.path.join(folder, PAYLOAD), 'rb') as file:
        packed = file.read()
    sum_of = hashlib.sha256(packed).hexdigest()
    require(sum_of == metadata['file_manifest'][PAYLOAD], folder, 'has another SHA-256')
    payload = zstandard.ZstdDecompressor().decompress(packed)
    start = 4 + struct.unpack_from('<I', payload)[0]
    header = json.loads(payload[4:start])
    require(header['version'] == CODECS[codec], folder, 'is version', header['version'])
    result = dict(base)
    for record in header['tensors']:
        old = base[record['name']]
        kind = DTYPES[old.dtype][1]
        at, size = start + record['indices_offset'], record['indices_size']
        flat = read_positions(header['version'], record, payload[at:at + size])
        at, size = start + record['values_offset'], record['values_size']
        new = old.data.view(kind).copy()
        new[flat] = numpy.frombuffer(payload[at:at + size], kind)
        result[record['name']] = Tensor(old.dtype, old.shape, new.view(numpy.uint8))
    require(weights_hash(result) == metadata['weights_hash'], folder, 'has another weights_hash')
    return result
