/* What a worker sends is taken only if it was asked for and is right. */
#include "storage/scrub/chunk_wants.h"

#include <stdio.h>
#include <string.h>

#include "chunker/chunk_hash.h"
#include "tests/unit/unit.h"

Suite *test_chunk_wants_suite(void);

enum { STEP = 7 };

static struct chunk_wants *wants;
static struct error err;

static void set_up(void)
{
	wants = chunk_wants_new();
	err = (struct error){0};
}

static void tear_down(void)
{
	chunk_wants_free(wants);
}

static struct want_place place(const char *bucket, const char *run, uint64_t step)
{
	return (struct want_place){
		.bucket = span_text(bucket), .run = span_text(run), .step = step};
}

static struct chunk_id id_of(const char *text)
{
	return chunk_hash(span_text(text));
}

/* A new list of these chunks, of one step; NULL ends it. */
static void list(const char *const *texts)
{
	const struct want_place step = place("b", "r", STEP);
	chunk_wants_begin(wants);
	for (; *texts != NULL; texts++) {
		const struct chunk_want want = {
			.id = id_of(*texts), .length = (uint32_t)strlen(*texts), .file_size = 100};
		chunk_wants_add(wants, &step, &want);
	}
	chunk_wants_end(wants);
}

static size_t asked(const char *bucket, const char *run, uint64_t step)
{
	struct chunk_want out[CHUNK_WANTS_MAX];
	const struct want_place at = place(bucket, run, step);
	return chunk_wants_ask(wants, &at, out, CHUNK_WANTS_MAX);
}

static int take(const char *bucket, const char *id, const char *bytes)
{
	const struct want_place at = place(bucket, "r", 0);
	const struct chunk_id wanted = id_of(id);
	return chunk_wants_take(wants, &at, &wanted, span_text(bytes), &err);
}

static bool has(const char *text)
{
	static uint8_t bytes[CHUNK_MAX_BYTES];
	const struct chunk_id id = id_of(text);
	size_t len;
	return chunk_wants_copy(wants, &id, bytes, &len) && len == strlen(text) &&
		memcmp(bytes, text, len) == 0;
}

START_TEST(workers_of_the_step_alone_are_asked)
{
	static const char *const two[] = {"one", "two", NULL};
	ck_assert_uint_eq(asked("b", "r", STEP), 0);
	list(two);
	ck_assert_uint_eq(asked("b", "r", STEP), 2);
	ck_assert_uint_eq(asked("b", "r", STEP + 1), 0);
	ck_assert_uint_eq(asked("b", "other", STEP), 0);
	ck_assert_uint_eq(asked("other", "r", STEP), 0);
}
END_TEST

START_TEST(only_right_bytes_that_were_asked_for_are_taken)
{
	static const char *const two[] = {"one", "two", NULL};
	ck_assert_int_eq(take("b", "one", "one"), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	list(two);
	ck_assert_int_eq(take("b", "one", "onf"), -1);
	ck_assert_int_eq(err.kind, ERROR_DIGEST_MISMATCH);
	ck_assert_int_eq(take("b", "one", "two"), -1);
	ck_assert_int_eq(take("b", "one", ""), -1);
	ck_assert_int_eq(take("other", "one", "one"), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(take("b", "three", "three"), -1);
	ck_assert(!chunk_wants_has_bytes(wants));
	ck_assert_int_eq(take("b", "one", "one"), 0);
	ck_assert_int_eq(take("b", "one", "one"), 0);
	ck_assert(has("one") && !has("two"));
	ck_assert_uint_eq(asked("b", "r", STEP), 1);
}
END_TEST

/* Bytes outlive a new list that wants them too, and are dropped once they were used. */
START_TEST(bytes_stay_until_they_were_used)
{
	static const char *const two[] = {"one", "two", NULL};
	static const char *const later[] = {"two", "three", NULL};
	static const char *const none[] = {NULL};
	list(two);
	ck_assert(take("b", "one", "one") == 0 && take("b", "two", "two") == 0);
	list(later);
	ck_assert(!has("one"));
	chunk_wants_drop_bytes(wants);
	ck_assert(chunk_wants_has_bytes(wants));
	ck_assert(has("two"));
	chunk_wants_drop_bytes(wants);
	ck_assert(!chunk_wants_has_bytes(wants) && !has("two"));
	ck_assert_uint_eq(asked("b", "r", STEP), 1); /* "two" is not asked for again */
	list(none);
	ck_assert_uint_eq(asked("b", "r", STEP), 0);
}
END_TEST

START_TEST(the_list_is_bounded)
{
	const struct want_place step = place("b", "r", STEP);
	chunk_wants_begin(wants);
	for (int i = 0; i < 2 * CHUNK_WANTS_MAX; i++) {
		const struct chunk_want want = {.length = 1};
		chunk_wants_add(wants, &step, &want);
	}
	chunk_wants_end(wants);
	ck_assert_uint_eq(asked("b", "r", STEP), CHUNK_WANTS_MAX);
}
END_TEST

Suite *test_chunk_wants_suite(void)
{
	Suite *const suite = suite_create("chunk_wants");
	TCase *const tests = tcase_create("chunk_wants");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, workers_of_the_step_alone_are_asked);
	tcase_add_test(tests, only_right_bytes_that_were_asked_for_are_taken);
	tcase_add_test(tests, bytes_stay_until_they_were_used);
	tcase_add_test(tests, the_list_is_bounded);
	suite_add_tcase(suite, tests);
	return suite;
}
