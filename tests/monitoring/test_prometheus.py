"""A real Prometheus scrapes a real server, with its CA and a key that may read metrics alone. Each expression of contrib/grafana, of the
dashboard and of the alerts, must return a series there; and each metric that the documents name must exist."""
import glob
import json
import os
import re
import signal
import subprocess
import time
import unittest
import urllib.parse
import urllib.request

from tests.support.daemon import REPLY_SECONDS, SOURCE, Daemon, free_port
from tests.support.monitoring import await_scrape, scrape, use_everything

GRAFANA = os.path.join(SOURCE, 'contrib', 'grafana')
ALERTS = os.path.join(GRAFANA, 'alerts.yml')
CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ['{rules}']
scrape_configs:
  - job_name: deltabucket
    scheme: https
    metrics_path: /-/metrics
    authorization: {{credentials: '{token}'}}
    tls_config: {{ca_file: '{ca}'}}
    static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""
# What Grafana puts in the place of its variables.
VARIABLES = {'$__rate_interval': '1m', '$__range': '1h', '$instance': '.*', '$bucket': '.*', '$run': '.*'}
COMPARISON = re.compile(r' (?:==|!=|<=|>=|<|>) (?![^()]*\))')
COOKIE = 'deltabucket_session'
# Of these documents the names are those of functions.
OF_THE_LIBRARY = {'docs/LIBRARY.md', 'docs/PYTHON.md'}


class Prometheus:
    """A process of its own in the folder of a server."""

    def __init__(self, daemon):
        self.port = free_port()
        folder = os.path.join(daemon.scratch, 'prometheus')
        os.mkdir(folder)
        path = os.path.join(folder, 'prometheus.yml')
        with open(path, 'w') as file:
            file.write(CONFIGURATION.format(rules=ALERTS, token=daemon.add_key('--grant', 'metrics')['token'], ca=daemon.ca, port=daemon.port))
        with open(os.path.join(folder, 'log'), 'wb') as log:
            self.process = subprocess.Popen(['prometheus', f'--config.file={path}', f'--storage.tsdb.path={folder}/data', f'--web.listen-address=127.0.0.1:{self.port}'],
                                            stdout=log, stderr=log)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(REPLY_SECONDS)

    def get(self, path, **parameters):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}', timeout=REPLY_SECONDS) as reply:
            return json.load(reply)['data']

    def query(self, expression):
        return self.get('query', query=expression)['result']

    def await_series(self, expression):
        limit = time.monotonic() + REPLY_SECONDS
        while True:
            try:
                if self.query(expression):
                    return
            except OSError:
                if self.process.poll() is not None:
                    raise
            assert time.monotonic() < limit, f'{expression} returns nothing'
            time.sleep(0.1)


def dashboard():
    with open(os.path.join(GRAFANA, 'dashboard.json')) as file:
        return json.load(file)


def filled(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def left_side(expression):
    """Of the comparison that the alert is made of, which stands last and in no parentheses."""
    return expression[:[match.start() for match in COMPARISON.finditer(expression)][-1]]


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.prometheus = Prometheus(cls.daemon)
        cls.addClassCleanup(cls.prometheus.stop)
        cls.prometheus.await_series('deltabucket_steps_failed_total == 0')  # so that it rises
        use_everything(cls.daemon)
        await_scrape(cls.daemon, lambda got: got.value('deltabucket_steps_failed_total') == 1)
        # two samples, so that there are rates
        cls.prometheus.await_series('count_over_time(deltabucket_steps_failed_total[1h] offset 1s) > 1 and deltabucket_steps_failed_total == 1')
        cls.prometheus.await_series('rate(deltabucket_work_duration_seconds_bucket{work="scrub_pack"}[1m])')

    def test_promtool_finds_no_fault(self):
        done = subprocess.run(['promtool', 'check', 'metrics'], input=scrape(self.daemon).text, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))

    def test_each_expression_of_the_dashboard_returns_a_series(self):
        for panel in dashboard()['panels']:
            for target in panel.get('targets', ()):
                with self.subTest(panel=panel['title'], expression=target['expr']):
                    self.assertNotIn('$', filled(target['expr']))
                    self.assertTrue(self.prometheus.query(filled(target['expr'])))

    def test_each_variable_of_the_dashboard_has_values(self):
        for variable in dashboard()['templating']['list']:
            if variable['type'] == 'query':
                selector, label = re.fullmatch(r'label_values\((.*), (\w+)\)', variable['query']['query']).groups()
                with self.subTest(variable=variable['name']):
                    series = self.prometheus.get('series', **{'match[]': filled(selector)})
                    self.assertTrue([one[label] for one in series])

    def test_each_alert_looks_at_series(self):
        groups = self.prometheus.get('rules')['groups']
        rules = [rule for group in groups for rule in group['rules']]
        self.assertGreater(len(rules), 20)
        for rule in rules:
            with self.subTest(alert=rule['name']):
                self.assertEqual(rule.get('lastError', ''), '')
                self.assertTrue(self.prometheus.query(left_side(rule['query'])), left_side(rule['query']))

    def test_alerts_tell_what_is_wrong_here(self):
        self.prometheus.await_series('ALERTS{alertname="DeltabucketStepFailed",alertstate="firing"}')
        self.prometheus.await_series('ALERTS{alertname="DeltabucketWorkersFail",alertstate="pending"}')
        alerts = self.prometheus.get('alerts')['alerts']
        self.assertLessEqual({alert['labels']['alertname'] for alert in alerts},
                             {'DeltabucketStepFailed', 'DeltabucketWorkersFail', 'DeltabucketWorkersLost', 'DeltabucketDiskNearlyFull', 'DeltabucketDiskFills',
                              'DeltabucketStepWorkFails', 'DeltabucketCommitsSlow'})
        for alert in alerts:
            self.assertNotIn('error', alert['annotations']['summary'].replace('report an error', ''))
        summary = next(alert['annotations']['summary'] for alert in alerts if alert['labels']['alertname'] == 'DeltabucketWorkersFail')
        self.assertEqual(summary, '1 workers of models/r report an error')

    def test_each_metric_that_is_named_exists(self):
        exist = scrape(self.daemon).names()
        for path in [*glob.glob(f'{SOURCE}/docs/**/*.md', recursive=True), f'{SOURCE}/README.md', *glob.glob(f'{GRAFANA}/*')]:
            if os.path.relpath(path, SOURCE) in OF_THE_LIBRARY or '/decisions/' in path:
                continue
            with open(path) as file:
                text = file.read()
            for name in set(re.findall(r'(?<!\w)deltabucket_[a-z_]+\b(?![./(*])', without_old_names(text))) - {COOKIE}:
                with self.subTest(path=os.path.relpath(path, SOURCE), name=name):
                    self.assertTrue(name in exist)

    def test_old_names_are_gone_and_new_ones_exist(self):
        exist = scrape(self.daemon).names()
        with open(f'{SOURCE}/docs/OPERATIONS.md') as file:
            renamed = OLD_NAMES.findall(file.read())
        self.assertGreater(len(renamed), 40)
        for old, new in renamed:
            with self.subTest(old=old):
                self.assertTrue(old not in exist and new in exist, new)

    def test_the_dashboard_is_whole(self):
        board = dashboard()
        ids, taken = set(), set()
        for panel in board['panels']:
            self.assertNotIn(panel['id'], ids)
            ids.add(panel['id'])
            place = panel['gridPos']
            self.assertLessEqual(place['x'] + place['w'], 24, panel['title'])
            cells = {(x, y) for x in range(place['x'], place['x'] + place['w']) for y in range(place['y'], place['y'] + place['h'])}
            self.assertFalse(cells & taken, panel['title'])
            taken |= cells
            for target in panel.get('targets', ()):
                self.assertEqual(target['datasource'], {'type': 'prometheus', 'uid': '${datasource}'}, panel['title'])
        self.assertEqual([panel['title'] for panel in board['panels'] if panel['type'] == 'row'], ['Fleet', 'Steps', 'Traffic', 'Storage', 'Damage', 'Process'])


OLD_NAMES = re.compile(r'^\| `(deltabucket_\w+)` \| `(deltabucket_\w+)` \|$', re.M)


def without_old_names(text):
    return OLD_NAMES.sub('', text)


if __name__ == '__main__':
    unittest.main()
