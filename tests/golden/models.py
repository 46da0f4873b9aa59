"""What golden data is made of: text and weights that are the same in every run."""
import random
import struct

WORDS = ('gradient', 'reward', 'policy', 'rollout', 'anchor', 'delta', 'tensor', 'epoch', 'lease', 'shard', 'chunk', 'pack')


def prose(seed, size):
    """Text that compresses well and has no long repeats, so that it has chunk boundaries of its own."""
    draw = random.Random(seed)
    lines = []
    while sum(map(len, lines)) < size:
        lines.append(f'{draw.randrange(1000)} {draw.choice(WORDS)} {draw.choice(WORDS)}\n')
    return ''.join(lines).encode()[:size]


def weights(seed, elements):
    """BF16 around 1, as weights are: the high bytes alike, the low ones not."""
    draw = random.Random(seed)
    return struct.pack(f'<{elements}H', *(0x3f00 + draw.randrange(256) for _ in range(elements)))


def changed(data, width, changes):
    """`data` with the lowest bit of these elements of `width` bytes turned."""
    out = bytearray(data)
    for element in changes:
        out[element * width] ^= 1
    return bytes(out)


def model(step, floats_change_at=2):
    """A made-up model: from step to step some BF16 elements change, and at one step the F32 tensor too."""
    embed, layer = weights(1, 1024), weights(2, 768)
    for done in range(1, step + 1):
        embed = changed(embed, 2, (0, 1, 17 * done, 1023))
        layer = changed(layer, 2, (5 * done, 5 * done + 1))
    norm = struct.pack('<16f', *(1 + (step >= floats_change_at) / (i + 2) for i in range(16)))
    return {'embed': ('BF16', [64, 16], embed), 'empty': ('BF16', [0, 4], b''), 'layer.norm': ('F32', [16], norm),
            'layer.w': ('BF16', [32, 24], layer), 'steps': ('I64', [], struct.pack('<q', 7))}
