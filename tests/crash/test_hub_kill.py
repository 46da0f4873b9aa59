"""SIGKILL to the server while Hub clients send xorbs, shards and batches, S3 clients the same content, and gc takes whatever it may: a file that was
acknowledged is whole on both faces, one that was refused or cut is the old one or the new one, and nothing stays behind. First with promises, when
a xorb that was acknowledged can be named without being sent again; then without.

DELTABUCKET_TORTURE=1 makes it 200 kills instead of 12.
"""
import functools
import os
import random
import time
import unittest

from tests.support import xet
from tests.support.daemon import Daemon
from tests.support.kills import kill_under

KILLS = 200 if os.environ.get('DELTABUCKET_TORTURE') else 12
WRITERS, KEYS = 3, 8
# gc runs when asked, as often as it can. Without promises it may take what no file names as soon as it is there.
ARGUMENTS = ['--xet-answer-promise', '0', '--gc-interval', '3600', '--gc-rate', '0', '--gc-live-percent', '90', '--xet-promise']


def make_xorbs():
    source = random.Random(3)
    return [xet.Xorb([source.randbytes(source.choice((500, 9_000, 60_000))) for _ in range(source.randrange(1, 7))]) for _ in range(12)]


class Content:
    """A file of some chunks of two xorbs, and the lines and shards that make it."""

    def __init__(self, first, second):
        self.xorbs = (first, second)
        self.terms = [xet.term(first), xet.term(second, 0, 1)]
        self.name = xet.file_hash(first.entries + second.entries[:1])
        self.bytes = b''.join(first.pieces + second.pieces[:1])


class HubKill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        xorbs = make_xorbs()
        source = random.Random(4)
        cls.contents = [Content(*source.sample(xorbs, 2)) for _ in range(24)]

    def add(self, daemon, cas, key, content):
        """As a Hub client does it; whether the batch said that the file is there."""
        for xorb in content.xorbs:
            if xorb.hash in self.promised:
                continue
            if cas.put_xorb(xorb).status != 200:
                return False
            if self.promises:
                self.promised.add(xorb.hash)
        reply = cas.put_shard(xet.Shard().add_file(content.name, content.terms))
        if reply.status != 200:
            if self.promises:
                self.broken.append(reply.body)
            return False
        return self.batch(daemon, {'type': 'addFile', 'path': key, 'xetHash': xet.text(content.name), 'mtime': 1})

    def batch(self, daemon, line):
        return xet.batch(daemon, 'main/hub', [line]).status == 200

    def act(self, source, daemon, cas, key, content):
        """One change of a key by one of the faces; whether it was acknowledged."""
        on_hub = source.random() < 0.6
        if content is None and on_hub:
            return self.batch(daemon, {'type': 'deleteFile', 'path': key})
        if content is None:
            return daemon.request('DELETE', f'/hub/{key}').status == 204
        if on_hub:
            return self.add(daemon, cas, key, content)
        return daemon.request('PUT', f'/hub/{key}', content.bytes).status == 200

    def write(self, daemon, writer, held, doubtful, seed, stop):
        """Keys of this writer alone. `doubtful`: what else a key may hold, after an operation that was not acknowledged."""
        source = random.Random(seed)
        cas = None
        while not stop.is_set():
            key = f'{writer}/{source.randrange(KEYS)}'
            content = None if source.random() < 0.2 else source.choice(self.contents)
            doubtful.setdefault(key, [held.get(key)]).append(content)
            try:
                cas = cas or xet.Cas(daemon, 'main/hub')
                acknowledged = self.act(source, daemon, cas, key, content)
            except Exception:  # killed in between
                time.sleep(0.02)
                continue
            if acknowledged:
                held[key] = content
                del doubtful[key]
                self.acknowledged += 1

    def collect(self, daemon, stop):
        while not stop.is_set():
            daemon.admin('gc', '--live-percent', '95', check=False)

    def check(self, daemon, held, doubtful):
        cas = xet.Cas(daemon, 'main/hub')
        for key in set(held) | set(doubtful):
            got = daemon.request('GET', f'/hub/{key}')
            self.assertIn(got.status, (200, 404), key)
            found = [content for content in doubtful.get(key, [held.get(key)])
                     if (got.body == content.bytes if content and got.status == 200 else content is None and got.status == 404)]
            self.assertTrue(found, f'{key}: {got.status}, {len(got.body)} bytes')
            held[key] = found[0]
            if found[0]:  # the hash is another one when S3 brought the bytes: the server cuts them where the format says
                hash_text = daemon.request('HEAD', f'/buckets/main/hub/resolve/{key}').headers['X-Xet-Hash']
                self.assertEqual(cas.download(xet.raw(hash_text)), found[0].bytes, key)
        doubtful.clear()

    def let_time_pass(self, daemon):
        """What a day does: that long a shard's files stay for the batch that names them, and promises of the first half."""
        daemon.edit_catalog(*(f'UPDATE {change}' for change in
                              ('xet_files SET expires_ms = 1', 'xet_grants SET expires_ms = 1', 'xorbs SET promised_ms = 1')))

    def test_server_killed_while_hub_clients_write(self):
        source = random.Random(11)
        held, doubtful, self.acknowledged, self.promised, self.broken = {}, {}, 0, set(), []
        with Daemon(tls=False, arguments=ARGUMENTS + ['1']) as daemon:
            daemon.request('PUT', '/hub')
            for kill in range(KILLS):
                self.promises = kill < KILLS // 2
                if kill == KILLS // 2:
                    self.promised.clear()
                    daemon.stop()
                    daemon.arguments = ARGUMENTS + ['0']
                    daemon.start()
                works = [functools.partial(self.write, daemon, i, held, doubtful, f'{kill}-{i}') for i in range(WRITERS)]
                kill_under(daemon, works + [functools.partial(self.collect, daemon)], source.uniform(0.2, 1.5))
                self.check(daemon, held, doubtful)
                self.assertNotIn('pack_damaged', daemon.log())
                self.assertEqual(self.broken, [])
            self.assertGreater(self.acknowledged, KILLS)
            for key in held:
                daemon.request('DELETE', f'/hub/{key}')
            self.let_time_pass(daemon)
            daemon.admin('gc')
            left = [name for _, _, names in os.walk(os.path.join(daemon.folder, 'packs')) for name in names]
            self.assertEqual(left, [])


if __name__ == '__main__':
    unittest.main()
