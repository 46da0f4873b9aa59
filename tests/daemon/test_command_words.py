"""`deltabucket`: its words, where it takes the server from, and how it ends."""
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import unittest

from tests.support.daemon import CLIENT, SERVER

THREADS_MEET = False

USAGE, UNREACHABLE, NOT_FOUND, MALFORMED = 2, 3, 5, 13
NOBODY = 'http://127.0.0.1:1'  # refuses connections


class Words(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.home = scratch.name
        self.environment = {'HOME': self.home, 'PATH': os.environ['PATH'],
                            **{name: value for name, value in os.environ.items() if 'SAN_OPTIONS' in name}}

    def run_client(self, *words, **environment):
        return subprocess.run([CLIENT, *words], env={**self.environment, **environment}, capture_output=True, text=True, timeout=60)

    def expect(self, status, said, *words, **environment):
        done = self.run_client(*words, **environment)
        self.assertEqual(done.returncode, status, (words, done.stderr))
        self.assertIn(said, done.stderr if status else done.stdout, words)
        return done

    def test_help_is_there_for_every_command(self):
        overview = self.expect(0, 'usage: deltabucket COMMAND', 'help').stdout
        for code in ('  0  ', '  2  ', '  5  ', '128'):
            self.assertIn(code, overview)
        commands = [line.split()[0] for line in overview.split('\n\n')[1].splitlines()]
        self.assertLess(15, len(commands))
        for command in set(commands) - {'help'}:
            self.expect(0, f'usage: deltabucket {command} [FLAGS]', 'help', command)
            self.expect(0, f'usage: deltabucket {command} [FLAGS]', command, '--help')
        self.assertEqual(self.run_client('--help').stdout, overview)
        self.assertEqual(self.run_client('-h').stdout, overview)
        self.expect(0, 'deltabucket ', '--version')
        self.expect(0, 'deltabucket ', 'version')
        self.assertIn('version', json.loads(self.run_client('version', '--json').stdout))

    def test_help_tells_of_this_command_alone_in_columns_and_with_examples(self):
        told = self.expect(0, 'usage: deltabucket put', 'put', '-h').stdout
        self.assertIn('examples:\n  deltabucket put ', told)
        self.assertNotIn('--anchor', told)
        self.assertNotIn('follow', self.run_client('help', 'publish').stdout)
        flags = [line for line in told.split('flags:\n')[1].splitlines() if line.startswith('  --')]
        self.assertEqual(len({len(line) - len(line[2:].split('  ', 1)[1].lstrip()) for line in flags}), 1, flags)
        for command in ('help', 'publish', 'follow', 'keys', 'get'):
            words = [command] if command == 'help' else ['help', command]
            self.assertLessEqual(max(map(len, self.run_client(*words).stdout.splitlines())), 110)

    def test_a_flag_is_told_of_in_the_words_of_its_command(self):
        limits = {command: next(line for line in self.run_client('help', command).stdout.splitlines() if line.startswith('  --limit')) for command in ('ls', 'steps')}
        self.assertNotIn('step', limits['ls'])
        self.assertIn('newest N steps', limits['steps'])

    def test_what_was_meant_is_guessed(self):
        self.expect(USAGE, 'there is no command lss; did you mean ls?', 'lss')
        self.expect(USAGE, 'there is no command upload; did you mean put?', 'upload', 'x')
        self.expect(USAGE, 'there is no command top; did you mean watch?', 'top', 'x')
        self.expect(USAGE, 'no flag --recursve; did you mean --recursive?', 'ls', '--recursve', '--endpoint', NOBODY)

    def test_common_flags_may_stand_before_the_command(self):
        done = self.expect(UNREACHABLE, '127.0.0.1', '--json', '--endpoint', NOBODY, 'ls', '--retries', '0')
        self.assertEqual(json.loads(done.stdout)['error']['code'], 'upstream')
        self.expect(USAGE, '--run stands before the command', '--run', 'b/r', 'publish')
        self.expect(USAGE, 'usage: deltabucket COMMAND', '--json')

    def test_the_server_program_has_help_for_its_commands(self):
        def server(*words):
            return subprocess.run([SERVER, *words], env=self.environment, capture_output=True, text=True, timeout=60)
        for command in ('keys', 'gc', 'set-aside', 'rebuild', 'backup', 'restore'):
            told = server(command, '--help').stdout
            self.assertTrue(told.startswith(f'usage: deltabucketd {command}'), told)
            self.assertIn('examples:', told)
            self.assertEqual(server('help', command).stdout, told)
            self.assertEqual(server(command, '--data', '/x', '--json', '-h').stdout, told)
        self.assertEqual(server('help').stdout, server('--help').stdout)
        self.assertIn('set-aside', server('help').stdout)
        self.assertEqual(server('version').stdout, server('--version').stdout)
        for words, said in ((['kyes'], 'did you mean keys?'), (['consle'], 'did you mean console?'), (['--check-config', 'd.ini'], 'write --check-config --config d.ini'),
                            (['--lisen', 'x'], 'there is no flag --lisen; did you mean --listen?'),
                            (['gc', '--dryrun', '--data', 'x'], 'did you mean --dry-run?'), (['keys', 'ad', '--data', 'x'], 'did you mean add?'),
                            (['keys', 'add'], '--data DIR'), (['gc', '--live-percent', '0', '--data', 'x'], '1 to 100'),
                            (['keys', 'revoke', '--data', 'x'], 'KEY_ID')):
            done = server(*words)
            self.assertEqual(done.returncode, USAGE, words)
            self.assertIn(said, done.stderr, words)

    def test_misuse_is_told(self):
        self.expect(USAGE, 'usage: deltabucket COMMAND')
        self.expect(USAGE, 'no command nonsense', 'nonsense')
        self.expect(USAGE, 'no command nonsense', 'help', 'nonsense')
        self.expect(USAGE, '--nonsense', 'ls', '--nonsense', '--endpoint', NOBODY)
        for words in (['put', 'file'], ['put', 'file', 'b/k', 'more'], ['rm'], ['ls', 'b', 'c'], ['diff', 'a', 'b'], ['inspect']):
            self.expect(USAGE, f'usage: deltabucket {words[0]} [FLAGS]', *words, DELTABUCKET_ENDPOINT=NOBODY)
        self.expect(USAGE, 'diff takes 3 arguments, not 2;', 'diff', 'a', 'b')
        self.expect(USAGE, 'publish takes at most 1 argument, not 2;', 'publish', 'models/policy', 'checkpoint')
        self.expect(USAGE, 'rm takes at least 1 argument, not 0;', 'rm', DELTABUCKET_ENDPOINT=NOBODY)
        self.expect(USAGE, 'runs takes `[ls] [BUCKET]`', 'runs', 'rm', DELTABUCKET_ENDPOINT=NOBODY)
        for words in (['runs', 'one', 'two'], ['runs', 'settings'], ['runs', 'add']):
            self.expect(USAGE, 'runs takes `[ls] [BUCKET]`', *words, DELTABUCKET_ENDPOINT=NOBODY)
        self.expect(USAGE, 'damage takes no argument such as x; usage: deltabucket damage [FLAGS] (', 'damage', 'x', DELTABUCKET_ENDPOINT=NOBODY)
        self.expect(USAGE, '/tmp/file is the path of a file; BUCKET/KEY is wanted', 'put', 'models/key', '/tmp/file', DELTABUCKET_ENDPOINT=NOBODY)
        self.expect(USAGE, '`deltabucket rb BUCKET`', 'rm', 'models', DELTABUCKET_ENDPOINT=NOBODY)
        for words in (['ls', '--endpoint', 'host:9000'], ['login', 'host:9000'], ['doctor', '--endpoint', 'host:9000']):
            self.expect(USAGE, 'did you mean https://host:9000?', *words)
        path = os.path.join(self.home, 'text')
        with open(path, 'w') as file:
            file.write('no weights at all')
        self.expect(MALFORMED, 'it is not a safetensors file, or a damaged one', 'inspect', path)

    def test_the_server_has_to_be_known(self):
        self.expect(USAGE, 'say which server', 'ls')
        self.expect(USAGE, 'does not begin with https:// or http://', 'ls', '--endpoint', 'ftp://host')
        self.expect(UNREACHABLE, '127.0.0.1', 'ls', '--retries', '0', '--endpoint', NOBODY)
        self.expect(UNREACHABLE, '127.0.0.1', 'ls', '--retries', '0', DELTABUCKET_ENDPOINT=NOBODY)
        os.makedirs(os.path.join(self.home, '.config', 'deltabucket'))
        with open(os.path.join(self.home, '.config', 'deltabucket', 'config'), 'w') as file:
            file.write(f'endpoint = {NOBODY}\n')
        self.expect(UNREACHABLE, '127.0.0.1', 'ls', '--retries', '0')
        self.expect(NOT_FOUND, 'nothing', 'inspect', os.path.join(self.home, 'nothing'))  # needs no server

    def test_a_file_where_a_folder_belongs(self):
        file = os.path.join(self.home, 'file')
        open(file, 'w').close()
        server = ('--endpoint', NOBODY)
        for below in (file, os.path.join(file, 'x')):
            self.expect(USAGE, f'{below} is not a folder; `deltabucket put {below} b/x` uploads one file', 'sync', below, 'b/x', *server)
            self.expect(USAGE, f'{below} is not a folder; `deltabucket get BUCKET/KEY {below}` downloads one object', 'sync', 'b/x', below, *server)
            self.expect(USAGE, f"--into wants a folder, new or a follower's, and {below} is not one", 'follow', '--run', 'b/r', '--into', below, *server)
            self.expect(USAGE, f"--state wants a folder, new or a publisher's, and {below} is not one", 'publish', '--run', 'b/r', '--state', below, self.home, *server)
        self.assertEqual(os.path.getsize(file), 0)

    def test_a_failure_is_a_line_for_programs(self):
        done = self.expect(UNREACHABLE, 'deltabucket: ', 'ls', '--json', '--retries', '0', '--endpoint', NOBODY)
        self.assertEqual(json.loads(done.stdout)['error']['code'], 'upstream')
        self.assertIn('127.0.0.1', json.loads(done.stdout)['error']['message'])
        self.assertEqual(self.expect(UNREACHABLE, '', 'ls', '--retries', '0', '--endpoint', NOBODY).stdout, '')
        self.expect(USAGE, 'say which server', 'ls', '--json')

    def resident_kib(self, process, path):
        """How much of the file the process has read through its mapping."""
        with open(f'/proc/{process}/smaps') as maps:
            after = maps.read().partition(path)[2]
        return int(after.partition('Rss:')[2].split()[0]) if after else 0

    def test_a_file_that_is_cut_off_while_it_is_read(self):
        path, size = os.path.join(self.home, 'model.safetensors'), 512 << 20
        header = json.dumps({'w': {'dtype': 'BF16', 'shape': [size // 2], 'data_offsets': [0, size]}}).encode()
        with open(path, 'wb') as file:
            file.write(struct.pack('<Q', len(header)) + header)
            file.truncate(8 + len(header) + size)
        reader = subprocess.Popen([CLIENT, 'inspect', path], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while self.resident_kib(reader.pid, path) < 4096:  # mapped, and being read behind the header
            self.assertIsNone(reader.poll())
        os.truncate(path, 4096)
        self.assertIn(f'deltabucket: {path} became shorter while it was read', reader.communicate(timeout=60)[1])
        self.assertEqual(reader.returncode, MALFORMED)

    def test_a_signal_is_how_it_ended(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with socket.create_server(('127.0.0.1', 0)) as listener:
                endpoint = f'http://127.0.0.1:{listener.getsockname()[1]}'
                with subprocess.Popen([CLIENT, 'ls', '--json', '--endpoint', endpoint], env=self.environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE) as client:
                    connection, _ = listener.accept()  # and no answer
                    client.send_signal(number)
                    said = client.communicate(timeout=60)
                    connection.close()
            self.assertEqual((client.returncode, said), (128 + number, (b'', b'')))


if __name__ == '__main__':
    unittest.main()
