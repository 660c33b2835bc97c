// serve_log.c - one line for each stream and upload of linnet serve, when it has ended or was refused; see serve.h.
// Addresses that were asked for are without their queries, in which tokens may be.

#include "app/common.h"
#include "base/system.h"
#include "serve/serve.h"

static void put_text(lin_buffer *out, const lin_serve_entry *e)
{
    lin_buffer_format(out, "%s from %s at %s: %d %s, ", e->stream ? "stream" : "upload", e->address, e->path, e->status,
                      e->cause);
    lin_buffer_fixed(out, e->sound_s, 1);
    lin_buffer_text(out, " s of sound in ");
    lin_buffer_fixed(out, e->seconds, 1);
    lin_buffer_text(out, " s");
}

void lin_serve_log(lin_serve *s, const lin_serve_entry *e)
{
    lin_buffer line = {0};
    if (s->v->quiet) return;
    if (!s->v->log_json) {
        put_text(&line, e);
        if (lin_buffer_status(&line, NULL) == LIN_OK) lin_complain("%s", line.data);
        lin_buffer_free(&line);
        return;
    }
    lin_complaint_begin(&line);
    lin_buffer_member_text(&line, "event", e->stream ? "stream" : "upload");
    lin_buffer_member_text(&line, "address", e->address);
    lin_buffer_member_text(&line, "path", e->path);
    lin_buffer_member_integer(&line, "status", e->status);
    lin_buffer_member_text(&line, "cause", e->cause);
    lin_buffer_member_fixed(&line, "sound_s", e->sound_s, 3);
    lin_buffer_member_fixed(&line, "seconds", e->seconds, 3);
    lin_complaint_end(&line);
}

void lin_serve_log_end(lin_client *c, int status, const char *cause)
{
    if (c->is_logged) return;
    c->is_logged = 1;
    lin_serve_log(c->serve, &(lin_serve_entry){.stream = c->protocol != NULL, .address = c->address, .path = c->path,
                                               .status = status, .cause = cause, .sound_s = c->sound_s,
                                               .seconds = lin_now() - c->begun_at});
}
