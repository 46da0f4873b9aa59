/* A delta, opened and checked as far as it can be without its base: one entry for each tensor it changes. Takes TRL's files of either key
 * scheme and ours. Read-only once open; any thread. */
#ifndef WEIGHTS_DELTA_READER_H
#define WEIGHTS_DELTA_READER_H

#include "weights/delta_metadata.h"
#include "weights/index_code.h"

struct delta_reader;

struct delta_entry {
	struct span name;
	bool is_whole;          /* `values` is the tensor; otherwise the changed elements, `index` their positions */
	enum dtype dtype;       /* of the values */
	unsigned rank;          /* of a whole tensor */
	const uint64_t *shape;
	enum index_form form;
	struct span index;
	struct span values;
	uint64_t count;         /* of values */
};

/* `path` is a file, or a folder with delta.safetensors or delta.safetensors.index.json. */
struct delta_reader *delta_reader_open(const char *path, struct error *err);
void delta_reader_close(struct delta_reader *reader); /* NULL is fine */

/* True when the folder has one of the two files that make it a delta. */
bool delta_reader_is_delta_folder(const char *folder);
/* From bytes in memory, borrowed: one file. For fuzzing, and for objects that are no files. */
struct delta_reader *delta_reader_from_bytes(struct span bytes, const char *path, struct error *err);

const struct delta_metadata *delta_reader_metadata(const struct delta_reader *reader);
bool delta_reader_is_folder(const struct delta_reader *reader);
enum delta_format delta_reader_format(const struct delta_reader *reader);
uint64_t delta_reader_bytes(const struct delta_reader *reader); /* of its safetensors files and index */
size_t delta_reader_count(const struct delta_reader *reader); /* sorted by name */
const struct delta_entry *delta_reader_entry(const struct delta_reader *reader, size_t index);

/* What the delta would make of a base with this schema: fails when an entry names a tensor that is not there, or fits it ill.
 * *out_entries, one per tensor of the schema (NULL where nothing changes), is the caller's to free. */
int delta_reader_bind(const struct delta_reader *reader, const struct schema *schema, const struct delta_entry ***out_entries,
	struct error *err);

#endif
