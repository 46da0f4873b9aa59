/* Reads and writes the metadata of a delta: TRL's keys, slime's and ours, all of them strings.
 * docs/FORMAT.md, "Delta files". */
#ifndef WEIGHTS_DELTA_DELTA_METADATA_H
#define WEIGHTS_DELTA_DELTA_METADATA_H

#include "base/digest/digest.h"
#include "weights/delta/delta.h"
#include "weights/model/json_scan.h"

struct arena;

/* The key of a shard's header is this prefix and the shard's path. */
#define DELTA_METADATA_HEADER_PREFIX "header:"
enum { DELTA_METADATA_FILES_MAX_BYTES = 96 << 20 /* of result_files, written and read */ };

enum delta_encoding {
	DELTA_ENCODING_NONE, /* TRL's first key scheme */
	DELTA_ENCODING_RAW,
	DELTA_ENCODING_GAP,
	DELTA_ENCODING_ULP_CLASS,
	DELTA_ENCODING_XOR,
	DELTA_ENCODING_OVERWRITE,
	DELTA_ENCODING_PULSE,
	DELTA_ENCODING_FULL /* a checkpoint in the place of a delta; it has no such metadata */
};

/* One file of the result. */
struct delta_result_file {
	struct span path;
	uint64_t size;
	bool is_shard;
	/* a shard's header, or another file's bytes, come with the delta; otherwise the base has
	 * them */
	bool from_delta;
	/* for a shard over its 8-byte length and JSON, for another file over all of it */
	struct digest128 digest;
	struct span header; /* the JSON of a shard whose header comes with the delta */
};

/* The metadata of a delta. Spans are borrowed from the pairs or point into `strings`. */
struct delta_metadata {
	enum delta_encoding encoding;
	enum delta_checksum checksum; /* XOR and OVERWRITE only */
	bool has_step;                /* from `step`, slime's version or TRL's model_version */
	uint64_t step;
	bool has_base_step; /* from `base_step` or slime's base_version */
	uint64_t base_step;
	/* slime's two as written; those of ModelExpress are ids and not numbers */
	struct span version;
	struct span base_version;
	bool has_changed_elements;
	uint64_t changed_elements;
	uint64_t total_elements; /* 0: not given */
	bool has_base_digest;
	bool has_result_digest;
	struct digest128 base_digest;
	struct digest128 result_digest;
	bool has_hash; /* PULSE's hash of the result: weights/delta/pulse_hash.h */
	uint8_t hash[SHA256_BYTES];
	bool has_files; /* the result's files are listed; otherwise it has the base's files */
	bool result_is_folder;
	struct delta_result_file *files; /* sorted by path */
	size_t file_count;
	struct buffer strings; /* owned */
	struct buffer table;   /* owned; the memory of `files` */
};

/* `pairs` may be in any order. Fails with invalid when a value is malformed, and with unsupported
 * for another version and for nvcomp_cascaded. *metadata needs delta_metadata_release, also after a
 * failure. `path` names the file in messages. */
int delta_metadata_parse(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err);
/* Whether both name the state between them with an id that is not a number, and the ids differ. */
bool delta_metadata_ids_differ(
	const struct delta_metadata *first, const struct delta_metadata *second);
void delta_metadata_release(struct delta_metadata *metadata);
/* True when the pairs are those of a delta, of a known or an unknown encoding. */
bool delta_metadata_is_delta(const struct json_scan_pair *pairs, size_t count);
/* {NULL,0} when absent. */
struct span delta_metadata_find(const struct json_scan_pair *pairs, size_t count, const char *key);

/* A list of pairs to be written. Keys and values are copied. */
struct delta_metadata_list {
	struct arena *arena;
	struct buffer items; /* struct safetensors_metadata */
};
void delta_metadata_list_init(struct delta_metadata_list *list);
void delta_metadata_list_release(struct delta_metadata_list *list);
void delta_metadata_list_add(struct delta_metadata_list *list, const char *key, struct span value);
void delta_metadata_list_add_span(
	struct delta_metadata_list *list, struct span key, struct span value);
size_t delta_metadata_list_count(const struct delta_metadata_list *list);
const struct safetensors_metadata *delta_metadata_list_items(
	const struct delta_metadata_list *list);
int delta_metadata_list_check(const struct delta_metadata_list *list, struct error *err);

struct delta_facts {
	enum delta_format format;
	enum delta_checksum checksum;
	uint64_t step;
	bool has_base_step; /* otherwise it is not written; slime gets step - 1 */
	uint64_t base_step;
	const struct delta_stats *stats;
	bool has_digests; /* `stats` has digests; those of a fold without a base may not */
	bool in_shard;    /* the list is for a shard of a delta with an index */
};
/* Adds the pairs of the format; those of slime are for the index only. */
void delta_metadata_print(struct delta_metadata_list *list, const struct delta_facts *facts);
/* Adds result_kind, result_files and a header:PATH for each header that the base lacks. */
void delta_metadata_print_files(struct delta_metadata_list *list, bool result_is_folder,
	const struct delta_result_file *files, size_t count);

#endif
