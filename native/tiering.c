/* The compiled forms of storage.tiered.columns, and a fast checksum; tests compare them
   with Python's. Others run meanwhile. */

#include "checksum.h"
#include "whole.h"

#include <string.h>

#define ENTRY_BYTES 20
#define SIZE_BYTES 4
#define KEY_BYTES 8
#define BYTE_VALUES 256

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16
         | (uint32_t)at[3] << 24;
}

static int64_t get_i64(const uint8_t *at)
{
    return (int64_t)((uint64_t)get_u32(at) | (uint64_t)get_u32(at + 4) << 32);
}

/* -- storage.tiered.columns.columns_of -------------------------------------------- */

static void split(const uint8_t *entry, size_t count, uint8_t *times, uint8_t *sizes,
                  uint8_t *tags, int64_t range[2])
{
    for (; count--; entry += ENTRY_BYTES, sizes += 4, tags += 4, times += 8) {
        memcpy(sizes, entry + 4, 4);
        memcpy(tags, entry + 8, 4);
        memcpy(times, entry + 12, 8);
        int64_t time = get_i64(entry + 12);
        range[0] = time < range[0] ? time : range[0];
        range[1] = time > range[1] ? time : range[1];
    }
}

static PyObject *columns_of(PyObject *module, PyObject *given)
{
    (void)module;
    Py_buffer entries;
    if (PyObject_GetBuffer(given, &entries, PyBUF_SIMPLE) < 0)
        return NULL;
    if (!is_whole(&entries, ENTRY_BYTES, 1)) {
        PyBuffer_Release(&entries);
        return NULL;
    }
    Py_ssize_t count = entries.len / ENTRY_BYTES;
    PyObject *result = NULL;
    PyObject *times = PyBytes_FromStringAndSize(NULL, count * 8);
    PyObject *sizes = PyBytes_FromStringAndSize(NULL, count * 4);
    PyObject *tags = PyBytes_FromStringAndSize(NULL, count * 4);
    if (times != NULL && sizes != NULL && tags != NULL) {
        int64_t range[2] = {INT64_MAX, INT64_MIN};
        Py_BEGIN_ALLOW_THREADS
        split(entries.buf, (size_t)count, (uint8_t *)PyBytes_AS_STRING(times),
              (uint8_t *)PyBytes_AS_STRING(sizes), (uint8_t *)PyBytes_AS_STRING(tags),
              range);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("OOOLL", times, sizes, tags, (long long)range[0],
                               (long long)range[1]);
    }
    Py_XDECREF(times);
    Py_XDECREF(sizes);
    Py_XDECREF(tags);
    PyBuffer_Release(&entries);
    return result;
}

/* -- storage.tiered.columns.cuts_of ----------------------------------------------- */

static PyObject *cuts_of(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer sizes;
    unsigned long long most;
    if (!PyArg_ParseTuple(args, "y*K:cuts_of", &sizes, &most))
        return NULL;
    PyObject *cuts = is_whole(&sizes, SIZE_BYTES, 0) ? PyList_New(0) : NULL;
    const uint8_t *at = sizes.buf, *end = at + sizes.len;
    while (cuts != NULL && at < end) {
        unsigned long long bytes = 0;
        Py_ssize_t records = 0;
        for (; at < end && (!records || bytes + get_u32(at) <= most); at += SIZE_BYTES) {
            bytes += get_u32(at);
            records++;
        }
        PyObject *cut = Py_BuildValue("nK", records, bytes);
        if (cut == NULL || PyList_Append(cuts, cut) < 0)
            Py_CLEAR(cuts);
        Py_XDECREF(cut);
    }
    PyBuffer_Release(&sizes);
    return cuts;
}

/* -- storage.tiered.columns.in_runs ----------------------------------------------- */

/* Sort numbers by one of their bytes; 0 where they all have the same one there. */
static int sort_by(int byte, const uint64_t *from, uint64_t *to, size_t count)
{
    size_t places[BYTE_VALUES] = {0}, place = 0;
    for (size_t index = 0; index < count; index++)
        places[from[index] >> 8 * byte & 0xFF]++;
    if (places[from[0] >> 8 * byte & 0xFF] == count)
        return 0;
    for (int value = 0; value < BYTE_VALUES; value++) {
        size_t next = place + places[value];
        places[value] = place;
        place = next;
    }
    for (size_t index = 0; index < count; index++)
        to[places[from[index] >> 8 * byte & 0xFF]++] = from[index];
    return 1;
}

/* The sorted numbers are in the one or in the other memory. */
static uint64_t *sorted(uint64_t *numbers, uint64_t *other, size_t count)
{
    for (int byte = 0; byte < 8; byte++)
        if (sort_by(byte, numbers, other, count)) {
            uint64_t *swap = numbers;
            numbers = other;
            other = swap;
        }
    return numbers;
}

static void put_in_runs(const uint8_t *keys, uint8_t *to, size_t count, uint32_t base,
                        size_t a_run, uint64_t *numbers)
{
    for (size_t low = 0; low < count; low += a_run) {
        size_t here = count - low < a_run ? count - low : a_run;
        for (size_t index = 0; index < here; index++, keys += KEY_BYTES)
            numbers[index] = (uint64_t)get_u32(keys + 4) << 32
                           | (uint32_t)(get_u32(keys) - base);
        const uint64_t *found = sorted(numbers, numbers + a_run, here);
        for (size_t index = 0; index < here; index++, to += KEY_BYTES)
            for (int byte = 0; byte < KEY_BYTES; byte++)
                to[byte] = (uint8_t)(found[index] >> 8 * byte);
    }
}

static PyObject *in_runs(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer keys;
    unsigned long long base;
    Py_ssize_t a_run;
    if (!PyArg_ParseTuple(args, "y*Kn:in_runs", &keys, &base, &a_run))
        return NULL;
    PyObject *result = NULL;
    size_t count = (size_t)keys.len / KEY_BYTES;
    if (!is_whole(&keys, KEY_BYTES, 0))
        goto done;
    if (a_run < 1) {
        PyErr_SetString(PyExc_ValueError, "a run has at least one key");
        goto done;
    }
    if ((size_t)a_run > count)
        a_run = (Py_ssize_t)count + 1;
    uint64_t *numbers = PyMem_Malloc(2 * (size_t)a_run * sizeof *numbers);
    if (numbers == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * KEY_BYTES));
    if (result != NULL) {
        Py_BEGIN_ALLOW_THREADS
        put_in_runs(keys.buf, (uint8_t *)PyBytes_AS_STRING(result), count,
                    (uint32_t)base, (size_t)a_run, numbers);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(numbers);
done:
    PyBuffer_Release(&keys);
    return result;
}

static PyMethodDef functions[] = {
    {"columns_of", columns_of, METH_O, NULL},
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
