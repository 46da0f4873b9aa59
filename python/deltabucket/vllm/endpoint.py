"""The endpoint plug-in of vLLM: it follows a run and brings each step to the engine.

    GET /deltabucket    what it does, as JSON
    GET /health         as vLLM's own, and 503 while the parameters must not be used

It runs in the process of the API server, the first one where there are several, and calls the
engine as vLLM's own routes do: a step is laid out by all workers while they serve; then pause,
start, update, finish, resume. Other API servers answer with what the first one has written down.

A call goes to all data-parallel engines of this vLLM. The workers of one engine, and all workers of
a mixture of experts, agree on a step among themselves; engines of a dense model know nothing of one
another, so that this brings those back that have taken a step which another one has not.
"""
from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from vllm.distributed.weight_transfer.base import (WeightTransferInitRequest,
                                                   WeightTransferUpdateRequest)
from vllm.entrypoints.serve.instrumentator.health import health

from deltabucket import errors
from deltabucket.follower import LAG_TRIES, Follower, Step
from deltabucket.run import Run

POLL_SECONDS = 0.02  # between two looks at what the workers tell
UPDATE_POLL_SECONDS = 0.001  # while the engine is paused
ANSWER_SECONDS = 10.0  # for what workers tell of an update that has ended already
WORKER_SECONDS = 600.0  # for laying a step out
RETRY_SECONDS = 5.0  # after a step that the engine did not take
MODES = ('keep', 'wait', 'abort')
TOLD = 'endpoint'  # the file for other API servers, beside those of the workers
log = logging.getLogger('deltabucket')


class Endpoint:
    """vllm.plugins.endpoint_plugins.interface.EndpointPlugin."""

    name = 'deltabucket'
    required_tasks = ('generate',)

    def __init__(self) -> None:
        self._driver: Driver | None = None
        self._task: asyncio.Task[None] | None = None
        self._state = ''

    def attach_router(self, app: FastAPI) -> None:
        app.add_api_route('/deltabucket', self._tell, methods=['GET'])
        app.add_api_route('/health', self._health, methods=['GET'], response_class=Response)

    async def init_state(self, engine_client: Any, state: Any, args: Any) -> None:
        """Begins to follow DELTABUCKET_RUN into the folder DELTABUCKET_INTO. Without them it does
        nothing: somebody else calls the routes. ValueError for a setting that makes no sense."""
        run, into = os.environ.get('DELTABUCKET_RUN', ''), os.environ.get('DELTABUCKET_INTO', '')
        if engine_client is None or not run or not into:
            return
        self._state = _state_of(into)
        if engine_client.vllm_config.parallel_config._api_process_rank > 0:
            return
        self._driver = Driver(engine_client, Run(run), into)
        self._task = asyncio.create_task(self._driver.run())

    async def _tell(self) -> JSONResponse:
        return JSONResponse(self._told())

    async def _health(self, raw_request: Request) -> Response:
        told = self._told()
        if told['state'] == 'spoiled':
            return Response(told['sentence'], 503)
        answer: Response = await health(raw_request)
        return answer

    def _told(self) -> dict[str, Any]:
        if self._driver is not None:
            return self._driver.told()
        with contextlib.suppress(OSError), open(os.path.join(self._state, TOLD)) as file:
            told: dict[str, Any] = json.load(file)
            return told
        return {'state': 'following' if self._state else 'off'}


class Driver:
    """Brings the steps of a run to one engine. Everything happens in one task."""

    def __init__(self, engine: Any, run: Run, into: str) -> None:
        """engine: vLLM's EngineClient. into: the folder with the steps, that all workers read."""
        self.sentence = ''
        self.is_spoiled = False
        self._engine = engine
        self._state = _state_of(into)
        self._workers = engine.vllm_config.parallel_config.world_size_across_dp
        if engine.vllm_config.parallel_config.local_engines_only:
            raise ValueError('DELTABUCKET_RUN is set, and this API server has only some of the data-'
                             'parallel engines (external or hybrid load balancing): they would not '
                             'take the same steps. Balance inside vLLM, or start each engine as a '
                             'vLLM of its own.')
        self._mode = os.environ.get('DELTABUCKET_PAUSE', 'keep')
        if self._mode not in MODES:
            raise ValueError(f'DELTABUCKET_PAUSE is {self._mode!r}; it must be one of '
                             f'{", ".join(MODES)}.')
        lag = os.environ.get('DELTABUCKET_MAX_LAG')
        self._steps: Follower = run.follow(into, max_lag=int(lag) if lag else None)
        self._step = -1  # that the engine holds, as far as is known
        self._calls = 0  # of /update_weights
        self._pause_seconds = 0.0

    def told(self) -> dict[str, Any]:
        """Step, state ('following', 'error' or 'spoiled'), sentence, and the seconds of the last
        pause."""
        state = 'spoiled' if self.is_spoiled else 'error' if self.sentence else 'following'
        return {'step': self._step, 'state': state, 'sentence': self.sentence,
                'pause_seconds': self._pause_seconds, 'workers': self._workers_told()}

    async def run(self) -> None:
        """Never ends by itself. In a rollback the follower gives an earlier step, which is brought
        like any other. An engine that somebody left paused goes on, unless it is spoiled."""
        has_begun = False
        try:
            while True:
                try:
                    if not has_begun:
                        self._forget_workers()
                        await self._show_draft()
                        has_begun = True
                    await self._take(await self._next())
                except Exception as failure:
                    log.exception('A step was not taken.')
                    self._report('error', str(failure))
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._steps.close()

    async def _next(self) -> Step | None:
        """The newest step; after a failure also the same one again. TooFarBehind when it was overtaken
        by more than DELTABUCKET_MAX_LAG, and the next ones, too; a spoiled engine takes any."""
        for _ in range(LAG_TRIES):
            step = await self._steps.next_async(RETRY_SECONDS if self.sentence else None)
            step = step or self._steps.step
            limit = self._steps.max_lag
            if step is None or limit is None or self.is_spoiled or step.lag <= limit:
                return step
            failure = (f'Step {step.number} came when the run was {step.lag} steps ahead, more than '
                       f'DELTABUCKET_MAX_LAG={limit} allows: the engine keeps the step that it has.')
        raise errors.TooFarBehind(failure, kind='too_far_behind')

    async def _show_draft(self) -> None:
        """Workers learn of a draft model by a session for it, in which nothing is updated."""
        speculative = self._engine.vllm_config.speculative_config
        if speculative is None or speculative.draft_model_config is None:
            return
        try:
            await self._engine.start_draft_weight_update()
            await self._engine.finish_weight_update()
        except Exception:
            log.exception('The draft model stays as it was loaded.')

    async def _take(self, step: Step | None) -> None:
        """Brings the engine to the step, or leaves it at the one before."""
        if step is None:
            return
        await self._stage(step)
        begun = time.perf_counter()
        try:
            await self._engine.pause_generation(mode=self._mode, clear_cache=True)
            await self._update(step)
        finally:
            await self._go_on()
        self._pause_seconds = time.perf_counter() - begun
        self._step = step.number
        self._report('ready', '', self._pause_seconds)
        log.info('Step %d: paused for %.0f ms.', step.number, self._pause_seconds * 1000)

    async def _stage(self, step: Step) -> None:
        """NotReady, with the sentence of a worker, where one cannot lay the step out."""
        await self._engine.init_weight_transfer_engine(WeightTransferInitRequest(
            init_info={'step': step.number, 'path': step.path, 'state': self._state,
                       'deltas': step.deltas()}))
        limit = time.monotonic() + WORKER_SECONDS
        while True:
            told = self._workers_told()
            if len(told) == self._workers and all(
                    step.number in (one['staged'], one['step']) for one in told):
                return
            failed = next((one['sentence'] for one in told
                           if one['sentence'] and one['state'] in ('error', 'spoiled')), None)
            if failed is not None or time.monotonic() > limit:
                raise errors.NotReady(failed or f'Step {step.number} was not laid out within '
                                      f'{WORKER_SECONDS:g} seconds.', kind='not_ready')
            await asyncio.sleep(POLL_SECONDS)

    async def _update(self, step: Step) -> None:
        """NotReady, with the sentence of a worker, where one has not taken the step; then those of
        other engines that have taken it are brought back."""
        held = self._steps_held()
        await self._start()
        failure = await self._bring(step.number)
        if failure is None:
            await self._engine.finish_weight_update(str(step.number))
            return
        if len(held) == 1 and self._steps_held() != held:
            await self._bring(held.pop())
        await self._engine.finish_weight_update()
        raise errors.NotReady(failure, kind='not_ready')

    async def _start(self) -> None:
        try:
            await self._engine.start_weight_update()
        except Exception:
            # A session that somebody else left open.
            with contextlib.suppress(Exception):
                await self._engine.finish_weight_update()
            await self._engine.start_weight_update()

    async def _bring(self, number: int) -> str | None:
        """Why a worker does not hold the step, None when all do. Workers say it in their files: when
        one has raised, vLLM does not wait for the others, and takes their answers for those to its
        next calls."""
        self._calls += 1
        request = WeightTransferUpdateRequest({'step': number, 'call': self._calls})
        seconds = WORKER_SECONDS
        try:
            await self._engine.update_weights(request)
        except Exception:
            seconds = ANSWER_SECONDS
            log.exception('Step %d: vLLM gave an answer that may be an older one.', number)
        told = await self._await_told(lambda one: one['call'] == self._calls, seconds)
        if told is None:
            return f'Workers did not say within {seconds:g} seconds what became of step {number}.'
        if all(one['step'] == number and one['state'] != 'spoiled' for one in told):
            return None
        return next((one['sentence'] for one in told if one['sentence']),
                    f'A worker has not taken step {number}.')

    async def _await_told(self, wanted: Callable[[dict[str, Any]], bool],
                          seconds: float) -> list[dict[str, Any]] | None:
        """What all workers tell, as soon as each tells what is wanted; None after so long."""
        limit = time.monotonic() + seconds
        while True:
            told = self._workers_told()
            if len(told) == self._workers and all(map(wanted, told)):
                return told
            if time.monotonic() > limit:
                return None
            await asyncio.sleep(UPDATE_POLL_SECONDS)

    async def _go_on(self) -> None:
        """Ends the pause when all workers hold one proven step; cached prefixes of another one are
        forgotten. What a worker holds that has not answered the last call is not known."""
        told = self._workers_told()
        self.is_spoiled = len(told) != self._workers or len({one['step'] for one in told}) != 1 or \
            any(one['state'] == 'spoiled' or self._calls and one['call'] != self._calls
                for one in told)
        self._write()
        if not self.is_spoiled:
            await self._engine.reset_prefix_cache(reset_running_requests=True)
            await self._engine.resume_generation()

    def _report(self, state: Any, sentence: str, pause: float | None = None) -> None:
        self.sentence = sentence
        self._write()
        with contextlib.suppress(errors.Error, ValueError):  # ValueError: it could not be opened yet
            self._steps.report(state, sentence, pause)

    def _write(self) -> None:
        """For other API servers. A full disk keeps no engine paused."""
        path = os.path.join(self._state, TOLD)
        try:
            os.makedirs(self._state, exist_ok=True)
            with open(f'{path}.part', 'w') as file:
                json.dump(self.told(), file)
            os.replace(f'{path}.part', path)
        except OSError:
            log.exception('%s cannot be written.', path)

    def _steps_held(self) -> set[int]:
        return {one['step'] for one in self._workers_told()}

    def _workers_told(self) -> list[dict[str, Any]]:
        made = []
        for name in sorted(os.listdir(self._state)) if os.path.isdir(self._state) else ():
            if name.endswith('.json'):
                with open(os.path.join(self._state, name)) as file:
                    made.append(json.load(file))
        return made

    def _forget_workers(self) -> None:
        """Of an engine before this one."""
        for name in os.listdir(self._state) if os.path.isdir(self._state) else ():
            os.unlink(os.path.join(self._state, name))


def _state_of(into: str) -> str:
    """The folder where workers and the first API server say what they do."""
    return f'{into.rstrip("/")}.engine'
