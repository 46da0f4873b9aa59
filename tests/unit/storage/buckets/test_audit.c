/* The bounds of the audit trail, and the rows that the sweeper and a revoked key take with them. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/buckets/audit.h"
#include "storage/buckets/session_row.h"
#include "storage/core/committer.h"
#include "tests/unit/storage/store_fixture.h"

enum { PRUNED_EVERY = 64 };

static struct store_fixture fixture;

static void set_up(void)
{
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

struct many {
	struct change change; /* first */
	const char *action;
	int count;
	int keys; /* by so many keys in turn */
};

static int apply_many(struct change *change, struct db *db, struct error *err)
{
	const struct many *const many = (const struct many *)change;
	struct audit_entry entry = {.time_ms = 1, .action = span_text(many->action)};
	for (int i = 0; i < many->count; i++) {
		const uint8_t key = (uint8_t)(i % many->keys);
		entry.key_id = span_of(&key, sizeof(key));
		if (audit_add(db, &entry, err) != 0)
			return -1;
	}
	return 0;
}

static void add_many(const char *action, int count, int keys)
{
	struct many many = {
		.change.apply = apply_many, .action = action, .count = count, .keys = keys};
	struct error err = {0};
	ck_assert_msg(committer_run(store_committer(fixture.store), &many.change, &err) == 0, "%s",
		err.text);
}

/* Counts the entries with the action, page by page. */
static int count(const char *action)
{
	struct audit_page *const page = arena_take(fixture.arena, sizeof(*page));
	struct error err = {0};
	int64_t before = 0;
	int found = 0;
	do {
		struct arena *const texts = arena_new(16 * 1024 * 1024);
		ck_assert_int_eq(
			audit_list(fixture.store, before, AUDIT_PAGE_MAX, texts, page, &err), 0);
		for (size_t i = 0; i < page->count; i++)
			found += span_equal_text(page->entries[i].action, action);
		before = page->count > 0 ? page->entries[page->count - 1].id : 0;
		arena_free(texts);
	} while (page->has_more);
	return found;
}

START_TEST(the_oldest_entries_go)
{
	add_many("gc", 100, 1);
	add_many("scrub", AUDIT_MAX + PRUNED_EVERY, 9);
	ck_assert_int_eq(count("gc"), 0);
	ck_assert_int_ge(count("scrub"), AUDIT_MAX);
	ck_assert_int_lt(count("scrub"), AUDIT_MAX + PRUNED_EVERY);
}
END_TEST

START_TEST(one_key_pushes_out_nothing_of_others)
{
	add_many("key_made", 20, 20);
	add_many("bucket_made", 2 * AUDIT_MAX, 1);
	ck_assert_int_ge(count("key_made"), 19);
	ck_assert_int_ge(count("bucket_made"), AUDIT_OF_KEY_MAX);
	ck_assert_int_lt(count("bucket_made"), AUDIT_OF_KEY_MAX + PRUNED_EVERY);
}
END_TEST

START_TEST(refused_sign_ins_push_out_nothing_else)
{
	add_many("key_made", 10, 1);
	add_many(AUDIT_SIGN_IN_REFUSED, 2 * AUDIT_MAX, 9);
	ck_assert_int_eq(count("key_made"), 10);
	ck_assert_int_ge(count(AUDIT_SIGN_IN_REFUSED), AUDIT_REFUSED_MAX);
	ck_assert_int_lt(count(AUDIT_SIGN_IN_REFUSED), AUDIT_REFUSED_MAX + PRUNED_EVERY);
}
END_TEST

/* A text that is cut ends with a whole character. */
START_TEST(long_texts_are_cut_between_characters)
{
	char text[AUDIT_TEXT_MAX_BYTES + 3];
	for (size_t i = 0; i + 1 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	const struct audit_entry entry = {.subject = span_of(text + 1, sizeof(text) - 2),
		.detail = span_of(text, sizeof(text) - 1)};
	const struct audit_entry copy = audit_copy(&entry, fixture.arena);
	ck_assert_uint_eq(copy.detail.len, AUDIT_TEXT_MAX_BYTES);
	ck_assert(span_is_utf8(copy.detail));
	ck_assert_uint_eq(copy.subject.len, AUDIT_TEXT_MAX_BYTES - 1);
}
END_TEST

static int apply_sessions(struct change *change, struct db *db, struct error *err)
{
	(void)change;
	struct session_record session = {.key_id = span_text("k"), .made_ms = 1, .seen_ms = 1};
	for (int i = 0; i < 4; i++) {
		session.id[0] = (uint8_t)i;
		session.ends_ms = 10 + i;
		if (session_row_add(db, &session, err) != 0)
			return -1;
	}
	bool more = false;
	if (session_row_sweep(db, 11, &more, err) != 0)
		return -1;
	ck_assert(more);
	ck_assert_int_eq(session_row_sweep(db, 11, &more, err), 0);
	ck_assert(!more);
	return session_row_bound(db, span_text("k"), 1, 100, err);
}

START_TEST(ended_sessions_are_swept_and_the_oldest_go)
{
	struct change change = {.apply = apply_sessions};
	struct session_list *const list = arena_take(fixture.arena, sizeof(*list));
	struct error err = {0};
	ck_assert_msg(
		committer_run(store_committer(fixture.store), &change, &err) == 0, "%s", err.text);
	ck_assert_int_eq(
		session_list_read(fixture.store, span_text("k"), 0, fixture.arena, list, &err), 0);
	ck_assert_uint_eq(list->count, 1);
}
END_TEST

Suite *test_audit_suite(void);
Suite *test_audit_suite(void)
{
	Suite *const suite = suite_create("audit");
	TCase *const tcase = tcase_create("audit");
	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, the_oldest_entries_go);
	tcase_add_test(tcase, refused_sign_ins_push_out_nothing_else);
	tcase_add_test(tcase, one_key_pushes_out_nothing_of_others);
	tcase_add_test(tcase, long_texts_are_cut_between_characters);
	tcase_add_test(tcase, ended_sessions_are_swept_and_the_oldest_go);
	suite_add_tcase(suite, tcase);
	return suite;
}
