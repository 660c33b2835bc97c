// cmd_lm.c - linnet lm: networks of tokens as language models of words: makes training sets, measures perplexity, and draws
// sentences.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/common.h"
#include "app/inputs.h"
#include "app/shared_options.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "lexicon/dictionary.h"
#include "linnet/judges.h"
#include "model/encoder.h"
#include "model/model.h"
#include "train/dataset.h"
#include "train/generate.h"
#include "train/learn/cmd_sentences.h"
#include "train/learn/ngram_count.h"
#include "train/learn/ngram_perplexity.h"
#include "train/learn/pieces_learn.h"

typedef struct lm_values {
    lin_model_values model; // device and precision
    const char *output, *like, *prompt;
    lin_sentences_values text;
    int pieces, longest, joined, count, seed, json, quiet, threads;
} lm_values;

#define AT(field) offsetof(lm_values, field)
static const lin_option options[] = {
    {.name = "output", .letter = 'o', .type = LIN_OPTION_FILE, .writes = 1, .at = AT(output),
     .help = "Output file. prepare: the set, required. Others: text, to standard output if not given"},
    {.name = "longest", .type = LIN_OPTION_INT, .at = AT(longest), .text = "256", .min = 8, .max = 65536,
     .help = "prepare, score --joined: most pieces of a sequence, which has sentences one after the other; a longer sentence is "
             "divided. sample: most pieces of a sentence"},
    LIN_QUIET_ROW(AT(quiet), "Print no summary on standard error"),
    {.type = LIN_OPTION_HEADING, .help = "Text (prepare, score)"},
    LIN_SENTENCES_ROWS(lm_values, text),
    {.type = LIN_OPTION_HEADING, .help = "Making a set (prepare)"},
    {.name = "pieces", .type = LIN_OPTION_INT, .at = AT(pieces), .text = "1000", .min = LIN_PIECES_FIRST, .max = LIN_PIECES_MOST,
     .help = "Pieces that the words are made of, learnt from the text"},
    {.name = "like", .type = LIN_OPTION_FILE, .at = AT(like), .value = "MODEL|SET",
     .help = "Use the pieces of this model or set: for a set to measure with, or another text for one model"},
    {.type = LIN_OPTION_HEADING, .help = "Measuring a model (score)"},
    {.name = "joined", .type = LIN_OPTION_FLAG, .at = AT(joined),
     .help = "Score sentences one after the other, as in training, up to --longest; without it each is scored alone, as by an "
             "n-gram model"},
    LIN_JSON_ROW(AT(json), "Write one JSON object"),
    {.type = LIN_OPTION_HEADING, .help = "Sentences (sample)"},
    {.name = "count", .letter = 'n', .type = LIN_OPTION_INT, .at = AT(count), .text = "10", .min = 1, .max = 100000,
     .help = "Number of sentences"},
    {.name = "prompt", .type = LIN_OPTION_STRING, .at = AT(prompt), .value = "WORDS", .help = "How each sentence begins"},
    LIN_SEED_ROW(AT(seed), "Equal seeds give equal sentences"),
    {.type = LIN_OPTION_HEADING, .help = "Running a model (score, sample)"},
    LIN_THREADS_ROW(AT(threads)),
    LIN_NETWORK_ROWS(lm_values, model),
    {.type = LIN_OPTION_END},
};
#undef AT

/* ---- text as pieces -------------------------------------------------------------------------------------------------------- */

// Sentences as numbers of words, and each different word as pieces.
typedef struct corpus {
    lin_symbols words;
    uint64_t *counts; // [words]
    size_t counts_capacity;
    int *at; // numbers of words; -1 ends a sentence
    size_t n, capacity;
    int *pieces; // of word w: from begin[w] up to begin[w + 1]
    size_t *begin;
    uint64_t n_sentences, n_words;
} corpus;

static void corpus_free(corpus *c)
{
    lin_symbols_free(&c->words);
    lin_free(c->counts);
    lin_free(c->at);
    lin_free(c->pieces);
    lin_free(c->begin);
}

static lin_status add_word(corpus *c, const char *word, size_t n, lin_error *err)
{
    const int known = c->words.n;
    int index;
    LIN_TRY(lin_symbols_add(&c->words, word, n, &index, err));
    LIN_TRY(lin_grow(&c->counts, &c->counts_capacity, (size_t)c->words.n, sizeof *c->counts, "words", err));
    LIN_TRY(lin_grow(&c->at, &c->capacity, c->n + 2, sizeof *c->at, "words", err));
    if (index == known) c->counts[index] = 0;
    c->counts[index]++;
    c->n_words++;
    c->at[c->n++] = index;
    return LIN_OK;
}

static lin_status take_sentence(void *context, const char *where, lin_sentence line, lin_error *err)
{
    corpus *c = context;
    const char *at = line.text, *end = line.text + line.n, *word;
    size_t n;
    (void)where;
    lin_status status = lin_ngram_check_line(line.text, line.n, err);
    while (status == LIN_OK && lin_field_next(&at, end, &word, &n)) // all are spelled before one is taken
        if (lin_symbols_find(&c->words, word, n) < 0) status = lin_pieces_check(word, n, err);
    at = line.text;
    while (status == LIN_OK && lin_field_next(&at, end, &word, &n)) status = add_word(c, word, n, err);
    if (status != LIN_OK) return status;
    c->at[c->n++] = -1;
    c->n_sentences++;
    return LIN_OK;
}

static lin_status read_corpus(const lm_values *v, const char *const *paths, int n, corpus *c, int *failed, lin_error *err)
{
    const lin_status status = lin_sentences_each(&v->text, paths, n, take_sentence, c, failed, err);
    return status == LIN_OK && !c->n_sentences ? lin_fail(err, LIN_FORMAT, "the text has no sentence") : status;
}

static lin_status encode_words(corpus *c, const lin_pieces *pieces, lin_error *err)
{
    const size_t words = (size_t)c->words.n;
    size_t room = 0, used = 0;
    for (size_t w = 0; w < words; w++) room += c->words.items[w].n + 1;
    c->pieces = lin_alloc(room + 1, sizeof *c->pieces);
    c->begin = lin_calloc(words + 1, sizeof *c->begin);
    if (!c->pieces || !c->begin) return lin_no_memory(err, "pieces of words", room * sizeof *c->pieces);
    for (size_t w = 0; w < words; w++) {
        const size_t n = c->words.items[w].n;
        int n_pieces;
        LIN_TRY(lin_pieces_encode(pieces, lin_symbols_text(&c->words, (int)w), n, c->pieces + used, (int)n + 1, &n_pieces, err));
        c->begin[w + 1] = used += (size_t)n_pieces;
    }
    return LIN_OK;
}

typedef lin_status sequence_taker(void *context, const int *tokens, const int *targets, int T, lin_error *err);

// Calls `take` with sentences as tokens <s> a b and targets a b <s>: one each, or joined into sequences of at most `longest`.
static lin_status each_sequence(const corpus *c, int longest, sequence_taker *take, void *context, lin_error *err)
{
    int *tokens = NULL, *targets = NULL, before = 0, T = 0;
    size_t room = 0, room_2 = 0;
    lin_status status = LIN_OK;
    for (size_t i = 0, next; i < c->n && status == LIN_OK; i = next + 1) {
        size_t rows = 1;
        for (next = i; c->at[next] >= 0; next++) rows += c->begin[c->at[next] + 1] - c->begin[c->at[next]];
        if (T && (!longest || (size_t)T + rows > (size_t)longest)) {
            status = take(context, tokens, targets, T, err);
            T = 0;
        }
        if (status == LIN_OK) status = lin_grow(&tokens, &room, (size_t)T + rows, sizeof *tokens, "a sentence", err);
        if (status == LIN_OK) status = lin_grow(&targets, &room_2, (size_t)T + rows, sizeof *targets, "a sentence", err);
        for (size_t w = i; w <= next && status == LIN_OK; w++) {
            const size_t from = w < next ? c->begin[c->at[w]] : 0, to = w < next ? c->begin[c->at[w] + 1] : 1;
            for (size_t p = from; p < to && status == LIN_OK; p++) {
                tokens[T] = before;
                before = targets[T++] = w < next ? c->pieces[p] : 0;
                if (T != longest) continue;
                status = take(context, tokens, targets, T, err);
                T = 0;
            }
        }
        if (lin_interrupted && status == LIN_OK) status = lin_fail(err, LIN_STOPPED, "interrupted; nothing was written");
    }
    if (T && status == LIN_OK) status = take(context, tokens, targets, T, err);
    lin_free(tokens);
    lin_free(targets);
    return status;
}

/* ---- models ---------------------------------------------------------------------------------------------------------------- */

// By its path, or an installed network by its name.
static lin_status find(const lm_values *v, const char *given, char *path, size_t capacity, lin_error *err)
{
    LIN_TRY(lin_find_word_network(NULL, given, path, capacity, err));
    return lin_guard_found(path, v->output, err);
}

static lin_status read_like(const lm_values *v, lin_pieces **pieces, lin_error *err)
{
    char magic[sizeof LIN_DATASET_MAGIC] = "", path[4096];
    FILE *file;
    LIN_TRY(find(v, v->like, path, sizeof path, err));
    if (lin_file_open_stream(path, &file, NULL) == LIN_OK) {
        if (fread(magic, 1, sizeof magic - 1, file) != sizeof magic - 1) magic[0] = 0;
        fclose(file);
    }
    lin_dataset *set = NULL;
    lin_model *model = NULL;
    lin_status status = !strcmp(magic, LIN_DATASET_MAGIC) ? lin_dataset_open(path, &set, err) : lin_model_load(path, &model, err);
    if (status == LIN_OK)
        status = set ? lin_word_network_pieces(path, set->tokens, set->phones, pieces, err)
                     : lin_word_network_pieces(path, model->config.tokens, model->phones, pieces, err);
    lin_dataset_close(set);
    lin_model_destroy(model);
    return status;
}

static lin_status open_model(const lm_values *v, const char *given, lin_word_network *m, lin_error *err)
{
    char path[4096];
    *m = (lin_word_network){0};
    LIN_TRY(find(v, given, path, sizeof path, err));
    return lin_word_network_open(path, v->model.device, lin_model_precision(&v->model), m, err);
}

/* ---- prepare --------------------------------------------------------------------------------------------------------------- */

typedef struct preparation {
    lin_dataset_writer *writer;
    int n;
    uint64_t tokens;
} preparation;

static lin_status write_sequence(void *context, const int *tokens, const int *targets, int T, lin_error *err)
{
    preparation *p = context;
    char id[32];
    snprintf(id, sizeof id, "%d", ++p->n);
    p->tokens += (uint64_t)T;
    return lin_dataset_add_tokens(p->writer, id, tokens, targets, T, err);
}

static lin_status write_set(const lm_values *v, const corpus *c, const lin_pieces *pieces, const char *source, preparation *p,
                            lin_error *err)
{
    lin_buffer names = {0};
    lin_pieces_list(pieces, &names);
    lin_status status = lin_buffer_status(&names, err);
    if (status == LIN_OK)
        status = lin_dataset_create_tokens(v->output, pieces->names.n, names.data, source, &p->writer, err);
    lin_buffer_free(&names);
    if (status != LIN_OK) return status;
    status = each_sequence(c, v->longest, write_sequence, p, err);
    if (status == LIN_OK) return lin_dataset_finish(p->writer, err);
    lin_dataset_abort(p->writer);
    return status;
}

static int run_prepare(const lin_parsed *parsed, const char *const *paths, int n)
{
    const lm_values *v = parsed->values;
    corpus c = {0};
    preparation p = {0};
    lin_pieces *pieces = NULL;
    lin_error err = {0};
    int failed = 0;
    const double begun = lin_now();
    if (!v->output || !strcmp(v->output, "-")) return lin_misuse(parsed, "prepare needs --output FILE");
    if (v->like && lin_options_given(parsed, "pieces"))
        return lin_misuse(parsed, "--like gives the pieces, and --pieces asks for others: leave out one");
    lin_status status = v->like ? read_like(v, &pieces, &err) : LIN_OK;
    if (status == LIN_OK) status = read_corpus(v, paths, n, &c, &failed, &err);
    if (status == LIN_OK && !v->like) status = lin_pieces_learn(&c.words, c.counts, v->pieces, &pieces, &err);
    if (status == LIN_OK) status = encode_words(&c, pieces, &err);
    if (status == LIN_OK) status = write_set(v, &c, pieces, n ? lin_base_name(paths[0]) : "-", &p, &err);
    if (status == LIN_OK && !v->quiet)
        lin_complain("%llu sentences, %llu words: %d pieces, %llu tokens (%.2f a word) in %d sequences; %.1f s",
                     (unsigned long long)c.n_sentences, (unsigned long long)c.n_words, pieces->names.n,
                     (unsigned long long)p.tokens, (double)(p.tokens - c.n_sentences) / (double)c.n_words, p.n,
                     lin_now() - begun);
    lin_pieces_destroy(pieces);
    corpus_free(&c);
    return status != LIN_OK ? lin_give_up(&err) : failed ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

/* ---- score ----------------------------------------------------------------------------------------------------------------- */

// Rows of sequences that are scored together.
enum { ROWS = 2048 };

typedef struct scoring {
    lin_worker *worker;
    lin_progress progress;
    int D, V, B, rows;
    float *features, *logp; // [rows, D], [rows, V]
    int *targets, *offsets; // [rows], [B + 1]
    size_t room, room_x, room_y, room_o;
    double sum;
    uint64_t done, all;
} scoring;

static lin_status score_rows(scoring *s, lin_error *err)
{
    if (!s->B) return LIN_OK;
    lin_status status = lin_grow(&s->logp, &s->room, (size_t)s->rows * (size_t)s->V, sizeof *s->logp, "a text", err);
    if (status == LIN_OK) status = lin_encoder_run(s->worker, s->features, s->offsets, s->B, s->logp, err);
    for (int i = 0; i < s->rows && status == LIN_OK; i++)
        s->sum += (double)s->logp[(size_t)i * (size_t)s->V + (size_t)s->targets[i]];
    s->done += (uint64_t)s->rows;
    lin_progress_of(&s->progress, (double)s->done / (double)s->all, "%llu pieces", (unsigned long long)s->done);
    s->B = s->rows = 0;
    return status;
}

static lin_status score_sequence(void *context, const int *tokens, const int *targets, int T, lin_error *err)
{
    scoring *s = context;
    lin_status status = s->rows + T > ROWS ? score_rows(s, err) : LIN_OK;
    const size_t rows = (size_t)s->rows + (size_t)T, D = (size_t)s->D;
    if (status == LIN_OK) status = lin_grow(&s->features, &s->room_x, rows * D, sizeof *s->features, "a text", err);
    if (status == LIN_OK) status = lin_grow(&s->targets, &s->room_y, rows, sizeof *s->targets, "a text", err);
    if (status == LIN_OK) status = lin_grow(&s->offsets, &s->room_o, (size_t)s->B + 2, sizeof *s->offsets, "a text", err);
    if (status != LIN_OK) return status;
    memset(s->features + (size_t)s->rows * D, 0, (size_t)T * D * sizeof *s->features);
    for (int t = 0; t < T; t++) s->features[(size_t)(s->rows + t) * D] = (float)tokens[t]; // a token is the sum of its row
    memcpy(s->targets + s->rows, targets, (size_t)T * sizeof *targets);
    s->offsets[0] = 0;
    s->offsets[++s->B] = s->rows += T;
    return LIN_OK;
}

static lin_status score_corpus(const lm_values *v, const lin_word_network *m, const corpus *c, scoring *s, lin_error *err)
{
    *s = (scoring){.D = m->model->config.mel_bins, .V = m->model->config.outputs, .all = c->n_sentences};
    for (int w = 0; w < c->words.n; w++) s->all += c->counts[w] * (c->begin[w + 1] - c->begin[w]);
    lin_status status = lin_worker_create(m->encoder, v->threads, &s->worker, err);
    lin_progress_begin(&s->progress, v->quiet);
    if (status == LIN_OK) status = each_sequence(c, v->joined ? v->longest : 0, score_sequence, s, err);
    if (status == LIN_OK) status = score_rows(s, err);
    lin_progress_end(&s->progress);
    lin_worker_destroy(s->worker);
    lin_free(s->features);
    lin_free(s->logp);
    lin_free(s->targets);
    lin_free(s->offsets);
    return status;
}

static void report(const lm_values *v, const char *name, const corpus *c, const scoring *s, lin_buffer *out)
{
    const lin_ngram_perplexity sum = {.sentences = c->n_sentences, .words = c->n_words, .ends = c->n_sentences, .logp = s->sum};
    const double of_pieces = exp(-s->sum / (double)s->all);
    if (v->json) {
        lin_buffer_char(out, '{');
        lin_ngram_perplexity_json(&sum, out);
        lin_buffer_json_format(out, ", 'pieces': %lld, 'perplexity_of_pieces': %.6f}\n", (long long)s->all, of_pieces);
    } else {
        lin_ngram_perplexity_text(&sum, name, out);
        lin_buffer_format(out, "%lld pieces with ends, ppl= ", (long long)s->all);
        lin_buffer_fixed(out, of_pieces, 4);
        lin_buffer_char(out, '\n');
    }
}

static int run_score(const lin_parsed *parsed, const char *const *paths, int n)
{
    const lm_values *v = parsed->values;
    lin_word_network m = {0};
    corpus c = {0};
    scoring s = {0};
    lin_buffer out = {0};
    lin_error err = {0};
    char name[64];
    int failed = 0;
    lin_status status = open_model(v, paths[0], &m, &err);
    if (status == LIN_OK) status = read_corpus(v, paths + 1, n - 1, &c, &failed, &err);
    if (status == LIN_OK) status = encode_words(&c, m.pieces, &err);
    if (status == LIN_OK) status = score_corpus(v, &m, &c, &s, &err);
    if (status == LIN_OK) {
        report(v, lin_sentences_name(paths + 1, n - 1, name), &c, &s, &out);
        status = lin_output_write(v->output, 0, &out, &err);
    }
    lin_buffer_free(&out);
    corpus_free(&c);
    lin_word_network_close(&m);
    return status != LIN_OK ? lin_give_up(&err) : failed ? LIN_EXIT_FAILED : LIN_EXIT_OK;
}

/* ---- sample ---------------------------------------------------------------------------------------------------------------- */

static int interrupted(void *context, int done)
{
    (void)context, (void)done;
    return lin_interrupted != 0;
}

// Writes <s> and the pieces of --prompt to `at`, which has room for the longest sentence and a word.
static lin_status read_prompt(const lm_values *v, const lin_pieces *pieces, int *at, int *n, lin_error *err)
{
    const char *next = v->prompt ? v->prompt : "", *end = next + strlen(next), *word;
    lin_error why = {0};
    size_t bytes;
    at[(*n)++] = 0;
    while (*n < v->longest && lin_field_next(&next, end, &word, &bytes)) {
        int more;
        const lin_status status = lin_pieces_encode(pieces, word, bytes, at + *n, LIN_WORD_MAX + 1, &more, &why);
        if (status != LIN_OK) return lin_fail(err, status, "--prompt: %s", why.message);
        *n += more;
    }
    if (*n < v->longest) return LIN_OK;
    return lin_fail(err, LIN_INVALID, "--prompt has %d pieces or more; --longest is %d", *n - 1, v->longest);
}

static int end_of(const int *tokens, int from, int until)
{
    while (from < until && tokens[from]) from++;
    return from;
}

// Draws sentences first .. first+n-1, until each has ended. tokens [n, longest] begin with the prompt.
static lin_status draw(const lm_values *v, const lin_word_network *m, int *tokens, int first, int n, int given, lin_buffer *out,
                       lin_error *err)
{
    enum { STEP = 16 }; // tokens between two checks for ended sentences
    const lin_generate_options o = {.seed = (uint64_t)v->seed, .first = (uint64_t)first, .threads = v->threads,
                                    .stop = interrupted};
    const size_t longest = (size_t)v->longest;
    lin_generator *g;
    int at = given, ended = 0;
    lin_status status = lin_generator_create(m->encoder, &o, n, v->longest, &g, err);
    if (status != LIN_OK) return status;
    while (ended < n && at < v->longest && status == LIN_OK) {
        const int until = at + STEP < v->longest ? at + STEP : v->longest;
        status = lin_generator_run(g, tokens, at, until, err);
        at = until;
        ended = 0;
        for (int i = 0; i < n; i++) ended += end_of(tokens + (size_t)i * longest, given, at) < at;
    }
    lin_generator_destroy(g);
    for (int i = 0; i < n && status == LIN_OK; i++) {
        lin_pieces_words(m->pieces, tokens + (size_t)i * longest, end_of(tokens + (size_t)i * longest, given, at), out);
        lin_buffer_char(out, '\n');
    }
    return status;
}

static int run_sample(const lin_parsed *parsed, const char *const *paths, int n)
{
    enum { TOGETHER = 256 };
    const lm_values *v = parsed->values;
    const size_t longest = (size_t)v->longest;
    lin_word_network m = {0};
    lin_buffer out = {0};
    lin_error err = {0};
    int given = 0, *tokens = NULL;
    (void)n;
    lin_status status = open_model(v, paths[0], &m, &err);
    if (status == LIN_OK && !(tokens = lin_alloc(TOGETHER * longest, sizeof *tokens)))
        status = lin_no_memory(&err, "sentences", TOGETHER * longest * sizeof *tokens);
    if (status == LIN_OK) status = read_prompt(v, m.pieces, tokens, &given, &err);
    for (int i = 0; i < v->count && status == LIN_OK; i += TOGETHER) {
        const int some = v->count - i < TOGETHER ? v->count - i : TOGETHER;
        for (int k = 1; k < some; k++) memcpy(tokens + (size_t)k * longest, tokens, (size_t)given * sizeof *tokens);
        status = draw(v, &m, tokens, i, some, given, &out, &err);
    }
    if (status == LIN_OK) status = lin_output_write(v->output, 0, &out, &err);
    lin_free(tokens);
    lin_buffer_free(&out);
    lin_word_network_close(&m);
    return status != LIN_OK ? lin_give_up(&err) : LIN_EXIT_OK;
}

/* ---- what to do ------------------------------------------------------------------------------------------------------------ */

static const struct verb {
    const char *name, *options; // those that apply besides --quiet, each followed by a blank
    int (*run)(const lin_parsed *parsed, const char *const *paths, int n);
} verbs[] = {
    {"prepare", "output longest ids lower pieces like ", run_prepare},
    {"score", "output longest ids lower joined json threads device precision ", run_score},
    {"sample", "output longest count prompt seed threads device precision ", run_sample},
};

static int run(lin_parsed *parsed)
{
    const char *const *operands = parsed->operands.items;
    const int n = parsed->operands.count - 1;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(operands[0], verbs[i].name)) continue;
        const int status = lin_verb_options(parsed, verbs[i].name, verbs[i].options);
        if (status != LIN_EXIT_OK) return status;
        if (verbs[i].run != run_prepare && !n) return lin_misuse(parsed, "%s: the MODEL is missing", operands[0]);
        if (verbs[i].run == run_sample && n > 1) return lin_misuse(parsed, "unexpected argument '%.200s'", operands[2]);
        return verbs[i].run(parsed, operands + 1, n);
    }
    return lin_misuse(parsed, "'%.60s' is none of prepare, score, sample", operands[0]);
}

const lin_command lin_command_lm = {
    .name = "lm",
    .operands = "prepare|score|sample FILE...",
    .summary = "make, measure and sample a network that predicts the words of texts",
    .description =
        "Makes and uses a network of tokens, which predicts the next piece of a word from all earlier pieces, with a state of "
        "constant size.\n\n"
        "prepare [TEXT...] learns pieces of words by byte pair encoding and writes a set of sequences. linnet train makes a "
        "model of the set; the model holds the pieces too. score MODEL [TEXT...] measures how well the model predicts a text. "
        "It writes a line as linnet ngram perplexity does, for the same events, and the perplexity of a piece. sample MODEL "
        "draws sentences.\n\n"
        "A MODEL is a file, or the name of an installed network, such as words. A TEXT is plain or gzip'd, one sentence per "
        "line, of words of a-z and apostrophes; - or none is standard input. Other lines are reported and left out, and the exit "
        "status is 1.",
    .examples = "  linnet lm prepare books.txt -o train.lfc\n"
                "  linnet lm prepare dev.txt --like train.lfc -o dev.lfc\n"
                "  linnet train --train train.lfc --dev dev.lfc --folder exp/lm --decay gated\n"
                "  linnet lm score exp/lm/best.safetensors dev.txt\n"
                "  linnet lm sample exp/lm/best.safetensors --prompt \"once upon a time\"",
    .options = options,
    .values_size = sizeof(lm_values),
    .min_operands = 1,
    .verb_operand = 1,
    .max_operands = -1,
    .run = run,
};
