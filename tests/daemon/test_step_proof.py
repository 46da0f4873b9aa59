"""Published steps are decoded by the server: what is right is proven, what is not leaves every path, and an anchor cures. Of what is
right the server makes anchors that nobody uploaded."""
import json
import os
import re
import shutil
import tempfile
import time
import unittest

from tests.support.checkpoints import SMALL, expand_small, write_safetensors
from tests.support.daemon import Daemon, bytes_alone

STEPS = 5
CONFLICT = 6
FORMATS = ('ulp-class', 'trl-gap', 'trl-raw', 'slime-xor', 'slime-overwrite')


class Proofs(unittest.TestCase):
    """Publishes the small series by hand, in any format, right or wrong."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.checkpoints = expand_small(cls.scratch, STEPS)
        cls.digests = []

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def start(self, *arguments):
        daemon = Daemon(tls=False, arguments=arguments)
        daemon.start()
        self.addCleanup(daemon.__exit__)
        self.assertEqual(daemon.request('PUT', '/models').status, 200)
        self.daemon = daemon
        if not self.digests:
            type(self).digests = [json.loads(daemon.client('inspect', '--json', path).stdout)['digest'] for path in self.checkpoints]
        self.assertEqual(self.call('POST', '').status, 200)
        return daemon

    def call(self, method, target, body=None, headers=None):
        text = json.dumps(body) if isinstance(body, dict) else body
        return self.daemon.request(method, f'/v1/runs/models/run{target}', text, headers)

    def put(self, key, path, name):
        with open(path, 'rb') as file:
            reply = self.daemon.request('PUT', f'/models/run/{key}', file.read())
        self.assertEqual(reply.status, 200, reply.body)
        return {'key': f'run/{key}', 'name': name, 'size': os.path.getsize(path), 'digest': reply.headers['x-deltabucket-digest']}

    def anchor_form(self, step):
        return {'kind': 'anchor', 'format': 'full', 'objects': [self.put(f'a{step}', self.checkpoints[step], 'model.safetensors')]}

    def delta_form(self, step, base=None, target=None, form='trl-gap'):
        base, target = (step - 1 if base is None else base), (step if target is None else target)
        made = os.path.join(self.scratch, f'{form}-{base}-{target}')
        if not os.path.exists(made):
            self.daemon.client('diff', '--format', form, self.checkpoints[base], self.checkpoints[target], made)
        names = [os.path.relpath(os.path.join(at, name), made) for at, _, names in os.walk(made) for name in names]
        files = [(made, 'delta.safetensors')] if os.path.isfile(made) else [(os.path.join(made, name), name) for name in names]
        return {'kind': 'delta', 'format': form,
                'objects': [self.put(f'{form}/{step}/{base}-{target}/{name}', path, name) for path, name in files]}

    def publish(self, step, *forms, **changes):
        path = self.checkpoints[step]
        self.put('probe', path, '')
        probe = self.daemon.request('HEAD', '/models/run/probe')
        body = {'step': step, 'epoch': 1, 'digest': self.digests[step], 'forms': list(forms),
                'files': [{'path': 'model.safetensors', 'size': os.path.getsize(path), 'digest': probe.headers['x-deltabucket-digest']}]}
        if step > 0:
            body['base'] = {'step': step - 1, 'digest': self.digests[step - 1]}
        body.update(changes)
        reply = self.call('PUT', f'/steps/{step}', body)
        self.assertIn(reply.status, (200, 201), reply.body)
        return reply.json()

    def settled(self, steps):
        """Waits until the server knows of all these steps; gives what it says of each."""
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            known = [self.call('GET', f'/steps/{step}').json() for step in range(steps)]
            if all(step['verified'] != 'pending' for step in known):
                return known
            time.sleep(0.02)
        self.fail(f'not settled: {known}\n{self.daemon.log()}')


class StepProof(Proofs):
    def test_a_series_is_proven(self):
        daemon = self.start()
        first = self.publish(0, self.anchor_form(0))
        self.assertEqual(first['verified'], 'pending')
        self.assertNotIn('anchor_due', first)
        for step in range(1, STEPS + 1):
            forms = [self.delta_form(step)] + ([self.anchor_form(step)] if step == 3 else [])
            self.publish(step, *forms)
        self.assertEqual([step['verified'] for step in self.settled(STEPS + 1)], ['ok'] * (STEPS + 1))
        self.assertEqual(self.call('GET', '/steps/latest').json()['step'], STEPS)
        metrics = daemon.request('GET', '/-/metrics').body.decode()
        self.assertIn(f'deltabucket_steps_proven {STEPS + 1}', metrics)
        self.assertIn('deltabucket_steps_failed 0', metrics)

    def test_a_wrong_delta_fails_and_an_anchor_cures(self):
        self.start()
        self.publish(0, self.anchor_form(0))
        self.publish(1, self.delta_form(1))
        self.settled(2)
        self.publish(2, self.delta_form(2, base=1, target=3))  # well formed, but it makes step 3
        known = self.settled(3)
        self.assertEqual([step['verified'] for step in known], ['ok', 'ok', 'failed'])
        self.assertIn('checkpoint', known[2]['verify_error'])
        self.daemon.await_log('step_failed run=models/run step=2 ')
        self.assertEqual(self.call('GET', '/steps/latest').json()['step'], 1)
        self.assertEqual(self.call('GET', '/path').json()['to'], 1)
        refused = self.call('GET', '/path?want=2')
        self.assertEqual((refused.status, refused.code()), (409, 'step_failed'))
        self.assertIs(self.call('GET', '').json()['anchor_due'], True)

        self.assertIs(self.publish(3, self.delta_form(3))['anchor_due'], True)
        known = self.settled(4)
        self.assertEqual(known[3]['verified'], 'failed')
        self.assertIn('step 2', known[3]['verify_error'])

        self.assertNotIn('anchor_due', self.publish(4, self.delta_form(4), self.anchor_form(4)))
        self.publish(5, self.delta_form(5))
        self.assertEqual([step['verified'] for step in self.settled(6)], ['ok', 'ok', 'failed', 'failed', 'ok', 'ok'])
        self.assertNotIn('anchor_due', self.call('GET', '').json())
        way = self.call('GET', f'/path?have=1&digest={self.digests[1]}').json()
        self.assertEqual((way['from'], way['to']), (None, 5))
        self.assertEqual(way['links'][0]['form']['kind'], 'anchor')
        held = self.call('GET', f'/path?have=4&digest={self.digests[4]}').json()
        self.assertEqual([link['step'] for link in held['links']], [5])

    @bytes_alone
    def test_publishers_follow_a_failed_step_with_a_full_copy(self):
        """Whether they have what was published there, or nothing."""
        self.start()
        self.publish(0, self.anchor_form(0))
        self.publish(1, self.delta_form(1, target=2))
        self.assertEqual([step['verified'] for step in self.settled(2)], ['ok', 'failed'])
        state = os.path.join(self.daemon.scratch, 'taker')
        words = ('publish', '--run', 'models/run', '--state', state)
        never = self.daemon.client(*words, '--take-over', '--anchor', 'never', self.checkpoints[2], check=False)
        self.assertEqual((never.returncode, '--anchor auto continues' in never.stderr), (CONFLICT, True), never.stderr)
        self.assertEqual(json.loads(self.call('GET', '').body)['epoch'], 1)
        said = self.daemon.client(*words, '--take-over', self.checkpoints[2]).stderr
        self.assertIn('step 1 of run models/run failed its proof', said)
        self.daemon.client(*words, self.checkpoints[3])
        known = self.settled(4)
        self.assertEqual([step['verified'] for step in known], ['ok', 'failed', 'ok', 'ok'])
        self.assertEqual([[form['kind'] for form in step['forms']] for step in known[2:]], [['anchor'], ['delta']])

    def test_deltas_of_others_need_no_digests(self):
        """The files of the small series are as TRL's trainer wrote them: they say nothing of base or result."""
        self.start()
        self.publish(0, self.anchor_form(0))
        for step in (1, 2):
            path = os.path.join(SMALL, 'deltas', f'step_{step:06d}.safetensors')
            with open(path, 'rb') as file:
                self.assertNotIn(b'result_digest', file.read())
            self.publish(step, {'kind': 'delta', 'format': 'trl-gap', 'objects': [self.put(f'd{step}', path, f'step_{step:06d}.safetensors')]})
        self.assertEqual([step['verified'] for step in self.settled(3)], ['ok'] * 3)
        self.newest_is(2)
        self.check_anchor(2)

    @bytes_alone
    def test_wrong_claims_of_files_and_tensors_fail(self):
        self.start()
        self.publish(0, self.anchor_form(0), files=[
            {'path': 'model.safetensors', 'size': os.path.getsize(self.checkpoints[0]), 'digest': 'xxh3-128:' + '0' * 32}])
        self.publish(1, self.anchor_form(1), files=[])
        self.publish(2, self.delta_form(2), self.anchor_form(3))
        known = self.settled(3)
        self.assertEqual([step['verified'] for step in known], ['failed', 'ok', 'failed'])
        self.assertIn('model.safetensors', known[0]['verify_error'])
        self.assertIn('anchor', known[2]['verify_error'])

    @bytes_alone
    def test_a_run_may_go_without(self):
        self.start()
        self.assertEqual(self.call('PUT', '/settings', {'verify': False}).status, 200)
        self.publish(0, self.anchor_form(0))
        self.publish(1, self.delta_form(1, base=0, target=2))
        time.sleep(0.3)
        self.assertNotIn('verified', self.call('GET', '/steps/1').json())
        self.assertEqual(self.call('GET', '/steps/latest').json()['step'], 1)

    @bytes_alone
    def test_kills_between_do_not_matter(self):
        daemon = self.start('--step-rate', '1')  # MiB/s: slow enough to be caught at it
        self.publish(0, self.anchor_form(0))
        for step in range(1, STEPS + 1):
            self.publish(step, self.delta_form(step))
            if step % 2 == 0:
                daemon.kill()
                daemon.start()
        daemon.stop()
        daemon.arguments = []
        daemon.start()
        self.assertEqual([step['verified'] for step in self.settled(STEPS + 1)], ['ok'] * (STEPS + 1))
        self.assertNotIn('step_work_failed', daemon.log())

    @bytes_alone
    def test_accounts_take_turns(self):
        """One account's only step is not kept waiting by all that another has published before."""
        daemon = self.start('--step-work=no')
        for step in range(STEPS + 1):
            self.publish(step, self.anchor_form(step))
        key = daemon.add_key('--namespace', 'team')
        self.assertEqual(daemon.request('PUT', '/team--late', token=key['token']).status, 200)
        daemon.client('publish', '--run', 'team--late/run', self.checkpoints[0], token=key['token'])
        daemon.stop()
        daemon.arguments = ['--step-rate', '1']
        daemon.start()
        late = 'pending'
        limit = time.monotonic() + 60
        while late == 'pending':
            self.assertLess(time.monotonic(), limit, daemon.log())
            last = self.call('GET', f'/steps/{STEPS}').json()['verified']
            reply = daemon.request('GET', '/v1/runs/team--late/run/steps/0', token=key['token'])
            late = reply.json()['verified']
            self.assertFalse(last != 'pending' and late == 'pending', 'the last of many came first')
            time.sleep(0.02)
        self.assertEqual(late, 'ok')

    def test_a_server_told_not_to_leaves_steps_pending(self):
        daemon = self.start('--step-work=no')
        self.publish(0, self.anchor_form(0))
        time.sleep(0.3)
        self.assertEqual(self.call('GET', '/steps/0').json()['verified'], 'pending')
        daemon.stop()
        daemon.arguments = []
        daemon.start()
        self.assertEqual(self.settled(1)[0]['verified'], 'ok')

    def s3(self, method, key, body=None, headers=None):
        return self.daemon.request(method, f'/models/run/{key}', body, headers)

    def listed(self):
        listing = self.daemon.request('GET', '/models?list-type=2&prefix=run/anchors/')
        return re.findall(r'<Key>(.*?)</Key>', listing.body.decode())

    def waits_for(self, told, what):
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            if told():
                return
            time.sleep(0.02)
        self.fail(f'{what}\n{self.daemon.log()}')

    def newest_is(self, step):
        key = f'run/anchors/step_{step:06d}/model.safetensors'
        self.waits_for(lambda: self.listed() == [key], f'{key} is not listed alone: {self.listed()}')

    def content(self, step):
        with open(self.checkpoints[step], 'rb') as file:
            return file.read()

    def check_anchor(self, step):
        """HEAD first: it tells without making anything."""
        key, want = f'anchors/step_{step:06d}/model.safetensors', self.content(step)
        head = self.s3('HEAD', key)
        self.assertEqual((head.status, int(head.headers['Content-Length'])), (200, len(want)))
        digest = head.headers['x-deltabucket-digest']
        self.assertEqual(head.headers['ETag'], f'"{digest.removeprefix("xxh3-128:")}-d"')
        self.assertEqual(self.s3('GET', key, headers={'If-None-Match': head.headers['ETag']}).status, 304)
        self.assertEqual(self.s3('GET', key, headers={'If-Match': '"other"'}).status, 412)
        part = self.s3('GET', key, headers={'Range': 'bytes=500000-500999'})
        self.assertEqual((part.status, part.body), (206, want[500000:501000]))
        whole = self.s3('GET', key)
        self.assertEqual((whole.status, whole.headers['ETag']), (200, head.headers['ETag']))
        self.assertTrue(whole.body == want, f'the anchor of step {step} differs')

    def test_every_step_can_be_read_whole(self):
        daemon = self.start()
        self.publish(0, self.anchor_form(0))
        for step in range(1, STEPS + 1):
            self.publish(step, self.delta_form(step, form=FORMATS[step % len(FORMATS)]))
        self.assertEqual([step['verified'] for step in self.settled(STEPS + 1)], ['ok'] * (STEPS + 1))
        self.newest_is(STEPS)
        way = self.call('GET', '/path').json()  # who has nothing takes the newest anchor, made as it is
        self.assertEqual([(link['step'], link['form']['kind']) for link in way['links']], [(STEPS, 'anchor')])
        fetched = self.call('GET', '/' + way['links'][0]['form']['objects'][0]['url'])
        self.assertTrue(fetched.body == self.content(STEPS))
        for step in list(range(STEPS + 1)) + list(range(STEPS, -1, -1)):
            self.check_anchor(step)
        self.newest_is(STEPS)
        self.assertTrue(self.call('GET', '/steps/2/objects/anchor/model.safetensors').body == self.content(2))
        daemon.stop()
        daemon.start()
        for step in range(STEPS + 1):
            self.check_anchor(step)
        for key in ('step_000009/model.safetensors', 'step_000001/other', 'step_1/model.safetensors', 'step_000001', 'x/model.safetensors'):
            self.assertEqual(self.s3('GET', f'anchors/{key}').status, 404, key)
        self.assertNotIn('step_work_failed', daemon.log())

    @bytes_alone
    def test_the_servers_keys_are_the_servers(self):
        self.start()
        self.publish(0, self.anchor_form(0))
        self.publish(1, self.delta_form(1))
        self.newest_is(1)
        key = 'anchors/step_000001/model.safetensors'
        for reply in (self.s3('PUT', key, b'mine'), self.s3('PUT', 'anchors/mine', b'mine'), self.s3('DELETE', key),
                      self.s3('POST', f'{key}?uploads'), self.s3('PUT', key, headers={'x-amz-copy-source': '/models/run/a0'})):
            self.assertEqual((reply.status, reply.code()), (403, 'AccessDenied'), reply.body)
        many = self.daemon.request('POST', '/models?delete', f'<Delete><Object><Key>run/{key}</Key></Object></Delete>')
        self.assertEqual(many.status, 200)
        self.assertIn(b'AccessDenied', many.body)
        self.check_anchor(1)
        self.assertEqual(self.daemon.request('PUT', '/models/norun/anchors/mine', b'mine').status, 200)
        self.assertEqual(self.call('DELETE', '').status, 204)
        self.waits_for(lambda: self.listed() == [], 'anchors of an ended run stay')
        self.assertEqual(self.s3('PUT', key, b'mine').status, 200)

    def test_a_whole_folder_is_made(self):
        """Shards, an index and a changing file beside them."""
        daemon = self.start()
        folders = [os.path.join(self.scratch, f'folder{step}') for step in range(3)]
        for step, folder in enumerate(folders):
            if not os.path.exists(folder):
                write_folder(folder, step)
            daemon.client('publish', '--run', 'models/run', '--anchor', 'never' if step else 'always', '--take-over', folder)
        self.assertEqual([step['verified'] for step in self.settled(3)], ['ok'] * 3)
        self.waits_for(lambda: len(self.listed()) == len(os.listdir(folders[2])), 'the newest folder is not listed')
        for step in (2, 1, 0):
            for name in sorted(os.listdir(folders[step])):
                with open(os.path.join(folders[step], name), 'rb') as file:
                    self.assertTrue(self.s3('GET', f'anchors/step_{step:06d}/{name}').body == file.read(), f'{step} {name}')

    @bytes_alone
    def test_a_long_run_stands_on_anchors_of_its_own(self):
        """One anchor was uploaded, at step 0. Retention lets it go once a later step is stored; every kept step can be read whole still."""
        daemon = self.start()
        self.assertEqual(self.call('PUT', '/settings', {'keep_steps': 4}).status, 200)
        folder = os.path.join(self.scratch, 'long')
        os.makedirs(folder, exist_ok=True)
        names = [os.path.join(folder, f'{step}.safetensors') for step in range(60)]
        for step, name in enumerate(names):
            write_safetensors(name, {f't{i}': ('BF16', [128, 64], bytes((at * 31 + (step * at if at % 89 == 0 else 0) + i) % 256
                                                                        for at in range(16384))) for i in range(3)})
            daemon.client('publish', '--run', 'models/run', '--anchor', 'never' if step else 'always', name,
                          *(['--take-over'] if step == 0 else []))
        self.waits_for(lambda: self.call('GET', f'/steps/{len(names) - 1}').json()['verified'] == 'ok', 'the last step is not proven')
        kept = [step['step'] for step in self.call('GET', '/steps').json()['steps'] if not step.get('collected')]
        self.assertLess(len(kept), 30, kept)
        self.assertEqual(kept, list(range(kept[0], len(names))))
        self.assertGreater(kept[0], 20)
        for step in kept:
            with open(names[step], 'rb') as file:
                self.assertTrue(self.s3('GET', f'anchors/step_{step:06d}/model.safetensors').body == file.read(), step)
        way = self.call('GET', '/path').json()
        self.assertEqual(way['to'], len(names) - 1)
        self.assertNotIn('step_work_failed', daemon.log())

    def test_pinned_steps_are_made_and_listed(self):
        self.start()
        self.publish(0, self.anchor_form(0))
        for step in range(1, STEPS + 1):
            self.publish(step, self.delta_form(step))
        self.newest_is(STEPS)
        self.assertEqual(self.call('PUT', '/pins/mine', {'step': 2}).status, 200)
        both = [f'run/anchors/step_{step:06d}/model.safetensors' for step in (2, STEPS)]
        self.waits_for(lambda: self.listed() == both, 'the pinned one is not listed')
        self.check_anchor(2)

    @bytes_alone
    def test_kills_while_anchors_are_made(self):
        daemon = self.start('--step-rate', '4')
        self.publish(0, self.anchor_form(0))
        for step in range(1, STEPS + 1):
            self.publish(step, self.delta_form(step))
            time.sleep(0.15 * step)
            daemon.kill()
            daemon.start()
        daemon.stop()
        daemon.arguments = []
        daemon.start()
        self.newest_is(STEPS)
        for step in range(STEPS + 1):
            self.check_anchor(step)
        self.assertNotIn('step_work_failed', daemon.log())


def write_folder(folder, step):
    os.mkdir(folder)
    names = {}
    for shard in range(2):
        tensors = {f't{shard}.{i}': ('BF16', [64, 64], bytes((i * 7 + shard + (at * step if at % 97 == 0 else at)) % 251 for at in range(8192)))
                   for i in range(3)}
        name = f'model-{shard + 1:05d}-of-00002.safetensors'
        write_safetensors(os.path.join(folder, name), tensors)
        names.update({tensor: name for tensor in tensors})
    with open(os.path.join(folder, 'model.safetensors.index.json'), 'w') as file:
        json.dump({'metadata': {'total_size': 6 * 8192}, 'weight_map': names}, file)
    with open(os.path.join(folder, 'config.json'), 'w') as file:
        json.dump({'step': step // 2, 'pad': 'x' * 3000}, file)


if __name__ == '__main__':
    unittest.main()
