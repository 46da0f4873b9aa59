"""A server as its operator meets it in the console: a run of five steps with 200 workers, a bucket with files, versions and hostile names, damage that
scrub has found, keys with few rights, and a disk that is nearly full."""
import json
import os
import random
import struct
import subprocess
import tempfile

from tests.support.checkpoints import expand_small
from tests.support.daemon import ROOT_ID, ROOT_SECRET, Daemon
from tests.support.pack_walk import parts_of
from tests.support.s3 import Bucket
from tests.support.skips import can_mount

RUN = 'models/policy'
STEPS = 5
WORKERS = 200
DISK_BYTES = 192 << 20
LEFT_BYTES = 30 << 20  # a little above what the server keeps free
ROOT = (ROOT_ID, ROOT_SECRET)
# What a name or a value must not do in a page: run. Each would say so by a dialog, which fails the test.
HOSTILE = ('<img src=x onerror=alert(1)>.txt', '"><script>alert(2)</script>', "javascript:alert(3)//'", '\u202egpj.exe\u202c', 'a\tb\rc',
           '${alert(4)}{{alert(5)}}', '%3Cscript%3Ealert(6)%3C%2Fscript%3E', '..', '__proto__', 'constructor')


def safetensors(tensors):
    """tensors: {name: (dtype, shape, bytes)}"""
    header, offset = {'__metadata__': {'format': 'pt', '<b>made</b>': '<img src=x onerror=alert(7)>'}}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    return struct.pack('<Q', len(text)) + text + b''.join(data for _, _, data in tensors.values())


def worker(number):
    """(id, report) of one of the 200: most are ready, some a step behind, some further, five failed."""
    report = {'host': f'node-{number // 8:02d}', 'state': 'ready', 'step': STEPS - 1}
    if number % 40 == 7:
        report.update(state='error', step=2, error='No space is left on /srv/weights.')
    elif number % 10 == 3:
        report.update(state='ready', step=2)
    elif number % 5 == 1:
        report.update(state='fetching', step=3, wanted=4)
    return f'node-{number // 8:02d}:{number % 8}', report


class Site:
    """Use as a context manager. `nearly_full`: the data folder lies on a small file system of its own, where that can be mounted."""

    def __init__(self, nearly_full=True, workers=WORKERS):
        self.workers, self.disk, self.keys = workers, None, {}
        if nearly_full and can_mount():
            self.disk = tempfile.mkdtemp()
            subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={DISK_BYTES}', 'none', self.disk], check=True)
        self.daemon = Daemon(folder=os.path.join(self.disk, 'data') if self.disk else None)

    @property
    def origin(self):
        return self.daemon.endpoint

    def __enter__(self):
        try:
            self.daemon.start()
            self.publish()
            self.report()
            self.fill_buckets()
            self.make_keys()
            self.damage()
            self.fill_disk()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *failure):
        try:
            self.daemon.__exit__(*failure)
        finally:
            if self.disk:
                subprocess.run(['umount', self.disk], check=True)
                os.rmdir(self.disk)

    def publish(self):
        for step, path in enumerate(expand_small(self.daemon.scratch, STEPS - 1)):
            model = os.path.join(self.daemon.scratch, 'model.safetensors')
            os.replace(path, model) if step == STEPS - 1 else os.link(path, model)
            self.daemon.client('publish', '--run', RUN, '--create-bucket', model)
            os.remove(model)

    def report(self, numbers=None, **changes):
        """The workers' reports, with other members for these."""
        connection = self.daemon.connect()
        for number in numbers if numbers is not None else range(self.workers):
            name, report = worker(number)
            reply = self.daemon.request('PUT', f'/v1/runs/{RUN}/replicas/{name}', json.dumps({**report, **changes}), connection=connection)
            assert reply.status == 200, reply.body
        connection.close()

    def fill_buckets(self):
        source = random.Random(18)
        files = Bucket(self.daemon, 'files', versioning='Enabled')
        for at in range(3):
            files.put('notes.txt', f'notes, {at}\n'.encode(), Content_Type='text/plain', x_amz_meta_author='<img src=x onerror=alert(8)>')
        for name in ('runs/a/one.bin', 'runs/a/two.bin', 'runs/b/three.bin', 'docs/readme.md'):
            files.put(name, source.randbytes(20_000))
        files.put('gone.txt', b'gone')
        files.ask('DELETE', 'gone.txt')
        files.put('tiny.safetensors', safetensors({'a.weight': ('BF16', [2, 3], bytes(12)), '<b>x</b>': ('F32', [4], bytes(16))}))
        files.put('page.html', b'<!doctype html><script>fetch("/-/keys",{headers:{"X-Deltabucket-Console":"1"}})</script>', Content_Type='text/html')
        for name in HOSTILE:
            files.put(f'hostile/{name}', b'x', Content_Type='text/plain')
        many = Bucket(self.daemon, 'many')
        for number in range(1100):
            assert many.put(f'{number:05d}.txt', b'x').status == 200
        for bucket in (files, many):
            bucket.close()

    def make_keys(self):
        for name, grants in (('workers', ['models/policy/=read,list']), ('writer', ['files/runs/=read,list,write']), ('watcher', ['metrics'])):
            self.keys[name] = self.daemon.add_key('--name', name, *[word for grant in grants for word in ('--grant', grant)])

    def key(self, name):
        return self.keys[name]['key_id'], self.keys[name]['secret']

    def damage(self):
        """One bit in a record of the pack that has these bytes, found by scrub."""
        body = random.Random(81).randbytes(300_000)
        assert self.daemon.request('PUT', '/files/broken.bin', body).status == 200
        path = next(path for path in self.packs() if body[1000:1032] in open(path, 'rb').read())
        with open(path, 'r+b') as file:
            data = file.read()
            record = next(part for part in parts_of(data) if part.kind == 'record' and part.start > data.index(body[:32]) - 64)
            file.seek(record.start + 13)
            file.write(bytes([data[record.start + 13] ^ 0x10]))
        self.daemon.is_damaged = True
        found = self.daemon.request('POST', '/-/scrub', b'{}').json()
        assert found['damaged_now'] == 1, found

    def packs(self):
        for at, _, names in os.walk(os.path.join(self.daemon.folder, 'packs')):
            yield from (os.path.join(at, name) for name in names if name.endswith('.pack'))

    def fill_disk(self):
        if self.disk:
            free = os.statvfs(self.disk).f_bavail * os.statvfs(self.disk).f_frsize
            with open(os.path.join(self.disk, 'stranger'), 'wb') as file:
                file.write(bytes(max(0, free - LEFT_BYTES)))
