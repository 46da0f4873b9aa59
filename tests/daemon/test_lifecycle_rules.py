"""Lifecycle rules at work, with days of one second."""
import time
import unittest

from tests.support.daemon import Daemon

RULE = '<Rule><ID>{id}</ID><Status>Enabled</Status><Filter><Prefix>{prefix}</Prefix></Filter>{action}</Rule>'
DAYS = '<Expiration><Days>{}</Days></Expiration>'
ENABLED = b'<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'


def rules(*every):
    return ('<LifecycleConfiguration>' + ''.join(RULE.format(id=f'rule-{number}', prefix=prefix, action=action)
                                                  for number, (prefix, action) in enumerate(every)) + '</LifecycleConfiguration>').encode()


class LifecycleRules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False, arguments=['--lifecycle-day', '1', '--lifecycle-interval', '1'])
        cls.daemon.start()
        cls.request = staticmethod(cls.daemon.request)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def soon(self, question, seconds=90):
        limit = time.monotonic() + seconds
        while not question():
            self.assertLess(time.monotonic(), limit, 'it did not come')
            time.sleep(0.2)

    def status(self, target):
        return self.request('HEAD', target).status

    def test_objects_expire(self):
        self.request('PUT', '/exp')
        self.assertEqual(self.request('PUT', '/exp?lifecycle', rules(('short/', DAYS.format(1)), ('long/', DAYS.format(1000)))).status, 200)
        put = self.request('PUT', '/exp/short/k', b'x')
        self.assertRegex(put.headers['x-amz-expiration'], r'^expiry-date="[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT", rule-id="rule-0"$')
        self.assertIn('rule-id="rule-1"', self.request('PUT', '/exp/long/k', b'x').headers['x-amz-expiration'])
        self.assertIn('rule-id="rule-1"', self.request('HEAD', '/exp/long/k').headers['x-amz-expiration'])
        self.assertNotIn('x-amz-expiration', self.request('PUT', '/exp/other', b'x').headers)
        self.soon(lambda: self.status('/exp/short/k') == 404)
        self.assertEqual((self.status('/exp/long/k'), self.status('/exp/other')), (200, 200))
        self.assertEqual(self.request('DELETE', '/exp?lifecycle').status, 204)
        self.request('PUT', '/exp/short/k', b'x')
        time.sleep(3)
        self.assertEqual(self.status('/exp/short/k'), 200)

    def test_versions_go_one_kind_after_the_other(self):
        self.request('PUT', '/ver')
        self.request('PUT', '/ver?versioning', ENABLED)
        for body in (b'1', b'2', b'3'):
            self.request('PUT', '/ver/k', body)
        older = '<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>1</NewerNoncurrentVersions></NoncurrentVersionExpiration>'
        self.request('PUT', '/ver?lifecycle', rules(('', older)))
        self.soon(lambda: self.request('GET', '/ver?versions').body.count(b'<Version>') == 2)
        self.assertEqual(self.request('GET', '/ver/k').body, b'3')
        self.request('PUT', '/ver?lifecycle', rules(('', DAYS.format(1) + older.replace('<NewerNoncurrentVersions>1</NewerNoncurrentVersions>', ''))))
        self.soon(lambda: self.status('/ver/k') == 404)
        self.soon(lambda: b'<Version>' not in self.request('GET', '/ver?versions').body)
        # An expiration in days removes the marker too once nothing is below it.
        self.soon(lambda: b'<DeleteMarker>' not in self.request('GET', '/ver?versions').body)
        self.assertEqual(self.request('DELETE', '/ver').status, 204)

    def test_uploads_are_aborted(self):
        self.request('PUT', '/upl')
        upload = self.request('POST', '/upl/k?uploads')
        identity = upload.body.split(b'<UploadId>')[1].split(b'<')[0].decode()
        self.request('PUT', f'/upl/k?partNumber=1&uploadId={identity}', b'part')
        self.request('PUT', '/upl?lifecycle', rules(('', '<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>')))
        self.soon(lambda: b'<Upload>' not in self.request('GET', '/upl?uploads').body)
        self.assertEqual(self.request('GET', f'/upl/k?uploadId={identity}').code(), 'NoSuchUpload')

    def test_tags_choose(self):
        self.request('PUT', '/tag')
        body = (b'<LifecycleConfiguration><Rule><ID>t</ID><Status>Enabled</Status><Filter><Tag><Key>keep</Key><Value>no</Value></Tag></Filter>'
                b'<Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>')
        self.assertEqual(self.request('PUT', '/tag?lifecycle', body).status, 200)
        self.request('PUT', '/tag/goes', b'x', {'x-amz-tagging': 'keep=no&a=b'})
        self.request('PUT', '/tag/stays', b'x', {'x-amz-tagging': 'keep=yes'})
        self.soon(lambda: self.status('/tag/goes') == 404)
        self.assertEqual(self.status('/tag/stays'), 200)

    def test_rules_survive_a_restart(self):
        with Daemon(tls=False, arguments=['--lifecycle-day', '2', '--lifecycle-interval', '1']) as daemon:
            daemon.request('PUT', '/again')
            daemon.request('PUT', '/again?lifecycle', rules(('', DAYS.format(1))))
            daemon.kill()
            daemon.start()
            self.assertIn('x-amz-expiration', daemon.request('PUT', '/again/k', b'x').headers)
            self.soon(lambda: daemon.request('HEAD', '/again/k').status == 404)


if __name__ == '__main__':
    unittest.main()
