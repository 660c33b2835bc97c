#include "decoder/path.h"

#include <limits.h>
#include <string.h>

#include "kernels/memory.h"

// At least doubled, so that appending one at a time stays linear.
static lin_status grow(void **items, int *capacity, int used, int more, size_t size, lin_error *err)
{
    if (more < 0 || more > INT_MAX / 4 - used) return lin_fail(err, LIN_INVALID, "a path of too many phones or words");
    if (used + more <= *capacity) return LIN_OK;
    int larger = 2 * (used + more) + 64;
    void *block = lin_resize(*items, (size_t)larger, size);
    if (!block) return lin_no_memory(err, "a path", (size_t)larger * size);
    *items = block;
    *capacity = larger;
    return LIN_OK;
}

lin_status lin_path_reserve(lin_path *path, int more_phones, int more_words, lin_error *err)
{
    void *phones = path->phones, *words = path->words;
    lin_status status = grow(&phones, &path->phones_capacity, path->n_phones, more_phones, sizeof *path->phones, err);
    path->phones = phones;
    if (status) return status;
    status = grow(&words, &path->words_capacity, path->n_words, more_words, sizeof *path->words, err);
    path->words = words;
    return status;
}

lin_status lin_path_append(lin_path *path, const lin_path *tail, lin_error *err)
{
    lin_status status = lin_path_reserve(path, tail->n_phones, tail->n_words, err);
    if (status) return status;
    const int before = path->n_phones;
    if (tail->n_phones) memcpy(path->phones + before, tail->phones, (size_t)tail->n_phones * sizeof *tail->phones);
    path->n_phones += tail->n_phones;
    for (int i = 0; i < tail->n_words; i++) {
        path->words[path->n_words] = tail->words[i];
        path->words[path->n_words++].first_phone += before;
    }
    path->incomplete = tail->incomplete;
    path->score = tail->score;
    path->acoustic = tail->acoustic;
    path->language = tail->language;
    return LIN_OK;
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
