// What the parts of the emulator share: the block that runs, waiting, and what happens later.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace emu {
// Numbers of the running thread within its block, and of its block within its cluster.
unsigned thread_number();
unsigned block_rank();
unsigned cluster_blocks();

// Whether all threads of a block of the running cluster have ended, and its memory with them.
bool has_ended(unsigned rank);

// Dynamic shared memory of a block of the running cluster, and its bytes. Until something is written it holds 0xFF,
// which is NaN in every format that kernels keep there.
std::uint8_t *shared_memory(unsigned rank);
std::size_t shared_bytes();

// The running thread goes on when this holds; if it never does, the launch fails.
void wait_until(std::function<bool()> ready);

// Copies happen once, at a moment that the schedule picks.
void later(std::function<void()> event);

// What a warp does by and by, in order: `step` does the next thing of it.
void queue_step(unsigned queue, std::function<void()> step);

// The launch fails with this; the running thread does not go on.
void fail(const std::string &why);

// A place in a kernel where threads wait or order memory. Tests plant faults by leaving one out.
struct Site {
    const char *what, *file;
    int line;
};
// Whether this one is left out.
bool left_out(const Site &site);

// Start and end of the launch of a cluster, for the parts that keep state.
void hopper_begin();
std::string hopper_end();
}  // namespace emu
