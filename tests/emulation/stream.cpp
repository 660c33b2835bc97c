// Streams, events and graphs. Work is queued per stream and done only when a thread waits for it, in the order of its stream and
// after the events it waits for.
#include "tests/emulation/internal.h"

#include <deque>
#include <memory>
#include <set>
#include <vector>

struct CUgraph_st {
    std::vector<std::function<void()>> works;
};

struct CUgraphExec_st {
    std::vector<std::function<void()>> works;
};

struct CUevent_st {
    cudaStream_t stream; // where it was last recorded; NULL: never
    uint64_t ticket;
    CUgraph_st *graph; // recorded in a capture
    uint64_t after;    // operations of the captured stream before it
};

struct operation {
    uint64_t ticket;
    std::function<void()> work;
    cudaStream_t other; // wait until `upto` is done there
    uint64_t upto;
};

struct CUstream_st {
    bool blocking;
    std::deque<operation> queue;
    CUgraph_st *graph; // being captured
    bool origin, invalid;
    uint64_t captured, joined;
};

static std::set<cudaStream_t> streams;
static unsigned long n_events, n_graphs;
static uint64_t tickets;

unsigned long emulated_objects(void) { return streams.size() + n_events + n_graphs; }

static void run_until(cudaStream_t s, uint64_t ticket)
{
    if (s->queue.empty() || s->queue.front().ticket > ticket) return;
    emulated_window window;
    while (!s->queue.empty() && s->queue.front().ticket <= ticket) {
        operation o = std::move(s->queue.front());
        s->queue.pop_front();
        if (o.other && streams.count(o.other)) run_until(o.other, o.upto);
        if (o.work && emulated_alive() == cudaSuccess) o.work();
    }
}

void emulated_drain(void)
{
    for (cudaStream_t s : streams) run_until(s, UINT64_MAX);
}

// The default stream waits for all others that do not refuse it.
static void drain_blocking(void)
{
    for (cudaStream_t s : streams)
        if (s->blocking) run_until(s, UINT64_MAX);
}

static void add(cudaStream_t s, operation o)
{
    o.ticket = ++tickets;
    s->queue.push_back(std::move(o));
    if (emulated_setting(EMULATION_EAGER) || s->queue.size() > 4096) run_until(s, UINT64_MAX);
}

cudaError_t emulated_queue(cudaStream_t s, std::function<void()> work)
{
    if (!s) {
        drain_blocking();
        emulated_window window;
        work();
        return emulated_alive();
    }
    if (!streams.count(s)) return cudaErrorInvalidResourceHandle;
    if (s->graph) {
        if (s->invalid) return cudaErrorStreamCaptureInvalidated;
        s->graph->works.push_back(std::move(work));
        s->captured++;
        return cudaSuccess;
    }
    add(s, {0, std::move(work), NULL, 0});
    return cudaSuccess;
}

static bool capturing(void)
{
    for (cudaStream_t s : streams)
        if (s->graph) return true;
    return false;
}

void emulated_capture_invalidate(void)
{
    for (cudaStream_t s : streams)
        if (s->graph) s->invalid = true;
}

// Waiting is not allowed during a capture.
static cudaError_t may_wait(cudaStream_t s)
{
    if (emulated_alive() != cudaSuccess) return emulated_alive();
    if (s && !streams.count(s)) return cudaErrorInvalidResourceHandle;
    if (s ? s->graph != NULL : capturing()) {
        emulated_capture_invalidate();
        return cudaErrorStreamCaptureUnsupported;
    }
    return cudaSuccess;
}

// ---- streams ----------------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    emulated_guard lock(emulated_lock);
    *stream = NULL;
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (emulated_allocation_fails()) return emulated_error(cudaErrorMemoryAllocation);
    *stream = new CUstream_st();
    (*stream)->blocking = !(flags & cudaStreamNonBlocking);
    streams.insert(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    emulated_guard lock(emulated_lock);
    if (!streams.count(s)) return emulated_error(cudaErrorInvalidResourceHandle);
    run_until(s, UINT64_MAX);
    streams.erase(s);
    delete s;
    return emulated_error(emulated_alive());
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    emulated_guard lock(emulated_lock);
    const cudaError_t error = may_wait(s);
    if (error != cudaSuccess) return emulated_error(error);
    if (s) run_until(s, UINT64_MAX);
    else drain_blocking();
    return emulated_error(emulated_alive());
}

// ---- events -----------------------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    emulated_guard lock(emulated_lock);
    *event = NULL;
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (emulated_allocation_fails()) return emulated_error(cudaErrorMemoryAllocation);
    *event = new CUevent_st();
    n_events++;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    emulated_guard lock(emulated_lock);
    if (!event) return emulated_error(cudaErrorInvalidResourceHandle);
    delete event;
    n_events--;
    return emulated_error(emulated_alive());
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t s)
{
    emulated_guard lock(emulated_lock);
    if (!event || (s && !streams.count(s))) return emulated_error(cudaErrorInvalidResourceHandle);
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (!s) {
        drain_blocking();
        event->stream = NULL;
        return cudaSuccess;
    }
    event->stream = s;
    event->graph = s->graph;
    event->after = s->captured;
    if (s->graph) return cudaSuccess;
    event->ticket = tickets;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    emulated_guard lock(emulated_lock);
    if (!event) return emulated_error(cudaErrorInvalidResourceHandle);
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (event->graph) {
        emulated_capture_invalidate();
        return emulated_error(cudaErrorStreamCaptureUnsupported);
    }
    if (event->stream && streams.count(event->stream)) run_until(event->stream, event->ticket);
    return emulated_error(emulated_alive());
}

// A stream that waits for an event of a captured stream is captured too.
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned)
{
    emulated_guard lock(emulated_lock);
    if (!event || !s || !streams.count(s)) return emulated_error(cudaErrorInvalidResourceHandle);
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (!event->stream || !streams.count(event->stream)) return cudaSuccess;
    if (event->graph) {
        if (!s->graph) {
            s->graph = event->graph;
            s->origin = false;
            s->captured = s->joined = 0;
        } else if (s->graph != event->graph) {
            return emulated_error(cudaErrorStreamCaptureUnsupported);
        }
        event->stream->joined = event->after;
        return cudaSuccess;
    }
    if (s->graph) return emulated_error(cudaErrorStreamCaptureUnsupported);
    if (event->stream != s) add(s, {0, NULL, event->stream, event->ticket});
    return cudaSuccess;
}

// ---- graphs -----------------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
    emulated_guard lock(emulated_lock);
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (!s || !streams.count(s) || s->graph) return emulated_error(cudaErrorStreamCaptureUnsupported);
    s->graph = new CUgraph_st();
    n_graphs++;
    s->origin = true;
    s->invalid = false;
    s->captured = s->joined = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
    emulated_guard lock(emulated_lock);
    *graph = NULL;
    if (!s || !streams.count(s) || !s->graph || !s->origin) return emulated_error(cudaErrorStreamCaptureUnsupported);
    CUgraph_st *made = s->graph;
    bool unjoined = false, invalid = false;
    for (cudaStream_t other : streams) {
        if (other->graph != made) continue;
        if (other != s && other->joined < other->captured) unjoined = true;
        invalid |= other->invalid;
        other->graph = NULL;
        other->invalid = false;
    }
    if (!unjoined && !invalid && emulated_alive() == cudaSuccess) {
        *graph = made;
        return cudaSuccess;
    }
    delete made;
    n_graphs--;
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    return emulated_error(invalid ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    emulated_guard lock(emulated_lock);
    *exec = NULL;
    if (!graph) return emulated_error(cudaErrorInvalidValue);
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (emulated_allocation_fails()) return emulated_error(cudaErrorMemoryAllocation);
    *exec = new CUgraphExec_st();
    (*exec)->works = graph->works;
    n_graphs++;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    emulated_guard lock(emulated_lock);
    if (!exec) return emulated_error(cudaErrorInvalidValue);
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    for (const auto &work : exec->works) {
        const cudaError_t error = emulated_queue(s, work);
        if (error != cudaSuccess) return emulated_error(error);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    emulated_guard lock(emulated_lock);
    if (!exec) return emulated_error(cudaErrorInvalidValue);
    delete exec;
    n_graphs--;
    return emulated_error(emulated_alive());
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    emulated_guard lock(emulated_lock);
    if (!graph) return emulated_error(cudaErrorInvalidValue);
    delete graph;
    n_graphs--;
    return emulated_error(emulated_alive());
}

// ---- copies -----------------------------------------------------------------------------------------------------------------

static void count(const char *name, const std::function<void()> &work)
{
    const bool counts = emulated_traffic_begin();
    work();
    if (counts) emulated_traffic_end(name);
}

static bool inside(const void *at, size_t bytes, emulated_place *place)
{
    size_t left = 0;
    *place = emulated_where(at, &left);
    return *place == EMULATED_PAGEABLE || left >= bytes;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s)
{
    emulated_guard lock(emulated_lock);
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (bytes == 0) return cudaSuccess;
    emulated_place there, here;
    if (!to || !from || !inside(to, bytes, &there) || !inside(from, bytes, &here)) return emulated_error(cudaErrorInvalidValue);
    // Page-locked memory counts as either.
    if (there == (kind == cudaMemcpyDeviceToHost ? EMULATED_DEVICE : EMULATED_PAGEABLE) ||
        here == (kind == cudaMemcpyHostToDevice ? EMULATED_DEVICE : EMULATED_PAGEABLE))
        return emulated_error(cudaErrorInvalidValue);
    const bool captured = s && streams.count(s) && s->graph;
    const char *name = here == EMULATED_DEVICE ? there == EMULATED_DEVICE ? "copy" : "download" : "upload";
    const auto move = [=](const void *source) { memmove(to, source, bytes); };
    std::function<void()> work = [=]() { count(name, [=]() { move(from); }); };
    if (here == EMULATED_PAGEABLE && !captured) { // copied at once
        auto taken = std::make_shared<std::vector<unsigned char>>((const unsigned char *)from, (const unsigned char *)from + bytes);
        work = [=]() { count(name, [=]() { move(taken->data()); }); };
    }
    const cudaError_t error = emulated_queue(s, work);
    if (error == cudaSuccess && there == EMULATED_PAGEABLE && s && !captured) run_until(s, UINT64_MAX); // returns after the copy
    return emulated_error(error == cudaSuccess ? emulated_alive() : error);
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t s)
{
    emulated_guard lock(emulated_lock);
    if (emulated_alive() != cudaSuccess) return emulated_error(emulated_alive());
    if (bytes == 0) return cudaSuccess;
    emulated_place there;
    if (!to || !inside(to, bytes, &there) || there == EMULATED_PAGEABLE) return emulated_error(cudaErrorInvalidValue);
    return emulated_error(emulated_queue(s, [=]() { count("fill", [=]() { memset(to, byte, bytes); }); }));
}

