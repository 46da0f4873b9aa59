/* Stored bytes are damaged on the disk, and a round of scrub finds and heals what it can. */
#include "storage/scrub/scrub.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/core/store.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/scrub/scrub_pack.h"
#include "storage/upkeep/gc.h"
#include "tests/unit/storage/damage_fixture.h"
#include "tests/unit/unit.h"

Suite *test_scrub_suite(void);

/* A pack of the fixture has up to 1 MiB. FURTHER and FURTHEST are in other chunks of the first. */
enum { SMALL = 90000, LARGE = 3000000, FURTHER = 300000, FURTHEST = 600000, MIB = 1024 * 1024 };

static struct store_fixture fixture;
static struct metrics *metrics;
static uint8_t *noise;

/* What the disk has is damaged, and the page cache does not know it yet. */
static _Atomic bool disk_is_bad;

static ssize_t read_past_cache_badly(
	const struct file_ops *ops, int fd, const struct iovec *parts, int count, off_t offset)
{
	(void)ops;
	if (disk_is_bad && (fcntl(fd, F_GETFL) & O_DIRECT) != 0) {
		errno = EIO;
		return -1;
	}
	return file_system()->preadv(file_system(), fd, parts, count, offset);
}

static void set_up(void)
{
	struct error err = {0};
	metrics = metrics_new();
	fixture = (struct store_fixture){.metrics = metrics};
	store_fixture_open(&fixture);
	noise = fixture_noise(3 * LARGE, 11);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "box", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	metrics_free(metrics);
	free(noise);
}

static void put(const char *key, struct span bytes)
{
	struct error err = {0};
	ck_assert_msg(fixture_put(fixture.store, "box", key, bytes, &err) == 0, "%s", err.text);
}

static bool holds(const char *key, struct span bytes)
{
	return fixture_holds(&fixture, "box", key, bytes);
}

static struct scrub *scrub_of_store(void)
{
	return store_parts(fixture.store)->scrub;
}

static struct scrub_request scrub(void)
{
	struct error err = {0};
	struct scrub_request request = {.resumes = false};
	ck_assert_msg(scrub_run(scrub_of_store(), &request, &err) == 0, "%s", err.text);
	return request;
}

static struct scrub_state state_now(void)
{
	struct scrub_status status;
	scrub_look(scrub_of_store(), &status);
	return status.state;
}

static uint64_t packs(void)
{
	return (uint64_t)fixture_count(fixture.store, "SELECT count(*) FROM packs WHERE state = 1");
}

static size_t known_damage(void)
{
	return pack_damage_count(store_packs(fixture.store)->damage);
}

/* Flips a byte below the running store. */
static void flip(const char *key, off_t further)
{
	off_t offset;
	char *path = damage_fixture_find(&fixture, "box", key, 0, &offset);
	damage_fixture_flip(path, offset + further);
	free(path);
}

/* From here on uploads find nothing that is stored. */
static void forget_chunks(void)
{
	const struct error why = {.kind = ERROR_IO, .text = "The test says so."};
	chunk_index_give_up(store_chunk_index(fixture.store), &why);
}

static void rest(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

START_TEST(a_sound_store_is_read_to_its_end)
{
	put("a", span_of(noise, LARGE));
	put("b", span_of(noise + LARGE, LARGE));
	const struct scrub_request got = scrub();
	ck_assert_uint_eq(got.report.packs, packs());
	ck_assert_uint_ge(got.report.bytes, 2 * LARGE);
	ck_assert_uint_lt(got.report.bytes, 2 * LARGE + 20000);
	ck_assert(got.report.chunks_damaged == 0 && got.report.packs_failed == 0);
	ck_assert_uint_eq(got.damaged_now, 0);
	const struct scrub_state state = state_now();
	ck_assert(state.began_ms == 0 && state.last_ended_ms > 0);
	ck_assert_uint_eq(state.last.bytes, got.report.bytes);
	ck_assert_int_eq(metrics_get(metrics, METRIC_SCRUB_ENDED), state.last_ended_ms / 1000);
	ck_assert_int_eq(metrics_get(metrics, METRIC_SCRUB_BYTES), (int64_t)got.report.bytes);
}
END_TEST

START_TEST(damage_that_nobody_read_is_found_and_remembered)
{
	const struct span bytes = span_of(noise, LARGE);
	put("a", bytes);
	flip("a", 0);
	flip("a", FURTHER);
	const struct scrub_request got = scrub();
	ck_assert_uint_eq(got.report.chunks_damaged, 2);
	ck_assert_uint_eq(got.report.chunks_healed, 0);
	ck_assert_uint_eq(got.damaged_now, 2);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CHUNKS_DAMAGED_NOW), 2);
	damage_fixture_await(&fixture, 2);
	store_fixture_reopen(&fixture);
	ck_assert_uint_eq(known_damage(), 2);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CHUNKS_DAMAGED_NOW), 2);
	put("again", bytes);
	damage_fixture_await(&fixture, 0);
	ck_assert(holds("a", bytes));
	ck_assert_uint_eq(scrub().report.chunks_damaged, 0);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CHUNKS_DAMAGED_NOW), 0);
}
END_TEST

START_TEST(a_growing_pack_waits_until_it_is_sealed)
{
	const struct span bytes = span_of(noise, SMALL);
	put("a", bytes);
	flip("a", 0);
	ck_assert_uint_eq(scrub().report.packs, 0);
	ck_assert_uint_eq(known_damage(), 0);
	store_fixture_reopen(&fixture); /* seals it */
	ck_assert_uint_eq(scrub().report.chunks_damaged, 1);
}
END_TEST

START_TEST(what_is_right_again_is_forgotten)
{
	const struct span bytes = span_of(noise, LARGE);
	put("a", bytes);
	flip("a", 0);
	ck_assert(!holds("a", bytes));
	damage_fixture_await(&fixture, 1);
	flip("a", 0);
	ck_assert_uint_eq(scrub().report.chunks_damaged, 0);
	damage_fixture_await(&fixture, 0);
	ck_assert(holds("a", bytes));
}
END_TEST

/* Where the pack of the key begins to describe itself: behind its header, or in its last bytes. */
static off_t description_of(const char *key, bool is_at_end, char **out_path)
{
	off_t ignored;
	uint64_t size;
	struct error err = {0};
	*out_path = damage_fixture_find(&fixture, "box", key, 0, &ignored);
	ck_assert_int_eq(file_size(*out_path, &size, &err), 0);
	return is_at_end ? (off_t)size - 60 : 20;
}

static void remove_indexes(void)
{
	char command[600];
	snprintf(command, sizeof(command), "find %s/packs -name '*.index' -delete", fixture.folder);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(a_pack_that_describes_itself_wrongly_is_written_again)
{
	const struct span bytes = span_of(noise, LARGE);
	char *path;
	put("a", bytes);
	store_fixture_reopen(&fixture); /* so that all indexes lie beside their packs */
	const off_t at = description_of("a", _i == 1, &path);
	damage_fixture_flip(path, at);
	free(path);
	const struct scrub_request got = scrub();
	ck_assert_uint_eq(got.report.packs_mended, 1);
	ck_assert(got.report.chunks_damaged == 0 && got.report.packs_failed == 0);
	ck_assert_uint_eq(scrub().report.packs_mended, 0);
	store_fixture_stop(&fixture);
	remove_indexes();
	store_fixture_start(&fixture);
	ck_assert(holds("a", bytes));
}
END_TEST

static bool some_pack_is_referred(void)
{
	struct pack_cache *cache = store_packs(fixture.store)->cache;
	struct pack_id *list;
	bool some = false;
	const size_t count = pack_cache_list(cache, &list);
	for (size_t i = 0; i < count; i++)
		some |= pack_cache_is_referred(cache, &list[i]);
	free(list);
	return some;
}

START_TEST(a_second_copy_heals)
{
	const struct span bytes = span_of(noise, LARGE);
	put("old", bytes);
	forget_chunks();
	put("new", bytes);
	flip("old", 0);
	flip("old", FURTHER);
	flip("new", FURTHEST);
	const struct scrub_request got = scrub();
	ck_assert_uint_eq(got.report.chunks_damaged, 3);
	ck_assert_uint_eq(got.report.chunks_healed, 3);
	ck_assert_uint_eq(got.damaged_now, 0);
	ck_assert(holds("old", bytes) && holds("new", bytes));
	damage_fixture_await(&fixture, 0);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CHUNKS_MENDED), 3);
	ck_assert(!some_pack_is_referred());
	store_fixture_reopen(&fixture);
	ck_assert(holds("old", bytes) && holds("new", bytes));
	ck_assert_uint_eq(scrub().report.chunks_damaged, 0);
}
END_TEST

/* Other bytes at the place of the copy's first chunk, with a checksum that fits them. */
static void forge(const char *key)
{
	struct error err = {0};
	struct buffer bytes;
	uint8_t record[PACK_RECORD_HEADER_BYTES + CHUNK_MAX_BYTES];
	off_t offset;
	char *pack = damage_fixture_find(&fixture, "box", key, 0, &offset);
	char *index_path = memory_new(strlen(pack) + 2);
	snprintf(index_path, strlen(pack) + 2, "%.*sindex", (int)(strlen(pack) - 4), pack);
	damage_fixture_flip(pack, offset);
	buffer_init(&bytes, MIB);
	ck_assert_int_eq(file_read_all(index_path, &bytes, &err), 0);
	struct pack_index *index = pack_index_decode(buffer_span(&bytes), &err);
	ck_assert_msg(index != NULL, "%s", err.text);
	FILE *file = fopen(pack, "rb");
	ck_assert(file != NULL && fseek(file, (long)offset, SEEK_SET) == 0);
	ck_assert_uint_gt(fread(record, 1, sizeof record, file), index->entries[0].stored);
	fclose(file);
	index->entries[0].checksum =
		xxh3_64(span_of(record + PACK_RECORD_HEADER_BYTES, index->entries[0].stored));
	buffer_reset(&bytes);
	pack_index_encode(index, &bytes);
	file = fopen(index_path, "wb");
	ck_assert(file != NULL && fwrite(bytes.data, 1, bytes.len, file) == bytes.len &&
		fclose(file) == 0);
	pack_index_free(index);
	buffer_release(&bytes);
	free(index_path);
	free(pack);
}

/* A checksum can be right by mistake; the id cannot. */
START_TEST(a_copy_with_another_id_heals_nothing)
{
	put("old", span_of(noise, LARGE));
	forget_chunks();
	put("new", span_of(noise, LARGE));
	store_fixture_reopen(&fixture);
	forge("new");
	store_fixture_reopen(&fixture);
	flip("old", 0);
	const struct scrub_request got = scrub();
	ck_assert_uint_eq(got.report.chunks_damaged, 1);
	ck_assert_uint_eq(got.report.chunks_healed, 0);
	ck_assert_uint_eq(got.damaged_now, 1);
}
END_TEST

/* Both copies of one chunk are damaged: it stays so, and the others are healed. */
START_TEST(a_damaged_copy_heals_nothing)
{
	const struct span bytes = span_of(noise, LARGE);
	put("old", bytes);
	forget_chunks();
	put("new", bytes);
	flip("old", 0);
	flip("old", FURTHER);
	flip("new", 0);
	const struct scrub_request got = scrub();
	ck_assert_uint_eq(got.report.chunks_damaged, 3);
	ck_assert_uint_eq(got.report.chunks_healed, 1);
	ck_assert_uint_eq(got.damaged_now, 2);
	ck_assert(!holds("old", bytes) && !holds("new", bytes));
}
END_TEST

/* A reader met it in the open pack, which is sealed so that it can be written again. */
START_TEST(a_growing_pack_is_sealed_and_healed)
{
	const struct span bytes = span_of(noise, SMALL);
	put("large", span_of(noise, LARGE));
	forget_chunks();
	put("small", bytes);
	flip("small", 0);
	ck_assert(!holds("small", bytes));
	const struct scrub_request got = scrub();
	ck_assert_uint_eq(got.report.chunks_healed, 1);
	ck_assert_uint_eq(got.damaged_now, 0);
	ck_assert(holds("small", bytes));
}
END_TEST

START_TEST(a_pack_without_its_file_is_damaged_as_a_whole)
{
	const struct span bytes = span_of(noise, LARGE);
	off_t offset;
	put("a", bytes);
	store_fixture_reopen(&fixture);
	char *path = damage_fixture_find(&fixture, "box", "a", 0, &offset);
	ck_assert_int_eq(unlink(path), 0);
	free(path);
	const struct scrub_request got = scrub();
	const int64_t chunks =
		fixture_count(fixture.store, "SELECT chunks FROM packs ORDER BY number LIMIT 1");
	ck_assert_int_gt(chunks, 5);
	ck_assert_uint_eq(got.report.chunks_damaged, (uint64_t)chunks);
	put("again", bytes);
	damage_fixture_await(&fixture, 0);
	ck_assert(holds("a", bytes));
}
END_TEST

/* One sealed pack, whose file is a restart old. */
static void put_two_in_a_pack(void)
{
	put("first", span_of(noise, SMALL));
	put("second", span_of(noise + SMALL, SMALL));
	store_fixture_reopen(&fixture);
}

static struct gc_report drop(const char *key)
{
	struct error err = {0};
	struct gc_request collect = {.live_percent = 100};
	ck_assert_int_eq(fixture_delete(fixture.store, "box", key, NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &collect, &err) == 0, "%s", err.text);
	return collect.report;
}

/* gc has dropped the damaged chunk: what was noted of it is over. */
START_TEST(damage_of_dropped_chunks_is_forgotten)
{
	put_two_in_a_pack();
	flip("second", 0);
	ck_assert_uint_eq(scrub().damaged_now, 1);
	const struct gc_report report = drop("second");
	ck_assert(report.packs_compacted == 1 && report.packs_waiting == 0);
	ck_assert_uint_eq(known_damage(), 1);
	ck_assert_uint_eq(scrub().damaged_now, 0);
	damage_fixture_await(&fixture, 0);
}
END_TEST

/* gc takes the damaged chunk out of the pack while scrub waits for its turn at the disk. */
static bool drop_meanwhile(void *owner, size_t bytes)
{
	bool *is_dropped = owner;
	ck_assert_uint_gt(bytes, 0);
	if (!*is_dropped) {
		const struct gc_report report = drop("second");
		ck_assert(report.packs_compacted == 1 && report.packs_waiting == 0);
	}
	*is_dropped = true;
	return true;
}

static void pass_nothing(void *owner, uint32_t chunk)
{
	(void)owner, (void)chunk;
}

START_TEST(a_pack_that_changed_is_looked_at_again)
{
	struct error err = {0};
	struct scrub_report report = {0};
	bool is_dropped = false;
	struct pack_id *list;
	put_two_in_a_pack();
	const struct scrub_work work = {.store = fixture.store,
		.pace = {.spend = drop_meanwhile, .owner = &is_dropped},
		.passed = pass_nothing,
		.report = &report};
	flip("second", 0);
	ck_assert_uint_eq(pack_cache_list(store_packs(fixture.store)->cache, &list), 1);
	ck_assert_int_eq(scrub_pack_scan(&work, &list[0], 0, &err), 0);
	ck_assert_int_eq(scrub_pack_scan(&work, &list[0], 0, &err), 1);
	ck_assert_uint_eq(report.chunks_damaged, 0);
	ck_assert_uint_eq(known_damage(), 0);
	free(list);
}
END_TEST

/* A round that runs beside the test. */
struct round {
	struct call *call;
	atomic_bool is_done;
};

static void round_is_done(void *round)
{
	atomic_store(&((struct round *)round)->is_done, true);
}

static void round_start(struct round *round, uint64_t bytes_per_second)
{
	const struct scrub_request request = {.bytes_per_second = bytes_per_second};
	round->call = scrub_call(scrub_of_store(), &request);
	atomic_store(&round->is_done, false);
	call_start(round->call, round_is_done, round);
}

static void await_bytes(uint64_t bytes)
{
	for (int i = 0; i < 3000 && state_now().report.bytes < bytes; i++)
		rest(10);
	ck_assert_uint_ge(state_now().report.bytes, bytes);
}

static int round_end(struct round *round, struct scrub_request *out, struct error *err)
{
	for (int i = 0; i < 3000 && !atomic_load(&round->is_done); i++)
		rest(10);
	ck_assert(atomic_load(&round->is_done));
	const int result = call_outcome(round->call, err);
	*out = *scrub_result(round->call);
	call_free(round->call);
	return result;
}

/* gc deletes and compacts packs while scrub is in the middle of them, and neither waits. */
START_TEST(gc_works_while_scrub_reads)
{
	struct error err = {0};
	struct round round;
	struct scrub_request got;
	struct gc_request collect = {.live_percent = 100};
	const struct span whole = span_of(noise, 3 * LARGE);
	put("whole", whole);
	put("part", span_of(noise, LARGE)); /* shares the chunks at the front */
	round_start(&round, 4 * MIB);
	await_bytes(MIB);
	ck_assert_int_eq(fixture_delete(fixture.store, "box", "whole", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &collect, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(collect.report.packs_waiting, 0);
	ck_assert_uint_gt(collect.report.packs_deleted + collect.report.packs_compacted, 4);
	ck_assert_msg(round_end(&round, &got, &err) == 0, "%s", err.text);
	ck_assert(got.report.chunks_damaged == 0 && got.report.packs_failed == 0);
	ck_assert_uint_lt(got.report.bytes, 2 * 3 * LARGE);
	ck_assert(holds("part", span_of(noise, LARGE)));
}
END_TEST

START_TEST(a_round_goes_on_after_a_restart)
{
	struct error err = {0};
	struct round round;
	struct scrub_request got;
	for (int i = 0; i < 3; i++) {
		char key[2] = {(char)('a' + i), '\0'};
		put(key, span_of(noise + (size_t)i * LARGE, LARGE));
	}
	const uint64_t whole = scrub().report.bytes;
	round_start(&round, 2 * MIB);
	await_bytes(4 * MIB + MIB / 2);
	store_fixture_stop(&fixture);
	ck_assert_int_eq(round_end(&round, &got, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	store_fixture_start(&fixture);
	const struct scrub_state state = state_now();
	ck_assert(state.began_ms > 0 && state.pack > 1);
	ck_assert_uint_gt(state.report.packs, 2);
	ck_assert_uint_ge(state.report.bytes, 4 * MIB);
	const int64_t before = metrics_get(metrics, METRIC_SCRUB_BYTES);
	struct scrub_request rest_of_it = {.resumes = true};
	ck_assert_msg(scrub_run(scrub_of_store(), &rest_of_it, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(rest_of_it.report.bytes, whole);
	ck_assert_uint_eq(rest_of_it.report.packs, packs());
	const int64_t read_again = metrics_get(metrics, METRIC_SCRUB_BYTES) - before;
	ck_assert_int_eq(read_again, (int64_t)(whole - state.report.bytes));
	ck_assert_uint_eq(scrub().report.bytes, whole);
}
END_TEST

START_TEST(a_round_goes_on_inside_a_pack)
{
	struct error err = {0};
	struct scrub_request request = {.resumes = true};
	const struct scrub_state state = {.began_ms = 1, .pack = 1, .chunk = 1};
	put("a", span_of(noise, LARGE));
	const uint64_t whole = scrub().report.bytes;
	char *path = store_fixture_path(&fixture, "scrub");
	flip("a", 0);
	flip("a", FURTHER);
	store_fixture_stop(&fixture);
	ck_assert_int_eq(scrub_state_write(file_system(), path, &state, &err), 0);
	free(path);
	store_fixture_start(&fixture);
	ck_assert_msg(scrub_run(scrub_of_store(), &request, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(request.report.chunks_damaged, 1);
	ck_assert_uint_lt(request.report.bytes, whole);
	ck_assert_uint_gt(request.report.bytes, whole - FURTHER);
}
END_TEST

START_TEST(a_damaged_state_begins_a_new_round)
{
	put("a", span_of(noise, LARGE));
	(void)scrub();
	char *path = store_fixture_path(&fixture, "scrub");
	store_fixture_stop(&fixture);
	damage_fixture_flip(path, 0);
	free(path);
	store_fixture_start(&fixture);
	ck_assert_int_eq(state_now().last_ended_ms, 0);
	ck_assert_uint_eq(scrub().report.packs, packs());
}
END_TEST

/* With a period scrub works by itself, and rests until the next round is due. */
START_TEST(rounds_come_by_themselves)
{
	const struct scrub_options options = {
		.period_ms = 24 * 60 * 60 * 1000, .bytes_per_second = 64 * MIB};
	struct scrub_status status;
	put("a", span_of(noise, 20000));
	store_fixture_reopen(&fixture);
	flip("a", 0);
	struct scrub *own = scrub_start(fixture.store, &options);
	do {
		rest(10);
		scrub_look(own, &status);
	} while (status.state.last_ended_ms == 0);
	ck_assert_uint_eq(status.state.last.chunks_damaged, 1);
	ck_assert_int_eq(status.next_ms, status.state.last_began_ms + options.period_ms);
	ck_assert_uint_gt(status.store_bytes, 20000);
	ck_assert_int_eq(status.state.began_ms, 0);
	scrub_stop(own);
	own = scrub_start(fixture.store, &options);
	rest(50);
	scrub_look(own, &status);
	ck_assert_int_eq(status.state.began_ms, 0);
	scrub_stop(own);
}
END_TEST

/* A thread that heals within 20 ms what changes, and begins no round. */
static struct scrub *start_healer(void)
{
	const struct scrub_options options = {.period_ms = 24 * 60 * 60 * 1000,
		.first_ms = 24 * 60 * 60 * 1000,
		.bytes_per_second = 64 * MIB,
		.watch_ms = 20};
	return scrub_start(fixture.store, &options);
}

static void await_known_damage(size_t count)
{
	while (known_damage() != count)
		rest(10);
}

/* Each read meets another copy that is damaged, some time after the one before was healed. */
START_TEST(damage_that_reads_find_is_healed_soon)
{
	static const char *const keys[] = {"a", "b", "c"};
	const struct span bytes = span_of(noise, LARGE);
	for (size_t i = 0; i < 3; i++) {
		put(keys[i], bytes);
		forget_chunks();
	}
	struct scrub *own = start_healer();
	for (size_t i = 0; i < 3; i++) {
		flip(keys[i], 0);
		ck_assert(!holds(keys[i], bytes));
		await_known_damage(0);
		ck_assert(holds(keys[i], bytes));
	}
	scrub_stop(own);
}
END_TEST

/* All copies of a chunk are damaged. The upload mends the one that it finds, and the other from
 * what it stored. */
START_TEST(one_upload_heals_all_copies)
{
	const struct span bytes = span_of(noise, LARGE);
	put("a", bytes);
	forget_chunks();
	put("b", bytes);
	store_fixture_reopen(&fixture);
	flip("a", 0);
	flip("b", 0);
	struct scrub *own = start_healer();
	ck_assert(!holds("a", bytes) && !holds("b", bytes));
	rest(200);
	ck_assert_uint_eq(known_damage(), 2);
	put("again", bytes);
	await_known_damage(0);
	ck_assert(holds("a", bytes) && holds("b", bytes));
	scrub_stop(own);
}
END_TEST

/* A slow round of scrub's own gives way to a request, and a stop ends both. */
START_TEST(a_request_does_not_wait_for_a_slow_round)
{
	const struct scrub_options options = {
		.period_ms = (int64_t)28 * 24 * 60 * 60 * 1000, .bytes_per_second = 0};
	struct error err = {0};
	struct scrub_request request = {.resumes = true};
	struct scrub_status status;
	put("a", span_of(noise, LARGE));
	struct scrub *own = scrub_start(fixture.store, &options);
	do {
		rest(10);
		scrub_look(own, &status);
	} while (status.state.began_ms == 0);
	ck_assert_msg(scrub_run(own, &request, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(request.report.packs, packs());
	scrub_stop(own);
}
END_TEST

/* The disk cannot give the records any more, but the page cache has them. */
START_TEST(the_page_cache_heals_what_the_disk_lost)
{
	const struct span bytes = span_of(noise, LARGE);
	struct file_ops files = *file_system();
	files.preadv = read_past_cache_badly;
	store_fixture_stop(&fixture);
	fixture.files = &files;
	store_fixture_start(&fixture);
	put("a", bytes);
	disk_is_bad = true;
	const struct scrub_request got = scrub();
	disk_is_bad = false;
	if (got.report.chunks_damaged > 0) { /* else no read can pass the cache here */
		ck_assert_uint_eq(got.report.chunks_healed, got.report.chunks_damaged);
		ck_assert_uint_eq(got.damaged_now, 0);
		ck_assert_uint_eq(scrub().report.chunks_damaged, 0);
	}
	ck_assert(holds("a", bytes));
	store_fixture_stop(&fixture);
	fixture.files = NULL;
	store_fixture_start(&fixture);
}
END_TEST

Suite *test_scrub_suite(void)
{
	Suite *const suite = suite_create("scrub");
	TCase *const tests = tcase_create("scrub");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_sound_store_is_read_to_its_end);
	tcase_add_test(tests, damage_that_nobody_read_is_found_and_remembered);
	tcase_add_test(tests, a_growing_pack_waits_until_it_is_sealed);
	tcase_add_test(tests, what_is_right_again_is_forgotten);
	tcase_add_test(tests, a_second_copy_heals);
	tcase_add_test(tests, a_copy_with_another_id_heals_nothing);
	tcase_add_test(tests, a_damaged_copy_heals_nothing);
	tcase_add_test(tests, a_growing_pack_is_sealed_and_healed);
	tcase_add_loop_test(tests, a_pack_that_describes_itself_wrongly_is_written_again, 0, 2);
	tcase_add_test(tests, a_pack_without_its_file_is_damaged_as_a_whole);
	tcase_add_test(tests, damage_of_dropped_chunks_is_forgotten);
	tcase_add_test(tests, a_pack_that_changed_is_looked_at_again);
	tcase_add_test(tests, gc_works_while_scrub_reads);
	tcase_add_test(tests, a_round_goes_on_after_a_restart);
	tcase_add_test(tests, a_round_goes_on_inside_a_pack);
	tcase_add_test(tests, a_damaged_state_begins_a_new_round);
	tcase_add_test(tests, rounds_come_by_themselves);
	tcase_add_test(tests, a_request_does_not_wait_for_a_slow_round);
	tcase_add_test(tests, damage_that_reads_find_is_healed_soon);
	tcase_add_test(tests, one_upload_heals_all_copies);
	tcase_add_test(tests, the_page_cache_heals_what_the_disk_lost);
	suite_add_tcase(suite, tests);
	return suite;
}
