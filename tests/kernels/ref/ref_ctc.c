// Softmax, log-softmax, cross entropy, and connectionist temporal classification (Graves et al. 2006) in the log domain.
#include <math.h>
#include <string.h>

#include "tests/kernels/ref/ref.h"

void lin_ref_log_softmax(lin_exec *exec, double *logp, const double *logits, int rows, int V)
{
    (void)exec;
    for (size_t r = 0; r < (size_t)rows; r++) {
        const double *in = logits + r * (size_t)V;
        double top = in[0], sum = 0;
        for (int v = 1; v < V; v++) top = fmax(top, in[v]);
        for (int v = 0; v < V; v++) sum += exp(in[v] - top);
        double norm = top + log(sum);
        for (int v = 0; v < V; v++) logp[r * (size_t)V + (size_t)v] = in[v] - norm;
    }
}

void lin_ref_softmax_rows(lin_exec *exec, double *p, const double *logits, int rows, int V)
{
    lin_ref_log_softmax(exec, p, logits, rows, V);
    for (size_t i = 0; i < (size_t)rows * (size_t)V; i++) p[i] = exp(p[i]);
}

void lin_ref_softmax_rows_backward(lin_exec *exec, double *dlogits, const double *dp, const double *p, int rows, int V)
{
    (void)exec;
    for (size_t r = 0; r < (size_t)rows; r++) {
        const size_t at = r * (size_t)V;
        double mean = 0;
        for (size_t v = 0; v < (size_t)V; v++) mean += p[at + v] * dp[at + v];
        for (size_t v = 0; v < (size_t)V; v++) dlogits[at + v] = p[at + v] * (dp[at + v] - mean);
    }
}

void lin_ref_cross_entropy(lin_exec *exec, double *loss, double *dlogits, const double *logp, const lin_segments *segments,
                           const int *targets, int V, const double *scale)
{
    (void)exec;
    for (int b = 0; b < segments->B; b++) {
        loss[b] = 0;
        for (int t = segments->offsets[b]; t < segments->offsets[b + 1]; t++) {
            const double *row = logp + (size_t)t * (size_t)V;
            if (targets[t] >= 0) loss[b] -= row[targets[t]];
            for (int v = 0; dlogits && v < V; v++)
                dlogits[(size_t)t * (size_t)V + (size_t)v] = targets[t] < 0 ? 0 : *scale * (exp(row[v]) - (v == targets[t]));
        }
    }
}

// ln(e^a + e^b); NaN if a or b is NaN.
static double log_add(double a, double b)
{
    if (a == -INFINITY) return b;
    if (b == -INFINITY) return a;
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

// Symbol s of the label sequence with a blank before, between and after the labels, 2U+1 symbols.
static int symbol(const int *labels, int s) { return s % 2 ? labels[s / 2] : 0; }

// Whether a path may step from symbol s-2 to s over the blank between them: not onto a blank, nor between equal labels.
static int may_skip(const int *labels, int s)
{
    return s >= 2 && symbol(labels, s) != 0 && symbol(labels, s) != symbol(labels, s - 2);
}

// alpha[t, s]: ln of the probability of all beginnings of paths that are at symbol s in frame t, frame t included (eq. 5-7).
static void forward(double *alpha, const double *logp, int T, int V, const int *labels, int S)
{
    for (int t = 0; t < T; t++)
        for (int s = 0; s < S; s++) {
            double reach = -INFINITY;
            if (t == 0) {
                if (s < 2) reach = 0;
            } else {
                const double *before = alpha + (size_t)(t - 1) * (size_t)S;
                reach = before[s];
                if (s >= 1) reach = log_add(reach, before[s - 1]);
                if (may_skip(labels, s)) reach = log_add(reach, before[s - 2]);
            }
            alpha[(size_t)t * (size_t)S + (size_t)s] = reach + logp[(size_t)t * (size_t)V + (size_t)symbol(labels, s)];
        }
}

// beta[t, s]: ln of the probability of all ends of paths that are at symbol s in frame t, frame t not included (eq. 9-11 without
// the factor y_t, so that alpha + beta needs no division by it).
static void backward(double *beta, const double *logp, int T, int V, const int *labels, int S)
{
    for (int t = T - 1; t >= 0; t--)
        for (int s = 0; s < S; s++) {
            double reach = -INFINITY;
            if (t == T - 1) {
                if (s >= S - 2) reach = 0;
            } else {
                const double *after = beta + (size_t)(t + 1) * (size_t)S, *next = logp + (size_t)(t + 1) * (size_t)V;
                reach = after[s] + next[symbol(labels, s)];
                if (s + 1 < S) reach = log_add(reach, after[s + 1] + next[symbol(labels, s + 1)]);
                if (s + 2 < S && may_skip(labels, s + 2)) reach = log_add(reach, after[s + 2] + next[symbol(labels, s + 2)]);
            }
            beta[(size_t)t * (size_t)S + (size_t)s] = reach;
        }
}

// One utterance. dlogits may be NULL.
static double ctc_one(lin_exec *exec, double *dlogits, const double *logp, int T, const int *labels, int U, int V, double scale)
{
    int S = 2 * U + 1;
    if (T == 0) return U == 0 ? 0 : -1;
    size_t cells = (size_t)T * (size_t)S;
    double *alpha = lin_ref_scratch(exec, 2 * cells), *beta = alpha + cells;
    forward(alpha, logp, T, V, labels, S);
    const double *last = alpha + (size_t)(T - 1) * (size_t)S, total = S > 1 ? log_add(last[S - 1], last[S - 2]) : last[0];
    if (dlogits) backward(beta, logp, T, V, labels, S);
    for (int t = 0; dlogits && t < T; t++) {
        double *row = dlogits + (size_t)t * (size_t)V;
        // d(-ln p)/d logit_v = y_v minus the share of the paths that are at v in frame t (eq. 15-16).
        for (int v = 0; v < V; v++) row[v] = total == -INFINITY ? 0 : scale * exp(logp[(size_t)t * (size_t)V + (size_t)v]);
        for (int s = 0; s < S && total != -INFINITY; s++)
            row[symbol(labels, s)] -= scale * exp(alpha[t * S + s] + beta[t * S + s] - total);
    }
    return total == -INFINITY ? -1 : 0 - total;
}

void lin_ref_ctc(lin_exec *exec, double *loss, double *dlogits, const double *logp, const lin_segments *segments,
                 const int *labels, const int *label_offsets, int most_labels, int V, const double *scale)
{
    (void)most_labels;
    const int *offsets = segments->offsets;
    for (int b = 0; b < segments->B; b++) {
        int T = offsets[b + 1] - offsets[b], U = label_offsets[b + 1] - label_offsets[b];
        size_t row = (size_t)offsets[b] * (size_t)V;
        double *gradient = dlogits ? dlogits + row : NULL;
        if (U > T) { // no path; the labels must not be read
            loss[b] = -1;
            for (size_t i = 0; gradient && i < (size_t)T * (size_t)V; i++) gradient[i] = 0;
            continue;
        }
        loss[b] = ctc_one(exec, gradient, logp + row, T, labels ? labels + label_offsets[b] : NULL, U, V, gradient ? *scale : 0);
    }
}

void lin_ref_tally_losses(lin_exec *exec, lin_tally *tally, const double *loss, const lin_segments *segments,
                          const int *label_offsets)
{
    (void)exec;
    const int *offsets = segments->offsets;
    double sum = 0;
    if (tally->bad) return;
    for (int b = 0; b < segments->B; b++) {
        if (label_offsets[b + 1] - label_offsets[b] > offsets[b + 1] - offsets[b]) continue;
        if (!isfinite(loss[b]) || loss[b] < 0) {
            tally->bad = LIN_BAD_LOSS;
            tally->bad_index = b;
            return;
        }
        sum += loss[b];
    }
    tally->loss += sum;
}

// ln of the sum over all label sequences; only = 0..V-1 takes the paths alone that have this output in frame `at`. states [2, 2,
// V, V]: the frame before and this one, after a blank and after a label.
static double sum_sequences(const double *logp, int T, const lin_trigrams *q, int V, int at, int only, double *states)
{
    const size_t n = (size_t)V, S = n * n;
    double total = 0, last = 0;
    memset(states, 0, 4 * S * sizeof *states);
    states[0] = 1;
    for (int t = 0; t < T; t++) {
        const double *y = logp + (size_t)t * n;
        double *was = states + (t & 1 ? 2 * S : 0), *now = states + (t & 1 ? 0 : 2 * S), sum = 0;
        for (size_t b = 0; b < n; b++)
            for (size_t a = 0; a < n; a++) {
                now[b * n + a] = (was[b * n + a] + was[S + b * n + a]) * exp(y[0]);
                now[S + b * n + a] = b ? was[S + b * n + a] * exp(y[b]) : 0;
            }
        for (size_t b = 0; b < n; b++)
            for (size_t a = 0; a < n; a++)
                for (size_t c = 1; c < n; c++) {
                    const double from = was[b * n + a] + (c == b ? 0 : was[S + b * n + a]);
                    const double p = c == b ? (double)q->again[b * n + a] : (double)q->next[(b * n + a) * n + c];
                    now[S + c * n + b] += from * p * exp(y[c]);
                }
        for (size_t i = 0; i < S && t == at; i++) {
            if (only) now[i] = 0;
            if ((int)(i / n) != only) now[S + i] = 0;
        }
        for (size_t i = 0; i < 2 * S; i++) sum += now[i];
        for (size_t i = 0; i < 2 * S && sum > 0; i++) now[i] /= sum;
        total += log(sum);
    }
    const double *end = states + (T & 1 ? 2 * S : 0);
    for (size_t i = 0; i < S; i++) last += (end[i] + end[S + i]) * (double)q->end[i];
    return total + log(last);
}

void lin_ref_denominator(lin_exec *exec, double *sums, double *loss, double *dlogits, const double *logp,
                         const lin_segments *segments, const int *label_offsets, const lin_trigrams *trigrams, int V,
                         double weight, const double *scale)
{
    const size_t n = (size_t)V;
    double *states = lin_ref_scratch(exec, 4 * n * n);
    for (int b = 0; b < segments->B; b++) {
        const int T = segments->offsets[b + 1] - segments->offsets[b], U = label_offsets[b + 1] - label_offsets[b];
        const size_t first = (size_t)segments->offsets[b] * n;
        sums[b] = 0;
        if (U == 0 || U > T) continue;
        sums[b] = sum_sequences(logp + first, T, trigrams, V, -1, 0, states);
        if (!isfinite(sums[b])) {
            sums[b] = NAN;
            for (size_t i = first; i < first + (size_t)T * n && dlogits; i++) dlogits[i] = NAN;
            if (loss) loss[b] = NAN;
            continue;
        }
        for (int t = 0; t < T && dlogits; t++)
            for (size_t v = 0; v < n; v++) {
                const double share = exp(sum_sequences(logp + first, T, trigrams, V, t, (int)v, states) - sums[b]);
                const size_t i = first + (size_t)t * n + v;
                dlogits[i] += weight * *scale * (share - exp(logp[i]));
            }
    }
}
