"""scrub finds bytes that the disk has lost, tells what they touch, and heals what the store has once more."""
import glob
import json
import os
import random
import subprocess
import threading
import time
import unittest

from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import CLIENT, REPLY_SECONDS, Daemon
from tests.support.pack_walk import parts_of


def pack_files(daemon):
    return sorted(glob.glob(os.path.join(daemon.folder, 'packs', '*', '*.pack')))


def flip(path, offset):
    with open(path, 'r+b') as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


def records_of(path):
    with open(path, 'rb') as file:
        return [part for part in parts_of(file.read()) if part.kind == 'record']


def flip_record(path, number=0):
    """One bit in the payload of a record."""
    flip(path, records_of(path)[number].start + 8 + 5)


def find_pack(daemon, content):
    """The pack that has these bytes as they are."""
    found = [path for path in pack_files(daemon) if content in open(path, 'rb').read()]
    assert len(found) == 1, found
    return found[0]


def scrub(daemon, **request):
    answer = daemon.request('POST', '/-/scrub', json.dumps(request).encode())
    assert answer.status == 200, answer.body
    return answer.json()


def damage(daemon):
    return daemon.request('GET', '/-/damage').json()


def metric(daemon, name):
    for line in daemon.request('GET', '/-/metrics').body.decode().splitlines():
        if line.startswith(f'deltabucket_{name} '):
            return int(line.split()[1])
    raise KeyError(name)


class Scrub(unittest.TestCase):
    def setUp(self):
        self.source = random.Random(self.id())
        self.daemon = Daemon(tls=False)
        self.addCleanup(self.daemon.__exit__)
        self.daemon.start()
        self.daemon.request('PUT', '/bkt')

    def put(self, key, body):
        self.assertEqual(self.daemon.request('PUT', f'/bkt/{key}', body).status, 200)

    def expect(self, key, body):
        got = self.daemon.request('GET', f'/bkt/{key}')
        self.assertEqual((got.status, got.body == body), (200, True), key)

    def await_no_damage(self):
        limit = time.monotonic() + REPLY_SECONDS
        while damage(self.daemon)['chunks'] > 0:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)

    def command(self, *arguments):
        return subprocess.run([CLIENT, *arguments, '--endpoint', self.daemon.endpoint, '--token',
                               self.daemon.environment['DELTABUCKET_ROOT_TOKEN']], capture_output=True, text=True)

    def test_damage_is_found_told_and_healed_by_an_upload(self):
        body = self.source.randbytes(3_000_000)
        self.put('large', body)
        self.put('other', self.source.randbytes(2_000_000))
        sound = damage(self.daemon)
        self.assertEqual((sound['chunks'], sound['packs'], sound['keys'], sound['steps']), (0, [], [], []))
        self.assertEqual(self.command('damage').returncode, 0)
        path = find_pack(self.daemon, body[100_000:100_032])
        flip_record(path, 2)
        found = scrub(self.daemon)
        self.assertEqual((found['packs'], found['chunks_damaged'], found['chunks_healed'], found['damaged_now']), (2, 1, 0, 1))
        self.assertGreater(found['bytes'], 5_000_000)
        told = damage(self.daemon)
        self.assertEqual(told['packs'], [{'pack': os.path.basename(path)[:32], 'chunks': [2]}])
        self.assertEqual(told['keys'], [{'bucket': 'bkt', 'key': 'large', 'version': 'null', 'current': True}])
        self.assertEqual((told['keys_in_all'], told['steps']), (1, []))
        self.assertEqual(told['scrub']['last']['chunks_damaged'], 1)
        self.assertGreater(told['scrub']['next'], told['scrub']['last']['ended'])
        self.assertEqual(metric(self.daemon, 'damaged_chunks'), 1)
        for event in ('scrub_begin', 'scrub_end', 'chunk_damaged', 'damaged_key'):
            self.assertIn(event, self.daemon.log())
        shown = self.command('damage')
        self.assertEqual(shown.returncode, 7)
        self.assertIn('key   bkt/large\n', shown.stdout)
        self.put('again', body)
        self.await_no_damage()
        self.expect('large', body)
        self.assertEqual(scrub(self.daemon)['chunks_damaged'], 0)
        self.assertEqual(metric(self.daemon, 'damaged_chunks'), 0)

    def test_a_second_copy_heals_by_itself(self):
        """An upload over damage stores the bytes once more and mends the old ones, so that there are two copies."""
        body = self.source.randbytes(3_000_000)
        self.put('one', body)
        path = pack_files(self.daemon)[0]
        for number in range(len(records_of(path))):
            flip_record(path, number)
        self.assertEqual(scrub(self.daemon)['chunks_healed'], 0)
        self.put('two', body)
        self.await_no_damage()
        copies = pack_files(self.daemon)
        self.assertEqual(len(copies), 2)
        flip_record(copies[0], 1)
        flip_record(copies[1], 2)
        found = scrub(self.daemon)
        self.assertEqual((found['chunks_damaged'], found['chunks_healed'], found['damaged_now']), (2, 2, 0))
        self.expect('one', body)
        self.expect('two', body)
        self.assertEqual(scrub(self.daemon)['chunks_damaged'], 0)

    def publish_and_seal(self, checkpoint):
        """Step 0, proven: damage while it is proven would be its verdict."""
        self.daemon.client('publish', '--run', 'bkt/r', '--step', 0, checkpoint)
        self.await_that(lambda: self.daemon.request('GET', '/v1/runs/bkt/r/steps/0').json()['verified'] == 'ok')
        self.daemon.stop()  # seals all packs
        self.daemon.start()

    def test_a_step_is_named(self):
        """Damage in the object of a step is told as the step, and as its key."""
        checkpoints = expand_small(self.daemon.scratch, 1)
        self.publish_and_seal(checkpoints[0])
        for path in pack_files(self.daemon):
            flip_record(path)
        self.assertGreater(scrub(self.daemon)['damaged_now'], 0)
        told = damage(self.daemon)
        self.assertIn({'bucket': 'bkt', 'run': 'r', 'step': 0, 'form': 'step'}, told['steps'])
        self.assertIn('damaged_step', self.daemon.log())
        self.assertIn('step  bkt/r  step 0\n', self.command('damage').stdout)
        for path in pack_files(self.daemon):
            flip_record(path)
        self.assertEqual(scrub(self.daemon)['damaged_now'], 0)
        into = os.path.join(self.daemon.scratch, 'worker')
        self.daemon.client('follow', '--run', 'bkt/r', '--into', into, '--once')
        self.assertEqual(sha256(os.path.join(into, 'current', 'model.safetensors')), sha256(checkpoints[0]))

    def test_a_worker_gives_back_what_the_server_lost(self):
        """The server asks a worker that holds the step, and takes from it only the chunks that it asked for."""
        checkpoints = expand_small(self.daemon.scratch, 1)
        self.publish_and_seal(checkpoints[0])
        with open(checkpoints[0], 'rb') as file:
            weights = file.read()
        token = self.daemon.request('POST', '/-/keys', b'{"grants":["bkt/r/=read"]}').json()['token']
        into = os.path.join(self.daemon.scratch, 'worker')
        damaged = [path for path in pack_files(self.daemon) if len(records_of(path)) > 3][0]
        for number in (0, 2):
            flip_record(damaged, number)
        self.assertEqual(scrub(self.daemon)['damaged_now'], 2)
        wrong = self.report(token, step=7)
        self.assertEqual(wrong.status, 404)  # the run has no such step
        self.assertNotIn('wants', self.report(token).json())  # this worker holds nothing
        wants = self.report(token, step=0).json()['wants']
        self.assertEqual([want['size'] for want in wants], 2 * [len(weights)])
        self.refuses_what_it_did_not_ask_for(token, wants[0], weights)
        for path in pack_files(self.daemon):  # let the worker fetch the step before the disk loses it
            if path == damaged:
                for number in (0, 2):
                    flip_record(path, number)
        self.assertEqual(scrub(self.daemon)['damaged_now'], 0)
        worker = subprocess.Popen([CLIENT, 'follow', '--run', 'bkt/r', '--into', into, '--endpoint', self.daemon.endpoint, '--token', token],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.await_that(lambda: os.path.exists(os.path.join(into, 'current', 'model.safetensors')))
            self.await_that(lambda: any(one['state'] == 'ready' for one in self.daemon.request('GET', '/v1/runs/bkt/r/replicas').json()['replicas']))
            for number in (0, 2):
                flip_record(damaged, number)
            self.assertEqual(scrub(self.daemon)['damaged_now'], 2)
            worker.terminate()
            worker.wait(REPLY_SECONDS)
            worker = subprocess.Popen(worker.args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.await_no_damage()
        finally:
            worker.terminate()
            worker.wait(REPLY_SECONDS)
        self.assertEqual(metric(self.daemon, 'chunks_mended_total'), 2)
        self.assertEqual(scrub(self.daemon)['chunks_damaged'], 0)
        self.daemon.stop()
        self.daemon.start()
        again = os.path.join(self.daemon.scratch, 'again')
        self.daemon.client('follow', '--run', 'bkt/r', '--into', again, '--once')
        self.assertEqual(sha256(os.path.join(again, 'current', 'model.safetensors')), sha256(checkpoints[0]))

    def report(self, token, **facts):
        return self.daemon.request('PUT', '/v1/runs/bkt/r/replicas/tester', json.dumps({'state': 'idle', **facts}).encode(), token=token)

    def refuses_what_it_did_not_ask_for(self, token, want, weights):
        target = f'/v1/runs/bkt/r/chunks/{want["chunk"]}'
        right = weights[want['offset']:want['offset'] + want['length']]
        self.assertEqual(self.daemon.request('PUT', target, right[:-1] + b'x', token=token).status, 422)
        self.assertEqual(self.daemon.request('PUT', target, right[1:], token=token).status, 422)
        self.assertEqual(self.daemon.request('PUT', f'/v1/runs/bkt/r/chunks/{64 * "0"}', right, token=token).status, 404)
        self.assertEqual(self.daemon.request('PUT', '/v1/runs/bkt/r/chunks/short', right, token=token).status, 400)
        self.assertEqual(self.daemon.request('PUT', target, bytes(131_073), token=token).status, 400)
        other = self.daemon.request('POST', '/-/keys', b'{"grants":["other=read,write,list"]}').json()['token']
        self.assertEqual(self.daemon.request('PUT', target, right, token=other).status, 403)
        self.assertEqual(damage(self.daemon)['chunks'], 2)

    def await_that(self, condition):
        limit = time.monotonic() + REPLY_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)

    def test_a_round_goes_on_where_a_stop_ended_it(self):
        bodies = [self.source.randbytes(4_000_000) for _ in range(3)]
        for number, body in enumerate(bodies):
            self.put(f'k{number}', body)
        whole = scrub(self.daemon)
        answers = []
        asking = threading.Thread(target=lambda: answers.append(self.daemon.request('POST', '/-/scrub', b'{"rate":2}')))
        asking.start()
        limit = time.monotonic() + REPLY_SECONDS
        while damage(self.daemon)['scrub'].get('round', {}).get('packs', 0) < 1:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)
        self.daemon.stop()
        asking.join()
        self.assertEqual(answers[0].status, 503)
        self.daemon.start()
        begun = damage(self.daemon)['scrub']['round']
        self.assertGreater(begun['bytes'], 3_900_000)
        rest = scrub(self.daemon, resume=True)
        self.assertEqual((rest['packs'], rest['bytes']), (whole['packs'], whole['bytes']))
        self.assertEqual(metric(self.daemon, 'scrub_bytes_total'), whole['bytes'] - begun['bytes'])
        self.assertNotIn('round', damage(self.daemon)['scrub'])

    def test_gc_works_while_scrub_reads(self):
        keep = self.source.randbytes(3_000_000)
        self.put('keep', keep)
        for number in range(4):
            self.put(f'gone{number}', self.source.randbytes(2_000_000))
        answers = []
        asking = threading.Thread(target=lambda: answers.append(self.daemon.request('POST', '/-/scrub', b'{"rate":3}')))
        asking.start()
        for number in range(4):
            self.assertEqual(self.daemon.request('DELETE', f'/bkt/gone{number}').status, 204)
        did = self.daemon.request('POST', '/-/gc').json()
        self.assertEqual((did['packs_deleted'], did['packs_waiting']), (4, 0))
        asking.join()
        self.assertEqual((answers[0].status, answers[0].json()['chunks_damaged'], answers[0].json()['packs_failed']), (200, 0, 0))
        self.expect('keep', keep)

    def test_the_command_works_beside_a_server_and_without_one(self):
        body = self.source.randbytes(3_000_000)
        self.put('large', body)
        done = self.daemon.admin('scrub')
        self.assertIn('0 chunks damaged, 0 healed, 0 damaged now', done.stdout)
        self.daemon.stop()
        path = find_pack(self.daemon, body[100_000:100_032])
        flip_record(path)
        done = self.daemon.admin('scrub', '--json', check=False)
        self.assertEqual((done.returncode, json.loads(done.stdout)['damaged_now']), (4, 1))
        self.daemon.start()
        done = self.daemon.admin('scrub', check=False)
        self.assertEqual(done.returncode, 4)
        self.assertIn('1 chunks damaged, 0 healed, 1 damaged now', done.stdout)
        self.put('again', body)
        self.await_no_damage()
        self.assertEqual(self.daemon.admin('scrub').returncode, 0)
        for words in (['--rate', 'fast'], ['--rate', '65537'], ['extra']):
            self.assertEqual(self.daemon.admin('scrub', *words, check=False).returncode, 2, words)
        for body in (b'{"rate":"x"}', b'{"resume":1}', b'[]'):
            self.assertEqual(self.daemon.request('POST', '/-/scrub', body).status, 400, body)

    def test_other_keys_are_refused(self):
        made = self.daemon.request('POST', '/-/keys', b'{"grants":["metrics"]}').json()
        for method, target in (('GET', '/-/damage'), ('POST', '/-/scrub')):
            self.assertEqual(self.daemon.request(method, target, token=made['token']).status, 403, target)
            self.assertEqual(self.daemon.request(method, target, token=None).status, 401, target)


if __name__ == '__main__':
    unittest.main()
