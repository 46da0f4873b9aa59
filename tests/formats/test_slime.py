"""slime's version folders both ways, for both encodings and all three checksums: ours pass a receiver that is as strict as an engine's, and what a trainer
of slime's kind writes is applied.
"""
import json
import os
import shutil
import tempfile
import unittest

from tests.support.checkpoints import sha256
from tests.support.clients import importable

if not importable('numpy', 'safetensors', 'zstandard', 'xxhash', 'blake3', environment='formats'):
    raise unittest.SkipTest('setup/clients has not installed numpy, safetensors, zstandard, xxhash and blake3')

import numpy  # noqa: E402

from tests.formats import container, series, slime  # noqa: E402
from tests.formats.series import run  # noqa: E402

KINDS = [(form, checksum) for form in slime.ENCODINGS for checksum in slime.CHECKSUMS]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def diff(self, form, checksum, version, base, following, out):
        run('diff', '--format', form, '--checksum', checksum, '--step', version, base, following, out)


@unittest.skipUnless(series.knows('transcode'), 'this program does not write slime deltas')
class Series(Case):
    @classmethod
    def setUpClass(cls):
        cls.checkpoints = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.checkpoints)
        cls.steps = list(series.walk(cls.checkpoints, steps=3))

    def test_their_receiver_takes_ours(self):
        """A chain of three versions pulled in one go, and step by step."""
        for form, checksum in KINDS:
            with self.subTest(form=form, checksum=checksum):
                root = self.path(form, checksum)
                os.makedirs(root)
                stepwise = slime.Receiver(self.steps[0][2])
                for number in range(1, len(self.steps)):
                    self.diff(form, checksum, number, self.steps[number - 1][1], self.steps[number][1], os.path.join(root, slime.version_name(number)))
                    self.assertTrue(container.same(stepwise.pull(root, number), self.steps[number][2]))
                    self.assertEqual(slime.read_index(os.path.join(root, slime.version_name(number)))['metadata']['checksum_format'], checksum)
                self.assertTrue(container.same(slime.Receiver(self.steps[0][2]).pull(root, len(self.steps) - 1), self.steps[-1][2]))

    def test_we_take_theirs(self):
        for form, checksum in KINDS:
            for ranks in (1, 3):
                with self.subTest(form=form, checksum=checksum, ranks=ranks):
                    held = self.steps[0][1]
                    for number in range(1, len(self.steps)):
                        version = self.path(f'{form}-{checksum}-{ranks}', slime.version_name(number))
                        slime.write_delta(version, form, self.steps[number - 1][2], self.steps[number][2], number, checksum, ranks)
                        out = version + '.safetensors'
                        run('apply', held, version, out)
                        self.assertEqual(sha256(out), self.steps[number][3])
                        held = out

    def test_a_full_version_ends_the_walk_back(self):
        """Version 2 is a checkpoint: a receiver that holds nothing starts there."""
        root = self.path('root')
        os.makedirs(root)
        self.diff('slime-xor', 'xxh3-128', 1, self.steps[0][1], self.steps[1][1], os.path.join(root, slime.version_name(1)))
        container.write_sharded(os.path.join(root, slime.version_name(2)), self.steps[2][2], 2, files={'config.json': '{}'})
        self.diff('slime-xor', 'xxh3-128', 3, os.path.join(root, slime.version_name(2)), self.steps[3][1], os.path.join(root, slime.version_name(3)))
        self.assertTrue(container.same(slime.Receiver().pull(root, 3), self.steps[3][2]))


@unittest.skipUnless(series.knows('transcode'), 'this program does not write slime deltas')
class Made(Case):
    def tensors(self, step=0):
        """All widths, a change in each at step 1."""
        draw = numpy.random.default_rng(5)
        values = {'bf16': ('BF16', draw.integers(0, 65536, 5000, '<u2')), 'f32': ('F32', draw.random(700, 'float32')),
                  'fp8': ('F8_E4M3', draw.integers(0, 256, 9001, 'u1')), 'ints': ('I32', draw.integers(-9, 9, 64, '<i4')),
                  'same': ('BF16', draw.integers(0, 65536, 100, '<u2')), 'scalar': ('I64', numpy.array([7 + step], '<i8')),
                  'empty': ('BF16', numpy.zeros(0, '<u2'))}
        if step:
            values['bf16'][1][[0, 17, 4999]] ^= 0x8001
            values['f32'][1][5] = -1.5
            values['fp8'][1][8000:8100] ^= 3
            values['ints'][1][63] += 1
        return {name: container.Tensor(dtype, [] if name == 'scalar' else [data.size], data.view('u1')) for name, (dtype, data) in values.items()}

    def write_pair(self):
        container.write(self.path('base'), self.tensors(), {'format': 'pt'})
        container.write(self.path('next'), self.tensors(1), {'format': 'pt'})

    def test_every_dtype_both_ways(self):
        self.write_pair()
        for form, checksum in KINDS:
            with self.subTest(form=form, checksum=checksum):
                ours, theirs, out = (self.path(f'{form}-{checksum}-{name}') for name in ('ours', 'theirs', 'out'))
                self.diff(form, checksum, 1, self.path('base'), self.path('next'), ours)
                self.assertTrue(container.same(slime.apply(ours, self.tensors(), 1)[1], self.tensors(1)))
                slime.write_delta(theirs, form, self.tensors(), self.tensors(1), 1, checksum, 2)
                run('apply', self.path('base'), theirs, out)
                self.assertEqual(sha256(out), sha256(self.path('next')))

    def test_a_version_without_change_is_an_empty_map(self):
        self.write_pair()
        for form in slime.ENCODINGS:
            with self.subTest(form=form):
                ours, theirs, out = (self.path(f'{form}-{name}') for name in ('ours', 'theirs', 'out'))
                self.diff(form, 'xxh3-128', 4, self.path('base'), self.path('base'), ours)
                self.assertEqual(slime.read_index(ours)['weight_map'], {})
                self.assertTrue(container.same(slime.apply(ours, self.tensors(), 4)[1], self.tensors()))
                slime.write_delta(theirs, form, self.tensors(), self.tensors(), 4)
                run('apply', self.path('base'), theirs, out)
                self.assertEqual(sha256(out), sha256(self.path('base')))

    def test_what_differs_from_its_checksum_is_refused(self):
        """And the base stays, and nothing is left of the result."""
        self.write_pair()
        for form, checksum in KINDS:
            with self.subTest(form=form, checksum=checksum):
                theirs = self.path(f'{form}-{checksum}')
                wrong = dict(self.tensors(1), bf16=self.tensors(1)['bf16']._replace(data=self.tensors(1)['bf16'].data ^ 1))
                slime.write_delta(theirs, form, self.tensors(), wrong, 1, checksum)
                shard = os.path.join(theirs, 'model-00000-of-00001.safetensors')
                tensors, sums = container.read(shard)
                sums['bf16'] = slime.CHECKSUMS[checksum](self.tensors(1)['bf16'].data.tobytes())
                container.write(shard, tensors, sums)
                done = run('apply', self.path('base'), theirs, theirs + '.out', check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn('bf16', done.stderr)
                self.assertFalse(os.path.exists(theirs + '.out'))

    def refused(self, name, *words):
        done = run('apply', self.path('base'), self.path(name), self.path('out'), check=False)
        self.assertNotEqual(done.returncode, 0)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(os.path.exists(self.path('out')))

    def test_other_compressions_checksums_and_encodings_are_refused(self):
        self.write_pair()
        slime.write_delta(self.path('theirs'), 'slime-xor', self.tensors(), self.tensors(1), 1)
        good = slime.read_index(self.path('theirs'))
        for field, value in (('compression_format', 'arc_v2'), ('checksum_format', 'crc32'), ('delta_encoding', 'add')):
            with self.subTest(field=field):
                bad = dict(good, metadata=dict(good['metadata'], **{field: value}))
                with open(self.path('theirs', slime.INDEX), 'w') as file:
                    json.dump(bad, file)
                self.refused('theirs', value)

    def test_two_frames_and_frames_without_size_are_refused_or_read_right(self):
        """Readers differ here: whoever takes them must end with the right bytes."""
        self.write_pair()
        for kind in ('two frames', 'no size', 'cut'):
            with self.subTest(kind=kind):
                shutil.rmtree(self.path('theirs'), ignore_errors=True)
                slime.write_delta(self.path('theirs'), 'slime-xor', self.tensors(), self.tensors(1), 1)
                shard = self.path('theirs', 'model-00000-of-00001.safetensors')
                tensors, sums = container.read(shard)
                payload = slime.difference('xor', self.tensors()['bf16'].data, self.tensors(1)['bf16'].data)
                frame = {'two frames': slime.compress(payload[:99]) + slime.compress(payload[99:]), 'cut': slime.compress(payload)[:-5],
                         'no size': slime.zstandard.ZstdCompressor(level=1, write_content_size=False).compress(payload)}[kind]
                container.write(shard, dict(tensors, bf16=container.array('U8', numpy.frombuffer(frame, 'u1'))), sums)
                done = run('apply', self.path('base'), self.path('theirs'), self.path('out'), check=False)
                if done.returncode == 0 and kind != 'cut':
                    self.assertEqual(sha256(self.path('out')), sha256(self.path('next')))
                    os.remove(self.path('out'))
                else:
                    self.assertIn('bf16', done.stderr)
                    self.assertFalse(os.path.exists(self.path('out')))

    def test_a_shard_that_is_missing_and_one_too_many(self):
        self.write_pair()
        slime.write_delta(self.path('theirs'), 'slime-xor', self.tensors(), self.tensors(1), 1, ranks=2)
        os.remove(self.path('theirs', 'model-00001-of-00002.safetensors'))
        self.refused('theirs', 'model-00001-of-00002.safetensors')
