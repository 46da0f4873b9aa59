"""Uploads by browser form: POST /bucket with multipart/form-data and a signed policy."""
import base64
import datetime
import hashlib
import unittest
import urllib.parse
import zlib
from xml.etree import ElementTree

from tests.support.daemon import Daemon
from tests.support.signer import Signer, form_body, utc_now

THREADS_MEET = False

LARGE = bytes(range(256)) * 8192 + b'\r\n--'


def policy(*conditions, seconds=600, **more):
    until = utc_now() + datetime.timedelta(seconds=seconds)
    return {'expiration': f'{until:%Y-%m-%dT%H:%M:%S}.000Z', 'conditions': [{'bucket': 'forms'}, ['starts-with', '$key', 'up/'], *conditions], **more}


class PostObject(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()
        cls.signer = Signer.of(cls.daemon)
        assert cls.daemon.request('PUT', '/forms').status == 200

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def post(self, fields, file=b'content', target='/forms', **options):
        kind, body = form_body(fields, file, **options)
        return self.daemon.request('POST', target, body, {'Content-Type': kind}, token=None)

    def signed(self, *conditions, version=4, signer=None, seconds=600, key='up/a', **fields):
        signature = (signer or self.signer).post_fields(policy(*conditions, seconds=seconds), version)
        return {'key': key, **{name.replace('_', '-'): value for name, value in fields.items()}, **signature}

    def stored(self, key='up/a'):
        return self.daemon.request('GET', '/forms/' + key)

    def test_both_versions_of_signatures(self):
        for version in (4, 2):
            for content in (b'', b'x', LARGE):
                got = self.post(self.signed(version=version), content)
                self.assertEqual((got.status, got.body), (204, b''), got.body)
                self.assertEqual(got.headers['etag'].strip('"'), hashlib.md5(content).hexdigest())
                self.assertTrue(got.headers['location'].endswith('/forms/up/a'))
                self.assertEqual(self.stored().body, content)

    def test_fields_are_headers(self):
        got = self.post(self.signed(['starts-with', '$Content-Type', 'text/'], {'x-amz-meta-color': 'blue'}, {'acl': 'private'}, {'Cache-Control': 'no-store'},
                                    ['starts-with', '$tagging', ''], Content_Type='text/plain', x_amz_meta_color='blue', acl='private', Cache_Control='no-store',
                                    x_ignore_this='1', tagging='<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>'))
        self.assertEqual(got.status, 204, got.body)
        headers = self.stored().headers
        self.assertEqual((headers['content-type'], headers['x-amz-meta-color'], headers['cache-control'], headers['x-amz-tagging-count']),
                         ('text/plain', 'blue', 'no-store', '1'))

    def test_checksums(self):
        right = base64.b64encode(zlib.crc32(b'content').to_bytes(4, 'big')).decode()
        condition = ['starts-with', '$x-amz-checksum-crc32', '']
        self.assertEqual(self.post(self.signed(condition, x_amz_checksum_crc32=right)).status, 204)
        for wrong in ('AAAAAA==', 'bad'):
            got = self.post(self.signed(condition, key='up/wrong', x_amz_checksum_crc32=wrong))
            self.assertEqual((got.status, got.code()), (400, 'BadDigest'))
        self.assertEqual(self.stored('up/wrong').status, 404)

    def test_every_checksum_is_stored(self):
        for name, value in (
            ('crc32c', 'M3m0yg=='),
            ('crc64nvme', 'rsrzr5yYqFU='),
            ('sha1', '9I3YU4IIYIFsddVND1hNyGMyenw='),
            ('md5', '63M6AMDJ0zbmVpGjerVCkw=='),
            ('xxhash64', '+lb36/ER8bo='),
            ('xxhash128', '8BLDqqIWji+ITOsp/JjN/Q=='),
        ):
            field = f'x-amz-checksum-{name}'
            got = self.post(dict(self.signed({field: value}), **{field: value}), b'test data')
            self.assertEqual(got.status, 204, got.body)
            stored = self.daemon.request(
                'GET', '/forms/up/a', headers={'x-amz-checksum-mode': 'ENABLED'}
            )
            self.assertEqual(stored.headers[field], value)
        two = {'x-amz-checksum-crc32': '0wiusg==', 'x-amz-checksum-crc32c': 'M3m0yg=='}
        for fields in (two, {'x-amz-checksum-none': 'x'}):
            got = self.post(
                dict(self.signed(*({name: value} for name, value in fields.items())), **fields),
                b'test data',
            )
            self.assertEqual((got.status, got.code()), (400, 'InvalidRequest'))

    def test_the_signature_is_judged_before_the_bucket(self):
        good = self.signed()
        stranger, forger = Signer.of(self.daemon, key_id='NOBODY'), Signer.of(
            self.daemon, secret='other'
        )
        without = lambda name: {field: value for field, value in good.items() if field != name}
        table = [
            (without(name), 400, 'InvalidArgument')
            for name in good
            if name.startswith('x-amz-') or name == 'policy'
        ]
        table += [
            (dict(good, **{name: 'malformed'}), 400, 'InvalidArgument')
            for name in ('x-amz-algorithm', 'x-amz-credential', 'x-amz-date')
        ]
        table += [
            (self.signed(signer=stranger), 403, 'InvalidAccessKeyId'),
            (self.signed(signer=forger), 403, 'SignatureDoesNotMatch'),
            ({'key': 'up/a'}, 404, 'NoSuchBucket'),
        ]
        for fields, status, code in table:
            got = self.post(fields, target='/no-such-forms')
            self.assertEqual((got.status, got.code()), (status, code), sorted(fields))
        got = self.post(dict(self.signed({'bucket': 'no-such-forms'})), target='/no-such-forms')
        self.assertEqual(
            (got.status, got.code()), (403, 'AccessDenied')
        )  # of two conditions one names another bucket

    def test_file_names_in_keys(self):
        for sent, key in (('f.txt', 'up/f.txt'), ('C:\\dir\\g.txt', 'up/g.txt'), ('dir/h i.txt', 'up/h%20i.txt')):
            self.assertEqual(self.post(self.signed(key='up/${filename}'), file_name=sent.replace('\\', '\\\\')).status, 204)
            self.assertEqual(self.stored(key).body, b'content')
        got = self.post(self.signed(key='${filename}'), file_name='elsewhere')
        self.assertEqual((got.status, got.code()), (403, 'AccessDenied'))

    def test_what_success_looks_like(self):
        fields = dict(self.signed(['starts-with', '$success_action_status', '']), success_action_status='201')
        got = self.post(fields)
        document = ElementTree.fromstring(got.body)
        self.assertEqual((got.status, document.tag, document.findtext('Bucket'), document.findtext('Key')), (201, 'PostResponse', 'forms', 'up/a'))
        self.assertEqual(document.findtext('ETag'), got.headers['etag'])
        self.assertEqual(document.findtext('Location'), f'{self.daemon.endpoint}/forms/up/a')
        for value, expected in (('200', 200), ('204', 204), ('404', 204), ('', 204)):
            got = self.post(dict(fields, success_action_status=value))
            self.assertEqual((got.status, got.body), (expected, b''))

    def test_redirects(self):
        condition = ['starts-with', '$success_action_redirect', '']
        for target, mark in (('http://example.test/done', '?'), ('https://example.test/done?a=1', '&')):
            got = self.post(dict(self.signed(condition), success_action_redirect=target))
            etag = urllib.parse.quote(got.headers['etag'])
            self.assertEqual((got.status, got.headers['location']), (303, f'{target}{mark}bucket=forms&key=up%2Fa&etag={etag}'))
        for target in ('/relative', 'javascript:alert(1)', 'http://example.test/\u00e4'):
            self.assertEqual(self.post(dict(self.signed(condition), success_action_redirect=target)).status, 204)

    def test_sizes(self):
        bounds = ['content-length-range', 2, 5]
        for content, status, code in ((b'12', 204, None), (b'12345', 204, None), (b'1', 400, 'EntityTooSmall'), (b'123456', 400, 'EntityTooLarge'), (LARGE, 400, 'EntityTooLarge')):
            got = self.post(self.signed(bounds, key='up/sized'), content)
            self.assertEqual((got.status, got.code()), (status, code), got.body)
        document = ElementTree.fromstring(self.post(self.signed(bounds), b'1').body)
        self.assertEqual((document.findtext('ProposedSize'), document.findtext('MinSizeAllowed')), ('1', '2'))
        self.assertEqual(self.stored('up/sized').body, b'12345')

    def test_refused_forms(self):
        good = self.signed(key='up/refused')
        without = lambda *names: {name: value for name, value in good.items() if name not in names}
        old = self.signed(key='up/refused', version=2)
        stranger, forger = Signer.of(self.daemon, key_id='NOBODY'), Signer.of(self.daemon, secret='other')
        raw = lambda text: {'key': 'up/refused', **self.signer.post_fields(text)}
        table = [
            (without('key'), 400, 'InvalidArgument'), (without('policy'), 400, 'InvalidArgument'), (without('x-amz-signature'), 400, 'InvalidArgument'),
            (without('x-amz-credential'), 400, 'InvalidArgument'), (without('x-amz-date'), 400, 'InvalidArgument'), (dict(good, key=''), 400, 'InvalidArgument'),
            ({'key': 'up/refused', 'policy': good['policy']}, 400, 'InvalidArgument'), ({'key': 'up/refused'}, 403, 'AccessDenied'),
            ({name: value for name, value in old.items() if name != 'signature'}, 400, 'InvalidArgument'),
            (self.signed(signer=stranger, key='up/refused'), 403, 'InvalidAccessKeyId'), (self.signed(signer=stranger, key='up/refused', version=2), 403, 'InvalidAccessKeyId'),
            (self.signed(signer=forger, key='up/refused'), 403, 'SignatureDoesNotMatch'), (self.signed(signer=forger, key='up/refused', version=2), 403, 'SignatureDoesNotMatch'),
            (dict(good, policy=good['policy'][:-4] + 'AAAA'), 403, 'SignatureDoesNotMatch'), (self.signed(seconds=-5, key='up/refused'), 403, 'AccessDenied'),
            (dict(good, extra='1'), 403, 'AccessDenied'), (self.signed(key='down/refused'), 403, 'AccessDenied'),
            (self.signed({'acl': 'private'}, key='up/refused'), 403, 'AccessDenied'), (self.signed({'acl': 'private'}, acl='public-read', key='up/refused'), 403, 'AccessDenied'),
            (self.signed({'bucket': 'other'}, key='up/refused'), 403, 'AccessDenied'),
            (raw('nonsense'), 400, 'InvalidPolicyDocument'), (raw('{}'), 400, 'InvalidPolicyDocument'), (raw('{"expiration":"2099-01-01T00:00:00Z"}'), 400, 'InvalidPolicyDocument'),
            (self.signed({}, key='up/refused'), 400, 'InvalidPolicyDocument'), (self.signed(['content-length-range', 0], key='up/refused'), 400, 'InvalidPolicyDocument'),
            (dict(good, **{'x-amz-algorithm': 'AWS4-HMAC-SHA512'}), 400, 'InvalidArgument'), (dict(good, **{'x-amz-credential': 'x'}), 400, 'InvalidArgument'),
            (list(good.items()) + [('KEY', 'up/b')], 400, 'MalformedPOSTRequest'),
            (dict(self.signed(['starts-with', '$x-amz-storage-class', ''], key='up/refused'), **{'x-amz-storage-class': 'NONE'}), 400, 'InvalidStorageClass'),
            (dict(good, filler='f' * 21000), 400, 'MaxPostPreDataLengthExceededError'),
            (dict(self.signed(['starts-with', '$x-amz-meta-a', ''], key='up/refused'), **{'x-amz-meta-a': 'b\r\nSet-Cookie: c'}), 400, 'InvalidArgument'),
            (dict(self.signed(['starts-with', '$x-amz-meta-a: b', ''], key='up/refused'), **{'x-amz-meta-a: b': 'c'}), 400, 'InvalidArgument'),
            (dict(self.signed(['starts-with', '$Content-Type', ''], key='up/refused'), **{'Content-Type': 'a/b\nx: y'}), 400, 'InvalidArgument'),
        ]
        for fields, status, code in table:
            got = self.post(fields)
            self.assertEqual((got.status, got.code()), (status, code), (fields, got.body))
            self.assertEqual(self.stored('up/refused').status, 404)

    def test_malformed_bodies(self):
        fields = self.signed(key='up/malformed')
        kind, body = form_body(fields, b'content')
        _, two = form_body(fields, b'content')
        table = [
            ('text/plain', body, 412, 'PreconditionFailed'), ('multipart/form-data', body, 400, 'MalformedPOSTRequest'), (kind, body[:-8], 400, 'MalformedPOSTRequest'),
            (kind, b'', 400, 'MalformedPOSTRequest'), (kind, form_body(fields)[1], 400, 'InvalidArgument'), (kind + 'x', body, 400, 'MalformedPOSTRequest'),
            (kind, body.replace(b'; name="key"', b'', 1), 400, 'MalformedPOSTRequest'), (kind, body.replace(b'--\r\n', b'\r\n') + two[two.index(b'Content-Disposition: form-data; name="file"'):], 400,
                                                                                       'InvalidArgument'),
        ]
        for content_type, data, status, code in table:
            got = self.daemon.request('POST', '/forms', data, {'Content-Type': content_type}, token=None)
            self.assertEqual((got.status, got.code()), (status, code), (data, got.body))
        self.assertEqual(self.stored('up/malformed').status, 404)

    def test_fields_behind_the_file_do_not_count(self):
        kind, body = form_body(self.signed(), b'content')
        boundary = kind.partition('=')[2].encode()
        more = b'--%s\r\nContent-Disposition: form-data; name="x-amz-meta-late"\r\n\r\nlate\r\n--%s--\r\n' % (boundary, boundary)
        got = self.daemon.request('POST', '/forms', body[:-len(boundary) - 6] + more, {'Content-Type': kind}, token=None)
        self.assertEqual(got.status, 204, got.body)
        self.assertIsNone(self.stored().headers['x-amz-meta-late'])

    def test_a_limited_key_may_sign_what_it_may_do(self):
        key = self.daemon.add_key('--name', 'former', '--grant', 'forms/up/mine=write')
        signer = Signer.of(self.daemon, key_id=key['key_id'], secret=key['secret'])
        for version in (4, 2):
            self.assertEqual(self.post(self.signed(signer=signer, version=version, key='up/mine/1')).status, 204)
            self.assertEqual(self.post(self.signed(signer=signer, version=version, key='up/others')).code(), 'AccessDenied')

    def test_a_form_may_come_with_a_token(self):
        kind, body = form_body({'key': 'up/token'}, b'by token')
        self.assertEqual(self.daemon.request('POST', '/forms', body, {'Content-Type': kind}).status, 204)
        self.assertEqual(self.stored('up/token').body, b'by token')


if __name__ == '__main__':
    unittest.main()
