"""Records the answers of a PostgreSQL 16 server to statements of several roles, in the form that `tests/it/roles.rs` reads.

    record.py PORT FILE

Each line of FILE that begins with `> ` is a role and its statement; all others are replaced by what the server answers. `ann: statement` runs in a session of postgres that has become the role by SET SESSION AUTHORIZATION. The first statement of `ann@d1: ...` logs in as the role to the database, and is answered
with the notices of the login too; `ann@d1#2` is another login. The server should have no roles and databases beside its own.
"""

import sys

from psycopg import pq


def field(result, name):
    return (result.error_field(name) or b"").decode().replace("\n", "; ")


def told(result):
    return f"{field(result, pq.DiagnosticField.SEVERITY)} {field(result, pq.DiagnosticField.SQLSTATE)} {field(result, pq.DiagnosticField.MESSAGE_PRIMARY)}"


def answer(conn, statement):
    result = conn.exec_(statement.encode())
    if result.status == pq.ExecStatus.TUPLES_OK:
        shown = lambda value: "<NULL>" if value is None else value.decode()
        rows = ["|".join(shown(result.get_value(row, column)) for column in range(result.nfields)) for row in range(result.ntuples)]
        return [f"# {result.nfields}", *rows]
    if result.status == pq.ExecStatus.COMMAND_OK:
        return [result.command_status.decode()]
    more = " | ".join(field(result, name) for name in (pq.DiagnosticField.MESSAGE_DETAIL, pq.DiagnosticField.MESSAGE_HINT))
    position = field(result, pq.DiagnosticField.STATEMENT_POSITION) or "0"
    return [f"{told(result)} | {more} | {position}"]


def login(port, label, notices):
    role, _, database = label.partition("#")[0].partition("@")
    is_login = bool(database)
    user, database = (role, database) if is_login else ("postgres", "postgres")
    conn = pq.PGconn.connect(f"host=127.0.0.1 port={port} user={user} dbname={database} sslmode=disable".encode())
    assert conn.status == pq.ConnStatus.OK, conn.error_message.decode()
    if is_login:
        # libpq shows no notices of a login to a handler that comes later: they are asked for by a login of psql's kind, below.
        notices.extend(login_notices(port, user, database))
    conn.notice_handler = lambda result: notices.append(told(result))
    if not is_login and role != "postgres":
        conn.exec_(f"set session authorization {role}".encode())
    return conn


def login_notices(port, user, database):
    """Returns the notices that a login gives, read from the wire."""
    import socket
    import struct

    with socket.create_connection(("127.0.0.1", port)) as sock:
        options = b"".join(word.encode() + b"\0" for word in ("user", user, "database", database)) + b"\0"
        sock.sendall(struct.pack(">ii", 8 + len(options), 196608) + options)
        file, found = sock.makefile("rb"), []
        while True:
            kind, size = struct.unpack(">ci", file.read(5))
            body = file.read(size - 4)
            if kind == b"N":
                fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
                found.append(f"{fields[b'S']} {fields[b'C']} {fields[b'M']}")
            if kind == b"Z":
                return found
            assert kind != b"E", body


def main():
    port, path = int(sys.argv[1]), sys.argv[2]
    with open(path, encoding="utf-8") as file:
        statements = [line[2:] for line in file.read().splitlines() if line.startswith("> ")]
    sessions, notices, lines = {}, [], []
    for line in statements:
        label, statement = line.split(": ", 1)
        if label not in sessions:
            sessions[label] = login(port, label, notices)
        if statement == "leave":
            sessions.pop(label).finish()
            given = []
        else:
            given = answer(sessions[label], statement)
        lines += [f"> {line}", *notices, *given]
        notices.clear()
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
