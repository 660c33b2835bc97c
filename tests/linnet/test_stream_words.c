// The growing result of beams and words: any split of the sound, what is settled stays, endpoints end the search, guesses and
// incomplete words, alternatives, phrases that change on the way, nothing allocated.
#include <pthread.h>

#include "linnet/engine.h"
#include "linnet/stream.h"

#include "decoder/search.h"
#include "tests/linnet/heard.h"
#include "tests/model/one_stream.h"
#include "tests/linnet/word_networks.h"

static char dict[300], arpa[300], phones_arpa[300], list[300], never_dict[300], never_arpa[300], network[300];
static float *logp; // [n_rows, V], of all the sound at once
static int n_rows, V;

/* ---- a lexicon of what is said --------------------------------------------------------------------------------------------- */

// The names of the phones first .. first+n-1 that greedy decoding finds.
static void put_phones(FILE *f, const lin_path_phone *phones, int n)
{
    for (int i = 0; i < n; i++) fprintf(f, " %s", lin_phones_name(recognizer.phones, phones[i].label));
}

// Words of two phones each, waa, wba, ...; each has a homophone, zaa, zba, ..., that the language model likes less.
static void write_lexicon(const lin_path_phone *phones, int n)
{
    FILE *d = fopen(dict, "w"), *a = fopen(arpa, "w");
    const int words = n / 2;
    ck_assert(d && a);
    fprintf(a, "\\data\\\nngram 1=%d\nngram 2=%d\n\n\\1-grams:\n-99 <s> -0.3\n-1 </s>\n", 2 * words + 2, words - 1);
    for (int i = 0; i < words; i++) {
        for (int k = 0; k < 2; k++) {
            fprintf(d, "%c%c%c", "wz"[k], 'a' + i % 26, 'a' + i / 26);
            put_phones(d, phones + 2 * i, 2);
            fprintf(d, "\n");
            fprintf(a, "%.1f %c%c%c -0.3\n", k ? -12 : -1.5, "wz"[k], 'a' + i % 26, 'a' + i / 26);
        }
    }
    fprintf(a, "\n\\2-grams:\n");
    for (int i = 0; i + 1 < words; i++) {
        fprintf(a, "-0.4 w%c%c w%c%c\n", 'a' + i % 26, 'a' + i / 26, 'a' + (i + 1) % 26, 'a' + (i + 1) / 26);
    }
    fprintf(a, "\n\\end\\\n");
    fclose(d);
    fclose(a);
    FILE *p = fopen(phones_arpa, "w");
    ck_assert_ptr_nonnull(p);
    fprintf(p, "\\data\\\nngram 1=%d\n\n\\1-grams:\n-99 <s>\n-1 </s>\n", V + 1);
    for (int v = 1; v < V; v++) fprintf(p, "%.2f %s\n", -1 - 0.02 * v, lin_phones_name(recognizer.phones, v));
    fprintf(p, "\n\\end\\\n");
    fclose(p);
    // A word that begins as what is said does, and goes on as nothing does.
    d = fopen(never_dict, "w");
    ck_assert_ptr_nonnull(d);
    fprintf(d, "never");
    put_phones(d, phones, 2);
    for (int i = 0; i < 30; i++) fprintf(d, " %s", lin_phones_name(recognizer.phones, 1 + i % (V - 1)));
    fprintf(d, "\n");
    fclose(d);
    static const char text[] = "\\data\\\nngram 1=3\n\n\\1-grams:\n-99 <s>\n-1 </s>\n-1 never\n\n\\end\\\n";
    test_write_file(never_arpa, text, strlen(text));
}

static void begin(void)
{
    lin_greedy greedy;
    lin_path said = {0};
    setup();
    V = recognizer.V;
    const int rows = n_features / recognizer.model->config.stack + 2;
    logp = lin_alloc((size_t)(rows * V), sizeof *logp);
    lin_streams *stream = one_stream(recognizer.encoder, 1, 1);
    n_rows = one_stream_feed(stream, recognizer.fbank.mel_bins, V, features, n_features, 1, logp);
    lin_streams_destroy(stream);
    lin_greedy_reset(&greedy, V, 0, 0);
    OK(lin_greedy_push(&greedy, logp, n_rows, &said, &err));
    OK(lin_greedy_finish(&greedy, &said, &err));
    snprintf(dict, sizeof dict, "%s", test_path("dict"));
    snprintf(arpa, sizeof arpa, "%s", test_path("arpa"));
    snprintf(phones_arpa, sizeof phones_arpa, "%s", test_path("phones.arpa"));
    snprintf(list, sizeof list, "%s", test_path("list"));
    snprintf(never_dict, sizeof never_dict, "%s", test_path("never.dict"));
    snprintf(never_arpa, sizeof never_arpa, "%s", test_path("never.arpa"));
    write_lexicon(said.phones, said.n_phones);
    snprintf(network, sizeof network, "%s", test_path("network"));
    write_word_network(network, lin_pieces_characters, LIN_PIECES_FIRST);
    lin_path_free(&said);
}

static void end(void)
{
    lin_free(logp);
    teardown();
}

/* ---- searches -------------------------------------------------------------------------------------------------------------- */

static lin_decoding search;

static void close_search(void) { lin_decoding_close(&search); }

// In place of the one that is open. What is 0 is not given, and has its default. The decoding reads its phrases again: the values
// stay until the next one.
static void open_search(lin_decoding_values given)
{
    static lin_decoding_values v;
    lin_decoding_close(&search);
    v = lin_decoding_default();
    v.words = given.words;
    v.no_unknown = given.no_unknown;
    v.beam = given.beam;
    v.lexicon = given.lexicon;
    v.lm = given.lm;
    v.context = given.context;
    v.rescore = given.rescore;
    if (given.n_best) v.n_best = given.n_best;
    if (given.beam_score > 0) v.beam_score = given.beam_score;
    if (given.lm_weight > 0) v.lm_weight = given.lm_weight;
    if (given.bonus > 0) v.bonus = given.bonus;
    v.rescore_n = 10;
    v.rescore_weight = 0.9;
    OK(lin_decoding_open(&search, &v, recognizer.phones, recognizer.row_seconds, 0, NULL, &err));
}

// A narrow beam: some words are settled while others are said.
#define WORDS .words = 1, .lexicon = dict, .lm = arpa, .lm_weight = 0.2, .bonus = 2, .beam = 40, .beam_score = 4
#define BEAM .beam = 8, .lm = phones_arpa
// Greedy; the last two rescore the words of each utterance.
static const lin_decoding_values lines[] = {{0}, {BEAM}, {WORDS}, {BEAM, .n_best = 4}, {WORDS, .n_best = 3},
                                            {WORDS, .rescore = network}, {WORDS, .n_best = 3, .rescore = network}};
enum { LINES = sizeof lines / sizeof *lines };

/* ---- tests ----------------------------------------------------------------------------------------------------------------- */

static heard a, b;

START_TEST(any_split_gives_the_same)
{
    lin_session_options o = options_of_sound();
    open_search(lines[_i]);
    o.decoding = &search;
    const int splits = TEST_ASAN ? 1 : 4, from = TEST_ASAN ? 1 : 0;
    for (o.ends.resets = from; o.ends.resets < 2; o.ends.resets++) {
        listen_to(&o, n_features, 1, &a);
        ck_assert_int_ge(a.ends, 3);
        ck_assert_int_ge(a.n_phones, 12);
        const int most[] = {7, 1, 40, 300};
        for (int i = 0; i < splits; i++) {
            listen_to(&o, most[i], 11 + (uint64_t)i, &b);
            same(&a, &b);
            if (i == 0 && _i == 2) ck_assert(b.n_words > 4 && b.settled_early > 0 && b.guesses > 0 && b.incomplete > 0);
        }
    }
}
END_TEST

// Of what one network makes of all the sound, each utterance is what a new search finds in its rows;
// in all of them, if none ends.
START_TEST(each_utterance_is_a_search_of_its_own)
{
    lin_session_options o = options_of_sound();
    lin_row_decoder d = {0};
    lin_result want = {0};
    open_search(lines[_i]);
    o.decoding = &search;
    o.ends.resets = 0;
    OK(lin_row_decoder_create(&d, &search, &err));
    const double longest[] = {0, 0.6, 0.09}; // 20 rows, 3 rows
    for (int k = 0; k < 3; k++) {
        if (TEST_ASAN && k == 1) continue;
        o.ends.rules = (lin_endpoint_options){.longest_s = longest[k], .blank = 0.8};
        listen_to(&o, 30, 3, &a);
        const int step = k ? (int)lround(longest[k] / recognizer.row_seconds) : n_rows;
        int utterance = 0;
        for (int from = 0; from < n_rows; from += step) {
            const int n = from + step < n_rows ? step : n_rows - from;
            lin_row_decoder_reset(&d, from);
            lin_result_clear(&want);
            OK(lin_row_decoder_push(&d, logp + (size_t)(from * V), n, &err));
            OK(lin_row_decoder_finish(&d, &want, &err));
            while (utterance < a.ends && a.ended_at[utterance] < (from + n - 0.5) * recognizer.row_seconds) utterance++;
            const int told = utterance < a.ends && a.ended_at[utterance] < (from + n + 0.5) * recognizer.row_seconds;
            const int phones_at = utterance ? a.phones_at[utterance - 1] : 0,
                      words_at = utterance ? a.words_at[utterance - 1] : 0;
            ck_assert_int_eq(told ? a.phones_at[utterance] - phones_at : 0, want.n_phones);
            ck_assert_int_eq(told ? a.words_at[utterance] - words_at : 0, want.n_words);
            if (told) ck_assert(a.alternatives[utterance] == hash_of(&want));
            if (lines[_i].n_best && k == 0) ck_assert_int_gt(want.n_alternatives, 1);
            if (!lines[_i].n_best) ck_assert_int_eq(want.n_alternatives, 0);
            for (int i = 0; i < want.n_phones; i++) same_phone(&a.phones[phones_at + i], &want.phones[i]);
            for (int i = 0; i < want.n_words; i++) same_word(&a.words[words_at + i], &(word[]){word_of(&want, i)}[0]);
        }
    }
    lin_row_decoder_free(&d);
    lin_result_free(&want);
}
END_TEST

// The winner of rescoring is one of the search's alternatives, with its times and confidences.
START_TEST(rescoring_takes_an_alternative)
{
    lin_result first = {0}, second = {0};
    int others = 0;
    for (int from = 0; from + 20 <= n_rows; from += 20) {
        for (int pass = 0; pass < 2; pass++) {
            lin_row_decoder d = {0};
            open_search((lin_decoding_values){WORDS, .n_best = pass ? 1 : 10, .rescore = pass ? network : NULL});
            OK(lin_row_decoder_create(&d, &search, &err));
            lin_result_clear(pass ? &second : &first);
            OK(lin_row_decoder_push(&d, logp + (size_t)(from * V), 20, &err));
            OK(lin_row_decoder_finish(&d, pass ? &second : &first, &err));
            lin_row_decoder_free(&d);
        }
        const lin_result *same_words = NULL;
        for (int i = 0; i < first.n_alternatives && !same_words; i++) {
            const lin_result *it = &first.alternatives[i];
            int equal = it->n_words == second.n_words && it->n_phones == second.n_phones;
            for (int w = 0; equal && w < it->n_words; w++)
                equal = !strcmp(lin_result_word_text(it, w), lin_result_word_text(&second, w));
            for (int p = 0; equal && p < it->n_phones; p++) equal = it->phones[p].label == second.phones[p].label;
            if (equal) same_words = it;
            if (equal) others += i > 0;
        }
        ck_assert_ptr_nonnull(same_words);
        ck_assert(second.n_alternatives == 0 && second.acoustic == same_words->acoustic);
        for (int i = 0; i < second.n_phones; i++) same_phone(&second.phones[i], &same_words->phones[i]);
        for (int i = 0; i < second.n_words; i++)
            same_word(&(word[]){word_of(&second, i)}[0], &(word[]){word_of(same_words, i)}[0]);
        const double change = second.score - same_words->score;
        ck_assert_double_eq_tol(change, 0.2 * (second.language - same_words->language), 1e-9);
    }
    ck_assert_int_gt(others, 0);
    lin_result_free(&first);
    lin_result_free(&second);
}
END_TEST

// Where words have alternatives they are settled late, but an utterance may be longer than that: here, of two words.
START_TEST(alternatives_of_what_was_settled)
{
    lin_session_options o = options_of_sound();
    lin_words_options how = lin_words_options_default();
    lin_dictionary *dictionary;
    lin_ngram *lm;
    lin_tree *tree;
    lin_words *found;
    how.longest = 2;
    how.n_best = 3;
    how.lm_weight = 0.2;
    how.bonus = 2;
    OK(lin_dictionary_load(dict, recognizer.phones, &dictionary, &err));
    OK(lin_ngram_open(arpa, &lm, &err));
    OK(lin_tree_create(dictionary, recognizer.phones, lm, 0, &tree, &err));
    OK(lin_words_create(tree, lm, &how, &found, &err));
    const lin_decoding by_hand = {.search = lin_search_words(found, V, 1), .row_seconds = recognizer.row_seconds, .n_best = 3};
    o.decoding = &by_hand;
    o.ends.rules = (lin_endpoint_options){.blank = 0.8};
    listen_to(&o, 9, 4, &a);
    ck_assert_int_gt(a.settled_early, 3);
    listen_to(&o, 50, 4, &b);
    same(&a, &b);
    lin_words_destroy(found);
    lin_tree_destroy(tree);
    lin_ngram_destroy(lm);
    lin_dictionary_destroy(dictionary);
}
END_TEST

// A network that hears one phone without an end. Every end cuts it in two, and each part is a phone: a beam begins anew. Greedy
// decoding that is carried on tells it once.
START_TEST(a_phone_that_an_end_cuts)
{
    lin_session_options o = options_of_sound();
    const lin_recognizer sound = recognizer;
    lin_recognizer deaf = recognizer;
    const lin_params *params = &recognizer.model->params;
    float *bias = recognizer.model->values + params->table[params->output[1]].offset + 5;
    *bias += 1000;
    OK(lin_encoder_create(recognizer.model, lin_ops_cpu(), &deaf.encoder, &err));
    open_search((lin_decoding_values){.beam = _i ? 4 : 0});
    o.decoding = &search;
    o.ends.rules.longest_s = 0.06; // two rows
    for (o.ends.resets = 0; o.ends.resets < 2; o.ends.resets++) {
        recognizer = deaf;
        listen_to(&o, 50, 8, &a);
        recognizer = sound;
        ck_assert_int_eq(a.n_phones, _i || o.ends.resets ? (n_rows + 1) / 2 : 1);
        ck_assert_int_eq(a.ends, a.n_phones);
        for (int i = 0; i < a.n_phones; i++) {
            ck_assert_int_eq(a.phones[i].label, 5);
            ck_assert_double_eq_tol(a.phones[i].start_s, 0.06 * i, 1e-9);
        }
    }
    lin_encoder_destroy(deaf.encoder);
    *bias -= 1000;
}
END_TEST

// Nothing but one word that nobody says: its beginnings are guessed and taken back, because the beam is so wide that it keeps the
// hypothesis of no word. No utterance has a final view, however the sound is cut.
START_TEST(guesses_that_are_dropped)
{
    lin_session_options o = options_of_sound();
    open_search((lin_decoding_values){.words = 1, .lexicon = never_dict, .lm = never_arpa, .no_unknown = 1,
                                               .lm_weight = 0.2, .beam_score = 100});
    o.decoding = &search;
    listen_to(&o, 9, 3, &a);
    listen_to(&o, n_features, 1, &b);
    ck_assert_int_eq(a.n_words, 0);
    ck_assert_int_gt(a.incomplete, 0);
    ck_assert_int_gt(a.withdrawn, 1);
    ck_assert_int_eq(a.ends, 0);
    ck_assert_int_eq(b.ends, 0);
}
END_TEST

START_TEST(nothing_is_allocated_on_the_way)
{
    lin_session_options o = options_of_sound();
    open_search(lines[_i]);
    o.decoding = &search;
    lin_session *session = create(&o, &a);
    for (int k = 0; k < 4; k++) feed_frames(session, 0, n_features, 4, 1); // by then as long an utterance as any has been there
    const unsigned long before = lin_memory_count();
    const int words = a.n_words;
    feed_frames(session, 0, n_features, 4, 1);
    ck_assert_uint_eq(lin_memory_count(), before);
    ck_assert(!lines[_i].words || a.n_words > words);
    session_destroy(session);
}
END_TEST

START_TEST(failures)
{
    lin_error why = {0};
    lin_session_options o = options_of_sound();
    lin_session *session;
    open_search((lin_decoding_values){WORDS});
    o.decoding = &search;
    FAIL_EVERY_ALLOCATION(session_create(&o, &(lin_utterances_sink){.context = &a, .show = hear}, &session,
                                             NULL),
                          session_destroy(session));
    // On the way: any allocation may fail, and the next call goes on or fails again, and nothing is lost to the heap.
    const unsigned long blocks = lin_memory_live();
    for (unsigned long k = 1; k < 40; k++) {
        session = create(&o, &a);
        lin_memory_fail_at(k);
        lin_status status = LIN_OK;
        for (int at = 0; at + 20 <= n_features / 2 && status == LIN_OK; at += 20)
            status = push_frames(session, at, 20, &why);
        lin_memory_fail_at(0);
        ck_assert(status == LIN_OK || status == LIN_NO_MEMORY);
        session_destroy(session);
        ck_assert_uint_eq(lin_memory_live(), blocks);
        if (status == LIN_OK) {
            ck_assert_uint_gt(k, 3);
            break;
        }
    }
}
END_TEST

/* ---- phrases that change --------------------------------------------------------------------------------------------------- */

// All homophones, with so much of a bonus; and a word outside the lexicon.
static void write_list(const char *bonus)
{
    FILE *f = fopen(list, "w"), *d = fopen(dict, "r");
    char line[256];
    ck_assert(f && d);
    fputs("xkcd\t0.5\n", f); // spelt: no letter-to-sound rules are needed
    while (fgets(line, sizeof line, d)) {
        if (*line == 'z') fprintf(f, "%.*s\t%s\n", (int)strcspn(line, " "), line, bonus);
    }
    fclose(f);
    fclose(d);
}

static int begins_with(const heard *h, int from, int to, char letter)
{
    int n = 0;
    for (int i = from; i < to; i++) n += h->words[i].text[0] == letter;
    return n;
}

// The list changes in the middle of the second sentence: what was settled stays, and the homophones win behind it.
START_TEST(phrases_change_on_the_way)
{
    lin_session_options o = options_of_sound();
    int n;
    write_list("-5");
    open_search((lin_decoding_values){WORDS, .context = list});
    o.decoding = &search;
    if (_i) o.ends.rules = (lin_endpoint_options){.blank = 0.8}; // one utterance
    listen_to(&o, 20, 5, &a);
    ck_assert_int_eq(begins_with(&a, 0, a.n_words, 'z'), 0);
    ck_assert_int_gt(begins_with(&a, 0, a.n_words, 'w'), 4);
    lin_session *session = create(&o, &b);
    const int half = n_features / 2;
    feed_frames(session, 0, half, 20, 5);
    const int settled = b.n_words + b.growing_words;
    const double at_s = half * 0.01;
    ck_assert_int_gt(settled, 2);
    write_list("20");
    OK(lin_decoding_reread(&search, &n, &err));
    ck_assert_int_gt(n, 4);
    feed_frames(session, half, n_features, 20, 6);
    OK(lin_session_finish(session, &err));
    session_destroy(session);
    for (int i = 0; i < settled; i++) same_word(&b.words[i], &a.words[i]);
    int later = 0;
    for (int i = settled; i < b.n_words; i++) {
        if (b.words[i].start_s < at_s || !b.words[i].text[0]) continue;
        later++;
        ck_assert_int_eq(b.words[i].text[0], 'z');
    }
    ck_assert_int_gt(later, 3);
}
END_TEST

// The same for a beam over phones: a phrase is its phones.
START_TEST(phrases_of_phones_change_on_the_way)
{
    lin_session_options o = options_of_sound();
    int n;
    write_list("0.1");
    open_search((lin_decoding_values){.beam = 8, .lexicon = dict, .context = list});
    o.decoding = &search;
    listen_to(&o, 20, 5, &a);
    lin_session *session = create(&o, &b);
    const int half = n_features / 2;
    feed_frames(session, 0, half, 20, 5);
    const int settled = b.n_phones + b.growing_phones;
    write_list("-90");
    const unsigned long blocks = lin_memory_live();
    OK(lin_decoding_reread(&search, &n, &err));
    ck_assert_uint_eq(lin_memory_live(), blocks);
    feed_frames(session, half, n_features, 20, 6);
    OK(lin_session_finish(session, &err));
    session_destroy(session);
    int differ = a.n_phones != b.n_phones;
    for (int i = 0; i < settled; i++) same_phone(&b.phones[i], &a.phones[i]);
    for (int i = settled; i < a.n_phones && i < b.n_phones; i++) differ |= a.phones[i].label != b.phones[i].label;
    ck_assert(differ);
}
END_TEST

// What cannot be read changes nothing; an empty list takes the phrases away, even while their words are being guessed.
START_TEST(phrases_that_cannot_be_read)
{
    lin_session_options o = options_of_sound();
    int n;
    write_list("20");
    open_search((lin_decoding_values){WORDS, .context = list});
    o.decoding = &search;
    const lin_search_context before = search.context;
    test_write_file(list, "zaa\tmuch\n", 9);
    FAILS(lin_decoding_reread(&search, &n, &err), LIN_FORMAT, "list:1: 'much' after the tab");
    ck_assert_ptr_eq(search.context.words, before.words);
    remove(list);
    FAILS(lin_decoding_reread(&search, &n, &err), LIN_IO, list);
    ck_assert_ptr_eq(search.context.words, before.words);
    listen_to(&o, 20, 5, &a);
    ck_assert_int_gt(begins_with(&a, 0, a.n_words, 'z'), 4);
    write_list("20");
    // In the end as many blocks, in the place of the old ones.
    FAIL_EVERY_ALLOCATION_OF(search.context.words != before.words, lin_decoding_reread(&search, &n, NULL), (void)0);
    // A list to and fro at every chunk, with and without words of its own.
    lin_session *session = create(&o, &a);
    for (int at = 0, k = 0; at + 9 <= n_features; at += 9, k++) {
        test_write_file(list, "# none\n", 7);
        if (k % 3 == 1) write_list("30");
        if (k % 3 == 2) test_write_file(list, "frbz plgh\t25\n", 13);
        OK(lin_decoding_reread(&search, &n, &err));
        ck_assert_int_eq(n == 0, k % 3 == 0);
        feed_frames(session, at, at + 9, 9, (uint64_t)at);
    }
    OK(lin_session_finish(session, &err));
    session_destroy(session);
    ck_assert_int_gt(a.n_words, 4);
    // Greedy decoding has no phrases.
    open_search((lin_decoding_values){0});
    OK(lin_decoding_reread(&search, &n, &err));
    ck_assert_int_eq(n, 0);
}
END_TEST

/* ---- many streams ---------------------------------------------------------------------------------------------------------- */

enum { STREAMS = TEST_ASAN ? 4 : 6, PUSHERS = 2 };

// Stream i begins somewhere else in the sound.
static int begin_of(int i) { return i * 5000; }

typedef struct pusher {
    lin_engine *engine;
    const lin_engine_id *ids;
    int number;
} pusher;

// Every second stream in pieces of random length, in turn.
static void *push_streams(void *context)
{
    const pusher *p = context;
    int at[STREAMS];
    lin_error why = {0};
    for (int i = 0; i < STREAMS; i++) at[i] = begin_of(i);
    for (int left = STREAMS / PUSHERS, k = 0; left > 0; k++) {
        for (int i = p->number; i < STREAMS; i += PUSHERS) {
            int n = (int)lin_random_below(77 + (uint64_t)i, (uint64_t)k, 3000);
            if (at[i] == SAMPLES) continue;
            if (n > SAMPLES - at[i]) n = SAMPLES - at[i];
            test_require(lin_engine_push(p->engine, p->ids[i], whole_sound + at[i], n, &why) == LIN_OK, "%s", why.message);
            at[i] += n;
            if (at[i] < SAMPLES) continue;
            test_require(lin_engine_finish(p->engine, p->ids[i], &why) == LIN_OK, "%s", why.message);
            left--;
        }
    }
    return NULL;
}

static heard three[3];
static atomic_int n_finished, n_settled; // words of the third of three

static void on_event(void *context, const lin_engine_event *event)
{
    (void)context;
    test_require(event->kind == LIN_ENGINE_VIEW || event->kind == LIN_ENGINE_FINISHED, "event %d", event->kind);
    if (event->view) hear(event->user, event->view, NULL);
    if (event->user == &three[2]) n_settled = three[2].n_words + three[2].growing_words;
    n_finished += event->kind == LIN_ENGINE_FINISHED;
}

static void run_engine(const lin_session_options *o, int chunk_frames, heard *results)
{
    lin_engine *engine;
    lin_engine_id ids[STREAMS];
    pthread_t threads[PUSHERS];
    pusher pushers[PUSHERS];
    lin_engine_options e = engine_options(o, STREAMS, on_event);
    e.threads = e.shards = 2;
    e.chunk_frames = chunk_frames;
    n_finished = 0;
    OK(lin_engine_create(&recognizer, &e, &engine, &err));
    for (int i = 0; i < STREAMS; i++) OK(lin_engine_open(engine, RATE, 1, &results[i], &ids[i], &err));
    for (int i = 0; i < PUSHERS; i++) {
        pushers[i] = (pusher){engine, ids, i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, push_streams, &pushers[i]), 0);
    }
    for (int i = 0; i < PUSHERS; i++) pthread_join(threads[i], NULL);
    wait_for(&n_finished, STREAMS);
    lin_engine_destroy(engine);
}

enum { LARGEST_CHUNK = TEST_ASAN ? 1 : 8, FIRST_KIND = TEST_ASAN ? 3 : 0 };

// An engine gives what one session for each stream gives: beams, words, phrases and alternatives.
START_TEST(many_streams_are_sessions)
{
    static const lin_decoding_values kinds[] = {{0}, {BEAM}, {BEAM, .n_best = 4, .context = list}, {WORDS, .context = list},
                                                {WORDS, .n_best = 3}, {WORDS, .context = list, .rescore = network}};
    static heard alone[STREAMS], together[STREAMS];
    lin_session_options o = options_of_sound();
    write_list("12");
    open_search(kinds[_i]);
    o.decoding = &search;
    o.ends.resets = _i != 1;
    for (int i = 0; i < STREAMS; i++) {
        listen_from(&o, begin_of(i), &alone[i]);
        ck_assert_int_ge(alone[i].ends, 2);
    }
    for (int chunk = 1; chunk <= LARGEST_CHUNK; chunk += 3) {
        memset(together, 0, sizeof together);
        run_engine(&o, chunk, together);
        for (int i = 0; i < STREAMS; i++) same(&together[i], &alone[i]);
    }
}
END_TEST

// Streams of one engine with phrases of their own: one without, one from its beginning on, one from the middle of its sound on.
START_TEST(phrases_of_one_stream)
{
    static const lin_decoding_values kinds[] = {{WORDS}, {WORDS, .n_best = 2}};
    lin_error why = {0};
    lin_session_options o = options_of_sound();
    linnet_phrase phrases[64];
    char texts[64][4];
    lin_phrases made, empty = {0};
    lin_engine *engine;
    lin_engine_id ids[3];
    int n = 0;
    open_search(kinds[_i]);
    o.decoding = &search;
    for (; n < 26; n++) {
        snprintf(texts[n], sizeof texts[n], "z%ca", 'a' + n);
        phrases[n] = (linnet_phrase){texts[n], 20};
    }
    while (n > 0 && lin_decoding_make_phrases(&search, phrases, n, &made, NULL) != LIN_OK) n--; // the lexicon is shorter
    ck_assert_int_gt(n, 3);
    lin_decoding own = search;
    own.context = (lin_search_context){.phones = made.phones, .words = made.words};
    lin_engine_options e = engine_options(&o, 3, on_event);
    e.ends.resets = 1;
    n_finished = n_settled = 0;
    memset(three, 0, sizeof three);
    OK(lin_engine_create(&recognizer, &e, &engine, &err));
    for (int i = 0; i < 3; i++) OK(lin_engine_open(engine, RATE, 1, &three[i], &ids[i], &err));
    OK(lin_engine_set_phrases(engine, ids[0], &empty, &err));
    OK(lin_engine_set_phrases(engine, ids[0], NULL, &err));
    OK(lin_engine_set_phrases(engine, ids[1], &made, &err));
    for (int i = 0; i < 3; i++) push_part(engine, ids[i], whole_sound, 0, SAMPLES / 2);
    wait_for(&n_settled, 3); // half of the sound has more
    const int settled = n_settled;
    const lin_status changed = lin_engine_set_phrases(engine, ids[2], &made, &why);
    ck_assert_int_eq(changed, _i ? LIN_UNSUPPORTED : LIN_OK);
    for (int i = 0; i < 3; i++) push_part(engine, ids[i], whole_sound, SAMPLES / 2, SAMPLES);
    for (int i = 0; i < 3; i++) OK(lin_engine_finish(engine, ids[i], &err));
    wait_for(&n_finished, 3);
    for (int i = 0; i < 2; i++) {
        o.decoding = i ? &own : &search;
        listen_from(&o, 0, &a);
        same(&three[i], &a);
        ck_assert_int_eq(begins_with(&a, 0, a.n_words, 'z') > 3, i);
    }
    if (!_i) {
        ck_assert_int_gt(settled, 2);
        for (int i = 0; i < settled; i++) same_word(&three[2].words[i], &three[0].words[i]);
        ck_assert_int_eq(begins_with(&three[2], 0, settled, 'z'), 0);
        ck_assert_int_gt(begins_with(&three[2], settled, three[2].n_words, 'z'), 2);
    }
    // The next stream at the same place has none of them.
    lin_engine_close(engine, ids[1]);
    memset(&three[1], 0, sizeof three[1]);
    OK(lin_engine_open(engine, RATE, 1, &three[1], &ids[1], &err));
    push_part(engine, ids[1], whole_sound, 0, SAMPLES);
    OK(lin_engine_finish(engine, ids[1], &err));
    wait_for(&n_finished, 4);
    ck_assert_int_eq(begins_with(&three[1], 0, three[1].n_words, 'z'), 0);
    lin_engine_close(engine, ids[1]);
    ck_assert_int_eq(lin_engine_set_phrases(engine, ids[1], &made, &why), LIN_INVALID);
    lin_engine_destroy(engine);
    lin_phrases_free(&made);
}
END_TEST

TEST_MAIN_ONCE(begin, end, close_search, "linnet/stream with beams and words", TESTS(any_split_gives_the_same, 0, LINES),
               TESTS(each_utterance_is_a_search_of_its_own, 1, LINES), TEST(rescoring_takes_an_alternative),
               TEST(alternatives_of_what_was_settled), TESTS(a_phone_that_an_end_cuts, 0, 2), TEST(guesses_that_are_dropped),
               TESTS(nothing_is_allocated_on_the_way, TEST_ASAN ? 4 : 0, LINES), TEST(failures),
               TESTS(phrases_change_on_the_way, 0, 2), TEST(phrases_of_phones_change_on_the_way),
               TEST(phrases_that_cannot_be_read), TESTS(many_streams_are_sessions, FIRST_KIND, 6),
               TESTS(phrases_of_one_stream, 0, 2))
