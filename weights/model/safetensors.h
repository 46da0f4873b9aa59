/* The safetensors container: header in, tensor table out, with every refusal of the reference
 * reader; and the writer that gives the reference writer's bytes. Reading works on the header
 * alone, so that it serves a mapped file and an object read by range alike. A parsed header is
 * read-only; any thread. */
#ifndef WEIGHTS_MODEL_SAFETENSORS_H
#define WEIGHTS_MODEL_SAFETENSORS_H

#include "base/buffer.h"
#include "base/error.h"
#include "weights/codec/dtype.h"

#define SAFETENSORS_HEADER_MAX_BYTES UINT64_C(100000000)

struct safetensors_tensor {
	struct span name;
	enum dtype dtype;
	unsigned rank;
	const uint64_t *shape;
	uint64_t elements;
	uint64_t begin; /* in the data buffer */
	uint64_t end;
};

struct safetensors_metadata {
	struct span key;
	struct span value;
};

struct safetensors; /* opaque: owns names, shapes, metadata */

/* First check, on the first 8 bytes: the length of the JSON header. Refuses what cannot be (over
 * 100,000,000 bytes, over the file). */
int safetensors_header_size(
	struct span first8, uint64_t file_size, uint64_t *out_size, struct error *err);
/* `json` is the header text (copied as needed); `data_size` what follows it, which must be covered
 * exactly. `path` names the file in messages. Free with safetensors_free. */
struct safetensors *safetensors_parse(
	struct span json, uint64_t data_size, const char *path, struct error *err);
void safetensors_free(struct safetensors *header);

size_t safetensors_count(const struct safetensors *header);
/* in order of data */
const struct safetensors_tensor *safetensors_tensor(const struct safetensors *header, size_t index);
/* NULL when absent */
const struct safetensors_tensor *safetensors_find(
	const struct safetensors *header, struct span name);
size_t safetensors_metadata_count(const struct safetensors *header);
const struct safetensors_metadata *safetensors_metadata(
	const struct safetensors *header, size_t index);
/* {NULL,0} when absent. */
struct span safetensors_metadata_find(const struct safetensors *header, const char *key);

/* Writing: give tensors in any order; the writer sorts them as the reference does, assigns offsets
 * and makes the 8-byte length and padded JSON. On return tensors[] is in data order with begin and
 * end set: write the data in that order behind the header. */
int safetensors_write_header(struct safetensors_tensor *tensors, size_t count,
	const struct safetensors_metadata *metadata, size_t metadata_count, struct buffer *out,
	struct error *err);

#endif
