// realtime_text.c - events of clients of OpenAI's realtime protocol; see realtime_text.h.

#include "serve/realtime_text.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "serve/serve_calls.h"

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

long lin_base64_decode(const char *text, size_t n, unsigned char *bytes)
{
    long made = 0;
    if (n % 4) return -1;
    for (size_t at = 0; at < n; at += 4) {
        const int last = at + 4 == n, pads = last ? (text[n - 1] == '=') + (text[n - 1] == '=' && text[n - 2] == '=') : 0;
        unsigned value = 0;
        for (int i = 0; i < 4; i++) {
            const int d = i >= 4 - pads ? 0 : digit(text[at + (size_t)i]);
            if (d < 0) return -1;
            value = value << 6 | (unsigned)d;
        }
        for (int i = 0; i < 3 - pads; i++) bytes[made++] = (unsigned char)(value >> (16 - 8 * i));
    }
    return made;
}

static const cJSON *member(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

static const char *text_of(const cJSON *item) { return cJSON_IsString(item) ? item->valuestring : ""; }

static lin_status take_sound(const cJSON *audio, lin_message *m, lin_error *err)
{
    const char *text = text_of(audio);
    const size_t n = strlen(text);
    unsigned char *sound = lin_alloc(n / 4 * 3 + 1, 1);
    if (!sound) return lin_no_memory(err, "sound", n);
    const long made = cJSON_IsString(audio) ? lin_base64_decode(text, n, sound) : -1;
    if (made < 0) {
        lin_free(sound);
        return lin_fail(err, LIN_INVALID, "audio is not base64 (RFC 4648)");
    }
    lin_free(m->sound);
    m->sound = sound;
    m->n_sound = (size_t)made;
    return LIN_OK;
}

static lin_status take_format(const cJSON *format, lin_message *m, lin_error *err)
{
    const cJSON *rate = member(format, "rate");
    const char *type = cJSON_IsString(format) ? format->valuestring : text_of(member(format, "type"));
    static const struct {
        const char *now, *before; // its name in earlier versions
        lin_sample_format format;
        double rate_hz;
    } formats[] = {{"audio/pcm", "pcm16", LIN_SAMPLES_S16, 24000},
                   {"audio/pcmu", "g711_ulaw", LIN_SAMPLES_MULAW, 8000},
                   {"audio/pcma", "g711_alaw", LIN_SAMPLES_ALAW, 8000}};
    size_t i = 0;
    while (*type && i < 3 && strcmp(type, formats[i].now) != 0 && strcmp(type, formats[i].before) != 0) i++;
    if (i == 3) return lin_fail(err, LIN_UNSUPPORTED, "the format of the sound must be audio/pcm, audio/pcmu or audio/pcma");
    if (*type) {
        m->format = formats[i].format;
        m->rate_hz = formats[i].rate_hz;
    }
    if (!rate) return LIN_OK;
    const double hz = cJSON_IsNumber(rate) ? rate->valuedouble : 0;
    if (!(hz >= 4000 && hz <= 192000) || hz != floor(hz))
        return lin_fail(err, LIN_INVALID, "rate must be a whole number from 4000 to 192000");
    m->rate_hz = hz;
    return LIN_OK;
}

// Words that are likely, from a prompt and from keywords.
static lin_status take_likely(const cJSON *transcription, lin_message *m, lin_error *err)
{
    const cJSON *keyword, *keywords = member(transcription, "keywords");
    const char *prompt = text_of(member(transcription, "prompt")), *at;
    lin_buffer likely = {0};
    int n = lin_prompt_phrases(prompt, strlen(prompt), &likely);
    cJSON_ArrayForEach(keyword, keywords) n += lin_prompt_phrases(text_of(keyword), strlen(text_of(keyword)), &likely);
    if (n > LIN_MESSAGE_MOST_PHRASES) n = LIN_MESSAGE_MOST_PHRASES;
    lin_status status = lin_buffer_status(&likely, err);
    lin_message_free(m);
    m->phrases = status == LIN_OK ? lin_calloc((size_t)n + 1, sizeof *m->phrases) : NULL;
    if (status == LIN_OK && !m->phrases) status = lin_no_memory(err, "phrases", (size_t)n * sizeof *m->phrases);
    at = likely.data;
    for (; status == LIN_OK && m->n_phrases < n; at += strlen(at) + 1) {
        if (!(m->phrases[m->n_phrases] = lin_strdup(at))) status = lin_no_memory(err, "a phrase", strlen(at));
        else m->n_phrases++;
    }
    lin_buffer_free(&likely);
    return status;
}

static void add_language(const cJSON *language, lin_message *m)
{
    const size_t n = strlen(m->languages);
    if (*text_of(language)) snprintf(m->languages + n, sizeof m->languages - n, "%s ", text_of(language));
}

static lin_status take_turns(const cJSON *turns, lin_message *m, lin_error *err)
{
    const cJSON *padding = member(turns, "prefix_padding_ms");
    if (turns) m->manual = !cJSON_IsObject(turns);
    if (!cJSON_IsNumber(padding)) return LIN_OK;
    if (!(padding->valuedouble >= 0 && padding->valuedouble <= 60000))
        return lin_fail(err, LIN_INVALID, "prefix_padding_ms must be a number from 0 to 60000");
    m->padding_s = padding->valuedouble / 1000;
    return LIN_OK;
}

// Of the wrong type a value would be as if it were not there, and the client would wait for what does not come. null: not there.
static lin_status check_types(const cJSON *session, const cJSON *format, const cJSON *transcription, const cJSON *turns,
                              lin_error *err)
{
    const cJSON *audio = member(session, "audio");
    const struct {
        const cJSON *item;
        int types;
        const char *name, *wanted;
    } values[] = {{audio, cJSON_Object, "audio", "an object"},
                  {member(audio, "input"), cJSON_Object, "audio.input", "an object"},
                  {format, cJSON_Object | cJSON_String, "the format", "an object with a type"},
                  {member(format, "type"), cJSON_String, "the type of the format", "a text"},
                  {turns, cJSON_Object, "turn_detection", "an object or null"},
                  {member(turns, "prefix_padding_ms"), cJSON_Number, "prefix_padding_ms", "a number from 0 to 60000"},
                  {transcription, cJSON_Object, "transcription", "an object"},
                  {member(transcription, "language"), cJSON_String, "language", "a text"},
                  {member(transcription, "languages"), cJSON_Array, "languages", "a list of texts"}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].item && !(values[i].item->type & (values[i].types | cJSON_NULL)))
            return lin_fail(err, LIN_INVALID, "%s must be %s", values[i].name, values[i].wanted);
    }
    return LIN_OK;
}

// As it is now, and as it was in earlier versions of the protocol, without audio.input. On failure all is as before: the client
// is told so, and goes on.
static lin_status take_session(const cJSON *session, lin_message *m, lin_error *err)
{
    const cJSON *input = member(member(session, "audio"), "input"), *format = member(input, "format"),
                *transcription = member(input, "transcription"), *turns = member(input, "turn_detection"), *language;
    if (!cJSON_IsObject(session)) return lin_fail(err, LIN_FORMAT, "session is not an object");
    if (!strcmp(text_of(member(session, "type")), "realtime"))
        return lin_fail(err, LIN_UNSUPPORTED, "the type of a session must be transcription: this server does not speak");
    if (!input) {
        format = member(session, "input_audio_format");
        transcription = member(session, "input_audio_transcription");
        turns = member(session, "turn_detection");
    }
    lin_message next = *m;
    next.languages[0] = 0;
    add_language(member(transcription, "language"), &next);
    cJSON_ArrayForEach(language, member(transcription, "languages")) add_language(language, &next);
    lin_status status = check_types(session, format, transcription, turns, err);
    if (status == LIN_OK) status = take_turns(turns, &next, err);
    if (status == LIN_OK && format) status = take_format(format, &next, err);
    if (status == LIN_OK && cJSON_IsObject(transcription)) status = take_likely(transcription, m, err);
    if (status != LIN_OK) return status;
    next.phrases = m->phrases;
    next.n_phrases = m->n_phrases;
    next.has_phrases = m->has_phrases;
    *m = next;
    return LIN_OK;
}

lin_status lin_realtime_parse(const char *text, size_t n, lin_message *m, lin_error *err)
{
    cJSON *json = NULL;
    if (n > LIN_REALTIME_BYTES) return lin_fail(err, LIN_INVALID, "an event of more than %d bytes", (int)LIN_REALTIME_BYTES);
    lin_status status = lin_json_parse(text, n, "the event", 0, &json, err);
    if (status != LIN_OK) return status;
    const char *type = text_of(member(json, "type"));
    if (!strcmp(type, "session.update") || !strcmp(type, "transcription_session.update")) {
        m->kind = LIN_MESSAGE_CONFIG;
        status = take_session(member(json, "session"), m, err);
    } else if (!strcmp(type, "input_audio_buffer.append")) {
        m->kind = LIN_MESSAGE_SOUND;
        status = take_sound(member(json, "audio"), m, err);
    } else if (!strcmp(type, "input_audio_buffer.commit")) {
        m->kind = LIN_MESSAGE_RESET;
    } else if (!strcmp(type, "input_audio_buffer.clear")) {
        m->kind = LIN_MESSAGE_CLEAR;
    } else {
        status =
            lin_fail(err, LIN_INVALID, "this server knows session.update and input_audio_buffer.append, .commit and .clear only");
    }
    cJSON_Delete(json);
    return status;
}
