/* From a file's hash to its bytes, as a client does it: reconstruction, fetch URLs, records. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/auth/keyring.h"
#include "api/auth/xet_token.h"
#include "api/exchange/base_url.h"
#include "api/xet/fetch_token.h"
#include "base/format/json_node.h"
#include "base/little_endian.h"
#include "chunker/codec.h"
#include "storage/objects/object_read.h"
#include "storage/versions/object.h"
#include "tests/unit/api/face_fixture.h"
#include "tests/unit/storage/far_fixture.h"

enum { LEN = 700000, TOKEN_SECONDS = 36000 };

struct asked {
	struct face_fixture fixture;
	struct far_fixture far;
	struct clock_fake clock;
	const char *owner;              /* a token of the whole account */
	char *text;                     /* what "bkt/a" holds */
	char hash[CHUNK_ID_TEXT_BYTES]; /* of it */
};

static void remember_hash(struct asked *asked, const char *key)
{
	struct error err = {0};
	struct object object;
	const struct object_ref ref = {
		.bucket = bucket_named(span_text("bkt")), .key = span_text(key)};
	ck_assert_int_eq(
		object_find(asked->fixture.store, &ref, asked->fixture.arena, &object, &err), 0);
	ck_assert(object.has_file_hash);
	chunk_id_format(&object.file_hash, asked->hash);
}

/* One half is noise, the other repeats itself: records of more than one codec. */
static char *make_text(size_t len)
{
	char *const text = malloc(len + 1);
	uint64_t state = 1;
	for (size_t i = 0; i < len; i++) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		text[i] = (char)(i < len / 2 ? 1 + (state >> 40) % 250 : 'a' + i % 7);
	}
	text[len] = '\0';
	return text;
}

static void fill_fixture(struct asked *asked, size_t len)
{
	clock_fake_init(&asked->clock, INT64_C(1800000000000));
	asked->fixture.context.clock = &asked->clock.source;
	memset(asked->fixture.context.token_key, 9, sizeof(asked->fixture.context.token_key));
	asked->text = make_text(len);
	face_fixture_expect(&asked->fixture, 200, METHOD_PUT, "/bkt/a", NULL, asked->text);
	remember_hash(asked, "a");
	asked->owner = face_fixture_xet_token(
		&asked->fixture, "bkt", face_fixture_root_token, false, TOKEN_SECONDS);
	asked->fixture.token = asked->owner;
}

static void open_fixture(struct asked *asked, size_t len)
{
	*asked = (struct asked){0};
	face_fixture_open(&asked->fixture);
	fill_fixture(asked, len);
}

/* The packs lie in a far place, where no request may block. */
static void open_far(struct asked *asked, size_t len)
{
	*asked = (struct asked){0};
	face_fixture_open_far(&asked->fixture, &asked->far);
	fill_fixture(asked, len);
	face_fixture_cool(&asked->fixture);
}

static void close_fixture(struct asked *asked)
{
	free(asked->text);
	face_fixture_close(&asked->fixture);
}

/* The reply to GET /xet/<version>/reconstructions/<hash>, parsed. */
static struct json_node *reconstruct(
	struct asked *asked, const char *version, const char *const *headers)
{
	char target[200];
	snprintf(target, sizeof(target), "/xet/%s/reconstructions/%s", version, asked->hash);
	struct fake_exchange *const fake =
		face_fixture_ask(&asked->fixture, 200, METHOD_GET, target, headers, "");
	face_fixture_assert_header(fake, "Cache-Control", "private, no-store");
	struct error err = {0};
	struct json_node *const root = json_node_parse(buffer_span(&fake->body), "reply", &err);
	ck_assert_msg(root != NULL, "%s", err.text);
	fake_exchange_free(fake);
	return root;
}

static uint64_t number(const struct json_node *object, const char *name)
{
	uint64_t value = 0;
	ck_assert_msg(json_node_u64(json_node_member(object, name), &value), "%s", name);
	return value;
}

/* The path of one of our URLs; in the arena. */
static const char *target_of(struct asked *asked, const struct json_node *entry)
{
	struct span url;
	ck_assert(json_node_text(json_node_member(entry, "url"), &url));
	const char *const text = arena_text(asked->fixture.arena, url);
	ck_assert_ptr_nonnull(strstr(text, "/xet/v1/fetch/"));
	return strstr(text, "/xet/v1/fetch/");
}

/* GETs a range without credentials. The caller frees the result. */
static struct fake_exchange *fetch(
	struct asked *asked, int status, const char *target, const char *range)
{
	const char *const headers[] = {"Range", range, NULL};
	asked->fixture.token = NULL;
	struct fake_exchange *const fake = face_fixture_ask(
		&asked->fixture, status, METHOD_GET, target, range != NULL ? headers : NULL, "");
	asked->fixture.token = asked->owner;
	ck_assert(!fake->body_failed);
	return fake;
}

static void expect_fetch(struct asked *asked, int status, const char *target, const char *range)
{
	fake_exchange_free(fetch(asked, status, target, range));
}

static const char *bounds_text(struct asked *asked, const struct json_node *bounds)
{
	return arena_format(asked->fixture.arena, "bytes=%" PRIu64 "-%" PRIu64,
		number(bounds, "start"), number(bounds, "end"));
}

/* Appends the contents of all records; returns how many there are. `codecs`: the highest number
 * that may come. */
static uint64_t add_contents(struct span records, uint8_t codecs, struct buffer *out)
{
	struct codec_context *const codec = codec_context_new();
	uint64_t count = 0;
	for (size_t at = 0; at < records.len; count++) {
		const uint8_t *const record = records.data + at;
		const size_t stored = (size_t)little_endian_get(record + 1, 3);
		const size_t size = (size_t)little_endian_get(record + 5, 3);
		struct error err = {0};
		ck_assert_uint_le(record[4], codecs);
		ck_assert_uint_le(at + 8 + stored, records.len);
		uint8_t *const into = buffer_reserve(out, size);
		ck_assert_int_eq(codec_decode(codec, (enum codec)record[4],
					 span_of(record + 8, stored), into, size, &err),
			0);
		buffer_commit(out, size);
		at += 8 + stored;
	}
	codec_context_free(codec);
	return count;
}

/* The terms one after the other are the object. Each is all that is wanted from its xorb. */
static void expect_whole(struct asked *asked, const struct json_node *terms,
	const struct json_node *xorbs, bool grouped, uint8_t codecs)
{
	struct buffer out;
	buffer_init(&out, 2 * (size_t)LEN);
	ck_assert_uint_gt(json_node_count(terms), 0);
	ck_assert_uint_eq(json_node_count(terms), json_node_count(xorbs));
	for (size_t i = 0; i < json_node_count(terms); i++) {
		struct span hash;
		ck_assert(json_node_text(json_node_member(json_node_at(terms, i), "hash"), &hash));
		const struct json_node *const list =
			json_node_member(xorbs, arena_text(asked->fixture.arena, hash));
		ck_assert_uint_eq(json_node_count(list), 1);
		const struct json_node *const entry = json_node_at(list, 0);
		const struct json_node *const range =
			grouped ? json_node_at(json_node_member(entry, "ranges"), 0) : entry;
		const struct json_node *const bytes =
			json_node_member(range, grouped ? "bytes" : "url_range");
		const struct json_node *const chunks =
			json_node_member(range, grouped ? "chunks" : "range");
		struct fake_exchange *const fake =
			fetch(asked, 206, target_of(asked, entry), bounds_text(asked, bytes));
		ck_assert_uint_eq(
			fake->body.len, number(bytes, "end") - number(bytes, "start") + 1);
		ck_assert_uint_eq(add_contents(buffer_span(&fake->body), codecs, &out),
			number(chunks, "end") - number(chunks, "start"));
		fake_exchange_free(fake);
	}
	ck_assert_uint_eq(out.len, strlen(asked->text));
	ck_assert_mem_eq(out.data, asked->text, out.len);
	buffer_release(&out);
}

static void expect_file(
	struct asked *asked, const struct json_node *root, bool grouped, uint8_t codecs)
{
	expect_whole(asked, json_node_member(root, "terms"),
		json_node_member(root, grouped ? "xorbs" : "fetch_info"), grouped, codecs);
}

START_TEST(an_object_comes_back_by_its_hash)
{
	static const char *const versions[] = {"v1", "v2"};
	const bool grouped = _i % 2 == 1;
	struct asked asked;
	(_i < 2 ? open_fixture : open_far)(&asked, LEN);
	struct json_node *const root = reconstruct(&asked, versions[_i % 2], NULL);
	ck_assert_uint_eq(number(root, "offset_into_first_range"), 0);
	expect_file(&asked, root, grouped, 2);
	json_node_free(root);
	close_fixture(&asked);
}
END_TEST

START_TEST(our_own_client_gets_records_as_they_lie)
{
	static const char *const headers[] = {"x-deltabucket-codecs", "all", NULL};
	struct asked asked;
	open_fixture(&asked, LEN);
	struct json_node *const root = reconstruct(&asked, "v1", headers);
	expect_file(&asked, root, false, 66);
	json_node_free(root);
	close_fixture(&asked);
}
END_TEST

START_TEST(inline_bytes_are_a_xorb_of_one_record)
{
	struct asked asked;
	open_fixture(&asked, 300);
	struct json_node *const root = reconstruct(&asked, "v2", NULL);
	const struct json_node *const xorbs = json_node_member(root, "xorbs");
	expect_file(&asked, root, true, 0);
	void *cursor = NULL;
	struct span name;
	const struct json_node *list;
	ck_assert(json_node_each(xorbs, &cursor, &name, &list));
	const char *const target = target_of(&asked, json_node_at(list, 0));
	struct fake_exchange *const fake = fetch(&asked, 206, target, "bytes=300-");
	face_fixture_assert_header(fake, "Content-Range", "bytes 300-307/308");
	ck_assert_mem_eq(fake->body.data, asked.text + 292, 8);
	fake_exchange_free(fake);
	asked.fixture.token = face_fixture_root_token;
	face_fixture_expect(&asked.fixture, 204, METHOD_DELETE, "/bkt/a", NULL, "");
	expect_fetch(&asked, 403, target, "bytes=0-1");
	json_node_free(root);
	close_fixture(&asked);
}
END_TEST

static const struct {
	const char *range; /* of 700000 bytes */
	int status;
	uint64_t skip_and_more; /* least bytes of all terms */
} range_rows[] = {
	{"bytes=0-18446744073709551614", 200, LEN},
	{"bytes=100-200", 200, 201},
	{"bytes=699999-", 200, 1},
	{"bytes=-1", 200, 1},
	{"bytes=700000-", 416, 0},
	{"bytes=900000-18446744073709551614", 416, 0},
	{"bytes=5-4", 416, 0},
	{"bytes=a-b", 416, 0},
	{"0-5", 416, 0},
	{"bytes=0-1,3-4", 416, 0},
};

START_TEST(ranges_of_a_file)
{
	struct asked asked;
	open_fixture(&asked, LEN);
	const char *const headers[] = {"Range", range_rows[_i].range, NULL};
	char target[200];
	snprintf(target, sizeof(target), "/xet/v1/reconstructions/%s", asked.hash);
	struct fake_exchange *const fake = face_fixture_ask(
		&asked.fixture, range_rows[_i].status, METHOD_GET, target, headers, "");
	if (range_rows[_i].status == 200) {
		struct error err = {0};
		struct json_node *const root =
			json_node_parse(buffer_span(&fake->body), "reply", &err);
		const struct json_node *const terms = json_node_member(root, "terms");
		uint64_t total = 0;
		for (size_t i = 0; i < json_node_count(terms); i++)
			total += number(json_node_at(terms, i), "unpacked_length");
		ck_assert_uint_ge(total, range_rows[_i].skip_and_more);
		ck_assert_uint_lt(number(root, "offset_into_first_range"), total);
		json_node_free(root);
	}
	fake_exchange_free(fake);
	close_fixture(&asked);
}
END_TEST

START_TEST(what_cannot_be_reached_is_not_there)
{
	static const char zero[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	struct asked asked;
	char target[200];
	open_fixture(&asked, LEN);
	struct face_fixture *const fixture = &asked.fixture;
	for (int version = 1; version <= 2; version++) {
		snprintf(target, sizeof(target),
			"/xet/v%d/reconstructions/d760aaf4beb07581956e24c847c47f1abd2e419166aa68259035bc412232e9da",
			version);
		face_fixture_expect(fixture, 404, METHOD_GET, target, NULL, "");
		snprintf(target, sizeof(target), "/xet/v%d/reconstructions/abc", version);
		face_fixture_expect(fixture, 400, METHOD_GET, target, NULL, "");
		snprintf(target, sizeof(target), "/xet/v%d/reconstructions/%s", version, zero);
		face_fixture_expect_text(
			fixture, 200, METHOD_GET, target, NULL, "", "\"terms\":[]");
		static const char *const range[] = {"Range", "bytes=0-0", NULL};
		face_fixture_expect(fixture, 416, METHOD_GET, target, range, "");
	}
	snprintf(target, sizeof(target), "/xet/v1/reconstructions/%s", asked.hash);
	fixture->token = face_fixture_root_token; /* no transfer token */
	face_fixture_expect(fixture, 401, METHOD_GET, target, NULL, "");
	face_fixture_expect(fixture, 200, METHOD_PUT, "/other", NULL, "");
	fixture->token = face_fixture_xet_token(
		fixture, "other", face_fixture_root_token, false, TOKEN_SECONDS);
	face_fixture_expect(fixture, 404, METHOD_GET, target, NULL, "");
	const struct grant grant = {.bucket = span_text("bkt"),
		.prefix = span_text("b/"),
		.permissions = PERMISSION_READ | PERMISSION_WRITE};
	fixture->token =
		face_fixture_xet_token(fixture, "bkt", face_fixture_key(fixture, "main", &grant),
			false, TOKEN_SECONDS); /* may not read "a" */
	face_fixture_expect(fixture, 404, METHOD_GET, target, NULL, "");
	close_fixture(&asked);
}
END_TEST

START_TEST(head_tells_the_size)
{
	struct asked asked;
	char target[200];
	open_fixture(&asked, LEN);
	snprintf(target, sizeof(target), "/xet/v1/files/%s", asked.hash);
	struct fake_exchange *const fake =
		face_fixture_ask(&asked.fixture, 200, METHOD_HEAD, target, NULL, "");
	ck_assert(fake->exchange.reply.length_known);
	ck_assert_uint_eq(fake->exchange.reply.length, LEN);
	fake_exchange_free(fake);
	close_fixture(&asked);
}
END_TEST

START_TEST(batches_leave_out_what_is_unknown)
{
	struct asked asked;
	char target[400];
	open_fixture(&asked, LEN);
	snprintf(target, sizeof(target),
		"/xet/v1/reconstructions?file_id=%s&file_id=d760aaf4beb07581956e24c847c47f1abd2e419166aa68259035bc412232e9da&file_id=%s",
		asked.hash, asked.hash);
	struct fake_exchange *const fake =
		face_fixture_ask(&asked.fixture, 200, METHOD_GET, target, NULL, "");
	struct error err = {0};
	struct json_node *const root = json_node_parse(buffer_span(&fake->body), "reply", &err);
	ck_assert_ptr_nonnull(root);
	const struct json_node *const files = json_node_member(root, "files");
	ck_assert_uint_eq(json_node_count(files), 1);
	expect_whole(&asked, json_node_member(files, asked.hash),
		json_node_member(root, "fetch_info"), false, 2);
	json_node_free(root);
	fake_exchange_free(fake);
	face_fixture_expect(
		&asked.fixture, 400, METHOD_GET, "/xet/v1/reconstructions?file_id=abc", NULL, "");
	face_fixture_expect(&asked.fixture, 404, METHOD_GET, "/xet/v1/reconstructions", NULL, "");
	close_fixture(&asked);
}
END_TEST

/* The URL of a part in the middle of the object, in the arena, and its first and last byte. */
static const char *middle_url(struct asked *asked, uint64_t *out_first, uint64_t *out_last)
{
	static const char *const headers[] = {"Range", "bytes=200000-300000", NULL};
	struct json_node *const root = reconstruct(asked, "v1", headers);
	void *cursor = NULL;
	struct span name;
	const struct json_node *list;
	ck_assert(json_node_each(json_node_member(root, "fetch_info"), &cursor, &name, &list));
	const struct json_node *const entry = json_node_at(list, 0);
	*out_first = number(json_node_member(entry, "url_range"), "start");
	*out_last = number(json_node_member(entry, "url_range"), "end");
	const char *const target = target_of(asked, entry);
	json_node_free(root);
	return target;
}

START_TEST(a_url_permits_its_bytes_alone)
{
	struct asked asked;
	open_fixture(&asked, LEN);
	uint64_t first;
	uint64_t last;
	const char *const target = middle_url(&asked, &first, &last);
	struct arena *const arena = asked.fixture.arena;
	ck_assert_uint_gt(first, 0);
	struct fake_exchange *const whole = fetch(&asked, 200, target, NULL);
	ck_assert_uint_eq(whole->body.len, last - first + 1);
	face_fixture_assert_header(whole, "ETag", NULL);
	face_fixture_assert_header(whole, "Cache-Control", "private, max-age=1800");
	struct fake_exchange *const some = fetch(&asked, 206, target,
		arena_format(arena, "bytes=%" PRIu64 "-%" PRIu64, first + 7, first + 70006));
	ck_assert_uint_eq(some->body.len, 70000);
	ck_assert_mem_eq(some->body.data, whole->body.data + 7, 70000);
	fake_exchange_free(some);
	fake_exchange_free(whole);
	expect_fetch(&asked, 403, target,
		arena_format(arena, "bytes=%" PRIu64 "-%" PRIu64, first - 1, last));
	expect_fetch(&asked, 403, target,
		arena_format(arena, "bytes=%" PRIu64 "-%" PRIu64, first, last + 1));
	expect_fetch(&asked, 403, target, "bytes=0-0");
	expect_fetch(&asked, 416, target, "bytes=5-4");
	close_fixture(&asked);
}
END_TEST

START_TEST(several_ranges_are_one_multipart_reply)
{
	struct asked asked;
	(_i == 0 ? open_fixture : open_far)(&asked, LEN);
	uint64_t first;
	uint64_t last;
	const char *const target = middle_url(&asked, &first, &last);
	char range[200];
	snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64 ",%" PRIu64 "-%" PRIu64,
		first + 500, last, first, first + 99);
	if (_i == 1)
		face_fixture_cool(&asked.fixture);
	struct fake_exchange *const fake = fetch(&asked, 206, target, range);
	struct fake_exchange *const whole = fetch(&asked, 200, target, NULL);
	ck_assert(_i == 0 || fake->waits > 2); /* for the helper, and for two parts */
	const char *const type = fake->exchange.reply.content_type;
	ck_assert_int_eq(strncmp(type, "multipart/byteranges; boundary=", 31), 0);
	const char *const boundary = type + 31;
	ck_assert_uint_eq(fake->exchange.reply.length, fake->body.len);
	char head[400];
	int len = snprintf(head, sizeof(head),
		"--%s\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes %" PRIu64
		"-%" PRIu64 "/",
		boundary, first, first + 99);
	ck_assert_mem_eq(fake->body.data, head, len);
	const uint8_t *const data =
		(const uint8_t *)strstr((const char *)fake->body.data, "\r\n\r\n") + 4;
	ck_assert_mem_eq(data, whole->body.data, 100);
	len = snprintf(head, sizeof(head), "\r\n--%s\r\n", boundary);
	ck_assert_mem_eq(data + 100, head, len);
	len = snprintf(head, sizeof(head), "\r\n--%s--\r\n", boundary);
	const uint8_t *const end = fake->body.data + fake->body.len - len;
	ck_assert_mem_eq(end, head, len);
	ck_assert_mem_eq(end - (last - first - 499), whole->body.data + 500, last - first - 499);
	fake_exchange_free(fake);
	snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64 ",%" PRIu64 "-%" PRIu64, first,
		first + 10, first + 10, first + 99);
	expect_fetch(&asked, 416, target, range); /* they overlap */
	snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64 ",0-0", first, first + 10);
	expect_fetch(&asked, 403, target, range);
	fake_exchange_free(whole);
	close_fixture(&asked);
}
END_TEST

START_TEST(urls_end)
{
	struct asked asked;
	open_fixture(&asked, LEN);
	uint64_t first;
	uint64_t last;
	const char *const target = middle_url(&asked, &first, &last);
	const int64_t begin_ms = asked.clock.now_ms;
	asked.clock.now_ms = begin_ms + (FETCH_TOKEN_SECONDS - 1) * 1000;
	expect_fetch(&asked, 200, target, NULL);
	asked.clock.now_ms = begin_ms + FETCH_TOKEN_SECONDS * 1000;
	expect_fetch(&asked, 403, target, NULL);
	asked.clock.now_ms = begin_ms;
	expect_fetch(&asked, 200, target, NULL);
	char *const forged = arena_text(asked.fixture.arena, span_text(target));
	forged[strlen(forged) - 3] ^= 1;
	expect_fetch(&asked, 403, forged, NULL);
	expect_fetch(&asked, 403, "/xet/v1/fetch/abc", NULL);
	asked.fixture.token = face_fixture_root_token;
	face_fixture_expect(&asked.fixture, 204, METHOD_DELETE, "/bkt/a", NULL, "");
	face_fixture_expect(&asked.fixture, 204, METHOD_DELETE, "/bkt", NULL, "");
	expect_fetch(&asked, 403, target, NULL); /* the permission ends with the bucket */
	close_fixture(&asked);
}
END_TEST

/* The clock of the fixture begins at a full hour. */
START_TEST(shared_urls_are_the_same_for_all)
{
	struct asked asked;
	uint64_t first;
	uint64_t last;
	open_fixture(&asked, LEN);
	asked.fixture.context.shared_urls = true;
	const char *const target = middle_url(&asked, &first, &last);
	const struct grant grant = {.bucket = span_text("bkt"), .permissions = PERMISSION_READ};
	asked.fixture.token = face_fixture_xet_token(&asked.fixture, "bkt",
		face_fixture_key(&asked.fixture, "main", &grant), false, TOKEN_SECONDS);
	const int64_t begin_ms = asked.clock.now_ms;
	asked.clock.now_ms = begin_ms + (INT64_C(3600) - 1) * 1000;
	ck_assert_str_eq(middle_url(&asked, &first, &last), target);
	asked.clock.now_ms = begin_ms + INT64_C(3600) * 1000;
	ck_assert_str_ne(middle_url(&asked, &first, &last), target);
	struct fake_exchange *fake = fetch(&asked, 200, target, NULL);
	ck_assert_uint_eq(fake->body.len, last - first + 1);
	face_fixture_assert_header(fake, "Cache-Control", "private, max-age=3600, immutable");
	fake_exchange_free(fake);
	asked.fixture.context.shared_cache = true;
	fake = fetch(&asked, 200, target, NULL);
	face_fixture_assert_header(fake, "Cache-Control", "public, max-age=3600, immutable");
	fake_exchange_free(fake);
	asked.clock.now_ms = begin_ms + INT64_C(7200) * 1000;
	expect_fetch(&asked, 403, target, NULL);
	close_fixture(&asked);
}
END_TEST

START_TEST(shared_urls_outlive_keys_and_nothing_else)
{
	struct asked asked;
	uint64_t first;
	uint64_t last;
	open_fixture(&asked, LEN);
	struct api_context *const context = &asked.fixture.context;
	struct error err = {0};
	const char *const key = face_fixture_key(&asked.fixture, "main", NULL);
	const struct span id =
		keyring_find_token(asked.fixture.keyring, span_text(key), asked.fixture.arena)
			->key_id;
	const char *const token =
		face_fixture_xet_token(&asked.fixture, "bkt", key, false, TOKEN_SECONDS);
	const char *const of_owner = middle_url(&asked, &first, &last);
	asked.fixture.token = token;
	const char *const of_key = middle_url(&asked, &first, &last);
	context->shared_urls = true;
	const char *const target = middle_url(&asked, &first, &last);
	ck_assert_int_eq(keyring_revoke(asked.fixture.keyring, id, &err), 0);
	char reconstruction[200];
	snprintf(reconstruction, sizeof(reconstruction), "/xet/v2/reconstructions/%s", asked.hash);
	asked.fixture.token = token;
	face_fixture_expect(&asked.fixture, 401, METHOD_GET, reconstruction, NULL, "");
	expect_fetch(&asked, 403, of_key, NULL);
	expect_fetch(&asked, 200, of_owner, NULL);
	expect_fetch(&asked, 200, target, NULL);
	/* What one caller was told is never public. */
	context->shared_cache = true;
	struct fake_exchange *const fake = fetch(&asked, 200, of_owner, NULL);
	face_fixture_assert_header(fake, "Cache-Control", "private, max-age=1800");
	fake_exchange_free(fake);
	expect_fetch(&asked, 403, target, "bytes=0-0");
	char *const forged = arena_text(asked.fixture.arena, span_text(target));
	forged[strlen(forged) - 3] ^= 1;
	expect_fetch(&asked, 403, forged, NULL);
	context->shared_urls = false;
	expect_fetch(&asked, 403, target, NULL);
	context->shared_urls = true;
	asked.fixture.token = face_fixture_root_token;
	face_fixture_expect(&asked.fixture, 204, METHOD_DELETE, "/bkt/a", NULL, "");
	face_fixture_expect(&asked.fixture, 204, METHOD_DELETE, "/bkt", NULL, "");
	expect_fetch(&asked, 403, target, NULL);
	close_fixture(&asked);
}
END_TEST

START_TEST(telemetry_and_health_are_answered_at_once)
{
	struct asked asked;
	open_fixture(&asked, 10);
	asked.fixture.token = NULL;
	face_fixture_expect_text(&asked.fixture, 200, METHOD_POST, "/v1/telemetry", NULL,
		"{\"event\":\"xet_upload_summary\"}", "{}");
	face_fixture_expect_text(
		&asked.fixture, 200, METHOD_POST, "/xet/v1/telemetry", NULL, "not even JSON", "{}");
	face_fixture_expect(&asked.fixture, 200, METHOD_GET, "/xet/health", NULL, "");
	asked.fixture.token = asked.owner;
	face_fixture_expect(&asked.fixture, 404, METHOD_GET,
		"/xet/v2/file-chunk-hashes/d760aaf4beb07581956e24c847c47f1abd2e419166aa68259035bc412232e9da",
		NULL, "");
	close_fixture(&asked);
}
END_TEST

Suite *test_xet_fetch_suite(void);
Suite *test_xet_fetch_suite(void)
{
	Suite *const suite = suite_create("xet_fetch");
	TCase *const plain = tcase_create("plain");
	tcase_set_timeout(plain, 60);
	tcase_add_loop_test(plain, an_object_comes_back_by_its_hash, 0, 4);
	tcase_add_test(plain, our_own_client_gets_records_as_they_lie);
	tcase_add_test(plain, inline_bytes_are_a_xorb_of_one_record);
	tcase_add_loop_test(plain, ranges_of_a_file, 0, sizeof(range_rows) / sizeof(range_rows[0]));
	tcase_add_test(plain, what_cannot_be_reached_is_not_there);
	tcase_add_test(plain, head_tells_the_size);
	tcase_add_test(plain, batches_leave_out_what_is_unknown);
	tcase_add_test(plain, a_url_permits_its_bytes_alone);
	tcase_add_loop_test(plain, several_ranges_are_one_multipart_reply, 0, 2);
	tcase_add_test(plain, urls_end);
	tcase_add_test(plain, shared_urls_are_the_same_for_all);
	tcase_add_test(plain, shared_urls_outlive_keys_and_nothing_else);
	tcase_add_test(plain, telemetry_and_health_are_answered_at_once);
	suite_add_tcase(suite, plain);
	return suite;
}
