/* The tensors and files of a kept step, wherever they come from: its anchor, the anchor that the
 * server made, or the step before and a delta of any format that weights/delta/delta_reader reads.
 * Tensors are read and decoded block by block; deltas are first copied into a scratch folder;
 * headers stay in memory. Blocking: for background work. The claims of deltas about base and result
 * are checked only as far as weights/delta/delta_stack does; whether the tensors are the step's is
 * for step_proof. */
#ifndef STORAGE_STEP_JOBS_STEP_SOURCE_H
#define STORAGE_STEP_JOBS_STEP_SOURCE_H

#include "storage/step_jobs/step_job.h"
#include "storage/step_jobs/step_source_chain.h"
#include "weights/delta/model_files.h"
#include "weights/model/tensor_source.h"

struct step_source;

/* `work` bounds what is read, and stops it (busy); NULL: nothing does. Fails as step_chain_find
 * does and with what a delta is refused with; no_key when the step was removed meanwhile. */
struct step_source *step_source_open(struct store *store, struct step_work *work, int64_t run,
	uint64_t step, enum step_source_via via, struct error *err);
/* NULL is fine. All cursors must be closed before. */
void step_source_close(struct step_source *source);

/* All of these live as long as the source. */
struct tensor_source *step_source_tensors(struct step_source *source);
/* The files of the step's checkpoint. Files other than shards may have empty `bytes`:
 * step_source_version tells where they are. */
const struct model_files *step_source_files(const struct step_source *source);
const struct step_chain *step_source_chain(const struct step_source *source);
/* The version that is this file of the checkpoint, whole; 0 when there is none, because the bytes
 * only come from decoding. */
int64_t step_source_version(const struct step_source *source, struct span path);
/* Has the source count what the step's own delta changes against the step before, while its tensors
 * are read (delta_source_count). `changed` is the caller's, one for each tensor, all 0. False when
 * it cannot tell: it does not read the step's delta, or that is a full checkpoint. Before the first
 * read. */
bool step_source_count(struct step_source *source, uint64_t *changed);

#endif
