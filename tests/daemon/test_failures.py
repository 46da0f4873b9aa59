"""What goes wrong between trainers and workers, provoked: see tests/failures.md for the list. A reader that meets damage keeps its old weights, asks for an anchor
by itself, and ends with an exit code that says what was wrong."""
import contextlib
import json
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

from tests.support.checkpoints import expand_small, sha256, write_safetensors
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon, bytes_alone

CONFLICT, DAMAGED, BUSY, WRONG_BASE, WRONG_RESULT, MALFORMED, OTHER_SCHEMA = 6, 7, 9, 11, 12, 13, 15
BAD = (DAMAGED, WRONG_BASE, WRONG_RESULT, MALFORMED)


def read_header(data):
    size, = struct.unpack('<Q', data[:8])
    return json.loads(data[8:8 + size]), data[8 + size:]


def with_header(header, data):
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    return struct.pack('<Q', len(text)) + text + data


class Failures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.checkpoints = expand_small(cls.folder, 4)
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.daemon.request('PUT', '/models')
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        shutil.rmtree(cls.folder)

    def setUp(self):
        type(self).count += 1
        self.run_name = f'run{self.count}'
        self.into = os.path.join(self.daemon.scratch, f'worker{self.count}')
        self.state = os.path.join(self.daemon.scratch, f'state{self.count}')

    def publish(self, path, *more, run=None, check=True, state=None):
        run = run or self.run_name
        return self.daemon.client('publish', '--run', f'models/{run}', '--state', state or f'{self.state}-{run}', *more, path, check=check)

    def follow(self, *more, check=True, into=None):
        done = self.daemon.client('follow', '--run', f'models/{self.run_name}', '--into', into or self.into, '--once', '--json', *more, check=check)
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    def held(self):
        return sha256(os.path.join(self.into, 'current', 'model.safetensors'))

    def call(self, method, target, body=None, run=None):
        return self.daemon.request(method, f'/v1/runs/models/{run or self.run_name}{target}', None if body is None else json.dumps(body))

    def diff(self, base, following):
        """The files of the delta between two of the checkpoints: {name: bytes}."""
        out = os.path.join(self.daemon.scratch, f'delta{self.count}-{base}-{following}')
        if os.path.isdir(out):
            shutil.rmtree(out)
        elif os.path.exists(out):
            os.remove(out)
        self.daemon.client('diff', self.checkpoints[base], self.checkpoints[following], out)
        if os.path.isfile(out):
            with open(out, 'rb') as file:
                return {'delta.safetensors': file.read()}
        files = {}
        for path, _, names in os.walk(out):
            for name in names:
                with open(os.path.join(path, name), 'rb') as file:
                    files[os.path.relpath(os.path.join(path, name), out)] = file.read()
        return files

    def publish_bad(self, files, anchor):
        """Step 0 by the book; then a step 1 whose delta is `files`, whatever they are, under the facts of the true step. The server is told not to look."""
        true = f'{self.run_name}-true'
        self.publish(self.checkpoints[0])
        self.publish(self.checkpoints[0], run=true)
        self.publish(self.checkpoints[1], '--anchor', 'always', run=true)
        manifest = self.call('GET', '/steps/1?tensors=true', run=true).json()
        self.assertEqual(self.call('PUT', '/settings', {'verify': False}).status, 200)
        objects = []
        for name, data in files.items():
            key = f'{self.run_name}/bad/{name}'
            reply = self.daemon.request('PUT', f'/models/{key}', data)
            self.assertEqual(reply.status, 200, reply.body)
            objects.append({'name': name, 'key': key, 'size': len(data), 'digest': reply.headers['x-deltabucket-digest']})
        forms = [dict(form, objects=objects) if form['kind'] == 'delta' else form for form in manifest['forms'] if anchor or form['kind'] == 'delta']
        manifest.update(forms=forms, epoch=self.call('GET', '').json()['epoch'])
        reply = self.call('PUT', '/steps/1', manifest)
        self.assertEqual(reply.status, 201, reply.body)

    def damage(self):
        """(what, the delta's files) for each way in which a delta may be bad."""
        good = self.diff(0, 1)
        name = next(name for name in good if name.endswith('delta.safetensors'))
        header, data = read_header(good[name])
        yield 'a delta to another result', self.diff(0, 2)
        yield 'a delta from another base', self.diff(2, 1)
        yield 'a damaged block', {**good, name: with_header(header, data[:len(data) // 2] + bytes([data[len(data) // 2] ^ 0x55]) + data[len(data) // 2 + 1:])}
        yield 'a truncated file', {**good, name: good[name][:-1000]}
        yield 'no safetensors at all', {**good, name: b'\xff' * 500}
        tensor = sorted(key for key in header if key != '__metadata__')[0]
        yield 'a tensor that the model does not have', {**good, name: with_header({('x' + key[1:] if key == tensor else key): value for key, value in header.items()}, data)}
        yield 'a doubled tensor', {**good, name: with_header(header, data).replace(
            json.dumps({tensor: header[tensor]}, separators=(',', ':')).encode()[1:-1],
            b','.join([json.dumps({tensor: header[tensor]}, separators=(',', ':')).encode()[1:-1]] * 2))}
        index = {'metadata': header['__metadata__'], 'weight_map': {tensor: 'nowhere.safetensors'}}
        yield 'an index that points nowhere', {'model.safetensors.index.json': json.dumps(index).encode()}
        mode = bytearray(data)
        mode[header[tensor]['data_offsets'][0]] = 0xff
        yield 'an unknown mode', {**good, name: with_header(header, bytes(mode))}

    @bytes_alone
    def test_a_bad_delta_is_cured_by_an_anchor_that_the_reader_asks_for(self):
        for what, files in list(self.damage()):
            with self.subTest(what):
                self.setUp()
                self.publish_bad(files, anchor=True)
                self.follow('--step', '0')
                _, events = self.follow()
                self.assertEqual([event['event'] for event in events], ['from_anchor', 'step'], events)
                self.assertIn('step 1', events[0]['message'])
                self.assertTrue(events[1]['from_anchor'])
                self.assertEqual(self.held(), sha256(self.checkpoints[1]))

    def test_a_reader_that_was_cured_takes_deltas_again(self):
        self.publish_bad(self.diff(0, 2), anchor=True)
        self.follow('--step', '0')
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=self.daemon.scratch)
        with subprocess.Popen([CLIENT, 'follow', '--run', f'models/{self.run_name}', '--into', self.into, '--json', '--poll', '1'], env=environment,
                              stdout=subprocess.PIPE, text=True) as follower:
            self.addCleanup(follower.kill)
            events = [json.loads(follower.stdout.readline()) for _ in range(2)]
            self.publish(self.checkpoints[2], '--take-over')
            events.append(json.loads(follower.stdout.readline()))
            follower.terminate()
        self.assertEqual([(event['event'], event.get('from_anchor')) for event in events], [('from_anchor', None), ('step', True), ('step', False)])
        self.assertEqual(self.held(), sha256(self.checkpoints[2]))

    @bytes_alone
    def test_a_bad_delta_without_an_anchor_leaves_the_old_weights(self):
        wanted = {'a delta to another result': (WRONG_RESULT,), 'a delta from another base': (WRONG_BASE,), 'no safetensors at all': (MALFORMED, DAMAGED),
                  'a truncated file': (MALFORMED, DAMAGED), 'a doubled tensor': (MALFORMED, DAMAGED), 'an index that points nowhere': (MALFORMED, DAMAGED)}
        for what, files in list(self.damage()):
            with self.subTest(what):
                self.setUp()
                self.publish_bad(files, anchor=False)
                self.follow('--step', '0')
                before = os.path.realpath(os.path.join(self.into, 'current'))
                done, events = self.follow(check=False)
                self.assertIn(done.returncode, wanted.get(what, BAD), done.stderr)
                self.assertEqual(events[0]['event'], 'from_anchor')  # it has asked
                self.assertIn('step 1', done.stderr)
                self.assertEqual(os.path.realpath(os.path.join(self.into, 'current')), before)
                self.assertEqual(self.held(), sha256(self.checkpoints[0]))
                fresh, _ = self.follow(check=False, into=self.into + '-fresh')
                self.assertIn(fresh.returncode, BAD)
                self.assertFalse(os.path.lexists(os.path.join(self.into + '-fresh', 'current')))

    @bytes_alone
    def test_a_delta_between_files_ends_in_a_folder(self):
        """`diff` of two files makes a delta to a file; who follows has folders."""
        self.publish_bad(self.diff(0, 1), anchor=False)
        self.follow('--step', '0')
        _, events = self.follow()
        self.assertEqual([event['event'] for event in events], ['step'])
        self.assertEqual(self.held(), sha256(self.checkpoints[1]))

    @bytes_alone
    def test_apply_says_what_is_wrong_and_leaves_nothing(self):
        good = self.diff(0, 1)
        out = os.path.join(self.daemon.scratch, f'out{self.count}')
        delta = os.path.join(self.daemon.scratch, f'in{self.count}')
        bad = dict(self.damage())
        for base, files, codes in ((2, good, (WRONG_BASE,)), *((0, files, BAD) for what, files in bad.items() if what != 'a delta to another result')):
            shutil.rmtree(delta, ignore_errors=True)
            for name, data in files.items():
                os.makedirs(os.path.dirname(os.path.join(delta, name)), exist_ok=True)
                with open(os.path.join(delta, name), 'wb') as file:
                    file.write(data)
            done = self.daemon.client('apply', self.checkpoints[base], delta, out, check=False)
            self.assertIn(done.returncode, codes, done.stderr)
            self.assertFalse(os.path.exists(out))

    @bytes_alone
    def test_a_delta_is_never_published_as_a_checkpoint(self):
        """Failure 22: metadata lost or not looked at, a delta is taken for the whole model."""
        out = os.path.join(self.daemon.scratch, f'delta{self.count}')
        self.daemon.client('diff', self.checkpoints[0], self.checkpoints[1], out)
        done = self.publish(out, check=False)
        self.assertEqual(done.returncode, MALFORMED, done.stderr)
        self.assertEqual(self.call('GET', '').status, 404)

    @bytes_alone
    def test_a_failed_publish_does_not_move_the_baseline(self):
        """Failure 10: the next diff is against what was published, not against what was tried."""
        self.publish(self.checkpoints[0])
        dead = {'DELTABUCKET_ENDPOINT': self.daemon.endpoint}
        done = self.daemon.client('publish', '--run', f'models/{self.run_name}', '--state', f'{self.state}-{self.run_name}', self.checkpoints[1],
                                  token='revoked', check=False, environment=dead)
        self.assertNotEqual(done.returncode, 0)
        self.publish(self.checkpoints[2])
        self.follow()
        self.assertEqual(self.held(), sha256(self.checkpoints[2]))
        self.assertEqual(self.call('GET', '').json()['head'], 1)

    @bytes_alone
    def test_a_trainer_that_starts_again_never_reuses_a_number(self):
        """Failure 8: a new state folder goes on behind the head, once it may; the old numbers are refused."""
        for step in (0, 1):
            self.publish(self.checkpoints[step])
        for words in (['--step', '2'], ['--step', '1', '--take-over']):
            again = self.publish(self.checkpoints[2], *words, state=self.state + '-new', check=False)
            self.assertEqual(again.returncode, CONFLICT, again.stderr)
        self.publish(self.checkpoints[2], '--step', '2', '--take-over', state=self.state + '-new')
        self.follow()
        self.assertEqual(self.held(), sha256(self.checkpoints[2]))

    @bytes_alone
    def test_order_does_not_come_from_clocks(self):
        """Failure 13: what a trainer's clock says is not looked at."""
        self.publish(self.checkpoints[0])
        true = f'{self.run_name}-true'
        self.publish(self.checkpoints[0], run=true)
        self.publish(self.checkpoints[1], '--anchor', 'always', run=true)
        manifest = self.call('GET', '/steps/1', run=true).json()
        manifest.update(created='1999-01-01T00:00:00.000Z', epoch=self.call('GET', '').json()['epoch'],
                        forms=[form for form in manifest['forms'] if form['kind'] == 'anchor'])
        for entry in manifest['forms'][0]['objects']:
            entry.pop('version')
        self.assertEqual(self.call('PUT', '/steps/1', manifest).status, 201)
        created = [self.call('GET', f'/steps/{step}').json()['created'] for step in (0, 1)]
        self.assertLessEqual(created[0], created[1])
        self.assertEqual(self.call('GET', '/steps/latest').json()['step'], 1)

    @bytes_alone
    def test_a_mapped_checkpoint_never_changes(self):
        """Failures 14 and 15: who has mapped a file keeps its bytes, whatever comes later; nothing is written in place."""
        self.publish(self.checkpoints[0])
        self.follow()
        with open(os.path.join(self.into, 'current', 'model.safetensors'), 'rb') as file:
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        for step in (1, 2, 3):
            self.publish(self.checkpoints[step])
            self.follow('--keep', '0')
        with open(self.checkpoints[0], 'rb') as file:
            self.assertEqual(mapped[:], file.read())
        mapped.close()
        self.assertEqual(len([name for name in os.listdir(os.path.join(self.into, 'generations')) if not name.endswith('.json')]), 1)

    @bytes_alone
    def test_the_same_size_is_not_the_same_file(self):
        """Failure 16: a leftover of the right name and size in the work folder is not taken for the delta."""
        for step in (0, 1):
            self.publish(self.checkpoints[step])
        follower = self.start('--step', '1', '--exec', 'true')
        follower.wait()
        self.publish(self.checkpoints[2])
        path = self.call('GET', f'/path?have=1&digest={self.call("GET", "/steps/1").json()["digest"]}').json()
        link = path['links'][0]
        short = f"{link['step']:06d}-delta"
        _, before = self.follow()  # leaves nothing in incoming, but tells how its folder is called
        incoming = os.path.join(self.into, 'incoming')
        self.assertEqual([name for name in os.listdir(incoming) if name.startswith(short)], [])
        for entry in link['form']['objects']:
            place = os.path.join(incoming, f"{link['step']:06d}-delta-{link.get('from', link['step'] - 1):06d}-{link['digest'].split(':')[1][:12]}", 'files', entry['name'])
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, 'wb') as file:
                file.write(b'\0' * entry['size'])
        shutil.rmtree(os.path.join(self.into, 'generations', '000002'))
        os.remove(os.path.join(self.into, 'generations', '000002.json'))
        os.remove(os.path.join(self.into, 'current'))
        os.symlink('generations/000001', os.path.join(self.into, 'current'))
        _, events = self.follow()
        self.assertEqual([event['event'] for event in events], ['step'])
        self.assertEqual(self.held(), sha256(self.checkpoints[2]))

    def start(self, *more):
        environment = dict(os.environ, DELTABUCKET_ENDPOINT=self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=self.daemon.scratch)
        return subprocess.Popen([CLIENT, 'follow', '--run', f'models/{self.run_name}', '--into', self.into, '--quiet', *more], env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_one_worker_downloads_for_a_host(self):
        """Failure 19: a second one in the same folder is sent away; readers map what the first one made."""
        self.publish(self.checkpoints[0])
        hold = self.start('--exec', 'sleep 60')
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: (hold.terminate(), hold.wait()))
            while not os.path.lexists(os.path.join(self.into, 'current')):
                self.assertIsNone(hold.poll())
            second, _ = self.follow(check=False)
            self.assertEqual(second.returncode, BUSY, second.stderr)
            self.assertEqual(self.held(), sha256(self.checkpoints[0]))

    @bytes_alone
    def test_readers_follow_manifests_and_no_listings(self):
        """Failure 21: objects of an older run under the same prefix reach nobody."""
        self.publish(self.checkpoints[0])
        for key in (f'{self.run_name}/steps/000001/delta/delta.safetensors', f'{self.run_name}/steps/000000/anchor/model-00002-of-00002.safetensors'):
            self.daemon.request('PUT', f'/models/{key}', b'left over')
        self.publish(self.checkpoints[1])
        self.follow()
        self.assertEqual(os.listdir(os.path.join(self.into, 'current')), ['model.safetensors'])
        self.assertEqual(self.held(), sha256(self.checkpoints[1]))

    @bytes_alone
    def test_an_empty_step_moves_readers(self):
        """A step without change is a step: readers end on its number."""
        self.publish(self.checkpoints[0])
        self.publish(self.checkpoints[0])
        _, events = self.follow()
        self.assertEqual(events[-1]['step'], 1)

    def test_a_herd_of_new_workers_is_served(self):
        """Failure 24: many join at once; each ends with the weights."""
        for step in (0, 1):
            self.publish(self.checkpoints[step])
        workers = []
        for number in range(16):
            into = os.path.join(self.daemon.scratch, f'herd{self.count}-{number}')
            environment = dict(os.environ, DELTABUCKET_ENDPOINT=self.daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, HOME=self.daemon.scratch)
            workers.append((into, subprocess.Popen([CLIENT, 'follow', '--run', f'models/{self.run_name}', '--into', into, '--once', '--quiet'], env=environment)))
        for into, worker in workers:
            self.assertEqual(worker.wait(timeout=120), 0)
            self.assertEqual(sha256(os.path.join(into, 'current', 'model.safetensors')), sha256(self.checkpoints[1]))

    @bytes_alone
    def test_a_stranger_among_the_tensors_is_refused(self):
        """Failures 9 and 17: an extra or a missing tensor is an error, not a warning."""
        self.publish(self.checkpoints[0])
        with open(self.checkpoints[1], 'rb') as file:
            header, data = read_header(file.read())
        header.pop('__metadata__', None)
        tensors = {name: (facts['dtype'], facts['shape'], data[slice(*facts['data_offsets'])]) for name, facts in header.items()}
        path = os.path.join(self.daemon.scratch, f'odd{self.count}.safetensors')
        for odd in ({**tensors, 'stranger': ('BF16', [1], b'\1\2')}, dict(list(tensors.items())[1:])):
            write_safetensors(path, odd)
            done = self.publish(path, check=False)
            self.assertIn(done.returncode, (OTHER_SCHEMA, MALFORMED), done.stderr)
        self.assertEqual(self.call('GET', '').json()['head'], 0)
        self.publish(self.checkpoints[1])


if __name__ == '__main__':
    unittest.main()
