// A number as row and column.
#pragma once
#include "number.cuh"

struct Split {
    u64 row, column;
};

DEVICE Split split(u64 item, u64 width) { return {item / width, item % width}; }
