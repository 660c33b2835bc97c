// Speakers of live streams: each utterance gets them when it ends, however the sound is cut, in sessions, forks, saved streams
// and engines; saved streams that lack them; damaged ones.
#include <math.h>

#include "tests/model/networks.h"

#include "tests/linnet/finals.h" // whose names those before would hide

enum { SIZE = 16, MIDDLE = PART_SAMPLES + 2000 }; // MIDDLE: in the second utterance, before its first phone has settled

static lin_decoding decoding; // greedy, with a network of voices

static void begin(void)
{
    setup();
    const lin_decoding_values values = lin_decoding_default();
    OK(lin_decoding_open(&decoding, &values, recognizer.phones, recognizer.row_seconds, 0, NULL, &err));
    OK(lin_voice_open(save_voices(SIZE, D, 0.1F), &decoding.voice, &err));
    decoding.speakers = LIN_SPEAKERS_UNKNOWN;
}

static void end(void)
{
    lin_decoding_close(&decoding);
    teardown();
}

static lin_session_options options_with(const lin_decoding *how)
{
    lin_session_options o = options_of_sound();
    o.decoding = how;
    o.ends.rules.before_s = o.ends.rules.longest_s = 0;
    return o;
}

START_TEST(each_utterance_when_it_ends)
{
    heard whole = {0}, pieces = {0};
    const lin_session_options o = options_with(&decoding);
    listen_to(&o, SAMPLES, &whole);
    ck_assert_int_ge(whole.ends, 2);
    for (int i = 0; i < whole.ends; i++) {
        const lin_result *r = &whole.finals[i];
        ck_assert_int_ge(r->n_voices, 1);
        for (int k = 0; k < r->n_phones; k++) {
            ck_assert_int_ge(r->phones[k].speaker, 1);
            ck_assert_int_le(r->phones[k].speaker, r->n_voices);
        }
    }
    listen_to(&o, 999, &pieces);
    same(&pieces, &whole, 0);
    drop(&whole);
    drop(&pieces);
}
END_TEST

START_TEST(forked_and_saved)
{
    heard whole = {0}, half = {0}, copy = {0}, loaded = {0}, plain = {0};
    lin_session *fork;
    lin_state state = {0}, read = {0};
    const lin_session_options o = options_with(&decoding), plainly = options_with(NULL);
    listen_to(&o, SAMPLES, &whole);
    lin_session *session = create(&o, &half), *other = create(&o, &loaded), *without = create(&plainly, &plain);
    feed(session, 0, MIDDLE, 999);
    ck_assert_int_eq(half.ends, 1);
    OK(session_fork(session, &(lin_utterances_sink){.context = &copy, .show = hear}, &fork, &err));
    feed(fork, MIDDLE, SAMPLES, 999);
    same(&copy, &whole, 1);
    OK(lin_session_save(session, &state, &err));
    lin_state_seal(&state);
    OK(lin_state_parse(state.bytes, state.n, "state", &read, &err));
    ck_assert_uint_eq(read.sizes.speakers, (SIZE + 1) * sizeof(float));
    OK(lin_session_load(other, &read, &err));
    feed(other, MIDDLE, SAMPLES, 999);
    same(&loaded, &whole, 1);
    // A session that tells nobody apart goes on with it. Its own states have neither speakers nor frames of the utterance.
    OK(lin_session_load(without, &read, &err));
    OK(lin_session_save(without, &state, &err));
    ck_assert_uint_eq(state.sizes.speakers + state.sizes.frames, 0);
    feed(without, MIDDLE, SAMPLES, 999);
    drop(&loaded);
    OK(lin_session_load(other, &state, &err));
    feed(other, MIDDLE, SAMPLES, 999);
    ck_assert_int_eq(loaded.ends, plain.ends);
    ck_assert_int_eq(loaded.finals[0].phones[0].speaker, 0);
    ck_assert_int_eq(loaded.finals[1].phones[0].speaker, 1);
    heard *const all[] = {&whole, &half, &copy, &loaded, &plain};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) drop(all[i]);
    lin_session *const sessions[] = {session, fork, other, without};
    for (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++) session_destroy(sessions[i]);
    lin_state_free(&state);
    lin_state_free(&read);
}
END_TEST

START_TEST(damaged)
{
    heard h = {0};
    lin_error why = {0};
    lin_state state = {0};
    const lin_session_options o = options_with(&decoding);
    lin_session *session = create(&o, &h), *other = create(&o, &h);
    feed(session, 0, MIDDLE, 999);
    OK(lin_session_save(session, &state, &err));
    float *speakers = lin_state_speakers(&state, 0);
    const float good = speakers[_i];
    const float bad[] = {NAN, 0, -1, INFINITY};
    for (int i = 0; i < 4; i++) {
        speakers[_i] = bad[i];
        ck_assert_int_eq(lin_session_load(other, &state, &why), _i && isfinite(bad[i]) ? LIN_OK : LIN_FORMAT);
    }
    speakers[_i] = good;
    OK(lin_session_load(other, &state, &err));
    state.sizes.speakers -= sizeof(float);
    ck_assert_int_eq(lin_session_load(other, &state, &why), LIN_FORMAT);
    session_destroy(session);
    session_destroy(other);
    lin_state_free(&state);
    drop(&h);
}
END_TEST

START_TEST(streams_of_an_engine)
{
    heard want = {0}, got[STREAMS] = {0}, closed = {0};
    const lin_session_options o = options_with(&decoding);
    listen_to(&o, SAMPLES, &want);
    const lin_engine_options how = options_of_engine(&o);
    listen_together(&how, got, &closed);
    for (int i = 0; i < STREAMS; i++) same(&got[i], &want, 0), drop(&got[i]);
    drop(&want);
    drop(&closed);
}
END_TEST

TEST_MAIN_ONCE(begin, end, NULL, "speakers of live streams", TEST(each_utterance_when_it_ends), TEST(forked_and_saved),
               TESTS(damaged, 0, 2), TEST(streams_of_an_engine))
