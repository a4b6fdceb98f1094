/* zlib.crc32 as a function of a module. Others run meanwhile. */

#ifndef ROPEWAY_CHECKSUM_H
#define ROPEWAY_CHECKSUM_H

#include "limited.h"

#include "crc32.h"

static PyObject *checksum(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data;
    unsigned int before = 0;
    if (!PyArg_ParseTuple(args, "y*|I:crc32", &data, &before))
        return NULL;
    uint32_t crc;
    Py_BEGIN_ALLOW_THREADS
    crc = crc32_of(data.buf, (size_t)data.len, before);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(crc);
}

#endif
