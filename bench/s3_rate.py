#!/usr/bin/env python3
"""The S3 face under load: what the server's CPU is spent on, against what its parts cost alone. Over plain HTTP, so that no cipher is counted.

usage: s3_rate.py [parts] [large] [small] [list]      (default: all of them, in this order)
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from measure import cpu_seconds, median, say
from tests.support.daemon import BUILD, Daemon

KEYS = int(os.environ.get('DELTABUCKET_BENCH_KEYS', 1000000))
MIB = 1 << 20


def load(daemon, workload, connections, count, size, keys, upload=''):
    """Runs s3_load; gives its figures and the server's CPU seconds per operation."""
    before = cpu_seconds([daemon.process.pid])
    done = subprocess.run([os.path.join(BUILD, 'bench_s3_load'), str(daemon.port), workload, str(connections), str(count), str(size), str(keys)],
                          env=dict(daemon.environment, DELTABUCKET_BENCH_UPLOAD=upload), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f's3_load {workload}: {done.stdout}{done.stderr[:2000]}')
    figures = json.loads(done.stdout)
    figures['cpu'] = (cpu_seconds([daemon.process.pid]) - before) / count
    return figures


def floors():
    with tempfile.TemporaryDirectory() as scratch:
        out = subprocess.run([os.path.join(BUILD, 'bench_floor_rate'), scratch], capture_output=True, text=True, check=True).stdout
    return {line.split()[0]: float(line.split()[1]) for line in out.splitlines()}


def bucket_daemon(*arguments):
    daemon = Daemon(tls=False, arguments=arguments)
    daemon.start()
    assert daemon.request('PUT', '/bench').status == 200
    return daemon


def put_parts(daemon, signed, count=64):
    reply = daemon.request('POST', '/bench/parts?uploads', headers={'x-amz-checksum-algorithm': 'CRC32'})
    upload = re.search(b'<UploadId>(.*?)</UploadId>', reply.body).group(1).decode()
    figures = load(daemon, 'parts-signed' if signed else 'parts-unsigned', 10, count, 8 * MIB, 1, upload)
    daemon.request('DELETE', f'/bench/parts?uploadId={upload}')
    return figures['cpu'] / (8 * MIB / 1e9)


def parts():
    costs = floors()
    for name, cost in costs.items():
        say(f'alone: {name}', cost, 's/GB')
    alone = sum(costs.values()) - costs['sha256']
    daemon = bucket_daemon()
    try:
        for signed, floor in ((False, alone), (True, alone + costs['sha256'])):
            cost = median([put_parts(daemon, signed) for _ in range(3)])
            what = 'signed' if signed else 'unsigned'
            say(f'64 parts of 8 MiB, {what} trailers, CRC32', cost, 's/GB')
            say('  against the sum of its parts (want <= 1.15)', cost / floor, 'x')
    finally:
        daemon.stop()


def large():
    costs = {}
    for policy in ('md5', 'fast'):
        daemon = bucket_daemon('--etag', policy)
        try:
            costs[policy] = median([load(daemon, 'fill', 8, 128, 8 * MIB, 128)['cpu'] for _ in range(3)]) / (8 * MIB / 1e9)
            get = median([load(daemon, 'get', 8, 256, 8 * MIB, 128)['cpu'] for _ in range(3)]) / (8 * MIB / 1e9)
        finally:
            daemon.stop()
    say('PUT of 8 MiB, 8 connections, MD5 ETag (want <= 3.0)', costs['md5'], 's/GB')
    say('PUT of 8 MiB, 8 connections, fast ETag', costs['fast'], 's/GB')
    say('  fast against MD5 (want <= 0.55)', costs['fast'] / costs['md5'], 'x')
    say('GET of 8 MiB, 8 connections (want <= 0.45)', get, 's/GB')


def small():
    daemon = bucket_daemon()
    try:
        load(daemon, 'fill', 64, 20000, 4096, 20000)
        for workload, count, want in (('get', 60000, 0.06), ('put', 20000, 0.25), ('mixed', 40000, 0.10)):
            figures = load(daemon, workload, 64, count, 4096, 20000)
            say(f'{workload} of 4 KiB, 64 connections (want <= {want})', figures['cpu'] * 1e3, 'ms')
            say('  p99 (want < 25)', figures['p99_ms'], 'ms')
            say('  rate', count / figures['seconds'], '1/s')
    finally:
        daemon.stop()


def pages(daemon, target, token, rounds=1):
    """Walks the listing so many times: pages, and CPU seconds for each."""
    connection = daemon.connect(timeout=60)
    count, before = 0, cpu_seconds([daemon.process.pid])
    for _ in range(rounds):
        marker = ''
        while marker is not None:
            body = daemon.request('GET', target + marker, connection=connection).body
            count += 1
            found = re.search(token, body)
            marker = f'&continuation-token={found.group(1).decode()}' if found else None
    return count, (cpu_seconds([daemon.process.pid]) - before) / count


def rss_after_idle(daemon):
    time.sleep(2)
    return daemon.rss_bytes() / MIB


def list_keys():
    daemon = bucket_daemon()
    token = b'<NextContinuationToken>(.*?)</NextContinuationToken>'
    try:
        load(daemon, 'fill', 64, KEYS, 16, KEYS)
        before = daemon.rss_bytes()
        count, cost = pages(daemon, '/bench?list-type=2', token)
        say(f'LIST of {KEYS} keys, pages of 1,000: pages', count, '')
        say('  pages a second of server CPU (want >= 1000)', 1 / cost, '1/s')
        say('  memory gained', (daemon.rss_bytes() - before) / MIB, 'MiB')
        count, cost = pages(daemon, '/bench?list-type=2&delimiter=/&max-keys=100', token, 200)
        say(f'  delimiter page of 100 of 256 prefixes, {KEYS // 256} keys each', cost * 1e3, 'ms')
        daemon.stop()
        begun = time.monotonic()
        daemon.start()
        say(f'start with {KEYS} keys (want < 1)', time.monotonic() - begun, 's')
        say('  idle memory (want < 100)', rss_after_idle(daemon), 'MiB')
    finally:
        daemon.stop()


BENCHES = {'parts': parts, 'large': large, 'small': small, 'list': list_keys}
for chosen in sys.argv[1:] or BENCHES:
    BENCHES[chosen]()
