"""The XRPC door from the messages of clients/xrpc.proto, made into classes by protobuf: a client and a decoder that share nothing with the server.

Every type goes through rows and through chunks and is compared with what PyMySQL reads of the same table at the MySQL door; values are drawn at random. Then sessions over one connection, digests, plans,
tokens, kills, timestamps, and what must survive a kill of the server.
"""

import datetime
import decimal
import hashlib
import importlib
import os
import random
import socket
import struct
import sys
import time

from beluga import Server, Tally
from sql import ask, come

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
TOP = 1 << 63


def messages():
    from grpc_tools import protoc

    out = os.path.join(ROOT, "target", "clients", "xrpc")
    os.makedirs(out, exist_ok=True)
    clients = os.path.join(ROOT, "clients")
    assert protoc.main(["protoc", f"-I{clients}", f"--python_out={out}", os.path.join(clients, "xrpc.proto")]) == 0
    sys.path.insert(0, out)
    return importlib.import_module("xrpc_pb2")


x = messages()


class Failed(Exception):
    pass


class Answer:
    def __init__(self):
        self.columns, self.rows, self.chunks, self.warnings = [], [], [], []
        self.affected = self.insert_id = self.info = self.error = None
        self.token_waits = 0


class Connection:
    """One TCP connection with any number of sessions."""

    def __init__(self, port, user="root", password=""):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.waiting = {}
        self.send(0, x.ASK_AUTHENTICATE_START, x.AuthenticateStart(mech_name="MYSQL41"))
        kind, payload = self.receive(0)
        assert kind == x.ANSWER_AUTHENTICATE_CONTINUE
        salt = x.AuthenticateContinue.FromString(payload).auth_data
        proof = b""
        if password:
            once = hashlib.sha1(password.encode()).digest()
            mixed = hashlib.sha1(salt + hashlib.sha1(once).digest()).digest()
            proof = b"*" + bytes(a ^ b for a, b in zip(once, mixed)).hex().encode()
        self.send(0, x.ASK_AUTHENTICATE_CONTINUE, x.AuthenticateContinue(auth_data=b"\0" + user.encode() + b"\0" + proof))
        kind, payload = self.receive(0)
        if kind != x.ANSWER_AUTHENTICATE_OK:
            raise Failed(x.Error.FromString(payload).msg)

    def send(self, sid, kind, message=None):
        payload = message if isinstance(message, bytes) else b"" if message is None else message.SerializeToString()
        self.socket.sendall(struct.pack("<QIB", sid, len(payload) + 1, kind) + payload)

    def receive(self, sid):
        """The next frame of that session; those of others wait."""
        while not self.waiting.get(sid):
            head = self.file.read(13)
            if len(head) < 13:
                raise EOFError
            of, length, kind = struct.unpack("<QIB", head)
            self.waiting.setdefault(of, []).append((kind, self.file.read(length - 1)))
        return self.waiting[sid].pop(0)

    def begin(self, sid):
        self.send(sid, x.ASK_SESSION_NEW)
        assert self.receive(sid) == (x.ANSWER_OK, b"")

    def answer(self, sid, offer=10240):
        answer = Answer()
        while True:
            kind, payload = self.receive(sid)
            if kind == x.ANSWER_OK or kind == x.ANSWER_EXECUTE_OK:
                return answer
            if kind == x.ANSWER_ERROR:
                answer.error = x.Error.FromString(payload)
                return answer
            if kind == x.ANSWER_COLUMN:
                answer.columns.append(x.ColumnMetaData.FromString(payload))
            elif kind == x.ANSWER_ROW:
                answer.rows.append(list(x.Row.FromString(payload).field))
            elif kind == x.ANSWER_CHUNK:
                answer.chunks.append(x.Chunk.FromString(payload))
            elif kind == x.ANSWER_TOKEN_DONE:
                answer.token_waits += 1
                self.send(sid, x.ASK_TOKEN_OFFER, x.TokenOffer(token=offer))
            elif kind == x.ANSWER_NOTICE:
                self.notice(answer, x.Frame.FromString(payload))
            else:
                assert kind == x.ANSWER_FETCH_DONE, kind

    @staticmethod
    def notice(answer, frame):
        assert frame.scope == x.Frame.LOCAL
        if frame.type == 1:
            answer.warnings.append(x.Warning.FromString(frame.payload).code)
            return
        state = x.SessionStateChanged.FromString(frame.payload)
        value = state.value
        if state.param == x.SessionStateChanged.ROWS_AFFECTED:
            answer.affected = value.v_unsigned_int
        elif state.param == x.SessionStateChanged.GENERATED_INSERT_ID:
            answer.insert_id = value.v_unsigned_int
        elif state.param == x.SessionStateChanged.PRODUCED_MESSAGE:
            answer.info = value.v_string.value

    def run(self, sid, text, *args, **more):
        fields = {"stmt": text.encode(), "args": [argument(value) for value in args], "reset_error": True, "hint": b"", **more}
        self.send(sid, x.ASK_EXECUTE_SQL, x.StmtExecute(**fields))
        return self.answer(sid)

    def done(self, sid, text, *args, **more):
        answer = self.run(sid, text, *args, **more)
        if answer.error is not None:
            raise Failed(f"{text}: {answer.error.msg}")
        return answer

    def close(self):
        self.file.close()
        self.socket.close()


def scalar(value):
    if value is None:
        return x.Scalar(type=x.Scalar.V_NULL)
    if isinstance(value, int) and value >= 1 << 63:
        return x.Scalar(type=x.Scalar.V_UINT, v_unsigned_int=value)
    if isinstance(value, int):
        return x.Scalar(type=x.Scalar.V_SINT, v_signed_int=value)
    if isinstance(value, float):
        return x.Scalar(type=x.Scalar.V_DOUBLE, v_double=value)
    if isinstance(value, bytes):
        return x.Scalar(type=x.Scalar.V_OCTETS, v_octets=x.Scalar.Octets(value=value))
    return x.Scalar(type=x.Scalar.V_STRING, v_string=x.Scalar.String(value=value.encode(), collation=45))


def argument(value):
    return x.Any(type=x.Any.SCALAR, scalar=scalar(value))


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return number, at


def varints(data, at=0):
    found = []
    while at < len(data):
        number, at = varint(data, at)
        found.append(number)
    return found


def unzigzag(number):
    return (number >> 1) ^ -(number & 1)


def read_decimal(data):
    digits = data[1:].hex()
    digits = digits.rstrip("0") if digits[-1] == "0" else digits
    sign = {"c": 1, "d": -1}[digits[-1]]
    return decimal.Decimal(sign * int(digits[:-1])).scaleb(-data[0], decimal.Context(prec=80))


def read_set(data):
    if data in (b"\1", b"\0"):
        return ""
    members, at = [], 0
    while at < len(data):
        length, at = varint(data, at)
        members.append(data[at : at + length].decode())
        at += length
    return ",".join(members)


def moment(year, month, day, hour=0, minute=0, second=0, micros=0):
    return datetime.datetime(year, month, day, hour, minute, second, micros)


def clock(negative, hours, minutes=0, seconds=0, micros=0):
    span = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)
    return -span if negative else span


def text_or_bytes(meta, data):
    return data if meta.collation == 63 and meta.content_type != 2 else data.decode()


DATE = 10


def of_row(meta, data):
    """A field of a row."""
    t = x.ColumnMetaData
    if data == b"":
        return None
    if meta.type == t.SINT:
        return unzigzag(varint(data, 0)[0])
    if meta.type in (t.UINT, t.BIT):
        return varint(data, 0)[0]
    if meta.type == t.DOUBLE:
        return struct.unpack("<d", data)[0]
    if meta.type == t.FLOAT:
        return struct.unpack("<f", data)[0]
    if meta.type in (t.BYTES, t.ENUM):
        assert data[-1] == 0
        return text_or_bytes(meta, data[:-1])
    if meta.type == t.SET:
        return read_set(data)
    if meta.type == t.DECIMAL:
        return read_decimal(data)
    if meta.type == t.DATETIME:
        whole = moment(*varints(data))
        return whole.date() if meta.original_type == DATE else whole
    assert meta.type == t.TIME
    return clock(data[0] == 1, *(varints(data, 1) or [0]))


def unpacked_clock(number):
    micros, number = number & 0xFFFFFF, number >> 24
    return number >> 12, number >> 6 & 63, number & 63, micros


def of_block(meta, data, at):
    """A value of a chunk's column, and where the next one is."""
    t = x.ColumnMetaData
    if meta.type == t.DOUBLE:
        return struct.unpack_from("<d", data, at)[0], at + 8
    if meta.type == t.FLOAT:
        return struct.unpack_from("<f", data, at)[0], at + 4
    number, at = varint(data, at)
    if meta.type == t.SINT:
        return unzigzag(number), at
    if meta.type in (t.UINT, t.BIT):
        return number, at
    if meta.type == t.DATETIME:
        day = number >> 41
        whole = moment((day >> 5) // 13, (day >> 5) % 13, day & 31, *unpacked_clock(number & (1 << 41) - 1))
        return (whole.date() if meta.original_type == DATE else whole), at
    if meta.type == t.TIME:
        negative = number >= 1 << 63
        return clock(negative, *unpacked_clock((1 << 64) - number if negative else number)), at
    body, at = data[at : at + number], at + number
    if meta.type == t.DECIMAL:
        return read_decimal(body), at
    if meta.type == t.SET:
        return read_set(body), at
    assert body[-1] == 0
    return text_or_bytes(meta, body[:-1]), at


def of_chunks(answer):
    """Rows of chunks, put together from as many messages as their columns took."""
    rows, columns = [], []
    for chunk in answer.chunks:
        for column in chunk.columns:
            meta = answer.columns[len(columns)]
            data = column.fixed_size_column.value if column.HasField("fixed_size_column") else column.variable_size_column.value
            values, at = [], 0
            for row in range(chunk.row_count):
                if column.null_bitmap and column.null_bitmap[row // 8] & 0x80 >> row % 8:
                    values.append(None)
                else:
                    value, at = of_block(meta, data, at)
                    values.append(value)
            assert at == len(data)
            columns.append(values)
        if len(columns) == len(answer.columns):
            rows += [list(row) for row in zip(*columns)]
            columns = []
    assert not columns
    return rows


def of_rows(answer):
    return [[of_row(meta, field) for meta, field in zip(answer.columns, row)] for row in answer.rows]


SHORT = {
    "ti": "tinyint", "tu": "tinyint unsigned", "si": "smallint", "mi": "mediumint", "i": "int", "b": "bigint", "bu": "bigint unsigned", "y": "year",
    "f": "float", "d": "double", "n": "decimal(20,4)", "nn": "decimal(65,30)", "c": "char(5)", "v": "varchar(40)", "vb": "varbinary(20)", "bi": "binary(4)",
    "e": "enum('a','b c','ö')", "s": "set('x','y','zz')", "bits": "bit(10)", "da": "date", "dt": "datetime(6)", "ts": "timestamp(3)", "tm": "time(6)",
}
LONG = {"t": "text", "bl": "blob", "j": "json"}


def drawn(draw):
    """A row: values near the edges, and NULL."""
    text = lambda most: "".join(draw.choice("ab é字'\"\\\0") for _ in range(draw.randrange(most + 1)))
    time = f"{draw.choice(['', '-'])}{draw.choice([0, 1, 23, 24, 838])}:{draw.choice([0, 59])}:{draw.choice([0, 30, 59])}"
    date = f"{draw.choice([1000, 1999, 2024, 9999])}-{draw.choice(['01-01', '02-28', '12-31'])}"
    row = {
        "ti": draw.choice([-128, -1, 0, 127]), "tu": draw.choice([0, 255]), "si": draw.choice([-32768, 32767]), "mi": draw.choice([-8388608, 8388607]),
        "i": draw.choice([-(1 << 31), 0, (1 << 31) - 1]), "b": draw.choice([-(1 << 63), -1, (1 << 63) - 1]), "bu": draw.choice([0, 1, (1 << 64) - 1]), "y": draw.choice([1901, 2024, 2155]),
        "f": draw.choice([0.0, -1.5, 0.25]), "d": draw.choice([0.0, 1e300, -0.1]), "n": draw.choice(["0", "-12.3401", "9999999999999999.9999", "0.05"]),
        "nn": draw.choice(["-" + "9" * 35 + "." + "9" * 30, "0.000000000000000000000000000001"]), "c": text(5).rstrip(" "), "v": text(40), "vb": draw.randbytes(draw.randrange(21)),
        "bi": draw.randbytes(4), "e": draw.choice(["a", "b c", "ö"]), "s": draw.choice(["", "x", "x,zz", "x,y,zz"]), "bits": draw.choice([0, 1, 1023]), "da": date,
        "dt": f"{date} {draw.choice(['00:00:00', '13:07:00.123456', '23:59:59.000001'])}", "ts": draw.choice(["2001-09-09 01:46:40.5", "2038-01-01 00:00:00"]), "tm": time,
        "t": text(3000), "bl": draw.randbytes(draw.randrange(3000)), "j": draw.choice(['{"a": 1}', "[]", '"ä"', "1.5"]),
    }
    return {name: None if draw.random() < 0.15 else value for name, value in row.items()}


def plain(name, value):
    """PyMySQL's value as it is decoded here."""
    if name == "bits" and value is not None:
        return int.from_bytes(value, "big")
    return value


tally = Tally()
seed = int(os.environ.get("XRPC_SEED", "20261122"))
print(f"seed {seed}", flush=True)


def types(server, wire, mysql):
    draw = random.Random(seed)
    all_columns = {**SHORT, **LONG}
    made = ask(mysql, f"create table types (id int primary key auto_increment, {', '.join(f'{name} {kind}' for name, kind in all_columns.items())})")
    tally.equal("a table of all types", made, [])
    names = list(all_columns)
    places = ", ".join("?" for _ in names)
    for _ in range(300):
        row = drawn(draw)
        values = [value for value in row.values()]
        wire.done(2, f"insert into types ({', '.join(names)}) values ({places})", *values)
    wire.done(2, "insert into types () values ()")
    for columns, what in ((list(SHORT), "short"), (names, "all")):
        select = f"select id, {', '.join(columns)} from types order by id"
        expected = [[row[0]] + [plain(name, value) for name, value in zip(columns, row[1:])] for row in ask(mysql, select)]
        answer = wire.done(2, select)
        tally.equal(f"rows of {what} columns", of_rows(answer), expected)
        chunked = wire.done(2, select, chunk_result=True)
        if what == "short":
            tally.check("chunks were sent", chunked.chunks and not chunked.rows)
            tally.equal("chunks of short columns", of_chunks(chunked), expected)
        else:
            tally.check("rows with long strings are not put into chunks", chunked.rows and not chunked.chunks)


def statements(server, wire, mysql):
    wire.done(2, "create table t (id int primary key auto_increment, n int)")
    answer = wire.done(2, "insert into t (n) values (?), (?)", 1, None)
    tally.equal("what a change did", (answer.affected, answer.insert_id), (2, 1))
    tally.equal("an update's line", wire.done(2, "update t set n = 5 where id = 1").info, b"Rows matched: 1  Changed: 1  Warnings: 0")
    error = wire.run(2, "insert into t values (1, 1)").error
    tally.equal("an error", (error.severity, error.code, error.sql_state), (x.Error.ERROR, 1062, "23000"))
    digest = hashlib.md5(b"select n from t where id = ?").digest()
    by_digest = {"stmt_digest": digest, "args": [argument(1)]}
    wire.send(2, x.ASK_EXECUTE_SQL, x.StmtExecute(**by_digest))
    tally.equal("a digest that nobody knows", wire.answer(2).error.code, 8000)
    wire.send(2, x.ASK_EXECUTE_SQL, x.StmtExecute(stmt=b"select n from t where id = ?", **by_digest))
    wire.answer(2)
    wire.send(2, x.ASK_EXECUTE_SQL, x.StmtExecute(**by_digest))
    tally.equal("one that is known", of_rows(wire.answer(2)), [[5]])
    variables = dict(of_rows(wire.done(TOP | 5, "show variables")))
    tally.equal("variables that clients look at", [variables.get(name) for name in ("new_rpc", "character_set_client", "transaction_isolation", "autocommit", "time_zone")], ["ON", "utf8mb4", "REPEATABLE-READ", "ON", "SYSTEM"])
    tally.check("and their global values", wire.done(TOP | 6, "show global variables").rows)
    wire.done(2, "create table big (id int primary key, s varchar(200))")
    for start in range(0, 4000, 1000):
        wire.done(2, "insert into big values " + ", ".join(f"({at}, repeat('x', 150))" for at in range(start, start + 1000)))
    slow = wire.done(2, "select s from big", token=1)
    tally.check("tokens are asked for", len(slow.rows) == 4000 and slow.token_waits > 0, slow.token_waits)


def sessions(server, wire, mysql):
    for sid in range(1000, 1200):
        wire.send(sid, x.ASK_SESSION_NEW)
        wire.send(sid, x.ASK_EXECUTE_SQL, x.StmtExecute(stmt=b"select ? * 2", args=[argument(sid)], reset_error=True))
    found = []
    for sid in range(1000, 1200):
        assert wire.receive(sid) == (x.ANSWER_OK, b"")
        found.append(of_rows(wire.answer(sid))[0][0])
    tally.equal("two hundred sessions on one connection", found, [2 * sid for sid in range(1000, 1200)])
    wire.done(2, "begin")
    wire.done(2, "update t set n = 6 where id = 1")
    wire.begin(3)
    wire.send(3, x.ASK_EXECUTE_SQL, x.StmtExecute(stmt=b"update t set n = 7 where id = 1", schema_name=b"shop", reset_error=True))
    wire.begin(4)
    tally.equal("others go on while one waits", of_rows(wire.done(4, "select 1")), [[1]])
    wire.send(3, x.ASK_SESSION_KILL, x.KillSession(type=x.KillSession.QUERY, x_session_id=3))
    tally.equal("a killed statement", wire.answer(3).error.code, 1317)
    wire.send(2, x.ASK_AUTO_SAVEPOINT, x.AutoSp(op=x.AutoSp.SET, sp_name=b"a"))
    wire.answer(2)
    wire.done(2, "update t set n = 8 where id = 1")
    wire.send(2, x.ASK_AUTO_SAVEPOINT, x.AutoSp(op=x.AutoSp.ROLLBACK, sp_name=b"a"))
    wire.answer(2)
    wire.done(2, "commit")
    tally.equal("a savepoint", ask(mysql, "select n from t where id = 1"), [[6]])
    wire.send(9, x.ASK_GET_TSO, x.GetTso(leader_name=b"", batch_count=5))
    _, payload = wire.receive(9)
    return x.ResultTso.FromString(payload).ts + 5 * 64


# Linux: a socket that is closed in this mode says nothing to its peer, as if its machine had lost power.
TCP_REPAIR = 19


def vanished(server, wire, mysql):
    ask(mysql, "set global polarx_rpc_tcp_keep_alive = 1")
    gone = Connection(server.xrpc_port)
    for sid in (2, 3):
        gone.begin(sid)
    gone.done(2, "begin")
    gone.done(2, "update shop.t set n = 55 where id = 1")
    port = gone.socket.getsockname()[1]
    here = f":{server.xrpc_port:04X} 0100007F:{port:04X} 01"
    timer = lambda: [line.split()[5][:2] for line in open("/proc/net/tcp") if here in line]
    # The last answer is first to be acknowledged.
    until = time.monotonic() + 5
    while timer() != ["02"] and time.monotonic() < until:
        time.sleep(0.01)
    tally.equal("a connection at rest is probed: its timer is that of keep-alive", timer(), ["02"])
    wire.send(2, x.ASK_EXECUTE_SQL, x.StmtExecute(stmt=b"update t set n = n + 1 where id = 1", reset_error=True))
    wire.begin(7)
    tally.equal("others go on", of_rows(wire.done(7, "select 2")), [[2]])
    gone.file.close()
    try:
        gone.socket.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    except PermissionError:
        # Root alone may let a peer vanish; the others say goodbye.
        pass
    gone.socket.close()
    begun = time.monotonic()
    tally.equal("a peer that vanishes gives its locks back", wire.answer(2).error, None)
    tally.check("when it is probed, long before a lock's wait is over", time.monotonic() - begun < 20, time.monotonic() - begun)
    tally.equal("what it had not committed is gone", ask(mysql, "select n from t where id = 1"), [[7]])
    ask(mysql, "update t set n = 6 where id = 1")
    tally.equal("and so is the connection", timer(), [])
    ask(mysql, "set global polarx_rpc_tcp_keep_alive = 300")


def placeholder(at):
    return x.Scalar(type=x.Scalar.V_PLACEHOLDER, v_position=at)


def plans(server, wire, mysql):
    info = x.TableInfo(name=placeholder(0), schema_name=placeholder(1))
    keys = [x.GetExpr(keys=[x.KeyExpr(field=scalar("id"), value=placeholder(2))])]
    get = x.AnyPlan(plan_type=x.AnyPlan.GET, get_plan=x.GetPlan(table_info=info, index_info=x.IndexInfo(name=scalar("PRIMARY")), keys=keys))
    pick = x.AnyPlan(plan_type=x.AnyPlan.TABLE_PROJECT, table_project=x.TableProject(sub_read_plan=get, fields=[scalar("n"), scalar("id")]))
    name = lambda text: x.Scalar(type=x.Scalar.V_IDENTIFIER, v_string=x.Scalar.String(value=text, collation=45))
    digest = hashlib.md5(pick.SerializeToString()).digest()
    request = lambda value, **more: x.ExecPlan(plan_digest=digest, parameters=[name(b"t"), name(b"shop"), scalar(value)], reset_error=True, token=10240, **more)
    wire.send(2, x.ASK_EXECUTE_PLAN, request(1))
    tally.equal("a plan that nobody knows", wire.answer(2).error.code, 8000)
    wire.send(2, x.ASK_EXECUTE_PLAN, request(1, plan=pick))
    tally.equal("a plan", of_rows(wire.answer(2)), [[6, 1]])
    wire.send(2, x.ASK_EXECUTE_PLAN, request(2))
    tally.equal("by its digest, for another row", of_rows(wire.answer(2)), [[None, 2]])


MASK = (1 << 64) - 1


def murmur3_x64_128(data):
    """From the definition of the hash, with the seed 0: two numbers of 64 bits."""
    turn = lambda word, by: (word << by | word >> 64 - by) & MASK
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def mix(word):
        word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & MASK
        word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & MASK
        return word ^ word >> 33

    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        k1, k2 = struct.unpack_from("<QQ", data, at)
        h1 = (turn(h1 ^ turn(k1 * c1 & MASK, 31) * c2 & MASK, 27) + h2) * 5 + 0x52DCE729 & MASK
        h2 = (turn(h2 ^ turn(k2 * c2 & MASK, 33) * c1 & MASK, 31) + h1) * 5 + 0x38495AB5 & MASK
    k1, k2 = struct.unpack("<QQ", data[whole:].ljust(16, b"\0"))
    h2 ^= turn(k2 * c2 & MASK, 33) * c1 & MASK
    h1 ^= turn(k1 * c1 & MASK, 31) * c2 & MASK
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = h1 + h2 & MASK
    h2 = h2 + h1 & MASK
    h1, h2 = mix(h1), mix(h2)
    h1 = h1 + h2 & MASK
    return h1, h2 + h1 & MASK


def filters(server, wire, mysql):
    ask(mysql, "create table bloom (id int primary key, big bigint, name varchar(40), x double, day date)")
    ask(mysql, "insert into bloom with recursive r as (select 1 n union all select n + 1 from r where n < 400) select n, n * 1000000007, repeat(concat('n', n), n % 4 + 1), n / 8, '2026-01-01' from r")
    ask(mysql, "insert into bloom (id) values (1000)")
    rows = ask(mysql, "select id, big, name, x from bloom where id < 1000")
    last = [[1000, None, None, None]]
    bits, hashes = 997, 4
    ref = lambda at: x.Expr(type=x.Expr.REF, ref_id=at)
    value = lambda of: x.Expr(type=x.Expr.LITERAL, literal=scalar(of))
    info = x.TableInfo(name=scalar("bloom"), schema_name=scalar("shop"))
    scan = x.AnyPlan(plan_type=x.AnyPlan.TABLE_SCAN, table_scan_plan=x.TableScanPlan(table_info=info))
    forms = [("INT", 0, lambda row: struct.pack("<i", row[0])), ("BIGINT", 1, lambda row: struct.pack("<q", row[1])), ("text", 2, lambda row: row[2].encode()), ("DOUBLE", 3, lambda row: struct.pack("<d", row[3]))]
    for word, (name, column, form) in zip(("bloomfilter", "bloom_filter") * 2, forms):
        bitmap = bytearray((bits + 7) // 8)
        places = lambda row: [((h1 + nth * h2) & MASK >> 1) % bits for h1, h2 in [murmur3_x64_128(form(row))] for nth in range(hashes)]
        for row in rows[::7]:
            for place in places(row):
                bitmap[place // 8] |= 1 << place % 8
        wanted = [row[0] for row in rows + last if row[column] is None or all(bitmap[place // 8] & 1 << place % 8 for place in places(row))]
        call = x.FunctionCall(name=x.Identifier(name=word), param=[ref(column), value(bits), value(hashes), value("murmur3_128"), value(bytes(bitmap))])
        kept = x.AnyPlan(plan_type=x.AnyPlan.FILTER, filter=x.Filter(sub_read_plan=scan, expr=x.Expr(type=x.Expr.FUNC_CALL, function_call=call)))
        wire.send(2, x.ASK_EXECUTE_PLAN, x.ExecPlan(plan=kept, reset_error=True, token=10240))
        found = [row[0] for row in of_rows(wire.answer(2))]
        tally.check(f"a filter over {name} keeps what was put in, NULL, and little else", found == wanted and len(found) < 120, (len(found), len(wanted)))
    for bad in ([ref(0), value(0), value(4), value("murmur3_128"), value(b"x")], [ref(0), value(64), value(4), value("other"), value(b"12345678")], [ref(0), value(65), value(4), value("murmur3_128"), value(b"12345678")]):
        call = x.FunctionCall(name=x.Identifier(name="bloomfilter"), param=bad)
        kept = x.AnyPlan(plan_type=x.AnyPlan.FILTER, filter=x.Filter(sub_read_plan=scan, expr=x.Expr(type=x.Expr.FUNC_CALL, function_call=call)))
        wire.send(2, x.ASK_EXECUTE_PLAN, x.ExecPlan(plan=kept, reset_error=True, token=10240))
        tally.equal("a filter that is none", wire.answer(2).error.code, 1210)


def settings(server, wire, mysql):
    variable = lambda name: dict(ask(mysql, f"show variables like '{name}'")).get(name)
    names = [row[0] for row in ask(mysql, "show variables like 'polarx_rpc%'")]
    tally.check("every variable of the protocol is there", len(names) == 41, names)
    writable = 0
    for name in names:
        before = variable(name)
        word = f"'{before}'" if before in ("ON", "OFF") else before
        answer = ask(mysql, f"set global {name} = {word}")
        writable += answer == []
        tally.check(f"{name} is set or only read", answer in ([], 1238) and variable(name) == before, answer)
        tally.equal(f"{name} is nobody's own", ask(mysql, f"set session {name} = {word}"), 1238 if answer else 1229)
    tally.equal("those that can be set", writable, 17)
    for sql, code in (
        ("set global polarx_rpc_galaxy_version = 128", 1231),
        ("set global polarx_rpc_galaxy_version = -1", 1231),
        ("set global polarx_rpc_galaxy_version = 'one'", 1232),
        ("set global polarx_rpc_enable_perf_hist = 2", 1231),
        ("set global polarx_rpc_max_queued_messages = 15", 1231),
    ):
        tally.equal(sql, ask(mysql, sql), code)
    ask(mysql, "set global polarx_rpc_max_allowed_packet = 4096")
    big = Connection(server.xrpc_port)
    big.begin(2)
    tally.equal("a limit holds at once", big.run(2, "select '" + "x" * 5000 + "'").error.code, 1153)
    ask(mysql, "set global polarx_rpc_max_allowed_packet = default")
    tally.equal("and is what it was", variable("polarx_rpc_max_allowed_packet"), str(64 << 20))
    ask(mysql, "set global polarx_rpc_galaxy_protocol = on")
    try:
        Connection(server.xrpc_port)
        tally.check("a client of the other mode is let in", False)
    except Exception as failure:
        tally.check("a client of the other mode is told so", True, failure)
    ask(mysql, "set global polarx_rpc_galaxy_protocol = off")
    tally.equal("who is there keeps the mode", of_rows(wire.done(2, "select 1")), [[1]])


def figures(server, wire, mysql):
    status = lambda: {name: value for name, value in ask(mysql, "show status like 'polarx_rpc%'")}
    tally.equal("lines of the status", sorted(status()), ["polarx_rpc_" + name for name in ("inited", "plan_evict", "plan_hit", "plan_miss", "sql_evict", "sql_hit", "sql_miss", "tcp_closing", "tcp_connections", "threads", "total_sessions", "worker_sessions")])
    before = status()
    other = Connection(server.xrpc_port)
    other.begin(2)
    digest = hashlib.md5(b"figures").digest()
    other.send(2, x.ASK_EXECUTE_SQL, x.StmtExecute(stmt_digest=digest))
    other.answer(2)
    other.send(2, x.ASK_EXECUTE_SQL, x.StmtExecute(stmt_digest=digest, stmt=b"select 7"))
    other.answer(2)
    other.send(2, x.ASK_EXECUTE_SQL, x.StmtExecute(stmt_digest=digest))
    tally.equal("by its digest", of_rows(other.answer(2)), [[7]])
    after = status()
    more = {name: int(after[name]) - int(before[name]) for name in before if name != "polarx_rpc_inited"}
    tally.equal("what has come of it", [more["polarx_rpc_" + name] for name in ("sql_hit", "sql_miss", "tcp_connections", "worker_sessions")], [1, 1, 1, 1])
    tally.equal("the caches are cleared", ask(mysql, "call xrpc.cmd('clear cache')"), [["clear cache", "ok"]])
    other.send(2, x.ASK_EXECUTE_SQL, x.StmtExecute(stmt_digest=digest))
    tally.equal("and know nothing", other.answer(2).error.code, 8000)
    other.close()
    rows = dict(ask(mysql, "call xrpc.perf_hist('all')"))
    wanted = ["work queue", "recv first", "recv all", "schedule", "run", "decode", "auth", "fin", "timer", "cleanup", "run mysql", "run redis"]
    tally.equal("histograms of all doors", sorted(rows), sorted(wanted))
    lines = rows["run"].splitlines()
    tally.check("the lines of one", lines[0] == "hist:" and "distribution" in lines[1] and all(" |" in line for line in lines[2:]) and len(lines) > 3, lines[:4])
    for name in ("work queue", "recv first", "recv all", "schedule", "run", "decode", "auth", "run mysql", "run redis"):
        tally.check(f"something is in {name}", rows[name].count("\n") > 2, rows[name])
    tally.equal("through EXEC_SQL", of_rows(wire.done(2, "call xrpc.perf_hist(?)", "schedule"))[0][0], "schedule")
    tally.equal("a wrong word", ask(mysql, "call xrpc.perf_hist('nothing')")[0][0], "error")
    tally.equal("begun anew", ask(mysql, "call xrpc.perf_hist('reset')"), [["reset", "ok"]])
    tally.check("they are empty", ask(mysql, "call xrpc.perf_hist('auth')")[0][1].count("\n") == 2)
    ask(mysql, "set global polarx_rpc_enable_perf_hist = off")
    ask(mysql, "call xrpc.perf_hist('reset')")
    wire.done(2, "select 1")
    tally.check("nothing is measured", ask(mysql, "call xrpc.perf_hist('schedule')")[0][1].count("\n") == 2)
    ask(mysql, "set global polarx_rpc_enable_perf_hist = on")
    tally.equal("no such procedure", ask(mysql, "call xrpc.nothing('x')"), 1305)
    tally.equal("too few arguments", ask(mysql, "call xrpc.cmd()"), 1318)
    ask(mysql, "create user looker identified with mysql_native_password by ''")
    looker = come(server, "looker")
    tally.equal("who may not", [ask(looker, "call xrpc.perf_hist('all')"), ask(looker, "call xrpc.cmd('clear cache')"), ask(looker, "set global polarx_rpc_galaxy_version = 1")], [1227] * 3)
    ask(mysql, "grant process on *.* to looker")
    looker = come(server, "looker")
    tally.check("who may look", ask(looker, "call xrpc.perf_hist('run')")[0][0] == "run")
    tally.equal("and change nothing", ask(looker, "call xrpc.perf_hist('reset')"), 1227)


def logins(server, mysql):
    ask(mysql, "create user app identified with mysql_native_password by 'secret'")
    ask(mysql, "grant select on shop.* to app")
    app = Connection(server.xrpc_port, "app", "secret")
    app.begin(2)
    tally.equal("rights are those of SQL", app.run(2, "delete from shop.t").error.code, 1142)
    app.close()
    for user, password in (("app", "Secret"), ("app", ""), ("nobody", "secret")):
        try:
            Connection(server.xrpc_port, user, password)
            tally.check(f"{user} with {password!r} is let in", False)
        except Failed as failure:
            tally.check("a wrong password", "Access denied" in str(failure), failure)


def main():
    with Server(mysql=True, xrpc=True) as server:
        mysql = come(server)
        ask(mysql, "create database shop")
        mysql.select_db("shop")
        wire = Connection(server.xrpc_port)
        wire.begin(2)
        wire.done(2, "use shop")
        types(server, wire, mysql)
        statements(server, wire, mysql)
        last = sessions(server, wire, mysql)
        vanished(server, wire, mysql)
        plans(server, wire, mysql)
        filters(server, wire, mysql)
        settings(server, wire, mysql)
        figures(server, wire, mysql)
        logins(server, mysql)
        wire.done(2, "begin")
        wire.done(2, "update t set n = 100 where id = 1")
        wire.done(4, "insert into shop.t (n) values (77)")
        server.kill()
        server.start()
        wire = Connection(server.xrpc_port)
        wire.begin(2)
        wire.done(2, "use shop")
        tally.equal("after a kill: what was acknowledged, and nothing else", of_rows(wire.done(2, "select n from t order by id")), [[6], [None], [77]])
        wire.send(9, x.ASK_GET_TSO, x.GetTso(leader_name=b"", batch_count=1))
        _, payload = wire.receive(9)
        tally.check("timestamps go on above those before", x.ResultTso.FromString(payload).ts >= last)
    tally.close()


if __name__ == "__main__":
    main()
