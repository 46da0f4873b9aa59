/* The bytes of an object or of a part while they are stored: an ingest, and the digests that the
 * client declared. A part that is copied has up to two of them. Internal to storage. */
#ifndef STORAGE_OBJECTS_PUT_BODY_H
#define STORAGE_OBJECTS_PUT_BODY_H

#include "storage/core/committer.h"
#include "storage/ingest/ingest.h"

struct put_body {
	struct ingest *ingest;
	bool has_md5; /* an MD5 was declared */
	uint8_t md5[16];
	struct checksum expected; /* CHECKSUM_NONE: no checksum was declared */
	bool is_bad;              /* the body has another checksum, `actual` */
	struct checksum actual;
};
/* On the committer, before the shared pack is synced: places the bytes; bad_digest unless they have
 * the declared digests. */
int put_body_place(struct put_body *body, struct error *err);
/* Inside the change: writes the rows of the packs that the bytes went to. */
int put_body_record(const struct put_body *body, struct db *db, struct error *err);
/* After the change has ended: keeps the packs when it was committed or is in doubt. */
void put_body_settle(struct put_body *body, const struct change *change);

#endif
