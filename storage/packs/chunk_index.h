/* The sparse chunk index: the pack of each sampled chunk (h % 16 = 0, and the first chunk of each
 * object and pack). It is derived data in chunks.db, made again from pack indexes when absent or
 * damaged. A missing entry costs space; callers check every entry, so a stale one does no harm.
 * Internally locked; any thread. */
#ifndef STORAGE_PACKS_CHUNK_INDEX_H
#define STORAGE_PACKS_CHUNK_INDEX_H

#include "base/file.h"
#include "base/thread/log.h"
#include "storage/packs/segment.h"

struct chunk_index;

struct chunk_index_options {
	const struct file_ops *files;
	const char *path; /* ":memory:" serves tests, and a disk that cannot be written */
	struct log *log;  /* borrowed, may be NULL */
};
/* Moves a damaged file aside, to PATH.damaged. *out_rebuild tells that the index is new and
 * empty. */
struct chunk_index *chunk_index_open(
	const struct chunk_index_options *options, bool *out_rebuild, struct error *err);
void chunk_index_close(struct chunk_index *index); /* NULL is fine */
/* From here on the index finds nothing and drops additions. The file is moved aside, so that the
 * next start makes it again. The calls below do this by themselves when they meet damage: it is
 * logged once, and no call fails. */
void chunk_index_give_up(struct chunk_index *index, const struct error *why);

struct chunk_place {
	struct pack_id pack;
	uint32_t chunk;
};
bool chunk_index_sampled(const struct chunk_id *id);
/* True and the place when the chunk is known. A failure counts as unknown. */
bool chunk_index_find(
	struct chunk_index *index, const struct chunk_id *id, struct chunk_place *out_place);
struct chunk_index_row {
	struct chunk_id id;
	struct chunk_place place;
};
/* Adds the rows in one transaction, committed lazily: a crash may lose the tail of this file. */
int chunk_index_add(struct chunk_index *index, const struct chunk_index_row *rows, size_t count,
	struct error *err);
int chunk_index_forget_pack(
	struct chunk_index *index, const struct pack_id *pack, struct error *err);
/* Lists all packs of which it has rows. free() the array. */
int chunk_index_packs(struct chunk_index *index, struct pack_id **out_packs, size_t *out_count,
	struct error *err);
/* Gives free pages and the log's bytes back to the file system. */
int chunk_index_trim(struct chunk_index *index, struct error *err);

#endif
