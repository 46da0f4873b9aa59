/* Start: what lies in the backend is brought in line with what the catalog names. */
#include "storage/pack_store_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct pack_recovery {
	struct pack_store *store;
	struct pack_id *indexed; /* packs with a sidecar, sorted after listing */
	size_t indexed_count;
	size_t indexed_capacity;
};

static int pack_id_compare(const void *const a, const void *const b)
{
	return memcmp(a, b, sizeof(struct pack_id));
}

static void recovery_note_index(struct pack_recovery *const recovery, const struct pack_id *const pack)
{
	if (recovery->indexed_count == recovery->indexed_capacity) {
		recovery->indexed_capacity = recovery->indexed_capacity == 0 ? 64 : 2 * recovery->indexed_capacity;
		recovery->indexed = memory_grow(recovery->indexed, recovery->indexed_capacity, sizeof *recovery->indexed);
	}
	recovery->indexed[recovery->indexed_count++] = *pack;
}

/* Half-written sidecars carry the sidecar's name and ".tmp-". Names of another shape are none of ours and stay. */
static bool is_leftover(const char *const name)
{
	return strlen(name) > PACK_ID_TEXT_BYTES && strstr(name, ".tmp-") != NULL;
}

static int recovery_take_name(void *const taker, const char *const name, struct error *const err)
{
	struct pack_recovery *const recovery = taker;
	struct pack_store *const store = recovery->store;
	struct pack_id pack;
	enum pack_file_kind kind;
	const bool is_ours = pack_format_parse_name(name, &pack, &kind);
	if (is_ours && pack_cache_knows(store->cache, &pack)) {
		if (kind == PACK_FILE_INDEX)
			recovery_note_index(recovery, &pack);
		return 0;
	}
	if (!is_ours && !is_leftover(name))
		return 0;
	const struct log_field fields[] = { log_text("name", name) };
	log_event(store->log, LOG_INFO, NULL, "orphan_removed", fields, 1);
	return store->backend->ops->remove(store->backend, name, err); /* invariant 4 */
}

static void recovery_complain(struct pack_store *const store, const enum log_level level, const struct pack_id *const pack, struct error *const err)
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(pack, text);
	error_wrap(err, "pack %s", text);
	log_failure(store->log, level, NULL, "pack_damaged", err);
}

/* 0 when the file holds all committed bytes; it is then cut to them. */
static int recovery_cut(struct pack_store *const store, struct backend_file *const file, const struct pack_record *const record,
	struct error *const err)
{
	const struct backend_ops *const ops = store->backend->ops;
	uint64_t size;
	if (ops->size(file, &size, err) != 0)
		return -1;
	if (size < record->length)
		return error_set(err, ERROR_CORRUPT, "the file has %llu bytes, %llu are committed", (unsigned long long)size,
			(unsigned long long)record->length);
	struct error ignored = {0}; /* bytes behind the committed length mean nothing: cutting them saves space, no more */
	if (size > record->length && ops->truncate(file, record->length, &ignored) == 0)
		ops->sync(file, &ignored);
	return 0;
}

static int recovery_make_index(struct pack_store *const store, struct backend_file *const file, const struct pack_record *const record,
	struct error *const err)
{
	struct pack_index *const index = pack_index_walk(file, &record->id, record->length, err);
	if (index == NULL)
		return -1;
	int result = 0;
	if (index->count != record->chunks)
		result = error_set(err, ERROR_CORRUPT, "its footers count %u chunks, %u are committed", index->count, record->chunks);
	struct error save = {0};
	if (result == 0 && pack_index_save(index, store->backend, &save) != 0)
		recovery_complain(store, LOG_WARNING, &record->id, &save); /* it is made anew when wanted */
	pack_index_free(index);
	return result;
}

static void recovery_check(const struct pack_recovery *const recovery, const struct pack_record *const record)
{
	struct pack_store *const store = recovery->store;
	const struct backend_ops *const ops = store->backend->ops;
	char name[PACK_NAME_BYTES];
	pack_format_name(&record->id, PACK_FILE_PACK, name);
	struct error err = {0};
	struct backend_file *file;
	if (ops->open(store->backend, name, &file, &err) != 0) {
		recovery_complain(store, LOG_ERROR, &record->id, &err);
		return;
	}
	const bool has_index = recovery->indexed_count > 0 &&
		bsearch(&record->id, recovery->indexed, recovery->indexed_count, sizeof *recovery->indexed, pack_id_compare) != NULL;
	int result = recovery_cut(store, file, record, &err);
	if (result == 0 && (record->state == PACK_OPEN || !has_index))
		result = recovery_make_index(store, file, record, &err);
	if (result != 0)
		recovery_complain(store, LOG_ERROR, &record->id, &err);
	ops->close(file);
}

/* Sealed by recovery: they enter the chunk index as any pack does when it seals. */
static void recovery_feed(struct pack_store *const store, const struct pack_record *const sealed, const size_t count)
{
	struct pack_id *const packs = memory_new_array(count + 1, sizeof *packs);
	for (size_t i = 0; i < count; i++)
		packs[i] = sealed[i].id;
	if (store->helpers != NULL)
		pack_feed_submit(store, packs, count);
	free(packs);
}

int pack_store_recover(struct pack_store *const store, const struct pack_record *const records, const size_t count,
	struct pack_record **const out_sealed, size_t *const out_sealed_count, struct error *const err)
{
	struct pack_recovery recovery = { .store = store };
	for (size_t i = 0; i < count; i++)
		pack_cache_add(store->cache, &records[i].id, records[i].length, NULL, PACK_CACHE_SAVED);
	const int result = store->backend->ops->list(store->backend, recovery_take_name, &recovery, err);
	if (result == 0) {
		if (recovery.indexed_count > 0)
			qsort(recovery.indexed, recovery.indexed_count, sizeof *recovery.indexed, pack_id_compare);
		*out_sealed = memory_new_array(count + 1, sizeof **out_sealed);
		*out_sealed_count = 0;
		for (size_t i = 0; i < count; i++) {
			recovery_check(&recovery, &records[i]);
			if (records[i].state != PACK_OPEN)
				continue;
			struct pack_record *const sealed = &(*out_sealed)[(*out_sealed_count)++];
			*sealed = records[i];
			sealed->state = PACK_SEALED;
		}
		recovery_feed(store, *out_sealed, *out_sealed_count);
	}
	free(recovery.indexed);
	return result;
}
