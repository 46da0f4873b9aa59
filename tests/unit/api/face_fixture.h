/* A store in a scratch folder, a root key and the means to ask the faces anything through the
 * router: what the tests of both protocol faces share. */
#ifndef TESTS_UNIT_API_FACE_FIXTURE_H
#define TESTS_UNIT_API_FACE_FIXTURE_H

#include "storage/buckets/account.h"
#include "tests/unit/api/fake_exchange.h"
#include "tests/unit/unit.h"

struct face_fixture {
	char *folder;
	struct store *store;
	struct keyring *keyring;
	struct arena *arena;
	struct api_context context;
	_Atomic bool stopping;
	const struct file_ops *files; /* the store's; NULL: the real ones */
	const char *token;            /* what requests carry; NULL: anonymous */
};

extern const char face_fixture_root_token[];

/* With bucket "bkt", made through S3, of the root key's namespace "main". */
void face_fixture_open(struct face_fixture *fixture);
/* The same store on these files, which must outlive it. */
void face_fixture_reopen(struct face_fixture *fixture, const struct file_ops *files);
void face_fixture_close(struct face_fixture *fixture);
/* A key of an account, for everything that is the account's (no grant) or for one grant; its
 * token. */
const char *face_fixture_key(
	struct face_fixture *fixture, const char *namespace, const struct grant *grant);

/* A token of the Xet face for a bucket, of the key with this bearer token (NULL: anonymous), that
 * is over in so many seconds. In the arena. */
const char *face_fixture_xet_token(struct face_fixture *fixture, const char *bucket,
	const char *bearer, bool is_write, int64_t seconds);
/* One of an account that was taken back; its token. */
const char *face_fixture_revoked_key(struct face_fixture *fixture, const char *namespace);

/* Asks, whatever the status. `headers` and who frees as below. */
struct fake_exchange *face_fixture_ask_any(struct face_fixture *fixture, enum method method,
	const char *target, const char *const *headers, const char *body);
/* Asks and asserts the status. `headers` are names and values in turn, ended by NULL; NULL: none.
 * The caller reads the reply and frees the fake. */
struct fake_exchange *face_fixture_ask(struct face_fixture *fixture, int status, enum method method,
	const char *target, const char *const *headers, const char *body);
/* The same for who only wants the status. */
void face_fixture_expect(struct face_fixture *fixture, int status, enum method method,
	const char *target, const char *const *headers, const char *body);
/* Also asserts that the reply's body holds `text`. */
void face_fixture_expect_text(struct face_fixture *fixture, int status, enum method method,
	const char *target, const char *const *headers, const char *body, const char *text);

/* NULL: absent */
void face_fixture_assert_header(
	const struct fake_exchange *fake, const char *name, const char *value);
/* the whole body */
void face_fixture_assert_body(const struct fake_exchange *fake, const char *text);
void face_fixture_assert_holds(const struct fake_exchange *fake, const char *text);
void face_fixture_assert_lacks(const struct fake_exchange *fake, const char *text);

#endif
