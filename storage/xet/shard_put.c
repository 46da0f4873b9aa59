/* The stages of the call:
 *
 *   spool --> [a large shard waits at the gate] --> check, slice by slice on a helper
 *         --> changes, one after the other: promises of xorbs, then files --> end
 *
 * A change has a bounded number of rows, so a shard may need many. Each works on a copy of the
 * position (`next`), which counts only once the change is committed (`done`): a change that fails
 * leaves no trace. Each slice and change is a point where the shard can be given up. */
#include "storage/xet/shard_put.h"

#include <stdatomic.h>

#include "base/random.h"
#include "base/thread/gate.h"
#include "chunker/shard.h"
#include "storage/files/xet_file.h"
#include "storage/objects/body_spool.h"
#include "storage/objects/scratch.h"
#include "storage/versions/part.h"
#include "storage/versions/part_growth.h"
#include "storage/xet/shard_check.h"
#include "storage/xet/shard_turns.h"
#include "storage/xet/xet_options.h"
#include "storage/xet/xorb_row.h"

enum {
	ACCOUNT_ARENA_BYTES = 4096,
	CHANGE_ROWS = 800,
	FILE_ROWS = 5, /* that registering a file costs beside its segments */
	/* A promise that lacks less than this part of its time is not renewed. */
	PROMISE_SLACK_PART = 64,
	/* slices and changes that a small shard may take while the store stops: about a second */
	ROUNDS_ALLOWED = 64
};

/* A file with more segments than one change takes. Until it is whole, its set belongs to a row
 * under a random name, which no client knows. After a crash the row is swept when it has
 * expired. */
struct staged_file {
	bool is_open;
	struct chunk_id name;
	struct part_growth growth;
	size_t segments; /* how many have rows */
};

/* How far registering has come. */
struct put_position {
	size_t xorb;               /* the next one to promise */
	size_t file;               /* the next one to register */
	struct staged_file staged; /* of that file */
	size_t new_files;          /* registered so far and not known before */
};

struct shard_put {
	struct call call;
	struct gate_visitor visitor;
	int64_t bucket_id;
	struct span account;
	void (*room)(void *owner);
	void *owner;               /* of room */
	bool is_counted;           /* by shard_turns_begin */
	struct body_spool *spool;  /* NULL once the check has ended */
	struct shard_check *check; /* from its first slice on */
	bool has_turn;             /* is inside the gate */
	unsigned rounds;           /* slices and changes so far */
	uint64_t size;             /* in bytes */
	_Atomic uint64_t verified; /* in bytes */
	_Atomic bool is_checked;
	_Atomic bool is_given_up;
	/* Only the committer uses these while changes run. */
	struct put_position done; /* committed */
	struct put_position next; /* of the present change */
	struct shard_report report;
};

static void put_begin(struct call *call);
static struct shard_turns *turns_of(const struct shard_put *put);
static void put_spooled(void *owner);
static void put_pass_gate(struct gate_visitor *visitor);
static struct shard_put *put_of_visitor(struct gate_visitor *visitor);
static void put_turned_away(struct gate_visitor *visitor);
static enum call_next stopping(struct error *err);
static enum call_next put_check(struct call *call, struct error *err);
static int check_slice(struct shard_put *put, struct error *err);
static int begin_check(struct shard_put *put, struct error *err);
static bool gives_up(struct shard_put *put);
static void drop_spool(struct shard_put *put);
static bool is_finished(const struct shard_put *put);
static int put_apply(struct call *call, struct db *db, struct error *err);
static int promise_xorbs(struct shard_put *put, struct db *db, size_t *rows, struct error *err);
static int register_file(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	size_t *rows, struct error *err);
static int touch_file(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	int64_t expires_ms, struct error *err);
static int stage_file(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	int64_t expires_ms, size_t *rows, struct error *err);
static int begin_staging(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	struct error *err);
static int end_staging(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	int64_t expires_ms, struct error *err);
static int add_file(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	int64_t expires_ms, struct error *err);
static enum call_next put_applied(struct call *call);
static void put_settle(struct call *call);
static void end_check(struct shard_put *put);
static void put_release(struct call *call);
static void put_has_room(void *owner);

static const struct call_kind put_kind = {
	.stages = {{.begin = put_begin}, {.help = put_check},
		{.apply = put_apply, .applied = put_applied}},
	.settle = put_settle,
	.release = put_release,
};

struct shard_put *shard_put_open(struct store *store, const struct shard_put_params *params)
{
	ASSERT(params->bucket_id != 0);
	struct shard_put *const put = call_new(sizeof(*put), &put_kind, store, ACCOUNT_ARENA_BYTES);
	const struct body_spool_params spool = {.what = "A shard",
		.bytes_max = SHARD_MAX_BYTES,
		.room = put_has_room,
		.owner = put};
	put->bucket_id = params->bucket_id;
	put->account = arena_copy(put->call.arena, params->account);
	put->room = params->room;
	put->owner = params->owner;
	put->spool = body_spool_new(store, &spool);
	return put;
}

enum sink_result shard_put_write(struct shard_put *put, struct span bytes, struct error *err)
{
	ASSERT(!put->is_counted); /* its call was not started */
	const enum sink_result result = body_spool_write(put->spool, bytes, err);
	if (result == SINK_TAKEN)
		put->size += bytes.len;
	return result;
}

struct call *shard_put_call(struct shard_put *put)
{
	return &put->call;
}

const struct shard_report *shard_put_report(const struct shard_put *put)
{
	ASSERT(put->is_checked);
	return &put->report;
}

void shard_put_progress(const struct shard_put *put, struct shard_progress *out)
{
	*out = (struct shard_progress){
		.is_checked = put->is_checked, .verified = put->verified, .total = put->size};
}

void shard_put_give_up(struct shard_put *put)
{
	put->is_given_up = true;
	if (gate_withdraw(&turns_of(put)->gate, &put->visitor))
		put_turned_away(&put->visitor);
}

void shard_put_quiesce(struct store *store)
{
	gate_close(&store_parts(store)->shard_turns->gate);
}

static void put_begin(struct call *call)
{
	struct shard_put *const put = (struct shard_put *)call;
	ASSERT(put->spool != NULL && !put->is_counted);
	put->is_counted = true;
	shard_turns_begin(turns_of(put));
	body_spool_finish(put->spool, put_spooled);
}

static struct shard_turns *turns_of(const struct shard_put *put)
{
	return store_parts(put->call.store)->shard_turns;
}

static void put_spooled(void *owner)
{
	struct shard_put *const put = owner;
	put->visitor.pass = put_pass_gate;
	put->visitor.turn_away = put_turned_away;
	if (body_spool_is_large(put->spool))
		gate_enter(&turns_of(put)->gate, &put->visitor);
	else
		call_resume(&put->call, NULL);
}

static void put_pass_gate(struct gate_visitor *visitor)
{
	struct shard_put *const put = put_of_visitor(visitor);
	put->has_turn = true;
	call_resume(&put->call, NULL);
}

static struct shard_put *put_of_visitor(struct gate_visitor *visitor)
{
	return (struct shard_put *)((uint8_t *)visitor - offsetof(struct shard_put, visitor));
}

static void put_turned_away(struct gate_visitor *visitor)
{
	struct error err = {0};
	stopping(&err);
	call_resume(&put_of_visitor(visitor)->call, &err);
}

static enum call_next stopping(struct error *err)
{
	error_set(err, ERROR_BUSY, "The server is stopping. Please try again.");
	return CALL_FAILS;
}

static enum call_next put_check(struct call *call, struct error *err)
{
	struct shard_put *const put = (struct shard_put *)call;
	ASSERT(!put->is_checked);
	const int result = check_slice(put, err);
	if (result == 1)
		return CALL_AGAIN;
	drop_spool(put);
	if (result != 0)
		return CALL_FAILS;
	put->is_checked = true;
	shard_check_files(put->check, &put->report.files);
	shard_check_xorbs(put->check, &put->report.xorbs);
	return is_finished(put) ? CALL_ENDS : CALL_NEXT; /* ends if it has only empty files */
}

/* 1: there is more; 0: the shard is true. */
static int check_slice(struct shard_put *put, struct error *err)
{
	if (put->check == NULL && begin_check(put, err) != 0)
		return -1;
	if (gives_up(put))
		return stopping(err);
	const int result = shard_check_step(put->check, err);
	put->verified = shard_check_at(put->check);
	return result;
}

static int begin_check(struct shard_put *put, struct error *err)
{
	struct span bytes;
	if (body_spool_bytes(put->spool, &bytes, err) != 0)
		return -1;
	put->check = shard_check_new(put->call.store, bytes);
	return 0;
}

/* Asked before each slice and change. */
static bool gives_up(struct shard_put *put)
{
	if (put->is_given_up)
		return true;
	return (put->has_turn || ++put->rounds > ROUNDS_ALLOWED) &&
		gate_is_closed(&turns_of(put)->gate);
}

/* Called as soon as the check has ended, because registering may take long. */
static void drop_spool(struct shard_put *put)
{
	body_spool_free(put->spool);
	put->spool = NULL;
}

static bool is_finished(const struct shard_put *put)
{
	size_t xorbs;
	size_t files;
	shard_check_xorbs(put->check, &xorbs);
	shard_check_files(put->check, &files);
	ASSERT(put->done.xorb <= xorbs && put->done.file <= files);
	return put->done.xorb == xorbs && put->done.file == files;
}

/* Does up to about CHANGE_ROWS rows, but at least one file or one stage of a file. */
static int put_apply(struct call *call, struct db *db, struct error *err)
{
	struct shard_put *const put = (struct shard_put *)call;
	size_t count;
	size_t rows = 0;
	const struct shard_check_file *const files = shard_check_files(put->check, &count);
	put->next = put->done;
	if (promise_xorbs(put, db, &rows, err) != 0)
		return -1;
	int registered = 1;
	while (registered == 1 && put->next.file < count && rows < CHANGE_ROWS) {
		registered = register_file(put, db, &files[put->next.file], &rows, err);
		put->next.file += registered == 1;
	}
	return registered < 0 ? -1 : 0;
}

/* Writes few rows, because most xorbs were promised a moment ago, at their upload. */
static int promise_xorbs(struct shard_put *put, struct db *db, size_t *rows, struct error *err)
{
	size_t count;
	const struct xorb *const xorbs = shard_check_xorbs(put->check, &count);
	const int64_t promise_ms = store_parts(put->call.store)->xet->upload_promise_ms;
	const int64_t until_ms = store_now_ms(put->call.store) + promise_ms;
	for (; put->next.xorb < count && *rows < CHANGE_ROWS; put->next.xorb++) {
		struct xorb xorb = xorbs[put->next.xorb];
		if (xorb.promised_ms >= until_ms - promise_ms / PROMISE_SLACK_PART)
			continue;
		xorb.promised_ms = until_ms;
		++*rows;
		if (xorb_row_put(db, &xorb, err) != 0)
			return -1;
	}
	return 0;
}

/* 1: the file is registered; 0: the next change continues it. */
static int register_file(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	size_t *rows, struct error *err)
{
	const int64_t expires_ms = store_now_ms(put->call.store) + XET_GRANT_MS;
	struct xet_file known;
	int has_row = xet_file_row_find(db, &file->hash, &known, err);
	if (has_row < 0)
		return -1;
	*rows += FILE_ROWS;
	if (has_row == 1) {
		has_row = touch_file(put, db, file, expires_ms, err) == 0 ? 1 : -1;
	} else if (file->segment_count > CHANGE_ROWS) {
		has_row = stage_file(put, db, file, expires_ms, rows, err);
	} else {
		*rows += file->segment_count;
		has_row = add_file(put, db, file, expires_ms, err) == 0 ? 1 : -1;
	}
	if (has_row != 1)
		return has_row;
	const struct xet_grant grant = {
		.file = &file->hash, .bucket = put->bucket_id, .account = put->account};
	return xet_grant_row_put(db, &grant, expires_ms, err) == 0 ? 1 : -1;
}

/* The file has a row already. If another shard registered it while this one was staging it, the
 * staged set is released. */
static int touch_file(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	int64_t expires_ms, struct error *err)
{
	struct staged_file *const staged = &put->next.staged;
	const struct xet_file row = {.hash = staged->name, .part_set = staged->growth.set};
	if (staged->is_open && xet_file_row_remove(db, &row, err) != 0)
		return -1;
	staged->is_open = false;
	return xet_file_row_touch(db, &file->hash, false, expires_ms, err);
}

/* Adds segments to a staged file. 1: it is whole; 0: the next change continues it. */
static int stage_file(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	int64_t expires_ms, size_t *rows, struct error *err)
{
	struct staged_file *const staged = &put->next.staged;
	if (!staged->is_open && begin_staging(put, db, file, err) != 0)
		return -1;
	ASSERT(staged->segments < file->segment_count);
	const size_t left = file->segment_count - staged->segments;
	const size_t room = *rows < CHANGE_ROWS ? CHANGE_ROWS - *rows : 1;
	const size_t count = left < room ? left : room;
	const struct segment *const segments =
		shard_check_segments(put->check) + file->first_segment + staged->segments;
	if (part_growth_add(db, &staged->growth, segments, count, err) != 0)
		return -1;
	staged->segments += count;
	*rows += count;
	if (count < left)
		return 0;
	return end_staging(put, db, file, expires_ms, err) == 0 ? 1 : -1;
}

static int begin_staging(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	struct error *err)
{
	struct staged_file *const staged = &put->next.staged;
	*staged = (struct staged_file){.is_open = true};
	random_bytes(staged->name.bytes, CHUNK_ID_BYTES);
	if (part_growth_begin(db, file->segment_count, &staged->growth, err) != 0)
		return -1;
	const struct xet_file row = {.hash = staged->name,
		.size = file->size,
		.part_set = staged->growth.set,
		.expires_ms = store_now_ms(put->call.store) + XET_GRANT_MS};
	return xet_file_row_add(db, &row, err);
}

static int end_staging(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	int64_t expires_ms, struct error *err)
{
	struct staged_file *const staged = &put->next.staged;
	struct xet_file row = {.hash = file->hash,
		.size = file->size,
		.part_set = staged->growth.set,
		.expires_ms = expires_ms};
	staged->is_open = false;
	put->next.new_files++;
	if (part_growth_end(db, &staged->growth, &row.contents, err) != 0 ||
		xet_file_row_forget(db, &staged->name, err) != 0)
		return -1;
	return xet_file_row_add(db, &row, err);
}

static int add_file(struct shard_put *put, struct db *db, const struct shard_check_file *file,
	int64_t expires_ms, struct error *err)
{
	struct xet_file row = {.hash = file->hash, .size = file->size, .expires_ms = expires_ms};
	const struct segment *const segments =
		shard_check_segments(put->check) + file->first_segment;
	if (part_set_add_single(
		    db, segments, file->segment_count, &row.part_set, &row.contents, err) != 0 ||
		xet_file_row_add(db, &row, err) != 0)
		return -1;
	put->next.new_files++;
	return 0;
}

static enum call_next put_applied(struct call *call)
{
	struct shard_put *const put = (struct shard_put *)call;
	if (call->failed)
		return CALL_FAILS;
	put->done = put->next;
	put->report.new_files = put->done.new_files;
	if (is_finished(put))
		return CALL_NEXT;
	return gives_up(put) ? stopping(&call->error) : CALL_AGAIN;
}

static void put_settle(struct call *call)
{
	struct shard_put *const put = (struct shard_put *)call;
	if (call->failed)
		scratch_hide_paths(call->store, &call->error);
	drop_spool(put);
	end_check(put);
	if (put->is_counted)
		shard_turns_end(turns_of(put));
}

/* Called as early as possible: the check of a large shard takes tens of megabytes. */
static void end_check(struct shard_put *put)
{
	shard_check_free(put->check, put->call.change.in_doubt);
	put->check = NULL;
	if (put->has_turn)
		gate_leave(&turns_of(put)->gate);
	put->has_turn = false;
}

static void put_release(struct call *call)
{
	body_spool_free(((struct shard_put *)call)->spool);
}

static void put_has_room(void *owner)
{
	const struct shard_put *const put = owner;
	if (put->room != NULL)
		put->room(put->owner);
}
