"""Ranks that publish one step together, and followers of a part of the model. What workers get is
held against `deltabucket follow`, bit for bit."""
import concurrent.futures
import contextlib
import glob
import inspect
import json
import os
import signal
import unittest

import tests.python.test_run as runs
from tests.support.clients import read
from tests.support.package import start_script

import deltabucket  # noqa: E402
import numpy  # noqa: E402

RANKS = 3
# A rank that publishes a step when a line names it.
RANK = '''
import sys, deltabucket, ml_dtypes, numpy
rank, ranks, state = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
run = deltabucket.Run(sys.argv[1], state=state)
for line in sys.stdin:
    step = int(line)
    print('begins', flush=True)
    done = run.publish_rank(part_of(weights(step, 6), rank, ranks), step, rank=rank, ranks=ranks,
                            files=index_of(ranks), wait=60)
    print(done.step, done.digest, done.delta_bytes > 0, flush=True)
'''


def part_of(tensors, rank, ranks):
    """Every so manieth tensor."""
    return {name: array for number, (name, array) in enumerate(sorted(tensors.items()))
            if number % ranks == rank}


def index_of(ranks, count=6):
    """The index of the shards of `part_of`, as a file."""
    whole = {f'layer.{number}.weight': None for number in range(count)}
    return deltabucket.rank_index([list(part_of(whole, rank, ranks)) for rank in range(ranks)])


class RankCase(runs.RunCase):
    def name(self, suffix=''):
        return f'models/{self.id().rsplit(".", 1)[-1]}{suffix}'

    def ranks_of(self, ranks=RANKS, **options):
        """A Run for each rank, as processes have."""
        return [self.run_of(**options) for _ in range(ranks)]

    def publish(self, made, parts, **options):
        """Publishes one step with a thread for each rank."""
        options['files'] = {**index_of(len(made)), **options.get('files', {})}
        options.setdefault('wait', 60)
        with concurrent.futures.ThreadPoolExecutor(len(made)) as pool:
            calls = [pool.submit(run.publish_rank, parts[rank], rank=rank, ranks=len(made), **options)
                     for rank, run in enumerate(made)]
            failures = [call.exception() for call in calls]
        if any(failures):
            raise next(filter(None, failures))
        return [call.result() for call in calls]

    def parts(self, step, ranks=RANKS):
        return [part_of(runs.weights(step, 6), rank, ranks) for rank in range(ranks)]

    def command_follows(self, *part, name=None):
        """{name: array} of what `deltabucket follow` holds, and {file: bytes}."""
        into = os.path.join(self.folder, f'command-{abs(hash(part))}-{self.id()}')
        self.daemon.client('follow', '--once', '--run', name or self.name(), '--into', into, *part)
        files = {os.path.basename(path): read(path) for path in glob.glob(f'{into}/current/*')}
        tensors = {}
        for path in glob.glob(f'{into}/current/*.safetensors'):
            tensors.update(runs.load(path))
        return tensors, files


class Publishing(RankCase):
    def check_steps(self, made, epoch=None):
        alone = self.run_of(self.id().rsplit('.', 1)[-1] + '_alone')
        with made[0].follow() as memory:
            for step in range(4):
                done = self.publish(made, self.parts(step), step=step, epoch=epoch,
                                    files={'config.json': '{}'}, label=f'label {step}')
                wanted = runs.weights(step, 6)
                digest = alone.publish(wanted).digest
                self.assertEqual({(one.step, one.digest) for one in done}, {(step, digest)})
                self.assertEqual([one.anchor_bytes > 0 for one in done], [step == 0] * RANKS)
                self.assertEqual([one.delta_bytes > 0 for one in done], [step > 0] * RANKS)
                self.assertEqual(sum(one.changed_elements for one in done), 6 if step else 0)
                tensors, files = self.command_follows()
                self.assertSame(dict(sorted(tensors.items())), wanted)
                self.assertEqual(sorted(files), ['config.json', *(
                    f'model-{rank + 1:05d}-of-{RANKS:05d}.safetensors' for rank in range(RANKS)),
                    'model.safetensors.index.json'])
                got = next(memory)
                self.assertSame(got.tensors(), wanted)
                self.assertEqual((got.label, got.came_whole), (f'label {step}', step == 0))
        self.assertNotIn('failed', [info.verified for info in made[0].steps()])

    def test_from_memory_with_a_state_folder(self):
        self.check_steps(self.ranks_of(state=os.path.join(self.folder, 'shared')))

    def test_from_memory_with_an_epoch(self):
        made = self.ranks_of()
        self.check_steps(made, made[2].new_epoch())

    def test_the_baseline_in_memory_is_one_copy_of_the_part(self):
        """And only what changed is written over it."""
        (run,) = self.ranks_of(1)
        ours = f'/dev/shm/deltabucket-{os.getpid()}-*'
        before = set(glob.glob(ours))
        for step in range(3):
            self.publish([run], self.parts(step, 1), files={'config.json': '{}'})
            (folder,) = set(glob.glob(ours)) - before
            files = {os.path.relpath(path, folder): os.stat(path) for path in
                     glob.glob(f'{folder}/**/*.safetensors', recursive=True)}
            (name,) = files
            self.assertIn(f'step-{step:06d}', name)
            if step > 1:
                self.assertEqual(files[name].st_ino, inode)
            inode = files[name].st_ino

    def test_the_bytes_are_those_of_the_command(self):
        """`publish --rank` of the same shards makes the same files, deltas and anchors."""
        made = self.ranks_of(2, state=os.path.join(self.folder, 'bytes'))
        files = {'config.json': '{}'}
        for step in range(2):
            self.publish(made, self.parts(step, 2), files=files)
            _, ours = self.command_follows()
            source = os.path.join(self.folder, f'trained-{step}')
            os.mkdir(source)
            for name, content in ours.items():
                with open(os.path.join(source, name), 'wb') as file:
                    file.write(content)
            state = os.path.join(self.folder, 'bytes-command')
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda rank: self.daemon.client(
                    'publish', '--run', self.name('_command'), '--rank', f'{rank}/2', '--state',
                    state, source), range(2)))
        self.assertIn('model.safetensors.index.json', ours)
        for step in range(2):
            manifests = [json.loads(self.daemon.request('GET', f'/v1/runs/{name}/steps/{step}').body)
                         for name in (self.name(), self.name('_command'))]
            facts = [(one['digest'], one['files'], self.objects(one)) for one in manifests]
            self.assertEqual(*facts)
            self.assertTrue(facts[0][2])

    def objects(self, manifest):
        return [(form['kind'], sorted((one['name'], one['size'], one['digest'])
                                      for one in form['objects'])) for form in manifest['forms']
                if form['kind'] in ('anchor', 'delta')]

    def test_from_paths(self):
        made = self.ranks_of(2, state=os.path.join(self.folder, 'paths'))
        for step in range(2):
            source = os.path.join(self.folder, f'paths-{step}')
            os.mkdir(source)
            for rank, part in enumerate(self.parts(step, 2)):
                runs.write_safetensors(
                    os.path.join(source, f'model-{rank + 1:05d}-of-00002.safetensors'),
                    {name: ('BF16', list(array.shape), array.tobytes())
                     for name, array in part.items()})
            with open(os.path.join(source, 'model.safetensors.index.json'), 'w') as file:
                file.write(index_of(2)['model.safetensors.index.json'])
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda rank: made[rank].publish_rank(
                    source, rank=rank, ranks=2, wait=60), range(2)))
            self.assertSame(dict(sorted(self.command_follows()[0].items())), runs.weights(step, 6))

    def test_one_that_is_started_again(self):
        """Without a state it fetches the newest step, and no whole copy is sent."""
        first = self.ranks_of(2)
        epoch = first[0].new_epoch()
        for step in range(2):
            self.publish(first, self.parts(step, 2), epoch=epoch)
        with self.assertRaises(deltabucket.StaleEpoch):
            self.run_of().new_epoch()
        second = self.ranks_of(2, take_over=True)
        epoch = second[0].new_epoch()
        done = self.publish(second, self.parts(2, 2), epoch=epoch)
        self.assertEqual([(one.step, one.anchor_bytes) for one in done], [(2, 0)] * 2)
        self.assertSame(dict(sorted(self.command_follows()[0].items())), runs.weights(2, 6))
        with self.assertRaises(deltabucket.StaleEpoch):
            first[0].publish_rank(self.parts(3, 2)[0], rank=0, ranks=2, epoch=epoch - 1, wait=0,
                                  files=index_of(2))

    def test_a_repeated_step(self):
        made = self.ranks_of(2, state=os.path.join(self.folder, 'repeated'))
        for step in range(2):
            self.publish(made, self.parts(step, 2), step=step)
        again = self.publish(made, self.parts(1, 2), step=1)
        self.assertEqual([(one.step, one.already) for one in again], [(1, True)] * 2)
        with self.assertRaisesRegex(deltabucket.HeadMoved, 'other content'):
            self.publish(made, self.parts(3, 2), step=1)
        done = self.publish(made, self.parts(2, 2), step=2)
        self.assertEqual([one.anchor_bytes for one in done], [0, 0])
        self.assertSame(dict(sorted(self.command_follows()[0].items())), runs.weights(2, 6))

    def test_ranks_that_do_not_agree(self):
        made = self.ranks_of(2)
        epoch = made[0].new_epoch()
        zero, one = self.parts(0, 2)

        def put(rank, tensors, ranks=2, **more):
            return made[rank].publish_rank(tensors, rank=rank, ranks=ranks, **{
                'epoch': epoch, 'wait': 0, 'files': index_of(2), **more})
        with self.assertRaises(deltabucket.NotReady):  # rank 1 is missing
            put(0, zero)
        with self.assertRaises(deltabucket.HeadMoved):  # another number of ranks
            put(1, one, ranks=3)
        twice = {**one, 'layer.0.weight': zero['layer.0.weight']}
        with self.assertRaisesRegex(deltabucket.Invalid, 'layer.0.weight'):
            put(1, twice)
        with self.assertRaises(deltabucket.HeadMoved):
            put(1, one, step=4)
        self.publish(made, [zero, one], epoch=epoch, step=0)
        with self.assertRaises(deltabucket.Unsupported):
            put(1, {**one, 'more': numpy.zeros(2, 'f4')})
        with self.assertRaises(deltabucket.Unsupported):
            put(0, zero, files={**index_of(2), 'config.json': '{"new": 1}'})
        with self.assertRaises(deltabucket.NotReady):
            put(0, self.parts(1, 2)[0], anchor='always')
        with self.assertRaisesRegex(deltabucket.SchemaMismatch, 'layer.5.weight'):
            put(1, {name: array for name, array in one.items() if '5' not in name},
                anchor='always')
        with self.assertRaises(deltabucket.NotReady):
            put(0, self.parts(1, 2)[0])
        with self.assertRaisesRegex(deltabucket.Invalid, 'anchor') as caught:
            put(1, self.parts(1, 2)[1], anchor='always')
        self.assertEqual(caught.exception.kind, 'parts_mismatch')
        self.assertEqual({done.step for done in self.publish(
            made, self.parts(1, 2), epoch=epoch, step=1)}, {1})

    def test_wrong_arguments(self):
        run = self.run_of()
        part = self.parts(0)[0]
        for wrong in ({}, {'rank': 0}, {'ranks': 2}, {'rank': 2, 'ranks': 2},
                      {'rank': -1, 'ranks': 2}, {'rank': 0, 'ranks': 1, 'wait': -1},
                      {'rank': 0, 'ranks': 1, 'epoch': -1}):
            with self.subTest(wrong), self.assertRaises(ValueError):
                run.publish_rank(part, **wrong)
        with self.assertRaisesRegex(deltabucket.Invalid, 'epoch'):
            run.publish_rank(part, rank=0, ranks=2, files=index_of(2))
        with self.assertRaisesRegex(deltabucket.Invalid, 'index.json'):
            run.publish_rank(part, rank=0, ranks=2, epoch=1)
        with self.assertRaisesRegex(deltabucket.Invalid, 'layer.3.weight is in'):
            run.publish_rank(part, rank=0, ranks=2, epoch=1, files=index_of(2))
        with self.assertRaises(deltabucket.Invalid):
            run.publish_rank(part, rank=0, ranks=1, anchor='every=2')
        self.assertEqual(run.publish_rank(part, rank=0, ranks=1).step, 0)

    def test_alone_and_as_a_rank(self):
        """One Run does both: it has a state for each."""
        run = self.run_of()
        run.publish_rank(runs.weights(0), rank=0, ranks=1)
        with self.assertRaises(deltabucket.StaleEpoch):
            run.publish(runs.weights(1))
        taking = self.run_of(take_over=True)
        self.assertEqual(taking.publish(runs.weights(1)).step, 1)


class Killed(RankCase):
    def start(self, rank, state):
        functions = map(inspect.getsource, (runs.weights, part_of, index_of))
        process = start_script('\n'.join(functions) + RANK, self.name(), rank, 2, state, daemon=self.daemon)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def say(self, process, step):
        process.stdin.write(f'{step}\n')
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), 'begins\n')

    def test_a_rank_that_is_killed_comes_back(self):
        self.run_of().new_epoch()  # makes the bucket
        state = os.path.join(self.folder, 'killed')
        processes = [self.start(rank, state) for rank in range(2)]
        alone = self.run_of(self.id().rsplit('.', 1)[-1] + '_alone')
        for step in range(4):
            digest = alone.publish(runs.weights(step, 6)).digest
            victim = step % 2
            self.say(processes[victim], step)
            processes[victim].send_signal(signal.SIGKILL)
            processes[victim].wait()
            processes[victim] = self.start(victim, state)
            for process in processes:
                self.say(process, step)
            for process in processes:
                said = process.stdout.readline()
                self.assertIn(said, (f'{step} {digest} {step > 0}\n', f'{step} {digest} False\n'),
                              process.poll())
            self.assertSame(dict(sorted(self.command_follows()[0].items())), runs.weights(step, 6))


class Parts(RankCase):
    """`follow` of some tensors, held against the command line."""

    def choices(self):
        yield {'rank': 1, 'ranks': 3}, ('--rank', '1/3')
        yield {'rank': 0, 'ranks': 1}, ('--rank', '0/1')
        yield {'tensors': 'layer.[02].*,layer.5.*'}, ('--tensors', 'layer.[02].*,layer.5.*')
        yield {'tensors': ['*.1.*', 'layer.2*']}, ('--tensors', '*.1.*,layer.2*')

    def test_in_a_folder_and_in_memory(self):
        run = self.run_of()
        run.publish(runs.weights(0, 6), files={'config.json': '{}'})
        with contextlib.ExitStack() as stack:
            followers = [(options, part, place, stack.enter_context(run.follow(
                os.path.join(self.folder, f'part-{number}') if place == 'folder' else None,
                replica=f'worker-{number}-{place}', **options)))
                for number, (options, part) in enumerate(self.choices())
                for place in ('folder', 'memory')]
            states = {}
            for step in range(3):
                if step:
                    run.publish(runs.weights(step, 6), files={'config.json': '{}'})
                for options, part, place, steps in followers:
                    with self.subTest(step=step, place=place, **options):
                        self.check(run, next(steps), part, place, states)
            self.assertEqual({one.id: one.lag for one in run.fleet()},
                             {f'worker-{n}-{place}': 0 for n in range(4)
                              for place in ('folder', 'memory')})

    def check(self, run, step, part, place, states):
        wanted, files = self.command_follows(*part)
        self.assertSame(step.tensors(), dict(sorted(wanted.items())))
        self.assertEqual(step.digest, run.latest().digest)
        if place == 'folder':
            self.assertEqual({name: read(os.path.join(step.path, name)) for name in files}, files)
        state = states.setdefault((part, place), {name: numpy.zeros_like(array)
                                                  for name, array in wanted.items()})
        self.assertEqual(step.came_whole, step.number == 0 or place == 'memory')
        if not step.came_whole:
            for name, array in state.items():
                positions, values = step.changes(name)
                changed = array.ravel().copy()
                changed[positions] = values
                self.assertEqual(changed.tobytes(), wanted[name].tobytes())
        step.apply_into(state)
        self.assertSame(dict(sorted(state.items())), wanted)

    def test_a_folder_of_the_command_goes_on(self):
        run = self.run_of()
        run.publish(runs.weights(0, 6))
        into = os.path.join(self.folder, 'goes-on')
        self.daemon.client('follow', '--once', '--run', self.name(), '--into', into, '--rank', '0/2')
        with run.follow(into, rank=0, ranks=2) as steps:
            self.assertEqual(next(steps).fetched_bytes, 0)
        with run.follow(into, rank=1, ranks=2) as steps:  # another part begins anew
            step = next(steps)
            self.assertGreater(step.fetched_bytes, 0)
            self.assertSame(step.tensors(), {name: array for name, array
                                             in runs.weights(0, 6).items() if name > 'layer.3'})

    def test_a_part_in_memory_goes_back_and_forth(self):
        run = self.run_of()
        for step in range(3):
            run.publish(runs.weights(step, 6))
        with run.follow(tensors='layer.4.*') as steps:
            for number in (2, 0, 1, 2):
                step = next(steps) if number == 2 else steps.rollback(number)
                self.assertEqual(step.number, number)
                self.assertSame(step.tensors(), {
                    'layer.4.weight': runs.weights(number, 6)['layer.4.weight']})

    def test_wrong_choices(self):
        run = self.run_of()
        run.publish(runs.weights(0))
        for wrong in ({'rank': 0}, {'ranks': 2}, {'rank': 2, 'ranks': 2}, {'tensors': ''},
                      {'tensors': []}, {'tensors': ['a,b']}, {'tensors': 'a', 'rank': 0, 'ranks': 1}):
            with self.subTest(wrong), self.assertRaises(ValueError):
                run.follow(**wrong)
        for folder in (None, os.path.join(self.folder, 'nothing')):
            with run.follow(folder, tensors='nothing.*') as steps, \
                    self.assertRaisesRegex(deltabucket.NotFound, 'nothing'):
                next(steps)


if __name__ == '__main__':
    unittest.main()
