/* One zstd frame, written or read piece by piece in bounded memory; over libzstd, like
 * base/format/compress.h. One thread at a time per struct. */
#ifndef BASE_FORMAT_COMPRESS_STREAM_H
#define BASE_FORMAT_COMPRESS_STREAM_H

#include "base/buffer.h"

struct zstd_writer;
struct zstd_writer *zstd_writer_new(int level);
void zstd_writer_free(struct zstd_writer *writer); /* NULL is fine */
/* A new frame that says its content's size and holds exactly `bytes`. */
void zstd_writer_begin(struct zstd_writer *writer, uint64_t bytes);
/* Appends what the frame has grown by; the last piece also ends it. More or less than was announced
 * is a fault of the caller. */
void zstd_writer_add(
	struct zstd_writer *writer, struct span piece, bool is_last, struct buffer *out);

struct zstd_reader;
struct zstd_reader *zstd_reader_new(void);
void zstd_reader_free(struct zstd_reader *reader); /* NULL is fine */
/* `frame` is borrowed until the next begin; corrupt unless it is exactly one whole frame. */
int zstd_reader_begin(struct zstd_reader *reader, struct span frame, struct error *err);
/* The next `len` bytes of the content; corrupt when it ends before, or does not decode. `into`
 * NULL: passes over them. */
int zstd_reader_take(struct zstd_reader *reader, uint8_t *into, uint64_t len, struct error *err);
/* corrupt unless all of the content has been taken. */
int zstd_reader_end(struct zstd_reader *reader, struct error *err);

/* What the frame says of its content's size; false when it does not, is no frame, or says more than
 * a frame of its length can hold. */
bool zstd_content_size(struct span frame, uint64_t *out_bytes);

#endif
