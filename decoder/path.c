// path.c - phones and words in growing arrays; see path.h.

#include "decoder/path.h"

#include <assert.h>

#include "base/memory.h"

static int holds(const lin_path *p)
{
    return p->n_phones >= 0 && p->n_phones <= p->phones_capacity && p->n_words >= 0 && p->n_words <= p->words_capacity;
}

lin_status lin_path_reserve(lin_path *path, int more_phones, int more_words, lin_error *err)
{
    assert(holds(path));
    lin_status status = lin_grow_int(&path->phones, &path->phones_capacity, (int64_t)path->n_phones + more_phones,
                                     sizeof *path->phones, "a path", err);
    if (status != LIN_OK) return status;
    return lin_grow_int(&path->words, &path->words_capacity, (int64_t)path->n_words + more_words, sizeof *path->words, "a path",
                        err);
}

void lin_path_clear(lin_path *path)
{
    path->n_phones = path->n_words = path->incomplete = 0;
    path->score = path->acoustic = path->language = 0;
}

void lin_path_free(lin_path *path)
{
    lin_free(path->phones);
    lin_free(path->words);
    *path = (lin_path){0};
}
