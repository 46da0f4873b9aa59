"""`deltabucket sync` and `deltabucket keys`: folders like prefixes and back, keys over the network."""
import json
import os
import shutil
import unittest

from tests.support.daemon import ROOT_TOKEN, Daemon

THREADS_MEET = False

USAGE, DENIED, NOT_FOUND, MALFORMED = 2, 4, 5, 13


class SyncCommand(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.daemon.start()
        self.folder = os.path.join(self.daemon.scratch, 'folder')
        for name, body in (('a', b'one'), ('sub/b c', b'two'), ('sub/deep/e\u00e9', b'x' * 300_000), ('empty', b'')):
            self.write(self.folder, name, body)

    def tearDown(self):
        self.daemon.__exit__()

    def write(self, folder, name, body):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as file:
            file.write(body)

    def sync(self, *arguments, check=True, **more):
        done = self.daemon.client('sync', '--json', *arguments, check=check, **more)
        return [json.loads(line) for line in done.stdout.splitlines()] if check else done

    def tree(self, folder):
        found = {}
        for path, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(path, name), 'rb') as file:
                    found[os.path.relpath(os.path.join(path, name), folder)] = file.read()
        return found

    def test_there_and_back_sends_what_differs(self):
        first = self.sync(self.folder, 'box/some/prefix', '--create-bucket')
        self.assertEqual((first[-1]['event'], first[-1]['sent'], first[-1]['files']), ('synced', 4, 4))
        again = self.sync(self.folder, 'box/some/prefix/')
        self.assertEqual((again[-1]['sent'], again[-1]['bytes']), (0, 0))
        self.write(self.folder, 'a', b'six')  # the same size: the digest tells
        self.write(self.folder, 'new', b'new')
        changed = self.sync(self.folder, 'box/some/prefix')
        self.assertEqual(sorted(line['name'] for line in changed[:-1]), ['a', 'new'])
        back = os.path.join(self.daemon.scratch, 'back')
        self.write(back, 'a', b'one')
        self.write(back, 'mine', b'stays')
        came = self.sync('box/some/prefix', back)
        self.assertEqual(came[-1]['sent'], 5)
        self.assertEqual(self.tree(back), {**self.tree(self.folder), 'mine': b'stays'})
        self.assertEqual(self.sync('box/some/prefix', back)[-1]['sent'], 0)

    def test_the_last_line_says_what_went(self):
        said = self.daemon.client('sync', self.folder, 'box', '--create-bucket').stdout.splitlines()[-1]
        self.assertRegex(said, r'^4 files, 4 sent \(300\.0 kB; [\d.]+ k?B over the network\), 0 removed$')
        said = self.daemon.client('sync', self.folder, 'box').stdout.splitlines()[-1]
        self.assertEqual(said, '4 files, nothing to send, 0 removed')
        back = os.path.join(self.daemon.scratch, 'back')
        said = self.daemon.client('sync', 'box', back).stdout.splitlines()[-1]
        self.assertRegex(said, r'^4 files, 4 received \(300\.0 kB; [\d.]+ k?B over the network\)')

    def test_links_to_files_are_followed_on_the_way_up(self):
        """As in the folders that Hub clients keep: snapshots/REVISION/NAME leads to blobs/HASH."""
        cache = os.path.join(self.daemon.scratch, 'cache')
        large = os.urandom(300_000)
        for name, body in (('blobs/1', large), ('blobs/2', b'{}')):
            self.write(cache, name, body)
        snapshot = os.path.join(cache, 'snapshots', 'main')
        os.makedirs(os.path.join(snapshot, 'sub'))
        os.symlink('../../blobs/1', os.path.join(snapshot, 'model.safetensors'))
        os.symlink('../../../blobs/2', os.path.join(snapshot, 'sub', 'config.json'))
        wanted = {'model.safetensors': large, 'sub/config.json': b'{}'}
        self.assertEqual(self.sync(snapshot, 'box/m', '--create-bucket')[-1]['sent'], 2)
        self.assertEqual(self.sync(snapshot, 'box/m')[-1]['sent'], 0)
        self.assertEqual(self.sync(snapshot, 'box/plain', '--plain')[-1]['sent'], 2)
        self.daemon.client('put', os.path.join(snapshot, 'model.safetensors'), 'box/m/again')
        back = os.path.join(self.daemon.scratch, 'back')
        self.sync('box/m', back)
        self.assertEqual(self.tree(back), {**wanted, 'again': large})
        for link, to, status, why in (('loop', '.', MALFORMED, 'is a link to a folder; only links to files are followed'),
                                      ('none', 'nowhere', NOT_FOUND, 'is a link that leads nowhere')):
            os.symlink(to, os.path.join(snapshot, 'sub', link))
            done = self.sync(snapshot, 'box/m', '--delete', check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(f'{snapshot}/sub/{link} {why}', done.stderr)
            os.remove(os.path.join(snapshot, 'sub', link))
        self.assertEqual(self.sync(snapshot, 'box/m', '--delete')[-1]['removed'], 1)

    def test_delete_and_dry_run(self):
        self.sync(self.folder, 'box', '--create-bucket')
        os.remove(os.path.join(self.folder, 'a'))
        dry = self.sync(self.folder, 'box', '--delete', '--dry-run')
        self.assertEqual([(line['event'], line['name']) for line in dry], [('would_remove', 'a')])
        self.assertEqual(self.daemon.request('GET', '/box/a').status, 200)
        self.assertEqual(self.sync(self.folder, 'box')[-1]['removed'], 0)
        self.assertEqual(self.sync(self.folder, 'box', '--delete')[-1]['removed'], 1)
        self.assertEqual(self.daemon.request('GET', '/box/a').status, 404)
        self.daemon.request('DELETE', '/box/empty')
        self.assertEqual(self.sync('box', self.folder, '--delete')[-1]['removed'], 1)
        self.assertNotIn('empty', self.tree(self.folder))

    def test_more_names_than_one_request_takes_are_removed(self):
        names = [f'many/{number}' for number in range(1_003)]
        for name in names:
            self.write(self.folder, name, b'')
        self.sync(self.folder, 'box', '--create-bucket')
        shutil.rmtree(os.path.join(self.folder, 'many'))
        removed = self.sync(self.folder, 'box', '--delete')[:-1]
        self.assertEqual({line['event'] for line in removed}, {'removed'})
        self.assertEqual(sorted(line['name'] for line in removed), sorted(names))
        self.assertEqual(self.daemon.request('GET', '/box/many/0').status, 404)
        self.assertEqual(self.daemon.request('GET', '/box/many/1002').status, 404)

    def test_a_page_may_begin_at_a_long_key(self):
        """Its token has twice the bytes of the key, and a link to it three times."""
        prefix = '/'.join(['\u00fc' * 120] * 3)
        for number in range(1001):
            self.write(self.folder, f'{prefix}/{number}', b'')
        self.sync(self.folder, 'box', '--create-bucket')
        listed = self.daemon.client('ls', '-r', 'box', '--json').stdout.splitlines()
        self.assertEqual(len(listed), 1005)
        back = os.path.join(self.daemon.scratch, 'back')
        self.sync('box', back)
        self.assertEqual(self.tree(back), self.tree(self.folder))
        shutil.rmtree(os.path.join(self.folder, *prefix.split('/')))
        self.assertEqual(self.sync(self.folder, 'box', '--delete')[-1]['removed'], 1001)

    def test_what_looks_like_nothing_deletes_nothing(self):
        self.sync(self.folder, 'box', '--create-bucket')
        before = self.tree(self.folder)
        self.assertEqual(self.sync('box/mistyped', self.folder, '--delete', check=False).returncode, NOT_FOUND)
        self.assertEqual(self.tree(self.folder), before)
        nothing = os.path.join(self.daemon.scratch, 'nothing')
        os.makedirs(nothing)
        self.assertEqual(self.sync(nothing, 'box', '--delete', check=False).returncode, NOT_FOUND)
        self.assertEqual(self.sync('box', os.path.join(self.daemon.scratch, 'other'))[-1]['sent'], 4)

    def test_a_key_never_leads_out_of_the_folder(self):
        self.daemon.request('PUT', '/box')
        self.daemon.request('PUT', '/box/fine', b'fine')
        self.daemon.request('PUT', '/box/a/%2E%2E/%2E%2E/out', b'bad')
        into = os.path.join(self.daemon.scratch, 'into')
        done = self.sync('box', into, check=False)
        self.assertEqual(done.returncode, MALFORMED, done.stderr)
        self.assertFalse(os.path.exists(into))
        for arguments in (['box', 'box/other'], [self.folder, self.folder], [self.folder]):
            self.assertEqual(self.sync(*arguments, check=False).returncode, USAGE, arguments)

    def test_keys(self):
        made = json.loads(self.daemon.client('keys', 'add', '--json', '--name', 'fleet', '--grant', 'box/run/=read').stdout)
        listed = [json.loads(line) for line in self.daemon.client('keys', '--json').stdout.splitlines()]
        self.assertIn((made['key_id'], 'fleet', ['box/run/=read']), [(key['key_id'], key['name'], key['grants']) for key in listed])
        self.assertEqual(self.daemon.client('ls', 'nope', token=made['token'], check=False).returncode, DENIED)
        self.assertEqual(self.daemon.client('keys', token=made['token'], check=False).returncode, DENIED)
        self.daemon.client('keys', 'rm', made['key_id'])
        self.assertEqual(self.daemon.request('GET', '/box?list-type=2', token=made['token']).status, 403)
        self.assertEqual(self.daemon.client('keys', 'rm', made['key_id'], check=False).returncode, NOT_FOUND)
        self.assertEqual(self.daemon.client('keys', 'nonsense', check=False, token=ROOT_TOKEN).returncode, USAGE)


if __name__ == '__main__':
    unittest.main()
