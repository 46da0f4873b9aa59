"""The real checkpoints that the tests walk: each file rebuilt by the independent TRL reader and equal to its known SHA-256."""
import glob
import os
import subprocess

from tests.formats import trl
from tests.formats.container import read, rewrite
from tests.support.checkpoints import sha256
from tests.support.daemon import CLIENT, DATA

# The series to walk, and how far: to its end with $DELTABUCKET_TORTURE or when $DELTABUCKET_SERIES names one.
FOLDER = os.environ.get('DELTABUCKET_SERIES', os.path.join(DATA, 'small'))
STEPS = 1000 if os.environ.get('DELTABUCKET_TORTURE') or 'DELTABUCKET_SERIES' in os.environ else 3


def known_sums(source):
    with open(os.path.join(source, 'SHA256SUMS')) as sums:
        return {name: digest for digest, name in (line.split() for line in sums)}


def walk(folder, source=FOLDER, steps=STEPS):
    """Yields (number, path, tensors, sha256) of steps 0, 1, ... ; the files lie in `folder` and stay."""
    sums = known_sums(source)
    anchor, = glob.glob(os.path.join(source, 'anchors', '*.safetensors'))
    tensors, _ = read(anchor)
    deltas = sorted(glob.glob(os.path.join(source, 'deltas', '*.safetensors')))[:steps]
    for number in range(len(deltas) + 1):
        name = f'step_{number:06d}.safetensors'
        path = os.path.join(folder, name)
        if number:
            _, tensors = trl.apply(deltas[number - 1], tensors)
        rewrite(anchor, tensors, path)
        if sha256(path) != sums[name]:
            raise AssertionError(f'{path} differs from SHA256SUMS')
        yield number, path, tensors, sums[name]


def run(*arguments, check=True):
    """`deltabucket ARGUMENTS`; gives the CompletedProcess with text output."""
    done = subprocess.run([CLIENT, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    if check and done.returncode != 0:
        raise AssertionError(f'deltabucket {" ".join(map(str, arguments))} ended with {done.returncode}: {done.stderr}{done.stdout}')
    return done


def knows(command):
    """Whether the program under test has this command."""
    return run('help', command, check=False).returncode == 0
