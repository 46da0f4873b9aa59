#include "client/transfer/session.h"
#include "client/work/progress.h"
#include "library/call.h"
#include "weights/delta/delta.h"

static int diff(struct library_call *call, const char *base, const char *next,
	struct delta_diff_params *params);
static int read_format(const char *name, enum delta_format *out, struct error *err);
static int diff_opened(struct library_call *call, struct delta_diff_params *params);
static int apply(struct library_call *call, const char *base, struct delta_apply_params *params);

int deltabucket_diff(const char *base, const char *next, const char *out, const char *format,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct library_call call;
	library_call_begin(&call, NULL, watch);
	struct delta_diff_params params = {.out = out, .files = call.session.files};
	if (library_check(base, "base", &call.failure) != 0 ||
		library_check(next, "next", &call.failure) != 0 ||
		library_check(out, "out", &call.failure) != 0 ||
		read_format(format, &params.format, &call.failure) != 0)
		return library_call_end(&call, -1, err);
	return library_call_end(&call, diff(&call, base, next, &params), err);
}

int deltabucket_apply(const char *base, const char *const *deltas, size_t count, const char *out,
	struct deltabucket_watch *watch, struct deltabucket_error *err)
{
	struct library_call call;
	library_call_begin(&call, NULL, watch);
	struct delta_apply_params params = {
		.deltas = deltas, .delta_count = count, .out = out, .files = call.session.files};
	int result = library_check(base, "base", &call.failure);
	if (result == 0)
		result = library_check(out, "out", &call.failure);
	if (result == 0)
		result = library_check_deltas(deltas, count, &call.failure);
	if (result == 0)
		result = apply(&call, base, &params);
	return library_call_end(&call, result, err);
}

static int read_format(const char *name, enum delta_format *out, struct error *err)
{
	*out = DELTA_ULP_CLASS;
	if (name == NULL || delta_format_parse(span_text(name), out))
		return 0;
	return error_set(
		err, ERROR_INVALID, "the format is %s, not \"%s\"", delta_format_list(), name);
}

static int diff(struct library_call *call, const char *base, const char *next,
	struct delta_diff_params *params)
{
	struct checkpoint *const first = checkpoint_open(base, &call->failure);
	struct checkpoint *const second =
		first == NULL ? NULL : checkpoint_open(next, &call->failure);
	params->base = first;
	params->next = second;
	const int result = second == NULL ? -1 : diff_opened(call, params);
	checkpoint_close(second);
	checkpoint_close(first);
	return result;
}

static int diff_opened(struct library_call *call, struct delta_diff_params *params)
{
	struct progress *const progress =
		progress_new("comparing", checkpoint_bytes(params->next), call->session.progress);
	struct delta_stats stats;
	params->watch = progress_watch(progress, call->session.stop);
	const int result = delta_diff(params, &stats, &call->failure);
	progress_free(progress);
	return result;
}

static int apply(struct library_call *call, const char *base, struct delta_apply_params *params)
{
	struct checkpoint *const opened = checkpoint_open(base, &call->failure);
	if (opened == NULL)
		return -1;
	struct progress *const progress =
		progress_new("applying", checkpoint_bytes(opened), call->session.progress);
	struct delta_stats stats;
	params->base = opened;
	params->watch = progress_watch(progress, call->session.stop);
	const int result = delta_apply(params, &stats, &call->failure);
	progress_free(progress);
	checkpoint_close(opened);
	return result;
}
