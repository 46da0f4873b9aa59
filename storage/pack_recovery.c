/* Start: what lies in the backend is brought in line with what the catalog names. One listing tells of the sealed packs all there is to
 * know; only packs that were open are opened and walked. */
#include "storage/pack_store_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct recovered { /* a pack of the catalog, and what the listing found of it */
	const struct pack_record *record;
	const struct pack_id *file;
	uint64_t size;
	bool is_there;
	bool has_index;
};
struct pack_recovery {
	struct pack_store *store;
	struct recovered *packs; /* sorted by file */
	size_t count;
};

static int recovered_compare(const void *const a, const void *const b)
{
	return memcmp(((const struct recovered *)a)->file, ((const struct recovered *)b)->file, sizeof(struct pack_id));
}

static void recovery_begin(struct pack_recovery *const recovery, const struct pack_record *const records, const size_t count)
{
	recovery->packs = memory_new_array(count + 1, sizeof *recovery->packs);
	recovery->count = count;
	for (size_t i = 0; i < count; i++) {
		pack_cache_add_record(recovery->store->cache, &records[i]);
		recovery->packs[i] = (struct recovered){ .record = &records[i], .file = pack_record_file(&records[i]) };
	}
	qsort(recovery->packs, count, sizeof *recovery->packs, recovered_compare);
}

static struct recovered *recovery_find(const struct pack_recovery *const recovery, const struct pack_id *const file)
{
	const struct recovered wanted = { .file = file };
	return recovery->count == 0 ? NULL : bsearch(&wanted, recovery->packs, recovery->count, sizeof *recovery->packs, recovered_compare);
}

/* Half-written sidecars carry the sidecar's name and ".tmp-". Names of another shape are none of ours and stay. */
static bool is_leftover(const char *const name)
{
	return strlen(name) > PACK_ID_TEXT_BYTES && strstr(name, ".tmp-") != NULL;
}

static int recovery_take_name(void *const taker, const char *const name, const uint64_t size, struct error *const err)
{
	const struct pack_recovery *const recovery = taker;
	struct pack_store *const store = recovery->store;
	struct pack_id file;
	enum pack_file_kind kind;
	const bool is_ours = pack_format_parse_name(name, &file, &kind);
	struct recovered *const pack = is_ours ? recovery_find(recovery, &file) : NULL;
	if (pack != NULL && kind == PACK_FILE_INDEX)
		pack->has_index = true;
	if (pack != NULL && kind == PACK_FILE_PACK) {
		pack->is_there = true;
		pack->size = size;
	}
	if (pack != NULL || (!is_ours && !is_leftover(name)))
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

static int recovery_open(struct pack_store *const store, const struct recovered *const pack, struct backend_file **const out_file,
	struct error *const err)
{
	char name[PACK_NAME_BYTES];
	pack_format_name(pack->file, PACK_FILE_PACK, name);
	return store->backend->ops->open(store->backend, name, out_file, err);
}

/* Bytes behind the committed length mean nothing: cutting them saves space, no more. */
static void recovery_cut(struct pack_store *const store, const struct recovered *const pack)
{
	const struct backend_ops *const ops = store->backend->ops;
	struct error ignored = {0};
	struct backend_file *file;
	if (recovery_open(store, pack, &file, &ignored) != 0)
		return;
	if (ops->truncate(file, pack->record->length, &ignored) == 0)
		ops->sync(file, &ignored);
	ops->close(file);
}

static int recovery_walk(struct pack_store *const store, const struct recovered *const pack, struct backend_file *const file,
	struct error *const err)
{
	const struct pack_record *const record = pack->record;
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

/* It was open: its index is made now, of the committed bytes alone. */
static int recovery_make_index(struct pack_store *const store, const struct recovered *const pack, struct error *const err)
{
	struct backend_file *file;
	if (recovery_open(store, pack, &file, err) != 0)
		return -1;
	const int result = recovery_walk(store, pack, file, err);
	store->backend->ops->close(file);
	return result;
}

static int recovery_check(struct pack_store *const store, const struct recovered *const pack, struct error *const err)
{
	const struct pack_record *const record = pack->record;
	if (!pack->is_there)
		return error_set(err, ERROR_CORRUPT, "its file is missing");
	if (pack->size < record->length)
		return error_set(err, ERROR_CORRUPT, "the file has %llu bytes, %llu are committed", (unsigned long long)pack->size,
			(unsigned long long)record->length);
	if (pack->size > record->length)
		recovery_cut(store, pack);
	return record->state == PACK_OPEN ? recovery_make_index(store, pack, err) : 0;
}

/* Sealed by recovery, or before but without an index yet: they enter the chunk index as any pack does when it seals. */
static void recovery_feed(const struct pack_recovery *const recovery)
{
	struct pack_id *const packs = memory_new_array(recovery->count + 1, sizeof *packs);
	size_t count = 0;
	for (size_t i = 0; i < recovery->count; i++) {
		const struct recovered *const pack = &recovery->packs[i];
		const bool lacks_index = !pack->has_index && pack_id_equal(pack->file, &pack->record->id);
		if (pack->is_there && pack->record->state != PACK_CONDEMNED && (pack->record->state == PACK_OPEN || lacks_index))
			packs[count++] = pack->record->id;
	}
	if (recovery->store->helpers != NULL)
		pack_feed_submit(recovery->store, packs, count);
	free(packs);
}

int pack_store_recover(struct pack_store *const store, const struct pack_record *const records, const size_t count,
	struct pack_record **const out_sealed, size_t *const out_sealed_count, struct error *const err)
{
	struct pack_recovery recovery = { .store = store };
	recovery_begin(&recovery, records, count);
	const int result = store->backend->ops->list(store->backend, recovery_take_name, &recovery, err);
	if (result == 0) {
		*out_sealed = memory_new_array(count + 1, sizeof **out_sealed);
		*out_sealed_count = 0;
		for (size_t i = 0; i < count; i++) {
			const struct recovered *const pack = &recovery.packs[i];
			struct error damage = {0};
			if (recovery_check(store, pack, &damage) != 0)
				recovery_complain(store, LOG_ERROR, &pack->record->id, &damage);
			if (pack->record->state != PACK_OPEN)
				continue;
			struct pack_record *const sealed = &(*out_sealed)[(*out_sealed_count)++];
			*sealed = *pack->record;
			sealed->state = PACK_SEALED;
		}
		recovery_feed(&recovery);
	}
	free(recovery.packs);
	return result;
}
