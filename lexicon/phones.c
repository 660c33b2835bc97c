#include "lexicon/phones.h"

#include <string.h>

#include "kernels/memory.h"
#include "lexicon/symbols.h"
#include "lexicon/textfile.h"

enum { MAX_PHONES = 65536 };

struct lin_phones {
    lin_symbols names;
    char *list;
};

// CMUdict's phones in the International Phonetic Alphabet, broad transcription of General American.
static const struct {
    char name[3];
    const char *ipa;
} ipa_table[] = {
    {"AA", "ɑ"}, {"AE", "æ"}, {"AH", "ʌ"}, {"AO", "ɔ"}, {"AW", "aʊ"}, {"AY", "aɪ"}, {"B", "b"},
    {"CH", "tʃ"}, {"D", "d"}, {"DH", "ð"}, {"EH", "ɛ"}, {"ER", "ɝ"}, {"EY", "eɪ"}, {"F", "f"},
    {"G", "ɡ"}, {"HH", "h"}, {"IH", "ɪ"}, {"IY", "i"}, {"JH", "dʒ"}, {"K", "k"}, {"L", "l"},
    {"M", "m"}, {"N", "n"}, {"NG", "ŋ"}, {"OW", "oʊ"}, {"OY", "ɔɪ"}, {"P", "p"}, {"R", "ɹ"},
    {"S", "s"}, {"SH", "ʃ"}, {"T", "t"}, {"TH", "θ"}, {"UH", "ʊ"}, {"UW", "u"}, {"V", "v"},
    {"W", "w"}, {"Y", "j"}, {"Z", "z"}, {"ZH", "ʒ"},
};

static lin_status add_name(lin_phones *p, const char *name, size_t n, lin_error *err)
{
    char shown[LIN_QUOTE];
    int index, at = p->names.n;
    if (!n) return lin_fail(err, LIN_INVALID, "phone set: name %d is empty; names are separated by single spaces", at);
    if (n > LIN_PHONE_NAME_MAX || lin_text_find_control(name, n) < n || memchr(name, '\t', n)) {
        return lin_fail(err, LIN_INVALID, "phone set: name %d, '%s', is too long or has control characters", at,
                        lin_quote(shown, name, n));
    }
    if (at == 0 && (n != strlen(LIN_PHONES_BLANK) || memcmp(name, LIN_PHONES_BLANK, n))) {
        return lin_fail(err, LIN_INVALID, "phone set: the first name is '%s', it must be %s", lin_quote(shown, name, n),
                        LIN_PHONES_BLANK);
    }
    if (at == MAX_PHONES) return lin_fail(err, LIN_INVALID, "phone set: more than %d names", MAX_PHONES);
    lin_status status = lin_symbols_add(&p->names, name, n, &index, err);
    if (status) return status;
    if (index != at) {
        return lin_fail(err, LIN_INVALID, "phone set: '%s' is there twice, as names %d and %d", lin_quote(shown, name, n), index,
                        at);
    }
    return LIN_OK;
}

lin_status lin_phones_create(const char *list, lin_phones **phones, lin_error *err)
{
    *phones = NULL;
    if (!list) list = LIN_PHONES_DEFAULT;
    lin_phones *p = lin_calloc(1, sizeof *p);
    if (!p) return lin_no_memory(err, "a phone set", sizeof *p);
    lin_status status = LIN_OK;
    p->list = lin_strdup(list);
    if (!p->list) status = lin_no_memory(err, "a phone set", strlen(list) + 1);
    for (const char *at = list; !status; at++) {
        size_t n = strcspn(at, " ");
        status = add_name(p, at, n, err);
        at += n;
        if (!*at) break;
    }
    if (!status && p->names.n < 2) status = lin_fail(err, LIN_INVALID, "phone set: there is no phone besides the blank");
    if (status) {
        lin_phones_destroy(p);
        return status;
    }
    *phones = p;
    return LIN_OK;
}

void lin_phones_destroy(lin_phones *phones)
{
    if (!phones) return;
    lin_symbols_free(&phones->names);
    lin_free(phones->list);
    lin_free(phones);
}

int lin_phones_count(const lin_phones *phones) { return phones->names.n; }

const char *lin_phones_name(const lin_phones *phones, int index)
{
    return index >= 0 && index < phones->names.n ? lin_symbols_text(&phones->names, index) : NULL;
}

int lin_phones_find(const lin_phones *phones, const char *name, size_t n) { return lin_symbols_find(&phones->names, name, n); }

int lin_phones_find_unstressed(const lin_phones *phones, const char *name, size_t n)
{
    int index = lin_phones_find(phones, name, n);
    if (index < 0 && n > 1 && name[n - 1] >= '0' && name[n - 1] <= '2') index = lin_phones_find(phones, name, n - 1);
    return index;
}

const char *lin_phones_list(const lin_phones *phones) { return phones->list; }

const char *lin_phones_ipa(const lin_phones *phones, int index)
{
    const char *name = lin_phones_name(phones, index);
    if (!name) return NULL;
    size_t n = strlen(name);
    if (n > 1 && name[n - 1] >= '0' && name[n - 1] <= '2') n--;
    for (size_t i = 0; i < sizeof ipa_table / sizeof *ipa_table; i++) {
        if (strlen(ipa_table[i].name) == n && !memcmp(ipa_table[i].name, name, n)) return ipa_table[i].ipa;
    }
    return name;
}
