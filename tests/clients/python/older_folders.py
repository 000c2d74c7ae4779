"""Data folders of earlier versions: the server recovers each, answers as its maker did, and writes to it; `check` finds nothing."""

import datetime
import os
import subprocess
import tarfile
from decimal import Decimal

import psycopg
import pymysql

from beluga import Server, Tally, Wire

tally = Tally()
FOLDERS = os.path.join(os.path.dirname(__file__), "..", "folders")


def bulk(reply):
    return reply[reply.index(b"\r\n") + 2 : -2]


def keys(server):
    wire = Wire(server.port)
    tally.equal("MGET", wire.call("MGET", "a", "b"), b"*2\r\n$1\r\n1\r\n$5\r\nhello\r\n")
    tally.equal("a long string", bulk(wire.call("GET", "long")), b"x" * 3000)
    tally.equal("an expiry time", wire.call("EXPIRETIME", "later"), b":9999999999\r\n")
    tally.equal("another database", wire.call("SELECT", 3) + wire.call("GET", "other"), b"+OK\r\n$2\r\ndb\r\n")
    # What the older format did not have.
    wire.call("HSET", "hash", "f", "v")
    tally.equal("a hash", wire.call("HGET", "hash", "f"), b"$1\r\nv\r\n")


def mysql(server):
    with pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", autocommit=True) as connection:
        cursor = connection.cursor()

        def rows(statement):
            cursor.execute(statement)
            return cursor.fetchall()

        ada = (1, "Ada", Decimal("1.5000"), datetime.datetime(2026, 1, 2, 3, 4, 5, 678000), '{"k": [1, 2]}', "a")
        tally.equal("a row", rows("select * from d.t where name = 'ADA'"), (ada,))
        tally.equal("by a unique key", rows("select id from d.t where price = -99999.1234"), ((2,),))
        tally.equal("a view", rows("select * from d.v"), ((1, "ADA"),))
        try:
            rows("insert into d.child values (2, 99)")
            tally.check("a foreign key", False, "a child without a parent")
        except pymysql.IntegrityError as error:
            tally.equal("a foreign key", error.args[0], 1452)
        rows("insert into d.t (name) values ('new')")
        # Numbers that were reserved when the server was killed are not given.
        tally.check("AUTO_INCREMENT goes on", rows("select max(id) > 3 from d.t") == ((1,),))
        rows("alter table d.t add column more int default 7")
        tally.equal("a column more", rows("select id, more from d.t where id = 1"), ((1, 7),))
    with pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="u1", password="secret") as connection:
        cursor = connection.cursor()
        cursor.execute("select count(*) from d.t")
        tally.equal("an account", cursor.fetchall(), ((4,),))


def postgres(server):
    with psycopg.connect(host="127.0.0.1", port=server.postgres_port, user="postgres", autocommit=True) as connection:
        expected = (1, ["x", "y"], "ok", {"a": 1}, Decimal("1E+40"), 1778051289)
        found = connection.execute("select id, tags, m, b, n, extract(epoch from at)::bigint from p").fetchall()
        tally.equal("a row of PostgreSQL's table", found, [expected])
        new = connection.execute("insert into p (m, n) values ('sad', 4) returning id").fetchall()
        tally.check("a sequence goes on", new[0][0] > 1, new)
        found = connection.execute("select id from p where n * 2 = 8 and n > 0").fetchall()
        tally.equal("an index of an expression", found, new)
        found = connection.execute("select obj_description('p'::regclass), count(*) from other.vp").fetchall()
        tally.equal("a comment and a view", found, [("remark", 2)])
    with psycopg.connect(host="127.0.0.1", port=server.postgres_port, user="r2", password="x", dbname="postgres") as connection:
        tally.equal("a role", connection.execute("select count(*) from p").fetchall(), [(2,)])


for name, parts in (("format-1-without-postgres", [keys, mysql]), ("format-1", [keys, mysql, postgres])):
    server = Server(mysql=True, postgres=True)
    with tarfile.open(os.path.join(FOLDERS, name + ".tar.xz")) as archive:
        archive.extractall(server.home)
    server.folder = os.path.join(server.home, "folder")
    with server:
        for part in parts:
            part(server)
        tally.equal(f"{name}: a clean end", server.terminate(), 0)
        check = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True)
        tally.check(f"{name}: check", check.returncode == 0, check.stdout + check.stderr)
tally.close()
