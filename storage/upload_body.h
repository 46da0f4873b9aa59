/* Bytes of one part on their way in: an ingest, and what the client declared of them. A copied part has up to two. Internal to storage. */
#ifndef STORAGE_UPLOAD_BODY_H
#define STORAGE_UPLOAD_BODY_H

#include "storage/committer.h"
#include "storage/ingest.h"

struct upload_body {
	struct ingest *ingest;
	bool has_md5;             /* declared */
	uint8_t md5[16];
	struct checksum expected; /* CHECKSUM_NONE: nothing was declared */
	bool is_bad;              /* what was expected did not come */
	struct checksum actual;
};
/* On the committer: the bytes are in their place and are those that were declared; else bad_digest. */
int upload_body_place(struct upload_body *body, struct error *err);
/* In the change: the packs that the bytes went to. */
int upload_body_record(const struct upload_body *body, struct db *db, struct error *err);
/* After the change. */
void upload_body_settle(struct upload_body *body, const struct change *change);

#endif
