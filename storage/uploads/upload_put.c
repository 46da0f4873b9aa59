/* open --write*--> finish --ingest done--> change queued: place, apply (the upload still open? rows written) --COMMIT--> done */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/objects/put_body.h"
#include "storage/uploads/upload_internal.h"

struct upload_put {
	struct upload_call call; /* first */
	uint32_t number;
	struct put_body body;
	struct upload_checksum checksum;  /* the upload's */
	enum checksum_algorithm declared; /* CHECKSUM_NONE: the client declares nothing */
	struct upload_set_part row;       /* as committed */
	void (*room)(void *owner);
};

static int place(struct change *change, struct error *err)
{
	struct upload_put *const put = (struct upload_put *)change;
	return put_body_place(&put->body, err);
}

static int apply(struct change *change, struct db *db, struct error *err)
{
	struct upload_put *const put = (struct upload_put *)change;
	struct store *const store = put->call.store;
	const struct stored_part *const stored = ingest_part(put->body.ingest);
	struct upload_row upload;
	if (upload_call_find_open(&put->call, db, NULL, NULL, &upload, err) != 0 ||
		put_body_record(&put->body, db, err) != 0)
		return -1;
	upload_set_describe(
		stored, put->number, store_clock(store)->wall_ms(store_clock(store)), &put->row);
	if (upload_set_put(db, upload.part_set, stored, &put->row, err) != 0)
		return -1;
	return upload_row_revise(db, upload.number, err);
}

static void committed(struct change *change)
{
	struct upload_put *const put = (struct upload_put *)change;
	put_body_settle(&put->body, change);
	upload_call_take_change(&put->call);
	upload_call_settle(&put->call);
}

static void ingest_is_done(void *owner)
{
	struct upload_put *const put = owner;
	put->call.failed = ingest_outcome(put->body.ingest, &put->call.error) != 0;
	if (put->call.failed)
		upload_call_settle(&put->call);
	else
		upload_call_submit(&put->call);
}

static void ingest_has_room(void *owner)
{
	struct upload_put *const put = owner;
	if (put->room != NULL)
		put->room(put->call.owner);
}

int upload_part_check(const struct upload_row *upload, uint32_t number,
	enum checksum_algorithm declared, struct error *err)
{
	if (number < 1 || number > UPLOAD_PARTS_MAX)
		return error_set(err, ERROR_INVALID,
			"Part number must be an integer between 1 and %d, inclusive.",
			UPLOAD_PARTS_MAX);
	if (declared != CHECKSUM_NONE && upload->checksum.is_named &&
		declared != upload->checksum.algorithm)
		return error_set(err, ERROR_INVALID_REQUEST,
			"Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s.",
			checksum_suffix(upload->checksum.algorithm), checksum_suffix(declared));
	return 0;
}

struct upload_put *upload_put_open(
	struct store *store, const struct upload_put_params *params, struct error *err)
{
	struct upload_row upload;
	if (upload_find_open(store, &params->ref, NULL, &upload, err) != 0 ||
		upload_part_check(&upload, params->number, params->checksum, err) != 0)
		return NULL;
	struct upload_put *const put = memory_new(sizeof(*put));
	upload_call_init(&put->call, store, &params->ref, params->done, params->owner);
	put->call.change.place = place;
	put->call.change.apply = apply;
	put->call.change.done = committed;
	put->number = params->number;
	put->checksum = upload.checksum;
	put->declared = params->checksum;
	put->room = params->room;
	put->body.has_md5 = params->has_content_md5;
	memcpy(put->body.md5, params->content_md5, sizeof(put->body.md5));
	const struct ingest_options options = {
		.packs = store_packs(store),
		.want_md5 = !upload.fast_etags || params->has_content_md5,
		.checksum = put->checksum.algorithm,
		.declared =
			put->declared == put->checksum.algorithm ? CHECKSUM_NONE : put->declared,
		.never_inline = true,
		.room = ingest_has_room,
		.done = ingest_is_done,
		.owner = put,
	};
	put->body.ingest = ingest_open(&options, err);
	if (put->body.ingest != NULL)
		return put;
	upload_put_free(put);
	return NULL;
}

enum sink_result upload_put_write(struct upload_put *put, struct span bytes, struct error *err)
{
	return ingest_write(put->body.ingest, bytes, err);
}

void upload_put_expect(struct upload_put *put, const struct checksum *checksum)
{
	ASSERT(checksum->algorithm == put->declared);
	put->body.expected = *checksum;
}

void upload_put_finish(struct upload_put *put)
{
	ingest_finish(put->body.ingest); /* `put` may be gone when this returns */
}

int upload_put_outcome(struct upload_put *put, struct uploaded_part *out, struct error *err)
{
	if (upload_call_outcome(&put->call, err) != 0)
		return -1;
	*out = uploaded_part_of(&put->row, &put->checksum);
	if (put->body.expected.algorithm != CHECKSUM_NONE)
		out->checksum = put->body.expected;
	return 0;
}

bool upload_put_bad_checksum(
	const struct upload_put *put, struct checksum *out_expected, struct checksum *out_actual)
{
	if (!put->body.is_bad)
		return false;
	*out_expected = put->body.expected;
	*out_actual = put->body.actual;
	return true;
}

void upload_put_free(struct upload_put *put)
{
	if (put == NULL)
		return;
	ingest_free(put->body.ingest);
	upload_call_release(&put->call);
	free(put);
}
