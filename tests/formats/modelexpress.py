"""ModelExpress' canonical versions: slime's layout in a folder of any name, whose versions are ids
that tell no order. A full version's index says the checksum format and no id; adler32 is the only
one, and the shards of a full version carry it too.
"""
import json
import os

from tests.formats import slime
from tests.formats.container import write


def write_delta(folder, base, following, version, base_version):
    slime.write_delta(folder, 'slime-xor', base, following, 1, 'adler32', ranks=2)
    index = slime.read_index(folder)
    index['metadata'].update(version=version, base_version=base_version)
    with open(os.path.join(folder, slime.INDEX), 'w') as file:
        json.dump(index, file, sort_keys=True, separators=(',', ':'))


def write_full(folder, tensors, shards=2):
    os.makedirs(folder)
    names, weight_map = sorted(tensors), {}
    for number in range(shards):
        part = {name: tensors[name] for name in names[number::shards]}
        path = f'model-{number + 1:05d}-of-{shards:05d}.safetensors'
        sums = {name: slime.CHECKSUMS['adler32'](part[name].data.tobytes()) for name in part}
        write(os.path.join(folder, path), part, sums)
        weight_map.update(dict.fromkeys(part, path))
    total = sum(tensor.data.size for tensor in tensors.values())
    metadata = {'checksum_format': 'adler32', 'total_size': total}
    with open(os.path.join(folder, slime.INDEX), 'w') as file:
        json.dump({'metadata': metadata, 'weight_map': weight_map}, file, sort_keys=True)
