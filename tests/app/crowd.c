// crowd.c - a tool for benchmarks and tests of linnet serve: very many connections from one process, on the loopback interface.
//
//   crowd PORT idle N SECONDS       N WebSockets without sound; they answer pings
//   crowd PORT hostile N SECONDS    N connections that misbehave, each in one of five ways, again and again:
//                                   half a request and nothing more; a request, or the body of an upload, of one byte a second; frames
//                                   of random bytes; sound as fast as it is taken, from a client that reads nothing
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

enum { IDLE, HALF, SLOW, SLOW_BODY, NOISE, DEAF, KINDS };

static const char shake[] = "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
static const char post[] = "POST /v1/align HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
                           "Content-Length: 100000\r\n\r\n";

typedef struct connection {
    int kind;
    size_t sent; // of the request
    double next; // when the next byte is sent
} connection;

static int port;
static long long opened;
static uint32_t state = 1;

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
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(0x7f000001)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    char answer[2048] = "";
    int bad = connect(fd, (const struct sockaddr *)&address, sizeof address) != 0;
    c->sent = 0;
    c->next = 0;
    if (!bad && c->kind == HALF) say(fd, shake, 30);
    if (!bad && c->kind == SLOW_BODY) say(fd, post, sizeof post - 1);
    if (!bad && (c->kind == IDLE || c->kind >= NOISE)) say(fd, shake, sizeof shake - 1);
    if (!bad && (c->kind == IDLE || c->kind >= NOISE)) bad = recv(fd, answer, sizeof answer - 1, 0) <= 0 || !strstr(answer, " 101 ");
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

int main(int argc, char **argv)
{
    if (argc != 5) return 2;
    port = atoi(argv[1]);
    const int hostile = !strcmp(argv[2], "hostile"), n = atoi(argv[3]);
    struct pollfd *fds = calloc((size_t)n, sizeof *fds);
    connection *all = calloc((size_t)n, sizeof *all);
    if (!fds || !all) return 2;
    int there = 0, left = 0;
    for (int i = 0; i < n; i++) {
        all[i].kind = hostile ? HALF + i % (KINDS - HALF) : IDLE;
        fds[i] = (struct pollfd){.fd = join(&all[i]), .events = POLLIN};
        there += fds[i].fd >= 0;
        if (i % 200 == 199 && poll(fds, (nfds_t)i, 0) > 0) turn(all, fds, i, 0); // pings are answered
    }
    printf("open             %d of %d\n", there, n);
    fflush(stdout);
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
