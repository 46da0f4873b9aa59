/* open --write*--> finish --ingest done--> change queued: place, apply (the upload still open? rows written) --COMMIT--> done */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/upload_body.h"
#include "storage/upload_internal.h"

struct upload_part {
	struct upload_call call; /* first */
	uint32_t number;
	struct upload_body body;
	enum checksum_algorithm algorithm; /* the upload's */
	enum checksum_algorithm declared;  /* CHECKSUM_NONE: the client declares nothing */
	struct upload_set_part row;        /* as committed */
	void (*room)(void *owner);
};

static int place(struct change *const change, struct error *const err)
{
	struct upload_part *const part = (struct upload_part *)change;
	return upload_body_place(&part->body, err);
}

static int apply(struct change *const change, struct db *const db, struct error *const err)
{
	struct upload_part *const part = (struct upload_part *)change;
	struct store *const store = part->call.store;
	const struct stored_part *const stored = ingest_part(part->body.ingest);
	struct upload_row upload;
	if (upload_call_find_open(&part->call, db, NULL, NULL, &upload, err) != 0 || upload_body_record(&part->body, db, err) != 0)
		return -1;
	upload_set_describe(stored, part->number, store_clock(store)->wall_ms(store_clock(store)), &part->row);
	if (upload_set_put(db, upload.part_set, stored, &part->row, err) != 0)
		return -1;
	return upload_row_revise(db, upload.number, err);
}

static void committed(struct change *const change)
{
	struct upload_part *const part = (struct upload_part *)change;
	upload_body_settle(&part->body, change);
	upload_call_take_change(&part->call);
	upload_call_settle(&part->call);
}

static void ingest_is_done(void *const owner)
{
	struct upload_part *const part = owner;
	part->call.failed = ingest_outcome(part->body.ingest, &part->call.error) != 0;
	if (part->call.failed)
		upload_call_settle(&part->call);
	else
		upload_call_submit(&part->call);
}

static void ingest_has_room(void *const owner)
{
	struct upload_part *const part = owner;
	if (part->room != NULL)
		part->room(part->call.owner);
}

int upload_part_check(const struct upload_row *const upload, const uint32_t number, const enum checksum_algorithm declared,
	struct error *const err)
{
	if (number < 1 || number > UPLOAD_PARTS_MAX)
		return error_set(err, ERROR_INVALID, "Part number must be an integer between 1 and %d, inclusive.", UPLOAD_PARTS_MAX);
	if (declared != CHECKSUM_NONE && upload->checksum.is_named && declared != upload->checksum.algorithm)
		return error_set(err, ERROR_INVALID_REQUEST, "Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s.",
			checksum_suffix(upload->checksum.algorithm), checksum_suffix(declared));
	return 0;
}

struct upload_part *upload_part_open(struct store *const store, const struct upload_part_params *const params, struct error *const err)
{
	struct upload_row upload;
	if (upload_find_open(store, &params->ref, NULL, &upload, err) != 0
		|| upload_part_check(&upload, params->number, params->checksum, err) != 0)
		return NULL;
	struct upload_part *const part = memory_new(sizeof(*part));
	upload_call_init(&part->call, store, &params->ref, params->done, params->owner);
	part->call.change.place = place;
	part->call.change.apply = apply;
	part->call.change.done = committed;
	part->number = params->number;
	part->algorithm = upload.checksum.algorithm;
	part->declared = params->checksum;
	part->room = params->room;
	part->body.has_md5 = params->has_content_md5;
	memcpy(part->body.md5, params->content_md5, sizeof(part->body.md5));
	const struct ingest_options options = {
		.packs = store_packs(store),
		.want_md5 = !upload.fast_etags || params->has_content_md5,
		.checksum = part->algorithm,
		.declared = part->declared == part->algorithm ? CHECKSUM_NONE : part->declared,
		.never_inline = true,
		.room = ingest_has_room,
		.done = ingest_is_done,
		.owner = part,
	};
	part->body.ingest = ingest_open(&options, err);
	if (part->body.ingest != NULL)
		return part;
	upload_part_free(part);
	return NULL;
}

enum sink_result upload_part_write(struct upload_part *const part, const struct span bytes, struct error *const err)
{
	return ingest_write(part->body.ingest, bytes, err);
}

void upload_part_expect(struct upload_part *const part, const struct checksum *const checksum)
{
	ASSERT(checksum->algorithm == part->declared);
	part->body.expected = *checksum;
}

void upload_part_finish(struct upload_part *const part)
{
	ingest_finish(part->body.ingest); /* `part` may be gone when this returns */
}

int upload_part_outcome(struct upload_part *const part, struct uploaded_part *const out, struct error *const err)
{
	if (upload_call_outcome(&part->call, err) != 0)
		return -1;
	*out = uploaded_part_of(&part->row, part->algorithm);
	if (part->body.expected.algorithm != CHECKSUM_NONE)
		out->checksum = part->body.expected;
	return 0;
}

bool upload_part_bad_checksum(const struct upload_part *const part, struct checksum *const out_expected, struct checksum *const out_actual)
{
	if (!part->body.is_bad)
		return false;
	*out_expected = part->body.expected;
	*out_actual = part->body.actual;
	return true;
}

void upload_part_free(struct upload_part *const part)
{
	if (part == NULL)
		return;
	ingest_free(part->body.ingest);
	upload_call_release(&part->call);
	free(part);
}
