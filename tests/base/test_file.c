// The writer of every output: the old file stays until the new one is complete, for any failure and any conflicting file names.
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "train/lab/npy.h"
#include "base/textfile.h"
#include "tests/support.h"

static const char *path;

static void setup(void)
{
    path = test_path("x.bin");
    signal(SIGXFSZ, SIG_IGN);
}

static const char *text_of(const char *file)
{
    static char text[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    if (access(file, R_OK) != 0) return "(none)";
    text[turn][test_read_file(file, text[turn], sizeof text[turn] - 1)] = 0;
    return text[turn];
}

static int entries(void) { return test_folder_entries(test_path("")); }

// A device of our own where we might replace that of the machine; NULL where none can be made.
static const char *device(const char *name, unsigned minor_number)
{
    static char paths[2][300];
    char *own = paths[minor_number == 3];
    snprintf(own, sizeof paths[0], "/dev/%s", name);
    if (access("/dev", W_OK) != 0) return access(own, W_OK) == 0 ? own : NULL;
    snprintf(own, sizeof paths[0], "%s/%s", test_path(""), name);
    return mknod(own, S_IFCHR | 0666, makedev(1, minor_number)) == 0 && access(own, W_OK) == 0 ? own : NULL;
}

static lin_file_writer *begun(int flags, const char *text)
{
    lin_file_writer *w;
    OK(lin_file_open(path, flags, &w, &err));
    OK(lin_file_write(w, text, strlen(text), &err));
    return w;
}

START_TEST(the_old_file_stays_until_the_new_one_is_whole)
{
    test_write_file(path, "old", 3);
    lin_file_writer *w = begun(0, "new....");
    OK(lin_file_patch(w, 3, "!", 1, &err));
    FAILS(lin_file_patch(w, 7, "!", 1, &err), LIN_INVALID, "");
    ck_assert_str_eq(text_of(path), "old");
    OK(lin_file_commit(w, &err));
    ck_assert_str_eq(text_of(path), "new!...");
    lin_file_abort(begun(0, "third"));
    lin_file_abort(NULL);
    ck_assert_str_eq(text_of(path), "new!...");
    ck_assert_int_eq(entries(), 1);
    // more than the buffer holds, in pieces and at once
    static char large[700000];
    w = begun(LIN_FILE_OF_MANY, "");
    for (int i = 0; i < 7; i++) OK(lin_file_write(w, large, 50000, &err));
    OK(lin_file_write(w, large, sizeof large, &err));
    OK(lin_file_commit(w, &err));
    struct stat st;
    ck_assert(stat(path, &st) == 0 && st.st_size == 350000 + (off_t)sizeof large);
    OK(lin_file_write_all(path, "", 0, &err));
    ck_assert(stat(path, &st) == 0 && st.st_size == 0);
}
END_TEST

START_TEST(permissions_and_links)
{
    struct stat st;
    test_write_file(path, "old", 3);
    ck_assert_int_eq(chmod(path, 0640), 0);
    ck_assert_int_eq(symlink("x.bin", test_path("a")), 0);
    ck_assert_int_eq(symlink(test_path("a"), test_path("b")), 0);
    OK(lin_file_write_all(test_path("b"), "new", 3, &err));
    ck_assert_str_eq(text_of(path), "new");
    ck_assert(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640);
    ck_assert(lstat(test_path("b"), &st) == 0 && S_ISLNK(st.st_mode));
    ck_assert(lstat(test_path("a"), &st) == 0 && S_ISLNK(st.st_mode));
    ck_assert_int_eq(entries(), 3);
    const mode_t before = umask(027); // those of a new file
    OK(lin_file_write_all(test_path("new"), "new", 3, &err));
    umask(before);
    ck_assert(stat(test_path("new"), &st) == 0 && (st.st_mode & 0777) == 0640);
    ck_assert_int_eq(symlink("loop", test_path("loop")), 0);
    FAILS(lin_file_write_all(test_path("loop"), "new", 3, &err), LIN_IO, "loop");
    FAILS(lin_file_write_all("", "new", 3, &err), LIN_IO, "");
    FAILS(lin_file_write_all(test_path(""), "new", 3, &err), LIN_IO, "it is a directory");
    FAILS(lin_file_write_all(test_path("no/x"), "new", 3, &err), LIN_IO, "No such file or directory; use an existing folder");
    ck_assert_int_eq(chmod(path, 0440), 0);
    if (access(path, W_OK) == 0) return; // root may write everything
    FAILS(lin_file_write_all(path, "more", 4, &err), LIN_IO, "");
    ck_assert_str_eq(text_of(path), "new");
}
END_TEST

// As Linux's protected_symlinks: in a sticky folder that all may write to, only links of this user and of the folder's owner.
START_TEST(links_that_others_planted)
{
    enum { OTHER = 12345, ONE_MORE = 12346 };
    test_write_file(path, "old", 3);
    ck_assert_int_eq(mkdir(test_path("tmp"), 0700), 0);
    ck_assert_int_eq(chmod(test_path("tmp"), 01777), 0);
    ck_assert_int_eq(symlink("../x.bin", test_path("tmp/link")), 0);
    ck_assert_int_eq(symlink("tmp/link", test_path("to-link")), 0);
    OK(lin_file_write_all(test_path("tmp/link"), "own", 3, &err));
    ck_assert_str_eq(text_of(path), "own");
    if (geteuid() != 0) return; // only root makes links of others
    ck_assert_int_eq(lchown(test_path("tmp/link"), OTHER, OTHER), 0);
    FAILS(lin_file_write_all(test_path("tmp/link"), "new", 3, &err), LIN_IO, "Permission denied");
    FAILS(lin_file_write_all(test_path("to-link"), "new", 3, &err), LIN_IO, "");
    ck_assert_str_eq(text_of(path), "own");
    ck_assert_int_eq(chown(test_path("tmp"), ONE_MORE, ONE_MORE), 0);
    FAILS(lin_file_write_all(test_path("tmp/link"), "new", 3, &err), LIN_IO, "");
    ck_assert_int_eq(chown(test_path("tmp"), OTHER, OTHER), 0);
    OK(lin_file_write_all(test_path("tmp/link"), "owner", 5, &err));
    ck_assert_int_eq(chown(test_path("tmp"), ONE_MORE, ONE_MORE), 0);
    ck_assert_int_eq(chmod(test_path("tmp"), 0755), 0);
    OK(lin_file_write_all(test_path("tmp/link"), "plain", 5, &err));
}
END_TEST

START_TEST(a_file_without_a_name)
{
    const char *where;
    char text[8] = "";
    setenv("TMPDIR", test_path(""), 1);
    const int fd = lin_file_open_unnamed(&where);
    ck_assert_int_ge(fd, 3);
    ck_assert_str_eq(where, test_path(""));
    ck_assert_int_eq(entries(), 0);
    ck_assert_int_eq(write(fd, "sound", 5), 5);
    ck_assert_int_eq(pread(fd, text, 5, 0), 5);
    ck_assert_str_eq(text, "sound");
    close(fd);
    setenv("TMPDIR", test_path("nowhere"), 1);
#ifdef __linux__
    const int kept = lin_file_open_unnamed(&where);
    ck_assert_int_ge(kept, 3);
    ck_assert_str_eq(where, "memory");
    ck_assert_int_eq(write(kept, "sound", 5), 5);
    ck_assert_int_eq(pread(kept, text, 5, 0), 5);
    close(kept);
#endif
    setenv("TMPDIR", "", 1);
    close(lin_file_open_unnamed(&where));
    ck_assert_str_eq(where, "/tmp");
}
END_TEST

START_TEST(what_is_no_file_is_not_read)
{
    static const char *const what[] = {"it is not a regular file", "it is not a regular file", "it is a directory"};
    const char *const paths[] = {test_path("fifo"), "/dev/zero", test_path("")};
    char *text;
    float *rows;
    size_t n;
    int D;
    FILE *file;
    lin_file_map map;
    ck_assert_int_eq(mkfifo(paths[0], 0600), 0);
    for (int i = 0; i < 3; i++) {
        lin_error why = {0};
        ck_assert_int_eq(lin_text_read(paths[i], &text, &n, &why), LIN_IO);
        HAS(why.message, what[i]);
        ck_assert_int_eq(lin_npy_read(paths[i], &rows, &n, &D, &why), LIN_IO);
        ck_assert_int_eq(lin_file_map_open(paths[i], &map, &why), LIN_IO);
        HAS(why.message, what[i]);
    }
    static const char *const texts[] = {"", "text"};
    mallopt(M_PERTURB, 'x'); // or the byte behind a text may be 0 by chance
    for (int i = 0; i < 3; i++) {
        if (i < 2) test_write_file(path, texts[i], strlen(texts[i]));
        OK(lin_text_read(i < 2 ? path : "/dev/null", &text, &n, &err));
        ck_assert(n == strlen(text) && !strcmp(text, texts[i % 2]));
        lin_free(text);
    }
    ck_assert_int_eq(lin_file_open_stream("/dev/fd/0", &file, NULL), LIN_OK);
    fclose(file);
}
END_TEST

START_TEST(names_of_others_are_left_alone)
{
    char name[300];
    test_file("victim", "victim", 6);
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof name, "x.bin.linnet-%d.tmp", i);
        const char *there = test_path(name);
        if (i % 4 == 0) ck_assert_int_eq(symlink(test_path("victim"), there), 0);
        if (i % 4 == 1) ck_assert_int_eq(link(test_path("victim"), there), 0);
        if (i % 4 == 2) ck_assert_int_eq(mkdir(there, 0777), 0);
        if (i % 4 == 3) ck_assert_int_eq(mkfifo(there, 0666), 0);
    }
    OK(lin_file_write_all(path, "new", 3, &err));
    ck_assert_str_eq(text_of(path), "new");
    ck_assert_str_eq(text_of(test_path("victim")), "victim");
    ck_assert_int_eq(entries(), 18);
}
END_TEST

START_TEST(what_a_killed_process_left)
{
    for (int round = 0; round < 3; round++) {
        const pid_t child = fork();
        if (child == 0) {
            lin_file_writer *w;
            if (lin_file_open(path, LIN_FILE_KEEP_STALE, &w, NULL) != LIN_OK) _exit(1);
            if (write(lin_file_descriptor(w), "part", 4) != 4) _exit(1);
            raise(SIGKILL);
        }
        int how;
        ck_assert(waitpid(child, &how, 0) == child && WIFSIGNALED(how));
        ck_assert_str_eq(text_of(path), round ? "new" : "(none)");
        ck_assert_int_eq(entries(), round ? 2 : 1);
        ck_assert_str_eq(text_of(test_path("x.bin.linnet-0.tmp")), "part");
        lin_file_writer *w;
        OK(lin_file_open(path, LIN_FILE_KEEP_STALE, &w, &err));
        ck_assert_str_eq(text_of(test_path("x.bin.linnet-0.tmp")), "part");
        lin_file_abort(w);
        OK(lin_file_write_all(path, "new", 3, &err));
        ck_assert_int_eq(entries(), 1);
    }
}
END_TEST

START_TEST(a_second_writer_is_refused)
{
    lin_error why = {0};
    lin_file_writer *w = begun(0, "first"), *second;
    ck_assert_int_eq(lin_file_open(path, 0, &second, &why), LIN_IO);
    ck_assert_ptr_null(second);
    HAS(why.message, "another process is writing it");
    OK(lin_file_commit(w, &err));
    OK(lin_file_write_all(path, "second", 6, &err));
    ck_assert_str_eq(text_of(path), "second");
    // but two programs may work through the same many files
    w = begun(LIN_FILE_OF_MANY, "third");
    second = begun(LIN_FILE_OF_MANY, "fourth");
    OK(lin_file_commit(second, &err));
    ck_assert_str_eq(text_of(path), "fourth");
    OK(lin_file_commit(w, &err));
    ck_assert_str_eq(text_of(path), "third");
    ck_assert_int_eq(entries(), 1);
}
END_TEST

static void *write_often(void *name)
{
    for (int i = 0; i < 300; i++) {
        if (lin_file_write_all(path, name, 1000, NULL) == LIN_NO_MEMORY) return name;
    }
    return NULL;
}

// Whoever is faster: the file is one of theirs, whole, and nothing is left.
START_TEST(writers_at_once)
{
    static char one[1000], two[1000], got[1001];
    pthread_t a, b;
    void *failed;
    memset(one, 'a', sizeof one);
    memset(two, 'b', sizeof two);
    pthread_create(&a, NULL, write_often, one);
    pthread_create(&b, NULL, write_often, two);
    for (int i = 0; i < 200; i++) {
        FILE *f = fopen(path, "rb");
        if (!f) continue;
        ck_assert_uint_eq(fread(got, 1, sizeof got, f), 1000);
        fclose(f);
        for (int k = 1; k < 1000; k++) test_require(got[k] == got[0], "byte %d is of another writer", k);
    }
    pthread_join(a, &failed);
    ck_assert_ptr_null(failed);
    pthread_join(b, &failed);
    ck_assert_ptr_null(failed);
    ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(what_is_no_regular_file_is_written_in_place)
{
    lin_file_writer *w;
    struct stat st;
    char got[16] = "";
    const char *null = device("null", 3), *full = device("full", 7);
    if (null) {
        FAILS(lin_file_open(null, 0, &w, &err), LIN_IO, "null: it is not a regular file");
        OK(lin_file_open(null, LIN_FILE_STREAM, &w, &err));
        ck_assert(lin_file_in_place(w) && lin_file_can_seek(w));
        OK(lin_file_write(w, "x", 1, &err));
        OK(lin_file_commit(w, &err));
        ck_assert(lstat(null, &st) == 0 && S_ISCHR(st.st_mode));
    }
    ck_assert_int_eq(mkfifo(path, 0666), 0);
    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    OK(lin_file_open(path, LIN_FILE_STREAM, &w, &err));
    ck_assert(lin_file_in_place(w) && !lin_file_can_seek(w));
    OK(lin_file_write(w, "through", 7, &err));
    OK(lin_file_commit(w, &err));
    ck_assert_int_eq(read(reader, got, sizeof got), 7);
    ck_assert_str_eq(got, "through");
    close(reader);
    ck_assert(lstat(path, &st) == 0 && S_ISFIFO(st.st_mode));
    // an open file by its number: appended to its contents
    test_file("log", "before ", 7);
    const int log = open(test_path("log"), O_WRONLY);
    char name[64];
    lseek(log, 7, SEEK_SET);
    snprintf(name, sizeof name, "/dev/fd/%d", log);
    OK(lin_file_open(name, LIN_FILE_STREAM, &w, &err));
    OK(lin_file_write(w, "after", 5, &err));
    OK(lin_file_patch(w, 0, "A", 1, &err));
    OK(lin_file_commit(w, &err));
    close(log);
    ck_assert_str_eq(text_of(test_path("log")), "before After");
    FAILS(lin_file_open("/dev/fd/12345", LIN_FILE_STREAM, &w, &err), LIN_IO, "");
    if (!full) return;
    OK(lin_file_open(full, LIN_FILE_STREAM, &w, &err));
    OK(lin_file_write(w, "x", 1, &err));
    FAILS(lin_file_commit(w, &err), LIN_IO, "full: No space left on device; free some space");
}
END_TEST

START_TEST(what_was_put_there_meanwhile_is_not_replaced)
{
    struct stat st;
    lin_file_writer *w = begun(0, "new");
    ck_assert_int_eq(mkfifo(path, 0666), 0);
    FAILS(lin_file_commit(w, &err), LIN_IO, "the path has become something other than a regular file");
    ck_assert(lstat(path, &st) == 0 && S_ISFIFO(st.st_mode));
    ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(a_part_is_kept_beside_it)
{
    char name[512];
    test_write_file(path, "old", 3);
    for (int i = 1; i <= 3; i++) {
        OK(lin_file_keep(begun(0, i == 1 ? "one" : i == 2 ? "two" : "three"), name, sizeof name, &err));
        ck_assert_str_eq(name, test_path(i == 1 ? "x.bin.part" : i == 2 ? "x.bin.part-2" : "x.bin.part-3"));
    }
    ck_assert_str_eq(text_of(test_path("x.bin.part")), "one");
    ck_assert_str_eq(text_of(test_path("x.bin.part-2")), "two");
    ck_assert_str_eq(text_of(path), "old");
    ck_assert_int_eq(entries(), 4);
    FAILS(lin_file_keep(begun(0, "x"), name, 10, &err), LIN_IO, "");
    ck_assert_str_eq(name, "");
    ck_assert_int_eq(entries(), 4);
    lin_file_writer *w;
    const char *null = device("null", 3);
    if (!null) return;
    OK(lin_file_open(null, LIN_FILE_STREAM, &w, &err));
    OK(lin_file_keep(w, name, sizeof name, &err));
    ck_assert_str_eq(name, "");
}
END_TEST

START_TEST(a_limit_of_sizes_leaves_the_old_file)
{
    lin_error why = {0};
    static char block[1000];
    struct rlimit limit;
    char name[512];
    test_write_file(path, "old", 3);
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t all = limit.rlim_cur;
    for (int how = 0; how < 2; how++) {
        for (rlim_t most = 0; most < 300000; most += 60000) {
            lin_file_writer *w = begun(0, "");
            limit.rlim_cur = most;
            setrlimit(RLIMIT_FSIZE, &limit);
            lin_status status = LIN_OK;
            for (int i = 0; i < 300 && status == LIN_OK; i++) status = lin_file_write(w, block, sizeof block, &why);
            if (status != LIN_OK) ck_assert_int_eq(lin_file_write(w, block, 1, &why), LIN_IO); // and it stays so
            status = how ? lin_file_commit(w, &why) : lin_file_keep(w, name, sizeof name, &why);
            limit.rlim_cur = all;
            setrlimit(RLIMIT_FSIZE, &limit);
            ck_assert_int_eq(status, LIN_IO);
            HAS(why.message, "File too large; ", path);
            ck_assert_str_eq(text_of(path), "old");
            ck_assert_int_eq(entries(), 1);
        }
    }
}
END_TEST

START_TEST(long_names)
{
    char name[400];
    const char *const ends[] = {"a", "\xC3\xA9"}; // the cut must not be inside a character
    for (int i = 0; i < 2; i++) {
        memset(name, 'n', sizeof name);
        snprintf(name + 199, 10, "%s", ends[i]);
        memset(name + 199 + strlen(ends[i]), 'm', 50);
        name[249] = 0;
        OK(lin_file_write_all(test_path(name), "new", 3, &err));
        ck_assert_str_eq(text_of(test_path(name)), "new");
    }
    memset(name, 'n', 300);
    name[300] = 0;
    FAILS(lin_file_write_all(test_path(name), "new", 3, &err), LIN_IO, "choose a shorter name");
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    test_write_file(path, "old", 3);
    FAIL_EVERY_ALLOCATION_OF(entries() != 1 || strcmp(text_of(path), "old") != 0, lin_file_write_all(path, "new", 3, NULL),
                             (void)0);
    ck_assert_int_eq(entries(), 1);
    ck_assert_str_eq(text_of(path), "new");
}
END_TEST

/* ---- mapped files, and the table that finds them by address ---------------------------------------------------------------- */

enum { ROOM = 300 };

// A file of n bytes "0123...".
static void make_file(char to[ROOM], const char *name, size_t n)
{
    unsigned char *bytes = lin_alloc(n, 1);
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)i;
    snprintf(to, ROOM, "%.200s/%.40s", test_path(""), name);
    test_write_file(to, bytes, n);
    lin_free(bytes);
}

START_TEST(an_address_has_a_file)
{
    char a[ROOM], b[ROOM];
    lin_file_map map, other;
    make_file(a, "a", 5000);
    make_file(b, "b", 1);
    OK(lin_file_map_open(a, &map, &err));
    OK(lin_file_map_open(b, &other, &err));
    ck_assert(map.size == 5000 && map.bytes[4999] == (unsigned char)4999 && other.size == 1);
    const unsigned char *was = map.bytes;
    ck_assert_str_eq(lin_file_map_find(was), a);
    ck_assert_str_eq(lin_file_map_find(was + 8191), a); // the rest of its last page
    ck_assert_str_eq(lin_file_map_find(other.bytes), b);
    ck_assert_ptr_null(lin_file_map_find(a));
    ck_assert_ptr_null(lin_file_map_find(NULL));
    lin_file_map_close(&map);
    ck_assert(!map.bytes && !map.size);
    ck_assert_ptr_null(lin_file_map_find(was));
    ck_assert_str_eq(lin_file_map_find(other.bytes), b);
    lin_file_map_close(&map);
    lin_file_map_close(&other);
}
END_TEST

START_TEST(long_paths_and_many_files)
{
    char longer[ROOM + 2 * LIN_MAP_PATH];
    static lin_file_map maps[LIN_MAP_FILES + 9];
    test_write_file(path, "x", 1);
    size_t n = 0;
    for (const char *slash = strrchr(path, '/'), *p = path; *p; p++) {
        longer[n++] = *p;
        for (int i = 0; p == slash && i < LIN_MAP_PATH / 2; i++) n += (size_t)sprintf(longer + n, "./");
    }
    longer[n] = '\0';
    for (int i = 0; i < LIN_MAP_FILES + 9; i++) OK(lin_file_map_open(i ? path : longer, &maps[i], &err));
    ck_assert_str_eq(lin_file_map_find(maps[0].bytes), longer + n - (LIN_MAP_PATH - 1));
    ck_assert_str_eq(lin_file_map_find(maps[LIN_MAP_FILES - 1].bytes), path);
    ck_assert_ptr_null(lin_file_map_find(maps[LIN_MAP_FILES].bytes)); // no room for its name
    for (int i = 0; i < LIN_MAP_FILES + 9; i++) lin_file_map_close(&maps[i]);
    OK(lin_file_map_open(path, &maps[0], &err));
    ck_assert_str_eq(lin_file_map_find(maps[0].bytes), path);
    lin_file_map_close(&maps[0]);
}
END_TEST

START_TEST(what_cannot_be_mapped)
{
    lin_file_map map;
    test_write_file(path, "", 0);
    OK(lin_file_map_open(path, &map, &err));
    ck_assert(map.bytes && !map.size);
    lin_file_map_close(&map);
    FAILS(lin_file_map_open(test_path(""), &map, &err), LIN_IO, "it is a directory");
    ck_assert_int_eq(unlink(path), 0);
    FAILS(lin_file_map_open(path, &map, &err), LIN_IO, "No such file");
}
END_TEST

TEST_MAIN_WITH(setup, NULL, "base/file", TEST(the_old_file_stays_until_the_new_one_is_whole), TEST(permissions_and_links),
               TEST(links_that_others_planted), TEST(a_file_without_a_name),
               TEST(what_is_no_file_is_not_read), TEST(names_of_others_are_left_alone),
               TEST(what_a_killed_process_left), TEST(a_second_writer_is_refused), TEST(writers_at_once),
               TEST(what_is_no_regular_file_is_written_in_place), TEST(what_was_put_there_meanwhile_is_not_replaced),
               TEST(a_part_is_kept_beside_it), TEST(a_limit_of_sizes_leaves_the_old_file), TEST(long_names),
               TEST(every_allocation_may_fail), TEST(an_address_has_a_file), TEST(long_paths_and_many_files),
               TEST(what_cannot_be_mapped))
