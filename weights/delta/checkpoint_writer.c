/* All files are made at their full size before the first tensor comes, so that a full disk is known
 * early and tensors can be written at their places in any order. They lie in a staging folder until
 * the commit. */
#include "weights/delta/checkpoint_writer.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/model/staging.h"

enum { HINTED_BYTES = 1 << 20 /* for smaller writes, a sync hint costs more than it gains */ };

struct checkpoint_writer {
	const struct file_ops *ops;
	const struct model_files *files;
	struct model_place *places; /* one for each tensor */
	/* one for each file; NULL for files without tensors and for linked ones */
	const struct staged_file **staged;
	struct staging *staging;
};

static int begin_files(
	struct checkpoint_writer *writer, const char *const *links, struct error *err);
static int begin_file(
	struct checkpoint_writer *writer, size_t index, const char *link, struct error *err);
static int begin_shard(struct checkpoint_writer *writer, size_t index, struct error *err);

struct checkpoint_writer *checkpoint_writer_begin(const struct file_ops *ops, const char *out,
	const struct model_files *files, const struct schema *schema, const char *const *links,
	struct error *err)
{
	struct checkpoint_writer *const writer = memory_new(sizeof(*writer));
	writer->ops = ops;
	writer->files = files;
	writer->places = memory_new_array(schema_count(schema), sizeof(writer->places[0]));
	writer->staged = memory_new_array(files->count, sizeof(writer->staged[0]));
	model_files_place(files, schema, writer->places);
	writer->staging = staging_begin(ops, out, files->is_folder, err);
	if (writer->staging != NULL && begin_files(writer, links, err) == 0)
		return writer;
	checkpoint_writer_free(writer);
	return NULL;
}

int checkpoint_writer_put(const struct checkpoint_writer *writer, size_t tensor, uint64_t at,
	struct span bytes, struct error *err)
{
	const struct model_place *const place = &writer->places[tensor];
	ASSERT(place->file < writer->files->count);
	const struct staged_file *const file = writer->staged[place->file];
	if (file == NULL)
		return 0; /* it is linked */
	if (file_write_at(writer->ops, file->fd, bytes, (off_t)(place->at + at), file->path, err) !=
		0)
		return -1;
	if (bytes.len >= HINTED_BYTES)
		file_begin_sync(writer->ops, file->fd, (off_t)(place->at + at), bytes.len);
	return 0;
}

int checkpoint_writer_commit(struct checkpoint_writer *writer, struct error *err)
{
	return staging_commit(writer->staging, err);
}

void checkpoint_writer_free(struct checkpoint_writer *writer)
{
	if (writer == NULL)
		return;
	staging_free(writer->staging);
	free(writer->places);
	free(writer->staged);
	free(writer);
}

static int begin_files(
	struct checkpoint_writer *writer, const char *const *links, struct error *err)
{
	for (size_t i = 0; i < writer->files->count; i++)
		if (begin_file(writer, i, links != NULL ? links[i] : NULL, err) != 0)
			return -1;
	return 0;
}

static int begin_file(
	struct checkpoint_writer *writer, size_t index, const char *link, struct error *err)
{
	const struct model_file *const file = &writer->files->files[index];
	if (link != NULL)
		return staging_link(writer->staging, file->path, link, err);
	return file->is_shard ? begin_shard(writer, index, err)
			      : staging_put(writer->staging, file->path, file->bytes, err);
}

static int begin_shard(struct checkpoint_writer *writer, size_t index, struct error *err)
{
	const struct model_file *const file = &writer->files->files[index];
	const struct staged_file *const staged = staging_add(writer->staging, file->path, err);
	writer->staged[index] = staged;
	if (staged == NULL || file_reserve(staged->fd, file->size, staged->path, err) != 0)
		return -1;
	if (file_write_at(writer->ops, staged->fd, span_of(file->length, sizeof(file->length)), 0,
		    staged->path, err) != 0)
		return -1;
	return file_write_at(
		writer->ops, staged->fd, file->json, sizeof(file->length), staged->path, err);
}
