"""What the server and its commands make of a data folder that is not as it should be: without packs, without a store, with other files, of another user,
not to be read."""
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import unittest

from tests.support.daemon import SERVER, Daemon
from tests.support.skips import needs_root

THREADS_MEET = False
FAILED, UNCHECKED = 1, 8


class Folder(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.addCleanup(self.daemon.__exit__)
        self.folder = pathlib.Path(self.daemon.folder)

    def fill(self):
        self.daemon.start()
        self.daemon.request('PUT', '/bkt')
        for key in 'ab':
            self.assertEqual(self.daemon.request('PUT', f'/bkt/{key}', os.urandom(900_000)).status, 200)
            self.daemon.stop()  # so that each is in a pack of its own
            self.daemon.start()

    def refuses(self, *words):
        with self.assertRaises(RuntimeError) as refused:
            self.daemon.start()
        for word in words:
            self.assertIn(word, str(refused.exception))


class Packs(Folder):
    def test_a_start_without_any_pack_is_refused(self):
        self.fill()
        saved = os.path.join(self.daemon.scratch, 'saved')
        self.daemon.is_damaged = True
        for stop in (self.daemon.stop, self.daemon.kill):
            for life in range(2):
                stop()
                shutil.move(self.folder / 'packs', saved)
                for _ in range(2):  # packs/ is missing; packs/ is empty
                    self.refuses('packs, and none of them is here', 'Put packs/ back', 'nothing was changed')
                os.rmdir(self.folder / 'packs')
                shutil.move(saved, self.folder / 'packs')
                self.daemon.start()
                self.assertEqual(len(self.daemon.request('GET', '/bkt/a').body), 900_000, (stop, life))
                self.assertNotIn(b'packs', self.daemon.request('GET', '/-/ready').body)

    def test_a_store_without_its_packs_goes_on_when_told(self):
        self.fill()
        self.daemon.stop()
        self.daemon.is_damaged = True
        shutil.rmtree(self.folder / 'packs')
        self.daemon.arguments = ['--after-damage', 'serve']
        self.daemon.start()
        self.assertEqual(self.daemon.request('GET', '/bkt?list-type=2').status, 200)
        self.assertEqual(self.daemon.request('PUT', '/bkt/new', b'n' * 900_000).status, 200)
        self.daemon.stop()
        self.daemon.arguments = []
        self.daemon.start()
        self.assertEqual(self.daemon.request('GET', '/bkt/new').body, b'n' * 900_000)
        self.assertIn(b'packs missing: ', self.daemon.request('GET', '/-/ready').body)

    def test_a_pack_that_is_missing_is_named(self):
        self.fill()
        self.daemon.stop()
        self.daemon.is_damaged = True
        lost, *others = sorted(self.folder.glob('packs/*/*.pack'))
        self.assertTrue(others)
        lost.unlink()
        self.daemon.start()
        ready = self.daemon.request('GET', '/-/ready')
        self.assertEqual((ready.status, ready.body.decode().splitlines()[0]), (200, 'ready'))
        self.assertIn(f'packs missing: 1 of {1 + len(others)} had no file at the start: {lost.name}.', ready.body.decode())
        self.assertIn('packs_missing', self.daemon.log())


class NoStore(Folder):
    def test_commands_make_no_store(self):
        self.folder.mkdir()
        backup = os.path.join(self.daemon.scratch, 'backup')
        for command in (('backup', '--to', backup), ('gc',), ('scrub',), ('keys', 'list'), ('keys', 'revoke', 'k'), ('fsck',), ('rebuild',)):
            done = self.daemon.admin(*command, check=False)
            self.assertEqual(done.returncode, UNCHECKED if command == ('fsck',) else FAILED, command)
            self.assertIn(f'there is no store in {self.folder} (no catalog.db)', done.stderr)
            self.assertEqual(list(self.folder.iterdir()), [], command)
        self.assertFalse(os.path.exists(backup))
        self.daemon.admin('keys', 'add', '--name', 'first')
        self.assertTrue((self.folder / 'catalog.db').exists())

    def test_no_store_is_made_among_other_files(self):
        self.folder.mkdir()
        (self.folder / 'model-00001.safetensors').write_bytes(b'weights')
        self.refuses('model-00001.safetensors', 'name an empty or a new folder')
        done = self.daemon.admin('keys', 'add', check=False)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn('such as model-00001.safetensors: name an empty or a new folder', done.stderr)
        self.assertEqual([path.name for path in self.folder.iterdir()], ['model-00001.safetensors'])

    def test_what_belongs_to_a_data_folder_may_be_there_before(self):
        self.folder.mkdir()
        (self.folder / 'lost+found').mkdir()
        (self.folder / 'master.key').write_text('00' * 32)
        (self.folder / 'master.key').chmod(0o600)
        (self.folder / 'server.ini').write_text('log_level = info\n')
        self.daemon.arguments = ['--config', str(self.folder / 'server.ini')]
        self.daemon.start()
        self.daemon.stop()
        (self.folder / 'notes.txt').write_text('whatever else lies in the folder of a store')
        self.daemon.start()

    def test_what_is_not_a_folder_is_told_as_such(self):
        file = os.path.join(self.daemon.scratch, 'file')
        pathlib.Path(file).write_text('text')
        for command in (('set-aside',), ('set-aside', 'drop', '--all'), ('gc',), ('fsck',), ('rebuild',), ('keys', 'add')):
            for path, words in ((file, 'is not a folder'), ('/nonexistent', 'there is no data folder')):
                done = self.daemon.command(*command, '--data', path)
                self.assertIn(done.returncode, (FAILED, UNCHECKED), command)
                self.assertIn(words, done.stderr)


@needs_root
class Owner(Folder):
    """The store belongs to nobody, and root runs commands on it."""

    def setUp(self):
        super().setUp()
        self.nobody = pwd.getpwnam('nobody')
        self.fill()
        self.daemon.stop()
        os.chmod(self.daemon.scratch, 0o755)
        around = os.path.dirname(self.daemon.scratch)
        os.chmod(around, os.stat(around).st_mode | 0o011)  # nobody passes through
        self.server = shutil.copy(SERVER, self.daemon.scratch)
        subprocess.run(['chown', '-R', f'{self.nobody.pw_uid}:{self.nobody.pw_gid}', self.folder], check=True)

    def as_nobody(self, *arguments, folder=None):
        return subprocess.run([self.server, *arguments, '--data', folder or self.folder], env=self.daemon.environment, capture_output=True, text=True,
                              user=self.nobody.pw_uid, group=self.nobody.pw_gid, extra_groups=[], timeout=60)

    def strange(self):
        return [str(path) for path in self.folder.rglob('*') if (path.lstat().st_uid, path.lstat().st_gid) != (self.nobody.pw_uid, self.nobody.pw_gid)]

    def test_what_root_leaves_belongs_to_the_owner(self):
        place = os.path.join(self.daemon.scratch, 'backup')
        outside = pathlib.Path(self.daemon.scratch, 'outside')
        outside.write_text('of root')
        os.link(outside, self.folder / 'journal' / 'linked')
        os.symlink(outside, self.folder / 'journal' / 'symbolic')
        os.lchown(self.folder / 'journal' / 'symbolic', self.nobody.pw_uid, self.nobody.pw_gid)
        for command in (('keys', 'add', '--name', 'k'), ('gc',), ('scrub',), ('backup', '--to', place), ('fsck', '--repair'), ('rebuild', '--replace')):
            self.daemon.admin(*command)
            self.assertEqual(self.strange(), [str(self.folder / 'journal' / 'linked')], command)
        self.assertEqual(outside.stat().st_uid, 0)
        os.remove(self.folder / 'journal' / 'linked')
        os.remove(self.folder / 'journal' / 'symbolic')
        done = self.as_nobody('keys', 'list', '--json')
        self.assertEqual((done.returncode, 'k' in [key['name'] for key in json.loads(done.stdout)['keys']]), (0, True), done.stderr)

    def test_a_backup_beside_the_server_leaves_its_notes_to_the_owner(self):
        command = ['setpriv', f'--reuid={self.nobody.pw_uid}', f'--regid={self.nobody.pw_gid}', '--clear-groups', self.server, '--data', str(self.folder),
                   '--listen', f'127.0.0.1:{self.daemon.port}', '--http']
        self.daemon.start(command)
        self.daemon.admin('backup', '--to', os.path.join(self.daemon.scratch, 'backup'))
        self.assertTrue(list((self.folder / 'backup').iterdir()))
        self.assertEqual(self.strange(), [])

    def test_a_start_names_what_belongs_to_root(self):
        for name in ('acknowledged', 'catalog.db', 'master.key'):
            os.chown(self.folder / name, 0, 0)
            os.chmod(self.folder / name, 0o600)
            for arguments in (('--listen', '127.0.0.1:0', '--http'), ('gc',)):
                done = self.as_nobody(*arguments)
                self.assertEqual(done.returncode, FAILED)
                self.assertIn(f'{name} belongs to the user root, and this is the user nobody: chown -R nobody: {self.folder}', done.stderr)
            os.chown(self.folder / name, self.nobody.pw_uid, self.nobody.pw_gid)
        self.assertEqual(self.as_nobody('gc').returncode, 0)

    def test_what_may_not_be_read_is_not_taken_for_missing(self):
        subprocess.run(['chown', '-R', '0:0', self.folder], check=True)
        for command, status in ((('fsck',), UNCHECKED), (('fsck', '--online'), UNCHECKED), (('rebuild',), FAILED), (('rebuild', '--dry-run'), FAILED),
                                (('set-aside',), FAILED), (('set-aside', 'drop', '--all'), FAILED), (('gc',), FAILED), (('keys', 'list'), FAILED)):
            done = self.as_nobody(*command)
            self.assertEqual(done.returncode, status, command)
            self.assertIn(str(self.folder), done.stderr, command)
            self.assertIn('Permission denied', done.stderr, command)
            self.assertNotIn('rebuild, or put', done.stderr)
