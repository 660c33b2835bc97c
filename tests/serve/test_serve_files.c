// Uploads to linnet serve: pieces of an answer that is sent as it comes, where memory ends.
#include "base/memory.h"
#include "serve/serve.h"
#include "tests/lexicon/support.h"

static lin_error failure;

START_TEST(a_piece_that_is_missing_is_an_error)
{
    static char large[5000];
    lin_serve serve = {0};
    lin_job job = {.serve = &serve};
    lin_buffer piece = {0};
    pthread_mutex_init(&serve.workers.lock, NULL);
    atomic_store(&job.gone, 1); // nobody is told
    lin_buffer_text(&piece, "one");
    OK(lin_job_put(&job, &piece, &failure));
    ck_assert(job.n_pieces == 1 && piece.n == 0);
    ck_assert_str_eq(job.pieces.data, "one");
    memset(large, 'x', sizeof large - 1);
    lin_buffer_text(&piece, large);
    lin_memory_fail_at(1);
    ck_assert_int_eq(lin_job_put(&job, &piece, &failure), LIN_NO_MEMORY);
    lin_memory_fail_at(0);
    ck_assert(job.n_pieces == 1 && piece.n == 0);
    ck_assert_str_eq(job.pieces.data, "one");
    lin_buffer_free(&piece);
    lin_buffer_text(&piece, "two");
    lin_memory_fail_at(1);
    lin_buffer_text(&piece, large); // it broke off before
    lin_memory_fail_at(0);
    ck_assert_int_eq(lin_job_put(&job, &piece, &failure), LIN_NO_MEMORY);
    ck_assert_str_eq(job.pieces.data, "one");
    lin_buffer_text(&piece, "!"); // the error that ends it
    OK(lin_job_put(&job, &piece, &failure));
    ck_assert_str_eq(job.pieces.data, "one!");
    lin_buffer_free(&piece);
    lin_buffer_free(&job.pieces);
    pthread_mutex_destroy(&serve.workers.lock);
}
END_TEST

TEST_MAIN("serve/files", TEST(a_piece_that_is_missing_is_an_error))
