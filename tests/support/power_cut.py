"""A campaign of power cuts.

A server's work is recorded once (power_load.py); then the power is cut at many places of the
recording. Each time a disk is made up as it may look then (disk_state.py), and a fresh server must
make good on it all that was confirmed before (power_judge.py). Its start and what it is asked are
recorded again, and cut again, and judged again.
"""
import collections
import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import random
import re
import shutil
import tempfile
import traceback

from tests.support.daemon import BUILD, SOURCE, Daemon
from tests.support.disk_log import SYNCED, WRITE, read_log, recorded
from tests.support.disk_state import PREFIX, Cut, Image, Recording, inodes, scratch
from tests.support.ledger import Ledger, allowed, confirmations
from tests.support.power_judge import Judge
from tests.support.power_load import (ARGUMENTS, Load, Writer, is_catalog_lost, lose_catalog,
                                       rebuild)

CUTS_OF_ONE = 200  # recording
JOBS = 4
WARNING_BYTES = 3000
LOG, LOG_AGAIN = 'recording', 'recording-{}'  # the second: of the start behind the cut of that seed
# Mapped, or written where the recorder does not see it. Neither is worth anything later.
NOT_RECORDED = re.compile(r'-shm$|/lock$')
# Which syncs there are, by the path of what is synced. Each kind is needed.
SYNCS = {
    'packs': re.compile(r'\.pack$'),
    'names of packs': re.compile(r'/packs(/..)?$'),
    'the log of the catalog': re.compile(r'/catalog\.db-wal$'),
    'the catalog': re.compile(r'/catalog\.db$'),
    'names in the data folder': re.compile(r'^data$'),
    'the journal': re.compile(r'/journal(/|$)'),
    'the backup': re.compile(r'^backup'),
    'everything': re.compile(''),
}

# `disks`: how many were judged, 1 or 2. `story`: what was lost on them.
Verdict = collections.namedtuple('Verdict', 'seed disks faults story')


class Round:
    """One recording, and some cuts of it.

    As a context manager: it is recorded, and removed again unless a cut showed a fault.
    """

    def __init__(self, seed, cuts):
        self.seed, self.cuts = seed, cuts
        self.has_faults = False

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix=PREFIX)
        try:
            with scratch() as disk:
                Load(disk, os.path.join(self.folder, LOG), self.seed).run()
                self.left = Image.of_folder(disk).entries
            self.recording = read_recording(self.folder)
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        return self

    def __exit__(self, *failure):
        if not self.has_faults:
            shutil.rmtree(self.folder)

    def differences(self):
        """Paths of which the recording says something else than what the programs left."""
        end = Cut(self.recording, len(self.recording.records), style='everything')
        told = end.image.entries
        paths = [path for path in {**self.left, **told} if not NOT_RECORDED.search(path)]
        return sorted(path for path in paths if self.left.get(path, 0) != told.get(path, 0))

    def about(self):
        records = self.recording.records
        written = sum(len(record.data) for record in records if record.kind == WRITE)
        syncs = sum(record.kind == SYNCED for record in records)
        changes = len(confirmations(self.recording.notes))
        return (f'recorded: {changes} confirmed changes, {len(records)} records, '
                f'{written / 1e6:.0f} MB written, {syncs} syncs')

    def verdicts(self):
        """In any order, as they come."""
        context = multiprocessing.get_context('fork')
        jobs = min(JOBS, os.cpu_count())
        with concurrent.futures.ProcessPoolExecutor(jobs, context) as pool:
            works = [pool.submit(judge_cut_of, self.folder, f'{self.seed}-{number}')
                     for number in range(self.cuts)]
            for done in concurrent.futures.as_completed(works):
                verdict = done.result()
                self.has_faults |= bool(verdict.faults)
                yield verdict


def rounds(cuts, seed):
    """So many cuts, of several recordings when they are many."""
    return [Round(f'{seed}-{number}', min(CUTS_OF_ONE, cuts - first))
            for number, first in enumerate(range(0, cuts, CUTS_OF_ONE))]


@functools.lru_cache(1)  # judging processes begin with what their parent has read
def read_recording(folder):
    return Recording(read_log(os.path.join(folder, LOG)))


def judge_cut_of(folder, seed):
    return judge_cut(read_recording(folder), seed, folder)


def judge_cut(recording, seed, kept=None, again=None):
    """Cuts the power at one place of the recording, then at one of the start that follows.

    `kept`: a folder that gets the recording of that start when the second cut shows a fault.
    `again`: the recording of an earlier time, to be used instead.
    """
    source = random.Random(f'{seed} places')
    cut = Cut(recording, somewhere(recording, source), f'{seed} first')
    values = allowed(recording.notes, cut.at)
    is_lost = is_catalog_lost(recording.notes, cut.at)
    story = [f'cut before record {cut.at} of {len(recording.records)}', *cut.story]
    with scratch() as folder:
        log = again or os.path.join(folder, 'log')
        faults = [] if again else judge_first(folder, cut.image, values, is_lost, log)
        if faults:
            return Verdict(seed, 1, faults, story)
        second = Recording(read_log(log), cut.image)
        cut = Cut(second, somewhere_again(second, source), f'{seed} second')
        is_lost = is_catalog_lost(second.notes, cut.at, is_lost)
        loses = source.random() < 0.5
        values = values_again(second, values, cut.at)
        faults = judge_second(folder, cut.image, values, is_lost, loses)
        if faults and kept:
            shutil.copy(log, os.path.join(kept, LOG_AGAIN.format(seed)))
        story += ['', f'the next start cut before record {cut.at} of {len(second.records)}',
                  *cut.story]
        return Verdict(seed, 2, faults, story)


def judge_first(folder, image, values, is_lost, log):
    with contextlib.closing(Trial(folder, image, values, is_lost, log)) as trial:
        return trial.run(trial.write_more)


def judge_second(folder, image, values, is_lost, loses):
    """`loses`: the catalog once more, later."""
    with contextlib.closing(Trial(folder, image, values, is_lost)) as trial:
        return trial.run(trial.lose_and_use if loses else trial.use_and_stop)


def judge_strictly(recording, at, ignored=None):
    """The faults of a disk that has what was synced and nothing else.

    `ignored`: a name of SYNCS, of which none counts.
    """
    is_ignored = SYNCS[ignored].search if ignored else lambda path: False
    cut = Cut(recording, at, style='strict', ignored=is_ignored)
    with scratch() as folder:
        values, is_lost = allowed(recording.notes, at), is_catalog_lost(recording.notes, at)
        with contextlib.closing(Trial(folder, cut.image, values, is_lost)) as trial:
            return trial.run()


def somewhere(recording, source):
    """Right behind a confirmation, when most has to be right; right behind a sync, when others have
    not begun yet; or anywhere."""
    syncs = [record.index for record in recording.records if record.kind == SYNCED]
    ends = source.choice((confirmations(recording.notes), syncs, ()))
    return source.choice(ends) + 1 if ends else source.randrange(1, len(recording.records) + 1)


def somewhere_again(recording, source):
    """Every other time before all was read for the first time, so in the start."""
    reads = [index for index, note in recording.notes if 'read' in note]
    if source.random() < 0.5:
        return somewhere(recording, source)
    return source.randrange(1, reads[0] + 1)


def values_again(recording, values, cut):
    """What may be read after a cut of a second recording: what was read once stays so."""
    reads = [note['read'] for index, note in recording.notes if 'read' in note and index < cut]
    found = {tuple(fact): [value] for fact, value in reads[0]} if reads else values
    return {**found, **allowed(recording.notes, cut)}


class Trial:
    """A disk and a server on it. `is_lost`: the catalog was being made again. `log`: what happens
    is recorded there."""

    def __init__(self, folder, image, values, is_lost, log=None):
        self.disk = os.path.join(folder, 'disk')
        os.mkdir(self.disk)
        image.write(self.disk)
        self.values, self.is_lost = values, is_lost
        self.ledger = Ledger(log) if log else None
        if log:
            self.ledger.note({'inodes': inodes(self.disk)})
        self.daemon = Daemon(tls=False, arguments=ARGUMENTS, folder=os.path.join(self.disk, 'data'),
                             environment=recorded(self.disk, log) if log else None)

    def run(self, then=lambda judge: None):
        """Gives the faults; with some, the server's log is the last. `then` gets the judge."""
        try:
            self._start()
        except (AssertionError, RuntimeError) as failure:
            return [f'the server does not start: {failure}']
        with contextlib.closing(Judge(self.daemon, self.values)) as judge:
            try:
                self._read_twice(judge)
                then(judge)
                self.daemon.check_end()
            except Exception as failure:  # an answer that nobody expects
                judge.faults.append(''.join(traceback.format_exception(failure)))
            return judge.faults + ([self._warnings()] if judge.faults else [])

    def _start(self):
        """Where the cut came between the loss of the catalog and the end of `rebuild`, it is made
        again first, unless the old one is there."""
        try:
            self.daemon.start()
        except RuntimeError:
            if not self.is_lost:
                raise
            lose_catalog(self.daemon, self.ledger)
            rebuild(self.daemon, self.ledger)
            self.daemon.start()

    def _read_twice(self, judge):
        found = judge.read()
        if self.ledger:
            self.ledger.note({'read': list(found.items())})
        judge.gc()
        judge.allowed = {fact: [value] for fact, value in found.items()}
        judge.read()

    def write_more(self, judge):
        """New changes, which the next cut must leave."""
        writer = Writer(self.daemon, self.ledger, 'after', 'after', 'w', {})
        with contextlib.closing(writer):
            writer.run_briefly()

    def lose_and_use(self, judge):
        """The journal that the cut has left leads to all that is there."""
        judge.close()
        self.daemon.stop()
        lose_catalog(self.daemon)
        rebuild(self.daemon)
        self.daemon.start()
        judge.read()
        self.use_and_stop(judge)

    def use_and_stop(self, judge):
        judge.use()
        self.daemon.stop()
        judge.check()

    def _warnings(self):
        lines = [line for line in self.daemon.log().split('\n') if ' info ' not in line]
        return 'the log of the server: ' + '\n'.join(lines)[-WARNING_BYTES:]

    def close(self):
        if self.daemon.process and self.daemon.process.poll() is None:
            self.daemon.kill()
        if self.ledger:
            self.ledger.close()
        self.daemon.held_port.close()
        shutil.rmtree(self.daemon.scratch, ignore_errors=True)
        shutil.rmtree(self.disk)


def describe(verdict, folder):
    """What a person needs to see it again."""
    script = os.path.join(SOURCE, 'tests', 'crash', 'power_cut.py')
    command = f'DELTABUCKET_BUILD={BUILD} {script} --repeat {folder} {verdict.seed}'
    return '\n'.join([f'seed {verdict.seed}:', *verdict.faults, '', *verdict.story, '',
                      f'once more: {command}'])
