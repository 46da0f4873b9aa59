#include "client/work/refusals.h"

static void tell(const struct refusals *refusals, const struct error *failure);

bool refusals_is_of_one(const struct error *failure)
{
	static const enum error_kind kinds[] = {ERROR_DENIED, ERROR_NOT_FOUND, ERROR_NO_BUCKET,
		ERROR_NO_KEY, ERROR_NO_RUN, ERROR_EXISTS, ERROR_BUCKET_OWNED, ERROR_BUCKET_TAKEN,
		ERROR_BUCKET_NOT_EMPTY, ERROR_BUCKET_HAS_RUNS, ERROR_BAD_NAME, ERROR_KEY_TOO_LONG,
		ERROR_INVALID, ERROR_METHOD, ERROR_PRECONDITION};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (failure->kind == kinds[i])
			return true;
	return false;
}

int refusals_add(struct refusals *refusals, const struct error *failure, struct error *err)
{
	ASSERT(failure->kind != ERROR_NONE && refusals->count < refusals->total);
	if (!refusals_is_of_one(failure)) {
		*err = *failure;
		return -1;
	}
	if (refusals->count++ == 0)
		refusals->first = *failure;
	if (refusals->total > 1)
		tell(refusals, failure);
	return 0;
}

int refusals_end(const struct refusals *refusals, struct error *err)
{
	if (refusals->count == 0)
		return 0;
	*err = refusals->first;
	return refusals->total == 1 ? -1
				    : error_wrap(err, "%zu of %zu failed, the first with",
					      refusals->count, refusals->total);
}

static void tell(const struct refusals *refusals, const struct error *failure)
{
	struct output_line line;
	output_line_begin(&line, refusals->output, "failed");
	json_writer_text(&line.writer, "code", span_text(error_kind_name(failure->kind)));
	json_writer_text(&line.writer, "message", span_text(failure->text));
	output_line_end(&line);
	output_failure(refusals->output, "%s", failure->text);
}
