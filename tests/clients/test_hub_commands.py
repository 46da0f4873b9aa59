"""The command `hf` of the newest huggingface_hub, 1.29 and the first that has buckets: every one that speaks of buckets."""
import json
import os
import unittest

from tests.support.clients import content, read, tree, write
from tests.support.hub import MIDDLE, MISSING, NEWEST, OLDEST, HubCase, hub_program, ready


class Commands:
    def hf(self, *words, check=True, data=None, **variables):
        return self.run_program(hub_program(self.version, 'hf'), *words, check=check, data=data, **variables)

    def test_bucket(self):
        self.assertIn('main/shell', self.hf('buckets', 'create', 'shell').stdout)
        self.hf('buckets', 'create', 'main/shell', '--exist-ok')
        done = self.hf('buckets', 'create', 'main/shell', check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('409', done.stderr + done.stdout)
        self.assertIn('main/shell', self.hf('buckets', 'info', 'main/shell').stdout)
        self.assertIn('main/shell', self.hf('buckets', 'list').stdout)
        self.hf('buckets', 'move', 'main/shell', 'main/shell-moved')
        self.assertIn('main/shell-moved', self.hf('buckets', 'list', 'main').stdout)
        self.hf('buckets', 'delete', 'main/shell-moved', '--yes')
        done = self.hf('buckets', 'info', 'main/shell-moved', check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('not found', (done.stderr + done.stdout).lower())

    def test_cp(self):
        self.new_bucket('cp')
        path, data = self.file('cp-file', 250_000)
        self.hf('buckets', 'cp', path, 'hf://buckets/main/cp/dir/file')
        self.hf('buckets', 'cp', 'hf://buckets/main/cp/dir/file', self.path('cp-back'))
        self.assertSame(read(self.path('cp-back')), data)
        self.hf('buckets', 'cp', '-', 'hf://buckets/main/cp/from-stdin', data=b'through a pipe')
        self.assertEqual(self.hf('buckets', 'cp', 'hf://buckets/main/cp/from-stdin', '-').stdout, 'through a pipe')
        self.assertIn('from-stdin', self.hf('buckets', 'list', 'main/cp').stdout)
        self.assertIn('dir/file', self.hf('buckets', 'list', 'main/cp', '-R').stdout)
        self.hf('buckets', 'list', 'main/cp', '-R', '--tree')
        self.hf('buckets', 'remove', 'main/cp/from-stdin', '--yes')
        self.hf('buckets', 'remove', 'main/cp/dir', '--recursive', '--yes')
        self.assertEqual(self.hub.list_bucket_tree('main/cp'), [])

    def test_sync(self):
        self.new_bucket('sync')
        local, down = self.path('local'), self.path('down')
        for name, size in (('a', 0), ('b/c', 70_000), ('b/d e', 9)):
            write(os.path.join(local, name), content(size))
        sync = ('buckets', 'sync')
        self.hf(*sync, local, 'hf://buckets/main/sync')
        self.hf(*sync, 'hf://buckets/main/sync', down)
        self.assertEqual(tree(down), tree(local))
        os.remove(os.path.join(local, 'b/c'))
        plan = self.hf(*sync, local, 'hf://buckets/main/sync', '--delete', '--dry-run').stdout
        self.assertIn('delete', {json.loads(line).get('action') for line in plan.splitlines() if line.startswith('{')})
        self.hf(*sync, local, 'hf://buckets/main/sync', '--delete')
        self.assertEqual([file['path'] for file in self.hub.list_bucket_tree('main/sync', recursive=True)], ['a', 'b/d e'])

    def test_login(self):
        home = self.path('homes', 'login')
        self.hf('auth', 'login', '--token', self.token, HF_TOKEN=None, HF_HOME=home)
        self.assertIn('main', self.hf('auth', 'whoami', HF_TOKEN=None, HF_HOME=home).stdout)
        self.assertIn('list', self.hf('buckets', '--help').stdout)
        self.hf('buckets', 'list', HF_TOKEN=None, HF_HOME=home)
        done = self.hf('auth', 'login', '--token', 'hf_wrong', check=False, HF_TOKEN=None, HF_HOME=self.path('homes', 'wrong'))
        self.assertNotEqual(done.returncode, 0)

    def test_models_and_datasets_cannot_be_made(self):
        path, _ = self.file('weights', 1000)
        for words in (
            ('upload', 'main/model', path),
            ('upload', 'main/data', path, '--repo-type', 'dataset'),
            ('repos' if self.version == NEWEST else 'repo', 'create', 'main/model'),
        ):
            done = self.hf(*words, check=False)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn('This server has no models, datasets or spaces', ' '.join((done.stdout + done.stderr).split()), words)

    def test_sync_by_plan(self):
        self.new_bucket('plan')
        local, plan = self.path('plan-up'), self.path('plan.jsonl')
        for name in ('keep.bin', 'keep/too.bin', 'skip.txt'):
            write(os.path.join(local, name), name.encode())
        self.hf('buckets', 'sync', local, 'hf://buckets/main/plan', '--include', '*.bin', '--plan', plan)
        self.assertEqual(self.hub.list_bucket_tree('main/plan'), [])
        self.hf('buckets', 'sync', '--apply', plan)
        self.assertEqual([file['path'] for file in self.hub.list_bucket_tree('main/plan', recursive=True)], ['keep.bin', 'keep/too.bin'])


class LaterCommands:
    def test_repositories(self):
        self.new_bucket('owned')
        self.hub.batch_bucket_files('main/owned', add=[(b'x' * 1500, 'file')])
        for arguments in ((), ('--namespace', 'main')):
            line, = (line for line in self.hf('repos', 'ls', '--limit', '0', *arguments).stdout.splitlines() if 'main/owned' in line)
            self.assertIn('bucket', line)
            self.assertIn('private', line)
            self.assertIn('1.5', line)

    def test_short_forms(self):
        self.new_bucket('short')
        path, data = self.file('short-file', 100_000)
        self.hf('cp', path, 'hf://buckets/main/short/')
        self.hf('cp', 'hf://buckets/main/short/short-file', 'hf://buckets/main/short/copy')
        self.hf('sync', 'hf://buckets/main/short', self.path('short-down'))
        self.assertSame(read(self.path('short-down', 'copy')), data)

    def test_settings(self):
        self.new_bucket('shell-settings')
        self.hf('buckets', 'settings', 'main/shell-settings', '--public')
        self.assertFalse(self.hub.bucket_info('main/shell-settings')['private'])
        self.hf('buckets', 'settings', 'main/shell-settings', '--private')
        self.assertTrue(self.hub.bucket_info('main/shell-settings')['private'])
        self.assertIn('shell-settings', self.hf('buckets', 'list', '--search', 'l-sett').stdout)


@unittest.skipUnless(ready(NEWEST), MISSING)
class HubCommandsNewest(Commands, LaterCommands, HubCase):
    version = NEWEST


@unittest.skipUnless(ready(MIDDLE), MISSING)
class HubCommandsMiddle(Commands, LaterCommands, HubCase):
    version = MIDDLE
    tls = False


@unittest.skipUnless(ready(OLDEST), MISSING)
class HubCommandsOldest(Commands, HubCase):
    version = OLDEST


if __name__ == '__main__':
    unittest.main()
