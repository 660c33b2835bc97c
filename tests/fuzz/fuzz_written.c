// The reader of rules for numbers, its matches and the numbers that it hears, on any bytes: rules, 0xFF, a text.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lexicon/written.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition) abort();
}

// The text's words as numbers, from each of the first on.
static void hear(const lin_written *written, const char *text, size_t n)
{
    enum { MOST = 40 };
    char copy[4096];
    const char *words[MOST];
    int n_words = 0;
    lin_buffer out = {0};
    n = n < sizeof copy ? n : sizeof copy - 1;
    memcpy(copy, text, n);
    copy[n] = 0;
    for (char *w = strtok(copy, " \n"); w && n_words < MOST; w = strtok(NULL, " \n")) words[n_words++] = w;
    for (int i = 0; i < n_words && i < 4; i++) {
        int keep;
        lin_buffer_clear(&out);
        const int used = lin_number_read(written, words + i, n_words - i, i ? words[i - 1] : "", &out, &keep);
        must(used >= 0 && used <= n_words - i && keep >= 1 && keep <= n_words - i);
        must(used > 0 || out.n == 0);
        must(!used || lin_number_word(written, words[i]));
    }
    lin_buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned long live = lin_memory_live();
    const char *rules = (const char *)data, *cut = size ? memchr(rules, 0xFF, size) : NULL;
    const size_t n_rules = cut ? (size_t)(cut - rules) : size, n = cut ? size - n_rules - 1 : 0;
    const char *text = cut ? cut + 1 : "";
    lin_written *written;
    lin_readings r = {0};
    lin_error err = {0};
    const lin_status status = lin_written_parse(rules, n_rules, "n", &written, &err);
    must((status == LIN_OK) == (written != NULL));
    must(status == LIN_OK || (status == LIN_FORMAT && *err.message && !strchr(err.message, '\n')));
    int matches = 0;
    for (size_t at = 0, end; written && at < n && matches < 20; at = end ? end : at + 1) {
        must(lin_written_match(written, text, n, at, &end, &r, &err) == LIN_OK);
        must(end == 0 ? r.n == 0 : end > at && end <= n && r.n > 0 && r.n <= LIN_READINGS_MOST);
        for (int i = 0; i < r.n; i++) must(*r.items[i] && *r.items[i] != ' ' && !strstr(r.items[i], "  "));
        matches += end > 0;
    }
    if (written) hear(written, text, n);
    lin_readings_free(&r);
    lin_written_destroy(written);
    must(lin_memory_live() == live);
    return 0;
}
