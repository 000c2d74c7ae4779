"""Sessions: statements one after the other, or several in flight.

Answers arrive in the order of requests, so an unread answer precedes the next one. A session counts outstanding answers, and discards them before its next request.
"""

import hashlib

from . import xrpc_pb2 as pb
from .errors import ProtocolError, ServerError, SessionEnded, Timeout, XrpcError
from .plan import Plan
from .values import Column, any_of, scalar
from .wire import TOP, frame, server_error

# KiB of a result that the server sends before it asks.
TOKEN_KIB = 10240
_UNKNOWN_DIGEST = 8000
# A server ends sessions with more than 128 requests in line.
_WINDOW = 64
_LAST = (pb.ANSWER_OK, pb.ANSWER_EXECUTE_OK, pb.ANSWER_ERROR)


class Statement:
    """A text that is sent again and again: the server keeps it under its digest."""

    def __init__(self, text):
        self.text = text
        self.digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()


class Answer:
    """Columns, and rows as tuples; `affected` rows, `insert_id`, `info` and `warnings` (level, code, text) of what was done. Iterates over its rows."""

    def __init__(self):
        self.columns, self.rows, self.warnings = [], [], []
        self.affected, self.insert_id, self.info = 0, None, None
        self._partial = []

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    def take(self, kind, payload):
        """Takes a frame that is not the last."""
        if kind == pb.ANSWER_ROW:
            fields = pb.Row.FromString(payload).field
            if len(fields) != len(self.columns):
                raise ProtocolError("a row that does not fit the columns")
            self.rows.append(tuple(column.field(data) for column, data in zip(self.columns, fields)))
        elif kind == pb.ANSWER_COLUMN:
            self.columns.append(Column(pb.ColumnMetaData.FromString(payload)))
        elif kind == pb.ANSWER_CHUNK:
            self._chunk(pb.Chunk.FromString(payload))
        elif kind == pb.ANSWER_NOTICE:
            self._notice(pb.Frame.FromString(payload))
        elif kind != pb.ANSWER_FETCH_DONE:
            raise ProtocolError(f"a frame of type {kind} in an answer")

    def _chunk(self, chunk):
        """More than ten columns come in several chunks."""
        if len(self._partial) + len(chunk.columns) > len(self.columns):
            raise ProtocolError("a chunk with more columns than the result")
        for part in chunk.columns:
            self._partial.append(self.columns[len(self._partial)].values(chunk.row_count, part))
        if len(self._partial) == len(self.columns):
            self.rows.extend(zip(*self._partial))
            self._partial = []

    def _notice(self, notice):
        if notice.type == 1:
            warning = pb.Warning.FromString(notice.payload)
            self.warnings.append((warning.level, warning.code, warning.msg))
        elif notice.type == 3:
            state = pb.SessionStateChanged.FromString(notice.payload)
            S, value = pb.SessionStateChanged, state.value
            if state.param == S.ROWS_AFFECTED:
                self.affected = value.v_unsigned_int
            elif state.param == S.GENERATED_INSERT_ID:
                self.insert_id = value.v_unsigned_int or value.v_signed_int
            elif state.param == S.PRODUCED_MESSAGE:
                self.info = value.v_string.value.decode()


def _request(what, arguments, digest_alone, reset_error, schema=None, hint=None, chunks=False, names=True, token=TOKEN_KIB, capabilities=None):
    """The type and the message of a request. `what` is a text, a Statement or a Plan."""
    more = {"reset_error": reset_error, "token": token, "capabilities": capabilities, "chunk_result": chunks or None, "compact_metadata": None if names else True}
    if isinstance(what, Plan):
        message = pb.ExecPlan(plan_digest=what.digest, parameters=map(scalar, arguments), trace_id=hint and hint.encode(), **more)
        if not digest_alone:
            message.plan.CopyFrom(what.tree)
        return pb.ASK_EXECUTE_PLAN, message
    statement = isinstance(what, Statement)
    text = what.text if statement else what
    message = pb.StmtExecute(args=map(any_of, arguments), schema_name=schema and schema.encode(), hint=hint and hint.encode(), **more)
    if statement:
        message.stmt_digest = what.digest
    if not digest_alone:
        message.stmt = text.encode()
    return pb.ASK_EXECUTE_SQL, message


class Session:
    """A session of the server: its own transaction, variables and database. Belongs to one thread at a time. Closed, what is open is rolled back."""

    def __init__(self, connection, sid):
        self.connection, self.sid = connection, sid
        self.ended = False
        self._single = sid & TOP != 0
        self._begun, self._begin_unread = self._single, False
        self._unread, self._token, self._schema = 0, TOKEN_KIB, None
        # Counts statements, so that rows of an earlier one are not read out of a later one's answer.
        self._turn = 0
        connection.open_inbox(sid)
        connection.session_count += 1

    def set_schema(self, name):
        """Sets the database of later statements. It is sent with the next one."""
        self._schema = name

    def execute(self, what, *arguments, **options):
        """Executes a text, Statement or Plan with its arguments and gives the whole Answer.

        Options: schema, hint, chunks (by column on the wire), names=False (columns without names), token (KiB; None is no limit), capabilities (MySQL's client flags).
        """
        answer = Answer()
        for _ in self._rows(what, arguments, options, answer, keep=True):
            pass
        if self._single:
            self.close()
        return answer

    def stream(self, what, *arguments, **options):
        """As `execute`, but gives the rows as they come; the server stops where they are not taken. Rows that are left are passed over by the next statement."""
        return self._rows(what, arguments, options, Answer(), keep=False)

    def _rows(self, what, arguments, options, answer, keep):
        self._ready()
        turn, alone = self._turn, self._knows(what)
        self._token = options.get("token") or TOKEN_KIB
        self._send(self._frames(what, arguments, alone, True, options), 1)
        first = True
        while True:
            kind, payload = self._next()
            if kind == pb.ANSWER_ERROR:
                error = self._finish(payload)
                if not (first and alone and error.code == _UNKNOWN_DIGEST):
                    raise error
                alone = False
                self._send(self._frames(what, arguments, False, True, options), 1)
                continue
            first = False
            if kind in _LAST:
                self._finish(None)
                self._learn(what)
                return
            answer.take(kind, payload)
            if not keep and answer.rows:
                rows, answer.rows = answer.rows, []
                for row in rows:
                    yield row
                    if self._turn != turn:
                        return

    def pipeline(self):
        """Several requests that are sent together; their answers come in order."""
        return Pipeline(self)

    def savepoint(self, name):
        self._savepoint(pb.AutoSp.SET, name)

    def release(self, name):
        self._savepoint(pb.AutoSp.RELEASE, name)

    def rollback_to(self, name):
        self._savepoint(pb.AutoSp.ROLLBACK, name)

    def _savepoint(self, op, name):
        self._ready()
        self._send(self._begin() + frame(self.sid, pb.ASK_AUTO_SAVEPOINT, pb.AutoSp(op=op, sp_name=name.encode(), reset_error=True)), 1)
        self._collect()

    def kill_statement(self):
        """From any thread: the running statement ends with error 1317."""
        self._kill(pb.KillSession.QUERY)

    def kill(self):
        """From any thread: the session ends; what is open is rolled back."""
        self._kill(pb.KillSession.CONNECTION)

    def _kill(self, how):
        self.connection.send(frame(self.sid, pb.ASK_SESSION_KILL, pb.KillSession(type=how, x_session_id=self.sid)))

    def close(self):
        if self.connection is None:
            return
        self.connection.close_inbox(self.sid)
        self.connection.session_count -= 1
        try:
            if self._begun and not self._single and not self.ended:
                # A statement that waits for tokens would never come to SESS_CLOSE.
                if self._unread:
                    self.kill()
                else:
                    self.connection.send(frame(self.sid, pb.ASK_SESSION_CLOSE))
        except XrpcError:
            pass
        self.connection, self.ended = None, True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "connection", None) is not None:
            self.close()

    def _knows(self, what):
        return not self._single and not isinstance(what, str) and what.digest in self.connection.known

    def _learn(self, what):
        if not isinstance(what, str):
            self.connection.known.add(what.digest)

    def _begin(self):
        if self._begun:
            return b""
        self._begun = self._begin_unread = True
        return frame(self.sid, pb.ASK_SESSION_NEW)

    def _frames(self, what, arguments, alone, reset_error, options):
        if self._schema is not None and not isinstance(what, Plan):
            options = {"schema": self._schema, **options}
            self._schema = None
        return self._begin() + frame(self.sid, *_request(what, arguments, alone, reset_error, **options))

    def _send(self, frames, answers):
        self._unread += answers
        self.connection.send(frames)

    def _next(self):
        """The next frame of answers, without that to SESS_NEW. Tokens are offered where they are used up."""
        try:
            while True:
                kind, payload = self.connection.receive(self.sid)
                begin, self._begin_unread = self._begin_unread, False
                if kind == pb.ANSWER_TOKEN_DONE:
                    self._send(frame(self.sid, pb.ASK_TOKEN_OFFER, pb.TokenOffer(token=self._token)), 0)
                elif not (begin and kind == pb.ANSWER_OK):
                    return kind, payload
        except Timeout:
            self.ended = True
            self._kill(pb.KillSession.CONNECTION)
            raise
        except XrpcError:
            self.ended = True
            raise

    def _finish(self, error):
        """An answer is whole."""
        self._unread -= 1
        if error is None:
            return None
        error = server_error(error)
        self.ended = self.ended or error.fatal
        return error

    def _collect(self):
        answer = Answer()
        while True:
            kind, payload = self._next()
            if kind == pb.ANSWER_ERROR:
                raise self._finish(payload)
            if kind in _LAST:
                self._finish(None)
                return answer
            answer.take(kind, payload)

    def _ready(self):
        """Reads away what was not read."""
        while not self.ended and self._unread:
            kind, payload = self._next()
            if kind in _LAST:
                self._finish(payload if kind == pb.ANSWER_ERROR else None)
        if self.ended:
            raise SessionEnded("the session has ended")
        self._turn += 1


class Pipeline:
    """Requests of one session that travel together.

    A digest alone is only sent for the last of them: were it unknown, the text would have to follow, and by then the others would have run before it.
    """

    def __init__(self, session):
        self._session, self._requests, self._sent, self._alone = session, [], 0, False

    def add(self, what, *arguments, **options):
        """Appends a request that is executed whatever became of those before it."""
        self._requests.append((what, arguments, True, options))
        return self

    def then(self, what, *arguments, **options):
        """Appends a request that is executed only if the one before it was; otherwise that one's error is its answer too."""
        self._requests.append((what, arguments, False, options))
        return self

    def send(self):
        """Sends without waiting for answers, as many as the server keeps in line. Nothing can be added afterwards."""
        if self._sent == 0:
            self._session._ready()
        frames = b""
        count = min(len(self._requests) - self._sent, _WINDOW - self._session._unread)
        for at in range(self._sent, self._sent + count):
            what, arguments, reset_error, options = self._requests[at]
            self._alone = at + 1 == len(self._requests) and self._session._knows(what)
            frames += self._session._frames(what, arguments, self._alone, reset_error, options)
        self._sent += count
        self._session._send(frames, count)
        return self

    def collect(self):
        """The answers, or the server's errors as values, in the order of the requests."""
        if self._sent == 0:
            self.send()
        answers = []
        while len(answers) < len(self._requests):
            if self._session._unread <= _WINDOW // 2 and self._sent < len(self._requests):
                self.send()
            answers.append(self._one())
        if answers:
            what, arguments, reset_error, options = self._requests[-1]
            if self._alone and isinstance(answers[-1], ServerError) and answers[-1].code == _UNKNOWN_DIGEST:
                self._session._send(self._session._frames(what, arguments, False, reset_error, options), 1)
                answers[-1] = self._one()
            if isinstance(answers[-1], Answer):
                self._session._learn(what)
        return answers

    def _one(self):
        try:
            return self._session._collect()
        except ServerError as error:
            return error
