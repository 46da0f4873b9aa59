"""What a server was asked to do and has confirmed, noted in the log of its recording (disk_log.py).

So it is known for every moment what has to be true if the power goes then. A fact is a tuple of
words that names something, such as `('object', bucket, key)`, with a JSON value; None: it is not
there. A change begins before its request is sent and ends when its reply is there. The changes of
one fact follow one another.
"""
import hashlib
import itertools

from tests.support.disk_log import Notebook

ANYTHING = 'anything'


def value_of(body):
    """An object's value."""
    return {'sha256': hashlib.sha256(body).hexdigest(), 'size': len(body)}


class Ledger(Notebook):
    """Any thread."""

    def __init__(self, path):
        super().__init__(path)
        self.numbers = itertools.count()

    def begin(self, facts):
        """Gives the change's number. facts: {fact: value}, or ANYTHING where the reply tells it."""
        number = next(self.numbers)
        self.note({'begin': number, 'facts': list(facts.items())})
        return number

    def end(self, number, facts=None):
        """Confirmed. `facts`: what the reply told."""
        self.note({'end': number, 'facts': list((facts or {}).items())})


class _Claim:
    def __init__(self, value):
        self.value, self.is_confirmed = value, False


def _claims_before(notes, cut):
    """{fact: its changes, in order}."""
    claims, begun = {}, {}
    for index, note in notes:
        number = note.get('begin', note.get('end'))
        if index >= cut or number is None:
            continue
        for fact, value in note['facts']:
            claim = _Claim(value)
            claims.setdefault(tuple(fact), []).append(claim)
            begun.setdefault(number, []).append(claim)
        if 'end' in note:
            for claim in begun.pop(number, ()):
                claim.is_confirmed = True
    return claims


def allowed(notes, cut):
    """{fact: the values it may have}.

    They are the one that was confirmed last, and those of changes that began after it and were not
    confirmed yet.
    """
    values = {}
    for fact, changes in _claims_before(notes, cut).items():
        confirmed = [at for at, claim in enumerate(changes) if claim.is_confirmed]
        since = changes[confirmed[-1]:] if confirmed else [_Claim(None), *changes]
        values[fact] = [claim.value for claim in since]
    return values


def confirmations(notes):
    """Indexes of the records that confirm a change."""
    return [index for index, note in notes if 'end' in note]
