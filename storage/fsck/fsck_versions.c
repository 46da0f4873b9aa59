/* Versions, each with the bytes that it leads to: the row's checksum, and the sums of part set,
 * inline bytes or recipe. Goes in slices, each in a snapshot of its own. */
#include "storage/fsck/fsck_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/files/xet_file.h"
#include "storage/versions/derived_row.h"
#include "storage/versions/part.h"
#include "storage/versions/version.h"

enum { SLICE = 500 };

static const char SQL_VERSIONS[] =
	"SELECT sequence FROM versions WHERE sequence > ?1 ORDER BY sequence LIMIT ?2";
static const char SQL_FILES[] = "SELECT hash FROM xet_files WHERE hash > ?1 ORDER BY hash LIMIT 1";

static int check_slice(struct fsck *fsck, int64_t *after, size_t *out_count, struct error *err);
static int list_slice(
	struct fsck *fsck, int64_t after, int64_t *numbers, size_t *out_count, struct error *err);
static int check_version(struct fsck *fsck, int64_t sequence, struct error *err);
static int check_contents(struct db *db, const struct version *version, struct error *err);
static int check_inline(struct db *db, const struct version *version, struct error *err);
static int check_set(
	struct db *db, int64_t set, uint64_t size, uint64_t contents, struct error *err);
static int check_recipe(struct db *db, const struct version *version, struct error *err);
static int check_files(struct fsck *fsck, struct error *err);
static int next_file(struct db *db, struct chunk_id *hash, struct error *err);
static int check_file(struct fsck *fsck, const struct chunk_id *hash, struct error *err);

int fsck_versions(struct fsck *fsck, struct error *err)
{
	int64_t after = INT64_MIN;
	size_t count = SLICE;
	while (count == SLICE)
		if (check_slice(fsck, &after, &count, err) != 0)
			return -1;
	return check_files(fsck, err);
}

static int check_slice(struct fsck *fsck, int64_t *after, size_t *out_count, struct error *err)
{
	int64_t numbers[SLICE];
	*out_count = 0;
	if (db_snapshot_begin(fsck->db, err) != 0)
		return -1;
	int result = list_slice(fsck, *after, numbers, out_count, err);
	for (size_t i = 0; i < *out_count && result == 0; i++)
		result = check_version(fsck, numbers[i], err);
	db_snapshot_end(fsck->db);
	if (*out_count > 0)
		*after = numbers[*out_count - 1];
	return result;
}

/* An unreadable table ends the list: it was told before. */
static int list_slice(
	struct fsck *fsck, int64_t after, int64_t *numbers, size_t *out_count, struct error *err)
{
	struct db_statement *rows =
		db_query(fsck->db, SQL_VERSIONS, err, db_i64(after), db_i64(SLICE));
	int got;
	while ((got = db_step(rows, err)) == 1)
		numbers[(*out_count)++] = db_column_i64(rows, 0);
	db_reset(rows);
	return got == 0 ? 0 : fsck_tell_failure(fsck, FINDING_TABLE, "table versions", err);
}

static int check_version(struct fsck *fsck, int64_t sequence, struct error *err)
{
	char subject[FINDING_SUBJECT_BYTES];
	struct version version;
	fsck->report->versions++;
	int found = version_find_sequence(fsck->db, sequence, NULL, &version, err);
	if (found == 1)
		found = check_contents(fsck->db, &version, err);
	if (found >= 0)
		return 0;
	snprintf(subject, sizeof(subject), "version %" PRId64, sequence);
	reach_add_version(fsck->reach, sequence);
	return fsck_tell_failure(fsck, FINDING_ROW, subject, err);
}

static int check_contents(struct db *db, const struct version *version, struct error *err)
{
	if (version->is_marker)
		return 0;
	if (version->kind == VERSION_INLINE)
		return check_inline(db, version, err);
	return version->kind == VERSION_DERIVED
		? check_recipe(db, version, err)
		: check_set(db, version->part_set, version->size, version->contents, err);
}

static int check_inline(struct db *db, const struct version *version, struct error *err)
{
	struct db_statement *statement = NULL;
	struct span bytes;
	if (part_inline_load(db, version->sequence, version->contents, &bytes, &statement, err) !=
		0)
		return -1;
	db_reset(statement);
	return 0;
}

static int check_set(
	struct db *db, int64_t set, uint64_t size, uint64_t contents, struct error *err)
{
	struct part_range range = {.length = size};
	const int result = part_set_load(db, set, size, contents, &range, err);
	free(range.segments);
	return result;
}

static int check_recipe(struct db *db, const struct version *version, struct error *err)
{
	struct derived_recipe *recipe =
		derived_row_load(db, version->sequence, version->contents, err);
	derived_recipe_free(recipe);
	return recipe == NULL ? -1 : 0;
}

/* Files that are known by their Xet hash alone. */
static int check_files(struct fsck *fsck, struct error *err)
{
	struct chunk_id hash = {{0}};
	int got = 1;
	while (got == 1) {
		if (db_snapshot_begin(fsck->db, err) != 0)
			return -1;
		got = next_file(fsck->db, &hash, err);
		int result = got < 0
			? fsck_tell_failure(fsck, FINDING_TABLE, "table xet_files", err)
			: 0;
		if (got == 1)
			result = check_file(fsck, &hash, err);
		db_snapshot_end(fsck->db);
		if (result != 0)
			return -1;
	}
	return 0;
}

/* Moves on to the next hash. 1, 0 at the end, -1. */
static int next_file(struct db *db, struct chunk_id *hash, struct error *err)
{
	struct db_statement *row =
		db_query(db, SQL_FILES, err, db_blob(span_of(hash->bytes, sizeof(hash->bytes))));
	const int got = db_step(row, err);
	const struct span found = got == 1 ? db_column_blob(row, 0) : (struct span){0};
	if (found.len == sizeof(hash->bytes))
		memcpy(hash->bytes, found.data, found.len);
	db_reset(row);
	return got != 1 || found.len == sizeof(hash->bytes)
		? got
		: error_set(err, ERROR_DAMAGED, "A row has a hash of %zu bytes.", found.len);
}

static int check_file(struct fsck *fsck, const struct chunk_id *hash, struct error *err)
{
	char subject[FINDING_SUBJECT_BYTES] = "Xet file ";
	struct xet_file file;
	int found = xet_file_row_find(fsck->db, hash, &file, err);
	if (found == 1 && file.contents != 0) /* 0: a shard is still writing it */
		found = check_set(fsck->db, file.part_set, file.size, file.contents, err);
	if (found >= 0)
		return 0;
	chunk_id_format(hash, subject + strlen(subject));
	return fsck_tell_failure(fsck, FINDING_ROW, subject, err);
}
