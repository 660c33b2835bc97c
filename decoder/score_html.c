// The score as one page of HTML that needs nothing else.
#include "decoder/score_report.h"

lin_status lin_score_html(const lin_score_report *r, lin_buffer *out, lin_error *err)
{
    lin_buffer_html(out, r->measure, 3);
    return lin_buffer_status(out, err);
}
