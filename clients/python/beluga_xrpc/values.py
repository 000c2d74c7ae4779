"""Values both ways: arguments of requests, fields of rows, columns of chunks.

The type of a column alone says how its bytes are read; nothing in them repeats it.
"""

import datetime
import decimal
import struct

from . import xrpc_pb2 as pb
from .errors import ProtocolError

_UTF8MB4, _BINARY = 45, 63
_JSON = 2
_DATES = (10, 14)
_T = pb.ColumnMetaData


class Identifier(str):
    """The name of a table, column or database as an argument: it becomes a part of the statement, quoted by the server."""


class Raw(str):
    """A piece of SQL as an argument, inserted unchanged. Never pass text that a user typed."""


def scalar(value):
    """A Python value as the message Scalar."""
    S = pb.Scalar
    text = lambda kind, words: S(type=kind, v_string=S.String(value=words.encode(), collation=_UTF8MB4))
    if isinstance(value, pb.Scalar):
        return value
    if value is None:
        return S(type=S.V_NULL)
    if isinstance(value, bool):
        return S(type=S.V_BOOL, v_bool=value)
    if isinstance(value, int):
        return S(type=S.V_UINT, v_unsigned_int=value) if value >= 1 << 63 else S(type=S.V_SINT, v_signed_int=value)
    if isinstance(value, float):
        return S(type=S.V_DOUBLE, v_double=value)
    if isinstance(value, (bytes, bytearray)):
        return S(type=S.V_OCTETS, v_octets=S.Octets(value=bytes(value)))
    if isinstance(value, Identifier):
        return text(S.V_IDENTIFIER, value)
    if isinstance(value, Raw):
        return text(S.V_RAW_STRING, value)
    if isinstance(value, str):
        return text(S.V_STRING, value)
    if isinstance(value, decimal.Decimal):
        return text(S.V_STRING, f"{value:f}")
    if isinstance(value, datetime.datetime):
        return text(S.V_STRING, value.isoformat(" "))
    if isinstance(value, datetime.date):
        return text(S.V_STRING, value.isoformat())
    if isinstance(value, datetime.timedelta):
        return text(S.V_STRING, _span_text(value))
    if isinstance(value, (set, frozenset)):
        return text(S.V_STRING, ",".join(sorted(value)))
    raise TypeError(f"no argument can be made of {type(value).__name__}")


def _span_text(span):
    sign, span = ("-", -span) if span < datetime.timedelta() else ("", span)
    seconds = span.days * 86400 + span.seconds
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{span.microseconds:06}"


def any_of(value):
    return pb.Any(type=pb.Any.SCALAR, scalar=scalar(value))


class Column:
    """Metadata of a column. Names are empty where the request asked for none."""

    def __init__(self, meta):
        self.meta = meta
        self.name, self.table, self.schema = (word.decode() for word in (meta.name, meta.table, meta.schema))
        self._is_text = meta.collation != _BINARY or meta.content_type == _JSON
        try:
            self.read, self._cut = _READERS[meta.type]
        except KeyError:
            raise ProtocolError(f"a column of type {meta.type}") from None

    def __repr__(self):
        return f"Column({self.name!r})"

    def field(self, data):
        """A row's field."""
        return self.read(self, data) if data else None

    def values(self, count, part):
        """A column of a chunk."""
        data = part.fixed_size_column.value if part.HasField("fixed_size_column") else part.variable_size_column.value
        nulls, at, found = part.null_bitmap, 0, []
        for row in range(count):
            # The most significant bit is the first row's.
            if nulls and nulls[row >> 3] & 0x80 >> (row & 7):
                found.append(None)
            else:
                value, at = self._cut(self, data, at)
                found.append(value)
        if at != len(data):
            raise ProtocolError("a chunk with more values than rows")
        return found

    def string(self, data):
        return data.decode() if self._is_text else bytes(data)

    def moment(self, parts):
        parts = list(parts) + [0] * (7 - len(parts))
        is_date = self.meta.original_type in _DATES
        try:
            return datetime.date(*parts[:3]) if is_date else datetime.datetime(*parts)
        except ValueError:
            # MySQL's zero dates are no dates here.
            day = "{:04}-{:02}-{:02}".format(*parts)
            return day if is_date else day + " {:02}:{:02}:{:02}".format(*parts[3:])


def varint(data, at):
    number = shift = 0
    while True:
        try:
            byte = data[at]
        except IndexError:
            raise ProtocolError("a number is cut short") from None
        number |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return number, at


def _varints(data, at):
    found = []
    while at < len(data):
        number, at = varint(data, at)
        found.append(number)
    return found


def _unzigzag(number):
    return (number >> 1) ^ -(number & 1)


def _span(negative, hours=0, minutes=0, seconds=0, micros=0):
    span = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)
    return -span if negative else span


def _decimal(data):
    """The scale, digits two in a byte, a sign."""
    digits = data[1:].hex()
    end = next((at for at, digit in enumerate(digits) if digit in "cd"), None)
    if end is None:
        raise ProtocolError("a decimal without a sign")
    negative = digits[end] == "d"
    return decimal.Decimal((int(negative), [int(digit) for digit in digits[:end]], -data[0]))


def _set(data):
    members, at = [], 0
    while at < len(data):
        length, at = varint(data, at)
        members.append(data[at : at + length].decode())
        at += length
    return frozenset(members)


def _unpacked(number):
    """Hour, minute, second and microsecond of MySQL's packed number."""
    time = number >> 24
    return time >> 12 & 0x3FF, time >> 6 & 63, time & 63, number & 0xFFFFFF


def _packed_moment(column, number):
    day = number >> 41
    hour, *rest = _unpacked(number)
    return column.moment(((day >> 5) // 13, (day >> 5) % 13, day & 31, hour & 31, *rest))


def _packed_span(number):
    negative = number >> 63 == 1
    return _span(negative, *_unpacked((1 << 64) - number if negative else number))


def _number(of):
    return lambda column, data: of(varint(data, 0)[0])


def _cut_number(of):
    def cut(column, data, at):
        number, at = varint(data, at)
        return of(column, number), at

    return cut


def _cut_body(of):
    def cut(column, data, at):
        length, at = varint(data, at)
        return of(column, data[at : at + length]), at + length

    return cut


def _fixed(form, size):
    return (lambda column, data: struct.unpack(form, data)[0]), (lambda column, data, at: (struct.unpack_from(form, data, at)[0], at + size))


_whole = (_number(int), _cut_number(lambda column, number: number))
_string = (lambda column, data: column.string(data[:-1]), _cut_body(lambda column, body: column.string(body[:-1])))

# For each type how a field of a row is read, and how the next value of a chunk's column.
_READERS = {
    _T.SINT: (_number(_unzigzag), _cut_number(lambda column, number: _unzigzag(number))),
    _T.UINT: _whole,
    _T.BIT: _whole,
    _T.DOUBLE: _fixed("<d", 8),
    _T.FLOAT: _fixed("<f", 4),
    _T.BYTES: _string,
    _T.ENUM: _string,
    _T.DATETIME: (lambda column, data: column.moment(_varints(data, 0)), _cut_number(_packed_moment)),
    _T.TIME: (lambda column, data: _span(data[0] != 0, *_varints(data, 1)), _cut_number(lambda column, number: _packed_span(number))),
    _T.DECIMAL: (lambda column, data: _decimal(data), _cut_body(lambda column, body: _decimal(body))),
    # No member is written otherwise in a row than in a chunk.
    _T.SET: (lambda column, data: frozenset() if data == b"\1" else _set(data), _cut_body(lambda column, body: frozenset() if body == b"\0" else _set(body))),
}
