#include "tests/unit/unit.h"

#include <string.h>

#include "api/exchange/error_map.h"

static const enum error_kind kinds[] = {
#define ERROR_KIND(name, number, meaning) ERROR_##name,
#include "base/error.def"
#undef ERROR_KIND
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

START_TEST(every_kind_has_a_row_of_its_own)
{
	const struct error_row *const row = error_map_find(kinds[_i]);
	ck_assert_int_eq(row->kind, kinds[_i]);
	ck_assert_int_ge(row->status, 400);
	ck_assert_int_lt(row->status, 600);
	ck_assert_int_ge(row->json_status, 400);
	ck_assert_int_lt(row->json_status, 600);
	ck_assert(strlen(row->s3_code) > 0 && strlen(row->json_code) > 0);
}
END_TEST

START_TEST(no_kind_has_two_rows)
{
	size_t count;
	const struct error_row *const rows = error_map_rows(&count);
	ck_assert_uint_eq(count, KIND_COUNT);
	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			ck_assert_int_ne(rows[i].kind, rows[j].kind);
}
END_TEST

START_TEST(unknown_kinds_are_internal_errors)
{
	ck_assert_int_eq(error_map_find((enum error_kind)9999)->status, 500);
	ck_assert_str_eq(error_map_find(ERROR_NONE)->s3_code, "InternalError");
}
END_TEST

/* Clients may rely on these rows. */
static const struct {
	enum error_kind kind;
	int status;
	const char *s3_code;
	int json_status;
	const char *json_code;
} promises[] = {
	{ERROR_HEAD_MOVED, 409, NULL, 409, "head_moved"},
	{ERROR_STEP_DIFFERS, 409, NULL, 409, "step_differs"},
	{ERROR_BASE_MISSING, 409, NULL, 409, "base_missing"},
	{ERROR_CHAIN_IN_USE, 409, NULL, 409, "chain_in_use"},
	{ERROR_STEP_FAILED, 409, NULL, 409, "step_failed"},
	{ERROR_PARTS_MISMATCH, 422, NULL, 422, "parts_mismatch"},
	{ERROR_COLLECTED, 410, NULL, 410, "collected"},
	{ERROR_STALE_EPOCH, 412, NULL, 412, "stale_epoch"},
	{ERROR_SCHEMA_MISMATCH, 422, NULL, 422, "schema_mismatch"},
	{ERROR_INCOMPLETE_ANCHOR, 422, NULL, 422, "incomplete_anchor"},
	{ERROR_DIGEST_MISMATCH, 422, NULL, 422, "digest_mismatch"},
	{ERROR_NOT_READY, 425, NULL, 425, "not_ready"},
	{ERROR_NO_SPACE, 507, "InsufficientStorage", 507, "no_space"},
	{ERROR_NO_CREDENTIALS, 403, "AccessDenied", 401, "no_credentials"},
	{ERROR_UNKNOWN_KEY_ID, 403, "InvalidAccessKeyId", 401, "unknown_key"},
	{ERROR_DENIED, 403, "AccessDenied", 403, "denied"},
	{ERROR_SIGNATURE, 403, "SignatureDoesNotMatch", 401, "signature"},
	{ERROR_NO_BUCKET, 404, "NoSuchBucket", 404, "no_bucket"},
	{ERROR_RANGE, 416, "InvalidRange", 416, "range"},
	{ERROR_LENGTH_REQUIRED, 411, "MissingContentLength", 411, "length_required"},
	{ERROR_SHA256_MISMATCH, 400, "XAmzContentSHA256Mismatch", 400, "sha256_mismatch"},
	{ERROR_HEADERS_TOO_LARGE, 400, "RequestHeaderSectionTooLarge", 431, "headers_too_large"},
	{ERROR_INVALID_REQUEST, 400, "InvalidRequest", 400, "invalid_request"},
	{ERROR_UNSUPPORTED, 501, "NotImplemented", 501, "unsupported"},
};

START_TEST(codes_that_clients_rely_on)
{
	const struct error_row *const row = error_map_find(promises[_i].kind);
	ck_assert_int_eq(row->status, promises[_i].status);
	ck_assert_int_eq(row->json_status, promises[_i].json_status);
	ck_assert_str_eq(row->json_code, promises[_i].json_code);
	if (promises[_i].s3_code != NULL)
		ck_assert_str_eq(row->s3_code, promises[_i].s3_code);
}
END_TEST

/* Texts of internal failures name files of the server. */
START_TEST(faults_of_the_server_keep_their_text_to_the_log)
{
	static const enum error_kind inside[] = {ERROR_IO, ERROR_CORRUPT, ERROR_NO_SPACE};
	struct error err = {0};
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		error_set(&err, inside[i], "/srv/data/packs/aa cannot be written");
		ck_assert_ptr_null(strstr(error_map_text(&err, error_map_find(err.kind)), "/srv"));
	}
	error_set(&err, ERROR_NO_KEY, "The object 'x' does not exist.");
	ck_assert_str_eq(
		error_map_text(&err, error_map_find(err.kind)), "The object 'x' does not exist.");
}
END_TEST

Suite *test_error_map_suite(void);

Suite *test_error_map_suite(void)
{
	Suite *const suite = suite_create("error_map");
	TCase *const tcase = tcase_create("error_map");
	tcase_add_loop_test(tcase, every_kind_has_a_row_of_its_own, 0, KIND_COUNT);
	tcase_add_test(tcase, no_kind_has_two_rows);
	tcase_add_test(tcase, faults_of_the_server_keep_their_text_to_the_log);
	tcase_add_test(tcase, unknown_kinds_are_internal_errors);
	tcase_add_loop_test(
		tcase, codes_that_clients_rely_on, 0, sizeof promises / sizeof promises[0]);
	suite_add_tcase(suite, tcase);
	return suite;
}
