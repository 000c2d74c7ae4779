"""SQLAlchemy's own suite for dialects (tests/clients/sqlalchemy_suite), over psycopg: definitions, reflection, types, results, sequences, isolation.

    postgres_sqlalchemy.py                 plays it to a server of its own; what fails must be what fails on PostgreSQL 16 too
    postgres_sqlalchemy.py PORT [--record] plays it to the PostgreSQL server at PORT; --record writes what fails to fails_on_postgresql.txt
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import psycopg

from beluga import Server, Tally

SUITE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../sqlalchemy_suite"))
EXPECTED = os.path.join(SUITE, "fails_on_postgresql.txt")


def play(port):
    """Plays the suite in a new database. Returns the number of tests that passed, and the names of those that did not."""
    at = dict(host="127.0.0.1", port=port, user="postgres", sslmode="disable", autocommit=True)
    with psycopg.connect(dbname="postgres", **at) as connection:
        connection.execute("drop database if exists suite")
        connection.execute("create database suite")
    with psycopg.connect(dbname="suite", **at) as connection:
        connection.execute("create schema test_schema")
        connection.execute("create schema test_schema_2")
    # pytest and the suite write beside their files.
    folder = tempfile.mkdtemp(prefix="beluga-test-")
    try:
        shutil.copytree(SUITE, folder, dirs_exist_ok=True)
        words = [sys.executable, "-m", "pytest", "--dburi", f"postgresql+psycopg://postgres@127.0.0.1:{port}/suite", "test_suite.py"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=900)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    closing = re.search(r"^.*\b(\d+) passed\b.*$", done.stdout, re.MULTILINE)
    if not closing:
        sys.exit(f"pytest did not come to its end:\n{(done.stdout + done.stderr)[-5000:]}")
    failed = {}
    for outcome in re.finditer(r"^(?:FAILED|ERROR) (?:test_suite\.py::)?(.*)$", done.stdout, re.MULTILINE):
        # Classes are named after the dialect and the server's version; a reason may follow.
        name, _, reason = outcome.group(1).partition(" - ")
        failed[re.sub(r"_postgresql\+psycopg_[0-9_]+", "", name)] = reason
    return int(closing.group(1)), failed


def main():
    ports = [word for word in sys.argv[1:] if word.isdigit()]
    if "--record" in sys.argv:
        passed, failed = play(int(ports[0]))
        with open(EXPECTED, "w") as file:
            file.write("".join(f"{name}\n" for name in sorted(failed)))
        print(f"{passed} pass, {len(failed)} fail on the server")
        return
    with open(EXPECTED) as file:
        expected = set(file.read().splitlines())
    tally = Tally()
    if ports:
        passed, failed = play(int(ports[0]))
    else:
        with Server("--memory", "512mb", postgres=True) as server:
            passed, failed = play(server.postgres_port)
    tally.passed = passed
    for name, reason in failed.items():
        if name not in expected:
            tally.check(name, False, reason)
    tally.check("hardly anything was played", passed > 1_300, f"{passed} tests")
    tally.close()


if __name__ == "__main__":
    main()
