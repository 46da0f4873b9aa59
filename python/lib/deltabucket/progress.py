"""What a call shows while it works: a bar on a terminal, or what the caller makes of it."""
from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

# True: a bar, which needs tqdm. False: nothing. None: a bar where stderr is a terminal and tqdm is
# installed. A function gets (what: the work's name, done: bytes, total: bytes, 0 when it is not
# known) a few times a second, from threads of the library, one at a time; what it raises ends the
# call, and is raised by it.
Progress = bool | None | Callable[[str, int, int], object]


class _Screen:
    """stderr for tqdm, which would leave its lock locked, and other threads waiting for it, when a
    write fails: then nothing is shown."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
        except (OSError, ValueError):
            pass
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Bars:
    """A tqdm bar for each kind of work, one after the other."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._what = ''
        self._bar: Any = None

    def __call__(self, what: str, done: int, total: int) -> None:
        if what != self._what:
            self.close()
            self._what = what
            self._bar = self._tqdm(total=total or None, desc=what, unit='B', unit_scale=True,
                                   leave=False, file=_Screen(sys.stderr))
        self._bar.total = total or None
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


@contextlib.contextmanager
def shown(progress: Progress) -> Iterator[Callable[[str, int, int], object] | None]:
    """The function that shows it, None for nothing. TypeError for another type; ImportError where
    a bar is asked for and tqdm is not installed."""
    if progress is None or progress is True:
        tqdm = _find_tqdm(progress is True)
        if tqdm is None:
            yield None
            return
        bars = _Bars(tqdm)
        try:
            yield bars
        finally:
            bars.close()
    elif progress is False:
        yield None
    elif callable(progress):
        yield progress
    else:
        raise TypeError(f'progress is a {type(progress).__name__}; it must be None, True, False or '
                        'a function.')


def _find_tqdm(is_wanted: bool) -> Any:
    if not is_wanted and not (sys.stderr is not None and sys.stderr.isatty()):
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        if is_wanted:
            raise
        return None
    return tqdm
