#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/objects/object_list.h"
#include "storage/versions/version.h"
#include "tests/unit/storage/store_fixture.h"

enum { OTHER = 2 }; /* the number of the bucket's row */

static struct store_fixture fixture;

static const char *const keys[] = {
	"a",
	"a/",
	"a/1",
	"a/2",
	"a/b/c",
	"a/b/d",
	"a0",
	"b",
	"c//d",
	"c//e",
	"c/x",
	"\xc3\xa9",
	"\xff",
	"\xff\xff/1",
	"\xff\xff/2",
};

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "other", "main", &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "other", "a/other", span_text("x"), &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store,
				 "SELECT id FROM buckets WHERE name = CAST('other' AS BLOB)"),
		OTHER);
	for (size_t i = sizeof(keys) / sizeof(keys[0]); i-- > 0;)
		ck_assert_int_eq(
			fixture_put(fixture.store, "bucket", keys[i], span_text(keys[i]), &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

/* The expected listing, computed the slow way: keys in order, rolled up, without those up to
 * `after`. */
static size_t expected(const char *prefix, const char *delimiter, const char *after,
	const char **out, bool *out_is_prefix, char (*store)[64])
{
	size_t count = 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strncmp(keys[i], prefix, strlen(prefix)) != 0)
			continue;
		const char *const found =
			delimiter[0] == '\0' ? NULL : strstr(keys[i] + strlen(prefix), delimiter);
		memset(store[count], 0, 64);
		if (found != NULL)
			memcpy(store[count], keys[i],
				(size_t)(found - keys[i]) + strlen(delimiter));
		else
			strncpy(store[count], keys[i], 63);
		if (strcmp(store[count], after) <= 0)
			continue;
		/* nothing below a common prefix in which `after` lies is listed either */
		if (found != NULL && strncmp(after, store[count], strlen(store[count])) == 0)
			continue;
		if (count > 0 && strcmp(store[count], store[count - 1]) == 0 &&
			out_is_prefix[count - 1])
			continue;
		out[count] = store[count];
		out_is_prefix[count] = found != NULL;
		count++;
	}
	return count;
}

static const struct {
	const char *prefix;
	const char *delimiter;
	const char *after;
} listings[] = {
	{"", "", ""},
	{"", "/", ""},
	{"", "//", ""},
	{"", "b/", ""},
	{"a", "", ""},
	{"a/", "/", ""},
	{"a/", "", "a/1"},
	{"a", "/", "a/"},
	{"", "/", "a"},
	{"", "/", "a/"},
	{"", "/", "a/1"},
	{"", "/", "a/zzz"},
	{"", "/", "b"},
	{"", "", "a/b/c"},
	{"c/", "/", ""},
	{"c", "//", ""},
	{"x", "", ""},
	{"", "", "\xff\xff/2"},
	{"", "/", "\xff\xff/"},
	{"\xff", "/", ""},
	{"\xff", "", ""},
	{"a/", "/", "a"},
	{"a/", "/", "b"},
	{"a/b", "/", ""},
	{"", "\xff", ""},
	{"", "nothing", "a0"},
};

/* Every listing at every page size, continued to its end, equals the expected one. */
START_TEST(every_page_size_gives_the_same_listing)
{
	static char texts[64][64];
	const char *names[64];
	bool is_prefix[64];
	const size_t count = expected(listings[_i].prefix, listings[_i].delimiter,
		listings[_i].after, names, is_prefix, texts);
	for (size_t limit = 1; limit <= count + 1; limit++) {
		struct object_list_params params = {.bucket = bucket_named(span_text("bucket")),
			.prefix = span_text(listings[_i].prefix),
			.delimiter = span_text(listings[_i].delimiter),
			.after = span_text(listings[_i].after),
			.limit = limit};
		size_t at = 0;
		struct object_list page = {.truncated = true};
		while (page.truncated) {
			struct error err = {0};
			ck_assert_msg(object_list(fixture.store, &params, fixture.arena, &page,
					      &err) == 0,
				"%s", err.text);
			size_t entry = 0;
			size_t prefix = 0;
			for (; entry + prefix < page.entry_count + page.prefix_count; at++) {
				ck_assert_uint_lt(at, count);
				const struct span got = is_prefix[at] ? page.prefixes[prefix++]
								      : page.entries[entry++].key;
				ck_assert_msg(span_equal_text(got, names[at]), "%.*s is not %s",
					(int)got.len, (const char *)got.data, names[at]);
			}
			ck_assert_uint_eq(entry, page.entry_count);
			ck_assert(!page.truncated || entry + prefix == limit);
			params.after = page.last;
		}
		ck_assert_uint_eq(at, count);
	}
}
END_TEST

START_TEST(entries_carry_size_etag_and_time)
{
	struct error err = {0};
	struct object_list page;
	const struct object_list_params params = {
		.bucket = bucket_named(span_text("bucket")), .prefix = span_text("b"), .limit = 10};
	ck_assert_int_eq(object_list(fixture.store, &params, fixture.arena, &page, &err), 0);
	ck_assert_uint_eq(page.entry_count, 1);
	ck_assert_uint_eq(page.entries[0].size, 1);
	ck_assert_str_eq(page.entries[0].etag, "92eb5ffee6ae2fec3ad71c777531578f");
	ck_assert_int_eq(page.entries[0].modified_ms, 1700000000000);
}
END_TEST

START_TEST(limits_and_refusals)
{
	struct error err = {0};
	struct object_list page;
	struct object_list_params params = {
		.bucket = bucket_named(span_text("bucket")), .limit = 0};
	ck_assert_int_eq(object_list(fixture.store, &params, fixture.arena, &page, &err), 0);
	ck_assert(!page.truncated && page.entry_count == 0);
	params.bucket = bucket_named(span_text("absent"));
	params.limit = 10;
	ck_assert_int_eq(object_list(fixture.store, &params, fixture.arena, &page, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	params.bucket = bucket_named(span_text("bucket"));
	uint8_t *const longer = fixture_noise(100000, 1);
	params.after = span_of(longer, 100000);
	ck_assert_int_eq(object_list(fixture.store, &params, fixture.arena, &page, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	free(longer);
	params.after = (struct span){NULL, 0};
	struct arena *const small = arena_new(2048);
	params.limit = 1000;
	ck_assert_int_eq(object_list(fixture.store, &params, small, &page, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_MEMORY);
	arena_free(small);
}
END_TEST

START_TEST(deleted_and_hidden_keys_are_not_listed)
{
	struct error err = {0};
	struct object_list page;
	const struct object_list_params params = {.bucket = bucket_named(span_text("bucket")),
		.prefix = span_text("a/b/"),
		.limit = 10};
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "a/b/c", NULL, &err), 0);
	ck_assert_int_eq(object_list(fixture.store, &params, fixture.arena, &page, &err), 0);
	ck_assert_uint_eq(page.entry_count, 1);
	ck_assert(span_equal_text(page.entries[0].key, "a/b/d"));
}
END_TEST

/* The listing reads only the index, never the table. */
START_TEST(the_plan_is_one_covering_index)
{
	static const char sql[] =
		"EXPLAIN QUERY PLAN SELECT key, size, etag, modified_ms, checksum_kind, storage_class FROM versions WHERE bucket = ?1 AND key >= ?2 AND state = 1"
		" AND is_marker = 0 ORDER BY key";
	struct error err = {0};
	struct db *const db = store_reader_take(fixture.store, &err);
	struct db_statement *const statement = db_query(db, sql, &err);
	ck_assert_int_eq(db_step(statement, &err), 1);
	const struct span plan = db_column_blob(statement, 3);
	ck_assert(memmem(plan.data, plan.len, "COVERING INDEX versions_listed", 30) != NULL);
	ck_assert_int_eq(db_step(statement, &err), 0); /* nothing is sorted */
	db_reset(statement);
	store_reader_give(fixture.store, db);
}
END_TEST

/* Sums of older versions read no more rows than they count, and sort none. */
START_TEST(older_versions_are_found_by_their_index)
{
	static const char *const sqls[] = {
		"EXPLAIN QUERY PLAN SELECT key, sequence, size FROM versions WHERE bucket = ?1 AND key >= ?2 AND state = 2 ORDER BY key, sequence DESC",
		"EXPLAIN QUERY PLAN SELECT key, sequence, size FROM versions WHERE bucket = ?1 AND key = ?2 AND state = 2 AND sequence < ?3"
		" ORDER BY sequence DESC"};
	struct error err = {0};
	struct db *const db = store_reader_take(fixture.store, &err);
	struct db_statement *const statement = db_query(db, sqls[_i], &err);
	ck_assert_int_eq(db_step(statement, &err), 1);
	const struct span plan = db_column_blob(statement, 3);
	ck_assert_msg(memmem(plan.data, plan.len, "INDEX versions_older", 20) != NULL, "%.*s",
		(int)plan.len, (const char *)plan.data);
	ck_assert_int_eq(db_step(statement, &err), 0);
	db_reset(statement);
	store_reader_give(fixture.store, db);
}
END_TEST

/* Keys of a, b, / and zz, so that delimiters are found often. */
enum { RANDOM_KEY_BYTES = 12, KEYS_OF_A_CHANGE = 5000 };

struct random_key {
	uint8_t bytes[RANDOM_KEY_BYTES];
	size_t len;
};
struct random_keys {
	struct change change; /* first */
	struct random_key *keys;
	size_t count;
	size_t from;
};

static struct span key_span(const struct random_key *key)
{
	return span_of(key->bytes, key->len);
}

static int compare_keys(const void *a, const void *b)
{
	return span_compare(key_span(a), key_span(b));
}

static struct random_key *make_random_keys(size_t wanted, size_t *out_count)
{
	static const char alphabet[] = "aab//z";
	struct random_key *const list = memory_new_array(wanted, sizeof(*list));
	uint64_t state = 88172645463325252u + wanted;
	size_t count = 0;
	for (size_t i = 0; i < wanted; i++) {
		for (size_t k = 0; k < RANDOM_KEY_BYTES; k++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			list[i].bytes[k] =
				(uint8_t)alphabet[(state >> 33) % (sizeof(alphabet) - 1)];
		}
		list[i].len = 1 + (size_t)(state >> 40) % RANDOM_KEY_BYTES;
	}
	qsort(list, wanted, sizeof(*list), compare_keys);
	for (size_t i = 0; i < wanted; i++)
		if (count == 0 || compare_keys(&list[count - 1], &list[i]) != 0)
			list[count++] = list[i];
	*out_count = count;
	return list;
}

static int add_keys(struct change *change, struct db *db, struct error *err)
{
	struct random_keys *const set = (struct random_keys *)change;
	const size_t end = set->from + KEYS_OF_A_CHANGE < set->count ? set->from + KEYS_OF_A_CHANGE
								     : set->count;
	/* in another order: 7919 has no divisor in common with the count */
	for (; set->from < end; set->from++) {
		struct version version = {.bucket = OTHER,
			.key = key_span(&set->keys[(set->from * 7919) % set->count]),
			.size = 1,
			.etag = "e"};
		if (version_push(db, BUCKET_UNVERSIONED, NULL, &version, err) != 0)
			return -1;
	}
	return 0;
}

static const struct {
	size_t keys;
	const char *prefix;
	const char *delimiter;
	size_t limit;
} walks[] = {
	{1000, "", "", 1},
	{1000, "", "/", 1},
	{1000, "a", "b", 3},
	{1000, "", "z", 7},
	{1000, "a/", "//", 1000},
	{4000, "", "", 97},
	{4000, "", "/", 7},
	{4000, "b", "a", 1},
	{4000, "a", "/z", 97},
	{20000, "", "", 1000},
	{20000, "", "/", 1000},
	{20000, "a", "//", 1000},
	{20000, "", "ab", 100},
};

/* The entry of this key in the expected listing: the key, or the prefix into which it is rolled
 * up. */
static struct span plain(
	const struct random_key *key, const char *prefix, const char *delimiter, bool *out_rolled)
{
	const struct span whole = key_span(key);
	const struct span rest = span_slice(whole, strlen(prefix), whole.len);
	const uint8_t *const found = delimiter[0] == '\0' || rest.len == 0
		? NULL
		: memmem(rest.data, rest.len, delimiter, strlen(delimiter));
	*out_rolled = found != NULL;
	return found == NULL
		? whole
		: span_of(whole.data, (size_t)(found - whole.data) + strlen(delimiter));
}

/* The entries and prefixes of a page are in one order: the smaller of the two comes next. */
static struct span next_listed(
	const struct object_list *page, size_t *entry, size_t *prefix, bool *out_rolled)
{
	*out_rolled = *entry == page->entry_count ||
		(*prefix < page->prefix_count &&
			span_compare(page->prefixes[*prefix], page->entries[*entry].key) < 0);
	return *out_rolled ? page->prefixes[(*prefix)++] : page->entries[(*entry)++].key;
}

START_TEST(listings_of_random_keys_are_the_committed_set)
{
	struct error err = {0};
	struct random_keys set = {.change.apply = add_keys};
	struct object_list_params params = {.bucket = bucket_named(span_text("other")),
		.prefix = span_text(walks[_i].prefix),
		.delimiter = span_text(walks[_i].delimiter),
		.limit = walks[_i].limit};
	struct object_list page = {.truncated = true};
	uint8_t after[RANDOM_KEY_BYTES];
	size_t at = 0;
	set.keys = make_random_keys(walks[_i].keys, &set.count);
	while (set.count % 7919 == 0)
		set.count--;
	ck_assert_int_eq(fixture_delete(fixture.store, "other", "a/other", NULL, &err), 0);
	while (set.from < set.count)
		ck_assert_msg(committer_run(store_committer(fixture.store), &set.change, &err) == 0,
			"%s", err.text);
	while (page.truncated) {
		struct arena *const arena = arena_new(4 * 1024 * 1024);
		ck_assert_msg(object_list(fixture.store, &params, arena, &page, &err) == 0, "%s",
			err.text);
		ck_assert(!page.truncated || page.entry_count + page.prefix_count == params.limit);
		size_t entry = 0;
		size_t prefix = 0;
		while (entry + prefix < page.entry_count + page.prefix_count) {
			bool got_rolled = false;
			bool rolled = false;
			const struct span got = next_listed(&page, &entry, &prefix, &got_rolled);
			while (at < set.count &&
				!span_starts(key_span(&set.keys[at]), params.prefix))
				at++;
			ck_assert_uint_lt(at, set.count);
			const struct span wanted = plain(
				&set.keys[at++], walks[_i].prefix, walks[_i].delimiter, &rolled);
			ck_assert(got_rolled == rolled && span_equal(got, wanted));
			while (rolled && at < set.count &&
				span_starts(key_span(&set.keys[at]), wanted))
				at++;
		}
		memcpy(after, page.last.data, page.last.len);
		params.after = span_of(after, page.last.len);
		arena_free(arena);
	}
	while (at < set.count && !span_starts(key_span(&set.keys[at]), params.prefix))
		at++;
	ck_assert_uint_eq(at, set.count);
	free(set.keys);
}
END_TEST

Suite *test_object_list_suite(void);
Suite *test_object_list_suite(void)
{
	Suite *const suite = suite_create("object_list");
	TCase *const tests = tcase_create("object_list");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, every_page_size_gives_the_same_listing, 0,
		sizeof(listings) / sizeof(listings[0]));
	tcase_add_test(tests, entries_carry_size_etag_and_time);
	tcase_add_test(tests, limits_and_refusals);
	tcase_add_test(tests, deleted_and_hidden_keys_are_not_listed);
	tcase_add_test(tests, the_plan_is_one_covering_index);
	tcase_add_loop_test(tests, older_versions_are_found_by_their_index, 0, 2);
	tcase_add_loop_test(tests, listings_of_random_keys_are_the_committed_set, 0,
		sizeof(walks) / sizeof(walks[0]));
	suite_add_tcase(suite, tests);
	return suite;
}
