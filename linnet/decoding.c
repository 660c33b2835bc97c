// decoding.c - options of decoding; lexicon, language model and phrases opened for all streams; see decoding.h.

#include "linnet/decoding.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "lexicon/dictionary.h"
#include "lexicon/g2p.h"
#include "lexicon/transcript.h"
#include "linnet/find.h"
#include "linnet/pronounce.h"
#include "linnet/wording.h"

enum { LONGEST_PATH = 4096, LONGEST_PHRASE = 4096 };

typedef struct phrase {
    char *text;
    double bonus;
    int line; // of --context; 0: a --phrase
} phrase;

// The searches for the sentences of a grammar.
typedef struct lin_sentences {
    lin_grammar *grammar;
    lin_tree *tree; // of its words
    lin_words *words, *whole;
} lin_sentences;

struct lin_decoding_parts {
    const lin_decoding_values *values;
    const lin_phones *phones;
    lin_warnings warnings;
    lin_ngram *lm;
    lin_beam *beam;
    int *labels; // of the language model, for each phone
    lin_tree *tree;
    lin_sentences *sentences; // of a grammar, in place of tree, words, whole
    lin_buffer files; // that the grammar needs
    lin_words *words, *whole; // of streams, of utterances that are heard whole
    lin_rescorer *rescorer;
    lin_phrases made; // of the phrases
    char lexicon[LONGEST_PATH], lm_path[LONGEST_PATH];
    char own_words[LONGEST_PATH]; // of the language, which extend the lexicon; "": none
    uint64_t lexicon_key; // of the packed form; 0: there can be none
    const char *unpackable; // why there can be none
    // Only while opening:
    lin_dictionary *dictionary;
    lin_g2p_rules *rules;
    lin_g2p *g2p;
    phrase *phrases;
    int n_phrases, phrases_capacity;
    int again; // 1: the phrases are read again
};

typedef struct lin_decoding_parts parts;

// Puts the subject before the message, unless it is in it.
static lin_status about(const char *what, lin_status status, lin_error *err)
{
    return !err || strstr(err->message, what) ? status : lin_fail_at(err, status, "%s", what);
}

/* ---- options --------------------------------------------------------------------------------------------------------------- */

lin_decoding_values lin_decoding_default(void)
{
    return (lin_decoding_values){
        .beam_labels = -1, .n_best = 1, .beam_score = NAN, .skip_blank = NAN, .blank_penalty = NAN, .settle = NAN, .show = NAN,
        .lm_weight = NAN, .bonus = NAN, .unknown = NAN, .min_confidence = NAN, .context_bonus = 4, .rescore_n = LIN_RESCORE_N,
        .rescore_weight = LIN_RESCORE_WEIGHT, .combine_weight = LIN_COMBINE_WEIGHT};
}

lin_search_kind lin_decoding_kind(const lin_decoding_values *v)
{
    const int needs_beam = v->beam > 0 || v->n_best > 1 || v->rescore || v->combine || v->lm || v->context || v->phrases.count ||
                           v->phrases_come;
    return v->words ? LIN_SEARCH_WORDS : needs_beam ? LIN_SEARCH_BEAM : LIN_SEARCH_GREEDY;
}

// How many hypotheses of an utterance its end needs. A combiner works on whole utterances.
static int hypotheses(const lin_decoding_values *v, int whole)
{
    const int rescores = (v->rescore && v->rescore_weight > 0) || (v->combine && v->combine_weight > 0 && whole);
    return rescores && v->rescore_n > v->n_best ? v->rescore_n : v->n_best;
}

static void take(double given, double *to) { *to = isnan(given) ? *to : given; }

// The options that all searches have: given values replace the search's defaults.
static void take_given(const lin_decoding_values *v, int whole, int *width, double *score, int *labels, double *blank,
                       double *lm_weight, double *bonus)
{
    if (v->beam) *width = v->beam;
    if (hypotheses(v, whole) > *width) *width = hypotheses(v, whole);
    if (v->beam_labels >= 0) *labels = v->beam_labels;
    take(v->beam_score, score);
    take(v->skip_blank, blank);
    take(v->lm_weight, lm_weight);
    take(v->bonus, bonus);
}

static lin_beam_options beam_options(const lin_decoding_values *v)
{
    lin_beam_options o = lin_beam_options_default();
    if (v->lm) o.bonus = LIN_BEAM_LM_BONUS;
    take_given(v, 1, &o.width, &o.score, &o.labels, &o.blank, &o.lm_weight, &o.bonus);
    if (hypotheses(v, 1) > 1) o.longest = 500; // they cover whole utterances
    return o;
}

// Fitted to the words of dev_native and dev_nonnative with the shipped models default and offline (bench/confidence.py).
static const double sure[3] = {-0.564, 0.346, 0.585};

lin_words_options lin_decoding_words_options(const lin_decoding_values *v, int whole)
{
    lin_words_options o = lin_words_options_default();
    if (whole) {
        o.width = LIN_WHOLE_WIDTH;
        o.score = LIN_WHOLE_SCORE;
    }
    take_given(v, whole, &o.width, &o.score, &o.labels, &o.blank, &o.lm_weight, &o.bonus);
    o.settle = LIN_SETTLE;
    take(v->blank_penalty, &o.blank_penalty);
    take(v->settle, &o.settle);
    take(v->unknown, &o.unknown);
    memcpy(o.sure, sure, sizeof sure);
    if (v->no_unknown) o.unknown = -INFINITY;
    o.n_best = hypotheses(v, whole);
    if (whole && o.n_best == 1) o.n_best = 2; // for the exact sums
    return o;
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

// Bad lines are reported and left out, as in linnet phonemize.
static lin_status open_dictionary(parts *p, lin_error *err)
{
    lin_status status = lin_lexicon_open(p->lexicon, p->own_words, p->values->add_lexicon, p->values->g2p, p->phones,
                                         &p->dictionary, err);
    if (status != LIN_OK) return about(p->values->add_lexicon ? p->values->add_lexicon : p->lexicon, status, err);
    if (lin_lexicon_tell_skipped(p->dictionary, p->again ? NULL : &p->warnings)) { // a packed form could not report them
        p->lexicon_key = 0;
        p->unpackable = "it has lines that are left out";
    }
    return LIN_OK;
}

// All that a tree is made of: the bytes of the lexicon, the phones, the language model, the option.
static void find_key(parts *p)
{
    lin_file_map file;
    const char *phones = lin_phones_list(p->phones);
    const int32_t numbers[] = {p->values->all_words, lin_phones_count(p->phones)};
    if (p->values->add_lexicon) p->unpackable = "--add-lexicon extends it";
    else if (*p->own_words) p->unpackable = "other words of its language extend it";
    else if (lin_file_map_open(p->lexicon, &file, NULL) != LIN_OK) p->unpackable = "it is not a regular file";
    if (p->unpackable) return;
    uint64_t key = lin_hash(file.bytes, file.size, p->lm ? lin_ngram_fingerprint(p->lm) : 0);
    key = lin_hash(numbers, sizeof numbers, lin_hash(phones, strlen(phones), key));
    lin_file_map_close(&file);
    p->lexicon_key = key ? key : 1;
}

// The packed form beside the lexicon, if there is one of the same contents.
static lin_status open_packed_tree(parts *p, lin_error *err)
{
    char path[LONGEST_PATH + 8];
    lin_error why;
    snprintf(path, sizeof path, "%s%s", p->lexicon, LIN_PACKED_LEXICON);
    if (access(path, F_OK) != 0) return LIN_OK;
    const lin_status status = lin_tree_open(path, p->lexicon_key, lin_phones_count(p->phones), p->lm, &p->tree, &why);
    if (status == LIN_NO_MEMORY) return lin_fail_as(err, &why);
    if (status == LIN_FORMAT) lin_warn(&p->warnings, "%s; the lexicon itself is read", why.message);
    return LIN_OK;
}

static lin_status open_tree(parts *p, lin_error *err)
{
    find_key(p);
    if (p->lexicon_key) LIN_TRY(open_packed_tree(p, err));
    if (p->tree) return LIN_OK;
    LIN_TRY(open_dictionary(p, err));
    return lin_tree_create(p->dictionary, p->phones, p->lm, p->values->all_words, &p->tree, err);
}

lin_status lin_decoding_pack_lexicon(const lin_decoding *d, const char *path, lin_error *err)
{
    const parts *p = d->parts;
    char beside[LONGEST_PATH + 8];
    if (!p || !p->tree) return lin_fail(err, LIN_INVALID, "a lexicon is packed only for words");
    if (!p->lexicon_key) return lin_fail(err, LIN_UNSUPPORTED, "%s cannot be packed: %s", p->lexicon, p->unpackable);
    snprintf(beside, sizeof beside, "%s%s", p->lexicon, LIN_PACKED_LEXICON);
    return lin_tree_write(p->tree, p->lexicon_key, path ? path : beside, err);
}

/* ---- phrases --------------------------------------------------------------------------------------------------------------- */

static lin_status add_phrase(parts *p, const char *text, size_t n, double bonus, int line, lin_error *err)
{
    char *own;
    LIN_TRY(lin_grow_int(&p->phrases, &p->phrases_capacity, (int64_t)p->n_phrases + 1, sizeof *p->phrases, "phrases", err));
    LIN_TRY(lin_unicode_clean(text, n, NULL, LIN_UNICODE_ANY, &own, &text, &n, err));
    char *copy = lin_text_copy(text, n);
    lin_free(own);
    if (!copy) return lin_no_memory(err, "a phrase", n);
    p->phrases[p->n_phrases++] = (phrase){copy, bonus, line};
    return LIN_OK;
}

// "text", or "text TAB bonus".
static lin_status add_line(void *context, const char *text, size_t n, int line, lin_error *err)
{
    parts *p = context;
    double bonus = p->values->context_bonus;
    const char *tab = memchr(text, '\t', n), *field, *at = tab ? tab + 1 : NULL;
    size_t n_field, n_text = tab ? (size_t)(tab - text) : n;
    char quoted[LIN_QUOTE];
    if (n > LONGEST_PHRASE) return lin_fail(err, LIN_FORMAT, "a line of over %d bytes is not a phrase", LONGEST_PHRASE);
    if (memchr(text, '\0', n)) return lin_fail(err, LIN_FORMAT, "a line with a NUL byte is not a phrase");
    if (tab && (!lin_field_next(&at, text + n, &field, &n_field) || !lin_text_number(field, n_field, &bonus) ||
                !isfinite(bonus) || fabs(bonus) > LIN_CONTEXT_BONUS_MAX || lin_field_next(&at, text + n, &field, &n_field))) {
        return lin_fail(err, LIN_FORMAT, "'%s' after the tab is not a bonus between -100 and 100, such as 3.5",
                        lin_quote(quoted, tab + 1, n - n_text - 1));
    }
    return add_phrase(p, text, n_text, bonus, line, err);
}

static lin_status read_phrases(parts *p, const char *path, lin_error *err)
{
    const int before = p->n_phrases;
    LIN_TRY(lin_entries_read(path, add_line, p, err));
    if (p->n_phrases == before && !p->again)
        return lin_fail(err, LIN_FORMAT, "%s has no phrase; write one per line, optionally with a bonus after a tab", path);
    return LIN_OK;
}

// Puts the phrase and its place before the message.
static lin_status about_phrase(const parts *p, const phrase *about, lin_status status, lin_error *err)
{
    char quoted[LIN_QUOTE];
    lin_fail_at(err, status, "the phrase '%s'", lin_quote(quoted, about->text, strlen(about->text)));
    return about->line ? lin_fail_at(err, status, "%s:%d", p->values->context, about->line) : status;
}

// For a beam over phones: each phrase by its first pronunciation.
static lin_status make_phones_context(parts *p, lin_error *err)
{
    lin_transcriber *transcriber = NULL;
    const int n = p->n_phrases;
    lin_context_phrase *list = lin_calloc((size_t)n, sizeof *list);
    lin_status status = list ? LIN_OK : lin_no_memory(err, "phrases", (size_t)n * sizeof *list);
    if (status == LIN_OK) status = lin_transcriber_create(p->dictionary, p->g2p, &transcriber, err);
    for (int i = 0; i < n && status == LIN_OK; i++) {
        const char *text = p->phrases[i].text;
        const int *found;
        int length;
        status = lin_transcriber_line(transcriber, text, strlen(text), &found, &length, err);
        if (status == LIN_OK && length == 0) status = lin_fail(err, LIN_INVALID, "it has no word");
        if (status != LIN_OK) {
            status = about_phrase(p, &p->phrases[i], status, err);
            break;
        }
        int *labels = lin_alloc((size_t)length, sizeof *labels);
        if (labels) memcpy(labels, found, (size_t)length * sizeof *labels);
        else status = lin_no_memory(err, "a phrase", (size_t)length * sizeof *labels);
        list[i] = (lin_context_phrase){labels, length, p->phrases[i].bonus};
    }
    if (status == LIN_OK) status = lin_context_create(list, n, &p->made.phones, err);
    for (int i = 0; i < n && list; i++) lin_free((void *)list[i].tokens);
    lin_free(list);
    lin_transcriber_destroy(transcriber);
    return status;
}

static void put_word(lin_buffer *out, const char *word, size_t n)
{
    if (out->n) lin_buffer_char(out, ' ');
    lin_buffer_bytes(out, word, n);
}

// As words of a text: lower case, without punctuation and, in English, accents.
static lin_status put_words_of(const parts *p, lin_buffer *out, const char *text, size_t n, lin_error *err)
{
    lin_spelling word = {0};
    size_t at = 0;
    lin_status status;
    while ((status = lin_spelling_next(text, n, &at, &word, err)) == LIN_OK && word.n) {
        char plain[LIN_WORD_MAX];
        const size_t n_plain = lin_phones_is_own(p->phones) ? 0 : lin_spelling_plain(&word, plain);
        put_word(out, n_plain ? plain : word.word, n_plain ? n_plain : word.n);
    }
    return status;
}

// Words of the lexicon stay as they are, in any language; others are spelled as the lexicon spells words.
static lin_status spell_phrase(const parts *p, phrase *it, lin_error *err)
{
    const char *at = it->text, *end = at + strlen(at), *field;
    lin_buffer words = {0};
    lin_status status = LIN_OK;
    size_t n;
    while (status == LIN_OK && lin_field_next(&at, end, &field, &n)) {
        if (lin_tree_find(p->tree, field, n) >= 0) put_word(&words, field, n);
        else status = put_words_of(p, &words, field, n, err);
    }
    const int is_empty = words.n == 0;
    lin_buffer_char(&words, '\0');
    if (status == LIN_OK) status = lin_buffer_status(&words, err);
    if (status == LIN_OK && is_empty) status = lin_fail(err, LIN_INVALID, "it has no word");
    char *text = status == LIN_OK ? lin_strdup(words.data) : NULL;
    if (status == LIN_OK && !text) status = lin_no_memory(err, "a phrase", words.n);
    lin_buffer_free(&words);
    if (status != LIN_OK) return about_phrase(p, it, status, err);
    lin_free(it->text);
    it->text = text;
    return LIN_OK;
}

static lin_status make_words_context(parts *p, lin_error *err)
{
    for (int i = 0; i < p->n_phrases; i++) LIN_TRY(spell_phrase(p, &p->phrases[i], err));
    lin_word_phrase *list = lin_alloc((size_t)p->n_phrases, sizeof *list);
    if (!list) return lin_no_memory(err, "phrases", (size_t)p->n_phrases * sizeof *list);
    for (int i = 0; i < p->n_phrases; i++) list[i] = (lin_word_phrase){p->phrases[i].text, p->phrases[i].bonus};
    lin_status status = lin_word_context_create(p->tree, list, p->n_phrases, p->g2p, &p->made.words, err);
    lin_free(list);
    return status;
}

// The phrases in the form that the search uses.
static lin_status make_context(parts *p, lin_error *err)
{
    if (p->n_phrases == 0) return LIN_OK;
    if (!p->dictionary && *p->lexicon) LIN_TRY(open_dictionary(p, err));
    // Only words outside the lexicon need the letter-to-sound rules, which are of the phones of English.
    lin_error missing = {0}, why = {0};
    lin_status status = p->tree ? make_words_context(p, &missing) : make_phones_context(p, &missing);
    if (status != LIN_INVALID) return status == LIN_OK ? status : lin_fail_as(err, &missing);
    status = lin_find_open_rules(p->phones, p->values->g2p, &p->rules, &why);
    if (status == LIN_OK) status = lin_g2p_create(p->phones, p->dictionary, p->rules, &p->g2p, &why);
    if (status != LIN_OK) return lin_fail(err, status, "%s, and %s", missing.message, why.message);
    return p->tree ? make_words_context(p, err) : make_phones_context(p, err);
}

static lin_status open_phrases(parts *p, lin_error *err)
{
    const lin_decoding_values *v = p->values;
    if (v->context) LIN_TRY(read_phrases(p, v->context, err));
    for (int i = 0; i < v->phrases.count; i++)
        LIN_TRY(add_phrase(p, v->phrases.items[i], strlen(v->phrases.items[i]), v->context_bonus, 0, err));
    return make_context(p, err);
}

/* ---- searches -------------------------------------------------------------------------------------------------------------- */

// The phones as words of the language model, as they are or in lower case.
static lin_status match_phones(parts *p, lin_error *err)
{
    const int V = lin_phones_count(p->phones);
    int missing = 0;
    const char *first = "";
    p->labels = lin_alloc((size_t)V, sizeof *p->labels);
    if (!p->labels) return lin_no_memory(err, "phones of a language model", (size_t)V * sizeof *p->labels);
    p->labels[0] = -1;
    for (int i = 1; i < V; i++) {
        const char *name = lin_phones_name(p->phones, i);
        const size_t n = strlen(name);
        char lower[LIN_PHONE_NAME_MAX + 1];
        for (size_t c = 0; c <= n; c++) lower[c] = lin_lower(name[c]);
        p->labels[i] = lin_ngram_find(p->lm, name, n);
        if (p->labels[i] < 0) p->labels[i] = lin_ngram_find(p->lm, lower, n);
        const char *cmu = p->labels[i] < 0 ? lin_phones_cmu(p->phones, i) : NULL; // a set in the IPA
        if (cmu) p->labels[i] = lin_ngram_find(p->lm, cmu, strlen(cmu));
        if (p->labels[i] < 0 && missing++ == 0) first = name;
    }
    // A model of many words contains some that are spelled like phones: "AH", "OW".
    if (missing == V - 1 || lin_ngram_words(p->lm) > 4 * V + 8) {
        return lin_fail(err, LIN_MISMATCH, "%s has %d words but lacks %d of the %d phones, such as %s; if it is a model of "
                                           "words, add --words", p->lm_path, lin_ngram_words(p->lm), missing, V - 1, first);
    }
    if (missing) {
        lin_warn(&p->warnings, "%s lacks %d of the %d phones, such as %s; they are unlikely to be recognised", p->lm_path,
                 missing, V - 1, first);
    }
    return LIN_OK;
}

static lin_status open_rescorer(parts *p, double lm_weight, lin_error *err)
{
    const lin_decoding_values *v = p->values;
    char path[LONGEST_PATH];
    if (!v->rescore) return LIN_OK;
    LIN_TRY(lin_find_word_network(p->phones, v->rescore, path, sizeof path, err));
    return lin_rescorer_open(path, v->rescore_weight, lm_weight, p->lm, p->tree, p->phones, &p->rescorer, err);
}

static lin_status open_beam(parts *p, lin_error *err)
{
    const lin_beam_options o = beam_options(p->values);
    if (p->values->lm) {
        LIN_TRY(lin_find_lm(p->phones, p->values->lm, p->lm_path, LONGEST_PATH, err));
        LIN_TRY(lin_ngram_open(p->lm_path, &p->lm, err));
        LIN_TRY(match_phones(p, err));
    }
    LIN_TRY(lin_beam_create(lin_phones_count(p->phones), p->lm, p->labels, &o, &p->beam, err));
    return open_rescorer(p, o.lm_weight, err);
}

static lin_status open_lm_of_words(parts *p, lin_error *err)
{
    if (p->values->no_lm) return LIN_OK;
    LIN_TRY(lin_find_lm(p->phones, p->values->lm, p->lm_path, LONGEST_PATH, err));
    if (*p->lm_path) return lin_ngram_open(p->lm_path, &p->lm, err);
    lin_warn(&p->warnings, "words are recognised badly without a language model, and none is installed; name one with --lm FILE "
                           "or LINNET_LM (ARPA, or made from text by linnet ngram)");
    return LIN_OK;
}

// A dictionary has words that are spelled like phones ("ah", "er"): with a model of phones only those would be recognised.
static int is_of_phones(const parts *p)
{
    const int V = lin_phones_count(p->phones);
    if (!p->lm || lin_ngram_words(p->lm) > V + 4) return 0; // <s>, </s>, <unk>
    for (int i = 1; i < V; i++) {
        const char *name = lin_phones_name(p->phones, i);
        if (lin_ngram_find(p->lm, name, strlen(name)) < 0) return 0;
    }
    return 1;
}

// No word has a longer pause inside. Shorter limits cost words of slow readers (recipes/open/LOG.md).
#define LONGEST_GAP_S 1.5
// A word waits at most this long for what follows to decide.
#define LONGEST_WAIT_S 3

static lin_words_options words_options(const lin_decoding_values *v, double row_seconds, int whole)
{
    lin_words_options o = lin_decoding_words_options(v, whole);
    o.gap = (int)lround(LONGEST_GAP_S / row_seconds);
    o.wait = (int)lround(LONGEST_WAIT_S / row_seconds);
    return o;
}

static lin_status make_words(parts *p, double row_seconds, int whole, lin_words **words, lin_error *err)
{
    const lin_words_options o = words_options(p->values, row_seconds, whole);
    return lin_words_create(p->tree, p->lm, &o, words, err);
}

static lin_status open_words(parts *p, double row_seconds, lin_error *err)
{
    if (!*p->lexicon && lin_phones_is_own(p->phones)) {
        return lin_fail(err, LIN_IO, "--words needs a lexicon, and none is installed for the phones of this model; name the one "
                                     "of its language with --lexicon FILE or LINNET_LEXICON, or use --no-words");
    }
    if (!*p->lexicon) {
        return lin_fail(err, LIN_IO, "--words needs a lexicon, and none is installed; name one with --lexicon FILE or "
                                     "LINNET_LEXICON, such as CMUdict (cmudict-en-us.dict in Debian's pocketsphinx-en-us)");
    }
    LIN_TRY(open_lm_of_words(p, err));
    if (is_of_phones(p))
        return lin_fail(err, LIN_MISMATCH, "%s is a model of phones; omit --words, or name a model of words with --lm",
                        p->lm_path);
    const lin_status status = open_tree(p, err);
    if (status == LIN_MISMATCH) {
        return lin_fail(err, LIN_MISMATCH, "%s has no word of %s: is it a model of phones, or of another language? Name another "
                                           "with --lm, or use --no-lm", p->lm_path, p->lexicon);
    }
    if (status != LIN_OK) return status;
    if (p->tree->n_left_out > 0 && !p->warnings.quiet) {
        lin_warn(&p->warnings, "%d of the %d words of %s are not in the language model, such as %s, and are written as phonemes; "
                               "--tune all-words adds them", p->tree->n_left_out,
                     p->tree->n_left_out + p->tree->words.n, p->lexicon, p->tree->first_left_out);
    }
    LIN_TRY(make_words(p, row_seconds, 0, &p->words, err));
    LIN_TRY(make_words(p, row_seconds, 1, &p->whole, err));
    return open_rescorer(p, lin_decoding_words_options(p->values, 0).lm_weight, err);
}

// Hash of everything that the states of a search depend on; phrases may change while it runs.
static uint64_t identity(const parts *p, uint64_t of_search)
{
    const char *names = lin_phones_list(p->phones);
    const uint64_t id = lin_hash(names, strlen(names), of_search);
    return id ? id : 1; // 0 means greedy
}

static lin_search search_of_words(const parts *p, const lin_words *words, int V)
{
    return lin_search_words(words, V, identity(p, lin_words_fingerprint(words)));
}

static void take_words(lin_decoding *d, const lin_words *words, const lin_words *whole)
{
    const parts *p = d->parts;
    const int V = lin_phones_count(p->phones);
    d->search = lin_search_for_keywords(search_of_words(p, words, V), d->keywords, d->after);
    d->whole = lin_search_for_keywords(search_of_words(p, whole, V), d->keywords, 0);
}

/* ---- sentences of a grammar ------------------------------------------------------------------------------------------------ */

static void close_sentences(lin_sentences *s)
{
    if (!s) return;
    lin_words_destroy(s->words);
    lin_words_destroy(s->whole);
    lin_grammar_destroy(s->grammar);
    lin_tree_destroy(s->tree);
    lin_free(s);
}

// All sentences are equally probable, whatever their length. A phone of [unk] costs as much as one in a sentence of the least
// confidence.
static lin_status make_sentences(const parts *p, const lin_sentences *s, double row_seconds, int whole, lin_words **words,
                                 lin_error *err)
{
    const lin_decoding_values *v = p->values;
    const double least = isnan(v->min_confidence) ? LIN_GRAMMAR_CONFIDENCE : v->min_confidence;
    lin_words_options o = words_options(v, row_seconds, whole);
    if (isnan(v->bonus)) o.bonus = 0;
    if (isnan(v->blank_penalty)) o.blank_penalty = 0;
    o.unknown = lin_grammar_has_unknown(s->grammar) ? 0 : -INFINITY;
    o.unknown_phone = log(fmax(least, 1e-3));
    return lin_words_create_grammar(s->tree, s->grammar, least, &o, words, err);
}

static lin_status open_sentences(const parts *p, const char *grammar, int repeats, double row_seconds, const lin_warnings *tell,
                                 lin_buffer *files, lin_sentences **sentences, lin_error *err)
{
    const lin_decoding_values *v = p->values;
    lin_sentences *s = *sentences = lin_calloc(1, sizeof *s);
    if (!s) return lin_no_memory(err, "a grammar", sizeof *s);
    lin_status status = lin_grammar_tree_open(grammar, repeats, v, p->phones, tell, files, &s->grammar, &s->tree, err);
    if (status == LIN_OK) status = make_sentences(p, s, row_seconds, 0, &s->words, err);
    if (status == LIN_OK) status = make_sentences(p, s, row_seconds, 1, &s->whole, err);
    if (status == LIN_OK) return LIN_OK;
    close_sentences(s);
    *sentences = NULL;
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------- */

// Releases what only opening needed.
static void drop_scaffold(parts *p)
{
    for (int i = 0; i < p->n_phrases; i++) lin_free(p->phrases[i].text);
    lin_free(p->phrases);
    lin_g2p_destroy(p->g2p);
    lin_g2p_rules_destroy(p->rules);
    lin_dictionary_destroy(p->dictionary);
    p->phrases = NULL;
    p->n_phrases = p->phrases_capacity = 0;
    p->g2p = NULL;
    p->rules = NULL;
    p->dictionary = NULL;
}

static lin_status open_search(parts *p, lin_search_kind kind, double row_seconds, lin_error *err)
{
    if (p->values->grammar)
        return open_sentences(p, p->values->grammar, 0, row_seconds, &p->warnings, &p->files, &p->sentences, err);
    LIN_TRY(lin_find_lexicon(p->phones, p->values->lexicon, p->lexicon, LONGEST_PATH, err));
    lin_find_added(p->phones, p->values->lexicon, p->own_words, LONGEST_PATH);
    LIN_TRY(kind == LIN_SEARCH_WORDS ? open_words(p, row_seconds, err) : open_beam(p, err));
    return open_phrases(p, err);
}

lin_decoding lin_decoding_greedy(int V, double row_seconds, double delay_s)
{
    const lin_search search = lin_search_greedy(V);
    return (lin_decoding){.search = search, .whole = search, .row_seconds = row_seconds, .delay_s = delay_s, .n_best = 1};
}

static lin_status open_voice(lin_decoding *d, const lin_decoding_values *v, lin_error *err)
{
    char path[LONGEST_PATH];
    d->speakers = v->speakers;
    if (!v->speakers) return LIN_OK;
    if (!lin_find_file("voices.safetensors", path, sizeof path))
        return lin_fail(err, LIN_IO, "telling speakers apart needs voices.safetensors, which is not installed: it belongs into "
                                     "the folder share/linnet");
    return lin_voice_open(path, &d->voice, err);
}

// On failure everything is closed.
static lin_status open_keywords(lin_decoding *d, const lin_decoding_values *v, const lin_phones *phones,
                                const lin_warnings *warnings, lin_error *err)
{
    lin_status status = open_voice(d, v, err);
    if (status == LIN_OK) status = lin_keywords_open(v, phones, d->row_seconds, warnings, &d->keywords, err);
    d->after = (int)lround(v->after_keyword_s / d->row_seconds);
    d->search = lin_search_for_keywords(d->search, d->keywords, d->after);
    d->whole = lin_search_for_keywords(d->whole, d->keywords, 0);
    if (status != LIN_OK) lin_decoding_close(d);
    return status;
}

lin_status lin_decoding_open(lin_decoding *d, const lin_decoding_values *v, const lin_phones *phones, double row_seconds,
                             double delay_s, const lin_warnings *warnings, lin_error *err)
{
    const lin_search_kind kind = lin_decoding_kind(v);
    const int V = lin_phones_count(phones);
    *d = lin_decoding_greedy(V, row_seconds, delay_s);
    if (v->grammar && (v->context || v->phrases.count || v->lm || v->rescore || v->combine))
        return lin_fail(err, LIN_INVALID,
                        "a grammar takes no phrases, language model, rescoring or combined model; best uses the last two");
    d->n_best = v->n_best;
    d->show = isnan(v->show) ? LIN_SHOW : v->show;
    if (kind == LIN_SEARCH_GREEDY) return open_keywords(d, v, phones, warnings, err);
    parts *p = d->parts = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, "a decoder", sizeof *p);
    p->values = v;
    p->phones = phones;
    if (warnings) p->warnings = *warnings;
    const lin_status status = open_search(p, kind, row_seconds, err);
    drop_scaffold(p);
    if (status != LIN_OK) {
        lin_decoding_close(d);
        return status;
    }
    if (kind == LIN_SEARCH_WORDS) {
        if (p->sentences) take_words(d, p->sentences->words, p->sentences->whole);
        else take_words(d, p->words, p->whole);
        d->blank_penalty = lin_decoding_words_options(v, 1).blank_penalty;
    } else d->search = d->whole = lin_search_beam(p->beam, V, identity(p, lin_beam_fingerprint(p->beam)));
    lin_phrases_use(&p->made, d);
    d->language = kind == LIN_SEARCH_WORDS || p->lm;
    if (v->rescore_weight > 0) d->rescorer = p->rescorer; // with a weight of 0 nothing is judged again
    d->combine_weight = v->combine_weight;
    return open_keywords(d, v, phones, warnings, err);
}

// A hop of 9.5 ms instead of 10 ms changes a voice less than speakers differ.
static int hears_frames_of(const lin_voice *voice, const lin_model *model)
{
    lin_features features = *lin_voice_features(voice);
    features.hop_ms = model->features.hop_ms;
    return lin_voice_bins(voice) == model->config.mel_bins && lin_features_equal(&features, &model->features);
}

lin_status lin_decoding_open_for(const lin_recognizer *r, const lin_decoding_values *values, const lin_warnings *warnings,
                                 lin_decoding *d, lin_error *err)
{
    LIN_TRY(lin_decoding_open(d, values, r->phones, r->row_seconds, r->delay_s, warnings, err));
    if (d->voice && !hears_frames_of(d->voice, r->model)) {
        lin_decoding_close(d);
        return lin_fail(err, LIN_MISMATCH, "this model and voices.safetensors have different features; except for the hop they "
                                           "must be the same (linnet info MODEL)");
    }
    if (!r->streams) d->search = d->whole;
    return LIN_OK;
}

void lin_decoding_close(lin_decoding *d)
{
    parts *p = d->parts;
    if (p) {
        drop_scaffold(p);
        lin_phrases_free(&p->made);
        lin_rescorer_close(p->rescorer);
        lin_words_destroy(p->words);
        lin_words_destroy(p->whole);
        lin_beam_destroy(p->beam);
        lin_tree_destroy(p->tree);
        close_sentences(p->sentences);
        lin_buffer_free(&p->files);
        lin_ngram_destroy(p->lm);
        lin_free(p->labels);
        lin_free(p);
    }
    lin_keywords_destroy(d->keywords);
    lin_voice_destroy(d->voice);
    *d = (lin_decoding){0};
}

static lin_status reread_grammar(lin_decoding *d, int *n_words, lin_error *err)
{
    parts *p = d->parts;
    lin_sentences *fresh;
    const int is_whole = d->search.of == p->sentences->whole;
    lin_buffer_clear(&p->files);
    LIN_TRY(open_sentences(p, p->values->grammar, 0, d->row_seconds, NULL, &p->files, &fresh, err));
    close_sentences(p->sentences);
    p->sentences = fresh;
    take_words(d, fresh->words, fresh->whole);
    if (is_whole) d->search = d->whole;
    *n_words = lin_grammar_words(fresh->grammar);
    return LIN_OK;
}

lin_status lin_decoding_reread(lin_decoding *d, int *n_phrases, lin_error *err)
{
    parts *p = d->parts;
    *n_phrases = 0;
    if (!p) return LIN_OK; // greedy uses no phrases
    if (p->sentences) return reread_grammar(d, n_phrases, err);
    lin_phrases old = p->made;
    p->made = (lin_phrases){0};
    p->again = 1;
    const lin_status status = open_phrases(p, err);
    *n_phrases = p->n_phrases;
    drop_scaffold(p);
    // The new ones replace the old ones, or the old ones remain.
    if (status != LIN_OK) {
        p->made = old;
        return status;
    }
    lin_phrases_free(&old);
    lin_phrases_use(&p->made, d);
    return LIN_OK;
}

lin_status lin_decoding_make_phrases(const lin_decoding *d, const linnet_phrase *list, int n, lin_phrases *phrases,
                                     lin_error *err)
{
    *phrases = (lin_phrases){0};
    if (n < 0) return lin_fail(err, LIN_INVALID, "%d phrases; must be 0 or more", n);
    if (n > 0 && !d->parts)
        return lin_fail(err, LIN_UNSUPPORTED, "greedy decoding does not use phrases: decode with a beam or to words");
    if (n > 0 && d->parts->sentences) return lin_fail(err, LIN_UNSUPPORTED, "a grammar takes no phrases");
    if (n == 0) return LIN_OK;
    parts p = *d->parts; // shares the open files
    p.made = (lin_phrases){0};
    p.again = 1;
    lin_status status = LIN_OK;
    for (int i = 0; i < n && status == LIN_OK; i++) {
        if (!list || !list[i].text) status = lin_fail(err, LIN_INVALID, "phrase %d has no text", i);
        else if (!(fabs(list[i].bonus) <= LIN_CONTEXT_BONUS_MAX))
            status = lin_fail(err, LIN_INVALID, "the phrase '%.100s': its bonus is %g, and must be within %g of 0", list[i].text,
                              list[i].bonus, (double)LIN_CONTEXT_BONUS_MAX);
        else status = add_phrase(&p, list[i].text, strlen(list[i].text), list[i].bonus, 0, err);
    }
    if (status == LIN_OK) status = make_context(&p, err);
    drop_scaffold(&p);
    *phrases = p.made;
    if (status != LIN_OK) lin_phrases_free(phrases);
    return status;
}

lin_status lin_decoding_make_grammar(const lin_decoding *d, const char *text, int repeats, lin_phrases *phrases, lin_error *err)
{
    *phrases = (lin_phrases){0};
    if (d->search.kind != LIN_SEARCH_WORDS || d->n_best > 1 || d->rescorer || d->combined)
        return lin_fail(err, LIN_UNSUPPORTED,
                        "a grammar needs a search for words, without alternatives, rescoring or a combined model");
    return open_sentences(d->parts, text, repeats, d->row_seconds, &d->parts->warnings, NULL, &phrases->sentences, err);
}

void lin_phrases_use(const lin_phrases *phrases, lin_decoding *d)
{
    d->context = (lin_search_context){.phones = phrases->phones, .words = phrases->words};
    if (phrases->sentences) take_words(d, phrases->sentences->words, phrases->sentences->whole);
}

void lin_phrases_free(lin_phrases *phrases)
{
    lin_context_destroy(phrases->phones);
    lin_word_context_destroy(phrases->words);
    close_sentences(phrases->sentences);
    *phrases = (lin_phrases){0};
}

int lin_decoding_has_grammar(const lin_decoding *d) { return d && d->parts && d->parts->sentences; }

const lin_buffer *lin_decoding_grammar_files(const lin_decoding *d) { return d->parts ? &d->parts->files : NULL; }

int lin_decoding_vocabulary(const lin_decoding *d)
{
    const parts *p = d->parts;
    return p && p->sentences ? lin_grammar_words(p->sentences->grammar) : p && p->tree ? p->tree->words.n : 0;
}

/* ---- paths to results ------------------------------------------------------------------------------------------------------ */

// When the sound was that gave a row at this time. Behind an early phone the delay grows with the time, to its full length.
static double earlier(const lin_decoding *d, int early, double at_s)
{
    const double less_s = at_s - d->delay_s;
    return early ? fmax(less_s, at_s / 2) : fmax(less_s, 0);
}

// 1 if a path begins with a phone that would have no length, as times are printed.
static int is_early(const lin_decoding *d, const lin_path *path)
{
    return path->n_phones > 0 && earlier(d, 0, (double)path->phones[0].end * d->row_seconds) < 0.001;
}

double lin_decoding_seconds(const lin_decoding *d, int early, int64_t row)
{
    return earlier(d, early, (double)row * d->row_seconds);
}

const char *lin_decoding_spell(const void *context, int word)
{
    const lin_decoding *d = context;
    return lin_words_text(d->search.of, d->context.words, word);
}

lin_status lin_decoding_add(const lin_decoding *d, const lin_path *path, int *early, lin_result *result, lin_error *err)
{
    const lin_result_speller speller = d->search.kind == LIN_SEARCH_WORDS ? lin_decoding_spell : NULL;
    const int phones = result->n_phones, words = result->n_words;
    lin_status status = lin_result_add_path(result, path, d->row_seconds, speller, d, err);
    *early |= is_early(d, path);
    for (int i = phones; i < result->n_phones && d->delay_s > 0; i++) {
        lin_result_phone *p = &result->phones[i];
        p->start_s = earlier(d, *early, p->start_s);
        p->end_s = earlier(d, *early, p->end_s);
    }
    for (int i = words; i < result->n_words && d->delay_s > 0; i++) {
        lin_result_word *w = &result->words[i];
        w->start_s = earlier(d, *early, w->start_s);
        w->end_s = earlier(d, *early, w->end_s);
    }
    for (int i = 0; i < path->n_keywords && status == LIN_OK; i++) {
        const lin_path_keyword *k = &path->keywords[i];
        const int soon = *early || lin_decoding_seconds(d, 0, k->end) < 0.001; // it would have no length
        status = lin_result_add_keyword(result, lin_keywords_text(d->keywords, k->keyword), k->confidence,
                                        lin_decoding_seconds(d, soon, k->start), lin_decoding_seconds(d, soon, k->end), err);
    }
    return status;
}
