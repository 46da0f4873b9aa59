/* One call of the library: the client's code gets a session made of the client and the watch that
 * the caller passed, and the failure, if there is one, reaches the caller's struct. */
#ifndef LIBRARY_CALL_H
#define LIBRARY_CALL_H

#include "client/transfer/session.h"
#include "library/client.h"
#include "library/watch.h"

enum { LIBRARY_BUCKET_MAX_BYTES = 255, LIBRARY_KEY_MAX_BYTES = 1024 };

struct library_call { /* stays in its place until the end: its parts point to each other */
	struct session session;
	struct error failure; /* for the functions that the call makes use of */
};

/* `client` NULL: for work without a server. `watch` may be NULL. */
void library_call_begin(struct library_call *call, const struct deltabucket_client *client,
	struct deltabucket_watch *watch);
/* Returns `result`. When that is below 0, *err gets the failure; it may be NULL. */
int library_call_end(struct library_call *call, int result, struct deltabucket_error *err);

/* Gives the failure to the caller; `out` may be NULL. Returns -1. */
int library_error_give(const struct error *failure, struct deltabucket_error *out);

/* -1 with invalid when `value` is NULL; `name` is that of the parameter. */
int library_check(const void *value, const char *name, struct error *err);
/* The name of a bucket or key, `what` in messages. -1 with invalid when it is NULL or empty, with
 * key_too_long when it has over `most` bytes. */
int library_check_name(
	const char *text, const char *what, size_t most, struct span *out, struct error *err);
/* -1 with invalid unless there are one or more paths of deltas. */
int library_check_deltas(const char *const *deltas, size_t count, struct error *err);

#endif
