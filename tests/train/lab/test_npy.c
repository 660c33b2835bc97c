// NumPy files: output is that of NumPy, input is checked; truncated, modified and foreign bytes are refused.
#include "train/lab/npy.h"

#include <sys/stat.h>

#include "base/memory.h"
#include "base/status.h"
#include "tests/support.h"

static const char *path;

static void setup(void) { path = test_path("x.npy"); }

static lin_status write_whole(const char *to, const float *rows, size_t T, int D, lin_error *err)
{
    lin_npy_writer *w;
    lin_status status = lin_npy_create(to, D, &w, err);
    if (status != LIN_OK) return status;
    status = lin_npy_append(w, rows, T, err);
    if (status != LIN_OK) {
        lin_npy_abandon(w);
        return status;
    }
    return lin_npy_close(w, err);
}

static int exists(const char *name)
{
    struct stat st;
    return stat(test_path(name), &st) == 0;
}

START_TEST(written_and_read)
{
    float x[12], *y;
    test_fill_f32(x, 12, 1, -5, 5);
    x[3] = NAN;
    x[4] = -INFINITY;
    lin_npy_writer *w;
    size_t T;
    int D;
    OK(lin_npy_create(path, 3, &w, &err));
    OK(lin_npy_append(w, x, 1, &err));
    OK(lin_npy_append(w, x, 0, &err));
    OK(lin_npy_append(w, x + 3, 3, &err));
    ck_assert(!exists("x.npy"));
    ck_assert(exists("x.npy.linnet-0.tmp"));
    OK(lin_npy_close(w, &err));
    ck_assert(exists("x.npy"));
    ck_assert(!exists("x.npy.linnet-0.tmp"));
    OK(lin_npy_read(path, &y, &T, &D, &err));
    ck_assert_uint_eq(T, 4);
    ck_assert_int_eq(D, 3);
    ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
    lin_free(y);
    // The very bytes that numpy.save writes, but for the length of the padding.
    unsigned char b[400];
    const char *head = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }";
    ck_assert_uint_eq(test_read_file(path, b, sizeof b), 128 + sizeof x);
    ck_assert_int_eq(memcmp(b, head, 10), 0);
    ck_assert_int_eq(memcmp(b + 10, head + 10, strlen(head + 10)), 0);
    ck_assert_int_eq(b[127], '\n');
    // No rows at all.
    OK(write_whole(path, x, 0, 40, &err));
    OK(lin_npy_read(path, &y, &T, &D, &err));
    ck_assert_uint_eq(T, 0);
    ck_assert_int_eq(D, 40);
    lin_free(y);
}
END_TEST

START_TEST(unfinished_and_impossible)
{
    lin_npy_writer *w;
    float x[2] = {1, 2};
    OK(lin_npy_create(path, 2, &w, &err));
    OK(lin_npy_append(w, x, 1, &err));
    lin_npy_abandon(w);
    ck_assert(!exists("x.npy"));
    ck_assert(!exists("x.npy.linnet-0.tmp"));
    lin_npy_abandon(NULL);
    FAILS(lin_npy_create(test_path(""), 2, &w, &err), LIN_IO, "it is a directory");
    ck_assert_ptr_null(w);
    FAILS(lin_npy_create("/nonexistent/x.npy", 2, &w, &err), LIN_IO, "No such file");
    FAILS(lin_npy_create(path, 0, &w, &err), LIN_INVALID, "0 columns");
    // A full disk shows when the bytes leave the buffer.
    if (access("/dev/full", W_OK) == 0) {
        OK(lin_npy_create("/dev/full", 2, &w, &err));
        OK(lin_npy_append(w, x, 1, &err));
        FAILS(lin_npy_close(w, &err), LIN_IO, "No space left");
        ck_assert_int_eq(access("/dev/full", F_OK), 0);
    }
    OK(write_whole("/dev/null", x, 1, 2, &err));
    struct stat st;
    ck_assert_int_eq(stat("/dev/null", &st), 0);
    ck_assert(S_ISCHR(st.st_mode));
}
END_TEST

static lin_status read_bytes(const void *bytes, size_t n, lin_error *err)
{
    float *y;
    size_t T;
    int D;
    unsigned long live = lin_memory_live();
    test_write_file(path, bytes, n);
    lin_status status = lin_npy_read(path, &y, &T, &D, err);
    if (status == LIN_OK) lin_free(y);
    else ck_assert_ptr_null(y);
    ck_assert_uint_eq(lin_memory_live(), live);
    return status;
}

// A file with this dictionary and 24 bytes of data.
static lin_status read_dictionary(const char *text, int version, lin_error *err)
{
    unsigned char b[600] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
    size_t n = strlen(text), start = version == 1 ? 10 : 12;
    b[8] = (unsigned char)n;
    b[9] = (unsigned char)(n >> 8);
    memcpy(b + start, text, n);
    return read_bytes(b, start + n + 24, err);
}

START_TEST(headers)
{
    OK(read_dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 1, &err));
    OK(read_dictionary("{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"<f4\"}", 2, &err));
    OK(read_dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}   \n", 3, &err));
    static const struct {
        const char *text;
        lin_status status;
        const char *says;
    } bad[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", LIN_UNSUPPORTED, "type '<f8'"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }", LIN_UNSUPPORTED, "type '>f4'"},
        {"{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (3,), }", LIN_UNSUPPORTED, "type '?[2J'"},
        {"{'descr': '<F4', 'fortran_order': False, 'shape': (3,), }", LIN_UNSUPPORTED, "type '<F4'"},
        {"{'descr': '\\u003cf4', 'fortran_order': False, 'shape': (3,), }", LIN_UNSUPPORTED, "type"},
        {"{'descr': \"<f4', 'fortran_order': False, 'shape': (3,), }", LIN_FORMAT, "damaged"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", LIN_UNSUPPORTED, "structured"},
        {"{'descr': [(\"it's\", '<f4')], 'fortran_order': False, 'shape': (3,), }", LIN_UNSUPPORTED, "structured"},
        {"{'descr': [('a\"b\\'\\x00', '<f4')], 'fortran_order': False, 'shape': (3,), }", LIN_UNSUPPORTED, "structured"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", LIN_UNSUPPORTED, "Fortran"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", LIN_UNSUPPORTED, "0 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }", LIN_UNSUPPORTED, "3 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }", LIN_FORMAT, "gives 3 x 3"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }", LIN_FORMAT, "0 columns"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4294967296), }", LIN_FORMAT, "columns"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1125899906842624, 4), }", LIN_FORMAT, "truncated"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999, 1), }", LIN_FORMAT, "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 1), }", LIN_FORMAT, "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }", LIN_FORMAT, "damaged"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1, 1), }", LIN_FORMAT, "damaged"},
        {"{'descr': '<f4', 'fortran_order': False}", LIN_FORMAT, "damaged"},
        {"{'descr': '<f4', 'evil': __import__, 'fortran_order': False, 'shape': (1, 1)}", LIN_FORMAT, "damaged"},
        {"{'descr': '<f4", LIN_FORMAT, "damaged"},
        {"{", LIN_FORMAT, "damaged"},
        {"", LIN_FORMAT, "damaged"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        FAILS(read_dictionary(bad[i].text, 1, &err), bad[i].status, bad[i].says);
    FAILS(read_dictionary("{}", 9, &err), LIN_UNSUPPORTED, "version 9.0");
    FAILS(read_bytes("PK\3\4 zipped", 11, &err), LIN_FORMAT, "not a NumPy");
    FAILS(read_bytes("", 0, &err), LIN_FORMAT, "not a NumPy");
    float *y;
    size_t T;
    int D;
    FAILS(lin_npy_read("/nonexistent.npy", &y, &T, &D, &err), LIN_IO, "No such file");
    FAILS(lin_npy_read(test_path(""), &y, &T, &D, &err), LIN_IO, "it is a directory");
    FAILS(lin_npy_read("/dev/zero", &y, &T, &D, &err), LIN_IO, "not a regular file");
}
END_TEST

START_TEST(truncated)
{
    float x[20] = {0};
    unsigned char b[300];
    lin_error why = {0};
    OK(write_whole(path, x, 5, 4, &err));
    size_t n = test_read_file(path, b, sizeof b);
    for (size_t k = 0; k < n; k++) {
        lin_status status = read_bytes(b, k, &why);
        if (status == LIN_OK) ck_abort_msg("accepted when cut to %zu bytes", k);
    }
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    float x[4] = {1, 2, 3, 4}, *y;
    size_t T;
    int D;
    FAIL_EVERY_ALLOCATION_OF(exists("x.npy") || exists("x.npy.linnet-0.tmp"), write_whole(path, x, 2, 2, NULL), (void)0);
    FAIL_EVERY_ALLOCATION_OF(y, lin_npy_read(path, &y, &T, &D, NULL), lin_free(y));
}
END_TEST

TEST_MAIN_WITH(setup, NULL, "train/lab/npy", TEST(written_and_read), TEST(unfinished_and_impossible), TEST(headers),
               TEST(truncated), TEST(every_allocation_may_fail))
