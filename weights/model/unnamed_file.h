/* A file without a name, for bytes that are made in pieces and then mapped: the disk has them, and
 * memory only as long as it has room. One thread at a time. */
#ifndef WEIGHTS_MODEL_UNNAMED_FILE_H
#define WEIGHTS_MODEL_UNNAMED_FILE_H

#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

struct unnamed_file {
	int fd; /* -1: closed */
	uint64_t bytes;
};

/* In `folder`; where that cannot be written, in $TMPDIR or /tmp. Closed by unnamed_file_close. */
int unnamed_file_open(struct unnamed_file *file, const char *folder, struct error *err);
int unnamed_file_add(struct unnamed_file *file, struct span piece, struct error *err);
/* All of it, for mapped_file_close; lives on after unnamed_file_close. */
int unnamed_file_map(const struct unnamed_file *file, struct span *out_bytes, struct error *err);
void unnamed_file_close(struct unnamed_file *file);

#endif
