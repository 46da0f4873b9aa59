#!/usr/bin/env python3
"""Cuts the power many times, or once more.

    tests/crash/power_cut.py [--cuts N] [--seed TEXT]
    tests/crash/power_cut.py --repeat FOLDER SEED

The first makes recordings and cuts each 200 times, N times in all (1,000). What a cut showed is
printed, with its seed and the folder of its recording, which is kept then; the second judges such a
cut once more, and tells what was lost in any case. The programs come from $DELTABUCKET_BUILD. Exit
status 1 when a cut showed a fault.
"""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..')))
from tests.support import power_cut  # noqa: E402


def repeat(folder, seed):
    again = os.path.join(folder, power_cut.LOG_AGAIN.format(seed))
    again = again if os.path.exists(again) else None
    verdict = power_cut.judge_cut(power_cut.read_recording(folder), seed, again=again)
    print('\n'.join([*verdict.story, '', *(verdict.faults or ['no fault'])]))
    return len(verdict.faults)


def campaign(cuts, seed):
    begun, disks, bad = time.monotonic(), 0, 0
    for part in power_cut.rounds(cuts, seed):
        with part:
            print(part.about(), flush=True)
            for verdict in part.verdicts():
                disks += verdict.disks
                bad += bool(verdict.faults)
                if verdict.faults:
                    print(power_cut.describe(verdict, part.folder), flush=True)
    seconds = time.monotonic() - begun
    print(f'{cuts} cuts, {disks} disks judged, {bad} cuts with faults ({seconds:.0f} s)')
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cuts', type=int, default=1000)
    parser.add_argument('--seed', default='1')
    parser.add_argument('--repeat', nargs=2, metavar=('FOLDER', 'SEED'))
    options = parser.parse_args()
    bad = repeat(*options.repeat) if options.repeat else campaign(options.cuts, options.seed)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
