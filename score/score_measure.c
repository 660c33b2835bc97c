// What an error rate is called, by the tokens of the reference.

#include <string.h>

#include "score/score_report.h"

#include "base/utf8.h"

// Of TIMIT and of other toolkits, besides what lin_phones_read knows.
static const char *const others[] = {"bcl", "dcl", "gcl", "kcl", "pcl", "tcl",  "vcl", "cl", "epi", "pau",
                                     "h#",  "q",   "ax",  "ix",  "axr", "ax-h", "ux",  "nx", "dx",  "eng",
                                     "em",  "en",  "el",  "hv",  "sil", "spn",  "nsn", "sp"};

static int is_phone(const lin_phones *phones, const char *token)
{
    lin_phone_read read;
    int stress = 0;
    if (lin_phones_read(phones, token, strlen(token), &read, 1, &stress) == 1) return 1;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!strcmp(token, others[i])) return 1;
    }
    return 0;
}

const char *lin_score_measure(const lin_score *score, const lin_phones *phones)
{
    long long n = 0, n_phones = 0, n_sure = 0, n_long = 0;
    for (int i = 0; i < lin_score_tokens(score); i++) {
        lin_score_token_counts c;
        const char *token = lin_score_token(score, i, &c);
        const int phone = is_phone(phones, token);
        n += c.n_ref;
        n_phones += phone ? c.n_ref : 0;
        n_sure += phone && strlen(token) > 1 ? c.n_ref : 0; // "b" may be a letter
        n_long += !phone && (int)lin_utf8_count(token) > 2 ? c.n_ref : 0;
    }
    if (n && n_sure && n_phones >= n - n / 10) return "PER";
    return n_long > n / 2 ? "WER" : "ER";
}
