"""Bits of a store's files flip while no server runs.

What is sound is read as it was, what is not is an error that is named, and nothing sound is
destroyed: with the bits put back all is as it was. And the proof that a fault would be seen.

DELTABUCKET_TORTURE=1 makes it 2,000 cases instead of 60. tests/crash/bit_flip.py does the same by
hand, and repeats a case.
"""
import collections
import copy
import os
import re
import shutil
import subprocess
import unittest

from tests.support import bit_campaign, page_sum
from tests.support.bit_campaign import PAGE, Flip, Template, Trial, flipped
from tests.support.daemon import BUILD
from tests.support.pack_walk import records_of

CASES = 2000 if os.environ.get('DELTABUCKET_TORTURE') else 60
SEED = '1'
SHOWN = 3  # faults
KIND = {kind.name: kind for kind in bit_campaign.KINDS}
KEPT = b'shown/a', b'shown/*'  # in the catalog: an object's key, a policy
LEAVES = 10, 13  # the first byte of a leaf of an index, and of one of a table


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

    def trial(self, flip, template=None):
        trial = Trial(template or self.template, 0, flip)
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
                self.edit_catalog(trial.site.data, change)
                self.assertNotEqual(trial.run().faults, [])

    def test_a_flip_under_a_right_checksum_is_seen(self):
        """With the checksums made right as well, the server believes wrong pages. So the checksums
        are what keeps such flips harmless, and wrong answers are seen. A table and its indexes say
        the same: indexes alone would be mended at once."""
        template = self.with_the_log_written_back()
        sound = template.files['catalog.db']
        self.assertTrue(page_sum.is_summed(sound))
        for text in KEPT:
            with self.subTest(text):
                bits = tuple(at * 8 for at in places(sound, text))
                self.assertEqual(self.faults_in_catalog(template, bits), [])
                faults = self.faults_in_catalog(template, page_sum.hidden(sound, bits))
                self.assertNotEqual(wrong_answers(faults), [])

    def with_the_log_written_back(self):
        """The template with all of the catalog in its file."""
        template = copy.copy(self.template)
        template.store = copy.copy(template.store)
        template.store.data = os.path.join(template.folder, 'without a log')
        shutil.copytree(self.template.store.data, template.store.data)
        self.edit_catalog(template.store.data, 'SELECT 1')
        template.files = bit_campaign.read_files(template.store.data)
        self.assertNotIn('catalog.db-wal', template.files)
        return template

    def edit_catalog(self, data, change):
        edit = os.path.join(BUILD, 'catalog_edit')
        subprocess.run([edit, os.path.join(data, 'catalog.db'), change], check=True)

    def faults_in_catalog(self, template, bits):
        return self.trial(Flip(KIND['catalog'], 'catalog.db', bits), template).run().faults

    def test_a_wrong_byte_and_a_lost_key_are_seen(self):
        """In one reply."""
        for target, change in (('/open/shown/a', lambda body: flipped(body, (len(body) * 8 - 1,))),
                               ('/open?list-type=2', without_first_key)):
            with self.subTest(target):
                trial = self.trial(Flip(KIND['catalog'], 'catalog.db', ()))
                change_reply(trial.daemon, target, change)
                self.assertNotEqual(wrong_answers(trial.run().faults), [])

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


def places(database, text):
    """Where tables and indexes have it."""
    found = [match.start() for match in re.finditer(re.escape(text), database)]
    return [at for at in found if database[at // PAGE * PAGE] in LEAVES]


def wrong_answers(faults):
    """Those that begin with the question: it was answered, neither rightly nor with an error."""
    return [fault for fault in faults if fault.startswith('Question(')]


def change_reply(daemon, target, change):
    """The first that has this to say."""
    def request(method, asked, *arguments, **options):
        reply = sent(method, asked, *arguments, **options)
        if (method, asked, reply.status) == ('GET', target, 200):
            del daemon.request
            reply.body = change(reply.body)
        return reply
    sent, daemon.request = daemon.request, request


def without_first_key(listing):
    return re.sub(rb'<Contents>.*?</Contents>', b'', listing, count=1)


if __name__ == '__main__':
    unittest.main()
