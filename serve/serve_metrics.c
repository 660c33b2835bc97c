// serve_metrics.c - what linnet serve says at /metrics, in Prometheus' text; see serve.h.

#include "serve/serve.h"

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
    lin_engine_stats_get(lin_voices_engine(s->voices), &e);
    pthread_mutex_lock(&s->lock);
    const lin_serve_counts c = s->counts;
    pthread_mutex_unlock(&s->lock);
    put_metric(out, "streams", "gauge", "WebSocket streams that are open.", s->n_streams, 0);
    put_metric(out, "streams_max", "gauge", "Streams that may be open.", s->v->max_streams, 0);
    int held = 0;
    for (const lin_client *client = s->clients; client; client = client->behind) held += lin_serve_stream_is_held_back(client);
    put_metric(out, "streams_held", "gauge", "Streams whose sound waits until their results are read.", held, 0);
    put_metric(out, "streams_total", "counter", "Streams that were opened.", (double)c.streams, 0);
    put_metric(out, "resumed_total", "counter", "Streams that went on from a saved state.", (double)c.resumed, 0);
    put_metric(out, "states_total", "counter", "States that were given to clients.", (double)c.sessions_saved, 0);
    put_metric(out, "utterances_total", "counter", "Utterances of streams that have ended.", (double)c.utterances, 0);
    put_metric(out, "partials_dropped_total", "counter", "Provisional results that were left out for slow readers.",
               (double)c.partials_dropped, 0);
    put_metric(out, "finals_unread_total", "counter", "Final results that still waited for their reader when it was gone.",
               (double)c.finals_unread, 0);
    put_metric(out, "sound_seconds_total", "counter", "Seconds of sound taken in by streams.", c.sound_s, 3);
    put_metric(out, "uploads", "gauge", "Uploads that are received, wait or are worked on.", lin_files_left(s), 0);
    put_metric(out, "files_total", "counter", "Files that were transcribed or aligned.", (double)(c.files + c.aligned), 0);
    put_metric(out, "file_seconds_total", "counter", "Seconds of sound in them.", c.file_s, 3);
    put_metric(out, "stream_bytes", "gauge", "Memory of one stream in the engine.", (double)e.bytes_each, 0);
    lin_buffer_text(out, "# HELP linnet_lag_seconds From the sound of a row to its results, in the last seconds.\n"
                         "# TYPE linnet_lag_seconds gauge\n");
    const double lags[] = {e.lag_p50_ms, e.lag_p95_ms, e.lag_p99_ms};
    const char *const quantiles[] = {"0.5", "0.95", "0.99"};
    for (int i = 0; i < 3; i++) {
        lin_buffer_format(out, "linnet_lag_seconds{quantile=\"%s\"} ", quantiles[i]);
        lin_buffer_fixed(out, lags[i] * 1e-3, 4);
        lin_buffer_char(out, '\n');
    }
    put_metric(out, "lost_samples_total", "counter", "Samples that did not fit a queue.", (double)(s->lost + e.lost_samples), 0);
    static const char *const refused[] = {"streams", "address", "lag", "token", "origin", "host", "files", "size"};
    static const char *const errors[] = {"message", "slow", "idle", "failed"};
    put_causes(out, "refused_total", "Requests that were refused.", refused,
               (const long long[]){c.refused_full, c.refused_address, c.refused_lag, c.refused_token, c.refused_origin,
                                   c.refused_host, c.refused_files, c.too_large}, 8);
    put_causes(out, "errors_total", "Streams and requests that ended with an error.", errors,
               (const long long[]){c.bad, c.slow, c.idle, c.failed}, 4);
}
