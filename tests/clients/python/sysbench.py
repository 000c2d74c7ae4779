"""Debian's sysbench, all oltp scripts with several numbers of threads: no error, and tables that are what they should be afterwards."""

import re
import subprocess
import sys
import urllib.request

import pymysql

from beluga import Server, Tally, free_port

tally = Tally()
SCRIPTS = ["oltp_point_select", "oltp_read_only", "oltp_update_index", "oltp_update_non_index", "oltp_insert", "oltp_delete", "oltp_write_only", "oltp_read_write"]
SECONDS = sys.argv[1] if len(sys.argv) > 1 else "3"


def sysbench(server, script, *words, tables=2, rows=2000):
    command = ["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={server.mysql_port}", "--mysql-user=root", "--mysql-db=sbtest", f"--tables={tables}",
               f"--table-size={rows}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def run(server, script, threads, **tables):
    done = sysbench(server, script, f"--threads={threads}", f"--time={SECONDS}", "--mysql-ignore-errors=1213,1020,1205", "run", **tables)
    total = re.search(r"transactions: +(\d+)", done.stdout)
    tally.check(f"{script} with {threads}", done.returncode == 0 and total and int(total.group(1)) > 0, done.stdout[-500:] + done.stderr[-500:])
    if total:
        print(f"{script}, {threads} threads: {total.group(1)} transactions in {SECONDS} s", flush=True)


with Server(mysql=True) as server:
    connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", autocommit=True)
    connection.cursor().execute("CREATE DATABASE sbtest")
    done = sysbench(server, "oltp_read_write", "prepare")
    tally.check("prepare", done.returncode == 0, done.stdout[-500:] + done.stderr[-500:])
    for script in SCRIPTS:
        for threads in (1, 8, 64):
            run(server, script, threads)
    done = sysbench(server, "oltp_read_write", "cleanup")
    tally.check("cleanup", done.returncode == 0, done.stderr[-500:])

# Four times as much data as there are frames: statements leave for their pages, and change what they should.
MANY = {"tables": 1, "rows": 150_000}
metrics = free_port()
with Server("--memory", "64mb", "--metrics-listen", f"127.0.0.1:{metrics}", mysql=True) as server:
    cursor = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", autocommit=True).cursor()
    cursor.execute("CREATE DATABASE sbtest")
    done = sysbench(server, "oltp_read_write", "prepare", **MANY)
    tally.check("prepare a large table", done.returncode == 0, done.stdout[-500:] + done.stderr[-500:])
    for script in ("oltp_point_select", "oltp_read_only", "oltp_update_index", "oltp_write_only", "oltp_read_write"):
        run(server, script, 64, **MANY)
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=10) as page:
        leaves = int(re.search(r"^beluga_mysql_leaves_total (\d+)", page.read().decode(), re.M).group(1))
    print(f"statements left {leaves} times", flush=True)
    tally.check("statements have left", leaves > 1000, leaves)
    cursor.execute("SELECT COUNT(*) FROM sbtest.sbtest1")
    tally.equal("each delete was followed by its insert", cursor.fetchone()[0], MANY["rows"])
    cursor.execute("CHECK TABLE sbtest.sbtest1")
    tally.equal("the table and its index agree", cursor.fetchone()[3], "OK")
tally.close()
