"""LOAD DATA and SELECT ... INTO OUTFILE: PyMySQL, Connector/Python, the mariadb command line and mariadb-import, plain, compressed and in TLS; what the server must refuse; files of many
megabytes in little memory; errors and kills in the middle; and the same files beside a MariaDB server."""

import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time

import mysql.connector
import pymysql

from beluga import MariaDB, Server, Tally

tally = Tally()
home = tempfile.mkdtemp(prefix="beluga-load-")


def file(content, name="data", mode=0o644):
    path = os.path.join(home, name)
    with open(path, "wb") as out:
        out.write(content if isinstance(content, bytes) else content.encode())
    os.chmod(path, mode)
    return path


def come(port, **more):
    more = {"local_infile": True, "autocommit": True, "charset": "utf8mb4", **more}
    return pymysql.connect(host="127.0.0.1", port=port, user="root", connect_timeout=60, read_timeout=120, ssl_disabled=True, **more)


def ask(connection, sql):
    """The rows, or the number of the error."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return [list(row) for row in cursor.fetchall()]
    except pymysql.Error as error:
        return error.args[0]


def info(connection):
    # PyMySQL leaves the byte of its length in front.
    return connection._result.message[1:].decode() if connection._result and connection._result.message else ""


def refusals(server):
    root = come(server.mysql_port, database="d")
    path = file("1\ta\n")
    ask(root, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10))")
    load = f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE t"
    tally.equal("off by default", ask(root, load), 3948)
    ask(root, "SET GLOBAL local_infile = 1")
    tally.equal("a client that cannot", ask(come(server.mysql_port, database="d", local_infile=False), load), 3948)
    tally.equal("on", ask(root, load), [])
    tally.equal("no table", ask(root, load.replace("TABLE t", "TABLE u")), 1146)
    tally.equal("the client has no such file", ask(root, load.replace(path, path + "x")), 1017)
    tally.equal("and goes on", ask(root, "SELECT COUNT(*) FROM t"), [[1]])
    ask(root, "CREATE USER poor; ")
    ask(root, "CREATE USER poor")
    ask(root, "GRANT INSERT, SELECT ON d.* TO poor")
    poor = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="poor", database="d", local_infile=True, autocommit=True, ssl_disabled=True)
    tally.equal("LOCAL needs INSERT alone", ask(poor, load), [])
    tally.equal("REPLACE needs DELETE", ask(poor, load.replace("INTO", "REPLACE INTO", 1)), 1142)
    inside = os.path.join(server.files, "in")
    shutil.copy(path, inside)
    os.chmod(inside, 0o644)
    near = f"LOAD DATA INFILE '{inside}' REPLACE INTO TABLE t"
    tally.equal("a file of the server needs FILE", ask(poor, near), 1045)
    tally.equal("so does writing one", ask(poor, f"SELECT * FROM t INTO OUTFILE '{server.files}/p'"), 1045)
    tally.equal("a file of the server", ask(root, near), [])
    os.symlink("/etc/passwd", os.path.join(server.files, "link"))
    for name, word in (("/etc/passwd", 1290), (f"{server.files}/link", 1290), (f"{server.files}/../x", 1290), ("in", 1290), (f"{server.files}/none", 29), (f"{server.files}", 1085)):
        tally.equal(f"reading {name}", ask(root, f"LOAD DATA INFILE '{name}' INTO TABLE t"), word)
    os.chmod(inside, 0o600)
    tally.equal("a file not for all", ask(root, near), 1085)
    for name, word in (("/tmp/beluga-no", 1290), (f"{server.files}/link", 1086), (f"{server.files}/../x", 1290), ("x", 1290)):
        tally.equal(f"writing {name}", ask(root, f"SELECT 1 INTO OUTFILE '{name}'"), word)
    tally.equal("prepared", ask(root, f"PREPARE p FROM 'SELECT 1'"), [])
    ask(root, "DROP TABLE t")


def written(server):
    """LOAD DATA reads the file that OUTFILE writes, in every format."""
    root = come(server.mysql_port, database="d")
    ask(root, "CREATE TABLE out_ (id INT PRIMARY KEY, a VARCHAR(40), b VARBINARY(20), n DECIMAL(8,2), d DATETIME(3), e ENUM('x','y'), s SET('p','q'), y YEAR, t TIME)")
    with root.cursor() as cursor:
        rows = [(1, "a,b\"c\\d\te\nf\r", b"\0\x01\n\\N\"", "1.50", "2026-11-21 08:05:04.120", "y", "p,q", 2026, "-12:30:00"), (2, None, None, None, None, None, None, None, None),
                (3, "", b"", "0", "0001-01-01", "x", "", 1999, "00:00:00"), (4, "NULL", b"N", "-3", "2026-11-21", "x", "q", 2000, "01:00:00"), (5, "wal \U0001f40b", b"Z", "1", "2026-11-21", "x", "q", 2000, "01:00:00")]
        cursor.executemany("INSERT INTO out_ VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s)", rows)
    before = ask(root, "SELECT * FROM out_ ORDER BY id")
    path = os.path.join(server.files, "latin1")
    with open(path, "wb") as out:
        out.write(b"1\tcaf\xe9\n")
    ask(root, "CREATE TABLE latin (id INT PRIMARY KEY, a VARCHAR(10))")
    ask(root, "SET character_set_database = latin1")
    tally.equal("a file in character_set_database", ask(root, f"LOAD DATA INFILE '{path}' INTO TABLE latin"), [])
    ask(root, "USE d")
    tally.equal("its text", ask(root, "SELECT a, @@character_set_database FROM latin"), [["caf\u00e9", "utf8mb4"]])
    ask(root, "DROP TABLE latin")
    forms = ["", "FIELDS TERMINATED BY ','", "FIELDS TERMINATED BY ',' ENCLOSED BY '\"'", "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'",
             "FIELDS TERMINATED BY '||' ENCLOSED BY '#' ESCAPED BY '$' LINES STARTING BY '>>' TERMINATED BY ';;'", "FIELDS TERMINATED BY ';' ENCLOSED BY '' LINES TERMINATED BY '|'"]
    for nth, form in enumerate(forms):
        path = os.path.join(server.files, f"out{nth}")
        tally.equal(f"write {form}", ask(root, f"SELECT * FROM out_ ORDER BY id INTO OUTFILE '{path}' CHARACTER SET utf8mb4 {form}"), [])
        tally.equal(f"it is there {form}", ask(root, f"SELECT * INTO OUTFILE '{path}' {form} FROM out_"), 1086)
        os.chmod(path, 0o644)
        ask(root, "DELETE FROM out_")
        tally.equal(f"read {form}", ask(root, f"LOAD DATA INFILE '{path}' INTO TABLE out_ CHARACTER SET utf8mb4 {form}"), [])
        tally.equal(f"the same {form}", ask(root, "SELECT * FROM out_ ORDER BY id"), before)
    with open(os.path.join(server.files, "out3"), "rb") as out:
        tally.equal("quotes around texts alone", out.read().split(b"\r\n")[3], b'4,"NULL","N",-3.00,"2026-11-21 00:00:00.000","x","q",2000,"01:00:00"')
    dump = os.path.join(server.files, "dump")
    tally.equal("more than a row", ask(root, f"SELECT a FROM out_ INTO DUMPFILE '{dump}'"), 1172)
    tally.check("nothing is left of it", not os.path.exists(dump))
    tally.equal("a row", ask(root, f"SELECT b, n FROM out_ WHERE id = 1 INTO DUMPFILE '{dump}'"), [])
    tally.equal("as it is", open(dump, "rb").read(), b"\0\x01\n\\N\"1.50")
    bad = os.path.join(server.files, "bad")
    tally.equal("an error in the middle", ask(root, f"SELECT CAST(id + 18446744073709551613 AS UNSIGNED) FROM out_ INTO OUTFILE '{bad}'"), 1690)
    tally.check("leaves no file", not os.path.exists(bad))
    ask(root, "DROP TABLE out_")


def clients(server):
    path = file("\n".join(f'{at},"name {at}",{at / 4}' for at in range(20000)) + "\n", "people")
    form = "FIELDS TERMINATED BY ',' ENCLOSED BY '\"'"
    root = come(server.mysql_port, database="d")
    for name in ("people", "more"):
        ask(root, f"CREATE TABLE {name} (id INT PRIMARY KEY, name VARCHAR(20), part DOUBLE)")
    with root.cursor() as cursor:
        tally.equal("rows", cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE people {form}"), 20000)
    tally.equal("words", info(root), "Records: 20000  Deleted: 0  Skipped: 0  Warnings: 0")
    expected = ask(root, "SELECT COUNT(*), SUM(id), SUM(part), COUNT(DISTINCT name) FROM people")
    check = "SELECT COUNT(*), SUM(id), SUM(part), COUNT(DISTINCT name) FROM more"
    for compress in (False, True):
        ask(root, "TRUNCATE more")
        other = mysql.connector.connect(host="127.0.0.1", port=server.mysql_port, user="root", database="d", allow_local_infile=True, use_pure=True, autocommit=True, compress=compress, ssl_disabled=True)
        cursor = other.cursor()
        cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE more {form}")
        tally.equal(f"Connector/Python, compressed: {compress}", cursor.rowcount, 20000)
        tally.equal("its rows", ask(root, check), expected)
        other.close()
        ask(root, "TRUNCATE more")
        command = ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", str(server.mysql_port), "-u", "root", "--local-infile=1", "-vv", "d", "-e",
                   f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE more {form}; SELECT COUNT(*) AS rows_ FROM more; LOAD DATA LOCAL INFILE '{path}' IGNORE INTO TABLE more {form}"] + ["--compress"] * compress
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        tally.check(f"mariadb, compressed: {compress}", "Records: 20000  Deleted: 0  Skipped: 0  Warnings: 0" in done.stdout and "Skipped: 20000  Warnings: 20000" in done.stdout, done.stdout + done.stderr)
        tally.equal("its rows", ask(root, check), expected)
    if shutil.which("mariadb-import"):
        ask(root, "TRUNCATE more")
        shutil.copy(path, os.path.join(home, "more.txt"))
        command = ["mariadb-import", "--no-defaults", "-h", "127.0.0.1", "-P", str(server.mysql_port), "-u", "root", "--local", "--fields-terminated-by=,", "--fields-enclosed-by=\"", "--replace", "d", os.path.join(home, "more.txt")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        tally.equal("mariadb-import", (done.returncode, done.stdout.strip()), (0, "d.more: Records: 20000  Deleted: 0  Skipped: 0  Warnings: 0"))
        tally.equal("its rows", ask(root, check), expected)
    ask(root, "DROP TABLE people, more")


def script(server):
    """In the middle of a text of several statements."""
    first, second = file("1\n2\n", "first"), file("2\n3\n", "second")
    many = come(server.mysql_port, database="d", client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS)
    ask(many, "CREATE TABLE s (id INT PRIMARY KEY)")
    with many.cursor() as cursor:
        cursor.execute(f"SELECT 1; LOAD DATA LOCAL INFILE '{first}' INTO TABLE s; SELECT COUNT(*) FROM s; LOAD DATA LOCAL INFILE '{second}' INTO TABLE s; SELECT id FROM s")
        found = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
    tally.equal("a script", [list(rows) for rows in found], [[(1,)], [], [(2,)], [], [(1,), (2,), (3,)]])
    bad = file("4\n2\nx\n", "bad")
    tally.equal("an error is told at the end", ask(many, f"SET sql_mode='STRICT_TRANS_TABLES'; "), [])
    tally.equal("REPLACE is strict", ask(many, f"LOAD DATA LOCAL INFILE '{bad}' REPLACE INTO TABLE s"), 1366)
    tally.equal("and takes back what was done", ask(many, "SELECT id FROM s"), [[1], [2], [3]])
    ask(many, "DROP TABLE s")


def resident(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) >> 10


def large(server):
    """40 MB in one statement, a packet of 17 MB, and a slow client that holds no thread."""
    root = come(server.mysql_port, database="d")
    ask(root, "CREATE TABLE big (id INT PRIMARY KEY, filler VARCHAR(1000))")
    path = os.path.join(home, "big")
    with open(path, "w") as out:
        for at in range(40000):
            out.write(f"{at}\t{'x' * 500}\n")
    with root.cursor() as cursor:
        tally.equal("a large file", cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE big"), 40000)
    tally.check("memory stays", resident(server) < 700, f"{resident(server)} MB")
    ask(root, "TRUNCATE big")
    slow = [come(server.mysql_port, database="d") for _ in range(20)]
    for at, connection in enumerate(slow):
        begin(connection, "LOAD DATA LOCAL INFILE 'mine' INTO TABLE big")
        piece(connection, f"{at}\ta\n{at + 100}\t".encode())
    tally.equal("others are served", ask(root, "SELECT 1"), [[1]])
    listed = ask(root, "SHOW PROCESSLIST")
    tally.equal("they are listed", sum(1 for row in listed if row[7] and row[7].startswith("LOAD DATA")), 20)
    for connection in slow[:18]:
        piece(connection, b"b\n")
        piece(connection, b"")
        tally.check("a slow one", b"Records: 2  Deleted: 0  Skipped: 0  Warnings: 0" in answer(connection))
    killed, lost = slow[18:]
    ask(root, f"KILL QUERY {killed.thread_id()}")
    piece(killed, b"b\n999\tz\n" * 5)
    piece(killed, b"")
    tally.check("KILL QUERY", b"\x25\x05" in answer(killed)[:8])
    tally.equal("it goes on", ask(killed, "SELECT 2"), [[2]])
    before = len(ask(root, "SHOW PROCESSLIST"))
    lost._force_close()
    wait = time.monotonic() + 30
    while len(ask(root, "SHOW PROCESSLIST")) > before - 1 and time.monotonic() < wait:
        time.sleep(0.05)
    tally.check("a client that goes is gone", len(ask(root, "SHOW PROCESSLIST")) < before)
    tally.equal("what was cut off is taken back", ask(root, "SELECT COUNT(*) FROM big"), [[36]])
    one = slow[0]
    begin(one, "LOAD DATA LOCAL INFILE 'mine' REPLACE INTO TABLE big")
    frames(one, (b"7\t" + b"y" * 1000 + b"\n") * 17000)
    frames(one, b"8\tb\n")
    piece(one, b"")
    # Of 17,000 times the same row the first replaces another one.
    tally.check("packets beyond 16 MB", b"Records: 17001  Deleted: 2" in answer(one))
    begin(one, "LOAD DATA LOCAL INFILE 'mine' INTO TABLE big")
    one._sock.sendall(b"\x00\x00\x00\x05")
    tally.check("a frame out of turn", b"\x84\x04" in answer(one)[:8])
    impatient = come(server.mysql_port, database="d")
    ask(impatient, "SET net_read_timeout = 1")
    begin(impatient, "LOAD DATA LOCAL INFILE 'mine' INTO TABLE big")
    tally.check("a client that says nothing", b"\xbf\x0f" in answer(impatient)[:8])
    ask(root, "DROP TABLE big")


def begin(connection, sql):
    connection._next_seq_id = 0
    connection._sock.sendall((len(sql) + 1).to_bytes(3, "little") + b"\0\x03" + sql.encode())
    head = receive(connection)
    assert head[4] == 0xFB, head
    connection._next_seq_id = 2


def piece(connection, data):
    connection._sock.sendall(len(data).to_bytes(3, "little") + bytes([connection._next_seq_id]) + data)
    connection._next_seq_id = (connection._next_seq_id + 1) % 256


def frames(connection, data):
    """A packet, of several frames if it must be."""
    limit = (1 << 24) - 1
    while True:
        piece(connection, data[:limit])
        if len(data) < limit:
            return
        data = data[limit:]


def receive(connection):
    """One packet, with its header."""
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:3], "little"):
        more = connection._sock.recv(65536)
        if not more:
            return data
        data += more
    return data


def answer(connection):
    return receive(connection)


def beside_mariadb(server):
    if not shutil.which("mariadbd"):
        tally.skip("no mariadbd")
        return
    chance = random.Random(20261121)
    bits = ["1", "22", "a", "b c", "", "NULL", "\\N", "N", "x\\ty", "\"q\"", "\"a,b\"", "\"a\"\"b\"", "\"", "\\\\", "'", "|", "é", "\\0", "-5", "2.5", "2020-01-02", "\\\"", "\"\\N\"", "\"NULL\"", "z\"z"]
    fields = ["", "FIELDS TERMINATED BY ','", "FIELDS TERMINATED BY ',' ENCLOSED BY '\"'", "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY ''", "FIELDS TERMINATED BY '||' ENCLOSED BY '\"' ESCAPED BY '\"'",
              "FIELDS ENCLOSED BY '\"' TERMINATED BY ',' ESCAPED BY '|'"]
    lines = ["", "LINES TERMINATED BY '\\r\\n'", "LINES STARTING BY '>' TERMINATED BY '\\n'", "LINES TERMINATED BY ','", "LINES TERMINATED BY ''"]
    columns = ["", "(a, b, c)", "(c, b)", "(a, @x, b) SET c = LENGTH(@x)", "(@x, @y) SET a = CONCAT(@x, '.', IFNULL(@y, 'none')), c = a IS NULL", "(b)"]
    with MariaDB() as mariadb:
        ours, theirs = come(server.mysql_port, database="d"), come(mariadb.port)
        ask(theirs, "CREATE DATABASE d CHARACTER SET utf8mb4")
        theirs.select_db("d")
        for both in (ours, theirs):
            ask(both, "CREATE TABLE m (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(5), b VARCHAR(20) NOT NULL DEFAULT 'd', c INT)")
        for turn in range(100):
            field, line = chance.choice(fields), chance.choice(lines)
            comma = "," if "','" in field else "||" if "||" in field else "\t"
            end = {"\\r\\n": "\r\n", ",": ",", "": ""}.get(line.split("'")[-2] if line else "", "\n") if "TERMINATED" in line else "\n"
            text = ""
            for _ in range(chance.randrange(1, 6)):
                text += chance.choice([">", ">", "no>", ""]) if "STARTING" in line else ""
                text += comma.join(chance.choice(bits) for _ in range(chance.randrange(0, 5))) + chance.choice([end, end, end, "\n"])
            path = file(text if chance.random() < 0.8 else text[:-1], "m")
            how = chance.choice(["", "IGNORE", "REPLACE"])
            sql = f"LOAD DATA LOCAL INFILE '{path}' {how} INTO TABLE m CHARACTER SET utf8mb4 {field} {line} {chance.choice(['', '', 'IGNORE 1 LINES'])} {chance.choice(columns[1:])}"
            found = []
            for both in (ours, theirs):
                for before in ("SET sql_mode='STRICT_TRANS_TABLES'" if turn % 2 else "SET sql_mode=''", "DELETE FROM m"):
                    ask(both, before)
                answered = ask(both, sql)
                words = info(both) if answered == [] else ""
                warnings = [row[1] for row in ask(both, "SHOW WARNINGS")]
                found.append((answered, words, ask(both, "SELECT a, b, c FROM m ORDER BY id"), warnings))
            tally.equal(f"turn {turn}: {sql} of {text!r}", found[0][:3], found[1][:3])
            tally.equal(f"turn {turn}, warnings: {sql} of {text!r}", found[0][3], found[1][3])


def fixed_width(server):
    """Fields without separators: what OUTFILE writes, and what LOAD DATA makes of it and of lines that are too short or too long, beside a MariaDB server."""
    if not shutil.which("mariadbd"):
        tally.skip("no mariadbd")
        return
    columns = """a TINYINT, b SMALLINT, c MEDIUMINT, d INT, e BIGINT, f INT UNSIGNED, g DECIMAL(6,2), h FLOAT, i DOUBLE, j CHAR(3), k VARCHAR(4) CHARACTER SET latin1, l DATE, m TIME(2), n DATETIME, o YEAR, p ENUM('aa','b'),
        q BINARY(3), r MEDIUMINT UNSIGNED, s BIGINT UNSIGNED, t DECIMAL(5,0) UNSIGNED, u SET('x','yy'), v DATETIME(3), w FLOAT(7,3)"""
    rows = ["(-1,-2,-3,-4,-5,6,-8.25,1.5,2.5,'ab','x\\\\y','2020-01-02','10:11:12.5','2020-01-02 03:04:05',2020,'b','q',4,5,6,'x,yy','2020-01-02 03:04:05.1',1.25)",
            "(-128,-32768,-8388608,-2147483648,-9223372036854775808,4294967295,-9999.99,-1e20,1e200,'\U0001f40b','\\n','0001-01-01','-838:59:59','9999-12-31 23:59:59',1999,'aa','\\0\\n',16777215,18446744073709551615,99999,'','2020-01-02',-999.999)"]
    form = "FIELDS TERMINATED BY '' ENCLOSED BY ''"
    bits = ["1          ", "22   ", "abc", "wxyz", " ", "\\n", "-5", "x", "           "]
    chance = random.Random(20261122)
    with MariaDB() as mariadb:
        pair = (come(server.mysql_port, database="d"), come(mariadb.port))
        ask(pair[1], "CREATE DATABASE d CHARACTER SET utf8mb4")
        pair[1].select_db("d")
        written, read = [], []
        for both, folder in zip(pair, (server.files, mariadb.home)):
            path = os.path.join(folder, "fixed")
            ask(both, "SET sql_mode=''")
            ask(both, f"CREATE TABLE f ({columns})")
            for row in rows:
                tally.equal(f"put in {row}", ask(both, f"INSERT INTO f VALUES {row}"), [])
            tally.equal("write", ask(both, f"SELECT * FROM f ORDER BY a DESC INTO OUTFILE '{path}' {form}"), [])
            subprocess.run(["chmod", "644", path], check=True)
            written.append(open(path, "rb").read())
            ask(both, "CREATE TABLE g LIKE f")
            tally.equal("read", ask(both, f"LOAD DATA INFILE '{path}' INTO TABLE g CHARACTER SET utf8mb4 {form}"), [])
            read.append(ask(both, "SELECT * FROM g ORDER BY a DESC"))
            tally.equal("numbers and times come back", [row[:9] + row[11:15] for row in read[-1]], [row[:9] + row[11:15] for row in ask(both, "SELECT * FROM f ORDER BY a DESC")])
            ask(both, "CREATE TABLE w (id INT AUTO_INCREMENT PRIMARY KEY, i INT NOT NULL, c CHAR(3) CHARACTER SET latin1 NOT NULL DEFAULT '', v VARCHAR(4) CHARACTER SET latin1 NOT NULL DEFAULT 'd', t TEXT)")
            tally.equal("into a variable", ask(both, f"LOAD DATA LOCAL INFILE '{file('x')}' INTO TABLE w {form} (i, @x)"), 1409)
            tally.equal("into a TEXT", ask(both, f"LOAD DATA LOCAL INFILE '{file('x')}' INTO TABLE w {form} LINES TERMINATED BY '' (i, t)"), 1084)
        tally.equal("the bytes of a file", *written)
        tally.equal("its rows", *read)
        # Here MariaDB differs from MySQL: it knows no default.
        ask(pair[0], "CREATE TABLE missing (a INT, b INT DEFAULT 7, c CHAR(3) CHARACTER SET latin1 DEFAULT 'e', d INT, e CHAR(2), f INT NOT NULL, g TIMESTAMP NOT NULL DEFAULT '2001-01-01', h TIMESTAMP NULL DEFAULT '2001-01-01')")
        ask(pair[0], f"LOAD DATA LOCAL INFILE '{file('1')}' INTO TABLE missing {form}")
        tally.equal("warnings of what is missing", [row[1] for row in ask(pair[0], "SHOW WARNINGS")], [1261] * 7)
        tally.equal("what is missing", ask(pair[0], "SELECT a, b, c, d, e, f, g > '2020-01-01', h = '2001-01-01' FROM missing"), [[1, 7, "e", 0, "", 0, 1, 1]])
        for turn in range(60):
            line = chance.choice(["", "LINES TERMINATED BY ';'", "LINES STARTING BY '>'", "LINES TERMINATED BY ''"])
            end = {"LINES TERMINATED BY ';'": ";", "LINES TERMINATED BY ''": ""}.get(line, "\n")
            text = "".join((">" if "START" in line else "") + "".join(chance.choice(bits) for _ in range(chance.randrange(1, 5))) + end for _ in range(chance.randrange(1, 6)))
            path = file(text, "w")
            sql = f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE w CHARACTER SET utf8mb4 {form} {line} {chance.choice(['', 'IGNORE 1 LINES'])} {chance.choice(['(i, c)', '(c, i)', '(i) SET c = i'])}"
            found = []
            for both in pair:
                ask(both, "TRUNCATE w")
                answered = ask(both, sql)
                words = info(both).split("  Warnings")[0]
                # MariaDB notes the spaces behind a number too.
                warnings = [code for level, code, _ in ask(both, "SHOW WARNINGS") if level != "Note"]
                found.append((answered, words, warnings, ask(both, "SELECT i, HEX(c), v FROM w ORDER BY id")))
            tally.equal(f"turn {turn}: {sql} of {text!r}", *found)


files = os.path.join(home, "files")
os.mkdir(files)
with Server("--secure-file-priv", files, mysql=True) as server:
    server.files = files
    with come(server.mysql_port).cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
    refusals(server)
    written(server)
    clients(server)
    script(server)
    large(server)
    beside_mariadb(server)
    fixed_width(server)
shutil.rmtree(home, ignore_errors=True)
tally.close()
raise SystemExit(tally.failed > 0)
