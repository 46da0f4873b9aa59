"""slime's disk deltas, which miles, stitch and ModelExpress share: a folder weight_vNNNNNN per version. A delta version has U8 tensors, each one zstd
frame of the tensor's difference to the version before, an index with five fields, and a checksum of each new tensor; a full version is a checkpoint.
"""
import hashlib
import json
import os
import re
import struct
import zlib

import blake3
import numpy
import xxhash
import zstandard

from tests.formats.container import Tensor, array, read, read_checkpoint, require, write

ENCODINGS = {'slime-xor': 'xor', 'slime-overwrite': 'overwrite'}
CHECKSUMS = {'xxh3-128': lambda data: xxhash.xxh3_128(data).hexdigest(), 'blake3': lambda data: blake3.blake3(data).hexdigest(),
             'adler32': lambda data: f'{zlib.adler32(data, 1):08x}'}
INDEX = 'model.safetensors.index.json'
FIELDS = {'version', 'base_version', 'delta_encoding', 'compression_format', 'checksum_format'}


def version_name(version):
    return f'weight_v{version:06d}'


def difference(encoding, old, new):
    """What goes into the frame: uint8 arrays in, bytes out."""
    if encoding == 'xor':
        return (old ^ new).tobytes()
    positions = numpy.flatnonzero(old != new)
    return struct.pack('<I', positions.size) + positions.astype('<u4').tobytes() + new[positions].tobytes()


def undo(encoding, name, old, payload):
    if encoding == 'xor':
        require(len(payload) == old.size, name, 'has a difference of', len(payload), 'bytes, not', old.size)
        return old ^ numpy.frombuffer(payload, numpy.uint8)
    require(len(payload) >= 4, name, 'has no count')
    count, = struct.unpack_from('<I', payload)
    require(len(payload) == 4 + 5 * count, name, 'has', len(payload), 'bytes for', count, 'changes')
    positions = numpy.frombuffer(payload, '<u4', count, 4)
    require(bool((numpy.diff(positions.astype(numpy.int64)) > 0).all()), name, 'does not ascend')
    require(count == 0 or positions[-1] < old.size, name, 'has a position outside')
    data = old.copy()
    data[positions] = numpy.frombuffer(payload, numpy.uint8, count, 4 + 4 * count)
    return data


def compress(payload):
    return zstandard.ZstdCompressor(level=1).compress(payload)


def decompress(name, frame, limit):
    """Exactly one frame that tells its content's size."""
    parameters = zstandard.get_frame_parameters(frame)
    require(parameters.content_size not in (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR), name, 'does not tell its content size')
    require(parameters.content_size <= limit, name, 'claims', parameters.content_size, 'bytes')
    decoder = zstandard.ZstdDecompressor().decompressobj()
    payload = decoder.decompress(frame)
    require(decoder.eof and not decoder.unused_data, name, 'is not exactly one zstd frame')
    require(len(payload) == parameters.content_size, name, 'has other content than its frame says')
    return payload


def write_delta(folder, form, base, following, version, checksum='xxh3-128', ranks=1):
    """A delta version in a folder that must not exist. The tensors are dealt to `ranks` writers; those without changes write no file."""
    encoding = ENCODINGS[form]
    os.makedirs(folder)
    names = sorted(base)
    shares = [[name for name in names[rank::ranks] if not numpy.array_equal(base[name].data, following[name].data)] for rank in range(ranks)]
    shares = [share for share in shares if share]
    weight_map = {}
    for number, share in enumerate(shares):
        path = f'model-{number:05d}-of-{len(shares):05d}.safetensors'
        frames = {name: compress(difference(encoding, base[name].data, following[name].data)) for name in share}
        write(os.path.join(folder, path), {name: array('U8', numpy.frombuffer(frame, numpy.uint8)) for name, frame in frames.items()},
              {name: CHECKSUMS[checksum](following[name].data.tobytes()) for name in share})
        weight_map.update(dict.fromkeys(share, path))
    metadata = {'version': f'{version:06d}', 'base_version': f'{version - 1:06d}', 'delta_encoding': encoding, 'compression_format': 'zstd',
                'checksum_format': checksum}
    with open(os.path.join(folder, INDEX), 'w') as file:
        json.dump({'metadata': metadata, 'weight_map': weight_map}, file)


def read_index(folder):
    with open(os.path.join(folder, INDEX)) as file:
        return json.load(file)


def is_delta(folder):
    return os.path.exists(os.path.join(folder, INDEX)) and 'delta_encoding' in read_index(folder).get('metadata', {})


def check_index(folder, index, version):
    metadata = index['metadata']
    require(FIELDS <= set(metadata), folder, 'lacks the index fields', sorted(FIELDS - set(metadata)))
    require(metadata['version'] == f'{version:06d}', folder, 'says that it is version', metadata['version'])
    require(metadata['base_version'] == f'{version - 1:06d}', folder, 'has the base', metadata['base_version'])
    require(metadata['delta_encoding'] in ENCODINGS.values(), folder, 'has the encoding', metadata['delta_encoding'])
    require(metadata['compression_format'] == 'zstd', folder, 'is compressed by', metadata['compression_format'])
    require(metadata['checksum_format'] in CHECKSUMS, folder, 'has the checksum', metadata['checksum_format'])
    files = sorted(set(index['weight_map'].values()))
    require(files == [f'model-{k:05d}-of-{len(files):05d}.safetensors' for k in range(len(files))], folder, 'names the files', files)
    present = sorted(name for name in os.listdir(folder) if name.endswith('.safetensors'))
    require(present == files, folder, 'has the files', present, 'and names', files)


def apply(folder, base, version):
    """(form, the tensors that the delta version in `folder` makes of these), every rule checked."""
    index = read_index(folder)
    check_index(folder, index, version)
    metadata = index['metadata']
    result = dict(base)
    for path in sorted(set(index['weight_map'].values())):
        tensors, sums = read(os.path.join(folder, path))
        require(set(tensors) == {name for name, at in index['weight_map'].items() if at == path}, path, 'has other tensors than the index says')
        require(set(tensors) <= set(sums), path, 'lacks checksums of', sorted(set(tensors) - set(sums)))
        for name, tensor in tensors.items():
            require(tensor.dtype == 'U8' and len(tensor.shape) == 1, path, name, 'is', tensor.dtype, tensor.shape)
            require(name in base, path, name, 'is not in the base')
            old = base[name].data
            data = undo(metadata['delta_encoding'], name, old, decompress(name, tensor.data.tobytes(), 5 * old.size + 4))
            require(CHECKSUMS[metadata['checksum_format']](data.tobytes()) == sums[name], path, name, 'does not become what its checksum says')
            result[name] = Tensor(base[name].dtype, base[name].shape, data)
    return {word: form for form, word in ENCODINGS.items()}[metadata['delta_encoding']], result


class Receiver:
    """What an engine's host does: walks back from the wanted version to the newest full one or the version it holds, then applies forward."""

    def __init__(self, tensors=None):
        self.version = 0
        self.tensors = tensors

    def pull(self, root, target):
        chain = []
        at = target
        while at > self.version:
            folder = os.path.join(root, version_name(at))
            require(os.path.isdir(folder), folder, 'is missing')
            chain.append(folder)
            if not is_delta(folder):
                require(os.path.exists(os.path.join(folder, 'config.json')), folder, 'is a full version without config.json')
                break
            at -= 1
        for folder in reversed(chain):
            number = int(re.fullmatch(r'weight_v(\d{6,})', os.path.basename(folder)).group(1))
            self.tensors = apply(folder, self.tensors, number)[1] if is_delta(folder) else read_checkpoint(folder)
            self.version = number
        return self.tensors


def digest(tensors):
    """SHA-256 over all tensors, to compare receivers by."""
    whole = hashlib.sha256()
    for name in sorted(tensors):
        whole.update(f'{name}\0{tensors[name].dtype}\0{tensors[name].shape}\0'.encode() + tensors[name].data.tobytes())
    return whole.hexdigest()
