#!/usr/bin/env python3
"""usage: bench/fleet_model.py [WORKERS ...]   simulates how long a step takes to reach a fleet, and what the origin sends for it.

A fluid model, nothing is measured: all workers begin at once, every link is shared max-min fairly, and rates change when a transfer ends. What it assumes
(docs/SCALE.md prints the same): an origin with 50 Gb/s, eight regions whose links to it have 2.5, 5, 5, 10, 10, 10, 25 and 25 Gb/s, edges with 100 Gb/s,
workers spread evenly over the regions whose links are lognormal with a median of 10 Gb/s. A worker behind an edge may read what the edge has so far. Disks,
processors, round trips, lost packets and polling cost nothing here: real fleets are slower, and by how much is for a measurement to say.
"""
import math
import statistics
import sys

ORIGIN = 50.0  # Gb/s, as all rates here
REGIONS = (2.5, 5, 5, 10, 10, 10, 25, 25)
EDGE = 100.0
MEDIAN, SIGMA = 10.0, 0.4
CLASSES = 25  # of workers in a region, by the speed of their links
PAYLOADS = (('8B, 192 MB', 192e6), ('1T, 24 GB', 24e9))
REACHED = 0.99  # of the fleet


class Flow:
    """`count` equal transfers that share `links`, each at most at `limit`; `source`: the flow whose bytes they pass on."""

    def __init__(self, count, links, limit=math.inf, source=None):
        self.count, self.links, self.limit, self.source = count, links, limit, source
        self.done = self.rate = 0.0  # Gb, Gb/s of each transfer
        self.ended = None

    def ceiling(self):
        behind = self.source is not None and self.source.ended is None and self.done >= self.source.done - 1e-9
        return min(self.limit, self.source.rate) if behind else self.limit


def share(flows, capacity):
    """Max-min fair rates: the tightest link or limit fixes its transfers, the rest shares what is left."""
    left, waiting = dict(capacity), list(flows)
    while waiting:
        users = {link: sum(flow.count for flow in waiting if link in flow.links) for link in left}
        fair = {link: left[link] / users[link] for link in left if users[link]}
        rates = [min([flow.ceiling()] + [fair[link] for link in flow.links]) for flow in waiting]
        lowest = min(rates)
        fixed = [flow for flow, rate in zip(waiting, rates) if rate <= lowest * (1 + 1e-9)]
        for flow in fixed:
            flow.rate = lowest
            for link in flow.links:
                left[link] = max(0.0, left[link] - lowest * flow.count)
        waiting = [flow for flow in waiting if flow not in fixed]


def run(flows, capacity, payload):
    """Sets `ended`, in seconds, of each flow."""
    now = 0.0
    while any(flow.ended is None for flow in flows):
        moving = [flow for flow in flows if flow.ended is None]
        for group in ([flow for flow in moving if flow.source is None], [flow for flow in moving if flow.source is not None]):
            share(group, capacity)
        step = min(wait for flow in moving for wait in waits(flow, payload))
        now += step
        for flow in moving:
            flow.done += flow.rate * step
            if flow.done >= payload * (1 - 1e-9):
                flow.ended = now


def waits(flow, payload):
    """When the rate of this flow may change: at its end, and when it reaches what its edge has."""
    if flow.rate > 0:
        yield (payload - flow.done) / flow.rate
    if flow.source is not None and flow.source.ended is None and flow.rate > flow.source.rate * (1 + 1e-9) and flow.source.done > flow.done:
        yield (flow.source.done - flow.done) / (flow.rate - flow.source.rate)


def classes(workers):
    """(count, Gb/s) of the workers of a region."""
    normal = statistics.NormalDist(math.log(MEDIAN), SIGMA)
    return [(workers / CLASSES, math.exp(normal.inv_cdf((i + 0.5) / CLASSES))) for i in range(CLASSES)]


def direct(workers):
    flows = [Flow(count, ('origin', region), speed) for region in range(len(REGIONS)) for count, speed in classes(workers / len(REGIONS))]
    return flows, flows, {'origin': ORIGIN, **dict(enumerate(REGIONS))}


def edges(workers, each, payloads):
    """`each` edges in a region, to which the origin sends `payloads` in all: each edge takes whole payloads, or its share of one."""
    fills, readers, capacity = [], [], {'origin': ORIGIN, **dict(enumerate(REGIONS))}
    for region in range(len(REGIONS)):
        fill = Flow(payloads, ('origin', region), EDGE * each / payloads)
        fills.append(fill)
        capacity[('edges', region)] = EDGE * each
        readers += [Flow(count, (('edges', region),), speed, fill) for count, speed in classes(workers / len(REGIONS))]
    return fills + readers, readers, capacity


def result(model, payload):
    """(bytes from the origin, seconds until 99 % have all)."""
    flows, readers, capacity = model
    run(flows, capacity, payload * 8 / 1e9)
    sent = sum(flow.count for flow in flows if 'origin' in flow.links) * payload
    reached, total = 0.0, sum(flow.count for flow in readers)
    for flow in sorted(readers, key=lambda flow: flow.ended):
        reached += flow.count
        if reached >= REACHED * total:
            return sent, flow.ended
    raise AssertionError('no flow reached them')


def bytes_text(count):
    for unit in ('B', 'kB', 'MB', 'GB', 'TB', 'PB'):
        if count < 1000:
            return f'{count:.3g} {unit}'
        count /= 1000
    return f'{count:.3g} EB'


def time_text(seconds):
    for unit, size in (('d', 86400), ('h', 3600), ('min', 60)):
        if seconds >= 2 * size:
            return f'{seconds / size:.2g} {unit}'
    return f'{seconds:.2g} s'


def main():
    fleets = [int(word) for word in sys.argv[1:]] or [1000, 10_000, 100_000]
    print('| payload | workers | direct | 2 edges a region | slices hashed over a region\'s edges |')
    print('|---|---|---|---|---|')
    for name, payload in PAYLOADS:
        for workers in fleets:
            many = 2 if workers <= 10_000 else 8
            cells = [result(direct(workers), payload), result(edges(workers, 2, 2), payload), result(edges(workers, many, 1), payload)]
            words = [f'{bytes_text(sent)}, {time_text(seconds)}' for sent, seconds in cells]
            print(f'| {name} | {workers:,} | {words[0]} | {words[1]} | {words[2]} ({many}) |')


if __name__ == '__main__':
    main()
