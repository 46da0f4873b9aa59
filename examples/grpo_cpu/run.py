#!/usr/bin/env python3
"""Runs the example: a server in a temporary folder, the trainer and two rollouts. One rollout is
killed in the middle and started again. At the end all weights are compared, and the plot is drawn.
"""
import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

import plot

HERE = os.path.dirname(os.path.abspath(__file__))
ROLLOUTS = 'rollout-0', 'rollout-1'
KILLED = ROLLOUTS[1]
START_SECONDS = 60
END_SECONDS = 120


def main():
    settings = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the others on the way
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix='grpo-'))
        environment = stack.enter_context(server(settings.deltabucketd, folder))
        fleet = stack.enter_context(Fleet(folder, environment, settings.tiny))
        events = go(fleet, settings)
        steps = fleet.log_of('trainer')
        is_good = judge(steps, {name: fleet.log_of(name) for name in ROLLOUTS}, events)
    if settings.plot:
        plot.draw(settings.plot, steps, events)
        print(f'{settings.plot} shows the rewards and the deltas.')
    sys.exit(0 if is_good else 1)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.replace('\n', ' '))
    parser.add_argument('--steps', type=int, default=300)
    parser.add_argument('--supervised', type=int, default=70)
    parser.add_argument('--rate', type=float, default=6e-5)
    parser.add_argument('--kill', type=int, help='step at which a rollout is killed')
    parser.add_argument('--back', type=int, help='step at which it is started again')
    parser.add_argument('--tiny', action='store_true', help='a smaller model, which learns nothing')
    parser.add_argument('--plot', help='path of an SVG file')
    parser.add_argument('--deltabucketd', default=shutil.which('deltabucketd'),
                        help='path of the server; left out: as PATH has it')
    settings = parser.parse_args()
    if settings.deltabucketd is None:
        parser.error('deltabucketd is not on PATH; --deltabucketd says where it is.')
    if settings.kill is None:
        settings.kill = settings.steps // 3
    if settings.back is None:
        settings.back = settings.kill + max(1, settings.steps // 10)
    return settings


@contextlib.contextmanager
def server(program, folder):
    """deltabucketd on a free port; gives the environment of its clients."""
    with socket.socket() as held:
        held.bind(('127.0.0.1', 0))
        address = f'127.0.0.1:{held.getsockname()[1]}'
    token = secrets.token_urlsafe(32)
    data = os.path.join(folder, 'data')
    environment = dict(os.environ, DELTABUCKET_ENDPOINT=f'https://{address}',
                       DELTABUCKET_TOKEN=token, DELTABUCKET_CA=os.path.join(data, 'tls', 'ca.pem'))
    own = dict(os.environ, DELTABUCKET_ROOT_KEY_ID='EXAMPLE', DELTABUCKET_ROOT_TOKEN=token,
               DELTABUCKET_ROOT_SECRET=secrets.token_urlsafe(32))
    path = os.path.join(folder, 'server.log')
    with open(path, 'w') as log:
        process = subprocess.Popen([program, '--data', data, '--listen', address], env=own,
                                   stdout=log, stderr=log)
        try:
            await_server(process, environment, path)
            yield environment
        finally:
            process.terminate()
            process.wait()


def await_server(process, environment, log):
    limit = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < limit:
        with contextlib.suppress(OSError):
            trust = ssl.create_default_context(cafile=environment['DELTABUCKET_CA'])
            url = environment['DELTABUCKET_ENDPOINT'] + '/-/ready'
            with urllib.request.urlopen(url, context=trust):
                return
        time.sleep(0.05)
    with open(log) as text:
        raise SystemExit(f'deltabucketd did not become ready:\n{text.read()}')


class Fleet:
    """The trainer and the rollouts, processes of their own with logs in a folder. None outlives
    it."""

    def __init__(self, folder, environment, is_tiny):
        self.folder = folder
        self.environment = environment
        self.common = ['--tiny'] if is_tiny else []
        self.running = {}

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        for name in list(self.running):
            self.kill(name)

    def start(self, name, script, *arguments, **options):
        command = [sys.executable, os.path.join(HERE, script), '--log', self.path_of(name),
                   *self.common, *map(str, arguments)]
        self.running[name] = subprocess.Popen(command, env=self.environment, **options)
        return self.running[name]

    def start_rollout(self, name):
        self.start(name, 'rollout.py', '--name', name)

    def kill(self, name):
        """SIGKILL."""
        process = self.running.pop(name)
        process.kill()
        process.communicate()

    def check(self):
        for name, process in self.running.items():
            if process.poll():
                raise SystemExit(f'{name} ended with {process.returncode}.')

    def await_end(self, name):
        status = self.running[name].wait(END_SECONDS)
        if status != 0:
            raise SystemExit(f'{name} ended with {status}.')

    def path_of(self, name):
        return os.path.join(self.folder, f'{name}.jsonl')

    def log_of(self, name):
        """Each line is one write, so that a kill leaves no half of one."""
        with open(self.path_of(name)) as log:
            return [json.loads(line) for line in log]


def go(fleet, settings):
    """Runs everything to its end; gives [(step, what happened)]."""
    events = []
    for name in ROLLOUTS:
        fleet.start_rollout(name)
    meet = min(20, (settings.steps - settings.back) // 2)
    trainer = fleet.start('trainer', 'train.py', '--steps', settings.steps, '--supervised',
                          settings.supervised, '--rate', settings.rate, '--meet', meet,
                          stdout=subprocess.PIPE, text=True)
    for line in trainer.stdout:
        print(line, end='', flush=True)
        fleet.check()
        words = line.split()
        number = int(words[1]) if words[0] == 'step' else -1
        if number == settings.kill:
            fleet.kill(KILLED)
            events.append((number, 'killed'))
            print(f'{KILLED} is killed', flush=True)
        if number == settings.back:
            fleet.start_rollout(KILLED)
            events.append((number, 'started again'))
            print(f'{KILLED} is started again', flush=True)
    for name in ('trainer', *ROLLOUTS):
        fleet.await_end(name)
    return events


def judge(steps, logs, events):
    """Says what each rollout held, against the trainer's own log. True when all was as it must."""
    trained = {step['step']: step for step in steps}
    is_good = len(events) == 2
    for name, log in logs.items():
        same = sum(trained[one['step']]['sha256'] == one['sha256'] and
                   trained[one['step']]['digest'] == one['digest'] for one in log)
        whole = sum(one['came_whole'] for one in log)
        lives = list(dict.fromkeys(one['pid'] for one in log))
        print(f'{name}: {same} of {len(log)} steps bit-identical to the trainer\'s, {whole} came '
              f'whole, {len(log) - whole} as deltas; processes: {len(lives)}.')
        is_good &= same == len(log) > 0 and log[-1]['step'] == steps[-1]['step']
        is_good &= len(lives) == (2 if name == KILLED else 1)
    print('All weights were bit-identical throughout.' if is_good else
          'The weights were NOT as they must be.')
    return is_good


if __name__ == '__main__':
    main()
