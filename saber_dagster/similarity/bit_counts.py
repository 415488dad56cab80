"""Counting in bit planes: the overlaps of one query with 64 documents in each machine word.

A column is a row of bits, one per document: whether it has a certain word. Plane p holds bit p of a
number per document: how many of the query's words it has. Adding seven columns takes 20 logical
instructions per 64 documents, or per 256 and 512 with vector instructions, and a comparison with a
number takes one per plane. Nothing overflows: a query of n words gets as many planes as n has binary
digits.

The kernels check no bounds. Words are counted without a sign where they do not begin at 0: an index that
may be negative keeps LLVM from vectorizing. ``columns`` is (n_tiles, n_columns, n) uint64; ``planes`` is
(n_planes, n) uint64, of which the first ``top`` planes, at least ``LEAST_PLANES``, are in use.
"""

from typing import Any

import numpy as np

from saber_dagster.similarity.kernel import kernel

LEAST_PLANES = 4
"""So many planes are treated at once; more are treated one by one."""

_ONE, _ALL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_PAIRS, _NIBBLES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_BYTES, _SUM = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


@kernel
def set_bits(x: Any) -> Any:
    """The number of set bits of a uint64; LLVM knows the pattern and takes one instruction."""
    x = x - ((x >> _ONE) & _PAIRS)
    x = (x & _NIBBLES) + ((x >> np.uint64(2)) & _NIBBLES)
    x = (x + (x >> np.uint64(4))) & _BYTES
    return (x * _SUM) >> np.uint64(56)


@kernel
def lowest_bit(x: Any) -> Any:
    """The position of the lowest set bit of a uint64 that is not 0."""
    return np.int64(set_bits((x & (~x + _ONE)) - _ONE))


@kernel
def _add3(a: Any, b: Any, c: Any) -> Any:
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@kernel
def _add7(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
    s0, k0 = _add3(a, b, c)
    s1, k1 = _add3(d, e, f)
    ones, k2 = _add3(s0, s1, g)
    twos, fours = _add3(k0, k1, k2)
    return ones, twos, fours


@kernel
def _seven(which: Any, at: int) -> Any:
    return (
        which[at],
        which[at + 1],
        which[at + 2],
        which[at + 3],
        which[at + 4],
        which[at + 5],
        which[at + 6],
    )


@kernel
def _sum_of(columns: Any, tile: int, seven: Any, w: int) -> Any:
    a, b, c, d, e, f, g = seven
    return _add7(
        columns[tile, a, w],
        columns[tile, b, w],
        columns[tile, c, w],
        columns[tile, d, w],
        columns[tile, e, w],
        columns[tile, f, w],
        columns[tile, g, w],
    )


@kernel
def sum_seven(columns: Any, tile: int, which: Any, at: int, planes: Any, n: int) -> None:
    """Set the first four planes to the sum of the seven columns ``which[at:at + 7]``."""
    seven = _seven(which, at)
    for w in range(n):
        ones, twos, fours = _sum_of(columns, tile, seven, w)
        planes[0, w] = ones
        planes[1, w] = twos
        planes[2, w] = fours
        planes[3, w] = 0


@kernel
def add_seven(
    columns: Any, tile: int, which: Any, at: int, planes: Any, top: int, carry: Any, n: int
) -> None:
    """Add the seven columns ``which[at:at + 7]`` to ``top`` planes; ``carry`` is (n,) scratch."""
    seven = _seven(which, at)
    for w in range(n):
        ones, twos, fours = _sum_of(columns, tile, seven, w)
        p0, p1, p2, p3 = planes[0, w], planes[1, w], planes[2, w], planes[3, w]
        planes[0, w] = p0 ^ ones
        sum1, k1 = _add3(p1, twos, p0 & ones)
        sum2, k2 = _add3(p2, fours, k1)
        planes[1, w] = sum1
        planes[2, w] = sum2
        planes[3, w] = p3 ^ k2
        carry[w] = p3 & k2
    for p in range(4, top):
        for w in range(n):
            old = planes[p, w]
            planes[p, w] = old ^ carry[w]
            carry[w] &= old


@kernel
def add_one(planes: Any, slot: Any) -> None:
    """Add 1 to the number of the document at ``slot``."""
    w = slot >> 6
    carry = _ONE << np.uint64(slot & 63)
    for p in range(2):  # without a branch: it would often be guessed wrong
        old = planes[p, w]
        planes[p, w] = old ^ carry
        carry &= old
    p = 2
    while carry:
        old = planes[p, w]
        planes[p, w] = old ^ carry
        carry &= old
        p += 1


@kernel
def number_at(planes: Any, top: int, slot: Any) -> Any:
    """The number of the document at ``slot``."""
    w, bit = slot >> 6, np.uint64(slot & 63)
    number = np.int64(0)
    for p in range(LEAST_PLANES):
        number |= np.int64((planes[p, w] >> bit) & _ONE) << p
    for p in range(LEAST_PLANES, top):
        number |= np.int64((planes[p, w] >> bit) & _ONE) << p
    return number


@kernel
def at_least(planes: Any, top: int, least: int, start: int, stop: int, found: Any) -> None:
    """Set the bits of ``found[start:stop]`` to whether the numbers are at least ``least``.

    Digit by digit from the lowest: a number with a 1 where ``least`` has a 0 is greater so far, with
    a 0 where it has a 1 is less, and otherwise stays what it was.
    """
    o0 = np.uint64(0) if least & 1 else _ALL
    o1 = np.uint64(0) if least & 2 else _ALL
    o2 = np.uint64(0) if least & 4 else _ALL
    o3 = np.uint64(0) if least & 8 else _ALL
    for w in range(np.uint64(start), np.uint64(stop)):
        reached = planes[0, w] | o0
        p1, p2, p3 = planes[1, w], planes[2, w], planes[3, w]
        reached = (p1 & reached) | (o1 & (p1 | reached))
        reached = (p2 & reached) | (o2 & (p2 | reached))
        found[w] = (p3 & reached) | (o3 & (p3 | reached))
    for p in range(4, top):
        if (least >> p) & 1:
            for w in range(np.uint64(start), np.uint64(stop)):
                found[w] &= planes[p, w]
        else:
            for w in range(np.uint64(start), np.uint64(stop)):
                found[w] |= planes[p, w]


@kernel
def _count_sixteen(planes: Any, mask: Any, start: int, stop: int, counts: Any, base: int) -> None:
    """Add to ``counts[base + v]``, v from 0 to 15, how many masked documents have low digits v."""
    n = np.zeros(16, dtype=np.int64)
    c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = np.uint64(0)
    c8 = c9 = c10 = c11 = c12 = c13 = c14 = c15 = np.uint64(0)
    for w in range(np.uint64(start), np.uint64(stop)):
        m = mask[w]
        x0 = m & planes[0, w]
        x1 = m & planes[1, w]
        x2 = m & planes[2, w]
        x3 = m & planes[3, w]
        x01, x02, x12 = x0 & x1, x0 & x2, x1 & x2
        x012 = x01 & x2
        c0 += set_bits(m)
        c1 += set_bits(x0)
        c2 += set_bits(x1)
        c3 += set_bits(x01)
        c4 += set_bits(x2)
        c5 += set_bits(x02)
        c6 += set_bits(x12)
        c7 += set_bits(x012)
        c8 += set_bits(x3)
        c9 += set_bits(x3 & x0)
        c10 += set_bits(x3 & x1)
        c11 += set_bits(x3 & x01)
        c12 += set_bits(x3 & x2)
        c13 += set_bits(x3 & x02)
        c14 += set_bits(x3 & x12)
        c15 += set_bits(x3 & x012)
    n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7] = c0, c1, c2, c3, c4, c5, c6, c7
    n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15] = c8, c9, c10, c11, c12, c13, c14, c15
    # n[v] counts the documents that have at least the digits of v; take away those that have more
    for digit in range(4):
        for v in range(16):
            if not (v >> digit) & 1:
                n[v] -= n[v | (1 << digit)]
    for v in range(16):
        counts[base + v] += n[v]


@kernel
def count_numbers(planes: Any, top: int, mask: Any, start: int, stop: int, counts: Any) -> None:
    """Add to ``counts[v]`` how many documents of the words from start to stop have number v.

    Args:
        planes: the numbers.
        top: how many planes they have.
        mask: (n,) uint64 scratch.
        start: first word.
        stop: word after the last.
        counts: int64, added to; its size is a multiple of 16 above the largest number.
    """
    for high in range(counts.size >> 4):
        for w in range(np.uint64(start), np.uint64(stop)):
            mask[w] = _ALL
        for p in range(4, top):
            flip = np.uint64(0) if (high >> (p - 4)) & 1 else _ALL
            for w in range(np.uint64(start), np.uint64(stop)):
                mask[w] &= planes[p, w] ^ flip
        _count_sixteen(planes, mask, start, stop, counts, high << 4)
