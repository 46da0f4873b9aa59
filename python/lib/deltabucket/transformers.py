"""Publishing from the Trainer of transformers:

    trainer.add_callback(deltabucket.transformers.PublishCallback(run))
"""
from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from deltabucket.models import publish_model
from deltabucket.run import Run


class PublishCallback(TrainerCallback):  # type: ignore[misc]
    """Publishes the model after every N-th optimizer step, and before the first one.

    The run's step 0 is the model as training begins; its later steps count what was published, and
    their labels are the trainer's steps ('step 20'). A run that has steps goes on.
    """

    def __init__(self, run: Run, every: int = 1, **options: Any) -> None:
        """every: N. options: as for `deltabucket.publish_model`."""
        if every < 1:
            raise ValueError(f'every is {every}; it must be 1 or more.')
        self._run = run
        self._every = every
        self._options = options

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._publish(state, given['model'])

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if state.global_step % self._every == 0:
            self._publish(state, given['model'])

    def _publish(self, state: Any, model: Any) -> None:
        publish_model(model, self._run, label=f'step {state.global_step}',
                      is_writer=bool(state.is_world_process_zero), **self._options)
