"""Model weights from RL trainers to the machines that sample with them.

    import deltabucket

    with deltabucket.Run('models/policy', create_bucket=True, take_over=True) as run:
        run.publish(model.state_dict())

    with deltabucket.Run('models/policy').follow('/srv/weights') as steps:
        for step in steps:
            load(step.path)

docs/PYTHON.md is the reference.
"""
from deltabucket._library import VERSION as __version__
from deltabucket.bucket import Bucket, Object, Synced
from deltabucket.errors import (Busy, Cancelled, Damaged, Denied, DigestMismatch, Error, Exists,
                                HeadMoved, Invalid, NoSpace, NotFound, NotReady, SchemaMismatch,
                                Spoiled, StaleEpoch, TooFarBehind, Unreachable, Unsupported,
                                Untrusted, UsedAfterFork, WrongBase)
from deltabucket.follower import Follower, Step
from deltabucket.models import gathered, publish_model
from deltabucket.ranks import rank_index, rank_part
from deltabucket.run import Published, Replica, Run, StepInfo
from deltabucket.tensors import clean_names

__all__ = [
    'Bucket', 'Busy', 'Cancelled', 'Damaged', 'Denied', 'DigestMismatch', 'Error', 'Exists',
    'Follower', 'HeadMoved', 'Invalid', 'NoSpace', 'NotFound', 'NotReady', 'Object', 'Published',
    'Replica', 'Run', 'SchemaMismatch', 'Spoiled', 'StaleEpoch', 'Step', 'StepInfo',
    'Synced', 'TooFarBehind', 'Unreachable', 'Unsupported', 'Untrusted', 'UsedAfterFork', 'WrongBase',
    '__version__', 'clean_names', 'gathered', 'publish_model', 'rank_index', 'rank_part',
]
