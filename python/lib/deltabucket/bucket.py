"""Objects of a bucket."""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import Any, Literal, overload

from deltabucket import errors
from deltabucket._calls import CFunction, collecting, notes
from deltabucket._client import Client
from deltabucket._library import c_path, c_text, defaults, path_of, text_of
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


@dataclass(frozen=True)
class Synced:
    """What `Bucket.sync` has done, or would do.

    files: at the source. moved, removed: names of the files that were sent or fetched, and of those
    that were removed, relative to folder and prefix. moved_bytes: of the files. traffic_bytes: that
    went over the network for them.
    """
    files: int
    moved: tuple[str, ...]
    moved_bytes: int
    traffic_bytes: int
    removed: tuple[str, ...]


def time_of(milliseconds: int) -> datetime:
    """In UTC, of milliseconds since 1970."""
    return EPOCH + timedelta(milliseconds=milliseconds)


class Bucket:
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
        self._settings: dict[str, Any] = {'profile': profile, 'retries': retries, 'parallel': parallel,
                          'threads': threads}
        self._made_from = name, endpoint, token, ca
        self._client = Client(endpoint, token, ca, **self._settings)

    def __repr__(self) -> str:
        return f'Bucket({self.name!r}, {self.endpoint!r})'

    def __enter__(self) -> Bucket:
        return self

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """In a process that it is sent to, it is a bucket with the same arguments, the token among
        them. What the environment said is read again there."""
        return _made_again, (self._made_from, self._settings, self._progress)

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
        if not isinstance(source, (bytes, bytearray, memoryview)):
            raise TypeError(f'The content of {key!r} is a {type(source).__name__}; it must be bytes, '
                            'or a str or path that names a file.')
        view = memoryview(source)
        if not view.c_contiguous:
            view = memoryview(view.tobytes())
        data = ffi.from_buffer(view)
        self._call(lib.deltabucket_put, c_text(key, 'key'), data, view.nbytes, progress=progress)

    @overload
    def get(self, key: str, path: None = None, progress: Progress = None) -> bytes: ...

    @overload
    def get(self, key: str, path: str | os.PathLike[str], progress: Progress = None) -> None: ...

    def get(self, key: str, path: str | os.PathLike[str] | None = None,
            progress: Progress = None) -> bytes | None:
        """The object's bytes; or, with `path`, None, and the file appears there whole and proven,
        or not at all. NotFound when there is no such object or no folder for the file, Invalid when
        `path` is a folder itself."""
        if path is None:
            return self._get_whole(key, progress)
        self._call(lib.deltabucket_get_file, c_text(key, 'key'), c_path(path, 'path'),
                   progress=progress)
        return None

    def read(self, key: str, start: int, length: int, progress: Progress = None) -> bytes:
        """Up to `length` bytes from byte `start` on: fewer at the end, b'' behind it. NotFound when
        there is no such object."""
        return self._get(key, start, length, progress)[0]

    def read_into(self, key: str, start: int, into: bytearray | memoryview,
                  progress: Progress = None) -> int:
        """The same into memory of the caller, which must be writable and contiguous; gives how many
        bytes came."""
        return self._fill(key, start, into, progress)[0]

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

    def sync(self, folder: str | os.PathLike[str], prefix: str = '', *,
             direction: Literal['up', 'down'], delete: bool = False, dry_run: bool = False,
             create_bucket: bool = False, progress: Progress = None) -> Synced:
        """Makes a prefix like a folder ('up'), or a folder like a prefix ('down'), as `deltabucket
        sync` does: only files that differ move, and of those only chunks that the other side lacks.

        prefix: '' for the whole bucket; 'a' and 'a/' are the same. delete: what the source lacks is
        removed from the target, at the end. dry_run: nothing is changed. create_bucket: on the way
        up, makes the bucket if there is none.

        NotFound when there is no such bucket, or no such folder on the way up, or when `delete`
        would empty the target because there is nothing at the source; Invalid when a link leads to
        a folder, or a key cannot be a file's name: then nothing is done. A removal that the server
        refuses stops nothing else; the call raises it at its end, Denied for example.
        """
        told = _Told()
        settings = defaults('deltabucket_sync_settings')
        # the struct holds addresses alone
        texts = {'bucket': self._bucket, 'prefix': c_text(prefix, 'prefix'),
                 'folder': c_path(folder, 'folder'), 'direction': c_text(direction, 'direction')}
        for member, text in texts.items():
            setattr(settings, member, text)
        settings.deletes = delete
        settings.dry_run = dry_run
        settings.create_bucket = create_bucket
        settings.told = lib.deltabucket_python_told
        settings.owner = told.owner
        out = defaults('deltabucket_synced')

        def call(watch: Any, err: Any) -> int:
            with self._client.handle.use() as client:
                return int(lib.deltabucket_sync(client, settings, out, watch, err))
        self._run(call, progress)
        return Synced(out.files, tuple(sorted(told.moved)), out.moved_bytes, out.traffic_bytes,
                      tuple(told.removed))

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
        came, size = self._fill(key, start, into, progress)
        return bytes(into) if came == length else bytes(into[:came]), size

    def _fill(self, key: str, start: int, into: bytearray | memoryview,
              progress: Progress) -> tuple[int, int]:
        """(bytes that came, size of the object)"""
        if start < 0:
            raise ValueError(f'Bytes from {start} on cannot be read; it may not be below 0.')
        came = ffi.new('size_t *')
        size = ffi.new('uint64_t *')
        data = ffi.from_buffer(into, require_writable=True)
        self._call(lib.deltabucket_get, c_text(key, 'key'), start, data, len(data), came, size,
                   progress=progress)
        return came[0], size[0]

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


def _made_again(made_from: tuple[Any, ...], settings: dict[str, Any],
                progress: Progress) -> Bucket:
    return Bucket(*made_from, progress=progress, **settings)


def _object_of(entry: Any) -> Object:
    return Object(text_of(entry.key), entry.bytes, time_of(entry.modified_ms),
                  text_of(entry.etag))


class _Told:
    """The names that a sync has told."""

    def __init__(self) -> None:
        self.moved: list[str] = []
        self.removed: list[str] = []
        self.owner = ffi.new_handle(self)


@ffi.def_extern()  # type: ignore[untyped-decorator]
def deltabucket_python_told(owner: Any, what: Any, name: Any, size: int) -> None:
    told = ffi.from_handle(owner)
    word = text_of(what)
    if word == 'refused':
        notes.warning('The server does not let %s be removed.', path_of(name))
    else:
        (told.removed if word == 'removed' else told.moved).append(path_of(name))
