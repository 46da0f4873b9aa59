"""TRL's delta weight sync: one safetensors file per step with positions and BF16 values of the changed elements.

v1 has `NAME.indices` and `NAME.values`; v2 and v3 have `NAME.idx` and `NAME.val`, positions raw or as gaps. Nothing in it tells base or result.
"""
import glob
import json
import os

import numpy

from tests.formats.container import array, read, require, write

FORMATS = ('trl-gap', 'trl-raw', 'trl-v1')
SUFFIXES = {'trl-gap': ('.idx', '.val'), 'trl-raw': ('.idx', '.val'), 'trl-v1': ('.indices', '.values')}
ENCODINGS = {'trl-gap': 'gap_delta', 'trl-raw': 'raw'}


def encode_positions(form, positions):
    """The index tensor of these ascending positions."""
    if form != 'trl-gap':
        return array('I32', positions)
    gaps = numpy.diff(positions, prepend=-1) - 1
    return array('U32' if gaps.size and gaps.max() > 65535 else 'U16', gaps)


def decode_positions(form, name, tensor):
    if form != 'trl-gap':
        require(tensor.dtype == 'I32', name, 'has positions of', tensor.dtype)
        return tensor.data.view('<i4').astype(numpy.int64)
    require(tensor.dtype in ('U16', 'U32'), name, 'has gaps of', tensor.dtype)
    return numpy.cumsum(tensor.data.view('<u2' if tensor.dtype == 'U16' else '<u4').astype(numpy.int64) + 1) - 1


def encode(form, base, following, model_version, mention_unchanged=True):
    """Tensors and metadata of a step's file. A parameter without changes has two empty tensors, as the change detector's masks give, or is left out."""
    tensors, changed, total = {}, 0, 0
    names = []
    for name in sorted(base):
        old, new = base[name], following[name]
        positions = numpy.flatnonzero(old.data.view('<u2') != new.data.view('<u2')) if old.dtype == 'BF16' else None
        if positions is None:
            require(numpy.array_equal(old.data, new.data), name, 'is', old.dtype, 'and changed: this format carries BF16 alone')
            continue
        total += old.data.size // 2
        if not positions.size and not mention_unchanged:
            continue
        index, values = SUFFIXES[form]
        tensors[name + index] = encode_positions(form, positions)
        tensors[name + values] = array('BF16', new.data.view('<u2')[positions])
        changed += positions.size
        names.append(name)
    metadata = {'format': 'sparse_weight_patch', 'version': '1', 'sparse': 'True', 'model_version': str(model_version),
                'num_changed_params': str(len(names)), 'total_changed_elements': str(changed), 'total_elements': str(total),
                'sparsity': str(1 - changed / max(total, 1))}
    metadata.update({'changed_params': json.dumps(names)} if form == 'trl-v1' else {'encoding': ENCODINGS[form]})
    return tensors, metadata


def write_delta(form, path, base, following, model_version=1, mention_unchanged=True):
    write(path, *encode(form, base, following, model_version, mention_unchanged))


def write_anchor(path, tensors):
    """An anchor file: every tensor whole."""
    write(path, tensors, {'format': 'sparse_weight_patch', 'version': '1', 'sparse': 'False', 'model_version': '1'})


def form_of(path, tensors, metadata):
    require(metadata.get('format') == 'sparse_weight_patch' and metadata.get('version') == '1', path, 'is no sparse weight patch of version 1')
    require(metadata.get('sparse') == 'True' and metadata.get('model_version', '').isdigit(), path, 'lacks sparse or model_version')
    encoding = metadata.get('encoding')
    if encoding is None:
        require('changed_params' in metadata, path, 'has neither encoding nor changed_params')
        return 'trl-v1'
    require(encoding in ENCODINGS.values(), path, 'has the encoding', encoding)
    return next(form for form, word in ENCODINGS.items() if word == encoding)


def names_of(path, form, tensors, metadata):
    index, values = SUFFIXES[form]
    if form == 'trl-v1':
        names = json.loads(metadata['changed_params'])
    else:
        names = sorted(key[:-len(values)] for key in tensors if key.endswith(values))
    require(set(tensors) == {name + suffix for name in names for suffix in (index, values)}, path, 'has tensors that no changed parameter explains')
    return names


def apply(path, base):
    """(form, the base's tensors with the delta at `path` written over them). A folder of ours holds one file, or one for each shard."""
    if not os.path.isdir(path):
        form, result, changed, total = apply_file(path, base)
    else:
        result, changed = base, 0
        for file in sorted(glob.glob(os.path.join(path, '*.safetensors'))):
            form, result, some, total = apply_file(file, result)
            changed += some
    require(total == changed, path, 'counts', total, 'changes and has', changed)
    return form, result


def apply_file(path, base):
    tensors, metadata = read(path)
    form = form_of(path, tensors, metadata)
    index, values = SUFFIXES[form]
    result = dict(base)
    changed = 0
    for name in names_of(path, form, tensors, metadata):
        require(name in base and base[name].dtype == 'BF16', path, name, 'is no BF16 tensor of the base')
        positions, new = decode_positions(form, name, tensors[name + index]), tensors[name + values]
        require(new.dtype == 'BF16' and len(new.shape) == 1 and new.shape[0] == positions.size, path, name, 'has values of other number or dtype')
        require(positions.size == 0 or positions[0] >= 0, path, name, 'begins below 0')
        require(bool((numpy.diff(positions) > 0).all()), path, name, 'does not ascend')
        require(positions.size == 0 or positions[-1] < base[name].data.size // 2, path, name, 'has a position outside')
        data = base[name].data.copy()
        data.view('<u2')[positions] = new.data.view('<u2')
        result[name] = base[name]._replace(data=data)
        changed += positions.size
    return form, result, changed, int(metadata['total_changed_elements'])
