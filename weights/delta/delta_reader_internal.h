/* What the files of the delta reader share. */
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
	char *path; /* as it was given */
	bool is_folder;
	bool borrowed;
	bool is_v1;
	uint64_t bytes;
	struct delta_reader_file *files;
	size_t file_count;
	struct delta_manifest *manifest; /* SkyRL's */
	struct pulse_payload *pulse;     /* PULSE's */
	struct span pulse_bytes;
	char *folder; /* of PULSE's */
	struct shard_index *index;
	struct span index_bytes;
	struct checkpoint *checkpoint; /* of a full one */
	struct delta_metadata metadata;
	/* struct json_scan_pair: the metadata that `metadata` was read from */
	struct buffer pairs;
	struct buffer parts;   /* TRL: struct part */
	struct buffer entries; /* struct delta_entry */
};

/* invalid: "the delta's tensor 'NAME' <what>". */
int delta_reader_refuse(struct span name, const char *what, struct error *err);

/* Each lists the entries of all files; what comes out is sorted by name and has no name twice. */
int delta_reader_list_trl(struct delta_reader *reader, struct error *err);
/* under the tensors' own names: ulp-class and slime */
int delta_reader_list_named(struct delta_reader *reader, struct error *err);
void delta_reader_list_full(struct delta_reader *reader);
/* PULSE's: the whole way from the folder to the entries, which have no bytes before the second. */
bool delta_reader_is_pulse(const char *folder);
int delta_reader_open_pulse(struct delta_reader *reader, const char *folder, struct error *err);
int delta_reader_unpack_pulse(const struct delta_reader *reader, struct error *err);
/* Sorts, and refuses names given twice. */
int delta_reader_sort(struct delta_reader *reader, struct error *err);

#endif
