#include "storage/packs/pack_writer.h"

#include <stdlib.h>

#include "base/memory.h"

typedef int create_fn(struct backend *backend, const char *name, struct backend_file **out_file,
	struct error *err);

static struct pack_writer *writer_open(struct backend *backend, create_fn *create,
	const struct pack_id *pack, const struct pack_id *file_name, struct error *err);
static struct pack_writer *writer_begin(
	struct pack_writer *writer, const uint8_t header[PACK_HEADER_BYTES], struct error *err);

struct pack_writer *pack_writer_open(
	struct backend *backend, const struct pack_id *pack, struct error *err)
{
	uint8_t header[PACK_HEADER_BYTES];
	pack_format_put_header(pack, &backend->origin, header);
	return writer_begin(
		writer_open(backend, backend->ops->create, pack, pack, err), header, err);
}

struct pack_writer *pack_writer_open_shared(
	struct backend *backend, const struct pack_id *pack, struct error *err)
{
	uint8_t header[PACK_HEADER_BYTES];
	if (!backend_is_far(backend))
		return pack_writer_open(backend, pack, err);
	pack_format_put_header(pack, &backend->origin, header);
	return writer_begin(pack_writer_open_staged(backend, pack, err), header, err);
}

struct pack_writer *pack_writer_open_staged(
	struct backend *backend, const struct pack_id *pack, struct error *err)
{
	ASSERT(backend_is_far(backend));
	return writer_open(backend, backend->ops->create_staged, pack, pack, err);
}

struct pack_writer *pack_writer_open_compacted(struct backend *backend, const struct pack_id *pack,
	const struct pack_id *name, struct error *err)
{
	uint8_t header[PACK_HEADER_BYTES];
	pack_format_put_compacted_header(pack, name, &backend->origin, header);
	return writer_begin(
		writer_open(backend, backend->ops->create, pack, name, err), header, err);
}

int pack_writer_append(struct pack_writer *writer, struct span bytes, struct error *err)
{
	if (writer->file->backend->ops->append(writer->file, bytes, writer->length, err) != 0)
		return -1;
	writer->length += bytes.len;
	return 0;
}

int pack_writer_sync(struct pack_writer *writer, struct error *err)
{
	return writer->file->backend->ops->sync(writer->file, err);
}

int pack_writer_cut(struct pack_writer *writer, uint64_t length, struct error *err)
{
	ASSERT(length <= writer->length);
	writer->length = length;
	return writer->file->backend->ops->truncate(writer->file, length, err);
}

void pack_writer_close(struct pack_writer *writer)
{
	if (writer == NULL)
		return;
	writer->file->backend->ops->close(writer->file);
	free(writer);
}

void pack_writer_remove(struct pack_writer *writer)
{
	struct backend *const backend = writer->file->backend;
	char name[PACK_NAME_BYTES];
	pack_format_name(&writer->name, PACK_FILE_PACK, name);
	pack_writer_close(writer);
	struct error ignored = {0}; /* an unreferenced file: recovery removes it (invariant 4) */
	backend->ops->remove(backend, name, &ignored);
}

static struct pack_writer *writer_open(struct backend *backend, create_fn *create,
	const struct pack_id *pack, const struct pack_id *file_name, struct error *err)
{
	char name[PACK_NAME_BYTES];
	struct backend_file *file;
	pack_format_name(file_name, PACK_FILE_PACK, name);
	if (create(backend, name, &file, err) != 0)
		return NULL;
	struct pack_writer *const writer = memory_new(sizeof(*writer));
	*writer = (struct pack_writer){.file = file, .pack = *pack, .name = *file_name};
	return writer;
}

/* Writes the header. `writer` NULL: opening it failed. */
static struct pack_writer *writer_begin(
	struct pack_writer *writer, const uint8_t header[PACK_HEADER_BYTES], struct error *err)
{
	if (writer == NULL)
		return NULL;
	if (pack_writer_append(writer, span_of(header, PACK_HEADER_BYTES), err) == 0)
		return writer;
	pack_writer_remove(writer);
	return NULL;
}
