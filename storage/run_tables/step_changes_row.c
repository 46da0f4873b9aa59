#include "storage/run_tables/step_changes_row.h"

#include "base/buffer.h"

enum { NUMBER_MAX_BYTES = 10, NUMBER_BITS = 7, NUMBER_MORE = 0x80 };

static const char SQL_CHANGES_PUT[] =
	"INSERT INTO step_changes (step, elements, changed, counts) VALUES (?1, ?2, ?3, ?4)"
	" ON CONFLICT (step) DO UPDATE SET elements = excluded.elements, changed = excluded.changed, counts = excluded.counts";
static const char SQL_CHANGES_FIND[] = "SELECT elements, changed FROM step_changes WHERE step = ?1";
static const char SQL_CHANGES_COUNTS[] = "SELECT counts, changed FROM step_changes WHERE step = ?1";
static const char SQL_CHANGES_REMOVE[] = "DELETE FROM step_changes WHERE step = ?1";

static void add_number(struct buffer *out, uint64_t number);
static bool take_number(struct span *rest, uint64_t *out);
static bool read_counts(struct span bytes, uint64_t changed, uint64_t *out, size_t tensors);

int step_changes_row_put(struct db *db, int64_t id, const struct step_changes *changes,
	const uint64_t *counts, size_t tensors, struct error *err)
{
	struct buffer bytes;
	ASSERT(id > 0 && changes->changed <= changes->elements && changes->elements <= INT64_MAX);
	buffer_init(&bytes, (tensors + 1) * NUMBER_MAX_BYTES);
	for (size_t i = 0; i < tensors; i++)
		add_number(&bytes, counts[i]);
	const int result =
		db_run(db, SQL_CHANGES_PUT, err, db_i64(id), db_i64((int64_t)changes->elements),
			db_i64((int64_t)changes->changed), db_blob(buffer_span(&bytes)));
	buffer_release(&bytes);
	return result;
}

int step_changes_row_find(struct db *db, int64_t id, struct step_changes *out, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_CHANGES_FIND, err, db_i64(id));
	const int got = db_step(row, err);
	if (got == 1)
		*out = (struct step_changes){.elements = (uint64_t)db_column_i64(row, 0),
			.changed = (uint64_t)db_column_i64(row, 1)};
	db_reset(row);
	return got;
}

int step_changes_row_counts(struct db *db, int64_t id, size_t tensors, struct arena *arena,
	uint64_t **out, struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_CHANGES_COUNTS, err, db_i64(id));
	int got = db_step(row, err);
	*out = NULL;
	if (got == 1) {
		*out = arena_take_array(arena, tensors + 1, sizeof(**out));
		if (*out == NULL)
			got = error_set(err, ERROR_NO_MEMORY,
				"The request's memory ran out while reading a step.");
		else if (!read_counts(db_column_blob(row, 0), (uint64_t)db_column_i64(row, 1), *out,
				 tensors))
			got = error_set(err, ERROR_CORRUPT,
				"%s: the counts of a step's changes are damaged.", db_path(db));
	}
	db_reset(row);
	return got;
}

int step_changes_row_remove(struct db *db, int64_t id, struct error *err)
{
	return db_run(db, SQL_CHANGES_REMOVE, err, db_i64(id));
}

static void add_number(struct buffer *out, uint64_t number)
{
	uint64_t rest = number;
	for (; rest >= NUMBER_MORE; rest >>= NUMBER_BITS)
		buffer_add_byte(out, (uint8_t)(rest | NUMBER_MORE));
	buffer_add_byte(out, (uint8_t)rest);
}

static bool take_number(struct span *rest, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < NUMBER_MAX_BYTES - 1 && i < rest->len; i++) {
		const uint8_t byte = rest->data[i];
		*out |= (uint64_t)(byte & (NUMBER_MORE - 1)) << (NUMBER_BITS * i);
		if ((byte & NUMBER_MORE) != 0)
			continue;
		*rest = span_slice(*rest, i + 1, rest->len);
		return true;
	}
	return false;
}

static bool read_counts(struct span bytes, uint64_t changed, uint64_t *out, size_t tensors)
{
	struct span rest = bytes;
	uint64_t total = 0;
	for (size_t i = 0; i < tensors; i++) {
		if (!take_number(&rest, &out[i]))
			return false;
		total += out[i];
	}
	return rest.len == 0 && total == changed;
}
