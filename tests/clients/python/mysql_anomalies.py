"""Plays tests/clients/sql/anomalies.txt: what transactions see of each other at each isolation level.

Run beside a server of your own with --port; without, a Beluga is started. --levels and --only choose.
"""

import argparse
import pathlib
import queue
import re
import threading

import pymysql

LEVELS = {"ru": "read uncommitted", "rc": "read committed", "rr": "repeatable read", "ser": "serializable"}
# Longer than any statement that does not wait takes on a busy machine.
PATIENCE = 0.4
SCRIPT = pathlib.Path(__file__).parent.parent / "sql" / "anomalies.txt"

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.add_argument("--user", default="root")
parser.add_argument("--levels", default="ru rc rr ser")
parser.add_argument("--only", default="")


class Scenario:
    def __init__(self, head):
        self.name, levels = re.fullmatch(r"== (.*) \[(.*)\]", head).groups()
        self.levels = levels.split()
        # (connection, statement or None, {level or "": expectation})
        self.steps = []


def scenarios():
    found = []
    for number, line in enumerate(SCRIPT.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("=="):
            found.append(Scenario(line))
            continue
        statement = re.fullmatch(r"([A-Z]): (.*)", line)
        if statement:
            found[-1].steps.append((statement[1], statement[2], {}))
            continue
        who, level, expected = re.fullmatch(r"(?:([A-Z]) )?(?:(ru|rc|rr|ser) )?-> (.*)", line).groups()
        if who:
            found[-1].steps.append((who, None, {}))
        assert found[-1].steps, f"line {number}: an expectation of nothing"
        found[-1].steps[-1][2][level or ""] = expected
    return found


class Player(threading.Thread):
    """A connection that runs one statement at a time, in a thread of its own."""

    def __init__(self, arguments, level):
        super().__init__(daemon=True)
        self.wire = pymysql.connect(host="127.0.0.1", port=arguments.port, user=arguments.user, database="anomalies", autocommit=False)
        self.todo, self.done = queue.Queue(), queue.Queue()
        cursor = self.wire.cursor()
        cursor.execute("set innodb_lock_wait_timeout = 10")
        cursor.execute(f"set session transaction isolation level {LEVELS[level]}")
        cursor.execute("begin")
        self.start()

    def run(self):
        while (statement := self.todo.get()) is not None:
            try:
                cursor = self.wire.cursor()
                cursor.execute(statement)
                rows = cursor.fetchall()
                shown = " | ".join(sorted(" ".join(map(str, row)) for row in rows))
                # Like a session at the prompt: the next statement begins the next transaction.
                if statement in ("commit", "rollback"):
                    cursor.execute("begin")
                self.done.put(shown or "empty")
            except pymysql.Error as error:
                self.done.put(f"error {error.args[0]}")

    def answer(self, patience):
        try:
            return self.done.get(timeout=patience)
        except queue.Empty:
            return "blocks"


def play(scenario, level, arguments):
    """None, or what was wrong."""
    admin = pymysql.connect(host="127.0.0.1", port=arguments.port, user=arguments.user, autocommit=True)
    for statement in ["create database if not exists anomalies", "drop table if exists anomalies.t",
                      "create table anomalies.t (id int primary key, value int)", "insert into anomalies.t values (1, 10), (2, 20)"]:
        admin.cursor().execute(statement)
    players = {}
    try:
        for who, statement, expectations in scenario.steps:
            player = players.get(who) or players.setdefault(who, Player(arguments, level))
            if statement is not None:
                player.todo.put(statement)
            expected = expectations.get(level, expectations.get(""))
            # A session that must finish gets long enough; a session that must wait gets some time to prove otherwise.
            found = player.answer(PATIENCE if expected == "blocks" else 5)
            if found != expected and not (expected == "ok" and not found.startswith("error") and found != "blocks"):
                return f"{who}: {statement or 'what waited'}: {found}, expected {expected}"
    finally:
        for player in players.values():
            player.todo.put(None)
            player.wire.close() if player.todo.empty() else None
        for player in players.values():
            try:
                player.wire._force_close()
            except Exception:
                pass
        admin.close()
    return None


def main(arguments, tally):
    for scenario in scenarios():
        if arguments.only in scenario.name:
            for level in scenario.levels:
                if level in arguments.levels.split():
                    wrong = play(scenario, level, arguments)
                    tally.check(f"{scenario.name}, {LEVELS[level]}", wrong is None, wrong)


if __name__ == "__main__":
    arguments = parser.parse_args()
    from beluga import Server, Tally

    tally = Tally()
    if arguments.port:
        main(arguments, tally)
    else:
        with Server(mysql=True) as server:
            arguments.port = server.mysql_port
            main(arguments, tally)
    tally.close()
