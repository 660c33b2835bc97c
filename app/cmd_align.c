// cmd_align.c - linnet align: when each phoneme and word of a known text was said, and how well.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/commands.h"
#include "app/common.h"
#include "app/corpus.h"
#include "app/guard.h"
#include "app/inputs.h"
#include "app/model_options.h"
#include "app/ordered.h"
#include "app/recognize.h"
#include "app/results.h"
#include "app/speakers.h"
#include "app/spoken.h"
#include "decoder/align.h"
#include "decoder/boundaries.h"
#include "decoder/goodness.h"
#include "decoder/rows.h"
#include "kernels/memory.h"
#include "kernels/npy.h"
#include "lexicon/symbols.h"
#include "lexicon/textfile.h"
#include "lexicon/textgrid.h"
#include "lexicon/transcript.h"

typedef struct align_values {
    lin_model_values model;
    lin_input_values input;
    lin_results_values results;
    const char *text, *text_file, *phones, *data, *audio_root, *lexicon, *posteriors;
    double row_ms, beam;
    int times, stress, jobs, quiet;
} align_values;

enum { TIMES_SOUND, TIMES_PATH };

static const lin_option options[] = {
    {.name = "text", .letter = 't', .type = LIN_OPTION_STRING, .at = offsetof(align_values, text),
     .help = "What was said, in words"},
    {.name = "text-file", .type = LIN_OPTION_FILE, .at = offsetof(align_values, text_file), .help = "A file that holds it"},
    {.name = "phones", .letter = 'p', .type = LIN_OPTION_STRING, .at = offsetof(align_values, phones), .value = "TEXT",
     .help = "What was said, in phonemes: \"HH AH L OW\", or in the IPA: \"hʌˈloʊ\""},
    {.name = "data", .type = LIN_OPTION_FOLDER, .at = offsetof(align_values, data),
     .help = "All utterances of a Kaldi-style data directory, with their text"},
    {.name = "audio-root", .type = LIN_OPTION_FOLDER, .at = offsetof(align_values, audio_root),
     .help = "What the paths in its wav.scp are relative to; if not given, the parent of the data directory"},
    {.name = "lexicon", .letter = 'l', .type = LIN_OPTION_FILE, .at = offsetof(align_values, lexicon), .value = "DICT",
     .help = "Pronunciations in CMUdict's format; if not given, $LINNET_LEXICON, else those installed with the program or by "
             "Debian's package pocketsphinx-en-us"},
    {.name = "posteriors", .type = LIN_OPTION_FILE, .at = offsetof(align_values, posteriors), .value = "NPY",
     .help = "A matrix of log-probabilities, as linnet posteriors writes it, instead of a sound"},
    {.name = "row-ms", .type = LIN_OPTION_DOUBLE, .at = offsetof(align_values, row_ms), .min = 0, .max = 10000, .value = "MS",
     .help = "From one row of that matrix to the next; 0: as the model has it"},
    {.name = "beam", .letter = 'b', .type = LIN_OPTION_DOUBLE, .at = offsetof(align_values, beam), .text = "600", .min = 1,
     .max = 1e9, .value = "X", .help = "Paths so much worse than the best, natural logarithm, are dropped; widened where need be"},
    {.name = "stress", .type = LIN_OPTION_FLAG, .at = offsetof(align_values, stress),
     .help = "Phonemes with the stress of the pronunciation that the sound chose, where the lexicon has it: AH0, OW1"},
    {.name = "times", .type = LIN_OPTION_CHOICE, .at = offsetof(align_values, times), .text = "sound", .choices = "sound|path",
     .help = "sound: phonemes end where the sound changes, with silence where it is silent; path: the network's steps that have "
             "the phoneme, as always with --posteriors"},
    LIN_RESULTS_ROWS(align_values, results),
    {.name = "jobs", .letter = 'j', .type = LIN_OPTION_INT, .at = offsetof(align_values, jobs), .text = "0", .min = 0,
     .max = 1024, .help = "Threads; 0: one per core"},
    {.name = "quiet", .letter = 'q', .type = LIN_OPTION_FLAG, .at = offsetof(align_values, quiet),
     .help = "No progress, no summary, no list of words that the lexicon lacks"},
    LIN_MODEL_ROWS(align_values, model),
    LIN_INPUT_ROWS(align_values, input),
    {.type = LIN_OPTION_END},
};

typedef struct align_job align_job;

// What a thread keeps from one utterance to the next.
typedef struct aligner {
    align_job *job;
    lin_ear *ear;
    lin_spoken spoken;
    lin_align *align; // of the present utterance
    lin_path path;
    lin_goodness *goodness;
    int goodness_capacity;
    int keeps_rows; // of a sound whose utterances have times, each aligned within its own
    float *rows;    // [n_rows, V]
    size_t n_rows, rows_capacity; // capacity: of floats
    float *frames;  // [n_frames, D], with them
    size_t n_frames, frames_capacity;
    signed char *stress; // of the path's phones
    int stress_capacity;
    lin_path whole; // of all utterances of a tier
    struct span *spans;
    int n_spans, spans_capacity;
    lin_boundaries *boundaries; // NULL: times are those of the path
    lin_segment *segments;
    int segments_capacity;
} aligner;

// An utterance with times, as part of a result.
typedef struct span {
    double start_s, end_s;
    int first_phone, first_word;
} span;

typedef struct align_slot {
    lin_status status;
    lin_error error;
    lin_result result;
    lin_result *more; // of further speakers: more[0 .. n_results-2]
    int n_results, more_capacity;
    lin_buffer notes; // on single utterances, a line each
    int n_bad;        // utterances that could not be aligned
    lin_align_report report;
    lin_buffer guesses;
    int marks;
    char first_mark[48];
    double seconds;
    char warning[256];
    int incomplete; // some of the sound is missing
} align_slot;

struct align_job {
    const align_values *v;
    lin_recognizer recognizer;
    lin_inputs inputs;
    lin_corpus corpus; // texts of the inputs, where they lie beside them
    int beside;        // they do
    lin_speakers speakers;
    lin_spoken_lexicon lexicon;
    int channel;
    double row_s;
    lin_part part; // of --start and --end
    char *text; // of the one file; NULL: each utterance has its own
    size_t n_text;
    lin_results_values how;
    lin_results results;
    aligner *aligners;
    int n_aligners;
    align_slot *slots;
    int n_slots;
    lin_symbols guessed; // words told of, of which only the first
    lin_progress progress;
    int n_done, n_failed, n_incomplete, n_bad; // n_bad: utterances of TextGrids that could not be aligned
    long n_marks; // such as [laughs]
    char first_mark[48];
    double seconds;
};

enum { GUESSES_TOLD = 20 };

// ---- one utterance, on a thread of its own --------------------------------------------------------------------------------------

static lin_status take_text(aligner *a, const char *text, size_t n, lin_error *err)
{
    const align_job *job = a->job;
    if (n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) text += 3, n -= 3; // a byte order mark
    if (job->v->phones) return lin_spoken_phones(&a->spoken, job->recognizer.phones, text, n, err);
    return lin_spoken_words(&a->spoken, &job->lexicon, text, n, err);
}

// What is wrong with a text is said with the text's name, not the sound's.
static lin_status read_text_beside(aligner *a, const char *path, lin_error *err)
{
    char *text;
    size_t n;
    lin_error why = {0};
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status != LIN_OK) return status;
    status = take_text(a, text, n, &why);
    if (status != LIN_OK) lin_fail(err, status, "%.300s: %s", path, why.message);
    lin_free(text);
    return status;
}

static lin_status read_text(aligner *a, int item, lin_error *err)
{
    const align_job *job = a->job;
    const char *text = job->text;
    size_t n = job->n_text;
    if (job->beside) return read_text_beside(a, job->corpus.texts[item], err);
    if (job->v->data) {
        text = lin_datadir_at(job->inputs.dir, item)->text;
        if (!text)
            return lin_fail(err, LIN_INVALID, "%s/text has no line for %s", job->v->data, job->inputs.items[item].id);
        n = strlen(text);
    }
    return take_text(a, text, n, err);
}

static lin_status take_rows(void *context, int lane, const float *logp, int n, lin_error *err)
{
    (void)lane;
    aligner *a = context;
    if (!a->keeps_rows) return lin_align_push(a->align, logp, n, err);
    const size_t V = (size_t)a->job->recognizer.V, used = a->n_rows * V, more = (size_t)n * V;
    lin_status status = lin_grow(&a->rows, &a->rows_capacity, used + more, sizeof *a->rows, "rows of a sound", err);
    if (status != LIN_OK) return status;
    memcpy(a->rows + used, logp, more * sizeof *logp);
    a->n_rows += (size_t)n;
    return LIN_OK;
}

static lin_status take_frames(void *context, int lane, const float *fbank, int n, lin_error *err)
{
    (void)lane;
    aligner *a = context;
    if (!a->keeps_rows) return lin_boundaries_push(a->boundaries, fbank, n, err);
    const size_t D = (size_t)a->job->recognizer.fbank.mel_bins, used = a->n_frames * D, more = (size_t)n * D;
    lin_status status = lin_grow(&a->frames, &a->frames_capacity, used + more, sizeof *a->frames, "frames of a sound", err);
    if (status != LIN_OK) return status;
    memcpy(a->frames + used, fbank, more * sizeof *fbank);
    a->n_frames += (size_t)n;
    return LIN_OK;
}

static lin_status read_matrix(aligner *a, const char *path, double *seconds, lin_error *err)
{
    enum { ROWS = 4096 };
    float *rows;
    size_t T;
    int V;
    lin_status status = lin_npy_read(path, &rows, &T, &V, err);
    if (status != LIN_OK) return status;
    if (V != a->job->recognizer.V) {
        status = lin_fail(err, LIN_MISMATCH, "%s has %d columns, the model has %d outputs", path, V, a->job->recognizer.V);
    }
    for (size_t t = 0; t < T && status == LIN_OK; t += ROWS) {
        const int n = T - t < ROWS ? (int)(T - t) : ROWS;
        status = lin_rows_check(rows + t * (size_t)V, n, V, (int64_t)t, err);
        if (status == LIN_OK) status = take_rows(a, 0, rows + t * (size_t)V, n, err);
    }
    *seconds = (double)T * a->job->row_s;
    lin_free(rows);
    return status;
}

static lin_status hear(aligner *a, const lin_input *input, align_slot *s)
{
    const align_job *job = a->job;
    if (job->v->posteriors) return read_matrix(a, input->path, &s->seconds, &s->error);
    lin_pcm_format raw;
    lin_heard heard = {0};
    lin_sound sound = {.path = input->path, .raw = lin_input_format(&job->v->input, &raw), .channel = job->channel,
                       .part = job->part};
    const lin_speaker *speaker = lin_speakers_find(&job->speakers, input->speaker);
    if (speaker) sound.mean = speaker->mean, sound.istd = speaker->istd;
    const lin_sink sink = {.context = a, .rows = take_rows, .frames = a->boundaries ? take_frames : NULL};
    if (a->boundaries) lin_boundaries_reset(a->boundaries);
    lin_status status = lin_ear_hear(a->ear, &sound, &sink, &heard, &s->error);
    memcpy(s->warning, heard.warning, sizeof s->warning);
    s->seconds = heard.seconds - job->part.start_s;
    s->incomplete = heard.incomplete;
    return status;
}

static const float *row_of(const void *context, int64_t row)
{
    const aligner *a = context;
    return a->keeps_rows ? a->rows + (size_t)row * (size_t)a->job->recognizer.V : lin_align_row(a->align, row);
}

// A phone may lie a quarter of a second beside where the path has it, and be what it should be.
static lin_status judge(aligner *a, lin_result *result, lin_error *err)
{
    const int n = a->path.n_phones, margin = (int)fmin(ceil(0.25 / a->job->row_s), 1e6); // --row-ms may be any number
    lin_status status = lin_grow_int(&a->goodness, &a->goodness_capacity, n, sizeof *a->goodness, "goodness of phones", err);
    if (status != LIN_OK) return status;
    const int64_t rows = a->keeps_rows ? (int64_t)a->n_rows : lin_align_rows(a->align);
    status = lin_goodness_measure(row_of, a, a->job->recognizer.V, rows, &a->path, margin, a->goodness, err);
    for (int i = 0; i < n && status == LIN_OK; i++) {
        const int heard = a->goodness[i].heard;
        result->phones[i].goodness = a->goodness[i].score;
        result->phones[i].heard = heard == result->phones[i].label ? 0 : heard ? heard : LIN_RESULT_NOTHING;
    }
    return status;
}

// Each phone from where its sound begins to where it ends.
static lin_status follow_sound(aligner *a, lin_result *result, lin_error *err)
{
    lin_status status = LIN_OK;
    if (!a->boundaries) return LIN_OK;
    if (a->keeps_rows) { // done of each utterance
        lin_result_set_times(result, a->segments);
        return LIN_OK;
    }
    status = lin_grow_int(&a->segments, &a->segments_capacity, a->path.n_phones, sizeof *a->segments, "segments", err);
    if (status == LIN_OK) status = lin_boundaries_find(a->boundaries, &a->path, a->job->row_s, result->seconds, a->segments, err);
    if (status == LIN_OK) lin_result_set_times(result, a->segments);
    return status;
}

// While the aligner still knows which pronunciations were chosen.
static lin_status read_stress(aligner *a, lin_error *err)
{
    const lin_align_graph *graph = a->spoken.graph;
    lin_status status = lin_grow_int(&a->stress, &a->stress_capacity, a->path.n_phones, 1, "stress", err);
    if (status != LIN_OK) return status;
    for (int slot = 0, p = 0, w = 0; slot < graph->n_slots; slot++) {
        const signed char *stress = lin_spoken_stress(&a->spoken, slot, lin_align_chosen(a->align, slot));
        const int n = graph->slots[slot].is_word ? a->path.words[w++].n_phones : 1;
        for (int i = 0; i < n && p < a->path.n_phones; i++) a->stress[p++] = stress ? stress[i] : -1;
    }
    return LIN_OK;
}

static lin_status add_path(aligner *a, lin_result *result, lin_error *err)
{
    const lin_result_speller spell = a->job->v->phones ? NULL : lin_spoken_spell;
    const int first = result->n_phones;
    lin_status status = lin_result_add_path(result, &a->path, a->job->row_s, spell, &a->spoken, err);
    for (int i = 0; i < a->path.n_phones && status == LIN_OK; i++) result->phones[first + i].stress = a->stress[i] + 1;
    return status;
}

// What is done with a path that was added to a result.
static lin_status finish_result(aligner *a, align_slot *s, lin_result *result)
{
    result->seconds = s->seconds;
    lin_status status = judge(a, result, &s->error);
    if (status == LIN_OK) status = follow_sound(a, result, &s->error);
    // Up to here times are those of the part that was heard.
    lin_result_shift(result, a->job->part.start_s);
    result->seconds += a->job->part.start_s;
    return status;
}

// ---- a TextGrid: utterances with times ------------------------------------------------------------------------------------------

static void count_marks(align_slot *s, int n, const char *first, size_t n_first)
{
    if (n && s->marks == 0) lin_quote(s->first_mark, first, n_first);
    s->marks += n;
}

// The path of an utterance that begins at a row, behind those before it.
static lin_status append_path(aligner *a, int64_t row, lin_error *err)
{
    lin_path *from = &a->path, *to = &a->whole;
    lin_status status = lin_path_reserve(to, from->n_phones, from->n_words, err);
    if (status != LIN_OK) return status;
    for (int i = 0; i < from->n_phones; i++) {
        from->phones[i].start += row;
        from->phones[i].end += row;
        to->phones[to->n_phones + i] = from->phones[i];
    }
    for (int i = 0; i < from->n_words; i++) {
        from->words[i].start += row;
        from->words[i].end += row;
        to->words[to->n_words + i] = from->words[i];
        to->words[to->n_words + i].first_phone += to->n_phones;
    }
    to->n_phones += from->n_phones;
    to->n_words += from->n_words;
    return LIN_OK;
}

// [laughs] alone is no utterance.
static int has_words(const char *text, align_slot *s)
{
    lin_spelling word;
    lin_error err;
    size_t at = 0;
    if (lin_spelling_next(text, strlen(text), &at, &word, &err) != LIN_OK || word.n) return 1;
    count_marks(s, word.marks, text + word.mark, word.n_mark);
    return 0;
}

// The second look at the sound of an utterance alone, so that what others say around it is not taken for a part of it. Before its
// path is appended; rows and segments count from its first row.
static lin_status look_again(aligner *a, int64_t from, int64_t to, lin_error *err)
{
    const lin_fbank_config *f = &a->job->recognizer.fbank;
    const double row_s = a->job->row_s, hop_s = f->hop_ms / 1000;
    const int first = a->whole.n_phones, n = a->path.n_phones;
    const size_t last = (size_t)fmin(round((double)to * row_s / hop_s), (double)a->n_frames);
    const size_t begin = (size_t)fmin(round((double)from * row_s / hop_s), (double)last);
    if (!a->boundaries) return LIN_OK;
    lin_boundaries_reset(a->boundaries);
    lin_status status = lin_grow_int(&a->segments, &a->segments_capacity, (int64_t)first + n, sizeof *a->segments, "segments", err);
    for (size_t at = begin; at < last && status == LIN_OK;) {
        const size_t more = last - at < 4096 ? last - at : 4096;
        status = lin_boundaries_push(a->boundaries, a->frames + at * (size_t)f->mel_bins, (int)more, err);
        at += more;
    }
    if (status == LIN_OK) {
        status = lin_boundaries_find(a->boundaries, &a->path, row_s, (double)(to - from) * row_s, a->segments + first, err);
    }
    for (int i = first; i < first + n && status == LIN_OK; i++) {
        a->segments[i].start_s += (double)from * row_s;
        a->segments[i].end_s += (double)from * row_s;
    }
    return status;
}

static lin_status align_interval(aligner *a, const lin_interval *v, const char *text, const lin_align_options *o, align_slot *s,
                                 lin_result *result, lin_error *err)
{
    const align_job *job = a->job;
    lin_align_report report;
    // Rows and frames count from the start of the part that was heard.
    const double last = (double)a->n_rows, part_s = job->part.start_s;
    const int64_t from = (int64_t)fmin(fmax(floor((v->start_s - part_s) / job->row_s), 0), last);
    const int64_t to = (int64_t)fmax(fmin(ceil((v->end_s - part_s) / job->row_s), last), (double)from);
    lin_status status = take_text(a, text, strlen(text), err);
    count_marks(s, a->spoken.marks, a->spoken.first_mark, strlen(a->spoken.first_mark));
    if (status != LIN_OK) return status;
    lin_buffer_bytes(&s->guesses, a->spoken.guesses.data, a->spoken.guesses.n);
    status = lin_align_create(a->spoken.graph, o, &a->align, err);
    for (int64_t t = from; t < to && status == LIN_OK;) {
        const int n = to - t < 4096 ? (int)(to - t) : 4096;
        status = lin_align_push(a->align, a->rows + (size_t)t * (size_t)job->recognizer.V, n, err);
        t += n;
    }
    if (status == LIN_OK) status = lin_align_finish(a->align, &a->path, &report, err);
    if (status == LIN_OK) status = read_stress(a, err);
    if (status == LIN_OK) status = look_again(a, from, to, err);
    lin_align_destroy(a->align);
    a->align = NULL;
    if (status == LIN_OK)
        status = lin_grow_int(&a->spans, &a->spans_capacity, (int64_t)a->n_spans + 1, sizeof *a->spans, "utterances", err);
    if (status != LIN_OK) return status;
    a->spans[a->n_spans++] = (span){v->start_s, v->end_s, a->whole.n_phones, a->whole.n_words};
    if (a->n_spans == 1 || report.fit < s->report.fit) s->report = report;
    status = append_path(a, from, err);
    return status == LIN_OK ? add_path(a, result, err) : status;
}

static void keep_within(double *start_s, double *end_s, const span *v)
{
    *start_s = fmin(fmax(*start_s, v->start_s), v->end_s);
    *end_s = fmin(fmax(*end_s, v->start_s), v->end_s);
}

// Times that rows, or a second look at the sound, have put outside an utterance.
static void keep_within_spans(const aligner *a, lin_result *r)
{
    for (int i = 0; i < a->n_spans; i++) {
        const span *v = &a->spans[i], *after = i + 1 < a->n_spans ? v + 1 : NULL;
        for (int p = v->first_phone; p < (after ? after->first_phone : r->n_phones); p++)
            keep_within(&r->phones[p].start_s, &r->phones[p].end_s, v);
        for (int w = v->first_word; w < (after ? after->first_word : r->n_words); w++)
            keep_within(&r->words[w].start_s, &r->words[w].end_s, v);
    }
}

static lin_status align_tier(aligner *a, const lin_textgrid *grid, const lin_tier *tier, const char *path,
                             const lin_align_options *o, align_slot *s, lin_result *result)
{
    lin_status status = LIN_OK;
    lin_path_clear(&a->whole);
    a->n_spans = 0;
    for (int i = 0; i < tier->n && status == LIN_OK; i++) {
        const lin_interval *v = &grid->intervals[tier->first + i];
        const char *text = lin_textgrid_text(grid, v->text);
        lin_error why = {0};
        const lin_part *part = &a->job->part;
        if (v->start_s < part->start_s || (part->end_s > 0 && v->end_s > part->end_s) || !has_words(text, s)) continue;
        const lin_status done = align_interval(a, v, text, o, s, result, &why);
        if (done == LIN_NO_MEMORY) status = lin_fail(&s->error, done, "%s", why.message);
        if (done == LIN_OK || done == LIN_NO_MEMORY) continue;
        s->n_bad++;
        lin_buffer_text(&s->notes, path);
        lin_buffer_text(&s->notes, ": ");
        lin_buffer_fixed(&s->notes, v->start_s, 3);
        lin_buffer_text(&s->notes, " to ");
        lin_buffer_fixed(&s->notes, v->end_s, 3);
        lin_buffer_text(&s->notes, " s: ");
        lin_buffer_text(&s->notes, why.message);
        lin_buffer_char(&s->notes, '\n');
    }
    result->has_words = !a->job->v->phones;
    const lin_path one = a->path; // the rest is done with the path of all
    a->path = a->whole;
    a->whole = one;
    return status;
}

// A result for each speaker; the first is the slot's own.
static lin_status begin_speaker(align_slot *s, const lin_input *input, const char *tier, int channel, lin_result **result)
{
    lin_buffer id = {0};
    lin_status status = LIN_OK;
    *result = &s->result;
    if (s->n_results > 0) {
        const int before = s->more_capacity;
        status = lin_grow_int(&s->more, &s->more_capacity, s->n_results, sizeof *s->more, "speakers", &s->error);
        if (status != LIN_OK) return status;
        memset(s->more + before, 0, (size_t)(s->more_capacity - before) * sizeof *s->more);
        *result = &s->more[s->n_results - 1];
    }
    lin_buffer_text(&id, input->id);
    if (tier) lin_buffer_char(&id, '-');
    for (const char *c = tier; c && *c; c++) {
        lin_buffer_char(&id, (unsigned char)*c <= ' ' || *c == 127 || *c == '(' || *c == ')' || *c == '/' ? '_' : *c);
    }
    status = lin_buffer_status(&id, &s->error);
    if (status == LIN_OK) status = lin_result_begin(*result, id.data, tier ? tier : input->speaker, channel, &s->error);
    lin_buffer_free(&id);
    s->n_results += status == LIN_OK;
    return status;
}

// "anna - words" is a tier that an aligner has made.
static void name_speaker(char *name, size_t capacity, const char *tier)
{
    static const char end[] = " - words";
    size_t n = strlen(tier);
    if (n > sizeof end - 1 && !strcmp(tier + n - (sizeof end - 1), end)) n -= sizeof end - 1;
    snprintf(name, capacity, "%.*s", n > capacity ? (int)capacity : (int)n, tier);
}

static lin_status align_tiers(aligner *a, const lin_input *input, const char *path, lin_textgrid *grid, const lin_align_options *o,
                              align_slot *s)
{
    const int n = lin_textgrid_choose(grid), channel = a->job->channel >= 0 ? a->job->channel + 1 : 1;
    if (n == 0) return lin_fail(&s->error, LIN_INVALID, "%s: no interval has a text", path);
    lin_status status = hear(a, input, s);
    s->n_results = 0;
    for (int t = 0; t < grid->n_tiers && status == LIN_OK; t++) {
        const lin_tier *tier = &grid->tiers[t];
        char name[128];
        name_speaker(name, sizeof name, lin_textgrid_text(grid, tier->name));
        lin_result *result;
        if (!tier->chosen) continue;
        // Speakers are told apart as the channels of a recording are.
        status = begin_speaker(s, input, n > 1 ? name : NULL, n > 1 ? s->n_results + 1 : channel, &result);
        if (status == LIN_OK) status = align_tier(a, grid, tier, path, o, s, result);
        if (status == LIN_OK) status = finish_result(a, s, result);
        if (status == LIN_OK) keep_within_spans(a, result);
    }
    return status;
}

static lin_status align_grid(aligner *a, const lin_input *input, const char *path, const lin_align_options *o, align_slot *s)
{
    lin_textgrid grid;
    lin_status status = lin_textgrid_read(path, &grid, &s->error);
    a->keeps_rows = 1;
    a->n_rows = a->n_frames = 0;
    if (status == LIN_OK) status = align_tiers(a, input, path, &grid, o, s);
    a->keeps_rows = 0;
    if (status == LIN_OK) status = lin_buffer_status(&s->guesses, &s->error);
    if (status == LIN_OK) status = lin_buffer_status(&s->notes, &s->error);
    lin_textgrid_free(&grid);
    return status;
}

// ---- one text -------------------------------------------------------------------------------------------------------------------

static lin_status align_one(aligner *a, int item, align_slot *s)
{
    const align_job *job = a->job;
    const lin_input *input = &job->inputs.items[item];
    const int channel = job->channel >= 0 ? job->channel + 1 : 1;
    lin_align_options o = lin_align_options_default();
    o.beam = job->v->beam;
    o.row_s = job->row_s;
    if (job->beside && lin_corpus_is_textgrid(job->corpus.texts[item]))
        return align_grid(a, input, job->corpus.texts[item], &o, s);
    lin_status status = read_text(a, item, &s->error);
    s->marks = a->spoken.marks;
    memcpy(s->first_mark, a->spoken.first_mark, sizeof s->first_mark);
    if (status == LIN_OK) lin_buffer_bytes(&s->guesses, a->spoken.guesses.data, a->spoken.guesses.n);
    if (status == LIN_OK) status = lin_align_create(a->spoken.graph, &o, &a->align, &s->error);
    if (status == LIN_OK) status = hear(a, input, s);
    if (status == LIN_OK) status = lin_align_finish(a->align, &a->path, &s->report, &s->error);
    if (status == LIN_OK) status = lin_result_begin(&s->result, input->id, input->speaker, channel, &s->error);
    if (status == LIN_OK) status = read_stress(a, &s->error);
    if (status == LIN_OK) status = add_path(a, &s->result, &s->error);
    if (status == LIN_OK) status = finish_result(a, s, &s->result);
    if (status == LIN_OK) status = lin_buffer_status(&s->guesses, &s->error);
    lin_align_destroy(a->align);
    a->align = NULL;
    return status;
}

static void work(void *context, int item, int slot_number, int thread)
{
    align_job *job = context;
    align_slot *s = &job->slots[slot_number];
    s->error = (lin_error){0};
    if (job->inputs.items[item].done) return;
    s->warning[0] = 0;
    s->seconds = 0;
    s->incomplete = 0;
    s->n_results = 1;
    s->marks = s->n_bad = 0;
    s->report = (lin_align_report){0};
    lin_buffer_clear(&s->guesses);
    lin_buffer_clear(&s->notes);
    s->status = lin_interrupted ? lin_fail(&s->error, LIN_STOPPED, "interrupted") : align_one(&job->aligners[thread], item, s);
}

// ---- results, in order ----------------------------------------------------------------------------------------------------------

// Each word that the lexicon lacks once, and of many only the first.
static lin_status tell_guesses(align_job *job, const lin_buffer *guesses, lin_error *err)
{
    lin_lines lines = {0};
    lin_status status = LIN_OK;
    if (job->v->quiet || guesses->n == 0) return LIN_OK;
    lin_lines_begin(&lines, guesses->data, guesses->n);
    while (status == LIN_OK && lin_lines_next(&lines)) {
        const int before = job->guessed.n;
        int index;
        status = lin_symbols_add(&job->guessed, lines.text, lines.n, &index, err);
        const char *tab = memchr(lines.text, '\t', lines.n);
        if (status != LIN_OK || !tab || job->guessed.n == before || before >= GUESSES_TOLD) continue;
        const int n_word = (int)(tab - lines.text);
        lin_complain("'%.*s' is not in the lexicon; it is taken for %.*s", n_word, lines.text, (int)lines.n - n_word - 1, tab + 1);
    }
    return status;
}

// What a result that is there does not say by itself.
static void tell_doubts(const align_job *job, const lin_input *input, const align_slot *s)
{
    const lin_align_report *r = &s->report;
    const lin_align_options o = lin_align_options_default();
    if (s->warning[0]) lin_complain_of(input->path, s->warning);
    if (r->widened && !job->v->quiet) {
        lin_complain("%s: the beam was widened %d time%s, up to %g and %d states", input->path, r->widened,
                     r->widened == 1 ? "" : "s", r->beam, r->width);
    }
    if (r->fit < LIN_ALIGN_FIT) {
        lin_complain("%s: text and sound hardly belong together: log-probability of the text %.1f a phoneme below that of the best "
                     "labels; texts that were said have above %.0f", input->path, r->fit, LIN_ALIGN_FIT);
    } else if (r->worst_fit < o.mismatch && s->seconds > o.stretch_s) {
        const double at = (double)r->worst_row * job->row_s + job->part.start_s;
        lin_complain("%s: text and sound do not match around %.1f to %.1f s", input->path, at, at + o.stretch_s);
    }
}

static lin_status is_bad(align_job *job, const lin_input *input, const lin_error *error)
{
    lin_complain_of(input->path, error->message);
    job->n_failed++;
    return LIN_OK;
}

static void tell_notes(align_job *job, const align_slot *s)
{
    lin_lines lines = {0};
    lin_lines_begin(&lines, s->notes.data ? s->notes.data : "", s->notes.n);
    while (lin_lines_next(&lines)) lin_complain("%.*s", (int)lines.n, lines.text);
    job->n_bad += s->n_bad;
}

static lin_status put(align_job *job, const lin_input *input, const align_slot *s, lin_error *err)
{
    enum { MOST = LIN_TEXTGRID_TIERS };
    const lin_result *list[MOST] = {&s->result};
    for (int i = 1; i < s->n_results; i++) list[i] = &s->more[i - 1];
    return lin_results_put(&job->results, input->name, list, s->n_results, err);
}

static lin_status take(void *context, int item, int slot_number, lin_error *err)
{
    align_job *job = context;
    align_slot *s = &job->slots[slot_number];
    const lin_input *input = &job->inputs.items[item];
    if (input->done) return LIN_OK;
    if (s->status == LIN_STOPPED)
        return lin_fail(err, LIN_STOPPED, "interrupted after %d of %d utterances", job->n_done, job->inputs.n);
    lin_status status = tell_guesses(job, &s->guesses, err);
    if (status != LIN_OK) return status;
    if (job->n_marks == 0) memcpy(job->first_mark, s->first_mark, sizeof job->first_mark);
    job->n_marks += s->marks;
    if (s->status != LIN_OK) return is_bad(job, input, &s->error);
    tell_doubts(job, input, s);
    tell_notes(job, s);
    status = put(job, input, s, err);
    if (status == LIN_INVALID) return is_bad(job, input, err);
    if (status != LIN_OK) return status;
    job->n_done++;
    job->n_incomplete += s->incomplete;
    job->seconds += s->seconds;
    const int n = job->n_done + job->n_failed;
    lin_progress_of(&job->progress, (double)n / job->inputs.n, "%.0f x real time, %d of %d utterances",
                    job->seconds / (lin_now() - job->progress.begun + 1e-9), n, job->inputs.n);
    return LIN_OK;
}

// ---- the whole ------------------------------------------------------------------------------------------------------------------

static lin_status gather_data(align_job *job, lin_error *err)
{
    lin_status status = lin_inputs_add_data(&job->inputs, job->v->data, job->v->audio_root, err);
    int texts = 0;
    for (int i = 0; i < job->inputs.n && status == LIN_OK; i++) texts += lin_datadir_at(job->inputs.dir, i)->text != NULL;
    if (status == LIN_OK && !texts)
        return lin_fail(err, LIN_INVALID, "%s says of no utterance what was said; write lines 'ID WORDS' into %s/text",
                        job->v->data, job->v->data);
    return status;
}

static lin_status gather_beside(align_job *job, const lin_list *operands, lin_error *err)
{
    lin_status status = lin_corpus_gather(&job->corpus, &job->inputs, operands, job->v->results.output_dir, err);
    if (status != LIN_OK) return status;
    if (!job->inputs.n && operands->count == 1 && !lin_is_folder(operands->items[0])) {
        return lin_fail(err, LIN_INVALID, "%s: nothing says what was said: no text lies beside it (the same name with .lab, .txt "
                        "or .TextGrid), and there is no TEXTFILE, --text, --text-file or --phones", operands->items[0]);
    }
    lin_corpus_report(&job->corpus);
    job->n_failed += job->corpus.without_text;
    if (job->inputs.n) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "%s%s: there is no sound with a text beside it (the same name with .lab, .txt or .TextGrid)",
                    operands->items[0], operands->count > 1 ? " and others" : "");
}

static lin_status gather(align_job *job, const lin_parsed *parsed, lin_error *err)
{
    const align_values *v = job->v;
    if (v->data) return gather_data(job, err);
    if (job->beside) return gather_beside(job, &parsed->operands, err);
    const char *path = v->posteriors ? v->posteriors : parsed->operands.items[0];
    const char *file = v->text_file ? v->text_file : parsed->operands.count > 1 ? parsed->operands.items[1] : NULL;
    const char *given = v->text ? v->text : v->phones;
    lin_status status = lin_inputs_add_paths(&job->inputs, &(lin_list){&path, 1}, err);
    if (status == LIN_OK && file && lin_corpus_is_textgrid(file)) {
        job->beside = 1;
        return lin_corpus_add_text(&job->corpus, file, err);
    }
    if (status != LIN_OK || !given) return status == LIN_OK ? lin_text_read(file, &job->text, &job->n_text, err) : status;
    job->text = lin_strdup(given);
    job->n_text = strlen(given);
    return job->text ? LIN_OK : lin_no_memory(err, "a text", job->n_text);
}

// Files that must not be written, and that --skip-done compares with the results.
static lin_status note_texts(align_job *job, const lin_parsed *parsed, lin_error *err)
{
    const align_values *v = job->v;
    const char *file = v->text_file ? v->text_file : parsed->operands.count > 1 ? parsed->operands.items[1] : NULL;
    char path[4096];
    if (v->data) {
        snprintf(path, sizeof path, "%s%s", v->data, lin_is_folder(v->data) ? "/text" : "");
        file = lin_inputs_own(&job->inputs, lin_strdup(path));
        if (!file) return lin_no_memory(err, "the list of files", strlen(path));
    }
    lin_status status = LIN_OK;
    for (int i = 0; i < job->inputs.n && status == LIN_OK; i++) {
        job->inputs.items[i].text = job->beside ? job->corpus.texts[i] : file;
        if (job->beside) status = lin_guard_reads(job->corpus.texts[i], err);
    }
    return status;
}

static lin_status make_threads(align_job *job, lin_error *err)
{
    const int cores = lin_ordered_threads(job->v->jobs, 1024), n = lin_ordered_threads(job->v->jobs, job->inputs.n);
    job->n_slots = lin_ordered_slots(n);
    job->slots = lin_calloc((size_t)job->n_slots, sizeof *job->slots);
    job->aligners = lin_calloc((size_t)n, sizeof *job->aligners);
    if (!job->slots || !job->aligners) return lin_no_memory(err, "threads", (size_t)n * sizeof *job->aligners);
    job->n_aligners = n;
    for (int i = 0; i < n; i++) {
        job->aligners[i].job = job;
        if (job->v->posteriors) continue;
        lin_status status = lin_ear_create(&job->recognizer, cores / n > 1 ? cores / n : 1, &job->aligners[i].ear, err);
        if (status == LIN_OK && job->v->times == TIMES_SOUND) {
            const lin_fbank_config *f = &job->recognizer.fbank;
            const lin_boundaries_options o = {f->mel_bins, f->low_hz, f->high_hz > 0 ? f->high_hz : f->sample_hz / 2 + f->high_hz,
                                              f->hop_ms / 1000, f->window_ms / 1000};
            status = lin_boundaries_create(job->recognizer.phones, &o, &job->aligners[i].boundaries, err);
        }
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

static lin_status align(align_job *job, lin_error *err)
{
    const align_values *v = job->v;
    // A matrix needs of the model only the names of its phones and the length of its steps.
    lin_status status = lin_recognizer_open(&job->recognizer, v->model.model, v->posteriors ? "cpu" : v->model.device,
                                            lin_model_precision(&v->model), err);
    if (status == LIN_OK) job->row_s = v->row_ms > 0 ? v->row_ms / 1000 : job->recognizer.row_seconds;
    if (status == LIN_OK && !v->phones) status = lin_spoken_lexicon_open(&job->lexicon, v->lexicon, job->recognizer.phones, err);
    if (status == LIN_OK && v->stress && job->lexicon.dictionary && !lin_dictionary_has_stress(job->lexicon.dictionary))
        lin_complain("%s has no stress for --stress to keep; CMUdict as its makers publish it has (--lexicon cmudict.dict)",
                     job->lexicon.path);
    if (status == LIN_OK) status = make_threads(job, err);
    if (status == LIN_OK && job->recognizer.model->speaker_norm && !v->posteriors)
        status = lin_speakers_measure(&job->speakers, &job->inputs, &job->recognizer, v->jobs, err);
    const int many = v->data != NULL || job->inputs.n > 1;
    if (status == LIN_OK) status = lin_results_open(&job->results, job->recognizer.phones, many, err);
    if (status != LIN_OK) return status;
    lin_progress_begin(&job->progress, v->quiet);
    status = lin_ordered_run(&(lin_ordered){job->inputs.n, job->n_aligners, job, work, take}, err);
    lin_progress_end(&job->progress);
    if (job->guessed.n > GUESSES_TOLD)
        lin_complain("and %d more words that are not in %s", job->guessed.n - GUESSES_TOLD, job->lexicon.path);
    if (!v->quiet) lin_complain_of_marks(job->n_marks, job->first_mark);
    return lin_results_close(&job->results, status, job->n_failed, err);
}

static void summary(const align_job *job)
{
    const double wall = lin_now() - job->progress.begun;
    char note[128];
    lin_inputs_note(&job->inputs, job->n_failed, job->n_incomplete, note, sizeof note);
    lin_complain("%d utterance%s%s, %.1f s of sound in %.2f s: %.0f x real time", job->n_done, job->n_done == 1 ? "" : "s", note,
                 job->seconds, wall, wall > 0 ? job->seconds / wall : 0);
}

static void release(align_job *job)
{
    for (int i = 0; i < job->n_aligners; i++) {
        aligner *a = &job->aligners[i];
        lin_ear_destroy(a->ear);
        lin_spoken_free(&a->spoken);
        lin_path_free(&a->path);
        lin_free(a->goodness);
        lin_free(a->stress);
        lin_path_free(&a->whole);
        lin_free(a->rows);
        lin_free(a->frames);
        lin_free(a->spans);
        lin_boundaries_destroy(a->boundaries);
        lin_free(a->segments);
    }
    for (int i = 0; i < job->n_slots && job->slots; i++) {
        lin_result_free(&job->slots[i].result);
        for (int k = 0; k < job->slots[i].more_capacity; k++) lin_result_free(&job->slots[i].more[k]);
        lin_free(job->slots[i].more);
        lin_buffer_free(&job->slots[i].guesses);
        lin_buffer_free(&job->slots[i].notes);
    }
    lin_free(job->aligners);
    lin_free(job->slots);
    lin_free(job->text);
    lin_symbols_free(&job->guessed);
    lin_results_free(&job->results);
    lin_speakers_free(&job->speakers);
    lin_spoken_lexicon_close(&job->lexicon);
    lin_inputs_free(&job->inputs);
    lin_corpus_free(&job->corpus);
    lin_recognizer_close(&job->recognizer);
}

// FILE TEXTFILE, as against two files with their texts beside them.
static int names_a_text(const lin_list *operands)
{
    return operands->count == 2 && !lin_corpus_is_sound(operands->items[1]) && !lin_corpus_is_text(operands->items[0]) &&
           !lin_is_folder(operands->items[0]) && !lin_is_folder(operands->items[1]);
}

// What the table cannot say about how options go together. LIN_EXIT_OK if all is well.
static int check(const lin_parsed *parsed, align_job *job)
{
    const align_values *v = job->v;
    const int n = parsed->operands.count, given = (v->text != NULL) + (v->text_file != NULL) + (v->phones != NULL);
    lin_error err = {0};
    if ((n > 0) + (v->data != NULL) + (v->posteriors != NULL) != 1)
        return lin_misuse(parsed, "one of FILE, FOLDER, --data and --posteriors says what to align");
    if (v->data && given) return lin_misuse(parsed, "--data has a text for every utterance of its own");
    if (given + (n == 2 && names_a_text(&parsed->operands)) > 1 || (given && n > 1) || (v->posteriors && !given))
        return lin_misuse(parsed, "one of TEXTFILE, --text, --text-file and --phones says what was said");
    if (given && n && lin_is_folder(parsed->operands.items[0]))
        return lin_misuse(parsed, "the texts of a folder lie beside its sounds: --text, --text-file and --phones are for one FILE");
    job->beside = n > 0 && !given && !names_a_text(&parsed->operands);
    for (int i = 0; i < n && job->beside; i++) {
        if (!strcmp(parsed->operands.items[i], "-"))
            return lin_misuse(parsed, "nothing lies beside standard input: TEXTFILE, --text, --text-file or --phones says what was "
                                      "said");
    }
    if (v->row_ms > 0 && !v->posteriors) return lin_misuse(parsed, "--row-ms is for --posteriors");
    if (v->lexicon && v->phones) return lin_misuse(parsed, "--phones needs no --lexicon");
    if (lin_input_channel(&v->input, &job->channel, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (lin_input_part(&v->input, &job->part, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (v->posteriors && (v->input.start || v->input.end))
        return lin_misuse(parsed, "--start and --end are of a sound, not of --posteriors");
    if (job->channel == LIN_CHANNEL_EACH) return lin_misuse(parsed, "a text is of one channel: --channel mix or a number");
    job->how = v->results;
    if (!job->how.format && job->how.output_dir) job->how.format = "textgrid"; // text alone would say nothing new of each file
    const int status = lin_results_check(&job->results, parsed, &job->how);
    job->results.how.times = 1;
    job->results.speakers = 1;
    job->results.how.stress = v->stress;
    return status;
}

static int run(lin_parsed *parsed)
{
    align_job job = {.v = parsed->values};
    lin_error err = {0};
    const int exit_status = check(parsed, &job);
    if (exit_status != LIN_EXIT_OK) return exit_status;
    lin_status status = gather(&job, parsed, &err);
    if (status == LIN_OK) status = note_texts(&job, parsed, &err);
    if (status == LIN_OK) status = lin_results_fit(&job.results, &job.inputs, 0, &err);
    lin_progress_begin(&job.progress, 1);
    if (status == LIN_OK && !lin_inputs_all_done(&job.inputs)) status = align(&job, &err);
    const int done = status == LIN_OK && !job.v->quiet, failed = job.n_failed + job.n_incomplete + job.n_bad > 0;
    if (done && job.inputs.n) summary(&job);
    release(&job);
    if (status != LIN_OK) return lin_give_up(&err);
    return failed ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

const lin_command lin_command_align = {
    .name = "align",
    .operands = "[FILE TEXTFILE | FILE|FOLDER...]",
    .summary = "when each phoneme and word of a known text was said",
    .description = "Finds the best path of a sound through a text that is known: the times of its phonemes and words, how "
                   "probable each is, and, in json and in csv with --unit both, the goodness of pronunciation of every "
                   "phoneme: the natural logarithm of the probability that it and no other was said there. Of several "
                   "pronunciations in the lexicon the sound chooses one; words that it lacks are pronounced as linnet "
                   "phonemize does.\n\n"
                   "Text is a table here: start and end in seconds, and the word; phonemes with --unit phones, both with --unit "
                   "both.\n\n"
                   "Given a FOLDER, or several files, it looks for the text beside each sound: the same name with .lab, .txt or "
                   ".TextGrid, sought in this order. A folder is read with all folders below it (corpora of the Montreal Forced "
                   "Aligner: speaker/file.wav with speaker/file.lab); with --output-dir results lie in the same folders there, as "
                   "TextGrids where no --format is given. The folder that a sound lies in is its speaker. Sounds without a text "
                   "are named and skipped, and the exit status is then 1.\n\n"
                   "Of a TextGrid every interval with a text is an utterance, which is aligned within its times; tiers that lie "
                   "beside each other in time are speakers, each with a result of its own.\n\n"
                   "A text that is longer than the sound, or that nobody can pronounce, is an error; a text that was probably "
                   "not said is told on standard error and aligned nevertheless. Of a data directory all utterances that can "
                   "be aligned are. See docs/alignment.md.",
    .examples = "  linnet align --text \"how are you\" hello.wav\n"
                "  linnet align --text \"how are you\" -f textgrid -o hello.TextGrid hello.wav\n"
                "  linnet align -f json lecture.flac lecture.txt\n"
                "  linnet align corpus --output-dir aligned\n"
                "  linnet align --phones \"HH AH L OW\" -f ctm hello.wav\n"
                "  linnet align --data corpus/dev --output-dir aligned -f textgrid,json",
    .options = options,
    .values_size = sizeof(align_values),
    .max_operands = -1,
    .run = run,
};
