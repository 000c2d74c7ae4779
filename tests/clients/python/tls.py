"""TLS on the Redis door: redis-py and redis-cli through it, a handshake in pieces, certificates that do not fit, and neighbours that are not disturbed."""

import os
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import redis

from beluga import Server, Tally, Wire, free_port

tally = Tally()
binary = os.environ["SERVER_UNDER_TEST"]


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


def make_certificates(home):
    """An authority, a server's and a client's certificate of it, and a stranger's authority."""
    for name in ("ca", "stranger"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{home}/{name}.key", "-out", f"{home}/{name}.pem",
                "-addext", "basicConstraints=critical,CA:TRUE")
    for name, signer in (("server", "ca"), ("client", "ca"), ("intruder", "stranger")):
        extensions = f"{home}/{name}.ext"
        with open(extensions, "w") as file:
            file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{home}/{name}.key", "-out", f"{home}/{name}.csr")
        openssl("x509", "-req", "-in", f"{home}/{name}.csr", "-CA", f"{home}/{signer}.pem", "-CAkey", f"{home}/{signer}.key", "-CAcreateserial", "-days", "2",
                "-extfile", extensions, "-out", f"{home}/{name}.pem")


def context(home, certificate=None):
    made = ssl.create_default_context(cafile=f"{home}/ca.pem")
    if certificate:
        made.load_cert_chain(f"{home}/{certificate}.pem", f"{home}/{certificate}.key")
    return made


def refused_start(name, arguments, words):
    done = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    lines = done.stderr.strip().split("\n")
    tally.check(name, done.returncode not in (0, 101) and len(lines) == 1 and all(word in done.stderr for word in words), f"exit {done.returncode}: {done.stderr!r}")


def in_pieces(home, port):
    """The handshake and a request, one byte at a time."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context(home).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", port), 20) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def turn(step):
            while True:
                try:
                    result = step()
                except ssl.SSLWantReadError:
                    result = None
                for byte in outgoing.read():
                    wire.sendall(bytes([byte]))
                if result is not None:
                    return result
                incoming.write(wire.recv(1000))

        turn(lambda: tls.do_handshake() or True)
        turn(lambda: tls.write(b"*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n"))
        return turn(lambda: tls.read(100))


def slow_reader(home, port, value):
    """Asks for much more than the sockets hold before it reads anything."""
    with socket.create_connection(("127.0.0.1", port), 20) as plain, context(home).wrap_socket(plain, server_hostname="localhost") as tls:
        tls.settimeout(30)
        count = 200
        sender = threading.Thread(target=lambda: tls.sendall(b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n" * count))
        sender.start()
        time.sleep(0.5)
        expected = (b"$%d\r\n" % len(value) + value + b"\r\n") * count
        got = bytearray()
        while len(got) < len(expected):
            piece = tls.recv(1 << 16)
            if not piece:
                break
            got += piece
        sender.join()
        return bytes(got) == expected


with tempfile.TemporaryDirectory() as home:
    make_certificates(home)
    files = ["--redis-tls-cert-file", f"{home}/server.pem", "--redis-tls-key-file", f"{home}/server.key"]
    port = free_port()
    with Server("--redis-tls-port", str(port), *files) as server:
        for protocol in (2, 3):
            client = redis.Redis(port=port, ssl=True, ssl_ca_certs=f"{home}/ca.pem", protocol=protocol)
            big = os.urandom(3 << 20)
            tally.check(f"RESP{protocol}: small and big values", client.set("small", "v") and client.set("big", big) and client.get("big") == big and client.get("small") == b"v")
            with client.pipeline(transaction=True) as pipe:
                for number in range(2000):
                    pipe.set(f"key:{number}", number)
                tally.check(f"RESP{protocol}: a transaction of 2,000", len(pipe.execute()) == 2000)
            client.close()
        tally.check("the plain port sees the same data", Wire(server.port).call("GET", "key:1999") == b"$4\r\n1999\r\n")
        value = os.urandom(100_000)
        redis.Redis(port=server.port).set("big", value)
        tally.check("a slow reader gets everything in order", slow_reader(home, port, value))
        tally.check("a handshake in pieces", in_pieces(home, port) == b"$5\r\nhello\r\n")
        done = subprocess.run(["redis-cli", "--tls", "--cacert", f"{home}/ca.pem", "-p", str(port), "get", "small"], capture_output=True, text=True, timeout=20)
        tally.check("redis-cli", done.stdout.strip() == "v", done.stdout + done.stderr)
        with socket.create_connection(("127.0.0.1", port), 20) as plain:
            plain.sendall(b"*1\r\n$4\r\nPING\r\n")
            answer = plain.recv(100)
            tally.check("plain text on the TLS port gets TLS' alert and the end", answer[:1] == b"\x15" and plain.recv(100) == b"", repr(answer))
        try:
            redis.Redis(port=port, ssl=True, ssl_ca_certs=f"{home}/stranger.pem").ping()
            tally.check("a client that does not trust us leaves", False)
        except redis.ConnectionError:
            tally.check("a client that does not trust us leaves", redis.Redis(port=port, ssl=True, ssl_ca_certs=f"{home}/ca.pem").ping())

    asks = [*files, "--redis-tls-ca-cert-file", f"{home}/ca.pem", "--redis-tls-auth-clients"]
    with Server("--redis-tls-port", str(port), *asks, "yes"):
        def ping(certificate):
            with socket.create_connection(("127.0.0.1", port), 20) as plain, context(home, certificate).wrap_socket(plain, server_hostname="localhost") as tls:
                tls.sendall(b"PING\r\n")
                return tls.recv(100)

        tally.check("a client with a certificate", ping("client") == b"+PONG\r\n")
        for certificate in (None, "intruder"):
            try:
                answer = ping(certificate)
            except (ssl.SSLError, ConnectionError) as error:
                answer = error
            tally.check(f"a client with {certificate or 'none'} is refused", isinstance(answer, Exception) or answer == b"", repr(answer))
    data = f"{home}/data"
    start = ["--data", data, "--memory", "128mb", "--redis-port", str(free_port()), "--redis-tls-port", str(port)]
    refused_start("no certificate", start, ["redis_tls_cert_file", "redis_tls_port"])
    refused_start("a file that is not there", [*start, "--redis-tls-cert-file", f"{home}/none.pem", "--redis-tls-key-file", f"{home}/server.key"], ["redis_tls_cert_file", "none.pem"])
    refused_start("a file without a certificate", [*start, "--redis-tls-cert-file", f"{home}/server.ext", "--redis-tls-key-file", f"{home}/server.key"], ["redis_tls_cert_file", "no certificate"])
    refused_start("another's key", [*start, "--redis-tls-cert-file", f"{home}/server.pem", "--redis-tls-key-file", f"{home}/client.key"], ["redis_tls_key_file"])
    refused_start("clients to be asked, and nobody to trust", [*start, *files, "--redis-tls-auth-clients", "yes"], ["redis_tls_ca_cert_file"])

tally.close()
