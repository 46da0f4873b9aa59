"""Who may do what, for tests/daemon/test_matrix.py: the routes as the server has them, a world of
accounts, keys, buckets and secrets, and the rules of docs/protocol/README.md, "Access", and of
docs/protocol/hub.md, "Who may know of a bucket", as a judge that knows nothing of the server.

Everything that somebody may not get to know has a name, a size or a number that nobody can guess,
so that a reply which holds it tells of it.
"""

import collections
import hashlib
import json
import os
import random
import re
import subprocess

from tests.support import xet
from tests.support.daemon import BUILD, ROOT_ID, ROOT_TOKEN
from tests.support.runs import FILE, Run, shard, weights
from tests.support.s3 import quote, tree

ROUTE = re.compile(r'(?P<methods>[A-Z,]+) (?P<pattern>[^ ?]+)(\?(?P<query>\S+))? -> (?P<name>.+) '
                   r'\((?P<access>[^,]+), (?P<body>[^)]+)\)')
PLACES = ('inside', 'outside')
DROPPING = ('DeleteBucket', 'DeleteHubBucket', 'MoveHubBucket')
Route = collections.namedtuple('Route', 'methods pattern query name access body')


def routes():
    """The rows of the server's tables, in their order, each with the methods that no earlier row
    takes from it."""
    text = subprocess.run([os.path.join(BUILD, 'route_list')], check=True, capture_output=True,
                          text=True).stdout
    rows, taken = [], set()
    for line in text.splitlines():
        found = ROUTE.fullmatch(line)
        assert found, line
        own = found['methods'].split(',')
        left = tuple(m for m in own if (m, found['pattern'], found['query']) not in taken)
        taken.update((method, found['pattern'], found['query']) for method in own)
        rows.append(Route(left, *(found[name] for name in Route._fields[1:])))
    return rows


def face_of(pattern):
    """The paths of docs/protocol/README.md."""
    for face, starts in (('admin', ('/-/', '/console')), ('xet', ('/xet/', '/v1/telemetry')),
                         ('steps', ('/v1/', '/hot_load/')),
                         ('hub', ('/api/', '/buckets/', '/oauth/'))):
        if pattern.startswith(starts):
            return face
    return 's3'


class Bucket:
    """`account` is None of a bucket that is not there. `keys`: the standing objects by place."""

    def __init__(self, kind, name, account, is_public=False):
        self.kind, self.name, self.account, self.is_public = kind, name, account, is_public
        self.keys, self.facts, self.runs, self.files = {}, {}, {}, {}

    @property
    def hub(self):
        return self.name.replace('--', '/', 1)


class Caller:
    """`grants`: (bucket's name, prefix, permissions) of a key that has any, else None."""

    def __init__(self, name, account=None, grants=None, key=None, **flags):
        self.name, self.account, self.grants = name, account, grants
        self.key_id, self.secret, self.token = (key[part] if key else None
                                                for part in ('key_id', 'secret', 'token'))
        self.is_root, self.is_revoked = flags.get('root', False), flags.get('revoked', False)

    def may(self, verb, bucket, key, shared=True, versions=False):
        """`shared`: what a bucket gives to everyone counts. A bucket that is not there is anybody's
        whose key has no grants."""
        if self.is_revoked:
            return False
        if self.is_root:
            return True
        if self.grants is not None:
            return any(name == bucket.name and key.startswith(prefix) and verb in verbs
                       for name, prefix, verbs in self.grants)
        if self.account and self.account == (bucket.account or self.account):
            return True
        return shared and bucket.is_public and verb in ('read', 'list') and not versions

    def has_any(self, bucket, verb=None):
        """Anything at all, or this permission, somewhere in a bucket that there is."""
        if self.is_revoked or (bucket.account is None and not self.is_root):
            return False
        if self.grants is not None:
            return any(name == bucket.name and (verb is None or verb in verbs)
                       for name, _, verbs in self.grants)
        return any(
            self.may(v, bucket, '')
            for v in ([verb] if verb else ['read', 'write', 'list', 'admin'])
        )


ALLOWED, DENIED, NOBODY, ABSENT, UNKNOWN = 'allowed', 'denied', 'nobody', 'absent', 'unknown'


def judge(caller, bucket, verb, key, shared=True, versions=False):
    """What becomes of a request that asks for this."""
    if caller.is_revoked:
        return UNKNOWN
    may = caller.may(verb, bucket, key, shared, versions)
    if bucket.account is None and (may or (caller.token is None and shared)):
        return ABSENT
    if may:
        return ALLOWED
    return NOBODY if caller.token is None else DENIED


# (status, code) of each refusal; the Hub's codes stand in a header.
REFUSALS = {
    's3': {DENIED: (403, 'AccessDenied'), NOBODY: (403, 'AccessDenied'),
           ABSENT: (404, 'NoSuchBucket'), UNKNOWN: (403, 'InvalidAccessKeyId')},
    'steps': {DENIED: (403, 'denied'), NOBODY: (401, 'no_credentials'), ABSENT: (404, 'no_bucket'),
              UNKNOWN: (401, 'unknown_key')},
    'hub': {DENIED: (403, None), NOBODY: (401, None), ABSENT: (404, 'RepoNotFound'),
            UNKNOWN: (401, None)},
    'xet': {DENIED: (403, None), NOBODY: (401, None), ABSENT: (404, None), UNKNOWN: (401, None)},
}
REFUSALS['admin'] = REFUSALS['steps']


def refusal(face, caller, bucket, outcome):
    """The Hub tells nobody of what he may not know (docs/protocol/hub.md)."""
    if face == 'hub' and bucket and outcome in (DENIED, ABSENT) and not caller.has_any(bucket):
        outcome = ABSENT if caller.token else NOBODY
    return REFUSALS[face][outcome]


Secret = collections.namedtuple('Secret', 'text what bucket place verbs shared versions pattern')


class World:
    """Three accounts: the owner, whose buckets are in question, a stranger, one far away."""
    KINDS = ('private', 'public', 'versioned', 'absent')

    def __init__(self, daemon):
        self.daemon = daemon
        self.random = random.Random(int.from_bytes(os.urandom(8), 'big'))
        self.secrets = []
        self.owner, self.stranger, self.far = (self.word(kind) for kind in ('own', 'str', 'far'))
        self.buckets = {
            kind: Bucket(
                kind,
                f'{self.owner}--{self.word(kind[:4])}',
                self.owner,
                kind in ('public', 'versioned'),
            )
            for kind in (*self.KINDS, 'spare')
        }
        self.buckets['absent'].account = None
        self.buckets['apart'] = Bucket('apart', f'{self.far}--{self.word("apart")}', self.far)
        self.doomed = {}
        self.callers = {}
        self.make_callers()
        for kind in ('private', 'public', 'versioned', 'spare', 'apart'):
            self.make_bucket(self.buckets[kind])
        revoked = self.callers['revoked']
        self.token_of_revoked = xet.Cas(
            daemon, self.buckets['public'].hub, token=revoked.token
        ).token
        self.daemon.admin('keys', 'revoke', revoked.key_id)
        self.make_xorb()
        self.hide_names()

    def word(self, start=''):
        return start + ''.join(self.random.choices('bcdfghjkmnpqrstvwxz', k=12))

    def number(self):
        """An odd one of seven digits."""
        return self.random.randrange(1000001, 1200000, 2)

    def hide(
        self, text, what, bucket=None, place='', verbs=('read', 'list'), shared=True, versions=False
    ):
        """`verbs`: whoever may do one of these at the place may know the text."""
        text = str(text)
        self.secrets.append(
            Secret(
                text.encode(),
                what,
                bucket,
                place,
                verbs,
                shared,
                versions,
                re.compile(rf'(?<![0-9A-Za-z]){re.escape(text)}(?![0-9A-Za-z])'.encode()),
            )
        )
        return text

    # -- callers

    def add_caller(self, name, account, grants=None, **flags):
        arguments = ['--namespace', account, '--name', name]
        for bucket, prefix, verbs in grants or ():
            arguments += ['--grant', f'{bucket}{"/" if prefix else ""}{prefix}={",".join(verbs)}']
        self.callers[name] = Caller(name, account, grants, self.daemon.add_key(*arguments), **flags)

    def make_callers(self):
        self.callers['root'] = Caller(
            'root', 'main', key={'key_id': ROOT_ID, 'secret': '', 'token': ROOT_TOKEN}, root=True
        )
        self.callers['anonymous'] = Caller('anonymous')
        self.add_caller('owner', self.owner)
        self.add_caller('stranger', self.stranger)
        self.add_caller('far', self.far)
        names = [self.buckets[kind].name for kind in (*self.KINDS, 'spare')]
        for verb in ('read', 'write', 'list', 'admin'):
            self.add_caller(
                f'inside {verb}', self.owner, [(name, 'inside/', (verb,)) for name in names]
            )
            doomed = self.doom(f'whole {verb}')
            self.add_caller(
                f'whole {verb}', self.owner, [(name, '', (verb,)) for name in [*names, *doomed]]
            )
        every = ('read', 'write', 'list', 'admin')
        self.add_caller('elsewhere', self.owner, [(name, 'elsewhere/', every) for name in names])
        self.add_caller('apart', self.far, [(self.buckets['apart'].name, '', every)])
        self.add_caller('revoked', self.owner, revoked=True)
        for name in ('root', 'owner'):
            self.doom(name)

    def doom(self, caller):
        """Names of buckets that this caller may make and drop: one for each route that drops."""
        self.doomed[caller] = [f'{self.owner}--{self.word("doom")}' for _ in DROPPING]
        return self.doomed[caller]

    def known_to(self, caller, secret):
        if caller.is_root or secret.what == f'key id of {caller.name}':
            return True
        if secret.bucket is None:
            return False
        if secret.what == 'bucket':
            return caller.has_any(secret.bucket)
        return any(caller.may(verb, secret.bucket, secret.place, secret.shared, secret.versions)
                   for verb in secret.verbs)

    def hide_names(self):
        for bucket in self.buckets.values():
            if bucket.account:
                self.hide(bucket.name.partition('--')[2], 'bucket', bucket)
        for caller in self.callers.values():
            if caller.key_id:
                self.hide(caller.key_id, f'key id of {caller.name}')
        self.hide(self.stranger, 'key id of stranger')
        self.unknown = {name: [s for s in self.secrets if not self.known_to(caller, s)]
                        for name, caller in self.callers.items()}

    def told(self, caller, sent, reply):
        """What the reply says that the caller may not know and did not say himself."""
        text = reply.head + b'\n' + reply.body
        return [(s.what, s.bucket and s.bucket.kind, s.place, s.text.decode())
                for s in self.unknown[caller.name]
                if s.text in text and s.text not in sent and s.pattern.search(text)]

    # -- what there is

    def ask(self, method, target, body=None, headers=None, status=(200, 201, 202, 204)):
        reply = self.daemon.request(method, target, body, headers, connection=self.connection)
        assert reply.status in status, (method, target, reply.status, reply.body)
        return reply

    def make_bucket(self, bucket):
        """Root's requests made it: the Hub's way of making one for another account."""
        self.connection = self.daemon.connect()
        self.ask(
            'POST', f'/api/buckets/{bucket.hub}', json.dumps({'private': not bucket.is_public})
        )
        if bucket.kind == 'versioned':
            self.ask('PUT', f'/{bucket.name}?versioning',
                     '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>')
        tag = self.hide(self.word(), 'tag of a bucket', bucket, '', ('list',), shared=False)
        self.ask('PUT', f'/{bucket.name}?tagging',
                 f'<Tagging><TagSet><Tag><Key>k</Key><Value>{tag}</Value></Tag></TagSet></Tagging>')
        rule = self.hide(self.word(), 'lifecycle rule', bucket, '', ('list',), shared=False)
        self.ask(
            'PUT',
            f'/{bucket.name}?lifecycle',
            '<LifecycleConfiguration><Rule><Filter><Prefix>none/</Prefix></Filter>'
            f'<ID>{rule}</ID><Status>Enabled</Status><Expiration><Days>9</Days></Expiration>'
            '</Rule></LifecycleConfiguration>',
        )
        for place in PLACES:
            self.make_object(bucket, place)
            self.make_upload(bucket, place)
            self.make_run(bucket, place)
        self.connection.close()

    def make_xorb(self):
        """Sent and registered by the owner for the private bucket."""
        cas = xet.Cas(self.daemon, self.buckets['private'].hub, token=self.callers['owner'].token)
        self.xorb = xet.Xorb([self.random.randbytes(9001), self.random.randbytes(9003)])
        assert cas.put_xorb(self.xorb).status == 200
        assert cas.put_shard(xet.shard_of(self.xorb)).status == 200

    def make_object(self, bucket, place):
        key = f'{place}/' + self.hide(self.word(), 'key', bucket, f'{place}/')
        bucket.keys[place] = key
        if bucket.kind == 'versioned':
            bucket.facts[place, 'old'] = self.put_version(bucket, place, key, 'old ', True)
        bucket.facts[place] = self.put_version(bucket, place, key, '', False)

    def put_version(self, bucket, place, key, prefix, versions):
        data = self.random.randbytes(self.number())
        where = {'bucket': bucket, 'place': f'{place}/', 'versions': versions}
        meta, tag = self.word(), self.word()
        reply = self.ask(
            'PUT',
            f'/{bucket.name}/{quote(key)}',
            data,
            {'x-amz-meta-note': meta, 'x-amz-tagging': f'k={tag}'},
        )
        pieces = xet.chunks(data)
        facts = {
            'size': len(data),
            'etag': hashlib.md5(data).hexdigest(),
            'digest': reply.headers['x-deltabucket-digest'].partition(':')[2],
            'hash': xet.text(xet.file_hash((xet.chunk_hash(p), len(p)) for p in pieces)),
            'checksum': reply.headers['x-amz-checksum-crc64nvme'],
            'version': reply.headers['x-amz-version-id'],
            'chunk': xet.text(xet.chunk_hash(pieces[0])),
        }
        for name in ('size', 'etag', 'digest', 'hash', 'checksum', 'version'):
            if facts[name]:
                verbs = (
                    ('read', 'list', 'admin') if name == 'version' else ('read', 'list')
                )  # an ACL's reply names it
                self.hide(facts[name], f'{prefix}{name} of an object', verbs=verbs, **where)
        self.hide(meta, f'{prefix}metadata of an object', verbs=('read',), **where)
        self.hide(
            tag,
            f'{prefix}tag of an object',
            verbs=('read',),
            shared=False,
            **{**where, 'versions': False},
        )
        return facts

    def make_upload(self, bucket, place):
        key = f'{place}/' + self.hide(
            self.word(), 'key of an upload', bucket, f'{place}/', ('list', 'write')
        )
        upload = tree(self.ask('POST', f'/{bucket.name}/{key}?uploads')).findtext('UploadId')
        self.hide(upload, 'upload id', bucket, f'{place}/', ('list', 'write'))
        data = self.random.randbytes(self.number())
        part = self.ask('PUT', f'/{bucket.name}/{key}?partNumber=1&uploadId={upload}', data)
        self.hide(len(data), 'size of a part', bucket, f'{place}/', ('write',), shared=False)
        self.hide(
            part.headers['ETag'].strip('"'),
            'etag of a part',
            bucket,
            f'{place}/',
            ('write',),
            shared=False,
        )
        bucket.facts[place, 'upload'] = (key, upload)

    def make_run(self, bucket, place):
        run = Run(self.daemon, place, bucket.name)
        where = {'bucket': bucket, 'place': f'{place}/'}
        label, pin, replica, hook, deployment = (self.word() for _ in range(5))
        body = self.first_step(run, label)
        assert run.publish(0, body).status == 201
        self.hide(label, 'label of a step', verbs=('read', 'write'), **where)
        self.hide(
            body['digest'].partition(':')[2],
            'digest of a step',
            verbs=('read', 'write', 'list'),
            **where,
        )
        for target, said in (
            (f'/pins/{pin}', {'step': 0}),
            (f'/replicas/{replica}', {'state': 'ready', 'step': 0}),
            ('/settings', {'webhook': f'http://hooks.invalid/{hook}', 'hot_load': deployment}),
        ):
            reply = run.call('PUT', target, said)
            assert reply.status == 200, reply.body
        self.hide(pin, 'pin', verbs=('read', 'write'), **where)
        self.hide(replica, 'replica', verbs=('read', 'write'), shared=False, **where)
        self.hide(hook, 'webhook', verbs=('write',), shared=False, **where)
        self.hide(deployment, 'deployment', verbs=('read', 'write', 'list'), **where)
        self.hide(
            run.call('GET', '/webhook').json()['secret'],
            "a webhook's secret",
            verbs=('write',),
            shared=False,
            **where,
        )
        bucket.runs[place] = {
            'body': body,
            'pin': pin,
            'replica': replica,
            'deployment': deployment,
            'part': self.part_of(run),
        }

    def first_step(self, run, label):
        """With a checkpoint that no other run has."""
        tensors = {name: self.random.randbytes(8) for name in 'abcd'}
        stored = run.put(f'{run.name}/a0', shard(tensors))
        run.base_digest = run.checkpoint_digest(tensors)
        return {
            'step': 0,
            'epoch': run.epoch,
            'label': label,
            'digest': run.base_digest,
            'files': [{'path': FILE, 'size': stored['size'], 'digest': stored['digest']}],
            'forms': [{'kind': 'anchor', 'format': 'full', 'objects': [dict(stored, name=FILE)]}],
        }

    def part_of(self, run):
        """A rank's part of a step 1 that never becomes whole."""
        tensors = weights(1)
        data = shard({name: tensors[name] for name in 'ab'})
        stored = run.put(f'{run.name}/part', data)
        return {
            'epoch': run.epoch,
            'base': {'step': 0, 'digest': run.base_digest},
            'files': [{'path': 'part', 'size': stored['size'], 'digest': stored['digest']}],
            'forms': [{'kind': 'anchor', 'format': 'full', 'objects': [dict(stored, name='part')]}],
            'tensors': run.tensor_digests({name: tensors[name] for name in 'ab'}),
        }
