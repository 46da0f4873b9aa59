#include "storage/step_jobs/step_delta.h"

#include "storage/core/store.h"
#include "storage/step_jobs/fold_files.h"
#include "weights/delta/delta_encode.h"

int step_delta_encode(struct step_work *work, struct step_source *base, struct step_source *next,
	const struct scratch *scratch, enum delta_format format, const char *out, struct error *err)
{
	const struct step_row *const from = &step_source_chain(base)->row;
	const struct step_row *const to = &step_source_chain(next)->row;
	struct fold_files files = {0};
	struct delta_stats stats;
	int result = fold_files_open(&files, work->store, base, next, scratch, err);
	const struct delta_encode_params params = {
		.base = step_source_tensors(base),
		.next = step_source_tensors(next),
		.base_files = &files.base,
		.next_files = &files.next,
		.format = format,
		.expected_base = &from->digest,
		.expected_next = &to->digest,
		.model_version = to->step,
		.has_base_step = true,
		.base_step = from->step,
		.threads = work->threads,
		.out = out,
		.files = store_files(work->store),
	};
	if (result == 0)
		result = delta_encode(&params, &stats, err);
	fold_files_release(&files);
	return result;
}
