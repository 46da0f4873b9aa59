"""What the console shows at a glance and live: the runs of all buckets with their fleets, the server,
and the stream of what changes."""

import http.client
import json
import os
import tempfile
import threading
import time
import unittest

from tests.support.checkpoints import expand_small
from tests.support.daemon import REPLY_SECONDS, ROOT_TOKEN, Daemon
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
        self.assertLessEqual(fleet['oldest_report_s'], listed['oldest_report_s'])
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
        self.assertEqual((told['fleet']['oldest'], told['fleet']['oldest_report_s']), (None, None))

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


class Overview(Case):
    def overview(self, token=None):
        return self.get('/-/overview', token)

    def test_an_operator_sees_the_whole_server(self):
        run = Run(self.daemon, 'a')
        run.publish_all(0, 1)
        self.daemon.request('PUT', '/empty')
        self.daemon.request('PUT', '/models/large', os.urandom(1000000))
        run.call('PUT', '/replicas/w', report())
        told = self.overview()
        self.assertEqual((told['buckets'], told['runs'], told['warnings']), (2, 1, []))
        self.assertRegex(told['version'], r'^\d+\.\d+\.\d+')
        self.assertLess(told['started'], told['time'])
        objects = self.get('/-/buckets/models')  # it is there
        self.assertEqual(objects['bucket'], 'models')
        size = len(shard(weights(0)))
        self.assertGreaterEqual(told['stored']['logical_bytes'], 1000000 + 2 * size)
        self.assertGreaterEqual(told['stored']['stored_bytes'], 1000000)
        disk = told['disk']
        self.assertLess(disk['free'], disk['bytes'])
        self.assertLessEqual(disk['reserve'], disk['bytes'] // 8)
        self.assertFalse(disk['full'])
        self.assertEqual(told['now']['steps_published'], 2)
        self.assertGreater(told['now']['requests'], 4)
        self.assertEqual(
            [work['name'] for work in told['work']],
            'gc scrub proof derive lifecycle file_hash journal catalog_check'.split(),
        )
        for work in told['work']:
            self.assertIn(work['state'], ('resting', 'working', 'off'))
            self.assertEqual(work['waiting'] is None, work['name'] != 'derive')

    def work(self, name):
        return next(work for work in self.overview()['work'] if work['name'] == name)

    def test_work_says_what_it_did(self):
        self.assertEqual(self.daemon.request('POST', '/-/gc', b'{"dry_run":true}').status, 200)
        told = self.work('gc')
        self.assertEqual((told['state'], told['detail'], self.get('/-/storage')['gc']['last']), ('resting', '', None))
        self.daemon.request('PUT', '/models')
        self.assertEqual(self.daemon.request('PUT', '/models/large', os.urandom(3_000_000)).status, 200)
        self.assertEqual(self.daemon.request('POST', '/-/gc', b'{}').status, 200)
        told = self.work('gc')
        self.assertEqual(told['state'], 'resting')
        self.assertRegex(told['detail'], r'^its last round looked at \d+ packs and freed 0 B$')
        self.daemon.request('DELETE', '/models/large')
        self.assertEqual(self.daemon.request('POST', '/-/gc', b'{"live_percent":100}').status, 200)
        detail = self.work('gc')['detail']
        self.assertRegex(detail, r'^its last round looked at \d+ packs and freed 3\.\d MB$')
        self.assertEqual(self.daemon.request('POST', '/-/gc', b'{"dry_run":true}').status, 200)
        self.assertEqual(self.work('gc')['detail'], detail)
        self.daemon.request('PUT', '/models/large', os.urandom(3_000_000))
        self.assertEqual(self.daemon.request('POST', '/-/scrub', b'{}').status, 200)
        self.assertRegex(self.work('scrub')['detail'], r'^its last round verified 3\.\d MB$')

    def test_work_that_is_switched_off_says_so(self):
        self.daemon.stop()
        self.daemon.arguments += ['--derive=no', '--step-work=no']
        self.daemon.start()
        self.assertEqual(self.work('derive')['state'], 'off')
        self.assertEqual(self.work('proof')['state'], 'off')
        self.assertEqual(self.work('gc')['state'], 'resting')

    def test_others_see_their_share_and_no_numbers(self):
        for bucket, name in (('models', 'a'), ('models', 'b'), ('zoo', 'c')):
            Run(self.daemon, name, bucket=bucket)
        lab = self.key(namespace='lab')['token']
        self.daemon.request('PUT', '/lab--own', token=lab)
        for token, buckets, runs in (
            (lab, 1, 0),
            (self.key()['token'], 2, 3),
            (self.key('models/b/=read', 'models/a/=list', 'gone=read')['token'], 1, 1),
        ):
            told = self.overview(token)
            self.assertEqual((told['buckets'], told['runs']), (buckets, runs))
            for name in ('disk', 'stored', 'now', 'work'):
                self.assertNotIn(name, told)
        metrics = self.overview(self.key('metrics')['token'])
        self.assertEqual((metrics['buckets'], metrics['runs']), (0, 0))
        self.assertEqual(metrics['now']['steps_published'], 0)

    def sent(self):
        stored = self.overview()['stored']
        return stored['sent_bytes'], stored['full_bytes_sent']

    def await_sent(self, least):
        """A reply is counted when the server has put it behind it, which may be just after."""
        limit = time.monotonic() + REPLY_SECONDS
        while self.sent()[0] < least:
            self.assertLess(time.monotonic(), limit)
        return self.sent()

    def test_bytes_sent_are_told_beside_whole_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            checkpoints = expand_small(folder, 2)
            self.daemon.request('PUT', '/models')
            for step in (0, 1):
                self.daemon.client('publish', '--run', 'models/r', '--step', step, checkpoints[step])
            full = os.path.getsize(checkpoints[1])
        forms = self.get('/v1/runs/models/r/steps/1')['forms']
        (made,) = next(form for form in forms if form['kind'] == 'delta')['objects']
        url, size = f'/v1/runs/models/r/{made["url"]}', made['size']
        before = self.sent()
        self.assertEqual(self.daemon.request('HEAD', url).status, 200)
        self.assertEqual(self.sent(), before)
        self.assertEqual(len(self.daemon.request('GET', url).body), size)
        self.assertEqual(self.await_sent(before[0] + size), (before[0] + size, before[1] + full))
        middle = size // 3
        for part in (f'0-{middle - 1}', f'{middle}-'):
            reply = self.daemon.request('GET', url, headers={'Range': f'bytes={part}'})
            self.assertEqual(reply.status, 206)
        sent, whole = self.await_sent(before[0] + 2 * size)
        self.assertEqual(sent, before[0] + 2 * size)
        self.assertAlmostEqual(whole, before[1] + 2 * full, delta=2)
        url = '/v1/runs/models/r/steps/0/objects/anchor/model.safetensors'
        bytes_of_anchor = len(self.daemon.request('GET', url).body)
        both = self.await_sent(sent + bytes_of_anchor)
        self.assertEqual(both, (sent + bytes_of_anchor, whole + bytes_of_anchor))


class Stream:
    """A stream of events that began with hello. Each next() is the name of one and its data."""

    def __init__(self, daemon, query, token=ROOT_TOKEN, hello=True):
        self.connection = daemon.connect()
        headers = {'Authorization': f'Bearer {token}'}
        self.connection.request('GET', f'/-/events?{query}', headers=headers)
        self.reply = self.connection.getresponse()
        if hello:
            event, data = self.next()
            assert (event, list(data)) == ('hello', ['time']), (event, data)

    def next(self):
        """None at the end."""
        fields = {}
        while line := self.reply.readline().decode():
            if line == '\n' and 'event' in fields:
                return fields['event'], json.loads(fields['data'])
            name, separator, value = line.rstrip('\n').partition(': ')
            if name and separator:
                fields[name] = value
        return None

    def until(self, event, found=lambda data: True):
        """Reads on to the first such event."""
        while True:
            name, data = self.next()
            if name == event and found(data):
                return data

    def close(self):
        self.connection.close()


class Events(Case):
    def follow(self, query, token=ROOT_TOKEN):
        stream = Stream(self.daemon, query, token)
        self.addCleanup(stream.close)
        return stream

    def test_a_run_is_told_as_the_list_tells_it(self):
        stream = self.follow('runs=1')
        run = Run(self.daemon, 'a')
        stream.until('run', lambda run: run['head'] is None)
        run.publish_all(0, 1)
        told = stream.until('run', lambda run: run['head'] == 1 and run['verified'] == 'ok')
        (listed,) = self.runs()
        self.assertEqual(told, listed)
        run.call('PUT', '/settings', {'keep_steps': 9})
        stream.until('run', lambda run: run['keep_steps'] == 9)
        run.call('PUT', '/rollback', {'step': 0})
        told = stream.until('run', lambda run: 'rollback' in run)
        self.assertEqual(told['rollback']['step'], 0)
        run.call('DELETE', '/rollback')
        stream.until('run', lambda run: 'rollback' not in run)
        self.assertEqual(run.call('DELETE', '').status, 204)
        self.assertEqual(stream.until('run_removed'), {'bucket': 'models', 'run': 'a'})

    def test_a_run_is_told_when_its_fleet_moves_but_not_when_it_only_renews(self):
        run = Run(self.daemon, 'a')
        other = Run(self.daemon, 'b')
        run.publish_all(0, 1)
        run.call('PUT', '/replicas/w', report(step=0))
        self.await_proof('models/a')
        stream = self.follow('runs=1')
        run.call('PUT', '/replicas/w', report(step=0))
        other.call('PUT', '/replicas/w', report())
        self.assertEqual(stream.until('run')['run'], 'b')
        run.call('PUT', '/replicas/w', report(step=1))
        told = stream.until('run')
        self.assertEqual((told['run'], told['fleet']['oldest']), ('a', 1))

    def await_proof(self, name):
        limit = time.monotonic() + REPLY_SECONDS
        while any(step['verified'] == 'pending' for step in self.get(f'/v1/runs/{name}/steps')['steps']):
            self.assertLess(time.monotonic(), limit)

    def test_replicas_are_told_as_the_list_tells_them(self):
        run = Run(self.daemon, 'a')
        run.publish_all(0, 1)
        run.call('PUT', '/replicas/quiet', report(step=1))
        stream = self.follow('replicas=models/a')
        for name in ('w-1', 'w-0'):
            run.call('PUT', f'/replicas/{name}', report(step=0, host=name))
        rows = {}
        while len(rows) < 2:
            data = stream.until('replicas')
            self.assertEqual((data['run'], data['head']), ('models/a', 1))
            rows.update((row['id'], row) for row in data['replicas'])
        listed = run.call('GET', '/replicas').json()
        for name in ('states', 'expired', 'oldest', 'without_step'):
            self.assertEqual(data[name], listed[name])
        self.assertLessEqual(data['oldest_report_s'], listed['oldest_report_s'])
        same = [{**row, 'staleness': None} for row in listed['replicas'] if row['id'] != 'quiet']
        told = [{**rows[name], 'staleness': None} for name in sorted(rows)]
        self.assertEqual(told, same)
        self.assertEqual([row['staleness']['steps'] for row in rows.values()], [1, 1])
        run.call('DELETE', '/replicas/w-0')
        self.assertEqual(stream.until('replicas')['removed'], ['w-0'])
        before = rows['w-1']['updated']
        run.call('PUT', '/replicas/w-1', report(step=0, host='w-1'))  # it only renews
        (row,) = stream.until('replicas')['replicas']
        self.assertGreater(row['updated'], before)
        run.publish_all(2, 2)
        data = stream.until('replicas', lambda data: data['head'] == 2)
        self.assertEqual(data['replicas'], [])

    def test_a_lease_that_ends_is_told(self):
        run = Run(self.daemon, 'a')
        run.call('PUT', '/settings', {'lease_s': 10})
        stream = self.follow('replicas=models/a&runs=1')
        run.call('PUT', '/replicas/w', report())
        stream.until('run', lambda run: run['fleet']['states']['ready'] == 1)
        rows, told = [], set()
        while told != {'run', 'replicas'}:
            event, data = stream.next()
            if (data if event == 'replicas' else data['fleet'])['expired'] == 1:
                told.add(event)
                rows += data.get('replicas', [])
        self.assertEqual(rows[-1]['expired'], True)

    def test_a_key_hears_of_nothing_that_it_may_not_read(self):
        for bucket, name in (('models', 'a'), ('models', 'b'), ('zoo', 'c')):
            Run(self.daemon, name, bucket=bucket)
        token = self.key('models/a/=read')['token']
        stream = self.follow('runs=1&replicas=models/a', token)
        everything = self.follow('runs=1')
        for bucket, name in (('zoo', 'c'), ('models', 'b'), ('models', 'a')):
            run = Run(self.daemon, name, bucket=bucket)
            run.call('PUT', '/replicas/w', report())
        for bucket, name in (('zoo', 'c'), ('models', 'b')):
            self.daemon.request('DELETE', f'/v1/runs/{bucket}/{name}')
            everything.until('run_removed', lambda data, name=name: data['run'] == name)
        self.daemon.request('DELETE', '/v1/runs/models/a')
        seen = []
        while not seen or seen[-1][0] != 'run_removed':
            seen.append(stream.next())
        self.assertNotIn('"b"', json.dumps(seen))
        self.assertNotIn('"c"', json.dumps(seen))
        self.assertLessEqual({name for name, _ in seen}, {'run', 'replicas', 'reset', 'run_removed'})
        self.assertEqual(seen[-1][1], {'bucket': 'models', 'run': 'a'})

    def refuse(self, query, status, code, token=ROOT_TOKEN):
        reply = self.daemon.request('GET', f'/-/events?{query}', token=token)
        self.assertEqual((reply.status, reply.code()), (status, code), query)

    def test_who_may_follow_what(self):
        Run(self.daemon, 'a')
        reader = self.key('models/a/=read')['token']
        self.refuse('server=1', 403, 'denied', reader)
        self.refuse('server=1', 403, 'denied', self.key()['token'])
        self.refuse('replicas=models/b', 403, 'denied', reader)
        self.refuse('replicas=models/a&replicas=zoo/c', 403, 'denied', reader)
        self.follow('server=1', self.key('metrics')['token'])
        self.follow('replicas=models%2Fa', reader)
        self.refuse('replicas=models/b', 404, 'no_run')
        self.refuse('replicas=models', 400, 'invalid')
        self.refuse('', 400, 'invalid')
        self.refuse('runs=0', 400, 'invalid')
        self.refuse('&'.join(['replicas=models/a'] * 5), 400, 'invalid')

    def test_the_stream_of_a_revoked_key_ends(self):
        Run(self.daemon, 'a')
        made = self.key('models/a/=read')
        stream = self.follow('runs=1&replicas=models/a', made['token'])
        began = time.monotonic()
        self.assertEqual(self.daemon.request('DELETE', f'/-/keys/{made["key_id"]}').status, 204)
        self.assertIsNone(stream.next())
        self.assertLess(time.monotonic() - began, REPLY_SECONDS)

    def test_a_run_that_is_removed_ends_what_follows_it(self):
        run = Run(self.daemon, 'a')
        run.call('PUT', '/replicas/w', report())
        stream = self.follow('replicas=models/a')
        run.call('DELETE', '')
        self.assertEqual(stream.until('reset'), {'reason': 'run_removed', 'run': 'models/a'})
        run.open()
        run.call('PUT', '/replicas/w', report())
        other = self.follow('replicas=models/a')
        run.call('PUT', '/replicas/w', report('error', error='no'))
        self.assertEqual(other.until('replicas')['states']['error'], 1)
        self.daemon.stop()
        self.assertEqual(stream.next(), ('reconnect', {}))

    def test_the_server_tells_what_changed_of_it(self):
        stream = self.follow('server=1')
        Run(self.daemon, 'a').publish_all(0, 0)
        data = stream.until('server', lambda data: 'steps_published' in data)
        self.assertEqual(data['steps_published'], 1)
        self.assertIn('time', data)
        self.assertNotIn('damaged_chunks', data)
        self.assertEqual(self.daemon.request('POST', '/-/scrub', b'{}').status, 200)
        work = stream.until('server', lambda data: 'work' in data and 'verified' in json.dumps(data))
        self.assertEqual(len(work['work']), 8)
        self.assertNotIn('warnings', work)

    def test_a_stop_is_told(self):
        streams = [self.follow(query) for query in ('runs=1', 'server=1')]
        ends = []
        for stream in streams:
            thread = threading.Thread(target=lambda s=stream: ends.append((s.until('reconnect'), s.next())))
            thread.start()
            self.addCleanup(thread.join)
        self.daemon.stop()
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join(REPLY_SECONDS)
        self.assertEqual(ends, [({}, None)] * 2)

    def test_streams_have_places_like_those_of_buckets(self):
        before = self.get('/-/overview')['now']['streams']
        stream = self.follow('runs=1')
        self.assertEqual(self.get('/-/overview')['now']['streams'], before + 1)
        stream.close()

    def put_many(self, name, ids, state, step):
        """As a fleet does: several connections, each for a share of the workers."""
        def put(share):
            connection = http.client.HTTPConnection('127.0.0.1', self.daemon.port)
            for replica in share:
                body = json.dumps(report(state, step=step))
                headers = {'Authorization': f'Bearer {ROOT_TOKEN}'}
                connection.request('PUT', f'/v1/runs/{name}/replicas/{replica}', body, headers)
                reply = connection.getresponse()
                reply.read()
                assert reply.status == 200, reply.status
            connection.close()
        threads = [threading.Thread(target=put, args=(ids[i::8],)) for i in range(8)]
        for thread in threads:
            thread.start()
        return threads

    def list_all(self, name):
        rows, after = {}, ''
        while after is not None:
            page = self.get(f'/v1/runs/{name}/replicas?limit=1000&after={after}')
            rows.update((row['id'], row) for row in page['replicas'])
            after = page.get('next')
        return rows

    def test_ten_thousand_replicas_are_told_and_end_as_listed(self):
        run = Run(self.daemon, 'a')
        run.publish_all(0, 1)
        stream = self.follow('replicas=models/a')
        slow = self.follow('replicas=models/a')  # it reads nothing until the end
        ids = [f'w-{number}' for number in range(10000)]
        threads = self.put_many('models/a', ids, 'fetching', 0)
        for thread in threads:
            thread.join()
        threads = self.put_many('models/a', ids[::2], 'ready', 1)
        self.addCleanup(lambda: [thread.join() for thread in threads])
        for reader in (stream, slow):
            rows = {}
            while len(rows) < 10000 or sum(row['state'] == 'ready' for row in rows.values()) < 5000:
                data = reader.until('replicas')
                self.assertLessEqual(len(data['replicas']), 2000)
                for row in data['replicas']:
                    rows[row['id']] = row
            for thread in threads:
                thread.join()
            last = {name: (row['state'], row['step']) for name, row in rows.items()}
            listed = self.list_all('models/a')
            self.assertEqual(last, {name: (row['state'], row['step']) for name, row in listed.items()})
            self.assertEqual((data['states']['ready'], data['oldest']), (5000, 0))
