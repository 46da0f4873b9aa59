"""Files of Hub buckets over plain HTTP: tree, paths-info, batch, resolve; what S3 stores is seen there and the other way round."""
import json
import os
import re
import unittest
import urllib.parse

from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.s3 import Bucket
from tests.support.xet import Cas, batch, text

THREADS_MEET = False

ZEROS = '0' * 64
DATE = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z')
PUBLIC = {'x-amz-acl': 'public-read'}


class Stream:
    """The events of a bucket: each next() is the name of one and its data."""

    def __init__(self, daemon, hub, **query):
        self.connection = daemon.connect(timeout=60)
        self.connection.request('GET', f'/api/buckets/{hub}/events?{urllib.parse.urlencode(query)}', headers={'Authorization': f'Bearer {ROOT_TOKEN}'})
        self.reply = self.connection.getresponse()

    def next(self):
        """None at the end."""
        fields = {}
        while (line := self.reply.readline().decode()):
            if line == '\n' and 'event' in fields:
                return fields['event'], json.loads(fields['data'])
            name, separator, value = line.rstrip('\n').partition(': ')
            if name and separator:
                fields[name] = value
        return None

    def until(self, path):
        """Reads on to the change of this path; gives it, and the event's cursor."""
        while True:
            event, data = self.next()
            for change in data.get('changes', []):
                if change['path'] == path:
                    return change, data['cursor']

    def close(self):
        self.connection.close()


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def setUp(self):
        self.name = self.id().rpartition('.')[2].replace('_', '-')
        self.s3 = Bucket(self.daemon, self.name)
        self.hub = f'main/{self.name}'

    def tearDown(self):
        self.s3.close()

    def ask(self, method, target, body=None, **options):
        return self.daemon.request(method, target, body, connection=self.s3.connection, **options)

    def tree(self, prefix='', hub=None, status=200, **query):
        """All pages; gives the entries."""
        options = {name: query.pop(name) for name in ('token',) if name in query}
        target = f'/api/buckets/{hub or self.hub}/tree' + ('/' + urllib.parse.quote(prefix, safe='') if prefix else '')
        target += '?' + urllib.parse.urlencode(query) if query else ''
        entries = []
        while target:
            reply = self.ask('GET', target, **options)
            self.assertEqual(reply.status, status, reply.body)
            if status != 200:
                return reply
            self.assertEqual(reply.headers['Content-Type'], 'application/json; charset=utf-8')
            entries += reply.json()
            link = re.fullmatch(r'<(http://[^>]*)>; rel="next"', reply.headers.get('Link') or '')
            self.assertTrue(link is None or link[1].startswith(self.daemon.endpoint + '/api/buckets/'))
            target = link[1][len(self.daemon.endpoint):] if link else None
        return entries

    def paths(self, *arguments, **query):
        return [entry['path'] + ('/' if entry['type'] == 'directory' else '') for entry in self.tree(*arguments, **query)]

    def batch(self, *lines, status=200, **options):
        reply = batch(self.daemon, options.pop('hub', self.hub), lines, connection=self.s3.connection, **options)
        self.assertEqual(reply.status, status, reply.body)
        return reply.json()

    def info(self, *paths, hub=None, **options):
        reply = self.ask('POST', f'/api/buckets/{hub or self.hub}/paths-info', json.dumps({'paths': paths}), **options)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()

    def resolve(self, path, method='GET', hub=None, **options):
        return self.ask(method, f'/buckets/{hub or self.hub}/resolve/{urllib.parse.quote(path, safe="")}', **options)

    def hash_of(self, path):
        return self.info(path)[0]['xetHash']

    def copy(self, path, source, **more):
        return {'type': 'copyFile', 'path': path, 'xetHash': source, 'sourceRepoType': 'bucket', 'sourceRepoId': self.hub, **more}


def delete(path):
    return {'type': 'deleteFile', 'path': path}


def add(path, xet_hash, **more):
    return {'type': 'addFile', 'path': path, 'xetHash': xet_hash, **more}


class Trees(Case):
    def test_prefixes_levels_and_pages(self):
        keys = ['logs', 'logs.json', 'logs_backup/x', 'logs/1', 'logs/2/a', 'a.txt', 'a/x', 'a-b', 'é/ü b.bin', '50%2Fa', 'x/', 'y//z', 'p/../q', 'C:/r']
        for key in keys:
            self.s3.put(key)
        shown = sorted((key for key in keys[:10]), key=lambda key: key.encode())
        one_level = ['50%2Fa', 'a/', 'a-b', 'a.txt', 'logs', 'logs/', 'logs.json', 'logs_backup/', 'p/', 'x/', 'y/', 'é/']
        for limit in ({}, {'limit': 1}, {'limit': 3}, {'limit': 99999}):
            self.assertEqual(self.paths(**limit), shown)
            self.assertEqual(self.paths(recursive='true', **limit), shown)
            self.assertEqual(self.paths(recursive='false', **limit), one_level)
            self.assertEqual(self.paths('logs', **limit), ['logs', 'logs/1', 'logs/2/a'])
            self.assertEqual(self.paths('logs', recursive='false', **limit), ['logs', 'logs/1', 'logs/2/'])
        for prefix, wanted in (('logs/', ['logs', 'logs/1', 'logs/2/a']), ('logs/2', ['logs/2/a']), ('logs.json', ['logs.json']), ('log', []),
                               ('é', ['é/ü b.bin']), ('50%2Fa', ['50%2Fa']), ('50/a', []), ('nothing', [])):
            self.assertEqual(self.paths(prefix), wanted)
        literal = self.ask('GET', f'/api/buckets/{self.hub}/tree/logs/2')
        self.assertEqual([entry['path'] for entry in literal.json()], ['logs/2/a'])
        self.assertEqual(self.ask('GET', f'/api/buckets/{self.hub}/tree/').json(), self.tree())

    def test_entries(self):
        self.assertEqual(self.tree(), [])
        self.s3.put('d/f', b'hello', content_type='text/plain', x_amz_meta_mtime='1700000000.25')
        self.s3.put('d/e')
        entry = self.info('d/f', '', 'd', 'absent')
        self.assertEqual(len(entry), 1)
        self.assertEqual({name: entry[0][name] for name in ('type', 'path', 'size', 'mtime', 'contentType')},
                         {'type': 'file', 'path': 'd/f', 'size': 5, 'mtime': '2023-11-14T22:13:20.250Z', 'contentType': 'text/plain'})
        self.assertRegex(entry[0]['uploadedAt'], DATE)
        self.assertRegex(entry[0]['xetHash'], '[0-9a-f]{64}')
        self.assertIn(entry[0], self.tree('d'))
        folder = self.tree(recursive='false')[0]
        self.assertEqual(folder['type'], 'directory')
        self.assertEqual(folder['uploadedAt'], self.info('d/e')[0]['uploadedAt'])

    def test_files_of_many_parts_have_hashes(self):
        """S3 does not need them, so they are computed when somebody asks."""
        pieces = [b'a' * 5 * 2 ** 20, b'b']
        self.s3.upload('big', pieces)
        self.s3.put('same', b''.join(pieces))
        entries = self.tree()
        self.assertEqual([entry['path'] for entry in entries], ['big', 'same'])
        for entry in entries:
            self.assertRegex(entry['xetHash'], '[0-9a-f]{64}')
        self.s3.upload('big2', pieces)
        self.assertEqual(self.info('big2')[0]['xetHash'], entries[0]['xetHash'])
        self.s3.upload('big3', pieces)
        self.assertEqual(self.resolve('big3', 'HEAD').headers['X-Xet-Hash'], entries[0]['xetHash'])

    def test_malformed_requests(self):
        for query in ('recursive=maybe', 'limit=0', 'limit=-1', 'limit=x', 'cursor=x', 'cursor=', 'cursor=%zz'):
            reply = self.ask('GET', f'/api/buckets/{self.hub}/tree?{query}')
            self.assertEqual(reply.status, 400, query)
            self.assertIn('error', reply.json())
        for body in ('', '[]', '{}', '{"paths":"a"}', '{"paths":[1]}', json.dumps({'paths': ['x'] * 1001}), '{"paths":[' + '[],' * 1000000 + '0]}'):
            self.assertEqual(self.ask('POST', f'/api/buckets/{self.hub}/paths-info', body).status, 400, body[:40])
        self.assertEqual(self.info(*['x'] * 1000), [])

    def test_missing_things(self):
        for target in ('/api/buckets/main/no-such/tree', '/buckets/main/no-such/resolve/x'):
            reply = self.ask('GET', target)
            self.assertEqual((reply.status, reply.headers['X-Error-Code']), (404, 'RepoNotFound'))
        reply = self.resolve('absent')
        self.assertEqual((reply.status, reply.headers['X-Error-Code']), (404, 'EntryNotFound'))
        self.assertEqual(self.resolve('absent', 'HEAD').headers['X-Error-Code'], 'EntryNotFound')
        reply = self.ask('GET', f'/api/buckets/{self.hub}/nothing')
        self.assertEqual(reply.status, 404)
        self.assertIn('error', reply.json())

    def test_pages_for_people(self):
        self.s3.put('d/f & g', b'hello')
        for target, link in (('', 'tree/d'), ('/tree/', 'tree/d'), ('/tree/d', 'resolve/d/f%20%26%20g')):
            reply = self.ask('GET', f'/buckets/{self.hub}{target}')
            self.assertEqual((reply.status, reply.headers['Content-Type']), (200, 'text/html; charset=utf-8'))
            self.assertIn(f'<a href="/buckets/{self.hub}/{link}">'.encode(), reply.body)
        self.assertEqual(self.ask('GET', f'/buckets/{self.hub}/resolve/d/f%20%26%20g').body, b'hello')
        for target, code in ((f'/buckets/{self.hub}/tree/x', 'EntryNotFound'), ('/buckets/main/no-such', 'RepoNotFound')):
            reply = self.ask('GET', target)
            self.assertEqual((reply.status, reply.headers['Content-Type'], reply.headers['X-Error-Code']), (404, 'text/html; charset=utf-8', code))


class Batches(Case):
    def test_files_come_and_go(self):
        self.s3.put('a', b'one')
        one = self.hash_of('a')
        done = self.batch(add('b/c', one, mtime=1700000000123, contentType='text/x', size=3), add('empty', ZEROS), self.copy('d', one), delete('a'))
        self.assertEqual(done, {'success': True, 'processed': 4, 'succeeded': 4, 'failed': []})
        self.assertEqual(self.paths(), ['b/c', 'd', 'empty'])
        entries = {entry['path']: entry for entry in self.tree()}
        self.assertEqual(entries['b/c']['mtime'], '2023-11-14T22:13:20.123Z')
        self.assertEqual(entries['b/c']['contentType'], 'text/x')
        self.assertEqual((entries['empty']['size'], entries['empty']['xetHash']), (0, ZEROS))
        self.assertEqual(self.s3.ask('GET', 'b/c').body, b'one')
        self.assertEqual(self.s3.ask('GET', 'b/c').headers['x-amz-meta-mtime'], '1700000000.123')
        self.assertEqual(self.s3.ask('GET', 'empty').body, b'')
        self.batch(add('b/c', one, mtime=1600000000))  # seconds
        self.assertEqual(self.info('b/c')[0]['mtime'], '2020-09-13T12:26:40.000Z')

    def test_a_repeated_batch_changes_nothing_more(self):
        self.s3.put('a', b'one')
        one = self.hash_of('a')
        lines = (add('x', one, mtime=5), self.copy('y', one, mtime=6), delete('gone'), delete('a'))
        first = self.batch(*lines)
        state = [(entry['path'], entry['mtime']) for entry in self.tree()]
        self.assertEqual(self.batch(*lines), first)
        self.assertEqual([(entry['path'], entry['mtime']) for entry in self.tree()], state)

    def test_a_line_that_fails_is_told_with_its_reason(self):
        self.s3.put('a', b'one')
        one = self.hash_of('a')
        unknown = '1' * 64
        reply = self.batch(add('x', one), add('y', unknown), add('z', one, size=4), self.copy('w', unknown), self.copy('v', one, sourceRepoType='model'),
                           self.copy('u', one, sourceRepoId='main/no-such'), delete('absent'), add('last', one), status=422)
        self.assertEqual([failure['path'] for failure in reply['failed']], ['y', 'z', 'w', 'v', 'u'])
        self.assertTrue(all(failure['error'] for failure in reply['failed']))
        self.assertEqual((reply['success'], reply['processed'], reply['succeeded']), (False, 8, 3))
        self.assertIn('y', reply['error'])
        self.assertEqual(self.paths(), ['a', 'last', 'x'])

    def test_a_malformed_line_refuses_all(self):
        self.s3.put('a', b'one')
        good = json.dumps(add('x', self.hash_of('a')))
        for line in ('x', '{}', '{"type":"addFile"}', json.dumps(add('y', 'zz')), json.dumps(add('/y', ZEROS)), json.dumps(add('../y', ZEROS)),
                     json.dumps(add('y', ZEROS, mtime='now')), json.dumps(delete('C:/y')), json.dumps(delete('a\\b')), json.dumps(delete('p' * 1025))):
            reply = self.ask('POST', f'/api/buckets/{self.hub}/batch', f'{good}\n{line}\n')
            self.assertEqual(reply.status, 400, line)
            self.assertIn('Line 2', reply.json()['error'])
        self.assertEqual(self.paths(), ['a'])

    def test_bodies_of_odd_shape(self):
        self.assertEqual(self.batch(), {'success': True, 'processed': 0, 'succeeded': 0, 'failed': []})
        reply = self.ask('POST', f'/api/buckets/{self.hub}/batch', '\n\r\n' + json.dumps(add('x', ZEROS)))
        self.assertEqual((reply.status, reply.json()['processed']), (200, 1))
        reply = self.ask('POST', f'/api/buckets/{self.hub}/batch', iter([b'{"type":"deleteFile",', b'"path":"x"}']))
        self.assertEqual((reply.status, self.tree()), (200, []))
        self.assertEqual(self.daemon.request('POST', f'/api/buckets/{self.hub}/batch', b'x' * (9 * 2 ** 20)).status, 400)

    def test_a_thousand_lines(self):
        self.s3.put('a', b'one')
        one = self.hash_of('a')
        paths = [f'd{number % 7}/{number:04}' for number in range(1000)]
        self.assertEqual(self.batch(*[add(path, one) for path in paths])['succeeded'], 1000)
        self.assertEqual(self.paths(limit=300), sorted(paths + ['a']))
        self.assertEqual(self.batch(*[delete(path) for path in paths])['succeeded'], 1000)
        self.assertEqual(self.paths(), ['a'])
        reply = batch(self.daemon, self.hub, [delete('x')] * 1001)
        self.assertEqual(reply.status, 400)

    def test_versions_stay_in_a_versioned_bucket(self):
        self.s3.set_versioning('Enabled')
        self.s3.put('a', b'one')
        self.s3.put('b', b'two')
        self.batch(add('a', self.hash_of('b')), delete('b'))
        self.assertEqual(self.paths(), ['a'])
        kinds = [(kind, key) for kind, key, _, _ in self.s3.versions()]
        self.assertEqual(kinds, [('Version', 'a'), ('Version', 'a'), ('DeleteMarker', 'b'), ('Version', 'b')])
        self.assertEqual(self.s3.ask('GET', 'a').body, b'two')

    def test_other_buckets_are_sources_to_who_may_read_them(self):
        other = Bucket(self.daemon, self.name + '-other')
        self.addCleanup(other.close)
        other.put('secret/a', b'far')
        far = self.info('secret/a', hub=f'main/{other.name}')[0]['xetHash']
        line = self.copy('x', far, sourceRepoId=f'main/{other.name}')
        key = self.daemon.add_key('--grant', f'{self.name}=read,write,list', '--grant', f'{other.name}/open/=read')
        self.assertEqual(self.batch(line, status=422, token=key['token'])['failed'][0]['path'], 'x')
        self.assertEqual(self.batch(add('x', far), status=422, token=key['token'])['failed'][0]['path'], 'x')
        other.put('open/a', b'far')
        self.batch(line, token=key['token'])
        self.assertEqual(self.s3.ask('GET', 'x').body, b'far')
        self.batch(add('y', far), token=key['token'])  # it is here by now


class Resolves(Case):
    def test_headers_and_ranges(self):
        body = bytes(range(256)) * 1000
        self.s3.put('d/ä "x".bin', body, x_amz_meta_own='v')
        entry = self.tree()[0]
        url = f'{self.daemon.endpoint}/api/buckets/{self.hub}/xet-read-token'
        cas = f'{self.daemon.endpoint}/xet/v1/reconstructions/{entry["xetHash"]}'
        for method in ('HEAD', 'GET'):
            reply = self.resolve('d/ä "x".bin', method)
            self.assertEqual((reply.status, reply.body), (200, body if method == 'GET' else b''))
            wanted = {'Content-Length': str(len(body)), 'X-Xet-Hash': entry['xetHash'], 'X-Linked-Size': str(len(body)), 'Accept-Ranges': 'bytes',
                      'ETag': f'"{entry["xetHash"]}"', 'X-Linked-Etag': f'"{entry["xetHash"]}"', 'X-Xet-Refresh-Route': url,
                      'Content-Type': 'application/octet-stream',
                      'Link': f'<{url}>; rel="xet-auth", <{cas}>; rel="xet-reconstruction-info"',
                      'Content-Disposition': 'inline; filename*=UTF-8\'\'%C3%A4%20%22x%22.bin; filename="__ _x_.bin";'}
            self.assertEqual({name: reply.headers[name] for name in wanted}, wanted)
            self.assertIsNotNone(reply.headers['Last-Modified'])
            self.assertIsNone(reply.headers['x-amz-meta-own'])
        literal = self.ask('GET', f'/buckets/{self.hub}/resolve/d/%C3%A4%20%22x%22.bin?download=true', headers={'Range': 'bytes=10-19'})
        self.assertEqual((literal.status, literal.body, literal.headers['Content-Range']), (206, body[10:20], f'bytes 10-19/{len(body)}'))
        for value, wanted in (('bytes=255990-', body[255990:]), ('bytes=-5', body[-5:]), ('bytes=255999-999999999', body[-1:])):
            self.assertEqual(self.resolve('d/ä "x".bin', headers={'Range': value}).body, wanted)
        beyond = self.resolve('d/ä "x".bin', headers={'Range': f'bytes={len(body)}-'})
        self.assertEqual((beyond.status, beyond.headers['Content-Range']), (416, f'bytes */{len(body)}'))
        same = self.resolve('d/ä "x".bin', headers={'If-None-Match': f'"{entry["xetHash"]}"'})
        self.assertEqual((same.status, same.body), (304, b''))

    def test_empty_files(self):
        self.batch(add('empty', ZEROS, contentType='text/plain'))
        for method in ('HEAD', 'GET'):
            reply = self.resolve('empty', method)
            self.assertEqual((reply.status, reply.headers['Content-Length'], reply.headers['X-Xet-Hash'], reply.headers['X-Linked-Size']),
                             (200, '0', ZEROS, '0'))
            self.assertEqual(reply.headers['Content-Type'], 'text/plain')
            self.assertIn('rel="xet-auth"', reply.headers['Link'])

    def test_stored_encodings_are_not_undone_by_clients(self):
        self.s3.put('a.gz', b'stored', content_encoding='gzip', cache_control='no-store')
        self.assertEqual(self.s3.ask('HEAD', 'a.gz').headers['Content-Encoding'], 'gzip')
        reply = self.resolve('a.gz')
        self.assertEqual((reply.body, reply.headers['Content-Encoding'], reply.headers['Cache-Control']), (b'stored', None, 'no-store'))

    def test_stored_pages_get_neither_scripts_nor_our_origin(self):
        self.s3.put('page.html', b'<script>alert(1)</script>', content_type='text/html')
        override = {'response-content-type': 'image/svg+xml'}
        for reply in (self.resolve('page.html'), self.s3.ask('GET', 'page.html'), self.s3.ask('HEAD', 'page.html', query=override)):
            self.assertIn(reply.headers['Content-Type'], ('text/html', 'image/svg+xml'))
            self.assertEqual((reply.headers['X-Content-Type-Options'], reply.headers['Content-Security-Policy']), ('nosniff', 'sandbox'))

    def test_facts_in_place_of_bytes(self):
        self.s3.put('a', b'hello')
        reply = self.resolve('a', headers={'Range': 'bytes=0-0', 'Accept': 'application/vnd.xet-fileinfo+json, */*'})
        self.assertEqual((reply.status, reply.headers['Content-Type']), (200, 'application/vnd.xet-fileinfo+json'))
        entry = self.tree()[0]
        self.assertEqual((reply.headers['X-Linked-Size'], reply.headers['X-Xet-Hash'], reply.headers['ETag']),
                         ('5', entry['xetHash'], f'"{entry["xetHash"]}"'))
        self.assertIn('rel="xet-reconstruction-info"', reply.headers['Link'])
        self.assertEqual(reply.json()['size'], 5)

    def test_what_batches_made_reads_as_it_was(self):
        for size in (0, 1, 1024, 1025, 8191, 131073, 3000000):
            body = bytes(size % 251 for size in range(size))
            self.s3.put('from', body)
            self.batch(self.copy(f'c{size}', self.hash_of('from')), delete('from'))
            self.assertEqual(self.resolve(f'c{size}').body, body)
            self.assertEqual(self.s3.ask('GET', f'c{size}').body, body)


class Uploads(Case):
    """Files that came as xorbs and a shard."""

    def test_an_uploaded_file_is_a_file_at_once(self):
        body = os.urandom(400000)
        name = text(Cas(self.daemon, self.hub).upload(body)[0])
        self.assertEqual(self.tree(), [])
        self.batch(add('d/f', name, mtime=1700000000123, size=len(body)))
        self.assertEqual([(entry['path'], entry['xetHash'], entry['size']) for entry in self.tree()], [('d/f', name, len(body))])
        self.assertEqual(self.info('d/f')[0]['mtime'], '2023-11-14T22:13:20.123Z')
        self.assertEqual(self.resolve('d/f').body, body)
        self.assertEqual(self.resolve('d/f', 'HEAD').headers['ETag'], f'"{name}"')
        self.assertEqual(self.s3.ask('GET', 'd/f').body, body)
        self.assertEqual(self.s3.ask('GET', 'd/f', headers={'Range': 'bytes=200000-200009'}).body, body[200000:200010])
        self.s3.put('same', body)
        self.assertEqual(self.hash_of('same'), name)
        self.batch(add('again', name), delete('d/f'), delete('same'))
        self.assertEqual(self.resolve('again').body, body)

    def test_a_file_of_one_bucket_is_none_of_another(self):
        other = Bucket(self.daemon, self.name + '-other')
        self.addCleanup(other.close)
        key = self.daemon.add_key('--namespace', 'main', '--grant', f'{self.name}=read,write,list', '--grant', f'{other.name}=read,write,list')
        body = os.urandom(100000)
        name = text(Cas(self.daemon, self.hub, token=key['token']).upload(body)[0])
        there = f'main/{other.name}'
        self.assertEqual(self.batch(add('f', name), hub=there, status=422, token=key['token'])['failed'][0]['path'], 'f')
        copied = self.copy('f', name)
        self.assertEqual(self.batch(copied, hub=there, status=422, token=key['token'])['succeeded'], 0)  # no key of it has the file yet
        self.batch(add('f', name), token=key['token'])
        self.batch(copied, hub=there, token=key['token'])
        self.assertEqual(self.resolve('f', hub=there).body, body)

    def test_a_file_that_another_account_uploaded_is_none_of_ours(self):
        policy = {'Version': '2012-10-17', 'Statement': [{'Effect': 'Allow', 'Principal': '*', 'Action': ['s3:PutObject', 's3:ListBucket'],
                                                         'Resource': [f'arn:aws:s3:::{self.name}', f'arn:aws:s3:::{self.name}/*']}]}
        self.assertEqual(self.s3.ask('PUT', query='policy', body=json.dumps(policy)).status, 204)
        stranger = self.daemon.add_key('--namespace', 'stranger')['token']
        name = text(Cas(self.daemon, self.hub).upload(os.urandom(50000))[0])
        self.assertEqual(self.batch(add('x', name), status=422, token=stranger)['failed'][0]['path'], 'x')
        self.batch(add('secret', name))
        self.assertEqual(self.batch(add('x', name), status=422, token=stranger)['succeeded'], 0)  # he may write there, not read


class Access(Case):
    def check(self, hub, token, read, write, path='a', prefix=''):
        """Statuses of reading and of writing."""
        options = {'token': token}
        target = f'/api/buckets/{hub}/tree' + (f'/{prefix}' if prefix else '')
        self.assertEqual(self.ask('GET', target, **options).status, read)
        self.assertEqual(self.resolve(path, hub=hub, **options).status, read)
        self.assertEqual(self.resolve(path, 'HEAD', hub=hub, **options).status, read)
        info = self.ask('POST', f'/api/buckets/{hub}/paths-info', json.dumps({'paths': [path]}), **options)
        self.assertEqual((info.status, len(info.json()) if info.status == 200 else 1), (read, 1))
        for line in (add(path + '-new', ZEROS), delete(path + '-new')):
            self.assertEqual(batch(self.daemon, hub, [line], connection=self.s3.connection, **options).status, write)

    def test_the_matrix(self):
        stranger = self.daemon.add_key('--namespace', 'stranger')['token']
        owner = self.daemon.add_key('--namespace', 'owner')['token']
        self.s3.connection.close()
        for name, acl in (('owner--private', {}), ('owner--public', PUBLIC)):
            self.assertEqual(self.daemon.request('PUT', f'/{name}', headers=acl, token=owner).status, 200)
            self.assertEqual(self.daemon.request('PUT', f'/{name}/a', b'x', token=owner).status, 200)
        self.check('owner/private', owner, 200, 200)
        self.check('owner/public', owner, 200, 200)
        self.check('owner/private', ROOT_TOKEN, 200, 200)
        self.check('owner/private', stranger, 404, 404)
        self.check('owner/public', stranger, 200, 403)
        self.check('owner/private', None, 401, 401)
        self.check('owner/public', None, 200, 401)
        self.check('owner/public', 'hf_garbage', 401, 401)
        reply = self.ask('GET', '/api/buckets/owner/private/tree', token=stranger)
        self.assertEqual(reply.headers['X-Error-Code'], 'RepoNotFound')

    def test_keys_for_a_part_of_a_bucket(self):
        for key in ('team/a', 'team', 'other/a'):
            self.s3.put(key)
        token = self.daemon.add_key('--grant', f'{self.name}/team/=read,write,list')['token']
        self.assertEqual(self.paths('team', token=token), ['team/a'])
        self.assertEqual(self.tree(status=403, token=token).status, 403)
        self.assertEqual(self.tree('other', status=403, token=token).status, 403)
        self.assertEqual([entry['path'] for entry in self.info('team/a', 'other/a', 'team', token=token)], ['team/a'])
        self.assertEqual(self.resolve('team/a', token=token).status, 200)
        self.assertEqual(self.resolve('other/a', token=token).status, 403)
        reply = self.batch(add('team/b', ZEROS), add('other/b', ZEROS), delete('other/a'), delete('team/a'), status=422, token=token)
        self.assertEqual([failure['path'] for failure in reply['failed']], ['other/b', 'other/a'])
        self.assertEqual(batch(self.daemon, self.hub, [add('other/b', ZEROS)], token=token).status, 403)
        self.assertEqual(self.paths(), ['other/a', 'team', 'team/b'])
        self.assertEqual(self.batch(add('team/c', self.hash_of('other/a')), status=422, token=token)['succeeded'], 0)
        reader = self.daemon.add_key('--grant', f'{self.name}=read,list')['token']
        self.check(self.hub, reader, 200, 403, 'other/a')

    def test_keys_of_the_server_are_left_alone(self):
        self.assertEqual(self.ask('POST', f'/v1/runs/{self.name}/r', '{}').status, 200)
        reply = self.batch(add('r/anchors/x', ZEROS), add('r/x', ZEROS), status=422)
        self.assertEqual([failure['path'] for failure in reply['failed']], ['r/anchors/x'])


class Events(Case):
    def follow(self, **query):
        stream = Stream(self.daemon, self.hub, **query)
        self.addCleanup(stream.close)
        self.assertEqual((stream.reply.status, stream.reply.headers['Content-Type']), (200, 'text/event-stream'))
        return stream

    def updated(self):
        return self.ask('GET', f'/api/buckets/{self.hub}').json()['updatedAt']

    def test_changes(self):
        self.s3.put('old', b'1')
        since = self.updated()
        stream = self.follow()
        event, data = stream.next()
        self.assertEqual((event, list(data)), ('ready', ['cursor']))
        self.s3.put('d/new', b'twelve bytes')
        change, cursor = stream.until('d/new')
        self.assertEqual(change, {'path': 'd/new', 'op': 'add', **{name: value for name, value in self.info('d/new')[0].items()
                                                                   if name in ('size', 'xetHash', 'uploadedAt', 'mtime')}})
        self.batch({'type': 'deleteFile', 'path': 'old'})
        self.assertEqual(stream.until('old')[0], {'path': 'old', 'op': 'delete'})
        for query, paths in (({'cursor': cursor}, ['old']), ({'since': since}, ['d/new', 'old']), ({'since': self.updated()}, [])):
            replay = self.follow(**query)
            told = []
            while (event := replay.next())[0] == 'changes':
                told += [change['path'] for change in event[1]['changes']]
            self.assertEqual((sorted(told), event[0]), (paths, 'ready'))
        late = self.follow(since='2001-01-01T00:00:00.000Z')
        self.assertEqual((late.next(), late.next()), (('reset', {'reason': 'cursor_too_old'}), None))

    def test_parts(self):
        """A file that came in parts is told of at once, and again with its hash."""
        stream = self.follow()
        self.assertEqual(stream.next()[0], 'ready')
        self.s3.upload('parts', [b'whole'])
        change = stream.until('parts')[0]
        while 'xetHash' not in change:
            change = stream.until('parts')[0]
        self.assertEqual((change['size'], change['xetHash']), (5, self.info('parts')[0]['xetHash']))


class Restart(unittest.TestCase):
    def test_streams_are_sent_to_the_successor(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/restart')
            stream = Stream(daemon, 'main/restart')
            self.assertEqual(stream.next()[0], 'ready')
            daemon.request('PUT', '/restart/before', b'1')
            stream.until('before')
            self.assertEqual(daemon.stop(), 0)
            event, data = stream.next()
            self.assertEqual((event, stream.next()), ('reconnect', None))
            daemon.start()
            successor = Stream(daemon, 'main/restart', cursor=data['cursor'])
            self.assertEqual(successor.next()[0], 'ready')
            daemon.request('PUT', '/restart/after', b'2')
            self.assertEqual(successor.until('after')[0]['op'], 'add')
            successor.close()
            daemon.request('PUT', '/restart/more', b'3')
            self.assertEqual(daemon.stop(), 0)
            daemon.start()
            missed = Stream(daemon, 'main/restart', cursor=data['cursor'])
            self.assertEqual((missed.next()[0], missed.next()), ('reset', None))
            for each in (stream, missed):
                each.close()


if __name__ == '__main__':
    unittest.main()
