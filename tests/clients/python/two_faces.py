"""One database, two faces: keys of redis-py as rows of PyMySQL, changed from both sides, at once, and after a kill."""

import random
import threading
import time

import redis

from beluga import Server, Tally
from sql import ask, come

tally = Tally()


def reads(server):
    keys, root = redis.Redis(port=server.port), come(server)
    keys.set("user:1", "ann")
    keys.set("user:2", b"\x00\xffbob")
    keys.set("other", "x" * 300_000)
    keys.set("User:3", "case")
    redis.Redis(port=server.port, db=7).set("user:1", "seven")
    tally.equal("by key", ask(root, "SELECT value FROM redis.strings WHERE db = 0 AND `key` = 'user:1'"), [[b"ann"]])
    tally.equal("bound", ask(root, "SELECT value FROM redis.strings WHERE db = %s AND `key` = %s", 0, b"user:2"), [[b"\x00\xffbob"]])
    tally.equal("all databases", ask(root, "SELECT db, value FROM redis.strings WHERE `key` = 'user:1' ORDER BY db"), [[0, b"ann"], [7, b"seven"]])
    tally.equal("IN", ask(root, "SELECT `key` FROM redis.strings WHERE db = 0 AND `key` IN ('user:2', 'nothing', 'other') ORDER BY 1"), [[b"other"], [b"user:2"]])
    tally.equal("prefix", ask(root, "SELECT `key` FROM redis.strings WHERE db = 0 AND `key` LIKE 'user:%%' ORDER BY 1", ), [[b"user:1"], [b"user:2"]])
    tally.equal("long", ask(root, "SELECT LENGTH(value) FROM redis.strings WHERE `key` = 'other'"), [[300_000]])
    tally.equal("all", ask(root, "SELECT COUNT(*) FROM redis.strings"), [[5]])
    tally.equal("none", ask(root, "SELECT * FROM redis.strings WHERE `key` = NULL OR `key` = 'gone' AND db = 99"), [])
    keys.set("brief", "1", px=300)
    keys.set("later", "1", ex=1000)
    tally.equal("no time", ask(root, "SELECT expires_at FROM redis.strings WHERE `key` = 'user:1' AND db = 0"), [[None]])
    left = ask(root, "SELECT TIMESTAMPDIFF(SECOND, NOW(), expires_at) FROM redis.strings WHERE `key` = 'later'")[0][0]
    tally.check("a time", 990 <= left <= 1001, left)
    time.sleep(0.5)
    tally.equal("gone in time", ask(root, "SELECT * FROM redis.strings WHERE `key` = 'brief'"), [])
    ask(root, "CREATE DATABASE shop")
    ask(root, "CREATE TABLE shop.person (id INT PRIMARY KEY, place VARCHAR(20))")
    ask(root, "INSERT INTO shop.person VALUES (1, 'here'), (2, 'there'), (9, 'nowhere')")
    joined = "SELECT p.id, s.value FROM shop.person p LEFT JOIN redis.strings s ON s.db = 0 AND s.`key` = CONCAT('user:', p.id) ORDER BY p.id"
    tally.equal("joined", ask(root, joined), [[1, b"ann"], [2, b"\x00\xffbob"], [9, None]])
    tally.equal("kept", ask(root, "CREATE TABLE shop.kept (k VARBINARY(100) PRIMARY KEY, v BLOB)"), [])
    tally.equal("copied", ask(root, "INSERT INTO shop.kept SELECT `key`, value FROM redis.strings WHERE db = 0 AND `key` LIKE 'user:%%'"), [])
    tally.equal("the copy", ask(root, "SELECT COUNT(*) FROM shop.kept"), [[2]])
    tally.equal("unchanged", keys.get("user:1"), b"ann")
    tally.equal("no such type", ask(root, "SELECT * FROM redis.others"), 1146)
    ask(root, "CREATE USER app")
    app = come(server, "app")
    tally.equal("without a right", ask(app, "SELECT * FROM redis.strings"), 1142)
    ask(root, "GRANT SELECT ON redis.strings TO app")
    tally.equal("with it", ask(app, "SELECT COUNT(*) FROM redis.strings WHERE `key` = 'user:1'"), [[2]])


def changes(server):
    """Statements change keys; Redis sees them after COMMIT, whole, or never."""
    keys, root = redis.Redis(port=server.port, db=4), come(server)
    ask(root, "CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT)")
    tally.equal("INSERT", ask(root, "INSERT INTO redis.strings (db, `key`, value) VALUES (4, 'stock', 10), (4, 'page', 'cached')"), [])
    tally.equal("a counter", keys.get("stock"), b"10")
    root.begin()
    ask(root, "INSERT INTO shop.orders VALUES (1, 3)")
    ask(root, "UPDATE redis.strings SET value = value - 3 WHERE db = 4 AND `key` = 'stock'")
    ask(root, "DELETE FROM redis.strings WHERE db = 4 AND `key` = 'page'")
    ask(root, "INSERT INTO redis.strings (db, `key`, value) VALUES (4, 'new', 'x')")
    tally.equal("not yet", (keys.get("stock"), keys.get("page"), keys.exists("new"), keys.dbsize()), (b"10", b"cached", 0, 2))
    root.commit()
    tally.equal("all of it", (keys.get("stock"), keys.get("page"), keys.get("new"), keys.dbsize()), (b"7", None, b"x", 2))
    tally.equal("a counter still", keys.incrby("stock", 5), 12)
    root.begin()
    ask(root, "UPDATE redis.strings SET value = 'never' WHERE db = 4")
    root.rollback()
    tally.equal("never", (keys.get("stock"), keys.get("new")), (b"12", b"x"))
    ask(root, "INSERT INTO redis.strings (db, `key`, value, expires_at) VALUES (4, 'brief', 1, NOW(3) + INTERVAL 100 SECOND)")
    tally.check("a time", 95 <= keys.ttl("brief") <= 100, keys.ttl("brief"))
    ask(root, "UPDATE redis.strings SET value = 2 WHERE db = 4 AND `key` = 'brief'")
    tally.check("kept", 95 <= keys.ttl("brief") <= 100, keys.ttl("brief"))
    ask(root, "UPDATE redis.strings SET expires_at = NULL WHERE db = 4 AND `key` = 'brief'")
    tally.equal("taken", keys.ttl("brief"), -1)
    keys.set("huge", "y" * 3_000_000)
    root.begin()
    ask(root, "UPDATE redis.strings SET value = CONCAT(value, 'z') WHERE db = 4 AND `key` = 'huge'")
    tally.equal("huge before", keys.strlen("huge"), 3_000_000)
    root.commit()
    tally.equal("huge after", keys.getrange("huge", 2_999_999, -1), b"yz")
    for wrong, code in (("(16, 'k', 'v')", 1264), ("(4, 'stock', 'v')", 1062), ("(4, NULL, 'v')", 1048), ("('x', 'k', 'v')", 1366)):
        tally.equal(wrong, ask(root, f"INSERT INTO redis.strings (db, `key`, value) VALUES {wrong}"), code)
    tally.equal("TRUNCATE", ask(root, "TRUNCATE TABLE redis.strings"), 1235)


def later(function):
    """Runs it in a thread; what it returns, when it is asked for."""
    result = []
    thread = threading.Thread(target=lambda: result.append(function()), daemon=True)
    thread.start()

    def answer(patience=60):
        thread.join(patience)
        return result[0] if result else None

    return answer


def waits(server):
    """A change of a key that an open transaction holds waits for it. Replies keep their order, other connections continue, and COMMIT succeeds."""
    keys, root = redis.Redis(port=server.port, db=5), come(server)
    keys.mset({"held": 1, "free": 1, "watched": 1, "moved": 1})
    watcher = keys.pipeline()
    watcher.watch("watched")
    root.begin()
    ask(root, "UPDATE redis.strings SET value = 100 WHERE db = 5 AND `key` IN ('held', 'watched', 'moved')")
    crowd = [later(lambda: redis.Redis(port=server.port, db=5).incr("held")) for _ in range(60)]

    def line():
        with redis.Redis(port=server.port, db=5).pipeline(transaction=False) as pipe:
            return pipe.get("held").append("held", "").get("held").get("free").execute()[:1] + ["in order"]

    def block():
        with redis.Redis(port=server.port, db=5).pipeline(transaction=True) as pipe:
            return pipe.incr("free").incr("held").execute()

    ordered, together = later(line), later(block)
    flushed = later(lambda: redis.Redis(port=server.port, db=6).flushdb())
    moved = later(lambda: redis.Redis(port=server.port, db=5).rename("moved", "there"))
    time.sleep(1)
    tally.equal("nobody is through", [answer(0) for answer in (*crowd, together, moved, flushed)], [None] * 63)
    tally.equal("who reads is not held up", (keys.get("held"), keys.mget("held", "free")), (b"1", [b"1", b"1"]))
    tally.check("nor who changes another key", keys.incr("other") == 1)
    others = come(server)
    tally.equal("nor SQL", ask(others, "SELECT value FROM redis.strings WHERE db = 5 AND `key` = 'held'"), [[b"1"]])
    root.commit()
    numbers = [answer() for answer in crowd]
    tally.check("each counted once", None not in numbers and len(set(numbers)) == 60, numbers)
    tally.equal("in order", ordered(), [b"1", "in order"])
    tally.equal("a block is whole", (together() is not None, keys.get("free")), (True, b"2"))
    tally.equal("renamed", (moved(), keys.get("moved"), keys.get("there")), (True, None, b"100"))
    tally.check("emptied", flushed() is True)
    tally.equal("all of them", keys.get("held"), b"161")
    watcher.multi()
    watcher.set("watched", "no")
    try:
        watcher.execute()
        tally.check("a commit breaks a WATCH", False)
    except redis.exceptions.WatchError:
        tally.equal("a commit breaks a WATCH", keys.get("watched"), b"100")
    watcher.watch("watched")
    root.begin()
    ask(root, "UPDATE redis.strings SET value = 0 WHERE db = 5 AND `key` = 'watched'")
    root.rollback()
    watcher.multi()
    watcher.set("watched", "yes")
    tally.equal("a rollback does not", watcher.execute(), [True])
    for end in ("lost", "killed"):
        other = come(server)
        other.begin()
        ask(other, "UPDATE redis.strings SET value = 0 WHERE db = 5 AND `key` = 'free'")
        waiting = later(lambda: redis.Redis(port=server.port, db=5).incr("free"))
        time.sleep(0.3)
        if end == "lost":
            other._force_close()
        else:
            ask(root, f"KILL {other.thread_id()}")
        tally.check(f"a connection that is {end} holds nothing", waiting() is not None)


def circles(server):
    """Rows and keys are in one search for deadlocks; a wait ends after innodb_lock_wait_timeout."""
    keys, one, two = redis.Redis(port=server.port, db=7), come(server), come(server)
    keys.set("k", 0)
    ask(one, "INSERT INTO shop.orders VALUES (7, 0)")
    one.begin()
    two.begin()
    ask(one, "UPDATE shop.orders SET n = n + 1 WHERE id = 7")
    ask(two, "UPDATE redis.strings SET value = value + 1 WHERE db = 7 AND `key` = 'k'")
    first = later(lambda: ask(one, "UPDATE redis.strings SET value = value + 1 WHERE db = 7 AND `key` = 'k'"))
    time.sleep(0.3)
    second = ask(two, "UPDATE shop.orders SET n = n + 1 WHERE id = 7")
    tally.equal("one is taken back", sorted([str(first()), str(second)]), ["1213", "[]"])
    one.commit()
    two.commit()
    tally.equal("once", (keys.get("k"), ask(one, "SELECT n FROM shop.orders WHERE id = 7")), (b"1", [[1]]))
    one.begin()
    ask(one, "SELECT * FROM redis.strings WHERE db = 7 AND `key` = 'k' FOR UPDATE")
    ask(two, "SET innodb_lock_wait_timeout = 1")
    tally.equal("a wait ends", ask(two, "DELETE FROM redis.strings WHERE db = 7 AND `key` = 'k'"), 1205)
    tally.equal("or is not begun", ask(two, "SELECT * FROM redis.strings WHERE db = 7 AND `key` = 'k' FOR SHARE NOWAIT"), 3572)
    tally.equal("or passed over", ask(two, "SELECT * FROM redis.strings WHERE db = 7 AND `key` LIKE 'k%' FOR SHARE SKIP LOCKED"), [])
    one.rollback()


def money(server):
    """Money moves between a table and keys by SQL, among keys by Redis; whoever locks all of it finds all of it."""
    count, each, until = 6, 1000, time.monotonic() + 6
    root = come(server)
    ask(root, "CREATE TABLE shop.accounts (id INT PRIMARY KEY, balance INT NOT NULL)")
    for at in range(count):
        ask(root, f"INSERT INTO shop.accounts VALUES ({at}, {each})")
        ask(root, f"INSERT INTO redis.strings (db, `key`, value) VALUES (8, 'account{at}', {each})")
    done, wrong = {"sql": 0, "redis": 0, "looks": 0}, []

    def sql(seed):
        chance, wire = random.Random(seed), come(server)
        while time.monotonic() < until:
            a, b, sign = chance.randrange(count), chance.randrange(count), chance.choice([1, -1])
            steps = [f"UPDATE shop.accounts SET balance = balance - {sign} WHERE id = {a}",
                     f"UPDATE redis.strings SET value = value + {sign} WHERE db = 8 AND `key` = 'account{b}'"]
            chance.shuffle(steps)
            wire.begin()
            answers = [ask(wire, step) for step in steps]
            if answers == [[], []] and chance.random() < 0.9:
                wire.commit()
                done["sql"] += 1
            else:
                wire.rollback()
                if any(answer not in ([], 1205, 1213) for answer in answers):
                    wrong.append(answers)

    def units(seed):
        chance, keys = random.Random(seed), redis.Redis(port=server.port, db=8)
        while time.monotonic() < until:
            a, b = (f"account{at}" for at in chance.sample(range(count), 2))
            with keys.pipeline(transaction=True) as pipe:
                pipe.decr(a).incrby(b, 1).get(a).execute()
            keys.set("noise", chance.random())
            done["redis"] += 1

    def looks():
        wire = come(server)
        while time.monotonic() < until:
            wire.begin()
            rows = ask(wire, "SELECT SUM(balance) FROM shop.accounts FOR SHARE")
            of_keys = ask(wire, "SELECT SUM(value) FROM redis.strings WHERE db = 8 AND `key` LIKE 'account%' FOR SHARE")
            if isinstance(rows, list) and isinstance(of_keys, list):
                total = int(rows[0][0]) + int(of_keys[0][0])
                if total != 2 * count * each:
                    wrong.append(total)
                done["looks"] += 1
            wire.rollback()

    threads = [threading.Thread(target=sql, args=(at,)) for at in range(3)]
    threads += [threading.Thread(target=units, args=(at,)) for at in (10, 11)] + [threading.Thread(target=looks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    tally.check("everybody came to something", all(done.values()), done)
    tally.equal("money", wrong[:3], [])


def at_once(server):
    """D11-1: named keys are read as of one moment. D11-3: each statement reads the acknowledged state anew."""
    stop = threading.Event()

    def writes():
        keys = redis.Redis(port=server.port, db=1)
        number = 0
        while not stop.is_set():
            number += 1
            with keys.pipeline(transaction=True) as both:
                both.set("left", number)
                both.set("right", number)
                both.execute()

    thread = threading.Thread(target=writes)
    thread.start()
    root = come(server)
    torn = seen = 0
    for _ in range(500):
        rows = ask(root, "SELECT value FROM redis.strings WHERE db = 1 AND `key` IN ('left', 'right')")
        seen += len(rows) == 2
        torn += len({row[0] for row in rows}) > 1
    stop.set()
    thread.join()
    tally.check("both were seen", seen > 0, seen)
    tally.equal("halves of a MULTI", torn, 0)
    keys = redis.Redis(port=server.port, db=2)
    root.begin()
    for number in range(50):
        keys.set("count", number)
        tally.equal(f"after the reply {number}", ask(root, "SELECT value FROM redis.strings WHERE db = 2 AND `key` = 'count'"), [[str(number).encode()]])
    root.rollback()


def after_a_kill(server):
    """A key state that SQL has shown survives a kill (D11-4)."""
    keys = redis.Redis(port=server.port, db=3)
    shown = {}
    stop = threading.Event()

    def writes():
        number = 0
        while not stop.is_set():
            number += 1
            try:
                keys.set(f"k{number % 10}", number)
            except redis.exceptions.ConnectionError:
                return

    thread = threading.Thread(target=writes)
    thread.start()
    root = come(server)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        for key, value in ask(root, "SELECT `key`, value FROM redis.strings WHERE db = 3"):
            shown[key] = int(value)
    server.kill()
    stop.set()
    thread.join()
    server.start()
    root = come(server)
    found = {key: int(value) for key, value in ask(root, "SELECT `key`, value FROM redis.strings WHERE db = 3")}
    lost = {key: (value, found.get(key)) for key, value in shown.items() if found.get(key, 0) < value}
    tally.check("something was shown", len(shown) == 10, len(shown))
    tally.equal("shown and lost", lost, {})


def notified(server):
    """Changes by SQL are keyspace notifications, at their commit and not before."""
    keys, root = redis.Redis(port=server.port, db=5), come(server)
    keys.config_set("notify-keyspace-events", "KEA")
    listener = keys.pubsub()
    listener.psubscribe("__keyspace@5__:*")
    listener.get_message(timeout=10)
    keys.set("before", "1")
    root.begin()
    ask(root, "INSERT INTO redis.strings (db, `key`, value) VALUES (5, 'a', '1')")
    ask(root, "DELETE FROM redis.strings WHERE db = 5 AND `key` = 'before'")
    keys.set("meanwhile", "1")
    root.commit()
    keys.set("after", "1")
    found = []
    while not found or found[-1][0] != "after":
        message = listener.get_message(timeout=10)
        found.append((message["channel"].decode().split(":")[1], message["data"].decode()))
    tally.equal("events", (found[0], found[1], sorted(found[2:4]), found[4]), (("before", "set"), ("meanwhile", "set"), [("a", "set"), ("before", "del")], ("after", "set")))
    keys.config_set("notify-keyspace-events", "")


def main():
    with Server("--memory", "1gb", mysql=True) as server:
        reads(server)
        changes(server)
        notified(server)
        waits(server)
        circles(server)
        money(server)
        at_once(server)
        after_a_kill(server)


main()
tally.close()
