/* Checking reads all files with several threads, one file per thread at a time, from memory maps
 * and in pieces, so that progress and signals are noticed within a large file. Files with tensors
 * that the list lacks are refused before that, because an engine would load them. */
#include "client/local/proven_files.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "client/local/folder_files.h"
#include "weights/model/mapped_file.h"
#include "weights/model/parallel.h"

enum { ARENA_BYTES = 64 * 1024 * 1024, PIECE_BYTES = 8 * 1024 * 1024 };

struct reading {
	const struct folder_file *from;
	struct step_file *to;
};

struct proof {
	const struct proven_files *wanted;
	const struct folder_files *found;
	const char *folder;
	struct work_watch *watch;
};

static void start(struct proven_files *out, size_t count);
static void add(struct proven_files *out, const struct step_file *file);
static int by_path(const void *left, const void *right);
static int proven_files_read_item(void *state, size_t item, unsigned worker, struct error *err);
static int digest_file(
	const char *path, struct work_watch *watch, struct digest128 *out, struct error *err);
static int check_others(const struct proof *proof, struct error *err);
static bool holds_tensors(const char *name);
static int proven_files_check_item(void *state, size_t item, unsigned worker, struct error *err);
static const struct folder_file *find(const struct folder_files *found, struct span path);
static bool parse_file(const struct json_node *node, struct step_file *out);

void proven_files_copy(const struct step_file *files, size_t count, struct proven_files *out)
{
	start(out, count);
	for (size_t i = 0; i < count; i++)
		add(out, &files[i]);
	qsort(out->files, out->count, sizeof(*out->files), by_path);
}

void proven_files_release(struct proven_files *files)
{
	arena_free(files->arena);
	*files = (struct proven_files){0};
}

uint64_t proven_files_bytes(const struct proven_files *files)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < files->count; i++)
		bytes += files->files[i].size;
	return bytes;
}

int proven_files_read(
	const char *folder, unsigned threads, struct proven_files *out, struct error *err)
{
	struct folder_files found;
	if (folder_files_read(folder, &found, err) != 0)
		return -1;
	start(out, found.count);
	for (size_t i = 0; i < found.count; i++)
		add(out,
			&(struct step_file){.path = span_text(found.files[i].name),
				.size = found.files[i].size});
	struct reading reading = {found.files, out->files};
	const int result = parallel_run(parallel_workers(threads, found.count), found.count,
		proven_files_read_item, &reading, err);
	folder_files_release(&found);
	if (result != 0)
		proven_files_release(out);
	return result;
}

int proven_files_check(const struct proven_files *files, const char *folder, unsigned threads,
	struct work_watch *watch, struct error *err)
{
	struct folder_files found;
	if (folder_files_read(folder, &found, err) != 0)
		return -1;
	struct proof proof = {files, &found, folder, watch};
	int result = check_others(&proof, err);
	if (result == 0)
		result = parallel_run(parallel_workers(threads, files->count), files->count,
			proven_files_check_item, &proof, err);
	folder_files_release(&found);
	return result;
}

void proven_files_print(const struct proven_files *files, struct json_writer *writer)
{
	json_writer_array(writer, "files");
	for (size_t i = 0; i < files->count; i++) {
		char digest[DIGEST128_TEXT_BYTES];
		digest128_format(&files->files[i].digest, digest);
		json_writer_object(writer, NULL);
		json_writer_text(writer, "path", files->files[i].path);
		json_writer_u64(writer, "size", files->files[i].size);
		json_writer_text(writer, "digest", span_text(digest));
		json_writer_end(writer, '}');
	}
	json_writer_end(writer, ']');
}

bool proven_files_parse(const struct json_node *array, struct proven_files *out)
{
	const size_t count = json_node_count(array);
	*out = (struct proven_files){0};
	if (array == NULL)
		return true;
	if (!json_node_is_array(array) || count > STEP_OBJECTS_MAX)
		return false;
	start(out, count);
	for (size_t i = 0; i < count; i++) {
		struct step_file file = {0};
		if (!parse_file(json_node_at(array, i), &file)) {
			proven_files_release(out);
			return false;
		}
		add(out, &file);
	}
	return true;
}

static void start(struct proven_files *out, size_t count)
{
	ASSERT(count <= STEP_OBJECTS_MAX);
	*out = (struct proven_files){.arena = arena_new(ARENA_BYTES)};
	out->files = arena_take_array(out->arena, count + 1, sizeof(*out->files));
	ASSERT(out->files != NULL); /* the arena has room for STEP_OBJECTS_MAX files */
}

static void add(struct proven_files *out, const struct step_file *file)
{
	out->files[out->count] = *file;
	out->files[out->count++].path = arena_copy(out->arena, file->path);
}

static int by_path(const void *left, const void *right)
{
	const struct step_file *const a = left;
	const struct step_file *const b = right;
	return span_compare(a->path, b->path);
}

static int proven_files_read_item(void *state, size_t item, unsigned worker, struct error *err)
{
	const struct reading *const reading = state;
	(void)worker;
	return digest_file(reading->from[item].path, NULL, &reading->to[item].digest, err);
}

static int digest_file(
	const char *path, struct work_watch *watch, struct digest128 *out, struct error *err)
{
	struct span bytes;
	if (mapped_file_open(path, &bytes, err) != 0)
		return -1;
	struct xxh3_stream *const stream = xxh3_stream_new();
	int result = 0;
	for (size_t at = 0; at < bytes.len && result == 0; at += PIECE_BYTES) {
		const size_t left = bytes.len - at;
		const struct span piece =
			span_of(bytes.data + at, left < PIECE_BYTES ? left : PIECE_BYTES);
		xxh3_stream_add(stream, piece);
		result = work_watch_step(watch, piece.len, err);
	}
	*out = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	mapped_file_close(bytes);
	return result;
}

/* An engine loads every file with tensors that it finds in the folder. */
static int check_others(const struct proof *proof, struct error *err)
{
	for (size_t i = 0; i < proof->found->count; i++) {
		const struct folder_file *const file = &proof->found->files[i];
		const struct step_file key = {.path = span_text(file->name)};
		if (holds_tensors(file->name) &&
			bsearch(&key, proof->wanted->files, proof->wanted->count, sizeof(key),
				by_path) == NULL)
			return error_set(err, ERROR_DIGEST_MISMATCH, "%s is not a file of the step",
				file->path);
	}
	return 0;
}

static bool holds_tensors(const char *name)
{
	return span_ends_text(span_text(name), ".safetensors") ||
		span_ends_text(span_text(name), ".safetensors.index.json");
}

static int proven_files_check_item(void *state, size_t item, unsigned worker, struct error *err)
{
	const struct proof *const proof = state;
	ASSERT(item < proof->wanted->count);
	const struct step_file *const wanted = &proof->wanted->files[item];
	const struct folder_file *const file = find(proof->found, wanted->path);
	struct digest128 digest;
	(void)worker;
	if (file == NULL)
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"the file %.*s, which the step holds, is missing in %s",
			(int)wanted->path.len, (const char *)wanted->path.data, proof->folder);
	if (file->size != wanted->size)
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"%s has %" PRIu64 " bytes, and the file that the step holds has %" PRIu64,
			file->path, file->size, wanted->size);
	if (digest_file(file->path, proof->watch, &digest, err) != 0)
		return -1;
	return digest128_equal(&digest, &wanted->digest)
		? 0
		: error_set(err, ERROR_DIGEST_MISMATCH,
			  "%s differs from the file that the step holds", file->path);
}

static const struct folder_file *find(const struct folder_files *found, struct span path)
{
	for (size_t low = 0, high = found->count; low < high;) {
		const size_t middle = low + (high - low) / 2;
		const int order = span_compare(path, span_text(found->files[middle].name));
		if (order == 0)
			return &found->files[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static bool parse_file(const struct json_node *node, struct step_file *out)
{
	struct span digest;
	return json_node_text(json_node_member(node, "path"), &out->path) &&
		json_node_u64(json_node_member(node, "size"), &out->size) &&
		json_node_text(json_node_member(node, "digest"), &digest) &&
		digest128_parse(digest, &out->digest);
}
