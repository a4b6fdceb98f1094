/* Properties: the pairs that a message carries; gateway/wire/properties.py. */

#ifndef ROPEWAY_PROPERTIES_H
#define ROPEWAY_PROPERTIES_H

#include "bytes.h"

#define MAX_PROPERTIES_BYTES 32767
#define NAME_END '\x01'
#define VALUE_END '\x02'

static const char *const RARE[] = {
    "TRAN_MSG", "TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS",
    "__STARTDELIVERTIME", "POP_CK", "DELAY", "REPLY_TO_CLIENT",
};
#define RARE_COUNT (sizeof RARE / sizeof *RARE)

static inline int is_named(struct text name, const char *wanted, size_t size)
{
    return name.size == size && memcmp(name.at, wanted, size) == 0;
}
#define IS(name, wanted) is_named(name, wanted, sizeof wanted - 1)

static inline int is_rare(struct text name)
{
    /* All of them, and few others, begin with one of these. */
    if (strchr("TP_DR", name.at[0]) == NULL)
        return 0;
    for (size_t index = 0; index < RARE_COUNT; index++)
        if (is_named(name, RARE[index], strlen(RARE[index])))
            return 1;
    return 0;
}

struct known {
    struct text tag, keys, unique;
    int has_rare;
};

/* What properties say that a broker looks at. */
static inline struct known look_at(const char *text, size_t size)
{
    struct known known = {.has_rare = 0};
    const char *end = text + size;
    while (text < end) {
        const char *stop = memchr(text, VALUE_END, (size_t)(end - text));
        if (stop == NULL)
            stop = end;
        const char *middle = memchr(text, NAME_END, (size_t)(stop - text));
        if (middle != NULL && middle > text && middle + 1 < stop) {
            struct text name = {text, (size_t)(middle - text)};
            struct text value = {middle + 1, (size_t)(stop - middle - 1)};
            if (IS(name, "UNIQ_KEY"))
                known.unique = value;
            else if (IS(name, "TAGS"))
                known.tag = value;
            else if (IS(name, "KEYS"))
                known.keys = value;
            else if (is_rare(name))
                known.has_rare = 1;
        }
        text = stop + 1;
    }
    return known;
}

/* Java's String.hashCode of UTF-8. */
static inline int hash_tag(struct text tag, int32_t *hash)
{
    uint32_t value = 0;
    for (size_t index = 0; index < tag.size; index++) {
        if (tag.at[index] & 0x80) {
            PyObject *text = PyUnicode_DecodeUTF8(tag.at, (Py_ssize_t)tag.size, NULL);
            if (text == NULL)
                return 0;
            value = 0;
            for (Py_ssize_t at = 0; at < PyUnicode_GetLength(text); at++) {
                Py_UCS4 unit = PyUnicode_ReadChar(text, at);
                if (unit > 0xFFFF) {
                    value = value * 31 + (0xD800 - (0x10000 >> 10) + (unit >> 10));
                    unit = 0xDC00 + (unit & 0x3FF);
                }
                value = value * 31 + unit;
            }
            Py_DECREF(text);
            break;
        }
        value = value * 31 + (uint8_t)tag.at[index];
    }
    *hash = (int32_t)value;
    return 1;
}

static inline PyObject *key_words(const struct known *known)
{
    PyObject *words;
    if (known->keys.size) {
        PyObject *keys =
            PyUnicode_DecodeUTF8(known->keys.at, (Py_ssize_t)known->keys.size, NULL);
        if (keys == NULL)
            return NULL;
        words = PyUnicode_Split(keys, NULL, -1);
        Py_DECREF(keys);
    } else {
        words = PyList_New(0);
    }
    if (words == NULL || known->unique.size == 0)
        return words;
    PyObject *unique =
        PyUnicode_DecodeUTF8(known->unique.at, (Py_ssize_t)known->unique.size, NULL);
    if (unique == NULL || PyList_Append(words, unique) < 0)
        Py_CLEAR(words);
    Py_XDECREF(unique);
    return words;
}

#endif
