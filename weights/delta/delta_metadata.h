/* The metadata of a delta: TRL's keys, slime's and ours, all strings, in both directions.
 * docs/FORMAT.md, "Delta files". */
#ifndef WEIGHTS_DELTA_DELTA_METADATA_H
#define WEIGHTS_DELTA_DELTA_METADATA_H

#include "base/digest/digest.h"
#include "weights/delta/delta.h"
#include "weights/model/json_scan.h"

struct arena;

/* A shard's header stands under this and the shard's path. */
#define DELTA_METADATA_HEADER_PREFIX "header:"
enum { DELTA_METADATA_FILES_MAX_BYTES = 96 << 20 /* of result_files, written or read */ };

enum delta_encoding {
	DELTA_ENCODING_NONE, /* TRL's first key scheme */
	DELTA_ENCODING_RAW,
	DELTA_ENCODING_GAP,
	DELTA_ENCODING_ULP_CLASS,
	DELTA_ENCODING_XOR,
	DELTA_ENCODING_OVERWRITE,
	DELTA_ENCODING_PULSE,
	DELTA_ENCODING_FULL /* a checkpoint in a delta's place: no metadata at all */
};

/* One file of the result. */
struct delta_result_file {
	struct span path;
	uint64_t size;
	bool is_shard;
	/* a shard's header, or another file's bytes, come with the delta; otherwise the base has
	 * them */
	bool from_delta;
	/* of a shard: over its 8-byte length and JSON; of another file: over all of it */
	struct digest128 digest;
	struct span header; /* of a shard from the delta: the JSON */
};

/* What a reader takes from metadata. Spans are borrowed from the pairs or owned here. */
struct delta_metadata {
	enum delta_encoding encoding;
	enum delta_checksum checksum; /* of XOR and OVERWRITE */
	bool has_step;                /* `step`, slime's version or TRL's model_version */
	uint64_t step;
	bool has_base_step; /* `base_step` or slime's base_version */
	uint64_t base_step;
	/* slime's two as written: ModelExpress' are ids, no numbers */
	struct span version;
	struct span base_version;
	bool has_changed_elements;
	uint64_t changed_elements;
	uint64_t total_elements; /* 0: not told */
	bool has_base_digest;
	bool has_result_digest;
	struct digest128 base_digest;
	struct digest128 result_digest;
	bool has_hash; /* PULSE's, of the result: weights/delta/pulse_hash.h */
	uint8_t hash[SHA256_BYTES];
	bool has_files; /* the result is described; otherwise it has the base's files */
	bool result_is_folder;
	struct delta_result_file *files; /* sorted by path */
	size_t file_count;
	struct buffer strings; /* owned */
	struct buffer table;   /* owned: behind `files` */
};

/* `pairs` may be in any order. Invalid when a value is malformed; unsupported for another version
 * and for nvcomp_cascaded. *metadata needs delta_metadata_release in any case. `path` names the
 * file in messages. */
int delta_metadata_parse(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err);
/* Whether both call the state between them by an id that is no number, and differ in it. */
bool delta_metadata_ids_differ(
	const struct delta_metadata *first, const struct delta_metadata *second);
void delta_metadata_release(struct delta_metadata *metadata);
/* True when these are the pairs of a delta of any kind, known or not. */
bool delta_metadata_is_delta(const struct json_scan_pair *pairs, size_t count);
/* {NULL,0} when absent. */
struct span delta_metadata_find(const struct json_scan_pair *pairs, size_t count, const char *key);

/* A list of pairs being made; keys and values are copied. */
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
	bool has_base_step; /* otherwise not told, but for slime, which gets step - 1 */
	uint64_t base_step;
	const struct delta_stats *stats;
	bool has_digests; /* of `stats`: a fold without a base knows none */
	bool in_shard;    /* of a delta with an index: what each of its files says too */
};
/* Of slime for the index alone. */
void delta_metadata_print(struct delta_metadata_list *list, const struct delta_facts *facts);
/* result_kind, result_files and a header:PATH for each header that the base lacks. */
void delta_metadata_print_files(struct delta_metadata_list *list, bool result_is_folder,
	const struct delta_result_file *files, size_t count);

#endif
