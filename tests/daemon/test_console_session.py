"""The console: its files, who is signed in, for how long, and where a session counts."""
import hashlib
import json
import pathlib
import re
import unittest

from tests.support.daemon import ROOT_ID, ROOT_SECRET, ROOT_TOKEN, Daemon
from tests.support.runs import Run

THREADS_MEET = False
ROOT = pathlib.Path(__file__).resolve().parents[2]
CONSOLE = {'X-Deltabucket-Console': '1'}
COOKIE = re.compile(r'deltabucket_session=([^;]+)\.([0-9a-f]{64}); Path=/; Max-Age=86400; HttpOnly; SameSite=Strict')
SECURE = re.compile('__Host-' + COOKIE.pattern + '; Secure')  # the prefix needs Path=/, Secure and no Domain


class Console(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.daemon.request('PUT', '/weights')
        cls.daemon.request('PUT', '/weights/run/a', b'content')

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def sign_in(self, status=201, headers=CONSOLE, daemon=None, **words):
        reply = (daemon or self.daemon).request('POST', '/-/sessions', json.dumps(words or {'token': ROOT_TOKEN}).encode(),
                                                dict(headers), token=None)
        self.assertEqual(reply.status, status, reply.body)
        return reply

    def cookie(self, daemon=None, **words):
        found = COOKIE.fullmatch(self.sign_in(daemon=daemon, **words).headers['Set-Cookie'])
        self.assertTrue(found)
        return f'deltabucket_session={found[1]}.{found[2]}'

    def ask(self, cookie, target='/-/session', method='GET', body=None, headers=CONSOLE, daemon=None):
        return (daemon or self.daemon).request(method, target, body, {'Cookie': cookie, **headers}, token=None)

    def expect(self, status, cookie, *asked, **options):
        reply = self.ask(cookie, *asked, **options)
        self.assertEqual(reply.status, status, (asked, reply.body))
        return reply

    def add_key(self, *grants):
        return json.loads(self.daemon.request('POST', '/-/keys', json.dumps({'name': 'guest', 'grants': grants}).encode()).body)

    def test_sign_in_by_secret_by_token_and_by_link(self):
        key = self.add_key('weights/run/=read')
        link = self.daemon.request('POST', '/-/session-links', json.dumps({'key_id': key['key_id']}).encode()).json()
        code = link['url'].partition('/console/#link=')[2]
        for words in ({'key_id': key['key_id'], 'secret': key['secret']}, {'token': key['token']}, {'link': code}):
            reply = self.sign_in(**words)
            told = reply.json()
            self.assertEqual((told['key_id'], told['name'], told['root'], told['metrics'], told['grants'], told['idle_s']),
                             (key['key_id'], 'guest', False, False, ['weights/run/=read'], 1800))
            self.assertEqual(told['server']['url'], self.daemon.endpoint)
            cookie = COOKIE.fullmatch(reply.headers['Set-Cookie'])
            self.assertEqual(cookie[1], key['key_id'])
            self.assertEqual(self.ask(f'deltabucket_session={cookie[1]}.{cookie[2]}').json(), told)
            self.expect(403, f'deltabucket_session={cookie[1]}.{cookie[2]}', '/-/keys')
        self.assertEqual(self.sign_in(401, link=code).json()['error']['code'], 'unknown_key')

    def test_a_link_without_a_key_is_the_callers_and_only_root_makes_one(self):
        made = self.daemon.request('POST', '/-/session-links')
        self.assertEqual(made.status, 201)
        self.assertEqual(self.sign_in(link=made.json()['url'].partition('#link=')[2]).json()['key_id'], ROOT_ID)
        self.assertEqual(self.daemon.request('POST', '/-/session-links', b'{"key_id":"nobody"}').status, 404)
        self.assertEqual(self.daemon.request('POST', '/-/session-links', token=self.add_key()['token']).status, 403)

    def test_wrong_words_are_refused_alike(self):
        key = self.add_key()
        texts = set()
        for words in ({'key_id': key['key_id'], 'secret': 'wrong'}, {'key_id': 'nobody', 'secret': key['secret']},
                      {'key_id': 'nobody', 'secret': 'x'}, {'token': 'wrong'}):
            reply = self.sign_in(401, **words)
            self.assertIsNone(reply.headers['Set-Cookie'])
            texts.add((reply.json()['error']['code'], reply.json()['error']['message']))
        self.assertEqual(len(texts), 1)
        for words in ({'key_id': ROOT_ID}, {'token': 'a', 'link': 'b'}, {'key_id': ROOT_ID, 'secret': 's', 'token': 't'}, {'token': 7},
                      {'token': ''}, {'what': 'x'}):
            self.sign_in(400, **words)

    def test_sign_in_needs_the_header(self):
        for headers in ({}, {'X-Deltabucket-Console': '0'}, {'Content-Type': 'application/x-www-form-urlencoded'}):
            self.assertIsNone(self.sign_in(403, headers, token=ROOT_TOKEN).headers['Set-Cookie'])

    def test_a_session_counts_on_the_console_s_faces_alone(self):
        cookie = self.cookie()
        for target in ('/-/session', '/-/keys', '/-/metrics', '/v1/runs/weights'):
            self.expect(200, cookie, target)
            self.assertEqual(self.ask(cookie, target, headers={}).status, 401, target)
        for target, status in (('/weights/run/a', 403), ('/weights?list-type=2', 403), ('/', 403), ('/api/whoami-v2', 401),
                               ('/api/buckets/main/weights', 401), ('/hot_load/v1/models/hot_load', 401),
                               ('/xet/v1/reconstructions/' + 64 * '0', 401)):
            self.expect(status, cookie, target)

    def test_nothing_that_is_stored_runs_in_the_consoles_origin(self):
        """Lists, documents and errors too: a browser may open any of them. Pages of the server have policies of their own."""
        self.daemon.request('PUT', '/weights/run/page', b'<script>alert(1)</script>', {'Content-Type': 'text/html'})
        for target, policy, headers in (
                ('/', 'sandbox', {}), ('/weights', 'sandbox', {}), ('/weights?list-type=2', 'sandbox', {}), ('/weights?cors', 'sandbox', {}),
                ('/none/x', 'sandbox', {}), ('/weights/run/page', 'sandbox', {}), ('/weights/run/page', 'sandbox', {'Range': 'bytes=0-7'}),
                ('/weights/run/page', 'sandbox', {'If-None-Match': '*'}), ('/weights/run/page?versionId=%zz', 'sandbox', {}),
                ('/weights/run/page?response-content-type=image%2Fsvg%2Bxml', 'sandbox', {}), ('/buckets/main/weights/resolve/run/page', 'sandbox', {}),
                ('/api/whoami-v2', 'sandbox', {}), ('/api/buckets/main/weights', 'sandbox', {}), ('/api/buckets/main/none', 'sandbox', {}),
                ('/xet/v1/reconstructions/' + 64 * '0', 'sandbox', {}), ('/v1/runs/weights', 'sandbox', {}), ('/-/keys', 'sandbox', {}),
                ('/buckets/main/weights', "default-src 'none'", {}), ('/buckets/main/none', "default-src 'none'", {}),
                ('/console/', "default-src 'none'; script-src .*", {}), ('/console/none', "default-src 'none'; script-src .*", {})):
            for method in ('GET', 'HEAD'):
                got = self.daemon.request(method, target, headers=headers).headers
                self.assertEqual(got.get_all('X-Content-Type-Options'), ['nosniff'], (method, target))
                [said] = got.get_all('Content-Security-Policy')
                self.assertRegex(said, f'^{policy}$', (method, target))

    def test_a_put_that_is_refused_before_its_body_is_disarmed_too(self):
        got = self.daemon.request('PUT', '/none/a', 100_000 * b'a').headers
        self.assertEqual((got.get_all('X-Content-Type-Options'), got.get_all('Content-Security-Policy')), (['nosniff'], ['sandbox']))

    def test_credentials_come_before_the_cookie(self):
        cookie = self.cookie()
        key = self.add_key()
        reply = self.ask(cookie, headers={**CONSOLE, 'Authorization': f'Bearer {key["token"]}'})
        self.assertEqual((reply.json()['key_id'], reply.json()['expires']), (key['key_id'], None))
        self.expect(401, cookie, headers={**CONSOLE, 'Authorization': 'Bearer wrong'})
        self.expect(400, cookie, '/-/session?X-Amz-Signature=0')

    def test_what_another_site_can_send_changes_nothing(self):
        cookie = self.cookie()
        foreign = {'Origin': 'https://evil.example', 'Referer': 'https://evil.example/', 'Sec-Fetch-Site': 'cross-site'}
        for kind in ('application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain'):
            for method, target, body in (('POST', '/-/keys', b'{"name":"evil"}'), ('POST', '/-/session-links', b''),
                                         ('POST', '/v1/runs/weights/evil', b'{}'), ('GET', '/-/keys', None)):
                self.expect(401, cookie, target, method, body, {**foreign, 'Content-Type': kind})
        preflight = {**foreign, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'x-deltabucket-console'}
        for target in ('/-/keys', '/-/sessions', '/v1/runs/weights/evil'):
            reply = self.ask(cookie, target, 'OPTIONS', headers=preflight)
            self.assertEqual(reply.status, 405)
            self.assertFalse([name for name in reply.headers if name.lower().startswith('access-control')])
        self.assertNotIn('evil', self.daemon.request('GET', '/-/keys').body.decode())
        self.assertEqual(self.daemon.request('GET', '/v1/runs/weights').json()['runs'], [])

    def test_sign_out_ends_the_session_for_a_thief_too(self):
        cookie, other = self.cookie(), self.cookie()
        reply = self.expect(204, cookie, '/-/session', 'DELETE')
        self.assertIn('deltabucket_session=; Path=/; Max-Age=0', reply.headers['Set-Cookie'])
        self.expect(401, cookie)
        self.expect(200, other)
        self.assertEqual(self.daemon.request('DELETE', '/-/session').status, 404)

    def test_a_new_sign_in_ends_the_session_of_its_cookie_alone(self):
        cookie, other, key = self.cookie(), self.cookie(), self.add_key()
        refused = self.sign_in(401, {**CONSOLE, 'Cookie': cookie}, token='wrong')
        self.assertIsNone(refused.headers['Set-Cookie'])
        self.expect(200, cookie)
        reply = self.sign_in(headers={**CONSOLE, 'Cookie': cookie}, token=key['token'])
        new = COOKIE.fullmatch(reply.headers['Set-Cookie'])
        self.expect(401, cookie)
        self.expect(200, other)
        self.expect(200, f'deltabucket_session={new[1]}.{new[2]}')
        entries = self.audit(limit=2).json()['entries']
        self.assertEqual([(one['action'], one['key_id'], one['detail']) for one in entries],
                         [('sign_in', key['key_id'], 'token'), ('sign_out', ROOT_ID, 'by a new sign-in')])
        self.sign_in(headers={**CONSOLE, 'Cookie': cookie}, token=key['token'])  # one that has ended does not matter

    def test_sessions_are_listed_and_ended_by_root_and_by_their_own_key(self):
        mine, theirs = self.add_key(), self.add_key()
        cookie, foreign = self.cookie(token=mine['token']), self.cookie(token=theirs['token'])
        own = self.ask(cookie, '/-/sessions').json()['sessions']
        self.assertEqual([(one['key_id'], one['address']) for one in own], [(mine['key_id'], '127.0.0.1')])
        every = {one['id']: one['key_id'] for one in self.daemon.request('GET', '/-/sessions').json()['sessions']}
        self.assertLessEqual({mine['key_id'], theirs['key_id']}, set(every.values()))
        other = next(id for id, key in every.items() if key == theirs['key_id'])
        self.expect(404, cookie, f'/-/sessions/{other}', 'DELETE')
        self.expect(400, cookie, '/-/sessions/x', 'DELETE')
        self.expect(200, foreign)
        self.assertEqual(self.daemon.request('DELETE', f'/-/sessions/{other}').status, 204)
        self.expect(401, foreign)
        self.expect(204, cookie, f'/-/sessions/{own[0]["id"]}', 'DELETE')
        self.expect(401, cookie)
        # the id that the list shows is no cookie
        self.expect(401, f'deltabucket_session={mine["key_id"]}.{own[0]["id"]}')

    def test_a_revoked_key_takes_its_sessions_and_links_with_it(self):
        key = self.add_key()
        cookie = self.cookie(token=key['token'])
        link = self.daemon.request('POST', '/-/session-links', json.dumps({'key_id': key['key_id']}).encode()).json()['url']
        self.daemon.request('DELETE', f'/-/keys/{key["key_id"]}')
        self.expect(401, cookie)
        self.sign_in(401, link=link.partition('#link=')[2])
        self.assertNotIn(key['key_id'], self.daemon.request('GET', '/-/sessions').body.decode())

    def test_cookies_that_are_not_one_session_are_nobody(self):
        cookie, second = self.cookie(), self.cookie()
        key, _, secret = cookie.partition('=')[2].rpartition('.')
        for header in ('', 'x', 'deltabucket_session=', 'deltabucket_session=.', f'deltabucket_session={secret}',
                       f'deltabucket_session=.{secret}', f'deltabucket_session={key}.{secret[:-1]}', f'deltabucket_session={key}.{secret}0',
                       f'deltabucket_session={key}.{"0" * 64}', f'deltabucket_session={key}.{secret[:-1]}g', f'deltabucket_session=%zz.{secret}',
                       f'deltabucket_session={key}x.{secret}', f'Deltabucket_session={key}.{secret}', f'xdeltabucket_session={key}.{secret}',
                       f'{cookie}; {second}', f'{cookie}; {cookie}', f'{cookie}, {second}', f'{cookie}; deltabucket_session=',
                       f'deltabucket_session="{key}.{secret}"', f'deltabucket_session={"k" * 3000}.{secret}'):
            self.expect(401, header)
        for header in (f'a=b; {cookie}; c=d', f'{cookie};', f'a="x,y"; {cookie}', f'a=deltabucket_session; {cookie}'):
            self.expect(200, header)

    def test_two_cookie_headers_are_one_list(self):
        cookie, second = self.cookie(), self.cookie()
        for other, status in ((second, 401), ('a=b', 200)):
            connection = self.daemon.connect()
            connection.putrequest('GET', '/-/session')
            for name, value in (('Cookie', cookie), ('Cookie', other), ('X-Deltabucket-Console', '1')):
                connection.putheader(name, value)
            connection.endheaders()
            self.assertEqual(connection.getresponse().status, status)
            connection.close()

    def test_the_catalog_holds_no_cookie(self):
        cookie = self.cookie()
        secret = cookie.rpartition('.')[2]
        link = self.daemon.request('POST', '/-/session-links').json()['url'].partition('#link=')[2]
        stored = b''
        for name in ('catalog.db', 'catalog.db-wal'):
            with open(f'{self.daemon.folder}/{name}', 'rb') as file:
                stored += file.read()
        self.assertIn(hashlib.sha256(bytes.fromhex(link)).digest(), stored)
        for text in (secret, link):
            self.assertNotIn(bytes.fromhex(text), stored)
            self.assertNotIn(text.encode(), stored)

    def sign(self, cookie, *requests, expires_s=900, status=200):
        body = json.dumps({'expires_s': expires_s, 'requests': requests}).encode()
        reply = self.expect(status, cookie, '/-/signed-urls', 'POST', body)
        if status != 200:
            return reply
        urls = [url.removeprefix(self.daemon.endpoint) for url in reply.json()['urls']]
        self.assertTrue(all(url.startswith('/') for url in urls))
        return urls

    def use(self, cookie, method, bucket, key=None, query=None, body=None, status=200, headers=None):
        """Signs one request and makes it, without any credentials beside the URL."""
        request = {'method': method, 'bucket': bucket, **({'key': key} if key else {}), **({'query': query} if query else {})}
        reply = self.daemon.request(method, self.sign(cookie, request)[0], body, headers, token=None)
        self.assertEqual(reply.status, status, reply.body)
        return reply

    def test_signed_urls_do_all_that_the_console_needs(self):
        cookie, key = self.cookie(), 'dir/ä b+c&d=e?f#g%h'
        self.use(cookie, 'PUT', 'weights', key, body=b'x' * 100)
        self.assertEqual(self.use(cookie, 'GET', 'weights', key, headers={'Range': 'bytes=0-9'}, status=206).body, b'x' * 10)
        self.assertEqual(self.use(cookie, 'HEAD', 'weights', key).headers['Content-Length'], '100')
        listed = self.use(cookie, 'GET', 'weights', query={'list-type': '2', 'prefix': 'dir/ä', 'delimiter': '/'})
        self.assertIn(key.replace('&', '&amp;').encode(), listed.body)
        self.use(cookie, 'GET', 'weights', query={'versions': ''})
        self.use(cookie, 'GET', 'weights', key, query={'response-content-disposition': 'attachment; filename="a b"'})
        upload = re.search(rb'<UploadId>(.+)</UploadId>', self.use(cookie, 'POST', 'weights', 'big', {'uploads': ''}).body)[1].decode()
        part = self.use(cookie, 'PUT', 'weights', 'big', {'partNumber': '1', 'uploadId': upload}, b'part')
        self.assertIn(b'<PartNumber>1<', self.use(cookie, 'GET', 'weights', 'big', {'uploadId': upload}).body)
        done = (f'<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{part.headers["ETag"]}</ETag></Part>'
                '</CompleteMultipartUpload>').encode()
        self.use(cookie, 'POST', 'weights', 'big', {'uploadId': upload}, done)
        copied = self.use(cookie, 'PUT', 'weights', 'copy', {'x-amz-copy-source': 'weights/big'}, b'')
        self.assertIn(b'CopyObjectResult', copied.body)
        listed = b'<Delete><Object><Key>big</Key></Object><Object><Key>copy</Key></Object></Delete>'
        self.assertEqual(self.use(cookie, 'POST', 'weights', query={'delete': ''}, body=listed).body.count(b'<Deleted>'), 2)
        self.use(cookie, 'DELETE', 'weights', key, status=204)
        self.use(cookie, 'GET', 'weights', key, status=404)
        self.use(cookie, 'PUT', 'made-by-url')
        self.use(cookie, 'DELETE', 'made-by-url', status=204)

    def test_a_signed_url_is_for_its_request_alone(self):
        cookie = self.cookie()
        url, = self.sign(cookie, {'method': 'GET', 'bucket': 'weights', 'key': 'run/a'})
        self.assertEqual(self.daemon.request('GET', url, token=None).body, b'content')
        for method, target in (('DELETE', url), ('PUT', url), ('GET', url.replace('run/a', 'run/b')), ('GET', f'{url}&versionId=null'),
                               ('GET', url.replace('Expires=900', 'Expires=901'))):
            self.assertEqual(self.daemon.request(method, target, b'' if method == 'PUT' else None, token=None).status, 403, target)

    def test_signed_urls_have_the_rights_of_their_key_and_end_with_it(self):
        key = self.add_key('weights/run/=read')
        cookie = self.cookie(token=key['token'])
        self.assertEqual(self.use(cookie, 'GET', 'weights', 'run/a').body, b'content')
        self.use(cookie, 'PUT', 'weights', 'run/a', body=b'x', status=403)
        self.use(cookie, 'GET', 'weights', 'other', status=403)
        url, = self.sign(cookie, {'method': 'GET', 'bucket': 'weights', 'key': 'run/a'})
        self.daemon.request('DELETE', f'/-/keys/{key["key_id"]}')
        self.assertEqual(self.daemon.request('GET', url, token=None).code(), 'InvalidAccessKeyId')

    def test_what_cannot_be_signed(self):
        cookie, read = self.cookie(), {'method': 'GET', 'bucket': 'weights', 'key': 'k'}
        for bucket in ('-', 'v1', 'api', 'console', 'xet', 'buckets', 'hot_load', '', '..', 'a/b'):
            self.sign(cookie, {**read, 'bucket': bucket}, status=400)
        for bucket, key, status in (('oauth', 'device', 400), ('oauth', 'device/x', 400), ('oauth', 'x', 200), ('oauth', 'device-x', 200),
                                    ('minio', 'health/live', 400), ('minio', 'x', 200)):
            self.sign(cookie, {'method': 'POST', 'bucket': bucket, 'key': key}, status=status)
        for wrong in ({'method': 'OPTIONS'}, {'method': 7}, {'key': ''}, {'key': 'k' * 1025}, {'key': 'a\0b'}, {'query': []}, {'query': {'a': 1}},
                      {'query': {'X-Amz-Signature': 'x'}}, {'query': {'x-amz-expires': '9'}}, {'query': {'': 'x'}},
                      {'query': {str(i): '' for i in range(33)}}):
            reply = self.sign(cookie, read, {**read, **wrong}, status=400)
            self.assertIn('Request 1 cannot be signed', reply.json()['error']['message'])
        self.sign(cookie, status=400)
        self.sign(cookie, *[read] * 1001, status=400)
        self.assertEqual(len(self.sign(cookie, *[read] * 1000)), 1000)
        for seconds, request, status in ((604800, read, 200), (604801, read, 400), (0, read, 400), (3600, {**read, 'method': 'PUT'}, 200),
                                         (3601, {**read, 'method': 'PUT'}, 400), (3601, {'method': 'GET', 'bucket': 'weights'}, 400)):
            self.sign(cookie, request, expires_s=seconds, status=status)
        self.assertEqual(self.daemon.request('POST', '/-/signed-urls', b'{}', token=None).status, 401)

    def audit(self, **query):
        """Entries are written behind the replies, in the order of all changes."""
        self.daemon.request('PUT', '/weights/flush', b'x')
        asked = '&'.join(f'{name}={value}' for name, value in query.items())
        return self.daemon.request('GET', f'/-/audit?{asked}')

    def test_the_audit_trail_has_what_was_done_and_by_whom(self):
        run, root = '/v1/runs/weights/audited', ('127.0.0.1', ROOT_ID)
        Run(self.daemon, 'audited').publish_all(0, 1)
        pinned = '/v1/runs/models/audited'
        move = b'{"fromRepo":"main/audited-three","toRepo":"main/audited-four","type":"bucket"}'
        key = self.add_key('weights/run/=read')
        cookie = self.cookie(token=key['token'])
        wanted = [('key_made', key['key_id'], 'guest', *root), ('sign_in', key['key_id'], 'token', '127.0.0.1', key['key_id'])]
        self.sign_in(401, key_id=key['key_id'], secret='wrong')
        wanted += [('sign_in_refused', key['key_id'], 'secret', '127.0.0.1', '')]
        self.expect(204, cookie, '/-/session', 'DELETE')
        wanted += [('sign_out', key['key_id'], '', '127.0.0.1', key['key_id'])]
        for method, target, body, status, entry in (
                ('POST', '/-/session-links', b'', 201, ('link_made', ROOT_ID, '')),
                ('DELETE', f'/-/keys/{key["key_id"]}', None, 204, ('key_revoked', key['key_id'], '')),
                ('DELETE', '/-/keys/nobody', None, 404, None),
                ('PUT', '/audited-one', b'', 200, ('bucket_made', 'audited-one', '')),
                ('PUT', '/audited-one', b'', 200, None),  # it is there
                ('PUT', '/audited-one?tagging', b'<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>', 200,
                 ('bucket_settings', 'audited-one', 'PutBucketTagging')),
                ('PUT', '/audited-one/key', b'x', 200, None),
                ('DELETE', '/audited-one/key', None, 204, None),
                ('DELETE', '/audited-one', None, 204, ('bucket_removed', 'audited-one', '')),
                ('POST', '/api/buckets/main/audited-two', b'{}', 200, ('bucket_made', 'audited-two', '')),
                ('DELETE', '/api/buckets/main/audited-two', None, 200, ('bucket_removed', 'audited-two', '')),
                ('POST', run, b'{}', 200, None),
                ('PUT', f'{run}/settings', b'{"keep_steps":64}', 200, ('run_settings', 'weights/audited', '')),
                ('DELETE', run, None, 204, ('run_removed', 'weights/audited', '')),
                ('PUT', f'{pinned}/pins/best', b'{"step":0}', 200, ('pin_put', 'models/audited', 'best')),
                ('DELETE', f'{pinned}/pins/best', None, 204, ('pin_removed', 'models/audited', 'best')),
                ('PUT', f'{pinned}/rollback', b'{"step":0}', 200, ('rollback', 'models/audited', '{"step":0}')),
                ('DELETE', f'{pinned}/rollback', None, 200, ('forward', 'models/audited', '')),
                ('PUT', '/audited-three', b'', 200, ('bucket_made', 'audited-three', '')),
                ('POST', '/api/repos/move', move, 200, ('bucket_settings', '', move.decode())),
                ('POST', '/-/scrub', b'{}', 200, ('scrub', '', '{}')),
                ('POST', '/-/gc', b'{"dry_run":true}', 200, None),
                ('POST', '/-/gc', b'{"dry_run":false}', 200, ('gc', '', '{"dry_run":false}')),
                ('POST', '/-/gc', b'', 200, ('gc', '', ''))):
            self.assertEqual(self.daemon.request(method, target, body).status, status, (method, target))
            wanted += [(*entry, *root)] if entry else []
        entries = self.audit(limit=1000).json()['entries']
        found = [tuple(one[name] for name in ('action', 'subject', 'detail', 'address', 'key_id')) for one in reversed(entries)]
        self.assertEqual(found[-len(wanted):], wanted)
        self.assertEqual([one['id'] for one in entries], sorted((one['id'] for one in entries), reverse=True))
        self.assertEqual({len(one['request_id']) for one in entries}, {32})
        table = re.search(r'^\| `action` \|.*?\n\n', (ROOT / 'docs/protocol/admin.md').read_text(), re.M | re.S)[0]
        told = [(action, detail) for actions, detail in re.findall(r'^\| (`.*?) \|.*\| ?(.*?) ?\|$', table, re.M)
                for action in re.findall('`(.+?)`', actions) if action != 'action']
        self.assertEqual({action for action, _ in told}, {entry[0] for entry in wanted} | {'urls_signed'})
        self.assertEqual({action for action, detail in told if detail}, {entry[0] for entry in wanted if entry[2]} | {'sign_out', 'urls_signed'})
        self.daemon.admin('keys', 'add', '--name', 'by-hand')
        self.assertEqual([self.audit(limit=1).json()['entries'][0][name] for name in ('action', 'key_id', 'detail')],
                         ['key_made', 'control', 'by-hand'])

    def test_urls_that_outlive_an_hour_are_audited_before_they_are_told(self):
        cookie, read = self.cookie(), {'method': 'GET', 'bucket': 'weights', 'key': 'run/ä'}
        before = self.audit(limit=1).json()['entries'][0]['id']
        self.assertEqual(len(self.sign(cookie, read, expires_s=3600)), 1)
        self.assertEqual(self.audit(limit=1).json()['entries'][0]['id'], before)
        self.assertEqual(len(self.sign(cookie, read, {**read, 'key': 'x'}, expires_s=3601)), 2)
        self.sign(cookie, {**read, 'method': 'PUT'}, expires_s=3601, status=400)
        entries = self.audit(limit=2).json()['entries']
        self.assertEqual([entries[0][name] for name in ('action', 'subject', 'detail', 'key_id')],
                         ['urls_signed', 'weights/run/ä', '2 for 3601 seconds', ROOT_ID])
        self.assertEqual(entries[1]['id'], before)

    def test_the_audit_trail_has_pages(self):
        for _ in range(3):
            self.add_key()
        whole = self.audit(limit=1000).json()
        self.assertNotIn('next', whole)
        pages, before = [], 2 ** 62
        while before:
            page = self.audit(limit=2, before=before).json()
            pages += page['entries']
            before = page.get('next')
        self.assertEqual(pages, whole['entries'])
        for query in ({'limit': 0}, {'limit': 1001}, {'limit': 'x'}, {'before': 0}, {'before': -1}, {'before': 2 ** 63}):
            self.assertEqual(self.audit(**query).status, 400, query)
        self.assertEqual(self.daemon.request('GET', '/-/audit', token=self.add_key()['token']).status, 403)

    def test_keys_say_when_they_were_last_used(self):
        with Daemon(tls=False) as daemon:
            made = json.loads(daemon.request('POST', '/-/keys').body)

            def used():
                return next(key['last_used'] for key in daemon.request('GET', '/-/keys').json()['keys'] if key['key_id'] == made['key_id'])

            self.assertIsNone(used())
            daemon.request('GET', '/-/session', token=made['token'])
            first = used()
            self.assertRegex(first, r'\d{4}-\d\d-\d\dT')
            daemon.request('POST', '/-/keys')  # loads all keys anew
            self.assertEqual(used(), first)
            daemon.stop()  # writes it down
            daemon.start()
            self.assertEqual(used(), first)

    def test_the_command_prints_a_link(self):
        key = self.add_key()
        for words, key_id, said in (((), ROOT_ID, 'the root key'), (('--key', key['key_id']), key['key_id'], f'the key {key["key_id"]}')):
            done = self.daemon.admin('console', *words)
            link = re.fullmatch(re.escape(self.daemon.endpoint) + '/console/#link=([0-9a-f]{64})\n\n(.+)\n', done.stdout)
            self.assertTrue(link, done.stdout)
            self.assertEqual(link[2], f'This link signs in once, within 5 minutes. Whoever has it acts as {said}.')
            self.assertEqual(self.sign_in(link=link[1]).json()['key_id'], key_id)
            self.sign_in(401, link=link[1])
        self.assertIn('#link=', json.loads(self.daemon.admin('console', '--json').stdout)['url'])
        done = self.daemon.admin('console', '--key', 'nobody', check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("The key 'nobody' does not exist.", done.stderr)
        self.assertEqual(self.audit(limit=1).json()['entries'][0]['key_id'], 'control')

    def test_the_command_says_that_no_server_runs(self):
        with Daemon(tls=False, arguments=['--public-url', 'https://models.example']) as daemon:
            self.assertIn('https://models.example/console/#link=', daemon.admin('console').stdout)
            daemon.stop()
            done = daemon.admin('console', check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ''))
            self.assertIn(f'no server runs on {daemon.folder}', done.stderr)

    def test_guesses_are_limited_for_one_key_and_lock_out_nobody(self):
        with Daemon(tls=False) as daemon:
            statuses = [self.sign_in_any(daemon, key_id=ROOT_ID, secret=f'wrong{i}').status for i in range(12)]
            self.assertEqual(statuses, [401] * 10 + [503] * 2)
            refused = self.sign_in_any(daemon, key_id=ROOT_ID, secret=ROOT_SECRET)  # not judged any more
            self.assertEqual((refused.status, refused.json()['error']['code']), (503, 'busy'))
            self.assertGreater(int(refused.headers['Retry-After']), 0)
            self.sign_in(daemon=daemon, token=ROOT_TOKEN)
            key = json.loads(daemon.request('POST', '/-/keys').body)
            for _ in range(20):  # right words cost nothing
                self.sign_in(daemon=daemon, key_id=key['key_id'], secret=key['secret'])

    def sign_in_any(self, daemon, **words):
        return daemon.request('POST', '/-/sessions', json.dumps(words).encode(), CONSOLE, token=None)

    def test_sessions_outlive_a_restart_and_a_kill(self):
        with Daemon(tls=False) as daemon:
            cookie = self.cookie(daemon)
            link = daemon.request('POST', '/-/session-links').json()['url'].partition('#link=')[2]
            daemon.stop()
            daemon.start()
            self.expect(200, cookie, daemon=daemon)
            ended = self.cookie(daemon)
            self.expect(204, ended, '/-/session', 'DELETE', daemon=daemon)
            daemon.kill()
            daemon.start()
            self.expect(200, cookie, daemon=daemon)
            self.expect(401, ended, daemon=daemon)
            self.sign_in(daemon=daemon, link=link)
            daemon.kill()
            daemon.start()
            self.sign_in(401, daemon=daemon, link=link)

    def test_another_secret_ends_sessions(self):
        with Daemon(tls=False) as daemon:
            cookie = self.cookie(daemon)
            daemon.stop()
            daemon.environment['DELTABUCKET_ROOT_SECRET'] = 'another-secret-0123456789'
            daemon.start()
            self.expect(401, cookie, daemon=daemon)

    def test_a_catalog_that_is_made_again_has_its_sessions(self):
        with Daemon(tls=False) as daemon:
            cookie, ended = self.cookie(daemon), self.cookie(daemon)
            self.expect(204, ended, '/-/session', 'DELETE', daemon=daemon)
            daemon.stop()
            daemon.admin('rebuild', '--replace')
            daemon.start()
            self.expect(200, cookie, daemon=daemon)
            self.expect(401, ended, daemon=daemon)

    def test_a_cookie_over_https_is_secure_and_of_this_host_alone(self):
        with Daemon() as daemon:
            self.check_secure(daemon, CONSOLE)
        with Daemon(tls=False, arguments=['--public-url', 'https://models.example']) as daemon:
            self.check_secure(daemon, CONSOLE)
        with Daemon(arguments=['--public-url', 'http://models.example']) as daemon:
            self.check_secure(daemon, CONSOLE)
        self.check_secure(self.daemon, {**CONSOLE, 'X-Forwarded-Proto': 'https'})
        self.expect(401, '__Host-' + self.cookie())

    def check_secure(self, daemon, headers):
        reply = self.sign_in(headers=headers, daemon=daemon)
        found = SECURE.fullmatch(reply.headers['Set-Cookie'])
        self.assertTrue(found, reply.headers['Set-Cookie'])
        plain = f'deltabucket_session={found[1]}.{found[2]}'
        self.expect(401, plain, headers=headers, daemon=daemon)
        for target, status in (('/', 403), ('/api/whoami-v2', 401), ('/hot_load/v1/models/hot_load', 401),
                               ('/xet/v1/reconstructions/' + 64 * '0', 401)):
            self.expect(status, '__Host-' + plain, target, headers=headers, daemon=daemon)
        self.expect(200, f'{plain}; __Host-{plain}', headers=headers, daemon=daemon)
        reply = self.expect(204, '__Host-' + plain, '/-/session', 'DELETE', headers=headers, daemon=daemon)
        self.assertEqual(reply.headers['Set-Cookie'], '__Host-deltabucket_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure')


if __name__ == '__main__':
    unittest.main()
