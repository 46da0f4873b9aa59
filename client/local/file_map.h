/* The chunks of a partly downloaded file that are in place. The map knows what is missing and the
 * hash of the whole. A journal beside the file lists the chunks, so that a download resumes after
 * kill -9. A record counts only when the file's bytes there hash to the chunk's id, so a torn
 * journal or lost writes do no harm. One thread at a time; the owner's lock guards the map.
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
	struct chunk_id hash;     /* that the whole file must have */
	struct map_chunk *chunks; /* once settled: sorted by offset, without overlaps */
	size_t count, capacity;
	bool settled;
	/* two different chunks claim the same byte: it is unknown which of them is in the file */
	bool torn;
	/* chunks of which only the beginning was written: the chunk that is added with the rest
	 * must be the same */
	struct map_chunk *claims;
	size_t claim_count, claim_capacity;
	const struct file_ops *files;
	int journal_fd;         /* below 0: none */
	uint64_t journal_bytes; /* where the next records go */
};

struct file_map_params {
	uint64_t size; /* of the file */
	struct chunk_id hash;
	const char *journal_path; /* NULL: no journal */
	int fd;                   /* of the part file; used with a journal only */
};
/* Opens the journal, or makes it. A journal of another file is emptied. From a journal of this file
 * the map takes the chunks that are in place in `fd`. */
int file_map_open(struct file_map *map, const struct file_ops *files,
	const struct file_map_params *params, struct error *err);
void file_map_close(struct file_map *map); /* the journal stays */
/* Adds chunks that were just written to the file; they must lie within it. Adding a chunk twice
 * does no harm. Different chunks that overlap make the map useless until it is restarted. -1 when
 * the journal cannot be written. */
int file_map_add(
	struct file_map *map, const struct map_chunk *chunks, size_t count, struct error *err);
/* Notes a chunk of which only the beginning was written. The caller that writes its end adds it.
 * The file is whole only when that is the same chunk. */
void file_map_claim(struct file_map *map, const struct map_chunk *chunk);
/* Forgets all chunks. */
void file_map_restart(struct file_map *map);

struct map_gap {
	uint64_t from, to; /* bytes [from, to) */
};
/* Finds the first range of the file at or after `from` that no chunk covers; false when there is
 * none. */
bool file_map_gap(struct file_map *map, uint64_t from, struct map_gap *out);
uint64_t file_map_bytes(struct file_map *map); /* bytes that are in place */
/* Whether all chunks are in place and hash to the file's hash. Then the file's bytes are proven,
 * without reading them again. */
bool file_map_is_whole(struct file_map *map);

#endif
