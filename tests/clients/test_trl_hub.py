"""TRL's weight sync over a bucket of ours: a trainer and two engines with the real huggingface_hub (trl_worker.py), bit-exact at every version.

The series is tests/data/small, or what $DELTABUCKET_SERIES names.
"""
import glob
import json
import os
import subprocess
import time
import unittest

from tests.support.checkpoints import SMALL, sha256
from tests.support.clients import both_schemes, read
from tests.support.daemon import SOURCE
from tests.support.hub import MISSING, NEWEST, HubCase, hub_program, ready

SERIES = os.environ.get('DELTABUCKET_SERIES', SMALL)
SCRIPT = os.path.join(SOURCE, 'tests', 'clients', 'trl_worker.py')
INTERVAL = 10


def known_sums():
    """SHA-256 of the full checkpoints, in their order."""
    with open(os.path.join(SERIES, 'SHA256SUMS')) as sums:
        return [digest for _, digest in sorted(line.split()[::-1] for line in sums)]


class Worker:
    def __init__(self, case, role, bucket, **variables):
        self.log = case.path(f'{role}.log')
        with open(self.log, 'ab') as errors:
            self.process = subprocess.Popen([hub_program(NEWEST, 'python'), SCRIPT, role, bucket, SERIES, str(INTERVAL)], stdin=subprocess.PIPE,
                                            env=case.environment(PYTHONPATH=SOURCE, **variables), stdout=subprocess.PIPE, stderr=errors)
        case.addCleanup(self.close)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request).encode() + b'\n')
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(read(self.log)[-3000:].decode(errors='replace'))
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@unittest.skipUnless(ready(NEWEST), MISSING)
@both_schemes
class TrlHub(HubCase):
    version = NEWEST

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.sums = known_sums()

    def walk(self, bucket, versions):
        """Every version through trainer and engine; gives what the trainer said of each."""
        trainer = Worker(self, 'trainer', bucket)
        engine = Worker(self, 'engine', bucket, HF_HOME=self.path('homes', f'engine-{bucket.replace("/", "-")}'))
        updates = []
        for version in range(1, versions + 1):
            update = trainer.ask({'version': version})
            self.assertEqual(update['sha256'], self.sums[version - 1], version)
            self.assertEqual(engine.ask(update)['sha256'], self.sums[version - 1], version)
            updates.append(update)
        return updates

    def test_every_version(self):
        updates = self.walk('main/trl', len(self.sums))
        files = {file['path'] for file in self.hub.list_bucket_tree('main/trl', recursive=True)}
        self.assertEqual(files, {update['filename'] for update in updates})
        # A late engine starts at the last anchor and follows the deltas after it.
        late = Worker(self, 'engine', 'main/trl', HF_HOME=self.path('homes', 'late'))
        last = max(at for at, update in enumerate(updates) if update['update_kind'] == 'dense')
        for at in range(last, len(updates)):
            self.assertEqual(late.ask(updates[at])['sha256'], self.sums[at])

    def test_the_run_adopts(self):
        """A run with the setting `adopt` makes steps of what TRL sends, and a follower of the run ends with the same bits."""
        bucket, versions = self.new_bucket('trl-adopted'), INTERVAL + 2
        base = '/v1/runs/trl-adopted/policy'
        self.assertEqual(self.daemon.request('POST', base).status, 200)
        reply = self.daemon.request('PUT', f'{base}/settings', json.dumps({'adopt': 'trl', 'adopt_prefix': ''}))
        self.assertEqual(reply.status, 200, reply.body)
        self.walk(bucket, versions)
        limit = time.monotonic() + 90
        while (head := self.daemon.request('GET', base).json()['head']) != versions - 1:
            self.assertLess(time.monotonic(), limit, f'head is {head}: {self.daemon.log()[-2000:]}')
            time.sleep(0.05)
        self.assertEqual(self.daemon.request('GET', f'{base}/steps/{versions - 1}').json()['label'], f'step_{versions:06d}')
        into = self.path('followed')
        self.daemon.client('follow', '--run', 'trl-adopted/policy', '--into', into, '--once')
        followed, = glob.glob(os.path.join(into, 'current', '*.safetensors'))
        self.assertTrue(self.same_weights(followed, versions))

    def same_weights(self, path, version):
        """Whether the tensors of this file are those of the checkpoint of this version: their file is written with the series' header and hashed."""
        template, = glob.glob(os.path.join(SERIES, 'anchors', '*.safetensors'))
        words = 'import sys; from tests.formats import container; container.rewrite(sys.argv[1], container.read(sys.argv[2])[0], sys.argv[3])'
        self.run_program(hub_program(NEWEST, 'python'), '-c', words, template, path, self.path('rewritten'), PYTHONPATH=SOURCE)
        return sha256(self.path('rewritten')) == self.sums[version - 1]


if __name__ == '__main__':
    unittest.main()
