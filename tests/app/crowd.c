// crowd.c - a tool for benchmarks and tests of linnet serve: very many connections from one process, on the loopback interface.
//
//   crowd PORT idle N SECONDS       N WebSockets without sound; they answer pings
//   crowd PORT silent N SECONDS     N connections that send nothing; crowd PORT half N SECONDS: half a request
//   crowd PORT hostile N SECONDS    N connections that misbehave, each in one of five ways, again and again:
//                                   half a request and nothing more; a request, or the body of an upload, of one byte a second;
//                                   frames of random bytes; sound as fast as it is taken, from a client that reads nothing
//   crowd PORT speak N SECONDS FILE [CONFIG]
//                                   N streams of 16 kHz 16-bit speech in pieces of 40 ms, each from another place of the file on,
//                                   as fast as it is spoken; then the end. CONFIG: the first message of each. Every minute, and
//                                   in the end, what the streams were told
//
// Prints how many could be opened, how often they were opened, and how many are left in the end.

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { IDLE, HALF, SLOW, SLOW_BODY, NOISE, DEAF, KINDS, SPEAK, SILENT };
enum { PIECE = 1280, PIECE_MS = 40, HEAD = 8, HEARD = 1 << 18, SLOWEST_MS = 20000 };

static const char shake[] = "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
static const char post[] = "POST /v1/align HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
                           "Content-Length: 100000\r\n\r\n";

typedef struct connection {
    int kind;
    size_t sent; // of the request; of a speaker, of the frame that is sent
    double next; // when the next byte, or frame, is sent
    // a speaker
    size_t at; // in the file
    long long left; // pieces; 0: the end is sent; -1: it has been
    unsigned char frame[HEAD + PIECE];
    size_t n;  // bytes of the frame
    unsigned char *heard; // [HEARD] of messages that are not complete
    int pong; // to be sent behind the frame
    size_t n_heard, unheard; // unheard: bytes to come of a binary message, which is thrown away
} connection;

static int port;
static long long opened;
static uint32_t state = 1;

// Of all speakers: how late pieces were sent, and the latencies that the server told, each in milliseconds.
typedef struct counts {
    long long n, at[SLOWEST_MS + 1];
} counts;

static counts late, latency, latency_of_minute;
static long long partials, finals, ends, failures;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say(int fd, const void *bytes, size_t n)
{
    if (send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EPIPE) shutdown(fd, SHUT_RDWR);
}

// -1 if that fails. The request of an idle client is sent, and its answer waited for.
static int join(connection *c)
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(0x7f000001)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    char answer[2048] = "";
    int bad = connect(fd, (const struct sockaddr *)&address, sizeof address) != 0;
    c->sent = 0;
    c->next = 0;
    if (!bad && c->kind == HALF) say(fd, shake, 30);
    if (!bad && c->kind == SLOW_BODY) say(fd, post, sizeof post - 1);
    const int asks = c->kind == IDLE || (c->kind >= NOISE && c->kind != SILENT);
    if (!bad && asks) say(fd, shake, sizeof shake - 1);
    if (!bad && asks) bad = recv(fd, answer, sizeof answer - 1, 0) <= 0 || !strstr(answer, " 101 ");
    if (bad) close(fd);
    else opened++;
    return bad ? -1 : fd;
}

static void misbehave(connection *c, int fd, double time)
{
    unsigned char bytes[1400] = {0x82, 0xfe, 1396 >> 8, 1396 & 255, 0, 0, 0, 0}; // a binary frame
    if (c->kind == NOISE || c->kind == DEAF) {
        for (size_t i = c->kind == NOISE ? 0 : 8; i < sizeof bytes; i++) {
            state = state * 1664525u + 1013904223u;
            bytes[i] = (unsigned char)(state >> 24);
        }
        for (int i = 0; i < (c->kind == DEAF ? 50 : 1); i++) say(fd, bytes, sizeof bytes);
    } else if (time > c->next && (c->kind == SLOW || c->kind == SLOW_BODY)) {
        c->next = time + 1;
        say(fd, c->kind == SLOW ? shake + c->sent++ % (sizeof shake - 3) : "x", 1);
    }
}

// 0: the connection is over.
static int hear(const connection *c, int fd)
{
    unsigned char bytes[4096];
    if (c->kind == DEAF) return 1;
    const ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return 0;
    static const unsigned char pong[6] = {0x8a, 0x80, 1, 2, 3, 4};
    if (c->kind == IDLE && n > 1 && bytes[0] == 0x89) say(fd, pong, sizeof pong); // pings of the server are empty
    return !(c->kind == IDLE && n > 1 && bytes[0] == 0x88);
}

// Looks at all connections once.
static void turn(connection *all, struct pollfd *fds, int n, int hostile)
{
    const double time = now();
    for (int i = 0; i < n; i++) {
        if (fds[i].fd < 0 && hostile) fds[i].fd = join(&all[i]);
        if (fds[i].fd < 0) continue;
        if (hostile) misbehave(&all[i], fds[i].fd, time);
        if ((hostile || fds[i].revents) && !hear(&all[i], fds[i].fd)) {
            close(fds[i].fd);
            fds[i].fd = -1;
        }
    }
}

/* ---- speakers -------------------------------------------------------------------------------------------------------------- */

static void note(counts *c, double ms)
{
    c->n++;
    c->at[ms < 0 ? 0 : ms > SLOWEST_MS ? SLOWEST_MS : (int)ms]++;
}

static int percentile(const counts *c, double part)
{
    int ms = 0;
    for (long long before = c->at[0]; ms < SLOWEST_MS && (double)before < part * (double)c->n; before += c->at[ms]) ms++;
    return ms;
}

// A frame with a mask of zeros.
static void put_frame(connection *c, int code, const void *bytes, size_t n)
{
    const unsigned char head[HEAD] = {(unsigned char)(0x80 | code), 0xfe, (unsigned char)(n >> 8), (unsigned char)n};
    memcpy(c->frame, head, HEAD);
    memcpy(c->frame + HEAD, bytes, n);
    c->n = HEAD + n;
    c->sent = 0;
}

// 1 if the whole frame is sent.
static int send_frame(connection *c, int fd)
{
    const ssize_t n = c->sent < c->n ? send(fd, c->frame + c->sent, c->n - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (n > 0) c->sent += (size_t)n;
    return c->sent == c->n;
}

// Sends what is due.
static void speak(connection *c, int fd, const char *sound, size_t n_sound, double time)
{
    static const char end[] = "{\"type\":\"end\"}";
    while (send_frame(c, fd) && c->left >= 0 && time >= c->next) {
        if (c->pong) {
            static const unsigned char pong[6] = {0x8a, 0x80, 1, 2, 3, 4};
            memcpy(c->frame, pong, c->n = sizeof pong);
            c->pong = 0;
            c->sent = 0;
            continue;
        }
        if (c->left-- == 0) {
            put_frame(c, 1, end, sizeof end - 1);
            continue;
        }
        if (c->at + PIECE > n_sound) c->at = 0;
        put_frame(c, 2, sound + c->at, PIECE);
        c->at += PIECE;
        note(&late, (time - c->next) * 1e3);
        c->next += PIECE_MS * 1e-3;
    }
}

static void take_message(const char *text)
{
    const char *told = strstr(text, "\"latency_ms\":");
    if (strstr(text, "\"type\":\"partial\"")) {
        partials++;
        if (told) note(&latency, atof(told + 13)), note(&latency_of_minute, atof(told + 13));
    }
    finals += strstr(text, "\"type\":\"final\"") != NULL;
    if (!strstr(text, "\"type\":\"end\"")) return;
    ends += strstr(text, "\"reason\":\"ended\"") != NULL;
    failures += strstr(text, "\"reason\":\"ended\"") == NULL;
}

// Takes the frames that are complete; 0 behind a closing one, and for one that is too large.
static int take_frames(connection *c)
{
    size_t at = 0;
    int open = 1;
    while (open && c->n_heard - at >= 2) {
        unsigned char *b = c->heard + at;
        const size_t have = c->n_heard - at, extra = (b[1] & 127) == 126 ? 2 : (b[1] & 127) == 127 ? 8 : 0;
        if (have < 2 + extra) break;
        size_t n = extra ? 0 : b[1] & 127;
        for (size_t i = 0; i < extra; i++) n = n << 8 | b[2 + i];
        if ((b[0] & 15) == 2) {
            const size_t there = have - 2 - extra < n ? have - 2 - extra : n;
            at += 2 + extra + there;
            c->unheard = n - there;
            continue;
        }
        if (n >= HEARD / 2) return 0;
        if (have < 2 + extra + n) break;
        unsigned char *after = b + 2 + extra + n, kept = *after;
        *after = 0;
        if ((b[0] & 15) == 1) take_message((const char *)b + 2 + extra);
        if ((b[0] & 15) == 9) c->pong = 1; // pings of the server are empty
        open = (b[0] & 15) != 8;
        *after = kept;
        at += 2 + extra + n;
    }
    memmove(c->heard, c->heard + at, c->n_heard - at);
    c->n_heard -= at;
    return open;
}

static int listen_to(connection *c, int fd)
{
    const ssize_t n = recv(fd, c->heard + c->n_heard, HEARD - 1 - c->n_heard, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return 0;
    if (n > 0) c->n_heard += (size_t)n;
    const size_t skipped = c->unheard < c->n_heard ? c->unheard : c->n_heard;
    memmove(c->heard, c->heard + skipped, c->n_heard -= skipped);
    c->unheard -= skipped;
    return take_frames(c);
}

static void put_counts(const char *name, const counts *c)
{
    printf("%s p50 %d, p95 %d, p99 %d, most %d ms of %lld\n", name, percentile(c, 0.5), percentile(c, 0.95), percentile(c, 0.99),
           percentile(c, 1), c->n);
}

static int speakers(connection *all, struct pollfd *fds, int n, double seconds, const char *file, const char *config)
{
    FILE *f = fopen(file, "rb");
    if (!f) return 2;
    fseek(f, 0, SEEK_END);
    const size_t size = (size_t)ftell(f);
    rewind(f);
    char *sound = malloc(size);
    if (!sound || fread(sound, 1, size, f) != size || size < PIECE || (config && strlen(config) > PIECE)) return 2;
    fclose(f);
    const double begun = now() + 0.2;
    int left = 0, minute = 1;
    for (int i = 0; i < n; i++) {
        connection *c = &all[i];
        if (fds[i].fd < 0) continue;
        left++;
        c->left = (long long)(seconds * 1000 / PIECE_MS);
        c->next = begun + PIECE_MS * 1e-3 * i / n;
        c->at = size / (size_t)n * (size_t)i / 2 * 2;
        c->heard = malloc(HEARD);
        if (!c->heard) return 2;
        if (config) put_frame(c, 1, config, strlen(config));
        else c->n = c->sent = 0;
    }
    for (double time = now(); left && time < begun + seconds + 60; time = now()) {
        for (int i = 0; i < n; i++) {
            if (fds[i].fd < 0) continue;
            if (fds[i].revents && !listen_to(&all[i], fds[i].fd)) {
                close(fds[i].fd);
                fds[i].fd = -1;
                left--;
            } else {
                speak(&all[i], fds[i].fd, sound, size, time);
            }
        }
        if (time > begun + minute * 60) {
            printf("minute %-10d", minute++);
            put_counts("latency", &latency_of_minute);
            fflush(stdout);
            memset(&latency_of_minute, 0, sizeof latency_of_minute);
        }
        nanosleep(&(struct timespec){0, 500000}, NULL);
        poll(fds, (nfds_t)n, 0);
    }
    put_counts("speakers late   ", &late);
    put_counts("latency         ", &latency);
    printf("partial results  %lld\nutterances       %lld\nended well       %lld of %d; %lld failed\n", partials, finals, ends, n,
           failures);
    for (int i = 0; i < n; i++) free(all[i].heard);
    free(sound);
    return ends == n ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc < 5 || (!strcmp(argv[2], "speak") && argc < 6)) return 2;
    port = atoi(argv[1]);
    const int speaks = !strcmp(argv[2], "speak");
    const int hostile = !strcmp(argv[2], "hostile"), n = atoi(argv[3]);
    struct pollfd *fds = calloc((size_t)n, sizeof *fds);
    connection *all = calloc((size_t)n, sizeof *all);
    if (!fds || !all) return 2;
    int there = 0, left = 0;
    for (int i = 0; i < n; i++) {
        const int other = !strcmp(argv[2], "half") ? HALF : !strcmp(argv[2], "silent") ? SILENT : IDLE;
        all[i].kind = speaks ? SPEAK : hostile ? HALF + i % (KINDS - HALF) : other;
        fds[i] = (struct pollfd){.fd = join(&all[i]), .events = POLLIN};
        there += fds[i].fd >= 0;
        if (!speaks && i % 200 == 199 && poll(fds, (nfds_t)i, 0) > 0) turn(all, fds, i, 0); // pings are answered
    }
    printf("open             %d of %d\n", there, n);
    fflush(stdout);
    if (speaks) {
        const int result = speakers(all, fds, n, atof(argv[4]), argv[5], argc > 6 ? argv[6] : NULL);
        free(all);
        free(fds);
        return result;
    }
    const double end = now() + atof(argv[4]);
    while (now() < end) {
        if (!hostile) poll(fds, (nfds_t)n, 500);
        turn(all, fds, n, hostile);
        if (hostile) nanosleep(&(struct timespec){0, 50000000}, NULL);
    }
    for (int i = 0; i < n; i++) left += fds[i].fd >= 0;
    printf("opened           %lld times\nleft             %d\n", opened, left);
    free(all);
    free(fds);
    return 0;
}
