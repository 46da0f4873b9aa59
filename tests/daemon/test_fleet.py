"""Replicas, pins and retention over the wire."""
import threading
import time
import unittest

from tests.support.daemon import Daemon
from tests.support.runs import Run


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def setUp(self):
        type(self).count += 1
        self.run_ = Run(self.daemon, f'run{self.count}')

    def expect(self, status, method, target, body=None, code=None):
        reply = self.run_.call(method, target, body)
        self.assertEqual(reply.status, status, (method, target, reply.body))
        if code:
            self.assertEqual(reply.code(), code)
        return reply

    def test_a_worker_reports_and_is_seen(self):
        self.run_.publish_all(0, 3)
        digest = self.expect(200, 'GET', '/steps/1').json()['digest']
        said = {'state': 'staging', 'step': 1, 'digest': digest, 'wanted': 3, 'error': 'none "yet"', 'tensors': 'experts.*',
                'host': 'node-1', 'colour': 'ignored'}
        answer = self.expect(200, 'PUT', '/replicas/w:1', said).json()
        self.assertEqual((answer['head'], answer['lease_s'], answer['staleness']['steps']), (3, 120, 2))
        self.assertEqual((answer['report_s'], answer['passing_s']), (30, 0))
        seen = self.expect(200, 'GET', '/replicas/w:1').json()
        for name in ('state', 'step', 'digest', 'wanted', 'error', 'tensors', 'host'):
            self.assertEqual(seen[name], said[name])
        self.assertEqual((seen['expired'], seen['id']), (False, 'w:1'))
        listed = self.expect(200, 'GET', '/replicas').json()
        self.assertEqual([replica['id'] for replica in listed['replicas']], ['w:1'])
        self.assertEqual((listed['states']['staging'], listed['oldest'], listed['head'], listed['expired']), (1, 1, 3, 0))
        self.assertEqual((listed['without_step'], listed['lease_s'], listed['report_s']), (0, 120, 30))
        self.assertLess(listed['oldest_report_s'], 30)
        self.expect(200, 'PUT', '/replicas/w:2', {'state': 'error', 'error': 'its disk is full'})
        listed = self.expect(200, 'GET', '/replicas?limit=1').json()
        self.assertEqual((listed['without_step'], listed['oldest']), (1, 1))
        self.expect(204, 'DELETE', '/replicas/w:2')
        self.expect(204, 'DELETE', '/replicas/w:1')
        self.expect(404, 'DELETE', '/replicas/w:1', code='not_found')
        self.expect(404, 'GET', '/replicas/w:1', code='not_found')
        listed = self.expect(200, 'GET', '/replicas').json()
        self.assertEqual((listed['replicas'], listed['oldest_report_s']), ([], None))

    def test_bad_replicas_are_refused(self):
        self.run_.publish_all(0, 0)
        for body in ('', '[]', '{}', '{"state":"happy"}', '{"state":"ready","step":-1}', '{"state":"ready","digest":"xxh3-128:'
                     + '0' * 32 + '"}', '{"state":"ready","step":0,"digest":"md5"}', '{"state":"ready","error":5}',
                     '{"state":"ready","host":"' + 'h' * 257 + '"}', '{"state":"ready","error":"' + 'e' * 1025 + '"}'):
            self.expect(400, 'PUT', '/replicas/w', body, code='invalid')
        for name in ('.w', '-w', 'w%20w', 'w' * 129, 'w%2Fw', '%C3%A4'):
            self.expect(400, 'PUT', f'/replicas/{name}', {'state': 'idle'}, code='invalid')
        self.expect(404, 'PUT', '/replicas/w', {'state': 'ready', 'step': 1}, code='no_step')
        self.assertEqual(self.expect(200, 'GET', '/replicas').json()['replicas'], [])
        reply = self.daemon.request('PUT', '/v1/runs/models/nope/replicas/w', '{"state":"idle"}')
        self.assertEqual((reply.status, reply.code()), (404, 'no_run'))

    def test_readers_may_report_but_not_pin(self):
        self.run_.publish_all(0, 0)
        made = self.daemon.request('POST', '/-/keys', f'{{"grants":["models/{self.run_.name}/=read"]}}')
        self.assertIn(made.status, (200, 201), made.body)
        token = made.json()['token']
        self.assertEqual(self.run_.call('PUT', '/replicas/w', {'state': 'ready', 'step': 0}, token=token).status, 200)
        self.assertEqual(self.run_.call('GET', '/replicas', token=token).status, 200)
        self.assertEqual(self.run_.call('PUT', '/pins/p', {'step': 0}, token=token).status, 403)
        self.assertEqual(self.run_.call('PUT', '/replicas/w', {'state': 'idle'}, token=None).status, 401)

    def test_pages(self):
        for i in range(25):
            self.expect(200, 'PUT', f'/replicas/w{i:02}', {'state': 'idle'})
        names, after = [], ''
        while True:
            page = self.expect(200, 'GET', f'/replicas?limit=10&after={after}').json()
            names += [replica['id'] for replica in page['replicas']]
            after = page.get('next')
            if not after:
                break
        self.assertEqual(names, [f'w{i:02}' for i in range(25)])

    def test_pins(self):
        self.run_.publish_all(0, 2)
        pin = self.expect(200, 'PUT', '/pins/best', {'step': 1}).json()
        self.assertEqual((pin['name'], pin['step'], pin['expires']), ('best', 1, None))
        self.assertIsNotNone(self.expect(200, 'PUT', '/pins/soon', {'step': 0, 'ttl_s': 3600}).json()['expires'])
        self.assertEqual([p['name'] for p in self.expect(200, 'GET', '/pins').json()['pins']], ['best', 'soon'])
        reply = self.expect(409, 'DELETE', '/steps/1', code='chain_in_use')
        self.assertIn("'best'", reply.json()['error']['message'])
        self.expect(204, 'DELETE', '/pins/best')
        self.expect(404, 'GET', '/pins/best', code='not_found')
        self.expect(204, 'DELETE', '/steps/1')
        self.expect(410, 'PUT', '/pins/late', {'step': 1}, code='collected')
        self.expect(404, 'PUT', '/pins/early', {'step': 9}, code='no_step')
        for body in ('', '{}', '{"step":"1"}', '{"step":0,"ttl_s":-1}', '{"step":0,"ttl_s":99999999999}'):
            self.expect(400, 'PUT', '/pins/bad', body, code='invalid')

    def test_a_short_pin_ends(self):
        self.run_.publish_all(0, 1)
        self.expect(200, 'PUT', '/pins/stays', {'step': 0, 'ttl_s': 1000})
        self.expect(409, 'DELETE', '/steps/0', code='chain_in_use')
        self.expect(200, 'PUT', '/pins/blink', {'step': 0, 'ttl_s': 1})
        self.expect(204, 'DELETE', '/pins/stays')
        time.sleep(1.1)
        self.expect(404, 'GET', '/pins/blink')
        self.expect(204, 'DELETE', '/steps/0')

    def test_a_refused_delete_says_who_needs_the_step(self):
        self.run_.publish_all(0, 4)
        self.expect(200, 'PUT', '/replicas/slow', {'state': 'ready', 'step': 1})
        self.assertIn("'slow'", self.expect(409, 'DELETE', '/steps/3', code='chain_in_use').json()['error']['message'])
        self.expect(204, 'DELETE', '/steps/0')
        self.expect(204, 'DELETE', '/replicas/slow')
        self.expect(204, 'DELETE', '/steps/3')
        self.expect(200, 'GET', '/path?want=2')
        self.assertIn('reader', self.expect(409, 'DELETE', '/steps/2', code='chain_in_use').json()['error']['message'])

    def test_retention_keeps_what_is_held(self):
        self.expect(200, 'PUT', '/settings', {'keep_steps': 2})
        self.run_.publish_all(0, 1)
        self.expect(200, 'PUT', '/replicas/slow', {'state': 'ready', 'step': 1})
        self.run_.publish_all(2, 6)
        self.expect(410, 'GET', '/steps/0', code='collected')
        for step in range(1, 7):
            self.expect(200, 'GET', f'/steps/{step}')
        self.expect(200, 'PUT', '/replicas/slow', {'state': 'ready', 'step': 6})
        self.run_.publish_all(7, 7)
        for step in range(1, 6):
            self.expect(410, 'GET', f'/steps/{step}', code='collected')
        self.expect(200, 'GET', '/steps/6')

    def test_leases_survive_a_kill(self):
        with Daemon(tls=False) as daemon:
            run = Run(daemon, 'run')
            run.publish_all(0, 4)
            self.assertEqual(run.call('PUT', '/replicas/w', {'state': 'ready', 'step': 1, 'host': 'node'}).status, 200)
            self.assertEqual(run.call('PUT', '/pins/p', {'step': 0}).status, 200)
            daemon.kill()
            daemon.start()
            seen = run.call('GET', '/replicas/w').json()
            self.assertEqual((seen['step'], seen['host'], seen['expired']), (1, 'node', False))
            self.assertEqual(run.call('DELETE', '/steps/2').status, 409)
            self.assertEqual(run.call('DELETE', '/steps/0').status, 409)

    def test_versions_that_must_not_be_older(self):
        self.expect(425, 'GET', '/steps/latest?min_version=0', code='not_ready')
        self.expect(425, 'GET', '/steps/latest?exact_version=0', code='not_ready')
        self.run_.publish_all(0, 2)
        for target in ('/steps/latest?min_version=2', '/steps/latest?exact_version=1', '/steps/1?min_version=2', '/steps/1?exact_version=1',
                       '/path?min_version=1', '/path?exact_version=1', '/path?want=1&exact_version=1'):
            self.expect(200, 'GET', target)
        self.assertEqual(self.expect(200, 'GET', '/steps/latest?exact_version=1').json()['step'], 1)
        self.assertEqual(self.expect(200, 'GET', '/steps/latest?min_version=1').json()['step'], 2)
        self.assertEqual(self.expect(200, 'GET', '/path?exact_version=1').json()['to'], 1)
        for target in ('/steps/latest?min_version=3', '/steps/latest?exact_version=3&wait=1', '/steps/1?min_version=3', '/steps/3?exact_version=3',
                       '/path?min_version=3', '/path?exact_version=3', '/path?want=1&min_version=3'):
            reply = self.expect(425, 'GET', target, code='not_ready')
            self.assertEqual(reply.headers['Retry-After'], '1')
        self.expect(204, 'GET', '/steps/latest?after=2&min_version=1')
        self.expect(404, 'GET', '/steps/3', code='no_step')
        self.expect(404, 'GET', '/path?want=3', code='no_step')
        for target in ('/steps/latest?min_version=x', '/steps/latest?min_version=1&exact_version=1', '/steps/latest?after=1&exact_version=2',
                       '/steps/1?exact_version=2', '/path?want=1&exact_version=2'):
            self.expect(400, 'GET', target, code='invalid')
        self.expect(200, 'PUT', '/settings', {'keep_steps': 1})
        self.expect(410, 'GET', '/steps/latest?exact_version=0', code='collected')

    def test_waiting_for_a_version(self):
        self.run_.publish_all(0, 0)
        got = {}

        def wait(target):
            got[target] = self.run_.call('GET', target)

        targets = ['/steps/latest?min_version=2&wait=20', '/steps/latest?exact_version=1&wait=20']
        threads = [threading.Thread(target=wait, args=(target,)) for target in targets]
        for thread in threads:
            thread.start()
        self.run_.publish_all(1, 2)
        for thread in threads:
            thread.join()
        self.assertEqual([(got[target].status, got[target].json()['step']) for target in targets], [(200, 2), (200, 1)])

    def test_many_workers_at_once(self):
        self.run_.publish_all(0, 1)
        failures = []

        def renew(worker):
            connection = self.daemon.connect()
            for turn in range(20):
                reply = self.run_.call('PUT', f'/replicas/w{worker}', {'state': 'ready', 'step': turn % 2}, connection=connection)
                if reply.status != 200:
                    failures.append(reply.body)
            connection.close()

        threads = [threading.Thread(target=renew, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.expect(200, 'GET', '/replicas').json()['states']['ready'], 16)

    def test_keys_of_steps_may_go_and_the_bucket_not(self):
        self.run_.publish_all(0, 1)
        bytes_ = self.expect(200, 'GET', '/steps/0/objects/anchor/model.safetensors').body
        key = f'/models/{self.run_.name}/a0'
        self.assertEqual(self.daemon.request('PUT', key, b'other').status, 200)
        self.assertEqual(self.expect(200, 'GET', '/steps/0/objects/anchor/model.safetensors').body, bytes_)
        self.assertEqual(self.daemon.request('DELETE', key).status, 204)
        self.assertEqual(self.expect(200, 'GET', '/steps/0/objects/anchor/model.safetensors').body, bytes_)
        other = Run(self.daemon, 'only', bucket='empty')
        self.daemon.request('DELETE', '/empty/scratch')
        reply = self.daemon.request('DELETE', '/empty')
        self.assertEqual((reply.status, reply.code()), (409, 'BucketNotEmpty'))
        self.assertEqual(other.call('DELETE', '').status, 204)
        self.assertEqual(self.daemon.request('DELETE', '/empty').status, 204)


if __name__ == '__main__':
    unittest.main()
