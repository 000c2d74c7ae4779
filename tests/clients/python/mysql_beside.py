"""Rights and views beside a MariaDB server: the same statements by the same accounts; rows, affected rows and error numbers must agree. Only what MySQL 8.0 and MariaDB mean alike is asked; where they
differ MySQL is followed, and the scenarios of `query` say how.

    mysql_beside.py --canary      spoils one answer: must fail"""

import shutil
import sys

import pymysql

from beluga import MariaDB, Server, Tally

tally = Tally()
ACCOUNTS = ["nobody", "reader", "columns", "writer", "owner", "viewer", "granter"]
SETUP = """
CREATE DATABASE a; CREATE DATABASE b
CREATE TABLE a.t (id INT PRIMARY KEY, x INT, y VARCHAR(10), KEY (x))
CREATE TABLE a.u (id INT PRIMARY KEY, t INT)
CREATE TABLE b.t (id INT PRIMARY KEY, x INT)
INSERT INTO a.t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, NULL, 'three')
INSERT INTO a.u VALUES (1, 1), (2, 2)
INSERT INTO b.t VALUES (1, 100)
CREATE VIEW a.v AS SELECT id, x FROM a.t WHERE x > 5
CREATE SQL SECURITY INVOKER VIEW a.inv AS SELECT id, x FROM a.t
CREATE VIEW a.w AS SELECT id, x FROM a.v WHERE x < 50 WITH CASCADED CHECK OPTION
CREATE VIEW a.j AS SELECT t.id, u.id AS uid FROM a.t JOIN a.u ON u.t = t.id
CREATE VIEW a.g AS SELECT COUNT(*) AS n FROM a.t
CREATE VIEW b.far AS SELECT * FROM a.t
GRANT SELECT ON a.t TO reader
GRANT SELECT (id, x), UPDATE (x), INSERT (id) ON a.t TO columns
GRANT SELECT, INSERT, UPDATE, DELETE ON a.* TO writer
GRANT ALL ON a.* TO owner
GRANT SELECT ON a.v TO viewer
GRANT SELECT, UPDATE, INSERT, DELETE ON a.w TO viewer
GRANT SELECT ON a.inv TO viewer
GRANT SELECT ON a.g TO viewer
GRANT SHOW VIEW ON a.v TO viewer
GRANT SELECT ON a.t TO granter WITH GRANT OPTION
"""
# By every account.
ASKED = """
SELECT * FROM a.t ORDER BY id
SELECT id FROM a.t ORDER BY id
SELECT id, x FROM a.t WHERE x = 10
SELECT y FROM a.t
SELECT id FROM a.t WHERE y = 'one'
SELECT id FROM a.t ORDER BY y
SELECT COUNT(*) FROM a.t
SELECT COUNT(y) FROM a.t
SELECT t.id FROM a.t JOIN a.u ON u.t = t.id ORDER BY 1
SELECT * FROM b.t
SELECT (SELECT MAX(y) FROM a.t)
SELECT 1 WHERE EXISTS (SELECT 1 FROM a.u)
SELECT * FROM a.nothing
SELECT * FROM nowhere.t
WITH c AS (SELECT y FROM a.t) SELECT * FROM c ORDER BY 1
SELECT id FROM a.t UNION SELECT id FROM a.u ORDER BY 1
SELECT * FROM a.v ORDER BY id
SELECT id FROM a.inv ORDER BY id
SELECT * FROM a.w ORDER BY id
SELECT * FROM a.j ORDER BY id
SELECT * FROM a.g
SELECT * FROM b.far ORDER BY id
INSERT INTO a.t (id) VALUES (50)
INSERT INTO a.t VALUES (51, 1, 'x')
REPLACE INTO a.t (id, x) VALUES (50, 5)
UPDATE a.t SET x = 12 WHERE id = 1
UPDATE a.t SET x = 12
UPDATE a.t SET y = 'z' WHERE id = 1
UPDATE a.t SET x = id + 1 WHERE id = 2
UPDATE a.t JOIN a.u ON u.t = t.id SET t.x = 5
UPDATE b.t SET x = 1
DELETE FROM a.t WHERE id = 50
DELETE FROM a.t WHERE y = 'nothing'
INSERT INTO a.t (id, x) VALUES (80, 1), (81, 2) RETURNING id, x + 1
INSERT INTO a.t (id) VALUES (82) RETURNING *
INSERT INTO a.t (id) VALUES (83) RETURNING y
REPLACE INTO a.t (id, x) VALUES (80, 5) RETURNING id, x
INSERT INTO a.t (id, x) VALUES (80, 6) ON DUPLICATE KEY UPDATE x = x * 10 RETURNING id, x, CONCAT(y, 'a')
INSERT IGNORE INTO a.t (id) VALUES (80), (84) RETURNING id
INSERT INTO a.t (id) SELECT id + 90 FROM a.u RETURNING id
INSERT INTO a.t (id) VALUES (85) RETURNING COUNT(*)
DELETE FROM a.t WHERE id BETWEEN 80 AND 99 ORDER BY id RETURNING id
DELETE FROM a.t WHERE id > 79 RETURNING y
DELETE FROM a.t WHERE id > 79 ORDER BY id DESC RETURNING *, id + 1
DELETE a.t FROM a.t JOIN a.u ON u.t = t.id WHERE t.id = 99
DELETE FROM b.t
UPDATE a.w SET x = 30 WHERE id = 1
UPDATE a.w SET x = 3 WHERE id = 2
INSERT INTO a.w VALUES (70, 20)
INSERT INTO a.w VALUES (71, 90)
INSERT INTO a.v (id, x) VALUES (72, 7)
DELETE FROM a.w WHERE id = 70
DELETE FROM a.v WHERE id = 72
UPDATE a.g SET n = 1
DELETE FROM a.g
UPDATE a.inv SET x = 1 WHERE id = 3
CREATE TABLE a.made (id INT PRIMARY KEY)
CREATE TABLE b.made (id INT PRIMARY KEY)
ALTER TABLE a.u ADD COLUMN z INT
ALTER TABLE a.u DROP COLUMN z
CREATE INDEX k ON a.u (t)
DROP INDEX k ON a.u
CREATE VIEW a.own AS SELECT id FROM a.t
CREATE VIEW b.own AS SELECT id FROM a.t
SELECT * FROM a.own ORDER BY id
DROP VIEW a.own
RENAME TABLE a.made TO a.made2
TRUNCATE TABLE a.made2
DROP TABLE a.made2
DROP TABLE b.t
CREATE DATABASE c
DROP DATABASE b
USE a
USE b
SHOW TABLES FROM a
SHOW TABLES FROM b
SHOW COLUMNS FROM a.t
SHOW COLUMNS FROM b.t
SHOW CREATE VIEW a.j
SHOW INDEX FROM b.t
LOCK TABLES a.t READ
UNLOCK TABLES
GRANT SELECT ON a.t TO nobody
GRANT INSERT ON a.t TO nobody
GRANT SELECT ON b.t TO nobody
GRANT SELECT ON *.* TO nobody
CREATE USER other
DROP USER nobody
SET GLOBAL max_error_count = 1024
KILL 999999
FLUSH TABLES
EXPLAIN SELECT y FROM a.t
EXPLAIN SELECT * FROM b.t
SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'a' ORDER BY 1
SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'a' AND TABLE_NAME = 't' ORDER BY 1
SELECT TABLE_NAME, CHECK_OPTION, SECURITY_TYPE FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'a' ORDER BY 1
SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ('a', 'b') ORDER BY 1
SELECT TABLE_NAME, PRIVILEGE_TYPE FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE = "'viewer'@'%'" ORDER BY 1, 2
SELECT COLUMN_NAME, PRIVILEGE_TYPE FROM information_schema.COLUMN_PRIVILEGES ORDER BY 1, 2
"""
# By root alone: what views can and cannot be.
VIEWS = """
SELECT * FROM a.t ORDER BY id
CREATE VIEW a.v AS SELECT 1
CREATE OR REPLACE VIEW a.v2 AS SELECT id, x + 1 AS more, y FROM a.t
UPDATE a.v2 SET more = 5
UPDATE a.v2 SET y = 'q' WHERE id = 2
SELECT * FROM a.v2 ORDER BY id
CREATE OR REPLACE VIEW a.v2 AS SELECT DISTINCT x FROM a.t
DELETE FROM a.v2
UPDATE a.v2 SET x = 1
INSERT INTO a.v2 VALUES (1)
ALTER VIEW a.v2 (p, q) AS SELECT id, x FROM a.t
SELECT p FROM a.v2 ORDER BY p
ALTER VIEW a.v2 (p) AS SELECT id, x FROM a.t
CREATE VIEW a.v3 (p, p) AS SELECT 1, 2
CREATE VIEW a.v3 AS SELECT id, id FROM a.t
CREATE VIEW a.v3 AS SELECT * FROM a.nothing
CREATE VIEW a.v3 AS SELECT nothing FROM a.t
CREATE VIEW a.v3 AS SELECT @x
CREATE VIEW a.v3 AS SELECT * FROM a.v2 LIMIT 2
SELECT COUNT(*) FROM a.v3
CREATE VIEW a.v4 AS SELECT x, COUNT(*) AS n FROM a.t GROUP BY x
SELECT n FROM a.v4 WHERE x = 10
SELECT v.n, t.id FROM a.v4 v JOIN a.t t ON t.x = v.x ORDER BY t.id
CREATE VIEW a.v5 AS SELECT id, x FROM a.t WHERE x < 100 WITH LOCAL CHECK OPTION
INSERT INTO a.v5 VALUES (91, 99)
INSERT INTO a.v5 VALUES (92, 101)
UPDATE a.v5 SET x = 200 WHERE id = 91
UPDATE a.v5 SET id = 93 WHERE id = 91
DELETE FROM a.v5 WHERE id = 93
CREATE VIEW a.v6 AS SELECT * FROM a.v5 WHERE id > 5 WITH CASCADED CHECK OPTION
INSERT INTO a.v6 VALUES (4, 1)
INSERT INTO a.v6 VALUES (94, 101)
INSERT INTO a.v6 VALUES (94, 1)
DELETE FROM a.v6
CREATE VIEW a.v7 AS SELECT t.id, t.x, u.t FROM a.t LEFT JOIN a.u ON u.t = t.id
SELECT * FROM a.v7 ORDER BY id
ALTER TABLE a.t DROP COLUMN y
SELECT * FROM b.far
SELECT * FROM a.v ORDER BY id
DROP TABLE a.u
SELECT * FROM a.j
DROP VIEW IF EXISTS a.nothing
DROP VIEW a.v7
CREATE TABLE a.v (id INT)
CREATE VIEW a.t AS SELECT 1
CREATE OR REPLACE VIEW a.t AS SELECT 1
SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'a' ORDER BY 1
"""


def lines(text):
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


def come(port, user, **more):
    return pymysql.connect(host="127.0.0.1", port=port, user=user, ssl_disabled=True, autocommit=True, connect_timeout=60, read_timeout=60, charset="utf8mb4", **more)


def answer(connection, sql):
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            if cursor.description is None:
                return f"{cursor.rowcount} rows"
            shown = list(cursor.fetchall())
            # The form of plans and definitions is tested elsewhere.
            return "shown" if sql.startswith(("EXPLAIN", "SHOW CREATE", "SHOW INDEX", "SHOW COLUMNS")) else shown
    except pymysql.Error as error:
        return f"error {error.args[0]}"


def main():
    if not shutil.which("mariadbd"):
        tally.skip("no mariadbd")
        return
    canary = "--canary" in sys.argv
    with Server(mysql=True) as server, MariaDB() as mariadb:
        ports = (server.mysql_port, mariadb.port)
        roots = [come(port, "root") for port in ports]
        for root in roots:
            answer(root, "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'")
            for name in ACCOUNTS:
                answer(root, f"CREATE USER {name}")
            for line in lines(SETUP):
                for sql in line.split(";"):
                    found = answer(root, sql)
                    tally.check(f"set up: {sql}", "error" not in str(found), found)
        for name in ACCOUNTS:
            pair = [come(port, name) for port in ports]
            for sql in lines(ASKED):
                for root in roots:
                    answer(root, "BEGIN")
                ours, theirs = (answer(connection, sql) for connection in pair)
                if canary and sql == lines(ASKED)[0]:
                    ours = "spoilt"
                tally.equal(f"{name}: {sql}", ours, theirs)
                for root in roots:
                    answer(root, "ROLLBACK")
        for sql in lines(VIEWS):
            ours, theirs = (answer(root, sql) for root in roots)
            tally.equal(f"root: {sql}", ours, theirs)


main()
tally.close()
raise SystemExit(tally.failed > 0)
