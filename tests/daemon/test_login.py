"""`deltabucket login`: which CA is believed, who gets the token, and what is stored."""
import json
import os
import pty
import re
import select
import signal
import socket
import stat
import subprocess
import time
import unittest

from tests.support.daemon import CLIENT, REPLY_SECONDS, ROOT_TOKEN, Daemon

THREADS_MEET = False

USAGE, UNREACHABLE, DENIED, NOT_FOUND = 2, 3, 4, 5


class Login(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()
        cls.fingerprint = re.search(r'\((sha256:[0-9a-f]{64})\)', cls.daemon.log())[1]

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def setUp(self):
        self.home = os.path.join(self.daemon.scratch, self._testMethodName)
        os.makedirs(self.home)
        self.environment = {'HOME': self.home, 'PATH': os.environ['PATH'],
                            **{name: value for name, value in os.environ.items() if 'SAN_OPTIONS' in name}}
        self.config = os.path.join(self.home, '.config', 'deltabucket', 'config')

    def run_client(self, *words, token='', **environment):
        return subprocess.run([CLIENT, *words], env={**self.environment, **environment}, input=token, capture_output=True, text=True, timeout=120)

    def login(self, *words, token=ROOT_TOKEN + '\n'):
        return self.run_client('login', self.daemon.endpoint, *words, token=token)

    def type(self, *words, answers):
        """With a terminal: gives what was shown, and the exit status."""
        child, terminal = pty.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever started the tests may have it ignored
            os.execve(CLIENT, [CLIENT, *words], self.environment)
        shown = b''
        limit = time.monotonic() + REPLY_SECONDS
        for question, answer in answers:
            while question not in shown:
                self.assertLess(time.monotonic(), limit, shown)
                if select.select([terminal], [], [], 1)[0]:
                    shown += os.read(terminal, 4096)
            time.sleep(0.3)  # a terminal drops what was typed before its settings change
            os.write(terminal, answer)
        try:
            while more := os.read(terminal, 4096):
                shown += more
        except OSError:
            pass
        os.close(terminal)
        return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def test_a_fingerprint_makes_the_ca_known(self):
        done = self.login('--fingerprint', self.fingerprint)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('logged in to', done.stdout)
        self.assertNotIn(ROOT_TOKEN, done.stdout + done.stderr)
        self.assertEqual(stat.S_IMODE(os.stat(self.config).st_mode), 0o600)
        self.assertEqual(self.run_client('mb', 'made').returncode, 0)
        self.assertIn('made', self.run_client('ls').stdout)
        with open(self.daemon.ca) as ca, open(os.path.join(os.path.dirname(self.config), 'default.ca.pem')) as stored:
            self.assertEqual(stored.read(), ca.read())
        out = self.run_client('logout')
        self.assertEqual((out.returncode, os.listdir(os.path.dirname(self.config))), (0, ['config']))
        self.assertEqual(self.run_client('ls').returncode, USAGE)
        self.assertEqual(self.run_client('logout').returncode, NOT_FOUND)

    def test_a_config_that_others_may_read_is_told_of(self):
        self.assertEqual(self.login('--ca', self.daemon.ca).returncode, 0)
        self.assertEqual(self.run_client('ls').stderr, '')
        for mode in (0o640, 0o604):
            os.chmod(self.config, mode)
            self.assertIn(f'{self.config} holds a token, and users other than', self.run_client('ls').stderr)
        self.assertEqual(self.run_client('ls', DELTABUCKET_TOKEN=ROOT_TOKEN).stderr, '')
        self.assertEqual(self.run_client('ls', '--quiet').stderr, '')

    def test_openssl_writes_fingerprints_another_way(self):
        digits = self.fingerprint.removeprefix('sha256:').upper()
        colons = ':'.join(digits[at:at + 2] for at in range(0, 64, 2))
        self.assertEqual(self.login('--fingerprint', colons).returncode, 0)

    def test_another_fingerprint_stores_and_sends_nothing(self):
        done = self.login('--fingerprint', 'sha256:' + '0' * 64)
        self.assertEqual(done.returncode, UNREACHABLE, done.stderr)
        self.assertIn('Nothing was sent or stored', done.stderr)
        self.assertEqual(os.listdir(self.home), [])
        self.assertEqual(self.login('--fingerprint', 'sha256:12').returncode, USAGE)

    def test_without_a_terminal_nothing_is_believed(self):
        done = self.login()
        self.assertEqual(done.returncode, USAGE, done.stderr)
        self.assertIn('--fingerprint', done.stderr)
        self.assertEqual(os.listdir(self.home), [])

    def test_a_wrong_token_is_not_stored(self):
        done = self.login('--fingerprint', self.fingerprint, token='db_wrong\n')
        self.assertEqual(done.returncode, DENIED, done.stderr)
        self.assertFalse(os.path.exists(self.config))
        self.assertIn(f'{self.daemon.endpoint} does not take the token', done.stderr)
        self.assertEqual(self.login('--fingerprint', self.fingerprint, token='').returncode, USAGE)
        self.assertIn('login', self.run_client('ls', token='').stderr)
        self.assertEqual(self.login('--token', ROOT_TOKEN).returncode, USAGE)

    def test_the_ca_of_another_server_is_named(self):
        """Not the token, and not the file that the CA is in meanwhile."""
        with Daemon() as other:
            done = self.login('--ca', other.ca)
            self.assertEqual(done.returncode, UNREACHABLE, done.stderr)
            self.assertIn(f'the certificate of {self.daemon.endpoint} is not signed by the CA in {other.ca}', done.stderr)
            self.assertIn('Nothing was sent or stored', done.stderr)
            for wrong in ('token', '.pem.new'):
                self.assertNotIn(wrong, done.stderr)
        self.assertFalse(os.path.exists(self.config))
        unnamed = self.daemon.endpoint.replace('127.0.0.1', '127.0.0.2')
        self.assertNotEqual(unnamed, self.daemon.endpoint)
        done = self.run_client('login', unnamed, '--ca', self.daemon.ca, token=ROOT_TOKEN)
        self.assertNotIn('is not signed', done.stderr)  # there is nobody, or it has another name

    def test_a_person_confirms_and_types_the_token_unseen(self):
        shown, status = self.type('login', self.daemon.endpoint, answers=[(b'(yes/no)', b'yes\n'), (b'Token: ', ROOT_TOKEN.encode() + b'x\x7f\n')])
        self.assertEqual(status, 0, shown)
        self.assertIn(self.fingerprint, shown)
        self.assertNotIn(ROOT_TOKEN, shown)
        self.assertEqual(self.run_client('ls').returncode, 0)

    def test_a_person_declines(self):
        shown, status = self.type('login', self.daemon.endpoint, answers=[(b'(yes/no)', b'y\n')])
        self.assertEqual(status, UNREACHABLE, shown)
        self.assertFalse(os.path.exists(self.config))

    def test_ctrl_c_at_the_token_ends_it(self):
        _, status = self.type('login', '--ca', self.daemon.ca, self.daemon.endpoint, answers=[(b'Token: ', b'\x03')])
        self.assertEqual(status, -2)

    def test_profiles_have_servers_of_their_own(self):
        key = self.daemon.add_key('--name', 'lab', '--namespace', 'lab')
        self.assertEqual(self.login('--ca', self.daemon.ca).returncode, 0)
        done = self.login('--profile', 'lab', '--fingerprint', self.fingerprint, '--json', token=key['token'])
        self.assertEqual((json.loads(done.stdout)['namespace'], json.loads(done.stdout)['profile']), ('lab', 'lab'))
        self.run_client('mb', 'mine')
        self.assertIn('mine', self.run_client('ls').stdout)
        self.assertEqual(self.run_client('--profile', 'lab', 'ls').stdout, '')
        self.assertEqual(self.run_client('ls', DELTABUCKET_PROFILE='lab').stdout, '')
        self.assertEqual(self.run_client('ls', '--profile', 'lab', DELTABUCKET_TOKEN=ROOT_TOKEN).stdout, '')
        missing = self.run_client('ls', '--profile', 'nobody')
        self.assertEqual((missing.returncode, 'deltabucket login --profile nobody' in missing.stderr), (USAGE, True))
        self.assertEqual(self.run_client('logout', '--profile', 'lab').returncode, 0)
        self.assertIn('mine', self.run_client('ls').stdout)
        self.assertEqual(self.run_client('ls', '--profile', '../x').returncode, USAGE)

    def test_a_stored_token_goes_to_its_own_server_alone(self):
        self.assertEqual(self.login('--ca', self.daemon.ca).returncode, 0)
        other = self.daemon.endpoint.replace('127.0.0.1', 'localhost')
        self.assertEqual(self.run_client('ls', '--endpoint', other, '--ca', self.daemon.ca).returncode, DENIED)
        self.assertEqual(self.run_client('ls', '--endpoint', self.daemon.endpoint + '/').returncode, 0)

    def test_a_certificate_that_is_not_trusted_ends_follow_at_once(self):
        """With the hint that other commands give, and without a trace in the folder."""
        into = os.path.join(self.home, 'into')
        words = ['--endpoint', self.daemon.endpoint, '--token', ROOT_TOKEN]
        for more, hint in (([], 'a server with a CA of its own needs its tls/ca.pem'),
                           (['--ca', '/etc/ssl/certs/ca-certificates.crt'], 'is this the CA of that server?')):
            for command in (['ls'], ['follow', '--run', 'models/r', '--into', into]):
                done = self.run_client(*command, *words, *more)
                self.assertEqual(done.returncode, UNREACHABLE, done.stderr)
                self.assertIn(hint, done.stderr)
                self.assertNotIn('following continues', done.stderr)
        self.assertFalse(os.path.exists(into))

    def test_a_follower_that_is_kept_out_says_one_thing(self):
        into = os.path.join(self.home, 'into')
        self.daemon.request('PUT', '/kept')
        self.daemon.client('runs', 'add', 'kept/r')
        for token in ([], ['--token', 'db_wrong']):
            done = self.run_client('follow', '--run', 'kept/r', '--into', into, '--endpoint', self.daemon.endpoint, '--ca', self.daemon.ca, *token)
            self.assertEqual((done.returncode, done.stderr.count('\n')), (DENIED, 1), done.stderr)

    def test_http_and_https_are_told_apart(self):
        plain = self.daemon.endpoint.replace('https:', 'http:')
        done = self.run_client('ls', '--endpoint', plain, '--retries', '0')
        self.assertEqual(done.returncode, UNREACHABLE)
        self.assertIn('the server speaks HTTPS, not plain HTTP: use https://', done.stderr)
        into = os.path.join(self.home, 'into')
        done = self.run_client('follow', '--run', 'models/r', '--into', into, '--endpoint', plain)
        self.assertEqual((done.returncode, done.stderr.count('\n')), (UNREACHABLE, 1), done.stderr)
        self.assertIn('the server speaks HTTPS, not plain HTTP: use https://', done.stderr)
        self.assertFalse(os.path.exists(into))
        with Daemon(tls=False) as daemon:
            done = self.run_client('ls', '--endpoint', daemon.endpoint.replace('http:', 'https:'), '--retries', '0')
            self.assertRegex(done.stderr, r'does (the server|it) speak plain HTTP\?')

    def test_the_route_gives_the_ca_to_anybody(self):
        with open(self.daemon.ca, 'rb') as ca:
            self.assertEqual(self.daemon.request('GET', '/-/ca', token=None).body, ca.read())

    def test_plain_http_has_no_ca(self):
        with Daemon(tls=False) as daemon:
            self.assertEqual(daemon.request('GET', '/-/ca', token=None).status, 404)
            done = self.run_client('login', daemon.endpoint, token=ROOT_TOKEN)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('plain HTTP', done.stderr)

    def test_over_plain_http_nobody_is_proven(self):
        """Whoever names the server's CA wants it proven before the token goes out."""
        with Daemon(tls=False) as daemon:
            for word, value in (('--fingerprint', self.fingerprint), ('--ca', self.daemon.ca)):
                done = self.run_client('login', daemon.endpoint, word, value, token=ROOT_TOKEN)
                self.assertEqual(done.returncode, USAGE, done.stderr)
                self.assertIn(f'{word} goes with an endpoint https://', done.stderr)
        self.assertEqual(os.listdir(self.home), [])

    def test_a_file_and_a_fingerprint_are_two_ways(self):
        done = self.login('--ca', self.daemon.ca, '--fingerprint', self.fingerprint)
        self.assertEqual((done.returncode, 'either --ca' in done.stderr), (USAGE, True), done.stderr)

    def test_a_bundle_of_many_cas(self):
        """As the system's, with the server's own among them."""
        bundle = os.path.join(self.home, 'both.pem')
        with open(self.daemon.ca) as ca, open(bundle, 'w') as file:
            file.write(ca.read() + '# what stands between certificates is no part of them\n' * 20000)
        done = self.login('--ca', bundle)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.run_client('ls').returncode, 0)
        with open(bundle, 'a') as file:
            file.write('#' * 4 * 1024 * 1024)
        done = self.login('--ca', bundle)
        self.assertEqual(done.returncode, 1)
        self.assertIn('--ca wants a PEM file', done.stderr)

    def test_the_first_start_prints_what_to_paste(self):
        with self.start_without_root() as daemon:
            lines = [line.strip() for line in daemon.log().splitlines() if line.startswith('  export ')]
            shell = '; '.join(lines) + f'; {CLIENT} mb pasted && {CLIENT} ls'
            pasted = subprocess.run(['sh', '-c', shell], env=self.environment, capture_output=True, text=True, timeout=120)
            self.assertIn('pasted', pasted.stdout, pasted.stderr)
            self.assertIn('it listens only on this machine', daemon.log())
            self.assertIn('DELTABUCKET_ROOT_TOKEN', daemon.log())

    def start_without_root(self, *arguments):
        daemon = Daemon(arguments=arguments)
        daemon.environment = {name: value for name, value in daemon.environment.items() if not name.startswith('DELTABUCKET_ROOT')}
        return daemon

    def test_the_first_start_says_how_others_reach_it(self):
        with self.start_without_root('--listen', '0.0.0.0:0', '--tls-name', 'bucket.example') as daemon:
            self.assertRegex(daemon.log(), r'deltabucket login https://bucket\.example:[1-9]\d* --fingerprint sha256:')
            self.assertRegex(daemon.log(), r'export DELTABUCKET_ENDPOINT=https://127\.0\.0\.1:[1-9]')

    def test_no_key_is_made_for_an_address_that_is_taken(self):
        daemon = self.start_without_root()
        with self.assertRaisesRegex(RuntimeError, 'cannot listen on'):
            blocker = socket.create_server(('127.0.0.1', 0))
            daemon.arguments = ['--listen', f'127.0.0.1:{blocker.getsockname()[1]}']
            daemon.start()
        self.assertNotIn('export', daemon.log())
        blocker.close()
        daemon.arguments = []
        with daemon:
            self.assertIn('  export DELTABUCKET_TOKEN=', daemon.log())


if __name__ == '__main__':
    unittest.main()
