"""Gamma, Poisson and binomial numbers as C: the loops of `random.rejection`, step by step.

How many uniforms a number takes depends on the uniforms, so these are drawn one after the other. A
method writes a flat array of float64 from flat arrays of parameters; it answers False where one of
these is so large or so odd that its loop might not end, and has drawn nothing then.
"""

from __future__ import annotations

from rushlight.random.rejection import SQUEEZE, STIRLING

_TEXT = """
/* What a number of each sort takes: how many arrays of parameters there are, whether the parameters
   of an element can be drawn with, and one number. */
static int gamma_fits(const double *p) { return isfinite(p[3]) && isfinite(p[1]); }

/* Marsaglia and Tsang 2000; p: alpha, the power that brings it back below 1 or 0, d and c */
static double one_gamma(Twister *t, const double *p) {
    double scale = 1.0;
    const double d = p[2], c = p[3];
    if (p[1] != 0.0) {
        if (p[0] == 0.0) return 0.0;
        scale = pow(1.0 - one_unit(t), p[1]);
    }
    for (;;) {
        double x, y;
        do {
            x = one_normal(t);
            y = 1.0 + c * x;
        } while (y <= 0.0);
        const double cube = y * y * y, u = 1.0 - one_unit(t), square = x * x;
        if (u < 1.0 - @SQUEEZE * square * square ||
            log(u) < 0.5 * square + d * (1.0 - cube + log(cube)))
            return scale * d * cube;
    }
}

static int poisson_fits(const double *p) { return p[0] <= 1e15; }

/* Hörmann 1993 for large rates; else how many uniforms it takes until their product is small */
static double one_poisson(Twister *t, const double *p) {
    const double rate = p[0];
    if (rate == 0.0) return 0.0;
    if (rate < 10.0) {
        const double least = exp(-rate);
        double product = one_unit(t), count = 0.0;
        for (; product > least; product *= one_unit(t)) count += 1.0;
        return count;
    }
    const double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    const double quick = 0.9277 - 3.6224 / (b - 2.0);
    for (;;) {
        const double u = one_unit(t) - 0.5, height = one_unit(t), side = 0.5 - fabs(u);
        if (side == 0.0) continue;
        const double count = floor((2.0 * a / side + b) * u + rate + 0.43);
        if (side >= 0.07 && height <= quick) return count;
        if (count < 0 || (side < 0.013 && height > side)) continue;
        if (height == 0.0) return count;
        const double inverse = log(1.1239 + 1.1328 / (b - 3.4));
        const double found = log(height) + inverse - log(a / (side * side) + b);
        if (found <= -rate + count * log(rate) - lgamma(count + 1.0)) return count;
    }
}

static int binomial_fits(const double *p) { return !(p[0] > 1e15); }

/* what Stirling's formula lacks of log(k!) */
static double stirling_tail(double k) {
    static const double first[] = {@STIRLING};
    if (k <= 9) return first[(int)k];
    const double square = (k + 1.0) * (k + 1.0);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0);
}

/* Hörmann 1993, of a probability up to 1/2 */
static double binomial_by_box(Twister *t, double tries, double prob) {
    const double spread = sqrt(tries * prob * (1.0 - prob)), b = 1.15 + 2.53 * spread;
    const double a = -0.0873 + 0.0248 * b + 0.01 * prob, centre = tries * prob + 0.5;
    const double quick = 0.92 - 4.2 / b, odds = prob / (1.0 - prob);
    const double alpha = (2.83 + 5.1 / b) * spread;
    const double m = floor((tries + 1.0) * prob);
    for (;;) {
        const double u = one_unit(t) - 0.5, height = one_unit(t), side = 0.5 - fabs(u);
        if (side == 0.0) continue;
        const double k = floor((2.0 * a / side + b) * u + centre);
        if (side >= 0.07 && height <= quick) return k;
        if (k < 0 || k > tries) continue;
        if (height == 0.0) return k;
        const double bound = (m + 0.5) * log((m + 1.0) / (odds * (tries - m + 1.0))) +
                             (tries + 1.0) * log((tries - m + 1.0) / (tries - k + 1.0)) +
                             (k + 0.5) * log(odds * (tries - k + 1.0) / (k + 1.0)) +
                             stirling_tail(m) + stirling_tail(tries - m) - stirling_tail(k) -
                             stirling_tail(tries - k);
        if (log(height * alpha / (a / (side * side) + b)) <= bound) return k;
    }
}

/* p: tries, probability, the rarer outcome's, log of the other's, whether uniforms are rounded */
static double one_binomial(Twister *t, const double *p) {
    const double tries = p[0], prob = p[1], rare = p[2];
    double found = -1.0;
    if (tries <= 0.0 || prob <= 0.0) return 0.0;
    if (prob >= 1.0) return tries;
    if (prob != prob || tries != tries) return NAN;
    if (tries * rare >= 10.0) found = binomial_by_box(t, tries, rare);
    else
        for (double reached = 0.0; reached <= tries; found += 1.0) { /* gaps between successes */
            double u = one_unit(t);
            if (p[4] != 0.0) u = (float)u;
            reached += u > 0.0 ? ceil(log(u) / p[3]) : INFINITY;
        }
    return prob > 0.5 ? tries - found : found;
}

#define REJECTED(NAME, COUNT)                                                                     \\
    static PyObject *twister_##NAME##s(Twister *t, PyObject *const *args, Py_ssize_t count) {     \\
        const double *from[COUNT];                                                                \\
        if (few_arguments(count, COUNT + 1)) return NULL;                                         \\
        for (int k = 0; k <= COUNT; k++)                                                          \\
            if (fillable(args[k]) != NPY_DOUBLE ||                                                \\
                PyArray_SIZE((PyArrayObject *)args[k]) != PyArray_SIZE((PyArrayObject *)args[0])) \\
                Py_RETURN_FALSE;                                                                  \\
        for (int k = 0; k < COUNT; k++) from[k] = PyArray_DATA((PyArrayObject *)args[k + 1]);     \\
        double p[COUNT];                                                                          \\
        FILLING(args[0])                                                                          \\
        int fits = 1;                                                                             \\
        for (npy_intp i = 0; i < n && fits; i++) {                                                \\
            for (int k = 0; k < COUNT; k++) p[k] = from[k][i];                                    \\
            fits = NAME##_fits(p);                                                                \\
        }                                                                                         \\
        for (npy_intp i = 0; i < n && fits; i++) {                                                \\
            for (int k = 0; k < COUNT; k++) p[k] = from[k][i];                                    \\
            ((double *)to)[i] = one_##NAME(t, p);                                                 \\
        }                                                                                         \\
        end_draw(t, saved);                                                                       \\
        return PyBool_FromLong(fits);                                                             \\
    }
REJECTED(gamma, 4)
REJECTED(poisson, 1)
REJECTED(binomial, 5)
"""

METHODS = """
    QUICK(gammas, "gammas(a, alpha, power, d, c): whether it could."),
    QUICK(poissons, "poissons(a, rate), likewise."),
    QUICK(binomials, "binomials(a, tries, p, rarer, log, rounds), likewise."),
"""


def c_rejected() -> str:
    """The C of all of it, which stands between the fills of `codegen.draws` and their methods."""
    text = _TEXT.replace("@STIRLING", ", ".join(map(float.hex, STIRLING)))
    return text.replace("@SQUEEZE", SQUEEZE.hex())
