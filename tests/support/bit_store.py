"""A store with everything in it that a server keeps, as a server leaves it that is killed, and what
its users were told.

It is made once; each case of the bit campaign (bit_campaign.py) damages a copy of it.
"""
import contextlib
import functools
import json
import math
import os
import shutil
import time

from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import Daemon
from tests.support.disk_log import notes, read_log
from tests.support.ledger import Ledger, allowed
from tests.support.power_load import (RUN, VERSIONING, Client, HubClient, Operator, Uploader,
                                      Writer, beside)

# What the server does by itself is done before the store is copied, or when it is asked.
ARGUMENTS = ['--gc-interval', '0', '--gc-rate', '0', '--step-rate', '0', '--derive-min', '1048576',
             '--lifecycle-interval', '86400', '--webhook-hosts', '127.0.0.1']
STEPS = 6
VIEWED = 'steps/viewed'
USED = 'k'  # the key in the bucket `used`, which cases put again
SETTLE_SECONDS = 90
STRAY = '00112233445566778899aabbccddeeff.pack'
POLICY = json.dumps({'Version': '2012-10-17', 'Statement': [
    {'Effect': 'Allow', 'Principal': '*', 'Action': 's3:GetObject',
     'Resource': 'arn:aws:s3:::open/shown/*'}]})
TAGS = '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>'


class Store:
    """`folder`: an empty one. After `make` the data folder is `folder`/data, and `facts` what was
    confirmed: {fact: value}."""

    def __init__(self, folder, seed='store'):
        self.folder, self.seed = folder, seed
        self.data = os.path.join(folder, 'data')
        self.log = os.path.join(folder, 'ledger')
        self.ledger = Ledger(self.log)
        self.held = [{} for _ in range(3)]
        self.daemon = Daemon(arguments=ARGUMENTS, folder=self.data)
        self.keys = {}  # with grants

    def make(self):
        with contextlib.closing(self.ledger), self.daemon:
            self._fill()
            self._give_space_back()
            self._leave_stray()
            self._settle()
            self._use_tools()
            self._be_killed()
        self.facts = {fact: values[0]
                      for fact, values in allowed(notes(read_log(self.log)), math.inf).items()}
        return self

    def client(self, kind, name, *arguments):
        return contextlib.closing(kind(self.daemon, self.ledger, f'{self.seed} {name}', *arguments))

    def _fill(self):
        self._make_buckets()
        with self.client(Operator, 'operator') as operator, self.client(HubClient, 'hub') as hub:
            with self.client(Uploader, 'uploader') as uploader:
                beside(operator.run, uploader.run, lambda: hub.run(['a', 'b/c', 'd']),
                       self._publish, *[functools.partial(self._write, number, 12)
                                        for number in range(3)])
        self._make_settings()

    def _make_buckets(self):
        with self.client(Client, 'buckets') as client:
            for name in ('objects', 'versioned', 'settings', 'hub', 'open', 'used',
                         RUN.split('/')[0]):
                client.make_bucket(name)
            client.ask('PUT', f'/used/{USED}', client.body(900))
            client.ask('PUT', '/versioned?versioning', VERSIONING.format('Enabled'))

    def _write(self, number, count):
        arguments = 'objects', f'w{number}', self.held[number]
        with self.client(Writer, f'writer {number} {count}', *arguments) as writer:
            writer.run(count)
            writer.put_version()
            writer.put_large()

    def _publish(self):
        folder = os.path.join(self.folder, 'checkpoints')
        os.mkdir(folder)
        paths = expand_small(folder, STEPS - 1)
        for run, count in ((RUN, STEPS), (VIEWED, 2)):
            for number in range(count):
                change = self.ledger.begin({('step', run, str(number)): sha256(paths[number])})
                self.daemon.client('publish', '--run', run, '--step', number, paths[number])
                self.ledger.end(change)
        shutil.rmtree(folder)

    def _make_settings(self):
        """Of a bucket that is shown in part, of runs, and keys with grants."""
        with self.client(Client, 'settings') as client:
            client.ask('PUT', '/open?publicAccessBlock', '<PublicAccessBlockConfiguration/>')
            client.ask('PUT', '/open?policy', POLICY)
            for key in ('shown/a', 'hidden/a'):
                client.ask('PUT', f'/open/{key}', client.body(3000))
            client.ask('PUT', '/open/shown/a?tagging', TAGS)
            client.ask('PUT', f'/v1/runs/{VIEWED}/settings', '{"view_trl":true,"keep_steps":9}')
            client.ask('PUT', f'/v1/runs/{RUN}/settings',
                       '{"webhook":"http://127.0.0.1:1/hook","lease_s":86400}')
            client.ask('PUT', f'/v1/runs/{RUN}/pins/kept', '{"step":2}')
        for name, grant in (('reader', 'objects/w0=read'), ('runs', 'steps=read,write')):
            self.keys[name] = self.daemon.add_key('--name', name, '--grant', grant)

    def _give_space_back(self):
        """Compacted packs, then new ones of another life."""
        self._write_with(0, Writer.delete_most)
        self.daemon.admin('gc', '--live-percent', '95')
        self.daemon.stop()
        self.daemon.start()
        self._write(1, 10)
        self._write_with(2, Writer.delete_most)

    def _write_with(self, number, work):
        arguments = 'objects', f'w{number}', self.held[number]
        with self.client(Writer, f'also {number}', *arguments) as writer:
            work(writer)

    def _leave_stray(self):
        """A file that no catalog names: the next start sets it aside."""
        self.daemon.stop()
        os.makedirs(os.path.join(self.data, 'packs', STRAY[:2]), exist_ok=True)
        with open(os.path.join(self.data, 'packs', STRAY[:2], STRAY), 'wb') as file:
            file.write(b'not a pack of this store' * 100)
        self.daemon.start()

    def _settle(self):
        """Until the steps are proven and the fold over four of them is made."""
        end = time.monotonic() + SETTLE_SECONDS
        while not (self._is_proven(RUN, STEPS) and self._is_proven(VIEWED, 2) and self._has_fold()):
            assert time.monotonic() < end, self.daemon.log()[-3000:]
            time.sleep(0.05)

    def _is_proven(self, run, count):
        steps = self.daemon.request('GET', f'/v1/runs/{run}/steps').json()['steps']
        return len(steps) == count and all(step.get('verified') == 'ok' for step in steps)

    def _has_fold(self):
        links = self.daemon.request('GET', f'/v1/runs/{RUN}/path?have=0&want=4').json()['links']
        return len(links) == 1

    def _use_tools(self):
        """They leave files of their own in the data folder."""
        place = os.path.join(self.folder, 'place')
        self.daemon.admin('backup', '--to', place)
        self.daemon.admin('scrub')
        shutil.rmtree(place)

    def _be_killed(self):
        """Some changes stand in the catalog, others in its log alone."""
        self.daemon.stop()
        self.daemon.start()
        self.daemon.await_log('catalog_proven')
        with self.client(Writer, 'last', 'objects', 'w2', self.held[2]) as writer:
            for work in (writer.put, writer.put_version, writer.put, writer.delete, writer.put):
                work()
        self.daemon.kill()
        os.remove(os.path.join(self.data, 'control.sock'))

