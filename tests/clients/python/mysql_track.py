"""Session tracking by MySQL's own C client: what each OK tells of the session. First as MySQL 8.0 has it, then beside a MariaDB server, note for note, where the two mean the same."""

from libmysql import CLIENT_MULTI_STATEMENTS, TRACKED, Connection, Error  # isort: skip, it brings its own OpenSSL

import shutil
import socket
import struct

from beluga import MariaDB, Server, Tally

tally = Tally()
NAMES = ["character_set_client", "utf8mb4", "character_set_connection", "utf8mb4", "character_set_results", "utf8mb4"]
LISTED = "session_track_system_variables"


def asked(connection, text):
    """The notes of each result, or the error's number."""
    notes = []
    try:
        found = connection.ask(text)
        while found is not None:
            notes.append({kind: told for kind in TRACKED if (told := connection.tracked(kind))})
            found = connection.more()
    except Error as error:
        notes.append(error.args[0])
    return notes


def T(letters):
    return {"transaction": [letters]}


def C(letters, statements):
    return {**({"transaction": [letters]} if letters else {}), "characteristics": [statements]}


# A statement, and what it tells.
MYSQL = [
    ("SELECT @@session_track_schema, @@session_track_system_variables", {}),
    ("CREATE DATABASE track", {}),
    ("USE track", {"schema": ["track"]}),
    ("USE track", {"schema": ["track"]}),
    ("USE nowhere", 1049),
    ("SET NAMES utf8mb4", {"variables": NAMES}),
    ("SET autocommit = 1", {"variables": ["autocommit", "ON"]}),
    ("SET time_zone = '+01:00', autocommit = 1, sql_mode = @@sql_mode", {"variables": ["autocommit", "ON", "time_zone", "+01:00"]}),
    ("SET autocommit = 0, time_zone = 'nowhere'", 1298),
    ("SET sql_mode = ''", {}),
    ("SET GLOBAL autocommit = 1", {}),
    (f"SET {LISTED} = 'no_such,SQL_MODE , autocommit,'", {}),
    ("SHOW WARNINGS", {}),
    ("SET sql_mode = 'ANSI_QUOTES'", {"variables": ["SQL_MODE", "ANSI_QUOTES"]}),
    ("SET time_zone = '+00:00'", {}),
    (f"SET {LISTED} = 'autocommit, autocommit'", 3026),
    (f"SET {LISTED} = 7", 1232),
    (f"SET {LISTED} = '*'", {"variables": [LISTED, "*"]}),
    ("SET sql_mode = DEFAULT", {"variables": ["sql_mode", "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"]}),
    ("SET SESSION TRANSACTION READ ONLY, ISOLATION LEVEL READ COMMITTED", {"variables": ["transaction_isolation", "READ-COMMITTED", "transaction_read_only", "ON"]}),
    ("SET SESSION TRANSACTION READ WRITE, ISOLATION LEVEL REPEATABLE READ", {"variables": ["transaction_isolation", "REPEATABLE-READ", "transaction_read_only", "OFF"]}),
    (f"SET {LISTED} = NULL", {}),
    ("SET autocommit = 1", {}),
    (f"SET {LISTED} = ''", {}),
    (f"SET {LISTED} = DEFAULT", {}),
    ("SET session_track_schema = nonsense", 1231),
    ("SET session_track_schema = OFF", {}),
    ("USE track", {}),
    ("SET session_track_schema = 1", {}),
    ("SET session_track_state_change = NULL", 1231),
    ("SET session_track_state_change = 20", 1231),
    ("SET session_track_state_change = ON", {}),
    ("USE track", {"schema": ["track"], "change": ["1"]}),
    ("SET autocommit = ON", {"variables": ["autocommit", "ON"], "change": ["1"]}),
    ("SET @a = 1", {"change": ["1"]}),
    ("SELECT 1 INTO @a", {}),
    ("PREPARE p FROM 'SELECT 1'", {"change": ["1"]}),
    ("EXECUTE p", {}),
    ("DEALLOCATE PREPARE p", {"change": ["1"]}),
    ("CREATE TEMPORARY TABLE own (a INT)", {"change": ["1"]}),
    ("ALTER TABLE own ADD b INT", {"change": ["1"]}),
    ("INSERT INTO own VALUES (1, 2)", {}),
    ("DROP TEMPORARY TABLE own", {"change": ["1"]}),
    ("CREATE TABLE t (a INT PRIMARY KEY, b INT)", {}),
    ("SET session_track_state_change = OFF", {}),
    ("SET session_track_gtids = OFF", {}),
    ("SET session_track_gtids = OWN_GTID", 1235),
    ("SET session_track_gtids = 'nonsense'", 1231),
    ("SET session_track_transaction_info = 1.5", 1232),
    ("SET session_track_transaction_info = 'on'", 1231),
    ("SET session_track_transaction_info = 1", T("________")),
    ("SELECT @@session_track_transaction_info", {}),
    ("BEGIN", T("T_______")),
    ("SET session_track_gtids = OFF", 1766),
    ("SELECT * FROM t", T("T_R___S_")),
    ("SELECT * FROM t", {}),
    ("INSERT INTO t VALUES (1, 1)", T("T_R_W_S_")),
    ("SELECT UUID()", T("T_R_WsS_")),
    ("COMMIT", T("________")),
    ("BEGIN; SELECT 1; SELECT a FROM t; COMMIT", [T("T_______"), T("T_____S_"), T("T_R___S_"), T("________")]),
    ("BEGIN", T("T_______")),
    ("SELECT 'uuid()', `a` FROM t LIMIT 1", T("T_R__sS_")),
    ("CREATE TABLE u (a INT)", T("________")),
    ("SET autocommit = 0", {"variables": ["autocommit", "OFF"]}),
    ("SELECT 1", {}),
    ("SET TRANSACTION READ WRITE", {}),
    ("INSERT INTO t VALUES (2, 2)", T("I___W___")),
    ("SET TRANSACTION READ WRITE", 1568),
    ("SELECT a FROM t WHERE a = 1", T("I_R_W_S_")),
    ("BEGIN", T("T_______")),
    ("ROLLBACK", T("________")),
    ("LOCK TABLES t WRITE", T("I___W__L")),
    ("COMMIT", T("_______L")),
    ("UNLOCK TABLES", T("________")),
    ("SET autocommit = 1", {"variables": ["autocommit", "ON"]}),
    ("START TRANSACTION WITH CONSISTENT SNAPSHOT", T("T_R_____")),
    ("COMMIT AND CHAIN", T("T_______")),
    ("ROLLBACK AND CHAIN", {}),
    ("ROLLBACK", T("________")),
    ("SET session_track_transaction_info = 'characteristics'", C(None, "")),
    ("START TRANSACTION", C("T_______", "START TRANSACTION;")),
    ("START TRANSACTION READ ONLY", C(None, "START TRANSACTION READ ONLY;")),
    ("INSERT INTO t VALUES (3, 3)", 1792),
    ("COMMIT AND CHAIN", C(None, "START TRANSACTION READ ONLY;")),
    ("INSERT INTO t VALUES (3, 3)", 1792),
    ("START TRANSACTION READ WRITE, WITH CONSISTENT SNAPSHOT", C("T_R_____", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ WRITE;")),
    ("COMMIT", C("________", "")),
    # Not as in MariaDB: what is not said anew goes on.
    ("START TRANSACTION READ ONLY", C("T_______", "START TRANSACTION READ ONLY;")),
    ("START TRANSACTION WITH CONSISTENT SNAPSHOT", C("T_R_____", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;")),
    ("COMMIT", C("________", "")),
    ("SET TRANSACTION READ ONLY", C(None, "SET TRANSACTION READ ONLY;")),
    ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", C(None, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SET TRANSACTION READ ONLY;")),
    ("SET TRANSACTION READ ONLY", {}),
    ("SELECT 1", {}),
    ("SET SESSION TRANSACTION READ WRITE", C(None, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;")),
    ("BEGIN", C("T_______", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION;")),
    ("COMMIT AND CHAIN", C(None, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION;")),
    ("DROP TABLE u", C("________", "")),
    ("SET @@transaction_isolation = 'READ-COMMITTED'", C(None, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;")),
    ("SELECT a FROM t WHERE a = 1", C(None, "")),
    ("SET session_track_transaction_info = OFF", {}),
    ("BEGIN", {}),
    ("COMMIT", {}),
    ("DROP DATABASE track", {"schema": [""]}),
]

# Reports that are equal on both servers, byte for byte, except for the part after a dash.
BESIDE = """
CREATE DATABASE track; USE track
CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE u (a INT PRIMARY KEY, b INT); INSERT INTO t VALUES (1, 1), (2, 2)
SET session_track_transaction_info = 'STATE'
SELECT * FROM t FOR UPDATE
SELECT * FROM t LOCK IN SHARE MODE
SELECT COUNT(*) FROM t JOIN u ON t.a = u.a
UPDATE t SET b = 2
UPDATE t JOIN u USING (a) SET t.b = 2
UPDATE t SET b = (SELECT MAX(b) FROM u)
UPDATE t SET b = 3 WHERE a IN (SELECT a FROM u)
DELETE FROM u LIMIT 1
DELETE t FROM t JOIN u USING (a)
INSERT INTO u VALUES (5, 5) ON DUPLICATE KEY UPDATE b = 3
INSERT IGNORE INTO u VALUES (5, 5)
INSERT INTO u SELECT a + 10, b FROM t
INSERT IGNORE INTO u SELECT a, b FROM t
REPLACE INTO u SELECT a, b FROM t
REPLACE INTO u VALUES (9, 9)
DO RAND(); DO NOW()
DO VERSION()
DO CURRENT_USER()
DO USER()
DO SLEEP(0)
DO FOUND_ROWS()
DO LAST_INSERT_ID(); DO CONNECTION_ID(); DO DATABASE()
DO @@sql_mode
DO @@time_zone; DO @@session.character_set_client
DO (SELECT COUNT(*) FROM t)
SET @a = (SELECT COUNT(*) FROM t)
SELECT a, b FROM t WHERE a = 1 INTO @a, @b
EXPLAIN SELECT * FROM t
EXPLAIN SELECT 1
SHOW CREATE TABLE t
SHOW WARNINGS
SELECT 1 UNION SELECT 2
WITH c AS (SELECT a FROM t) SELECT * FROM c
SELECT * FROM nowhere
SELECT nowhere FROM t
INSERT INTO t VALUES (1, 1)
SAVEPOINT a; INSERT INTO t VALUES (7, 7); ROLLBACK TO a; RELEASE SAVEPOINT a
PREPARE p FROM 'SELECT UUID()'; EXECUTE p; DEALLOCATE PREPARE p
CREATE TEMPORARY TABLE own (a INT); INSERT INTO own VALUES (1); SELECT * FROM own; DROP TEMPORARY TABLE own
CREATE TABLE v (a INT)
DROP TABLE v
ANALYZE TABLE t
COMMIT AND CHAIN; SELECT 1; ROLLBACK AND CHAIN
SET autocommit = 0; SELECT 1; SELECT * FROM t; COMMIT; INSERT INTO t VALUES (8, 8); BEGIN; ROLLBACK; SET autocommit = 1
SET autocommit = 0; LOCK TABLES t WRITE, u READ; SELECT COUNT(*) FROM t; COMMIT; UNLOCK TABLES; SET autocommit = 1
LOCK TABLES t READ; SELECT COUNT(*) FROM t; BEGIN; COMMIT; UNLOCK TABLES
SET session_track_transaction_info = 'CHARACTERISTICS'; BEGIN; BEGIN; COMMIT AND CHAIN; COMMIT
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT 1; BEGIN; COMMIT
SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; SELECT * FROM t; BEGIN; COMMIT
SET TRANSACTION READ ONLY; SET TRANSACTION READ WRITE; SET TRANSACTION READ WRITE; ROLLBACK
SET TRANSACTION READ ONLY; START TRANSACTION; COMMIT AND CHAIN; ROLLBACK AND CHAIN; COMMIT
START TRANSACTION WITH CONSISTENT SNAPSHOT, READ WRITE; COMMIT
SET autocommit = 0; SET TRANSACTION READ ONLY; INSERT INTO t VALUES (9, 9); ROLLBACK; SET autocommit = 1
SET character_set_results = latin1; SET character_set_connection = utf8mb4; SET character_set_results = utf8mb4
- SET session_track_state_change = 1
SET @a = 1; USE track; SET autocommit = 1; SELECT @b := 1; SELECT 1 INTO @a
PREPARE p FROM 'SELECT 1'; EXECUTE p; DEALLOCATE PREPARE p
CREATE TEMPORARY TABLE own (a INT); CREATE TEMPORARY TABLE too AS SELECT * FROM own; CREATE TEMPORARY TABLE third LIKE own
ALTER TABLE own ADD b INT; CREATE INDEX i ON own (b); DROP INDEX i ON own; TRUNCATE own
DROP TABLE own; DROP TEMPORARY TABLE too; DROP TEMPORARY TABLE IF EXISTS nothing
SET session_track_system_variables = 'div_precision_increment'; SET div_precision_increment = 5; SET div_precision_increment = DEFAULT; SET GLOBAL div_precision_increment = 4
SET session_track_schema = 0; USE track; SET session_track_schema = 1
DROP DATABASE track
"""


class Plain:
    """A connection that shows the notes as they are in the packets: the C client above cannot log in to a MariaDB server."""

    DEPRECATE_EOF = 1 << 24

    def __init__(self, port, deprecate_eof=True):
        self.stream = socket.create_connection(("127.0.0.1", port), 60)
        self.deprecate_eof = deprecate_eof
        self.packet()
        capabilities = 0x0088_A201 | CLIENT_MULTI_STATEMENTS | CLIENT_MULTI_STATEMENTS << 1 | (self.DEPRECATE_EOF if deprecate_eof else 0)
        self.put(struct.pack("<IIB23x", capabilities, 1 << 24, 45) + b"root\0\0" + b"mysql_native_password\0", 1)
        reply = self.packet()
        while reply[:1] in (b"\xfe", b"\1"):
            if reply[:1] == b"\xfe":
                self.put(b"", self.sequence + 1)
            reply = self.packet()
        assert reply[:1] == b"\0", reply

    def put(self, payload, sequence=0):
        self.stream.sendall(len(payload).to_bytes(3, "little") + bytes([sequence]) + payload)

    def read(self, count):
        found = b""
        while len(found) < count:
            more = self.stream.recv(count - len(found))
            if not more:
                raise EOFError
            found += more
        return found

    def packet(self):
        head = self.read(4)
        self.sequence = head[3]
        return self.read(int.from_bytes(head[:3], "little"))

    def ask(self, text):
        """The block of notes of each result, or an error's number."""
        self.put(b"\3" + text.encode())
        told, self.more = [], True
        while self.more:
            self.more = False
            reply = self.packet()
            if reply[0] not in (0, 0xFF):
                for _ in range(reply[0] + (not self.deprecate_eof)):
                    self.packet()
                while (reply := self.packet())[0] != 0xFE:
                    pass
            told.append(self.notes(reply))
        return told

    def notes(self, reply):
        if reply[0] == 0xFF:
            return int.from_bytes(reply[1:3], "little")
        if reply[0] == 0xFE and not self.deprecate_eof:
            self.more = int.from_bytes(reply[3:5], "little") & 8 != 0
            return b""
        _, at = measured(reply, 1)
        _, at = measured(reply, at)
        status = int.from_bytes(reply[at : at + 2], "little")
        self.more = status & 8 != 0
        if not status & 0x4000:
            return b""
        information, at = measured(reply, at + 4)
        length, at = measured(reply, at + information)
        assert at + length == len(reply), reply
        return reply[at:]


def noted(letters):
    return b"\5\x09\x08" + letters


def measured(data, at):
    """A number of the protocol, and where it ends."""
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(data[at], 0)
    return (int.from_bytes(data[at + 1 : at + 1 + width], "little") if width else data[at]), at + 1 + width


def as_mysql(server):
    connection = Connection(server.mysql_port, flags=CLIENT_MULTI_STATEMENTS)
    for text, told in MYSQL:
        tally.equal(text, asked(connection, text), told if isinstance(told, list) else [told])
    connection.close()
    old = Plain(server.mysql_port, deprecate_eof=False)
    old.ask("SET session_track_transaction_info = 'STATE'")
    tally.equal("an EOF has no room: the next OK tells", [old.ask(text) for text in ("BEGIN", "SELECT 1", "DO 1", "COMMIT")], [[noted(b"T_______")], [b""], [noted(b"T_____S_")], [noted(b"________")]])
    root = Connection(server.mysql_port)
    root.ask("CREATE DATABASE track")
    into = Connection(server.mysql_port, database="track")
    tally.equal("the login tells the schema", into.tracked("schema"), ["track"])
    into.close()
    root.ask("SET GLOBAL session_track_transaction_info = 'STATE'")
    root.ask("SET GLOBAL session_track_system_variables = 'sql_mode'")
    begun = Connection(server.mysql_port)
    tally.equal("the server's values are a session's first", [asked(begun, text) for text in ("BEGIN", "SET autocommit = 1", "SET sql_mode = ''")],
                [[T("T_______")], [{}], [{"variables": ["sql_mode", ""]}]])
    begun.close()
    root.ask("SET GLOBAL session_track_transaction_info = DEFAULT")
    root.ask("SET GLOBAL session_track_system_variables = DEFAULT")
    root.ask("DROP DATABASE track")
    root.close()


def beside(server):
    if not shutil.which("mariadbd"):
        tally.skip("no mariadbd")
        return
    with MariaDB() as mariadb:
        compare([Plain(port) for port in (server.mysql_port, mariadb.port)])


def compare(pair):
    is_inside = False
    for line in BESIDE.strip().splitlines():
        statements = line.split("; ")
        # Most are asked inside a transaction.
        if is_inside and not statements[0].startswith(("SET session", "SET TRANSACTION", "SET autocommit", "LOCK", "START", "DROP DATABASE", "- ")):
            statements = ["BEGIN", *statements, "COMMIT"]
        is_inside = is_inside or line.startswith("SET session")
        for text in statements:
            ours, theirs = (connection.ask(text.removeprefix("- ")) for connection in pair)
            if not line.startswith("- "):
                tally.equal(f"{line}: {text}", ours, theirs)


with Server(mysql=True) as server:
    as_mysql(server)
    beside(server)
tally.close()
