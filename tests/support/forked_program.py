"""A Python program that is run many times: its modules are imported once, and each run is a fork of that, which then runs the program's own script."""
import json
import os
import select
import subprocess
import tempfile

SERVER = '''
import ctypes, gc, importlib, json, os, runpy, signal, sys
program, module = sys.argv[1:]
importlib.import_module(module)
gc.freeze()
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with the parent
        for number, path in enumerate(job['streams']):
            os.dup2(os.open(path, os.O_RDWR), number)
        os.chdir(job['folder'])
        os.environ.update(job['environment'])  # beside what the import has set
        sys.argv = [program, *job['arguments']]
        runpy.run_path(program, run_name='__main__')
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
'''


class ForkedProgram:
    """Use as a context manager. One run at a time."""

    def __init__(self, path, module):
        """path: of a script whose first line names its Python. module: what takes long to import."""
        with open(path) as script:
            python = script.readline().removeprefix('#!').strip()
        self.process = subprocess.Popen([python, '-c', SERVER, path, module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={'PATH': os.environ['PATH'], 'LANG': 'C.UTF-8'})

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.process.kill()
        self.process.communicate()

    def run(self, arguments, environment, folder, data=None, timeout=120):
        """The CompletedProcess, with bytes; None: nothing to read. TimeoutExpired where it takes longer."""
        with tempfile.NamedTemporaryFile() as given, tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            given.write(data or b'')
            given.flush()
            self.process.stdin.write(json.dumps({'arguments': arguments, 'environment': environment, 'folder': folder,
                                                 'streams': [given.name, out.name, err.name]}) + '\n')
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(arguments, timeout)
            return subprocess.CompletedProcess(arguments, int(self.process.stdout.readline()), out.read(), err.read())
