// Stages and parts of the columns of a linear. They follow from its shape alone, so that all kernels of a kind add in the
// same order, whatever their tiles.
#pragma once
#include "number.cuh"

// Columns of a stage, and blocks of 32 in them; stages that the units add before f32.
constexpr u32 STAGE_COLUMNS = 128, STAGE_BLOCKS = 4, SECTION = 2;
// Parts at most.
constexpr u32 MOST_PARTS = 8;

// The stages of part `i` of `parts`, in which a sum over `stages` is made: each part stage after stage, then the parts in
// order.
struct Stages {
    u32 first, last;
};
DEVICE Stages part_of(u32 stages, u32 parts, u32 i) { return {stages * i / parts, stages * (i + 1) / parts}; }

// The part of a stage.
DEVICE u32 part_with(u32 stage, u32 stages, u32 parts) { return ((stage + 1) * parts - 1) / stages; }
