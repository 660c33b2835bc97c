/* session_internal.h - the inside of a session: for engine.c and engine_shard.c, whose streams are sessions with a network
 * elsewhere. */
#ifndef LIN_LINNET_SESSION_INTERNAL_H
#define LIN_LINNET_SESSION_INTERNAL_H

#include "linnet/lane.h"
#include "linnet/session.h"

struct lin_session {
    const lin_recognizer *r;
    lin_session_options options;
    lin_worker *worker; // NULL: the network is elsewhere
    lin_second_pass *second; // of its own; NULL: none
    lin_extractor *features;
    int piece, enough; // samples that the front end takes at a time; units that wait for the network, beyond which it takes none
    lin_lane *lane;
    lin_utterances utterances;
    int64_t samples; // of every channel, taken in
    int64_t given;   // units (linnet/lane.h) that the front end has given
    int finished;
};

/* Another front end, for sound at this rate. On failure there is none, and nothing can be heard. */
lin_status lin_session_tune(lin_session *session, int rate_hz, int saves, lin_error *err);

/* Of sound [n, channels] *taken samples become units of the lane, which the network has not been given: no more than are
 * enough. */
lin_status lin_session_hear(lin_session *session, const float *samples, int n, int *taken, lin_error *err);

/* The sound has ended: the rest of the front end. Nothing happens, to be tried again later, while the lane has no room for it. */
lin_status lin_session_hear_end(lin_session *session, lin_error *err);

#endif
