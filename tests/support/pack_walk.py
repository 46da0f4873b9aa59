"""What lies where in a pack file, read from the format alone (docs/FORMAT.md, "Packs")."""
import collections
import hashlib
import struct

Part = collections.namedtuple('Part', 'kind start end')  # kind: header, record, footer

HEADER_BYTES, RECORD_HEAD, ENTRY_BYTES = 64, 8, 48
FOOTER_MAGIC, LIVE_MAGIC = b'DBKTXORB', b'DBKTLIVE'
LIVE_TAIL, LIVE_ENTRY, LIVE_XORB = 32, 52, 40


def parts_of(data):
    """Up to where the file no longer is what a pack is."""
    yield Part('header', 0, min(HEADER_BYTES, len(data)))
    at, tail = HEADER_BYTES, tail_of_compacted(data)
    end = len(data) - tail
    while at + RECORD_HEAD <= end:
        if data[at:at + 8] == FOOTER_MAGIC:
            kind, size = 'footer', 64 + ENTRY_BYTES * struct.unpack_from('<I', data, at + 8)[0]
        elif data[at] == 0 and data[at + 1:at + 4] != bytes(3):
            kind, size = 'record', RECORD_HEAD + int.from_bytes(data[at + 1:at + 4], 'little')
        else:
            break
        if at + size > end:
            break
        yield Part(kind, at, at + size)
        at += size
    if tail:
        yield Part('footer', end, len(data))


def tail_of_compacted(data):
    """Bytes of the tables at the end of a compacted pack; 0 of another."""
    if len(data) < HEADER_BYTES + LIVE_TAIL:
        return 0
    magic, chunks, xorbs = struct.unpack_from('<8sII', data, len(data) - LIVE_TAIL)
    size = LIVE_TAIL + LIVE_ENTRY * chunks + LIVE_XORB * xorbs
    return size if magic == LIVE_MAGIC and size < len(data) else 0


def records_of(data):
    """{digest of a record: its place}"""
    return {hashlib.sha256(data[part.start:part.end]).digest(): part
            for part in parts_of(data) if part.kind == 'record'}
