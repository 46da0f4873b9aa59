/* Shards. In the upload form, a Xet client lists the files and xorbs that it has sent. In the
 * answer form, a server lists the chunks of a xorb that holds a wanted chunk. Both consist of
 * records of 48 bytes: a header, files with their terms, a bookend, xorbs with their chunks, a
 * bookend. The answer form ends with a footer. The reader goes strictly in this order, from bookend
 * to bookend. It never follows the places that a footer names, because some clients leave them 0,
 * and it trusts a count only when the bytes for it are there. Pure functions; any thread.
 * docs/FORMAT.md, "Shards". */
#ifndef CHUNKER_SHARD_H
#define CHUNKER_SHARD_H

#include "base/buffer.h"
#include "chunker/chunk.h"

enum {
	SHARD_RECORD_BYTES = 48,
	SHARD_FOOTER_BYTES = 200,
	SHARD_KEY_BYTES = 32,
	SHARD_MAX_BYTES = 65 * 1024 * 1024 /* upload form; clients begin another at 64 MiB */
};

struct shard_term { /* chunks [first, end) of a xorb */
	struct chunk_id xorb;
	uint32_t first;
	uint32_t end;
	uint32_t bytes; /* uncompressed */
};

struct shard_reader { /* private */
	struct span bytes;
	size_t at;
	uint64_t footer_bytes;
	int section;
};
/* `bytes` must outlive the reader and all that it gives. This call and the next ones fail with
 * invalid when the bytes are not a shard of version 2, or not whole. */
int shard_reader_open(struct shard_reader *reader, struct span bytes, struct error *err);

struct shard_file {
	struct chunk_id hash;
	uint32_t term_count; /* 0: the empty file */
	bool has_ranges;     /* range hashes prove that the sender knew the chunks */
	struct span terms;   /* private */
	struct span ranges;  /* private */
};
/* How many bytes of the shard were read. */
size_t shard_reader_at(const struct shard_reader *reader);
/* Returns 1 with the next file, 0 behind the last one, or -1. */
int shard_reader_file(struct shard_reader *reader, struct shard_file *out, struct error *err);
/* `index` is below term_count. The term is not checked: it may name chunks that no xorb has. */
struct shard_term shard_file_term(const struct shard_file *file, uint32_t index);
/* The file has_ranges; `index` is below term_count. */
struct chunk_id shard_file_range(const struct shard_file *file, uint32_t index);

struct shard_xorb {
	struct chunk_id hash;
	uint32_t chunk_count;
	uint32_t bytes;     /* uncompressed, in all */
	struct span chunks; /* private */
};
struct shard_chunk {
	/* in the answer form hidden by chunk_hash_keyed, unless the answer's key is zeros */
	struct chunk_id id;
	uint32_t offset; /* in the uncompressed xorb */
	uint32_t size;
};
/* As shard_reader_file, for xorbs. Skips the files that were not read. */
int shard_reader_xorb(struct shard_reader *reader, struct shard_xorb *out, struct error *err);
/* `index` is below chunk_count. */
struct shard_chunk shard_xorb_chunk(const struct shard_xorb *xorb, uint32_t index);
/* Checks the rest of the shard. Skips the files and xorbs that were not read. A footer must follow
 * the last bookend if the header announces one, else nothing. */
int shard_reader_end(struct shard_reader *reader, struct error *err);

struct shard_answer {
	uint8_t key[SHARD_KEY_BYTES]; /* zeros: chunks are named by their ids */
	int64_t created_s;            /* seconds since 1970 */
	/* seconds since 1970 until when the xorbs may be named; 0: only in this session */
	int64_t expires_s;
};
/* As shard_reader_end, for the answer form. Gives the facts of its footer. */
int shard_reader_answer(struct shard_reader *reader, struct shard_answer *out, struct error *err);

/* A writer of the upload form calls: header (footer_bytes 0), each file, bookend, each xorb,
 * bookend. */
void shard_write_header(struct buffer *out, uint64_t footer_bytes);
/* `ranges` has the range hash of each of the `count` terms. */
void shard_write_file(struct buffer *out, const struct chunk_id *hash,
	const struct shard_term *terms, const struct chunk_id *ranges, uint32_t count);
void shard_write_xorb(struct buffer *out, const struct chunk_id *hash,
	const struct chunk_entry *chunks, uint32_t count);
void shard_write_bookend(struct buffer *out);
/* Writes a whole answer about one xorb. The answer's key hides the ids of its chunks. */
void shard_write_answer(struct buffer *out, const struct shard_answer *answer,
	const struct chunk_id *hash, const struct chunk_entry *chunks, uint32_t count);

#endif
