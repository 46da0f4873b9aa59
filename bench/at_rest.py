#!/usr/bin/env python3
"""usage: bench/at_rest.py [SERIES]   what 32 consecutive full checkpoints take on disk once the server's background pass has been over them.

The checkpoints of SERIES (default $DELTABUCKET_SERIES, else tests/data/small) are uploaded by `aws s3 cp`, one key each; then the data folder is watched
until gc has nothing left to give back; then every checkpoint is downloaded and compared.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

from measure import median, say

from tests.support.checkpoints import sha256
from tests.support.clients import REGION, importable, installed, program
from tests.support.daemon import DATA, ROOT_ID, ROOT_SECRET, Daemon

if not importable('numpy', 'safetensors', environment='formats'):
    sys.exit('setup/clients has not installed numpy and safetensors')

from tests.formats import series  # noqa: E402

AWS = installed('aws') or program('aws')
PATIENCE = 180
QUIET = 8
LIMIT = 1.5
READS = 5


def pack_bytes(daemon):
    return sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(daemon.folder) for name in names
               if name.endswith(('.pack', '.index', '.db')))


def aws(daemon, *arguments):
    environment = dict(os.environ, AWS_ACCESS_KEY_ID=ROOT_ID, AWS_SECRET_ACCESS_KEY=ROOT_SECRET, AWS_DEFAULT_REGION=REGION)
    subprocess.run([AWS, '--endpoint-url', daemon.endpoint, 's3', *arguments, '--only-show-errors'], env=environment, check=True)


def settle(daemon, limit):
    """Until the folder has not shrunk for some seconds; gives its bytes and how long it took to get below the limit."""
    begun = last_change = time.monotonic()
    size, reached = pack_bytes(daemon), None
    while time.monotonic() - begun < PATIENCE and time.monotonic() - last_change < QUIET:
        json.loads(daemon.admin('gc', '--json', '--live-percent', '90').stdout)
        now = pack_bytes(daemon)
        if now < size:
            last_change = time.monotonic()
        if now <= limit and reached is None:
            reached = time.monotonic() - begun
        size = now
        time.sleep(1)
    return size, reached


def read_rate(daemon, target, size):
    times = []
    for _ in range(READS):
        begun = time.monotonic()
        assert len(daemon.request('GET', target).body) == size
        times.append(time.monotonic() - begun)
    return size / median(times) / 1e9


def main(source):
    with tempfile.TemporaryDirectory() as folder, Daemon(tls=False, arguments=['--gc-interval', '1']) as daemon:
        daemon.request('PUT', '/weights')
        begun = time.monotonic()
        steps = []
        for number, path, _, known in series.walk(folder, source, 31):
            aws(daemon, 'cp', path, f's3://weights/run/step_{number:06d}.safetensors')
            steps.append((number, known))
            size = os.path.getsize(path)
            os.remove(path)
        say('checkpoints uploaded by aws s3 cp', len(steps), f'of {size} bytes, {time.monotonic() - begun:.0f} s')
        say('data folder after the uploads / one checkpoint', pack_bytes(daemon) / size, '')
        kept, reached = settle(daemon, LIMIT * size)
        say('data folder after the background pass / one checkpoint', kept / size, f'(limit {LIMIT})')
        if reached is not None:
            say('the limit was reached after', reached, 's')
        equal = 0
        for number, known in steps:
            back = os.path.join(folder, 'back')
            aws(daemon, 'cp', f's3://weights/run/step_{number:06d}.safetensors', back)
            equal += sha256(back) == known
        say('bit-identical when downloaded again', equal, f'of {len(steps)}')
        with open(back, 'rb') as file:
            daemon.request('PUT', '/weights/other/plain', os.urandom(16) + file.read()[16:])
        plain = read_rate(daemon, '/weights/other/plain', size)
        derived = read_rate(daemon, f'/weights/run/step_{steps[-1][0]:06d}.safetensors', size)
        say('reading the last checkpoint', derived, 'GB/s')
        say('reading it / reading a plain object', derived / plain, '(limit 0.5)')


if __name__ == '__main__':
    main(sys.argv[1] if len(sys.argv) > 1 else os.environ.get('DELTABUCKET_SERIES', os.path.join(DATA, 'small')))
