"""Logins at the MySQL door: each method by PyMySQL, Connector/Python and the mariadb command line, with and without TLS; denials, limits, idle clients."""

import ssl
import subprocess
import tempfile
import time

import mysql.connector
import pymysql
import redis

from beluga import Server, Tally

tally = Tally()


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


def py(server, user="root", tls=None, **more):
    """A PyMySQL connection; `tls` is a file of certificates, or None for plain words."""
    how = {"ssl": {"ca": tls, "check_hostname": False}} if tls else {"ssl_disabled": True}
    return pymysql.connect(host="127.0.0.1", port=server.mysql_port, user=user, connect_timeout=60, read_timeout=60, **how, **more)


def who(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT USER()")
        return cursor.fetchone()[0]


def error_of(action):
    try:
        action()
    except (pymysql.Error, mysql.connector.Error) as error:
        return error.args[0]
    return None


def cli(server, *words):
    done = subprocess.run(["mariadb", "-h127.0.0.1", f"-P{server.mysql_port}", "--batch", "--skip-column-names", *words], capture_output=True, text=True, timeout=60)
    return done.stdout.strip() or done.stderr.strip()


def without_password(server):
    tally.equal("root is default", who(py(server)), "root@localhost")
    tally.equal("a password for an account without one", error_of(lambda: py(server, password="whatever")), 1045)
    tally.equal("unknown", error_of(lambda: py(server, "nobody")), 1045)
    tally.equal("cli", cli(server, "-uroot", "--ssl=0", "-e", "SELECT USER()"), "root@localhost")
    tally.check("cli denied", "ERROR 1045 (28000): Access denied for user 'nobody'@'localhost' (using password: NO)" in cli(server, "-unobody", "-e", "SELECT 1"))


def with_password(server, ca):
    accounts = redis.Redis(port=server.port)
    for tls in (None, ca):
        way = "tls" if tls else "plain"
        # A changed account is asked for the whole password again.
        accounts.execute_command("ACL", "SETUSER", "ann", "on", "resetpass", ">se cret", "~*", "+@all")
        tally.equal(f"wrong, {way}", error_of(lambda: py(server, "ann", tls, password="secret")), 1045)
        tally.equal(f"none, {way}", error_of(lambda: py(server, "ann", tls)), 1045)
        tally.equal(f"full, {way}", who(py(server, "ann", tls, password="se cret")), "ann@localhost")
        tally.equal(f"quick, {way}", who(py(server, "ann", tls, password="se cret")), "ann@localhost")
        tally.equal(f"wrong after right, {way}", error_of(lambda: py(server, "ann", tls, password="secret")), 1045)
    for disabled in (True, False):
        connection = mysql.connector.connect(host="127.0.0.1", port=server.mysql_port, user="ann", password="se cret", ssl_disabled=disabled, use_pure=True)
        cursor = connection.cursor()
        cursor.execute("SELECT USER()")
        tally.equal(f"connector, {disabled}", cursor.fetchone()[0], "ann@localhost")
        connection.cmd_change_user("root", "", "")
        cursor = connection.cursor()
        cursor.execute("SELECT USER()")
        tally.equal(f"change user, {disabled}", cursor.fetchone()[0], "root@localhost")
        connection.close()
    accounts.execute_command("ACL", "SETUSER", "ann", "off")
    tally.equal("disabled", error_of(lambda: py(server, "ann", password="se cret")), 3118)
    tally.equal("disabled, wrong password", error_of(lambda: py(server, "ann", password="secret")), 1045)


def ends(server):
    idle = py(server)
    with idle.cursor() as cursor:
        cursor.execute("SET SESSION wait_timeout = 1")
    time.sleep(4)
    tally.check("idle", error_of(lambda: who(idle)) in (4031, 2006, 2013))
    tally.equal("unknown database", error_of(lambda: py(server, database="nowhere")), 1049)


def sealing(server, ca):
    """SHOW STATUS reports the same about TLS as the client's library."""
    for version in (None, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context(cafile=ca)
        context.check_hostname = False
        if version:
            context.minimum_version = context.maximum_version = version
        connection = pymysql.connect(host="127.0.0.1", port=server.mysql_port, user="root", ssl=context, connect_timeout=60, read_timeout=60)
        cipher, _, _ = connection._sock.cipher()
        with connection.cursor() as cursor:
            cursor.execute("SHOW STATUS LIKE 'Ssl%'")
            tally.equal(f"sealing {version}", cursor.fetchall(), (("Ssl_cipher", cipher), ("Ssl_version", connection._sock.version())))
    with py(server).cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl%'")
        tally.equal("sealing, plain", cursor.fetchall(), (("Ssl_cipher", ""), ("Ssl_version", "")))


def main():
    with tempfile.TemporaryDirectory() as home:
        key, certificate = f"{home}/key.pem", f"{home}/certificate.pem"
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate)
        tls = ["--mysql-ssl-cert", certificate, "--mysql-ssl-key", key]
        with Server(*tls, mysql=True) as server:
            without_password(server)
            with_password(server, certificate)
            sealing(server, certificate)
            ends(server)
        with Server(*tls, "--mysql-require-secure-transport", "yes", "--max-connections", "3", mysql=True) as server:
            tally.equal("tls required", error_of(lambda: py(server)), 3159)
            held = [py(server, tls=certificate) for _ in range(3)]
            tally.equal("too many", error_of(lambda: py(server, tls=certificate)), 1040)
            del held


main()
tally.close()
