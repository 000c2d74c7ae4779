"""Many more sessions wait for one row than the server has threads for waiting: the one that holds it goes on, and so do all the others, one after the other."""

import threading

import pymysql

from beluga import Server, Tally
from sql import ask

CROWD = 120
tally = Tally()


def come(server, database="crowd"):
    return pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", database=database, connect_timeout=60, read_timeout=1200, ssl_disabled=True, autocommit=True)


def status(server, name):
    with open(f"/proc/{server.process.pid}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


# Memory for some twenty waiting threads.
with Server("--memory", "64mb", mysql=True) as server:
    ask(come(server, None), "create database crowd")
    holder = come(server)
    ask(holder, "create table t (id int primary key, k int)")
    ask(holder, "insert into t values (1, 0), (2, 0)")
    ask(holder, "begin")
    ask(holder, "update t set k = k + 1 where id = 1")
    answers = []

    def wait():
        wire = come(server)
        ask(wire, "set innodb_lock_wait_timeout = 1000")
        answers.append(ask(wire, "update t set k = k + 1 where id = 1"))

    threads = [threading.Thread(target=wait) for _ in range(CROWD)]
    for thread in threads:
        thread.start()
    while sum(row[7] is not None and "id = 1" in row[7] for row in ask(come(server), "show processlist")) < CROWD:
        pass
    tally.check("they keep no threads", status(server, "Threads") < 40, str(status(server, "Threads")))
    tally.check("others are served", ask(come(server), "update t set k = 7 where id = 2") == [])
    tally.check("the holder reads", ask(holder, "select k from t where id = 1") == [[1]])
    tally.check("nobody has gone on", answers == [])
    tally.check("the holder commits", ask(holder, "commit") == [])
    for thread in threads:
        thread.join(1200)
    tally.check("all have gone on", answers == [[]] * CROWD, str(answers[:5]))
    tally.check("each once", ask(holder, "select k from t where id = 1") == [[CROWD + 1]])
    share = status(server, "RssAnon") / (64 << 10)
    tally.check("memory", share <= 1.1, f"{share:.2f} of the setting")
tally.close()
