/* Bytes on their way: a sink takes pushed bytes, a source gives pulled ones. Filters implement one
 * over another, so that an HTTP body, a digest check and the chunk store stack without knowing each
 * other. Embed the struct first in your own. One thread at a time per stream. */
#ifndef BASE_STREAM_H
#define BASE_STREAM_H

#include "base/error.h"
#include "base/span.h"

enum sink_result {
	SINK_FAILED = -1, /* the error is set; only abort may follow */
	SINK_TAKEN = 0,   /* all bytes were taken */
	/* nothing was taken; the sink wakes its owner when there is room, then the same bytes
	 * come again */
	SINK_WAIT = 1
};

struct body_sink {
	enum sink_result (*write)(struct body_sink *sink, struct span bytes, struct error *err);
	/* The body is whole. Checks what can be checked; 0 or -1. Called at most once. */
	int (*finish)(struct body_sink *sink, struct error *err);
	/* The body will not come. Never fails; nothing of it may remain visible. Called at most
	 * once and never after finish gave 0. */
	void (*abort)(struct body_sink *sink);
};

enum { SOURCE_WAIT = -2 };

struct body_source {
	/* Up to `capacity` bytes into `into`: the count, 0 at the end, -1 with the error set.
	 * SOURCE_WAIT, where whoever takes the source says that it may: there is nothing now, and
	 * the source wakes its owner once when it should be read again. */
	ptrdiff_t (*read)(
		struct body_source *source, uint8_t *into, size_t capacity, struct error *err);
	void (*close)(struct body_source *source); /* frees it */
};

/* Exactly `len` bytes; corrupt when the source ends before. It stays open. */
int body_source_read_whole(
	struct body_source *source, uint8_t *into, size_t len, struct error *err);

#endif
