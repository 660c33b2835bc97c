// wording.c - from words to phones; see wording.h.

#include "linnet/wording.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/textfile.h"
#include "linnet/find.h"
#include "linnet/lexicon_open.h"
#include "model/model.h"

// What a set does not say itself: it is one of the language that was chosen.
static lin_status of_chosen(lin_status status, lin_phones **phones, lin_error *err)
{
    const char *code = lin_find_chosen();
    if (status == LIN_OK && *code && !*lin_phones_language(*phones)) status = lin_phones_set_language(*phones, code, err);
    if (status == LIN_OK) return LIN_OK;
    lin_phones_destroy(*phones);
    *phones = NULL;
    return status;
}

static lin_status load_set(const char *path, lin_phones **phones, lin_error *err)
{
    return of_chosen(lin_phones_load(path, 1, phones, err), phones, err);
}

// The set of a dictionary of which the text is read.
static lin_status make_set(const char *text, size_t n, const char *name, lin_phones **phones, lin_error *err)
{
    char path[4096];
    if (lin_find_phones(path, sizeof path)) return load_set(path, phones, err);
    return of_chosen(lin_dictionary_phones(text, n, name, phones, err), phones, err);
}

lin_status lin_wording_phones(const char *name, lin_phones **phones, lin_error *err)
{
    static const char ending[] = ".safetensors";
    const size_t n = strlen(name), k = sizeof ending - 1;
    char path[4096];
    lin_model *model = NULL;
    *phones = NULL;
    const int is_installed = !strchr(name, '/') && access(name, F_OK) != 0;
    if (!is_installed && (n < k || strcmp(name + n - k, ending) != 0)) return load_set(name, phones, err);
    lin_status status = lin_find_model(name, path, sizeof path, err);
    if (status == LIN_OK && is_installed && access(path, F_OK) != 0)
        return lin_fail(err, LIN_IO, "%s is neither a file with the phones nor a model", name);
    if (status == LIN_OK) status = lin_model_load(path, &model, err);
    if (status == LIN_OK) status = lin_model_check_sound(model, name, err);
    if (status == LIN_OK) status = lin_phones_create(model->phones, phones, err);
    lin_model_destroy(model);
    return status;
}

lin_status lin_wording_chosen_phones(lin_phones **phones, lin_error *err)
{
    char path[4096];
    *phones = NULL;
    if (lin_find_phones(path, sizeof path)) return load_set(path, phones, err);
    lin_status status = lin_find_model("default", path, sizeof path, err);
    if (status == LIN_OK && access(path, F_OK) == 0) return lin_wording_phones(path, phones, err);
    if (status == LIN_OK) status = lin_find_lexicon(NULL, NULL, path, sizeof path, err);
    if (status == LIN_OK && *path) return lin_wording_dictionary_phones(path, phones, err);
    return status == LIN_OK ? lin_phones_create(NULL, phones, err) : status;
}

static lin_status read_dictionary(lin_wording *w, const lin_wording_files *files, lin_error *err)
{
    const lin_dictionary_options options = {.skip_bad = 1};
    char own[4096], *text;
    size_t n;
    lin_status status = lin_text_read(w->path, &text, &n, err);
    if (status != LIN_OK) return status;
    if (!w->phones) status = make_set(text, n, w->path, &w->phones, err);
    if (status == LIN_OK) status = lin_dictionary_parse(text, n, w->path, w->phones, &options, &w->dictionary, err);
    lin_free(text);
    if (status != LIN_OK) return status;
    lin_find_added(w->phones, files->dictionary, own, sizeof own);
    status = lin_lexicon_add(w->dictionary, own, files->g2p, w->phones, &options, err);
    return status == LIN_OK ? lin_lexicon_add(w->dictionary, files->added, files->g2p, w->phones, &options, err) : status;
}

lin_status lin_wording_dictionary_phones(const char *path, lin_phones **phones, lin_error *err)
{
    char *text;
    size_t n;
    *phones = NULL;
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status == LIN_OK) status = make_set(text, n, path, phones, err);
    lin_free(text);
    return status;
}

lin_status lin_wording_open(lin_wording *wording, const lin_wording_files *files, const lin_warnings *warnings, lin_error *err)
{
    memset(wording, 0, sizeof *wording);
    lin_status status = files->phones ? lin_wording_phones(files->phones, &wording->phones, err) : LIN_OK;
    if (status == LIN_OK) status = lin_find_lexicon(wording->phones, files->dictionary, wording->path, sizeof wording->path, err);
    if (status == LIN_OK && !*wording->path)
        status = lin_fail(err, LIN_IO, "no lexicon%s%s is installed; name one with --lexicon FILE or LINNET_LEXICON",
                          *lin_find_chosen() ? " of the language " : "", lin_find_chosen());
    if (status == LIN_OK) status = read_dictionary(wording, files, err);
    if (status == LIN_OK) status = lin_find_open_rules(wording->phones, files->g2p, &wording->rules, err);
    if (status == LIN_OK) status = lin_g2p_create(wording->phones, wording->dictionary, wording->rules, &wording->g2p, err);
    if (status == LIN_OK) {
        status = lin_transcriber_create(wording->phones, wording->dictionary, wording->g2p, &wording->transcriber, err);
    }
    if (status != LIN_OK) {
        lin_wording_close(wording);
        return status;
    }
    lin_lexicon_tell_skipped(wording->dictionary, warnings);
    return LIN_OK;
}

lin_status lin_wording_numbers(lin_wording *wording, const char *given, lin_error *err)
{
    lin_status status = lin_find_open_numbers(wording->phones, given, wording->dictionary, &wording->written, err);
    if (status == LIN_OK) lin_transcriber_read_written(wording->transcriber, wording->written);
    return status;
}

void lin_wording_close(lin_wording *wording)
{
    lin_transcriber_destroy(wording->transcriber);
    lin_written_destroy(wording->written);
    lin_g2p_destroy(wording->g2p);
    lin_g2p_rules_destroy(wording->rules);
    lin_dictionary_destroy(wording->dictionary);
    lin_phones_destroy(wording->phones);
    memset(wording, 0, sizeof *wording);
}

typedef struct oov_rank {
    int index;
    long count;
} oov_rank;

static int by_count(const void *a, const void *b)
{
    const oov_rank *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

lin_status lin_wording_unknown(const lin_wording *wording, int most, const char *indent, lin_buffer *text, lin_error *err)
{
    const int n = lin_transcriber_unknown_count(wording->transcriber);
    oov_rank *ranks = lin_alloc((size_t)n, sizeof *ranks);
    if (!ranks) return lin_no_memory(err, "the list of unknown words", (size_t)n * sizeof *ranks);
    for (int i = 0; i < n; i++) ranks[i] = (oov_rank){i, lin_transcriber_unknown(wording->transcriber, i).count};
    qsort(ranks, (size_t)n, sizeof *ranks, by_count);
    for (int i = 0; i < n && i < most; i++) {
        const lin_unknown_word w = lin_transcriber_unknown(wording->transcriber, ranks[i].index);
        lin_buffer_text(text, indent);
        lin_buffer_text(text, w.word);
        lin_buffer_char(text, '\t');
        lin_buffer_integer(text, w.count);
        lin_buffer_char(text, '\t');
        lin_buffer_text(text, lin_g2p_how_name(w.how));
        for (int p = 0; p < w.n_labels; p++) {
            lin_buffer_char(text, p ? ' ' : '\t');
            lin_buffer_text(text, lin_phones_name(wording->phones, w.labels[p]));
        }
        if (!w.n_labels) lin_buffer_char(text, '\t');
        lin_buffer_char(text, '\n');
    }
    lin_free(ranks);
    return lin_buffer_status(text, err);
}
