"""Trainers and workers: publish, follow, and what goes wrong between them."""
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from tests.support.checkpoints import expand_small, known_sums, sha256, write_safetensors
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon, bytes_alone

CONFLICT, NOT_FOUND, DENIED, UNREACHABLE, USAGE, OTHER_SCHEMA = 6, 5, 4, 3, 2, 15


class Sync(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.checkpoints = expand_small(cls.folder, 8)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.daemon = Daemon()
        self.daemon.start()
        self.daemon.request('PUT', '/models')
        self.into = os.path.join(self.daemon.scratch, 'worker')

    def tearDown(self):
        self.daemon.__exit__()

    def publish(self, step, *more, check=True, path=None):
        return self.daemon.client('publish', '--run', 'models/r', *more, path or self.checkpoints[step], check=check)

    def follow(self, *more, into=None, check=True):
        return self.daemon.client('follow', '--run', 'models/r', '--into', into or self.into, '--once', *more, check=check)

    def held(self, into=None):
        return sha256(os.path.join(into or self.into, 'current', 'model.safetensors'))

    def start_follower(self, into, *more):
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, DELTABUCKET_CA=self.daemon.ca,
                           HOME=self.daemon.scratch)
        return subprocess.Popen([CLIENT, 'follow', '--run', 'models/r', '--into', into, '--json', *more], env=environment, stdout=subprocess.PIPE, text=True)

    def test_every_step_reaches_a_worker_bit_for_bit(self):
        for step, path in enumerate(self.checkpoints):
            self.publish(step, '--step', step)
            self.follow()
            self.assertEqual(self.held(), sha256(path))
        late = os.path.join(self.daemon.scratch, 'late')
        self.follow(into=late)
        self.assertEqual(self.held(late), sha256(self.checkpoints[-1]))

    def test_a_waiting_follower_runs_its_command(self):
        self.publish(0)
        seen = os.path.join(self.daemon.scratch, 'seen')
        follower = self.start_follower(self.into, '--exec', f'echo $DELTABUCKET_STEP $(sha256sum < "$DELTABUCKET_CURRENT/model.safetensors") >> {seen}')
        lines = []
        for step in range(1, 4):
            while json.loads(follower.stdout.readline()).get('step') != step - 1:
                pass
            self.publish(step)
        while json.loads(follower.stdout.readline()).get('step') != 3:
            pass
        limit = time.monotonic() + 90
        while len(lines) < 4 and time.monotonic() < limit:
            time.sleep(0.05)
            with open(seen) as file:
                lines = file.read().splitlines()
        follower.send_signal(signal.SIGTERM)
        self.assertIn(follower.wait(timeout=90), (0, 130, 143))
        follower.stdout.close()
        self.assertEqual([line.split()[:2] for line in lines], [[str(step), sha256(self.checkpoints[step])] for step in range(4)])

    @bytes_alone
    def test_the_command_knows_its_step(self):
        """Every fact in the environment, an empty step among them."""
        seen = os.path.join(self.daemon.scratch, 'seen')
        command = f'env | grep ^DELTABUCKET_ | sort > {seen}.$DELTABUCKET_STEP'
        facts = []
        for step, path in enumerate((self.checkpoints[0], self.checkpoints[1], self.checkpoints[1])):
            self.publish(step, '--step', step, '--label', f'at {step}', path=path)
            self.follow('--exec', command)
            with open(f'{seen}.{step}') as file:
                facts.append(dict(line.rstrip('\n').split('=', 1) for line in file))
        self.assertEqual([fact['DELTABUCKET_PREVIOUS_STEP'] for fact in facts], ['', '0', '1'])
        self.assertEqual([fact['DELTABUCKET_CHANGED'] for fact in facts], ['1', '1', '0'])
        self.assertEqual(facts[2]['DELTABUCKET_LABEL'], 'at 2')
        self.assertEqual(facts[2]['DELTABUCKET_RUN'], 'models/r')
        self.assertTrue(os.path.samefile(facts[2]['DELTABUCKET_PATH'], os.path.join(self.into, 'current')))
        self.assertNotEqual(facts[1]['DELTABUCKET_PATH'], facts[2]['DELTABUCKET_PATH'])

    def test_the_next_steps_come_while_the_command_runs(self):
        """What was published meanwhile lies in the folder before the command has ended; one swap then takes all of it."""
        self.publish(0)
        go = os.path.join(self.daemon.scratch, 'go')
        follower = self.start_follower(self.into, '--exec', f'while [ ! -e {go} ]; do sleep 0.05; done')
        while json.loads(follower.stdout.readline()).get('step') != 0:
            pass
        for step in (1, 2, 3):
            self.publish(step)
        incoming = os.path.join(self.into, 'incoming')
        limit = time.monotonic() + 90
        while time.monotonic() < limit and not any(name.startswith('000003') and any(files for _, _, files in os.walk(os.path.join(incoming, name, 'files')))
                                                   for name in os.listdir(incoming)):
            time.sleep(0.05)
        self.assertLess(time.monotonic(), limit, os.listdir(incoming))
        with open(go, 'w'):
            pass
        line = json.loads(follower.stdout.readline())
        follower.send_signal(signal.SIGTERM)
        self.assertEqual(follower.wait(timeout=90), 0)
        follower.stdout.close()
        self.assertEqual((line['event'], line['step']), ('step', 3))
        self.assertEqual(self.held(), sha256(self.checkpoints[3]))

    @bytes_alone
    def test_how_a_follower_was_ended_is_its_exit_status(self):
        """SIGTERM is how a supervisor ends it; Ctrl-C ends the script around it, too."""
        self.publish(0)
        for number, status in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
            follower = self.start_follower(os.path.join(self.daemon.scratch, number.name))
            while json.loads(follower.stdout.readline()).get('step') != 0:
                pass
            follower.send_signal(number)
            self.assertEqual(follower.wait(timeout=90), status, number.name)
            follower.stdout.close()

    def test_killed_follower_goes_on(self):
        for step in range(5):
            self.publish(step)
        for attempt in range(12):
            follower = self.start_follower(self.into)
            time.sleep(0.01 * attempt)
            follower.kill()
            follower.wait()
            follower.stdout.close()
        self.follow()
        self.assertEqual(self.held(), sha256(self.checkpoints[4]))

    @bytes_alone
    def test_killed_publisher_converges(self):
        self.publish(0)
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, DELTABUCKET_CA=self.daemon.ca,
                           XDG_STATE_HOME=os.path.join(self.daemon.scratch, 'state'), HOME=self.daemon.scratch)
        for step in range(1, 7):
            for attempt in range(6):
                process = subprocess.Popen([CLIENT, 'publish', '--run', 'models/r', '--step', str(step), self.checkpoints[step]], env=environment,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(0.012 * attempt)
                process.kill()
                process.wait()
            self.publish(step, '--step', step)
            self.follow()
            self.assertEqual(self.held(), sha256(self.checkpoints[step]))

    @bytes_alone
    def test_second_trainer_fences_the_first(self):
        self.publish(0)
        other = os.path.join(self.daemon.scratch, 'other-state')
        refused = self.publish(1, '--state', other, check=False)
        self.assertEqual((refused.returncode, 'add --take-over' in refused.stderr), (CONFLICT, True), refused.stderr)
        self.publish(1, '--state', other, '--take-over')
        fenced = self.publish(1, check=False)
        self.assertEqual(fenced.returncode, CONFLICT, fenced.stderr)
        self.publish(2, '--state', other)
        self.follow()
        self.assertEqual(self.held(), sha256(self.checkpoints[2]))

    @bytes_alone
    def test_a_bucket_is_made_only_when_that_is_wanted(self):
        state = os.path.join(self.daemon.scratch, 'new')
        words = ('publish', '--state', state, self.checkpoints[0])
        refused = self.daemon.client(*words, '--run', 'made/r', check=False)
        self.assertEqual((refused.returncode, '--create-bucket makes it' in refused.stderr), (NOT_FOUND, True), refused.stderr)
        made = self.daemon.client(*words, '--run', 'made/r', '--create-bucket', '--json')
        self.assertEqual(json.loads(made.stdout)['step'], 0)

    @bytes_alone
    def test_a_key_that_may_not_write_is_told_so(self):
        """And not to take the run over, which it may not either."""
        self.publish(0)
        token = json.loads(self.daemon.client('keys', 'add', '--json', '--grant', 'models=read').stdout)['token']
        for more in ((), ('--take-over',), ('--rank', '0/1')):
            state = os.path.join(self.daemon.scratch, 'reader')
            words = ('publish', '--run', 'models/r', '--state', state, *more, self.checkpoints[1])
            refused = self.daemon.client(*words, token=token, check=False)
            self.assertEqual((refused.returncode, 'take-over' in refused.stderr), (DENIED, False), refused.stderr)
            shutil.rmtree(state)

    @bytes_alone
    def test_refusals(self):
        self.publish(0)
        out_of_order = self.publish(1, '--step', 5, check=False)
        self.assertEqual(out_of_order.returncode, CONFLICT, out_of_order.stderr)
        broken = os.path.join(self.daemon.scratch, 'broken.safetensors')
        with open(broken, 'wb') as file:
            file.write(b'\xff' * 100)
        self.assertNotEqual(self.publish(1, path=broken, check=False).returncode, 0)
        stranger = os.path.join(self.daemon.scratch, 'stranger.safetensors')
        write_safetensors(stranger, {'x': ('BF16', [1], b'\1\2')})
        for more in ((), ('--anchor', 'always')):
            other = self.publish(1, *more, path=stranger, check=False)
            self.assertEqual(other.returncode, OTHER_SCHEMA, other.stderr)
            self.assertIn('publish this checkpoint to a run of its own', other.stderr)
        pickle = os.path.join(self.daemon.scratch, 'model.pt')
        with open(pickle, 'wb') as file:
            file.write(b'PK\3\4\0\0\10\10' + bytes(100))
        self.assertIn('this is a PyTorch pickle', self.publish(1, path=pickle, check=False).stderr)
        os.makedirs(self.into)
        shutil.copy(stranger, os.path.join(self.into, 'model.safetensors'))
        foreign = self.follow(check=False)
        self.assertNotEqual(foreign.returncode, 0)
        self.assertEqual(os.listdir(self.into), ['model.safetensors'])
        for arguments, token, status in ((['steps', 'models/none'], ROOT_TOKEN, NOT_FOUND), (['steps', 'models/r'], 'wrong', DENIED),
                                         (['publish'], ROOT_TOKEN, USAGE), (['nonsense'], ROOT_TOKEN, USAGE)):
            done = self.daemon.client(*arguments, token=token, check=False)
            self.assertEqual(done.returncode, status, (arguments, done.stderr))
            self.assertTrue(done.stderr.strip())
        nobody = self.daemon.client('runs', 'models', check=False, environment={'DELTABUCKET_ENDPOINT': 'https://127.0.0.1:1'})
        self.assertEqual(nobody.returncode, UNREACHABLE, nobody.stderr)

    @bytes_alone
    def test_a_worker_with_spoilt_weights_recovers(self):
        self.publish(0)
        self.follow()
        with open(os.path.join(self.into, 'current', 'model.safetensors'), 'r+b') as file:
            file.seek(-100, os.SEEK_END)
            file.write(b'spoilt')
        self.publish(1)
        self.follow()
        self.assertEqual(self.held(), sha256(self.checkpoints[1]))

    @bytes_alone
    def test_folders_with_shards_and_other_files(self):
        def make(folder, value, config, more):
            os.makedirs(folder)
            weights = lambda seed: bytes((seed + i * 7) % 251 for i in range(4000))
            for shard in (1, 2):
                write_safetensors(f'{folder}/model-0000{shard}-of-00002.safetensors', {
                    f'layer{shard}.w': ('BF16', [40, 50], weights(shard)[:100] + bytes([value]) + weights(shard)[101:]),
                    f'layer{shard}.n': ('F32', [4], bytes(range(value, value + 16)))}, {'format': 'pt', 'note': config})
            with open(f'{folder}/model.safetensors.index.json', 'w') as index:
                json.dump({'metadata': {'total_size': 8032}, 'weight_map': {
                    f'layer{s}.{t}': f'model-0000{s}-of-00002.safetensors' for s in (1, 2) for t in 'wn'}}, index)
            with open(f'{folder}/config.json', 'w') as file:
                file.write(config)
            for name, text in more.items():
                os.makedirs(os.path.dirname(f'{folder}/{name}'), exist_ok=True)
                with open(f'{folder}/{name}', 'w') as file:
                    file.write(text)
        tokenizer = {'tokenizer.json': '{}' * 50_000}
        steps = ((1, 'one', tokenizer), (2, 'one', tokenizer), (3, 'two longer', tokenizer), (3, 'two longer', {}), (4, 'one', {'deep/er/notes': 'n'}),
                 (5, 'one', tokenizer), (6, 'one', tokenizer))
        late = os.path.join(self.daemon.scratch, 'late')
        for step, (value, config, more) in enumerate(steps):
            source = os.path.join(self.daemon.scratch, f'sharded{step}')
            make(source, value, config, more)
            self.publish(step, '--step', step, '--anchor', 'never', path=source)
            self.follow()
            self.assertEqual(self.tree(os.path.join(self.into, 'current')), self.tree(source), step)
            if step % 3 == 0:  # several steps in one apply, files that came and went between them included
                self.follow(into=late)
                self.assertEqual(self.tree(os.path.join(late, 'current')), self.tree(source))
        sizes = {step['step']: sum(form['bytes'] for form in step['forms'] if form['kind'] == 'delta')
                 for step in (json.loads(line) for line in self.daemon.client('steps', 'models/r', '--json').stdout.splitlines())}
        self.assertLess(max(sizes[1], sizes[3], sizes[6]), 20_000)  # what did not change is not sent again
        self.assertGreater(sizes[5], 100_000)
        # An anchor names the files that the anchor before has already, whatever became of their keys.
        self.publish(7, '--anchor', 'always', path=source)
        before = self.received()
        self.publish(8, '--anchor', 'always', path=source)
        self.assertLess(self.received() - before, 60_000)
        self.daemon.request('DELETE', '/models/r/steps/000007/anchor/tokenizer.json')
        before = self.received()
        self.publish(9, '--anchor', 'always', path=source)
        self.assertLess(self.received() - before, 60_000)
        self.follow(into=late + '-again')
        self.assertEqual(self.tree(os.path.join(late + '-again', 'current')), self.tree(source))

    def test_a_publisher_that_is_stopped_while_it_reads(self):
        path, size = os.path.join(self.daemon.scratch, 'large.safetensors'), 1 << 30
        header = json.dumps({'w': {'dtype': 'BF16', 'shape': [size // 2], 'data_offsets': [0, size]}}).encode()
        with open(path, 'wb') as file:
            file.write(struct.pack('<Q', len(header)) + header)
            file.truncate(8 + len(header) + size)
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=self.daemon.scratch,
                           DELTABUCKET_CA=self.daemon.ca)
        publisher = subprocess.Popen([CLIENT, 'publish', '--run', 'models/large', path], env=environment, stderr=subprocess.PIPE, text=True)
        while path not in open(f'/proc/{publisher.pid}/maps').read():
            self.assertIsNone(publisher.poll())
        publisher.send_signal(signal.SIGINT)
        self.assertIn('the same command continues from here', publisher.communicate(timeout=30)[1])
        self.assertEqual(publisher.returncode, 130)
        self.assertNotEqual(self.daemon.request('GET', '/v1/runs/models/large/steps/0').status, 200)

    def test_what_did_not_change_is_linked(self):
        """Files of a generation that are those of the one before are one file; a damaged one is noticed all the same."""
        source = os.path.join(self.daemon.scratch, 'source')
        names = [f'model-{shard}-of-2.safetensors' for shard in (1, 2)]
        index = {'metadata': {}, 'weight_map': {f'w{shard}': name for shard, name in enumerate(names)}}
        os.makedirs(source)
        for name, text in (('model.safetensors.index.json', json.dumps(index)), ('config.json', '{}')):
            with open(os.path.join(source, name), 'w') as file:
                file.write(text)
        for step, values in enumerate(((1, 1), (1, 2), (3, 3))):
            for shard, (name, value) in enumerate(zip(names, values)):
                write_safetensors(os.path.join(source, name), {f'w{shard}': ('BF16', [500], bytes([value]) * 1000)})
            self.publish(step, path=source)
            self.follow('--volatile', '--keep', '5')
            self.assertEqual(self.tree(os.path.join(self.into, 'current')), self.tree(source))
        inodes = [{name: os.stat(os.path.join(self.into, 'generations', f'{step:06d}', name)).st_ino for name in [*names, 'config.json']}
                  for step in range(3)]
        self.assertEqual([inodes[0][name] == inodes[1][name] for name in (*names, 'config.json')], [True, False, True])
        self.assertEqual([inodes[1][name] == inodes[2][name] for name in (*names, 'config.json')], [False, False, True])

    def received(self):
        metrics = self.daemon.request('GET', '/-/metrics').body.decode()
        return next(int(float(line.split()[1])) for line in metrics.splitlines() if line.startswith('deltabucket_received_bytes_total '))

    def tree(self, folder):
        return {os.path.relpath(os.path.join(path, name), folder): sha256(os.path.join(path, name)) for path, _, names in os.walk(folder) for name in names}

    @bytes_alone
    def test_objects_from_the_command_line(self):
        path = os.path.join(self.daemon.scratch, 'some file')
        with open(path, 'wb') as file:
            file.write(os.urandom(40_000_000))
        self.daemon.client('put', path, 'models/dir/some file')
        self.assertIn('dir/some file', self.daemon.client('ls', 'models', '--recursive').stdout)
        self.daemon.client('get', 'models/dir/some file', path + '.back')
        self.assertEqual(sha256(path), sha256(path + '.back'))
        with open(path + '.back', 'r+b') as file:
            file.write(b'damaged here')
        self.daemon.client('get', 'models/dir/some file', path + '.back')
        self.assertEqual(sha256(path), sha256(path + '.back'))
        self.daemon.client('rm', 'models/dir/some file')
        self.assertEqual(self.daemon.client('get', 'models/dir/some file', path + '.2', check=False).returncode, NOT_FOUND)


if __name__ == '__main__':
    unittest.main()
