"""Records the answers of a PostgreSQL 16 server to the statements of a file, in the form that `play` of `tests/it/definitions.rs` reads.

    record.py CONNINFO FILE

Each line of FILE that begins with `> ` is a statement; all others are replaced by what the server answers. The database should be empty.
"""

import sys

from psycopg import pq


def lines_of(kind, result):
    field = lambda name: (result.error_field(name) or b"").decode()
    yield f"{kind}:  {field(pq.DiagnosticField.SQLSTATE)}: {field(pq.DiagnosticField.MESSAGE_PRIMARY)}"
    for label, name in [
        ("DETAIL", pq.DiagnosticField.MESSAGE_DETAIL),
        ("HINT", pq.DiagnosticField.MESSAGE_HINT),
        ("CONTEXT", pq.DiagnosticField.CONTEXT),
    ]:
        if field(name):
            yield f"{label}:  {field(name)}"


def answer(conn, statement):
    notices = []
    conn.notice_handler = lambda result: notices.extend(lines_of(result.error_field(pq.DiagnosticField.SEVERITY).decode(), result))
    result = conn.exec_(statement.encode())
    if result.status == pq.ExecStatus.TUPLES_OK:
        shown = lambda value: "" if value is None else value.decode()
        rows = [[shown(result.get_value(row, column)) for column in range(result.nfields)] for row in range(result.ntuples)]
        tag = result.command_status.decode()
        return ["|".join(row) for row in rows] + notices + ([] if tag.startswith("SELECT") else [tag])
    if result.status == pq.ExecStatus.COMMAND_OK:
        return notices + [result.command_status.decode()]
    return notices + list(lines_of("ERROR", result))


def main():
    conninfo, path = sys.argv[1:]
    conn = pq.PGconn.connect(conninfo.encode())
    statements = [line[2:] for line in open(path).read().splitlines() if line.startswith("> ")]
    with open(path, "w") as out:
        for statement in statements:
            print(f"> {statement}", *answer(conn, statement), sep="\n", file=out)


main()
