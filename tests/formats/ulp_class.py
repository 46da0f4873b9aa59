"""A reader of `ulp-class` deltas written from docs/FORMAT.md alone: slow, one bit after the other, and strict."""
import glob
import json
import os

import numpy
import xxhash
import zstandard

from tests.formats.container import Tensor, read, require

BLOCK = 1 << 20
UNCHANGED, RAW, PLANES, XOR, WORDS, ULP = range(6)
# Bits of mantissa and exponent of the dtypes that have classes.
FLOATS = {'BF16': (7, 8), 'F16': (10, 5), 'F8_E4M3': (3, 4), 'F8_E4M3FNUZ': (3, 4), 'F8_E5M2': (2, 5), 'F8_E5M2FNUZ': (2, 5)}
WIDTHS = {'BF16': 2, 'F16': 2, 'U16': 2, 'I16': 2, 'F32': 4, 'I32': 4, 'U32': 4, 'F64': 8, 'I64': 8, 'U64': 8, 'C64': 8}
PARAMETER_MAX, ESCAPE, ESCAPE_BITS, LENGTH_BITS = 20, 24, 21, 14


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        require(self.at + count <= len(self.data), 'a block ends early')
        self.at += count
        return self.data[self.at - count:self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                require(byte or shift == 7, 'a varint is longer than it need be')
                return value


class Bits:
    """The lowest bit of the first byte comes first."""

    def __init__(self, data):
        self.bits, self.at = numpy.unpackbits(numpy.frombuffer(data, 'u1'), bitorder='little').tolist(), 0

    def one(self):
        require(self.at < len(self.bits), 'a payload ends early')
        self.at += 1
        return self.bits[self.at - 1]

    def number(self, count):
        return sum(self.one() << i for i in range(count))

    def zeros(self, most):
        count = 0
        while count < most and not self.one():
            count += 1
        return count

    def gap(self, parameter):
        quotient = self.zeros(ESCAPE)
        return self.number(ESCAPE_BITS) if quotient == ESCAPE else quotient << parameter | self.number(parameter)

    def length(self):
        bits = self.zeros(LENGTH_BITS + 1)
        require(bits <= LENGTH_BITS, 'a step is too long')
        return (1 << bits | self.number(bits)) + 1

    def rest_is_empty(self):
        return len(self.bits) - self.at < 8 and not any(self.bits[self.at:])


def planes(source, words, width):
    """Words from one run of bytes for each of their bytes."""
    whole = numpy.empty((words, width), 'u1')
    for plane in range(width):
        stored = source.take(source.varint())
        data = stored if len(stored) == words else zstandard.ZstdDecompressor().decompress(bytes(stored), max_output_size=words)
        require(len(data) == words, 'a plane has another size')
        whole[:, plane] = numpy.frombuffer(data, 'u1')
    return whole.reshape(-1)


def positions(bits, count, parameter, words):
    found, at = [], -1
    for _ in range(count):
        at += bits.gap(parameter) + 1
        require(at < words, 'a change lies outside')
        found.append(at)
    return found


def lengths(bits, count):
    """How far each change goes: most one ulp, between those the longer ones; a last gap reaches the end."""
    steps, at, total, seen = numpy.ones(count, 'i8'), 0, 4, 1
    while True:
        parameter = next(k for k in range(64) if seen << k >= total)
        gap = bits.gap(parameter)
        at, total, seen = at + gap, total + gap, seen + 1
        if seen == 16:
            total, seen = total >> 1, seen >> 1
        require(at <= count, 'a step lies outside')
        if at == count:
            break
        steps[at] = bits.length()
        at += 1
    return steps


def ulp(header, payload, dtype, base):
    """`base`: the old bits as unsigned words."""
    mantissa, exponent = FLOATS[dtype]
    width = 8 * base.itemsize
    classes = numpy.clip(header['top'] - ((base.astype('i8') >> mantissa) & ((1 << exponent) - 1)), 0, len(header['counts']) - 1)
    bits = Bits(payload)
    order = []
    for number in reversed(range(len(header['counts']))):
        members = numpy.flatnonzero(classes == number)
        if header['counts'][number]:
            order.extend(members[positions(bits, header['counts'][number], header['parameters'][number], members.size)].tolist())
    order = numpy.array(order, 'i8')
    down = numpy.array([bits.one() for _ in range(order.size)], bool)
    steps = lengths(bits, order.size)
    require(bits.rest_is_empty(), 'a payload has bits left over')
    sign = 1 << width - 1
    old = base[order].astype('i8')
    places = numpy.where(old & sign, -1 - (old & ~sign), old) + numpy.where(down, -steps, steps)
    places = (places + sign) % (1 << width) - sign
    result = base.copy()
    result[order] = numpy.where(places < 0, (-1 - places) | sign, places).astype(base.dtype)
    return result


def words_of(header, payload, base, width):
    """Gaps of the changed words, then what is to be XORed to them."""
    bits = Bits(payload)
    found = positions(bits, header['changed'], header['parameter'], base.size // width)
    rest = Bytes(payload[(bits.at + 7) // 8:])
    result = base.copy().reshape(-1, width)
    result[found] ^= planes(rest, len(found), width).reshape(-1, width)
    require(rest.at == len(rest.data), 'a payload has bytes left over')
    return result.reshape(-1)


def read_header(source):
    first = source.byte()
    mode, classes = first & 15, first >> 4
    require(mode <= ULP and (mode == ULP) == (classes > 0), 'a block has the mode', first)
    header = {'mode': mode, 'hash': int.from_bytes(source.take(8), 'little'), 'payload': source.varint() if mode != UNCHANGED else 0}
    if mode == WORDS:
        header.update(changed=source.varint(), parameter=source.byte())
    if mode == ULP:
        header.update(top=source.byte(), counts=[source.varint() for _ in range(classes)])
        changing = [number for number, count in enumerate(header['counts']) if count]
        bits = Bits(source.take((5 * len(changing) + 7) // 8))
        header['parameters'] = {number: bits.number(5) for number in changing}
        require(bits.rest_is_empty() and all(k <= PARAMETER_MAX for k in header['parameters'].values()), 'a block has wrong parameters')
    return header


def decode_block(source, dtype, base):
    """`base`: the bytes of the block's words before. Gives those after, proven by their hash."""
    width = WIDTHS.get(dtype, 1)
    header = read_header(source)
    payload = bytes(source.take(header['payload']))
    plain = Bytes(payload)
    if header['mode'] == UNCHANGED:
        result = base
    elif header['mode'] == RAW:
        result = numpy.frombuffer(payload, 'u1')
    elif header['mode'] in (PLANES, XOR):
        result = planes(plain, base.size // width, width)
        require(plain.at == len(payload), 'a payload has bytes left over')
        result = result ^ base if header['mode'] == XOR else result
    elif header['mode'] == WORDS:
        result = words_of(header, payload, base, width)
    else:
        result = ulp(header, payload, dtype, base.view(f'<u{width}')).view('u1')
    require(xxhash.xxh3_64_intdigest(result.tobytes()) == header['hash'], 'a block does not become what its hash says')
    return result, header['mode']


def apply(folder, base):
    """(counts of block modes, the tensors that the delta in `folder` makes of these)."""
    paths = sorted(glob.glob(os.path.join(folder, '*.safetensors')))
    index = os.path.join(folder, 'model.safetensors.index.json')
    if os.path.exists(index):
        with open(index) as file:
            document = json.load(file)
        require(sorted(set(document['weight_map'].values())) == [os.path.basename(path) for path in paths], index, 'names other files than there are')
        require(document['metadata'].get('delta_encoding') == 'ulp-class', index, 'is no ulp-class delta')
    else:
        require([os.path.basename(path) for path in paths] == ['delta.safetensors'], folder, 'has no index and the files', paths)
    result, modes = dict(base), {}
    for path in paths:
        tensors, metadata = read(path)
        require(metadata.get('delta_encoding') == 'ulp-class' and metadata.get('compression_format') == 'none', path, 'is no ulp-class delta')
        for name, tensor in tensors.items():
            require(name in base and tensor.dtype == 'U8' and len(tensor.shape) == 1, path, name, 'is not in the base or no stream of blocks')
            old, source, pieces = base[name], Bytes(tensor.data.tobytes()), []
            step = BLOCK * WIDTHS.get(old.dtype, 1)
            for at in range(0, old.data.size, step):
                piece, mode = decode_block(source, old.dtype, old.data[at:at + step])
                pieces.append(piece)
                modes[mode] = modes.get(mode, 0) + 1
            require(source.at == len(source.data), path, name, 'has bytes left over')
            result[name] = Tensor(old.dtype, old.shape, numpy.concatenate(pieces) if pieces else old.data)
    return modes, result
