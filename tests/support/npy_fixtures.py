"""Makes .npy files with NumPy for the tests of the reader, and checks with NumPy those the writer made.

  npy_fixtures.py write FOLDER   NAME.npy beside NAME.raw (row-major little-endian elements), listed in `list`
  npy_fixtures.py check FOLDER   every NAME.npy holds what NAME.raw does, exit 1 and a line for each that does not
"""
import pathlib
import sys

import numpy as np

DTYPES = {'f32': 'f4', 'f64': 'f8', 'i32': 'i4', 'i64': 'i8', 'i8': 'i1', 'u8': 'u1', 'bool': '?'}
# Every rank from 0 to 8, empty ones, rows and columns.
SHAPES = [(), (0,), (1,), (7,), (1, 1), (3, 0), (0, 5), (5, 7), (1, 9), (9, 1), (130, 67), (2, 3, 4), (3, 1, 8, 8),
          (2, 1, 3, 2, 2), (1, 2, 2, 1, 3, 2), (2, 2, 1, 2, 1, 2, 2), (2, 1, 2, 1, 2, 1, 2, 3)]
VERSIONS = [(1, 0), (2, 0), (3, 0)]


def elements(random, code, shape):
    if code == '?':
        return random.integers(0, 2, shape).astype(bool)
    kind = np.dtype(code)
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(random.bytes(count * kind.itemsize), kind).reshape(shape)


def raw_bytes(array):
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder('<')).tobytes()


def write(folder):
    random = np.random.default_rng(1)
    lines = []
    for name, code in DTYPES.items():
        for shape in SHAPES:
            for order in 'CF':
                for endian in '<>':
                    version = VERSIONS[len(lines) % 3]
                    array = np.asarray(elements(random, code, shape).astype(np.dtype(code).newbyteorder(endian)), order=order)
                    stem = f'{len(lines):04}'
                    with open(folder / f'{stem}.npy', 'wb') as file:
                        np.lib.format.write_array(file, array, version=version)
                    (folder / f'{stem}.raw').write_bytes(raw_bytes(array))
                    lines.append(' '.join([stem, name, order + endian, *map(str, shape)]))
    (folder / 'list').write_text('\n'.join(lines) + '\n')


def check(folder):
    wrong = 0
    for path in sorted(folder.glob('*.npy')):
        array = np.load(path, allow_pickle=False)
        found = raw_bytes(array)
        kind, *shape = path.stem.split('_')
        expected_dtype = np.dtype(DTYPES[kind])
        if array.dtype != expected_dtype or list(array.shape) != [int(length) for length in shape] or \
                found != path.with_suffix('.raw').read_bytes():
            print(f'{path}: NumPy reads {array.dtype}{array.shape}, or other elements')
            wrong += 1
    return 1 if wrong else 0


if __name__ == '__main__':
    command, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    sys.exit({'write': write, 'check': check}[command](directory) or 0)
