#!/usr/bin/env python3
"""Made the golden data beside this file: what version 0.1.0 wrote. Kept forever; newer versions must go on reading it.

    DELTABUCKET_BUILD=DIR tests/golden/make.py NAME [store] [deltas]      writes these parts of tests/golden/NAME, which must not be there; both without

Run by hand with a released build when a format changed, under a new name (`v0_1_0` is the first); never again for an old name. Foreign deltas are written
by tests/formats, so setup/clients must have run. It makes

    NAME/store/         a data folder as SIGTERM left it, catalog.db without a WAL. Without chunks.db, so that opening it rebuilds that, and
                        without what every start makes anew (lock, tls)
    NAME/step.safetensors   the step that a newer version publishes on top of it
    NAME/deltas/        base and next of several kinds, the deltas between them in every format, and under bad/ deltas to be refused (deltas.py)
    NAME/expected.json  what must be read back: sizes and SHA-256

test_golden.py tests every folder here that has an expected.json. All keys and secrets in it are made for these tests and open nothing else.
"""
import json
import os
import random
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))

from tests.golden import deltas, history, hub  # noqa: E402
from tests.golden.models import model, prose, weights  # noqa: E402
from tests.support.checkpoints import sha256, write_safetensors  # noqa: E402
from tests.support.daemon import ROOT_ID, ROOT_SECRET, ROOT_TOKEN, Daemon  # noqa: E402

BUCKET = 'golden'


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


def describe_anchors(daemon, runs):
    """Steps read whole through S3, whoever made the anchor: the newest one is waited for, so that it lies in the store."""
    targets = {}
    for name, steps in runs.items():
        for number, step in reversed(list(enumerate(steps))):
            target = f'/{BUCKET}/{name}/anchors/step_{number:06d}/model.safetensors'
            assert digest_of(daemon.request('GET', target, timeout=90).body) == step['sha256'], target
            targets[target] = step['sha256']
    return targets


def make_store(folder):
    with Daemon(tls=False, folder=os.path.join(folder, 'store')) as daemon:
        assert daemon.request('PUT', f'/{BUCKET}').status == 200
        expected = {'bucket': BUCKET, 'root': {'key_id': ROOT_ID, 'secret': ROOT_SECRET, 'token': ROOT_TOKEN}, 'objects': make_objects(daemon)}
        expected['history'] = history.make(daemon, SCRATCH)
        expected['hub'] = hub.make(daemon, SCRATCH)
        daemon.stop()  # the next start seals the pack and writes its index; what follows goes to a pack that stays open
        daemon.start()
        expected['runs'] = {'followed': make_followed_run(daemon), 'pinned': make_pinned_run(daemon)}
        for name, steps in expected['runs'].items():
            describe_run(daemon, name, steps)
        expected['anchors'] = describe_anchors(daemon, expected['runs'])
        expected['reader'] = daemon.add_key('--name', 'golden reader', '--grant', f'{BUCKET}/public/=read')
        assert daemon.stop() == 0
    store = os.path.join(folder, 'store')
    assert not os.path.exists(os.path.join(store, 'catalog.db-wal')), 'an orderly stop leaves no log'
    for name in os.listdir(store):
        if name not in ('acknowledged', 'catalog.db', 'master.key', 'packs'):
            path = os.path.join(store, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    path = os.path.join(folder, 'step.safetensors')
    write_safetensors(path, model(len(expected['runs']['followed'])), {'format': 'pt'})
    expected['step'] = sha256(path)
    return expected


PARTS = {'store': make_store, 'deltas': lambda folder: {'deltas': deltas.make(os.path.join(folder, 'deltas'), SCRATCH)}}


def main(name, parts):
    folder = os.path.join(HERE, name)
    facts, expected = os.path.join(folder, 'expected.json'), {}
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(facts):
        with open(facts) as file:
            expected = json.load(file)
    for part in parts:
        assert not os.path.exists(os.path.join(folder, part)), f'{part} is there already'
        expected.update(PARTS[part](folder))
    with open(facts, 'w') as file:
        json.dump(expected, file, indent='\t', sort_keys=True)
        file.write('\n')


if __name__ == '__main__':
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(PARTS):
        sys.exit(__doc__)
    SCRATCH = os.path.join(HERE, 'scratch')
    os.makedirs(SCRATCH)
    try:
        main(sys.argv[1], sys.argv[2:] or list(PARTS))
    finally:
        shutil.rmtree(SCRATCH)
