// nccl.cpp - a pretended NCCL for the emulated GPU: processes of one machine. Every pair of ranks has a socket, whose name is in a folder that
// the unique id names. A group's transfers are queued on its stream and move together, as NCCL's do, so that a wrong order, a forgotten
// wait or different sizes show. LINNET_EMULATION_NCCL=no: there is none.
#include <cuda_runtime.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "tests/emulation/internal.h"

struct unique_id {
    char bytes[128];
};

struct nccl_comm {
    int rank, size, listener;
    std::vector<int> sockets;
    bool lost;
};

struct transfer {
    nccl_comm *comm;
    cudaStream_t stream;
    int peer, receives;
    char *data;
    size_t bytes, done;
};

static std::vector<transfer> group;
static bool in_group;

static int get_unique_id(unique_id *id)
{
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "/tmp/linnet-nccl-XXXXXX");
    return mkdtemp(id->bytes) ? 0 : 2;
}

static sockaddr_un address(const unique_id &id, int rank)
{
    sockaddr_un a;
    memset(&a, 0, sizeof a);
    a.sun_family = AF_UNIX;
    snprintf(a.sun_path, sizeof a.sun_path, "%.80s/%d", id.bytes, rank);
    return a;
}

// Connects to all lower ranks, and accepts all higher ones, which send their number.
static int comm_init_rank(nccl_comm **out, int size, unique_id id, int rank)
{
    nccl_comm *c = new nccl_comm();
    c->rank = rank;
    c->size = size;
    c->sockets.assign((size_t)size, -1);
    const sockaddr_un own = address(id, rank);
    c->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(c->listener, (const sockaddr *)&own, sizeof own) || listen(c->listener, size)) return 2;
    for (int r = 0; r < rank; r++) {
        const sockaddr_un other = address(id, r);
        const int s = socket(AF_UNIX, SOCK_STREAM, 0);
        for (int tries = 0; connect(s, (const sockaddr *)&other, sizeof other); tries++) {
            if (tries > 2000) return 2;
            usleep(5000);
        }
        if (write(s, &rank, sizeof rank) != sizeof rank) return 2;
        c->sockets[(size_t)r] = s;
    }
    for (int r = rank + 1; r < size; r++) {
        int number = 0;
        const int s = accept(c->listener, NULL, NULL);
        if (s < 0 || read(s, &number, sizeof number) != sizeof number) return 2;
        c->sockets[(size_t)number] = s;
    }
    unlink(own.sun_path);
    rmdir(id.bytes); // the last one succeeds
    *out = c;
    return 0;
}

static int comm_destroy(nccl_comm *c)
{
    close(c->listener);
    for (int s : c->sockets)
        if (s >= 0) close(s);
    delete c;
    return 0;
}

// Moves what the sockets take and give. Returns whether everything has arrived.
static bool move(std::vector<transfer> &all)
{
    bool complete = true;
    for (transfer &t : all) {
        nccl_comm *c = t.comm;
        if (t.done == t.bytes || c->lost) continue;
        const int s = c->sockets[(size_t)t.peer];
        const ssize_t n = t.receives ? recv(s, t.data + t.done, t.bytes - t.done, MSG_DONTWAIT)
                                     : send(s, t.data + t.done, t.bytes - t.done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) t.done += (size_t)n;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) c->lost = true; // the peer has ended
        complete &= t.done == t.bytes;
    }
    return complete;
}

static int group_start(void)
{
    in_group = true;
    return 0;
}

static int group_end(void)
{
    std::vector<transfer> all = group;
    group.clear();
    in_group = false;
    if (all.empty()) return 0;
    emulated_guard lock(emulated_lock);
    const cudaError_t error = emulated_queue(all[0].stream, [all]() mutable {
        while (!move(all)) usleep(100);
    });
    return error == cudaSuccess ? 0 : 1;
}

static int add(char *data, size_t count, int type, int peer, nccl_comm *c, cudaStream_t stream, int receives)
{
    if (!in_group || peer < 0 || peer >= c->size || peer == c->rank || count == 0) return 4;
    group.push_back({c, stream, peer, receives, data, count * (type == 7 ? 4 : 1), 0});
    return 0;
}

static int send_to(const void *data, size_t count, int type, int peer, nccl_comm *c, cudaStream_t stream)
{
    return add((char *)const_cast<void *>(data), count, type, peer, c, stream, 0);
}

static int receive(void *data, size_t count, int type, int peer, nccl_comm *c, cudaStream_t stream)
{
    return add((char *)data, count, type, peer, c, stream, 1);
}

static const char *error_string(int result) { return result == 2 ? "unhandled system error" : result == 4 ? "invalid argument" : "an error"; }

// A function of nccl.h by its name; NULL if there is none.
void *emulated_nccl(const char *name);
void *emulated_nccl(const char *name)
{
    const char *wanted = getenv("LINNET_EMULATION_NCCL");
    if (wanted && strcmp(wanted, "no") == 0) return NULL;
    static const struct {
        const char *name;
        void *function;
    } all[] = {{"ncclGetUniqueId", (void *)get_unique_id}, {"ncclCommInitRank", (void *)comm_init_rank},
               {"ncclCommDestroy", (void *)comm_destroy},  {"ncclCommAbort", (void *)comm_destroy},
               {"ncclSend", (void *)send_to},              {"ncclRecv", (void *)receive},
               {"ncclGroupStart", (void *)group_start},    {"ncclGroupEnd", (void *)group_end},
               {"ncclGetErrorString", (void *)error_string}};
    for (const auto &f : all)
        if (strcmp(f.name, name) == 0) return f.function;
    return NULL;
}
