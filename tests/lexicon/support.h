/*
 * support.h - helpers for the tests of lexicon/ and decoder/: failing allocations, a small dictionary, labels as text.
 */
#ifndef LIN_TESTS_LEXICON_SUPPORT_H
#define LIN_TESTS_LEXICON_SUPPORT_H

#include "base/memory.h"
#include "base/status.h"
#include "base/textfile.h"
#include "lexicon/dictionary.h"
#include "lexicon/phones.h"
#include "lexicon/written.h"
#include "tests/support.h"

#define SUPPORT __attribute__((unused)) static

// A file of tests/golden, or of the folder that a test program is given.
SUPPORT const char *golden_folder = "tests/golden";

SUPPORT const char *golden_path(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", golden_folder, name);
    return path;
}

SUPPORT const char small_dictionary[] = ";;; a comment\n"
                                        "hello  HH AH0 L OW1\n"
                                        "hello(2)  HH EH0 L OW1\n"
                                        "WORLD  W ER1 L D\n"
                                        "a AH\na(2) EY\n"
                                        "cat K AE T\nbus B AH S\nplan P L AE N\nplane P L EY N\nplay P L EY\nhappy HH AE P IY\n"
                                        "color K AH L ER\nwant W AA N T\nkiss K IH S\nlaugh L AE F\nwe W IY\ndark D AA R K\n"
                                        "moth M AO TH\njudge JH AH JH\nrose R OW Z\nfly F L AY\nhope HH OW P\n'tis T IH Z\nyou Y "
                                        "UW\nlord L AO R D\nhyphen-ated HH AY\n";

// FAILS without a look at memory: what is refused leaves the room it had.
#define REFUSED(call, want, text)                                                                                                \
    do {                                                                                                                         \
        lin_error err = {0};                                                                                                     \
        ck_assert_int_eq(call, want);                                                                                            \
        ck_assert_msg(strstr(err.message, text) != NULL, "'%s' is not in '%s'", text, err.message);                              \
    } while (0)

// Normalised rows, from flat to peaked.
SUPPORT void random_rows(float *logp, int T, int V, uint64_t key, double sharpness)
{
    for (int t = 0; t < T; t++) {
        double x[64], sum = 0;
        for (int k = 0; k < V; k++) {
            x[k] = sharpness * lin_random_uniform(key, (uint64_t)(t * V + k));
            sum += exp(x[k]);
        }
        for (int k = 0; k < V; k++) logp[t * V + k] = (float)(x[k] - log(sum));
    }
}

// Labels as names separated by spaces.
SUPPORT const char *named(const lin_phones *phones, const int *labels, int n)
{
    static char text[4096];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < n && used < sizeof text - 40; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, i ? " %s" : "%s", lin_phones_name(phones, labels[i]));
    }
    return text;
}

// Rules with the sets of a language's numbers.txt, and sections of their own.
SUPPORT lin_written *rules_with(const char *language, const char *sections)
{
    char path[64], *text, *rules = NULL;
    size_t n;
    lin_written *written;
    snprintf(path, sizeof path, "share/linnet/%s/numbers.txt", language);
    OK(lin_text_read(path, &text, &n, &err));
    ck_assert_int_gt(asprintf(&rules, "%.*s%s", (int)(strstr(text, "\n[written]\n") - text), text, sections), 0);
    OK(lin_written_parse(rules, strlen(rules), "rules", &written, &err));
    free(rules);
    lin_free(text);
    return written;
}

// The first reading of a number by rules with the line "{N} = {1:set}", with the parts of its words joined.
SUPPORT const char *number_in_words(const lin_written *rules, uint64_t number, lin_readings *r)
{
    static char text[512];
    char digits[24];
    size_t n = 0, end;
    const size_t n_digits = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    OK(lin_written_match(rules, digits, n_digits, 0, &end, r, &err));
    ck_assert_uint_eq(end, n_digits);
    for (const char *c = r->items[0]; *c && n < sizeof text - 1; c++)
        if (*c != '+') text[n++] = *c;
    text[n] = 0;
    return text;
}

#endif
