"""What readers get from an edge (contrib/edge) between them and the origin: what is theirs, from what
the edge keeps, and nothing else, whether the origin is there, away or silent."""
import concurrent.futures
import contextlib
import os
import signal
import time
import unittest

from tests.support.daemon import REPLY_SECONDS, ROOT_TOKEN, Daemon, other_letter
from tests.support.edge import Edge, sent_by
from tests.support.runs import Run, shard, weights
from tests.support.signer import Signer
from tests.support.xet import Cas, raw

R, S = '/v1/runs/models/r', '/v1/runs/models/s'
# Grants that end within the patience of a test.
SHORT = {'proxy_cache_valid 204 60s;': 'proxy_cache_valid 204 1s;', 'proxy_read_timeout 5s;': 'proxy_read_timeout 1s;'}
ARGUMENTS = ('--trusted-proxies', '127.0.0.1')


def url_of(daemon, run, step=0, kind='anchor'):
    """The target of the first object of a form, as readers are told it."""
    manifest = daemon.request('GET', f'{run}/steps/{step}').json()
    form = next(form for form in manifest['forms'] if form['kind'] == kind)
    return f'{run}/{form["objects"][0]["url"]}'


class Readers(unittest.TestCase):
    changes, arguments = SHORT, ARGUMENTS

    @classmethod
    def setUpClass(cls):
        with contextlib.ExitStack() as stack:
            cls.daemon = stack.enter_context(Daemon(arguments=cls.arguments))
            cls.runs = {name: Run(cls.daemon, name) for name in 'rs'}
            for run in cls.runs.values():
                run.publish_all(0, 1)
            cls.edge = stack.enter_context(Edge(cls.daemon, cls.changes))
            cls.reader, cls.other = (cls.key(f'models/{name}/=read')['token'] for name in 'rs')
            cls.url = url_of(cls.daemon, R)
            cls.stack = stack.pop_all()

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    @classmethod
    def key(cls, grant):
        return cls.daemon.add_key('--grant', grant)

    def kept(self):
        return (self.url, f'{R}/steps/0', f'{R}/path', f'{R}/path?have=0')

    def statuses(self, target, tokens):
        return [self.edge.ask(target, token).status for token in tokens]

    @contextlib.contextmanager
    def away(self):
        self.daemon.kill()
        try:
            yield
        finally:
            self.daemon.start()

    def await_status(self, target, token, statuses):
        limit = time.monotonic() + REPLY_SECONDS
        while (got := self.edge.ask(target, token).status) not in statuses:
            self.assertLess(time.monotonic(), limit, f'{got}, not one of {statuses}: {self.edge.log()}')
            time.sleep(0.1)

    def test_the_origin_sends_it_once(self):
        direct = self.daemon.request('GET', self.url, token=self.reader)
        before = sent_by(self.daemon, 'StepObject')[0]
        url = url_of(self.daemon, R, 1)
        second = self.key('models/r/=read')['token']
        replies = [self.edge.ask(url, token) for token in (self.reader, second, ROOT_TOKEN, self.reader)]
        self.assertEqual([reply.body for reply in replies], 4 * [shard(weights(1))])
        self.assertEqual([reply.headers['X-Edge-Cache'] for reply in replies], ['MISS', 'HIT', 'HIT', 'HIT'])
        self.assertEqual(sent_by(self.daemon, 'StepObject')[0] - before, 1)
        kept = self.edge.ask(self.url, self.reader)
        for name in ('ETag', 'x-deltabucket-digest', 'Content-Length', 'Cache-Control', 'Last-Modified'):
            self.assertEqual(kept.headers[name], direct.headers[name])

    def test_nobody_gets_what_is_anothers(self):
        """Kept or not. The refusal is the origin's own."""
        for target in (*self.kept(), f'{R}/steps/latest', f'{R}/steps/latest?after=0&wait=1'):
            self.assertEqual(self.statuses(target, (self.other, 'none', None)), [403, 401, 401], target)
            self.assertEqual(self.statuses(target, (self.reader, ROOT_TOKEN)), [200, 200], target)
            self.assertEqual(self.statuses(target, (self.other, 'none', None)), [403, 401, 401], target)
        refused = self.edge.ask(self.url, self.other)
        self.assertEqual((refused.code(), refused.headers['X-Edge-Cache']), ('denied', None))
        own = url_of(self.daemon, S)
        self.assertEqual(self.statuses(own, (self.other, self.reader)), [200, 403])

    def test_while_the_origin_is_away(self):
        """Those that may read go on, with grants that are over too; nobody else gets anything."""
        stranger = self.key('models/s/=read')['token']
        for target in self.kept():
            self.assertEqual(self.edge.ask(target, self.reader).status, 200)
        held = [self.edge.ask(target, self.reader).body for target in self.kept()]
        self.assertEqual(self.edge.ask(self.url, self.other).status, 403)
        time.sleep(1.5)
        with self.away():
            for target, body in zip(self.kept(), held):
                got = self.edge.ask(target, self.reader)
                self.assertEqual((got.status, got.body), (200, body), target)
                for token in (self.other, stranger, 'none', None):
                    self.assertIn(self.edge.ask(target, token).status, (401, 403, 500, 502, 503, 504), target)
            self.assertIn(self.edge.ask(f'{R}/steps/latest?after=1&wait=1', self.reader).status, (502, 504))
        self.assertEqual(self.edge.ask(url_of(self.daemon, R, 1), self.reader).status, 200)

    def test_what_an_edge_has_it_has_after_a_start(self):
        self.assertEqual(self.statuses(self.url, (self.reader, 'none')), [200, 401])
        with self.away():
            self.edge.stop()
            self.edge.start()
            self.assertEqual(self.statuses(self.url, (self.reader, 'none')), [200, 502])

    def test_while_the_origin_is_silent(self):
        self.assertEqual(self.edge.ask(self.url, self.reader).status, 200)
        time.sleep(1.5)
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            self.assertEqual(self.edge.ask(self.url, self.reader).body, shard(weights(0)))
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)

    def test_a_revoked_key_ends(self):
        """With its grant; and what the edge then knows lasts while the origin is away."""
        key = self.key('models/r/=read')
        for target in self.kept():
            self.assertEqual(self.edge.ask(target, key['token']).status, 200, target)
        self.daemon.admin('keys', 'revoke', key['key_id'])
        for target in self.kept():
            self.await_status(target, key['token'], (401,))
        with self.away():
            for target in self.kept():
                self.assertNotEqual(self.edge.ask(target, key['token']).status, 200, target)

    def test_guesses_do_not_fill_the_cache(self):
        self.assertEqual(self.edge.ask(self.url, self.reader).status, 200)
        grants = os.path.join(self.edge.folder, 'deltabucket-grants')
        before = len(os.listdir(grants))
        self.assertEqual({self.edge.ask(self.url, f'guess-{number}').status for number in range(9)}, {401})
        self.assertEqual(len(os.listdir(grants)), before)
        self.assertGreater(before, 0)

    def test_a_key_that_may_later_is_not_kept_out(self):
        token = 'later-token-for-tests-0123456789abcdef'
        self.assertEqual(self.edge.ask(self.url, token).status, 401)
        made = self.key('models/s/=read')['token']
        self.assertEqual(self.edge.ask(self.url, made).status, 403)
        self.assertEqual(self.edge.ask(url_of(self.daemon, S), made).status, 200)

    def test_the_target_is_judged_as_it_is_sent(self):
        """Neither dots nor codes nor slashes lead to what the edge keeps of another run."""
        self.assertEqual(self.edge.ask(self.url, self.reader).status, 200)
        mark = self.url.split('?')[1]
        content = shard(weights(0))
        for path in ('/v1/runs/models/s/steps/0/objects/../../../../r/steps/0/objects/anchor/model.safetensors',
                     '/v1/runs/models/s/../r/steps/0/objects/anchor/model.safetensors',
                     '/v1/runs/models/s%2f..%2fr/steps/0/objects/anchor/model.safetensors',
                     '//v1/runs/models/r/steps/0/objects/anchor/model.safetensors',
                     '/v1/runs/models/r/steps//0/objects/anchor/model.safetensors',
                     '/v1/runs/models/r/./steps/0/objects/anchor/model.safetensors'):
            for tail in (mark, 'V=0&' + mark, mark + '&x=1'):
                got = self.edge.ask(f'{path}?{tail}', self.other)
                self.assertNotEqual((got.status, got.body), (200, content), path)
                self.assertNotEqual(got.status, 200, path)
        coded = self.url.replace('/r/', '/%72/')
        self.assertEqual(self.statuses(coded, (self.other, self.reader, self.other)), [403, 200, 403])

    def test_only_the_content_that_is_named_is_kept(self):
        """What comes without its digest, or with more, is the origin's to answer, each time."""
        path, mark = self.url.split('?')
        for tail in ('', '?', '?' + mark + '&x=1', '?x=1&' + mark, '?V=' + 32 * '0' + '&' + mark, '?%76=' + mark[2:]):
            got = self.edge.ask(path + tail, self.reader)
            self.assertEqual((got.status, got.headers['X-Edge-Cache'], got.body), (200, None, shard(weights(0))), tail)
        wrong = f'{path}?v={32 * "0"}'
        self.assertEqual(self.statuses(wrong, (self.reader, self.reader)), [404, 404])

    def test_a_run_that_is_made_anew(self):
        run = Run(self.daemon, 'again')
        run.publish_all(0, 0)
        old = url_of(self.daemon, run.base)
        self.assertEqual(self.edge.ask(old, ROOT_TOKEN).body, shard(weights(0)))
        self.assertEqual(run.call('DELETE', '').status, 204)
        other = shard({name: b'other' + name.encode() for name in 'abcd'})
        run.open()
        body = run.anchor(0)
        stored = run.put('again/other', other)
        body['digest'] = run.checkpoint_digest({name: b'other' + name.encode() for name in 'abcd'})
        body['files'] = [{'path': 'model.safetensors', 'size': stored['size'], 'digest': stored['digest']}]
        body['forms'][0]['objects'] = [dict(stored, name='model.safetensors')]
        reply = run.publish(0, body)
        self.assertEqual(reply.status, 201, reply.body)
        new = url_of(self.daemon, run.base)
        self.assertEqual((old.split('?')[0], old == new), (new.split('?')[0], False))
        self.assertEqual(self.edge.ask(new, ROOT_TOKEN).body, other)

    def test_ranges_and_head(self):
        """Over the slices of the edge: what a reader asks for is what it gets, and the origin sends each slice once."""
        content = os.urandom(9_000_001)
        large = shard({'a': content})
        run = Run(self.daemon, 'large')
        stored = run.put('large/w', large)
        empty = run.put('large/e', b'')
        body = {'step': 0, 'epoch': run.epoch, 'digest': run.checkpoint_digest({'a': content}),
                'files': [{'path': name, 'size': made['size'], 'digest': made['digest']} for name, made in (('empty', empty), ('model.safetensors', stored))],
                'forms': [{'kind': 'anchor', 'format': 'full', 'objects': [dict(empty, name='empty'), dict(stored, name='model.safetensors')]}]}
        self.assertEqual(run.publish(0, body).status, 201)
        objects = self.daemon.request('GET', f'{run.base}/steps/0').json()['forms'][0]['objects']
        urls = {made['name']: f'{run.base}/{made["url"]}' for made in objects}
        url, size = urls['model.safetensors'], len(large)
        before = sent_by(self.daemon, 'StepObject')[1]
        head = self.edge.ask(url, ROOT_TOKEN, method='HEAD')
        self.assertEqual((head.status, head.headers['Content-Length'], head.body), (200, str(size), b''))
        for first, last in ((0, 0), (5, 4_194_310), (4_194_303, 4_194_304), (size - 9, size - 1), (4_000_000, size + 99)):
            got = self.edge.ask(url, ROOT_TOKEN, {'Range': f'bytes={first}-{last}'})
            self.assertEqual((got.status, got.body == large[first:last + 1]), (206, True), (first, last))
            self.assertEqual(got.headers['Content-Range'], f'bytes {first}-{min(last, size - 1)}/{size}')
        self.assertEqual(self.edge.ask(url, ROOT_TOKEN, {'Range': 'bytes=-7'}).body, large[-7:])
        whole = self.edge.ask(url, ROOT_TOKEN)
        self.assertTrue(whole.status == 200 and whole.body == large)
        self.assertEqual(self.edge.ask(url, ROOT_TOKEN, {'If-None-Match': whole.headers['ETag']}).status, 304)
        self.assertEqual(sent_by(self.daemon, 'StepObject')[1] - before, size)
        self.assertEqual(self.edge.ask(url, ROOT_TOKEN, {'Range': f'bytes={size}-'}).status, 416)
        nothing = self.edge.ask(urls['empty'], ROOT_TOKEN)
        self.assertEqual((nothing.status, nothing.body), (200, b''))

    def test_many_polls_are_one(self):
        """Whoever asks; also when the one whose poll the origin has goes away."""
        run = Run(self.daemon, 'polled')
        run.publish_all(0, 0)
        target = f'{run.base}/steps/latest?after=0&wait=60'
        tokens = [self.key('models/polled/=read')['token'] for _ in range(4)] + [ROOT_TOKEN]
        before = sent_by(self.daemon, 'LatestStep')[0]
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            leaving = self.edge.connect()
            leaving.request('GET', target, headers={'Authorization': f'Bearer {tokens[0]}'})
            time.sleep(0.5)
            leaving.close()
            polls = [pool.submit(self.edge.ask, target, tokens[at % 5]) for at in range(20)]
            time.sleep(0.5)
            self.assertFalse(any(poll.done() for poll in polls))
            self.assertEqual(run.publish(1).status, 201)
            replies = [poll.result() for poll in polls]
        self.assertEqual({(reply.status, reply.json()['step']) for reply in replies}, {(200, 1)})
        self.assertLessEqual(sent_by(self.daemon, 'LatestStep')[0] - before, 6)
        self.assertEqual(self.edge.ask(target, self.other).status, 403)

    def test_polls_that_find_nothing_are_one_too(self):
        """Round after round, although the same question was answered before."""
        target = f'{R}/steps/latest?after=1&wait=2'
        before = sent_by(self.daemon, 'LatestStep')[0]
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            for _ in range(2):
                polls = [pool.submit(self.edge.ask, target, self.reader) for _ in range(20)]
                self.assertEqual({poll.result().status for poll in polls}, {204})
                time.sleep(1.5)
        self.assertLess(sent_by(self.daemon, 'LatestStep')[0] - before, 20)

    def test_fetch_urls_of_xet(self):
        content = os.urandom(300_000)
        self.daemon.request('PUT', '/data')
        put = self.edge.ask('/data/a', ROOT_TOKEN, method='PUT', body=content)
        self.assertEqual(put.status, 200)
        name = self.daemon.request('HEAD', '/data/a').headers['x-deltabucket-file-hash']
        key = self.key('data=read')
        read = self.edge.ask('/api/buckets/main/data/xet-read-token', key['token']).json()
        self.assertEqual(read['casUrl'], self.edge.endpoint + '/xet')
        plan = self.edge.ask(f'/xet/v2/reconstructions/{name}', read['accessToken']).json()
        [[entry]] = plan['xorbs'].values()
        target = entry['url'].removeprefix(self.edge.endpoint)
        bounds = entry['ranges'][0]['bytes']
        asked = {'Range': f'bytes={bounds["start"]}-{bounds["end"]}'}
        direct = self.daemon.request('GET', target, headers=asked, token=None)
        before = sent_by(self.daemon, 'FetchRecords', 'xet')[0]
        replies = [self.edge.ask(target, headers=asked) for _ in range(3)]
        self.assertEqual([(reply.status, reply.body, reply.headers['Content-Range']) for reply in replies],
                         3 * [(206, direct.body, direct.headers['Content-Range'])])
        self.assertEqual(sent_by(self.daemon, 'FetchRecords', 'xet')[0] - before, 1)
        part = self.edge.ask(target, headers={'Range': f'bytes={bounds["start"] + 3}-{bounds["start"] + 8}'})
        self.assertEqual(part.body, direct.body[3:9])
        self.assertEqual(self.edge.ask(target, headers={'Range': 'bytes=0-999999999'}).status, 403)
        forged = other_letter(target, -9)
        self.assertEqual([self.edge.ask(forged, token, asked).status for token in (None, ROOT_TOKEN)], [403, 403])
        self.assertNotIn(target, self.edge.log('access.log'))
        with self.away():
            self.assertEqual(self.edge.ask(target, headers=asked).body, direct.body)
            self.assertGreaterEqual(self.edge.ask(forged, headers=asked).status, 401)
        self.daemon.admin('keys', 'revoke', key['key_id'])
        limit = time.monotonic() + REPLY_SECONDS
        while self.edge.ask(target, headers=asked).status != 403:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.1)

    def test_all_else_passes(self):
        """Writes, signatures, and objects with a name that only looks like a step's."""
        large = os.urandom(3_000_000)
        signer = Signer(f'127.0.0.1:{self.edge.port}')
        self.daemon.request('PUT', '/plain')
        for key in ('k', 'a%20b/%2F%25', 'v1/runs/models/r/steps/0/objects/x'):
            put = self.edge.ask(f'/plain/{key}', None, signer.headers('PUT', f'/plain/{key}', large), 'PUT', large)
            self.assertEqual(put.status, 200, put.body)
            got = self.edge.ask(f'/plain/{key}', None, signer.headers('GET', f'/plain/{key}'))
            self.assertEqual((got.status, got.body == large), (200, True))
        signed = self.edge.ask(self.url, None, signer.headers('GET', self.url))
        self.assertEqual((signed.status, signed.headers['X-Edge-Cache'], signed.body), (200, None, shard(weights(0))))
        self.assertEqual(self.edge.ask(f'{R}/steps/0', self.reader, method='DELETE').status, 403)
        self.assertEqual(self.edge.ask('/-edge/may', ROOT_TOKEN).status, 404)
        self.assertEqual(self.edge.ask('/-/health').body, b'ok\n')


class Settings(unittest.TestCase):
    """Other settings of the origin, or of the edge."""

    def test_a_signature_is_enough_and_is_no_part_of_the_key(self):
        with Daemon(arguments=(*ARGUMENTS, '--shared-urls')) as daemon, Edge(daemon, SHORT) as edge:
            Run(daemon, 'r').publish_all(0, 0)
            url = url_of(daemon, R)
            plain = url.split('&')[0]
            self.assertIn('&sign=', url)
            forged = other_letter(url, -2)
            self.assertEqual([edge.ask(target, token).status for target, token in
                              ((url, None), (url, 'none'), (plain, ROOT_TOKEN), (plain, None), (plain, 'none'), (forged, None))],
                             [200, 200, 200, 401, 401, 403])
            self.assertEqual(sent_by(daemon, 'StepObject')[0], 4)  # three refusals
            self.assertEqual([edge.ask(target).headers['X-Edge-Cache'] for target in (url, url)], ['HIT', 'HIT'])
            other = Run(daemon, 's')
            other.publish_all(0, 0)
            moved = url.replace('/r/', '/s/')
            self.assertEqual(edge.ask(moved).status, 403)
            logged = edge.log('access.log')
            self.assertIn(plain.split('?')[0], logged)
            for secret in ('sign=', ROOT_TOKEN):
                self.assertNotIn(secret, logged)
            time.sleep(1.5)
            daemon.kill()
            self.assertEqual(edge.ask(url).body, shard(weights(0)))
            self.assertNotEqual(edge.ask(forged).status, 200)
            self.assertNotEqual(edge.ask(plain).status, 200)
            daemon.start()

    def test_the_host_is_part_of_the_key(self):
        """On a virtual host the same path means an object of that bucket, and `/-/may` too."""
        with Daemon(arguments=(*ARGUMENTS, '--domain', 'edge.test')) as daemon, Edge(daemon, SHORT) as edge:
            Run(daemon, 'r').publish_all(0, 0)
            url = url_of(daemon, R)
            daemon.request('PUT', '/trap')
            for key in ('-/may', url.split('?')[0][1:]):
                self.assertEqual(daemon.request('PUT', f'/trap/{key}', b'another').status, 200)
            self.assertEqual(edge.ask(url, ROOT_TOKEN, {'Host': 'trap.edge.test'}).body, b'another')
            self.assertEqual(edge.ask(url, 'none').status, 401)
            self.assertEqual(edge.ask(url, ROOT_TOKEN).body, shard(weights(0)))

    def test_an_origin_with_another_name_is_not_asked(self):
        changes = {'proxy_ssl_name origin.example.com;': 'proxy_ssl_name elsewhere.example.com;'}
        with Daemon(arguments=ARGUMENTS) as daemon, Edge(daemon, changes) as edge:
            self.assertEqual(edge.ask('/-/health').status, 502)
            self.assertIn('SSL', edge.log())


if __name__ == '__main__':
    unittest.main()
