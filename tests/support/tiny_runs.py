"""Runs of tiny models in real layouts (vllm_models.py), and workers that follow them. Needs the Python package (package_is_ready)."""
import json
import os
import subprocess

import deltabucket
import ml_dtypes
import numpy

from tests.support.daemon import CLIENT, environment_of_programs
from tests.support.package import settings_of, variables_of
from tests.support.vllm_models import config_of, shapes_of


class TinyRun:
    """A run whose step 0 is published. last: the newest step."""

    def __init__(self, daemon, name, kind='llama'):
        self.name, self.last = name, 0
        self.random = numpy.random.default_rng(7)
        self.weights = {name: self.random.standard_normal(shape).astype(ml_dtypes.bfloat16) for name, shape in shapes_of(kind).items()}
        self.run = deltabucket.Run(name, create_bucket=True, **settings_of(daemon))
        self.files = {'config.json': json.dumps(config_of(kind))}
        self.run.publish(self.weights, files=self.files)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run.__exit__(None, None, None)

    def publish(self):
        """A step in which one in twenty elements is another one, some of them NaN and infinite."""
        for weight in self.weights.values():
            flat = weight.reshape(-1)
            places = self.random.choice(flat.size, max(1, flat.size // 20), replace=False)
            flat.view(numpy.uint16)[places] = self.random.integers(0, 1 << 16, places.size, numpy.uint16)
        self.run.publish(self.weights, files=self.files)
        self.last += 1
        return self.last


def follow(daemon, run, into, *arguments, log=None, **environment):
    """`deltabucket follow`, begun, in a process group of its own; its output goes to the file log."""
    environment = dict(environment_of_programs(), **variables_of(daemon), HOME=daemon.scratch, **environment)
    written = open(log or os.devnull, 'a')
    with written:
        return subprocess.Popen([CLIENT, 'follow', '--run', run, '--into', into, *arguments], env=environment, stdout=written, stderr=written,
                                start_new_session=True)


def bring(daemon, run, into):
    """The newest step, into the folder."""
    ended = follow(daemon, run, into, '--once').wait(120)
    assert ended == 0, ended
