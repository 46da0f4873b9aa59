#!/usr/bin/env python3
"""Flips bits of a store many times, or once more.

    tests/crash/bit_flip.py [--cases N] [--seed TEXT]
    tests/crash/bit_flip.py --case NUMBER [--seed TEXT]

The first flips bits of every kind of file in turn, N times in all (2,000), and ends with a table of
how that went. The second does one case again: the same kind of file, and of the catalog the same
page; ids, and with them the bytes of other files, are new in each run. The programs come from
$DELTABUCKET_BUILD. Exit status 1 when a case showed a fault.
"""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..')))
from tests.support import bit_campaign  # noqa: E402


def campaign(options):
    begun, found = time.monotonic(), []
    for verdict in bit_campaign.campaign(options.cases, options.seed):
        found.append(verdict)
        if verdict.faults:
            print(bit_campaign.describe(verdict, options.seed), flush=True)
    print(bit_campaign.table_of(found))
    print(f'{len(found)} cases ({time.monotonic() - begun:.0f} s)')
    return any(verdict.faults for verdict in found)


def once(options):
    with bit_campaign.Template() as template:
        verdict = bit_campaign.judge_case(template, options.case, options.seed)
    print(bit_campaign.describe(verdict, options.seed))
    return bool(verdict.faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cases', type=int, default=2000)
    parser.add_argument('--case', type=int)
    parser.add_argument('--seed', default='1')
    options = parser.parse_args()
    return (campaign if options.case is None else once)(options)


if __name__ == '__main__':
    sys.exit(main())
