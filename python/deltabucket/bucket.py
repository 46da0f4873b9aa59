"""Objects of a bucket."""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import Any

from deltabucket import errors
from deltabucket._calls import CFunction, collecting
from deltabucket._client import Client
from deltabucket._library import OfOneProcess, c_path, c_text, text_of
from deltabucket._native import ffi, lib
from deltabucket.progress import Progress

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
GET_TRIES = 3  # of an object that is replaced meanwhile


@dataclass(frozen=True)
class Object:
    """What a bucket says of an object.

    key: its name. size: in bytes. modified: in UTC. etag: without quotes; '' of a group of keys
    (`Bucket.list` with a delimiter), whose size is 0.
    """
    key: str
    size: int
    modified: datetime
    etag: str


def time_of(milliseconds: int) -> datetime:
    """In UTC, of milliseconds since 1970."""
    return EPOCH + timedelta(milliseconds=milliseconds)


class Bucket(OfOneProcess):
    """The objects of one bucket. It may be used by any number of threads.

    name: of the bucket. endpoint, token, ca, profile: as for `Run`. retries: tries after the
    first, None for 4. parallel: transfers at a time, 0 for 4. threads: for hashing and compressing,
    0 for one per core. progress: as for `Run`.
    """

    def __init__(self, name: str, endpoint: str | None = None, token: str | None = None,
                 ca: str | os.PathLike[str] | None = None, *, profile: str | None = None,
                 retries: int | None = None, parallel: int = 0, threads: int = 0,
                 progress: Progress = None) -> None:
        """Sends nothing. Raises Invalid when there is no endpoint."""
        self.name = name
        self._bucket = c_text(name, 'bucket')
        self._progress = progress
        self._client = Client(endpoint, token, ca, profile=profile, retries=retries,
                              parallel=parallel, threads=threads)

    def __enter__(self) -> Bucket:
        return self

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Calls that are running go on to their end; others raise ValueError."""
        self._client.close()

    @property
    def endpoint(self) -> str:
        """Of the server, as 'https://host:port'."""
        return self._client.endpoint

    def create(self, exist_ok: bool = True) -> None:
        """Makes the bucket. Exists when there is one, unless exist_ok and it is the caller's."""
        try:
            self._call(lib.deltabucket_make_bucket)
        except errors.Exists as failure:
            if not exist_ok or failure.kind != 'bucket_owned':
                raise

    def put(self, key: str, source: bytes | bytearray | memoryview | str | os.PathLike[str],
            progress: Progress = None) -> None:
        """Uploads bytes, or the file at a path (str or PathLike), of which only the chunks are sent
        that the server lacks. NotFound when there is no such bucket or file."""
        if isinstance(source, (str, os.PathLike)):
            path = c_path(source, 'path')
            self._call(lib.deltabucket_put_file, c_text(key, 'key'), path, progress=progress)
            return
        view = memoryview(source)
        if not view.c_contiguous:
            view = memoryview(view.tobytes())
        data = ffi.from_buffer(view)
        self._call(lib.deltabucket_put, c_text(key, 'key'), data, view.nbytes, progress=progress)

    def get(self, key: str, path: str | os.PathLike[str] | None = None,
            progress: Progress = None) -> bytes | None:
        """The object's bytes; or, with `path`, None, and the file appears there whole and proven,
        or not at all. NotFound when there is no such object."""
        if path is None:
            return self._get_whole(key, progress)
        self._call(lib.deltabucket_get_file, c_text(key, 'key'), c_path(path, 'path'),
                   progress=progress)
        return None

    def read(self, key: str, start: int, length: int, progress: Progress = None) -> bytes:
        """Up to `length` bytes from byte `start` on: fewer at the end, b'' behind it. NotFound when
        there is no such object."""
        return self._get(key, start, length, progress)[0]

    def list(self, prefix: str = '', delimiter: str = '') -> list[Object]:
        """The objects whose keys begin with `prefix`, in byte order of the keys. With a delimiter,
        keys that go on behind the next one are one entry, whose key ends with it. NotFound when
        there is no such bucket."""
        found: list[Object] = []
        self._collect(lambda entry: found.append(_object_of(entry)), lib.deltabucket_list,
                      c_text(prefix, 'prefix'), c_text(delimiter, 'delimiter'))
        return found

    def head(self, key: str) -> Object:
        """What the bucket says of an object. NotFound when there is none."""
        found: list[Object] = []
        self._collect(lambda entry: found.append(_object_of(entry)), lib.deltabucket_head,
                      c_text(key, 'key'))
        return found[0]

    def remove(self, key: str) -> None:
        """Removes the object; one that does not exist counts as removed."""
        self._call(lib.deltabucket_remove, c_text(key, 'key'))

    def _get_whole(self, key: str, progress: Progress) -> bytes:
        size = self.head(key).size
        for _ in range(GET_TRIES):
            data, now = self._get(key, 0, size, progress)
            if now == size:
                return data
            size = now
        raise errors.Busy(f'{self.name}/{key} is replaced again and again while it is read.',
                          kind='busy')

    def _get(self, key: str, start: int, length: int, progress: Progress) -> tuple[bytes, int]:
        """(bytes, size of the object)"""
        if start < 0 or length < 0:
            raise ValueError(f'{length} bytes from {start} on cannot be read; neither may be '
                             'below 0.')
        into = bytearray(length)
        came = ffi.new('size_t *')
        size = ffi.new('uint64_t *')
        self._call(lib.deltabucket_get, c_text(key, 'key'), start,
                   ffi.from_buffer(into, require_writable=True), length, came, size,
                   progress=progress)
        return bytes(into) if came[0] == length else bytes(into[:came[0]]), size[0]

    def _call(self, function: Callable[..., Any], *arguments: Any,
              progress: Progress = None) -> None:
        def call(watch: Any, err: Any) -> int:
            with self._client.handle.use() as client:
                return int(function(client, self._bucket, *arguments, watch, err))
        self._run(call, progress)

    def _collect(self, take: Callable[[Any], None], function: Callable[..., Any],
                 *arguments: Any) -> None:
        """A call that gives entries to `take`."""
        def call(owner: Any, watch: Any, err: Any) -> int:
            with self._client.handle.use() as client:
                return int(function(client, self._bucket, *arguments,
                                    lib.deltabucket_python_object, owner, watch, err))
        self._run(collecting(take, call), False)

    def _run(self, call: CFunction, progress: Progress) -> None:
        self._client.call(call, self._progress if progress is None else progress)


def _object_of(entry: Any) -> Object:
    return Object(text_of(entry.key), entry.bytes, time_of(entry.modified_ms),
                  text_of(entry.etag))
