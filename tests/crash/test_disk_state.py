"""What the campaign of power cuts (test_power_cut.py) stands on.

The recorder misses no call, the disks that are made up are those that a disk may leave, and it is
known for each moment what was confirmed.
"""
import contextlib
import os
import subprocess
import sys
import unittest

from tests.support.disk_log import (CREATE, FOLDER, LENGTH, NOTE, RENAME, SYNC, SYNCED, UNLINK,
                                    WRITE, Notebook, Record, is_plain_build, read_log, recorded)
from tests.support.disk_state import Cut, Image, Recording, inodes, scratch
from tests.support.ledger import allowed, confirmations

SEEDS = 1000
ROOT = 1

# Calls that the server makes seldom or not at all: the recorder has to know them.
CALLS = '''
import ctypes, os
NEW, OLD = os.O_CREAT | os.O_RDWR, os.O_WRONLY
os.mkdir('d')
os.mkdir('e')
fd = os.open('d/f', NEW)
os.write(fd, b'12345')
os.writev(fd, [b'67', b'89'])
os.pwritev(fd, [b'ab', b'c'], 2)
os.pwrite(fd, b'z', 20)
os.ftruncate(fd, 18)
os.posix_fallocate(fd, 0, 30)
os.fsync(fd)
to = os.open('d/copy', NEW)
assert os.copy_file_range(fd, to, 25, 1) == 25
os.write(os.open('d/f', OLD | os.O_APPEND), b'end')
other = os.dup(fd)
os.close(fd)
os.pwrite(other, b'dup', 40)
os.rename('d/copy', 'e/moved')
os.link('e/moved', 'd/second')
os.link('e/moved', 'd/third')
os.symlink('../e', 'd/link')
os.truncate('e/moved', 11)
os.open('gone', NEW)
os.unlink('gone')
os.mkdir('empty')
os.rmdir('empty')
os.write(os.open('d/again', NEW), b'first')
os.write(os.open('d/again', OLD | os.O_TRUNC), b'new')
os.rename('d/again', 'd/twice')
assert ctypes.CDLL(None).remove(b'd/second') == 0
'''


@unittest.skipUnless(is_plain_build(), 'the recorder is for plain builds')
class Recorder(unittest.TestCase):
    def test_every_call_is_recorded(self):
        with scratch() as folder:
            disk, log = os.path.join(folder, 'disk'), os.path.join(folder, 'log')
            os.mkdir(disk)
            with contextlib.closing(Notebook(log)) as notebook:
                notebook.note({'inodes': inodes(disk)})
            environment = dict(os.environ, **recorded(disk, log))
            subprocess.run([sys.executable, '-c', CALLS], cwd=disk, env=environment, check=True)
            recording = Recording(read_log(log))
            left = Image.of_folder(disk).entries
        names = ['d', 'd/f', 'd/link', 'd/third', 'd/twice', 'e', 'e/moved']
        self.assertEqual(sorted(left), names)
        end = Cut(recording, len(recording.records), style='everything')
        self.assertEqual(end.image.entries, left)


def made(path, file):
    return [(CREATE, path, '', file, 0, b'')]


def made_folder(path, file):
    return [(FOLDER, path, '', file, 0, b'')]


def renamed(path, other):
    return [(RENAME, path, other, 0, 0, b'')]


def removed(path):
    return [(UNLINK, path, '', 0, 0, b'')]


def wrote(file, at, data):
    return [(WRITE, '', '', file, at, data)]


def cut_to(file, length):
    return [(LENGTH, '', '', file, length, b'')]


def synced(file, *meanwhile):
    """With calls that begin and end while the sync runs."""
    return [(SYNC, '', '', file, file, b''), *sum(meanwhile, []), (SYNCED, '', '', file, file, b'')]


class Disk(unittest.TestCase):
    """Recordings made by hand, each cut at its end."""

    def recording(self, *calls):
        note = NOTE, '', '', 0, 0, b'{"inodes": {"": %d}}' % ROOT
        rows = enumerate([note, *sum(calls, [])])
        return Recording([Record(index, kind, 1, *rest) for index, (kind, *rest) in rows])

    def states(self, *calls):
        recording = self.recording(*calls)
        for seed in range(SEEDS):
            yield Cut(recording, len(recording.records), seed).image.entries

    def seen(self, path, *calls):
        """What stands at a path, None for nothing."""
        return {entries.get(path) for entries in self.states(*calls)}

    def test_bytes_stay_that_were_written_before_a_sync_began(self):
        old, new = b'o' * 1536, b'n' * 1536
        seen = self.seen('f', made('f', 2), synced(ROOT), wrote(2, 0, old),
                         synced(2, wrote(2, 0, new)))
        pieces = {state[at:at + 512] for state in seen for at in (0, 512, 1024)}
        self.assertEqual(pieces, {old[:512], new[:512]})
        self.assertEqual(len(seen), 8)  # three sectors, each the old one or the new one

    def test_a_sync_counts_from_its_end_on(self):
        recording = self.recording(made('f', 2), synced(ROOT), wrote(2, 0, b'x'), synced(2))
        end = len(recording.records)
        self.assertEqual(Cut(recording, end, style='strict').image.entries, {'f': b'x'})
        self.assertEqual(Cut(recording, end - 1, style='strict').image.entries, {'f': b''})

    def test_a_sync_that_is_ignored_does_not_count(self):
        recording = self.recording(made('f', 2), synced(ROOT), wrote(2, 0, b'x'), synced(2))
        cut = Cut(recording, len(recording.records), style='strict', ignored=lambda path: True)
        self.assertEqual(cut.image.entries, {})

    def test_what_was_not_synced_may_be_torn_anywhere(self):
        seen = self.seen('f', made('f', 2), synced(ROOT), wrote(2, 100, b'a' * 1000),
                         wrote(2, 1100, b'b' * 9000))
        whole = bytes(100) + b'a' * 1000 + b'b' * 9000
        self.assertLessEqual({b'', whole, whole[:1100], whole[:1536], whole[:4096]}, seen)
        self.assertTrue(any(b'bbb' in state and b'aaa' not in state for state in seen))
        # Both writes are in the third sector. The later one is not there without the earlier one.
        third = {(state[1024:1100] == b'a' * 76, state[1100:1536] == b'b' * 436) for state in seen}
        self.assertEqual(third, {(False, False), (True, False), (True, True)})

    def test_a_length_that_was_set_comes_before_what_was_written_later(self):
        seen = self.seen('f', made('f', 2), synced(ROOT), wrote(2, 0, b'o' * 2000), synced(2),
                         cut_to(2, 0), wrote(2, 0, b'n' * 1000))
        self.assertLessEqual({b'o' * 2000, b'', b'n' * 1000, b'n' * 512}, seen)
        self.assertFalse(any(b'ooo' in state and b'nnn' in state for state in seen))

    def test_a_name_needs_a_sync_of_its_folder(self):
        calls = [made_folder('d', 2), made('d/f', 3), wrote(3, 0, b'x'), synced(3)]
        self.assertEqual(self.seen('d/f', *calls), {None, b'x'})
        calls += [synced(2)]
        self.assertEqual(self.seen('d/f', *calls), {None, b'x'})  # the folder has no name yet
        calls += [synced(ROOT)]
        self.assertEqual(self.seen('d/f', *calls), {b'x'})

    def test_a_rename_is_whole_or_not_at_all(self):
        calls = [made('f', 2), wrote(2, 0, b'old'), synced(2), synced(ROOT),
                 made('t', 3), wrote(3, 0, b'new'), synced(3), renamed('t', 'f')]
        seen = {(entries.get('f'), entries.get('t')) for entries in self.states(*calls)}
        self.assertEqual(seen, {(b'old', None), (b'old', b'new'), (b'new', None)})

    def test_a_rename_into_another_folder_needs_a_sync_of_one(self):
        calls = [made_folder('d', 2), made_folder('e', 3), made('d/f', 4), wrote(4, 0, b'x'),
                 synced(4), synced(ROOT), synced(2), renamed('d/f', 'e/f')]
        both = {('d/f', b'x'), ('e/f', b'x')}
        for folder, expected in ((None, both), (2, {('e/f', b'x')}), (3, {('e/f', b'x')})):
            states = self.states(*calls, synced(folder) if folder else [])
            files = [{path: held for path, held in entries.items() if held} for entries in states]
            self.assertEqual({pair for held in files for pair in held.items()}, expected)
            self.assertEqual({len(held) for held in files}, {1})

    def test_names_of_one_folder_come_in_their_order(self):
        seen = {''.join(sorted(entries))
                for entries in self.states(made('a', 2), made('b', 3), removed('a'))}
        self.assertEqual(seen, {'', 'a', 'ab', 'b'})

    def test_names_of_two_folders_come_in_any_order(self):
        calls = [made_folder('d', 2), made_folder('e', 3), synced(ROOT), made('d/f', 4),
                 made('e/g', 5)]
        seen = {('d/f' in entries, 'e/g' in entries) for entries in self.states(*calls)}
        self.assertEqual(len(seen), 4)

    def test_what_got_a_new_name_unsynced_may_be_empty(self):
        seen = self.seen('f', made('t', 2), wrote(2, 0, b'new'), renamed('t', 'f'), synced(ROOT))
        self.assertLessEqual({b'', b'new'}, seen)
        self.assertNotIn(None, seen)

    def test_the_same_seed_is_the_same_disk(self):
        calls = [made('f', 2), wrote(2, 0, os.urandom(20_000)), made('g', 3),
                 wrote(3, 0, b'x' * 9_000)]
        pairs = zip(self.states(*calls), self.states(*calls))
        self.assertTrue(all(one == other for one, other in pairs))


class Confirmed(unittest.TestCase):
    def test_what_may_be_true_at_each_moment(self):
        notes = [(1, {'begin': 0, 'facts': [[['k'], 'a']]}),
                 (3, {'end': 0, 'facts': []}),
                 (5, {'begin': 1, 'facts': [[['k'], 'b']]}),  # never confirmed
                 (7, {'begin': 2, 'facts': [[['k'], None]]}),
                 (9, {'end': 2, 'facts': [[['told'], 1]]})]
        expected = {1: None, 2: [None, 'a'], 3: [None, 'a'], 4: ['a'], 6: ['a', 'b'],
                    8: ['a', 'b', None], 10: [None]}
        self.assertEqual({cut: allowed(notes, cut).get(('k',)) for cut in expected}, expected)
        self.assertEqual(allowed(notes, 9).get(('told',)), None)
        self.assertEqual(allowed(notes, 10).get(('told',)), [1])
        self.assertEqual(confirmations(notes), [3, 9])


if __name__ == '__main__':
    unittest.main()
