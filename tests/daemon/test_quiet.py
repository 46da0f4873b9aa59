"""`--quiet`: what a command was asked for is printed all the same, and so is what failed; what it only tells on the way is not."""
import os
import re
import unittest

from tests.support.checkpoints import write_safetensors
from tests.support.daemon import Daemon

THREADS_MEET = False

NOT_FOUND, CONFLICT = 5, 6
# Commands whose answer is what they print. CAPITALS stand for paths.
ASKED = (
    ['ls'], ['ls', '-l'], ['ls', 'box'], ['ls', '-r', 'box'], ['status'], ['status', 'models/policy'], ['keys'], ['runs'], ['runs', 'ls', 'models'],
    ['runs', 'settings', 'models/policy'], ['steps', 'models/policy'], ['replicas', 'models/policy'], ['pins', 'models/policy'], ['damage'],
    ['watch', 'models/policy', '--once'], ['doctor'],
    ['inspect', 'FIRST'], ['inspect', '--tensors', 'FIRST'], ['inspect', 'DELTA'], ['inspect', '--stats', 'DELTA'], ['version'],
    ['rm', '-r', 'box/', '--dry-run'], ['sync', 'FOLDER', 'box', '--dry-run'], ['sync', 'FOLDER', 'empty', '--dry-run'], ['get', 'box/file', '-'])
# Commands that do something. They are run in this order.
DOING = (
    ['login', 'ENDPOINT'], ['logout'], ['mb', 'new'], ['put', 'FILE', 'new/a'], ['cp', 'new/a', 'new/b'], ['get', 'new/a', 'GOT'],
    ['sync', 'FOLDER', 'new/folder'], ['rm', 'new/a'], ['rb', '--force', 'new'], ['diff', 'FIRST', 'SECOND', 'OTHER'], ['apply', 'FIRST', 'OTHER', 'MADE'],
    ['fold', '--base', 'FIRST', 'OTHER', 'FOLDED'], ['transcode', '--base', 'FIRST', '--to', 'full', 'OTHER', 'CODED'],
    ['publish', '--run', 'models/policy', 'SECOND'], ['follow', '--run', 'models/policy', '--into', 'INTO', '--once'],
    ['fleet', 'rollback', 'models/policy', '0'], ['fleet', 'forward', 'models/policy'],
    ['pins', 'models/policy', 'add', 'best', '1'], ['pins', 'models/policy', 'rm', 'best'], ['runs', 'settings', 'models/policy', 'keep_steps=9'],
    ['runs', 'add', 'models/another'], ['runs', 'rm', 'models/another'])


class Quiet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.start()
        cls.paths = {name: os.path.join(cls.daemon.scratch, name.lower()) for name in (
            'FIRST', 'SECOND', 'DELTA', 'FILE', 'FOLDER', 'GOT', 'OTHER', 'MADE', 'FOLDED', 'CODED', 'INTO')}
        for number, name in enumerate(('FIRST', 'SECOND')):
            write_safetensors(cls.paths[name], {'w': ('F32', [2], bytes([number] * 8))})
        os.mkdir(cls.paths['FOLDER'])
        for path in (cls.paths['FILE'], os.path.join(cls.paths['FOLDER'], 'new')):
            with open(path, 'wb') as file:
                file.write(b'some bytes')
        cls.client('diff', 'FIRST', 'SECOND', 'DELTA')
        cls.client('mb', 'box', 'empty', 'models')
        cls.client('put', 'FILE', 'box/file')
        cls.client('publish', '--run', 'models/policy', 'FIRST')
        cls.client('pins', 'models/policy', 'add', 'first', '0')

    @classmethod
    def client(cls, *words, **more):
        paths = {**cls.paths, 'ENDPOINT': cls.daemon.endpoint}
        return cls.daemon.client(*(paths.get(word, word) for word in words), **more)

    def test_every_command_is_looked_at(self):
        overview = self.client('help').stdout
        commands = {line.split()[0] for line in overview.split('\n\n')[1].splitlines()} - {'help'}
        self.assertEqual(commands, {words[0] for words in ASKED + DOING})

    def test_what_was_asked_for_is_printed(self):
        for words in ASKED:
            said, quiet = (re.sub(r'\d+', '#', self.client(*words, *more).stdout).split() for more in ((), ('--quiet',)))
            self.assertTrue(said, words)
            end = len(said) if '--dry-run' not in words else len(quiet)  # the sum at the end is told on the way
            self.assertTrue(quiet, words)
            self.assertEqual(quiet, said[:end], words)

    def test_what_is_done_is_not_told(self):
        token = self.daemon.add_key('--name', 'quiet')['token']
        for words in DOING:
            done = self.client(*words, '-q', input=token + '\n')
            self.assertEqual((done.stdout, done.stderr), ('', ''), words)
        self.assertTrue(os.path.exists(os.path.join(self.paths['INTO'], 'current')))

    def test_the_secret_of_a_new_key_is_never_lost(self):
        lines = self.client('keys', 'add', '-q', '--name', 'x', '--grant', 'box/=read').stdout.splitlines()
        made = {line.split('  ')[0]: line.split()[2 if line.startswith('key id') else 1] for line in lines}
        self.assertEqual(set(made), {'key id', 'secret', 'token'})
        self.assertEqual(self.client('get', '-q', 'box/file', '-', token=made['token']).stdout, 'some bytes')
        self.assertEqual(self.client('keys', 'rm', '-q', made['key id']).stdout, '')

    def test_each_failure_is_named(self):
        for words, status, named in ((['rm', 'box/nope', 'box/never'], NOT_FOUND, ['box/nope', 'box/never']), (['mb', 'box', 'empty'], CONFLICT, ['box', 'empty'])):
            done = self.client(*words, '-q', check=False)
            self.assertEqual((done.returncode, done.stdout), (status, ''), words)
            for name in named:
                self.assertRegex(done.stderr, rf'(?m)^deltabucket: there is .* {name}$')


if __name__ == '__main__':
    unittest.main()
