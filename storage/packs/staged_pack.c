/* Shared packs of a far place, from their first row to the seal (pack_store.h). The rows of a pack
 * are the bytes of its file in order, cut anywhere. So a start that has the rows has the file, and
 * a stored pack has its chunks at the numbers that the catalog knows. */
#include "storage/packs/pack_store_parts.h"

#include "base/memory.h"

/* What the catalog keeps for a place that does not answer; then small uploads are refused. */
static const uint64_t STAGED_MAX_BYTES = UINT64_C(1) << 30;

static int stage_from(struct pack_store *store, struct shared_pack *pack, uint8_t *into,
	struct pack_staged *out, struct error *err);
static bool is_whole(const struct shared_pack *pack);
static int append_all(struct pack_writer *writer, struct pack_bytes *bytes, struct error *err);
static struct pack_index *walk(
	struct pack_writer *writer, const struct pack_record *record, struct error *err);
static void adopt(struct pack_store *store, const struct pack_record *record,
	struct pack_writer *writer, struct pack_index *index);

bool pack_store_is_far(const struct pack_store *store)
{
	return backend_is_far(store->backend);
}

int staged_pack_check_room(struct pack_store *store, struct error *err)
{
	const uint64_t waiting = atomic_load(&store->shared.staged_bytes);
	if (waiting < STAGED_MAX_BYTES)
		return 0;
	return error_set(err, ERROR_BUSY,
		"%llu MiB of small uploads wait for the store of packs, which does not take them.",
		(unsigned long long)(waiting >> 20));
}

void staged_pack_cut(struct pack_store *store, struct shared_pack *pack)
{
	if (pack->staged <= pack->committed.length)
		return;
	atomic_fetch_sub(&store->shared.staged_bytes, pack->staged - pack->committed.length);
	pack->staged = pack->committed.length;
}

void staged_pack_forget(struct pack_store *store, struct shared_pack *pack)
{
	atomic_fetch_sub(&store->shared.staged_bytes, pack->staged);
	pack->staged = 0;
}

int pack_store_shared_stage(
	struct pack_store *store, uint8_t *into, struct pack_staged *out, struct error *err)
{
	if (!pack_store_is_far(store))
		return 0;
	for (struct shared_pack *pack = store->shared.first; pack != NULL; pack = pack->next)
		if (pack->staged < pack->now.length)
			return stage_from(store, pack, into, out, err);
	return 0;
}

struct shared_pack *pack_store_shared_take(struct pack_store *store, int64_t before_ms)
{
	struct shared_pack *const open = store->shared.open;
	if (open != NULL && open->created_ms < before_ms)
		pack_store_shared_seal(store);
	for (struct shared_pack *pack = store->shared.first; pack != NULL; pack = pack->next) {
		if (!pack->is_closed || pack->is_storing || !is_whole(pack))
			continue;
		pack->is_storing = true;
		return pack;
	}
	return NULL;
}

const struct pack_id *pack_store_shared_id(const struct shared_pack *pack)
{
	return &pack->writer->pack;
}

int pack_store_shared_store(struct shared_pack *pack, struct error *err)
{
	return pack_writer_sync(pack->writer, err);
}

void pack_store_shared_give(struct shared_pack *pack, bool is_stored)
{
	ASSERT(pack->is_storing && is_whole(pack));
	pack->is_storing = false;
	if (is_stored)
		pack->now.state = PACK_SEALED;
}

bool pack_store_shared_waits(struct pack_store *store)
{
	return atomic_load(&store->shared.staged_bytes) > 0;
}

int pack_store_shared_restore(struct pack_store *store, const struct pack_record *record,
	struct pack_bytes *bytes, struct error *err)
{
	ASSERT(record->state == PACK_OPEN);
	struct pack_writer *const writer =
		pack_writer_open_staged(store->backend, &record->id, err);
	if (writer == NULL)
		return -1;
	struct pack_index *const index =
		append_all(writer, bytes, err) == 0 ? walk(writer, record, err) : NULL;
	if (index == NULL) {
		pack_writer_remove(writer);
		return -1;
	}
	adopt(store, record, writer, index);
	return 0;
}

static int stage_from(struct pack_store *store, struct shared_pack *pack, uint8_t *into,
	struct pack_staged *out, struct error *err)
{
	const uint64_t left = pack->now.length - pack->staged;
	const size_t len = left < PACK_STAGED_BYTES ? (size_t)left : PACK_STAGED_BYTES;
	const struct iovec part = {.iov_base = into, .iov_len = len};
	struct backend_file *const file = pack->writer->file;
	if (file->backend->ops->read(file, &part, 1, pack->staged, err) != 0)
		return -1;
	*out = (struct pack_staged){
		.pack = pack->writer->pack, .start = pack->staged, .bytes = span_of(into, len)};
	pack->staged += len;
	atomic_fetch_add(&store->shared.staged_bytes, len);
	return 1;
}

/* Whether the catalog has each byte of the pack. */
static bool is_whole(const struct shared_pack *pack)
{
	return pack->committed.length > 0 && pack->committed.length == pack->now.length;
}

static int append_all(struct pack_writer *writer, struct pack_bytes *bytes, struct error *err)
{
	struct span piece;
	int got;
	while ((got = bytes->next(bytes, &piece, err)) == 1)
		if (pack_writer_append(writer, piece, err) != 0)
			return -1;
	return got;
}

static struct pack_index *walk(
	struct pack_writer *writer, const struct pack_record *record, struct error *err)
{
	if (writer->length != record->length) {
		error_set(err, ERROR_CORRUPT, "its rows have %llu bytes, but %llu are committed.",
			(unsigned long long)writer->length, (unsigned long long)record->length);
		return NULL;
	}
	struct pack_index *const index =
		pack_index_walk(writer->file, &record->id, record->length, err);
	if (index == NULL || index->count == record->chunks)
		return index;
	error_set(err, ERROR_CORRUPT, "its footers count %u chunks, but %u are committed.",
		index->count, record->chunks);
	pack_index_free(index);
	return NULL;
}

static void adopt(struct pack_store *store, const struct pack_record *record,
	struct pack_writer *writer, struct pack_index *index)
{
	struct shared_pack *const pack = shared_pack_add(store, writer, record->created_ms);
	const struct shared_mark mark = {
		.length = record->length, .chunks = record->chunks, .state = PACK_OPEN};
	pack->now = mark;
	pack->reported = mark;
	pack->committed = mark;
	pack->staged = record->length;
	pack->is_closed = true;
	atomic_fetch_add(&store->shared.staged_bytes, record->length);
	pack_cache_add(store->cache, &record->id, record->length, index, PACK_CACHE_UNSAVED);
}
