// writers_manifest.c - results as lines of a manifest, as NVIDIA NeMo writes and scores them.

#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "decoder/writers_internal.h"

// The members that the line of the manifest has, without pred_text of an earlier result and without the brace that ends it.
static lin_status put_record(const char *record, lin_buffer *out, lin_error *err)
{
    const char *end = strrchr(record, '}');
    if (end && !strstr(record, "\"pred_text\"")) {
        lin_buffer_bytes(out, record, (size_t)(end - record));
        return LIN_OK;
    }
    cJSON *json;
    lin_status status = lin_json_parse(record, strlen(record), "the line of the manifest", 0, &json, err);
    if (status != LIN_OK) return status;
    while (cJSON_GetObjectItemCaseSensitive(json, "pred_text")) cJSON_DeleteItemFromObjectCaseSensitive(json, "pred_text");
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    if (!text) return lin_no_memory(err, "a manifest", strlen(record));
    lin_buffer_bytes(out, text, strlen(text) - 1);
    cJSON_free(text);
    return LIN_OK;
}

static void put_members(const lin_result *r, const lin_writer_source *s, lin_buffer *out)
{
    const double seconds = s->duration_s > 0 ? s->duration_s : r->seconds - s->start_s;
    lin_buffer_char(out, '{');
    lin_buffer_member_text(out, "id", r->id);
    if (s->path) lin_buffer_member_text(out, "audio_filepath", s->path);
    if (s->start_s > 0) lin_buffer_member_fixed(out, "offset", s->start_s, 3);
    lin_buffer_member_fixed(out, "duration", seconds, 3);
    if (s->text) lin_buffer_member_text(out, "text", s->text);
    if (*r->speaker) lin_buffer_member_text(out, "speaker", r->speaker);
}

lin_status lin_write_nemo(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    const lin_writer_source none = {0}, *source = o->source ? o->source : &none;
    const size_t before = out->n;
    lin_buffer text = {0};
    lin_tokens t;
    lin_status status = lin_tokens_of(&t, r, o, err);
    if (status == LIN_OK && source->record) status = put_record(source->record, out, err);
    if (status != LIN_OK) {
        lin_take_back(out, before);
        return status;
    }
    if (!source->record) put_members(r, source, out);
    for (int i = 0; i < t.n; i++) {
        if (i) lin_buffer_char(&text, ' ');
        lin_token_spell(&t, i, &text);
    }
    lin_buffer_key(out, "pred_text");
    lin_buffer_json(out, text.data ? text.data : "", text.n);
    lin_buffer_text(out, "}\n");
    lin_scratch_free(&text, out);
    return lin_write_end(o, out, before, err);
}
