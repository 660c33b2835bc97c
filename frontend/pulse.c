// pulse.c - asks a PulseAudio server for its sources; see pulse.h.

#include "frontend/pulse.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

// What is used of libpulse's headers, whose structures and numbers are those of libpulse.so.0 for good. Only first fields are
// declared: the library makes these structures.
enum { NO_AUTOSPAWN = 1, READY = 4, FAILED = 5 }; // pa_context_flags_t; pa_context_state_t, above FAILED: terminated

typedef struct sample_spec {
    int format;
    uint32_t rate;
    uint8_t channels;
} sample_spec;

typedef struct source_info {
    const char *name;
    uint32_t index;
    const char *description;
    sample_spec spec;
} source_info;

typedef struct server_info {
    const char *user_name, *host_name, *server_version, *server_name; // "pulseaudio", "PulseAudio (on PipeWire 0.3.65)"
} server_info;

typedef void (*source_callback)(void *context, const source_info *info, int last, void *user);
typedef void (*server_callback)(void *context, const server_info *info, void *user);

#define FUNCTIONS(X)                                                                                                             \
    X(mainloop_new, void *, (void))                                                                                              \
    X(mainloop_get_api, void *, (void *loop))                                                                                    \
    X(mainloop_prepare, int, (void *loop, int timeout_us))                                                                       \
    X(mainloop_poll, int, (void *loop))                                                                                          \
    X(mainloop_dispatch, int, (void *loop))                                                                                      \
    X(mainloop_free, void, (void *loop))                                                                                         \
    X(context_new, void *, (void *api, const char *name))                                                                        \
    X(context_connect, int, (void *context, const char *server, int flags, const void *spawn))                                   \
    X(context_get_state, int, (const void *context))                                                                             \
    X(context_disconnect, void, (void *context))                                                                                 \
    X(context_unref, void, (void *context))                                                                                      \
    X(context_get_source_info_list, void *, (void *context, source_callback seen, void *user))                                   \
    X(context_get_server_info, void *, (void *context, server_callback seen, void *user))                                        \
    X(operation_unref, void, (void *operation))

typedef struct functions {
#define MEMBER(name, result, parameters) result(*name) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
} functions;

typedef struct question {
    functions pa;
    void *loop, *context;
    int64_t deadline_ns;
    lin_pulse_source *list;
    size_t capacity;
    int n, sources_done, server_done;
    char *system;
    size_t system_size;
    lin_status status;
} question;

// Whether all functions are there. The library stays loaded: ALSA's plugin will use it too.
static int load(functions *pa)
{
    const char *other = getenv("LINNET_PULSE");
    if (other && !*other) return 0;
    void *library = dlopen(other ? other : "libpulse.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    int all = 1;
#define FIND(name, result, parameters)                                                                                           \
    {                                                                                                                            \
        void *at = dlsym(library, "pa_" #name);                                                                                  \
        memcpy(&pa->name, &at, sizeof at);                                                                                       \
        all &= at != NULL;                                                                                                       \
    }
    FUNCTIONS(FIND)
#undef FIND
    return all;
}

static void on_source(void *context, const source_info *info, int last, void *user)
{
    question *q = user;
    (void)context;
    if (last) q->sources_done = 1; // or an error, below 0
    if (last || !info || !info->name || strlen(info->name) >= sizeof q->list->name || q->status != LIN_OK) return;
    q->status = lin_grow(&q->list, &q->capacity, (size_t)q->n + 1, sizeof *q->list, "a list of devices", NULL);
    if (q->status != LIN_OK) return;
    lin_pulse_source *to = &q->list[q->n++];
    snprintf(to->name, sizeof to->name, "%s", info->name);
    snprintf(to->about, sizeof to->about, "%s", info->description ? info->description : "");
    to->rate_hz = (int)info->spec.rate;
    to->channels = info->spec.channels;
}

static void on_server(void *context, const server_info *info, void *user)
{
    question *q = user;
    (void)context;
    const char *name = info && info->server_name ? info->server_name : "";
    snprintf(q->system, q->system_size, "%s", strstr(name, "PipeWire") ? "PipeWire" : "PulseAudio");
    q->server_done = 1;
}

// Waits for an event of the server, but not beyond the deadline.
static int turn(const question *q)
{
    const int64_t left = q->deadline_ns - lin_now_ns();
    return left > 0 && q->pa.mainloop_prepare(q->loop, (int)(left / 1000)) >= 0 && q->pa.mainloop_poll(q->loop) >= 0 &&
           q->pa.mainloop_dispatch(q->loop) >= 0 && q->pa.context_get_state(q->context) < FAILED;
}

static void ask(question *q)
{
    if (q->pa.context_connect(q->context, NULL, NO_AUTOSPAWN, NULL) < 0) return;
    while (q->pa.context_get_state(q->context) != READY)
        if (!turn(q)) return;
    void *waits[] = {q->pa.context_get_server_info(q->context, on_server, q),
                     q->pa.context_get_source_info_list(q->context, on_source, q)};
    while (!(q->sources_done && q->server_done) && turn(q)) continue;
    for (int i = 0; i < 2; i++)
        if (waits[i]) q->pa.operation_unref(waits[i]);
}

lin_status lin_pulse_list(lin_pulse_source **list, int *n, char *system, size_t capacity, int timeout_ms, lin_error *err)
{
    question q = {.deadline_ns = lin_now_ns() + timeout_ms * (int64_t)1000000, .system = system, .system_size = capacity};
    *list = NULL;
    *n = 0;
    if (!load(&q.pa)) return LIN_OK;
    q.loop = q.pa.mainloop_new();
    q.context = q.loop ? q.pa.context_new(q.pa.mainloop_get_api(q.loop), "linnet") : NULL;
    if (q.context) {
        ask(&q);
        q.pa.context_disconnect(q.context);
        q.pa.context_unref(q.context);
    }
    if (q.loop) q.pa.mainloop_free(q.loop);
    if (q.status != LIN_OK || !(q.sources_done && q.server_done)) {
        lin_free(q.list);
        return q.status == LIN_OK ? LIN_OK : lin_no_memory(err, "a list of devices", sizeof *q.list);
    }
    *list = q.list;
    *n = q.n;
    return LIN_OK;
}
