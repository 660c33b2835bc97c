/*
 * outbox_internal.h - the outbox of a WebSocket, between serve/serve_outbox.c, which keeps it, and the protocols
 * (serve/protocol_*.c), which fill it.
 *
 * The functions of a protocol are called under the lock of the outbox. They write what they have to say into `out`, and put it.
 */
#ifndef LIN_SERVE_OUTBOX_INTERNAL_H
#define LIN_SERVE_OUTBOX_INTERNAL_H

#include "serve/serve.h"
#include "serve/settling.h"

#define LIN_QUEUED_KEPT (1 << 18) // bytes of final results that wait for a reader; beyond them no sound is taken
#define LIN_QUEUED_PARTIALS 65536 // beyond them it gets no provisional results
#define LIN_MOST_SAID                                                                                                            \
    (16                                                                                                                          \
     << 20) // where messages are answered: bytes of utterances that wait for the end of the message which they are an answer to

/* What becomes of a message whose reader is slow: provisional results and states are left out, all others wait. */
typedef enum lin_note_kind { LIN_NOTE_PARTIAL, LIN_NOTE_STATE, LIN_NOTE_OTHER, LIN_NOTE_FINAL } lin_note_kind;

/* A message that waits to be sent. */
typedef struct lin_note {
    struct lin_note *next;
    size_t n;
    lin_note_kind kind;
    double put_at;
    char data[];
} lin_note;

/* An utterance that has ended and not been sent, for a protocol that answers. */
typedef struct lin_said {
    struct lin_said *next;
    char *text, *items; /* released with the structure; items: alternatives, or a list of words */
} lin_said;

struct lin_outbox {
    lin_client *client;   // of which only what never changes is read: protocol, config, state_key, serve
    lin_note *sending;    // given to the network; the server's thread
    pthread_mutex_t lock; // of all below
    lin_note *first, **last;
    size_t n_queued; // bytes of them
    size_t n_kept;   // of those that are neither provisional nor states
    lin_said *said, **said_last;
    size_t n_said; // bytes of them
    int owed;      // messages that are not answered
    const char *lost; // why a final result could not be kept; NULL: all are
    lin_buffer partial, out, settled, open, readable;
    lin_result whole; // room for what is settled and what is provisional, together
    int utterance, sent_phones, sent_words; // of a growing utterance, what has been sent
    int growing, ended, n_final;
    lin_settling settling; // realtime: the text of an item
    size_t begun_at;       // realtime: where that of the utterance begins in it
    unsigned long long session; // realtime: its number; the server's thread
    int n_items, any, discards; // realtime: items that were told; one was since the last commit; what is shown is forgotten
    double before_s, item_end_s; // realtime: seconds of sound before the last commit; behind it, before the next item
    int closed;    // it was told why it ends: nothing comes behind that
    char *failure; // why the stream ended
    double seconds;
    double sound_s, sound_at; // seconds of sound taken in, and when, for latencies
};

/* Puts the buffer [its text] as a message and empties it. A message that must not be left out and does not fit the memory ends
 * the stream. */
void lin_outbox_add(lin_outbox *outbox, lin_buffer *out, lin_note_kind kind);
/* What waits of a protocol's own. */
void lin_said_free(lin_said *said);

#endif
