/* Compiled forms of what compaction does per record; storage/compaction/steps.py.

   Rows are storage.compaction_api.ROW; those of what stays storage.sealed.columns.ROW. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "whole.h"

#define ROW_BYTES 40
#define SEALED_BYTES 48
#define DIGEST_BYTES 16
#define KEYED 1
#define TOMBSTONE 2

static uint64_t get(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int index = bytes - 1; index >= 0; index--)
        value = value << 8 | at[index];
    return value;
}

static uint8_t *put(uint8_t *at, uint64_t value, int bytes)
{
    for (int index = 0; index < bytes; index++)
        at[index] = (uint8_t)(value >> 8 * index);
    return at + bytes;
}

struct map {
    Py_buffer low, high, offsets;
    size_t slots;
};

static uint64_t *numbers(Py_buffer *of)
{
    return of->buf;
}

/* Where a digest is, or would be. */
static size_t slot_of(struct map *map, uint64_t low, uint64_t high)
{
    uint64_t *lows = numbers(&map->low), *highs = numbers(&map->high);
    uint64_t *offsets = numbers(&map->offsets);
    size_t slot = low % map->slots;
    while (offsets[slot] && (lows[slot] != low || highs[slot] != high))
        if (++slot == map->slots)
            slot = 0;
    return slot;
}

static int open_map(struct map *map)
{
    map->slots = (size_t)map->offsets.len / 8;
    if (map->slots && map->low.len == map->offsets.len
        && map->high.len == map->offsets.len)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the arrays of a map have one size");
    return 0;
}

static void release_map(struct map *map)
{
    PyBuffer_Release(&map->low);
    PyBuffer_Release(&map->high);
    PyBuffer_Release(&map->offsets);
}

static int is_within(long long number, long long base, Py_ssize_t bits_bytes)
{
    return number >= base && (number - base) / 8 < bits_bytes;
}

static PyObject *note(PyObject *module, PyObject *args)
{
    (void)module;
    struct map map;
    Py_buffer rows, bits;
    long long first, base, used, limit;
    if (!PyArg_ParseTuple(args, "y*Lw*w*w*LLw*L:note", &rows, &first, &map.low,
                          &map.high, &map.offsets, &used, &limit, &bits, &base))
        return NULL;
    PyObject *result = NULL;
    Py_ssize_t count = rows.len / ROW_BYTES, taken = 0;
    if (!is_whole(&rows, ROW_BYTES, 0) || !open_map(&map))
        goto done;
    if (count && !(is_within(first, base, bits.len)
                   && is_within(first + count - 1, base, bits.len))) {
        PyErr_SetString(PyExc_ValueError, "offsets beyond the bits");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    const uint8_t *row = rows.buf;
    for (; taken < count && used < limit; taken++, row += ROW_BYTES) {
        long long offset = first + taken;
        if (!(get(row + 16, 8) & KEYED)) {
            ((uint8_t *)bits.buf)[(offset - base) / 8] |= 1 << (offset - base) % 8;
            continue;
        }
        uint64_t low = get(row + 24, 8), high = get(row + 32, 8);
        size_t slot = slot_of(&map, low, high);
        if (!numbers(&map.offsets)[slot]) {
            numbers(&map.low)[slot] = low;
            numbers(&map.high)[slot] = high;
            used++;
        }
        numbers(&map.offsets)[slot] = (uint64_t)offset + 1;
    }
    Py_END_ALLOW_THREADS
    result = Py_BuildValue("nL", taken, used);
done:
    release_map(&map);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&bits);
    return result;
}

static PyObject *mark(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer offsets, bits;
    Py_ssize_t begin, end;
    long long base;
    if (!PyArg_ParseTuple(args, "y*nnw*L:mark", &offsets, &begin, &end, &bits, &base))
        return NULL;
    if (begin < 0)
        begin = 0;
    if (end > offsets.len / 8)
        end = offsets.len / 8;
    for (Py_ssize_t slot = begin; slot < end; slot++) {
        uint64_t found = ((uint64_t *)offsets.buf)[slot];
        if (found && is_within((long long)(found - 1), base, bits.len)) {
            uint64_t at = found - 1 - (uint64_t)base;
            ((uint8_t *)bits.buf)[at / 8] |= 1 << at % 8;
        }
    }
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&bits);
    Py_RETURN_NONE;
}

static PyObject *staying(PyObject *module, PyObject *args)
{
    (void)module;
    struct map map;
    Py_buffer due, digests;
    long long now_ms;
    if (!PyArg_ParseTuple(args, "y*y*w*w*w*L:staying", &due, &digests, &map.low,
                          &map.high, &map.offsets, &now_ms))
        return NULL;
    PyObject *result = NULL;
    Py_ssize_t count = digests.len / DIGEST_BYTES;
    if (!is_whole(&digests, DIGEST_BYTES, 0))
        goto done;
    if (due.len != count * 8) {
        PyErr_SetString(PyExc_ValueError, "due times and digests do not agree");
        goto done;
    }
    if (open_map(&map))
        result = PyBytes_FromStringAndSize(NULL, count);
    if (result != NULL) {
        uint8_t *stays = (uint8_t *)PyBytes_AS_STRING(result);
        const uint8_t *time = due.buf, *digest = digests.buf;
        for (Py_ssize_t at = 0; at < count; at++, time += 8, digest += DIGEST_BYTES) {
            long long due_ms = (long long)get(time, 8);
            uint64_t low = get(digest, 8), high = get(digest + 8, 8);
            int is_due = 0 < due_ms && due_ms <= now_ms;
            int has_key = low || high;
            stays[at] = !is_due
                && (!has_key || !numbers(&map.offsets)[slot_of(&map, low, high)]);
        }
    }
done:
    release_map(&map);
    PyBuffer_Release(&due);
    PyBuffer_Release(&digests);
    return result;
}

static PyObject *lay_out(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data, rows, bits;
    long long first, base, now_ms, keyless_ms, tombstone_ms;
    if (!PyArg_ParseTuple(args, "y*y*Ly*LLLL:lay_out", &data, &rows, &first, &bits,
                          &base, &now_ms, &keyless_ms, &tombstone_ms))
        return NULL;
    Py_ssize_t count = rows.len / ROW_BYTES;
    PyObject *kept = PyBytes_FromStringAndSize(NULL, data.len);
    PyObject *sealed = PyBytes_FromStringAndSize(NULL, count * SEALED_BYTES);
    int is_short = 0;
    if (kept == NULL || sealed == NULL || !is_whole(&rows, ROW_BYTES, 0))
        goto failed;
    const uint8_t *record = data.buf, *end = record + data.len, *row = rows.buf;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(kept);
    uint8_t *its_row = (uint8_t *)PyBytes_AS_STRING(sealed);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t at = 0; at < count; at++, row += ROW_BYTES) {
        size_t size = get(row, 4);
        if (size > (size_t)(end - record)) {
            is_short = 1;
            break;
        }
        long long offset = first + at, store_ms = (long long)get(row + 8, 8), due_ms = 0;
        uint64_t state = get(row + 16, 8);
        int stays = is_within(offset, base, bits.len)
            && ((const uint8_t *)bits.buf)[(offset - base) / 8] >> (offset - base) % 8 & 1;
        if (!(state & KEYED)) {
            if (keyless_ms >= 0)
                due_ms = store_ms < INT64_MAX - keyless_ms ? store_ms + keyless_ms
                                                           : INT64_MAX;
        } else if (state & TOMBSTONE) {
            due_ms = now_ms + tombstone_ms;
        }
        if (stays && !(0 < due_ms && due_ms <= now_ms)) {
            its_row = put(its_row, (uint64_t)offset, 8);
            memcpy(its_row, row, 16); /* size, tag hash, store time */
            its_row = put(its_row + 16, (uint64_t)due_ms, 8);
            memcpy(its_row, row + 24, DIGEST_BYTES);
            its_row += DIGEST_BYTES;
            memcpy(to, record, size);
            to += size;
        }
        record += size;
    }
    Py_END_ALLOW_THREADS
    if (is_short || record != end) {
        PyErr_SetString(PyExc_ValueError, "rows and records do not agree");
        goto failed;
    }
    if (_PyBytes_Resize(&kept, (char *)to - PyBytes_AS_STRING(kept)) < 0
        || _PyBytes_Resize(&sealed, (char *)its_row - PyBytes_AS_STRING(sealed)) < 0)
        goto failed;
    PyBuffer_Release(&data);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&bits);
    return Py_BuildValue("NN", kept, sealed);
failed:
    Py_XDECREF(kept);
    Py_XDECREF(sealed);
    PyBuffer_Release(&data);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&bits);
    return NULL;
}

static PyMethodDef functions[] = {
    {"lay_out", lay_out, METH_VARARGS, NULL},
    {"mark", mark, METH_VARARGS, NULL},
    {"note", note, METH_VARARGS, NULL},
    {"staying", staying, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", NULL, -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModule_Create(&definition);
}
