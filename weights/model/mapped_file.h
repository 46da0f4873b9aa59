/* A regular file, mapped for reading. The file must not shrink while it is mapped. Any thread. */
#ifndef WEIGHTS_MODEL_MAPPED_FILE_H
#define WEIGHTS_MODEL_MAPPED_FILE_H

#include "base/error.h"
#include "base/span.h"
#include "weights/model/safetensors.h"

/* Gives the file's bytes; {NULL,0} for an empty file. Fails with invalid when `path` is not a
 * regular file. */
int mapped_file_open(const char *path, struct span *out_bytes, struct error *err);
void mapped_file_close(struct span bytes); /* the empty span is fine */

/* Parses the header of a mapped safetensors file. *out_header (length and JSON) and *out_data point
 * into `bytes`. */
struct safetensors *mapped_file_safetensors(struct span bytes, const char *path,
	struct span *out_header, struct span *out_data, struct error *err);

#endif
