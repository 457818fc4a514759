"""The functions of real numbers that kernels call, as C that compilers turn into SIMD: no branches,
no tables, no calls.

Those of float err by less than 1.5 units in the last place, mostly by half a one. Where the processor
multiplies and adds at one step the dearest (`_IN_FLOAT` and erf) are computed in float, with the larger
part of what is lost on the way carried along; elsewhere, and the others, in double with shorter
polynomials, rounded once: neither overflow nor numbers below the normal ones need care there. Those of
double err by less than 3 units. Infinities, NaN and signed zeros are as in libm.

Each is written once, by macros: `F(name)` is the function's name, and `P(a, b)` is the polynomial
`a` where the result is for float, `b` where it is for double.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def _poly(x: str, coefficients: Sequence[float]) -> str:
    """Horner's scheme, the highest power first."""
    text = coefficients[0].hex()
    for c in coefficients[1:]:
        text = f"MA({text}, {x}, {c.hex()})"
    return text


def _fused(x: str, coefficients: Sequence[float]) -> str:
    """The same in float, each step rounded once."""
    text = f"{coefficients[0].hex()}f"
    for c in coefficients[1:]:
        text = f"__builtin_fmaf({text}, {x}, {c.hex()}f)"
    return text


def _both(x: str, single: Sequence[float], double: Sequence[float]) -> str:
    return f"P({_poly(x, single)}, {_poly(x, double)})"


# (exp(r) - 1 - r) / r² for |r| <= ln(2) / 2: minimax for float, the series for double
_EXP_F = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
          5.0000001201e-1)  # fmt: skip
_EXP_D = tuple(1 / math.factorial(k) for k in range(14, 1, -1))
# (log((1 + s) / (1 - s)) - 2 s) / (2 s³) · 2, in powers of s²: Remez, as every libm has it
_LOG_F = (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693)
_LOG_D = (1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
          2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
          6.666666666666735130e-01)  # fmt: skip
# erf(x) / x in powers of x², for |x| < 1
_ERF_F = (7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3,
          -2.685381193529856e-2, 1.128358514861418e-1, -3.761262582423300e-1,
          1.128379165726710)  # fmt: skip
# erfc(x) exp(x²) in powers of t = 1 / (1 + 0.3275911 x), for 1 <= x < 4.5 (beyond it is nothing)
_ERFC_F = (1.123453281937423, -1.7126611219443446, 1.849773866257897, -0.633995553409172,
           0.39597227047990163, -0.022592557068581442)  # fmt: skip

_EXP = f"""
/* exp(x) is exp(r), of which this is r, times 2 to a whole power, in two factors */
INLINE double F(r_parts)(double x, double *half, double *rest) {{
    union {{ double f; int64_t i; }} u, a, b;
    u.f = MA(x, 0x1.71547652b82fep+0, 0x1.8p+52); /* the whole number is in the lower bits */
    double k = u.f - 0x1.8p+52;
    int64_t n = u.i - 0x4338000000000000, m = P(n, n >> 1); /* for float one factor is enough */
    a.i = (m + 1023) << 52;
    b.i = (n - m + 1023) << 52;
    *half = a.f;
    *rest = b.f;
    return MA(k, -0x1.a39ef35793c76p-33, MA(k, -0x1.62e42feep-1, x));
}}

/* x, brought to where 2 to its power neither over- nor underflows on the way; NaN stays */
INLINE double F(r_bound)(double x) {{
    x = x < P(-200.0, -746.0) ? P(-200.0, -746.0) : x;
    return x > P(200.0, 710.0) ? P(200.0, 710.0) : x;
}}

INLINE double F(r_exp)(double x) {{
    double half, rest, r = F(r_parts)(F(r_bound)(x), &half, &rest);
    double p = {_both("r", _EXP_F, _EXP_D)};
    return (MA(p * r, r, r) + 1) * half * rest;
}}

INLINE double F(r_expm1)(double x) {{
    double half, rest, r = F(r_parts)(F(r_bound)(x), &half, &rest);
    double p = {_both("r", _EXP_F, _EXP_D)};
    p = MA(p * r, r, r);
    double two = half * rest;
    double y = x > 350.0 ? (p + 1) * half * rest : MA(p, two, two - 1);
    return x == 0 ? x : y;
}}
"""

_LOG = f"""
/* the logarithm of a normal number above 0, and of 2^-e times one */
INLINE double F(r_log_core)(double x, double e) {{
    union {{ double f; int64_t i; }} u;
    u.f = x;
    /* x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2) */
    int64_t k = (u.i - 0x3FE6A09E667F3BCD) >> 52;
    u.i = u.i - (int64_t)((uint64_t)k << 52);
    e = (double)k - e;
    double f = u.f - 1, s = f / (2 + f), z = s * s, h = 0.5 * f * f;
    double p = z * {_both("z", _LOG_F, _LOG_D)};
    double y = MA(s, h + p, e * 1.90821492927058770002e-10);
    return MA(e, 6.93147180369123816490e-01, (y - h) + f);
}}

INLINE double F(r_log)(double x) {{
    double small = x < 0x1p-1022 ? 0x1p+54 : 1;
    double y = F(r_log_core)(x * small, small != 1 ? 54.0 : 0);
    y = x == INFINITY ? x : y;
    y = x == 0 ? -INFINITY : y;
    y = x < 0 ? NAN : y;
    return x != x ? x : y;
}}

INLINE double F(r_log1p)(double x) {{
    double u = 1 + x, lost = u - 1;
    double y = F(r_log)(u) + (x - lost) / u;
    y = u == INFINITY ? u : y;
    y = u == 0 ? -INFINITY : y;
    return u == 1 ? x : y;
}}
"""

_BUILT = """
INLINE double F(r_tanh)(double x) {
    double a = __builtin_fabs(x), t = F(r_expm1)(2 * a);
    /* for double, 1 - 2 / (t + 2) is the nearer where t is large, and no infinity over another */
    double y = P(t / (t + 2), a < 0.5 ? t / (t + 2) : 1 - 2 / (t + 2));
    y = __builtin_copysign(y, x);
    y = x == 0 ? x : y;
    return x != x ? x : y;
}

INLINE double F(r_expit)(double x) { return 1 / (1 + F(r_exp)(-x)); }

INLINE double F(r_log_expit)(double x) {
    double e = F(r_exp)(-__builtin_fabs(x)), u = 1 + e;
    double y = (x < 0 ? x : 0) - (F(r_log_core)(u, 0) + (e - (u - 1)) / u);
    return x != x ? x : y;
}
"""

_ERF = f"""
INLINE float r_erf_f(float given) {{
    double x = given, a = __builtin_fabs(x), z = x * x;
    double near = x * {_poly("z", _ERF_F)};
    double t = 1 / MA(0.3275911, a, 1);
    double far = 1 - {_poly("t", _ERFC_F)} * r_exp_s(-z);
    double y = a < 1 ? near : __builtin_copysign(far, x);
    return (float)(x != x ? x : y);
}}
"""

# --- in float, where multiplications and additions are fused ------------------------------------
# (exp(r) - 1 - r) / r², for |r| <= ln(2) / 2
_EXP_Q = (1.9891105695622453e-4, 1.3926270554805013e-3, 8.333310821184041e-3,
          4.166655408675157e-2, 1.6666666681729125e-1, 0.5)  # fmt: skip
# ln(2) to 16 bits, so that whole multiples of it are exact, and the rest
_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.42860682030941723212e-6
# (log(1 + f) - f) / f², for 1 + f between sqrt(1/2) and sqrt(2)
_LOG_Q = (0.06728194041232628, -0.11678844947625158, 0.11901094460194024, -0.12406904568955228,
          0.14217608818110858, -0.16667710422984647, 0.2000222399689181, -0.2500002533378199,
          0.33333310756781465, -0.49999999755048236)  # fmt: skip
# erf(a) / a - 1 in powers of a², for a < 0.9; and -log(erfc(a)) - a in powers of a, up to 4
_ERF_NEAR = (8.454661681883764e-5, -8.162371944903349e-4, 5.202736889821774e-3,
             -2.686007417800568e-2, 1.1283707503367812e-1, -3.7612634507414994e-1,
             1.2837916671692e-1)  # fmt: skip
_ERF_FAR = (1.9923059610430313e-4, -3.075285663087979e-3, 2.2353746395372142e-2,
            -1.0419249139573475e-1, -6.368876311165005e-1, -1.278489322415113e-1,
            -1.5414817352824364e-4)  # fmt: skip

_FUSED = f"""
/* x = n ln(2) + *r, with n whole */
INLINE int32_t r_reduce_q(float x, float *r) {{
    union {{ float f; int32_t i; }} u;
    u.f = __builtin_fmaf(x, 0x1.715476p+0f, 0x1.8p+23f); /* n is in the lower bits */
    float k = u.f - 0x1.8p+23f;
    *r = __builtin_fmaf(-k, {_LN2_LOW.hex()}f, __builtin_fmaf(-k, {_LN2_HIGH.hex()}f, x));
    return u.i - 0x4b400000;
}}

INLINE float r_two_q(int32_t n) {{
    union {{ float f; int32_t i; }} u;
    u.i = (n + 127) << 23;
    return u.f;
}}

/* exp(x) = (*high + *low) *half *rest, for x from -105 to 90; *high is 1 + r, and *low what was lost
   of it, with the rest of the series */
INLINE void r_parts_q(float x, float *high, float *low, float *half, float *rest) {{
    float r;
    int32_t n = r_reduce_q(x, &r);
    *high = 1 + r;
    *low = __builtin_fmaf({_fused("r", _EXP_Q)}, r * r, r - (*high - 1));
    *half = r_two_q(n >> 1);
    *rest = r_two_q(n - (n >> 1));
}}

INLINE float r_exp_fq(float x) {{
    float high, low, half, rest;
    x = x < -105.0f ? -105.0f : x;
    x = x > 90.0f ? 90.0f : x;
    r_parts_q(x, &high, &low, &half, &rest);
    return (high + low) * half * rest;
}}

/* of e = exp(-|x|), so that nothing overflows: 1 or e, over 1 + e, and then what e (where it is the
   dividend) and 1 + e lost by rounding, to first order */
INLINE float r_expit_fq(float x) {{
    float high, low, half, rest, t = -__builtin_fabsf(x);
    t = t < -105.0f ? -105.0f : t;
    r_parts_q(t, &high, &low, &half, &rest);
    float sum = high + low, lost = (high - sum) + low, e = sum * half * rest;
    float d = 1 + e, d_lost = e - (d - 1), q = (x < 0 ? e : 1) / d, over = x < 0 ? 1 - q : q;
    return __builtin_fmaf(q * over, (x < 0 ? lost : 0) - d_lost, q);
}}

/* log(2^k (1 + f)) */
INLINE float r_log_sum_q(float k, float f) {{
    float big = __builtin_fmaf(k, {_LN2_HIGH.hex()}f, f);
    float lost = f - __builtin_fmaf(-k, {_LN2_HIGH.hex()}f, big);
    float p = {_fused("f", _LOG_Q)};
    return big + __builtin_fmaf(p * f, f, __builtin_fmaf(k, {_LN2_LOW.hex()}f, lost));
}}

INLINE float r_log_fq(float x) {{
    union {{ float f; int32_t i; }} u;
    int small = x < 0x1p-126f;
    u.f = small ? x * 0x1p+23f : x;
    int32_t e = (u.i - 0x3f3504f3) & (int32_t)0xff800000;
    u.i = u.i - e;
    float y = r_log_sum_q((float)(e >> 23) - (small ? 23.0f : 0), u.f - 1);
    y = x == INFINITY ? x : y;
    y = x == 0 ? -INFINITY : y;
    y = x < 0 ? NAN : y;
    return x != x ? x : y;
}}

/* log(1 + x), of which u is 1 + x: the digits of x that u has not are not lost */
INLINE float r_log1p_core_q(float x, float u) {{
    union {{ float f; int32_t i; }} v, four; /* four times 2^-k, which is a normal number for all k */
    v.f = u;
    int32_t e = (v.i - 0x3f3504f3) & (int32_t)0xff800000;
    four.i = 0x40800000 - e;
    float f = __builtin_fmaf(four.f, 0.25f * x, __builtin_fmaf(0.25f, four.f, -1.0f));
    float y = r_log_sum_q((float)(e >> 23), f);
    return u == 1 ? x : y;
}}

INLINE float r_log1p_fq(float x) {{
    float u = 1 + x, y = r_log1p_core_q(x, u);
    y = u == INFINITY ? u : y;
    y = u == 0 ? -INFINITY : y;
    y = u < 0 ? NAN : y;
    return x != x ? x : y;
}}

INLINE float r_log_expit_fq(float x) {{
    float high, low, half, rest, t = -__builtin_fabsf(x);
    t = t < -105.0f ? -105.0f : t;
    r_parts_q(t, &high, &low, &half, &rest);
    float e = (high + low) * half * rest;
    return (x < 0 ? x : 0) - r_log1p_core_q(e, 1 + e);
}}

INLINE float r_erf_fq(float x) {{
    float a = __builtin_fabsf(x), r;
    a = a > 4 ? 4 : a; /* beyond it is 1 */
    float z = a * a, near = __builtin_fmaf({_fused("z", _ERF_NEAR)}, a, a);
    float two = r_two_q(r_reduce_q({_fused("a", _ERF_FAR)} - a, &r));
    float far = 1 - __builtin_fmaf(__builtin_fmaf({_fused("r", _EXP_Q)}, r * r, r), two, two);
    return __builtin_copysignf(a < 0.9f ? near : far, x);
}}
"""

_BASICS = """
INLINE T F(r_fabs)(T x) { return K(__builtin_fabsf(x), __builtin_fabs(x)); }
INLINE T F(r_copysign)(T x, T y) { return K(__builtin_copysignf(x, y), __builtin_copysign(x, y)); }
INLINE T F(r_sqrt)(T x) { return K(__builtin_sqrtf(x), __builtin_sqrt(x)); }
INLINE T F(r_floor)(T x) { return K(__builtin_floorf(x), __builtin_floor(x)); }
INLINE T F(r_ceil)(T x) { return K(__builtin_ceilf(x), __builtin_ceil(x)); }
INLINE T F(r_trunc)(T x) { return K(__builtin_truncf(x), __builtin_trunc(x)); }
INLINE T F(r_rint)(T x) { return K(__builtin_rintf(x), __builtin_rint(x)); }
INLINE T F(r_maximum)(T a, T b) { T y = b > a ? b : a; return b != b ? b : y; }
INLINE T F(r_minimum)(T a, T b) { T y = b < a ? b : a; return b != b ? b : y; }
INLINE T F(r_fmax)(T a, T b) { T y = a >= b ? a : b; return b != b ? a : y; }
INLINE T F(r_fmin)(T a, T b) { T y = a <= b ? a : b; return b != b ? a : y; }
INLINE T F(r_xlogy)(T x, T y, T log) { T z = x == 0 ? 0 : x * log; return y != y ? y : z; }
INLINE T F(r_sign)(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }
"""

_INLINE = """
/* A call would end SIMD, however large a function is. */
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
"""

_IN_FLOAT = ("exp", "log", "log1p", "expit", "log_expit")  # have a form in float
_WIDE = ("exp", "expm1", "log", "log1p", "tanh", "expit", "log_expit")


# What is taken in the place of what, on processors that multiply and add at one step.
FUSED = tuple(f"r_{name}_{letter}" for name in (*_WIDE, "erf") for letter in "fd")[:-1]


def c_functions() -> str:
    """The C of all of them, in both types: those that end in _s are for float, but in double. All
    are there a second time, with a q at the end, for processors that multiply and add at one step
    (`MA`); see `FUSED`."""
    parts = [_INLINE]
    for name, letter, which in (("float", "f", "a"), ("double", "d", "b")):
        parts += [
            f"#define T {name}", f"#define F(name) name##_{letter}", f"#define K(a, b) ({which})",
            _BASICS, "#undef T\n#undef F\n#undef K",
        ]  # fmt: skip
    parts.append("INLINE double r_erf_d(double x) { return erf(x); }")
    for q, step in (("", "((a) * (b) + (c))"), ("q", "__builtin_fma(a, b, c)")):
        parts.append(f"#define MA(a, b, c) {step}")
        for letter, which in (("s", "a"), ("d", "b")):
            parts += [
                f"#define F(name) name##_{letter}{q}", f"#define P(a, b) ({which})",
                _EXP, _LOG, _BUILT, "#undef F\n#undef P",
            ]  # fmt: skip
        parts += [
            f"INLINE float r_{name}_f{q}(float x) {{ return (float)r_{name}_s{q}(x); }}"
            for name in _WIDE
            if not (q and name in _IN_FLOAT)
        ]
        parts += [_ERF if not q else "", "#undef MA"]
    return "\n".join([*parts, _FUSED])
