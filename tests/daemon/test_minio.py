"""The paths that MinIO's client asks beside S3: health for anyone, and an administration that is not here."""

import signal
import unittest

from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.signer import Signer

THREADS_MEET = False

HEALTH = ('live', 'ready', 'cluster', 'cluster/read')


class Minio(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.request = staticmethod(cls.daemon.request)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def test_health_is_told_to_anyone(self):
        for path in HEALTH:
            for method in ('GET', 'HEAD'):
                reply = self.request(method, f'/minio/health/{path}', token=None)
                self.assertEqual((reply.status, reply.body), (200, b''), path)
        reply = self.request('GET', '/minio/health/cluster?maintenance=true', token=None)
        self.assertEqual((reply.status, reply.code()), (412, 'PreconditionFailed'))

    def test_administration_is_not_here(self):
        for target in (
            '/minio/admin/v3/info',
            '/minio/admin/v3/list-users',
            '/minio/admin/v4/info',
        ):
            signer = Signer.of(self.daemon, region='')  # as MinIO's client signs it
            reply = self.request('GET', target, headers=signer.headers('GET', target), token=None)
            self.assertEqual((reply.status, reply.code()), (501, 'NotImplemented'), reply.body)
            self.assertIn(b'deltabucket', reply.body)
            self.assertEqual(self.request('GET', target, token=None).code(), 'AccessDenied')
            self.assertEqual(
                self.request('GET', target, token='wrong').code(), 'InvalidAccessKeyId'
            )

    def test_metrics_are_elsewhere(self):
        for token in (ROOT_TOKEN, None):
            reply = self.request('GET', '/minio/v2/metrics/cluster', token=token)
            self.assertEqual((reply.status, reply.code()), (501, 'NotImplemented'))
            self.assertIn(b'/-/metrics', reply.body)

    def test_what_is_not_here_is_no_error_of_the_log(self):
        self.request('GET', '/minio/v2/metrics/node')
        self.daemon.process.send_signal(signal.SIGUSR1)
        self.daemon.await_log('path=/minio/v2/metrics/node')
        told = [line for line in self.daemon.log().splitlines() if 'request_failed' in line]
        self.assertTrue(any('error=unsupported' in line for line in told), told)
        self.assertFalse([line for line in told if ' error ' in line], told)

    def test_events_are_not_a_listing(self):
        """minio-py asks for them anew as soon as an answer ends."""
        self.request('PUT', '/watched')
        for target in (
            '/?prefix=&suffix=&events=s3%3AObjectCreated%3A%2A&ping=10',
            '/watched?prefix=&suffix=&events=s3%3AObjectCreated%3A%2A&ping=10',
        ):
            reply = self.request('GET', target)
            self.assertEqual((reply.status, reply.code()), (501, 'NotImplemented'), reply.body)
            self.assertIn(b'<Header>events</Header>', reply.body)

    def test_a_bucket_may_have_the_name(self):
        self.assertEqual(self.request('PUT', '/minio').status, 200)
        for key in ('k', 'health/k', 'admin/k'):
            self.assertEqual(self.request('PUT', f'/minio/{key}', b'text').status, 200)
            self.assertEqual(self.request('GET', f'/minio/{key}').body, b'text')
            self.assertEqual(self.request('GET', f'/minio/{key}', token=None).status, 403)


if __name__ == '__main__':
    unittest.main()
