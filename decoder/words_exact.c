// The rows of the unsettled part, and the exact sum over the alignments of phones with them: Graves et al. 2006, eq. 6-8.

#include <string.h>

#include "decoder/words_internal.h"

// Phones after the settled part, and their rows.
typedef struct sequence {
    const int32_t *labels; // [n + 1], the last settled one first, 0: none
    int n;
    int64_t from, to; // frames
} sequence;

// Sums smaller than the row's largest one by this factor are left out.
static const double NEGLIGIBLE = 1e-200;

static float *row_at(const lin_words *w, const lin_words_view *s, int64_t frame)
{
    return s->rows + (size_t)(frame - s->h->rows_from) * (size_t)w->V;
}

// The row's probabilities divided by the largest one; returns the logarithm of the largest.
static double scaled(const float *row, int V, double *p)
{
    float most = row[0];
    for (int v = 1; v < V; v++) most = fmaxf(most, row[v]);
    for (int v = 0; v < V; v++) p[v] = exp((double)row[v] - (double)most);
    return (double)most;
}

// Logarithms of the sums over the alignments that end in the last phone, and in blank after it; NAN if a row has infinities.
// State 0 is the settled label, 1 the blank after it, 2 i phone i, 2 i + 1 the blank after that.
static void align_all(const lin_words *w, const lin_words_view *s, const sequence *q, const double settled[2], double ends[2])
{
    double *sums = s->sums, *p = s->sums + 2 * w->n_traceback + 2;
    const int last = 2 * q->n + 1;
    double scale = fmax(settled[0], settled[1]);
    int low = 0, high = 1;
    sums[0] = exp(settled[LIN_LABEL_ENDING] - scale);
    sums[1] = exp(settled[LIN_BLANK_ENDING] - scale);
    ends[0] = ends[1] = -INFINITY;
    for (int64_t frame = q->from; frame < q->to; frame++) {
        const float *row = row_at(w, s, frame);
        if (isnan(row[0])) continue;
        double largest = 0;
        const double most = scaled(row, w->V, p);
        if (!isfinite(most)) {
            ends[0] = ends[1] = NAN;
            return;
        }
        scale += most;
        for (int more = 0; more < 2 && high < last; more++) sums[++high] = 0;
        const int64_t least = 2 * (q->n - (q->to - 1 - frame)); // from earlier states the rest does not reach the last phone
        for (int i = high; i >= low; i--) {
            double sum = sums[i] + (i > low ? sums[i - 1] : 0);
            if (i - 2 >= low && i % 2 == 0 && q->labels[i / 2] != q->labels[i / 2 - 1]) sum += sums[i - 2];
            sums[i] = i < least ? 0 : sum * (i % 2 ? p[0] : i ? p[q->labels[i / 2]] : q->labels[0] ? p[q->labels[0]] : 0);
            largest = fmax(largest, sums[i]);
        }
        if (!(largest > 0)) return;
        for (int i = low; i <= high; i++) sums[i] /= largest;
        scale += log(largest);
        while (sums[low] < NEGLIGIBLE) low++;
        while (sums[high] < NEGLIGIBLE) high--;
    }
    ends[LIN_LABEL_ENDING] = low <= last - 1 && last - 1 <= high ? scale + log(sums[last - 1]) : -INFINITY;
    ends[LIN_BLANK_ENDING] = high == last ? scale + log(sums[last]) : -INFINITY;
}

static void take_labels(const lin_words_view *s, const lin_words_traceback *of, int first, int last, sequence *q)
{
    s->labels[0] = s->h->settled_label;
    for (int i = first; i >= last; i--) s->labels[++q->n] = s->traces[of->phones[i].trace].label;
}

double lin_words_exact(const lin_words *w, const lin_words_view *s, const lin_words_traceback *of)
{
    sequence q = {s->labels, 0, s->h->rows_from, s->h->frame};
    double ends[2];
    if (!w->n_rows || s->h->rows_lost) return NAN;
    take_labels(s, of, of->n - 1, 0, &q);
    align_all(w, s, &q, s->h->settled_sums, ends);
    return isnan(ends[0]) ? NAN : lin_words_log_add(ends[0], ends[1]);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------ */

int lin_words_rows_full(const lin_words *w, const lin_words_view *s)
{
    return w->n_rows && !s->h->rows_lost && s->h->frame - s->h->rows_from >= w->n_rows;
}

void lin_words_keep_row(const lin_words *w, lin_words_view *s, const float *logp, int over)
{
    if (!w->n_rows || s->h->rows_lost) return;
    float *row = row_at(w, s, s->h->frame);
    memcpy(row, logp, (size_t)w->V * sizeof *row);
    row[0] = over ? NAN : lin_words_blank(w, logp);
}

// The sums after the phones first .. last of a trace-back (none if last is larger), whose rows are before `limit`.
static void settle(const lin_words *w, lin_words_view *s, const lin_words_traceback *of, int first, int last, int64_t limit)
{
    lin_words_header *h = s->h;
    sequence q = {s->labels, 0, h->rows_from, limit};
    double ends[2];
    if (!w->n_rows || h->rows_lost || limit <= h->rows_from) return;
    take_labels(s, of, first, last, &q);
    align_all(w, s, &q, h->settled_sums, ends);
    if (!(fmax(ends[0], ends[1]) > -INFINITY)) h->rows_lost = 1;
    if (h->rows_lost) return;
    memmove(s->rows, row_at(w, s, limit), (size_t)(h->frame - limit) * (size_t)w->V * sizeof *s->rows);
    memcpy(h->settled_sums, ends, sizeof ends);
    h->settled_label = q.labels[q.n];
    h->rows_from = limit;
}

void lin_words_settle_rows(const lin_words *w, lin_words_view *s, const lin_words_traceback *of, int64_t limit)
{
    settle(w, s, of, of->n - 1, of->ends[of->n_words - 1], limit);
}

void lin_words_settle_silence(const lin_words *w, lin_words_view *s) { settle(w, s, NULL, -1, 0, s->h->frame); }

int lin_words_good_rows(const lin_words *w, const lin_words_view *s)
{
    const lin_words_header *h = s->h;
    if (!w->n_rows) return 1;
    if (h->rows_lost != 0) return h->rows_lost == 1;
    if (h->rows_from < h->first_frame || h->rows_from > h->frame || h->frame - h->rows_from > w->n_rows) return 0;
    if (h->settled_label < 0 || h->settled_label >= w->V) return 0;
    for (int i = 0; i < 2; i++) {
        if (h->settled_sums[i] != -INFINITY && !(fabs(h->settled_sums[i]) < 1e15)) return 0;
    }
    if (h->settled_sums[0] == -INFINITY && h->settled_sums[1] == -INFINITY) return 0;
    for (int64_t frame = h->rows_from; frame < h->frame; frame++) {
        const float *row = row_at(w, s, frame);
        for (int v = 1; v < w->V && !isnan(row[0]); v++) {
            if (isnan(row[v])) return 0;
        }
    }
    return 1;
}
