"""What /-/metrics says of operations, work, runs and the process."""
import os
import time
import unittest

from tests.support.daemon import Daemon, bytes_alone
from tests.support.monitoring import await_scrape, scrape, use_everything
from tests.support.runs import Run

RUNS_MAX = 100


class Metrics(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.daemon.start()

    def tearDown(self):
        self.daemon.__exit__()

    def test_operations_are_counted_by_name(self):
        self.daemon.request('PUT', '/models')
        self.daemon.request('PUT', '/models/k', b'x' * 5000)
        for _ in range(3):
            self.daemon.request('GET', '/models/k')
        self.daemon.request('HEAD', '/models/k')
        self.daemon.request('GET', '/models/none')
        got = await_scrape(self.daemon, lambda got: ('deltabucket_replies_total', frozenset(
            {'face': 's3', 'route': 'GetObject', 'status': '4xx'}.items())) in got.series
            and got.value('deltabucket_replies_total', face='s3', route='GetObject', status='4xx') == 1)
        of = {'face': 's3', 'route': 'GetObject'}
        self.assertEqual(got.value('deltabucket_replies_total', **of, status='2xx'), 4)
        self.assertEqual(got.value('deltabucket_replies_total', **of, status='5xx'), 0)
        self.assertEqual(got.value('deltabucket_request_duration_seconds_count', **of), 5)
        self.assertEqual(got.value('deltabucket_request_duration_seconds_bucket', **of, le='+Inf'), 5)
        self.assertGreater(got.value('deltabucket_request_duration_seconds_sum', **of), 0)
        self.assertLess(got.value('deltabucket_request_duration_seconds_sum', **of), 100)
        self.assertEqual(got.value('deltabucket_reply_size_bytes_bucket', **of, le='1024'), 2)  # HEAD, and what is not there
        self.assertEqual(got.value('deltabucket_reply_size_bytes_bucket', **of, le='16384'), 5)
        self.assertNotIn('ListParts', got.text)

    def test_clients_make_no_series(self):
        names = [f'/v1/{os.urandom(4).hex()}' for _ in range(20)] + [f'/-/{os.urandom(4).hex()}' for _ in range(20)]
        for target in names:
            self.daemon.request('GET', target)
        got = await_scrape(self.daemon, lambda got: ('deltabucket_replies_total', frozenset(
            {'face': 'steps', 'route': 'none', 'status': '4xx'}.items())) in got.series)
        self.assertEqual(got.value('deltabucket_replies_total', face='steps', route='none', status='4xx'), len(names))
        self.assertLessEqual(got.labels('deltabucket_replies_total', 'route'), {'none', 'Ready', 'Metrics'})

    def test_long_polls_have_no_duration(self):
        run = Run(self.daemon, 'r')
        run.publish_all(0, 0)
        run.call('GET', '/steps/latest')
        run.call('GET', '/steps/latest?after=0&wait=1')
        of = {'face': 'steps', 'route': 'LatestStep'}

        def replies(got):
            return sum(value for (name, labels), value in got.series.items() if name == 'deltabucket_replies_total' and of.items() <= set(labels))

        got = await_scrape(self.daemon, lambda got: replies(got) == 2)
        self.assertEqual(got.value('deltabucket_request_duration_seconds_count', **of), 1)
        self.assertEqual(got.value('deltabucket_requests_waiting'), 0)  # a scrape does not count itself

    def test_runs_and_their_workers(self):
        begun = time.time()
        run = use_everything(self.daemon)
        of = {'bucket': 'models', 'run': 'r'}
        got = await_scrape(self.daemon, lambda got: got.value('deltabucket_steps_failed_total') == 1 and got.value('deltabucket_run_lag_seconds', **of) > 0)
        self.assertEqual(got.value('deltabucket_run_head_step', **of), 3)
        self.assertTrue(begun - 1 <= got.value('deltabucket_run_head_timestamp_seconds', **of) <= time.time() + 1)
        self.assertEqual(got.value('deltabucket_run_kept_steps', **of), 4)
        self.assertGreater(got.value('deltabucket_run_kept_bytes', **of), 0)
        self.assertEqual({state: got.value('deltabucket_run_replicas', **of, state=state) for state in got.labels('deltabucket_run_replicas', 'state')},
                         {'idle': 1, 'fetching': 1, 'staging': 0, 'ready': 1, 'error': 1})
        self.assertEqual(got.value('deltabucket_run_replicas_expired', **of), 0)
        self.assertEqual(got.value('deltabucket_run_replicas_without_step', **of), 1)
        self.assertEqual(got.value('deltabucket_run_replicas_behind', **of), 3)
        self.assertEqual(got.value('deltabucket_run_lag_steps', **of), 3)
        self.assertLess(got.value('deltabucket_run_lag_seconds', **of), time.time() - begun + 1)
        time.sleep(1)
        got = scrape(self.daemon)
        self.assertTrue(1 <= got.value('deltabucket_run_oldest_report_seconds', **of) < time.time() - begun + 1)
        for name in 'behind', 'wrong', 'new', 'fine':
            self.assertEqual(run.call('DELETE', f'/replicas/{name}').status, 204)
        self.assertEqual(run.call('PUT', '/replicas/there', {'state': 'ready', 'step': 3}).status, 200)
        got = scrape(self.daemon)
        self.assertEqual((got.value('deltabucket_run_lag_steps', **of), got.value('deltabucket_run_lag_seconds', **of)), (0, 0))
        self.assertEqual(got.value('deltabucket_run_replicas_behind', **of), 0)
        self.assertEqual(run.call('PUT', '/rollback', {'step': 1}).status, 200)
        got = scrape(self.daemon)
        self.assertEqual(got.value('deltabucket_run_lag_steps', **of), 2)
        self.assertEqual(got.value('deltabucket_run_replicas_behind', **of), 0)

    def test_a_lease_that_ends_is_seen(self):
        run = Run(self.daemon, 'r')
        run.publish_all(0, 0)
        run.call('PUT', '/settings', {'lease_s': 10})
        run.call('PUT', '/replicas/w', {'state': 'ready', 'step': 0})
        of = {'bucket': 'models', 'run': 'r'}
        got = await_scrape(self.daemon, lambda got: got.value('deltabucket_run_replicas_expired', **of) == 1)
        self.assertEqual(got.value('deltabucket_run_replicas', **of, state='ready'), 0)
        self.assertEqual(got.value('deltabucket_run_oldest_report_seconds', **of), 0)

    @bytes_alone
    def test_the_latest_runs_alone_have_series(self):
        late = Run(self.daemon, 'published-first')
        late.publish_all(0, 0)
        for number in range(RUNS_MAX + 5):
            self.daemon.request('POST', f'/v1/runs/models/empty-{number}', '{}')
        early = Run(self.daemon, 'published-last')
        early.publish_all(0, 0)
        late.publish_all(1, 1)
        got = scrape(self.daemon)
        self.assertEqual(got.value('deltabucket_runs'), RUNS_MAX + 7)
        self.assertEqual(got.value('deltabucket_runs_left_out'), 7)
        names = got.labels('deltabucket_run_kept_steps', 'run')
        self.assertEqual(len(names), RUNS_MAX)
        self.assertTrue({'published-first', 'published-last', f'empty-{RUNS_MAX + 4}'} <= names)
        self.assertNotIn('empty-0', names)
        self.assertEqual(got.labels('deltabucket_run_head_step', 'run'), {'published-first', 'published-last'})

    def test_what_is_in_the_store(self):
        use_everything(self.daemon)
        got = await_scrape(self.daemon, lambda got: got.value('deltabucket_steps_unproven') == 0)
        self.assertEqual(got.value('deltabucket_uploads'), 1)
        self.assertGreater(got.value('deltabucket_objects'), 2)
        self.assertGreater(got.value('deltabucket_object_bytes'), 3_000_000)
        self.assertGreater(got.value('deltabucket_packs'), 0)
        self.assertGreater(got.value('deltabucket_pack_bytes'), 3_000_000)
        self.assertGreater(got.value('deltabucket_disk_reserve_bytes'), 0)
        self.assertEqual(got.value('deltabucket_steps_proven_total'), 3)
        self.assertGreater(got.value('deltabucket_certificate_ends_timestamp_seconds'), time.time())
        self.assertEqual(got.value('deltabucket_changes_waiting'), 0)
        work = got.labels('deltabucket_work_duration_seconds_count', 'work')
        self.assertLessEqual({'commit', 'pack_sync', 'catalog_check', 'snapshot', 'gc_round', 'scrub_pack', 'step_proof'}, work)
        self.assertGreaterEqual(got.value('deltabucket_work_duration_seconds_count', work='step_proof'), 4)

    def test_the_process(self):
        got = scrape(self.daemon)
        self.assertEqual(self.daemon.command('--version').stdout, f'deltabucketd {got.labels("deltabucket_build_info", "version").pop()}\n')
        self.assertTrue(0.5 < got.value('process_resident_memory_bytes') / self.daemon.rss_bytes() < 2)
        self.assertLess(abs(got.value('process_open_fds') - len(os.listdir(f'/proc/{self.daemon.process.pid}/fd'))), 20)
        self.assertGreater(got.value('process_max_fds'), got.value('process_open_fds'))
        self.assertGreater(got.value('process_virtual_memory_bytes'), got.value('process_resident_memory_bytes'))
        self.assertGreater(got.value('process_cpu_seconds_total'), 0)
        begun = os.stat(f'/proc/{self.daemon.process.pid}').st_ctime
        self.assertLess(abs(got.value('process_start_time_seconds') - begun), 60)

    def test_names_follow_the_conventions(self):
        got = scrape(self.daemon)
        for name, kind in got.types.items():
            self.assertEqual(kind == 'counter', name.endswith('_total'), name)
            self.assertRegex(name, r'^(deltabucket|process)(_[a-z]+)+$')


if __name__ == '__main__':
    unittest.main()
