/* Whether bytes are as many as rows of one size have; ropeway/common/native.py. */

#ifndef ROPEWAY_WHOLE_H
#define ROPEWAY_WHOLE_H

#include "limited.h"

static int is_whole(const Py_buffer *rows, Py_ssize_t row_bytes, Py_ssize_t least)
{
    if (rows->len % row_bytes == 0 && rows->len / row_bytes >= least)
        return 1;
    PyErr_Format(PyExc_ValueError, "%zd bytes; allowed: at least %zd times %zd", rows->len,
                 least, row_bytes);
    return 0;
}

#endif
