"""`mb`, `rb`, `cp`, `rm`, `ls -r` and `runs rm` against a server."""
import json
import os
import unittest

from tests.support.daemon import DATA, Daemon

THREADS_MEET = False

USAGE, DENIED, NOT_FOUND, CONFLICT = 2, 4, 5, 6
CHECKPOINT = os.path.join(DATA, 'small', 'anchors', 'step_000000.safetensors')


class ObjectCommands(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.daemon.start()
        self.file = os.path.join(self.daemon.scratch, 'file')
        with open(self.file, 'wb') as file:
            file.write(b'some bytes')

    def tearDown(self):
        self.daemon.__exit__()

    def expect(self, status, said, *words, **more):
        done = self.daemon.client(*words, check=False, **more)
        self.assertEqual(done.returncode, status, (words, done.stderr))
        self.assertIn(said, done.stderr if status else done.stdout, words)
        return done

    def keys(self, bucket):
        return [json.loads(line)['key'] for line in self.daemon.client('ls', '-r', '--json', bucket).stdout.splitlines()]

    def test_buckets_are_made_and_removed(self):
        self.expect(0, 'made bucket one', 'mb', 'one', 'two')
        self.expect(CONFLICT, 'there is already a bucket one', 'mb', 'one')
        self.expect(CONFLICT, '1 of 2 failed, the first with: there is already a bucket one', 'mb', 'one', 'three')
        self.expect(NOT_FOUND, '1 of 2 failed', 'rb', 'four', 'three')
        self.expect(0, '', 'mb', '--exist-ok', 'one')
        self.daemon.client('put', self.file, 'one/folder/')
        self.expect(CONFLICT, '`deltabucket rb --force one` removes it', 'rb', 'one')
        self.assertEqual(self.keys('one'), ['folder/file'])
        self.expect(0, 'removed bucket one', 'rb', '--force', 'one')
        self.expect(0, 'removed bucket two', 'rb', 'two')
        self.expect(NOT_FOUND, 'two', 'rb', 'two')
        self.expect(USAGE, "The bucket name 'ab' must have 3 to 63 bytes.", 'mb', 'ab')
        self.expect(USAGE, "The grant 'one=everything'", 'keys', 'add', '--grant', 'one=everything')
        self.expect(NOT_FOUND, 'two', 'rb', '--force', 'two')
        self.assertEqual(self.daemon.client('ls').stdout, '')

    def test_a_bucket_with_runs_stays_until_they_have_ended(self):
        self.daemon.client('publish', '--run', 'models/policy', '--create-bucket', CHECKPOINT)
        self.daemon.client('publish', '--run', 'others/policy', '--create-bucket', '--state', os.path.join(self.daemon.scratch, 'others'), CHECKPOINT)
        listed = {words: self.daemon.client('runs', *words).stdout for words in ((), ('ls',), ('models',), ('ls', 'models'))}
        self.assertEqual(listed['ls',], listed[()])
        self.assertEqual(len(listed[()].splitlines()), 2)
        self.assertEqual(listed['ls', 'models'], listed['models',])
        self.assertTrue(listed['models',].startswith('models/policy  step 0'), listed)
        self.daemon.client('runs', 'rm', 'others/policy')
        self.expect(CONFLICT, '`deltabucket runs rm models/policy` ends one', 'rb', 'models')
        self.expect(CONFLICT, 'models holds runs', 'rb', '--force', 'models')
        self.expect(0, 'removed run models/policy', 'runs', 'rm', 'models/policy')
        self.expect(NOT_FOUND, 'policy', 'runs', 'rm', 'models/policy')
        self.assertEqual(self.daemon.client('runs').stdout, '')
        self.expect(0, 'removed bucket models', 'rb', '--force', 'models')

    def test_what_is_missing_is_named(self):
        self.daemon.client('cp', '--create-bucket', self.file, 'one/a/b/file')
        for command in ('get', 'cp'):
            to = [self.daemon.scratch] if command == 'cp' else []
            self.expect(NOT_FOUND, 'there is no bucket nosuch', command, 'nosuch/nope', *to)
            self.expect(NOT_FOUND, 'there is no object one/nope', command, 'one/nope', *to)
            for name in ('one/a', 'one/a/b'):
                said = f'it is a folder: `deltabucket sync {name} ./FOLDER` downloads what it contains'
                self.expect(NOT_FOUND, said, command, name, *(to or [os.path.join(self.daemon.scratch, 'to')]))
        self.expect(NOT_FOUND, 'it is a folder', 'cp', 'one/a', 'one/c')
        told = json.loads(self.expect(NOT_FOUND, 'no object', '--json', 'get', 'one/nope').stdout)['error']
        self.assertEqual(told['code'], 'no_key')
        self.daemon.await_log(f' {told["request_id"]} request ')
        self.expect(USAGE, '`deltabucket sync one/a/b/ ./FOLDER` downloads a folder', 'get', 'one/a/b/')
        for words in (('cp', '-r'), ('put', '--recursive'), ('get', '-r')):
            self.expect(USAGE, '`deltabucket sync` uploads and downloads folders', *words, 'one/a', self.daemon.scratch)
        for path in ('nodir/', 'nodir/file', 'file/x'):
            said = f'there is no folder {os.path.dirname(path)} to write to'
            self.expect(NOT_FOUND, said, 'get', 'one/a/b/file', path, cwd=self.daemon.scratch)

    def test_a_key_without_the_right_is_told_so(self):
        """A refused HEAD has no sentence of the server's."""
        self.daemon.client('cp', '--create-bucket', self.file, 'one/file')
        self.daemon.client('mb', 'two')
        token = self.daemon.add_key('--grant', 'two=read,write,list')['token']
        for words, name in ((('mb', 'one'), 'one'), (('cp', 'one/file', 'two/x'), 'one/file'),
                            (('get', 'one/file', self.daemon.scratch), 'one/file')):
            self.expect(DENIED, f"the token's key may not look at {name}", *words, token=token)

    def test_a_run_is_added_for_a_trainer_that_is_adopted(self):
        self.expect(NOT_FOUND, "The bucket 'models' does not exist; `deltabucket ls` lists", 'runs', 'add', 'models/adopted')
        self.daemon.client('mb', 'models')
        self.expect(0, 'added run models/adopted, at epoch 1', 'runs', 'add', 'models/adopted')
        self.expect(0, 'adopt = "slime"', 'runs', 'settings', 'models/adopted', 'adopt=slime')
        self.expect(CONFLICT, 'there is already a run models/adopted', 'runs', 'add', 'models/adopted')
        self.expect(0, 'adopt = "slime"', 'runs', 'settings', 'models/adopted')
        self.expect(USAGE, '"models" does not name a run', 'runs', 'add', 'models')
        self.daemon.client('publish', '--run', 'models/adopted', CHECKPOINT)

    def test_cp_goes_every_way(self):
        self.daemon.client('cp', '--create-bucket', self.file, 'one/a/')
        self.expect(0, 'copied one/a/file to two/b/file, 10 B, inside the server', 'cp', '--create-bucket', 'one/a/file', 'two/b/')
        self.daemon.client('cp', 's3://one/a/file', 's3://two')
        self.assertEqual(self.keys('two'), ['b/file', 'file'])
        back = os.path.join(self.daemon.scratch, 'back')
        self.daemon.client('cp', 'two/b/file', back)
        with open(back, 'rb') as file:
            self.assertEqual(file.read(), b'some bytes')
        self.assertEqual(self.daemon.client('cp', 'two/file', '-').stdout, 'some bytes')
        self.daemon.client('cp', 'file', 'two/from-here', cwd=self.daemon.scratch)
        self.daemon.client('cp', '-', 'two/from-stdin', input='piped')
        self.assertEqual(self.daemon.request('GET', '/two/from-stdin').body, b'piped')
        self.expect(NOT_FOUND, 'there is no object two/nothing', 'cp', 'two/nothing', 'two/x')
        self.expect(NOT_FOUND, 'there is no object two/nothing', 'get', 'two/nothing')
        self.expect(NOT_FOUND, 'there is no bucket three', 'cp', 'two/file', 'three')
        os.mkdir(os.path.join(self.daemon.scratch, 'files'))
        os.rename(self.file, os.path.join(self.daemon.scratch, 'files', 'one'))
        self.expect(NOT_FOUND, 'is written ./files/one', 'cp', 'files/one', 'two/x', cwd=self.daemon.scratch)
        self.daemon.client('cp', './files/one', 'two/x', cwd=self.daemon.scratch)
        self.expect(USAGE, 'onto itself', 'cp', 'two/file', 'two/')

    def test_rm_says_what_is_not_there(self):
        for key in ('run/a', 'run/b/c', 'run2/a', 'x', 'run', 'run/odd//name'):
            self.daemon.client('put', '--create-bucket', self.file, f'box/{key}')
        self.expect(NOT_FOUND, 'there is no object box/nothing', 'rm', 'box/nothing', 'box/x')
        self.assertNotIn('x', self.keys('box'))
        self.expect(0, 'would remove box/run/b/c', 'rm', '-r', '--dry-run', 'box/run')
        self.assertEqual(len(self.keys('box')), 5)
        self.expect(0, 'removed box/run/b/c', 'rm', '-r', 'box/run')
        self.assertEqual(self.keys('box'), ['run2/a'])
        self.expect(NOT_FOUND, 'there is nothing at box/run', 'rm', '-r', 'box/run')
        self.expect(USAGE, '`deltabucket rm -r box/` removes all objects', 'rm', '-r', 'box')
        self.expect(0, 'removed box/run2/a', 'rm', '-r', 'box/')
        self.expect(NOT_FOUND, 'nobucket', 'rm', '-r', 'nobucket/x')

    def publish_with_views(self):
        """Below `models/policy/anchors` lie keys of the server's own; gives them, and the key of what was published."""
        self.daemon.client('publish', '--run', 'models/policy', '--create-bucket', CHECKPOINT)
        self.daemon.client('runs', 'settings', 'models/policy', 'view_trl=true')
        self.daemon.await_views('models')
        for key in ('a', 'steps/zz'):
            self.daemon.client('put', self.file, f'models/policy-more/{key}')
        keys = self.keys('models')
        own = [key for key in keys if key.startswith('policy/anchors/')]
        self.assertTrue(own, keys)
        return own, [key for key in keys if key not in own]

    def test_what_rm_may_not_remove_is_named_and_stops_nothing(self):
        own, others = self.publish_with_views()
        dry = self.expect(DENIED, "are the server's", 'rm', '-r', '--dry-run', '--json', 'models/')
        events = {(line['event'], line['key']) for line in map(json.loads, dry.stdout.splitlines()) if 'key' in line}
        self.assertEqual(events, {('refused', key) for key in own} | {('would_remove', key) for key in others})
        self.assertEqual(self.keys('models'), sorted(own + others))
        done = self.expect(DENIED, f'kept models/{own[0]}: ', 'rm', '-r', 'models/')
        self.assertIn('They are removed with their steps, or with the whole run (`deltabucket runs rm`)', done.stderr)
        self.assertEqual(set(done.stdout.splitlines()), {f'removed models/{key}' for key in others})
        self.assertEqual(self.keys('models'), own)
        self.daemon.client('runs', 'rm', 'models/policy')
        self.daemon.client('rm', '-r', 'models/', check=False)
        self.assertEqual(self.keys('models'), [])

    def test_what_sync_may_not_remove_is_named_and_stops_nothing(self):
        own, others = self.publish_with_views()
        folder = os.path.join(self.daemon.scratch, 'folder')
        os.mkdir(folder)
        with open(os.path.join(folder, 'new'), 'w') as file:
            file.write('new')
        for words, event, left in ((('--dry-run',), 'would_remove', sorted(own + others)), ((), 'removed', sorted(own + ['new']))):
            done = self.expect(DENIED, f'{own[0]}: ', 'sync', '--delete', '--json', *words, folder, 'models')
            events = [(line['event'], line['name']) for line in map(json.loads, done.stdout.splitlines()) if 'name' in line]
            self.assertEqual({key for kind, key in events if kind == event}, set(others), words)
            self.assertEqual({key for kind, key in events if kind == 'refused'}, set(own), words)
            self.assertEqual(self.keys('models'), left, words)

    def test_a_key_that_may_list_claims_nothing_that_is_not_there(self):
        self.daemon.client('put', '--create-bucket', self.file, 'box/there')
        token = self.daemon.add_key('--grant', 'box=write,list')['token']
        self.expect(NOT_FOUND, 'there is no object box/gone', 'rm', 'box/gone', 'box/there', token=token)
        self.assertEqual(self.keys('box'), [])
        self.expect(NOT_FOUND, 'there is nothing at box/there', 'rm', '-r', 'box/there', token=token)

    def test_rm_goes_through_more_pages_than_one(self):
        self.daemon.request('PUT', '/many')
        for number in range(1_100):
            self.daemon.request('PUT', f'/many/f/{number}', b'')
        done = self.daemon.client('rm', '-r', 'many/f', '--json')
        self.assertEqual(len(done.stdout.splitlines()), 1_100)
        self.assertEqual(self.keys('many'), [])

    def test_sizes_of_buckets(self):
        self.daemon.client('mb', 'empty', 'one', 'two')
        for name in ('one/a', 'two/a', 'two/b/c'):
            self.daemon.client('put', self.file, name)
        self.daemon.client('put', self.file, 'two/a')
        told = {line['bucket']: (line['objects'], line['bytes']) for line in map(json.loads, self.daemon.client('ls', '-l', '--json').stdout.splitlines())}
        self.assertEqual(told, {'empty': (0, 0), 'one': (1, 10), 'two': (2, 20)})
        lines = [line.split()[1:] for line in self.daemon.client('ls', '-l').stdout.splitlines()]
        self.assertEqual(lines, [['0', 'objects', '0', 'B', 'empty'], ['1', 'object', '10', 'B', 'one'], ['2', 'objects', '20', 'B', 'two']])
        for grant in ('two=list', 'two=read', 'two=write', 'two/b/=read,list', 'two=admin'):
            token = self.daemon.add_key('--grant', grant)['token']
            self.assertEqual(self.daemon.client('ls', '-l', token=token).stdout.split()[-1], 'two', grant)

    def test_the_objects_of_all_buckets(self):
        self.daemon.client('mb', 'empty', 'one', 'two')
        for name in ('one/a', 'two/a', 'two/b/c'):
            self.daemon.client('put', self.file, name)
        for words in (['-r'], ['-lr'], ['-rl'], ['-r', '--long']):
            names = [line.split()[2] for line in self.daemon.client('ls', *words).stdout.splitlines()]
            self.assertEqual(names, ['one/a', 'two/a', 'two/b/c'], words)
        told = [json.loads(line) for line in self.daemon.client('ls', '-r', '--json').stdout.splitlines()]
        self.assertEqual([(line['bucket'], line['key']) for line in told], [('one', 'a'), ('two', 'a'), ('two', 'b/c')])
        self.assertEqual(len(self.daemon.client('ls', '-r', '--limit', '2').stdout.splitlines()), 2)
        listed = self.daemon.client('ls', '-r', 'two').stdout
        self.assertEqual([line.split()[2] for line in listed.splitlines()], ['a', 'b/c'])
        self.assertEqual(self.daemon.client('ls', '-lr', 'two').stdout, listed)
        token = self.daemon.add_key('--grant', 'two/b/=read')['token']
        self.expect(DENIED, 'listing two: ', 'ls', '-r', token=token)

    def test_a_folder_is_written_with_one_slash(self):
        self.daemon.client('put', '--create-bucket', self.file, 'one/a')
        for folder, path in (('./', './a'), ('.', './a'), (self.daemon.scratch + '//', self.daemon.scratch + '/a'), ('sub/', 'sub/a')):
            os.makedirs(os.path.join(self.daemon.scratch, 'sub'), exist_ok=True)
            self.expect(0, f'got {path}, ', 'get', 'one/a', folder, cwd=self.daemon.scratch)

    def test_a_key_that_may_only_write_removes_what_it_may(self):
        self.daemon.client('put', '--create-bucket', self.file, 'box/mine/a')
        self.daemon.client('put', self.file, 'box/yours')
        token = self.daemon.add_key('--grant', 'box/mine/=write,list')['token']
        self.expect(0, 'removed box/mine/a', 'rm', 'box/mine/a', token=token)
        self.expect(DENIED, 'box/yours', 'rm', 'box/yours', token=token)

    def test_a_folder_is_for_sync(self):
        self.daemon.client('mb', 'box')
        self.expect(USAGE, '`deltabucket sync', 'put', self.daemon.scratch, 'box/folder')
        self.expect(USAGE, '`deltabucket sync', 'cp', self.daemon.scratch, 'box/folder/')
        os.mkdir(os.path.join(self.daemon.scratch, 'local'))
        self.expect(USAGE, 'write ./local to name the folder', 'sync', 'local', 'box/folder', cwd=self.daemon.scratch)
        self.expect(USAGE, 'one of the two must be a path', 'sync', 'nothing', 'box/folder', cwd=self.daemon.scratch)


if __name__ == '__main__':
    unittest.main()
