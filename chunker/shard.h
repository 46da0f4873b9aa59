/* Shards: what a Xet client says of files and xorbs that it has sent (upload form), and what a
 * server says of a xorb that holds a chunk (answer form). Records of 48 bytes: a header, files with
 * their terms, a bookend, xorbs with their chunks, a bookend, and in the answer form a footer. Read
 * strictly in this order, from bookend to bookend: the places that a footer names are never
 * followed, because some clients leave them 0, and a count is taken only when the bytes for it are
 * there. Pure functions; any thread. docs/FORMAT.md, "Shards". */
#ifndef CHUNKER_SHARD_H
#define CHUNKER_SHARD_H

#include "base/buffer.h"
#include "chunker/chunk.h"

enum {
	SHARD_RECORD_BYTES = 48,
	SHARD_FOOTER_BYTES = 200,
	SHARD_KEY_BYTES = 32,
	SHARD_MAX_BYTES = 65 * 1024 * 1024 /* of the upload form: clients begin another at 64 MiB */
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
/* `bytes` must outlive the reader and all that it gives. invalid (from this call and the next ones)
 * when they are no shard of version 2, or not whole. */
int shard_reader_open(struct shard_reader *reader, struct span bytes, struct error *err);

struct shard_file {
	struct chunk_id hash;
	uint32_t term_count; /* 0: the empty file */
	bool has_ranges;     /* range hashes: the proof that the sender knew the chunks */
	struct span terms;   /* private */
	struct span ranges;  /* private */
};
/* so many bytes of the shard were read */
size_t shard_reader_at(const struct shard_reader *reader);
/* 1: the next file; 0: that was the last one; -1. */
int shard_reader_file(struct shard_reader *reader, struct shard_file *out, struct error *err);
/* `index` is below term_count. Nothing is checked: a term may name chunks that no xorb has. */
struct shard_term shard_file_term(const struct shard_file *file, uint32_t index);
/* of a file that has_ranges */
struct chunk_id shard_file_range(const struct shard_file *file, uint32_t index);

struct shard_xorb {
	struct chunk_id hash;
	uint32_t chunk_count;
	uint32_t bytes;     /* uncompressed, in all */
	struct span chunks; /* private */
};
struct shard_chunk {
	/* in the answer form keyed: chunk_hash_keyed of the answer's key, unless that is zeros */
	struct chunk_id id;
	uint32_t offset; /* in the uncompressed xorb */
	uint32_t size;
};
/* The same for xorbs; files that were not read are skipped. */
int shard_reader_xorb(struct shard_reader *reader, struct shard_xorb *out, struct error *err);
struct shard_chunk shard_xorb_chunk(const struct shard_xorb *xorb, uint32_t index);
/* The rest of the shard: xorbs that were not read are skipped, and what follows the last bookend is
 * a footer, or nothing, whichever was announced. */
int shard_reader_end(struct shard_reader *reader, struct error *err);

struct shard_answer {
	uint8_t key[SHARD_KEY_BYTES]; /* zeros: chunks are named by their ids */
	int64_t created_s;            /* since 1970 */
	/* until when the xorbs may be named; 0: in this session alone */
	int64_t expires_s;
};
/* As shard_reader_end, in the answer form: what its footer says. */
int shard_reader_answer(struct shard_reader *reader, struct shard_answer *out, struct error *err);

/* Writing, in this order: header, each file, bookend, each xorb, bookend; in the upload form that
 * is all (footer_bytes 0). */
void shard_write_header(struct buffer *out, uint64_t footer_bytes);
/* `ranges`: the range hash of each term. */
void shard_write_file(struct buffer *out, const struct chunk_id *hash,
	const struct shard_term *terms, const struct chunk_id *ranges, uint32_t count);
void shard_write_xorb(struct buffer *out, const struct chunk_id *hash,
	const struct chunk_entry *chunks, uint32_t count);
void shard_write_bookend(struct buffer *out);
/* A whole answer about one xorb: the ids of its chunks are hidden with the answer's key. */
void shard_write_answer(struct buffer *out, const struct shard_answer *answer,
	const struct chunk_id *hash, const struct chunk_entry *chunks, uint32_t count);

#endif
