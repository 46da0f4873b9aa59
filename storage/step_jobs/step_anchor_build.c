/* open base and step --> encode the delta of the shards --> a recipe for each file
 *      --> read each recipe through: its digest must be the manifest's
 *
 * The recipe of a shard is its header as a literal, and a copy of the base or delta blocks for each
 * tensor. Any other file is a copy of a version that has it. */
#include "storage/step_jobs/step_anchor_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/store.h"
#include "storage/objects/scratch.h"
#include "weights/delta/delta_encode.h"
#include "weights/model/relative_path.h"

enum { PIECE_BYTES = 1024 * 1024 /* read at a time */, KEY_BYTES = STEP_NAME_MAX_BYTES + 256 };

static int open_sources(struct step_anchor_build *build, int64_t run, uint64_t step,
	const struct step_anchor_base *base, struct error *err);
static int encode(struct step_anchor_build *build, struct error *err);
static struct model_files shards_of(const struct model_files *all);
static const struct digest128 *known_digests(const struct step_chain *chain);
static int make_files(struct step_anchor_build *build, struct error *err);
static int add_shard(struct step_anchor_build *build, const struct model_file *file,
	struct derived_recipe *recipe, struct error *err);
static int add_tensor(struct step_anchor_build *build, struct derived_recipe *recipe, size_t tensor,
	struct error *err);
static int delta_source(struct step_anchor_build *build, struct derived_recipe *recipe, size_t file,
	size_t *out, struct error *err);
static int store_delta(struct step_anchor_build *build, size_t file, struct error *err);
static int add_other(struct step_anchor_build *build, const struct model_file *file,
	struct derived_recipe *recipe, struct error *err);
static int find_origin(
	struct step_anchor_build *build, int64_t version, int64_t *out, struct error *err);
static int prove(struct step_anchor_build *build, struct step_anchor_file *file, struct error *err);
static int read_through(struct step_anchor_build *build, struct body_source *source,
	struct xxh3_stream *digest, struct error *err);

int step_anchor_build_check(const struct step_anchor_build *build,
	const struct step_anchor_file *file, struct error *err)
{
	ASSERT(build->next != NULL);
	const struct step_message *const manifest = &step_source_chain(build->next)->manifest;
	for (size_t i = 0; i < manifest->file_count; i++) {
		const bool is_same = span_equal(manifest->files[i].path, file->path) ||
			manifest->file_count == 1;
		if (is_same && !digest128_equal(&manifest->files[i].digest, &file->digest))
			return error_set(err, ERROR_DIGEST_MISMATCH,
				"The file '%.*s' is not what the manifest says.",
				(int)span_slice(file->path, 0, 160).len,
				(const char *)file->path.data);
	}
	return 0;
}

int step_anchor_build(struct step_work *work, int64_t run, uint64_t step,
	const struct step_anchor_base *base, struct step_anchor_build *out, struct error *err)
{
	ASSERT(work != NULL && base->row.step < step);
	*out = (struct step_anchor_build){.work = work};
	if (open_sources(out, run, step, base, err) != 0 || encode(out, err) != 0)
		return -1;
	const struct schema *const schema = step_source_chain(out->base)->schema;
	out->delta_versions = memory_new_array(
		delta_reader_file_count(out->delta) + 1, sizeof(*out->delta_versions));
	out->places = memory_new_array(schema_count(schema) + 1, sizeof(*out->places));
	model_files_place(step_source_files(out->base), schema, out->places);
	return make_files(out, err);
}

void step_anchor_build_close(struct step_anchor_build *build)
{
	struct error ignored;
	for (size_t i = 0; i < build->count; i++) {
		derived_recipe_free(build->files[i].recipe);
		if (build->files[i].version != 0)
			(void)scratch_release(build->work->store, build->files[i].version,
				&ignored); /* else the next start does */
	}
	for (size_t i = 0;
		build->delta_versions != NULL && i < delta_reader_file_count(build->delta); i++)
		if (build->delta_versions[i] != 0)
			(void)scratch_release(
				build->work->store, build->delta_versions[i], &ignored);
	free(build->files);
	free(build->delta_versions);
	free(build->places);
	delta_reader_close(build->delta);
	free(build->delta_path);
	scratch_close(build->scratch);
	step_source_close(build->next);
	step_source_close(build->base);
}

static int open_sources(struct step_anchor_build *build, int64_t run, uint64_t step,
	const struct step_anchor_base *base, struct error *err)
{
	struct step_work *const work = build->work;
	build->base = step_source_open(work->store, work, run, base->row.step, STEP_VIA_ANY, err);
	build->next = build->base == NULL
		? NULL
		: step_source_open(work->store, work, run, step, STEP_VIA_ANY, err);
	build->scratch = build->next == NULL ? NULL : scratch_open(work->store, err);
	if (build->scratch == NULL)
		return -1;
	/* with deltas: the made anchor of the base was dropped meanwhile */
	if (step_source_chain(build->base)->delta_count > 0)
		return error_set(err, ERROR_NO_KEY, "The anchor of step %llu is gone.",
			(unsigned long long)base->row.step);
	return 0;
}

static int encode(struct step_anchor_build *build, struct error *err)
{
	const struct step_chain *const base = step_source_chain(build->base);
	const struct step_chain *const next = step_source_chain(build->next);
	struct model_files base_files = shards_of(step_source_files(build->base));
	struct model_files next_files = shards_of(step_source_files(build->next));
	struct delta_stats stats;
	build->delta_path = relative_path_join(scratch_path(build->scratch), span_text("delta"));
	const struct delta_encode_params params = {
		.base = step_source_tensors(build->base),
		.next = step_source_tensors(build->next),
		.base_files = &base_files,
		.next_files = &next_files,
		.format = DELTA_ULP_CLASS,
		.base_digests = known_digests(base),
		.expected_next = &next->row.digest,
		.model_version = next->row.step,
		.has_base_step = true,
		.base_step = base->row.step,
		.threads = build->work->threads,
		.out = build->delta_path,
		.files = store_files(build->work->store),
	};
	const int result = delta_encode(&params, &stats, err);
	free(base_files.files);
	free(next_files.files);
	if (result == 0)
		build->delta = delta_reader_open(build->delta_path, err);
	return build->delta == NULL ? -1 : 0;
}

/* The shards alone, borrowed: the delta is not about other files. */
static struct model_files shards_of(const struct model_files *all)
{
	struct model_files shards = {.is_folder = all->is_folder,
		.files = memory_new_array(all->count + 1, sizeof(*all->files))};
	for (size_t i = 0; i < all->count; i++)
		if (all->files[i].is_shard)
			shards.files[shards.count++] = all->files[i];
	return shards;
}

static const struct digest128 *known_digests(const struct step_chain *chain)
{
	const size_t bytes = schema_count(chain->schema) * sizeof(struct digest128);
	const struct span given = chain->manifest.tensor_digests;
	return given.len == bytes && bytes > 0 ? (const struct digest128 *)given.data : NULL;
}

static int make_files(struct step_anchor_build *build, struct error *err)
{
	const struct model_files *const files = step_source_files(build->next);
	ASSERT(build->files == NULL && build->count == 0);
	build->files = memory_new_array(files->count + 1, sizeof(*build->files));
	for (size_t i = 0; i < files->count; i++) {
		const struct model_file *const file = &files->files[i];
		struct step_anchor_file *const made = &build->files[build->count++];
		*made = (struct step_anchor_file){
			.path = file->path, .recipe = derived_recipe_new()};
		if ((file->is_shard ? add_shard : add_other)(build, file, made->recipe, err) != 0 ||
			prove(build, made, err) != 0)
			return -1;
		build->bytes += derived_recipe_size(made->recipe);
	}
	return 0;
}

static int add_shard(struct step_anchor_build *build, const struct model_file *file,
	struct derived_recipe *recipe, struct error *err)
{
	const struct schema *const schema = step_source_chain(build->next)->schema;
	ASSERT(file->is_shard && file->parsed != NULL);
	derived_recipe_add_literal(recipe, span_of(file->length, sizeof(file->length)));
	derived_recipe_add_literal(recipe, file->json);
	for (size_t i = 0; i < safetensors_count(file->parsed); i++) {
		const ptrdiff_t tensor =
			schema_find(schema, safetensors_tensor(file->parsed, i)->name);
		ASSERT(tensor >= 0); /* model_files_check */
		if (add_tensor(build, recipe, (size_t)tensor, err) != 0)
			return -1;
	}
	return 0;
}

static int add_tensor(struct step_anchor_build *build, struct derived_recipe *recipe, size_t tensor,
	struct error *err)
{
	const struct schema_tensor *const facts =
		schema_tensor(step_source_chain(build->next)->schema, tensor);
	const struct model_place *const place = &build->places[tensor];
	ASSERT(place->file < step_source_files(build->base)->count);
	const struct model_file *const file = &step_source_files(build->base)->files[place->file];
	const struct delta_entry *const entry = delta_reader_find(build->delta, facts->name);
	const int64_t version = step_source_version(build->base, file->path);
	ASSERT(version != 0 && (entry == NULL || entry->kind == DELTA_ENTRY_BLOCKS));
	const struct derived_range base = {
		.source = derived_recipe_source(recipe, version, file->size),
		.offset = place->at,
		.length = facts->bytes};
	if (entry == NULL) {
		derived_recipe_add_copy(recipe, base.source, base.offset, base.length);
		return 0;
	}
	struct derived_blocks blocks = {.offset = entry->at, .bytes = entry->data};
	if (delta_source(build, recipe, entry->file, &blocks.source, err) != 0)
		return -1;
	return derived_recipe_add_blocks(recipe, facts->dtype, &base, &blocks, err);
}

static int delta_source(struct step_anchor_build *build, struct derived_recipe *recipe, size_t file,
	size_t *out, struct error *err)
{
	uint64_t size = 0;
	char *const path =
		relative_path_join(build->delta_path, delta_reader_file_name(build->delta, file));
	int result = store_delta(build, file, err);
	if (result == 0)
		result = file_size(path, &size, err);
	free(path);
	if (result == 0)
		*out = derived_recipe_source(recipe, build->delta_versions[file], size);
	return result;
}

/* A file of the delta becomes a hidden version when the first recipe needs it. */
static int store_delta(struct step_anchor_build *build, size_t file, struct error *err)
{
	const struct step_chain *const chain = step_source_chain(build->next);
	const struct span name = delta_reader_file_name(build->delta, file);
	char key[KEY_BYTES];
	ASSERT(file < delta_reader_file_count(build->delta));
	if (build->delta_versions[file] != 0)
		return 0;
	const int len = snprintf(key, sizeof(key), "%.*s/steps/%06llu/made/%.*s",
		(int)chain->run_name.len, (const char *)chain->run_name.data,
		(unsigned long long)chain->row.step, (int)name.len, (const char *)name.data);
	ASSERT(len > 0 && (size_t)len < sizeof(key));
	char *const path = relative_path_join(build->delta_path, name);
	const int result = scratch_store_hidden(build->work->store, path, chain->run.bucket,
		span_of(key, (size_t)len), &build->delta_versions[file], err);
	free(path);
	return result;
}

static int add_other(struct step_anchor_build *build, const struct model_file *file,
	struct derived_recipe *recipe, struct error *err)
{
	const int64_t version = step_source_version(build->next, file->path);
	int64_t origin = 0;
	if (version == 0)
		return error_set(err, ERROR_NO_KEY, "No object holds the file '%.*s'.",
			(int)span_slice(file->path, 0, 160).len, (const char *)file->path.data);
	if (find_origin(build, version, &origin, err) != 0)
		return -1;
	derived_recipe_add_copy(
		recipe, derived_recipe_source(recipe, origin, file->size), 0, file->size);
	return 0;
}

/* Anchors copy such files from each other. Each copy is made of the first one. */
static int find_origin(
	struct step_anchor_build *build, int64_t version, int64_t *out, struct error *err)
{
	struct db *const db = store_reader_take(build->work->store, err);
	if (db == NULL)
		return -1;
	const int result = derived_origin(db, version, out, err);
	store_reader_give(build->work->store, db);
	return result;
}

/* Reads once what readers will get. */
static int prove(struct step_anchor_build *build, struct step_anchor_file *file, struct error *err)
{
	struct body_source *const source = derived_open_recipe(
		build->work->store, file->recipe, 0, derived_recipe_size(file->recipe), err);
	if (source == NULL)
		return -1;
	struct xxh3_stream *const digest = xxh3_stream_new();
	const int result = read_through(build, source, digest, err);
	source->close(source);
	file->digest = xxh3_stream_result(digest);
	xxh3_stream_free(digest);
	return result != 0 ? -1 : step_anchor_build_check(build, file, err);
}

static int read_through(struct step_anchor_build *build, struct body_source *source,
	struct xxh3_stream *digest, struct error *err)
{
	uint8_t *const piece = memory_new(PIECE_BYTES);
	ptrdiff_t got = 0;
	bool goes_on = true;
	while (goes_on && (got = source->read(source, piece, PIECE_BYTES, err)) > 0) {
		xxh3_stream_add(digest, span_of(piece, (size_t)got));
		goes_on = build->work->spend(build->work, (uint64_t)got);
	}
	free(piece);
	return goes_on ? (int)got : step_work_stopped(err);
}
