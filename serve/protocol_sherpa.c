// protocol_sherpa.c - the protocol of sherpa-onnx's online WebSocket server; see serve/protocols.h.
//
// A client sends samples of 32-bit floats, then the text Done (any other means nothing); it gets a JSON object whenever an
// utterance has changed, and in the end the text Done!. A token is a word with the blank before it, or a phoneme; times count
// from start_time on.

#include <string.h>

#include "serve/outbox_internal.h"
#include "serve/protocols.h"

static lin_status parse(const char *text, size_t n, lin_message *m, lin_error *err)
{
    (void)err;
    m->kind = n == 4 && memcmp(text, "Done", 4) == 0 ? LIN_MESSAGE_EOF : LIN_MESSAGE_CONFIG; // which says nothing
    return LIN_OK;
}

// One of the lists, of the items of both results; a last word that goes on is left out.
static void put_list(lin_buffer *out, const char *key, const lin_live_words *words, const lin_session_view *view, int times)
{
    const lin_result *const parts[] = {view->settled, view->provisional};
    int any = 0;
    lin_buffer text = {0};
    lin_buffer_key(out, key);
    lin_buffer_char(out, '[');
    for (int i = 0; i < 2; i++) {
        const lin_result *r = parts[i];
        const int n = lin_result_items(r) - (i == 1 && view->incomplete && r->has_words && r->n_words > 0);
        for (int k = 0; k < n; k++, any = 1) {
            if (any) lin_buffer_char(out, ',');
            if (times) {
                lin_buffer_fixed(out, lin_result_item_start(r, k) - view->start_s, 3);
                continue;
            }
            lin_buffer_clear(&text);
            if (any) lin_buffer_char(&text, ' ');
            lin_result_item_text(&text, words, r, k);
            lin_buffer_json(out, text.data ? text.data : "", text.n);
        }
    }
    lin_buffer_char(out, ']');
    if (text.failed) out->failed = text.failed;
    lin_buffer_free(&text);
}

// segment: counted from 0. The text is that of the tokens.
static void put_result(lin_buffer *out, const lin_live_words *words, const lin_session_view *view, const char *text, int segment)
{
    const int is_final = view->end != LINNET_GROWS;
    lin_buffer_char(out, '{');
    lin_buffer_member_text(out, "text", text);
    put_list(out, "tokens", words, view, 0);
    put_list(out, "timestamps", words, view, 1);
    lin_buffer_text(out, ",\"ys_probs\":[],\"lm_probs\":[],\"context_scores\":[],\"words\":[]");
    lin_buffer_member_integer(out, "segment", segment);
    lin_buffer_member_fixed(out, "start_time", view->start_s, 3);
    lin_buffer_text(out, is_final ? ",\"is_final\":true" : ",\"is_final\":false");
    lin_buffer_text(out, view->end == LINNET_FINISHED ? ",\"is_eof\":true}" : ",\"is_eof\":false}");
}

static int show(lin_outbox *o, const lin_session_view *view)
{
    const lin_live_words *words = &o->client->serve->words;
    const int is_final = view->end != LINNET_GROWS;
    if (!is_final && o->n_queued > LIN_QUEUED_PARTIALS) return 0;
    lin_result open = *view->provisional;
    if (view->incomplete && open.n_words) open.n_words--;
    lin_buffer_clear(&o->settled);
    lin_buffer_clear(&o->open);
    lin_buffer_clear(&o->out);
    if (lin_live_put_text(&o->settled, words, view->settled, 0, NULL) != LIN_OK ||
        lin_live_put_text(&o->open, words, &open, 0, NULL) != LIN_OK) {
        if (is_final) o->lost = "out of memory";
        return 1;
    }
    if (o->settled.n && o->open.n) lin_buffer_char(&o->settled, ' ');
    lin_buffer_bytes(&o->settled, o->open.data ? o->open.data : "", o->open.n);
    put_result(&o->out, words, view, o->settled.data ? o->settled.data : "", view->utterance - 1);
    lin_outbox_add(o, &o->out, is_final ? LIN_NOTE_FINAL : LIN_NOTE_PARTIAL);
    return 1;
}

// There is no message for failures: its clients show any text.
static void put_error(lin_buffer *out, const char *message)
{
    lin_buffer_text(out, "{\"text\":\"\"");
    lin_buffer_member_text(out, "error", message);
    lin_buffer_char(out, '}');
}

static void put_end(lin_outbox *o, int drained)
{
    (void)drained;
    lin_buffer_clear(&o->out);
    if (o->failure) {
        put_error(&o->out, o->failure);
        lin_outbox_add(o, &o->out, LIN_NOTE_OTHER);
    }
    lin_buffer_text(&o->out, "Done!");
    lin_outbox_add(o, &o->out, LIN_NOTE_OTHER);
}

const lin_protocol lin_protocol_sherpa = {.name = "sherpa-onnx",
                                          .path = "/sherpa-onnx",
                                          .about = "that of sherpa-onnx's online server: f32le, Done",
                                          .format = LIN_SAMPLES_F32,
                                          .configs_later = 1,
                                          .parse = parse,
                                          .show = show,
                                          .put_end = put_end,
                                          .put_error = put_error};
