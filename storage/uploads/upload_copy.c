/*   start --> [room in the edges --helper: plan, then read a slice, again and again]
 *         --edges stored--> change: place, apply --COMMIT--> end
 *
 * The copy reads a slice at a time, so that other jobs of the helpers get their turn. Whole chunks
 * are taken by reference; the edges, which are parts of chunks, are stored again. A derived or
 * inline source has no chunks to refer to, so all of the copy is an edge. The source's packs stay
 * referred from the plan to the end (invariant 5). */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/memory.h"
#include "storage/objects/object_read.h"
#include "storage/objects/put_body.h"
#include "storage/uploads/upload_cut.h"
#include "storage/uploads/upload_internal.h"
#include "storage/versions/content_damage.h"
#include "storage/versions/content_proof.h"

enum { COPY_BLOCK_BYTES = 256 * 1024, COPY_SLICE_BYTES = 8 * 1024 * 1024, COPY_EDGES = 2 };

struct copy_edge { /* bytes [from, to) of the copy, which are stored again */
	uint64_t from;
	uint64_t to;
	struct put_body body; /* without an ingest there is no such edge */
};

struct upload_copy {
	struct call call;
	struct upload_ref ref; /* its texts are copied */
	uint32_t number;
	struct object source; /* its key is copied; other texts are not used */
	uint64_t offset;
	uint64_t length;
	struct upload_row upload;
	struct part_range range;
	struct upload_cut cut;
	struct pack_id *referred; /* packs */
	size_t referred_count;
	bool is_planned;
	bool is_known;             /* the digests are known, so nothing is read */
	struct stored_part stored; /* the digests; its segments are in `segments` */
	struct segment *segments;
	struct copy_edge edges[COPY_EDGES]; /* head, tail */
	/* Edges whose ingest is not done, and 1 for the stage that finishes them. */
	atomic_uint pending;
	struct body_source *reading;
	uint64_t at; /* bytes read */
	uint8_t *block;
	size_t untaken;         /* bytes in it that the edges have not taken yet */
	atomic_uint ready;      /* resume_when_ready */
	struct md5_stream *md5; /* NULL: no MD5 is wanted */
	struct xxh3_stream *xxh3;
	struct checksum_stream *checksum;
	struct upload_set_part row; /* as committed */
};

static void upload_copy_await_room(struct call *call);
static void resume_when_ready(struct upload_copy *copy);
static enum call_next upload_copy_read(struct call *call, struct error *err);
static int plan(struct upload_copy *copy, struct error *err);
static int find_source(struct upload_copy *copy, struct error *err);
static int load_source(struct upload_copy *copy, struct db *db, struct error *err);
static void refer_to_packs(struct upload_copy *copy);
static int check_damage(const struct upload_copy *copy, struct error *err);
static int look_up_digests(
	struct upload_copy *copy, struct db *db, const struct version *version, struct error *err);
static void look_up_version(struct upload_copy *copy, const struct version *version);
static void use_known_digests(struct upload_copy *copy, const struct upload_set_part *part,
	const struct checksum *checksum);
static int look_up_single(
	struct upload_copy *copy, struct db *db, const struct version *version, struct error *err);
static int look_up_mapped(struct upload_copy *copy, struct db *db, const struct version *version,
	struct span map, struct error *err);
static int open_edge(struct upload_copy *copy, struct copy_edge *edge, uint64_t from,
	uint64_t bytes, struct error *err);
static void upload_copy_has_room(void *owner);
static void upload_copy_edge_is_stored(void *owner);
static int open_reading(struct upload_copy *copy, struct error *err);
static enum sink_result read_slice(struct upload_copy *copy, struct error *err);
static int read_block(struct upload_copy *copy, struct error *err);
static enum sink_result feed(struct upload_copy *copy, struct span bytes, struct error *err);
static enum sink_result feed_edge(
	const struct copy_edge *edge, uint64_t at, struct span bytes, struct error *err);
static void conclude_digests(struct upload_copy *copy);
static void upload_copy_finish_edges(struct call *call);
static int upload_copy_place(struct call *call, struct error *err);
static int upload_copy_apply(struct call *call, struct db *db, struct error *err);
static void join_segments(struct upload_copy *copy);
static size_t add_edge(struct upload_copy *copy, size_t count, const struct copy_edge *edge);
static size_t add_segments(
	struct upload_copy *copy, size_t count, const struct segment *segments, size_t more);
static enum call_next upload_copy_settle_edges(struct call *call);
static void upload_copy_release(struct call *call);

static const struct call_kind copy_kind = {
	.stages = {{.begin = upload_copy_await_room}, {.help = upload_copy_read},
		{.begin = upload_copy_finish_edges},
		{.place = upload_copy_place,
			.apply = upload_copy_apply,
			.applied = upload_copy_settle_edges}},
	.release = upload_copy_release,
};

struct call *upload_copy_call(struct store *store, const struct upload_copy_params *params)
{
	ASSERT(params->source != NULL);
	struct upload_copy *const copy =
		call_new(sizeof(*copy), &copy_kind, store, UPLOAD_CALL_ARENA_BYTES);
	copy->ref = upload_ref_copy(&params->ref, copy->call.arena);
	copy->number = params->number;
	copy->source = (struct object){.sequence = params->source->sequence,
		.key = arena_copy(copy->call.arena, params->source->key)};
	copy->offset = params->offset;
	copy->length = params->length;
	atomic_store(&copy->ready, 1);
	return &copy->call;
}

struct uploaded_part upload_copy_result(const struct call *call)
{
	const struct upload_copy *const copy = (const struct upload_copy *)call;
	return uploaded_part_of(&copy->row, &copy->upload.checksum);
}

static void upload_copy_await_room(struct call *call)
{
	resume_when_ready((struct upload_copy *)call);
}

/* Two events must come before the next slice: the stage that found an edge full has ended, and the
 * edge has room again. The one that comes last resumes the call. At first there is room. */
static void resume_when_ready(struct upload_copy *copy)
{
	if (atomic_fetch_add(&copy->ready, 1) == 0)
		return;
	atomic_store(&copy->ready, 0);
	call_resume(&copy->call, NULL);
}

static enum call_next upload_copy_read(struct call *call, struct error *err)
{
	struct upload_copy *const copy = (struct upload_copy *)call;
	if (!copy->is_planned && plan(copy, err) != 0)
		return CALL_FAILS;
	if (copy->is_known)
		return CALL_NEXT;
	const enum sink_result result = read_slice(copy, err);
	if (result != SINK_TAKEN)
		return result == SINK_WAIT ? CALL_FIRST : CALL_FAILS;
	if (copy->at < copy->length)
		return CALL_AGAIN;
	ASSERT(copy->at == copy->length);
	conclude_digests(copy);
	return CALL_NEXT;
}

static int plan(struct upload_copy *copy, struct error *err)
{
	copy->is_planned = true;
	if (find_source(copy, err) != 0)
		return -1;
	if (copy->range.segment_count == 0)
		copy->cut.head = copy->length;
	else if (upload_cut_range(store_packs(copy->call.store), &copy->range, &copy->cut, err) !=
		0)
		return -1;
	if (open_edge(copy, &copy->edges[0], 0, copy->cut.head, err) != 0 ||
		open_edge(copy, &copy->edges[1], copy->length - copy->cut.tail, copy->cut.tail,
			err) != 0)
		return -1;
	/* parts end where chunks end */
	ASSERT(!copy->is_known || copy->cut.head + copy->cut.tail == 0);
	return copy->is_known ? 0 : open_reading(copy, err);
}

static int find_source(struct upload_copy *copy, struct error *err)
{
	struct db *const db = store_snapshot_take(copy->call.store, err);
	if (db == NULL)
		return -1;
	const int result = load_source(copy, db, err);
	store_snapshot_give(copy->call.store, db);
	return result;
}

/* In a snapshot: finds the source. Inline bytes and derived versions have no chunks to refer to, so
 * all of the copy is an edge. */
static int load_source(struct upload_copy *copy, struct db *db, struct error *err)
{
	struct version version;
	if (upload_read_open(db, &copy->ref, NULL, &copy->upload, err) != 0 ||
		upload_part_check(&copy->upload, copy->number, CHECKSUM_NONE, err) != 0)
		return -1;
	const int found = version_find_sequence(db, copy->source.sequence, NULL, &version, err);
	if (found != 1)
		return found < 0 ? -1 : object_no_key(copy->source.key, err);
	if (copy->offset > version.size || copy->length > version.size - copy->offset)
		return error_set(err, ERROR_RANGE,
			"The range lies outside the source object of %llu bytes.",
			(unsigned long long)version.size);
	if (version.kind == VERSION_INLINE || version.kind == VERSION_DERIVED)
		return 0;
	copy->range = (struct part_range){.offset = copy->offset, .length = copy->length};
	if (part_set_load(
		    db, version.part_set, version.size, version.contents, &copy->range, err) != 0)
		return -1;
	refer_to_packs(copy);
	return check_damage(copy, err) != 0 ? -1 : look_up_digests(copy, db, &version, err);
}

/* Within the snapshot, because rows of the copy will name these packs again. */
static void refer_to_packs(struct upload_copy *copy)
{
	if (copy->range.segment_count == 0)
		return;
	ASSERT(copy->referred == NULL);
	copy->referred = memory_new_array(copy->range.segment_count, sizeof(*copy->referred));
	for (; copy->referred_count < copy->range.segment_count; copy->referred_count++) {
		struct pack_id *const pack = &copy->referred[copy->referred_count];
		*pack = copy->range.segments[copy->referred_count].pack;
		pack_store_refer_again(store_packs(copy->call.store), pack);
	}
}

/* Chunks that are taken by reference are not read, so only known damage is found. */
static int check_damage(const struct upload_copy *copy, struct error *err)
{
	for (size_t i = 0; i < copy->range.segment_count; i++) {
		const struct segment *segment = &copy->range.segments[i];
		const struct pack_run run = {
			.pack = segment->pack, .first = segment->first, .chunks = segment->count};
		if (pack_store_is_damaged(store_packs(copy->call.store), &run))
			return content_damage_error(copy->source.key, err);
	}
	return 0;
}

static int look_up_digests(
	struct upload_copy *copy, struct db *db, const struct version *version, struct error *err)
{
	struct span map;
	struct db_statement *statement = NULL;
	if (version->kind == VERSION_SINGLE) {
		look_up_version(copy, version);
		return 0;
	}
	const int got =
		upload_set_map(db, version->part_set, version->contents, &map, &statement, err);
	if (got == 1)
		return look_up_single(copy, db, version, err);
	if (got != 0)
		return -1;
	const int result = look_up_mapped(copy, db, version, map, err);
	db_reset(statement);
	return result;
}

/* The range may be a whole single PUT, whose version has the digests. Its ETag is the MD5, unless
 * it has another form. */
static void look_up_version(struct upload_copy *copy, const struct version *version)
{
	struct upload_set_part part = {
		.number = 1, .size = version->size, .digest = version->digest};
	if (copy->offset != 0 || copy->length != version->size || !version->has_digest)
		return;
	part.has_md5 = decode_hex(span_text(version->etag), part.md5, sizeof(part.md5));
	use_known_digests(copy, &part, &version->checksum);
}

static void use_known_digests(struct upload_copy *copy, const struct upload_set_part *part,
	const struct checksum *checksum)
{
	if (checksum->algorithm != copy->upload.checksum.algorithm ||
		(!part->has_md5 && !copy->upload.fast_etags))
		return;
	copy->is_known = true;
	copy->stored.has_md5 = part->has_md5;
	memcpy(copy->stored.md5, part->md5, sizeof(part->md5));
	copy->stored.digest = part->digest;
	copy->stored.checksum = *checksum;
}

/* The same in a catalog of version 0.1, in which the part has a row. It was proven when the
 * segments were loaded. */
static int look_up_single(
	struct upload_copy *copy, struct db *db, const struct version *version, struct error *err)
{
	struct upload_set_part part;
	if (copy->offset != 0 || copy->length != version->size)
		return 0;
	struct db_statement *const scan = upload_set_scan(db, version->part_set, 1, err);
	const int got = db_step(scan, err);
	if (got == 1)
		upload_set_read(scan, &part);
	db_reset(scan);
	if (got == 1)
		use_known_digests(copy, &part, &version->checksum);
	return got < 0 ? -1 : 0;
}

/* The range may be exactly one part of a multipart object. */
static int look_up_mapped(struct upload_copy *copy, struct db *db, const struct version *version,
	struct span map, struct error *err)
{
	struct upload_set_part part;
	const size_t index = part_map_find(map, copy->offset);
	if (copy->length == 0 || index == part_map_count(map) ||
		version->part_count == 0) /* 0: the parts have checksums of another algorithm */
		return 0;
	const struct part_map_entry entry = part_map_entry(map, index);
	if (entry.start != copy->offset || entry.end != copy->offset + copy->length)
		return 0;
	if (upload_set_find(db, version->part_set, &entry, &part, err) != 0)
		return -1;
	const struct checksum checksum = upload_set_checksum(&part, version->checksum.algorithm);
	use_known_digests(copy, &part, &checksum);
	return 0;
}

static int open_edge(struct upload_copy *copy, struct copy_edge *edge, uint64_t from,
	uint64_t bytes, struct error *err)
{
	ASSERT(from <= copy->length && bytes <= copy->length - from);
	edge->from = from;
	edge->to = from + bytes;
	if (bytes == 0)
		return 0;
	const struct ingest_options options = {.packs = store_packs(copy->call.store),
		.never_inline = true,
		.room = upload_copy_has_room,
		.done = upload_copy_edge_is_stored,
		.owner = copy};
	edge->body.ingest = ingest_open(&options, err);
	return edge->body.ingest == NULL ? -1 : 0;
}

static void upload_copy_has_room(void *owner)
{
	resume_when_ready(owner);
}

static void upload_copy_edge_is_stored(void *owner)
{
	struct upload_copy *const copy = owner;
	struct error err = {0};
	bool failed = false;
	const unsigned pending = atomic_fetch_sub(&copy->pending, 1);
	ASSERT(pending > 0);
	if (pending > 1)
		return;
	for (size_t i = 0; i < COPY_EDGES && !failed; i++)
		if (copy->edges[i].body.ingest != NULL)
			failed = ingest_outcome(copy->edges[i].body.ingest, &err) != 0;
	call_resume(&copy->call, failed ? &err : NULL);
}

static int open_reading(struct upload_copy *copy, struct error *err)
{
	if (!copy->upload.fast_etags)
		copy->md5 = md5_stream_new();
	copy->xxh3 = xxh3_stream_new();
	copy->checksum = checksum_stream_new(copy->upload.checksum.algorithm);
	copy->block = memory_new(COPY_BLOCK_BYTES);
	copy->reading =
		object_open(copy->call.store, &copy->source, copy->offset, copy->length, err);
	return copy->reading == NULL ? -1 : 0;
}

static enum sink_result read_slice(struct upload_copy *copy, struct error *err)
{
	for (size_t read = 0; read < COPY_SLICE_BYTES && copy->at < copy->length;) {
		if (copy->untaken == 0 && read_block(copy, err) != 0)
			return SINK_FAILED;
		const enum sink_result result =
			feed(copy, span_of(copy->block, copy->untaken), err);
		if (result != SINK_TAKEN)
			return result;
		read += copy->untaken;
		copy->untaken = 0;
	}
	return SINK_TAKEN;
}

static int read_block(struct upload_copy *copy, struct error *err)
{
	const ptrdiff_t got =
		copy->reading->read(copy->reading, copy->block, COPY_BLOCK_BYTES, err);
	ASSERT(copy->untaken == 0 && got <= COPY_BLOCK_BYTES);
	copy->untaken = got > 0 ? (size_t)got : 0;
	if (got != 0)
		return got < 0 ? -1 : 0;
	return error_set(err, ERROR_CORRUPT, "The source of a copy ended after %llu of %llu bytes.",
		(unsigned long long)copy->at, (unsigned long long)copy->length);
}

static enum sink_result feed(struct upload_copy *copy, struct span bytes, struct error *err)
{
	for (size_t i = 0; i < COPY_EDGES; i++) {
		const enum sink_result result = feed_edge(&copy->edges[i], copy->at, bytes, err);
		ASSERT(result != SINK_WAIT || i == 0);
		if (result != SINK_TAKEN)
			return result;
	}
	if (copy->md5 != NULL)
		md5_stream_add(copy->md5, bytes);
	xxh3_stream_add(copy->xxh3, bytes);
	checksum_stream_add(copy->checksum, bytes);
	copy->at += bytes.len;
	return SINK_TAKEN;
}

/* Gives an edge its share of the bytes [at, at + len). An edge that is less than a chunk never
 * waits; one that is the whole copy may. */
static enum sink_result feed_edge(
	const struct copy_edge *edge, uint64_t at, struct span bytes, struct error *err)
{
	const uint64_t from = edge->from > at ? edge->from : at;
	const uint64_t end = at + bytes.len;
	const uint64_t to = edge->to < end ? edge->to : end;
	if (edge->body.ingest == NULL || from >= to)
		return SINK_TAKEN;
	return ingest_write(edge->body.ingest,
		span_slice(bytes, (size_t)(from - at), (size_t)(to - from)), err);
}

static void conclude_digests(struct upload_copy *copy)
{
	copy->stored.has_md5 = copy->md5 != NULL;
	if (copy->md5 != NULL)
		md5_stream_result(copy->md5, copy->stored.md5);
	copy->stored.digest = xxh3_stream_result(copy->xxh3);
	checksum_stream_result(copy->checksum, &copy->stored.checksum);
}

/* The last ingest that is done resumes the call, or this function when it is last. */
static void upload_copy_finish_edges(struct call *call)
{
	struct upload_copy *const copy = (struct upload_copy *)call;
	unsigned count = 1;
	for (size_t i = 0; i < COPY_EDGES; i++)
		count += copy->edges[i].body.ingest != NULL;
	atomic_store(&copy->pending, count);
	for (size_t i = 0; i < COPY_EDGES; i++)
		if (copy->edges[i].body.ingest != NULL)
			ingest_finish(copy->edges[i].body.ingest);
	upload_copy_edge_is_stored(copy);
}

static int upload_copy_place(struct call *call, struct error *err)
{
	struct upload_copy *const copy = (struct upload_copy *)call;
	for (size_t i = 0; i < COPY_EDGES; i++)
		if (copy->edges[i].body.ingest != NULL &&
			put_body_place(&copy->edges[i].body, err) != 0)
			return -1;
	return 0;
}

static int upload_copy_apply(struct call *call, struct db *db, struct error *err)
{
	struct upload_copy *const copy = (struct upload_copy *)call;
	struct upload_row upload;
	if (upload_read_open(db, &copy->ref, NULL, &upload, err) != 0)
		return -1;
	for (size_t i = 0; i < COPY_EDGES; i++)
		if (copy->edges[i].body.ingest != NULL &&
			put_body_record(&copy->edges[i].body, db, err) != 0)
			return -1;
	join_segments(copy);
	upload_set_describe(&copy->stored, copy->number, store_now_ms(call->store), &copy->row);
	if (upload_set_put(db, upload.part_set, &copy->stored, &copy->row, err) != 0)
		return -1;
	return upload_row_revise(db, upload.number, err);
}

/* After the edges were placed. */
static void join_segments(struct upload_copy *copy)
{
	size_t count = add_edge(copy, 0, &copy->edges[0]);
	count = add_segments(copy, count, copy->cut.segments, copy->cut.segment_count);
	count = add_edge(copy, count, &copy->edges[1]);
	copy->stored.segments = copy->segments;
	copy->stored.segment_count = count;
	copy->stored.size = copy->length;
}

static size_t add_edge(struct upload_copy *copy, size_t count, const struct copy_edge *edge)
{
	if (edge->body.ingest == NULL)
		return count;
	const struct stored_part *const part = ingest_part(edge->body.ingest);
	return add_segments(copy, count, part->segments, part->segment_count);
}

static size_t add_segments(
	struct upload_copy *copy, size_t count, const struct segment *segments, size_t more)
{
	if (more == 0)
		return count;
	copy->segments = memory_grow(copy->segments, count + more, sizeof(*copy->segments));
	memcpy(copy->segments + count, segments, more * sizeof(*segments));
	return count + more;
}

static enum call_next upload_copy_settle_edges(struct call *call)
{
	struct upload_copy *const copy = (struct upload_copy *)call;
	for (size_t i = 0; i < COPY_EDGES; i++)
		if (copy->edges[i].body.ingest != NULL)
			put_body_settle(&copy->edges[i].body, &call->change);
	/* rows may come back, so the packs stay referred until the process ends */
	if (call->change.in_doubt)
		copy->referred_count = 0;
	return call->failed ? CALL_FAILS : CALL_NEXT;
}

static void upload_copy_release(struct call *call)
{
	struct upload_copy *const copy = (struct upload_copy *)call;
	for (size_t i = 0; i < copy->referred_count; i++)
		pack_store_unrefer(store_packs(call->store), &copy->referred[i]);
	for (size_t i = 0; i < COPY_EDGES; i++)
		ingest_free(copy->edges[i].body.ingest);
	if (copy->reading != NULL)
		copy->reading->close(copy->reading);
	md5_stream_free(copy->md5);
	xxh3_stream_free(copy->xxh3);
	checksum_stream_free(copy->checksum);
	free(copy->block);
	free(copy->referred);
	free(copy->range.segments);
	free(copy->segments);
}
