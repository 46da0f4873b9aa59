"""CORS over HTTP: preflights, and headers on every reply to a page of another origin."""
import unittest

from tests.support.daemon import Daemon

THREADS_MEET = False

RULES = b'''<CORSConfiguration>
<CORSRule><AllowedOrigin>https://*.lab.example</AllowedOrigin><AllowedMethod>GET</AllowedMethod><AllowedMethod>PUT</AllowedMethod>
<AllowedHeader>x-amz-*</AllowedHeader><AllowedHeader>content-type</AllowedHeader><ExposeHeader>ETag</ExposeHeader>
<MaxAgeSeconds>60</MaxAgeSeconds></CORSRule>
<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>HEAD</AllowedMethod></CORSRule>
</CORSConfiguration>'''
PAGE = {'Origin': 'https://one.lab.example'}


class Cors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.request = staticmethod(cls.daemon.request)
        assert cls.request('PUT', '/page').status == 200
        assert cls.request('PUT', '/page/k', b'text').status == 200
        assert cls.request('PUT', '/page?cors', RULES).status == 200

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def preflight(self, target, method, headers=None, origin=PAGE['Origin']):
        asked = {'Origin': origin, 'Access-Control-Request-Method': method}
        if headers:
            asked['Access-Control-Request-Headers'] = headers
        return self.request('OPTIONS', target, headers=asked, token=None)

    def test_preflights(self):
        for target in ('/page', '/page/k', '/page/new?partNumber=1&uploadId=x'):
            with self.subTest(target=target):
                good = self.preflight(target, 'PUT', 'x-amz-acl, Content-Type')
                self.assertEqual((good.status, good.body), (200, b''))
                self.assertEqual(good.headers['Access-Control-Allow-Origin'], PAGE['Origin'])
                self.assertEqual(good.headers['Access-Control-Allow-Methods'], 'GET, PUT')
                self.assertEqual(good.headers['Access-Control-Allow-Headers'], 'x-amz-acl, Content-Type')
                self.assertEqual(good.headers['Access-Control-Max-Age'], '60')
        for method, headers, origin in (('DELETE', None, PAGE['Origin']), ('PUT', 'authorization', PAGE['Origin']), ('GET', None, 'https://lab.example')):
            with self.subTest(method=method, headers=headers, origin=origin):
                bad = self.preflight('/page/k', method, headers, origin)
                self.assertEqual((bad.status, bad.code()), (403, 'AccessForbidden'))
                self.assertNotIn('Access-Control-Allow-Origin', bad.headers)
        self.assertEqual(self.preflight('/page/k', 'HEAD', origin='https://anywhere').headers['Access-Control-Allow-Origin'], '*')
        self.assertEqual(self.request('OPTIONS', '/page/k', token=None).status, 400)
        self.assertEqual(self.preflight('/no-such-page/k', 'GET').code(), 'NoSuchBucket')

    def test_names_come_back_as_they_were_asked_for(self):
        for asked, told in (
            ('X-Amz-Date,content-type', 'X-Amz-Date, content-type'),
            ('x-amz-a ,  X-AMZ-B,', 'x-amz-a, X-AMZ-B'),
            ('', None),
        ):
            reply = self.preflight('/page/k', 'GET', asked)
            self.assertEqual(
                (reply.status, reply.headers['Access-Control-Allow-Headers']), (200, told)
            )

    def test_malformed_preflights(self):
        for method in ('get', 'Put', 'PATCH', 'CONNECT', 'OPTIONS', 'nonsense'):
            reply = self.preflight('/page/k', method)
            self.assertEqual((reply.status, reply.code()), (400, 'BadRequest'))
            self.assertIn(f'Invalid Access-Control-Request-Method: {method}'.encode(), reply.body)
        for name in (
            'invalid header',
            'X:Y',
            'X(Y)',
            'X/Y',
            'X[Y]',
            'X=Y',
            'X"Y"',
            'X@Y',
            'x\ty',
            '\xc5x',
        ):
            reply = self.preflight('/page/k', 'GET', f'x-amz-date,{name}')
            self.assertEqual((reply.status, reply.code()), (400, 'BadRequest'), name)

    def test_rules_that_are_taken_and_refused(self):
        rule = '<AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>'
        table = [
            ('<MaxAgeSeconds>-100</MaxAgeSeconds>', 200, None),
            ('<MaxAgeSeconds>2147483648</MaxAgeSeconds>', 400, 'MalformedXML'),
            ('<MaxAgeSeconds>long</MaxAgeSeconds>', 400, 'MalformedXML'),
            ('<AllowedMethod></AllowedMethod>', 400, 'InvalidRequest'),
            ('<AllowedHeader>a b</AllowedHeader>', 400, 'InvalidRequest'),
            ('<ExposeHeader>X(Y)</ExposeHeader>', 400, 'InvalidRequest'),
        ]
        self.assertEqual(self.request('PUT', '/other-page').status, 200)
        for more, status, code in table:
            body = (
                f'<CORSConfiguration><CORSRule>{rule}{more}</CORSRule></CORSConfiguration>'.encode()
            )
            reply = self.request('PUT', '/other-page?cors', body)
            self.assertEqual((reply.status, reply.code()), (status, code), more)
        self.assertIn(
            b'<MaxAgeSeconds>-100</MaxAgeSeconds>', self.request('GET', '/other-page?cors').body
        )
        self.assertEqual(
            self.preflight('/other-page', 'GET').headers['Access-Control-Max-Age'], '-100'
        )

    def test_replies_carry_the_headers(self):
        table = [('GET', '/page/k', 200, True), ('GET', '/page/absent', 404, True), ('GET', '/page?list-type=2', 200, True),
                 ('DELETE', '/page/absent', 204, False)]
        for method, target, status, carries in table:
            with self.subTest(method=method, target=target):
                reply = self.request(method, target, headers=PAGE)
                self.assertEqual(reply.status, status)
                self.assertEqual('Access-Control-Allow-Origin' in reply.headers, carries)
                if carries:
                    self.assertEqual(reply.headers['Access-Control-Expose-Headers'], 'ETag')
                    self.assertIn('Origin', reply.headers['Vary'])
        refused = self.request('PUT', '/page/k', b'other', PAGE, token=None)
        self.assertEqual((refused.status, refused.headers['Access-Control-Allow-Origin']), (403, PAGE['Origin']))
        self.assertNotIn('Vary', self.request('GET', '/page/k').headers)

    def test_without_rules(self):
        self.request('PUT', '/plain')
        self.request('PUT', '/plain/k', b'x')
        self.assertNotIn('Access-Control-Allow-Origin', self.request('GET', '/plain/k', headers=PAGE).headers)
        self.assertEqual(self.preflight('/plain/k', 'GET').code(), 'AccessForbidden')
        self.assertEqual(self.request('PUT', '/plain?cors', RULES).status, 200)
        self.assertEqual(self.preflight('/plain/k', 'GET').status, 200)
        self.assertEqual(self.request('DELETE', '/plain?cors').status, 204)
        self.assertEqual(self.preflight('/plain/k', 'GET').status, 403)


if __name__ == '__main__':
    unittest.main()
