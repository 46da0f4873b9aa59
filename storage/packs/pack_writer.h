/* One pack file being written: its header, then the appended bytes. It knows nothing of xorbs. One
 * thread at a time. */
#ifndef STORAGE_PACKS_PACK_WRITER_H
#define STORAGE_PACKS_PACK_WRITER_H

#include "storage/packs/backend.h"
#include "storage/packs/pack_format.h"

struct pack_writer {
	struct backend_file *file;
	struct pack_id pack;
	struct pack_id name; /* of the file: the pack's id, or another id when it is compacted */
	uint64_t length;     /* written so far */
};

/* Creates the file and writes the header; on failure there is no file. */
struct pack_writer *pack_writer_open(
	struct backend *backend, const struct pack_id *pack, struct error *err);
/* The same for a pack that grows with each batch: in a far place a staged file (backend.h). */
struct pack_writer *pack_writer_open_shared(
	struct backend *backend, const struct pack_id *pack, struct error *err);
/* A staged file that a start makes again: it is empty, and the caller appends all of it. */
struct pack_writer *pack_writer_open_staged(
	struct backend *backend, const struct pack_id *pack, struct error *err);
struct pack_writer *pack_writer_open_compacted(struct backend *backend, const struct pack_id *pack,
	const struct pack_id *name, struct error *err);
/* On failure the length stays as it was: the next append overwrites what the failed one left. */
int pack_writer_append(struct pack_writer *writer, struct span bytes, struct error *err);
int pack_writer_sync(struct pack_writer *writer, struct error *err);
int pack_writer_cut(struct pack_writer *writer, uint64_t length, struct error *err);
void pack_writer_close(struct pack_writer *writer);  /* keeps the file; NULL is fine */
void pack_writer_remove(struct pack_writer *writer); /* closes and removes the file */

#endif
