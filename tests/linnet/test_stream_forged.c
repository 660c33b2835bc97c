// Saved states of streams, each bit of them flipped, which is found; and forged: every number of a saved session replaced, with a
// checksum that fits. Loading refuses it, or the session goes on without a step outside its memory, which the address sanitizer
// would see.
#include "base/hash.h"
#include "linnet/stream.h"
#include "tests/linnet/stream_sound.h"

enum { TRIALS = 40, CUT = 30000, MORE = 8000 };

static lin_status hear(void *context, const lin_session_view *view, lin_error *err)
{
    double *sum = context;
    (void)err;
    for (int i = 0; i < view->settled->n_phones; i++) *sum += view->settled->phones[i].label;
    for (int i = 0; i < view->provisional->n_words; i++) *sum += (double)strlen(lin_result_word_text(view->provisional, i));
    return LIN_OK;
}

static lin_session *create(const lin_decoding *decoding, double *sum)
{
    lin_session *session;
    lin_session_options o = lin_session_options_default();
    o.rate_hz = 22050; // another one than the model's: the resampler is saved too
    o.channels = 1;
    o.saves = 1;
    o.decoding = decoding;
    OK(session_create(&o, &(lin_utterances_sink){.context = sum, .show = hear}, &session, &err));
    return session;
}

static void forge(int dereverb, int words, int beam)
{
    lin_decoding_values values = lin_decoding_default();
    values.words = words;
    values.beam = beam;
    recognizer.fbank.dereverb = dereverb;
    int refused = 0;
    lin_decoding decoding;
    lin_error why = {0};
    lin_state good = {0};
    double sum = 0;
    OK(lin_decoding_open(&decoding, &values, recognizer.phones, recognizer.row_seconds, 0, NULL, &err));
    lin_session *session = create(&decoding, &sum);
    OK(lin_session_push(session, whole_sound, CUT, &err));
    OK(lin_session_save(session, &good, &err));
    session_destroy(session);
    lin_state_seal(&good);
    unsigned char *bytes = malloc(good.n);
    ck_assert_ptr_nonnull(bytes);
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        lin_state state = {0}, forged = good;
        memcpy(bytes, good.bytes, good.n);
        // Small numbers are at the beginning of each part, and all of the endpoint's, the greedy decoder's and the image's
        // header; most of the rest are samples, scores and the network's sums.
        const int32_t others[] = {0, 1, -1, 2, 1000, 1 << 20, INT32_MAX, INT32_MIN, 0x7fc00000, 0x7f800000};
        const uint32_t kind = lin_random_below(trial, 0, 12);
        size_t at = lin_random_below(trial, 1, (uint32_t)(good.n / 4)) * (size_t)4;
        for (uint32_t k = 0; k < 40; k++) { // a number that is small rather than a float, if one is found soon
            int32_t there;
            memcpy(&there, bytes + at, 4);
            if (trial % 8 == 3 || (there > -65536 && there < 65536 && there)) break;
            at = lin_random_below(trial, 2 + k, (uint32_t)(good.n / 4)) * (size_t)4;
        }
        const unsigned char *const small[] = {(unsigned char *)lin_state_lane_of(&good, 0), lin_state_image(&good, 0)};
        const size_t begins = trial % 4 < 2 ? (size_t)(small[trial % 4] - good.bytes) : 0;
        if (begins) at = begins + lin_random_below(trial, 50, trial % 4 ? 4 : sizeof(lin_state_lane) / 4) * (size_t)4;
        int32_t value;
        memcpy(&value, bytes + at, 4);
        value = kind < 10 ? others[kind] : kind == 10 ? value + 1 : value - 1;
        memcpy(bytes + at, &value, 4);
        forged.bytes = bytes;
        lin_state_seal(&forged);
        lin_status status = lin_state_parse(bytes, good.n, "forged", &state, &why);
        session = create(&decoding, &sum);
        if (status == LIN_OK) status = lin_session_load(session, &state, &why);
        refused += status != LIN_OK;
        if (status == LIN_OK) status = lin_session_push(session, whole_sound + CUT, MORE, &why);
        if (status == LIN_OK) status = lin_session_finish(session, &why);
        session_destroy(session);
        lin_state_free(&state);
    }
    test_require(refused > 0, "none of %d was refused", (int)TRIALS);
    free(bytes);
    lin_state_free(&good);
    lin_decoding_close(&decoding);
}

START_TEST(a_flipped_bit_of_a_state_is_found)
{
    const lin_state_about about = {.model = 5, .rate_hz = 16000, .channels = 2, .channel = -2, .lanes = 2, .samples = 16000,
                                   .frames = 98, .rows = 32, .row_seconds = 0.03};
    const lin_state_sizes sizes = {.front = 13, .decoder = sizeof(lin_greedy), .image = 30, .frames = 4};
    lin_state made = {0}, state = {0};
    lin_error why = {0};
    OK(lin_state_begin(&made, &about, &sizes, &err));
    memset(lin_state_front(&made), 'f', 13);
    lin_state_seal(&made);
    unsigned char *bytes = made.bytes;
    OK(lin_state_parse(bytes, made.n, "m", &state, &err));
    ck_assert(state.about.rate_hz == 16000 && state.about.samples == 16000 && state.about.rows == 32);
    ck_assert_mem_eq(lin_state_front(&state), lin_state_front(&made), 13);
    for (size_t bit = 0; bit < 8 * made.n; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        test_require(lin_state_parse(bytes, made.n, "m", &state, &why) == LIN_FORMAT, "bit %zu of byte %zu", bit % 8, bit / 8);
        test_require(strncmp(why.message, "m is ", 5) == 0, "%s", why.message);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    lin_state_free(&made);
    lin_state_free(&state);
}
END_TEST

START_TEST(greedy) { forge(0, 0, 0); }
END_TEST

START_TEST(beam) { forge(0, 0, 8); }
END_TEST

START_TEST(words) { forge(0, 1, 64); }
END_TEST

START_TEST(without_the_room) { forge(1, 0, 0); }
END_TEST

TEST_MAIN_ONCE(setup, teardown, NULL, "linnet/stream_forged", TEST(a_flipped_bit_of_a_state_is_found), TEST(greedy), TEST(beam),
               TEST(words), TEST(without_the_room))
