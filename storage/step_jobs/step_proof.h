/* The proof of published steps: each is decoded as its readers will, from its anchor and from its
 * delta where it has both, and held against its manifest: the checkpoint's digest, those of its
 * tensors and of its files. The kind of job that does it, and the walk itself. Internal to
 * storage. */
#ifndef STORAGE_STEP_JOBS_STEP_PROOF_H
#define STORAGE_STEP_JOBS_STEP_PROOF_H

#include "storage/step_jobs/step_source.h"

extern const struct step_job_kind step_proof_job;
/* What a kind of error says of the step itself, or of one that it is built on. All others are the
 * server's trouble, and may pass. */
bool step_proof_is_verdict(enum error_kind kind);

/* What a walk over a step's tensors finds. */
struct step_digests {
	struct digest128 checkpoint;
	struct digest128 *tensors; /* schema order */
	struct digest128 *files;   /* in the order of the model_files: of each whole file */
};
/* Decodes everything once. Release in any case. */
int step_digests_find(struct tensor_source *tensors, const struct model_files *files,
	unsigned threads, struct step_digests *out, struct error *err);
void step_digests_release(struct step_digests *digests);
/* digest_mismatch, with what differs from the manifest of the source's step. */
int step_digests_check(
	const struct step_source *source, const struct step_digests *digests, struct error *err);

#endif
