"""Plays tests/clients/sql/postgres_anomalies.txt, postgres_locks.txt and postgres_serializable.txt: what transactions of the PostgreSQL door see of each other, and who waits for whom. The expectations are a real PostgreSQL 16's answers.

    postgres_anomalies.py                            at a server of its own
    postgres_anomalies.py --port PORT                at a server that runs
    postgres_anomalies.py --port PORT --record       writes the expectations anew, from a real PostgreSQL
    postgres_anomalies.py --only WORD                scenarios whose names have the word
"""

import argparse
import pathlib
import queue
import re
import threading
import time

import psycopg

SCRIPTS = [pathlib.Path(__file__).parent.parent / "sql" / name for name in ("postgres_anomalies.txt", "postgres_locks.txt", "postgres_serializable.txt")]
DATABASE = "anomalies"
SERIALIZABLE = "postgres_serializable.txt"
# Longer than any statement that does not wait takes on a busy machine.
PATIENCE = 0.5
# Longer than any wait that ends.
LONG = 8

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.add_argument("--only", default="")
parser.add_argument("--record", action="store_true")


class Scenario:
    def __init__(self, name):
        self.name = name
        # (connection, statement or None for the answer of one that waited, expectation; the setup has none, and must succeed)
        self.steps = []


def scenarios(script):
    """Returns the comment at the head, and the scenarios."""
    head, found = [], []
    for line in script.read_text().splitlines():
        line = line.strip()
        if not found and not line.startswith("=="):
            head.append(line)
        elif line.startswith("=="):
            found.append(Scenario(line[2:].strip()))
        elif statement := re.fullmatch(r"(S|[A-E]): (.*)", line):
            found[-1].steps.append([statement[1], statement[2], None])
        elif waited := re.fullmatch(r"([A-E]) -> (.*)", line):
            found[-1].steps.append([waited[1], None, waited[2]])
        elif line.startswith("->"):
            found[-1].steps[-1][2] = line[3:]
        else:
            assert not line, line
    return head, found


def shown(cursor):
    if cursor.description is None:
        return cursor.statusmessage
    rows = [" ".join("null" if value is None else str(value) for value in row) for row in cursor.fetchall()]
    is_changed = not cursor.statusmessage.startswith(("SELECT", "SHOW"))
    return (f"{cursor.statusmessage}: " if is_changed else "") + (" | ".join(rows) or "no rows")


class Player(threading.Thread):
    """A connection that runs one statement at a time, in a thread of its own."""

    def __init__(self, port, name):
        super().__init__(daemon=True)
        self.wire = psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname={DATABASE} sslmode=disable", autocommit=True)
        if self.is_real():
            # Beluga ends the statement that closes a cycle. A PostgreSQL ends the first that looks: here any but that of connection A.
            self.wire.execute(f"set deadlock_timeout = '{'20s' if name == 'A' else '200ms'}'")
        self.todo, self.done = queue.Queue(), queue.Queue()
        self.is_waiting = False
        self.start()

    def is_real(self):
        return "Beluga" not in self.wire.execute("select version()").fetchone()[0]

    def run(self):
        while (statement := self.todo.get()) is not None:
            try:
                with self.wire.cursor() as cursor:
                    cursor.execute(statement, prepare=False)
                    self.done.put(shown(cursor))
            except psycopg.Error as error:
                text = error.diag.message_primary or str(error)
                self.done.put(f"error {error.sqlstate} {text}")

    def ask(self, statement):
        self.todo.put(statement)
        self.is_waiting = True

    def answer(self, patience):
        try:
            answer = self.done.get(timeout=patience)
        except queue.Empty:
            return "waits"
        self.is_waiting = False
        return answer

    def close(self):
        if self.is_waiting:
            self.wire.cancel()
            self.answer(LONG)
        self.todo.put(None)
        self.join(LONG)
        self.wire.close()


def is_refused(answers):
    return any((answer or "").startswith("error 40001") for answer in answers)


def play(scenario, arguments, may_differ=False):
    """Returns the first step that went wrong. With --record, replaces the steps by what happened. `may_differ`: if the expectations refuse a transaction, or the name says that one is refused here, it may be another one at another step."""
    may_differ &= is_refused(expected for _, _, expected in scenario.steps) or scenario.name.endswith("refused here")
    answers = []
    admin = psycopg.connect(f"host=127.0.0.1 port={arguments.port} user=postgres dbname=postgres sslmode=disable", autocommit=True)
    admin.execute(f"drop database if exists {DATABASE} with (force)")
    admin.execute(f"create database {DATABASE}")
    admin.close()
    players, happened = {}, []
    try:
        for who, statement, expected in scenario.steps:
            if who not in players:
                players[who] = Player(arguments.port, who)
            player = players[who]
            if statement is not None:
                player.ask(statement)
            elif arguments.record:
                continue
            patience = PATIENCE if arguments.record or expected == "waits" else LONG
            found = player.answer(patience)
            if arguments.record:
                happened.append([who, statement, found])
                for other, waiting in sorted(players.items()):
                    if other != who and waiting.is_waiting and (answer := waiting.answer(PATIENCE)) != "waits":
                        happened.append([other, None, answer])
            answers.append(found)
            if not arguments.record and not may_differ and found != expected and (expected is not None or found.startswith("error")):
                return f"{who}: {statement or 'what waited'}: {found}, expected {expected}"
    finally:
        for player in players.values():
            player.close()
    if arguments.record:
        scenario.steps = happened
    elif may_differ and not is_refused(answers):
        return f"not refused: {answers}"
    return None


def record(script, head, found):
    lines = list(head)
    for scenario in found:
        lines.append(f"== {scenario.name}")
        for who, statement, answer in scenario.steps:
            if statement is None:
                lines.append(f"{who} -> {answer}")
                continue
            lines.append(f"{who}: {statement}")
            if answer is not None and (who != "S" or answer.startswith("error")):
                lines.append(f"-> {answer}")
        lines.append("")
    script.write_text("\n".join(lines).rstrip() + "\n")


def main(arguments, tally):
    for script in SCRIPTS:
        head, found = scenarios(script)
        chosen = [scenario for scenario in found if arguments.only in scenario.name]
        for scenario in chosen:
            wrong = play(scenario, arguments, script.name == SERIALIZABLE)
            tally.check(scenario.name, wrong is None, wrong)
        if arguments.record and chosen:
            record(script, head, found)


if __name__ == "__main__":
    arguments = parser.parse_args()
    from beluga import Server, Tally

    tally = Tally()
    if arguments.port:
        main(arguments, tally)
    else:
        with Server(postgres=True) as server:
            arguments.port = server.postgres_port
            main(arguments, tally)
    tally.close()
