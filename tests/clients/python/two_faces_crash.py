"""kill -9 while money moves between a table and Redis keys, restart, and an oracle that knows what was acknowledged.

SQL writers move money between rows and keys and note in one transaction, in a row and in a key, how often they have: after every kill both say the same, at least what was acknowledged, at most one
more. Redis clients move money among the keys by MULTI. The sum never changes. `beluga check` finds nothing in the folder of a dead server.
"""

import random
import subprocess
import threading

import redis

from beluga import Server, Tally, rounds_and_seed
from sql import CrashWriter, ask, come, until_committed

rounds, seed = rounds_and_seed(8)
tally = Tally()
WRITERS, ACCOUNTS, EACH = 3, 8, 1000


class Writer(CrashWriter):
    def steps(self, line):
        a, b, sign = self.random.randrange(ACCOUNTS), self.random.randrange(ACCOUNTS), self.random.choice([1, -1])
        # Now and then too long for a record, or for its pages.
        padding = "x" * self.random.choice([0, 0, 0, 0, 3_000, 20_000, 300_000])
        steps = [
            f"update accounts set balance = balance - {sign} where id = {a}",
            f"update redis.strings set value = value + {sign} where db = 0 and `key` = 'account{b}'",
            f"update `lines` set number = {line} where writer = {self.number}",
            f"replace into redis.strings (db, `key`, value) values (0, 'line{self.number}', '{line} {padding}')",
        ]
        if self.random.random() < 0.2:
            steps.insert(2, f"delete from redis.strings where db = 0 and `key` = 'line{self.number}'")
        return steps


class Units(threading.Thread):
    def __init__(self, server, seed):
        super().__init__(daemon=True)
        self.server, self.random, self.wrong = server, random.Random(seed), None

    def run(self):
        keys = redis.Redis(port=self.server.port)
        try:
            while True:
                a, b = (f"account{at}" for at in self.random.sample(range(ACCOUNTS), 2))
                with keys.pipeline(transaction=True) as pipe:
                    pipe.decr(a).incr(b).execute()
                keys.set(f"noise{self.random.randrange(20)}", "n" * self.random.choice([1, 2_000, 40_000]), ex=self.random.choice([None, 1]))
        except (redis.exceptions.ConnectionError, OSError):
            pass
        except redis.exceptions.RedisError as error:
            self.wrong = repr(error)


def verify(server, acknowledged, name):
    root, keys = come(server, database="crash"), redis.Redis(port=server.port)
    rows = ask(root, "select sum(balance) from accounts")[0][0]
    of_keys = sum(int(keys.get(f"account{at}")) for at in range(ACCOUNTS))
    tally.equal(f"{name}: money", int(rows) + of_keys, 2 * ACCOUNTS * EACH)
    for writer, known in enumerate(acknowledged):
        row = ask(root, f"select number from `lines` where writer = {writer}")[0][0]
        key = int((keys.get(f"line{writer}") or b"0").split(b" ")[0])
        tally.check(f"{name}: writer {writer}", row == key and row in (known, known + 1), f"row {row}, key {key}, {known} acknowledged")
        acknowledged[writer] = row
    # Keys expire meanwhile, and none is added.
    size = keys.dbsize()
    found = sum(1 for _ in keys.scan_iter(count=500))
    tally.check(f"{name}: DBSIZE", size >= found >= ACCOUNTS, (size, found))


def main():
    generator = random.Random(seed)
    acknowledged = [0] * WRITERS
    with Server(mysql=True) as server:
        root = come(server)
        ask(root, "create database crash")
        ask(root, "create table crash.accounts (id int primary key, balance int not null)")
        ask(root, "create table crash.`lines` (writer int primary key, number int not null)")
        for at in range(ACCOUNTS):
            ask(root, f"insert into crash.accounts values ({at}, {EACH})")
            ask(root, f"insert into redis.strings (`key`, value) values ('account{at}', {EACH})")
        for writer in range(WRITERS):
            ask(root, f"insert into crash.`lines` values ({writer}, 0)")
        for round_number in range(rounds):
            name = f"round {round_number}"
            writers = [Writer(server, at, random.Random(generator.random()), acknowledged, database="crash") for at in range(WRITERS)]
            threads = writers + [Units(server, generator.random()) for _ in range(2)]
            for thread in threads:
                thread.start()
            until_committed(writers, generator.randrange(10, 200))
            server.kill()
            for thread in threads:
                thread.join(60)
                tally.check(f"{name}: {type(thread).__name__}", thread.wrong is None, thread.wrong)
            checked = subprocess.run([server.binary, "check", server.folder], capture_output=True, text=True, timeout=120)
            tally.check(f"{name}: beluga check", checked.returncode == 0, checked.stdout[-500:] + checked.stderr[-500:])
            server.start()
            verify(server, acknowledged, name)
        print(f"{rounds} crashes, {sum(acknowledged)} transactions of rows and keys", flush=True)
    tally.close()


if __name__ == "__main__":
    main()
