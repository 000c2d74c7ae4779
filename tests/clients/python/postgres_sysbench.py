"""Debian's sysbench at the PostgreSQL door: all oltp scripts with several numbers of threads and no error, and a table that is what it should be afterwards. Then pgbench's three scripts in its three modes with many clients, by the
programs of PostgreSQL 16 and of the system's own version (15 on Debian 12), whose psql logs in too.

    postgres_sysbench.py [SECONDS [THREADS ...]]    3 seconds each with 1, 8 and 64 threads"""

import glob
import os
import re
import subprocess
import sys

import psycopg

from beluga import Server, Tally

tally = Tally()
SCRIPTS = ["oltp_point_select", "oltp_read_only", "oltp_update_index", "oltp_update_non_index", "oltp_insert", "oltp_delete", "oltp_write_only", "oltp_read_write"]
SECONDS = sys.argv[1] if len(sys.argv) > 1 else "2"
THREADS = [int(word) for word in sys.argv[2:]] or [1, 8, 64]
TABLES, ROWS = 2, 2000
POSTGRES = os.path.join(os.path.dirname(__file__), "../../../scripts/postgres.sh")


def connect(server, database):
    return psycopg.connect(host="127.0.0.1", port=server.postgres_port, user="postgres", dbname=database, sslmode="disable", autocommit=True)


def sysbench(server, script, *words):
    target = ["--db-driver=pgsql", "--pgsql-host=127.0.0.1", f"--pgsql-port={server.postgres_port}", "--pgsql-user=postgres", "--pgsql-db=sbtest"]
    command = ["sysbench", script, *target, f"--tables={TABLES}", f"--table-size={ROWS}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def scripts(server):
    with connect(server, "postgres") as connection:
        connection.execute("create database sbtest")
    done = sysbench(server, "oltp_read_write", "prepare")
    tally.check("prepare", done.returncode == 0, done.stdout[-500:] + done.stderr[-500:])
    for script in SCRIPTS:
        for threads in THREADS:
            done = sysbench(server, script, f"--threads={threads}", f"--time={SECONDS}", "run")
            total = re.search(r"transactions: +(\d+)", done.stdout)
            tally.check(f"{script} with {threads}", done.returncode == 0 and total and int(total.group(1)) > 0, done.stdout[-500:] + done.stderr[-500:])
            print(f"{script}, {threads} threads: {total.group(1) if total else 'no'} transactions in {SECONDS} s", flush=True)
    with connect(server, "sbtest") as connection:
        # Each transaction of oltp_read_write and oltp_write_only puts back the row that it deletes.
        rows = connection.execute("select count(*), count(distinct id), min(k) > 0 from sbtest1").fetchone()
        tally.check("ids are unique", rows[0] == rows[1] and rows[2], rows)
        by_index = connection.execute("select count(*) from (select k from sbtest1 order by k) s").fetchone()[0]
        tally.equal("the index agrees", by_index, rows[0])
    done = sysbench(server, "oltp_read_write", "cleanup")
    tally.check("cleanup", done.returncode == 0, done.stderr[-500:])


def folders():
    """The folders of PostgreSQL's programs: 16's, and those that the system has."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if subprocess.run([POSTGRES, "install"], capture_output=True).returncode == 0:
        found.append(subprocess.run([POSTGRES, "bin"], capture_output=True, text=True).stdout.strip())
    return found


def programs(server):
    target = ["-h", "127.0.0.1", "-p", str(server.postgres_port), "-U", "postgres"]
    for folder in folders():
        psql, pgbench = os.path.join(folder, "psql"), os.path.join(folder, "pgbench")
        if not os.path.exists(psql):
            continue
        version = re.search(r"\d+\.\d+", subprocess.run([psql, "--version"], capture_output=True, text=True).stdout)[0]
        text = "select 1;\n\\set x 5\nselect :x + 1;\nbegin; select 'in a block'; commit;\n\\copy (select 7) to stdout\n"
        done = subprocess.run([psql, *target, "-X", "-At", "postgres"], input=text, capture_output=True, text=True, timeout=60)
        tally.equal(f"psql {version}", done.stdout, "1\n6\nBEGIN\nin a block\nCOMMIT\n7\n")
        if not os.path.exists(pgbench):
            continue
        for steps in ("dtgvp", "dtGvp"):
            done = subprocess.run([pgbench, *target, "-i", "-q", "-I", steps, "-s", "2", "postgres"], capture_output=True, text=True, timeout=300)
            tally.check(f"pgbench {version} -i {steps}", done.returncode == 0, done.stderr[-500:])
        for mode in ("simple", "extended", "prepared"):
            for script in ("tpcb-like", "simple-update", "select-only"):
                command = [pgbench, *target, "-n", "-M", mode, "-b", script, "-c", "48", "-j", "4", "-t", "20", "postgres"]
                done = subprocess.run(command, capture_output=True, text=True, timeout=300)
                fine = done.returncode == 0 and "actually processed: 960/960" in done.stdout and "failed transactions: 0" in done.stdout
                tally.check(f"pgbench {version} {mode} {script}", fine, (done.stdout + done.stderr)[-500:])
        with connect(server, "postgres") as connection:
            sums = connection.execute("select (select sum(abalance) from pgbench_accounts), (select sum(bbalance) from pgbench_branches), (select sum(tbalance) from pgbench_tellers), (select sum(delta) from pgbench_history)").fetchone()
            history = connection.execute("select count(*) from pgbench_history").fetchone()[0]
            # simple-update changes accounts alone.
            tally.check(f"pgbench {version}: the balances agree", sums[0] == sums[3] and sums[1] == sums[2] and history == 6 * 960, (sums, history))


def main():
    # Each transaction that waits for a row after its first change holds a thread, for which memory must have room.
    with Server("--memory", "2gb" if max(THREADS) > 64 else "512mb", postgres=True) as server:
        scripts(server)
        programs(server)
        tally.equal("the server stops", server.terminate(), 0)
    tally.close()


if __name__ == "__main__":
    main()
