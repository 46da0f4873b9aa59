/* write ... --> the ingest ends --> place, apply: rows written --> COMMIT
 *
 * The steps of a put (object_put.c), but the caller's thread waits for each, because background
 * work may block. A hidden version gets a row of `scratch_versions` in the same change, so that no
 * version is ever without something that names it. */
#include "storage/objects/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread/lock.h"
#include "storage/buckets/bucket_row.h"
#include "storage/core/store.h"
#include "storage/objects/put_body.h"
#include "storage/versions/part.h"
#include "storage/versions/scratch_row.h"
#include "storage/versions/version.h"

enum { STORE_PIECE_BYTES = 1024 * 1024 };

struct scratch_put {
	struct change change; /* must be the first member */
	struct store *store;
	struct put_body body;
	struct lock lock;
	struct lock_condition wake;
	unsigned rooms;           /* guarded by lock; counts calls of `room` */
	bool is_ingested;         /* guarded by lock */
	struct bucket_ref bucket; /* for a hidden version only its id is used */
	bool is_hidden;
	struct version version;
};

static int store_path(
	struct scratch_put *put, const char *path, int64_t *out_version, struct error *err);
static int store_file(struct scratch_put *put, const char *path, struct error *err);
static void scratch_has_room(void *owner);
static void scratch_ingested(void *owner);
static int write_file(
	struct scratch_put *put, int fd, uint64_t size, const char *path, struct error *err);
static int write_piece(struct scratch_put *put, struct span piece, struct error *err);
static int finish(struct scratch_put *put, struct error *err);
static int scratch_place(struct change *change, struct error *err);
static int scratch_apply(struct change *change, struct db *db, struct error *err);
static void fill_version(struct scratch_put *put);
static int add_hidden(struct scratch_put *put, struct db *db, struct error *err);
static int push_version(struct scratch_put *put, struct db *db, struct error *err);

int scratch_store(struct store *store, const char *path, struct bucket_ref bucket, struct span key,
	int64_t *out_version, struct error *err)
{
	struct scratch_put put = {.store = store, .bucket = bucket, .version = {.key = key}};
	return store_path(&put, path, out_version, err);
}

int scratch_store_hidden(struct store *store, const char *path, int64_t bucket, struct span key,
	int64_t *out_version, struct error *err)
{
	struct scratch_put put = {.store = store,
		.bucket = {.id = bucket},
		.is_hidden = true,
		.version = {.key = key}};
	return store_path(&put, path, out_version, err);
}

static int store_path(
	struct scratch_put *put, const char *path, int64_t *out_version, struct error *err)
{
	lock_init(&put->lock, LOCK_SCRATCH);
	lock_condition_init(&put->wake);
	const int result = store_file(put, path, err);
	*out_version = put->version.sequence;
	lock_condition_release(&put->wake);
	lock_release(&put->lock);
	return result;
}

static int store_file(struct scratch_put *put, const char *path, struct error *err)
{
	const struct file_ops *const files = store_files(put->store);
	const struct ingest_options options = {.packs = store_packs(put->store),
		.checksum = put->is_hidden ? CHECKSUM_NONE : CHECKSUM_CRC64NVME,
		.room = scratch_has_room,
		.done = scratch_ingested,
		.owner = put};
	uint64_t size = 0;
	if (file_size(path, &size, err) != 0)
		return -1;
	const int fd = files->open(files, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set_errno(err, "%s: cannot be opened", path);
	int result = -1;
	put->body.ingest = ingest_open(&options, err);
	if (put->body.ingest != NULL && write_file(put, fd, size, path, err) == 0)
		result = finish(put, err);
	ingest_free(put->body.ingest);
	close(fd);
	return result;
}

static void scratch_has_room(void *owner)
{
	struct scratch_put *const put = owner;
	lock_enter(&put->lock);
	put->rooms++;
	lock_signal(&put->wake);
	lock_leave(&put->lock);
}

static void scratch_ingested(void *owner)
{
	struct scratch_put *const put = owner;
	lock_enter(&put->lock);
	put->is_ingested = true;
	lock_signal(&put->wake);
	lock_leave(&put->lock);
}

static int write_file(
	struct scratch_put *put, int fd, uint64_t size, const char *path, struct error *err)
{
	const struct file_ops *const files = store_files(put->store);
	uint8_t *const piece = memory_new(STORE_PIECE_BYTES);
	int result = 0;
	for (uint64_t at = 0; result == 0 && at < size;) {
		const size_t len =
			size - at < STORE_PIECE_BYTES ? (size_t)(size - at) : STORE_PIECE_BYTES;
		const struct iovec into = {.iov_base = piece, .iov_len = len};
		result = file_read_at(files, fd, into, (off_t)at, path, err);
		if (result == 0)
			result = write_piece(put, span_of(piece, len), err);
		at += len;
	}
	free(piece);
	return result;
}

static int write_piece(struct scratch_put *put, struct span piece, struct error *err)
{
	for (;;) {
		lock_enter(&put->lock);
		const unsigned before = put->rooms;
		lock_leave(&put->lock);
		const enum sink_result result = ingest_write(put->body.ingest, piece, err);
		if (result != SINK_WAIT)
			return result == SINK_TAKEN ? 0 : -1;
		lock_enter(&put->lock);
		while (put->rooms == before)
			lock_wait(&put->lock, &put->wake);
		lock_leave(&put->lock);
	}
}

static int finish(struct scratch_put *put, struct error *err)
{
	ASSERT(put->change.apply == NULL);
	ingest_finish(put->body.ingest);
	lock_enter(&put->lock);
	while (!put->is_ingested)
		lock_wait(&put->lock, &put->wake);
	lock_leave(&put->lock);
	if (ingest_outcome(put->body.ingest, err) != 0)
		return -1;
	put->change.place = scratch_place;
	put->change.apply = scratch_apply;
	const int result = committer_run(store_committer(put->store), &put->change, err);
	put_body_settle(&put->body, &put->change);
	return result;
}

static int scratch_place(struct change *change, struct error *err)
{
	return put_body_place(&((struct scratch_put *)change)->body, err);
}

static int scratch_apply(struct change *change, struct db *db, struct error *err)
{
	struct scratch_put *const put = (struct scratch_put *)change;
	const struct stored_part *const part = ingest_part(put->body.ingest);
	if (put_body_record(&put->body, db, err) != 0)
		return -1;
	fill_version(put);
	if ((put->is_hidden ? add_hidden : push_version)(put, db, err) != 0)
		return -1;
	return part->is_inline ? part_inline_add(db, put->version.sequence, part->inline_bytes, err)
			       : part_single_add(db, put->version.part_set, part, err);
}

static void fill_version(struct scratch_put *put)
{
	const struct stored_part *const part = ingest_part(put->body.ingest);
	struct version *const version = &put->version;
	version->kind = part->is_inline ? VERSION_INLINE : VERSION_SINGLE;
	version->size = part->size;
	version->has_digest = true;
	version->digest = part->digest;
	version->has_file_hash = true;
	version->file_hash = part->file_hash;
	version->checksum = part->checksum;
	version->modified_ms = store_now_ms(put->store);
	version->contents = part->is_inline
		? part_inline_contents(part->inline_bytes)
		: part_single_contents(part->segments, part->segment_count);
	random_bytes(version->id, VERSION_ID_BYTES);
	encode_hex(span_of(part->digest.bytes, sizeof(part->digest.bytes)), version->etag);
	memcpy(version->etag + 2 * sizeof(part->digest.bytes), "-d", sizeof("-d"));
}

static int add_hidden(struct scratch_put *put, struct db *db, struct error *err)
{
	put->version.bucket = put->bucket.id;
	return version_add_hidden(db, &put->version, err) != 0
		? -1
		: scratch_row_add(db, put->version.sequence, err);
}

static int push_version(struct scratch_put *put, struct db *db, struct error *err)
{
	struct bucket bucket;
	struct version current;
	if (bucket_row_settings(db, put->bucket, &bucket, err) != 0)
		return -1;
	put->version.bucket = bucket.id;
	const int found =
		version_find_current(db, bucket.id, put->version.key, NULL, &current, err);
	return found < 0 ? -1
			 : version_push(db, bucket.versioning, found == 1 ? &current : NULL,
				   &put->version, err);
}
