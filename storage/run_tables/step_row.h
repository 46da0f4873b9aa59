/* The tables `steps` (small rows, walked for paths) and `step_manifests` (what was published).
 * Internal to storage. */
#ifndef STORAGE_RUN_TABLES_STEP_ROW_H
#define STORAGE_RUN_TABLES_STEP_ROW_H

#include "storage/db/db.h"
#include "wire/step_message.h"

enum step_state {
	STEP_KEPT = 0,
	STEP_RELEASING = 1, /* removed; the sweeper still has objects of it to let go */
	STEP_COLLECTED = 2  /* removed; the row stays as a tombstone */
};
enum step_verified {
	STEP_UNPROVEN = 0,
	STEP_PROVEN = 1,
	STEP_FAILED = 2,
	STEP_UNCHECKED = 3 /* published while the run's setting `verify` was off */
};
/* Whether the server must make an anchor of the step and list it. A stored anchor has its own
 * bytes: it needs no other step's. */
enum step_wants { STEP_WANTS_NONE = 0, STEP_WANTS_MADE = 1, STEP_WANTS_STORED = 2 };
struct step_row {
	int64_t id;
	uint64_t step;
	enum step_state state;
	struct digest128 digest;  /* of the checkpoint */
	struct digest128 content; /* step_message_content_digest */
	bool has_form[STEP_FORMS_MAX];
	uint64_t form_bytes[STEP_FORMS_MAX]; /* by enum step_form_kind */
	int64_t created_ms;
	enum step_verified verified;
	bool has_made;       /* the server has made an anchor of it, with: */
	unsigned made_depth; /* depth of its derivations; 0: stored */
	uint64_t made_bytes; /* of its files */
	/* wall clock; the anchor stays until then even if nothing else wants it */
	int64_t made_until_ms;
	enum step_wants wants_made;
};

/* In the order in which step_row_read takes them. */
#define STEP_COLUMNS \
	"id, step, state, digest, content, anchor_bytes, delta_bytes, created_ms, verified, made, made_bytes," \
	" made_until_ms, wants_made"
enum { STEP_COLUMN_COUNT = 13 };
/* 1 found, 0 absent, -1. */
int step_row_find(
	struct db *db, int64_t run, uint64_t step, struct step_row *out, struct error *err);
/* The nearest kept anchor above `above`. 1, 0, -1. */
int step_row_anchor_above(
	struct db *db, int64_t run, uint64_t above, uint64_t *out_step, struct error *err);
/* The newest kept step at or below `at` with an anchor, published or made, whose proof has not
 * failed. Later steps can be reached from it. 1, 0, -1. */
int step_row_root_at_or_below(
	struct db *db, int64_t run, uint64_t at, uint64_t *out_step, struct error *err);
/* The oldest kept step at or above `from`. 1, 0, -1. */
int step_row_kept_from(
	struct db *db, int64_t run, uint64_t from, struct step_row *out, struct error *err);
/* The newest kept step at or below `at` whose proof has not failed. 1, 0, -1. */
int step_row_good_at_or_below(
	struct db *db, int64_t run, uint64_t at, struct step_row *out, struct error *err);
/* The oldest kept step. 1, 0, -1. */
int step_row_oldest(struct db *db, int64_t run, struct step_row *out, struct error *err);
/* Any step that is being released; any step of a run. 1, 0, -1. */
int step_row_find_releasing(struct db *db, int64_t *out_id, struct error *err);
int step_row_find_of_run(struct db *db, int64_t run, int64_t *out_id, struct error *err);

/* The oldest kept step with an id above `after` that is not proven yet, with its run. 1, 0, -1. */
int step_row_find_unproven(
	struct db *db, int64_t after, int64_t *out_run, struct step_row *out, struct error *err);
int step_row_set_verified(struct db *db, int64_t id, enum step_verified verified,
	struct span reason, struct error *err);
/* Why the proof failed, copied into the arena; empty when it did not fail. */
int step_row_load_reason(
	struct db *db, int64_t id, struct arena *arena, struct span *out, struct error *err);

/* The rows of a run from `from` upwards or downwards: db_step and step_row_read, then db_reset. */
struct db_statement *step_row_scan(
	struct db *db, int64_t run, uint64_t from, bool downwards, struct error *err);
void step_row_read(struct db_statement *scan, struct step_row *out);

/* Adds the row of a kept step and sets row->id. */
int step_row_add(struct db *db, int64_t run, struct step_row *row, struct error *err);
/* Removes the manifest and what was counted, and leaves the row as a tombstone. */
int step_row_collect(struct db *db, int64_t id, struct error *err);
int step_row_set_released(struct db *db, int64_t id, struct error *err);
int step_row_remove(struct db *db, int64_t id, struct error *err);

int step_row_add_manifest(struct db *db, int64_t id, struct span manifest,
	struct span tensor_digests, struct error *err);
/* Copies into the arena; `out_tensor_digests` may be NULL. corrupt when the manifest is absent or
 * its checksum is wrong. */
int step_row_load_manifest(struct db *db, int64_t id, struct arena *arena,
	struct span *out_manifest, struct span *out_tensor_digests, struct error *err);

#endif
