#!/usr/bin/env python3
"""A publish to 100 followers on this machine: how long until each has the proven checkpoint and has said so, and what the server sent for it."""
import datetime
import json
import os
import subprocess
import tempfile
import time

from measure import say
from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon

WORKERS, STEPS = 100, 4


def counter(daemon, name):
    return next(float(line.split()[1]) for line in daemon.request('GET', '/-/metrics').body.decode().splitlines() if line.startswith(f'deltabucket_{name} '))


def milliseconds(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp() * 1000


def all_ready(daemon, step):
    """The replicas, once all are ready on the step."""
    limit = time.monotonic() + 300
    while True:
        fleet = daemon.request('GET', '/v1/runs/models/r/replicas?limit=1000').json()['replicas']
        if len(fleet) == WORKERS and all(one['state'] == 'ready' and one['step'] == step for one in fleet):
            return fleet
        assert time.monotonic() < limit, [one for one in fleet if one.get('step') != step][:3]
        time.sleep(0.5)


def main():
    with tempfile.TemporaryDirectory() as folder, Daemon(tls=False) as daemon:
        checkpoints = expand_small(folder, STEPS)
        daemon.request('PUT', '/models')
        daemon.client('publish', '--run', 'models/r', checkpoints[0])
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=daemon.scratch)
        workers = [subprocess.Popen([CLIENT, 'follow', '--run', 'models/r', '--into', os.path.join(folder, f'w{number}'), '--replica', f'w{number}', '--threads', '1', '--quiet'],
                                    env=environment, stdout=subprocess.DEVNULL) for number in range(WORKERS)]
        try:
            all_ready(daemon, 0)
            lags, sent, deltas = [], 0, 0
            for step in range(1, STEPS + 1):
                time.sleep(1)
                before = counter(daemon, 'sent_bytes_total')
                said = json.loads(daemon.client('publish', '--run', 'models/r', '--json', checkpoints[step]).stdout)
                fleet = all_ready(daemon, step)
                sent += counter(daemon, 'sent_bytes_total') - before
                deltas += said['delta_bytes']
                created = milliseconds(daemon.request('GET', f'/v1/runs/models/r/steps/{step}').json()['created'])
                lags += sorted(milliseconds(one['updated']) - created for one in fleet)
            want = sha256(checkpoints[STEPS])
            assert all(sha256(os.path.join(folder, f'w{number}', 'current', 'model.safetensors')) == want for number in range(WORKERS))
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()
        lags.sort()
        say(f'{WORKERS} followers, from 201 to ready, median', lags[len(lags) // 2], 'ms')
        say(f'{WORKERS} followers, from 201 to ready, p99', lags[len(lags) * 99 // 100], 'ms')
        say('bytes sent over followers x delta (manifests and lists included)', sent / (WORKERS * deltas), '')
        say('of the delta, per follower and step', deltas / STEPS / 1000, 'kB')


main()
