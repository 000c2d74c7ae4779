"""Queues under kill -9: producers push, consumers wait with BLPOP, BLMOVE and BZPOPMIN, or with XREADGROUP in a group, the server dies in the middle and starts again.

The oracle: no element comes to two consumers; an element whose push was acknowledged is in the queue, or came to a consumer, or was on its way to one of those that waited when the server died (one for each).
With BLMOVE it is in one of the two lists, whatever dies. An entry of a stream comes to one consumer of the group, which has it among its pending ones until it acknowledges it; none is lost.
"""

import argparse
import random
import re
import threading

from beluga import Server, Tally, Wire

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=8)
parser.add_argument("--seed", type=int, default=None)
arguments = parser.parse_args()
seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
print(f"seed {seed}", flush=True)
tally = Tally()

PRODUCERS, CONSUMERS = 4, 6


class Progress:
    """Says when the producers have had so many pushes acknowledged."""

    def __init__(self, wanted):
        self.left, self.lock, self.done = wanted, threading.Lock(), threading.Event()

    def push(self):
        with self.lock:
            self.left -= 1
            if self.left == 0:
                self.done.set()


ITEM = re.compile(rb"p\d-\d+-\d+ x+")


def pushed(wire, kind, several, rng):
    """Sends elements, and returns whether they are acknowledged."""
    if kind == "XREADGROUP":
        return wire.call("XADD", "queue", "*", *[word for nth, element in enumerate(several) for word in (b"f%d" % nth, element)])[:1] == b"$"
    if kind == "BZPOPMIN":
        return wire.call("ZADD", "queue", *[word for element in several for word in (str(rng.randrange(5)), element)])[:1] == b":"
    return wire.call(rng.choice(["LPUSH", "RPUSH"]), "queue", *several)[:1] == b":"


def produce(port, name, kind, acknowledged, sent, rng, progress):
    try:
        wire = Wire(port)
        for number in range(1 << 30):
            several = [b"%s-%d-%d %s" % (name, number, nth, b"x" * rng.choice([3, 3, 200, 1500])) for nth in range(rng.choice([1, 1, 1, 5]))]
            sent.update(several)
            if pushed(wire, kind, several, rng):
                acknowledged.update(several)
                progress.push()
    except (OSError, EOFError):
        pass


def consume(port, kind, received):
    words = {"BLMOVE": ["BLMOVE", "queue", "taken", "LEFT", "RIGHT", "0"], "BLPOP": ["BLPOP", "queue", "0"], "BZPOPMIN": ["BZPOPMIN", "queue", "0"]}[kind]
    try:
        wire = Wire(port)
        while True:
            received.append(wire.call(*words).split(b"\r\n")[1 if kind == "BLMOVE" else 4])
    except (OSError, EOFError):
        pass


class Reader:
    """A consumer of a group: the elements that came to it, and the ids whose acknowledgement it has asked for and got."""

    def __init__(self, name):
        self.name, self.received, self.asked, self.done = name, {}, set(), set()

    def run(self, port, rng):
        try:
            wire = Wire(port)
            while True:
                for entry, elements in entries(wire.call("XREADGROUP", "GROUP", "g", self.name, "COUNT", "3", "BLOCK", "0", "STREAMS", "queue", ">")).items():
                    self.received[entry] = elements
                    if rng.random() < 0.5:
                        self.asked.add(entry)
                        if wire.call("XACK", "queue", "g", entry) == b":1\r\n":
                            self.done.add(entry)
        except (OSError, EOFError):
            pass


def entries(reply):
    """The ids of a reply with their elements."""
    parts = re.split(rb"\$\d+\r\n(\d{13}-\d+)\r\n", reply)
    return {parts[at]: ITEM.findall(parts[at + 1]) for at in range(1, len(parts), 2)}


def check_group(what, wire, readers, acknowledged):
    stream = entries(wire.call("XRANGE", "queue", "-", "+"))
    pending = [set(entries(wire.call("XREADGROUP", "GROUP", "g", reader.name, "STREAMS", "queue", "0"))) for reader in readers]
    left = set(entries(wire.call("XREADGROUP", "GROUP", "g", "last", "STREAMS", "queue", ">")))
    elements = [element for several in stream.values() for element in several]
    tally.check(f"{what}: {len(acknowledged)} acknowledged, {len(stream)} entries, {len(left)} not delivered", acknowledged <= set(elements) and len(set(elements)) == len(elements))
    for nth, reader in enumerate(readers):
        others = set().union(*[set(other.received) | pending[at] for at, other in enumerate(readers) if at != nth])
        tally.check(f"{what}: an entry comes to one consumer", not (set(reader.received) | pending[nth]) & (others | left))
        tally.check(f"{what}: a shown entry is pending until it is acknowledged", set(reader.received) - reader.asked <= pending[nth] and not reader.done & pending[nth])
        tally.check(f"{what}: an entry comes whole", all(stream[entry] == elements for entry, elements in reader.received.items()))
    known = left.union(*pending, *[reader.asked for reader in readers])
    tally.check(f"{what}: no entry is lost", known == set(stream), f"seed {seed}: {len(set(stream) - known)} entries are at nobody")


def items(wire, key):
    found, count = [], int(wire.call("LLEN", key)[1:-2])
    for first in range(0, count, 500):
        found += wire.call("LRANGE", key, str(first), str(first + 499)).split(b"\r\n")[2::2]
    return found


KINDS = ["BLPOP", "BLMOVE", "XREADGROUP", "BZPOPMIN"]

with Server() as server:
    rng = random.Random(seed)
    for number in range(arguments.rounds):
        kind = KINDS[number % len(KINDS)]
        moves, of_group = kind == "BLMOVE", kind == "XREADGROUP"
        control = Wire(server.port)
        control.call("FLUSHALL")
        control.call(*(["XGROUP", "CREATE", "queue", "g", "0", "MKSTREAM"] if of_group else ["PING"]))
        control.close()
        acknowledged, sent = [set() for _ in range(PRODUCERS)], [set() for _ in range(PRODUCERS)]
        received, readers = [[] for _ in range(CONSUMERS)], [Reader(f"c{nth}") for nth in range(CONSUMERS)]
        progress = Progress(rng.randrange(100, 2000))
        threads = [threading.Thread(target=produce, args=(server.port, b"p%d" % nth, kind, acknowledged[nth], sent[nth], random.Random(rng.random()), progress)) for nth in range(PRODUCERS)]
        if of_group:
            threads += [threading.Thread(target=reader.run, args=(server.port, random.Random(rng.random()))) for reader in readers]
        else:
            threads += [threading.Thread(target=consume, args=(server.port, kind, received[nth])) for nth in range(CONSUMERS)]
        for thread in threads:
            thread.start()
        tally.check(f"round {number}: the producers are served", progress.done.wait(60))
        server.kill()
        for thread in threads:
            thread.join()
        server.start()
        control = Wire(server.port)
        what = f"round {number}, {kind}"
        kept, known = set().union(*acknowledged), set().union(*sent)
        if of_group:
            check_group(what, control, readers, kept)
            control.close()
            continue
        left = ITEM.findall(control.call("ZRANGE", "queue", "0", "-1")) if kind == "BZPOPMIN" else items(control, "queue")
        taken = items(control, "taken")
        control.close()
        all_received = [item for one in received for item in one]
        tally.check(f"{what}: no element comes twice", len(set(all_received)) == len(all_received) and not (set(left) & set(all_received)))
        tally.check(f"{what}: nothing comes that was not sent", set(all_received) | set(left) | set(taken) <= known)
        missing = kept - set(all_received) - set(left) - set(taken)
        most = 0 if moves else CONSUMERS
        tally.check(f"{what}: {len(kept)} acknowledged, {len(all_received)} received, {len(left)} left", len(missing) <= most, f"seed {seed}: {len(missing)} are lost: {list(missing)[:3]}")
        tally.check(f"{what}: an element is in the list once", len(set(left)) == len(left) and len(set(taken)) == len(taken))
        if moves:
            tally.check(f"{what}: a shown element has been moved", set(all_received) <= set(taken))
tally.close()
