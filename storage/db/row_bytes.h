/* Rows of any table as bytes, whatever engine keeps them: what the journal and its snapshots are
 * made of. A row is put (all its values, in the order of the columns), removed (the values of its
 * primary key), or the next number of a table is set. Pure; any thread. docs/FORMAT.md,
 * "Journal". */
#ifndef STORAGE_DB_ROW_BYTES_H
#define STORAGE_DB_ROW_BYTES_H

#include "base/buffer.h"
#include "storage/db/table_sums.h"

enum row_operation {
	ROW_PUT = 1,
	ROW_REMOVE = 2,
	ROW_NEXT = 3 /* one number: rows that get theirs from the engine have had up to this one */
};
enum row_value_kind { ROW_NULL = 0, ROW_NUMBER = 1, ROW_BYTES = 2, ROW_TEXT = 3 };
enum { ROW_VALUES_MAX = 64 };

struct row_value {
	enum row_value_kind kind;
	int64_t number;
	struct span bytes; /* of bytes and text; borrowed */
};
struct row {
	enum row_operation operation;
	char table[TABLE_NAME_BYTES];
	size_t count;
	struct row_value values[ROW_VALUES_MAX];
};

/* Begins a row of `count` values, which row_bytes_add then adds in order. */
void row_bytes_begin(
	struct buffer *out, enum row_operation operation, const char *table, size_t count);
void row_bytes_add(struct buffer *out, const struct row_value *value);
/* Takes the first row off `*rest`; its values lie there. Returns 1, 0 when `*rest` is empty, or -1
 * with corrupt. */
int row_bytes_take(struct span *rest, struct row *out, struct error *err);

#endif
