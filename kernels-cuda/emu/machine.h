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

// Words that the lanes of the running thread's warp show each other, until the next but one time.
const std::uint64_t *shown(std::uint64_t word);
// The lanes bring a word each; the last of them does `work` with all before any goes on.
void together(std::uint64_t word, void (*work)(const std::uint64_t *words));

// Whether all threads of a block of the running cluster have ended, and its memory with them.
bool has_ended(unsigned rank);

// Dynamic shared memory of a block of the running cluster, and its bytes. Until something is written it holds 0xFF,
// which is NaN in every format that kernels keep there.
std::uint8_t *shared_memory(unsigned rank);
std::size_t shared_bytes();

// The running thread goes on when this holds; if it never does, the launch fails. It is asked when `change` told of a change,
// or threads met.
void wait_until(std::function<bool()> ready);
void change();
// The running thread, and a change that is for one thread alone.
void *current();
void wake(void *thread);

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
