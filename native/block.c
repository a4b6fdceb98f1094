/* The compiled forms of storage.file.block.lay_out and add_up, and sorted runs of keys;
   tests compare them with Python's. */

#include "limited.h"
#include <string.h>

#include "crc32.h"
#include "key_runs.h"

#define HEADER_BYTES 64
#define RUN_BYTES 16
#define ENTRY_BYTES 20
#define CHECKED_FROM 8
#define MOST_RECORDS (UINT32_MAX / ENTRY_BYTES)

static char *put_u16(char *at, uint16_t value)
{
    at[0] = (char)value;
    at[1] = (char)(value >> 8);
    return at + 2;
}

static char *put_u32(char *at, uint32_t value)
{
    return put_u16(put_u16(at, (uint16_t)value), (uint16_t)(value >> 16));
}

static char *put_u64(char *at, uint64_t value)
{
    return put_u32(put_u32(at, (uint32_t)value), (uint32_t)(value >> 32));
}

/* A list or a tuple. Borrowed. */
struct items {
    PyObject *of;
    PyObject *(*get)(PyObject *, Py_ssize_t);
    Py_ssize_t count;
};

static int open_items(PyObject *object, struct items *items)
{
    items->of = object;
    if (IS_A(List, object)) {
        items->get = PyList_GetItem;
        items->count = PyList_Size(object);
    } else if (IS_A(Tuple, object)) {
        items->get = PyTuple_GetItem;
        items->count = PyTuple_Size(object);
    } else
        return is_not(object, "records and keys", "have to be a list or a tuple");
    return 1;
}

/* What is written of a record. Borrowed. */
struct record {
    char *data;
    Py_ssize_t size;
    struct items words;
    PyObject *hash;
    long tag_hash;
    long long store_ms;
};

static int open_record(PyObject *object, struct record *record)
{
    PyObject *data = IS_A(Tuple, object) && PyTuple_Size(object) == 3
                         ? PyTuple_GetItem(object, 0)
                         : NULL;
    if (data == NULL || !IS_A(Bytes, data)) {
        PyErr_SetString(PyExc_TypeError, "a record is bytes, a hash and keys");
        return 0;
    }
    record->hash = PyTuple_GetItem(object, 1);
    return PyBytes_AsStringAndSize(data, &record->data, &record->size) == 0
        && open_items(PyTuple_GetItem(object, 2), &record->words);
}

/* What a run is made of; an owned reference, so that nothing in it can go away. */
struct run {
    PyObject *appends;
    unsigned long ordinal, key_seed;
    unsigned long long base_offset;
    Py_ssize_t count;
};

struct totals {
    Py_ssize_t records, keys;
    size_t data;
};

static int member(PyObject *object, const char *name, unsigned long long *value)
{
    PyObject *found = PyObject_GetAttrString(object, name);
    if (found == NULL)
        return 0;
    *value = PyLong_AsUnsignedLongLong(found);
    Py_DECREF(found);
    return !(*value == (unsigned long long)-1 && PyErr_Occurred());
}

static int open_run(PyObject *object, struct run *run)
{
    unsigned long long ordinal, seed, base, count;
    PyObject *partition = PyObject_GetAttrString(object, "partition");
    int is_open = partition != NULL && member(partition, "ordinal", &ordinal)
               && member(partition, "key_seed", &seed)
               && member(object, "base_offset", &base)
               && member(object, "count", &count);
    Py_XDECREF(partition);
    if (!is_open)
        return 0;
    run->ordinal = (unsigned long)ordinal;
    run->key_seed = (unsigned long)seed;
    run->base_offset = base;
    run->count = (Py_ssize_t)(count & PY_SSIZE_T_MAX);
    run->appends = PyObject_GetAttrString(object, "appends");
    if (run->appends == NULL)
        return 0;
    if (IS_A(List, run->appends))
        return 1;
    PyErr_SetString(PyExc_TypeError, "a run's appends have to be a list");
    return 0;
}

/* The records of one append, and when they were stored. */
static int open_append(PyObject *append, struct items *records, long long *store_ms)
{
    if (!IS_A(Tuple, append) || PyTuple_Size(append) < 2) {
        PyErr_SetString(PyExc_TypeError, "an append is records, a time and a callback");
        return 0;
    }
    *store_ms = PyLong_AsLongLong(PyTuple_GetItem(append, 1));
    return !(*store_ms == -1 && PyErr_Occurred())
        && open_items(PyTuple_GetItem(append, 0), records);
}

/* All records of a run, which has to have as many as it says. */
static int open_records(const struct run *run, struct record *record,
                        struct totals *totals)
{
    Py_ssize_t left = run->count, appends = PyList_Size(run->appends);
    for (Py_ssize_t index = 0; index < appends; index++) {
        struct items records;
        long long store_ms;
        if (!open_append(PyList_GetItem(run->appends, index), &records, &store_ms))
            return 0;
        left -= records.count;
        if (left < 0)
            break;
        for (Py_ssize_t at = 0; at < records.count; at++, record++) {
            if (!open_record(records.get(records.of, at), record))
                return 0;
            record->tag_hash = PyLong_AsLong(record->hash);
            if (record->tag_hash == -1 && PyErr_Occurred())
                return 0;
            record->store_ms = store_ms;
            totals->data += (size_t)record->size;
            totals->keys += record->words.count;
        }
    }
    if (left == 0)
        return 1;
    PyErr_SetString(PyExc_ValueError, "a run says how many records it has");
    return 0;
}

/* Where the next of each kind goes. */
struct cursors {
    char *data, *entries, *keys;
    uint32_t place;
};

static int put_record(const struct record *record, uint32_t key_seed,
                      struct cursors *to)
{
    size_t size = (size_t)record->size;
    memcpy(to->data, record->data, size);
    to->data += size;
    to->entries = put_u32(to->entries, to->place);
    to->entries = put_u32(to->entries, (uint32_t)size);
    to->entries = put_u32(to->entries, (uint32_t)record->tag_hash);
    to->entries = put_u64(to->entries, (uint64_t)record->store_ms);
    const struct items *words = &record->words;
    for (Py_ssize_t index = 0; index < words->count; index++) {
        Py_ssize_t length;
        const char *text =
            PyUnicode_AsUTF8AndSize(words->get(words->of, index), &length);
        if (text == NULL)
            return 0;
        uint64_t hash = crc32_of(text, (size_t)length, key_seed);
        to->keys = put_u64(to->keys, hash << 32 | to->place);
    }
    to->place += (uint32_t)size;
    return 1;
}

static PyObject *lay_out(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *given;
    static const char too_much[] = "a block goes over 4 GiB of its segment";
    unsigned long long base, place, log_id, durable;
    long long written_ms;
    if (!PyArg_ParseTuple(args, "O!KKKKL:lay_out", &PyList_Type, &given, &base, &place,
                          &log_id, &durable, &written_ms))
        return NULL;
    Py_ssize_t count = PyList_Size(given);
    struct run *runs = PyMem_Calloc((size_t)count + 1, sizeof *runs);
    if (runs == NULL)
        return PyErr_NoMemory();
    PyObject *body = NULL, *entries = NULL, *keys = NULL, *result = NULL;
    struct record *records = NULL, *record;
    struct totals totals = {0, 0, 0};
    for (Py_ssize_t index = 0; index < count; index++) {
        if (!open_run(PyList_GetItem(given, index), &runs[index]))
            goto done;
        if (runs[index].count > MOST_RECORDS - totals.records) {
            PyErr_SetString(PyExc_OverflowError, too_much);
            goto done;
        }
        totals.records += runs[index].count;
    }
    record = records = PyMem_Malloc((size_t)totals.records * sizeof *records);
    if (records == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t index = 0; index < count; record += runs[index++].count)
        if (!open_records(&runs[index], record, &totals))
            goto done;

    size_t entries_size = (size_t)totals.records * ENTRY_BYTES;
    size_t keys_size = (size_t)totals.keys * KEY_BYTES;
    size_t size =
        totals.data + (size_t)count * RUN_BYTES + entries_size + keys_size;
    if (place + HEADER_BYTES + size > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, too_much);
        goto done;
    }
    body = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (body == NULL)
        goto done;
    char *start = PyBytes_AsString(body);
    char *directory = start + totals.data;
    char *first_entry = directory + count * RUN_BYTES;
    char *first_key = first_entry + entries_size;
    struct cursors to = {
        start, first_entry, first_key, (uint32_t)(place + HEADER_BYTES)};
    record = records;
    for (Py_ssize_t index = 0; index < count; index++) {
        directory = put_u32(directory, (uint32_t)runs[index].ordinal);
        directory = put_u32(directory, (uint32_t)runs[index].count);
        directory = put_u64(directory, runs[index].base_offset);
        for (Py_ssize_t left = runs[index].count; left--; record++)
            if (!put_record(record, (uint32_t)runs[index].key_seed, &to))
                goto done;
    }
    entries = PyBytes_FromStringAndSize(first_entry, (Py_ssize_t)entries_size);
    keys = PyBytes_FromStringAndSize(first_key, (Py_ssize_t)keys_size);
    if (entries == NULL || keys == NULL)
        goto done;

    char header[HEADER_BYTES];
    char *at = header;
    memcpy(at, "RWYB", 4);
    at = put_u32(at + 4, 0);
    at = put_u16(at, 1);
    at = put_u16(at, 0);
    at = put_u32(at, (uint32_t)(HEADER_BYTES + size));
    at = put_u64(at, base + place);
    at = put_u64(at, log_id);
    at = put_u64(at, durable);
    at = put_u64(at, (uint64_t)written_ms);
    at = put_u32(at, (uint32_t)count);
    at = put_u32(at, (uint32_t)totals.records);
    at = put_u32(at, (uint32_t)totals.keys);
    put_u32(at, (uint32_t)totals.data);
    uint32_t crc = crc32_of(header + CHECKED_FROM, HEADER_BYTES - CHECKED_FROM, 0);
    put_u32(header + 4, crc32_of(start, size, crc));
    result = Py_BuildValue("y#OOOn", header, (Py_ssize_t)HEADER_BYTES, body, entries,
                           keys, (Py_ssize_t)totals.data);
done:
    for (Py_ssize_t index = 0; index < count; index++)
        Py_XDECREF(runs[index].appends);
    PyMem_Free(records);
    PyMem_Free(runs);
    Py_XDECREF(body);
    Py_XDECREF(entries);
    Py_XDECREF(keys);
    return result;
}

static PyObject *add_up(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (given != 2) {
        PyErr_Format(PyExc_TypeError, "add_up takes 2 arguments, not %zd", given);
        return NULL;
    }
    struct items records;
    Py_ssize_t most = PyLong_AsSsize_t(args[1]), total = 0, keys = 0;
    if ((most == -1 && PyErr_Occurred()) || !open_items(args[0], &records))
        return NULL;
    for (Py_ssize_t index = 0; index < records.count; index++) {
        struct record record;
        if (!open_record(records.get(records.of, index), &record))
            return NULL;
        const uint8_t *at = (const uint8_t *)record.data;
        if (record.size < 4 || record.size > most
            || (Py_ssize_t)((uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3])
                   != record.size)
            return Py_BuildValue("ii", -1, 0);
        total += record.size;
        keys += record.words.count;
    }
    return Py_BuildValue("nn", total, keys);
}

static PyMethodDef functions[] = {
    {"add_up", (PyCFunction)(void (*)(void))add_up, METH_FASTCALL, NULL},
    {"in_runs", in_runs, METH_VARARGS, NULL},
    {"lay_out", lay_out, METH_VARARGS, NULL},
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
