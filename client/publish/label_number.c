#include "client/publish/label_number.h"

enum { DIGITS_MAX = 18, STEPS_LOOKED_AT = 256 };

static void learn(struct span label, struct label_number *out);

bool label_number_read(struct span label, uint64_t *out)
{
	size_t start = label.len;
	while (start > 0 && label.data[start - 1] >= '0' && label.data[start - 1] <= '9')
		start--;
	const struct span digits = span_slice(label, start, label.len - start);
	return digits.len > 0 && digits.len <= DIGITS_MAX && span_parse_u64(digits, out);
}

int label_number_find(struct remote *remote, const struct run_name *run,
	const struct step_message *head, struct label_number *out, struct error *err)
{
	uint64_t ignored;
	if (!label_number_read(head->label, &ignored))
		return label_number_list(remote, run, head->step, out, err);
	learn(head->label, out);
	return 0;
}

int label_number_list(struct remote *remote, const struct run_name *run, uint64_t head,
	struct label_number *out, struct error *err)
{
	uint64_t from = head < STEPS_LOOKED_AT ? 0 : head - STEPS_LOOKED_AT + 1;
	bool more = true;
	int result = 0;
	while (result == 0 && more) {
		struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
		struct remote_run_page page = {0};
		result = remote_run_list_steps(remote, run, from, arena, &page, err);
		more = result == 0 && page.more && page.count > 0;
		for (size_t i = 0; result == 0 && i < page.count; i++)
			learn(page.steps[i].label, out); /* they come in rising order */
		if (more)
			from = page.steps[page.count - 1].step + 1;
		arena_free(arena);
	}
	return result;
}

static void learn(struct span label, struct label_number *out)
{
	if (label_number_read(label, &out->value))
		out->is_known = true;
}
