"""URLs of step objects and of Xet fetches that need no key (the settings shared_urls and shared_cache): what they open, for whom, and what of them is
written down."""
import os
import re
import shutil
import tempfile
import unittest
import urllib.parse

from tests.support import xet
from tests.support.daemon import Daemon, bytes_alone, other_letter
from tests.support.matrix import routes
from tests.support.runs import FILE, Run, shard, weights

QUERY = re.compile(r'v=(?P<v>[0-9a-f]{32})&expires=(?P<expires>[0-9]+)&sign=(?P<sign>[0-9a-f]{32})')
HOUR = 3600
FORM = {'bucket': 'models', 'run': 'r', 'step': '0', 'steps': '0-4', 'id': 'w', 'name': 'n', 'part': '0', 'name*': f'anchor/{FILE}', 'key*': f'r/{FILE}',
        'namespace': 'main', 'hash': '0' * 64, 'token': 'x', 'path*': 'a', 'revision': 'main'}


@bytes_alone
class SharedUrls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False, arguments=['--shared-urls', '--shared-cache'])
        cls.daemon.start()
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-')
        cls.run_ = Run(cls.daemon, 'r')
        cls.run_.publish_all(0, 3)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        shutil.rmtree(cls.folder)

    def told(self, target='/steps/0', run=None, **options):
        """The first URL that the reply tells, as a target of requests."""
        run = run or self.run_
        reply = run.call('GET', target, **options)
        self.assertEqual(reply.status, 200, reply.body)
        return run.base + '/' + re.search(rb'"url":"([^"]*)"', reply.body)[1].decode()

    def anonymous(self, method, target, headers=None):
        return self.daemon.request(method, target, headers=headers, token=None)

    def key(self, *grants):
        return self.daemon.add_key(*(argument for grant in grants for argument in ('--grant', grant)))

    def same_hour(self, ask):
        """What `ask` gives twice, in one hour of the server's clock."""
        for _ in range(2):
            one, other = ask(), ask()
            if one == other:
                break
        return one, other

    def test_the_bytes_come_without_a_key(self):
        url, data = self.told('/steps/2'), shard(weights(2))
        whole = self.anonymous('GET', url)
        self.assertEqual((whole.status, whole.body), (200, data))
        expires = int(QUERY.search(url)['expires'])
        self.assertEqual(expires % HOUR, 0)
        age = re.fullmatch(r'public, max-age=(\d+), immutable', whole.headers['cache-control'])
        self.assertTrue(0 < int(age[1]) <= 2 * HOUR, age)
        head = self.anonymous('HEAD', url)
        self.assertEqual((head.status, head.headers['content-length'], head.body), (200, str(len(data)), b''))
        part = self.anonymous('GET', url, {'Range': 'bytes=5-20'})
        self.assertEqual((part.status, part.body), (206, data[5:21]))
        again = self.anonymous('GET', url, {'If-None-Match': whole.headers['etag']})
        self.assertEqual((again.status, again.headers['cache-control'][:6]), (304, 'public'))

    def test_all_workers_are_told_the_same(self):
        keys = [self.key('models/r=read')['token'], self.key('models=read,list')['token']]
        for target in ('/steps/3', '/steps/latest', '/path'):
            one, other = self.same_hour(lambda: {self.told(target, token=token) for token in keys})
            self.assertEqual((len(one), one), (1, other))

    def test_it_opens_nothing_else(self):
        """Every route that there is, with the query of a shared URL behind it: as without."""
        url = self.told()
        query = url.partition('?')[2]
        for route in routes():
            path = re.sub(r'\{([^}]*)\}', lambda part: urllib.parse.quote(FORM.get(part[1], 'x')), route.pattern)
            for method in set(route.methods) - {'OPTIONS'}:
                if route.name == 'StepObject' or route.access == 'anyone':
                    continue
                own = (f'?{route.query}' if route.query else '')
                plain = self.anonymous(method, path + own)
                shared = self.anonymous(method, f'{path}{own}{"&" if own else "?"}{query}')
                self.assertGreaterEqual(shared.status, 400, (method, path, shared.body))
                if route.name != 'FoldObject':  # it has its own words for a signature of something else
                    self.assertEqual(shared.status, plain.status, (method, path, shared.body))
        self.assertEqual(self.anonymous('GET', url).status, 200)
        for method in ('PUT', 'POST', 'DELETE'):
            self.assertEqual(self.anonymous(method, url).status, 405)

    def test_whoever_guesses_is_refused(self):
        url = self.told()
        stranger = self.key('models/elsewhere=read,write,list')['token']
        target, found = url.partition('?')[0], QUERY.search(url)
        tries = [target, f"{target}?v={found['v']}", f"{target}?v={found['v']}&sign=", url.replace('sign=', 'Signature='),
                 *(url[:found.start('sign')] + re.sub('[^0-9a-f]', '0', other_letter(found['sign'], at)) for at in range(32)),
                 url.replace(found['expires'], str(int(found['expires']) + HOUR)), url.replace('/steps/0/', '/steps/1/')]
        for guess in tries:
            if guess == url:  # a letter that was a 0 before
                continue
            self.assertIn(self.anonymous('GET', guess).status, (401, 403), guess)
            self.assertIn(self.daemon.request('GET', guess, token=stranger).status, (400, 403), guess)

    def test_a_revoked_key_keeps_what_it_was_told_and_no_more(self):
        key = self.key('models/r=read')
        url = self.told('/steps/1', token=key['token'])
        self.daemon.admin('keys', 'revoke', key['key_id'])
        for target in (f'{self.run_.base}/steps/1', f'{self.run_.base}/path', url):
            self.assertEqual(self.daemon.request('GET', target, token=key['token']).status, 401, target)
        self.assertEqual(self.anonymous('GET', url).body, shard(weights(1)))
        self.assertEqual(self.anonymous('GET', url.replace('/steps/1/', '/steps/2/')).status, 403)

    def test_a_run_made_anew_has_other_urls(self):
        run = Run(self.daemon, 'again')
        run.publish_all(0, 0)
        before = self.told(run=run)
        plain = before.partition('&')[0]
        self.assertEqual(self.daemon.request('GET', plain).status, 200)
        self.daemon.request('DELETE', run.base)
        anew = Run(self.daemon, 'again')
        stored = anew.put('again/x', shard(weights(7)))
        digest = anew.checkpoint_digest(weights(7))
        reply = anew.publish(0, anew.anchor(0, digest=digest, files=[{'path': FILE, 'size': stored['size'], 'digest': stored['digest']}],
                                            forms=[{'kind': 'anchor', 'format': 'full', 'objects': [dict(stored, name=FILE)]}]))
        self.assertEqual(reply.status, 201, reply.body)
        self.assertNotEqual(self.told(run=anew), before)
        for token, target in ((None, before), (self.key('models=read')['token'], plain)):
            gone = self.daemon.request('GET', target, token=token)
            self.assertEqual((gone.status, gone.code(), gone.headers['cache-control']), (404, 'no_key', 'no-store'))
        self.assertEqual(self.anonymous('GET', self.told(run=anew)).body, shard(weights(7)))

    def test_workers_follow_as_ever(self):
        for worker in ('one', 'two'):
            into = os.path.join(self.folder, worker)
            self.daemon.client('follow', '--run', 'models/r', '--into', into, '--once', token=self.key('models/r=read')['token'])
            with open(os.path.join(into, 'current', FILE), 'rb') as held:
                self.assertEqual(held.read(), shard(weights(3)))

    def test_xet_clients_share_their_urls(self):
        data = os.urandom(500_000)
        self.run_.put('r/noise', data)
        name = xet.file_hash([(xet.chunk_hash(piece), len(piece)) for piece in xet.chunks(data)])
        keys = [self.key('models=read') for _ in range(2)]
        all_cas = [xet.Cas(self.daemon, 'main/models', 'read', token=key['token']) for key in keys]
        for version in (1, 2):
            one, other = self.same_hour(lambda: [cas.reconstruction(name, version).json() for cas in all_cas])
            self.assertEqual((one[0], one), (one[1], other))
            self.assertEqual(all_cas[0].download(name, version), data)
        entry = next(iter(all_cas[0].reconstruction(name, 1).json()['fetch_info'].values()))[0]
        for key in keys:
            self.daemon.admin('keys', 'revoke', key['key_id'])
        self.assertEqual(all_cas[0].reconstruction(name, 1).status, 401)
        fetched = all_cas[0].fetch(entry['url'])
        self.assertEqual(fetched.status, 200)
        self.assertRegex(fetched.headers['cache-control'], r'public, max-age=\d+, immutable')
        self.assertEqual(all_cas[0].fetch(other_letter(entry['url'], -3)).status, 403)
        into = os.path.join(self.folder, 'noise')
        self.daemon.client('get', 'models/r/noise', into)
        with open(into, 'rb') as file:
            self.assertEqual(file.read(), data)

    def test_no_signature_is_written_down(self):
        url = self.told()
        for target in (url, other_letter(url, -1), url.replace('/models/', '/missing/')):
            reply = self.anonymous('GET', target)
            self.assertNotIn(QUERY.search(url)['sign'][:16].encode(), reply.body)
        self.assertEqual(self.anonymous('PUT', url).status, 405)
        self.daemon.await_log('method=PUT path=' + url.partition('?')[0])
        trail = self.daemon.request('GET', '/-/audit?limit=1000')
        self.assertEqual(trail.status, 200)
        for text in (self.daemon.log(), trail.body.decode()):
            self.assertNotIn('sign=', text)
            self.assertNotIn(QUERY.search(url)['sign'], text)


if __name__ == '__main__':
    unittest.main()
