/* Which chunks of a file that is being put together are in place: what is missing, and what all of
 * it hashes to. Beside the file lies a journal of them, so that a download goes on after kill -9:
 * each record is believed only when the file's bytes there hash to the chunk's id, so neither a
 * torn journal nor lost writes do harm. One thread at a time; the owner's lock guards it.
 * docs/FORMAT.md, "Files of the command line". */
#ifndef CLIENT_LOCAL_FILE_MAP_H
#define CLIENT_LOCAL_FILE_MAP_H

#include "base/file.h"
#include "chunker/chunk.h"

struct map_chunk {
	uint64_t offset;
	uint32_t size;
	struct chunk_id id;
};

struct file_map {
	uint64_t size;            /* of the file */
	struct chunk_id hash;     /* that the file shall have */
	struct map_chunk *chunks; /* sorted by offset and apart, once settled */
	size_t count, capacity;
	bool settled;
	/* two chunks that are not the same claimed a byte: nobody knows which of them lies there */
	bool torn;
	/* of chunks whose beginning alone was written: what holds the rest must turn out to be the
	 * same */
	struct map_chunk *claims;
	size_t claim_count, claim_capacity;
	const struct file_ops *files;
	int journal_fd;         /* below 0: none */
	uint64_t journal_bytes; /* where the next records go */
};

/* `journal_path` NULL: nothing is kept. A journal of another file is emptied; chunks of one of this
 * file that are in place in `fd` are taken over. */
int file_map_open(struct file_map *map, const struct file_ops *files, uint64_t size,
	const struct chunk_id *hash, const char *journal_path, int fd, struct error *err);
void file_map_close(struct file_map *map); /* the journal stays */
/* Chunks that were just written to the file. Twice the same does no harm; others that overlap spoil
 * the map until it is restarted. -1 when the journal cannot be written. */
int file_map_add(
	struct file_map *map, const struct map_chunk *chunks, size_t count, struct error *err);
/* A chunk of which only the beginning was written. Who writes its end adds it; all is whole only
 * when that is the same chunk. */
void file_map_claim(struct file_map *map, const struct map_chunk *chunk);
/* Forgets all. */
void file_map_restart(struct file_map *map);

struct map_gap {
	uint64_t from, to;
};
/* The first range of the file at or behind `from` that no chunk covers; false when there is
 * none. */
bool file_map_gap(struct file_map *map, uint64_t from, struct map_gap *out);
uint64_t file_map_bytes(struct file_map *map); /* that are in place */
/* Whether all is in place and hashes to what it shall: the file's bytes are then proven, without
 * reading them again. */
bool file_map_is_whole(struct file_map *map);

#endif
