"""Conditional puts, copies and completions of uploads by many callers to few objects, while gc, scrub and a backup work and the server is killed: what the callers saw fits an order of
their requests, the store is sound after the kills, and the backup can be restored.

DELTABUCKET_TORTURE=1 makes it 1,000 kills instead of 12.
"""
import hashlib
import http.client
import json
import os
import random
import re
import threading
import time
import unittest

from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.linear import ABSENT, DELETE, GET, PUT, REFUSED, Operation, is_linear

KILLS = 1000 if os.environ.get('DELTABUCKET_TORTURE') else 12
KEYS = ('a', 'b', 'c')
CALLERS = 6
SOURCES = {f'source{size}': random.Random(size).randbytes(size) for size in (20, 3_000, 100_000)}  # of copies
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


def etag_of(body, in_parts=False):
    digest = hashlib.md5(body)
    return f'{hashlib.md5(digest.digest()).hexdigest()}-1' if in_parts else digest.hexdigest()


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
        target, value, request = f'/linear/{key}', None, (kind.upper(), '', None, {})
        if kind == PUT:
            value, request = self.source.choice((self.put, self.put, self.copy, self.complete))(connection, target)
        method, query, body, headers = request
        condition = self.source.choice((None, ABSENT, self.known[key])) if kind == PUT else None
        if condition == ABSENT:
            headers['If-None-Match'] = '*'
        elif condition:
            headers['If-Match'] = f'"{condition}"'
        made = Operation(kind, time.monotonic(), value, condition)
        self.history[key].append(made)
        reply, got = self.send(connection, method, target + query, body, headers)
        if kind == GET and reply.status == 200:
            etag = reply.headers['ETag'].strip('"')
            if etag_of(got, '-' in etag) != etag:
                self.unexpected.append((made, 'other bytes'))
        made.answered(time.monotonic(), self.answer_of(made, reply, got, key))

    # The ways to write: the value that each would make, and its request.

    def put(self, _connection, _target):
        body = self.source.randbytes(self.source.choice((20, 3_000, 100_000)))
        return etag_of(body), ('PUT', '', body, {})

    def copy(self, _connection, _target):
        name = self.source.choice(list(SOURCES))
        return etag_of(SOURCES[name]), ('PUT', '', None, {'x-amz-copy-source': f'/linear/{name}'})

    def complete(self, connection, target):
        body = self.source.randbytes(self.source.choice((20, 3_000, 100_000)))
        _, begun = self.send(connection, 'POST', f'{target}?uploads')
        upload = re.search(b'<UploadId>(.+)</UploadId>', begun)[1].decode()
        self.send(connection, 'PUT', f'{target}?uploadId={upload}&partNumber=1', body)
        part = f'<Part><PartNumber>1</PartNumber><ETag>{etag_of(body)}</ETag></Part>'
        return etag_of(body, in_parts=True), ('POST', f'?uploadId={upload}', f'<CompleteMultipartUpload>{part}</CompleteMultipartUpload>', {})

    def send(self, connection, method, target, body=None, headers=()):
        connection.request(method, target, body, {**AUTHORISED, **dict(headers)})
        reply = connection.getresponse()
        return reply, reply.read()

    def answer_of(self, made, reply, body, key):
        if made.kind == GET:
            self.known[key] = reply.headers['ETag'].strip('"') if reply.status == 200 else None
            return self.known[key]
        if reply.status in (200, 204) and b'<Error>' not in body:
            self.known[key] = made.value
            return 'done'
        if reply.status not in (404, 409, 412):  # 404: If-Match, and there is no object
            self.unexpected.append((made, reply.status, body))
        return REFUSED


class Linear(unittest.TestCase):
    def values(self, daemon):
        found = {}
        for key in KEYS:
            reply = daemon.request('GET', f'/linear/{key}')
            found[key] = reply.headers['ETag'].strip('"') if reply.status == 200 else None
        return found

    def test_conditional_writes_under_kills(self):
        source = random.Random(11)
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/linear')
            for name, body in SOURCES.items():
                daemon.request('PUT', f'/linear/{name}', body)
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
