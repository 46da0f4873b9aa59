"""Space comes back: the command, the route, and the server by itself.

DELTABUCKET_TORTURE=1 makes it 100,000 overwrites and deletes instead of 5,000.
"""
import json
import os
import random
import subprocess
import threading
import time
import unittest

from tests.support import xet
from tests.support.daemon import SERVER, Daemon

OPERATIONS = 100_000 if os.environ.get('DELTABUCKET_TORTURE') else 5_000
WRITERS = 8
JOURNAL_MAX_BYTES = 32 << 20  # logs of 8 MiB since the older of two snapshots, and what is being written
NOTHING = {'packs': 0, 'bytes': 0, 'packs_deleted': 0, 'packs_compacted': 0, 'bytes_freed': 0, 'packs_waiting': 0, 'rows_damaged': 0,
           'sweeps_failed': 0, 'bytes_registered': 0, 'bytes_promised': 0}


def disk_bytes(folder):
    """What the data folder takes, by blocks; the socket and folders count too."""
    done = subprocess.run(['du', '-s', '-B1', folder], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


def pack_bytes(folder):
    return sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(os.path.join(folder, 'packs')) for name in names
               if name.endswith('.pack'))


def gc(daemon, *arguments):
    return json.loads(daemon.admin('gc', '--json', *arguments).stdout)


def kept_bytes(folder):
    """Without the journal, whose size depends on what was changed lately and not on what lives."""
    return disk_bytes(folder) - disk_bytes(f'{folder}/journal')


class Gc(unittest.TestCase):
    def fill(self, daemon):
        """Six objects in packs of their own, four of them deleted; and small ones of which every tenth stays. Gives what must be there."""
        source = random.Random(1)
        daemon.request('PUT', '/space')
        held = {}
        for number in range(6):
            held[f'large{number}'] = source.randbytes(2_000_000)
        for number in range(100):
            held[f'small{number}'] = source.randbytes(20_000)
        for key, body in held.items():
            self.assertEqual(daemon.request('PUT', f'/space/{key}', body).status, 200)
        gone = [f'large{number}' for number in range(4)] + [f'small{number}' for number in range(100) if number % 10]
        for key in gone:
            self.assertEqual(daemon.request('DELETE', f'/space/{key}').status, 204)
            del held[key]
        return held

    def check(self, daemon, held):
        for key, body in held.items():
            got = daemon.request('GET', f'/space/{key}')
            self.assertEqual((got.status, got.body == body), (200, True), key)

    def test_promises_are_ended_when_that_is_asked_for(self):
        """What a Hub client sent for a file that never came of it stays for weeks, unless somebody needs the room now."""
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/space')
            kept = os.urandom(3_000_000)
            daemon.request('PUT', '/space/kept', kept)
            cas = xet.Cas(daemon, 'main/space')
            for number in range(3):
                cas.put_xorb(xet.Xorb([os.urandom(65_536) for _ in range(20)]))
            did = gc(daemon)
            self.assertEqual(did['bytes_freed'], 0)
            self.assertGreater(did['bytes_promised'], 3_500_000)
            self.assertIn('--end-promises frees them', daemon.admin('gc').stdout)
            would = gc(daemon, '--dry-run', '--end-promises')
            self.assertGreater(would['bytes_freed'], 3_500_000)
            did = gc(daemon, '--end-promises')
            self.assertGreater(did['bytes_freed'], 3_500_000)
            self.assertEqual(did['bytes_promised'], 0)
            self.check(daemon, {'kept': kept})
            refused = daemon.request('POST', '/-/gc', b'{"ends_promises":1}')
            self.assertEqual(refused.status, 400)

    def send(self, cas, xorb):
        """A file of one xorb, as far as its shard; the line of a batch that adds it."""
        self.assertEqual(cas.put_xorb(xorb).status, 200)
        self.assertEqual(cas.put_shard(xet.shard_of(xorb)).status, 200)
        return {'type': 'addFile', 'path': 'sent', 'xetHash': xet.text(xet.file_of(xorb)[0]), 'mtime': 1}

    def test_registered_files_are_ended_when_that_is_asked_for(self):
        """Files that Hub clients sent and then deleted stay for a day, unless somebody needs the room now; those that a bucket holds stay."""
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/space')
            cas = xet.Cas(daemon, 'main/space')
            kept, gone = xet.Xorb([os.urandom(65_536)]), [xet.Xorb([os.urandom(65_536) for _ in range(3)]) for _ in range(20)]
            for number, xorb in enumerate([kept, *gone]):
                line = {**self.send(cas, xorb), 'path': f'file{number}'}
                self.assertEqual(xet.batch(daemon, 'main/space', [line]).status, 200)
            paths = [{'type': 'deleteFile', 'path': f'file{number + 1}'} for number in range(len(gone))]
            self.assertEqual(xet.batch(daemon, 'main/space', paths).status, 200)
            size = sum(xorb.size for xorb in gone)
            did = gc(daemon)
            self.assertEqual((did['bytes_registered'], did['bytes_freed']), (size, 0))
            self.assertIn('--end-promises frees them', daemon.admin('gc').stdout)
            self.assertIn(f'files of {size} bytes that no bucket has would be freed', daemon.admin('gc', '--dry-run', '--end-promises').stdout)
            self.assertEqual(gc(daemon)['bytes_registered'], size)
            did = gc(daemon, '--end-promises')
            self.assertGreater(did['bytes_freed'], size * 0.99)
            self.assertEqual((did['bytes_registered'], did['bytes_promised']), (0, 0))
            self.check(daemon, {'file0': b''.join(kept.pieces)})

    def test_a_batch_that_comes_after_the_end_is_refused_and_sent_again(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/space')
            cas = xet.Cas(daemon, 'main/space')
            xorb = xet.Xorb([os.urandom(65_536) for _ in range(3)])
            line = self.send(cas, xorb)
            gc(daemon, '--end-promises')
            refused = xet.batch(daemon, 'main/space', [line])
            self.assertIn('was not uploaded', refused.json()['error'])
            self.assertEqual(cas.put_shard(xet.shard_of(xorb)).status, 400)
            self.assertEqual(xet.batch(daemon, 'main/space', [self.send(cas, xorb)]).json()['succeeded'], 1)
            self.check(daemon, {'sent': b''.join(xorb.pieces)})

    def test_command_beside_a_running_server(self):
        with Daemon(tls=False) as daemon:
            held = self.fill(daemon)
            before = pack_bytes(daemon.folder)
            would = gc(daemon, '--dry-run')
            self.assertTrue(would['dry_run'])
            self.assertEqual((would['packs_deleted'], would['packs_compacted']), (4, 1))
            self.assertEqual(pack_bytes(daemon.folder), before)
            did = gc(daemon)
            self.assertEqual((did['dry_run'], did['packs_deleted'], did['packs_compacted'], did['packs_waiting']), (False, 4, 1, 0))
            self.assertEqual(pack_bytes(daemon.folder), before - did['bytes_freed'])
            self.assertAlmostEqual(did['bytes_freed'], would['bytes_freed'], delta=100_000)
            self.assertLess(pack_bytes(daemon.folder), 1.05 * sum(map(len, held.values())))
            self.check(daemon, held)
            metrics = daemon.request('GET', '/-/metrics').body.decode()
            self.assertIn('\ndeltabucket_packs_deleted_total 4\n', metrics)
            self.assertIn('\ndeltabucket_packs_compacted_total 1\n', metrics)
            self.assertIn(f'\ndeltabucket_gc_freed_bytes_total {did["bytes_freed"]}\n', metrics)
            daemon.kill()
            daemon.start()
            self.check(daemon, held)
            self.assertEqual(gc(daemon)['bytes_freed'], 0)

    def test_command_on_a_stopped_store(self):
        with Daemon(tls=False) as daemon:
            held = self.fill(daemon)
            daemon.stop()
            before = pack_bytes(daemon.folder)
            self.assertEqual(gc(daemon, '--dry-run')['packs_deleted'], 4)
            self.assertEqual(pack_bytes(daemon.folder), before)
            told = daemon.admin('gc').stdout
            self.assertRegex(told, r"^\d+ packs of \d+ bytes: 4 deleted, 1 compacted, \d+ bytes freed\n$")
            self.assertLess(pack_bytes(daemon.folder), 1.05 * sum(map(len, held.values())))
            daemon.start()
            self.check(daemon, held)

    def test_usage(self):
        for arguments in (['--live-percent', '0'], ['--live-percent', '101'], ['--live-percent'], ['--what'], ['now']):
            done = subprocess.run([SERVER, 'gc', '--data', '/nonexistent', *arguments], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 2, arguments)
        done = subprocess.run([SERVER, 'gc', '--help'], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, 'dry-run' in done.stdout), (0, True))
        done = subprocess.run([SERVER, 'gc', '--data', '/nonexistent'], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 1)

    def test_route(self):
        with Daemon(tls=False) as daemon:
            self.assertEqual(daemon.request('POST', '/-/gc').json(), {'dry_run': False, **NOTHING})
            self.assertEqual(daemon.request('POST', '/-/gc', b'{"dry_run":true,"live_percent":80}').json(), {'dry_run': True, **NOTHING})
            for body in (b'[]', b'{"dry_run":1}', b'{"live_percent":0}', b'{"live_percent":101}', b'{'):
                self.assertEqual(daemon.request('POST', '/-/gc', body).status, 400, body)
            key = daemon.add_key('--namespace', 'other')
            self.assertEqual(daemon.request('POST', '/-/gc', token=key['token']).status, 403)
            self.assertIn(daemon.request('POST', '/-/gc', token=None).status, (401, 403))

    def test_server_by_itself(self):
        with Daemon(tls=False, arguments=['--gc-interval', '1']) as daemon:
            held = self.fill(daemon)
            limit = time.monotonic() + 240
            while pack_bytes(daemon.folder) > 7_000_000 and time.monotonic() < limit:
                time.sleep(0.1)
            self.assertLessEqual(pack_bytes(daemon.folder), 7_000_000)
            self.check(daemon, held)

    def test_bytes_that_another_key_shares_stay(self):
        with Daemon(tls=False) as daemon:
            body = random.Random(3).randbytes(1_000_000)
            daemon.request('PUT', '/space')
            daemon.request('PUT', '/space/a', body)
            before = pack_bytes(daemon.folder)
            daemon.stop()  # the chunk index learns of the pack a moment after the upload, or at the next start
            daemon.start()
            daemon.request('PUT', '/space/b', body)
            self.assertLess(pack_bytes(daemon.folder) - before, 10_000)
            daemon.request('DELETE', '/space/a')
            self.assertEqual(gc(daemon)['packs_deleted'], 0)
            self.assertEqual(daemon.request('GET', '/space/b').body, body)
            daemon.request('DELETE', '/space/b')
            self.assertEqual(gc(daemon)['packs_deleted'], 1)

    def write(self, daemon, number, operations, held, failures):
        source = random.Random(number)
        connection = daemon.connect()
        for _ in range(operations):
            key = f'{number}/{source.randrange(max(operations // 10, 1))}'
            if source.random() < 0.1:
                status = daemon.request('DELETE', f'/space/{key}', connection=connection).status
                held.pop(key, None)
            else:
                body = source.randbytes(source.choice((500, 4_096, 16_384, 16_384, 65_536)))
                status = daemon.request('PUT', f'/space/{key}', body, connection=connection).status
                held[key] = body
            if status not in (200, 204):
                failures.append((key, status))
        connection.close()

    def test_overwrites_and_deletes_end_near_the_living_bytes(self):
        with Daemon(tls=False, arguments=['--gc-interval', '5']) as daemon:
            daemon.request('PUT', '/space')
            held, failures = [{} for _ in range(WRITERS)], []
            writers = [threading.Thread(target=self.write, args=(daemon, i, OPERATIONS // WRITERS, held[i], failures)) for i in range(WRITERS)]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            self.assertEqual(failures, [])
            gc(daemon)
            living = sum(len(body) for part in held for body in part.values())
            ratio = kept_bytes(daemon.folder) / living
            print(f'{OPERATIONS} overwrites and deletes: {living} living bytes, the folder takes {ratio:.3f} times that')
            self.assertLess(ratio, 1.2)
            for part in held:
                self.check(daemon, part)
            daemon.stop()
            self.assertLess(kept_bytes(daemon.folder) / living, 1.2)
            self.assertLess(disk_bytes(f'{daemon.folder}/journal'), JOURNAL_MAX_BYTES)


if __name__ == '__main__':
    unittest.main()
