// The model reader on any bytes: it accepts them or reports what is wrong; an accepted model is consistent.

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned long live = lin_memory_live();
    lin_model *model;
    lin_error err = {0};
    const lin_status status = lin_model_load_memory(data, size, "fuzz", &model, &err);
    if ((status == LIN_OK) != (model != NULL)) abort();
    if (status != LIN_OK && (err.status != status || !strstr(err.message, "fuzz") || strchr(err.message, '\n'))) abort();
    if (model) {
        for (size_t i = 0; i < model->params.n_elements; i++)
            if (!isfinite(model->values[i])) abort();
        for (int i = 0; i < model->config.outputs; i++)
            for (int k = 0; k < i; k++)
                if (strcmp(model->phone[k], model->phone[i]) == 0) abort();
        lin_model_destroy(model);
    }
    if (lin_memory_live() != live) abort();
    return 0;
}
