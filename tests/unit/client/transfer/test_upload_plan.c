/* The table, the search and the plan, with made-up chunks: the id of a chunk is its number, and a
 * xorb of the server is a run of numbers. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "chunker/chunk_hash.h"
#include "chunker/shard.h"
#include "client/local/chunk_search.h"
#include "client/transfer/upload_plan.h"

enum { CHUNK_BYTES = 1000, SERVER_XORB_CHUNKS = 100 };

static struct chunk_table *table;

static void set_up(void)
{
	table = chunk_table_new();
}

static void tear_down(void)
{
	chunk_table_free(table);
}

/* The modulo word is the number; the rest is spread. */
static struct chunk_entry entry_of(uint64_t number)
{
	struct chunk_entry entry = {.size = CHUNK_BYTES + number % 7};
	entry.id = chunk_hash(span_of(&number, sizeof number));
	memcpy(entry.id.bytes + 24, &number, sizeof number);
	return entry;
}

static void answer(uint64_t first, uint32_t count, uint8_t key_byte)
{
	struct buffer bytes;
	struct error err = {0};
	struct chunk_entry *const entries = calloc(count, sizeof *entries);
	struct shard_answer facts = {.created_s = 1, .expires_s = 2};
	memset(facts.key, key_byte, sizeof facts.key);
	for (uint32_t i = 0; i < count; i++)
		entries[i] = entry_of(first + i);
	const struct chunk_id hash = chunk_hash_xorb(entries, count);
	buffer_init(&bytes, 1 << 20);
	shard_write_answer(&bytes, &facts, &hash, entries, count);
	ck_assert_int_eq(chunk_table_add(table, buffer_span(&bytes), &err), 0);
	buffer_release(&bytes);
	free(entries);
}

/* A server that has the chunks [from, to) in xorbs of SERVER_XORB_CHUNKS. Its index has the
 * multiples of 16 and the first chunk of each xorb. */
struct server {
	uint64_t from, to;
	int questions;
};

static int ask(void *owner, const struct chunk_id *id, struct error *err)
{
	struct server *const server = owner;
	(void)err;
	const uint64_t number = chunk_id_modulo_word(id);
	server->questions++;
	const uint64_t begin =
		server->from + (number - server->from) / SERVER_XORB_CHUNKS * SERVER_XORB_CHUNKS;
	if (number < server->from || number >= server->to || (number % 16 != 0 && number != begin))
		return 0;
	const uint64_t end =
		begin + SERVER_XORB_CHUNKS < server->to ? begin + SERVER_XORB_CHUNKS : server->to;
	answer(begin, (uint32_t)(end - begin), 9);
	return 1;
}

static size_t count_unknown(const struct chunk_entry *entries, size_t count)
{
	const struct table_place nowhere = {.xorb = CHUNK_TABLE_NOWHERE};
	struct table_place place;
	size_t unknown = 0;
	for (size_t i = 0; i < count; i++)
		unknown += !chunk_table_find(table, &entries[i].id, nowhere, &place);
	return unknown;
}

START_TEST(an_answer_is_found_under_its_key)
{
	const struct table_place nowhere = {.xorb = CHUNK_TABLE_NOWHERE};
	struct table_place place;
	struct table_place first;
	uint32_t size;
	answer(10, 5, 0);
	answer(20, 5, 7);
	answer(20, 5, 7);
	answer(22, 5, 8); /* has some of the same chunks */
	for (uint64_t number = 10; number < 27; number++) {
		const struct chunk_entry entry = entry_of(number);
		ck_assert_int_eq(chunk_table_find(table, &entry.id, nowhere, &place),
			number < 15 || number >= 20);
	}
	const struct chunk_entry entry = entry_of(23);
	ck_assert(chunk_table_find(table, &entry.id, nowhere, &place));
	ck_assert_uint_eq(place.xorb, 1);
	ck_assert_uint_eq(place.index, 3);
	ck_assert(chunk_table_find(
		table, &entry.id, (struct table_place){.xorb = 2, .index = 0}, &place));
	ck_assert_uint_eq(place.xorb, 2); /* it follows `near` there */
	ck_assert_uint_eq(place.index, 1);
	ck_assert(chunk_table_chunk(table, place, &size, &first));
	ck_assert_uint_eq(size, entry.size);
	ck_assert(!chunk_table_chunk(
		table, (struct table_place){.xorb = 2, .index = 5}, &size, &first));
	ck_assert(!chunk_table_chunk(table, (struct table_place){.xorb = 3}, &size, &first));
}
END_TEST

START_TEST(nonsense_is_no_answer)
{
	struct error err = {0};
	uint8_t bytes[400] = {0};
	ck_assert_int_eq(chunk_table_add(table, span_of(bytes, sizeof bytes), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

static struct chunk_entry *run(uint64_t first, size_t count)
{
	struct chunk_entry *const entries = calloc(count, sizeof *entries);
	for (size_t i = 0; i < count; i++)
		entries[i] = entry_of(first + i);
	return entries;
}

START_TEST(a_new_file_costs_few_questions)
{
	struct error err = {0};
	struct server server = {0};
	struct chunk_entry *const entries = run(1000001, 16384);
	const struct chunk_search search = {
		.entries = entries, .count = 16384, .table = table, .ask = ask, .owner = &server};
	ck_assert_int_eq(chunk_search(&search, &err), 0);
	ck_assert_int_le(server.questions, 8 + 16);
	free(entries);
}
END_TEST

START_TEST(a_changed_file_costs_a_question_for_each_xorb_and_finds_all)
{
	struct error err = {0};
	struct server server = {.from = 32000, .to = 36000};
	struct chunk_entry *const entries = run(32000, 4000);
	for (size_t i = 1000; i < 1040;
		i++) /* 1 % is new, and a late known stretch begins among rare questions */
		entries[i] = entry_of(5000000 + i);
	const struct chunk_search search = {
		.entries = entries, .count = 4000, .table = table, .ask = ask, .owner = &server};
	ck_assert_int_eq(chunk_search(&search, &err), 0);
	ck_assert_uint_eq(count_unknown(entries, 4000), 40);
	ck_assert_int_le(server.questions, 40 + 8);
	free(entries);
}
END_TEST

/* The result of an earlier change: a few chunks, of which the index has only the first of their
 * xorb. */
START_TEST(an_island_of_an_earlier_upload_is_found)
{
	struct error err = {0};
	struct server server = {.from = 32001, .to = 32009};
	struct chunk_entry *const entries = run(500, 100);
	for (size_t i = 0; i < 8; i++)
		entries[40 + i] = entry_of(32001 + i);
	answer(500, 100, 9);
	const struct chunk_search search = {
		.entries = entries, .count = 100, .table = table, .ask = ask, .owner = &server};
	ck_assert_int_eq(chunk_search(&search, &err), 0);
	ck_assert_uint_eq(count_unknown(entries, 100), 0);
	ck_assert_int_eq(server.questions, 1);
	free(entries);
}
END_TEST

START_TEST(many_edges_without_an_answer_are_asked_about_no_more)
{
	struct error err = {0};
	struct server server = {0};
	struct chunk_entry *const entries = run(500, 1000);
	for (size_t i = 5; i < 1000; i += 10)
		entries[i] = entry_of(700001 + 16 * i);
	answer(500, 1000, 9);
	const struct chunk_search search = {
		.entries = entries, .count = 1000, .table = table, .ask = ask, .owner = &server};
	ck_assert_int_eq(chunk_search(&search, &err), 0);
	ck_assert_int_eq(server.questions, 16);
	free(entries);
}
END_TEST

START_TEST(a_known_tail_behind_much_that_is_new_is_found)
{
	struct error err = {0};
	struct server server = {.from = 64000, .to = 64200};
	struct chunk_entry *const entries = run(9000001, 8000);
	for (size_t i = 0; i < 200; i++)
		entries[7800 + i] = entry_of(64000 + i);
	const struct chunk_search search = {
		.entries = entries, .count = 8000, .table = table, .ask = ask, .owner = &server};
	ck_assert_int_eq(chunk_search(&search, &err), 0);
	ck_assert_uint_eq(count_unknown(entries, 8000), 7800);
	free(entries);
}
END_TEST

static struct file_chunks file_of(struct chunk_entry *entries, size_t count)
{
	return (struct file_chunks){.entries = entries, .count = count};
}

/* A term has chunks of its xorb only, not of the next one. */
static void check_within_xorb(const struct upload_plan *plan, const struct upload_term *term)
{
	const struct table_place last = {.xorb = term->xorb, .index = term->end - 1};
	struct table_place first;
	uint32_t size;
	ck_assert_uint_lt(term->first, term->end);
	if (term->is_new)
		ck_assert_uint_le(term->end, plan->xorbs[term->xorb].count);
	else
		ck_assert(chunk_table_chunk(table, last, &size, &first));
}

/* Every term leads to the file's chunks, in order. */
static void check_terms(
	const struct upload_plan *plan, const struct file_chunks *files, size_t number)
{
	size_t at = 0;
	for (size_t i = 0; i < plan->files[number].count; i++) {
		const struct upload_term *const term = &plan->terms[plan->files[number].first + i];
		uint64_t bytes = 0;
		const struct chunk_id range =
			chunk_hash_range(files[number].entries + at, term->end - term->first);
		ck_assert(chunk_id_equal(&range, &term->range));
		check_within_xorb(plan, term);
		for (uint32_t k = term->first; k < term->end; k++, at++) {
			bytes += files[number].entries[at].size;
			if (!term->is_new)
				continue;
			const struct upload_chunk *const chunk =
				&plan->chunks[plan->xorbs[term->xorb].first + k];
			ck_assert(chunk_id_equal(&files[chunk->file].entries[chunk->index].id,
				&files[number].entries[at].id));
		}
		ck_assert_uint_eq(bytes, term->bytes);
	}
	ck_assert_uint_eq(at, files[number].count);
}

START_TEST(only_what_is_missing_is_in_new_xorbs)
{
	struct chunk_entry *const entries = run(100, 50);
	for (size_t i = 20; i < 25; i++)
		entries[i] = entry_of(7000 + i);
	const struct file_chunks file = file_of(entries, 50);
	struct upload_plan plan;
	answer(100, 50, 3);
	upload_plan_make(&file, 1, table, UPLOAD_XORB_MAX_BYTES, &plan);
	ck_assert_uint_eq(plan.xorb_count, 1);
	ck_assert_uint_eq(plan.xorbs[0].count, 5);
	ck_assert_uint_eq(plan.files[0].count, 3);
	ck_assert(!plan.terms[0].is_new && plan.terms[1].is_new && !plan.terms[2].is_new);
	ck_assert_uint_eq(plan.terms[2].first, 25);
	check_terms(&plan, &file, 0);
	const struct chunk_id hash = chunk_hash_xorb(entries + 20, 5);
	ck_assert(chunk_id_equal(&hash, &plan.xorbs[0].hash));
	upload_plan_release(&plan);
	free(entries);
}
END_TEST

/* Chunks that were uploaded as two xorbs come as one file: each term ends where its xorb does. */
START_TEST(a_file_goes_on_from_the_end_of_a_xorb_to_the_next)
{
	struct chunk_entry *const entries = run(100, 20);
	const struct file_chunks file = file_of(entries, 20);
	struct upload_plan plan;
	answer(100, 10, 3);
	answer(110, 10, 3);
	upload_plan_make(&file, 1, table, UPLOAD_XORB_MAX_BYTES, &plan);
	ck_assert_uint_eq(plan.xorb_count, 0); /* the server has all chunks */
	ck_assert_uint_eq(plan.files[0].count, 2);
	check_terms(&plan, &file, 0);
	upload_plan_release(&plan);
	free(entries);
}
END_TEST

/* The second new xorb begins with the second file. */
START_TEST(a_repeated_chunk_is_found_at_the_beginning_of_a_new_xorb)
{
	struct file_chunks files[2] = {file_of(run(1, 20), 20), file_of(run(11, 3), 3)};
	struct upload_plan plan;
	upload_plan_make(files, 2, table, 10 * CHUNK_BYTES + 100, &plan);
	ck_assert_uint_eq(plan.xorb_count, 2);
	ck_assert_uint_eq(plan.xorbs[1].first, 10);
	ck_assert_uint_eq(plan.files[1].count, 1);
	const struct upload_term *const term = &plan.terms[plan.files[1].first];
	ck_assert_uint_eq(term->xorb, 1);
	ck_assert_uint_eq(term->first, 0);
	check_terms(&plan, files, 1);
	upload_plan_release(&plan);
	free(files[0].entries);
	free(files[1].entries);
}
END_TEST

START_TEST(small_holes_are_sent_again)
{
	struct chunk_entry *const entries = run(100, 50);
	entries[10] = entry_of(7000);
	entries[14] = entry_of(7001); /* 3 known chunks between new ones */
	entries[19] = entry_of(7002); /* 4 known chunks between new ones */
	const struct file_chunks file = file_of(entries, 50);
	struct upload_plan plan;
	answer(100, 50, 3);
	upload_plan_make(&file, 1, table, UPLOAD_XORB_MAX_BYTES, &plan);
	ck_assert_uint_eq(plan.xorbs[0].count, 5 + 1);
	ck_assert_uint_eq(plan.files[0].count, 5);
	check_terms(&plan, &file, 0);
	upload_plan_release(&plan);
	free(entries);
}
END_TEST

START_TEST(what_repeats_is_sent_once_and_xorbs_keep_their_limits)
{
	struct file_chunks files[3] = {
		file_of(run(1, 30), 30), file_of(run(11, 30), 30), file_of(NULL, 0)};
	struct upload_plan plan;
	upload_plan_make(files, 3, table, 9 * CHUNK_BYTES + 100, &plan);
	ck_assert_uint_eq(plan.chunk_count, 40);
	ck_assert_uint_eq(plan.xorb_count, 5);
	for (size_t i = 0; i < plan.xorb_count; i++)
		ck_assert_uint_le(plan.xorbs[i].bytes, 9 * CHUNK_BYTES + 100);
	for (size_t i = 0; i < 3; i++)
		check_terms(&plan, files, i);
	ck_assert_uint_eq(plan.files[2].count, 0);
	upload_plan_release(&plan);
	free(files[0].entries);
	free(files[1].entries);
}
END_TEST

START_TEST(a_xorb_has_at_most_8192_chunks)
{
	struct file_chunks file = file_of(run(1, 8200), 8200);
	struct upload_plan plan;
	upload_plan_make(&file, 1, table, UPLOAD_XORB_MAX_BYTES, &plan);
	ck_assert_uint_eq(plan.xorb_count, 2);
	ck_assert_uint_eq(plan.xorbs[0].count, 8192);
	check_terms(&plan, &file, 0);
	upload_plan_release(&plan);
	free(file.entries);
}
END_TEST

Suite *test_upload_plan_suite(void);
Suite *test_upload_plan_suite(void)
{
	Suite *const suite = suite_create("upload_plan");
	TCase *const tests = tcase_create("upload_plan");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 30);
	tcase_add_test(tests, an_answer_is_found_under_its_key);
	tcase_add_test(tests, nonsense_is_no_answer);
	tcase_add_test(tests, a_new_file_costs_few_questions);
	tcase_add_test(tests, a_changed_file_costs_a_question_for_each_xorb_and_finds_all);
	tcase_add_test(tests, an_island_of_an_earlier_upload_is_found);
	tcase_add_test(tests, many_edges_without_an_answer_are_asked_about_no_more);
	tcase_add_test(tests, a_known_tail_behind_much_that_is_new_is_found);
	tcase_add_test(tests, only_what_is_missing_is_in_new_xorbs);
	tcase_add_test(tests, a_file_goes_on_from_the_end_of_a_xorb_to_the_next);
	tcase_add_test(tests, a_repeated_chunk_is_found_at_the_beginning_of_a_new_xorb);
	tcase_add_test(tests, small_holes_are_sent_again);
	tcase_add_test(tests, what_repeats_is_sent_once_and_xorbs_keep_their_limits);
	tcase_add_test(tests, a_xorb_has_at_most_8192_chunks);
	suite_add_tcase(suite, tests);
	return suite;
}
