/* packs, a page at a time --> registered files, a slice at a time --> buckets and set-aside */
#include "storage/survey/store_survey.h"

#include "storage/buckets/bucket_totals.h"
#include "storage/files/xet_file.h"
#include "storage/packs/set_aside.h"
#include "storage/survey/pack_survey.h"

enum { SLICE_FILES = 2000 };

struct surveying {
	struct call call; /* first */
	struct store_survey result;
	struct pack_page page; /* the last one that was read */
	int64_t after;
	struct xet_file_unused unused;
};

static enum call_next store_survey_packs(struct call *call, struct error *err);
static void add_pack(struct store_survey *survey, const struct surveyed_pack *pack);
static enum call_next store_survey_registered(struct call *call, struct error *err);
static enum call_next store_survey_rest(struct call *call, struct error *err);
static int sum_buckets(struct store *store, struct store_survey *out, struct error *err);

static const struct call_kind kind = {
	.stages = {{.help = store_survey_packs}, {.help = store_survey_registered},
		{.help = store_survey_rest}}};

struct call *store_survey_call(struct store *store)
{
	return call_new(sizeof(struct surveying), &kind, store, 0);
}

const struct store_survey *store_survey_result(const struct call *call)
{
	return &((const struct surveying *)call)->result;
}

static enum call_next store_survey_packs(struct call *call, struct error *err)
{
	struct surveying *const surveying = (struct surveying *)call;
	struct pack_page *const page = &surveying->page;
	if (pack_survey_read(call->store, surveying->after, PACK_SURVEY_MAX, page, err) != 0)
		return CALL_FAILS;
	for (size_t i = 0; i < page->count; i++)
		add_pack(&surveying->result, &page->packs[i]);
	if (page->count > 0)
		surveying->after = page->packs[page->count - 1].number;
	return page->more ? CALL_AGAIN : CALL_NEXT;
}

static void add_pack(struct store_survey *survey, const struct surveyed_pack *pack)
{
	survey->packs++;
	survey->pack_bytes += pack->record.length;
	survey->live_bytes += pack->live_bytes;
	survey->unknown += !pack->knows_live;
	survey->open += pack->record.state == PACK_OPEN;
	if (pack->promised_ms == 0)
		return;
	survey->promised_bytes += pack->record.length;
	if (pack->promised_ms > survey->promised_ms)
		survey->promised_ms = pack->promised_ms;
}

static enum call_next store_survey_registered(struct call *call, struct error *err)
{
	struct surveying *const surveying = (struct surveying *)call;
	struct db *const db = store_reader_take(call->store, err);
	if (db == NULL)
		return CALL_FAILS;
	const int result = xet_file_unused_slice(db, SLICE_FILES, &surveying->unused, err);
	store_reader_give(call->store, db);
	surveying->result.registered_bytes = surveying->unused.bytes;
	surveying->result.registered_ms = surveying->unused.until_ms;
	return result != 0 ? CALL_FAILS : surveying->unused.ended ? CALL_NEXT : CALL_AGAIN;
}

static enum call_next store_survey_rest(struct call *call, struct error *err)
{
	struct store_survey *const result = &((struct surveying *)call)->result;
	struct set_aside aside;
	if (sum_buckets(call->store, result, err) != 0 ||
		set_aside_list(store_folder(call->store), &aside, err) != 0)
		return CALL_FAILS;
	result->set_aside = aside.count;
	result->set_aside_bytes = aside.bytes;
	set_aside_release(&aside);
	return CALL_NEXT;
}

static int sum_buckets(struct store *store, struct store_survey *out, struct error *err)
{
	struct bucket_totals totals;
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = bucket_totals_sum_all(db, &totals, err);
	store_reader_give(store, db);
	if (result != 0)
		return -1;
	out->objects = (uint64_t)totals.files;
	out->logical_bytes = (uint64_t)totals.bytes;
	return 0;
}
