"""The deltas of golden data: every format between the same checkpoints, ours and as foreign writers write them, and bad ones to be refused."""
import gzip
import json
import os
import shutil
import subprocess

from tests.golden.models import changed, model
from tests.support.checkpoints import sha256, write_safetensors
from tests.support.clients import importable
from tests.support.daemon import CLIENT

FORMATS = ('ulp-class', 'slime-xor', 'slime-overwrite', 'trl-gap', 'trl-raw', 'trl-v1', 'full')
CHECKSUMS = ('xxh3-128', 'blake3', 'adler32')
# Zeros but for a few elements: compressible, and wide enough for a gap over 65535.
WIDE_ELEMENTS = 200_000
INDEX = 'model.safetensors.index.json'
WRONG_BASE, WRONG_RESULT, MALFORMED, UNSUPPORTED = 11, 12, 13, 14


def diff(base, following, out, form, *more):
    subprocess.run([CLIENT, 'diff', '--quiet', '--format', form, '--step', '1', *more, base, following, out], check=True)


def write_shards(folder, step):
    tensors = model(step)
    os.makedirs(folder)
    shards = {'model-00001-of-00002.safetensors': ['embed', 'empty'], 'model-00002-of-00002.safetensors': ['layer.norm', 'layer.w', 'steps']}
    for name, names in shards.items():
        write_safetensors(os.path.join(folder, name), {n: tensors[n] for n in names}, {'format': 'pt', 'step': str(step)})
    texts = {'config.json': f'{{"step": {step}}}\n', 'tokenizer/vocab.txt': 'a\nb\n',
             INDEX: json.dumps({'metadata': {}, 'weight_map': {n: shard for shard in shards for n in shards[shard]}})}
    for name, text in texts.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), 'w') as file:
            file.write(text)


def read_safetensors(path):
    with open(path, 'rb') as file:
        raw = file.read()
    size = int.from_bytes(raw[:8], 'little')
    header = json.loads(raw[8:8 + size])
    metadata = header.pop('__metadata__', {})
    data = raw[8 + size:]
    return {name: (e['dtype'], e['shape'], data[slice(*e['data_offsets'])]) for name, e in header.items()}, metadata


def make_wide(folder, scratch):
    """One gap that needs 32 bits. The base is kept gzipped: it is nearly all zeros."""
    base, following = os.path.join(scratch, 'wide-base'), os.path.join(scratch, 'wide-next')
    data = changed(bytes(2 * WIDE_ELEMENTS), 2, range(0, WIDE_ELEMENTS, 9973))
    write_safetensors(base, {'wide': ('BF16', [WIDE_ELEMENTS], data)})
    write_safetensors(following, {'wide': ('BF16', [WIDE_ELEMENTS], changed(data, 2, (3, 70_000, 70_001, WIDE_ELEMENTS - 1)))})
    for form in ('trl-gap', 'ulp-class'):
        diff(base, following, os.path.join(folder, f'wide-{form}'), form)
    assert read_safetensors(os.path.join(folder, 'wide-trl-gap'))[0]['wide.idx'][0] == 'U32'
    with open(base, 'rb') as source, open(os.path.join(folder, 'wide-base.safetensors.gz'), 'wb') as target:
        target.write(gzip.compress(source.read(), mtime=0))
    return {f'wide-{form}': ['wide-base.safetensors.gz', sha256(following)] for form in ('trl-gap', 'ulp-class')}


def make_foreign(path):
    """As others write them, without a word of ours; the readers and writers of tests/formats."""
    assert importable('numpy', 'safetensors', 'zstandard', 'xxhash', 'blake3', environment='formats'), 'run setup/clients first'
    from tests.formats import container, slime, trl
    base, following = (container.read(path(f'{name}.safetensors'))[0] for name in ('base', 'next'))
    names = []
    for form in trl.FORMATS:
        trl.write_delta(form, path(f'{form}-foreign'), base, following)
        names.append(f'{form}-foreign')
    for form in slime.ENCODINGS:
        for checksum in CHECKSUMS:
            slime.write_delta(path(f'{form}-{checksum}-foreign'), form, base, following, 1, checksum, 2)
            names.append(f'{form}-{checksum}-foreign')
    return names


class Bad:
    """Copies of good deltas with one thing wrong each."""

    def __init__(self, folder):
        self.folder, self.bad, self.refused = folder, os.path.join(folder, 'bad'), {}
        os.makedirs(self.bad)

    def copy(self, name, of, status, word):
        """A folder to be spoilt; gives its path."""
        path = os.path.join(self.bad, name)
        shutil.copytree(os.path.join(self.folder, of), path)
        self.refused[name] = [status, word]
        return path

    def rewrite(self, name, of, status, word, tensors=None, metadata=None, file='delta.safetensors'):
        """`tensors` and `metadata` are functions upon what stands there."""
        path = os.path.join(self.copy(name, of, status, word), file)
        old_tensors, old_metadata = read_safetensors(path)
        write_safetensors(path, tensors(old_tensors) if tensors else old_tensors, metadata(old_metadata) if metadata else old_metadata)

    def cut(self, name, of, size):
        path = os.path.join(self.copy(name, of, MALFORMED, 'delta.safetensors'), 'delta.safetensors')
        os.truncate(path, os.path.getsize(path) + size if size < 0 else size)

    def index(self, name, of, status, word, change):
        path = os.path.join(self.copy(name, of, status, word), INDEX)
        with open(path) as file:
            document = json.load(file)
        change(document)
        with open(path, 'w') as file:
            json.dump(document, file)


def spoilt(at, value):
    """Sets one byte of the tensor `embed`."""
    def change(tensors):
        dtype, shape, data = tensors['embed']
        data = bytearray(data)
        data[at] = value if value >= 0 else data[at] ^ 1
        return dict(tensors, embed=(dtype, shape, bytes(data)))
    return change


def with_more(tensors, size=0):
    dtype, shape, data = tensors['embed']
    return dict(tensors, embed=(dtype, [shape[0] + 1], data + b'\0'))


def make_bad(folder):
    """name: exit status and a word of the message."""
    bad, shard = Bad(folder), 'model-00000-of-00001.safetensors'
    for form in ('ulp-class', 'trl-gap', 'slime-xor'):
        path = os.path.join(bad.bad, f'wrong-base-{form}')
        diff(os.path.join(folder, 'next.safetensors'), os.path.join(folder, 'base.safetensors'), path, form)
        bad.refused[f'wrong-base-{form}'] = [WRONG_BASE, 'base']
    bad.cut('truncated', 'ulp-class', -2)
    bad.cut('truncated-header', 'ulp-class', 100)
    bad.rewrite('unknown-mode', 'ulp-class', MALFORMED, 'embed', spoilt(0, 0x0f))
    bad.rewrite('wrong-hash', 'ulp-class', WRONG_RESULT, 'embed', spoilt(1, -1))
    bad.rewrite('spoilt-gaps', 'ulp-class', MALFORMED, 'embed', spoilt(14, -1))
    bad.rewrite('spoilt-sign', 'ulp-class', WRONG_RESULT, 'embed', spoilt(-2, -1))
    bad.rewrite('bytes-left-over', 'ulp-class', MALFORMED, 'embed', with_more)
    bad.rewrite('unknown-tensor', 'ulp-class', MALFORMED, 'stranger', lambda tensors: dict(tensors, stranger=('U8', [9], b'\0' * 9)))
    bad.rewrite('wrong-result', 'ulp-class', WRONG_RESULT, 'the delta says',
                metadata=lambda old: dict(old, result_digest='xxh3-128:' + 32 * '0'))
    bad.rewrite('escaping-path', 'ulp-class', MALFORMED, 'path',
                metadata=lambda old: dict(old, result_files=old['result_files'].replace('model.safetensors', '../model.safetensors')))
    bad.rewrite('unknown-encoding', 'ulp-class', UNSUPPORTED, 'ulp-next', metadata=lambda old: dict(old, delta_encoding='ulp-next'))
    bad.rewrite('wrong-checksum', 'slime-xor', WRONG_RESULT, 'embed', metadata=lambda old: dict(old, embed=32 * '0'), file=shard)
    bad.rewrite('not-a-frame', 'slime-xor', MALFORMED, 'embed', spoilt(0, 0), file=shard)
    bad.rewrite('two-frames', 'slime-xor', MALFORMED, 'embed',
                lambda tensors: dict(tensors, embed=('U8', [2 * len(tensors['embed'][2])], 2 * tensors['embed'][2])), file=shard)
    bad.index('missing-shard', 'slime-xor', MALFORMED, 'absent.safetensors', lambda index: index['weight_map'].update(embed='absent.safetensors'))
    bad.index('arc', 'slime-xor', UNSUPPORTED, 'arc_v2', lambda index: index['metadata'].update(compression_format='arc_v2'))
    return bad.refused


def make(folder, scratch):
    os.makedirs(folder)
    path = lambda name: os.path.join(folder, name)
    write_safetensors(path('base.safetensors'), model(0), {'format': 'pt'})
    write_safetensors(path('next.safetensors'), model(1), {'format': 'pt'})
    write_safetensors(path('next-floats.safetensors'), model(1, floats_change_at=1), {'format': 'pt', 'note': 'another header'})
    applied, known = {}, sha256(path('next.safetensors'))
    for form in FORMATS:
        diff(path('base.safetensors'), path('next.safetensors'), path(form), form)
        applied[form] = ['base.safetensors', known]
    for form in ('ulp-class', 'slime-xor', 'slime-overwrite'):
        diff(path('base.safetensors'), path('next-floats.safetensors'), path(f'{form}-floats'), form)
        applied[f'{form}-floats'] = ['base.safetensors', sha256(path('next-floats.safetensors'))]
    for name in make_foreign(path):
        applied[name] = ['base.safetensors', known]
    applied.update(make_wide(folder, scratch))
    folders = {}
    for step in (0, 1):
        write_shards(path(f'sharded-{step}'), step)
    for form in FORMATS:
        diff(path('sharded-0'), path('sharded-1'), path(f'sharded-{form}'), form)
        folders[f'sharded-{form}'] = ['sharded-0', 'sharded-1']
    return {'applied': applied, 'folders': folders, 'refused': make_bad(folder)}
