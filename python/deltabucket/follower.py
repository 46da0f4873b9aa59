"""A worker that stays on the newest step of a run, and the steps that it brings.

A `Follower` holds one step at a time. In a folder each step is a checkpoint of its own, which never
changes; in memory the weights are changed in place, so that what a step has given out shows other
bytes once the next one has come.
"""
from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Literal

import numpy
from numpy.typing import NDArray

from deltabucket import errors
from deltabucket._calls import CFunction, Watch, collecting, is_ending
from deltabucket._client import Client
from deltabucket._library import (Handle, OfOneProcess, c_path, c_text, check_process, defaults,
                                  made_of, new_error, path_of, text_of)
from deltabucket._native import ffi, lib
from deltabucket.bucket import time_of
from deltabucket.progress import Progress, shown
from deltabucket.tensors import (Array, CTensors, Memory, array_of, check_others, check_same,
                                 check_ties, named, ties_of, torch_of, writable)

LAG_TRIES = 3  # steps in a row that arrive too late for max_lag


@dataclass(frozen=True)
class Part:
    """Which tensors a follower holds, as `Run.follow` takes it. All None: all."""
    tensors: str | Sequence[str] | None = None
    rank: int | None = None
    ranks: int | None = None

    def __post_init__(self) -> None:
        if (self.rank is None) != (self.ranks is None):
            raise ValueError('rank and ranks go together: pass both, or neither.')
        if self.ranks is not None and not 0 <= (self.rank or 0) < self.ranks <= 65536:
            raise ValueError(f'There is no part {self.rank} of {self.ranks}: parts count from 0, '
                             'and there are at most 65536.')
        if self.tensors is not None and self.ranks is not None:
            raise ValueError('Pass either tensors or rank and ranks.')
        if any(not one or ',' in one for one in self.patterns()):
            raise ValueError(f'tensors is {self.tensors!r}; it has one or more patterns, and none '
                             'may be empty or hold a comma.')

    def patterns(self) -> list[str]:
        if self.tensors is None:
            return []
        return self.tensors.split(',') if isinstance(self.tensors, str) else list(self.tensors) or ['']

    @property
    def is_all(self) -> bool:
        return self.tensors is None and self.ranks is None


class Follower(OfOneProcess):
    """Brings the steps of a run. Use it in `with` or `async with`, and iterate:

        with run.follow('/srv/weights') as steps:
            for step in steps:
                load(step.path)

    The iterator waits for ever and gives the newest step each time: a worker that is slow skips
    steps, it never falls behind. Lost connections are waited for. While the run's fleet is rolled
    back (`deltabucket fleet rollback`), it gives the step of that, which is an earlier one, and
    the newest again afterwards.

    max_lag: how many steps the newest one may be ahead of what is served. A step that has become
    older than that while it was fetched is not given out: the newer one is fetched first, and after
    three such steps in a row TooFarBehind is raised. `check_lag` asks the server how it stands now:
    a loop that serves calls it where stale weights would do harm. None: any lag will do.

    One thread uses a follower at a time (others wait); `close` may come from any thread and ends an
    iteration in another one.
    """

    def __init__(self, client: Client, run: str, folder: str | os.PathLike[str] | None,
                 part: Part, replica: str | None, silent: bool, max_lag: int | None, threads: int,
                 keeps_changes: bool, progress: Progress) -> None:
        """As `Run.follow`. Opens nothing yet."""
        if max_lag is not None and max_lag < 0:
            raise ValueError(f'max_lag is {max_lag}; it must be 0 or more.')
        self.run_name = run
        self.max_lag = max_lag
        self.step: Step | None = None
        self._client = client
        self._progress = progress
        self._handle: Handle | None = None
        self._process = os.getpid()
        self._is_closed = False
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._watches: set[Watch] = set()  # of the calls that are running, or wait for another one
        self._unseen: Step | None = None  # came in a call that was interrupted
        self._settings = defaults('deltabucket_follower_settings')
        self._kept = (c_text(run, 'run'), c_text(replica, 'replica'),
                      ffi.NULL if folder is None else c_path(folder, 'folder'),
                      c_text(','.join(part.patterns()) or None, 'tensors'))
        self._settings.run, self._settings.replica, self._settings.folder = self._kept[:3]
        self._settings.tensors = self._kept[3]
        self._settings.rank, self._settings.ranks = part.rank or 0, part.ranks or 0
        self._settings.is_silent = silent
        self._settings.threads = threads
        self._settings.keeps_changes = keeps_changes
        self.is_in_memory = folder is None
        self.is_part = not part.is_all
        self._place = _Place(run, self.is_in_memory)

    def __repr__(self) -> str:
        state = 'closed' if self._is_closed else f'at {self.step}' if self.step else 'no step yet'
        return f'<Follower of {self.run_name}, {state}>'

    def __enter__(self) -> Follower:
        """Opens the folder and proves what it holds. Busy when another follower works in it."""
        self._run(self._open)
        return self

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Follower:
        return self

    def __next__(self) -> Step:
        """Ends where another thread has closed the follower, and at the end of the program."""
        try:
            for _ in range(LAG_TRIES):
                step = self.next()
                if step is not None and not self._is_late(step):
                    return step
        except (errors.Cancelled, ValueError):
            if self._is_closed or is_ending():
                raise StopIteration from None
            raise
        raise self._too_far(self._held().lag)

    async def __aenter__(self) -> Follower:
        await self._run_async(self._open)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, failure: BaseException | None,
                        trace: TracebackType | None) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __aiter__(self) -> Follower:
        return self

    async def __anext__(self) -> Step:
        """As __next__; a cancelled task cancels the wait."""
        try:
            for _ in range(LAG_TRIES):
                step = await self.next_async()
                if step is not None and not self._is_late(step):
                    return step
        except (errors.Cancelled, ValueError):
            if self._is_closed or is_ending():
                raise StopAsyncIteration from None
            raise
        raise self._too_far(self._held().lag)

    def next(self, timeout: float | None = None) -> Step | None:
        """The newest step, when it is newer than the held one or has not been given out yet, or the
        step of a rollback. Waits
        up to `timeout` seconds for one, None for ever; then gives None. In memory it changes the
        arrays of the step before. Raises an Error other than Unreachable at once, Unreachable when
        the time is over."""
        return self._take(_Next(self, -1, timeout))

    async def next_async(self, timeout: float | None = None) -> Step | None:
        """As `next`, for a task."""
        return await self._take_async(_Next(self, -1, timeout))

    def rollback(self, step: int, timeout: float | None = 0) -> Step:
        """Brings step number `step`, also an older one, and holds it until `next`, or the
        iteration, goes on to the newest. NotFound when the step is not kept any more, NotReady when
        it does not exist within `timeout` seconds."""
        if step < 0:
            raise ValueError(f'There is no step {step}.')
        made = self._take(_Next(self, step, timeout))
        if made is None:
            raise errors.NotReady(f'Step {step} of {self.run_name} does not exist yet.',
                                  kind='not_ready')
        return made

    def report(self, state: Literal['ready', 'staging', 'error'], sentence: str = '',
               pause: float | None = None) -> None:
        """Tells the fleet what this worker does with the held step: 'ready' (it serves it),
        'staging', or 'error' with a sentence. pause: for how many seconds the engine was paused to
        take the step; it is told until the next step comes. None: nothing new about that."""
        texts = c_text(state, 'state'), c_text(sentence, 'sentence')
        err = new_error()
        if pause is not None and not 0 <= pause < 2**53:
            raise ValueError(f'pause is {pause}; it must be 0 seconds or more.')
        with self._opened().use() as pointer:
            result = 0 if pause is None else \
                lib.deltabucket_follower_paused(pointer, round(pause * 1000), err)
            if result == 0:
                result = lib.deltabucket_follower_report(pointer, *texts, err)
        if result < 0:
            raise made_of(err)

    def lag(self) -> int | None:
        """By how many steps the run's newest (in a rollback: the step of that) is ahead of the held
        one, as the server says it now. None while there is no step."""
        answer = self._client.ask(f'/v1/runs/{urllib.parse.quote(self.run_name)}/steps/latest')
        if answer is None or self.step is None:
            return None
        return max(0, int(answer['step']) - self.step.number)

    def check_lag(self) -> None:
        """Raises TooFarBehind when the lag is above max_lag now."""
        lag = self.lag()
        if self.max_lag is not None and lag is not None and lag > self.max_lag:
            raise self._too_far(lag)

    def close(self) -> None:
        """Ends a wait of another thread, tells the fleet that this worker is gone, unless the server
        does not answer within about a second, and frees the folder. Arrays of its steps stay
        valid. In a process that was forked from the one that made the follower it does nothing."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._is_closed = True
            watches, handle = list(self._watches), self._handle
        for watch in watches:
            watch.cancel()
        self._unseen = None
        if handle is not None:
            handle.close()

    def _open(self, watch: Any, err: Any) -> Any:
        """CFunction. Does nothing when it is open."""
        if self._handle is not None:
            return 0
        self._client.handle.check()  # the lock of a process that has forked may never be free
        with self._opening:
            return 0 if self._handle is not None else self._open_now(watch, err)

    def _open_now(self, watch: Any, err: Any) -> Any:
        with self._client.handle.use() as client:
            pointer = lib.deltabucket_follower_open(client, self._settings, watch, err)
        if pointer == ffi.NULL:
            return pointer
        handle = Handle('follower', pointer, lib.deltabucket_follower_close,
                        parent=self._client.handle, exclusive=True)
        with self._lock:
            if not self._is_closed:
                self._handle = handle
                return pointer
        handle.close()
        raise ValueError('The follower is closed.')

    def _opened(self) -> Handle:
        if self._handle is None:
            raise ValueError('The follower is not open yet: use it in a with statement.')
        return self._handle

    def _held(self) -> Step:
        assert self.step is not None
        return self.step

    def _take(self, call: _Next) -> Step | None:
        if self._unseen is None or call.wanted >= 0:
            self._run(self._open)
            self._run(call)
        return self._see()

    async def _take_async(self, call: _Next) -> Step | None:
        if self._unseen is None or call.wanted >= 0:
            await self._run_async(self._open)
            await self._run_async(call)
        return self._see()

    def _see(self) -> Step | None:
        step, self._unseen = self._unseen, None
        return step

    def _run(self, function: CFunction) -> None:
        with shown(self._progress) as report, self._watching(Watch(report)) as watch:
            watch.run(function)

    async def _run_async(self, function: CFunction) -> None:
        with shown(self._progress) as report, self._watching(Watch(report)) as watch:
            await watch.run_async(function)

    @contextlib.contextmanager
    def _watching(self, watch: Watch) -> Iterator[Watch]:
        """While `close` must end the call."""
        check_process('follower', self._process)
        with self._lock:
            if self._is_closed:
                raise ValueError('The follower is closed.')
            self._watches.add(watch)
        try:
            yield watch
        finally:
            with self._lock:
                self._watches.discard(watch)

    def _is_late(self, step: Step) -> bool:
        return self.max_lag is not None and step.lag > self.max_lag

    def _too_far(self, lag: int) -> errors.TooFarBehind:
        return errors.TooFarBehind(
            f'The worker is {lag} steps behind {self.run_name}, more than the {self.max_lag} that '
            'max_lag allows.', kind='too_far_behind')


class _Next:
    """One deltabucket_follower_next."""

    def __init__(self, follower: Follower, wanted: int, timeout: float | None) -> None:
        self._follower = follower
        self.wanted = wanted
        self._wait_ms = -1 if timeout is None else max(0, int(timeout * 1000))
        self._out = ffi.new('struct deltabucket_step **')

    def __call__(self, watch: Any, err: Any) -> int:
        handle = self._follower._opened()
        with handle.use() as pointer:
            result = int(lib.deltabucket_follower_next(pointer, self.wanted, self._wait_ms,
                                                       self._out, watch, err))
        if result > 0:
            self._follower.step = self._follower._unseen = Step(
                self._follower, Handle('step', self._out[0], lib.deltabucket_step_free))
        return result


class _Place:
    """What a follower and its steps know in common. Steps do not keep their follower alive, so that
    one that was left without `close` ends with the last name for it."""

    def __init__(self, run_name: str, is_in_memory: bool) -> None:
        self.run_name = run_name
        self.is_in_memory = is_in_memory
        self.count = 0  # of the steps that the follower has made


class Step(OfOneProcess):
    """A step, or the part of one, that a follower holds, proven.

    number, label ('' for none), digest (of all tensors of the step, 'xxh3-128:...'), created (UTC).
    newest: of the run, as far as was known when this step came; lag: by how many steps it was
    ahead. path: the checkpoint's folder, '' in memory. is_part: the follower was asked for a part,
    so some of the step's tensors may not be here. came_whole: not as deltas. fetched_bytes: over
    the network.
    """

    def __init__(self, follower: Follower, handle: Handle) -> None:
        self._place = follower._place
        self._place.count += 1
        self._count = self._place.count
        self._handle = handle
        self._changes_lock = threading.Lock()
        facts = ffi.new('struct deltabucket_step_facts *')
        facts.size = ffi.sizeof('struct deltabucket_step_facts')
        with handle.use() as pointer:
            lib.deltabucket_step_facts(pointer, facts)
        self.number: int = facts.number
        self.label = text_of(facts.label)
        self.digest = text_of(facts.digest)
        self.created: datetime = time_of(facts.created_ms)
        self.newest: int = facts.newest
        self.path = path_of(facts.path)
        self.is_part: bool = follower.is_part
        self.came_whole: bool = facts.delta_count == 0
        self.fetched_bytes: int = facts.fetched_bytes
        self._tensor_count: int = facts.tensor_count
        self._delta_count: int = facts.delta_count
        self._places: dict[str, int] | None = None

    def __repr__(self) -> str:
        return f'<Step {self.number} of {self._place.run_name}>'

    @property
    def lag(self) -> int:
        """By how many steps the run's newest one was ahead when this one came."""
        return max(0, self.newest - self.number)

    def tensors(self, framework: Literal['numpy', 'torch'] = 'numpy') -> dict[str, Any]:
        """{name: array}, in byte order of the names, without a copy.

        numpy: read-only arrays (bf16 and fp8 by ml_dtypes). F4 and F6, which numpy does not have,
        are uint8 arrays of their packed bytes. 'torch': tensors over the same memory, which must
        not be written to, though torch does not keep anybody from it; F4 is float4_e2m1fn_x2.

        The memory lives as long as an array of it. Of a follower in memory, the arrays show other
        bytes once the follower has gone on; ValueError when it has already.
        """
        if framework not in ('numpy', 'torch'):
            raise ValueError(f'The framework {framework!r} must be numpy or torch.')
        return {entry.name: self._view(entry, framework) for entry in self.entries()}

    def changes(self, name: str) -> tuple[NDArray[numpy.uint64], Array]:
        """What differs from the step before in one tensor: (positions, values). positions: uint64,
        shape (n,), rising, in the flattened tensor; values: the tensor's dtype, shape (n,); of F4
        and F6 both are of bytes. Unsupported when the step came whole, and of a follower in memory
        without `keeps_changes`; KeyError when there is no such tensor."""
        index = self._places_of()[name]
        with self._held() as pointer:
            dtype = self._entry(pointer, index).dtype
        found: list[tuple[NDArray[numpy.uint64], Array]] = []

        def take(positions: Any, values: Any, count: int) -> None:
            empty = array_of(dtype, (0,), b'')
            places = bytes(ffi.buffer(positions, count * 8)) if count else b''
            data = bytes(ffi.buffer(values, count * empty.itemsize)) if count else b''
            found.append((numpy.frombuffer(places, numpy.uint64),
                          numpy.frombuffer(data, empty.dtype)))

        def ask(owner: Any, watch: Any, err: Any) -> int:
            with self._changes_lock, self._held() as pointer:
                return int(lib.deltabucket_step_changes(
                    pointer, index, lib.deltabucket_python_changes, owner, err))
        Watch()._run_here(collecting(take, ask))
        return found[-1]

    def apply_into(self, state: Mapping[str, Any], *, proves_first: bool = True,
                   clean: bool = True, threads: int = 0, progress: Progress = None) -> None:
        """Brings the tensors of `state`, numpy arrays or torch tensors in CPU memory, from the step
        before to this one, in place. Where the step came whole, is the first that the follower has
        given, or the follower holds a part of the model, it is copied into them, whatever they held.

        state: every tensor of the step, contiguous, with its dtype and shape. Names are cleaned as
        in `Run.publish`. Two names may share one tensor (tied weights) where the step has the same
        bytes under both.
        proves_first: True: base and result are proven by digest before the first byte is written,
        so a failure leaves `state` as it was. False: one pass, which proves on the way; when it
        fails, the tensors may be Spoiled.

        WrongBase when the tensors are not those of the step that was given out before: `copy_into`
        brings any tensors here. SchemaMismatch when names, dtypes or shapes differ. Autograd does
        not hear of the change.
        """
        entries, targets, ties = self._targets(state, clean)
        if self.came_whole or self._count == 1 or self.is_part:
            self._copy(entries, targets)
            return
        twins = {name: _copy_of(targets[name]) for name in ties}
        tensors = CTensors([twins.get(entry.name, targets[entry.name]) for entry in entries])
        settings = defaults('deltabucket_patch_settings')
        settings.proves_first = proves_first
        settings.threads = threads
        spoiled = ffi.new('int *')

        def patch(watch: Any, err: Any) -> int:
            with self._held() as pointer:
                paths = [lib.deltabucket_step_delta(pointer, index)
                         for index in range(self._delta_count)]
                return int(lib.deltabucket_patch(
                    tensors.pointer, tensors.count, ffi.new('char *[]', paths), len(paths),
                    settings, spoiled, watch, err))
        try:
            with shown(progress) as report:
                Watch(report).run(patch)
        except BaseException as failure:
            if spoiled[0]:
                raise errors.Spoiled(f'The tensors are worth nothing now, load them anew: '
                                     f'{failure}', kind='spoiled') from failure
            if isinstance(failure, errors.WrongBase):
                raise errors.WrongBase(
                    f'The tensors are not those of the step before step {self.number}, so its '
                    f'changes do not fit; copy_into brings any tensors to it. {failure}',
                    kind=failure.kind, number=failure.number) from failure
            raise

    def copy_into(self, state: Mapping[str, Any], *, clean: bool = True) -> None:
        """Copies the step into the tensors of `state`, whatever they held: as `apply_into`."""
        entries, targets, _ = self._targets(state, clean)
        self._copy(entries, targets)

    def deltas(self) -> list[str]:
        """Paths of the deltas that led here from the step before, in the order in which they apply;
        none when the step came whole. Those of a part are for all tensors of the step, too. The
        files go when the follower goes on."""
        with self._held() as pointer:
            return [path_of(lib.deltabucket_step_delta(pointer, index))
                    for index in range(self._delta_count)]

    def _held(self) -> Any:
        """The step's pointer for one call; ValueError when the follower has gone on and the bytes
        are others."""
        self._check_held()
        return self._handle.use()

    def _check_held(self) -> None:
        if self._place.is_in_memory and self._place.count != self._count:
            raise ValueError(f'Step {self.number} is not held any more: a follower in memory has '
                             'one step at a time.')
        self._handle.check()

    def entries(self) -> list[Memory]:
        """Where the tensors lie in memory, in byte order of their names."""
        with self._held() as pointer:
            return [self._entry(pointer, index) for index in range(self._tensor_count)]

    def _entry(self, pointer: Any, index: int) -> Memory:
        out = ffi.new('struct deltabucket_tensor *')
        lib.deltabucket_step_tensor(pointer, index, out)
        shape = tuple(out.shape[0:out.rank]) if out.rank else ()
        return Memory(text_of(out.name), text_of(out.dtype), shape,
                      int(ffi.cast('uintptr_t', out.data)), out.bytes, self._handle)

    def _places_of(self) -> dict[str, int]:
        if self._places is None:
            self._places = {entry.name: index for index, entry in enumerate(self.entries())}
        return self._places

    def _view(self, entry: Memory, framework: str) -> Any:
        buffer = _buffer_of(entry)
        if framework == 'torch':
            return torch_of(entry.dtype, entry.shape, buffer)
        return array_of(entry.dtype, entry.shape, memoryview(buffer).toreadonly())

    def _targets(self, state: Mapping[str, Any], clean: bool,
                 ) -> tuple[list[Memory], dict[str, Memory], dict[str, str]]:
        """(the step's tensors, the memory to write by name, what `ties_of` says of it). Nothing has
        been written when it fails."""
        entries = self.entries()
        given = named(state, clean)
        missing = [entry.name for entry in entries if entry.name not in given]
        if missing:
            raise errors.SchemaMismatch(f'The step has {len(missing)} tensors that are not here: '
                                        f'{", ".join(missing[:3])}.', kind='schema_mismatch')
        targets = {entry.name: writable(entry.name, given[entry.name]) for entry in entries}
        for entry in entries:
            check_same(targets[entry.name], entry.dtype, entry.shape)
        check_others(given, targets, writable, self.number)
        ties = ties_of(targets)
        check_ties(ties, {entry.name: entry for entry in entries})
        return entries, targets, ties

    def _copy(self, entries: list[Memory], targets: dict[str, Memory]) -> None:
        for entry in entries:
            self._check_held()
            numpy.copyto(targets[entry.name].bytes_array(), entry.bytes_array())


class _Hold:
    """Keeps the step of an array; called when the array's memory is let go."""

    def __init__(self, owner: object) -> None:
        self.owner = owner

    def __call__(self, pointer: Any) -> None:
        self.owner = None


def _buffer_of(entry: Memory) -> Any:
    """A buffer over the memory, that keeps the step."""
    if not entry.nbytes:
        return b''
    return ffi.buffer(ffi.gc(ffi.cast('char *', entry.address), _Hold(entry.owner)), entry.nbytes)


def _copy_of(target: Memory) -> Memory:
    made = target.bytes_array().copy()
    return Memory(target.name, target.dtype, target.shape, made.ctypes.data, target.nbytes, made)
