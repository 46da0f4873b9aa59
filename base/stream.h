/* Bytes on their way: callers push bytes into a sink and pull bytes from a source. Filters
 * implement one over another, so that an HTTP body, a digest check and the chunk store stack
 * without knowing each other. Embed the struct first in your own. One thread at a time per
 * stream. */
#ifndef BASE_STREAM_H
#define BASE_STREAM_H

#include "base/error.h"
#include "base/span.h"

enum sink_result {
	SINK_FAILED = -1, /* the error is set; only abort may follow */
	SINK_TAKEN = 0,   /* all bytes were taken */
	/* nothing was taken; the sink wakes its owner when there is room, and the owner then writes
	 * the same bytes again */
	SINK_WAIT = 1
};

struct body_sink {
	enum sink_result (*write)(struct body_sink *sink, struct span bytes, struct error *err);
	/* The body is whole. Checks what can be checked; 0 or -1. Called at most once. */
	int (*finish)(struct body_sink *sink, struct error *err);
	/* The body will not be completed. Never fails, and leaves nothing of the body visible.
	 * Called at most once, and never after finish gave 0. */
	void (*abort)(struct body_sink *sink);
};

enum { SOURCE_WAIT = -2 };
/* Any thread, and perhaps before the read has returned. */
typedef void source_wake_fn(void *owner);

struct body_source {
	/* Reads up to `capacity` bytes into `into`. Returns the count, 0 at the end, or -1 with the
	 * error set. May return SOURCE_WAIT only where the owner of the source allows it: there are
	 * no bytes now, and the source wakes its owner once when it should read again. It is not
	 * closed before that. */
	ptrdiff_t (*read)(
		struct body_source *source, uint8_t *into, size_t capacity, struct error *err);
	/* Allows the source to wait; before that it blocks. NULL: it never waits. */
	void (*let_wait)(struct body_source *source, source_wake_fn *wake, void *owner);
	void (*close)(struct body_source *source); /* frees it */
};

/* Reads exactly `len` bytes; corrupt when the source ends before. The source stays open. */
int body_source_read_whole(
	struct body_source *source, uint8_t *into, size_t len, struct error *err);

#endif
