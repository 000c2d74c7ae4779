"""Queues under kill -9: producers push, consumers wait with BLPOP and BLMOVE, the server dies in the middle and starts again.

The oracle: no element comes to two consumers; an element whose push was acknowledged is in the queue, or came to a consumer, or was on its way to one of those that waited when the server died (one for each).
With BLMOVE it is in one of the two lists, whatever dies.
"""

import argparse
import random
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


def produce(port, name, acknowledged, sent, rng, progress):
    try:
        wire = Wire(port)
        for number in range(1 << 30):
            several = [b"%s-%d-%d %s" % (name, number, nth, b"x" * rng.choice([3, 3, 200, 1500])) for nth in range(rng.choice([1, 1, 1, 5]))]
            sent.update(several)
            if wire.call(rng.choice(["LPUSH", "RPUSH"]), "queue", *several)[:1] == b":":
                acknowledged.update(several)
                progress.push()
    except (OSError, EOFError):
        pass


def consume(port, received, moves):
    try:
        wire = Wire(port)
        while True:
            reply = wire.call("BLMOVE", "queue", "taken", "LEFT", "RIGHT", "0") if moves else wire.call("BLPOP", "queue", "0")
            received.append(reply.split(b"\r\n")[1 if moves else 4])
    except (OSError, EOFError):
        pass


def items(wire, key):
    found, count = [], int(wire.call("LLEN", key)[1:-2])
    for first in range(0, count, 500):
        found += wire.call("LRANGE", key, str(first), str(first + 499)).split(b"\r\n")[2::2]
    return found


with Server() as server:
    rng = random.Random(seed)
    for number in range(arguments.rounds):
        moves = number % 2 == 1
        control = Wire(server.port)
        control.call("FLUSHALL")
        control.close()
        acknowledged, sent = [set() for _ in range(PRODUCERS)], [set() for _ in range(PRODUCERS)]
        received = [[] for _ in range(CONSUMERS)]
        progress = Progress(rng.randrange(100, 2000))
        threads = [threading.Thread(target=produce, args=(server.port, b"p%d" % nth, acknowledged[nth], sent[nth], random.Random(rng.random()), progress)) for nth in range(PRODUCERS)]
        threads += [threading.Thread(target=consume, args=(server.port, received[nth], moves)) for nth in range(CONSUMERS)]
        for thread in threads:
            thread.start()
        tally.check(f"round {number}: the producers are served", progress.done.wait(60))
        server.kill()
        for thread in threads:
            thread.join()
        server.start()
        control = Wire(server.port)
        left, taken = items(control, "queue"), items(control, "taken")
        control.close()
        all_received = [item for one in received for item in one]
        kept, known = set().union(*acknowledged), set().union(*sent)
        what = f"round {number}, {'BLMOVE' if moves else 'BLPOP'}"
        tally.check(f"{what}: no element comes twice", len(set(all_received)) == len(all_received) and not (set(left) & set(all_received)))
        tally.check(f"{what}: nothing comes that was not sent", set(all_received) | set(left) | set(taken) <= known)
        missing = kept - set(all_received) - set(left) - set(taken)
        most = 0 if moves else CONSUMERS
        tally.check(f"{what}: {len(kept)} acknowledged, {len(all_received)} received, {len(left)} left", len(missing) <= most, f"seed {seed}: {len(missing)} are lost: {list(missing)[:3]}")
        tally.check(f"{what}: an element is in the list once", len(set(left)) == len(left) and len(set(taken)) == len(taken))
        if moves:
            tally.check(f"{what}: a shown element has been moved", set(all_received) <= set(taken))
tally.close()
