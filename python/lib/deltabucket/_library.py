"""The shared library: its version, its failures as exceptions, and who owns what.

A `Handle` owns one object of the library. It is freed when it is closed or when nothing uses it any
more, never in a process that was forked from the one that made it.
"""
from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from deltabucket import errors

try:
    from deltabucket._native import ffi, lib
except ModuleNotFoundError as failure:
    if failure.name != 'deltabucket._native':
        raise
    raise ImportError(
        f'The package deltabucket in {os.path.dirname(__file__)} is not built. If that is its source, '
        'start Python in another folder, so that the installed package is found; if it is not '
        'installed, `pip install ./python` in the checkout builds it.') from failure


def _text(pointer: Any) -> str:
    return str(ffi.string(pointer).decode('utf-8', 'replace'))


VERSION = _text(lib.deltabucket_version())
if VERSION != _text(lib.deltabucket_python_version()):
    raise ImportError(
        f'The package deltabucket was built for version {_text(lib.deltabucket_python_version())} '
        f'of libdeltabucket, but version {VERSION} was loaded. Install the package again.')


def text_of(pointer: Any) -> str:
    """A text of the library; '' for NULL."""
    return _text(pointer) if pointer else ''


def path_of(pointer: Any) -> str:
    return os.fsdecode(ffi.string(pointer)) if pointer else ''


def c_text(text: str | None, what: str) -> Any:
    """A text for the library, NULL for None. ValueError where it holds a zero byte."""
    if text is None:
        return ffi.NULL
    if not isinstance(text, str):
        raise TypeError(f'The {what} is a {type(text).__name__}; it must be a str.')
    encoded = text.encode()
    if b'\0' in encoded:
        raise ValueError(f'The {what} {text!r} holds a zero byte.')
    return ffi.new('char[]', encoded)


def c_path(path: str | os.PathLike[str], what: str) -> Any:
    """A path for the library, in the file system's encoding."""
    encoded = os.fsencode(path)
    if b'\0' in encoded:
        raise ValueError(f'The {what} {path!r} holds a zero byte.')
    return ffi.new('char[]', encoded)


def new_error() -> Any:
    return ffi.new('struct deltabucket_error *')


def made_of(err: Any) -> errors.Error:
    """The exception for what the library has said."""
    kind = text_of(err.kind)
    made = errors.KINDS.get(kind, errors.Error)
    return made(text_of(err.text), kind=kind, number=err.number,
                request_id=text_of(err.request_id), os_errno=err.os_errno)


def defaults(name: str) -> Any:
    """A new struct NAME with its default members."""
    made = ffi.new(f'struct {name} *')
    getattr(lib, f'deltabucket_python_{name[len("deltabucket_"):]}')(made)
    return made


def check_process(what: str, process: int) -> None:
    """Raises UsedAfterFork when this is not the process that made the object. what: how messages
    name it."""
    if os.getpid() != process:
        raise errors.UsedAfterFork(
            f'The {what} was made by process {process}, before the fork that made this process; '
            'make another one here.', kind='used_after_fork')


class OfOneProcess:
    """What the library holds for an object lies in the process that made it."""

    def __getstate__(self) -> object:
        raise TypeError(f'A {type(self).__name__} cannot be pickled or copied, since it belongs to '
                        'one process; make another one in the process that needs it.')


def _free(free: Callable[[Any], None], pointer: Any, process: int, parent: object) -> None:
    """`parent` is here so that it lives until this is freed: of garbage that is collected at once
    Python calls the finalizers in any order."""
    if os.getpid() == process:
        free(pointer)


_exclusive: weakref.WeakSet[Handle] = weakref.WeakSet()


def close_all() -> None:
    """Closes publishers and followers at the end of the program: what they keep in memory lies in
    files, which would stay. Those that a thread is still using stay, too."""
    for handle in list(_exclusive):
        if handle._lock is not None and handle._lock.acquire(blocking=False):
            try:
                handle.close()
            finally:
                handle._lock.release()


class Handle(OfOneProcess):
    """An object of the library. `parent`: what must outlive it."""

    def __init__(self, what: str, pointer: Any, free: Callable[[Any], None],
                 parent: Handle | None = None, exclusive: bool = False) -> None:
        """what: how messages name it. exclusive: only one thread may use it at a time; others
        wait."""
        self.what = what
        self.parent = parent
        self._pointer = pointer
        self._process = os.getpid()
        self._lock = threading.RLock() if exclusive else None
        if exclusive:
            _exclusive.add(self)
        self._is_open = True
        self._finalizer = weakref.finalize(self, _free, free, pointer, self._process, parent)
        # A thread may be in a call when the program ends; the system frees all.
        self._finalizer.atexit = False

    @contextlib.contextmanager
    def use(self) -> Iterator[Any]:
        """The pointer, for one call. Raises UsedAfterFork, and ValueError when it is closed."""
        self.check()
        with self._lock or contextlib.nullcontext():
            self.check()
            yield self._pointer

    def check(self) -> None:
        """Raises what `use` would raise."""
        check_process(self.what, self._process)
        if not self._is_open:
            raise ValueError(f'The {self.what} is closed.')

    def close(self) -> None:
        """Ends its use. What is exclusive is freed when the call of another thread has ended; what
        others are made from, with the last of them."""
        if os.getpid() != self._process or not self._is_open:
            return
        self._is_open = False
        if self._lock:
            with self._lock:
                self._free_now()

    def _free_now(self) -> None:
        # Called by itself, a finalizer does nothing while the program ends.
        kept = self._finalizer.detach()
        if kept is not None:
            _, free, arguments, _ = kept
            free(*arguments)
