/* The compiled forms of gateway.wire.record_rewrite, and of what the timer reads.

   Messages come from the log; those that are not whole are refused all the same. */

#include "bytes.h"
#include "moving.h"
#include "properties.h"

#include <stdio.h>

#define MAGIC_V1 0xDAA320A7u
#define V6_MORE_BYTES 12
#define CRC_AT 8
#define QUEUE_AT 12
#define FLAG_AT 16
#define OFFSET_AT 20
#define SYS_FLAG_AT 36
#define STORE_MS_AT 56
#define BODY_AT 88
#define PREPARED_BEFORE_BODY 12
#define TRANSACTION_MASK 0xCu
#define COMMITTED 0x8u

struct stored {
    const char *at;
    size_t size, store_ms_at, body_at, topic_at, properties_at;
    int64_t queue_offset, store_ms;
};

/* -- gateway.wire.record_rewrite.parts_of ------------------------------------------------- */

static int parts_of(struct text data, struct stored *stored)
{
    const uint8_t *at = (const uint8_t *)data.at;
    size_t store_ms_at = STORE_MS_AT, body_at = BODY_AT;
    if (data.size < BODY_AT)
        goto broken;
    size_t size = read_u32(at);
    uint32_t sys_flag = read_u32(at + SYS_FLAG_AT);
    if (sys_flag & BORN_HOST_V6) {
        store_ms_at += V6_MORE_BYTES;
        body_at += V6_MORE_BYTES;
    }
    if (sys_flag & STORE_HOST_V6)
        body_at += V6_MORE_BYTES;
    if (size > data.size || size < body_at)
        goto broken;
    size_t topic_at = body_at + read_u32(at + body_at - 4);
    if (topic_at + 2 > size)
        goto broken;
    size_t topic = read_u32(at + 4) == MAGIC_V1
                       ? 1 + at[topic_at]
                       : 2 + ((size_t)at[topic_at] << 8 | at[topic_at + 1]);
    if (topic_at + topic + 2 > size)
        goto broken;
    *stored = (struct stored){
        .at = data.at,
        .size = size,
        .store_ms_at = store_ms_at,
        .body_at = body_at,
        .topic_at = topic_at,
        .properties_at = topic_at + topic + 2,
        .queue_offset = (int64_t)read_u64(at + OFFSET_AT),
        .store_ms = (int64_t)read_u64(at + store_ms_at),
    };
    return 1;
broken:
    PyErr_SetString(PyExc_ValueError, "a stored message is not whole");
    return 0;
}

/* What is made of each message in a row, where that is not None; where the last is. */
static PyObject *of_each(PyObject *data, PyObject *make(const struct stored *),
                         Py_ssize_t *last)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    struct text rest = {buffer.buf, (size_t)buffer.len};
    PyObject *all = PyList_New(0);
    while (all != NULL && rest.size > 0) {
        struct stored stored;
        PyObject *one = parts_of(rest, &stored) ? make(&stored) : NULL;
        if (one == NULL || (one != Py_None && PyList_Append(all, one) < 0))
            Py_CLEAR(all);
        else {
            *last = buffer.len - (Py_ssize_t)rest.size;
            rest.at += stored.size;
            rest.size -= stored.size;
        }
        Py_XDECREF(one);
    }
    PyBuffer_Release(&buffer);
    return all;
}

/* -- gateway.wire.record_rewrite.records_in ----------------------------------------------- */

static PyObject *record_of(const struct stored *stored)
{
    return Py_BuildValue("LLy#", (long long)stored->queue_offset,
                         (long long)stored->store_ms, stored->at,
                         (Py_ssize_t)stored->size);
}

PyObject *records_in(PyObject *module, PyObject *data)
{
    Py_ssize_t last;
    (void)module;
    return of_each(data, record_of, &last);
}

/* -- gateway.node.timer.pending_timers.waiting_in ---------------------------------------- */

#define MOST_DIGITS 18

static int skip(struct text *from, const char *wanted, size_t size)
{
    if (from->size < size || memcmp(from->at, wanted, size) != 0)
        return 0;
    from->at += size;
    from->size -= size;
    return 1;
}
#define SKIP(from, wanted) skip(from, wanted, sizeof wanted - 1)

/* A value up to its end. */
static int read_value(struct text *from, struct text *value)
{
    const char *end = memchr(from->at, VALUE_END, from->size);
    if (end == NULL)
        return 0;
    *value = (struct text){from->at, (size_t)(end - from->at)};
    from->size -= value->size + 1;
    from->at = end + 1;
    return 1;
}

static int read_number(struct text *from, long long *number)
{
    struct text digits;
    if (!read_value(from, &digits) || digits.size == 0 || digits.size > MOST_DIGITS)
        return 0;
    *number = 0;
    for (size_t index = 0; index < digits.size; index++) {
        if (digits.at[index] < '0' || digits.at[index] > '9')
            return 0;
        *number = *number * 10 + (digits.at[index] - '0');
    }
    return 1;
}

/* The unique key behind other properties, each with its end. */
static struct text unique_key(struct text from)
{
    static const char name[] = "UNIQ_KEY\x01";
    struct text value;
    while (from.size > 0)
        if (SKIP(&from, name))
            return read_value(&from, &value) ? value : (struct text){"", 0};
        else if (!read_value(&from, &value))
            break;
    return (struct text){"", 0};
}

static PyObject *waiting_of(const struct stored *stored)
{
    struct text from = {stored->at + stored->properties_at,
                        stored->size - stored->properties_at};
    long long due_ms, queue_id = -1;
    struct text topic, unique;
    PyObject *identity;
    if (!SKIP(&from, "TIMER_OUT_MS\x01") || !read_number(&from, &due_ms))
        Py_RETURN_NONE;
    if (SKIP(&from, "TIMER_DEL_UNIQKEY\x01")) {
        if (!read_value(&from, &unique))
            Py_RETURN_NONE;
        identity = PyBytes_FromStringAndSize(unique.at, (Py_ssize_t)unique.size);
    } else {
        if (!SKIP(&from, "REAL_TOPIC\x01") || !read_value(&from, &topic)
            || !SKIP(&from, "REAL_QID\x01") || !read_number(&from, &queue_id))
            Py_RETURN_NONE;
        unique = unique_key(from);
        identity =
            PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(topic.size + 1 + unique.size));
        if (identity != NULL) {
            char *at = put(PyBytes_AsString(identity), topic.at, topic.size);
            *at++ = '+';
            put(at, unique.at, unique.size);
        }
    }
    if (identity == NULL)
        return NULL;
    return Py_BuildValue("LLnLLN", (long long)stored->queue_offset,
                         (long long)stored->store_ms, (Py_ssize_t)stored->size, due_ms,
                         queue_id, identity);
}

PyObject *waiting_in(PyObject *module, PyObject *data)
{
    Py_ssize_t last = 0;
    (void)module;
    PyObject *found = of_each(data, waiting_of, &last);
    return found == NULL ? NULL : Py_BuildValue("Nn", found, last);
}

/* -- gateway.wire.record_rewrite.moved_all ------------------------------------------------ */

struct place {
    uint32_t magic, queue_id;
    uint64_t store_ms;
    struct text topic;
    int from_timer;
};

static PyObject *moved(const struct stored *stored, const struct place *place,
                       uint64_t queue_offset, uint64_t message_id, struct text times,
                       struct text text)
{
    size_t text_size = times.size + text.size;
    size_t size = stored->topic_at + place->topic.size + 2 + text_size;
    struct known known = look_at(text.at, text.size);
    int32_t tag_hash = 0;
    if (!hash_tag(known.tag, &tag_hash))
        return NULL;
    PyObject *record = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (record == NULL)
        return NULL;
    char *at = PyBytes_AsString(record);
    memcpy(at, stored->at, stored->topic_at);
    put_u32(put_u32(at, (uint32_t)size), place->magic);
    put_u32(at + QUEUE_AT, place->queue_id);
    put_u64(put_u64(at + OFFSET_AT, queue_offset), message_id);
    put_u64(at + stored->store_ms_at, place->store_ms);
    at = put(at + stored->topic_at, place->topic.at, place->topic.size);
    at = put(put_u16(at, (uint16_t)text_size), times.at, times.size);
    put(at, text.at, text.size);
    PyObject *words = key_words(&known);
    if (words == NULL) {
        Py_DECREF(record);
        return NULL;
    }
    return Py_BuildValue("NiN", record, (int)tag_hash, words);
}

/* When a message came to the timer, and when it leaves it, as properties. */
#define MOST_TIMES_BYTES 96
static size_t write_times(char *to, int64_t enqueue_ms, int64_t dequeue_ms)
{
    static const char form[] = "TIMER_ENQUEUE_MS\x01%lld\x02TIMER_DEQUEUE_MS\x01%lld\x02";
    return (size_t)snprintf(to, MOST_TIMES_BYTES, form, (long long)enqueue_ms,
                            (long long)dequeue_ms);
}

/* One of the messages: itself, and its properties where they are others now. */
static PyObject *move_one(PyObject *pair, const struct place *place,
                          uint64_t queue_offset, uint64_t message_id)
{
    struct stored stored;
    if (!IS_A(Tuple, pair) || PyTuple_Size(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "a message has to come with its properties");
        return NULL;
    }
    PyObject *data = PyTuple_GetItem(pair, 0), *given = PyTuple_GetItem(pair, 1);
    if (!is_bytes(data, "a message") || !parts_of(text_of(data), &stored))
        return NULL;
    struct text text = {stored.at + stored.properties_at,
                        stored.size - stored.properties_at};
    char written[MOST_TIMES_BYTES];
    struct text times = {written, 0};
    if (given != Py_None) {
        if (!is_bytes(given, "properties"))
            return NULL;
        text = text_of(given);
    } else if (place->from_timer) {
        times.size = write_times(written, stored.store_ms, (int64_t)place->store_ms);
        if (times.size + text.size > MAX_PROPERTIES_BYTES)
            times.size = 0;
    }
    if (text.size > MAX_PROPERTIES_BYTES)
        Py_RETURN_NONE;
    return moved(&stored, place, queue_offset, message_id, times, text);
}

PyObject *moved_all(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    enum {
        MESSAGES, MAGIC, TOPIC, QUEUE_ID, QUEUE_OFFSET, ID_BASE, STORE_MS, FROM_TIMER,
        COUNT
    };
    static const int places[] = {
        MAGIC, QUEUE_ID, QUEUE_OFFSET, ID_BASE, STORE_MS, FROM_TIMER,
    };
    long long numbers[COUNT];
    if (!has_arguments(given, COUNT, "moved_all") || !is_bytes(args[TOPIC], "topic")
        || !READ_NUMBERS(args, places, numbers))
        return NULL;
    if (!IS_A(List, args[MESSAGES])) {
        PyErr_SetString(PyExc_TypeError, "messages have to be in a list");
        return NULL;
    }
    struct place place = {
        .magic = (uint32_t)numbers[MAGIC],
        .queue_id = (uint32_t)numbers[QUEUE_ID],
        .store_ms = (uint64_t)numbers[STORE_MS],
        .topic = text_of(args[TOPIC]),
        .from_timer = numbers[FROM_TIMER] != 0,
    };
    uint64_t offset = (uint64_t)numbers[QUEUE_OFFSET];
    PyObject *records = PyList_New(0);
    for (Py_ssize_t index = 0;
         records != NULL && index < PyList_Size(args[MESSAGES]); index++) {
        PyObject *record = move_one(PyList_GetItem(args[MESSAGES], index), &place,
                                    offset, (uint64_t)numbers[ID_BASE] | offset);
        offset++;
        if (record == Py_None) {
            Py_DECREF(records);
            return record;
        }
        if (record == NULL || PyList_Append(records, record) < 0)
            Py_CLEAR(records);
        Py_XDECREF(record);
    }
    return records;
}

/* -- gateway.wire.record_rewrite.committed ------------------------------------------------ */

PyObject *committed(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    enum {
        DATA, TEXT, MAGIC, TOPIC, QUEUE_ID, QUEUE_OFFSET, MESSAGE_ID, STORE_MS, HALF_ID,
        COUNT
    };
    static const int places[] = {
        MAGIC, QUEUE_ID, QUEUE_OFFSET, MESSAGE_ID, STORE_MS, HALF_ID,
    };
    long long numbers[COUNT];
    struct stored stored;
    if (!has_arguments(given, COUNT, "committed") || !is_bytes(args[DATA], "data")
        || !is_bytes(args[TEXT], "properties") || !is_bytes(args[TOPIC], "topic")
        || !READ_NUMBERS(args, places, numbers)
        || !parts_of(text_of(args[DATA]), &stored))
        return NULL;
    struct text text = text_of(args[TEXT]);
    if (text.size > MAX_PROPERTIES_BYTES)
        Py_RETURN_NONE;
    struct place place = {
        .magic = (uint32_t)numbers[MAGIC],
        .queue_id = (uint32_t)numbers[QUEUE_ID],
        .store_ms = (uint64_t)numbers[STORE_MS],
        .topic = text_of(args[TOPIC]),
    };
    PyObject *record = moved(&stored, &place, (uint64_t)numbers[QUEUE_OFFSET],
                             (uint64_t)numbers[MESSAGE_ID], (struct text){"", 0}, text);
    if (record == NULL)
        return NULL;
    char *at = PyBytes_AsString(PyTuple_GetItem(record, 0));
    uint32_t sys_flag = read_u32((const uint8_t *)at + SYS_FLAG_AT);
    put_u32(at + SYS_FLAG_AT, (sys_flag & ~TRANSACTION_MASK) | COMMITTED);
    put_u64(at + stored.body_at - PREPARED_BEFORE_BODY, (uint64_t)numbers[HALF_ID]);
    return record;
}
