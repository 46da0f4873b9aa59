#include "client/commands/fold_files.h"

#include "weights/delta/delta_reader.h"
#include "weights/model/checkpoint_source.h"

static int fold_over(const struct checkpoint *base, const struct fold_params *params,
	const struct progress_sink *sink, struct delta_stats *out_stats, struct error *err);

int fold_files(const char *base, const struct fold_params *params, const struct progress_sink *sink,
	struct delta_stats *out_stats, enum delta_format *out_format, struct error *err)
{
	ASSERT(params->count > 0);
	*out_format = params->format;
	if (base != NULL) {
		struct checkpoint *const opened = checkpoint_open(base, err);
		const int result =
			opened != NULL ? fold_over(opened, params, sink, out_stats, err) : -1;
		checkpoint_close(opened);
		return result;
	}
	struct delta_summary summary;
	if (delta_inspect(params->deltas[0], &summary, err) != 0)
		return -1;
	*out_format = summary.format == DELTA_SKYRL_XOR ? DELTA_SLIME_XOR : summary.format;
	return fold(params, out_stats, err);
}

static int fold_over(const struct checkpoint *base, const struct fold_params *params,
	const struct progress_sink *sink, struct delta_stats *out_stats, struct error *err)
{
	struct progress *const progress = progress_new("decoding", checkpoint_bytes(base), sink);
	struct model_files files = {0};
	struct tensor_source *const source = checkpoint_source_new(base);
	struct fold_params whole = *params;
	whole.base = source;
	whole.base_files = &files;
	whole.watch = progress_watch(progress, NULL);
	int result = model_files_of(&files, base, err);
	if (result == 0)
		result = fold(&whole, out_stats, err);
	progress_free(progress);
	model_files_release(&files);
	tensor_source_free(source);
	return result;
}
