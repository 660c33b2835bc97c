// pronounce.c - pronunciations of single words; see pronounce.h.

#include "linnet/pronounce.h"

#include "linnet/find.h"
#include "linnet/wording.h"

enum { LONGEST_PATH = 4096 };

lin_status lin_pronouncer_open(lin_pronouncer *p, const lin_decoding_values *v, const lin_phones *phones, const char *what,
                               const lin_warnings *warnings, lin_error *err)
{
    const lin_dictionary_options options = {.skip_bad = 1};
    char path[LONGEST_PATH], own[LONGEST_PATH];
    *p = (lin_pronouncer){.values = v, .phones = phones};
    LIN_TRY(lin_find_lexicon(phones, v->lexicon, path, sizeof path, err));
    if (!*path)
        return lin_fail(err, LIN_IO, "%s need a lexicon, and none is installed for the phones of this model; name one with "
                                     "--lexicon FILE or LINNET_LEXICON", what);
    lin_find_added(phones, v->lexicon, own, sizeof own);
    LIN_TRY(lin_lexicon_open(path, own, v->add_lexicon, v->g2p, phones, &options, &p->dictionary, err));
    lin_lexicon_tell_skipped(p->dictionary, warnings);
    return LIN_OK;
}

void lin_pronouncer_close(lin_pronouncer *p)
{
    lin_g2p_destroy(p->g2p);
    lin_g2p_rules_destroy(p->rules);
    lin_dictionary_destroy(p->dictionary);
    *p = (lin_pronouncer){0};
}

lin_status lin_pronouncer_find(lin_pronouncer *p, const char *word, size_t n, int which, const int **labels, int *n_labels,
                               lin_error *err)
{
    lin_g2p_how how;
    *n_labels = lin_dictionary_find(p->dictionary, word, n, which, labels);
    if (*n_labels || which > 0) return LIN_OK;
    if (!p->g2p) {
        LIN_TRY(lin_find_open_rules(p->phones, p->values->g2p, &p->rules, err));
        LIN_TRY(lin_g2p_create(p->phones, p->dictionary, p->rules, &p->g2p, err));
    }
    *labels = p->labels;
    return lin_g2p_pronounce(p->g2p, word, n, p->labels, LIN_PRONUNCIATION_MAX, n_labels, &how, err);
}
