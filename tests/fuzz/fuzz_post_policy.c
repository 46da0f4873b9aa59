/* The JSON of an upload form's policy, judged on a small form. What it lets pass names the bucket,
 * and every field: a further field that the policy does not speak of makes it fail. */
#include "api/s3/post/post_policy.h"

#include <string.h>

#include "base/encode.h"

enum { TEXT_MAX_BYTES = 1024 * 1024, ARENA_BYTES = 16 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int check(struct span text, const struct post_form *form, struct error *err)
{
	struct post_policy policy;
	const int outcome = post_policy_check(
		text, form, span_text("bucket"), INT64_C(1770000000000), &policy, err);
	ASSERT(outcome == 0 || err->kind == ERROR_INVALID || err->kind == ERROR_DENIED);
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct post_form form;
	struct buffer text;
	struct error err = {0};
	struct arena *const arena = arena_new(ARENA_BYTES);
	form.count = 0;
	post_form_add(&form, arena, span_text("key"), span_text("a/b"), &err);
	post_form_add(&form, arena, span_text("acl"), span_text("private"), &err);
	post_form_add(&form, arena, span_text("Policy"), span_text("x"), &err);
	buffer_init(&text, TEXT_MAX_BYTES);
	encode_base64(span_of(data, len), &text);
	if (!buffer_failed(&text) && check(buffer_span(&text), &form, &err) == 0) {
		ASSERT(memmem(data, len, "expiration", 10) != NULL ||
			memchr(data, '\\', len) != NULL);
		post_form_add(&form, arena, span_text("q"), span_text("1"), &err);
		if (memchr(data, 'q', len) == NULL && memchr(data, 'Q', len) == NULL &&
			memchr(data, '\\', len) == NULL)
			ASSERT(check(buffer_span(&text), &form, &err) == -1);
	}
	check(span_of(data, len), &form, &err);
	buffer_release(&text);
	arena_free(arena);
	return 0;
}
