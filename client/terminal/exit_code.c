#include "client/terminal/exit_code.h"

static const struct exit_code_row ROWS[] = {
	{EXIT_CODE_OK, "done"},
	{EXIT_CODE_FAILURE, "failed for a reason not listed here"},
	{EXIT_CODE_USAGE, "the command line or the config file is wrong"},
	{EXIT_CODE_UNREACHABLE,
		"the server cannot be reached, or still answered with an error after all retries"},
	{EXIT_CODE_DENIED, "the token is missing, unknown or may not do this"},
	{EXIT_CODE_NOT_FOUND,
		"the bucket, object, run, step or file does not exist, or the step has been removed"},
	{EXIT_CODE_CONFLICT,
		"somebody else changed it first, or fenced this writer off; repeating the same command cannot help"},
	{EXIT_CODE_DAMAGED, "stored bytes are damaged"},
	{EXIT_CODE_DISK_FULL, "the local disk or the server's disk is full"},
	{EXIT_CODE_BUSY, "another deltabucket works in the same folder"},
	{EXIT_CODE_NOT_READY, "the requested thing is not available yet"},
	{EXIT_CODE_WRONG_BASE, "a delta does not belong to this base"},
	{EXIT_CODE_WRONG_RESULT,
		"downloaded bytes, or the result of a delta, do not match their digest"},
	{EXIT_CODE_MALFORMED,
		"a checkpoint or delta breaks its format: truncated, unknown mode, a tensor missing or twice, an index that points nowhere"},
	{EXIT_CODE_UNSUPPORTED,
		"a delta has an encoding that this program does not read, or a format cannot hold what it was asked to"},
	{EXIT_CODE_OTHER_SCHEMA,
		"the tensors have other names, dtypes or shapes than those of the run or the base"},
	{EXIT_CODE_SIGNAL_BASE,
		"128 plus the signal that ended it: 130 after Ctrl-C, 143 after SIGTERM"},
};

static const struct {
	enum error_kind kind;
	enum exit_code code;
} KINDS[] = {
	{ERROR_UPSTREAM, EXIT_CODE_UNREACHABLE},
	{ERROR_UNTRUSTED, EXIT_CODE_UNREACHABLE},
	{ERROR_DENIED, EXIT_CODE_DENIED},
	{ERROR_NO_CREDENTIALS, EXIT_CODE_DENIED},
	{ERROR_UNKNOWN_KEY_ID, EXIT_CODE_DENIED},
	{ERROR_SIGNATURE, EXIT_CODE_DENIED},
	{ERROR_SKEW, EXIT_CODE_DENIED},
	{ERROR_AUTH_MALFORMED, EXIT_CODE_DENIED},
	{ERROR_BUCKET_TAKEN, EXIT_CODE_DENIED},
	{ERROR_BAD_NAME, EXIT_CODE_USAGE},
	{ERROR_NOT_FOUND, EXIT_CODE_NOT_FOUND},
	{ERROR_NO_BUCKET, EXIT_CODE_NOT_FOUND},
	{ERROR_NO_KEY, EXIT_CODE_NOT_FOUND},
	{ERROR_NO_RUN, EXIT_CODE_NOT_FOUND},
	{ERROR_NO_STEP, EXIT_CODE_NOT_FOUND},
	{ERROR_COLLECTED, EXIT_CODE_NOT_FOUND},
	{ERROR_EXISTS, EXIT_CODE_CONFLICT},
	{ERROR_BUCKET_OWNED, EXIT_CODE_CONFLICT},
	{ERROR_BUCKET_NOT_EMPTY, EXIT_CODE_CONFLICT},
	{ERROR_BUCKET_HAS_RUNS, EXIT_CODE_CONFLICT},
	{ERROR_PRECONDITION, EXIT_CODE_CONFLICT},
	{ERROR_HEAD_MOVED, EXIT_CODE_CONFLICT},
	{ERROR_STEP_DIFFERS, EXIT_CODE_CONFLICT},
	{ERROR_BASE_MISSING, EXIT_CODE_CONFLICT},
	{ERROR_STALE_EPOCH, EXIT_CODE_CONFLICT},
	{ERROR_SCHEMA_MISMATCH, EXIT_CODE_OTHER_SCHEMA},
	{ERROR_PARTS_MISMATCH, EXIT_CODE_CONFLICT},
	{ERROR_CHAIN_IN_USE, EXIT_CODE_CONFLICT},
	{ERROR_STEP_FAILED, EXIT_CODE_CONFLICT},
	{ERROR_CORRUPT, EXIT_CODE_DAMAGED},
	{ERROR_CONTENT_DAMAGED, EXIT_CODE_DAMAGED},
	{ERROR_BAD_DIGEST, EXIT_CODE_DAMAGED},
	{ERROR_SHA256_MISMATCH, EXIT_CODE_DAMAGED},
	{ERROR_DIGEST_MISMATCH, EXIT_CODE_WRONG_RESULT},
	{ERROR_INCOMPLETE_ANCHOR, EXIT_CODE_MALFORMED},
	{ERROR_INVALID, EXIT_CODE_MALFORMED},
	{ERROR_UNSUPPORTED, EXIT_CODE_UNSUPPORTED},
	{ERROR_WRONG_BASE, EXIT_CODE_WRONG_BASE},
	{ERROR_NO_SPACE, EXIT_CODE_DISK_FULL},
	{ERROR_BUSY, EXIT_CODE_BUSY},
	{ERROR_NOT_READY, EXIT_CODE_NOT_READY},
};

const struct exit_code_row *exit_code_rows(size_t *out_count)
{
	*out_count = sizeof(ROWS) / sizeof(ROWS[0]);
	return ROWS;
}

enum exit_code exit_code_of(enum error_kind kind)
{
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++)
		if (KINDS[i].kind == kind)
			return KINDS[i].code;
	return EXIT_CODE_FAILURE;
}
