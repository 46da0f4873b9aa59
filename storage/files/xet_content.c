/* A registered file with a valid grant comes first: it costs one look. Else a version of the bucket
 * is searched, one with bytes of its own before a derived one, because those of a derived version
 * must first be made. A row of xet_files that was made for a derived version serves only callers
 * that may read such a version. A damaged row of xet_files fails the search only when no version
 * has the bytes. */
#include "storage/files/xet_content.h"

#include <string.h>

#include "storage/files/xet_file.h"
#include "storage/versions/version.h"

enum { CANDIDATES = 1000 /* versions that one search may look at */ };

/* The newest first. The index versions_file requires the condition on the length. */
static const char SQL_CONTENT_VERSIONS[] =
	"SELECT sequence, key, kind, state FROM versions WHERE file_hash = ?1 AND bucket = ?2 AND length(file_hash) > 0 ORDER BY sequence DESC LIMIT ?3";

static int is_granted(struct db *db, const struct xet_reach *reach, const struct xet_file *file,
	bool *out, struct error *err);
static void content_of_file(const struct xet_file *file, struct xet_content *out);
static int find_version(struct db *db, const struct xet_reach *reach, const struct chunk_id *file,
	struct xet_content *out, bool *out_found, struct error *err);
static int choose_version(struct db *db, const struct xet_reach *reach, const struct chunk_id *file,
	int64_t *out_sequence, struct error *err);
static void content_of_version(const struct version *version, struct xet_content *out);
static int content_not_found(const struct chunk_id *file, struct error *err);

int xet_content_find(struct db *db, const struct xet_reach *reach, const struct chunk_id *file,
	struct xet_content *out, struct error *err)
{
	static const struct chunk_id empty = {{0}};
	ASSERT(reach->bucket != 0);
	*out = (struct xet_content){.file = *file, .kind = XET_CONTENT_EMPTY};
	if (chunk_id_equal(file, &empty))
		return 0;
	struct xet_file registered;
	struct error damage = {0}; /* of the file's row; a version may have the bytes too */
	const int got = xet_file_row_find(db, file, &registered, &damage);
	bool granted = false;
	if (got < 0 && damage.kind != ERROR_CORRUPT) {
		*err = damage;
		return -1;
	}
	if (got == 1 && is_granted(db, reach, &registered, &granted, err) != 0)
		return -1;
	if (granted) {
		content_of_file(&registered, out);
		return 0;
	}
	bool found = false;
	if (find_version(db, reach, file, out, &found, err) != 0)
		return -1;
	if (found && out->kind == XET_CONTENT_DERIVED && got == 1)
		content_of_file(&registered, out);
	if (!found && got < 0)
		*err = damage;
	return found ? 0 : got < 0 ? -1 : content_not_found(file, err);
}

/* Whether the caller has registered the file for this bucket. A file that was made of a derived
 * version is reached only through versions. */
static int is_granted(struct db *db, const struct xet_reach *reach, const struct xet_file *file,
	bool *out, struct error *err)
{
	*out = false;
	if (file->is_made || reach->account.len == 0)
		return 0;
	const struct xet_grant grant = {
		.file = &file->hash, .bucket = reach->bucket, .account = reach->account};
	return xet_grant_row_valid(db, &grant, reach->now_ms, out, err);
}

static void content_of_file(const struct xet_file *file, struct xet_content *out)
{
	out->kind = XET_CONTENT_SEGMENTS;
	out->size = file->size;
	out->part_set = file->part_set;
	out->contents = file->contents;
	out->is_made = file->is_made;
}

static int find_version(struct db *db, const struct xet_reach *reach, const struct chunk_id *file,
	struct xet_content *out, bool *out_found, struct error *err)
{
	struct version version;
	int64_t sequence;
	if (choose_version(db, reach, file, &sequence, err) != 0)
		return -1;
	if (sequence == 0)
		return 0;
	const int got = version_find_sequence(db, sequence, NULL, &version, err);
	*out_found = got == 1;
	if (got == 1)
		content_of_version(&version, out);
	return got < 0 ? -1 : 0;
}

/* Chooses a version that the caller may read, one with bytes of its own before a derived one; 0:
 * there is none. */
static int choose_version(struct db *db, const struct xet_reach *reach, const struct chunk_id *file,
	int64_t *out_sequence, struct error *err)
{
	size_t own_looks = CANDIDATES;
	size_t *const looks = reach->looks != NULL ? reach->looks : &own_looks;
	struct db_statement *const statement = db_query(db, SQL_CONTENT_VERSIONS, err,
		db_blob(span_of(file->bytes, CHUNK_ID_BYTES)), db_i64(reach->bucket),
		db_i64((int64_t)(*looks < CANDIDATES ? *looks : CANDIDATES)));
	bool has_own_bytes = false;
	int got = 0;
	*out_sequence = 0;
	while (!has_own_bytes && (got = db_step(statement, err)) == 1) {
		--*looks;
		const bool is_current = db_column_i64(statement, 3) == VERSION_CURRENT;
		const int may = reach->may_read == NULL
			? 1
			: reach->may_read(
				  reach->owner, db_column_blob(statement, 1), is_current, err);
		if (may < 0) {
			got = -1;
			break;
		}
		if (may == 0)
			continue;
		has_own_bytes = db_column_i64(statement, 2) != VERSION_DERIVED;
		if (has_own_bytes || *out_sequence == 0)
			*out_sequence = db_column_i64(statement, 0);
	}
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

static void content_of_version(const struct version *version, struct xet_content *out)
{
	out->size = version->size;
	out->contents = version->contents;
	out->version = version->sequence;
	out->part_set = version->part_set;
	out->kind = version->kind == VERSION_INLINE ? XET_CONTENT_INLINE
		: version->kind == VERSION_DERIVED  ? XET_CONTENT_DERIVED
						    : XET_CONTENT_SEGMENTS;
	if (version->size == 0)
		out->kind = XET_CONTENT_EMPTY;
}

static int content_not_found(const struct chunk_id *file, struct error *err)
{
	char text[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(file, text);
	return error_set(err, ERROR_NOT_FOUND, "The file %s does not exist.", text);
}
