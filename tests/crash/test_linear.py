"""Conditional writes by many callers to few objects, while gc, scrub and a backup work and the server is killed: what the callers saw fits an order of
their requests, the store is sound after the kills, and the backup can be restored.

DELTABUCKET_TORTURE=1 makes it 1,000 kills instead of 12.
"""
import hashlib
import http.client
import json
import os
import random
import threading
import time
import unittest

from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.linear import ABSENT, DELETE, GET, PUT, REFUSED, Operation, is_linear

KILLS = 1000 if os.environ.get('DELTABUCKET_TORTURE') else 12
KEYS = ('a', 'b', 'c')
CALLERS = 6
AUTHORISED = {'Authorization': f'Bearer {ROOT_TOKEN}'}


class Checker(unittest.TestCase):
    """The judge itself must see what is wrong."""

    def operation(self, kind, begun, ended, answer, value=None, condition=None):
        made = Operation(kind, begun, value, condition)
        if ended is not None:
            made.answered(ended, answer)
        return made

    def test_a_read_of_the_value_before_is_right_only_while_the_write_runs(self):
        write = self.operation(PUT, 1, 4, 'done', 'x')
        self.assertTrue(is_linear([write, self.operation(GET, 2, 3, None)]))
        self.assertTrue(is_linear([write, self.operation(GET, 2, 3, 'x')]))
        self.assertFalse(is_linear([write, self.operation(GET, 5, 6, None)]))
        self.assertFalse(is_linear([write, self.operation(GET, 2, 3, 'x'), self.operation(GET, 3.5, 3.7, None)]))

    def test_of_two_conditional_writes_one_wins(self):
        def pair(first, second):
            return [self.operation(PUT, 1, 3, first, 'x', ABSENT), self.operation(PUT, 2, 4, second, 'y', ABSENT)]
        self.assertTrue(is_linear(pair('done', REFUSED)))
        self.assertTrue(is_linear(pair(REFUSED, 'done')))
        self.assertFalse(is_linear(pair('done', 'done')))
        self.assertFalse(is_linear(pair(REFUSED, REFUSED)))
        self.assertTrue(is_linear(pair(REFUSED, REFUSED), first='z'))

    def test_a_write_without_an_answer_may_have_run_or_not(self):
        lost = self.operation(PUT, 1, None, None, 'x')
        self.assertTrue(is_linear([lost, self.operation(GET, 2, 3, None)]))
        self.assertTrue(is_linear([lost, self.operation(GET, 2, 3, None), self.operation(GET, 4, 5, 'x')]))
        self.assertFalse(is_linear([lost, self.operation(GET, 2, 3, 'x'), self.operation(GET, 4, 5, None)]))
        self.assertFalse(is_linear([lost, self.operation(GET, 0, 0.5, 'x')]))

    def test_a_delete_that_comes_between(self):
        self.assertTrue(is_linear([self.operation(PUT, 1, 2, 'done', 'x'), self.operation(DELETE, 3, 4, 'done'), self.operation(GET, 5, 6, None)]))
        self.assertFalse(is_linear([self.operation(PUT, 1, 2, 'done', 'x'), self.operation(DELETE, 3, 4, 'done'), self.operation(GET, 5, 6, 'x')]))


class Caller:
    """Sends requests over one connection until the server is gone; notes what it asked and saw, key by key."""

    def __init__(self, daemon, number, stop):
        self.daemon, self.stop = daemon, stop
        self.source = random.Random(f'{number} {time.time_ns()}')
        self.history = {key: [] for key in KEYS}
        self.known = {key: None for key in KEYS}  # what it saw last
        self.unexpected = []

    def run(self):
        connection = self.daemon.connect(timeout=20)
        try:
            while not self.stop.is_set():
                self.ask(connection, self.source.choice(KEYS))
        except (OSError, http.client.HTTPException):
            pass  # the last request has no answer
        finally:
            connection.close()

    def ask(self, connection, key):
        kind = self.source.choice((PUT, PUT, PUT, GET, GET, DELETE))
        body = self.source.randbytes(self.source.choice((20, 3_000, 100_000))) if kind == PUT else None
        condition = self.source.choice((None, ABSENT, self.known[key])) if kind == PUT else None
        headers = dict(AUTHORISED)
        if condition == ABSENT:
            headers['If-None-Match'] = '*'
        elif condition:
            headers['If-Match'] = f'"{condition}"'
        made = Operation(kind, time.monotonic(), hashlib.md5(body).hexdigest() if body else None, condition)
        self.history[key].append(made)
        connection.request(kind.upper(), f'/linear/{key}', body, headers)
        reply = connection.getresponse()
        got = reply.read()
        if kind == GET and reply.status == 200 and hashlib.md5(got).hexdigest() != reply.headers['ETag'].strip('"'):
            self.unexpected.append((made, 'other bytes'))
        made.answered(time.monotonic(), self.answer_of(made, reply, key))

    def answer_of(self, made, reply, key):
        if made.kind == GET:
            self.known[key] = reply.headers['ETag'].strip('"') if reply.status == 200 else None
            return self.known[key]
        if reply.status in (200, 204):
            self.known[key] = made.value
            return 'done'
        if reply.status not in (404, 409, 412):  # 404: If-Match, and there is no object
            self.unexpected.append((made, reply.status))
        return REFUSED


class Linear(unittest.TestCase):
    def values(self, daemon):
        found = {}
        for key in KEYS:
            reply = daemon.request('GET', f'/linear/{key}')
            found[key] = hashlib.md5(reply.body).hexdigest() if reply.status == 200 else None
        return found

    def test_conditional_writes_under_kills(self):
        source = random.Random(11)
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/linear')
            before, asked = self.values(daemon), 0
            for kill in range(KILLS):
                callers = self.round(daemon, source.uniform(0.05, 0.3))
                if kill % 10 == 9 or kill + 1 == KILLS:
                    daemon.check_store()
                daemon.start()
                after = self.values(daemon)
                for key in KEYS:
                    history = [made for caller in callers for made in caller.history[key]]
                    last = Operation(GET, time.monotonic())
                    last.answered(time.monotonic(), after[key])
                    self.assertTrue(is_linear([*history, last], before[key]), f'kill {kill}, key {key}, before: {before[key]}, {history}, {last}')
                    asked += len(history)
                self.assertEqual([caller.unexpected for caller in callers if caller.unexpected], [])
                before = after
            self.assertGreater(asked, 20 * KILLS)
            self.comes_back(daemon)

    def round(self, daemon, seconds):
        """Callers, upkeep, and then a kill."""
        stop = threading.Event()
        callers = [Caller(daemon, number, stop) for number in range(CALLERS)]
        works = [*(caller.run for caller in callers), lambda: self.collect(daemon, stop), lambda: self.back_up(daemon, stop)]
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        daemon.kill()
        stop.set()
        for thread in threads:
            thread.join()
        return callers

    def collect(self, daemon, stop):
        try:
            while not stop.is_set():
                daemon.request('POST', '/-/gc', json.dumps({'live_percent': 100}), timeout=20)
                daemon.request('POST', '/-/scrub', b'{}', timeout=20)
        except (OSError, http.client.HTTPException):
            pass

    def back_up(self, daemon, stop):
        """The kill may end it, too: then the next one goes on."""
        while not stop.is_set():
            daemon.admin('backup', '--to', os.path.join(daemon.scratch, 'backup'), '--keep', '3', check=False)

    def comes_back(self, daemon):
        place, into = (os.path.join(daemon.scratch, name) for name in ('backup', 'restored'))
        daemon.admin('backup', '--to', place)
        done = daemon.command('restore', '--from', place, '--data', into)
        self.assertEqual(done.returncode, 0, done.stderr)
        key = os.path.join(daemon.folder, 'master.key')  # which no backup has
        done = daemon.command('fsck', '--data', into, '--master-key', key)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == '__main__':
    unittest.main()
