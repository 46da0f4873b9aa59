"""GET /-/may: what a cache asks before it answers a reader."""
import os
import unittest
import urllib.parse

from tests.support.daemon import ROOT_TOKEN, Daemon, bytes_alone, other_letter
from tests.support.runs import Run
from tests.support.xet import Cas, raw

RUN = '/v1/runs/models/r'
KEPT = ('/steps/0', '/steps/0?tensors=true', '/steps/latest', '/steps/latest?after=3&wait=60', '/path', '/path?have=0&wait=9',
        '/steps/0/objects/anchor/model.safetensors', '/steps/0/objects/anchor/model.safetensors?v=' + 32 * '0',
        '/folds/0-4/objects/delta.safetensors')
OTHERS = ('', '/steps', '/steps/0/changes', '/replicas', '/pins', '/settings')


@bytes_alone
class May(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()
        Run(cls.daemon, 'r').publish_all(0, 0)
        cls.reader = cls.daemon.add_key('--grant', 'models/r/=read')['token']
        cls.other = cls.daemon.add_key('--grant', 'models/s/=read')['token']

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def may(self, target, token=None, method='GET'):
        return self.daemon.request(method, f'/-/may?path={target}', token=token)

    def status(self, target, token=None):
        """The same answer in both forms."""
        whole, encoded = self.may(target, token), self.may(urllib.parse.quote(target, safe=''), token)
        self.assertEqual(whole.status, encoded.status, target)
        return whole.status

    def test_readers_of_the_run_may(self):
        for rest in KEPT:
            statuses = [self.status(RUN + rest, token) for token in (ROOT_TOKEN, self.reader, self.other, 'none', None)]
            self.assertEqual(statuses, [204, 204, 403, 401, 401], rest)
        reply = self.may(RUN + '/path', self.reader)
        self.assertEqual((reply.headers['Cache-Control'], reply.body), ('private, max-age=60', b''))
        self.assertEqual(self.may(RUN + '/path', self.reader, 'HEAD').status, 204)

    def test_other_paths_are_not_judged(self):
        for target in [RUN + rest for rest in OTHERS] + ['/', '/models/r/a0', '/-/keys', '/-/may?path=/', '/-/health', '/xet/v1/fetch']:
            self.assertEqual(self.status(target, ROOT_TOKEN), 404, target)
        for target in ('', 'v1', '%zz', '%2F%00'):
            self.assertEqual(self.may(target, ROOT_TOKEN).status, 400, target)

    def test_the_target_is_judged_as_it_is_sent(self):
        """Neither dots nor encoded slashes lead to another run."""
        for target in ('/v1/runs/models/s/../r/steps/0', '/v1/runs/models%2Fr/steps/0', '//v1/runs/models/r/steps/0', RUN + '//steps/0'):
            self.assertEqual(self.may(target, self.reader).status, 404, target)
        self.assertEqual(self.may('/v1/runs/models/s/steps/0/objects/../../../../r/x', self.reader).status, 403)
        self.assertEqual(self.may('/v1/runs/models/%72/steps/0', self.reader).status, 204)
        self.assertEqual(self.may('/v1/runs/models/s/path?have=0&path=/v1/runs/models/r/path', self.reader).status, 403)

    def test_a_revoked_key_may_not(self):
        key = self.daemon.add_key('--grant', 'models/r/=read')
        self.assertEqual(self.status(RUN + '/path', key['token']), 204)
        self.daemon.request('DELETE', f'/-/keys/{key["key_id"]}')
        self.assertEqual(self.status(RUN + '/path', key['token']), 401)

    def test_a_fetch_url_is_the_permission(self):
        content = os.urandom(50_000)
        self.daemon.request('PUT', '/data')
        self.daemon.request('PUT', '/data/a', content)
        name = self.daemon.request('HEAD', '/data/a').headers['x-deltabucket-file-hash']
        key = self.daemon.add_key('--grant', 'data=read')
        plan = Cas(self.daemon, 'main/data', 'read', token=key['token']).reconstruction(raw(name)).json()
        target = next(iter(plan['xorbs'].values()))[0]['url'].removeprefix(self.daemon.endpoint)
        self.assertEqual([self.status(target), self.status(target, self.other)], [204, 204])
        self.assertEqual(self.status(other_letter(target, -9), ROOT_TOKEN), 403)
        self.daemon.request('DELETE', f'/-/keys/{key["key_id"]}')
        self.assertEqual(self.status(target), 403)

    def test_it_makes_nothing_and_reads_no_step(self):
        self.assertEqual(self.status('/v1/runs/models/r/steps/7/objects/anchor/x', self.reader), 204)
        self.assertEqual(self.daemon.request('GET', RUN + '/steps/7/objects/anchor/x', token=self.reader).status, 404)


if __name__ == '__main__':
    unittest.main()
