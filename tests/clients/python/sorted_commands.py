"""Random commands of sorted sets for differential.py.

Ranges by member are asked of keys whose members have one score: over several scores Redis' answer depends on its encoding.
"""

SCORES = ["0", "1", "2", "2", "3", "-1", "1.5", "0.1", "-0", "inf", "-inf", "+inf", "1e17", "123456789012345678", "3e-5", "0x10", "5e-324", "1e300", "nan", "x", "", " 1", "1e400", "1e-400"]
BOUNDS = ["-inf", "+inf", "inf", "0", "1", "2", "(1", "(2", "(-inf", "(inf", "1.5", "-1", "(0.1", "3", "x", "", "(", "nan", " 1", "1 ", "1e400"]
ONE_SCORE = ["lex0", "lex1", "lex2"]
LETTERS = ["", "a", "b", "ba", "bb", "c", "\xff", "a\x00", "zz"]
LEX_BOUNDS = ["-", "+", "[", "(", *[start + letter for start in "[(" for letter in LETTERS], "a", "", "--", "x"]


def commands(key, field, fields, count, number, maybe, sets_of):
    """The commands with their weights. The arguments draw words: a key, a member, several members, and so on."""

    def score(r):
        return r.choice(SCORES) if r.random() < 0.35 else str(r.randrange(-5, 12))

    def scored(r):
        return [word for name in fields(r) for word in (score(r), name)]

    def rank(r):
        return str(r.randrange(-12, 14)) if r.random() < 0.9 else number(r)

    def bound(r):
        return r.choice(BOUNDS) if r.random() < 0.6 else r.choice(["", "("]) + str(r.randrange(-5, 12))

    def lex(r):
        return r.choice(ONE_SCORE)

    def lex_bound(r):
        return r.choice(LEX_BOUNDS)

    def limit(r):
        return r.choice([[], [], ["LIMIT", rank(r), rank(r)], ["LIMIT", "1"], ["LIMIT", "x", "1"], ["LIMIT", "1", "2", "LIMIT", "0", "1"]])

    def scores(r):
        return maybe(r, "WITHSCORES", "withscores", p=0.5)

    def by(r):
        return r.choice([[], [], ["BYSCORE"], ["BYSCORE", "REV"], ["REV"], ["BYSCORE", "BYLEX"], ["REV", "REV"], ["BAD"]])

    def range_of(r):
        option = by(r)
        ends = [bound(r), bound(r)] if "BYSCORE" in option else [rank(r), rank(r)]
        return [*ends, *option, *limit(r), *scores(r)]

    def options(r):
        return [word for word in ("NX", "XX", "GT", "lt", "CH", "INCR", "BAD") if r.random() < 0.08]

    def algebra(r, store=False):
        keys = sets_of(r)
        shown = str(len(keys)) if r.random() < 0.9 else r.choice(["0", "-1", "9", "x", "1"])
        words = [shown, *keys]
        if r.random() < 0.3:
            words += ["WEIGHTS", *[score(r) for _ in keys]]
        if r.random() < 0.3:
            words += ["AGGREGATE", r.choice(["SUM", "min", "MAX", "BAD"])]
        return words + ([] if store and r.random() < 0.95 else scores(r)) + maybe(r, "BAD", "WEIGHTS", p=0.03)

    def pick(r, *names):
        return r.choice(names)

    def some(r):
        keys = sets_of(r)
        return [pick(r, *[str(len(keys))] * 8, "0", "x", "9", "-1"), *keys, pick(r, "MIN", "max", "MIN", "BAD"), *r.choice([[], [], ["COUNT", count(r)], ["COUNT"], ["BAD"]])]

    def wait(r):
        return pick(r, "0.001", "0.001", "0.002", "x", "-1", "nan", "1e300", "")

    return [
        (14, lambda r: ["ZADD", key(r), *options(r), *scored(r), *maybe(r, "odd", p=0.03)]),
        (4, lambda r: ["ZADD", lex(r), *[word for _ in range(r.randrange(1, 6)) for word in ("0", r.choice(LETTERS) + r.choice(LETTERS))]]),
        (2, lambda r: ["ZADD", key(r), "INCR", *options(r), score(r), field(r)]),
        (3, lambda r: ["ZINCRBY", key(r), score(r), field(r)]),
        (3, lambda r: ["ZREM", key(r), *fields(r)]),
        (2, lambda r: [pick(r, "ZCARD", "ZPOPMIN", "ZPOPMAX"), key(r)]),
        (3, lambda r: [pick(r, "ZSCORE", "ZRANK", "ZREVRANK"), key(r), field(r)]),
        (2, lambda r: [pick(r, "BZPOPMIN", "BZPOPMAX"), *sets_of(r), wait(r)]),
        (2, lambda r: ["BZMPOP", wait(r), *some(r)]),
        (2, lambda r: ["ZMSCORE", key(r), *fields(r)]),
        (4, lambda r: ["ZRANGE", key(r), *range_of(r)]),
        (2, lambda r: ["ZREVRANGE", key(r), rank(r), rank(r), *scores(r), *maybe(r, "BAD", "REV", p=0.05)]),
        (3, lambda r: [pick(r, "ZRANGEBYSCORE", "ZREVRANGEBYSCORE"), key(r), bound(r), bound(r), *scores(r), *limit(r)]),
        (3, lambda r: [pick(r, "ZRANGEBYLEX", "ZREVRANGEBYLEX"), lex(r), lex_bound(r), lex_bound(r), *limit(r), *maybe(r, "WITHSCORES", p=0.05)]),
        (2, lambda r: ["ZRANGE", lex(r), lex_bound(r), lex_bound(r), "BYLEX", *maybe(r, "REV", p=0.5), *limit(r)]),
        (3, lambda r: ["ZRANGESTORE", key(r), key(r), *range_of(r)]),
        (1, lambda r: ["ZRANGESTORE", key(r), lex(r), lex_bound(r), lex_bound(r), "BYLEX", *maybe(r, "REV", p=0.5)]),
        (2, lambda r: ["ZCOUNT", key(r), bound(r), bound(r)]),
        (2, lambda r: ["ZLEXCOUNT", lex(r), lex_bound(r), lex_bound(r)]),
        (1, lambda r: ["ZREMRANGEBYRANK", key(r), rank(r), rank(r)]),
        (1, lambda r: ["ZREMRANGEBYSCORE", key(r), bound(r), bound(r)]),
        (1, lambda r: ["ZREMRANGEBYLEX", lex(r), lex_bound(r), lex_bound(r)]),
        (1, lambda r: [pick(r, "ZPOPMIN", "ZPOPMAX"), key(r), *r.choice([["0"], ["1"], ["3"], ["200"], ["-1"], ["x"], ["1", "2"]])]),
        (2, lambda r: ["ZMPOP", pick(r, "1", "2", "3", "0", "x"), *sets_of(r), pick(r, "MIN", "max", "BAD"), *r.choice([[], [], ["COUNT", count(r)], ["COUNT"], ["COUNT", "1", "COUNT", "2"]])]),
        (4, lambda r: [pick(r, "ZUNION", "ZINTER", "ZDIFF"), *algebra(r)]),
        (4, lambda r: [pick(r, "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"), key(r), *algebra(r, store=True)]),
        (2, lambda r: ["ZINTERCARD", pick(r, "1", "2", "3", "0", "9", "x"), *sets_of(r), *r.choice([[], [], ["LIMIT", pick(r, "0", "1", "2", "-1", "x")], ["LIMIT"], ["BAD"]])]),
        (1, lambda r: ["ZRANDMEMBER", key(r), *r.choice([[], [count(r)], [r.choice(["2", "-2", "50"]), "WITHSCORES"], ["2", "BAD"], ["1", "WITHSCORES", "x"]])]),
        (1, lambda r: ["ZSCANALL", key(r)]),
        (2, lambda r: ["OBJECT", "ENCODING", key(r)]),
        (1, lambda r: [r.choice(["ZADD", "ZINCRBY", "ZRANGE", "ZUNION", "ZMPOP", "ZSCAN", "ZREM", "ZRANGESTORE", "ZRANGEBYSCORE"]), *maybe(r, "k1", p=0.5)]),
        (1, lambda r: ["ZSCAN", key(r), "0", *r.choice([["COUNT", "0"], ["COUNT", "x"], ["TYPE", "zset"], ["COUNT"], ["BAD", "1"]])]),
        (1, lambda r: ["CONFIG", "SET", *r.choice([["zset-max-listpack-entries", "3"], ["zset-max-listpack-value", "10"], ["zset-max-listpack-entries", "128"], ["zset-max-listpack-value", "64"]])]),
    ]
