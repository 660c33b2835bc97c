"""Writes rng.h: known answers of base/hash.h, by Python's unbounded integers.

python3 tests/golden/rng.py > tests/golden/rng.h
"""

MASK = (1 << 64) - 1


def mix64(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def random_bits(key, counter):
    inner = mix64((key + 0x9E3779B97F4A7C15 * (counter + 1)) & MASK)
    return mix64(inner ^ key)


def random_key(key, label):
    return mix64(key ^ mix64((label + 0xD1B54A32D192ED03) & MASK))


def main():
    pairs = [
        (0, 0), (0, 1), (1, 0), (1, 1), (7, 1000), (42, 123456789),
        (0xDEADBEEF, 1 << 40), (MASK, MASK), (MASK, 0), (0, MASK), (1 << 63, 1 << 63),
    ]
    print("/* Made by tests/golden/rng.py: key, counter or label, lin_random_bits, lin_random_key, the numerator of")
    print(" * lin_random_uniform over 2^53, lin_random_below 1000. */")
    print("#include <stdint.h>\n")
    print("static const struct { uint64_t key, counter, bits, derived, uniform; uint32_t below; } rng_golden[] = {")
    for key, counter in pairs:
        bits = random_bits(key, counter)
        values = [key, counter, bits, random_key(key, counter), bits >> 11]
        below = ((bits >> 32) * 1000) >> 32
        print("    {" + ", ".join("0x%016XU" % v for v in values) + ", %dU}," % below)
    print("};")
    chain = 0
    for counter in range(100000):
        chain = mix64(chain ^ random_bits(12345, counter))
    print("/* mix64 chained over lin_random_bits(12345, 0..99999). */")
    print("static const uint64_t rng_golden_chain = 0x%016XU;" % chain)


main()
