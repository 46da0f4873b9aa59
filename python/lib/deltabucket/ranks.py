"""Ranks of a trainer that publish one step together: who is who, and what they tell each other."""
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from deltabucket import errors
from deltabucket.tensors import Memory, is_torch

INDEX = 'model.safetensors.index.json'


class Publication(Protocol):
    tensors: list[Memory]


Made = TypeVar('Made', bound=Publication)


@dataclass(frozen=True)
class Place:
    """Rank number `rank` of `ranks`. is_group: as torch.distributed has it, in `group`."""
    rank: int
    ranks: int
    is_group: bool = False
    group: Any = None


@dataclass(frozen=True)
class Told:
    """What a rank tells the others. failure: '' for none. names: of its tensors."""
    failure: str
    step: int | None
    epoch: int
    names: list[str]


def place_of(rank: int | None, ranks: int | None, group: Any) -> Place:
    """The numbers that were given, or those of torch.distributed."""
    if (rank is None) != (ranks is None):
        raise ValueError('rank and ranks go together: pass both, or neither.')
    if rank is not None and ranks is not None:
        if not 0 <= rank < ranks <= 4096:
            raise ValueError(f'There is no rank {rank} of {ranks}: ranks count from 0, and there '
                             'are at most 4096.')
        return Place(rank, ranks)
    distributed = _distributed()
    if distributed is None:
        raise ValueError('Pass rank and ranks: torch.distributed, which would have them, is not '
                         'initialised.')
    return Place(int(distributed.get_rank(group)), int(distributed.get_world_size(group)), True,
                 group)


def gather(place: Place, step: int | None, prepare: Callable[[], tuple[Made, int]],
           ) -> tuple[Made, list[Told]]:
    """(what `prepare` has made, what every rank has told), after all ranks of torch.distributed
    have come here. prepare() gives the publication and the epoch, which counts for rank 0 alone.
    What it raises is raised here, and NotReady by the other ranks. Invalid when the ranks do not
    mean the same step, SchemaMismatch when two have one tensor."""
    made: Made | None = None
    failure: Exception | None = None
    try:
        made, epoch = prepare()
        own = Told('', step, epoch, [tensor.name for tensor in made.tensors])
    except Exception as raised:
        failure = raised
        own = Told(f'{type(raised).__name__}: {raised}', step, 0, [])
    told: list[Any] = [None] * place.ranks
    distributed = _distributed()
    assert distributed is not None
    distributed.all_gather_object(told, own, place.group)
    if failure is not None:
        raise failure
    assert made is not None
    _check(told)
    return made, told


def rank_index(names: Sequence[Iterable[str]]) -> dict[str, str]:
    """The index of the shards that `Run.publish_rank` makes, for the `files` of rank 0: for each
    tensor of the model in which shard it is. names: those of the tensors of each rank, as they are
    published (`deltabucket.clean_names`), from rank 0 on."""
    places = {name: f'model-{rank + 1:05d}-of-{len(names):05d}.safetensors'
              for rank, own in enumerate(names) for name in own}
    document = {'metadata': {}, 'weight_map': dict(sorted(places.items()))}
    return {INDEX: json.dumps(document, indent=2) + '\n'}


def rank_part(state: Mapping[str, Any], rank: int | None = None, ranks: int | None = None, *,
              group: Any = None) -> dict[str, Any]:
    """The part of a state dict that this rank publishes: {name: whole tensor}, of about as many
    bytes on every rank. For `Run.publish_rank`.

    state: the same names on every rank. Sharded tensors (DTensor) are made whole one by one, for
    which every rank of their meshes must call this, and kept by one rank each, in CPU memory. So no
    rank holds more than its part and one tensor. What is not a tensor (extra state) is left out.
    rank, ranks: None for those of torch.distributed, of `group`.
    """
    place = place_of(rank, ranks, group)
    sizes = {name: value.numel() * value.element_size() if is_torch(value) else value.nbytes
             for name, value in state.items() if is_torch(value) or hasattr(value, '__array__')}
    owners = _owners(sizes, place.ranks)
    part = {}
    for name in sizes:
        whole = _whole(state[name], owners[name] == place.rank)
        if whole is not None:
            part[name] = whole
    return part


def _whole(value: Any, is_kept: bool) -> Any:
    """The whole tensor, in CPU memory where it is torch's; None where it is not kept."""
    whole = value.full_tensor() if hasattr(value, 'full_tensor') else value
    if not is_kept:
        return None
    return whole.detach().cpu() if is_torch(whole) else whole


def _owners(sizes: Mapping[str, int], ranks: int) -> dict[str, int]:
    """The rank of each name: that in whose part its middle byte lies, in byte order of names."""
    total = sum(sizes.values())
    before = 0
    owners = {}
    for name in sorted(sizes, key=str.encode):
        middle = 2 * before + sizes[name]
        owners[name] = min(ranks - 1, middle * ranks // (2 * total)) if total else 0
        before += sizes[name]
    return owners


def _check(told: list[Told]) -> None:
    failed = [f'rank {rank}: {one.failure}' for rank, one in enumerate(told) if one.failure]
    if failed:
        raise errors.NotReady(f'Other ranks have failed, so nothing was sent. {failed[0]}',
                              kind='not_ready')
    steps = [one.step for one in told]
    if len(set(steps)) > 1:
        raise errors.Invalid(f'The ranks do not mean the same step: from rank 0 on, they say '
                             f'{", ".join(map(str, steps[:16]))}.', kind='invalid')
    owners: dict[str, int] = {}
    for rank, one in enumerate(told):
        for name in one.names:
            if owners.setdefault(name, rank) != rank:
                raise errors.SchemaMismatch(f'The tensor {name} comes from rank {owners[name]} and '
                                            f'from rank {rank}; it must come from one.',
                                            kind='schema_mismatch')


def _distributed() -> Any:
    """torch.distributed where it is initialised. torch is not imported for that."""
    module = sys.modules.get('torch.distributed')
    return module if module is not None and module.is_available() and module.is_initialized() \
        else None
