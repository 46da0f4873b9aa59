"""boto3, current, with its default configuration: transfers, multipart, checksums, versions, presigned requests and the rest of the client."""
import base64
import gzip
import hashlib
import io
import os
import threading
import time
import unittest
import urllib.parse
import zlib

from tests.support.clients import CRT, DOMAIN, PART, REGION, ClientCase, both_schemes, content, importable, md5, multipart_etag, read
from tests.support.signer import form_body

READY = importable('boto3')
if READY:
    import boto3
    import botocore.client
    import botocore.exceptions

MISSING = 'boto3 is not installed (setup/clients)'
LARGE = 2 * PART + 1_234_567


class Unseekable(io.RawIOBase):
    """A stream like a pipe: no length, no way back."""

    def __init__(self, data):
        self.source = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.source.readinto(buffer)


class Boto3Case(ClientCase):
    agent = '^Boto3/'
    bucket = 'boto3'

    @classmethod
    def prepare(cls):
        cls.s3 = cls.client()
        cls.s3.create_bucket(Bucket=cls.bucket)

    @classmethod
    def client(cls, endpoint=None, keys=None, **config):
        return boto3.client('s3', **cls.settings(endpoint, keys, **config))

    @classmethod
    def settings(cls, endpoint=None, keys=None, **config):
        every = dict(endpoint_url=endpoint or cls.endpoint, region_name=REGION)
        every['aws_access_key_id'], every['aws_secret_access_key'] = keys or cls.keys
        if cls.tls:
            every['verify'] = cls.daemon.ca
        if config:
            every['config'] = botocore.client.Config(**config)
        return every

    def refused(self, status, code, call, **parameters):
        with self.assertRaises(botocore.exceptions.ClientError) as caught:
            call(**parameters)
        reply = caught.exception.response
        self.assertEqual((reply['ResponseMetadata']['HTTPStatusCode'], reply['Error']['Code']), (status, code))
        return reply

    def put(self, key, body=b'', **more):
        return self.s3.put_object(Bucket=more.pop('Bucket', self.bucket), Key=key, Body=body, **more)

    def get(self, key, **more):
        return self.s3.get_object(Bucket=more.pop('Bucket', self.bucket), Key=key, **more)

    def fetch(self, method, url, body=None, headers=None):
        """A plain HTTP request to a presigned URL."""
        parts = urllib.parse.urlsplit(url)
        return self.daemon.request(method, f'{parts.path}?{parts.query}', body=body, headers=headers, token=None)


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Boto3Transfers(Boto3Case):
    def test_small_file_there_and_back(self):
        path, data = self.file('small.bin', 1_000_003)
        self.s3.upload_file(path, self.bucket, 'dir/small.bin')
        self.assertEqual(self.s3.head_object(Bucket=self.bucket, Key='dir/small.bin')['ETag'], f'"{md5(data)}"')
        self.s3.download_file(self.bucket, 'dir/small.bin', path + '.back')
        self.assertSame(read(path + '.back'), data)

    def test_large_file_goes_in_parts_and_comes_in_ranges(self):
        path, data = self.file('large.bin', LARGE)
        self.s3.upload_file(path, self.bucket, 'large.bin', ExtraArgs={'Metadata': {'step': '17'}, 'ContentType': 'application/x-weights'})
        head = self.s3.head_object(Bucket=self.bucket, Key='large.bin')
        self.assertEqual((head['ETag'], head['ContentLength']), (f'"{multipart_etag(data)}"', LARGE))
        self.assertEqual((head['Metadata'], head['ContentType']), ({'step': '17'}, 'application/x-weights'))
        self.s3.download_file(self.bucket, 'large.bin', path + '.back')
        self.assertSame(read(path + '.back'), data)
        self.assertCalled('CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload')
        self.assertEqual(self.called('UploadPart', 200, least=3), 3)
        self.assertEqual(self.called('GetObject', 206, least=3), 3)

    def test_stream_without_length(self):
        for size in (300_000, LARGE):
            data = content(size, 1)
            self.s3.upload_fileobj(Unseekable(data), self.bucket, f'stream/{size}')
            back = io.BytesIO()
            self.s3.download_fileobj(self.bucket, f'stream/{size}', back)
            self.assertSame(back.getvalue(), data)

    def test_put_of_a_stream_without_length(self):
        data = content(3_000_000, 2)
        if not self.tls:
            with self.assertRaises(Exception):
                self.put('raw-stream', Unseekable(data))  # boto3 must read the body twice to sign it over plain HTTP
            self.put('raw-stream', data)
        else:
            self.put('raw-stream', Unseekable(data))
        self.assertSame(self.get('raw-stream')['Body'].read(), data)

    def test_empty_object(self):
        self.put('empty')
        reply = self.get('empty')
        self.assertEqual((reply['Body'].read(), reply['ContentLength'], reply['ETag']), (b'', 0, f'"{md5(b"")}"'))

    def test_many_threads(self):
        data = [content(200_000, seed) for seed in range(8)]
        failures = []

        def there_and_back(seed):
            try:
                self.put(f'threads/{seed}', data[seed])
                if self.get(f'threads/{seed}')['Body'].read() != data[seed]:
                    failures.append(f'{seed} differs')
            except Exception as failure:
                failures.append(repr(failure))
        threads = [threading.Thread(target=there_and_back, args=[seed]) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_ranges(self):
        data = content(100)
        self.put('ranged', data)
        for header, first, last in (('bytes=0-0', 0, 0), ('bytes=0-99', 0, 99), ('bytes=10-', 10, 99), ('bytes=-7', 93, 99), ('bytes=0-999', 0, 99)):
            reply = self.get('ranged', Range=header)
            self.assertEqual((reply['ResponseMetadata']['HTTPStatusCode'], reply['ContentRange']), (206, f'bytes {first}-{last}/100'))
            self.assertEqual(reply['Body'].read(), data[first:last + 1])
        self.refused(416, 'InvalidRange', self.s3.get_object, Bucket=self.bucket, Key='ranged', Range='bytes=100-')

    def test_overwritten_during_a_download(self):
        """download_file asks for later ranges with If-Match, so a change in between must not mix two versions."""
        self.put('moving', content(1000, 1))
        etag = self.s3.head_object(Bucket=self.bucket, Key='moving')['ETag']
        self.put('moving', content(1000, 2))
        self.refused(412, 'PreconditionFailed', self.s3.get_object, Bucket=self.bucket, Key='moving', IfMatch=etag, Range='bytes=0-9')

    def test_resource_interface(self):
        bucket = boto3.resource('s3', **self.settings()).Bucket('boto3-resource')
        bucket.create()
        for number in range(5):
            bucket.put_object(Key=f'k/{number}', Body=b'x')
        self.assertEqual([entry.key for entry in bucket.objects.filter(Prefix='k/')], [f'k/{number}' for number in range(5)])
        bucket.objects.all().delete()
        self.assertEqual(list(bucket.objects.all()), [])
        bucket.delete()
        self.assertNotIn('boto3-resource', [entry['Name'] for entry in self.s3.list_buckets()['Buckets']])

    def test_waiters(self):
        self.put('awaited')
        self.s3.get_waiter('bucket_exists').wait(Bucket=self.bucket)
        self.s3.get_waiter('object_exists').wait(Bucket=self.bucket, Key='awaited')
        self.s3.delete_object(Bucket=self.bucket, Key='awaited')
        self.s3.get_waiter('object_not_exists').wait(Bucket=self.bucket, Key='awaited')


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Boto3Addressing(Boto3Case):
    """Exception: addressing_style='virtual', without which boto3 uses path style for an endpoint of its user's."""

    def test_virtual_host(self):
        virtual = self.client(self.named_endpoint, s3={'addressing_style': 'virtual'})
        virtual.create_bucket(Bucket='virtual-style')
        data = content(300_000, 3)
        virtual.put_object(Bucket='virtual-style', Key='a b/c+d', Body=data)
        self.assertSame(virtual.get_object(Bucket='virtual-style', Key='a b/c+d')['Body'].read(), data)
        self.assertEqual([entry['Key'] for entry in virtual.list_objects_v2(Bucket='virtual-style')['Contents']], ['a b/c+d'])
        self.assertSame(self.get('a b/c+d', Bucket='virtual-style')['Body'].read(), data)
        for version in ({}, {'signature_version': 's3v4'}):
            url = self.client(self.named_endpoint, s3={'addressing_style': 'virtual'}, **version).generate_presigned_url(
                'get_object', Params={'Bucket': 'virtual-style', 'Key': 'a b/c+d'})
            self.assertEqual(urllib.parse.urlsplit(url).hostname, f'virtual-style.{DOMAIN}')
            got = self.fetch('GET', url, headers={'Host': urllib.parse.urlsplit(url).netloc})
            self.assertEqual(got.status, 200, got.body)
            self.assertSame(got.body, data)

    def test_any_region(self):
        """Exception: the region, which is what is tested."""
        for region in ('auto', 'garage', 'eu-central-1'):
            other = boto3.client('s3', **dict(self.settings(), region_name=region))
            other.put_object(Bucket=self.bucket, Key=region, Body=b'here')
            self.assertEqual(other.get_object(Bucket=self.bucket, Key=region)['Body'].read(), b'here')

    def test_odd_keys(self):
        keys = ['a b', 'a+b', 'a%2Fb', 'a%b', "it's (odd)!*", 'q?x=y&z#f', 'ü/日本/🙂', 'double//slash', '/leading', 'trailing/', './dot', '../dots', 'a/../b',
                'tab\there', 'line\nbreak', '"<&>', 'semi;colon,comma=equals', '~tilde', 'x' * 1024, '\u00a0']
        for key in keys:
            self.put(key, key.encode())
        listed = [entry['Key'] for page in self.s3.get_paginator('list_objects_v2').paginate(Bucket=self.bucket, PaginationConfig={'PageSize': 7})
                  for entry in page['Contents']]
        self.assertEqual([key for key in listed if key in keys], sorted(keys, key=str.encode))
        for key in keys:
            self.assertEqual(self.get(key)['Body'].read(), key.encode(), key)
        gone = self.s3.delete_objects(Bucket=self.bucket, Delete={'Objects': [{'Key': key} for key in keys]})
        self.assertEqual(sorted(entry['Key'] for entry in gone['Deleted']), sorted(keys))
        self.refused(400, 'KeyTooLongError', self.put, key='x' * 1025)


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Boto3Presigned(Boto3Case):
    """Exception: signature_version='s3v4' in half of the cases; by default boto3 still signs these with version 2."""

    def each_version(self):
        return (('v2', self.s3), ('v4', self.client(signature_version='s3v4')))

    def test_get_and_put(self):
        for name, s3 in self.each_version():
            with self.subTest(version=name):
                where = {'Bucket': self.bucket, 'Key': f'signed {name}/ü+.bin'}
                data = content(400_000, 4)
                put = s3.generate_presigned_url('put_object', Params={**where, 'ContentType': 'text/x-signed'})
                self.assertIn('X-Amz-Signature=' if name == 'v4' else 'Signature=', put)
                reply = self.fetch('PUT', put, data, {'Content-Type': 'text/x-signed'})
                self.assertEqual((reply.status, reply.headers['ETag']), (200, f'"{md5(data)}"'), reply.body)
                got = self.fetch('GET', s3.generate_presigned_url('get_object', Params={**where, 'ResponseContentDisposition': 'attachment; filename="x y"'}))
                self.assertEqual((got.status, got.headers['Content-Type']), (200, 'text/x-signed'), got.body[:300])
                self.assertEqual(got.headers['Content-Disposition'], 'attachment; filename="x y"')
                self.assertSame(got.body, data)
                part = self.fetch('GET', s3.generate_presigned_url('get_object', Params=where), headers={'Range': 'bytes=5-9'})
                self.assertEqual((part.status, part.body), (206, data[5:10]))
                self.assertEqual(self.fetch('HEAD', s3.generate_presigned_url('head_object', Params=where)).status, 200)
                self.assertEqual(self.fetch('DELETE', s3.generate_presigned_url('delete_object', Params=where)).status, 204)
                self.refused(404, '404', self.s3.head_object, **where)

    def test_whole_buckets(self):
        self.put('in a list', b'data')
        for name, s3 in self.each_version():
            for operation in ('list_objects_v2', 'list_objects', 'list_object_versions', 'get_bucket_location'):
                with self.subTest(version=name, operation=operation):
                    reply = self.fetch('GET', s3.generate_presigned_url(operation, Params={'Bucket': self.bucket}))
                    self.assertEqual(reply.status, 200, reply.body)
            self.assertEqual(self.fetch('HEAD', s3.generate_presigned_url('head_bucket', Params={'Bucket': self.bucket})).status, 200)

    def test_other_use_is_refused(self):
        self.put('guarded', b'data')
        for name, s3 in self.each_version():
            with self.subTest(version=name):
                url = s3.generate_presigned_url('get_object', Params={'Bucket': self.bucket, 'Key': 'guarded'})
                self.assertEqual(self.fetch('GET', url).body, b'data')
                for method, other in (('PUT', url), ('HEAD', url), ('DELETE', url), ('GET', url.replace('/guarded?', '/guardee?'))):
                    self.assertEqual(self.fetch(method, other, b'x' if method == 'PUT' else None).status, 403, method)
                name_of, value = url.split('ignature=')[0], url.split('ignature=')[1].split('&')[0]
                tampered = url.replace(value, ('A' if value[0] != 'A' else 'B') + value[1:]) if name == 'v2' else url[:-1] + ('0' if url[-1] != '0' else '1')
                self.assertTrue(name_of)
                self.assertEqual((self.fetch('GET', tampered).status, self.fetch('GET', tampered).code()), (403, 'SignatureDoesNotMatch'))
                self.s3.head_object(Bucket=self.bucket, Key='guarded')

    def test_expiry(self):
        self.put('brief', b'data')
        for name, s3 in self.each_version():
            with self.subTest(version=name):
                url = s3.generate_presigned_url('get_object', Params={'Bucket': self.bucket, 'Key': 'brief'}, ExpiresIn=1)
                time.sleep(2.1)
                late = self.fetch('GET', url)
                self.assertEqual((late.status, late.code()), (403, 'AccessDenied'))

    def test_parts_by_presigned_requests(self):
        """How a browser uploads a large file: every part through a URL of its own."""
        for name, s3 in self.each_version():
            with self.subTest(version=name):
                where = {'Bucket': self.bucket, 'Key': f'signed-parts-{name}'}
                upload = s3.create_multipart_upload(**where)['UploadId']
                data = content(5 * 1024 * 1024 + 99, 5)
                parts = []
                for number, piece in ((1, data[:5 << 20]), (2, data[5 << 20:])):
                    url = s3.generate_presigned_url('upload_part', Params={**where, 'UploadId': upload, 'PartNumber': number})
                    reply = self.fetch('PUT', url, piece)
                    self.assertEqual(reply.status, 200, reply.body)
                    parts.append({'PartNumber': number, 'ETag': reply.headers['ETag']})
                s3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={'Parts': parts})
                self.assertSame(self.get(where['Key'])['Body'].read(), data)

    def post(self, form, data, fields=None, name='file.txt'):
        kind, body = form_body({**form['fields'], **(fields or {})}, data, file_name=name)
        return self.fetch('POST', form['url'], body, {'Content-Type': kind})

    def test_form(self):
        for name, s3 in self.each_version():
            with self.subTest(version=name):
                data = content(150_000, 6)
                form = s3.generate_presigned_post(self.bucket, f'form-{name}/${{filename}}', Fields={'Content-Type': 'text/x-form', 'x-amz-meta-step': '9'},
                                                  Conditions=[{'Content-Type': 'text/x-form'}, {'x-amz-meta-step': '9'}, ['content-length-range', 1, 200_000]])
                self.assertIn('x-amz-signature' if name == 'v4' else 'signature', form['fields'])
                reply = self.post(form, data, name='a name.txt')
                self.assertEqual(reply.status, 204, reply.body)
                stored = self.get(f'form-{name}/a name.txt')
                self.assertEqual((stored['ContentType'], stored['Metadata']), ('text/x-form', {'step': '9'}))
                self.assertSame(stored['Body'].read(), data)
                self.assertEqual(self.post(form, content(200_001)).code(), 'EntityTooLarge')
                self.assertEqual(self.post(form, data, {'Content-Type': 'text/html'}).status, 403)
                self.assertEqual(self.post(form, data, {'key': 'elsewhere'}).status, 403)

    def test_form_with_created(self):
        form = self.s3.generate_presigned_post(self.bucket, 'form-201', Fields={'success_action_status': '201'}, Conditions=[{'success_action_status': '201'}])
        reply = self.post(form, b'created')
        self.assertEqual(reply.status, 201, reply.body)
        self.assertIn(b'<Key>form-201</Key>', reply.body)
        self.assertEqual(self.get('form-201')['Body'].read(), b'created')


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Boto3Conditions(Boto3Case):
    def test_create_once(self):
        first = self.put('once', b'1', IfNoneMatch='*')
        self.refused(412, 'PreconditionFailed', self.put, key='once', body=b'2', IfNoneMatch='*')
        self.assertEqual(self.get('once')['Body'].read(), b'1')
        second = self.put('once', b'2', IfMatch=first['ETag'])
        self.refused(412, 'PreconditionFailed', self.put, key='once', body=b'3', IfMatch=first['ETag'])
        self.refused(404, 'NoSuchKey', self.put, key='never', body=b'3', IfMatch=first['ETag'])
        self.assertEqual(self.get('once')['ETag'], second['ETag'])

    def test_racing_writers_one_wins(self):
        outcomes = []

        def write(number):
            try:
                self.put('race', b'%d' % number, IfNoneMatch='*')
                outcomes.append(number)
            except botocore.exceptions.ClientError as failure:
                outcomes.append(failure.response['Error']['Code'])
        threads = [threading.Thread(target=write, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners = [outcome for outcome in outcomes if isinstance(outcome, int)]
        self.assertEqual((len(winners), outcomes.count('PreconditionFailed')), (1, 7), outcomes)
        self.assertEqual(self.get('race')['Body'].read(), b'%d' % winners[0])

    def test_complete_once(self):
        self.put('complete-once', b'there')
        upload = self.s3.create_multipart_upload(Bucket=self.bucket, Key='complete-once')['UploadId']
        where = dict(Bucket=self.bucket, Key='complete-once', UploadId=upload)
        part = self.s3.upload_part(**where, PartNumber=1, Body=b'part')
        parts = {'Parts': [{'PartNumber': 1, 'ETag': part['ETag']}]}
        self.refused(412, 'PreconditionFailed', self.s3.complete_multipart_upload, **where, MultipartUpload=parts, IfNoneMatch='*')
        self.assertEqual(self.get('complete-once')['Body'].read(), b'there')
        self.s3.complete_multipart_upload(**where, MultipartUpload=parts, IfMatch=self.get('complete-once')['ETag'])
        self.assertEqual(self.get('complete-once')['Body'].read(), b'part')

    def test_delete_if_match(self):
        etag = self.put('doomed', b'1')['ETag']
        self.refused(412, 'PreconditionFailed', self.s3.delete_object, Bucket=self.bucket, Key='doomed', IfMatch='"0123456789abcdef0123456789abcdef"')
        self.s3.delete_object(Bucket=self.bucket, Key='doomed', IfMatch=etag)
        self.refused(404, 'NoSuchKey', self.get, key='doomed')

    def test_reads(self):
        etag = self.put('read', b'data')['ETag']
        when = self.s3.head_object(Bucket=self.bucket, Key='read')['LastModified']
        self.refused(304, '304', self.get, key='read', IfNoneMatch=etag)
        self.refused(304, '304', self.get, key='read', IfModifiedSince=when)
        self.refused(412, 'PreconditionFailed', self.get, key='read', IfMatch='"no"')
        self.assertEqual(self.get('read', IfMatch=etag, IfUnmodifiedSince=when)['Body'].read(), b'data')


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Boto3Multipart(Boto3Case):
    def start(self, key, **more):
        return dict(Bucket=self.bucket, Key=key, UploadId=self.s3.create_multipart_upload(Bucket=self.bucket, Key=key, **more)['UploadId'])

    def test_by_hand(self):
        where = self.start('by-hand', Metadata={'colour': 'blue'}, Tagging='a=1', ContentType='text/x-parts', CacheControl='no-cache')
        open_uploads = self.s3.list_multipart_uploads(Bucket=self.bucket, Prefix='by-hand')['Uploads']
        self.assertEqual([entry['UploadId'] for entry in open_uploads], [where['UploadId']])
        self.assertNotIn('Contents', self.s3.list_objects_v2(Bucket=self.bucket, Prefix='by-hand'))
        pieces = {3: content(100, 3), 1: content(5 << 20, 1), 2: content(5 << 20, 2)}
        for number, piece in pieces.items():
            self.assertEqual(self.s3.upload_part(**where, PartNumber=number, Body=piece)['ETag'], f'"{md5(piece)}"')
        listed = list(self.s3.get_paginator('list_parts').paginate(**where, PaginationConfig={'PageSize': 2}))
        self.assertEqual(len(listed), 2)
        rows = [part for page in listed for part in page['Parts']]
        self.assertEqual([(row['PartNumber'], row['Size'], row['ETag']) for row in rows],
                         [(number, len(pieces[number]), f'"{md5(pieces[number])}"') for number in (1, 2, 3)])
        parts = {'Parts': [{'PartNumber': row['PartNumber'], 'ETag': row['ETag']} for row in rows]}
        data = pieces[1] + pieces[2] + pieces[3]
        done = self.s3.complete_multipart_upload(**where, MultipartUpload=parts)
        self.assertEqual(done['ETag'], f'"{multipart_etag(data, 5 << 20)}"')
        again = self.s3.complete_multipart_upload(**where, MultipartUpload=parts)
        self.assertEqual(again['ETag'], done['ETag'])
        got = self.get('by-hand')
        self.assertEqual((got['Metadata'], got['ContentType'], got['CacheControl'], got['TagCount']), ({'colour': 'blue'}, 'text/x-parts', 'no-cache', 1))
        self.assertSame(got['Body'].read(), data)
        second = self.get('by-hand', PartNumber=2)
        self.assertEqual((second['PartsCount'], second['ContentLength']), (3, 5 << 20))
        self.assertSame(second['Body'].read(), pieces[2])
        self.assertNotIn('Uploads', self.s3.list_multipart_uploads(Bucket=self.bucket, Prefix='by-hand'))

    def test_abort(self):
        where = self.start('aborted')
        self.s3.upload_part(**where, PartNumber=1, Body=content(100_000))
        self.s3.abort_multipart_upload(**where)
        self.refused(404, 'NoSuchUpload', self.s3.list_parts, **where)
        self.refused(404, 'NoSuchUpload', self.s3.upload_part, **where, PartNumber=2, Body=b'x')
        self.refused(404, 'NoSuchKey', self.get, key='aborted')

    def test_wrong_lists(self):
        where = self.start('wrong')
        etags = {number: self.s3.upload_part(**where, PartNumber=number, Body=b'tiny')['ETag'] for number in (1, 2)}

        def complete(code, *rows):
            self.refused(400, code, self.s3.complete_multipart_upload, **where,
                         MultipartUpload={'Parts': [{'PartNumber': number, 'ETag': etag} for number, etag in rows]})
        complete('EntityTooSmall', (1, etags[1]), (2, etags[2]))
        complete('InvalidPartOrder', (2, etags[2]), (1, etags[1]))
        complete('InvalidPart', (1, '"ffffffffffffffffffffffffffffffff"'))
        complete('InvalidPart', (7, etags[1]))
        self.s3.complete_multipart_upload(**where, MultipartUpload={'Parts': [{'PartNumber': 2, 'ETag': etags[2]}]})
        self.assertEqual(self.get('wrong')['Body'].read(), b'tiny')

    def test_part_replaced(self):
        where = self.start('replaced')
        self.s3.upload_part(**where, PartNumber=1, Body=b'old')
        etag = self.s3.upload_part(**where, PartNumber=1, Body=b'new')['ETag']
        self.s3.complete_multipart_upload(**where, MultipartUpload={'Parts': [{'PartNumber': 1, 'ETag': etag}]})
        self.assertEqual(self.get('replaced')['Body'].read(), b'new')

    def test_parts_copied(self):
        data = content(11 << 20, 4)
        self.put('copy-source', data)
        where = self.start('copied-parts')
        source = {'Bucket': self.bucket, 'Key': 'copy-source'}
        cut = (5 << 20) + 12_345
        parts = []
        for number, (first, last) in enumerate(((0, cut - 1), (cut, len(data) - 1)), 1):
            copied = self.s3.upload_part_copy(**where, PartNumber=number, CopySource=source, CopySourceRange=f'bytes={first}-{last}')
            self.assertEqual(copied['CopyPartResult']['ETag'], f'"{md5(data[first:last + 1])}"')
            parts.append({'PartNumber': number, 'ETag': copied['CopyPartResult']['ETag']})
        self.s3.complete_multipart_upload(**where, MultipartUpload={'Parts': parts})
        self.assertSame(self.get('copied-parts')['Body'].read(), data)

    def test_lists_of_uploads(self):
        self.s3.create_bucket(Bucket='many-uploads')
        made = sorted((key, self.s3.create_multipart_upload(Bucket='many-uploads', Key=key)['UploadId']) for key in ('a', 'b/1', 'b/2', 'c', 'c'))
        pages = list(self.s3.get_paginator('list_multipart_uploads').paginate(Bucket='many-uploads', PaginationConfig={'PageSize': 2}))
        rows = [(entry['Key'], entry['UploadId']) for page in pages for entry in page['Uploads']]
        self.assertEqual((len(pages), sorted(rows)), (3, made))
        grouped = self.s3.list_multipart_uploads(Bucket='many-uploads', Delimiter='/')
        self.assertEqual([entry['Prefix'] for entry in grouped['CommonPrefixes']], ['b/'])
        self.assertEqual([entry['Key'] for entry in grouped['Uploads']], ['a', 'c', 'c'])


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Boto3Checksums(Boto3Case):
    def test_algorithms(self):
        data = content(500_000, 7)
        digests = {'CRC32': zlib.crc32(data).to_bytes(4, 'big'), 'SHA1': hashlib.sha1(data).digest(), 'SHA256': hashlib.sha256(data).digest()}
        for algorithm, digest in digests.items():
            wanted = base64.b64encode(digest).decode()
            put = self.put(f'sum-{algorithm}', data, ChecksumAlgorithm=algorithm)
            self.assertEqual((put[f'Checksum{algorithm}'], put['ChecksumType']), (wanted, 'FULL_OBJECT'))
            head = self.s3.head_object(Bucket=self.bucket, Key=f'sum-{algorithm}', ChecksumMode='ENABLED')
            self.assertEqual(head[f'Checksum{algorithm}'], wanted)
            self.assertSame(self.get(f'sum-{algorithm}')['Body'].read(), data)

    def test_given_values(self):
        """Checksums that the caller computed: those of "123456789" are in the specifications of the algorithms."""
        data = b'123456789'
        values = {'CRC32': 'y/Q5Jg==', 'CRC32C': '4waSgw==', 'CRC64NVME': 'rosUhgp5mIg=', 'SHA1': base64.b64encode(hashlib.sha1(data).digest()).decode(),
                  'SHA256': base64.b64encode(hashlib.sha256(data).digest()).decode(), 'SHA512': base64.b64encode(hashlib.sha512(data).digest()).decode(),
                  'MD5': base64.b64encode(hashlib.md5(data).digest()).decode()}
        for algorithm, value in values.items():
            with self.subTest(algorithm=algorithm):
                self.assertEqual(self.put(f'given-{algorithm}', data, **{f'Checksum{algorithm}': value})[f'Checksum{algorithm}'], value)
                self.assertEqual(self.s3.head_object(Bucket=self.bucket, Key=f'given-{algorithm}', ChecksumMode='ENABLED')[f'Checksum{algorithm}'], value)
                wrong = base64.b64encode(bytes(len(base64.b64decode(value)))).decode()
                self.refused(400, 'BadDigest', self.put, key=f'wrong-{algorithm}', body=data, **{f'Checksum{algorithm}': wrong})
                self.refused(404, 'NoSuchKey', self.get, key=f'wrong-{algorithm}')

    def test_multipart_upload_has_a_composite_checksum(self):
        path, data = self.file('sums.bin', LARGE)
        self.s3.upload_file(path, self.bucket, 'sums', ExtraArgs={'ChecksumAlgorithm': 'SHA256'})
        head = self.s3.head_object(Bucket=self.bucket, Key='sums', ChecksumMode='ENABLED')
        parts = b''.join(hashlib.sha256(data[at:at + PART]).digest() for at in range(0, LARGE, PART))
        self.assertEqual(head['ChecksumSHA256'], base64.b64encode(hashlib.sha256(parts).digest()).decode() + '-3')
        self.assertEqual(head['ChecksumType'], 'COMPOSITE')
        attributes = self.s3.get_object_attributes(Bucket=self.bucket, Key='sums', ObjectAttributes=['ETag', 'Checksum', 'ObjectParts', 'ObjectSize', 'StorageClass'])
        self.assertEqual((attributes['ETag'], attributes['ObjectSize']), (multipart_etag(data), LARGE))
        self.assertEqual(attributes['ObjectParts']['TotalPartsCount'], 3)
        self.assertEqual([part['ChecksumSHA256'] for part in attributes['ObjectParts']['Parts']],
                         [base64.b64encode(hashlib.sha256(data[at:at + PART]).digest()).decode() for at in range(0, LARGE, PART)])

    def test_full_object_checksum_of_parts(self):
        where = dict(Bucket=self.bucket, Key='full-sum')
        where['UploadId'] = self.s3.create_multipart_upload(**where, ChecksumAlgorithm='CRC32', ChecksumType='FULL_OBJECT')['UploadId']
        pieces = [content(5 << 20, 8), content(77, 9)]
        parts = []
        for number, piece in enumerate(pieces, 1):
            reply = self.s3.upload_part(**where, PartNumber=number, Body=piece, ChecksumAlgorithm='CRC32')
            parts.append({'PartNumber': number, 'ETag': reply['ETag'], 'ChecksumCRC32': reply['ChecksumCRC32']})
        wanted = base64.b64encode(zlib.crc32(b''.join(pieces)).to_bytes(4, 'big')).decode()
        self.refused(400, 'BadDigest', self.s3.complete_multipart_upload, **where, MultipartUpload={'Parts': parts}, ChecksumType='FULL_OBJECT', ChecksumCRC32='AAAAAA==')
        done = self.s3.complete_multipart_upload(**where, MultipartUpload={'Parts': parts}, ChecksumType='FULL_OBJECT', ChecksumCRC32=wanted)
        self.assertEqual((done['ChecksumCRC32'], done['ChecksumType']), (wanted, 'FULL_OBJECT'))

    def test_attributes(self):
        self.put('attributes', b'123456789')
        got = self.s3.get_object_attributes(Bucket=self.bucket, Key='attributes', ObjectAttributes=['ETag', 'Checksum', 'ObjectSize', 'StorageClass'])
        self.assertEqual((got['ETag'], got['ObjectSize'], got['StorageClass']), (md5(b'123456789'), 9, 'STANDARD'))
        self.assertEqual(got['Checksum']['ChecksumCRC32'], 'y/Q5Jg==')

    @unittest.skipUnless(os.path.isdir(os.path.join(CRT, 'awscrt')), 'awscrt is not installed (setup/clients)')
    def test_with_the_native_part(self):
        """A process with awscrt on its path: boto3 then knows every algorithm and verifies the xxHash ones of downloads too."""
        script = '''
import boto3, os, sys
s3 = boto3.client('s3', endpoint_url=sys.argv[1], verify=sys.argv[2] or None)
data = os.urandom(300_000)
for algorithm in ('CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256', 'SHA512', 'XXHASH64', 'XXHASH3', 'XXHASH128'):
    sent = s3.put_object(Bucket='boto3', Key='crt', Body=data, ChecksumAlgorithm=algorithm)['Checksum' + algorithm]
    got = s3.get_object(Bucket='boto3', Key='crt')
    assert got['Checksum' + algorithm] == sent, algorithm
    assert got['Body'].read() == data, algorithm
    print(algorithm)
'''
        done = self.run_program(importable_python(), '-c', script, self.endpoint, self.daemon.ca if self.tls else '',
                                PYTHONPATH=os.pathsep.join([CRT, os.path.dirname(os.path.dirname(boto3.__file__))]))
        self.assertEqual(len(done.stdout.split()), 9, done.stdout)


def importable_python():
    import sys
    return sys.executable


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Boto3Objects(Boto3Case):
    def test_metadata_and_headers(self):
        headers = dict(CacheControl='max-age=5', ContentDisposition='attachment; filename="a b.bin"', ContentEncoding='gzip', ContentLanguage='de',
                       ContentType='text/plain; charset=utf-8', Metadata={'Colour': 'blue', 'empty': '', 'spaced': 'a  b'}, Expires='Thu, 01 Dec 2033 16:00:00 GMT')
        body = gzip.compress(b'packed', mtime=0)
        self.put('described', body, **headers)
        got = self.get('described')
        self.assertEqual(got['Body'].read(), body)
        self.assertEqual({name: got[name] for name in ('CacheControl', 'ContentDisposition', 'ContentEncoding', 'ContentLanguage', 'ContentType')},
                         {name: headers[name] for name in ('CacheControl', 'ContentDisposition', 'ContentEncoding', 'ContentLanguage', 'ContentType')})
        self.assertEqual(got['ExpiresString'], headers['Expires'])
        self.assertEqual({name: value.replace('  ', ' ') for name, value in got['Metadata'].items()}, {'colour': 'blue', 'empty': '', 'spaced': 'a b'})
        self.refused(400, 'MetadataTooLarge', self.put, key='heavy', Metadata={'x': 'y' * 2100})

    def test_copies(self):
        path, data = self.file('copied.bin', LARGE)
        self.s3.upload_file(path, self.bucket, 'a source?ü%25', ExtraArgs={'Metadata': {'kept': 'yes'}, 'ContentType': 'text/x-kept'})
        source = {'Bucket': self.bucket, 'Key': 'a source?ü%25'}
        self.s3.copy_object(Bucket=self.bucket, Key='copy', CopySource=source)
        self.s3.copy(source, self.bucket, 'managed-copy')
        for key in ('copy', 'managed-copy'):
            got = self.get(key)
            self.assertSame(got['Body'].read(), data)
            if key == 'copy':
                self.assertEqual((got['Metadata'], got['ContentType']), ({'kept': 'yes'}, 'text/x-kept'))
        self.s3.copy_object(Bucket=self.bucket, Key='copy', CopySource={'Bucket': self.bucket, 'Key': 'copy'}, MetadataDirective='REPLACE', Metadata={'new': '1'})
        self.assertEqual(self.s3.head_object(Bucket=self.bucket, Key='copy')['Metadata'], {'new': '1'})
        self.refused(400, 'InvalidRequest', self.s3.copy_object, Bucket=self.bucket, Key='copy', CopySource={'Bucket': self.bucket, 'Key': 'copy'})
        self.refused(404, 'NoSuchKey', self.s3.copy_object, Bucket=self.bucket, Key='copy', CopySource={'Bucket': self.bucket, 'Key': 'missing'})
        self.refused(412, 'PreconditionFailed', self.s3.copy_object, Bucket=self.bucket, Key='c', CopySource=source, CopySourceIfMatch='"no"')

    def test_tags(self):
        self.put('tagged', b'x', Tagging='colour=blue&run%20id=a%2Bb')
        tags = {tag['Key']: tag['Value'] for tag in self.s3.get_object_tagging(Bucket=self.bucket, Key='tagged')['TagSet']}
        self.assertEqual(tags, {'colour': 'blue', 'run id': 'a+b'})
        self.assertEqual(self.get('tagged')['TagCount'], 2)
        self.s3.put_object_tagging(Bucket=self.bucket, Key='tagged', Tagging={'TagSet': [{'Key': 'only', 'Value': 'ü'}]})
        self.assertEqual(self.s3.get_object_tagging(Bucket=self.bucket, Key='tagged')['TagSet'], [{'Key': 'only', 'Value': 'ü'}])
        self.s3.delete_object_tagging(Bucket=self.bucket, Key='tagged')
        self.assertEqual(self.s3.get_object_tagging(Bucket=self.bucket, Key='tagged')['TagSet'], [])
        eleven = {'TagSet': [{'Key': str(number), 'Value': ''} for number in range(11)]}
        with self.assertRaises(botocore.exceptions.ClientError):
            self.s3.put_object_tagging(Bucket=self.bucket, Key='tagged', Tagging=eleven)

    def test_listings(self):
        self.s3.create_bucket(Bucket='listed')
        keys = sorted([f'{group}/{number:02}' for group in 'abc' for number in range(8)] + ['top', 'zoo'])
        for key in keys:
            self.put(key, b'12345', Bucket='listed')
        for name in ('list_objects', 'list_objects_v2'):
            with self.subTest(call=name):
                pages = list(self.s3.get_paginator(name).paginate(Bucket='listed', PaginationConfig={'PageSize': 7}))
                self.assertEqual([entry['Key'] for page in pages for entry in page['Contents']], keys)
                self.assertEqual(len(pages), 4)
                entry = pages[0]['Contents'][0]
                self.assertEqual((entry['Size'], entry['ETag'], entry['StorageClass']), (5, f'"{md5(b"12345")}"', 'STANDARD'))
                pages = list(self.s3.get_paginator(name).paginate(Bucket='listed', Delimiter='/', PaginationConfig={'PageSize': 2}))
                self.assertEqual([entry['Prefix'] for page in pages for entry in page.get('CommonPrefixes', [])], ['a/', 'b/', 'c/'])
                self.assertEqual([entry['Key'] for page in pages for entry in page.get('Contents', [])], ['top', 'zoo'])
        self.assertEqual(self.s3.list_objects_v2(Bucket='listed', StartAfter='c/05', Prefix='c/')['KeyCount'], 2)
        self.assertEqual(self.s3.list_objects_v2(Bucket='listed', MaxKeys=0)['KeyCount'], 0)
        self.assertIn('Owner', self.s3.list_objects_v2(Bucket='listed', FetchOwner=True)['Contents'][0])

    def test_delete_many(self):
        for number in range(30):
            self.put(f'many/{number}')
        targets = [{'Key': f'many/{number}'} for number in range(20)] + [{'Key': 'many/never'}]
        reply = self.s3.delete_objects(Bucket=self.bucket, Delete={'Objects': targets})
        self.assertEqual((len(reply['Deleted']), reply.get('Errors')), (21, None))
        quiet = self.s3.delete_objects(Bucket=self.bucket, Delete={'Objects': [{'Key': f'many/{number}'} for number in range(20, 29)], 'Quiet': True})
        self.assertNotIn('Deleted', quiet)
        self.assertEqual([entry['Key'] for entry in self.s3.list_objects_v2(Bucket=self.bucket, Prefix='many/')['Contents']], ['many/29'])

    def test_errors(self):
        self.refused(404, 'NoSuchKey', self.get, key='missing')
        self.refused(404, '404', self.s3.head_object, Bucket=self.bucket, Key='missing')
        self.refused(404, 'NoSuchBucket', self.get, key='k', Bucket='never-made')
        self.refused(404, 'NoSuchBucket', self.s3.list_objects_v2, Bucket='never-made')
        self.refused(403, 'SignatureDoesNotMatch', self.client(keys=(self.keys[0], 'wrong')).list_buckets)
        self.refused(403, 'InvalidAccessKeyId', self.client(keys=('NOSUCHKEY', 'wrong')).list_buckets)
        self.refused(409, 'BucketNotEmpty', self.delete_full_bucket)
        with self.assertRaises(self.s3.exceptions.NoSuchKey):
            self.get('missing')

    def delete_full_bucket(self):
        self.put('something')
        self.s3.delete_bucket(Bucket=self.bucket)


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Boto3Versions(Boto3Case):
    def test_life_of_a_key(self):
        bucket = 'versioned'
        self.s3.create_bucket(Bucket=bucket)
        self.assertNotIn('Status', self.s3.get_bucket_versioning(Bucket=bucket))
        self.put('k', b'null', Bucket=bucket)
        self.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={'Status': 'Enabled'})
        self.assertEqual(self.s3.get_bucket_versioning(Bucket=bucket)['Status'], 'Enabled')
        ids = [self.put('k', b'%d' % number, Bucket=bucket)['VersionId'] for number in range(3)]
        self.assertEqual(len(set(ids)), 3)
        self.assertEqual(self.get('k', Bucket=bucket)['VersionId'], ids[2])
        for number, version in enumerate(ids):
            self.assertEqual(self.get('k', Bucket=bucket, VersionId=version)['Body'].read(), b'%d' % number)
        self.assertEqual(self.get('k', Bucket=bucket, VersionId='null')['Body'].read(), b'null')
        marker = self.s3.delete_object(Bucket=bucket, Key='k')
        self.assertTrue(marker['DeleteMarker'])
        self.refused(404, 'NoSuchKey', self.get, key='k', Bucket=bucket)
        self.refused(405, 'MethodNotAllowed', self.get, key='k', Bucket=bucket, VersionId=marker['VersionId'])
        self.assertNotIn('Contents', self.s3.list_objects_v2(Bucket=bucket))
        pages = list(self.s3.get_paginator('list_object_versions').paginate(Bucket=bucket, PaginationConfig={'PageSize': 2}))
        self.assertEqual([entry['VersionId'] for page in pages for entry in page.get('Versions', [])], [*reversed(ids), 'null'])
        self.assertEqual([(entry['VersionId'], entry['IsLatest']) for page in pages for entry in page.get('DeleteMarkers', [])], [(marker['VersionId'], True)])
        self.s3.delete_object(Bucket=bucket, Key='k', VersionId=marker['VersionId'])
        self.assertEqual(self.get('k', Bucket=bucket)['Body'].read(), b'2')
        self.s3.delete_object(Bucket=bucket, Key='k', VersionId=ids[2])
        self.assertEqual(self.get('k', Bucket=bucket)['VersionId'], ids[1])
        self.refused(404, 'NoSuchVersion', self.get, key='k', Bucket=bucket, VersionId=ids[2])
        self.s3.copy_object(Bucket=bucket, Key='restored', CopySource={'Bucket': bucket, 'Key': 'k', 'VersionId': ids[0]})
        self.assertEqual(self.get('restored', Bucket=bucket)['Body'].read(), b'0')
        self.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={'Status': 'Suspended'})
        self.put('k', b'again null', Bucket=bucket)
        self.assertEqual(self.get('k', Bucket=bucket, VersionId='null')['Body'].read(), b'again null')
        self.assertEqual(self.get('k', Bucket=bucket, VersionId=ids[0])['Body'].read(), b'0')
        self.refused(409, 'BucketNotEmpty', self.s3.delete_bucket, Bucket=bucket)
        boto3.resource('s3', **self.settings()).Bucket(bucket).object_versions.delete()
        self.s3.delete_bucket(Bucket=bucket)

    def test_large_versions(self):
        self.s3.create_bucket(Bucket='large-versions')
        self.s3.put_bucket_versioning(Bucket='large-versions', VersioningConfiguration={'Status': 'Enabled'})
        data = [content(PART + 5, seed) for seed in (1, 2)]
        for body in data:
            self.s3.upload_fileobj(io.BytesIO(body), 'large-versions', 'k')
        versions = self.s3.list_object_versions(Bucket='large-versions', Prefix='k')['Versions']
        self.assertEqual([entry['ETag'] for entry in versions], [f'"{multipart_etag(body)}"' for body in reversed(data)])
        self.s3.download_file('large-versions', 'k', self.path('old'), ExtraArgs={'VersionId': versions[1]['VersionId']})
        self.assertSame(read(self.path('old')), data[0])


@unittest.skipUnless(READY, MISSING)
@both_schemes
class Boto3Buckets(Boto3Case):
    def test_buckets(self):
        self.s3.create_bucket(Bucket='made-again')
        self.s3.create_bucket(Bucket='made-again')
        boto3.client('s3', **dict(self.settings(), region_name='eu-west-1')).create_bucket(
            Bucket='made-elsewhere', CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'})
        names = [entry['Name'] for page in self.s3.get_paginator('list_buckets').paginate(PaginationConfig={'PageSize': 1}) for entry in page['Buckets']]
        self.assertTrue({'made-again', 'made-elsewhere', self.bucket} <= set(names))
        self.assertEqual(self.s3.head_bucket(Bucket='made-again')['BucketRegion'], REGION)
        self.assertIsNone(self.s3.get_bucket_location(Bucket='made-again')['LocationConstraint'])
        self.refused(404, '404', self.s3.head_bucket, Bucket='never-made')
        self.refused(400, 'InvalidBucketName', self.s3.create_bucket, Bucket='Under_score')
        self.s3.delete_bucket(Bucket='made-again')
        self.refused(404, 'NoSuchBucket', self.s3.delete_bucket, Bucket='made-again')

    def test_lifecycle(self):
        self.refused(404, 'NoSuchLifecycleConfiguration', self.s3.get_bucket_lifecycle_configuration, Bucket=self.bucket)
        rules = [{'ID': 'old', 'Status': 'Enabled', 'Filter': {'Prefix': 'steps/'}, 'Expiration': {'Days': 30}},
                 {'ID': 'parts', 'Status': 'Enabled', 'Filter': {'Prefix': ''}, 'AbortIncompleteMultipartUpload': {'DaysAfterInitiation': 2}},
                 {'ID': 'versions', 'Status': 'Disabled', 'Filter': {'And': {'Prefix': 'v/', 'Tags': [{'Key': 'a', 'Value': 'b'}]}},
                  'NoncurrentVersionExpiration': {'NoncurrentDays': 3, 'NewerNoncurrentVersions': 5}}]
        self.s3.put_bucket_lifecycle_configuration(Bucket=self.bucket, LifecycleConfiguration={'Rules': rules})
        self.assertEqual(self.s3.get_bucket_lifecycle_configuration(Bucket=self.bucket)['Rules'], rules)
        self.assertIn('rule-id="old"', self.put('steps/1', b'x')['Expiration'])
        bad = [{'ID': 'bad', 'Status': 'Enabled', 'Filter': {'Prefix': ''}, 'Expiration': {'Days': 0}}]
        self.refused(400, 'InvalidArgument', self.s3.put_bucket_lifecycle_configuration, Bucket=self.bucket, LifecycleConfiguration={'Rules': bad})
        self.s3.delete_bucket_lifecycle(Bucket=self.bucket)
        self.refused(404, 'NoSuchLifecycleConfiguration', self.s3.get_bucket_lifecycle_configuration, Bucket=self.bucket)

    def test_tags(self):
        self.refused(404, 'NoSuchTagSet', self.s3.get_bucket_tagging, Bucket=self.bucket)
        tags = [{'Key': 'team', 'Value': 'rl'}, {'Key': 'zone', 'Value': ''}]
        self.s3.put_bucket_tagging(Bucket=self.bucket, Tagging={'TagSet': tags})
        self.assertEqual(self.s3.get_bucket_tagging(Bucket=self.bucket)['TagSet'], tags)
        self.s3.delete_bucket_tagging(Bucket=self.bucket)
        self.refused(404, 'NoSuchTagSet', self.s3.get_bucket_tagging, Bucket=self.bucket)

    def test_cors(self):
        self.refused(404, 'NoSuchCORSConfiguration', self.s3.get_bucket_cors, Bucket=self.bucket)
        rules = [{'AllowedMethods': ['GET', 'PUT'], 'AllowedOrigins': ['https://*.example.com'], 'AllowedHeaders': ['*'], 'ExposeHeaders': ['ETag'], 'MaxAgeSeconds': 60}]
        self.s3.put_bucket_cors(Bucket=self.bucket, CORSConfiguration={'CORSRules': rules})
        self.assertEqual(self.s3.get_bucket_cors(Bucket=self.bucket)['CORSRules'], rules)
        ask = {'Origin': 'https://a.example.com', 'Access-Control-Request-Method': 'PUT', 'Access-Control-Request-Headers': 'content-type'}
        allowed = self.daemon.request('OPTIONS', f'/{self.bucket}/k', headers=ask, token=None)
        self.assertEqual((allowed.status, allowed.headers['Access-Control-Allow-Origin']), (200, 'https://a.example.com'))
        self.assertEqual(self.daemon.request('OPTIONS', f'/{self.bucket}/k', headers={**ask, 'Origin': 'https://example.net'}, token=None).status, 403)
        self.s3.delete_bucket_cors(Bucket=self.bucket)

    def test_settings_that_tools_walk_through(self):
        """What Terraform and s3cmd ask of every bucket: an answer or the code that says there is none."""
        for call, code in (('get_bucket_policy', 'NoSuchBucketPolicy'), ('get_public_access_block', 'NoSuchPublicAccessBlockConfiguration'),
                           ('get_bucket_ownership_controls', 'OwnershipControlsNotFoundError'), ('get_bucket_website', 'NoSuchWebsiteConfiguration'),
                           ('get_bucket_replication', 'ReplicationConfigurationNotFoundError'),
                           ('get_bucket_encryption', 'ServerSideEncryptionConfigurationNotFoundError'),
                           ('get_object_lock_configuration', 'ObjectLockConfigurationNotFoundError')):
            with self.subTest(call=call):
                self.refused(404, code, getattr(self.s3, call), Bucket=self.bucket)
        self.assertEqual(self.s3.get_bucket_request_payment(Bucket=self.bucket)['Payer'], 'BucketOwner')
        self.assertNotIn('LoggingEnabled', self.s3.get_bucket_logging(Bucket=self.bucket))
        self.assertNotIn('Status', self.s3.get_bucket_accelerate_configuration(Bucket=self.bucket))
        self.s3.get_bucket_notification_configuration(Bucket=self.bucket)
        self.assertEqual([grant['Permission'] for grant in self.s3.get_bucket_acl(Bucket=self.bucket)['Grants']], ['FULL_CONTROL'])
        self.put('with-acl', b'x', ACL='private')
        self.assertEqual([grant['Permission'] for grant in self.s3.get_object_acl(Bucket=self.bucket, Key='with-acl')['Grants']], ['FULL_CONTROL'])
        self.s3.put_object_acl(Bucket=self.bucket, Key='with-acl', ACL='private')


if __name__ == '__main__':
    unittest.main()
