// What the ranks of a group send each other. Every rank has a window of memory that all of them write to: a header,
// then room for what each rank sends, twice, so that one exchange may begin while a slower rank still reads the last.
#pragma once
#include "grid.cuh"
#include "view.cuh"

constexpr u32 MOST_RANKS = 16;
constexpr u64 HEADER_BYTES = 4096;

// Both sides of an exchange count it, so that a graph can be replayed: nothing of it is in the arguments.
struct Header {
    // By parity of the exchange and by sender: what it is of, above its number.
    u64 arrived[2][MOST_RANKS];
    // One more than the rank that did not take part; then nothing waits any more.
    u64 broken;
    // Exchanges begun here, and blocks that have sent their part of the next.
    u32 epoch, done;
};

// A rank's view of its group: 64-bit words throughout, as the host passes them.
struct Peers {
    // First byte of each rank's window.
    u64 windows[MOST_RANKS];
    u64 rank, ranks;
    // Elements that one rank sends at once.
    u64 capacity;
    // What all ranks must agree on: a digest of the operator and its shape.
    u64 subject;
    // How long to wait for a rank, and the word of the host that is told of one that does not come.
    u64 patience_ns, status;
};

DEVICE Header *header_of(const Peers &peers, u64 rank) { return (Header *)peers.windows[rank]; }

// What `from` sends to `to` in an exchange.
DEVICE float *slot_of(const Peers &peers, u64 to, u64 from, u32 epoch) {
    u64 slot = epoch % 2 * peers.ranks + from;
    return (float *)(peers.windows[to] + HEADER_BYTES) + slot * peers.capacity;
}
