#include "weights/delta/fold.h"

#include "weights/delta/delta_stack.h"
#include "weights/delta/fold_plain.h"

static int encode_ends(const struct fold_params *params, const struct delta_stack *stack,
	struct delta_stats *out_stats, struct error *err);
static void take_steps(const struct fold_params *params, const struct delta_stack *stack,
	struct delta_encode_params *encode);

int fold(const struct fold_params *params, struct delta_stats *out_stats, struct error *err)
{
	ASSERT(params->count >= 1 && params->deltas != NULL && params->out != NULL);
	if (params->base == NULL)
		return fold_plain(params, out_stats, err);
	struct delta_stack *const stack = delta_stack_open(
		params->base, params->base_files, params->deltas, params->count, err);
	int result = stack == NULL ? -1 : delta_stack_prove(stack, err);
	if (result == 0)
		result = encode_ends(params, stack, out_stats, err);
	delta_stack_close(stack);
	return result == 0 ? 0
			   : delta_stack_explain(params->deltas[0], params->base,
				     params->base_digests, params->threads, err);
}

static int encode_ends(const struct fold_params *params, const struct delta_stack *stack,
	struct delta_stats *out_stats, struct error *err)
{
	const size_t top = delta_stack_levels(stack) - 1;
	struct digest128 base_digest;
	struct digest128 next_digest;
	struct delta_encode_params encode = {
		.base = params->base,
		.next = delta_stack_source(stack, top),
		.base_files = params->base_files,
		.next_files = delta_stack_files(stack, top),
		.format = params->format,
		.checksum = params->checksum,
		.base_digests = params->base_digests,
		.threads = params->threads,
		.watch = params->watch,
		.out = params->out,
		.files = params->files,
		.expected_base = delta_stack_digest(stack, 0, &base_digest) ? &base_digest : NULL,
		.expected_next = delta_stack_digest(stack, top, &next_digest) ? &next_digest : NULL,
	};
	take_steps(params, stack, &encode);
	return delta_encode(&encode, out_stats, err);
}

/* Sets the steps from which and to which the fold leads, as the deltas or the caller give them. A
 * fold with a step from the caller spans as many steps as its deltas do. */
static void take_steps(const struct fold_params *params, const struct delta_stack *stack,
	struct delta_encode_params *encode)
{
	const struct delta_metadata *const first =
		delta_reader_metadata(delta_stack_reader(stack, 1));
	const struct delta_metadata *const last =
		delta_reader_metadata(delta_stack_reader(stack, delta_stack_levels(stack) - 1));
	encode->model_version = last->has_step ? last->step : 0;
	encode->has_base_step = first->has_base_step;
	encode->base_step = first->base_step;
	if (!params->has_step)
		return;
	const bool is_known =
		first->has_base_step && last->has_step && last->step >= first->base_step;
	const uint64_t span = is_known ? last->step - first->base_step : params->count;
	encode->model_version = params->step;
	encode->has_base_step = true;
	encode->base_step = params->step >= span ? params->step - span : 0;
}
