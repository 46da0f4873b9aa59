"""Trainers and engines that know nothing of steps: what TRL's, slime's and hosted trainers put becomes steps that followers bring byte for byte, and what is
published as steps is kept in TRL's and slime's layouts for their readers. Both other sides are the independent ones.
"""
import json
import os
import time
import unittest

from tests.support.checkpoints import sha256
from tests.support.clients import importable
from tests.support.daemon import Daemon

if not importable('numpy', 'safetensors', 'zstandard', 'xxhash', 'blake3', environment='formats'):
    raise unittest.SkipTest('setup/clients has not installed numpy, safetensors, zstandard, xxhash and blake3')

from tests.formats import container, modelexpress, pulse, series, skyrl, slime, trl  # noqa: E402

BUCKET = 'bridges'
STEPS = 4
HOT_LOAD = '/hot_load/v1/models/hot_load'


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.start()
        cls.folder = os.path.join(cls.daemon.scratch, 'work')
        os.makedirs(cls.folder)
        cls.steps = list(series.walk(cls.folder, steps=STEPS - 1))
        cls.daemon.request('PUT', f'/{BUCKET}')

    def setUp(self):
        self.name = self._testMethodName
        self.base = f'/v1/runs/{BUCKET}/{self.name}'

    def path(self, *names):
        return os.path.join(self.folder, self.name, *names)

    def tensors(self, step):
        return self.steps[step][2]

    def answer(self, method, target, body=None, status=200, headers=None):
        reply = self.daemon.request(method, target, body, headers, timeout=90)
        self.assertEqual(reply.status, status, (target, reply.body[:500]))
        return reply

    def open_run(self, **settings):
        self.answer('POST', self.base, b'{}')
        if settings:
            self.answer('PUT', f'{self.base}/settings', json.dumps(settings))

    def publish(self, *steps, **options):
        for step in steps:
            self.daemon.client('publish', '--run', f'{BUCKET}/{self.name}', '--step', step, '--anchor', 'auto', self.steps[step][1], **options)

    def put_folder(self, folder, key):
        """Every file below, the index last, as such trainers write."""
        names = [os.path.relpath(os.path.join(at, name), folder) for at, _, files in os.walk(folder) for name in files]
        last = (slime.INDEX, skyrl.MANIFEST)
        for name in sorted(names, key=lambda name: (name in last, name)):
            with open(os.path.join(folder, name), 'rb') as file:
                self.answer('PUT', f'/{BUCKET}/{self.name}/{key}/{name}', file.read())

    def put_file(self, path, key):
        with open(path, 'rb') as file:
            self.answer('PUT', f'/{BUCKET}/{self.name}/{key}', file.read())

    def wait_for_step(self, step, label=None):
        after = f'after={step - 1}&' if step else ''
        reply = self.answer('GET', f'{self.base}/steps/latest?{after}wait=50').json()
        self.assertEqual((reply['step'], label and reply.get('label')), (step, label))

    def assert_followed(self, step):
        """A new worker brings the tensors of this step of the series; gives its folder."""
        into = self.path('workers', str(step))
        self.daemon.client('follow', '--run', f'{BUCKET}/{self.name}', '--into', into, '--once')
        self.assertTrue(container.same(container.read_checkpoint(os.path.join(into, 'current')), self.tensors(step)))
        return into


class Trainers(Case):
    def test_trl(self):
        """An anchor, deltas of every key scheme, and an anchor again."""
        self.open_run(adopt='trl')
        os.makedirs(self.path())
        self.put_file(self.steps[0][1], 'anchors/step_000001.safetensors')
        self.wait_for_step(0, 'step_000001')
        for step, form in ((1, 'trl-gap'), (2, 'trl-raw'), (3, 'trl-v1')):
            trl.write_delta(form, self.path('delta'), self.tensors(step - 1), self.tensors(step), step + 1)
            self.put_file(self.path('delta'), f'deltas/step_{step + 1:06d}.safetensors')
            self.wait_for_step(step, f'step_{step + 1:06d}')
        into = self.assert_followed(3)
        self.assertEqual(sha256(os.path.join(into, 'current', 'model.safetensors')), self.steps[3][3])
        self.put_file(self.steps[2][1], 'anchors/step_000005.safetensors')
        self.wait_for_step(4, 'step_000005')
        self.assert_followed(2)

    def test_slime(self):
        """A full version, a delta of each encoding by several writers, a version without change, and a full one again."""
        self.open_run(adopt='slime')
        full = self.path(slime.version_name(1))
        container.write_sharded(full, self.tensors(0), 2, files={'config.json': '{}'})
        self.put_folder(full, slime.version_name(1))
        self.wait_for_step(0, 'weight_v000001')
        for step, form, checksum in ((1, 'slime-xor', 'xxh3-128'), (2, 'slime-overwrite', 'blake3'), (3, 'slime-xor', 'adler32')):
            folder = self.path(slime.version_name(step + 1))
            slime.write_delta(folder, form, self.tensors(step - 1), self.tensors(step), step + 1, checksum, 3)
            self.put_folder(folder, slime.version_name(step + 1))
            self.wait_for_step(step, f'weight_v{step + 1:06d}')
        into = self.assert_followed(3)
        self.assertTrue(os.path.exists(os.path.join(into, 'current', 'config.json')))
        empty = self.path(slime.version_name(5))
        slime.write_delta(empty, 'slime-xor', self.tensors(3), self.tensors(3), 5)
        self.put_folder(empty, slime.version_name(5))
        self.wait_for_step(4, 'weight_v000005')
        again = self.path(slime.version_name(6))
        container.write_sharded(again, self.tensors(1), 3, files={'config.json': '{}'})
        self.put_folder(again, slime.version_name(6))
        self.wait_for_step(5, 'weight_v000006')
        self.assert_followed(1)

    def test_slime_after_a_checkpoint_of_ours(self):
        """slime publishes nothing of its first weights: they are published for it, and its first delta is the next step."""
        self.publish(0)
        self.answer('PUT', f'{self.base}/settings', json.dumps({'adopt': 'slime'}))
        folder = self.path(slime.version_name(1))
        slime.write_delta(folder, 'slime-xor', self.tensors(0), self.tensors(1), 1)
        self.put_folder(folder, slime.version_name(1))
        self.wait_for_step(1, 'weight_v000001')
        self.assert_followed(1)

    def delta_without_a_step(self, adopt, key, write):
        """The log's reason for a first delta of a run without a step, and how to put it again."""
        self.open_run(adopt=adopt)
        folder = self.path(key)
        write(folder)
        self.put_folder(folder, key)
        deadline = time.monotonic() + 60
        while not (reason := self.reasons()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return reason[0], lambda: self.put_folder(folder, key)

    def reasons(self):
        lines = [line for line in self.daemon.log().splitlines() if 'adoption_failed' in line]
        return [line for line in lines if f'/{self.name} ' in line or f'{self.name}/' in line]

    def test_slime_is_seeded_by_a_version_0(self):
        name = slime.version_name(1)
        reason, again = self.delta_without_a_step(
            'slime',
            name,
            lambda folder: slime.write_delta(
                folder, 'slime-xor', self.tensors(0), self.tensors(1), 1
            ),
        )
        self.assertIn(f'deltabucket publish --run {BUCKET}/{self.name} CHECKPOINT', reason)
        self.assertIn(f"{self.name}/weight_v000000/'", reason)
        seed = f'{BUCKET}/{self.name}/weight_v000000/model.safetensors'
        self.daemon.client('put', self.steps[0][1], seed)
        self.wait_for_step(0, 'weight_v000000')
        again()
        self.wait_for_step(1, name)
        self.assert_followed(1)

    def test_skyrl(self):
        """Seeded by hand; one payload file, several, none; then what does not fit."""
        name = skyrl.version_name(1)
        reason, again = self.delta_without_a_step(
            'skyrl',
            name,
            lambda folder: skyrl.write_delta(folder, self.tensors(0), self.tensors(1), 1),
        )
        self.assertIn(f'deltabucket publish --run {BUCKET}/{self.name} CHECKPOINT', reason)
        self.publish(0)
        again()
        self.wait_for_step(1, name)
        for version, most in ((2, 20000), (3, 1 << 30)):
            folder = self.path(skyrl.version_name(version))
            before, after = self.tensors(version - 1), self.tensors(version)
            skyrl.write_delta(folder, before, after, version, most)
            self.put_folder(folder, skyrl.version_name(version))
            self.wait_for_step(version, skyrl.version_name(version))
        self.assertGreater(len(os.listdir(self.path(skyrl.version_name(2)))), 2)
        into = self.assert_followed(3)
        self.assertEqual(
            sha256(os.path.join(into, 'current', 'model.safetensors')), self.steps[3][3]
        )
        empty = self.path(skyrl.version_name(4))
        skyrl.write_delta(empty, self.tensors(3), self.tensors(3), 4)
        self.put_folder(empty, skyrl.version_name(4))
        self.wait_for_step(4, skyrl.version_name(4))
        self.assert_proven(4, ['full'] + ['skyrl-xor'] * 4)
        wrong = self.path(skyrl.version_name(6))
        skyrl.write_delta(wrong, self.tensors(3), self.tensors(2), 6)
        self.put_folder(wrong, skyrl.version_name(6))
        lame = self.path(skyrl.version_name(5))
        skyrl.write_delta(lame, self.tensors(0), self.tensors(2), 5)
        self.put_folder(lame, skyrl.version_name(5))
        latest = f'{self.base}/steps/latest?after=4&wait=3'
        self.assertEqual(self.answer('GET', latest, status=204).body, b'')

    def assert_proven(self, head, formats):
        for step, wanted in enumerate(formats):
            deadline = time.monotonic() + 60
            while (one := self.answer('GET', f'{self.base}/steps/{step}').json()).get(
                'verified'
            ) != 'ok' and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual((one.get('verified'), one['forms'][0]['format']), ('ok', wanted), step)
        self.assertEqual(head, len(formats) - 1)

    def put_window(self, window, ready=None):
        """A window's folders in no order, then the marker."""
        name = pulse.checkpoint_name(window)
        folder = self.path(name)
        for at, _, files in os.walk(folder):
            for file in files:
                path = os.path.join(at, file)
                self.put_file(path, f'{name}/{os.path.relpath(path, folder)}')
        self.mark_ready(window, ready)

    def mark_ready(self, window, ready=None):
        name = pulse.checkpoint_name(window)
        self.answer('PUT', f'/{BUCKET}/{self.name}/{name}/READY-{ready or window + 30}', b'')

    def write_window(self, window, step, codec=None, before=None, full=0, **options):
        """DELTA from step `before` (the one before) by `codec`, FULL of so many shards, or both."""
        folder = self.path(pulse.checkpoint_name(window))
        tensors = self.tensors(step)
        if codec:
            old = self.tensors(step - 1 if before is None else before)
            delta = os.path.join(folder, 'DELTA')
            pulse.write_delta(delta, codec, old, tensors, window, window - 30, **options)
        if full:
            pulse.write_full(os.path.join(folder, 'FULL'), tensors, window, full)

    def wait_for_refusal(self, window, reason):
        """The log says of this window, which no other test uses, why it is no step."""
        name = pulse.checkpoint_name(window)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            lines = [line for line in self.daemon.log().splitlines() if 'adoption_failed' in line]
            if any(name in line and reason in line for line in lines):
                return
            time.sleep(0.05)
        self.fail(f'{reason} is not in {lines}')

    def test_pulse(self):
        """A full window, deltas of every codec, one at an anchor, then what does not fit."""
        self.open_run(adopt='pulse')
        self.write_window(30, 0, full=1)
        self.put_window(30)
        self.wait_for_step(0, 'checkpoint-30')
        codecs = ('sparse_codec_v2', 'sparse_codec_v3', 'sparse_codec_v3.1')
        for step, codec in enumerate(codecs, 1):
            window = 30 + 30 * step
            self.write_window(window, step, codec, full=int(step == 2), packs=step != 2)
            self.put_window(window)
            self.wait_for_step(step, f'checkpoint-{window}')
        into = self.assert_followed(3)
        self.assertEqual(
            sorted(os.listdir(os.path.join(into, 'current'))),
            ['config.json', 'merges.txt', 'model.safetensors'],
        )
        self.assert_proven(3, ['full'] + ['pulse'] * 3)
        # A window is missing in between: nothing changes, and a full one goes on.
        self.write_window(180, 2, 'sparse_codec_v3.1', before=1)
        self.put_window(180)
        reason = "builds on checkpoint-150, and the run's newest step is checkpoint-120"
        self.wait_for_refusal(180, reason)
        self.write_window(210, 1, 'sparse_codec_v3.1', before=2, full=3)
        self.put_window(210)
        self.wait_for_step(4, 'checkpoint-210')
        into = self.assert_followed(1)
        self.assertIn('model.safetensors.index.json', os.listdir(os.path.join(into, 'current')))
        self.write_window(240, 2, 'sparse_codec_v3.1')
        self.put_window(240)
        self.wait_for_step(5, 'checkpoint-240')
        self.assert_followed(2)

    def test_pulse_after_a_checkpoint_of_ours(self):
        """What follows on a step that was published by hand is proven by its hash."""
        self.open_run(adopt='pulse')
        self.write_window(1060, 1, 'sparse_codec_v3.1')
        self.put_window(1060)
        self.wait_for_refusal(1060, 'delta on checkpoint-1030, and the run has no step yet')
        told = f'deltabucket publish --run {BUCKET}/{self.name} CHECKPOINT'
        self.wait_for_refusal(1060, told)
        self.publish(0)
        self.mark_ready(1060)
        self.wait_for_step(1, 'checkpoint-1060')
        self.assert_followed(1)

    def test_pulse_on_another_base(self):
        self.publish(0)
        self.answer('PUT', f'{self.base}/settings', json.dumps({'adopt': 'pulse'}))
        self.write_window(2060, 2, 'sparse_codec_v3.1')
        self.put_window(2060)
        self.wait_for_refusal(2060, 'weights_hash')
        latest = f'{self.base}/steps/latest?after=0&wait=1'
        self.assertEqual(self.answer('GET', latest, status=204).body, b'')

    def test_pulse_files_are_proven(self):
        """A damaged shard, a file that is missing, a window without folders."""
        self.open_run(adopt='pulse')
        self.write_window(3030, 0, full=1)
        full = self.path(pulse.checkpoint_name(3030), 'FULL')
        whole = os.path.join(full, 'model.safetensors')
        with open(whole, 'r+b') as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        self.put_window(3030)
        self.wait_for_refusal(3030, 'SHA-256 that the file_manifest says')
        self.answer('DELETE', f'/{BUCKET}/{self.name}/checkpoint-3030/FULL/merges.txt', status=204)
        with open(whole, 'r+b') as file:
            file.seek(-1, os.SEEK_END)
            file.write(last)
        key = f'{pulse.checkpoint_name(3030)}/FULL/model.safetensors'
        self.put_file(whole, key)
        self.mark_ready(3030)
        self.wait_for_refusal(3030, "merges.txt', which is missing")
        self.mark_ready(3090)
        self.wait_for_refusal(3090, 'neither DELTA/metadata.json.gz nor')
        self.put_window(3030)
        self.wait_for_step(0, 'checkpoint-3030')
        self.assert_followed(0)

    def put_modelexpress(self, name, write):
        folder = self.path(name)
        write(folder)
        self.put_folder(folder, name)

    def test_modelexpress(self):
        """A full version and deltas under ids that tell no order, in folders of any depth."""
        self.open_run(adopt='modelexpress')
        tensors = self.tensors
        self.put_modelexpress(
            'policy/0c1d-full', lambda to: modelexpress.write_full(to, tensors(0))
        )
        self.wait_for_step(0, '0c1d-full')
        self.put_modelexpress(
            'policy/ffff',
            lambda to: modelexpress.write_delta(to, tensors(0), tensors(1), 'ffff', '0c1d-full'),
        )
        self.wait_for_step(1, 'ffff')
        self.put_modelexpress(
            'policy/0001',
            lambda to: modelexpress.write_delta(to, tensors(1), tensors(2), 'aaaa', 'ffff'),
        )
        self.wait_for_step(2, 'aaaa')  # the index's word counts, not the folder's
        self.assert_followed(2)
        self.put_modelexpress(
            'policy/other',
            lambda to: modelexpress.write_delta(to, tensors(2), tensors(3), 'bbbb', 'ffff'),
        )
        latest = f'{self.base}/steps/latest?after=2&wait=3'
        self.assertEqual(self.answer('GET', latest, status=204).body, b'')
        self.put_modelexpress(
            'policy/next',
            lambda to: modelexpress.write_delta(to, tensors(2), tensors(3), 'bbbb', 'aaaa'),
        )
        self.wait_for_step(3, 'bbbb')
        self.put_modelexpress(
            'policy/again', lambda to: modelexpress.write_full(to, tensors(1), 3)
        )
        self.wait_for_step(4, 'again')
        self.assert_followed(1)

    def test_modelexpress_after_a_checkpoint_of_ours(self):
        self.publish(0)
        self.answer('PUT', f'{self.base}/settings', json.dumps({'adopt': 'modelexpress'}))
        self.put_modelexpress(
            'u-1',
            lambda to: modelexpress.write_delta(
                to, self.tensors(0), self.tensors(1), 'u-1', 'the seed'
            ),
        )
        self.wait_for_step(1, 'u-1')
        self.assert_followed(1)

    def test_stitch(self):
        """The pointer completes a publish; versions before it come along."""
        self.open_run(adopt='stitch')
        full = self.path('updates', slime.version_name(1))
        container.write_sharded(full, self.tensors(0), 2, files={'config.json': '{}'})
        self.put_folder(full, f'updates/{slime.version_name(1)}')
        for step in (1, 2):
            folder = self.path('updates', slime.version_name(step + 1))
            slime.write_delta(folder, 'slime-xor', self.tensors(step - 1), self.tensors(step), step + 1)
            self.put_folder(folder, f'updates/{slime.version_name(step + 1)}')
        self.answer('PUT', f'/{BUCKET}/{self.name}/latest', b'run-1/weight_v000003')
        self.answer('GET', f'{self.base}/steps/latest?min_version=2&wait=50')
        self.wait_for_step(2, 'run-1/weight_v000003')
        self.assert_followed(2)

    def test_a_delta_that_does_not_fit_changes_nothing(self):
        self.open_run(adopt='slime')
        full = self.path(slime.version_name(1))
        container.write_sharded(full, self.tensors(0), 2, files={'config.json': '{}'})
        self.put_folder(full, slime.version_name(1))
        self.wait_for_step(0, 'weight_v000001')
        wrong = self.path(slime.version_name(2))
        slime.write_delta(wrong, 'slime-xor', self.tensors(1), self.tensors(2), 2)
        self.put_folder(wrong, slime.version_name(2))
        right = self.path('right', slime.version_name(2))
        slime.write_delta(right, 'slime-xor', self.tensors(0), self.tensors(1), 2)
        self.assertEqual(self.answer('GET', f'{self.base}/steps/latest?after=0&wait=3', status=204).body, b'')
        self.put_folder(right, slime.version_name(2))
        self.wait_for_step(1, 'weight_v000002')
        self.assert_followed(1)

    def test_hot_load(self):
        """Full, then deltas by adler32 in both spellings; what cannot be is told at once."""
        self.open_run(hot_load='my-deployment', hot_load_prefix=f'{self.name}/')
        full = self.path('snap-0')
        container.write_sharded(full, self.tensors(0), 2, files={'config.json': '{}'})
        self.put_folder(full, 'snap-0')
        self.signal(200, identity='snap-0')
        self.wait_for_step(0, 'snap-0')
        for step, spelling in ((1, 'adler32'), (2, 'alder32')):
            folder = self.path(f'snap-{step}')
            slime.write_delta(folder, 'slime-xor', self.tensors(step - 1), self.tensors(step), step, 'adler32')
            self.put_folder(folder, f'snap-{step}')
            self.signal(200, identity=f'snap-{step}', incremental_snapshot_metadata={
                'previous_snapshot_identity': f'snap-{step - 1}', 'compression_format': 'zstd', 'checksum_format': spelling})
            self.wait_for_step(step, f'snap-{step}')
        self.assert_followed(2)
        self.signal(200, identity='snap-2', incremental_snapshot_metadata={
            'previous_snapshot_identity': 'snap-1', 'compression_format': 'zstd', 'checksum_format': 'adler32'})
        self.signal(422, identity='snap-3', incremental_snapshot_metadata={
            'previous_snapshot_identity': 'snap-2', 'compression_format': 'arc_v2', 'checksum_format': 'alder32'})
        self.signal(409, identity='snap-9', incremental_snapshot_metadata={
            'previous_snapshot_identity': 'snap-8', 'compression_format': 'zstd', 'checksum_format': 'adler32'})

    def signal(self, status, **body):
        headers = {'fireworks-deployment': 'my-deployment', 'fireworks-model': 'policy', 'Content-Type': 'application/json'}
        return self.answer('POST', HOT_LOAD, json.dumps(dict(body, reset_prompt_cache=True)), status, headers)


class Readers(Case):
    def get(self, key, path):
        reply = self.answer('GET', f'/{BUCKET}/{self.name}/{key}')
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as file:
            file.write(reply.body)
        return path

    def test_trl(self):
        """A worker of TRL's kind: the anchor, then each delta; it asks for what is still being made and waits."""
        self.open_run(view_trl=True)
        self.publish(*range(STEPS), environment={'XDG_STATE_HOME': self.path('state')})
        held = container.read(self.get('anchors/step_000000.safetensors', self.path('anchor')))[0]
        self.assertTrue(container.same(held, self.tensors(0)))
        for step in range(1, STEPS):
            form, held = trl.apply(self.get(f'deltas/step_{step:06d}.safetensors', self.path(f'delta-{step}')), held)
            self.assertEqual(form, 'trl-gap')
            self.assertTrue(container.same(held, self.tensors(step)))

    def test_slime(self):
        """An engine of slime's kind mirrors updates/ and pulls; once from the start and once at the end."""
        self.open_run(view_slime=True)
        self.publish(*range(STEPS), environment={'XDG_STATE_HOME': self.path('state')})
        root = self.path('updates')
        for step in range(1, STEPS):
            folder = os.path.join(root, slime.version_name(step))
            self.get(f'updates/{slime.version_name(step)}/{slime.INDEX}', os.path.join(folder, slime.INDEX))
            listing = self.answer('GET', f'/{BUCKET}?list-type=2&prefix={self.name}/updates/{slime.version_name(step)}/').body.decode()
            for piece in listing.split('<Key>')[1:]:
                key = piece.split('</Key>')[0]
                self.get(key[len(self.name) + 1:], os.path.join(self.path(), key[len(self.name) + 1:]))
        receiver = slime.Receiver(self.tensors(0))
        for step in range(1, STEPS):
            self.assertTrue(container.same(receiver.pull(root, step), self.tensors(step)))
        self.assertTrue(container.same(slime.Receiver(self.tensors(0)).pull(root, STEPS - 1), self.tensors(STEPS - 1)))

    def test_view_keys_are_the_servers(self):
        self.open_run(view_trl=True, view_slime=True)
        self.publish(0, environment={'XDG_STATE_HOME': self.path('state')})
        for key in ('deltas/step_000001.safetensors', 'updates/weight_v000001/model.safetensors.index.json'):
            self.answer('PUT', f'/{BUCKET}/{self.name}/{key}', b'mine', status=403)
