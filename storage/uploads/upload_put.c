/* open, write ... --> the ingest ends --> place, apply: upload still open? rows written --> COMMIT
 *
 * The bytes go into an ingest as they arrive. The upload is found before the first byte, so that a
 * part without an upload is refused early, and again in the change, because it may be completed or
 * aborted meanwhile. */
#include <string.h>

#include "storage/objects/put_body.h"
#include "storage/uploads/upload_internal.h"

struct upload_put {
	struct call call;
	struct upload_ref ref; /* its texts are copied */
	uint32_t number;
	struct put_body body;
	struct upload_checksum checksum;  /* of the upload */
	enum checksum_algorithm declared; /* CHECKSUM_NONE: the client declares none */
	struct upload_set_part row;       /* as committed */
	void (*room)(void *owner);
	void *room_owner;
};

static struct upload_put *put_new(struct store *store, const struct upload_put_params *params,
	const struct upload_row *upload);
static void upload_put_finish(struct call *call);
static int upload_put_place(struct call *call, struct error *err);
static int upload_put_apply(struct call *call, struct db *db, struct error *err);
static enum call_next upload_put_settle_body(struct call *call);
static void upload_put_release(struct call *call);
static void upload_put_has_room(void *owner);
static void upload_put_is_stored(void *owner);

static const struct call_kind put_kind = {
	.stages = {{.begin = upload_put_finish},
		{.place = upload_put_place,
			.apply = upload_put_apply,
			.applied = upload_put_settle_body}},
	.release = upload_put_release,
};

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
	struct upload_put *const put = put_new(store, params, &upload);
	const struct ingest_options options = {
		.packs = store_packs(store),
		.want_md5 = !upload.fast_etags || params->has_content_md5,
		.checksum = put->checksum.algorithm,
		.declared =
			put->declared == put->checksum.algorithm ? CHECKSUM_NONE : put->declared,
		.never_inline = true,
		.room = upload_put_has_room,
		.done = upload_put_is_stored,
		.owner = put,
	};
	put->body.ingest = ingest_open(&options, err);
	if (put->body.ingest != NULL)
		return put;
	call_free(&put->call);
	return NULL;
}

enum sink_result upload_put_write(struct upload_put *put, struct span bytes, struct error *err)
{
	return ingest_write(put->body.ingest, bytes, err);
}

void upload_put_expect(struct upload_put *put, const struct checksum *checksum)
{
	ASSERT(checksum->algorithm != CHECKSUM_NONE && checksum->algorithm == put->declared);
	put->body.expected = *checksum;
}

struct call *upload_put_call(struct upload_put *put)
{
	return &put->call;
}

struct uploaded_part upload_put_result(const struct call *call)
{
	const struct upload_put *const put = (const struct upload_put *)call;
	struct uploaded_part out = uploaded_part_of(&put->row, &put->checksum);
	if (put->body.expected.algorithm != CHECKSUM_NONE)
		out.checksum = put->body.expected;
	return out;
}

bool upload_put_bad_checksum(
	const struct call *call, struct checksum *out_expected, struct checksum *out_actual)
{
	const struct upload_put *const put = (const struct upload_put *)call;
	if (!put->body.is_bad)
		return false;
	*out_expected = put->body.expected;
	*out_actual = put->body.actual;
	return true;
}

static struct upload_put *put_new(struct store *store, const struct upload_put_params *params,
	const struct upload_row *upload)
{
	struct upload_put *const put =
		call_new(sizeof(*put), &put_kind, store, UPLOAD_CALL_ARENA_BYTES);
	put->ref = upload_ref_copy(&params->ref, put->call.arena);
	put->number = params->number;
	put->checksum = upload->checksum;
	put->declared = params->checksum;
	put->room = params->room;
	put->room_owner = params->owner;
	put->body.has_md5 = params->has_content_md5;
	memcpy(put->body.md5, params->content_md5, sizeof(put->body.md5));
	return put;
}

static void upload_put_finish(struct call *call)
{
	ingest_finish(((struct upload_put *)call)->body.ingest);
}

static int upload_put_place(struct call *call, struct error *err)
{
	return put_body_place(&((struct upload_put *)call)->body, err);
}

static int upload_put_apply(struct call *call, struct db *db, struct error *err)
{
	struct upload_put *const put = (struct upload_put *)call;
	const struct stored_part *const stored = ingest_part(put->body.ingest);
	struct upload_row upload;
	if (upload_read_open(db, &put->ref, NULL, &upload, err) != 0 ||
		put_body_record(&put->body, db, err) != 0)
		return -1;
	upload_set_describe(stored, put->number, store_now_ms(call->store), &put->row);
	if (upload_set_put(db, upload.part_set, stored, &put->row, err) != 0)
		return -1;
	return upload_row_revise(db, upload.number, err);
}

static enum call_next upload_put_settle_body(struct call *call)
{
	put_body_settle(&((struct upload_put *)call)->body, &call->change);
	return call->failed ? CALL_FAILS : CALL_NEXT;
}

static void upload_put_release(struct call *call)
{
	ingest_free(((struct upload_put *)call)->body.ingest);
}

static void upload_put_has_room(void *owner)
{
	struct upload_put *const put = owner;
	if (put->room != NULL)
		put->room(put->room_owner);
}

static void upload_put_is_stored(void *owner)
{
	struct upload_put *const put = owner;
	struct error err = {0};
	const bool failed = ingest_outcome(put->body.ingest, &err) != 0;
	call_resume(&put->call, failed ? &err : NULL);
}
