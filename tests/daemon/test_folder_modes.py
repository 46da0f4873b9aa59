"""Nobody but the server's user reads what the server keeps, whatever the mode of the folder that it was given and of files that an older version left."""
import contextlib
import os
import stat
import threading
import unittest

from tests.support.daemon import Daemon
from tests.support.runs import Run
from tests.support.s3 import Bucket

THREADS_MEET = False

PUBLIC = {'tls/ca.pem'}  # for clients; who passes it on finds it as it is to be


def wide(folder):
    """{path in the folder: mode} of what others than its owner may open. What goes while it is looked at is passed over."""
    found = {}
    for path, folders, files in os.walk(folder):
        for name in folders + files:
            whole = os.path.join(path, name)
            with contextlib.suppress(FileNotFoundError):
                mode = stat.S_IMODE(os.lstat(whole).st_mode)
                if mode & 0o077 and os.path.relpath(whole, folder) not in PUBLIC:
                    found[os.path.relpath(whole, folder)] = oct(mode)
    return found


class Watch:
    """Looks at the folder again and again: what lies there for a moment only counts too."""

    def __init__(self, folder):
        self.folder, self.found, self.stopping = folder, {}, threading.Event()
        self.thread = threading.Thread(target=self.look)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *failure):
        self.stopping.set()
        self.thread.join()

    def look(self):
        while not self.stopping.wait(0.002):
            self.found.update(wide(self.folder))


class FolderModes(unittest.TestCase):
    def setUp(self):
        self.addCleanup(os.umask, os.umask(0o022))

    def daemon_with(self, mode, **options):
        daemon = Daemon(**options)
        self.addCleanup(daemon.__exit__)
        os.mkdir(daemon.folder)
        os.chmod(daemon.folder, mode)
        return daemon

    def work(self, daemon):
        """A bit of everything that makes files."""
        bucket = Bucket(daemon, 'box')
        for number in range(4):
            self.assertEqual(bucket.put(f'large{number}', os.urandom(3_000_000)).status, 200)
            self.assertEqual(bucket.put(f'small{number}', os.urandom(3000)).status, 200)
        self.assertEqual(bucket.upload('parts', [os.urandom(5 << 20), b'last']).status, 200)
        self.assertEqual(bucket.ask('DELETE', 'large0').status, 204)
        self.assertEqual(bucket.ask('DELETE', 'small0').status, 204)
        bucket.close()
        run = Run(daemon, 'run')
        self.assertEqual(run.call('PUT', '/settings', {'view_trl': True}).status, 200)
        run.publish_all(0, 3)
        daemon.admin('gc', '--json')
        daemon.add_key('--name', 'made')

    def test_a_folder_that_exists_with_a_wide_mode(self):
        daemon = self.daemon_with(0o755)
        with Watch(daemon.folder) as watch:
            daemon.start()
            self.work(daemon)
            daemon.stop()
            daemon.start()
        self.assertEqual(watch.found, {})
        self.assertEqual(wide(daemon.folder), {})
        self.assertTrue(os.path.exists(os.path.join(daemon.folder, 'catalog.db-wal')))
        self.assertEqual(stat.S_IMODE(os.stat(daemon.ca).st_mode), 0o644)
        self.assertEqual(stat.S_IMODE(os.stat(daemon.folder).st_mode), 0o755, 'the folder is whoever made it')
        warning = next(line for line in daemon.log().splitlines() if 'data_folder_open_to_others' in line)
        self.assertIn(daemon.folder, warning)
        self.assertIn('0755', warning)

    def test_a_folder_made_by_a_command(self):
        daemon = self.daemon_with(0o755, tls=False)
        daemon.add_key('--name', 'first')
        self.assertEqual(wide(daemon.folder), {})

    def test_what_an_older_version_left_is_narrowed(self):
        daemon = self.daemon_with(0o700)
        daemon.start()
        self.work(daemon)
        daemon.kill()
        for name in ('catalog.db', 'catalog.db-wal', 'catalog.db-shm', 'chunks.db', 'acknowledged'):
            os.chmod(os.path.join(daemon.folder, name), 0o644)
        os.chmod(os.path.join(daemon.folder, 'packs'), 0o2755)
        daemon.start()
        self.assertEqual(wide(daemon.folder), {})
        log = daemon.log()
        self.assertNotIn('data_folder_open_to_others', log)
        narrowed = [line for line in log.splitlines() if 'file_was_open_to_others' in line]
        for name in ('/catalog.db ', '/catalog.db-wal', '/chunks.db', '/packs'):
            self.assertTrue(any(name.strip() in line for line in narrowed), name)
        self.assertEqual(daemon.request('GET', '/box/small1').status, 200)


if __name__ == '__main__':
    unittest.main()
