"""Shared by the benches: CPU time of a process, medians, one line per figure."""
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))


def cpu_seconds(pids):
    """User and system time so far of these processes."""
    ticks = 0
    for pid in pids:
        with open(f'/proc/{pid}/stat') as stat:
            fields = stat.read().rsplit(')', 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf('SC_CLK_TCK')


def user_seconds(pid):
    """User time alone so far of one process."""
    with open(f'/proc/{pid}/stat') as stat:
        return int(stat.read().rsplit(')', 1)[1].split()[11]) / os.sysconf('SC_CLK_TCK')


def say(name, value, unit):
    print(f'{name:52} {value:10.3f} {unit}', flush=True)


def median(values):
    return statistics.median(values)
