// PTX text to instructions, one kernel at a time. The grammar is that of nvcc's output: one statement to a line or several,
// blocks of inline assembly in braces with registers of their own, labels, .loc lines from -lineinfo.
#include "tests/ptx/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ptx_module {
    ptx_kernel *kernels;
    int n;
    const char *text;
    size_t bytes;
    char **files; // by number
    int n_files;
};

const char *const ptx_special_names[SPECIALS] = {"%tid.x",    "%tid.y",    "%tid.z",   "%ntid.x",  "%ntid.y",
                                                 "%ntid.z",   "%ctaid.x",  "%ctaid.y", "%ctaid.z", "%nctaid.x",
                                                 "%nctaid.y", "%nctaid.z", "%laneid"};

enum { MOST_SLOTS = 1 << 17 };

typedef struct token {
    const char *at;
    int n;
} token;

// Registers of a declaration: %r<100>, or one by its whole name (count 0).
typedef struct bank {
    token prefix;
    uint32_t first;
    int count;
} bank;

typedef struct label {
    token name;
    int at;
} label;

typedef struct decoder {
    const char *at, *end; // what is left of the text
    ptx_kernel *k;
    char *why;
    bank *banks;
    int n_banks, room_banks;
    label *labels, *jumps; // jumps: the instruction `at` branches to the name
    int n_labels, room_labels, n_jumps, room_jumps;
    int room_code, room_slots, room_constants, room_parameters;
    ptx_operand list[40]; // of the instruction
    int n_list;
    token local; // the name of the local memory
    int file, line;
    unsigned used; // of the next vector
    int wrong;
} decoder;

static void grow(void *list, int n, int *room, size_t size)
{
    void **at = list;
    if (n < *room) return;
    *room = *room ? 2 * *room : 64;
    *at = realloc(*at, (size_t)*room * size);
    if (!*at) abort(); // a test
}
#define GROW(list, n, room) grow(&(list), (n), &(room), sizeof *(list))

static void wrong(decoder *d, token t, const char *what)
{
    if (d->wrong) return;
    d->wrong = 1;
    snprintf(d->why, PTX_WHY, "%.*s: %s: %.*s", d->k->name_length, d->k->name, what, t.n, t.at);
}

static bool is(token t, const char *text) { return t.n == (int)strlen(text) && memcmp(t.at, text, (size_t)t.n) == 0; }
static bool begins(token t, const char *text) { return t.n >= (int)strlen(text) && memcmp(t.at, text, strlen(text)) == 0; }
static bool same(token a, token b) { return a.n == b.n && memcmp(a.at, b.at, (size_t)a.n) == 0; }

/* ---- words ----------------------------------------------------------------------------------------------------------------- */

static void skip(decoder *d)
{
    while (d->at < d->end) {
        if (isspace((unsigned char)*d->at)) d->at++;
        else if (d->end - d->at > 1 && d->at[0] == '/' && d->at[1] == '/') {
            while (d->at < d->end && *d->at != '\n') d->at++;
        } else break;
    }
}

static bool in_word(char c) { return isalnum((unsigned char)c) || (c && strchr("_$%.", c)); }

// A name, a number or a directive, else one character; empty at the end.
static token next(decoder *d)
{
    skip(d);
    token t = {d->at, 0};
    while (d->at < d->end && in_word(*d->at)) d->at++;
    if (d->at == t.at && d->at < d->end) d->at++;
    t.n = (int)(d->at - t.at);
    return t;
}

static token peek(decoder *d)
{
    const char *at = d->at;
    const token t = next(d);
    d->at = at;
    return t;
}

static bool take(decoder *d, const char *text)
{
    const char *at = d->at;
    if (is(next(d), text)) return true;
    d->at = at;
    return false;
}

static void expect(decoder *d, const char *text)
{
    if (!take(d, text)) wrong(d, peek(d), text);
}

static long number(decoder *d)
{
    const bool minus = take(d, "-");
    const token t = next(d);
    if (t.n == 0 || !isdigit((unsigned char)*t.at)) {
        wrong(d, t, "not a number");
        return 0;
    }
    const long x = strtol(t.at, NULL, 0);
    return minus ? -x : x;
}

static void skip_past(decoder *d, char c)
{
    while (d->at < d->end && *d->at != c) d->at++;
    if (d->at < d->end) d->at++;
}

/* ---- slots ----------------------------------------------------------------------------------------------------------------- */

static uint32_t new_slot(decoder *d, unsigned char width)
{
    ptx_kernel *k = d->k;
    GROW(k->slots, (int)k->n_slots, d->room_slots);
    k->slots[k->n_slots] = (ptx_slot){k->file_bytes, width};
    k->file_bytes += width == 1 ? 8 : (uint32_t)(LANES * width);
    return k->n_slots++;
}

static ptx_operand operand_of(const decoder *d, uint32_t slot)
{
    return (ptx_operand){slot, d->k->slots[slot].at, d->k->slots[slot].width, false};
}

static ptx_operand constant(decoder *d, uint64_t value, unsigned char width)
{
    ptx_kernel *k = d->k;
    for (int i = 0; i < k->n_constants; i++) {
        if (k->constants[i].value == value && k->slots[k->constants[i].slot].width == width)
            return operand_of(d, k->constants[i].slot);
    }
    GROW(k->constants, k->n_constants, d->room_constants);
    const uint32_t slot = new_slot(d, width);
    k->constants[k->n_constants++] = (ptx_constant){value, slot};
    return operand_of(d, slot);
}

static unsigned char width_of(token type)
{
    static const struct {
        const char *name;
        unsigned char width;
    } types[] = {{".pred", 1}, {".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2}, {".s16", 2}, {".b32", 4},
                 {".u32", 4},  {".s32", 4}, {".f32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is(type, types[i].name)) return types[i].width;
    return 0;
}

static void declare_registers(decoder *d)
{
    const token type = next(d);
    const unsigned char width = width_of(type);
    if (!width) wrong(d, type, "a type of registers that the machine does not know");
    do {
        bank b = {next(d), d->k->n_slots, 0};
        if (take(d, "<")) {
            b.count = (int)number(d);
            expect(d, ">");
        }
        if (b.count < 0 || b.count > MOST_SLOTS || d->k->n_slots > MOST_SLOTS) wrong(d, b.prefix, "too many registers");
        for (int i = 0; !d->wrong && i < (b.count ? b.count : 1); i++) new_slot(d, width);
        GROW(d->banks, d->n_banks, d->room_banks);
        d->banks[d->n_banks++] = b;
    } while (!d->wrong && take(d, ","));
    expect(d, ";");
}

// The latest declaration counts: blocks of inline assembly reuse names.
static int find_register(const decoder *d, token t)
{
    int digits = 0, value = 0, unit = 1;
    while (digits < t.n && digits < 7 && isdigit((unsigned char)t.at[t.n - 1 - digits])) {
        value += unit * (t.at[t.n - 1 - digits] - '0');
        unit *= 10;
        digits++;
    }
    const token prefix = {t.at, t.n - digits};
    for (int i = d->n_banks - 1; i >= 0; i--) {
        const bank *b = &d->banks[i];
        if (b->count == 0 && same(b->prefix, t)) return (int)b->first;
        if (digits && value < b->count && same(b->prefix, prefix)) return (int)b->first + value;
    }
    for (int i = 0; i < SPECIALS; i++)
        if (is(t, ptx_special_names[i])) return i;
    return -1;
}

/* ---- operands -------------------------------------------------------------------------------------------------------------- */

// The address that a name stands for.
static int find_symbol(const decoder *d, token t, uint64_t *value)
{
    *value = 0;
    for (int i = 0; i < d->k->n_parameters; i++) {
        const ptx_parameter *p = &d->k->parameters[i];
        if (!same((token){p->name, p->length}, t)) continue;
        *value = p->at;
        return 1;
    }
    if (d->local.n && same(t, d->local)) *value = PTX_LOCAL_WINDOW;
    else if (!is(t, "lin_shared_bytes")) return 0;
    return 1;
}

static uint64_t immediate(decoder *d, token t)
{
    const bool minus = is(t, "-");
    if (minus) t = next(d);
    if (t.n > 2 && t.at[0] == '0' && (t.at[1] == 'f' || t.at[1] == 'd')) {
        char digits[20] = "";
        memcpy(digits, t.at + 2, (size_t)(t.n - 2 < 16 ? t.n - 2 : 16));
        return strtoull(digits, NULL, 16);
    }
    const uint64_t x = strtoull(t.at, NULL, 0);
    return minus ? 0u - x : x;
}

static void add_operand(decoder *d, ptx_operand o)
{
    if (d->n_list == (int)(sizeof d->list / sizeof *d->list)) wrong(d, peek(d), "too many operands");
    else d->list[d->n_list++] = o;
}

// A register, a constant, or _, of this width (0: any).
static void read_operand(decoder *d, unsigned char width)
{
    bool negated = false;
    token t = next(d);
    if (is(t, "!")) {
        negated = true;
        t = next(d);
    }
    if (t.n == 0) {
        wrong(d, t, "an operand is missing");
    } else if (is(t, "_")) {
        add_operand(d, (ptx_operand){0});
    } else if (*t.at == '%') {
        const int slot = find_register(d, t);
        if (slot < 0) {
            wrong(d, t, "an unknown register");
            return;
        }
        ptx_operand o = operand_of(d, (uint32_t)slot);
        o.negated = negated;
        if (width && o.width != width) wrong(d, t, "a register of another size than the instruction has");
        add_operand(d, o);
    } else if (isdigit((unsigned char)*t.at) || *t.at == '-') {
        const uint64_t value = immediate(d, t);
        if (width == 1) add_operand(d, constant(d, value ? UINT32_MAX : 0, 1));
        else if (width == 0) wrong(d, t, "a constant of unknown size");
        else add_operand(d, constant(d, width == 8 ? value : value & (((uint64_t)1 << (8 * width)) - 1), width));
    } else {
        uint64_t value;
        if (!find_symbol(d, t, &value)) wrong(d, t, "an unknown name");
        add_operand(d, constant(d, value, width == 4 ? 4 : 8));
    }
}

// {a, b, c, d} or one operand.
static int read_vector(decoder *d, unsigned char width)
{
    int n = 0;
    if (!take(d, "{")) {
        read_operand(d, width);
        return 1;
    }
    do {
        read_operand(d, width);
        n++;
    } while (!d->wrong && take(d, ","));
    expect(d, "}");
    return n;
}

// [register + number], [name + number].
static void read_address(decoder *d, ptx_instruction *i)
{
    expect(d, "[");
    const token t = peek(d);
    if (*t.at == '%') {
        read_operand(d, 0);
    } else {
        uint64_t value = 0;
        next(d);
        if (!find_symbol(d, t, &value)) wrong(d, t, "an unknown name");
        add_operand(d, constant(d, value, 8));
    }
    if (take(d, "+")) i->displacement = number(d);
    expect(d, "]");
}

/* ---- instructions ---------------------------------------------------------------------------------------------------------- */

// The part of an opcode at *at; *at moves behind it.
static token part_of(token opcode, int *at)
{
    const int from = *at;
    int to = from;
    while (to < opcode.n && (to == from || opcode.at[to] != '.')) to++;
    *at = to;
    return (token){opcode.at + from, to - from};
}

static void decode_access(decoder *d, ptx_instruction *i, token opcode)
{
    int at = 2;
    i->write = begins(opcode, "st");
    i->run = i->write ? ptx_store : ptx_load;
    i->space = SPACE_GENERIC;
    i->vector = 1;
    while (at < opcode.n) {
        const token part = part_of(opcode, &at);
        if (is(part, ".global")) i->space = SPACE_GLOBAL;
        else if (is(part, ".shared")) i->space = SPACE_SHARED;
        else if (is(part, ".local")) i->space = SPACE_LOCAL;
        else if (is(part, ".param") && !i->write) i->space = SPACE_PARAM;
        else if (is(part, ".v2")) i->vector = 2;
        else if (is(part, ".v4")) i->vector = 4;
        else if (is(part, ".nc") || is(part, ".cg") || is(part, ".cs") || is(part, ".ca") || is(part, ".lu") ||
                 is(part, ".acquire") || is(part, ".gpu") || is(part, ".relaxed") || is(part, ".L1::no_allocate") ||
                 is(part, ".volatile"))
            continue;
        else if (at == opcode.n && width_of(part) && !is(part, ".pred")) {
            i->bytes = width_of(part);
            i->is_signed = part.at[1] == 's';
        } else wrong(d, opcode, "an instruction that the machine does not know");
    }
    if (!i->bytes) wrong(d, opcode, "an instruction that the machine does not know");
    if (i->space == SPACE_SHARED && i->bytes < 4) wrong(d, opcode, "races of less than 4 bytes of shared memory are not checked");
    i->class = i->space == SPACE_SHARED ? PTX_SHARED : i->space == SPACE_PARAM ? PTX_OTHER : PTX_GLOBAL;
    int n = 0;
    if (i->write) {
        read_address(d, i);
        expect(d, ",");
        n = read_vector(d, i->bytes < 4 ? 0 : i->bytes);
    } else {
        n = read_vector(d, 0);
        expect(d, ",");
        read_address(d, i);
        if (d->wrong) return;
        const ptx_operand address = d->list[d->n_list - 1]; // first, as in a store
        memmove(&d->list[1], &d->list[0], (size_t)n * sizeof *d->list);
        d->list[0] = address;
    }
    if (n != i->vector) wrong(d, opcode, "a vector of another length");
    for (int o = 1; !d->wrong && o <= n; o++) {
        const unsigned char width = d->list[o].width;
        if (width && (width == 1 || width < i->bytes)) wrong(d, opcode, "a register that is too narrow");
    }
    i->used = (uint16_t)(d->used ? d->used : 0xFFFF);
}

// mov with a list on one side: o[0] is the whole, the parts follow.
static void pack(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    const unsigned whole = i->o[0].width, part = whole / (unsigned)(i->n - 1);
    unsigned char r[LANES * 8];
    EACH_LANE(l)
    {
        for (int p = 1; p < i->n; p++)
            memcpy(r + (unsigned)l * whole + (unsigned)(p - 1) * part, (unsigned char *)ptx_at(w, &i->o[p]) + (unsigned)l * part,
                   part);
    }
    ptx_put(w, &i->o[0], r, mask);
}

static void unpack(ptx_warp *w, const ptx_instruction *i, uint32_t mask)
{
    const unsigned whole = i->o[0].width, part = whole / (unsigned)(i->n - 1);
    unsigned char r[LANES * 8];
    for (int p = 1; p < i->n; p++) {
        EACH_LANE(l)
        memcpy(r + (unsigned)l * part, (unsigned char *)ptx_at(w, &i->o[0]) + (unsigned)l * whole + (unsigned)(p - 1) * part,
               part);
        ptx_put(w, &i->o[p], r, mask);
    }
}

static void decode_pack(decoder *d, ptx_instruction *i, token opcode)
{
    const unsigned char whole = width_of((token){opcode.at + 3, opcode.n - 3});
    const bool packs = *peek(d).at != '{';
    int n = 0, parts = 1;
    const char *c = d->at;
    while (c < d->end && *c != '{' && *c != ';') c++;
    for (; c < d->end && *c != '}' && *c != ';'; c++) parts += *c == ',';
    const unsigned char part = (unsigned char)(whole / parts);
    i->class = PTX_MOVE;
    i->run = packs ? pack : unpack;
    if (packs) read_operand(d, whole);
    else n = read_vector(d, part);
    expect(d, ",");
    if (packs) n = read_vector(d, part);
    else {
        read_operand(d, whole);
        if (d->wrong) return;
        const ptx_operand last = d->list[d->n_list - 1];
        memmove(&d->list[1], &d->list[0], (size_t)n * sizeof *d->list);
        d->list[0] = last;
    }
    if (n != parts || (n != 2 && n != 4)) wrong(d, opcode, "parts that the machine does not know");
}

static void add_instruction(decoder *d, ptx_instruction *i)
{
    ptx_kernel *k = d->k;
    ptx_operand *o = malloc(((size_t)d->n_list + 1) * sizeof *o);
    if (!o) abort(); // a test
    memcpy(o, d->list, (size_t)d->n_list * sizeof *o);
    i->o = o;
    i->n = (unsigned char)d->n_list;
    i->reads_from = 1;
    i->reads_to = i->n;
    if (i->run == ptx_load || i->run == unpack) i->reads_from = 0, i->reads_to = 1;
    else if (i->run == ptx_store || i->run == ptx_copy_async || i->run == ptx_add_global || i->run == ptx_copy_wait ||
             i->run == ptx_sync_warp || i->kind == KIND_BARRIER) i->reads_from = 0;
    else if (i->run == ptx_shuffle) i->reads_to = 5; // the last is a predicate that it writes
    else if (i->run == ptx_product) i->reads_from = 4;
    else if (i->run == ptx_move || i->run == ptx_move_predicate) i->reads_to = 0;
    GROW(k->code, k->n_code, d->room_code);
    k->code[k->n_code++] = *i;
}

// The source of a conversion may be a wider register, whose lower part counts: moved to a register of its own first.
static void narrow_source(decoder *d, ptx_instruction i, unsigned char width)
{
    const ptx_operand wide = d->list[1], to = d->list[0];
    const char *name = wide.width == 4 ? "cvt.u16.u32" : width == 4 ? "cvt.u32.u64" : "cvt.u16.u64";
    if (wide.width <= width || width < 2) return;
    d->list[0] = operand_of(d, new_slot(d, width));
    i.run = ptx_form_of(name, strlen(name))->run;
    i.class = PTX_MOVE;
    add_instruction(d, &i);
    d->list[1] = d->list[0];
    d->list[0] = to;
}

static void decode_form(decoder *d, ptx_instruction *i, const ptx_form *f, token opcode)
{
    const char *left = f->operands;
    i->run = f->run;
    i->class = (unsigned char)f->class;
    i->kind = (unsigned char)f->kind;
    if (f->kind == KIND_NOTHING) {
        while (d->at < d->end && *d->at != ';') d->at++;
        return;
    }
    if (f->kind == KIND_BRANCH) {
        GROW(d->jumps, d->n_jumps, d->room_jumps);
        d->jumps[d->n_jumps++] = (label){next(d), d->k->n_code};
        return;
    }
    if (f->run == ptx_copy_async) {
        read_address(d, i); // no displacement: nvcc's inline assembly has none
        if (i->displacement) wrong(d, opcode, "a displacement that the machine does not know");
        expect(d, ",");
        read_address(d, i);
        expect(d, ",");
        const long bytes = number(d);
        if (bytes != 4 && bytes != 8 && bytes != 16) wrong(d, opcode, "a size of copies that the machine does not know");
        i->bytes = (unsigned char)bytes;
        return;
    }
    if (f->run == ptx_add_global) {
        read_address(d, i);
        expect(d, ",");
        read_operand(d, 4);
        i->bytes = 4;
        return;
    }
    if (f->run == ptx_shuffle) {
        static const char *const modes[] = {".bfly.", ".up.", ".down.", ".idx."};
        for (int m = 0; m < 4; m++)
            for (int c = 0; c + (int)strlen(modes[m]) <= opcode.n; c++)
                if (memcmp(opcode.at + c, modes[m], strlen(modes[m])) == 0) i->mode = (unsigned char)m;
    }
    if (f->run == ptx_vote) i->mode = opcode.at[10] == 'a' && opcode.at[11] == 'l'; // vote.sync.all
    const bool converts = begins(opcode, "cvt.");
    ptx_operand second = {0}; // the predicate that a shuffle writes besides
    while (*left && !d->wrong) {
        if (take(d, "{")) {
            do {
                if (*left) read_operand(d, (unsigned char)(*left == 'p' ? 1 : *left - '0'));
                left += *left != 0;
            } while (!d->wrong && take(d, ","));
            expect(d, "}");
        } else if (converts && d->n_list == 1) {
            const unsigned char width = (unsigned char)(*left++ - '0');
            read_operand(d, *peek(d).at == '%' ? 0 : width);
            if (!d->wrong && d->list[1].width < width) wrong(d, opcode, "a register of another size than the instruction has");
            if (!d->wrong) narrow_source(d, *i, width);
        } else {
            read_operand(d, (unsigned char)(*left == 'p' ? 1 : *left - '0'));
            left++;
            if (f->run == ptx_shuffle && d->n_list == 1 && take(d, "|")) {
                read_operand(d, 1);
                if (!d->wrong) second = d->list[--d->n_list];
            }
        }
        if (*left && !d->wrong) expect(d, ",");
    }
    if (f->run == ptx_shuffle) add_operand(d, second);
}

static void decode_instruction(decoder *d, token first)
{
    ptx_instruction i = {.file = d->file, .line = d->line, .kind = KIND_PLAIN, .text = first.at};
    d->n_list = 0;
    if (is(first, "@")) {
        bool negated = take(d, "!");
        read_operand(d, 1);
        if (d->wrong) return;
        i.guard = d->list[0];
        i.guard.negated = negated;
        d->n_list = 0;
        first = next(d);
    }
    token opcode = first;
    while (d->end - d->at > 1 && d->at[0] == ':' && d->at[1] == ':') { // .L1::no_allocate
        d->at += 2;
        const token more = next(d);
        opcode.n = (int)(more.at + more.n - opcode.at);
    }
    const bool list = is(opcode, "mov.b32") || is(opcode, "mov.b64");
    bool packs = false;
    if (list) {
        for (const char *c = d->at; c < d->end && *c != ';'; c++) packs |= *c == '{';
    }
    if (packs) decode_pack(d, &i, opcode);
    else if (begins(opcode, "ld.") || begins(opcode, "st.")) decode_access(d, &i, opcode);
    else {
        const ptx_form *f = ptx_form_of(opcode.at, (size_t)opcode.n);
        if (f) decode_form(d, &i, f, opcode);
        else wrong(d, opcode, "an instruction that the machine does not know");
    }
    d->used = 0;
    if (d->wrong) return;
    i.length = (int)(d->at - i.text);
    expect(d, ";");
    add_instruction(d, &i);
}

/* ---- kernels --------------------------------------------------------------------------------------------------------------- */

static void read_parameters(decoder *d)
{
    ptx_kernel *k = d->k;
    expect(d, "(");
    while (!d->wrong && take(d, ".param")) {
        ptx_parameter p = {0};
        size_t align = 0, count = 1;
        if (take(d, ".align")) align = (size_t)number(d);
        const token type = next(d);
        const size_t width = width_of(type);
        if (!width) wrong(d, type, "a type of parameters that the machine does not know");
        while (begins(peek(d), ".")) { // .ptr .global .align 4
            next(d);
            if (isdigit((unsigned char)*peek(d).at)) next(d);
        }
        const token name = next(d);
        p.name = name.at;
        p.length = name.n;
        if (take(d, "[")) {
            count = (size_t)number(d);
            expect(d, "]");
        }
        if (!align) align = width ? width : 1;
        p.at = (k->parameter_bytes + align - 1) / align * align;
        p.bytes = width * count;
        k->parameter_bytes = p.at + p.bytes;
        GROW(k->parameters, k->n_parameters, d->room_parameters);
        k->parameters[k->n_parameters++] = p;
        take(d, ",");
    }
    expect(d, ")");
}

static void link_jumps(decoder *d)
{
    for (int j = 0; j < d->n_jumps && !d->wrong; j++) {
        int l = 0;
        while (l < d->n_labels && !same(d->labels[l].name, d->jumps[j].name)) l++;
        if (l == d->n_labels) wrong(d, d->jumps[j].name, "an unknown label");
        else d->k->code[d->jumps[j].at].target = d->labels[l].at;
    }
}

static void read_body(decoder *d)
{
    ptx_kernel *k = d->k;
    int depth = 1;
    while (!d->wrong && depth) {
        const token t = next(d);
        if (t.n == 0) wrong(d, t, "the text ends inside the kernel");
        else if (is(t, "{")) depth++;
        else if (is(t, "}")) depth--;
        else if (is(t, ";")) continue;
        else if (is(t, ".reg")) declare_registers(d);
        else if (is(t, ".loc")) {
            d->file = (int)number(d);
            d->line = (int)number(d);
            number(d);
            if (take(d, ",")) { // function_name ..., inlined_at file line column: the place of the call
                while (d->at < d->end && *d->at != '\n' && !is(next(d), "inlined_at")) continue;
                d->file = (int)number(d);
                d->line = (int)number(d);
            }
            skip_past(d, '\n');
        } else if (is(t, ".pragma")) {
            skip(d);
            static const char mask[] = "\"used_bytes_mask ";
            if (d->end - d->at > (int)sizeof mask && memcmp(d->at, mask, sizeof mask - 1) == 0)
                d->used = (unsigned)strtoul(d->at + sizeof mask - 1, NULL, 0);
            skip_past(d, ';');
        } else if (is(t, ".local")) {
            expect(d, ".align");
            number(d);
            expect(d, ".b8");
            d->local = next(d);
            expect(d, "[");
            if (k->local_bytes) wrong(d, d->local, "a second local memory");
            k->local_bytes = (size_t)number(d);
            expect(d, "]");
            expect(d, ";");
        } else if (*t.at == '.') wrong(d, t, "a directive that the machine does not know");
        else if (is(peek(d), ":") && !(d->end - d->at > 1 && d->at[1] == ':')) {
            next(d);
            GROW(d->labels, d->n_labels, d->room_labels);
            d->labels[d->n_labels++] = (label){t, k->n_code};
        } else decode_instruction(d, t);
    }
    // Whoever comes to the end has returned.
    GROW(k->code, k->n_code, d->room_code);
    k->code[k->n_code++] = (ptx_instruction){.kind = KIND_RETURN, .class = PTX_CONTROL, .text = "the end", .length = 7};
    link_jumps(d);
}

int ptx_decode(const ptx_module *m, ptx_kernel *k, char *why)
{
    decoder d = {.at = m->text + k->text_at, .end = m->text + m->bytes, .k = k, .why = why};
    if (k->decoded > 0) return 1;
    if (k->decoded < 0) {
        snprintf(why, PTX_WHY, "%.*s: was not understood before", k->name_length, k->name);
        return 0;
    }
    k->files = (const char *const *)m->files;
    k->n_files = m->n_files;
    for (int i = 0; i < SPECIALS; i++) new_slot(&d, 4);
    // The decoder's slots grow from its own count.
    next(&d);
    read_parameters(&d);
    while (!d.wrong && !take(&d, "{")) {
        const token t = next(&d);
        if (is(t, ".maxntid") || is(t, ".reqntid")) {
            k->most_threads = (unsigned)number(&d);
            while (take(&d, ",")) k->most_threads *= (unsigned)number(&d);
        } else if (is(t, ".minnctapersm") || is(t, ".maxnreg")) number(&d);
        else wrong(&d, t, "a directive that the machine does not know");
    }
    if (!d.wrong) read_body(&d);
    free(d.banks);
    free(d.labels);
    free(d.jumps);
    k->decoded = d.wrong ? -1 : 1;
    return !d.wrong;
}

/* ---- modules --------------------------------------------------------------------------------------------------------------- */

// .file 3 "path"
static void read_files(ptx_module *m)
{
    int room = 0;
    for (const char *at = m->text, *end = m->text + m->bytes; (at = memchr(at, '.', (size_t)(end - at))); at++) {
        if (end - at < 8 || memcmp(at, ".file", 5) != 0 || !isspace((unsigned char)at[5])) continue;
        char *after;
        const long n = strtol(at + 5, &after, 10);
        const char *from = memchr(after, '"', (size_t)(end - after)),
                   *to = from ? memchr(from + 1, '"', (size_t)(end - from - 1)) : NULL;
        if (n < 0 || n > 1000 || !to) continue;
        while (m->n_files <= n) {
            GROW(m->files, m->n_files, room);
            m->files[m->n_files++] = NULL;
        }
        free(m->files[n]);
        m->files[n] = strndup(from + 1, (size_t)(to - from - 1));
    }
}

ptx_module *ptx_open(const char *text, size_t bytes, char *why)
{
    static const char entry[] = ".entry";
    ptx_module *m = calloc(1, sizeof *m);
    int room = 0;
    if (!m) {
        snprintf(why, PTX_WHY, "no memory for a module");
        return NULL;
    }
    m->text = text;
    m->bytes = bytes;
    for (const char *at = text, *end = text + bytes; (at = memchr(at, '.', (size_t)(end - at))); at++) {
        if ((size_t)(end - at) < sizeof entry || memcmp(at, entry, sizeof entry - 1) != 0) continue;
        const char *name = at + sizeof entry - 1;
        while (name < end && isspace((unsigned char)*name)) name++;
        const char *last = name;
        while (last < end && in_word(*last)) last++;
        if (last == name) continue;
        GROW(m->kernels, m->n, room);
        m->kernels[m->n++] = (ptx_kernel){.name = name, .name_length = (int)(last - name), .text_at = (size_t)(name - text)};
    }
    if (m->n == 0) {
        snprintf(why, PTX_WHY, "the text has no .entry");
        ptx_close(m);
        return NULL;
    }
    read_files(m);
    return m;
}

void ptx_close(ptx_module *m)
{
    if (!m) return;
    for (int i = 0; i < m->n; i++) {
        ptx_kernel *k = &m->kernels[i];
        for (int c = 0; c < k->n_code; c++) {
            union {
                const ptx_operand *from;
                void *to;
            } o = {k->code[c].o};
            free(o.to);
        }
        free(k->code);
        free(k->parameters);
        free(k->slots);
        free(k->constants);
    }
    for (int i = 0; i < m->n_files; i++) free(m->files[i]);
    free(m->files);
    free(m->kernels);
    free(m);
}

ptx_kernel *ptx_find(ptx_module *m, const char *name, char *why)
{
    for (int i = 0; i < m->n; i++) {
        ptx_kernel *k = &m->kernels[i];
        if (!is((token){k->name, k->name_length}, name)) continue;
        return ptx_decode(m, k, why) ? k : NULL;
    }
    snprintf(why, PTX_WHY, "there is no kernel %s", name);
    return NULL;
}

/* ---- mutations ------------------------------------------------------------------------------------------------------------- */

int ptx_remove_sync(ptx_kernel *k, int number, char *what)
{
    for (int c = 0; c < k->n_code; c++) {
        ptx_instruction *i = &k->code[c];
        const bool waits = i->kind == KIND_BARRIER || i->run == ptx_sync_warp || i->run == ptx_copy_wait;
        if (!waits || i->removed || number-- != 0) continue;
        const char *file = i->file < k->n_files && k->files[i->file] ? k->files[i->file] : "?";
        snprintf(what, PTX_WHY, "%s:%d: %.*s", file, i->line, i->length, i->text);
        i->kind = KIND_NOTHING;
        i->removed = true;
        return 1;
    }
    return 0;
}
