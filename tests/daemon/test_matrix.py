"""Every route and every kind of caller: nobody does, or learns, more than docs/protocol and
OPERATIONS.md ("What each caller can do") say.

The routes are those that the server has, so a route that nobody has judged here fails. For each
there is a request that succeeds for those that may: it is made by every caller, on every kind of
bucket, inside and outside of what the keys' grants name. Who may is worked out from the documents
(tests/support/matrix.py). No reply may hold anything that its reader may not know.
"""

import collections
import concurrent.futures
import itertools
import json
import re
import threading
import unittest

from tests.support.daemon import Daemon
from tests.support.matrix import ALLOWED, DENIED, PLACES, World, face_of, judge, refusal, routes
from tests.support.matrix_cells import (
    COMPLETE,
    NAMES,
    NOT_THERE,
    OLD_VERSIONS,
    OUTCOMES,
    PLACED,
    PLANS,
    Cell,
    is_misplaced,
    is_missing,
    outcome_by_rule,
)
from tests.support.signer import Signer, form_body
from tests.support.wire import Wires

THREADS_MEET = False

THREADS = 8
SHOWN = 3  # faults of each route
STANDING_SETTINGS = (
    'acl cors lifecycle policy publicAccessBlock ownershipControls tagging versioning'.split()
)

# Who is refused by these is refused only when the body is there.
TAKES_BODY_FIRST = {
    'PostObject',      # who asks, and for which key, stands in the form
    'MoveHubBucket',   # which bucket is meant stands in the body
    'BatchFiles',      # which keys are meant: asked of all that may change some of the bucket
}


class Case(unittest.TestCase):
    """A daemon and a world of its own."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False, arguments=['--webhook-hosts', 'hooks.invalid'])
        cls.daemon.start()
        cls.world = World(cls.daemon)
        cls.world.count = itertools.count()
        cls.wires = Wires(cls.daemon.port)
        cls.before = cls.standing()
        cls.token_of_revoked = cls.world.token_of_revoked
        cls.lock = threading.Lock()

    @classmethod
    def tearDownClass(cls):
        cls.wires.close()
        cls.daemon.__exit__()

    @classmethod
    def as_root(cls, method, target, body=None, headers=(), statuses=(200, 201, 202, 204)):
        token = cls.world.callers['root'].token
        reply = cls.wires.mine().ask(
            method, target, body, [('Authorization', f'Bearer {token}'), *headers]
        )
        if reply.status not in statuses:
            raise AssertionError(f'{method} {target}: {reply.head} {reply.body}')
        return reply

    @classmethod
    def standing(cls):
        """What no cell may change: whoever is allowed to is given something of his own."""
        found = {}
        for kind in ('private', 'public', 'versioned', 'apart'):
            bucket = cls.world.buckets[kind]
            for name in STANDING_SETTINGS:
                reply = cls.as_root('GET', f'/{bucket.name}?{name}', statuses=(200, 404))
                found[kind, name] = re.sub(rb'<RequestId>.*</HostId>', b'', reply.body)
            for place in PLACES:
                head = cls.as_root('HEAD', f'/{bucket.name}/{bucket.keys[place]}')
                found[kind, place] = [
                    head.header(name)
                    for name in ('etag', 'x-amz-version-id', 'x-amz-tagging-count')
                ]
                key, upload = bucket.facts[place, 'upload']
                found[kind, place, 'upload'] = cls.as_root(
                    'GET', f'/{bucket.name}/{key}?uploadId={upload}'
                ).body
                run = f'/v1/runs/{bucket.name}/{place}'
                found[kind, place, 'step'] = json.loads(cls.as_root('GET', f'{run}/steps/0').body)[
                    'digest'
                ]
                found[kind, place, 'pin'] = cls.as_root(
                    'GET', f'{run}/pins/{bucket.runs[place]["pin"]}'
                ).body
        return found

    def cells(self, face, names=None):
        for route in routes():
            if face_of(route.pattern) == face and (names is None or route.name in names):
                yield from self.cells_of(route)

    def cells_of(self, route):
        if is_missing(route) or is_misplaced(route):
            yield from self.combine(route, route.methods[:1], ('private',), ('inside',))
            return
        has_bucket = '{bucket}' in route.pattern or route.name in PLACED
        kinds = self.world.KINDS if has_bucket else (None,)
        places = ('',)
        if route.access in ('bucket list', 'bucket scan'):
            places = ('', *PLACES)
        elif (
            '{key*}' in route.pattern
            or '{prefix*}' in route.pattern
            or '{run}' in route.pattern
            or route.name in PLACED
        ):
            places = PLACES
        yield from self.combine(route, route.methods, kinds, places)

    def combine(self, route, methods, kinds, places):
        for method, kind, place in itertools.product(methods, kinds, places):
            for caller in self.world.callers.values():
                bucket = self.world.buckets[kind] if kind else None
                yield Cell(self.world, route, method, bucket, place, caller)
                if (
                    kind == 'versioned'
                    and route.name in OLD_VERSIONS
                    and method in OLD_VERSIONS[route.name]
                ):
                    yield Cell(self.world, route, method, bucket, place, caller, 'old')

    def prepare(self, cell):
        """False: there is nothing to ask."""
        own = None if is_missing(cell.route) else OUTCOMES.get(cell.name)
        cell.outcome = own(cell) if own else outcome_by_rule(cell)
        if cell.bucket and cell.place:
            cell.key = cell.bucket.keys.get(cell.place, f'{cell.place}/absent')
        if cell.variant == 'old':
            cell.query['versionId'] = cell.bucket.facts[cell.place, 'old']['version']
        if is_missing(cell.route):
            cell.ok = (501,)
            return True
        if is_misplaced(cell.route):
            cell.ok = (400, 405)
            return True
        return self.plan(cell) is not False

    def plan(self, cell):
        plan = PLANS.get(cell.name)
        return plan(self, cell) if plan else None

    def spare(self, cell):
        """What changes a bucket is done to another one than those that all else is asked of."""
        if not cell.is_allowed:
            return True
        if cell.bucket.kind != 'private':
            return False
        cell.bucket = self.world.buckets['spare']
        cell.key = cell.bucket.keys.get(cell.place)
        return True

    # -- asking

    def headers_of(self, cell, target, body, auth):
        caller, extra = cell.caller, {name: str(value) for name, value in cell.headers.items()}
        if cell.token:
            return [*extra.items(), ('Authorization', f'Bearer {cell.token}')]
        if auth == 'bearer' or not caller.token or caller.is_root:
            return [
                *extra.items(),
                *([('Authorization', f'Bearer {caller.token}')] if caller.token else []),
            ]
        signer = Signer(f'127.0.0.1:{self.daemon.port}', caller.key_id, caller.secret)
        signed = signer.headers(cell.method, target, body or b'', extra=extra)
        return [(name, value) for name, value in signed.items() if name != 'host']

    def check(self, cell, auth='bearer'):
        """The faults of one cell, as texts."""
        if not self.prepare(cell):
            return []
        if cell.before and cell.is_allowed:
            cell.before()
        target = cell.target()
        body = cell.body.encode() if isinstance(cell.body, str) else cell.body
        wire = self.wires.mine()
        if body is None and cell.method in ('PUT', 'POST'):
            body = b''
        reply = wire.ask(cell.method, target, body, self.headers_of(cell, target, body, auth))
        faults = self.judge_reply(cell, reply)
        faults += [f'tells {told}' for told in self.world.told(cell.caller, wire.sent, reply)]
        if not cell.is_allowed and cell.route.body != 'no body' and not cell.caller.is_root:
            faults += self.check_head(cell, target, auth, body)
        return [
            f'{cell}: {fault} ({reply.head.splitlines()[0].decode()} {reply.body[:300]})'
            for fault in faults
        ]

    def judge_reply(self, cell, reply):
        if cell.is_allowed:
            if reply.status not in cell.ok:
                return [f'may, and got {reply.status}']
            return list(cell.after(reply) or ()) if cell.after else []
        wanted = cell.refusal or refusal(cell.face, cell.caller, cell.bucket, cell.outcome)
        if (reply.status, self.code(cell, reply)) == wanted or \
                (cell.method == 'HEAD' and reply.status == wanted[0]):
            return []
        if reply.status in cell.codes:
            return list(cell.after(reply) or ()) if cell.after and reply.status == 200 else []
        return [f'{cell.outcome}: {wanted} is due']

    def code(self, cell, reply):
        if cell.face == 's3':
            found = re.search(rb'<Code>(\w+)</Code>', reply.body)
            return found and found[1].decode()
        if cell.face in ('steps', 'admin'):
            return (
                json.loads(reply.body)['error']['code']
                if reply.body.startswith(b'{"error":{')
                else None
            )
        return reply.header('x-error-code')

    def check_head(self, cell, target, auth, body):
        """Refused before the body is taken."""
        headers = self.headers_of(cell, target, body, auth)
        wire = self.wires.mine()
        expecting = wire.head_only(
            cell.method, target, headers, expects=True, length=max(len(body), 1)
        )
        if expecting is None:
            with self.lock:
                self.took_first.setdefault(cell.name, cell)
            return []
        faults = self.judge_reply(cell, expecting)
        if cell.route.body == 'stream' and cell.name not in TAKES_BODY_FIRST:
            huge = wire.head_only(
                cell.method, target, headers, expects=False, length=(64 << 20) + 1
            )
            faults += self.judge_reply(cell, huge)
        return [f'asked with the head alone: {fault}' for fault in faults]

    def callers(self, *without):
        return [caller for caller in self.world.callers.values() if caller.name not in without]


class Matrix(Case):
    def check_safely(self, cell, auth):
        try:
            return self.check(cell, auth)
        except (OSError, AssertionError) as fault:
            return [f'{cell}: {fault!r}']

    def check_all(self, cells, auth='bearer'):
        cells = list(cells)
        self.took_first = {}
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(lambda cell: self.check_safely(cell, auth), cells))
        faults = collections.defaultdict(list)
        for cell, texts in zip(cells, found):
            faults[cell.name] += texts
        shown = [
            f'{name}: {len(texts)}\n    ' + '\n    '.join(texts[:SHOWN])
            for name, texts in faults.items()
            if texts
        ]
        self.assertFalse(shown, '\n' + '\n'.join(shown))
        self.assertGreater(len(cells), 0)
        self.assertEqual(self.standing(), self.before)
        asked = {cell.name for cell in cells}
        self.assertEqual(set(self.took_first), TAKES_BODY_FIRST & asked, self.took_first)

    # -- the tests

    def test_every_route_has_its_rule(self):
        expected = {(name, access) for access, names in NAMES.items() for name in names.split()}
        expected |= {(name, 'signed in') for name in NOT_THERE}
        self.assertEqual({(route.name, route.access) for route in routes()}, expected)

    def test_s3(self):
        self.check_all(self.cells('s3'))

    def test_steps(self):
        cells = list(self.cells('steps'))
        opening = [cell for cell in cells if cell.name == 'OpenRun']
        # Last: it fences what the others publish.
        self.check_all(cell for cell in cells if cell.name != 'OpenRun')
        self.check_all(opening)

    def test_admin(self):
        self.check_all(self.cells('admin'))

    def test_hub(self):
        self.check_all(self.cells('hub'))

    def test_xet(self):
        self.check_all(itertools.chain(self.cells('xet'), self.token_cells()))

    def token_cells(self):
        """The same with the tokens that each caller can get for each bucket, and with no token."""
        own = [route for route in routes() if route.access.startswith('token')]
        for caller, kind, what in itertools.product(
            self.world.callers.values(), ('private', 'public', 'versioned'), ('read', 'write')
        ):
            bucket = self.world.buckets[kind]
            token = self.token_of(caller, bucket, what)
            for route, place in itertools.product(own if token else (), PLACES):
                for variant in (what, f'{what} old') if kind == 'versioned' else (what,):
                    cell = Cell(self.world, route, route.methods[0], bucket, place, caller, variant)
                    cell.token = token
                    yield cell
        for route, token in itertools.product(own, ('xet_none', self.token_of_revoked)):
            cell = Cell(
                self.world,
                route,
                route.methods[0],
                self.world.buckets['public'],
                'inside',
                self.world.callers['revoked'],
            )
            cell.token = token
            yield cell

    def token_of(self, caller, bucket, what):
        """None for whoever gets none, which test_hub judges."""
        headers = [('Authorization', f'Bearer {caller.token}')] if caller.token else []
        reply = self.wires.mine().ask(
            'GET', f'/api/buckets/{bucket.hub}/xet-{what}-token', None, headers
        )
        return json.loads(reply.body)['accessToken'] if reply.status == 200 else None

    def test_signatures(self):
        sample = {
            'GetObject',
            'PutObject',
            'DeleteObject',
            'ListObjectsV2',
            'GetBucketPolicy',
            'ListBuckets',
            'DeleteObjects',
        }
        self.check_all(self.cells('s3', sample), auth='v4')


class Handlers(Case):
    """What handlers judge themselves, and what replies tell."""

    def say(self, caller, method, target, body=None, headers=None):
        """A request that is in no table. `told`: what its reply tells and may not."""
        own = [('Authorization', f'Bearer {caller.token}')] if caller.token else []
        wire = self.wires.mine()
        body = (
            body.encode()
            if isinstance(body, str)
            else b'' if body is None and method in ('PUT', 'POST') else body
        )
        reply = wire.ask(method, target, body, [*own, *(headers or {}).items()])
        reply.told = self.world.told(caller, wire.sent, reply)
        return reply

    def check_said(self, caller, reply, outcome, bucket, ok=(200,), what=None):
        self.assertEqual(reply.told, [], (caller.name, what, reply.body))
        if outcome == ALLOWED:
            self.assertIn(reply.status, ok, (caller.name, what, reply.body))
        else:
            self.assertEqual(
                reply.status,
                refusal('s3', caller, bucket, outcome)[0],
                (caller.name, what, reply.body),
            )

    def desk(self, caller):
        """Where a caller puts things: a bucket and a key that he may write if any."""
        buckets = self.world.buckets
        if caller.name in ('far', 'apart'):
            return buckets['apart'], f'inside/own-{next(self.world.count)}'
        place = 'elsewhere' if caller.name == 'elsewhere' else 'inside'
        return buckets['spare'], f'{place}/own-{next(self.world.count)}'

    def sources(self):
        """(bucket, place, whether an older version, key, version)."""
        for kind, place in itertools.product(('private', 'public', 'versioned', 'apart'), PLACES):
            bucket = self.world.buckets[kind]
            yield bucket, place, False, bucket.keys[place], None
            if (place, 'old') in bucket.facts:
                yield bucket, place, True, bucket.keys[place], bucket.facts[place, 'old']['version']
        yield self.world.buckets['absent'], 'inside', False, 'inside/none', None

    def test_copies(self):
        for caller in self.callers('revoked'):
            for bucket, place, old, key, version in self.sources():
                desk, own = self.desk(caller)
                outcome = judge(caller, desk, 'write', own)
                if outcome == ALLOWED:
                    outcome = judge(caller, bucket, 'read', key, versions=old)
                upload = re.search(
                    rb'<UploadId>([^<]+)<',
                    self.as_root('POST', f'/{desk.name}/{own}?uploads', b'').body,
                )[1].decode()
                source = f'{bucket.name}/{key}' + (f'?versionId={version}' if old else '')
                right = bucket.facts[place]['etag'] if bucket.facts else 'x'
                for query, condition in itertools.product(
                    ('', f'?partNumber=1&uploadId={upload}'), ({}, right, 'x')
                ):
                    headers = {'x-amz-copy-source': source}
                    if condition:
                        headers['x-amz-copy-source-if-match'] = condition
                    reply = self.say(caller, 'PUT', f'/{desk.name}/{own}{query}', headers=headers)
                    self.check_said(
                        caller, reply, outcome, bucket, (200, 412), (source, query, condition)
                    )
                    self.assertTrue(reply.status != 412 or condition)

    def test_conditions_tell_nothing(self):
        told = set()
        conditions = [
            ('PUT', name, 'x', value)
            for name, value in (('If-Match', '"x"'), ('If-None-Match', '*'))
        ]
        conditions += [
            ('DELETE', name, None, value)
            for name, value in (
                ('If-Match', '"x"'),
                ('x-amz-if-match-size', '7'),
                ('x-amz-if-match-last-modified-time', '2001-01-01T00:00:00Z'),
            )
        ]
        for kind, name in itertools.product(
            ('private', 'public', 'versioned'), ('inside write', 'whole write')
        ):
            bucket, caller = self.world.buckets[kind], self.world.callers[name]
            target = f'/{bucket.name}/{bucket.keys["inside"]}'
            for method, header, body, value in conditions:
                reply = self.say(caller, method, target, body, {header: value})
                self.assertEqual(reply.status, 412, (method, header, reply.body))
                told.update([f'{method} {header}'] if reply.told else [])
            for element, value in (
                ('ETag', 'x'),
                ('Size', '7'),
                ('LastModifiedTime', 'Mon, 01 Jan 2001 00:00:00 GMT'),
            ):
                reply = self.say(
                    caller,
                    'POST',
                    f'/{bucket.name}?delete',
                    f'<Delete><Object><Key>{bucket.keys["inside"]}</Key>'
                    f'<{element}>{value}</{element}></Object></Delete>',
                )
                self.assertIn(b'<Code>PreconditionFailed</Code>', reply.body)
                told.update([f'DeleteObjects {element}'] if reply.told else [])
            opened = self.say(caller, 'POST', f'{target}?uploads')
            upload = re.search(rb'<UploadId>([^<]+)<', opened.body)[1].decode()
            part = self.say(
                caller, 'PUT', f'{target}?partNumber=1&uploadId={upload}', 'part'
            ).header('etag')
            for header, value in (('If-Match', '"x"'), ('If-None-Match', '*')):
                reply = self.say(
                    caller,
                    'POST',
                    f'{target}?uploadId={upload}',
                    COMPLETE.format(part),
                    {header: value},
                )
                self.assertEqual(reply.status, 412, reply.body)
                told.update([f'complete {header}'] if reply.told else [])
        self.assertEqual(self.standing(), self.before)
        self.assertEqual(told, set())

    def test_owners_are_not_tried(self):
        """x-amz-expected-bucket-owner makes no difference to whoever is refused anyhow."""
        told = set()
        callers = [self.world.callers[name] for name in ('anonymous', 'stranger', 'elsewhere')]
        for cell in self.cells('s3'):
            if (
                cell.caller not in callers
                or not cell.bucket
                or cell.bucket.kind != 'private'
                or not self.prepare(cell)
            ):
                continue
            if cell.is_allowed or cell.method == 'OPTIONS':
                continue
            replies = [
                self.say(
                    cell.caller,
                    cell.method,
                    cell.target(),
                    cell.body,
                    {**cell.headers, 'x-amz-expected-bucket-owner': owner},
                )
                for owner in (self.world.owner, 'nobody')
            ]
            if self.alike(replies[0]) != self.alike(replies[1]):
                told.add(cell.name)
        self.assertEqual(told, set())

    def alike(self, reply, bucket=None):
        """A reply without what differs anyhow."""
        text = reply.head + b'\n' + reply.body
        if bucket:
            text = text.replace(bucket.hub.encode(), b'BUCKET').replace(
                bucket.name.encode(), b'BUCKET'
            )
        text = re.sub(rb'(?m)^(Date|Content-Length): .*$', b'', text)
        return re.sub(rb'[0-9a-f]{32}', b'ID', text)

    def test_the_hub_hides(self):
        """A bucket that somebody may not know of is like one that is not there."""
        asked = collections.defaultdict(dict)
        for cell in self.cells(
            'hub', {route.name for route in routes() if '{namespace}/{bucket}' in route.pattern}
        ):
            if cell.bucket.kind not in ('private', 'absent') or cell.caller.has_any(
                self.world.buckets['private']
            ):
                continue
            if cell.caller.grants is None and cell.caller.account == self.world.owner:
                continue
            self.assertTrue(self.prepare(cell))
            cell.key = f'{cell.place}/none'
            reply = self.say(cell.caller, cell.method, cell.target(), cell.body, cell.headers)
            asked[cell.name, cell.route.pattern, cell.method, cell.place, cell.caller.name][
                cell.bucket.kind
            ] = self.alike(reply, cell.bucket)
        self.assertGreater(len(asked), 60)
        for cell, replies in asked.items():
            self.assertEqual(replies['private'], replies['absent'], cell)

    def test_batches(self):
        """Bytes come into a bucket by their hash only where the caller may read them."""
        for caller in self.callers('revoked', 'anonymous'):
            for bucket, place, old, key, _ in self.sources():
                if bucket.account is None:
                    continue
                desk, own = self.desk(caller)
                file = bucket.facts[(place, 'old') if old else place]['hash']
                line = {
                    'type': 'copyFile',
                    'path': own,
                    'xetHash': file,
                    'sourceRepoType': 'bucket',
                    'sourceRepoId': bucket.hub,
                }
                may = caller.may('write', desk, own) and caller.may('read', bucket, key) and not old
                self.batch(caller, desk, line, may)
                # Where it lies already, it is enough that it does.
                path = f'{place}/again-{next(self.world.count)}'
                may = caller.may('write', bucket, path) and caller.may(
                    'read', bucket, key, versions=old
                )
                if not (may and old):  # else it would be current
                    self.batch(
                        caller, bucket, {'type': 'addFile', 'path': path, 'xetHash': file}, may
                    )

    def batch(self, caller, bucket, line, may):
        reply = self.say(
            caller, 'POST', f'/api/buckets/{bucket.hub}/batch', json.dumps(line) + '\n'
        )
        self.assertEqual(reply.told, [], (caller.name, line, reply.body))
        self.assertIn(
            reply.status, (200,) if may else (403, 404, 422), (caller.name, line, reply.body)
        )

    def test_runs_take_nothing_that_their_writer_may_not_read(self):
        caller, bucket = self.world.callers['inside write'], self.world.buckets['private']
        run, key, facts = f'/v1/runs/{bucket.name}/inside', bucket.keys, bucket.facts
        body = bucket.runs['inside']['body']

        def manifest(place, **changes):
            thing = {
                'name': 'model.safetensors',
                'key': key[place],
                'size': 7,
                'digest': 'xxh3-128:' + '0' * 32,
                **changes,
            }
            files = [
                {'path': 'model.safetensors', 'size': thing['size'], 'digest': thing['digest']}
            ]
            forms = [{'kind': 'anchor', 'format': 'full', 'objects': [thing]}]
            base = {'step': 0, 'digest': body['digest']}
            return json.dumps(
                {**body, 'step': 1, 'base': base, 'epoch': 1000, 'files': files, 'forms': forms}
            )

        right = {'size': facts['inside']['size'], 'digest': 'xxh3-128:' + facts['inside']['digest']}
        epoch = json.loads(self.as_root('GET', run).body)['epoch']
        for method, target, said, statuses in (
            (
                'POST',
                f'/v1/runs/{bucket.name}/inside',
                '{"fork":{"run":"outside","step":0}}',
                (403, 409),
            ),
            ('PUT', f'{run}/settings', '{"adopt_prefix":"outside/"}', (403,)),
            ('PUT', f'{run}/settings', '{"hot_load_prefix":"outside/"}', (403,)),
            ('PUT', f'{run}/steps/1', manifest('outside'), (403,)),
            ('PUT', f'{run}/steps/1', manifest('inside').replace('1000', str(epoch)), (422, 409)),
            (
                'PUT',
                f'{run}/steps/1',
                manifest('inside', **{**right, 'size': 7}).replace('1000', str(epoch)),
                (422, 409),
            ),
            (
                'PUT',
                f'{run}/steps/1',
                manifest('inside', digest='xxh3-128:' + '0' * 32, size=right['size']).replace(
                    '1000', str(epoch)
                ),
                (422, 409),
            ),
        ):
            reply = self.say(caller, method, target, said)
            self.assertIn(reply.status, statuses, reply.body)
            self.assertEqual(reply.told, [], (said, reply.body))

    def test_nobody_makes_public_but_administrators(self):
        bucket, public = self.world.buckets['spare'], {'x-amz-acl': 'public-read'}
        for caller in self.callers('revoked'):
            may_write, may_admin = (
                caller.may(verb, bucket, 'inside/x', shared=False) for verb in ('write', 'admin')
            )
            for method, query, needs in (
                ('PUT', '', may_write and may_admin),
                ('POST', '?uploads', may_write and may_admin),
                ('PUT', '?acl', may_admin),
            ):
                own = f'inside/shown-{next(self.world.count)}'
                self.as_root('PUT', f'/{bucket.name}/{own}', b'x')
                reply = self.say(caller, method, f'/{bucket.name}/{own}{query}', headers=public)
                self.assertEqual(
                    reply.status, 200 if needs else 403, (caller.name, method, query, reply.body)
                )
            kind, form = form_body(
                {'key': f'inside/form-{next(self.world.count)}', 'acl': 'public-read'}, b'x'
            )
            reply = self.say(caller, 'POST', f'/{bucket.name}', form, {'Content-Type': kind})
            self.assertEqual(
                reply.status, 204 if may_write and may_admin else 403, (caller.name, reply.body)
            )

    def test_events(self):
        """Each hears of the files that he may list."""
        for kind in ('private', 'public', 'versioned'):
            bucket = self.world.buckets[kind]
            stream = f'/api/buckets/{bucket.hub}/events'
            cursor = re.search(rb'"cursor":"([^"]+)"', self.as_root('GET', stream).body)[1].decode()
            keys = {place: f'{place}/{self.world.word()}' for place in PLACES}
            for key in keys.values():
                self.as_root('PUT', f'/{bucket.name}/{key}', b'x')
            for caller in self.callers('revoked'):
                reply = self.say(caller, 'GET', f'{stream}?cursor={cursor}')
                self.assertEqual(reply.told, [], caller.name)
                self.assertEqual(reply.status == 200, caller.has_any(bucket), caller.name)
                for place, key in keys.items():
                    self.assertEqual(
                        key.encode() in reply.body,
                        caller.may('list', bucket, f'{place}/'),
                        (caller.name, kind, place),
                    )

    def test_who_makes_buckets(self):
        for caller in self.callers('revoked'):
            for account in (self.world.owner, self.world.stranger, self.world.far):
                name = f'{account}--{self.world.word("made")}'
                acts = caller.token and caller.grants is None
                made = [
                    self.say(caller, 'PUT', f'/{name}').status,
                    self.say(
                        caller, 'POST', f'/api/buckets/{account}/{self.world.word("made")}'
                    ).status,
                ]
                self.assertEqual(
                    made[0] == 200,
                    bool(acts and caller.account == account),
                    (caller.name, name, made),
                )
                self.assertEqual(
                    made[1] == 200,
                    bool(acts and (caller.is_root or caller.account == account)),
                    (caller.name, name, made),
                )


if __name__ == '__main__':
    unittest.main()
