// talk.c - a tool for the shell tests and benchmarks: a client of linnet serve over plain sockets, so that no other program is
// needed.
//
//   talk PORT get PATH [header=LINE]...                    the answer: status line, headers, body
//   talk PORT options PATH [header=LINE]...                the same
//   talk PORT post PATH [header=LINE]... [chunked] [NAME=TEXT | NAME=@FILE]...   the same, with a form; chunked: in chunks,
//                                                          without its length
//   talk PORT send FILE [pause=SECONDS rest=FILE]          the bytes of a file, as they are; then a pause of at least so long and
//                                                          those of another; what comes back until a second of silence after it
//   talk PORT stream PATH [header=LINE]... [config=JSON] [until=TEXT] [middle=JSON] [answer=TEXT] [at=BYTES] [raw=FILE]
//             [chunk=BYTES] [rate=HZ] [wait] [paced] [end=JSON] [state=FILE] [resume=FILE] [stop=BYTES] [skip=BYTES]
//             [hold=FILE] [mute] [append] [leave=TEXT]
//   talk 0 activate PROGRAM ARGUMENTS...                   the program with a listening socket, as systemd gives it
//
// stream: a WebSocket. Sends config, then the file's bytes in binary messages, then `end`; prints each text message as a line,
// and "closed CODE REASON" in the end, or "refused STATUS". wait: one message is read after each that is sent; paced: as fast as
// speech. middle: a message in the middle of the file, or before the piece that has byte `at`; until: which waits for a message
// with this text; answer: nothing more is sent before one with that text. state: where binary messages are kept, the last one;
// resume: the first binary message. skip: these bytes of the file are not sent; stop: leave after so many bytes, without a word.
// hold: read nothing before this file is there, while a process of its own sends. mute: do not answer pings. append: sound in
// base64, in texts of OpenAI's realtime protocol. leave: after a message with this text, where the server does not close.

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct options {
    const char *path, *config, *middle, *until, *answer, *raw, *end, *state, *resume, *hold, *rest, *leave;
    const char *headers[16], *fields[16];
    int n_headers, n_fields, wait, paced, mute, chunked, append;
    double pause;
    long chunk, rate, stop, skip, at;
} options;

static void die(const char *what)
{
    fprintf(stderr, "talk: %s: %s\n", what, strerror(errno));
    exit(2);
}

static char *read_file(const char *path, size_t *n)
{
    char *bytes, part[65536];
    FILE *f = fopen(path, "rb"), *to = open_memstream(&bytes, n);
    if (!f || !to) die(path);
    for (size_t got; (got = fread(part, 1, sizeof part, f)) > 0;) fwrite(part, 1, got, to);
    fclose(f);
    if (fclose(to) != 0) die("memory");
    return bytes;
}

// room: bytes that are received and not read; 0: as many as usual
static int join(int port, int room)
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(0x7f000001)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && room) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) die("connect");
    return fd;
}

static int give(int fd, const void *bytes, size_t n)
{
    for (const char *at = bytes; n;) {
        const ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0) return -1;
        at += sent;
        n -= (size_t)sent;
    }
    return 0;
}

static void give_file(int fd, const char *path)
{
    size_t n;
    char *bytes = read_file(path, &n);
    give(fd, bytes, n);
    free(bytes);
}

/* ---- HTTP ------------------------------------------------------------------------------------------------------------------ */

static int print_all(int fd)
{
    char room[65536];
    ssize_t n;
    while ((n = recv(fd, room, sizeof room, 0)) > 0) fwrite(room, 1, (size_t)n, stdout);
    return 0;
}

// In pieces that cut lines and chunks.
static int give_chunks(int fd, const char *body, size_t n)
{
    char head[32];
    for (size_t at = 0, size; at < n; at += size) {
        size = n - at < 3000 ? n - at : 3000;
        snprintf(head, sizeof head, "%zx%s\r", size, at ? "" : ";name=value");
        if (give(fd, head, strlen(head)) || give(fd, "\n", 1) || give(fd, body + at, size) || give(fd, "\r\n", 2)) return -1;
    }
    return give(fd, "0\r\nTrailer: x\r\n\r\n", 17);
}

static int request(int fd, const options *o, const char *method)
{
    const int posts = !strcmp(method, "POST");
    static const char mark[] = "linnetboundary";
    char *body = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&body, &n);
    if (!f) die("memory");
    for (int i = 0; i < o->n_fields; i++) {
        const char *equals = strchr(o->fields[i], '=');
        const int is_file = equals[1] == '@', n_name = (int)(equals - o->fields[i]);
        fprintf(f, "--%s\r\nContent-Disposition: form-data; name=\"%.*s\"%s\r\n\r\n", mark, n_name, o->fields[i],
                is_file ? "; filename=\"sound.wav\"\r\nContent-Type: application/octet-stream" : "");
        size_t bytes = 0;
        char *file = is_file ? read_file(equals + 2, &bytes) : NULL;
        if (is_file) fwrite(file, 1, bytes, f);
        else fputs(equals + 1, f);
        free(file);
        fputs("\r\n", f);
    }
    if (o->n_fields) fprintf(f, "--%s--\r\n", mark);
    fclose(f);
    char head[4096];
    int at = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: localhost\r\n", method, o->path);
    for (int i = 0; i < o->n_headers; i++) at += snprintf(head + at, sizeof head - (size_t)at, "%s\r\n", o->headers[i]);
    if (posts) at += snprintf(head + at, sizeof head - (size_t)at, "Content-Type: multipart/form-data; boundary=%s\r\n", mark);
    if (posts && o->chunked) at += snprintf(head + at, sizeof head - (size_t)at, "Transfer-Encoding: chunked\r\n");
    else if (posts) at += snprintf(head + at, sizeof head - (size_t)at, "Content-Length: %zu\r\n", n);
    at += snprintf(head + at, sizeof head - (size_t)at, "\r\n");
    // A refusal may come before the body is read.
    if (give(fd, head, (size_t)at) || (o->chunked ? give_chunks(fd, body, n) : give(fd, body, n)))
        printf("the body was not taken\n");
    free(body);
    return print_all(fd);
}

/* ---- WebSocket ------------------------------------------------------------------------------------------------------------- */

static int frame(int fd, int code, const char *bytes, size_t n)
{
    unsigned char head[14] = {(unsigned char)(0x80 | code)}, mask[4] = {0x12, 0x34, 0x56, 0x78};
    size_t at = 2;
    if (n < 126) {
        head[1] = (unsigned char)(0x80 | n);
    } else if (n < 65536) {
        head[1] = 0x80 | 126;
        head[2] = (unsigned char)(n >> 8);
        head[3] = (unsigned char)n;
        at = 4;
    } else {
        head[1] = 0x80 | 127;
        for (int i = 0; i < 8; i++) head[2 + i] = (unsigned char)(n >> (56 - 8 * i));
        at = 10;
    }
    memcpy(head + at, mask, 4);
    char *masked = malloc(n + 1);
    if (!masked) die("memory");
    for (size_t i = 0; i < n; i++) masked[i] = (char)(bytes[i] ^ mask[i % 4]);
    const int failed = give(fd, head, at + 4) || give(fd, masked, n);
    free(masked);
    return failed;
}

static int take(int fd, void *bytes, size_t n)
{
    for (char *at = bytes; n;) {
        const ssize_t got = recv(fd, at, n, 0);
        if (got <= 0) return -1;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

static int has_come, has_answer, leaves; // the texts of until=, answer= and leave=

// The next message: 1 a text, 2 a binary one, 0: the end.
static int hear(int fd, const options *o)
{
    for (;;) {
        unsigned char head[2], more[8];
        if (take(fd, head, 2)) {
            printf("closed without a word\n");
            return 0;
        }
        size_t n = head[1] & 127;
        const int code = head[0] & 15, extra = n == 126 ? 2 : n == 127 ? 8 : 0;
        if (extra && take(fd, more, (size_t)extra)) return 0;
        if (extra) n = 0;
        for (int i = 0; i < extra; i++) n = n << 8 | more[i];
        char *text = malloc(n + 1);
        if (!text) die("memory");
        if (take(fd, text, n)) {
            printf("closed without a word\n");
            free(text);
            return 0;
        }
        text[n] = 0;
        if (code == 9 && !o->mute) frame(fd, 10, text, n);
        if (code == 1) printf("%s\n", text);
        if (code == 1 && o->until && strstr(text, o->until)) has_come = 1;
        if (code == 1 && o->leave && strstr(text, o->leave)) leaves = 1;
        if (code == 1 && o->answer && strstr(text, o->answer)) has_answer = 1;
        if (code == 8)
            printf("closed %d %s\n", n > 1 ? (unsigned char)text[0] << 8 | (unsigned char)text[1] : 0, n > 2 ? text + 2 : "");
        if (code == 2 && o->state) {
            FILE *f = fopen(o->state, "wb");
            if (!f || fwrite(text, 1, n, f) != n || fclose(f)) die(o->state);
        }
        free(text);
        fflush(stdout);
        if (code == 8) frame(fd, 8, "", 0);
        if (code == 1 || code == 2 || code == 8) return code == 8 ? 0 : code;
    }
}

static int is_readable(int fd) { return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) > 0; }

static int shake_hands(int fd, const options *o)
{
    char text[8192];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n", o->path);
    for (int i = 0; i < o->n_headers; i++) n += snprintf(text + n, sizeof text - (size_t)n, "%s\r\n", o->headers[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "\r\n");
    if (give(fd, text, (size_t)n)) die("send");
    size_t at = 0;
    while (at < sizeof text - 1 && recv(fd, text + at, 1, 0) == 1) {
        text[++at] = 0;
        if (strstr(text, "\r\n\r\n")) break;
    }
    text[at] = 0;
    if (strncmp(text, "HTTP/1.1 101", 12) == 0) return 1;
    printf("refused %.3s\n", at > 12 ? text + 9 : "without a word");
    if (strstr(text, "retry-after")) printf("retry-after\n");
    return 0;
}

static void rest(double seconds)
{
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
}

// A piece of sound, as it is or as an event.
static int sound_frame(int fd, const options *o, const char *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (!o->append) return frame(fd, 2, bytes, n);
    char *text = malloc(n / 3 * 4 + 80);
    if (!text) die("memory");
    size_t made = (size_t)sprintf(text, "{\"type\":\"input_audio_buffer.append\",\"audio\":\"");
    for (size_t at = 0; at < n; at += 3) {
        const unsigned char *b = (const unsigned char *)bytes + at;
        const size_t have = n - at < 3 ? n - at : 3;
        const unsigned value = (unsigned)b[0] << 16 | (have > 1 ? (unsigned)b[1] << 8 : 0) | (have > 2 ? b[2] : 0);
        for (size_t i = 0; i < 4; i++) text[made++] = i > have ? '=' : digits[value >> (18 - 6 * i) & 63];
    }
    made += (size_t)sprintf(text + made, "\"}");
    const int failed = frame(fd, 1, text, made);
    free(text);
    return failed;
}

static int stream(int fd, const options *o)
{
    size_t n = 0, n_resume = 0;
    char *sound = o->raw ? read_file(o->raw, &n) : NULL, *state = o->resume ? read_file(o->resume, &n_resume) : NULL;
    const int joined = shake_hands(fd, o);
    int open = joined;
    pid_t sender = o->hold && joined ? fork() : -1;
    if (sender > 0) {
        const pid_t test = getppid();
        while (access(o->hold, F_OK) != 0) {
            if (getppid() != test) exit(2); // which has ended
            rest(0.02);
        }
        while (hear(fd, o)) continue;
        kill(sender, SIGKILL);
        waitpid(sender, NULL, 0);
        open = 0;
    }
    if (open && o->config) frame(fd, 1, o->config, strlen(o->config));
    if (open && state) frame(fd, 2, state, n_resume);
    const size_t end = o->stop && (size_t)o->stop < n ? (size_t)o->stop : n, chunk = (size_t)o->chunk,
                 middle = o->at ? (size_t)o->at : n / 2;
    for (size_t at = (size_t)o->skip; at < end && open; at += chunk) {
        if (o->middle && at < middle && at + chunk >= middle) {
            while (open && o->until && !has_come) open = hear(fd, o) != 0;
            frame(fd, 1, o->middle, strlen(o->middle));
            while (open && o->answer && !has_answer) open = hear(fd, o) != 0;
        }
        if (sound_frame(fd, o, sound + at, end - at < chunk ? end - at : chunk)) break;
        if (o->wait) open = hear(fd, o) != 0;
        while (open && !o->hold && is_readable(fd)) open = hear(fd, o) != 0;
        if (o->paced) rest((double)chunk / 2 / (double)o->rate);
    }
    if (o->stop && open) { // as a client whose machine fails, but for what has come until then
        for (int i = 0; i < 20; i++, rest(0.05)) {
            while (open && is_readable(fd)) open = hear(fd, o) != 0;
        }
        open = 0;
    }
    if (open && o->end) frame(fd, 1, o->end, strlen(o->end));
    while (!o->hold && open && !leaves && hear(fd, o)) continue;
    free(sound);
    free(state);
    return !joined;
}

// Prints the port; whoever connects before the program listens waits.
static int activate(char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    socklen_t n = sizeof address;
    char pid[16];
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, n) != 0 || listen(fd, 100) != 0) die("listen");
    getsockname(fd, (struct sockaddr *)&address, &n);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    if (fd != 3 && (dup2(fd, 3) != 3 || close(fd) != 0)) die("dup2");
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    execvp(argv[0], argv);
    die(argv[0]);
    return 2;
}

int main(int argc, char **argv)
{
    options o = {.chunk = 3200, .rate = 16000};
    if (argc < 4) return 2;
    const char *what = argv[2];
    o.path = argv[3];
    if (!strcmp(what, "activate")) return activate(argv + 3);
    for (int i = 4; i < argc; i++) {
        const char *a = argv[i], *equals = strchr(a, '=');
        const struct { const char *name; const char **text;
        } texts[] = {{"config", &o.config}, {"middle", &o.middle}, {"until", &o.until}, {"answer", &o.answer}, {"raw", &o.raw},
                     {"end", &o.end}, {"state", &o.state}, {"resume", &o.resume}, {"hold", &o.hold}, {"leave", &o.leave}};
        const struct { const char *name; long *number; } numbers[] = {
            {"chunk", &o.chunk}, {"rate", &o.rate}, {"stop", &o.stop}, {"skip", &o.skip}, {"at", &o.at}};
        int known = 0;
        if (!strcmp(a, "wait")) o.wait = known = 1;
        if (!strcmp(a, "paced")) o.paced = known = 1;
        if (!strcmp(a, "mute")) o.mute = known = 1;
        if (!strcmp(a, "append")) o.append = known = 1;
        if (!strcmp(a, "chunked")) o.chunked = known = 1;
        if (equals && !strncmp(a, "header=", 7) && o.n_headers < 16) o.headers[o.n_headers++] = equals + 1, known = 1;
        if (equals && !strncmp(a, "pause=", 6)) o.pause = atof(equals + 1), known = 1;
        if (equals && !strncmp(a, "rest=", 5)) o.rest = equals + 1, known = 1;
        for (size_t k = 0; !strcmp(what, "stream") && equals && !known && k < sizeof texts / sizeof *texts; k++) {
            if (!strncmp(a, texts[k].name, (size_t)(equals - a)) && !texts[k].name[equals - a])
                *texts[k].text = equals + 1, known = 1;
            if (k < 5 && !strncmp(a, numbers[k].name, (size_t)(equals - a)) && !numbers[k].name[equals - a])
                *numbers[k].number = atol(equals + 1), known = 1;
        }
        if (!known && equals && o.n_fields < 16) o.fields[o.n_fields++] = a;
    }
    if (o.hold) o.mute = 1; // two processes send on one connection
    const int fd = join(atoi(argv[1]), o.hold ? 4096 : 0);
    if (!strcmp(what, "get")) return request(fd, &o, "GET");
    if (!strcmp(what, "post")) return request(fd, &o, "POST");
    if (!strcmp(what, "options")) return request(fd, &o, "OPTIONS");
    if (!strcmp(what, "stream")) return stream(fd, &o);
    give_file(fd, o.path);
    if (o.rest) {
        rest(o.pause);
        give_file(fd, o.rest);
        return print_all(fd); // an answer is due
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 1}, sizeof(struct timeval));
    print_all(fd);
    return 0;
}
