"""libdeltabucket.so: deltas between checkpoints, and patches of tensors in memory."""
import ctypes
import filecmp
import os
import random
import shutil
import tempfile
import unittest

from tests.support import library
from tests.support.checkpoints import expand_small, read_safetensors


class Deltas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = library.Library()
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-deltas-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.steps = expand_small(cls.folder, 3)
        cls.deltas = [os.path.join(cls.folder, f'delta-{step}') for step in range(1, 4)]
        for base, following, delta in zip(cls.steps, cls.steps[1:], cls.deltas):
            cls.library.call('diff', base, following, delta, None, None)

    def refused(self, kind, *call):
        with self.assertRaises(library.Failed) as caught:
            self.library.call(*call)
        self.assertEqual(caught.exception.kind, kind, caught.exception.text)
        return caught.exception

    def path(self, name):
        return os.path.join(self.folder, name)

    def apply(self, base, deltas, out):
        return 'apply', base, library.texts(deltas), len(deltas), out, None

    def test_deltas_lead_from_one_checkpoint_to_the_other(self):
        for format in ('trl-gap', 'slime-xor', 'full'):
            self.library.call('diff', self.steps[0], self.steps[1], self.path(format), format, None)
            self.library.call(*self.apply(self.steps[0], [self.path(format)], self.path(f'made by {format}')))
            self.assertTrue(filecmp.cmp(self.path(f'made by {format}'), self.steps[1], shallow=False))
        self.library.call(*self.apply(self.steps[0], self.deltas, self.path('three')))
        self.assertTrue(filecmp.cmp(self.path('three'), self.steps[3], shallow=False))

    def test_what_cannot_be_is_refused_and_leaves_nothing(self):
        out = self.path('out')
        self.refused('wrong_base', *self.apply(self.steps[1], self.deltas[:1], out))
        self.refused('exists', 'diff', self.steps[0], self.steps[1], self.deltas[0], None, None)
        self.refused('not_found', 'diff', self.steps[0], self.path('nosuch'), out, None, None)
        self.assertIn('ulp-class', self.refused('invalid', 'diff', self.steps[0], self.steps[1], out, 'nosuch', None).text)
        self.refused('invalid', *self.apply(self.steps[0], [], out))
        self.refused('invalid', 'apply', self.steps[0], None, 1, out, None)
        watch = self.library.watch()
        self.library.names.deltabucket_watch_cancel(watch)
        self.refused('busy', 'diff', self.steps[0], self.steps[1], out, None, watch)
        self.library.names.deltabucket_watch_free(watch)
        self.assertFalse(os.path.exists(out))

    def tensors(self, step):
        tensors = list(read_safetensors(self.steps[step]).items())
        random.Random(step).shuffle(tensors)
        return library.Tensors(dict(tensors))

    def patch(self, tensors, deltas, settings=None):
        spoiled = ctypes.c_int(7)
        call = ('patch', tensors.array, ctypes.c_size_t(len(tensors.array)), library.texts(deltas), ctypes.c_size_t(len(deltas)),
                settings and ctypes.byref(settings), ctypes.byref(spoiled), None)
        return call, spoiled

    def test_tensors_in_memory_are_patched_in_place(self):
        for settings in (None, library.PatchSettings(), library.PatchSettings(proves_first=1, threads=2)):
            tensors = self.tensors(0)
            call, spoiled = self.patch(tensors, self.deltas, settings)
            self.library.call(*call)
            self.assertEqual(spoiled.value, 0)
            self.assertEqual(tensors.bytes(), self.tensors(3).bytes())

    def test_a_patch_of_other_tensors_is_refused(self):
        for proves_first in (0, 1):
            tensors = self.tensors(1)
            before = tensors.bytes()
            call, spoiled = self.patch(tensors, self.deltas, library.PatchSettings(proves_first=proves_first))
            with self.assertRaises(library.Failed) as caught:
                self.library.call(*call)
            self.assertIn(caught.exception.kind, ('wrong_base',) if proves_first else ('wrong_base', 'digest_mismatch', 'invalid'))
            self.assertEqual(spoiled.value, int(tensors.bytes() != before))
            self.assertFalse(proves_first and spoiled.value)

    def test_tensors_that_make_no_model_are_named(self):
        for member, value in (('dtype', b'BF17'), ('dtype', None), ('data', None), ('shape', None), ('bytes', 2), ('rank', 1000), ('name', None)):
            tensors = self.tensors(0)
            name = tensors.array[0].name.decode()
            setattr(tensors.array[0], member, value)
            failure = self.refused('invalid', *self.patch(tensors, self.deltas)[0])
            self.assertIn('tensor' if member == 'name' else name, failure.text)
        tensors = self.tensors(0)
        tensors.array[1].name = tensors.array[0].name
        self.refused('invalid', *self.patch(tensors, self.deltas)[0])
        self.refused('invalid', *self.patch(self.tensors(0), [])[0])
