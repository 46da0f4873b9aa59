"""A campaign of flipped bits.

A store is made once (bit_store.py) and copied for each case. Some bits of one of its files are
flipped, and a server is started on it: all is read (bit_reading.py), the server's check of its
catalog ends, gc runs, all is read again, and in every other case an object is put. The operator's
commands are tried on a copy (bit_tools.py). Then the bits are put back where nobody has written
since, and all is read once more.

Never a wrong answer, never a sound byte gone. Each flip is harmless, healed (what was flipped is
right again, or was written anew), or named by the time the check has ended and all was read; or the
start is refused, names the file, and changes nothing.
"""
import collections
import concurrent.futures
import contextlib
import hashlib
import http.client
import multiprocessing
import os
import random
import re
import shutil
import tempfile
import time
import traceback

from tests.support.bit_reading import (CUT, Question, Reader, agrees, is_error, is_passing,
                                      question_of_fact, questions_of, same)
from tests.support.bit_store import ARGUMENTS, USED, Store
from tests.support.bit_tools import Tools
from tests.support.checkpoints import sha256
from tests.support.daemon import BUILD, ROOT_TOKEN, SANITIZER, SOURCE, Daemon
from tests.support.disk_state import memory_folder
from tests.support.pack_walk import parts_of, records_of
from tests.support.power_load import RUN
from tests.support.s3 import texts, tree

PREFIX = 'deltabucket-bits-'
JOBS = 4
CASES_OF_ONE = 250  # store: what it has made for a time is there until the last of them
PAGE = 4096
CHECK_SECONDS = 60
USED_TARGET = f'/used/{USED}'
USED_SIZES = 500, 3_000, 90_000, 1_200_000
OUTCOMES = 'harmless', 'healed', 'named', 'refused'

# What is flipped, and how often in a round: `path`; `part` of a pack; whether one flip of it is put
# right (`mends`), so that every other case takes three; whether a start has to open the store
# before it can refuse (`opens`).
Kind = collections.namedtuple('Kind', 'name turns path part mends opens',
                              defaults=[None, False, False])
KINDS = (
    Kind('catalog', 6, re.compile(r'^catalog\.db$'), mends=True),
    Kind('log of the catalog', 3, re.compile(r'^catalog\.db-wal$'), mends=True),
    Kind('its shared memory', 1, re.compile(r'^catalog\.db-shm$')),
    Kind('acknowledged', 1, re.compile(r'^acknowledged$')),
    Kind('chunk index', 1, re.compile(r'^chunks\.db'), mends=True),
    Kind('pack header', 1, re.compile(r'^packs/.*\.pack$'), 'header'),
    Kind('pack record', 2, re.compile(r'^packs/.*\.pack$'), 'record'),
    Kind('pack footer', 1, re.compile(r'^packs/.*\.pack$'), 'footer'),
    Kind('pack index', 1, re.compile(r'^packs/.*\.index$')),
    Kind('journal', 3, re.compile(r'^journal/')),
    Kind('scrub, backup', 2, re.compile(r'^(scrub|backup-holds|backup/.*)$')),
    Kind('certificate', 1, re.compile(r'^tls/')),
    Kind('master key', 1, re.compile(r'^master\.key$'), opens=True),
    Kind('lock, set aside', 1, re.compile(r'^(lock|set-aside/.*)$')),
)
ROUND = [kind for kind in KINDS for _ in range(kind.turns)]
# What a start may write before it has refused: who holds the folder, and what is made anew anyway.
MAY_CHANGE = re.compile(r'^(lock|control\.sock|.*-shm|chunks\.db.*)$')

Flip = collections.namedtuple('Flip', 'kind path bits')  # bits: offsets in the file
Verdict = collections.namedtuple('Verdict', 'number flip outcome faults log')


class Template:
    """The store that is copied, what it answers, and which records of its packs are needed."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix=PREFIX, dir=memory_folder())
        try:
            self.store = Store(self.folder).make()
            self.files = read_files(self.store.data)
            self.ask_sound()
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        return self

    def __exit__(self, *failure):
        shutil.rmtree(self.folder)

    def ask_sound(self):
        """Of a copy that nothing was done to; gc has run on it."""
        with contextlib.closing(Site(self)) as site, site.daemon:
            with contextlib.closing(Reader(site.daemon, self.store.keys['reader'])) as reader:
                self.questions = questions_of(self.store, reader)
                self.expected = reader.read(self.questions)
                self.check_facts(site)
                site.daemon.admin('gc')
            self.events = events_of(site.daemon.log())
            site.daemon.stop()
            self.kept = site.records().keys()  # packs that gc leaves as they are
            self.needed = set().union(*site.records().values())

    def check_facts(self, site):
        """The sound store says what was confirmed."""
        for fact, value in self.store.facts.items():
            answer = self.expected[question_of_fact(fact, value)[0]]
            assert agrees(answer, fact, value), (fact, value, answer)
        newest = max(fact for fact in self.store.facts if fact[:2] == ('step', RUN))
        into = os.path.join(site.folder, 'followed')
        site.daemon.client('follow', '--run', RUN, '--into', into, '--once')
        weights = sha256(os.path.join(into, 'current', 'model.safetensors'))
        assert weights == self.store.facts[newest]

    def place(self, number, seed):
        """The flip of a case: kinds in turn, and pages of the catalog in turn."""
        source = random.Random(f'{seed} {number}')
        kind = ROUND[number % len(ROUND)]
        turn = number // len(ROUND) * kind.turns + number % len(ROUND) - ROUND.index(kind)
        path = source.choice([path for path, data in sorted(self.files.items())
                              if data and kind.path.search(path)])
        data = self.files[path]
        first, end = 0, len(data)
        if kind.part:
            parts = [part for part in parts_of(data) if part.kind == kind.part]
            _, first, end = source.choice(parts) if parts else (None, 0, len(data))
        elif kind.mends:
            pages = list(range(0, len(data), PAGE))
            random.Random(f'{seed} {path}').shuffle(pages)
            first = pages[turn // 2 % len(pages)]
            end = min(first + PAGE, len(data))
        count = 3 if kind.mends and turn % 2 else 1
        return Flip(kind, path, some_bits(source, data, first, end, count))


def some_bits(source, data, first, end, count):
    """Mostly of bytes that hold something: the pages of small tables are nearly empty."""
    places = [at for at in range(first, end) if data[at]]
    if len(places) < count or source.random() < 0.2:
        places = range(first, end)
    return tuple(sorted(at * 8 + source.randrange(8) for at in source.sample(places, count)))


def read_files(folder):
    """{relative path: bytes}"""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            if os.path.isfile(path):
                with open(path, 'rb') as file:
                    found[os.path.relpath(path, folder)] = file.read()
    return found


def flipped(data, bits):
    data = bytearray(data)
    for bit in bits:
        data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def events_of(log):
    """What is worth an operator's look: the events of lines that say error or warning."""
    return re.findall(r'^\S+ (?:error|warning) \S+ (\w+)', log, re.M)


class KnownCa(Daemon):
    """Its clients have the CA's certificate from before."""
    known = None

    @property
    def ca(self):
        return self.known


class Site:
    """A copy of the store, or of `source`, and a server on it."""

    def __init__(self, template, flip=None, source=None):
        self.template, self.flip = template, flip
        self.folder = tempfile.mkdtemp(prefix=PREFIX, dir=memory_folder())
        self.data = os.path.join(self.folder, 'data')
        shutil.copytree(source or template.store.data, self.data)
        tls = flip is not None and flip.path.startswith('tls/')
        self.daemon = KnownCa(tls=tls, arguments=ARGUMENTS, folder=self.data)
        self.daemon.known = os.path.join(template.store.data, 'tls', 'ca.pem')
        if flip:
            self.write(flipped(template.files[flip.path], flip.bits))

    def close(self):
        if self.daemon.process and self.daemon.process.poll() is None:
            self.daemon.kill()
        self.daemon.held_port.close()
        shutil.rmtree(self.daemon.scratch, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, data):
        with open(os.path.join(self.data, self.flip.path), 'wb') as file:
            file.write(data)

    def is_untouched(self):
        """Nobody has written the pages with the flipped bits since."""
        sound = self.template.files[self.flip.path]
        wrong = flipped(sound, self.flip.bits)
        now = self.now()
        pages = {bit // 8 // PAGE * PAGE for bit in self.flip.bits}
        return all(now[page:page + PAGE] == wrong[page:page + PAGE] for page in pages)

    def now(self):
        try:
            with open(os.path.join(self.data, self.flip.path), 'rb') as file:
                return file.read()
        except FileNotFoundError:
            return b''

    def put_back(self):
        self.write(flipped(self.now(), self.flip.bits))

    def records(self):
        """{path: digests of the records there}, of packs and of what was set aside."""
        return {path: records_of(data).keys() for path, data in read_files(self.data).items()
                if path.endswith('.pack')}


class Trial:
    """One case."""

    def __init__(self, template, number, flip):
        self.template, self.number, self.flip = template, number, flip
        self.faults = []
        self.used = None  # the body that was put, once that is confirmed
        self.site = Site(template, flip)
        self.daemon = self.site.daemon

    def run(self):
        with contextlib.closing(self.site):
            outcome = 'failed'
            try:
                outcome = self.judge()
            except Exception as failure:  # what nobody expects
                self.fault(''.join(traceback.format_exception(failure)))
            log = [line for line in self.daemon.log().split('\n') if ' info ' not in line]
            if SANITIZER.search(self.daemon.log()):
                self.fault('a sanitizer has something to say')
        return Verdict(self.number, self.flip, outcome, self.faults, '\n'.join(log)[-3000:])

    def fault(self, text):
        self.faults.append(text)

    def judge(self):
        before = read_files(self.site.data)
        try:
            self.daemon.start()
        except RuntimeError as refusal:
            return self.judge_refusal(str(refusal), before)
        first, second = self.read_twice()
        outcome = self.outcome_of(first, second)
        self.try_tools(second)
        self.read_when_put_back(second)
        return outcome

    def judge_refusal(self, said, before):
        if self.daemon.process.poll() != 1:
            self.fault(f'the server neither starts nor refuses: {said}')
            return 'failed'
        if os.path.basename(self.flip.path) not in said.strip().split('\n')[-1]:
            self.fault(f'the refusal does not name {self.flip.path}: {said}')
        after = read_files(self.site.data)
        changed = [path for path in {**before, **after}
                   if before.get(path) != after.get(path) and not MAY_CHANGE.search(path)]
        if changed and not self.flip.kind.opens:
            self.fault(f'the refused start changed {changed}')
        self.site.put_back()
        if self.read_again(lambda question: self.template.expected[question]):
            self.check_records(True)
        return 'refused'

    def read_twice(self):
        with contextlib.closing(self.reader()) as reader:
            first = reader.read(self.template.questions)
            self.await_check()
            done = self.daemon.admin('gc', check=False)
            if done.returncode not in (0, 1):
                self.fault(f'deltabucketd gc ended with {done.returncode}: {done.stderr}')
            second = reader.read(self.template.questions)
            if self.number % 2:
                self.use(reader)
        self.daemon.stop()
        return first, second

    def reader(self):
        return Reader(self.daemon, self.template.store.keys['reader'])

    def use(self, reader):
        """A new object in place of another."""
        body = random.Random(self.number).randbytes(USED_SIZES[self.number // 2 % len(USED_SIZES)])
        try:
            status = reader.request('PUT', USED_TARGET, body).status
        except (OSError, http.client.HTTPException):
            status = CUT
        if status == 200:
            self.used = hashlib.sha256(body).hexdigest()
            self.check_used(reader)
        elif status != CUT and status < 500:
            self.fault(f'a PUT gave {status}')

    def check_used(self, reader, may_fail=True):
        """It reads as it was put, and is listed once."""
        got = reader.ask(Question('GET', USED_TARGET, ROOT_TOKEN))
        if (got.status, got.digest) != (200, self.used) and not (may_fail and is_passing(got)):
            self.fault(f'what was put is {got}')
        listed = reader.request('GET', '/used?list-type=2')
        if listed.status == 200:
            keys = texts(tree(listed), 'Contents/Key')
            if keys != [USED]:
                self.fault(f'what was put once is listed as {keys}')
        elif not may_fail:
            self.fault(f'the listing of what was put is {listed.status}')

    def await_check(self):
        end = time.monotonic() + CHECK_SECONDS
        while not re.search(r' catalog_(proven|damaged)\b', self.daemon.log()):
            if self.daemon.process.poll() is not None or time.monotonic() > end:
                self.fault('the check of the catalog does not end')
                return
            time.sleep(0.01)

    def try_tools(self, damaged):
        with contextlib.closing(Site(self.template, source=self.site.data)) as site:
            tools = Tools(site, self.flip, self.template.expected, damaged,
                          self.template.store.keys['reader'])
            self.faults += tools.run(self.number)

    def outcome_of(self, *readings):
        named = self.named()
        errors = 0
        for answers in readings:
            for question, answer in answers.items():
                expected = self.template.expected[question]
                if same(answer, expected):
                    continue
                errors += 1
                if not is_error(question, expected, answer):
                    self.fault(f'{question} is {answer} and was {expected}')
        if errors and not named:
            self.fault(f'{errors} errors, and nothing was named')
        if errors:
            return 'named'
        if not self.site.is_untouched():
            return 'healed'
        return 'named' if named else 'harmless'

    def named(self):
        """Events that a sound store does not have."""
        return [event for event in events_of(self.daemon.log())
                if event not in self.template.events]

    def read_when_put_back(self, second):
        """With the bits put back all is as it was. Where others stand there now, nothing that was
        right becomes wrong."""
        is_untouched = self.site.is_untouched()
        if is_untouched:
            self.site.put_back()
        found = self.read_again(lambda question: self.template.expected[question]
                                if is_untouched else second[question], is_untouched)
        if found:
            self.check_records(is_untouched)

    def read_again(self, wanted, is_right=True):
        """`wanted` gives what is to be as expected if it is so itself. `is_right`: no damage is
        left."""
        try:
            self.daemon.start()
        except RuntimeError as refusal:
            self.fault(f'the next start is refused: {refusal}')
            return False
        with contextlib.closing(self.reader()) as reader:
            for question, answer in reader.read(self.template.questions).items():
                expected = self.template.expected[question]
                if same(wanted(question), expected) and not same(answer, expected):
                    self.fault(f'in the end {question} is {answer} and was {expected}')
            if self.used:
                self.check_used(reader, may_fail=not is_right)
        self.daemon.stop()
        return True

    def check_records(self, is_put_back):
        """Each record that is needed lies in a pack, or was set aside."""
        there = set().union(*self.site.records().values())
        lost = self.template.needed - there
        if not is_put_back:
            lost -= self.hit()
        if lost:
            self.fault(f'{len(lost)} records that are needed are in no pack')

    def hit(self):
        """Records that the flip has changed itself, or keeps from being found here."""
        data = self.template.files[self.flip.path]
        return set(records_of(data)) if self.flip.path.endswith('.pack') else set()


def judge_case(template, number, seed):
    return Trial(template, number, template.place(number, seed)).run()


def campaign(cases, seed, first=None):
    """All verdicts, of several stores when they are many. `first`: the template to begin with."""
    for begin in range(0, cases, CASES_OF_ONE):
        numbers = range(begin, min(begin + CASES_OF_ONE, cases))
        with contextlib.nullcontext(first) if first and begin == 0 else Template() as template:
            yield from verdicts(template, numbers, seed)


def verdicts(template, numbers, seed):
    """In any order, as they come."""
    context = multiprocessing.get_context('fork')
    with concurrent.futures.ProcessPoolExecutor(min(JOBS, os.cpu_count()), context,
                                                initializer=set_template,
                                                initargs=(template,)) as pool:
        works = [pool.submit(judge_shared, number, seed) for number in numbers]
        for done in concurrent.futures.as_completed(works):
            yield done.result()


def set_template(template):
    judge_shared.template = template


def judge_shared(number, seed):
    return judge_case(judge_shared.template, number, seed)


def table_of(found):
    """How the cases of each kind ended."""
    counts = collections.Counter((verdict.flip.kind.name, verdict.outcome) for verdict in found)
    faults = collections.Counter(verdict.flip.kind.name for verdict in found if verdict.faults)
    lines = [''.join([f'{"":20}', *(f'{name:>10}' for name in (*OUTCOMES, 'faults'))])]
    for kind in KINDS:
        row = [counts[kind.name, outcome] for outcome in OUTCOMES] + [faults[kind.name]]
        lines.append(''.join([f'{kind.name:20}', *(f'{count:>10}' for count in row)]))
    return '\n'.join(lines)


def describe(verdict, seed):
    """What a person needs to see it again."""
    script = os.path.join(SOURCE, 'tests', 'crash', 'bit_flip.py')
    flip = verdict.flip
    return '\n'.join([f'case {verdict.number}: {flip.kind.name}, {flip.path}, bits {flip.bits}, '
                      f'{verdict.outcome}', *verdict.faults, '', verdict.log, '',
                      f'once more: DELTABUCKET_BUILD={BUILD} {script} --seed {seed} '
                      f'--case {verdict.number}'])
