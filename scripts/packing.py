"""The form of the tables of weights in crates/datum/src/collation: see table.rs there."""


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def packed(entries):
    out, after, last = bytearray(), 0, 0
    for code, weights in entries:
        out += varint(code - after) + bytes([len(weights)])
        after = code + 1
        for weight in weights:
            distance = weight - last
            out += varint(distance << 1 if distance >= 0 else (-distance << 1) - 1)
            last = weight
    return bytes(out)
