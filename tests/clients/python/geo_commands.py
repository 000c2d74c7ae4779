"""Random commands of places and HyperLogLogs for differential.py. Places are few, so that searches meet each other's members."""

UNITS = ["m", "km", "KM", "ft", "mi", "parsec"]
PLACES = ["g0", "g1", "g2"]
LOGS = ["h0", "h1", "h2", "h3"]


def commands(key, maybe):
    """The commands with their weights. `key` draws a key of any type."""

    def source(r):
        return r.choice(PLACES) if r.random() < 0.85 else key(r)

    def log(r):
        return r.choice(LOGS) if r.random() < 0.9 else key(r)

    def longitude(r):
        return r.choice(["180", "-180", "0", "181", "x", "inf", "1e2", "-0.0001"]) if r.random() < 0.1 else f"{r.uniform(-180, 180):.{r.randrange(1, 9)}f}"

    def latitude(r):
        return r.choice(["85.05112878", "-85.05112878", "0", "86", "x", "-90"]) if r.random() < 0.1 else f"{r.uniform(-85, 85):.{r.randrange(1, 9)}f}"

    def near(r):
        """Places in one region, some with the same longitude."""
        return [r.choice(["13.361389", f"{r.uniform(12, 16):.6f}"]), f"{r.uniform(36, 39):.6f}"]

    def place(r):
        return near(r) if r.random() < 0.7 else [longitude(r), latitude(r)]

    def member(r):
        return f"p{r.randrange(40)}"

    def size(r):
        return r.choice(["0", "1", "1e3", "100", "200.5", "5000", "20000", "-1", "x"]) if r.random() < 0.7 else f"{r.uniform(0, 300):.2f}"

    def unit(r):
        return r.choice(["km", "km", "m", *UNITS])

    def count(r):
        return r.choice([[], [], ["COUNT", r.choice(["1", "2", "5", "100", "0", "-1", "x"])], ["COUNT", "3", "ANY"], ["ANY"], ["COUNT"]])

    def order(r):
        # Without an order, or with ANY, replies are in the order of the cells.
        return r.choice([[], ["ASC"], ["DESC"], ["ASC", "DESC"]])

    def shown(r):
        return [word for word in ("WITHCOORD", "WITHDIST", "withhash") if r.random() < 0.25] + maybe(r, "BAD", p=0.03)

    def center(r):
        return r.choice([["FROMLONLAT", *place(r)], ["FROMLONLAT", *place(r)], ["FROMMEMBER", member(r)], [], ["FROMMEMBER"]])

    def extent(r):
        return r.choice([["BYRADIUS", size(r), unit(r)], ["BYBOX", size(r), size(r), unit(r)], ["BYBOX", size(r), size(r), unit(r)], [], ["BYRADIUS", "1"]])

    def stored(r):
        return r.choice([[], [], ["STORE", source(r)], ["STOREDIST", source(r)], ["STORE"]])

    def elements(r):
        most = 400 if r.random() < 0.15 else 5
        return [f"e{r.randrange(3000)}" for _ in range(r.randrange(most))]

    return [
        (12, lambda r: ["GEOADD", source(r), *maybe(r, "NX", "XX", "CH", "BAD", p=0.15), *[word for _ in range(r.randrange(1, 6)) for word in (*place(r), member(r))], *maybe(r, "odd", p=0.02)]),
        (2, lambda r: ["GEODIST", source(r), member(r), member(r), *maybe(r, *UNITS, p=0.5), *maybe(r, "m", p=0.03)]),
        (2, lambda r: [r.choice(["GEOHASH", "GEOPOS"]), source(r), *[member(r) for _ in range(r.randrange(4))]]),
        (8, lambda r: ["GEOSEARCH", source(r), *center(r), *extent(r), *order(r), *count(r), *shown(r)]),
        (4, lambda r: ["GEOSEARCHSTORE", source(r), source(r), *center(r), *extent(r), *order(r), *count(r), *maybe(r, "STOREDIST", p=0.4), *maybe(r, "WITHDIST", "BAD", p=0.04)]),
        (3, lambda r: [r.choice(["GEORADIUS", "GEORADIUS_RO"]), source(r), *place(r), size(r), unit(r), *order(r), *count(r), *shown(r), *stored(r)]),
        (3, lambda r: [r.choice(["GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO"]), source(r), member(r), size(r), unit(r), *order(r), *count(r), *shown(r), *stored(r)]),
        (2, lambda r: ["ZRANGE", r.choice(PLACES), "0", "-1", "WITHSCORES"]),
        (10, lambda r: ["PFADD", log(r), *elements(r)]),
        (4, lambda r: ["PFCOUNT", *[log(r) for _ in range(r.randrange(1, 4))]]),
        (3, lambda r: ["PFMERGE", *[log(r) for _ in range(r.randrange(1, 4))]]),
        (4, lambda r: ["GET", r.choice(LOGS)]),
        (1, lambda r: ["PFDEBUG", r.choice(["ENCODING", "encoding", "DECODE", "TODENSE", "BAD"]), log(r)]),
        (1, lambda r: ["SETRANGE", r.choice(LOGS), r.choice(["0", "3", "4", "8", "16", "17", "18", "20"]), r.choice(["H", "\x00", "\x01", "\x7f", "\xff\xff", "x"])] if r.random() < 0.3 else ["DEL", r.choice(LOGS)]),
        (1, lambda r: [r.choice(["GEOADD", "GEOSEARCH", "GEORADIUS", "PFADD", "PFMERGE", "GEODIST", "PFCOUNT"]), *maybe(r, "k1", p=0.5)]),
    ]
