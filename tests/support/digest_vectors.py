"""Prints the known answers in tests/unit/core/test_digest.cpp, from the definition in docs and Python's hashlib alone.

Byte i of every tensor is (i·i + 3·i + ⌊i / 1024⌋) mod 256, the key is the bytes 0 … 31 or empty.
"""
import hashlib
import math

LEAF = 1 << 20
# The wire codes and sizes of the element types.
DTYPES = {'f32': (1, 4), 'f64': (2, 8), 'i32': (3, 4), 'i64': (4, 8), 'i8': (5, 1), 'u8': (6, 1), 'boolean': (7, 1)}
CASES = [('u8', []), ('u8', [0]), ('u8', [0, 5]), ('u8', [3]), ('i8', [3]), ('u8', [1, 3]), ('f32', [2, 3]), ('f64', [1, 3]),
         ('i64', [7]), ('i32', [1, 1, 1, 1, 1, 1, 1, 2]), ('boolean', [1]), ('u8', [LEAF - 1]), ('u8', [LEAF]),
         ('u8', [LEAF + 1]), ('f32', [3, LEAF // 4]), ('u8', [5 * LEAF]), ('u8', [6 * LEAF + 17]), ('u8', [7 * LEAF])]


def u64(value):
    return value.to_bytes(8, 'little')


def sha(*parts):
    return hashlib.sha256(b''.join(parts)).digest()


def digest(key, dtype, shape):
    code, size = DTYPES[dtype]
    length = math.prod(shape) * size
    data = bytes((i * i + 3 * i + i // 1024) & 255 for i in range(length))
    pieces = [data[i:i + LEAF] for i in range(0, length, LEAF)] or [b'']
    level = [sha(b'\0', key, u64(i), u64(len(piece)), piece) for i, piece in enumerate(pieces)]
    while len(level) > 1:
        pairs = [sha(b'\1', level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = pairs + (level[-1:] if len(level) % 2 else [])
    return sha(b'\2', key, bytes([code, len(shape)]), *[u64(n) for n in shape], level[0]).hex()


for dtype, shape in CASES:
    lengths = ', '.join(map(str, shape))
    plain, keyed = digest(b'', dtype, shape), digest(bytes(range(32)), dtype, shape)
    print(f'    {{{{DType::{dtype}, Shape{{{lengths}}}}}, "{plain}",\n     "{keyed}"}},')
