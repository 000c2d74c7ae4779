"""SHUTDOWN and the stop by a signal, with replies compared with redis-server: exit codes, doors, the file of SAVE and what happens if it cannot be written, replicas that are waited for, ABORT."""

import os
import signal
import socket
import threading

from beluga import Peer, Server, Tally, Wire, until
from dump_values import bulk
from replication_life import facts, is_up
from sql import ask, come

tally = Tally()
FAILED = b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"


def ends(what, server, code=0):
    """The server ends, with this exit code."""
    tally.equal(f"{what}: exit code", server.process.wait(60), code)


def is_closed(wire):
    try:
        return wire.socket.recv(1) == b""
    except OSError:
        return True


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return False
    except OSError:
        return True


def replies():
    """What does not stop a server is answered as redis-server answers it."""
    with Server() as server, Peer() as peer:
        ours, theirs = Wire(server.port), Wire(peer.port)
        for words in (["ABORT"], ["ABORT", "NOW"], ["NOSAVE", "SAVE"], ["SAVE", "x"], ["NOW", "ABORT"]):
            tally.equal(" ".join(words), ours.call("SHUTDOWN", *words), theirs.call("SHUTDOWN", *words))
        for commands in ([("MULTI",), ("SHUTDOWN",), ("EXEC",)], [("EVAL", "return redis.call('shutdown', 'nosave')", 0)]):
            for words in commands:
                tally.equal(str(words), ours.call(*words), theirs.call(*words))
        for wire in (ours, theirs):
            wire.call("ACL", "SETUSER", "app", "on", ">x", "+@all", "-@admin", "~*")
            wire.call("AUTH", "app", "x")
        tally.equal("without the right", ours.call("SHUTDOWN", "NOSAVE"), theirs.call("SHUTDOWN", "NOSAVE"))
        ours.call("AUTH", "default", "")
        # Arguments of EXEC have stopped neither of them.
        tally.equal("they go on", [Wire(port).call("PING") for port in (server.port, peer.port)], [b"+PONG\r\n"] * 2)


def stops():
    """Each form ends the process with code 0 and without a reply, closes all doors, and keeps what was acknowledged; a file is written for SAVE only."""
    with Server("--redis-appendfsync", "everysec", mysql=True, postgres=True) as server:
        path = os.path.join(server.folder, "dump.rdb")
        for nth, words in enumerate([[], ["NOSAVE"], ["NOW"], ["SAVE"], ["FORCE", "NOSAVE", "NOW"]]):
            what, wire, other, sql = f"SHUTDOWN {' '.join(words)}", Wire(server.port), Wire(server.port), come(server)
            ask(sql, "select 1")
            tally.equal(f"{what}: a write before", wire.call("INCR", "n"), b":%d\r\n" % (nth + 1))
            other.send(b"*3\r\n$5\r\nBLPOP\r\n$4\r\nnone\r\n$1\r\n0\r\n")
            wire.send(b"*%d\r\n$8\r\nSHUTDOWN\r\n" % (1 + len(words)) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words))
            tally.check(f"{what}: no reply", is_closed(wire))
            tally.check(f"{what}: other clients", is_closed(other))
            ends(what, server)
            tally.check(f"{what}: the doors", all(map(refuses, (server.port, server.mysql_port, server.postgres_port))))
            tally.equal(f"{what}: a file", os.path.exists(path), "SAVE" in words)
            if "SAVE" in words:
                os.remove(path)
            server.start()
        tally.equal("all writes", Wire(server.port).call("GET", "n"), b"$1\r\n5\r\n")


def files():
    """A file that cannot be written keeps the server going, but for FORCE; a signal writes one if it is told to."""
    with Server() as server:
        path = os.path.join(server.folder, "dump.rdb")
        os.mkdir(path)
        wire = Wire(server.port)
        tally.equal("SAVE fails", wire.call("SHUTDOWN", "SAVE"), FAILED)
        tally.equal("and again", wire.call("SHUTDOWN", "SAVE", "NOW"), FAILED)
        tally.equal("it goes on", wire.call("SET", "k", "v"), b"+OK\r\n")
        tally.equal("nothing to abort", wire.call("SHUTDOWN", "ABORT"), b"-ERR No shutdown in progress.\r\n")
        wire.call("CONFIG", "SET", "shutdown-on-sigterm", "save")
        server.process.send_signal(signal.SIGTERM)
        tally.until("the signal is given up", lambda: server.output().count("the server goes on") == 3)
        tally.equal("it still goes on", wire.call("GET", "k"), b"$1\r\nv\r\n")
        wire.send(b"*3\r\n$8\r\nSHUTDOWN\r\n$4\r\nSAVE\r\n$5\r\nFORCE\r\n")
        ends("FORCE", server)
        os.rmdir(path)
        server.start()
        wire = Wire(server.port)
        wire.call("CONFIG", "SET", "shutdown-on-sigterm", "save")
        tally.equal("SIGTERM: exit code", server.terminate(), 0)
        tally.check("SIGTERM writes a file", os.path.isfile(path))


def replicas():
    """A replica that lags is waited for; writes are held up meanwhile; ABORT lets all go on; the time is limited."""
    with Server("--redis-appendfsync", "everysec") as server, Peer() as peer:
        replica, wire, writer = Wire(peer.port), Wire(server.port), Wire(server.port)
        replica.call("REPLICAOF", "127.0.0.1", server.port)
        until("the replica is there", lambda: is_up(peer))
        wire.call("CONFIG", "SET", "shutdown-timeout", "60")

        def remaining():
            return int(facts(server.port, "server").get("shutdown_in_milliseconds", 0))

        def lag():
            os.kill(peer.process.pid, signal.SIGSTOP)
            wire.call("INCR", "n")

        def go():
            os.kill(peer.process.pid, signal.SIGCONT)

        for how in ("command", "signal"):
            lag()
            asked = [Wire(server.port) for _ in range(2)] if how == "command" else []
            [one.send(b"*1\r\n$8\r\nSHUTDOWN\r\n") for one in asked]
            if how == "signal":
                server.process.send_signal(signal.SIGTERM)
            tally.until(f"{how}: it waits", lambda: 0 < remaining() <= 60_000)
            before = bulk(wire.call("GET", "n"))
            writer.send(b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n")
            tally.equal(f"{how}: writes are held up, reads are not", bulk(wire.call("GET", "n")), before)
            tally.equal(f"{how}: ABORT", wire.call("SHUTDOWN", "ABORT"), b"+OK\r\n")
            tally.equal(f"{how}: those who asked", [one.reply() for one in asked], [FAILED] * len(asked))
            tally.equal(f"{how}: the write goes on", writer.reply(), b":%d\r\n" % (int(before) + 1))
            tally.equal(f"{how}: there is none any more", (remaining(), wire.call("SHUTDOWN", "ABORT")), (0, b"-ERR No shutdown in progress.\r\n"))
            go()
            until("the replica has all", lambda: bulk(replica.call("GET", "n")) == bulk(wire.call("GET", "n")))

        path = os.path.join(server.folder, "dump.rdb")
        os.mkdir(path)
        lag()
        wire.send(b"*2\r\n$8\r\nSHUTDOWN\r\n$4\r\nSAVE\r\n")
        tally.until("it waits before it saves", lambda: remaining() > 0)
        go()
        tally.equal("SAVE fails behind that", wire.reply(), FAILED)
        tally.equal("and writes go on", wire.call("INCR", "n")[:1], b":")
        os.rmdir(path)

        lag()
        wanted = bulk(wire.call("GET", "n"))
        Wire(server.port).send(b"*1\r\n$8\r\nSHUTDOWN\r\n")
        tally.until("it waits for the replica", lambda: remaining() > 0)
        threading.Timer(0.3, go).start()
        ends("with its replica", server)
        tally.equal("the replica has all", bulk(replica.call("GET", "n")), wanted)

        server.start()
        wire = Wire(server.port)
        until("the replica is there again", lambda: is_up(peer))
        for words, settings in ((["NOW"], "60"), ([], "1"), ([], "0")):
            wire.call("CONFIG", "SET", "shutdown-timeout", settings)
            lag()
            wire.send(b"*%d\r\n$8\r\nSHUTDOWN\r\n" % (1 + len(words)) + b"".join(b"$3\r\nNOW\r\n" for _ in words))
            ends(f"{words}, timeout {settings}", server)
            go()
            server.start()
            wire = Wire(server.port)
            until("the replica is there again", lambda: is_up(peer))


replies()
stops()
files()
replicas()
tally.close()
