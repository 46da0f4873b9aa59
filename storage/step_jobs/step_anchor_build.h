/* An anchor in the making. A derived one: the step's tensors are encoded against those of a step
 * nearby, the delta is stored in hidden versions, and every file of the checkpoint becomes a recipe
 * over that step's files and the delta. Each recipe is read through once to prove it. No step names
 * any of this before step_anchor_job does. Blocking. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_STEP_ANCHOR_BUILD_H
#define STORAGE_STEP_JOBS_STEP_ANCHOR_BUILD_H

#include "storage/runs/step_anchor_base.h"
#include "storage/step_jobs/step_source.h"
#include "storage/versions/derived.h"

struct step_anchor_file {
	struct span path;
	struct derived_recipe *recipe;
	/* in place of a recipe: a hidden version that stores the file plainly */
	int64_t version;
	struct digest128 digest;
};
struct step_anchor_build {
	struct step_work *work;
	struct step_source *base; /* read from its anchor alone; NULL for a plain anchor */
	struct step_source *next;
	struct scratch *scratch;
	char *delta_path;
	struct delta_reader *delta;
	int64_t *delta_versions;    /* for each file of the delta; 0: no recipe needs it */
	struct model_place *places; /* of the tensors in the base's files */
	struct step_anchor_file *files;
	size_t count;
	uint64_t bytes;
};

/* digest_mismatch when the step is not what its manifest says; no_key when it or the base was
 * removed meanwhile. Call step_anchor_build_close in any case. */
int step_anchor_build(struct step_work *work, int64_t run, uint64_t step,
	const struct step_anchor_base *base, struct step_anchor_build *out, struct error *err);
/* The same, but every file is written out and stored plainly: for steps without a base, and for
 * those that must stand alone. */
int step_anchor_build_plain(struct step_work *work, int64_t run, uint64_t step,
	struct step_anchor_build *out, struct error *err);
/* Releases what was stored; it goes unless a derived version or the step names it. */
void step_anchor_build_close(struct step_anchor_build *build);

/* digest_mismatch unless the file is the published one, as far as the manifest tells. */
int step_anchor_build_check(const struct step_anchor_build *build,
	const struct step_anchor_file *file, struct error *err);

#endif
