/* Checkpoints for the tests of weights/: made from tables, or the real series in
 * tests/data/small. */
#ifndef TESTS_UNIT_WEIGHTS_FIXTURE_H
#define TESTS_UNIT_WEIGHTS_FIXTURE_H

#include "base/buffer.h"
#include "weights/codec/dtype.h"

/* `folder`/`name`; free() it. */
char *fixture_path(const char *folder, const char *name);
/* Below $DELTABUCKET_TEST_DATA, else TEST_DATA_DIR, else tests/data; free() it. */
char *fixture_data(const char *name);

void fixture_write(const char *path, struct span bytes); /* makes parent folders */
void fixture_write_text(const char *path, const char *text);
struct buffer fixture_read(const char *path);
bool fixture_same_file(const char *a, const char *b);
/* Every file of both, hidden ones too. */
bool fixture_same_tree(const char *a, const char *b);
size_t fixture_entries(const char *folder); /* hidden ones too */

/* A safetensors file: 8 bytes of length, the JSON, then `data_size` bytes counting up. */
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
/* As the library's own writer lays them out. `format_pt` adds the metadata that torch files
 * have. */
void fixture_write_tensors(
	const char *path, const struct fixture_tensor *tensors, size_t count, bool format_pt);
/* A repeatable 16-bit random number. */
uint16_t fixture_random(uint64_t *state);

#endif
