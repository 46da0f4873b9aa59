/* The objects that a step's tensors can be read from: an anchor, published or made by the server,
 * and the deltas from there on. Found in one snapshot of the catalog; the objects may be gone when
 * they are read later (no_key). Internal to storage. */
#ifndef STORAGE_STEP_JOBS_STEP_SOURCE_CHAIN_H
#define STORAGE_STEP_JOBS_STEP_SOURCE_CHAIN_H

#include "storage/core/store.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"
#include "weights/model/schema.h"

enum step_source_via {
	STEP_VIA_ANY,    /* whatever is there, an anchor before a delta */
	STEP_VIA_ANCHOR, /* the published anchor */
	STEP_VIA_DELTA   /* the published delta, upon the step before */
};
struct step_source_object {
	struct span name;
	int64_t version;
	uint64_t size;
	struct digest128 digest;
};
struct step_source_form {
	uint64_t step;
	struct step_source_object *objects; /* sorted by name */
	size_t count;
};
struct step_chain {
	struct arena *arena; /* of all texts; owned */
	struct run_row run;
	struct span run_name;
	struct schema *schema;        /* the run's; owned */
	struct step_row row;          /* of the step itself */
	struct step_message manifest; /* with tensor digests */
	struct step_source_form start;
	/* upon `start`, in order; deltas without objects are left out */
	struct step_source_form *deltas;
	size_t delta_count;
};

/* no_run, no_step, collected; not_ready when no anchor leads to the step; step_failed when it, or a
 * step that it is built on, failed its proof. *chain needs step_chain_release in any case. */
int step_chain_find(struct store *store, int64_t run, uint64_t step, enum step_source_via via,
	struct step_chain *chain, struct error *err);
void step_chain_release(struct step_chain *chain);

/* NULL when the form has no such object. */
const struct step_source_object *step_source_form_find(
	const struct step_source_form *form, struct span name);

#endif
