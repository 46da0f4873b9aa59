#include "api/objects/view_wait.h"

enum { KEYS_MAX = 16, HEADER_MAX_BYTES = 8 * 1024 };

int view_wait_look(
	struct anchor_wait *wait, struct bucket_ref bucket, struct span key, struct error *err)
{
	anchor_wait_look(wait);
	return run_find_view(wait->wait.exchange->context->store, bucket, key, &wait->anchor, err);
}

int view_wait_tell(
	struct exchange *exchange, struct bucket_ref bucket, struct span prefix, struct error *err)
{
	struct span keys[KEYS_MAX];
	size_t count;
	struct buffer text;
	const struct run_pending_scan scan = {
		.bucket = bucket, .prefix = prefix, .limit = KEYS_MAX};
	if (run_list_pending(exchange->context->store, &scan, exchange->arena, keys, &count, err) !=
		0)
		return -1;
	ASSERT(count <= KEYS_MAX);
	if (count == 0)
		return 0;
	buffer_init(&text, HEADER_MAX_BYTES);
	for (size_t i = 0; i < count; i++) {
		buffer_add_text(&text, i == 0 ? "" : ", ");
		buffer_add_span(&text, keys[i]);
	}
	const int result = buffer_check(&text, "the header x-deltabucket-pending", err);
	if (result == 0)
		exchange_add_header(exchange, "x-deltabucket-pending",
			arena_text(exchange->arena, buffer_span(&text)));
	buffer_release(&text);
	return result;
}
