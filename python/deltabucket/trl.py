"""Weight transfer of TRL's AsyncGRPOTrainer (WeightTransferProtocol of TRL 1.16) over a run:

    trainer = AsyncGRPOTrainer(..., weight_transfer=deltabucket.trl.WeightTransfer(run, workers=1))
"""
from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch

from deltabucket import errors
from deltabucket.run import Published, Replica, Run

POLL_SECONDS = 0.1  # between two looks at the fleet


class WeightTransfer:
    """Each sync of the trainer becomes a step of the run, and the trainer goes on when `workers` of
    the run's fleet serve it. The engines bring steps by themselves, as followers of the run, and
    serve while a step is fetched: only they know when they must be paused, so `pause` does nothing.

    The trainer calls it in its main process alone. What it gives is what TRL sends to vLLM: the
    parameters that train, with a LoRA adapter merged into them, and tied weights under one name.

    published: the step of the last sync, None before the first one.
    """

    def __init__(self, run: Run, *, workers: int = 0, timeout: float = 1800.0,
                 dtype: torch.dtype | None = None, **options: Any) -> None:
        """workers: how many replicas must be 'ready' with a step, or a newer one, before the
        trainer goes on; while the run's fleet is rolled back (`deltabucket fleet rollback`), with
        the step of that. 0: it does not wait, and the first samples under a new version may be of
        weights before it.
        timeout: seconds that a sync waits for them.
        dtype: floating-point tensors are published in it. Name what the engines serve in: a trainer
        in float32 changes nearly all bits of all weights in each step, while few of them change in
        bfloat16. None: as they are.
        options: as for `Run.publish`.
        """
        if workers < 0:
            raise ValueError(f'workers is {workers}; it must be 0 or more.')
        self.published: Published | None = None
        self._run = run
        self._workers = workers
        self._timeout = timeout
        self._dtype = dtype
        self._options = options

    def init_weight_transfer(self) -> None:
        """Does nothing: the sync that follows opens the run, and no connection to an engine is
        needed."""

    def pause(self) -> None:
        """Does nothing: engines serve until their own follower has the step."""

    def send_weights(self, iterator: Iterator[tuple[str, torch.Tensor]]) -> None:
        """Publishes all that the iterator gives as one step. Tensors in CPU memory are read where
        they lie; others are copied there one by one. Raises what `Run.publish` does; the run is
        then as before."""
        tensors = {name: self._taken(tensor) for name, tensor in iterator}
        self.published = self._run.publish(tensors, **self._options)

    def resume(self) -> None:
        """Waits until `workers` replicas serve the step. NotReady, with what the others do, when
        the time is over."""
        if self.published is None or self._workers == 0:
            return
        limit = time.monotonic() + self._timeout
        while True:
            fleet = [one for one in self._run.fleet() if not one.expired]
            late = [one for one in fleet if not _serves(one, self.published.step)]
            if len(fleet) - len(late) >= self._workers:
                return
            if time.monotonic() >= limit:
                raise self._not_ready(self.published.step, len(fleet) - len(late), late)
            time.sleep(POLL_SECONDS)

    def destroy(self) -> None:
        """Does nothing: the run stays open for the program that made it, and further syncs may
        come."""

    def _taken(self, tensor: torch.Tensor) -> torch.Tensor:
        is_cast = self._dtype is not None and tensor.is_floating_point()
        return tensor.detach().to(device='cpu', dtype=self._dtype if is_cast else tensor.dtype)

    def _not_ready(self, step: int, ready: int, late: list[Replica]) -> errors.NotReady:
        told = ''.join(f' {one.id} is at {"no step" if one.step is None else f"step {one.step}"}, '
                       f'{one.state}{": " + one.error if one.error else "."}' for one in late)
        return errors.NotReady(
            f'{ready} workers of {self._run.name} serve step {step} after {self._timeout:g} '
            f'seconds, {self._workers} must.{told}', kind='not_ready')


def _serves(replica: Replica, step: int) -> bool:
    """Also where a rollback holds it: then it lags by nothing."""
    return replica.state == 'ready' and replica.step is not None and \
        (replica.step >= step or replica.lag == 0)
