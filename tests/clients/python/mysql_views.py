"""Views with real clients: metadata, prepared statements, changes, a dump with views in it into a fresh server, and a kill."""

import subprocess

import mysql.connector

from beluga import Server, Tally
from sql import ask, come

tally = Tally()


MAKE = [
    "CREATE DATABASE shop",
    "USE shop",
    "CREATE TABLE item (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(30), price DECIMAL(10,2), KEY (price))",
    "INSERT INTO item (name, price) VALUES ('ink', 2.50), ('pen', 5), ('it''s \\\\ a \"book\"', 20)",
    "CREATE VIEW dear AS SELECT * FROM item WHERE price >= 5 WITH CHECK OPTION",
    "CREATE VIEW aaa_over (n, p) AS SELECT name, price * 2 FROM dear WHERE name <> 'x\\\\'",
    "CREATE SQL SECURITY INVOKER VIEW counts AS SELECT price > 5 AS high, COUNT(*) AS n, MAX(name) AS `a ``name` FROM item GROUP BY 1",
    "CREATE VIEW many AS SELECT id FROM item UNION ALL SELECT id + 100 FROM dear ORDER BY id LIMIT 4",
]
LOOK = [
    "SELECT * FROM shop.dear ORDER BY id",
    "SELECT * FROM shop.aaa_over ORDER BY p",
    "SELECT * FROM shop.counts ORDER BY n",
    "SELECT * FROM shop.many",
    "SHOW CREATE VIEW shop.dear",
    "SHOW CREATE VIEW shop.counts",
    "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'shop' ORDER BY 1",
    "SELECT * FROM information_schema.views WHERE table_schema = 'shop' ORDER BY table_name",
]


def prepared(server):
    connection = mysql.connector.connect(host="127.0.0.1", port=server.mysql_port, user="root", database="shop", ssl_disabled=True, use_pure=True)
    cursor = connection.cursor(prepared=True)
    for _ in range(3):
        cursor.execute("SELECT name FROM dear WHERE id = %s", (2,))
        tally.equal("prepared", cursor.fetchall(), [("pen",)])
    cursor.execute("UPDATE dear SET name = %s WHERE id = %s", ("quill", 2))
    cursor.execute("INSERT INTO dear (name, price) VALUES (%s, %s)", ("globe", 30))
    connection.commit()
    cursor.execute("SELECT COUNT(*) FROM dear")
    tally.equal("changed through the view", cursor.fetchall(), [(3,)])
    connection.close()


def main():
    with Server(mysql=True) as server, Server(mysql=True) as fresh:
        root = come(server)
        for sql in MAKE:
            tally.equal(sql[:40], ask(root, sql), [])
        prepared(server)
        tally.equal("check option", ask(root, "INSERT INTO dear (name, price) VALUES ('cheap', 1)"), 1369)
        with root.cursor() as cursor:
            cursor.execute("SELECT id, price FROM dear")
            tally.equal("names", [column[0] for column in cursor.description], ["id", "price"])
        before = [ask(root, sql) for sql in LOOK]
        tally.check("all answered", all(isinstance(answer, list) for answer in before), before)
        out = subprocess.run(["mariadb-dump", "-h127.0.0.1", f"-P{server.mysql_port}", "-uroot", "--databases", "shop"], capture_output=True, timeout=120)
        tally.equal("dumped", out.returncode, 0)
        into = subprocess.run(["mariadb", "-h127.0.0.1", f"-P{fresh.mysql_port}", "-uroot"], input=out.stdout, capture_output=True, timeout=120)
        tally.equal("loaded", (into.returncode, into.stderr), (0, b""))
        after = [ask(come(fresh, database="shop"), sql) for sql in LOOK]
        for sql, one, two in zip(LOOK, before, after):
            tally.equal(f"loaded: {sql[:40]}", two, one)
        server.kill()
        server.start()
        again = come(server, database="shop")
        for sql, one in zip(LOOK, before):
            tally.equal(f"after a kill: {sql[:40]}", ask(again, sql), one)


main()
tally.close()
