/* The compiled forms of storage.sealed.columns, and a fast checksum; tests compare them
   with Python's. Others run meanwhile. */

#include "checksum.h"
#include "key_runs.h"
#include "whole.h"

#include <string.h>

/* Bytes of a row, and where it has what: storage.replication.ENTRY, or sealed's ROW. */
struct shape {
    Py_ssize_t row_bytes, size_at, time_at;
    Py_ssize_t block_bytes;
    /* Columns in the order of a block: place in the row, bytes; ended by zeros. */
    struct { Py_ssize_t at, bytes; } columns[7];
};

static const struct shape dense = {
    20, 4, 12, 16, {{12, 8}, {4, 4}, {8, 4}, {0, 0}},
};
static const struct shape sparse = {
    48, 8, 16, 48, {{16, 8}, {8, 4}, {12, 4}, {0, 8}, {24, 8}, {32, 16}, {0, 0}},
};
#define DUE_AT 24

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16
         | (uint32_t)at[3] << 24;
}

static int64_t get_i64(const uint8_t *at)
{
    return (int64_t)((uint64_t)get_u32(at) | (uint64_t)get_u32(at + 4) << 32);
}

/* -- storage.sealed.columns.columns_of -------------------------------------------- */

/* The least and the most time, and the first that is due. */
struct times {
    int64_t least, most, due;
};

static uint8_t *put_column(uint8_t *to, const uint8_t *row, Py_ssize_t count,
                           Py_ssize_t row_bytes, Py_ssize_t bytes)
{
    /* Sizes that the compiler knows, so that it copies words. */
    for (; count--; row += row_bytes, to += bytes)
        if (bytes == 4)
            memcpy(to, row, 4);
        else if (bytes == 8)
            memcpy(to, row, 8);
        else
            memcpy(to, row, 16);
    return to;
}

static struct times split(const struct shape *shape, const uint8_t *rows,
                          Py_ssize_t count, uint8_t *to)
{
    struct times found = {INT64_MAX, INT64_MIN, 0};
    for (int at = 0; shape->columns[at].bytes; at++)
        to = put_column(to, rows + shape->columns[at].at, count, shape->row_bytes,
                        shape->columns[at].bytes);
    for (; count--; rows += shape->row_bytes) {
        int64_t time = get_i64(rows + shape->time_at);
        found.least = time < found.least ? time : found.least;
        found.most = time > found.most ? time : found.most;
        if (shape != &sparse)
            continue;
        int64_t due = get_i64(rows + DUE_AT);
        if (due && (!found.due || due < found.due))
            found.due = due;
    }
    return found;
}

static PyObject *columns_of(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer rows;
    int is_sparse;
    if (!PyArg_ParseTuple(args, "y*p:columns_of", &rows, &is_sparse))
        return NULL;
    const struct shape *shape = is_sparse ? &sparse : &dense;
    PyObject *columns = NULL;
    Py_ssize_t count = rows.len / shape->row_bytes;
    struct times found = {0, 0, 0};
    if (is_whole(&rows, shape->row_bytes, 1))
        columns = PyBytes_FromStringAndSize(NULL, count * shape->block_bytes);
    if (columns != NULL) {
        Py_BEGIN_ALLOW_THREADS
        found = split(shape, rows.buf, count, (uint8_t *)PyBytes_AsString(columns));
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&rows);
    if (columns == NULL)
        return NULL;
    return Py_BuildValue("NLLL", columns, (long long)found.least, (long long)found.most,
                         (long long)found.due);
}

/* -- storage.sealed.columns.cuts_of ----------------------------------------------- */

static PyObject *cuts_of(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer rows;
    int is_sparse;
    Py_ssize_t most_records;
    unsigned long long most_bytes;
    if (!PyArg_ParseTuple(args, "y*pnK:cuts_of", &rows, &is_sparse, &most_records,
                          &most_bytes))
        return NULL;
    const struct shape *shape = is_sparse ? &sparse : &dense;
    PyObject *cuts = is_whole(&rows, shape->row_bytes, 0) ? PyList_New(0) : NULL;
    const uint8_t *at = rows.buf, *end = at + rows.len;
    while (cuts != NULL && at < end) {
        unsigned long long bytes = 0;
        Py_ssize_t records = 0;
        for (; at < end; at += shape->row_bytes) {
            unsigned long long size = get_u32(at + shape->size_at);
            if (records && (records >= most_records || bytes + size > most_bytes))
                break;
            bytes += size;
            records++;
        }
        PyObject *cut = Py_BuildValue("nK", records, bytes);
        if (cut == NULL || PyList_Append(cuts, cut) < 0)
            Py_CLEAR(cuts);
        Py_XDECREF(cut);
    }
    PyBuffer_Release(&rows);
    return cuts;
}

static PyMethodDef functions[] = {
    {"columns_of", columns_of, METH_VARARGS, NULL},
    {"cuts_of", cuts_of, METH_VARARGS, NULL},
    {"in_runs", in_runs, METH_VARARGS, NULL},
    {"crc32", checksum, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", NULL, -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    crc32_prepare();
    return PyModule_Create(&definition);
}
