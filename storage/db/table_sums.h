/* The number of rows of each table of a database, and a sum over their content that does not depend
 * on their order. A page that the disk dropped or brought back in an old version has a right
 * checksum, but shows here. Pure; one thread at a time. docs/FORMAT.md, "Counts and sums". Internal
 * to storage. */
#ifndef STORAGE_DB_TABLE_SUMS_H
#define STORAGE_DB_TABLE_SUMS_H

#include "base/buffer.h"

enum {
	TABLE_SUMS_MAX = 96,
	TABLE_NAME_BYTES = 48,
	TABLE_SUMS_MAX_BYTES = TABLE_SUMS_MAX * (TABLE_NAME_BYTES + 17) + 16
};

struct table_sum {
	int64_t rows;
	uint64_t sum; /* of row_digest over all rows, modulo 2^64 */
};
struct table_sums { /* a zeroed one has no tables */
	size_t count;
	/* in the order of their first use */
	char names[TABLE_SUMS_MAX][TABLE_NAME_BYTES];
	struct table_sum tables[TABLE_SUMS_MAX];
};

/* The index of the table, which is added if it is missing. */
size_t table_sums_place(struct table_sums *sums, const char *name);
void table_sums_encode(const struct table_sums *sums, struct buffer *out);
/* One number for rows and sums of all tables but the schema. It does not depend on the order of the
 * tables, nor on those without rows. */
uint64_t table_sums_total(const struct table_sums *sums);
/* corrupt when `bytes` is not a result of table_sums_encode. */
int table_sums_decode(struct span bytes, struct table_sums *out, struct error *err);

/* A row: add its values in the order of the table's columns, then end it. Ending gives the digest
 * and begins the next row. */
struct row_digest {
	struct buffer bytes;
};
void row_digest_init(struct row_digest *digest);
void row_digest_release(struct row_digest *digest);
void row_digest_add_null(struct row_digest *digest);
void row_digest_add_number(struct row_digest *digest, int64_t number);
void row_digest_add_bytes(struct row_digest *digest, struct span bytes);
uint64_t row_digest_end(struct row_digest *digest);

#endif
