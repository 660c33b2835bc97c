#include "decoder/writers.h"

#include <string.h>

static const char *phone_text(const lin_writer_options *o, int label)
{
    return o->ipa ? lin_phones_ipa(o->phones, label) : lin_phones_name(o->phones, label);
}

static lin_status check_labels(const lin_result *r, const lin_writer_options *o, lin_error *err)
{
    for (int i = 0; i < r->n_phones; i++) {
        if (r->phones[i].label < 1 || r->phones[i].label >= lin_phones_count(o->phones)) {
            return lin_fail(err, LIN_INVALID, "phone %d of %s has label %d, which the phone set does not have", i, r->id,
                            r->phones[i].label);
        }
    }
    return LIN_OK;
}

// Ids stand between blanks in these formats, and inside parentheses in TRN.
static lin_status check_id(const char *id, const char *format, const char *forbidden, lin_error *err)
{
    for (const char *c = id; *c; c++) {
        if ((unsigned char)*c <= 32 || *c == 127 || strchr(forbidden, *c)) {
            return lin_fail(err, LIN_INVALID, "the utterance id '%s' cannot stand in %s: byte %d is a blank, control character%s",
                            id, format, (int)(c - id) + 1, *forbidden ? " or parenthesis" : "");
        }
    }
    if (!*id) return lin_fail(err, LIN_INVALID, "an empty utterance id cannot stand in %s", format);
    return LIN_OK;
}

// What was appended since `before` goes if an allocation failed.
static lin_status done(lin_buffer *out, size_t before, lin_error *err)
{
    lin_status status = lin_buffer_status(out, err);
    if (status) {
        lin_buffer_clear(out);
        out->n = before;
        if (out->data) out->data[before] = '\0';
    }
    return status;
}

static void append_phones(const lin_result *r, const lin_writer_options *o, lin_buffer *out)
{
    for (int i = 0; i < r->n_phones; i++) {
        if (i) lin_buffer_char(out, ' ');
        lin_buffer_text(out, phone_text(o, r->phones[i].label));
    }
}

static lin_status write_text(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    size_t before = out->n;
    lin_status status = check_labels(r, o, err);
    if (!status && o->with_id) status = check_id(r->id, "text with ids", "", err);
    if (status) return status;
    if (o->with_id) {
        lin_buffer_text(out, r->id);
        if (r->n_phones) lin_buffer_char(out, ' ');
    }
    append_phones(r, o, out);
    lin_buffer_char(out, '\n');
    return done(out, before, err);
}

static lin_status write_json(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    size_t before = out->n;
    lin_status status = check_labels(r, o, err);
    if (status) return status;
    lin_buffer_text(out, "{\"id\":");
    lin_buffer_json(out, r->id, strlen(r->id));
    lin_buffer_text(out, ",\"channel\":");
    lin_buffer_integer(out, r->channel);
    if (*r->speaker) {
        lin_buffer_text(out, ",\"speaker\":");
        lin_buffer_json(out, r->speaker, strlen(r->speaker));
    }
    lin_buffer_text(out, ",\"seconds\":");
    lin_buffer_fixed(out, r->seconds, 3);
    lin_buffer_text(out, ",\"phones\":[");
    for (int i = 0; i < r->n_phones; i++) {
        const lin_result_phone *p = &r->phones[i];
        const char *name = phone_text(o, p->label);
        lin_buffer_text(out, i ? ",{\"phone\":" : "{\"phone\":");
        lin_buffer_json(out, name, strlen(name));
        lin_buffer_text(out, ",\"start\":");
        lin_buffer_fixed(out, p->start_s, 3);
        lin_buffer_text(out, ",\"end\":");
        lin_buffer_fixed(out, p->end_s, 3);
        lin_buffer_text(out, ",\"confidence\":");
        lin_buffer_fixed(out, p->confidence, 4);
        lin_buffer_char(out, '}');
    }
    lin_buffer_text(out, "]}\n");
    return done(out, before, err);
}

static lin_status write_ctm(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    size_t before = out->n;
    lin_status status = check_labels(r, o, err);
    if (!status) status = check_id(r->id, "CTM", "", err);
    if (status) return status;
    for (int i = 0; i < r->n_phones; i++) {
        const lin_result_phone *p = &r->phones[i];
        lin_buffer_text(out, r->id);
        lin_buffer_char(out, ' ');
        lin_buffer_integer(out, r->channel);
        lin_buffer_char(out, ' ');
        lin_buffer_fixed(out, p->start_s, 3);
        lin_buffer_char(out, ' ');
        lin_buffer_fixed(out, p->end_s - p->start_s, 3);
        lin_buffer_char(out, ' ');
        lin_buffer_text(out, phone_text(o, p->label));
        lin_buffer_char(out, ' ');
        lin_buffer_fixed(out, p->confidence, 4);
        lin_buffer_char(out, '\n');
    }
    if (!r->n_phones) {
        lin_buffer_text(out, ";; ");
        lin_buffer_text(out, r->id);
        lin_buffer_text(out, " has no phones\n");
    }
    return done(out, before, err);
}

static lin_status write_trn(const lin_result *r, const lin_writer_options *o, lin_buffer *out, lin_error *err)
{
    size_t before = out->n;
    lin_status status = check_labels(r, o, err);
    if (!status) status = check_id(r->id, "TRN", "()", err);
    if (status) return status;
    append_phones(r, o, out);
    lin_buffer_text(out, r->n_phones ? " (" : "(");
    lin_buffer_text(out, r->id);
    lin_buffer_text(out, ")\n");
    return done(out, before, err);
}

static const lin_writer writers[] = {
    {"text", "txt", "phones separated by blanks, one utterance per line", write_text},
    {"json", "jsonl", "JSON, one object per line", write_json},
    {"ctm", "ctm", "NIST CTM: one phone per line with its time and confidence", write_ctm},
    {"trn", "trn", "NIST TRN, which sclite scores", write_trn},
};
enum { N_WRITERS = sizeof writers / sizeof *writers };

const lin_writer *lin_writer_find(const char *name)
{
    for (int i = 0; i < N_WRITERS; i++) {
        if (!strcmp(writers[i].name, name)) return &writers[i];
    }
    return NULL;
}

const lin_writer *lin_writer_for_file(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (!dot || strchr(dot, '/')) return NULL;
    for (int i = 0; i < N_WRITERS; i++) {
        if (!strcmp(writers[i].extension, dot + 1)) return &writers[i];
    }
    return NULL;
}

const lin_writer *lin_writer_at(int index) { return index >= 0 && index < N_WRITERS ? &writers[index] : NULL; }
