"""Steps that many ranks publish together."""
import json
import threading
import unittest

from tests.support.daemon import Daemon
from tests.support.runs import Run, shard, weights

RANKS = 16
NAMES = [f'layer{i:02}.{kind}' for i in range(RANKS) for kind in ('up', 'down')]


def tensors_of(step, rank=None):
    names = NAMES if rank is None else NAMES[2 * rank:2 * rank + 2]
    return weights(step, names)


class StepParts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def setUp(self):
        type(self).count += 1
        self.run_ = Run(self.daemon, f'run{self.count}')

    def part(self, step, rank, run=None, **changes):
        run = run or self.run_
        name = f'model-{rank + 1:05}-of-{RANKS:05}.safetensors'
        stored = run.put(f'{run.name}/{step}/{name}', shard(tensors_of(step, rank)))
        objects, files = [dict(stored, name=name)], [{'path': name, 'size': stored['size'], 'digest': stored['digest']}]
        if rank == 0:
            index = {'metadata': {}, 'weight_map': {n: f'model-{i // 2 + 1:05}-of-{RANKS:05}.safetensors' for i, n in enumerate(NAMES)}}
            stored = run.put(f'{run.name}/{step}/index', json.dumps(index).encode())
            objects.append(dict(stored, name='model.safetensors.index.json'))
            files.append({'path': 'model.safetensors.index.json', 'size': stored['size'], 'digest': stored['digest']})
        body = {'epoch': run.epoch, 'files': files, 'forms': [{'kind': 'anchor', 'format': 'full', 'objects': objects}],
                'tensors': run.tensor_digests(tensors_of(step, rank)), 'label': 'joined'}
        if step > 0:
            body['base'] = {'step': step - 1, 'digest': run.checkpoint_digest(tensors_of(step - 1))}
        body.update(changes)
        return body

    def put(self, step, rank, body=None, of=RANKS, run=None):
        run = run or self.run_
        return run.call('PUT', f'/steps/{step}/parts/{rank}?of={of}', body or self.part(step, rank, run))

    def refused(self, reply, status, code):
        self.assertEqual((reply.status, reply.code()), (status, code), reply.body)
        return reply.json()['error']['message']

    def put_all(self, step, but=()):
        for rank in range(RANKS):
            if rank not in but:
                self.assertEqual(self.put(step, rank).status, 202)

    def test_ranks_race_and_one_publishes(self):
        for step in range(2):
            bodies = [self.part(step, rank) for rank in range(RANKS)]
            replies = [None] * RANKS

            def put(rank, step=step, bodies=bodies, replies=replies):
                replies[rank] = self.put(step, rank, bodies[rank])

            threads = [threading.Thread(target=put, args=(rank,)) for rank in range(RANKS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(reply.status for reply in replies), [201] + [202] * (RANKS - 1), [r.body for r in replies])
            self.assertEqual(sorted(reply.json()['received'] for reply in replies), list(range(1, RANKS + 1)))
            manifest = self.run_.call('GET', f'/steps/{step}').json()
            self.assertEqual(manifest['digest'], self.run_.checkpoint_digest(tensors_of(step)))
            self.assertEqual(manifest['label'], 'joined')
            self.assertEqual(len(manifest['forms'][0]['objects']), RANKS + 1)
            self.assertEqual(len(manifest['files']), RANKS + 1)
            for rank in (0, RANKS - 1):
                again = self.put(step, rank, bodies[rank])
                self.assertEqual((again.status, again.json()['published']), (200, True))
        self.assertEqual(self.run_.call('GET', '').json()['steps'], 2)
        tensors = self.run_.call('GET', '/steps/1?tensors=true').json()['tensors']
        wanted = self.run_.tensor_digests(tensors_of(1))
        self.assertEqual(tensors, ''.join(wanted[name].split(':')[1] for name in sorted(wanted)))

    def test_repeats_and_changes(self):
        body = self.part(0, 3)
        self.assertEqual(self.put(0, 3, body).status, 202)
        again = self.put(0, 3, body)
        self.assertEqual((again.status, again.json()), (200, {'step': 0, 'part': 3, 'of': RANKS, 'received': 1, 'published': False}))
        self.refused(self.put(0, 3, dict(body, label='other')), 409, 'step_differs')
        self.refused(self.put(0, 4, of=RANKS + 1), 409, 'step_differs')
        self.assertEqual(self.put(0, 4).json()['received'], 2)

    def test_bad_requests(self):
        body = self.part(0, 0)
        for target in ('0', '0?of=', '0?of=0', f'{RANKS}?of={RANKS}', '-1?of=2', 'x?of=2', '0?of=4097'):
            self.assertEqual(self.run_.call('PUT', f'/steps/0/parts/{target}', body).status, 400, target)
        for broken in ('', '[]', '{}', dict(body, tensors=[]), dict(body, tensors={'a': 'md5'}), dict(body, forms=[]), dict(body, epoch='1')):
            self.assertEqual(self.put(0, 0, broken or ' ').status, 400, broken)
        self.refused(self.put(1, 0, self.part(1, 0)), 409, 'head_moved')
        self.refused(self.put(0, 0, dict(body, epoch=9)), 400, 'invalid')
        self.run_.open()
        self.refused(self.put(0, 0, body), 412, 'stale_epoch')
        gone = self.part(0, 0)
        gone['forms'][0]['objects'][0]['key'] = f'{self.run_.name}/nothing'
        self.refused(self.put(0, 0, gone), 404, 'no_key')
        self.assertEqual(self.run_.call('GET', '').json()['head'], None)

    def test_a_base_that_is_not_the_head(self):
        self.put_all(0, but=(5,))
        self.assertEqual(self.put(0, 5).status, 201)
        other = self.part(1, 0, base={'step': 0, 'digest': 'xxh3-128:' + '7' * 32})
        self.refused(self.put(1, 0, other), 409, 'base_missing')

    def whole_refused(self, rank, body, code, word):
        """The last part makes it no whole: all are dropped, and may be put again."""
        self.put_all(0, but=(rank,))
        message = self.refused(self.put(0, rank, body), 422, code)
        self.assertIn(word, message)
        self.assertEqual(self.run_.call('GET', '').json()['head'], None)
        self.assertEqual(self.put(0, rank).json()['received'], 1)
        self.put_all(0, but=(rank, 0))
        self.assertEqual(self.put(0, 0).status, 201)

    def test_a_tensor_that_no_rank_has(self):
        body = self.part(0, 7)
        del body['tensors']['layer07.up']
        self.whole_refused(7, body, 'schema_mismatch', "'layer07.up' is in no part")

    def test_a_tensor_that_two_ranks_have(self):
        body = self.part(0, 7)
        body['tensors']['layer03.up'] = body['tensors']['layer07.up']
        self.whole_refused(7, body, 'schema_mismatch', "'layer03.up' is in part 3 and in part 7")

    def test_a_tensor_that_the_schema_lacks(self):
        body = self.part(0, 7)
        body['tensors']['extra'] = body['tensors']['layer07.up']
        self.whole_refused(7, body, 'schema_mismatch', "'extra'")

    def test_an_object_that_two_ranks_have(self):
        body = self.part(0, 7)
        body['forms'][0]['objects'][0]['name'] = 'model-00003-of-00016.safetensors'
        self.whole_refused(7, body, 'parts_mismatch', 'in part 2 and in part 7')

    def test_another_form(self):
        body = self.part(0, 7)
        body['forms'][0]['format'] = 'other'
        self.whole_refused(7, body, 'parts_mismatch', 'other forms')

    def test_a_shard_that_lacks_what_the_schema_has(self):
        self.put_all(0, but=(15,))
        self.assertEqual(self.put(0, 15).status, 201)
        for rank in range(15):
            self.assertEqual(self.put(1, rank).status, 202)
        body = self.part(1, 15)
        stored = self.run_.put(f'{self.run_.name}/short', shard({'layer15.up': b'12345678'}))
        body['forms'][0]['objects'][0].update(stored)
        self.refused(self.put(1, 15, body), 422, 'incomplete_anchor')
        self.assertEqual(self.run_.call('GET', '').json()['head'], 0)

    def test_a_new_epoch_drops_what_was_put(self):
        self.put_all(0, but=(1,))
        self.run_.open()
        self.assertEqual(self.put(0, 1).json()['received'], 1)

    def test_a_step_published_whole_goes_first(self):
        self.put_all(0, but=(1,))
        run = self.run_
        self.assertEqual(run.publish(0).status, 201)
        self.refused(self.put(0, 1), 409, 'head_moved')
        self.assertEqual(run.call('GET', '/steps/0').json()['digest'], run.checkpoint_digest(weights(0)))

    def test_objects_of_parts_stay_when_their_keys_go(self):
        self.put_all(0, but=(15,))
        for rank in range(4):
            key = f'/models/{self.run_.name}/0/model-{rank + 1:05}-of-{RANKS:05}.safetensors'
            self.assertEqual(self.daemon.request('DELETE' if rank % 2 else 'PUT', key, None if rank % 2 else b'other').status // 100, 2)
        self.assertEqual(self.put(0, 15).status, 201)
        got = self.run_.call('GET', f'/steps/0/objects/anchor/model-00001-of-{RANKS:05}.safetensors')
        self.assertEqual(got.body, shard(tensors_of(0, 0)))

    def test_a_kill_between_parts(self):
        with Daemon(tls=False) as daemon:
            run = Run(daemon, 'run')
            for rank in range(RANKS):
                if rank in (4, 9):
                    daemon.kill()
                    daemon.start()
                reply = self.put(0, rank, run=run)
                self.assertEqual(reply.status, 201 if rank == RANKS - 1 else 202, reply.body)
            daemon.kill()
            daemon.start()
            self.assertEqual(self.put(0, 7, run=run).json()['published'], True)
            self.assertEqual(run.call('GET', '/steps/0').json()['digest'], run.checkpoint_digest(tensors_of(0)))


if __name__ == '__main__':
    unittest.main()
