// align/align.c: against a full matrix written in the simplest way; beams, texts that do not fit, hostile rows, memory limits.
#include "align/align.h"

#include "tests/decoder/paths.h"

enum { MOST_SLOTS = 400, MOST_VARIANTS = 24, LONGEST = 6 };

// A text as plain arrays.
typedef struct plain_text {
    int n_slots, n[MOST_SLOTS], length[MOST_SLOTS][MOST_VARIANTS], labels[MOST_SLOTS][MOST_VARIANTS][LONGEST];
    double logp[MOST_SLOTS][MOST_VARIANTS]; // of the pronunciations
} plain_text;

static plain_text text;

static void random_text(int n_slots, int variants, int longest, int V, uint64_t seed)
{
    uint64_t i = 0;
    text.n_slots = n_slots;
    memset(text.logp, 0, sizeof text.logp);
    for (int w = 0; w < n_slots; w++) {
        text.n[w] = 1 + (int)lin_random_below(seed, i++, (uint32_t)variants);
        for (int v = 0; v < text.n[w]; v++) {
            text.length[w][v] = 1 + (int)lin_random_below(seed, i++, (uint32_t)longest);
            for (int k = 0; k < text.length[w][v]; k++)
                text.labels[w][v][k] = 1 + (int)lin_random_below(seed, i++, (uint32_t)V - 1);
        }
    }
}

// Of every second pronunciation, from -8 to 0; exact in single precision.
static void random_probabilities(uint64_t seed)
{
    uint64_t i = 0;
    for (int w = 0; w < text.n_slots; w++)
        for (int v = 0; v < text.n[w]; v++)
            if (lin_random_below(seed, i++, 2)) text.logp[w][v] = -(double)lin_random_below(seed, i++, 513) / 64;
}

static lin_align_graph graph;
static lin_path path;
static lin_align_report report;

static void drop(void)
{
    lin_path_free(&path);
    lin_align_graph_free(&graph);
}

static lin_status add_text(int V, lin_error *err)
{
    LIN_TRY(lin_align_graph_begin(&graph, V, err));
    for (int w = 0; w < text.n_slots; w++) {
        lin_align_pronunciation list[MOST_VARIANTS];
        for (int v = 0; v < text.n[w]; v++)
            list[v] = (lin_align_pronunciation){.labels = text.labels[w][v], .n = text.length[w][v], .logp = text.logp[w][v]};
        LIN_TRY(lin_align_graph_add(&graph, list, text.n[w], 1, err));
    }
    return LIN_OK;
}

static void add_phones(const char *digits, int V)
{
    OK(lin_align_graph_begin(&graph, V, &err));
    for (; *digits; digits++) {
        const int label = *digits - '0';
        OK(lin_align_graph_add(&graph, &(lin_align_pronunciation){.labels = &label, .n = 1}, 1, 0, &err));
    }
}

// Normalised rows, as sharp as `scale` says; every seventh holds a probability of 0.
static void rows_with_zeros(float *logp, int T, int V, double scale, uint64_t seed)
{
    for (int t = 0; t < T; t++) {
        double sum = 0, x[64];
        for (int v = 0; v < V; v++) {
            x[v] = exp(scale * lin_random_uniform(seed, (uint64_t)(t * V + v)));
            if (t % 7 == 6 && v == 1 + t % (V - 1)) x[v] = 0;
            sum += x[v];
        }
        for (int v = 0; v < V; v++) logp[t * V + v] = (float)log(x[v] / sum);
    }
}

static lin_align_options all(void)
{
    lin_align_options o = lin_align_options_default();
    o.beam = INFINITY;
    o.width = 1 << 30;
    return o;
}

static lin_status try_align(const lin_align_options *o, const float *rows, int T, lin_error *err)
{
    return lin_align_text(&graph, o, rows, T, &path, &report, err);
}

// The pronunciation of a word that the path has; of equal ones the most probable.
static int chosen(int w)
{
    const lin_path_word *word = &path.words[w];
    int which = -1;
    for (int v = 0; v < text.n[w]; v++) {
        int same = word->n_phones == text.length[w][v];
        for (int k = 0; k < word->n_phones && same; k++) same = path.phones[word->first_phone + k].label == text.labels[w][v][k];
        if (same && (which < 0 || text.logp[w][v] > text.logp[w][which])) which = v;
    }
    ck_assert_msg(which >= 0, "word %d has other phones", w);
    return which;
}

// The path, expanded into one label per row, has the score it reports, and its phones and words are the text's.
static void check_path(const float *rows_of, int T, int V, double score)
{
    static int labels[20000];
    double sum = 0;
    ck_assert_int_le(T, 20000);
    memset(labels, 0, sizeof labels);
    ck_assert_int_eq(path.n_words, text.n_slots);
    for (int i = 0; i < path.n_phones; i++) {
        const lin_path_phone *p = &path.phones[i];
        ck_assert(p->start >= (i ? p[-1].end : 0) && p->start < p->end && p->end <= T);
        if (i && p->label == p[-1].label) ck_assert_msg(p->start > p[-1].end, "equal phones without a blank between them");
        double own = 0;
        for (int64_t t = p->start; t < p->end; t++) {
            labels[t] = p->label;
            own += (double)rows_of[t * V + p->label];
        }
        test_require(fabs(exp(own / (double)(p->end - p->start)) - (double)p->confidence) < 1e-6, "confidence of phone %d", i);
    }
    for (int t = 0; t < T; t++) sum += (double)rows_of[t * V + labels[t]];
    for (int w = 0; w < text.n_slots; w++) sum += text.logp[w][chosen(w)];
    ck_assert_msg(fabs(sum - score) <= 1e-9 * (1 + fabs(score)), "the path sums to %.12g, not %.12g", sum, score);
    for (int w = 0, phone = 0; w < text.n_slots; w++) {
        const lin_path_word *word = &path.words[w];
        double own = 0;
        int64_t rows = 0;
        ck_assert_int_eq(word->word, w);
        ck_assert_int_eq(word->first_phone, phone);
        ck_assert_int_eq(word->start, path.phones[phone].start);
        for (int k = 0; k < word->n_phones; k++, phone++) {
            const lin_path_phone *p = &path.phones[phone];
            for (int64_t t = p->start; t < p->end; t++, rows++) own += (double)rows_of[t * V + p->label];
        }
        ck_assert_int_eq(word->end, path.phones[phone - 1].end);
        test_require(fabs(exp(own / (double)rows) - (double)word->confidence) < 1e-6, "confidence of word %d", w);
    }
}

// The report's fit and worst stretch, from the path alone.
static void check_report(const lin_align_options *o, const float *rows_of, int T, int V)
{
    static double before[20001]; // log-probability of the path before each row
    const int stretch = (int)(o->stretch_s / o->row_s) < T ? (int)(o->stretch_s / o->row_s) : T;
    double worst = 0;
    for (int t = 0, i = 0; t < T; t++) {
        const float *y = rows_of + t * V;
        float most = y[0];
        for (int v = 1; v < V; v++) most = fmaxf(most, y[v]);
        while (i < path.n_phones && path.phones[i].end <= t) i++;
        const int label = i < path.n_phones && path.phones[i].start <= t ? path.phones[i].label : 0;
        before[t + 1] = before[t] + (double)y[label] - (double)most;
    }
    for (int t = 0; t + stretch <= T; t++) worst = fmin(worst, (before[t + stretch] - before[t]) / (stretch * o->row_s));
    const double there = before[report.worst_row + stretch] - before[report.worst_row];
    test_require(fabs(report.fit - before[T] / path.n_phones) < 1e-9, "fit %g, not %g", report.fit,
                 before[T] / path.n_phones);
    test_require(fabs(report.worst_fit - worst) < 1e-9, "worst %g, not %g", report.worst_fit, worst);
    test_require(fabs(there / (stretch * o->row_s) - worst) < 1e-9, "worst row %lld", (long long)report.worst_row);
}

/* ---- against the full matrix ----------------------------------------------------------------------------------------------- */

// D[t][slot][variant][position]: even positions are blanks before a phone, odd ones phones; the blank after the last slot is a
// slot of its own. Written from the rules, without the graph's tables.
static double full_matrix(const float *logp, int T, int V)
{
    enum { POSITIONS = 2 * LONGEST };
    typedef double slots[MOST_VARIANTS][POSITIONS];
    slots *now = malloc((MOST_SLOTS + 1) * sizeof *now), *old = malloc((MOST_SLOTS + 1) * sizeof *old);
    for (int t = 0; t < T; t++) {
        const float *y = logp + t * V;
        for (int w = 0; w <= text.n_slots; w++) {
            const int n = w < text.n_slots ? text.n[w] : 1;
            for (int v = 0; v < n; v++) {
                const int positions = w < text.n_slots ? 2 * text.length[w][v] : 1;
                for (int p = 0; p < positions; p++) {
                    double best = -INFINITY;
                    const int label = p % 2 ? text.labels[w][v][p / 2] : 0;
                    const double entry = p == 1 ? text.logp[w][v] : 0; // to the first phone
                    if (t == 0 && w == 0 && p < 2) best = entry;
                    if (t > 0) best = old[w][v][p];
                    // The blank before a slot is the same for all its pronunciations: each has a copy of it.
                    if (t > 0 && p > 0) best = fmax(best, old[w][v][p - 1] + entry);
                    if (t > 0 && p > 2 && p % 2 && label != text.labels[w][v][p / 2 - 1]) best = fmax(best, old[w][v][p - 2]);
                    if (t > 0 && w > 0 && p < 2) {
                        for (int u = 0; u < text.n[w - 1]; u++) {
                            const int last = text.length[w - 1][u];
                            if (p == 0 || label != text.labels[w - 1][u][last - 1])
                                best = fmax(best, old[w - 1][u][2 * last - 1] + entry);
                        }
                    }
                    now[w][v][p] = best + (double)y[label];
                }
            }
        }
        slots *swap = now;
        now = old;
        old = swap;
    }
    double best = old[text.n_slots][0][0];
    const int w = text.n_slots - 1;
    for (int v = 0; v < text.n[w]; v++) best = fmax(best, old[w][v][2 * text.length[w][v] - 1]);
    free(now);
    free(old);
    return best;
}

// The fewest rows that the slots from `slot` on need after this label.
static int least_rows(int slot, int last)
{
    int least = slot == text.n_slots ? 0 : 1000;
    for (int v = 0; slot < text.n_slots && v < text.n[slot]; v++) {
        int rows = 0, before = last;
        for (int k = 0; k < text.length[slot][v]; k++) {
            rows += 1 + (text.labels[slot][v][k] == before);
            before = text.labels[slot][v][k];
        }
        rows += least_rows(slot + 1, before);
        if (rows < least) least = rows;
    }
    return least;
}

START_TEST(small_cases_against_the_full_matrix)
{
    enum { V = 4, T_MAX = 7 };
    int aligned = 0, refused = 0;
    for (uint64_t seed = 0; seed < 250; seed++) {
        float logp[T_MAX * V];
        const int T = 1 + (int)lin_random_below(seed, 99, T_MAX);
        random_text(1 + (int)lin_random_below(seed, 98, 3), 3, 3, V, seed + 1000);
        if (seed % 2) random_probabilities(seed);
        rows_with_zeros(logp, T, V, 4, seed);
        const double want = full_matrix(logp, T, V);
        OK(add_text(V, &err));
        ck_assert_int_eq(lin_align_graph_least_rows(&graph), least_rows(0, 0));
        const lin_align_options o = all();
        const lin_status status = try_align(&o, logp, T, NULL);
        ck_assert_int_eq(status, want > -INFINITY ? LIN_OK : LIN_MISMATCH);
        if (status == LIN_OK) {
            test_require(fabs(report.score - want) < 1e-9, "seed %d: %.12g, the best is %.12g", (int)seed, report.score, want);
            ck_assert(report.exact && report.widened == 0 && path.score == report.score);
            check_path(logp, T, V, want);
        }
        aligned += status == LIN_OK;
        refused += status != LIN_OK;
        drop();
    }
    ck_assert_msg(aligned > 100 && refused > 20, "%d aligned, %d refused", aligned, refused);
}
END_TEST

START_TEST(large_cases_against_the_full_matrix)
{
    enum { V = 12, T_MAX = 400 };
    static float logp[T_MAX * V];
    static const int variants[] = {1, 2, 3, 4, 15, 24}; // choices of 2, 4 and 8 bits
    for (uint64_t seed = 0; seed < 24; seed++) {
        const int T = 200 + (int)lin_random_below(seed, 99, T_MAX - 200 + 1);
        random_text(5 + (int)lin_random_below(seed, 98, 15), variants[seed % 6], LONGEST, V, seed);
        if (seed / 6 % 2) random_probabilities(seed);
        rows_with_zeros(logp, T, V, 6, seed + 50);
        const double want = full_matrix(logp, T, V);
        OK(add_text(V, &err));
        const lin_align_options o = all();
        OK(try_align(&o, logp, T, &err));
        ck_assert_msg(fabs(report.score - want) < 1e-9 * fabs(want), "%.12g, the full matrix has %.12g", report.score, want);
        check_path(logp, T, V, want);
        drop();
    }
}
END_TEST

/* ---- a text that is said --------------------------------------------------------------------------------------------------- */

// Rows that contain the text's first pronunciations at known times: each phone for 1 to 3 rows, blanks of 1 to 4 rows between.
// start [phones]: the first row of each; returns the number of rows.
static int said(float *logp, int T_max, int V, int from_slot, int to_slot, int64_t *start, uint64_t seed)
{
    int t = 0, phone = 0;
    uint64_t i = 0;
    for (int w = from_slot; w < to_slot; w++) {
        for (int k = 0; k <= text.length[w][0]; k++) {
            const int blanks = k == text.length[w][0], label = blanks ? 0 : text.labels[w][0][k];
            const int gap = !blanks && k && label == text.labels[w][0][k - 1]; // a blank between equal neighbours
            const int rows = 1 + (int)lin_random_below(seed, i++, blanks ? 4 : 3) + gap;
            if (!blanks) start[phone++] = t + gap;
            for (int r = 0; r < rows && t < T_max; r++, t++) {
                for (int v = 0; v < V; v++) {
                    const double p = v == (gap && r == 0 ? 0 : label) ? 0.9 : 0.1 / (V - 1);
                    logp[t * V + v] = (float)log(p);
                }
            }
        }
    }
    ck_assert_int_lt(t, T_max);
    return t;
}

static lin_status everything(const float *rows_of, int T, int V, const lin_align_options *o)
{
    lin_status status = add_text(V, NULL);
    if (status == LIN_OK) status = try_align(o, rows_of, T, NULL);
    drop();
    return status;
}

enum { V = 10, T_MAX = 20000 };
static float logp[T_MAX * V];
static int64_t start[MOST_SLOTS * LONGEST];
START_TEST(times_are_those_of_the_signal)
{
    random_text(MOST_SLOTS, 3, LONGEST, V, 5);
    const int T = said(logp, T_MAX, V, 0, MOST_SLOTS, start, 6);
    OK(add_text(V, &err));
    lin_align_options o = lin_align_options_default();
    // With a limit on states alone, and with the beam alone.
    o.beam = INFINITY;
    o.width = 64;
    OK(try_align(&o, logp, T, &err));
    ck_assert_msg(fabs(report.fit) < 1e-9, "fit %g", report.fit);
    ck_assert_msg(report.bytes <= (size_t)T * 64 / 2, "%zu bytes for %d rows of 64 states", report.bytes, T);
    o = lin_align_options_default();
    OK(try_align(&o, logp, T, &err));
    check_path(logp, T, V, report.score);
    ck_assert(!report.exact && report.widened == 0); // the beam dropped most of the states
    ck_assert_msg(fabs(report.fit) < 1e-9 && fabs(report.worst_fit) < 1e-9, "fit %g, worst %g", report.fit, report.worst_fit);
    ck_assert_msg(fabs(report.score - T * log(0.9)) < 1e-3, "score %g", report.score);
    ck_assert_msg(report.bytes < (size_t)T * 420, "%zu bytes for %d rows of %d states", report.bytes, T, graph.n_states);
    for (int i = 0; i < path.n_phones; i++) {
        ck_assert_msg(path.phones[i].start == start[i], "phone %d begins at %lld, not %lld", i, (long long)path.phones[i].start,
                      (long long)start[i]);
    }
}
END_TEST

START_TEST(phones_that_belong_to_no_word)
{
    enum { K = 5 };
    // "1 1 2": a blank between the equal phones, although label 1 is more probable in that row.
    static const double p[5][K] = {
        {.1, .6, .1, .1, .1}, {.2, .5, .1, .1, .1}, {.1, .6, .1, .1, .1}, {.1, .1, .6, .1, .1}, {.6, .1, .1, .1, .1}};
    float rows[5 * K];
    for (int i = 0; i < 5 * K; i++) rows[i] = (float)log(p[i / K][i % K]);
    add_phones("112", K);
    ck_assert_int_eq(lin_align_graph_least_rows(&graph), 4);
    const lin_align_options o = lin_align_options_default();
    OK(try_align(&o, rows, 5, &err));
    ck_assert_int_eq(path.n_phones, 3);
    ck_assert_int_eq(path.n_words, 0);
    static const int starts[] = {0, 2, 3}, ends[] = {1, 3, 4};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(path.phones[i].start, starts[i]);
        ck_assert_int_eq(path.phones[i].end, ends[i]);
    }
    ck_assert(fabs(path.score - log(.6 * .2 * .6 * .6 * .6)) < 1e-6);
}
END_TEST

/* ---- the beam -------------------------------------------------------------------------------------------------------------- */

// A word whose pronunciation is not known takes the sound between its neighbours, whatever that is; they keep their times.
START_TEST(a_word_of_any_sound)
{
    enum { UNKNOWN = 3, SLOTS = 7 };
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_text(SLOTS, 1, LONGEST, V, seed);
        const int T = said(logp, T_MAX, V, 0, SLOTS, start, seed + 1);
        OK(lin_align_graph_begin(&graph, V, &err));
        for (int w = 0; w < SLOTS; w++) {
            const lin_align_pronunciation one = {.labels = text.labels[w][0], .n = text.length[w][0]};
            if (w == UNKNOWN) OK(lin_align_graph_add_any(&graph, &err));
            else OK(lin_align_graph_add(&graph, &one, 1, 1, &err));
        }
        const lin_align_options o = all();
        OK(try_align(&o, logp, T, &err));
        ck_assert_int_eq(path.n_words, SLOTS);
        int phone = 0;
        for (int w = 0; w < SLOTS; w++) {
            const lin_path_word *word = &path.words[w];
            if (w != UNKNOWN) ck_assert_int_eq(word->n_phones, text.length[w][0]);
            if (w != UNKNOWN) ck_assert_int_eq(word->start, start[phone]);
            ck_assert_int_ge(word->n_phones, 1);
            phone += text.length[w][0];
        }
        // Its phones are those that were said, within where it was: repeated ones may become one, those at its edges blanks.
        const lin_path_word *word = &path.words[UNKNOWN];
        ck_assert_int_ge(word->start, path.words[UNKNOWN - 1].end);
        ck_assert_int_le(word->end, path.words[UNKNOWN + 1].start);
        ck_assert_int_le(word->n_phones, text.length[UNKNOWN][0]);
        for (int i = 0; i < word->n_phones; i++) {
            const int label = path.phones[word->first_phone + i].label;
            int found = 0;
            for (int k = 0; k < text.length[UNKNOWN][0]; k++) found |= text.labels[UNKNOWN][0][k] == label;
            ck_assert(found);
        }
        ck_assert(report.fit > LIN_ALIGN_FIT && report.score < 0);
        drop();
    }
}
END_TEST

START_TEST(a_beam_that_loses_the_path_is_widened)
{
    random_text(MOST_SLOTS, 1, LONGEST, V, 11);
    // The middle of the text is missing from the sound, so the path passes hundreds of phones that the rows do not contain.
    int T = said(logp, T_MAX, V, 0, 150, start, 12);
    T += said(logp + T * V, T_MAX - T, V, 200, MOST_SLOTS, start, 13);
    OK(add_text(V, &err));
    lin_align_options o = lin_align_options_default();
    o.row_s = 0.03;
    o.beam = 100;
    o.width = 400;
    o.widenings = 0;
    FAILS(try_align(&o, logp, T, &err), LIN_MISMATCH, "no path through the text reaches its end");
    o.widenings = 5;
    OK(try_align(&o, logp, T, &err));
    const double want = full_matrix(logp, T, V);
    ck_assert_msg(report.widened > 0 && report.beam > 100, "widened %d times, beam %g", report.widened, report.beam);
    ck_assert_msg(fabs(report.score - want) < 1e-9 * fabs(want), "%.12g, the full matrix has %.12g", report.score, want);
    ck_assert_msg(report.worst_fit < o.mismatch, "the worst stretch has %g", report.worst_fit);
    ck_assert_msg(report.bytes < 750000, "%zu bytes", report.bytes); // a narrow beam again behind that place
    check_path(logp, T, V, want);
    check_report(&o, logp, T, V);
    // A memory limit ends the widening earlier and is reported.
    o.most_bytes = 20000;
    FAILS(try_align(&o, logp, T, &err), LIN_NO_MEMORY, "align shorter pieces");
}
END_TEST

// Sound that is not in the text: the narrow beam continues with the text there and reaches its end with a poor score.
START_TEST(a_stretch_that_does_not_fit_is_tried_with_a_wider_beam)
{
    random_text(MOST_SLOTS, 1, LONGEST, V, 21);
    int T = said(logp, T_MAX, V, 0, 150, start, 22);
    for (int i = 0; i < 2; i++) T += said(logp + T * V, T_MAX - T, V, 0, 200, start, 25 + (uint64_t)i);
    T += said(logp + T * V, T_MAX - T, V, 150, MOST_SLOTS, start, 24);
    const double want = full_matrix(logp, T, V);
    const unsigned long live = lin_memory_live();
    OK(add_text(V, &err));
    lin_align_options o = lin_align_options_default();
    o.beam = 20;
    lin_align_report narrow = {0};
    for (int widenings = 0; widenings < 6; widenings += 5) {
        o.widenings = widenings;
        OK(try_align(&o, logp, T, &err));
        if (widenings == 0) narrow = report;
    }
    check_report(&o, logp, T, V);
    const lin_align_report wide = report;
    // A wider beam that does not fit into memory is abandoned; the rest is aligned with the beam that fits.
    o.most_bytes = narrow.bytes + 10000;
    OK(try_align(&o, logp, T, &err));
    ck_assert(report.bytes <= o.most_bytes && report.widened > 0);
    ck_assert_msg(narrow.score < want - 1 && narrow.worst_fit < o.mismatch, "a beam of 20 has %g of %g", narrow.score, want);
    ck_assert_msg(fabs(wide.score - want) < 1e-9 * fabs(want), "%.12g, the full matrix has %.12g", wide.score, want);
    ck_assert(narrow.widened == 0 && wide.widened > 0);
    drop();
    ck_assert_uint_eq(lin_memory_live(), live);
}
END_TEST

// Less than one stretch is wrong: only the end that is not reached shows it.
START_TEST(a_text_that_goes_on_behind_the_sound)
{
    random_text(300, 1, LONGEST, V, 41);
    for (int unsaid = 10; unsaid < 60; unsaid += 15) {
        const int T = said(logp, T_MAX, V, 0, 300 - unsaid, start, 42);
        const double want = full_matrix(logp, T, V);
        OK(add_text(V, &err));
        lin_align_options o = lin_align_options_default();
        o.beam = 50;
        // Also if two stretches have too few rows for the missing text.
        if (unsaid > 30) o.stretch_s = 1, o.mismatch = -1e9;
        OK(try_align(&o, logp, T, &err));
        ck_assert_int_gt(report.widened, 0);
        ck_assert_msg(fabs(report.score - want) < 1e-9 * fabs(want), "%.12g, the full matrix has %.12g", report.score, want);
        check_path(logp, T, V, want);
        check_report(&o, logp, T, V);
        drop();
    }
}
END_TEST

// A text that is only part of the sound: what is before, between and after its words takes no phone of them.
START_TEST(speech_that_is_not_in_the_text)
{
    enum { ALL = 100, KEPT = 20, PHONES_MAX = ALL * LONGEST };
    random_text(ALL, 1, LONGEST, V, 51);
    const int T = said(logp, T_MAX, V, 0, ALL, start, 52);
    lin_align_options o = lin_align_options_default();
    lin_align_report plain = {0};
    // A text that matches has the same path with and without the option.
    OK(add_text(V, &err));
    for (o.others = 0; o.others < 2; o.others++) {
        OK(try_align(&o, logp, T, &err));
        check_path(logp, T, V, report.score);
        ck_assert_int_eq(path.n_others, 0);
        if (!o.others) plain = report;
    }
    ck_assert_mem_eq(&plain, &report, sizeof plain);
    lin_align_graph_free(&graph);
    // Words 20 to 39 and 60 to 79 are the text.
    int kept[PHONES_MAX], n = 0, phone = 0;
    for (int w = 0; w < ALL; w++) {
        for (int k = 0; k < text.length[w][0]; k++, phone++)
            if (w / KEPT % 2 == 1) kept[n++] = phone;
    }
    for (int w = 0; w < 2 * KEPT; w++) {
        const int from = w < KEPT ? KEPT + w : 2 * KEPT + w;
        text.length[w][0] = text.length[from][0];
        memcpy(text.labels[w][0], text.labels[from][0], sizeof text.labels[w][0]);
    }
    text.n_slots = 2 * KEPT;
    OK(add_text(V, &err));
    o.others = 1;
    OK(try_align(&o, logp, T, &err));
    ck_assert_int_eq(path.n_phones, n);
    int moved = 0;
    for (int i = 0; i < n; i++) moved += path.phones[i].start != start[kept[i]];
    ck_assert_msg(moved == 0, "%d of %d phones are not where they were said", moved, n);
    ck_assert_int_eq(path.n_others, 3);
    ck_assert_msg(fabs(report.fit) < 1e-9 && fabs(report.worst_fit) < 1e-9, "fit %g, worst %g", report.fit, report.worst_fit);
    ck_assert(path.others[0].start == 0 && path.others[0].end <= path.phones[0].start);
    ck_assert(path.others[2].start >= path.phones[n - 1].end && path.others[2].end <= T);
    o.others = 0;
    OK(try_align(&o, logp, T, &err));
    for (int i = moved = 0; i < n; i++) moved += path.phones[i].start != start[kept[i]];
    ck_assert_int_gt(moved, 10);
    ck_assert_int_eq(path.n_others, 0);
}
END_TEST

/* ---- impossible input ------------------------------------------------------------------------------------------------------ */

START_TEST(texts_and_rows_that_cannot_match)
{
    enum { K = 5 };
    float rows[8 * K];
    lin_align_options o = lin_align_options_default();
    add_phones("", K);
    FAILS(try_align(&o, rows, 0, &err), LIN_INVALID, "no text to align");
    lin_align_graph_free(&graph);
    add_phones("1223", K);
    for (int i = 0; i < 8 * K; i++) rows[i] = (float)log(1.0 / K);
    o.row_s = 0.5;
    FAILS(try_align(&o, rows, 0, &err), LIN_MISMATCH, "its 4 phones need at least 2.50 s (5 rows), the sound has 0.00 s");
    FAILS(try_align(&o, rows, 4, &err), LIN_MISMATCH, "the sound has 2.00 s (4 rows)");
    for (int T = 5; T <= 8; T += 3) { // 5: just enough
        OK(try_align(&o, rows, T, &err));
        ck_assert_int_eq(path.n_phones, 4);
    }
    // A phone that is impossible everywhere.
    for (int t = 0; t < 8; t++) rows[t * K + 3] = -INFINITY;
    FAILS(try_align(&o, rows, 8, &err), LIN_MISMATCH, "text and sound do not match");
    // One row that is impossible for every phone of the text.
    for (int v = 0; v < K; v++) rows[3 * K + v] = v == 4 ? 0 : -INFINITY;
    FAILS(try_align(&o, rows, 8, &err), LIN_MISMATCH, "text and sound do not match");
    static const float bad[] = {NAN, INFINITY};
    for (int b = 0; b < 2; b++) {
        rows[2 * K + 3] = bad[b];
        FAILS(try_align(&o, rows, 8, &err), LIN_NUMERIC, "frame 2");
    }
    for (int v = 0; v < K; v++) rows[2 * K + v] = -INFINITY;
    FAILS(try_align(&o, rows, 8, &err), LIN_NUMERIC, "frame 2");
    drop();
}
END_TEST

START_TEST(texts_that_are_too_large)
{
    enum { K = 5 };
    add_phones("12", K);
    const int label = 1, steps = graph.n_befores;
    const lin_align_pronunciation word = {.labels = &label, .n = 1};
    graph.n_befores = 999999999; // as for a text of millions of words with hundreds of pronunciations each
    FAILS(lin_align_graph_add(&graph, &word, 1, 1, &err), LIN_UNSUPPORTED, "over 1000000000 steps between");
    graph.n_befores = steps;
    ck_assert_int_eq(graph.n_slots, 2);
    ck_assert_int_eq(graph.n_states, 8); // two phones, and a blank and other speech before, between and after
    lin_align_graph_free(&graph);
}
END_TEST

START_TEST(memory_that_is_short)
{
    random_text(300, 3, LONGEST, V, 31);
    const int T = said(logp, T_MAX, V, 0, 300, start, 32);
    lin_align_options o = lin_align_options_default();
    FAIL_EVERY_ALLOCATION(everything(logp, T, V, &o), (void)0);
    // Also where the beam is widened and goes back, and in the pass that finds other speech.
    text.n_slots = 250;
    o.beam = 20;
    o.others = 1;
    o.most_bytes = 1 << 20;
    FAIL_EVERY_ALLOCATION(everything(logp, T, V, &o), (void)0);
}
END_TEST

TEST_MAIN_WITH(NULL, drop, "align", TEST(small_cases_against_the_full_matrix), TEST(large_cases_against_the_full_matrix),
               TEST(times_are_those_of_the_signal), TEST(phones_that_belong_to_no_word),
               TEST(a_word_of_any_sound), TEST(a_beam_that_loses_the_path_is_widened),
               TEST(a_stretch_that_does_not_fit_is_tried_with_a_wider_beam), TEST(a_text_that_goes_on_behind_the_sound),
               TEST(speech_that_is_not_in_the_text), TEST(texts_and_rows_that_cannot_match), TEST(texts_that_are_too_large),
               TEST(memory_that_is_short))
