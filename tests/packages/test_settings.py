"""--print-config, --check-config and show_root_key: what the service's file of settings rests on."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from tests.support.clients import read
from tests.support.daemon import BUILD, SERVER, SOURCE, Daemon

WRONG = '''data = {folder}
gc_rat = 3

gc_rate = many
# a comment
what is this
[tls]
cert = {cert}
key = {key}
[]
listen = 127.0.0.1
log_level = loud
master_key = {short}
put_max = 1GiB
put_max = 2GiB
'''


def server(*words, **variables):
    clean = {name: value for name, value in os.environ.items() if not name.startswith('DELTABUCKET_')}
    return subprocess.run([SERVER, *words], capture_output=True, text=True, timeout=60, env={**clean, **variables})


class Settings(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix='deltabucket-test-')
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        self.path = self.file('deltabucketd.conf', '')

    def file(self, name, text, mode=0o600):
        path = os.path.join(self.scratch, name)
        with open(path, 'w') as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def check(self, *words, **variables):
        done = server('--check-config', '--config', self.path, *words, **variables)
        self.assertFalse(os.path.exists(os.path.join(self.scratch, 'data')))
        return done

    def test_each_wrong_line_is_named(self):
        with Daemon() as one, Daemon() as other:
            os.mkdir(os.path.join(self.scratch, 'photos'))
            self.file('photos/cat.jpg', 'meow')
            text = WRONG.format(folder=os.path.join(self.scratch, 'photos'), cert=one.ca, short=self.file('key', '00'),
                                key=os.path.join(other.folder, 'tls', 'ca.key'))
            self.file('deltabucketd.conf', text)
            done = self.check('--gc-interval', 'never', '--no-such-flag', DELTABUCKET_SCRUB_RATE='fast', DELTABUCKET_ROOT_TOKEN='short')
        self.assertEqual(done.returncode, 2, done.stdout)
        said = done.stderr.splitlines()
        expected = [(2, "there is no setting 'gc_rat'; did you mean gc_rate?"), (4, "gc_rate must be a number of MiB/s from 0 to 65536"),
                    (6, 'neither a setting (name = value) nor a heading'), (11, "the address '127.0.0.1' is not HOST:PORT"),
                    (12, "log_level must be error, warning, info or debug, not 'loud'"), (15, 'put_max is set twice'),
                    (1, 'cat.jpg'), (13, 'master_key: '), (8, 'tls_cert: cannot use ')]
        for line, words in expected:
            found = [each for each in said if each.startswith(f'{self.path}:{line}: ')]
            self.assertEqual(len(found), 1, (line, said))
            self.assertIn(words, found[0])
        for words in ('environment, DELTABUCKET_SCRUB_RATE: scrub_rate must be', 'command line: gc_interval must be', 'there is no flag --no-such-flag',
                      'DELTABUCKET_ROOT_TOKEN has 5 characters'):
            self.assertEqual(len([each for each in said if words in each]), 1, (words, said))
        self.assertEqual(len(said), len(expected) + 4, said)

    def test_right_settings_pass_beside_the_server_that_has_them(self):
        with Daemon() as daemon:
            self.file('deltabucketd.conf', f'data = {daemon.folder}\nlisten = 127.0.0.1:{daemon.port}\ntls_cert = {daemon.ca}\n'
                                           f'tls_key = {daemon.folder}/tls/ca.key\nmaster_key = {daemon.folder}/master.key\n')
            done = self.check()
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            self.assertEqual(daemon.request('GET', '/-/ready', token=None).status, 200)
            self.file('deltabucketd.conf', f'data = {daemon.folder}\nmaster_key = {self.scratch}/lost\n')
            done = self.check()
            self.assertEqual(done.returncode, 2)
            self.assertIn(f'{self.path}:2: master_key: ', done.stderr)

    def test_files_that_are_not_there(self):
        for text, line, words in ((f'data = {self.scratch}/data', None, None), (f'data = {self.scratch}/no/data', 1, f'neither is {self.scratch}/no'),
                                  (f'data = {self.path}', 1, 'is not a folder'), ('', None, '--data DIR is needed'),
                                  (f'data = {self.scratch}/data\ntls_cert = /x.pem\ntls_key = /dev/null', 2, '/x.pem is not'),
                                  (f'data = {self.scratch}/data\ntls_cert = /x.pem', 2, 'tls_key is not; they must be set together')):
            self.file('deltabucketd.conf', text)
            done = self.check()
            self.assertEqual(done.returncode, 2 if words else 0, (text, done.stderr))
            if words:
                self.assertIn(words, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            if line:
                self.assertTrue(done.stderr.startswith(f'{self.path}:{line}: '), done.stderr)
        done = server('--check-config', '--config', '/no/such.conf', '--data', f'{self.scratch}/data')
        self.assertEqual(done.returncode, 2)
        self.assertIn('/no/such.conf', done.stderr)

    def test_help_is_help_beside_the_others(self):
        for flag in ('--check-config', '--print-config', '--print-config-docs'):
            self.assertEqual(server(flag, '--help').stdout, server('--help').stdout)

    def test_the_printed_file_has_every_setting_and_means_the_defaults(self):
        printed = server('--print-config').stdout
        names = re.findall(r'^SETTING\((\w+),', read(os.path.join(SOURCE, 'server', 'configuration.def')).decode(), re.M)
        self.assertEqual(re.findall(r'^#(\w+) =', printed, re.M), names)
        self.assertEqual(re.findall(r'^\w+ =', printed, re.M), [])
        self.assertLessEqual(max(map(len, re.findall(r'^# .*', printed, re.M))), 100)
        self.file('deltabucketd.conf', re.sub(r'^#(\w+ =)', r'\1', printed, flags=re.M).replace('data =', f'data = {self.scratch}/data'))
        done = self.check()
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        again = server('--print-config', '--config', self.path)
        self.assertEqual(again.stdout.replace(f'\ndata = {self.scratch}/data\n', '\n#data =\n'), printed)

    def test_the_printed_file_keeps_what_is_given(self):
        given = ['--data', '/srv/a b', '--listen', '[::]:9000', '--listen', 'unix:/run/x', '--tls-name', 'bucket.example', '--gc-rate', '1GiB/s', '--sigv2=no',
                 '--domain', 'x.example']
        printed = server('--print-config', *given).stdout
        self.assertEqual(re.findall(r'^\w.*', printed, re.M),
                         ['data = /srv/a b', 'listen = [::]:9000, unix:/run/x', 'tls_name = bucket.example', 'domain = x.example', 'sigv2 = no', 'gc_rate = 1024'])
        self.file('deltabucketd.conf', printed)
        self.assertEqual(server('--print-config', '--config', self.path).stdout, printed)

    def test_a_value_with_signs_of_its_own_comes_back(self):
        for value, line in (('/srv/#1', '"/srv/#1"'), ("/srv/it's ; so", '"/srv/it\'s ; so"'), ('/srv/"quoted"', '\'/srv/"quoted"\''),
                            ('/srv/"both\'s" # one', '"/srv/""both\'s"" # one"'), ('\'a\' "b"', '"\'a\' ""b"""'), (' /srv/blanks\t', '" /srv/blanks\t"')):
            printed = server('--print-config', '--data', value).stdout
            self.assertIn(f'\ndata = {line}\n', printed)
            self.file('deltabucketd.conf', printed)
            again = server('--print-config', '--config', self.path)
            self.assertEqual((again.stdout, again.stderr), (printed, ''), value)

    def test_the_file_of_the_package_is_what_the_program_prints(self):
        subprocess.run(['make', '-s', '-C', BUILD, 'deltabucketd.conf'], check=True, capture_output=True)
        text = read(os.path.join(BUILD, 'deltabucketd.conf')).decode()
        self.assertEqual(text, server('--print-config', '--data', '/var/lib/deltabucket', '--show-root-key=no').stdout)
        self.assertEqual(re.findall(r'^\w.*', text, re.M), ['data = /var/lib/deltabucket', 'show_root_key = no'])

    def test_a_hidden_root_key_is_not_printed_and_the_first_key_is_explained(self):
        nothing = {f'DELTABUCKET_ROOT_{name}': '' for name in ('KEY_ID', 'SECRET', 'TOKEN')}
        daemon = Daemon(arguments=['--show-root-key=no'])
        daemon.environment.update(nothing)
        with daemon:
            log = daemon.log()
            self.assertNotRegex(log, r'db_[a-z0-9]{40}')
            self.assertNotIn('DELTABUCKET_TOKEN=', log)
            self.assertIn(f'  deltabucketd keys add --data {daemon.folder} --name NAME\n', log)
            self.assertIn(f'  deltabucketd console --data {daemon.folder}\n', log)
            self.assertRegex(log, rf'  deltabucket login {daemon.endpoint} --fingerprint sha256:[0-9a-f]{{64}}\n')
            token = json.loads(daemon.admin('keys', 'add', '--name', 'me', '--json').stdout)['token']
            self.assertEqual(daemon.request('PUT', '/files', token=token).status, 200)


if __name__ == '__main__':
    unittest.main()
