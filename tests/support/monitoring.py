"""What a scrape says, read as Prometheus reads it; and a server in which everything has happened."""
import os
import re
import time

from tests.support.daemon import REPLY_SECONDS
from tests.support.runs import Run

SERIES = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Scrape:
    def __init__(self, text):
        self.text = text
        self.types = dict(re.findall(r'^# TYPE (\w+) (\w+)$', text, re.M))
        self.series = {}
        for line in text.splitlines():
            if not line.startswith('#'):
                name, labels, value = SERIES.fullmatch(line).groups()
                key = (name, frozenset(LABEL.findall(labels or '')))
                assert key not in self.series, line
                self.series[key] = float(value)

    def value(self, name, **labels):
        return self.series[name, frozenset(labels.items())]

    def names(self):
        """Of all series, and of the families of histograms."""
        return {name for name, _ in self.series} | set(self.types)

    def labels(self, name, label):
        """All values of a label on these series."""
        return {dict(labels)[label] for each, labels in self.series if each == name}


def scrape(daemon, token=None):
    reply = daemon.request('GET', '/-/metrics', **({'token': token} if token else {}))
    assert reply.status == 200, reply.body
    return Scrape(reply.body.decode())


def await_scrape(daemon, is_right):
    limit = time.monotonic() + REPLY_SECONDS
    while not is_right(got := scrape(daemon)):
        assert time.monotonic() < limit, got.text
        time.sleep(0.05)
    return got


def use_everything(daemon):
    """Objects on all faces, a run with a proven and a failed step and workers in all states, gc and scrub. Gives the run."""
    body = os.urandom(3_000_000)
    daemon.request('PUT', '/models')
    for key in 'one', 'same':
        assert daemon.request('PUT', f'/models/{key}', body).status == 200
    daemon.request('PUT', '/models/small', b'small')
    daemon.request('GET', '/models/one')
    daemon.request('GET', '/models/none')
    daemon.request('GET', '/models?list-type=2')
    daemon.request('POST', '/models/parts?uploads')
    daemon.request('GET', '/api/whoami-v2')
    daemon.request('GET', '/v1/telemetry')
    daemon.request('GET', '/v1/nonsense')
    run = Run(daemon, 'r')
    assert run.call('PUT', '/settings', {'lease_s': 10}).status == 200
    run.publish_all(0, 2)
    assert run.publish(3, run.anchor(3, digest='xxh3-128:' + '1' * 32)).status == 201
    for name, report in {'fine': {'state': 'ready', 'step': 2}, 'behind': {'state': 'fetching', 'step': 0, 'wanted': 2},
                         'new': {'state': 'idle'}, 'wrong': {'state': 'error', 'step': 1, 'error': 'out of memory'}}.items():
        assert run.call('PUT', f'/replicas/{name}', report).status == 200
    daemon.request('DELETE', '/models/one')
    daemon.admin('gc')
    daemon.admin('scrub')
    return run
