"""`deltabucket`: its words, where it takes the server from, and how it ends."""
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import unittest

from tests.support.daemon import CLIENT

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

    def test_misuse_is_told(self):
        self.expect(USAGE, 'usage: deltabucket COMMAND')
        self.expect(USAGE, 'no command nonsense', 'nonsense')
        self.expect(USAGE, 'no command nonsense', 'help', 'nonsense')
        self.expect(USAGE, '--nonsense', 'ls', '--nonsense', '--endpoint', NOBODY)
        for words in (['put', 'file'], ['put', 'file', 'b/k', 'more'], ['rm'], ['ls', 'b', 'c'], ['diff', 'a', 'b'], ['inspect']):
            self.expect(USAGE, f'usage: deltabucket {words[0]} [FLAGS]', *words, DELTABUCKET_ENDPOINT=NOBODY)

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

    def test_a_failure_is_a_line_for_programs(self):
        done = self.expect(UNREACHABLE, 'deltabucket: ', 'ls', '--json', '--retries', '0', '--endpoint', NOBODY)
        self.assertEqual(json.loads(done.stdout)['error']['code'], 'upstream')
        self.assertIn('127.0.0.1', json.loads(done.stdout)['error']['message'])
        self.assertEqual(self.expect(UNREACHABLE, '', 'ls', '--retries', '0', '--endpoint', NOBODY).stdout, '')
        self.expect(USAGE, 'say which server', 'ls', '--json')

    def test_a_file_that_is_cut_off_while_it_is_read(self):
        path, size = os.path.join(self.home, 'model.safetensors'), 256 << 20
        header = json.dumps({'w': {'dtype': 'BF16', 'shape': [size // 2], 'data_offsets': [0, size]}}).encode()
        with open(path, 'wb') as file:
            file.write(struct.pack('<Q', len(header)) + header)
            file.truncate(8 + len(header) + size)
        reader = subprocess.Popen([CLIENT, 'inspect', path], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while path not in open(f'/proc/{reader.pid}/maps').read():
            self.assertIsNone(reader.poll())
        os.truncate(path, 4096)
        self.assertIn('a file became shorter while it was read', reader.communicate(timeout=60)[1])
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
