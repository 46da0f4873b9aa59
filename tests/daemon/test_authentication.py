"""Who may do what: tokens, signatures, grants, and the errors of each refusal."""
import datetime
import hashlib
import hmac
import unittest
import urllib.parse

from tests.support.daemon import ROOT_ID, ROOT_SECRET, Daemon


def signed_headers(daemon, method, path, query='', body=b'', key_id=ROOT_ID, secret=ROOT_SECRET, when=None, payload=None, spoil=''):
    """An independent SigV4 signer: the header form over host, x-amz-content-sha256 and x-amz-date."""
    when = when or datetime.datetime.now(datetime.timezone.utc)
    date, day = when.strftime('%Y%m%dT%H%M%SZ'), when.strftime('%Y%m%d')
    payload = payload or hashlib.sha256(body).hexdigest()
    headers = {'host': f'127.0.0.1:{daemon.port}', 'x-amz-content-sha256': payload, 'x-amz-date': date}
    canonical = '\n'.join([method, urllib.parse.quote(urllib.parse.unquote(path), safe='/-._~'), query,
                           ''.join(f'{name}:{value}\n' for name, value in headers.items()), ';'.join(headers), payload])
    scope = f'{day}/us-east-1/s3/aws4_request'
    text = f'AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}'
    key = ('AWS4' + secret).encode()
    for part in (day, 'us-east-1', 's3', 'aws4_request'):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    headers['Authorization'] = (f'AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={";".join(headers)}, '
                                f'Signature={spoil or signature}')
    return headers


class Authentication(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()
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
        put = self.ask('PUT', '/auth/signed', body, **signed_headers(self.daemon, 'PUT', '/auth/signed', body=body))
        self.assertEqual(put.status, 200, put.body)
        got = self.ask('GET', '/auth/signed', **signed_headers(self.daemon, 'GET', '/auth/signed'))
        self.assertEqual(got.body, body)
        unsigned = self.ask('PUT', '/auth/unsigned', body, **signed_headers(self.daemon, 'PUT', '/auth/unsigned', payload='UNSIGNED-PAYLOAD'))
        self.assertEqual(unsigned.status, 200, unsigned.body)

    def test_signed_queries_in_whatever_form_they_are_sent(self):
        canonical = 'delimiter=%2F&list-type=2&prefix=a%20b%2B%2F'
        for sent in ('list-type=2&delimiter=/&prefix=a%20b%2B/', 'prefix=a+b%2b/&list-type=2&delimiter=%2f', canonical):
            with self.subTest(sent=sent):
                got = self.ask('GET', f'/auth?{sent}', **signed_headers(self.daemon, 'GET', '/auth', query=canonical))
                self.assertEqual(got.status, 200, got.body)
                self.assertIn(b'<Prefix>a b+/</Prefix>', got.body)
        self.assertEqual(self.ask('GET', '/auth?location', **signed_headers(self.daemon, 'GET', '/auth', query='location=')).status, 200)
        moved = signed_headers(self.daemon, 'GET', '/auth', query='list-type=2&prefix=a')
        self.assertEqual(self.ask('GET', '/auth?list-type=2&prefix=b', **moved).code(), 'SignatureDoesNotMatch')

    def test_refused_signatures(self):
        sign = lambda **options: signed_headers(self.daemon, 'GET', '/auth/key', **options)
        hour = datetime.timedelta(hours=1)
        now = datetime.datetime.now(datetime.timezone.utc)
        table = [
            (sign(spoil='0' * 64), 403, 'SignatureDoesNotMatch'), (sign(secret='other'), 403, 'SignatureDoesNotMatch'),
            (sign(key_id='NOBODY'), 403, 'InvalidAccessKeyId'), (sign(when=now - hour), 403, 'RequestTimeTooSkewed'),
            (sign(when=now + hour), 403, 'RequestTimeTooSkewed'), (sign(payload='nonsense'), 400, 'InvalidArgument'),
            (dict(sign(), Authorization='AWS4-HMAC-SHA256 Credential=x'), 400, 'AuthorizationHeaderMalformed'),
            (dict(sign(), Authorization='AWS a:b'), 400, 'InvalidRequest'),
        ]
        for headers, status, code in table:
            got = self.ask('GET', '/auth/key', **headers)
            self.assertEqual((got.status, got.code()), (status, code), got.body)

    def test_signed_payload_is_verified(self):
        headers = signed_headers(self.daemon, 'PUT', '/auth/forged', body=b'the right body')
        got = self.ask('PUT', '/auth/forged', b'another body!!', **headers)
        self.assertEqual((got.status, got.code()), (400, 'XAmzContentSHA256Mismatch'))
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

    def test_secrets_stay_out_of_log_and_data(self):
        key = self.daemon.add_key('--name', 'quiet')
        self.daemon.request('GET', '/auth/key', token=key['token'])
        self.assertNotIn(key['token'], self.daemon.log())
        self.assertNotIn(key['secret'], self.daemon.log())
        with open(f'{self.daemon.folder}/catalog.db', 'rb') as catalog, open(f'{self.daemon.folder}/catalog.db-wal', 'rb') as wal:
            stored = catalog.read() + wal.read()
        for secret in (key['secret'], key['token']):
            self.assertNotIn(secret.encode(), stored)


if __name__ == '__main__':
    unittest.main()
