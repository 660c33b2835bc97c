// settling.c - text that only grows; see settling.h.

#include "serve/settling.h"

void lin_settling_begin(lin_settling *s, const lin_live_words *words)
{
    lin_buffer_clear(&s->text);
    lin_settling_back(s, words, 0);
}

void lin_settling_back(lin_settling *s, const lin_live_words *words, size_t n)
{
    if (n < s->text.n) s->text.data[s->text.n = n] = 0;
    lin_readable_free(&s->readable);
    if (words->readable) lin_readable_begin(&s->readable, words->readable);
}

lin_status lin_settling_add(lin_settling *s, const lin_live_words *words, const lin_result *more, int is_end, lin_error *err)
{
    const lin_writer_options o = {.phones = words->phones, .ipa = words->ipa, .speller = words->speller, .least = words->least};
    lin_tokens t;
    lin_status status = lin_tokens_of(&t, more, &o, err);
    const int readable = words->readable && t.words;
    for (int i = 0; status == LIN_OK && i < t.n; i++) {
        if (readable) {
            status = lin_token_push_readable(&t, i, &s->readable, err);
        } else {
            if (s->text.n) lin_buffer_char(&s->text, ' ');
            lin_token_spell(&t, i, &s->text);
        }
    }
    if (status == LIN_OK && readable && is_end) status = lin_readable_finish(&s->readable, err);
    for (int i = 0; readable && i < s->readable.n; i++) {
        if (s->text.n) lin_buffer_char(&s->text, ' ');
        lin_buffer_text(&s->text, lin_readable_token_text(&s->readable, i));
    }
    if (readable) lin_readable_clear(&s->readable);
    return status == LIN_OK ? lin_buffer_status(&s->text, err) : status;
}

void lin_settling_free(lin_settling *s)
{
    lin_readable_free(&s->readable);
    lin_buffer_free(&s->text);
}
