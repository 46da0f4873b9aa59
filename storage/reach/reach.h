/* Finds what leads to chunks of packs: versions, directly or through the recipes of derived
 * versions, the steps and folds that name those, and parts of open uploads. Damage is told in these
 * terms, because an operator knows keys and steps, not chunk numbers. Reads the catalog only; one
 * thread. */
#ifndef STORAGE_REACH_REACH_H
#define STORAGE_REACH_REACH_H

#include "storage/db/db.h"
#include "storage/packs/segment.h"

enum {
	REACH_LIMIT = 100, /* keys, steps, and parts that are listed; the others are counted */
	REACH_UPLOAD_ID_BYTES = 16
};

struct reach_key { /* a version that its key shows */
	int64_t version;
	struct span bucket; /* empty: the bucket is gone */
	struct span key;
	uint8_t id[VERSION_ID_BYTES];
	bool has_id; /* false: the null version */
	bool is_current;
};
enum reach_form { REACH_STEP, REACH_PART, REACH_FOLD, REACH_FORMS };
/* "step", "part" or "fold". Static text. */
const char *reach_form_name(enum reach_form form);
struct reach_step { /* a step of a run; of a fold the step that it ends at */
	struct span bucket;
	struct span run; /* empty: the run has ended */
	int64_t step;
	enum reach_form form;
};
struct reach_upload { /* a part of an open multipart upload */
	struct span bucket;
	struct span key;
	uint8_t id[REACH_UPLOAD_ID_BYTES];
	uint32_t part;
};

struct reach;
/* `db` is borrowed, and is read in each call: let one snapshot cover the calls up to
 * reach_settle. */
struct reach *reach_new(struct db *db);
void reach_free(struct reach *reach); /* NULL is fine */

/* Adds where to begin: chunks [first, first + count) of the pack with this number in the table
 * `packs`, a part set, a version. */
int reach_add_chunks(
	struct reach *reach, int64_t pack, uint32_t first, uint32_t count, struct error *err);
void reach_add_set(struct reach *reach, int64_t set);
void reach_add_version(struct reach *reach, int64_t version);
/* Adds a step by its id in the table `steps`, without its objects. */
void reach_add_step(struct reach *reach, int64_t step);
/* Follows everything that was added, and fills the results. After a failure they have what could be
 * read: a damaged page of one table does not hide what others say. The first call that meets a
 * shared part set reads the whole table `versions`; later ones remember what it said. */
int reach_settle(struct reach *reach, struct error *err);
/* Forgets what was added, and the results. */
void reach_clear(struct reach *reach);

/* The results, valid until reach_clear: the first REACH_LIMIT of each, and how many there are. */
const struct reach_key *reach_keys(
	const struct reach *reach, size_t *out_listed, size_t *out_count);
const struct reach_step *reach_steps(
	const struct reach *reach, size_t *out_listed, size_t *out_count);
/* Only of chunks that were added. */
const struct reach_upload *reach_uploads(
	const struct reach *reach, size_t *out_listed, size_t *out_count);

#endif
