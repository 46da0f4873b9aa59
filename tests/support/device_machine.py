"""A device made of this machine, for `deltabucket.gpu`: the kernels compiled for the host."""
import ctypes
import functools
import os
import subprocess

import numpy

from tests.support.daemon import BUILD, SOURCE

UNIT = os.path.join(SOURCE, 'tests', 'unit', 'weights', 'device', 'device_machine.c')
BUILD_SECONDS = 120


class Work(ctypes.Structure):
    """struct device_work"""
    _fields_ = [('blocks', ctypes.c_void_p), ('count', ctypes.c_uint32), ('upload', ctypes.c_void_p),
                ('places', ctypes.c_void_p), ('steps', ctypes.c_void_p),
                ('failures', ctypes.c_void_p), ('hashes', ctypes.c_void_p)]


class Allocated:
    def __init__(self, nbytes):
        # Filled, so that what nobody wrote shows; and at a multiple of 16.
        self.memory = numpy.full(nbytes + 16, 0xa5, numpy.uint8)
        self.address = self.memory.ctypes.data + -self.memory.ctypes.data % 16
        self.nbytes = nbytes


class DeviceMachine:
    """deltabucket.gpu.Machine over memory of the host; what was launched, in order, in `launched`.
    `before`: called with the kernel's name before each.
    made: what `library` gives, in a process that cannot make it."""

    def __init__(self, made=None):
        self.library = ctypes.CDLL(made or library())
        self.launched = []
        self.before = lambda kernel: None

    def allocate(self, nbytes):
        return Allocated(nbytes)

    def host(self, nbytes):
        return numpy.full(nbytes, 0xa5, numpy.uint8)

    def upload(self, target, source):
        ctypes.memmove(target, source.ctypes.data, source.nbytes)

    def download(self, source, nbytes):
        return numpy.frombuffer(ctypes.string_at(source.address, nbytes), numpy.uint8)

    def read(self, source, begin, nbytes):
        """Bytes from within memory that `allocate` gave; what was asked for has happened."""
        at = source.address - source.memory.ctypes.data + begin
        return source.memory[at:at + nbytes]

    def wait(self):
        """Until all that was asked for has happened."""

    def launch(self, kernel, grid, threads, arguments, count=None):
        self.before(kernel)
        self.launched.append(kernel)
        blocks, upload, places, steps, *more = arguments
        failures, hashes = (more + [None, None])[:2]
        work = Work(blocks, count or grid, upload, places, steps, failures, hashes)
        getattr(self.library, kernel.replace('device_', 'device_machine_'))(ctypes.byref(work), 1)


@functools.cache
def library():
    """The path of the kernels as a shared library of the build in $DELTABUCKET_BUILD."""
    made = os.path.join(BUILD, 'device_machine.so')
    part = f'{made}.{os.getpid()}'
    command = ['gcc', '-std=c11', '-D_GNU_SOURCE', '-O2', '-shared', '-fPIC', f'-I{SOURCE}', UNIT,
               os.path.join(BUILD, 'libbase.a'), '-o', part]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS)
    if done.returncode != 0:
        raise AssertionError(f'{command} ended with {done.returncode}: {done.stderr[-4000:]}')
    os.replace(part, made)
    return made
