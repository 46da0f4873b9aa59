#include "storage/xet/shard_put.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/little_endian.h"
#include "base/thread/gate.h"
#include "base/thread/helpers.h"
#include "chunker/chunk_hash.h"
#include "chunker/shard.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/files/xet_file.h"
#include "storage/packs/pack_format.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/versions/part.h"
#include "storage/xet/shard_turns.h"
#include "tests/unit/storage/damage_fixture.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/xorb_fixture.h"
#include "tests/unit/unit.h"

enum { CHUNKS = 20, CHUNK_BYTES = 9000, BUCKET = 7, SHARD_CAP_BYTES = 70 * 1024 * 1024 };
static const int64_t DAY_MS = 24 * 60 * 60 * 1000;

Suite *test_shard_put_suite(void);

static const struct xorb_sample sample = {
	.seed = 1, .chunks = CHUNKS, .chunk_bytes = CHUNK_BYTES, .codec = CODEC_RAW};
static struct store_fixture fixture;
static struct chunk_entry entries[CHUNKS];
static struct chunk_id xorb;
static struct buffer shard;

static void set_up_with(const struct file_ops *files)
{
	struct error err = {0};
	bool inserted = false;
	fixture = (struct store_fixture){.files = files, .promise_ms = 28 * DAY_MS};
	store_fixture_open(&fixture);
	for (unsigned i = 0; i < CHUNKS; i++) {
		uint8_t *const content = xorb_sample_chunk(&sample, i);
		entries[i] = (struct chunk_entry){
			.id = chunk_hash(span_of(content, CHUNK_BYTES)), .size = CHUNK_BYTES};
		free(content);
	}
	xorb = chunk_hash_xorb(entries, CHUNKS);
	ck_assert_msg(xorb_sample_put(fixture.store, &sample, &inserted, &err) == 0 && inserted,
		"%s", err.text);
	buffer_init(&shard, SHARD_CAP_BYTES);
}

static void set_up(void)
{
	set_up_with(NULL);
}

static void tear_down(void)
{
	buffer_release(&shard);
	store_fixture_close(&fixture);
}

struct sender {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	unsigned rooms;
	bool done;
};

static void has_room(void *owner)
{
	struct sender *const sender = owner;
	pthread_mutex_lock(&sender->mutex);
	sender->rooms++;
	pthread_cond_signal(&sender->condition);
	pthread_mutex_unlock(&sender->mutex);
}

static void is_done(void *owner)
{
	struct sender *const sender = owner;
	pthread_mutex_lock(&sender->mutex);
	sender->done = true;
	pthread_cond_signal(&sender->condition);
	pthread_mutex_unlock(&sender->mutex);
}

/* Writes `bytes` piece by piece, and waits when told to. */
static int write_all(
	struct shard_put *put, struct sender *sender, struct span bytes, struct error *err)
{
	enum { PIECE_BYTES = 50000 };
	for (size_t at = 0; at < bytes.len;) {
		const struct span piece = span_slice(bytes, at, PIECE_BYTES);
		pthread_mutex_lock(&sender->mutex);
		const unsigned before = sender->rooms;
		pthread_mutex_unlock(&sender->mutex);
		const enum sink_result result = shard_put_write(put, piece, err);
		if (result == SINK_FAILED)
			return -1;
		pthread_mutex_lock(&sender->mutex);
		while (result == SINK_WAIT && sender->rooms == before)
			pthread_cond_wait(&sender->condition, &sender->mutex);
		pthread_mutex_unlock(&sender->mutex);
		at += result == SINK_TAKEN ? piece.len : 0;
	}
	return 0;
}

static struct shard_put *open_put(struct sender *sender, const char *account)
{
	const struct shard_put_params params = {.bucket_id = BUCKET,
		.account = span_text(account),
		.room = has_room,
		.owner = sender};
	return shard_put_open(fixture.store, &params);
}

/* Waits for a put that was started. */
static int outcome(struct shard_put *put, struct sender *sender, struct error *err)
{
	pthread_mutex_lock(&sender->mutex);
	while (!sender->done)
		pthread_cond_wait(&sender->condition, &sender->mutex);
	pthread_mutex_unlock(&sender->mutex);
	return call_outcome(shard_put_call(put), err);
}

static int send_as(
	const char *account, struct span bytes, struct shard_report *out, struct error *err)
{
	struct sender sender = {
		.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};
	struct shard_put *const put = open_put(&sender, account);
	int result = write_all(put, &sender, bytes, err);
	if (result == 0)
		result = call_run(shard_put_call(put), err);
	if (result == 0)
		*out = *shard_put_report(put);
	call_free(shard_put_call(put));
	return result;
}

static struct shard_report accept(void)
{
	struct error err = {0};
	struct shard_report report = {0};
	ck_assert(!buffer_failed(&shard));
	ck_assert_msg(send_as("main", buffer_span(&shard), &report, &err) == 0, "%s", err.text);
	return report;
}

/* Files are runs of chunks of the one xorb. */
struct run {
	uint32_t first;
	uint32_t end;
};

static struct chunk_id add_file(const struct run *runs, uint32_t count)
{
	struct chunk_entry chunks[4 * CHUNKS];
	struct shard_term terms[4];
	struct chunk_id ranges[4];
	size_t len = 0;
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t run = runs[i].end - runs[i].first;
		memcpy(&chunks[len], &entries[runs[i].first], run * sizeof(*chunks));
		len += run;
		terms[i] = (struct shard_term){.xorb = xorb,
			.first = runs[i].first,
			.end = runs[i].end,
			.bytes = run * CHUNK_BYTES};
		ranges[i] = chunk_hash_range(&entries[runs[i].first], run);
	}
	const struct chunk_id hash = chunk_hash_file(chunks, len);
	shard_write_file(&shard, &hash, terms, ranges, count);
	return hash;
}

static void end_shard(bool lists_xorb)
{
	shard_write_bookend(&shard);
	if (lists_xorb)
		shard_write_xorb(&shard, &xorb, entries, CHUNKS);
	shard_write_bookend(&shard);
}

static struct chunk_id write_shard(const struct run *runs, uint32_t count)
{
	buffer_reset(&shard);
	shard_write_header(&shard, 0);
	const struct chunk_id hash = add_file(runs, count);
	end_shard(true);
	return hash;
}

static bool find_file(const struct chunk_id *hash, struct xet_file *out)
{
	struct error err = {0};
	struct db *const db = store_reader_take(fixture.store, &err);
	const int found = xet_file_row_find(db, hash, out, &err);
	ck_assert_msg(found >= 0, "%s", err.text);
	store_reader_give(fixture.store, db);
	return found == 1;
}

static bool is_granted(const struct chunk_id *hash, int64_t bucket, const char *account)
{
	struct error err = {0};
	bool valid = false;
	const struct xet_grant grant = {
		.file = hash, .bucket = bucket, .account = span_text(account)};
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(xet_grant_row_valid(db, &grant, fixture.clock.now_ms, &valid, &err), 0);
	store_reader_give(fixture.store, db);
	return valid;
}

static size_t load(const struct xet_file *file, struct segment *out, size_t capacity)
{
	struct error err = {0};
	struct part_range range = {.offset = 0, .length = file->size};
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_msg(
		part_set_load(db, file->part_set, file->size, file->contents, &range, &err) == 0,
		"%s", err.text);
	store_reader_give(fixture.store, db);
	ck_assert_uint_le(range.segment_count, capacity);
	memcpy(out, range.segments, range.segment_count * sizeof(*out));
	free(range.segments);
	return range.segment_count;
}

static int64_t registered(void)
{
	return fixture_count(fixture.store,
		"SELECT (SELECT COUNT(*) FROM xet_files) + (SELECT COUNT(*) FROM xet_grants)");
}

START_TEST(a_file_is_registered_for_bucket_and_account)
{
	struct xet_file file;
	struct segment segments[4];
	const struct chunk_id hash = write_shard((const struct run[]){{0, CHUNKS}}, 1);
	const struct shard_report report = accept();
	ck_assert_uint_eq(report.files, 1);
	ck_assert_uint_eq(report.new_files, 1);
	ck_assert_uint_eq(report.xorbs, 1);
	ck_assert(find_file(&hash, &file));
	ck_assert_uint_eq(file.size, CHUNKS * CHUNK_BYTES);
	ck_assert_int_eq(file.expires_ms, fixture.clock.now_ms + XET_GRANT_MS);
	ck_assert_uint_eq(load(&file, segments, 4), 1);
	ck_assert_uint_eq(segments[0].count, CHUNKS);
	ck_assert_uint_eq(segments[0].bytes, CHUNKS * CHUNK_BYTES);
	ck_assert(is_granted(&hash, BUCKET, "main"));
	ck_assert(!is_granted(&hash, BUCKET, "else"));
	ck_assert(!is_granted(&hash, BUCKET + 1, "main"));
	ck_assert(!pack_store_is_held(store_packs(fixture.store), &segments[0].pack));
}
END_TEST

START_TEST(neighbours_become_one_segment)
{
	struct xet_file file;
	struct segment segments[4];
	const struct chunk_id hash =
		write_shard((const struct run[]){{2, 5}, {5, 9}, {10, 12}, {10, 11}}, 4);
	accept();
	ck_assert(find_file(&hash, &file));
	ck_assert_uint_eq(file.size, 10 * CHUNK_BYTES);
	ck_assert_uint_eq(load(&file, segments, 4), 3);
	ck_assert_uint_eq(segments[0].count, 7);
	ck_assert_uint_eq(segments[1].first - segments[0].first, 8);
	ck_assert_uint_eq(segments[2].count, 1);
}
END_TEST

START_TEST(a_known_file_stays_and_is_granted_anew)
{
	struct error err = {0};
	struct xet_file first;
	struct xet_file again;
	struct shard_report report;
	const struct chunk_id hash = write_shard((const struct run[]){{0, 4}}, 1);
	accept();
	ck_assert(find_file(&hash, &first));
	fixture.clock.now_ms += 1000;
	ck_assert_int_eq(send_as("else", buffer_span(&shard), &report, &err), 0);
	ck_assert_uint_eq(report.files, 1);
	ck_assert_uint_eq(report.new_files, 0);
	ck_assert(find_file(&hash, &again));
	ck_assert_int_eq(again.part_set, first.part_set);
	ck_assert_int_eq(again.expires_ms, first.expires_ms + 1000);
	ck_assert(is_granted(&hash, BUCKET, "main"));
	ck_assert(is_granted(&hash, BUCKET, "else"));
}
END_TEST

START_TEST(a_file_goes_when_its_time_is_over)
{
	const struct chunk_id hash = write_shard((const struct run[]){{0, 4}}, 1);
	struct xet_file file;
	accept();
	fixture.clock.now_ms += XET_GRANT_MS;
	fixture_sweep(fixture.store);
	ck_assert(!find_file(&hash, &file));
	ck_assert_int_eq(registered(), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM segments"), 0);
	accept(); /* the xorb is still promised */
	ck_assert(find_file(&hash, &file));
}
END_TEST

START_TEST(its_xorbs_are_promised_anew)
{
	struct error err = {0};
	struct xorb before;
	struct xorb after;
	write_shard((const struct run[]){{0, 4}}, 1);
	ck_assert_int_eq(xorb_find(fixture.store, &xorb, &before, &err), 0);
	fixture.clock.now_ms += 20 * DAY_MS;
	accept();
	ck_assert_int_eq(xorb_find(fixture.store, &xorb, &after, &err), 0);
	ck_assert_int_eq(after.promised_ms, fixture.clock.now_ms + 28 * DAY_MS);
	ck_assert_int_lt(before.promised_ms, after.promised_ms);
}
END_TEST

START_TEST(the_first_chunk_of_a_file_can_be_asked_for)
{
	struct chunk_place place;
	write_shard((const struct run[]){{7, 9}}, 1);
	accept();
	ck_assert(chunk_index_find(store_chunk_index(fixture.store), &entries[7].id, &place) ||
		chunk_index_sampled(&entries[7].id));
}
END_TEST

START_TEST(empty_files_count_nothing)
{
	const struct chunk_id zeros = {0};
	shard_write_header(&shard, 0);
	shard_write_file(&shard, &zeros, NULL, NULL, 0);
	end_shard(false);
	ck_assert_uint_eq(shard.len, 192);
	const struct shard_report report = accept();
	ck_assert_uint_eq(report.files, 0);
	shard.data[83] = 0; /* without the flag too */
	accept();
	ck_assert_int_eq(registered(), 0);
}
END_TEST

START_TEST(many_files_take_several_changes)
{
	size_t files = 0;
	shard_write_header(&shard, 0);
	for (uint32_t first = 0; first < CHUNKS; first++)
		for (uint32_t end = first + 1; end <= CHUNKS; end++, files++)
			add_file(&(const struct run){first, end}, 1);
	end_shard(true);
	const struct shard_report report = accept();
	ck_assert_uint_eq(report.files, files);
	ck_assert_uint_eq(report.new_files, files);
	ck_assert_int_eq(registered(), 2 * (int64_t)files);
}
END_TEST

/* One chunk many times, so that no two segments adjoin. */
static struct chunk_id add_scattered_file(uint32_t count)
{
	struct chunk_entry *const chunks = calloc(count, sizeof(*chunks));
	struct shard_term *const terms = calloc(count, sizeof(*terms));
	struct chunk_id *const ranges = calloc(count, sizeof(*ranges));
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t chunk = i % 2 * 2;
		chunks[i] = entries[chunk];
		terms[i] = (struct shard_term){
			.xorb = xorb, .first = chunk, .end = chunk + 1, .bytes = CHUNK_BYTES};
		ranges[i] = chunk_hash_range(&entries[chunk], 1);
	}
	const struct chunk_id hash = chunk_hash_file(chunks, count);
	shard_write_file(&shard, &hash, terms, ranges, count);
	free(chunks);
	free(terms);
	free(ranges);
	return hash;
}

START_TEST(a_file_in_many_places_takes_several_changes)
{
	enum { PLACES = 3000 };
	struct xet_file file;
	struct segment *const segments = calloc(PLACES, sizeof(*segments));
	shard_write_header(&shard, 0);
	add_file(&(const struct run){3, 7}, 1);
	const struct chunk_id hash = add_scattered_file(PLACES);
	const struct chunk_id again = add_scattered_file(PLACES);
	add_file(&(const struct run){4, 7}, 1);
	end_shard(true);
	ck_assert(chunk_id_equal(&hash, &again));
	const int64_t before = fixture_count(fixture.store, "SELECT MAX(id) FROM part_sets");
	const struct shard_report report = accept();
	ck_assert_uint_eq(report.files, 4);
	ck_assert_uint_eq(report.new_files, 3);
	ck_assert_int_eq(registered(), 6);
	ck_assert(find_file(&hash, &file));
	ck_assert_uint_eq(file.size, (uint64_t)PLACES * CHUNK_BYTES);
	ck_assert_int_eq(file.expires_ms, fixture.clock.now_ms + XET_GRANT_MS);
	ck_assert_uint_eq(load(&file, segments, PLACES), PLACES);
	for (uint32_t i = 0; i < PLACES; i++)
		ck_assert(segments[i].first % 20 == i % 2 * 2 && segments[i].count == 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT MAX(id) FROM part_sets"), before + 3);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM part_sets"), 3);
	free(segments);
}
END_TEST

static bool scratch_is_empty(void)
{
	char *const path = store_fixture_path(&fixture, "scratch");
	struct error err = {0};
	char **names = NULL;
	size_t count = 0;
	if (file_list(path, &names, &count, &err) == 0)
		file_names_free(names, count);
	free(path);
	return count == 0;
}

START_TEST(a_large_shard_goes_through_a_file)
{
	enum { FILES = 40000 };
	shard_write_header(&shard, 0);
	struct chunk_id hash = {0};
	for (int i = 0; i < FILES; i++) /* the same again and again: the first wins */
		hash = add_file(&(const struct run){3, 4}, 1);
	end_shard(true);
	ck_assert_uint_gt(shard.len, 4 * 1024 * 1024);
	const struct shard_report report = accept();
	ck_assert_uint_eq(report.files, FILES);
	ck_assert_uint_eq(report.new_files, 1);
	struct xet_file file;
	ck_assert(find_file(&hash, &file));
	for (int i = 0; i < 1000 && !scratch_is_empty(); i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	ck_assert(scratch_is_empty());
}
END_TEST

START_TEST(a_shard_over_the_limit_is_too_large)
{
	struct error err = {0};
	struct shard_report report;
	uint8_t *const piece = buffer_reserve(&shard, SHARD_MAX_BYTES + 1);
	memset(piece, 0, SHARD_MAX_BYTES + 1);
	ck_assert_int_eq(send_as("main", span_of(piece, SHARD_MAX_BYTES + 1), &report, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
}
END_TEST

/* Places in a shard of one file with one term {4, 8}, and one xorb. */
enum { AT_FILE = 48, AT_TERM = 96, AT_RANGE = 144, AT_XORB = 240, AT_CHUNK = 288 };

static const struct forgery {
	size_t at;
	uint64_t value;
	unsigned bytes;
} forgeries[] = {
	{0, 'x', 1},          /* garbage */
	{32, 1, 8},           /* another version */
	{AT_FILE, 1, 8},      /* file hash */
	{AT_FILE + 32, 0, 4}, /* no verification: the range is read as a file */
	{AT_FILE + 36, UINT32_MAX, 4},
	{AT_FILE + 36, 0, 4},
	{AT_TERM, 1, 8},                        /* a xorb that is not stored */
	{AT_TERM + 36, 4 * CHUNK_BYTES - 1, 4}, /* bytes */
	{AT_TERM + 40, 5, 4},                   /* first */
	{AT_TERM + 40, 8, 4},                   /* nothing at all */
	{AT_TERM + 40, 9, 4},
	{AT_TERM + 40, UINT32_MAX, 4},
	{AT_TERM + 44, CHUNKS + 1, 4}, /* end */
	{AT_TERM + 44, UINT32_MAX, 4},
	{AT_RANGE, 1, 8},              /* range hash */
	{AT_XORB, 1, 8},               /* lists a xorb that is not stored */
	{AT_XORB + 36, CHUNKS - 1, 4}, /* with fewer chunks: the last is read as a xorb */
	{AT_XORB + 36, UINT32_MAX, 4},
	{AT_XORB + 40, 1, 4},  /* another length */
	{AT_CHUNK, 1, 8},      /* another chunk */
	{AT_CHUNK + 32, 1, 4}, /* elsewhere */
	{AT_CHUNK + 36, CHUNK_BYTES + 1, 4},
};

START_TEST(what_is_not_true_registers_nothing)
{
	struct error err = {0};
	struct shard_report report;
	const struct forgery *const forgery = &forgeries[_i];
	write_shard((const struct run[]){{4, 8}}, 1);
	little_endian_put(shard.data + forgery->at, forgery->value, forgery->bytes);
	ck_assert_int_eq(send_as("main", buffer_span(&shard), &report, &err), -1);
	ck_assert_msg(err.kind == ERROR_INVALID, "%d: %s", err.kind, err.text);
	ck_assert_int_eq(registered(), 0);
	struct xorb found;
	ck_assert_int_eq(xorb_find(fixture.store, &xorb, &found, &err), 0);
	ck_assert(!pack_store_is_held(store_packs(fixture.store), &found.pack));
}
END_TEST

START_TEST(one_untrue_file_spoils_all)
{
	struct error err = {0};
	struct shard_report report;
	shard_write_header(&shard, 0);
	add_file(&(const struct run){0, 4}, 1);
	const size_t second = shard.len;
	add_file(&(const struct run){4, 8}, 1);
	end_shard(true);
	/* without ranges, where the other has them */
	little_endian_put(shard.data + second + 32, 0, 4);
	memmove(shard.data + second + 96, shard.data + second + 144, shard.len - second - 144);
	ck_assert_int_eq(send_as("main", span_of(shard.data, shard.len - 48), &report, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(registered(), 0);
}
END_TEST

START_TEST(a_file_of_terms_is_not_the_empty_one)
{
	struct error err = {0};
	struct shard_report report;
	write_shard((const struct run[]){{4, 8}}, 1);
	memset(shard.data + AT_FILE, 0, CHUNK_ID_BYTES);
	ck_assert_int_eq(send_as("main", buffer_span(&shard), &report, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(the_empty_body_is_no_shard)
{
	struct error err = {0};
	struct shard_report report;
	ck_assert_int_eq(send_as("main", span_of(NULL, 0), &report, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(an_upload_may_be_given_up)
{
	struct error err = {0};
	struct sender sender = {
		.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};
	uint8_t *const bytes = fixture_noise(3 * 1024 * 1024, 1);
	for (int i = 0; i < 4; i++) {
		struct shard_put *const put = open_put(&sender, "main");
		ck_assert_int_eq(
			write_all(put, &sender, span_of(bytes, (size_t)i * 1000000 + 10), &err), 0);
		call_free(shard_put_call(put));
	}
	free(bytes);
	for (int i = 0; i < 1000 && !scratch_is_empty(); i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	ck_assert(scratch_is_empty());
}
END_TEST

START_TEST(a_xorb_that_gc_works_on_is_asked_for_again)
{
	struct error err = {0};
	struct shard_report report;
	struct xorb found;
	struct pack_cache *const cache = store_packs(fixture.store)->cache;
	write_shard((const struct run[]){{0, CHUNKS}}, 1);
	ck_assert_int_eq(xorb_find(fixture.store, &xorb, &found, &err), 0);
	pack_cache_retire(cache, &found.pack, true);
	/* a promised xorb is never refused: see the next test */
	fixture.clock.now_ms += 28 * DAY_MS;
	ck_assert_int_eq(send_as("main", buffer_span(&shard), &report, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_int_eq(registered(), 0);
	pack_cache_retire(cache, &found.pack, false);
	accept();
}
END_TEST

START_TEST(a_promised_xorb_is_there_while_gc_works_on_its_pack)
{
	struct xorb found;
	struct error err = {0};
	struct pack_cache *const cache = store_packs(fixture.store)->cache;
	write_shard((const struct run[]){{0, CHUNKS}}, 1);
	ck_assert_int_eq(xorb_find(fixture.store, &xorb, &found, &err), 0);
	pack_cache_retire(cache, &found.pack, true);
	accept();
	pack_cache_retire(cache, &found.pack, false);
}
END_TEST

/* Flips one bit of the last chunk's record, in a file that the store has open. */
static void spoil_last_chunk(void)
{
	struct error err = {0};
	struct xorb place;
	struct pack_entry entry;
	char name[PACK_NAME_BYTES];
	char relative[PACK_NAME_BYTES + 10];
	struct pack_cache *const cache = store_packs(fixture.store)->cache;
	ck_assert_int_eq(xorb_find(fixture.store, &xorb, &place, &err), 0);
	struct pack *const pinned = pack_cache_pin(cache, &place.pack, false, &err);
	ck_assert_uint_eq(
		pack_cache_copy_entries(cache, pinned, place.first + CHUNKS - 1, &entry, 1), 1);
	pack_cache_unpin(cache, pinned);
	pack_format_name(&place.pack, PACK_FILE_PACK, name);
	snprintf(relative, sizeof(relative), "packs/%.2s/%s", name, name);
	char *const path = store_fixture_path(&fixture, relative);
	pack_fixture_flip(path, entry.offset + PACK_RECORD_HEADER_BYTES + CHUNK_BYTES / 2);
	free(path);
}

/* After a read has found the damage, no file is registered over the xorb. */
START_TEST(a_xorb_that_is_known_as_damaged_is_refused_until_it_was_sent_again)
{
	struct error err = {0};
	struct shard_report report;
	bool mended = false;
	store_fixture_reopen(&fixture); /* seals its pack */
	spoil_last_chunk();
	ck_assert(!xorb_sample_is_there(fixture.store, &sample));
	write_shard((const struct run[]){{4, 8}}, 1);
	ck_assert_int_eq(send_as("main", buffer_span(&shard), &report, &err), -1);
	ck_assert_msg(err.kind == ERROR_INVALID, "%s: %s", error_kind_name(err.kind), err.text);
	ck_assert_ptr_ne(strstr(err.text, "damaged"), NULL);
	ck_assert_int_eq(registered(), 0);
	for (int i = 0; i < 1000 && !mended; i++)
		if (xorb_sample_put(fixture.store, &sample, &mended, &err) != 0)
			ck_assert_msg(err.kind == ERROR_BUSY, "%s", err.text);
	ck_assert(mended);
	accept();
	ck_assert_int_eq(registered(), 2); /* the file and its grant */
}
END_TEST

START_TEST(a_full_disk_registers_nothing)
{
	struct error err = {0};
	struct shard_report report;
	static struct file_faults faults; /* outlives the store */
	tear_down();
	file_faults_init(&faults, FILE_FAULT_WRITE, INT_MAX, ENOSPC);
	set_up_with(&faults.ops);
	shard_write_header(&shard, 0);
	for (int i = 0; i < 20000; i++)
		add_file(&(const struct run){3, 4}, 1);
	end_shard(true);
	for (int left = 0; left < 3; left++) { /* the first piece, a later one, the last one */
		faults.countdown = left;
		ck_assert_int_eq(send_as("main", buffer_span(&shard), &report, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
		faults.countdown = INT_MAX;
	}
	ck_assert_int_eq(registered(), 0);
	accept();
}
END_TEST

static uint64_t told_free_bytes;

static int told_space(const struct file_ops *ops, const char *path, struct file_space *out)
{
	(void)ops, (void)path;
	*out = (struct file_space){.free = told_free_bytes, .all = UINT64_MAX};
	return 0;
}

/* A client whose xorb was refused because the disk is full still sends the shard that names it, and
 * shows that answer. */
START_TEST(a_xorb_that_had_no_room_is_told_as_that)
{
	struct error err = {0};
	struct shard_report report;
	static struct file_ops files; /* outlives the store */
	tear_down();
	files = *file_system();
	files.space = told_space;
	told_free_bytes = XORB_MAX_BYTES;
	set_up_with(&files);
	write_shard((const struct run[]){{4, 8}}, 1);
	little_endian_put(shard.data + AT_TERM, 1, 8);
	ck_assert_int_eq(send_as("main", buffer_span(&shard), &report, &err), -1);
	ck_assert_msg(err.kind == ERROR_INVALID, "%s", err.text);
	told_free_bytes--;
	ck_assert_int_eq(send_as("main", buffer_span(&shard), &report, &err), -1);
	ck_assert_msg(err.kind == ERROR_NO_SPACE, "%s", err.text);
	ck_assert_msg(
		strstr(err.text, "which is not stored here, and the disk has no room") != NULL,
		"%s", err.text);
	ck_assert_int_eq(registered(), 0);
	write_shard((const struct run[]){{4, 8}}, 1);
	accept(); /* a stored xorb needs no room */
}
END_TEST

/* Blocks the committer, a helper or the gate until it is released. */
struct blocker {
	struct change change; /* first */
	struct helper_job job;
	struct helper_lane lane;
	struct gate_visitor visitor;
	sem_t reached;
	sem_t may_go;
	sem_t ended;
};

static void blocker_init(struct blocker *blocker)
{
	*blocker = (struct blocker){.lane = {0}};
	sem_init(&blocker->reached, 0, 0);
	sem_init(&blocker->may_go, 0, 0);
	sem_init(&blocker->ended, 0, 0);
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		ck_assert_int_eq(errno, EINTR);
}

static void block_helper(struct helper_job *job)
{
	struct blocker *const blocker =
		(struct blocker *)((uint8_t *)job - offsetof(struct blocker, job));
	sem_post(&blocker->reached);
	wait_for(&blocker->may_go);
	sem_post(&blocker->ended);
}

static int block_committer(struct change *change, struct db *db, struct error *err)
{
	struct blocker *const blocker = (struct blocker *)change;
	(void)db, (void)err;
	sem_post(&blocker->reached);
	wait_for(&blocker->may_go);
	return 0;
}

static void committed(struct change *change)
{
	sem_post(&((struct blocker *)change)->ended);
}

static void take_place(struct gate_visitor *visitor)
{
	sem_post(&((struct blocker *)((uint8_t *)visitor - offsetof(struct blocker, visitor)))
			  ->reached);
}

static void let_go(struct blocker *blocker)
{
	sem_post(&blocker->may_go);
	wait_for(&blocker->ended);
}

enum { PLACES_AT_GATE = 4, HELPERS = 4, LARGE_FILES = 8000 };

/* A large shard behind a full gate. */
struct queue {
	struct gate *gate;
	struct blocker before[PLACES_AT_GATE];
	struct sender sender;
	struct shard_put *put;
};

static struct shard_put *send_large(struct sender *sender)
{
	struct error err = {0};
	*sender = (struct sender){
		.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};
	struct shard_put *const put = open_put(sender, "main");
	ck_assert_uint_gt(shard.len, 1024 * 1024);
	ck_assert_int_eq(write_all(put, sender, buffer_span(&shard), &err), 0);
	call_start(shard_put_call(put), is_done, sender);
	return put;
}

static bool somebody_waits(struct gate *gate)
{
	lock_enter(&gate->lock);
	const bool waits = gate->first != NULL;
	lock_leave(&gate->lock);
	return waits;
}

static bool somebody_is_inside(struct gate *gate)
{
	lock_enter(&gate->lock);
	const bool is_inside = gate->inside > 0;
	lock_leave(&gate->lock);
	return is_inside;
}

static void write_large_shard(void)
{
	buffer_reset(&shard);
	shard_write_header(&shard, 0);
	for (uint32_t i = 0; i < LARGE_FILES; i++) /* the first few hundred are not alike */
		add_file(&(const struct run){i % CHUNKS,
				 i % CHUNKS + 1 + i / CHUNKS % (CHUNKS - i % CHUNKS)},
			1);
	end_shard(true);
}

static void queue_up(struct queue *queue)
{
	queue->gate = &store_parts(fixture.store)->shard_turns->gate;
	ck_assert_uint_eq(queue->gate->limit, PLACES_AT_GATE);
	for (int i = 0; i < PLACES_AT_GATE; i++) {
		blocker_init(&queue->before[i]);
		queue->before[i].visitor.pass = take_place;
		gate_enter(queue->gate, &queue->before[i].visitor);
		wait_for(&queue->before[i].reached);
	}
	write_large_shard();
	queue->put = send_large(&queue->sender);
	while (!somebody_waits(queue->gate))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void expect_busy(struct shard_put *put, struct sender *sender, const char *text)
{
	struct error err = {0};
	ck_assert_int_eq(outcome(put, sender, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	ck_assert_ptr_nonnull(strstr(err.text, text));
	call_free(shard_put_call(put));
}

static void expect_stopped(struct shard_put *put, struct sender *sender)
{
	expect_busy(put, sender, "stopping");
}

START_TEST(who_waits_at_the_gate_leaves_when_the_store_stops)
{
	struct queue queue;
	queue_up(&queue);
	shard_put_quiesce(fixture.store);
	expect_stopped(queue.put, &queue.sender);
	queue.put = send_large(&queue.sender); /* a later one is turned away too */
	expect_stopped(queue.put, &queue.sender);
	for (int i = 0; i < PLACES_AT_GATE; i++)
		gate_leave(queue.gate);
	queue.put = send_large(&queue.sender);
	expect_stopped(queue.put, &queue.sender);
	ck_assert_int_eq(registered(), 0);
	const struct chunk_id hash = write_shard((const struct run[]){{0, 4}}, 1);
	struct xet_file file;
	accept(); /* a small one */
	ck_assert(find_file(&hash, &file));
}
END_TEST

START_TEST(who_waits_at_the_gate_may_be_given_up)
{
	struct queue queue;
	struct shard_progress progress;
	queue_up(&queue);
	shard_put_progress(queue.put, &progress);
	ck_assert_uint_eq(progress.total, shard.len);
	ck_assert_uint_eq(progress.verified, 0);
	ck_assert(!progress.is_checked);
	shard_put_give_up(queue.put);
	ck_assert(!somebody_waits(queue.gate));
	expect_busy(queue.put, &queue.sender, "");
	for (int i = 0; i < PLACES_AT_GATE; i++)
		gate_leave(queue.gate);
	accept();
}
END_TEST

START_TEST(a_check_ends_at_its_next_slice_when_the_store_stops)
{
	struct queue queue;
	struct blocker helpers[HELPERS];
	queue_up(&queue);
	for (int i = 0; i < HELPERS; i++) {
		blocker_init(&helpers[i]);
		helpers[i].job.run = block_helper;
		helpers_submit(store_helpers(fixture.store), &helpers[i].lane, &helpers[i].job);
	}
	for (int i = 0; i < HELPERS; i++)
		wait_for(&helpers[i].reached);
	gate_leave(queue.gate); /* its first slice waits for the helpers' jobs */
	ck_assert(!somebody_waits(queue.gate));
	shard_put_quiesce(fixture.store);
	for (int i = 0; i < HELPERS; i++)
		let_go(&helpers[i]);
	expect_stopped(queue.put, &queue.sender);
	ck_assert_int_eq(registered(), 0);
	for (int i = 1; i < PLACES_AT_GATE; i++)
		gate_leave(queue.gate); /* the shard has left on its own */
}
END_TEST

START_TEST(registering_ends_at_the_next_change_when_the_store_stops)
{
	struct blocker before;
	struct sender sender;
	blocker_init(&before);
	before.change.apply = block_committer;
	before.change.done = committed;
	write_large_shard();
	committer_submit(store_committer(fixture.store), &before.change);
	wait_for(&before.reached);
	struct shard_put *const put = send_large(&sender);
	while (!somebody_is_inside(&store_parts(fixture.store)->shard_turns->gate) ||
		!scratch_is_empty()) /* until the check has ended */
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	shard_put_quiesce(fixture.store);
	let_go(&before);
	expect_stopped(put, &sender);
	ck_assert_int_gt(registered(), 0);
	const int64_t some = registered();
	store_fixture_reopen(&fixture);
	accept(); /* again, to the next one */
	ck_assert_int_gt(registered(), some);
}
END_TEST

START_TEST(registered_files_survive_a_restart)
{
	struct xet_file file;
	const struct chunk_id hash = write_shard((const struct run[]){{0, CHUNKS}}, 1);
	accept();
	store_fixture_reopen(&fixture);
	ck_assert(find_file(&hash, &file));
	ck_assert(is_granted(&hash, BUCKET, "main"));
	const struct shard_report report = accept();
	ck_assert_uint_eq(report.new_files, 0);
}
END_TEST

/* The records were not read since the start. Another upload of the same xorb mends them. */
START_TEST(a_xorb_that_is_damaged_must_be_sent_again)
{
	struct error err = {0};
	struct shard_report report;
	bool inserted = false;
	off_t offset;
	write_shard((const struct run[]){{0, CHUNKS}}, 1);
	char *path = damage_fixture_find_xorb(&fixture, &xorb, &offset);
	store_fixture_stop(&fixture);
	damage_fixture_flip(path, offset);
	free(path);
	store_fixture_start(&fixture);
	ck_assert_int_eq(send_as("main", buffer_span(&shard), &report, &err), -1);
	ck_assert_msg(
		err.kind == ERROR_INVALID && strstr(err.text, "damaged. Send the same files again") != NULL,
		"%s", err.text);
	ck_assert_int_eq(registered(), 0);
	ck_assert_msg(xorb_sample_put(fixture.store, &sample, &inserted, &err) == 0 && inserted,
		"%s", err.text);
	ck_assert_uint_eq(accept().new_files, 1);
}
END_TEST

Suite *test_shard_put_suite(void)
{
	Suite *const suite = suite_create("shard_put");
	TCase *const right = tcase_create("right");
	tcase_add_checked_fixture(right, set_up, tear_down);
	tcase_set_timeout(right, 60);
	tcase_add_test(right, a_file_is_registered_for_bucket_and_account);
	tcase_add_test(right, neighbours_become_one_segment);
	tcase_add_test(right, a_known_file_stays_and_is_granted_anew);
	tcase_add_test(right, a_file_goes_when_its_time_is_over);
	tcase_add_test(right, its_xorbs_are_promised_anew);
	tcase_add_test(right, the_first_chunk_of_a_file_can_be_asked_for);
	tcase_add_test(right, empty_files_count_nothing);
	tcase_add_test(right, many_files_take_several_changes);
	tcase_add_test(right, a_file_in_many_places_takes_several_changes);
	tcase_add_test(right, a_large_shard_goes_through_a_file);
	tcase_add_test(right, registered_files_survive_a_restart);
	suite_add_tcase(suite, right);
	TCase *const wrong = tcase_create("wrong");
	tcase_add_checked_fixture(wrong, set_up, tear_down);
	tcase_set_timeout(wrong, 60);
	tcase_add_loop_test(wrong, what_is_not_true_registers_nothing, 0,
		sizeof(forgeries) / sizeof(forgeries[0]));
	tcase_add_test(wrong, one_untrue_file_spoils_all);
	tcase_add_test(wrong, a_xorb_that_is_damaged_must_be_sent_again);
	tcase_add_test(wrong, a_file_of_terms_is_not_the_empty_one);
	tcase_add_test(wrong, the_empty_body_is_no_shard);
	tcase_add_test(wrong, a_shard_over_the_limit_is_too_large);
	tcase_add_test(wrong, an_upload_may_be_given_up);
	tcase_add_test(wrong, a_xorb_that_gc_works_on_is_asked_for_again);
	tcase_add_test(wrong, a_promised_xorb_is_there_while_gc_works_on_its_pack);
	tcase_add_test(wrong, a_xorb_that_is_known_as_damaged_is_refused_until_it_was_sent_again);
	tcase_add_test(wrong, a_full_disk_registers_nothing);
	tcase_add_test(wrong, a_xorb_that_had_no_room_is_told_as_that);
	suite_add_tcase(suite, wrong);
	TCase *const stopping = tcase_create("stopping");
	tcase_add_checked_fixture(stopping, set_up, tear_down);
	tcase_set_timeout(stopping, 60);
	tcase_add_test(stopping, who_waits_at_the_gate_leaves_when_the_store_stops);
	tcase_add_test(stopping, who_waits_at_the_gate_may_be_given_up);
	tcase_add_test(stopping, a_check_ends_at_its_next_slice_when_the_store_stops);
	tcase_add_test(stopping, registering_ends_at_the_next_change_when_the_store_stops);
	suite_add_tcase(suite, stopping);
	return suite;
}
