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

import contextlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from vllm.distributed.parallel_state import get_world_group
from vllm.distributed.weight_transfer.base import (WeightTransferEngine, WeightTransferInitInfo,
                                                   WeightTransferUpdateInfo)

from deltabucket import errors
from deltabucket.gpu import Machine
from deltabucket.vllm.change import Change, Generation, Move, holds
from deltabucket.vllm.layout import Slice, slices_of
from deltabucket.vllm.moves import Moves, cuda_of
from deltabucket.vllm.shadow import Shadow, is_needed

log = logging.getLogger('deltabucket')
# The second number is of a step that the follower had to make again.
GENERATION = re.compile(r'.*/generations/(\d+)(?:\.\d+)?')


@dataclass
class Staging(WeightTransferInitInfo):  # type: ignore[misc]
    """What /init_weight_transfer_engine gets. step: its number. path: its folder. state: the folder
    for what workers tell. deltas: paths of those that lead to it from another step; they must stay
    until the step is laid out."""
    step: int
    path: str
    state: str
    deltas: list[str] = field(default_factory=list)


@dataclass
class Wanted(WeightTransferUpdateInfo):  # type: ignore[misc]
    """What /update_weights gets. step: the number of one that was laid out, or of the one before.
    call: 0, or a number that the worker tells when the call has ended; then it raises nothing."""
    step: int
    call: int = 0


@dataclass
class Told:
    """What a worker tells. step: that it holds, -1 when it is not known. staged: that lies ready,
    -1 for none. changed: elements of this rank that the last step changed, but in blocks that
    crossed whole. by_delta, by_pairs, decoded_bytes: how that step came (change.Share). seconds:
    that it took. sentence: why state is error or spoiled, or why the last step was not taken.
    no_deltas: why all goes by pairs, '' where deltas are applied. draft: what becomes of the draft
    model, '' where there is none. call: of the last /update_weights that has ended here (Wanted)."""
    step: int = -1
    staged: int = -1
    state: Literal['proving', 'ready', 'staging', 'error', 'spoiled'] = 'proving'
    changed: int = 0
    by_delta: int = 0
    by_pairs: int = 0
    decoded_bytes: int = 0
    seconds: float = 0.0
    sentence: str = ''
    no_deltas: str = ''
    draft: str = ''
    call: int = 0


@dataclass(frozen=True)
class _Staged:
    """A move from one step to another. base: None for a copy of the whole."""
    base: Generation | None
    step: Generation
    move: Move


class _Model:
    """A live model, and its shadow where vLLM makes tensors of it after loading."""

    def __init__(self, model: Any, config: Any, model_config: Any, device: Any,
                 lender: Any = None) -> None:
        """Called where the model was loaded; what fails is raised by `parts`. lender: a model some of
        whose modules this one has, which are left to that."""
        self.shadow: Shadow | None = None
        self._model = model
        lent = list(lender.modules()) if lender is not None else []
        self._lent = {one.untyped_storage().data_ptr() for module in lent
                      for one in module._parameters.values() if one is not None}
        self._failure: Exception | None = None
        try:
            if is_needed(model):
                self.shadow = Shadow(model, config, model_config, device,
                                     frozenset(id(module) for module in lent))
        except Exception as failure:
            self._failure = failure

    def parts(self, held: Generation) -> tuple[list[Slice], list[Shadow]]:
        """Where what lies, and what makes the rest. The rest is proven to be of the step."""
        if self._failure is not None:
            raise self._failure
        if self.shadow is not None:
            return self.shadow.proven(held), [self.shadow]
        return [one for one in slices_of(self._model, held.tensors)
                if one.storage.data_ptr() not in self._lent], []

    def proven_parts(self, held: Generation) -> tuple[list[Slice], list[Shadow]]:
        """The same, once all parameters are proven to be those of the step."""
        slices, shadows = self.parts(held)
        if not holds(slices, held):
            raise _not_loaded_so(held)
        return slices, shadows


class StepEngine(WeightTransferEngine[Staging, Wanted]):  # type: ignore[misc]
    """See above. vLLM calls it in one thread; one of its own lays steps out."""

    init_info_cls = Staging
    update_info_cls = Wanted
    supports_draft_weight_update = True
    machine_of: Callable[[Any], Machine] = staticmethod(cuda_of)

    def __init__(self, config: Any, vllm_config: Any, device: Any, model: Any) -> None:
        super().__init__(config, vllm_config, device, model)
        self.told = Told()
        self._held = _loaded_from(self.model_config.model)
        self._layout: Moves | None = None  # None until the parameters are proven
        self._models = [_Model(model, self.vllm_config, self.model_config, self.device)] \
            if self._held is not None else []
        speculative = self.vllm_config.speculative_config
        if speculative is not None and speculative.draft_model_config is not None:
            self.told.draft = 'It stays as it was loaded.'
        self._moves: list[_Staged] = []  # to the step laid out, and back to the one before
        self._distrusted = -1  # the step whose deltas have failed: it is brought by pairs
        self._state = ''
        self._thread: threading.Thread | None = None
        self._stream: Any = None  # of that thread, on the device

    def init_transfer_engine(self, init_info: Staging) -> None:
        """Begins to lay a step out. Unsupported for a model whose parameters are not parts of the
        checkpoint. A step that is laid out already, or held, is not laid out again."""
        self._wait()
        self._state = init_info.state
        if self.told.step == init_info.step or self.told.staged == init_info.step:
            self._tell()
            return
        self._tell(state='proving' if self._layout is None else
                   'spoiled' if self.told.state == 'spoiled' else 'staging', staged=-1, sentence='')
        self._thread = threading.Thread(target=self._stage, args=(init_info,), daemon=True)
        self._thread.start()

    def set_weight_update_target(self, model: Any, model_config: Any) -> None:
        """In a draft's session, which vLLM begins with this: so the worker learns of the draft. Only
        before the first step is laid out, and only of one with the same checkpoint."""
        super().set_weight_update_target(model, model_config)
        if self._layout is not None or self._thread is not None or len(self._models) != 1:
            return
        if os.path.realpath(model_config.model) != os.path.realpath(self.vllm_config.model_config.model):
            self.told.draft = 'It has a checkpoint of its own and stays as it was loaded.'
            return
        self._models.append(_Model(model, self.vllm_config, model_config, self.device,
                                   self._default_model))

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
        try:
            self._bring(staged)
        finally:
            staged.move.release()
        self._tell(step=staged.step.number, staged=-1, state='ready', sentence='',
                   changed=staged.move.count, seconds=time.perf_counter() - begun,
                   **vars(staged.move.share))

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
            deltas = wanted.deltas if wanted.step != self._distrusted else []
            step = Generation(wanted.step, wanted.path, deltas)
            with self._aside():
                self._lay_out(step)
        except Exception as failure:
            if not isinstance(failure, errors.WrongBase):  # pairs would not prove the base
                self._distrusted = wanted.step
            self._tell(sentence=str(failure), state='error' if self.told.state != 'spoiled' else
                       'spoiled')

    def _lay_out(self, step: Generation) -> None:
        if self._layout is None:
            self._layout = self._proven()
        if self.told.state == 'spoiled':
            self._moves = [_Staged(None, step, self._layout.copy(step))]
            self._tell(staged=step.number, step=-1)
            return
        move = self._layout.between(self._base(), step)
        back = [one for one in self._moves if one.base is self._held
                and one.step.number < self._base().number]
        self._moves = [_Staged(self._held, step, move), *back]
        self._tell(staged=step.number, step=self._base().number, state='ready')

    def _aside(self) -> Any:
        """A context in which work of the device does not wait for the model's, nor holds it up."""
        if self.device.type != 'cuda':
            return contextlib.nullcontext()
        if self._stream is None:
            self._stream = torch.cuda.Stream(self.device)
        return torch.cuda.stream(self._stream)

    def _proven(self) -> Moves:
        """How steps come, once the parameters are proven to be those of the folder that the model
        was loaded from."""
        held = self._base()
        slices, shadows = self._models[0].parts(held)
        for draft in self._models[1:]:
            try:
                more, beside = draft.proven_parts(held)
            except Exception as failure:
                self.told.draft = f'It stays as it was loaded: {failure}'
                continue
            slices += more
            shadows += beside
            self.told.draft = 'It is brought to each step with the model.'
        layout = Moves(slices, held.tensors, self._machine(), shadows)
        if not layout.holds(held):
            raise _not_loaded_so(held)
        return layout

    def _machine(self) -> Machine | None:
        try:
            return self.machine_of(self.device)
        except errors.Unsupported as failure:
            self.told.no_deltas = str(failure)
            return None

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

    def _bring(self, staged: _Staged) -> None:
        self._agree(lambda: self._check(staged))
        try:
            self._agree(lambda: self._apply(staged))
        except Exception as failure:
            self._take_back(staged, failure)
            raise
        self._hold(staged)

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
        self._distrusted = -1
        if staged.step is self._held:
            return
        back = staged.move.reversed()
        self._moves = [_Staged(staged.step, staged.base, back)] \
            if back is not None and staged.base is not None else []
        self._held = staged.step

    def _take_back(self, staged: _Staged, failure: Exception) -> None:
        """Spoiled unless all workers hold the step before again."""
        self._distrusted = staged.step.number
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
        path = os.path.join(self._state, f'{rank}.json')
        try:  # one worker that raised here would leave the others; the endpoint sees what is missing
            os.makedirs(self._state, exist_ok=True)
            with open(f'{path}.part', 'w') as file:
                json.dump(vars(self.told), file)
            os.replace(f'{path}.part', path)
        except OSError:
            log.exception('%s cannot be written.', path)


def _not_loaded_so(held: Generation) -> errors.WrongBase:
    return errors.WrongBase(
        f'The parameters are not those of step {held.number}, from whose folder the model was '
        'loaded: vLLM keeps them in another layout, or something has changed them. Such a model is '
        'updated by reload_weights (contrib/engines/vllm).', kind='wrong_base')


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
