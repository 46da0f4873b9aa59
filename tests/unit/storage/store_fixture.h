/* A store in a scratch folder, and its asynchronous calls made blocking. */
#ifndef TESTS_UNIT_STORAGE_STORE_FIXTURE_H
#define TESTS_UNIT_STORAGE_STORE_FIXTURE_H

#include "base/clock.h"
#include "storage/buckets/bucket.h"
#include "storage/core/store.h"
#include "storage/objects/object_change.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_delete.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "storage/runs/run.h"
#include "storage/versions/object.h"

struct far_fixture;
struct store_fixture {
	char *folder;
	struct store *store;
	struct clock_fake clock;
	struct arena *arena;
	const struct file_ops *files; /* NULL: the real ones */
	bool derives;                 /* the derive worker runs */
	int64_t aside_ms;        /* not 0: the step worker runs, and tries again after this time */
	int64_t promise_ms;      /* of uploaded xorbs and of answers about chunks */
	uint64_t made_max_bytes; /* of derived objects kept as records; 0: 1 GiB */
	struct metrics *metrics; /* borrowed, may be NULL */
	bool is_damaged;         /* the catalog is, so no start finds it sound */
	struct far_fixture *far; /* where packs lie; NULL: in the folder */
	int64_t pack_open_ms;    /* with `far` */
};
void store_fixture_open(struct store_fixture *fixture);
void store_fixture_reopen(struct store_fixture *fixture);
/* The two halves of store_fixture_reopen, for tests that change the files in between. */
void store_fixture_stop(struct store_fixture *fixture);
void store_fixture_start(struct store_fixture *fixture);
void store_fixture_close(struct store_fixture *fixture);
/* Waits for the background work of a start: the catalog is found sound, and versions that the
 * process before held are removed. */
void fixture_await_start(struct store *store);
/* A path in the store's folder. free() it. */
char *store_fixture_path(const struct store_fixture *fixture, const char *name);

/* An outcome that a thread waits for. */
struct settled;
struct settled *settled_new(void);
void settled_done(void *settled);           /* for `done` and call_start */
void settled_wait(struct settled *settled); /* frees it */

/* Runs a call and frees it. -1 when it is NULL, because its maker failed. */
int fixture_call(struct call *call, struct error *err);
/* The same for a call that was started with settled_done and `settled`. */
int fixture_settle(struct call *call, struct settled *settled, struct error *err);

/* Any bucket that has the name. */
static inline struct bucket_ref fixture_bucket(const char *name)
{
	return bucket_named(span_text(name));
}
int fixture_create_bucket(
	struct store *store, const char *name, const char *account, struct error *err);
int fixture_delete_bucket(struct store *store, const char *name, struct error *err);
int fixture_drop_bucket(struct store *store, const char *name, struct error *err);
int fixture_rename_bucket(struct store *store, const char *from, const char *to,
	const char *account, struct error *err);
int fixture_edit_bucket(
	struct store *store, const char *name, const struct bucket_edit *edit, struct error *err);
/* Puts; `params` may be NULL (only bucket and key are set then). `out_etag` may be NULL. */
int fixture_put_with(struct store *store, struct object_put_params *params, struct span bytes,
	char *out_etag, struct error *err);
int fixture_put(struct store *store, const char *bucket, const char *key, struct span bytes,
	struct error *err);
/* The same, and gives the version. Only the etag of its texts is valid. */
int fixture_put_object(struct store *store, struct object_put_params *params, struct span bytes,
	struct object *out, struct error *err);
int fixture_copy(struct store *store, struct object_copy_params *params, struct object *out,
	struct error *err);
int fixture_change(struct store *store, struct object_change_params *params, struct error *err);
int fixture_delete_items(struct store *store, const char *bucket, struct object_delete_item *items,
	size_t count, struct error *err);
int fixture_delete(struct store *store, const char *bucket, const char *key, const char *if_match,
	struct error *err);
/* Reads a range of a version into `out`. */
int fixture_read(struct store *store, const struct object *object, uint64_t offset, uint64_t length,
	struct buffer *out, struct error *err);
/* Finds the current version. */
int fixture_find(struct store_fixture *fixture, const char *bucket, const char *key,
	struct object *out, struct error *err);
/* Whether the key has exactly these bytes. */
bool fixture_holds(
	struct store_fixture *fixture, const char *bucket, const char *key, struct span bytes);
/* Makes `len` bytes that do not repeat, others for each seed. free() them. */
uint8_t *fixture_noise(size_t len, uint64_t seed);
/* Runs the sweeper until it finds nothing. */
void fixture_sweep(struct store *store);
/* Runs SQL as a change of its own. */
int fixture_run(struct store *store, const char *sql, struct error *err);
/* Reads one number from the catalog. */
int64_t fixture_count(struct store *store, const char *sql);
/* Counts the files under packs that find(1) finds with these tests. */
int64_t fixture_pack_files(const struct store_fixture *fixture, const char *tests);

/* Only the numbers of *out are valid. */
int fixture_open_run(struct store *store, const char *bucket, const char *run,
	struct run_message *out, struct error *err);

#endif
