#include "storage/survey/pack_survey.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "storage/core/pack_row.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/xet/xorb_row.h"

struct surveying {
	struct call call; /* first */
	int64_t after;
	size_t limit;
	struct pack_page page;
};
struct damage { /* the list of pack_damage.h */
	struct chunk_place *places;
	size_t count;
};

static enum call_next pack_survey_help(struct call *call, struct error *err);
static int read_page(struct store *store, struct db *db, const int64_t *numbers, size_t count,
	struct pack_page *out, struct error *err);
static int read_pack(
	struct store *store, struct db *db, struct surveyed_pack *pack, struct error *err);
static void find_live(struct store *store, struct surveyed_pack *pack);
static void count_damage(struct store *store, struct pack_page *page);
static size_t damage_before(const struct damage *damage, const struct pack_id *pack, bool or_of_it);
static bool pack_survey_is_before(const void *place, const void *pack);
static bool pack_survey_is_not_behind(const void *place, const void *pack);

static const struct call_kind kind = {.stages = {{.help = pack_survey_help}}};

int pack_survey_read(
	struct store *store, int64_t after, size_t limit, struct pack_page *out, struct error *err)
{
	int64_t numbers[PACK_SURVEY_MAX + 1];
	size_t count = 0;
	ASSERT(limit > 0 && limit <= PACK_SURVEY_MAX);
	out->count = 0;
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	int result = pack_row_numbers(db, after, numbers, limit + 1, &count, err);
	out->more = count > limit;
	if (result == 0)
		result = read_page(store, db, numbers, out->more ? limit : count, out, err);
	store_snapshot_give(store, db);
	if (result == 0)
		count_damage(store, out);
	return result;
}

struct call *pack_survey_call(struct store *store, int64_t after, size_t limit)
{
	struct surveying *const surveying = call_new(sizeof(*surveying), &kind, store, 0);
	surveying->after = after;
	surveying->limit = limit;
	return &surveying->call;
}

const struct pack_page *pack_survey_result(const struct call *call)
{
	return &((const struct surveying *)call)->page;
}

static enum call_next pack_survey_help(struct call *call, struct error *err)
{
	struct surveying *const surveying = (struct surveying *)call;
	return pack_survey_read(
		       call->store, surveying->after, surveying->limit, &surveying->page, err) == 0
		? CALL_NEXT
		: CALL_FAILS;
}

static int read_page(struct store *store, struct db *db, const int64_t *numbers, size_t count,
	struct pack_page *out, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		struct surveyed_pack *const pack = &out->packs[out->count];
		*pack = (struct surveyed_pack){.number = numbers[i]};
		const int found = read_pack(store, db, pack, err);
		if (found < 0)
			return -1;
		out->count += (size_t)found;
	}
	return 0;
}

static int read_pack(
	struct store *store, struct db *db, struct surveyed_pack *pack, struct error *err)
{
	const int found = pack_row_find(db, pack->number, &pack->record, err);
	if (found != 1)
		return found;
	if (xorb_row_promise_of_pack(db, pack->number, &pack->promised_ms, err) != 0)
		return -1;
	if (pack->promised_ms <= store_now_ms(store))
		pack->promised_ms = 0;
	find_live(store, pack);
	return 1;
}

static void find_live(struct store *store, struct surveyed_pack *pack)
{
	const struct pack_record *const record = &pack->record;
	uint32_t live = record->chunks;
	pack->knows_live =
		pack_touches_live(store_pack_touches(store), pack->number, record->chunks, &live) ||
		record->created_ms >= store_opened(store).wall_ms;
	pack->live_bytes = record->chunks == 0
		? 0
		: (uint64_t)((double)record->length * live / record->chunks);
}

static void count_damage(struct store *store, struct pack_page *page)
{
	struct damage damage = {.count = 0};
	damage.places = pack_damage_list(store_packs(store)->damage, &damage.count);
	for (size_t i = 0; i < page->count && damage.count > 0; i++) {
		const struct pack_id *const id = &page->packs[i].record.id;
		page->packs[i].damaged =
			damage_before(&damage, id, true) - damage_before(&damage, id, false);
	}
	free(damage.places);
}

/* How many damaged chunks are in packs with smaller ids, or in these and in this one. */
static size_t damage_before(const struct damage *damage, const struct pack_id *pack, bool or_of_it)
{
	return search_lower_bound(damage->places, damage->count, sizeof(*damage->places),
		or_of_it ? pack_survey_is_not_behind : pack_survey_is_before, pack);
}

static bool pack_survey_is_before(const void *place, const void *pack)
{
	return memcmp(&((const struct chunk_place *)place)->pack, pack, PACK_ID_BYTES) < 0;
}

static bool pack_survey_is_not_behind(const void *place, const void *pack)
{
	return memcmp(&((const struct chunk_place *)place)->pack, pack, PACK_ID_BYTES) <= 0;
}
