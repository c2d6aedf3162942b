// Matrix products of warpgroups, with the bits of the hardware: of FP8, 32 products and the accumulator aligned to the
// largest exponent and cut to 13 fraction bits, the sum cut to 13 (Khattak and Mikaitis 2026); of 16-bit formats, 16
// products and the accumulator cut to 25 bits, the sum cut to f32 (fitted to an H200). Results of an H200 are kept in
// `recorded`: subnormal factors, infinities and NaN among them. Whole numbers are added exactly, in the places of floats.
#include "hopper.h"
#include "machine.h"

#include <bit>
#include <bit>
#include <cmath>
#include <deque>
#include <map>
#include <vector>

namespace emu {
bool is_unfenced(const std::uint8_t *place);
void hopper_begin_copies();

namespace {
constexpr unsigned LANES = 32;

// A factor: significand in steps, exponent of the binade; or else what no number it is.
struct Factor {
    int significand, exponent;
    // Infinite or NaN where it is no number, 0 where it is one.
    float other;

    // As its sign and kind decide what a product with an infinity is.
    float kind() const { return other != 0 ? other : (float)significand; }
};

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

Factor factor(Format format, unsigned code) {
    if (format == Format::s8) return {(std::int8_t)code, 0, true};
    FormatFacts f = facts(format);
    int mantissa = (int)(code & ((1u << f.fraction) - 1)), exponent = (int)(code >> f.fraction & ((1u << f.exponent) - 1));
    bool negative = code >> (f.bits - 1) & 1;
    bool finite = format == Format::e4m3 ? (code & 0x7F) != 0x7F : exponent != (1 << f.exponent) - 1;
    int significand = exponent ? mantissa + (1 << f.fraction) : mantissa;
    float other = finite ? 0 : mantissa ? std::nanf("") : negative ? -INFINITY : INFINITY;
    return {negative ? -significand : significand, (exponent ? exponent : 1) - f.bias, other};
}

// x 2^power towards zero.
std::int64_t cut(std::int64_t x, int power) {
    if (power >= 0) return x << power;
    if (power < -62) return 0;
    return x < 0 ? -(-x >> -power) : x >> -power;
}

float result(Format format, std::int64_t sum, int exponent) {
    double exact = std::ldexp((double)sum, exponent);
    if (exact == 0) return 0;
    // Towards zero: 13 fraction bits of it, or those of f32.
    int fraction = format == Format::e4m3 ? 13 : 23, binade = std::max(std::ilogb(exact), -126);
    return (float)std::ldexp(std::trunc(std::ldexp(exact, fraction - binade)), binade - fraction);
}

// One output: the factors of its row and column, and the accumulator.
float output(Format format, const Factor *a, const Factor *b, float c) {
    FormatFacts f = facts(format);
    if (format == Format::s8) {
        std::int32_t sum = std::bit_cast<std::int32_t>(c);
        for (int k = 0; k < f.depth; k++) sum += a[k].significand * b[k].significand;
        return std::bit_cast<float>(sum);
    }
    int largest = -10000;
    bool finite = std::isfinite(c);
    for (int k = 0; k < f.depth; k++) {
        finite &= a[k].other == 0 && b[k].other == 0;
        if (a[k].significand && b[k].significand) largest = std::max(largest, a[k].exponent + b[k].exponent);
    }
    if (!finite) {
        float sum = std::isfinite(c) ? 0 : c;
        for (int k = 0; k < f.depth; k++) {
            if (a[k].other != 0 || b[k].other != 0) sum += a[k].kind() * b[k].kind();
        }
        return sum;
    }
    if (c != 0) largest = std::max(largest, std::ilogb(c));
    if (largest == -10000) return c;
    std::int64_t sum = (std::int64_t)std::trunc(std::ldexp((double)c, f.kept - largest));
    for (int k = 0; k < f.depth; k++) {
        std::int64_t product = (std::int64_t)a[k].significand * b[k].significand;
        sum += cut(product, a[k].exponent + b[k].exponent - 2 * f.fraction + f.kept - largest);
    }
    return result(format, sum, largest - f.kept);
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
};

// One product of a warp: its lanes come one by one.
struct Operation {
    Format format;
    unsigned count, lanes = 0;
    std::uint64_t a, b;
    bool add, in_registers;
    Accumulator *to[LANES];
    std::uint32_t registers[LANES][4];
};

struct Warp {
    std::map<std::uint64_t, Operation> forming;
    std::uint64_t done = 0;
};

std::map<unsigned, Thread> threads;
std::map<unsigned, Warp> warps;

unsigned warp_number() { return block_rank() << 16 | thread_number() / LANES; }
Thread &own() { return threads[block_rank() << 16 | thread_number()]; }

// Elements of a row of an operand in shared memory.
void read_row(Format format, unsigned rank, std::uint64_t operand, unsigned row, Factor *to) {
    FormatFacts f = facts(format);
    unsigned start = (unsigned)(operand & 0x3FFF) << 4, group = (unsigned)(operand >> 32 & 0x3FFF) << 4;
    for (int k = 0; k < f.depth; k++) {
        unsigned code = 0;
        for (int byte = 0; byte < f.bits / 8; byte++) {
            unsigned at = start + row / 8 * group + row % 8 * 128 + (unsigned)(k * f.bits / 8 + byte);
            at ^= at >> 3 & 0x70;
            if (at >= shared_bytes()) return fail("a product reads behind the shared memory");
            const std::uint8_t *place = shared_memory(rank) + at;
            if (is_unfenced(shared_memory(rank) + at / 16 * 16)) {
                return fail("a product reads what was written without async_fence");
            }
            code |= (unsigned)*place << 8 * byte;
        }
        to[k] = factor(format, code);
    }
}

void read_registers(const Operation &op, unsigned row, Factor *to) {
    FormatFacts f = facts(op.format);
    int each = 32 / f.bits;
    for (int k = 0; k < f.depth; k++) {
        // Four lanes hold a row; each register one run of `each` columns, registers of the same row two apart.
        unsigned lane = row % 8 * 4 + (unsigned)(k / each % 4), word = (unsigned)(k / (4 * each)) * 2 + row / 8;
        to[k] = factor(op.format, op.registers[lane][word] >> k % each * f.bits & (f.bits == 8 ? 0xFFu : 0xFFFFu));
    }
}

void execute(unsigned rank, unsigned warp, const Operation &op) {
    FormatFacts f = facts(op.format);
    unsigned columns = op.count * 2, first = warp % 4 * 16;
    std::vector<Factor> a(16 * f.depth), b((std::size_t)columns * f.depth);
    for (unsigned r = 0; r < 16; r++) {
        if (op.in_registers) read_registers(op, r, &a[r * f.depth]);
        else read_row(op.format, rank, op.a, first + r, &a[r * f.depth]);
    }
    for (unsigned n = 0; n < columns; n++) read_row(op.format, rank, op.b, n, &b[(std::size_t)n * f.depth]);
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < op.count; i++) {
            unsigned row = lane / 4 + (i & 2 ? 8 : 0), column = i / 4 * 8 + lane % 4 * 2 + (i & 1);
            float &d = op.to[lane]->value[i];
            d = output(op.format, &a[row * f.depth], &b[(std::size_t)column * f.depth], op.add ? d : 0.0f);
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
             bool add) {
    Thread &thread = own();
    unsigned number = warp_number(), rank = block_rank(), warp = thread_number() / LANES;
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
        op = Operation{format, count, 0, a, b, add, registers != nullptr, {}, {}};
    } else if (op.a != a || op.b != b || op.add != add || op.count != count || op.format != format) {
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
    unsigned halves = 0;
    for (unsigned i = 0; i < 2; i++) {
        unsigned code = codes >> 8 * i & 0xFF;
        Factor value = factor(Format::e4m3, code);
        _Float16 half = (_Float16)std::ldexp((double)std::abs(value.significand), value.exponent - 3);
        unsigned bits = value.other == 0 ? std::bit_cast<std::uint16_t>(half) | (code & 0x80) << 8 : 0x7FFF;
        halves |= bits << 16 * i;
    }
    return halves;
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

unsigned long long operand_128(const void *place) {
    return (unsigned long long)((shared_address(place) & 0x3FFFF) >> 4) | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}
void mma_fence(const char *file, int line) {
    if (!left_out({"mma_fence", file, line})) own().fenced = true;
}
void mma_commit() { own().groups.push_back(own().issued); }
void mma_wait_for(unsigned pending, const char *file, int line) {
    if (!left_out({"mma_wait", file, line})) products_wait(pending);
}
