/* Compiled forms of the gateway's hot functions; gateway/wire/compiled.py says which.

   Each does exactly what the Python function of its name does, which also says what it
   is for. Tests compare the two. */

#include "bytes.h"
#include "crc32.h"
#include "describing.h"
#include "moving.h"
#include "properties.h"
#include "send.h"

#define CRC_MASK 0x7FFFFFFFu
#define V4_HOST_BYTES 8

/* -- gateway.wire.frame.cut ------------------------------------------------------- */

/* A kind of tuple, and what makes one with room for some items. */
struct kind {
    PyTypeObject *type;
    allocfunc make;
};

static PyObject *make_frame(struct kind kind, uint32_t serialize_type,
                            const char *header, Py_ssize_t header_size,
                            Py_ssize_t body_size)
{
    PyObject *items[] = {
        PyLong_FromUnsignedLong(serialize_type),
        PyBytes_FromStringAndSize(header, header_size),
        PyBytes_FromStringAndSize(header + header_size, body_size),
    };
    PyObject *frame = kind.make(kind.type, 3);
    for (int index = 0; index < 3; index++) {
        if (items[index] == NULL)
            Py_CLEAR(frame);
        if (frame != NULL)
            PyTuple_SetItem(frame, index, items[index]);
        else
            Py_XDECREF(items[index]);
    }
    return frame;
}

static PyObject *cut(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (!has_arguments(given, 4, "cut") || !is_bytes(args[0], "data"))
        return NULL;
    struct kind kind = {(PyTypeObject *)args[3], NULL};
    if (!PyType_Check(args[3]) || !PyType_IsSubtype(kind.type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "a frame has to be a kind of tuple");
        return NULL;
    }
    kind.make = (allocfunc)PyType_GetSlot(kind.type, Py_tp_alloc);
    const uint8_t *data = (const uint8_t *)PyBytes_AsString(args[0]);
    Py_ssize_t size = PyBytes_Size(args[0]);
    Py_ssize_t limit = PyLong_AsSsize_t(args[1]);
    if (limit == -1 && PyErr_Occurred())
        return NULL;
    Py_ssize_t header_limit = PyLong_AsSsize_t(args[2]);
    if (header_limit == -1 && PyErr_Occurred())
        return NULL;
    PyObject *frames = PyList_New(0);
    if (frames == NULL)
        return NULL;
    Py_ssize_t at = 0, needed = 8;
    while (size - at >= 8) {
        Py_ssize_t length = read_u32(data + at);
        uint32_t word = read_u32(data + at + 4);
        Py_ssize_t header = word & 0xFFFFFF;
        if (length < 4 + header || length > limit || header > header_limit) {
            needed = -1;
            break;
        }
        Py_ssize_t end = at + 4 + length;
        if (end > size) {
            needed = 4 + length;
            break;
        }
        const char *start = (const char *)data + at + 8;
        PyObject *frame =
            make_frame(kind, word >> 24, start, header, length - 4 - header);
        if (frame == NULL || PyList_Append(frames, frame) < 0) {
            Py_XDECREF(frame);
            Py_DECREF(frames);
            return NULL;
        }
        Py_DECREF(frame);
        at = end;
    }
    return Py_BuildValue("Nnn", frames, at, needed);
}

/* -- gateway.wire.send_codec.record_of ---------------------------------------------- */

/* What the messages of one request have in common. */
struct common {
    uint32_t magic, queue_id, sys_flag, reconsume_times;
    uint64_t born_ms, store_ms;
    struct text topic, born_host, store_host, suffix, mark;
    int only_plain;
};

enum {
    MAGIC, TOPIC, QUEUE_ID, SYS_FLAG, BORN_MS, BORN_HOST, STORE_MS, STORE_HOST,
    RECONSUME_TIMES, SUFFIX, COMMON
};

/* The first arguments, which both functions have. */
static int read_common(PyObject *const *args, struct common *common)
{
    static const int places[] = {
        MAGIC, QUEUE_ID, SYS_FLAG, BORN_MS, STORE_MS, RECONSUME_TIMES,
    };
    long long numbers[COMMON];
    Py_ssize_t size;
    if (!is_bytes(args[TOPIC], "topic") || !is_bytes(args[BORN_HOST], "born_host")
        || !is_bytes(args[STORE_HOST], "store_host")
        || !READ_NUMBERS(args, places, numbers))
        return 0;
    const char *suffix = PyUnicode_AsUTF8AndSize(args[SUFFIX], &size);
    if (suffix == NULL)
        return 0;
    *common = (struct common){
        .magic = (uint32_t)numbers[MAGIC],
        .queue_id = (uint32_t)numbers[QUEUE_ID],
        .sys_flag = (uint32_t)numbers[SYS_FLAG] & ~(uint32_t)(BORN_HOST_V6 | STORE_HOST_V6),
        .reconsume_times = (uint32_t)numbers[RECONSUME_TIMES],
        .born_ms = (uint64_t)numbers[BORN_MS],
        .store_ms = (uint64_t)numbers[STORE_MS],
        .topic = text_of(args[TOPIC]),
        .born_host = text_of(args[BORN_HOST]),
        .store_host = text_of(args[STORE_HOST]),
        .suffix = {suffix, (size_t)size},
        .mark = {"", 0},
        .only_plain = 1,
    };
    if (common->born_host.size > V4_HOST_BYTES)
        common->sys_flag |= BORN_HOST_V6;
    if (common->store_host.size > V4_HOST_BYTES)
        common->sys_flag |= STORE_HOST_V6;
    return 1;
}

/* A record as a new reference; None where the message is not plain. */
static PyObject *make_record(const struct common *common, uint64_t queue_offset,
                             uint64_t message_id, uint32_t flag, struct text body,
                             struct text text)
{
    int unended = text.size > 0 && text.at[text.size - 1] != VALUE_END;
    size_t properties =
        text.size + (size_t)unended + common->suffix.size + common->mark.size;
    struct known known = look_at(text.at, text.size);
    if (properties > MAX_PROPERTIES_BYTES
        || (common->only_plain && (known.has_rare || known.unique.size == 0)))
        Py_RETURN_NONE;
    size_t size = 5 * 4 + 2 * 8 + 4 + 8 + common->born_host.size + 8
                + common->store_host.size + 4 + 8 + 4 + body.size + common->topic.size
                + 2 + properties;
    if (size > INT32_MAX)
        Py_RETURN_NONE;
    int32_t tag_hash = 0;
    if (!hash_tag(known.tag, &tag_hash))
        return NULL;
    PyObject *record = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (record == NULL)
        return NULL;
    char *at = PyBytes_AsString(record);
    at = put_u32(at, (uint32_t)size);
    at = put_u32(at, common->magic);
    at = put_u32(at, crc32_of(body.at, body.size, 0) & CRC_MASK);
    at = put_u32(at, common->queue_id);
    at = put_u32(at, flag);
    at = put_u64(at, queue_offset);
    at = put_u64(at, message_id);
    at = put_u32(at, common->sys_flag);
    at = put_u64(at, common->born_ms);
    at = put(at, common->born_host.at, common->born_host.size);
    at = put_u64(at, common->store_ms);
    at = put(at, common->store_host.at, common->store_host.size);
    at = put_u32(at, common->reconsume_times);
    at = put_u64(at, 0);
    at = put_u32(at, (uint32_t)body.size);
    at = put(at, body.at, body.size);
    at = put(at, common->topic.at, common->topic.size);
    at = put_u16(at, (uint16_t)properties);
    at = put(at, text.at, text.size);
    if (unended)
        *at++ = VALUE_END;
    at = put(at, common->suffix.at, common->suffix.size);
    put(at, common->mark.at, common->mark.size);
    PyObject *words = key_words(&known);
    if (words == NULL) {
        Py_DECREF(record);
        return NULL;
    }
    PyObject *hash = PyLong_FromLong(tag_hash), *made = PyTuple_New(3);
    if (hash == NULL || made == NULL) {
        Py_DECREF(record);
        Py_DECREF(words);
        Py_XDECREF(hash);
        Py_XDECREF(made);
        return NULL;
    }
    PyTuple_SetItem(made, 0, record);
    PyTuple_SetItem(made, 1, hash);
    PyTuple_SetItem(made, 2, words);
    return made;
}

static PyObject *record_of(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    enum { QUEUE_OFFSET = COMMON, MESSAGE_ID, FLAG, BODY, TEXT, ONLY_PLAIN, COUNT };
    static const int places[] = {QUEUE_OFFSET, MESSAGE_ID, FLAG};
    long long numbers[COUNT];
    struct common common;
    if (!has_arguments(given, COUNT, "record_of") || !read_common(args, &common)
        || !is_bytes(args[BODY], "body") || !READ_NUMBERS(args, places, numbers))
        return NULL;
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(args[TEXT], &size);
    if (text == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
            return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    if ((common.only_plain = PyObject_IsTrue(args[ONLY_PLAIN])) < 0)
        return NULL;
    return make_record(&common, (uint64_t)numbers[QUEUE_OFFSET],
                       (uint64_t)numbers[MESSAGE_ID], (uint32_t)numbers[FLAG],
                       text_of(args[BODY]), (struct text){text, (size_t)size});
}

/* -- gateway.wire.send_codec.plain_batch ----------------------------------------------- */

#define ENTRY_BYTES 22

/* Cuts an entry off; 0 where it is not whole, or says that it is not. */
static int cut_entry(struct text *rest, uint32_t *flag, struct text *body,
                     struct text *properties)
{
    const uint8_t *at = (const uint8_t *)rest->at;
    if (rest->size < ENTRY_BYTES)
        return 0;
    size_t size = read_u32(at), body_size = read_u32(at + 16);
    if (size < ENTRY_BYTES || size > rest->size || body_size > size - ENTRY_BYTES)
        return 0;
    size_t length = (size_t)at[20 + body_size] << 8 | at[21 + body_size];
    if (ENTRY_BYTES + body_size + length != size || length > INT16_MAX)
        return 0;
    *flag = read_u32(at + 12);
    *body = (struct text){rest->at + 20, body_size};
    *properties = (struct text){rest->at + ENTRY_BYTES + body_size, length};
    rest->at += size;
    rest->size -= size;
    return 1;
}

static int is_utf8(struct text text)
{
    for (size_t index = 0; index < text.size; index++)
        if (text.at[index] & 0x80) {
            PyObject *decoded =
                PyUnicode_DecodeUTF8(text.at, (Py_ssize_t)text.size, NULL);
            if (decoded == NULL)
                PyErr_Clear();
            Py_XDECREF(decoded);
            return decoded != NULL;
        }
    return 1;
}

static char *put_number(char *at, long long value)
{
    char digits[20];
    int count = 0;
    unsigned long long rest = value < 0 ? 0ULL - (unsigned long long)value
                                        : (unsigned long long)value;
    if (value < 0)
        *at++ = '-';
    do
        digits[count++] = (char)('0' + rest % 10);
    while (rest /= 10);
    while (count)
        *at++ = digits[--count];
    return at;
}

static PyObject *plain_batch(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    enum { QUEUE_OFFSET = COMMON, ID_BASE, MARK, DATA, COUNT };
    static const int places[] = {QUEUE_OFFSET, ID_BASE, MARK};
    long long numbers[COUNT];
    struct common common;
    if (!has_arguments(given, COUNT, "plain_batch") || !read_common(args, &common)
        || !is_bytes(args[DATA], "data") || !READ_NUMBERS(args, places, numbers))
        return NULL;
    PyObject *records = PyList_New(0);
    if (records == NULL)
        return NULL;
    uint64_t offset = (uint64_t)numbers[QUEUE_OFFSET];
    struct text rest = text_of(args[DATA]);
    while (rest.size > 0) {
        uint32_t flag;
        struct text body, text;
        char mark[24];
        if (numbers[MARK] >= 0) {
            char *end = put_number(mark, numbers[MARK]++);
            *end++ = VALUE_END;
            common.mark = (struct text){mark, (size_t)(end - mark)};
        }
        PyObject *record = Py_None;
        if (cut_entry(&rest, &flag, &body, &text) && is_utf8(text))
            record = make_record(&common, offset, (uint64_t)numbers[ID_BASE] | offset,
                                 flag, body, text);
        else
            Py_INCREF(record);
        offset++;
        if (record == NULL || record == Py_None || PyList_Append(records, record) < 0) {
            Py_DECREF(records);
            if (record == Py_None)
                return record;
            Py_XDECREF(record);
            return NULL;
        }
        Py_DECREF(record);
    }
    return records;
}

/* -- gateway.wire.send_codec.sent_frame ------------------------------------------------ */

static char *put_hex(char *at, uint64_t value)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = "0123456789ABCDEF"[value >> shift & 15];
    return at;
}

/* Text as it stands in JSON. */
static char *put_escaped(char *at, const char *text, size_t size)
{
    static const char names[] = "btn?fr";
    for (const char *end = text + size; text < end; text++) {
        uint8_t byte = (uint8_t)*text;
        if (byte >= ' ' && byte != '"' && byte != '\\') {
            *at++ = *text;
            continue;
        }
        *at++ = '\\';
        if (byte >= ' ')
            *at++ = *text;
        else if (byte >= '\b' && byte <= '\r' && byte != '\v')
            *at++ = names[byte - '\b'];
        else {
            at = put(at, "u00", 3);
            *at++ = "0123456789abcdef"[byte >> 4];
            *at++ = "0123456789abcdef"[byte & 15];
        }
    }
    return at;
}

#define PUT(at, literal) put(at, literal, sizeof literal - 1)
#define NUMBERS_BYTES 160
#define LITERALS_BYTES 270
#define ID_BYTES 17
#define ESCAPE_BYTES 6

static PyObject *sent_frame(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    enum {
        QUEUE_ID, UNIQUE, ID_PREFIX, FIRST_ID, IDS, REGION, OFFSET, OPAQUE, VERSION,
        HANDLE, COUNT
    };
    if (!has_arguments(given, COUNT, "sent_frame")
        || !is_bytes(args[ID_PREFIX], "id_prefix") || !is_bytes(args[REGION], "region")
        || !is_bytes(args[HANDLE], "recall_handle"))
        return NULL;
    static const int places[] = {QUEUE_ID, FIRST_ID, IDS, OFFSET, OPAQUE, VERSION};
    long long numbers[COUNT];
    if (!READ_NUMBERS(args, places, numbers))
        return NULL;
    Py_ssize_t unique;
    const char *key = PyUnicode_AsUTF8AndSize(args[UNIQUE], &unique);
    if (key == NULL)
        return NULL;
    size_t prefix = (size_t)PyBytes_Size(args[ID_PREFIX]);
    size_t region = (size_t)PyBytes_Size(args[REGION]);
    struct text handle = text_of(args[HANDLE]);
    size_t ids = numbers[IDS] > 0 ? (size_t)numbers[IDS] : 0;
    size_t most = LITERALS_BYTES + NUMBERS_BYTES + ESCAPE_BYTES * (size_t)unique
                + ids * (prefix + ID_BYTES) + region + handle.size;
    char small[1024];
    char *buffer = most <= sizeof small ? small : PyMem_Malloc(most);
    if (buffer == NULL)
        return PyErr_NoMemory();
    char *at = buffer + 8;
    at = PUT(at, "{\"code\":0,\"extFields\":{");
    if (handle.size) {
        at = PUT(at, "\"recallHandle\":\"");
        at = put(at, handle.at, handle.size);
        at = PUT(at, "\",");
    }
    at = PUT(at, "\"queueId\":\"");
    at = put_number(at, numbers[QUEUE_ID]);
    at = PUT(at, "\",\"transactionId\":\"");
    at = put_escaped(at, key, (size_t)unique);
    at = PUT(at, "\",\"msgId\":\"");
    for (size_t index = 0; index < ids; index++) {
        if (index > 0)
            *at++ = ',';
        at = put(at, PyBytes_AsString(args[ID_PREFIX]), prefix);
        at = put_hex(at, (uint64_t)numbers[FIRST_ID] + index);
    }
    at = PUT(at, "\",\"TRACE_ON\":\"true\",\"MSG_REGION\":");
    at = put(at, PyBytes_AsString(args[REGION]), region);
    at = PUT(at, ",\"queueOffset\":\"");
    at = put_number(at, numbers[OFFSET]);
    at = PUT(at, "\"},\"flag\":1,\"language\":\"JAVA\",\"opaque\":");
    at = put_number(at, numbers[OPAQUE]);
    at = PUT(at, ",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
    at = put_number(at, numbers[VERSION]);
    at = PUT(at, "}");
    size_t header = (size_t)(at - buffer) - 8;
    put_u32(put_u32(buffer, (uint32_t)(header + 4)), (uint32_t)header);
    PyObject *frame = PyBytes_FromStringAndSize(buffer, (Py_ssize_t)(header + 8));
    if (buffer != small)
        PyMem_Free(buffer);
    return frame;
}

/* -- gateway.wire.properties.parse ------------------------------------------------- */

/* Puts a pair into the dictionary, if it has a name and a value. */
static int put_pair(PyObject *pairs, PyObject *text, Py_ssize_t at, Py_ssize_t end)
{
    Py_ssize_t middle = PyUnicode_FindChar(text, NAME_END, at, end, 1);
    if (middle < -1)
        return 0;
    if (middle <= at || middle + 1 >= end)
        return 1;
    PyObject *name = PyUnicode_Substring(text, at, middle);
    PyObject *value = PyUnicode_Substring(text, middle + 1, end);
    int is_put =
        name != NULL && value != NULL && PyDict_SetItem(pairs, name, value) == 0;
    Py_XDECREF(name);
    Py_XDECREF(value);
    return is_put;
}

static PyObject *parse(PyObject *module, PyObject *text)
{
    (void)module;
    if (!PyUnicode_Check(text)) {
        is_not(text, "text", "has to be str");
        return NULL;
    }
    PyObject *pairs = PyDict_New();
    Py_ssize_t size = PyUnicode_GetLength(text);
    for (Py_ssize_t at = 0, end; pairs != NULL && at < size; at = end + 1) {
        end = PyUnicode_FindChar(text, VALUE_END, at, size, 1);
        if (end == -1)
            end = size;
        if (end < 0 || !put_pair(pairs, text, at, end))
            Py_CLEAR(pairs);
    }
    return pairs;
}

/* ---------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"committed", (PyCFunction)(void (*)(void))committed, METH_FASTCALL, NULL},
    {"cut", (PyCFunction)(void (*)(void))cut, METH_FASTCALL, NULL},
    {"describe", describe, METH_O, NULL},
    {"moved_all", (PyCFunction)(void (*)(void))moved_all, METH_FASTCALL, NULL},
    {"plain_batch", (PyCFunction)(void (*)(void))plain_batch, METH_FASTCALL, NULL},
    {"parse", parse, METH_O, NULL},
    {"read_send", (PyCFunction)(void (*)(void))read_send, METH_FASTCALL, NULL},
    {"record_of", (PyCFunction)(void (*)(void))record_of, METH_FASTCALL, NULL},
    {"records_in", records_in, METH_O, NULL},
    {"sent_frame", (PyCFunction)(void (*)(void))sent_frame, METH_FASTCALL, NULL},
    {"waiting_in", waiting_in, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", NULL, -1, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    crc32_prepare();
    PyObject *module = PyModule_Create(&definition);
    PyObject *rare = PyFrozenSet_New(NULL);
    if (module == NULL || rare == NULL)
        goto failed;
    for (size_t index = 0; index < RARE_COUNT; index++) {
        PyObject *name = PyUnicode_FromString(RARE[index]);
        if (name == NULL || PySet_Add(rare, name) < 0) {
            Py_XDECREF(name);
            goto failed;
        }
        Py_DECREF(name);
    }
    if (PyModule_AddObjectRef(module, "RARE", rare) < 0)
        goto failed;
    Py_DECREF(rare);
    return module;
failed:
    Py_XDECREF(rare);
    Py_XDECREF(module);
    return NULL;
}
