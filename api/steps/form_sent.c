#include "api/steps/form_sent.h"

#include "storage/overview/step_saving.h"

static uint64_t body_bytes(const struct exchange *exchange);

void form_sent_count(struct exchange *exchange, const struct form_sent *form)
{
	struct metrics *const metrics = exchange->context->metrics;
	const uint64_t bytes = body_bytes(exchange);
	const struct step_part_sent sent = {
		.run = form->run, .from = form->from, .step = form->step, .bytes = bytes};
	if (bytes == 0)
		return;
	if (!form->is_anchor) {
		step_saving_count(exchange->context->store, &sent);
		return;
	}
	metrics_add(metrics, METRIC_FORM_FULL_BYTES_SENT, (int64_t)bytes);
	metrics_add(metrics, METRIC_FORM_BYTES_SENT, (int64_t)bytes);
}

/* 0 for replies that have no bytes of the object. */
static uint64_t body_bytes(const struct exchange *exchange)
{
	const struct reply *const reply = &exchange->reply;
	if (exchange->method != METHOD_GET || (reply->status != 200 && reply->status != 206))
		return 0;
	return reply->source != NULL ? reply->length : reply->body.len;
}
