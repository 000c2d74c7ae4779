"""The protocol's less used parts, by MySQL's own C client: compression by zlib and zstd at several levels, what the server lets clients choose, frames that lie; attributes of statements; COM_FIELD_LIST."""

from libmysql import CLIENT_MULTI_STATEMENTS, Connection, Error, Statement  # isort: skip, it brings its own OpenSSL

import socket
import struct
import zlib

import pymysql

from beluga import Server, Tally

tally = Tally()
COMPRESS, ZSTD, QUERY_ATTRIBUTES = 1 << 5, 1 << 26, 1 << 27
PLAIN = 0x0008_8200


def code(action):
    try:
        action()
    except Error as error:
        return error.args[0]
    return None


def status(connection):
    return {name.decode(): value.decode() for name, value in connection.ask("SHOW STATUS LIKE 'Compression%'")}


def compressed(server):
    for algorithms, level, told in (("uncompressed", None, ("OFF", "", "0")), ("zlib", None, ("ON", "zlib", "3")), ("zstd", None, ("ON", "zstd", "3")), ("zstd", 1, ("ON", "zstd", "1")),
                                    ("zstd", 22, ("ON", "zstd", "22")), ("zlib,zstd,uncompressed", None, ("ON", "zlib", "3"))):
        connection = Connection(server.mysql_port, algorithms=algorithms, level=level)
        name = f"{algorithms} {level}"
        tally.equal(name, tuple(status(connection)[key] for key in ("Compression", "Compression_algorithm", "Compression_level")), told)
        tally.equal(f"{name}: small", connection.ask("SELECT 1, 'a', NULL"), [(b"1", b"a", None)])
        for size in (49, 50, 51, 100, 70_000, 16_777_213, 16_777_216) + ((40_000_000,) if level is None else ()):
            tally.equal(f"{name}: {size} bytes there", connection.ask("SELECT LENGTH('" + "a" * size + "')"), [(str(size).encode(),)])
        tally.equal(f"{name}: bytes back", connection.ask("SELECT REPEAT('xy', 3000000)")[0][0] == b"xy" * 3_000_000, True)
        found = connection.ask("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, SHA2(i, 256) FROM n ORDER BY i")
        tally.equal(f"{name}: many rows", (len(found), found[-1][0]), (1000, b"1000"))
        tally.equal(f"{name}: an error", code(lambda: connection.ask("SELECT * FROM nowhere.nothing")), 1049)
        statement = Statement(connection, "SELECT ?, REPEAT(?, 1000), ?")
        tally.equal(f"{name}: prepared", statement.run((7, "ab", None)), [(b"7", b"ab" * 1000, None)])
        statement.close()
        connection.close()


def allowed(server):
    """protocol_compression_algorithms."""
    root = Connection(server.mysql_port)
    tally.equal("the default", root.ask("SELECT @@protocol_compression_algorithms"), [(b"zlib,zstd,uncompressed",)])
    tally.equal("not for a session", code(lambda: root.ask("SET protocol_compression_algorithms = 'zlib'")), 1229)
    for wrong in ("", "lz4", "zlib,,zstd", "zlib zstd"):
        tally.equal(f"not '{wrong}'", code(lambda: root.ask(f"SET GLOBAL protocol_compression_algorithms = '{wrong}'")), 1231)
    root.ask("SET GLOBAL protocol_compression_algorithms = 'zstd'")
    tally.equal("zstd alone is offered", [offers(server, bit) for bit in (COMPRESS, ZSTD)], [False, True])
    Connection(server.mysql_port, algorithms="zstd").close()
    tally.equal("no zlib", refusal(server, PLAIN | COMPRESS), (3922, "Invalid compression algorithm 'zlib'."))
    tally.equal("no plain", refusal(server, PLAIN), (3922, "Invalid compression algorithm 'uncompressed'."))
    root.ask("SET GLOBAL protocol_compression_algorithms = DEFAULT")
    tally.equal("all are offered", [offers(server, bit) for bit in (COMPRESS, ZSTD)], [True, True])
    tally.equal("no such level", [refusal(server, PLAIN | ZSTD, level)[0] for level in (b"", b"\0", b"\x17")], [3923] * 3)
    root.close()


def read(stream, count):
    found = b""
    while len(found) < count:
        more = stream.recv(count - len(found))
        if not more:
            raise EOFError
        found += more
    return found


def packet(stream):
    length = int.from_bytes(read(stream, 4)[:3], "little")
    return read(stream, length)


def offers(server, bit):
    with socket.create_connection(("127.0.0.1", server.mysql_port), 30) as stream:
        behind = packet(stream).split(b"\0", 1)[1]
        return int.from_bytes(behind[13:15] + behind[18:20], "little") & bit != 0


def answer(stream, capabilities, level=b"\3"):
    """Logs in as root without a password; the server's reply."""
    packet(stream)
    payload = struct.pack("<IIB23x", capabilities, 1 << 24, 45) + b"root\0\0" + b"caching_sha2_password\0" + (level if capabilities & ZSTD else b"")
    stream.sendall(len(payload).to_bytes(3, "little") + b"\1" + payload)
    reply = packet(stream)
    while reply[:1] == b"\1":
        reply = packet(stream)
    return reply


def error(reply):
    return (int.from_bytes(reply[1:3], "little"), reply[9:].decode()) if reply[:1] == b"\xff" else None


def refusal(server, capabilities, level=b"\3"):
    with socket.create_connection(("127.0.0.1", server.mysql_port), 30) as stream:
        return error(answer(stream, capabilities, level))


def frame(body, before, number=0):
    return len(body).to_bytes(3, "little") + bytes([number]) + before.to_bytes(3, "little") + body


def command(text):
    payload = b"\3" + text
    return len(payload).to_bytes(3, "little") + b"\0" + payload


def zstd_of_one_byte(size, before=b""):
    """A zstd stream that becomes `before` and then so many letters x: blocks that say how often a byte stands there."""
    stream = bytes.fromhex("28b52ffd") + b"\0\x58"
    if before:
        stream += (len(before) << 3).to_bytes(3, "little") + before
    while True:
        length = min(size, 1 << 17)
        size -= length
        stream += (length << 3 | 1 << 1 | (size == 0)).to_bytes(3, "little") + b"x"
        if size == 0:
            return stream


def first_reply(server, capabilities, sent):
    """The reply to a frame of a logged-in client, and whether the server then closes the connection."""
    with socket.create_connection(("127.0.0.1", server.mysql_port), 30) as stream:
        assert answer(stream, capabilities)[:1] == b"\0"
        stream.sendall(sent)
        head = read(stream, 7)
        body = read(stream, int.from_bytes(head[:3], "little"))
        if head[4:] != b"\0\0\0":
            body = zlib.decompress(body)
        told = error(body[4:])
        if told is None:
            return body[4], False
        return told[0], stream.recv(1) == b""


def lies(server):
    select = command(b"SELECT 'a frame as it should be, long enough to be made shorter'")
    most = 0xFFFFFF
    tally.equal("a frame of zlib", first_reply(server, PLAIN | COMPRESS, frame(zlib.compress(select), len(select))), (1, False))
    tally.equal("a frame of zlib for zstd", first_reply(server, PLAIN | ZSTD, frame(zlib.compress(select), len(select))), (1157, True))
    for capabilities, name, bomb in ((COMPRESS, "zlib", zlib.compress(b"x" * most, 9)), (ZSTD, "zstd", zstd_of_one_byte(most))):
        def told(body, before, number=0):
            return first_reply(server, PLAIN | capabilities, frame(body, before, number))
        # The letters are no packet in its turn, but that is found out behind the frame.
        tally.equal(f"{name}: a bomb within bounds", told(bomb, most), (1156, True))
        for before in (1, 100, most - 1):
            tally.equal(f"{name}: a bomb that says {before}", told(bomb, before), (1157, True))
        tally.equal(f"{name}: less than it says", told(bomb[: len(bomb) // 2], most), (1157, True))
        tally.equal(f"{name}: rubbish", told(b"rubbish" * 20, 1000), (1157, True))
        tally.equal(f"{name}: nothing", told(b"", 1000), (1157, True))
        tally.equal(f"{name}: out of turn", told(bomb, most, 3), (1156, True))
    root = Connection(server.mysql_port)
    root.ask("SET GLOBAL max_allowed_packet = 1048576")
    head, size = (most - 5).to_bytes(3, "little") + b"\0", most - 5
    for capabilities, bomb in ((COMPRESS, zlib.compress(head + b"x" * size, 9)), (ZSTD, zstd_of_one_byte(size, head))):
        tally.equal(f"{capabilities}: a bomb beyond max_allowed_packet", first_reply(server, PLAIN | capabilities, frame(bomb, most - 1)), (1153, True))
        for size in (1_100_000, 20_000_000):
            long = Connection(server.mysql_port, algorithms="zlib" if capabilities == COMPRESS else "zstd")
            tally.equal(f"a packet of {size}", code(lambda: long.ask("SELECT '" + "x" * size + "'")), 1153)
            long.close()
    root.ask("SET GLOBAL max_allowed_packet = DEFAULT")
    root.close()


def attributes(server):
    """CLIENT_QUERY_ATTRIBUTES, with statements as text and prepared."""
    for algorithms in ("uncompressed", "zstd"):
        connection = Connection(server.mysql_port, algorithms=algorithms, flags=CLIENT_MULTI_STATEMENTS)
        name = "SELECT mysql_query_attribute_string('trace'), mysql_query_attribute_string('n'), mysql_query_attribute_string('none')"
        tally.equal("none", connection.ask(name), [(None, None, None)])
        connection.attributes(trace="a-1 \u00e4", n=-42)
        tally.equal("two", connection.ask(name), [("a-1 \u00e4".encode(), b"-42", None)])
        tally.equal("gone with the statement", connection.ask(name), [(None, None, None)])
        connection.attributes(trace=None, n=1.5)
        tally.equal("a NULL and a number", connection.ask(name), [(None, b"1.5", None)])
        connection.attributes(trace="x" * 70_000)
        tally.equal("a long one", connection.ask("SELECT LENGTH(mysql_query_attribute_string('trace'))"), [(b"70000",)])
        connection.attributes(trace="all")
        tally.equal("of several statements", connection.ask("SELECT mysql_query_attribute_string('trace'); SELECT mysql_query_attribute_string('trace')"), [(b"all",)])
        tally.equal("the second", connection.more(), [(b"all",)])
        tally.equal("no more", connection.more(), None)
        connection.attributes(**{f"a{number}": number for number in range(300)})
        tally.equal("many", connection.ask("SELECT mysql_query_attribute_string('a0'), mysql_query_attribute_string('a299')"), [(b"0", b"299")])
        connection.attributes(trace="kept out of the plan")
        tally.equal("a literal beside it", connection.ask("SELECT 5, mysql_query_attribute_string('trace')"), [(b"5", b"kept out of the plan")])
        tally.equal("NULL for its name", connection.ask("SELECT mysql_query_attribute_string(NULL)"), [(None,)])
        tally.equal("it wants a name", code(lambda: connection.ask("SELECT mysql_query_attribute_string()")), 1582)
        with_values = Statement(connection, "SELECT ? + 1, mysql_query_attribute_string('trace'), ?")
        tally.equal("prepared, none", with_values.run((1, "p")), [(b"2", None, b"p")])
        tally.equal("prepared, one", with_values.run((2, "q"), trace="t", other=7), [(b"3", b"t", b"q")])
        tally.equal("prepared, none again", with_values.run((3, None)), [(b"4", None, None)])
        bare = Statement(connection, "SELECT mysql_query_attribute_string('trace')")
        tally.equal("prepared without parameters", [bare.run((), trace="b"), bare.run(())], [[(b"b",)], [(None,)]])
        for statement in (with_values, bare):
            statement.close()
        connection.close()
    for payload, told in ((b"\3", 1835), (b"\3\1", 1835), (b"\3\0\2SELECT 1", 1835), (b"\3\1\1\0\1\3\0", 1835), (b"\3\xfe" + b"\xff" * 8 + b"\1SELECT 1", 1835), (b"\3\0\1SELECT 1", None)):
        with socket.create_connection(("127.0.0.1", server.mysql_port), 30) as stream:
            assert answer(stream, PLAIN | QUERY_ATTRIBUTES)[:1] == b"\0"
            stream.sendall(len(payload).to_bytes(3, "little") + b"\0" + payload)
            found = error(packet(stream))
            tally.equal(f"malformed {payload!r}", found and found[0], told)


def fields(server):
    """COM_FIELD_LIST tells each column's default."""
    connection = Connection(server.mysql_port)
    for statement in ("CREATE DATABASE fields", "USE fields", "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 7, b VARCHAR(10) DEFAULT 'x y', c CHAR(3) NOT NULL, d DATETIME DEFAULT CURRENT_TIMESTAMP, "
                      "e DECIMAL(5,2) NOT NULL DEFAULT 1.5, f ENUM('p','q') NOT NULL, g TEXT)"):
        connection.ask(statement)
    with socket.create_connection(("127.0.0.1", server.mysql_port), 30) as stream:
        assert answer(stream, PLAIN)[:1] == b"\0"
        for payload in (b"\2fields", b"\4t\0"):
            stream.sendall(len(payload).to_bytes(3, "little") + b"\0" + payload)
            found, reply = [], packet(stream)
            while reply[:1] not in (b"\xfe", b"\0"):
                found.append(default_of(reply))
                reply = packet(stream)
        tally.equal("defaults", found, [b"0", b"7", b"x y", b"", None, b"1.50", b"p", None])
    words = connection.ask("SELECT WORD FROM information_schema.KEYWORDS WHERE RESERVED = 1 AND WORD IN ('SELECT', 'PATH', 'LATERAL', 'ROLE') ORDER BY 1")
    tally.equal("reserved words", words, [(b"LATERAL",), (b"SELECT",)])
    connection.close()


def default_of(column):
    """The bytes after a column's definition."""
    at = 0
    for _ in range(6):
        at += 1 + column[at]
    behind = column[at + 13 :]
    return None if behind == b"\xfb" else behind[1:]


def main():
    with Server(mysql=True) as server:
        compressed(server)
        allowed(server)
        lies(server)
        attributes(server)
        fields(server)
        with pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root").cursor() as cursor:
            cursor.execute("SELECT 1")
            tally.equal("the server is well", cursor.fetchall(), ((1,),))
    tally.close()


main()
