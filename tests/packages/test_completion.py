"""contrib/completions in real shells: what a person types before the tab, and what stands there after it."""
import os
import pty
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from tests.support.daemon import BUILD, CLIENT, ROOT_TOKEN, SOURCE, Daemon

SCRIPT = os.path.join(SOURCE, 'contrib', 'completions', 'deltabucket')
ANSWER_SECONDS = 60  # ends what hangs
PROMPT = 'ready> '


class Shell:
    """A shell at a terminal, in a folder of its own."""

    def __init__(self, words, folder, environment, setup):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, {'PATH': f'{BUILD}:{os.environ["PATH"]}', 'TERM': 'dumb', 'HOME': folder, 'LC_ALL': 'C.UTF-8', **environment})
        self.text = ''
        for line in setup:
            self.send(line + '\n')
        self.send('echo set-up-"done"\n')
        self.wait_for('set-up-done')

    def send(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, text):
        """What came up to and with this text."""
        limit = time.monotonic() + ANSWER_SECONDS
        while text not in self.text:
            if time.monotonic() > limit or not select.select([self.terminal], [], [], max(0, limit - time.monotonic()))[0]:
                raise AssertionError(f'{text!r} did not come: {self.text[-2000:]!r}')
            self.text += os.read(self.terminal, 65536).decode(errors='replace')
        before, _, self.text = self.text.partition(text)
        return before + text

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


class Completion:
    """For each shell: start() gives it with the completion loaded."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix='deltabucket-test-')
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        os.mkdir(os.path.join(self.folder, 'checkpoints'))

    def complete(self, typed, wanted, **environment):
        shell = self.start(environment)
        try:
            shell.send('echo at-"work"; ' + typed + '\t')
            shell.wait_for(wanted)
        finally:
            shell.send('\x03\x04')
            shell.close()

    def test_words_are_completed(self):
        for typed, wanted in (('deltabucket pub', 'deltabucket publish '), ('deltabucket publish --take', 'publish --take-over '),
                              ('deltabucket diff --format trl-g', '--format trl-gap '), ('deltabucket inspect ./checkp', './checkpoints'),
                              ('deltabucket fleet roll', 'fleet rollback '), ('deltabucketd key', 'deltabucketd keys '),
                              ('deltabucketd keys rev', 'keys revoke '), ('deltabucketd fsck --repa', 'fsck --repair '),
                              ('deltabucketd --log-level war', '--log-level warning '), ('deltabucketd --data checkp', '--data checkpoints'),
                              ('deltabucket help pub', 'help publish ')):
            with self.subTest(typed=typed):
                self.complete(typed, wanted)

    def test_buckets_and_runs_are_the_servers(self):
        with Daemon() as daemon:
            known = {'DELTABUCKET_ENDPOINT': daemon.endpoint, 'DELTABUCKET_CA': daemon.ca, 'DELTABUCKET_TOKEN': ROOT_TOKEN}
            for words in (['mb', 'weights'], ['runs', 'add', 'weights/policy']):
                subprocess.run([CLIENT, *words], check=True, capture_output=True, env={**os.environ, **known})
            self.complete('deltabucket ls wei', 'ls weights/', **known)
            self.complete('deltabucket follow --run wei', '--run weights/policy ', **known)

    def test_without_a_server_the_rest_is_completed(self):
        self.complete('deltabucket put checkp', 'put checkpoints', DELTABUCKET_ENDPOINT='http://127.0.0.1:1', DELTABUCKET_TOKEN='x')


class Bash(Completion, unittest.TestCase):
    def start(self, environment):
        return Shell(['bash', '--norc', '--noprofile', '-i'], self.folder, environment,
                     [f"PS1='{PROMPT}'", 'bind "set bell-style none"', 'bind "set enable-bracketed-paste off"', '. /usr/share/bash-completion/bash_completion', f'. {SCRIPT}'])


class Zsh(Completion, unittest.TestCase):
    def start(self, environment):
        functions = os.path.join(self.folder, 'functions')
        os.makedirs(functions, exist_ok=True)
        for name in ('_deltabucket', '_deltabucketd'):
            shutil.copy(SCRIPT, os.path.join(functions, name))
        return Shell(['zsh', '-f', '-i'], self.folder, environment,
                     [f"PS1='{PROMPT}'", 'unsetopt beep', f'fpath=({functions} $fpath)', 'autoload -U compinit', 'compinit -u -D'])


if __name__ == '__main__':
    unittest.main()
