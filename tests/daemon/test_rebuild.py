"""`deltabucketd rebuild`: a lost catalog comes back from the journal with all that was acknowledged. Where that is damaged too, the command says what
is lost and keeps the rest, or changes nothing. Each test has a copy of one store, half in a snapshot, half in the logs after it, and killed."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import unittest

from tests.support import xet
from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.runs import Run
from tests.support.s3 import tree

THREADS_MEET = False
PASSING = ('Date', 'x-amz-request-id', 'x-amz-id-2', 'x-deltabucket-file-hash')  # the last is computed later
HEADER_BYTES = 96  # of the files of the journal
PART = random.Random('rebuild').randbytes(5 << 20)
FIRST = [(f'/{name}', None, {}) for name in ('box', 'pub', 'pol', 'closed', 'ver')] + [
    ('/ver?versioning', b'<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>', {}),
    ('/pub?acl', None, {'x-amz-acl': 'public-read'}), ('/closed?acl', None, {'x-amz-acl': 'public-read'})] + [
    (f'/box/in/k{i}', PART[i:i + size], {'x-amz-meta-number': str(i), 'x-amz-tagging': f'size={size}', 'Content-Type': 'text/x-test'})
    for i, size in enumerate((0, 30, 5_000, 90_000, 700_000, 3_000_000))] + [
    (f'/{key}', PART[-100_000 - i:], {}) for i, key in enumerate(('box/over', 'box/gone', 'box/tagged', 'pub/k', 'pol/k', 'closed/k', 'ver/a', 'ver/b'))]
SECOND = [('/box/over', b'new bytes', {}), ('/ver/a', b'2', {}), ('/closed?acl', None, {'x-amz-acl': 'private'}),
          ('/box/tagged?tagging', b'<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>', {}),
          ('/pol?policy', b'{"Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::pol/*"}]}', {})]
READS = [('root', f'/box/in/k{i}', 200) for i in range(6)] + [  # who asks for what, and the status
    ('root', '/box/in/k2?tagging', 200), ('root', '/box/over', 200), ('root', '/box/gone', 404), ('root', '/box/tagged?tagging', 200),
    ('root', '/box/multi', 200), ('root', '/box?list-type=2', 200), ('root', '/box?uploads', 200), ('root', '/', 200), ('root', '/ver?versions', 200),
    ('root', '/ver/a', 200), ('root', '/ver/b', 404), (None, '/pub/k', 200), (None, '/pol/k', 200), (None, '/closed/k', 403), (None, '/box/in/k1', 403),
    ('granted', '/box/in/k1', 200), ('granted', '/box/over', 403), ('revoked', '/box/in/k1', 403), ('root', '/models/r/a1', 200),
    *(('root', f'/v1/runs/models/r/steps/{step}/objects/anchor/model.safetensors', 200) for step in (0, 1))]


def flip(path, at):
    data = path.read_bytes()
    path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at:][1:])


def put(daemon, *writes):
    for target, body, headers in writes:
        reply = daemon.request('PUT', target, body, headers)
        assert reply.status in (200, 204), (target, reply.body)


def start_upload(daemon, key):
    """Gives the request that completes it."""
    upload = tree(daemon.request('POST', f'/box/{key}?uploads')).findtext('UploadId')
    etag = daemon.request('PUT', f'/box/{key}?partNumber=1&uploadId={upload}', PART).headers['ETag']
    return 'POST', f'/box/{key}?uploadId={upload}', f'<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>'


def ask_all(daemon, tokens):
    found = {}
    for who, target, status in READS:
        reply = daemon.request('GET', target, token=tokens[who])
        assert reply.status == status, (who, target, reply.status, reply.body)
        headers = [(name, text) for name, text in reply.headers.items() if name not in PASSING]
        found[who, target] = (headers, hashlib.sha256(reply.body).hexdigest()) if status == 200 else reply.code()
    return found


class Rebuild(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        daemon = cls.first = Daemon(tls=False)
        cls.addClassCleanup(daemon.__exit__)
        daemon.start()
        put(daemon, *FIRST)
        keys = {name: daemon.add_key('--grant', 'box/in/=read') for name in ('granted', 'revoked')}
        cls.tokens = {None: None, 'root': ROOT_TOKEN, **{name: key['token'] for name, key in keys.items()}}
        completes, cls.completes_open = start_upload(daemon, 'multi'), start_upload(daemon, 'open')
        run = Run(daemon, 'r')
        run.publish_all(0, 0)
        daemon.stop()
        cls.older_bytes = pathlib.Path(daemon.folder, 'catalog.db').read_bytes()
        shutil.rmtree(os.path.join(daemon.folder, 'journal'))  # the next snapshot has all of that
        os.truncate(daemon.log_path, 0)
        daemon.start()
        daemon.await_log('snapshot_made')
        put(daemon, *SECOND)
        for request in (completes, ('DELETE', '/box/gone'), ('DELETE', '/ver/b')):
            daemon.request(*request)
        daemon.admin('keys', 'revoke', keys['revoked']['key_id'])
        run.publish_all(1, 1)
        cls.answers = ask_all(daemon, cls.tokens)
        daemon.kill()

    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.addCleanup(self.daemon.__exit__)
        shutil.copytree(self.first.folder, self.daemon.folder, ignore=shutil.ignore_patterns('control.sock'))

    def files(self, pattern):
        return sorted(pathlib.Path(self.daemon.folder).glob(pattern))

    def reads(self, **bodies):
        """All that was acknowledged is there, and these objects of the bucket pub."""
        for what, answer in ask_all(self.daemon, self.tokens).items():
            self.assertEqual(answer, self.answers[what], what)
        for key, body in bodies.items():
            got = self.daemon.request('GET', f'/pub/{key}')
            self.assertEqual((got.status, got.body == body), (200, True), key)

    def put(self, **bodies):
        put(self.daemon, *((f'/pub/{key}', body, {}) for key, body in bodies.items()))

    def lose(self, *more):
        if self.daemon.process:
            self.daemon.kill()
        for path in [path for pattern in ('catalog.db*', *more) for path in self.files(pattern)]:
            path.unlink()

    def lose_after(self, work):
        """Loses the catalog, and the records of what `work` changes but for some bytes. Gives the number of the first change."""
        self.put(kept=b'kept')
        log = self.files('journal/*.log')[-1]
        size = log.stat().st_size
        work()
        self.lose()
        change = int.from_bytes(log.read_bytes()[size + 8:size + 16], 'little')
        os.truncate(log, size + 20)
        return change

    def rebuild(self, status, *arguments):
        """Gives what was printed. A failure, like a dry run, changes nothing but the lock, which has the number of a process, and what is derived."""
        def listing():
            return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files('**/*')
                    if path.is_file() and path.name != 'lock' and not path.name.startswith('chunks.db')}
        before = listing()
        done = self.daemon.admin('rebuild', *arguments, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        if status == 1 or '--dry-run' in arguments:
            self.assertEqual(listing(), before)
        return done.stdout + done.stderr

    def comes_back(self, status, *arguments, **bodies):
        said = self.rebuild(status, *arguments)
        if status == 0 and not self.daemon.is_damaged:
            self.daemon.check_store()
        self.daemon.start()
        self.reads(**bodies)
        return said

    def older(self):
        self.lose()
        pathlib.Path(self.daemon.folder, 'catalog.db').write_bytes(self.older_bytes)

    def cut(self):
        path = pathlib.Path(self.daemon.folder, 'catalog.db')
        path.write_bytes(self.older_bytes[:len(self.older_bytes) // 2])

    def damage_log(self):
        log = pathlib.Path(self.daemon.folder, 'catalog.db-wal')
        data = log.read_bytes()
        log.write_bytes(data[:600] + bytes(255 - byte for byte in data[600:700]) + data[700:])

    def test_what_the_journal_has_is_not_given_up(self):
        """Each start that is refused names the way back, and none goes on without what is there."""
        for spoil in (self.lose, self.older, self.cut, self.damage_log):
            with self.subTest(spoil.__name__):
                shutil.rmtree(self.daemon.folder)
                shutil.copytree(self.first.folder, self.daemon.folder, ignore=shutil.ignore_patterns('control.sock'))
                spoil()
                for policy in ('refuse', 'serve'):
                    self.daemon.arguments = ['--after-damage', policy]
                    with self.assertRaisesRegex(RuntimeError, '(?s)nothing was changed.*deltabucketd rebuild'):
                        self.daemon.start()
                self.daemon.arguments = []
                self.comes_back(0, '--replace')
                self.daemon.stop()

    def test_all_that_was_acknowledged_is_there_again(self):
        self.lose()
        with self.assertRaisesRegex(RuntimeError, 'deltabucketd rebuild'):
            self.daemon.start()
        would = json.loads(self.rebuild(0, '--dry-run', '--json'))
        self.assertEqual((would['change'], would['gap'], would['steps']), (would['acknowledged'], '', 2))
        self.assertNotIn('lost', self.comes_back(0))
        self.assertEqual(self.files('catalog.db')[0].stat().st_mode & 0o777, 0o600)
        self.daemon.admin('gc')
        self.put(more=b'more')
        self.lose()
        self.comes_back(0, more=b'more')
        self.assertEqual((self.daemon.request(*self.completes_open).status, self.daemon.request('GET', '/box/open').body == PART), (200, True))

    def test_the_end_of_the_journal_is_cut_off(self):
        self.daemon.start()
        change = self.lose_after(lambda: self.put(lost=PART))
        log = self.files('journal/*.log')[-1]
        self.assertRegex(self.comes_back(4, kept=b'kept'), f'(?s){log}.*changes {change} to ')
        self.assertEqual(self.daemon.request('GET', '/pub/lost').status, 404)
        self.put(lost=PART)
        self.reads(kept=b'kept', lost=PART)

    def test_a_log_without_a_whole_record_is_told_of(self):
        """Also where the file with the last acknowledged change is lost with the catalog."""
        self.daemon.start()
        self.put(lost=b'lost')
        self.lose('acknowledged')
        log = self.files('journal/*.log')[-1]
        for size in (HEADER_BYTES + 20, HEADER_BYTES - 20):
            os.truncate(log, size)
            self.assertIn(str(log), self.rebuild(4, '--dry-run'))

    def test_new_changes_do_not_follow_on_lost_ones_with_their_numbers(self):
        """The record before the newest log is damaged: a later log begins at its number all the same."""
        for body in (b'1', b'2'):
            self.daemon.start()
            self.put(lost=body)
            self.daemon.kill()
        self.lose()
        flip(self.files('journal/*.log')[-2], -1)
        self.assertIn('are lost', self.comes_back(4))
        self.put(new=b'new')
        self.lose()  # also before the server itself has made a snapshot
        self.comes_back(0, new=b'new')

    def test_a_compaction_of_an_open_pack_that_the_journal_does_not_have(self):
        objects = {f's{i}': random.Random(i).randbytes(20_000) for i in range(40)}
        self.daemon.start()
        self.put(**objects)
        for i in range(36):
            self.daemon.request('DELETE', f'/pub/s{i}')
            del objects[f's{i}']
        self.lose_after(lambda: self.assertRegex(self.daemon.admin('gc', '--json').stdout, '"packs_compacted":[1-9]'))
        self.comes_back(4, **objects)

    def test_an_older_snapshot_stands_in_for_a_damaged_one(self):
        self.daemon.is_damaged = True
        origins = ''.join(f'<AllowedOrigin>http://{i:0>250}</AllowedOrigin>' for i in range(200))
        rules = f'<CORSConfiguration><CORSRule>{origins}<AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>'
        self.daemon.start()
        put(self.daemon, *[('/closed?cors', rules, {})] * 1400)  # of more than 64 MiB
        self.daemon.await_log('snapshot_made')
        self.lose()
        older, newer = self.files('journal/*.snapshot')
        for at in (newer.stat().st_size // 2, HEADER_BYTES // 2):
            flip(newer, at)
            self.assertRegex(self.rebuild(0, '--dry-run'), f'(?s){older.name}.* newer snapshots are damaged')
        self.comes_back(0)

    def test_nothing_is_made_of_a_damaged_snapshot(self):
        self.lose()
        only, = self.files('journal/*.snapshot')
        for at in (-5, only.stat().st_size // 2, HEADER_BYTES // 2):
            flip(only, at)
            self.assertIn(only.name, self.rebuild(1))

    def test_a_missing_journal_or_master_key_is_an_error(self):
        self.lose('master.key')
        with self.assertRaisesRegex(RuntimeError, 'master.key is missing'):
            self.daemon.start()
        self.assertIn('master.key is missing', self.rebuild(1))  # and makes none
        shutil.copy(os.path.join(self.first.folder, 'master.key'), self.daemon.folder)
        shutil.rmtree(self.files('journal')[0])
        sizes = [path.stat().st_size for path in self.files('packs/*/*.pack')]
        self.assertIn(f'{len(sizes)} pack files of {sum(sizes)} bytes have no names', self.rebuild(1))

    def test_a_catalog_that_is_there_is_replaced_when_that_is_asked_for(self):
        self.files('catalog.db')[0].write_bytes(b'not a catalog')
        self.assertIn('--replace', self.rebuild(1))
        self.rebuild(0, '--replace', '--dry-run')
        self.comes_back(0, '--replace')
        self.assertEqual(self.files('set-aside/catalog.db')[0].read_bytes(), b'not a catalog')
        for arguments in ((), ('--replace',), ('--dry-run',)):  # while a server runs
            done = self.daemon.admin('rebuild', *arguments, check=False)
            self.assertEqual((done.returncode, 'is locked' in done.stderr), (1, True), done.stdout + done.stderr)

    def test_an_empty_catalog_and_a_log_without_one_are_set_aside_unasked(self):
        catalog = pathlib.Path(self.daemon.folder, 'catalog.db')
        for name, left in (('catalog.db', b''), ('catalog.db-wal', b'a log that leads nowhere')):
            self.lose()
            catalog.with_name(name).write_bytes(left)
            self.comes_back(0)
            self.assertEqual(self.files(f'set-aside/{name}')[0].read_bytes(), left)

    def test_xorbs_that_the_journal_does_not_have_are_promised(self):
        xorbs = [xet.Xorb([PART[size:][:size]]) for size in (9_000, 10_000)]
        self.daemon.start()
        cas = xet.Cas(self.daemon, 'main/box')
        self.lose_after(lambda: [cas.put_xorb(xorb) for xorb in xorbs])
        self.assertIn(' 2 xorbs of them got a promise', self.comes_back(4))
        self.daemon.admin('gc')
        self.assertEqual([cas.put_xorb(xorb).json() for xorb in xorbs], [{'was_inserted': False}] * 2)
        self.assertEqual(cas.put_shard(xet.shard_of(*xorbs)).status, 200)
        self.assertEqual(cas.download(xet.file_of(xorbs[0])[0]), xorbs[0].pieces[0])
