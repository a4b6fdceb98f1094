/* storage.key_runs.in_runs as a function of a module. Others run meanwhile. */

#ifndef ROPEWAY_KEY_RUNS_H
#define ROPEWAY_KEY_RUNS_H

#include "limited.h"

#include "whole.h"

#define KEY_BYTES 8
#define BYTE_VALUES 256

static uint64_t get_u64(const uint8_t *at)
{
    uint64_t value = 0;
    for (int byte = KEY_BYTES; byte--;)
        value = value << 8 | at[byte];
    return value;
}

/* A key with a base taken from its number. */
static uint64_t based(uint64_t key, uint32_t base)
{
    return key >> 32 << 32 | (uint32_t)((uint32_t)key - base);
}

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
            numbers[index] = based(get_u64(keys), base);
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
        put_in_runs(keys.buf, (uint8_t *)PyBytes_AsString(result), count,
                    (uint32_t)base, (size_t)a_run, numbers);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(numbers);
done:
    PyBuffer_Release(&keys);
    return result;
}

#endif
