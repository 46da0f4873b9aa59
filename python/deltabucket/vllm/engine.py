"""The weight transfer backend of vLLM: one of these in each worker, for its part of the model.

    /init_weight_transfer_engine   lay a step out, in the background, while the model serves
    /start_weight_update           nothing
    /update_weights                bring the parameters to the step, in every worker or in none
    /finish_weight_update          nothing

A worker holds one step, which was proven when the model was loaded and is bound to the folder that
it was loaded from. It writes what it does to a file in the folder that `/init_...` names, as vLLM
gives no answers of workers back:

    proving --> ready <--> staging          ready: it serves `step`, and `staged` lies ready
       |          |
       v          v
     error     spoiled                      neither step could be proven; the next step that is
                                            laid out is a copy of the whole, which repairs it
"""
from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from vllm.distributed.parallel_state import get_world_group
from vllm.distributed.weight_transfer.base import (WeightTransferEngine, WeightTransferInitInfo,
                                                   WeightTransferUpdateInfo)

from deltabucket import errors
from deltabucket.vllm.change import Change, Copy, Generation, Move, change, holds
from deltabucket.vllm.layout import Slice, slices_of

log = logging.getLogger('deltabucket')
GENERATION = re.compile(r'.*/generations/(\d+)')


@dataclass
class Staging(WeightTransferInitInfo):  # type: ignore[misc]
    """What /init_weight_transfer_engine gets. step: its number. path: its folder. state: the folder
    for what workers tell."""
    step: int
    path: str
    state: str


@dataclass
class Wanted(WeightTransferUpdateInfo):  # type: ignore[misc]
    """What /update_weights gets. step: the number of one that was laid out, or of the one before.
    call: 0, or a number that the worker tells when the call has ended; then it raises nothing."""
    step: int
    call: int = 0


@dataclass
class Told:
    """What a worker tells. step: that it holds, -1 when it is not known. staged: that lies ready,
    -1 for none. changed: elements of this rank that the last step changed. seconds: that it took.
    sentence: why state is error or spoiled, or why the last step was not taken. call: of the last
    /update_weights that has ended here (Wanted)."""
    step: int = -1
    staged: int = -1
    state: Literal['proving', 'ready', 'staging', 'error', 'spoiled'] = 'proving'
    changed: int = 0
    seconds: float = 0.0
    sentence: str = ''
    call: int = 0


@dataclass(frozen=True)
class _Staged:
    """A move from one step to another. base: None for a copy of the whole."""
    base: Generation | None
    step: Generation
    move: Move


class StepEngine(WeightTransferEngine[Staging, Wanted]):  # type: ignore[misc]
    """See above. vLLM calls it in one thread; one of its own lays steps out."""

    init_info_cls = Staging
    update_info_cls = Wanted
    supports_draft_weight_update = False

    def __init__(self, config: Any, vllm_config: Any, device: Any, model: Any) -> None:
        super().__init__(config, vllm_config, device, model)
        self.told = Told()
        self._held = _loaded_from(self.model_config.model)
        self._slices: list[Slice] | None = None  # None until the parameters are proven
        self._moves: list[_Staged] = []  # to the step laid out, and back to the one before
        self._state = ''
        self._thread: threading.Thread | None = None

    def init_transfer_engine(self, init_info: Staging) -> None:
        """Begins to lay a step out. Unsupported for a model whose parameters are not parts of the
        checkpoint. A step that is laid out already, or held, is not laid out again."""
        self._wait()
        self._state = init_info.state
        if self.told.step == init_info.step or self.told.staged == init_info.step:
            self._tell()
            return
        self._tell(state='proving' if self._slices is None else
                   'spoiled' if self.told.state == 'spoiled' else 'staging', staged=-1, sentence='')
        self._thread = threading.Thread(target=self._stage, args=(init_info,), daemon=True)
        self._thread.start()

    def start_weight_update(self) -> None:
        """Does nothing: parameters are changed in place."""

    def finish_weight_update(self) -> None:
        """Does nothing: a step is proven when /update_weights has ended."""

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """As the base class, whose wait for the device fails where there is none. With `call`, what
        fails is told only: vLLM's executor mixes up the answers of workers after one has raised."""
        wanted = self.parse_update_info(update_info)
        try:
            self.receive_weights(wanted)
            if self.device.type != 'cpu':
                torch.accelerator.synchronize()
        except Exception:
            if not wanted.call:
                raise
            log.exception('Step %d was not taken.', wanted.step)
        finally:
            self._tell(call=wanted.call)

    def receive_weights(self, update_info: Wanted) -> None:
        """Brings the parameters to the step, when all workers can.

        NotReady, WrongBase or DigestMismatch: no worker has changed anything, or all have taken it
        back, and the step before is proven. Spoiled: the parameters must not be used.
        """
        begun = time.perf_counter()
        staged = self._agree(lambda: self._find(update_info.step))
        self._agree(lambda: self._check(staged))
        try:
            self._agree(lambda: self._apply(staged))
        except Exception as failure:
            self._take_back(staged, failure)
            raise
        self._hold(staged)
        self._tell(step=staged.step.number, staged=-1, state='ready', sentence='',
                   changed=staged.move.count, seconds=time.perf_counter() - begun)

    def shutdown(self) -> None:
        """Waits for what is being laid out."""
        self._wait()

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    # In the thread that lays steps out.

    def _stage(self, wanted: Staging) -> None:
        try:
            step = Generation(wanted.step, wanted.path)
            if self._slices is None:
                self._slices = self._proven(step)
            spoiled = self.told.state == 'spoiled'
            move: Move = Copy(self._slices, step) if spoiled else \
                change(self._slices, self._base(), step)
            back = [] if spoiled else [one for one in self._moves if one.base is self._held
                                       and one.step.number < self._base().number]
            self._moves = [_Staged(None if spoiled else self._held, step, move), *back]
            self._tell(staged=wanted.step, step=-1 if spoiled else self._base().number,
                       state='spoiled' if spoiled else 'ready')
        except Exception as failure:
            self._tell(sentence=str(failure), state='error' if self.told.state != 'spoiled' else
                       'spoiled')

    def _proven(self, step: Generation) -> list[Slice]:
        """Where what lies, once the parameters are proven to be those of the folder that the model
        was loaded from."""
        held = self._base()
        slices = slices_of(self.model, held.tensors)
        if not holds(slices, held):
            raise errors.WrongBase(
                f'The parameters are not those of step {held.number}, from whose folder the model '
                'was loaded: vLLM keeps them in another layout, or something has changed them. Such '
                'a model is updated by reload_weights (contrib/engines/vllm).', kind='wrong_base')
        return slices

    def _base(self) -> Generation:
        if self._held is None:
            raise errors.WrongBase(
                f'The model was loaded from {self.model_config.model}, which is not a step of a '
                "follower's folder; start vLLM with DIR/current.", kind='wrong_base')
        return self._held

    # While the engine is paused.

    def _find(self, number: int) -> _Staged:
        self._wait()
        if self._held is not None and self.told.step == number:
            return _Staged(self._held, self._held, Change([]))
        for one in self._moves:
            if one.step.number == number and (one.base is self._held or one.base is None):
                return one
        raise errors.NotReady(f'Step {number} is not laid out here. {self.told.sentence}'.rstrip(),
                              kind='not_ready')

    def _check(self, staged: _Staged) -> None:
        if not staged.move.is_base():
            raise errors.WrongBase('The parameters are not those of step '
                                   f'{self.told.step}: something else has changed them.',
                                   kind='wrong_base')

    def _apply(self, staged: _Staged) -> None:
        if not staged.move.apply():
            raise errors.DigestMismatch(f'Step {staged.step.number} was written and is not there.',
                                        kind='digest_mismatch')

    def _hold(self, staged: _Staged) -> None:
        if staged.step is not self._held:
            move = staged.move
            self._moves = [_Staged(staged.step, staged.base, move.reversed())] \
                if isinstance(move, Change) and staged.base is not None else []
            self._held = staged.step

    def _take_back(self, staged: _Staged, failure: Exception) -> None:
        """Spoiled unless all workers hold the step before again."""
        try:
            self._agree(lambda: self._undo(staged))
        except Exception as second:
            self._held, self._moves = None, []
            self._tell(step=-1, staged=-1, state='spoiled', sentence=(
                f'{failure} It could not be taken back: the parameters must not be used.'))
            raise errors.Spoiled(self.told.sentence, kind='spoiled') from second
        self._moves = []
        self._tell(staged=-1, sentence=str(failure))

    def _undo(self, staged: _Staged) -> None:
        if not staged.move.undo():
            raise errors.Spoiled(f'Step {staged.step.number} could not be taken back.',
                                 kind='spoiled')

    def _agree(self, act: Callable[[], Any]) -> Any:
        """What `act` gives, when it has not failed in any worker of the model. NotReady where it has
        failed in another one."""
        failed: Exception | None = None
        made = None
        try:
            made = act()
        except Exception as failure:
            failed = failure
        if not _all_fine(failed is None):
            if failed is not None:
                self._tell(sentence=str(failed))
                raise failed
            raise errors.NotReady('Another worker of this model cannot take the step.',
                                  kind='not_ready')
        return made

    def _tell(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self.told, name, value)
        if not self._state:
            return
        parallel = self.parallel_config
        rank = parallel.data_parallel_index * parallel.world_size + parallel.rank
        os.makedirs(self._state, exist_ok=True)
        path = os.path.join(self._state, f'{rank}.json')
        with open(f'{path}.part', 'w') as file:
            json.dump(vars(self.told), file)
        os.replace(f'{path}.part', path)


def _loaded_from(model: str) -> Generation | None:
    """The step in a follower's folder that the model was loaded from just now."""
    path = os.path.realpath(model)
    found = GENERATION.fullmatch(path)
    return Generation(int(found.group(1)), path) if found else None


def _all_fine(is_fine: bool) -> bool:
    """Whether it is fine in all workers of the model; each must call it."""
    group = get_world_group()
    if group.world_size == 1:
        return is_fine
    verdict = torch.tensor([int(is_fine)])
    torch.distributed.all_reduce(verdict, torch.distributed.ReduceOp.MIN, group=group.cpu_group)
    return bool(verdict.item())
