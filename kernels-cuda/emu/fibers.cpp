// Runs the threads of a cluster as fibers: a thread runs until it waits or ends, then another one does, in an order
// that the seed draws. Waiting for what never comes is an error, not a hang. A fiber enters its stack by a context
// once; all later switches are jumps, which cost no system call.
#include "cuda.h"
#include "launch.h"
#include "machine.h"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace emu {
Dim3 thread_index, block_index, block_extent, grid_extent;

namespace {
constexpr std::size_t STACK_BYTES = 128 << 10;
constexpr unsigned LANES = 32;
// Behind the dynamic shared memory, to notice writes there.
constexpr std::size_t BAND = 1024;
constexpr std::uint8_t POISON = 0xFF, UNTOUCHED = 0xA5;

// Threads that meet.
struct Meeting {
    unsigned members = 0, arrived = 0, round = 0;
    // Whether one of them refused, in this round or the one before, in turn.
    bool refused[2] = {false, false};
};

struct Block {
    Dim3 index;
    Meeting all;
    std::vector<Meeting> warps;
    std::map<unsigned, Meeting> some;
    std::vector<std::uint8_t> memory;
    unsigned left = 0;
    bool refused[2] = {false, false};
    // Aligned as the hardware's is.
    std::uint8_t *shared() { return (std::uint8_t *)(((std::uintptr_t)memory.data() + 1023) & ~(std::uintptr_t)1023); }
};

struct Fiber {
    std::unique_ptr<char[]> stack{new char[STACK_BYTES]};
    // Whether it has entered its stack, and where it goes on there.
    bool entered = false;
    jmp_buf place;
    Dim3 index;
    // Its numbers in the block and of the block in the cluster; its warp, and what lanes of that show each other.
    unsigned number = 0, rank = 0;
    Meeting *warp = nullptr;
    std::uint64_t *shown[2] = {};
    bool ended = false;
    // What it waits for: the next round of a meeting, or a condition.
    Meeting *at = nullptr;
    unsigned round = 0;
    std::function<bool()> until;
    // What had changed when it last asked for the condition.
    std::uint64_t asked = 0;
    // The cluster's round that it has come to.
    unsigned come = ~0u;
    // Rounds that it came from.
    unsigned met = 0;
};

// When what is asynchronous happens: at any moment, as late as can be, at once.
enum class Moment { any, late, early };

std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Block> blocks;
std::vector<std::uint64_t> lane_words;
Meeting cluster;
std::vector<std::function<void()>> events;
std::map<unsigned, std::deque<std::function<void()>>> queues;
std::size_t dynamic_bytes = 0;
// Changes that conditions may be of.
std::uint64_t changes = 1;
// Whom alone the last event concerned.
Fiber *woken = nullptr;
Moment moment = Moment::any;
// A warp that runs when no other can, counted through the cluster.
unsigned slow = ~0u;
std::uint64_t state = 0;
std::string failure;
jmp_buf scheduler;
Fiber *running = nullptr;
const Kernel *kernel = nullptr;
void **arguments = nullptr;
// Sites come by again and again: whether each is the one left out.
struct Seen {
    const char *file;
    int line;
    bool out;
};
Seen recent[64];
std::set<std::string> sites;
std::string planted;

unsigned random(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

unsigned threads_of_block() { return block_extent.x * block_extent.y * block_extent.z; }

void pass(Meeting &meeting) {
    meeting.arrived = 0;
    meeting.round++;
    changes++;
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
        Block &own = blocks[running->rank];
        running->ended = true;
        leave(*running->warp);
        leave(own.all);
        leave(cluster);
        // Peers that still read find nothing.
        if (--own.left == 0) std::memset(own.shared(), POISON, dynamic_bytes);
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

// Whether this thread runs a fiber now, which a fault is then of; and whether one was.
thread_local volatile sig_atomic_t inside = 0;
volatile sig_atomic_t faulted = 0;

// While a launch runs, a fault of the kernel ends the fiber. Others are the process's own.
class Faults {
    struct sigaction before[2];
    static constexpr int SIGNALS[2] = {SIGSEGV, SIGBUS};

    static void take(int signal) {
        if (!inside) {
            struct sigaction plain = {};
            plain.sa_handler = SIG_DFL;
            sigaction(signal, &plain, nullptr);
            return;
        }
        faulted = 1;
        _longjmp(scheduler, 1);
    }

public:
    Faults() {
        struct sigaction own = {};
        own.sa_handler = take;
        // The jump leaves the handler for good.
        own.sa_flags = SA_NODEFER;
        for (int i = 0; i < 2; i++) sigaction(SIGNALS[i], &own, &before[i]);
    }
    ~Faults() {
        for (int i = 0; i < 2; i++) sigaction(SIGNALS[i], &before[i], nullptr);
    }
};

// From the scheduler to a fiber, until that pauses.
__attribute__((noinline)) void resume(Fiber &fiber) {
    running = &fiber, thread_index = fiber.index, block_index = blocks[fiber.rank].index;
    fiber.at = nullptr;
    if (fiber.until) fiber.until = nullptr;
    if (_setjmp(scheduler)) {
        inside = 0;
        if (faulted) faulted = 0, failure = "a thread touches memory that is not there";
        return;
    }
    inside = 1;
    if (fiber.entered) _longjmp(fiber.place, 1);
    enter(fiber);
}

// Whether it may run.
bool ready(Fiber &fiber) {
    if (fiber.ended || (fiber.at && fiber.at->round == fiber.round)) return false;
    if (!fiber.until) return true;
    if (fiber.asked == changes) return false;
    if (fiber.until()) return true;
    fiber.asked = changes;
    return false;
}

// One of the things that happen later; whether there was one.
bool happen() {
    unsigned all = (unsigned)(events.size() + queues.size());
    if (all == 0) return false;
    unsigned pick = random(all);
    if (pick < events.size()) {
        auto event = std::move(events[pick]);
        std::swap(events[pick], events.back());
        events.pop_back();
        event();
    } else {
        auto queue = std::next(queues.begin(), pick - (unsigned)events.size());
        auto step = std::move(queue->second.front());
        queue->second.pop_front();
        if (queue->second.empty()) queues.erase(queue);
        step();
    }
    return true;
}

void prepare(Dim3 first, unsigned count) {
    unsigned threads = threads_of_block();
    blocks.resize(count);
    lane_words.assign((std::size_t)threads * count * 2, 0);
    cluster = Meeting{threads * count};
    events.clear(), queues.clear(), failure.clear();
    while (fibers.size() < (std::size_t)threads * count) fibers.push_back(std::make_unique<Fiber>());
    for (unsigned rank = 0; rank < count; rank++) {
        Block &block = blocks[rank];
        block.index = {first.x + rank, first.y, first.z};
        block.all = Meeting{threads};
        block.warps.assign((threads + LANES - 1) / LANES, Meeting{});
        block.some.clear();
        block.refused[0] = block.refused[1] = false;
        block.left = threads;
        block.memory.assign(dynamic_bytes + 1024 + BAND, UNTOUCHED);
        std::memset(block.shared(), POISON, dynamic_bytes);
        for (unsigned i = 0; i < threads; i++) {
            block.warps[i / LANES].members++;
            Fiber &fiber = *fibers[rank * threads + i];
            fiber.index = {i % block_extent.x, i / block_extent.x % block_extent.y,
                           i / block_extent.x / block_extent.y};
            fiber.number = i, fiber.rank = rank, fiber.warp = &block.warps[i / LANES];
            for (unsigned set = 0; set < 2; set++) {
                fiber.shown[set] = &lane_words[((std::size_t)set * count + rank) * threads + i / LANES * LANES];
            }
            fiber.ended = false, fiber.at = nullptr, fiber.until = nullptr, fiber.come = ~0u, fiber.met = 0;
        }
    }
    hopper_begin();
}

// Until every thread has ended; false when none can move.
bool run_threads(unsigned threads) {
    // Whether the slow warp runs for a round.
    bool awake = false;
    for (unsigned left = threads; left > 0;) {
        bool moved = false, held = false;
        unsigned first = random(threads);
        for (unsigned i = 0; i < threads && failure.empty(); i++) {
            if (moment == Moment::early) {
                while (happen()) moved = true;
            } else if (moment == Moment::any && random(4) == 0) {
                moved |= happen();
            }
            unsigned number = (first + i) % threads;
            Fiber &fiber = *fibers[number];
            if (!ready(fiber)) continue;
            if (number / LANES == slow && !awake) {
                held = true;
                continue;
            }
            moved = true;
            resume(fiber);
            left -= fiber.ended;
        }
        if (!failure.empty()) return false;
        awake = false;
        if (moved || (held && random(2) == 0 && happen())) continue;
        if (held) {
            awake = true;
            continue;
        }
        // Nobody can go on before something changes.
        for (std::uint64_t before = changes; changes == before && failure.empty();) {
            woken = nullptr;
            if (!happen()) return false;
            if (!woken || !ready(*woken)) continue;
            resume(*woken);
            left -= woken->ended;
        }
    }
    return true;
}

// What is wrong at the end of a cluster that ran, or nothing.
std::string left_behind() {
    if (!events.empty() || !queues.empty()) return "a copy or product was not waited for";
    for (Block &block : blocks) {
        for (std::size_t i = 0; i < BAND / 2; i++) {
            if (block.shared()[dynamic_bytes + i] != UNTOUCHED) return "wrote behind its shared memory";
        }
    }
    return hopper_end();
}

Outcome run_cluster(Dim3 first, unsigned count) {
    prepare(first, count);
    bool ended = run_threads(threads_of_block() * count);
    if (ended) failure = left_behind();
    if (ended && failure.empty()) return Outcome::done;
    // Those that wait for ever are in the middle of the kernel.
    fibers.clear();
    return failure.empty() ? Outcome::stuck : Outcome::failed;
}
}  // namespace

unsigned thread_number() { return running->number; }
unsigned block_rank() { return running->rank; }
bool has_ended(unsigned rank) { return blocks[rank].left == 0; }
unsigned cluster_blocks() { return (unsigned)blocks.size(); }
std::uint8_t *shared_memory(unsigned rank) { return blocks[rank].shared(); }
std::size_t shared_bytes() { return dynamic_bytes; }

void wait_until(std::function<bool()> condition) {
    if (condition()) return;
    running->until = std::move(condition), running->asked = changes;
    pause();
}
void change() { changes++; }
void *current() { return running; }
void wake(void *thread) {
    woken = (Fiber *)thread;
    woken->asked = 0;
}
void later(std::function<void()> event) { events.push_back(std::move(event)); }
void queue_step(unsigned queue, std::function<void()> step) { queues[queue].push_back(std::move(step)); }
void fail(const std::string &why) {
    if (failure.empty()) failure = why;
    wait_until([] { return false; });
}
bool left_out(const Site &site) {
    Seen &seen = recent[site.line % std::size(recent)];
    if (seen.file != site.file || seen.line != site.line) {
        const char *name = std::strrchr(site.file, '/');
        std::string text = std::string(site.what) + " " + (name ? name + 1 : site.file) + ":" + std::to_string(site.line);
        sites.insert(text);
        seen = {site.file, site.line, text == planted};
    }
    return seen.out;
}

void block_barrier(const char *file, int line) {
    if (!left_out({"__syncthreads", file, line})) meet(blocks[running->rank].all);
}
bool block_all(bool mine, const char *file, int line) {
    // Two tallies: one is cleared while threads may still read the other.
    Block &own = blocks[running->rank];
    unsigned turn = own.all.round % 2;
    if (!mine) own.refused[turn] = true;
    block_barrier(file, line);
    bool all = !own.refused[turn];
    block_barrier(file, line);
    own.refused[turn] = false;
    return all;
}
void warp_barrier() { meet(*running->warp); }
void cluster_barrier() {
    meet(cluster);
    running->met = cluster.round;
}
void cluster_come() {
    running->come = cluster.round;
    if (++cluster.arrived == cluster.members) pass(cluster);
}
void cluster_leave() {
    unsigned come = running->come;
    wait_until([=] { return cluster.round != come; });
    if (come != ~0u) running->met = come + 1;
}
unsigned cluster_round() { return cluster.round; }
unsigned cluster_met() { return running->met; }
bool some_all(unsigned barrier, unsigned threads, bool mine) {
    Meeting &meeting = blocks[running->rank].some[barrier];
    unsigned turn = meeting.round % 2;
    // All have left the round before the last.
    if (meeting.arrived == 0) meeting.refused[turn] = false;
    meeting.refused[turn] |= !mine;
    some_barrier(barrier, threads);
    return !meeting.refused[turn];
}
void some_barrier(unsigned barrier, unsigned threads) {
    Meeting &meeting = blocks[running->rank].some[barrier];
    if (meeting.arrived == 0) meeting.members = threads;
    if (meeting.members != threads) fail("threads name one barrier for different numbers of threads");
    meet(meeting);
}

// Words that the lanes of a warp show each other. Two sets in turn: who is one exchange ahead writes the other one, and
// nobody is two ahead.
const std::uint64_t *shown(std::uint64_t word) {
    std::uint64_t *words = running->shown[running->warp->round % 2];
    words[running->number % LANES] = word;
    meet(*running->warp);
    return words;
}

void together(std::uint64_t word, void (*work)(const std::uint64_t *words)) {
    Meeting &warp = *running->warp;
    std::uint64_t *words = running->shown[warp.round % 2];
    words[running->number % LANES] = word;
    if (warp.arrived + 1 == warp.members) work(words);
    meet(warp);
}

std::uint64_t shuffle(std::uint64_t word, unsigned (*from)(unsigned lane, unsigned step), unsigned step) {
    unsigned source = from(running->number % LANES, step);
    const std::uint64_t *words = shown(word);
    return source < LANES ? words[source] : word;
}

unsigned ballot(bool mine) {
    unsigned first = running->number / LANES * LANES, threads = threads_of_block(), votes = 0;
    const std::uint64_t *words = shown(mine);
    for (unsigned lane = 0; lane < LANES && first + lane < threads; lane++) votes |= (words[lane] != 0) << lane;
    return votes;
}

const std::string &message() { return failure; }
const std::set<std::string> &known_sites() { return sites; }
void plant(const char *site) {
    if (planted == (site ? site : "")) return;
    planted = site ? site : "";
    std::fill(std::begin(recent), std::end(recent), Seen{});
}

Outcome launch(const Kernel &which, const Shape &shape, void **values, std::uint64_t seed) {
    kernel = &which, arguments = values, block_extent = shape.extent, grid_extent = shape.grid;
    dynamic_bytes = shape.shared_bytes, state = seed, moment = (Moment)(seed % 3);
    // In some launches one warp of a cluster runs when all others wait.
    slow = random(4) == 0 ? random(shape.extent.x * shape.cluster / LANES + 1) : ~0u;
    Faults faults;
    for (unsigned z = 0; z < shape.grid.z; z++) {
        for (unsigned y = 0; y < shape.grid.y; y++) {
            for (unsigned x = 0; x < shape.grid.x; x += shape.cluster) {
                Outcome outcome = run_cluster({x, y, z}, shape.cluster);
                if (outcome != Outcome::done) return outcome;
            }
        }
    }
    return Outcome::done;
}
}  // namespace emu
