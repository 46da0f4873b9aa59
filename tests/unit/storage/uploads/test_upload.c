#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/digest.h"
#include "base/encode.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_part.h"
#include "storage/objects/object_read.h"
#include "storage/uploads/upload_row.h"
#include "tests/unit/storage/hold_fixture.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

/* Three parts of one stream of noise: two of the size that parts before the last need, and a last
 * one. */
enum {
	PART_BYTES = UPLOAD_PART_MIN_BYTES + 12345,
	LAST_BYTES = 70001,
	PARTS = 3,
	WHOLE_BYTES = 2 * PART_BYTES + LAST_BYTES
};

static struct store_fixture fixture;
static uint8_t *noise;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "weights", "main", &err), 0);
	noise = fixture_noise(WHOLE_BYTES, 99);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	free(noise);
}

static struct upload_ref begin(
	const char *key, enum checksum_algorithm algorithm, enum checksum_type type)
{
	struct error err = {0};
	struct upload_ref ref;
	struct upload_create_params params = {.bucket = fixture_bucket("weights"),
		.key = span_text(key),
		.initiator = span_text("main"),
		.checksum = algorithm,
		.type = type};
	ck_assert_msg(
		fixture_upload_create(fixture.store, &params, &ref, &err) == 0, "%s", err.text);
	return ref;
}

static struct uploaded_part put(const struct upload_ref *ref, uint32_t number, struct span bytes)
{
	struct error err = {0};
	struct uploaded_part part;
	ck_assert_msg(fixture_upload_put(fixture.store, ref, number, bytes, NULL, &part, &err) == 0,
		"%s", err.text);
	return part;
}

static struct span piece(size_t index)
{
	return span_of(noise + index * PART_BYTES, index == PARTS - 1 ? LAST_BYTES : PART_BYTES);
}

static int complete(const struct upload_ref *ref, const struct upload_listed_part *parts,
	size_t count, struct upload_result *out, struct error *err)
{
	struct upload_fault fault;
	struct upload_complete_params params = {.ref = *ref, .parts = parts, .part_count = count};
	return fixture_upload_complete(fixture.store, &params, out, &fault, err);
}

/* Stores parts 2, 1 and 5 in that order; completes with 1, 2 and 5. */
static struct upload_ref upload_three(const char *key, enum checksum_algorithm algorithm,
	enum checksum_type type, struct upload_listed_part listed[PARTS])
{
	const struct upload_ref ref = begin(key, algorithm, type);
	struct uploaded_part part = put(&ref, 2, piece(1));
	listed[1] = fixture_upload_listed(&part);
	part = put(&ref, 1, piece(0));
	listed[0] = fixture_upload_listed(&part);
	part = put(&ref, 5, piece(2));
	listed[2] = fixture_upload_listed(&part);
	return ref;
}

static void expected_etag(
	const struct upload_listed_part *listed, size_t count, char out[OBJECT_ETAG_BYTES])
{
	uint8_t md5[MD5_BYTES];
	struct md5_stream *const stream = md5_stream_new();
	for (size_t i = 0; i < count; i++) {
		ck_assert(decode_hex(span_text(listed[i].etag), md5, sizeof(md5)));
		md5_stream_add(stream, span_of(md5, sizeof(md5)));
	}
	md5_stream_result(stream, md5);
	md5_stream_free(stream);
	encode_hex(span_of(md5, sizeof(md5)), out);
	snprintf(out + 32, OBJECT_ETAG_BYTES - 32, "-%zu", count);
}

static struct object find(const char *key)
{
	struct error err = {0};
	struct object object;
	ck_assert_msg(fixture_find(&fixture, "weights", key, &object, &err) == 0, "%s", err.text);
	return object;
}

static bool exists(const char *key)
{
	struct error err = {0};
	struct object object;
	return fixture_find(&fixture, "weights", key, &object, &err) == 0;
}

START_TEST(parts_in_any_order_become_one_object)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	char etag[OBJECT_ETAG_BYTES];
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	ck_assert(!exists("model"));
	ck_assert_msg(complete(&ref, listed, PARTS, &result, &err) == 0, "%s", err.text);
	expected_etag(listed, PARTS, etag);
	ck_assert_str_eq(result.etag, etag);
	ck_assert_uint_eq(result.size, WHOLE_BYTES);
	ck_assert_str_eq(result.version, "");
	struct checksum whole;
	checksum_of(CHECKSUM_CRC64NVME, span_of(noise, WHOLE_BYTES), &whole);
	ck_assert(checksum_equal(&result.checksum, &whole));
	store_fixture_reopen(&fixture);
	ck_assert(fixture_holds(&fixture, "weights", "model", span_of(noise, WHOLE_BYTES)));
	const struct object object = find("model");
	ck_assert_uint_eq(object.part_count, PARTS);
	ck_assert_str_eq(object.etag, etag);
	ck_assert(!object.has_digest);
	ck_assert(checksum_equal(&object.checksum, &whole));
}
END_TEST

static const struct {
	uint64_t offset;
	uint64_t length;
} ranges[] = {{0, 1}, {PART_BYTES - 1, 1}, {PART_BYTES - 1, 2}, {PART_BYTES, 1},
	{PART_BYTES, PART_BYTES}, {100, 2 * PART_BYTES}, {2 * PART_BYTES - 3, 10},
	{2 * PART_BYTES, LAST_BYTES}, {WHOLE_BYTES - 1, 1}, {WHOLE_BYTES, 0}, {0, WHOLE_BYTES},
	{PART_BYTES / 2, 0}};

START_TEST(ranges_cross_parts)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	struct buffer read;
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	ck_assert_int_eq(complete(&ref, listed, PARTS, &result, &err), 0);
	const struct object object = find("model");
	buffer_init(&read, 2 * WHOLE_BYTES);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		buffer_reset(&read);
		ck_assert_msg(fixture_read(fixture.store, &object, ranges[i].offset,
				      ranges[i].length, &read, &err) == 0,
			"%s", err.text);
		ck_assert_msg(span_equal(buffer_span(&read),
				      span_of(noise + ranges[i].offset, (size_t)ranges[i].length)),
			"range %zu", i);
	}
	struct object_part part;
	ck_assert_int_eq(object_find_part(fixture.store, &object, 5, &part, &err), 0);
	ck_assert_uint_eq(part.offset, 2 * PART_BYTES);
	ck_assert_uint_eq(part.size, LAST_BYTES);
	ck_assert_int_eq(object_find_part(fixture.store, &object, 3, &part, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_PART);
	buffer_release(&read);
}
END_TEST

static const struct {
	enum checksum_algorithm algorithm;
	enum checksum_type type;
} checksums[] = {{CHECKSUM_CRC32, CHECKSUM_FULL_OBJECT}, {CHECKSUM_CRC32C, CHECKSUM_FULL_OBJECT},
	{CHECKSUM_CRC64NVME, CHECKSUM_FULL_OBJECT}, {CHECKSUM_CRC32, CHECKSUM_COMPOSITE},
	{CHECKSUM_SHA256, CHECKSUM_COMPOSITE}, {CHECKSUM_XXHASH128, CHECKSUM_COMPOSITE}};

START_TEST(checksums_of_the_whole)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	struct checksum values[PARTS];
	struct checksum whole;
	uint8_t all[PARTS * CHECKSUM_MAX_BYTES];
	size_t len = 0;
	const struct upload_ref ref =
		upload_three("model", checksums[_i].algorithm, checksums[_i].type, listed);
	for (size_t i = 0; i < PARTS; i++) {
		checksum_of(checksums[_i].algorithm, piece(i), &values[i]);
		memcpy(all + len, values[i].bytes, values[i].len);
		len += values[i].len;
	}
	if (checksums[_i].type == CHECKSUM_COMPOSITE) {
		ck_assert_int_eq(complete(&ref, listed, PARTS, &result, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_INVALID_REQUEST); /* the list has no checksums */
		checksum_of(checksums[_i].algorithm, span_of(all, len), &whole);
	} else {
		checksum_of(checksums[_i].algorithm, span_of(noise, WHOLE_BYTES), &whole);
	}
	for (size_t i = 0; i < PARTS; i++)
		listed[i].checksum = values[i];
	listed[1].checksum.bytes[0] ^= 1;
	ck_assert_int_eq(complete(&ref, listed, PARTS, &result, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_PART);
	listed[1].checksum.bytes[0] ^= 1;
	ck_assert_msg(complete(&ref, listed, PARTS, &result, &err) == 0, "%s", err.text);
	ck_assert(checksum_equal(&result.checksum, &whole));
	ck_assert_int_eq(result.checksum.type, checksums[_i].type);
	const struct object object = find("model");
	struct object_part part;
	ck_assert(checksum_equal(&object.checksum, &whole));
	ck_assert_int_eq(object.checksum.type, checksums[_i].type);
	ck_assert_int_eq(object_find_part(fixture.store, &object, 2, &part, &err), 0);
	ck_assert(checksum_equal(&part.checksum, &values[1]));
}
END_TEST

START_TEST(what_the_whole_is_expected_to_be_is_checked)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	struct upload_fault fault;
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_CRC32C, CHECKSUM_FULL_OBJECT, listed);
	struct upload_complete_params params = {.ref = ref, .parts = listed, .part_count = PARTS};
	checksum_of(CHECKSUM_CRC32C, span_of(noise, WHOLE_BYTES), &params.checksum);
	params.has_size = true;
	params.size = WHOLE_BYTES + 1;
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_REQUEST);
	params.size = WHOLE_BYTES;
	params.has_type = true;
	params.type = CHECKSUM_COMPOSITE;
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_REQUEST);
	params.type = CHECKSUM_FULL_OBJECT;
	params.checksum.bytes[3] ^= 1;
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BAD_DIGEST);
	params.checksum.bytes[3] ^= 1;
	ck_assert_msg(fixture_upload_complete(fixture.store, &params, &result, &fault, &err) == 0,
		"%s", err.text);
}
END_TEST

/* "VALUE-N": the checksum of N parts' checksums. */
START_TEST(the_number_of_parts_behind_a_checksum_is_checked)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	struct upload_fault fault;
	uint8_t all[PARTS * CHECKSUM_MAX_BYTES];
	size_t len = 0;
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_CRC32C, CHECKSUM_COMPOSITE, listed);
	struct upload_complete_params params = {
		.ref = ref, .parts = listed, .part_count = PARTS, .checksum_parts = PARTS - 1};
	for (size_t i = 0; i < PARTS; i++) {
		checksum_of(CHECKSUM_CRC32C, piece(i), &listed[i].checksum);
		memcpy(all + len, listed[i].checksum.bytes, listed[i].checksum.len);
		len += listed[i].checksum.len;
	}
	checksum_of(CHECKSUM_CRC32C, span_of(all, len), &params.checksum);
	params.checksum.type = CHECKSUM_COMPOSITE;
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BAD_DIGEST);
	params.checksum_parts = PARTS;
	ck_assert_msg(fixture_upload_complete(fixture.store, &params, &result, &fault, &err) == 0,
		"%s", err.text);
}
END_TEST

START_TEST(lists_are_judged)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	struct upload_fault fault;
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	struct upload_complete_params params = {.ref = ref, .parts = listed, .part_count = PARTS};
	const struct upload_listed_part second = listed[1];
	listed[1].number = 3; /* it was never uploaded */
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_PART);
	ck_assert_uint_eq(fault.number, 3);
	listed[1] = second;
	listed[1].etag[0] = listed[1].etag[0] == '0' ? '1' : '0';
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_PART);
	ck_assert_uint_eq(fault.number, 2);
	listed[1] = listed[0]; /* the same part twice */
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PART_ORDER);
	listed[1] = second;
	put(&ref, 3, span_text("small, and not the last"));
	const struct uploaded_part small = put(&ref, 3, span_text("small and in the middle"));
	struct upload_listed_part four[] = {listed[0], listed[1], {0}, listed[2]};
	four[2] = fixture_upload_listed(&small);
	params.parts = four;
	params.part_count = 4;
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PART_TOO_SMALL);
	ck_assert_uint_eq(fault.number, 3);
	ck_assert_uint_eq(fault.size, strlen("small and in the middle"));
	ck_assert(!exists("model"));
}
END_TEST

START_TEST(parts_that_are_not_listed_are_dropped)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	put(&ref, 9000, piece(0));
	const struct upload_listed_part two[] = {listed[0], listed[2]};
	ck_assert_msg(complete(&ref, two, 2, &result, &err) == 0, "%s", err.text);
	uint8_t *const wanted = malloc(PART_BYTES + LAST_BYTES);
	memcpy(wanted, noise, PART_BYTES);
	memcpy(wanted + PART_BYTES, piece(2).data, LAST_BYTES);
	ck_assert(fixture_holds(
		&fixture, "weights", "model", span_of(wanted, PART_BYTES + LAST_BYTES)));
	fixture_sweep(fixture.store);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM parts"), 2);
	ck_assert_int_eq(fixture_count(fixture.store,
				 "SELECT COUNT(*) FROM segments WHERE number NOT IN (1, 5)"),
		0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM uploads WHERE state = 1"), 1);
	ck_assert(fixture_holds(
		&fixture, "weights", "model", span_of(wanted, PART_BYTES + LAST_BYTES)));
	free(wanted);
}
END_TEST

START_TEST(a_part_uploaded_again_replaces_the_first)
{
	struct error err = {0};
	struct upload_listed_part listed[2];
	struct upload_result result;
	const struct upload_ref ref = begin("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT);
	const struct uploaded_part first = put(&ref, 1, piece(1));
	const struct uploaded_part again = put(&ref, 1, piece(0));
	listed[0] = fixture_upload_listed(&first);
	ck_assert_int_eq(complete(&ref, listed, 1, &result, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_PART);
	listed[0] = fixture_upload_listed(&again);
	ck_assert_msg(complete(&ref, listed, 1, &result, &err) == 0, "%s", err.text);
	ck_assert(fixture_holds(&fixture, "weights", "model", piece(0)));
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT row_count - (SELECT COUNT(*) FROM segments) - 1 FROM part_sets"),
		0);
}
END_TEST

START_TEST(completing_again_gives_the_same_result)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result first;
	struct upload_result again;
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	ck_assert_int_eq(complete(&ref, listed, PARTS, &first, &err), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "weights", "model", span_text("newer"), &err), 0);
	store_fixture_reopen(&fixture);
	ck_assert_msg(complete(&ref, listed, PARTS, &again, &err) == 0, "%s", err.text);
	ck_assert_str_eq(again.etag, first.etag);
	ck_assert(checksum_equal(&again.checksum, &first.checksum));
	ck_assert_uint_eq(again.size, first.size);
	/* the object was not made again */
	ck_assert(fixture_holds(&fixture, "weights", "model", span_text("newer")));
	ck_assert_int_eq(complete(&ref, listed, PARTS - 1, &again, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
	struct uploaded_part part;
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &ref, 1, piece(0), NULL, &part, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
	ck_assert_int_eq(fixture_upload_abort(fixture.store, &ref, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
	fixture.clock.now_ms += UPLOAD_KEPT_MS + 1;
	fixture_sweep(fixture.store);
	ck_assert_int_eq(complete(&ref, listed, PARTS, &again, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM uploads"), 0);
}
END_TEST

static struct call *start_completing(const struct upload_ref *ref,
	const struct upload_listed_part *listed, size_t count, struct settled *settled)
{
	struct error err = {0};
	const struct upload_complete_params params = {
		.ref = *ref, .parts = listed, .part_count = count};
	struct call *const started = upload_complete_call(fixture.store, &params, &err);
	ck_assert_msg(started != NULL, "%s", err.text);
	call_start(started, settled_done, settled);
	return started;
}

static int end_completing(
	struct call *started, struct settled *settled, struct upload_result *out, struct error *err)
{
	settled_wait(settled);
	const int result = call_outcome(started, err);
	*out = upload_complete_result(started);
	call_free(started);
	return result;
}

static void keep_versions(void)
{
	struct error err = {0};
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = BUCKET_VERSIONED};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "weights", &edit, &err), 0);
}

START_TEST(two_completions_at_once_make_one_version)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result results[2];
	struct call *started[2];
	struct settled *const ends[2] = {settled_new(), settled_new()};
	keep_versions();
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	for (size_t i = 0; i < 2; i++)
		started[i] = start_completing(&ref, listed, PARTS, ends[i]);
	helpers_pass(fixture.store);
	committer_hold_end(hold);
	for (size_t i = 0; i < 2; i++)
		ck_assert_msg(end_completing(started[i], ends[i], &results[i], &err) == 0, "%s",
			err.text);
	ck_assert_str_ne(results[0].version, "");
	ck_assert_str_eq(results[0].version, results[1].version);
	ck_assert_str_eq(results[0].etag, results[1].etag);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 1);
	ck_assert(fixture_holds(&fixture, "weights", "model", span_of(noise, WHOLE_BYTES)));
}
END_TEST

/* The lists differ: one of them makes the object, and only its sender gets a success. */
START_TEST(of_two_completions_with_other_parts_one_counts)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	struct settled *const ends[2] = {settled_new(), settled_new()};
	keep_versions();
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	struct call *const first = start_completing(&ref, listed, 1, ends[0]);
	helpers_pass(fixture.store);
	struct call *const second = start_completing(&ref, listed, PARTS, ends[1]);
	helpers_pass(fixture.store);
	committer_hold_end(hold);
	ck_assert_int_eq(end_completing(first, ends[0], &result, &err), 0);
	ck_assert_int_eq(end_completing(second, ends[1], &result, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 1);
	ck_assert(fixture_holds(&fixture, "weights", "model", piece(0)));
}
END_TEST

START_TEST(an_upload_that_is_aborted_while_it_completes_makes_nothing)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	struct settled *const ends[2] = {settled_new(), settled_new()};
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	struct call *const abort = upload_abort_call(fixture.store, &ref);
	call_start(abort, settled_done, ends[0]);
	struct call *const completing = start_completing(&ref, listed, PARTS, ends[1]);
	helpers_pass(fixture.store);
	committer_hold_end(hold);
	ck_assert_int_eq(fixture_settle(abort, ends[0], &err), 0);
	ck_assert_int_eq(end_completing(completing, ends[1], &result, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
	ck_assert(!exists("model"));
}
END_TEST

/* A part is replaced between the judgement of the list and the change. */
START_TEST(a_part_that_came_while_it_completes_is_not_passed_off_as_the_listed_one)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	struct settled *const ends[2] = {settled_new(), settled_new()};
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	const struct upload_put_params params = {.ref = ref, .number = 5};
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	struct upload_put *const put = upload_put_open(fixture.store, &params, &err);
	ck_assert_int_eq(upload_put_write(put, span_text("another last part"), &err), SINK_TAKEN);
	struct call *const putting = upload_put_call(put);
	/* it is in the queue at once, because the part is small */
	call_start(putting, settled_done, ends[0]);
	struct call *const completing = start_completing(&ref, listed, PARTS, ends[1]);
	helpers_pass(fixture.store);
	committer_hold_end(hold);
	settled_wait(ends[0]);
	ck_assert_msg(call_outcome(putting, &err) == 0, "%s", err.text);
	const struct uploaded_part part = upload_put_result(putting);
	call_free(putting);
	ck_assert_int_eq(end_completing(completing, ends[1], &result, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_PART);
	ck_assert(!exists("model"));
	listed[2] = fixture_upload_listed(&part);
	ck_assert_msg(complete(&ref, listed, PARTS, &result, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(result.size, 2 * PART_BYTES + strlen("another last part"));
}
END_TEST

START_TEST(conditions_are_judged_when_it_completes)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	struct upload_fault fault;
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	struct upload_complete_params params = {.ref = ref, .parts = listed, .part_count = PARTS};
	params.conditions.if_match = span_text("\"0123\"");
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	ck_assert_int_eq(
		fixture_put(fixture.store, "weights", "model", span_text("first"), &err), 0);
	params.conditions = (struct object_conditions){.if_none_match = span_text("*")};
	ck_assert_int_eq(
		fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PRECONDITION);
	ck_assert(fixture_holds(&fixture, "weights", "model", span_text("first")));
	const struct object current = find("model"); /* the upload is still open */
	params.conditions = (struct object_conditions){.if_match = span_text(current.etag)};
	ck_assert_msg(fixture_upload_complete(fixture.store, &params, &result, &fault, &err) == 0,
		"%s", err.text);
	ck_assert(fixture_holds(&fixture, "weights", "model", span_of(noise, WHOLE_BYTES)));
}
END_TEST

START_TEST(aborting_leaves_nothing)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	ck_assert_int_eq(fixture_upload_abort(fixture.store, &ref, &err), 0);
	ck_assert_int_eq(fixture_upload_abort(fixture.store, &ref, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
	ck_assert_int_eq(complete(&ref, listed, PARTS, &result, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT (SELECT COUNT(*) FROM parts) + (SELECT COUNT(*) FROM segments)"
			" + (SELECT COUNT(*) FROM part_sets) + (SELECT COUNT(*) FROM uploads)"),
		0);
}
END_TEST

START_TEST(a_deleted_bucket_takes_its_uploads_along)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	struct bucket old;
	begin("other", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT);
	ck_assert_int_eq(bucket_find(fixture.store, ref.bucket, fixture.arena, &old, &err), 0);
	ck_assert_msg(fixture_delete_bucket(fixture.store, "weights", &err) == 0, "%s", err.text);
	ck_assert_int_eq(complete(&ref, listed, PARTS, &result, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "weights", "main", &err), 0);
	ck_assert_int_eq(complete(&ref, listed, PARTS, &result, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD); /* another bucket with this name */
	struct upload_ref of_old = ref;
	of_old.bucket.id = old.id;
	ck_assert_int_eq(complete(&of_old, listed, PARTS, &result, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT (SELECT COUNT(*) FROM parts) + (SELECT COUNT(*) FROM segments)"
			" + (SELECT COUNT(*) FROM part_sets) + (SELECT COUNT(*) FROM uploads) + (SELECT COUNT(*) FROM gone_buckets)"),
		0);
}
END_TEST

static const size_t single_sizes[] = {0, 1, 1024, 1025, 300000};

START_TEST(one_part_of_any_size_is_enough)
{
	struct error err = {0};
	struct upload_listed_part listed;
	struct upload_result result;
	const struct upload_ref ref = begin("tiny", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT);
	const struct uploaded_part part = put(&ref, 7, span_of(noise, single_sizes[_i]));
	listed = fixture_upload_listed(&part);
	ck_assert_msg(complete(&ref, &listed, 1, &result, &err) == 0, "%s", err.text);
	ck_assert(fixture_holds(&fixture, "weights", "tiny", span_of(noise, single_sizes[_i])));
	ck_assert(span_ends_text(span_text(result.etag), "-1"));
}
END_TEST

START_TEST(declared_checksums_are_verified)
{
	struct error err = {0};
	struct uploaded_part part;
	struct checksum value;
	const struct upload_ref named = begin("named", CHECKSUM_SHA256, CHECKSUM_COMPOSITE);
	checksum_of(CHECKSUM_SHA256, piece(2), &value);
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &named, 1, piece(2), &value, &part, &err), 0);
	ck_assert(checksum_equal(&part.checksum, &value));
	value.bytes[0] ^= 1;
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &named, 1, piece(2), &value, &part, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BAD_DIGEST);
	checksum_of(CHECKSUM_CRC32, piece(2), &value);
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &named, 1, piece(2), &value, &part, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_REQUEST);
	/* When the upload names no algorithm, parts may have any. */
	const struct upload_ref unnamed = begin("unnamed", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT);
	ck_assert_msg(
		fixture_upload_put(fixture.store, &unnamed, 1, piece(2), &value, &part, &err) == 0,
		"%s", err.text);
	ck_assert(checksum_equal(&part.checksum, &value));
	value.bytes[0] ^= 1;
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &unnamed, 1, piece(2), &value, &part, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BAD_DIGEST);
}
END_TEST

START_TEST(what_was_said_at_the_beginning_is_the_objects)
{
	struct error err = {0};
	struct upload_ref ref;
	struct upload_listed_part listed;
	struct upload_result result;
	const struct object_header headers[] = {
		{span_text("content-type"), span_text("application/x-weights")},
		{span_text("x-amz-meta-step"), span_text("41")}};
	struct upload_create_params params = {.bucket = fixture_bucket("weights"),
		.key = span_text("model"),
		.initiator = span_text("main")};
	params.facts = (struct object_facts){.headers = headers,
		.header_count = 2,
		.storage_class = STORAGE_STANDARD_IA,
		.acl = ACL_PUBLIC_READ};
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), 0);
	const struct uploaded_part part = put(&ref, 1, piece(2));
	listed = fixture_upload_listed(&part);
	ck_assert_int_eq(complete(&ref, &listed, 1, &result, &err), 0);
	const struct object object = find("model");
	ck_assert_uint_eq(object.header_count, 2);
	ck_assert(span_equal_text(object.headers[1].value, "41"));
	ck_assert_int_eq(object.storage_class, STORAGE_STANDARD_IA);
	ck_assert(object.acl == ACL_PUBLIC_READ);
}
END_TEST

START_TEST(open_uploads_are_listed)
{
	static const char *const keys[] = {"a/1", "a/2", "b", "b", "c/x"};
	struct error err = {0};
	struct upload_list list;
	struct upload_ref refs[5];
	for (size_t i = 0; i < 5; i++) {
		refs[i] = begin(keys[i], CHECKSUM_NONE, CHECKSUM_FULL_OBJECT);
		fixture.clock.now_ms += 10;
	}
	struct upload_list_params params = {
		.bucket = fixture_bucket("weights"), .delimiter = span_text("/"), .limit = 2};
	ck_assert_int_eq(upload_list(fixture.store, &params, fixture.arena, &list, &err), 0);
	ck_assert(list.truncated && list.prefix_count == 1 && list.upload_count == 1);
	ck_assert(span_equal_text(list.prefixes[0], "a/"));
	ck_assert_mem_eq(list.uploads[0].id.bytes, refs[2].id.bytes, UPLOAD_ID_BYTES);
	params.after_key = list.last_key;
	params.has_after_id = true;
	params.after_id = list.last_id;
	ck_assert_int_eq(upload_list(fixture.store, &params, fixture.arena, &list, &err), 0);
	ck_assert(!list.truncated && list.prefix_count == 1 && list.upload_count == 1);
	ck_assert_mem_eq(list.uploads[0].id.bytes, refs[3].id.bytes, UPLOAD_ID_BYTES);
	params = (struct upload_list_params){
		.bucket = fixture_bucket("weights"), .prefix = span_text("a/"), .limit = 1000};
	ck_assert_int_eq(upload_list(fixture.store, &params, fixture.arena, &list, &err), 0);
	ck_assert_uint_eq(list.upload_count, 2);
	params = (struct upload_list_params){
		.bucket = fixture_bucket("weights"), .after_key = span_text("b"), .limit = 1000};
	ck_assert_int_eq(upload_list(fixture.store, &params, fixture.arena, &list, &err), 0);
	ck_assert(list.upload_count == 1 && span_equal_text(list.uploads[0].key, "c/x"));
	ck_assert_int_eq(fixture_upload_abort(fixture.store, &refs[4], &err), 0);
	ck_assert_int_eq(upload_list(fixture.store, &params, fixture.arena, &list, &err), 0);
	ck_assert_uint_eq(list.upload_count, 0);
}
END_TEST

START_TEST(parts_are_listed_in_pages)
{
	struct error err = {0};
	struct upload_parts parts;
	const struct upload_ref ref = begin("model", CHECKSUM_CRC32, CHECKSUM_COMPOSITE);
	for (uint32_t number = 10; number > 0; number -= 2)
		put(&ref, number, span_of(noise, number));
	ck_assert_int_eq(upload_list_parts(fixture.store, &ref, (struct upload_parts_range){0, 3},
				 fixture.arena, &parts, &err),
		0);
	ck_assert(parts.truncated && parts.count == 3);
	ck_assert_uint_eq(parts.parts[2].number, 6);
	ck_assert_uint_eq(parts.parts[2].size, 6);
	ck_assert_int_eq(parts.parts[2].checksum.algorithm, CHECKSUM_CRC32);
	ck_assert_int_eq(upload_list_parts(fixture.store, &ref, (struct upload_parts_range){6, 3},
				 fixture.arena, &parts, &err),
		0);
	ck_assert(!parts.truncated && parts.count == 2);
	ck_assert_uint_eq(parts.parts[1].number, 10);
	struct upload_ref other = ref;
	other.key = span_text("model2");
	ck_assert_int_eq(upload_list_parts(fixture.store, &other, (struct upload_parts_range){0, 3},
				 fixture.arena, &parts, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
}
END_TEST

static const struct {
	uint64_t offset;
	uint64_t length;
} copies[] = {{0, WHOLE_BYTES}, {0, PART_BYTES}, {PART_BYTES, PART_BYTES}, {1, WHOLE_BYTES - 2},
	{12345, 100}, {100000, 300000}, {0, 1}, {WHOLE_BYTES - 1, 1}, {PART_BYTES - 10, 20},
	{PART_BYTES - 200000, 400000}, {100, PART_BYTES - 100}, {3, 0}, {200000, 65536}};

/* The same bytes stored as one PUT and as three parts. */
static struct object make_source(bool is_multipart)
{
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	if (is_multipart) {
		const struct upload_ref ref =
			upload_three("source", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
		ck_assert_int_eq(complete(&ref, listed, PARTS, &result, &err), 0);
	} else {
		ck_assert_int_eq(fixture_put(fixture.store, "weights", "source",
					 span_of(noise, WHOLE_BYTES), &err),
			0);
	}
	return find("source");
}

START_TEST(parts_are_copied_out_of_objects)
{
	struct error err = {0};
	const struct object source = make_source(_i % 2 == 1);
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		const struct span wanted =
			span_of(noise + copies[i].offset, (size_t)copies[i].length);
		struct uploaded_part part;
		struct upload_listed_part listed;
		struct upload_result result;
		struct checksum checksum;
		uint8_t md5[MD5_BYTES];
		char etag[2 * MD5_BYTES + 1];
		const struct upload_ref ref = begin(
			"copy", _i < 2 ? CHECKSUM_NONE : CHECKSUM_CRC32, CHECKSUM_FULL_OBJECT);
		ck_assert_msg(fixture_upload_copy(fixture.store, &ref, 1, &source, copies[i].offset,
				      copies[i].length, &part, &err) == 0,
			"%s", err.text);
		struct md5_stream *const stream = md5_stream_new();
		md5_stream_add(stream, wanted);
		md5_stream_result(stream, md5);
		md5_stream_free(stream);
		encode_hex(span_of(md5, sizeof(md5)), etag);
		ck_assert_msg(
			strcmp(part.etag, etag) == 0, "copy %zu: %s, not %s", i, part.etag, etag);
		checksum_of(CHECKSUM_CRC32, wanted, &checksum);
		ck_assert(_i < 2 ? part.checksum.algorithm == CHECKSUM_NONE
				 : checksum_equal(&part.checksum, &checksum));
		listed = fixture_upload_listed(&part);
		ck_assert_msg(complete(&ref, &listed, 1, &result, &err) == 0, "%s", err.text);
		ck_assert_msg(fixture_holds(&fixture, "weights", "copy", wanted), "copy %zu", i);
	}
}
END_TEST

/* The parts keep the checksums with which they were stored. */
START_TEST(parts_are_copied_out_of_a_copy_with_another_checksum)
{
	struct error err = {0};
	struct object recoded;
	struct uploaded_part part;
	struct checksum checksum;
	const struct object source = make_source(true);
	struct object_copy_params params = {.source = &source,
		.bucket = fixture_bucket("weights"),
		.key = span_text("recoded"),
		.checksum = CHECKSUM_CRC32};
	ck_assert_msg(fixture_copy(fixture.store, &params, &recoded, &err) == 0, "%s", err.text);
	recoded = find("recoded");
	const struct upload_ref ref = begin("copy", CHECKSUM_CRC32, CHECKSUM_FULL_OBJECT);
	ck_assert_msg(fixture_upload_copy(
			      fixture.store, &ref, 1, &recoded, 0, PART_BYTES, &part, &err) == 0,
		"%s", err.text);
	checksum_of(CHECKSUM_CRC32, piece(0), &checksum);
	ck_assert(checksum_equal(&part.checksum, &checksum));
}
END_TEST

START_TEST(copies_refer_to_whole_chunks)
{
	struct error err = {0};
	struct uploaded_part part;
	const struct object source = make_source(false);
	const struct upload_ref ref = begin("copy", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT);
	const int64_t before = fixture_count(fixture.store, "SELECT SUM(length) FROM packs");
	ck_assert_int_eq(fixture_upload_copy(fixture.store, &ref, 1, &source, 77, WHOLE_BYTES - 99,
				 &part, &err),
		0);
	const int64_t stored =
		fixture_count(fixture.store, "SELECT SUM(length) FROM packs") - before;
	ck_assert_msg(stored > 0 && stored < 3 * 131072, "%lld bytes", (long long)stored);
	ck_assert_int_eq(
		fixture_upload_copy(fixture.store, &ref, 2, &source, 1, WHOLE_BYTES, &part, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_RANGE);
	ck_assert_int_eq(fixture_delete(fixture.store, "weights", "source", NULL, &err), 0);
	ck_assert_int_eq(
		fixture_upload_copy(fixture.store, &ref, 2, &source, 0, 10, &part, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
}
END_TEST

START_TEST(damage_in_the_map_or_a_part_is_noticed)
{
	static const char *const damages[] = {
		"UPDATE part_sets SET map = substr(map, 1, length(map) - 20)",
		"UPDATE part_sets SET map = NULL",
		"UPDATE parts SET size = size - 1 WHERE number = 2",
		"UPDATE parts SET sum = sum + 1 WHERE number = 2",
		"DELETE FROM parts WHERE number = 2",
		"DELETE FROM segments WHERE number = 2 AND start = (SELECT MAX(start) FROM segments WHERE number = 2)",
		"UPDATE segments SET first = first + 1 WHERE number = 2",
	};
	struct error err = {0};
	struct upload_listed_part listed[PARTS];
	struct upload_result result;
	struct buffer read;
	const struct upload_ref ref =
		upload_three("model", CHECKSUM_NONE, CHECKSUM_FULL_OBJECT, listed);
	ck_assert_int_eq(complete(&ref, listed, PARTS, &result, &err), 0);
	char *const path = store_fixture_path(&fixture, "catalog.db");
	struct db *const db = db_open(path, DB_WRITE, &err);
	ck_assert_int_eq(db_run_script(db, damages[_i], &err), 0);
	db_close(db);
	free(path);
	const struct object object = find("model");
	buffer_init(&read, 2 * WHOLE_BYTES);
	ck_assert_int_eq(
		fixture_read(fixture.store, &object, PART_BYTES, PART_BYTES, &read, &err), -1);
	ck_assert_msg(err.kind == ERROR_CORRUPT, "%s", err.text);
	buffer_release(&read);
}
END_TEST

Suite *test_upload_suite(void);

Suite *test_upload_suite(void)
{
	Suite *const suite = suite_create("upload");
	TCase *const tests = tcase_create("upload");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, parts_in_any_order_become_one_object);
	tcase_add_test(tests, ranges_cross_parts);
	tcase_add_loop_test(
		tests, checksums_of_the_whole, 0, sizeof(checksums) / sizeof(checksums[0]));
	tcase_add_test(tests, what_the_whole_is_expected_to_be_is_checked);
	tcase_add_test(tests, the_number_of_parts_behind_a_checksum_is_checked);
	tcase_add_test(tests, lists_are_judged);
	tcase_add_test(tests, parts_that_are_not_listed_are_dropped);
	tcase_add_test(tests, a_part_uploaded_again_replaces_the_first);
	tcase_add_test(tests, completing_again_gives_the_same_result);
	tcase_add_test(tests, two_completions_at_once_make_one_version);
	tcase_add_test(tests, of_two_completions_with_other_parts_one_counts);
	tcase_add_test(tests, an_upload_that_is_aborted_while_it_completes_makes_nothing);
	tcase_add_test(
		tests, a_part_that_came_while_it_completes_is_not_passed_off_as_the_listed_one);
	tcase_add_test(tests, conditions_are_judged_when_it_completes);
	tcase_add_test(tests, aborting_leaves_nothing);
	tcase_add_test(tests, a_deleted_bucket_takes_its_uploads_along);
	tcase_add_loop_test(tests, one_part_of_any_size_is_enough, 0,
		sizeof(single_sizes) / sizeof(single_sizes[0]));
	tcase_add_test(tests, declared_checksums_are_verified);
	tcase_add_test(tests, what_was_said_at_the_beginning_is_the_objects);
	tcase_add_test(tests, open_uploads_are_listed);
	tcase_add_test(tests, parts_are_listed_in_pages);
	tcase_add_loop_test(tests, parts_are_copied_out_of_objects, 0, 3);
	tcase_add_test(tests, parts_are_copied_out_of_a_copy_with_another_checksum);
	tcase_add_test(tests, copies_refer_to_whole_chunks);
	tcase_add_loop_test(tests, damage_in_the_map_or_a_part_is_noticed, 0, 7);
	suite_add_tcase(suite, tests);
	return suite;
}
