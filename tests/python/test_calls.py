"""Calls that are interrupted, cancelled and left: by Ctrl-C, callbacks, forks, tasks, and the end
of the program. A server that never answers keeps them waiting."""
import asyncio
import glob
import os
import signal
import socket
import tempfile
import threading
import unittest
import unittest.mock

from tests.support.clients import content
from tests.support.daemon import Daemon
from tests.support.package import package_is_ready, run_script, settings_of, start_script
from tests.support.skips import forks_beside_threads

if not package_is_ready():
    raise unittest.SkipTest('setup/clients has not installed numpy, ml_dtypes and cffi')

import deltabucket  # noqa: E402

# Beginnings of programs: a bucket, a run, and a follower of one that does not exist.
SILENT = '''
import os, sys, threading, deltabucket
server = dict(endpoint=sys.argv[1], token='t', retries=0)
bucket = deltabucket.Bucket('files', **server)
'''


class Silent(unittest.TestCase):
    """Against a socket that takes connections and says nothing."""

    def setUp(self):
        self.socket = self.enterContext(socket.create_server(('127.0.0.1', 0)))
        self.endpoint = f'http://127.0.0.1:{self.socket.getsockname()[1]}'

    def bucket(self):
        made = deltabucket.Bucket('files', endpoint=self.endpoint, token='t', retries=0)
        self.addCleanup(made.close)
        return made

    def accept(self):
        """Waits until a call has connected; it gets no answer until the test is over."""
        self.addCleanup(self.socket.accept()[0].close)

    def program(self, script):
        """A program that waits for the server."""
        process = start_script(SILENT + script, self.endpoint)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.accept()
        return process

    def test_ctrl_c_in_the_main_thread(self):
        process = self.program('''
try:
    bucket.get('key')
except KeyboardInterrupt:
    print('interrupted')
''')
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out, err), (0, 'interrupted\n', ''))

    def test_ctrl_c_at_any_moment_of_a_call(self):
        """Also between two lines of the package: the call is always told, and ended when its
        caller hears of it."""
        done = run_script('''
import faulthandler, gc, random, signal, threading, time
from deltabucket._calls import Watch
faulthandler.dump_traceback_later(60, exit=True)
gc.disable()  # what is raised while it collects, Python only prints
random.seed(1)
signal.signal(signal.SIGALRM, signal.default_int_handler)
counts = {'interrupted': 0, 'early': 0}
class Told(Watch):
    def cancel(self):
        told.set()
        super().cancel()
for _ in range(300):
    told, running = threading.Event(), []
    def call(watch, err):
        running.append(1)
        told.wait()
        time.sleep(0.0005)
        running.clear()
        return 0
    watch = Told()
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 6e-4))
        watch.run(call)
    except KeyboardInterrupt:
        counts['interrupted' if told.is_set() else 'early'] += 1
    assert not running
assert counts['interrupted'] > 30, counts
print(sum(counts.values()))
''')
        self.assertEqual((done.returncode, done.stdout), (0, '300\n'), done.stderr)

    def test_what_a_signal_handler_raises(self):
        process = self.program('''
import signal
def handle(number, frame):
    raise LookupError('from the handler')
signal.signal(signal.SIGUSR1, handle)
threading.Timer(0.1, lambda: print('waiting', flush=True)).start()
try:
    deltabucket.Bucket('files', **server).list()
except LookupError as failure:
    print(failure)
''')
        self.assertEqual(process.stdout.readline(), 'waiting\n')
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(process.communicate(timeout=60), ('from the handler\n', ''))

    def test_end_of_the_program_during_a_call_of_a_daemon_thread(self):
        process = self.program('''
def work():
    try:
        bucket.get('key')
    except deltabucket.Cancelled:
        os.write(1, b'cancelled\\n')
thread = threading.Thread(target=work, daemon=True)
thread.start()
sys.stdin.readline()
''')
        process.stdin.write('end\n')
        process.stdin.flush()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out, err), (0, 'cancelled\n', ''))

    def test_a_task_is_cancelled(self):
        async def main():
            follower = deltabucket.Run('models/policy', endpoint=self.endpoint, token='t',
                                       retries=0).follow(silent=True)
            async with follower as steps:
                task = asyncio.ensure_future(steps.next_async())
                await asyncio.get_running_loop().run_in_executor(None, self.accept)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
        asyncio.run(main())

    def test_a_follower_is_closed_by_another_thread(self):
        follower = deltabucket.Run('models/policy', endpoint=self.endpoint, token='t',
                                   retries=0).follow(silent=True)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(list(follower)))
        thread.start()
        self.accept()
        follower.close()
        thread.join()
        self.assertEqual(seen, [[]])
        with self.assertRaisesRegex(ValueError, 'closed'):
            follower.next()

    def test_a_follower_is_closed_while_two_threads_use_it(self):
        """One waits for the server, the other one for that."""
        follower = deltabucket.Run('models/policy', endpoint=self.endpoint, token='t',
                                   retries=0).follow(silent=True)
        waiting = threading.Event()
        use, seen = deltabucket.follower.Handle.use, []

        def noted(handle):
            if threading.current_thread().name == 'second' and handle.what == 'follower':
                waiting.set()
            return use(handle)
        self.enterContext(unittest.mock.patch.object(deltabucket.follower.Handle, 'use', noted))
        threads = [threading.Thread(target=target, name=name, daemon=True) for name, target in (
            ('first', lambda: seen.append(list(follower))),
            ('second', lambda: seen.append(list(follower))), ('closing', follower.close))]
        threads[0].start()
        self.accept()
        threads[1].start()
        waiting.wait()
        threads[2].start()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        self.assertEqual(seen, [[], []])

    def opened(self, follower, meanwhile):
        """Opens the follower, and calls `meanwhile` when the library has opened it."""
        made, handle = [], deltabucket.follower.Handle

        def make(*arguments, **options):
            meanwhile()
            made.append(handle(*arguments, **options))
            return made[-1]
        with unittest.mock.patch.object(deltabucket.follower, 'Handle', make):
            follower.__enter__()
        return made

    def test_a_follower_is_closed_while_it_opens(self):
        """It does not keep the folder."""
        run = deltabucket.Run('models/policy', endpoint=self.endpoint, token='t', retries=0)
        folder = self.enterContext(tempfile.TemporaryDirectory())
        follower = run.follow(folder, silent=True)
        with self.assertRaisesRegex(ValueError, 'closed'):
            self.opened(follower, follower.close)
        with run.follow(folder, silent=True):
            pass

    def test_a_follower_is_opened_once(self):
        follower = deltabucket.Run('models/policy', endpoint=self.endpoint, token='t',
                                   retries=0).follow(silent=True)
        self.addCleanup(follower.close)
        other = threading.Thread(target=follower.__enter__)

        def meanwhile():
            if threading.current_thread() is not other:
                other.start()
                other.join(0.3)  # it waits, or opens it again
        made = self.opened(follower, meanwhile)
        other.join()
        self.assertEqual(len(made), 1)

    def test_a_follower_that_reports_gives_up_on_the_server(self):
        follower = deltabucket.Run('models/policy', endpoint=self.endpoint, token='t',
                                   retries=0).follow()
        thread = threading.Thread(target=lambda: list(follower))
        thread.start()
        self.accept()  # the question for a step, or the report
        self.accept()
        follower.close()
        thread.join()
        self.socket.setblocking(False)
        with self.assertRaises(BlockingIOError):  # it does not say goodbye
            self.socket.accept()


@forks_beside_threads
class Forks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())

    def test_objects_of_the_parent_are_refused_and_never_freed(self):
        done = run_script('''
import gc, os, sys, threading, time, numpy, deltabucket
bucket = deltabucket.Bucket('forks')
bucket.create()
bucket.put('key', b'1')
run = deltabucket.Run('forks/run')
run.publish({'a': numpy.ones(3)})
steps = run.follow(replica='parent')
next(steps)
steps.report('ready')
child = os.fork()
if child == 0:
    try:
        for call in (lambda: bucket.get('key'), lambda: steps.next(0), lambda: run.publish({})):
            try:
                call()
                print('not refused')
            except deltabucket.UsedAfterFork as failure:
                assert str(os.getppid()) in str(failure)
        own = deltabucket.Bucket('forks')
        assert own.get('key') == b'1'
        steps.close(); run.close(); bucket.close(); own.close()
        del steps, run, bucket, own
        gc.collect()
        print('child done', flush=True)
    finally:
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert bucket.get('key') == b'1'
assert steps.next(0) is None
while [one.id for one in run.fleet()] != ['parent']:  # the report is on its way
    time.sleep(0.05)
run.publish({'a': numpy.zeros(3)})
assert next(steps).tensors()['a'].tolist() == [0, 0, 0]
steps.close(); run.close(); bucket.close()
print('parent done')
''', daemon=self.daemon)
        self.assertEqual((done.stdout, done.stderr), ('child done\nparent done\n', ''))

    def test_a_pool_of_forked_workers(self):
        done = run_script('''
import multiprocessing, deltabucket
mine = deltabucket.Bucket('pools')
mine.create()
mine.put('key', b'1')
def work(number):
    with deltabucket.Bucket('pools') as bucket:
        return bucket.get('key')
def fail(number):
    deltabucket.Bucket('pools').get('none')
with multiprocessing.get_context('fork').Pool(3) as pool:
    print(set(pool.map(work, range(6))))
    try:
        pool.map(fail, range(2))
    except deltabucket.NotFound as failure:
        print(failure.kind)
''', daemon=self.daemon)
        self.assertEqual((done.stdout, done.stderr), ("{b'1'}\nno_key\n", ''))


class Callbacks(unittest.TestCase):
    """Progress is told a few times a second, so the server is slow here."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())
        cls.bucket = deltabucket.Bucket('callbacks', **settings_of(cls.daemon))
        cls.addClassCleanup(cls.bucket.close)
        cls.bucket.create()
        cls.path = os.path.join(cls.daemon.scratch, 'large')
        cls.bucket.put('large', content(32 << 20))

    def slow(self):
        """The server stands still most of the time, until the test is over."""
        over = threading.Event()

        def halt():
            while not over.is_set():
                self.daemon.process.send_signal(signal.SIGSTOP)
                over.wait(0.3)
                self.daemon.process.send_signal(signal.SIGCONT)
                over.wait(0.02)
        thread = threading.Thread(target=halt)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(over.set)

    def test_progress_is_told(self):
        seen = []
        self.slow()
        self.bucket.get('large', self.path + '-told', progress=lambda *facts: seen.append(facts))
        self.assertTrue(seen)
        for what, done, total in seen:
            self.assertTrue(what and 0 <= done <= (total or done), (what, done, total))

    def fails(self, thread):
        class Own(Exception):
            pass

        def progress(what, done, total):
            raise Own(what)
        self.slow()
        with self.assertRaises(Own):
            self.bucket.get('large', f'{self.path}-{thread}', progress=progress)
        self.assertFalse(os.path.exists(f'{self.path}-{thread}'))

    def test_what_progress_raises(self):
        self.fails('main')

    def test_what_progress_raises_in_another_thread(self):
        failures = []

        def work():
            try:
                self.fails('other')
            except BaseException as failure:
                failures.append(failure)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertEqual(failures, [])

    def test_objects_are_collected_in_any_thread(self):
        """Also in one of the library, which tells of the progress of another call: a follower that
        nothing names any more is closed there."""
        self.slow()
        done = run_script('''
import gc, glob, os, sys, threading, numpy, deltabucket
run = deltabucket.Run('callbacks/collected', create_bucket=True)
run.publish({'w': numpy.arange(1000)})
def folders():
    return len(glob.glob(f'/dev/shm/deltabucket-{os.getpid()}-*'))
def drop():
    follower = run.follow(silent=True)
    next(iter(follower))
    follower.step.own = follower
def progress(what, done, total):
    if not seen:
        seen.append(folders())
        gc.collect()
        seen.append(folders())
gc.disable()
seen = []
drop()
deltabucket.Bucket('callbacks').get('large', sys.argv[1], progress=progress)
print(*seen)
drop()
thread = threading.Thread(target=gc.collect)
thread.start()
thread.join()
print(folders())
''', self.path + '-collected', daemon=self.daemon)
        self.assertEqual((done.stdout, done.stderr), ('2 1\n1\n', ''))

    @forks_beside_threads
    def test_a_download_goes_on_beside_a_child_that_was_forked_meanwhile(self):
        self.slow()
        done = run_script('''
import os, sys, time, deltabucket
bucket = deltabucket.Bucket('callbacks')
parent, children = os.getpid(), []
def progress(what, done, total):
    child = os.fork()
    if child == 0:
        while os.getppid() == parent:
            time.sleep(0.05)
        os._exit(0)
    children.append(child)
    raise LookupError
try:
    bucket.get('large', sys.argv[1], progress=progress)
except LookupError:
    pass
bucket.get('large', sys.argv[1])
print(len(children), os.path.getsize(sys.argv[1]))
os.kill(children[0], 9)
''', self.path + '-forked', daemon=self.daemon)
        self.assertEqual((done.stdout, done.stderr), (f'1 {32 << 20}\n', ''))

    def test_a_program_that_closes_nothing_leaves_nothing(self):
        """What a publisher and a follower keep in memory lies in files of /dev/shm."""
        done = run_script('''
import glob, os, numpy, deltabucket
run = deltabucket.Run('callbacks/left', create_bucket=True)
run.publish({'w': numpy.arange(1000)})
steps = run.follow(silent=True).__enter__()
assert steps.next(10).number == 0
print(len(glob.glob(f'/dev/shm/deltabucket-{os.getpid()}-*')), os.getpid())
''', daemon=self.daemon)
        self.assertEqual(done.stderr, '')
        number, process = done.stdout.split()
        self.assertEqual(number, '2')
        self.assertEqual(glob.glob(f'/dev/shm/deltabucket-{process}-*'), [])

    def test_what_is_collected_together(self):
        """A follower goes before the connection that it uses, in whatever order Python finds them
        when both are garbage at once."""
        done = run_script("""
import gc, glob, os, numpy, deltabucket
class Worker:
    def __init__(self, **options):
        self.steps = [], self
        self.run = deltabucket.Run('callbacks/collected', create_bucket=True, **options)
Worker(take_over=True).run.publish({'w': numpy.arange(1000)})
gc.collect()
for _ in range(5):
    worker = Worker()
    worker.follower = worker.run.follow()
    worker.step = next(worker.follower)
    del worker
    gc.collect()
print(glob.glob(f'/dev/shm/deltabucket-{os.getpid()}-*'))
""", daemon=self.daemon)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, '', '[]\n'))

    def test_bars_and_wrong_types(self):
        with self.assertRaises(TypeError):
            self.bucket.put('key', b'1', progress=3)
        self.slow()
        done = run_script('''
import sys, deltabucket
bucket = deltabucket.Bucket('callbacks')
bucket.get('large', sys.argv[1], progress=True)
''', self.path, daemon=self.daemon)
        self.assertEqual((done.returncode, done.stdout), (0, ''))
        self.assertIn('B/s', done.stderr)

    def test_a_bar_that_nobody_can_see_stops_nothing(self):
        """Its pipe is closed, as with `2>&1 | head`."""
        self.slow()
        process = start_script('''
import os, sys, threading, deltabucket
sys.stdin.readline()
bucket = deltabucket.Bucket('callbacks')
bucket.get('large', sys.argv[1], progress=True)
thread = threading.Thread(target=bucket.get, args=('large', sys.argv[1] + '.2'),
                          kwargs={'progress': True})
thread.start()
thread.join()
os.write(1, b'done\\n')
os._exit(0)
''', self.path + '.unseen', daemon=self.daemon)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stderr.close()
        process.stdin.write('go\n')
        process.stdin.close()
        with process.stdout:
            self.assertEqual(process.stdout.read(), 'done\n')


if __name__ == '__main__':
    unittest.main()
