"""Cursors, notifications and changes at the PostgreSQL door by psycopg. With a port as its argument it runs against that server, so that PostgreSQL itself confirms what it expects."""

import asyncio
import random
import sys
import threading

import psycopg

from beluga import Server, Tally

tally = Tally()


def connect(port, **more):
    more.setdefault("autocommit", True)
    return psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", sslmode="disable", **more)


def state(action):
    try:
        action()
    except psycopg.Error as error:
        return error.sqlstate
    return None


def named_cursors(port):
    with connect(port) as connection:
        connection.execute("create table row (id int4 primary key, v text)")
        connection.execute("insert into row select i, repeat('x', 20) || i from generate_series(1, 20000) i")
    with connect(port, autocommit=False) as connection:
        with connection.cursor("plain") as cursor:
            cursor.itersize = 700
            cursor.execute("select id, v from row where id > %s order by id", (10,))
            tally.equal("names of a named cursor", [column.name for column in cursor.description], ["id", "v"])
            tally.equal("all rows, a batch at a time", [row[0] for row in cursor], list(range(11, 20001)))
        with connection.cursor("scrolls", scrollable=True) as cursor:
            cursor.execute("select id from row order by id")
            tally.equal("fetchmany", cursor.fetchmany(3), [(1,), (2,), (3,)])
            cursor.scroll(-2)
            tally.equal("back", cursor.fetchone(), (2,))
            cursor.scroll(19999, "absolute")
            tally.equal("the last", (cursor.fetchone(), cursor.fetchone()), ((20000,), None))
            connection.execute("delete from row where id < 100")
            cursor.scroll(0, "absolute")
            tally.equal("the snapshot of the cursor", cursor.fetchone(), (1,))
        connection.rollback()
        with connection.cursor("held", withhold=True) as cursor:
            cursor.execute("select id from row where id <= %s order by id", (5,))
            connection.commit()
            tally.equal("after the commit", cursor.fetchall(), [(1,), (2,), (3,), (4,), (5,)])
        connection.rollback()
        cursor = connection.cursor("here")
        cursor.execute("select id from row order by id for update")
        cursor.fetchmany(4)
        connection.execute("update row set v = 'current' where current of here")
        cursor.fetchone()
        connection.execute("delete from row where current of here")
        tally.equal("current of", connection.execute("select id, v from row where id in (4, 5)").fetchall(), [(4, "current")])
        connection.rollback()


def positions(port, seed):
    """Random moves of a scrollable cursor beside a list of its rows."""
    chance, count = random.Random(seed), 50
    with connect(port) as connection:
        connection.execute("begin")
        connection.execute(f"declare c scroll cursor for select i from generate_series(1, {count}) i")
        at, wrong = 0, []
        for _ in range(400):
            word = chance.choice(["forward", "backward", "absolute", "relative"])
            number = chance.randint(-7, 7) if word != "absolute" else chance.randint(-count - 3, count + 3)
            expected, at = moved(word, number, at, count)
            found = [row[0] for row in connection.execute(f"fetch {word} {number} from c").fetchall()]
            if found != expected:
                wrong.append((word, number, found, expected))
            if chance.random() < 0.1:
                connection.execute("select 1")
        tally.check(f"positions, seed {seed}", not wrong, wrong[:3])
        connection.execute("rollback")


def moved(word, number, at, count):
    """The rows that FETCH gives, and the position after it: 0 before the first row, count + 1 behind the last."""
    if word in ("forward", "backward"):
        if word == "backward":
            number = -number
        if number == 0:
            return ([at] if 1 <= at <= count else []), at
        if number > 0:
            rows = list(range(at + 1, min(at + number, count) + 1))
            return rows, at + number if at + number <= count else count + 1
        rows = list(range(at - 1, max(at + number, 1) - 1, -1))
        return rows, max(at + number, 0)
    if word == "absolute":
        at = number if number >= 0 else count + 1 + number
    else:
        at = at + number
    at = max(0, min(at, count + 1))
    return ([at] if 1 <= at <= count else []), at


def notifications(port):
    with connect(port) as listener, connect(port) as sender:
        listener.execute("listen news")
        sender.execute("notify news, 'one'")
        sender.execute("begin")
        sender.execute("select pg_notify('news', 'two'), pg_notify('news', 'two')")
        sender.execute("notify other, 'unheard'")
        sender.execute("commit")
        sender.execute("begin")
        sender.execute("notify news, 'undone'")
        sender.execute("rollback")
        sender.execute("notify news, 'three'")
        heard = list(listener.notifies(timeout=10, stop_after=3))
        tally.equal("notifications", [(one.channel, one.payload) for one in heard], [("news", "one"), ("news", "two"), ("news", "three")])
        tally.equal("their sender", {one.pid for one in heard}, {sender.info.backend_pid})
        listener.execute("begin")
        sender.execute("notify news, 'later'")
        tally.equal("none within a transaction", list(listener.notifies(timeout=0.2)), [])
        listener.execute("commit")
        tally.equal("at its end", [one.payload for one in listener.notifies(timeout=10, stop_after=1)], ["later"])
        tally.equal("a long payload", state(lambda: sender.execute("select pg_notify('news', repeat('x', 8000))")), "22023")
        listener.execute("unlisten *")
        sender.execute("notify news")
        tally.equal("no longer", list(listener.notifies(timeout=0.2)), [])


def order_of_commits(port):
    """Every listener hears all notifications, in one order."""
    listeners = [connect(port) for _ in range(3)]
    for listener in listeners:
        listener.execute("listen log")
    senders, each = 4, 50

    def send(number):
        with connect(port) as sender:
            for i in range(each):
                sender.execute("select pg_notify('log', %s)", (f"{number}:{i}",))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(senders)]
    for thread in threads:
        thread.start()
    heard = [[one.payload for one in listener.notifies(timeout=20, stop_after=senders * each)] for listener in listeners]
    for thread in threads:
        thread.join()
    tally.equal("all are heard", len(set(heard[0])), senders * each)
    tally.check("in one order", heard[0] == heard[1] == heard[2])
    own = [[text for text in heard[0] if text.startswith(f"{number}:")] for number in range(senders)]
    tally.equal("each sender's in its order", own, [[f"{number}:{i}" for i in range(each)] for number in range(senders)])
    for listener in listeners:
        listener.close()


def asynchronous(port):
    async def run():
        options = dict(host="127.0.0.1", port=port, user="postgres", dbname="postgres", sslmode="disable", autocommit=True)
        async with await psycopg.AsyncConnection.connect(**options) as listener:
            await listener.execute("listen a")
            async with await psycopg.AsyncConnection.connect(**options) as sender:
                await sender.execute("notify a, 'awaited'")
            return [one.payload async for one in listener.notifies(timeout=10, stop_after=1)]

    tally.equal("an asynchronous listener", asyncio.run(run()), ["awaited"])


def changes(port):
    with connect(port) as connection:
        rows = lambda text, *values: connection.execute(text, values).fetchall()
        connection.execute("create table stock (id int4 primary key, n int4)")
        connection.execute("create table sold (id int4, n int4)")
        rows("insert into stock select i, 10 from generate_series(1, 5) i returning id")
        tally.equal(
            "a part that is read",
            rows("with taken as (update stock set n = n - %s where id = %s returning id, n) insert into sold select * from taken returning id, n", 3, 2),
            [(2, 7)],
        )
        tally.equal(
            "one snapshot",
            rows("with gone as (delete from stock where id = %s returning id) select (select count(*) from gone), count(*) from stock", 5),
            [(1, 5)],
        )
        tally.equal("it is gone", rows("select count(*) from stock"), [(4,)])
        upsert = "with new as (insert into stock values (%s, 1) on conflict do nothing returning id) select id, true from new union all select id, false from stock where id = %s"
        tally.equal("inserted, or found", (rows(upsert, 9, 9), rows(upsert, 9, 9)), ([(9, True)], [(9, False)]))
        merge = connection.execute(
            "merge into stock using sold on stock.id = sold.id when matched and stock.n < %s then delete when matched then update set n = 0 when not matched then insert values (sold.id, sold.n)",
            (8,),
        )
        tally.equal("merge", (merge.rowcount, merge.statusmessage), (1, "MERGE 1"))
        tally.equal("its deletion", rows("select count(*) from stock where id = 2"), [(0,)])


def random_positions(port):
    for _ in range(3):
        positions(port, random.randrange(1 << 32))


PARTS = [named_cursors, random_positions, notifications, order_of_commits, asynchronous, changes]

if __name__ == "__main__":
    if len(sys.argv) > 1:
        # Beside another server: its answers are the expected ones.
        [part(int(sys.argv[1])) for part in PARTS]
        tally.close()
    with Server("--memory", "512mb", postgres=True) as server:
        for part in PARTS:
            try:
                part(server.postgres_port)
            except psycopg.Error as error:
                tally.check(part.__name__, False, repr(error))
        server.terminate()
    tally.close()
