/* Applying is a walk over the topmost level of a stack. Each block is decoded, written to the place
 * that the result's headers give it, and hashed together with its base while both are in the cache.
 * The digests are compared when all blocks are written and before the result gets its name. After a
 * failure the base's digest is checked first, because on a wrong base any other message would
 * mislead. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "weights/delta/checkpoint_writer.h"
#include "weights/delta/delta_stack.h"
#include "weights/model/checkpoint_source.h"
#include "weights/model/tensor_pass.h"

struct apply {
	const struct delta_apply_params *params;
	const char *const *paths;
	size_t count;
	const struct schema *schema;
	struct tensor_source *base;
	struct model_files base_files;
	struct delta_stack *stack;
	struct checkpoint_writer *writer;
	bool *same;                     /* true for tensors that no delta changes */
	struct digest128 *base_digests; /* NULL: the caller gave them */
	struct digest128 *digests;
	struct digest128 wanted_base; /* the base that the first delta names */
	bool has_wanted_base;
	struct delta_stats stats;
};

static int run(struct apply *apply, struct error *err);
static void read_wanted_base(struct apply *apply);
static int check_base(struct apply *apply, struct error *err);
static int explain(const struct apply *apply, struct error *err);
static int build(struct apply *apply, struct error *err);
static void find_same(struct apply *apply);
static struct checkpoint_writer *begin(const struct apply *apply, struct error *err);
static void find_links(
	const struct apply *apply, const struct model_files *files, const char **links);
static const char *find_twin(const struct apply *apply, const struct model_file *file);
static int delta_apply_put_block(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err);
static int check_result(struct apply *apply, struct error *err);
static int check_digest(const struct digest128 *actual, const struct digest128 *wanted,
	const char *source, struct error *err);
static void sum_up(struct apply *apply);

int delta_apply(
	const struct delta_apply_params *params, struct delta_stats *out_stats, struct error *err)
{
	ASSERT(params->base != NULL && params->out != NULL);
	ASSERT(params->delta_count > 0 ? params->deltas != NULL : params->delta != NULL);
	const size_t tensors = schema_count(checkpoint_schema(params->base));
	struct apply apply = {
		.params = params,
		.paths = params->delta_count > 0 ? params->deltas : &params->delta,
		.count = params->delta_count > 0 ? params->delta_count : 1,
		.schema = checkpoint_schema(params->base),
		.base = checkpoint_source_new(params->base),
		.base_digests = params->base_tensor_digests == NULL
			? memory_new_array(tensors, sizeof(struct digest128))
			: NULL,
		.digests = memory_new_array(tensors, sizeof(struct digest128)),
		.same = memory_new_array(tensors, sizeof(bool)),
	};
	const int result = run(&apply, err);
	if (result == 0)
		*out_stats = apply.stats;
	checkpoint_writer_free(apply.writer);
	delta_stack_close(apply.stack);
	model_files_release(&apply.base_files);
	tensor_source_free(apply.base);
	free(apply.same);
	free(apply.base_digests);
	free(apply.digests);
	return result;
}

static int run(struct apply *apply, struct error *err)
{
	const struct delta_apply_params *const params = apply->params;
	if (file_exists(params->out))
		return error_set(err, ERROR_EXISTS, "'%s' exists already", params->out);
	read_wanted_base(apply);
	if (params->base_tensor_digests != NULL && check_base(apply, err) != 0)
		return explain(apply, err);
	if (model_files_of(&apply->base_files, params->base, err) != 0)
		return -1;
	apply->stack =
		delta_stack_open(apply->base, &apply->base_files, apply->paths, apply->count, err);
	if (apply->stack == NULL)
		return explain(apply, err);
	/* A caller that knows the result's digest does not need the delta's own proof. */
	if (params->expected_result == NULL && delta_stack_prove(apply->stack, err) != 0)
		return explain(apply, err);
	if (build(apply, err) != 0)
		return explain(apply, err);
	sum_up(apply);
	return 0;
}

/* Reads the base that the first delta names, before anything else can fail. */
static void read_wanted_base(struct apply *apply)
{
	struct error ignored;
	struct delta_reader *const reader = delta_reader_open(apply->paths[0], &ignored);
	const struct delta_metadata *const metadata =
		reader != NULL ? delta_reader_metadata(reader) : NULL;
	apply->has_wanted_base = metadata != NULL && metadata->has_base_digest;
	if (apply->has_wanted_base)
		apply->wanted_base = metadata->base_digest;
	delta_reader_close(reader);
}

static int check_base(struct apply *apply, struct error *err)
{
	const struct digest128 *const given = apply->params->base_tensor_digests;
	apply->stats.base_digest = schema_checkpoint_digest(
		apply->schema, given != NULL ? given : apply->base_digests);
	if (!apply->has_wanted_base ||
		digest128_equal(&apply->stats.base_digest, &apply->wanted_base))
		return 0;
	char wanted[DIGEST128_TEXT_BYTES];
	char actual[DIGEST128_TEXT_BYTES];
	digest128_format(&apply->wanted_base, wanted);
	digest128_format(&apply->stats.base_digest, actual);
	return error_set(err, ERROR_WRONG_BASE,
		"the delta was made from the base %s; this base is %s", wanted, actual);
}

/* busy means that the watch ended the work; the base does not explain that. */
static int explain(const struct apply *apply, struct error *err)
{
	const struct delta_apply_params *const params = apply->params;
	if (err->kind == ERROR_BUSY)
		return -1;
	return delta_stack_explain(
		apply->paths[0], apply->base, params->base_tensor_digests, params->threads, err);
}

static int build(struct apply *apply, struct error *err)
{
	const struct delta_apply_params *const params = apply->params;
	find_same(apply);
	apply->writer = begin(apply, err);
	if (apply->writer == NULL)
		return -1;
	/* The base is hashed only if there is a digest to compare with. */
	const bool hashes_base = apply->base_digests != NULL && apply->has_wanted_base;
	const struct tensor_pass pass = {
		.base = hashes_base ? apply->base : NULL,
		.next = delta_stack_source(apply->stack, apply->count),
		.threads = params->threads,
		.watch = params->watch,
		.block = delta_apply_put_block,
		.state = apply,
		.same = hashes_base || params->base_tensor_digests != NULL ? apply->same : NULL,
		.known_base = params->base_tensor_digests,
		.base_digests = hashes_base ? apply->base_digests : NULL,
		.next_digests = apply->digests,
	};
	if (tensor_pass_run(&pass, err) != 0)
		return -1;
	if ((pass.same != NULL && check_base(apply, err) != 0) || check_result(apply, err) != 0)
		return -1;
	return checkpoint_writer_commit(apply->writer, err);
}

static void find_same(struct apply *apply)
{
	for (size_t i = 0; i < schema_count(apply->schema); i++)
		apply->same[i] =
			!delta_stack_changes(apply->stack, schema_tensor(apply->schema, i)->name);
}

static struct checkpoint_writer *begin(const struct apply *apply, struct error *err)
{
	const struct delta_apply_params *const params = apply->params;
	const struct file_ops *const ops = params->files != NULL ? params->files : file_system();
	const struct model_files *const files = delta_stack_files(apply->stack, apply->count);
	const char **const links = memory_new_array(files->count + 1, sizeof(links[0]));
	if (params->shares_files)
		find_links(apply, files, links);
	struct checkpoint_writer *const writer =
		checkpoint_writer_begin(ops, params->out, files, apply->schema, links, err);
	free(links);
	return writer;
}

/* Fills the caller's array, one for each file of the result: the base's file with the same bytes,
 * or NULL. */
static void find_links(
	const struct apply *apply, const struct model_files *files, const char **links)
{
	struct model_place *const places =
		memory_new_array(schema_count(apply->schema) + 1, sizeof(places[0]));
	model_files_place(files, apply->schema, places);
	for (size_t i = 0; i < files->count; i++)
		links[i] = find_twin(apply, &files->files[i]);
	for (size_t i = 0; i < schema_count(apply->schema); i++)
		if (!apply->same[i])
			links[places[i].file] = NULL;
	free(places);
}

/* The path of the base's file, when its header or bytes are those of the result's `file`. */
static const char *find_twin(const struct apply *apply, const struct model_file *file)
{
	const struct model_file *const twin = model_files_find(&apply->base_files, file->path);
	if (twin == NULL || twin->size != file->size || twin->is_shard != file->is_shard ||
		!digest128_equal(&twin->digest, &file->digest))
		return NULL;
	/* model_files_of keeps the checkpoint's order. */
	const struct checkpoint_file *const found =
		checkpoint_file(apply->params->base, (size_t)(twin - apply->base_files.files));
	ASSERT(span_equal_text(twin->path, found->path));
	return found->full_path;
}

static int delta_apply_put_block(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err)
{
	const struct apply *const apply = state;
	(void)worker;
	return checkpoint_writer_put(apply->writer, block->tensor, block->at, block->next, err);
}

static int check_result(struct apply *apply, struct error *err)
{
	struct digest128 wanted;
	apply->stats.result_digest = schema_checkpoint_digest(apply->schema, apply->digests);
	if (delta_stack_digest(apply->stack, apply->count, &wanted) &&
		check_digest(&apply->stats.result_digest, &wanted, "the delta", err) != 0)
		return delta_stack_blame(delta_stack_reader(apply->stack, apply->count),
			apply->paths[apply->count - 1], err);
	const struct digest128 *const expected = apply->params->expected_result;
	return expected == NULL
		? 0
		: check_digest(&apply->stats.result_digest, expected, "the caller", err);
}

static int check_digest(const struct digest128 *actual, const struct digest128 *wanted,
	const char *source, struct error *err)
{
	if (digest128_equal(actual, wanted))
		return 0;
	char wanted_text[DIGEST128_TEXT_BYTES];
	char actual_text[DIGEST128_TEXT_BYTES];
	digest128_format(wanted, wanted_text);
	digest128_format(actual, actual_text);
	return error_set(err, ERROR_DIGEST_MISMATCH, "the result is %s, and %s says %s",
		actual_text, source, wanted_text);
}

static void sum_up(struct apply *apply)
{
	struct delta_stats *const stats = &apply->stats;
	stats->tensors = schema_count(apply->schema);
	stats->full_bytes = model_files_bytes(delta_stack_files(apply->stack, apply->count));
	for (size_t i = 0; i < stats->tensors; i++) {
		const struct schema_tensor *const tensor = schema_tensor(apply->schema, i);
		stats->elements += tensor->bytes * 8 / dtype_bits(tensor->dtype);
		stats->changed_tensors += !apply->same[i];
	}
	for (size_t level = 1; level <= apply->count; level++) {
		const struct delta_reader *const reader = delta_stack_reader(apply->stack, level);
		const struct model_files *const files = delta_stack_files(apply->stack, level);
		uint64_t changed = 0;
		stats->delta_bytes += delta_reader_bytes(reader);
		stats->changed_elements += delta_reader_changed(reader, &changed) ? changed : 0;
		for (size_t i = 0; i < files->count; i++)
			stats->delta_bytes += files->files[i].is_mapped ? files->files[i].size : 0;
	}
}
