/* The compiled form of gateway.wire.send_codec.read_send: headers as clients make them.

   It knows JSON without spaces, of ASCII, whose numbers are short and whose fields are
   those of a send and of a signature, once each. Anything else is None, and left to
   `decode_envelope`. */

#include "limited.h"
#include <string.h>

#include "bytes.h"
#include "send.h"

#define RESPONSE 1
#define ONE_WAY 2
#define SEND_MESSAGE_V2 310
#define MOST_DIGITS 18
#define MOST_TEXT 8192

struct reader {
    const char *at, *end;
};

struct word {
    const char *at;
    size_t size;
    int is_escaped;
};

static int skip(struct reader *from, char wanted)
{
    if (from->at == from->end || *from->at != wanted)
        return 0;
    from->at++;
    return 1;
}

static int read_word(struct reader *from, struct word *word)
{
    if (!skip(from, '"'))
        return 0;
    const char *at = from->at, *end = from->end;
    word->at = at;
    word->is_escaped = 0;
    for (; at < end; at++) {
        char byte = *at;
        if (byte == '"') {
            word->size = (size_t)(at - word->at);
            from->at = at + 1;
            return 1;
        }
        if (byte == '\\') {
            word->is_escaped = 1;
            if (++at == end)
                return 0;
        } else if (byte < ' ' || byte & 0x80)
            return 0;
    }
    return 0;
}

static int read_number(struct reader *from, long long *number)
{
    int is_negative = skip(from, '-');
    const char *first = from->at;
    long long value = 0;
    while (from->at < from->end && *from->at >= '0' && *from->at <= '9') {
        if (from->at - first == MOST_DIGITS)
            return 0;
        value = value * 10 + (*from->at++ - '0');
    }
    if (from->at == first || (*first == '0' && (is_negative || from->at - first > 1)))
        return 0;
    *number = is_negative ? -value : value;
    return 1;
}

static int is_i32(long long number)
{
    return number >= INT32_MIN && number <= INT32_MAX;
}

static int is_word(const struct word *word, const char *wanted, size_t size)
{
    return word->size == size && memcmp(word->at, wanted, size) == 0;
}
#define IS(word, wanted) is_word(word, wanted, sizeof wanted - 1)

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* What an escape stands for, or -1. It has the bytes up to the end of the text, which
   is not before `from->at`. */
static int unescape(struct reader *from)
{
    static const char *const names = "\"\\/bfnrt", *const values = "\"\\/\b\f\n\r\t";
    char kind = *from->at++;
    const char *found = kind ? strchr(names, kind) : NULL;
    if (found != NULL)
        return values[found - names];
    if (kind != 'u' || from->end - from->at < 4)
        return -1;
    int value = 0;
    for (int index = 0; index < 4; index++) {
        int digit = hex_digit(*from->at++);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value < 0x80 ? value : -1;
}

static PyObject *ascii(const char *text, size_t size)
{
    return PyUnicode_DecodeASCII(text, (Py_ssize_t)size, NULL);
}

/* A tuple that takes its items' references; NULL where one of them could not be made. */
static PyObject *tuple_of(PyObject **items, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t index = 0; index < count; index++) {
        if (items[index] == NULL)
            Py_CLEAR(tuple);
        if (tuple != NULL)
            PyTuple_SetItem(tuple, index, items[index]);
        else
            Py_XDECREF(items[index]);
    }
    return tuple;
}

/* A word without its escapes; NULL without an error where it is not of ASCII. */
static PyObject *unescaped(const struct word *word)
{
    if (!word->is_escaped)
        return ascii(word->at, word->size);
    char text[MOST_TEXT], *to = text;
    if (word->size > sizeof text)
        return NULL;
    struct reader from = {word->at, word->at + word->size};
    while (from.at < from.end) {
        char byte = *from.at++;
        if (byte == '\\') {
            int value = unescape(&from);
            if (value < 0)
                return NULL;
            byte = (char)value;
        }
        *to++ = byte;
    }
    return ascii(text, (size_t)(to - text));
}

/* Fields in the order of their names, in which their values are signed: those of a send
   by their letters, and those that clients add who say who they are. */
enum {
    ACCESS_KEY, ONS_CHANNEL, SECURITY_TOKEN, SIGNATURE, SIGNATURE_METHOD, LETTERS,
    LAST_LETTER = 'n',
    NS = LETTERS + LAST_LETTER - 'a' + 1,
    NSD,
    FIELDS
};
#define FIELD(letter) fields[LETTERS + letter - 'a']

/* Which field has a name; -1 where it is none of them. */
static int field_of(const struct word *name)
{
    if (name->size == 1)
        return *name->at < 'a' || *name->at > LAST_LETTER ? -1 : LETTERS + *name->at - 'a';
    return IS(name, "AccessKey")       ? ACCESS_KEY
         : IS(name, "Signature")       ? SIGNATURE
         : IS(name, "SignatureMethod") ? SIGNATURE_METHOD
         : IS(name, "SecurityToken")   ? SECURITY_TOKEN
         : IS(name, "OnsChannel")      ? ONS_CHANNEL
         : IS(name, "ns")              ? NS
         : IS(name, "nsd")             ? NSD
                                       : -1;
}

static int read_fields(struct reader *from, struct word *fields)
{
    if (!skip(from, '{'))
        return 0;
    do {
        struct word name;
        if (!read_word(from, &name) || !skip(from, ':'))
            return 0;
        int which = field_of(&name);
        if (which < 0)
            return 0;
        struct word *field = &fields[which];
        if (field->at != NULL || !read_word(from, field)
            || (field->is_escaped && field != &FIELD('i')))
            return 0;
    } while (skip(from, ','));
    return skip(from, '}');
}

/* A field's number; `otherwise` where the field may be absent. */
static int number_of(const struct word *field, const long long *otherwise,
                     long long *number)
{
    if (field->at == NULL) {
        if (otherwise != NULL)
            *number = *otherwise;
        return otherwise != NULL;
    }
    struct reader from = {field->at, field->at + field->size};
    return read_number(&from, number) && from.at == from.end;
}

struct envelope {
    long long code, opaque, flag, version;
    struct word fields[FIELDS];
};

static int read_envelope(struct reader *from, struct envelope *envelope)
{
    enum { CODE = 1, FIELDS_SEEN = 2, OPAQUE = 4, FLAG = 8, VERSION = 16, LANGUAGE = 32 };
    int seen = 0;
    if (!skip(from, '{'))
        return 0;
    do {
        struct word name, ignored;
        long long *number = NULL;
        int one = 0;
        if (!read_word(from, &name) || name.is_escaped || !skip(from, ':'))
            return 0;
        if (IS(&name, "code"))
            one = CODE, number = &envelope->code;
        else if (IS(&name, "opaque"))
            one = OPAQUE, number = &envelope->opaque;
        else if (IS(&name, "flag"))
            one = FLAG, number = &envelope->flag;
        else if (IS(&name, "version"))
            one = VERSION, number = &envelope->version;
        else if (IS(&name, "extFields"))
            one = FIELDS_SEEN;
        else if (IS(&name, "language"))
            one = LANGUAGE;
        else if (!IS(&name, "serializeTypeCurrentRPC"))
            return 0;
        if (seen & one)
            return 0;
        seen |= one;
        if (number != NULL) {
            if (!read_number(from, number) || !is_i32(*number))
                return 0;
        } else if (one == FIELDS_SEEN) {
            if (!read_fields(from, envelope->fields))
                return 0;
        } else if (!read_word(from, &ignored) || ignored.is_escaped)
            return 0;
    } while (skip(from, ','));
    return skip(from, '}') && from->at == from->end && seen & CODE;
}

static int is_flag(const struct word *field)
{
    return field->at == NULL || IS(field, "false") || IS(field, "true");
}

/* The values that are signed, in their order, with the properties as `text` has them. */
static PyObject *signed_values(const struct word *fields, PyObject *text)
{
    Py_ssize_t length;
    const char *properties = PyUnicode_AsUTF8AndSize(text, &length);
    if (properties == NULL)
        return NULL;
    size_t size = (size_t)length;
    for (int index = 0; index < FIELDS; index++)
        if (index != SIGNATURE && &fields[index] != &FIELD('i'))
            size += fields[index].size;
    PyObject *values = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (values == NULL)
        return NULL;
    char *at = PyBytes_AsString(values);
    for (int index = 0; index < FIELDS; index++) {
        const struct word *field = &fields[index];
        if (field == &FIELD('i'))
            at = put(at, properties, (size_t)length);
        else if (index != SIGNATURE && field->size > 0)
            at = put(at, field->at, field->size);
    }
    return values;
}

/* Who the client says it is; None where it says nothing. */
static PyObject *claims_in(const struct word *fields, PyObject *text)
{
    static const int names[] = {
        ACCESS_KEY, SIGNATURE, SECURITY_TOKEN, SIGNATURE_METHOD, NS,
    };
    enum { NAMES = sizeof names / sizeof *names };
    if (fields[ACCESS_KEY].at == NULL && fields[SIGNATURE].at == NULL
        && fields[SECURITY_TOKEN].at == NULL)
        Py_RETURN_NONE;
    PyObject *made[NAMES + 1];
    for (int index = 0; index < NAMES; index++)
        made[index] = ascii(fields[names[index]].at, fields[names[index]].size);
    made[NAMES] = signed_values(fields, text);
    return tuple_of(made, NAMES + 1);
}

/* A field's text; something else where it is absent. */
static PyObject *text_or(const struct word *field, PyObject *otherwise)
{
    if (field->at != NULL)
        return ascii(field->at, field->size);
    Py_INCREF(otherwise);
    return otherwise;
}

/* A field's number; None where it is absent. */
static PyObject *number_or_none(const struct word *field, long long number)
{
    if (field->at == NULL)
        Py_RETURN_NONE;
    return PyLong_FromLongLong(number);
}

/* The header's struct, of its fields in their order; takes the references. */
static PyObject *struct_of(PyObject *kind, PyObject **items, Py_ssize_t count)
{
    PyObject *fields = tuple_of(items, count);
    PyObject *made = fields == NULL ? NULL : PyObject_Call(kind, fields, NULL);
    Py_XDECREF(fields);
    return made;
}

PyObject *read_send(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (!has_arguments(given, 2, "read_send") || !is_bytes(args[0], "header"))
        return NULL;
    if (!PyType_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "a header has to be of a type");
        return NULL;
    }
    const char *start = PyBytes_AsString(args[0]);
    struct reader from = {start, start + PyBytes_Size(args[0])};
    struct envelope envelope = {.opaque = 0};
    const struct word *fields = envelope.fields;
    static const long long none = 0;
    long long queues, queue_id, sys_flag, born_ms, flag, reconsume_times, most;
    if (strncmp(start, PLAIN_SEND_START, sizeof PLAIN_SEND_START - 1) != 0
        || !read_envelope(&from, &envelope) || envelope.code != SEND_MESSAGE_V2
        || envelope.flag & RESPONSE || FIELD('a').at == NULL || FIELD('b').at == NULL
        || FIELD('c').at == NULL || !number_of(&FIELD('d'), NULL, &queues)
        || !number_of(&FIELD('e'), NULL, &queue_id)
        || !number_of(&FIELD('f'), NULL, &sys_flag)
        || !number_of(&FIELD('g'), NULL, &born_ms)
        || !number_of(&FIELD('h'), NULL, &flag)
        || !number_of(&FIELD('j'), &none, &reconsume_times)
        || !number_of(&FIELD('l'), &none, &most) || !is_i32(queues) || !is_i32(queue_id)
        || !is_i32(sys_flag) || !is_i32(flag) || !is_i32(reconsume_times)
        || !is_i32(most) || !is_flag(&FIELD('k'))
        || (FIELD('m').at != NULL && !IS(&FIELD('m'), "false")))
        Py_RETURN_NONE;
    PyObject *text = FIELD('i').at ? unescaped(&FIELD('i')) : ascii("", 0);
    if (text == NULL) {
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NONE;
    }
    PyObject *claims = claims_in(fields, text);
    PyObject *items[] = {
        ascii(FIELD('a').at, FIELD('a').size),
        ascii(FIELD('b').at, FIELD('b').size),
        ascii(FIELD('c').at, FIELD('c').size),
        PyLong_FromLongLong(queues),
        PyLong_FromLongLong(queue_id),
        PyLong_FromLongLong(sys_flag),
        PyLong_FromLongLong(born_ms),
        PyLong_FromLongLong(flag),
        text,
        number_or_none(&FIELD('j'), reconsume_times),
        PyBool_FromLong(FIELD('k').at != NULL && IS(&FIELD('k'), "true")),
        Py_NewRef(Py_False),
        number_or_none(&FIELD('l'), most),
        text_or(&FIELD('n'), Py_None),
    };
    PyObject *made[] = {
        PyLong_FromLongLong(envelope.opaque),
        PyBool_FromLong(envelope.flag & ONE_WAY),
        struct_of(args[1], items, sizeof items / sizeof *items),
        claims,
    };
    return tuple_of(made, sizeof made / sizeof *made);
}
