/* The tensors and files of a kept step, wherever they come from: its anchor, the anchor that the
 * server made, or the step before and a delta, of any format that weights/delta/delta_reader reads.
 * Tensors are read and decoded block by block; deltas are copied into a scratch folder first,
 * headers are held in memory. Blocking: for background work. What the deltas say of base and result
 * is checked here only as far as weights/delta/delta_stack does: whether the tensors are the step's
 * is for step_proof. */
#ifndef STORAGE_STEP_JOBS_STEP_SOURCE_H
#define STORAGE_STEP_JOBS_STEP_SOURCE_H

#include "storage/step_jobs/step_job.h"
#include "storage/step_jobs/step_source_chain.h"
#include "weights/delta/model_files.h"
#include "weights/model/tensor_source.h"

struct step_source;

/* `work`: bounds and stops what is read (busy); NULL: nothing does. Errors: those of
 * step_chain_find; what a delta is refused with; no_key when the step was removed meanwhile. */
struct step_source *step_source_open(struct store *store, struct step_work *work, int64_t run,
	uint64_t step, enum step_source_via via, struct error *err);
void step_source_close(struct step_source *source); /* NULL is fine; after all cursors */

/* All live as long as the source. */
struct tensor_source *step_source_tensors(struct step_source *source);
/* Of the step's checkpoint. Of files other than shards `bytes` may be empty: step_source_version
 * tells where they are. */
const struct model_files *step_source_files(const struct step_source *source);
const struct step_chain *step_source_chain(const struct step_source *source);
/* The version that is this file of the checkpoint, whole; 0: none is, since its bytes are only made
 * by decoding. */
int64_t step_source_version(const struct step_source *source, struct span path);

#endif
