// Runs the threads of a block as fibers: a thread runs until it waits or ends, then another one does, in an order
// that the seed draws. Waiting for what never comes is an error, not a hang. A fiber enters its stack by a context
// once; all later switches are jumps, which cost no system call.
#include "cuda.h"
#include "launch.h"

#include <setjmp.h>
#include <ucontext.h>

#include <memory>
#include <vector>

namespace emu {
Dim3 thread_index, block_index, block_extent, grid_extent;

namespace {
constexpr std::size_t STACK_BYTES = 128 << 10;
constexpr unsigned LANES = 32;

// Threads that meet.
struct Meeting {
    unsigned members = 0, arrived = 0, round = 0;
};

struct Fiber {
    std::unique_ptr<char[]> stack{new char[STACK_BYTES]};
    // Whether it has entered its stack, and where it goes on there.
    bool entered = false;
    jmp_buf place;
    Dim3 index;
    bool ended = false;
    // What it waits for, and the round in which it came.
    Meeting *at = nullptr;
    unsigned round = 0;
};

std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Meeting> warps;
std::vector<std::uint64_t> shuffled;
Meeting block;
jmp_buf scheduler;
Fiber *running = nullptr;
const Kernel *kernel = nullptr;
void **arguments = nullptr;

unsigned number() { return thread_index.x + block_extent.x * (thread_index.y + block_extent.y * thread_index.z); }

void pass(Meeting &meeting) {
    meeting.arrived = 0;
    meeting.round++;
}

// From the fiber that runs to the scheduler.
__attribute__((noinline)) void pause() {
    if (!_setjmp(running->place)) _longjmp(scheduler, 1);
}

void meet(Meeting &meeting) {
    if (++meeting.arrived == meeting.members) return pass(meeting);
    running->at = &meeting, running->round = meeting.round;
    pause();
}

void leave(Meeting &meeting) {
    meeting.members--;
    if (meeting.members > 0 && meeting.arrived == meeting.members) pass(meeting);
}

// A thread of one block after the other.
void body() {
    for (;;) {
        kernel->run(arguments);
        running->ended = true;
        leave(warps[number() / LANES]);
        leave(block);
        pause();
    }
}

void enter(Fiber &fiber) {
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.get();
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = nullptr;
    makecontext(&context, body, 0);
    fiber.entered = true;
    setcontext(&context);
}

// From the scheduler to a fiber, until that pauses.
__attribute__((noinline)) void resume(Fiber &fiber) {
    running = &fiber, thread_index = fiber.index;
    if (_setjmp(scheduler)) return;
    if (fiber.entered) _longjmp(fiber.place, 1);
    enter(fiber);
}

void start(Fiber &fiber, unsigned thread) {
    fiber.index = {thread % block_extent.x, thread / block_extent.x % block_extent.y, thread / block_extent.x / block_extent.y};
    fiber.ended = false, fiber.at = nullptr;
}

// Whether it may run.
bool ready(const Fiber &fiber) { return !fiber.ended && (!fiber.at || fiber.at->round != fiber.round); }

bool run_block(unsigned threads, std::uint64_t &random) {
    warps.assign((threads + LANES - 1) / LANES, Meeting{});
    shuffled.assign(threads, 0);
    block = Meeting{threads};
    for (unsigned i = 0; i < threads; i++) {
        warps[i / LANES].members++;
        start(*fibers[i], i);
    }
    for (unsigned left = threads; left > 0;) {
        bool moved = false;
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned first = (unsigned)(random >> 33) % threads;
        for (unsigned i = 0; i < threads; i++) {
            Fiber &fiber = *fibers[(first + i) % threads];
            if (!ready(fiber)) continue;
            moved = true, fiber.at = nullptr;
            resume(fiber);
            left -= fiber.ended;
        }
        if (!moved) return false;
    }
    return true;
}
}  // namespace

void block_barrier() { meet(block); }

void warp_barrier() { meet(warps[number() / LANES]); }

std::uint64_t shuffle_down(std::uint64_t word, unsigned step) {
    unsigned self = number(), lane = self % LANES;
    shuffled[self] = word;
    meet(warps[self / LANES]);
    std::uint64_t got = lane + step < LANES ? shuffled[self + step] : word;
    // Nobody writes anew before all have read.
    meet(warps[self / LANES]);
    return got;
}

std::uint64_t shuffle_xor(std::uint64_t word, unsigned mask) {
    unsigned self = number(), other = self ^ mask;
    shuffled[self] = word;
    meet(warps[self / LANES]);
    std::uint64_t got = other < shuffled.size() ? shuffled[other] : word;
    meet(warps[self / LANES]);
    return got;
}

unsigned ballot(bool mine) {
    unsigned self = number(), first = self / LANES * LANES, votes = 0;
    shuffled[self] = mine;
    meet(warps[self / LANES]);
    for (unsigned lane = 0; lane < LANES; lane++) {
        if (first + lane < shuffled.size() && shuffled[first + lane]) votes |= 1u << lane;
    }
    meet(warps[self / LANES]);
    return votes;
}

Outcome launch(const Kernel &which, Dim3 grid, Dim3 extent, void **values, std::uint64_t seed) {
    unsigned threads = extent.x * extent.y * extent.z;
    while (fibers.size() < threads) fibers.push_back(std::make_unique<Fiber>());
    kernel = &which, arguments = values, block_extent = extent, grid_extent = grid;
    for (unsigned z = 0; z < grid.z; z++) {
        for (unsigned y = 0; y < grid.y; y++) {
            for (unsigned x = 0; x < grid.x; x++) {
                block_index = {x, y, z};
                if (run_block(threads, seed)) continue;
                // Those that wait for ever are in the middle of the kernel.
                fibers.clear();
                return Outcome::stuck;
            }
        }
    }
    return Outcome::done;
}
}  // namespace emu
