/* What readers that follow the table of replicas learn: all that changed since they looked last,
 * each replica once, and nothing else. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "storage/run_tables/replica_table.h"

enum {
	RUN = 7,
	OTHER = 9,
	LEASE_MS = 60000,
	DOCUMENT_MAX = 4096,
	ROOM = 8,
	MANY = 5000,
	PIECE = 200
};

static struct replica_table *table;
static struct clock_fake fake;
static struct arena *arena;

static void set_up(void)
{
	clock_fake_init(&fake, 1000000);
	table = replica_table_new(&fake.source);
	arena = arena_new(16 * 1024 * 1024);
}

static void tear_down(void)
{
	replica_table_free(table);
	arena_free(arena);
}

static void put(int64_t run, const char *id, uint64_t step)
{
	struct buffer document;
	struct error err = {0};
	bool saved;
	const struct replica_message said = {
		.state = REPLICA_READY, .has_step = true, .step = step};
	buffer_init(&document, DOCUMENT_MAX);
	replica_message_print_request(&said, &document);
	const struct replica_row row = {.run = run,
		.id = span_text(id),
		.document = buffer_span(&document),
		.lease_ms = LEASE_MS};
	ck_assert_int_eq(replica_table_put(table, &row, &said, &saved, &err), 0);
	buffer_release(&document);
}

static uint64_t now(int64_t run)
{
	uint64_t of_all;
	return replica_table_last_change(table, run, &of_all);
}

/* The ids in the order in which they are read, with spaces between. */
static const char *changed(struct replica_changes *changes)
{
	static char text[256];
	struct replica_entry entries[ROOM];
	replica_table_changed(table, changes, arena, entries);
	text[0] = '\0';
	for (size_t i = 0; i < changes->count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s%s",
			i > 0 ? " " : "", (int)entries[i].row.id.len,
			(const char *)entries[i].row.id.data, entries[i].expired ? "!" : "");
	return text;
}

static const char *changed_since(uint64_t after)
{
	struct replica_changes changes = {
		.run = RUN, .after = after, .until = UINT64_MAX, .limit = ROOM};
	return changed(&changes);
}

static size_t removed_since(int64_t run, uint64_t after, struct span *ids)
{
	struct replica_changes changes = {
		.run = run, .after = after, .until = UINT64_MAX, .limit = ROOM};
	ck_assert(replica_table_removed(table, &changes, arena, ids));
	return changes.count;
}

START_TEST(each_replica_that_changed_comes_once_in_order)
{
	put(RUN, "a", 1);
	put(RUN, "b", 1);
	const uint64_t seen = now(RUN);
	ck_assert_str_eq(changed_since(0), "a b");
	ck_assert_str_eq(changed_since(seen), "");
	put(RUN, "c", 1);
	put(RUN, "a", 1);
	put(RUN, "c", 2);
	put(OTHER, "z", 2);
	ck_assert_str_eq(changed_since(seen), "a c");
	ck_assert_str_eq(changed_since(0), "b a c");
	ck_assert_uint_gt(now(OTHER), now(RUN));
	ck_assert_uint_eq(now(OTHER + 1), 0);
}
END_TEST

START_TEST(pages_go_on_where_the_last_one_ended)
{
	struct replica_changes changes = {.run = RUN, .until = UINT64_MAX, .limit = 2};
	put(RUN, "a", 1);
	put(RUN, "b", 1);
	put(RUN, "c", 1);
	ck_assert_str_eq(changed(&changes), "a b");
	ck_assert(changes.has_more);
	put(RUN, "a", 2); /* moves behind the reader's place */
	ck_assert_str_eq(changed(&changes), "c a");
	ck_assert(!changes.has_more);
	ck_assert_str_eq(changed(&changes), "");
}
END_TEST

START_TEST(the_end_of_a_lease_is_one_change)
{
	put(RUN, "a", 1);
	const uint64_t seen = now(RUN);
	replica_table_note_expired(table);
	ck_assert_str_eq(changed_since(seen), "");
	fake.now_ms += LEASE_MS;
	replica_table_note_expired(table);
	ck_assert_str_eq(changed_since(seen), "a!");
	const uint64_t told = now(RUN);
	replica_table_note_expired(table);
	ck_assert_str_eq(changed_since(told), "");
	put(RUN, "a", 1);
	ck_assert_str_eq(changed_since(told), "a");
	fake.now_ms += LEASE_MS;
	replica_table_note_expired(table);
	ck_assert_str_eq(changed_since(told), "a!");
}
END_TEST

START_TEST(removals_are_told_unless_the_replica_is_back)
{
	struct span ids[ROOM];
	put(RUN, "a", 1);
	put(RUN, "b", 1);
	put(OTHER, "a", 1);
	const uint64_t seen = now(OTHER);
	replica_table_remove(table, RUN, span_text("a"));
	replica_table_remove(table, RUN, span_text("b"));
	put(RUN, "b", 2);
	ck_assert_uint_eq(removed_since(RUN, seen, ids), 1);
	ck_assert(span_equal_text(ids[0], "a"));
	ck_assert_uint_eq(removed_since(OTHER, seen, ids), 0);
	ck_assert_uint_eq(removed_since(RUN, now(RUN), ids), 0);
	ck_assert_str_eq(changed_since(seen), "b");
}
END_TEST

START_TEST(a_reader_too_far_behind_is_told)
{
	struct span ids[ROOM];
	char id[16];
	uint64_t of_all;
	put(RUN, "a", 1);
	const uint64_t seen = now(RUN);
	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "r%d", i);
		put(OTHER, id, 1);
		replica_table_remove(table, OTHER, span_text(id));
	}
	struct replica_changes changes = {
		.run = RUN, .after = seen, .until = UINT64_MAX, .limit = ROOM};
	ck_assert(!replica_table_removed(table, &changes, arena, ids));
	/* one whose run stayed the same knows that, and goes on from the end */
	ck_assert_uint_eq(replica_table_last_change(table, RUN, &of_all), seen);
	changes.after = of_all;
	ck_assert(replica_table_removed(table, &changes, arena, ids));
	ck_assert_uint_eq(changes.count, 0);
}
END_TEST

/* How many runs moved, at most `limit`. */
static size_t moved(struct replica_changes *changes, size_t limit, int64_t *runs)
{
	changes->limit = limit;
	changes->until = UINT64_MAX;
	replica_table_moved(table, changes, runs);
	return changes->count;
}

START_TEST(a_repeated_report_moves_no_run)
{
	int64_t runs[ROOM];
	struct replica_changes changes = {.after = 0};
	put(RUN, "a", 1);
	put(OTHER, "a", 1);
	ck_assert_uint_eq(moved(&changes, ROOM, runs), 2);
	ck_assert(runs[0] == RUN && runs[1] == OTHER);
	ck_assert_uint_eq(changes.after, replica_table_last_move(table));
	put(RUN, "a", 1);
	ck_assert_uint_eq(moved(&changes, ROOM, runs), 0);
	put(RUN, "a", 2);
	put(OTHER, "b", 1);
	put(RUN, "b", 2);
	ck_assert_uint_eq(moved(&changes, 1, runs), 1);
	ck_assert(runs[0] == OTHER && changes.has_more);
	ck_assert_uint_eq(moved(&changes, ROOM, runs), 1);
	ck_assert(runs[0] == RUN);
	replica_table_remove(table, RUN, span_text("a"));
	ck_assert_uint_eq(moved(&changes, ROOM, runs), 1);
	replica_table_remove_run(table, RUN);
	ck_assert_uint_eq(moved(&changes, ROOM, runs), 0);
}
END_TEST

START_TEST(what_changes_while_a_reader_reads_is_for_the_next_time)
{
	int64_t runs[ROOM];
	struct span ids[ROOM];
	put(RUN, "a", 1);
	put(RUN, "b", 1);
	const uint64_t until = now(RUN);
	put(RUN, "a", 2);
	replica_table_remove(table, RUN, span_text("b"));
	struct replica_changes changes = {.run = RUN, .until = until, .limit = ROOM};
	ck_assert_str_eq(changed(&changes), "");
	ck_assert(!changes.has_more);
	ck_assert(replica_table_removed(table, &changes, arena, ids) && changes.count == 0);
	replica_table_moved(table, &changes, runs);
	ck_assert_uint_eq(changes.count, 0);
	changes.until = now(RUN);
	ck_assert_str_eq(changed(&changes), "a");
}
END_TEST

START_TEST(a_fleet_is_counted_around_the_step_to_serve)
{
	struct replica_fleet fleet;
	put(RUN, "a", 3);
	put(RUN, "b", 5);
	put(RUN, "c", 6);
	replica_table_fleet(table, RUN, 5, &fleet);
	ck_assert_uint_eq(fleet.counts.states[REPLICA_READY], 3);
	ck_assert_uint_eq(fleet.counts.oldest, 3);
	ck_assert_uint_eq(fleet.newest, 6);
	ck_assert_uint_eq(fleet.behind, 1);
	fake.now_ms += LEASE_MS;
	put(RUN, "c", 7);
	replica_table_fleet(table, RUN, 5, &fleet);
	ck_assert_uint_eq(fleet.counts.expired, 2);
	ck_assert(fleet.counts.oldest == 7 && fleet.newest == 7 && fleet.behind == 0);
	replica_table_fleet(table, OTHER, 5, &fleet);
	ck_assert(!fleet.counts.has_oldest && fleet.counts.expired == 0);
}
END_TEST

START_TEST(a_lease_that_ends_counts_at_once_and_is_a_change)
{
	struct replica_fleet fleet;
	uint64_t of_all;
	put(RUN, "a", 3);
	fake.now_ms += LEASE_MS / 2;
	put(RUN, "b", 5);
	put(OTHER, "c", 5);
	put(RUN, "a", 3); /* its lease now ends with the others */
	fake.now_ms += LEASE_MS / 2;
	put(RUN, "b", 5);
	replica_table_fleet(table, RUN, 5, &fleet);
	ck_assert_uint_eq(fleet.counts.expired, 0);
	fake.now_ms += LEASE_MS / 2;
	const uint64_t seen = replica_table_last_change(table, RUN, &of_all);
	replica_table_fleet(table, RUN, 5, &fleet);
	ck_assert(fleet.counts.expired == 1 && fleet.counts.states[REPLICA_READY] == 1);
	ck_assert(fleet.counts.oldest == 5 && fleet.behind == 0);
	ck_assert_str_eq(changed_since(seen), "a!");
	ck_assert_uint_eq(replica_table_count(table), 1);
	replica_table_remove(table, RUN, span_text("a"));
	replica_table_remove_run(table, OTHER);
	replica_table_fleet(table, RUN, 5, &fleet);
	ck_assert(fleet.counts.expired == 0 && fleet.counts.states[REPLICA_READY] == 1);
	ck_assert_uint_eq(replica_table_count(table), 1);
}
END_TEST

/* Reads all that changed in pieces. Returns how many replicas there were. */
static size_t read_in_pieces(uint64_t after, size_t *out_looked_at)
{
	struct replica_entry *const entries = arena_take_array(arena, PIECE, sizeof(*entries));
	struct replica_changes changes = {
		.run = RUN, .after = after, .until = now(RUN), .limit = PIECE, .has_more = true};
	size_t told = 0;
	*out_looked_at = 0;
	while (changes.has_more) {
		replica_table_changed(table, &changes, arena, entries);
		told += changes.count;
		*out_looked_at += changes.looked_at;
	}
	return told;
}

START_TEST(a_piece_costs_what_it_holds)
{
	char id[16];
	size_t looked_at;
	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "r%d", i);
		put(RUN, id, 1);
	}
	/* each piece looks at one more than it has */
	ck_assert_uint_eq(read_in_pieces(0, &looked_at), MANY);
	ck_assert_uint_le(looked_at, MANY + MANY / PIECE);
	/* all have reported again, some times: their old places are empty now */
	for (int i = 0; i < 4 * MANY - 1000; i++) {
		snprintf(id, sizeof(id), "r%d", i % MANY);
		put(RUN, id, 2);
	}
	ck_assert_uint_eq(read_in_pieces(0, &looked_at), MANY);
	ck_assert_uint_le(looked_at, 2 * MANY + MANY / PIECE + 1);
	/* one that is up to date looks only at what came later */
	const uint64_t seen = now(RUN);
	put(RUN, "r0", 3);
	ck_assert_uint_eq(read_in_pieces(seen, &looked_at), 1);
	ck_assert_uint_eq(looked_at, 1);
}
END_TEST

Suite *test_replica_changes_suite(void);
Suite *test_replica_changes_suite(void)
{
	Suite *const suite = suite_create("replica_changes");
	TCase *const tests = tcase_create("replica_changes");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, each_replica_that_changed_comes_once_in_order);
	tcase_add_test(tests, pages_go_on_where_the_last_one_ended);
	tcase_add_test(tests, the_end_of_a_lease_is_one_change);
	tcase_add_test(tests, removals_are_told_unless_the_replica_is_back);
	tcase_add_test(tests, a_reader_too_far_behind_is_told);
	tcase_add_test(tests, a_repeated_report_moves_no_run);
	tcase_add_test(tests, what_changes_while_a_reader_reads_is_for_the_next_time);
	tcase_add_test(tests, a_fleet_is_counted_around_the_step_to_serve);
	tcase_add_test(tests, a_lease_that_ends_counts_at_once_and_is_a_change);
	tcase_add_test(tests, a_piece_costs_what_it_holds);
	suite_add_tcase(suite, tests);
	return suite;
}
