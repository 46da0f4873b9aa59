#!/usr/bin/env python3
"""PUT of an object that is wholly stored: the first time after a start, when the stored bytes are read
and held against their checksums, from memory and from the disk; and later, when they are not read.

usage: known_rate.py [FILE]      (an object without repeated chunks; default: noise)
"""
import os
import subprocess
import sys
import tempfile
import time

from measure import median, say
from tests.support.daemon import ROOT_TOKEN, Daemon

NOISE, ROUNDS = 1 << 28, 5


def put(daemon, path):
    begin = time.monotonic()
    subprocess.run(['curl', '-sf', '-T', path, '-H', f'Authorization: Bearer {ROOT_TOKEN}', '-H', 'Expect:', f'{daemon.endpoint}/bench/object'],
                   check=True, stdout=subprocess.DEVNULL)
    return os.path.getsize(path) / 1e6 / (time.monotonic() - begin)


def leave_memory(daemon):
    """What the kernel keeps of the packs goes."""
    for at, _, names in os.walk(os.path.join(daemon.folder, 'packs')):
        for name in names:
            with open(os.path.join(at, name), 'rb') as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def restart(daemon, is_cold):
    daemon.stop()
    if is_cold:
        leave_memory(daemon)
    daemon.start()


def noise(file):
    for _ in range(NOISE >> 24):
        file.write(os.urandom(1 << 24))
    file.flush()
    return file.name


def compare(path):
    first, cold, later = [], [], []
    with Daemon(tls=False) as daemon:
        daemon.request('PUT', '/bench')
        put(daemon, path)
        for _ in range(ROUNDS):
            restart(daemon, False)
            first.append(put(daemon, path))
            later += [put(daemon, path), put(daemon, path)]
            restart(daemon, True)
            cold.append(put(daemon, path))
    for name, rates in (('first, from memory', first), ('first, from the disk', cold), ('later', later)):
        say(f'put of stored bytes, {name}', median(rates), 'MB/s')
    print('first/later %.2f, from the disk %.2f' % (median(first) / median(later), median(cold) / median(later)))


def main():
    with tempfile.NamedTemporaryFile() as file:
        compare(sys.argv[1] if len(sys.argv) > 1 else noise(file))


if __name__ == '__main__':
    main()
