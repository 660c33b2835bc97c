// serve_about.c - the log of linnet serve, /metrics, and the files of the page for browsers; see serve.h.

#include <string.h>

#include "app/common.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/textfile.h"
#include "linnet/find.h"
#include "serve/serve.h"

/* ---- the log --------------------------------------------------------------------------------------------------------------- */

// One line for each stream and upload, when it has ended or was refused. Addresses are logged without their queries, which may
// hold tokens.
static void put_text(lin_buffer *out, const lin_serve_entry *e)
{
    lin_buffer_format(out, "%s from %s at %s: %d %s, ", e->stream ? "stream" : "upload", e->address, e->path, e->status,
                      e->cause);
    lin_buffer_json_format(out, "%.1f s of sound in %.1f s", e->sound_s, e->seconds);
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
    lin_buffer_json_format(&line, ",'event':%s,'address':%s,'path':%s,'status':%d,'cause':%s,'sound_s':%.3f,'seconds':%.3f",
                           e->stream ? "stream" : "upload", e->address, e->path, e->status, e->cause, e->sound_s, e->seconds);
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

/* ---- /metrics, in Prometheus' text ----------------------------------------------------------------------------------------- */

static void put_metric(lin_buffer *out, const char *name, const char *type, const char *help, double value, int digits)
{
    lin_buffer_format(out, "# HELP linnet_%s %s\n# TYPE linnet_%s %s\nlinnet_%s ", name, help, name, type, name);
    lin_buffer_fixed(out, value, digits);
    lin_buffer_char(out, '\n');
}

static void put_causes(lin_buffer *out, const char *name, const char *help, const char *const *causes, const long long *values,
                       int n)
{
    lin_buffer_format(out, "# HELP linnet_%s %s\n# TYPE linnet_%s counter\n", name, help, name);
    for (int i = 0; i < n; i++) lin_buffer_format(out, "linnet_%s{cause=\"%s\"} %lld\n", name, causes[i], values[i]);
}

void lin_serve_put_metrics(lin_serve *s, lin_buffer *out)
{
    lin_engine_stats e;
    const lin_serve_counts *c = &s->counts;
    lin_engine_stats_get(s->engine, &e);
    put_metric(out, "streams", "gauge", "WebSocket streams that are open.", s->n_streams, 0);
    put_metric(out, "streams_max", "gauge", "Streams that may be open.", s->v->max_streams, 0);
    int held = 0;
    for (const lin_client *client = s->clients; client; client = client->behind) held += client->in.is_held_back;
    put_metric(out, "streams_held", "gauge", "Streams whose sound waits until their results are read.", held, 0);
    put_metric(out, "streams_total", "counter", "Streams that were opened.", (double)c->streams, 0);
    put_metric(out, "resumed_total", "counter", "Streams that went on from a saved state.", (double)c->resumed, 0);
    put_metric(out, "states_total", "counter", "States that were given to clients.", (double)c->states, 0);
    put_metric(out, "utterances_total", "counter", "Utterances of streams that have ended.", (double)c->utterances, 0);
    put_metric(out, "partials_dropped_total", "counter", "Provisional results that were left out for slow readers.",
               (double)c->partials_dropped, 0);
    put_metric(out, "finals_unread_total", "counter", "Final results that still waited for their reader when it was gone.",
               (double)c->finals_unread, 0);
    put_metric(out, "sound_seconds_total", "counter", "Seconds of sound taken in by streams.", c->sound_s, 3);
    put_metric(out, "uploads", "gauge", "Uploads that are received, wait or are worked on.", s->n_jobs, 0);
    put_metric(out, "files_total", "counter", "Files that were transcribed or aligned.", (double)c->files, 0);
    put_metric(out, "file_seconds_total", "counter", "Seconds of sound in them.", (double)c->file_ms * 1e-3, 3);
    put_metric(out, "stream_bytes", "gauge", "Memory of one stream in the engine.", (double)e.bytes_each, 0);
    lin_buffer_text(out, "# HELP linnet_lag_seconds From the sound of a row to its results, in the last seconds.\n"
                         "# TYPE linnet_lag_seconds gauge\n");
    const double lags[] = {e.lag_p50_ms, e.lag_p95_ms, e.lag_p99_ms};
    const char *const quantiles[] = {"0.5", "0.95", "0.99"};
    for (int i = 0; i < 3; i++) {
        lin_buffer_format(out, "linnet_lag_seconds{quantile=\"%s\"} ", quantiles[i]);
        lin_buffer_json_format(out, "%.4f\n", lags[i] * 1e-3);
    }
    put_metric(out, "lost_samples_total", "counter", "Samples that did not fit a queue.", (double)(s->lost + e.lost_samples), 0);
    static const char *const refused[] = {"streams", "address", "lag", "token", "origin", "host", "files", "size"};
    static const char *const errors[] = {"message", "slow", "idle", "failed"};
    put_causes(out, "refused_total", "Requests that were refused.", refused,
               (const long long[]){c->refused_full, c->refused_address, c->refused_lag, c->refused_token, c->refused_origin,
                                   c->refused_host, c->refused_files, c->too_large}, 8);
    put_causes(out, "errors_total", "Streams and requests that ended with an error.", errors,
               (const long long[]){c->bad, c->slow, c->idle, c->failed}, 4);
}

/* ---- the page -------------------------------------------------------------------------------------------------------------- */

static const char *const names[] = {"index.html", "teach.html", "teach.js", "reading.js", "style.css",  "page.js",
                                    "controls.js", "stream.js", "view.js", "sound.js", "formats.js", "capture.js"};

enum { FILES = sizeof names / sizeof *names };

static struct {
    char *text;
    size_t n;
} page[FILES];

lin_status lin_page_open(lin_error *err)
{
    char name[64], path[4096];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "web/%s", names[i]);
        if (lin_find_file(name, path, sizeof path)) LIN_TRY(lin_text_read(path, &page[i].text, &page[i].n, err));
    }
    return LIN_OK;
}

void lin_page_close(void)
{
    for (int i = 0; i < FILES; i++) {
        lin_free(page[i].text);
        page[i].text = NULL;
    }
}

const char *lin_page_find(const char *path, const char **type, size_t *n)
{
    for (int i = 0; i < FILES; i++) {
        if (*path != '/' || strcmp(path + 1, i ? names[i] : "") != 0) continue; // names[0] is at /
        *type = strstr(names[i], ".html") ? "text/html; charset=utf-8"
                : strstr(names[i], ".css") ? "text/css; charset=utf-8"
                                           : "text/javascript; charset=utf-8";
        *n = page[i].n;
        return page[i].text;
    }
    return NULL;
}
