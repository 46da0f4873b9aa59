#include "storage/step_jobs/step_delta.h"

#include "storage/core/store.h"
#include "storage/step_jobs/fold_files.h"
#include "weights/delta/delta_encode.h"

int step_delta_encode(struct step_work *work, const struct step_delta_plan *plan, struct error *err)
{
	ASSERT(plan->base != NULL && plan->next != NULL);
	ASSERT(plan->scratch != NULL && plan->out != NULL);
	const struct step_row *const from = &step_source_chain(plan->base)->row;
	const struct step_row *const to = &step_source_chain(plan->next)->row;
	struct fold_files files = {0};
	struct delta_stats stats;
	int result =
		fold_files_open(&files, work->store, plan->base, plan->next, plan->scratch, err);
	const struct delta_encode_params params = {
		.base = step_source_tensors(plan->base),
		.next = step_source_tensors(plan->next),
		.base_files = &files.base,
		.next_files = &files.next,
		.format = plan->format,
		.expected_base = &from->digest,
		.expected_next = &to->digest,
		.model_version = to->step,
		.has_base_step = true,
		.base_step = from->step,
		.threads = work->threads,
		.out = plan->out,
		.files = store_files(work->store),
	};
	if (result == 0)
		result = delta_encode(&params, &stats, err);
	fold_files_release(&files);
	return result;
}
