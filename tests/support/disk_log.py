"""The log of disk_recorder.c: read whole, and written to by those who drive the recorded program.

Their records are notes: JSON objects, in their place among the calls.
"""
import collections
import json
import mmap
import os
import re
import struct

from tests.support.daemon import BUILD, SERVER

RECORDER = os.path.join(BUILD, 'disk_recorder.so')
KILL_AT = 'DISK_RECORDER_KILL_AT'
MAGIC = 0x43455244
HEAD = struct.Struct('<IIIIIIQQQ')
(NOTE, CREATE, FOLDER, LINK, SYMLINK, RENAME, UNLINK, WRITE, LENGTH, SYNC, SYNCED,
 MAPPED) = range(1, 13)

# `file` is an inode. Paths are relative to the recorded folder.
Record = collections.namedtuple('Record', 'index kind process path other file at data')


def is_plain_build():
    """A server with a sanitizer does not stand another library that is loaded first."""
    with open(SERVER, 'rb') as file:
        return re.search(rb'__[at]san_init', file.read()) is None


def recorded(folder, log, sync_us=0, kill_at=None):
    """The environment of a program that is to be recorded."""
    assert os.path.exists(RECORDER), f'{RECORDER} is missing: make check-programs builds it'
    variables = {'LD_PRELOAD': RECORDER, 'DISK_RECORDER_FOLDER': folder,
                 'DISK_RECORDER_LOG': log, 'DISK_RECORDER_SYNC_US': str(sync_us)}
    return variables if kill_at is None else {**variables, KILL_AT: str(kill_at)}


def read_log(path):
    """All records. A last one that is cut off, because its program was killed, is left out."""
    if os.path.getsize(path) == 0:
        return []
    with open(path, 'rb') as file:
        text = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    records, at = [], 0
    while at + HEAD.size <= len(text):
        magic, kind, *lengths, process, _, inode, place, data_len = HEAD.unpack_from(text, at)
        assert magic == MAGIC, f'{path} has no record at byte {at}'
        at += HEAD.size
        pieces = []
        for length in (*lengths, data_len):
            pieces.append(text[at:at + length])
            at += length
        if at <= len(text):
            names = [bytes(piece).decode() for piece in pieces[:2]]
            records.append(Record(len(records), kind, process, *names, inode, place, pieces[2]))
    return records


def notes(records):
    """(index, what was noted) of each note."""
    return [(record.index, json.loads(bytes(record.data)))
            for record in records if record.kind == NOTE]


class Notebook:
    """Appends notes. Any thread: each note is one write."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, what):
        data = json.dumps(what).encode()
        text = HEAD.pack(MAGIC, NOTE, 0, 0, os.getpid(), 0, 0, 0, len(data)) + data
        assert os.write(self.file, text) == len(text)

    def close(self):
        os.close(self.file)
