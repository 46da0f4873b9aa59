"""Xet as a client speaks it, written from the formats alone: hashes, chunks, xorbs, shards and the requests of the content-addressed half.

Python has no BLAKE3, so it is here. One compression works on many blocks at once, each 32-bit word in a slot of 64 bits of one large integer;
a megabyte takes a tenth of a second.
"""
import array
import collections
import json
import os
import struct

from tests.support.daemon import ROOT_TOKEN

IV = (0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
ROUND = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
CHUNK_START, CHUNK_END, PARENT, ROOT, KEYED = 1, 2, 4, 8, 16

DATA_KEY = bytes.fromhex('6697f5775b9550de3135cbaca597181c9de421109beb2b58b4d0b04b93adf229')
NODE_KEY = bytes.fromhex('017ec5c7a5472996fd946666b48a02e65ddd536f37c76dd2f86352e64a53713f')
VERIFY_KEY = bytes.fromhex('7f1857d6ce56ed66127ff913e7a5c3f3a4cd26d5b5db49e64124987f28fb94c3')
ZERO = bytes(32)


def _compress(cv, words, counters, block_len, flags, lanes):
    """Eight words of each lane's new chaining value. All arguments but the last three have a slot for each lane."""
    ones = int.from_bytes(b'\1\0\0\0\0\0\0\0' * lanes, 'little')
    mask = ones * 0xffffffff
    v = list(cv) + [ones * word for word in IV[:4]] + [counters & mask, (counters >> 32) & mask, ones * block_len, ones * flags]
    m = list(words)
    for number in range(7):
        for index, (a, b, c, d) in enumerate(ROUND):
            v[a] = (v[a] + v[b] + m[2 * index]) & mask
            x = v[d] ^ v[a]
            v[d] = ((x >> 16) | (x << 16)) & mask
            v[c] = (v[c] + v[d]) & mask
            x = v[b] ^ v[c]
            v[b] = ((x >> 12) | (x << 20)) & mask
            v[a] = (v[a] + v[b] + m[2 * index + 1]) & mask
            x = v[d] ^ v[a]
            v[d] = ((x >> 8) | (x << 24)) & mask
            v[c] = (v[c] + v[d]) & mask
            x = v[b] ^ v[c]
            v[b] = ((x >> 7) | (x << 25)) & mask
        if number < 6:
            m = [m[i] for i in PERMUTATION]
    return [v[i] ^ v[i + 8] for i in range(8)]


def _lanes(values):
    return int.from_bytes(array.array('Q', values).tobytes(), 'little')


def _split(words, lanes):
    """Each lane's chaining value as 8 numbers."""
    columns = [array.array('Q', word.to_bytes(8 * lanes, 'little')) for word in words]
    return list(zip(*columns))


def _whole_chunks(key, data, count):
    words = array.array('I', data)
    ones = _lanes([1] * count)
    cv = [ones * word for word in key]
    counters = _lanes(range(count))
    for block in range(16):
        flags = KEYED | (CHUNK_START if block == 0 else 0) | (CHUNK_END if block == 15 else 0)
        cv = _compress(cv, [_lanes(words[16 * block + i::256]) for i in range(16)], counters, 64, flags, count)
    return _split(cv, count)


def _one_chunk(key, data, counter, last_flags):
    cv = key
    blocks = [data[at:at + 64] for at in range(0, len(data), 64)] or [b'']
    for index, block in enumerate(blocks):
        flags = KEYED | (CHUNK_START if index == 0 else 0) | (CHUNK_END | last_flags if index == len(blocks) - 1 else 0)
        cv = _compress(cv, struct.unpack('<16I', block.ljust(64, b'\0')), counter, len(block), flags, 1)
    return tuple(cv)


def _parents(key, values, flags):
    pairs = len(values) // 2
    ones = _lanes([1] * pairs)
    words = [_lanes([values[2 * pair + half][i] for pair in range(pairs)]) for half in range(2) for i in range(8)]
    return _split(_compress([ones * word for word in key], words, 0, 64, KEYED | PARENT | flags, pairs), pairs) + values[2 * pairs:]


def blake3_keyed(key, data):
    data = bytes(data)
    key = struct.unpack('<8I', key)
    if len(data) <= 1024:
        return struct.pack('<8I', *_one_chunk(key, data, 0, ROOT))
    whole = len(data) // 1024
    values = _whole_chunks(key, data[:whole * 1024], whole)
    if len(data) % 1024:
        values.append(_one_chunk(key, data[whole * 1024:], whole, 0))
    while len(values) > 2:
        values = _parents(key, values, 0)
    return struct.pack('<8I', *_parents(key, values, ROOT)[0])


def text(raw):
    """A hash as URLs and JSON have it."""
    return ''.join(f'{word:016x}' for word in struct.unpack('<4Q', raw))


def raw(hash_text):
    return struct.pack('<4Q', *(int(hash_text[at:at + 16], 16) for at in range(0, 64, 16)))


def modulo_word(raw_hash):
    return struct.unpack('<Q', raw_hash[24:])[0]


def _gear():
    path = os.path.join(os.path.dirname(__file__), '..', 'data', 'vectors', 'gear-table.txt')
    with open(path) as table:
        return [int(line, 16) for line in table if line.strip()]


GEAR = _gear()


def chunks(data):
    """The pieces that a file is cut into."""
    data = bytes(data)
    pieces, start = [], 0
    while start < len(data):
        end = min(start + 131072, len(data))
        h, at = 0, min(start + 8192 - 65, end)
        while at < end:
            h = ((h << 1) + GEAR[data[at]]) & 0xffffffffffffffff
            at += 1
            if at - start >= 8192 and not h >> 48:
                break
        pieces.append(data[start:at])
        start = at
    return pieces


def chunk_hash(data):
    return blake3_keyed(DATA_KEY, data)


def aggregate(entries):
    """The root over (hash, size)."""
    entries = list(entries)
    if not entries:
        return ZERO
    while len(entries) > 1:
        nodes, at = [], 0
        while at < len(entries):
            left = len(entries) - at
            take = left if left <= 2 else min(9, left)
            for i in range(2, take - 1) if left > 2 else ():
                if modulo_word(entries[at + i][0]) % 4 == 0:
                    take = i + 1
                    break
            group = entries[at:at + take]
            lines = ''.join(f'{text(h)} : {size}\n' for h, size in group)
            nodes.append((blake3_keyed(NODE_KEY, lines.encode()), sum(size for _, size in group)))
            at += take
        entries = nodes
    return entries[0][0]


def file_hash(entries):
    entries = list(entries)
    return blake3_keyed(ZERO, aggregate(entries)) if entries else ZERO


def range_hash(hashes):
    return blake3_keyed(VERIFY_KEY, b''.join(hashes))


def record(content, payload=None, scheme=0, version=0, size=None):
    payload = content if payload is None else payload
    size = len(content) if size is None else size
    return bytes([version]) + len(payload).to_bytes(3, 'little') + bytes([scheme]) + size.to_bytes(3, 'little') + payload


def contents(records):
    """What plain records hold."""
    pieces, at = [], 0
    while at < len(records):
        stored, size = int.from_bytes(records[at + 1:at + 4], 'little'), int.from_bytes(records[at + 5:at + 8], 'little')
        assert records[at] == 0 and records[at + 4] == 0 and stored == size, records[at:at + 8]
        pieces.append(records[at + 8:at + 8 + stored])
        at += 8 + stored
    assert at == len(records)
    return pieces


class Xorb:
    """Chunks in the order they were added."""

    def __init__(self, pieces=()):
        self.pieces = list(pieces)
        self.entries = [(chunk_hash(piece), len(piece)) for piece in self.pieces]

    @property
    def hash(self):
        return aggregate(self.entries)

    @property
    def size(self):
        return sum(size for _, size in self.entries)

    def body(self):
        return b''.join(record(piece) for piece in self.pieces)


Term = collections.namedtuple('Term', 'xorb bytes first end range')


def term(xorb, first=0, end=None):
    """The term of a file that names these chunks of a Xorb."""
    end = len(xorb.entries) if end is None else end
    part = xorb.entries[first:end]
    return Term(xorb.hash, sum(size for _, size in part), first, end, range_hash([h for h, _ in part]))


class Shard:
    """An upload shard. Terms and entries are written as they are given, right or wrong."""
    TAG = b'HFRepoMetaData' + bytes.fromhex('00556967456a7b815783a5bdd95ccdd14aa9')
    BOOKEND = b'\xff' * 32 + bytes(16)

    def __init__(self):
        self.files = []
        self.xorbs = []

    def add_file(self, hash, terms, verified=True, count=None, metadata=False):
        flags = (1 << 31 if verified else 0) | (1 << 30 if metadata else 0)
        body = hash + struct.pack('<IIQ', flags, len(terms) if count is None else count, 0)
        body += b''.join(t.xorb + struct.pack('<IIII', 0, t.bytes, t.first, t.end) for t in terms)
        if verified:
            body += b''.join(t.range + bytes(16) for t in terms)
        self.files.append(body + (bytes(48) if metadata else b''))
        return self

    def add_xorb(self, hash, entries, total=None, count=None):
        total = sum(size for _, size in entries) if total is None else total
        body, offset = hash + struct.pack('<IIII', 0, len(entries) if count is None else count, total, 0), 0
        for chunk, size in entries:
            body += chunk + struct.pack('<IIII', offset, size, 0, 0)
            offset += size
        self.xorbs.append(body)
        return self

    def body(self, footer=False):
        head = self.TAG + struct.pack('<QQ', 2, 200 if footer else 0)
        return (head + b''.join(self.files) + self.BOOKEND + b''.join(self.xorbs) + self.BOOKEND +
                (bytes(200) if footer else b''))


def file_of(xorb):
    """(hash, terms) of the file that is exactly this Xorb's content."""
    return file_hash(xorb.entries), [term(xorb)]


def shard_of(*xorbs):
    """The shard that a client sends for one file of each Xorb."""
    shard = Shard()
    for xorb in xorbs:
        shard.add_file(*file_of(xorb))
        shard.add_xorb(xorb.hash, xorb.entries)
    return shard


Answer = collections.namedtuple('Answer', 'key created expires xorbs')


def parse_answer(body):
    """What GET chunks gave: xorbs as [(hash, [(keyed chunk hash, size)])]."""
    assert body[:32] == Shard.TAG and struct.unpack('<QQ', body[32:48]) == (2, 200)
    assert body[48:96] == Shard.BOOKEND
    footer = body[-200:]
    version, files_at, xorbs_at, end, files, *_ = struct.unpack('<9Q', footer[:72])
    assert (version, files_at, xorbs_at, files) == (1, 48, 96, 0) and struct.unpack('<Q', footer[192:])[0] == len(body) - 200
    xorbs, at = [], 96
    while body[at:at + 32] != b'\xff' * 32:
        name, (_, count, total, _) = body[at:at + 32], struct.unpack('<IIII', body[at + 32:at + 48])
        entries, offset = [], 0
        for i in range(count):
            at += 48
            start, size, _, _ = struct.unpack('<IIII', body[at + 32:at + 48])
            assert start == offset
            entries.append((body[at:at + 32], size))
            offset += size
        assert offset == total
        xorbs.append((name, entries))
        at += 48
    assert at + 48 == end == len(body) - 200
    created, expires = struct.unpack('<QQ', footer[104:120])
    return Answer(footer[72:104], created, expires, xorbs)


class Cas:
    """The content-addressed half of a daemon (tests.support.daemon) with a token of one bucket, such as `main/data`."""

    def __init__(self, daemon, bucket, kind='write', token=ROOT_TOKEN, connection=None):
        self.daemon = daemon
        self.connection = connection
        reply = daemon.request('GET', f'/api/buckets/{bucket}/xet-{kind}-token', token=token, connection=connection)
        assert reply.status == 200, (reply.status, reply.body)
        self.token = reply.json()['accessToken']
        self.url = reply.json()['casUrl']
        self.bucket = bucket

    def request(self, method, path, body=None, headers=None):
        return self.daemon.request(method, '/xet' + path, body=body, headers=headers, token=self.token, connection=self.connection)

    def put_xorb(self, xorb, body=None):
        return self.request('POST', f'/v1/xorbs/default/{text(xorb.hash)}', xorb.body() if body is None else body)

    def put_shard(self, shard, version=1):
        return self.request('POST', f'/v{version}/shards', shard if isinstance(shard, bytes) else shard.body())

    def chunk(self, raw_hash):
        return self.request('GET', f'/v1/chunks/default/{text(raw_hash)}')

    def reconstruction(self, raw_hash, version=2, byte_range=None):
        headers = {'Range': f'bytes={byte_range}'} if byte_range else None
        return self.request('GET', f'/v{version}/reconstructions/{text(raw_hash)}', headers=headers)

    def fetch(self, url, byte_range=None):
        """A fetch URL, without credentials, as clients ask."""
        assert url.startswith(self.daemon.endpoint + '/xet/v1/fetch/'), url
        headers = {'Range': f'bytes={byte_range}'} if byte_range else None
        return self.daemon.request('GET', url[len(self.daemon.endpoint):], headers=headers, token=None, connection=self.connection)

    def download(self, raw_hash, version=2, byte_range=None):
        """The bytes of a file, or of a range 'a-b' of it, as a client puts them together: one request for each range of a xorb."""
        reply = self.reconstruction(raw_hash, version, byte_range)
        assert reply.status == 200, (reply.status, reply.body)
        plan, held = reply.json(), {}
        for name, entries in plan['xorbs' if version == 2 else 'fetch_info'].items():
            assert len({entry['url'] for entry in entries}) == len(entries)
            for entry in entries:
                ranges = [(r['chunks'], r['bytes']) for r in entry['ranges']] if version == 2 else [(entry['range'], entry['url_range'])]
                for chunk_range, bounds in ranges:
                    got = self.fetch(entry['url'], f'{bounds["start"]}-{bounds["end"]}')
                    assert got.status == 206 and len(got.body) == bounds['end'] - bounds['start'] + 1, (got.status, got.body[:200])
                    pieces = contents(got.body)
                    assert len(pieces) == chunk_range['end'] - chunk_range['start'] and (name, chunk_range['start']) not in held
                    held[name, chunk_range['start']] = pieces
        data = b''
        for t in plan['terms']:
            first, end = t['range']['start'], t['range']['end']
            start = max(at for name, at in held if name == t['hash'] and at <= first)
            part = b''.join(held[t['hash'], start][first - start:end - start])
            assert len(part) == t['unpacked_length'], t
            data += part
        data = data[plan['offset_into_first_range']:]
        first, last = (int(n) for n in byte_range.split('-')) if byte_range else (0, len(data) - 1)
        return data[:last - first + 1]

    def upload(self, data, xorb_chunks=1024):
        """Sends a file; gives its raw hash, the xorbs and the shard that registered it."""
        pieces = chunks(data)
        xorbs = [Xorb(pieces[at:at + xorb_chunks]) for at in range(0, len(pieces), xorb_chunks)]
        shard = Shard()
        for xorb in xorbs:
            reply = self.put_xorb(xorb)
            assert reply.status == 200, (reply.status, reply.body)
            shard.add_xorb(xorb.hash, xorb.entries)
        name = file_hash([entry for xorb in xorbs for entry in xorb.entries])
        shard.add_file(name, [term(xorb) for xorb in xorbs])
        reply = self.put_shard(shard)
        assert reply.status == 200, (reply.status, reply.body)
        return name, xorbs, shard


def batch(daemon, bucket, lines, **options):
    """POST batch of NDJSON lines to the Hub half."""
    body = ''.join(json.dumps(line) + '\n' for line in lines)
    return daemon.request('POST', f'/api/buckets/{bucket}/batch', body=body, headers={'Content-Type': 'application/x-ndjson'}, **options)
