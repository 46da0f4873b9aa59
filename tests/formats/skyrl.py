"""SkyRL's checkpoint deltas: a folder delta-NNNNNNNN per version, from 1 on; version 0 is the
model that a run starts from, and nobody writes it. Each changed tensor is one zstd frame of new
XOR old under its own name in one of the payload files; manifest.json, which comes last, says which
file, and the checksum of the new tensor.
"""
import json
import os

import numpy

from tests.formats import slime
from tests.formats.container import Tensor, array, read, require, write

MANIFEST = 'manifest.json'
# safetensors' names of dtypes, as SkyRL calls them.
DTYPES = {
    'BF16': 'bfloat16',
    'F16': 'float16',
    'F32': 'float32',
    'F64': 'float64',
    'I64': 'int64',
    'I32': 'int32',
    'U8': 'uint8',
    'F8_E4M3': 'float8_e4m3fn',
    'F8_E5M2': 'float8_e5m2',
}


def version_name(version):
    return f'delta-{version:08d}'


def write_delta(folder, base, following, version, most=1 << 30):
    """A version in a folder that must not exist; a payload file ends before it has over `most`
    bytes."""
    os.makedirs(folder)
    records, files, payload, size = [], [], {}, 0

    def flush():
        nonlocal payload, size
        if payload:
            write(os.path.join(folder, files[-1]), payload)
        payload, size = {}, 0

    for name in sorted(base):
        old, new = base[name].data, following[name].data
        if numpy.array_equal(old, new):
            continue
        frame = slime.compress((old ^ new).tobytes())
        if payload and size + len(frame) > most:
            flush()
        if not payload:
            files.append(f'delta-rank00000-file{len(files):06d}.safetensors')
        payload[name] = array('U8', numpy.frombuffer(frame, numpy.uint8))
        size += len(frame)
        records.append(
            {
                'name': name,
                'dtype': DTYPES[base[name].dtype],
                'shape': list(base[name].shape),
                'uncompressed_num_bytes': int(old.size),
                'compressed_num_bytes': len(frame),
                'payload_file': files[-1],
                'payload_key': name,
                'checksum': slime.CHECKSUMS['xxh3-128'](new.tobytes()),
                'checksum_algorithm': 'xxh3-128',
            }
        )
    flush()
    manifest = {
        'version': version,
        'base_version': version - 1,
        'tensors': records,
        'total_uncompressed_num_bytes': sum(one['uncompressed_num_bytes'] for one in records),
        'total_compressed_num_bytes': sum(one['compressed_num_bytes'] for one in records),
        'payload_files': files,
    }
    with open(os.path.join(folder, MANIFEST), 'w') as file:
        json.dump(manifest, file)


def apply(folder, base, version):
    """The tensors that the version in `folder` makes of these."""
    with open(os.path.join(folder, MANIFEST)) as file:
        manifest = json.load(file)
    require(manifest['version'] == version, folder, 'is version', manifest['version'])
    require(manifest['base_version'] == version - 1, folder, 'has base', manifest['base_version'])
    result = dict(base)
    for record in manifest['tensors']:
        name = record['name']
        tensors, _ = read(os.path.join(folder, record['payload_file']))
        old = base[name]
        frame = tensors[record['payload_key']].data.tobytes()
        data = slime.undo('xor', name, old.data, slime.decompress(name, frame, old.data.size))
        require(
            slime.CHECKSUMS[record['checksum_algorithm']](data.tobytes()) == record['checksum'],
            name,
            'does not become what its checksum says',
        )
        result[name] = Tensor(old.dtype, old.shape, data)
    return result
