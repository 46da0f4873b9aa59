"""What the threads, futures and small servers of a test raise while nobody asks.

Python prints such exceptions and goes on, so a test would pass that has failed beside its own
thread. One `Strays` watches the process from its making on; tests/run.py takes what it holds.
"""
import concurrent.futures
import functools
import socketserver
import sys
import threading


class Strays:
    def __init__(self):
        self.lock = threading.Lock()
        self.held = {}  # whose it is -> (type, exception, traceback)
        self._watch_threads()
        self._watch_futures(concurrent.futures.Future)
        self._watch_servers(socketserver.BaseServer)

    def take(self):
        """What was raised since the last call and has reached nobody, as sys.exc_info() has it."""
        with self.lock:
            taken, self.held = list(self.held.values()), {}
        return taken

    def wait_for_threads(self):
        """For those that the end of the process would wait for."""
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()

    def _hold(self, whose, failure):
        with self.lock:
            self.held[whose] = type(failure), failure, failure.__traceback__

    def _release(self, whose):
        with self.lock:
            self.held.pop(whose, None)

    def _watch_threads(self):
        show = threading.excepthook

        def hook(raised):
            show(raised)
            if raised.exc_type is not SystemExit:
                self._hold(object(), raised.exc_value)
        threading.excepthook = hook

    def _watch_futures(self, kind):
        """A future's exception is a stray one until somebody asks for the result."""
        keep = kind.set_exception

        def set_exception(future, failure):
            self._hold(future, failure)
            keep(future, failure)

        def asking(ask):
            @functools.wraps(ask)
            def wrapped(future, timeout=None):
                try:
                    return ask(future, timeout)
                finally:
                    self._release(future)
            return wrapped
        kind.set_exception = set_exception
        kind.result, kind.exception = asking(kind.result), asking(kind.exception)

    def _watch_servers(self, kind):
        """A client that goes away is no failure of the server that answers it."""
        show = kind.handle_error

        def handle_error(server, request, address):
            show(server, request, address)
            failure = sys.exc_info()[1]
            if not isinstance(failure, OSError):
                self._hold(object(), failure)
        kind.handle_error = handle_error
