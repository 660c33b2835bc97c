// Chains of records: sweeping out what no token reaches, settling words, and turning chains into phones and words.

#include <float.h>
#include <string.h>

#include "decoder/words_internal.h"

int words_best(const space *s)
{
    int best = 0;
    for (int i = 1; i < s->h->n_tokens; i++) {
        if (s->tokens[i].total > s->tokens[best].total) best = i;
    }
    return best;
}

// Word numbers wrap around after 2^32 words.
int words_is_settled(const space *s, const record *r) { return (int32_t)(r->n_words - s->h->settled) < (r->word == WORD_INSIDE ? 0 : 1); }

// ---- sweeping ---------------------------------------------------------------------------------------------------------------

static void mark(int32_t *marks, int at)
{
    if (at >= 0) marks[at] = 1;
}

static int moved(const int32_t *marks, int at) { return at < 0 ? -1 : marks[at]; }

// Keeps the records that tokens and alternatives reach, in their order. A record is newer than the one before it.
void words_sweep(space *s)
{
    words_header *h = s->h;
    int32_t *marks = s->slots;
    int n = 0;
    memset(marks, 0, (size_t)h->n_records * sizeof *marks);
    for (int i = 0; i < h->n_tokens; i++) {
        mark(marks, s->tokens[i].arms[BLANK_ARM].record);
        mark(marks, s->tokens[i].arms[LABEL_ARM].record);
    }
    for (int i = 0; i < h->n_alternatives; i++) mark(marks, s->alternatives[i].record);
    for (int i = h->n_records; i-- > 0;) {
        record *r = &s->records[i];
        if (marks[i] && words_is_settled(s, r)) marks[i] = 0;
        if (marks[i]) mark(marks, r->before);
    }
    for (int i = 0; i < h->n_records; i++) {
        if (!marks[i]) {
            marks[i] = -1;
            continue;
        }
        s->records[i].before = moved(marks, s->records[i].before);
        marks[i] = n;
        s->records[n++] = s->records[i];
    }
    h->n_records = n;
    for (int i = 0; i < h->n_tokens; i++) {
        for (int k = 0; k < 2; k++) s->tokens[i].arms[k].record = moved(marks, s->tokens[i].arms[k].record);
    }
    for (int i = 0; i < h->n_alternatives; i++) s->alternatives[i].record = moved(marks, s->alternatives[i].record);
}

// Worse tokens than this many go, when even their chains do not fit.
static void keep_tokens(space *s, int n)
{
    while (s->h->n_tokens > n) {
        int worst = 0;
        for (int i = 1; i < s->h->n_tokens; i++) {
            if (s->tokens[i].total <= s->tokens[worst].total) worst = i;
        }
        s->tokens[worst] = s->tokens[--s->h->n_tokens];
    }
}

void words_make_room(const lin_words *w, space *s, lin_path *settled)
{
    const int need = 2 * w->o.width; // tokens' records and alternatives'
    if (s->h->n_records + need <= w->n_records) return;
    words_sweep(s);
    while (s->h->n_records + need > w->n_records - w->n_records / 8) {
        if (s->h->n_alternatives) s->h->n_alternatives = 0;
        else if (s->tokens[words_best(s)].n_words) words_force(w, s, settled);
        else if (s->h->n_tokens > 1) keep_tokens(s, s->h->n_tokens / 2);
        else return;
        words_sweep(s);
    }
}

// ---- settling ---------------------------------------------------------------------------------------------------------------

// The history up to the first word of a chain that is not settled; 0: there is none. *phones: those of that word.
static uint64_t first_of(const space *s, int at, int *phones)
{
    uint64_t first = 0;
    *phones = 0;
    for (; at >= 0 && !words_is_settled(s, &s->records[at]); at = s->records[at].before) {
        if (s->records[at].word != WORD_INSIDE) {
            first = s->records[at].history;
            *phones = 0;
        }
        ++*phones;
    }
    return first;
}

// Gives out the first word of the best token, which all tokens have.
static void settle_first(space *s, lin_path *settled)
{
    const token *t = &s->tokens[words_best(s)];
    const arm *a = better_arm(t);
    int at = a->record, frames = a->frames, phones;
    double logp = a->logp;
    const uint32_t number = s->h->settled + 1;
    while (at >= 0 && (s->records[at].n_words != number || s->records[at].word == WORD_INSIDE)) {
        frames = s->records[at].before_frames;
        logp = s->records[at].before_logp;
        at = s->records[at].before;
    }
    const lin_status status = words_trace(s, at, frames, logp, settled, NULL);
    if (status) s->failed = status;
    settled->score = t->total;
    settled->acoustic = t->mass;
    settled->language = t->language;
    (void)first_of(s, better_arm(t)->record, &phones);
    s->h->settled++;
    for (int i = 0; i < s->h->n_tokens; i++) {
        token *other = &s->tokens[i];
        int unused;
        other->n_words--;
        other->n_phones -= phones;
        other->first = first_of(s, better_arm(other)->record, &unused);
    }
}

void words_settle(const lin_words *w, space *s, lin_path *settled)
{
    if (w->o.n_best > 1) return;
    for (;;) {
        const uint64_t first = s->tokens[0].first;
        for (int i = 0; i < s->h->n_tokens; i++) {
            if (!s->tokens[i].first || s->tokens[i].first != first) return;
        }
        settle_first(s, settled);
        if (s->failed) return;
    }
}

void words_force(const lin_words *w, space *s, lin_path *settled)
{
    (void)w;
    const uint64_t first = s->tokens[words_best(s)].first;
    int n = 0;
    for (int i = 0; i < s->h->n_tokens; i++) {
        if (s->tokens[i].first == first) s->tokens[n++] = s->tokens[i];
    }
    s->h->n_tokens = n;
    settle_first(s, settled);
}

// Both arms end with the same phone, in a record each or together.
void words_break_off(space *s, token *t)
{
    for (int k = 0; k < 2; k++) {
        const int at = t->arms[k].record;
        if (at < 0 || s->records[at].word != WORD_INSIDE) continue;
        s->records[at].word = LIN_WORD_UNKNOWN;
        s->records[at].n_words++;
        s->records[at].history = mix(t->history, UINT64_C(1) << 42);
    }
    t->history = mix(t->history, UINT64_C(1) << 42);
    if (!t->n_words++) t->first = t->history;
    t->node = LIN_TREE_ROOT;
    t->ahead = 0;
    weigh(t);
}

// ---- paths ------------------------------------------------------------------------------------------------------------------

static void set_word(lin_path *path, lin_path_word *word, int n_phones)
{
    double logp = 0;
    const lin_path_phone *phones = &path->phones[word->first_phone];
    for (int i = 0; i < n_phones; i++) logp += log((double)phones[i].confidence);
    word->n_phones = n_phones;
    word->confidence = (float)exp(logp / n_phones);
    word->start = phones[0].start;
    word->end = phones[n_phones - 1].end;
}

lin_status words_trace(const space *s, int at, int frames, double logp, lin_path *path, lin_error *err)
{
    int n_phones = 0, n_words = 0;
    for (int i = at; i >= 0 && !words_is_settled(s, &s->records[i]); i = s->records[i].before) {
        n_words += !n_phones++ || s->records[i].word != WORD_INSIDE; // phones behind the last word are a word of their own
    }
    lin_status status = lin_path_reserve(path, n_phones, n_words, err);
    if (status) return status;
    const int first_phone = path->n_phones;
    lin_path_word *word = path->words + path->n_words + n_words;
    path->n_phones += n_phones;
    path->n_words += n_words;
    for (int k = n_phones; k-- > 0; at = s->records[at].before) {
        const record *r = &s->records[at];
        path->phones[first_phone + k] = (lin_path_phone){r->label, fmaxf((float)exp(logp / frames), FLT_MIN), r->start, r->start + frames};
        if (k == n_phones - 1 || r->word != WORD_INSIDE) {
            (--word)->word = r->word == WORD_INSIDE ? LIN_WORD_UNKNOWN : r->word;
            word->first_phone = first_phone + k + 1; // behind it, until its own first phone is known
        }
        frames = r->before_frames;
        logp = r->before_logp;
    }
    for (int end = first_phone, i = 0; i < n_words; i++) {
        const int behind = word[i].first_phone;
        word[i].first_phone = end;
        set_word(path, &word[i], behind - end);
        end = behind;
    }
    return LIN_OK;
}
