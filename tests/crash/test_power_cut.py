"""The power goes at any moment, and again during the start that follows.

What the server confirmed before is there after the next start, whatever of its other writes has
got to the disk. And the proof that a loss would be seen: there is one as soon as any kind of sync
counts as none.

DELTABUCKET_TORTURE=1 makes it 1,000 cuts instead of 40. tests/crash/power_cut.py does the same by
hand, and repeats a cut.
"""
import contextlib
import os
import unittest

from tests.support import power_cut
from tests.support.disk_log import CREATE, SYNC, UNLINK, WRITE, is_plain_build
from tests.support.ledger import confirmations

CUTS = 1000 if os.environ.get('DELTABUCKET_TORTURE') else 40
SHOWN = 3  # faults


@unittest.skipUnless(is_plain_build(), 'the recorder is for plain builds')
class PowerCut(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rounds = power_cut.rounds(CUTS, '1')
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.first = stack.enter_context(cls.rounds[0])
        cls.recording = cls.first.recording

    def test_the_recording_is_whole(self):
        self.assertEqual(self.first.differences(), [])
        removed = {record.path for record in self.recording.records if record.kind == UNLINK}
        self.assertGreater(sum(path.endswith('.pack') for path in removed), 3)  # gc was at work
        packs = {record.file for record in self.recording.records
                 if record.kind == CREATE and record.path.endswith('.pack')}
        self.assertGreater(max(record.at for record in self.recording.records
                               if record.kind == WRITE and record.file in packs), 60 << 20)
        synced = {record.path for record in self.recording.records if record.kind == SYNC}
        for kind, pattern in power_cut.SYNCS.items():
            self.assertTrue(any(map(pattern.search, synced)), kind)

    def test_nothing_confirmed_is_lost(self):
        faults = self.faults_of(self.first)
        for part in self.rounds[1:]:
            with part:
                faults += self.faults_of(part)
        self.assertEqual(len(faults), 0, '\n\n'.join(['', *faults[:SHOWN]]))

    def faults_of(self, part):
        verdicts = list(part.verdicts())
        self.assertEqual(len(verdicts), part.cuts)
        return [power_cut.describe(verdict, part.folder) for verdict in verdicts if verdict.faults]

    def test_each_kind_of_sync_is_needed(self):
        ends = confirmations(self.recording.notes)
        gone = [index for index, note in self.recording.notes if note.get('catalog') == 'gone']
        cuts = [*(ends[len(ends) * share // 4 - 1] + 1 for share in (4, 2, 1)), gone[0] + 1]
        self.assertEqual(power_cut.judge_strictly(self.recording, cuts[0]), [])
        for kind in power_cut.SYNCS:
            with self.subTest(kind):
                is_lost = any(power_cut.judge_strictly(self.recording, cut, kind) for cut in cuts)
                self.assertTrue(is_lost, f'without syncs of {kind} nothing is lost')


if __name__ == '__main__':
    unittest.main()
