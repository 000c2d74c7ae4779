"""The forms of the tables in crates/datum/src/collation: see table.rs, bytes.rs and multibyte.rs there."""


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def zigzag(distance):
    return varint(distance << 1 if distance >= 0 else (-distance << 1) - 1)


def packed(entries):
    out, after, last = bytearray(), 0, 0
    for code, weights in entries:
        out += varint(code - after) + bytes([len(weights)])
        after = code + 1
        for weight in weights:
            out += zigzag(weight - last)
            last = weight
    return bytes(out)


def runs(pairs, predicted):
    """Ascending keys with their values, behind the number of runs: of each run of keys without a gap the keys left out before it, its length, and the values, each as its
    distance from the predicted one, or else from the one after the value before."""
    groups = []
    for key, value in pairs:
        if not groups or key != groups[-1][-1][0] + 1:
            groups.append([])
        groups[-1].append((key, value))
    out, after, last = bytearray(varint(len(groups))), 0, 0
    for group in groups:
        out += varint(group[0][0] - after) + varint(len(group))
        after = group[-1][0] + 1
        for key, value in group:
            # Of 32 bits, which wrap around.
            out += zigzag((value - predicted.get(key, last + 1) + 2**31) % 2**32 - 2**31)
            last = value
    return bytes(out)


def container(tables):
    """Tables, each behind its name (a length and ASCII) and the length of its bytes (four bytes, little-endian)."""
    return b"".join(bytes([len(name)]) + name.encode() + len(content).to_bytes(4, "little") + content for name, content in tables)
