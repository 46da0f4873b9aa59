/* One zstd frame, written or read piece by piece in bounded memory; over libzstd, like
 * base/format/compress.h. A struct is used by one thread at a time. */
#ifndef BASE_FORMAT_COMPRESS_STREAM_H
#define BASE_FORMAT_COMPRESS_STREAM_H

#include "base/buffer.h"

struct zstd_writer;
struct zstd_writer *zstd_writer_new(int level);
void zstd_writer_free(struct zstd_writer *writer); /* NULL is fine */
/* Begins a frame that names the size of its content and must get exactly `bytes` bytes. */
void zstd_writer_begin(struct zstd_writer *writer, uint64_t bytes);
/* Adds a piece, and appends to `out` what the frame has grown by. The last piece ends the frame.
 * The caller must add exactly the announced bytes. */
void zstd_writer_add(
	struct zstd_writer *writer, struct span piece, bool is_last, struct buffer *out);

struct zstd_reader;
struct zstd_reader *zstd_reader_new(void);
void zstd_reader_free(struct zstd_reader *reader); /* NULL is fine */
/* Borrows `frame` until the next begin. corrupt unless it is exactly one whole frame. */
int zstd_reader_begin(struct zstd_reader *reader, struct span frame, struct error *err);
/* Takes the next `len` bytes of the content; corrupt when the content ends before or does not
 * decode. `into` NULL: skips them. */
int zstd_reader_take(struct zstd_reader *reader, uint8_t *into, uint64_t len, struct error *err);
/* corrupt unless all of the content has been taken. */
int zstd_reader_end(struct zstd_reader *reader, struct error *err);

/* Gives the size of the content as the frame names it. False when the frame does not name it, is
 * not a frame, or names more than a frame of its length can hold. */
bool zstd_content_size(struct span frame, uint64_t *out_bytes);

#endif
