/*
 * heard.h - what a session shows, checked view by view and kept: phones, words, ends and alternatives of all utterances.
 */
#ifndef LIN_TESTS_LINNET_HEARD_H
#define LIN_TESTS_LINNET_HEARD_H

#include "base/hash.h"
#include "tests/lexicon/support.h"
#include "tests/linnet/stream_sound.h"

enum { MOST = 800 };

typedef struct word {
    char text[32];
    double start_s, end_s;
    float confidence;
    int first_phone, n_phones;
} word;

typedef struct heard {
    lin_result_phone phones[MOST];
    word words[MOST];
    int n_phones, n_words;           // of utterances that ended
    int growing_phones, growing_words; // settled behind these, of the one that grows
    int ends, phones_at[MOST], words_at[MOST];
    double ended_at[MOST];
    uint64_t alternatives[MOST]; // a hash of each utterance's
    linnet_end why[MOST];
    int fail_at; // the view that fails, 0: none
    int views, revision, guesses, incomplete, withdrawn;
    int settled_early; // words that were settled before their utterance ended
} heard;

SUPPORT void same_phone(const lin_result_phone *got, const lin_result_phone *want)
{
    ck_assert(got->label == want->label && got->start_s == want->start_s && got->end_s == want->end_s &&
              got->confidence == want->confidence);
}

SUPPORT void same_word(const word *got, const word *want)
{
    ck_assert_str_eq(got->text, want->text);
    ck_assert(got->start_s == want->start_s && got->end_s == want->end_s && got->confidence == want->confidence &&
              got->first_phone == want->first_phone && got->n_phones == want->n_phones);
}

SUPPORT word word_of(const lin_result *r, int i)
{
    const lin_result_word *w = &r->words[i];
    word to = {"", w->start_s, w->end_s, w->confidence, w->first_phone, w->n_phones};
    ck_assert_int_eq(w->known, *lin_result_word_text(r, i) != 0);
    snprintf(to.text, sizeof to.text, "%s", lin_result_word_text(r, i));
    return to;
}

// Every phone is one of a word, in order, and a word ends with its last one.
SUPPORT void well_formed(const lin_result *r)
{
    int at = 0;
    for (int i = 0; i < r->n_words; i++) {
        ck_assert_int_eq(r->words[i].first_phone, at);
        at += r->words[i].n_phones;
        ck_assert_double_eq(r->words[i].end_s, r->phones[at - 1].end_s);
    }
    if (r->has_words) ck_assert_int_eq(at, r->n_phones);
    for (int i = 1; i < r->n_phones; i++) ck_assert_double_ge(r->phones[i].start_s, r->phones[i - 1].end_s - 1e-9);
}

SUPPORT uint64_t hash_of(const lin_result *r)
{
    uint64_t hash = (uint64_t)r->n_alternatives;
    for (int i = 0; i < r->n_alternatives; i++) {
        const lin_result *a = &r->alternatives[i];
        well_formed(a);
        hash = lin_hash(&a->score, sizeof a->score, hash);
        for (int p = 0; p < a->n_phones; p++) hash = lin_hash(&a->phones[p].label, sizeof a->phones[p].label, hash);
        for (int w = 0; w < a->n_words; w++) {
            const char *text = lin_result_word_text(a, w);
            hash = lin_hash(text, strlen(text), hash);
        }
    }
    return hash;
}

SUPPORT lin_status hear(void *context, const lin_session_view *v, lin_error *err)
{
    heard *h = context;
    const lin_result *r = v->settled, *p = v->provisional;
    const int final = v->end != LINNET_GROWS, last = p->n_words - 1;
    if (++h->views == h->fail_at) return lin_fail(err, LIN_IO, "the sink is full");
    ck_assert_int_eq(v->utterance, h->ends + 1);
    ck_assert_int_eq(v->revision, ++h->revision);
    ck_assert_int_eq(v->old_phones, h->growing_phones);
    ck_assert_int_eq(v->old_words, h->growing_words);
    ck_assert_int_ge(r->n_phones, v->old_phones);
    ck_assert_int_ge(r->n_words, v->old_words);
    ck_assert_int_lt(h->n_phones + r->n_phones, MOST);
    well_formed(r);
    well_formed(p);
    for (int i = 0; i < r->n_phones; i++) {
        if (i < v->old_phones) same_phone(&r->phones[i], &h->phones[h->n_phones + i]);
        else h->phones[h->n_phones + i] = r->phones[i];
    }
    for (int i = 0; i < r->n_words; i++) {
        const word w = word_of(r, i);
        if (i < v->old_words) same_word(&w, &h->words[h->n_words + i]);
        else h->words[h->n_words + i] = w;
    }
    if (r->n_phones && p->n_phones)
        ck_assert_double_ge(p->phones[0].start_s, r->phones[r->n_phones - 1].end_s - 1e-9);
    if (v->incomplete) ck_assert(last >= 0 && !p->words[last].known && !final);
    h->guesses += p->n_words > 1;
    h->withdrawn += r->n_phones + p->n_phones == 0;
    h->incomplete += v->incomplete;
    if (!final) h->settled_early += r->n_words - h->growing_words;
    h->growing_phones = r->n_phones;
    h->growing_words = r->n_words;
    if (r->n_phones + p->n_phones) {
        const lin_result *end = p->n_phones ? p : r;
        ck_assert_double_eq(v->start_s, (r->n_phones ? r : p)->phones[0].start_s);
        ck_assert_double_eq(v->end_s, end->phones[end->n_phones - 1].end_s);
    }
    ck_assert_double_le(v->start_s, v->end_s);
    ck_assert_double_le(v->end_s, v->processed_s + 1e-9);
    if (!final) return LIN_OK;
    ck_assert_int_eq(p->n_phones + p->n_words, 0);
    ck_assert_int_gt(r->n_phones, 0);
    h->ended_at[h->ends] = v->processed_s;
    h->why[h->ends] = v->end;
    h->alternatives[h->ends] = hash_of(r);
    h->n_phones += r->n_phones;
    h->n_words += r->n_words;
    h->phones_at[h->ends] = h->n_phones;
    h->words_at[h->ends++] = h->n_words;
    h->growing_phones = h->growing_words = h->revision = 0;
    return LIN_OK;
}

SUPPORT lin_session *create(const lin_session_options *o, heard *h)
{
    lin_session *session;
    memset(h, 0, sizeof *h);
    OK(session_create(o, &(lin_utterances_sink){.context = h, .show = hear}, &session, &err));
    return session;
}

SUPPORT void listen_to(const lin_session_options *o, int most, uint64_t seed, heard *h)
{
    lin_session *session = create(o, h);
    feed_frames(session, 0, n_features, most, seed);
    OK(lin_session_finish(session, &err));
    session_destroy(session);
}

// A session of its own for samples from number `from` on.
SUPPORT void listen_from(const lin_session_options *o, int from, heard *h)
{
    lin_session *session = create(o, h);
    OK(lin_session_push(session, whole_sound + from, SAMPLES - from, &err));
    OK(lin_session_finish(session, &err));
    session_destroy(session);
}

SUPPORT void same(const heard *a, const heard *b)
{
    ck_assert_int_eq(a->n_phones, b->n_phones);
    ck_assert_int_eq(a->n_words, b->n_words);
    ck_assert_int_eq(a->ends, b->ends);
    for (int i = 0; i < a->n_phones; i++) same_phone(&a->phones[i], &b->phones[i]);
    for (int i = 0; i < a->n_words; i++) same_word(&a->words[i], &b->words[i]);
    for (int i = 0; i < a->ends; i++) {
        ck_assert_int_eq(a->phones_at[i], b->phones_at[i]);
        ck_assert_int_eq(a->words_at[i], b->words_at[i]);
        ck_assert_double_eq(a->ended_at[i], b->ended_at[i]);
        ck_assert_int_eq(a->why[i], b->why[i]);
        ck_assert(a->alternatives[i] == b->alternatives[i]);
    }
}

// The index of the first phone of utterance i.
SUPPORT int first_of(const heard *h, int i) { return i ? h->phones_at[i - 1] : 0; }

#endif
