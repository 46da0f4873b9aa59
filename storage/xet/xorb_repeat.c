/* The bytes are verified while they come. They are spooled only if the xorb was seen damaged
 * before. After the last byte a helper reads the stored records, and mends them from the spool if
 * they are damaged. The reference keeps gc from moving the pack meanwhile, and all mending is done
 * in one lane, so no other mending moves it either. */
#include "storage/xet/xorb_repeat.h"

#include <stdlib.h>

#include "base/memory.h"
#include "chunker/xorb_parse.h"
#include "storage/core/pack_mend.h"
#include "storage/objects/body_spool.h"
#include "storage/objects/scratch.h"
#include "storage/packs/pack_damage.h"

struct xorb_repeat {
	struct call call;
	struct xorb_repeat_params params;
	struct xorb_parse *check;
	struct body_spool *spool;   /* NULL: the bytes are not kept */
	uint32_t *numbers;          /* chunk numbers in the pack of the spool's records */
	struct pack_entry *entries; /* of the same records */
	uint32_t count;
	const uint8_t *begin; /* of the spool's bytes */
	bool mended;
};

static void repeat_finish(struct call *call);
static void repeat_spooled(void *owner);
static enum call_next repeat_look(struct call *call, struct error *err);
static struct pack_run stored_run(const struct xorb *xorb);
static int mend(struct xorb_repeat *repeat, struct error *err);
static int list_records(struct xorb_repeat *repeat, struct span *out, struct error *err);
static int repeat_take_record(void *taker, const struct xorb_record *record, struct error *err);
static void log_mended(const struct xorb_repeat *repeat);
static void repeat_release(struct call *call);
static int repeat_discard(void *taker, const struct xorb_record *record, struct error *err);
static void open_spool(struct xorb_repeat *repeat);
static void repeat_has_room(void *owner);

static const struct call_kind repeat_kind = {
	.stages = {{.begin = repeat_finish}, {.help = repeat_look}},
	.release = repeat_release,
};

struct xorb_repeat *xorb_repeat_open(struct store *store, const struct xorb_repeat_params *params)
{
	struct xorb_repeat *const repeat =
		call_new(sizeof(*repeat), &repeat_kind, store, 0 /* no texts */);
	const struct pack_run run = stored_run(&params->xorb);
	ASSERT(params->xorb.count >= 1);
	repeat->params = *params;
	repeat->check = xorb_parse_new(repeat_discard, repeat, params->private_codecs);
	if (pack_store_is_damaged(store_packs(store), &run))
		open_spool(repeat);
	return repeat;
}

enum sink_result xorb_repeat_write(struct xorb_repeat *repeat, struct span bytes, struct error *err)
{
	const enum sink_result kept =
		repeat->spool == NULL ? SINK_TAKEN : body_spool_write(repeat->spool, bytes, err);
	if (kept != SINK_TAKEN)
		return kept;
	return xorb_parse_push(repeat->check, bytes, err) == 0 ? SINK_TAKEN : SINK_FAILED;
}

struct call *xorb_repeat_call(struct xorb_repeat *repeat)
{
	return &repeat->call;
}

bool xorb_repeat_mended(const struct xorb_repeat *repeat)
{
	return repeat->mended;
}

static void repeat_finish(struct call *call)
{
	struct xorb_repeat *const repeat = (struct xorb_repeat *)call;
	struct error err = {0};
	if (xorb_parse_end_as(repeat->check, &repeat->params.xorb.hash, &err) != 0)
		call_resume(call, &err);
	else if (repeat->spool != NULL)
		body_spool_finish(repeat->spool, repeat_spooled);
	else
		call_resume(call, NULL);
}

static void repeat_spooled(void *owner)
{
	call_resume(&((struct xorb_repeat *)owner)->call, NULL);
}

static enum call_next repeat_look(struct call *call, struct error *err)
{
	struct xorb_repeat *const repeat = (struct xorb_repeat *)call;
	const struct pack_run stored = stored_run(&repeat->params.xorb);
	int result = pack_store_check_records(store_packs(call->store), &stored, err);
	if (result != 0 && pack_damage_is(err))
		result = mend(repeat, err);
	scratch_hide_paths(call->store, err);
	return result == 0 ? CALL_NEXT : CALL_FAILS;
}

static struct pack_run stored_run(const struct xorb *xorb)
{
	return (struct pack_run){.pack = xorb->pack, .first = xorb->first, .chunks = xorb->count};
}

static int mend(struct xorb_repeat *repeat, struct error *err)
{
	struct pack_patch patch = {.count = repeat->params.xorb.count};
	if (repeat->spool == NULL)
		return error_set(err, ERROR_BUSY,
			"The stored bytes of the xorb are damaged. Send it again to mend them.");
	if (list_records(repeat, &patch.bytes, err) != 0)
		return -1;
	patch.numbers = repeat->numbers;
	patch.entries = repeat->entries;
	if (pack_mend(repeat->call.store, &repeat->params.xorb.pack, &patch, err) != 0)
		return -1;
	repeat->mended = true;
	log_mended(repeat);
	return 0;
}

/* Lists the records of the spool. Verifies them again, because they may have been on the disk. */
static int list_records(struct xorb_repeat *repeat, struct span *out, struct error *err)
{
	if (body_spool_bytes(repeat->spool, out, err) != 0)
		return -1;
	struct xorb_parse *const parse =
		xorb_parse_new(repeat_take_record, repeat, repeat->params.private_codecs);
	ASSERT(repeat->numbers == NULL && repeat->count == 0);
	repeat->numbers = memory_new_array(repeat->params.xorb.count, sizeof(*repeat->numbers));
	repeat->entries = memory_new_array(repeat->params.xorb.count, sizeof(*repeat->entries));
	repeat->begin = out->data;
	int result = xorb_parse_push(parse, *out, err);
	if (result == 0)
		result = xorb_parse_end_as(parse, &repeat->params.xorb.hash, err);
	xorb_parse_free(parse);
	return result == 0 && repeat->count != repeat->params.xorb.count
		? error_set(err, ERROR_INVALID, "The xorb has fewer chunks than the stored one.")
		: result;
}

static int repeat_take_record(void *taker, const struct xorb_record *record, struct error *err)
{
	struct xorb_repeat *const repeat = taker;
	if (repeat->count == repeat->params.xorb.count)
		return error_set(
			err, ERROR_INVALID, "The xorb has more chunks than the stored one.");
	if (record->is_recoded)
		return error_set(err, ERROR_INVALID,
			"The xorb has an LZ4 frame of a rare form, which cannot mend the stored one: send it in another encoding.");
	ASSERT(record->payload.data >= repeat->begin + PACK_RECORD_HEADER_BYTES);
	repeat->numbers[repeat->count] = repeat->params.xorb.first + repeat->count;
	repeat->entries[repeat->count++] = (struct pack_entry){
		.id = record->id,
		.checksum = xxh3_64(record->payload),
		/* the spool is pushed in one piece, so records are not copied */
		.offset =
			(uint32_t)(record->payload.data - PACK_RECORD_HEADER_BYTES - repeat->begin),
		.stored = (uint32_t)record->payload.len,
		.size = (uint32_t)record->content.len,
		.codec = record->codec,
	};
	return 0;
}

static void log_mended(const struct xorb_repeat *repeat)
{
	char hash[CHUNK_ID_TEXT_BYTES];
	char pack[PACK_ID_TEXT_BYTES];
	chunk_id_format(&repeat->params.xorb.hash, hash);
	pack_id_format(&repeat->params.xorb.pack, pack);
	const struct log_field fields[] = {log_text("xorb", hash), log_text("pack", pack)};
	log_event(store_log(repeat->call.store), LOG_WARNING, NULL, "xorb_mended", fields,
		sizeof(fields) / sizeof(fields[0]));
	metrics_add(store_metrics(repeat->call.store), METRIC_XORBS_MENDED, 1);
}

static void repeat_release(struct call *call)
{
	struct xorb_repeat *const repeat = (struct xorb_repeat *)call;
	pack_store_unrefer(store_packs(call->store), &repeat->params.xorb.pack);
	body_spool_free(repeat->spool);
	xorb_parse_free(repeat->check);
	free(repeat->numbers);
	free(repeat->entries);
}

static int repeat_discard(void *taker, const struct xorb_record *record, struct error *err)
{
	(void)taker, (void)record, (void)err;
	return 0;
}

/* For a xorb that was seen damaged: keeps the bytes for mending. */
static void open_spool(struct xorb_repeat *repeat)
{
	struct store *const store = repeat->call.store;
	const struct body_spool_params spool = {.what = "A xorb",
		.bytes_max = XORB_BODY_MAX_BYTES,
		.room = repeat_has_room,
		.owner = repeat};
	repeat->spool = body_spool_new(store, &spool);
	repeat->call.lane = &store_packs(store)->mend_lane;
}

static void repeat_has_room(void *owner)
{
	const struct xorb_repeat *const repeat = owner;
	if (repeat->params.room != NULL)
		repeat->params.room(repeat->params.owner);
}
