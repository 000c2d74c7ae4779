"""A crowd of sessions waits, in pg_sleep, for one row, for one table in each kind of statement, and for one advisory lock: all doors answer, cancels and disconnects work, SIGTERM ends every wait. `--sessions` says how many."""

import contextlib

import psycopg

import crowd as crowds
from beluga import Server, Tally, status
from crowd import PostgresCrowd

tally = Tally()
SLEEP = "select pg_sleep(3600)"
ROW = "update t set k = k + 1 where id = 1"
ADVISORY = "select pg_advisory_lock(1)"
TABLE = ["select * from t", "update t set k = k where id = 0", "lock table t in share mode", "create index on t (k)", "alter table t alter k set default 0", "analyze t", "vacuum (analyze) t"]


def come(server):
    return psycopg.connect(host="127.0.0.1", port=server.postgres_port, user="postgres", dbname="postgres", autocommit=True, connect_timeout=60)


def one(wire, text, *values):
    return wire.execute(text, values).fetchone()[0]


def select_one(server):
    with contextlib.closing(come(server)) as wire:
        return one(wire, "select 1")


def running(wire, text):
    return one(wire, "select count(*) from pg_stat_activity where query = %s and state = 'active'", text)


def all_wait(server, crowd, text, count, threads):
    """They wait without threads, and cancels, terminations and departures end their waits."""
    with crowds.measured(server, count, f"{text}: a wait"), contextlib.closing(come(server)) as boss:
        crowd.ask_all(text)
        tally.until(f"{text}: all wait", lambda: running(boss, text) == count)
    tally.check(f"{text}: they keep no threads", status(server, "Threads") <= threads + 4, f"{threads}, {status(server, 'Threads')}")
    crowds.doors_answer(tally, server, text, lambda: select_one(server))
    with contextlib.closing(come(server)) as boss:
        pids = [row[0] for row in boss.execute("select pid from pg_stat_activity where query = %s and state = 'active' limit 2", (text,))]
        interrupts = [(end, lambda end=end, pid=pid: one(boss, f"select {end}({pid})")) for end, pid in zip(("pg_cancel_backend", "pg_terminate_backend"), pids)]
        crowds.ends(tally, crowd, text, lambda: running(boss, text), interrupts)


def waiters(count, memory):
    with Server("--memory", memory, "--max-connections", str(count + 200), postgres=True) as server:
        holder = come(server)
        holder.execute("create table t (id int primary key, k int)")
        holder.execute("insert into t values (1, 0)")
        with crowds.measured(server, count, "an idle session"):
            crowd = PostgresCrowd(server, count)
        threads = status(server, "Threads")
        all_wait(server, crowd, SLEEP, count, threads)
        crowd.close()

        crowd = PostgresCrowd(server, count)
        threads = max(threads, status(server, "Threads"))
        holder.execute("begin")
        holder.execute(ROW)
        all_wait(server, crowd, ROW, count, threads)
        holder.execute("commit")
        good = crowd.good()
        tally.check(f"{ROW}: all others go on, each once", good == len(crowd.wires) and one(holder, "select k from t") == good + 1, f"{good} of {len(crowd.wires)}, {one(holder, 'select k from t')}")
        crowd.close()

        for text in TABLE + [ADVISORY]:
            crowd = PostgresCrowd(server, count, ["begin"] if not text.startswith("vacuum") else [])
            threads = max(threads, status(server, "Threads"))
            holder.execute("begin")
            holder.execute("lock table t")
            holder.execute(ADVISORY)
            all_wait(server, crowd, text, count, threads)
            if text == ADVISORY:
                break
            holder.execute("rollback")
            holder.execute("select pg_advisory_unlock_all()")
            if text.startswith(("select", "update", "lock")):
                good = crowd.good()
                tally.check(f"{text}: all others go on", good == len(crowd.wires), f"{good} of {len(crowd.wires)}")
            else:
                tally.until(f"{text}: one goes on", lambda: len(crowd.answered()) >= 1)
            crowd.close()
        crowds.keeps_within(tally, server, memory, "all")
        crowds.stops(tally, server, "all")
        crowd.close()


waiters(*crowds.arguments(1000))
tally.close()
