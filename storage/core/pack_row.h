/* The table `packs`. Internal to storage. */
#ifndef STORAGE_CORE_PACK_ROW_H
#define STORAGE_CORE_PACK_ROW_H

#include "storage/db/db.h"
#include "storage/packs/segment.h"

/* Adds the pack, or brings its row up to date: state, length, chunks. */
int pack_row_record(struct db *db, const struct pack_record *record, struct error *err);
/* 1 and the pack of this number, 0, -1. */
int pack_row_find(struct db *db, int64_t number, struct pack_record *out, struct error *err);
/* 1 and the number of this pack, 0, -1. */
int pack_row_number(struct db *db, const struct pack_id *id, int64_t *out, struct error *err);
/* Numbers of up to `capacity` packs above `after`, rising. */
int pack_row_numbers(struct db *db, int64_t after, int64_t *out, size_t capacity, size_t *out_count,
	struct error *err);
/* packs.named is the sum of this over all rows of `segments` that lead to the pack: whoever adds or
 * removes such rows keeps it right in the same change. gc finds rows by an index that nobody sums
 * up; when that shows other rows than the column says, it is damaged, and gc keeps off. */
static inline int64_t pack_row_names_of(int64_t first, int64_t count)
{
	return 3 * first + count; /* so that a flipped bit of either shows */
}
int pack_row_name(struct db *db, const struct pack_id *id, int64_t names, struct error *err);
int pack_row_unname(struct db *db, int64_t number, int64_t names, struct error *err);
/* What leads to the pack: sets the bits of its chunks in `live` (pack_table.h), which has one for
 * each of `chunks`. corrupt when a row names others, or the rows that are found are not those that
 * packs.named tells of; likewise is_named. *out_rows tells how many rows lead to it. */
int pack_row_mark(struct db *db, int64_t number, uint32_t chunks, uint8_t *live, size_t *out_rows,
	struct error *err);
int pack_row_is_named(struct db *db, int64_t number, bool *out_is_named, struct error *err);
/* gc's: the pack is condemned, or not any more. */
int pack_row_condemn(struct db *db, int64_t number, int64_t now_ms, struct error *err);
int pack_row_spare(struct db *db, int64_t number, struct error *err);
int pack_row_remove(struct db *db, int64_t number, struct error *err);
/* gc's: the pack lies in another file now. */
int pack_row_move(struct db *db, int64_t number, const struct pack_id *file, uint64_t length,
	struct error *err);
/* All of them, for recovery; free() the array. */
int pack_row_list(
	struct db *db, struct pack_record **out_records, size_t *out_count, struct error *err);

#endif
