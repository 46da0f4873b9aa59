"""A run: the numbered steps of one model, published by a trainer and followed by workers."""
from __future__ import annotations

import math
import operator
import os
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from types import TracebackType
from typing import Any

from deltabucket import errors
from deltabucket._client import Client
from deltabucket._library import (Handle, c_path, c_text, defaults, made_of,
                                  new_error, text_of)
from deltabucket._native import ffi, lib
from deltabucket.follower import Follower, Part
from deltabucket.progress import Progress
from deltabucket.ranks import Place, gather, place_of, rank_index
from deltabucket.tensors import CTensors, Memory, readable

WAIT_SECONDS = 30.0  # of one request that waits for a step
MISSING_SECONDS = 1.0  # between two looks for a run that does not exist yet


@dataclass(frozen=True)
class Published:
    """What a call of `Run.publish` has done.

    step: the number. digest: of the tensors ('xxh3-128:...'). already: this very step had been
    published before. anchor_due: the server wants an anchor with the next step. checkpoint_bytes:
    of all tensors and files. delta_bytes, anchor_bytes: sent as a delta and as a whole. elements,
    changed_elements: of the tensors; 0 when no delta was made. diff_seconds, upload_seconds: what
    the two took.
    """
    step: int
    digest: str
    already: bool
    anchor_due: bool
    checkpoint_bytes: int
    delta_bytes: int
    anchor_bytes: int
    elements: int
    changed_elements: int
    diff_seconds: float
    upload_seconds: float


@dataclass(frozen=True)
class StepInfo:
    """What the server says of a step.

    number, label ('' for none), digest (of the tensors); created: when the server took it, in UTC.
    metadata: what the publisher gave. verified: 'pending', 'ok' or 'failed', '' of a collected
    step. collected: it has been removed. manifest: the whole answer.
    """
    number: int
    label: str
    digest: str
    created: datetime | None
    metadata: dict[str, str]
    verified: str
    collected: bool
    manifest: dict[str, Any]


@dataclass(frozen=True)
class Replica:
    """A worker of the run's fleet.

    id, host: its names. state: 'idle', 'fetching', 'staging', 'ready' or 'error'. step: what it
    holds, None for none yet. lag: steps behind the newest one (in a rollback: away from the step of
    that), None where that is not known. error: its last sentence, '' for none. updated: when it was last heard of, in UTC. expired: not
    heard of for longer than its lease. pause: for how many seconds its engine was paused to take the
    step, None where that is not known.
    """
    id: str
    host: str
    state: str
    step: int | None
    lag: int | None
    error: str
    updated: datetime | None
    expired: bool
    pause: float | None


class Run:
    """A run, for its publisher and its followers.

    `publish` and `publish_rank` are for one thread at a time (others wait); all else may be called
    from any thread. Objects of this package that were made before a fork are refused in the child
    (UsedAfterFork).
    """

    def __init__(self, name: str | None = None, endpoint: str | None = None,
                 token: str | None = None, ca: str | os.PathLike[str] | None = None, *,
                 profile: str | None = None, state: str | os.PathLike[str] | None = None,
                 create_bucket: bool = False, take_over: bool = False,
                 keep_steps: int | None = None, retries: int | None = None, parallel: int = 0,
                 threads: int = 0, progress: Progress = None) -> None:
        """Sends nothing. Raises Invalid when there is no endpoint, ValueError for a wrong name.

        name: 'BUCKET/RUN'; None: DELTABUCKET_RUN of the environment.
        endpoint ('https://host:port'), token, ca (path of a PEM file): None: DELTABUCKET_ENDPOINT,
        DELTABUCKET_TOKEN and DELTABUCKET_CA, then what `deltabucket login` has stored. profile: in
        that file.
        state: a folder where the publisher remembers the run and keeps the weights that it
        published last; it should outlive the process. None: in memory; a new publisher fetches the
        newest step from the server first.
        create_bucket: `publish` makes the bucket if there is none.
        take_over: `publish` becomes the run's writer even if another publisher is, or was: for a
        trainer that is started again and has no `state`. The other one gets StaleEpoch.
        keep_steps: how many steps the run keeps, 0 for all; None: as it is.
        retries: tries after the first; None: 4. parallel: transfers at a time; 0: 4. threads: for
        encoding and decoding; 0: one per core.
        progress: True for a bar (tqdm), False for none, None for one on a terminal, or a function
        (deltabucket.progress).
        """
        if name is None:
            name = os.environ.get('DELTABUCKET_RUN', '')
        bucket, slash, run = name.partition('/')
        if not (bucket and slash and run):
            raise ValueError(f'The run {name!r} must have the form BUCKET/RUN; it is the first '
                             'argument, or DELTABUCKET_RUN of the environment.')
        if keep_steps is not None and keep_steps < 0:
            raise ValueError(f'keep_steps is {keep_steps}; it must be 0 or more, or None.')
        self.name = name
        self._progress = progress
        self._publishers: dict[bool, Handle] = {}  # for ranks, and alone
        self._opening = threading.Lock()
        self._epoch = 0  # that the ranks of torch.distributed have in common; 0: none yet
        self._settings = defaults('deltabucket_publisher_settings')
        self._kept = c_text(name, 'run'), ffi.NULL if state is None else c_path(state, 'state')
        self._settings.run, self._settings.state = self._kept
        self._settings.create_bucket = create_bucket
        self._settings.take_over = take_over
        self._settings.keep_steps = -1 if keep_steps is None else keep_steps
        self._client = Client(endpoint, token, ca, profile=profile, retries=retries,
                              parallel=parallel, threads=threads)
        self._made_from = name, endpoint, token, ca
        self._given: dict[str, Any] = {
            'profile': profile, 'state': state, 'create_bucket': create_bucket,
            'take_over': take_over, 'keep_steps': keep_steps, 'retries': retries,
            'parallel': parallel, 'threads': threads, 'progress': progress}
        self._target = '/v1/runs/' + urllib.parse.quote(name)

    def __enter__(self) -> Run:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """In a process that it is sent to, it is a run with the same arguments, the token among
        them. What the environment said is read again there, and nothing is published yet."""
        return _made_again, (self._made_from, self._given)

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f'Run({self.name!r}, {self.endpoint!r})'

    @property
    def endpoint(self) -> str:
        """Of the server, as 'https://host:port'."""
        return self._client.endpoint

    def close(self) -> None:
        """Ends the publisher and forgets the weights that it keeps in memory. Followers go on."""
        for publisher in self._publishers.values():
            publisher.close()
        self._client.close()

    def publish(self, source: Mapping[str, Any] | str | os.PathLike[str],
                step: int | None = None, *, label: str | None = None,
                metadata: Mapping[str, str] | None = None, anchor: str = 'auto',
                files: Mapping[str, bytes | str] | None = None, format: str | None = None,
                clean: bool = True, progress: Progress = None) -> Published:
        """Publishes the next step: what changed against the step before, or all.

        source: a mapping of names to numpy arrays or torch tensors, whose memory must not change
        during the call; or the path of a safetensors file, or of a folder with shards and config.
        Tensors that are not contiguous, or not in CPU memory, are copied first. Tensors under two
        names (tied weights) are published under both.
        step: the number that it must become, else HeadMoved; None: the next one. Publishing the
        step published last again, with the same bytes, succeeds (`Published.already`).
        label, metadata: of the step, for its readers.
        anchor: when a whole copy goes along: 'auto', 'always', 'never' or 'every=N'.
        files: what belongs beside tensors in memory, {relative path: content}, like config.json.
        format: of the delta; None: 'ulp-class'.
        clean: leave out of names what wrappers put into them (`deltabucket.clean_names`).
        progress: as for `Run`; None: that of the run.

        HeadMoved or StaleEpoch when another publisher has taken the run. SchemaMismatch when the
        tensors are not those of its first step. NotFound when there is no bucket or no such path.
        TypeError for a tensor with a dtype that safetensors does not have. After any failure the
        same call may be repeated.
        """
        publication = _Publication(source, step, label, metadata, anchor, files, format, clean)
        return self._publish(publication, progress)

    def publish_rank(self, source: Mapping[str, Any] | str | os.PathLike[str],
                     step: int | None = None, *, rank: int | None = None,
                     ranks: int | None = None, epoch: int | None = None,
                     label: str | None = None, metadata: Mapping[str, str] | None = None,
                     anchor: str = 'auto', files: Mapping[str, bytes | str] | None = None,
                     clean: bool = True, wait: float | None = None, group: Any = None,
                     progress: Progress = None) -> Published:
        """Publishes this rank's part of the next step. Every rank calls it, each with tensors of
        its own; the step appears when all parts are there, and every call returns then.

        source: as for `publish`: the rank's own tensors, whole ones (`deltabucket.rank_part` makes
        them of sharded ones); or the path of a folder that all ranks have written into, or of one
        with the rank's own shards. From memory each rank is a shard of its own, and `files` of
        rank 0 has the index of them (`deltabucket.rank_index`); a single rank needs none.
        rank, ranks: the number of this rank, from 0 on, of so many. Both None: those of
        torch.distributed (of `group`, where that is not None), and all of its ranks must call this:
        they tell each other the epoch and the names of their tensors, the index is made, and the
        failure of one is a NotReady of the others before anything is sent.
        epoch: from `new_epoch` of one rank, which has told the others. None: they have one `state`
        folder in common, or torch.distributed, or there is one rank alone.
        step, label, metadata, anchor, files: as for `publish`; label, metadata and files are those
        of rank 0. step should be given, and anchor be the same on all ranks ('auto', 'always' or
        'never').
        wait: seconds for the other ranks; None: an hour, 0: not at all.

        NotReady when other ranks do not come in time: the same call may be repeated, also by a rank
        that was started again. SchemaMismatch or Invalid when two ranks have one tensor, or all
        together not those of the run. HeadMoved when they do not mean the same step and number of
        ranks; Invalid when some send a delta and others all. Other failures as of `publish`.
        Returns what this rank has sent.
        """
        place = place_of(rank, ranks, group)

        def prepare() -> _Publication:
            made = _Publication(source, step, label, metadata, anchor, files, None, clean)
            made.set_place(place, self._epoch if epoch is None else epoch, wait)
            self._open_publisher(True)
            return made
        publication = prepare() if not place.is_group or epoch is not None else \
            self._gathered(place, step, prepare)
        return self._publish(publication, progress)

    def new_epoch(self) -> int:
        """Makes this program the run's publisher now and gives the epoch: what `publish_rank` takes
        where ranks have neither a `state` folder nor torch.distributed in common. One rank calls it
        and tells the others. Another publisher gets StaleEpoch, and parts of a step that was never
        completed are dropped. StaleEpoch when the run has another publisher, and this one does not
        take over."""
        publisher = self._open_publisher(True)
        out = ffi.new('uint64_t *')

        def ask(watch: Any, err: Any) -> int:
            with publisher.use() as pointer:
                return int(lib.deltabucket_publisher_epoch(pointer, out, watch, err))
        self._client.call(ask)
        return int(out[0])

    def follow(self, folder: str | os.PathLike[str] | None = None, *,
               tensors: str | Sequence[str] | None = None, rank: int | None = None,
               ranks: int | None = None, replica: str | None = None, silent: bool = False,
               max_lag: int | None = None, threads: int = 0, keeps_changes: bool = False,
               progress: Progress = None) -> Follower:
        """A follower of the run, to be used in `with` (or `async with`) and iterated over. The run
        may not exist yet.

        folder: what `deltabucket follow --into` keeps; a later follower, or the command line, goes
        on from there. None: the weights stay in memory and are changed in place from step to step.
        tensors: only those whose names match one of these shell patterns ('*' also matches '.').
        rank, ranks: only part number `rank`, from 0 on, of `ranks` parts with about as many bytes,
        whose tensors are neighbours in byte order of the names. Anchors and deltas are fetched
        whole all the same. A part in memory is made anew with each step, so it has no
        `Step.changes`.
        replica: name in the fleet; None: made of host and folder or process. silent: the fleet does
        not hear of this worker. max_lag: see `Follower`. threads: 0 for one per core. keeps_changes:
        in memory, what a step has changed is kept for `Step.changes`, 2 bytes for each element; a
        folder has the step before in any case.

        Busy when another follower works in the folder, Invalid when it holds something else.
        """
        return Follower(self._client, self.name, folder, Part(tensors, rank, ranks), replica,
                        silent, max_lag, threads, keeps_changes,
                        self._progress if progress is None else progress)

    def latest(self) -> StepInfo | None:
        """The newest step whose proof has not failed; None while there is none. NotFound when there
        is no such run."""
        answer = self._client.ask(f'{self._target}/steps/latest?head=true')
        return None if answer is None else _step_of(answer)

    def wait(self, after: int, timeout: float | None = None) -> StepInfo | None:
        """Waits for a step above `after` (-1 for any) and gives the newest. timeout: seconds, None
        for ever; None is returned when it is over. The run may not exist yet."""
        limit = None if timeout is None else time.monotonic() + timeout
        while True:
            left = WAIT_SECONDS if limit is None else max(0.0, limit - time.monotonic())
            seconds = int(min(left, WAIT_SECONDS))
            try:
                answer = self._client.ask(f'{self._target}/steps/latest?head=true&'
                                          + (f'after={after}&' if after >= 0 else '')
                                          + f'wait={seconds}')
            except errors.NotFound:
                answer = None
                seconds = 0
            if answer is not None:
                return _step_of(answer)
            if limit is not None and time.monotonic() >= limit:
                return None
            if seconds == 0:
                time.sleep(min(left, MISSING_SECONDS))

    def steps(self, first: int = 0) -> Iterator[StepInfo]:
        """The kept steps from `first` on, in rising order."""
        while True:
            answer = self._client.ask(f'{self._target}/steps?from={first}')
            yield from map(_step_of, answer['steps'])
            if 'next' not in answer:
                return
            first = answer['next']

    def fleet(self) -> Iterator[Replica]:
        """The workers that follow the run, in byte order of their ids."""
        after = ''
        while True:
            answer = self._client.ask(f'{self._target}/replicas'
                                      + (f'?after={urllib.parse.quote(after)}' if after else ''))
            yield from map(_replica_of, answer['replicas'])
            if 'next' not in answer:
                return
            after = answer['next']

    def status(self) -> dict[str, Any]:
        """The server's account of the run (docs/protocol/steps.md, "Run"): head, settings, bytes.
        NotFound when there is no such run."""
        answer: dict[str, Any] = self._client.ask(self._target)
        return answer

    def _publish(self, publication: _Publication, progress: Progress) -> Published:
        out = defaults('deltabucket_published')
        publisher = self._open_publisher(publication.pointer.ranks > 0)

        def publish(watch: Any, err: Any) -> int:
            with publisher.use() as pointer:
                return int(lib.deltabucket_publish(pointer, publication.pointer, out, watch, err))
        self._client.call(publish, self._progress if progress is None else progress)
        return _published_of(out)

    def _gathered(self, place: Place, step: int | None,
                  prepare: Callable[[], _Publication]) -> _Publication:
        """What `prepare` makes for a rank of torch.distributed. Sets the epoch."""
        def begin() -> tuple[_Publication, int]:
            made = prepare()
            is_due = place.rank == 0 and self._epoch == 0 and self._settings.state == ffi.NULL
            return made, self.new_epoch() if is_due else self._epoch
        made, told = gather(place, step, begin)
        made.pointer.epoch = self._epoch = told[0].epoch
        if place.rank == 0 and made.pointer.path == ffi.NULL:
            made.add_files(rank_index([one.names for one in told]))
        return made

    def _open_publisher(self, is_rank: bool) -> Handle:
        self._client.handle.check()  # the lock of a process that has forked may never be free
        with self._opening:
            if is_rank not in self._publishers:
                self._publishers[is_rank] = self._new_publisher()
            publisher = self._publishers[is_rank]
        publisher.check()
        return publisher

    def _new_publisher(self) -> Handle:
        err = new_error()
        with self._client.handle.use() as client:
            pointer = lib.deltabucket_publisher_open(client, self._settings, err)
        if pointer == ffi.NULL:
            raise made_of(err)
        return Handle('publisher', pointer, lib.deltabucket_publisher_close,
                      parent=self._client.handle, exclusive=True)


def _made_again(made_from: tuple[Any, ...], given: dict[str, Any]) -> Run:
    return Run(*made_from, **given)


class _Publication:
    """struct deltabucket_publication, with all that it points at."""

    def __init__(self, source: Mapping[str, Any] | str | os.PathLike[str], step: int | None,
                 label: str | None, metadata: Mapping[str, str] | None, anchor: str,
                 files: Mapping[str, bytes | str] | None, format: str | None,
                 clean: bool) -> None:
        self.pointer = defaults('deltabucket_publication')
        self.tensors: list[Memory] = []
        self._files: dict[str, bytes | str] = dict(files or {})
        self._kept: list[object] = []
        if isinstance(source, (str, os.PathLike)):
            if files:
                raise ValueError('files go with tensors in memory; those of a folder are in it.')
            self.pointer.path = self._keep(c_path(source, 'path'))
        elif isinstance(source, Mapping):
            self._set_tensors(source, clean)
            self._set_files()
        else:
            raise TypeError(f'The source is a {type(source).__name__}; it must be a mapping of '
                            f'names to tensors{_hint(source)}, or a path.')
        self.pointer.step = -1 if step is None else _number_of(step)
        self.pointer.label = self._keep(c_text(label, 'label'))
        self.pointer.anchor = self._keep(c_text(anchor, 'anchor'))
        self.pointer.format = self._keep(c_text(format, 'format'))
        self._set_metadata(metadata or {})

    def set_place(self, place: Place, epoch: int, wait: float | None) -> None:
        if epoch < 0:
            raise ValueError(f'The epoch is {epoch}; it is what new_epoch has given.')
        if wait is not None and not 0 <= wait < 2**62:
            raise ValueError(f'wait is {wait}; it is a number of seconds from 0 on, or None.')
        self.pointer.rank, self.pointer.ranks = place.rank, place.ranks
        self.pointer.epoch = epoch
        self.pointer.wait_s = 0 if wait is None else math.ceil(wait) or -1

    def add_files(self, files: Mapping[str, bytes | str]) -> None:
        """Adds those that the caller has not given."""
        self._files = {**files, **self._files}
        self._set_files()

    def _set_tensors(self, source: Mapping[str, Any], clean: bool) -> None:
        self.tensors = readable(source, clean)
        tensors = CTensors(self.tensors)
        self._kept.append(tensors)
        self.pointer.tensors = tensors.pointer
        self.pointer.tensor_count = tensors.count

    def _set_files(self) -> None:
        files = self._files
        made = self._keep(ffi.new('struct deltabucket_file[]', max(1, len(files))))
        for file, (path, content) in zip(made, files.items()):
            data = _content_of(path, content)
            file.path = self._keep(c_text(path, 'path of a file'))
            file.bytes = self._keep(ffi.from_buffer(data))
            file.len = len(data)
        self.pointer.files = made
        self.pointer.file_count = len(files)

    def _set_metadata(self, metadata: Mapping[str, str]) -> None:
        if not metadata:
            return
        texts = [self._keep(text) for name, value in metadata.items()
                 for text in (c_text(name, 'name of metadata'), c_text(value, f'metadata {name!r}'))]
        self.pointer.metadata = self._keep(ffi.new('char *[]', [*texts, ffi.NULL]))

    def _keep(self, made: Any) -> Any:
        self._kept.append(made)
        return made


def _hint(source: object) -> str:
    return ', as its state_dict() is' if hasattr(source, 'state_dict') else ''


def _number_of(step: int) -> int:
    number = operator.index(step)
    if not 0 <= number < 2**63:
        raise ValueError(f'The step is {number}; it must be 0 or more, or None for the next one.')
    return number


def _content_of(path: str, content: object) -> bytes:
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    raise TypeError(f'The file {path!r} is a {type(content).__name__}; it must be a str or bytes.')


def _published_of(out: Any) -> Published:
    return Published(out.step, text_of(out.digest), bool(out.already), bool(out.anchor_due),
                     out.checkpoint_bytes, out.delta_bytes, out.anchor_bytes, out.elements,
                     out.changed_elements, out.diff_ms / 1000, out.upload_ms / 1000)


def _step_of(manifest: dict[str, Any]) -> StepInfo:
    return StepInfo(manifest['step'], manifest.get('label') or '', manifest.get('digest') or '',
                    _time_of(manifest.get('created')), dict(manifest.get('metadata') or {}),
                    manifest.get('verified') or '', bool(manifest.get('collected')), manifest)


def _replica_of(answer: dict[str, Any]) -> Replica:
    staleness = answer.get('staleness') or {}
    return Replica(answer['id'], answer.get('host') or '', answer['state'], answer.get('step'),
                   staleness.get('steps'), answer.get('error') or '',
                   _time_of(answer.get('updated')), bool(answer.get('expired')),
                   answer['pause_ms'] / 1000 if 'pause_ms' in answer else None)


def _time_of(text: str | None) -> datetime | None:
    if not text:
        return None
    return datetime.strptime(text, '%Y-%m-%dT%H:%M:%S.%fZ').replace(tzinfo=timezone.utc)
