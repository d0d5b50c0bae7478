"""Decoding a trace: the HEADs that ``probe.output`` defines, and the part of marshal's version 2
that their payloads use.

The layout of those is CPython's ``Python/marshal.c``: a type byte and little-endian sizes.
``marshal`` itself would do, but it trusts its input, and a trace can come from an image that
nobody knows.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from importaudit.record import text

Value = int | str

HEAD = struct.Struct("=IIqq")
NUMBER = struct.Struct("=q")
INT32 = struct.Struct("<i")
NOT_ZERO = re.compile(rb"[^\0]")
DIGIT_BITS = 15
KIND_BITS = 5
KINDS = range(1, 17)


class Damaged(ValueError):
    """The bytes at a position are no record, or not a whole one."""


class Entry(NamedTuple):
    """One record: where it is, what it says, of which thread, clocks (ns), and its payload."""

    place: int
    what: int
    thread: int
    wall: int
    cpu: int
    payload: bytes


def entries(data: bytes) -> Iterator[Entry]:
    """Yield the records in DATA; raises Damaged at the first that is cut off or unreadable.

    Between records lie zero bytes where the guest left the end of a segment unused.
    """
    position = 0
    while (found := NOT_ZERO.search(data, position)) is not None:
        position = found.start()
        start = position + HEAD.size
        if start > len(data):
            raise Damaged(position)
        kind, length, wall, cpu = HEAD.unpack_from(data, position)
        what, thread = kind & ((1 << KIND_BITS) - 1), kind >> KIND_BITS
        if what not in KINDS or length > len(data) - start:
            raise Damaged(position)
        yield Entry(position, what, thread, wall, cpu, data[start : start + length])
        position = start + length


def values(data: bytes) -> list[Value]:
    """The fields of a record that is no mark; raises Damaged."""
    found, end = sequence(data, 0)
    if end != len(data):
        raise Damaged(end)
    return found


def border(payload: bytes) -> tuple[int, str]:
    """The number and the text of a mark where an import begins or ends; raises Damaged."""
    if len(payload) < NUMBER.size:
        raise Damaged(payload)
    return NUMBER.unpack_from(payload)[0], string(payload[NUMBER.size :])


def sequence(data: bytes, position: int) -> tuple[list[Value], int]:
    """The tuple at POSITION, and where it ends."""
    if data[position : position + 1] != b"(":
        raise Damaged(position)
    count, position = size(data, position + 1)
    if not 0 <= count <= len(data) - position:  # every value takes a byte or more
        raise Damaged(position)
    found = []
    for _ in range(count):
        value, position = scalar(data, position)
        found.append(value)
    return found, position


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
