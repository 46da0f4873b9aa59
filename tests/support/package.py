"""The Python package deltabucket, built once per build folder with the library that lies there."""
import fcntl
import os
import subprocess
import sys

from tests.support.clients import INSTALLED, importable
from tests.support.daemon import BUILD, ROOT_TOKEN, SOURCE, environment_of_programs

PYTHON = os.path.join(INSTALLED, 'package', 'bin', 'python')
FOLDER = os.path.join(BUILD, 'python')
PACKAGE = os.path.join(FOLDER, 'lib')
BUILD_SECONDS = 300
# What a shell starts in the background has SIGINT ignored, and so have its children.
HEED_CTRL_C = 'import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n'
HANG_SECONDS = 900  # of a program, also under a sanitizer on a busy machine


def package_is_ready(*modules, environment='package'):
    """Builds the package and makes it importable in this process, with these modules of an
    environment of setup/clients; says whether they are there."""
    if not importable('numpy', 'ml_dtypes', 'cffi', *modules, environment=environment):
        return False
    build()
    if PACKAGE not in sys.path:
        sys.path.insert(0, PACKAGE)
    return True


def build():
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, 'lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [PYTHON, 'setup.py', '-q', 'build', '--build-base', os.path.join(FOLDER, 'temp'),
                   '--build-lib', PACKAGE]
        environment = dict(environment_of_programs(),
                           DELTABUCKET_LIBRARY=os.path.join(BUILD, 'libdeltabucket.so'))
        done = subprocess.run(command, cwd=os.path.join(SOURCE, 'python'), env=environment,
                              capture_output=True, text=True, timeout=BUILD_SECONDS)
        if done.returncode != 0:
            raise AssertionError(f'{command} ended with {done.returncode}: {done.stderr[-4000:]}')


def run_script(script, *arguments, timeout=HANG_SECONDS, **options):
    """Runs a Python text in a process of its own, with the package; gives the CompletedProcess.
    options: as for `start_script`."""
    with start_script(script, *arguments, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def start_script(script, *arguments, environment='package', daemon=None, beside=()):
    """The same, begun: a Popen with text pipes. beside: folders of setup/clients with more modules."""
    python = os.path.join(INSTALLED, environment, 'bin', 'python')
    variables = {name: value for name, value in os.environ.items()
                 if not name.startswith('DELTABUCKET_')}
    paths = [PACKAGE, *(os.path.join(INSTALLED, name) for name in beside)]
    paths += filter(None, [os.environ.get('PYTHONPATH')])
    variables.update(PYTHONPATH=os.pathsep.join(paths), PYTHONFAULTHANDLER='1',
                     **variables_of(daemon))
    return subprocess.Popen([python, '-c', HEED_CTRL_C + script, *map(str, arguments)],
                            env=variables, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


# Forks, so that what takes seconds to import is imported once. A rank that fails ends the others.
RANKS = '''
import ctypes, gc, os, signal, sys
counts, imports, script = sys.argv[1:4]
del sys.argv[1:4]
gc.disable()
exec(imports)
gc.freeze()  # else each rank would look through all that was imported, and copy it for that
gc.enable()

def fork(rank, ranks):
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with the parent
        sys.argv[1:1] = [str(rank), str(ranks)]
    return child

def wait(children):
    while children:
        child, status = os.wait()
        children.remove(child)
        if status != 0:
            for other in children:
                os.kill(other, signal.SIGKILL)
            sys.exit(1)

def begin():
    for ranks in map(int, counts.split()):
        children = []
        for rank in range(ranks):
            children.append(fork(rank, ranks))
            if children[-1] == 0:
                return True
        wait(children)

if begin():
    exec(script)
'''


def run_ranks(imports, script, counts, *arguments, **options):
    """Runs a Python text in several processes at once, after `imports`, which happen once; their
    sys.argv is [.., rank, ranks, *arguments]. counts: so many ranks, one group after the other.
    Gives the CompletedProcess of all, whose returncode is 0 where all have ended well."""
    return run_script(RANKS, ' '.join(map(str, counts)), imports, script, *arguments, **options)


def variables_of(daemon):
    """What the README has users export."""
    if daemon is None:
        return {}
    return {'DELTABUCKET_ENDPOINT': daemon.endpoint, 'DELTABUCKET_TOKEN': ROOT_TOKEN,
            'DELTABUCKET_CA': daemon.ca}


def settings_of(daemon):
    """Arguments for Run and Bucket."""
    return {'endpoint': daemon.endpoint, 'token': ROOT_TOKEN, 'ca': daemon.ca}
