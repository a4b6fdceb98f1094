/* Compiled forms of what reading does per record; tests compare them with Python's. */

#include "checksum.h"
#include "gathering.h"
#include "whole.h"

#define ENTRY_BYTES 20
#define LENGTH_BYTES 4

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16
         | (uint32_t)at[3] << 24;
}

static uint32_t get_u32_big(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8
         | (uint32_t)at[3];
}

static int is_list(PyObject *object, const char *what)
{
    if (IS_A(List, object))
        return 1;
    return is_not(object, what, "have to be a list");
}

/* Takes the reference, also where it fails. */
static int append(PyObject *list, PyObject *item)
{
    if (item == NULL)
        return 0;
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return !failed;
}

/* -- storage.file.selection.pick ---------------------------------------------------- */

/* Neighbours so far; `end` is 0 before there is one. */
struct extent {
    unsigned long long start, end;
    Py_ssize_t records;
};

static int close_extent(PyObject *extents, const struct extent *extent)
{
    return !extent->end
        || append(extents, Py_BuildValue("KKn", extent->start,
                                         extent->end - extent->start, extent->records));
}

/* Whether a hash is wanted; -1 where that could not be found out. */
static int is_wanted(PyObject *tags, uint32_t hash)
{
    if (tags == Py_None)
        return 1;
    PyObject *number = PyLong_FromLong((int32_t)hash);
    if (number == NULL)
        return -1;
    int found = PySequence_Contains(tags, number);
    Py_DECREF(number);
    return found;
}

static PyObject *pick(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer entries;
    long long offset, max_count, max_bytes;
    PyObject *tags;
    int forced;
    if (!PyArg_ParseTuple(args, "y*LLLOp:pick", &entries, &offset, &max_count,
                          &max_bytes, &tags, &forced))
        return NULL;
    PyObject *result = NULL, *extents = PyList_New(0), *sizes = PyList_New(0);
    if (extents == NULL || sizes == NULL || !is_whole(&entries, ENTRY_BYTES, 1))
        goto done;
    struct extent extent = {0, 0, 0};
    const uint8_t *at = entries.buf, *end = at + entries.len;
    long long total = 0, seen = 0;
    int full = 0;
    while (at < end) {
        uint32_t place = get_u32(at), size = get_u32(at + 4);
        int wanted = size ? is_wanted(tags, get_u32(at + 8)) : 0;
        if (wanted < 0)
            goto done;
        if (wanted) {
            total += size;
            if (total > max_bytes && (PyList_Size(sizes) || !forced)) {
                full = 1;
                break;
            }
            if (place != extent.end) {
                if (!close_extent(extents, &extent))
                    goto done;
                extent = (struct extent){place, place, 0};
            }
            extent.end += size;
            extent.records++;
            if (!append(sizes, PyLong_FromUnsignedLong(size)))
                goto done;
        }
        at += ENTRY_BYTES;
        seen++;
        if (PyList_Size(sizes) == max_count)
            break;
    }
    if (close_extent(extents, &extent))
        result = Py_BuildValue("OOLLO", extents, sizes, offset + seen, seen ? seen : 1,
                               full ? Py_True : Py_False);
done:
    Py_XDECREF(extents);
    Py_XDECREF(sizes);
    PyBuffer_Release(&entries);
    return result;
}

/* -- storage.file.selection.are_whole ----------------------------------------------- */

static PyObject *are_whole(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer records;
    PyObject *sizes;
    if (!PyArg_ParseTuple(args, "y*O:are_whole", &records, &sizes))
        return NULL;
    PyObject *result = NULL;
    if (is_list(sizes, "sizes")) {
        result = Py_True;
        Py_ssize_t at = 0;
        for (Py_ssize_t index = 0; index < PyList_Size(sizes); index++) {
            Py_ssize_t size = PyLong_AsSsize_t(PyList_GetItem(sizes, index));
            if (size == -1 && PyErr_Occurred()) {
                result = NULL;
                break;
            }
            const uint8_t *record = (const uint8_t *)records.buf + at;
            if (size < LENGTH_BYTES || size > records.len - at
                || get_u32_big(record) != (uint32_t)size) {
                result = Py_False;
                break;
            }
            at += size;
        }
    }
    PyBuffer_Release(&records);
    Py_XINCREF(result);
    return result;
}

static PyMethodDef functions[] = {
    {"pick", pick, METH_VARARGS, NULL},
    {"are_whole", are_whole, METH_VARARGS, NULL},
    {"gather", gather, METH_O, NULL},
    {"crc32", checksum, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_reading", NULL, -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__reading(void)
{
    crc32_prepare();
    gather_prepare();
    return PyModule_Create(&definition);
}
