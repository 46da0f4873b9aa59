"""What the console shows at a glance and live: the runs of all buckets with their fleets."""

import json
import unittest

from tests.support.daemon import Daemon
from tests.support.runs import Run, shard, weights


def report(state='ready', **more):
    return dict({'state': state}, **more)


class Case(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.addCleanup(self.daemon.__exit__)
        self.daemon.start()

    def key(self, *grants, namespace='main'):
        reply = self.daemon.request(
            'POST', '/-/keys', json.dumps({'grants': grants, 'namespace': namespace})
        )
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json()

    def get(self, target, token=None):
        reply = self.daemon.request('GET', target, **({'token': token} if token else {}))
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()

    def runs(self, token=None, query=''):
        return self.get(f'/v1/runs{query}', token)['runs']

    def names(self, token=None):
        return [f'{run["bucket"]}/{run["run"]}' for run in self.runs(token)]


class AllRuns(Case):
    def test_a_run_is_told_as_by_itself_and_with_its_head_and_fleet(self):
        run = Run(self.daemon, 'policy')
        run.publish_all(0, 2)
        for name, what in (
            ('w-0', report(step=2)),
            ('w-1', report(step=0)),
            ('w-2', report('fetching', wanted=2)),
        ):
            self.assertEqual(run.call('PUT', f'/replicas/{name}', what).status, 200)
        (told,) = self.runs()
        alone = run.call('GET', '').json()
        self.assertEqual({name: told[name] for name in alone}, alone)
        head = run.call('GET', '/steps/2').json()
        self.assertEqual(told['head_created'], head['created'])
        self.assertEqual(told['full_bytes'], len(shard(weights(2))))
        self.assertIsNone(told['head_delta_bytes'])
        self.assertIn(told['verified'], ('pending', 'ok'))
        fleet = told['fleet']
        listed = run.call('GET', '/replicas').json()
        for name in ('states', 'expired', 'without_step', 'oldest'):
            self.assertEqual(fleet[name], listed[name])
        self.assertEqual((fleet['behind'], fleet['lag_steps']), (1, 2))
        self.assertGreaterEqual(fleet['lag_seconds'], 0)

    def test_a_rollback_turns_the_fleet_around(self):
        run = Run(self.daemon, 'policy')
        run.publish_all(0, 3)
        run.call('PUT', '/replicas/w', report(step=3))
        self.assertEqual(self.runs()[0]['fleet']['lag_steps'], 0)
        self.assertEqual(run.call('PUT', '/rollback', {'step': 1}).status, 200)
        (told,) = self.runs()
        self.assertEqual((told['rollback']['step'], told['fleet']['lag_steps']), (1, 2))
        self.assertEqual(told['fleet']['behind'], 0)

    def test_a_run_without_steps_or_replicas(self):
        Run(self.daemon, 'new')
        (told,) = self.runs()
        for name in ('head', 'head_created', 'head_delta_bytes', 'verified'):
            self.assertIsNone(told[name], name)
        self.assertEqual((told['full_bytes'], told['fleet']['lag_steps']), (0, 0))
        self.assertNotIn('oldest', told['fleet'])

    def test_pages_go_over_all_buckets_in_order(self):
        every = [
            f'{bucket}/{run}' for bucket in ('aa1', 'bb2', 'bb2-more') for run in ('A', 'a', 'b')
        ]
        for name in reversed(every):
            Run(self.daemon, name.split('/')[1], bucket=name.split('/')[0])
        self.daemon.request('PUT', '/empty')
        for limit in (1, 2, 4, 100):
            told, after = [], ''
            while after is not None:
                page = self.get(f'/v1/runs?limit={limit}&after={after}')
                self.assertLessEqual(len(page['runs']), limit)
                told += [f'{run["bucket"]}/{run["run"]}' for run in page['runs']]
                after = page.get('next')
            self.assertEqual(told, every, limit)
        self.assertEqual(self.get('/v1/runs?after=bb2/b')['runs'][0]['bucket'], 'bb2-more')

    def test_wrong_parameters_are_named(self):
        for query, word in (('limit=0', 'limit'), ('limit=x', 'limit'), ('after=models', 'after')):
            reply = self.daemon.request('GET', f'/v1/runs?{query}')
            self.assertEqual((reply.status, reply.code()), (400, 'invalid'), query)
            self.assertIn(f'parameter {word} must', reply.json()['error']['message'])

    def test_each_key_sees_what_it_may_read(self):
        for bucket, name in (('models', 'a'), ('models', 'b'), ('zoo', 'c')):
            Run(self.daemon, name, bucket=bucket).call('PUT', '/replicas/w', report())
        other = self.key(namespace='lab')
        made = self.daemon.request('PUT', '/lab--own', token=other['token'])
        self.assertEqual(made.status, 200)
        opened = self.daemon.request('POST', '/v1/runs/lab--own/d', '{}', token=other['token'])
        self.assertEqual(opened.status, 200)
        self.assertEqual(self.names(), ['lab--own/d', 'models/a', 'models/b', 'zoo/c'])
        self.assertEqual(self.names(other['token']), ['lab--own/d'])
        self.assertEqual(self.names(self.key()['token']), ['models/a', 'models/b', 'zoo/c'])
        self.assertEqual(self.names(self.key('models/b/=read')['token']), ['models/b'])
        self.assertEqual(self.names(self.key('models=list')['token']), [])
        self.assertEqual(self.names(self.key('metrics')['token']), [])
        reader = self.key('zoo=read', 'models/a/=read')
        self.assertEqual(self.names(reader['token']), ['models/a', 'zoo/c'])

    def test_a_public_bucket_shows_its_runs_but_not_their_fleets(self):
        run = Run(self.daemon, 'a')
        run.call('PUT', '/replicas/w', report())
        run.call('PUT', '/settings', {'keep_steps': 7})
        settings = {'private': False}
        reply = self.daemon.request('PUT', '/api/buckets/main/models/settings', json.dumps(settings))
        self.assertEqual(reply.status, 200, reply.body)
        (told,) = self.runs(self.key(namespace='lab')['token'])
        self.assertEqual((told['run'], told['keep_steps']), ('a', 7))
        self.assertNotIn('fleet', told)

    def test_only_writers_see_the_webhook(self):
        self.daemon.stop()
        self.daemon.arguments += ['--webhook-hosts', 'hooks.invalid']
        self.daemon.start()
        run = Run(self.daemon, 'a')
        url = 'https://hooks.invalid/secret'
        self.assertEqual(run.call('PUT', '/settings', {'webhook': url}).status, 200)
        for grants, shown in ((['models=read'], ''), (['models=read,write'], url)):
            (told,) = self.runs(self.key(*grants)['token'])
            self.assertEqual(told['settings'].get('webhook', ''), shown)
