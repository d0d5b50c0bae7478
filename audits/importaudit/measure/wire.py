"""Decoding the records of a trace: the part of marshal's version 2 that the guest uses.

The layout is CPython's ``Python/marshal.c``: a type byte and little-endian sizes. ``marshal``
itself would do, but it trusts its input, and a trace can come from an image that nobody knows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from importaudit.record import text

Value = int | str | list[int]

INT32 = struct.Struct("<i")
DIGIT_BITS = 15


class Damaged(ValueError):
    """The bytes at a position are no record, or not a whole one."""


def records(data: bytes) -> Iterator[list[Value]]:
    """Yield the records in DATA; raises Damaged at the first that is cut off or unreadable.

    Between records lie zero bytes where the guest left the end of a segment unused.
    """
    position = 0
    while position < len(data):
        if data[position] == 0:
            position = len(data) - len(data[position:].lstrip(b"\0"))
        else:
            record, position = sequence(data, position, b"(")
            yield record


def sequence(data: bytes, position: int, kind: bytes) -> tuple[list[Value], int]:
    """The tuple or list at POSITION, and where it ends."""
    if data[position : position + 1] != kind:
        raise Damaged(position)
    count, position = size(data, position + 1)
    if count > len(data) - position:  # every value takes a byte or more
        raise Damaged(position)
    values = []
    for _ in range(count):
        value, position = scalar(data, position)
        values.append(value)
    return values, position


def scalar(data: bytes, position: int) -> tuple[Value, int]:
    """The value at POSITION, and where it ends."""
    kind = data[position : position + 1]
    if kind == b"i":
        return size(data, position + 1)
    if kind == b"l":
        return long(data, position + 1)
    if kind == b"u":
        length, start = size(data, position + 1)
        if length < 0 or start + length > len(data):
            raise Damaged(position)
        return string(data[start : start + length]), start + length
    if kind == b"[":
        values, position = sequence(data, position, b"[")
        return [value for value in values if isinstance(value, int)], position
    raise Damaged(position)


def size(data: bytes, position: int) -> tuple[int, int]:
    """A signed 32-bit integer."""
    if position + 4 > len(data):
        raise Damaged(position)
    value: int = INT32.unpack_from(data, position)[0]
    return value, position + 4


def long(data: bytes, position: int) -> tuple[int, int]:
    """An integer beyond 32 bits: a signed count of 15-bit digits, lowest first."""
    count, position = size(data, position)
    end = position + 2 * abs(count)
    if end > len(data):
        raise Damaged(position)
    value = 0
    for place, at in enumerate(range(position, end, 2)):
        value |= int.from_bytes(data[at : at + 2], "little") << (DIGIT_BITS * place)
    return (value if count >= 0 else -value), end


def string(data: bytes) -> str:
    """Text that a Record can hold; names of files may be any bytes to the guest."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    try:
        return text(data.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise Damaged(str(error)) from error
