// model_options.c - the recogniser that a command runs; see model_options.h.

#include "app/model_options.h"

#include "app/common.h"

lin_status lin_model_named(const lin_model_values *values, const char **name, lin_error *err)
{
    *name = values->offline ? "offline" : values->model;
    if (values->offline && values->model)
        return lin_fail(err, LIN_INVALID, "--offline and --model name two models; give one of them");
    return LIN_OK;
}

lin_status lin_open_recognizer(lin_recognizer *recognizer, const char *model, const char *device, lin_precision precision,
                               lin_error *err)
{
    const lin_warnings warnings = lin_complaints(0);
    lin_status status = lin_recognizer_open(recognizer, model, device, precision, &warnings, err);
    recognizer->stop = &lin_interrupted;
    return status;
}
