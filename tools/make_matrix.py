#!/usr/bin/env python3
"""Writes a .npy file of seeded random numbers: normal ones for floats, the type's whole range (i32: ±1000) for integers.

  tools/make_matrix.py [--seed N] [--dtype f32|f64|i32|i8|u8] LENGTH … FILE.npy
"""
import argparse

import numpy

MAKERS = {
    'f32': lambda random, shape: random.standard_normal(shape, dtype=numpy.float32),
    'f64': lambda random, shape: random.standard_normal(shape),
    'i32': lambda random, shape: random.integers(-1000, 1001, shape, dtype=numpy.int32),
    'i8': lambda random, shape: random.integers(-128, 128, shape, dtype=numpy.int8),
    'u8': lambda random, shape: random.integers(0, 256, shape, dtype=numpy.uint8),
}


def main():
    parser = argparse.ArgumentParser(description='Writes a .npy file of seeded random numbers.')
    parser.add_argument('--seed', type=int, default=1, help='equal seeds give equal files with equal versions of NumPy')
    parser.add_argument('--dtype', choices=MAKERS, default='f32')
    parser.add_argument('lengths', type=int, nargs='+', metavar='LENGTH', help='of each axis')
    parser.add_argument('file', metavar='FILE.npy')
    options = parser.parse_args()
    with open(options.file, 'xb') as file:  # never over an existing file
        numpy.save(file, MAKERS[options.dtype](numpy.random.default_rng(options.seed), options.lengths))


if __name__ == '__main__':
    main()
