"""Each rule of contrib/grafana/alerts.yml, by promtool: it fires when it should, not before its time, and stays silent while all is well."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from tests.support.daemon import SOURCE

RULES = os.path.join(SOURCE, 'contrib', 'grafana', 'alerts.yml')
GIB = 1 << 30
DAY = 86400

IN_HOURS = {'DeltabucketScrubOverdue'}
# By alert: series that make it fire, a minute (hour: IN_HOURS) at which it does, an earlier one at which it does not yet (None: it fires
# at once), and series with which it never fires. Values are in promtool's notation, one a minute (an hour).
RUN = '{bucket="models",run="r"}'
CASES = {
    'DeltabucketDown': ({'up': '1x1 0x9'}, 5, 3, {'up': '1x20'}),
    'DeltabucketWorkerLags': ({f'deltabucket_run_lag_seconds{RUN}': '301x10'}, 5, 4, {f'deltabucket_run_lag_seconds{RUN}': '300x10'}),
    'DeltabucketWorkersLost': ({f'deltabucket_run_replicas_expired{RUN}': '2x10'}, 1, 0, {f'deltabucket_run_replicas_expired{RUN}': '0x10'}),
    'DeltabucketWorkersFail': ({'deltabucket_run_replicas{bucket="models",run="r",state="error"}': '1x10'}, 5, 4,
                               {'deltabucket_run_replicas{bucket="models",run="r",state="ready"}': '9x10'}),
    'DeltabucketStepFailed': ({'deltabucket_steps_failed_total': '0x3 1x30'}, 5, 3, {'deltabucket_steps_failed_total': '7x90'}),
    'DeltabucketStepWorkFails': ({'deltabucket_step_jobs_put_aside': '1x40'}, 30, 29, {'deltabucket_step_jobs_put_aside': '1x20 0x1 1x20'}),
    'DeltabucketDiskFull': ({'deltabucket_disk_free_bytes': f'{GIB}x5', 'deltabucket_disk_reserve_bytes': f'{GIB}x5'}, 0, None,
                            {'deltabucket_disk_free_bytes': f'{GIB + 1}x5', 'deltabucket_disk_reserve_bytes': f'{GIB}x5'}),
    'DeltabucketDiskNearlyFull': ({'deltabucket_disk_free_bytes': f'{10 * GIB}x20', 'deltabucket_disk_reserve_bytes': f'{GIB}x20',
                                   'deltabucket_disk_bytes': f'{100 * GIB}x20'}, 10, 9,
                                  {'deltabucket_disk_free_bytes': f'{11 * GIB}x20', 'deltabucket_disk_reserve_bytes': f'{GIB}x20',
                                   'deltabucket_disk_bytes': f'{100 * GIB}x20'}),
    # 100 GiB that go by 100 MiB a minute, and by 50
    'DeltabucketDiskFills': ({'deltabucket_disk_free_bytes': f'{100 * GIB}-{100 << 20}x300', 'deltabucket_disk_reserve_bytes': f'{GIB}x300'}, 200, 20,
                             {'deltabucket_disk_free_bytes': f'{100 * GIB}-{50 << 20}x300', 'deltabucket_disk_reserve_bytes': f'{GIB}x300'}),
    'DeltabucketReadOnly': ({'deltabucket_read_only': '0 1'}, 1, 0, {'deltabucket_read_only': '0x5'}),
    'DeltabucketWritesFail': ({'deltabucket_writes_failing': '0 1'}, 1, 0, {'deltabucket_writes_failing': '0x5'}),
    'DeltabucketChunksDamaged': ({'deltabucket_damaged_chunks': '0 3'}, 1, 0, {'deltabucket_damaged_chunks': '0x5'}),
    'DeltabucketRecordsCorrupt': ({'deltabucket_records_corrupt_total': '4 5 5 5'}, 2, 0, {'deltabucket_records_corrupt_total': '4x90'}),
    'DeltabucketCatalogDamaged': ({'deltabucket_catalog_damaged': '0 1'}, 1, 0, {'deltabucket_catalog_damaged': '0x5'}),
    'DeltabucketCatalogLost': ({'deltabucket_catalog_lost': '0 1'}, 1, 0, {'deltabucket_catalog_lost': '0x5'}),
    'DeltabucketPacksMissing': ({'deltabucket_packs_missing': '0 1'}, 1, 0, {'deltabucket_packs_missing': '0x5'}),
    'DeltabucketJournalIncomplete': ({'deltabucket_journal_incomplete': '1x20'}, 15, 14, {'deltabucket_journal_incomplete': '1x10 0x1 1x10'}),
    # promtool's clock begins in 1970: a round that ended on the first day, and none that ended
    'DeltabucketScrubOverdue': ({'deltabucket_scrub_ended_timestamp_seconds': f'{DAY}x{61 * 24 + 5}'}, 61 * 24 + 1, 61 * 24,
                                {'deltabucket_scrub_ended_timestamp_seconds': f'0x{61 * 24 + 5}'}),
    'DeltabucketCertificateEnds': ({'deltabucket_certificate_ends_timestamp_seconds': f'{14 * DAY + 60}x5'}, 2, 1,
                                   {'deltabucket_certificate_ends_timestamp_seconds': '0x5'}),
    'DeltabucketConnectionsDisplaced': ({'deltabucket_connections_displaced_total': '0 0 2 2', 'deltabucket_connections_refused_total': '0x3'}, 3, 1,
                                        {'deltabucket_connections_displaced_total': '5x20', 'deltabucket_connections_refused_total': '1x20'}),
    'DeltabucketRequestsFail': ({'deltabucket_request_errors_total': '0+2x30', 'deltabucket_requests_total': '0+100x30'}, 11, 9,
                                {'deltabucket_request_errors_total': '0+1x30', 'deltabucket_requests_total': '0+100x30'}),
    'DeltabucketCommitsSlow': ({'deltabucket_work_duration_seconds_bucket{work="commit",le="0.5"}': '0+10x30',
                                'deltabucket_work_duration_seconds_bucket{work="commit",le="2.5"}': '0+11x30',
                                'deltabucket_work_duration_seconds_bucket{work="commit",le="+Inf"}': '0+11x30'}, 11, 9,
                               {'deltabucket_work_duration_seconds_bucket{work="commit",le="0.5"}': '0+11x30',
                                'deltabucket_work_duration_seconds_bucket{work="commit",le="2.5"}': '0+11x30',
                                'deltabucket_work_duration_seconds_bucket{work="commit",le="+Inf"}': '0+11x30'}),
    'DeltabucketFilesNearlyOut': ({'process_open_fds': '91x10', 'process_max_fds': '100x10'}, 5, 4,
                                  {'process_open_fds': '90x10', 'process_max_fds': '100x10'}),
}


def with_target(series):
    """As Prometheus stores it, with job and instance of the server."""
    name, brace, labels = series.partition('{')
    return f'{name}{{job="deltabucket",instance="host:9000"{"," + labels if brace else "}"}'


def rule_test(alert, series, times):
    """`times`: by minute or hour, whether it fires."""
    unit = 'h' if alert in IN_HOURS else 'm'
    return {'interval': f'1{unit}',
            'input_series': [{'series': with_target(name), 'values': values} for name, values in series.items()],
            'promql_expr_test': [{'expr': f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})', 'eval_time': f'{time}{unit}',
                                  'exp_samples': [{'labels': '{}', 'value': 1}] if fires else []} for time, fires in times.items()]}


def length(values):
    """How many samples promtool's notation has."""
    return sum(int(match[1]) + 1 if (match := re.search(r'x(\d+)$', part)) else 1 for part in values.split())


class Alerts(unittest.TestCase):
    def judge(self, tests):
        for unit in 'mh':
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, 'tests.yml')
                with open(path, 'w') as file:  # JSON is YAML
                    json.dump({'rule_files': [RULES], 'evaluation_interval': f'1{unit}',
                               'tests': [test for test in tests if test['interval'] == f'1{unit}']}, file)
                done = subprocess.run(['promtool', 'test', 'rules', path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_rules_are_sound(self):
        done = subprocess.run(['promtool', 'check', 'rules', '--lint-fatal', RULES], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_rule_has_its_cases(self):
        with open(RULES) as file:
            self.assertEqual(re.findall(r'^ +- alert: (\w+)$', file.read(), re.M), list(CASES))

    def test_each_rule_says_what_to_do(self):
        with open(os.path.join(SOURCE, 'docs', 'OPERATIONS.md')) as file:
            rows = re.findall(r'^\| (`Deltabucket.*?) \|', file.read(), re.M)
        self.assertEqual(sorted(name for row in rows for name in re.findall(r'`(\w+)`', row)), sorted(CASES))

    def test_each_fires_in_time(self):
        self.judge([rule_test(alert, series, {at: True} if before is None else {before: False, at: True})
                    for alert, (series, at, before, _) in CASES.items()])

    def test_each_is_silent_while_all_is_well(self):
        def times(series):
            last = min(length(values) for values in series.values()) - 1
            return range(0, last + 1, max(1, last // 40))

        self.judge([rule_test(alert, well, dict.fromkeys(times(well), False)) for alert, (_, _, _, well) in CASES.items()])


if __name__ == '__main__':
    unittest.main()
