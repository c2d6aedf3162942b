// Routed experts as a device holds them, and the slots of a row of data, one for each expert it goes to.
#pragma once
#include "view.cuh"

struct Experts {
    u64 total, first, local, top_k, hidden, inter;
};

// The place among the experts held here of the one in a slot; -1 for an index outside, and for one elsewhere.
DEVICE i64 held(const Experts &d, const View &expert, u64 token, u64 slot) {
    i64 index = row_of<const i32>(expert, token)[slot];
    if (index < 0 || (u64)index >= d.total) return -1;
    i64 place = index - (i64)d.first;
    return place >= 0 && (u64)place < d.local ? place : -1;
}

// A walk over the slots of a row that have an expert here, by ascending expert; equal ones by ascending slot.
struct Walk {
    i64 place = -1;
    u64 slot = 0;
};

// Goes to the next slot; false behind the last one.
DEVICE bool next(Walk &walk, const Experts &d, const View &expert, u64 token) {
    Walk best;
    for (u64 slot = 0; slot < d.top_k; slot++) {
        i64 place = held(d, expert, token, slot);
        bool later = place > walk.place || (place == walk.place && slot > walk.slot);
        if (place >= 0 && later && (best.place < 0 || place < best.place)) best = {place, slot};
    }
    walk = best;
    return best.place >= 0;
}
