"""Every format to every format over real checkpoints: after each change of format the delta still makes the same file of the same base, by our own reader
(SHA-256 of the whole file) and by the independent ones. DELTABUCKET_TORTURE=1 walks all steps, $DELTABUCKET_SERIES another series.
"""
import os
import shutil
import tempfile
import unittest

from tests.support.checkpoints import sha256
from tests.support.clients import importable, tree

if not importable('numpy', 'safetensors', 'zstandard', 'xxhash', 'blake3', environment='formats'):
    raise unittest.SkipTest('setup/clients has not installed numpy, safetensors, zstandard, xxhash and blake3')

from tests.formats import container, series, slime, trl, ulp_class  # noqa: E402
from tests.formats.series import run  # noqa: E402

FORMATS = ('ulp-class', *slime.ENCODINGS, *trl.FORMATS, 'full')


def every_pair(names):
    """A closed walk that goes from each of these to each, itself included, exactly once."""
    left = {name: list(names) for name in names}
    walk, ahead = [], [names[0]]
    while ahead:
        if left[ahead[-1]]:
            ahead.append(left[ahead[-1]].pop())
        else:
            walk.append(ahead.pop())
    return walk[::-1]


def judge(form, delta, base, version):
    """What an independent reader makes of a delta in this format."""
    if form in slime.ENCODINGS:
        found, tensors = slime.apply(delta, base, version)
    elif form in trl.FORMATS:
        found, tensors = trl.apply(delta, base)
    elif form == 'full':
        found, tensors = form, container.read_checkpoint(delta)
    else:
        found, (_, tensors) = form, ulp_class.apply(delta, base)
    assert found == form, found
    return tensors


@unittest.skipUnless(series.knows('transcode'), 'this program does not transcode')
class RoundTrips(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def assert_makes(self, form, delta, number, before, after):
        (_, base, tensors, _), (_, _, wanted, known) = before, after
        out = self.path('out')
        run('apply', base, delta, out)
        self.assertEqual(sha256(out), known)
        os.remove(out)
        self.assertTrue(container.same(judge(form, delta, tensors, number), wanted))

    def remove(self, path):
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)

    def test_files(self):
        walk = every_pair(FORMATS)
        self.assertEqual(len(walk), len(FORMATS) ** 2 + 1)
        before = None
        for after in series.walk(self.folder):
            if before is None:
                before = after
                continue
            number = after[0]
            held = self.path('delta')
            run('diff', '--format', walk[0], '--step', number, before[1], after[1], held)
            self.assert_makes(walk[0], held, number, before, after)
            for form in walk[1:]:
                with self.subTest(step=number, form=form):
                    following = self.path('following')
                    run('transcode', '--base', before[1], '--to', form, '--step', number, held, following)
                    self.remove(held)
                    os.rename(following, held)
                    self.assert_makes(form, held, number, before, after)
            self.remove(held)
            os.remove(before[1])
            before = after

    def test_the_step_goes_along(self):
        """A delta that says its step keeps it in another format; a full checkpoint says none."""
        (_, base, tensors, _), (_, following, wanted, _) = series.walk(self.folder, steps=1)
        for form in FORMATS[:-1]:
            with self.subTest(form=form):
                run('diff', '--format', form, '--step', 7, base, following, self.path(form))
                run('transcode', '--base', base, '--to', 'slime-xor', self.path(form), self.path(form + '-xor'))
                self.assertTrue(container.same(slime.apply(self.path(form + '-xor'), tensors, 7)[1], wanted))

    def folders(self, count):
        """The series as sharded folders; the config changes with each step, one file comes and goes, the second has other shards."""
        for number, path, tensors, _ in series.walk(self.folder, steps=count):
            folder = self.path(f'checkpoint-{number}')
            files = {'config.json': f'{{"step": {number}}}', 'tokenizer/vocab.txt': 'a\nb\n'}
            if number % 2:
                files['notes.txt'] = 'here at odd steps'
            container.write_sharded(folder, tensors, 3 if number == 2 else 2, {'format': 'pt', 'step': str(number)}, files)
            os.remove(path)
            yield number, folder, tensors

    def test_folders(self):
        """A checkpoint folder in every format of ours, byte for byte; in foreign formats the tensors, for those carry nothing else."""
        steps = list(self.folders(2))
        for (_, base, tensors), (number, following, wanted) in zip(steps, steps[1:]):
            for form in FORMATS:
                with self.subTest(form=form, number=number):
                    delta, out = self.path(f'{form}-{number}'), self.path(f'{form}-{number}-out')
                    run('diff', '--format', form, '--step', number, base, following, delta)
                    run('apply', base, delta, out)
                    self.assertEqual(tree(out), tree(following))
                    self.assertTrue(container.same(judge(form, delta, tensors, number), wanted))

    def test_folds(self):
        """Several steps become one delta, in any format, and in their own without a base."""
        steps = list(series.walk(self.folder, steps=3))
        for form in FORMATS:
            deltas = [self.path(f'{form}-{number}') for number in range(1, len(steps))]
            for number, delta in enumerate(deltas, 1):
                run('diff', '--format', form, '--step', number, steps[number - 1][1], steps[number][1], delta)
            for target in FORMATS:
                with self.subTest(form=form, target=target):
                    out, result = self.path(f'{form}-as-{target}'), self.path('result')
                    run('fold', '--base', steps[0][1], '--to', target, *deltas, out)
                    run('apply', steps[0][1], out, result)
                    self.assertEqual(sha256(result), steps[-1][3])
                    os.remove(result)
            if form in ('slime-xor', *trl.FORMATS):
                with self.subTest(form=form, base=None):
                    out, result = self.path(f'{form}-alone'), self.path('result')
                    run('fold', *deltas, out)
                    run('apply', steps[0][1], out, result)
                    self.assertEqual(sha256(result), steps[-1][3])
                    os.remove(result)
