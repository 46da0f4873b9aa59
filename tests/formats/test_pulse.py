"""PULSE's deltas: what a trainer of grail's kind writes is applied, told and transcoded, and comes
out as it does by hand.
"""
import json
import os
import shutil
import tempfile
import unittest

from tests.support.checkpoints import sha256
from tests.support.clients import importable

if not importable('numpy', 'safetensors', 'zstandard', environment='formats'):
    raise unittest.SkipTest('setup/clients has not installed numpy, safetensors and zstandard')

import numpy  # noqa: E402

from tests.formats import container, pulse, series  # noqa: E402
from tests.formats.container import Tensor  # noqa: E402
from tests.formats.series import run  # noqa: E402


def random_tensor(dtype, shape, seed):
    """Any bits, but no zeros: what becomes of their signs is grail's fault."""
    size = int(numpy.prod(shape)) * (4 if dtype == 'F32' else 2)
    data = numpy.random.default_rng(seed).integers(1, 256, size, numpy.uint8)
    return Tensor(dtype, list(shape), data)


def changed(tensor, share, seed):
    """Other bits in some elements."""
    data = tensor.data.reshape(-1, 4 if tensor.dtype == 'F32' else 2).copy()
    places = numpy.random.default_rng(seed).random(len(data)) < share
    data[places, 0] ^= 1
    return Tensor(tensor.dtype, tensor.shape, data.reshape(-1))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)


class Facts(unittest.TestCase):
    """What the tests of grail's repository state of its encoder holds of the one here."""

    def test_positions_are_steps(self):
        index, _ = pulse.positions(2, numpy.array([1024, 1025, 1027, 2048]), [4096])
        self.assertEqual(numpy.frombuffer(index, '<i4').tolist(), [1024, 1, 2, 1021])
        rows = numpy.array([0, 0, 0, 0, 1, 1, 1])
        columns = numpy.array([5, 10, 15, 20, 3, 8, 13])
        down, along = pulse.steps_along(rows, columns)
        self.assertEqual(down.tolist(), [0, 0, 0, 0, 1, 0, 0])
        self.assertEqual(along.tolist(), [5, 5, 5, 5, 3, 5, 5])

    def test_widths(self):
        for steps, least, wanted in (
            ([], 'uint8', 'uint8'),
            ([0, 1, 100, 255], 'uint8', 'uint8'),
            ([0, 256, 1000, 65535], 'uint8', 'uint16'),
            ([0, 100, 65536, 1000000], 'uint8', 'int32'),
            ([0, 1, 100], 'uint16', 'uint16'),
        ):
            self.assertEqual(pulse.width_of(numpy.array(steps, int), least), wanted)

    def test_a_vector_has_one_column(self):
        self.assertEqual(pulse.columns_of([100]), 1)
        self.assertEqual(pulse.columns_of([8, 4, 5]), 20)


class Series(Case):
    @classmethod
    def setUpClass(cls):
        cls.checkpoints = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.checkpoints)
        cls.steps = list(series.walk(cls.checkpoints, steps=3))

    def test_we_take_theirs(self):
        for codec in pulse.CODECS:
            for packs in (False, True):
                with self.subTest(codec=codec, packs=packs):
                    held = self.steps[0][1]
                    for number in range(1, len(self.steps)):
                        before, after = self.steps[number - 1][2], self.steps[number][2]
                        delta = self.path(f'{codec}-{packs}-{number}')
                        window = 30 * number
                        pulse.write_delta(delta, codec, before, after, window, window - 30, packs)
                        out = delta + '.safetensors'
                        run('apply', held, delta, out)
                        self.assertEqual(sha256(out), self.steps[number][3])
                        self.assertTrue(container.same(pulse.apply(delta, before), after))
                        held = out

    def test_it_is_told_and_transcoded(self):
        delta, out = self.path('delta'), self.path('out')
        before, after = self.steps[0][2], self.steps[1][2]
        pulse.write_delta(delta, 'sparse_codec_v3.1', before, after, 60, 30)
        told = json.loads(run('inspect', '--json', delta).stdout)
        self.assertEqual((told['format'], told['step'], told['base_step']), ('pulse', 60, 30))
        run('transcode', '--to', 'ulp-class', '--base', self.steps[0][1], delta, out)
        run('apply', self.steps[0][1], out, self.path('back.safetensors'))
        self.assertEqual(sha256(self.path('back.safetensors')), self.steps[1][3])

    def test_a_wrong_base_and_a_damaged_file_are_refused(self):
        delta, out = self.path('delta'), self.path('out.safetensors')
        pulse.write_delta(delta, 'sparse_codec_v2', self.steps[1][2], self.steps[2][2], 60, 30)
        done = run('apply', self.steps[0][1], delta, out, check=False)
        self.assertEqual((done.returncode, os.path.exists(out)), (12, False), done.stderr)
        self.assertIn('weights_hash', done.stderr)
        with open(os.path.join(delta, pulse.PAYLOAD), 'r+b') as file:
            file.seek(20)
            file.write(b'\xff')
        done = run('apply', self.steps[1][1], delta, out, check=False)
        self.assertEqual((done.returncode, os.path.exists(out)), (12, False), done.stderr)
        self.assertIn('SHA-256', done.stderr)


class Shapes(Case):
    def test_every_dtype_and_width(self):
        """Rows and columns in 8, 16 and 32 bits; one to four dimensions; few and all elements."""
        base = {
            'a.wide': random_tensor('BF16', [3, 70000], 1),
            'b.tall': random_tensor('F16', [70000, 3], 2),
            'c.vector': random_tensor('F32', [70001], 3),
            'd.grid': random_tensor('BF16', [4, 3, 2, 5], 4),
            'e.same': random_tensor('F32', [7, 9], 5),
            'f.large': random_tensor('BF16', [1200, 1000], 6),
        }
        shares = {'a.wide': 2e-5, 'b.tall': 2e-5, 'c.vector': 1e-4, 'd.grid': 1, 'e.same': 0}
        after = {
            name: changed(tensor, shares.get(name, 0.01), i)
            for i, (name, tensor) in enumerate(base.items())
        }
        checkpoint = self.path('base.safetensors')
        container.write(checkpoint, base)
        for codec in pulse.CODECS:
            with self.subTest(codec=codec):
                delta, out = self.path(codec), self.path(codec + '.safetensors')
                pulse.write_delta(delta, codec, base, after, 60, 30)
                run('apply', checkpoint, delta, out)
                self.assertTrue(container.same(container.read(out)[0], after))
                self.assertTrue(container.same(pulse.apply(delta, base), after))

    def test_a_zero_whose_sign_alone_changed_is_lost_by_grail(self):
        base = {'w': Tensor('BF16', [2], numpy.array([0, 0, 1, 1], numpy.uint8))}
        after = {'w': Tensor('BF16', [2], numpy.array([0, 0x80, 1, 1], numpy.uint8))}
        checkpoint, delta, out = self.path('base'), self.path('delta'), self.path('out')
        container.write(checkpoint, base)
        pulse.write_delta(delta, 'sparse_codec_v3.1', base, after, 60, 30)
        done = run('apply', checkpoint, delta, out, check=False)
        self.assertEqual(done.returncode, 12, done.stderr)
        self.assertIn('its maker lost a change', done.stderr)
