"""The part of golden stores that came with Hugging Face buckets: xorbs, registered files, what batches made of them. Made by make.py, read back by
test_golden.py.
"""
import hashlib
import json
import os
import random
import urllib.parse

from tests.golden.models import weights
from tests.support.checkpoints import write_safetensors
from tests.support.xet import Cas, Shard, Xorb, batch, chunks, file_hash, raw, term, text

NAMESPACE = 'alice'
CHUNKS = 4  # of each xorb but the last


def ask(daemon, method, target, body=None, token=None, status=200):
    reply = daemon.request(method, target, json.dumps(body) if isinstance(body, dict) else body, token=token)
    assert reply.status == status, (target, reply.status, reply.body)
    return reply


def resolve(bucket, path):
    return f'/buckets/{bucket}/resolve/{urllib.parse.quote(path)}'


def add(path, name, **more):
    return {'type': 'addFile', 'path': path, 'xetHash': text(name), **more}


def edited(cas, data, xorbs):
    """A file of which all but the middle was sent before: it names chunks of those xorbs and of a new one."""
    new = Xorb([data[:1000] * 20])
    assert cas.put_xorb(new).status == 200
    terms = [term(xorbs[0]), term(new), term(xorbs[1], 1)]
    entries = xorbs[0].entries + new.entries + xorbs[1].entries[1:]
    name = file_hash(entries)
    assert cas.put_shard(Shard().add_file(name, terms).add_xorb(new.hash, new.entries), version=2).status == 200
    return name, b''.join(xorbs[0].pieces + new.pieces + xorbs[1].pieces[1:])


def make_files(daemon, bucket, token, scratch):
    cas = Cas(daemon, bucket, token=token)
    data = random.Random(31).randbytes(500_000)
    name, xorbs, _ = cas.upload(data, CHUNKS)
    other, changed = edited(cas, data, xorbs)
    gone, _, _ = cas.upload(random.Random(32).randbytes(60_000))
    path = os.path.join(scratch, 'planes')
    write_safetensors(path, {'w': ('BF16', [300, 100], weights(33, 30_000))})
    daemon.client('put', path, f"{bucket.replace('/', '--')}/planes.safetensors", token=token)  # in codecs of our own
    with open(path, 'rb') as file:
        planes = file.read()
    lines = [add('dir/raw.bin', name, mtime=1700000000123, contentType='application/x-raw'), add('edited.bin', other), add('gone', gone),
             add('empty', bytes(32), mtime=1700000000000), add('prüfung/ä b.bin', name)]
    reply = batch(daemon, bucket, lines, token=token)
    assert reply.json()['succeeded'] == len(lines), reply.body
    copy = {'type': 'copyFile', 'path': 'copy.bin', 'xetHash': text(other), 'sourceRepoType': 'bucket', 'sourceRepoId': bucket}
    reply = batch(daemon, bucket, [copy, {'type': 'deleteFile', 'path': 'gone'}], token=token)
    assert reply.json()['succeeded'] == 2, reply.body
    return {'dir/raw.bin': data, 'edited.bin': changed, 'empty': b'', 'prüfung/ä b.bin': data, 'copy.bin': changed, 'planes.safetensors': planes}


def tree(daemon, bucket, token):
    entries = ask(daemon, 'GET', f'/api/buckets/{bucket}/tree?recursive=true', token=token).json()
    return {entry['path']: entry for entry in entries if entry['type'] == 'file'}


def make(daemon, scratch):
    token = daemon.add_key('--name', 'golden hub', '--namespace', NAMESPACE)['token']
    first, bucket, public = f'{NAMESPACE}/first', f'{NAMESPACE}/Models', f'{NAMESPACE}/open'
    ask(daemon, 'POST', f'/api/buckets/{first}', {'private': True}, token)
    ask(daemon, 'POST', '/api/repos/move', {'fromRepo': first, 'toRepo': bucket, 'type': 'bucket'}, token)
    ask(daemon, 'POST', f'/api/buckets/{public}', {'private': False}, token)
    files = make_files(daemon, bucket, token, scratch)
    shown, _, _ = Cas(daemon, public, token=token).upload(random.Random(34).randbytes(30_000))
    assert batch(daemon, public, [add('shown', shown)], token=token).json()['succeeded'] == 1
    entries = tree(daemon, bucket, token)
    assert set(entries) == set(files)
    return {'token': token, 'bucket': bucket, 'public': public, 'shown': text(shown), 'entries': entries,
            'sha256': {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}}


def check(test, daemon, expected):
    """All of the above on a store that this version opened; then a file of old chunks is added, and another goes."""
    bucket, token = expected['bucket'], expected['token']
    test.assertEqual(tree(daemon, bucket, token), expected['entries'])
    ask(daemon, 'GET', f'/api/buckets/{bucket}', token=None, status=401)
    ask(daemon, 'GET', f'/api/buckets/{NAMESPACE}/first', token=token, status=404)
    test.assertFalse(ask(daemon, 'GET', f"/api/buckets/{expected['public']}", token=None).json()['private'])
    test.assertEqual(tree(daemon, expected['public'], None)['shown']['xetHash'], expected['shown'])
    check_bytes(test, daemon, expected)
    cas, data = Cas(daemon, bucket, token=token), ask(daemon, 'GET', resolve(bucket, 'dir/raw.bin'), token=token).body
    known = Xorb(chunks(data)[:CHUNKS])
    test.assertEqual(cas.chunk(known.entries[0][0]).status, 200)
    test.assertFalse(cas.put_xorb(known).json()['was_inserted'])
    name = file_hash(known.entries[1:])
    test.assertEqual(cas.put_shard(Shard().add_file(name, [term(known, 1)])).json(), {'result': 1})
    done = batch(daemon, bucket, [add('new', name), {'type': 'deleteFile', 'path': 'edited.bin'}], token=token)
    test.assertEqual(done.json()['succeeded'], 2)
    daemon.admin('gc')
    test.assertEqual(ask(daemon, 'GET', resolve(bucket, 'new'), token=token).body, b''.join(known.pieces[1:]))
    check_bytes(test, daemon, expected, without='edited.bin')


def check_bytes(test, daemon, expected, without=None):
    """As plain files, and put together of chunks as clients do."""
    cas = Cas(daemon, expected['bucket'], kind='read', token=expected['token'])
    for path, known in expected['sha256'].items():
        if path != without:
            body = ask(daemon, 'GET', resolve(expected['bucket'], path), token=expected['token']).body
            joined = cas.download(raw(expected['entries'][path]['xetHash'])) if body else b''
            test.assertEqual([hashlib.sha256(data).hexdigest() for data in (body, joined)], [known, known], path)
