"""Publishing the model of a training loop."""
from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping
from typing import Any

from deltabucket.run import Published, Run
from deltabucket.tensors import is_torch


def publish_model(model: Any, run: Run, step: int | None = None, *,
                  leave_out: Iterable[str] = (), is_writer: bool | None = None,
                  **options: Any) -> Published | None:
    """Publishes model.state_dict() with the files config.json and generation_config.json, where the
    model has `config` and `generation_config` as those of transformers are.

    leave_out: shell patterns of names that are not published. is_writer: whether this process
    publishes; None: rank 0 of torch.distributed, or the only process. Where tensors are sharded
    (FSDP2, ZeRO-3 of DeepSpeed), every rank must call this: all gather, one publishes, the others
    get None. options: as for `Run.publish`.
    """
    if is_writer is None:
        is_writer = _rank() == 0
    tensors = gathered(_state_of(model), is_writer)
    if not is_writer:
        return None
    patterns = tuple(leave_out)
    chosen = {name: value for name, value in tensors.items()
              if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
    files = {**files_of(model), **dict(options.pop('files', None) or {})}
    return run.publish(chosen, step, files=files, **options)


def gathered(state: Mapping[str, Any], is_wanted: bool = True) -> dict[str, Any]:
    """The state dict with whole tensors in place of sharded ones: DTensor, and parameters of ZeRO-3
    of DeepSpeed, which model.state_dict(keep_vars=True) has; without keep_vars they are empty.
    Every rank must call it; only where `is_wanted` the result holds tensors, else it is empty. What
    is not a tensor (extra state) is left out."""
    whole = {}
    tied: dict[int, tuple[Any, Any]] = {}  # the tensors too, whose ids are others' once they go
    for name, value in state.items():
        if not is_torch(value):
            if hasattr(value, '__array__') and is_wanted:
                whole[name] = value
            continue
        if id(value) not in tied:
            tied[id(value)] = value, _whole(value, is_wanted)
        if is_wanted:
            whole[name] = tied[id(value)][1]
    return whole


def _state_of(model: Any) -> Mapping[str, Any]:
    """A state dict for `gathered`. Detached, a parameter of ZeRO-3 would be an empty tensor."""
    parameters = model.parameters() if hasattr(model, 'parameters') else ()
    is_partitioned = any(map(_is_partitioned, parameters))
    state: Mapping[str, Any] = model.state_dict(**({'keep_vars': True} if is_partitioned else {}))
    return state


def _is_partitioned(value: Any) -> bool:
    return hasattr(value, 'ds_id')


def _whole(value: Any, is_wanted: bool) -> Any:
    """The tensor, gathered from all ranks where it is sharded; None where it is not wanted."""
    if _is_partitioned(value):
        from deepspeed import zero
        with zero.GatheredParameters([value]):  # the memory goes with the block
            return value.detach().to('cpu', copy=True) if is_wanted else None
    made = value.full_tensor() if hasattr(value, 'full_tensor') else value
    if not is_wanted:
        return None
    return made.detach().cpu() if made is not value else made


def files_of(model: Any) -> dict[str, bytes]:
    """The files that engines need beside the weights of a transformers model, as save_pretrained
    writes them."""
    model = _unwrapped(model)
    files = {}
    for name in ('config', 'generation_config'):
        settings = getattr(model, name, None)
        if settings is not None and hasattr(settings, 'to_json_string'):
            files[f'{name}.json'] = settings.to_json_string().encode()
    if 'config.json' in files:
        document = json.loads(files['config.json'])
        document.setdefault('architectures', [type(model).__name__.removeprefix('FSDP')])
        if hasattr(model, 'dtype'):
            document.setdefault('dtype', str(model.dtype).removeprefix('torch.'))
        files['config.json'] = json.dumps(document, indent=2, sort_keys=True).encode() + b'\n'
    return files


def _unwrapped(model: Any) -> Any:
    """Without torch.compile and DistributedDataParallel."""
    while True:
        inner = getattr(model, '_orig_mod', None)
        if inner is None and not hasattr(model, 'config'):
            inner = getattr(model, 'module', None)
        if inner is None:
            return model
        model = inner


def _rank() -> int:
    try:
        from torch import distributed
    except ImportError:
        return 0
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return 0
