/* Compiled forms of what compaction does per record; storage/compaction/steps.py.

   Rows are storage.compaction_api.ROW; those of what stays storage.sealed.columns.ROW. */

#include "limited.h"
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
        uint8_t *stays = (uint8_t *)PyBytes_AsString(result);
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

/* What decides about a row: when it is, what is marked, how long what has no key and a
   tombstone stay. */
struct rules {
    long long first, base, now_ms, keyless_ms, tombstone_ms;
    Py_buffer bits;
};

/* When the row at a place is due, or 0. */
static long long due_of(const struct rules *rules, const uint8_t *row)
{
    long long store_ms = (long long)get(row + 8, 8);
    uint64_t state = get(row + 16, 8);
    if (state & KEYED)
        return state & TOMBSTONE ? rules->now_ms + rules->tombstone_ms : 0;
    if (rules->keyless_ms < 0)
        return 0;
    return store_ms < INT64_MAX - rules->keyless_ms ? store_ms + rules->keyless_ms
                                                    : INT64_MAX;
}

static int stays(const struct rules *rules, Py_ssize_t at, long long due_ms)
{
    long long offset = rules->first + at, place = offset - rules->base;
    return is_within(offset, rules->base, rules->bits.len)
        && ((const uint8_t *)rules->bits.buf)[place / 8] >> place % 8 & 1
        && !(0 < due_ms && due_ms <= rules->now_ms);
}

/* What stays of records, and how much they all are. */
struct stay {
    Py_ssize_t rows, bytes, all_bytes;
};

static struct stay count_stay(const struct rules *rules, const uint8_t *row,
                              Py_ssize_t count)
{
    struct stay found = {0, 0, 0};
    for (Py_ssize_t at = 0; at < count; at++, row += ROW_BYTES) {
        Py_ssize_t size = (Py_ssize_t)get(row, 4);
        found.all_bytes += size;
        if (stays(rules, at, due_of(rules, row))) {
            found.rows++;
            found.bytes += size;
        }
    }
    return found;
}

/* 0 where it is not what was counted: others may have written there meanwhile. */
static int copy_stay(const struct rules *rules, const uint8_t *record,
                     const uint8_t *row, Py_ssize_t count, struct stay left, uint8_t *to,
                     uint8_t *its_row)
{
    for (Py_ssize_t at = 0; at < count; at++, row += ROW_BYTES) {
        Py_ssize_t size = (Py_ssize_t)get(row, 4);
        long long due_ms = due_of(rules, row);
        left.all_bytes -= size;
        if (left.all_bytes < 0)
            return 0;
        if (stays(rules, at, due_ms)) {
            left.rows--;
            left.bytes -= size;
            if (left.rows < 0 || left.bytes < 0)
                return 0;
            its_row = put(its_row, (uint64_t)(rules->first + at), 8);
            its_row = put(its_row, (uint64_t)size, 4);
            memcpy(its_row, row + 4, 12); /* tag hash, store time */
            its_row = put(its_row + 12, (uint64_t)due_ms, 8);
            memcpy(its_row, row + 24, DIGEST_BYTES);
            its_row += DIGEST_BYTES;
            memcpy(to, record, (size_t)size);
            to += size;
        }
        record += size;
    }
    return !left.rows && !left.bytes;
}

static PyObject *lay_out(PyObject *module, PyObject *args)
{
    (void)module;
    static const char disagree[] = "rows and records do not agree";
    Py_buffer data, rows;
    struct rules rules;
    if (!PyArg_ParseTuple(args, "y*y*Ly*LLLL:lay_out", &data, &rows, &rules.first,
                          &rules.bits, &rules.base, &rules.now_ms, &rules.keyless_ms,
                          &rules.tombstone_ms))
        return NULL;
    PyObject *kept = NULL, *sealed = NULL, *result = NULL;
    Py_ssize_t count = rows.len / ROW_BYTES;
    struct stay found;
    int is_same;
    if (!is_whole(&rows, ROW_BYTES, 0))
        goto done;
    Py_BEGIN_ALLOW_THREADS
    found = count_stay(&rules, rows.buf, count);
    Py_END_ALLOW_THREADS
    if (found.all_bytes != data.len) {
        PyErr_SetString(PyExc_ValueError, disagree);
        goto done;
    }
    kept = PyBytes_FromStringAndSize(NULL, found.bytes);
    sealed = PyBytes_FromStringAndSize(NULL, found.rows * SEALED_BYTES);
    if (kept == NULL || sealed == NULL)
        goto done;
    uint8_t *to = (uint8_t *)PyBytes_AsString(kept);
    uint8_t *its_row = (uint8_t *)PyBytes_AsString(sealed);
    Py_BEGIN_ALLOW_THREADS
    is_same = copy_stay(&rules, data.buf, rows.buf, count, found, to, its_row);
    Py_END_ALLOW_THREADS
    if (is_same)
        result = PyTuple_Pack(2, kept, sealed);
    else
        PyErr_SetString(PyExc_ValueError, disagree);
done:
    Py_XDECREF(kept);
    Py_XDECREF(sealed);
    PyBuffer_Release(&data);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&rules.bits);
    return result;
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
