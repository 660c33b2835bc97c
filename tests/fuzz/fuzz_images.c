// Images of paper/images.h from any bytes: every value and label that is promised can be read.
#include "tests/fuzz/fuzz.h"

#include "paper/images.h"

void fuzz_images(const uint8_t *data, size_t size)
{
    static int values[3 * LIN_IMAGES_SIDE * LIN_IMAGES_SIDE];
    lin_images m;
    lin_error err;
    if (lin_images_parse(data, size, "x", &m, &err) == LIN_OK) {
        for (int i = 0; i < m.count; i++) {
            for (int grey = 0; grey < 2; grey++) {
                lin_images_values(&m, i, grey, values);
                for (int k = lin_images_length(&m, grey); k-- > 0;)
                    if (values[k] < 0 || values[k] > 255) abort();
            }
            if (m.colours == 3 && lin_images_label(&m, i) > 9) abort();
        }
    } else if (!err.message[0]) abort();
}
