"""deltabucketd backup and restore beside a server that works: what was acknowledged comes back on an empty disk.

DELTABUCKET_TORTURE=1 makes it 100,000 objects instead of 2,000 in the test that says so.
"""
import contextlib
import fcntl
import http.client
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import threading
import time
import unittest
import urllib.parse

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

    def test_a_store_that_is_not_started_makes_no_moment_after_moment(self):
        """Each start is a change: a run that only looks is none."""
        self.put(a=b'a')
        beside = self.backup()
        self.daemon.stop()
        after = self.backup('--keep', '3')
        self.assertLessEqual(len(self.moments()), 2)
        for _ in range(3):
            again = self.backup('--keep', '3')
            self.assertEqual((again['new'], again['moment'], again['pieces_shipped']), (False, after['moment'], 0))
        self.assertIn(beside['moment'], self.moments())
        self.daemon.start()
        self.put(b=b'b')
        self.daemon.kill()
        self.assertTrue(self.backup()['new'])
        self.assertFalse(self.backup()['new'])
        self.comes_back()

    def test_a_place_that_was_emptied_is_told(self):
        self.put(a=b'a')
        self.backup()
        shutil.rmtree(self.place)
        for _ in range(2):
            told = self.backup(status=1)
            self.assertIn('Is a disk not mounted?', told)
            self.assertFalse(os.path.exists(self.place))
            os.mkdir(self.place)
            self.assertIn(self.place, self.backup(status=1))
            self.assertEqual(os.listdir(self.place), [])
            os.rmdir(self.place)
        notes = told.split('rm -r ')[1].strip()
        shutil.rmtree(notes)
        self.assertTrue(self.backup()['new'])
        self.comes_back()

    def test_what_is_missing_is_shipped_again_without_a_change(self):
        self.put(a=random.Random(1).randbytes(500_000))
        made = self.backup()
        for folder in ('packs', 'journal'):
            shutil.rmtree(f'{self.place}/{folder}')
        again = self.backup()
        self.assertEqual((again['new'], again['moment'], again['pieces_shipped']), (False, made['moment'], made['pieces_shipped']))
        self.comes_back()
        self.objects('packs/*')[0].unlink()
        self.assertIn('1 pieces of ', self.run_command(0, 'backup', '--data', self.daemon.folder, '--to', self.place))
        self.comes_back()

    def test_a_restore_that_was_interrupted_is_told_by_a_start(self):
        self.put(a=b'a')
        self.backup()
        other, _ = self.restore()
        os.remove(f'{other.folder}/catalog.db')
        pathlib.Path(other.folder, 'restoring').write_text('x')
        with self.assertRaisesRegex(RuntimeError, 'a restore to .* was interrupted: repeat it'):
            other.start()

    @needs_mount
    def test_a_disk_that_takes_no_writes_is_backed_up(self):
        """With a server that was started on it, and without one."""
        disk = os.path.join(self.daemon.scratch, 'disk')
        os.mkdir(disk)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=60m', 'none', disk], check=True)
        self.addCleanup(subprocess.run, ['umount', '-l', disk], check=True)
        data = os.path.join(disk, 'data')
        self.put(a=random.Random(1).randbytes(200_000))
        self.daemon.stop()
        shutil.copytree(self.daemon.folder, data, ignore=lambda folder, names: [name for name in names if name == 'control.sock'])
        other = self.new_daemon(folder=data)
        other.start()
        self.assertEqual(other.request('PUT', '/box/b', b'b').status, 200)
        self.held['b'] = b'b'
        self.daemon, stopped = other, self.daemon
        self.daemon.stop()
        subprocess.run(['mount', '-o', 'remount,ro', disk], check=True)
        for how in ('started', 'stopped'):
            (self.daemon.start if how == 'started' else self.daemon.stop)()
            self.place = os.path.join(stopped.scratch, f'place-{how}')
            command, environment = self.command('backup', '--data', data, '--to', self.place, '--json')
            for new in (True, False):
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=10 * REPLY_SECONDS)
                self.assertEqual(done.returncode, 0, how + done.stdout + done.stderr)
                self.assertEqual(json.loads(done.stdout)['new'], new, how)
                self.assertIn('It goes on without notes', done.stderr)
            self.comes_back().stop()
        subprocess.run(['mount', '-o', 'remount,rw', disk], check=True)

    @needs_mount
    def test_a_full_disk_is_backed_up(self):
        disk = os.path.join(self.daemon.scratch, 'disk')
        os.mkdir(disk)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=60m', 'none', disk], check=True)
        self.addCleanup(subprocess.run, ['umount', '-l', disk], check=True)
        self.daemon = self.new_daemon(folder=os.path.join(disk, 'data'))
        self.daemon.start()
        self.daemon.request('PUT', '/box')
        self.put(a=random.Random(1).randbytes(200_000))
        with open(os.path.join(disk, 'filler'), 'wb', buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))
        command, environment = self.command('backup', '--data', self.daemon.folder, '--to', self.place, '--json')
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=10 * REPLY_SECONDS)
        self.assertEqual((done.returncode, json.loads(done.stdout or '{}').get('new')), (0, True), done.stderr)
        self.assertEqual(self.holds(), [])
        os.remove(os.path.join(disk, 'filler'))
        self.comes_back()

    def test_words_that_are_wrong(self):
        data = ['--data', self.daemon.folder]
        link, empty = (os.path.join(self.daemon.scratch, name) for name in ('link', 'empty'))
        os.mkdir(empty)
        os.symlink(os.path.join(self.daemon.folder, 'packs'), link)
        for words, status, said in (
                (['backup', *data], 2, '--to'), (['backup', *data, '--to', 's3:/backups/s1'], 2, 's3://BUCKET/PREFIX'),
                (['backup', *data, '--to', 'S3://backups'], 2, 's3://BUCKET/PREFIX'), (['backup', *data, '--to', 'gs://backups'], 2, 's3://BUCKET/PREFIX'),
                (['backup', *data, '--to', 'https://s3.example/b'], 2, 'AWS_ENDPOINT_URL_S3'),
                (['backup', *data, '--to', self.daemon.folder], 2, 'lies in it'), (['backup', *data, '--to', f'{self.daemon.folder}/new/place/'], 2, 'lies in it'),
                (['backup', *data, '--to', link], 2, 'lies in it'), (['restore', '--from', 's3:backups', *data], 2, 's3://BUCKET/PREFIX'),
                (['restore', '--from', 'http://backups', '--list'], 2, 'AWS_ENDPOINT_URL_S3'),
                (['restore', '--from', self.daemon.folder, *data], 2, 'lies in the data folder'),
                (['restore', '--from', self.place, '--data', f'{self.place}/new'], 2, 'lies in the backup'),
                (['backup', *data, '--to', 'x', '--verify', '--keep', '2'], 2, '--verify goes without'), (['backup', *data, '--to', 'x', '--keep', '0'], 2, '--keep takes a number'),
                (['backup', *data, '--to', 'x', '--recipient', 'age1x'], 2, 'public key of age'), (['backup', *data, '--to', 's3://'], 2, 'names no bucket'),
                (['backup', *data, '--to', 's3://b'], 1, 'AWS_ACCESS_KEY_ID'), (['backup', '--data', '/nowhere', '--to', 'x'], 1, 'no data folder'),
                (['restore', *data], 2, '--from'), (['restore', '--from', self.place, *data], 1, 'no folder'),
                (['restore', '--from', empty, *data], 1, 'no backup')):
            self.assertIn(said, self.run_command(status, *words), words)
        self.put(a=b'a')
        self.backup()
        self.assertIn('There is no moment', self.restore('--moment', '20200101T000000Z-1-1', status=1)[1])
        self.daemon.stop()
        self.assertIn('There is a store in', self.run_command(1, 'restore', '--from', self.place, *data))

    def test_a_server_that_does_not_answer_is_named(self):
        self.put(a=b'a')
        self.daemon.kill()
        with open(os.path.join(self.daemon.folder, 'lock'), 'r+') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            told = self.backup(status=1)
        self.assertIn(f'{self.daemon.folder}/control.sock', told)
        self.assertNotIn('localhost', told)

    @needs_mount
    def test_a_place_that_cannot_be_written_is_restored_from(self):
        self.put(a=b'a')
        self.backup()
        subprocess.run(['mount', '--bind', self.place, self.place], check=True)
        self.addCleanup(subprocess.run, ['umount', self.place], check=True)
        subprocess.run(['mount', '-o', 'remount,bind,ro', self.place], check=True)
        other = self.new_daemon()
        command, environment = self.command('restore', '--from', self.place, '--data', other.folder)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=10 * REPLY_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('The place cannot be written', done.stderr)

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


class Damage(Place):
    """Something happens to what lies at the place."""

    def flip(self, path):
        with open(path, 'r+b') as file:
            file.seek(path.stat().st_size // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))

    def largest(self):
        return max(self.objects('packs/*'), key=lambda path: path.stat().st_size)

    def verify(self, status=0):
        return json.loads(self.run_command(status, 'backup', '--data', self.daemon.folder, '--to', self.place, '--verify', '--json'))

    def test_the_rest_comes_back_and_what_lacks_is_named(self):
        self.put(large=random.Random(1).randbytes(3_000_000), other=random.Random(2).randbytes(2_000_000), small=b'small')
        self.backup()
        for harm in (self.flip, lambda path: os.truncate(path, 1000), os.unlink):
            harmed = self.largest()
            kept = harmed.read_bytes()
            harm(harmed)
            pack = harmed.name.split('.')[0]
            told = self.restore(status=4)[1]
            self.assertIn(f'not whole: packs/{pack[:2]}/{pack}.pack: The ', told)
            other, told = self.restore('--json', status=4)
            lack, = json.loads(told)['lacks']
            self.assertEqual((lack['file'], harmed.name in lack['why']), (f'packs/{pack[:2]}/{pack}.pack', True))
            shutil.copy(os.path.join(self.daemon.folder, 'master.key'), other.folder)
            other.start()
            self.reads(other, {key: self.held[key] for key in ('other', 'small')})
            try:  # some of it, and never another byte
                got = other.request('GET', '/box/large').body
            except http.client.HTTPException:
                got = b''
            self.assertNotEqual(got, self.held['large'])
            other.is_damaged = True
            other.stop()
            harmed.write_bytes(kept)
        journal, *_ = self.objects('journal/*')
        self.flip(journal)
        told = self.restore(status=1)[1]
        self.assertIn(journal.name, told)
        self.assertIn('--moment', told)

    def test_a_restore_whose_moment_is_pruned_takes_the_newest_one(self):
        """The pack that only the newest moment needs is a pipe: the restore waits there while the moment goes."""
        self.put(large=random.Random(1).randbytes(3_000_000))
        held = dict(self.held)
        first = self.backup()
        before = set(self.objects('packs/*'))
        self.put(later=random.Random(2).randbytes(2_000_000))
        second = self.backup()
        pack, = (path for path in self.objects('packs/*') if path not in before and path.stat().st_size > 1_000_000)
        pack.unlink()
        os.mkfifo(pack)
        other = self.new_daemon()
        command, environment = self.command('restore', '--from', self.place, '--data', other.folder, '--json')
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        with open(pack, 'wb') as pipe:
            self.assertEqual(len(self.objects('about/reader-*')), 1)
            os.unlink(f'{self.place}/moments/{second["moment"]}')
            pipe.write(b'something else')
        told, failed = process.communicate()
        self.assertEqual(process.returncode, 0, failed)
        self.assertEqual(json.loads(told)['moment'], first['moment'])
        shutil.copy(os.path.join(self.daemon.folder, 'master.key'), other.folder)
        other.start()
        self.reads(other, held)

    def test_verify_mends_from_the_store(self):
        self.put(large=random.Random(1).randbytes(3_000_000), gone=random.Random(2).randbytes(2_000_000), small=b'small')
        first = self.backup()
        sound = self.verify()
        self.assertEqual((sound['moments'], sound['pieces'], sound['put_again'], sound['lost']), (1, first['pieces_shipped'], [], []))
        for harm in (self.flip, lambda path: os.truncate(path, 1000), os.unlink):
            objects = self.objects('packs/*') + self.objects('journal/*')
            for path in objects:
                harm(path)
            self.assertEqual(len(self.verify()['put_again']), len(objects))
            self.comes_back()
        before = set(self.objects('packs/*'))
        self.delete('gone')
        self.daemon.admin('gc')
        self.put(more=random.Random(3).randbytes(1_000_000))
        second = self.backup()
        for path in before:
            self.flip(path)
        found = self.verify(status=4)
        self.assertEqual((len(found['lost']), found['moments_touched']), (1, [first['moment']]))
        self.assertIn(f'not whole any more: {first["moment"]}', self.run_command(4, 'backup', '--data', self.daemon.folder, '--to', self.place, '--verify'))
        self.comes_back('--moment', second['moment'])
        self.daemon.stop()  # without a server, too
        self.flip(self.largest())
        self.assertEqual(len(self.verify(status=4)['put_again']), 1)
        self.assertEqual(self.objects('about/reader-*'), [])


    def packs(self):
        return sorted(pathlib.Path(self.daemon.folder).glob('packs/*/*.pack'))

    def test_chunks_that_the_server_knows_to_be_damaged_are_named(self):
        """By each run, and by verify, whatever was shipped before; also without a change."""
        body = random.Random(1).randbytes(300_000)
        self.put(large=body, small=b'small')
        self.backup()
        self.daemon.stop()
        path, = (path for path in self.packs() if body[20_000:20_032] in path.read_bytes())
        data = bytearray(path.read_bytes())
        data[data.index(body[20_000:20_032])] ^= 8
        path.write_bytes(data)
        self.daemon.start()
        self.daemon.is_damaged = True
        with self.assertRaises(http.client.IncompleteRead):
            self.daemon.request('GET', '/box/large')
        self.daemon.await_log('chunk_damaged')
        name = f'packs/{path.parent.name}/{path.name}'
        old, self.place = self.place, self.place + '2'
        for _ in range(2):
            told = self.backup(status=4)
            self.assertIn(f'not whole: {name}: 1 chunks of it are damaged', told)
            self.assertIn(f'not whole: {name}: ', self.backup('--verify', status=4))
        other, told = self.restore(status=4)
        self.assertIn(f'not whole: {name}: ', told)
        other.is_damaged = True
        self.place = old
        self.assertIn(f'not whole: {name}: ', self.backup(status=4))

    def test_a_pack_that_describes_itself_wrongly_loses_nothing(self):
        """Its index file goes with it. Each run names it, and the restore."""
        self.put(large=random.Random(1).randbytes(3_000_000), small=b'small')
        self.daemon.stop()
        self.daemon.start()  # which seals it
        self.put(more=b'more')
        self.daemon.stop()
        path = max(self.packs(), key=lambda path: path.stat().st_size)
        self.assertTrue(path.with_suffix('.index').exists())
        size = path.stat().st_size
        with open(path, 'r+b') as file:
            file.seek(size - 10)
            byte = file.read(1)
            file.seek(size - 10)
            file.write(bytes([byte[0] ^ 1]))
        self.daemon.start()
        name = f'not whole: packs/{path.parent.name}/{path.name}: '
        for i in range(3):
            told = self.backup(status=4)
            self.assertIn(name, told)
            if i == 0:
                self.put(again=b'again')
        other, told = self.restore(status=4)
        self.assertIn(name, told)
        shutil.copy(os.path.join(self.daemon.folder, 'master.key'), other.folder)
        other.start()
        self.reads(other, self.held)
        other.stop()
        done = other.admin('scrub')
        self.assertIn('1 packs described themselves wrongly', done.stdout)
        self.assertEqual(other.admin('fsck', check=False).returncode, 0)
        self.daemon.admin('scrub')
        self.assertEqual(self.daemon.admin('fsck', '--online', check=False).returncode, 0)
        self.assertEqual(self.backup()['files_lacking'], 0)  # it is another file now

    def test_a_flipped_bit_of_about_store_costs_nothing(self):
        self.put(a=b'a' * 5000)
        self.backup()
        path = pathlib.Path(self.place, 'about', 'store')
        sound = path.read_bytes()
        for at in (3, sound.index(b'store') + 8, sound.index(b'none')):
            path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1:])
            self.comes_back()
            self.assertIn('--verify', self.backup(status=1))
            self.assertEqual(self.verify()['put_again'], ['about/store'])
            self.assertEqual(path.read_bytes(), sound)
        self.assertEqual(self.verify()['put_again'], [])


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

    def test_only_the_secret_key_verifies_it(self):
        self.put(a=b'a' * 5000)
        self.backup('--recipient', self.recipient)
        self.assertIn('--identity', self.backup('--verify', status=2))
        os.truncate(self.objects('packs/*')[0], 100)
        self.assertEqual(len(self.backup('--verify', '--identity', self.keys[0])['put_again']), 1)
        self.comes_back('--identity', self.keys[0])

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

    def test_a_bucket_that_was_emptied_is_told(self):
        self.put(a=b'a' * 5000)
        follower = self.start_backup('--follow', '--json')
        json.loads(follower.stdout.readline())
        for key in re.findall('<Key>([^<]*)</Key>', self.target.request('GET', '/backups?list-type=2').body.decode()):
            self.target.request('DELETE', '/backups/' + urllib.parse.quote(key))
        self.put(b=b'b' * 5000)
        told = follower.stderr.readline()
        self.assertIn(self.place, told)
        self.assertIn('about/store is missing', told)
        follower.terminate()
        follower.wait()
        self.assertIn('about/store is missing', self.backup(status=1))
        self.assertNotIn('<Key>', self.target.request('GET', '/backups?list-type=2').body.decode())

    def test_verify_mends_a_bucket(self):
        self.put(large=random.Random(1).randbytes(3_000_000), small=b'small')
        self.backup()
        keys = re.findall('<Key>([^<]*)</Key>', self.target.request('GET', '/backups?list-type=2').body.decode())
        for key in keys:
            if '/packs/' in key:
                self.target.request('PUT', '/backups/' + urllib.parse.quote(key), b'something else')
        self.assertEqual(len(self.backup('--verify')['put_again']), len([key for key in keys if '/packs/' in key]))
        self.comes_back()

    def commands(self):
        return (['backup', '--data', self.daemon.folder, '--to', self.place], ['restore', '--from', self.place, '--list'],
                ['restore', '--from', self.place, '--data', os.path.join(self.daemon.scratch, 'restored')])

    def test_tls_that_is_not_agreed_on_is_told_at_once(self):
        """It is not tried again: one line, and no pause of a second."""
        plain = self.daemon.endpoint
        for endpoint, said in ((self.target.endpoint.replace('https:', 'http:'), 'use https://'),
                               (plain.replace('http:', 'https:'), 'speak plain HTTP')):
            self.environment['AWS_ENDPOINT_URL'] = endpoint
            for words in self.commands():
                told = self.run_command(1, *words)
                self.assertEqual(told.count('\n'), 1, told)
                self.assertRegex(told, said)

    def test_a_service_that_is_not_there_is_told_and_waited_for_once(self):
        self.target.stop()
        for words in self.commands():
            begun = time.monotonic()
            first, last = self.run_command(1, *words).splitlines()
            self.assertIn('it is tried again', first)
            self.assertIn('failed: ', last)
            self.assertLess(time.monotonic() - begun, 120)  # 15 s; more is a machine that is busy

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

    def test_what_is_put_is_in_a_moment_soon(self):
        """How soon is printed; docs/OPERATIONS.md has it."""
        self.put(first=b'first')
        self.await_shipped()
        waited = []
        for i in range(20):
            self.put(**{f'k{i}': os.urandom(20_000)})
            change, begun = self.change(), time.monotonic()
            while not any(int(moment.split('-')[2]) >= change for moment in self.moments()):
                self.assertLess(time.monotonic() - begun, 30, f'k{i} is in no moment')
                time.sleep(0.05)
            waited.append(time.monotonic() - begun)
        print(f'behind by {statistics.median(waited):.1f} s, at most {max(waited):.1f} s')

    def test_a_restore_keeps_what_it_reads(self):
        """While writers write, and the follower thins after each round."""
        stop = threading.Event()

        def write():
            with contextlib.closing(self.daemon.connect()) as connection:
                for i in itertools.count():
                    if stop.is_set():
                        return
                    self.daemon.request('PUT', f'/box/w{i % 20}', os.urandom(50_000), connection=connection)
        self.put(**{f'k{i}': os.urandom(1_000_000) for i in range(10)})
        self.await_shipped()
        thread = threading.Thread(target=write)
        thread.start()
        try:
            for _ in range(4):
                other, _ = self.restore()
                self.assertEqual(self.objects('about/reader-*'), [])
                other.start()
                self.reads(other, self.held)
                other.stop()
        finally:
            stop.set()
            thread.join()

    def test_nothing_is_thinned_while_somebody_reads(self):
        self.put(a=b'a')
        self.await_shipped()
        mark = pathlib.Path(self.place, 'about', 'reader-0123456789abcdef')
        mark.write_bytes(b'')
        for i in range(3):
            self.put(a=b'%d' % i)
            self.await_shipped()
        self.assertGreaterEqual(len(self.moments()), 3)
        mark.unlink()
        self.put(b=b'b')
        self.await_shipped()
        self.assertLessEqual(len(self.moments()), 2)  # one an hour
        self.follower.terminate()
        told = self.follower.communicate()[1]
        self.assertEqual(told.count('Nothing is pruned while the place is read (about/reader-0123456789abcdef)'), 1, told)

    def test_a_place_that_goes_is_told_and_nothing_is_written_there(self):
        """As an unmounted disk. It goes on when that is there again."""
        self.put(a=b'a' * 5000)
        self.await_shipped()
        os.rename(self.place, self.place + '-away')
        os.mkdir(self.place)
        self.put(b=b'b' * 5000)
        told = self.follower.stderr.readline()
        self.assertIn(f'{self.place}: The backups that were there are gone', told)
        self.assertIn('Is a disk not mounted?', told)
        self.assertEqual(os.listdir(self.place), [])
        os.rmdir(self.place)
        self.put(c=b'c' * 5000)
        self.assertIn('cannot be read', self.follower.stderr.readline())
        self.assertFalse(os.path.exists(self.place))
        os.rename(self.place + '-away', self.place)
        self.await_shipped()
        self.comes_back()

    def test_a_second_follower_is_refused(self):
        self.put(a=b'a')
        self.await_shipped()
        self.assertIn('under way', self.backup(status=1))
