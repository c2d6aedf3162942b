// Barriers in shared memory, asynchronous copies and clusters.
#include "hopper.h"
#include "machine.h"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace emu {
namespace {
constexpr std::uint8_t POISON = 0xFF;
constexpr std::uint32_t MARK = 0x7E57E57E;

struct Barrier {
    unsigned arrivals = 0, awaited = 0, phase = 0;
    std::int64_t bytes = 0;
    // Whether copies and other blocks see that it is there.
    bool fenced = false;
    unsigned owner = 0;
    // Meetings of the cluster before.
    unsigned made = 0;
};

// One thread's copies of 16 bytes: how many are under way of those not committed, and of each group that was not waited for.
struct Copies {
    std::shared_ptr<unsigned> open = std::make_shared<unsigned>(0);
    std::deque<std::shared_ptr<unsigned>> groups;
};

std::map<const void *, Barrier> barriers;
std::unordered_map<unsigned, Copies> copies;
// Units of 16 bytes that `copy_16` and stores filled and whose writer has not fenced since, with the writer.
std::unordered_map<const std::uint8_t *, unsigned> unfenced;
// Of each thread, those that it filled.
std::unordered_map<unsigned, std::vector<const std::uint8_t *>> filled;

unsigned self() { return block_rank() << 16 | thread_number(); }

void advance(Barrier &barrier) {
    if (barrier.awaited != 0 || barrier.bytes != 0) return;
    barrier.phase ^= 1, barrier.awaited = barrier.arrivals;
    change();
}

Barrier &known(const void *place) {
    auto found = barriers.find(place);
    if (found == barriers.end()) fail("a barrier is used before it is initialised");
    return found->second;
}

void arrive(Barrier &barrier) {
    if (barrier.awaited == 0) fail("more threads arrive at a barrier than it is made for");
    barrier.awaited--;
    advance(barrier);
}

// Checks that a copy of so many bytes may go there.
std::uint8_t *target(void *to, std::size_t bytes, unsigned alignment) {
    std::uint8_t *start = shared_memory(block_rank()), *place = (std::uint8_t *)to;
    if (place < start || place + bytes > start + shared_bytes()) fail("a copy leaves the dynamic shared memory");
    if ((std::size_t)(place - start) % alignment != 0) fail("a copy's target is not aligned");
    return place;
}

void fill(const std::uint8_t *place) {
    unfenced[place] = self();
    filled[self()].push_back(place);
}

unsigned swizzled(unsigned offset) { return offset ^ (offset >> 3 & 0x70); }
}  // namespace

void hopper_begin_copies() {
    barriers.clear();
    copies.clear();
    unfenced.clear();
    filled.clear();
}

// Whether a unit that products read was written without a fence since.
bool is_unfenced(const std::uint8_t *place) { return !unfenced.empty() && unfenced.count(place) != 0; }

unsigned char *dynamic_shared() { return shared_memory(block_rank()); }

void *peer(void *place, unsigned rank) {
    if (rank >= cluster_blocks()) fail("no such block in the cluster");
    if (rank != block_rank() && cluster_met() == 0) fail("a peer may not have begun");
    if (has_ended(rank)) fail("a peer has ended, and its memory with it");
    std::ptrdiff_t offset = (std::uint8_t *)place - shared_memory(block_rank());
    if (offset < 0 || (std::size_t)offset >= shared_bytes()) fail("only dynamic shared memory is reached from peers");
    return shared_memory(rank) + offset;
}
}  // namespace emu

using namespace emu;

// Offsets into the dynamic part; other places have no address here.
std::uint32_t shared_address(const void *place) {
    std::ptrdiff_t offset = (const std::uint8_t *)place - shared_memory(block_rank());
    if (offset < 0 || (std::size_t)offset >= shared_bytes()) fail("not in dynamic shared memory");
    return (std::uint32_t)offset;
}

void barrier_init(unsigned long long *barrier, unsigned arrivals) {
    barriers[barrier] = Barrier{arrivals, arrivals, 0, 0, false, self(), cluster_round()};
}
void barrier_init_fence(const char *file, int line) {
    if (left_out({"barrier_init_fence", file, line})) return;
    for (auto &[place, barrier] : barriers) {
        if (barrier.owner == self()) barrier.fenced = true;
    }
}
void barrier_expect(unsigned long long *barrier, unsigned bytes) {
    Barrier &own = known(barrier);
    own.bytes += bytes;
    arrive(own);
}
void barrier_arrive(unsigned long long *barrier) { arrive(known(barrier)); }
void barrier_wait(unsigned long long *barrier, unsigned parity, const char *file, int line) {
    const Barrier &own = known(barrier);
    if (left_out({"barrier_wait", file, line})) return;
    wait_until([&own, parity] { return own.phase != parity; });
}

// The box to one block of the cluster, which knows its barrier.
static void copy_box(std::uint8_t *start, unsigned offset, const TensorMap &m, const void *barrier, std::uint64_t column,
                     std::uint64_t row) {
    for (unsigned r = 0; r < m.box_rows; r++) {
        for (unsigned c = 0; c < m.box_columns; c++) {
            unsigned at = offset + r * m.box_columns + c;
            bool inside = row + r < m.rows && column + c < m.columns;
            const std::uint8_t *from = (const std::uint8_t *)m.base + (row + r) * m.pitch + column + c;
            start[m.swizzled ? swizzled(at) : at] = inside ? *from : 0;
        }
    }
    Barrier &told = barriers[barrier];
    told.bytes -= m.box_rows * m.box_columns;
    advance(told);
}
// Checks of such a copy; its bytes hold nothing until it is there.
static void begin_box(void *to, const TensorMap &m, const Barrier &barrier, std::uint64_t column, std::uint64_t row,
                      unsigned rank) {
    if (m.mark != MARK) fail("not a tensor map");
    if (column >> 31 || row >> 31) fail("a coordinate passes 31 bits");
    unsigned bytes = m.box_rows * m.box_columns;
    target(to, bytes, m.swizzled ? 1024 : 128);
    if (!barrier.fenced) fail("a copy may not see its barrier's initialisation: barrier_init_fence");
    std::memset(peer(to, rank), POISON, bytes);
}

void copy_tile(void *to, const TensorMap *map, unsigned long long *barrier, unsigned long long column,
               unsigned long long row) {
    TensorMap m = *map;
    begin_box(to, m, known(barrier), column, row, block_rank());
    unsigned offset = shared_address(to);
    std::uint8_t *start = shared_memory(block_rank());
    later([=] { copy_box(start, offset, m, barrier, column, row); });
}

void copy_bulk(void *to, const void *from, unsigned bytes, unsigned long long *barrier) {
    if (bytes % 16 != 0 || (std::uintptr_t)from % 16 != 0) fail("a bulk copy takes multiples of 16");
    std::uint8_t *place = target(to, bytes, 16);
    if (!known(barrier).fenced) fail("a copy may not see its barrier's initialisation: barrier_init_fence");
    std::memset(place, POISON, bytes);
    later([=] {
        std::memcpy(place, from, bytes);
        Barrier &told = barriers[barrier];
        told.bytes -= bytes;
        advance(told);
    });
}

void copy_16(void *to, const void *from, bool there) {
    if (there && (std::uintptr_t)from % 16 != 0) fail("copy_16 takes addresses that are multiples of 16");
    std::uint8_t *place = target(to, 16, 16);
    std::memset(place, POISON, 16);
    std::shared_ptr<unsigned> open = copies[self()].open;
    ++*open;
    fill(place);
    later([=, thread = current()] {
        if (there) std::memcpy(place, from, 16);
        else std::memset(place, 0, 16);
        if (--*open == 0) wake(thread);
    });
}
void store_16(void *to, const unsigned (&words)[4]) {
    std::uint8_t *place = target(to, 16, 16);
    std::memcpy(place, words, 16);
    fill(place);
}
void copy_commit() {
    Copies &own = copies[self()];
    own.groups.push_back(std::move(own.open));
    own.open = std::make_shared<unsigned>(0);
}
void copy_wait_for(unsigned pending, const char *file, int line) {
    if (left_out({"copy_wait", file, line})) return;
    auto &groups = copies[self()].groups;
    for (; groups.size() > pending; groups.pop_front()) {
        wait_until([under_way = groups.front()] { return *under_way == 0; });
    }
}
void async_fence(const char *file, int line) {
    if (left_out({"async_fence", file, line})) return;
    for (const std::uint8_t *place : filled[self()]) {
        auto found = unfenced.find(place);
        if (found != unfenced.end() && found->second == self()) unfenced.erase(found);
    }
    filled[self()].clear();
}

unsigned cluster_rank() { return block_rank(); }
unsigned cluster_number() { return block_index.x / cluster_blocks(); }
void cluster_sync(const char *file, int line) {
    if (!left_out({"cluster_sync", file, line})) cluster_barrier();
}
void cluster_arrive(const char *file, int line) {
    if (!left_out({"cluster_arrive", file, line})) cluster_come();
}
void cluster_wait(const char *file, int line) {
    if (!left_out({"cluster_wait", file, line})) cluster_leave();
}
// A barrier of a block, which this thread knows of if it is its own or the cluster met since it was made.
static Barrier &peer_barrier(unsigned long long *barrier, unsigned rank) {
    Barrier &there = known(peer(barrier, rank));
    if (has_ended(rank)) fail("a peer has ended, and its barriers with it");
    if (rank != block_rank() && cluster_met() <= there.made) fail("a peer may not see its barrier's initialisation");
    return there;
}
void copy_tile_to_all(void *to, const TensorMap *map, unsigned long long *barrier, unsigned long long column,
                      unsigned long long row, unsigned blocks) {
    TensorMap m = *map;
    for (unsigned rank = 0; rank < blocks; rank++) {
        begin_box(to, m, peer_barrier(barrier, rank), column, row, rank);
        unsigned offset = shared_address(to);
        std::uint8_t *start = shared_memory(rank);
        void *told = peer(barrier, rank);
        later([=] { copy_box(start, offset, m, told, column, row); });
    }
}
void peer_arrive(unsigned long long *barrier, unsigned rank) { arrive(peer_barrier(barrier, rank)); }
void peer_store_16(void *place, const unsigned (&words)[4], unsigned long long *barrier, unsigned rank) {
    target(place, 16, 16);
    void *to = peer(place, rank), *told = peer(barrier, rank);
    if (!peer_barrier(barrier, rank).fenced) fail("a store may not see its barrier's initialisation: barrier_init_fence");
    std::memset(to, POISON, 16);
    std::array<unsigned, 4> held;
    std::copy(words, words + 4, held.begin());
    later([=] {
        std::memcpy(to, held.data(), 16);
        Barrier &there = barriers[told];
        there.bytes -= 16;
        advance(there);
    });
}
bool some_agree(unsigned barrier, unsigned threads, bool mine, const char *file, int line) {
    return left_out({"some_agree", file, line}) ? mine : some_all(barrier, threads, mine);
}
void some_sync(unsigned barrier, unsigned threads, const char *file, int line) {
    if (!left_out({"some_sync", file, line})) some_barrier(barrier, threads);
}
