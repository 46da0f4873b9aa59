"""TRL's files both ways: what the command line writes is read by the independent reader, what that one's writer writes is applied."""
import os
import shutil
import tempfile
import unittest

from tests.support.checkpoints import sha256
from tests.support.clients import importable

if not importable('numpy', 'safetensors', environment='formats'):
    raise unittest.SkipTest('setup/clients has not installed numpy and safetensors')

import numpy  # noqa: E402

from tests.formats import container, series, trl  # noqa: E402
from tests.formats.series import run  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)


class Series(Case):
    @classmethod
    def setUpClass(cls):
        cls.checkpoints = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.checkpoints)
        cls.steps = list(series.walk(cls.checkpoints, steps=2))

    def test_their_reader_takes_ours(self):
        for form in trl.FORMATS:
            for (_, base, tensors, _), (_, following, wanted, _) in zip(self.steps, self.steps[1:]):
                with self.subTest(form=form, step=following):
                    out = self.path(f'{form}-{os.path.basename(following)}')
                    run('diff', '--format', form, base, following, out)
                    found, result = trl.apply(out, tensors)
                    self.assertEqual(found, form)
                    self.assertTrue(container.same(result, wanted))

    def test_we_take_theirs(self):
        for form in trl.FORMATS:
            for number in range(1, len(self.steps)):
                (_, base, tensors, _), (_, _, wanted, known) = self.steps[number - 1:number + 1]
                for mention in (True, False):
                    with self.subTest(form=form, number=number, mention=mention):
                        name = f'{form}-{number}-{mention}'
                        trl.write_delta(form, self.path(name), tensors, wanted, number, mention)
                        run('apply', base, self.path(name), self.path(name + '.out'))
                        self.assertEqual(sha256(self.path(name + '.out')), known)


class Made(Case):
    """Small tensors for what the real series does not have."""

    def exchange(self, form, base, following):
        """Both ways for one pair of checkpoints."""
        container.write(self.path('base'), base, {'format': 'pt'})
        container.write(self.path('next'), following, {'format': 'pt'})
        run('diff', '--format', form, self.path('base'), self.path('next'), self.path('ours'))
        self.assertTrue(container.same(trl.apply(self.path('ours'), base)[1], following))
        trl.write_delta(form, self.path('theirs'), base, following)
        run('apply', self.path('base'), self.path('theirs'), self.path('out'))
        self.assertEqual(sha256(self.path('out')), sha256(self.path('next')))

    def tensors(self, **changes):
        values = {'wide': numpy.zeros(200_000, '<u2'), 'narrow': numpy.arange(300, dtype='<u2'), 'same': numpy.arange(7, dtype='<u2')}
        for name, positions in changes.items():
            values[name] = values[name].copy()
            values[name][positions] ^= 0x8001
        return {name: container.array('BF16', data) for name, data in values.items()}

    def test_gaps_over_65535_are_u32(self):
        following = self.tensors(wide=[5, 70_000, 199_999], narrow=[0, 1, 299])
        self.exchange('trl-gap', self.tensors(), following)
        self.assertEqual(container.read(self.path('ours'))[0]['wide.idx'].dtype, 'U32')
        self.assertEqual(container.read(self.path('ours'))[0]['narrow.idx'].dtype, 'U16')

    def test_the_widest_gap_of_16_bits(self):
        following = self.tensors(wide=[0, 65_536])
        self.exchange('trl-gap', self.tensors(), following)
        self.assertEqual(container.read(self.path('ours'))[0]['wide.idx'].dtype, 'U16')

    def test_every_format_of_a_sparse_change(self):
        for form in trl.FORMATS:
            with self.subTest(form=form):
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)
                self.exchange(form, self.tensors(), self.tensors(wide=[0, 199_999], narrow=range(300)))

    def test_nothing_changed(self):
        """Each parameter with two empty tensors, or none mentioned at all."""
        for form in trl.FORMATS:
            with self.subTest(form=form):
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)
                self.exchange(form, self.tensors(), self.tensors())

    def test_an_anchor_is_a_checkpoint(self):
        """Anchors are full: they serve as base."""
        trl.write_anchor(self.path('anchor'), self.tensors())
        trl.write_delta('trl-gap', self.path('delta'), self.tensors(), self.tensors(narrow=[3]))
        run('apply', self.path('anchor'), self.path('delta'), self.path('out'))
        self.assertTrue(container.same(container.read(self.path('out'))[0], self.tensors(narrow=[3])))

    def test_keys_that_are_not_ours_are_passed_over(self):
        tensors, metadata = trl.encode('trl-gap', self.tensors(), self.tensors(narrow=[3]), 7)
        container.write(self.path('base'), self.tensors())
        container.write(self.path('delta'), tensors, dict(metadata, repo='models/policy', num_changed_params='99', sparse='False'))
        run('apply', self.path('base'), self.path('delta'), self.path('out'))
        self.assertTrue(container.same(container.read(self.path('out'))[0], self.tensors(narrow=[3])))

    def test_nan_payloads_signed_zeros_and_infinities_pass(self):
        old = numpy.array([0x0000, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0x0001, 0x8001, 0x3f80], '<u2')
        base, following = {'odd': container.array('BF16', old)}, {'odd': container.array('BF16', numpy.roll(old, 1))}
        for form in trl.FORMATS:
            with self.subTest(form=form):
                shutil.rmtree(self.folder)
                os.mkdir(self.folder)
                self.exchange(form, base, following)
