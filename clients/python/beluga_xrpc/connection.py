"""Connections, and pools of them: one login each, any number of sessions.

One thread for each connection reads and hands frames to their sessions; it never waits for one of them, so none can hold up another.
"""

import collections
import hashlib
import itertools
import socket
import threading
import time

from . import xrpc_pb2 as pb
from .errors import ConnectionLost, ProtocolError, Timeout
from .session import Session
from .wire import TOP, frame, read_frame, server_error

# Session numbers are never reused in a process, so that a late frame finds no session.
_sids = itertools.count(2)


class _Inbox:
    """Frames that a session has not taken yet."""

    def __init__(self, lock):
        self.frames, self.arrived = collections.deque(), threading.Condition(lock)


class Connection:
    """A TCP connection that is logged in. `timeout` is for the connection and its login, `answer_timeout` for the next piece of an answer; None waits for ever."""

    def __init__(self, host="127.0.0.1", port=33660, user="root", password="", timeout=10, answer_timeout=None, known=None):
        self.answer_timeout = answer_timeout
        # Digests that the server has been given. It may have forgotten some.
        self.known = known if known is not None else set()
        self.session_count = 0
        self._inboxes, self._lock = {}, threading.Lock()
        self._lost, self._writing, self._control = None, threading.Lock(), threading.Lock()
        self._socket = socket.create_connection((host, port), timeout)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._file = self._socket.makefile("rb", 1 << 16)
            self._login(user, password)
            self._socket.settimeout(None)
        except BaseException:
            self._socket.close()
            raise
        threading.Thread(target=self._read, name="xrpc-reader", daemon=True).start()

    def _login(self, user, password):
        self.send(frame(0, pb.ASK_AUTHENTICATE_START, pb.AuthenticateStart(mech_name="MYSQL41")))
        salt = pb.AuthenticateContinue.FromString(self._login_step(pb.ANSWER_AUTHENTICATE_CONTINUE)).auth_data
        proof = b""
        if password:
            once = hashlib.sha1(password.encode()).digest()
            mixed = hashlib.sha1(salt + hashlib.sha1(once).digest()).digest()
            proof = b"*" + bytes(a ^ b for a, b in zip(once, mixed)).hex().encode()
        response = pb.AuthenticateContinue(auth_data=b"\0" + user.encode() + b"\0" + proof)
        self.send(frame(0, pb.ASK_AUTHENTICATE_CONTINUE, response))
        self._login_step(pb.ANSWER_AUTHENTICATE_OK)

    def _login_step(self, expected):
        while True:
            _, kind, payload = self._next_frame()
            if kind == pb.ANSWER_ERROR:
                raise server_error(payload)
            if kind == expected:
                return payload
            # A server may send the connection's number before the login is complete.
            if kind != pb.ANSWER_NOTICE:
                raise ProtocolError(f"a frame of type {kind} during the login")

    def _next_frame(self):
        found = read_frame(self._file)
        if found is None:
            raise ConnectionLost("the server closed the connection")
        return found

    def _read(self):
        try:
            while True:
                sid, kind, payload = self._next_frame()
                with self._lock:
                    inbox = self._inboxes.get(sid)
                    # Without one it was given up on this side; but an error of the connection itself is the last thing that the server says.
                    if inbox is not None:
                        inbox.frames.append((kind, payload))
                        inbox.arrived.notify()
                    elif sid == 0 and kind == pb.ANSWER_ERROR:
                        raise ConnectionLost(str(server_error(payload)))
        except Exception as error:
            self._lose(error)

    def _lose(self, error):
        with self._lock:
            self._lost = self._lost or error
            for inbox in self._inboxes.values():
                inbox.arrived.notify()

    @property
    def lost(self):
        """Why the connection has ended, or None."""
        return self._lost

    def open_inbox(self, sid):
        with self._lock:
            if self._lost:
                raise ConnectionLost(str(self._lost))
            self._inboxes[sid] = _Inbox(self._lock)

    def close_inbox(self, sid):
        with self._lock:
            self._inboxes.pop(sid, None)

    def receive(self, sid):
        """The next frame of a session: its type and payload."""
        until = None if self.answer_timeout is None else time.monotonic() + self.answer_timeout
        with self._lock:
            inbox = self._inboxes[sid]
            while not inbox.frames:
                if self._lost:
                    raise ConnectionLost(str(self._lost))
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise Timeout(f"no answer in {self.answer_timeout} s")
                inbox.arrived.wait(left)
            return inbox.frames.popleft()

    def send(self, frames):
        """Writes whole frames, so that those of other sessions come before or after, not within."""
        try:
            with self._writing:
                self._socket.sendall(frames)
        except OSError as error:
            self._lose(error)
            raise ConnectionLost(str(error)) from error

    def session(self):
        """A session of its own. The server hears of it with its first statement."""
        return Session(self, next(_sids))

    def execute(self, sql, *arguments, **options):
        """One statement in a session that the server has ready: outside of transactions, without chunks."""
        return Session(self, next(_sids) | TOP).execute(sql, *arguments, **options)

    def ping(self):
        """The names of what the server can do, which so far is one thing."""
        with self._control:
            payload = self._ask(0, frame(0, pb.ASK_CAPABILITIES_GET), pb.ANSWER_CAPABILITIES)
        return [capability.name for capability in pb.Capabilities.FromString(payload).capabilities]

    def timestamp(self, count=1):
        """The first of so many timestamps, which lie 64 apart from it on."""
        sid = next(_sids)
        return pb.ResultTso.FromString(self._ask(sid, frame(sid, pb.ASK_GET_TSO, pb.GetTso(leader_name=b"", batch_count=count)), pb.ANSWER_TSO)).ts

    def _ask(self, sid, question, expected):
        self.open_inbox(sid)
        try:
            self.send(question)
            kind, payload = self.receive(sid)
        finally:
            self.close_inbox(sid)
        if kind == pb.ANSWER_ERROR:
            raise server_error(payload)
        if kind != expected:
            raise ProtocolError(f"a frame of type {kind} where one of type {expected} was expected")
        return payload

    def close(self):
        """Ends the connection; the server rolls back what is open."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Pool:
    """A few connections for many sessions. Takes what `Connection` takes."""

    def __init__(self, *arguments, connections_max=4, **options):
        self._known = set()
        self._open = lambda: Connection(*arguments, known=self._known, **options)
        self._max, self._lock = connections_max, threading.Lock()
        # Opened at once, so that a wrong address or password is known.
        self._connections = [self._open()]

    def connection(self):
        """The connection with the fewest sessions. A lost one is replaced."""
        with self._lock:
            self._connections = [connection for connection in self._connections if connection.lost is None]
            least = min(self._connections, key=lambda connection: connection.session_count, default=None)
            if least is not None and (least.session_count == 0 or len(self._connections) >= self._max):
                return least
            self._connections.append(self._open())
            return self._connections[-1]

    def session(self):
        return self.connection().session()

    def execute(self, sql, *arguments, **options):
        """One statement outside of any session; see `Connection.execute`."""
        return self.connection().execute(sql, *arguments, **options)

    def close(self):
        with self._lock:
            for connection in self._connections:
                connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
