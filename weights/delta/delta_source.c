/* A cursor holds a decoder for changed tensors and a cursor of the base. It opens the base's cursor
 * when it first needs it, and keeps both from tensor to tensor. Tensors that the delta does not
 * change are passed on from the base without a copy. Maps are made for all entries when the source
 * opens: they check the layout of the blocks and make it possible to begin at any block. */
#include "weights/delta/delta_source.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/codec/element_scan.h"
#include "weights/delta/entry_decoder.h"
#include "weights/model/parallel.h"

enum { SHOWN_NAME_BYTES = 120 };

struct delta_source {
	struct tensor_source source;
	struct tensor_source *base;
	const struct delta_entry **entries; /* one for each tensor; NULL: unchanged */
	struct entry_map *maps;             /* one for each tensor */
	const struct delta_reader *reader;
	const struct delta_metadata *metadata; /* of the reader */
	bool proves;                           /* slime's checksums are checked */
	uint64_t *changed;                     /* for each tensor; NULL: nothing is counted */
};
struct delta_cursor {
	struct tensor_cursor cursor;
	struct tensor_cursor *base; /* NULL until it is needed */
	struct entry_decoder *decoder;
	size_t tensor;
	uint64_t block; /* the next block */
	uint64_t blocks;
};

static struct tensor_source *source_new(const struct delta_reader *reader,
	struct tensor_source *base, bool proves, struct error *err);
static struct tensor_cursor *delta_source_open(
	struct tensor_source *source, size_t tensor, struct error *err);
static int delta_source_seek(
	struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err);
static int name_tensor(const struct tensor_source *source, size_t tensor, struct error *err);
static bool needs_base(const struct delta_cursor *cursor);
static void count_block(struct delta_cursor *cursor, struct span base, struct span next);
static void delta_source_close(struct tensor_cursor *cursor);
static int delta_source_next(struct tensor_cursor *cursor, struct span *out, struct error *err);
static void delta_source_free(struct tensor_source *source);
static bool delta_source_splits(const struct tensor_source *source, size_t tensor);
static int delta_source_map_entry(void *state, size_t item, unsigned worker, struct error *err);

struct tensor_source *delta_source_new(
	const struct delta_reader *reader, struct tensor_source *base, struct error *err)
{
	return source_new(reader, base, true, err);
}

struct tensor_source *delta_source_new_unproven(
	const struct delta_reader *reader, struct tensor_source *base, struct error *err)
{
	return source_new(reader, base, false, err);
}

void delta_source_count(struct tensor_source *source, uint64_t *changed)
{
	((struct delta_source *)source)->changed = changed;
}

static struct tensor_source *source_new(const struct delta_reader *reader,
	struct tensor_source *base, bool proves, struct error *err)
{
	static const struct tensor_source_ops ops = {
		.open = delta_source_open,
		.next = delta_source_next,
		.close_cursor = delta_source_close,
		.free = delta_source_free,
		.seek = delta_source_seek,
		.splits = delta_source_splits,
	};
	struct delta_source *const source = memory_new(sizeof(*source));
	const size_t count = schema_count(base->schema);
	source->source = (struct tensor_source){.ops = &ops, .schema = base->schema};
	source->base = base;
	source->proves = proves;
	source->reader = reader;
	source->metadata = delta_reader_metadata(reader);
	if (delta_reader_bind(reader, base->schema, &source->entries, err) == 0) {
		source->maps = memory_new_array(count, sizeof(source->maps[0]));
		if (parallel_run(parallel_workers(0, count), count, delta_source_map_entry, source,
			    err) == 0)
			return &source->source;
	}
	delta_source_free(&source->source);
	return NULL;
}

static struct tensor_cursor *delta_source_open(
	struct tensor_source *source, size_t tensor, struct error *err)
{
	const struct delta_source *const self = (const struct delta_source *)source;
	struct delta_cursor *const cursor = memory_new(sizeof(*cursor));
	cursor->cursor.source = source;
	cursor->decoder = entry_decoder_new();
	cursor->decoder->proves = self->proves;
	cursor->decoder->checksum_kind = self->metadata->checksum;
	if (delta_source_seek(&cursor->cursor, tensor, 0, err) == 0)
		return &cursor->cursor;
	delta_source_close(&cursor->cursor);
	return NULL;
}

static int delta_source_seek(
	struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err)
{
	struct delta_cursor *const self = (struct delta_cursor *)cursor;
	struct delta_source *const source = (struct delta_source *)cursor->source;
	const struct delta_entry *const entry = source->entries[tensor];
	self->tensor = tensor;
	self->block = block;
	self->blocks = tensor_source_blocks(cursor->source, tensor);
	if (source->changed != NULL && block == 0)
		source->changed[tensor] = 0;
	if (entry != NULL) {
		const struct schema_tensor *const facts =
			schema_tensor(source->source.schema, tensor);
		if (entry_decoder_begin(
			    self->decoder, entry, facts, &source->maps[tensor], block, err) != 0)
			return name_tensor(cursor->source, tensor, err);
		if (!needs_base(self))
			return 0;
	}
	return tensor_source_move(source->base, &self->base, tensor, block, err);
}

static int name_tensor(const struct tensor_source *source, size_t tensor, struct error *err)
{
	const struct span name = schema_tensor(source->schema, tensor)->name;
	/* "corrupt" is for our own stored bytes; here the delta's zstd frame is malformed. */
	if (err->kind == ERROR_CORRUPT)
		err->kind = ERROR_INVALID;
	error_wrap(err, "tensor '%.*s'",
		(int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES), name.data);
	return delta_reader_blame(((const struct delta_source *)source)->reader, err);
}

static void delta_source_close(struct tensor_cursor *cursor)
{
	struct delta_cursor *const self = (struct delta_cursor *)cursor;
	tensor_cursor_close(self->base);
	entry_decoder_free(self->decoder);
	free(self);
}

static int delta_source_next(struct tensor_cursor *cursor, struct span *out, struct error *err)
{
	struct delta_cursor *const self = (struct delta_cursor *)cursor;
	const struct delta_source *const source = (const struct delta_source *)cursor->source;
	struct span base = {0};
	if (source->entries[self->tensor] == NULL)
		return tensor_cursor_next(self->base, out, err);
	ASSERT(self->block <= self->blocks);
	if (self->block == self->blocks)
		return 0;
	if (needs_base(self)) {
		const int taken = tensor_cursor_next(self->base, &base, err);
		if (taken < 0)
			return -1;
		ASSERT(taken == 1);
	}
	self->block++;
	if (entry_decoder_next(self->decoder, base, out, err) != 0)
		return name_tensor(cursor->source, self->tensor, err);
	if (source->changed != NULL)
		count_block(self, base, *out);
	return 1;
}

static bool needs_base(const struct delta_cursor *cursor)
{
	const struct delta_source *const source =
		(const struct delta_source *)cursor->cursor.source;
	return source->changed != NULL || entry_decoder_needs_base(cursor->decoder);
}

static void count_block(struct delta_cursor *cursor, struct span base, struct span next)
{
	const struct delta_source *const source =
		(const struct delta_source *)cursor->cursor.source;
	const unsigned bits =
		dtype_bits(schema_tensor(source->source.schema, cursor->tensor)->dtype);
	ASSERT(base.len == next.len);
	if (base.data != next.data)
		source->changed[cursor->tensor] +=
			element_scan_count(base.data, next.data, base.len, bits < 8 ? 1 : bits / 8);
}

static void delta_source_free(struct tensor_source *source)
{
	struct delta_source *const self = (struct delta_source *)source;
	for (size_t i = 0; self->maps != NULL && i < schema_count(source->schema); i++)
		entry_map_release(&self->maps[i]);
	free(self->maps);
	free(self->entries);
	free(self);
}

static bool delta_source_splits(const struct tensor_source *source, size_t tensor)
{
	const struct delta_source *const self = (const struct delta_source *)source;
	const struct delta_entry *const entry = self->entries[tensor];
	if (entry != NULL && !entry_map_splits(&self->maps[tensor], entry))
		return false;
	return (entry != NULL && entry->kind == DELTA_ENTRY_WHOLE) ||
		tensor_source_splits(self->base, tensor);
}

static int delta_source_map_entry(void *state, size_t item, unsigned worker, struct error *err)
{
	struct delta_source *const source = state;
	(void)worker;
	if (source->entries[item] == NULL ||
		entry_map_make(&source->maps[item], source->entries[item],
			schema_tensor(source->source.schema, item), err) == 0)
		return 0;
	return name_tensor(&source->source, item, err);
}
