/* The sparse chunk index: which pack holds a sampled chunk (h % 16 = 0, and the first chunk of each
 * object and pack). Derived data in chunks.db, rebuilt from pack indexes when absent or damaged: a
 * missing entry costs space, a stale one is checked by the caller; neither costs truth. Internally
 * locked; any thread. */
#ifndef STORAGE_PACKS_CHUNK_INDEX_H
#define STORAGE_PACKS_CHUNK_INDEX_H

#include "base/file.h"
#include "base/thread/log.h"
#include "storage/packs/segment.h"

struct chunk_index;

struct chunk_index_options {
	const struct file_ops *files;
	const char *path; /* ":memory:" serves tests, and a disk that takes no writes */
	struct log *log;  /* borrowed, may be NULL */
};
/* A damaged file is moved aside, to PATH.damaged, and *out_rebuild says that the index is new and
 * empty. */
struct chunk_index *chunk_index_open(
	const struct chunk_index_options *options, bool *out_rebuild, struct error *err);
void chunk_index_close(struct chunk_index *index); /* NULL is fine */
/* From here on nothing is found, and what is added is dropped; the file is moved aside, so that the
 * next start makes it anew. What follows does so by itself where it meets damage, which is logged
 * once and is a failure of nobody. */
void chunk_index_give_up(struct chunk_index *index, const struct error *why);

struct chunk_place {
	struct pack_id pack;
	uint32_t chunk;
};
bool chunk_index_sampled(const struct chunk_id *id);
/* True and the place when known. Failures count as unknown. */
bool chunk_index_find(
	struct chunk_index *index, const struct chunk_id *id, struct chunk_place *out_place);
struct chunk_index_row {
	struct chunk_id id;
	struct chunk_place place;
};
/* One transaction; committed lazily (this file may lose its tail in a crash). */
int chunk_index_add(struct chunk_index *index, const struct chunk_index_row *rows, size_t count,
	struct error *err);
int chunk_index_forget_pack(
	struct chunk_index *index, const struct pack_id *pack, struct error *err);
/* All packs that it has rows of; free() the array. */
int chunk_index_packs(struct chunk_index *index, struct pack_id **out_packs, size_t *out_count,
	struct error *err);
/* Gives free pages and the log's bytes back to the file system. */
int chunk_index_trim(struct chunk_index *index, struct error *err);

#endif
