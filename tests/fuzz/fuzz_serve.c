// What clients of linnet serve send, on any bytes: messages of all protocols, samples cut anywhere, forms and their fields,
// chunks, prompts, tokens. The first byte chooses; of a form the first line is the header Content-Type.
#include "tests/fuzz/fuzz.h"

#include "serve/http.h"
#include "serve/serve_calls.h"
#include "serve/serve.h"

static void message(const char *text, size_t n, const char *path)
{
    lin_error err = {0};
    lin_message m = lin_message_default(16000);
    const lin_status status = lin_protocol_find(path, 0)->parse(text, n, &m, &err);
    if (status != LIN_OK && (status != err.status || !err.message[0])) abort();
    if (!(m.rate_hz >= 4000 && m.rate_hz <= 192000) || m.channels < 1 || m.channels > 64) abort();
    if (m.n_phrases < 0 || m.n_phrases > LIN_MESSAGE_MOST_PHRASES || !(m.state_s >= 0 && m.state_s <= 3600)) abort();
    int ends = 0;
    for (size_t i = 0; i < m.phrases.n; i++) ends += !m.phrases.data[i];
    if (status == LIN_OK && ends < m.n_phrases) abort();
    lin_message_free(&m);
}

static void samples(const uint8_t *data, size_t n, lin_sample_format format)
{
    lin_sample_rest rest = {0};
    const size_t width = lin_sample_width(format), cut = n / 3;
    float *floats = lin_alloc(n / width + 2, sizeof *floats);
    if (!floats) return;
    size_t made = lin_samples_take(format, data, cut, &rest, floats);
    made += lin_samples_take(format, data + cut, n - cut, &rest, floats + made);
    if (made != n / width || (size_t)rest.n != n % width) abort();
    for (size_t i = 0; i < made; i++) {
        if (!isfinite(floats[i])) abort();
    }
    lin_free(floats);
}

// The form of every call that has one.
static void fields(const lin_form *f)
{
    static const char *const paths[] = {"/v1/audio/transcriptions", "/inference", "/v1/align"};
    char value[16];
    for (int i = 0; i < 3; i++) {
        int known;
        const lin_call *call = lin_call_find("POST", paths[i], &known);
        lin_buffer ignored = {0};
        lin_error err = {0};
        const lin_status status = lin_call_check(call, f, &ignored, &err);
        if (status != LIN_OK && !err.message[0]) abort();
        for (size_t k = 0; k < ignored.n; k++) {
            if (ignored.data[k] < 32 || ignored.data[k] > 126) abort(); // it becomes a header
        }
        for (const lin_field *field = call->fields; field && field->name; field++) {
            lin_call_value(call, f, field->name, value, sizeof value);
            lin_call_flag(call, f, field->name);
            lin_language_is(value, "en");
        }
        lin_buffer_free(&ignored);
    }
}

// In one piece, and in pieces of a byte.
static void chunks(const char *text, size_t n)
{
    lin_chunked whole = {0}, cut = {0};
    const char *data;
    size_t n_whole = 0, n_cut = 0, n_data;
    for (size_t at = 0; at < n; n_whole += n_data) {
        const size_t taken = lin_chunked_take(&whole, text + at, n - at, &data, &n_data);
        if (taken == 0 || taken > n - at || (n_data && (data < text + at || data + n_data > text + at + taken))) abort();
        at += taken;
    }
    for (size_t at = 0; at < n; n_cut += n_data) at += lin_chunked_take(&cut, text + at, 1, &data, &n_data);
    if (n_whole != n_cut || whole.state != cut.state || whole.left != cut.left) abort();
}

static void prompt(const char *text, size_t n)
{
    lin_buffer phrases = {0};
    const int made = lin_prompt_phrases(text, n, &phrases);
    size_t at = 0;
    for (int i = 0; i < made && !phrases.failed; i++) {
        const size_t length = strlen(phrases.data + at);
        if (length == 0 || length > 100) abort();
        at += length + 1;
    }
    if (!phrases.failed && at != phrases.n) abort();
    lin_buffer_free(&phrases);
}

static void form(const char *text, size_t n)
{
    const char *end = memchr(text, '\n', n);
    lin_form f;
    lin_error err = {0};
    if (!end) return;
    const size_t n_type = (size_t)(end - text), n_body = n - n_type - 1;
    char *type = lin_calloc(n_type + 1, 1), *body = lin_alloc(n_body, 1);
    if (type && body) {
        memcpy(type, text, n_type);
        memcpy(body, end + 1, n_body);
        const lin_status status = lin_form_parse(type, body, n_body, &f, &err);
        for (int i = 0; i < f.n && status == LIN_OK; i++) {
            const lin_form_part *p = &f.parts[i];
            if (p->data < body || p->data + p->n > body + n_body || p->name < body || p->name + p->n_name > body + n_body)
                abort();
        }
        if (status == LIN_OK && f.n) lin_form_is(&f.parts[0], "x");
        if (status == LIN_OK) fields(&f);
    }
    lin_free(type);
    lin_free(body);
}

// What is passed on is a head again, and passed on as it is.
static void head(const char *text, size_t n)
{
    char passed[LIN_HEAD_PASSED], again[LIN_HEAD_PASSED];
    size_t n_passed, n_again;
    const char *why;
    const size_t n_head = lin_head_length(text, n);
    if (n_head > n) abort();
    if (!n_head || lin_head_read(text, n_head, passed, &n_passed, &why) != 0) return;
    if (lin_head_length(passed, n_passed) != n_passed) abort();
    if (lin_head_read(passed, n_passed, again, &n_again, &why) != 0) abort();
    if (n_again != n_passed || memcmp(passed, again, n_passed) != 0) abort();
}

static void secret(const char *text, size_t n)
{
    const char *token;
    char *copy = lin_calloc(n + 1, 1);
    if (!copy) return;
    memcpy(copy, text, n);
    const size_t n_token = lin_token_find(copy, copy, copy, &token);
    if (token < copy && n_token) abort();
    lin_token_known(copy, strlen(copy), token, n_token);
    lin_host_allowed(copy, "localhost", NULL, 0);
    lin_origin_allowed(copy, "localhost:8090", 0, NULL, 0);
    lin_origin_allowed("http://localhost:8090", copy, 1, NULL, 0);
    char address[64];
    lin_client_address("a", copy, "", (const char *const[]){"a", "b"}, 2, address, sizeof address);
    lin_client_address("a", "", copy, (const char *const[]){"a", "b"}, 2, address, sizeof address);
    lin_free(copy);
}

void fuzz_serve(const uint8_t *data, size_t size)
{
    if (size == 0) return;
    const char *text = (const char *)data + 1;
    switch (data[0] % 8) {
    case 0: message(text, size - 1, "/vosk"); break;
    case 1:
        message(text, size - 1, "/v1/stream");
        message(text, size - 1, "/v1/realtime");
        break;
    case 2: samples(data + 1, size - 1, LIN_SAMPLES_S16); break;
    case 3:
        samples(data + 1, size - 1, LIN_SAMPLES_F32);
        samples(data + 1, size - 1, LIN_SAMPLES_MULAW);
        samples(data + 1, size - 1, LIN_SAMPLES_ALAW);
        break;
    case 4: form(text, size - 1); break;
    case 6: chunks(text, size - 1); break;
    case 7: prompt(text, size - 1); break;
    default:
        head(text, size - 1);
        secret(text, size - 1); break;
    }
}
