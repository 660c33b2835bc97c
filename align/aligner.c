// aligner.c - one text aligned with one sound, or the utterances of a TextGrid each within its times; see aligner.h.

#include "align/aligner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "align/boundaries.h"
#include "align/goodness.h"
#include "align/textgrid.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "decoder/rows.h"
#include "lexicon/transcript.h"

struct lin_aligner {
    const lin_recognizer *recognizer;
    const lin_wording *lexicon;
    lin_align_options options;
    double row_s, start_s, end_s; // of the present sound: the part of it that is aligned
    lin_file_worker *session;    // NULL: rows only
    const lin_aligner_input *in;  // while its sound is read
    int is_phones;                // the present text is
    double few_fit;               // of utterances of few phones: the sum over their phones
    int few_phones;
    lin_spoken spoken;
    lin_path path;                // of the present utterance
    lin_goodness *goodness;
    int goodness_capacity;
    float *rows;                  // [n_rows, V] of the present sound
    size_t n_rows, rows_capacity; // capacity: of floats
    lin_boundaries *boundaries;   // NULL: times are those of the path
    int has_frames;               // of the present sound, for the boundaries
    lin_segment *segments;
    int segments_capacity;
};

lin_aligner_options lin_aligner_options_default(void)
{
    return (lin_aligner_options){.beam = lin_align_options_default().beam, .follow_sound = 1, .n_threads = 1};
}

lin_status lin_aligner_create(const lin_recognizer *recognizer, const lin_wording *lexicon,
                              const lin_aligner_options *options, lin_aligner **aligner, lin_error *err)
{
    lin_aligner *a = lin_calloc(1, sizeof *a);
    lin_status status = LIN_OK;
    *aligner = NULL;
    if (!a) return lin_no_memory(err, "an aligner", sizeof *a);
    a->recognizer = recognizer;
    a->lexicon = lexicon;
    a->row_s = options->row_s > 0 ? options->row_s : recognizer->row_seconds;
    a->options = lin_align_options_default();
    a->options.beam = options->beam;
    a->options.row_s = a->row_s;
    if (!options->rows_only) status = lin_file_worker_create(recognizer, options->n_threads, NULL, &a->session, err);
    if (status == LIN_OK && options->follow_sound)
        status = lin_boundaries_create(recognizer->phones, &recognizer->fbank, &a->boundaries, err);
    if (status == LIN_OK) *aligner = a;
    else lin_aligner_destroy(a);
    return status;
}

void lin_aligner_destroy(lin_aligner *a)
{
    if (!a) return;
    lin_file_worker_destroy(a->session);
    lin_spoken_free(&a->spoken);
    lin_path_free(&a->path);
    lin_boundaries_destroy(a->boundaries);
    lin_free(a->goodness);
    lin_free(a->rows);
    lin_free(a->segments);
    lin_free(a);
}

/* ---- the steps of an alignment --------------------------------------------------------------------------------------------- */

static void count_marks(lin_alignment *out, int n, const char *first, size_t n_first)
{
    if (n && out->marks == 0) lin_quote(out->first_mark, first, n_first);
    out->marks += n;
}

// Prepares the text of an utterance in a->spoken; notes its marks and guesses.
static lin_status parse(lin_aligner *a, const char *text, size_t n, lin_alignment *out, lin_error *err)
{
    const lin_status status = a->is_phones ? lin_spoken_phones(&a->spoken, a->recognizer->phones, text, n, err)
                                           : lin_spoken_words(&a->spoken, a->lexicon, text, n, err);
    count_marks(out, a->spoken.marks, a->spoken.first_mark, strlen(a->spoken.first_mark));
    if (status == LIN_OK) lin_buffer_bytes(&out->guesses, a->spoken.guesses.data, a->spoken.guesses.n);
    return status;
}

static lin_status take_rows(void *context, int lane, const float *logp, int n, lin_error *err)
{
    (void)lane;
    lin_aligner *a = context;
    const size_t V = (size_t)a->recognizer->V, used = a->n_rows * V, more = (size_t)n * V;
    LIN_TRY(lin_grow(&a->rows, &a->rows_capacity, used + more, sizeof *a->rows, "rows of a sound", err));
    memcpy(a->rows + used, logp, more * sizeof *logp);
    a->n_rows += (size_t)n;
    return LIN_OK;
}

static lin_status take_frames(void *context, int lane, const float *fbank, int n, lin_error *err)
{
    (void)lane;
    const lin_aligner *a = context;
    return lin_boundaries_push(a->boundaries, fbank, n, err);
}

static int show_progress(void *context, double seconds, double duration)
{
    const lin_aligner_input *in = ((const lin_aligner *)context)->in;
    return in->progress && in->progress(in->context, seconds, duration);
}

// Rows, and the frames of the same sound, from the caller.
static lin_status read_arrays(lin_aligner *a, const lin_aligner_input *in, lin_error *err)
{
    LIN_TRY(lin_rows_check(in->rows, (int64_t)in->n_rows, a->recognizer->V, err));
    LIN_TRY(take_rows(a, 0, in->rows, (int)in->n_rows, err));
    return a->has_frames ? take_frames(a, 0, in->frames, (int)in->n_frames, err) : LIN_OK;
}

static lin_status read_sound(lin_aligner *a, const lin_aligner_input *in, lin_alignment *out, lin_error *err)
{
    lin_file_report report = {0};
    a->start_s = out->start_s = in->sound ? in->sound->part.start_s : 0;
    out->row_s = a->row_s;
    a->end_s = in->sound ? in->sound->part.end_s : 0;
    a->has_frames = a->boundaries && (in->sound || in->frames);
    if (a->has_frames) lin_boundaries_reset(a->boundaries);
    a->n_rows = 0;
    if (!in->sound) {
        out->seconds = (double)in->n_rows * a->row_s;
        return read_arrays(a, in, err);
    }
    if (!a->session) return lin_fail(err, LIN_INVALID, "%s: this aligner takes rows, not sound", in->id);
    const lin_file_sink sink = {.context = a, .rows = take_rows, .frames = a->has_frames ? take_frames : NULL,
                                .progress = show_progress};
    a->in = in;
    lin_status status = lin_file_worker_run(a->session, in->sound, &sink, &report, err);
    memcpy(out->warning, report.warning, sizeof out->warning);
    out->seconds = report.seconds - a->start_s;
    out->incomplete = report.incomplete;
    return status;
}

// The path of the text in rows from .. to - 1, and the goodness of its phones, from number `first` on. Only these rows count: in
// a TextGrid the last row of one utterance may be the first row of the next.
static lin_status align_rows(lin_aligner *a, int64_t from, int64_t to, int first, lin_align_report *report, lin_error *err)
{
    const int V = a->recognizer->V;
    const float *rows = a->rows + (size_t)from * (size_t)V;
    // A phone may be up to a quarter of a second away from its place in the path. row_s is not limited.
    const int margin = (int)fmin(ceil(0.25 / a->row_s), 1e6);
    LIN_TRY(lin_align_text(&a->spoken.graph, &a->options, rows, to - from, &a->path, report, err));
    report->worst_row += from;
    if ((double)(to - from) * a->row_s <= a->options.stretch_s) report->worst_fit = 0; // the fit of all of it says enough
    LIN_TRY(lin_grow_int(&a->goodness, &a->goodness_capacity, (int64_t)first + a->path.n_phones, sizeof *a->goodness,
                         "goodness of phones", err));
    return lin_goodness_measure(rows, V, to - from, &a->path, margin, a->goodness + first, err);
}

static size_t frame_of(const lin_aligner *a, int64_t row)
{
    return (size_t)round((double)row * a->row_s / (a->recognizer->fbank.hop_ms / 1000));
}

// Finds when each phone of the path begins and ends, as segments from number `first` on: where the sound changes, or at the rows
// of the path. These count from row `from`; the sound has so many seconds from there on, and ends before frame `end`.
static lin_status find_times(lin_aligner *a, int64_t from, size_t end, double seconds, int first, lin_error *err)
{
    const int n = a->path.n_phones;
    LIN_TRY(lin_grow_int(&a->segments, &a->segments_capacity, (int64_t)first + n, sizeof *a->segments, "segments", err));
    lin_segment *segments = a->segments + first;
    if (a->has_frames)
        LIN_TRY(lin_boundaries_find(a->boundaries, frame_of(a, from), end, &a->path, a->row_s, seconds, segments, err));
    for (int i = 0; i < n && a->has_frames; i++) {
        segments[i].start_s += (double)from * a->row_s;
        segments[i].end_s += (double)from * a->row_s;
    }
    for (int i = 0; i < n && !a->has_frames; i++) {
        const lin_path_phone *p = &a->path.phones[i];
        segments[i] = (lin_segment){(double)(from + p->start) * a->row_s, (double)(from + p->end) * a->row_s};
    }
    return LIN_OK;
}

static lin_status add_path(lin_aligner *a, lin_result *result, lin_error *err)
{
    const lin_result_speller spell = a->is_phones ? NULL : lin_spoken_spell;
    const int first_word = result->n_words;
    LIN_TRY(lin_result_add_path(result, &a->path, a->row_s, spell, &a->spoken, err));
    return a->is_phones ? LIN_OK : lin_spoken_write(&a->spoken, result, first_word, &a->path, err);
}

// Speech that is not in the text. Phones of the path say how much later than the sound its rows are.
static lin_status add_others(const lin_aligner *a, lin_result *result, lin_error *err)
{
    const double half_s = 0.06; // of a phone
    double late_s = 0;
    for (int i = 0; i < a->path.n_phones && a->has_frames; i++)
        late_s += ((double)(a->path.phones[i].start + a->path.phones[i].end) * a->row_s - a->segments[i].start_s -
                   a->segments[i].end_s) / 2 / a->path.n_phones;
    for (int i = 0, next = 0; i < a->path.n_others; i++) {
        const lin_path_other *o = &a->path.others[i];
        while (next < a->path.n_phones && a->path.phones[next].start < o->end) next++;
        const double last = next ? result->phones[next - 1].end_s : 0;
        const double limit = next < result->n_phones ? result->phones[next].start_s : result->seconds;
        const double start = ((double)o->start + 0.5) * a->row_s - late_s - half_s,
                     end = ((double)o->end - 0.5) * a->row_s - late_s + half_s;
        const double start_s = fmin(fmax(start, last), limit);
        LIN_TRY(lin_result_add_span(result, start_s + a->start_s, fmax(fmin(end, limit), start_s) + a->start_s,
                                    "[other speech]", err));
        result->has_others = 1;
    }
    return LIN_OK;
}

// Call after all paths of a result were added.
static lin_status finish(lin_aligner *a, const lin_alignment *out, lin_result *result, lin_error *err)
{
    result->seconds = out->seconds;
    for (int i = 0; i < result->n_phones; i++) {
        const int heard = a->goodness[i].heard;
        result->phones[i].goodness = a->goodness[i].score;
        result->phones[i].heard = heard == result->phones[i].label ? 0 : heard ? heard : LIN_RESULT_NOTHING;
    }
    lin_result_set_times(result, a->segments);
    LIN_TRY(add_others(a, result, err));
    // Until now times counted from the start of the part.
    lin_result_shift(result, a->start_s);
    result->seconds += a->start_s;
    return LIN_OK;
}

static lin_status begin_result(lin_alignment *out, const char *id, const char *speaker, int channel, lin_result **result,
                             lin_error *err)
{
    const int before = out->capacity;
    LIN_TRY(lin_grow_int(&out->results, &out->capacity, (int64_t)out->n_results + 1, sizeof *out->results, "results", err));
    memset(out->results + before, 0, (size_t)(out->capacity - before) * sizeof *out->results);
    *result = &out->results[out->n_results];
    LIN_TRY(lin_result_begin(*result, id, speaker, channel ? channel : 1, err));
    out->n_results++;
    return LIN_OK;
}

/* ---- one text -------------------------------------------------------------------------------------------------------------- */

static lin_status align_text(lin_aligner *a, const lin_aligner_input *in, lin_alignment *out, lin_error *err)
{
    lin_result *result;
    const lin_status status = parse(a, in->text, in->n_text, out, err);
    // An error in a text names the text's file, not the sound's.
    if (status != LIN_OK) return in->text_name ? lin_fail_at(err, status, "%.300s", in->text_name) : status;
    LIN_TRY(read_sound(a, in, out, err));
    LIN_TRY(align_rows(a, 0, (int64_t)a->n_rows, 0, &out->report, err));
    LIN_TRY(find_times(a, 0, SIZE_MAX, out->seconds, 0, err));
    LIN_TRY(begin_result(out, in->id, in->speaker, in->channel, &result, err));
    LIN_TRY(add_path(a, result, err));
    LIN_TRY(finish(a, out, result, err));
    return lin_buffer_status(&out->guesses, err);
}

/* ---- the utterances of a TextGrid ------------------------------------------------------------------------------------------ */

static void shift_path(lin_path *path, int64_t rows)
{
    for (int i = 0; i < path->n_phones; i++) path->phones[i].start += rows, path->phones[i].end += rows;
    for (int i = 0; i < path->n_words; i++) path->words[i].start += rows, path->words[i].end += rows;
}

// [laughs] alone is not an utterance.
static int has_words(const char *text, lin_alignment *out)
{
    lin_spelling word;
    lin_error err;
    size_t at = 0;
    if (lin_spelling_next(text, strlen(text), &at, &word, &err) != LIN_OK || word.n) return 1;
    count_marks(out, word.marks, text + word.mark, word.n_mark);
    return 0;
}

// The worst utterance counts. Some of fewer phones than these always fit badly, such as single words in the TextGrid of an
// aligner: they count together. Single phones do not count.
enum { FEW_PHONES = 10 };

static void judge(lin_aligner *a, const lin_align_report *report, lin_alignment *out)
{
    if (a->path.n_phones >= FEW_PHONES) {
        if (report->fit < out->report.fit) out->report = *report;
    } else if (!a->is_phones) {
        a->few_fit += report->fit * a->path.n_phones;
        a->few_phones += a->path.n_phones;
    }
}

static lin_status align_interval(lin_aligner *a, const lin_textgrid_interval *v, const char *text, lin_alignment *out,
                                 lin_result *result, lin_error *err)
{
    // Rows and frames count from the start of the part. The network marks a phone some time after it was said: where times are
    // those of the sound, its rows are those of the utterance that much later, with one more before them.
    const double last = (double)a->n_rows, part_s = a->start_s, late_s = a->has_frames ? a->recognizer->delay_s : 0;
    const double early_s = fmax(late_s - a->row_s, 0);
    const int64_t first = (int64_t)fmin(fmax(floor((v->start_s - part_s) / a->row_s), 0), last);
    const int64_t from = (int64_t)fmin(fmax(floor((v->start_s - part_s + early_s) / a->row_s), (double)first), last);
    const int64_t to = (int64_t)fmax(fmin(ceil((v->end_s - part_s + late_s) / a->row_s), last), (double)from);
    lin_align_report report;
    if (v->start_s >= part_s + out->seconds)
        return lin_fail(err, LIN_INVALID, "it begins after the end of the sound, at %.3f s", part_s + out->seconds);
    LIN_TRY(parse(a, text, strlen(text), out, err));
    LIN_TRY(align_rows(a, from, to, result->n_phones, &report, err));
    judge(a, &report, out);
    // The boundaries are found in the sound of the utterance only: speech around it is not taken for a part of it.
    shift_path(&a->path, from - first);
    LIN_TRY(find_times(a, first, frame_of(a, to), (double)(to - first) * a->row_s, result->n_phones, err));
    for (int i = 0; i < a->path.n_phones; i++) {
        lin_segment *s = &a->segments[result->n_phones + i];
        s->start_s = fmin(fmax(s->start_s, v->start_s - part_s), v->end_s - part_s);
        s->end_s = fmin(fmax(s->end_s, v->start_s - part_s), v->end_s - part_s);
    }
    return add_path(a, result, err);
}

// Whether an utterance lies in the part of the sound.
static int is_inside(const lin_aligner *a, const lin_textgrid_interval *v)
{
    return (a->start_s <= 0 || v->start_s >= a->start_s) && (a->end_s <= 0 || v->end_s <= a->end_s);
}

static lin_status align_tier(lin_aligner *a, const lin_textgrid *grid, const lin_tier *tier, const char *name,
                             lin_alignment *out, lin_result *result, lin_error *err)
{
    lin_path_clear(&a->path); // of another sound
    for (int i = 0; i < tier->n; i++) {
        const lin_textgrid_interval *v = &grid->intervals[tier->first + i];
        const char *text = lin_textgrid_text(grid, v->text);
        lin_error why = {0};
        if (!is_inside(a, v) || !has_words(text, out)) continue;
        const lin_status done = align_interval(a, v, text, out, result, &why);
        if (done == LIN_NO_MEMORY) return lin_fail_as(err, &why);
        if (done == LIN_OK) continue;
        out->n_bad++;
        lin_buffer_format(&out->notes, "%s: ", name);
        lin_buffer_json_format(&out->notes, "%.3f to %.3f s: ", v->start_s, v->end_s);
        lin_buffer_format(&out->notes, "%s\n", why.message);
    }
    result->has_words = !a->is_phones;
    return LIN_OK;
}

// A result for each speaker. Two tiers of one name have two ids.
static lin_status begin_speaker(lin_alignment *out, const lin_aligner_input *in, const char *tier, lin_result **result,
                                lin_error *err)
{
    lin_buffer id = {0};
    lin_buffer_text(&id, in->id);
    if (tier) lin_buffer_char(&id, '-');
    for (const char *c = tier; c && *c; c++)
        lin_buffer_char(&id, (unsigned char)*c <= ' ' || *c == 127 || *c == '(' || *c == ')' || *c == '/' ? '_' : *c);
    for (int i = 0; i < out->n_results && !id.failed; i++)
        if (strcmp(out->results[i].id, id.data) == 0) lin_buffer_format(&id, "-%d", out->n_results + 1);
    lin_status status = lin_buffer_status(&id, err);
    if (status == LIN_OK) status = begin_result(out, id.data, tier ? tier : in->speaker, in->channel, result, err);
    lin_buffer_free(&id);
    return status;
}

static int ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && !strcmp(text + n - k, end);
}

// Aligners name their tiers "words" and "phones", or "anna - words" and "anna - phones".
static int is_of_phones(const char *tier) { return !strcmp(tier, "phones") || ends_with(tier, " - phones"); }
static int is_of_words(const char *tier) { return !strcmp(tier, "words") || ends_with(tier, " - words"); }

static void name_speaker(char *name, size_t capacity, const char *tier)
{
    size_t n = strlen(tier);
    if (ends_with(tier, " - words")) n -= strlen(" - words");
    else if (ends_with(tier, " - phones")) n -= strlen(" - phones");
    else if (ends_with(tier, " - utterances")) n -= strlen(" - utterances");
    snprintf(name, capacity, "%.*s", n > capacity ? (int)capacity : (int)n, tier);
}

// Adds the utterances themselves, also those that could not be aligned, unless each is a word or phone of another aligner.
static lin_status keep_utterances(const lin_aligner *a, const lin_textgrid *grid, const lin_tier *tier, lin_result *result,
                                  lin_error *err)
{
    const char *name = lin_textgrid_text(grid, tier->name);
    for (int i = 0; i < tier->n && !is_of_words(name) && !is_of_phones(name); i++) {
        const lin_textgrid_interval *v = &grid->intervals[tier->first + i];
        const char *text = lin_textgrid_text(grid, v->text);
        if (!is_inside(a, v) || !text[strspn(text, " ")]) continue;
        LIN_TRY(lin_result_add_span(result, v->start_s, v->end_s, text, err));
    }
    return LIN_OK;
}

static lin_status align_tiers(lin_aligner *a, const lin_aligner_input *in, const char *path, lin_textgrid *grid,
                              lin_alignment *out, lin_error *err)
{
    const int n = lin_textgrid_choose(grid);
    if (n == 0) return lin_fail(err, LIN_INVALID, "%s: no interval has a text", path);
    LIN_TRY(read_sound(a, in, out, err));
    a->few_fit = a->few_phones = 0;
    for (int t = 0; t < grid->n_tiers; t++) {
        const lin_tier *tier = &grid->tiers[t];
        char name[128];
        name_speaker(name, sizeof name, lin_textgrid_text(grid, tier->name));
        lin_result *result;
        if (!tier->chosen) continue;
        a->is_phones = in->grid_of_phones || is_of_phones(lin_textgrid_text(grid, tier->name));
        LIN_TRY(begin_speaker(out, in, n > 1 ? name : NULL, &result, err));
        LIN_TRY(align_tier(a, grid, tier, path, out, result, err));
        LIN_TRY(finish(a, out, result, err));
        LIN_TRY(keep_utterances(a, grid, tier, result, err));
    }
    if (a->few_phones) out->report.fit = fmin(out->report.fit, a->few_fit / a->few_phones);
    LIN_TRY(lin_buffer_status(&out->guesses, err));
    return lin_buffer_status(&out->notes, err);
}

static lin_status align_grid(lin_aligner *a, const lin_aligner_input *in, lin_alignment *out, lin_error *err)
{
    const char *name = in->text_name ? in->text_name : "a TextGrid";
    lin_textgrid grid;
    LIN_TRY(lin_textgrid_parse(in->text, in->n_text, name, &grid, err));
    const lin_status status = align_tiers(a, in, name, &grid, out, err);
    lin_textgrid_free(&grid);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------- */

void lin_alignment_clear(lin_alignment *out)
{
    out->n_results = out->marks = out->n_bad = out->incomplete = 0;
    out->report = (lin_align_report){0};
    out->seconds = 0;
    out->warning[0] = out->first_mark[0] = 0;
    lin_buffer_clear(&out->guesses);
    lin_buffer_clear(&out->notes);
}

lin_status lin_aligner_align(lin_aligner *a, const lin_aligner_input *in, lin_alignment *out, lin_error *err)
{
    lin_aligner_input input = *in;
    char *own;
    a->is_phones = in->kind == LIN_ALIGNER_PHONES || (in->kind == LIN_ALIGNER_TEXTGRID && in->grid_of_phones);
    a->options.others = in->kind != LIN_ALIGNER_TEXTGRID; // whose utterances have times
    lin_alignment_clear(out);
    // The reader of TextGrids brings them into form; of another encoding it refuses only labels that are not ASCII.
    if (in->kind == LIN_ALIGNER_TEXTGRID) return align_grid(a, in, out, err);
    LIN_TRY(lin_unicode_clean(in->text, in->n_text, in->text_name, LIN_UNICODE_ONLY, &own, &input.text, &input.n_text, err));
    const lin_status status = align_text(a, &input, out, err);
    lin_free(own);
    return status;
}

// How much of the speech is not in the text, and where the first parts of it are.
static void tell_others(const lin_result *result, char *text, size_t capacity)
{
    enum { TOLD = 3 };
    int used = snprintf(text, capacity, "speech that is not in the text, from");
    for (int i = 0; i < result->n_spans && i < TOLD; i++)
        used += snprintf(text + used, capacity - (size_t)used, "%s %.1f to %.1f s", i ? "," : "", result->spans[i].start_s,
                         result->spans[i].end_s);
    if (result->n_spans > TOLD) snprintf(text + used, capacity - (size_t)used, " and %d more", result->n_spans - TOLD);
}

void lin_alignment_doubt(const lin_alignment *out, char *text, size_t capacity)
{
    const lin_align_report *r = &out->report;
    const lin_align_options o = lin_align_options_default();
    text[0] = 0;
    if (r->fit < LIN_ALIGN_FIT) {
        snprintf(text, capacity, "the text does not seem to match the sound: its log-probability per phoneme is %.1f relative to "
                                 "the best labels; texts that match have above %.0f", r->fit, LIN_ALIGN_FIT);
    } else if (r->worst_fit < o.mismatch) {
        const double at = (double)r->worst_row * out->row_s + out->start_s;
        snprintf(text, capacity, "text and sound do not match around %.1f to %.1f s", at, at + o.stretch_s);
    } else if (out->n_results > 0 && out->results[0].has_others) {
        tell_others(&out->results[0], text, capacity);
    }
}

void lin_alignment_free(lin_alignment *out)
{
    for (int i = 0; i < out->capacity; i++) lin_result_free(&out->results[i]);
    lin_free(out->results);
    lin_buffer_free(&out->guesses);
    lin_buffer_free(&out->notes);
    *out = (lin_alignment){0};
}
