/* Public is a grant to everyone, from the bucket's ACL or its policy. The Hub's face writes the
 * ACL. So making a bucket public fails when ACLs are blocked or ignored, and making it private
 * fails when its policy would keep it public. */
#include "api/hub/hub_visibility.h"

#include "storage/buckets/bucket_grant.h"

static int read_private(
	const struct json_node *node, struct hub_visibility *out, struct error *err);
static int check_public(struct exchange *exchange, struct bucket_ref bucket, struct error *err);
static int find_block(
	struct exchange *exchange, struct bucket_ref bucket, unsigned *out_bits, struct error *err);
static int check_private(struct exchange *exchange, struct bucket_ref ref, struct error *err);

int hub_visibility_read(
	const struct json_node *request, struct hub_visibility *out, struct error *err)
{
	const struct json_node *const node = json_node_member(request, "visibility");
	struct span text;
	*out = (struct hub_visibility){0};
	if (read_private(json_node_member(request, "private"), out, err) != 0)
		return -1;
	if (node == NULL || json_node_is_null(node))
		return 0;
	if (!json_node_text(node, &text) ||
		!(span_equal_text(text, "public") || span_equal_text(text, "private")))
		return error_set(err, ERROR_INVALID,
			"The member \"visibility\" must be \"public\" or \"private\".");
	const bool is_public = span_equal_text(text, "public");
	if (out->given && out->is_public != is_public)
		return error_set(err, ERROR_INVALID,
			"The members \"private\" and \"visibility\" contradict each other: send one of them.");
	*out = (struct hub_visibility){.given = true, .is_public = is_public};
	return 0;
}

struct bucket_edit hub_visibility_edit(bool is_public, struct bucket_grant grants[1])
{
	grants[0] = bucket_grant_public_read();
	return (struct bucket_edit){.replaces_grants = BUCKET_GRANTS_OF_ACL,
		.grants = grants,
		.grant_count = is_public ? 1 : 0};
}

int hub_visibility_check(
	struct exchange *exchange, struct bucket_ref bucket, bool is_public, struct error *err)
{
	return is_public ? check_public(exchange, bucket, err)
			 : check_private(exchange, bucket, err);
}

int hub_visibility_find(
	struct exchange *exchange, int64_t bucket, bool *out_public, struct error *err)
{
	/* asked one by one, because different statements of a policy may give them */
	static const unsigned needed[] = {PERMISSION_READ, PERMISSION_LIST};
	*out_public = true;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]) && *out_public; i++) {
		const struct bucket_question question = {
			.bucket = bucket, .permissions = needed[i]};
		if (bucket_grant_allows(exchange->context->store, &question, out_public, err) != 0)
			return -1;
	}
	return 0;
}

static int read_private(const struct json_node *node, struct hub_visibility *out, struct error *err)
{
	bool is_private;
	if (node == NULL || json_node_is_null(node))
		return 0;
	if (!json_node_bool(node, &is_private))
		return error_set(
			err, ERROR_INVALID, "The member \"private\" must be true or false.");
	*out = (struct hub_visibility){.given = true, .is_public = !is_private};
	return 0;
}

static int check_public(struct exchange *exchange, struct bucket_ref bucket, struct error *err)
{
	struct span ownership;
	unsigned block;
	if (find_block(exchange, bucket, &block, err) != 0 ||
		bucket_document_find(exchange->context->store, bucket, BUCKET_OWNERSHIP,
			exchange->arena, &ownership, err) != 0)
		return -1;
	if ((block & (BLOCK_PUBLIC_ACLS | IGNORE_PUBLIC_ACLS)) != 0)
		return error_set(err, ERROR_DENIED,
			"Public access is blocked by the PublicAccessBlock setting of the bucket.");
	if (span_equal_text(ownership, "BucketOwnerEnforced"))
		return error_set(err, ERROR_INVALID_REQUEST,
			"The bucket takes no ACLs (BucketOwnerEnforced), so it cannot be made public here.");
	return 0;
}

static int find_block(
	struct exchange *exchange, struct bucket_ref bucket, unsigned *out_bits, struct error *err)
{
	struct span document;
	if (bucket_document_find(exchange->context->store, bucket, BUCKET_PUBLIC_ACCESS,
		    exchange->arena, &document, err) != 0)
		return -1;
	*out_bits = document.len == 1 ? document.data[0] : 0;
	return 0;
}

static int check_private(struct exchange *exchange, struct bucket_ref ref, struct error *err)
{
	struct store *const store = exchange->context->store;
	const unsigned needed = bucket_grant_public_read().permissions;
	struct bucket bucket;
	struct bucket_grants listed;
	unsigned block;
	if (bucket_find(store, ref, exchange->arena, &bucket, err) != 0 ||
		find_block(exchange, ref, &block, err) != 0 ||
		bucket_grant_list(store, bucket.id, BUCKET_GRANTS_OF_POLICY, exchange->arena,
			&listed, err) != 0)
		return -1;
	for (size_t i = 0; i < listed.count && (block & RESTRICT_PUBLIC_BUCKETS) == 0; i++)
		if (listed.grants[i].account.len == 0 && listed.grants[i].prefix.len == 0 &&
			(listed.grants[i].permissions & needed) != 0)
			return error_set(err, ERROR_INVALID_REQUEST,
				"The bucket's policy opens it to everyone; it stays public until that policy is removed.");
	return 0;
}
