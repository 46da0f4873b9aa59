"""The operator's commands on a store with flipped bits: each case tries one, on a copy.

A command tells of what reads fail of, names what it cannot work with, and what it makes (a catalog,
a restored store) reads right where the damaged store did.
"""
import contextlib
import os
import re
import shutil

from tests.support.bit_reading import Reader, is_error, same

CATALOG = re.compile(r'^catalog\.db')
JOURNAL = re.compile(r'^journal/')


class Tools:
    """`site`: a copy of the damaged store. `readings`: {question: answer} of the sound one, and of
    the damaged one. Faults are sentences, gathered in `faults`."""

    def __init__(self, site, flip, sound, damaged, reader_key):
        self.site, self.flip = site, flip
        self.sound, self.damaged = sound, damaged
        self.reader_key = reader_key
        self.has_errors = any(not same(damaged[question], sound[question]) for question in sound)
        self.faults = []

    def run(self, number):
        tools = self.fsck, self.backup, self.scrub, self.rebuild
        tools[number % len(tools)]()
        return self.faults

    def command(self, allowed, *words):
        """Gives the exit status."""
        done = self.site.daemon.command(*words)
        self.told = done.stdout + done.stderr
        if done.returncode not in allowed:
            self.fault(f'deltabucketd {" ".join(words)} ended with {done.returncode}')
        return done.returncode

    def fault(self, text):
        self.faults.append(f'{text}; told: {self.told}')

    def must_name(self):
        """The file, a pack by its id."""
        name = os.path.basename(self.flip.path).split('.')[0]
        if name not in self.told:
            self.fault(f'{name} is not named')

    def fsck(self):
        may_be_shut = CATALOG.search(self.flip.path) is not None
        status = self.command((0, 4, 8) if may_be_shut else (0, 4), 'fsck', *self.data())
        if status == 0 and self.has_errors:
            self.fault('reads fail, and fsck finds nothing')
        if status != 0:
            self.must_name()

    def scrub(self):
        status = self.command((0, 4), 'scrub', *self.data())
        if status == 0 and self.has_errors and self.flip.kind.name == 'pack record':
            self.fault('reads fail, and scrub finds nothing')

    def backup(self):
        place, restored = (os.path.join(self.site.folder, name) for name in ('place', 'restored'))
        made = self.command((0, 1, 4), 'backup', *self.data(), '--to', place)
        if made == 1 and not CATALOG.search(self.flip.path):
            self.fault('the backup failed')
        if made == 4:
            self.must_name()
        if made == 1 or self.command((0, 4), 'restore', '--from', place, '--data', restored) == 4:
            return
        shutil.copy(os.path.join(self.site.data, 'master.key'), restored)
        self.site.daemon.folder = restored
        self.must_read(as_before=made == 0)

    def rebuild(self):
        for name in os.listdir(self.site.data):
            if CATALOG.search(name):
                os.remove(os.path.join(self.site.data, name))
        status = self.command((0, 1, 4), 'rebuild', *self.data())
        if status == 0:
            self.must_read()
        else:
            self.must_name()
            if not JOURNAL.search(self.flip.path):
                self.fault('the journal is sound, and the catalog does not come back')

    def data(self):
        return '--data', self.site.daemon.folder

    def must_read(self, as_before=True):
        """No answer is wrong. `as_before`: what was read right is read right again."""
        try:
            self.site.daemon.start()
        except RuntimeError as refusal:
            self.fault(f'the start is refused: {refusal}')
            return
        with contextlib.closing(Reader(self.site.daemon, self.reader_key)) as reader:
            for question, answer in reader.read(self.sound).items():
                sound = self.sound[question]
                was_right = as_before and same(self.damaged[question], sound)
                if not same(answer, sound) and (was_right or not is_error(question, sound, answer)):
                    self.fault(f'{question} is {answer} and was {sound}')
        self.site.daemon.stop()
        if self.faults:
            log = self.site.daemon.log().split('\n')
            self.faults.append('\n'.join(line for line in log if ' info ' not in line)[-3000:])
