#!/usr/bin/env python3
"""usage: bench/catch_up.py [SERIES]   what a worker fetches that is 8, 16, 24 or 32 steps behind, beside the sum of the single deltas.

The checkpoints of SERIES (anchors/, deltas/; default $DELTABUCKET_SERIES, else tests/data/small) are published one by one. Workers follow up to a step each and
then stand still. When the last step is there, each catches up with one `follow --once`, which asks for a direct fold where that saves much; what it ends
with is compared with the checkpoint, byte for byte. The same is told for a path over skip folds alone, which needs no waiting.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

from measure import say

from tests.support.checkpoints import sha256
from tests.support.daemon import CLIENT, DATA, Daemon

LIMITS = {8: 0.6, 32: 0.35}
PATIENCE = 120


def expand(series, folder):
    """The checkpoints of a series in order; each is removed when the next but one is made."""
    paths = [os.path.join(folder, 'step_000000.safetensors')]
    with open(sorted(glob.glob(os.path.join(series, 'anchors', '*')))[0], 'rb') as source, open(paths[0], 'wb') as target:
        target.write(source.read())
    yield paths[0]
    for number, delta in enumerate(sorted(glob.glob(os.path.join(series, 'deltas', '*'))), 1):
        paths.append(os.path.join(folder, f'step_{number:06d}.safetensors'))
        subprocess.run([CLIENT, 'apply', paths[-2], delta, paths[-1]], check=True, capture_output=True)
        if len(paths) > 2:
            os.remove(paths[-3])
        yield paths[-1]


def follow(daemon, folder):
    done = daemon.client('follow', '--run', 'models/r', '--into', folder, '--once', '--json')
    return [json.loads(line) for line in done.stdout.splitlines()][-1]


def wait_for_folds(daemon, head):
    """Until all skip folds that there will be are used."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        ways = [daemon.request('GET', f'/v1/runs/models/r/path?have={at}&want={at + span}').json()
                for span in (4, 16) for at in range(0, head - span + 1, span)]
        if all(len(way['links']) == 1 for way in ways):
            return
        time.sleep(0.2)
    raise AssertionError('some skip folds are not made')


def sum_of_deltas(daemon):
    sizes = {}
    at = 0
    while at is not None:
        page = daemon.request('GET', f'/v1/runs/models/r/steps?from={at}&limit=100').json()
        for step in page['steps']:
            sizes.update({step['step']: form['bytes'] for form in step['forms'] if form['kind'] == 'delta'})
        at = page.get('next') if page['steps'] else None
    return sizes


def main(series):
    last = len(glob.glob(os.path.join(series, 'deltas', '*')))
    behind = [count for count in (8, 16, 24, 32) if count <= last]
    with tempfile.TemporaryDirectory() as folder, Daemon(tls=False) as daemon:
        daemon.request('PUT', '/models')
        workers = {}
        for number, path in enumerate(expand(series, folder)):
            daemon.client('publish', '--run', 'models/r', '--format', 'ulp-class', path)
            if last - number in behind:
                workers[last - number] = os.path.join(folder, f'worker-{last - number}')
                follow(daemon, workers[last - number])
        wait_for_folds(daemon, last)
        deltas = sum_of_deltas(daemon)
        known = sha256(path)
        for count in behind:
            single = sum(deltas[step] for step in range(last - count + 1, last + 1))
            skips = daemon.request('GET', f'/v1/runs/models/r/path?have={last - count}').json()
            begun = time.monotonic()
            told = follow(daemon, workers[count])
            took = time.monotonic() - begun
            say(f'{count} behind: by skip folds / the single deltas', skips['bytes'] / single, f'({len(skips["links"])} links)')
            limit = f', limit {LIMITS[count]}' if count in LIMITS else ''
            say(f'{count} behind: fetched / the single deltas', told['bytes'] / single, f'({told["links"]} links{limit})')
            say(f'{count} behind: the fold waited for, fetched, applied in', took, 's')
            current = os.path.join(workers[count], 'current')
            assert sha256(os.path.join(current, os.listdir(current)[0])) == known, 'another checkpoint'


if __name__ == '__main__':
    main(sys.argv[1] if len(sys.argv) > 1 else os.environ.get('DELTABUCKET_SERIES', os.path.join(DATA, 'small')))
