/* The stored bytes of a xorb are damaged on the disk, and the xorb is sent again. */
#include "storage/xet/xorb_repeat.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/db/db.h"
#include "storage/objects/object_read.h"
#include "storage/open/store_open.h"
#include "storage/packs/pack_format.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/packs/set_aside.h"
#include "storage/packs/xorb_view.h"
#include "storage/xet/xorb_promise.h"
#include "storage/xet/xorb_source.h"
#include "tests/unit/storage/kill_fixture.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/xorb_fixture.h"
#include "tests/unit/unit.h"

Suite *test_xorb_repeat_suite(void);

static struct store_fixture fixture;

/* The first two share a pack; the others have packs of their own. The last two have the same
 * content in different encodings. */
static const struct xorb_sample small = {.seed = 41, .chunks = 3, .chunk_bytes = 8000};
static const struct xorb_sample other = {.seed = 42, .chunks = 2, .chunk_bytes = 9000};
static const struct xorb_sample large = {.seed = 43, .chunks = 12, .chunk_bytes = 100001};
/* than the memory of a spool */
static const struct xorb_sample larger = {.seed = 45, .chunks = 40, .chunk_bytes = 100001};
static const struct xorb_sample one_form = {
	.seed = 44, .chunks = 500, .chunk_bytes = 30000, .codec = CODEC_LZ4};
static const struct xorb_sample other_form = {
	.seed = 44, .chunks = 500, .chunk_bytes = 30000, .codec = CODEC_BG4_LZ4};

static struct store *open_on(const struct file_ops *files, struct error *err)
{
	const struct store_options options = {.folder = fixture.folder,
		.files = files,
		.clock = &fixture.clock.source,
		.pack_max_bytes = 1024 * 1024,
		.xet = {.upload_promise_ms = 3600 * 1000}};
	return store_open(&options, err);
}

static void open_store_on(const struct file_ops *files)
{
	struct error err = {0};
	fixture.store = open_on(files, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
}

static void open_store(void)
{
	open_store_on(NULL);
}

static void setup(void)
{
	store_fixture_open(&fixture);
	store_close(fixture.store);
	open_store();
}

static void teardown(void)
{
	store_fixture_close(&fixture);
}

static int send(const struct xorb_sample *sample, bool *out_inserted)
{
	struct error err = {0};
	if (xorb_sample_put(fixture.store, sample, out_inserted, &err) == 0)
		return 0;
	ck_assert_msg(err.kind == ERROR_BUSY, "%s", err.text);
	return -1;
}

/* Sends as a client does: again while the server replies busy. */
static void send_until_mended(const struct xorb_sample *sample)
{
	bool mended = false;
	for (int i = 0; i < 1000 && send(sample, &mended) != 0; i++)
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	ck_assert(mended);
}

static struct xorb find(const struct xorb_sample *sample)
{
	struct error err = {0};
	struct xorb xorb;
	const struct chunk_id hash = xorb_sample_hash(sample);
	ck_assert_msg(xorb_find(fixture.store, &hash, &xorb, &err) == 0, "%s", err.text);
	return xorb;
}

/* The pack's file, by the name that the catalog gives it; free(). */
static char *pack_path(const struct xorb *xorb)
{
	char name[PACK_NAME_BYTES];
	static const char sql[] = "SELECT file FROM packs WHERE number = ?1";
	struct error err = {0};
	struct pack_id file = xorb->pack;
	struct db *const db = store_reader_take(fixture.store, &err);
	struct db_statement *const statement = db_query(db, sql, &err, db_i64(xorb->pack_number));
	ck_assert_int_eq(db_step(statement, &err), 1);
	const struct span moved = db_column_blob(statement, 0);
	if (moved.len == PACK_ID_BYTES)
		memcpy(file.bytes, moved.data, PACK_ID_BYTES);
	db_reset(statement);
	store_reader_give(fixture.store, db);
	pack_format_name(&file, PACK_FILE_PACK, name);
	char relative[PACK_NAME_BYTES + 10];
	snprintf(relative, sizeof(relative), "packs/%.2s/%s", name, name);
	return store_fixture_path(&fixture, relative);
}

/* Changes one byte in the payload of that chunk. */
static void damage(const struct xorb_sample *sample, uint32_t chunk)
{
	const struct xorb xorb = find(sample);
	struct pack_cache *const cache = store_packs(fixture.store)->cache;
	struct error err = {0};
	struct pack_entry entry;
	struct pack *const pinned = pack_cache_pin(cache, &xorb.pack, false, &err);
	ck_assert_uint_eq(pack_cache_copy_entries(cache, pinned, xorb.first + chunk, &entry, 1), 1);
	pack_cache_unpin(cache, pinned);
	char *const path = pack_path(&xorb);
	FILE *const file = fopen(path, "r+b");
	ck_assert_msg(file != NULL, "%s", path);
	const long at = (long)entry.offset + PACK_RECORD_HEADER_BYTES + 5;
	ck_assert(fseek(file, at, SEEK_SET) == 0);
	const int byte = fgetc(file);
	ck_assert(byte != EOF && fseek(file, at, SEEK_SET) == 0 &&
		fputc(byte ^ 0x10, file) != EOF && fclose(file) == 0);
	free(path);
}

static int64_t pack_files(void)
{
	return fixture_pack_files(&fixture, "-name '*.pack'");
}

static _Atomic off_t unreadable; /* reads from this offset on fail */

static ssize_t read_but_there(
	const struct file_ops *ops, int fd, const struct iovec *parts, int count, off_t offset)
{
	(void)ops;
	if (offset != 0 && offset == unreadable) {
		errno = EIO;
		return -1;
	}
	return file_system()->preadv(file_system(), fd, parts, count, offset);
}

static off_t record_offset(const struct xorb_sample *sample)
{
	const struct xorb xorb = find(sample);
	struct pack_cache *const cache = store_packs(fixture.store)->cache;
	struct error err = {0};
	struct pack_entry entry;
	struct pack *const pinned = pack_cache_pin(cache, &xorb.pack, false, &err);
	ck_assert_uint_eq(pack_cache_copy_entries(cache, pinned, xorb.first, &entry, 1), 1);
	pack_cache_unpin(cache, pinned);
	return entry.offset;
}

/* The other records of the pack are right and must not be lost because of a temporary failure. */
START_TEST(nothing_is_mended_while_its_neighbours_cannot_be_read)
{
	static struct file_ops files; /* outlives the store */
	struct error err;
	bool mended;
	files = *file_system();
	files.preadv = read_but_there;
	ck_assert(send(&small, &mended) == 0 && send(&other, &mended) == 0);
	store_close(fixture.store);
	open_store_on(&files);
	damage(&small, 1);
	ck_assert(!xorb_sample_is_there(fixture.store, &small)); /* the damage is seen */
	unreadable = record_offset(&other);
	do {
		err = (struct error){0};
		mended = false;
		ck_assert_int_eq(xorb_sample_put(fixture.store, &small, &mended, &err), -1);
	} while (err.kind == ERROR_BUSY);
	ck_assert_msg(err.kind == ERROR_IO && !mended, "%s", err.text);
	unreadable = 0;
	ck_assert(xorb_sample_is_there(fixture.store, &other) &&
		!xorb_sample_is_there(fixture.store, &small));
	ck_assert_int_eq(pack_files(), 1);
	send_until_mended(&small);
	ck_assert(xorb_sample_is_there(fixture.store, &other) &&
		xorb_sample_is_there(fixture.store, &small));
}
END_TEST

static int renew(const struct xorb_sample *sample, struct error *err)
{
	const struct chunk_id hash = xorb_sample_hash(sample);
	struct call *const promise = xorb_promise_renew_call(fixture.store, &hash, err);
	ck_assert_ptr_nonnull(promise);
	const int result = call_run(promise, err);
	call_free(promise);
	return result;
}

/* Bad sectors, and damage on a file system with checksums of its own: reads always fail. */
START_TEST(what_the_disk_cannot_read_is_mended_too)
{
	static struct file_ops files; /* outlives the store */
	struct error err = {0};
	bool mended;
	files = *file_system();
	files.preadv = read_but_there;
	ck_assert(send(&small, &mended) == 0 && send(&other, &mended) == 0);
	store_close(fixture.store);
	open_store_on(&files);
	/* it begins elsewhere in the new file, which has no footer before it */
	unreadable = record_offset(&other);
	ck_assert_int_eq(renew(&other, &err), -1);
	ck_assert_msg(err.kind == ERROR_NOT_FOUND, "%s", err.text);
	send_until_mended(&other);
	ck_assert(record_offset(&other) != unreadable);
	ck_assert(xorb_sample_is_there(fixture.store, &other) &&
		xorb_sample_is_there(fixture.store, &small));
	ck_assert_int_eq(renew(&other, &err), 0);
	ck_assert_int_eq(pack_files(), 1);
	unreadable = 0;
}
END_TEST

static int64_t files_of_packs(void)
{
	return fixture_pack_files(&fixture, "");
}

static int apply_nothing(struct change *change, struct db *db, struct error *err)
{
	(void)change, (void)db, (void)err;
	return 0;
}

/* Waits for the queued changes: then the damage that a read has found is recorded. */
static void await_changes(void)
{
	struct change change = {.apply = apply_nothing};
	struct error err = {0};
	ck_assert_msg(
		committer_run(store_committer(fixture.store), &change, &err) == 0, "%s", err.text);
}

/* Each write, sync and rename fails once: the other records stay right, no file is left over, and
 * the next upload mends. */
START_TEST(a_mending_that_fails_leaves_all_as_it_was)
{
	static const int failures[] = {ENOSPC, EIO};
	static struct file_faults faults; /* outlives the store */
	int failed = 0;
	bool inserted;
	ck_assert(send(&small, &inserted) == 0 && send(&other, &inserted) == 0);
	store_close(fixture.store); /* seals their pack */
	file_faults_init(&faults, 0, 0, 0);
	open_store_on(&faults.ops);
	ck_assert(xorb_sample_is_there(fixture.store, &small));
	const int64_t files = files_of_packs();
	bool is_reached = true; /* the fault: the journal alone may meet one and go on */
	for (int countdown = 0; is_reached; countdown++) {
		struct error err = {.kind = ERROR_BUSY};
		const int before = failed;
		damage(&small, 1);
		ck_assert(!xorb_sample_is_there(fixture.store, &small));
		await_changes();
		faults.countdown = countdown;
		faults.failure = failures[_i];
		faults.kinds =
			FILE_FAULT_OPEN | FILE_FAULT_WRITE | FILE_FAULT_SYNC | FILE_FAULT_RENAME;
		failed += xorb_sample_put(fixture.store, &small, &inserted, &err) != 0;
		faults.kinds = 0;
		is_reached = faults.countdown < 0;
		ck_assert_msg(
			failed == before || err.kind == ERROR_NO_SPACE || err.kind == ERROR_IO,
			"%s", err.text);
		ck_assert(failed == before || !xorb_sample_is_there(fixture.store, &small));
		ck_assert_int_eq(files_of_packs(), files);
		if (failed != before)
			send_until_mended(&small);
		ck_assert(xorb_sample_is_there(fixture.store, &small) &&
			xorb_sample_is_there(fixture.store, &other));
	}
	ck_assert_int_gt(failed, 4);
}
END_TEST

START_TEST(a_damaged_xorb_is_mended_when_it_comes_again)
{
	bool inserted;
	ck_assert(send(&large, &inserted) == 0 && inserted);
	const struct xorb before = find(&large);
	damage(&large, 3);
	damage(&large, 11);
	ck_assert(!xorb_sample_is_there(fixture.store, &large)); /* the damage is seen */
	send_until_mended(&large);
	const struct xorb after = find(&large);
	/* everything that led there still does */
	ck_assert_mem_eq(&after.pack, &before.pack, sizeof(before.pack));
	ck_assert_uint_eq(after.first, before.first);
	ck_assert(xorb_sample_is_there(fixture.store, &large));
	ck_assert_int_eq(pack_files(), 1);
	ck_assert(send(&large, &inserted) == 0 && !inserted);
	store_close(fixture.store);
	open_store();
	ck_assert(xorb_sample_is_there(fixture.store, &large));
	damage(&large, 0); /* a mended pack is a normal pack */
	send_until_mended(&large);
	ck_assert(xorb_sample_is_there(fixture.store, &large));
}
END_TEST

/* No read has seen the damage: the first upload finds it and mends nothing. */
START_TEST(damage_is_found_by_who_sends_it_again)
{
	bool inserted;
	ck_assert_int_eq(send(&large, &inserted), 0);
	damage(&large, 7);
	ck_assert_int_eq(send(&large, &inserted), -1);
	ck_assert(send(&large, &inserted) == 0 && inserted);
	ck_assert(xorb_sample_is_there(fixture.store, &large));
}
END_TEST

/* The open shared pack is sealed first. An object that shares a chunk reads right again; another
 * damaged xorb of the pack needs its own bytes. */
START_TEST(objects_that_share_its_chunks_read_right_again)
{
	struct error err = {0};
	struct buffer out;
	bool inserted;
	uint8_t *const content = xorb_sample_chunk(&small, 0);
	const struct span object = span_of(content, small.chunk_bytes);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	ck_assert(send(&small, &inserted) == 0 && send(&other, &inserted) == 0);
	const struct xorb one = find(&small);
	const struct xorb two = find(&other);
	ck_assert_mem_eq(&one.pack, &two.pack, PACK_ID_BYTES);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "key", object, &err), 0);
	damage(&small, 0);
	damage(&other, 1);
	struct object found;
	ck_assert_int_eq(fixture_find(&fixture, "bucket", "key", &found, &err), 0);
	buffer_init(&out, 100000);
	ck_assert_int_eq(fixture_read(fixture.store, &found, 0, object.len, &out, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	buffer_release(&out);
	send_until_mended(&small);
	ck_assert(fixture_holds(&fixture, "bucket", "key", object));
	ck_assert(xorb_sample_is_there(fixture.store, &small) &&
		!xorb_sample_is_there(fixture.store, &other));
	send_until_mended(&other);
	ck_assert(xorb_sample_is_there(fixture.store, &small) &&
		xorb_sample_is_there(fixture.store, &other));
	free(content);
}
END_TEST

START_TEST(a_pack_that_is_gone_comes_back)
{
	bool inserted;
	ck_assert_int_eq(send(&small, &inserted), 0);
	store_close(fixture.store); /* the next one gets a pack of its own */
	open_store();
	ck_assert_int_eq(send(&large, &inserted), 0);
	const struct xorb xorb = find(&large);
	char *const path = pack_path(&xorb);
	store_close(fixture.store); /* its index is saved */
	ck_assert_int_eq(unlink(path), 0);
	free(path);
	open_store();
	ck_assert(!xorb_sample_is_there(fixture.store, &large));
	send_until_mended(&large);
	ck_assert(xorb_sample_is_there(fixture.store, &large));
}
END_TEST

/* With other lengths of records: a reader in progress gets an error and no wrong bytes. */
START_TEST(another_encoding_mends_too)
{
	struct error err = {0};
	bool inserted;
	uint32_t present;
	ck_assert_int_eq(send(&one_form, &inserted), 0);
	damage(&one_form, 499);
	const struct xorb xorb = find(&one_form);
	struct pack_store *const packs = store_packs(fixture.store);
	struct xorb_view *const view = xorb_view_open(packs, &xorb.pack, &err);
	struct xorb_run run = {.pack = xorb.pack, .first = xorb.first, .count = 499};
	run.length = xorb_view_shown(view, xorb.first, xorb.first + run.count, false, &present);
	xorb_view_close(view);
	const struct xorb_source_params params = {.runs = &run, .count = 1, .length = run.length};
	struct body_source *const source = xorb_source_open(packs, &params, &err);
	ck_assert_msg(source != NULL, "%s", err.text);
	uint8_t bytes[1000];
	ck_assert_int_gt(source->read(source, bytes, sizeof(bytes), &err), 0);
	ck_assert(!xorb_sample_is_there(fixture.store, &one_form));
	send_until_mended(&other_form);
	ptrdiff_t got;
	while ((got = source->read(source, bytes, sizeof(bytes), &err)) > 0)
		;
	ck_assert_int_eq(got, -1);
	ck_assert_msg(
		err.kind == ERROR_CORRUPT && strstr(err.text, "ask again") != NULL, "%s", err.text);
	source->close(source);
	ck_assert(xorb_sample_is_there(fixture.store, &one_form));
}
END_TEST

/* The same when no read has seen it before. */
START_TEST(who_asks_whether_it_is_here_is_told_to_send_it)
{
	struct error err = {0};
	uint64_t length;
	bool inserted;
	ck_assert_int_eq(send(&large, &inserted), 0);
	ck_assert_int_eq(renew(&large, &err), 0);
	damage(&large, 5);
	const struct xorb xorb = find(&large);
	ck_assert_int_eq(renew(&large, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(xorb_length(fixture.store, &xorb, &length, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert(!pack_store_is_held(store_packs(fixture.store), &xorb.pack));
	ck_assert(send(&large, &inserted) == 0 && inserted);
	ck_assert_int_eq(renew(&large, &err), 0);
	ck_assert_int_eq(xorb_length(fixture.store, &xorb, &length, &err), 0);
}
END_TEST

/* A chunk that was seen damaged is not found when the same bytes are put. */
START_TEST(an_object_is_not_made_of_damaged_chunks)
{
	struct error err = {0};
	bool inserted;
	uint8_t *const content = xorb_sample_chunk(&small, 0);
	const struct span object = span_of(content, small.chunk_bytes);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(send(&small, &inserted), 0);
	damage(&small, 0);
	ck_assert(!xorb_sample_is_there(fixture.store, &small));
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "key", object, &err), 0);
	ck_assert(fixture_holds(&fixture, "bucket", "key", object));
	free(content);
}
END_TEST

START_TEST(what_is_not_the_xorb_mends_nothing)
{
	struct error err = {0};
	struct buffer body;
	bool inserted;
	ck_assert_int_eq(send(&large, &inserted), 0);
	damage(&large, 2);
	ck_assert(!xorb_sample_is_there(fixture.store, &large));
	const struct chunk_id hash = xorb_sample_write(&large, &body);
	ck_assert_int_eq(
		xorb_fixture_put(fixture.store, &hash,
			span_slice(buffer_span(&body), 0, body.len - 1), false, &inserted, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	body.data[100] ^= 1;
	ck_assert_int_eq(
		xorb_fixture_put(fixture.store, &hash, buffer_span(&body), false, &inserted, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	const struct xorb_put_params params = {.hash = hash};
	struct xorb_put *const put = xorb_put_open(fixture.store, &params, &err);
	ck_assert_int_eq(
		xorb_put_write(put, span_slice(buffer_span(&body), 0, 50), &err), SINK_TAKEN);
	call_free(xorb_put_call(put)); /* given up */
	const struct xorb xorb = find(&large);
	ck_assert(!pack_store_is_held(store_packs(fixture.store), &xorb.pack));
	ck_assert(!xorb_sample_is_there(fixture.store, &large));
	buffer_release(&body);
}
END_TEST

static atomic_bool removal_fails;

static int unlink_when_let(const struct file_ops *ops, const char *path)
{
	(void)ops;
	if (!removal_fails)
		return file_system()->unlink(file_system(), path);
	errno = EIO;
	return -1;
}

static int64_t removals(void)
{
	return fixture_count(fixture.store, "SELECT count(*) FROM removals");
}

static size_t files_aside(void)
{
	struct error err = {0};
	struct set_aside aside;
	ck_assert_int_eq(set_aside_list(fixture.folder, &aside, &err), 0);
	const size_t count = aside.count;
	set_aside_release(&aside);
	return count;
}

/* The commit that names the new file also permits to remove the old one. Without that a start would
 * set it aside, because an earlier life than the last one made it. */
START_TEST(the_file_that_was_damaged_goes_with_the_next_start)
{
	static struct file_ops files; /* outlives the store */
	bool mended;
	files = *file_system();
	files.unlink = unlink_when_let;
	ck_assert_int_eq(send(&large, &mended), 0);
	store_close(fixture.store);
	open_store_on(&files);
	damage(&large, 3);
	ck_assert(!xorb_sample_is_there(fixture.store, &large));
	ck_assert_int_eq(removals(), 0);
	removal_fails = true;
	send_until_mended(&large);
	removal_fails = false;
	ck_assert_int_eq(pack_files(), 2);
	ck_assert_int_eq(removals(), 1);
	store_close(fixture.store);
	open_store();
	ck_assert_int_eq(pack_files(), 1);
	ck_assert_uint_eq(files_aside(), 0);
	ck_assert(xorb_sample_is_there(fixture.store, &large));
}
END_TEST

enum { KILL_ROUNDS_MAX = 60 };

/* In a child: opens the store and sends the xorb until it is mended. */
static int mend_once(const struct kill_child *child, const struct file_ops *files)
{
	struct error err = {0};
	bool mended = false;
	(void)child;
	fixture.store = open_on(files, &err);
	if (fixture.store == NULL)
		return 1;
	for (int i = 0; i < 1000 && !mended; i++)
		if (xorb_sample_put(fixture.store, &large, &mended, &err) != 0 &&
			err.kind != ERROR_BUSY)
			return 2;
	store_close(fixture.store);
	return mended ? 0 : 3;
}

/* Each time the pack is either damaged or right, and no other file is in the folder. */
START_TEST(a_kill_at_any_write_leaves_it_damaged_or_mended)
{
	struct kill_child child = {.kinds = KILL_ANYWHERE & ~FILE_FAULT_OPEN, .work = mend_once};
	bool is_alive = false;
	bool inserted;
	ck_assert_int_eq(send(&large, &inserted), 0);
	for (; child.countdown < KILL_ROUNDS_MAX && !is_alive; child.countdown += unit_stride(3)) {
		if (xorb_sample_is_there(fixture.store, &large))
			damage(&large, 4);
		store_close(fixture.store);
		is_alive = kill_child_run(&child, NULL);
		open_store();
		ck_assert_int_eq(pack_files(), 1);
	}
	ck_assert(is_alive && child.countdown > 4);
	ck_assert(xorb_sample_is_there(fixture.store, &large));
}
END_TEST

static atomic_bool writes_stand;

static ssize_t write_when_let(
	const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset)
{
	(void)ops;
	while (writes_stand)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return file_system()->pwrite(file_system(), fd, data, len, offset);
}

struct upload {
	struct settled *room;
};

static void upload_has_room(void *owner)
{
	settled_done(((struct upload *)owner)->room);
}

/* Blocks the disk until the first wait. Returns how often it waited. */
static int write_and_wait(struct xorb_put *put, struct upload *upload, struct span body)
{
	enum { PIECE_BYTES = 64 * 1024 };
	struct error err = {0};
	int waits = 0;
	writes_stand = true;
	for (size_t at = 0; at < body.len;) {
		const struct span piece = span_slice(body, at, PIECE_BYTES);
		const enum sink_result result = xorb_put_write(put, piece, &err);
		ck_assert_msg(result != SINK_FAILED, "%s", err.text);
		if (result == SINK_TAKEN) {
			at += piece.len;
			continue;
		}
		waits++;
		writes_stand = false;
		settled_wait(upload->room);
		upload->room = settled_new();
	}
	return waits;
}

START_TEST(who_sends_it_faster_than_the_disk_is_woken)
{
	static struct file_ops files; /* outlives the store */
	struct error err = {0};
	struct upload upload = {.room = settled_new()};
	struct buffer body;
	bool mended;
	files = *file_system();
	files.pwrite = write_when_let;
	ck_assert_int_eq(send(&larger, &mended), 0);
	store_close(fixture.store);
	open_store_on(&files);
	damage(&larger, 2);
	/* the damage is seen, so the new bytes are kept */
	ck_assert(!xorb_sample_is_there(fixture.store, &larger));
	const struct xorb_put_params params = {.hash = xorb_sample_write(&larger, &body),
		.room = upload_has_room,
		.owner = &upload};
	struct xorb_put *const put = xorb_put_open(fixture.store, &params, &err);
	ck_assert_msg(put != NULL, "%s", err.text);
	ck_assert_int_ge(write_and_wait(put, &upload, buffer_span(&body)), 1);
	ck_assert_msg(call_run(xorb_put_call(put), &err) == 0, "%s", err.text);
	ck_assert(xorb_put_inserted(put));
	call_free(xorb_put_call(put));
	ck_assert(xorb_sample_is_there(fixture.store, &larger));
	settled_done(upload.room);
	settled_wait(upload.room);
	buffer_release(&body);
}
END_TEST

Suite *test_xorb_repeat_suite(void)
{
	Suite *const suite = suite_create("xorb_repeat");
	TCase *const all = tcase_create("all");
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_set_timeout(all, 120);
	tcase_add_test(all, a_damaged_xorb_is_mended_when_it_comes_again);
	tcase_add_test(all, nothing_is_mended_while_its_neighbours_cannot_be_read);
	tcase_add_test(all, what_the_disk_cannot_read_is_mended_too);
	tcase_add_loop_test(all, a_mending_that_fails_leaves_all_as_it_was, 0, 2);
	tcase_add_test(all, damage_is_found_by_who_sends_it_again);
	tcase_add_test(all, objects_that_share_its_chunks_read_right_again);
	tcase_add_test(all, a_pack_that_is_gone_comes_back);
	tcase_add_test(all, the_file_that_was_damaged_goes_with_the_next_start);
	tcase_add_test(all, another_encoding_mends_too);
	tcase_add_test(all, who_asks_whether_it_is_here_is_told_to_send_it);
	tcase_add_test(all, an_object_is_not_made_of_damaged_chunks);
	tcase_add_test(all, what_is_not_the_xorb_mends_nothing);
	tcase_add_test(all, who_sends_it_faster_than_the_disk_is_woken);
	tcase_add_test(all, a_kill_at_any_write_leaves_it_damaged_or_mended);
	suite_add_tcase(suite, all);
	return suite;
}
