"""The reasons for which a test may be left out. Every other skip is a failure (tests/run.py): what
setup/install or setup/clients can bring is not a reason, but for PyTorch, whose 3 GB not every
network brings in time."""
import functools
import os
import subprocess
import unittest

NO_MOUNT = 'this user may not mount file systems'
NO_FUSE = '/dev/fuse cannot be opened'
NO_ROOT = 'this user is not root, and cannot run programs as another user'
NO_TORCH = 'PyTorch (3 GB) could not be installed: build/clients/logs/torch.log says why'
NO_FORKS = 'the runtime of the address sanitizer may hang in a child that was forked beside threads'

CANNOT_BE_MENDED = frozenset({NO_MOUNT, NO_FUSE, NO_ROOT, NO_TORCH, NO_FORKS})


def needs_mount(test):
    """Marks a test, or a class of them, that mounts a file system of its own."""
    return unittest.skipUnless(can_mount(), NO_MOUNT)(test)


def needs_root(test):
    """Marks a test, or a class of them, that runs programs as root and as the user nobody."""
    return unittest.skipUnless(os.geteuid() == 0, NO_ROOT)(test)


def forks_beside_threads(test):
    """Marks a test, or a class of them, whose programs fork while they have threads: GCC's runtime
    keeps the locks of its allocator as another thread held them (tests/run-package)."""
    return unittest.skipIf('libasan' in os.environ.get('LD_PRELOAD', ''), NO_FORKS)(test)


@functools.cache
def can_mount():
    trial = 'd=$(mktemp -d) && mount -t tmpfs none $d && umount $d && rmdir $d'
    return (os.geteuid() == 0 and
            subprocess.run(['sh', '-c', trial], capture_output=True).returncode == 0)
