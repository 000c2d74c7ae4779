"""One database, two faces: keys of redis-py as rows of PyMySQL, at once, and after a kill."""

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
    for change in ("INSERT INTO redis.strings (db, `key`, value) VALUES (0, 'a', 'b')", "UPDATE redis.strings SET value = 'b'",
                   "REPLACE INTO redis.strings (db, `key`, value) VALUES (0, 'a', 'b')", "SELECT * FROM redis.strings FOR UPDATE"):
        tally.equal(change[:30], ask(root, change), 1235)
    tally.equal("DELETE", ask(root, "DELETE FROM redis.strings"), 1288)
    tally.equal("unchanged", keys.get("user:1"), b"ann")
    tally.equal("no such type", ask(root, "SELECT * FROM redis.hashes"), 1146)
    ask(root, "CREATE USER app")
    app = come(server, "app")
    tally.equal("without a right", ask(app, "SELECT * FROM redis.strings"), 1142)
    ask(root, "GRANT SELECT ON redis.strings TO app")
    tally.equal("with it", ask(app, "SELECT COUNT(*) FROM redis.strings WHERE `key` = 'user:1'"), [[2]])


def at_once(server):
    """F1: keys that are named are of one moment; F3: each statement sees anew what has been acknowledged."""
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
    """What SQL has shown of a key is there after a kill (F4)."""
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


def main():
    with Server(mysql=True) as server:
        reads(server)
        at_once(server)
        after_a_kill(server)


main()
tally.close()
