"""What can fail. Every failure of the library is an `Error`; kinds that callers handle are classes.

`Error.kind` is the word of docs/LIBRARY.md ("no_key", "head_moved"), so a kind without a class of
its own can be told too. Wrong types and values of arguments are TypeError and ValueError, as
elsewhere in Python.
"""
from __future__ import annotations


class Error(Exception):
    """A failed call. `str(error)` is a sentence that names the object and what was wrong with it.

    kind: the kind's name, like 'no_key'. It never changes its meaning.
    number: the kind's number, above 0. 0 for the kinds that only this package has.
    request_id: of the request that the server refused, as its log has it; '' when none was.
    os_errno: of the operating system, 0 when it had no part in it.
    """

    def __init__(self, text: str, *, kind: str = '', number: int = 0, request_id: str = '',
                 os_errno: int = 0) -> None:
        super().__init__(text)
        self.kind = kind
        self.number = number
        self.request_id = request_id
        self.os_errno = os_errno

    def __reduce__(self) -> tuple[object, ...]:
        """Failures travel between processes, of a pool for example."""
        return _remake, (type(self), str(self), self.kind, self.number, self.request_id,
                         self.os_errno)


class NotFound(Error):
    """The bucket, object, run, step or file does not exist, or the step has been removed."""


class Denied(Error):
    """The token is missing, unknown, or may not do this."""


class Unreachable(Error):
    """The server cannot be reached, or still answered with an error after all tries."""


class Untrusted(Unreachable):
    """The server's certificate is not trusted, or is not the server's."""


class Exists(Error):
    """The thing that was to be made exists already."""


class HeadMoved(Error):
    """The step does not follow the run's newest one: another publisher was there first."""


class StaleEpoch(Error):
    """Another publisher has taken over the run; this one is shut out."""


class SchemaMismatch(Error):
    """The tensors have other names, dtypes or shapes than those of the run or of the step."""


class WrongBase(Error):
    """The tensors are not those that the delta was made from."""


class DigestMismatch(Error):
    """Bytes, or the result of a delta, do not have their digest."""


class Damaged(Error):
    """Stored or received bytes are not what they should be."""


class NoSpace(Error):
    """The disk, here or at the server, is full."""


class Busy(Error):
    """Somebody else holds the folder or the run, or the server is stopping."""


class Cancelled(Busy):
    """The call was ended by `close`, by a cancelled task or by the end of the program."""


class NotReady(Error):
    """The thing that was asked for cannot be had yet."""


class Invalid(Error):
    """The input breaks a rule: a name, a setting, a file that is cut short."""


class Unsupported(Error):
    """A known thing that this version does not do."""


class TooFarBehind(Error):
    """The worker lags by more steps than its `max_lag` (kind 'too_far_behind')."""


class UsedAfterFork(Error):
    """The object was made before a fork, by the parent process (kind 'used_after_fork')."""


class Spoiled(Error):
    """A failure without proof in advance has left tensors half changed: they are worth nothing.
    `__cause__` is the failure itself (kind 'spoiled')."""


KINDS: dict[str, type[Error]] = {
    **dict.fromkeys(('not_found', 'no_bucket', 'no_key', 'no_run', 'no_step', 'no_version',
                     'no_upload', 'collected'), NotFound),
    **dict.fromkeys(('denied', 'no_credentials', 'unknown_key_id', 'signature', 'skew',
                     'auth_malformed', 'invalid_token'), Denied),
    'upstream': Unreachable,
    'untrusted': Untrusted,
    **dict.fromkeys(('exists', 'bucket_owned', 'bucket_taken'), Exists),
    **dict.fromkeys(('head_moved', 'step_differs', 'base_missing'), HeadMoved),
    'stale_epoch': StaleEpoch,
    **dict.fromkeys(('schema_mismatch', 'incomplete_anchor'), SchemaMismatch),
    'wrong_base': WrongBase,
    **dict.fromkeys(('digest_mismatch', 'bad_digest', 'sha256_mismatch'), DigestMismatch),
    **dict.fromkeys(('corrupt', 'damaged', 'content_damaged', 'step_failed'), Damaged),
    'no_space': NoSpace,
    'busy': Busy,
    'not_ready': NotReady,
    **dict.fromkeys(('invalid', 'invalid_request', 'bad_name', 'key_too_long', 'too_large',
                     'range', 'bad_uri', 'parts_mismatch'), Invalid),
    'unsupported': Unsupported,
}


def _remake(made: type[Error], text: str, kind: str, number: int, request_id: str,
            os_errno: int) -> Error:
    return made(text, kind=kind, number=number, request_id=request_id, os_errno=os_errno)
