"""What `keys add` makes of grants: the Hub's spelling, what it warns of, and the right to read metrics and nothing else."""
import json
import os
import unittest

from tests.support.daemon import Daemon

THREADS_MEET = False
USAGE = 2


class Grants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        for bucket in ('weights', 'lab--mine'):
            cls.daemon.request('PUT', f'/{bucket}')
        cls.daemon.request('PUT', '/weights/run/a', b'content')

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def add(self, *grants, namespace='main'):
        words = [word for grant in grants for word in ('--grant', grant)]
        done = self.daemon.client('keys', 'add', '--json', '--namespace', namespace, *words)
        made = json.loads(done.stdout)
        for warning in made['warnings']:
            self.assertIn(f'deltabucket: {warning}\n', done.stderr)
        return made

    def test_a_plain_grant_is_silent(self):
        made = self.add('weights=read', 'weights/run/=write')
        self.assertEqual((made['grants'], made['warnings']), (['weights=read', 'weights/run/=write'], []))

    def test_the_spelling_of_the_hub_means_the_bucket(self):
        made = self.add('main/weights=read', 'main/weights/run/=list')
        self.assertEqual(made['grants'], ['weights=read', 'weights/run/=list'])
        self.assertIn('main/weights is read as the bucket weights', made['warnings'][0])
        self.assertEqual(self.daemon.request('GET', '/weights/run/a', token=made['token']).status, 200)
        self.assertEqual(self.add('lab/mine=read', namespace='lab')['grants'], ['lab--mine=read'])

    def test_a_bucket_that_cannot_be_is_refused(self):
        for grant in ('fi les=read', '.files=read', f'{"x" * 97}=read', 'Files/..=read,', 'v1=read'):
            done = self.daemon.client('keys', 'add', '--grant', grant, check=False)
            self.assertEqual((done.returncode, done.stdout), (USAGE, ''), (grant, done.stderr))
        reply = self.daemon.request('POST', '/-/keys', json.dumps({'grants': ['weights=read', 'fi les=read']}).encode())
        self.assertEqual((reply.status, reply.json()['error']['code']), (400, 'invalid'))
        # names of buckets that only clients of the Hub make, and a namespace that a bucket could not be called in S3
        self.assertEqual(self.add('My_Model=read', 'lab--My_Model=read', 'x=read')['grants'], ['My_Model=read', 'lab--My_Model=read', 'x=read'])
        self.assertEqual(self.add('me/mine/=read', namespace='me')['grants'], ['me--mine=read'])
        self.assertEqual(self.add('main/fi les=read')['grants'], ['main/fi les=read'])  # a key may have any name

    def test_only_wrong_words_are_wrong_usage(self):
        self.assertEqual(self.daemon.admin('keys', 'revoke', 'nobody', check=False).returncode, 1)
        self.assertEqual(self.daemon.admin('keys', 'add', '--name', 'x' * 256, check=False).returncode, USAGE)

    def test_a_bucket_of_the_namespaces_name_is_meant_itself(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/main')
            made = json.loads(daemon.admin('keys', 'add', '--json', '--grant', 'main/weights/=read').stdout)
            self.assertEqual((made['grants'], made['warnings']), (['main/weights/=read'], []))

    def test_a_missing_bucket_and_a_missing_slash_are_told(self):
        made = self.add('wieghts=read', 'weights/run=read')
        self.assertEqual(made['grants'], ['wieghts=read', 'weights/run=read'])
        self.assertIn('There is no bucket wieghts.', made['warnings'][0])
        self.assertIn('weights/run covers all keys with this beginning, also run2.', made['warnings'][1])

    def test_the_server_program_says_the_same_with_and_without_a_server(self):
        for running in (True, False):
            with Daemon(tls=False) as daemon:
                if not running:
                    daemon.stop()
                done = daemon.admin('keys', 'add', '--grant', 'main/weights/run=read')
                self.assertIn('deltabucketd: main/weights is read as the bucket weights', done.stderr)
                self.assertIn('There is no bucket weights.', done.stderr)
                self.assertIn('With a slash at its end', done.stderr)
                self.assertIn('grant      weights/run=read', done.stdout)
                self.assertIn('(DELTABUCKET_TOKEN, HF_TOKEN)', done.stdout)

    def test_a_metrics_key_reads_metrics_and_nothing_else(self):
        made = self.add('metrics')
        self.assertEqual((made['grants'], made['warnings']), (['metrics'], []))
        token = made['token']
        self.assertIn(b'deltabucket_', self.daemon.request('GET', '/-/metrics', token=token).body)
        for method, target in (('GET', '/-/keys'), ('POST', '/-/gc'), ('POST', '/-/scrub'), ('GET', '/-/damage'), ('GET', '/weights/run/a'), ('GET', '/weights?list-type=2'), ('PUT', '/new'),
                               ('GET', '/-/buckets/weights'), ('PUT', '/-'), ('GET', '/v1/runs/weights')):
            self.assertIn(self.daemon.request(method, target, token=token).status, (400, 403, 404), (method, target))
        self.assertNotIn(b'weights', self.daemon.request('GET', '/', token=token).body)
        other = self.add('weights=read,write,list,admin')
        self.assertEqual(self.daemon.request('GET', '/-/metrics', token=other['token']).status, 403)
        self.assertEqual(self.daemon.request('GET', '/-/metrics', token=None).status, 401)
        self.assertIn('metrics', [grant for line in self.daemon.client('keys', '--json').stdout.splitlines()
                                  for grant in json.loads(line)['grants']])
        for wrong in ('-/metrics=read', '-=read', 'metric'):
            done = self.daemon.admin('keys', 'add', '--grant', wrong, check=False)
            self.assertEqual(done.returncode, USAGE, done.stderr)

    def test_there_are_no_wildcards(self):
        """They were taken for a bucket and a prefix of that name, which opened nothing."""
        for running in (True, False):
            with Daemon(tls=False) as daemon:
                if not running:
                    daemon.stop()
                for grant, said in (
                    ('*=read', "no wildcards: '*' must be the name of one bucket"),
                    ('files/*=read', "instead of 'files/*' write files/=read"),
                    ('fi les=read', "The grant 'fi les=read' names a bucket that cannot be: The bucket name 'fi les' must have only letters,"),
                    ('api/x=read', "The bucket name 'api' is reserved."),
                    ('files=reed', "names 'reed', which is not one of read, write, list and admin"),
                ):
                    done = daemon.admin('keys', 'add', '--grant', grant, check=False)
                    self.assertEqual((done.returncode, done.stdout), (USAGE, ''), done.stderr)
                    self.assertIn(said, done.stderr)

    def test_a_wrong_grant_makes_no_store(self):
        with Daemon(tls=False) as daemon:
            daemon.stop()
            empty = os.path.join(daemon.scratch, 'empty')
            os.mkdir(empty)
            done = daemon.command('keys', 'add', '--grant', 'fi les=read', '--data', empty)
            self.assertEqual((done.returncode, os.listdir(empty)), (USAGE, []), done.stderr)


if __name__ == '__main__':
    unittest.main()
