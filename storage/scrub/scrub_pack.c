/* The index stays pinned while a pack is scanned, and the file stays open, so both outlive what gc
 * and mends do to the pack. After each pause the scan looks whether the pack still has this file:
 * what it would find in an old one says nothing about the new one.
 *
 * Behind its records a pack describes itself, as the index beside it does once more. Where its own
 * description is damaged the pack is written again. */
#include "storage/scrub/scrub_pack.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/packs/pack_rewrite.h"
#include "storage/packs/pack_scan.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/packs/pack_table.h"

struct scanning {
	const struct scrub_work *work;
	struct pack_store *packs;
	struct pack *pinned;
	const struct pack_index *index;
	struct pack_id pack;
	uint32_t next; /* the place of the first entry that was not looked at */
	bool has_changed;
	bool is_misdescribed;               /* its own description is damaged */
	unsigned turn;                      /* of the hold */
	uint8_t found[PACK_MAX_CHUNKS / 8]; /* a bit for each chunk that was found damaged */
};

static int scan_pinned(struct scanning *scanning, struct error *err);
static int open_file(const struct scanning *scanning, struct backend_file **out, struct error *err);
static bool is_current(const struct scanning *scanning);
static void find_all(struct scanning *scanning, const struct error *why);
static int scan_file(struct scanning *scanning, struct backend_file *file, struct error *err);
static void look_at_description(struct scanning *scanning, struct backend_file *file);
static void mend_description(const struct scanning *scanning);
static bool scrub_pack_spend(void *owner, size_t bytes);
static void scrub_pack_found(void *owner, uint32_t chunk, const struct error *why);
static void scrub_pack_passed(void *owner, uint32_t next);
static void forget_right(const struct scanning *scanning, uint32_t first, uint32_t end);

int scrub_pack_scan(
	const struct scrub_work *work, const struct pack_id *pack, uint32_t from, struct error *err)
{
	struct pack_store *const packs = store_packs(work->store);
	if (!pack_cache_knows(packs->cache, pack))
		return 1;
	struct pack *const pinned = pack_cache_pin(packs->cache, pack, false, err);
	if (pinned == NULL)
		return -1;
	struct scanning *const scanning = memory_new(sizeof(*scanning));
	*scanning = (struct scanning){.work = work,
		.packs = packs,
		.pinned = pinned,
		.index = pack_cache_sealed_index(packs->cache, pinned),
		.pack = *pack};
	int result = 1;
	if (scanning->index != NULL) {
		scanning->next = pack_index_at(scanning->index, from);
		result = scan_pinned(scanning, err);
	}
	pack_cache_unpin(packs->cache, pinned);
	if (scanning->is_misdescribed)
		mend_description(scanning);
	free(scanning);
	return result;
}

static int scan_pinned(struct scanning *scanning, struct error *err)
{
	struct backend_file *file = NULL;
	struct error why = {0};
	if (open_file(scanning, &file, &why) == 0) {
		const int result = scan_file(scanning, file, err);
		file->backend->ops->close(file);
		return result;
	}
	if (!is_current(scanning))
		return 0;
	if (why.kind != ERROR_NOT_FOUND) {
		*err = why;
		return -1;
	}
	find_all(scanning, &why);
	return 1;
}

static int open_file(const struct scanning *scanning, struct backend_file **out, struct error *err)
{
	struct backend *const backend = scanning->packs->backend;
	char name[PACK_NAME_BYTES];
	pack_format_name(&scanning->index->file, PACK_FILE_PACK, name);
	return backend->ops->open_uncached(backend, name, out, err);
}

/* Whether the pack is still there and still in the file that is being read. */
static bool is_current(const struct scanning *scanning)
{
	struct pack_cache *const cache = scanning->packs->cache;
	struct error ignored = {0};
	if (!pack_cache_knows(cache, &scanning->pack))
		return false;
	struct pack *const now = pack_cache_pin(cache, &scanning->pack, false, &ignored);
	if (now != NULL)
		pack_cache_unpin(cache, now);
	return now == scanning->pinned;
}

/* The pack has lost its file, and with it every chunk. */
static void find_all(struct scanning *scanning, const struct error *why)
{
	struct error lost = {0};
	error_set(&lost, ERROR_CORRUPT, "The file of the pack is gone: %s", why->text);
	for (uint32_t at = scanning->next; at < scanning->index->count; at++)
		scrub_pack_found(scanning, pack_index_number(scanning->index, at), &lost);
}

static int scan_file(struct scanning *scanning, struct backend_file *file, struct error *err)
{
	const struct pack_scan scan = {.spend = scrub_pack_spend,
		.found = scrub_pack_found,
		.passed = scrub_pack_passed,
		.owner = scanning};
	scanning->turn = pack_store_hold(scanning->packs, &scanning->pack);
	const int result = pack_scan_records(file, scanning->index, scanning->next, &scan, err);
	pack_store_unhold(scanning->packs, &scanning->pack, scanning->turn);
	if (result != 0)
		return scanning->has_changed ? 0 : -1;
	look_at_description(scanning, file);
	return 1;
}

/* The index in memory may come from the copy beside the pack, which a backup does not have. */
static void look_at_description(struct scanning *scanning, struct backend_file *file)
{
	const struct pack_index *const index = scanning->index;
	struct error why = {0};
	struct pack_index *const own =
		pack_own_index(file, &scanning->pack, &index->file, index->length, &why);
	scanning->is_misdescribed = own == NULL && pack_damage_is(&why);
	if (scanning->is_misdescribed)
		log_failure(store_log(scanning->work->store), LOG_WARNING, NULL,
			"pack_description", &why);
	pack_index_free(own);
}

/* Writes the pack again, with a description of its own made from the index. */
static void mend_description(const struct scanning *scanning)
{
	static const struct pack_patch nothing = {.count = 0};
	struct scrub_report *const report = scanning->work->report;
	struct store *const store = scanning->work->store;
	struct error err = {0};
	const int result = store_takes_work(store)
		? pack_damage_mend(scanning->packs->damage, &scanning->pack, &nothing, &err)
		: error_set(&err, ERROR_READ_ONLY, "The store is only read at present.");
	report->packs_mended += result == 0;
	report->packs_failed += result != 0;
	if (result != 0)
		log_failure(store_log(store), LOG_WARNING, NULL, "pack_mend", &err);
}

static bool scrub_pack_spend(void *owner, size_t bytes)
{
	struct scanning *const scanning = owner;
	const struct work_pace *const pace = &scanning->work->pace;
	pack_store_unhold(scanning->packs, &scanning->pack, scanning->turn);
	const bool goes_on = pace->spend(pace->owner, bytes);
	scanning->turn = pack_store_hold(scanning->packs, &scanning->pack);
	scanning->has_changed = goes_on && !is_current(scanning);
	if (!goes_on || scanning->has_changed)
		return false;
	scanning->work->report->bytes += bytes;
	metrics_add(store_metrics(scanning->work->store), METRIC_SCRUB_BYTES, (int64_t)bytes);
	return true;
}

static void scrub_pack_found(void *owner, uint32_t chunk, const struct error *why)
{
	struct scanning *const scanning = owner;
	struct error err = *why;
	ASSERT(chunk < PACK_MAX_CHUNKS);
	scanning->found[chunk / 8] |= (uint8_t)(1u << chunk % 8);
	scanning->work->report->chunks_damaged++;
	(void)pack_store_read_failed(scanning->packs, &scanning->pack, chunk, &err);
}

static void scrub_pack_passed(void *owner, uint32_t next)
{
	struct scanning *const scanning = owner;
	const struct pack_index *const index = scanning->index;
	forget_right(scanning, scanning->next, next);
	scanning->next = next;
	if (next < index->count)
		scanning->work->passed(scanning->work->owner, pack_index_number(index, next));
}

/* Damage that was noted and is not there: a disk that could not be read before, or a file that was
 * put back. */
static void forget_right(const struct scanning *scanning, uint32_t first, uint32_t end)
{
	struct pack_damage *const damage = scanning->packs->damage;
	if (!pack_damage_is_known(damage))
		return;
	for (uint32_t at = first; at < end; at++) {
		const uint32_t chunk = pack_index_number(scanning->index, at);
		const bool is_found = (scanning->found[chunk / 8] >> chunk % 8 & 1) != 0;
		if (!is_found && pack_damage_has(damage, &scanning->pack, chunk, 1))
			pack_damage_forget(damage, &scanning->pack, chunk, 1);
	}
}
