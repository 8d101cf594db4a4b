"""Adaptive range coder of whole numbers: small numbers after small numbers cost few bits.

A table of numbers is coded row by row. Each number is told in binary decisions (zero or not, sign, one more or not),
and each decision has its own running probability, chosen by how large the neighbours were that both sides know already:
the two numbers before it in the row, and those around its place in the row above. Martin 1979; the carry as in LZMA.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Ints
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError

__all__ = ["decode_table", "encode_table"]

_MOST_NUMBERS = 1 << 26

#: Contexts, and decisions told apart in each: zero or not, then one more or not up to this many times.
_CONTEXTS, _STEPS = 12, 18
_ONE = 1 << 16


@compiled
def _context(table: Ints, row: int, column: int) -> int:
    near = 0
    if column > 0:
        near += 2 * abs(table[row, column - 1])
    if column > 1:
        near += abs(table[row, column - 2])
    if row > 0:
        near += abs(table[row - 1, column])
        if column + 1 < table.shape[1]:
            near += abs(table[row - 1, column + 1])
    if near < 6:
        return near
    if near < 9:
        return 6
    if near < 14:
        return 7
    if near < 24:
        return 8
    if near < 48:
        return 9
    if near < 120:
        return 10
    return 11


@compiled
def _adapt(chances: Ints, counts: Ints, context: int, step: int, bit: int) -> None:
    """Move the chance of a 0 towards what was seen: fast at first, then by 1/64."""
    rate = min(counts[context, step] + 2, 64)
    counts[context, step] = min(counts[context, step] + 1, 64)
    if bit == 0:
        chances[context, step] += (_ONE - 32 - chances[context, step]) // rate
    else:
        chances[context, step] -= (chances[context, step] - 32) // rate


@compiled
def _shift(
    low: np.int64, cache: np.int64, pending: int, length: int, out: np.ndarray
) -> tuple[np.int64, np.int64, int, int]:
    """Let the top byte of ``low`` go; bytes of 255 wait, for a carry may still run through them."""
    if low < 0xFF000000 or low > 0xFFFFFFFF:
        carry = low >> 32
        while pending:
            out[length] = (cache + carry) & 0xFF
            length += 1
            cache = np.int64(0xFF)
            pending -= 1
        cache = (low >> 24) & 0xFF
    return (low & 0x00FFFFFF) << 8, cache, pending + 1, length


@compiled
def _encode(table: Ints, out: np.ndarray) -> int:
    chances = np.full((_CONTEXTS, _STEPS), _ONE // 2, np.int64)
    counts = np.zeros((_CONTEXTS, _STEPS), np.int64)
    low, width, cache, pending, length = np.int64(0), np.int64(0xFFFFFFFF), np.int64(0), 1, 0
    bits = np.empty(96, np.int64)
    steps = np.empty(96, np.int64)
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            value = table[row, column]
            context = _context(table, row, column)
            size = abs(value)
            count = 0
            # Decisions: step >= 0 has a running chance, -1 is an even one.
            bits[0], steps[0], count = (0 if size == 0 else 1), 0, 1
            if size > 0:
                bits[1], steps[1], count = (1 if value < 0 else 0), -1, 2
                over = size - 1
                for i in range(1, _STEPS):
                    more = 1 if over > 0 else 0
                    bits[count], steps[count] = more, i
                    count += 1
                    if more == 0:
                        break
                    over -= 1
                if over >= 0 and size - 1 >= _STEPS - 1:  # exponential Golomb code of what is left
                    rest = over + 1
                    digits = 0
                    while rest >> (digits + 1):
                        digits += 1
                    for _ in range(digits):
                        bits[count], steps[count] = 1, -1
                        count += 1
                    bits[count], steps[count] = 0, -1
                    count += 1
                    for i in range(digits - 1, -1, -1):
                        bits[count], steps[count] = (rest >> i) & 1, -1
                        count += 1
            for n in range(count):
                step, bit = steps[n], bits[n]
                chance = _ONE // 2 if step < 0 else chances[context, step]
                bound = (width >> 16) * chance
                if bit == 0:
                    width = bound
                else:
                    low += bound
                    width -= bound
                if step >= 0:
                    _adapt(chances, counts, context, step, bit)
                while width < (1 << 24):
                    width = (width << 8) & 0xFFFFFFFF
                    low, cache, pending, length = _shift(low, cache, pending, length, out)
    for _ in range(5):
        low, cache, pending, length = _shift(low, cache, pending, length, out)
    return length


@compiled
def _decode(data: np.ndarray, table: Ints) -> bool:
    chances = np.full((_CONTEXTS, _STEPS), _ONE // 2, np.int64)
    counts = np.zeros((_CONTEXTS, _STEPS), np.int64)
    width, code, place = np.int64(0xFFFFFFFF), np.int64(0), 1
    for _ in range(4):
        code = (code << 8) | (data[place] if place < data.size else 0)
        place += 1
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            context = _context(table, row, column)
            size, sign, stage, digits, rest, step = 0, 0, 0, 0, np.int64(1), 0
            # Stages: 0 zero or not, 1 sign, 2 one more or not, 3 number of digits, 4 digits, 5 done.
            while stage < 5:
                even = stage in (1, 3, 4)
                chance = _ONE // 2 if even else chances[context, step]
                bound = (width >> 16) * chance
                if code < bound:
                    bit = 0
                    width = bound
                else:
                    bit = 1
                    code -= bound
                    width -= bound
                if not even:
                    _adapt(chances, counts, context, step, bit)
                while width < (1 << 24):
                    width = (width << 8) & 0xFFFFFFFF
                    code = ((code << 8) | (data[place] if place < data.size else 0)) & 0xFFFFFFFF
                    place += 1
                    if place > data.size + 8:
                        return False
                if stage == 0:
                    stage = 1 if bit else 5
                elif stage == 1:
                    sign, size, stage, step = bit, 1, 2, 1
                elif stage == 2:
                    if bit == 0:
                        stage = 5
                    else:
                        size += 1
                        step += 1
                        if step == _STEPS:
                            stage = 3
                elif stage == 3:
                    if bit:
                        digits += 1
                        if digits > 40:
                            return False
                    else:
                        stage = 4 if digits else 5
                elif stage == 4:
                    rest = (rest << 1) | bit
                    digits -= 1
                    if digits == 0:
                        size += int(rest) - 1
                        stage = 5
            table[row, column] = -size if sign else size
    return True


def encode_table(table: Ints) -> bytes:
    """Return the bytes of a table (rows, columns) of whole numbers below 2^31."""
    whole = np.ascontiguousarray(table, dtype=np.int64)
    out = np.empty(64 + 12 * whole.size, np.uint8)
    length = _encode(whole, out)
    return bytes(out[:length])


def decode_table(data: bytes, rows: int, columns: int) -> Ints:
    """Return the table (rows, columns) that `encode_table` coded."""
    if min(rows, columns) < 0 or rows * columns > _MOST_NUMBERS:
        raise InputError(f"coded motion: a table of {rows} x {columns} numbers is not one")
    table = np.zeros((rows, columns), np.int64)
    if not _decode(np.frombuffer(data, np.uint8).astype(np.int64), table):
        raise InputError("coded motion: the data end too early or are damaged")
    return table
