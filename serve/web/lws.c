// lws.c - serve/web.h over libwebsockets (4.1 or later): liblinnet_web.so.
//
// One context with one virtual host, one protocol and one service thread. libwebsockets parses HTTP, frames and TLS; the handlers
// decide what requests mean. HTTP connections are closed after each answer. A body that is still arriving is first read and
// discarded for a while: closing with unread bytes resets the connection, and the answer is lost (RFC 9112, 9.6).

#include <errno.h>
#include <fcntl.h>
#include <libwebsockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "serve/http.h"
#include "serve/web.h"

#define LISTENING "linnet-listening"
#define HEADS "linnet-heads"

enum { PIECE = 16384, HEAD = 4096, TEXT = 4096, UNREAD = 1 << 17, PATIENCE_S = 30 };
enum { MOST_SILENT = 512, KEPT_FILES = 128, ACCEPTED_AT_ONCE = 32, RETRY_US = 1000000 };
enum { LINGER_US = 30000000, LINGER_BYTES = 1 << 30, PAUSED_US = 1000000 };
enum { SUBPROTOCOLS = 127 }; // if the header is longer, libwebsockets closes the connection without an answer

struct lin_web_peer {
    lin_web *web;
    struct lws *wsi;
    void *user;
    int websocket, known; /* known: `user` must be told when it is gone */
    unsigned char *reply; // [LWS_PRE + head + n]
    size_t head, n, at;
    int answered, closing, code, goes_on, head_only; // head_only: to HEAD
    int has_body; // more of the request's body may come
    lws_usec_t linger_until; // answered, and discarding input until then; 0: not yet
    size_t discarded;
    lws_usec_t alive_at; // when libwebsockets was last told that it is alive
    char reason[100];
    char origin[256]; // the origin that may read answers; "": none
};

// The head of a request as it comes, where there is no TLS (there: serve/web/tls.c).
typedef struct head {
    char *bytes; // [LIN_HEAD_MOST]
    size_t n, discarded;
    lws_usec_t linger_until; // refused, and discarding input until then; 0: not yet
} head;

// A connection that has not asked for anything yet.
typedef struct silent {
    struct silent *older, *newer;
    struct lws *wsi;
} silent;

struct lin_web {
    struct lws_context *context;
    struct lws_vhost *vhost;
    lin_web_handlers handlers;
    lws_sorted_usec_list_t timer;
    atomic_int woken;
    int port, closing;
    // We own the listening socket, and libwebsockets only polls it: with its own socket it would spin on accept while no more
    // files can be opened.
    int socket, waits, is_full; // waits: not polled until a connection is closed, or retry_at; is_full: this was logged
    lws_usec_t retry_at;
    struct lws *listening;
    int n_connections, most_connections, n_silent, most_silent, has_tls;
    silent *oldest, *newest;
    lws_retry_bo_t alive;
    struct lws_protocols protocols[5];
    unsigned char room[LWS_PRE + HEAD];
    unsigned char *message; // [LWS_PRE + message_capacity]
    size_t message_capacity;
};

static lin_web *running; // for events that have no virtual host

/* ---- requests -------------------------------------------------------------------------------------------------------------- */

static const struct {
    enum lws_token_indexes token;
    const char *method;
} methods[] = {{WSI_TOKEN_GET_URI, "GET"},       {WSI_TOKEN_POST_URI, "POST"},     {WSI_TOKEN_OPTIONS_URI, "OPTIONS"},
               {WSI_TOKEN_HEAD_URI, "HEAD"},     {WSI_TOKEN_PUT_URI, "PUT"},       {WSI_TOKEN_DELETE_URI, "DELETE"},
               {WSI_TOKEN_PATCH_URI, "PATCH"}};

typedef struct texts {
    char path[TEXT], query[TEXT], host[256], origin[256], authorization[1024], type[512], encoding[64], address[64];
    char protocols[SUBPROTOCOLS], forwarded_for[1024], forwarded[1024];
} texts;

// 0 if a header does not fit.
static int copy(struct lws *wsi, enum lws_token_indexes token, char *text, int capacity)
{
    text[0] = 0;
    const int n = lws_hdr_total_length(wsi, token);
    return n == 0 || (n < capacity && lws_hdr_copy(wsi, text, capacity, token) >= 0);
}

// libwebsockets stores the parts of a query between '&' separately, and lws_hdr_copy would join them with commas.
static int copy_query(struct lws *wsi, char *text, int capacity)
{
    int at = 0;
    text[0] = 0;
    for (int i = 0, n; (n = lws_hdr_fragment_length(wsi, WSI_TOKEN_HTTP_URI_ARGS, i)) > 0; i++) {
        if (at + n + 2 > capacity) return 0;
        if (at) text[at++] = '&';
        n = lws_hdr_copy_fragment(wsi, text + at, capacity - at, WSI_TOKEN_HTTP_URI_ARGS, i);
        if (n < 0) return 0;
        at += n;
    }
    return 1;
}

static int read_request(struct lws *wsi, texts *t, lin_web_request *request)
{
    char length[32];
    *request = (lin_web_request){.method = "", .path = t->path, .query = t->query, .host = t->host, .origin = t->origin,
                                 .authorization = t->authorization, .type = t->type, .encoding = t->encoding,
                                 .address = t->address, .protocols = t->protocols, .forwarded_for = t->forwarded_for,
                                 .forwarded = t->forwarded, .length = -1};
    int fits = 1;
    t->path[0] = 0;
    for (size_t i = 0; i < sizeof methods / sizeof *methods && !*request->method; i++) {
        if (lws_hdr_total_length(wsi, methods[i].token) == 0) continue;
        request->method = methods[i].method;
        fits = copy(wsi, methods[i].token, t->path, sizeof t->path);
    }
    fits = copy_query(wsi, t->query, sizeof t->query) && fits;
    fits = copy(wsi, WSI_TOKEN_HOST, t->host, sizeof t->host) && fits;
    fits = copy(wsi, WSI_TOKEN_ORIGIN, t->origin, sizeof t->origin) && fits;
    fits = copy(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, t->authorization, sizeof t->authorization) && fits;
    fits = copy(wsi, WSI_TOKEN_HTTP_CONTENT_TYPE, t->type, sizeof t->type) && fits;
    fits = copy(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING, t->encoding, sizeof t->encoding) && fits;
    fits = copy(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH, length, sizeof length) && fits;
    fits = copy(wsi, WSI_TOKEN_PROTOCOL, t->protocols, sizeof t->protocols) && fits;
    fits = copy(wsi, WSI_TOKEN_X_FORWARDED_FOR, t->forwarded_for, sizeof t->forwarded_for) && fits;
    t->forwarded[0] = 0;
    if (lws_hdr_custom_length(wsi, "forwarded:", 10) > 0)
        fits = lws_hdr_custom_copy(wsi, t->forwarded, sizeof t->forwarded, "forwarded:", 10) >= 0 && fits;
    // libwebsockets accepts a number followed by anything; only digits count here.
    const int is_number = strspn(length, "0123456789") == strlen(length);
    if (*length) request->length = is_number ? strtoll(length, NULL, 10) : LIN_WEB_BAD_LENGTH;
    lws_get_peer_simple(wsi, t->address, sizeof t->address);
    return fits;
}

/* ---- answers --------------------------------------------------------------------------------------------------------------- */

static int add(struct lws *wsi, const char *name, const char *value, unsigned char **at, unsigned char *end)
{
    char colon[64];
    snprintf(colon, sizeof colon, "%s:", name);
    return lws_add_http_header_by_name(wsi, (const unsigned char *)colon, (const unsigned char *)value, (int)strlen(value), at,
                                       end);
}

static lin_status reply(lin_web_peer *p, const lin_web_reply *r)
{
    unsigned char *const begin = p->web->room + LWS_PRE, *at = begin, *const end = begin + HEAD;
    const size_t n = p->head_only ? 0 : r->n; // of the body that is sent
    char length[32];
    snprintf(length, sizeof length, "%zu", r->n);
    int bad = p->answered || lws_add_http_header_status(p->wsi, (unsigned)r->status, &at, end) != 0;
    // libwebsockets refuses a handshake with HTTP/1.0, which WebSocket clients do not accept.
    if (!bad && p->websocket && at - begin > 8 && memcmp(begin, "HTTP/1.0", 8) == 0) begin[7] = '1';
    if (r->type) bad = bad || add(p->wsi, "content-type", r->type, &at, end) != 0;
    if (!r->goes_on && r->status != 204) bad = bad || add(p->wsi, "content-length", length, &at, end) != 0;
    bad = bad || add(p->wsi, "connection", "close", &at, end) != 0;
    if (*p->origin)
        bad = bad || add(p->wsi, "access-control-allow-origin", p->origin, &at, end) != 0 ||
              add(p->wsi, "access-control-expose-headers", "*", &at, end) != 0 || add(p->wsi, "vary", "origin", &at, end) != 0;
    for (int i = 0; i < r->n_headers; i++) bad = bad || add(p->wsi, r->headers[i].name, r->headers[i].value, &at, end) != 0;
    bad = bad || lws_finalize_http_header(p->wsi, &at, end) != 0;
    if (!bad) p->reply = lin_alloc(LWS_PRE + (size_t)(at - begin) + n, 1);
    if (bad || !p->reply) {
        lws_set_timeout(p->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
        return LIN_NO_MEMORY;
    }
    p->answered = 1;
    p->goes_on = r->goes_on;
    p->head = (size_t)(at - begin);
    p->n = p->head + n;
    memcpy(p->reply + LWS_PRE, begin, p->head);
    if (n) memcpy(p->reply + LWS_PRE + p->head, r->body, n);
    if (!p->websocket) lws_callback_on_writable(p->wsi);
    return LIN_OK;
}

// The next piece of an answer that goes on; 0: there is none.
static int take_piece(lin_web_peer *p)
{
    lin_web_message m;
    if (!p->web->handlers.next(p->web->handlers.context, p->user, &m)) return 0;
    unsigned char *room = lin_resize(p->reply, LWS_PRE + m.n, 1);
    if (!room) {
        p->closing = 1;
        return 0;
    }
    memcpy(room + LWS_PRE, m.data, m.n);
    p->reply = room;
    p->n = m.n;
    p->head = p->at = 0;
    return 1;
}

static void enter_silent(lin_web *w, struct lws *wsi);

// After the answer is sent. Not 0: the connection ends.
static int linger(lin_web_peer *p)
{
    if (!p->has_body) return -1;
    if (!lws_get_ssl(p->wsi)) shutdown(lws_get_socket_fd(p->wsi), SHUT_WR);
    p->linger_until = lws_now_usecs() + LINGER_US;
    enter_silent(p->web, p->wsi); // so that there are not too many of them
    return 0;
}

// Not 0: the connection ends.
static int discard(size_t *discarded, size_t n, lws_usec_t until)
{
    *discarded += n;
    return *discarded > LINGER_BYTES || lws_now_usecs() > until ? -1 : 0;
}

// A piece of the answer; not 0: the connection ends.
static int write_reply(lin_web_peer *p)
{
    if (!p->answered || p->linger_until) return 0;
    if (p->goes_on && p->at == p->n && !take_piece(p)) {
        lws_set_timeout(p->wsi, NO_PENDING_TIMEOUT, 0); // the next one may take long
        return p->closing ? -1 : 0;
    }
    const size_t left = p->n - p->at, most = p->at < p->head ? p->head - p->at : PIECE, n = left < most ? left : most;
    const int last = n == left;
    const int is_final = last && !p->goes_on;
    const enum lws_write_protocol how = p->at < p->head ? LWS_WRITE_HTTP_HEADERS
                                        : is_final      ? LWS_WRITE_HTTP_FINAL
                                                        : LWS_WRITE_HTTP;
    unsigned char saved[LWS_PRE], *const from = p->reply + p->at; // libwebsockets may overwrite LWS_PRE bytes before the data
    memcpy(saved, from, LWS_PRE);
    const int written = n ? lws_write(p->wsi, from + LWS_PRE, n, how) : 0;
    memcpy(from, saved, LWS_PRE);
    if (written < (int)n) return -1;
    lws_set_timeout(p->wsi, PENDING_TIMEOUT_HTTP_CONTENT, PATIENCE_S);
    p->at += n;
    if (is_final) return linger(p);
    lws_callback_on_writable(p->wsi);
    return 0;
}

// A peer that sends or reads is alive: its answer to a ping may wait behind a minute of sound that we have not read yet.
// libwebsockets counts only that answer.
static void note_alive(lin_web_peer *p)
{
    const lws_usec_t now = lws_now_usecs();
    if (now - p->alive_at < (lws_usec_t)p->web->alive.secs_since_valid_ping * 1000000 / 6) return;
    p->alive_at = now;
    lws_validity_confirmed(p->wsi);
}

// The next message of a WebSocket; not 0: it ends.
static int write_message(lin_web_peer *p)
{
    lin_web *w = p->web;
    lin_web_message m;
    if (!w->handlers.next(w->handlers.context, p->user, &m)) {
        if (!p->closing) return 0;
        lws_close_reason(p->wsi, (enum lws_close_status)p->code, (unsigned char *)p->reason, strlen(p->reason));
        return -1;
    }
    if (m.n > w->message_capacity || !w->message) {
        unsigned char *room = lin_resize(w->message, LWS_PRE + m.n, 1);
        if (!room) return -1;
        w->message = room;
        w->message_capacity = m.n;
    }
    if (m.n) memcpy(w->message + LWS_PRE, m.data, m.n);
    note_alive(p); // we are called when the socket can be written, so the peer has read earlier messages
    if (lws_write(p->wsi, w->message + LWS_PRE, m.n, m.binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT) < (int)m.n) return -1;
    lws_callback_on_writable(p->wsi);
    return 0;
}

/* ---- connections that have not asked for anything -------------------------------------------------------------------------- */

static void drop_wsi(struct lws *wsi) { lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC); }

static void leave_silent(lin_web *w, struct lws *wsi)
{
    silent *c = lws_get_opaque_user_data(wsi);
    if (!c) return;
    *(c->older ? &c->older->newer : &w->oldest) = c->newer;
    *(c->newer ? &c->newer->older : &w->newest) = c->older;
    w->n_silent--;
    lws_set_opaque_user_data(wsi, NULL);
    lin_free(c);
}

// Lists a connection without a complete request; if there are too many, the oldest is dropped.
static void enter_silent(lin_web *w, struct lws *wsi)
{
    silent *c = lin_calloc(1, sizeof *c);
    if (!c) {
        drop_wsi(wsi);
        return;
    }
    c->wsi = wsi;
    c->older = w->newest;
    *(c->older ? &c->older->newer : &w->oldest) = c;
    w->newest = c;
    lws_set_opaque_user_data(wsi, c);
    if (++w->n_silent <= w->most_silent) return;
    struct lws *oldest = w->oldest->wsi;
    leave_silent(w, oldest);
    drop_wsi(oldest);
}

static void watch(lin_web *w, int on)
{
    if (w->waits == !on || !w->listening) return;
    w->waits = !on;
    w->retry_at = lws_now_usecs() + RETRY_US;
    lws_rx_flow_control(w->listening, on);
}

// No more connections can be accepted now: new ones wait in the backlog.
static void stop_accepting(lin_web *w, const char *why)
{
    watch(w, 0);
    char line[200];
    if (w->is_full) return;
    w->is_full = 1;
    snprintf(line, sizeof line, "no more connections are accepted until one is closed, %d are open: %s", w->n_connections, why);
    w->handlers.log(w->handlers.context, line);
}

static void closed(lin_web *w)
{
    w->n_connections--;
    if (w->closing || w->n_connections >= w->most_connections) return;
    watch(w, 1);
    if (w->n_connections < w->most_connections / 2) w->is_full = 0;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

// libwebsockets selects the first subprotocol in the client's list that it knows. If it knows none, or the header is too long, it
// would close the connection without an answer: here -1, and the client is told why.
static int check_subprotocols(const lin_web *w, struct lws *wsi)
{
    char list[SUBPROTOCOLS], answer[LWS_PRE + LIN_HEAD_ANSWER];
    const int fits = copy(wsi, WSI_TOKEN_PROTOCOL, list, sizeof list);
    const struct lws_protocols *known = fits && !*list ? w->protocols : NULL;
    for (char *at = list, *name; fits && !known && (name = strsep(&at, ", \t")) != NULL;)
        known = lws_vhost_name_to_protocol(w->vhost, name);
    if (known && strcmp(known->name, LISTENING) != 0 && strcmp(known->name, HEADS) != 0) return 0;
    const char *why = fits ? "of the subprotocols of a WebSocket this server knows linnet and realtime only"
                           : "the header Sec-WebSocket-Protocol has more than 126 signs: use a shorter key";
    lws_write(wsi, (unsigned char *)answer + LWS_PRE, lin_head_refusal(400, why, answer + LWS_PRE), LWS_WRITE_HTTP_FINAL);
    return -1;
}

// Not 0: refused. A WebSocket's refusal is written at once, a request's when it can be.
static int open_peer(lin_web *w, lin_web_peer *p, struct lws *wsi, int websocket)
{
    texts t;
    lin_web_request request;
    leave_silent(w, wsi);
    *p = (lin_web_peer){.web = w, .wsi = wsi, .websocket = websocket};
    const int fits = read_request(wsi, &t, &request);
    request.websocket = websocket;
    p->has_body = !websocket && (request.length > 0 || *request.encoding);
    p->head_only = strcmp(request.method, "HEAD") == 0;
    if (!fits) {
        static const char why[] = "{\"error\":{\"message\":\"the address or a header is too long\","
                                  "\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}";
        reply(p, &(lin_web_reply){.status = 431, .type = "application/json", .body = why, .n = sizeof why - 1});
    } else {
        p->user = w->handlers.open(w->handlers.context, p, &request);
        p->known = p->user != NULL;
    }
    if (!websocket && !p->known) return p->answered ? 0 : -1;
    // Linux would buffer up to 4 MB for a slow reader: stale provisional results that could no longer be left out.
    if (websocket && p->known) setsockopt(lws_get_socket_fd(wsi), SOL_SOCKET, SO_SNDBUF, &(int){UNREAD}, sizeof(int));
    if (!p->known && p->answered) {
        lws_write(wsi, p->reply + LWS_PRE, p->head, LWS_WRITE_HTTP_HEADERS);
        if (p->n > p->head) lws_write(wsi, p->reply + p->head + LWS_PRE, p->n - p->head, LWS_WRITE_HTTP_FINAL);
    }
    if (!websocket && p->known && !p->answered && lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_EXPECT) > 0) { // 100-continue
        unsigned char go_on[LWS_PRE + 32];
        const int n = snprintf((char *)go_on + LWS_PRE, sizeof go_on - LWS_PRE, "HTTP/1.1 100 Continue\r\n\r\n");
        lws_write(wsi, go_on + LWS_PRE, (size_t)n, LWS_WRITE_HTTP_HEADERS);
    }
    if (!websocket && request.length <= 0 && !*request.encoding && p->known) w->handlers.complete(w->handlers.context, p->user);
    return p->known ? 0 : -1;
}

static void close_peer(lin_web_peer *p)
{
    if (!p || !p->web) return;
    if (p->known) p->web->handlers.gone(p->web->handlers.context, p->user);
    lin_free(p->reply);
    memset(p, 0, sizeof *p);
}

static void give(lin_web_peer *p, const void *bytes, size_t n, int binary, int last)
{
    const lin_web_handlers *h = &p->web->handlers;
    if (p->known) h->data(h->context, p->user, bytes, n, binary, last);
}

// Since version 4.3, libwebsockets keeps a paused peer that is gone while bytes wait that it has read, and polls without a wait.
// So this looks once in PAUSED_US; not 0: the connection ends.
static int look_after_paused(lin_web_peer *p)
{
    struct pollfd socket = {.fd = lws_get_socket_fd(p->wsi)}; // POLLHUP needs no request
    lws_set_timer_usecs(p->wsi, PAUSED_US);
    return poll(&socket, 1, 0) > 0 ? -1 : 0;
}

static void on_timer(lws_sorted_usec_list_t *timer);

static void take_turn(lin_web *w)
{
    atomic_store(&w->woken, 0);
    // Other files may have been closed meanwhile: try again.
    if (w->waits && w->n_connections < w->most_connections && lws_now_usecs() > w->retry_at) watch(w, 1);
    const int ms = w->handlers.turn(w->handlers.context);
    lws_sul_schedule(w->context, 0, &w->timer, on_timer, (lws_usec_t)ms * 1000);
}

static void on_timer(lws_sorted_usec_list_t *timer) { take_turn(lws_container_of(timer, lin_web, timer)); }

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *session, void *in, size_t n)
{
    lin_web *w = lws_get_vhost(wsi) ? lws_vhost_user(lws_get_vhost(wsi)) : running;
    lin_web_peer *p = session;
    switch (reason) {
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        if (w && w->context && !w->closing && atomic_load(&w->woken)) take_turn(w);
        return 0;
    case LWS_CALLBACK_WSI_CREATE:
        if (w) w->n_connections++;
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        if (w) leave_silent(w, wsi);
        if (w) closed(w);
        return 0;
    case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
        if (w) enter_silent(w, wsi);
        return 0;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        // HTTP/2 is offered (Java's client does so). Without an upgrade that it knows, libwebsockets answers in HTTP/1.1.
        if (!in) return 0;
        if (strcasecmp(in, "websocket") == 0) return check_subprotocols(w, wsi);
        *(char *)in = 0;
        return 0;
    case LWS_CALLBACK_HTTP: return open_peer(w, p, wsi, 0);
    case LWS_CALLBACK_HTTP_BODY:
        if (p && p->linger_until) return discard(&p->discarded, n, p->linger_until);
        if (p && p->web) give(p, in, n, 1, 0);
        return 0;
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        if (p && p->linger_until) return -1;
        if (p) p->has_body = 0;
        lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
        if (p && p->known) w->handlers.complete(w->handlers.context, p->user);
        return 0;
    case LWS_CALLBACK_HTTP_WRITEABLE: return p && p->web ? write_reply(p) : 0;
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION: return open_peer(w, p, wsi, 1);
    case LWS_CALLBACK_RECEIVE: {
        const int last = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;
        if (p && p->web) note_alive(p);
        if (p && p->web && !p->closing) give(p, in, n, lws_frame_is_binary(wsi), last);
        return 0;
    }
    case LWS_CALLBACK_SERVER_WRITEABLE: return p && p->known ? write_message(p) : 0;
    case LWS_CALLBACK_TIMER: return p && p->web ? look_after_paused(p) : 0;
    case LWS_CALLBACK_HTTP_DROP_PROTOCOL: // an upgrade to a WebSocket drops the HTTP side of the same connection
        if (p && !p->websocket) close_peer(p);
        return 0;
    case LWS_CALLBACK_WS_SERVER_DROP_PROTOCOL: // from version 4.3 on this comes before our close frame is sent
        if (p && !p->closing) close_peer(p);
        return 0;
    case LWS_CALLBACK_CLOSED_HTTP:
    case LWS_CALLBACK_CLOSED: close_peer(p); return 0;
    default: return 0; // among them signs of TLS and of connections that have not asked for anything yet
    }
}

/* ---- connections ----------------------------------------------------------------------------------------------------------- */

// Not 0: the connection ends.
static int refuse_head(head *h, int fd, int status, const char *why)
{
    char answer[LIN_HEAD_ANSWER];
    const size_t n = lin_head_refusal(status, why, answer);
    if (send(fd, answer, n, MSG_NOSIGNAL) < (ssize_t)n) return -1; // a new connection's send buffer has room for it
    shutdown(fd, SHUT_WR);
    h->linger_until = lws_now_usecs() + LINGER_US;
    return 0;
}

// Hands the socket to libwebsockets with the last byte of the head still unread: if the bytes passed along with the socket
// complete the request, libwebsockets takes them for the body too. Not 0: the connection ends here.
static int read_head(lin_web *w, head *h, int fd)
{
    char passed[LIN_HEAD_PASSED], *const to = h->bytes + h->n;
    const char *why = "the headers are too long";
    size_t n_passed = 0;
    const ssize_t seen = recv(fd, to, LIN_HEAD_MOST - h->n, h->linger_until ? 0 : MSG_PEEK);
    if (seen <= 0) return seen < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    if (h->linger_until) return discard(&h->discarded, (size_t)seen, h->linger_until);
    const size_t n_head = lin_head_length(h->bytes, h->n + (size_t)seen), n = n_head ? n_head - 1 - h->n : (size_t)seen;
    if (recv(fd, to, n, 0) != (ssize_t)n) return -1;
    h->n += n;
    if (!n_head && h->n < LIN_HEAD_MOST) return 0;
    const int refusal = n_head ? lin_head_read(h->bytes, n_head, passed, &n_passed, &why) : 431;
    if (refusal) {
        h->n = 0;
        return refuse_head(h, fd, refusal, why);
    }
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own >= 0) lws_adopt_socket_vhost_readbuf(w->vhost, own, passed, n_passed - 1);
    return -1;
}

// Until the head of its request is complete, a connection is a raw file to libwebsockets.
static int on_head(struct lws *wsi, enum lws_callback_reasons reason, void *session, void *in, size_t n)
{
    lin_web *w = lws_get_vhost(wsi) ? lws_vhost_user(lws_get_vhost(wsi)) : NULL;
    head *h = session;
    (void)in, (void)n;
    switch (reason) {
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION: return -1; // this protocol is not for clients
    case LWS_CALLBACK_RAW_ADOPT_FILE:
        h->bytes = lin_alloc(LIN_HEAD_MOST, 1);
        if (!w || !h->bytes) return -1;
        enter_silent(w, wsi);
        lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, PATIENCE_S);
        return 0;
    case LWS_CALLBACK_RAW_RX_FILE: return w && !w->closing ? read_head(w, h, lws_get_socket_fd(wsi)) : -1;
    case LWS_CALLBACK_RAW_CLOSE_FILE:
        lin_free(h->bytes);
        h->bytes = NULL;
        return 0;
    default: return 0;
    }
}

static void adopt(lin_web *w, int fd)
{
    const lws_sock_file_fd_type file = {.filefd = fd};
    if (w->has_tls) lws_adopt_socket_vhost(w->vhost, fd); // closes fd on failure
    else lws_adopt_descriptor_vhost(w->vhost, LWS_ADOPT_RAW_FILE_DESC, file, HEADS, NULL);
}

// The listening socket is a raw file to libwebsockets; we accept connections one by one. A WebSocket client could name this
// protocol: it is refused.
static int on_listening(struct lws *wsi, enum lws_callback_reasons reason, void *session, void *in, size_t n)
{
    lin_web *w = lws_get_vhost(wsi) ? lws_vhost_user(lws_get_vhost(wsi)) : NULL;
    (void)session, (void)in, (void)n;
    if (reason == LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION) return -1;
    if (reason != LWS_CALLBACK_RAW_RX_FILE || !w || w->closing) return 0;
    for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
        if (w->n_connections >= w->most_connections) {
            stop_accepting(w, "as many as the limit of open files allows");
            return 0;
        }
        const int fd = accept(w->socket, NULL, NULL);
        if (fd < 0) {
            if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) stop_accepting(w, strerror(errno));
            return 0;
        }
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        adopt(w, fd);
    }
    return 0;
}

// A socket that listens; -1: errno or *why says why not.
static int listen_on(const char *host, int port, const char **why)
{
    char service[16];
    struct addrinfo *found, how = {.ai_family = host ? AF_UNSPEC : AF_INET6, .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    snprintf(service, sizeof service, "%d", port);
    for (int family = 0; family < 2; family++) { // on all addresses: of IPv6, which IPv4's are part of; else of IPv4
        const int wrong = getaddrinfo(host, service, &how, &found);
        *why = wrong ? gai_strerror(wrong) : NULL;
        for (const struct addrinfo *a = wrong ? NULL : found; a; a = a->ai_next) {
            const int fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
            if (fd < 0) continue;
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
            if (a->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){host != NULL}, sizeof(int));
            if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) {
                freeaddrinfo(found);
                return fd;
            }
            const int number = errno;
            close(fd);
            errno = number;
        }
        if (!wrong) freeaddrinfo(found);
        if (host) break;
        how.ai_family = AF_INET;
    }
    return -1;
}

static int take_over(lin_web *w, int socket)
{
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    int listens = 0;
    socklen_t size = sizeof listens;
    if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens) return 0;
    if (getsockname(socket, (struct sockaddr *)&at, &n) == 0) {
        if (at.ss_family == AF_INET) w->port = ntohs(((const struct sockaddr_in *)(const void *)&at)->sin_port);
        if (at.ss_family == AF_INET6) w->port = ntohs(((const struct sockaddr_in6 *)(const void *)&at)->sin6_port);
    }
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    w->socket = socket;
    const lws_sock_file_fd_type file = {.filefd = socket};
    w->listening = lws_adopt_descriptor_vhost(w->vhost, LWS_ADOPT_RAW_FILE_DESC, file, LISTENING, NULL);
    return w->listening != NULL;
}

// Drops libwebsockets' own log: it is about its functions, and any client could flood it.
static void be_silent(int level, const char *line) { (void)level, (void)line; }

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static void close_web(lin_web *w)
{
    if (!w) return;
    w->closing = 1;
    struct lws_context *context = w->context;
    if (context) lws_context_destroy(context);
    running = NULL;
    lin_free(w->message);
    lin_free(w);
}

// The number of connections that leaves enough files for the rest of the program.
static int allow_files(int peers)
{
    struct rlimit limit;
    const rlim_t wanted = (rlim_t)peers + MOST_SILENT + KEPT_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return peers + MOST_SILENT;
    if (limit.rlim_cur < wanted && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    const rlim_t kept = limit.rlim_cur / 4 < KEPT_FILES ? limit.rlim_cur / 4 : KEPT_FILES;
    return limit.rlim_cur - kept < 1 << 20 ? (int)(limit.rlim_cur - kept) : 1 << 20;
}

static lin_status open_web(const lin_web_options *o, const lin_web_handlers *handlers, lin_web **web, lin_error *err)
{
    *web = NULL;
    if (o->certificate && lin_tls_check(o->certificate, o->key, err) != LIN_OK) return err->status;
    lin_web *w = lin_calloc(1, sizeof *w);
    if (!w) return lin_no_memory(err, "a server", sizeof *w);
    w->handlers = *handlers;
    w->most_connections = allow_files(o->peers);
    w->most_silent = w->most_connections / 2 < MOST_SILENT ? w->most_connections / 2 + 1 : MOST_SILENT;
    w->protocols[0] = (struct lws_protocols){
        .name = "linnet", .callback = on_event, .per_session_data_size = sizeof(lin_web_peer), .rx_buffer_size = PIECE};
    w->protocols[1] = w->protocols[0];
    w->protocols[1].name = "realtime"; // named by OpenAI's browser clients
    w->protocols[2] = (struct lws_protocols){.name = LISTENING, .callback = on_listening};
    w->protocols[3] = (struct lws_protocols){.name = HEADS, .callback = on_head, .per_session_data_size = sizeof(head)};
    w->has_tls = o->certificate != NULL;
    w->alive.secs_since_valid_ping = (uint16_t)(o->ping_s ? o->ping_s : 1);
    w->alive.secs_since_valid_hangup = (uint16_t)(2 * w->alive.secs_since_valid_ping);
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
    if (o->certificate) info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    info.timeout_secs = PATIENCE_S;
    info.pt_serv_buf_size = PIECE;
    info.max_http_header_data = 8192;
    running = w;
    lws_set_log_level(0, be_silent);
    w->context = lws_create_context(&info);
    if (w->context) {
        info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
        info.protocols = w->protocols;
        info.vhost_name = "linnet";
        info.user = w;
        info.keepalive_timeout = 5;
        info.retry_and_idle_policy = &w->alive;
        info.alpn = "http/1.1";
        info.ssl_cert_filepath = o->certificate;
        info.ssl_private_key_filepath = o->key;
        w->vhost = lws_create_vhost(w->context, &info);
    }
    if (!w->vhost) {
        close_web(w);
        return lin_fail(err, LIN_IO, "cannot serve%s", o->certificate ? " with this certificate and key" : "");
    }
    const char *why = NULL;
    const int fd = o->socket ? o->socket : listen_on(o->host, o->port, &why);
    if (fd < 0) {
        lin_fail(err, LIN_IO, "cannot listen on %s:%d: %s", o->host ? o->host : "*", o->port, why ? why : strerror(errno));
        close_web(w);
        return LIN_IO;
    }
    if (!take_over(w, fd)) {
        close_web(w);
        return lin_fail(err, LIN_IO, "cannot listen on the socket that was given");
    }
    take_turn(w);
    *web = w;
    return LIN_OK;
}

static int port(const lin_web *w) { return w->port; }

static void run(lin_web *w) { lws_service(w->context, 0); }

static void wake(lin_web *w)
{
    if (!atomic_exchange(&w->woken, 1)) lws_cancel_service(w->context);
}

static void want(lin_web_peer *p) { lws_callback_on_writable(p->wsi); }

static void pause_peer(lin_web_peer *p, int paused)
{
    lws_rx_flow_control(p->wsi, !paused);
    lws_set_timer_usecs(p->wsi, paused ? PAUSED_US : LWS_SET_TIMER_USEC_CANCEL);
}

static void end_peer(lin_web_peer *p, int code, const char *reason)
{
    if (p->closing) return;
    p->closing = 1;
    p->code = code;
    snprintf(p->reason, sizeof p->reason, "%s", reason);
    lws_callback_on_writable(p->wsi);
}

static void drop(lin_web_peer *p) { drop_wsi(p->wsi); }

static void expect(lin_web_peer *p, int seconds)
{
    if (!seconds) p->has_body = 0;
    if (!p->answered) lws_set_timeout(p->wsi, seconds ? PENDING_TIMEOUT_HTTP_CONTENT : NO_PENDING_TIMEOUT, seconds);
}

static void allow(lin_web_peer *p) { copy(p->wsi, WSI_TOKEN_ORIGIN, p->origin, sizeof p->origin); }

static const lin_web_transport table = {.open = open_web, .port = port, .run = run,
                                        .wake = wake, .close = close_web, .reply = reply, .want = want, .pause = pause_peer,
                                        .end = end_peer, .drop = drop, .expect = expect, .allow = allow, .make_key = lin_seal_key,
                                        .seal = lin_seal, .unseal = lin_unseal};

__attribute__((visibility("default"))) int lin_web_interface(void);
__attribute__((visibility("default"))) const lin_web_transport *lin_web_get(void);

int lin_web_interface(void) { return LIN_WEB_INTERFACE; }
const lin_web_transport *lin_web_get(void) { return &table; }
