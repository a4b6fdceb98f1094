/* What compaction needs to know of stored messages; gateway/wire/compaction_rows.py. */

#include "bytes.h"
#include "describing.h"
#include "properties.h"
#include "sha256.h"

#define ROW_BYTES 40
#define MAGIC_V1 0xDAA320A7u
#define MAGIC_AT 4
#define SYS_FLAG_AT 36
#define STORE_MS_AT 56
#define BODY_SIZE_AT 84
#define BORN_HOST_V6 0x10
#define STORE_HOST_V6 0x20
#define KEYED 1
#define TOMBSTONE 2

static void put_little(uint8_t *at, uint64_t value, int bytes)
{
    for (int index = 0; index < bytes; index++)
        at[index] = (uint8_t)(value >> 8 * index);
}

static int is_blank(struct text text)
{
    for (size_t index = 0; index < text.size; index++)
        if (strchr(" \t\n\r\v\f", text.at[index]) == NULL || text.at[index] == '\0')
            return 0;
    return 1;
}

/* The last KEYS and TAGS there are, as searching backwards finds them. */
static void find(const char *at, const char *end, struct text *keys, struct text *tag)
{
    while (at < end) {
        const char *stop = memchr(at, VALUE_END, (size_t)(end - at));
        if (stop == NULL)
            stop = end;
        if (stop - at >= 5 && at[4] == NAME_END) {
            struct text value = {at + 5, (size_t)(stop - at - 5)};
            if (memcmp(at, "KEYS", 4) == 0)
                *keys = value;
            else if (memcmp(at, "TAGS", 4) == 0)
                *tag = value;
        }
        at = stop + 1;
    }
}

/* One row of one record; 0 where it is none. */
static int describe_one(const uint8_t *record, size_t size, uint8_t *row)
{
    uint32_t flags = read_u32(record + SYS_FLAG_AT);
    size_t moved = flags & BORN_HOST_V6 ? 12 : 0;
    uint64_t store_ms = read_u64(record + STORE_MS_AT + moved);
    size_t at = BODY_SIZE_AT + moved + (flags & STORE_HOST_V6 ? 12 : 0);
    if (at + 4 > size)
        return 0;
    uint32_t body = read_u32(record + at);
    at += 4 + (size_t)body;
    if (at + 4 > size)
        return 0;
    if (read_u32(record + MAGIC_AT) == MAGIC_V1)
        at += 3 + (size_t)record[at];
    else
        at += 4 + ((size_t)record[at] << 8 | record[at + 1]);
    if (at > size)
        return 0;
    struct text keys = {NULL, 0}, tag = {NULL, 0};
    find((const char *)record + at, (const char *)record + size, &keys, &tag);
    int32_t hash = 0;
    if (!hash_tag(tag, &hash))
        return 0;
    int is_keyed = !is_blank(keys);
    put_little(row, size, 4);
    put_little(row + 4, (uint32_t)hash, 4);
    put_little(row + 8, store_ms, 8);
    put_little(row + 16, (is_keyed ? KEYED : 0) | (body ? 0 : TOMBSTONE), 8);
    if (is_keyed)
        sha256_half((const uint8_t *)keys.at, keys.size, row + 24);
    else
        memset(row + 24, 0, 16);
    return 1;
}

PyObject *describe(PyObject *module, PyObject *data)
{
    (void)module;
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *record = view.buf, *end = record + view.len;
    Py_ssize_t count = 0;
    while (end - record >= BODY_SIZE_AT) {
        uint32_t size = read_u32(record);
        if (size < BODY_SIZE_AT || size > (size_t)(end - record))
            break;
        record += size;
        count++;
    }
    PyObject *rows = NULL;
    if (record == end)
        rows = PyBytes_FromStringAndSize(NULL, count * ROW_BYTES);
    else
        PyErr_SetString(PyExc_ValueError, "no stored messages");
    if (rows != NULL) {
        uint8_t *row = (uint8_t *)PyBytes_AsString(rows);
        for (record = view.buf; record < end; row += ROW_BYTES) {
            uint32_t size = read_u32(record);
            if (!describe_one(record, size, row)) {
                if (!PyErr_Occurred())
                    PyErr_SetString(PyExc_ValueError, "no stored messages");
                Py_CLEAR(rows);
                break;
            }
            record += size;
        }
    }
    PyBuffer_Release(&view);
    return rows;
}
