"""Steps in vLLM (0.33): a weight transfer backend, `--weight-transfer-config
'{"backend":"deltabucket"}'`, and an endpoint plug-in that brings each step of a run to it.

vLLM imports this by the package's entry points. Nothing here is for programs.
"""
from __future__ import annotations

import functools
from typing import Any

BACKEND = 'deltabucket'


@functools.cache
def register() -> None:
    """Makes the backend known to vLLM, once in each of its processes: the entry point of
    `vllm.general_plugins`."""
    from vllm.distributed.weight_transfer import WeightTransferEngineFactory
    WeightTransferEngineFactory.register_engine(BACKEND, 'deltabucket.vllm.engine', 'StepEngine')


def endpoint_plugin() -> Any:
    """The plug-in of `vllm.endpoint_plugins`."""
    from deltabucket.vllm.endpoint import Endpoint
    return Endpoint()
