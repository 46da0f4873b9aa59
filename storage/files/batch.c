/* The call has two stages; a batch that adds no files skips the first:
 *
 *   prove: a helper reads the added files --> apply: one change judges each line, then writes it
 *
 * Everything that a line can be refused for is found before its first row is written, so lines need
 * no savepoints. A failure after that fails the whole change. */
#include "storage/files/batch.h"

#include <string.h>

#include "base/encode.h"
#include "base/random.h"
#include "storage/buckets/bucket_row.h"
#include "storage/files/batch_source.h"
#include "storage/files/file_time.h"
#include "storage/run_tables/server_key.h"
#include "storage/versions/content_damage.h"
#include "storage/versions/content_proof.h"
#include "storage/versions/derive_waiting.h"
#include "storage/versions/header_blob.h"
#include "storage/versions/version_copy.h"

enum {
	BATCH_ARENA_BYTES = BATCH_LINES_MAX * 1024, /* for `faults` */
	LINE_ARENA_BYTES = 1024 * 1024,
	LINE_HEADERS_MAX_BYTES = 8 * 1024,
	ETAG_HASH_BYTES = 16,
	LOOKS_MAX = 20000
};

struct batch {
	struct call call; /* first */
	struct batch_params params;
	bool completes_publish;
	struct error *faults;        /* by line: why its bytes cannot be read; NULL: no faults */
	struct content_proof *proof; /* of line number `proving` */
	size_t proving;
	/* how many more versions may be looked at for one that the caller may read */
	size_t looks;
};

/* One line in progress. */
struct line_work {
	struct batch *batch;
	struct db *db;
	const struct bucket *bucket;
	struct batch_line *line;
	struct arena *arena;
	int64_t now_ms;
	struct version row;
	const struct version *current; /* of the path: `row`, or NULL when there is none */
};

static bool adds_files(const struct batch_params *params);
static enum call_next batch_prove(struct call *call, struct error *err);
static int prove_line(struct batch *batch, const struct batch_line *line);
static int begin_proof(struct batch *batch, const struct batch_line *line, struct error *err);
static int add_to_proof(
	struct batch *batch, struct db *db, const struct batch_line *line, struct error *err);
static int batch_apply(struct call *call, struct db *db, struct error *err);
static int apply_line(struct line_work *work, struct error *err);
static int judge(struct line_work *work, struct version *out_source, struct error *err);
static int find_source(const struct line_work *work, struct version *out, struct error *err);
static int check_damage(
	const struct line_work *work, const struct version *source, struct error *err);
static bool concerns_line(const struct error *err);
static int delete_file(const struct line_work *work, struct error *err);
static int push_marker(const struct line_work *work, struct error *err);
static int push_file(const struct line_work *work, const struct version *source, struct error *err);
static void fill_version(
	const struct line_work *work, const struct version *source, struct version *out);
static struct span make_headers(const struct line_work *work, const struct version *source);
static bool find_time(const struct batch_line *line, const struct version *source, int64_t *out_ms);
static void batch_wake_steps(struct call *call);

static const struct call_kind kind = {
	.stages = {{.apply = batch_apply}},
	.settle = batch_wake_steps,
};

static const struct call_kind adding_kind = {
	.stages = {{.help = batch_prove}, {.apply = batch_apply}},
	.settle = batch_wake_steps,
};

struct call *batch_call(struct store *store, const struct batch_params *params)
{
	ASSERT(params->count <= BATCH_LINES_MAX);
	ASSERT(params->lines != NULL || params->count == 0);
	struct batch *const batch = call_new(sizeof(*batch),
		adds_files(params) ? &adding_kind : &kind, store, BATCH_ARENA_BYTES);
	batch->params = *params;
	return &batch->call;
}

static bool adds_files(const struct batch_params *params)
{
	for (size_t i = 0; i < params->count; i++)
		if (params->lines[i].kind == BATCH_ADD && !params->lines[i].is_refused)
			return true;
	return false;
}

/* The bytes of added files are stored here already. They are read before the change, a slice at a
 * time, unless they were read since the start. */
static enum call_next batch_prove(struct call *call, struct error *err)
{
	struct batch *batch = (struct batch *)call;
	int result = 0;
	(void)err;
	batch->looks = LOOKS_MAX;
	for (; batch->proving < batch->params.count; batch->proving += result == 0) {
		const struct batch_line *line = &batch->params.lines[batch->proving];
		result = line->kind == BATCH_ADD && !line->is_refused ? prove_line(batch, line) : 0;
		if (result == 1)
			return CALL_AGAIN;
	}
	return CALL_NEXT;
}

/* Does a slice of the line's proof. 1: there is more. A failure becomes the line's fault, which
 * check_damage reports: damage refuses the line, any other failure fails the batch. */
static int prove_line(struct batch *batch, const struct batch_line *line)
{
	struct error err = {0};
	int result = batch->proof != NULL ? 0 : begin_proof(batch, line, &err);
	if (result == 0)
		result = content_proof_step(batch->proof, line->path, &err);
	if (result == 1)
		return 1;
	content_proof_free(batch->proof);
	batch->proof = NULL;
	if (result == 0)
		return 0;
	if (batch->faults == NULL)
		batch->faults = arena_take_array(
			batch->call.arena, batch->params.count, sizeof(*batch->faults));
	ASSERT(batch->faults != NULL); /* the arena is large enough for them */
	batch->faults[line - batch->params.lines] = err;
	return 0;
}

static int begin_proof(struct batch *batch, const struct batch_line *line, struct error *err)
{
	struct store *const store = batch->call.store;
	struct db *db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	batch->proof = content_proof_new(store);
	int result = add_to_proof(batch, db, line, err);
	store_snapshot_give(store, db);
	return result;
}

/* Adds the line's file to the proof if the caller may reach it. If not, the change says why. */
static int add_to_proof(
	struct batch *batch, struct db *db, const struct batch_line *line, struct error *err)
{
	struct bucket_ref *const bucket = &batch->params.bucket;
	struct arena *arena = arena_new(LINE_ARENA_BYTES);
	struct batch_search search = {.db = db,
		.params = &batch->params,
		.now_ms = store_now_ms(batch->call.store),
		.looks = &batch->looks,
		.arena = arena};
	struct version source = {0};
	struct error absent = {0};
	int result = 0;
	if (bucket_row_find(db, *bucket, &bucket->id, &absent) == 0) {
		search.bucket = bucket->id;
		if (batch_source_find(&search, line, &source, &absent) == 0)
			result = content_proof_add(batch->proof, db, &source, err);
	}
	arena_free(arena);
	return result;
}

static int batch_apply(struct call *call, struct db *db, struct error *err)
{
	struct batch *const batch = (struct batch *)call;
	struct bucket bucket;
	int result = bucket_row_settings(db, batch->params.bucket, &bucket, err);
	ASSERT(batch->proof == NULL); /* batch_prove has ended */
	batch->looks = LOOKS_MAX;
	for (size_t i = 0; result == 0 && i < batch->params.count; i++) {
		struct line_work work = {.batch = batch,
			.db = db,
			.bucket = &bucket,
			.line = &batch->params.lines[i],
			.now_ms = store_now_ms(call->store)};
		if (work.line->is_refused)
			continue;
		work.line->error = (struct error){.kind = ERROR_NONE};
		work.arena = arena_new(LINE_ARENA_BYTES);
		result = apply_line(&work, err);
		arena_free(work.arena);
	}
	return result;
}

static int apply_line(struct line_work *work, struct error *err)
{
	struct version source = {0};
	if (judge(work, &source, err) != 0) {
		work->line->error = *err;
		return concerns_line(err) ? 0 : -1;
	}
	if (work->line->kind == BATCH_JUDGE_DELETE)
		return 0;
	return work->line->kind == BATCH_DELETE ? delete_file(work, err)
						: push_file(work, &source, err);
}

static int judge(struct line_work *work, struct version *out_source, struct error *err)
{
	const struct span path = work->line->path;
	if (server_key_guard(work->db, work->bucket->id, path, err) != 0 ||
		find_source(work, out_source, err) != 0)
		return -1;
	const int found =
		version_find_current(work->db, work->bucket->id, path, NULL, &work->row, err);
	work->current = found == 1 ? &work->row : NULL;
	return found < 0 ? -1 : 0;
}

static int find_source(const struct line_work *work, struct version *out, struct error *err)
{
	const struct batch_line *const line = work->line;
	if (batch_deletes(line->kind))
		return 0;
	const struct batch_search search = {.db = work->db,
		.params = &work->batch->params,
		.bucket = work->bucket->id,
		.now_ms = work->now_ms,
		.looks = &work->batch->looks,
		.arena = work->arena};
	if (batch_source_find(&search, line, out, err) != 0)
		return -1;
	if (line->has_size && line->size != out->size)
		return error_set(err, ERROR_INVALID, "The file has %llu bytes, not %llu.",
			(unsigned long long)out->size, (unsigned long long)line->size);
	return check_damage(work, out, err);
}

/* A copy is refused when damage of its source is known. An added file was read by batch_prove. */
static int check_damage(
	const struct line_work *work, const struct version *source, struct error *err)
{
	const struct batch *batch = work->batch;
	const struct batch_line *line = work->line;
	if (line->kind == BATCH_COPY)
		return content_damage_check(work->db, source, line->path, err);
	const struct error *fault =
		batch->faults != NULL ? &batch->faults[line - batch->params.lines] : NULL;
	if (fault == NULL || fault->kind == ERROR_NONE)
		return 0;
	*err = *fault;
	return -1;
}

/* Whether the failure concerns the line alone. Others are failures of the store. */
static bool concerns_line(const struct error *err)
{
	return err->kind == ERROR_NOT_FOUND || err->kind == ERROR_DENIED ||
		err->kind == ERROR_INVALID || err->kind == ERROR_CORRUPT ||
		err->kind == ERROR_CONTENT_DAMAGED;
}

static int delete_file(const struct line_work *work, struct error *err)
{
	if (work->current == NULL || work->current->is_marker)
		return 0;
	return work->bucket->versioning != BUCKET_UNVERSIONED
		? push_marker(work, err)
		: version_remove(work->db, work->current, work->now_ms, err);
}

static int push_marker(const struct line_work *work, struct error *err)
{
	struct version marker = {.bucket = work->bucket->id,
		.key = work->line->path,
		.is_marker = true,
		.kind = VERSION_INLINE,
		.modified_ms = work->now_ms};
	random_bytes(marker.id, VERSION_ID_BYTES);
	return version_push(work->db, work->bucket->versioning, work->current, &marker, err);
}

static int push_file(const struct line_work *work, const struct version *source, struct error *err)
{
	const struct version_copy_params params = {
		.source = source, .current = work->current, .versioning = work->bucket->versioning};
	struct version version;
	fill_version(work, source, &version);
	if (arena_overflowed(work->arena))
		return error_set(err, ERROR_NO_MEMORY, "The memory for a line of a batch ran out.");
	if (version_copy_push(work->db, &params, &version, work->arena, err) != 0)
		return -1;
	work->batch->completes_publish |= version.completes_publish;
	if (work->line->kind != BATCH_ADD || version.kind == VERSION_DERIVED)
		return 0;
	return derive_waiting_note(work->batch->call.store, work->db, version.sequence, version.key,
		version.size, err);
}

/* The version shares the source's bytes and gets metadata of its own. A composite checksum is
 * dropped: it belongs to parts, which this version does not have. */
static void fill_version(
	const struct line_work *work, const struct version *source, struct version *out)
{
	*out = *source;
	out->bucket = work->bucket->id;
	out->key = work->line->path;
	out->is_marker = false;
	out->has_file_hash = true;
	out->file_hash = work->line->file;
	out->part_count = 0;
	if (source->checksum.type == CHECKSUM_COMPOSITE)
		out->checksum = (struct checksum){.algorithm = CHECKSUM_NONE};
	out->storage_class = STORAGE_STANDARD;
	out->acl = ACL_PRIVATE;
	out->modified_ms = work->now_ms;
	out->headers = make_headers(work, source);
	out->tags = (struct span){NULL, 0};
	random_bytes(out->id, VERSION_ID_BYTES);
	encode_hex(span_of(work->line->file.bytes, ETAG_HASH_BYTES), out->etag);
	memcpy(out->etag + 2 * ETAG_HASH_BYTES, "-1", sizeof("-1"));
}

static struct span make_headers(const struct line_work *work, const struct version *source)
{
	const struct batch_line *const line = work->line;
	struct object_header headers[2];
	size_t count = 0;
	char time[FILE_TIME_TEXT_BYTES];
	int64_t ms = 0;
	struct buffer blob;
	const struct span type = line->content_type.len > 0 || line->kind != BATCH_COPY
		? line->content_type
		: header_blob_find(source->headers, "content-type");
	if (type.len > 0)
		headers[count++] = (struct object_header){span_text("content-type"), type};
	if (find_time(line, source, &ms)) {
		file_time_print(ms, time);
		headers[count++] =
			(struct object_header){span_text(FILE_TIME_HEADER), span_text(time)};
	}
	buffer_init(&blob, LINE_HEADERS_MAX_BYTES);
	header_blob_write(headers, count, &blob);
	const struct span copy = buffer_failed(&blob) ? (struct span){NULL, 0}
						      : arena_copy(work->arena, buffer_span(&blob));
	buffer_release(&blob);
	return copy;
}

/* The modification time that the line or the source of a copy states. False: neither does. */
static bool find_time(const struct batch_line *line, const struct version *source, int64_t *out_ms)
{
	*out_ms = line->mtime_ms;
	if (line->has_mtime)
		return true;
	if (line->kind != BATCH_COPY || source->sequence == 0)
		return false;
	if (!file_time_parse(header_blob_find(source->headers, FILE_TIME_HEADER), out_ms))
		*out_ms = source->modified_ms;
	return true;
}

static void batch_wake_steps(struct call *call)
{
	const struct batch *const batch = (const struct batch *)call;
	if (!call->failed && batch->completes_publish)
		store_wake(call->store, STORE_STEP_WORK);
}
