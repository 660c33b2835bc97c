// cmd_serve.c - linnet serve: live streams over WebSockets and uploaded files over HTTP.

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app/common.h"
#include "app/shared_options.h"
#include "base/memory.h"
#include "serve/serve.h"

#define LIMIT(row, field, otherwise, least, most, unit, what)                                                                    \
    LIN_SETTING_ROW("limits", row, INT, offsetof(lin_serve_values, field), otherwise, least, most, unit, what)

static const lin_option options[] = {
    {.name = "listen", .type = LIN_OPTION_STRING, .at = offsetof(lin_serve_values, listen), .text = "127.0.0.1:8090",
     .value = "HOST:PORT",
     .help = "Address that accepts requests; *:PORT: all addresses; port 0: any free port; systemd: the socket that systemd "
             "opened (LISTEN_FDS)"},
    {.name = "max-streams", .type = LIN_OPTION_INT, .at = offsetof(lin_serve_values, max_streams), .text = "64", .min = 1,
     .max = 100000, .help = "Most live streams at once; the server takes their memory when it starts"},
    {.name = "limits", .type = LIN_OPTION_SETTINGS, .help = "What one client may use, and for how long"},
    {.name = "threads", .letter = 'j', .type = LIN_OPTION_INT, .at = offsetof(lin_serve_values, threads), .text = "0", .min = 0,
     .max = 1024, .help = "Threads for streams, and as many for files; 0: one per core"},
    {.name = "rate", .type = LIN_OPTION_INT, .at = offsetof(lin_serve_values, rate_hz), .text = "16000", .min = 4000,
     .max = 192000, .value = "HZ", .help = "Sample rate of streams that name none"},
    {.name = "websocket", .type = LIN_OPTION_CHOICE, .at = offsetof(lin_serve_values, websocket), .text = "vosk",
     .choices = LIN_PROTOCOL_CHOICES,
     .help = "Protocol of WebSockets at /; /docs names the addresses of all protocols"},
    {.name = "ipa", .type = LIN_OPTION_FLAG, .at = offsetof(lin_serve_values, ipa), .help = "Write phonemes in the IPA"},
    LIN_QUIET_ROW(offsetof(lin_serve_values, quiet), "Print only errors"),
    {.name = "log", .type = LIN_OPTION_CHOICE, .at = offsetof(lin_serve_values, log_json), .text = "text", .choices = "text|json",
     .help = "Form of the lines on standard error, one for each stream and upload"},
    {.type = LIN_OPTION_HEADING, .help = "Who may use it"},
    {.name = "tls-cert", .type = LIN_OPTION_FILE, .at = offsetof(lin_serve_values, certificate), .value = "PEM",
     .help = "Certificate and its chain: serve https and wss"},
    {.name = "tls-key", .type = LIN_OPTION_FILE, .at = offsetof(lin_serve_values, key), .value = "PEM",
     .help = "Private key of the certificate"},
    {.name = "tokens", .type = LIN_OPTION_FILE, .at = offsetof(lin_serve_values, tokens),
     .help = "A file with a secret per line: every stream and upload needs one, as Authorization: Bearer SECRET, or as "
             "access_token=SECRET in its address. SIGHUP reads the file again"},
    {.name = "state-key", .type = LIN_OPTION_FILE, .at = offsetof(lin_serve_values, state_key),
     .help = "A file with a secret that several servers share, so that a stream that one of them saved can continue at another. "
             "If not given, a saved stream can continue only here, until this server ends"},
    {.name = "origin", .type = LIN_OPTION_FILES, .at = offsetof(lin_serve_values, origins), .value = "ORIGIN",
     .help = "Another server, https://example.org, whose pages may use this one; may be repeated; *: any"},
    {.name = "host", .type = LIN_OPTION_FILES, .at = offsetof(lin_serve_values, hosts), .value = "NAME",
     .help = "Another name of this server, besides its address, the name in --listen, localhost and the machine's name; may be "
             "repeated; *: any"},
    {.name = "trusted-proxy", .type = LIN_OPTION_FILES, .at = offsetof(lin_serve_values, proxies), .value = "ADDRESS",
     .help = "A proxy whose header X-Forwarded-For or Forwarded names the client; may be repeated"},
    {.type = LIN_OPTION_HEADING, .help = "Limits"},
    LIMIT("max-per-address", max_per_address, "0", 0, 100000, NULL,
          "Most live streams and uploads of one address; 0: any number"),
    LIMIT("max-lag-ms", max_lag_ms, "1000", 0, 60000, "MS",
          "Refuse new streams while the 95th percentile of the lags of the last 10 s is above this; 0: never"),
    LIMIT("max-files", max_files, "8", 1, 10000, NULL, "Most uploads at once: received, waiting or decoded"),
    LIMIT("max-upload", max_upload_mb, "100", 1, 2000, "MB", "Largest upload; the server keeps it in memory"),
    LIMIT("max-sound", max_sound_s, "7200", 1, 1000000, "S", "Longest sound of an upload"),
    LIMIT("max-work", max_work_s, "900", 1, 1000000, "S", "Longest processing of an upload"),
    LIMIT("idle", idle_s, "60", 1, 86400, "S", "End a stream if no message comes for this time"),
    LIMIT("max-unread", unread_s, "30", 1, 86400, "S", "End a stream whose results have waited this long for the client"),
    LIMIT("drain", drain_s, "20", 0, 86400, "S", "Time for utterances and uploads to end after SIGTERM"),
    LIN_DECODING_ROWS_WITH(lin_serve_values, decoding, "yes"),
    LIN_DIARIZE_ROW(lin_serve_values, decoding,
                    "final results in linnet's protocol, and of uploads all formats but json, have the names",
                    "For errors see linnet listen --help"),
    LIN_ENDPOINT_ROWS(lin_serve_values, endpoints,
                      "When the network of a stream is reset: at every endpoint, never, or (auto) at every endpoint if the model "
                      "does not forget by itself"),
    {.type = LIN_OPTION_HEADING, .help = "Network"},
    LIN_MODEL_ROWS(lin_serve_values, model),
    LIN_LANGUAGE_ROW(lin_serve_values, chosen_language),
    LIN_BEST_ROW(offsetof(lin_serve_values, model.best), "2.4", "--second-pass offline --combine default"),
    LIN_DEREVERB_ROW(offsetof(lin_serve_values, model.dereverb)),
    LIN_SECOND_PASS_ROW(lin_serve_values, second_pass),
    LIN_COMBINE_ROW(lin_serve_values, decoding),
    {.type = LIN_OPTION_END},
};

// Refuses values that no browser's header or connection's address can equal: they would have no effect.
static int check_names(const lin_parsed *parsed, const lin_serve_values *v)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char usual[INET6_ADDRSTRLEN];
    for (int i = 0; i < v->origins.count; i++) {
        const char *origin = v->origins.items[i], *rest = strstr(origin, "://");
        if ((rest && rest[3] && !strpbrk(rest + 3, "/?# ")) || !strcmp(origin, "*") || !strcmp(origin, "null")) continue;
        return lin_misuse(parsed, "--origin must be like https://example.org, without a path, or *, not '%s'", origin);
    }
    for (int i = 0; i < v->proxies.count; i++) {
        const char *proxy = v->proxies.items[i];
        const int family = strchr(proxy, ':') ? AF_INET6 : AF_INET;
        if (inet_pton(family, proxy, bytes) != 1 || !inet_ntop(family, bytes, usual, sizeof usual))
            return lin_misuse(parsed, "--trusted-proxy must be an address, such as 192.0.2.1, not '%s'", proxy);
        if (strcasecmp(proxy, usual) != 0) return lin_misuse(parsed, "--trusted-proxy %s: write it as %s", proxy, usual);
    }
    return LIN_EXIT_OK;
}

// HOST:PORT, [HOST]:PORT, PORT, or systemd, which leaves the host empty.
static int read_address(const lin_parsed *parsed, const char *text, lin_serve *s)
{
    const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
    const size_t n = colon ? (size_t)(colon - text) : 0;
    char *end;
    const long number = strtol(digits, &end, 10);
    const int bracket = n > 1 && text[0] == '[' && text[n - 1] == ']';
    if (strcmp(text, "systemd") == 0) return LIN_EXIT_OK;
    snprintf(s->host, sizeof s->host, "%.*s", (int)(bracket ? n - 2 : n), text + bracket);
    if (!colon) snprintf(s->host, sizeof s->host, "127.0.0.1");
    // An empty host would mean all addresses, for which "*" must be given.
    if (!isdigit((unsigned char)*digits) || *end || number > 65535 || n >= sizeof s->host || !*s->host)
        return lin_misuse(parsed, "--listen must be HOST:PORT or PORT (*:PORT for all addresses), not '%s'", text);
    s->port = (int)number;
    return LIN_EXIT_OK;
}

static int run(lin_parsed *parsed)
{
    lin_serve_values *v = parsed->values;
    lin_error err = {0};
    lin_choose_best(&v->model, &v->decoding, &v->second_pass);
    if (lin_endpoint_check(&v->endpoints.rules, &err) != LIN_OK) return lin_misuse(parsed, "%s", err.message);
    if (v->decoding.combine && !v->second_pass)
        return lin_misuse(parsed, "--combine needs whole utterances: add --second-pass offline");
    if (!v->certificate != !v->key) return lin_misuse(parsed, "--tls-cert and --tls-key belong together");
    int wrong = check_names(parsed, v);
    if (wrong == LIN_EXIT_OK) wrong = lin_decoding_check(parsed, &v->decoding, 1);
    if (wrong != LIN_EXIT_OK) return wrong;
    lin_serve *s = lin_calloc(1, sizeof *s);
    if (!s) {
        lin_no_memory(&err, "a server", sizeof *s);
        return lin_give_up(&err);
    }
    s->v = v;
    wrong = read_address(parsed, v->listen, s);
    if (wrong == LIN_EXIT_OK && lin_serve_run(s, &err) != LIN_OK) wrong = lin_give_up(&err);
    lin_free(s);
    return wrong;
}

const lin_command lin_command_serve = {
    .name = "serve",
    .operands = "",
    .summary = "serve live streams and files to browsers and programs",
    .description = "Gives the recogniser to browsers and other programs. Live sound comes over WebSockets, in the protocol of "
                   "vosk-server (at /), sherpa-onnx's online server (at /sherpa-onnx), OpenAI's realtime service (at "
                   "/v1/realtime) or linnet (at /v1/stream). Sound files come over HTTP, with the calls of OpenAI's "
                   "transcriptions (POST /v1/audio/transcriptions) and whisper.cpp's server (POST /inference), and for alignment "
                   "(POST /v1/align). GET /docs describes the calls; GET /healthz, /readyz and /metrics are for operators. The "
                   "server recognises words, with --no-words phonemes.\n\n"
                   "Only this machine can reach the server, unless --listen says otherwise. Without --tokens everybody who "
                   "reaches it may use it. On SIGTERM it accepts no more streams, ends the utterance of each open stream, and "
                   "stops. See docs/serve.md.",
    .examples = "  linnet serve\n"
                "  linnet serve --listen '*:8090' --tls-cert cert.pem --tls-key key.pem --tokens secrets.txt\n"
                "  curl -F file=@hello.wav http://127.0.0.1:8090/v1/audio/transcriptions",
    .options = options,
    .brief = 1,
    .values_size = sizeof(lin_serve_values),
    .run = run,
};
