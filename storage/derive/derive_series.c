/* Costs are compared as averages of two stretches: that of the present head, and that of the
 * present root. Products in place of quotients, in doubles, so that nothing divides by zero or
 * overflows. */
#include "storage/derive/derive_series.h"

static const char SQL_SERIES_FIND[] =
	"SELECT root, root_count, root_bytes, head, head_count, head_bytes, head_delta FROM derive_series WHERE series = ?1";
static const char SQL_SERIES_REMOVE[] = "DELETE FROM derive_series WHERE series = ?1";
static const char SQL_SERIES_ADD[] =
	"INSERT INTO derive_series (series, root, root_count, root_bytes, head, head_count, head_bytes, head_delta)"
	" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
static const char SQL_SERIES_PRUNE[] =
	"DELETE FROM derive_series WHERE root NOT IN (SELECT sequence FROM versions)";

static bool is_digit(uint8_t byte);

struct digest128 derive_series_key(int64_t bucket, struct span key, const struct digest128 *schema)
{
	static const uint8_t number[1] = {'#'};
	struct xxh3_stream *const stream = xxh3_stream_new();
	xxh3_stream_add(stream, span_of(schema->bytes, sizeof(schema->bytes)));
	xxh3_stream_add(stream, span_of(&bucket, sizeof(bucket)));
	for (size_t at = 0; at < key.len;) {
		const size_t from = at;
		while (at < key.len && is_digit(key.data[at]) == is_digit(key.data[from]))
			at++;
		xxh3_stream_add(stream,
			is_digit(key.data[from]) ? span_of(number, 1)
						 : span_slice(key, from, at - from));
	}
	const struct digest128 digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return digest;
}

struct derive_series derive_series_begin(int64_t root, uint64_t size)
{
	ASSERT(root > 0);
	return (struct derive_series){.root = root, .root_count = 1, .root_bytes = size};
}

/* A tenth more is noise: some steps change a little more than others. */
bool derive_series_keeps_head(const struct derive_series *series, uint64_t delta)
{
	return series->head != 0 &&
		10.0 * (double)delta * (double)series->head_count <=
		11.0 * (double)series->head_bytes;
}

/* Compares with the average since the root what the next stretch would cost on average, if it were
 * as long as this one and drifted alike. */
bool derive_series_keeps_root(const struct derive_series *series, uint64_t delta)
{
	const double stretch = (double)delta + (double)(series->head_bytes - series->head_delta);
	return series->head_count == 0 ||
		stretch * (double)series->root_count <=
		(double)series->root_bytes * (double)series->head_count;
}

void derive_series_add(struct derive_series *series, uint64_t delta)
{
	ASSERT(series->head != 0);
	series->root_count++;
	series->root_bytes += delta;
	series->head_count++;
	series->head_bytes += delta;
}

void derive_series_add_head(struct derive_series *series, int64_t head, uint64_t delta)
{
	ASSERT(head > 0);
	series->head = head;
	series->head_count = 0;
	series->head_bytes = 0;
	series->head_delta = delta;
	derive_series_add(series, delta);
}

int derive_series_find(
	struct db *db, const struct digest128 *key, struct derive_series *out, struct error *err)
{
	struct db_statement *const row = db_query(
		db, SQL_SERIES_FIND, err, db_blob(span_of(key->bytes, sizeof(key->bytes))));
	const int got = db_step(row, err);
	if (got == 1)
		*out = (struct derive_series){
			.root = db_column_i64(row, 0),
			.root_count = (uint64_t)db_column_i64(row, 1),
			.root_bytes = (uint64_t)db_column_i64(row, 2),
			.head = db_column_i64(row, 3),
			.head_count = (uint64_t)db_column_i64(row, 4),
			.head_bytes = (uint64_t)db_column_i64(row, 5),
			.head_delta = (uint64_t)db_column_i64(row, 6),
		};
	db_reset(row);
	return got;
}

int derive_series_put(struct db *db, const struct digest128 *key,
	const struct derive_series *series, struct error *err)
{
	const struct db_value series_key = db_blob(span_of(key->bytes, sizeof(key->bytes)));
	if (db_run(db, SQL_SERIES_REMOVE, err, series_key) != 0)
		return -1;
	return db_run(db, SQL_SERIES_ADD, err, series_key, db_i64(series->root),
		db_i64((int64_t)series->root_count), db_i64((int64_t)series->root_bytes),
		db_i64(series->head), db_i64((int64_t)series->head_count),
		db_i64((int64_t)series->head_bytes), db_i64((int64_t)series->head_delta));
}

int derive_series_prune(struct db *db, struct error *err)
{
	return db_run(db, SQL_SERIES_PRUNE, err);
}

static bool is_digit(uint8_t byte)
{
	return byte >= '0' && byte <= '9';
}
