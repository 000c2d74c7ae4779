"""mariadb-dump out and back in: what is loaded into a fresh server dumps as the first one did, whatever the flags; what the mariadb command line shows of each
row is the same. Where a MariaDB server is installed its own dump is loaded too, and the rows compared."""

import difflib
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time

import pymysql

from beluga import MariaDB, Server, Tally

tally = Tally()
HERE = os.path.dirname(os.path.abspath(__file__))
DATABASES = ["dump_one", "dump two-3"]
WHOLE = ["--routines", "--triggers", "--events", "--databases", *DATABASES]
# The additional queries of MySQL 8.0's `mysqldump`, in order, and their row counts.
ASKED_BY_MYSQL = [
    ("/*!40100 SET @@SQL_MODE='' */", None),
    ("/*!40103 SET TIME_ZONE='+00:00' */", None),
    ("/*!80000 SET SESSION information_schema_stats_expiry=0 */", None),
    ("SET SESSION NET_READ_TIMEOUT= 86400, SESSION NET_WRITE_TIMEOUT= 86400", None),
    ("SHOW VARIABLES LIKE 'gtid\\_mode'", 1),
    ("FLUSH /*!40101 LOCAL */ TABLES", None),
    ("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", None),
    ("START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */", None),
    ("SELECT @@GLOBAL.GTID_MODE", 1),
    ("UNLOCK TABLES", None),
    ("SELECT LOGFILE_GROUP_NAME, FILE_NAME, TOTAL_EXTENTS, INITIAL_SIZE, ENGINE, EXTRA FROM INFORMATION_SCHEMA.FILES WHERE ENGINE = 'ndbcluster' AND FILE_TYPE = 'UNDO LOG'"
     " AND FILE_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IN (SELECT DISTINCT LOGFILE_GROUP_NAME FROM INFORMATION_SCHEMA.FILES WHERE ENGINE ="
     " 'ndbcluster' AND FILE_TYPE = 'DATAFILE' AND TABLESPACE_NAME IN (SELECT DISTINCT TABLESPACE_NAME FROM INFORMATION_SCHEMA.PARTITIONS WHERE TABLE_SCHEMA IN ('dump_one')))"
     " GROUP BY LOGFILE_GROUP_NAME, FILE_NAME, ENGINE, TOTAL_EXTENTS, INITIAL_SIZE ORDER BY LOGFILE_GROUP_NAME", 0),
    ("SELECT DISTINCT TABLESPACE_NAME, FILE_NAME, LOGFILE_GROUP_NAME, EXTENT_SIZE, INITIAL_SIZE, ENGINE FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'DATAFILE' AND"
     " TABLESPACE_NAME IN (SELECT DISTINCT TABLESPACE_NAME FROM INFORMATION_SCHEMA.PARTITIONS WHERE TABLE_SCHEMA IN ('dump_one')) ORDER BY TABLESPACE_NAME, LOGFILE_GROUP_NAME", 0),
    ("SHOW VARIABLES LIKE 'ndbinfo\\_version'", 0),
    ("USE `dump_one`", None),
    ("SHOW CREATE DATABASE IF NOT EXISTS `dump_one`", 1),
    ("SAVEPOINT sp", None),
    ("SHOW TABLES", 7),
    ("SHOW TABLE STATUS LIKE 'numbers'", 1),
    ("SET SQL_QUOTE_SHOW_CREATE=1", None),
    ("SET SESSION character_set_results = 'binary'", None),
    ("SHOW CREATE TABLE `numbers`", 1),
    ("SET SESSION character_set_results = 'utf8mb4'", None),
    ("SHOW FIELDS FROM `numbers`", 15),
    ("SELECT /*!40001 SQL_NO_CACHE */ * FROM `numbers`", 4),
    ("use `dump_one`", None),
    ("select @@collation_database", 1),
    ("SHOW TRIGGERS LIKE 'numbers'", 0),
    ("SELECT COLUMN_NAME, JSON_EXTRACT(HISTOGRAM, '$.\"number-of-buckets-specified\"') FROM information_schema.COLUMN_STATISTICS WHERE SCHEMA_NAME = 'dump_one' AND TABLE_NAME = 'numbers'", 0),
    ("ROLLBACK TO SAVEPOINT sp", None),
    ("RELEASE SAVEPOINT sp", None),
    ("show events", 0),
    ("LOCK TABLES mysql.proc READ", 1146),
    ("SHOW FUNCTION STATUS WHERE Db = 'dump_one'", 0),
    ("SHOW PROCEDURE STATUS WHERE Db = 'dump_one'", 0),
]


def words(program, port, *more):
    return [program, "-h127.0.0.1", f"-P{port}", "-uroot", "--default-character-set=utf8mb4", *more]


def run(command, **more):
    done = subprocess.run(command, capture_output=True, timeout=240, **more)
    if done.returncode:
        raise RuntimeError(f"{command[0]} {' '.join(command[5:])}: {done.stderr.decode(errors='replace')[:2000]}")
    return done


def dump(port, *flags):
    done = run(words("mariadb-dump", port, *flags))
    text = done.stdout.decode("utf-8", "surrogateescape")
    # The first and the last line tell of the host and the time.
    return "\n".join(line for line in text.split("\n") if not re.match(r"-- (Dump completed|MariaDB dump|Host:|Server version)", line)), done.stderr.decode()


def load(port, text, database=None):
    run(words("mariadb", port, *([database] if database else [])), input=text.encode("utf-8", "surrogateescape"))


def rows(port):
    """Every row of every table in hexadecimal, as the server shows it."""
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", charset="utf8mb4", use_unicode=False, read_timeout=120, connect_timeout=60)
    found = {}
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for database in DATABASES:
            cursor.execute(f"SHOW TABLES FROM `{database}`")
            for (name,) in cursor.fetchall():
                quoted = "`%s`.`%s`" % (database, name.decode().replace("`", "``"))
                cursor.execute(f"SHOW COLUMNS FROM {quoted}")
                columns = ["`%s`" % row[0].decode().replace("`", "``") for row in cursor.fetchall()]
                cursor.execute(f"SELECT {', '.join(f'HEX({column})' if column != '`j`' else column for column in columns)} FROM {quoted}")
                found[name.decode()] = sorted(cursor.fetchall(), key=repr)
    connection.close()
    return found


def same(name, one, two):
    # A collation that a dump names is the column's own from then on, and shown with its character set, as in MySQL.
    one, two = (text.replace(" CHARACTER SET utf8mb4 COLLATE ", " COLLATE ") for text in (one, two))
    difference = list(difflib.unified_diff(one.split("\n"), two.split("\n"), lineterm="", n=0))
    tally.check(name, not difference, "\n".join(line[:300] for line in difference[:20]))


def fill(port):
    """The file's rows, and blobs of every byte and of many lengths."""
    with open(os.path.join(HERE, "../sql/dump.sql"), encoding="utf-8") as file:
        load(port, file.read())
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", database="dump_one", charset="utf8mb4", autocommit=True, read_timeout=120)
    draw = random.Random(20261121)
    with connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        every = bytes(range(256))
        for number in range(100, 160):
            length = draw.choice([0, 1, 255, 256, 1000, 70000]) if number > 102 else 256
            blob = every[:length] if length <= 256 else draw.randbytes(length)
            text = "".join(chr(draw.choice([draw.randrange(1, 128), draw.randrange(0xA0, 0x2000), draw.randrange(0x1F300, 0x1F600)])) for _ in range(min(length, 200)))
            cursor.execute("INSERT INTO texts (id, v, body, vb, lb) VALUES (%s, %s, %s, %s, %s)", (number, text, text * 3, number.to_bytes(2, "big") + blob[:200], blob))
    connection.close()


def in_binary(server):
    """Bytes as they are, not in hexadecimal: the default."""
    text, _ = dump(server.mysql_port, *WHOLE)
    with Server(mysql=True) as second:
        load(second.mysql_port, text)
        same("default flags", text, dump(second.mysql_port, *WHOLE)[0])
        tally.equal("rows after default flags", rows(second.mysql_port), rows(server.mysql_port))
        second.terminate()
        second.start()
        same("after a restart", text, dump(second.mysql_port, *WHOLE)[0])


def with_flags(server):
    with Server(mysql=True) as second:
        for flags in (["--single-transaction", "--hex-blob"], ["--skip-opt", "--quick", "--create-options", "--compact"], ["--single-transaction", "--skip-extended-insert", "--complete-insert", "--insert-ignore"],
                      ["--lock-all-tables", "--replace", "--order-by-primary"], ["--skip-lock-tables", "--no-autocommit", "--skip-add-drop-table", "--add-drop-database", "--skip-set-charset"]):
            text, complaints = dump(server.mysql_port, *flags, *WHOLE)
            tally.equal(f"complaints {flags}", complaints, "")
            for database in DATABASES:
                load(second.mysql_port, f"DROP DATABASE IF EXISTS `{database}`;")
            # --compact leaves out what the rows need to be taken: it is for reading.
            load(second.mysql_port, "SET sql_mode='NO_AUTO_VALUE_ON_ZERO', time_zone='+00:00', foreign_key_checks=0;\n" + text if "--compact" in flags else text)
            same(f"{flags}", text, dump(second.mysql_port, *flags, *WHOLE)[0])
            tally.equal(f"rows {flags}", rows(second.mysql_port), rows(server.mysql_port))
        one, _ = dump(server.mysql_port, "dump_one", "numbers", "texts")
        load(second.mysql_port, one, "dump two-3")
        same("two tables into another database", one, dump(second.mysql_port, "dump two-3", "numbers", "texts")[0].replace("Database: dump two-3", "Database: dump_one"))
        where, _ = dump(server.mysql_port, "--where=id<3", "--no-create-info", "dump_one", "numbers")
        tally.check("--where", "(2," in where and "(7," not in where, where)
        nothing, _ = dump(server.mysql_port, "--no-data", "--all-databases")
        tally.check("--all-databases", "CREATE TABLE `numbers`" in nothing and "INSERT" not in nothing)
        folder = tempfile.mkdtemp(prefix="beluga-dump-")
        xml = run(words("mariadb-dump", server.mysql_port, "--xml", "dump_one", "checked")).stdout.decode()
        tally.check("--xml", "<field name=\"name\">zwei</field>" in xml, xml[-800:])
        shutil.rmtree(folder)


def read(name):
    with open(os.path.join(HERE, "../sql", name), encoding="utf-8") as file:
        return file.read()


def values(port, *tables):
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", database="dump_derived", charset="utf8mb4", read_timeout=120)
    with connection.cursor() as cursor:
        found = {}
        for table in tables:
            cursor.execute(f"SELECT * FROM {table} ORDER BY id")
            found[table] = cursor.fetchall()
    connection.close()
    return found


def derived(server):
    """Columns that follow from others: mariadb-dump writes their values out, in rows that a server which is not strict takes and computes anew."""
    load(server.mysql_port, read("derived.sql"))
    ours = values(server.mysql_port, "both_know", "own")
    tally.equal("computed rows", [row[2] for row in ours["both_know"]], [6, -6, 10])
    for flags in ([], ["--single-transaction", "--complete-insert"], ["--skip-opt", "--create-options", "--insert-ignore"]):
        text, _ = dump(server.mysql_port, *flags, "--databases", "dump_derived")
        tally.check(f"definitions {flags}", "GENERATED ALWAYS AS" in text and "((((`a` * 10) + `id`)) DESC,(lower(`name`)))" in text, text)
        with Server(mysql=True) as second:
            load(second.mysql_port, text)
            same(f"derived {flags}", text, dump(second.mysql_port, *flags, "--databases", "dump_derived")[0])
            tally.equal(f"rows of derived {flags}", values(second.mysql_port, "both_know", "own"), ours)
            second.terminate()
            checked = subprocess.run([second.binary, "check", second.folder], capture_output=True, text=True, timeout=120)
            tally.check(f"beluga check {flags}", checked.returncode == 0, checked.stdout[-500:] + checked.stderr[-500:])
            second.start()
            same(f"derived after a restart {flags}", text, dump(second.mysql_port, *flags, "--databases", "dump_derived")[0])
    if not shutil.which("mariadbd") or not shutil.which("mariadb-install-db"):
        tally.skip("no MariaDB server is installed")
        return
    with MariaDB() as maria, Server(mysql=True) as second:
        load(maria.port, read("derived.sql").split("-- MySQL alone")[0])
        theirs = values(maria.port, "both_know")
        tally.equal("rows as MariaDB computes them", ours["both_know"], theirs["both_know"])
        load(second.mysql_port, dump(maria.port, "--databases", "dump_derived")[0])
        tally.equal("rows of MariaDB's dump of derived", values(second.mysql_port, "both_know"), theirs)
        text, _ = dump(second.mysql_port, "--databases", "dump_derived")
        load(maria.port, "DROP DATABASE dump_derived;")
        # MariaDB cannot read what it stores of a generated column whose literal has a character set and a quote in it.
        load(maria.port, text.replace("_utf8mb4'", "'"))
        tally.equal("rows of our dump of derived in MariaDB", values(maria.port, "both_know"), theirs)


def into_another_database(server):
    """Views of a dump read the tables of the database that it is loaded into; only what was in a third stays there."""
    load(server.mysql_port, """CREATE DATABASE views_from; CREATE DATABASE views_third; CREATE DATABASE views_to; USE views_from;
        CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(20)); INSERT INTO t VALUES (1, 'views_from.t');
        CREATE TABLE views_third.u (id INT); INSERT INTO views_third.u VALUES (1), (2);
        CREATE VIEW plain AS SELECT views_from.t.id, word FROM views_from.t WHERE word LIKE '%views_from.t%';
        CREATE VIEW with_third AS SELECT t.id, word FROM t JOIN views_third.u ON t.id = u.id;
        CREATE VIEW elsewhere AS WITH t AS (SELECT 1 AS id) SELECT * FROM views_from.t;
        CREATE VIEW a_over AS SELECT * FROM plain WHERE id > 0;""")
    text, complaints = dump(server.mysql_port, "views_from")
    tally.equal("complaints of a dump of views", complaints, "")
    load(server.mysql_port, text, "views_to")
    load(server.mysql_port, "DELETE FROM t; INSERT INTO t VALUES (2, 'views_from.t too'), (3, 'no');", "views_to")
    connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", database="views_to", autocommit=True, read_timeout=120)
    with connection.cursor() as cursor:
        for view, expected in (("plain", ((2, "views_from.t too"),)), ("a_over", ((2, "views_from.t too"),)), ("with_third", ((2, "views_from.t too"),)), ("elsewhere", ((1, "views_from.t"),))):
            cursor.execute(f"SELECT * FROM {view}")
            tally.equal(f"rows of {view} in another database", cursor.fetchall(), expected)
        for database in ("views_from", "views_third", "views_to"):
            cursor.execute(f"DROP DATABASE {database}")
    connection.close()


def maintenance(server):
    """mariadb-check, which asks CHECK, ANALYZE, OPTIMIZE and REPAIR TABLE of everything."""
    before = rows(server.mysql_port)
    for way, expected in (("--check", "OK"), ("--analyze", "OK"), ("--optimize", "recreate + analyze"), ("--repair", "doesn't support repair")):
        said = run(words("mariadb-check", server.mysql_port, way, "--databases", *DATABASES)).stdout.decode()
        tally.check(f"mariadb-check {way}", "dump_one.numbers" in said and expected in said and "rror" not in said, said)
    tally.equal("rows after mariadb-check", rows(server.mysql_port), before)


def under_writers(server):
    """Money moves between two tables all the while: every dump has all of it."""
    connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", autocommit=True, read_timeout=120)
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bank")
        for name in ("first", "last"):
            cursor.execute(f"CREATE TABLE bank.{name} (id INT PRIMARY KEY, money INT NOT NULL)")
            cursor.executemany(f"INSERT INTO bank.{name} VALUES (%s, 100)", list(range(500)))
    stop, moved = threading.Event(), [0]

    def move():
        draw = random.Random(1)
        own = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", database="bank", read_timeout=120)
        with own.cursor() as cursor:
            while not stop.is_set():
                one, two = draw.sample(["first", "last"], 2)
                try:
                    cursor.execute(f"UPDATE {one} SET money = money - 1 WHERE id = {draw.randrange(500)}")
                    cursor.execute(f"UPDATE {two} SET money = money + 1 WHERE id = {draw.randrange(500)}")
                    own.commit()
                    moved[0] += 1
                except pymysql.Error as error:
                    own.rollback()
                    if error.args[0] not in (1205, 1213):
                        raise
        own.close()

    writers = [threading.Thread(target=move) for _ in range(2)]
    for writer in writers:
        writer.start()
    with Server(mysql=True) as second:
        for flags in ([], ["--single-transaction"], ["--lock-all-tables"]):
            before = moved[0]
            text, _ = dump(server.mysql_port, *flags, "--databases", "bank")
            load(second.mysql_port, "DROP DATABASE IF EXISTS bank;\n" + text)
            other = pymysql.connect(host="127.0.0.1", port=second.mysql_port, user="root", database="bank", read_timeout=120)
            with other.cursor() as cursor:
                cursor.execute("SELECT (SELECT SUM(money) FROM first) + (SELECT SUM(money) FROM last)")
                tally.equal(f"money in the dump {flags}", int(cursor.fetchone()[0]), 100000)
            other.close()
            tally.check(f"moved meanwhile {flags}", moved[0] > before)
    stop.set()
    for writer in writers:
        writer.join()
    connection.close()


def questions_of_mysql(server):
    connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", charset="utf8mb4", autocommit=True, read_timeout=120)
    with connection.cursor() as cursor:
        for statement, expected in ASKED_BY_MYSQL:
            try:
                cursor.execute(statement)
                found = len(cursor.fetchall()) if cursor.description else None
            except pymysql.Error as error:
                found = error.args[0]
            tally.equal(statement, found, expected)
    connection.close()


def from_mariadb(server):
    if not shutil.which("mariadbd") or not shutil.which("mariadb-install-db"):
        tally.skip("no MariaDB server is installed")
        return
    with MariaDB() as maria:
        fill(maria.port)
        theirs = rows(maria.port)
        ours = rows(server.mysql_port)
        for name in ours:
            tally.equal(f"rows of {name} as MariaDB has them", ours[name], theirs.get(name))
        text, _ = dump(maria.port, *WHOLE)
        with Server(mysql=True) as second:
            load(second.mysql_port, text)
            tally.equal("rows of MariaDB's dump", rows(second.mysql_port), theirs)
        # And there: MariaDB does not know MySQL 8.0's collation.
        text, _ = dump(server.mysql_port, "--single-transaction", *WHOLE)
        for database in DATABASES:
            load(maria.port, f"DROP DATABASE `{database}`;")
        load(maria.port, text)
        tally.equal("rows of our dump in MariaDB", rows(maria.port), theirs)


def main():
    with Server(mysql=True) as server:
        fill(server.mysql_port)
        for part in (in_binary, with_flags, derived, into_another_database, maintenance, under_writers, questions_of_mysql, from_mariadb):
            try:
                part(server)
            except Exception as error:
                tally.check(part.__name__, False, repr(error).replace("\\n", "\n"))


main()
tally.close()
