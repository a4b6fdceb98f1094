/* The compiled form of storage.file.log_scan.gather; tests compare the two. Others run
   while bytes are checked and copied. The layout is that of storage/file/FORMAT.md. */

#include "gathering.h"

#include <string.h>

#include "crc32.h"

#define HEADER_BYTES 64
#define RUN_BYTES 16
#define ENTRY_BYTES 20
#define KEY_BYTES 8
#define CHECKED_FROM 8
#define NONE UINT32_MAX

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16
         | (uint32_t)at[3] << 24;
}

static uint64_t get_u64(const uint8_t *at)
{
    return (uint64_t)get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

/* A run of one block, and which group it belongs to. */
struct piece {
    const uint8_t *data, *entries, *keys;
    size_t data_bytes, count, key_count;
    uint64_t base_offset;
    uint32_t group;
};

/* Records of one partition without a gap in their offsets. */
struct group {
    uint64_t base_offset, end;
    size_t data_bytes, count, key_count;
    uint32_t ordinal;
    uint8_t *data, *entries, *keys;
};

struct gathered {
    struct piece *pieces;
    struct group *groups;
    uint32_t *last_of; /* by ordinal, hashed: its newest group */
    size_t piece_count, group_count, slots;
    size_t taken;
    uint64_t log_id, written_ms;
    int damaged;
};

static size_t block_length(const uint8_t *at, size_t left)
{
    if (left < HEADER_BYTES)
        return 0;
    size_t length = get_u32(at + 12);
    return length <= left ? length : 0;
}

/* No more runs than that are in the stretch, whatever its bytes are. */
static size_t most_runs(const uint8_t *at, size_t left)
{
    size_t most = 0, length;
    while ((length = block_length(at, left)) >= HEADER_BYTES) {
        size_t runs = get_u32(at + 48);
        most += runs < length / RUN_BYTES ? runs : length / RUN_BYTES;
        at += length;
        left -= length;
    }
    return most;
}

static struct group *group_of(struct gathered *all, uint32_t ordinal, uint64_t base)
{
    size_t slot = ordinal * 0x9E3779B1u & (all->slots - 1);
    while (all->last_of[slot] != NONE
           && all->groups[all->last_of[slot]].ordinal != ordinal)
        slot = (slot + 1) & (all->slots - 1);
    if (all->last_of[slot] != NONE && all->groups[all->last_of[slot]].end == base)
        return &all->groups[all->last_of[slot]];
    all->last_of[slot] = (uint32_t)all->group_count;
    struct group *group = &all->groups[all->group_count++];
    *group = (struct group){.base_offset = base, .end = base, .ordinal = ordinal};
    return group;
}

/* The runs of one block; 0 where it is not what was written. */
static int take_block(struct gathered *all, const uint8_t *block, size_t length,
                      size_t most)
{
    if (length < HEADER_BYTES || memcmp(block, "RWYB", 4) != 0
        || crc32_of(block + CHECKED_FROM, length - CHECKED_FROM, 0)
               != get_u32(block + 4))
        return 0;
    size_t runs = get_u32(block + 48), records = get_u32(block + 52);
    size_t keys = get_u32(block + 56), data_bytes = get_u32(block + 60);
    if (HEADER_BYTES + data_bytes + runs * RUN_BYTES + records * ENTRY_BYTES
                + keys * KEY_BYTES != length
        || all->piece_count + runs > most)
        return 0;
    const uint8_t *data = block + HEADER_BYTES, *run = data + data_bytes;
    const uint8_t *entry = run + runs * RUN_BYTES;
    const uint8_t *key = entry + records * ENTRY_BYTES, *end = block + length;
    for (; runs--; run += RUN_BYTES) {
        size_t count = get_u32(run + 4);
        if (count == 0 || count > records)
            return 0;
        const uint8_t *last = entry + (count - 1) * ENTRY_BYTES;
        size_t size = (size_t)get_u32(last) + get_u32(last + 4) - get_u32(entry);
        if (size > data_bytes)
            return 0;
        struct piece piece = {data, entry, key, size, count, 0, get_u64(run + 8), 0};
        while (key < end && get_u32(key) <= get_u32(last)) {
            key += KEY_BYTES;
            piece.key_count++;
        }
        struct group *group = group_of(all, get_u32(run), piece.base_offset);
        group->end += count;
        group->count += count;
        group->data_bytes += size;
        group->key_count += piece.key_count;
        piece.group = (uint32_t)(group - all->groups);
        all->pieces[all->piece_count++] = piece;
        data += size;
        data_bytes -= size;
        entry += count * ENTRY_BYTES;
        records -= count;
    }
    all->log_id = get_u64(block + 24);
    all->written_ms = get_u64(block + 40);
    return 1;
}

static void look_over(struct gathered *all, const uint8_t *at, size_t left, size_t most)
{
    size_t length;
    while (left >= HEADER_BYTES) {
        length = block_length(at, left);
        if (!length && get_u32(at + 12) >= HEADER_BYTES)
            return; /* the rest of it was not read */
        if (!take_block(all, at, length, most)) {
            all->damaged = 1;
            return;
        }
        at += length;
        left -= length;
        all->taken += length;
    }
}

static void copy(struct gathered *all)
{
    for (size_t index = 0; index < all->piece_count; index++) {
        const struct piece *piece = &all->pieces[index];
        struct group *group = &all->groups[piece->group];
        memcpy(group->data, piece->data, piece->data_bytes);
        group->data += piece->data_bytes;
        memcpy(group->entries, piece->entries, piece->count * ENTRY_BYTES);
        group->entries += piece->count * ENTRY_BYTES;
        const uint8_t *entry = piece->entries, *key = piece->keys;
        uint32_t offset = (uint32_t)piece->base_offset;
        for (size_t left = piece->key_count; left--; key += KEY_BYTES) {
            for (; get_u32(entry) < get_u32(key); entry += ENTRY_BYTES)
                offset++;
            for (int byte = 0; byte < 4; byte++)
                group->keys[byte] = (uint8_t)(offset >> 8 * byte);
            memcpy(group->keys + 4, key + 4, 4);
            group->keys += KEY_BYTES;
        }
    }
}

/* Memory for each group's bytes, in Python's objects. */
static PyObject *make_room(struct gathered *all)
{
    PyObject *list = PyList_New((Py_ssize_t)all->group_count);
    for (size_t index = 0; list != NULL && index < all->group_count; index++) {
        struct group *group = &all->groups[index];
        PyObject *item = Py_BuildValue(
            "kKnNNN", (unsigned long)group->ordinal,
            (unsigned long long)group->base_offset, (Py_ssize_t)group->count,
            PyBytes_FromStringAndSize(NULL, (Py_ssize_t)group->data_bytes),
            PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(group->count * ENTRY_BYTES)),
            PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(group->key_count * KEY_BYTES)));
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        group->data = (uint8_t *)PyBytes_AsString(PyTuple_GetItem(item, 3));
        group->entries = (uint8_t *)PyBytes_AsString(PyTuple_GetItem(item, 4));
        group->keys = (uint8_t *)PyBytes_AsString(PyTuple_GetItem(item, 5));
        PyList_SetItem(list, (Py_ssize_t)index, item);
    }
    return list;
}

PyObject *gather(PyObject *module, PyObject *stretch)
{
    (void)module;
    Py_buffer buffer;
    if (PyObject_GetBuffer(stretch, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    struct gathered all = {.slots = 2};
    size_t most = most_runs(buffer.buf, (size_t)buffer.len);
    while (all.slots < 2 * most)
        all.slots *= 2;
    all.pieces = PyMem_Malloc(most * sizeof *all.pieces + 1);
    all.groups = PyMem_Malloc(most * sizeof *all.groups + 1);
    all.last_of = PyMem_Malloc(all.slots * sizeof *all.last_of);
    PyObject *list = NULL, *result = NULL;
    if (all.pieces == NULL || all.groups == NULL || all.last_of == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    memset(all.last_of, 0xFF, all.slots * sizeof *all.last_of);
    look_over(&all, buffer.buf, (size_t)buffer.len, most);
    Py_END_ALLOW_THREADS
    list = make_room(&all);
    if (list == NULL)
        goto done;
    Py_BEGIN_ALLOW_THREADS
    copy(&all);
    Py_END_ALLOW_THREADS
    result = Py_BuildValue("nOKLN", (Py_ssize_t)all.taken,
                           all.damaged ? Py_True : Py_False,
                           (unsigned long long)all.log_id, (long long)all.written_ms,
                           list);
done:
    PyMem_Free(all.pieces);
    PyMem_Free(all.groups);
    PyMem_Free(all.last_of);
    PyBuffer_Release(&buffer);
    return result;
}

void gather_prepare(void)
{
    crc32_prepare();
}
