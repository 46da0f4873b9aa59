/* Settings of a bucket that are documents: one row of `bucket_documents` for each kind. The writer
 * of a document defines its content (see each kind); storage itself reads only the lifecycle and
 * the public access block. docs/FORMAT.md, "Catalog". */
#ifndef STORAGE_BUCKETS_BUCKET_DOCUMENT_H
#define STORAGE_BUCKETS_BUCKET_DOCUMENT_H

#include "base/arena.h"
#include "storage/buckets/bucket_ref.h"
#include "storage/core/store.h"
#include "storage/db/db.h"

/* Numbers are stored in the catalog. */
enum bucket_document_kind {
	BUCKET_TAGS = 1,      /* a tag_set (storage/buckets/tag_set.h) */
	BUCKET_CORS = 2,      /* XML, as api/s3/bucket/cors_rules prints it */
	BUCKET_POLICY = 3,    /* JSON, as it was sent; its rights are rows of bucket_grants */
	BUCKET_LIFECYCLE = 4, /* JSON, storage/buckets/lifecycle.h */
	/* one byte: bits of enum public_access_block (storage/buckets/bucket_grant.h) */
	BUCKET_PUBLIC_ACCESS = 5,
	/* text: BucketOwnerEnforced, BucketOwnerPreferred or ObjectWriter */
	BUCKET_OWNERSHIP = 6,
	BUCKET_LOCATION = 7 /* text: the LocationConstraint of its creation */
};
enum { BUCKET_DOCUMENT_MAX_BYTES = 1024 * 1024 };

struct bucket_document {
	enum bucket_document_kind kind;
	struct span bytes; /* empty: the bucket has none of this kind */
};

/* Reads the document of one kind into the arena; empty when the bucket has none. no_bucket. */
int bucket_document_find(struct store *store, struct bucket_ref ref, enum bucket_document_kind kind,
	struct arena *arena, struct span *out, struct error *err);

/* The rows; internal to storage. */
int bucket_document_row_read(struct db *db, int64_t bucket, enum bucket_document_kind kind,
	struct arena *arena, struct span *out, struct error *err);
/* Replaces the row, or drops it when the document is empty. */
int bucket_document_row_put(
	struct db *db, int64_t bucket, const struct bucket_document *document, struct error *err);
int bucket_document_row_drop_all(struct db *db, int64_t bucket, struct error *err);

#endif
