/* Two short lists, searched from the front: the one that is asked and taken from, and the one that
 * is being made. The second takes the place of the first at once, so that a worker that was just
 * asked is not refused. */
#include "storage/scrub/chunk_wants.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "chunker/chunk_hash.h"

struct want_row {
	struct chunk_want want;
	uint64_t step;
	char *bucket;
	char *run;
	uint8_t *bytes; /* that were taken; NULL: none */
	bool was_used;  /* bytes were taken and copied */
};
struct want_list {
	struct want_row *rows;
	size_t count;
};

struct chunk_wants {
	_Atomic size_t count; /* of the present list; changed under the lock */
	struct lock lock;
	struct want_list present; /* guarded by lock */
	struct want_list made;    /* only its maker's */
};

static void list_free(struct want_list *list);
static char *copy_span(struct span text);
static void keep_bytes(struct want_list *from, struct want_list *to);
static struct want_row *find(
	struct chunk_wants *wants, const struct want_place *place, const struct chunk_id *id);
static bool is_of_run(const struct want_row *row, const struct want_place *place);
static struct want_row *find_taken(struct chunk_wants *wants, const struct chunk_id *id);

struct chunk_wants *chunk_wants_new(void)
{
	struct chunk_wants *const wants = memory_new(sizeof(*wants));
	lock_init(&wants->lock, LOCK_CHUNK_WANTS);
	return wants;
}

void chunk_wants_free(struct chunk_wants *wants)
{
	list_free(&wants->present);
	list_free(&wants->made);
	lock_release(&wants->lock);
	free(wants);
}

void chunk_wants_begin(struct chunk_wants *wants)
{
	ASSERT(wants->made.rows == NULL);
	wants->made.rows = memory_new_array(CHUNK_WANTS_MAX, sizeof(*wants->made.rows));
}

void chunk_wants_add(
	struct chunk_wants *wants, const struct want_place *place, const struct chunk_want *want)
{
	ASSERT(wants->made.rows != NULL && want->length <= CHUNK_MAX_BYTES);
	if (wants->made.count == CHUNK_WANTS_MAX)
		return;
	wants->made.rows[wants->made.count++] = (struct want_row){.want = *want,
		.step = place->step,
		.bucket = copy_span(place->bucket),
		.run = copy_span(place->run)};
}

void chunk_wants_end(struct chunk_wants *wants)
{
	lock_enter(&wants->lock);
	struct want_list old = wants->present;
	keep_bytes(&old, &wants->made);
	wants->present = wants->made;
	atomic_store(&wants->count, wants->present.count);
	lock_leave(&wants->lock);
	wants->made = (struct want_list){.rows = NULL};
	list_free(&old);
}

size_t chunk_wants_ask(struct chunk_wants *wants, const struct want_place *place,
	struct chunk_want *out, size_t capacity)
{
	size_t count = 0;
	if (atomic_load(&wants->count) == 0)
		return 0;
	lock_enter(&wants->lock);
	for (size_t i = 0; i < wants->present.count && count < capacity; i++) {
		const struct want_row *const row = &wants->present.rows[i];
		if (row->step == place->step && row->bytes == NULL && !row->was_used &&
			is_of_run(row, place))
			out[count++] = row->want;
	}
	lock_leave(&wants->lock);
	return count;
}

int chunk_wants_take(struct chunk_wants *wants, const struct want_place *place,
	const struct chunk_id *id, struct span bytes, struct error *err)
{
	const struct chunk_id found = chunk_hash(bytes);
	int result = 0;
	lock_enter(&wants->lock);
	struct want_row *const row = find(wants, place, id);
	if (row == NULL)
		result = error_set(err, ERROR_NOT_FOUND, "The server did not ask for this chunk.");
	else if (bytes.len != row->want.length || !chunk_id_equal(&found, id))
		result = error_set(err, ERROR_DIGEST_MISMATCH,
			"The bytes are not those of the chunk that the server asked for.");
	else if (row->bytes == NULL)
		row->bytes = memory_copy(bytes.data, bytes.len);
	lock_leave(&wants->lock);
	return result;
}

bool chunk_wants_copy(
	struct chunk_wants *wants, const struct chunk_id *id, uint8_t *into, size_t *out_len)
{
	if (atomic_load(&wants->count) == 0)
		return false;
	lock_enter(&wants->lock);
	struct want_row *const row = find_taken(wants, id);
	if (row != NULL) {
		row->was_used = true;
		memcpy(into, row->bytes, row->want.length);
		*out_len = row->want.length;
	}
	lock_leave(&wants->lock);
	return row != NULL;
}

bool chunk_wants_has_bytes(struct chunk_wants *wants)
{
	if (atomic_load(&wants->count) == 0)
		return false;
	lock_enter(&wants->lock);
	const bool has = find_taken(wants, NULL) != NULL;
	lock_leave(&wants->lock);
	return has;
}

void chunk_wants_drop_bytes(struct chunk_wants *wants)
{
	lock_enter(&wants->lock);
	for (size_t i = 0; i < wants->present.count; i++) {
		struct want_row *const row = &wants->present.rows[i];
		if (!row->was_used)
			continue;
		free(row->bytes);
		row->bytes = NULL;
	}
	lock_leave(&wants->lock);
}

static void list_free(struct want_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->rows[i].bucket);
		free(list->rows[i].run);
		free(list->rows[i].bytes);
	}
	free(list->rows);
	*list = (struct want_list){.rows = NULL};
}

static char *copy_span(struct span text)
{
	char *const copy = memory_new(text.len + 1);
	if (text.len > 0)
		memcpy(copy, text.data, text.len);
	return copy;
}

static void keep_bytes(struct want_list *from, struct want_list *to)
{
	for (size_t i = 0; i < from->count; i++)
		for (size_t j = 0; from->rows[i].bytes != NULL && j < to->count; j++) {
			struct want_row *const row = &to->rows[j];
			if (row->bytes != NULL ||
				!chunk_id_equal(&row->want.id, &from->rows[i].want.id))
				continue;
			row->bytes = from->rows[i].bytes;
			from->rows[i].bytes = NULL;
		}
}

static struct want_row *find(
	struct chunk_wants *wants, const struct want_place *place, const struct chunk_id *id)
{
	lock_assert_held(&wants->lock);
	for (size_t i = 0; i < wants->present.count; i++) {
		struct want_row *const row = &wants->present.rows[i];
		if (chunk_id_equal(&row->want.id, id) && is_of_run(row, place))
			return row;
	}
	return NULL;
}

static bool is_of_run(const struct want_row *row, const struct want_place *place)
{
	return span_equal_text(place->bucket, row->bucket) && span_equal_text(place->run, row->run);
}

/* `id` NULL: any chunk. */
static struct want_row *find_taken(struct chunk_wants *wants, const struct chunk_id *id)
{
	lock_assert_held(&wants->lock);
	for (size_t i = 0; i < wants->present.count; i++) {
		struct want_row *const row = &wants->present.rows[i];
		if (row->bytes != NULL && (id == NULL || chunk_id_equal(&row->want.id, id)))
			return row;
	}
	return NULL;
}
