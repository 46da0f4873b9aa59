/* The changes of an ulp-class block as bits, and back. The table, a part of the block's header,
 * says how many elements of each class changed. Gaps and steps follow class by class, the smallest
 * weights first. docs/FORMAT.md, "ulp-class blocks", has the layout. */
#ifndef WEIGHTS_CODEC_ULP_STREAM_H
#define WEIGHTS_CODEC_ULP_STREAM_H

#include "base/error.h"
#include "weights/codec/ulp_scan.h"

struct ulp_table {
	uint8_t top;
	uint8_t classes;
	uint8_t parameters[ULP_CLASSES_MAX]; /* Rice parameters; 0 where nothing changed */
	uint32_t counts[ULP_CLASSES_MAX];    /* changed elements */
};
enum { ULP_TABLE_BYTES_MAX = 1 + 3 * ULP_CLASSES_MAX + (5 * ULP_CLASSES_MAX + 7) / 8 };

size_t ulp_table_count(const struct ulp_table *table); /* changed elements of all classes */
/* Returns the count of bytes written. */
size_t ulp_table_write(const struct ulp_table *table, uint8_t into[ULP_TABLE_BYTES_MAX]);
/* Takes a table of `table->classes` classes off the front of `*rest`. Fails with invalid when it is
 * cut off, has a parameter or padding that is not allowed, or counts no changes or more than
 * `elements`. */
int ulp_table_read(
	struct span *rest, uint64_t elements, struct ulp_table *table, struct error *err);

/* The changes that a scan found, class by class. */
struct ulp_stream {
	struct ulp_table table;
	uint32_t *gaps;
	int16_t *steps;
};
enum { ULP_STREAM_BYTES_MOST = 16 /* bytes of one change in the worst case */ };
/* Fills `table`, with top and classes of `view`, and `gaps` and `steps`, which have room for all
 * changes. */
void ulp_stream_arrange(
	const struct ulp_scan *scan, const struct ulp_view *view, struct ulp_stream *stream);
/* Returns the count of bytes written. `into` has room for ULP_STREAM_BYTES_MOST for each change and
 * once more; `places` has room for one number more than changes. */
size_t ulp_stream_write(const struct ulp_stream *stream, uint32_t *places, uint8_t *into);
/* The memory of a patch's lists. `ranks` has room for all changes and ULP_CLASSES_MAX more, `steps`
 * for all changes. */
struct ulp_lists {
	uint32_t *ranks;
	int16_t *steps;
};
/* Reads the changes of a block of `elements` elements. `*out_patch` points into the lists. */
int ulp_stream_read(const struct ulp_table *table, struct span payload, uint32_t elements,
	const struct ulp_lists *lists, struct ulp_patch *out_patch, struct error *err);

#endif
