// Matrix products of warpgroups, with the bits of the hardware: of FP8, 32 products and the accumulator aligned to the
// largest exponent and cut to 13 fraction bits, the sum cut to 13 (Khattak and Mikaitis 2026); of 16-bit formats, 16
// products and the accumulator cut to 25 bits, the sum cut to f32 (fitted to an H200). Results of an H200 are kept in
// `recorded`: subnormal factors, infinities and NaN among them. Whole numbers are added exactly, in the places of floats.
#include "hopper.h"
#include "machine.h"

#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

namespace emu {
bool is_unfenced(const std::uint8_t *place);
void hopper_begin_copies();

namespace {
constexpr unsigned LANES = 32;

struct FormatFacts {
    // Bits of an element, of its fraction and exponent; the bias; depth of a product; fraction bits kept.
    int bits, fraction, exponent, bias, depth, kept;
};

constexpr FormatFacts facts(Format format) {
    switch (format) {
    case Format::e4m3: return {8, 3, 4, 7, 32, 13};
    case Format::bf16: return {16, 7, 8, 127, 16, 25};
    case Format::s8: return {8, 0, 0, 0, 32, 0};
    default: return {16, 10, 5, 15, 16, 25};
    }
}

constexpr unsigned MOST_DEPTH = 32;
// The exponent of zero: lower than any that a product has.
constexpr int NO_BINADE = -100000;

// 2^power of a normal number.
double power_of(int power) { return std::bit_cast<double>((std::uint64_t)(power + 1023) << 52); }

// Factors that meet those of another row: numbers, and exponents of their binades, the lowest binade's for subnormal ones.
struct Row {
    double number[MOST_DEPTH];
    int binade[MOST_DEPTH];
    bool finite = true;

    void set(Format format, unsigned k, unsigned code) {
        if (format == Format::s8) {
            number[k] = (std::int8_t)code, binade[k] = 0;
            return;
        }
        FormatFacts f = facts(format);
        int mantissa = (int)(code & ((1u << f.fraction) - 1)), exponent = (int)(code >> f.fraction & ((1u << f.exponent) - 1));
        bool negative = code >> (f.bits - 1) & 1;
        bool there = format == Format::e4m3 ? (code & 0x7F) != 0x7F : exponent != (1 << f.exponent) - 1;
        int significand = exponent ? mantissa + (1 << f.fraction) : mantissa, own = (exponent ? exponent : 1) - f.bias;
        double magnitude = there ? significand * power_of(own - f.fraction) : mantissa ? std::nan("") : (double)INFINITY;
        number[k] = negative ? -magnitude : magnitude, binade[k] = significand ? own : NO_BINADE;
        finite &= there;
    }
};

// Towards zero: 13 fraction bits of it, or those of f32.
float result(Format format, double exact) {
    if (std::abs(exact) >= 0x1p128) return exact < 0 ? -INFINITY : INFINITY;
    float near = (float)exact;
    std::uint32_t bits = std::bit_cast<std::uint32_t>(near);
    if (std::abs((double)near) > std::abs(exact)) bits--;
    if (format == Format::e4m3) bits &= ~0x3FFu;
    return bits << 1 ? std::bit_cast<float>(bits) : 0;
}

int binade_of(float c) {
    int exponent = (int)(std::bit_cast<std::uint32_t>(c) >> 23 & 0xFF);
    return exponent ? exponent - 127 : std::ilogb(c);
}

// One output: the factors of its row and column, and the accumulator.
float output(Format format, const Row &a, const Row &b, float c) {
    const int depth = facts(format).depth, kept = facts(format).kept;
    if (format == Format::s8) {
        std::int32_t sum = std::bit_cast<std::int32_t>(c);
        for (int k = 0; k < depth; k++) sum += (std::int32_t)(a.number[k] * b.number[k]);
        return std::bit_cast<float>(sum);
    }
    if (!a.finite || !b.finite || !std::isfinite(c)) {
        float sum = std::isfinite(c) ? 0 : c;
        for (int k = 0; k < depth; k++) {
            if (!std::isfinite(a.number[k]) || !std::isfinite(b.number[k])) sum += (float)(a.number[k] * b.number[k]);
        }
        return sum;
    }
    int largest = c != 0 ? binade_of(c) : NO_BINADE;
    for (int k = 0; k < depth; k++) largest = std::max(largest, a.binade[k] + b.binade[k]);
    if (largest <= NO_BINADE / 2) return c;
    // Exact: a product has few bits, and at most twenty eight of it are kept.
    double unit = power_of(kept - largest);
    std::int64_t sum = (std::int32_t)(c * unit);
    for (int k = 0; k < depth; k++) sum += (std::int32_t)(a.number[k] * b.number[k] * unit);
    return result(format, (double)sum * power_of(largest - kept));
}

// One thread's accumulator with products that are not waited for.
struct Accumulator {
    std::vector<float> value;
    unsigned outstanding = 0;
};

struct Thread {
    std::map<float *, Accumulator> accumulators;
    std::uint64_t issued = 0;
    // Products before each commit.
    std::vector<std::uint64_t> groups;
    bool fenced = false;
    // Those whose wait was left out: what they were to fill may be gone by the next.
    std::vector<std::map<float *, Accumulator>::node_type> abandoned;
};

// One product of a warp: its lanes come one by one.
struct Operation {
    Format format;
    unsigned count, lanes = 0;
    std::uint64_t a, b;
    bool add, in_registers, turned;
    Accumulator *to[LANES];
    std::uint32_t registers[LANES][4];
};

struct Warp {
    std::map<std::uint64_t, Operation> forming;
    std::uint64_t done = 0;
};

std::unordered_map<unsigned, Thread> threads;
std::unordered_map<unsigned, Warp> warps;

unsigned warp_number() { return block_rank() << 16 | thread_number() / LANES; }
Thread &own() { return threads[block_rank() << 16 | thread_number()]; }

// Elements of a row of an operand in shared memory, or of a column of a turned one.
void read_row(Format format, unsigned rank, std::uint64_t operand, unsigned row, Row &to, bool turned = false) {
    const FormatFacts f = facts(format);
    const unsigned start = (unsigned)(operand & 0x3FFF) << 4, group = (unsigned)(operand >> 32 & 0x3FFF) << 4;
    const unsigned bytes = (unsigned)f.bits / 8, end = (unsigned)shared_bytes();
    const std::uint8_t *memory = shared_memory(rank);
    unsigned checked = ~0u;
    for (unsigned k = 0; k < (unsigned)f.depth; k++) {
        unsigned along = turned ? k : row, across = turned ? row : k;
        unsigned at = start + along / 8 * group + along % 8 * 128 + across * bytes;
        at ^= at >> 3 & 0x70;
        if (at + bytes > end) return fail("a product reads behind the shared memory");
        if (at / 16 != checked && is_unfenced(memory + at / 16 * 16)) {
            return fail("a product reads what was written without async_fence");
        }
        checked = at / 16;
        to.set(format, k, bytes == 1 ? memory[at] : memory[at] | (unsigned)memory[at + 1] << 8);
    }
}

void read_registers(const Operation &op, unsigned row, Row &to) {
    const FormatFacts f = facts(op.format);
    int each = 32 / f.bits;
    for (int k = 0; k < f.depth; k++) {
        // Four lanes hold a row; each register one run of `each` columns, registers of the same row two apart.
        unsigned lane = row % 8 * 4 + (unsigned)(k / each % 4), word = (unsigned)(k / (4 * each)) * 2 + row / 8;
        unsigned code = op.registers[lane][word] >> k % each * f.bits & (f.bits == 8 ? 0xFFu : 0xFFFFu);
        to.set(op.format, (unsigned)k, code);
    }
}

void execute(unsigned rank, unsigned warp, const Operation &op) {
    unsigned columns = op.count * 2, first = warp % 4 * 16;
    std::vector<Row> a(16), b(columns);
    for (unsigned r = 0; r < 16; r++) {
        if (op.in_registers) read_registers(op, r, a[r]);
        else read_row(op.format, rank, op.a, first + r, a[r]);
    }
    for (unsigned n = 0; n < columns; n++) read_row(op.format, rank, op.b, n, b[n], op.turned);
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < op.count; i++) {
            unsigned row = lane / 4 + (i & 2 ? 8 : 0), column = i / 4 * 8 + lane % 4 * 2 + (i & 1);
            float &d = op.to[lane]->value[i];
            d = output(op.format, a[row], b[column], op.add ? d : 0.0f);
        }
        op.to[lane]->outstanding--;
    }
}
}  // namespace

void hopper_begin() {
    hopper_begin_copies();
    threads.clear();
    warps.clear();
}

std::string hopper_end() {
    for (auto &[number, thread] : threads) {
        if (!thread.accumulators.empty()) return "a product was not waited for";
    }
    return "";
}

void product(Format format, float *d, unsigned count, const std::uint32_t *registers, std::uint64_t a, std::uint64_t b,
             bool add, bool turned) {
    Thread &thread = own();
    unsigned number = warp_number(), rank = block_rank(), warp = thread_number() / LANES;
    if (turned && count != 32) return fail("only a row of 64 columns is turned");
    if (!thread.fenced) return fail("a product without mma_fence since the last wait");
    // Until it is waited for, what is done of it is known here alone.
    auto [place, fresh] = thread.accumulators.try_emplace(d);
    Accumulator &to = place->second;
    if (fresh) to.value.assign(d, d + count);
    to.outstanding++;
    std::fill(d, d + count, std::nanf(""));
    std::uint64_t id = thread.issued++;
    Operation &op = warps[number].forming[id];
    if (op.lanes == 0) {
        op = Operation{format, count, 0, a, b, add, registers != nullptr, turned, {}, {}};
    } else if (op.a != a || op.b != b || op.add != add || op.turned != turned || op.count != count || op.format != format) {
        return fail("the lanes of a warp issue different products");
    }
    unsigned lane = thread_number() % LANES;
    op.to[lane] = &to;
    if (registers) std::copy(registers, registers + 4, op.registers[lane]);
    if (++op.lanes < LANES) return;
    queue_step(number, [=] {
        Operation whole = warps[number].forming[id];
        execute(rank, warp, whole);
        warps[number].forming.erase(id);
        warps[number].done++;
        change();
    });
}

void products_wait(unsigned pending) {
    Thread &thread = own();
    std::size_t groups = thread.groups.size();
    std::uint64_t needed = groups > pending ? thread.groups[groups - pending - 1] : 0;
    unsigned number = warp_number();
    wait_until([=] { return warps[number].done >= needed; });
    std::erase_if(thread.accumulators, [](auto &entry) {
        if (entry.second.outstanding > 0) return false;
        std::copy(entry.second.value.begin(), entry.second.value.end(), entry.first);
        return true;
    });
    thread.fenced = false;
}

// A lane's part of a product of its warp.
namespace {
struct InRegisters {
    float *d;
    const std::uint32_t *a, *b;
};

void execute_together(const std::uint64_t *words) {
    constexpr unsigned ROWS = 16, COLUMNS = 8, DEPTH = 16;
    auto part = [&](unsigned lane) { return *(const InRegisters *)words[lane]; };
    auto code = [](std::uint32_t pair, unsigned k) { return pair >> 16 * (k % 2) & 0xFFFF; };
    Row rows[ROWS], columns[COLUMNS];
    for (unsigned k = 0; k < DEPTH; k++) {
        unsigned own = k / 2 % 4, high = k / 8;
        for (unsigned r = 0; r < ROWS; r++) rows[r].set(Format::bf16, k, code(part(r % 8 * 4 + own).a[2 * high + r / 8], k));
        for (unsigned n = 0; n < COLUMNS; n++) columns[n].set(Format::bf16, k, code(part(n * 4 + own).b[high], k));
    }
    for (unsigned lane = 0; lane < LANES; lane++) {
        float *d = part(lane).d;
        for (unsigned i = 0; i < 4; i++) {
            d[i] = output(Format::bf16, rows[lane / 4 + i / 2 * 8], columns[lane % 4 * 2 + i % 2], d[i]);
        }
    }
}
}  // namespace

// Products of a warp in registers, taken to round as those of warpgroups do.
void product_of_warp(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    InRegisters own = {d, a, b};
    together((std::uint64_t)&own, execute_together);
}

// Of f64, as an H200 makes them: one product after the other, added with one rounding.
namespace {
struct F64InRegisters {
    double *d;
    const double *a, *b;
    unsigned depth;
};

void execute_f64_together(const std::uint64_t *words) {
    auto part = [&](unsigned lane) { return *(const F64InRegisters *)words[lane]; };
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < 4; i++) {
            double &sum = part(lane).d[i];
            for (unsigned k = 0; k < part(lane).depth; k++) {
                double a = part(lane / 4 * 4 + k % 4).a[k / 4 * 2 + i / 2];
                sum = std::fma(a, part((lane % 4 * 2 + i % 2) * 4 + k % 4).b[k / 4], sum);
            }
        }
    }
}
}  // namespace

void product_of_warp(double (&d)[4], const double *a, const double *b, unsigned depth) {
    F64InRegisters own = {d, a, b, depth};
    together((std::uint64_t)&own, execute_f64_together);
}
}  // namespace emu

using namespace emu;

// Every code of E4M3 is a number of f16.
unsigned bytes_by_nibbles(unsigned lower, unsigned upper, unsigned nibbles) {
    std::uint64_t all = (std::uint64_t)upper << 32 | lower;
    unsigned bytes = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned nibble = nibbles >> 4 * i & 15, byte = (unsigned)(all >> 8 * (nibble & 7)) & 0xFF;
        bytes |= (nibble & 8 ? (byte & 0x80 ? 0xFFu : 0) : byte) << 8 * i;
    }
    return bytes;
}
unsigned halves_of_e4m3(unsigned codes) {
    static const auto table = [] {
        std::array<std::uint16_t, 256> table;
        for (unsigned code = 0; code < 256; code++) {
            Row row;
            row.set(Format::e4m3, 0, code);
            table[code] = row.finite ? std::bit_cast<std::uint16_t>((_Float16)row.number[0]) : 0x7FFF;
        }
        return table;
    }();
    return table[codes & 0xFF] | (unsigned)table[codes >> 8 & 0xFF] << 16;
}
unsigned product_of_halves(unsigned a, unsigned b) {
    unsigned halves = 0;
    for (unsigned i = 0; i < 2; i++) {
        auto half = [&](unsigned x) { return std::bit_cast<_Float16>((std::uint16_t)(x >> 16 * i)); };
        float product = (float)half(a) * (float)half(b);
        std::uint16_t bits = std::bit_cast<std::uint16_t>((_Float16)product);
        halves |= (unsigned)(product == product ? bits : 0x7FFF) << 16 * i;
    }
    return halves;
}

float float_of_half(std::uint32_t half) { return (float)std::bit_cast<_Float16>((std::uint16_t)half); }
unsigned product_of_bf16s(unsigned a, unsigned b) {
    unsigned both = 0;
    for (unsigned i = 0; i < 2; i++) {
        auto value = [&](unsigned x) { return std::bit_cast<float>(x >> 16 * i << 16); };
        float product = value(a) * value(b);
        unsigned bits = std::bit_cast<unsigned>(product);
        unsigned rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        both |= (product == product ? rounded : 0x7FFF) << 16 * i;
    }
    return both;
}

unsigned turned(unsigned pair) {
    const std::uint64_t *words = shown(pair);
    unsigned lane = thread_number() % LANES, both = 0;
    for (unsigned i = 0; i < 2; i++) {
        unsigned row = lane % 4 * 2 + i, column = lane / 4;
        both |= (unsigned)(words[row * 4 + column / 2] >> 16 * (column % 2) & 0xFFFF) << 16 * i;
    }
    return both;
}
// Any NaN gives the one that the device's conversions give.
unsigned bf16_pair(float lower, float upper) {
    auto rounded = [](float x) {
        std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
        return x == x ? (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 : 0x7FFF;
    };
    return rounded(lower) | rounded(upper) << 16;
}

unsigned long long operand_128(const void *place) {
    return (unsigned long long)((shared_address(place) & 0x3FFFF) >> 4) | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}
void mma_fence(const char *file, int line) {
    if (!left_out({"mma_fence", file, line})) own().fenced = true;
}
void mma_commit() { own().groups.push_back(own().issued); }
void mma_wait_for(unsigned pending, const char *file, int line) {
    if (!left_out({"mma_wait", file, line})) return products_wait(pending);
    Thread &thread = own();
    while (!thread.accumulators.empty()) {
        thread.abandoned.push_back(thread.accumulators.extract(thread.accumulators.begin()));
    }
}
