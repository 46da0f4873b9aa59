"""Some hundred changes of all kinds for a server that is recorded, each noted in a ledger.

Several clients make them side by side. The server is stopped and started on the way, once by its
end in the middle of a change. No body comes twice, but for those that are meant to.
"""
import concurrent.futures
import contextlib
import functools
import http.client
import json
import os
import random
import subprocess
import tempfile
import time

from tests.support import xet
from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import Daemon
from tests.support.disk_log import KILL_AT, recorded
from tests.support.disk_state import inodes
from tests.support.ledger import ANYTHING, Ledger, value_of
from tests.support.s3 import quote, tree

# What the server does by itself it does at once, so that it is under way at many cuts.
ARGUMENTS = ['--gc-interval', '1', '--gc-rate', '0', '--gc-live-percent', '90', '--step-rate', '0',
             '--derive-rate', '0']
# The recorded server's alone: a judge reads twice, and nothing may expire meanwhile.
EXPIRE = ['--lifecycle-interval', '1', '--lifecycle-day', '1']
SYNC_US = 1500  # as an SSD: other writes come meanwhile, and commits gather
SIZES = (10, 900, 3_000, 20_000, 70_000, 90_000, 250_000)
LARGE = 1_200_000
PART = 5 << 20
FULL = 70 << 20  # more than a pack takes
WRITERS, KEYS = 3, 10
STEPS = 7
RUN = 'steps/r'
KILL_RECORDS = 500, 1100  # a start has far fewer
LOG_SECONDS = 10
PLACE = 'backup'  # of backups, beside the data folder

VERSIONING = '<VersioningConfiguration><Status>{}</Status></VersioningConfiguration>'
CORS = ('<CORSConfiguration><CORSRule><AllowedMethod>{}</AllowedMethod>'
        '<AllowedOrigin>https://a.example</AllowedOrigin></CORSRule></CORSConfiguration>')
LIFECYCLE = ('<LifecycleConfiguration><Rule><ID>a</ID><Status>Enabled</Status>'
             '<Filter><Prefix>none/</Prefix></Filter><Expiration><Days>30</Days></Expiration>'
             '</Rule></LifecycleConfiguration>')
EXPIRING = ('<LifecycleConfiguration><Rule><ID>a</ID><Status>Enabled</Status>'
            '<Filter><Prefix></Prefix></Filter><Expiration><Days>1</Days></Expiration>'
            '</Rule></LifecycleConfiguration>')
SETTINGS = (('versioning', VERSIONING.format('Enabled')), ('cors', CORS.format('GET')),
            ('lifecycle', LIFECYCLE), ('cors', CORS.format('PUT')),
            ('versioning', VERSIONING.format('Suspended')))


class Client:
    """One connection, and the changes made by it. Facts are those that power_judge.py reads."""

    def __init__(self, daemon, ledger, seed):
        self.daemon, self.ledger = daemon, ledger
        self.source = random.Random(seed)
        self.connection = daemon.connect()

    def close(self):
        self.connection.close()

    def ask(self, method, target, body=None, headers=None):
        reply = self.daemon.request(method, target, body, headers, connection=self.connection)
        assert reply.status in (200, 204), (method, target, reply.status, reply.body)
        return reply

    def change(self, facts, method, target, body=None, headers=None, told=lambda reply: None):
        """A request that makes these facts true; `told` gives those that only the reply tells."""
        number = self.ledger.begin(facts)
        reply = self.ask(method, target, body, headers)
        self.ledger.end(number, told(reply))

    def make_bucket(self, name):
        self.change({('bucket', name): True}, 'PUT', f'/{name}')

    def body(self, size):
        """Bytes that were never sent before; now and then half of them zeros, to compress."""
        zeros = size // 2 if self.source.random() < 0.1 else 0
        return self.source.randbytes(size - zeros) + bytes(zeros)


class Writer(Client):
    """Puts, copies and deletes objects under keys of its own."""

    def __init__(self, daemon, ledger, seed, bucket, name, held):
        super().__init__(daemon, ledger, seed)
        self.bucket, self.name = bucket, name
        self.held = held  # {key: body, or None when there is none or it is not confirmed}
        self.last = b''

    def run(self, count):
        changes = {self.put: 50, self.put_large: 2, self.put_like_last: 8, self.copy: 10,
                   self.delete: 12, self.delete_some: 4, self.put_version: 8}
        for _ in range(count):
            self.source.choices(list(changes), list(changes.values()))[0]()

    def run_briefly(self):
        """In a bucket of its own, made for it."""
        self.make_bucket(self.bucket)
        for change in (self.put, self.put, self.put_like_last, self.delete, self.put, self.copy):
            change()

    def key(self):
        return f'{self.name}/{self.source.randrange(KEYS)}'

    def target(self, key):
        return f'/{self.bucket}/{quote(key)}'

    def store(self, key, body, sent, headers=None):
        """`body` is what the key then has; `sent` is None for a copy."""
        self.held[key] = None
        facts = {('object', self.bucket, key): value_of(body)}
        self.change(facts, 'PUT', self.target(key), sent, headers)
        self.held[key] = self.last = body

    def put(self):
        body = self.body(self.source.choice(SIZES))
        self.store(self.key(), body, body)

    def put_large(self):
        body = self.body(LARGE)
        self.store(self.key(), body, body)

    def put_like_last(self):
        """Chunks that are there already, and others."""
        body = self.last[:200_000] + self.body(5_000)
        self.store(self.key(), body, body)

    def copy(self):
        key = self.key()
        sources = sorted(other for other, body in self.held.items() if body and other != key)
        if sources:
            source = self.source.choice(sources)
            self.store(key, self.held[source], None, {'x-amz-copy-source': self.target(source)})

    def delete(self):
        self.drop([self.key()])

    def delete_some(self):
        self.drop(sorted({self.key() for _ in range(4)}))

    def delete_most(self):
        """So that gc has work: packs of which little is left."""
        for number in range(KEYS):
            if self.source.random() < 0.7:
                self.drop([f'{self.name}/{number}'])

    def drop(self, keys):
        self.held.update(dict.fromkeys(keys))
        facts = {('object', self.bucket, key): None for key in keys}
        if len(keys) == 1:
            self.change(facts, 'DELETE', self.target(keys[0]))
        else:
            rows = ''.join(f'<Object><Key>{key}</Key></Object>' for key in keys)
            self.change(facts, 'POST', f'/{self.bucket}?delete', f'<Delete>{rows}</Delete>')

    def put_version(self):
        key, body = f'{self.name}/v', self.body(self.source.choice((500, 40_000)))
        value = value_of(body)

        def told(reply):
            return {('version', 'versioned', key, reply.headers['x-amz-version-id']): value}
        facts = {('object', 'versioned', key): value}
        self.change(facts, 'PUT', f'/versioned/{key}', body, told=told)


class Uploader(Client):
    """Multipart uploads: completed, given up, and left as they are."""

    def run(self):
        upload = self.start('parts/whole')
        value = self.put_parts('parts/whole', upload, [self.body(PART), self.body(120_000)])
        self.complete('parts/whole', upload, value)
        upload = self.start('parts/gone')
        self.put_parts('parts/gone', upload, [self.body(30_000)])
        facts = {self.fact('parts/gone', upload): None}
        self.change(facts, 'DELETE', self.target('parts/gone', upload))
        for size in (800, 150_000):
            upload = self.start(f'parts/left{size}')
            self.put_parts(f'parts/left{size}', upload, [self.body(size)])

    def fact(self, key, upload):
        return 'upload', 'objects', key, upload

    def target(self, key, upload):
        return f'/objects/{key}?uploadId={upload}'

    def start(self, key):
        made = []

        def told(reply):
            made.append(tree(reply).findtext('UploadId'))
            return {self.fact(key, made[0]): {'parts': {}, 'whole': value_of(b'')}}
        self.change({}, 'POST', f'/objects/{key}?uploads', told=told)
        return made[0]

    def put_parts(self, key, upload, bodies):
        """Gives the upload's value."""
        parts, whole, fact = {}, b'', self.fact(key, upload)
        for number, body in enumerate(bodies, 1):
            whole += body

            def told(reply):
                parts[str(number)] = reply.headers['ETag']
                return {fact: {'parts': parts, 'whole': value_of(whole)}}
            target = f'{self.target(key, upload)}&partNumber={number}'
            self.change({fact: ANYTHING}, 'PUT', target, body, told=told)
        return {'parts': parts, 'whole': value_of(whole)}

    def complete(self, key, upload, value):
        rows = ''.join(f'<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>'
                       for number, etag in value['parts'].items())
        body = f'<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>'
        facts = {self.fact(key, upload): None, ('object', 'objects', key): value['whole']}
        self.change(facts, 'POST', self.target(key, upload), body)


class HubClient(Client):
    """Files by way of xorbs, shards and batches."""

    def run(self, names):
        cas = xet.Cas(self.daemon, 'main/hub', connection=self.connection)
        for name in names:
            body = self.body(self.source.choice((2_000, 60_000, 150_000)))
            file_hash, _, _ = cas.upload(body)
            line = {'type': 'addFile', 'path': name, 'xetHash': xet.text(file_hash), 'mtime': 1}
            self.batch({('object', 'hub', name): value_of(body)}, [line])

    def delete(self, names):
        lines = [{'type': 'deleteFile', 'path': name} for name in names]
        self.batch({('object', 'hub', name): None for name in names}, lines)

    def batch(self, facts, lines):
        number = self.ledger.begin(facts)
        reply = xet.batch(self.daemon, 'main/hub', lines, connection=self.connection)
        assert reply.status == 200 and reply.json()['succeeded'] == len(lines), reply.body
        self.ledger.end(number)


class Operator(Client):
    """Bucket settings, and keys by the server's own command."""

    def run(self):
        for name, document in SETTINGS:
            self.set(name, document)
        self.change({('setting', 'settings', 'lifecycle'): None}, 'DELETE', '/settings?lifecycle')
        self.make_bucket('gone')
        self.change({('bucket', 'gone'): None}, 'DELETE', '/gone')
        self.add_key('kept')
        self.revoke_key('revoked', self.add_key('revoked'))

    def set(self, name, document):
        fact = 'setting', 'settings', name
        number = self.ledger.begin({fact: ANYTHING})
        self.ask('PUT', f'/settings?{name}', document)
        self.ledger.end(number, {fact: self.ask('GET', f'/settings?{name}').body.decode()})

    def add_key(self, name):
        number = self.ledger.begin({})
        key = self.daemon.add_key('--name', name)
        self.ledger.end(number, {('key', name): {'token': key['token'], 'works': True}})
        return key

    def revoke_key(self, name, key):
        number = self.ledger.begin({('key', name): {'token': key['token'], 'works': False}})
        self.daemon.admin('keys', 'revoke', key['key_id'])
        self.ledger.end(number)


class Backups(Client):
    """Moments in a folder beside the data folder, and whole rounds of scrub."""

    def run(self, *words):
        """`words`: further ones of the backup."""
        place = place_of(self.daemon)
        number = self.ledger.begin({})
        made = json.loads(self.daemon.admin('backup', '--to', place, '--json', *words).stdout)
        self.ledger.end(number, {('backup', made['moment']): True})
        self.daemon.admin('scrub')
        return made['moment']

    def replace(self, moment):
        """Another one, and then the first is gone."""
        number = self.ledger.begin({('backup', moment): None})
        self.run('--keep', '1')
        self.ledger.end(number)


class Load:
    """`folder`: the disk that is recorded, empty; the store is made in it. `log`: the recording."""

    def __init__(self, folder, log, seed):
        self.folder, self.log, self.seed = folder, log, seed
        self.held = [{} for _ in range(WRITERS)]
        self.published = 0
        self.ledger = Ledger(log)
        self.ledger.note({'inodes': inodes(folder)})
        self.daemon = Daemon(tls=False, arguments=ARGUMENTS + EXPIRE, folder=os.path.join(folder, 'data'),
                             environment=recorded(folder, log, SYNC_US))

    def run(self):
        with contextlib.closing(self.ledger), tempfile.TemporaryDirectory() as checkpoints:
            self.steps = expand_small(checkpoints, STEPS - 1)
            with self.daemon:
                self.first_server()
                self.stopped_store()
                self.lost_catalog()
                self.server_that_ends()
                self.last_server()

    def first_server(self):
        with self.client(Client, 'buckets') as client:
            for name in ('objects', 'versioned', 'settings', 'hub', 'short', RUN.split('/')[0]):
                client.make_bucket(name)
            client.ask('PUT', '/short?lifecycle', EXPIRING)
            client.ask('PUT', '/versioned?versioning', VERSIONING.format('Enabled'))
        self.fill_pack()
        with self.client(Operator, 'first') as operator, self.client(HubClient, 'first') as hub:
            with self.client(Uploader, 'first') as uploader:
                beside(operator.run, uploader.run, lambda: hub.run(['a', 'b/c', 'd']),
                       self.expire, lambda: self.publish(3), *self.writers('first', 30))
        self.wait_for_moved_log()
        beside(self.back_up, *self.writers('moved', 4))
        self.wait_for_cut_log()
        self.give_space_back('first', (0, 1), 2)
        self.daemon.stop()

    def stopped_store(self):
        with self.client(Operator, 'stopped') as operator:
            operator.add_key('stopped')
        self.daemon.admin('gc')

    def lost_catalog(self):
        lose_catalog(self.daemon, self.ledger)
        rebuild(self.daemon, self.ledger)

    def server_that_ends(self):
        """In the middle of a change; the publishing client meets the server that comes then."""
        kill_at = random.Random(self.seed).randrange(*KILL_RECORDS)
        self.daemon.environment.update(recorded(self.folder, self.log, SYNC_US, kill_at))
        self.daemon.start()
        with self.client(HubClient, 'ending') as hub:
            works = [lambda: hub.run([f'ending/{number}' for number in range(8)]),
                     *self.writers('ending', 400)]
            beside(self.start_again, lambda: self.publish(2),
                   *(functools.partial(until_it_ends, work) for work in works))

    def start_again(self):
        self.daemon.await_end()
        del self.daemon.environment[KILL_AT]
        self.daemon.start()

    def last_server(self):
        with self.client(Operator, 'last') as operator, self.client(HubClient, 'last') as hub:
            key = operator.add_key('last')
            beside(lambda: self.publish(STEPS - self.published), lambda: hub.run(['a', 'last']),
                   self.back_up_again, self.expire, *self.writers('last', 20))
            hub.delete(['d', 'b/c'])
            operator.revoke_key('last', key)
        self.give_space_back('again', (2,), 0)
        assert self.daemon.request('GET', '/short/0/0').status == 404  # lifecycle was at work
        assert self.daemon.stop() == 0

    def fill_pack(self):
        with self.client(Client, 'full') as client:
            body = client.source.randbytes(FULL)
            client.change({('object', 'objects', 'full'): value_of(body)}, 'PUT', '/objects/full',
                          body)

    def expire(self):
        """Objects that lifecycle takes away, at any time from now on."""
        with self.client(Client, f'short {self.published}') as client:
            for number in range(6):
                fact = 'object', 'short', f'{self.published}/{number}'
                body = client.body(client.source.choice(SIZES))
                change = self.ledger.begin({fact: value_of(body)})
                self.ledger.begin({fact: None})
                client.ask('PUT', '/'.join(('', *fact[1:])), body)
                self.ledger.end(change)

    def back_up(self):
        with self.client(Backups, 'first') as backups:
            self.moment = backups.run()

    def back_up_again(self):
        with self.client(Backups, 'again') as backups:
            backups.replace(self.moment)

    def client(self, kind, name, *arguments):
        seed = f'{self.seed} {kind.__name__} {name}'
        return contextlib.closing(kind(self.daemon, self.ledger, seed, *arguments))

    def writers(self, phase, count):
        """Works, one for each writer."""
        return [functools.partial(self.write, phase, number, lambda writer: writer.run(count))
                for number in range(WRITERS)]

    def write(self, phase, number, work):
        held = self.held[number]
        with self.client(Writer, f'{phase} {number}', 'objects', f'w{number}', held) as writer:
            work(writer)

    def give_space_back(self, phase, emptied, busy):
        """Much is deleted, and gc runs beside another who writes."""
        for number in emptied:
            self.write(f'{phase} delete', number, Writer.delete_most)
        beside(lambda: self.daemon.admin('gc', '--live-percent', '95'),
               lambda: self.write(f'{phase} beside', busy, lambda writer: writer.run(15)))

    def publish(self, count):
        for number in range(self.published, self.published + count):
            change = self.ledger.begin({('step', RUN, str(number)): sha256(self.steps[number])})
            self.daemon.client('publish', '--run', RUN, '--step', number, self.steps[number])
            self.ledger.end(change)
        self.published += count

    def wait_for_moved_log(self):
        """All of the catalog's log is in the catalog: the next change begins the log again."""
        catalog, log = (os.path.join(self.daemon.folder, name)
                        for name in ('catalog.db', 'catalog.db-wal'))
        wait_for(lambda: os.stat(catalog).st_mtime_ns > os.stat(log).st_mtime_ns)

    def wait_for_cut_log(self):
        """The log's file is cut when nobody has written for a second."""
        log = os.path.join(self.daemon.folder, 'catalog.db-wal')
        before = os.path.getsize(log)
        wait_for(lambda: os.path.getsize(log) < before)


def place_of(daemon):
    return os.path.join(os.path.dirname(daemon.folder), PLACE)


def lose_catalog(daemon, ledger=None):
    """By programs that are recorded as the server is."""
    catalog = os.path.join(daemon.folder, 'catalog.db')
    if ledger:
        ledger.note({'catalog': 'lost'})
    for command in (['rm', '-f', catalog, catalog + '-wal', catalog + '-shm'],
                    ['sync', daemon.folder]):
        subprocess.run(command, env=daemon.environment, check=True)
    if ledger:
        ledger.note({'catalog': 'gone'})


def rebuild(daemon, ledger=None):
    daemon.admin('rebuild')
    if ledger:
        ledger.note({'catalog': 'made again'})


def is_catalog_lost(notes, cut, before=False):
    """At a cut. `before`: whether it was when the recording began."""
    said = [note['catalog'] for index, note in notes if 'catalog' in note and index < cut]
    return said[-1] != 'made again' if said else before


def wait_for(is_so):
    """When it does not become so, the recording has one way less."""
    end = time.monotonic() + LOG_SECONDS
    while not is_so() and time.monotonic() < end:
        time.sleep(0.05)


def beside(*works):
    """All at once; when all have ended, the first failure of any is raised."""
    with concurrent.futures.ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


def until_it_ends(work):
    with contextlib.suppress(OSError, http.client.HTTPException):
        work()
