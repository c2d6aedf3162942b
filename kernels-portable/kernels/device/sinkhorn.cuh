// Sinkhorn's steps on four streams: rows and columns in turn divided by their sums. The matrix stays as it is; what each
// row and column has been divided by is kept, a lane one of each, so that a step is a short sum and a reciprocal.
#pragma once
#include "lanes.cuh"

// What is left of a row or column whose sum was divided by `own`, x / (sum + eps), is the matrix divided by the new
// `own`: the matrix' sum, over the other side's `inverse`, + eps times the old one. Lanes 4 n to 4 n + 3 go together.
DEVICE double divided(const double (&matrix)[4], double inverse, double own, double eps) {
    double others[4];
#pragma unroll
    for (int i = 0; i < 4; i++) others[i] = __shfl_sync(ALL_LANES, inverse, (int)(threadIdx.x % 32 / 4 * 4) + i);
    double low = fma(matrix[1], others[1], fma(matrix[0], others[0], eps * own));
    return low + fma(matrix[3], others[3], matrix[2] * others[2]);
}

struct Inverses {
    double row, column;
};

// Reciprocals of what this lane's row and column come to be divided by, columns first and last.
DEVICE Inverses sinkhorn(const double (&row)[4], const double (&column)[4], u64 iterations, double eps) {
    double by_row = 1, by_column = divided(column, 1, 1, eps);
    Inverses inverse = {1, near_reciprocal(by_column)};
    for (u64 i = 1; i < iterations; i++) {
        by_row = divided(row, inverse.column, by_row, eps);
        inverse.row = near_reciprocal(by_row);
        by_column = divided(column, inverse.row, by_column, eps);
        inverse.column = near_reciprocal(by_column);
    }
    return inverse;
}
