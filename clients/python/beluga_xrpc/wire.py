"""Frames: the number of a session, a length, a type, a payload; the same in both directions."""

import struct

from . import xrpc_pb2 as pb
from .errors import ProtocolError, ServerError

HEAD = struct.Struct("<QIB")
# Sessions with this bit run one statement, without a beginning and an end.
TOP = 1 << 63
# A longer frame is taken for a stream that is out of step: no server sends one.
_LENGTH_MAX = 1 << 30


def frame(sid, kind, message=None):
    payload = message.SerializeToString() if message is not None else b""
    return HEAD.pack(sid, len(payload) + 1, kind) + payload


def read_frame(file):
    """Session, type and payload of the next frame; None at the end."""
    head = file.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    sid, length, kind = HEAD.unpack(head)
    if not 0 < length <= _LENGTH_MAX:
        raise ProtocolError(f"a frame of {length} bytes")
    payload = file.read(length - 1)
    return (sid, kind, payload) if len(payload) == length - 1 else None


def server_error(payload):
    error = pb.Error.FromString(payload)
    return ServerError(error.code, error.sql_state, error.msg, error.severity == pb.Error.FATAL)
