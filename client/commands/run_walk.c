#include "client/commands/run_walk.h"

#include "client/remote/remote_object.h"

enum { ARENA_BYTES = 64 * 1024 * 1024, NAME_CAP_BYTES = 1024 };

static int walk_bucket(struct session *session, struct remote *remote, struct span bucket,
	run_walk_fn *visit, struct error *err);
static void advise(struct error *err);

int run_walk(struct session *session, struct remote *remote, struct span bucket, run_walk_fn *visit,
	struct error *err)
{
	if (bucket.len > 0)
		return walk_bucket(session, remote, bucket, visit, err);
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct listing buckets = {0};
	int result = 0;
	do {
		result = remote_object_list_buckets(remote, buckets.next, arena, &buckets, err);
		for (size_t i = 0; i < buckets.count && result == 0; i++)
			result = walk_bucket(session, remote, buckets.entries[i].name, visit, err);
	} while (result == 0 && buckets.next.len > 0 && !session->output.failed);
	arena_free(arena);
	return result;
}

static int walk_bucket(struct session *session, struct remote *remote, struct span bucket,
	run_walk_fn *visit, struct error *err)
{
	struct buffer after;
	bool more = true;
	int result = 0;
	buffer_init(&after, NAME_CAP_BYTES);
	while (result == 0 && more && !session->output.failed) {
		struct arena *const arena = arena_new(ARENA_BYTES);
		struct remote_run_page page = {0};
		result = remote_run_list(remote, bucket, buffer_span(&after), arena, &page, err);
		if (result != 0)
			advise(err);
		for (size_t i = 0; i < page.count && result == 0; i++)
			result = visit(session, remote, &page.runs[i], err);
		more = result == 0 && page.more && page.count > 0;
		buffer_reset(&after);
		if (more)
			buffer_add_span(&after, page.runs[page.count - 1].run);
		arena_free(arena);
	}
	buffer_release(&after);
	return result;
}

/* A key for some runs of a bucket may not list the bucket. */
static void advise(struct error *err)
{
	if (err->kind == ERROR_DENIED)
		error_advise(err,
			"a key for one run may ask for it by name: `deltabucket status BUCKET/RUN`"
			" or `deltabucket steps BUCKET/RUN`");
}
