/* What the checks of fsck share. */
#ifndef STORAGE_FSCK_FSCK_INTERNAL_H
#define STORAGE_FSCK_FSCK_INTERNAL_H

#include "storage/core/acknowledged.h"
#include "storage/db/db.h"
#include "storage/fsck/fsck.h"
#include "storage/packs/backend.h"

enum { FSCK_PATH_BYTES = 4096, FSCK_TOLD_MAX = 1000 /* findings of a kind; others are counted */ };

/* In SQL: every part set that something leads to, once for each holder. */
#define FSCK_ALL_HOLDERS                                                                \
	"(SELECT CASE WHEN v.kind = 2 AND coalesce(v.part_set, 0) = 0 THEN -v.sequence" \
	" ELSE v.part_set END AS id FROM versions v WHERE v.kind IN (1, 2)"             \
	" UNION ALL SELECT part_set FROM xet_files"                                     \
	" UNION ALL SELECT part_set FROM uploads WHERE state = 0)"

struct fsck {
	const struct fsck_params *params;
	struct fsck_report *report;
	struct acknowledgement last; /* as DIR/acknowledged has it */
	struct store_identity store; /* as the catalog has it */
	uint64_t told[FINDING_KINDS];
	struct db *db;           /* the catalog, or a copy of it */
	struct backend *backend; /* DIR/packs */
	struct reach *reach;     /* add to it before fsck_tell */
	bool takes_no_writes;        /* the disk: databases are read as copies */
	bool has_key;                        /* the master key could be read */
	uint8_t master_key[FSCK_KEY_BYTES];
	bool has_bad_table;      /* told; what cannot be read for that reason is not told again */
};

/* A path in the data folder. */
void fsck_path(const struct fsck *fsck, const char *name, char out[FSCK_PATH_BYTES]);
/* Tells of a finding. What it touches is what was added to fsck->reach since the last call; `reach`
 * is filled in here. Where a table cannot be read, the finding has what the others say. */
int fsck_tell_finding(struct fsck *fsck, struct finding *finding, struct error *err);
/* The same for a finding without a number and chunks. */
int fsck_tell(struct fsck *fsck, enum finding_kind kind, const char *subject, const char *detail,
	struct error *err);
/* Tells of `why`, and clears it: 0. Of tables that cannot be read only the first is told: one
 * damaged page stops many checks. -1: the failure is fatal. */
int fsck_tell_failure(
	struct fsck *fsck, enum finding_kind kind, const char *subject, struct error *why);
/* Whether a failure says nothing of what was looked at, so that the check must end. */
bool fsck_is_fatal(const struct error *err);

/* The checks, in the order in which they run. Each returns 0 when it has seen everything. */
int fsck_catalog(struct fsck *fsck, struct error *err);     /* tables, indexes, pages */
int fsck_links(struct fsck *fsck, struct error *err);       /* rows that name rows; counts */
int fsck_versions(struct fsck *fsck, struct error *err);    /* checksums of versions and parts */
int fsck_rights(struct fsck *fsck, struct error *err);      /* keys, and access to buckets */
int fsck_steps(struct fsck *fsck, struct error *err);       /* manifests and the chain of bases */
int fsck_packs(struct fsck *fsck, struct error *err);       /* pack files and their records */
int fsck_files(struct fsck *fsck, struct error *err);       /* files that no row names */
int fsck_chunk_index(struct fsck *fsck, struct error *err); /* chunks.db */
int fsck_journal(struct fsck *fsck, struct error *err);     /* journal/ */

#endif
