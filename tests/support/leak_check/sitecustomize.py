"""Python imports this at its start, where tests/run-package has put this folder into PYTHONPATH:
memory that nothing points to is told at the end of the program, while all objects that are alive
still are. After that Python frees objects, but what they hold of a library it leaves to the system.
"""
import atexit
import ctypes
import os
import time
import weakref

SETTLED_SECONDS = 0.2


def _check(process):
    """Writes a report of the leak sanitizer, which is part of the address sanitizer; the program
    goes on. Nothing without the sanitizer's runtime, and nothing in a forked child, where memory
    that only threads of the parent know seems lost."""
    check = getattr(ctypes.CDLL(None), '__lsan_do_recoverable_leak_check', None)
    if check is not None and os.getpid() == process:
        time.sleep(SETTLED_SECONDS)  # the sanitizer stumbles over threads that are just ending
        check()


# The last one called but for the end of all finalizers, which the first finalizer registers.
weakref.finalize(_check, int)
atexit.register(_check, os.getpid())
