"""The manual pages: one for each command of both programs, with every flag that --help has."""
import glob
import os
import re
import subprocess
import unittest

from tests.support.daemon import BUILD, CLIENT, SERVER

PAGES = os.path.join(BUILD, 'man')


def output(*words, **variables):
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60, env={**os.environ, **variables}).stdout


def commands(program):
    overview = output(program, 'help').split('\n\n')[1]
    return [name for name in re.findall(r'^  ([a-z][a-z-]*)', overview, re.M) if name not in ('help', 'version')]


def read_page(name):
    """As a reader sees it, in one line."""
    text = output('man', '-l', os.path.join(PAGES, name), MANWIDTH='200', LC_ALL='C.UTF-8', MAN_KEEP_FORMATTING='')
    return re.sub(r'\s+', ' ', re.sub('.\b', '', text))


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(['make', '-s', '-C', BUILD, 'pages'], check=True, capture_output=True)

    def test_every_command_has_a_page_and_every_page_a_command(self):
        expected = {'deltabucket.1', 'deltabucketd.8', 'deltabucketd.conf.5', *(f'deltabucket-{name}.1' for name in commands(CLIENT)),
                    *(f'deltabucketd-{name}.8' for name in commands(SERVER))}
        self.assertEqual({os.path.basename(path) for path in glob.glob(os.path.join(PAGES, '*.[158]'))}, expected)

    def test_pages_say_what_help_says(self):
        for program, section in ((CLIENT, 1), (SERVER, 8)):
            name = os.path.basename(program)
            for command in commands(program):
                page = read_page(f'{name}-{command}.{section}')
                told = output(program, 'help', command)
                self.assertIn(f'NAME {name}-{command} - ', page)
                self.assertIn(f'SYNOPSIS {name} {command}', page)
                flags = re.findall(r'^  (--[a-z0-9-]+)', told, re.M)
                self.assertLess(1, len(flags), command)
                for flag in flags:
                    self.assertIn(f' {flag}', page)
                example = re.search(r'^examples:\n  (.*)$', told, re.M)
                self.assertIn('EXAMPLES $ ' + re.sub(r'\s+', ' ', example[1]), page)
                self.assertIn('SEE ALSO', page)
                if program == CLIENT:
                    self.assertIn('EXIT STATUS 0 done 1 failed', page)

    def test_the_pages_of_the_programs_have_what_operators_look_for(self):
        page = read_page('deltabucketd.8')
        for words in ('SYNOPSIS deltabucketd --data DIR [FLAGS] deltabucketd COMMAND [FLAGS]', 'COMMANDS keys add, list or revoke keys', '--check-config', 'FILES', 'SIGNALS',
                      'EXIT STATUS', 'ENVIRONMENT'):
            self.assertIn(words, page)
        page = read_page('deltabucket.1')
        for words in ('COMMANDS publish make a checkpoint', 'DELTABUCKET_ENDPOINT', '~/.config/deltabucket/config', 'EXIT STATUS 0 done'):
            self.assertIn(words, page)
        page = read_page('deltabucketd.conf.5')
        for row in output(SERVER, '--print-config-docs').splitlines()[2:]:
            self.assertIn(f' {row.split("`")[1]} = ', page)

    def test_troff_has_no_complaint(self):
        for path in sorted(glob.glob(os.path.join(PAGES, '*.[158]'))):
            done = subprocess.run(['man', '--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-Z', path], capture_output=True, text=True, timeout=60,
                                  env={**os.environ, 'LC_ALL': 'C.UTF-8', 'MANROFFSEQ': '', 'MANWIDTH': '80'})
            self.assertEqual(done.stderr, '', path)


if __name__ == '__main__':
    unittest.main()
