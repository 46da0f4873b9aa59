"""SIGKILL to the server while it gives space back under overwrites, deletes and reads: nothing acknowledged is lost, nothing stays behind.

DELTABUCKET_TORTURE=1 makes it 200 kills instead of 12.
"""
import functools
import os
import random
import time
import unittest

from tests.support.daemon import Daemon
from tests.support.kills import kill_under

KILLS = 200 if os.environ.get('DELTABUCKET_TORTURE') else 12
WRITERS, KEYS = 3, 12
SIZES = (3_000, 20_000, 90_000, 400_000, 1_500_000)


class GcKill(unittest.TestCase):
    def write(self, daemon, writer, held, doubtful, seed, stop):
        """Keys of this writer alone. `doubtful`: what else a key may hold, after an operation whose answer did not come."""
        source = random.Random(seed)
        while not stop.is_set():
            key = f'{writer}/{source.randrange(KEYS)}'
            # Few contents, so that chunks are found in packs that gc is about to take.
            body = None if source.random() < 0.25 else random.Random(source.randrange(40)).randbytes(source.choice(SIZES))
            doubtful.setdefault(key, [held.get(key)]).append(body)
            try:
                got = daemon.request('DELETE' if body is None else 'PUT', f'/gc/{key}', body, timeout=20)
            except Exception:  # killed in between
                time.sleep(0.02)
                continue
            if got.status in (200, 204):
                held[key] = body
                del doubtful[key]

    def collect(self, daemon, stop):
        while not stop.is_set():
            daemon.admin('gc', '--live-percent', '95', check=False)

    def check(self, daemon, held, doubtful):
        for key in set(held) | set(doubtful):
            got = daemon.request('GET', f'/gc/{key}')
            self.assertIn(got.status, (200, 404), key)
            body = got.body if got.status == 200 else None
            self.assertTrue(any(body == expected for expected in doubtful.get(key, [held.get(key)])), key)
            held[key] = body
        doubtful.clear()

    def test_server_killed_while_it_gives_space_back(self):
        source = random.Random(9)
        held, doubtful = {}, {}
        with Daemon(tls=False, arguments=['--gc-interval', '1', '--gc-rate', '0', '--gc-live-percent', '90']) as daemon:
            daemon.request('PUT', '/gc')
            for kill in range(KILLS):
                works = [functools.partial(self.write, daemon, i, held, doubtful, f'{kill}-{i}') for i in range(WRITERS)]
                kill_under(daemon, works + [functools.partial(self.collect, daemon)], source.uniform(0.2, 1.5))
                self.check(daemon, held, doubtful)
                self.assertNotIn('pack_damaged', daemon.log())
            for key in held:
                daemon.request('DELETE', f'/gc/{key}')
            daemon.admin('gc')
            left = [name for _, _, names in os.walk(os.path.join(daemon.folder, 'packs')) for name in names]
            self.assertEqual(left, [])


if __name__ == '__main__':
    unittest.main()
