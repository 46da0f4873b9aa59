"""Statuses and codes of S3 row by row, asked with boto3: what ceph/s3-tests and other suites assert of a server.

Exception: request_checksum_calculation='when_required', so that a row sends the checksum headers that it names and no others; headers that boto3 has
no parameter for are added before it signs, and requests that it would not send at all are signed by tests/support/signer.py.
"""
import base64
import datetime
import hashlib
import unittest
import zlib
from unittest.mock import ANY

from tests.support.clients import ClientCase, content, importable, md5, multipart_etag
from tests.support.signer import Signer, utc_now

READY = importable('boto3')
if READY:
    import boto3
    import botocore.client
    import botocore.exceptions

MIB = 1 << 20
DAY = datetime.timedelta(days=1)


def b64(data):
    return base64.b64encode(data).decode()


def crc32(data):
    return b64(zlib.crc32(data).to_bytes(4, 'big'))


class Answer:
    def __init__(self, status, code, headers, reply):
        self.status, self.code, self.headers, self.reply = status, code, headers, reply

    def __getitem__(self, name):
        return self.reply[name]

    def get(self, name, default=None):
        return self.reply.get(name, default)


@unittest.skipUnless(READY, 'boto3 is not installed (setup/clients)')
class ConformanceCase(ClientCase):
    tls = False
    agent = '^Boto3/'
    buckets = ('conf',)

    @classmethod
    def prepare(cls):
        config = botocore.client.Config(request_checksum_calculation='when_required', response_checksum_validation='when_required',
                                        retries={'total_max_attempts': 1}, parameter_validation=False)
        make = lambda key: boto3.client('s3', endpoint_url=cls.endpoint, region_name='us-east-1', aws_access_key_id=key[0], aws_secret_access_key=key[1],
                                        config=config)
        cls.s3 = make(cls.keys)
        other = cls.daemon.add_key('--name', 'other', '--namespace', 'other')
        cls.stranger = make((other['key_id'], other['secret']))
        cls.signer = Signer.of(cls.daemon, key_id=cls.keys[0], secret=cls.keys[1])
        for bucket in cls.buckets:
            cls.s3.create_bucket(Bucket=bucket)

    def ask(self, operation, headers=None, client=None, **parameters):
        """One call of boto3, with these headers besides; an Answer, whether it was refused or not."""
        client = client or self.s3
        name = f'before-call.s3.{client.meta.method_to_api_mapping[operation]}'
        add = lambda params, **_: params['headers'].update(headers or {})
        client.meta.events.register(name, add)
        try:
            reply = getattr(client, operation)(**parameters)
        except botocore.exceptions.ClientError as refused:
            reply = refused.response
        finally:
            client.meta.events.unregister(name, add)
        about = reply['ResponseMetadata']
        return Answer(about['HTTPStatusCode'], reply.get('Error', {}).get('Code'), about['HTTPHeaders'], reply)

    def raw(self, method, target, body=b'', headers=None, signed=True):
        """A request that boto3 would not send."""
        every = self.signer.headers(method, target, body, extra=headers) if signed else dict(headers or {})
        reply = self.daemon.request(method, target, body=body or None, headers=every, token=None)
        return Answer(reply.status, reply.code() if reply.status >= 400 and reply.body else None, reply.headers, reply)

    def check(self, label, answer, status, code=None):
        with self.subTest(label):
            self.assertEqual((answer.status, answer.code), (status, code))
        return answer

    def rows(self, operation, rows, **common):
        """Rows of (label, parameters, status, code)."""
        for label, parameters, status, code in rows:
            self.check(f'{operation}: {label}', self.ask(operation, **{**common, **parameters}), status, code)

    def put(self, key, body=b'', bucket='conf', **more):
        return self.s3.put_object(Bucket=bucket, Key=key, Body=body, **more)


class Presigned(ConformanceCase):
    def test_version_4(self):
        self.put('k', b'data')
        now = utc_now()
        sign = self.signer.presign
        get = lambda target: self.raw('GET', target, signed=False)
        self.check('good', get(sign('GET', '/conf/k')), 200)
        for name in ('X-Amz-Credential', 'X-Amz-Date', 'X-Amz-Expires', 'X-Amz-SignedHeaders'):
            self.check(f'without {name}', get(sign('GET', '/conf/k', parameters={name: None})), 400, 'AuthorizationQueryParametersError')
        for name, value in (('X-Amz-Algorithm', 'AWS4-HMAC-MD5'), ('X-Amz-Credential', 'a/b'), ('X-Amz-Date', 'yesterday'), ('X-Amz-Expires', 'soon')):
            self.check(f'{name}={value}', get(sign('GET', '/conf/k', parameters={name: value})), 400, 'AuthorizationQueryParametersError')
        for expires in (0, -7, 604801, 9 * 10**18):
            self.check(f'expires {expires}', get(sign('GET', '/conf/k', expires=expires)), 403, ANY)
        self.check('longest', get(sign('GET', '/conf/k', expires=604800)), 200)
        self.check('expired', get(sign('GET', '/conf/k', expires=60, when=now - datetime.timedelta(seconds=120))), 403, 'AccessDenied')
        self.check('not valid yet', get(sign('GET', '/conf/k', when=now + datetime.timedelta(hours=1))), 403, 'AccessDenied')
        self.check('another method', self.raw('PUT', sign('GET', '/conf/k'), b'x', signed=False), 403, 'SignatureDoesNotMatch')
        self.assertEqual(self.raw('HEAD', sign('GET', '/conf/k'), signed=False).status, 403)
        self.check('a signed header missing', get(sign('GET', '/conf/k', extra={'x-amz-meta-a': 'b'})), 403, ANY)
        self.check('put', self.raw('PUT', sign('PUT', '/conf/put'), b'sent', signed=False), 200)
        self.assertEqual(self.s3.get_object(Bucket='conf', Key='put')['Body'].read(), b'sent')
        self.check('anonymous', get('/conf/k'), 403, 'AccessDenied')
        self.check('anonymous put', self.raw('PUT', '/conf/k', b'x', signed=False), 403, 'AccessDenied')

    def test_overrides(self):
        self.put('k', b'data', ContentType='text/plain')
        wanted = {'content-type': 'text/x-other', 'content-disposition': 'inline', 'cache-control': 'no-store', 'content-language': 'fr',
                  'content-encoding': 'x-none', 'expires': 'Thu, 01 Dec 2033 16:00:00 GMT'}
        parameters = {'Response' + ''.join(word.title() for word in name.split('-')): value for name, value in wanted.items()}
        answer = self.ask('get_object', Bucket='conf', Key='k', **parameters)
        self.assertEqual({name: answer.headers[name] for name in wanted}, wanted)
        self.assertEqual({name: self.ask('head_object', Bucket='conf', Key='k', **parameters).headers[name] for name in wanted}, wanted)


class Buckets(ConformanceCase):
    def test_names(self):
        good = ('abc', 'a' * 60, 'a' * 61, 'a' * 62, 'a' * 63, 'with.dots', 'with-dash', '0digit', 'digit9', 'a.b-c')
        bad = ('ab', 'a' * 64, 'Upper', 'under_score', 'trailing-', '-leading', '.leading', 'trailing.', 'dot..dot', 'dash.-dash', 'dash-.dash', '192.168.5.123',
               'xn--name', 'sthree-name', 'name-s3alias', 'name--ol-s3')
        for name in good:
            self.check(name, self.raw('PUT', f'/{name}'), 200)
            self.check(name, self.raw('PUT', f'/{name}'), 200)
            self.check(f'{name} removed', self.raw('DELETE', f'/{name}'), 204)
        for name in bad:
            self.check(name, self.raw('PUT', f'/{name}'), 400, 'InvalidBucketName')
        self.assertEqual([entry['Name'] for entry in self.s3.list_buckets()['Buckets']], list(self.buckets))

    def test_bucket_rows(self):
        self.put('k')
        self.rows('create_bucket', (
            ('somebody else has it', dict(Bucket='conf', client=self.stranger), 409, 'BucketAlreadyExists'),
            ('a body that is no XML', dict(Bucket='unmade', CreateBucketConfiguration={'LocationConstraint': 'x' * 100}), 400, 'InvalidLocationConstraint'),
            ('object lock', dict(Bucket='unmade', ObjectLockEnabledForBucket=True), 501, 'NotImplemented')))
        self.rows('delete_bucket', (
            ('with a key in it', dict(Bucket='conf'), 409, 'BucketNotEmpty'),
            ('that is not there', dict(Bucket='never-made'), 404, 'NoSuchBucket')))
        self.check('a stranger lists', self.ask('list_objects_v2', client=self.stranger, Bucket='conf'), 403, 'AccessDenied')
        self.check('a stranger reads', self.ask('get_object', client=self.stranger, Bucket='conf', Key='k'), 403, 'AccessDenied')
        self.check('a stranger writes', self.ask('put_object', client=self.stranger, Bucket='conf', Key='k', Body=b'x'), 403, 'AccessDenied')
        self.check('anonymous list of buckets', self.raw('GET', '/', signed=False), 403, 'AccessDenied')
        self.check('malformed body', self.raw('PUT', '/unmade', b'<CreateBucketConf'), 400, 'MalformedXML')
        self.assertEqual([entry['Name'] for entry in self.stranger.list_buckets()['Buckets']], [])

    def test_expected_owner(self):
        self.put('k', b'x')
        for operation, more in (('list_objects_v2', {}), ('get_object', {'Key': 'k'}), ('put_object', {'Key': 'k2', 'Body': b''}), ('head_object', {'Key': 'k'}),
                                ('delete_object', {'Key': 'k'}), ('get_bucket_versioning', {})):
            answer = self.ask(operation, Bucket='conf', ExpectedBucketOwner='somebody-else', **more)
            self.check(operation, answer, 403, '403' if operation.startswith('head') else 'AccessDenied')
        owner = self.s3.list_buckets()['Owner']['ID']
        self.check('the owner', self.ask('get_object', Bucket='conf', Key='k', ExpectedBucketOwner=owner), 200)

    def test_versioning(self):
        self.rows('put_bucket_versioning', (
            ('unknown status', dict(VersioningConfiguration={'Status': 'Sometimes'}), 400, 'MalformedXML'),
            ('on', dict(VersioningConfiguration={'Status': 'Enabled'}), 200, None),
            ('off', dict(VersioningConfiguration={'Status': 'Suspended'}), 200, None),
            ('no such bucket', dict(Bucket='never-made', VersioningConfiguration={'Status': 'Enabled'}), 404, 'NoSuchBucket')), **{'Bucket': 'conf'})

    def test_lifecycle(self):
        rule = lambda **more: {'LifecycleConfiguration': {'Rules': [{'ID': 'r', 'Status': 'Enabled', 'Filter': {'Prefix': 'p/'}, 'Expiration': {'Days': 1}, **more}]}}
        two = {'LifecycleConfiguration': {'Rules': rule()['LifecycleConfiguration']['Rules'] * 2}}
        midnight = datetime.datetime(2040, 1, 1, tzinfo=datetime.timezone.utc)
        self.rows('put_bucket_lifecycle_configuration', (
            ('good', rule(), 200, None),
            ('date', rule(Expiration={'Date': midnight}), 200, None),
            ('date that is no midnight', rule(Expiration={'Date': midnight + DAY / 24}), 400, 'InvalidArgument'),
            ('zero days', rule(Expiration={'Days': 0}), 400, 'InvalidArgument'),
            ('negative days', rule(Expiration={'Days': -1}), 400, 'InvalidArgument'),
            ('unknown status', rule(Status='enabled'), 400, 'MalformedXML'),
            ('id of 256', rule(ID='i' * 256), 400, 'InvalidArgument'),
            ('same id twice', two, 400, 'InvalidArgument'),
            ('no action', rule(Expiration={}), 400, 'MalformedXML'),
            ('noncurrent', rule(NoncurrentVersionExpiration={'NoncurrentDays': 2}), 200, None),
            ('delete marker', rule(Expiration={'ExpiredObjectDeleteMarker': True}), 200, None),
            ('parts', rule(Expiration={'Days': 3}, AbortIncompleteMultipartUpload={'DaysAfterInitiation': 2}), 200, None)), Bucket='conf')
        unnamed = {'Rules': [{'Status': 'Enabled', 'Filter': {'Prefix': ''}, 'Expiration': {'Days': 1}}]}
        self.s3.put_bucket_lifecycle_configuration(Bucket='conf', LifecycleConfiguration=unnamed)
        self.assertTrue(self.s3.get_bucket_lifecycle_configuration(Bucket='conf')['Rules'][0]['ID'])

    def test_tags_cors_acl(self):
        tags = lambda *names: {'Tagging': {'TagSet': [{'Key': name, 'Value': 'v'} for name in names]}}
        self.rows('put_bucket_tagging', (
            ('good', tags('a', 'b'), 200, None), ('fifty', tags(*(f't{number}' for number in range(50))), 200, None),
            ('fifty-one', tags(*(f't{number}' for number in range(51))), 400, 'BadRequest'),
            ('twice', tags('a', 'a'), 400, 'InvalidTag'), ('long key', tags('k' * 129), 400, 'InvalidTag'),
            ('long value', {'Tagging': {'TagSet': [{'Key': 'k', 'Value': 'v' * 257}]}}, 400, 'InvalidTag')), Bucket='conf')
        cors = lambda origins, methods=('GET',): {'CORSConfiguration': {'CORSRules': [{'AllowedMethods': list(methods), 'AllowedOrigins': list(origins)}]}}
        self.rows('put_bucket_cors', (
            ('good', cors(['https://*.example.com', '*']), 200, None), ('two stars', cors(['*.a.*']), 400, 'InvalidRequest'),
            ('unknown method', cors(['*'], ['FETCH']), 400, 'InvalidRequest')), Bucket='conf')
        self.rows('put_bucket_acl', (
            ('private', dict(ACL='private'), 200, None), ('unknown', dict(ACL='public-ish'), 400, 'InvalidArgument')), Bucket='conf')
        self.check('no MD5 but a wrong one', self.raw('PUT', '/conf?tagging', b'<Tagging><TagSet></TagSet></Tagging>', {'content-md5': b64(bytes(16))}), 400, 'BadDigest')


class Listings(ConformanceCase):
    buckets = ('conf', 'tree', 'odd')

    @classmethod
    def prepare(cls):
        super().prepare()
        for key in ('asdf', 'boo/bar', 'boo/baz/xyzzy', 'cquux/bla', 'cquux/thud'):
            cls.s3.put_object(Bucket='tree', Key=key, Body=b'')
        for key in ('bar', 'baz', 'foo', 'quxx', 'with space', 'p%q', 'x.y.z', 'line\nfeed'):
            cls.s3.put_object(Bucket='odd', Key=key, Body=b'')

    def listed(self, bucket='tree', **parameters):
        answer = self.ask('list_objects_v2', Bucket=bucket, **parameters)
        return [entry['Key'] for entry in answer.get('Contents', [])], [entry['Prefix'] for entry in answer.get('CommonPrefixes', [])]

    def test_delimiters_and_prefixes(self):
        every = ['asdf', 'boo/bar', 'boo/baz/xyzzy', 'cquux/bla', 'cquux/thud']
        for parameters, keys, prefixes in (
                ({}, every, []), ({'Delimiter': '/'}, ['asdf'], ['boo/', 'cquux/']), ({'Delimiter': ''}, every, []), ({'Delimiter': 'x/'}, every[:3], ['cquux/']),
                ({'Delimiter': '~'}, every, []), ({'Delimiter': 'oo/'}, ['asdf', 'cquux/bla', 'cquux/thud'], ['boo/']), ({'Delimiter': '\n'}, every, []),
                ({'Prefix': 'boo/'}, every[1:3], []), ({'Prefix': 'boo/', 'Delimiter': '/'}, ['boo/bar'], ['boo/baz/']), ({'Prefix': 'bo'}, every[1:3], []),
                ({'Prefix': 'boo/bar', 'Delimiter': '/'}, ['boo/bar'], []), ({'Prefix': '/'}, [], []), ({'Prefix': '', 'Delimiter': '/'}, ['asdf'], ['boo/', 'cquux/']),
                ({'Prefix': '\n'}, [], []), ({'StartAfter': 'boo/baz'}, every[2:], []), ({'StartAfter': 'zzz'}, [], []), ({'StartAfter': 'aaa'}, every, []),
                ({'StartAfter': '\n'}, every, []), ({'StartAfter': 'boo/', 'Delimiter': '/'}, [], ['cquux/']), ({'StartAfter': 'boo/bar', 'Delimiter': '/'}, [], ['cquux/'])):
            with self.subTest(parameters=parameters):
                self.assertEqual(self.listed(**parameters), (keys, prefixes))

    def test_odd_delimiters(self):
        for delimiter, prefixes in (('a', ['ba', 'with spa']), (' ', ['with ']), ('%', ['p%']), ('.', ['x.']), ('\n', ['line\n']), ('z', ['baz', 'x.y.z'])):
            with self.subTest(delimiter=delimiter):
                self.assertEqual(self.listed('odd', Delimiter=delimiter)[1], prefixes)

    def test_pages_with_prefixes(self):
        """A page counts keys and common prefixes alike, and the next goes on behind a whole prefix."""
        for operation, token, after in (('list_objects_v2', 'ContinuationToken', 'NextContinuationToken'), ('list_objects', 'Marker', 'NextMarker')):
            for prefix, wanted in ((None, ['asdf', 'boo/', 'cquux/']), ('boo/', ['boo/bar', 'boo/baz/'])):
                with self.subTest(operation=operation, prefix=prefix):
                    found, more = [], {}
                    for _ in range(6):
                        page = self.ask(operation, Bucket='tree', Delimiter='/', MaxKeys=1, **more, **({'Prefix': prefix} if prefix else {}))
                        rows = [entry['Key'] for entry in page.get('Contents', [])] + [entry['Prefix'] for entry in page.get('CommonPrefixes', [])]
                        self.assertEqual(len(rows), 1)
                        found += rows
                        if not page['IsTruncated']:
                            break
                        more = {token: page[after]}
                    self.assertEqual(found, wanted)

    def test_sizes(self):
        for operation in ('list_objects', 'list_objects_v2', 'list_object_versions'):
            with self.subTest(operation=operation):
                self.assertFalse(self.ask(operation, Bucket='tree', MaxKeys=0)['IsTruncated'])
                self.assertEqual(self.ask(operation, Bucket='tree', MaxKeys=5000)['MaxKeys'], 1000)
                self.check('negative', self.ask(operation, Bucket='tree', MaxKeys=-1), 400, 'InvalidArgument')
                self.assertEqual(self.ask(operation, Bucket='tree')['MaxKeys'], 1000)
                self.assertEqual(self.ask(operation, Bucket='tree', MaxKeys=2)['IsTruncated'], True)
        for target in ('/tree?max-keys=abc', '/tree?list-type=2&max-keys=abc', '/tree?versions&max-keys=x', '/tree?uploads&max-uploads=x', '/tree?list-type=2&max-keys='):
            answer = self.raw('GET', target)
            if target.endswith('='):
                self.assertIn(answer.status, (200, 400))
            else:
                self.check(target, answer, 400, 'InvalidArgument')

    def test_echoes(self):
        first = self.ask('list_objects_v2', Bucket='tree', MaxKeys=2, StartAfter='a')
        self.assertEqual((first['KeyCount'], first['StartAfter'], first['IsTruncated'], first['Prefix'], first['Name']), (2, 'a', True, '', 'tree'))
        second = self.ask('list_objects_v2', Bucket='tree', MaxKeys=2, StartAfter='zzz', ContinuationToken=first['NextContinuationToken'])
        self.assertEqual([entry['Key'] for entry in second['Contents']], ['boo/baz/xyzzy', 'cquux/bla'])
        self.assertEqual((second['StartAfter'], second['ContinuationToken']), ('zzz', first['NextContinuationToken']))
        empty = self.ask('list_objects_v2', Bucket='tree', ContinuationToken='')
        self.assertEqual((empty.status, empty['ContinuationToken'], empty['IsTruncated'], empty['KeyCount']), (200, '', False, 5))
        self.check('a token nobody gave', self.ask('list_objects_v2', Bucket='tree', ContinuationToken='not a token!'), 400, 'InvalidArgument')
        self.assertNotIn('Owner', self.ask('list_objects_v2', Bucket='tree')['Contents'][0])
        self.assertIn('Owner', self.ask('list_objects_v2', Bucket='tree', FetchOwner=True)['Contents'][0])
        self.assertIn('Owner', self.ask('list_objects', Bucket='tree')['Contents'][0])
        plain = self.ask('list_objects', Bucket='tree', MaxKeys=2)
        self.assertNotIn('NextMarker', plain.reply)
        self.assertEqual(self.ask('list_objects', Bucket='tree', MaxKeys=1, Delimiter='/')['NextMarker'], 'asdf')
        self.assertEqual(self.ask('list_objects', Bucket='tree', Marker='boo/bar')['Marker'], 'boo/bar')

    def test_encoding(self):
        self.assertIn('line\nfeed', self.listed('odd')[0])
        raw = self.raw('GET', '/odd?encoding-type=url').reply.body
        self.assertIn(b'<Key>line%0Afeed</Key>', raw)
        self.assertIn(b'<Key>p%25q</Key>', raw)
        self.assertIn(b'&#', self.raw('GET', '/odd').reply.body)
        self.check('another encoding', self.raw('GET', '/odd?encoding-type=base64'), 400, 'InvalidArgument')

    def test_times_agree(self):
        head = self.s3.head_object(Bucket='tree', Key='asdf')['LastModified']
        self.assertEqual(self.s3.list_objects_v2(Bucket='tree')['Contents'][0]['LastModified'].replace(microsecond=0), head)


class Objects(ConformanceCase):
    buckets = ('conf', 'versioned')

    def test_put_rows(self):
        self.rows('put_object', (
            ('MD5', {'ContentMD5': b64(hashlib.md5(b'bar').digest())}, 200, None),
            ('MD5 of something else', {'ContentMD5': b64(bytes(16))}, 400, 'BadDigest'),
            ('MD5 too short', {'ContentMD5': 'YWJyYWNhZGFicmE='}, 400, 'InvalidDigest'),
            ('MD5 empty', {'ContentMD5': ''}, 400, 'InvalidDigest'),
            ('storage class', {'StorageClass': 'STANDARD'}, 200, None),
            ('unknown storage class', {'StorageClass': 'WARMISH'}, 400, 'InvalidStorageClass'),
            ('longest key', {'Key': 'k' * 1024}, 200, None),
            ('key too long', {'Key': 'k' * 1025}, 400, 'KeyTooLongError'),
            ('metadata', {'Metadata': {'a': 'b' * 2000}}, 200, None),
            ('too much metadata', {'Metadata': {'a': 'b' * 2048}}, 400, 'MetadataTooLarge'),
            ('tags', {'Tagging': 'a=b&c='}, 200, None),
            ('eleven tags', {'Tagging': '&'.join(f't{number}=v' for number in range(11))}, 400, 'BadRequest'),
            ('a tag twice', {'Tagging': 'a=b&a=c'}, 400, 'InvalidArgument'),
            ('redirect', {'WebsiteRedirectLocation': '/elsewhere'}, 200, None),
            ('redirect to nowhere', {'WebsiteRedirectLocation': 'elsewhere'}, 400, 'InvalidRedirectLocation'),
            ('canned ACL', {'ACL': 'private'}, 200, None),
            ('unknown canned ACL', {'ACL': 'privat'}, 400, 'InvalidArgument'),
            ('customer key', {'SSECustomerAlgorithm': 'AES256', 'SSECustomerKey': 'k' * 32}, 501, 'NotImplemented'),
            ('append', {'WriteOffsetBytes': 3}, 501, 'NotImplemented'),
            ('no such bucket', {'Bucket': 'never-made'}, 404, 'NoSuchBucket')), Bucket='conf', Key='put', Body=b'bar')
        self.check('an Expect nobody knows', self.raw('PUT', '/conf/expect', b'x', {'expect': '200'}), 200)
        self.check('declared hash of another body', self.daemon_put_with_wrong_hash(), 400, 'XAmzContentSHA256Mismatch')
        self.assertEqual(self.ask('head_object', Bucket='conf', Key='hashed').status, 404)
        for encoding, stored in (('aws-chunked', None), ('gzip, aws-chunked', 'gzip'), ('aws-chunked, gzip', 'gzip'), ('deflate', 'deflate'), ('', None)):
            self.ask('put_object', Bucket='conf', Key='encoded', Body=b'x', ContentEncoding=encoding)
            self.assertEqual((self.s3.head_object(Bucket='conf', Key='encoded').get('ContentEncoding') or None), stored, encoding)

    def daemon_put_with_wrong_hash(self):
        headers = self.signer.headers('PUT', '/conf/hashed', b'one')
        reply = self.daemon.request('PUT', '/conf/hashed', body=b'two', headers=headers, token=None)
        return Answer(reply.status, reply.code(), reply.headers, reply)

    def test_metadata(self):
        for value in ('plain', '', 'with, comma', "quote'", 'x' * 1000):
            self.put('meta', b'', Metadata={'m': value})
            self.assertEqual(self.s3.head_object(Bucket='conf', Key='meta')['Metadata'], {'m': value})
        self.put('meta', b'')
        self.assertEqual(self.s3.head_object(Bucket='conf', Key='meta')['Metadata'], {})
        self.assertEqual(self.s3.head_object(Bucket='conf', Key='meta')['ContentType'], 'binary/octet-stream')

    def test_ranges(self):
        data = content(100)
        self.put('ranged', data)
        self.put('empty', b'')
        for text, first, last in (('0-0', 0, 0), ('0-99', 0, 99), ('0-999', 0, 99), ('50-', 50, 99), ('-10', 90, 99), ('-101', 0, 99), ('00-01', 0, 1), ('4-7', 4, 7)):
            for operation in ('get_object', 'head_object'):
                answer = self.check(f'{operation} {text}', self.ask(operation, Bucket='conf', Key='ranged', Range=f'bytes={text}'), 206)
                self.assertEqual(answer['ContentRange'], f'bytes {first}-{last}/100')
                if operation == 'get_object':
                    self.assertEqual(answer['Body'].read(), data[first:last + 1])
        for text in ('100-', '100-200', '-0', '40000-50000'):
            answer = self.check(text, self.ask('get_object', Bucket='conf', Key='ranged', Range=f'bytes={text}'), 416, 'InvalidRange')
            self.assertEqual(answer.headers['content-range'], 'bytes */100')
        for text in ('bytes=10-5', 'bytes=abc', 'bytes=a-z', 'foo=0-1', 'bytes=0-0,1-2', 'bytes=,'):
            answer = self.check(text, self.ask('get_object', Bucket='conf', Key='ranged', Range=text), 200)
            self.assertEqual(answer['Body'].read(), data)
        self.check('empty object', self.ask('get_object', Bucket='conf', Key='empty', Range='bytes=0-1'), 416, 'InvalidRange')
        self.check('range and part', self.ask('get_object', Bucket='conf', Key='ranged', Range='bytes=0-1', PartNumber=1), 400, 'InvalidRequest')
        self.check('only part', self.ask('get_object', Bucket='conf', Key='ranged', PartNumber=1), 206)
        self.check('second part', self.ask('get_object', Bucket='conf', Key='ranged', PartNumber=2), 400, 'InvalidPart')
        self.check('part zero', self.ask('get_object', Bucket='conf', Key='ranged', PartNumber=0), 400, 'InvalidArgument')
        self.check('part 10001', self.ask('get_object', Bucket='conf', Key='ranged', PartNumber=10001), 400, 'InvalidArgument')

    def test_conditional_reads(self):
        etag = self.put('read', b'data')['ETag']
        modified = self.s3.head_object(Bucket='conf', Key='read')['LastModified']
        before, after, other = modified - DAY, modified + datetime.timedelta(seconds=1), '"0123456789abcdef0123456789abcdef"'
        rows = (
            (dict(IfMatch=etag), 200), (dict(IfMatch=other), 412), (dict(IfMatch='*'), 200), (dict(IfMatch=f'{other}, {etag}'), 200),
            (dict(IfMatch=etag.strip('"')), 200), (dict(IfMatch=etag, IfUnmodifiedSince=before), 200), (dict(IfUnmodifiedSince=before), 412),
            (dict(IfUnmodifiedSince=modified), 200), (dict(IfNoneMatch=etag), 304), (dict(IfNoneMatch=other), 200), (dict(IfNoneMatch='*'), 304),
            (dict(IfNoneMatch=etag, IfModifiedSince=before), 304), (dict(IfNoneMatch=other, IfModifiedSince=modified), 200),
            (dict(IfModifiedSince=before), 200), (dict(IfModifiedSince=modified), 304), (dict(IfMatch=other, IfNoneMatch=etag), 412),
            (dict(IfMatch=etag, IfNoneMatch=etag), 304), (dict(IfModifiedSince=after + DAY * 3), 200), (dict(IfNoneMatch='W/' + etag), 304))
        for parameters, status in rows:
            for operation in ('get_object', 'head_object'):
                with self.subTest(operation=operation, parameters=parameters):
                    answer = self.ask(operation, Bucket='conf', Key='read', **parameters)
                    self.assertEqual(answer.status, status)
                    if status == 304:
                        self.assertEqual(answer.headers['etag'], etag)
        copies = ((dict(CopySourceIfMatch=etag), 200, None), (dict(CopySourceIfMatch=other), 412, 'PreconditionFailed'),
                  (dict(CopySourceIfNoneMatch=etag), 412, 'PreconditionFailed'), (dict(CopySourceIfNoneMatch=other), 200, None),
                  (dict(CopySourceIfModifiedSince=modified), 412, 'PreconditionFailed'), (dict(CopySourceIfUnmodifiedSince=before), 412, 'PreconditionFailed'),
                  (dict(CopySourceIfMatch=etag, CopySourceIfUnmodifiedSince=before), 200, None))
        for parameters, status, code in copies:
            self.check(f'copy {parameters}', self.ask('copy_object', Bucket='conf', Key='read-copy', CopySource='conf/read', **parameters), status, code)

    def test_conditional_writes(self):
        other = '"0123456789abcdef0123456789abcdef"'
        for bucket in ('conf', 'versioned'):
            if bucket == 'versioned':
                self.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={'Status': 'Enabled'})
            etag = self.put('there', b'1', bucket)['ETag']
            for label, parameters, status, code in (
                    ('none-match * on a key', dict(IfNoneMatch='*'), 412, 'PreconditionFailed'), ('none-match its etag', dict(IfNoneMatch=etag), 412, 'PreconditionFailed'),
                    ('none-match another', dict(IfNoneMatch=other), 200, None), ('match its etag', dict(IfMatch=etag), 200, None), ('match *', dict(IfMatch='*'), 200, None),
                    ('match another', dict(IfMatch=other), 412, 'PreconditionFailed'),
                    ('absent, none-match *', dict(Key=f'new-{bucket}', IfNoneMatch='*'), 200, None),
                    ('absent, match *', dict(Key='absent', IfMatch='*'), 404, 'NoSuchKey'), ('absent, match', dict(Key='absent', IfMatch=etag), 404, 'NoSuchKey')):
                self.check(f'{bucket}: {label}', self.ask('put_object', **{'Bucket': bucket, 'Key': 'there', 'Body': b'1', **parameters}), status, code)
        self.s3.delete_object(Bucket='versioned', Key='there')
        self.check('delete marker, match', self.ask('put_object', Bucket='versioned', Key='there', Body=b'', IfMatch=other), 404, 'NoSuchKey')
        self.check('delete marker, none-match *', self.ask('put_object', Bucket='versioned', Key='there', Body=b'', IfNoneMatch='*'), 200)

    def test_conditional_deletes(self):
        other = '"0123456789abcdef0123456789abcdef"'
        etag = self.put('doomed', b'12345')['ETag']
        modified = self.s3.head_object(Bucket='conf', Key='doomed')['LastModified']
        for label, parameters, status in (
                ('another etag', dict(IfMatch=other), 412), ('another size', dict(IfMatchSize=6), 412),
                ('another time', dict(IfMatchLastModifiedTime=modified - DAY), 412), ('absent', dict(Key='absent', IfMatch=etag), 204),
                ('all right', dict(IfMatch=etag, IfMatchSize=5, IfMatchLastModifiedTime=modified), 204)):
            self.check(label, self.ask('delete_object', **{'Bucket': 'conf', 'Key': 'doomed', **parameters}), status, 'PreconditionFailed' if status == 412 else None)
        etag = self.put('kept', b'1')['ETag']
        answer = self.ask('delete_objects', Bucket='conf', Delete={'Objects': [{'Key': 'kept', 'ETag': other}, {'Key': 'absent', 'ETag': other}]})
        self.assertEqual([(entry['Key'], entry['Code']) for entry in answer.get('Errors', [])], [('kept', 'PreconditionFailed')])
        self.assertEqual(self.s3.delete_objects(Bucket='conf', Delete={'Objects': [{'Key': 'kept', 'ETag': etag}]})['Deleted'][0]['Key'], 'kept')

    def test_deletes(self):
        self.check('absent', self.ask('delete_object', Bucket='conf', Key='never'), 204)
        self.check('absent version', self.ask('delete_object', Bucket='conf', Key='never', VersionId='null'), 204)
        self.check('no such bucket', self.ask('delete_object', Bucket='never-made', Key='k'), 404, 'NoSuchBucket')
        self.check('1001 at once', self.ask('delete_objects', Bucket='conf', Delete={'Objects': [{'Key': str(number)} for number in range(1001)]}), 400, 'MalformedXML')
        self.check('1000 at once', self.ask('delete_objects', Bucket='conf', Delete={'Objects': [{'Key': str(number)} for number in range(1000)]}), 200)
        self.check('none', self.ask('delete_objects', Bucket='conf', Delete={'Objects': []}), 400, 'MalformedXML')
        body = b'<Delete><Object><Key>k</Key></Object></Delete>'
        self.check('without a digest', self.raw('POST', '/conf?delete', body), 200)
        self.check('with MD5', self.raw('POST', '/conf?delete', body, {'content-md5': b64(hashlib.md5(body).digest())}), 200)
        self.check('with a wrong MD5', self.raw('POST', '/conf?delete', body, {'content-md5': b64(bytes(16))}), 400, 'BadDigest')
        self.check('with a wrong CRC', self.raw('POST', '/conf?delete', body, {'x-amz-checksum-crc32': 'AAAAAA=='}), 400, 'BadDigest')
        self.check('malformed', self.raw('POST', '/conf?delete', b'<Delete><Object>'), 400, 'MalformedXML')

    def test_copies(self):
        self.put('source', b'data', Metadata={'a': 'b'}, ContentType='text/x-s', Tagging='t=v')
        source = 'conf/source'
        for label, parameters, status, code in (
                ('plain', {}, 200, None), ('with a slash', {'CopySource': '/conf/source'}, 200, None), ('onto itself', {'Key': 'source'}, 400, 'InvalidRequest'),
                ('unknown directive', {'MetadataDirective': 'MERGE'}, 400, 'InvalidArgument'), ('unknown tagging directive', {'TaggingDirective': 'MERGE'}, 400, 'InvalidArgument'),
                ('no such key', {'CopySource': 'conf/never'}, 404, 'NoSuchKey'), ('no such bucket', {'CopySource': 'never-made/k'}, 404, 'NoSuchBucket'),
                ('to no bucket', {'Bucket': 'never-made'}, 404, 'NoSuchBucket'), ('no slash', {'CopySource': 'conf'}, 400, 'InvalidArgument'),
                ('onto a key, none-match *', {'Key': 'source', 'IfNoneMatch': '*', 'MetadataDirective': 'REPLACE'}, 412, 'PreconditionFailed'),
                ('itself, replaced', {'Key': 'source', 'MetadataDirective': 'REPLACE', 'Metadata': {'c': 'd'}, 'ContentType': 'text/x-s'}, 200, None),
                ('unknown version', {'CopySource': 'conf/source?versionId=garbage'}, None, None)):
            answer = self.ask('copy_object', **{'Bucket': 'conf', 'Key': 'target', 'CopySource': source, **parameters})
            if status is None:
                self.assertIn(answer.status, (400, 404), label)
            else:
                self.check(label, answer, status, code)
        self.assertEqual(self.s3.head_object(Bucket='conf', Key='source')['Metadata'], {'c': 'd'})
        kept = self.s3.head_object(Bucket='conf', Key='target')
        self.assertEqual((kept['Metadata'], kept['ContentType'], kept['TagCount']), ({'a': 'b'}, 'text/x-s', 1))
        self.check('a stranger copies', self.ask('copy_object', client=self.stranger, Bucket='conf', Key='t', CopySource=source), 403, 'AccessDenied')
        for key in ('a b', 'q?x', 'p%41', 'plus+', 'ü'):
            self.put(key, key.encode())
            self.check(key, self.ask('copy_object', Bucket='conf', Key='odd', CopySource={'Bucket': 'conf', 'Key': key}), 200)
            self.assertEqual(self.s3.get_object(Bucket='conf', Key='odd')['Body'].read(), key.encode())

    def test_attributes_and_tags(self):
        self.put('k', b'data')
        self.check('unknown attribute', self.ask('get_object_attributes', Bucket='conf', Key='k', ObjectAttributes=['Colour']), 400, 'InvalidArgument')
        self.check('none asked for', self.raw('GET', '/conf/k?attributes'), 400, 'InvalidRequest')
        self.check('no such key', self.ask('get_object_attributes', Bucket='conf', Key='never', ObjectAttributes=['ETag']), 404, 'NoSuchKey')
        tags = lambda *pairs: {'Tagging': {'TagSet': [{'Key': key, 'Value': value} for key, value in pairs]}}
        self.rows('put_object_tagging', (
            ('ten', tags(*((f'k{number}', 'v') for number in range(10))), 200, None), ('eleven', tags(*((f'k{number}', 'v') for number in range(11))), 400, 'BadRequest'),
            ('longest', tags(('k' * 128, 'v' * 256)), 200, None), ('key too long', tags(('k' * 129, 'v')), 400, 'InvalidTag'),
            ('value too long', tags(('k', 'v' * 257)), 400, 'InvalidTag'), ('no key', tags(('', 'v')), 400, 'InvalidTag'),
            ('twice', tags(('k', '1'), ('k', '2')), 400, 'InvalidTag'), ('no such key', dict(Key='never', **tags(('k', 'v'))), 404, 'NoSuchKey')),
            Bucket='conf', Key='k')
        self.assertEqual(self.s3.get_object_tagging(Bucket='conf', Key='k')['TagSet'], [{'Key': 'k' * 128, 'Value': 'v' * 256}])
        self.check('removed', self.ask('delete_object_tagging', Bucket='conf', Key='k'), 204)

    def test_versions(self):
        self.s3.create_bucket(Bucket='states')
        self.assertNotIn('VersionId', self.put('k', b'0', 'states'))
        self.assertEqual(self.s3.list_object_versions(Bucket='states')['Versions'][0]['VersionId'], 'null')
        self.s3.put_bucket_versioning(Bucket='states', VersioningConfiguration={'Status': 'Enabled'})
        first = self.put('k', b'1', 'states')['VersionId']
        marker = self.ask('delete_object', Bucket='states', Key='k')
        self.assertEqual((marker.status, marker.headers['x-amz-delete-marker']), (204, 'true'))
        marked = self.check('current is a marker', self.ask('get_object', Bucket='states', Key='k'), 404, 'NoSuchKey')
        self.assertEqual(marked.headers['x-amz-delete-marker'], 'true')
        by_id = self.check('the marker itself', self.ask('get_object', Bucket='states', Key='k', VersionId=marker['VersionId']), 405, 'MethodNotAllowed')
        self.assertEqual((by_id.headers['x-amz-delete-marker'], by_id.headers['allow']), ('true', 'DELETE'))
        self.check('head of the marker', self.ask('head_object', Bucket='states', Key='k', VersionId=marker['VersionId']), 405, '405')
        self.check('null', self.ask('get_object', Bucket='states', Key='k', VersionId='null'), 200)
        self.check('attributes of a marker', self.ask('get_object_attributes', Bucket='states', Key='k', ObjectAttributes=['ETag']), 404, 'NoSuchKey')
        self.check('copy of a marker', self.ask('copy_object', Bucket='states', Key='c', CopySource='states/k'), 404, 'NoSuchKey')
        self.check('copy of a version', self.ask('copy_object', Bucket='states', Key='c', CopySource=f'states/k?versionId={first}'), 200)
        gone = self.put('gone', b'', 'states')['VersionId']
        self.s3.delete_object(Bucket='states', Key='gone', VersionId=gone)
        self.check('a version that was', self.ask('get_object', Bucket='states', Key='gone', VersionId=gone), 404, 'NoSuchVersion')
        self.check('garbage', self.ask('get_object', Bucket='states', Key='k', VersionId='garbage'), 400, 'InvalidArgument')
        self.check('removing an unknown version', self.ask('delete_object', Bucket='states', Key='k', VersionId=gone), 204)
        self.check('removing garbage', self.ask('delete_object', Bucket='states', Key='k', VersionId='garbage'), 400, 'InvalidArgument')
        removed = self.ask('delete_object', Bucket='states', Key='k', VersionId=marker['VersionId'])
        self.assertEqual((removed.status, removed.headers['x-amz-delete-marker']), (204, 'true'))
        self.assertEqual(self.s3.get_object(Bucket='states', Key='k')['Body'].read(), b'1')
        self.s3.put_bucket_versioning(Bucket='states', VersioningConfiguration={'Status': 'Suspended'})
        suspended = self.ask('delete_object', Bucket='states', Key='k')
        self.assertEqual((suspended.headers['x-amz-delete-marker'], suspended.headers['x-amz-version-id']), ('true', 'null'))
        self.check('null is now the marker', self.ask('get_object', Bucket='states', Key='k', VersionId='null'), 405, 'MethodNotAllowed')
        self.assertEqual(self.s3.get_object(Bucket='states', Key='k', VersionId=first)['Body'].read(), b'1')
        mixed = self.s3.delete_objects(Bucket='states', Delete={'Objects': [{'Key': 'c'}, {'Key': 'k', 'VersionId': first}]})['Deleted']
        self.assertEqual({(entry['Key'], entry.get('VersionId')) for entry in mixed}, {('c', None), ('k', first)})


class Multipart(ConformanceCase):
    def start(self, key, **more):
        return dict(Bucket='conf', Key=key, UploadId=self.s3.create_multipart_upload(Bucket='conf', Key=key, **more)['UploadId'])

    def complete(self, where, *parts, **more):
        rows = [{'PartNumber': number, 'ETag': etag, **(extra[0] if extra else {})} for number, etag, *extra in parts]
        return self.ask('complete_multipart_upload', **where, MultipartUpload={'Parts': rows}, **more)

    def test_rows(self):
        where = self.start('k')
        nowhere = dict(where, UploadId='nonexistent')
        etags = [self.s3.upload_part(**where, PartNumber=number, Body=b'small')['ETag'] for number in (1, 2)]
        self.rows('upload_part', (
            ('part 0', dict(PartNumber=0), 400, 'InvalidArgument'), ('part 10001', dict(PartNumber=10001), 400, 'InvalidArgument'),
            ('no such upload', dict(PartNumber=1, UploadId='nonexistent'), 404, 'NoSuchUpload'),
            ('another key', dict(PartNumber=1, Key='other'), 404, 'NoSuchUpload'),
            ('wrong MD5', dict(PartNumber=3, ContentMD5=b64(bytes(16))), 400, 'BadDigest')), Body=b'x', **where)
        self.check('no parts', self.complete(where), 400, 'MalformedXML')
        self.check('too small', self.complete(where, (1, etags[0]), (2, etags[1])), 400, 'EntityTooSmall')
        self.check('out of order', self.complete(where, (2, etags[1]), (1, etags[0])), 400, 'InvalidPartOrder')
        self.check('twice the same', self.complete(where, (1, etags[0]), (1, etags[0])), 400, 'InvalidPartOrder')
        self.check('missing part', self.complete(where, (9999, etags[0])), 400, 'InvalidPart')
        self.check('another etag', self.complete(where, (1, '"ffffffffffffffffffffffffffffffff"')), 400, 'InvalidPart')
        self.check('no such upload', self.complete(nowhere, (1, etags[0])), 404, 'NoSuchUpload')
        self.check('another size', self.complete(where, (1, etags[0]), MpuObjectSize='6'), 400, 'InvalidRequest')
        self.check('etag without quotes', self.complete(where, (1, etags[0].strip('"')), MpuObjectSize='5'), 200)
        self.check('again', self.complete(where, (1, etags[0])), 200)
        self.check('parts after completion', self.ask('list_parts', **where), 404, 'NoSuchUpload')
        self.check('abort of an unknown one', self.ask('abort_multipart_upload', **nowhere), 404, 'NoSuchUpload')
        self.check('no such bucket', self.ask('create_multipart_upload', Bucket='never-made', Key='k'), 404, 'NoSuchBucket')
        dropped = self.start('dropped')
        self.check('abort', self.ask('abort_multipart_upload', **dropped), 204)
        self.check('abort again', self.ask('abort_multipart_upload', **dropped), 404, 'NoSuchUpload')

    def test_layout(self):
        """Sizes around the least part, and parts that the list leaves out."""
        for sizes in ((5 * MIB, 1), (5 * MIB, 5 * MIB + 77), (6 * MIB, 5 * MIB, 600 * 1024)):
            where = self.start('layout')
            pieces = [content(size, number) for number, size in enumerate(sizes)]
            etags = [self.s3.upload_part(**where, PartNumber=3 * number + 1, Body=piece)['ETag'] for number, piece in enumerate(pieces)]
            self.s3.upload_part(**where, PartNumber=2, Body=b'left out')
            self.check(str(sizes), self.complete(where, *((3 * number + 1, etag) for number, etag in enumerate(etags))), 200)
            got = self.s3.get_object(Bucket='conf', Key='layout')
            self.assertSame(got['Body'].read(), b''.join(pieces))
            digests = b''.join(hashlib.md5(piece).digest() for piece in pieces)
            self.assertEqual(got['ETag'], f'"{md5(digests)}-{len(pieces)}"')
            for number, piece in enumerate(pieces):
                part = self.ask('get_object', Bucket='conf', Key='layout', PartNumber=3 * number + 1)
                self.assertEqual((part.status, part['PartsCount'], part['ContentLength']), (206, len(pieces), len(piece)))
                self.assertSame(part['Body'].read(), piece)
            self.check('beyond the parts', self.ask('get_object', Bucket='conf', Key='layout', PartNumber=3 * len(pieces) + 1), 400, 'InvalidPart')

    def test_copied_parts(self):
        self.put('source', content(6 * MIB))
        where = self.start('copied')
        self.rows('upload_part_copy', (
            ('range', dict(CopySourceRange='bytes=0-9'), 200, None), ('whole', {}, 200, None),
            ('no bytes=', dict(CopySourceRange='0-2'), 400, 'InvalidArgument'), ('open', dict(CopySourceRange='bytes=0-'), 400, 'InvalidArgument'),
            ('suffix', dict(CopySourceRange='bytes=-2'), 400, 'InvalidArgument'), ('letters', dict(CopySourceRange='bytes=hello-world'), 400, 'InvalidArgument'),
            ('backwards', dict(CopySourceRange='bytes=2-1'), 400, 'InvalidArgument'),
            ('no such key', dict(CopySource='conf/never'), 404, 'NoSuchKey'), ('no such upload', dict(UploadId='nonexistent'), 404, 'NoSuchUpload'),
            ('none-match', dict(CopySourceIfMatch='"no"'), 412, 'PreconditionFailed')), PartNumber=1, CopySource='conf/source', **where)
        beyond = self.ask('upload_part_copy', **where, PartNumber=1, CopySource='conf/source', CopySourceRange='bytes=0-6291456')
        self.assertIn((beyond.status, beyond.code), ((400, 'InvalidArgument'), (400, 'InvalidRange'), (416, 'InvalidRange')))

    def test_conditions_and_listing(self):
        self.put('cond', b'there')
        where = self.start('cond')
        etag = self.s3.upload_part(**where, PartNumber=1, Body=b'part')['ETag']
        self.check('none-match * on a key', self.complete(where, (1, etag), IfNoneMatch='*'), 412, 'PreconditionFailed')
        self.check('match another', self.complete(where, (1, etag), IfMatch='"0123456789abcdef0123456789abcdef"'), 412, 'PreconditionFailed')
        self.assertIn(where['UploadId'], [entry['UploadId'] for entry in self.s3.list_multipart_uploads(Bucket='conf')['Uploads']])
        self.check('match *', self.complete(where, (1, etag), IfMatch='*'), 200)
        absent = self.start('cond-absent')
        etag = self.s3.upload_part(**absent, PartNumber=1, Body=b'part')['ETag']
        self.check('absent, match *', self.complete(absent, (1, etag), IfMatch='*'), 404, 'NoSuchKey')
        self.check('absent, none-match *', self.complete(absent, (1, etag), IfNoneMatch='*'), 200)


class Checksums(ConformanceCase):
    def test_put_rows(self):
        data = b'123456789'
        good, wrong = 'y/Q5Jg==', 'AAAAAA=='
        for label, headers, status, code in (
                ('good', {'x-amz-checksum-crc32': good}, 200, None), ('wrong', {'x-amz-checksum-crc32': wrong}, 400, 'BadDigest'),
                ('not base64', {'x-amz-checksum-crc32': 'bad'}, 400, 'BadDigest'),
                ('two values', {'x-amz-checksum-crc32': good, 'x-amz-checksum-crc32c': '4waSgw=='}, 400, 'InvalidRequest'),
                ('algorithm without value', {'x-amz-sdk-checksum-algorithm': 'CRC32'}, 400, 'InvalidRequest'),
                ('algorithm and another value', {'x-amz-sdk-checksum-algorithm': 'SHA256', 'x-amz-checksum-crc32': good}, 400, 'InvalidRequest'),
                ('unknown algorithm', {'x-amz-sdk-checksum-algorithm': 'CRC7', 'x-amz-checksum-crc32': good}, 400, 'InvalidRequest'),
                ('algorithm and value', {'x-amz-sdk-checksum-algorithm': 'CRC32', 'x-amz-checksum-crc32': good}, 200, None),
                ('CRC32C', {'x-amz-checksum-crc32c': '4waSgw=='}, 200, None), ('CRC64NVME', {'x-amz-checksum-crc64nvme': 'rosUhgp5mIg='}, 200, None),
                ('SHA1', {'x-amz-checksum-sha1': b64(hashlib.sha1(data).digest())}, 200, None),
                ('SHA256', {'x-amz-checksum-sha256': b64(hashlib.sha256(data).digest())}, 200, None),
                ('wrong SHA256', {'x-amz-checksum-sha256': b64(bytes(32))}, 400, 'BadDigest')):
            self.check(label, self.ask('put_object', Bucket='conf', Key='sum', Body=data, headers=headers), status, code)
        a = 'A' * 1024
        self.check('CRC64NVME of 1024 A', self.ask('put_object', Bucket='conf', Key='a', Body=a, headers={'x-amz-checksum-crc64nvme': 'Qeh8oXvGiSo='}), 200)

    def test_reads(self):
        self.put('sum', b'123456789', ChecksumCRC32='y/Q5Jg==')
        for operation in ('get_object', 'head_object'):
            self.assertEqual(self.ask(operation, Bucket='conf', Key='sum', ChecksumMode='ENABLED')['ChecksumCRC32'], 'y/Q5Jg==')
            self.assertNotIn('ChecksumCRC32', self.ask(operation, Bucket='conf', Key='sum').reply)
            ranged = self.ask(operation, Bucket='conf', Key='sum', ChecksumMode='ENABLED', Range='bytes=0-3')
            self.assertEqual([name for name in ranged.headers if name.startswith('x-amz-checksum-') and name != 'x-amz-checksum-type'], [])
        self.put('plain', b'123456789')
        self.assertEqual(self.ask('head_object', Bucket='conf', Key='plain', ChecksumMode='ENABLED').get('ChecksumCRC64NVME'), 'rosUhgp5mIg=')
        copied = self.ask('copy_object', Bucket='conf', Key='copied', CopySource='conf/sum', ChecksumAlgorithm='SHA256')
        self.assertEqual(copied['CopyObjectResult']['ChecksumSHA256'], b64(hashlib.sha256(b'123456789').digest()))

    def test_create_rows(self):
        self.rows('create_multipart_upload', (
            ('CRC32 composite', dict(ChecksumAlgorithm='CRC32', ChecksumType='COMPOSITE'), 200, None), ('CRC32 full', dict(ChecksumAlgorithm='CRC32', ChecksumType='FULL_OBJECT'), 200, None),
            ('CRC64NVME full', dict(ChecksumAlgorithm='CRC64NVME', ChecksumType='FULL_OBJECT'), 200, None),
            ('CRC64NVME composite', dict(ChecksumAlgorithm='CRC64NVME', ChecksumType='COMPOSITE'), 400, 'InvalidRequest'),
            ('SHA256 full', dict(ChecksumAlgorithm='SHA256', ChecksumType='FULL_OBJECT'), 400, 'InvalidRequest'),
            ('type alone', dict(ChecksumType='FULL_OBJECT'), 400, 'InvalidRequest'), ('unknown', dict(ChecksumAlgorithm='CRC7'), 400, 'InvalidRequest')),
            Bucket='conf', Key='created')
        for algorithm, kind in (('CRC32', 'COMPOSITE'), ('CRC32C', 'COMPOSITE'), ('CRC64NVME', 'FULL_OBJECT'), ('SHA1', 'COMPOSITE'), ('SHA256', 'COMPOSITE')):
            answer = self.ask('create_multipart_upload', Bucket='conf', Key='created', ChecksumAlgorithm=algorithm)
            self.assertEqual((answer['ChecksumAlgorithm'], answer['ChecksumType']), (algorithm, kind))

    def test_completions(self):
        pieces = [content(5 * MIB, 1), content(1000, 2)]
        where = dict(Bucket='conf', Key='completed')
        where['UploadId'] = self.s3.create_multipart_upload(**where, ChecksumAlgorithm='CRC32')['UploadId']
        self.check('another algorithm', self.ask('upload_part', **where, PartNumber=1, Body=pieces[0], ChecksumSHA256=b64(hashlib.sha256(pieces[0]).digest())), 400, 'InvalidRequest')
        parts = []
        for number, piece in enumerate(pieces, 1):
            reply = self.s3.upload_part(**where, PartNumber=number, Body=piece, ChecksumCRC32=crc32(piece))
            self.assertEqual(reply['ChecksumCRC32'], crc32(piece))
            parts.append({'PartNumber': number, 'ETag': reply['ETag'], 'ChecksumCRC32': reply['ChecksumCRC32']})
        done = lambda rows, **more: self.ask('complete_multipart_upload', **where, MultipartUpload={'Parts': rows}, **more)
        wrong = [dict(parts[0], ChecksumCRC32='AAAAAA=='), parts[1]]
        answer = done(wrong)
        self.assertIn((answer.status, answer.code), ((400, 'InvalidPart'), (400, 'BadDigest')))
        self.check('another type', done(parts, ChecksumType='FULL_OBJECT'), 400, 'InvalidRequest')
        answer = self.check('good', done(parts), 200)
        composite = b64(zlib.crc32(b''.join(zlib.crc32(piece).to_bytes(4, 'big') for piece in pieces)).to_bytes(4, 'big')) + '-2'
        self.assertEqual((answer['ChecksumCRC32'], answer['ChecksumType'], answer['ETag']), (composite, 'COMPOSITE', f'"{multipart_etag(b"".join(pieces), 5 * MIB)}"'))
        part = self.ask('get_object', Bucket='conf', Key='completed', PartNumber=2, ChecksumMode='ENABLED')
        self.assertEqual(part['ChecksumCRC32'], crc32(pieces[1]))
        where['UploadId'] = self.s3.create_multipart_upload(Bucket='conf', Key='completed', ChecksumAlgorithm='CRC64NVME')['UploadId']
        etags = [self.s3.upload_part(**where, PartNumber=number, Body=piece)['ETag'] for number, piece in enumerate(pieces, 1)]
        answer = self.check('CRC64NVME of the parts', done([{'PartNumber': number, 'ETag': etag} for number, etag in enumerate(etags, 1)]), 200)
        whole = self.ask('put_object', Bucket='conf', Key='whole', Body=b''.join(pieces))
        self.assertEqual(answer['ChecksumCRC64NVME'], self.ask('head_object', Bucket='conf', Key='whole', ChecksumMode='ENABLED')['ChecksumCRC64NVME'])
        self.assertEqual(whole.status, 200)


if __name__ == '__main__':
    unittest.main()
