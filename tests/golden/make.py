#!/usr/bin/env python3
"""Made the golden data beside this file: what version 0.1.0 wrote. Kept forever; newer versions must go on reading it.

    DELTABUCKET_BUILD=DIR tests/golden/make.py NAME      writes tests/golden/NAME, which must not exist

Run by hand with a released build when a format changed, under a new name (`v0_1_0` is the first); never again for an old name. It makes

    NAME/store/         a data folder as SIGTERM left it, catalog.db without a WAL. Without chunks.db, so that opening it rebuilds that, and
                        without what every start makes anew (lock, tls)
    NAME/step.safetensors   the step that a newer version publishes on top of it
    NAME/deltas/        base and next of several kinds, the deltas between them, and under bad/ deltas to be refused
    NAME/expected.json  what must be read back: sizes and SHA-256

test_golden.py tests every folder here that has an expected.json. All keys and secrets in it are made for these tests and open nothing else.
"""
import gzip
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))

from tests.golden import history  # noqa: E402
from tests.support.checkpoints import sha256, write_safetensors  # noqa: E402
from tests.support.daemon import CLIENT, ROOT_ID, ROOT_SECRET, ROOT_TOKEN, Daemon  # noqa: E402

BUCKET = 'golden'
WORDS = ('gradient', 'reward', 'policy', 'rollout', 'anchor', 'delta', 'tensor', 'epoch', 'lease', 'shard', 'chunk', 'pack')
# Zeros but for a few elements: compressible, and wide enough for a gap over 65535.
WIDE_ELEMENTS = 200_000


def prose(seed, size):
    """Text that compresses well and has no long repeats, so that it has chunk boundaries of its own."""
    draw = random.Random(seed)
    lines = []
    while sum(map(len, lines)) < size:
        lines.append(f'{draw.randrange(1000)} {draw.choice(WORDS)} {draw.choice(WORDS)}\n')
    return ''.join(lines).encode()[:size]


def weights(seed, elements):
    """BF16 around 1, as weights are: the high bytes alike, the low ones not."""
    draw = random.Random(seed)
    return struct.pack(f'<{elements}H', *(0x3f00 + draw.randrange(256) for _ in range(elements)))


def changed(data, width, changes):
    """`data` with the lowest bit of these elements of `width` bytes turned."""
    out = bytearray(data)
    for element in changes:
        out[element * width] ^= 1
    return bytes(out)


def model(step, floats_change_at=2):
    """A made-up model: from step to step some BF16 elements change, and at one step the F32 tensor too."""
    embed, layer = weights(1, 1024), weights(2, 768)
    for done in range(1, step + 1):
        embed = changed(embed, 2, (0, 1, 17 * done, 1023))
        layer = changed(layer, 2, (5 * done, 5 * done + 1))
    norm = struct.pack('<16f', *(1 + (step >= floats_change_at) / (i + 2) for i in range(16)))
    return {'embed': ('BF16', [64, 16], embed), 'empty': ('BF16', [0, 4], b''), 'layer.norm': ('F32', [16], norm),
            'layer.w': ('BF16', [32, 24], layer), 'steps': ('I64', [], struct.pack('<q', 7))}


def make_objects(daemon):
    bodies = {'inline': (b'short enough for the catalog\n', {'Content-Type': 'text/plain'}),
              'dir/empty': (b'', {}),
              'dir/small.bin': (random.Random(3).randbytes(5000), {}),
              'large text': (prose(4, 300_000), {'Content-Type': 'text/x-prose', 'Cache-Control': 'max-age=60', 'x-amz-meta-colour': 'red',
                                                 'x-amz-meta-Second': 'two words'}),
              'public/weights.bf16': (weights(5, 20_000), {})}
    objects = {}
    for key, (body, headers) in bodies.items():
        target = f'/{BUCKET}/' + key.replace(' ', '%20')
        assert daemon.request('PUT', target, body, headers).status == 200
        reply = daemon.request('GET', target)
        kept = ('Content-Type', 'Cache-Control', 'x-amz-meta-colour', 'x-amz-meta-second', 'ETag', 'Last-Modified', 'x-deltabucket-digest')
        objects[key] = {'size': len(body), 'sha256': digest_of(body), 'headers': {k: reply.headers[k] for k in kept if reply.headers[k]}}
    return objects


def digest_of(body):
    path = os.path.join(SCRATCH, 'digest')
    with open(path, 'wb') as file:
        file.write(body)
    return sha256(path)


def make_followed_run(daemon):
    """The run as `deltabucket publish` makes it."""
    steps = []
    for step, anchor in enumerate(('auto', 'never', 'never', 'always', 'never')):
        path = os.path.join(SCRATCH, f'model{step}.safetensors')
        write_safetensors(path, model(step), {'format': 'pt'})
        daemon.client('publish', '--run', f'{BUCKET}/followed', '--anchor', anchor, '--label', f'iteration {step * 10}',
                      '--metadata', f'loss={step}', path)
        steps.append({'sha256': sha256(path)})
    return steps


def make_pinned_run(daemon):
    """Published by hand from two keys, of which one is deleted afterwards and the other overwritten."""
    base = f'/v1/runs/{BUCKET}/pinned'
    epoch = daemon.request('POST', base).json()['epoch']
    steps, before = [], None
    for step, key in enumerate(('deleted', 'overwritten')):
        path = os.path.join(SCRATCH, f'pinned{step}.safetensors')
        write_safetensors(path, model(step))
        with open(path, 'rb') as file:
            put = daemon.request('PUT', f'/{BUCKET}/pinned/{key}', file.read())
        stored = {'size': os.path.getsize(path), 'digest': put.headers['x-deltabucket-digest']}
        digest = json.loads(daemon.client('inspect', '--json', path).stdout)['digest']
        body = {'step': step, 'epoch': epoch, 'digest': digest, 'files': [dict(stored, path='model.safetensors')],
                'forms': [{'kind': 'anchor', 'format': 'full', 'objects': [dict(stored, key=f'pinned/{key}', name='model.safetensors')]}]}
        if before:
            body['base'] = {'step': step - 1, 'digest': before}
        reply = daemon.request('PUT', f'{base}/steps/{step}', json.dumps(body))
        assert reply.status == 201, reply.body
        steps.append({'sha256': sha256(path)})
        before = digest
    assert daemon.request('DELETE', f'/{BUCKET}/pinned/deleted').status == 204
    assert daemon.request('PUT', f'/{BUCKET}/pinned/overwritten', b'something else').status == 200
    return steps


def describe_run(daemon, name, steps):
    """Adds to each step its manifest's facts and its objects' bytes."""
    for number, step in enumerate(steps):
        manifest = daemon.request('GET', f'/v1/runs/{BUCKET}/{name}/steps/{number}').json()
        step['digest'] = manifest['digest']
        step['label'], step['metadata'] = manifest.get('label'), manifest.get('metadata')
        step['objects'] = {}
        for form in manifest['forms']:
            for entry in form['objects']:
                target = f"steps/{number}/objects/{form['kind']}/{entry['name']}"
                step['objects'][target] = digest_of(daemon.request('GET', f'/v1/runs/{BUCKET}/{name}/{target}').body)


def make_store(folder):
    with Daemon(tls=False, folder=os.path.join(folder, 'store')) as daemon:
        assert daemon.request('PUT', f'/{BUCKET}').status == 200
        expected = {'bucket': BUCKET, 'root': {'key_id': ROOT_ID, 'secret': ROOT_SECRET, 'token': ROOT_TOKEN}, 'objects': make_objects(daemon)}
        expected['history'] = history.make(daemon)
        daemon.stop()  # the next start seals the pack and writes its index; what follows goes to a pack that stays open
        daemon.start()
        expected['runs'] = {'followed': make_followed_run(daemon), 'pinned': make_pinned_run(daemon)}
        for name, steps in expected['runs'].items():
            describe_run(daemon, name, steps)
        expected['reader'] = daemon.add_key('--name', 'golden reader', '--grant', f'{BUCKET}/public/=read')
        assert daemon.stop() == 0
    store = os.path.join(folder, 'store')
    with sqlite3.connect(os.path.join(store, 'catalog.db')) as catalog:
        catalog.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    catalog.close()
    for name in os.listdir(store):
        if name not in ('catalog.db', 'master.key', 'packs'):
            path = os.path.join(store, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    path = os.path.join(folder, 'step.safetensors')
    write_safetensors(path, model(len(expected['runs']['followed'])), {'format': 'pt'})
    expected['step'] = sha256(path)
    return expected


def diff(base, following, out, form='trl-gap'):
    subprocess.run([CLIENT, 'diff', '--quiet', '--format', form, base, following, out], check=True)


def write_shards(folder, step):
    tensors = model(step)
    os.makedirs(folder)
    shards = {'model-00001-of-00002.safetensors': ['embed', 'empty'], 'model-00002-of-00002.safetensors': ['layer.norm', 'layer.w', 'steps']}
    for name, names in shards.items():
        write_safetensors(os.path.join(folder, name), {n: tensors[n] for n in names}, {'format': 'pt', 'step': str(step)})
    texts = {'config.json': f'{{"step": {step}}}\n', 'tokenizer/vocab.txt': 'a\nb\n',
             'model.safetensors.index.json': json.dumps({'metadata': {}, 'weight_map': {n: shard for shard in shards for n in shards[shard]}})}
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


def make_wide(folder):
    """The base is kept gzipped: it is nearly all zeros."""
    base, following = os.path.join(SCRATCH, 'wide-base'), os.path.join(SCRATCH, 'wide-next')
    data = changed(bytes(2 * WIDE_ELEMENTS), 2, range(0, WIDE_ELEMENTS, 9973))
    write_safetensors(base, {'wide': ('BF16', [WIDE_ELEMENTS], data)})
    write_safetensors(following, {'wide': ('BF16', [WIDE_ELEMENTS], changed(data, 2, (3, 70_000, 70_001, WIDE_ELEMENTS - 1)))})
    diff(base, following, os.path.join(folder, 'wide.safetensors'))
    assert read_safetensors(os.path.join(folder, 'wide.safetensors'))[0]['wide.idx'][0] == 'U32'
    with open(base, 'rb') as source, open(os.path.join(folder, 'wide-base.safetensors.gz'), 'wb') as target:
        target.write(gzip.compress(source.read(), mtime=0))
    return sha256(following)


def make_bad(folder):
    """name: exit status and a word of the message."""
    bad = os.path.join(folder, 'bad')
    os.makedirs(bad)
    good = os.path.join(folder, 'trl-gap.safetensors')
    tensors, metadata = read_safetensors(good)
    with open(good, 'rb') as file:
        raw = file.read()

    def save(name, changes, more=None):
        write_safetensors(os.path.join(bad, name), {**tensors, **changes}, {**metadata, **(more or {})})

    def save_bytes(name, data):
        with open(os.path.join(bad, name), 'wb') as file:
            file.write(data)

    def first(name, data):
        dtype, shape, old = tensors[name]
        return {name: (dtype, shape, data + old[len(data):])}

    diff(os.path.join(folder, 'next.safetensors'), os.path.join(folder, 'base.safetensors'), os.path.join(bad, 'wrong-base.safetensors'))
    save_bytes('truncated.safetensors', raw[:-2])
    save_bytes('truncated-header.safetensors', raw[:100])
    save_bytes('trailing-bytes.safetensors', raw + b'\0')
    shutil.copy(os.path.join(folder, 'next.safetensors'), os.path.join(bad, 'full-checkpoint.safetensors'))
    save('out-of-range.safetensors', first('embed.idx', b'\xff\xff'))
    save('wrong-value.safetensors', first('embed.val', b'\xff\xff'))
    save('unknown-tensor.safetensors', {'stranger.idx': ('U16', [1], b'\0\0'), 'stranger.val': ('BF16', [1], b'\0\0')})
    save('half-a-pair.safetensors', {'layer.norm.idx': ('U16', [1], b'\0\0')})
    save('uneven.safetensors', {'embed.idx': ('U16', [1], tensors['embed.idx'][2][:2])})
    save('nvcomp.safetensors', {}, {'encoding': 'nvcomp_cascaded'})
    save('newer-version.safetensors', {}, {'version': '2'})
    save('escaping-path.safetensors', {}, {'result_files': metadata['result_files'].replace('model.safetensors', '../model.safetensors')})
    raw_tensors, raw_metadata = read_safetensors(os.path.join(folder, 'trl-raw.safetensors'))
    dtype, shape, old = raw_tensors['embed.idx']
    for name, indexes in (('negative.safetensors', struct.pack('<i', -1)), ('not-ascending.safetensors', old[4:8] + old[:4])):
        write_safetensors(os.path.join(bad, name), {**raw_tensors, 'embed.idx': (dtype, shape, indexes + old[len(indexes):])}, raw_metadata)
    return {'wrong-base': [7, 'base'], 'truncated': [1, 'cover'], 'truncated-header': [1, 'claims'], 'trailing-bytes': [1, 'cover'],
            'full-checkpoint': [1, 'not a delta'], 'out-of-range': [1, 'outside'], 'wrong-value': [7, 'the delta says'],
            'unknown-tensor': [1, 'stranger'], 'half-a-pair': [1, 'layer.norm.idx'],
            'uneven': [1, 'embed'], 'nvcomp': [1, 'nvcomp_cascaded'], 'newer-version': [1, 'version'], 'escaping-path': [1, 'path'],
            'negative': [1, 'negative'], 'not-ascending': [1, 'not above']}


def make_deltas(folder):
    os.makedirs(folder)
    path = lambda name: os.path.join(folder, name)
    write_safetensors(path('base.safetensors'), model(0), {'format': 'pt'})
    write_safetensors(path('next.safetensors'), model(1), {'format': 'pt'})
    write_safetensors(path('next-floats.safetensors'), model(1, floats_change_at=1), {'format': 'pt', 'note': 'another header'})
    applied = {}
    for form in ('trl-gap', 'trl-raw', 'trl-v1'):
        diff(path('base.safetensors'), path('next.safetensors'), path(f'{form}.safetensors'), form)
        applied[form] = ['base.safetensors', sha256(path('next.safetensors'))]
        tensors, metadata = read_safetensors(path(f'{form}.safetensors'))
        theirs = {k: v for k, v in metadata.items() if not k.endswith('_digest') and not k.startswith(('result_', 'header:'))}
        write_safetensors(path(f'{form}-foreign.safetensors'), tensors, theirs)  # as TRL writes it, without our keys
        applied[f'{form}-foreign'] = applied[form]
    diff(path('base.safetensors'), path('next-floats.safetensors'), path('full-tensors.safetensors'))
    applied['full-tensors'] = ['base.safetensors', sha256(path('next-floats.safetensors'))]
    applied['wide'] = ['wide-base.safetensors.gz', make_wide(folder)]
    for step in (0, 1):
        write_shards(path(f'sharded-{step}'), step)
    diff(path('sharded-0'), path('sharded-1'), path('sharded-delta'))
    return {'applied': applied, 'refused': make_bad(folder)}


def main(name):
    folder = os.path.join(HERE, name)
    os.makedirs(folder)
    expected = make_store(folder)
    expected['deltas'] = make_deltas(os.path.join(folder, 'deltas'))
    with open(os.path.join(folder, 'expected.json'), 'w') as file:
        json.dump(expected, file, indent='\t', sort_keys=True)
        file.write('\n')


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    SCRATCH = os.path.join(HERE, 'scratch')
    os.makedirs(SCRATCH)
    try:
        main(sys.argv[1])
    finally:
        shutil.rmtree(SCRATCH)
