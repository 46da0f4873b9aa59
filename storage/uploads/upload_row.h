/* The table `uploads`. docs/FORMAT.md, "Multipart uploads". Internal to storage. */
#ifndef STORAGE_UPLOADS_UPLOAD_ROW_H
#define STORAGE_UPLOADS_UPLOAD_ROW_H

#include "storage/db/db.h"
#include "storage/uploads/upload.h"

/* Numbers are stored in the catalog. */
enum upload_state {
	UPLOAD_OPEN = 0,
	/* Kept for UPLOAD_KEPT_MS, so that a completion that is repeated gets the same answer. */
	UPLOAD_COMPLETED = 1,
	UPLOAD_TRIMMING = 2 /* completed, and parts that were not listed must still be removed */
};
enum { UPLOAD_KEPT_MS = 24 * 60 * 60 * 1000 };

struct upload_row {
	int64_t number;
	struct upload_id id;
	int64_t bucket;
	struct span key;
	enum upload_state state;
	int64_t created_ms;
	struct span initiator;
	struct span headers; /* a header_blob */
	struct span tags;    /* a tag_set; empty: none */
	enum canned_acl acl;
	enum storage_class storage_class;
	struct upload_checksum checksum;
	bool fast_etags; /* parts need not have an MD5 */
	int64_t part_set;
	int64_t revision;   /* rises with each part that is added or replaced */
	struct span result; /* of a completed one (upload_judge.h) */
};

int upload_row_add(struct db *db, struct upload_row *row, struct error *err); /* sets number */
/* Finds an upload in any state: 1 found, 0 absent, -1. With `arena` NULL, texts stay empty. */
int upload_row_find(struct db *db, struct object_place place, const struct upload_id *id,
	struct arena *arena, struct upload_row *out, struct error *err);

int upload_row_no_upload(struct error *err); /* sets the error no_upload; -1 */
/* A part was added or replaced: raises the revision. */
int upload_row_revise(struct db *db, int64_t number, struct error *err);
int upload_row_complete(struct db *db, int64_t number, enum upload_state state, int64_t now_ms,
	struct span result, struct error *err);
int upload_row_remove(struct db *db, int64_t number, struct error *err);
/* Those that are neither completed nor aborted, of all buckets. */
int upload_row_count(struct db *db, uint64_t *out, struct error *err);
/* Open uploads of a bucket behind (key, id), in that order. Step the statement, read its rows with
 * upload_row_read and db_reset it. */
struct db_statement *upload_row_scan(struct db *db, int64_t bucket, struct span key,
	const struct upload_id *id, struct error *err);
struct span upload_row_scan_key(struct db_statement *scan); /* until the next step */
void upload_row_read(struct db_statement *scan, struct arena *arena, struct upload_row *out);

/* For the sweeper. Each finds one upload: 1 found, 0 none, -1. */
int upload_row_find_trimming(
	struct db *db, int64_t *out_number, int64_t *out_part_set, struct error *err);
/* The upload becomes UPLOAD_COMPLETED. */
int upload_row_set_trimmed(struct db *db, int64_t number, struct error *err);
int upload_row_find_expired(
	struct db *db, int64_t before_ms, int64_t *out_number, struct error *err);
/* Finds an upload of a bucket that was deleted with open uploads (upload_row_orphan) or with
 * everything in it (bucket_sweep_mark). *out_number is 0 when the bucket has no upload left; forget
 * the bucket once its versions are gone too. */
int upload_row_find_orphan(struct db *db, int64_t *out_bucket, int64_t *out_number,
	int64_t *out_part_set, struct error *err);
int upload_row_forget_bucket(struct db *db, int64_t bucket, struct error *err);
/* A bucket is deleted: leaves its open uploads to the sweeper. */
int upload_row_orphan(struct db *db, int64_t bucket, struct error *err);

#endif
