"""Runs inside an environment that has huggingface_hub: does the calls that tests.support.hub sends and answers with what they gave.

One JSON object per line. Request: {"on": "api" or "fs" or "own", "call": name, "arguments": [], "options": {}}; bytes travel as {"base64": text}.
Answer: {"value": ...} or {"failure": {"kinds": [class names, the exact one first], "message", "status", "failures"}}. The library's own output
goes to stderr. `api` is HfApi, `fs` an HfFileSystem that is made anew for each call, `own` the functions at the end of this file.
"""
import base64
import dataclasses
import datetime
import json
import os
import sys
import time

from huggingface_hub import HfApi, HfFileSystem

TUPLE_LISTS = ('add', 'copy', 'files')


def unwrap(value):
    if isinstance(value, dict):
        return base64.b64decode(value['base64']) if set(value) == {'base64'} else {key: unwrap(item) for key, item in value.items()}
    return [unwrap(item) for item in value] if isinstance(value, list) else value


def wrap(value):
    if isinstance(value, (bytes, bytearray)):
        return {'base64': base64.b64encode(value).decode()}
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, (str, int, float, type(None))):
        return value
    if isinstance(value, dict):
        return {str(key): wrap(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) or type(value).__module__.startswith('huggingface_hub'):
        return {key: wrap(item) for key, item in vars(value).items() if not key.startswith('_')}
    if hasattr(value, '__iter__'):
        return [wrap(item) for item in value]
    return repr(value)


def arguments_of(request):
    arguments = unwrap(request.get('arguments', []))
    options = unwrap(request.get('options', {}))
    for name in TUPLE_LISTS:
        if isinstance(options.get(name), list):
            options[name] = [tuple(item) if isinstance(item, list) else item for item in options[name]]
    return arguments, options


def find(request):
    name = request['call']
    if request['on'] == 'own':
        return OWN[name]
    if request['on'] == 'api':
        return getattr(HfApi(), name)
    # A fresh one: its cache of listings must not answer for the server.
    return getattr(HfFileSystem(skip_instance_cache=True), name)


def answer(request):
    arguments, options = arguments_of(request)
    try:
        return {'value': wrap(find(request)(*arguments, **options))}
    except Exception as failure:
        response = getattr(failure, 'response', None)
        return {'failure': {'kinds': [kind.__name__ for kind in type(failure).__mro__], 'message': str(failure),
                            'status': getattr(response, 'status_code', None), 'failures': wrap(getattr(failure, 'failures', []))}}


def fs_write(path, data, mode='wb'):
    with HfFileSystem(skip_instance_cache=True).open(path, mode) as file:
        file.write(data)


def fs_read(path, start=0, length=-1, mode='rb', **options):
    """One seek and one read of a file object."""
    with HfFileSystem(skip_instance_cache=True).open(path, mode, **options) as file:
        if start:
            file.seek(start)
        return file.read(length)


def fs_lines(path):
    with HfFileSystem(skip_instance_cache=True).open(path, 'r') as file:
        return file.read().split('\n')


KEPT = {}
FOLLOW_SECONDS = 45


def fs_kept(name, path, **options):
    """ls of a file system that is kept under this name, with its cache of listings."""
    if name not in KEPT:
        KEPT[name] = HfFileSystem(skip_instance_cache=True, **options)
    return KEPT[name].ls(path, detail=False)


def fs_kept_until(name, path, wanted):
    """Lists until that is the answer; what came last."""
    limit = time.monotonic() + FOLLOW_SECONDS
    while (found := sorted(fs_kept(name, path))) != wanted and time.monotonic() < limit:
        time.sleep(0.05)
    return found


def fs_subscribed(bucket):
    """Waits until the thread that follows the bucket has its stream; whether it came to that."""
    from huggingface_hub._bucket_live_follow import BUCKET_FOLLOWERS
    limit = time.monotonic() + FOLLOW_SECONDS
    while time.monotonic() < limit:
        if any(key[2] == bucket and entry[0].subscribed for key, entry in list(BUCKET_FOLLOWERS.items())):
            return True
        time.sleep(0.05)
    return False


def add_numbered(bucket, prefix, count, size=20):
    """`count` small files of differing bytes, in one call."""
    HfApi().batch_bucket_files(bucket, add=[(f'{index:0{size}d}'.encode(), f'{prefix}/{index:05d}') for index in range(count)])


def sync(source, dest, **options):
    """sync_bucket; gives (action, path) of its plan."""
    plan = HfApi().sync_bucket(source, dest, quiet=True, **options)
    return [[operation.action, operation.path] for operation in plan.operations]


OWN = {function.__name__: function for function in (fs_write, fs_read, fs_lines, fs_kept, fs_kept_until, fs_subscribed, add_numbered, sync)}


def main():
    replies = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)
    for line in sys.stdin:
        replies.write(json.dumps(answer(json.loads(line))) + '\n')
        replies.flush()


if __name__ == '__main__':
    main()
