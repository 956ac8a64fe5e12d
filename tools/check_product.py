#!/usr/bin/env python3
"""Checks C = A · B of .npy files against a product that NumPy computes on its own, in f64 (integers: in i64).

  tools/check_product.py A.npy B.npy C.npy

Integers must be equal, within the wrapping of their type. A float element may be off by what rounding explains: each of
its K additions and multiplications rounds once, so that |error| ≤ γ · Σ_k|a_ik·b_kj| with γ = K·u ÷ (1 − K·u) (Higham,
Accuracy and Stability of Numerical Algorithms, section 3.1; u is half the type's epsilon), and the sum is at most
‖row i of A‖ · ‖column j of B‖. For f64, NumPy's own product may err as much. Exit 0: as it should be; 1: not.
"""
import sys

import numpy

ROWS_AT_ONCE = 512


def accumulator_of(dtype):
    return numpy.dtype(numpy.float64 if dtype.kind == 'f' else numpy.int64)


def largest_errors(a, b, c):
    """The largest error, and the largest share of the allowed one."""
    wide = accumulator_of(c.dtype)
    right = b.astype(wide)
    depth = a.shape[1]
    if wide.kind == 'f':
        unit = depth * numpy.finfo(c.dtype).eps / 2
        growth = unit / (1 - unit) * (2 if c.dtype == wide else 1)
        right_norms = numpy.linalg.norm(right, axis=0)
    worst, worst_share = 0.0, 0.0
    for first in range(0, a.shape[0], ROWS_AT_ONCE):
        left = a[first:first + ROWS_AT_ONCE].astype(wide)
        exact = left @ right
        found = c[first:first + ROWS_AT_ONCE]
        if wide.kind != 'f':
            worst = max(worst, float(numpy.count_nonzero(exact.astype(c.dtype) != found)))
            continue
        error = numpy.abs(exact - found)
        allowed = growth * numpy.outer(numpy.linalg.norm(left, axis=1), right_norms)
        with numpy.errstate(invalid='ignore', divide='ignore'):
            share = numpy.where(error == 0, 0, error / allowed)
        worst = max(worst, float(error.max(initial=0)))
        # NaN compares with nothing: where one side has it, the share is NaN and counts as infinite.
        worst_share = max(worst_share, float(numpy.nan_to_num(share, nan=numpy.inf).max(initial=0)))
    return worst, worst_share


def main():
    if len(sys.argv) != 4:
        sys.exit('usage: check_product.py A.npy B.npy C.npy')
    a, b, c = (numpy.load(path, mmap_mode='r') for path in sys.argv[1:])
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or c.shape != (a.shape[0], b.shape[1]):
        sys.exit(f'check_product: expected shapes [M,K], [K,N] and [M,N], found {a.shape}, {b.shape} and {c.shape}')
    worst, share = largest_errors(a, b, c)
    rows, cols = c.shape
    if c.dtype.kind != 'f':
        print(f'checked against NumPy: {rows}×{cols} elements, {worst:.0f} differ')
        sys.exit(worst > 0)
    print(f'checked against NumPy in f64: {rows}×{cols} elements, largest error {worst:.3g}, '
          f'at most {100 * share:.2g} % of what rounding to {c.dtype} allows')
    if share > 1:
        sys.exit('check_product: expected errors within the accuracy of the type, found larger ones: the product is wrong')


if __name__ == '__main__':
    main()
