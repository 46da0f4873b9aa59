/* A form of a step that is complete in itself, as tensors and files that are read from the store by
 * ranges: a published or made anchor. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_STEP_SOURCE_FORM_H
#define STORAGE_STEP_JOBS_STEP_SOURCE_FORM_H

#include "storage/step_jobs/step_job.h"
#include "storage/step_jobs/step_source_chain.h"
#include "weights/delta/model_files.h"
#include "weights/model/tensor_source.h"

struct step_form_source;

/* Reads the headers of the shards. `form` and `schema` are borrowed. Without `work` nothing bounds
 * or stops the reads. invalid, schema_mismatch, incomplete_anchor: its files do not hold the
 * schema's tensors. */
struct step_form_source *step_form_source_open(struct store *store, struct step_work *work,
	const struct step_source_form *form, const struct schema *schema, struct error *err);
void step_form_source_close(struct step_form_source *source); /* NULL is fine */

/* Both live as long as the source. Files other than shards have size and digest, but no bytes. */
struct tensor_source *step_form_source_tensors(struct step_form_source *source);
const struct model_files *step_form_source_files(const struct step_form_source *source);

#endif
