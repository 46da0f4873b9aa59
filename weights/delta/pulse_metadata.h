/* The files of metadata that PULSE (grail) writes beside a checkpoint: metadata.json of a FULL or
 * DELTA folder, and delta_metadata.json. docs/FORMAT.md, "PULSE's deltas". Read-only after the
 * parse; any thread. */
#ifndef WEIGHTS_DELTA_PULSE_METADATA_H
#define WEIGHTS_DELTA_PULSE_METADATA_H

#include "base/digest/digest.h"
#include "weights/model/json_scan.h"

/* The limit of a file, also of one that is unpacked from gzip. */
enum { PULSE_METADATA_MAX_BYTES = 64 << 20 };

struct pulse_metadata {
	uint64_t window;
	bool is_delta;
	bool has_prev;              /* always true for a delta */
	uint64_t prev_window;       /* the window of the delta's base */
	bool has_hash;              /* always true for a delta */
	uint8_t hash[SHA256_BYTES]; /* of the weights, weights/delta/pulse_hash.h */
	struct buffer strings;      /* owned */
	struct buffer files;        /* owned; struct json_scan_pair: name to SHA-256 in hex */
};

/* `path` names the file in messages. Fails with invalid when the text is malformed or a member is
 * missing or given twice. *out needs pulse_metadata_release, also after a failure. */
int pulse_metadata_parse(
	struct pulse_metadata *out, struct span json, const char *path, struct error *err);
void pulse_metadata_release(struct pulse_metadata *metadata);

size_t pulse_metadata_file_count(const struct pulse_metadata *metadata);
const struct json_scan_pair *pulse_metadata_file(
	const struct pulse_metadata *metadata, size_t index);
/* Fails with digest_mismatch when the metadata lists another SHA-256 for the file `name`, and with
 * invalid when it lists none. */
int pulse_metadata_prove(const struct pulse_metadata *metadata, struct span name,
	const uint8_t sha256[SHA256_BYTES], const char *path, struct error *err);

enum pulse_codec { PULSE_CODEC_2 = 2, PULSE_CODEC_3 = 3, PULSE_CODEC_3_1 = 31 };
/* Reads the codec from a delta_metadata.json. Fails with unsupported and the format's name for
 * every other format. */
int pulse_codec_parse(enum pulse_codec *out, struct span json, const char *path, struct error *err);

#endif
