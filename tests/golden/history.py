"""The part of golden stores that came with versions, multipart uploads, compacted packs and derived objects: made by make.py, read back by
test_golden.py.
"""
import hashlib
import json
import os
import random
import re
import time

from tests.golden.models import changed, weights
from tests.support.checkpoints import write_safetensors

BUCKET = 'history'
VERSIONING = '<VersioningConfiguration><Status>{}</Status></VersioningConfiguration>'
PART = 5 << 20


def part(number):
    """Compresses to nearly nothing, and no two are alike."""
    return (f'part {number} of a checkpoint that is all alike\n' * (PART // 32))[:PART].encode()


def answer(daemon, method, target, body=None, headers=None, status=200):
    reply = daemon.request(method, target, body, headers)
    assert reply.status == status, (target, reply.status, reply.body)
    return reply


def fact(body, headers, reply):
    """What a version must answer when it is read again."""
    return {'sha256': hashlib.sha256(body).hexdigest(), 'etag': reply.headers['ETag'],
            'headers': {name: value for name, value in headers.items() if name.startswith(('x-amz-meta-', 'Content-', 'x-amz-storage'))}}


def make_versions(daemon):
    """One key: three versions, a delete marker, another version; then versioning is suspended and the null version comes on top."""
    key = f'/{BUCKET}/doc'
    versions = []

    def put(body, **headers):
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        reply = answer(daemon, 'PUT', key, body, headers)
        versions.append(dict(fact(body, headers, reply), version=reply.headers.get('x-amz-version-id', 'null')))

    answer(daemon, 'PUT', f'/{BUCKET}?versioning', VERSIONING.format('Enabled'))
    put(b'one', x_amz_meta_colour='red', x_amz_tagging='step=1&kind=first')
    put(b'two' * 5000, Content_Type='text/x-two', x_amz_checksum_algorithm='CRC32')
    put(b'')
    marker = answer(daemon, 'DELETE', key, status=204).headers['x-amz-version-id']
    put(b'after the marker', x_amz_storage_class='STANDARD_IA')
    answer(daemon, 'PUT', f'/{BUCKET}?versioning', VERSIONING.format('Suspended'))
    put(b'null')
    return {'key': 'doc', 'versions': versions, 'marker': marker, 'tags': {versions[0]['version']: {'step': '1', 'kind': 'first'}}}


def begin(daemon, key):
    reply = answer(daemon, 'POST', f'/{BUCKET}/{key}?uploads', headers={'x-amz-meta-kind': 'parts'})
    return re.search(rb'<UploadId>(.*?)</UploadId>', reply.body).group(1).decode()


def send(daemon, key, upload, number, body):
    return answer(daemon, 'PUT', f'/{BUCKET}/{key}?partNumber={number}&uploadId={upload}', body).headers['ETag']


def complete(daemon, key, upload, etags):
    listed = ''.join(f'<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>' for number, etag in etags)
    return answer(daemon, 'POST', f'/{BUCKET}/{key}?uploadId={upload}', f'<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>')


def make_uploads(daemon):
    """An object of three parts with a gap in the numbers, a copy of it, and an upload that is still open."""
    upload, bodies = begin(daemon, 'parts'), {1: part(1), 3: part(3), 7: b'the end'}
    etags = [(number, send(daemon, 'parts', upload, number, body)) for number, body in bodies.items()]
    send(daemon, 'parts', upload, 5, b'left out')
    complete(daemon, 'parts', upload, etags)
    answer(daemon, 'PUT', f'/{BUCKET}/copy', headers={'x-amz-copy-source': f'/{BUCKET}/parts'})
    whole = b''.join(bodies.values())
    etag = hashlib.md5(b''.join(hashlib.md5(body).digest() for body in bodies.values())).hexdigest()
    unfinished = begin(daemon, 'open')
    first = send(daemon, 'open', unfinished, 1, part(9))
    return {'sha256': hashlib.sha256(whole).hexdigest(), 'size': len(whole), 'etag': f'"{etag}-3"',
            'open': {'upload': unfinished, 'etag': first, 'sha256': hashlib.sha256(part(9) + b'rest').hexdigest()}}


def make_compacted(daemon):
    """Small objects in one pack, of which few stay: the next gc writes the pack anew. Gives those that stay."""
    source = random.Random(11)
    kept = {}
    for number in range(40):
        body = source.randbytes(6000)
        answer(daemon, 'PUT', f'/{BUCKET}/pack/{number:02}', body)
        if number % 10 == 0:
            kept[f'pack/{number:02}'] = hashlib.sha256(body).hexdigest()
    daemon.stop()
    daemon.start()
    for number in range(40):
        if number % 10:
            target = f'/{BUCKET}/pack/{number:02}'
            version = answer(daemon, 'GET', target).headers.get('x-amz-version-id')
            answer(daemon, 'DELETE', f'{target}?versionId={version}' if version else target, status=204)
    done = json.loads(daemon.admin('gc', '--json').stdout)
    assert done['packs_compacted'] == 1, done
    return kept


def wait_for(daemon, metric, least):
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        found = re.search(rf'^{metric} (\d+)$', daemon.request('GET', '/-/metrics').body.decode(), re.M)
        if found and int(found.group(1)) >= least:
            return
        time.sleep(0.1)
    raise AssertionError(f'{metric} did not reach {least}')


def make_derived(daemon, scratch):
    """Full checkpoints of which the server keeps all but one as deltas."""
    kept, path, data = {}, os.path.join(scratch, 'checkpoint'), weights(21, 60_000)
    for number in range(3):
        write_safetensors(path, {'w': ('BF16', [300, 200], data), 'same': ('BF16', [900], weights(22, 900))}, {'format': 'pt'})
        with open(path, 'rb') as file:
            body = file.read()
        reply = answer(daemon, 'PUT', f'/{BUCKET}/full/step_{number}.safetensors', body)
        kept[f'full/step_{number}.safetensors'] = {'sha256': hashlib.sha256(body).hexdigest(), 'etag': reply.headers['ETag']}
        data = changed(data, 2, range(number, 60_000, 83))
    wait_for(daemon, 'deltabucket_derived_swapped_total', 2)
    return kept


def make(daemon, scratch):
    answer(daemon, 'PUT', f'/{BUCKET}')
    return {'bucket': BUCKET, 'compacted': make_compacted(daemon), **make_versions(daemon), 'multipart': make_uploads(daemon),
            'derived': make_derived(daemon, scratch)}


def check(test, daemon, expected):
    """All of the above on a store that this version opened; then what was begun is ended."""
    bucket = f"/{expected['bucket']}"
    whole = daemon.request('GET', f'{bucket}?versions&prefix=doc').body.decode()
    test.assertEqual(re.findall('<VersionId>(.*?)</VersionId>', whole),
                     [version['version'] for version in reversed(expected['versions'][3:])] + [expected['marker']] +
                     [version['version'] for version in reversed(expected['versions'][:3])])
    for version in expected['versions']:
        reply = daemon.request('GET', f"{bucket}/{expected['key']}?versionId={version['version']}")
        test.assertEqual((reply.status, hashlib.sha256(reply.body).hexdigest(), reply.headers['ETag']), (200, version['sha256'], version['etag']))
        for name, value in version['headers'].items():
            test.assertEqual(reply.headers[name], value, name)
    for version, tags in expected['tags'].items():
        found = daemon.request('GET', f"{bucket}/{expected['key']}?tagging&versionId={version}").body.decode()
        test.assertEqual(dict(re.findall('<Key>(.*?)</Key><Value>(.*?)</Value>', found)), tags)
    for key, known in expected['compacted'].items():
        test.assertEqual(hashlib.sha256(daemon.request('GET', f'{bucket}/{key}').body).hexdigest(), known, key)
    for key, known in expected['derived'].items():
        reply = daemon.request('GET', f'{bucket}/{key}')
        test.assertEqual((hashlib.sha256(reply.body).hexdigest(), reply.headers['ETag']), (known['sha256'], known['etag']), key)
        part_of_it = daemon.request('GET', f'{bucket}/{key}', headers={'Range': 'bytes=70001-90000'})
        test.assertEqual((part_of_it.status, part_of_it.body == reply.body[70001:90001]), (206, True), key)
    check_uploads(test, daemon, bucket, expected['multipart'])


def check_uploads(test, daemon, bucket, expected):
    for key in ('parts', 'copy'):
        reply = daemon.request('GET', f'{bucket}/{key}')
        test.assertEqual((len(reply.body), hashlib.sha256(reply.body).hexdigest()), (expected['size'], expected['sha256']))
    test.assertEqual(daemon.request('HEAD', f'{bucket}/parts').headers['ETag'], expected['etag'])
    third = daemon.request('GET', f'{bucket}/parts?partNumber=3')
    test.assertEqual((third.status, third.body == part(3)), (206, True))
    known = expected['open']
    last = send(daemon, 'open', known['upload'], 2, b'rest')
    complete(daemon, 'open', known['upload'], [(1, known['etag']), (2, last)])
    test.assertEqual(hashlib.sha256(daemon.request('GET', f'{bucket}/open').body).hexdigest(), known['sha256'])
