"""The fsspec protocol `deltabucket://BUCKET/KEY`: for pandas, pyarrow, zarr, datasets, and for
torch.distributed.checkpoint (its FsspecReader and FsspecWriter).

Files are written to a temporary file first and uploaded when they are closed, of which only the
chunks are sent that the server lacks; a file that an exception has left open does not appear.
Listings are always fresh.
"""
from __future__ import annotations

import io
import os
import tempfile
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from deltabucket import errors
from deltabucket.bucket import Bucket, Object


class DeltaBucketFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """endpoint, token, ca, profile: as for `Bucket`, from the environment when left out. Errors
    are FileNotFoundError, FileExistsError and PermissionError where fsspec expects them."""

    protocol = 'deltabucket'

    def __init__(self, endpoint: str | None = None, token: str | None = None,
                 ca: str | None = None, profile: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._settings = endpoint, token, ca, profile
        self._buckets: dict[tuple[int, str], Bucket] = {}

    def bucket_of(self, path: str) -> tuple[Bucket, str]:
        """(bucket, key) of a path. FileNotFoundError for the root, which lists nothing."""
        name, _, key = self._strip_protocol(path).partition('/')
        if not name:
            raise FileNotFoundError('A path has the form deltabucket://BUCKET/KEY.')
        place = os.getpid(), name  # a child of fork makes its own
        bucket = self._buckets.get(place)
        if bucket is None:
            # Without a lock: a fork could leave it locked in the child. One of two that are made at
            # once is let go.
            endpoint, token, ca, profile = self._settings
            bucket = self._buckets.setdefault(place, Bucket(name, endpoint, token, ca,
                                                            profile=profile, progress=False))
        return bucket, key

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        bucket, key = self.bucket_of(path)
        prefix = f'{key}/' if key else ''
        with _as_os_errors(path):
            found = bucket.list(prefix, '/')
            entries = [_entry(bucket.name, one) for one in found if one.key != prefix]
            if not entries and key:
                entries = [_entry(bucket.name, bucket.head(key))]
        return entries if detail else [entry['name'] for entry in entries]

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        bucket, key = self.bucket_of(path)
        with _as_os_errors(path):
            if key:
                try:
                    return _entry(bucket.name, bucket.head(key))
                except errors.NotFound:
                    if not bucket.list(f'{key}/', '/'):
                        raise
            else:
                bucket.list('', '/')
        return {'name': self._strip_protocol(path), 'size': 0, 'type': 'directory'}

    def created(self, path: str) -> Any:
        return self.modified(path)

    def modified(self, path: str) -> Any:
        return self.info(path)['modified']

    def cat_file(self, path: str, start: int | None = None, end: int | None = None,
                 **options: Any) -> bytes:
        bucket, key = self.bucket_of(path)
        with _as_os_errors(path):
            if start is None and end is None:
                return bucket.get(key) or b''
            size = bucket.head(key).size
            first, last, _ = slice(start, end).indices(size)
            return bucket.read(key, first, max(0, last - first))

    def pipe_file(self, path: str, value: bytes, mode: str = 'overwrite', **options: Any) -> None:
        if mode == 'create' and self.exists(path):
            raise FileExistsError(f'{path} exists.')
        bucket, key = self.bucket_of(path)
        with _as_os_errors(path):
            bucket.put(key, value)

    def put_file(self, lpath: str, rpath: str, **options: Any) -> None:
        if os.path.isdir(lpath):
            return
        bucket, key = self.bucket_of(rpath)
        with _as_os_errors(rpath):
            bucket.put(key, os.fspath(lpath))

    def get_file(self, rpath: str, lpath: Any, **options: Any) -> None:
        bucket, key = self.bucket_of(rpath)
        if hasattr(lpath, 'write') or self.isdir(rpath):
            super().get_file(rpath, lpath, **options)
            return
        os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
        with _as_os_errors(rpath):
            bucket.get(key, lpath)

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        """By way of a temporary file. Its chunks are at the server already, so none is sent."""
        if self.isdir(path1):
            return
        with tempfile.TemporaryDirectory(prefix='deltabucket-') as folder:
            local = os.path.join(folder, 'file')
            self.get_file(path1, local)
            self.put_file(local, path2)

    def rm_file(self, path: str) -> None:
        bucket, key = self.bucket_of(path)
        with _as_os_errors(path):
            bucket.remove(key)

    _rm = rm_file

    def mkdir(self, path: str, create_parents: bool = True, **options: Any) -> None:
        """Makes the bucket; folders inside of it need no making."""
        self.makedirs(path, exist_ok=True)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        bucket, key = self.bucket_of(path)
        with _as_os_errors(path):
            try:
                bucket.list('', '/')
                is_made = False
            except errors.NotFound:
                bucket.create()
                is_made = True
        if not exist_ok and not key and not is_made:
            raise FileExistsError(f'{path} exists.')

    def rmdir(self, path: str) -> None:
        """There are no folders but those that keys make up, which go with the last key."""

    def _open(self, path: str, mode: str = 'rb', block_size: int | str | None = None,
              autocommit: bool = True, cache_options: Any = None, **options: Any) -> Any:
        if mode == 'xb' and self.exists(path):
            raise FileExistsError(f'{path} exists.')
        if mode in ('wb', 'xb'):
            return _Writer(self, path, autocommit)
        if mode != 'rb':
            raise ValueError(f'The mode {mode!r} must be rb, wb or xb: objects do not grow.')
        return _Reader(self, path, mode, block_size or 'default', autocommit,
                       cache_options=cache_options, **options)


class _Reader(AbstractBufferedFile):  # type: ignore[misc]
    def _fetch_range(self, start: int, end: int) -> bytes:
        bucket, key = self.fs.bucket_of(self.path)
        with _as_os_errors(self.path):
            return bytes(bucket.read(key, start, end - start))


class _Writer(io.FileIO):
    """A temporary file that becomes the object when it is closed."""

    def __init__(self, fs: DeltaBucketFileSystem, path: str, autocommit: bool) -> None:
        self.fs = fs
        self.path = path
        self.autocommit = autocommit
        handle, self._local = tempfile.mkstemp(prefix='deltabucket-')
        super().__init__(handle, 'w+')

    def __exit__(self, kind: Any, failure: Any, trace: Any) -> None:
        if kind is not None:
            self.discard()
        self.close()

    def __del__(self) -> None:
        """A file that nobody has closed does not appear."""
        if not self.closed:
            self.discard()
            super().close()

    def close(self) -> None:
        """Uploads it, unless a transaction will."""
        if self.closed:
            return
        super().close()
        if self._local and self.autocommit:
            self.commit()

    def commit(self) -> None:
        try:
            self.fs.put_file(self._local, self.path)
        finally:
            self.discard()

    def discard(self) -> None:
        if self._local:
            os.remove(self._local)
            self._local = ''


class _as_os_errors:
    """Turns what fsspec expects of a file system into the classes of OSError."""

    KINDS: tuple[tuple[type[errors.Error], type[OSError]], ...] = (
        (errors.NotFound, FileNotFoundError), (errors.Denied, PermissionError),
        (errors.Exists, FileExistsError))

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, failure: BaseException | None, trace: Any) -> None:
        for ours, theirs in self.KINDS:
            if isinstance(failure, ours):
                raise theirs(f'{self._path}: {failure}') from failure


def _entry(bucket: str, found: Object) -> dict[str, Any]:
    if found.key.endswith('/') and not found.etag:
        return {'name': f'{bucket}/{found.key[:-1]}', 'size': 0, 'type': 'directory'}
    return {'name': f'{bucket}/{found.key}', 'size': found.size, 'type': 'file',
            'modified': found.modified, 'etag': found.etag}
