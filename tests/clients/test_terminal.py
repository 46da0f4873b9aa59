"""`deltabucket watch` on a terminal: a pseudo terminal whose other end is pyte's emulator."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from tests.support.clients import importable
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon, environment_of_programs
from tests.support.runs import Run

HERE = importable('pyte')
if HERE:
    import pyte

RUN = 'models/policy'
BEGIN, END = b'\033[?1049h', b'\033[?1049l'
REPLY_SECONDS = 60


class Terminal:
    """A program on a terminal of its own, and what is on the screen."""

    def __init__(self, command, environment, columns=100, lines=30):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.sent = b''
        self.end, inner = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(inner)
        self.inner = inner
        self.process = subprocess.Popen(command, env=environment, stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, columns, lines):
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def read(self, seconds):
        """Takes what comes within that time; False when nothing did."""
        if not select.select([self.end], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.end, 65536)
        except OSError:
            return False
        self.sent += data
        self.stream.feed(data)
        return bool(data)

    def text(self):
        return '\n'.join(line.rstrip() for line in self.screen.display)

    def await_(self, pattern, absent=False):
        """Until the screen has (or no longer has) the pattern; gives the match."""
        limit = time.monotonic() + REPLY_SECONDS
        while time.monotonic() < limit:
            found = re.search(pattern, self.text(), re.M)
            if bool(found) != absent:
                return found
            self.read(0.2)
        raise AssertionError(f'{pattern!r} ({"there" if absent else "missing"}):\n{self.text()}')

    def type(self, keys):
        os.write(self.end, keys.encode())

    def close(self):
        """The exit status."""
        limit = time.monotonic() + REPLY_SECONDS
        while self.process.poll() is None and time.monotonic() < limit:
            self.read(0.1)
        while self.read(0.1):
            pass
        return self.process.wait(1)

    def release(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.end)
        os.close(self.inner)


class Watch(unittest.TestCase):
    def setUp(self):
        self.assertTrue(HERE, 'setup/clients brings pyte')
        self.daemon = Daemon()
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__)
        self.run_ = Run(self.daemon, 'policy')
        self.run_.publish_all(0, 5)
        for number in range(40):
            self.report(f'node-{number:02}', 'ready', step=5)

    def report(self, name, state, **members):
        reply = self.daemon.request('PUT', f'/v1/runs/{RUN}/replicas/{name}', json.dumps({'state': state, **members}))
        self.assertLess(reply.status, 300, reply.body)

    def watch(self, *words, columns=100, lines=30, **environment):
        variables = {'DELTABUCKET_ENDPOINT': self.daemon.endpoint, 'DELTABUCKET_TOKEN': ROOT_TOKEN, 'DELTABUCKET_CA': self.daemon.ca, 'HOME': self.daemon.scratch,
                     'TERM': 'xterm-256color'}
        others = {name: value for name, value in environment_of_programs().items() if name != 'NO_COLOR'}
        terminal = Terminal([CLIENT, 'watch', RUN, '--poll', '1', *words], {**others, **variables, **environment}, columns, lines)
        self.addCleanup(terminal.release)
        return terminal

    def end(self, terminal, status):
        """It has ended so, and the terminal is as it was."""
        self.assertEqual(terminal.close(), status, terminal.text())
        self.assertEqual(terminal.sent.count(BEGIN), 1)
        self.assertIn(b'\033[?25h', terminal.sent.rsplit(b'\033[?25l', 1)[1])  # the cursor
        self.assertEqual(terminal.sent.count(END), 1)
        self.assertEqual(terminal.sent.rsplit(END, 1)[1].strip(), b'')
        self.assertEqual(termios.tcgetattr(terminal.inner), terminal.before)

    def rows(self, terminal):
        """The first words of the lines of the table."""
        return re.findall(r'^(node-\d\d) ', terminal.text(), re.M)

    def test_a_picture_that_follows_what_happens(self):
        terminal = self.watch()
        terminal.await_(r'^models/policy   step 5, \d+ s ago   proof ok   epoch 1$')
        terminal.await_(r'^40 workers, reports up to \d+ s old$')
        terminal.await_(r'^  ready +40  #+$')
        self.assertTrue(terminal.screen.display[29].startswith('q quit'), terminal.text())
        self.assertEqual(self.rows(terminal)[:2], ['node-00', 'node-01'])
        self.assertRegex(terminal.text(), r'(?m)^\.\.\. and \d+ more$')
        self.run_.publish(6)
        terminal.await_(r'^models/policy   step 6, .*   proof ok')
        terminal.await_(r'  step 6 is published$')
        terminal.await_(r'^slowest: 1 step, \d+ s behind   \[')
        self.report('node-17', 'error', step=5, error='out of \033[2Jmemory')
        terminal.await_(r'^node-17 +error +5 +1 \(\d+ s\) .*out of \?\[2Jmem')
        terminal.await_(r'  worker node-17 failed: out of \?\[2Jmemory$')
        self.assertEqual(self.rows(terminal)[0], 'node-17')
        self.daemon.request('PUT', f'/v1/runs/{RUN}/rollback', json.dumps({'step': 3}))
        terminal.await_(r'^the fleet is held at step 3$')
        self.daemon.request('DELETE', f'/v1/runs/{RUN}/rollback')
        terminal.await_(r'^the fleet is held at step 3$', absent=True)
        terminal.type('q')
        self.end(terminal, 0)

    def test_keys(self):
        terminal = self.watch()
        self.report('node-20', 'fetching', step=2, wanted=5)
        self.report('node-25', 'staging', step=3, wanted=5)
        self.report('node-30', 'error', step=5, error='broken')
        terminal.await_(r'^node-20 +fetching')
        terminal.await_(r'^node-25 +staging')
        terminal.await_(r'^node-30 +error')
        self.assertEqual(self.rows(terminal)[:3], ['node-30', 'node-20', 'node-25'])
        terminal.type('s')
        terminal.await_(r'now: state')
        self.assertEqual(self.rows(terminal)[:3], ['node-30', 'node-25', 'node-20'])
        terminal.type('n')
        terminal.await_(r'now: name')
        self.assertEqual(self.rows(terminal)[:2], ['node-00', 'node-01'])
        terminal.type('\033[A')  # an arrow is no Esc and no letter
        terminal.type('/node-3x\x7f')
        terminal.await_(r'^filter: node-3_')
        terminal.await_(r'^node-00 ', absent=True)
        self.assertEqual(self.rows(terminal), [f'node-3{number}' for number in range(10)])
        terminal.type('q')  # a letter of the filter
        terminal.await_(r'^filter: node-3q_')
        terminal.type('\x7f\r')
        terminal.await_(r'/ filter: node-3$')
        terminal.type('\033')
        terminal.await_(r'^node-00 ')
        terminal.type('l')
        terminal.await_(r'now: lag')
        terminal.type('q')
        self.end(terminal, 0)

    def test_other_sizes(self):
        terminal = self.watch()
        terminal.await_(r'^q quit')
        for columns, lines in ((60, 12), (130, 50), (30, 5)):
            terminal.resize(columns, lines)
            terminal.screen.reset()
            terminal.await_(r'^models/policy')
            if lines > 5:
                terminal.await_(r'^q quit')
                self.assertTrue(terminal.screen.display[lines - 1].startswith('q quit'), terminal.text())
        terminal.resize(130, 50)
        terminal.screen.reset()
        terminal.await_(r'^node-35 ')
        terminal.type('q')
        self.end(terminal, 0)

    def test_what_is_there_is_not_sent_again_and_nothing_is_blanked(self):
        terminal = self.watch()
        terminal.await_(r'^q quit')
        begun = len(terminal.sent)
        limit = time.monotonic() + 3
        while time.monotonic() < limit:
            terminal.read(0.2)
        pictures = terminal.sent[begun:].count(b'\033[H')
        self.assertLess(pictures, 8)  # ages change once a second, and it looks four times
        self.assertNotIn(b'\033[2J', terminal.sent[begun:])
        terminal.type('q')
        self.end(terminal, 0)

    def test_colours(self):
        self.report('node-30', 'error', step=5, error='broken')
        for environment, coloured in (({}, True), ({'NO_COLOR': '1'}, False)):
            terminal = self.watch(**environment)
            terminal.await_(r'^node-30 +error')
            self.assertEqual(b'\033[31m' in terminal.sent, coloured)
            terminal.type('q')
            self.end(terminal, 0)
        plain = self.watch(TERM='dumb')  # lines
        plain.await_(r'step 5 is published')
        self.assertNotIn(BEGIN, plain.sent)

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            terminal = self.watch()
            terminal.await_(r'^q quit')
            if number == signal.SIGINT:
                terminal.type('\x03')
            else:
                terminal.process.send_signal(number)
            self.end(terminal, 128 + number)

    def test_a_server_that_is_away_for_a_while(self):
        terminal = self.watch()
        terminal.await_(r'^q quit')
        self.daemon.kill()
        terminal.await_(r'failed: ')
        self.daemon.start()
        terminal.await_(r'failed: ', absent=True)
        self.run_.publish(6)
        terminal.await_(r'^models/policy   step 6')
        terminal.type('q')
        self.end(terminal, 0)

    def test_a_run_that_goes_ends_it(self):
        terminal = self.watch()
        terminal.await_(r'^q quit')
        self.daemon.request('DELETE', f'/v1/runs/{RUN}')
        self.assertEqual(terminal.close(), 5)
        self.assertIn(b"does not exist", terminal.sent.rsplit(END, 1)[1])

    def test_the_other_commands_have_colours_on_a_terminal_alone(self):
        variables = {'DELTABUCKET_ENDPOINT': 'http://127.0.0.1:1', 'HOME': self.daemon.scratch, 'TERM': 'xterm'}
        terminal = Terminal([CLIENT, 'doctor'], {**environment_of_programs(), **variables})
        self.addCleanup(terminal.release)
        terminal.await_(r'^problem  endpoint')
        self.assertIn(b'\033[31mproblem', terminal.sent)


if __name__ == '__main__':
    unittest.main()
