"""Who may do what: tokens, signatures, grants, and the errors of each refusal."""
import base64
import datetime
import hashlib
import unittest
import urllib.parse
from xml.etree import ElementTree

from tests.support.daemon import Daemon
from tests.support.signer import UNSIGNED, Signer, encode, utc_now

THREADS_MEET = False

HOUR = datetime.timedelta(hours=1)
DAY = datetime.timedelta(days=1)


def child(reply, name):
    """The text of an error's child; None when it has none of that name."""
    return ElementTree.fromstring(reply.body).findtext(name)


class Authentication(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()
        cls.signer = Signer.of(cls.daemon)
        assert cls.daemon.request('PUT', '/auth').status == 200
        assert cls.daemon.request('PUT', '/auth/key', b'secret').status == 200

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def ask(self, method, target, body=None, **headers):
        return self.daemon.request(method, target, body, headers, token=None)

    def test_anonymous_and_unknown(self):
        self.assertEqual((self.ask('GET', '/auth/key').status, self.ask('GET', '/auth/key').code()), (403, 'AccessDenied'))
        self.assertEqual(self.ask('PUT', '/auth/new', b'x').status, 403)
        self.assertEqual(self.daemon.request('GET', '/auth/key', token='wrong').status, 403)
        self.assertIn(self.ask('GET', '/v1/runs/auth').status, (401, 403))
        self.assertIn('error', self.ask('GET', '/v1/runs/auth').json())

    def test_signed_requests(self):
        body = b'signed body'
        put = self.ask('PUT', '/auth/signed', body, **self.signer.headers('PUT', '/auth/signed', body=body))
        self.assertEqual(put.status, 200, put.body)
        got = self.ask('GET', '/auth/signed', **self.signer.headers('GET', '/auth/signed'))
        self.assertEqual(got.body, body)
        unsigned = self.ask('PUT', '/auth/unsigned', body, **self.signer.headers('PUT', '/auth/unsigned', payload=UNSIGNED))
        self.assertEqual(unsigned.status, 200, unsigned.body)

    def test_signed_metadata(self):
        """Names and values as the AWS SDK for Go sends and signs them: on PUT, copy and multipart."""
        values = {
            'empty': '',
            'blanks': '  a  b   ',
            'blank': '   ',
            'k' * 256: 'long',
            'key.with.dot': 'v',
            'key_with_underscore': 'v',
            '123-numeric': '1',
            'comma': 'a , b;c+d = e',
        }
        extra = {f'x-amz-meta-{name}': value for name, value in values.items()}
        copied = {**extra, 'x-amz-copy-source': 'auth/key', 'x-amz-metadata-directive': 'REPLACE'}
        for method, target, headers in (
            ('PUT', '/auth/meta', extra),
            ('PUT', '/auth/copied', copied),
            ('POST', '/auth/parts?uploads', extra),
        ):
            reply = self.ask(
                method, target, b'', **self.signer.headers(method, target, extra=headers)
            )
            self.assertEqual(reply.status, 200, reply.body)
        for key in ('meta', 'copied'):
            got = self.daemon.request('HEAD', f'/auth/{key}').headers
            self.assertEqual(
                {name: got[f'x-amz-meta-{name}'] for name in values},
                {name: value.strip() for name, value in values.items()},
            )

    def test_a_whole_url_as_the_target(self):
        """As clients send it that treat each server as a proxy; the signature is that of the path."""
        body = b'absolute'
        url = f'http://127.0.0.1:{self.daemon.port}'
        put = self.ask('PUT', f'{url}/auth/absolute?x-id=PutObject', body,
                       **self.signer.headers('PUT', '/auth/absolute?x-id=PutObject', body=body))
        self.assertEqual(put.status, 200, put.body)
        self.assertEqual(self.ask('GET', f'{url}/auth/absolute', **self.signer.headers('GET', '/auth/absolute')).body, body)
        presigned = self.signer.presign('GET', '/auth/absolute')
        self.assertEqual(self.ask('GET', url + presigned, host=self.signer.host).body, body)
        listing = self.ask('GET', f'{url}?x-id=ListBuckets', **self.signer.headers('GET', '/?x-id=ListBuckets'))
        self.assertIn(b'<Name>auth</Name>', listing.body)

    def test_a_signed_host_is_that_of_the_url(self):
        signed = self.signer.headers('GET', '/auth/key')
        other = self.ask('GET', 'http://elsewhere.example/auth/key', **signed)
        self.assertEqual((other.status, other.code()), (400, 'InvalidRequest'))
        self.assertIn(b'names another host than the signed header Host', other.body)
        capitals = Signer(f'LOCALHOST:{self.daemon.port}')
        same = self.ask('GET', f'http://localhost:{self.daemon.port}/auth/key', **capitals.headers('GET', '/auth/key'))
        self.assertEqual(same.status, 200, same.body)
        without_port = Signer('localhost').headers('GET', '/auth/key')
        self.assertEqual(self.ask('GET', 'https://localhost:443/auth/key', **without_port).status, 200)

    def test_any_region_is_accepted(self):
        for region in ('us-east-1', 'eu-west-1', 'garage', 'auto', 'a-very-long-region-name-that-no-cache-would-hold'):
            signer = Signer.of(self.daemon, region=region)
            for _ in range(2):
                self.assertEqual(self.ask('GET', '/auth/key', **signer.headers('GET', '/auth/key')).status, 200, region)

    def test_signed_queries_in_whatever_form_they_are_sent(self):
        canonical = 'delimiter=%2F&list-type=2&prefix=a%20b%2B%2F'
        for sent in ('list-type=2&delimiter=/&prefix=a%20b%2B/', 'prefix=a+b%2b/&list-type=2&delimiter=%2f', canonical):
            with self.subTest(sent=sent):
                got = self.ask('GET', f'/auth?{sent}', **self.signer.headers('GET', f'/auth?{canonical}'))
                self.assertEqual(got.status, 200, got.body)
                self.assertIn(b'<Prefix>a b+/</Prefix>', got.body)
        self.assertEqual(self.ask('GET', '/auth?location', **self.signer.headers('GET', '/auth?location=')).status, 200)
        moved = self.signer.headers('GET', '/auth?list-type=2&prefix=a')
        self.assertEqual(self.ask('GET', '/auth?list-type=2&prefix=b', **moved).code(), 'SignatureDoesNotMatch')

    def test_keys_with_unusual_characters(self):
        for key in ("it's (1)*!", 'a+b c', '\u00fcber/\u65e5\u672c', 'a//b/./c/../d', '%41', '~-_.', '100%&=;?#'):
            path = '/auth/' + urllib.parse.quote(key, safe='/')
            self.assertEqual(self.ask('PUT', path, b'x', **self.signer.headers('PUT', path, body=b'x')).status, 200, key)
            raw = '/auth/' + urllib.parse.quote(key, safe="/!*'()~")
            self.assertEqual(self.ask('GET', raw, **self.signer.headers('GET', path)).status, 200, key)
            self.assertEqual(self.ask('GET', self.signer.presign('GET', path)).status, 200, key)
            self.assertEqual(self.ask('GET', self.signer.presign_v2('GET', path)).status, 200, key)

    def test_refused_signatures(self):
        sign = lambda signer=self.signer, **options: signer.headers('GET', '/auth/key', **options)
        good = sign()
        authorization = good['Authorization']
        turned = lambda old, new: dict(good, Authorization=authorization.replace(old, new))
        stranger = Signer.of(self.daemon, key_id='NOBODY')
        forger = Signer.of(self.daemon, secret='other')
        now = utc_now()
        table = [
            (turned(authorization[-64:], '0' * 64), 403, 'SignatureDoesNotMatch'), (sign(forger), 403, 'SignatureDoesNotMatch'),
            (sign(stranger), 403, 'InvalidAccessKeyId'), (sign(when=now - HOUR), 403, 'RequestTimeTooSkewed'),
            (sign(when=now + HOUR), 403, 'RequestTimeTooSkewed'), (sign(payload='nonsense'), 400, 'InvalidArgument'),
            (dict(good, Authorization='AWS4-HMAC-SHA256 Credential=x'), 400, 'AuthorizationHeaderMalformed'),
            (dict(good, Authorization='AWS a:b'), 400, 'InvalidRequest'), (dict(good, Authorization='Basic YTpi'), 400, 'InvalidArgument'),
            (turned('SHA256 ', 'SHA256  '), 400, 'InvalidArgument'), (turned('SHA256 ', 'SHA512 '), 400, 'InvalidArgument'),
            (turned('/s3/', '/ec2/'), 400, 'AuthorizationHeaderMalformed'), (turned('aws4_', 'aws5_'), 400, 'AuthorizationHeaderMalformed'),
            (turned('SignedHeaders=', 'Signed='), 400, 'AuthorizationHeaderMalformed'),
            (turned(f'/{now:%Y%m%d}/', f'/{now - DAY:%Y%m%d}/'), 400, 'AuthorizationHeaderMalformed'),
            (turned('host;', ''), 403, 'AccessDenied'), (dict(good, **{'x-amz-meta-a': '1'}), 403, 'AccessDenied'),
            ({name: value for name, value in good.items() if name != 'x-amz-date'}, 403, 'AccessDenied'),
            ({name: value for name, value in good.items() if name != 'x-amz-content-sha256'}, 400, 'InvalidRequest'),
            (sign(extra={'x-amz-security-token': 't'}), 400, 'InvalidToken'),
            (sign(payload='STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD'), 501, 'NotImplemented'),
            (sign(payload='STREAMING-AWS4-HMAC-SHA256-PAYLOAD'), 400, 'InvalidRequest'),
        ]
        for headers, status, code in table:
            got = self.ask('GET', '/auth/key', **headers)
            self.assertEqual((got.status, got.code()), (status, code), (headers, got.body))
            self.assertEqual(child(got, 'RequestId'), got.headers['x-amz-request-id'])
            self.assertTrue(got.headers['x-amz-id-2'])

    def test_what_errors_tell(self):
        forger = Signer.of(self.daemon, secret='other')
        got = self.ask('GET', '/auth/key?a=1', **forger.headers('GET', '/auth/key?a=1'))
        self.assertEqual(child(got, 'AWSAccessKeyId'), forger.key_id)
        self.assertEqual(child(got, 'CanonicalRequest').split('\n')[:3], ['GET', '/auth/key', 'a=1'])
        self.assertEqual(bytes.fromhex(child(got, 'CanonicalRequestBytes')).decode(), child(got, 'CanonicalRequest'))
        self.assertEqual(bytes.fromhex(child(got, 'StringToSignBytes')).decode(), child(got, 'StringToSign'))
        self.assertEqual(len(child(got, 'SignatureProvided')), 64)
        right = self.signer.headers('GET', '/auth/key?a=1')['Authorization'][-64:]
        self.assertNotIn(right.encode(), got.body)
        late = self.ask('GET', '/auth/key', **self.signer.headers('GET', '/auth/key', when=utc_now() - HOUR))
        self.assertEqual(child(late, 'MaxAllowedSkewMilliseconds'), '900000')
        self.assertTrue(child(late, 'RequestTime') and child(late, 'ServerTime'))
        malformed = self.ask('GET', '/auth/key', Authorization='AWS4-HMAC-SHA256 Credential=x')
        self.assertEqual(child(malformed, 'Region'), 'us-east-1')
        nonsense = self.ask('GET', '/auth/key', **self.signer.headers('GET', '/auth/key', payload='nonsense'))
        self.assertEqual((child(nonsense, 'ArgumentName'), child(nonsense, 'ArgumentValue')), ('x-amz-content-sha256', 'nonsense'))

    def test_dates_in_either_header_and_form(self):
        """x-amz-date is not the only place; an HTTP date signs as the same instant."""
        when = utc_now().replace(microsecond=0)
        http = when.strftime('%a, %d %b %Y %H:%M:%S GMT')
        for name, text in (('date', http), ('date', f'{when:%Y%m%dT%H%M%SZ}'), ('x-amz-date', http)):
            sent = {'host': self.signer.host, 'x-amz-content-sha256': UNSIGNED, name: text}
            signature = self.signer.signature_v4('GET', '/auth/key', sent, UNSIGNED, when)
            sent['Authorization'] = (f'AWS4-HMAC-SHA256 Credential={self.signer.key_id}/{self.signer.scope(when)},'
                                     f'SignedHeaders={";".join(sorted(sent))},Signature={signature}')
            got = self.ask('GET', '/auth/key', **sent)
            self.assertEqual(got.status, 200, (name, text, got.body))

    def test_presigned_urls(self):
        for presign in (self.signer.presign, self.signer.presign_v2):
            with self.subTest(presign=presign.__name__):
                self.assertEqual(self.ask('PUT', presign('PUT', '/auth/linked'), b'by link').status, 200)
                got = self.ask('GET', presign('GET', '/auth/linked'))
                self.assertEqual((got.status, got.body), (200, b'by link'))
                self.assertEqual(self.ask('HEAD', presign('HEAD', '/auth/linked')).status, 200)
                self.assertEqual(self.ask('HEAD', presign('GET', '/auth/linked')).status, 403)
                self.assertEqual(self.ask('PUT', presign('GET', '/auth/linked'), b'x').code(), 'SignatureDoesNotMatch')
                self.assertEqual(self.ask('GET', presign('GET', '/auth/linked').replace('linked', 'key')).code(), 'SignatureDoesNotMatch')
                ranged = self.ask('GET', presign('GET', '/auth/linked'), Range='bytes=0-1')
                self.assertEqual((ranged.status, ranged.body), (206, b'by'))
                listed = self.ask('GET', presign('GET', '/auth?list-type=2&prefix=linked'))
                self.assertIn(b'<Key>linked</Key>', listed.body)
                self.assertEqual(self.ask('DELETE', presign('DELETE', '/auth/linked')).status, 204)

    def test_presigned_headers_and_overrides(self):
        extra = {'x-amz-meta-color': 'blue', 'Content-Type': 'text/plain'}
        for presign in (self.signer.presign, self.signer.presign_v2):
            with self.subTest(presign=presign.__name__):
                target = presign('PUT', '/auth/with-headers', extra=extra)
                self.assertEqual(self.ask('PUT', target, b'x', **extra).status, 200)
                self.assertEqual(self.ask('PUT', target, b'x', **dict(extra, **{'x-amz-meta-color': 'red'})).code(), 'SignatureDoesNotMatch')
                self.assertEqual(self.ask('PUT', target, b'x', **dict(extra, **{'x-amz-meta-more': '1'})).status, 403)
                got = self.ask('GET', presign('GET', '/auth/with-headers?response-content-type=image%2Fpng'))
                self.assertEqual((got.status, got.headers['x-amz-meta-color']), (200, 'blue'))

    def test_headers_hoisted_into_a_presigned_query_count(self):
        """Makers of URLs put x-amz-* headers into the query, where the signature covers them."""
        self.daemon.request('PUT', '/auth/hoisted-source', b'the source')
        target = self.signer.presign('PUT', '/auth/hoisted', parameters={'x-amz-meta-color': 'green blue', 'X-Amz-Storage-Class': 'STANDARD_IA'})
        self.assertEqual(self.ask('PUT', target, b'x').status, 200)
        got = self.ask('GET', self.signer.presign('GET', '/auth/hoisted'))
        self.assertEqual((got.headers['x-amz-meta-color'], got.headers['x-amz-storage-class']), ('green blue', 'STANDARD_IA'))
        copy = self.signer.presign('PUT', '/auth/hoisted-copy', parameters={'x-amz-copy-source': '/auth/hoisted-source'})
        self.assertIn(b'CopyObjectResult', self.ask('PUT', copy).body)
        self.assertEqual(self.ask('GET', self.signer.presign('GET', '/auth/hoisted-copy')).body, b'the source')
        begun = self.ask('POST', self.signer.presign('POST', '/auth/hoisted-parts?uploads=', parameters={'x-amz-checksum-algorithm': 'SHA256'}))
        upload = begun.body.split(b'<UploadId>')[1].split(b'<')[0].decode()
        part = self.ask('PUT', self.signer.presign('PUT', f'/auth/hoisted-parts?partNumber=1&uploadId={upload}'), b'x')
        self.assertEqual(part.headers['x-amz-checksum-sha256'], base64.b64encode(hashlib.sha256(b'x').digest()).decode())
        locked = self.signer.presign('PUT', '/auth/hoisted', parameters={'x-amz-object-lock-mode': 'GOVERNANCE'})
        self.assertEqual(self.ask('PUT', locked, b'x').status, 501)

    def test_refused_presigned_urls(self):
        now = utc_now()
        good = lambda **options: self.signer.presign('GET', '/auth/key', **options)
        stranger, forger = Signer.of(self.daemon, key_id='NOBODY'), Signer.of(self.daemon, secret='other')
        table = [
            (good(when=now - HOUR, expires=60), 403, 'AccessDenied'), (good(when=now + HOUR), 403, 'AccessDenied'),
            (good(expires=0), 403, 'AccessDenied'), (good(expires=-5), 403, 'AccessDenied'), (good(expires=604801), 403, 'AccessDenied'),
            (good(expires='soon'), 400, 'AuthorizationQueryParametersError'),
            (stranger.presign('GET', '/auth/key'), 403, 'InvalidAccessKeyId'), (forger.presign('GET', '/auth/key'), 403, 'SignatureDoesNotMatch'),
            (good(parameters={'X-Amz-Algorithm': 'AWS4-HMAC-SHA512'}), 400, 'AuthorizationQueryParametersError'),
            (good(parameters={'X-Amz-Date': 'today'}), 400, 'AuthorizationQueryParametersError'),
            (good(parameters={'X-Amz-Credential': 'x'}), 400, 'AuthorizationQueryParametersError'),
            (good(parameters={'X-Amz-SignedHeaders': 'range'}), 403, 'AccessDenied'),
            (good() + '&X-Amz-Security-Token=t', 400, 'InvalidToken'),
            (self.signer.presign_v2('GET', '/auth/key', expires=-5), 403, 'AccessDenied'),
            (stranger.presign_v2('GET', '/auth/key'), 403, 'InvalidAccessKeyId'),
            (forger.presign_v2('GET', '/auth/key'), 403, 'SignatureDoesNotMatch'),
            (self.signer.presign_v2('GET', '/auth/key').replace('Expires=', 'Expires=x'), 403, 'AccessDenied'),
            (self.signer.presign_v2('GET', '/auth/key') + '&retention', 403, 'AccessDenied'),
        ]
        for name in ('X-Amz-Algorithm', 'X-Amz-Credential', 'X-Amz-Date', 'X-Amz-Expires', 'X-Amz-SignedHeaders'):
            table.append((good(parameters={name: None}), 400, 'AuthorizationQueryParametersError'))
        for target, status, code in table:
            got = self.ask('GET', target)
            self.assertEqual((got.status, got.code()), (status, code), (target, got.body))
        expired = self.ask('GET', good(when=now - HOUR, expires=60))
        self.assertEqual(child(expired, 'X-Amz-Expires'), '60')
        self.assertTrue(child(expired, 'Expires') < child(expired, 'ServerTime'))
        both = self.daemon.request('GET', good())
        self.assertEqual((both.status, both.code()), (400, 'InvalidArgument'))

    def test_lower_case_presigned_parameters(self):
        now = utc_now()
        query = '&'.join(f'{name}={encode(value)}' for name, value in {
            'x-amz-algorithm': 'AWS4-HMAC-SHA256', 'x-amz-credential': f'{self.signer.key_id}/{self.signer.scope(now)}',
            'x-amz-date': f'{now:%Y%m%dT%H%M%SZ}', 'x-amz-expires': '60', 'x-amz-signedheaders': 'host'}.items())
        signature = self.signer.signature_v4('GET', f'/auth/key?{query}', {'host': self.signer.host}, UNSIGNED, now)
        self.assertEqual(self.ask('GET', f'/auth/key?{query}&x-amz-signature={signature}').status, 200)

    def test_presigned_put_of_a_known_body(self):
        digest = hashlib.sha256(b'this body').hexdigest()
        target = self.signer.presign('PUT', '/auth/known', payload=digest, parameters={'X-Amz-Content-Sha256': digest})
        self.assertEqual(self.ask('PUT', target, b'that body').code(), 'XAmzContentSHA256Mismatch')
        self.assertEqual(self.ask('PUT', target, b'this body').status, 200)

    def test_anonymous_overrides_are_refused(self):
        got = self.ask('GET', '/auth/key?response-content-type=text/html')
        self.assertEqual((got.status, got.code()), (400, 'InvalidRequest'))

    def test_a_presigned_url_of_a_limited_key_does_what_the_key_may(self):
        key = self.daemon.add_key('--name', 'linker', '--grant', 'auth/runs=read')
        signer = Signer.of(self.daemon, key_id=key['key_id'], secret=key['secret'])
        self.daemon.request('PUT', '/auth/runs/linked', b'granted')
        for presign in (signer.presign, signer.presign_v2):
            self.assertEqual(self.ask('GET', presign('GET', '/auth/runs/linked')).status, 200)
            self.assertEqual(self.ask('GET', presign('GET', '/auth/key')).code(), 'AccessDenied')
            self.assertEqual(self.ask('PUT', presign('PUT', '/auth/runs/linked'), b'x').code(), 'AccessDenied')
        self.daemon.admin('keys', 'revoke', key['key_id'])
        self.assertEqual(self.ask('GET', signer.presign('GET', '/auth/runs/linked')).code(), 'InvalidAccessKeyId')
        self.assertEqual(self.ask('GET', '/auth/runs/linked', **signer.headers('GET', '/auth/runs/linked')).code(), 'InvalidAccessKeyId')

    def test_signed_payload_is_verified(self):
        headers = self.signer.headers('PUT', '/auth/forged', body=b'the right body')
        got = self.ask('PUT', '/auth/forged', b'another body!!', **headers)
        self.assertEqual((got.status, got.code()), (400, 'XAmzContentSHA256Mismatch'))
        self.assertEqual(child(got, 'ClientComputedContentSHA256'), headers['x-amz-content-sha256'])
        self.assertEqual(child(got, 'S3ComputedContentSHA256'), self.signer.headers('PUT', '/', body=b'another body!!')['x-amz-content-sha256'])
        self.assertEqual(self.daemon.request('GET', '/auth/forged').status, 404)

    def test_grants_give_exactly_what_they_name(self):
        key = self.daemon.add_key('--name', 'reader', '--grant', 'auth/runs=read,list')
        self.daemon.request('PUT', '/auth/runs/1', b'granted')
        ask = lambda method, target, body=None: self.daemon.request(method, target, body, token=key['token']).status
        self.assertEqual(ask('GET', '/auth/runs/1'), 200)
        self.assertEqual(ask('GET', '/auth?list-type=2&prefix=runs/'), 200)
        self.assertEqual(ask('GET', '/auth?list-type=2'), 403)
        self.assertEqual(ask('GET', '/v1/runs/auth?prefix=runs/'), 403)
        self.assertEqual(ask('GET', '/auth/key'), 403)
        self.assertEqual(ask('PUT', '/auth/runs/2', b'x'), 403)
        self.assertEqual(ask('DELETE', '/auth/runs/1'), 403)
        self.assertEqual(ask('PUT', '/another-bucket'), 403)
        self.assertEqual(ask('DELETE', '/auth'), 403)

    def test_accounts_are_apart_and_keys_can_be_revoked(self):
        key = self.daemon.add_key('--namespace', 'team')
        self.assertEqual(self.daemon.request('GET', '/auth/key', token=key['token']).status, 403)
        self.assertEqual(self.daemon.request('PUT', '/team--own', token=key['token']).status, 200)
        self.assertEqual(self.daemon.request('PUT', '/team--own/k', b'1', token=key['token']).status, 200)
        self.assertEqual(self.daemon.request('PUT', '/auth', token=key['token']).code(), 'BucketAlreadyExists')
        self.assertNotIn(b'<Name>auth</Name>', self.daemon.request('GET', '/', token=key['token']).body)
        self.assertIn(key['key_id'], self.daemon.admin('keys', 'list').stdout)
        self.daemon.admin('keys', 'revoke', key['key_id'])
        self.assertEqual(self.daemon.request('GET', '/team--own/k', token=key['token']).status, 403)
        self.daemon.stop()
        self.daemon.start()
        for event in ('key_made', 'key_revoked'):
            self.assertIn(f"{event} key_id={key['key_id']}", self.daemon.log())

    def test_secrets_stay_out_of_log_and_data(self):
        key = self.daemon.add_key('--name', 'quiet')
        self.daemon.request('GET', '/auth/key', token=key['token'])
        self.assertNotIn(key['token'], self.daemon.log())
        self.assertNotIn(key['secret'], self.daemon.log())
        with open(f'{self.daemon.folder}/catalog.db', 'rb') as catalog, open(f'{self.daemon.folder}/catalog.db-wal', 'rb') as wal:
            stored = catalog.read() + wal.read()
        for secret in (key['secret'], key['token']):
            self.assertNotIn(secret.encode(), stored)


class Version2Off(unittest.TestCase):
    def test_switch(self):
        with Daemon(tls=False, arguments=['--sigv2=off']) as daemon:
            daemon.request('PUT', '/auth')
            daemon.request('PUT', '/auth/key', b'secret')
            signer = Signer.of(daemon)
            got = daemon.request('GET', signer.presign_v2('GET', '/auth/key'), token=None)
            self.assertEqual((got.status, got.code()), (400, 'InvalidRequest'))
            self.assertEqual(daemon.request('GET', signer.presign('GET', '/auth/key'), token=None).status, 200)


class VirtualHosts(unittest.TestCase):
    def test_signatures_on_a_virtual_host(self):
        with Daemon(tls=False, arguments=['--domain', 'example.test']) as daemon:
            daemon.request('PUT', '/auth')
            daemon.request('PUT', '/auth/key', b'secret')
            signer = Signer('auth.example.test')
            for target in (signer.presign('GET', '/key'), signer.presign_v2('GET', '/key', resource='/auth/key')):
                self.assertEqual(daemon.request('GET', target, headers={'Host': 'auth.example.test'}, token=None).body, b'secret')
            self.assertEqual(daemon.request('GET', '/key', headers=signer.headers('GET', '/key'), token=None).body, b'secret')


if __name__ == '__main__':
    unittest.main()
