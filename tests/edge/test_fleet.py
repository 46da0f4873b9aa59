"""A fleet of real followers behind an edge (contrib/edge): the origin sends each step once, and its
outage stops none of them."""
import contextlib
import os
import signal
import subprocess
import tempfile
import time
import unittest

from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import CLIENT, REPLY_SECONDS, Daemon, environment_of_programs
from tests.support.edge import Edge, sent_by

FOLLOWERS, STEPS = 50, 4
MOST = 1.05  # of each payload, for 50 followers
# A follower that is far behind may take a fold: every step is awaited before the next one, so that
# what a step costs can be told.


class Fleet(unittest.TestCase):
    def setUp(self):
        with contextlib.ExitStack() as stack:
            self.scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix='deltabucket-test-'))
            self.checkpoints = expand_small(self.scratch, STEPS + 1)
            self.daemon = stack.enter_context(Daemon(arguments=('--trusted-proxies', '127.0.0.1')))
            self.daemon.request('PUT', '/models')
            self.edge = stack.enter_context(Edge(self.daemon))
            self.tokens = [self.daemon.add_key('--grant', 'models/r/=read')['token'] for _ in range(5)]
            self.followers = []
            stack.callback(self.end_followers)
            self.addCleanup(stack.pop_all().close)

    def end_followers(self):
        for follower in self.followers:
            follower.send_signal(signal.SIGKILL)
        for follower in self.followers:
            follower.wait(REPLY_SECONDS)

    def publish(self, step):
        """Gives the bytes of the form that the followers take."""
        self.daemon.client('publish', '--run', 'models/r', '--step', step, self.checkpoints[step])
        forms = self.daemon.request('GET', f'/v1/runs/models/r/steps/{step}').json()['forms']
        wanted = 'anchor' if step == 0 else 'delta'
        return next(form['bytes'] for form in forms if form['kind'] == wanted)

    def into(self, name):
        return os.path.join(self.scratch, name)

    def follow(self, name, token, *more):
        environment = dict(environment_of_programs(), DELTABUCKET_ENDPOINT=self.edge.endpoint, DELTABUCKET_CA=self.edge.ca,
                           DELTABUCKET_TOKEN=token, HOME=self.scratch)
        command = [CLIENT, 'follow', '--run', 'models/r', '--into', self.into(name), '--replica', name, '--threads', '1', *more]
        with open(self.into(f'{name}.log'), 'wb') as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def follow_once(self, name, token, *more):
        """The exit status, and what it said."""
        status = self.follow(name, token, '--once', *more).wait(REPLY_SECONDS)
        with open(self.into(f'{name}.log')) as log:
            return status, log.read()

    def held(self, name):
        return sha256(os.path.join(self.into(name), 'current', 'model.safetensors'))

    def await_step(self, step):
        """Until every follower has the step, by what is in its folder."""
        wanted = sha256(self.checkpoints[step])
        names = [f'worker-{at}' for at in range(FOLLOWERS)]
        limit = time.monotonic() + REPLY_SECONDS
        while names:
            with contextlib.suppress(FileNotFoundError):
                while names and self.held(names[-1]) == wanted:
                    names.pop()
            self.assertLess(time.monotonic(), limit, f'{len(names)} do not have step {step}: {self.edge.log()}')
            time.sleep(0.05)

    def bytes_sent(self):
        return sum(sent_by(self.daemon, route)[1] for route in ('StepObject', 'FoldObject'))

    def test_the_origin_sends_each_step_once_and_may_go_away(self):
        payload = self.publish(0)
        self.followers += [self.follow(f'worker-{at}', self.tokens[at % 5]) for at in range(FOLLOWERS)]
        self.await_step(0)
        self.assertLessEqual(self.bytes_sent(), MOST * payload)
        for step in range(1, STEPS + 1):
            with self.subTest(step=step):
                before, polls = self.bytes_sent(), sent_by(self.daemon, 'LatestStep')[0]
                payload = self.publish(step)
                self.await_step(step)
                self.assertLessEqual(self.bytes_sent() - before, MOST * payload)
                self.assertLess(sent_by(self.daemon, 'LatestStep')[0] - polls, FOLLOWERS / 2)
        self.outage()

    def outage(self):
        """A worker that comes while the origin is away gets what the edge has; when it is back, all go on."""
        self.assertEqual(self.follow_once('before', self.tokens[0])[0], 0)
        other = self.daemon.add_key('--grant', 'models/other/=read')['token']
        self.daemon.kill()
        status, told = self.follow_once('during', self.tokens[0])
        self.assertEqual(status, 0, told)
        self.assertEqual(self.held('during'), sha256(self.checkpoints[STEPS]))
        for name, token in (('other', other), ('nobody', 'none')):
            self.assertNotEqual(self.follow_once(name, token, '--retries', '0')[0], 0)
            self.assertFalse(os.path.exists(os.path.join(self.into(name), 'current')))
        self.assertEqual([follower.poll() for follower in self.followers], FOLLOWERS * [None])
        self.daemon.start()
        self.publish(STEPS + 1)
        self.await_step(STEPS + 1)


if __name__ == '__main__':
    unittest.main()
