/* The bytes of an object or of a part on their way in: an ingest, and what the client declared of
 * them. A copied part has up to two. Internal to storage. */
#ifndef STORAGE_OBJECTS_PUT_BODY_H
#define STORAGE_OBJECTS_PUT_BODY_H

#include "storage/core/committer.h"
#include "storage/ingest/ingest.h"

struct put_body {
	struct ingest *ingest;
	bool has_md5; /* declared */
	uint8_t md5[16];
	struct checksum expected; /* CHECKSUM_NONE: nothing was declared */
	bool is_bad;              /* what was expected did not come */
	struct checksum actual;
};
/* On the committer: the bytes are in their place and are those that were declared; else
 * bad_digest. */
int put_body_place(struct put_body *body, struct error *err);
/* In the change: the packs that the bytes went to. */
int put_body_record(const struct put_body *body, struct db *db, struct error *err);
/* After the change. */
void put_body_settle(struct put_body *body, const struct change *change);

#endif
