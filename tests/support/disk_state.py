"""What a disk may hold after a power cut, built from a log of disk_recorder.c.

The promise of the disk is the weakest that a file system with a journal gives:

- What was written to a file before a sync of that file began is there once the sync has returned.
  Of each later write any sectors may be there, or none, whatever became of other writes: a sector
  has the bytes of any one moment since then, and the length is that of any such moment too. Where
  the length got to the disk and the bytes did not, there are zeros, or what the disk held before.
- A name (made, renamed, removed) is there once a sync of its folder has returned that began after
  it. A sync of the file says nothing about its name (ext4 does more). Later changes of one
  folder's names get to the disk in their order, whatever became of other folders'. A rename
  happens whole or not at all.

The seed of a `Cut` chooses what else has got there: nothing, everything, or any mixture.
"""
import collections
import contextlib
import os
import random
import tempfile

from tests.support.disk_log import (CREATE, FOLDER, LENGTH, LINK, MAPPED, RENAME, SYMLINK, SYNC,
                                    SYNCED, UNLINK, WRITE, notes)

PREFIX = 'deltabucket-power-cut-'
MEMORY, MEMORY_BYTES = '/dev/shm', 1 << 30
SECTOR, PAGE = 512, 4096
FILLED_WITH_OTHERS = 0.25  # how often what the disk held before shows in place of zeros

Change = collections.namedtuple('Change', 'index at data')  # data None: the length becomes `at`
Naming = collections.namedtuple('Naming', 'index folders apply text')
Sync = collections.namedtuple('Sync', 'begin end path')


class Entry:
    """A file, folder or link: its past in this recording."""

    def __init__(self, path, base=b''):
        self.path = path
        self.base = base  # before the recording: a file's bytes, where a link leads
        self.changes = []  # of a file's bytes
        self.syncs = []

    def covered(self, cut, ignored):
        """The record before which everything is on the disk."""
        begins = (sync.begin for sync in self.syncs if sync.end < cut and not ignored(sync.path))
        return max(begins, default=-1)


class File(Entry):
    pass


class Folder(Entry):
    pass


class Link(Entry):
    pass


class Image:
    """A tree in memory: {path: bytes of a file, None for a folder, text where a link leads}."""

    def __init__(self, entries):
        self.entries = entries

    @classmethod
    def of_folder(cls, folder):
        """Sockets are left out."""
        entries = {}
        for path in paths_below(folder):
            full = os.path.join(folder, path)
            if os.path.islink(full):
                entries[path] = os.readlink(full)
            elif os.path.isdir(full):
                entries[path] = None
            elif os.path.isfile(full):
                with open(full, 'rb') as file:
                    entries[path] = file.read()
        return cls(entries)

    def write(self, folder):
        for path in sorted(self.entries):
            held, full = self.entries[path], os.path.join(folder, path)
            if held is None:
                os.mkdir(full, 0o700)
            elif isinstance(held, str):
                os.symlink(held, full)
            else:
                file = os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(file, 'wb') as target:
                    target.write(held)


@contextlib.contextmanager
def scratch():
    """A folder in memory, where there is enough: no disk made up has to outlast anything."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=memory_folder()) as folder:
        yield os.path.realpath(folder)


def memory_folder():
    with contextlib.suppress(OSError):
        facts = os.statvfs(MEMORY)
        if facts.f_bavail * facts.f_frsize > MEMORY_BYTES and os.access(MEMORY, os.W_OK):
            return MEMORY
    return None


def paths_below(folder):
    for base, folders, names in os.walk(folder):
        for name in folders + names:
            yield os.path.relpath(os.path.join(base, name), folder)


def inodes(folder):
    """{path: inode} of a folder and all below it: what the recorder's records will name them by."""
    paths = ['', *paths_below(folder)]
    return {path: os.lstat(os.path.join(folder, path)).st_ino for path in paths}


class Recording:
    """The past of all files, from the records and from what was there before.

    The first record is the note {'inodes': inodes(folder)}.
    """

    def __init__(self, records, base=Image({})):
        self.records = records
        self.notes = notes(records)
        self.entries, self.namings = [], []
        self.by_inode, self.names, self.begun = {}, {}, {}  # as of now, while the records go by
        self._take_base(base, self.notes[0][1]['inodes'])
        self.at_start = {folder: dict(names) for folder, names in self.names.items()}
        take = {CREATE: self._create, FOLDER: self._create, SYMLINK: self._create, LINK: self._link,
                RENAME: self._rename, UNLINK: self._unlink, WRITE: self._write,
                LENGTH: self._set_length, SYNC: self._sync_begins, SYNCED: self._sync_ends,
                MAPPED: self._map}
        for record in records:
            if record.kind in take:
                take[record.kind](record)

    def _add(self, entry, inode):
        self.entries.append(entry)
        self.by_inode[inode] = entry
        if isinstance(entry, Folder):
            self.names[entry] = {}
        return entry

    def _take_base(self, base, numbers):
        self.root = self._add(Folder(''), numbers[''])
        for path in sorted(base.entries):
            held = base.entries[path]
            kind = Folder if held is None else Link if isinstance(held, str) else File
            folder, name = self._place(path)
            self.names[folder][name] = self._add(kind(path, held), numbers[path])

    def _place(self, path):
        """The folder that holds the path's last name, and that name."""
        folder = self.root
        *parents, name = path.split('/')
        for parent in parents:
            folder = self.names[folder][parent]
        return folder, name

    def _name(self, record, folders, apply, text):
        """`apply` changes {folder: {name: entry}}."""
        apply(self.names)
        self.namings.append(Naming(record.index, folders, apply, text))

    def _create(self, record):
        kind = {CREATE: File, FOLDER: Folder, SYMLINK: Link}[record.kind]
        base = bytes(record.data).decode() if kind is Link else b''
        self._add(kind(record.path, base), record.file)
        self._link(record)

    def _link(self, record):
        folder, name = self._place(record.path)
        entry = self.by_inode[record.file]

        def apply(names):
            names[folder][name] = entry
        self._name(record, [folder], apply, f'{record.path} made')

    def _unlink(self, record):
        folder, name = self._place(record.path)

        def apply(names):
            names[folder].pop(name, None)
        if name in self.names[folder]:  # else it is a socket's
            self._name(record, [folder], apply, f'{record.path} removed')

    def _rename(self, record):
        old_folder, old_name = self._place(record.path)
        new_folder, new_name = self._place(record.other)
        entry = self.names[old_folder][old_name]
        entry.path = record.other

        def apply(names):
            names[old_folder].pop(old_name, None)
            names[new_folder][new_name] = entry
        text = f'{record.path} renamed to {record.other}'
        self._name(record, [old_folder, new_folder], apply, text)

    def _write(self, record):
        self.by_inode[record.file].changes.append(Change(record.index, record.at, record.data))

    def _set_length(self, record):
        self.by_inode[record.file].changes.append(Change(record.index, record.at, None))

    def _sync_begins(self, record):
        self.begun[record.process, record.at] = record

    def _sync_ends(self, record):
        begin = self.begun.pop((record.process, record.at))
        self.by_inode[record.file].syncs.append(Sync(begin.index, record.index, begin.path))

    def _map(self, record):
        assert record.path.endswith('-shm'), f'{record.path} is mapped: no record tells its bytes'


class Cut:
    """The disk as a power cut right before record `at` may leave it, in `image`.

    `style` is a name of STYLES, or None: the seed chooses. `ignored` says of a path whose syncs
    count as none, for controls that have to fail. `story` tells what was lost.
    """
    # What is kept of names and of bytes that were not synced; None: the seed chooses, for each
    # file by itself. 'everything' is what the end of the process alone leaves.
    STYLES = {'strict': ('nothing', 'nothing'), 'names': ('everything', 'nothing'),
              'bytes': ('nothing', 'everything'), 'everything': ('everything', 'everything'),
              'mixed': (None, None)}
    NAMES = ('nothing', 'everything', 'journal', 'folders', 'folders')

    def __init__(self, recording, at, seed=None, style=None, ignored=lambda path: False):
        self.recording, self.at, self.ignored = recording, at, ignored
        self.source = random.Random(seed)
        self.is_chosen = style is None
        style = style or self.source.choice([*self.STYLES, *['mixed'] * 4])
        names_kept, self.bytes_kept = self.STYLES[style]
        self.story = [f'style {style}']
        names = self._names(names_kept or self.source.choice(self.NAMES))
        self.image = Image({})
        self._take(names, recording.root, '')

    def _names(self, kept):
        """{folder: {name: entry}} with what has got to the disk."""
        past = [naming for naming in self.recording.namings if naming.index < self.at]
        covered = {entry: entry.covered(self.at, self.ignored)
                   for entry in self.recording.entries if isinstance(entry, Folder)}
        loose = [naming for naming in past if not is_before(naming, covered)]
        limits = self._limits(kept, covered, loose)
        lost = {naming.index: naming.text for naming in loose if not is_before(naming, limits)}
        names = {folder: dict(self.recording.at_start.get(folder, ())) for folder in covered}
        for naming in past:
            if naming.index not in lost:
                naming.apply(names)
        self.story.append(f'names not synced: {len(loose)}; kept: {kept}, all but {len(lost)}')
        self.story.extend(f'  lost: {text} (record {index})' for index, text in lost.items())
        return names

    def _limits(self, kept, folders, loose):
        """For each folder the record before which its names are there, synced or not."""
        if kept == 'folders':  # each has its own order
            return {folder: self._end_of_some(one for one in loose if folder in one.folders)
                    for folder in folders}
        limit = {'nothing': 0, 'everything': self.at}.get(kept)
        return dict.fromkeys(folders, self._end_of_some(loose) if limit is None else limit)

    def _end_of_some(self, namings):
        return self.source.choice([0, *(naming.index + 1 for naming in namings)])

    def _take(self, names, folder, prefix):
        for name, entry in names[folder].items():
            path = prefix + name
            self.image.entries[path] = entry.base
            if isinstance(entry, Folder):
                self.image.entries[path] = None
                self._take(names, entry, path + '/')
            elif isinstance(entry, File):
                self.image.entries[path] = self._content(entry)

    def _content(self, entry):
        covered = entry.covered(self.at, self.ignored)
        data, loose = bytearray(entry.base), []
        for change in entry.changes:
            if change.index >= self.at:
                break
            if change.index < covered:
                change_bytes(data, change)
            else:
                loose.append(change)
        if loose:
            self._lose(entry, data, loose)
        if entry.path.endswith('-shm') and self.is_chosen:
            return self.source.randbytes(len(data))  # mapped: it may hold anything
        return bytes(data)

    def _lose(self, entry, data, loose):
        kept = self.bytes_kept or self.source.choice(Survival.WAYS)
        Survival(kept, self.source).apply(data, loose)
        size = sum(len(change.data) for change in loose if change.data is not None)
        self.story.append(f'{entry.path}: not synced: {len(loose)} changes of {size} bytes; '
                          f'kept: {kept}')


def is_before(naming, limits):
    """A rename is in two folders, and whole as soon as one of them has it."""
    return any(naming.index < limits[folder] for folder in naming.folders)


class Survival:
    """What becomes of a file's changes since its last sync. `kept` is one of WAYS."""
    WAYS = ('nothing', 'everything', 'first', 'calls', 'pages', 'sectors')

    def __init__(self, kept, source):
        self.kept, self.source = kept, source
        self.unit = {'pages': PAGE, 'sectors': SECTOR}.get(kept, source.choice((SECTOR, PAGE)))
        self.pick = {'calls': self._some_writes}.get(kept, self._any_moment)

    def apply(self, data, changes):
        if self.kept == 'everything':
            for change in changes:
                change_bytes(data, change)
        elif self.kept == 'first':
            self._keep_first(data, changes)
        elif self.kept != 'nothing':
            self._keep_up_to_a_length(data, changes)

    def _keep_first(self, data, changes):
        """All up to one that is torn."""
        count = self.source.randrange(len(changes))
        for change in changes[:count]:
            change_bytes(data, change)
        if changes[count].data is not None:
            self._keep(data, [changes[count]], self._some_of_write(changes[count], 0))

    def _keep_up_to_a_length(self, data, changes):
        """Lengths that were set come in order: with one of them all that follows is lost."""
        pieces = list(split_at_lengths(changes))
        end = self.source.randrange(len(pieces))
        for number, (writes, length) in enumerate(pieces[:end + 1]):
            self._keep(data, writes, self.pick(writes))
            if number < end:
                change_bytes(data, length)

    def _keep(self, data, writes, last):
        """`last`: {unit: number of the last write whose bytes it has, with those before}."""
        before = reached = len(data)
        whole = max([before] + [write.at + len(write.data) for write in writes])
        is_filled = self.source.random() < FILLED_WITH_OTHERS
        data.extend(self.source.randbytes(whole - before) if is_filled else bytes(whole - before))
        for number, write in enumerate(writes):
            for place in self._units(write):
                if last.get(place, -1) >= number:
                    reached = max(reached, keep_unit(data, write, place * self.unit, self.unit))
        del data[self.source.choice((before, reached, whole)):]

    def _units(self, write):
        """Numbers of the sectors or pages that a write touches."""
        return range(write.at // self.unit, (write.at + len(write.data) - 1) // self.unit + 1)

    def _some_writes(self, writes):
        """Each write is kept, torn or lost."""
        last = {}
        for number, write in enumerate(writes):
            fate = self.source.choice(('kept', 'kept', 'torn', 'lost', 'lost'))
            if fate == 'kept':
                last.update(dict.fromkeys(self._units(write), number))
            elif fate == 'torn':
                last.update(self._some_of_write(write, number))
        return last

    def _some_of_write(self, write, number):
        """Its front, or any parts."""
        places = list(self._units(write))
        if self.source.random() < 0.5:
            kept = places[:self.source.randrange(len(places) + 1)]
        else:
            kept = [place for place in places if self.source.random() < 0.5]
        return dict.fromkeys(kept, number)

    def _any_moment(self, writes):
        touched = {}
        for number, write in enumerate(writes):
            for place in self._units(write):
                touched.setdefault(place, [-1]).append(number)
        return {place: self.source.choice(numbers) for place, numbers in touched.items()}


def change_bytes(data, change):
    end = change.at + len(change.data or b'')
    if change.data is None:
        del data[end:]
    if len(data) < end:
        data.extend(bytes(end - len(data)))
    if change.data is not None:
        data[change.at:end] = change.data


def keep_unit(data, write, at, size):
    """The part of a write that lies in one sector or page; gives where that ends."""
    begin, end = max(write.at, at), min(write.at + len(write.data), at + size)
    data[begin:end] = write.data[begin - write.at:end - write.at]
    return end


def split_at_lengths(changes):
    """(writes, the setting of the length behind them, or None at the end)."""
    writes = []
    for change in changes:
        if change.data is None:
            yield writes, change
            writes = []
        else:
            writes.append(change)
    yield writes, None
