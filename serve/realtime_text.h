/*
 * realtime_text.h - the events that clients of OpenAI's realtime protocol send, and base64 (RFC 4648, 4).
 *
 * Pipeline: a text message -> [this] -> serve/serve_stream.c. Nothing here needs a network; tests/fuzz/fuzz_serve.c runs it.
 * Threads: any.
 */
#ifndef LIN_SERVE_REALTIME_TEXT_H
#define LIN_SERVE_REALTIME_TEXT_H

#include "serve/serve_text.h"

enum { LIN_REALTIME_BYTES = 4 << 20 }; /* the largest event: a minute of sound as base64 */

/* session.update (also transcription_session.update): its format, language, languages, prompt, keywords, turn_detection and of
 * that prefix_padding_ms; all else is ignored. input_audio_buffer.append (LIN_MESSAGE_SOUND, decoded), .commit
 * (LIN_MESSAGE_RESET) and .clear (LIN_MESSAGE_CLEAR). LIN_FORMAT, LIN_INVALID, LIN_UNSUPPORTED for a format that is none of
 * audio/pcm, audio/pcmu and audio/pcma. */
lin_status lin_realtime_parse(const char *text, size_t n, lin_message *message, lin_error *err);

/* bytes [n / 4 * 3]; their number, or -1: it is no base64. Blanks and missing padding are mistakes. */
long lin_base64_decode(const char *text, size_t n, unsigned char *bytes);

#endif
