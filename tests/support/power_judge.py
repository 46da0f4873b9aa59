"""Holds a server that was started again against what it had confirmed (ledger.py).

It asks as users do: over HTTP and with the commands. It knows nothing of the files.
"""
import http.client
import json
import os
import shutil

from tests.support import xet
from tests.support.checkpoints import sha256
from tests.support.daemon import ROOT_TOKEN
from tests.support.ledger import ANYTHING, value_of
from tests.support.power_load import place_of
from tests.support.s3 import quote, texts, tree

FILE = 'model.safetensors'
HUB = 'hub'  # the bucket that Hub clients use: main/hub
USED = 'used'  # a key that the judge puts itself


def can_complete(upload):
    """It is there and has parts, and all of them were confirmed."""
    return upload and upload['parts'] and 'whole' in upload


class CutReply:
    status, headers = 'cut', {}

    def __init__(self, failure):
        self.body = str(failure).encode()


class Judge:
    """`allowed`: {fact: values}. Faults are sentences, gathered in `faults`."""

    def __init__(self, daemon, allowed):
        self.daemon, self.allowed = daemon, allowed
        self.faults = []
        self.connection = daemon.connect()

    def close(self):
        self.connection.close()

    def ask(self, method, target, body=None, token=ROOT_TOKEN):
        try:
            return self.daemon.request(method, target, body, token=token,
                                       connection=self.connection)
        except http.client.HTTPException as failure:  # damage ends a reply before its end
            self.connection.close()
            return CutReply(failure)

    def read(self):
        """All facts, as users find them; gives {fact: value}. What may not be is a fault."""
        found = {}
        for fact, values in sorted(self.allowed.items()):
            found[fact] = value = getattr(self, f'_read_{fact[0]}')(values, *fact[1:])
            if value not in values and ANYTHING not in values:
                self.faults.append(f'{" ".join(fact)} is {value}, and may be {values}')
        self._check_listings(found)
        self._check_hub(found)
        self._check_newest_steps(found)
        return found

    def gc(self):
        done = self.daemon.admin('gc', '--live-percent', '95', '--json', check=False)
        if done.returncode != 0:
            self.faults.append(f'deltabucketd gc ended with {done.returncode}: {done.stderr}')
        elif any(json.loads(done.stdout)[name] for name in ('rows_damaged', 'sweeps_failed')):
            self.faults.append(f'deltabucketd gc: {done.stdout}')

    def check(self):
        """Every row and file is in its place, and a backup of them is sound; the server is
        stopped."""
        self._run('fsck', '--data', self.daemon.folder)
        place, restored = place_of(self.daemon), os.path.join(self.daemon.scratch, 'restored')
        self._run('backup', '--data', self.daemon.folder, '--to', place)
        self._run('restore', '--from', place, '--data', restored)
        shutil.copy(os.path.join(self.daemon.folder, 'master.key'), restored)
        self._run('fsck', '--data', restored)
        shutil.rmtree(restored)

    def _run(self, *words):
        done = self.daemon.command(*words)
        if done.returncode != 0:
            self.faults.append(f'deltabucketd {words} ended with {done.returncode}: '
                               f'{done.stdout}{done.stderr}')

    def use(self):
        """The store takes and gives objects, completes uploads that were begun before, and has
        older steps, of which one is made."""
        self._run('scrub', '--data', self.daemon.folder)
        steps = [fact for fact, values in sorted(self.allowed.items())
                 if fact[0] == 'step' and values[0]]
        for fact in steps[len(steps) // 2:][:1]:
            self._follow(*fact[1:], self.allowed[fact][0], '--step', fact[2])
        for fact, values in sorted(self.allowed.items()):
            if fact[0] == 'upload' and len(values) == 1 and can_complete(values[0]):
                self._complete(values[0], *fact[1:])
            if fact[0] == 'bucket' and values == [True]:
                self._put_and_get(*fact[1:])

    def _put_and_get(self, bucket):
        body = os.urandom(3000)
        put = self.ask('PUT', f'/{bucket}/{USED}', body)
        found = self._value(f'/{bucket}/{USED}')
        if put.status != 200 or found != value_of(body):
            self.faults.append(f'{bucket}: a new PUT gave {put.status}, and it reads as {found}')

    def _complete(self, value, bucket, key, upload):
        rows = ''.join(f'<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>'
                       for number, etag in sorted(value['parts'].items()))
        body = f'<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>'
        done = self.ask('POST', f'/{bucket}/{quote(key)}?uploadId={upload}', body)
        found = self._value(f'/{bucket}/{quote(key)}')
        if done.status != 200 or found != value['whole']:
            self.faults.append(f'the upload of {bucket}/{key} completes with {done.status} '
                               f'to {found}, not to {value["whole"]}')

    def _value(self, target):
        got = self.ask('GET', target)
        if got.status not in (200, 404):
            return f'{got.status} {got.body[:200]}'
        return value_of(got.body) if got.status == 200 else None

    # For each kind of fact: its value, None when it is not there, a status that is neither.

    def _read_object(self, values, bucket, key):
        return self._value(f'/{bucket}/{quote(key)}')

    def _read_version(self, values, bucket, key, version):
        return self._value(f'/{bucket}/{quote(key)}?versionId={version}')

    def _read_bucket(self, values, bucket):
        status = self.ask('HEAD', f'/{bucket}').status
        return {200: True, 404: None}.get(status, status)

    def _read_setting(self, values, bucket, name):
        got = self.ask('GET', f'/{bucket}?{name}')
        return {200: got.body.decode(), 404: None}.get(got.status, got.status)

    def _read_key(self, values, name):
        """{'token', 'works'}."""
        token = next(value['token'] for value in values if value)
        status = self.ask('GET', '/', token=token).status
        return {'token': token, 'works': {200: True, 403: False}.get(status, status)}

    def _read_upload(self, values, bucket, key, upload):
        """{'parts': {number: ETag}, 'whole': what it will be}, until it is completed or aborted."""
        got = self.ask('GET', f'/{bucket}/{quote(key)}?uploadId={upload}')
        if got.status != 200:
            return None if got.status == 404 else got.status
        parts = {part.findtext('PartNumber'): part.findtext('ETag')
                 for part in tree(got).iter('Part')}
        known = [value for value in values if value not in (None, ANYTHING)]
        return next((value for value in known if value['parts'] == parts), {'parts': parts})

    def _read_step(self, values, run, number):
        """That its manifest is there; _check_newest_steps reads the weights."""
        status = self.ask('GET', f'/v1/runs/{run}/steps/{number}').status
        known = next((value for value in values if value), None)
        return {200: known, 404: None}.get(status, status)

    def _read_backup(self, values, moment):
        """That it is there."""
        told = self.daemon.command('restore', '--from', place_of(self.daemon), '--list', '--json')
        listed = json.loads(told.stdout)['moments'] if told.returncode == 0 else []
        return True if moment in [one['moment'] for one in listed] else None

    def _check_listings(self, found):
        """A bucket lists what can be read, and nothing else."""
        for bucket in sorted({fact[1] for fact in self.allowed if fact[0] == 'object'}):
            readable = {(fact[2], str(value['size'])) for fact, value in found.items()
                        if fact[:2] == ('object', bucket) and isinstance(value, dict)}
            listed = self._listed(bucket)
            if listed != readable:
                self.faults.append(f'{bucket} lists {sorted(listed - readable)} that cannot be '
                                   f'read, and not {sorted(readable - listed)}')

    def _listed(self, bucket):
        reply = self.ask('GET', f'/{bucket}?list-type=2')
        if reply.status != 200:
            return set()
        rows = tree(reply)
        listed = zip(texts(rows, 'Contents/Key'), texts(rows, 'Contents/Size'))
        return {(key, size) for key, size in listed if key != USED}

    def _check_hub(self, found):
        """What Hub clients brought is read by way of its chunks too."""
        for fact, value in found.items():
            if fact[:2] == ('object', HUB) and value and value in self.allowed[fact]:
                cas = xet.Cas(self.daemon, f'main/{HUB}', 'read', connection=self.connection)
                head = self.ask('HEAD', f'/buckets/main/{HUB}/resolve/{fact[2]}')
                if value_of(cas.download(xet.raw(head.headers['X-Xet-Hash']))) != value:
                    self.faults.append(f'{HUB} {fact[2]} is something else by way of its chunks')

    def _check_newest_steps(self, found):
        """`deltabucket follow` makes the weights of each run's newest step."""
        newest = {}
        for fact, value in found.items():
            if fact[0] == 'step' and value:
                newest[fact[1]] = max(newest.get(fact[1], (-1, '')), (int(fact[2]), value))
        for run, (number, value) in newest.items():
            self._follow(run, number, value)

    def _follow(self, run, number, value, *options):
        into = os.path.join(self.daemon.scratch, 'followed')
        done = self.daemon.client('follow', '--run', run, '--into', into, '--once', *options,
                                  check=False)
        path = os.path.join(into, 'current', FILE)
        digest = sha256(path) if done.returncode == 0 else None
        if digest != value:
            self.faults.append(f'step {number} of {run} follows to {digest}, not to {value}: '
                               f'{done.stderr}')
        shutil.rmtree(into, ignore_errors=True)
