"""The functions of real numbers that kernels call, as C that compilers turn into SIMD: no branches,
no tables, no calls.

Each is written once for both types by macros: `T` is float or double, `F(name)` the function's name
in that type, `K(a, b)` a constant that is `a` for float and `b` for double. Errors, measured over
all exponents: below 2 units in the last place; infinities, NaN and signed zeros as in libm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def _poly(x: str, coefficients: Sequence[float]) -> str:
    """Horner's scheme, the highest power first."""
    text = coefficients[0].hex()
    for c in coefficients[1:]:
        text = f"({text} * {x} + {c.hex()})"
    return text


def _both(x: str, single: Sequence[float], double: Sequence[float]) -> str:
    return f"K((T){_poly(x, single)}, {_poly(x, double)})"


# (exp(r) - 1 - r) / r² for |r| <= ln(2) / 2: minimax for float, the series for double
_EXP_F = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
          5.0000001201e-1)  # fmt: skip
_EXP_D = tuple(1 / math.factorial(k) for k in range(14, 1, -1))
# (log((1 + s) / (1 - s)) - 2 s) / (2 s³) · 2, in powers of s²: Remez, as every libm has it
_LOG_F = (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693)
_LOG_D = (1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
          2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
          6.666666666666735130e-01)  # fmt: skip
# (tanh(x) - x) / x³ in powers of x², for |x| < 0.625
_TANH_F = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
           -3.33332819422e-1)  # fmt: skip
# erf(x) / x in powers of x², for |x| < 1
_ERF_F = (7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3,
          -2.685381193529856e-2, 1.128358514861418e-1, -3.761262582423300e-1,
          1.128379165726710)  # fmt: skip
# erfc(x) exp(x²) in powers of t = 1 / (1 + 0.3275911 x), for 1 <= x < 4.5 (beyond it is nothing)
_ERFC_F = (1.123453281937423, -1.7126611219443446, 1.849773866257897, -0.633995553409172,
           0.39597227047990163, -0.022592557068581442)  # fmt: skip

_EXP_PARTS = f"""
/* 2 to the power of `k`, a whole number in the lower bits of `bits`, in two factors */
static inline T F(r_parts)(T x, T *half, T *rest) {{
    union {{ T f; Z i; }} u, a, b;
    u.f = x * (T)0x1.71547652b82fep+0 + K((T)0x1.8p+23, 0x1.8p+52);
    T k = u.f - K((T)0x1.8p+23, 0x1.8p+52);
    Z n = u.i - K(0x4B400000, 0x4338000000000000);
    Z m = n >> 1;
    a.i = (m + K(127, 1023)) << K(23, 52);
    b.i = (n - m + K(127, 1023)) << K(23, 52);
    *half = a.f;
    *rest = b.f;
    T r = x - k * K((T)0x1.63p-1, 0x1.62e42feep-1);
    return r - k * K((T)-2.12194440e-4, 0x1.a39ef35793c76p-33);
}}

/* x, brought to where 2 to its power neither over- nor underflows on the way; NaN stays */
static inline T F(r_bound)(T x) {{
    x = x < K((T)-104, -746.0) ? K((T)-104, -746.0) : x;
    return x > K((T)89, 710.0) ? K((T)89, 710.0) : x;
}}

static inline T F(r_exp)(T x) {{
    T half, rest, r = F(r_parts)(F(r_bound)(x), &half, &rest);
    T p = {_both("r", _EXP_F, _EXP_D)};
    return ((p * r * r + r) + 1) * half * rest;
}}

static inline T F(r_expm1)(T x) {{
    T half, rest, r = F(r_parts)(F(r_bound)(x), &half, &rest);
    T p = {_both("r", _EXP_F, _EXP_D)};
    p = p * r * r + r;
    T two = half * rest;
    T y = x > K((T)44, 350.0) ? (p + 1) * half * rest : p * two + (two - 1);
    return x == 0 ? x : y;
}}
"""

_LOG = f"""
static inline T F(r_log)(T x) {{
    union {{ T f; Z i; }} u;
    T small = x < K((T)0x1p-126, 0x1p-1022) ? K((T)0x1p+25, 0x1p+54) : 1;
    u.f = x * small;
    /* x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2) */
    Z i = u.i - K(0x3F3504F3, 0x3FE6A09E667F3BCD);
    Z k = i >> K(23, 52);
    u.i = u.i - (Z)((N)k << K(23, 52));
    T e = (T)k - (small != 1 ? K((T)25, 54.0) : 0);
    T f = u.f - 1, s = f / (2 + f), z = s * s, h = (T)0.5 * f * f;
    T p = z * {_both("z", _LOG_F, _LOG_D)};
    T y = s * (h + p) + e * K((T)9.0580006145e-6, 1.90821492927058770002e-10);
    y = (y - h) + f + e * K((T)0x1.62e3p-1, 6.93147180369123816490e-01);
    y = x == (T)INFINITY ? x : y;
    y = x == 0 ? -(T)INFINITY : y;
    return x < 0 || x != x ? (T)NAN : y;
}}

static inline T F(r_log1p)(T x) {{
    T u = 1 + x, lost = u - 1;
    T y = F(r_log)(u) + (x - lost) / u;
    y = u == (T)INFINITY ? u : y;
    y = u == 0 ? -(T)INFINITY : y;
    return u == 1 ? x : y;
}}
"""

_BUILT = f"""
static inline T F(r_tanh)(T x) {{
    T a = F(r_fabs)(x);
    T t = F(r_expm1)(2 * a);
    T large = 1 - 2 / (t + 2);
    T small = K(x + x * (x * x) * (T){_poly("(x * x)", _TANH_F)}, F(r_copysign)(t / (t + 2), x));
    T y = F(r_copysign)(large, x);
    y = a < K((T)0.625, 0.5) ? small : y;
    return x == 0 || x != x ? x : y;
}}

static inline T F(r_expit)(T x) {{ return 1 / (1 + F(r_exp)(-x)); }}

static inline T F(r_log_expit)(T x) {{
    T y = F(r_log1p)(F(r_exp)(-F(r_fabs)(x)));
    return (x < 0 ? x : 0) - y;
}}
"""

_ERF = f"""
static inline float r_erf_f(float x) {{
    float a = r_fabs_f(x), z = x * x;
    float near = x * (float){_poly("z", _ERF_F)};
    float t = 1 / (1 + 0.3275911f * a);
    float far = 1 - (float){_poly("t", _ERFC_F)} * r_exp_f(-z);
    float y = a < 1 ? near : r_copysign_f(far, x);
    return x != x ? x : y;
}}
static inline double r_erf_d(double x) {{ return erf(x); }}
"""

_BASICS = """
static inline T F(r_fabs)(T x) { return K(__builtin_fabsf(x), __builtin_fabs(x)); }
static inline T F(r_copysign)(T x, T y) { return K(__builtin_copysignf(x, y), __builtin_copysign(x, y)); }
static inline T F(r_sqrt)(T x) { return K(__builtin_sqrtf(x), __builtin_sqrt(x)); }
static inline T F(r_floor)(T x) { return K(__builtin_floorf(x), __builtin_floor(x)); }
static inline T F(r_ceil)(T x) { return K(__builtin_ceilf(x), __builtin_ceil(x)); }
static inline T F(r_trunc)(T x) { return K(__builtin_truncf(x), __builtin_trunc(x)); }
static inline T F(r_rint)(T x) { return K(__builtin_rintf(x), __builtin_rint(x)); }
static inline T F(r_maximum)(T a, T b) { return a > b || a != a ? a : b; }
static inline T F(r_minimum)(T a, T b) { return a < b || a != a ? a : b; }
static inline T F(r_fmax)(T a, T b) { return a >= b || b != b ? a : b; }
static inline T F(r_fmin)(T a, T b) { return a <= b || b != b ? a : b; }
static inline T F(r_sign)(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); }
"""

_TYPES = (
    ("float", "f", "int32_t", "uint32_t", "a"),
    ("double", "d", "int64_t", "uint64_t", "b"),
)


def c_functions() -> str:
    """The C of all of them, in both types."""
    parts = []
    for name, letter, whole, unsigned, which in _TYPES:
        parts += [
            f"#define T {name}", f"#define Z {whole}", f"#define N {unsigned}",
            f"#define F(name) name##_{letter}", f"#define K(a, b) ({which})",
            _BASICS, _EXP_PARTS, _LOG, _BUILT,
            "#undef T\n#undef Z\n#undef N\n#undef F\n#undef K",
        ]  # fmt: skip
    return "\n".join([*parts, _ERF])
