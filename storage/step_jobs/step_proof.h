/* The proof of published steps. Each step is decoded as its readers will decode it, from its anchor
 * and from its delta where it has both, and compared with its manifest: the digest of the
 * checkpoint, those of its tensors and those of its files. Here are the kind of job that does it,
 * and the walk itself. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_STEP_PROOF_H
#define STORAGE_STEP_JOBS_STEP_PROOF_H

#include "storage/step_jobs/step_source.h"

extern const struct step_job_kind step_proof_job;
/* Whether an error of this kind says something about the step itself, or about one that it is built
 * on. All others are trouble of the server, and may pass. */
bool step_proof_is_verdict(enum error_kind kind);

/* The digests that a walk over a step's tensors finds. */
struct step_digests {
	struct digest128 checkpoint;
	struct digest128 *tensors; /* in schema order */
	struct digest128 *files;   /* in the order of the model_files: of each whole file */
};
/* Decodes everything once. *out must be zeroed; release it in any case. */
int step_digests_find(struct tensor_source *tensors, const struct model_files *files,
	unsigned threads, struct step_digests *out, struct error *err);
void step_digests_release(struct step_digests *digests);
/* digest_mismatch, with what differs from the manifest of the source's step. */
int step_digests_check(
	const struct step_source *source, const struct step_digests *digests, struct error *err);

#endif
