// api_result.c - linnet.h: results as callers see them, and results as text in any format.

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "decoder/writers_tokens.h"
#include "linnet/api.h"

lin_status lin_api_result_create(linnet_model *model, linnet_result **result, lin_error *err)
{
    linnet_result *r = lin_calloc(1, sizeof *r);
    *result = NULL;
    if (!r) return lin_no_memory(err, "a result", sizeof *r);
    r->model = lin_api_keep_model(model);
    r->info.warning = r->warning;
    r->info.fit = NAN;
    const lin_status status = lin_result_begin(&r->result, "sound", NULL, 1, err);
    if (status == LIN_OK) *result = r;
    else linnet_result_destroy(r);
    return status;
}

static void drop_alternatives(linnet_result *r)
{
    for (int i = 0; i < r->n_alternatives; i++) linnet_result_destroy(r->alternatives[i]);
    lin_free(r->alternatives);
    r->alternatives = NULL;
    r->n_alternatives = 0;
}

// What callers see; r->result stays.
static void hide(linnet_result *r)
{
    r->n_phones = r->n_words = 0;
    r->has_text = r->has_readable = 0;
    drop_alternatives(r);
}

void lin_api_result_clear(linnet_result *r)
{
    hide(r);
    lin_result_clear(&r->result);
}

void linnet_result_destroy(linnet_result *r)
{
    if (!r) return;
    drop_alternatives(r);
    lin_result_free(&r->result);
    lin_free(r->phones);
    lin_free(r->words);
    lin_buffer_free(&r->marks);
    lin_buffer_free(&r->text);
    lin_buffer_free(&r->readable);
    linnet_model_destroy(r->model);
    lin_free(r);
}

static linnet_phone phone_of(const linnet_result *r, const lin_result_phone *p)
{
    const linnet_model_info *info = &r->model->info;
    return (linnet_phone){.label = p->label,
                          .name = info->phones[p->label],
                          .ipa = info->ipa[p->label],
                          .confidence = p->confidence,
                          .start_s = p->start_s,
                          .end_s = p->end_s,
                          .stress = p->stress - 1,
                          .goodness = p->goodness,
                          .said = p->heard == LIN_RESULT_NOTHING ? "" : p->heard > 0 ? info->phones[p->heard] : NULL};
}

// All of them, as their spellings may have moved. Words outside the lexicon are spelled by their phones, as in the formats that
// are text.
static lin_status show_words(linnet_result *r, lin_error *err)
{
    const lin_writer_options options = {.phones = r->model->r.phones};
    const lin_tokens tokens = lin_tokens_only(&r->result, &options, 1);
    const int n = r->result.n_words;
    lin_buffer_clear(&r->marks);
    for (int i = 0; i < n; i++) {
        if (r->result.words[i].known) continue;
        lin_token_spell(&tokens, i, &r->marks);
        lin_buffer_char(&r->marks, '\0');
    }
    lin_status status = lin_buffer_status(&r->marks, err);
    if (status == LIN_OK) status = lin_grow_int(&r->words, &r->words_capacity, n, sizeof *r->words, "a result", err);
    const char *mark = r->marks.data;
    for (int i = 0; i < n && status == LIN_OK; i++) {
        const lin_result_word *w = &r->result.words[i];
        r->words[i] = (linnet_word){.text = w->known ? lin_result_word_text(&r->result, i) : mark,
                                    .known = w->known,
                                    .first_phone = w->first_phone,
                                    .n_phones = w->n_phones,
                                    .confidence = w->confidence,
                                    .start_s = w->start_s,
                                    .end_s = w->end_s,
                                    .goodness = lin_result_goodness(&r->result, w->first_phone, w->n_phones)};
        if (!w->known) mark += strlen(mark) + 1;
    }
    if (status == LIN_OK) r->n_words = n;
    return status;
}

static lin_status show_alternatives(linnet_result *r, lin_error *err)
{
    const int n = r->result.n_alternatives;
    drop_alternatives(r);
    if (!n) return LIN_OK;
    r->alternatives = lin_calloc((size_t)n, sizeof *r->alternatives);
    if (!r->alternatives) return lin_no_memory(err, "alternatives", (size_t)n * sizeof *r->alternatives);
    for (int i = 0; i < n; i++) {
        const lin_result *from = &r->result.alternatives[i];
        linnet_result *a;
        lin_status status = lin_api_result_create(r->model, &a, err);
        if (status != LIN_OK) return status;
        r->alternatives[r->n_alternatives++] = a;
        status = lin_result_append(&a->result, from, err);
        a->result.seconds = r->result.seconds;
        if (status == LIN_OK) status = lin_api_result_update(a, 1, err);
        if (status != LIN_OK) return status;
    }
    return LIN_OK;
}

lin_status lin_api_result_update(linnet_result *r, int whole, lin_error *err)
{
    const lin_result *own = &r->result;
    r->info.seconds = own->seconds;
    r->info.score = own->score;
    r->info.acoustic = own->acoustic;
    r->info.language = own->language;
    r->info.has_words = own->has_words;
    r->info.goodness = (double)lin_result_goodness(own, 0, own->n_phones);
    r->has_text = r->has_readable = 0;
    lin_status status = lin_grow_int(&r->phones, &r->phones_capacity, own->n_phones, sizeof *r->phones, "a result", err);
    if (status == LIN_OK) {
        for (int i = r->n_phones; i < own->n_phones; i++) r->phones[i] = phone_of(r, &own->phones[i]);
        r->n_phones = own->n_phones;
        status = show_words(r, err);
    }
    if (status == LIN_OK && whole) status = show_alternatives(r, err);
    if (status != LIN_OK) hide(r);
    return status;
}

lin_status lin_api_result_follow(linnet_result *r, const lin_result *from, int whole, lin_error *err)
{
    lin_result *own = &r->result;
    lin_status status = lin_result_follow(own, from, err);
    for (int i = 0; whole && i < from->n_alternatives && status == LIN_OK; i++) {
        lin_result *a = lin_result_add_alternative(own);
        status = a ? lin_result_append(a, &from->alternatives[i], err) : lin_no_memory(err, "alternatives", sizeof *a);
    }
    return status == LIN_OK ? lin_api_result_update(r, whole, err) : status;
}

/* ---- what callers ask ------------------------------------------------------------------------------------------------------ */

int linnet_result_phones(const linnet_result *r) { return r->n_phones; }
int linnet_result_words(const linnet_result *r) { return r->n_words; }
int linnet_result_alternatives(const linnet_result *r) { return r->n_alternatives; }

const linnet_phone *linnet_result_phone(const linnet_result *r, int i)
{
    return i >= 0 && i < r->n_phones ? &r->phones[i] : NULL;
}

const linnet_word *linnet_result_word(const linnet_result *r, int i)
{
    return i >= 0 && i < r->n_words ? &r->words[i] : NULL;
}

const linnet_result *linnet_result_alternative(const linnet_result *r, int i)
{
    return i >= 0 && i < r->n_alternatives ? r->alternatives[i] : NULL;
}

const linnet_result_info *linnet_result_describe(const linnet_result *r) { return &r->info; }

const char *linnet_result_text(linnet_result *r)
{
    const int words = r->info.has_words, n = words ? r->n_words : r->n_phones;
    if (r->has_text) return r->text.data;
    lin_buffer_clear(&r->text);
    for (int i = 0; i < n; i++) {
        if (i) lin_buffer_char(&r->text, ' ');
        lin_buffer_text(&r->text, words ? r->words[i].text : r->phones[i].name);
    }
    lin_buffer_text(&r->text, "");
    if (lin_buffer_status(&r->text, NULL) != LIN_OK) {
        lin_buffer_free(&r->text);
        return "";
    }
    r->has_text = r->text.data != NULL;
    return r->has_text ? r->text.data : "";
}

static lin_status make_readable(linnet_result *r, const lin_punctuation *punctuation, lin_error *err)
{
    const lin_writer_options options = {
        .phones = r->model->r.phones, .readable = punctuation, .speller = lin_api_speller(r->model)};
    lin_status status = lin_writer_find("text")->write(&r->result, &options, &r->readable, err);
    if (status == LIN_OK) r->readable.data[--r->readable.n] = '\0'; // without the end of its line
    return status;
}

const char *linnet_result_readable(linnet_result *r)
{
    const lin_punctuation *punctuation = r->info.has_words ? lin_api_punctuation(r->model) : NULL;
    if (!punctuation) return linnet_result_text(r);
    if (!r->has_readable) {
        lin_buffer_clear(&r->readable);
        r->has_readable = make_readable(r, punctuation, NULL) == LIN_OK;
    }
    return r->has_readable ? r->readable.data : "";
}

static lin_status copy_result(const linnet_result *from, linnet_result **copy, lin_error *err)
{
    linnet_result *r;
    lin_status status = lin_api_result_create(from->model, &r, err);
    if (status != LIN_OK) return status;
    r->info = from->info;
    memcpy(r->warning, from->warning, sizeof r->warning);
    r->info.warning = r->warning;
    status = lin_api_result_follow(r, &from->result, 1, err);
    if (status == LIN_OK) *copy = r;
    else linnet_result_destroy(r);
    return status;
}

linnet_status linnet_result_copy(const linnet_result *result, linnet_result **copy, linnet_error *err)
{
    *copy = NULL;
    if (!result) return lin_fail(err, LIN_INVALID, "there is no result");
    return copy_result(result, copy, err);
}

/* ---- formats --------------------------------------------------------------------------------------------------------------- */

static const linnet_format_options defaults = {.id = "sound", .speaker = "", .channel = 1};

void linnet_format_options_init(linnet_format_options *options, size_t size)
{
    lin_api_init(options, size, &defaults, sizeof defaults);
}

const char *linnet_format_name(int index)
{
    const lin_writer *writer = index >= 0 ? lin_writer_at(index) : NULL;
    return writer ? writer->name : NULL;
}

static lin_status no_format(const char *format, lin_error *err)
{
    lin_buffer names = {0};
    const lin_writer *writer;
    for (int i = 0; (writer = lin_writer_at(i)) != NULL; i++) {
        if (i) lin_buffer_text(&names, ", ");
        lin_buffer_text(&names, writer->name);
    }
    lin_fail(err, LIN_INVALID, "there is no format '%s'; there are %s", format ? format : "", names.data ? names.data : "others");
    lin_buffer_free(&names);
    return LIN_INVALID;
}

static lin_status format_result(const linnet_result *result, const char *format, const linnet_format_options *given, char **text,
                                size_t *length, lin_error *err)
{
    linnet_format_options o = defaults;
    lin_buffer out = {0};
    lin_status status = lin_api_take(&o, sizeof o, given, "format_options", err);
    if (status != LIN_OK) return status;
    const lin_writer *writer = format ? lin_writer_find(format) : NULL;
    if (!writer) return no_format(format, err);
    const lin_writer_unit units[] = {LIN_UNIT_AUTO, LIN_UNIT_PHONES, LIN_UNIT_WORDS, LIN_UNIT_BOTH};
    const lin_writer_options options = {.phones = result->model->r.phones,
                                        .with_id = o.with_id,
                                        .times = o.times,
                                        .ipa = o.ipa,
                                        .stress = o.stress,
                                        .unit = units[(o.phones != 0) + 2 * (o.words != 0)],
                                        .word_times = o.word_times,
                                        .readable = o.readable ? lin_api_punctuation(result->model) : NULL,
                                        .speller = o.readable ? lin_api_speller(result->model) : NULL};
    lin_result named = result->result; // under the caller's names
    named.id = (char *)(uintptr_t)(o.id ? o.id : "sound");
    named.speaker = (char *)(uintptr_t)(o.speaker ? o.speaker : "");
    named.channel = o.channel;
    status = writer->write(&named, &options, &out, err);
    if (status == LIN_OK) lin_buffer_text(&out, ""); // for its NUL, where nothing was written
    if (status == LIN_OK) status = lin_buffer_status(&out, err);
    if (status != LIN_OK) {
        lin_buffer_free(&out);
        return status;
    }
    *text = out.data;
    if (length) *length = out.n;
    return LIN_OK;
}

linnet_status linnet_result_format(const linnet_result *result, const char *format, const linnet_format_options *options,
                                   char **text, size_t *length, linnet_error *err)
{
    *text = NULL;
    if (!result) return lin_fail(err, LIN_INVALID, "there is no result");
    return format_result(result, format, options, text, length, err);
}
