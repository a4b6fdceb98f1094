/* Bytes, numbers and arguments, as the compiled forms read and write them. */

#ifndef ROPEWAY_BYTES_H
#define ROPEWAY_BYTES_H

#include "limited.h"
#include <string.h>

struct text {
    const char *at;
    size_t size;
};

static inline uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t read_u64(const uint8_t *at)
{
    return (uint64_t)read_u32(at) << 32 | read_u32(at + 4);
}

static inline char *put_u16(char *at, uint16_t value)
{
    at[0] = (char)(value >> 8);
    at[1] = (char)value;
    return at + 2;
}

static inline char *put_u32(char *at, uint32_t value)
{
    return put_u16(put_u16(at, (uint16_t)(value >> 16)), (uint16_t)value);
}

static inline char *put_u64(char *at, uint64_t value)
{
    return put_u32(put_u32(at, (uint32_t)(value >> 32)), (uint32_t)value);
}

static inline char *put(char *at, const void *from, size_t size)
{
    memcpy(at, from, size);
    return at + size;
}

static inline int has_arguments(Py_ssize_t given, Py_ssize_t wanted, const char *name)
{
    if (given == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", name, wanted, given);
    return 0;
}

static inline int is_bytes(PyObject *object, const char *what)
{
    if (IS_A(Bytes, object))
        return 1;
    return is_not(object, what, "has to be bytes");
}

static inline struct text text_of(PyObject *bytes)
{
    return (struct text){PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes)};
}

/* The numbers at some places of the arguments, into the same places. */
static inline int read_numbers(PyObject *const *args, const int *places, size_t count,
                               long long *numbers)
{
    for (size_t index = 0; index < count; index++) {
        long long value = PyLong_AsLongLong(args[places[index]]);
        if (value == -1 && PyErr_Occurred())
            return 0;
        numbers[places[index]] = value;
    }
    return 1;
}
#define READ_NUMBERS(args, places, numbers) \
    read_numbers(args, places, sizeof places / sizeof *places, numbers)

#endif
