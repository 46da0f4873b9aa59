"""Conditions on reads, writes and deletes, and lists of deletes."""
import datetime
import threading
import unittest

from tests.support.daemon import Daemon
from tests.support.s3 import Bucket, texts, tree
from tests.support.signer import Signer, form_body, utc_now

PAST, FUTURE = 'Sun, 06 Nov 1994 08:49:37 GMT', 'Tue, 06 Nov 2064 08:49:37 GMT'


class Conditions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.bucket = Bucket(cls.daemon, 'conditions')

    @classmethod
    def tearDownClass(cls):
        cls.bucket.close()
        cls.daemon.__exit__()

    def test_reads(self):
        etag = self.bucket.put('read', b'body', Cache_Control='max-age=5', Expires='never').headers['ETag']
        modified = self.bucket.ask('HEAD', 'read').headers['Last-Modified']
        table = [
            ({'If-Match': etag}, 200), ({'If-Match': '"x"'}, 412), ({'If-Match': f'"x", W/{etag}'}, 200), ({'If-Match': '*'}, 200),
            ({'If-None-Match': etag}, 304), ({'If-None-Match': etag.strip('"')}, 304), ({'If-None-Match': '"x"'}, 200),
            ({'If-Modified-Since': modified}, 304), ({'If-Modified-Since': PAST}, 200), ({'If-Modified-Since': FUTURE}, 200),
            ({'If-Modified-Since': '2024-01-01T00:00:00Z'}, 200), ({'If-Modified-Since': 'yesterday'}, 200),
            ({'If-Unmodified-Since': PAST}, 412), ({'If-Unmodified-Since': '1994-11-06T08:49:37.000Z'}, 412), ({'If-Unmodified-Since': FUTURE}, 200),
            ({'If-Match': etag, 'If-Unmodified-Since': PAST}, 200), ({'If-None-Match': '"x"', 'If-Modified-Since': modified}, 200),
            ({'If-Match': '"x"', 'If-None-Match': etag}, 412), ({'If-Match': '"x"', 'Range': 'bytes=0-1'}, 412), ({'If-Match': etag, 'Range': 'bytes=0-1'}, 206),
        ]
        for headers, status in table:
            for method in ('GET', 'HEAD'):
                with self.subTest(headers=headers, method=method):
                    got = self.bucket.ask(method, 'read', headers=headers)
                    self.assertEqual(got.status, status)
                    if status == 304:
                        self.assertEqual((got.headers['ETag'], got.headers['Last-Modified'], got.headers['Cache-Control'], got.headers['Expires'], got.body),
                                         (etag, modified, 'max-age=5', 'never', b''))

    def test_deletes(self):
        put = self.bucket.put('judged', b'12345')
        modified = self.bucket.ask('HEAD', 'judged').headers['Last-Modified']
        for headers in ({'If-Match': '"x"'}, {'x-amz-if-match-size': '4'}, {'x-amz-if-match-last-modified-time': PAST}):
            self.assertEqual(self.bucket.ask('DELETE', 'judged', headers=headers).status, 412, headers)
        self.assertEqual(self.bucket.ask('DELETE', 'judged', headers={'x-amz-if-match-size': 'x'}).status, 400)
        headers = {'If-Match': put.headers['ETag'], 'x-amz-if-match-size': '5', 'x-amz-if-match-last-modified-time': modified}
        self.assertEqual(self.bucket.ask('DELETE', 'judged', headers=headers).status, 204)
        self.assertEqual(self.bucket.ask('DELETE', 'judged', headers=headers).status, 204)

    def refused_writes(self, key):
        """Requests of a caller that may write: (status, method, key, query, body, headers)."""
        upload = tree(self.bucket.ask('POST', key, query='uploads', token=self.writer)).findtext('UploadId')
        query = {'partNumber': 1, 'uploadId': upload}
        etag = self.bucket.ask('PUT', key, b'part', query=query, token=self.writer).headers['ETag']
        self.assertEqual(self.bucket.put('in/source').status, 200)
        complete = f'<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>'
        complete = f'<CompleteMultipartUpload>{complete}</CompleteMultipartUpload>'
        writes = [('PUT', key, None, b'new', {}), ('POST', key, {'uploadId': upload}, complete, {}),
                  ('PUT', key, None, None, {'x-amz-copy-source': '/conditions/in/source'})]
        for method, name, query, body, headers in writes:
            for condition in ({'If-Match': '"x"'}, {'If-None-Match': '*'}, {'If-None-Match': self.etag}):
                yield 412, method, name, query, body, {**headers, **condition}
        for condition in ({'If-Match': '"x"'}, {'If-None-Match': '*'}, {'x-amz-if-match-size': '4'},
                          {'x-amz-if-match-last-modified-time': PAST}):
            yield 412, 'DELETE', key, None, None, condition
        for child in ('<ETag>"x"</ETag>', '<Size>4</Size>', f'<LastModifiedTime>{PAST}</LastModifiedTime>'):
            yield (200, 'POST', '', 'delete', f'<Delete><Object><Key>{key}</Key>{child}</Object></Delete>', {})
        for name in ('if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'):
            condition = {'x-amz-copy-source-' + name: PAST if 'since' in name else '"x"'}
            source = {'x-amz-copy-source': f'/conditions/{key}'}
            yield 403, 'PUT', 'in/copy', None, None, {**source, **condition}
            yield 403, 'PUT', key, query, None, {**source, **condition}

    def refused_form(self, key, signer):
        until = utc_now() + datetime.timedelta(seconds=600)
        policy = {'expiration': f'{until:%Y-%m-%dT%H:%M:%S}.000Z', 'conditions': [
            {'bucket': 'conditions'}, {'key': key}, ['content-length-range', 4, 4]]}
        kind, body = form_body({'key': key, **signer.post_fields(policy, 4)}, b'longer than the policy says')
        return self.daemon.request('POST', '/conditions', body, {
            'Content-Type': kind, 'If-None-Match': '*'}, token=None)

    def test_who_may_only_write_is_not_told_what_is_there(self):
        """That a condition does not hold is told; what would have is for those who may read."""
        key, body = 'in/secret', b's' * 73519
        made = self.daemon.add_key('--grant', 'conditions/in/=write', '--grant', 'conditions/in/source=read')
        self.writer, signer = made['token'], Signer.of(self.daemon, key_id=made['key_id'], secret=made['secret'])
        put = self.bucket.put(key, body)
        self.etag = put.headers['ETag']
        seen = self.bucket.ask('HEAD', key).headers
        replies = [(self.bucket.ask(method, name, body, query, headers=headers, token=self.writer), status, (method, query, headers))
                   for status, method, name, query, body, headers in list(self.refused_writes(key))]
        replies.append((self.refused_form(key, signer), 400, 'form'))
        for reply, status, asked in replies:
            with self.subTest(asked=asked):
                self.assertEqual(reply.status, status, reply.body)
                self.assertNotIn(b'<Deleted>', reply.body)
                told = reply.body.decode() + str(reply.headers).replace(reply.headers['Date'], '')
                for secret in (self.etag.strip('"'), str(len(body)), seen['x-deltabucket-digest'], seen['Last-Modified']):
                    self.assertNotIn(secret, told)
        self.assertEqual(self.bucket.ask('GET', key).body, body)

    def test_one_of_many_writers_wins(self):
        outcomes = {}

        def write(number):
            outcomes[number] = self.daemon.request('PUT', '/conditions/raced', f'{number}'.encode() * 2000, {'If-None-Match': '*'}).status
        writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        self.assertEqual(sorted(outcomes.values()), [200] + [412] * 7)
        [winner] = [number for number, status in outcomes.items() if status == 200]
        self.assertEqual(self.bucket.ask('GET', 'raced').body, f'{winner}'.encode() * 2000)

    def test_lists_of_deletes(self):
        for key in ('a', 'b', 'c', 'd&<>', 'e%20f'):
            self.bucket.put(key, b'12345')
        root = tree(self.bucket.delete_many(['a', 'none', {'Key': 'b', 'ETag': '"x"'}, {'Key': 'c', 'Size': '4'}, 'd&<>', 'e%20f',
                                             {'Key': 'a', 'VersionId': 'rubbish'}]))
        self.assertEqual(texts(root, 'Deleted/Key'), ['a', 'none', 'd&<>', 'e%20f'])
        self.assertEqual(list(zip(texts(root, 'Error/Key'), texts(root, 'Error/Code'))),
                         [('b', 'PreconditionFailed'), ('c', 'PreconditionFailed'), ('a', 'InvalidArgument')])
        quiet = tree(self.bucket.delete_many(['b', {'Key': 'c', 'Size': '4'}], quiet=True, headers={'x-amz-bypass-governance-retention': 'true'}))
        self.assertEqual((texts(quiet, 'Deleted/Key'), texts(quiet, 'Error/Key')), ([], ['c']))
        self.assertNotIn('b', self.bucket.keys())
        self.assertIn('c', self.bucket.keys())

    def test_a_thousand_at_once(self):
        keys = [f'many/{number:04}' for number in range(1000)]
        for key in keys[::10]:
            self.bucket.put(key)
        self.assertEqual(self.bucket.delete_many(keys + ['one more']).code(), 'MalformedXML')
        self.assertEqual(len(texts(tree(self.bucket.delete_many(keys)), 'Deleted/Key')), 1000)
        self.assertEqual([key for key in self.bucket.keys() if key.startswith('many/')], [])
        for body in (b'', b'<Delete/>', b'<Delete><Object/></Delete>'):
            self.assertEqual(self.bucket.ask('POST', query='delete', body=body).code(), 'MalformedXML')

    def test_digests_of_the_list(self):
        self.bucket.put('digested')
        for headers, code in (({'Content-MD5': 'AAAAAAAAAAAAAAAAAAAAAA=='}, 'BadDigest'), ({'Content-MD5': 'x'}, 'InvalidDigest'),
                              ({'x-amz-checksum-sha256': 'A' * 43 + '='}, 'BadDigest')):
            self.assertEqual(self.bucket.delete_many(['digested'], headers=headers).code(), code)
        self.assertIn('digested', self.bucket.keys())


if __name__ == '__main__':
    unittest.main()
