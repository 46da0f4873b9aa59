"""The Hub's buckets over HTTP and HTTPS, as raw requests: identity, life of a bucket, who sees and may what, tokens, and what S3 sees of it."""
import concurrent.futures
import json
import os
import time
import unittest

from tests.support.daemon import ROOT_TOKEN, Daemon, bytes_alone

BAD_NAMES = ['-x', 'x-', '.x', 'x.', 'a--b', 'a..b', 'a.git', 'a%20b', 'a%2Fb', 'a%00b', '%C3%A9', 'x' * 97, 'a~b', 'a:b']
OPEN_POLICY = json.dumps({'Version': '2012-10-17', 'Statement': [
    {'Effect': 'Allow', 'Principal': '*', 'Action': ['s3:GetObject', 's3:ListBucket'],
     'Resource': ['arn:aws:s3:::alice--open', 'arn:aws:s3:::alice--open/*']}]})


class HubDaemon(unittest.TestCase):
    """One server with the namespaces alice, bob and carol; `self.alice` and so on are the tokens of keys for all of each."""
    tls = False
    arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=cls.tls, arguments=cls.arguments)
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__)
        for name in ('alice', 'bob', 'carol'):
            setattr(cls, name, cls.daemon.add_key('--namespace', name)['token'])

    def setUp(self):
        for token in (self.alice, self.bob, self.carol):
            for bucket in self.ask('GET', '/api/buckets/me', token=token).json():
                self.ask('DELETE', f'/api/buckets/{bucket["id"]}', token=token)

    def ask(self, method, target, body=None, token=None, headers=None, status=None):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        reply = self.daemon.request(method, target, body, headers, token=token)
        if status is not None:
            self.assertEqual(reply.status, status, (method, target, reply.body[:300]))
        return reply

    def create(self, name, token, **settings):
        return self.ask('POST', f'/api/buckets/{name}', settings, token, status=200)

    def info(self, name, token=None):
        return self.ask('GET', f'/api/buckets/{name}', token=token, status=200).json()

    def unknown(self, method, target, body=None, token=None):
        """What clients take for "there is no such bucket"."""
        reply = self.ask(method, target, body, token, status=404)
        self.assertEqual(reply.headers['X-Error-Code'], 'RepoNotFound', target)
        self.assertTrue(reply.json()['error'])

    def ids(self, target, token=None):
        return sorted(bucket['id'] for bucket in self.ask('GET', target, token=token, status=200).json())


@bytes_alone
class OtherRepositories(HubDaemon):
    def test_models_and_datasets_are_refused_with_a_sentence_that_clients_show(self):
        said = 'This server has no models, datasets or spaces, only buckets: hf://buckets/NAMESPACE/NAME'
        for token in (None, ROOT_TOKEN):
            for target in ('/api/models/org/model', '/api/models/org/model/revision/main', '/api/datasets/org/data', '/api/spaces/org/space'):
                reply = self.ask('GET', target, token=token, status=404)
                self.assertEqual((reply.headers['X-Error-Code'], reply.headers['X-Error-Message'], reply.json()['error']), ('RepoNotFound', said, said))
            for method, target in (('GET', '/api/models?limit=1'), ('POST', '/api/repos/create'), ('DELETE', '/api/repos/delete'),
                                   ('POST', '/api/models/org/model/preupload/main'), ('POST', '/api/datasets/org/data/commit/main'),
                                   ('PUT', '/api/models/org/model/settings'), ('DELETE', '/api/spaces/org/space/branch/b')):
                reply = self.ask(method, target, {'name': 'x'} if method == 'POST' else None, token, status=404)
                code = None if method in ('POST', 'PUT') else 'RepoNotFound'
                self.assertEqual((reply.headers['X-Error-Code'], reply.headers['X-Error-Message']), (code, said), target)
            for target in ('/org/model/resolve/main/config.json', '/datasets/org/data/resolve/main/a/b', '/org/model/resolve/main/a%2Fb'):
                for method in ('GET', 'HEAD'):
                    reply = self.ask(method, target, token=token)
                    self.assertIn(reply.status, (401, 403, 404), target)
                    self.assertEqual((reply.headers['X-Error-Code'], reply.headers['X-Error-Message']), ('RepoNotFound', said), target)
        for target in ('/org/model/config.json', '/org/resolve/main/x', '/org/model/resolve/main', '/org/model/x/resolve/main/y'):
            self.assertIsNone(self.ask('GET', target, token=ROOT_TOKEN).headers['X-Error-Code'], target)

    def test_an_object_of_such_a_name_is_an_object(self):
        self.ask('PUT', '/realbucket', token=ROOT_TOKEN)
        self.ask('PUT', '/realbucket/model/resolve/main/config.json', 'content', token=ROOT_TOKEN, status=200)
        self.assertEqual(self.ask('GET', '/realbucket/model/resolve/main/config.json', token=ROOT_TOKEN, status=200).body, b'content')


@bytes_alone
class Identity(HubDaemon):
    def test_sentences_end_where_clients_put_a_full_stop(self):
        """huggingface_hub makes "403 Forbidden: {sentence}." of it."""
        reply = self.ask('POST', '/api/buckets/main/theirs', {}, self.alice, status=403)
        said = 'You cannot have buckets in the namespace main'
        self.assertEqual((reply.headers['X-Error-Message'], reply.json()), (said, {'error': said}))

    def test_the_key_speaks_for_its_namespace(self):
        for token in (self.alice, 'hf_' + self.alice):
            reply = self.ask('GET', '/api/whoami-v2', token=token, status=200)
            who = reply.json()
            self.assertEqual((who['name'], who['type'], who['orgs']), ('alice', 'user', []))
            self.assertEqual(who['auth']['accessToken']['role'], 'write')
            self.assertTrue(who['auth']['accessToken']['displayName'])
            self.assertNotIn(self.alice, reply.body.decode())
            self.assertEqual(reply.headers['Content-Type'], 'application/json; charset=utf-8')
            self.assertTrue(reply.headers['X-Request-Id'])
        self.assertEqual(self.ask('GET', '/api/whoami-v2', token=ROOT_TOKEN).json()['name'], 'main')

    def test_unknown_tokens_are_told_so_in_the_words_that_clients_know(self):
        text = 'Invalid credentials in Authorization header'
        for token in ('hf_nonsense', 'nonsense', 'hf_', 'hf_hf_' + self.alice, self.alice[:-1], 'xet_AAAA', 'x' * 3000):
            for target in ('/api/whoami-v2', '/api/buckets/alice', '/api/buckets/alice/x', '/api/models/x/y'):
                with self.subTest(token=token[:20], target=target):
                    reply = self.ask('GET', target, token=token, status=401)
                    self.assertEqual((reply.json(), reply.headers['X-Error-Message']), ({'error': text}, text))
                    self.assertIsNone(reply.headers['X-Error-Code'])

    def test_anonymous(self):
        self.ask('GET', '/api/whoami-v2', status=401)
        self.ask('GET', '/api/buckets/me', status=401)
        self.ask('POST', '/api/buckets/me/x', {}, status=401)
        self.ask('POST', '/api/repos/move', {}, status=401)

    def test_revoked_keys_are_unknown(self):
        made = self.daemon.add_key('--namespace', 'alice')
        self.ask('GET', '/api/whoami-v2', token=made['token'], status=200)
        self.daemon.admin('keys', 'revoke', made['key_id'])
        self.ask('GET', '/api/whoami-v2', token=made['token'], status=401)


class Life(HubDaemon):
    def test_create(self):
        made = self.create('alice/a', self.alice)
        self.assertEqual(made.json(), {'url': self.daemon.endpoint + '/buckets/alice/a', 'name': 'alice/a', 'id': 'alice/a'})
        self.assertEqual(self.create('me/b', self.alice).json()['url'], self.daemon.endpoint + '/buckets/alice/b')
        again = self.ask('POST', '/api/buckets/alice/a', {'private': False}, self.alice, status=409)
        self.assertEqual((again.json()['error'], again.headers['X-Error-Message']), ("The bucket 'alice--a' exists and is yours",) * 2)
        self.assertEqual(again.json()['url'], self.daemon.endpoint + '/buckets/alice/a')
        self.assertTrue(self.info('alice/a', self.alice)['private'])
        self.ask('POST', '/api/buckets/me/empty-body', None, self.alice, status=200)

    def test_url_begins_with_what_the_client_called_the_server(self):
        for host in ('hub.example', 'hub.example:8443', '[::1]:9000'):
            reply = self.ask('POST', '/api/buckets/me/same', {}, self.alice, {'Host': host})
            self.assertEqual(reply.json()['url'], f'{"https" if self.tls else "http"}://{host}/buckets/alice/same')

    def test_info(self):
        self.create('alice/a', self.alice)
        before = self.info('alice/a', self.alice)
        self.assertEqual({key: before[key] for key in ('id', 'name', 'author', 'private', 'visibility', 'size', 'totalFiles')},
                         {'id': 'alice/a', 'name': 'alice/a', 'author': 'alice', 'private': True, 'visibility': 'private', 'size': 0,
                          'totalFiles': 0})
        for moment in (before['createdAt'], before['updatedAt']):
            self.assertRegex(moment, r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$')
        time.sleep(0.01)
        self.ask('PUT', '/alice--a/k', b'12345', self.alice, status=200)
        self.ask('PUT', '/alice--a/d/e', b'x' * 100000, self.alice, status=200)
        after = self.info('alice/a', self.alice)
        self.assertEqual((after['size'], after['totalFiles'], after['createdAt']), (100005, 2, before['createdAt']))
        self.assertGreater(after['updatedAt'], before['updatedAt'])
        self.ask('PUT', '/alice--a/k', b'1', self.alice, status=200)
        self.ask('DELETE', '/alice--a/d/e', None, self.alice, status=204)
        self.assertEqual([self.info('alice/a', self.alice)[key] for key in ('size', 'totalFiles')], [1, 1])

    def test_delete_takes_all_along(self):
        self.create('alice/a', self.alice)
        for i in range(30):
            self.ask('PUT', f'/alice--a/{i}', b'x' * 5000, self.alice, status=200)
        self.ask('DELETE', '/api/buckets/alice/a', token=self.alice, status=200)
        self.unknown('GET', '/api/buckets/alice/a', token=self.alice)
        self.unknown('DELETE', '/api/buckets/alice/a', token=self.alice)
        self.ask('GET', '/alice--a/1', token=self.alice, status=404)
        self.create('alice/a', self.alice)
        self.assertEqual(self.info('alice/a', self.alice)['totalFiles'], 0)
        self.assertNotIn(b'<Key>', self.ask('GET', '/alice--a', token=self.alice, status=200).body)
        self.unknown('DELETE', '/api/buckets/alice', token=self.alice)

    def test_runs_keep_their_bucket(self):
        self.create('alice/a', self.alice)
        self.ask('POST', '/v1/runs/alice--a/run', {}, self.alice, status=200)
        self.ask('DELETE', '/api/buckets/alice/a', token=self.alice, status=409)
        self.assertEqual(self.info('alice/a', self.alice)['id'], 'alice/a')
        self.ask('DELETE', '/v1/runs/alice--a/run', token=self.alice)
        self.ask('DELETE', '/api/buckets/alice/a', token=self.alice, status=200)

    def test_move(self):
        self.create('alice/a', self.alice, private=False)
        self.create('alice/taken', self.alice)
        self.ask('PUT', '/alice--a/k', b'12345', self.alice, status=200)

        def move(source, target, token, status, **more):
            return self.ask('POST', '/api/repos/move', {'fromRepo': source, 'toRepo': target, 'type': 'bucket', **more}, token, status=status)

        move('alice/a', 'alice/taken', self.alice, 409)
        move('alice/a', 'bob/a', self.alice, 403)
        move('alice/a', 'bob/a', self.bob, 403)
        move('alice/taken', 'bob/a', self.bob, 404)
        move('alice/none', 'alice/b', self.alice, 404)
        move('alice/a', 'alice/b--c', self.alice, 400)
        move('alice', 'alice/b', self.alice, 400)
        move('alice/a', 'alice/b', self.alice, 404, type='model')
        self.ask('POST', '/api/repos/move', b'{', self.alice, status=400)
        self.ask('POST', '/v1/runs/alice--a/run', {}, self.alice, status=200)
        before = self.info('alice/a', self.alice)
        move('alice/a', 'alice/b', self.alice, 200)
        self.assertEqual(self.ask('GET', '/v1/runs/alice--b/run', token=self.alice, status=200).json()['epoch'], 1)
        self.assertEqual(self.ask('POST', '/v1/runs/alice--b/run', {}, self.alice, status=200).json()['epoch'], 2)
        self.ask('GET', '/v1/runs/alice--a/run', token=self.alice, status=404)
        self.ask('DELETE', '/v1/runs/alice--b/run', token=self.alice)
        self.unknown('GET', '/api/buckets/alice/a', token=self.alice)
        self.unknown('GET', '/api/buckets/alice/a/xet-read-token', token=self.alice)
        self.assertEqual(self.info('alice/b', self.alice), {**before, 'id': 'alice/b', 'name': 'alice/b'})
        self.assertEqual(self.ask('GET', '/alice--b/k', token=self.alice, status=200).body, b'12345')
        self.assertEqual(self.ask('GET', '/alice--a/k', token=self.alice).status, 404)
        self.create('alice/a', self.alice)
        self.assertEqual(self.info('alice/a', self.alice)['size'], 0)
        move('alice/b', 'bob/gift', ROOT_TOKEN, 200)
        self.assertEqual(self.ids('/api/buckets/me', self.bob), ['bob/gift'])
        self.assertEqual(self.ask('GET', '/bob--gift/k', token=self.bob, status=200).body, b'12345')

    def test_all_of_it_survives_a_restart(self):
        self.create('alice/a', self.alice, private=False)
        self.create('alice/b', self.alice)
        self.create('alice/c', self.alice)
        self.ask('PUT', '/alice--a/k', b'12345', self.alice, status=200)
        self.ask('PUT', '/alice--c/k', b'12345', self.alice, status=200)
        self.ask('POST', '/api/repos/move', {'fromRepo': 'alice/a', 'toRepo': 'alice/moved', 'type': 'bucket'}, self.alice, status=200)
        self.ask('PUT', '/api/buckets/alice/b/settings', {'private': False}, self.alice, status=200)
        self.ask('DELETE', '/api/buckets/alice/c', token=self.alice, status=200)
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.ids('/api/buckets/alice'), ['alice/b', 'alice/moved'])
        moved = self.info('alice/moved', self.alice)
        self.assertEqual((moved['private'], moved['size'], moved['totalFiles']), (False, 5, 1))

    def test_one_of_many_creates_wins(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda _: self.ask('POST', '/api/buckets/me/raced', {}, self.alice).status, range(16)))
        self.assertEqual(sorted(statuses), [200] + 15 * [409])


@bytes_alone
class LifeOverTls(Life):
    tls = True


@bytes_alone
class Bad(HubDaemon):
    def test_names(self):
        for name in BAD_NAMES:
            with self.subTest(name=name):
                self.ask('POST', f'/api/buckets/alice/{name}', {}, self.alice, status=400)
                self.ask('POST', f'/api/buckets/alice/{name}', {}, status=401 if name != 'a%00b' else 400)
        for name in ('xet', 'api', 'buckets', 'v1', 'console'):
            self.ask('POST', f'/api/buckets/main/{name}', {}, ROOT_TOKEN, status=400)
        self.create('alice/xet', self.alice)
        self.assertEqual(self.ids('/api/buckets/me', self.alice), ['alice/xet'])

    def test_good_names(self):
        for name in ('a', 'A.b_C-9', '_x_', 'x' * 96, 'model.gitx'):
            with self.subTest(name=name):
                self.create(f'alice/{name}', self.alice)
                self.assertEqual(self.info(f'alice/{name}', self.alice)['id'], f'alice/{name}')
                self.ask('PUT', f'/alice--{name}/k', b'1', self.alice, status=200)
                self.ask('DELETE', f'/api/buckets/alice/{name}', token=self.alice, status=200)

    def test_namespaces_of_others(self):
        for namespace in ('bob', 'main', 'nobody', '-', 'alice--x'):
            self.ask('POST', f'/api/buckets/{namespace}/x', {}, self.alice, status=403)
        for namespace in ('Bob', 'b--b', '-b', 'b-', 'b%20b'):
            self.ask('POST', f'/api/buckets/{namespace}/x', {}, ROOT_TOKEN, status=400)
        self.ask('POST', '/api/buckets/bob/given', {}, ROOT_TOKEN, status=200)
        self.ask('DELETE', '/api/buckets/bob/given', token=self.bob, status=200)

    def test_bodies(self):
        self.create('alice/a', self.alice)
        bodies = [b'{', b'[]', b'"x"', b'null', b'\xff\xfe', b'{"private":1}', b'{"private":"true"}', b'{"private":[]}', b'{"visibility":"open"}',
                  b'{"visibility":"protected"}', b'{"visibility":false}', b'{"private":true,"visibility":"public"}', b'{} {}',
                  b'[' * 5000, b'{"private":true,"private":false}']
        for body in bodies:
            with self.subTest(body=body[:40]):
                self.ask('POST', '/api/buckets/alice/new', body, self.alice, status=400)
                self.ask('PUT', '/api/buckets/alice/a/settings', body, self.alice, status=400)
        for body in (b'{', b'[]', b'{}x', b'{"type":"bucket"}', b'{"type":"bucket","fromRepo":1,"toRepo":2}'):
            self.ask('POST', '/api/repos/move', body, self.alice, status=400)
        self.assertEqual(self.ids('/api/buckets/me', self.alice), ['alice/a'])

    def test_huge_bodies_are_refused(self):
        self.create('alice/a', self.alice)
        huge = b'{"x":"' + b'a' * (8 << 20) + b'"}'
        for method, target in (('POST', '/api/buckets/alice/new'), ('PUT', '/api/buckets/alice/a/settings'), ('POST', '/api/repos/move')):
            try:
                self.assertEqual(self.ask(method, target, huge, self.alice).status, 400, target)
            except (ConnectionError, BrokenPipeError):
                pass  # refused by its length, before it was sent
        self.assertEqual(self.ids('/api/buckets/me', self.alice), ['alice/a'])
        self.assertLess(self.daemon.rss_bytes(), 400 << 20)

    def test_unknown_paths_are_404_with_a_json_body(self):
        for method, target in (('GET', '/api'), ('GET', '/api/nonsense'), ('POST', '/api/repos/nothing'), ('GET', '/api/settings/webhooks'),
                               ('POST', '/oauth/device'), ('POST', '/api/validate-yaml'), ('GET', '/api/buckets'), ('PUT', '/api/buckets/alice/a'),
                               ('PATCH', '/api/buckets/alice/a'), ('GET', '/api/buckets/alice/a/nothing'), ('DELETE', '/api/whoami-v2')):
            for token in (None, self.alice):
                with self.subTest(method=method, target=target, signed_in=token is not None):
                    reply = self.ask(method, target, token=token, status=404)
                    self.assertIn('error', reply.json())
                    self.assertIsNone(reply.headers['X-Error-Code'])

    def test_other_kinds_of_repositories_do_not_exist(self):
        for target in ('/api/models/missing/repo', '/api/datasets/missing/repo/revision/main', '/api/spaces/x/y/tree/main?recursive=true',
                       '/api/models/buckets/alice'):
            self.unknown('GET', target)
            self.unknown('GET', target, token=self.alice)
        self.assertEqual(self.ask('GET', '/api/agent-harnesses', status=200).json(), {'standardEnvVars': [], 'harnesses': {}})


@bytes_alone
class Matrix(HubDaemon):
    """Who sees and may what (owner, another namespace, nobody; public, private, not there)."""
    WRITES = (('PUT', '/settings', {}), ('GET', '/xet-write-token', None), ('DELETE', '', None))

    def expect(self, token, read, write):
        for path in ('', '/xet-read-token', '/xet-read-token/main', '/xet-read-token?create_pr=1'):
            reply = self.ask('GET', f'/api/buckets/alice/b{path}', token=token, status=read)
            self.assertEqual(reply.headers['X-Error-Code'], 'RepoNotFound' if read == 404 else None)
        for method, path, body in self.WRITES:
            reply = self.ask(method, f'/api/buckets/alice/b{path}', body, token, status=write)
            self.assertEqual(reply.headers['X-Error-Code'], 'RepoNotFound' if write == 404 else None)

    def test_public(self):
        self.create('alice/b', self.alice, private=False)
        self.expect(self.bob, 200, 403)
        self.expect(None, 200, 401)
        self.expect(self.alice, 200, 200)

    def test_private(self):
        self.create('alice/b', self.alice, private=True)
        self.expect(self.bob, 404, 404)
        self.expect(None, 401, 401)
        self.expect(ROOT_TOKEN, 200, 200)

    def test_missing(self):
        self.expect(self.alice, 404, 404)
        self.expect(self.bob, 404, 404)
        self.expect(ROOT_TOKEN, 404, 404)
        self.expect(None, 401, 401)

    def test_a_private_bucket_looks_like_a_missing_one(self):
        self.create('alice/b', self.alice, private=True)
        for token in (None, self.bob):
            there = self.ask('GET', '/api/buckets/alice/b', token=token)
            missing = self.ask('GET', '/api/buckets/alice/c', token=token)
            self.assertEqual(there.body.replace(b'alice--b', b'alice--c'), missing.body)
            self.assertEqual(sorted(there.headers), sorted(missing.headers))

    def test_visibility(self):
        for settings, private in (({}, True), ({'private': True}, True), ({'private': False}, False), ({'visibility': 'public'}, False),
                                  ({'visibility': 'private'}, True), ({'private': None, 'region': 'us', 'resourceGroupId': 'x'}, True)):
            with self.subTest(settings=settings):
                self.create('alice/b', self.alice, **settings)
                self.assertEqual(self.info('alice/b', self.alice)['private'], private)
                for change in ({'private': not private}, {'visibility': 'private' if private else 'public', 'gated': False}):
                    self.ask('PUT', '/api/buckets/alice/b/settings', change, self.alice, status=200)
                    now = self.info('alice/b', self.alice)
                    self.assertEqual(now['visibility'], 'private' if now['private'] else 'public')
                    self.ask('GET', '/api/buckets/alice/b', status=401 if now['private'] else 200)
                self.assertEqual(now['private'], private)
                self.ask('DELETE', '/api/buckets/alice/b', token=self.alice, status=200)

    def test_lists(self):
        self.create('alice/open', self.alice, private=False)
        self.create('alice/secret', self.alice)
        self.create('alice/Model', self.alice)
        every = ['alice/Model', 'alice/open', 'alice/secret']
        for target in ('/api/buckets/me', '/api/buckets/alice'):
            self.assertEqual(self.ids(target, self.alice), every)
        self.assertEqual(self.ids('/api/buckets/alice', ROOT_TOKEN), every)
        for token in (self.bob, None):
            self.assertEqual(self.ids('/api/buckets/alice', token), ['alice/open'])
            self.unknown('GET', '/api/buckets/nobody', token=token)
        self.assertEqual(self.ids('/api/buckets/me', self.bob), [])
        self.assertEqual(self.ids('/api/buckets/bob', self.alice), [])
        self.assertEqual(self.ids('/api/buckets/me?search=mod', self.alice), ['alice/Model'])
        self.assertEqual(self.ids('/api/buckets/me?search=e', self.alice), every)
        self.assertEqual(self.ids('/api/buckets/me?search=alice', self.alice), [])

    def test_pages(self):
        for i in range(9):
            self.create(f'alice/n{i}', self.alice, private=i % 2 == 0)
        for token, target, wanted in ((self.alice, '/api/buckets/me?limit=4&search=n', 9), (self.bob, '/api/buckets/alice?limit=2', 4)):
            found, pages = [], 0
            while target is not None:
                reply = self.ask('GET', target, token=token, status=200)
                found += [bucket['id'] for bucket in reply.json()]
                pages += 1
                link = reply.headers['Link']
                if link is not None:
                    self.assertRegex(link, r'^<http[^>]+>; rel="next"$')
                    self.assertTrue(link.startswith(f'<{self.daemon.endpoint}/'), link)
                target = link and link[1:link.index('>')][len(self.daemon.endpoint):]
            self.assertEqual((len(found), len(set(found))), (wanted, wanted))
            self.assertGreaterEqual(pages, 2)
        for limit in ('0', 'x', '-1', ''):
            self.ask('GET', f'/api/buckets/me?limit={limit}', token=self.alice, status=400)
        self.assertEqual(len(self.ids('/api/buckets/me?limit=5000', self.alice)), 9)

    def test_tokens(self):
        self.create('alice/b', self.alice, private=False)
        seen = set()
        for kind, token in (('read', self.alice), ('write', self.alice), ('read', None), ('read', self.bob), ('write', ROOT_TOKEN)):
            reply = self.ask('GET', f'/api/buckets/alice/b/xet-{kind}-token', token=token, status=200)
            given = reply.json()
            self.assertEqual(sorted(given), ['accessToken', 'casUrl', 'exp'])
            self.assertEqual((reply.headers['X-Xet-Access-Token'], reply.headers['X-Xet-Cas-Url'], reply.headers['X-Xet-Token-Expiration']),
                             (given['accessToken'], given['casUrl'], str(given['exp'])))
            self.assertEqual(given['casUrl'], self.daemon.endpoint + '/xet')
            self.assertTrue(given['accessToken'].startswith('xet_'))
            self.assertTrue(900 <= given['exp'] - time.time() <= 3700, given['exp'])
            seen.add(given['accessToken'])
            self.ask('GET', '/api/whoami-v2', token=given['accessToken'], status=401)
        self.assertEqual(len(seen), 5)

    def test_keys_with_grants(self):
        self.create('alice/b', self.alice, private=False)
        self.create('alice/other', self.alice, private=False)
        self.ask('PUT', '/alice--b/in/k', b'12345', self.alice, status=200)

        def key(grant):
            return self.daemon.add_key('--namespace', 'bob', '--grant', grant)['token']

        reader, writer, ruler = key('alice--b/in/=read,list'), key('alice--b/in/=write'), key('alice--b=read,list,admin')
        for token in (reader, writer, ruler):
            self.assertEqual(self.ids('/api/buckets/me', token), ['alice/b'])
            self.assertEqual(self.ids('/api/buckets/alice', token), ['alice/b'])
            self.unknown('GET', '/api/buckets/alice/other', token=token)
            self.ask('POST', '/api/buckets/bob/new', {}, token, status=403)
        self.assertEqual(self.info('alice/b', reader)['totalFiles'], 0)
        self.assertEqual(self.info('alice/b', ruler)['totalFiles'], 1)
        for token, status in ((reader, 403), (writer, 200), (ruler, 403)):
            self.ask('GET', '/api/buckets/alice/b/xet-write-token', token=token, status=status)
        for token, status in ((reader, 403), (writer, 403), (ruler, 200)):
            self.ask('PUT', '/api/buckets/alice/b/settings', {'private': True}, token, status=status)
        for token, status in ((reader, 403), (writer, 403), (ruler, 200)):
            self.ask('DELETE', '/api/buckets/alice/b', token=token, status=status)


class MatrixOverTls(Matrix):
    tls = True


class Faces(HubDaemon):
    """The same buckets through S3."""

    def test_names(self):
        self.create('alice/b', self.alice)
        self.ask('PUT', '/alice--b/k', b'x', self.alice, status=200)
        self.ask('PUT', '/plain-of-alice', token=self.alice, status=200)
        self.ask('PUT', '/alice--s3', token=self.alice, status=200)
        listed = self.ask('GET', '/', token=self.alice, status=200).body
        for name in (b'alice--b', b'plain-of-alice', b'alice--s3'):
            self.assertIn(b'<Name>' + name + b'</Name>', listed)
        self.assertEqual(self.ids('/api/buckets/me', self.alice), ['alice/b', 'alice/s3', 'main/plain-of-alice'])
        self.assertEqual(self.ids('/api/buckets/alice', self.alice), ['alice/b', 'alice/s3'])
        self.assertEqual(self.info('main/plain-of-alice', self.alice)['author'], 'main')
        self.unknown('GET', '/api/buckets/main/plain-of-alice', token=self.bob)
        self.ask('DELETE', '/alice--b', token=self.alice, status=409)
        self.ask('DELETE', '/alice--b/k', token=self.alice, status=204)
        self.ask('DELETE', '/alice--b', token=self.alice, status=204)
        self.unknown('GET', '/api/buckets/alice/b', token=self.alice)

    def test_public_is_public_on_both(self):
        self.ask('PUT', '/alice--open', headers={'x-amz-acl': 'public-read'}, token=self.alice, status=200)
        self.assertFalse(self.info('alice/open')['private'])
        self.ask('PUT', '/alice--open?acl', headers={'x-amz-acl': 'private'}, token=self.alice, status=200)
        self.ask('GET', '/api/buckets/alice/open', status=401)
        self.ask('PUT', '/api/buckets/alice/open/settings', {'private': False}, self.alice, status=200)
        self.ask('PUT', '/alice--open/k', b'bytes', self.alice, status=200)
        self.assertEqual(self.ask('GET', '/alice--open/k', status=200).body, b'bytes')
        self.ask('GET', '/alice--open', status=200)
        self.ask('PUT', '/alice--open/k', b'bytes', status=403)
        self.assertIn(b'AllUsers', self.ask('GET', '/alice--open?acl', token=self.alice, status=200).body)
        self.ask('PUT', '/api/buckets/alice/open/settings', {'private': True}, self.alice, status=200)
        self.ask('GET', '/alice--open/k', status=403)

    def test_a_policy_that_opens_a_bucket_is_not_hidden(self):
        self.create('alice/open', self.alice)
        self.ask('PUT', '/alice--open?policy', OPEN_POLICY, self.alice, status=204)
        self.assertFalse(self.info('alice/open')['private'])
        refused = self.ask('PUT', '/api/buckets/alice/open/settings', {'private': True}, self.alice, status=400)
        self.assertIn('policy', refused.json()['error'])
        self.ask('DELETE', '/alice--open?policy', token=self.alice, status=204)
        self.ask('GET', '/api/buckets/alice/open', status=401)

    def test_versions_of_a_versioned_bucket_count_once(self):
        self.create('alice/b', self.alice)
        self.ask('PUT', '/alice--b?versioning', '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>', self.alice, status=200)
        for size in (10, 20, 30):
            version = self.ask('PUT', '/alice--b/k', b'x' * size, self.alice, status=200).headers['x-amz-version-id']
        self.assertEqual([self.info('alice/b', self.alice)[key] for key in ('size', 'totalFiles')], [30, 1])
        self.ask('DELETE', f'/alice--b/k?versionId={version}', token=self.alice, status=204)
        self.assertEqual([self.info('alice/b', self.alice)[key] for key in ('size', 'totalFiles')], [20, 1])
        self.ask('DELETE', '/alice--b/k', token=self.alice, status=204)
        self.assertEqual([self.info('alice/b', self.alice)[key] for key in ('size', 'totalFiles')], [0, 0])
        self.ask('DELETE', '/api/buckets/alice/b', token=self.alice, status=200)

    def test_space_of_a_deleted_bucket_comes_back(self):
        self.create('alice/b', self.alice)
        for i in range(5):
            self.ask('PUT', f'/alice--b/{i}', os.urandom(400000), self.alice, status=200)
        self.ask('DELETE', '/api/buckets/alice/b', token=self.alice, status=200)
        limit = time.monotonic() + 60
        freed = 0
        while freed < 1900000 and time.monotonic() < limit:
            report = self.ask('POST', '/-/gc', token=ROOT_TOKEN)
            self.assertEqual(report.status, 200, report.body)
            freed += report.json().get('bytes_freed', 0)
            time.sleep(0.1)
        self.assertGreater(freed, 1900000)


@bytes_alone
class PublicByDefault(HubDaemon):
    arguments = ('--hub-default-visibility', 'public', '--public-url', 'https://models.example:8443')

    def test_a_bucket_that_says_nothing_is_public(self):
        made = self.create('alice/b', self.alice)
        self.assertEqual(made.json()['url'], 'https://models.example:8443/buckets/alice/b')
        self.assertFalse(self.info('alice/b')['private'])
        token = self.ask('GET', '/api/buckets/alice/b/xet-read-token', status=200)
        self.assertEqual(token.json()['casUrl'], 'https://models.example:8443/xet')
        self.create('alice/c', self.alice, private=True)
        self.ask('GET', '/api/buckets/alice/c', status=401)
        self.ask('PUT', '/of-s3', token=self.alice, status=200)
        self.ask('GET', '/api/buckets/main/of-s3', status=401)


del HubDaemon

if __name__ == '__main__':
    unittest.main()
