"""What leads from one step to another in a rank's parameters, without vLLM: which tensors lie whole
in them, and how pairs cross to the device. tests/engines/test_vllm.py has the rest, with vLLM."""
import os
import tempfile
import unittest
import unittest.mock

from tests.support.package import package_is_ready
from tests.support.skips import NO_TORCH

if not package_is_ready('torch', 'safetensors', environment='torch'):
    raise unittest.SkipTest(NO_TORCH)

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from deltabucket.vllm import change  # noqa: E402
from deltabucket.vllm.layout import Slice, View  # noqa: E402
from deltabucket.vllm.moves import whole_of  # noqa: E402


def slice_of(name, source, parameter, target):
    """target: a view of the parameter, which gets the source, a view of the checkpoint's tensor."""
    return Slice(name, View.of(source), 'parameter', parameter.flatten(), View.of(target))


class Whole(unittest.TestCase):
    def setUp(self):
        self.parameter = torch.arange(48, dtype=torch.bfloat16).reshape(6, 8)
        self.tensors = {name: torch.zeros(3, 8, dtype=torch.bfloat16) for name in 'ab'}

    def whole(self, *slices):
        return whole_of([slice_of(name, source, self.parameter, target) for name, source, target in slices],
                        self.tensors)

    def test_stacked(self):
        a, b = self.tensors.values()
        found = self.whole(('a', a, self.parameter[:3]), ('b', b.reshape(24), self.parameter.view(48)[24:]))
        self.assertEqual(sorted(found), ['a', 'b'])
        for name, rows in (('a', self.parameter[:3]), ('b', self.parameter[3:])):
            self.assertTrue(torch.equal(found[name], rows))
            found[name].fill_(7)
            self.assertTrue((rows == 7).all(), name)

    def test_what_is_not_whole(self):
        a, b = self.tensors.values()
        wide = torch.zeros(3, 16, dtype=torch.bfloat16)
        for reason, *slices in (
                ('rows of it', ('a', a[:2], self.parameter[:2])),
                ('columns of it', ('a', a[:, :4], self.parameter[:3, :4])),
                ('the columns behind', ('a', a.view(24)[12:], self.parameter.view(48)[:12])),
                ('between others', ('a', a, wide[:, :8])),
                ('other order here', ('a', a, self.parameter.view(8, 6)[:, :3].t())),
                ('other order there', ('a', a.t(), self.parameter.view(48)[:24].view(8, 3))),
                ('in two places', ('a', a, self.parameter[:3]), ('a', a, self.parameter[3:])),
                ('two in one place', ('a', a, self.parameter[:3]), ('b', b, self.parameter[:3])),
                ('on the edge of another', ('a', a, self.parameter[:3]), ('b', b, self.parameter[2:5])),
                ('inside of another', ('b', b.view(8, 3), self.parameter.view(48).as_strided((8, 3), (5, 2), 0)),
                 ('a', a[:1], self.parameter[1:2]))):
            with self.subTest(reason):
                self.assertEqual(self.whole(*slices), {})

    def test_a_cast(self):
        self.tensors['a'] = torch.zeros(3, 8)
        self.assertEqual(self.whole(('a', self.tensors['a'], self.parameter[:3])), {})

    def test_several_inside_of_another(self):
        self.tensors['c'] = self.tensors['a'][:1]
        self.tensors['d'] = self.tensors['a'][0, :4]
        a, b, c, d = self.tensors.values()
        flat = self.parameter.view(48)
        self.assertEqual(self.whole(('a', a, flat.as_strided((3, 8), (16, 1), 0)), ('c', c, self.parameter[1:2]),
                                    ('d', d, flat[36:40])), {})

    def test_neighbours_of_what_is_shared(self):
        """Only those are left out that share."""
        self.tensors['c'] = torch.zeros(1, 8, dtype=torch.bfloat16)
        a, b, c = self.tensors.values()
        found = self.whole(('c', c, self.parameter[4:5]), ('b', b, self.parameter[1:4]), ('a', a, self.parameter[:3]))
        self.assertEqual(sorted(found), ['c'])

    def test_one_element_and_none(self):
        self.tensors = {'a': torch.zeros((), dtype=torch.bfloat16), 'b': torch.zeros(0, 8, dtype=torch.bfloat16)}
        a, b = self.tensors.values()
        found = self.whole(('a', a, self.parameter[2, 3]), ('b', b, self.parameter[:0]))
        self.assertEqual({name: tensor.shape for name, tensor in found.items()}, {'a': torch.Size([])})
        self.assertEqual(found['a'], 19)


class Pairs(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.steps = []
        for number in range(2):
            tensors = {'a': torch.arange(24.).reshape(3, 8), 'b': torch.arange(8.)}
            tensors['a'][1, 3:5] += torch.nan if number else 1
            tensors['b'][number] = -1
            path = os.path.join(folder, str(number))
            os.mkdir(path)
            save_file(tensors, os.path.join(path, 'model.safetensors'))
            self.steps.append(change.Generation(number, path))
        self.old, self.new = self.steps
        self.parameter = torch.cat([self.old.tensors['a'].flatten(), self.old.tensors['b']])
        slices = [slice_of('a', self.old.tensors['a'].new_empty(3, 8), self.parameter, self.parameter[:24].view(3, 8)),
                  slice_of('b', self.old.tensors['b'].new_empty(8), self.parameter, self.parameter[24:])]
        self.parameter = slices[0].storage
        self.slices = [Slice(one.name, one.source, one.parameter, self.parameter, one.target) for one in slices]
        self.move = change.change(self.slices, self.old, self.new)

    def assertHolds(self, step):
        self.assertTrue(change.holds(self.slices, step))

    def test_there_and_back(self):
        self.assertEqual((self.move.count, self.move.share.by_pairs), (4, 32))
        self.assertTrue(self.move.is_base())
        self.assertTrue(self.move.apply())
        self.assertHolds(self.new)
        self.assertFalse(self.move.is_base())
        back = self.move.reversed()
        self.assertTrue(back.is_base() and back.apply())
        self.assertHolds(self.old)
        self.assertTrue(back.undo())
        self.assertHolds(self.new)
        self.assertTrue(self.move.undo())
        self.assertHolds(self.old)

    def test_what_was_written_is_looked_at(self):
        """Each place counts, of each tensor."""
        for place in (11, 24):
            with self.subTest(place=place):
                self.parameter[place] += 1
                self.assertFalse(self.move.is_base())
                self.assertTrue(self.move.undo())
                write = change.Pairs.write

                def broken(pairs, values, place=place, write=write):
                    write(pairs, values)
                    self.parameter[place] = 99
                with unittest.mock.patch.object(change.Pairs, 'write', broken):
                    self.assertFalse(self.move.apply())
                    self.assertFalse(self.move.undo())
                self.assertTrue(self.move.undo())
                self.assertHolds(self.old)

    def test_they_cross_once_for_each_pause(self):
        crossed = []
        sent = change.Pairs.sent

        def cross(pairs):
            crossed.append((pairs, pairs.places, pairs.old, pairs.new))
            made = sent(pairs)
            pairs.places = pairs.old = pairs.new = None  # so that nothing else crosses
            return made
        with unittest.mock.patch.object(change.Pairs, 'sent', cross):
            for _ in range(2):
                self.assertTrue(self.move.is_base() and self.move.apply() and self.move.undo())
            self.assertEqual(len(crossed), 2)  # tensors
        for pairs, *lists in crossed:
            pairs.places, pairs.old, pairs.new = lists
        self.move.release()
        with unittest.mock.patch.object(change.Pairs, 'sent', autospec=True, side_effect=sent) as crossing:
            self.assertTrue(self.move.is_base())
            self.assertEqual(crossing.call_count, 2)

    def test_a_device_that_has_no_room_for_all(self):
        with unittest.mock.patch.object(change.Pairs, 'sent', side_effect=torch.OutOfMemoryError):
            self.assertTrue(self.move.is_base() and self.move.apply())
            self.assertHolds(self.new)
            self.assertTrue(self.move.undo())
        self.assertHolds(self.old)


if __name__ == '__main__':
    unittest.main()
