"""Checksums of a database's pages (docs/FORMAT.md, "Pages"), and flips that they do not show."""
import ctypes

from tests.support.bit_campaign import PAGE, flipped

SUMMED = PAGE - 8

xxh3 = ctypes.CDLL('libxxhash.so.0').XXH3_64bits_withSeed
xxh3.restype = ctypes.c_uint64
xxh3.argtypes = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64


def pages_of(database):
    return [database[at:at + PAGE] for at in range(0, len(database), PAGE)]


def sum_that_differs(page, number):
    """The bits in which the checksum in a page differs from the right one. `number`: from 1."""
    return int.from_bytes(page[SUMMED:], 'little') ^ xxh3(page, SUMMED, number)


def is_summed(database):
    """Whether each page matches its checksum."""
    return not any(sum_that_differs(page, number)
                   for number, page in enumerate(pages_of(database), 1))


def hidden(database, bits):
    """`bits`, and those of their pages' checksums that have to flip with them."""
    pages, also = pages_of(flipped(database, bits)), []
    for index in {bit // 8 // PAGE for bit in bits}:
        differs = sum_that_differs(pages[index], index + 1)
        first = (index * PAGE + SUMMED) * 8
        also += [first + bit for bit in range(64) if differs >> bit & 1]
    return (*bits, *also)
