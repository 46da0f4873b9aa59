"""Whether what callers saw of one object fits an order in which their requests could have run one at a time.

The object is a register: it has a value, or None. The search is that of Wing and Gong, with the states that were seen before
remembered (Lowe). A request without an answer (the server was killed) may have run at any time since it began, or never.
"""
import math

PUT, DELETE, GET = 'put', 'delete', 'get'
ABSENT = 'absent'  # the condition If-None-Match: *
REFUSED = 'refused'  # the answer to a request whose condition did not hold


class Operation:
    """`condition`: None, ABSENT or the value that must be there. `answer`: the value that a GET found (None: there is none), REFUSED, or 'done'."""

    def __init__(self, kind, begun, value=None, condition=None):
        self.kind, self.begun, self.value, self.condition = kind, begun, value, condition
        self.ended, self.answer, self.is_answered = math.inf, None, False

    def answered(self, ended, answer):
        self.ended, self.answer, self.is_answered = ended, answer, True

    def __repr__(self):
        return (f'{self.kind} {self.value} if {self.condition}: {self.answer if self.is_answered else "no answer"}'
                f' ({self.begun:.4f} to {self.ended:.4f})')

    def holds(self, state):
        """Whether the condition does."""
        return self.condition is None or (state is None if self.condition == ABSENT else state == self.condition)

    def run(self, state):
        """The state after it, and whether its answer fits."""
        if self.kind == GET:
            return state, not self.is_answered or self.answer == state
        if not self.holds(state):
            return state, not self.is_answered or self.answer == REFUSED
        return (self.value if self.kind == PUT else None), not self.is_answered or self.answer == 'done'


def is_linear(operations, first=None):
    """`first`: the value before all of them."""
    operations = sorted(operations, key=lambda operation: operation.begun)
    answered = sum(1 << number for number, operation in enumerate(operations) if operation.is_answered)
    seen, waiting = set(), [(0, first)]
    while waiting:
        run, state = waiting.pop()
        if run & answered == answered:
            return True
        if (run, state) in seen:
            continue
        seen.add((run, state))
        waiting += _next_states(operations, run, state)
    return False


def _next_states(operations, run, state):
    """Only what began before every request that has not run yet ended can run next."""
    limit = min(operation.ended for number, operation in enumerate(operations) if not run >> number & 1)
    for number, operation in enumerate(operations):
        if operation.begun > limit:
            return
        if not run >> number & 1:
            after, fits = operation.run(state)
            if fits:
                yield run | 1 << number, after
