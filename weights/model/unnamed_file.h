/* A file without a name, for bytes that are made in pieces and then mapped. They lie on the disk,
 * so the system can take them out of memory when it needs room. One thread at a time. */
#ifndef WEIGHTS_MODEL_UNNAMED_FILE_H
#define WEIGHTS_MODEL_UNNAMED_FILE_H

#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

struct unnamed_file {
	int fd; /* -1: closed */
	uint64_t bytes;
};

/* Makes the file in `folder`, or in $TMPDIR or /tmp if that folder cannot be written. Close it with
 * unnamed_file_close. */
int unnamed_file_open(struct unnamed_file *file, const char *folder, struct error *err);
int unnamed_file_add(struct unnamed_file *file, struct span piece, struct error *err);
/* Maps the whole file. The caller ends the mapping with mapped_file_close; it outlives
 * unnamed_file_close. */
int unnamed_file_map(const struct unnamed_file *file, struct span *out_bytes, struct error *err);
void unnamed_file_close(struct unnamed_file *file);

#endif
