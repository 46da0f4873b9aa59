#include "tests/unit/api/face_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/auth/keyring.h"
#include "api/auth/xet_token.h"
#include "base/memory.h"
#include "base/thread/step_watch.h"
#include "storage/buckets/bucket.h"
#include "storage/open/store_open.h"
#include "storage/packs/pack_store.h"
#include "tests/unit/catalog_seed.h"
#include "tests/unit/storage/far_fixture.h"

const char face_fixture_root_token[] = "root-token-of-the-tests";

static const uint8_t master_key[32] = {7};

enum { PATH_BYTES = 4096 };

static void open_in(struct face_fixture *fixture);

static void open_store(struct face_fixture *fixture)
{
	struct error err = {0};
	const struct store_options options = {.folder = fixture->folder,
		.files = fixture->files,
		.open_backend = fixture->far != NULL ? far_fixture_open : NULL,
		.backend_owner = fixture->far,
		.pack_open_ms = 1,
		.xet = {.upload_promise_ms = 3600000, .answer_promise_ms = 3600000}};
	fixture->store = store_open(&options, &err);
	ck_assert_msg(fixture->store != NULL, "%s", err.text);
	fixture->keyring = keyring_open(fixture->store, master_key, &err);
	ck_assert_msg(fixture->keyring != NULL, "%s", err.text);
}

static void add_key(struct face_fixture *fixture, const struct keyring_new_key *key,
	struct keyring_made_key *made)
{
	struct error err = {0};
	ck_assert_msg(keyring_add(fixture->keyring, key, fixture->arena, made, &err) == 0, "%s",
		err.text);
}

void face_fixture_open(struct face_fixture *fixture)
{
	*fixture = (struct face_fixture){.folder = unit_scratch_make()};
	open_in(fixture);
}

void face_fixture_open_far(struct face_fixture *fixture, struct far_fixture *far)
{
	*fixture = (struct face_fixture){.folder = unit_scratch_make(), .far = far};
	*far = (struct far_fixture){.folder = memory_new(PATH_BYTES)};
	snprintf((char *)(uintptr_t)far->folder, PATH_BYTES, "%s/far", fixture->folder);
	open_in(fixture);
}

static void open_in(struct face_fixture *fixture)
{
	catalog_seed(fixture->folder);
	fixture->arena = arena_new(1024 * 1024);
	open_store(fixture);
	fixture->context = (struct api_context){.store = fixture->store,
		.keyring = fixture->keyring,
		.clock = clock_system(),
		.region = "us-east-1",
		.default_namespace = "main",
		.put_max_bytes = (uint64_t)5 << 30,
		.sigv2 = true,
		.stopping = &fixture->stopping};
	const struct keyring_new_key root = {.name = "root",
		.namespace = "main",
		.is_root = true,
		.id = "ROOTKEYOFTHETESTS000",
		.secret = "secret-of-the-root-key-of-the-tests-0000",
		.token = face_fixture_root_token};
	struct keyring_made_key made;
	add_key(fixture, &root, &made);
	fixture->token = face_fixture_root_token;
	face_fixture_expect(fixture, 200, METHOD_PUT, "/bkt", NULL, NULL);
}

static void close_store(struct face_fixture *fixture)
{
	step_watch_wake_all(store_step_watch(fixture->store));
	keyring_close(fixture->keyring);
	store_close(fixture->store);
}

void face_fixture_reopen(struct face_fixture *fixture, const struct file_ops *files)
{
	close_store(fixture);
	fixture->files = files;
	open_store(fixture);
	fixture->context.store = fixture->store;
	fixture->context.keyring = fixture->keyring;
}

void face_fixture_cool(struct face_fixture *fixture)
{
	far_fixture_play_reactor(fixture->far, false);
	for (int i = 0; i < 2000 && pack_store_shared_waits(store_packs(fixture->store)); i++)
		usleep(5000);
	ck_assert(!pack_store_shared_waits(store_packs(fixture->store)));
	face_fixture_reopen(fixture, fixture->files);
	far_fixture_cool(fixture->far);
	far_fixture_play_reactor(fixture->far, true);
}

void face_fixture_close(struct face_fixture *fixture)
{
	if (fixture->far != NULL)
		far_fixture_play_reactor(fixture->far, false);
	close_store(fixture);
	if (fixture->far != NULL)
		free((char *)(uintptr_t)fixture->far->folder);
	arena_free(fixture->arena);
	unit_scratch_remove(fixture->folder);
}

const char *face_fixture_key(
	struct face_fixture *fixture, const char *namespace, const struct grant *grant)
{
	const struct keyring_new_key key = {
		.namespace = namespace, .grants = grant, .grant_count = grant != NULL ? 1 : 0};
	struct keyring_made_key made;
	add_key(fixture, &key, &made);
	return made.token;
}

const char *face_fixture_xet_token(struct face_fixture *fixture, const char *bucket,
	const char *bearer, bool is_write, int64_t seconds)
{
	struct error err = {0};
	struct bucket found;
	const int64_t now_s = fixture->context.clock->wall_ms(fixture->context.clock) / 1000;
	struct fake_exchange *const fake =
		fake_exchange_new(&fixture->context, METHOD_GET, "/xet/v1/x");
	ck_assert_int_eq(bucket_find(fixture->store, bucket_named(span_text(bucket)),
				 fixture->arena, &found, &err),
		0);
	struct xet_token token = {
		.bucket_id = found.id, .is_write = is_write, .expires_s = now_s + seconds};
	if (bearer != NULL)
		token.key_id =
			keyring_find_token(fixture->keyring, span_text(bearer), fixture->arena)
				->key_id;
	const char *const text =
		arena_text(fixture->arena, span_text(xet_token_print(&fake->exchange, &token)));
	fake_exchange_free(fake);
	return text;
}

const char *face_fixture_revoked_key(struct face_fixture *fixture, const char *namespace)
{
	const struct keyring_new_key key = {.namespace = namespace};
	struct keyring_made_key made;
	struct error err = {0};
	add_key(fixture, &key, &made);
	ck_assert_msg(
		keyring_revoke(fixture->keyring, span_text(made.id), &err) == 0, "%s", err.text);
	return made.token;
}

struct fake_exchange *face_fixture_ask_any(struct face_fixture *fixture, enum method method,
	const char *target, const char *const *headers, const char *body)
{
	struct fake_exchange *const fake = fake_exchange_new(&fixture->context, method, target);
	if (fixture->token != NULL)
		fake_exchange_add(fake, "Authorization",
			arena_format(fixture->arena, "Bearer %s", fixture->token));
	for (size_t i = 0; headers != NULL && headers[i] != NULL; i += 2)
		fake_exchange_add(fake, headers[i], headers[i + 1]);
	fake_exchange_run(fake, span_text(body));
	return fake;
}

struct fake_exchange *face_fixture_ask(struct face_fixture *fixture, int status, enum method method,
	const char *target, const char *const *headers, const char *body)
{
	struct fake_exchange *const fake =
		face_fixture_ask_any(fixture, method, target, headers, body);
	const int got = fake->exchange.reply.status;
	ck_assert_msg(got == status, "%s answered %d, not %d: %s", target, got, status,
		buffer_text(&fake->body));
	return fake;
}

void face_fixture_expect(struct face_fixture *fixture, int status, enum method method,
	const char *target, const char *const *headers, const char *body)
{
	fake_exchange_free(face_fixture_ask(fixture, status, method, target, headers, body));
}

void face_fixture_expect_text(struct face_fixture *fixture, int status, enum method method,
	const char *target, const char *const *headers, const char *body, const char *text)
{
	struct fake_exchange *const fake =
		face_fixture_ask(fixture, status, method, target, headers, body);
	face_fixture_assert_holds(fake, text);
	fake_exchange_free(fake);
}

void face_fixture_assert_header(
	const struct fake_exchange *fake, const char *name, const char *value)
{
	const char *const got = fake_exchange_reply_header(fake, name);
	if (value == NULL)
		ck_assert_msg(got == NULL, "%s is there: %s", name, got);
	else
		ck_assert_msg(got != NULL && strcmp(got, value) == 0, "%s is \"%s\", not \"%s\"",
			name, got != NULL ? got : "(absent)", value);
}

void face_fixture_assert_body(const struct fake_exchange *fake, const char *text)
{
	ck_assert(!fake->body_failed);
	ck_assert_str_eq(buffer_text(&fake->body), text);
}

void face_fixture_assert_holds(const struct fake_exchange *fake, const char *text)
{
	ck_assert_msg(strstr(buffer_text(&fake->body), text) != NULL, "\"%s\" is not in: %s", text,
		buffer_text(&fake->body));
}

void face_fixture_assert_lacks(const struct fake_exchange *fake, const char *text)
{
	ck_assert_msg(strstr(buffer_text(&fake->body), text) == NULL, "\"%s\" is in: %s", text,
		buffer_text(&fake->body));
}
