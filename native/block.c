/* The compiled forms of storage.file.block.lay_out and add_up, and sorted runs of keys;
   tests compare them with Python's. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "crc32.h"
#include "key_runs.h"

#define HEADER_BYTES 64
#define RUN_BYTES 16
#define ENTRY_BYTES 20
#define CHECKED_FROM 8

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

/* One append: its records, and when they were stored. Borrowed. */
struct append {
    PyObject *records;
    long long store_ms;
};

/* What a run is made of; owned references, so that nothing in it can go away. */
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

static int is_fast(PyObject *object)
{
    if (PyList_Check(object) || PyTuple_Check(object))
        return 1;
    PyErr_Format(PyExc_TypeError, "a list or a tuple is needed, not %.80s",
                 Py_TYPE(object)->tp_name);
    return 0;
}
#define COUNT_OF PySequence_Fast_GET_SIZE
#define ITEM PySequence_Fast_GET_ITEM

static int open_append(PyObject *appends, Py_ssize_t index, struct append *append)
{
    PyObject *item = PyList_GET_ITEM(appends, index);
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) < 2) {
        PyErr_SetString(PyExc_TypeError, "an append is records, a time and a callback");
        return 0;
    }
    if (!is_fast(PyTuple_GET_ITEM(item, 0)))
        return 0;
    append->records = PyTuple_GET_ITEM(item, 0);
    append->store_ms = PyLong_AsLongLong(PyTuple_GET_ITEM(item, 1));
    return !(append->store_ms == -1 && PyErr_Occurred());
}

/* The bytes of a record; NULL where it is not one. Borrowed. */
static PyObject *open_record(PyObject *record)
{
    if (PyTuple_Check(record) && PyTuple_GET_SIZE(record) == 3
        && PyBytes_Check(PyTuple_GET_ITEM(record, 0)))
        return PyTuple_GET_ITEM(record, 0);
    PyErr_SetString(PyExc_TypeError, "a record is bytes, a hash and keys");
    return NULL;
}

static int count_appends(PyObject *appends, struct totals *totals)
{
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(appends); index++) {
        struct append append;
        if (!open_append(appends, index, &append))
            return 0;
        Py_ssize_t count = COUNT_OF(append.records);
        for (Py_ssize_t at = 0; at < count; at++) {
            PyObject *record = ITEM(append.records, at);
            PyObject *data = open_record(record);
            if (data == NULL || !is_fast(PyTuple_GET_ITEM(record, 2)))
                return 0;
            totals->data += (size_t)PyBytes_GET_SIZE(data);
            totals->keys += COUNT_OF(PyTuple_GET_ITEM(record, 2));
        }
        totals->records += count;
    }
    return 1;
}

static int open_run(PyObject *object, struct run *run, struct totals *totals)
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
    run->count = (Py_ssize_t)count;
    run->appends = PyObject_GetAttrString(object, "appends");
    if (run->appends == NULL)
        return 0;
    if (!PyList_Check(run->appends)) {
        PyErr_SetString(PyExc_TypeError, "a run's appends have to be a list");
        return 0;
    }
    return count_appends(run->appends, totals);
}

/* Where the next of each kind goes. */
struct cursors {
    char *data, *entries, *keys;
    uint32_t place;
};

static int put_records(const struct run *run, struct cursors *to)
{
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(run->appends); index++) {
        struct append append;
        if (!open_append(run->appends, index, &append))
            return 0;
        for (Py_ssize_t at = 0; at < COUNT_OF(append.records); at++) {
            PyObject *record = ITEM(append.records, at);
            PyObject *data = PyTuple_GET_ITEM(record, 0);
            PyObject *words = PyTuple_GET_ITEM(record, 2);
            size_t size = (size_t)PyBytes_GET_SIZE(data);
            long tag_hash = PyLong_AsLong(PyTuple_GET_ITEM(record, 1));
            if (tag_hash == -1 && PyErr_Occurred())
                return 0;
            memcpy(to->data, PyBytes_AS_STRING(data), size);
            to->data += size;
            to->entries = put_u32(to->entries, to->place);
            to->entries = put_u32(to->entries, (uint32_t)size);
            to->entries = put_u32(to->entries, (uint32_t)tag_hash);
            to->entries = put_u64(to->entries, (uint64_t)append.store_ms);
            for (Py_ssize_t word = 0; word < COUNT_OF(words); word++) {
                Py_ssize_t length;
                const char *text =
                    PyUnicode_AsUTF8AndSize(ITEM(words, word), &length);
                if (text == NULL)
                    return 0;
                uint64_t hash =
                    crc32_of(text, (size_t)length, (uint32_t)run->key_seed);
                to->keys = put_u64(to->keys, hash << 32 | to->place);
            }
            to->place += (uint32_t)size;
        }
    }
    return 1;
}

static PyObject *lay_out(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *given;
    unsigned long long base, place, log_id, durable;
    long long written_ms;
    if (!PyArg_ParseTuple(args, "O!KKKKL:lay_out", &PyList_Type, &given, &base, &place,
                          &log_id, &durable, &written_ms))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(given);
    struct run *runs = PyMem_Calloc((size_t)count + 1, sizeof *runs);
    if (runs == NULL)
        return PyErr_NoMemory();
    PyObject *body = NULL, *entries = NULL, *keys = NULL, *result = NULL;
    struct totals totals = {0, 0, 0};
    for (Py_ssize_t index = 0; index < count; index++)
        if (!open_run(PyList_GET_ITEM(given, index), &runs[index], &totals))
            goto done;

    size_t entries_size = (size_t)totals.records * ENTRY_BYTES;
    size_t keys_size = (size_t)totals.keys * KEY_BYTES;
    size_t size =
        totals.data + (size_t)count * RUN_BYTES + entries_size + keys_size;
    if (place + HEADER_BYTES + size > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a block goes over 4 GiB of its segment");
        goto done;
    }
    body = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (body == NULL)
        goto done;
    char *start = PyBytes_AS_STRING(body);
    char *directory = start + totals.data;
    char *first_entry = directory + count * RUN_BYTES;
    char *first_key = first_entry + entries_size;
    struct cursors to = {
        start, first_entry, first_key, (uint32_t)(place + HEADER_BYTES)};
    for (Py_ssize_t index = 0; index < count; index++) {
        directory = put_u32(directory, (uint32_t)runs[index].ordinal);
        directory = put_u32(directory, (uint32_t)runs[index].count);
        directory = put_u64(directory, runs[index].base_offset);
        if (!put_records(&runs[index], &to))
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
    Py_ssize_t most = PyLong_AsSsize_t(args[1]), total = 0, keys = 0;
    if ((most == -1 && PyErr_Occurred()) || !is_fast(args[0]))
        return NULL;
    for (Py_ssize_t index = 0; index < COUNT_OF(args[0]); index++) {
        PyObject *record = ITEM(args[0], index), *data = open_record(record);
        if (data == NULL || !is_fast(PyTuple_GET_ITEM(record, 2)))
            return NULL;
        Py_ssize_t size = PyBytes_GET_SIZE(data);
        const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(data);
        if (size < 4 || size > most
            || (Py_ssize_t)((uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3])
                   != size)
            return Py_BuildValue("ii", -1, 0);
        total += size;
        keys += COUNT_OF(PyTuple_GET_ITEM(record, 2));
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
