/* The safetensors container. The reader turns a header into a table of tensors and refuses all that
 * the reference reader refuses. It needs only the header, so it serves a mapped file and an object
 * read by range alike. The writer makes the same bytes as the reference writer. A parsed header is
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

struct safetensors; /* owns names, shapes and metadata */

/* Reads the size of the JSON header from the first 8 bytes of a file. Refuses a size over
 * SAFETENSORS_HEADER_MAX_BYTES or over the file's size. */
int safetensors_header_size(
	struct span first8, uint64_t file_size, uint64_t *out_size, struct error *err);
/* `json` is the header's text; the result does not point into it. The tensors must cover the
 * `data_size` bytes behind it exactly. `path` names the file in messages. Free the result with
 * safetensors_free. */
struct safetensors *safetensors_parse(
	struct span json, uint64_t data_size, const char *path, struct error *err);
void safetensors_free(struct safetensors *header);

size_t safetensors_count(const struct safetensors *header);
/* Tensors are in order of their data. */
const struct safetensors_tensor *safetensors_tensor(const struct safetensors *header, size_t index);
/* NULL when absent */
const struct safetensors_tensor *safetensors_find(
	const struct safetensors *header, struct span name);
size_t safetensors_metadata_count(const struct safetensors *header);
const struct safetensors_metadata *safetensors_metadata(
	const struct safetensors *header, size_t index);
/* {NULL,0} when absent. */
struct span safetensors_metadata_find(const struct safetensors *header, const char *key);

/* Appends the 8-byte length and the padded JSON of a header to `out`. The tensors may come in any
 * order: the writer sorts tensors[] as the reference does and sets begin and end. The caller then
 * writes the data behind the header, in the order of tensors[]. */
int safetensors_write_header(struct safetensors_tensor *tensors, size_t count,
	const struct safetensors_metadata *metadata, size_t metadata_count, struct buffer *out,
	struct error *err);

#endif
