"""What becomes of the objects of a process when it forks, starts others, drops them or ends: nothing
hangs, and nothing is left in /dev/shm, in open files or in threads."""
import contextlib
import glob
import signal
import subprocess
import tempfile
import unittest

from tests.support.daemon import Daemon
from tests.support.package import package_is_ready, run_script, start_script
from tests.support.skips import forks_beside_threads

if not package_is_ready('fsspec'):
    raise unittest.SkipTest('setup/clients has not installed numpy, ml_dtypes, cffi and fsspec')

# Beginning of a program: argument 1 is the run's name, of which it is the first publisher.
BEGINNING = '''
import asyncio, gc, glob, os, sys, threading, time
import numpy, deltabucket

def publish(value=1.0, **settings):
    made = deltabucket.Run(sys.argv[1], create_bucket=True, **settings)
    made.publish({'w': numpy.full(1000, value, 'float32')})
    return made

def folders():
    return sorted(glob.glob(f'/dev/shm/deltabucket-{os.getpid()}-*'))

def child_ends(work):
    """The exit status of a child that does this work and then ends as programs do."""
    child = os.fork()
    if child == 0:
        work()
        sys.exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def child_that_stays():
    """As a worker of a DataLoader does: until it is killed, or its parent has ended."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        while os.getppid() == parent:
            time.sleep(0.05)
        os._exit(0)
    return child

def following(steps):
    """A daemon thread that has got a step and waits for the next one."""
    seen = []
    def work():
        for step in steps:
            seen.append(step.number)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while not seen:
        time.sleep(0.01)
    return thread, seen
'''


class ProcessCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())

    def setUp(self):
        self.run_name = 'processes/' + self.id().rsplit('.', 1)[-1]
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def program(self, script):
        process = start_script(BEGINNING + script, self.run_name, self.folder, daemon=self.daemon)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def tells(self, script, wanted, status=0):
        """The program ends by itself with this status, after it has printed these lines."""
        done = run_script(BEGINNING + script, self.run_name, self.folder, daemon=self.daemon)
        self.assertEqual((done.returncode, done.stdout.splitlines(), done.stderr),
                         (status, wanted, ''))


@forks_beside_threads
class Forks(ProcessCase):
    def test_a_child_ends_while_a_thread_of_the_parent_follows(self):
        self.tells('''
run = publish()
steps = run.follow(replica='parent').__enter__()
thread, seen = following(steps)
before = folders()

def use():
    for call in (lambda: next(steps), lambda: steps.next(0), run.latest):
        try:
            call()
            print('not refused')
        except deltabucket.UsedAfterFork:
            pass

def own():
    with deltabucket.Run(sys.argv[1]) as mine, mine.follow(silent=True) as own_steps:
        assert next(own_steps).tensors()['w'][0] == 1

for work in (lambda: None, steps.close, lambda: (steps.close(), run.close()), use, own):
    print(child_ends(work))
assert len(before) == 2 and folders() == before
run.publish({'w': numpy.zeros(1000, 'float32')})
while len(seen) < 2:
    time.sleep(0.01)
print(seen, thread.is_alive())
steps.close()
thread.join()
run.close()
''', ['7'] * 5 + ['[0, 1] True'])

    def test_a_lock_that_a_thread_of_the_parent_holds(self):
        """It is never let go in the child."""
        self.tells('''
run = publish()
steps = run.follow(silent=True).__enter__()
next(steps)
def end():
    steps.close()
    try:
        next(steps)
    except deltabucket.UsedAfterFork:
        print('refused', flush=True)
with steps._lock:
    print(child_ends(end), flush=True)
steps.close()
''', ['refused', '7'])

    def test_a_file_system_is_used_while_a_thread_of_the_parent_opens_a_bucket(self):
        self.tells('''
import deltabucket.filesystem as module
system = module.DeltaBucketFileSystem()
make, begun, goes_on = module.Bucket, threading.Event(), threading.Event()
def wait_and_make(*arguments, **settings):
    begun.set()
    goes_on.wait()
    return make(*arguments, **settings)
def look():
    return system.exists('deltabucket://processes/none')
module.Bucket = wait_and_make
thread = threading.Thread(target=look)
thread.start()
begun.wait()
def use():
    goes_on.set()
    print(look(), flush=True)
print(child_ends(use), flush=True)
goes_on.set()
thread.join()
''', ['False', '7'])

    def test_the_folder_of_a_follower_is_free_again_beside_a_child(self):
        self.tells('''
run = publish()
into = sys.argv[2] + '/into'
with run.follow(into, silent=True) as steps:
    next(steps)
    child = child_that_stays()
with run.follow(into, silent=True) as steps:
    print(next(steps).number)
os.kill(child, 9)
''', ['0'])

    def test_a_publisher_goes_on_beside_a_child_that_was_forked_while_it_published(self):
        self.tells('''
state = sys.argv[2] + '/state'
run = deltabucket.Run(sys.argv[1], state=state, create_bucket=True)
weights = {'w': numpy.random.default_rng(1).integers(0, 255, 60 << 20, 'uint8')}
thread = threading.Thread(target=run.publish, args=(weights,))
thread.start()
while not os.path.exists(state) or not os.listdir(state):
    time.sleep(0.001)
child = child_that_stays()
print(thread.is_alive())
thread.join()
print(run.publish({'w': weights['w'] + 1}).step)
os.kill(child, 9)
''', ['True', '1'])

    def test_a_program_that_is_started_gets_no_connection(self):
        self.tells('''
import subprocess
run = publish()
run.latest()
with open('/proc/net/tcp') as table:
    inodes = {line.split()[9] for line in table}
script = 'for fd in /proc/self/fd/*; do readlink $fd; done'
def held(names):
    return sum(name.startswith('socket:[') and name[8:-1] in inodes for name in names)
mine = [os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd')
        if os.path.exists(f'/proc/self/fd/{fd}') or os.path.islink(f'/proc/self/fd/{fd}')]
child = subprocess.run(['sh', '-c', script], close_fds=False, capture_output=True, text=True)
print(held(mine) > 0, held(child.stdout.split()))
''', ['True 0'])


class Others(ProcessCase):
    def test_what_belongs_to_one_process_is_not_pickled(self):
        self.tells('''
import copy, multiprocessing, pickle
run = publish()
steps = run.follow(silent=True).__enter__()
for one in (steps, next(steps)):
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        try:
            way(one)
            print('done')
        except TypeError as failure:
            assert f'A {type(one).__name__} cannot be pickled' in str(failure), failure
for kind in 'spawn', 'forkserver':
    try:
        multiprocessing.get_context(kind).Process(target=print, args=(steps,)).start()
        print('done')
    except TypeError as failure:
        assert 'make another one in the process' in str(failure), failure
print(pickle.loads(pickle.dumps(run.latest())).number)
steps.close()
''', ['0'])

    def test_a_program_may_become_another_one(self):
        self.tells('''
run = publish()
thread, seen = following(run.follow(silent=True).__enter__())
os.execv('/bin/echo', ['echo', 'another'])
''', ['another'])


class Ends(ProcessCase):
    def test_a_daemon_thread_that_iterates_ends_quietly(self):
        self.tells('''
run = publish()
thread, seen = following(run.follow(silent=True).__enter__())
print(seen)
''', ['[0]'])

    def test_a_thread_that_is_waited_for_goes_on(self):
        self.tells('''
run = publish()
def work():
    with run.follow(silent=True) as steps:
        for step in steps:
            print(step.number, flush=True)
            if step.number == 1:
                return
            threading.Thread(target=run.publish, args=({'w': numpy.zeros(1000, 'float32')},)).start()
threading.Thread(target=work).start()
''', ['0', '1'])

    def test_threads_that_transfer(self):
        process = self.program('''
bucket = deltabucket.Bucket('ends')
bucket.create()
data = os.urandom(1 << 20) * 64
def work():
    try:
        while True:
            bucket.put('key', data)
            bucket.get('key')
    except deltabucket.Cancelled:
        pass
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
bucket.put('other', data)
''')
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out, err), (0, '', ''))

    def test_ctrl_c_while_a_thread_is_waited_for(self):
        process = self.program('''
run = publish()
steps = run.follow(silent=True).__enter__()
def work():
    for step in steps:
        print('waiting', flush=True)
threading.Thread(target=work).start()
''')
        self.assertEqual(process.stdout.readline(), 'waiting\n')
        while process.poll() is None:  # the first one may come before the program waits
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        self.assertEqual(glob.glob(f'/dev/shm/deltabucket-{process.pid}-*'), [])

    def test_ctrl_c_in_a_task_that_iterates(self):
        process = self.program('''
run = publish()
async def main():
    async with run.follow(silent=True) as steps:
        async for step in steps:
            print('waiting', flush=True)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print('interrupted', len(folders()))
''')
        self.assertEqual(process.stdout.readline(), 'waiting\n')
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=60), ('interrupted 1\n', ''))

    def test_signals_whose_default_is_the_end(self):
        for number in signal.SIGTERM, signal.SIGKILL, signal.SIGHUP:
            with self.subTest(number):
                process = self.program('''
run = publish(take_over=True)
for step in run.follow(silent=True):
    print('waiting', flush=True)
''')
                self.assertEqual(process.stdout.readline(), 'waiting\n')
                process.send_signal(number)
                out, err = process.communicate(timeout=60)
                self.assertEqual((process.returncode, out, err), (-number, '', ''))


class Dropped(ProcessCase):
    def test_iterations_that_are_left_half_way(self):
        self.tells('''
run = publish()
def walk():
    with run.follow(silent=True) as steps:
        yield from steps
async def walk_tasks():
    async with run.follow(silent=True) as steps:
        async for step in steps:
            yield step
async def main():
    async for step in walk_tasks():
        return step.number
half = walk()
print(next(half).number, len(folders()))
del half
print(len(folders()))
print(asyncio.run(main()), len(folders()))
follower = run.follow(silent=True)
for step in follower:
    break
del follower, step
gc.collect()
print(len(folders()))
''', ['0 2', '1', '0 1', '1'])

    def test_many_rounds_leave_nothing(self):
        self.tells('''
run_name, folder = sys.argv[1:]
def facts():
    return [len(os.listdir(f'/proc/self/{kind}')) for kind in ('fd', 'task')] + [len(folders())]
def once(number):
    with deltabucket.Run(run_name, create_bucket=True, take_over=True) as run:
        run.publish({'w': numpy.full(1000, number, 'float32')})
        with run.follow(replica='rounds', keeps_changes=True) as steps:
            next(steps).tensors()
            run.publish({'w': numpy.full(1000, number + 0.5, 'float32')})
            next(steps).changes('w')
        with run.follow(folder + '/into', silent=True) as steps:
            next(steps)
    with deltabucket.Bucket('processes') as bucket:
        bucket.put('key', b'1')
        bucket.get('key')
    gc.collect()
once(0)
once(1)
before = facts()
for number in range(2, 12):
    once(number)
print(facts() == before or (before, facts()))
''', ['True'])


if __name__ == '__main__':
    unittest.main()
