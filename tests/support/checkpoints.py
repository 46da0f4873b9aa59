"""The real series of tests/data/small, rebuilt to full checkpoints once per test program, and small made-up safetensors files."""
import hashlib
import json
import os
import struct
import subprocess

from tests.support.daemon import CLIENT, DATA

SMALL = os.path.join(DATA, 'small')


def known_sums():
    with open(os.path.join(SMALL, 'SHA256SUMS')) as sums:
        return {name: digest for digest, name in (line.split() for line in sums)}


def expand_small(folder, steps):
    """Full files of steps 0..steps in `folder`, checked against SHA256SUMS; gives their paths."""
    sums = known_sums()
    paths = []
    for step in range(steps + 1):
        name = f'step_{step:06d}.safetensors'
        path = os.path.join(folder, name)
        if step == 0:
            with open(os.path.join(SMALL, 'anchors', name), 'rb') as source, open(path, 'wb') as target:
                target.write(source.read())
        else:
            subprocess.run([CLIENT, 'apply', paths[-1], os.path.join(SMALL, 'deltas', name), path], check=True, capture_output=True)
        assert sha256(path) == sums[name], f'{name} differs from SHA256SUMS'
        paths.append(path)
    return paths


def sha256(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def read_safetensors(path):
    """{name: (dtype, shape, bytes)} in the order of the header."""
    with open(path, 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        body = file.read()
    header.pop('__metadata__', None)
    return {name: (about['dtype'], about['shape'], body[slice(*about['data_offsets'])]) for name, about in header.items()}


def write_safetensors(path, tensors, metadata=None):
    """tensors: {name: (dtype, shape, bytes)} in the order given."""
    header, offset = {}, 0
    if metadata:
        header['__metadata__'] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + b''.join(data for _, _, data in tensors.values()))
