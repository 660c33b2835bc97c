// The reader of STM on any bytes, and the words of a CTM, behind a byte 0x1F, cut by its lines.

#include "train/score/trn.h"
#include "tests/fuzz/readers.h"

static void cut(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *behind = size ? memchr(text, 0x1F, size) : NULL;
    const lin_trn_options as_ctm = {.format = LIN_TRN_CTM, .by_channel = 1}, as_stm = {.format = LIN_TRN_STM};
    lin_symbols tokens = {0};
    lin_trn stm = {0}, ctm = {0};
    lin_error err = {0};
    if (!behind) return;
    lin_status status = lin_trn_parse(text, (size_t)(behind - text), "x", &as_stm, &tokens, &stm, &err);
    if (status == LIN_OK)
        status = lin_trn_parse(behind + 1, size - (size_t)(behind + 1 - text), "y", &as_ctm, &tokens, &ctm, &err);
    if (status == LIN_OK) status = lin_stm_cut(&stm, "x", &ctm, "y", &err);
    if (status == LIN_OK) status = lin_stm_rename(&stm, &ctm, &err);
    check_status(status, &err);
    if (status == LIN_OK) look_at(&ctm, &tokens);
    lin_trn_free(&stm);
    lin_trn_free(&ctm);
    lin_symbols_free(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_any(data, size, LIN_TRN_STM);
    cut(data, size);
    return 0;
}
