"""Moves of deltabucket.vllm that fail, for the servers of tests/engines."""
import os
import signal


class Broken:
    """A move that leaves one element of its pairs wrong. what: undo: it cannot be taken back either; kill: the process is killed when half of the pairs
    are written; anything else: taking it back mends it."""

    def __init__(self, move, what):
        self.move, self.what = move, what

    def apply(self):
        pairs = self.pairs()
        if self.what == 'kill':
            for one in pairs[::2]:
                one.write(one.new)
            os.kill(os.getpid(), signal.SIGKILL)
        write = pairs[0].write

        def broken(values):
            pairs[0].write = write
            write(values)
            pairs[0].bits[pairs[0].places[0]] ^= 1
        pairs[0].write = broken
        return self.move.apply()

    def pairs(self):
        from deltabucket.vllm.change import Change
        change = self.move if isinstance(self.move, Change) else self.move._pairs
        return change._there()

    def undo(self):
        return False if self.what == 'undo' else self.move.undo()

    def __getattr__(self, name):
        return getattr(self.move, name)
