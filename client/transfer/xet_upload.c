/* Files are uploaded in groups, each as large as one batch. For each group:
 *
 *   1. hash the files, or take their hashes from the cache;
 *   2. add all of them in a first batch: it succeeds for files that the server already has;
 *   3. for the others: list the chunks, and ask which of them the server has (chunk_search.h);
 *   4. plan the new xorbs (upload_plan.h), send them, and send a shard that describes files and
 *      xorbs;
 *   5. add these files in a second batch, where every line must succeed. */
#include "client/transfer/xet_upload.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "chunker/shard.h"
#include "client/local/chunk_search.h"
#include "client/remote/remote_hub.h"
#include "client/transfer/pool.h"
#include "client/transfer/upload_plan.h"
#include "client/transfer/xet_remote.h"
#include "client/transfer/xorb_body.h"

enum {
	XORB_MIN_BYTES = 8 * 1024 * 1024, /* xorbs are not made smaller to use more connections */
	/* for smaller files, questions cost more than sending the bytes */
	ASK_MIN_BYTES = 256 * 1024,
	GROUP_MAX_BYTES = 1 << 30, /* a group that has this many bytes gets no more files */
	/* a shard of this size describes no more xorbs; the server has just stored them anyway */
	SHARD_XORBS_BYTES = 32 * 1024 * 1024,
	NS_PER_MS = 1000000
};

struct group {
	const struct xet_upload *upload;
	const struct xet_upload_file *files;
	size_t count;
	struct hub_change *changes;
	struct file_chunks *chunks; /* without entries if the cache knew the file's hash */
	size_t *missing;            /* numbers of the files that the server lacks */
	size_t missing_count;
	struct file_chunks *lists; /* of the missing files; borrowed from chunks */
	const char **paths;        /* of the missing files */
	struct chunk_table *table;
	struct upload_plan plan;
	struct lock lock;          /* guards the members below */
	size_t next;               /* the piece to take next */
	struct xorb_body **spares; /* bodies that no thread uses: at most one per connection */
	size_t spare_count;
};

struct asker {
	struct xet_remote xet;
	struct chunk_table *table; /* collects the answers */
};

static size_t group_size(const struct xet_upload_file *files, size_t count);
static int upload_some(const struct xet_upload *upload, const struct xet_upload_file *files,
	size_t first, size_t count, struct error *err);
static int upload_group(struct group *group, size_t first, struct error *err);
static int run_pieces(struct group *group, size_t pieces, pool_piece_fn *piece, struct error *err);
static int xet_upload_hash_piece(void *job, struct remote *remote, struct error *err);
static size_t take_next(struct group *group, size_t count);
static int read_file(struct group *group, size_t number, struct remote *remote, struct error *err);
static void name_changes(struct group *group);
static int add_known(struct group *group, struct error *err);
static int send_missing(struct group *group, struct error *err);
static int xet_upload_search_piece(void *job, struct remote *remote, struct error *err);
static int xet_upload_ask(void *owner, const struct chunk_id *id, struct error *err);
static void make_plan(struct group *group);
static int xet_upload_xorb_piece(void *job, struct remote *remote, struct error *err);
static int send_xorb(
	struct group *group, size_t number, const struct xet_remote *xet, struct error *err);
static struct xorb_body *take_body(struct group *group);
static int put_xorb(struct xorb_body *body, size_t number, const struct xet_remote *xet,
	const struct chunk_id *hash, struct error *err);
static void give_back(struct group *group, struct xorb_body *body);
static int send_shard(const struct group *group, struct error *err);
static void describe_file(const struct group *group, size_t number, struct buffer *out);
static void describe_xorb(
	const struct group *group, const struct upload_xorb *xorb, struct buffer *out);
static int add_missing(struct group *group, struct error *err);
static int report_done(const struct group *group, size_t first, struct error *err);

int xet_upload(const struct xet_upload *upload, const struct xet_upload_file *files, size_t count,
	struct error *err)
{
	int result = 0;
	ASSERT(upload->parallel > 0 && upload->own != NULL && upload->access != NULL);
	for (size_t first = 0; first < count && result == 0;) {
		const size_t taken = group_size(files + first, count - first);
		result = upload_some(upload, files, first, taken, err);
		first += taken;
	}
	return result;
}

/* The number of files that form the next group: at least 1. */
static size_t group_size(const struct xet_upload_file *files, size_t count)
{
	uint64_t bytes = 0;
	size_t taken = 0;
	while (taken < count && taken < REMOTE_HUB_LINES_MAX && bytes < GROUP_MAX_BYTES) {
		struct file_facts facts = {0};
		struct error ignored = {0};
		file_facts_read(files[taken].path, &facts, &ignored);
		bytes += facts.size;
		taken++;
	}
	return taken;
}

static int upload_some(const struct xet_upload *upload, const struct xet_upload_file *files,
	size_t first, size_t count, struct error *err)
{
	ASSERT(count > 0 && count <= REMOTE_HUB_LINES_MAX);
	struct group group = {
		.upload = upload,
		.files = files + first,
		.count = count,
		.changes = memory_new_array(count, sizeof(*group.changes)),
		.chunks = memory_new_array(count, sizeof(*group.chunks)),
		.missing = memory_new_array(count, sizeof(*group.missing)),
		.lists = memory_new_array(count, sizeof(*group.lists)),
		.paths = memory_new_array(count, sizeof(*group.paths)),
		.table = chunk_table_new(),
		.spares = memory_new_array(upload->parallel + 1, sizeof(group.spares[0])),
	};
	lock_init(&group.lock, LOCK_TRANSFER_PARTS);
	const int result = upload_group(&group, first, err);
	for (size_t i = 0; i < count; i++)
		file_chunks_release(&group.chunks[i]);
	upload_plan_release(&group.plan);
	chunk_table_free(group.table);
	for (size_t i = 0; i < group.spare_count; i++)
		xorb_body_free(group.spares[i]);
	lock_release(&group.lock);
	free(group.spares);
	free(group.paths);
	free(group.lists);
	free(group.missing);
	free(group.chunks);
	free(group.changes);
	return result;
}

static int upload_group(struct group *group, size_t first, struct error *err)
{
	if (run_pieces(group, group->count, xet_upload_hash_piece, err) != 0)
		return -1;
	name_changes(group);
	if (add_known(group, err) != 0 ||
		(group->missing_count > 0 && send_missing(group, err) != 0))
		return -1;
	return report_done(group, first, err);
}

static int run_pieces(struct group *group, size_t pieces, pool_piece_fn *piece, struct error *err)
{
	const unsigned most = group->upload->parallel;
	const struct pool_params params = {.remote = group->upload->options,
		.own = group->upload->own,
		.threads = pieces < most ? (unsigned)pieces : most,
		.piece = piece,
		.job = group};
	group->next = 0;
	return pieces == 0 ? 0 : pool_run(&params, err);
}

static int xet_upload_hash_piece(void *job, struct remote *remote, struct error *err)
{
	struct group *const group = job;
	const size_t number = take_next(group, group->count);
	if (number == group->count)
		return 0;
	const char *const path = group->files[number].path;
	struct file_chunks *const chunks = &group->chunks[number];
	if (file_facts_read(path, &chunks->facts, err) != 0)
		return -1;
	if (!hash_cache_find(group->upload->cache, path, &chunks->facts, &chunks->hash) &&
		read_file(group, number, remote, err) != 0)
		return -1;
	return 1;
}

static size_t take_next(struct group *group, size_t count)
{
	lock_enter(&group->lock);
	const size_t number = group->next < count ? group->next++ : count;
	lock_leave(&group->lock);
	return number;
}

static int read_file(struct group *group, size_t number, struct remote *remote, struct error *err)
{
	const char *const path = group->files[number].path;
	struct file_chunks *const chunks = &group->chunks[number];
	const int64_t read_ms = clock_wall_ms();
	if (file_chunks_read_shown(
		    path, remote_stop(remote), group->upload->reading, chunks, err) != 0)
		return -1;
	hash_cache_add(group->upload->cache, path, &chunks->facts, &chunks->hash, read_ms);
	return 0;
}

static void name_changes(struct group *group)
{
	for (size_t i = 0; i < group->count; i++)
		group->changes[i] = (struct hub_change){
			.key = group->files[i].key,
			.hash = group->chunks[i].hash,
			.mtime_ms = group->chunks[i].facts.mtime_ns / NS_PER_MS,
		};
}

/* The first batch: adds the files that the server has, and lists the others as missing. */
static int add_known(struct group *group, struct error *err)
{
	ASSERT(group->missing_count == 0);
	if (remote_hub_change(group->upload->own, group->upload->bucket, group->changes,
		    group->count, err) != 0)
		return -1;
	for (size_t i = 0; i < group->count; i++)
		if (group->changes[i].failure.kind != ERROR_NONE)
			group->missing[group->missing_count++] = i;
		else
			progress_add(group->upload->progress, group->chunks[i].facts.size);
	return 0;
}

static int send_missing(struct group *group, struct error *err)
{
	uint64_t bytes = 0;
	if (run_pieces(group, group->missing_count, xet_upload_search_piece, err) != 0)
		return -1;
	make_plan(group);
	for (size_t i = 0; i < group->missing_count; i++)
		bytes += group->lists[i].facts.size;
	progress_add(group->upload->progress,
		bytes > group->plan.new_bytes ? bytes - group->plan.new_bytes : 0);
	if (run_pieces(group, group->plan.xorb_count, xet_upload_xorb_piece, err) != 0 ||
		send_shard(group, err) != 0)
		return -1;
	return add_missing(group, err);
}

/* Lists the chunks of a missing file, and finds out which of them the server has. */
static int xet_upload_search_piece(void *job, struct remote *remote, struct error *err)
{
	struct group *const group = job;
	const size_t at = take_next(group, group->missing_count);
	if (at == group->missing_count)
		return 0;
	const size_t number = group->missing[at];
	struct file_chunks *const chunks = &group->chunks[number];
	struct asker asker = {{group->upload->access, remote}, group->table};
	if (chunks->entries == NULL && read_file(group, number, remote, err) != 0)
		return -1;
	/* the file may have been read again just now */
	group->changes[number].hash = chunks->hash;
	group->changes[number].mtime_ms = chunks->facts.mtime_ns / NS_PER_MS;
	const struct chunk_search search = {.entries = chunks->entries,
		.count = chunks->count,
		.table = group->table,
		.ask = xet_upload_ask,
		.owner = &asker};
	if (chunks->facts.size >= ASK_MIN_BYTES && chunk_search(&search, err) != 0)
		return -1;
	return 1;
}

static int xet_upload_ask(void *owner, const struct chunk_id *id, struct error *err)
{
	const struct asker *const asker = owner;
	return xet_remote_ask(&asker->xet, id, asker->table, err);
}

/* Makes xorbs as large as allowed, but small enough to have one for each connection. */
static void make_plan(struct group *group)
{
	for (size_t i = 0; i < group->missing_count; i++) {
		group->lists[i] = group->chunks[group->missing[i]];
		group->paths[i] = group->files[group->missing[i]].path;
	}
	upload_plan_make(group->lists, group->missing_count, group->table, UPLOAD_XORB_MAX_BYTES,
		&group->plan);
	const uint64_t share = group->plan.new_bytes / group->upload->parallel + CHUNK_MAX_BYTES;
	if (share >= UPLOAD_XORB_MAX_BYTES || group->plan.new_bytes <= XORB_MIN_BYTES)
		return;
	upload_plan_release(&group->plan);
	upload_plan_make(group->lists, group->missing_count, group->table,
		share > XORB_MIN_BYTES ? share : XORB_MIN_BYTES, &group->plan);
}

static int xet_upload_xorb_piece(void *job, struct remote *remote, struct error *err)
{
	struct group *const group = job;
	const struct xet_remote xet = {group->upload->access, remote};
	const size_t number = take_next(group, group->plan.xorb_count);
	if (number == group->plan.xorb_count)
		return 0;
	if (send_xorb(group, number, &xet, err) != 0)
		return -1;
	progress_add(group->upload->progress, group->plan.xorbs[number].bytes);
	return 1;
}

static int send_xorb(
	struct group *group, size_t number, const struct xet_remote *xet, struct error *err)
{
	const struct chunk_id *const hash = &group->plan.xorbs[number].hash;
	const int known = xet_remote_has_xorb(xet, hash, err);
	if (known != 0)
		return known < 0 ? -1 : 0;
	struct xorb_body *const body = take_body(group);
	const int result = put_xorb(body, number, xet, hash, err);
	give_back(group, body);
	return result;
}

/* A spare body, or a new one. */
static struct xorb_body *take_body(struct group *group)
{
	struct xorb_body *body = NULL;
	lock_enter(&group->lock);
	if (group->spare_count > 0)
		body = group->spares[--group->spare_count];
	lock_leave(&group->lock);
	return body != NULL ? body : xorb_body_new(&group->plan, group->lists, group->paths);
}

/* If the server refuses the xorb, a file may have changed after it was hashed: then that is the
 * reason to report. */
static int put_xorb(struct xorb_body *body, size_t number, const struct xet_remote *xet,
	const struct chunk_id *hash, struct error *err)
{
	struct span bytes;
	struct error failure = {0};
	if (xorb_body_make(body, number, &bytes, err) != 0)
		return -1;
	if (xet_remote_put_xorb(xet, hash, bytes, &failure) == 0)
		return 0;
	if (failure.kind != ERROR_BUSY && xorb_body_check(body, number, err) != 0)
		return -1;
	*err = failure;
	return -1;
}

static void give_back(struct group *group, struct xorb_body *body)
{
	lock_enter(&group->lock);
	ASSERT(group->spare_count < group->upload->parallel);
	group->spares[group->spare_count++] = body;
	lock_leave(&group->lock);
}

static int send_shard(const struct group *group, struct error *err)
{
	const struct xet_remote xet = {group->upload->access, group->upload->own};
	struct buffer shard;
	buffer_init(&shard, SHARD_MAX_BYTES);
	shard_write_header(&shard, 0);
	for (size_t i = 0; i < group->missing_count; i++)
		describe_file(group, i, &shard);
	shard_write_bookend(&shard);
	for (size_t i = 0; i < group->plan.xorb_count && shard.len < SHARD_XORBS_BYTES; i++)
		describe_xorb(group, &group->plan.xorbs[i], &shard);
	shard_write_bookend(&shard);
	int result = buffer_check(&shard, "the description of an upload", err);
	if (result == 0)
		result = xet_remote_put_shard(&xet, buffer_span(&shard), err);
	buffer_release(&shard);
	return result;
}

static void describe_file(const struct group *group, size_t number, struct buffer *out)
{
	ASSERT(number < group->missing_count);
	const struct upload_terms *const own = &group->plan.files[number];
	struct shard_term *const terms = memory_new_array(own->count + 1, sizeof(*terms));
	struct chunk_id *const ranges = memory_new_array(own->count + 1, sizeof(*ranges));
	for (size_t i = 0; i < own->count; i++) {
		const struct upload_term *const term = &group->plan.terms[own->first + i];
		terms[i] = (struct shard_term){
			.xorb = term->is_new ? group->plan.xorbs[term->xorb].hash
					     : chunk_table_xorb_hash(group->table, term->xorb),
			.first = term->first,
			.end = term->end,
			.bytes = term->bytes,
		};
		ranges[i] = term->range;
	}
	shard_write_file(out, &group->lists[number].hash, terms, ranges, (uint32_t)own->count);
	free(ranges);
	free(terms);
}

static void describe_xorb(
	const struct group *group, const struct upload_xorb *xorb, struct buffer *out)
{
	struct chunk_entry *const entries = memory_new_array(xorb->count, sizeof(*entries));
	for (uint32_t i = 0; i < xorb->count; i++) {
		const struct upload_chunk *const chunk = &group->plan.chunks[xorb->first + i];
		entries[i] = group->lists[chunk->file].entries[chunk->index];
	}
	shard_write_xorb(out, &xorb->hash, entries, xorb->count);
	free(entries);
}

/* The second batch: now every line must succeed. */
static int add_missing(struct group *group, struct error *err)
{
	struct hub_change *const changes = memory_new_array(group->missing_count, sizeof(*changes));
	for (size_t i = 0; i < group->missing_count; i++)
		changes[i] = group->changes[group->missing[i]];
	int result = remote_hub_change(
		group->upload->own, group->upload->bucket, changes, group->missing_count, err);
	if (result == 0)
		result = remote_hub_check(changes, group->missing_count, err);
	free(changes);
	return result;
}

static int report_done(const struct group *group, size_t first, struct error *err)
{
	int result = 0;
	for (size_t i = 0; i < group->count && result == 0 && group->upload->done != NULL; i++)
		result = group->upload->done(group->upload->owner, first + i, err);
	return result;
}
