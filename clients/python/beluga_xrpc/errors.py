"""Errors, classified by what a caller can do about them."""


class XrpcError(Exception):
    """All errors of this package."""


class ServerError(XrpcError):
    """The server's own words: MySQL's number, or one of XRPC's (8000 and up), and its state. After a fatal one the session is over."""

    def __init__(self, code, sql_state, message, fatal):
        super().__init__(f"{code} ({sql_state}): {message}")
        self.code, self.sql_state, self.message, self.fatal = code, sql_state, message, fatal


class ConnectionLost(XrpcError):
    """The connection has ended, and all of its sessions with it."""


class Timeout(XrpcError):
    """No answer came in time; the session is ended."""


class SessionEnded(XrpcError):
    """This session has ended before, by a fatal error, a kill or a timeout."""


class ProtocolError(XrpcError):
    """The server said what the protocol does not have."""
