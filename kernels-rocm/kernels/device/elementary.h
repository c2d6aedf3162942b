// Elementary functions of f64, the complement of the error function to within four units in the last place and the others
// to within two, by sums, products and fused steps, so that every machine gets the same bits. Series are Taylor's but for
// that of the complement's tail.
#pragma once

namespace amd {
constexpr double LOG2_E = 1.4426950408889634;
// ln 2: the upper part has so few bits that its multiples by exponents are exact.
constexpr double LN_2 = 0.6931471803691238, LN_2_REST = 1.9082149292705877e-10;
constexpr double INFINITY_64 = __builtin_huge_val();

// exp(x + rest), of a rest that is small beside x.
DEVICE double exp_of_sum(double x, double rest) {
    if (x > 710) return INFINITY_64;
    if (x < -746) return 0;
    double power = __builtin_rint(x * LOG2_E);
    double high = __builtin_fma(-power, LN_2, x), low = __builtin_fma(-power, LN_2_REST, rest);
    // |r| is at most half of ln 2; what its sum lost comes back at the end.
    double r = high + low, lost = (high - r) + low;
    double s = 1.0 / 6227020800;
    s = __builtin_fma(s, r, 1.0 / 479001600);
    s = __builtin_fma(s, r, 1.0 / 39916800);
    s = __builtin_fma(s, r, 1.0 / 3628800);
    s = __builtin_fma(s, r, 1.0 / 362880);
    s = __builtin_fma(s, r, 1.0 / 40320);
    s = __builtin_fma(s, r, 1.0 / 5040);
    s = __builtin_fma(s, r, 1.0 / 720);
    s = __builtin_fma(s, r, 1.0 / 120);
    s = __builtin_fma(s, r, 1.0 / 24);
    s = __builtin_fma(s, r, 1.0 / 6);
    s = __builtin_fma(s, r, 0.5);
    double value = 1.0 + (r + __builtin_fma(r * r, s, lost));
    // A NaN has no power.
    return x == x ? __builtin_ldexp(value, (int)power) : x;
}

// 1 - erf(x) of x from 0.75 to 28: exp(-x^2) P(u) / (x + 1/2), where u runs from -1 at 0.75 to 1 at infinity and P is the
// Chebyshev series of the rest, in powers.
DEVICE double erfc_tail(double x) {
    double u = (x - 4) / (x + 2.5);
    double p = -1.807932023216671e-11;
    p = __builtin_fma(p, u, 1.176640725930007e-10);
    p = __builtin_fma(p, u, 3.2561321422905255e-10);
    p = __builtin_fma(p, u, -1.1166628894659856e-09);
    p = __builtin_fma(p, u, -3.2142128589988932e-09);
    p = __builtin_fma(p, u, 5.5512244565084555e-09);
    p = __builtin_fma(p, u, 2.4622970627362313e-08);
    p = __builtin_fma(p, u, -1.898699530194086e-08);
    p = __builtin_fma(p, u, -1.7374790537752613e-07);
    p = __builtin_fma(p, u, 4.813260376471378e-08);
    p = __builtin_fma(p, u, 1.2616579151007616e-06);
    p = __builtin_fma(p, u, -2.653530794420179e-07);
    p = __builtin_fma(p, u, -1.0050317850813376e-05);
    p = __builtin_fma(p, u, 7.456907664054541e-06);
    p = __builtin_fma(p, u, 8.523216976371024e-05);
    p = __builtin_fma(p, u, -0.00019838446284902307);
    p = __builtin_fma(p, u, -0.000501949911165671);
    p = __builtin_fma(p, u, 0.003998570928781517);
    p = __builtin_fma(p, u, -0.011582362142576557);
    p = __builtin_fma(p, u, 0.01817242733879009);
    p = __builtin_fma(p, u, -0.005558715530154661);
    p = __builtin_fma(p, u, -0.056721078716478655);
    p = __builtin_fma(p, u, 0.6164975593127763);
    double square = x * x;
    return exp_of_sum(-square, -__builtin_fma(x, x, -square)) * (p / (x + 0.5));
}

// erf(x) of |x| below 0.75.
DEVICE double erf_near_zero(double x) {
    double z = x * x, s = -2.7835162072109215e-14;
    s = __builtin_fma(s, z, 4.4632242632864775e-13);
    s = __builtin_fma(s, z, -6.7113668551641105e-12);
    s = __builtin_fma(s, z, 9.422759064650411e-11);
    s = __builtin_fma(s, z, -1.2290555301717928e-09);
    s = __builtin_fma(s, z, 1.4807192815879218e-08);
    s = __builtin_fma(s, z, -1.6365844691234924e-07);
    s = __builtin_fma(s, z, 1.6462114365889248e-06);
    s = __builtin_fma(s, z, -1.492565035840625e-05);
    s = __builtin_fma(s, z, 0.00012055332981789664);
    s = __builtin_fma(s, z, -0.0008548327023450853);
    s = __builtin_fma(s, z, 0.005223977625442188);
    s = __builtin_fma(s, z, -0.026866170645131252);
    s = __builtin_fma(s, z, 0.11283791670955126);
    s = __builtin_fma(s, z, -0.37612638903183754);
    s = __builtin_fma(s, z, 1.1283791670955126);
    return x * s;
}
}  // namespace amd

DEVICE double exp(double x) { return amd::exp_of_sum(x, 0); }

DEVICE double log(double x) {
    if (!(x > 0)) return x == 0 ? -amd::INFINITY_64 : __builtin_nan("");
    if (x == amd::INFINITY_64) return x;
    int exponent;
    double m = __builtin_frexp(x, &exponent);
    // From 1/sqrt(2) to sqrt(2), so that no binade's logarithm cancels.
    if (m < 0.7071067811865476) m *= 2, exponent -= 1;
    double f = m - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    // log(1 + f) = 2 atanh(s) = f - half + s (half + 2 z/3 + 2 z^2/5 + ...)
    double t = 2.0 / 23;
    t = __builtin_fma(t, z, 2.0 / 21);
    t = __builtin_fma(t, z, 2.0 / 19);
    t = __builtin_fma(t, z, 2.0 / 17);
    t = __builtin_fma(t, z, 2.0 / 15);
    t = __builtin_fma(t, z, 2.0 / 13);
    t = __builtin_fma(t, z, 2.0 / 11);
    t = __builtin_fma(t, z, 2.0 / 9);
    t = __builtin_fma(t, z, 2.0 / 7);
    t = __builtin_fma(t, z, 2.0 / 5);
    t = __builtin_fma(t, z, 2.0 / 3);
    double power = exponent;
    double small = __builtin_fma(s, __builtin_fma(t, z, half), power * amd::LN_2_REST);
    return power * amd::LN_2 - ((half - small) - f);
}

// log(1 + x)
DEVICE double log1p(double x) {
    double sum = 1 + x;
    if (sum == 1 || sum == amd::INFINITY_64) return x;
    // What the sum lost, by its derivative.
    double lost = x < 1 ? x - (sum - 1) : 1 - (sum - x);
    return log(sum) + lost / sum;
}

// 1 - erf(x)
DEVICE double erfc(double x) {
    double size = __builtin_fabs(x);
    if (size < 0.75) return 1 - amd::erf_near_zero(x);
    double tail = size > 28 ? 0 : amd::erfc_tail(size);
    return x < 0 ? 2 - tail : x == x ? tail : x;
}
