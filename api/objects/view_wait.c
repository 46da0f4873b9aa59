#include "api/objects/view_wait.h"

enum { HEADER_MAX_BYTES = 8 * 1024 };

static int find_pending(struct exchange *exchange, struct bucket_ref bucket, struct span prefix,
	struct span keys[VIEW_WAIT_KEYS_MAX], size_t *out_count, struct error *err);

int view_wait_look(
	struct anchor_wait *wait, struct bucket_ref bucket, struct span key, struct error *err)
{
	anchor_wait_look(wait);
	return run_find_view(wait->wait.exchange->context->store, bucket, key, &wait->anchor, err);
}

int view_wait_list_begin(struct view_wait_list *list, struct exchange *exchange,
	struct bucket_ref bucket, struct span prefix, struct error *err)
{
	*list = (struct view_wait_list){.bucket = bucket};
	anchor_wait_init(&list->wait, exchange);
	return find_pending(exchange, bucket, prefix, list->keys, &list->count, err);
}

int view_wait_list_next(struct view_wait_list *list, struct error *err)
{
	for (; list->made < list->count; list->made++) {
		const int pending =
			view_wait_look(&list->wait, list->bucket, list->keys[list->made], err);
		if (pending < 0 || (pending == 1 && anchor_wait_try(&list->wait)))
			return pending;
	}
	return 0;
}

int view_wait_tell(
	struct exchange *exchange, struct bucket_ref bucket, struct span prefix, struct error *err)
{
	struct span keys[VIEW_WAIT_KEYS_MAX];
	size_t count;
	struct buffer text;
	if (find_pending(exchange, bucket, prefix, keys, &count, err) != 0)
		return -1;
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

static int find_pending(struct exchange *exchange, struct bucket_ref bucket, struct span prefix,
	struct span keys[VIEW_WAIT_KEYS_MAX], size_t *out_count, struct error *err)
{
	const struct run_pending_scan scan = {
		.bucket = bucket, .prefix = prefix, .limit = VIEW_WAIT_KEYS_MAX};
	const int result = run_list_pending(
		exchange->context->store, &scan, exchange->arena, keys, out_count, err);
	ASSERT(*out_count <= VIEW_WAIT_KEYS_MAX);
	return result;
}
