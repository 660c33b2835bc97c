// phones.c - names, ARPABET and IPA; see phones.h.

#include "lexicon/phones.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/symbols.h"
#include "base/textfile.h"
#include "base/unicode.h"
#include "base/utf8.h"

enum { MAX_PHONES = 65536 };

enum { CMU_PHONES = 39, STRESSES = 4 };

struct lin_phones {
    lin_symbols names;
    char *list;
    int by_cmu[CMU_PHONES][STRESSES]; // the first name of each of CMUdict's phones, by 1 + stress, 0 without; 0: there is none
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

// Other symbols for the same phones, after marks such as tie bars and length are removed: other conventions for General American,
// dictionaries of the Montreal Forced Aligner, and keyboard substitutes.
static const struct {
    const char *ipa;
    char name[3];
} ipa_variants[] = {
    {"ɒ", "AA"}, {"a", "AA"},  {"ə", "AH"},  {"ɐ", "AH"},  {"aw", "AW"}, {"au", "AW"}, {"aj", "AY"}, {"ai", "AY"}, {"ʧ", "CH"},
    {"e", "EH"}, {"ɜ", "ER"},  {"ɚ", "ER"},  {"ə˞", "ER"}, {"ɜ˞", "ER"}, {"ɜɹ", "ER"}, {"ɜr", "ER"}, {"ej", "EY"}, {"ei", "EY"},
    {"g", "G"},  {"ɟ", "G"},   {"ɦ", "HH"},  {"ç", "HH"},  {"ɨ", "IH"},  {"ᵻ", "IH"},  {"ʤ", "JH"},  {"c", "K"},   {"ɫ", "L"},
    {"ʎ", "L"},  {"ɱ", "M"},   {"ɲ", "N"},   {"o", "OW"},  {"ow", "OW"}, {"ou", "OW"}, {"əʊ", "OW"}, {"əw", "OW"}, {"ɔj", "OY"},
    {"ɔi", "OY"}, {"oɪ", "OY"}, {"r", "R"},  {"ɻ", "R"},   {"ɾ", "T"},   {"ʔ", "T"},   {"ʉ", "UW"},  {"ʍ", "W"},
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
    if (status != LIN_OK) return status;
    if (index != at) {
        return lin_fail(err, LIN_INVALID, "phone set: '%s' appears twice, as names %d and %d", lin_quote(shown, name, n), index,
                        at);
    }
    return LIN_OK;
}

// Index in the table of a name with or without a stress digit; *stress is the digit, or -1. Returns -1 if CMUdict has no such
// name.
static int cmu_of_name(const char *name, size_t n, int *stress)
{
    *stress = n > 1 && name[n - 1] >= '0' && name[n - 1] <= '2' ? name[n - 1] - '0' : -1;
    n -= *stress >= 0;
    for (int i = 0; i < CMU_PHONES; i++) {
        if (strlen(ipa_table[i].name) == n && !memcmp(ipa_table[i].name, name, n)) return i;
    }
    return -1;
}

/* ---- the IPA --------------------------------------------------------------------------------------------------------------- */

enum { LONGEST_FIELD = 512, SYLLABIC = 0x329 };

// Characters that do not change the phone: combining marks except the syllabic one, length, aspiration, and other modifiers.
static int is_passed_over(unsigned code)
{
    return (code >= 0x300 && code <= 0x36F && code != SYLLABIC) || (code >= 0x2B0 && code <= 0x2B8) ||
           (code >= 0x2D0 && code <= 0x2D1) || code == 0x2E0 || (code >= 0x1D2C && code <= 0x1D6A) || code == 0x207F ||
           code == 0x203F || code == '.';
}

static int mark_of(unsigned code) { return code == 0x2C8 || code == '\'' ? 1 : code == 0x2CC ? 2 : 0; }

// The longest symbol at the beginning of the text: its bytes, and the number of its phone.
static size_t longest_symbol(const char *text, size_t n, int *cmu)
{
    size_t longest = 0;
    for (int i = 0; i < CMU_PHONES; i++) {
        const size_t k = strlen(ipa_table[i].ipa);
        if (k > longest && k <= n && !memcmp(text, ipa_table[i].ipa, k)) longest = k, *cmu = i;
    }
    for (size_t i = 0; i < sizeof ipa_variants / sizeof *ipa_variants; i++) {
        const size_t k = strlen(ipa_variants[i].ipa);
        int stress;
        if (k > longest && k <= n && !memcmp(text, ipa_variants[i].ipa, k)) {
            longest = k, *cmu = cmu_of_name(ipa_variants[i].name, strlen(ipa_variants[i].name), &stress);
        }
    }
    return longest;
}

// Copies the field without the characters that are ignored. Returns its bytes, 0 if it is not UTF-8 or too long.
static size_t clean(char out[LONGEST_FIELD], const char *text, size_t n)
{
    size_t used = 0, step;
    if (n > LONGEST_FIELD) return 0;
    for (size_t at = 0; at < n; at += step) {
        unsigned code;
        step = lin_utf8_decode(text + at, n - at, &code);
        if (!step) return 0;
        if (is_passed_over(code)) continue;
        int cmu;
        unsigned mark, letter = longest_symbol(text + at, n - at, &cmu) >= step ? 0 : lin_unicode_split(code, &mark);
        for (unsigned next = letter; next; next = lin_unicode_split(letter, &mark)) letter = next; // "ã" is a with a mark
        memcpy(out + used, text + at, step);
        used += letter ? lin_utf8_encode(letter, out + used) : step;
    }
    return used;
}

typedef struct cmu_read {
    int cmu, stress;
} cmu_read;

static int is_vowel(int cmu) { return cmu >= 0 && strchr("AEIOU", ipa_table[cmu].name[0]) != NULL; }

// A sequence of symbols. 0 if one is unknown or there are too many.
static int read_ipa(const char *field, size_t n_field, cmu_read *out, int capacity, int *mark)
{
    char text[LONGEST_FIELD];
    const size_t n = clean(text, field, n_field);
    int found = 0, stress;
    for (size_t at = 0; at < n;) {
        unsigned code;
        int cmu = 0;
        const size_t step = lin_utf8_decode(text + at, n - at, &code), symbol = longest_symbol(text + at, n - at, &cmu);
        if (!symbol && code == SYLLABIC && found) {
            cmu_read *last = &out[found - 1];
            at += step;
            if (!strchr("LMN", ipa_table[last->cmu].name[0])) continue; // not of r: ɹ̩ is ER and is written so
            if (found == capacity) return 0;
            out[found++] = *last;
            *last = (cmu_read){cmu_of_name("AH", 2, &stress), *mark ? *mark : -1};
            *mark = 0;
        } else if (!symbol) {
            if (!mark_of(code)) return 0;
            *mark = mark_of(code);
            at += step;
        } else {
            if (found == capacity) return 0;
            out[found++] = (cmu_read){cmu, is_vowel(cmu) && *mark ? *mark : -1};
            if (is_vowel(cmu)) *mark = 0;
            at += symbol;
        }
    }
    return found;
}

/* ---- sets ------------------------------------------------------------------------------------------------------------------ */

// Index in the table of a phone of a set, under any of its names; -1: none.
static int cmu_of_phone(const char *name, size_t n, int *stress)
{
    cmu_read one[2];
    int mark = 0, cmu = cmu_of_name(name, n, stress);
    if (cmu >= 0 || read_ipa(name, n, one, 2, &mark) != 1) return cmu;
    *stress = one[0].stress;
    return one[0].cmu;
}

static void index_by_cmu(lin_phones *p)
{
    for (int i = 1; i < p->names.n; i++) {
        int stress, cmu = cmu_of_phone(lin_symbols_text(&p->names, i), p->names.items[i].n, &stress);
        if (cmu >= 0 && !p->by_cmu[cmu][stress + 1]) p->by_cmu[cmu][stress + 1] = i;
    }
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
    for (const char *at = list; status == LIN_OK; at++) {
        size_t n = strcspn(at, " ");
        status = add_name(p, at, n, err);
        at += n;
        if (!*at) break;
    }
    if (status == LIN_OK && p->names.n < 2) status = lin_fail(err, LIN_INVALID, "phone set: there is no phone besides the blank");
    if (status != LIN_OK) {
        lin_phones_destroy(p);
        return status;
    }
    index_by_cmu(p);
    *phones = p;
    return LIN_OK;
}

lin_status lin_phones_load(const char *path, lin_phones **phones, lin_error *err)
{
    char *text;
    size_t n;
    lin_lines lines;
    lin_buffer names = {0};
    *phones = NULL;
    lin_status status = lin_text_read(path, &text, &n, err);
    if (status != LIN_OK) return status;
    lin_lines_begin(&lines, text, n);
    while (lin_lines_next(&lines)) {
        const char *at = lines.text, *field;
        size_t n_field;
        if (!lin_field_next(&at, lines.text + lines.n, &field, &n_field)) continue;
        if (names.n) lin_buffer_char(&names, ' ');
        lin_buffer_bytes(&names, field, n_field);
    }
    lin_free(text);
    status = lin_buffer_status(&names, err);
    if (status == LIN_OK) status = lin_phones_create(names.n ? names.data : "", phones, err);
    lin_buffer_free(&names);
    return status == LIN_OK ? LIN_OK : lin_fail_at(err, status, "%s", path);
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

// The phone of the set for one of CMUdict's: with this stress, or else without stress; if no stress is given, the one with stress
// 0.
static int label_of(const lin_phones *phones, int cmu, int stress)
{
    const int *by_stress = phones->by_cmu[cmu];
    return by_stress[stress + 1] ? by_stress[stress + 1] : by_stress[0] || stress >= 0 ? by_stress[0] : by_stress[1];
}

static int read_name(const lin_phones *phones, const char *name, size_t n, lin_phone_read *out)
{
    int stress, label = lin_phones_find(phones, name, n), cmu;
    *out = (lin_phone_read){label, -1};
    if (label >= 0) return label > 0;
    label = lin_phones_find_unstressed(phones, name, n);
    *out = (lin_phone_read){label, label > 0 ? name[n - 1] - '0' : -1};
    if (label >= 0) return label > 0;
    cmu = cmu_of_name(name, n, &stress);
    if (cmu < 0) return 0;
    *out = (lin_phone_read){label_of(phones, cmu, stress), stress};
    return out->label > 0;
}

static int is_ascii(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (unsigned char)text[i] < 0x80) i++;
    return i == n;
}

int lin_phones_read(const lin_phones *phones, const char *text, size_t n, lin_phone_read *out, int capacity, int *stress)
{
    char capitals[LIN_PHONE_NAME_MAX];
    cmu_read symbols[LIN_PHONES_READ_MAX];
    if (capacity < 1) return 0;
    if (read_name(phones, text, n, out)) return 1;
    for (size_t i = 0; n <= sizeof capitals && i < n; i++) {
        capitals[i] = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 32) : text[i];
    }
    if (n <= sizeof capitals && read_name(phones, capitals, n, out)) return 1;
    const int found = read_ipa(text, n, symbols, capacity < LIN_PHONES_READ_MAX ? capacity : LIN_PHONES_READ_MAX, stress);
    if (found > 1 && is_ascii(text, n)) return 0; // a word in letters
    for (int i = 0; i < found; i++) {
        out[i] = (lin_phone_read){label_of(phones, symbols[i].cmu, symbols[i].stress), symbols[i].stress};
        if (out[i].label == 0) return 0;
    }
    return found;
}

static int cmu_at(const lin_phones *phones, int index)
{
    const char *name = index > 0 ? lin_phones_name(phones, index) : NULL;
    int stress;
    return name ? cmu_of_phone(name, strlen(name), &stress) : -1;
}

const char *lin_phones_cmu(const lin_phones *phones, int index)
{
    const int cmu = cmu_at(phones, index);
    return cmu >= 0 ? ipa_table[cmu].name : NULL;
}

int lin_phones_is_vowel(const lin_phones *phones, int index) { return is_vowel(cmu_at(phones, index)); }

const char *lin_phones_list(const lin_phones *phones) { return phones->list; }

const char *lin_phones_ipa(const lin_phones *phones, int index)
{
    const char *name = lin_phones_name(phones, index);
    int stress;
    const int cmu = name ? cmu_of_name(name, strlen(name), &stress) : -1;
    return cmu >= 0 ? ipa_table[cmu].ipa : name;
}
