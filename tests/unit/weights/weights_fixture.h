/* Checkpoints for the tests of weights/: made from tables, or taken from the real series in
 * tests/data/small. */
#ifndef TESTS_UNIT_WEIGHTS_FIXTURE_H
#define TESTS_UNIT_WEIGHTS_FIXTURE_H

#include "base/buffer.h"
#include "weights/codec/dtype.h"

/* Returns `folder`/`name`. The caller frees it. */
char *fixture_path(const char *folder, const char *name);
/* The path of a file below $DELTABUCKET_TEST_DATA, else TEST_DATA_DIR, else tests/data. The caller
 * frees it. */
char *fixture_data(const char *name);

void fixture_write(const char *path, struct span bytes); /* makes parent folders */
void fixture_write_text(const char *path, const char *text);
struct buffer fixture_read(const char *path);
bool fixture_same_file(const char *a, const char *b);
/* Compares all files of both, also hidden ones. */
bool fixture_same_tree(const char *a, const char *b);
size_t fixture_entries(const char *folder); /* hidden ones too */

/* Writes a safetensors file: 8 bytes of length, the JSON, then `data_size` bytes that count up. */
void fixture_write_raw(const char *path, const char *json, size_t data_size);

struct fixture_tensor {
	const char *name;
	enum dtype dtype;
	uint64_t shape[4]; /* ends at the first 0, unless `scalar` or `empty` */
	bool scalar;       /* shape [] */
	bool empty;        /* shape [0] */
	const void *data;  /* NULL: bytes that follow from the name and `seed` */
	unsigned seed;
};
/* Writes a file as the reference writer does. `format_pt` adds the metadata that torch files
 * have. */
void fixture_write_tensors(
	const char *path, const struct fixture_tensor *tensors, size_t count, bool format_pt);
/* A repeatable 16-bit random number. */
uint16_t fixture_random(uint64_t *state);
/* The same with 64 bits, all of them good. */
uint64_t fixture_random64(uint64_t *state);

#endif
