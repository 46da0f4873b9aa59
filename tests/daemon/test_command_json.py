"""--json: each command of both programs prints objects, one a line, with the members that docs/COMMANDS.md and docs/OPERATIONS.md name; a failure is the
last of them. CLIENT and SERVER have a row for each call, in the order in which they are run; a command without a row fails the test."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from tests.support.daemon import CLIENT, ROOT_TOKEN, SERVER, SOURCE, Daemon, environment_of_programs
from tests.support.runs import Run, shard, weights

THREADS_MEET = False
NOBODY = 'http://127.0.0.1:1'  # refuses connections
FAILED, USAGE, UNREACHABLE, NOT_FOUND = 1, 2, 3, 5

# words, then what the object with the most members has: an event, and members. {0} is the folder of the test.
CLIENT_CALLS = [
    ('publish --run models/policy --create-bucket {0}/0.safetensors', 'published', 'run step label digest already checkpoint_bytes delta_bytes anchor_bytes anchor_due elements '
     'changed_elements diff_ms upload_ms total_ms'),
    ('publish --run models/policy {0}/1.safetensors', 'published', 'step'),
    ('follow --run models/policy --into {0}/into --once', 'step', 'run step label digest bytes links from_anchor fetch_ms apply_ms lag_ms'),
    ('follow --run models/policy --into {0}/into --once', 'held', 'run step label digest'),
    ('diff {0}/0.safetensors {0}/1.safetensors {0}/delta', 'delta', 'out format base_digest result_digest elements changed_elements tensors changed_tensors payload_bytes delta_bytes '
     'full_bytes'),
    ('apply {0}/0.safetensors {0}/delta {0}/applied', 'applied', 'out digest changed_elements changed_tensors'),
    ('diff {0}/1.safetensors {0}/2.safetensors {0}/delta2', 'delta', 'out'),
    ('fold --base {0}/0.safetensors {0}/delta {0}/delta2 {0}/folded', 'delta', 'out format delta_bytes'),
    ('transcode --base {0}/0.safetensors --to slime-xor {0}/delta {0}/slime', 'delta', 'out format delta_bytes'),
    ('inspect {0}/0.safetensors', 'checkpoint', 'path folder files tensors bytes digest schema_digest'),
    ('inspect --tensors {0}/0.safetensors', 'tensor', 'name dtype shape bytes digest'),
    ('inspect --stats {0}/delta', 'delta_stats', 'payload_bytes elements density changed bits_per_change'),
    ('put {0}/0.safetensors models/x/key', 'put', 'bucket key bytes sent'),
    ('get models/x/key {0}/got', 'got', 'path bytes received'),
    ('cp models/x/key models/x/key2', 'copied', 'bucket key bytes'),
    ('sync {0}/folder models/s', 'uploaded', 'name bytes'),
    ('sync {0}/folder models/s', 'synced', 'files sent bytes sent_bytes removed refused'),
    ('sync models/s {0}/back --dry-run', 'would_download', 'name bytes'),
    ('ls', None, 'bucket created'),
    ('ls -l', None, 'bucket created objects bytes'),
    ('ls models', None, 'bucket prefix'),
    ('ls -r models/x/', None, 'bucket key bytes modified etag'),
    ('rm -r models/s --dry-run', 'would_remove', 'bucket key'),
    ('rm models/x/key2', 'removed', 'bucket key'),
    ('mb other', 'bucket_made', 'bucket'),
    ('rb other', 'bucket_removed', 'bucket'),
    ('runs', None, 'bucket run epoch head head_digest steps bytes keep_steps created'),
    ('runs add models/second', 'run_added', 'run'),
    ('runs settings models/second', None, 'keep_steps lease_s verify'),
    ('runs settings models/second keep_steps=3', None, 'keep_steps'),
    ('runs rm models/second', 'run_removed', 'run'),
    ('steps models/policy', None, 'step label digest epoch collected verified created forms'),
    ('replicas models/policy', None, 'id state step wanted since updated expired lease_s head staleness'),
    ('watch models/policy --once', 'run', 'run epoch head created verified full_bytes steps bytes anchor_due'),
    ('watch models/policy --once', 'fleet', 'run states expired without_step oldest oldest_report_s lag_steps lag_seconds'),
    ('watch models/policy --once', 'worker', 'run worker state expired step behind_steps behind_seconds updated'),
    ('fleet rollback models/policy 0', 'rolled_back', 'run step head'),
    ('status', 'server', 'endpoint ready disk_bytes disk_free_bytes warnings'),
    ('status models/policy', 'run', 'bucket run head verified anchor_due steps bytes full_bytes saved_bytes replicas replicas_in_error replicas_without_step replicas_expired states oldest_report_s rollback'),
    ('fleet forward models/policy', 'forwarded', 'run head'),
    ('pins models/policy add best 1', None, 'name step created expires'),
    ('pins models/policy', None, 'name step created expires'),
    ('pins models/policy rm best', 'unpinned', 'name'),
    ('doctor models/policy', 'check', 'name state message'),
    ('doctor', 'checked', 'ok warnings problems'),
    ('damage', None, 'chunks packs keys steps parts scrub'),
    ('keys add --name workers --grant models/policy/=read', None, 'key_id secret token namespace grants warnings'),
    ('keys', None, 'key_id name namespace root created grants'),
    ('keys rm {1}', 'revoked', 'key_id'),
    ('version', None, 'version'),
    ('login {2} --ca {3}', 'logged_in', 'endpoint namespace profile config'),
    ('logout', 'logged_out', 'profile'),
]

# Those that need a stopped server come last.
SERVER_CALLS = [
    ('keys add --name one', 'key_id secret token namespace grants'),
    ('keys list', 'keys'),
    ('keys revoke {1}', 'revoked'),
    ('gc --dry-run', 'packs bytes packs_deleted packs_compacted packs_waiting bytes_freed bytes_registered bytes_promised rows_damaged sweeps_failed'),
    ('scrub', 'packs bytes chunks_damaged chunks_healed packs_mended packs_failed damaged_now'),
    ('fsck --online', 'findings checked result'),
    ('backup --to {0}/backup', 'moment change new files bytes pieces_shipped bytes_shipped pieces_missing files_lacking lacks'),
    ('backup --to {0}/backup --verify', 'moments pieces bytes put_again lost moments_touched damaged'),
    ('restore --from {0}/backup --list', 'moments'),
    ('console', 'url expires'),
    ('set-aside', 'files bytes'),
    (None, None),
    ('set-aside drop left', 'dropped'),
    ('rebuild --dry-run', 'snapshot records change buckets objects steps packs packs_missing gap'),
    ('restore --from {0}/backup --data {0}/restored', 'moment was_done files bytes bytes_fetched files_lacking lacks buckets objects steps'),
]


def lines(text):
    """The objects of an output; all of it is objects, one a line."""
    found = [json.loads(line) for line in text.splitlines()]
    assert all(isinstance(one, dict) for one in found), text
    return found


def commands_of(program):
    """The names that `help` lists."""
    told = subprocess.run([program, 'help'], capture_output=True, text=True, env=environment_of_programs()).stdout
    return set(re.findall(r'^  (?:deltabucketd )?([a-z][a-z-]*) {2}', told.split('exit codes')[0].split('settings:')[0], re.M)) - {'help'}


class Json(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        os.mkdir(os.path.join(self.folder, 'folder'))
        with open(os.path.join(self.folder, 'folder', 'a'), 'w') as file:
            file.write('some text')
        for step in range(3):
            with open(os.path.join(self.folder, f'{step}.safetensors'), 'wb') as file:
                file.write(shard(weights(step)))

    def check(self, words, said, event, members):
        """The objects that were printed; one of them has the event and the members."""
        objects = lines(said)
        fit = [one for one in objects if one.get('event') == event and set(members.split()) <= set(one)]
        self.assertTrue(fit, (words, event, members, said))
        return fit

    def test_every_command_of_the_client(self):
        key = None
        with Daemon() as daemon:
            for words, event, members in CLIENT_CALLS:
                if words == 'replicas models/policy':
                    daemon.request('PUT', '/v1/runs/models/policy/replicas/node', json.dumps({'state': 'ready', 'step': 1}))
                given = [word.format(self.folder, key, daemon.endpoint, daemon.ca) for word in words.split()]
                fit = self.check(words, daemon.client(*given, '--json', input=ROOT_TOKEN).stdout, event, members)
                key = fit[0].get('key_id', key) if words.startswith('keys add') else key
        self.assertEqual(commands_of(CLIENT) - {words.split()[0] for words, _, _ in CLIENT_CALLS}, set())

    def test_every_command_of_the_server(self):
        key = None
        with open(os.path.join(SOURCE, 'server', 'commands', 'main.c')) as file:
            rows = re.search(r'\bcommands\[\] = (.*?)\};\n', file.read(), re.S)[1]
        commands = set(re.findall(r'\{"([\w-]+)"', rows)) - {'help', 'version'}
        with Daemon() as daemon:
            daemon.request('PUT', '/models')
            daemon.request('PUT', '/models/key', b'some bytes')
            for words, members in SERVER_CALLS:
                if words is None:
                    daemon.stop()
                    os.makedirs(os.path.join(daemon.folder, 'set-aside'), exist_ok=True)
                    open(os.path.join(daemon.folder, 'set-aside', 'left'), 'w').close()
                    continue
                given = [word.format(self.folder, key) for word in words.split()]
                if given[0] not in commands:
                    continue
                done = (daemon.command if '--data' in given else daemon.admin)(*given, '--json')
                self.assertIn(done.returncode, (0, 1), (words, done.stderr))
                fit = self.check(words, done.stdout, None, members)
                key = fit[0].get('key_id', key)
        self.assertEqual(json.loads(subprocess.run([SERVER, 'version', '--json'], capture_output=True).stdout).keys(), {'version'})
        self.assertEqual(commands - {words.split()[0] for words, _ in SERVER_CALLS if words}, set())

    def run_client(self, *words, **environment):
        return subprocess.run([CLIENT, *words], env={**environment_of_programs(), 'HOME': self.folder, **environment}, capture_output=True, text=True,
                              timeout=60, input='')

    def expect_failure(self, done, status, code):
        """The last line of stdout says it to programs, stderr to people."""
        self.assertEqual(done.returncode, status, (done.args, done.stdout, done.stderr))
        error = lines(done.stdout)[-1]['error']
        self.assertEqual((error['code'], done.stderr != ''), (code, True), done.args)
        self.assertIn(error['message'], done.stderr)

    def test_a_command_line_that_is_wrong(self):
        for command in sorted(commands_of(CLIENT)):
            for words in (['--nonsense', '--json'], ['--json', '--nonsense'], ['--json', *'abcdefgh'] if command not in ('rm', 'mb', 'rb', 'fold') else ['--json']):
                done = self.run_client(command, *words, DELTABUCKET_ENDPOINT=NOBODY)
                if done.returncode != UNREACHABLE:
                    self.expect_failure(done, USAGE, 'invalid')
        for words in (['nonsense', '--json'], ['--json'], ['--json', '--nonsense', 'ls'], ['help', 'nonsense', '--json']):
            self.expect_failure(self.run_client(*words), USAGE, 'invalid')
        self.assertEqual(self.run_client('ls', '--nonsense', '--', '--json').stdout, '')

    def test_a_server_that_is_away(self):
        calls = {words.split()[0]: words for words, _, _ in reversed(CLIENT_CALLS)}
        for command in sorted(commands_of(CLIENT) - {'diff', 'apply', 'fold', 'transcode', 'inspect', 'version', 'login', 'logout', 'doctor', 'follow'}):
            words = calls[command].format(self.folder, 'KEY').split()
            self.expect_failure(self.run_client(*words, '--json', '--retries', '0', DELTABUCKET_ENDPOINT=NOBODY), UNREACHABLE, 'upstream')

    def test_each_thing_that_failed_has_a_line(self):
        with Daemon() as daemon:
            done = daemon.client('rb', '--json', 'first', 'second', check=False)
        self.assertEqual([line.get('event') for line in lines(done.stdout)], ['failed', 'failed', None])
        self.assertEqual({line['code'] for line in lines(done.stdout)[:2]}, {'no_bucket'})
        self.expect_failure(done, NOT_FOUND, 'no_bucket')

    def test_what_lists_the_names_that_there_are(self):
        with Daemon() as daemon:
            Run(daemon, 'policy').publish_all(0, 0)
            for words, advice in (('ls none', '`deltabucket ls` lists'), ('steps models/none', '`deltabucket runs` lists'),
                                  ('pins models/policy add best 9', '`deltabucket steps BUCKET/RUN` lists')):
                self.assertIn(advice, daemon.client(*words.split(), check=False).stderr, words)

    def test_a_failure_of_the_server_program(self):
        def run(*words):
            return subprocess.run([SERVER, *words], env=environment_of_programs(), capture_output=True, text=True, timeout=60)
        nothing = os.path.join(self.folder, 'nothing')
        for command in ('gc', 'scrub', 'set-aside', 'rebuild', 'keys list', 'backup --to x', 'restore --list --from ' + nothing):
            self.expect_failure(run(*command.split(), '--json', '--data', nothing), FAILED, lines(run(*command.split(), '--json', '--data', nothing).stdout)[-1]['error']['code'])
        for command in ('gc', 'scrub', 'set-aside', 'rebuild', 'keys list', 'backup', 'restore', 'fsck'):
            for words in (['--nonsense', '--json'], ['--json', '--nonsense']):
                self.expect_failure(run(*command.split(), *words), USAGE, 'invalid')
        unchecked = run('fsck', '--json', '--data', nothing)
        self.assertEqual(lines(unchecked.stdout)[0]['result'], 'unchecked')
        self.assertIn(lines(unchecked.stdout)[0]['error']['message'], unchecked.stderr)


if __name__ == '__main__':
    unittest.main()
