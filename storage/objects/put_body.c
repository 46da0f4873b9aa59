#include "storage/objects/put_body.h"

#include <string.h>

#include "storage/core/pack_row.h"

static int check_digests(struct put_body *body, const struct stored_part *part, struct error *err);
static const struct checksum *find_checksum(
	const struct stored_part *part, enum checksum_algorithm algorithm);

int put_body_place(struct put_body *body, struct error *err)
{
	if (ingest_place(body->ingest, err) != 0)
		return -1;
	return check_digests(body, ingest_part(body->ingest), err);
}

int put_body_record(const struct put_body *body, struct db *db, struct error *err)
{
	const struct pack_record *records = NULL;
	const size_t count = ingest_packs(body->ingest, &records);
	for (size_t i = 0; i < count; i++)
		if (pack_row_record(db, &records[i], err) != 0)
			return -1;
	return 0;
}

void put_body_settle(struct put_body *body, const struct change *change)
{
	if (!change->failed)
		ingest_committed(body->ingest);
	if (change->in_doubt)
		ingest_in_doubt(body->ingest);
}

static int check_digests(struct put_body *body, const struct stored_part *part, struct error *err)
{
	ASSERT(!body->has_md5 || part->has_md5);
	if (body->has_md5 && memcmp(part->md5, body->md5, sizeof(body->md5)) != 0)
		return error_set(err, ERROR_BAD_DIGEST,
			"The body's MD5 differs from the declared Content-MD5.");
	if (body->expected.algorithm == CHECKSUM_NONE)
		return 0;
	const struct checksum *const actual = find_checksum(part, body->expected.algorithm);
	if (checksum_equal(actual, &body->expected))
		return 0;
	body->is_bad = true;
	body->actual = *actual;
	return error_set(err, ERROR_BAD_DIGEST,
		"The %s you specified did not match the calculated checksum.",
		checksum_name(body->expected.algorithm));
}

/* A checksum that was declared is either the one that is stored, or was computed beside it. */
static const struct checksum *find_checksum(
	const struct stored_part *part, enum checksum_algorithm algorithm)
{
	return part->checksum.algorithm == algorithm ? &part->checksum : &part->declared;
}
