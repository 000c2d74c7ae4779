"""Records the answers of a PostgreSQL 16 server, in the form that `tests/it/recorded.rs` reads.

    record.py PORT FILE

Each line of FILE that begins with `> ` is a statement of one session in a new database; all others are replaced by what the server answers.
"""

import sys

from psycopg import pq


def field(result, name):
    return (result.error_field(name) or b"").decode()


def answer(conn, statement):
    result = conn.exec_(statement.encode())
    if result.status == pq.ExecStatus.TUPLES_OK:
        # OIDs of types that users define differ from server to server.
        oid = lambda nth: result.ftype(nth) if result.ftype(nth) < 16384 else "user"
        of = lambda nth: f"{result.fname(nth).decode()}:{oid(nth)}:{result.fmod(nth)}"
        shown = lambda value: "<NULL>" if value is None else value.decode()
        rows = ["|".join(shown(result.get_value(row, nth)) for nth in range(result.nfields)) for row in range(result.ntuples)]
        tag = [result.command_status.decode()] if not statement.lower().lstrip("(").startswith(("select", "with", "values", "table", "show", "execute", "explain", "fetch")) else []
        return [f"# {' '.join(of(nth) for nth in range(result.nfields))}", *rows, *tag]
    if result.status == pq.ExecStatus.COMMAND_OK:
        return [result.command_status.decode()]
    parts = [pq.DiagnosticField.MESSAGE_DETAIL, pq.DiagnosticField.MESSAGE_HINT]
    position = field(result, pq.DiagnosticField.STATEMENT_POSITION) or "0"
    more = " | ".join(field(result, name) for name in parts)
    return [f"ERROR {field(result, pq.DiagnosticField.SQLSTATE)} {field(result, pq.DiagnosticField.MESSAGE_PRIMARY)} | {more} | {position}"]


def main():
    port, path = int(sys.argv[1]), sys.argv[2]
    with open(path, encoding="utf-8") as file:
        statements = [line[2:] for line in file.read().splitlines() if line.startswith("> ")]
    connect = lambda database: pq.PGconn.connect(f"host=127.0.0.1 port={port} user=postgres dbname={database} sslmode=disable".encode())
    first = connect("postgres")
    first.exec_(b"drop database if exists recorded")
    assert first.exec_(b"create database recorded").status == pq.ExecStatus.COMMAND_OK
    conn = connect("recorded")
    conn.notice_handler = lambda result: None
    lines = [line for statement in statements for line in [f"> {statement}", *answer(conn, statement)]]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
