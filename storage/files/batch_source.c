/* An added file is looked up in the batch's bucket with xet_content_find, which knows registered
 * files too. A copied one must be a current version of the bucket that the line names. Both looks
 * are bounded, because the committer waits for them. A caller that may read no such key gets the
 * same error as when there is none. */
#include "storage/files/batch_source.h"

#include "storage/buckets/bucket_row.h"
#include "storage/files/xet_content.h"
#include "storage/versions/part.h"

enum { CANDIDATES = 1000 /* versions that one line may look at */ };

/* The newest first. The index versions_file requires the condition on the length. */
static const char SQL_SOURCE_VERSIONS[] =
	"SELECT sequence, key, state FROM versions WHERE file_hash = ?1 AND bucket = ?2 AND length(file_hash) > 0 ORDER BY sequence DESC LIMIT ?3";

static int find_copied(const struct batch_search *search, const struct batch_line *line,
	struct version *out, struct error *err);
static int not_found(const struct batch_line *line, struct error *err);
static int choose_version(const struct batch_search *search, const struct batch_line *line,
	int64_t bucket, int64_t *out_sequence, struct error *err);
static int load_version(const struct batch_search *search, const struct batch_line *line,
	int64_t sequence, struct version *out, struct error *err);
static int find_added(const struct batch_search *search, const struct batch_line *line,
	struct version *out, struct error *err);
static int batch_source_may_read(void *owner, struct span key, bool is_current, struct error *err);

int batch_source_find(const struct batch_search *search, const struct batch_line *line,
	struct version *out, struct error *err)
{
	static const struct chunk_id empty = {{0}};
	ASSERT(!batch_deletes(line->kind));
	if (chunk_id_equal(&line->file, &empty)) {
		*out = (struct version){.kind = VERSION_INLINE,
			.contents = part_inline_contents((struct span){NULL, 0})};
		return 0;
	}
	return line->kind == BATCH_COPY ? find_copied(search, line, out, err)
					: find_added(search, line, out, err);
}

static int find_copied(const struct batch_search *search, const struct batch_line *line,
	struct version *out, struct error *err)
{
	int64_t bucket = 0;
	int64_t sequence = 0;
	if (bucket_row_find(search->db, line->source, &bucket, err) != 0)
		return err->kind == ERROR_NO_BUCKET ? not_found(line, err) : -1;
	if (choose_version(search, line, bucket, &sequence, err) != 0)
		return -1;
	return sequence == 0 ? not_found(line, err)
			     : load_version(search, line, sequence, out, err);
}

static int not_found(const struct batch_line *line, struct error *err)
{
	char text[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(&line->file, text);
	if (line->kind == BATCH_COPY)
		return error_set(err, ERROR_NOT_FOUND,
			"The bucket to copy from holds no file with the hash %s that you may read.",
			text);
	return error_set(err, ERROR_NOT_FOUND,
		"The file with the hash %s was not uploaded: no shard for this bucket has named it.",
		text);
}

/* Chooses the newest current version whose key the caller may read; 0: there is none. */
static int choose_version(const struct batch_search *search, const struct batch_line *line,
	int64_t bucket, int64_t *out_sequence, struct error *err)
{
	const struct batch_params *const params = search->params;
	ASSERT(params->may_read != NULL);
	const size_t looks = *search->looks < CANDIDATES ? *search->looks : CANDIDATES;
	struct db_statement *const statement = db_query(search->db, SQL_SOURCE_VERSIONS, err,
		db_blob(span_of(line->file.bytes, CHUNK_ID_BYTES)), db_i64(bucket),
		db_i64((int64_t)looks));
	int got = 0;
	*out_sequence = 0;
	while (*out_sequence == 0 && got >= 0 && (got = db_step(statement, err)) == 1) {
		--*search->looks;
		if (db_column_i64(statement, 2) != VERSION_CURRENT)
			continue;
		got = params->may_read(
			params->owner, line->source, db_column_blob(statement, 1), true, err);
		if (got == 1)
			*out_sequence = db_column_i64(statement, 0);
	}
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

static int load_version(const struct batch_search *search, const struct batch_line *line,
	int64_t sequence, struct version *out, struct error *err)
{
	const int found = version_find_sequence(search->db, sequence, search->arena, out, err);
	return found == 0 ? not_found(line, err) : found < 0 ? -1 : 0;
}

static int find_added(const struct batch_search *search, const struct batch_line *line,
	struct version *out, struct error *err)
{
	struct batch_params caller = *search->params;
	const struct xet_reach reach = {.bucket = search->bucket,
		.account = caller.account,
		.now_ms = search->now_ms,
		.looks = search->looks,
		.may_read = batch_source_may_read,
		.owner = &caller};
	struct xet_content content;
	if (xet_content_find(search->db, &reach, &line->file, &content, err) != 0)
		return err->kind == ERROR_NOT_FOUND ? not_found(line, err) : -1;
	if (content.version != 0)
		return load_version(search, line, content.version, out, err);
	*out = (struct version){.kind = VERSION_SINGLE,
		.size = content.size,
		.part_set = content.part_set,
		.contents = content.contents};
	return 0;
}

static int batch_source_may_read(void *owner, struct span key, bool is_current, struct error *err)
{
	const struct batch_params *const params = owner;
	return params->may_read(params->owner, params->bucket, key, is_current, err);
}
