/* Reads rows of `versions` and verifies each one's checksum. The checksum covers the sum of the
 * contents, so that a row which was read right proves the bytes that it leads to. Columns that came
 * after the first catalogs are summed only where one of them is set: so rows of old catalogs keep
 * their checksum. */
#include <string.h>

#include "storage/db/row_sum.h"
#include "storage/versions/part.h"
#include "storage/versions/version_internal.h"

static const char SQL_VERSION_CURRENT[] =
	"SELECT " VERSION_COLUMNS " FROM versions WHERE bucket = ?1 AND key = ?2 AND state = 1";
static const char SQL_VERSION_BY_ID[] =
	"SELECT " VERSION_COLUMNS
	" FROM versions WHERE bucket = ?1 AND key = ?2 AND id = ?3 AND state <> 1";
static const char SQL_VERSION_NULL[] =
	"SELECT " VERSION_COLUMNS
	" FROM versions WHERE bucket = ?1 AND key = ?2 AND state = 2 AND has_id = 0";
static const char SQL_VERSION_SEQUENCE[] =
	"SELECT " VERSION_COLUMNS " FROM versions WHERE sequence = ?1";

static bool has_first_form(const struct version *version, struct span tags);
static void read_numbers(struct db_statement *statement, struct version *out);
static bool read_blobs(struct db_statement *statement, struct version *out);
static bool read_fixed(
	struct db_statement *statement, int column, size_t len, uint8_t *out, bool *out_has);
static bool read_checksum(struct db_statement *statement, struct checksum *out);
static int find_row(struct db *db, struct db_statement *statement, struct arena *arena,
	struct version *out, struct error *err);

int64_t version_checksum_kind(const struct checksum *checksum)
{
	return (int64_t)checksum->algorithm +
		(checksum->type == CHECKSUM_COMPOSITE ? VERSION_COMPOSITE : 0);
}

void version_read_checksum_kind(
	int64_t kind, enum checksum_algorithm *out_algorithm, enum checksum_type *out_type)
{
	*out_algorithm = (enum checksum_algorithm)(kind % VERSION_COMPOSITE);
	*out_type = kind >= VERSION_COMPOSITE ? CHECKSUM_COMPOSITE : CHECKSUM_FULL_OBJECT;
}

int64_t version_stored_set(const struct version *version)
{
	return version->kind == VERSION_SINGLE &&
			version->part_set == part_single_set(version->sequence)
		? 0
		: version->part_set;
}

uint64_t version_sum(
	const struct version *version, struct span key, struct span headers, struct span tags)
{
	uint64_t sum = row_sum_bytes(0, span_of(version->id, VERSION_ID_BYTES));
	sum = row_sum_number(sum, version->bucket);
	sum = row_sum_bytes(sum, key);
	sum = row_sum_number(sum, version->kind);
	sum = row_sum_number(sum, (int64_t)version->size);
	sum = row_sum_bytes(sum, span_text(version->etag));
	sum = row_sum_bytes(sum,
		span_of(version->digest.bytes,
			version->has_digest ? sizeof(version->digest.bytes) : 0));
	sum = row_sum_bytes(sum,
		span_of(version->file_hash.bytes, version->has_file_hash ? CHUNK_ID_BYTES : 0));
	sum = row_sum_number(sum, version->modified_ms);
	sum = row_sum_bytes(sum, headers);
	sum = row_sum_number(sum, version_stored_set(version));
	sum = row_sum_number(sum, (int64_t)version->contents);
	if (has_first_form(version, tags))
		return sum;
	sum = row_sum_number(sum, version->has_id);
	sum = row_sum_number(sum, version->is_marker);
	sum = row_sum_number(sum, version->part_count);
	sum = row_sum_number(sum, version_checksum_kind(&version->checksum));
	sum = row_sum_bytes(sum, span_of(version->checksum.bytes, version->checksum.len));
	sum = row_sum_number(sum, version->storage_class);
	sum = row_sum_number(sum, version->acl);
	return row_sum_bytes(sum, tags);
}

int version_read_row(struct db *db, struct db_statement *statement, struct arena *arena,
	struct version *out, struct error *err)
{
	memset(out, 0, sizeof(*out));
	read_numbers(statement, out);
	const struct span key = db_column_blob(statement, 3);
	const struct span headers = db_column_blob(statement, 12);
	const struct span tags = db_column_blob(statement, 23);
	if (!read_blobs(statement, out) ||
		version_sum(out, key, headers, tags) != (uint64_t)db_column_i64(statement, 15))
		return error_set(err, ERROR_CORRUPT, "%s: the row of version %lld is damaged.",
			db_path(db), (long long)out->sequence);
	if (arena == NULL)
		return 0;
	out->key = arena_copy(arena, key);
	out->headers = arena_copy(arena, headers);
	out->tags = arena_copy(arena, tags);
	if (arena_overflowed(arena))
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading an object.");
	return 0;
}

int version_find_current(struct db *db, int64_t bucket, struct span key, struct arena *arena,
	struct version *out, struct error *err)
{
	struct db_statement *const row =
		db_query(db, SQL_VERSION_CURRENT, err, db_i64(bucket), db_blob(key));
	return find_row(db, row, arena, out, err);
}

int version_find_id(struct db *db, struct object_place place, const uint8_t id[VERSION_ID_BYTES],
	struct arena *arena, struct version *out, struct error *err)
{
	const int got = version_find_current(db, place.bucket, place.key, arena, out, err);
	if (got < 0 || (got == 1 && memcmp(out->id, id, VERSION_ID_BYTES) == 0))
		return got;
	struct db_statement *const row = db_query(db, SQL_VERSION_BY_ID, err, db_i64(place.bucket),
		db_blob(place.key), db_blob(span_of(id, VERSION_ID_BYTES)));
	return find_row(db, row, arena, out, err);
}

int version_find_null(struct db *db, int64_t bucket, struct span key, struct arena *arena,
	struct version *out, struct error *err)
{
	const int got = version_find_current(db, bucket, key, arena, out, err);
	if (got <= 0 || !out->has_id)
		return got;
	struct db_statement *const row =
		db_query(db, SQL_VERSION_NULL, err, db_i64(bucket), db_blob(key));
	return find_row(db, row, arena, out, err);
}

int version_find_ref(struct db *db, struct object_place place, const struct version_ref *ref,
	struct arena *arena, struct version *out, struct error *err)
{
	if (ref->kind == VERSION_REF_CURRENT)
		return version_find_current(db, place.bucket, place.key, arena, out, err);
	if (ref->kind == VERSION_REF_NULL)
		return version_find_null(db, place.bucket, place.key, arena, out, err);
	if (ref->kind == VERSION_REF_FOREIGN)
		return 0;
	const int got = version_find_id(db, place, ref->id, arena, out, err);
	return got == 1 && (!out->has_id || out->state == VERSION_HIDDEN) ? 0 : got;
}

int version_find_sequence(struct db *db, int64_t sequence, struct arena *arena, struct version *out,
	struct error *err)
{
	struct db_statement *const row = db_query(db, SQL_VERSION_SEQUENCE, err, db_i64(sequence));
	return find_row(db, row, arena, out, err);
}

int version_need_sequence(struct db *db, int64_t sequence, struct arena *arena, struct version *out,
	struct error *err)
{
	const int found = version_find_sequence(db, sequence, arena, out, err);
	if (found == 0)
		return error_set(err, ERROR_DAMAGED,
			"Version %lld, which the catalog names, is not in it.",
			(long long)sequence);
	return found < 0 ? -1 : 0;
}

/* True for rows of old catalogs, which lacked these columns, and for all rows like them: they have
 * the sum of the first form. */
static bool has_first_form(const struct version *version, struct span tags)
{
	return !version->has_id && !version->is_marker && version->part_count == 0 &&
		version->checksum.algorithm == CHECKSUM_NONE &&
		version->storage_class == STORAGE_STANDARD && version->acl == ACL_PRIVATE &&
		tags.len == 0;
}

static void read_numbers(struct db_statement *statement, struct version *out)
{
	out->sequence = db_column_i64(statement, 0);
	out->bucket = db_column_i64(statement, 2);
	out->state = (enum version_state)db_column_i64(statement, 4);
	out->is_marker = db_column_i64(statement, 5) != 0;
	out->kind = (enum version_kind)db_column_i64(statement, 6);
	out->size = (uint64_t)db_column_i64(statement, 7);
	out->modified_ms = db_column_i64(statement, 11);
	out->part_set = db_column_i64(statement, 13);
	if (out->kind == VERSION_SINGLE && out->part_set == 0)
		out->part_set = part_single_set(out->sequence);
	out->contents = (uint64_t)db_column_i64(statement, 14);
	out->has_id = db_column_i64(statement, 16) != 0;
	out->retired_ms = db_column_i64(statement, 17);
	out->part_count = (uint32_t)db_column_i64(statement, 18);
	out->storage_class = (enum storage_class)db_column_i64(statement, 21);
	out->acl = (enum canned_acl)db_column_i64(statement, 22);
}

/* False when a column has a wrong size. */
static bool read_blobs(struct db_statement *statement, struct version *out)
{
	const struct span etag = db_column_blob(statement, 8);
	bool has_id = false;
	if (!read_fixed(statement, 1, VERSION_ID_BYTES, out->id, &has_id) || !has_id ||
		etag.len >= OBJECT_ETAG_BYTES)
		return false;
	if (etag.len > 0)
		memcpy(out->etag, etag.data, etag.len);
	return read_fixed(statement, 9, sizeof(out->digest.bytes), out->digest.bytes,
		       &out->has_digest) &&
		read_fixed(
			statement, 10, CHUNK_ID_BYTES, out->file_hash.bytes, &out->has_file_hash) &&
		read_checksum(statement, &out->checksum);
}

/* Reads a column of `len` bytes, or an empty one. */
static bool read_fixed(
	struct db_statement *statement, int column, size_t len, uint8_t *out, bool *out_has)
{
	const struct span bytes = db_column_blob(statement, column);
	*out_has = bytes.len != 0;
	if (bytes.len != 0 && bytes.len != len)
		return false;
	if (bytes.len != 0)
		memcpy(out, bytes.data, len);
	return true;
}

static bool read_checksum(struct db_statement *statement, struct checksum *out)
{
	const struct span value = db_column_blob(statement, 20);
	version_read_checksum_kind(db_column_i64(statement, 19), &out->algorithm, &out->type);
	if (value.len > CHECKSUM_MAX_BYTES)
		return false;
	out->len = (uint8_t)value.len;
	if (value.len > 0)
		memcpy(out->bytes, value.data, value.len);
	return true;
}

/* Runs a statement that gives at most one row. */
static int find_row(struct db *db, struct db_statement *statement, struct arena *arena,
	struct version *out, struct error *err)
{
	int got = db_step(statement, err);
	if (got == 1 && version_read_row(db, statement, arena, out, err) != 0)
		got = -1;
	db_reset(statement);
	return got;
}
