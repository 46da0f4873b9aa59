/* The table `packs`. Internal to storage. */
#ifndef STORAGE_CORE_PACK_ROW_H
#define STORAGE_CORE_PACK_ROW_H

#include "storage/db/db.h"
#include "storage/packs/segment.h"

/* Adds the pack, or updates its row: state, length, chunks. */
int pack_row_record(struct db *db, const struct pack_record *record, struct error *err);
/* Returns 1 and the pack of this number, 0 when there is none, -1 on error. */
int pack_row_find(struct db *db, int64_t number, struct pack_record *out, struct error *err);
/* Returns 1 and the number of this pack, 0 when there is none, -1 on error. */
int pack_row_number(struct db *db, const struct pack_id *id, int64_t *out, struct error *err);
/* Lists the numbers of up to `capacity` packs above `after`, rising. */
int pack_row_numbers(struct db *db, int64_t after, int64_t *out, size_t capacity, size_t *out_count,
	struct error *err);
/* The bytes of all packs, and their number. */
int pack_row_bytes(struct db *db, uint64_t *out, struct error *err);
int pack_row_count(struct db *db, uint64_t *out, struct error *err);
/* packs.named is the sum of this over all rows of `segments` that lead to the pack. A caller that
 * adds or removes such rows updates the sum in the same change. gc finds the rows by an index that
 * has no sum of its own. If the index shows other rows than packs.named says, it is damaged, and gc
 * does not touch the pack. */
static inline int64_t pack_row_names_of(int64_t first, int64_t count)
{
	return 3 * first + count; /* a flipped bit of either changes it */
}
/* Adds to packs.named, and subtracts from it. */
int pack_row_name(struct db *db, const struct pack_id *id, int64_t names, struct error *err);
int pack_row_unname(struct db *db, int64_t number, int64_t names, struct error *err);
/* Sets the bits in `live` (pack_table.h) of all chunks that rows lead to; `live` has a bit for each
 * of `chunks`. *out_rows is the number of these rows. corrupt when a row names other chunks, or
 * when the rows do not add up to packs.named. */
int pack_row_mark(struct db *db, int64_t number, uint32_t chunks, uint8_t *live, size_t *out_rows,
	struct error *err);
/* Whether any row leads to the pack. corrupt when packs.named contradicts that. */
int pack_row_is_named(struct db *db, int64_t number, bool *out_is_named, struct error *err);
/* For gc. busy when the pack is not sealed before condemn, or not condemned before spare and
 * remove. */
int pack_row_condemn(struct db *db, int64_t number, int64_t now_ms, struct error *err);
int pack_row_spare(struct db *db, int64_t number, struct error *err);
int pack_row_remove(struct db *db, int64_t number, struct error *err);
/* The pack is in another file now. busy when it is not sealed. */
int pack_row_move(struct db *db, int64_t number, const struct pack_id *file, uint64_t length,
	struct error *err);
/* Lists all packs, for recovery. free() the array. */
int pack_row_list(
	struct db *db, struct pack_record **out_records, size_t *out_count, struct error *err);

#endif
