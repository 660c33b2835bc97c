// serve.c - the server of linnet serve: routes, limits, statistics, and its life from opening to draining; see serve.h.

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/common.h"
#include "base/child.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/textfile.h"
#include "frontend/processes.h"
#include "linnet/find.h"
#include "linnet/linnet.h"
#include "serve/serve.h"

enum { SOON_MS = 5, OFTEN_MS = 100, STATS_S = 10, CLOSE_S = 2, QUEUE_S = 2 };

volatile int lin_serve_stop, lin_serve_reload;
volatile sig_atomic_t lin_serve_hurry;

/* ---- what all files share -------------------------------------------------------------------------------------------------- */

void lin_serve_touch(lin_client *c)
{
    atomic_store(&c->touched, 1);
    atomic_store(&c->serve->touched, 1);
    c->serve->transport->wake(c->serve->web);
}

void lin_serve_wait(lin_client *c) { c->waiting = c->serve->waiting = 1; }

// Moves phrases of plain letters, which the English letter-to-sound rules can always read, to the front; returns their number.
// Trying each phrase by itself would open the lexicon for each.
static int choose_plain(linnet_phrase *list, int n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", others[] = "' -";
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const char *c = list[i].text + strspn(list[i].text, others);
        int is_plain = *c != 0;
        for (; *c && is_plain; c++) is_plain = strchr(letters, *c) || strchr(others, *c);
        if (is_plain) list[kept++] = list[i];
    }
    return kept;
}

static int is_unusable(lin_status status) { return status == LIN_INVALID || status == LIN_UNSUPPORTED; }

lin_status lin_serve_phrases(const lin_serve *s, const char *texts, int n_needed, int n_advised, lin_phrases *made, int *used,
                             int *left_out, lin_error *err)
{
    const lin_decoding *decoding = &s->live.decoding;
    const int n = n_needed + n_advised;
    linnet_phrase *list = lin_calloc((size_t)n + 1, sizeof *list);
    *left_out = 0;
    *used = n;
    if (!list) return lin_no_memory(err, "phrases", (size_t)n * sizeof *list);
    for (int i = 0; i < n; i++, texts += strlen(texts) + 1) list[i] = (linnet_phrase){texts, s->v->decoding.context_bonus};
    lin_status status = lin_decoding_make_phrases(decoding, list, n, made, err);
    while (*used > n_needed && is_unusable(status)) { // try only phrases of plain letters, then none of the advised ones
        *used = n_needed + (*left_out ? 0 : choose_plain(list + n_needed, n_advised));
        *left_out = 1;
        status = lin_decoding_make_phrases(decoding, list, *used, made, err);
    }
    lin_free(list);
    return status;
}

lin_status lin_serve_grammar(const lin_serve *s, const char *texts, int n, lin_phrases *made, lin_error *err)
{
    lin_buffer lines = {0};
    for (int i = 0; i < n; i++, texts += strlen(texts) + 1) lin_buffer_format(&lines, "%s\n", texts);
    lin_status status = lin_buffer_status(&lines, err);
    if (status == LIN_OK) status = lin_decoding_make_grammar(&s->live.decoding, lin_text_of(&lines), 1, made, err);
    lin_buffer_free(&lines);
    return status;
}

/* ---- threads for what takes long ------------------------------------------------------------------------------------------- */

static void init_workers(lin_workers *w, int n, void *(*run)(void *serve))
{
    *w = (lin_workers){.n = n, .run = run};
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
}

lin_status lin_workers_give(lin_workers *w, lin_task *task, lin_serve *serve, lin_error *err)
{
    pthread_mutex_lock(&w->lock);
    if (!w->threads) w->threads = lin_calloc((size_t)w->n, sizeof *w->threads);
    while (w->threads && w->n_threads < w->n && pthread_create(&w->threads[w->n_threads], NULL, w->run, serve) == 0)
        w->n_threads++;
    const int works = w->n_threads > 0;
    if (works) {
        task->next = NULL;
        *w->last = task;
        w->last = &task->next;
        pthread_cond_signal(&w->work);
    }
    pthread_mutex_unlock(&w->lock);
    return works ? LIN_OK : lin_fail(err, LIN_NO_MEMORY, "cannot start a thread");
}

lin_task *lin_workers_take(lin_workers *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->first && !w->stops) pthread_cond_wait(&w->work, &w->lock);
    lin_task *task = w->first;
    if (task) w->first = task->next;
    if (!w->first) w->last = &w->first;
    pthread_mutex_unlock(&w->lock);
    return task;
}

// When all tasks are done.
static void stop_workers(lin_workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->stops = 1;
    pthread_cond_broadcast(&w->work);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->n_threads; i++) pthread_join(w->threads[i], NULL);
    lin_free(w->threads);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
}

/* ---- answers to requests --------------------------------------------------------------------------------------------------- */

enum { MOST_HEADERS = 8 };

void lin_serve_reply(lin_serve *s, lin_web_peer *peer, lin_web_reply *reply)
{
    lin_web_header headers[MOST_HEADERS] = {{"x-content-type-options", "nosniff"}, {"cache-control", "no-store"}};
    int n = 2;
    if (reply->status == 401) headers[n++] = (lin_web_header){"www-authenticate", "Bearer"};
    for (int i = 0; i < reply->n_headers && n < MOST_HEADERS; i++) headers[n++] = reply->headers[i];
    reply->headers = headers;
    reply->n_headers = n;
    s->transport->reply(peer, reply);
}

// A JSON error in OpenAI's form; header: one more, or NULL.
static void reply_error(lin_serve *s, lin_web_peer *peer, int status, const lin_web_header *header, const char *message)
{
    lin_buffer out = {0};
    lin_openai_put_error(&out, status, message);
    lin_serve_reply(s, peer, &(lin_web_reply){.status = status, .type = "application/json", .body = out.data, .n = out.n,
                                              .headers = header, .n_headers = header != NULL});
    lin_buffer_free(&out);
}

int lin_serve_refuse(lin_serve *s, lin_web_peer *peer, atomic_llong *count, int status, const char *message)
{
    static const lin_web_header retry = {"retry-after", "5"};
    const lin_web_request *r = s->asked;
    if (count) ++*count;
    if (r && (r->websocket || !strcmp(r->method, "POST")))
        lin_serve_log(s, &(lin_serve_entry){.stream = r->websocket, .status = status, .address = r->address, .path = r->path,
                                            .cause = message});
    reply_error(s, peer, status, status == 429 || status == 503 ? &retry : NULL, message);
    return 0;
}

/* ---- routes ---------------------------------------------------------------------------------------------------------------- */

static int is_allowed_origin(const lin_serve *s, const lin_web_request *r)
{
    const int port = s->transport->port(s->web); // browsers leave only the default ports out of a header
    return lin_origin_allowed(r->origin, r->host, port != 80 && port != 443, s->v->origins.items, s->v->origins.count);
}

// 0: refused.
static int check_origin(lin_serve *s, lin_web_peer *peer, const lin_web_request *r)
{
    if (is_allowed_origin(s, r)) return 1;
    return lin_serve_refuse(s, peer, &s->counts.refused_origin, 403, "this server does not serve pages of that origin");
}

// 0: refused.
static int check_token(lin_serve *s, lin_web_peer *peer, const lin_web_request *r)
{
    const char *token;
    const size_t n = lin_token_find(r->authorization, r->query, r->protocols, &token);
    if (!check_origin(s, peer, r)) return 0;
    if (s->tokens && !lin_token_known(s->tokens, s->n_tokens, token, n))
        return lin_serve_refuse(s, peer, &s->counts.refused_token, 401, "a valid token is needed");
    return 1;
}

// 0: refused.
static int check_address(lin_serve *s, lin_web_peer *peer, const char *address)
{
    int same = 0;
    for (const lin_client *c = s->clients; c; c = c->behind) same += (c->protocol || c->job) && !strcmp(c->address, address);
    if (!s->v->max_per_address || same < s->v->max_per_address) return 1;
    return lin_serve_refuse(s, peer, &s->counts.refused_address, 429, "too many streams and uploads from this address");
}

static int is_full(const lin_serve *s) { return s->n_streams >= s->v->max_streams; }

static int is_late(const lin_serve *s) { return s->v->max_lag_ms && s->lag_ms > s->v->max_lag_ms; }

// 0: refused.
static int check_room(lin_serve *s, lin_web_peer *peer, const char *address)
{
    if (s->draining) return lin_serve_refuse(s, peer, NULL, 503, "the server is stopping");
    if (is_full(s)) return lin_serve_refuse(s, peer, &s->counts.refused_full, 503, "all streams are taken");
    if (is_late(s)) return lin_serve_refuse(s, peer, &s->counts.refused_lag, 503, "the server is too busy");
    return check_address(s, peer, address);
}

static void free_client(lin_client *c)
{
    lin_serve *s = c->serve;
    const char *const otherwise = s->draining || lin_serve_stop ? "the server stops" : "the client left";
    lin_serve_log_end(c, c->status, c->status ? c->cause : otherwise);
    *(c->before ? &c->before->behind : &s->clients) = c->behind;
    if (c->behind) c->behind->before = c->before;
    s->n_clients--;
    s->n_streams -= c->protocol != NULL;
    if (c->protocol) {
        lin_serve_stream_leave(c);
    } else {
        lin_files_leave(c);
        lin_free(c);
    }
}

// With tokens, a state is sealed for the token of the stream that it was saved from.
static lin_status make_state_key(lin_client *c, const lin_web_request *r)
{
    const lin_serve *s = c->serve;
    const char *token;
    lin_buffer secret = {0};
    memcpy(c->state_key, s->state_key, sizeof c->state_key);
    if (!s->tokens) return LIN_OK;
    const size_t n = lin_token_find(r->authorization, r->query, r->protocols, &token);
    lin_buffer_bytes(&secret, (const char *)s->state_key, sizeof s->state_key);
    lin_buffer_bytes(&secret, token, n);
    lin_status status = lin_buffer_status(&secret, NULL);
    if (status == LIN_OK) status = s->transport->make_key(secret.data, secret.n, c->state_key, NULL);
    lin_buffer_free(&secret);
    return status;
}

static lin_client *new_client(lin_serve *s, lin_web_peer *peer, const lin_web_request *r,
                              const lin_protocol *protocol)
{
    lin_client *c = lin_calloc(1, sizeof *c);
    if (!c) {
        lin_serve_refuse(s, peer, NULL, 503, "out of memory");
        return NULL;
    }
    c->serve = s;
    c->peer = peer;
    c->protocol = protocol;
    c->begun_at = c->heard_at = lin_now();
    if (protocol) c->path = protocol->path;
    snprintf(c->address, sizeof c->address, "%s", r->address);
    c->behind = s->clients;
    if (s->clients) s->clients->before = c;
    s->clients = c;
    s->n_clients++;
    if (!protocol) return c;
    s->n_streams++;
    lin_serve_stream_begin(c);
    if (make_state_key(c, r) != LIN_OK) {
        c->is_logged = 1;
        free_client(c);
        lin_serve_refuse(s, peer, NULL, 503, "out of memory");
        return NULL;
    }
    s->counts.streams++;
    return c;
}

static lin_client *open_socket(lin_serve *s, lin_web_peer *peer, const lin_web_request *r)
{
    const lin_protocol *protocol = lin_protocol_find(r->path, s->v->websocket);
    if (!protocol) {
        lin_serve_refuse(s, peer, NULL, 404, "there is no WebSocket at this address; /docs names all");
        return NULL;
    }
    if (!check_token(s, peer, r) || !check_room(s, peer, r->address)) return NULL;
    return new_client(s, peer, r, protocol);
}

static lin_client *open_upload(lin_serve *s, lin_web_peer *peer, const lin_web_request *r, const lin_call *call)
{
    if (!check_address(s, peer, r->address)) return NULL;
    lin_client *c = new_client(s, peer, r, NULL);
    if (c) c->path = call->path;
    if (c) c->job = lin_files_begin(c, r, call);
    if (!c || c->job) return c;
    c->is_logged = 1; // as a refusal
    free_client(c);
    return NULL;
}

static void put_model(const lin_serve *s, lin_buffer *out)
{
    lin_buffer_format(out, "{\"id\":\"linnet\",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"linnet\"}", s->created);
}

static void put_docs(const lin_serve *s, lin_buffer *out)
{
    const char *sockets[8][2] = {{"/", lin_protocol_at(s->v->websocket)->about}};
    int n = 1;
    for (const lin_protocol *p; n < 8 && (p = lin_protocol_at(n - 1)) != NULL; n++) {
        sockets[n][0] = p->path;
        sockets[n][1] = p->about;
    }
    lin_calls_put_page(out, LINNET_VERSION, sockets, n);
}

// Uploads and formats that need seeking are kept in such a file.
static int can_keep_files(void)
{
    const char *folder;
    const int fd = lin_file_open_unnamed(&folder), works = fd >= 0 && write(fd, "", 1) == 1;
    if (fd >= 0) close(fd);
    return works;
}

// Writes the answer of a call without a form.
static int put_answer(lin_serve *s, lin_call_kind kind, lin_buffer *out)
{
    const int ready = !s->draining && !is_full(s) && !is_late(s);
    int keeps;
    switch (kind) {
    case LIN_CALL_HEALTH: lin_buffer_text(out, "ok\n"); return 200;
    case LIN_CALL_HEALTH_JSON: lin_buffer_text(out, "{\"status\":\"ok\"}"); return 200;
    case LIN_CALL_READY:
        keeps = !ready || can_keep_files();
        lin_buffer_text(out, !ready ? "busy\n" : keeps ? "ready\n" : "no room for uploads: set TMPDIR to another folder\n");
        return ready && keeps ? 200 : 503;
    case LIN_CALL_METRICS: lin_serve_put_metrics(s, out); return 200;
    case LIN_CALL_OPENAPI: lin_calls_put_openapi(out, LINNET_VERSION); return 200;
    case LIN_CALL_MODEL: put_model(s, out); return 200;
    case LIN_CALL_MODELS:
        lin_buffer_text(out, "{\"object\":\"list\",\"data\":[");
        put_model(s, out);
        lin_buffer_text(out, "]}");
        return 200;
    default:
        put_docs(s, out);
        return 200;
    }
}

// Sends a page of this server, which may load nothing from elsewhere.
static void put_page(lin_serve *s, lin_web_peer *peer, const char *type, const char *body, size_t n)
{
    static const lin_web_header policy = {"content-security-policy",
                                          "default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data:; "
                                          "media-src blob:; frame-ancestors 'none'"};
    lin_serve_reply(s, peer,
                    &(lin_web_reply){.status = 200, .type = type, .body = body, .n = n, .headers = &policy, .n_headers = 1});
}

static void get(lin_serve *s, lin_web_peer *peer, const lin_call *call)
{
    lin_buffer out = {0};
    const int status = put_answer(s, call->kind, &out);
    if (lin_buffer_status(&out, NULL) != LIN_OK) lin_serve_refuse(s, peer, NULL, 503, "out of memory");
    else if (call->kind == LIN_CALL_DOCS) put_page(s, peer, call->type, out.data, out.n);
    else lin_serve_reply(s, peer, &(lin_web_reply){.status = status, .type = call->type, .body = out.data, .n = out.n});
    lin_buffer_free(&out);
}

// Answers a CORS preflight. Authorization is named, because "*" does not include it.
static void answer_options(lin_serve *s, lin_web_peer *peer)
{
    static const lin_web_header may[] = {{"access-control-allow-methods", "GET, POST, OPTIONS"},
                                         {"access-control-allow-headers", "authorization, content-type, *"},
                                         {"access-control-max-age", "3600"}};
    lin_serve_reply(s, peer, &(lin_web_reply){.status = 204, .headers = may, .n_headers = sizeof may / sizeof *may});
}

// A request that is not a WebSocket.
static lin_client *open_request(lin_serve *s, lin_web_peer *peer, const lin_web_request *r)
{
    int is_known;
    size_t n;
    const char *type, *file = NULL;
    const lin_call *call = lin_call_find(r->method, r->path, &is_known);
    if (*r->origin && is_allowed_origin(s, r)) s->transport->allow(peer);
    if (!strcmp(r->method, "GET") || !strcmp(r->method, "HEAD")) file = lin_page_find(r->path, &type, &n);
    if (file) {
        put_page(s, peer, type, file, n);
    } else if (!call && !is_known && lin_protocol_find(r->path, s->v->websocket)) {
        reply_error(s, peer, 426, &(lin_web_header){"upgrade", "websocket"},
                    "this address is a WebSocket's: see docs/serve.md, and /docs for the calls over HTTP");
    } else if (!call && !is_known) {
        lin_serve_refuse(s, peer, NULL, 404, "there is nothing at this address; /docs names all calls");
    } else if (!strcmp(r->method, "OPTIONS")) {
        if (check_origin(s, peer, r)) answer_options(s, peer);
    } else if (!call) {
        const char *method = lin_call_find("POST", r->path, &is_known) ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";
        reply_error(s, peer, 405, &(lin_web_header){"allow", method}, "this address has another method: see /docs");
    } else if (call->is_open || check_token(s, peer, r)) {
        if (call->fields) return open_upload(s, peer, r, call);
        get(s, peer, call);
    }
    return NULL;
}

static int check_host(lin_serve *s, lin_web_peer *peer, const lin_web_request *r)
{
    const lin_list *names = &s->v->hosts;
    if (lin_host_allowed(r->host, s->host, names->items, names->count)) return 1;
    const char *const own = s->own_name;
    if (*own && lin_host_allowed(r->host, own, NULL, 0)) return 1;
    return lin_serve_refuse(s, peer, &s->counts.refused_host, 421, "this server is not known by that name: see --host");
}

static void *on_open(void *context, lin_web_peer *peer, const lin_web_request *r)
{
    lin_serve *s = context;
    char address[64];
    lin_web_request own = *r;
    lin_client_address(r->address, r->forwarded_for, r->forwarded, s->v->proxies.items, s->v->proxies.count, address,
                       sizeof address);
    own.address = address;
    s->asked = &own;
    lin_client *c = NULL;
    if (check_host(s, peer, &own)) c = own.websocket ? open_socket(s, peer, &own) : open_request(s, peer, &own);
    s->asked = NULL;
    return c;
}

/* ---- handlers -------------------------------------------------------------------------------------------------------------- */

static void on_data(void *context, void *user, const char *bytes, size_t n, int binary, int last)
{
    lin_client *c = user;
    (void)context;
    c->heard_at = lin_now();
    if (!c->protocol) lin_files_data(c, bytes, n);
    else lin_serve_stream_data(c, bytes, n, binary, last);
}

static void on_complete(void *context, void *user)
{
    (void)context;
    lin_files_complete(user);
}

static int on_next(void *context, void *user, lin_web_message *m)
{
    (void)context;
    lin_client *c = user;
    return c->protocol ? lin_serve_stream_next(c, m) : lin_files_next(c, m);
}

static void on_gone(void *context, void *user)
{
    if (!((lin_serve *)context)->closed) free_client(user);
}

static void on_log(void *context, const char *line)
{
    const lin_serve *s = context;
    if (!s->v->quiet) lin_complain("%.*s", (int)strcspn(line, "\r\n"), line);
}

// What is due once a second.
static void every_second(lin_serve *s, double now)
{
    for (lin_client *c = s->clients, *behind; c; c = behind) {
        behind = c->behind;
        if (!c->protocol) {
            lin_files_expect(c, now);
        } else if (lin_serve_stream_is_dead(c, now)) {
            s->transport->drop(c->peer);
            c->heard_at = now;
        }
    }
    if (now - s->stats_at < STATS_S) return;
    s->stats_at = now;
    lin_engine_stats e;
    lin_engine_stats_get(s->engine, &e);
    s->lag_ms = e.rows ? e.lag_p95_ms : 0;
    s->lost += e.lost_samples;
    lin_engine_stats_reset(s->engine);
}

static void drain(lin_serve *s, double now)
{
    if (!s->draining) {
        s->draining = 1;
        s->drain_until = now + s->v->drain_s;
        if (!s->v->quiet)
            lin_complain("stopping: the utterances of %d stream%s end first", s->n_streams, s->n_streams == 1 ? "" : "s");
    }
    lin_serve_hurry = now > s->drain_until;
    for (lin_client *c = s->clients, *behind; c; c = behind) {
        behind = c->behind;
        if (c->protocol) lin_serve_stream_drain(c, lin_serve_hurry);
        else if (lin_serve_hurry) lin_files_drain(c);
    }
}

// Those before remain if that fails.
static lin_status read_tokens(lin_serve *s, lin_error *err)
{
    const char *name = s->v->tokens;
    char *tokens;
    size_t n;
    int weak = 0;
    lin_status status = lin_text_read(name, &tokens, &n, err);
    if (status == LIN_OK) status = lin_tokens_check(name, tokens, n, &weak, err);
    if (weak && !s->v->quiet)
        lin_complain("%s:%d: a token of less than %d signs can be guessed; 'openssl rand -hex 16' makes a better one", name,
                     weak, (int)LIN_TOKEN_LEAST);
    lin_free(status == LIN_OK ? s->tokens : tokens);
    if (status != LIN_OK) return status;
    s->tokens = tokens;
    s->n_tokens = n;
    return LIN_OK;
}

static void read_tokens_again(lin_serve *s)
{
    lin_error err = {0};
    lin_serve_reload = 0;
    if (s->v->tokens && read_tokens(s, &err) != LIN_OK) lin_complain("the tokens were not read again: %s", err.message);
    else if (!s->v->quiet)
        lin_complain(s->v->tokens ? "the tokens were read again" : "SIGHUP: there are no --tokens to be read again");
}

static int on_turn(void *context)
{
    lin_serve *s = context;
    const double now = lin_now();
    const int any = atomic_exchange(&s->touched, 0) || s->waiting;
    s->waiting = 0;
    for (lin_client *c = any ? s->clients : NULL, *behind; c; c = behind) {
        behind = c->behind;
        const int is_due = (atomic_load(&c->touched) && atomic_exchange(&c->touched, 0)) || c->waiting;
        c->waiting = 0;
        if (is_due && c->protocol) lin_serve_stream_go_on(c);
        else if (is_due) lin_files_go_on(c);
    }
    if (lin_serve_stop) drain(s, now);
    if (lin_serve_reload) read_tokens_again(s);
    if (now - s->second_at >= 1) {
        s->second_at = now;
        every_second(s, now);
    }
    return s->waiting ? SOON_MS : OFTEN_MS;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

static void on_signal(int number)
{
    (void)number;
    lin_serve_stop = lin_serve_stop ? 2 : 1;
}

static void on_hangup(int number)
{
    (void)number;
    lin_serve_reload = 1;
}

// Unlike in other commands, signals do not interrupt the work (on uploads). One that came before this call still counts.
static void watch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_hangup;
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (lin_interrupted && lin_interrupted != SIGHUP && !lin_serve_stop) lin_serve_stop = 1;
    lin_interrupted = 0;
}

static lin_status open_recognition(lin_serve *s, lin_error *err)
{
    const lin_serve_values *v = s->v;
    LIN_TRY(lin_live_models_open(&s->live, &v->model, v->second_pass, &v->decoding, v->ipa, v->quiet, err));
    char path[4096];
    struct stat file;
    const int found = lin_find_model(v->model.model, path, sizeof path, NULL) == LIN_OK;
    if (found && stat(path, &file) == 0) s->created = (long long)file.st_mtime;
    s->language = lin_phones_language(s->live.recognizer.phones);
    if (!*s->language) s->language = *lin_find_chosen() ? lin_find_chosen() : "und"; // the model does not say
    s->live.recognizer.stop = &lin_serve_hurry; // after a signal, uploads are finished until the time to drain is over
    s->live.second.skip = &lin_serve_hurry;
    if (!s->live.recognizer.streams)
        return lin_fail(err, LIN_UNSUPPORTED, "linnet serve needs a model that streams; this one needs whole utterances");
    lin_engine_options how = lin_engine_default(v->max_streams);
    how.threads = v->threads;
    how.queue_s = QUEUE_S;
    how.views = how.saves = 1;
    how.ends = lin_endpoint_ends(&v->endpoints, &s->live.recognizer);
    how.decoding = &s->live.decoding;
    how.second = v->second_pass ? &s->live.second : NULL;
    how.deliver = lin_serve_stream_event;
    return lin_engine_create(&s->live.recognizer, &how, &s->engine, err);
}

// The socket that systemd has opened for this process, sd_listen_fds(3).
static lin_status take_socket(int *socket, lin_error *err)
{
    const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    if (!pid || !n || strtol(pid, NULL, 10) != (long)getpid() || strcmp(n, "1") != 0)
        return lin_fail(err, LIN_INVALID,
                        "--listen systemd needs one socket from systemd (LISTEN_FDS=1): see recipes/serve/linnet.socket");
    *socket = 3;
    return LIN_OK;
}

#define WEB_LIBRARY "liblinnet_web.so"

// $LINNET_WEB_LIBRARY, else liblinnet_web.so in the places of lin_system_plugin.
static lin_status load_web(const lin_web_transport **transport, lin_error *err)
{
    char found[PATH_MAX + 64];
    lin_web_interface_function interface;
    lin_web_get_function get_web;
    const char *path = lin_system_plugin("LINNET_WEB_LIBRARY", WEB_LIBRARY, found, sizeof found), *slash = strchr(path, '/');
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const int there = slash && access(path, F_OK) == 0;
        const char *why = dlerror();
        return lin_fail(err, LIN_UNSUPPORTED, "%s cannot be opened: %s; %s", WEB_LIBRARY, why ? why : "no reason given",
                        there ? "install libwebsockets"
                              : "install libwebsockets 4.1 or later (Debian: libwebsockets-dev) and build linnet again, with "
                                "make");
    }
    if (!lin_system_symbol(library, "lin_web_interface", &interface) || !lin_system_symbol(library, "lin_web_get", &get_web))
        return lin_fail(err, LIN_UNSUPPORTED, "%s is not a network library of linnet", path);
    if (interface() != LIN_WEB_INTERFACE)
        return lin_fail(err, LIN_UNSUPPORTED, "%s was built for another version of linnet: build both together", path);
    *transport = get_web();
    return LIN_OK;
}

static lin_status open_web(lin_serve *s, lin_error *err)
{
    const lin_serve_values *v = s->v;
    const lin_web_handlers handlers = {.context = s, .open = on_open, .data = on_data, .complete = on_complete, .next = on_next,
                                       .gone = on_gone, .turn = on_turn, .log = on_log};
    lin_web_options o = {.host = *s->host && strcmp(s->host, "*") != 0 ? s->host : NULL, .port = s->port,
                         .peers = v->max_streams + v->max_files, .certificate = v->certificate, .key = v->key,
                         .ping_s = v->unread_s > v->idle_s / 2 ? v->unread_s : v->idle_s / 2};
    if (!*s->host) LIN_TRY(take_socket(&o.socket, err));
    return s->transport->open(&o, &handlers, &s->web, err);
}

static int is_done(const lin_serve *s)
{
    if (lin_serve_stop > 1) return 1;
    return s->draining && (s->n_clients == 0 || lin_now() > s->drain_until + CLOSE_S); // CLOSE_S: to send the last messages
}

static void close_all(lin_serve *s)
{
    lin_serve_hurry = 1;
    while (s->clients) free_client(s->clients);
    s->closed = 1;
    stop_workers(&s->workers);
    stop_workers(&s->preparers);
    if (s->web) s->transport->close(s->web);
    if (s->has_lexicon) lin_wording_close(&s->lexicon);
    lin_engine_destroy(s->engine);
    lin_live_models_close(&s->live);
    lin_page_close();
    lin_free(s->tokens);
}

// The bytes of the file are the secret, line ends included.
static lin_status make_common_key(lin_serve *s, lin_error *err)
{
    char *text = NULL;
    size_t n = 0;
    lin_status status = s->v->state_key ? lin_text_read(s->v->state_key, &text, &n, err) : LIN_OK;
    if (status == LIN_OK && s->v->state_key && n < 16)
        status = lin_fail(err, LIN_INVALID, "%s: a secret has at least 16 bytes", s->v->state_key);
    if (status == LIN_OK) status = s->transport->make_key(text, n, s->state_key, err);
    lin_free(text);
    return status;
}

static void tell_protection(void)
{
    static const struct { int what; const char *name; } parts[] = {
        {LIN_CHILD_LANDLOCK, " Landlock"}, {LIN_CHILD_SECCOMP, " seccomp"}, {LIN_CHILD_NAMESPACE, " PID namespaces"}};
    const int has = lin_child_protection();
    char missing[64] = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!(has & parts[i].what)) strcat(missing, parts[i].name);
    if (*missing) lin_complain("uploads are decoded without:%s; see \"What protects what\" in docs/serve.md", missing);
}

lin_status lin_serve_run(lin_serve *s, lin_error *err)
{
    // Uploads are decoded by another process of this program. Find its file now: a newer version may replace it later.
    static char program[4096];
    if (lin_system_program(program, sizeof program)) lin_isolate_files(program);
    const int n = s->v->threads ? s->v->threads : lin_cores();
    snprintf(s->too_large, sizeof s->too_large, "the body is larger than %d MB", s->v->max_upload_mb);
    init_workers(&s->workers, n, lin_files_work);
    init_workers(&s->preparers, n, lin_serve_stream_prepare);
    lin_serve_stop = lin_serve_reload = lin_serve_hurry = 0;
    if (s->v->log_json) lin_complain_in_json();
    watch_signals();
    gethostname(s->own_name, sizeof s->own_name - 1);
    lin_status status = load_web(&s->transport, err);
    if (status == LIN_OK && s->v->tokens) status = read_tokens(s, err);
    if (status == LIN_OK) status = make_common_key(s, err);
    if (status == LIN_OK) status = lin_page_open(err);
    if (status == LIN_OK) status = open_recognition(s, err);
    if (status == LIN_OK) status = open_web(s, err);
    const char *const host = *s->host ? s->host : "127.0.0.1";
    const int is_6 = strchr(host, ':') != NULL;
    if (status == LIN_OK && !s->v->quiet)
        lin_complain("serving at http%s://%s%s%s:%d/, at most %d streams", s->v->certificate ? "s" : "", is_6 ? "[" : "", host,
                     is_6 ? "]" : "", s->transport->port(s->web), s->v->max_streams);
    if (status == LIN_OK && !s->v->quiet) tell_protection();
    while (status == LIN_OK && !is_done(s)) s->transport->run(s->web);
    close_all(s);
    return status;
}
