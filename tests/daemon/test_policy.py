"""What buckets and objects give to others: canned ACLs, bucket policies, the public access block; and what a key's own grants leave it."""
import json
import unittest

from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.s3 import tree

THREADS_MEET = False


def statement(principal, actions, resources, **more):
    return {'Effect': 'Allow', 'Principal': principal, 'Action': actions, 'Resource': [f'arn:aws:s3:::{name}' for name in resources], **more}


class Policy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.request = staticmethod(cls.daemon.request)
        cls.other = cls.daemon.add_key('--namespace', 'other')['token']
        cls.team = cls.daemon.add_key('--namespace', 'team')['token']

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def make(self, bucket):
        self.assertEqual(self.request('PUT', f'/{bucket}').status, 200)
        for key in ('in/k', 'out/k'):
            self.assertEqual(self.request('PUT', f'/{bucket}/{key}', b'text').status, 200)

    def check(self, rows):
        for token, method, target, status in rows:
            with self.subTest(token=token and token[:8], method=method, target=target):
                reply = self.request(method, target, b'new' if method == 'PUT' else None, token=token)
                self.assertEqual(reply.status, status, reply.body)
                if status == 403 and method != 'HEAD':
                    self.assertEqual(reply.code(), 'AccessDenied')

    def test_public_bucket(self):
        self.make('pub')
        self.check([(None, 'GET', '/pub/in/k', 403), (None, 'GET', '/pub', 403), (self.other, 'HEAD', '/pub', 403)])
        self.assertEqual(self.request('PUT', '/pub?acl', headers={'x-amz-acl': 'public-read'}).status, 200)
        self.assertIn(b'AllUsers', self.request('GET', '/pub?acl').body)
        for token in (None, self.other):
            self.check([(token, 'GET', '/pub/in/k', 200), (token, 'HEAD', '/pub/in/k', 200), (token, 'GET', '/pub?list-type=2', 200),
                        (token, 'GET', '/pub', 200), (token, 'HEAD', '/pub', 200), (token, 'GET', '/pub/absent', 404),
                        (token, 'PUT', '/pub/in/k', 403), (token, 'DELETE', '/pub/in/k', 403), (token, 'GET', '/pub?acl', 403),
                        (token, 'GET', '/pub?policy', 403), (token, 'DELETE', '/pub', 403), (token, 'POST', '/pub/in/k?uploads', 403)])
        self.assertEqual(self.request('PUT', '/pub?acl', self.request('GET', '/pub?acl').body).status, 200)
        self.assertEqual(self.request('PUT', '/pub?acl', headers={'x-amz-acl': 'private'}).status, 200)
        self.check([(None, 'GET', '/pub/in/k', 403)])

    def grants(self, target):
        root = tree(self.request('GET', f'{target}?acl'))
        return [
            (
                grant.findtext('Grantee/ID') or grant.findtext('Grantee/URI').rpartition('/')[2],
                grant.findtext('Permission'),
            )
            for grant in root.findall('AccessControlList/Grant')
        ]

    def test_what_acls_show(self):
        shown = {
            'private': [],
            'public-read': [('AllUsers', 'READ')],
            'authenticated-read': [('AuthenticatedUsers', 'READ')],
            'public-read-write': [('AllUsers', 'READ'), ('AllUsers', 'WRITE')],
        }
        for acl, groups in shown.items():
            bucket, header = f'/shows-{acl}', {'x-amz-acl': acl}
            self.assertEqual(self.request('PUT', bucket, headers=header).status, 200)
            self.assertEqual(self.request('PUT', f'{bucket}/k', b'x', header).status, 200)
            copy = {**header, 'x-amz-copy-source': f'{bucket}/k'}
            self.assertEqual(self.request('PUT', f'{bucket}/copy', headers=copy).status, 200)
            for target in (bucket, f'{bucket}/k', f'{bucket}/copy'):
                with self.subTest(acl=acl, target=target):
                    self.assertEqual(self.grants(target), [('main', 'FULL_CONTROL'), *groups])
                    document = self.request('GET', f'{target}?acl').body
                    self.assertEqual(
                        self.request(
                            'PUT', f'{target}?acl', headers={'x-amz-acl': 'private'}
                        ).status,
                        200,
                    )
                    self.assertEqual(self.grants(target), [('main', 'FULL_CONTROL')])
                    for body, headers in ((document, {}), (None, header)):
                        self.assertEqual(
                            self.request('PUT', f'{target}?acl', body, headers).status, 200
                        )
                        self.assertEqual(self.grants(target), [('main', 'FULL_CONTROL'), *groups])
            self.assertEqual(
                b'true' in self.request('GET', f'{bucket}?policyStatus').body, acl != 'private'
            )
        refused = self.request('PUT', '/shows-private', headers={'x-amz-acl': 'log-delivery-write'})
        self.assertEqual((refused.status, refused.code()), (501, 'NotImplemented'))
        for target in ('/shows-private?acl', '/shows-private/k?acl'):
            refused = self.request('PUT', target, headers={'x-amz-grant-full-control': 'id=x'})
            self.assertEqual((refused.status, refused.code()), (501, 'NotImplemented'))
            self.assertIn(b'<Header>x-amz-grant-full-control</Header>', refused.body)

    def test_buckets_that_everyone_writes(self):
        self.make('open')
        self.check([(self.other, 'PUT', '/open/in/k', 403), (None, 'PUT', '/open/in/k', 403)])
        self.assertEqual(
            self.request('PUT', '/open?acl', headers={'x-amz-acl': 'public-read-write'}).status, 200
        )
        for token in (None, self.other):
            self.check(
                [
                    (token, 'GET', '/open/in/k', 200),
                    (token, 'GET', '/open', 200),
                    (token, 'PUT', '/open/in/k', 200),
                    (token, 'PUT', '/open/new', 200),
                    (token, 'DELETE', '/open/new', 204),
                    (token, 'GET', '/open?acl', 403),
                    (token, 'PUT', '/open?acl', 403),
                    (token, 'PUT', '/open/in/k?acl', 403),
                    (token, 'GET', '/open?policy', 403),
                    (token, 'DELETE', '/open', 403),
                    (token, 'GET', '/open/in/k?tagging', 403),
                ]
            )
        block = b'<PublicAccessBlockConfiguration><IgnorePublicAcls>true</IgnorePublicAcls></PublicAccessBlockConfiguration>'
        self.assertEqual(self.request('PUT', '/open?publicAccessBlock', block).status, 200)
        self.check([(self.other, 'PUT', '/open/in/k', 403), (None, 'GET', '/open/in/k', 403)])
        self.assertEqual(self.request('DELETE', '/open?publicAccessBlock').status, 204)
        self.check([(self.other, 'PUT', '/open/in/k', 200)])

    def test_buckets_and_objects_for_all_accounts(self):
        self.make('accounts')
        block = b'<PublicAccessBlockConfiguration><BlockPublicAcls>true</BlockPublicAcls></PublicAccessBlockConfiguration>'
        limited = self.daemon.add_key('--namespace', 'limited', '--grant', 'elsewhere=read')[
            'token'
        ]
        header = {'x-amz-acl': 'authenticated-read'}
        for target in ('/accounts/in/k', '/accounts'):
            self.check([(self.other, 'GET', '/accounts/in/k', 403)])
            self.assertEqual(self.request('PUT', '/accounts?publicAccessBlock', block).status, 200)
            self.assertEqual(
                self.request('PUT', f'{target}?acl', headers=header).code(), 'AccessDenied'
            )
            self.assertEqual(self.request('DELETE', '/accounts?publicAccessBlock').status, 204)
            self.assertEqual(self.request('PUT', f'{target}?acl', headers=header).status, 200)
            lists = 200 if target == '/accounts' else 403
            self.check(
                [
                    (self.other, 'GET', '/accounts/in/k', 200),
                    (self.other, 'GET', '/accounts/out/k', lists),
                    (self.other, 'GET', '/accounts', lists),
                    (self.other, 'PUT', '/accounts/in/k', 403),
                    (None, 'GET', '/accounts/in/k', 403),
                    (None, 'GET', '/accounts', 403),
                    (limited, 'GET', '/accounts/in/k', 403),
                ]
            )
            self.assertEqual(
                self.request('PUT', f'{target}?acl', headers={'x-amz-acl': 'private'}).status, 200
            )

    def test_who_began_an_upload(self):
        self.make('begun')
        self.assertEqual(
            self.request('PUT', '/begun?acl', headers={'x-amz-acl': 'public-read-write'}).status,
            200,
        )
        accounts = {'a': ('main', ROOT_TOKEN), 'b': ('other', self.other), 'c': ('anonymous', None)}
        for key, (_, token) in accounts.items():
            reply = self.request('POST', f'/begun/{key}?uploads', token=token)
            upload = tree(reply).findtext('UploadId')
            parts = tree(self.request('GET', f'/begun/{key}?uploadId={upload}', token=token))
            self.assertEqual(
                (parts.findtext('Initiator/ID'), parts.findtext('Owner/ID')),
                (accounts[key][0],) * 2,
            )
        for token in (ROOT_TOKEN, self.other):
            rows = tree(self.request('GET', '/begun?uploads', token=token)).findall('Upload')
            self.assertEqual(
                {
                    row.findtext('Key'): (
                        row.findtext('Initiator/ID'),
                        row.findtext('Owner/DisplayName'),
                    )
                    for row in rows
                },
                {key: (account,) * 2 for key, (account, _) in accounts.items()},
            )

    def test_public_runs_are_read_and_not_written(self):
        self.make('runs')
        self.assertEqual(self.request('POST', '/v1/runs/runs/r').status, 200)
        self.assertEqual(self.request('GET', '/v1/runs/runs/r', token=None).status, 401)
        self.request('PUT', '/runs?acl', headers={'x-amz-acl': 'public-read'})
        self.assertEqual(self.request('GET', '/v1/runs/runs/r', token=None).status, 200)
        self.assertEqual(self.request('GET', '/v1/runs/runs', token=None).status, 200)
        self.assertEqual(self.request('POST', '/v1/runs/runs/r', token=None).status, 401)
        self.assertEqual(self.request('DELETE', '/v1/runs/runs/r', token=self.other).status, 403)

    def test_public_object(self):
        self.make('one')
        self.assertEqual(self.request('PUT', '/one/shown', b'text', {'x-amz-acl': 'public-read'}).status, 200)
        self.check([(None, 'GET', '/one/shown', 200), (None, 'HEAD', '/one/shown', 200), (None, 'GET', '/one/in/k', 403),
                    (None, 'GET', '/one/shown?acl', 403), (None, 'GET', '/one/shown?tagging', 403), (None, 'GET', '/one', 403)])
        self.assertEqual(self.request('PUT', '/one/shown?acl', headers={'x-amz-acl': 'private'}).status, 200)
        self.check([(None, 'GET', '/one/shown', 403)])

    def test_absent_keys_are_hidden_from_those_that_may_not_list(self):
        """Who reads by a policy or an object's own ACL must not find out by 404 and 403 which keys exist."""
        self.make('hid')
        self.assertEqual(self.request('PUT', '/hid/in/gone', b'x').status, 200)
        versioning = b'<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'
        self.assertEqual(self.request('PUT', '/hid?versioning', versioning).status, 200)
        self.assertEqual(self.request('DELETE', '/hid/in/gone').status, 204)
        document = json.dumps({'Version': '2012-10-17', 'Statement': [
            statement('*', ['s3:GetObject'], ['hid/in/*']),
            statement({'AWS': 'arn:aws:iam::team:root'}, ['s3:GetObject', 's3:ListBucket'], ['hid', 'hid/in/*']),
        ]}).encode()
        self.assertEqual(self.request('PUT', '/hid?policy', document).status, 204)
        reader = self.daemon.add_key('--grant', 'hid/in/=read')['token']
        for key in ('in/absent', 'in/gone'):
            self.check([(token, method, f'/hid/{key}', 403) for token in (None, self.other) for method in ('GET', 'HEAD')])
            self.check([(token, method, f'/hid/{key}', 404) for token in (ROOT_TOKEN, self.team, reader) for method in ('GET', 'HEAD')])
        self.check([(self.other, 'GET', '/hid/in/k', 200), (reader, 'GET', '/hid/out/absent', 403)])
        self.assertIsNone(self.request('GET', '/hid/in/gone', token=self.other).headers['x-amz-delete-marker'])
        self.assertEqual(self.request('GET', '/hid/in/gone', token=self.team).headers['x-amz-delete-marker'], 'true')
        self.assertEqual(self.request('PUT', '/mine', token=self.other).status, 200)
        for source, status in (('hid/in/absent', 403), ('hid/in/k', 200)):
            copied = self.request('PUT', '/mine/copy', headers={'x-amz-copy-source': source}, token=self.other)
            self.assertEqual(copied.status, status, copied.body)

    def test_policy(self):
        self.make('pol')
        document = json.dumps({'Version': '2012-10-17', 'Statement': [
            statement('*', ['s3:GetObject'], ['pol/in/*']),
            statement({'AWS': 'arn:aws:iam::team:root'}, ['s3:ListBucket', 's3:PutObject', 's3:DeleteObject'], ['pol', 'pol/in/*']),
        ]}).encode()
        self.assertEqual(self.request('PUT', '/pol?policy', document).status, 204)
        self.assertEqual(self.request('GET', '/pol?policy').body, document)
        self.assertIn(b'<IsPublic>true</IsPublic>', self.request('GET', '/pol?policyStatus').body)
        self.check([(None, 'GET', '/pol/in/k', 200), (None, 'GET', '/pol/out/k', 403), (None, 'GET', '/pol', 403), (None, 'PUT', '/pol/in/k', 403),
                    (self.other, 'GET', '/pol/in/k', 200), (self.other, 'PUT', '/pol/in/new', 403),
                    (self.team, 'PUT', '/pol/in/new', 200), (self.team, 'GET', '/pol', 200), (self.team, 'DELETE', '/pol/in/new', 204),
                    (self.team, 'PUT', '/pol/out/new', 403), (self.team, 'DELETE', '/pol/out/k', 403), (self.team, 'GET', '/pol?policy', 403),
                    (self.team, 'DELETE', '/pol', 403)])
        self.daemon.kill()
        self.daemon.start()
        self.check([(None, 'GET', '/pol/in/k', 200), (None, 'GET', '/pol/out/k', 403)])
        self.assertEqual(self.request('DELETE', '/pol?policy').status, 204)
        self.assertEqual(self.request('GET', '/pol?policy').code(), 'NoSuchBucketPolicy')
        self.check([(None, 'GET', '/pol/in/k', 403), (self.team, 'PUT', '/pol/in/new', 403)])

    def test_policies_that_are_refused(self):
        self.make('ref')
        table = [(b'no json', 400, 'MalformedPolicy'), (b'{}', 400, 'MalformedPolicy'),
                 ({'Statement': statement('*', 's3:GetObject', ['other/*'])}, 400, 'MalformedPolicy'),
                 ({'Statement': statement('*', 's3:GetObject', ['ref/*'], Effect='Deny')}, 501, 'NotImplemented'),
                 ({'Statement': statement('*', 's3:GetObject', ['ref/*'], Condition={'Bool': {'aws:SecureTransport': 'true'}})}, 501, 'NotImplemented'),
                 ({'Statement': statement('*', 's3:PutBucketPolicy', ['ref'])}, 501, 'NotImplemented')]
        for policy, status, code in table:
            with self.subTest(policy=policy):
                reply = self.request('PUT', '/ref?policy', policy if isinstance(policy, bytes) else json.dumps(policy).encode())
                self.assertEqual((reply.status, reply.code()), (status, code))
        self.assertEqual(self.request('GET', '/ref?policy').status, 404)

    def test_anonymous_uploads_where_a_policy_lets_them(self):
        self.make('drop')
        policy = {'Statement': statement('*', ['s3:PutObject', 's3:AbortMultipartUpload'], ['drop/in/*'])}
        self.assertEqual(self.request('PUT', '/drop?policy', json.dumps(policy).encode()).status, 204)
        self.check([(None, 'PUT', '/drop/in/new', 200), (None, 'GET', '/drop/in/new', 403), (None, 'DELETE', '/drop/in/new', 403),
                    (None, 'PUT', '/drop/out/new', 403), (None, 'PUT', '/drop/in/new?tagging', 403)])
        upload = self.request('POST', '/drop/in/parts?uploads', token=None)
        self.assertEqual(upload.status, 200, upload.body)
        identity = upload.body.split(b'<UploadId>')[1].split(b'<')[0].decode()
        part = self.request('PUT', f'/drop/in/parts?partNumber=1&uploadId={identity}', b'part', token=None)
        self.assertEqual(part.status, 200, part.body)
        self.assertEqual(self.request('PUT', '/drop/in/shown', b'x', {'x-amz-acl': 'public-read'}, token=None).status, 403)

    def test_the_block_is_obeyed(self):
        self.make('blk')
        body = b'<PublicAccessBlockConfiguration><%s>true</%s></PublicAccessBlockConfiguration>'
        self.request('PUT', '/blk?acl', headers={'x-amz-acl': 'public-read'})
        self.check([(None, 'GET', '/blk/in/k', 200)])
        self.assertEqual(self.request('PUT', '/blk?publicAccessBlock', body % (b'IgnorePublicAcls', b'IgnorePublicAcls')).status, 200)
        self.check([(None, 'GET', '/blk/in/k', 403), (None, 'GET', '/blk', 403)])
        self.assertEqual(self.request('PUT', '/blk?publicAccessBlock', body % (b'BlockPublicAcls', b'BlockPublicAcls')).status, 200)
        self.assertEqual(self.request('PUT', '/blk?acl', headers={'x-amz-acl': 'public-read'}).status, 403)
        self.assertEqual(self.request('PUT', '/blk/k', b'x', {'x-amz-acl': 'public-read'}).status, 403)
        self.assertEqual(self.request('DELETE', '/blk?publicAccessBlock').status, 204)
        self.check([(None, 'GET', '/blk/in/k', 200)])

    def test_grants_of_keys_stay_exact(self):
        self.make('exact')
        reader = self.daemon.add_key('--grant', 'exact/in/=read')['token']
        self.request('PUT', '/exact?acl', headers={'x-amz-acl': 'public-read'})
        self.check([(reader, 'GET', '/exact/in/k', 200), (reader, 'GET', '/exact/out/k', 403), (reader, 'GET', '/exact', 403),
                    (reader, 'HEAD', '/exact', 200), (reader, 'GET', '/exact?location', 200), (reader, 'GET', '/exact?versioning', 403)])


if __name__ == '__main__':
    unittest.main()
