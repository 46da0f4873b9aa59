"""Calls into the library that take long: how they are watched, interrupted and ended.

Every call has a watch of its own. In the main thread the library works in a thread beside it, for
only so can Python run the handler of Ctrl-C meanwhile: what the handler raises cancels the call,
and is raised when the call has ended, within about a second. Other threads make the call
themselves. The interpreter lock is free in both cases.

At the end of the program all calls are cancelled and waited for: those of daemon threads, since
Python itself waits for the others before.
"""
from __future__ import annotations

import _thread
import asyncio
import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from deltabucket import errors
from deltabucket._library import close_all, made_of, new_error, text_of
from deltabucket._native import ffi, lib

# What a call of the library is: it gets watch and error, and gives a negative number or NULL when
# it has failed.
CFunction = Callable[[Any, Any], Any]
ProgressFunction = Callable[[str, int, int], object]

notes = logging.getLogger('deltabucket')
EXIT_SECONDS = 10.0
# A signal that comes just before a wait does not end it: its handler runs after the wait.
SIGNAL_SECONDS = 0.5


class _Active:
    """The watches of the calls that are running in this process."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.watches: set[Watch] = set()
        self.is_ending = False

    def add(self, watch: Watch) -> None:
        with self.changed:
            if self.is_ending:
                raise errors.Cancelled('The program is ending.', kind='busy')
            self.watches.add(watch)

    def remove(self, watch: Watch) -> None:
        with self.changed:
            self.watches.discard(watch)
            self.changed.notify_all()

    def end(self) -> None:
        limit = time.monotonic() + EXIT_SECONDS
        with self.changed:
            self.is_ending = True
            running = list(self.watches)
        for watch in running:
            watch.cancel()
        with self.changed:
            while self.watches and time.monotonic() < limit:
                self.changed.wait(limit - time.monotonic())


_active = _Active()


def is_ending() -> bool:
    """Whether the program ends, so that no call goes on."""
    return _active.is_ending


def _forget_parent() -> None:
    """After a fork: the parent's calls do not run in the child."""
    global _active
    _active = _Active()


os.register_at_fork(after_in_child=_forget_parent)


@atexit.register
def _end() -> None:
    try:
        _active.end()
    finally:  # also where Ctrl-C is pressed again
        close_all()


class Watch:
    """Watches one call. `cancel` may be called from any thread."""

    def __init__(self, progress: ProgressFunction | None = None) -> None:
        self._progress = progress
        self._progress_lock = threading.Lock()
        self._is_cancelled = False
        self._failure: BaseException | None = None
        self._process = os.getpid()
        self._owner = ffi.new_handle(_Weak(self))
        settings = ffi.new('struct deltabucket_watch_settings *')
        lib.deltabucket_python_watch_settings(settings)
        settings.owner = self._owner
        settings.note = lib.deltabucket_python_note
        settings.warn = lib.deltabucket_python_warn
        if progress is not None:
            settings.progress = lib.deltabucket_python_progress
        self._pointer = lib.deltabucket_watch_new(settings)
        weakref.finalize(self, _free_watch, self._pointer, os.getpid(),
                         self._owner).atexit = False

    def cancel(self) -> None:
        """Does nothing to a call of the process that this one was forked from."""
        if os.getpid() != self._process:
            return
        self._is_cancelled = True
        lib.deltabucket_watch_cancel(self._pointer)

    def run(self, function: CFunction) -> Any:
        """The result of `function(watch, error)`. Raises Error when it fails, what a progress
        function has raised, and what a signal handler has raised meanwhile."""
        if threading.current_thread() is threading.main_thread():
            return self._run_beside(function)
        return self._run_here(function)

    async def run_async(self, function: CFunction) -> Any:
        """The same for a task: cancelling the task cancels the call and waits for its end."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        _Beside(self, function,
                lambda beside: loop.call_soon_threadsafe(beside.settle, done)).start()
        interruption: asyncio.CancelledError | None = None
        while not done.done():
            try:
                await asyncio.wait([done])
            except asyncio.CancelledError as cancelled:
                interruption = cancelled
                self.cancel()
        if interruption:
            done.exception()
            raise interruption
        return done.result()

    def report(self, what: str, done: int, total: int) -> None:
        """From a thread of the library. While one report is being handled, others are left out."""
        if self._progress is None or not self._progress_lock.acquire(blocking=False):
            return
        try:
            if self._failure is None:
                self._progress(what, done, total)
        except BaseException as failure:
            self._failure = failure
            self.cancel()
        finally:
            self._progress_lock.release()

    def _run_here(self, function: CFunction) -> Any:
        """As `run`, in this thread, where Ctrl-C waits for the end of the call."""
        err = new_error()
        _active.add(self)
        try:
            result = function(self._pointer, err)
        finally:
            _active.remove(self)
        if self._failure is not None:
            raise self._failure
        if result == ffi.NULL if isinstance(result, ffi.CData) else result < 0:
            raise self._made_of(err)
        return result

    def _made_of(self, err: Any) -> errors.Error:
        failure = made_of(err)
        if self._is_cancelled and failure.kind == 'busy':
            return errors.Cancelled(str(failure), kind=failure.kind, number=failure.number,
                                    request_id=failure.request_id, os_errno=failure.os_errno)
        return failure

    def _run_beside(self, function: CFunction) -> Any:
        beside = _Beside(self, function)
        try:
            beside.start()
            beside.wait()
        except BaseException as raised:
            if beside.give_up():
                if isinstance(raised, RuntimeError):
                    return self._run_here(function)  # no more threads, as when Python ends
                raise
            # The call reads and writes memory of the caller: it must end first.
            self.cancel()
            _wait_out(beside)
            raise
        return beside.take()


def _wait_out(beside: _Beside) -> None:
    while True:
        try:
            beside.wait()
            return
        except BaseException:
            pass  # another Ctrl-C, while the first one is being heeded


class _Weak:
    """What the library holds of a watch; it keeps none alive."""

    def __init__(self, watch: Watch) -> None:
        self.watch = weakref.ref(watch)


class _Beside:
    """A call in a thread of its own. It keeps all that the call uses alive, also when the thread
    that asked for it has gone on.

    Ctrl-C may be raised between any two steps of a waiting thread. So it starts and waits without
    the classes of threading, which can be left locked then.
    """

    def __init__(self, watch: Watch, function: CFunction,
                 then: Callable[[_Beside], object] = lambda beside: None) -> None:
        self._watch = watch
        self._function: CFunction | None = function
        self._then = then
        self._result: Any = None
        self._failure: BaseException | None = None
        self._begins = threading.Lock()  # taken by what decides whether the call is made
        self._ends = threading.Lock()  # held until the call has ended
        self._ends.acquire()
        self._has_ended = False

    def give_up(self) -> bool:
        """Whether the call has not begun; then it never will."""
        return self._begins.acquire(blocking=False)

    def wait(self) -> None:
        """For one thread. Until the call has ended, or a signal handler raises."""
        while not self._has_ended:
            self._ends.acquire(timeout=SIGNAL_SECONDS)

    def start(self) -> None:
        _thread.start_new_thread(self._work, ())

    def take(self) -> Any:
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                self._failure = None  # no cycle through the traceback
        return self._result

    def settle(self, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            return
        if self._failure is not None:
            done.set_exception(self._failure)
            self._failure = None
        else:
            done.set_result(self._result)

    def _work(self) -> None:
        if not self._begins.acquire(blocking=False):
            return
        try:
            assert self._function is not None
            self._result = self._watch._run_here(self._function)
        except BaseException as failure:
            self._failure = failure
        self._function = None
        self._has_ended = True
        self._ends.release()
        try:
            self._then(self)
        except RuntimeError:
            pass  # the event loop was closed meanwhile; nobody waits


def _free_watch(pointer: Any, process: int, owner: Any) -> None:
    """`owner` is here so that it lives as long as the library may name it."""
    if os.getpid() == process:
        lib.deltabucket_watch_free(pointer)


@ffi.def_extern()  # type: ignore[untyped-decorator]
def deltabucket_python_progress(owner: Any, what: Any, done: int, total: int) -> None:
    watch = ffi.from_handle(owner).watch()
    if watch is not None:
        watch.report(text_of(what), done, total)


@ffi.def_extern()  # type: ignore[untyped-decorator]
def deltabucket_python_note(owner: Any, sentence: Any) -> None:
    notes.info('%s', text_of(sentence))


@ffi.def_extern()  # type: ignore[untyped-decorator]
def deltabucket_python_warn(owner: Any, sentence: Any) -> None:
    notes.warning('%s', text_of(sentence))


class _Collected:
    """What a callback has been given, and what it has raised."""

    def __init__(self, take: Callable[..., int | None]) -> None:
        self._take = take
        self._failure: BaseException | None = None
        self.owner = ffi.new_handle(self)

    def call(self, *arguments: Any) -> int:
        """0; 1 to end, after a failure or when `take` gives 1."""
        try:
            return self._take(*arguments) or 0
        except BaseException as failure:
            self._failure = failure
            return 1

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure


def collecting(take: Callable[..., int | None],
               function: Callable[[Any, Any, Any], Any]) -> CFunction:
    """A call of the library that gives what it finds to `take`. function(owner, watch, error):
    `owner` goes beside the callback. What `take` raises is raised."""
    def call(watch: Any, err: Any) -> Any:
        collected = _Collected(take)
        result = function(collected.owner, watch, err)
        collected.check()
        return result
    return call


@ffi.def_extern(error=1)  # type: ignore[untyped-decorator]
def deltabucket_python_object(owner: Any, found: Any) -> int:
    return int(ffi.from_handle(owner).call(found))


@ffi.def_extern(error=1)  # type: ignore[untyped-decorator]
def deltabucket_python_changes(owner: Any, positions: Any, values: Any, count: int) -> int:
    return int(ffi.from_handle(owner).call(positions, values, count))


@ffi.def_extern(error=1)  # type: ignore[untyped-decorator]
def deltabucket_python_answer(owner: Any, found: Any, length: int) -> int:
    return int(ffi.from_handle(owner).call(ffi.buffer(found, length)[:] if length else b''))
