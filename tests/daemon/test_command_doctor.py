"""`deltabucket doctor`: one real fault at a time, found and told apart, with the exit status of docs/COMMANDS.md."""
import email.utils
import http.client
import http.server
import json
import os
import resource
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from tests.support.daemon import CLIENT, DATA, SERVER, Daemon, environment_of_programs, held_port
from tests.support.runs import Run
from tests.support.skips import needs_mount

THREADS_MEET = False
ENDED = os.path.join(DATA, 'certificates', 'ended.pem')  # a certificate for 127.0.0.1, in the year 2019
USAGE, UNREACHABLE, DENIED, NOT_FOUND, FULL = 2, 3, 4, 5, 8
NAMES = {'settings', 'config file', 'endpoint', 'certificate', 'clock', 'server', 'latency', 'key', 'version', 'state', 'open files'}


def answers(port):
    """Whether somebody takes connections there."""
    with socket.socket() as trial:
        return trial.connect_ex(('127.0.0.1', port)) == 0


class Relay(http.server.BaseHTTPRequestHandler):
    """Passes requests on to a server of plain HTTP; its Date is `ahead_s` ahead."""
    ahead_s = 0
    port = None

    def do_GET(self):
        connection = http.client.HTTPConnection('127.0.0.1', self.port)
        connection.request('GET', self.path, headers={'Authorization': self.headers['Authorization']} if 'Authorization' in self.headers else {})
        reply = connection.getresponse()
        body = reply.read()
        self.send_response_only(reply.status)
        self.send_header('Date', email.utils.formatdate(time.time() + self.ahead_s, usegmt=True))
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        connection.close()

    def log_message(self, *_):
        pass


class Newer(Relay):
    """A server that says whose the token is, and its version."""
    session = None

    def do_GET(self):
        if self.path != '/-/session':
            return super().do_GET()
        body = json.dumps(self.session).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Stranger(Relay):
    """Another program that speaks HTTP."""

    def do_GET(self):
        self.send_error(404)


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.home = scratch.name

    def doctor(self, *words, before=None, **environment):
        """The exit status, and the checks by name, each a list."""
        variables = {name: value for name, value in environment_of_programs().items() if not name.startswith('DELTABUCKET_')}
        done = subprocess.run([CLIENT, 'doctor', '--json', *words], env={**variables, 'HOME': self.home, **environment}, capture_output=True, text=True,
                              timeout=120, preexec_fn=before)
        checks, sums = {}, None
        for line in map(json.loads, done.stdout.splitlines()):
            if line.get('event') == 'check':
                checks.setdefault(line['name'], []).append(line)
            elif line.get('event') == 'checked':
                sums = line
        states = [check['state'] for found in checks.values() for check in found]
        self.assertEqual((sums['ok'], sums['warnings'], sums['problems']), tuple(map(states.count, ('ok', 'warning', 'problem'))))
        self.assertEqual(done.returncode != 0, sums['problems'] > 0, done.stdout)
        return done.returncode, checks

    def expect(self, status, name, state, said, advice, *words, **environment):
        """There is such a line, and no other problem."""
        ended, checks = self.doctor(*words, **environment)
        fit = [check for check in checks.get(name, []) if check['state'] == state and said in check['message'] and advice in check.get('advice', '')]
        self.assertTrue(fit, (name, said, advice, checks))
        self.assertEqual(ended, status, checks)
        others = [check for found in checks.values() for check in found if check['state'] == 'problem' and check not in fit]
        self.assertEqual(others, [])
        return checks

    def variables_of(self, daemon, **changes):
        made = {'DELTABUCKET_ENDPOINT': daemon.endpoint, 'DELTABUCKET_TOKEN': daemon.environment['DELTABUCKET_ROOT_TOKEN']}
        return {**made, **({'DELTABUCKET_CA': daemon.ca} if daemon.tls else {}), **changes}

    def relay(self, handler, **members):
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), type('Handler', (handler,), members))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return f'http://127.0.0.1:{server.server_port}'


class Healthy(Case):
    def test_all_is_well(self):
        with Daemon() as daemon:
            run = Run(daemon, 'policy')
            run.publish_all(0, 1)
            variables = self.variables_of(daemon)
            status, checks = self.doctor(**variables)
            self.assertEqual((status, set(checks)), (0, NAMES))
            self.assertIn('sha256:', checks['certificate'][0]['message'])
            self.assertRegex(checks['certificate'][0]['message'], r'ends at 20\d\d-')
            into = os.path.join(self.home, 'new', 'folder')
            status, checks = self.doctor('models/policy', '--into', into, **variables)
            self.assertEqual(status, 0)
            self.assertEqual(checks['may'][0]['message'], 'models/policy: read yes, see its workers yes, publish yes')
            self.assertEqual(checks['run'][0]['message'], 'its newest step is 1')
            self.assertIn(' in ', checks['download'][0]['message'])
            self.assertIn(into, checks['into'][0]['message'])
            self.assertFalse(os.path.exists(os.path.join(self.home, 'new')))
            self.assertEqual(self.doctor('s3://models', **variables)[1]['may'][0]['message'], 'models: list yes, read yes, write yes')
            text = daemon.client('doctor').stdout
            self.assertRegex(text, r'(?m)^ok       endpoint     https://')
            self.assertNotIn('\033', text)

    def test_it_changes_nothing(self):
        with Daemon() as daemon:
            run = Run(daemon, 'policy')
            run.publish_all(0, 0)
            def kept():
                keys = daemon.request('GET', '/-/keys').json()['keys']
                return [daemon.request('GET', target).body for target in ('/models?list-type=2', '/v1/runs/models/policy')], [key['key_id'] for key in keys]
            before = kept()
            self.doctor('models/policy', **self.variables_of(daemon))
            self.doctor('models', **self.variables_of(daemon))
            self.assertEqual(kept(), before)


class Network(Case):
    def test_nobody_is_there(self):
        with held_port() as held:
            port = held.getsockname()[1]
            self.expect(UNREACHABLE, 'endpoint', 'problem', 'onnect', '--listen', DELTABUCKET_ENDPOINT=f'https://127.0.0.1:{port}')
        self.expect(UNREACHABLE, 'endpoint', 'problem', 'nothing.invalid', 'getent hosts', DELTABUCKET_ENDPOINT='https://nothing.invalid:9000')

    def test_a_proxy_of_the_environment(self):
        with held_port() as held:
            port = held.getsockname()[1]
            checks = self.expect(UNREACHABLE, 'endpoint', 'problem', 'onnect', 'HTTPS_PROXY', DELTABUCKET_ENDPOINT='https://10.255.255.1:9000',
                                 HTTPS_PROXY=f'http://user:secret@127.0.0.1:{port}')
        self.assertEqual(checks['proxy'][0]['message'], f'HTTPS_PROXY names 127.0.0.1:{port}')

    def test_the_other_scheme(self):
        with Daemon() as daemon, Daemon(tls=False) as plain:
            other = f'http://127.0.0.1:{daemon.port}'
            self.expect(UNREACHABLE, 'endpoint', 'problem', 'speaks HTTPS there', f'use {daemon.endpoint}', **self.variables_of(daemon, DELTABUCKET_ENDPOINT=other))
            other = f'https://127.0.0.1:{plain.port}'
            self.expect(UNREACHABLE, 'endpoint', 'problem', 'speaks plain HTTP there', f'use {plain.endpoint}', **self.variables_of(plain, DELTABUCKET_ENDPOINT=other))
            self.expect(0, 'certificate', 'warning', 'unencrypted', '', **self.variables_of(plain))

    def test_another_program(self):
        self.expect(UNREACHABLE, 'endpoint', 'problem', 'not as deltabucketd does (status 404)', 'right host and port', DELTABUCKET_ENDPOINT=self.relay(Stranger))

    def test_clocks_that_differ(self):
        with Daemon(tls=False) as daemon:
            for ahead_s, status, state, said in ((0, 0, 'ok', 'as the server'), (60, 0, 'warning', ' s behind the server'), (-60, 0, 'warning', ' s ahead of the server'),
                                                 (7200, DENIED, 'problem', ' s behind the server')):
                endpoint = self.relay(Relay, ahead_s=ahead_s, port=daemon.port)
                self.expect(status, 'clock', state, said, '' if state == 'ok' else 'NTP', **self.variables_of(daemon, DELTABUCKET_ENDPOINT=endpoint))


class Certificates(Case):
    def test_no_ca_and_another(self):
        with Daemon() as daemon, Daemon() as other:
            printed = daemon.log().partition('--fingerprint ')[2].split()
            checks = self.expect(UNREACHABLE, 'certificate', 'problem', 'no CA was given', f'`deltabucket login {daemon.endpoint} --fingerprint sha256:',
                                 **self.variables_of(daemon, DELTABUCKET_CA=''))
            if printed:
                self.assertIn(printed[0], checks['certificate'][0]['advice'])
            self.expect(UNREACHABLE, 'certificate', 'problem', other.ca, '; that of the given one is sha256:', **self.variables_of(daemon, DELTABUCKET_CA=other.ca))
            self.expect(NOT_FOUND, 'certificate', 'problem', '/nowhere/ca.pem', 'tls/ca.pem', **self.variables_of(daemon, DELTABUCKET_CA='/nowhere/ca.pem'))

    def test_another_name(self):
        with Daemon() as daemon:
            self.expect(UNREACHABLE, 'certificate', 'problem', 'does not match', '--tls-name',
                        **self.variables_of(daemon, DELTABUCKET_ENDPOINT=f'https://other.localhost:{daemon.port}'))

    def test_one_that_has_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            daemon = Daemon(arguments=['--tls-cert', ENDED, '--tls-key', ENDED.replace('.pem', '.key')], folder=folder)
            command = [SERVER, '--data', folder, '--listen', f'127.0.0.1:{daemon.port}', *daemon.arguments]
            with subprocess.Popen(command, env=daemon.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:  # Daemon would wait until it trusts it
                try:
                    while not answers(daemon.port):
                        self.assertIsNone(server.poll())
                        time.sleep(0.02)
                    self.expect(UNREACHABLE, 'certificate', 'problem', 'ended at 2020-01-01T00:00:00', 'SIGHUP', DELTABUCKET_CA=ENDED,
                                DELTABUCKET_ENDPOINT=daemon.endpoint)
                finally:
                    server.terminate()
            daemon.held_port.close()
            os.rmdir(daemon.scratch)


class Keys(Case):
    def test_tokens(self):
        with Daemon() as daemon:
            Run(daemon, 'policy').publish_all(0, 0)
            self.expect(DENIED, 'key', 'problem', '', 'mistyped, or its key was revoked', **self.variables_of(daemon, DELTABUCKET_TOKEN='wrong'))
            self.expect(0, 'key', 'warning', 'no token is set', 'deltabucket login', **self.variables_of(daemon, DELTABUCKET_TOKEN=''))
            self.expect(0, 'settings', 'ok', 'endpoint from DELTABUCKET_ENDPOINT, no token is set, CA from', '', **self.variables_of(daemon, DELTABUCKET_TOKEN=''))
            key = daemon.add_key('--name', 'one', '--grant', 'models/policy/=read,list')
            mine = self.variables_of(daemon, DELTABUCKET_TOKEN=key['token'])
            checks = self.expect(0, 'key', 'ok', key['key_id'], '', 'models/policy', **mine)
            self.assertEqual(checks['may'][0]['message'], 'models/policy: read yes, see its workers yes, publish no')
            self.expect(DENIED, 'may', 'problem', 'models', '--grant models/=read,list', 'models', **mine)
            self.expect(DENIED, 'may', 'problem', 'other', '--grant models/other/=read,list', 'models/other', **mine)
            daemon.admin('keys', 'revoke', key['key_id'])
            self.expect(DENIED, 'key', 'problem', '', 'mistyped, or its key was revoked', **mine)

    def test_what_a_newer_server_says_of_the_key(self):
        session = {'key_id': 'DBKEY', 'name': 'one', 'namespace': 'lab', 'root': False, 'metrics': False, 'grants': ['models/policy/=read,list', 'b=write'],
                   'expires': '2027-01-02T03:04:05.000Z', 'idle_s': 1800, 'server': {'version': '9.9.9'}}
        with Daemon(tls=False) as daemon:
            for change, said in (({}, 'DBKEY of the account lab may models/policy/=read,list b=write; it ends at 2027-01-02T03:04:05.000Z'),
                                 ({'grants': [], 'expires': None}, 'DBKEY of the account lab may do everything in its account'),
                                 ({'grants': [], 'expires': None, 'root': True}, 'DBKEY of the account lab may do everything (it is the root key)')):
                endpoint = self.relay(Newer, port=daemon.port, session={**session, **change})
                checks = self.expect(0, 'key', 'ok', said, '', **self.variables_of(daemon, DELTABUCKET_ENDPOINT=endpoint))
                self.assertTrue(checks['version'][0]['message'].endswith(', deltabucketd 9.9.9'))

    def test_places_that_are_not_there(self):
        with Daemon() as daemon:
            daemon.request('PUT', '/models')
            self.expect(NOT_FOUND, 'may', 'problem', "'nothing' does not exist", 'deltabucket ls', 'nothing', **self.variables_of(daemon))
            self.expect(NOT_FOUND, 'may', 'problem', "'models/none' does not exist", 'deltabucket runs', 'models/none', **self.variables_of(daemon))
            Run(daemon, 'empty')
            self.expect(0, 'run', 'warning', 'has no step yet', 'publish', 'models/empty', **self.variables_of(daemon))


class Settings(Case):
    def write_config(self, text, mode=0o600):
        path = os.path.join(self.home, '.config', 'deltabucket', 'config')
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def test_the_config_file(self):
        with Daemon() as daemon:
            variables = self.variables_of(daemon)
            text = f'endpoint = {daemon.endpoint}\ntoken = {variables["DELTABUCKET_TOKEN"]}\nca = {daemon.ca}\n'
            path = self.write_config(text)
            checks = self.expect(0, 'settings', 'ok', 'endpoint from the config file, token from the config file, CA from the config file', '')
            self.assertEqual([check['message'] for check in checks['config file']], [f'{path}, profile default'])
            self.expect(0, 'settings', 'ok', 'endpoint from the config file, token from DELTABUCKET_TOKEN', '', DELTABUCKET_TOKEN=variables['DELTABUCKET_TOKEN'])
            self.write_config(text, 0o644)
            self.expect(0, 'config file', 'warning', 'other than its owner', f'chmod 600 {path}')
            self.write_config(text.replace(daemon.endpoint, 'https://elsewhere.example'))
            self.expect(0, 'config file', 'warning', 'its token is for https://elsewhere.example and is not sent to', 'unset DELTABUCKET_ENDPOINT',
                        DELTABUCKET_ENDPOINT=daemon.endpoint, DELTABUCKET_CA=daemon.ca)

    def test_settings_that_are_wrong(self):
        self.expect(USAGE, 'settings', 'problem', 'no server is set', 'deltabucket login')
        self.expect(USAGE, 'settings', 'problem', 'ftp://host', 'deltabucket login', '--endpoint', 'ftp://host')
        self.expect(USAGE, 'settings', 'problem', 'no profile lab', 'deltabucket login', '--profile', 'lab')
        self.write_config('endpoint https://host\n')
        self.expect(USAGE, 'settings', 'problem', 'line 1', 'deltabucket login')

    def test_variables(self):
        checks = self.doctor(DELTABUCKET_TOKN='x')[1]
        self.assertIn('did you mean DELTABUCKET_TOKEN?', checks['environment'][0]['message'])
        checks = self.doctor(DELTABUCKET_RUN='policy', DELTABUCKET_PAUSE='never', DELTABUCKET_INTO='/proc/none')[1]
        self.assertEqual([check['state'] for check in checks['engine']], ['problem'] * 3)
        for said, check in zip(('BUCKET/RUN', '"never"', '/proc'), checks['engine']):
            self.assertIn(said, check['message'])
        # those of the server are no mistake
        names = subprocess.run([os.path.join(os.path.dirname(CLIENT), 'deltabucketd'), '--print-config-docs'], capture_output=True, text=True).stdout.split('`')
        others = {name: 'x' for name in names if name.startswith('DELTABUCKET_')}
        self.assertGreater(len(others), 20)
        self.assertNotIn('environment', self.doctor(**others)[1])


class Machine(Case):
    def test_few_open_files(self):
        checks = self.doctor(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))[1]
        self.assertEqual(checks['open files'][0]['state'], 'warning')

    @needs_mount
    def test_a_full_disk_here(self):
        disk = tempfile.mkdtemp()
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8m', 'none', disk], check=True)
        try:
            with Daemon() as daemon:
                self.expect(FULL, 'into', 'problem', 'free', 'another disk', '--into', os.path.join(disk, 'weights'), **self.variables_of(daemon))
                self.expect(FULL, 'state', 'problem', 'free', 'another disk', '--state', disk, **self.variables_of(daemon))
        finally:
            subprocess.run(['umount', disk], check=True)
            os.rmdir(disk)

    @needs_mount
    def test_a_full_disk_of_the_server(self):
        disk = tempfile.mkdtemp()
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=24m', 'none', disk], check=True)
        try:
            with Daemon(folder=os.path.join(disk, 'data')) as daemon:
                with open(os.path.join(disk, 'stranger'), 'wb') as file:
                    file.write(bytes(22_500_000))
                self.expect(FULL, 'server', 'problem', 'full: ', 'deltabucketd gc', **self.variables_of(daemon))
                self.assertIn('full: ', daemon.client('status').stdout)
        finally:
            subprocess.run(['umount', disk], check=True)
            os.rmdir(disk)

    @needs_mount
    def test_a_server_that_only_reads(self):
        disk = tempfile.mkdtemp()
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64m', 'none', disk], check=True)
        try:
            with Daemon(folder=os.path.join(disk, 'data')) as daemon:
                daemon.stop()
                subprocess.run(['mount', '-o', 'remount,ro', disk], check=True)
                daemon.start()
                self.expect(1, 'server', 'problem', 'read-only: ', 'uploads are refused', **self.variables_of(daemon))
                daemon.is_damaged = True  # fsck cannot write there
        finally:
            subprocess.run(['umount', disk], check=True)
            os.rmdir(disk)


if __name__ == '__main__':
    unittest.main()
