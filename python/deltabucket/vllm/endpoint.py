"""The endpoint plug-in of vLLM: it follows a run and brings each step to the engine.

    GET /deltabucket    what it does, as JSON
    GET /health         as vLLM's own, and 503 while the parameters must not be used

It runs in the process of the API server, and calls the engine as vLLM's own routes do: a step is
laid out by all workers while they serve; then pause, start, update, finish, resume.
"""
from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from vllm.distributed.weight_transfer.base import (WeightTransferInitRequest,
                                                   WeightTransferUpdateRequest)
from vllm.entrypoints.serve.instrumentator.health import health

from deltabucket import errors
from deltabucket.follower import Follower, Step
from deltabucket.run import Run

POLL_SECONDS = 0.02  # between two looks at what the workers tell
WORKER_SECONDS = 600.0  # for laying a step out
RETRY_SECONDS = 5.0  # after a step that the engine did not take
MODES = ('keep', 'wait', 'abort')
log = logging.getLogger('deltabucket')


class Endpoint:
    """vllm.plugins.endpoint_plugins.interface.EndpointPlugin."""

    name = 'deltabucket'
    required_tasks = ('generate',)

    def __init__(self) -> None:
        self._driver: Driver | None = None
        self._task: asyncio.Task[None] | None = None

    def attach_router(self, app: FastAPI) -> None:
        app.add_api_route('/deltabucket', self._tell, methods=['GET'])
        app.add_api_route('/health', self._health, methods=['GET'], response_class=Response)

    async def init_state(self, engine_client: Any, state: Any, args: Any) -> None:
        """Begins to follow DELTABUCKET_RUN into the folder DELTABUCKET_INTO. Without them it does
        nothing: somebody else calls the routes. ValueError for a setting that makes no sense."""
        run, into = os.environ.get('DELTABUCKET_RUN', ''), os.environ.get('DELTABUCKET_INTO', '')
        if engine_client is None or not run or not into:
            return
        self._driver = Driver(engine_client, Run(run), into)
        self._task = asyncio.create_task(self._driver.run())

    async def _tell(self) -> JSONResponse:
        return JSONResponse(self._driver.told() if self._driver else {'state': 'off'})

    async def _health(self, raw_request: Request) -> Response:
        if self._driver is not None and self._driver.is_spoiled:
            return Response(self._driver.sentence, 503)
        answer: Response = await health(raw_request)
        return answer


class Driver:
    """Brings the steps of a run to one engine. Everything happens in one task."""

    def __init__(self, engine: Any, run: Run, into: str) -> None:
        """engine: vLLM's EngineClient. into: the folder with the steps, that all workers read."""
        self.sentence = ''
        self.is_spoiled = False
        self._engine = engine
        self._state = f'{into.rstrip("/")}.engine'
        self._workers = engine.vllm_config.parallel_config.world_size_across_dp
        self._mode = os.environ.get('DELTABUCKET_PAUSE', 'keep')
        if self._mode not in MODES:
            raise ValueError(f'DELTABUCKET_PAUSE is {self._mode!r}; it must be one of '
                             f'{", ".join(MODES)}.')
        lag = os.environ.get('DELTABUCKET_MAX_LAG')
        self._steps: Follower = run.follow(into, max_lag=int(lag) if lag else None)
        self._step = -1  # that the engine holds, as far as is known
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
        self._forget_workers()
        async with self._steps:
            while True:
                try:
                    step = await self._steps.next_async(None if not self.sentence else RETRY_SECONDS)
                    await self._take(step or self._steps.step)
                except Exception as failure:
                    log.exception('A step was not taken.')
                    self._report('error', str(failure))
                    await asyncio.sleep(RETRY_SECONDS)

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
            init_info={'step': step.number, 'path': step.path, 'state': self._state}))
        limit = time.monotonic() + WORKER_SECONDS
        while True:
            told = self._workers_told()
            if len(told) == self._workers and all(
                    step.number in (one['staged'], one['step']) for one in told):
                return
            failed = next((one['sentence'] for one in told if one['state'] == 'error'), None)
            if failed is not None or time.monotonic() > limit:
                raise errors.NotReady(failed or f'Step {step.number} was not laid out within '
                                      f'{WORKER_SECONDS:g} seconds.', kind='not_ready')
            await asyncio.sleep(POLL_SECONDS)

    async def _update(self, step: Step) -> None:
        try:
            await self._engine.start_weight_update()
        except Exception:
            # A session that somebody else left open.
            with contextlib.suppress(Exception):
                await self._engine.finish_weight_update()
            await self._engine.start_weight_update()
        await self._engine.update_weights(WeightTransferUpdateRequest({'step': step.number}))
        await self._engine.finish_weight_update(str(step.number))

    async def _go_on(self) -> None:
        """Ends the pause when all workers hold one proven step; cached prefixes of another one are
        forgotten."""
        told = self._workers_told()
        held = {one['step'] for one in told}
        self.is_spoiled = len(held) != 1 or any(one['state'] == 'spoiled' for one in told)
        if not self.is_spoiled:
            await self._engine.reset_prefix_cache(reset_running_requests=True)
            await self._engine.resume_generation()

    def _report(self, state: Any, sentence: str, pause: float | None = None) -> None:
        self.sentence = sentence
        with contextlib.suppress(errors.Error):
            self._steps.report(state, sentence, pause)

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
