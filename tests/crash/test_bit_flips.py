"""Bits of a store's files flip while no server runs.

What is sound is read as it was, what is not is an error that is named, and nothing sound is
destroyed: with the bits put back all is as it was. And the proof that a fault would be seen.

DELTABUCKET_TORTURE=1 makes it 2,000 cases instead of 60. tests/crash/bit_flip.py does the same by
hand, and repeats a case.
"""
import collections
import os
import subprocess
import unittest

from tests.support import bit_campaign
from tests.support.bit_campaign import Flip, Template, Trial
from tests.support.daemon import BUILD
from tests.support.pack_walk import records_of

CASES = 2000 if os.environ.get('DELTABUCKET_TORTURE') else 60
SEED = '1'
SHOWN = 3  # faults
KIND = {kind.name: kind for kind in bit_campaign.KINDS}


class BitFlips(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = Template()
        cls.template.__enter__()
        cls.addClassCleanup(cls.template.__exit__)

    def test_nothing_sound_is_lost_and_nothing_is_wrong(self):
        found = list(bit_campaign.campaign(CASES, SEED, self.template))
        self.assertEqual(len(found), CASES)
        faults = [bit_campaign.describe(verdict, SEED) for verdict in found if verdict.faults]
        self.assertEqual(len(faults), 0, '\n\n'.join(['', *faults[:SHOWN]]))
        print(bit_campaign.table_of(found))
        outcomes = collections.Counter(verdict.outcome for verdict in found)
        self.assertGreater(min(outcomes[name] for name in bit_campaign.OUTCOMES), 0, outcomes)
        self.assertEqual({verdict.flip.kind.name for verdict in found}, set(KIND))

    def test_a_sound_store_has_no_faults(self):
        verdict = self.trial(Flip(KIND['catalog'], 'catalog.db', ())).run()
        self.assertEqual((verdict.outcome, verdict.faults), ('harmless', []))

    def trial(self, flip):
        trial = Trial(self.template, 0, flip)
        self.addCleanup(trial.site.close)
        return trial

    def needed_record(self):
        """A flip in a record that objects need."""
        path = max((path for path in self.template.kept if path in self.template.files),
                   key=lambda path: len(self.template.files[path]))
        part = next(iter(records_of(self.template.files[path]).values()))
        return Flip(KIND['pack record'], path, (part.end * 8 - 1,))

    def assertFault(self, trial, words):
        faults = trial.run().faults
        self.assertTrue(any(words in fault for fault in faults), faults)

    def test_a_wrong_answer_is_seen(self):
        """Damage that no checksum shows: the catalog is changed as a server would."""
        for change in ("UPDATE versions SET key = CAST('w1/other' AS BLOB) WHERE state = 1 AND"
                       " key = CAST('w1/4' AS BLOB)",
                       "DELETE FROM versions WHERE state = 1 AND key = CAST('w1/4' AS BLOB)",
                       "UPDATE bucket_documents SET document = CAST('x' AS BLOB)"):
            with self.subTest(change):
                trial = self.trial(Flip(KIND['lock, set aside'], 'lock', (0,)))
                catalog = os.path.join(trial.site.data, 'catalog.db')
                edit = os.path.join(BUILD, 'catalog_edit')
                subprocess.run([edit, catalog, change], check=True)
                self.assertNotEqual(trial.run().faults, [])

    def test_an_error_that_is_not_named_is_seen(self):
        trial = self.trial(self.needed_record())
        trial.named = list
        self.assertFault(trial, 'nothing was named')

    def test_a_lost_record_is_seen(self):
        """With the bit put back, the one next to it is wrong."""
        trial = self.trial(self.needed_record())
        flip = trial.flip
        trial.site.put_back = lambda: trial.site.write(
            bit_campaign.flipped(self.template.files[flip.path], (flip.bits[0] - 8,)))
        self.assertFault(trial, 'in the end')

    def test_a_pack_that_is_gone_is_seen(self):
        trial = self.trial(self.needed_record())
        path = os.path.join(trial.site.data, trial.flip.path)
        trial.read_again = lambda *wanted: os.remove(path) or True
        self.assertFault(trial, 'are in no pack')

    def test_a_refused_start_that_changes_something_is_seen(self):
        trial = self.trial(Flip(KIND['certificate'], 'tls/ca.pem', (7,)))
        start = trial.daemon.start

        def start_and_change():
            with open(os.path.join(trial.site.data, 'acknowledged'), 'ab') as file:
                file.write(b'x')
            start()
        trial.daemon.start = start_and_change
        self.assertFault(trial, 'changed')


if __name__ == '__main__':
    unittest.main()
