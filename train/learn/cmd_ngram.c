// cmd_ngram.c - linnet ngram: n-gram language models from text; prune, mix, pack and measure them.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/common.h"
#include "app/inputs.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "train/learn/cmd_sentences.h"
#include "train/learn/kneser_ney.h"
#include "train/learn/ngram_count.h"
#include "train/learn/ngram_draft.h"
#include "train/learn/ngram_mix.h"
#include "train/learn/ngram_perplexity.h"
#include "train/learn/ngram_sample.h"
#include "lexicon/ngram_file.h"

typedef struct ngram_values {
    const char *output, *vocabulary, *weights, *dev;
    lin_sentences_values text;
    int order, unknown, packed, bits, smoothing, sentences, json, quiet, count, seed;
    double entropy;
    lin_numbers minimum;
} ngram_values;

enum { KNESER_NEY, ABSOLUTE };

static const lin_option options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = offsetof(ngram_values, output),
     .help = "Output file; if not given, standard output"},
    {.name = "packed", .type = LIN_OPTION_FLAG, .at = offsetof(ngram_values, packed),
     .help = "count, prune and mix: write the packed form, as pack does, instead of ARPA text"},
    {.name = "bits", .under = "set", .type = LIN_OPTION_INT, .at = offsetof(ngram_values, bits), .text = "16", .min = 4,
     .max = 16,
     .help = "With --packed: bits of a probability or weight, for single words 4 more. 8 makes the file about a quarter smaller "
             "and rounds each of them"},
    {.name = "set", .type = LIN_OPTION_SETTINGS, .help = "Parameters for experts"},
    LIN_JSON_ROW(offsetof(ngram_values, json), "perplexity and info: write one JSON object"),
    LIN_QUIET_ROW(offsetof(ngram_values, quiet), "Print no summary and no messages on standard error"),
    {.type = LIN_OPTION_HEADING, .help = "Text (count, perplexity, mix)"},
    LIN_SENTENCES_ROWS(ngram_values, text),
    {.type = LIN_OPTION_HEADING, .help = "Making a model (count)"},
    {.name = "order", .letter = 'n', .type = LIN_OPTION_INT, .at = offsetof(ngram_values, order), .text = "3", .min = 1,
     .max = LIN_NGRAM_MAX_ORDER, .help = "Words in the longest n-grams"},
    {.name = "min-count", .under = "set", .type = LIN_OPTION_NUMBERS, .at = offsetof(ngram_values, minimum), .text = "1",
     .min = 1, .max = 1e9, .value = "N,N,...",
     .help = "Leave out n-grams that occur less often: words (they count as <unk>), pairs, triples, ...; the last number also "
             "applies to longer ones, and a single number to all but words"},
    {.name = "vocabulary", .type = LIN_OPTION_FILE, .at = offsetof(ngram_values, vocabulary),
     .help = "The words of the model, one per line (the rest of a line is ignored); all others count as <unk>"},
    {.name = "unknown", .type = LIN_OPTION_FLAG, .at = offsetof(ngram_values, unknown), .text = "yes",
     .help = "Include <unk>, with some probability for unknown words. Not needed for phones"},
    {.name = "smoothing", .under = "set", .type = LIN_OPTION_CHOICE, .at = offsetof(ngram_values, smoothing),
     .text = "kneser-ney", .choices = "kneser-ney|absolute",
     .help = "kneser-ney: shorter n-grams count the distinct words before them. absolute: they count how often they occur; use "
             "it for a model that --entropy makes much smaller"},
    {.type = LIN_OPTION_HEADING, .help = "Mixing two models (mix)"},
    {.name = "weights", .type = LIN_OPTION_STRING, .at = offsetof(ngram_values, weights), .text = "auto", .value = "auto|W1,W2",
     .help = "Shares of the two models, divided by their sum; auto: the shares that predict the text of --text best"},
    {.name = "text", .type = LIN_OPTION_FILE, .at = offsetof(ngram_values, dev),
     .help = "A few hundred sentences like those that the model is for, which neither model has seen"},
    {.type = LIN_OPTION_HEADING, .help = "Pruning (prune; count and mix do it too)"},
    {.name = "entropy", .type = LIN_OPTION_DOUBLE, .at = offsetof(ngram_values, entropy), .text = "0", .min = 0, .max = 1,
     .help = "Remove n-grams without which the perplexity rises by less than this fraction; 1e-8 is a usual start"},
    {.type = LIN_OPTION_HEADING, .help = "Measuring a model (perplexity)"},
    {.name = "sentences", .type = LIN_OPTION_FLAG, .at = offsetof(ngram_values, sentences),
     .help = "Print a line per sentence too, with position, words, unknown words, logarithm and perplexity, separated by tabs"},
    {.type = LIN_OPTION_HEADING, .help = "Sentences (generate)"},
    {.name = "count", .type = LIN_OPTION_INT, .at = offsetof(ngram_values, count), .text = "10", .min = 1, .max = 1e9,
     .help = "Number of sentences"},
    LIN_SEED_ROW(offsetof(ngram_values, seed), "Equal seeds give equal sentences"),
    {.type = LIN_OPTION_END},
};

// A model by its path, or an installed one by its name.
static lin_status open_model(const ngram_values *v, const char *given, lin_ngram **lm, lin_error *err)
{
    char path[4096];
    *lm = NULL;
    LIN_TRY(lin_find_lm(NULL, given, path, sizeof path, err));
    LIN_TRY(lin_guard_found(path, v->output, err));
    return lin_ngram_open(path, lm, err);
}

/* ---- writing a model ------------------------------------------------------------------------------------------------------- */

static lin_status write_arpa(const ngram_values *v, const lin_ngram_draft *draft, int exactly, lin_error *err)
{
    lin_output out;
    LIN_TRY(lin_output_open(v->output, 0, &out, err));
    const char *name = out.path ? out.path : "standard output";
    return lin_output_end(&out, lin_ngram_draft_write_arpa(draft, exactly, out.file, name, err), err);
}

static lin_status write_draft(const ngram_values *v, lin_ngram_draft *draft, lin_error *err)
{
    if (v->packed) {
        lin_ngram *lm;
        draft->code_bits = v->bits;
        lin_status status = lin_ngram_draft_finish(draft, v->output, &lm, err);
        if (status == LIN_OK) status = lin_ngram_write(lm, v->output, err);
        lin_ngram_destroy(lm);
        return status;
    }
    return write_arpa(v, draft, 0, err);
}

// "1-grams 40, 2-grams 1200, ...", as they will be written.
static void append_counts(const lin_ngram_draft *draft, char *text, size_t size)
{
    size_t used = 0;
    for (int k = 1; k <= draft->order && used < size; k++)
        used += (size_t)snprintf(text + used, size - used, "%s%zu %d-grams", k > 1 ? ", " : "", draft->level[k - 1].n, k);
}

/* ---- count ----------------------------------------------------------------------------------------------------------------- */

static lin_status read_vocabulary(lin_ngram_counter *counter, const ngram_values *v, lin_error *err)
{
    char *text;
    size_t n;
    LIN_TRY(lin_sentences_read(&v->text, v->vocabulary, &text, &n, err));
    lin_status status = lin_ngram_counter_vocabulary(counter, text, n, v->vocabulary, err);
    lin_free(text);
    return status;
}

static lin_status count_line(void *context, const char *where, lin_sentence line, lin_error *err)
{
    (void)where;
    return lin_ngram_counter_line(context, line.text, line.n, err);
}

static lin_status count_texts(const ngram_values *v, const char *const *paths, int n, lin_ngram_counts *counts, int *failed,
                              lin_error *err)
{
    lin_ngram_count_options how = {.order = v->order, .unknown = v->unknown, .occurrences = v->smoothing == ABSOLUTE};
    for (int k = 0; k < LIN_NGRAM_MAX_ORDER; k++) {
        int last = v->minimum.count - 1;
        how.minimum[k] = last < 0 ? 1 : (uint32_t)v->minimum.items[k < last ? k : last];
    }
    if (v->minimum.count == 1) how.minimum[0] = 1;
    lin_ngram_counter *counter;
    lin_status status = lin_ngram_counter_create(&how, &counter, err);
    if (status != LIN_OK) return status;
    if (v->vocabulary) status = read_vocabulary(counter, v, err);
    if (status == LIN_OK) status = lin_sentences_each(&v->text, paths, n, count_line, counter, failed, err);
    if (status == LIN_OK) status = lin_ngram_counter_finish(counter, counts, err);
    lin_ngram_counter_destroy(counter);
    return status;
}

static void tell_notes(const ngram_values *v, const lin_ngram_draft *draft, const lin_kneser_ney_note *notes)
{
    for (int k = 1; k <= draft->order; k++) {
        const lin_kneser_ney_note *note = &notes[k - 1];
        if (!note->fallback) continue;
        const unsigned long long n[4] = {note->counts[0], note->counts[1], note->counts[2], note->counts[3]};
        lin_complain("note: %llu, %llu, %llu and %llu %d-grams with counts 1, 2, 3 and 4 give no discounts; %g, %g, %g are used",
                     n[0], n[1], n[2], n[3], k, note->discounts[0], note->discounts[1], note->discounts[2]);
    }
    if (draft->order == v->order) return;
    lin_complain("note: no n-grams longer than %d are left; the model has this order", draft->order);
}

static int run_count(const lin_parsed *parsed, const char *const *paths, int n)
{
    const ngram_values *v = parsed->values;
    lin_ngram_counts counts = {0};
    lin_ngram_draft draft = {0};
    lin_kneser_ney_note notes[LIN_NGRAM_MAX_ORDER];
    lin_error err = {0};
    int failed = 0;
    double begun = lin_now();
    lin_status status = count_texts(v, paths, n, &counts, &failed, &err);
    if (status == LIN_OK) status = lin_kneser_ney(&counts, &draft, notes, &err);
    if (status == LIN_OK && v->entropy > 0) status = lin_ngram_prune(&draft, v->entropy, &err);
    if (status == LIN_OK && !v->quiet) tell_notes(v, &draft, notes);
    char text[512] = "";
    append_counts(&draft, text, sizeof text);
    if (status == LIN_OK) status = write_draft(v, &draft, &err);
    if (status == LIN_OK && !v->quiet)
        lin_complain("%llu sentences, %llu words (%llu as <unk>): %s; %.1f s", (unsigned long long)counts.n_lines,
                     (unsigned long long)counts.n_words, (unsigned long long)counts.n_unknown, text, lin_now() - begun);
    lin_ngram_draft_free(&draft);
    lin_ngram_counts_free(&counts);
    if (status == LIN_INVALID) return lin_misuse(parsed, "%s", err.message);
    return status != LIN_OK ? lin_give_up(&err) : failed ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

/* ---- prune, pack, arpa: verbs that open a model ---------------------------------------------------------------------------- */

static lin_status prune(const ngram_values *v, const char *path, lin_ngram **lm, lin_error *err)
{
    lin_ngram_draft draft = {0};
    char before[512] = "", after[512] = "";
    const double begun = lin_now();
    lin_status status = lin_ngram_draft_of(*lm, &draft, err);
    lin_ngram_destroy(*lm);
    *lm = NULL;
    append_counts(&draft, before, sizeof before);
    if (status == LIN_OK) status = lin_ngram_prune(&draft, v->entropy, err);
    append_counts(&draft, after, sizeof after);
    if (status == LIN_OK) status = write_draft(v, &draft, err);
    if (status == LIN_OK && !v->quiet) lin_complain("%s: %s before, %s after; %.1f s", path, before, after, lin_now() - begun);
    lin_ngram_draft_free(&draft);
    return status;
}

static lin_status pack(const ngram_values *v, const char *path, lin_ngram **lm, lin_error *err)
{
    (void)path;
    return lin_ngram_write(*lm, v->output, err);
}

static lin_status arpa(const ngram_values *v, const char *path, lin_ngram **lm, lin_error *err)
{
    lin_ngram_draft draft;
    (void)path;
    LIN_TRY(lin_ngram_draft_of(*lm, &draft, err));
    const lin_status status = write_arpa(v, &draft, 1, err);
    lin_ngram_draft_free(&draft);
    return status;
}

/* ---- perplexity, info ------------------------------------------------------------------------------------------------------ */

typedef struct scoring {
    const ngram_values *v;
    const lin_ngram *lm;
    lin_ngram_perplexity sum;
    lin_buffer sentences;
    uint64_t n;
} scoring;

static lin_status score_line(void *context, const char *where, lin_sentence line, lin_error *err)
{
    scoring *s = context;
    lin_ngram_perplexity one = {0};
    LIN_TRY(lin_ngram_perplexity_line(s->lm, line.text, line.n, &one, err));
    lin_ngram_perplexity_add(&s->sum, &one);
    if (!s->v->sentences) return LIN_OK;
    lin_buffer *out = &s->sentences;
    if (s->v->json) {
        lin_buffer_text(out, s->n++ ? "," : "");
        lin_buffer_json_format(out, "\n  {'at': %s, ", where);
        lin_ngram_perplexity_json(&one, out);
        lin_buffer_char(out, '}');
    } else {
        lin_buffer_text(out, where);
        lin_ngram_perplexity_columns(&one, out);
    }
    return lin_buffer_status(out, err);
}

static int run_perplexity(const lin_parsed *parsed, const char *const *paths, int n)
{
    const ngram_values *v = parsed->values;
    lin_ngram *lm;
    lin_error err = {0};
    int failed = 0;
    if (open_model(v, paths[0], &lm, &err) != LIN_OK) return lin_give_up(&err);
    scoring s = {.v = v, .lm = lm};
    lin_buffer out = {0};
    lin_status status = lin_sentences_each(&v->text, paths + 1, n - 1, score_line, &s, &failed, &err);
    if (status == LIN_OK && !s.sum.sentences) status = lin_fail(&err, LIN_FORMAT, "the text has no sentence");
    if (status == LIN_OK && v->json) {
        lin_buffer_char(&out, '{');
        lin_ngram_perplexity_json(&s.sum, &out);
        if (v->sentences) {
            lin_buffer_text(&out, ", \"each\": [");
            lin_buffer_bytes(&out, s.sentences.data, s.sentences.n);
            lin_buffer_char(&out, ']');
        }
        lin_buffer_text(&out, "}\n");
    } else if (status == LIN_OK) {
        char name[64];
        if (v->sentences) lin_buffer_bytes(&out, s.sentences.data, s.sentences.n);
        lin_ngram_perplexity_text(&s.sum, lin_sentences_name(paths + 1, n - 1, name), &out);
    }
    if (status == LIN_OK) status = lin_output_write(v->output, 0, &out, &err);
    lin_buffer_free(&s.sentences);
    lin_buffer_free(&out);
    lin_ngram_destroy(lm);
    return status != LIN_OK ? lin_give_up(&err) : failed ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

static lin_status info(const ngram_values *v, const char *path, lin_ngram **lm, lin_error *err)
{
    const int order = lin_ngram_order(*lm);
    const int has_unknown = (*lm)->unknown >= 0;
    const unsigned long long hash = lin_ngram_fingerprint(*lm);
    lin_buffer out = {0};
    (void)path;
    lin_buffer_format(&out, v->json ? "{\"order\": %d, \"ngrams\": [" : "order:       %d\n", order);
    for (int k = 1; k <= order; k++) {
        const long long n = lin_ngram_count(*lm, k);
        if (v->json) lin_buffer_format(&out, "%s%lld", k > 1 ? ", " : "", n);
        else lin_buffer_format(&out, "%d-grams:     %lld\n", k, n);
    }
    if (v->json)
        lin_buffer_format(&out, "], \"unknown\": %s, \"fingerprint\": \"%016llx\"}\n", has_unknown ? "true" : "false", hash);
    else
        lin_buffer_format(&out, "<unk>:       %s\nfingerprint: %016llx\n", has_unknown ? "yes" : "no", hash);
    const lin_status status = lin_output_write(v->output, 0, &out, err);
    lin_buffer_free(&out);
    return status;
}

/* ---- generate -------------------------------------------------------------------------------------------------------------- */

// Writes one sentence per line, without those that have no word.
static lin_status write_sentences(const ngram_values *v, const lin_ngram_sampler *sampler, const lin_output *out, lin_error *err)
{
    enum { LONGEST = 1000, MOST_EMPTY = 100000 }; // words, sentences in turn: a model may never end a sentence, or have no word
    lin_ngram_draws draws = {.key = (uint64_t)v->seed};
    lin_buffer text = {0};
    lin_status status = LIN_OK;
    for (int i = 0, empty = 0; i < v->count && status == LIN_OK;) {
        if (lin_ngram_sampler_sentence(sampler, &draws, LONGEST, &text)) i++, empty = 0;
        else if (++empty == MOST_EMPTY) status = lin_fail(err, LIN_UNSUPPORTED, "%d sentences in turn have no word", empty);
        if (lin_interrupted) status = lin_fail(err, LIN_STOPPED, "interrupted after %d sentences", i);
        if (text.n < 65536 && i < v->count && status == LIN_OK) continue;
        if (status == LIN_OK) status = lin_buffer_status(&text, err);
        if (status == LIN_OK) status = lin_buffer_write(&text, out->file, out->path ? out->path : "standard output", err);
        lin_buffer_clear(&text);
    }
    lin_buffer_free(&text);
    return status;
}

static lin_status generate(const ngram_values *v, const char *path, lin_ngram **lm, lin_error *err)
{
    lin_ngram_sampler *sampler;
    lin_output out;
    (void)path;
    lin_status status = lin_ngram_sampler_create(*lm, &sampler, err);
    if (status == LIN_OK) status = lin_output_open(v->output, 0, &out, err);
    if (status == LIN_OK) status = lin_output_end(&out, write_sentences(v, sampler, &out, err), err);
    lin_ngram_sampler_destroy(sampler);
    return status;
}

/* ---- mix ------------------------------------------------------------------------------------------------------------------- */

static lin_status fit_line(void *context, const char *where, lin_sentence line, lin_error *err)
{
    (void)where;
    return lin_ngram_fit_line(context, line.text, line.n, err);
}

// The weight of the first model that fits the text best.
static lin_status fit_weight(const ngram_values *v, const char *const *paths, lin_ngram *const *lms, double *weight, int *failed,
                             lin_error *err)
{
    lin_ngram_fit fit = {.a = lms[0], .b = lms[1]};
    lin_status status = lin_sentences_each(&v->text, &v->dev, 1, fit_line, &fit, failed, err);
    if (status == LIN_OK && !fit.n)
        status = lin_fail(err, LIN_FORMAT, "%s: neither model has a word of it, so it gives no weights", v->dev);
    if (status == LIN_OK) {
        *weight = lin_ngram_fit_weight(&fit);
        if (!v->quiet) {
            lin_complain("%s: %llu sentences, %llu words: %llu only in %s, %llu only in %s, %llu in neither", v->dev,
                         (unsigned long long)fit.sentences, (unsigned long long)(fit.words + fit.unknown),
                         (unsigned long long)fit.only_a, paths[0], (unsigned long long)fit.only_b, paths[1],
                         (unsigned long long)fit.unknown);
            lin_complain("perplexity of the words of both: %.1f and %.1f alone, %.1f mixed",
                         lin_ngram_fit_perplexity(&fit, 1), lin_ngram_fit_perplexity(&fit, 0),
                         lin_ngram_fit_perplexity(&fit, *weight));
            if (*weight < 0.005 || *weight > 0.995)
                lin_complain("note: %s gets nearly all the weight; give --text more sentences", paths[*weight < 0.5]);
        }
    }
    lin_ngram_fit_free(&fit);
    return status;
}

// The first share of "0.7,0.3" or "7,3"; "auto": -1; anything else: NaN.
static double read_weights(const char *text)
{
    const char *comma = strchr(text, ',');
    double a, b;
    if (!strcmp(text, "auto")) return -1;
    if (!comma || !lin_text_number(text, (size_t)(comma - text), &a) || !lin_text_number(comma + 1, strlen(comma + 1), &b) ||
        !(a >= 0 && b >= 0 && a + b > 0 && a + b < 1e9))
        return (double)NAN;
    return a / (a + b);
}

static int run_mix(const lin_parsed *parsed, const char *const *paths, int n)
{
    const ngram_values *v = parsed->values;
    double weight = read_weights(v->weights);
    lin_ngram *lms[2] = {NULL, NULL};
    lin_ngram_draft draft = {0};
    lin_error err = {0};
    int failed = 0;
    const double begun = lin_now();
    (void)n; // always 2, by the table of verbs
    if (isnan(weight))
        return lin_misuse(parsed, "--weights is auto or two numbers of 0 or more (0.7,0.3), not '%.60s'", v->weights);
    if (weight < 0 && !v->dev)
        return lin_misuse(parsed, "the weights are found on a text: name one with --text, or give --weights W1,W2");
    if (weight >= 0 && v->dev)
        return lin_misuse(parsed, "--text finds the weights, and --weights gives them: leave out one");
    lin_status status = LIN_OK;
    for (int i = 0; i < 2 && status == LIN_OK; i++) status = open_model(v, paths[i], &lms[i], &err);
    if (status == LIN_OK && weight < 0) status = fit_weight(v, paths, lms, &weight, &failed, &err);
    if (status == LIN_OK) status = lin_ngram_mix(lms[0], lms[1], weight, &draft, &err);
    for (int i = 0; i < 2; i++) lin_ngram_destroy(lms[i]);
    if (status == LIN_OK && v->entropy > 0) status = lin_ngram_prune(&draft, v->entropy, &err);
    char text[512] = "";
    append_counts(&draft, text, sizeof text);
    if (status == LIN_OK) status = write_draft(v, &draft, &err);
    if (status == LIN_OK && !v->quiet)
        lin_complain("weights %.4f,%.4f: %s; %.1f s", weight, 1 - weight, text, lin_now() - begun);
    lin_ngram_draft_free(&draft);
    return status != LIN_OK ? lin_give_up(&err) : failed ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

/* ---- what to do ------------------------------------------------------------------------------------------------------------ */

// options: those that apply besides --quiet, each followed by a blank.
static const struct verb {
    const char *name, *options;
    int min_operands, max_operands; // -1: any number
    int (*run)(const lin_parsed *parsed, const char *const *paths, int n);
    lin_status (*model)(const ngram_values *v, const char *path, lin_ngram **lm, lin_error *err); // may destroy it
} verbs[] = {
    {"count", "output packed bits ids lower order min-count vocabulary unknown smoothing entropy ", 0, -1, run_count,
     NULL},
    {"prune", "output packed bits entropy ", 1, 1, NULL, prune},
    {"mix", "output packed bits ids lower weights text entropy ", 2, 2, run_mix, NULL},
    {"pack", "output ", 1, 1, NULL, pack},
    {"arpa", "output ", 1, 1, NULL, arpa},
    {"perplexity", "output json ids lower sentences ", 1, -1, run_perplexity, NULL},
    {"info", "output json ", 1, 1, NULL, info},
    {"generate", "output count seed ", 1, 1, NULL, generate},
};

static int check_verb(const lin_parsed *parsed, const struct verb *verb)
{
    const ngram_values *v = parsed->values;
    int n = parsed->operands.count - 1;
    const int status = lin_verb_options(parsed, verb->name, verb->options);
    if (status != LIN_EXIT_OK) return status;
    if (n < verb->min_operands) return lin_misuse(parsed, "%s: the %sMODEL is missing", verb->name, n ? "second " : "");
    if (verb->max_operands >= 0 && n > verb->max_operands)
        return lin_misuse(parsed, "unexpected argument '%.200s'", parsed->operands.items[verb->max_operands + 1]);
    if ((v->packed || verb->model == pack) && (!v->output || !strcmp(v->output, "-")))
        return lin_misuse(parsed, "a packed model needs --output FILE");
    if (verb->model == prune && !(v->entropy > 0)) return lin_misuse(parsed, "prune needs --entropy");
    return LIN_EXIT_OK;
}

static int run_model(const lin_parsed *parsed, const struct verb *verb, const char *path)
{
    lin_ngram *lm;
    lin_error err = {0};
    lin_status status = open_model(parsed->values, path, &lm, &err);
    if (status == LIN_OK) status = verb->model(parsed->values, path, &lm, &err);
    lin_ngram_destroy(lm);
    return status == LIN_OK ? LIN_EXIT_OK : lin_give_up(&err);
}

static int run(lin_parsed *parsed)
{
    const char *const *operands = parsed->operands.items;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        const struct verb *verb = &verbs[i];
        if (strcmp(operands[0], verb->name)) continue;
        const int status = check_verb(parsed, verb);
        if (status != LIN_EXIT_OK) return status;
        return verb->model ? run_model(parsed, verb, operands[1]) : verb->run(parsed, operands + 1, parsed->operands.count - 1);
    }
    return lin_misuse(parsed, "'%.60s' is none of count, prune, mix, pack, arpa, perplexity, info, generate",
                      operands[0]);
}

const lin_command lin_command_ngram = {
    .name = "ngram",
    .operands = "count|prune|mix|pack|arpa|perplexity|info|generate FILE...",
    .summary = "make, prune, mix, pack and measure n-gram language models",
    .description =
        "Makes and measures language models of words or phones, for the beam and word searches.\n\n"
        "count [TEXT...] makes a model from text with one sentence per line: modified Kneser-Ney smoothing, interpolated, as "
        "ARPA text. prune MODEL removes the least important n-grams. mix MODEL MODEL writes their linear interpolation: exactly "
        "the weighted sum of both for every n-gram that one of them has. pack MODEL writes the packed form, which is mapped "
        "instead of read; arpa MODEL writes ARPA text again. perplexity MODEL [TEXT...] measures how well the model predicts a "
        "text and prints it as SRILM does: ppl counts the ends of sentences as events, ppl1 does not. info MODEL counts its "
        "n-grams. generate MODEL draws sentences from it.\n\n"
        "A MODEL is ARPA text or packed, or the name of an installed one, such as words.lm. A TEXT is plain; each may be "
        "gzip'd, and a TEXT may be - for standard input, which is "
        "also the default. A line that is not a sentence (with control characters, <s> or </s>) is reported and left out, and "
        "the exit status is 1.",
    .examples = "  linnet phonemize -l cmudict.dict --ids first data/train/text | linnet ngram count --ids first --no-unknown -o "
                "phones.arpa\n"
                "  linnet ngram count --order 4 --set min-count=1,1,2 book.txt.gz --packed -o words.lm\n"
                "  linnet ngram prune en-us.arpa.gz --entropy 1e-8 --packed -o small.lm\n"
                "  linnet ngram mix words.lm domain.arpa --text domain-dev.txt --packed -o mixed.lm\n"
                "  linnet ngram perplexity small.lm --ids first --lower data/dev/text",
    .options = options,
    .values_size = sizeof(ngram_values),
    .min_operands = 1,
    .verb_operand = 1,
    .max_operands = -1,
    .run = run,
};
