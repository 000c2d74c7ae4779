"""A connection of PyMySQL to the server under test, and answers that can be compared."""

import threading
import time

import pymysql


def come(server, user="root", **more):
    return pymysql.connect(host="127.0.0.1", port=server.mysql_port, user=user, connect_timeout=60, read_timeout=60, ssl_disabled=True, autocommit=True, **more)


def ask(connection, sql, *values):
    """The rows, or the number of the error."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return [list(row) for row in cursor.fetchall()]
    except pymysql.Error as error:
        return error.args[0]


# What a call over a connection raises when its server is gone.
GONE = (pymysql.Error, OSError, EOFError)


class CrashWriter(threading.Thread):
    """Runs the transactions that `steps` returns, one of ten of them rolled back, until its server is killed. `acknowledged` counts those of each writer that were committed."""

    def __init__(self, server, number, random, acknowledged, **login):
        super().__init__(daemon=True)
        self.server, self.number, self.random, self.acknowledged, self.login, self.wrong = server, number, random, acknowledged, login, None

    def steps(self, line):
        """The statements of the transaction that is the writer's `line`th."""
        raise NotImplementedError

    def run(self):
        try:
            cursor = come(self.server, **self.login).cursor()
            while True:
                line = self.acknowledged[self.number] + 1
                steps = self.steps(line)
                try:
                    cursor.execute("begin")
                    for step in steps:
                        cursor.execute(step)
                    if self.random.random() < 0.1:
                        cursor.execute("rollback")
                        continue
                    cursor.execute("commit")
                    self.acknowledged[self.number] = line
                except pymysql.Error as error:
                    if error.args[0] not in (1205, 1213):
                        raise
                    cursor.execute("rollback")
        except GONE as error:
            if isinstance(error, pymysql.Error) and error.args[0] not in (0, 2003, 2006, 2013):
                self.wrong = repr(error)


def until_committed(writers, more, seconds=60):
    """Waits until the writers, which share `acknowledged`, have committed so many transactions more, or one of them has ended. A server too slow for that within the time is killed all the same."""
    acknowledged = writers[0].acknowledged
    wanted, until = sum(acknowledged) + more, time.monotonic() + seconds
    while sum(acknowledged) < wanted and all(writer.is_alive() for writer in writers) and time.monotonic() < until:
        time.sleep(0.002)
