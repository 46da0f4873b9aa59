"""torch.distributed.checkpoint over a bucket:

    from torch.distributed import checkpoint
    from deltabucket.checkpoint import BucketReader, BucketWriter

    checkpoint.save(state, storage_writer=BucketWriter(bucket, 'run/step-7'))
    checkpoint.load(state, storage_reader=BucketReader(bucket, 'run/step-7'))

The files are those of torch's own FileSystemWriter, so its tools read what lies here, and the other
way round. Every rank writes its own, of which only the chunks are sent that the server lacks: those
of tensors that an earlier checkpoint has, under whatever name, are not. `.metadata` is the last of
them, in one request: a checkpoint appears whole or not at all. Files of one save never have the
names of another's, so the checkpoint that is written over stays whole until then, too.

Readers fetch only the tensors that their rank asks for, several at a time.
"""
from __future__ import annotations

import collections
import contextlib
import dataclasses
import io
import os
import queue
import tempfile
import time
import uuid
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.filesystem import FileSystemBase

from deltabucket import errors
from deltabucket.bucket import Bucket

METADATA = '.metadata'
SUFFIX = '.distcp'
PENDING = '.tmp'
PARALLEL = 4  # requests at a time
PART_BYTES = 32 << 20  # of one request
GROUP_BYTES = 16 << 20  # up to so many are read at once where items are small
GAP_BYTES = 64 << 10  # of no use between two items, and read all the same
WAIT_SECONDS = 0.02
AHEAD_BYTES = 256 << 20  # in memory, beside the item that is being loaded


class BucketWriter(FileSystemWriter):  # type: ignore[misc]
    """A StorageWriter for `save` and `async_save`, for one or more checkpoints one after the other.

    bucket: exists; it may be used for other things meanwhile. prefix: the folder of the checkpoint,
    '' for the whole bucket; a `checkpoint_id` of the call takes its place. overwrite: whether a
    checkpoint may be there already; its files are removed when the new one is whole. scratch: the
    folder for the rank's files until they are sent, None for $TMPDIR or /tmp; it needs room for all
    of them. thread_count: files that a rank writes at a time. options: more of FileSystemWriter's.
    """

    def __init__(self, bucket: Bucket, prefix: str = '', *, overwrite: bool = False,
                 scratch: str | os.PathLike[str] | None = None, thread_count: int = 1,
                 **options: Any) -> None:
        super().__init__(prefix, sync_files=False, thread_count=thread_count, overwrite=overwrite,
                         **options)
        self.fs = _Files(bucket, scratch)
        self.path = self.fs.init_path(prefix)

    def write_data(self, plan: Any, planner: Any) -> Any:
        """Under names of this save. Raises also what a thread beside this one could not write."""
        named = plan.storage_data
        own = dataclasses.replace(named, prefix=f'{named.prefix}{uuid.uuid4().hex[:12]}_')
        with self.fs.writing():
            written = super().write_data(dataclasses.replace(plan, storage_data=own), planner)
        return written

    def finish(self, metadata: Any, results: Any) -> None:
        """Makes the checkpoint appear, then removes the files of the one that was there."""
        is_alone = self.use_collectives or self.rank is None
        owner = '' if is_alone else f'__{self.rank}'
        old = self.fs.files_before(self.path, owner)
        super().finish(metadata, results)
        new = {self.fs.concat_path(self.path, written.storage_data.relative_path)
               for of_rank in results for written in of_rank}
        for key in old - new:
            self.fs.rm_file(key)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return isinstance(checkpoint_id, str)


class BucketReader(FileSystemReader):  # type: ignore[misc]
    """A StorageReader for `load`. bucket, prefix: as for BucketWriter. Any number of ranks may
    load, however the tensors were sharded when they were saved. As every reader of torch it
    unpickles `.metadata`: read only what comes from people that you trust."""

    def __init__(self, bucket: Bucket, prefix: str = '') -> None:
        super().__init__(prefix)
        self.fs = _Files(bucket)
        self.path = self.fs.init_path(prefix)

    def read_data(self, plan: Any, planner: Any) -> Any:
        done = super().read_data(dataclasses.replace(plan, items=[]), planner)
        groups = _groups_of(plan.items, self.storage_data)
        try:
            with contextlib.closing(_fetched(self.fs, self.path, groups)) as fetched:
                for group, data in fetched:
                    self.fs.window = _Window(data, group.start)
                    super().read_data(dataclasses.replace(plan, items=group.items), planner)
        finally:
            self.fs.window = None
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return isinstance(checkpoint_id, str)


class _Files(FileSystemBase):  # type: ignore[misc]
    """The bucket as torch's readers and writers see a file system; paths are keys.

    They replace a file in three steps: they write NAME.tmp, remove NAME, and rename. Here the first
    one keeps the file on this machine, the second one does nothing, and the third one uploads it.
    """

    def __init__(self, bucket: Bucket, scratch: str | os.PathLike[str] | None = None) -> None:
        self.bucket = bucket
        self.scratch = scratch
        self.window: _Window | None = None  # what is open for reading
        self._pending: dict[str, bytes] = {}
        self._failures: list[BaseException] = []  # of threads that write
        self._open: set[str] = set()  # what they are writing

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """While threads write. Where one has failed, no other begins a file any more, and the
        failure is raised when all have ended, which torch does not see to."""
        self._failures.clear()
        try:
            yield
        except BaseException as failure:
            self._failures.append(failure)
        while self._open:
            time.sleep(WAIT_SECONDS)
        if self._failures:
            raise self._failures[0]

    @contextlib.contextmanager
    def create_stream(self, path: str, mode: str) -> Iterator[Any]:
        if mode == 'rb':
            yield self.window or io.BytesIO(self.bucket.get(path, progress=False))
        elif path.endswith(PENDING):
            stream = io.BytesIO()
            yield stream
            self._pending[path] = stream.getvalue()
        else:
            with self._uploaded(path) as stream:
                yield stream

    @contextlib.contextmanager
    def _uploaded(self, key: str) -> Iterator[Any]:
        handle, local = self._begin(key)
        try:
            with open(handle, 'wb') as stream:
                yield stream
            self.bucket.put(key, local, progress=False)
        except Exception as failure:
            self._failures.append(failure)  # `writing` raises it
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(local)
            self._open.discard(key)

    def _begin(self, key: str) -> tuple[int, str]:
        """A file for the bytes of the key: its descriptor and path. queue.Empty after a failure,
        for which threads of torch take it that no file is left to be written."""
        self._open.add(key)  # first, so that `writing` sees it when this does not see a failure
        if not self._failures:
            try:
                return tempfile.mkstemp(prefix='deltabucket-', dir=self.scratch)
            except OSError as failure:
                self._failures.append(failure)
        self._open.discard(key)
        raise queue.Empty

    def concat_path(self, path: str, suffix: str) -> str:
        return f'{path}/{suffix}' if path else suffix

    def init_path(self, path: str | os.PathLike[str]) -> str:
        return str(path).strip('/')

    def mkdir(self, path: str) -> None:
        """Keys need no folder."""

    def exists(self, path: str) -> bool:
        try:
            self.bucket.head(path)
        except errors.NotFound as failure:
            if failure.kind == 'no_bucket':
                raise
            return False
        return True

    def rm_file(self, path: str) -> None:
        if path + PENDING not in self._pending:
            self.bucket.remove(path)

    def rename(self, path: str, new_path: str) -> None:
        self.bucket.put(new_path, self._pending.pop(path), progress=False)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return isinstance(checkpoint_id, str)

    def files_before(self, folder: str, owner: str) -> set[str]:
        """The files that were there when the checkpoint in the folder became whole; none where
        there is no checkpoint. owner: '__N' for those of rank N alone, with a `.metadata` of its
        own; '' for those of all ranks."""
        whole = self.concat_path(folder, owner + METADATA)
        # a listing has the milliseconds that HEAD lacks
        times = [one.modified for one in self.bucket.list(whole) if one.key == whole]
        begin = self.concat_path(folder, f'{owner or "_"}_')
        return {one.key for one in (self.bucket.list(begin) if times else ())
                if one.modified <= times[0] and one.key.endswith(SUFFIX)}


class _Window(io.RawIOBase):
    """The bytes of a file from `start` on, at the positions that they have in the file."""

    def __init__(self, data: bytearray, start: int) -> None:
        self._data = memoryview(data)
        self._start = start
        self._at = start

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """whence: the beginning of the file, since where it ends is not known."""
        if whence != os.SEEK_SET:
            raise io.UnsupportedOperation('seek')
        self._at = offset
        return offset

    def readinto(self, into: Any) -> int:
        here = self._at - self._start
        if here < 0:
            raise io.UnsupportedOperation(f'byte {self._at} was not fetched')
        part = self._data[here:here + len(into)]
        into[:len(part)] = part
        self._at += len(part)
        return len(part)


@dataclasses.dataclass
class _Group:
    """Items that lie together in one file, and are read at once."""
    name: str
    start: int
    end: int
    items: list[Any]


def _groups_of(items: list[Any], places: Any) -> Iterator[_Group]:
    """places: where each item lies, as torch's metadata say."""
    group: _Group | None = None
    for place, item in sorted(((places[item.storage_index], item) for item in items),
                              key=lambda one: (one[0].relative_path, one[0].offset)):
        end = place.offset + place.length
        if group and group.name == place.relative_path and (
                end <= group.end or (place.offset - group.end <= GAP_BYTES and
                                     end - group.start <= GROUP_BYTES)):
            group.end = max(group.end, end)
            group.items.append(item)
            continue
        if group:
            yield group
        group = _Group(place.relative_path, place.offset, end, [item])
    if group:
        yield group


def _fetched(files: _Files, folder: str, groups: Iterator[_Group]
             ) -> Generator[tuple[_Group, bytearray], None, None]:
    """The groups with their bytes, while the next ones are on their way."""
    waiting: collections.deque[tuple[_Group, bytearray, list[Future[None]]]] = collections.deque()
    ahead = 0
    pool = ThreadPoolExecutor(PARALLEL, 'deltabucket')
    try:
        for group in groups:
            data = bytearray(group.end - group.start)
            key = files.concat_path(folder, group.name)
            waiting.append((group, data, [
                pool.submit(_fetch, files.bucket, key, group.start + at,
                            memoryview(data)[at:at + PART_BYTES])
                for at in range(0, len(data), PART_BYTES)]))
            ahead += len(data)
            while len(waiting) > 1 and ahead > AHEAD_BYTES:
                ahead -= len(waiting[0][1])
                yield _awaited(waiting.popleft())
        while waiting:
            yield _awaited(waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _fetch(bucket: Bucket, key: str, start: int, into: memoryview) -> None:
    came = bucket.read_into(key, start, into, progress=False)
    if came != len(into):
        raise errors.Damaged(f'{bucket.name}/{key} ends at byte {start + came}; its checkpoint has '
                             f'tensors behind that.', kind='corrupt')


def _awaited(waiting: tuple[_Group, bytearray, list[Future[None]]]) -> tuple[_Group, bytearray]:
    group, data, parts = waiting
    for part in parts:
        part.result()
    return group, data
