// The machine that runs PTX: instructions give what the PTX ISA says, correct kernels pass, and each planted fault is found.
#include "tests/ptx/ptx.h"
#include "tests/support.h"

// A kernel of an array x and a number n, with registers to use.
#define HEAD                                                                                                                     \
    ".version 9.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 lin_shared_bytes[];\n"                         \
    ".visible .entry k(\n.param .u64 k_param_0,\n.param .u32 k_param_1\n)\n.maxntid 256\n{\n"                                    \
    ".local .align 8 .b8 depot[16];\n.reg .pred %p<8>;\n.reg .b16 %rs<8>;\n.reg .b32 %r<32>;\n.reg .f32 %f<32>;\n"               \
    ".reg .b64 %rd<16>;\n.reg .f64 %fd<8>;\nld.param.u64 %rd1, [k_param_0];\nld.param.u32 %r1, [k_param_1];\n"                   \
    "mov.u32 %r2, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\nshl.b32 %r3, %r2, 2;\n"
#define TAIL "ret;\n}\n"
#define KERNEL(body) HEAD body TAIL

enum { N = 256, SHARED = 4096 };

static uint32_t x[N];
static char why[PTX_WHY];

typedef struct setting {
    int threads, blocks, together, unwritten; // unwritten: nothing is known of x
    uint64_t seed;
    int without; // the number of a barrier that is left out, + 1
} setting;

// Runs the text's kernel over x, which is memory of the machine. Returns whether it passed; why has the message.
static int runs(const char *text, setting s, ptx_counts *counts)
{
    const uint32_t n = N;
    const void *pointer = x;
    const void *const values[2] = {&pointer, &n};
    const size_t sizes[2] = {sizeof pointer, sizeof n};
    why[0] = 0;
    ptx_module *m = ptx_open(text, strlen(text), why);
    ck_assert_msg(m != NULL, "%s", why);
    ptx_kernel *k = ptx_find(m, "k", why);
    int passed = 0;
    if (k) {
        char what[PTX_WHY];
        if (s.without) ck_assert_int_eq(ptx_remove_sync(k, s.without - 1, what), 1);
        ck_assert_int_eq(ptx_memory_add(x, sizeof x, !s.unwritten), 1);
        const ptx_launch launch = {.kernel = k,
                                   .grid = {s.blocks ? (unsigned)s.blocks : 1, 1, 1},
                                   .block = {s.threads ? (unsigned)s.threads : 32, 1, 1},
                                   .shared_bytes = SHARED,
                                   .values = values,
                                   .sizes = sizes,
                                   .n = 2,
                                   .together = s.together,
                                   .seed = s.seed};
        passed = ptx_run(&launch, counts, why);
        ptx_memory_remove(x);
    }
    ptx_close(m);
    return passed;
}

/* ---- instructions ---------------------------------------------------------------------------------------------------------- */

// r5 of r2 = a and r3 = b, or f5 of f2 and f3: their bits.
static const struct {
    const char *code;
    uint32_t a, b, expected;
} instructions[] = {
    {"add.s32 %r5, %r10, %r11;", 0xFFFFFFFF, 2, 1},
    {"sub.s32 %r5, %r10, %r11;", 1, 2, 0xFFFFFFFF},
    {"mul.hi.u32 %r5, %r10, %r11;", 0x80000000, 6, 3},
    {"mad.lo.s32 %r5, %r10, %r11, -7;", 5, 6, 23},
    {"div.s32 %r5, %r10, %r11;", (uint32_t)-7, 2, (uint32_t)-3},
    {"rem.s32 %r5, %r10, %r11;", (uint32_t)-7, 2, (uint32_t)-1},
    {"div.u32 %r5, %r10, %r11;", (uint32_t)-7, 2, 0x7FFFFFFC},
    {"shl.b32 %r5, %r10, %r11;", 1, 32, 0},
    {"shr.u32 %r5, %r10, %r11;", 0x80000000, 31, 1},
    {"shr.s32 %r5, %r10, %r11;", 0x80000000, 40, 0xFFFFFFFF},
    {"min.s32 %r5, %r10, %r11;", (uint32_t)-1, 1, (uint32_t)-1},
    {"max.u32 %r5, %r10, %r11;", (uint32_t)-1, 1, (uint32_t)-1},
    {"popc.b32 %r5, %r10;", 0xF0F0, 0, 8},
    {"brev.b32 %r5, %r10;", 3, 0, 0xC0000000},
    {"bfind.shiftamt.u32 %r5, %r10;", 1, 0, 31},
    {"bfi.b32 %r5, %r10, %r11, 4, 28;", 0xABCDEF1, 0x5, 0xABCDEF15},
    {"bfi.b32 %r5, %r10, %r11, 8, 4;", 0xFF, 0, 0xF00},
    {"add.f32 %f5, %f10, %f11;", 0x3F800000, 0x40000000, 0x40400000},
    {"add.rz.f32 %f5, %f10, %f11;", 0x3F800000, 0x33FFFFFF, 0x3F800000},
    {"fma.rn.f32 %f5, %f10, %f11, 0fBF800000;", 0x3F800003, 0x3F800003, 0x35400002},
    {"fma.rm.f32 %f5, %f10, %f11, 0f33800000;", 0x3F800000, 0xBF800000, 0xBF7FFFFF},
    {"max.f32 %f5, %f10, %f11;", 0x7FC00000, 0x3F800000, 0x3F800000}, // of a NaN and a number, the number
    {"copysign.f32 %f5, %f10, %f11;", 0x80000000, 0x40000000, 0xC0000000},
    {"ex2.approx.ftz.f32 %f5, %f10;", 0xC2FE0000, 0, 0}, // 2^-127 is flushed
    {"ex2.approx.f32 %f5, %f10;", 0xC2FE0000, 0, 0x00400000},
    {"rcp.approx.ftz.f32 %f5, %f10;", 0x00400000, 0, 0x7F800000},
    {"cvt.sat.f32.f32 %f5, %f10;", 0x7FC00000, 0, 0},
    {"cvt.rzi.s32.f32 %r5, %f10;", 0xC0200000, 0, (uint32_t)-2},
    {"cvt.rzi.s32.f32 %r5, %f10;", 0x7F800000, 0, 0x7FFFFFFF},
    {"cvt.rni.f32.f32 %f5, %f10;", 0x40200000, 0, 0x40000000},                       // 2.5: to even
    {"cvt.rna.tf32.f32 %r5, %f10;", 0x3F801000, 0, 0x3F802000},                      // a tie: away from zero
    {"cvt.rn.bf16.f32 %rs5, %f10;\nmov.b32 %r5, {%rs5, 0};", 0x3F808000, 0, 0x3F80}, // a tie: to even
    {"mov.b32 {%rs1, %rs2}, %r10;\ncvt.f32.bf16 %f5, %rs2;", 0x3F810000, 0, 0x3F810000},
    {"mov.b64 %rd5, {%r10, %r11};\nshr.u64 %rd5, %rd5, 16;\ncvt.u32.u64 %r5, %rd5;", 0xAAAABBBB, 0xCCCCDDDD, 0xDDDDAAAA},
    {"mov.b32 {%rs1, %rs2}, %r10;\nmul.wide.u16 %r5, %rs1, %rs2;", 0x00030007, 0, 21},
    {"cvt.u64.u32 %rd5, %r10;\ncvt.s64.s32 %rd5, %rd5;\nshr.u64 %rd5, %rd5, 32;\ncvt.u32.u64 %r5, %rd5;", 0x80000000, 0,
     0xFFFFFFFF},
    {"setp.ltu.f32 %p1, %f10, %f11;\nselp.u32 %r5, 1, 2, %p1;", 0x7FC00000, 0, 1},
    {"setp.lt.f32 %p1, %f10, %f11;\nselp.u32 %r5, 1, 2, %p1;", 0x7FC00000, 0, 2},
    {"setp.ne.f32 %p1, %f10, %f11;\nselp.u32 %r5, 1, 2, %p1;", 0x7FC00000, 0, 2},
    {"setp.neu.f32 %p1, %f10, %f11;\nselp.u32 %r5, 1, 2, %p1;", 0x7FC00000, 0, 1},
    {"setp.lt.s32 %p1, %r10, %r11;\n@%p1 mov.u32 %r5, 7;\n@!%p1 mov.u32 %r5, 8;", (uint32_t)-1, 0, 7},
    {"shfl.sync.bfly.b32 %r5|%p1, %r10, 1, 31, -1;", 9, 0, 9},
    {"shfl.sync.down.b32 %r5, %r2, 31, 31, -1;", 0, 0, 31}, // lane 0 has lane 31's
    {"vote.sync.ballot.b32 %r5, %p0, -1;", 0, 0, 0x0000FFFF},
    {"redux.sync.max.s32 %r5, %r2, -1;", 0, 0, 31},
    {"st.local.u32 [%rd6+4], %r10;\nld.local.s32 %rd5, [%rd6+4];\nshr.u64 %rd5, %rd5, 40;\ncvt.u32.u64 %r5, %rd5;", 0xFFFFFFFF, 0,
     0xFFFFFF},
    {"ld.global.u8 %rs1, [%rd1+1];\nmov.b32 %r5, {%rs1, 0};", 0x00001200, 0, 0x12},
};

START_TEST(one_instruction)
{
    char text[4000];
    const char *code = instructions[_i].code;
    const int number = strstr(code, "%f5,") != NULL;
    snprintf(text, sizeof text, "%s%s%s%s",
             HEAD "mov.u64 %rd6, depot;\nsetp.lt.u32 %p0, %r2, 16;\nld.global.u32 %r10, [%rd1];\nld.global.u32 %r11, [%rd1+4];\n"
                  "mov.b32 %f10, %r10;\nmov.b32 %f11, %r11;\n",
             code, number ? "mov.b32 %r5, %f5;\n" : "\n",
             "setp.ne.s32 %p2, %r2, 0;\n@%p2 bra $L_end;\nst.global.u32 [%rd1+8], %r5;\n$L_end:\n" TAIL);
    x[0] = instructions[_i].a;
    x[1] = instructions[_i].b;
    ck_assert_msg(runs(text, (setting){0}, NULL), "%s: %s", code, why);
    ck_assert_msg(x[2] == instructions[_i].expected, "%s of %08x, %08x: %08x, expected %08x", code, x[0], x[1], x[2],
                  instructions[_i].expected);
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------------------------------------- */

// Of shared memory that is not new: a write of the thread's own word, a wait, a read of the word of the thread `other` further.
#define EXCHANGE(wait, other) \
    "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nst.shared.u32 [%r3], %r2;\n" wait \
    "xor.b32 %r4, %r2, " other ";\nshl.b32 %r4, %r4, 2;\nld.shared.u32 %r5, [%r4];\n" \
    "st.global.u32 [%rd3], %r5;\n"
// One copy of 4 bytes for each thread.
#define COPY(after) "cp.async.ca.shared.global [%r3], [%rd3], 4;\ncp.async.commit_group;\n" after
#define HALF "setp.lt.u32 %p1, %r2, 16;\n"

static const struct {
    const char *text, *says; // NULL: it passes
    setting s;
} faults[] = {
    {KERNEL(EXCHANGE("bar.sync 0;\n", "33")), NULL, {.threads = 64}},
    {KERNEL(EXCHANGE("", "33")), "no barrier", {.threads = 64}},
    {KERNEL(EXCHANGE("bar.sync 0;\n", "33")), "no barrier", {.threads = 64, .without = 2}},
    {KERNEL(EXCHANGE("bar.warp.sync -1;\n", "33")), "no barrier", {.threads = 64}},
    {KERNEL(EXCHANGE("bar.warp.sync -1;\n", "5")), NULL, {.threads = 64}},
    {KERNEL(EXCHANGE("", "5")), "no syncwarp", {.threads = 64}},
    {KERNEL(EXCHANGE("", "0")), NULL, {.threads = 64}},
    {KERNEL(EXCHANGE("bar.sync 0;\n", "33") "st.shared.u32 [%r3], %r2;\n"), "no barrier", {.threads = 64}},
    {KERNEL("st.shared.u32 [lin_shared_bytes], %r2;\n"), "a write after a write", {0}},
    {KERNEL(COPY("cp.async.wait_group 0;\n") EXCHANGE("bar.sync 0;\n", "33")), NULL, {.threads = 64}},
    {KERNEL(COPY("cp.async.wait_group 0;\nld.shared.u32 %r5, [%r3];\n")), NULL, {0}},
    {KERNEL(COPY("cp.async.wait_group 1;\nld.shared.u32 %r5, [%r3];\n")), "nothing has written", {0}},
    {KERNEL(COPY("ld.shared.u32 %r5, [%r3];\n")), "nothing has written", {0}},
    {KERNEL(COPY("")), "before its asynchronous copy", {0}},
    {KERNEL(COPY("cp.async.wait_group 0;\nxor.b32 %r4, %r3, 4;\nld.shared.u32 %r5, [%r4];\n")), "no syncwarp", {0}},
    {KERNEL("ld.shared.u32 %r5, [%r3];\n"), "reads shared memory that nothing has written", {0}},
    {KERNEL("ld.global.u32 %r5, [%rd3];\n"), "reads global memory that nothing has written", {.unwritten = 1}},
    {KERNEL("mov.u64 %rd6, depot;\nld.local.u32 %r5, [%rd6];\n"), "reads local memory that nothing has written", {0}},
    {KERNEL("add.s32 %r5, %r6, %r2;\n"), "operand 1 is a register that nothing has written", {0}},
    {KERNEL(HALF "@%p1 mov.u32 %r6, 1;\nadd.s32 %r5, %r6, 1;\n"), "lane 16: operand 1", {0}},
    {KERNEL("ld.global.u32 %r5, [%rd3+900];\n"), "in no allocation", {0}},
    {KERNEL("st.global.u32 [%rd3+-4], %r2;\n"), "in no allocation", {0}},
    {KERNEL("st.shared.u32 [%r3+4000], %r2;\n"), "of 4096 bytes of shared memory", {0}},
    {KERNEL("ld.global.v2.f32 {%f1, %f2}, [%rd3];\n"), "is not aligned to 8 bytes", {0}},
    {KERNEL("ld.global.u32 %r5, [%rd1+2];\n"), "is not aligned to 4 bytes", {0}},
    {KERNEL("mov.u64 %rd6, depot;\nst.local.u32 [%rd6+16], %r2;\n"), "of 16 bytes of local memory", {0}},
    {KERNEL("ld.param.u32 %r5, [k_param_1+4];\n"), "of 12 bytes of parameter memory", {0}},
    {KERNEL("ld.param.u64 %rd5, [k_param_1+-4];\n"), "is not aligned to 8 bytes", {0}},
    {KERNEL(HALF "@%p1 bra $L_a;\nbar.sync 0;\nbra.uni $L_b;\n$L_a:\nbar.sync 0;\n$L_b:\n"), "another barrier", {0}},
    {KERNEL("setp.lt.u32 %p1, %r2, 32;\n@%p1 bra $L_a;\nbar.sync 0;\nbra.uni $L_b;\n$L_a:\nbar.sync 0;\n$L_b:\n"),
     "divergent barrier",
     {.threads = 64}},
    {KERNEL(HALF "@%p1 bra $L_a;\nshfl.sync.bfly.b32 %r5, %r2, 1, 31, -1;\n$L_a:\nbar.sync 0;\n"), "deadlock", {0}},
    {KERNEL(HALF "@%p1 bra $L_a;\nshfl.sync.bfly.b32 %r5, %r2, 1, 31, 65535;\n$L_a:\nbar.sync 0;\n"), "not in its own mask", {0}},
    {KERNEL(HALF "@%p1 bra $L_a;\nshfl.sync.bfly.b32 %r5, %r2, 1, 31, 0xFFFF0000;\n$L_a:\nbar.sync 0;\n"), NULL, {0}},
    {KERNEL(HALF "@%p1 bra $L_a;\nshfl.sync.bfly.b32 %r5, %r2, 16, 31, 0xFFFF0000;\n$L_a:\n"), "which does not take part", {0}},
    {KERNEL("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {0,0,0,1}, {0,0}, "
            "{0f00000000,0f00000000,0f00000000,"
            "0f00000000};\n"),
     "was not rounded",
     {0}},
    {KERNEL("$L_a:\nsub.s32 %r2, %r2, 0;\nfoo.s32 %r5, %r2;\n"), "does not know: foo.s32", {0}},
    {KERNEL("add.bf16 %rs1, %rs2, %rs3;\n"), "does not know: add.bf16", {0}},
    {KERNEL("add.s32 %rd4, %r2, %r2;\n"), "another size", {0}},
    {KERNEL("add.s32 %q4, %r2, %r2;\n"), "an unknown register: %q4", {0}},
    {KERNEL("bra $L_nowhere;\n"), "an unknown label: $L_nowhere", {0}},
    {KERNEL("ld.global.weird.u32 %r5, [%rd3];\n"), "does not know: ld.global.weird.u32", {0}},
    {KERNEL(""), "compiled for fewer", {.threads = 512}},
    {".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(\n.param .u64 a,\n.param .u32 b\n)\n{\nret;\n}\n",
     "compiled for fewer", {.threads = 288}}, // without .maxntid
    // Blocks that wait for each other: each adds 1, then waits for all.
    {KERNEL("red.release.gpu.global.add.u32 [%rd1], 1;\n$L_a:\nld.acquire.gpu.global.u32 %r5, [%rd1];\nsetp.lt.u32 %p1, %r5, "
            "96;\n@%p1 bra "
            "$L_a;\n"),
     NULL,
     {.blocks = 3, .together = 1}},
};

START_TEST(one_fault)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        setting s = faults[_i].s;
        s.seed = seed;
        memset(x, 0, sizeof x);
        const int passed = runs(faults[_i].text, s, NULL);
        if (!faults[_i].says) ck_assert_msg(passed, "%s", why);
        else ck_assert_msg(!passed && strstr(why, faults[_i].says), "expected \"%s\" in \"%s\"", faults[_i].says, why);
    }
}
END_TEST

/* ---- counts ---------------------------------------------------------------------------------------------------------------- */

START_TEST(counted)
{
    ptx_counts c = {0};
    memset(x, 0, sizeof x);
    // Columns of a matrix of 32 words a row: all lanes in one bank. A vector of 16 bytes has none that it need not.
    ck_assert_msg(runs(KERNEL("shl.b32 %r4, %r2, 7;\nst.shared.u32 [%r4], %r2;\nshl.b32 %r5, %r2, 4;\nbar.sync 0;\n"
                              "st.shared.v4.u32 [%r5], {%r2, %r2, %r2, %r2};\nst.global.u32 [%rd3], %r2;\n"
                              "mov.b32 %f1, %r2;\ncvt.rna.tf32.f32 %r5, %f1;\n"),
                       (setting){.threads = 32, .blocks = 2}, &c), "%s", why);
    ck_assert_uint_eq(c.instructions[PTX_FLOAT], 2); // of the conversion, which is two of integers more
    ck_assert_uint_eq(c.blocks, 2);
    ck_assert_uint_eq(c.warps, 2);
    ck_assert_uint_eq(c.instructions[PTX_SHARED], 4);
    ck_assert_uint_eq(c.instructions[PTX_GLOBAL], 2);
    ck_assert_uint_eq(c.instructions[PTX_SYNC], 2);
    ck_assert_uint_eq(c.conflicts, 2 * 31);
    ck_assert_uint_eq(c.wavefronts, 2 * (32 + 4));
    ck_assert_uint_ge(c.sectors, 2 * 4); // x may begin inside a sector
    ck_assert_uint_le(c.sectors, 2 * 5);
    ck_assert_uint_eq(c.written, 32 * c.sectors / 2); // both blocks write the same, once in memory
    ck_assert_uint_eq(c.read, 0);
}
END_TEST

START_TEST(arguments)
{
    const char *text = KERNEL("");
    const uint64_t wide = 0;
    const void *const values[2] = {&wide, &wide};
    const size_t sizes[2] = {8, 8};
    ptx_module *m = ptx_open(text, strlen(text), why);
    ptx_launch launch = {
        .kernel = ptx_find(m, "k", why), .grid = {1, 1, 1}, .block = {1, 1, 1}, .values = values, .sizes = sizes, .n = 2};
    ck_assert_int_eq(ptx_run(&launch, NULL, why), 0);
    ck_assert_msg(strstr(why, "bytes of an argument: 8, not 4") != NULL, "%s", why);
    launch.n = 1;
    ck_assert_int_eq(ptx_run(&launch, NULL, why), 0);
    ck_assert_msg(strstr(why, "arguments of the launch: 1, not 2") != NULL, "%s", why);
    ck_assert_int_eq(ptx_remove_sync(ptx_find(m, "k", why), 0, why), 0);
    ck_assert_ptr_null(ptx_find(m, "q", why));
    ck_assert_str_eq(why, "there is no kernel q");
    ptx_close(m);
    ck_assert_ptr_null(ptx_open("nothing", 7, why));
    ck_assert_str_eq(why, "the text has no .entry");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ptx");
    TCase *cases = tcase_create("ptx");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, one_instruction, 0, sizeof instructions / sizeof *instructions);
    tcase_add_loop_test(cases, one_fault, 0, sizeof faults / sizeof *faults);
    tcase_add_test(cases, counted);
    tcase_add_test(cases, arguments);
    suite_add_tcase(suite, cases);
    return test_run(suite);
}
