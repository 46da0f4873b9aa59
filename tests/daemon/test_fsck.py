"""`deltabucketd fsck`: what an operator sees of it. What it finds, and what a repair leaves, is tested damage by damage in
tests/unit/storage/fsck."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import threading
import unittest

from tests.support.checkpoints import expand_small
from tests.support.daemon import Daemon
from tests.support.skips import needs_mount

THREADS_MEET = False
CLEAN, REPAIRED, USAGE, DAMAGE, UNCHECKED = 0, 1, 2, 4, 8


def fsck(daemon, *arguments):
    """The exit status and the answer."""
    done = daemon.admin('fsck', '--json', *arguments, check=False)
    return done.returncode, json.loads(done.stdout)


def of_kind(answer, kind):
    return [finding for finding in answer['findings'] if finding['kind'] == kind]


def contents(folder):
    """A digest of each file, but for the lock and what SQLite makes anew for every reader."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(pathlib.Path(folder).rglob('*'))
            if path.is_file() and not path.name.endswith(('-shm', '-wal', 'lock'))}


class Fsck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.seed = Daemon(tls=False)
        cls.addClassCleanup(cls.seed.__exit__)
        cls.seed.start()
        source = random.Random('fsck')
        cls.objects = {f'k{i}': source.randbytes(size) for i, size in enumerate((40, 5_000, 90_000, 3_000_000))}
        cls.seed.request('PUT', '/bkt')
        for key, body in cls.objects.items():
            cls.seed.request('PUT', f'/bkt/{key}', body)
        for step, path in enumerate(expand_small(cls.seed.scratch, 2)):
            cls.seed.client('publish', '--run', 'bkt/r', '--step', step, path)
        cls.seed.stop()

    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.addCleanup(self.daemon.__exit__)
        shutil.copytree(self.seed.folder, self.daemon.folder, ignore=shutil.ignore_patterns('control.sock'))

    def pack_of(self, body):
        """The pack file that holds these bytes, and where."""
        for path in pathlib.Path(self.daemon.folder, 'packs').rglob('*.pack'):
            at = path.read_bytes().find(body)
            if at >= 0:
                return path, at
        raise AssertionError('no pack has these bytes')

    def flip(self, path, at):
        self.daemon.is_damaged = True
        data = bytearray(path.read_bytes())
        data[at] ^= 4
        path.write_bytes(data)

    def damage_object(self):
        path, at = self.pack_of(self.objects['k3'][:5_000])
        self.flip(path, at + 100)

    def test_a_sound_store_is_clean(self):
        before = contents(self.daemon.folder)
        status, answer = fsck(self.daemon)
        self.assertEqual((status, answer['result'], of_kind(answer, 'chunk')), (CLEAN, 'clean', []))
        self.assertEqual(answer['checked']['steps'], 3)
        self.assertGreater(answer['checked']['chunks'], 20)
        self.assertEqual(contents(self.daemon.folder), before)
        told = self.daemon.admin('fsck')
        self.assertEqual(told.stdout.splitlines()[-1], 'clean')

    def test_damage_names_keys_and_stays_until_the_bytes_come_again(self):
        self.damage_object()
        before = contents(self.daemon.folder)
        for arguments in ((), ('--repair', '--dry-run')):
            status, answer = fsck(self.daemon, *arguments)
            [chunk] = of_kind(answer, 'chunk')
            self.assertEqual((status, chunk['severity'], chunk['repairable']), (DAMAGE, 'damage', True))
            self.assertEqual([(key['bucket'], key['key'], key['version']) for key in chunk['keys']], [('bkt', 'k3', 'null')])
            self.assertEqual(contents(self.daemon.folder), before)
        told = self.daemon.admin('fsck', '--repair', '--dry-run', check=False).stdout
        self.assertIn('key bkt/k3', told)
        self.assertIn('with --repair: ', told)
        status, answer = fsck(self.daemon, '--repair')
        self.assertEqual((status, [finding['kind'] for finding in answer['left']]), (DAMAGE, ['chunk']))
        self.daemon.start()
        self.assertEqual(self.daemon.request('PUT', '/bkt/again', self.objects['k3']).status, 200)
        self.daemon.await_log('chunk_mended')
        self.daemon.stop()
        self.assertEqual(fsck(self.daemon)[0], CLEAN)

    def test_a_damaged_step_is_named(self):
        for path in pathlib.Path(self.daemon.folder, 'packs').rglob('*.pack'):
            self.flip(path, 100)  # in the first record of each pack
        status, answer = fsck(self.daemon)
        steps = [step for finding in of_kind(answer, 'chunk') for step in finding['steps']]
        self.assertEqual(status, DAMAGE)
        self.assertIn({'bucket': 'bkt', 'run': 'r', 'step': 0, 'form': 'step'}, steps)

    def test_what_can_be_repaired_is_and_a_second_check_is_clean(self):
        path, _ = self.pack_of(self.objects['k3'][:5_000])
        self.flip(path, path.stat().st_size - 20)  # in its last footer; the index beside it says the same
        status, answer = fsck(self.daemon)
        self.assertEqual((status, [finding['severity'] for finding in of_kind(answer, 'pack_copy')]), (DAMAGE, ['fault']))
        status, answer = fsck(self.daemon, '--repair')
        self.assertEqual((status, answer['result'], answer['left']), (REPAIRED, 'repaired', []))
        self.assertEqual(fsck(self.daemon)[0], CLEAN)
        self.daemon.start()
        for key, body in self.objects.items():
            self.assertEqual(self.daemon.request('GET', f'/bkt/{key}').body, body)

    def test_a_backup_gives_packs_back(self):
        place = os.path.join(self.daemon.scratch, 'backup')
        self.daemon.admin('backup', '--to', place)
        self.damage_object()
        lost, _ = self.pack_of(self.objects['k2'][:5_000])
        lost.unlink()
        self.assertEqual(fsck(self.daemon, '--repair', '--backup', os.path.join(self.daemon.scratch, 'none'))[0], UNCHECKED)
        status, answer = fsck(self.daemon, '--repair', '--backup', place)
        self.assertEqual((status, answer['left']), (REPAIRED, [{**finding, 'severity': 'note'} for finding in answer['left']]))
        self.assertEqual(len(list(pathlib.Path(self.daemon.folder, 'set-aside').glob('*.pack'))), 1)  # what was damaged
        self.assertEqual(list(pathlib.Path(place, 'about').glob('reader-*')), [])  # pruning goes on
        self.daemon.start()
        for key, body in self.objects.items():
            self.assertEqual(self.daemon.request('GET', f'/bkt/{key}').body, body)
        self.daemon.stop()
        self.daemon.check_store()

    def test_a_backup_gives_back_what_it_has_of_a_pack_that_has_grown(self):
        place = os.path.join(self.daemon.scratch, 'backup')
        source = random.Random(11)
        early, later = source.randbytes(90_000), source.randbytes(90_000)
        self.daemon.start()
        self.daemon.request('PUT', '/bkt/early', early)
        self.daemon.admin('backup', '--to', place)
        self.daemon.request('PUT', '/bkt/later', later)
        self.daemon.stop()
        pack, at = self.pack_of(early[:5_000])
        self.assertEqual(pack, self.pack_of(later[:5_000])[0])
        self.flip(pack, at + 100)
        self.assertEqual(fsck(self.daemon, '--repair', '--backup', place)[0], REPAIRED)
        self.daemon.start()
        self.assertEqual([self.daemon.request('GET', f'/bkt/{key}').body for key in ('early', 'later')], [early, later])
        self.daemon.stop()
        self.daemon.is_damaged = False
        self.daemon.check_store()

    def test_a_running_server_is_checked_online_alone(self):
        self.daemon.start()
        done = self.daemon.admin('fsck', check=False)
        self.assertEqual(done.returncode, UNCHECKED)
        self.assertIn('--online', done.stderr)
        self.assertEqual(fsck(self.daemon, '--online')[0], CLEAN)
        self.daemon.stop()

    def test_online_beside_writes_and_gc(self):
        self.daemon.start()
        stop = threading.Event()
        source = random.Random(7)

        def write():
            for i in range(10_000):
                if stop.is_set():
                    return
                self.daemon.request('PUT', f'/bkt/w{i % 7}', source.randbytes((300, 60_000, 700_000)[i % 3]))
                self.daemon.request('DELETE', f'/bkt/w{(i + 3) % 7}')

        def collect():
            while not stop.is_set():
                self.daemon.admin('gc', '--live-percent', '100')
        threads = [threading.Thread(target=target) for target in (write, write, collect)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(8):
                status, answer = fsck(self.daemon, '--online')
                self.assertEqual(status, CLEAN, answer['findings'])
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.damage_object()
        status, answer = fsck(self.daemon, '--online')
        self.assertEqual((status, [key['key'] for key in of_kind(answer, 'chunk')[0]['keys']]), (DAMAGE, ['k3']))

    def test_what_cannot_be_checked(self):
        for arguments, status, words in ((('--repair', '--online'), USAGE, 'stop the server'), (('--dry-run',), USAGE, '--repair'),
                                         (('word',), USAGE, 'takes no argument')):
            done = self.daemon.admin('fsck', *arguments, check=False)
            self.assertEqual((done.returncode, words in done.stderr), (status, True), done.stderr)
        os.remove(os.path.join(self.daemon.folder, 'catalog.db'))
        status, answer = fsck(self.daemon)
        self.assertEqual((status, answer['result']), (UNCHECKED, 'unchecked'))
        shutil.rmtree(os.path.join(self.daemon.folder, 'packs'))
        done = self.daemon.admin('fsck', check=False)
        self.assertEqual(done.returncode, UNCHECKED)
        self.assertIn('catalog.db is missing. Make it again with deltabucketd rebuild', done.stderr)

    def test_a_repair_that_cannot_open_its_backup_changes_nothing(self):
        place = os.path.join(self.daemon.scratch, 'backup')
        keys = [os.path.join(self.daemon.scratch, name) for name in ('right.txt', 'wrong.txt')]
        for key in keys:
            subprocess.run(['age-keygen', '-o', key], check=True, capture_output=True)
        recipient = subprocess.run(['age-keygen', '-y', keys[0]], check=True, capture_output=True, text=True).stdout.strip()
        self.daemon.admin('backup', '--to', place, '--recipient', recipient)
        self.damage_object()
        before = contents(self.daemon.folder)
        for arguments, status in (((), UNCHECKED), (('--identity', keys[1]), DAMAGE)):
            done = self.daemon.admin('fsck', '--repair', '--backup', place, *arguments, check=False)
            self.assertEqual((done.returncode, 'brought_back' in done.stderr), (status, False), done.stderr)
            self.assertIn('deltabucketd: fsck: ', done.stderr)
            self.assertEqual(contents(self.daemon.folder), before, arguments)
        self.assertIn('--identity', self.daemon.admin('fsck', '--repair', '--backup', place, check=False).stderr)

    def test_a_deleted_journal_is_a_fault_and_is_made_again(self):
        """Also in the first life of a store."""
        for kept in (False, True):
            daemon = Daemon(tls=False)
            self.addCleanup(daemon.__exit__)
            daemon.start()
            daemon.request('PUT', '/bkt')
            daemon.stop()
            shutil.rmtree(os.path.join(daemon.folder, 'journal'))
            if kept:
                os.mkdir(os.path.join(daemon.folder, 'journal'))
            status, answer = fsck(daemon)
            self.assertEqual((status, [finding['severity'] for finding in of_kind(answer, 'journal')]), (DAMAGE, ['fault']))
            self.assertEqual(fsck(daemon, '--repair')[0], REPAIRED)
            os.remove(os.path.join(daemon.folder, 'catalog.db'))
            daemon.admin('rebuild')
            self.assertEqual(fsck(daemon)[0], CLEAN)

    def test_a_master_key_that_opens_nothing_is_damage(self):
        path = pathlib.Path(self.daemon.folder, 'master.key')
        right = path.read_text()
        for wrong, words in (
            (right[:5] + ('1' if right[5] == '0' else '0') + right[6:], 'opens none of the keys'),
            ('f' * 64 + '\n', 'opens none of the keys'),
            (right[:5] + '~' + right[6:], 'is not 64 hex digits'),
        ):
            path.write_text(wrong)
            status, answer = fsck(self.daemon)
            [found] = of_kind(answer, 'master_key')
            self.assertEqual((status, found['severity']), (DAMAGE, 'damage'))
            self.assertIn(words, found['detail'])
            with self.assertRaises(RuntimeError):
                self.daemon.start()
        path.write_text(right)
        self.assertEqual(fsck(self.daemon)[0], CLEAN)

    def test_a_dry_run_says_what_the_backup_would_give(self):
        place = os.path.join(self.daemon.scratch, 'backup')
        self.daemon.admin('backup', '--to', place)
        self.damage_object()
        lost, _ = self.pack_of(self.objects['k2'][:5_000])
        lost.unlink()
        before = contents(self.daemon.folder)
        status, answer = fsck(self.daemon, '--repair', '--dry-run', '--backup', place)
        self.assertEqual((status, [one['has'] for one in answer['backup']]), (DAMAGE, [True, True]))
        told = self.daemon.admin('fsck', '--repair', '--dry-run', '--backup', place, check=False).stdout
        self.assertIn(f'backup: pack {lost.stem}: with --repair its pack file is fetched', told)
        self.assertEqual(contents(self.daemon.folder), before)

    def test_set_aside_of_no_store_is_an_error(self):
        refused = self.daemon.command('set-aside', '--data', self.daemon.scratch)
        self.assertEqual(refused.returncode, 1)
        self.assertIn('there is no store in', refused.stderr)

    def test_a_missing_master_key_is_told(self):
        saved = os.path.join(self.daemon.scratch, 'key')
        shutil.move(os.path.join(self.daemon.folder, 'master.key'), saved)
        status, answer = fsck(self.daemon)
        self.assertEqual((status, [finding['severity'] for finding in of_kind(answer, 'master_key')]), (DAMAGE, ['damage']))
        told = self.daemon.admin('fsck', '--repair', check=False).stdout
        self.assertIn('no repair mends this; what is left:', told)
        self.assertEqual(fsck(self.daemon, '--master-key', saved)[0], CLEAN)
        shutil.move(saved, os.path.join(self.daemon.folder, 'master.key'))

    def test_damage_to_the_catalog_leads_to_rebuild(self):
        path = pathlib.Path(self.daemon.folder, 'catalog.db')
        whole = path.read_bytes()
        path.write_bytes(whole[:3 * 4096] + bytes(4000) + whole[3 * 4096 + 4000:])  # a page of a table
        done = self.daemon.admin('fsck', '--repair', check=False)
        self.assertEqual((done.returncode, 'deltabucketd rebuild --replace' in done.stderr), (DAMAGE, True), done.stderr)
        path.write_bytes(whole[:10_000])
        done = self.daemon.admin('fsck', check=False)
        self.assertEqual((done.returncode, 'deltabucketd rebuild --replace' in done.stderr), (UNCHECKED, True), done.stderr)
        with self.assertRaisesRegex(RuntimeError, 'deltabucketd rebuild --replace'):
            self.daemon.start()
        self.daemon.admin('rebuild', '--replace')
        self.daemon.start()
        self.assertEqual(self.daemon.request('GET', '/bkt/k2').body, self.objects['k2'])

    @needs_mount
    def test_a_store_on_a_disk_without_writes_is_checked(self):
        folder = self.daemon.folder
        before = contents(folder)
        for mount in (('--bind', folder, folder), ('-o', 'remount,ro,bind', folder)):
            subprocess.run(['mount', *mount], check=True)
        self.addCleanup(subprocess.run, ['umount', folder], check=True)
        for arguments in ((), ('--online',)):
            status, answer = fsck(self.daemon, *arguments)
            self.assertEqual((status, answer['result']), (CLEAN, 'clean'))
        done = self.daemon.admin('rebuild', '--dry-run', check=False)
        self.assertIn('copy the folder to a disk that takes writes', done.stderr)
        self.assertEqual(contents(folder), before)
