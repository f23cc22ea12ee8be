"""Random code on random registers: whatever it is, the machine ends with a status. Best run with sanitizers.
Usage: random_test.py [emu_step] [count] [seed]"""
import random
import sys

import numpy as np

from emulator import EXEC, MEMORY, Emulator

# what the first word of each encoding begins with: (value, bits of it that are fixed)
ENCODINGS = [(0x00000000, 1), (0x7e000000, 7), (0x7c000000, 7), (0x80000000, 2), (0xbe800000, 9), (0xbf000000, 9),
             (0xbf800000, 9), (0xb0000000, 4), (0xd4000000, 6), (0xcc000000, 8), (0xc8000000, 6), (0xd8000000, 6),
             (0xdc000000, 6), (0xe0000000, 6), (0xe8000000, 6), (0xf4000000, 6), (0xce000000, 8)]


def word(rng):
    value, bits = rng.choice(ENCODINGS)
    return value | rng.getrandbits(32 - bits)


def main():
    emulator = Emulator(sys.argv[1] if len(sys.argv) > 1 else None)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    ended = {}
    for _ in range(count):
        lanes = rng.choice((32, 64))
        v = np.array([[rng.getrandbits(32) for _ in range(lanes)] for _ in range(256)], np.uint32) if rng.random() < 0.02 else \
            np.random.default_rng(rng.getrandbits(32)).integers(0, 1 << 32, (256, lanes), dtype=np.uint32)
        # some registers hold addresses that exist
        for r in range(0, 32, 2):
            v[r], v[r + 1] = rng.randrange(0, 4000, 4), MEMORY >> 32
        s = [rng.choice((rng.getrandbits(32), rng.randrange(256))) for _ in range(128)]
        for r in range(0, 40, 2):
            s[r], s[r + 1] = (MEMORY & 0xffffffff) + rng.randrange(0, 2000, 4), MEMORY >> 32
        s[EXEC], s[EXEC + 1] = rng.getrandbits(32), rng.getrandbits(32)
        code = b"".join((word(rng) if rng.random() < 0.7 else rng.getrandbits(32)).to_bytes(4, "little")
                        for _ in range(rng.choice((1, 2, 2, 3, 4, 12))))
        r = emulator.step(rng.choice(("gfx1100", "gfx1030", "gfx1201")), code, s, v, lds=bytes(1024), memory=bytes(4096),
                          mode=rng.getrandbits(10))
        ended[r.status] = ended.get(r.status, 0) + 1
        if r.status and not (r.text.endswith(".") and "Kernel step" in r.text):
            print("not a sentence:", r.text)
            return 1
    status = emulator.close()
    print(f"{count} programs, ended with (status: how many) {ended}")
    return status


if __name__ == "__main__":
    sys.exit(main())
