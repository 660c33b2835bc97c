/*
 * api_sound.h - what the tests of linnet.h share: the default model, a sound, and checks of statuses and results.
 */
#ifndef LIN_TESTS_LINNET_API_SOUND_H
#define LIN_TESTS_LINNET_API_SOUND_H

#include "linnet/linnet.h"
#include "tests/support.h"

#define MODEL "tests/golden/en/default.safetensors"
#define LEXICON "share/linnet/en/words.dict.gz"

enum { RATE = 16000, SECONDS = 5, N = SECONDS * RATE };

extern linnet_model *model;
extern float sound[N]; /* vowels and hisses for 1.6 s, then faint noise for 0.9 s, twice */
extern int16_t sound_16[N];
extern linnet_error err;

#define require_ok(call)                                                                                        \
    do {                                                                                                        \
        const linnet_status done_ = (call);                                                                     \
        ck_assert_msg(done_ == LINNET_OK, "%s: %s: %s", #call, linnet_status_name(done_), err.message);          \
    } while (0)

#define require_fails(wanted, call) require_says(wanted, "", call)
// The status, and a message of one line with this text.
#define require_says(wanted, text, call)                                                                        \
    do {                                                                                                        \
        const linnet_status done_ = (call);                                                                     \
        ck_assert_msg(done_ == (wanted), "%s: %s: %s", #call, linnet_status_name(done_), err.message);           \
        ck_assert_int_eq(err.status, (wanted));                                                                 \
        ck_assert_msg(err.message[0] && !strchr(err.message, '\n'), "the message is '%s'", err.message);         \
        ck_assert_msg(strstr(err.message, text) != NULL, "'%s' is not in '%s'", text, err.message);              \
    } while (0)

/* Options with their defaults. */
#define DEFAULTS(type, name) \
    type name;               \
    type##_init(&name, sizeof name)

/* A checked fixture: model and sound; at the end nothing may be left in memory. */
void api_setup(void);
void api_teardown(void);

linnet_sound in_memory(void);
linnet_decoder *make_decoder(int words, int beam, int n_best);

/* The same JSON. */
void same_results(const linnet_result *a, const linnet_result *b);

#endif
