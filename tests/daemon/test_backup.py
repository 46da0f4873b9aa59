"""deltabucketd backup and restore beside a server that works: what was acknowledged comes back on an empty disk.

DELTABUCKET_TORTURE=1 makes it 100,000 objects instead of 2,000 in the test that says so.
"""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

from tests.support.daemon import REPLY_SECONDS, ROOT_ID, ROOT_SECRET, SERVER, Daemon
from tests.support.skips import needs_mount

OBJECTS = 100_000 if os.environ.get('DELTABUCKET_TORTURE') else 2_000
WRITERS = 4


class Place(unittest.TestCase):
    """A server with a bucket, and a folder for its backups."""

    def setUp(self):
        self.daemon = self.new_daemon()
        self.daemon.start()
        self.daemon.request('PUT', '/box')
        self.place = os.path.join(self.daemon.scratch, 'place')
        self.held = {}
        self.environment = {}

    def new_daemon(self, **options):
        daemon = Daemon(tls=False, **options)
        self.addCleanup(daemon.__exit__)
        return daemon

    def put(self, **bodies):
        for key, body in bodies.items():
            self.assertEqual(self.daemon.request('PUT', f'/box/{key}', body).status, 200)
            self.held[key] = body

    def delete(self, *keys):
        for key in keys:
            self.assertEqual(self.daemon.request('DELETE', f'/box/{key}').status, 204)
            del self.held[key]

    def command(self, *words):
        return [SERVER, *words], dict(self.daemon.environment, **self.environment)

    def run_command(self, status, *words):
        command, environment = self.command(*words)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=10 * REPLY_SECONDS)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status in (0, 4) else done.stderr

    def backup(self, *words, status=0):
        told = self.run_command(status, 'backup', '--data', self.daemon.folder, '--to', self.place, *words, *(['--json'] if status == 0 else []))
        return json.loads(told) if status == 0 else told

    def start_backup(self, *words):
        command, environment = self.command('backup', '--data', self.daemon.folder, '--to', self.place, *words)
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def moments(self, *words):
        return [moment['moment'] for moment in json.loads(self.run_command(0, 'restore', '--from', self.place, '--list', '--json', *words))['moments']]

    def objects(self, pattern):
        return sorted(pathlib.Path(self.place).glob(pattern))

    def holds(self):
        return self.daemon.request('GET', '/-/backup-holds').json()['holds']

    def restore(self, *words, status=0):
        """Gives a server on the restored folder, not started."""
        other = self.new_daemon()
        told = self.run_command(status, 'restore', '--from', self.place, '--data', other.folder, *words)
        if status == 0:
            self.assertFalse(os.path.exists(os.path.join(other.folder, 'master.key')))
            shutil.copy(os.path.join(self.daemon.folder, 'master.key'), other.folder)
        return other, told

    def comes_back(self, *words, held=None):
        other, _ = self.restore(*words)
        other.start()
        self.reads(other, self.held if held is None else held)
        return other

    def reads(self, daemon, held):
        connection = daemon.connect()
        for key, body in held.items():
            reply = daemon.request('GET', f'/box/{key}', connection=connection)
            self.assertEqual((reply.status, reply.body == body), (200, True), key)
        connection.close()


class Backup(Place):
    def test_the_store_comes_back_as_it_was_at_each_moment(self):
        noise = random.Random(1)
        self.put(large=noise.randbytes(3_000_000), small=b'small', gone=b'gone')
        key = self.daemon.add_key('--grant', 'box/=read')
        first, at_first = self.backup(), dict(self.held)
        self.assertTrue(first['new'] and first['bytes_shipped'] == first['bytes'] > 3_000_000)
        self.delete('gone')
        self.put(small=b'other', more=noise.randbytes(50_000))
        second = self.backup()
        self.assertLess(second['bytes_shipped'], 120_000)
        self.assertFalse(self.backup()['new'])
        self.assertEqual(self.moments(), [first['moment'], second['moment']])
        other = self.comes_back()
        self.assertEqual(other.request('GET', '/box/gone').status, 404)
        self.assertEqual(other.request('GET', '/box/small', token=key['token']).body, b'other')
        self.comes_back('--moment', first['moment'], held=at_first)
        self.assertEqual(self.holds(), [])

    def test_under_load_with_gc_and_compaction(self):
        """Writers overwrite and delete, gc compacts and deletes; each moment is whole, and what was there before the last one is in it."""
        stop, failures, settled = threading.Event(), [], {}

        def write(number):
            noise = random.Random(number)
            with contextlib.closing(self.daemon.connect()) as connection:
                for i in range(OBJECTS):
                    key, body = f'w{number}-{i % 50}', noise.randbytes(noise.choice((300, 20_000, 150_000)))
                    if stop.is_set():
                        return
                    if self.daemon.request('PUT', f'/box/{key}', body, connection=connection).status != 200:
                        failures.append(key)
                    settled[key] = body

        def collect():
            while not stop.is_set():
                self.daemon.admin('gc', '--live-percent', '100')
        threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)] + [threading.Thread(target=collect)]
        self.put(steady=random.Random(99).randbytes(2_000_000))
        for thread in threads:
            thread.start()
        try:
            made = [self.backup('--keep', '3') for _ in range(6)]
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])
        self.assertTrue(all(moment['new'] and not moment['files_lacking'] for moment in made))
        self.assertEqual(len(self.moments()), 3)
        for moment in self.moments():
            other = self.comes_back('--moment', moment)
            for number in range(WRITERS):  # whatever it names reads right
                for i in range(50):
                    self.assertIn(other.request('GET', f'/box/w{number}-{i}').status, (200, 404))
            other.stop()
        self.held.update(settled)
        self.backup()
        self.comes_back()

    def test_a_killed_backup_goes_on_and_leaves_its_hold_to_the_next(self):
        self.put(**{f'k{i}': random.Random(i).randbytes(2_000_000) for i in range(20)})
        process = self.start_backup()
        while not self.objects('packs/*-*') and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        process.wait()
        self.assertEqual((process.returncode, self.moments() if os.path.exists(f'{self.place}/about') else []), (-signal.SIGKILL, []))
        there = len(self.objects('packs/*-*'))
        held, = self.holds()
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.holds(), [held])
        made = self.backup()
        self.assertGreaterEqual(made['files'] - made['pieces_shipped'], there - 1)  # the last one may not have been noted
        self.assertEqual(self.holds(), [])
        self.comes_back()

    def test_sigterm_ends_a_backup_in_good_order(self):
        self.put(**{f'k{i}': random.Random(i).randbytes(2_000_000) for i in range(20)})
        process = self.start_backup()
        while not self.objects('packs/*-*') and process.poll() is None:
            time.sleep(0.001)
        process.terminate()
        told = process.communicate()[1]
        self.assertEqual((process.returncode, self.holds(), self.moments()), (1, [], []), told)
        self.assertIn('It was interrupted.', told)

    def caught(self):
        """A backup that is stopped while it holds."""
        while True:
            process = self.start_backup()
            while process.poll() is None:
                if self.holds():
                    process.send_signal(signal.SIGSTOP)
                    break
            if self.holds():
                return process
            self.end(process)
            self.put(k0=os.urandom(2_000_000))

    def test_a_backup_whose_hold_ended_makes_no_moment(self):
        """Another of its name ends it as the time does."""
        self.put(**{f'k{i}': random.Random(i).randbytes(2_000_000) for i in range(10)})
        process = self.caught()
        before = self.moments() if os.path.exists(f'{self.place}/about') else []
        name = self.holds()[0]['name']
        other = self.daemon.request('POST', '/-/backup-holds', json.dumps({'name': name})).json()
        process.send_signal(signal.SIGCONT)
        told = process.communicate()[1]
        self.assertEqual(process.returncode, 1, told)
        self.assertIn('took more than 24 hours, or another backup of the same name began', told)
        self.assertEqual(self.moments(), before)
        self.assertEqual(self.daemon.request('DELETE', f'/-/backup-holds/{other["id"]}').status, 204)
        self.backup()
        self.comes_back()

    def test_a_hold_keeps_what_gc_would_remove(self):
        """Also over a restart."""
        def packs():
            return sorted(pathlib.Path(self.daemon.folder).glob('packs/*/*.pack'))
        self.put(large=random.Random(1).randbytes(3_000_000), other=b'other')
        hold = self.daemon.request('POST', '/-/backup-holds', '{"name":"by-hand"}').json()
        before = packs()
        self.delete('large')
        self.daemon.admin('gc')
        self.daemon.kill()
        self.daemon.start()
        self.daemon.admin('gc')
        self.assertLessEqual(set(before), set(packs()))
        self.assertEqual(self.daemon.request('DELETE', f'/-/backup-holds/{hold["id"]}').status, 204)
        self.daemon.admin('gc')
        self.assertEqual(len(packs()), len(before) - 1)

    def test_a_store_without_a_server(self):
        self.put(a=b'a', b=random.Random(1).randbytes(100_000))
        self.daemon.kill()
        self.backup()
        self.comes_back()
        self.daemon.start()
        self.put(c=b'c')
        self.assertLess(self.backup()['bytes_shipped'], 50_000)
        self.comes_back()

    def test_words_that_are_wrong(self):
        data = ['--data', self.daemon.folder]
        for words, status, said in (
                (['backup', *data], 2, '--to'), (['backup', *data, '--to', 'x', '--keep', '0'], 2, '--keep takes a number'),
                (['backup', *data, '--to', 'x', '--recipient', 'age1x'], 2, 'public key of age'), (['backup', *data, '--to', 's3://'], 1, 'names no bucket'),
                (['backup', *data, '--to', 's3://b'], 1, 'AWS_ACCESS_KEY_ID'), (['backup', '--data', '/nowhere', '--to', 'x'], 1, 'no data folder'),
                (['restore', *data], 2, '--from'), (['restore', '--from', self.place, *data], 1, 'no folder'),
                (['restore', '--from', self.daemon.scratch, *data], 1, 'no backup')):
            self.assertIn(said, self.run_command(status, *words), words)
        self.put(a=b'a')
        self.backup()
        self.assertIn('There is no moment', self.restore('--moment', '20200101T000000Z-1-1', status=1)[1])
        self.daemon.stop()
        self.assertIn('There is a store in', self.run_command(1, 'restore', '--from', self.place, *data))

    @needs_mount
    def test_a_full_place_is_told_and_costs_nothing(self):
        os.mkdir(self.place)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', self.place], check=True)
        self.addCleanup(subprocess.run, ['umount', self.place], check=True)
        self.put(large=random.Random(1).randbytes(3_000_000))
        self.assertIn('No space left', self.backup(status=1))
        self.assertEqual((self.moments(), self.holds()), ([], []))
        subprocess.run(['mount', '-o', 'remount,size=20m', self.place], check=True)
        self.backup()
        self.comes_back()

    def test_many_objects(self):
        """DELTABUCKET_TORTURE: 10^5."""
        def write(number):
            with contextlib.closing(self.daemon.connect()) as connection:
                for i in range(number, OBJECTS, WRITERS):
                    self.daemon.request('PUT', f'/box/m{i}', b'%d ' % i * 200, connection=connection)
        threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        begun = time.monotonic()
        first = self.backup()
        between = time.monotonic()
        self.put(one=b'one')
        again = self.backup()
        self.assertLess(again['bytes_shipped'] * 4, first['bytes_shipped'])
        done = time.monotonic()
        other, told = self.restore()
        restored = time.monotonic()
        self.assertIn(f' {OBJECTS + 1} objects', told)
        other.start()
        self.reads(other, {f'm{i}': b'%d ' % i * 200 for i in range(0, OBJECTS, 1 + OBJECTS // 5_000)})
        print(f'{OBJECTS} objects, {first["bytes"]} bytes: backup {between - begun:.1f} s, again {done - between:.1f} s ({again["bytes_shipped"]} bytes), '
              f'restore {restored - done:.1f} s')


class Encrypted(Place):
    def setUp(self):
        super().setUp()
        self.keys = [os.path.join(self.daemon.scratch, f'key{i}') for i in range(2)]
        for path in self.keys:
            subprocess.run(['age-keygen', '-o', path], check=True, capture_output=True)
        self.recipient, self.stranger = (subprocess.run(['age-keygen', '-y', path], check=True, capture_output=True, text=True).stdout.strip()
                                         for path in self.keys)

    def test_only_the_secret_key_opens_it(self):
        self.put(a=b'a' * 5000, b=random.Random(1).randbytes(200_000))
        self.backup('--recipient', self.recipient)
        self.put(c=b'c' * 5000)
        self.assertLess(self.backup('--recipient', self.recipient, '--keep', '1')['bytes_shipped'], 20_000)  # with the public key alone
        moment, = self.objects('moments/*')
        opened = subprocess.run(['age', '-d', '-i', self.keys[0], moment], check=True, capture_output=True).stdout
        self.assertTrue(opened.startswith(b'deltabucket backup 1\n'), opened[:100])
        self.assertIn('--identity', self.restore(status=1)[1])
        self.assertIn('another key', self.restore('--identity', self.keys[1], status=1)[1])
        self.comes_back('--identity', self.keys[0])
        self.put(d=b'd')
        self.assertIn('encrypted to', self.backup(status=1))
        self.assertIn('encrypted to', self.backup('--recipient', self.stranger, status=1))

    def test_lost_notes_prune_nothing_without_the_secret_key(self):
        self.put(a=b'a' * 5000)
        self.backup('--recipient', self.recipient)
        shutil.rmtree(os.path.join(self.daemon.folder, 'backup'))
        self.put(b=b'b' * 5000)
        self.assertIn('Nothing was pruned', self.backup('--recipient', self.recipient, '--keep', '2', status=1))
        self.assertEqual(len(self.moments()), 2)
        self.put(c=b'c')
        self.backup('--recipient', self.recipient, '--keep', '2', '--identity', self.keys[0])
        self.assertEqual(len(self.moments()), 2)
        self.comes_back('--identity', self.keys[0])


class Bucket(Place):
    """The place is a bucket of another server."""

    def setUp(self):
        super().setUp()
        self.target = Daemon()
        self.addCleanup(self.target.__exit__)
        self.target.start()
        self.target.request('PUT', '/backups')
        self.place = 's3://backups/of the/house+1'
        self.environment = {'AWS_ACCESS_KEY_ID': ROOT_ID, 'AWS_SECRET_ACCESS_KEY': ROOT_SECRET, 'AWS_ENDPOINT_URL': self.target.endpoint,
                            'AWS_CA_BUNDLE': self.target.ca}

    def test_the_store_comes_back(self):
        self.put(large=random.Random(1).randbytes(3_000_000), **{f's{i}': b'%d' % i * 1000 for i in range(20)})
        self.backup()
        self.put(more=b'more' * 1000)
        self.assertLess(self.backup('--keep', '1')['bytes_shipped'], 100_000)
        self.assertEqual(len(self.moments()), 1)
        self.comes_back()
        self.environment['AWS_SECRET_ACCESS_KEY'] = 'another'
        self.put(last=b'last')
        self.assertIn('403', self.backup(status=1))
        self.place = 's3://nowhere'
        self.environment['AWS_SECRET_ACCESS_KEY'] = ROOT_SECRET
        self.assertIn("bucket 'nowhere' does not exist", self.backup(status=1))

    def test_a_listing_has_more_than_one_page(self):
        """A pack each, and 1,000 objects on a page."""
        with contextlib.closing(self.target.connect()) as connection:
            for i in range(1_050):
                self.target.request('PUT', f'/backups/of%20the/house%2B1/packs/{i:032x}.0-5', b'12345', connection=connection)
        self.put(a=b'a')
        self.backup('--keep', '1')
        self.comes_back()


class Follow(Place):
    def setUp(self):
        super().setUp()
        self.follower = self.start_backup('--follow', '--json')

    def change(self):
        with contextlib.closing(sqlite3.connect(f'file:{self.daemon.folder}/catalog.db?mode=ro', uri=True)) as catalog:
            return catalog.execute('SELECT change FROM sums').fetchone()[0]

    def await_shipped(self):
        change = self.change()
        for line in self.follower.stdout:
            if json.loads(line)['change'] >= change:
                return
        self.fail(self.follower.stderr.read())

    def test_what_was_shipped_survives_the_disk(self):
        noise = random.Random(1)
        for i in range(3):
            self.put(**{f'k{i}': noise.randbytes(200_000), 'changing': b'%d' % i})
            self.await_shipped()
        self.daemon.stop()
        self.daemon.start()
        self.put(after=b'after')
        self.await_shipped()
        self.daemon.kill()
        key = os.path.join(self.daemon.scratch, 'kept.key')
        shutil.copy(os.path.join(self.daemon.folder, 'master.key'), key)
        shutil.rmtree(self.daemon.folder)
        self.run_command(0, 'restore', '--from', self.place, '--data', self.daemon.folder)
        shutil.copy(key, os.path.join(self.daemon.folder, 'master.key'))
        self.daemon.start()
        self.reads(self.daemon, self.held)
        self.put(more=b'more')  # the follower goes on with the restored store
        self.await_shipped()
        self.follower.terminate()
        self.assertEqual((self.follower.wait(), self.holds()), (0, []))
        self.comes_back()
        self.assertLessEqual(len(self.moments()), 3)  # one an hour

    def test_a_second_follower_is_refused(self):
        self.put(a=b'a')
        self.await_shipped()
        self.assertIn('under way', self.backup(status=1))
