"""A client of XRPC, PolarDB-X's private protocol 2.0: thousands of database sessions over a few TCP connections."""

from .connection import Connection, Pool
from .errors import ConnectionLost, ProtocolError, ServerError, SessionEnded, Timeout, XrpcError
from .session import Answer, Pipeline, Session, Statement
from .values import Column, Identifier, Raw

__all__ = [
    "Answer", "Column", "Connection", "ConnectionLost", "Identifier", "Pipeline", "Pool", "ProtocolError", "Raw", "ServerError", "Session", "SessionEnded", "Statement", "Timeout", "XrpcError",
]
