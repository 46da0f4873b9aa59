"""The connection to a server that `Run` and `Bucket` are made of."""
from __future__ import annotations

import json
import os
from typing import Any

from deltabucket._calls import CFunction, Watch, collecting
from deltabucket._library import (Handle, OfOneProcess, c_path, c_text, defaults, made_of,
                                  new_error, text_of)
from deltabucket._native import ffi, lib
from deltabucket.progress import Progress, shown


class Client(OfOneProcess):
    """A server, as endpoint, token and CA name it. It may be used by any number of threads."""

    def __init__(self, endpoint: str | None = None, token: str | None = None,
                 ca: str | os.PathLike[str] | None = None, *, profile: str | None = None,
                 retries: int | None = None, parallel: int = 0, threads: int = 0) -> None:
        settings = defaults('deltabucket_client_settings')
        texts = {'endpoint': c_text(endpoint, 'endpoint'), 'token': c_text(token, 'token'),
                 'ca': c_path(ca, 'CA') if ca is not None else ffi.NULL,
                 'profile': c_text(profile, 'profile')}
        for member, text in texts.items():
            setattr(settings, member, text)
        if retries is not None:
            settings.retries = retries if retries > 0 else -1
        settings.parallel = parallel
        settings.threads = threads
        err = new_error()
        pointer = lib.deltabucket_client_new(settings, err)
        if pointer == ffi.NULL:
            raise made_of(err)
        self.handle = Handle('client', pointer, lib.deltabucket_client_free)
        self.endpoint = text_of(lib.deltabucket_client_endpoint(pointer))

    def call(self, function: CFunction, progress: Progress = False) -> Any:
        """Runs a call that shows its progress. The handle must be used inside of `function`."""
        with shown(progress) as report:
            return Watch(report).run(function)

    def ask(self, target: str) -> Any:
        """The server's answer to a GET of `target`, as json.loads gives it; None when it has
        nothing to say (204)."""
        answers: list[bytes] = []
        asked = c_text(target, 'target')

        def ask(owner: Any, watch: Any, err: Any) -> int:
            with self.handle.use() as client:
                return int(lib.deltabucket_ask(client, asked, lib.deltabucket_python_answer,
                                               owner, watch, err))
        self.call(collecting(answers.append, ask))
        return json.loads(answers[-1]) if answers and answers[-1] else None

    def close(self) -> None:
        self.handle.close()
