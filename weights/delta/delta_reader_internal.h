/* The struct and functions that the files of the delta reader share. */
#ifndef WEIGHTS_DELTA_DELTA_READER_INTERNAL_H
#define WEIGHTS_DELTA_DELTA_READER_INTERNAL_H

#include "weights/delta/delta_manifest.h"
#include "weights/delta/delta_reader.h"
#include "weights/delta/pulse_payload.h"
#include "weights/model/name_list.h"
#include "weights/model/shard_index.h"

#define DELTA_READER_TABLE_BYTES (UINT64_C(8) << 30)

struct delta_reader_file {
	struct span bytes;
	struct span data;
	struct safetensors *header;
	struct span name;       /* {NULL,0} without an index */
	struct name_list whole; /* TRL: full_tensors */
};

struct delta_reader {
	char *path; /* as the caller gave it */
	bool is_folder;
	bool borrowed; /* the file's bytes are not mapped here */
	bool is_v1;    /* TRL: some entry has the first key scheme */
	uint64_t bytes;
	struct delta_reader_file *files;
	size_t file_count;
	struct delta_manifest *manifest; /* SkyRL's */
	struct pulse_payload *pulse;     /* PULSE's */
	struct span pulse_bytes;
	char *folder; /* PULSE's */
	struct shard_index *index;
	struct span index_bytes;
	struct checkpoint *checkpoint; /* DELTA_FULL only */
	struct delta_metadata metadata;
	struct buffer pairs;   /* struct json_scan_pair; `metadata` was read from these */
	struct buffer parts;   /* TRL: struct part */
	struct buffer entries; /* struct delta_entry */
};

/* Sets invalid with the text "the delta's tensor 'NAME' <what>". Returns -1. */
int delta_reader_refuse(struct span name, const char *what, struct error *err);
bool delta_reader_has_file(const char *folder, const char *name);

/* Each of these lists the entries of all files. The result is sorted by name and has no name
 * twice. */
int delta_reader_list_trl(struct delta_reader *reader, struct error *err);
/* For entries under the tensors' own names: ulp-class and slime. */
int delta_reader_list_named(struct delta_reader *reader, struct error *err);
void delta_reader_list_full(struct delta_reader *reader);
/* PULSE's deltas. The entries have no bytes until they are unpacked. */
bool delta_reader_is_pulse(const char *folder);
int delta_reader_open_pulse(struct delta_reader *reader, const char *folder, struct error *err);
int delta_reader_unpack_pulse(const struct delta_reader *reader, struct error *err);
/* Sorts the entries and refuses names that are given twice. */
int delta_reader_sort(struct delta_reader *reader, struct error *err);

#endif
