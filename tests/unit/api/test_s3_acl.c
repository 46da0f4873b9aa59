#include "api/s3/acl.h"

#include "tests/unit/unit.h"

static const struct { const char *name; enum error_kind kind; bool is_public; } canned[] = {
	{"private", ERROR_NONE, false},
	{"public-read", ERROR_NONE, true},
	{"bucket-owner-full-control", ERROR_NONE, false},
	{"bucket-owner-read", ERROR_NONE, false},
	{"public-read-write", ERROR_UNSUPPORTED, false},
	{"authenticated-read", ERROR_UNSUPPORTED, false},
	{"log-delivery-write", ERROR_UNSUPPORTED, false},
	{"Private", ERROR_INVALID, false},
	{"", ERROR_INVALID, false},
};

START_TEST(test_canned)
{
	struct error err = {0};
	bool is_public = false;
	const int result = acl_canned(span_text(canned[_i].name), &is_public, &err);
	ck_assert_int_eq(err.kind, canned[_i].kind);
	ck_assert_int_eq(result, canned[_i].kind == ERROR_NONE ? 0 : -1);
	if (result == 0)
		ck_assert_int_eq(is_public, canned[_i].is_public);
}
END_TEST

#define XSI "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
#define OWNER(id) "<Owner><ID>" id "</ID><DisplayName>any</DisplayName></Owner>"
#define BY_ID(id, permission) \
	"<Grant><Grantee " XSI "xsi:type=\"CanonicalUser\"><ID>" id "</ID></Grantee><Permission>" permission "</Permission></Grant>"
#define BY_URI(uri, permission) \
	"<Grant><Grantee " XSI "xsi:type=\"Group\"><URI>" uri "</URI></Grantee><Permission>" permission "</Permission></Grant>"
#define ACL(owner, grants) "<AccessControlPolicy>" owner "<AccessControlList>" grants "</AccessControlList></AccessControlPolicy>"
#define ALL "http://acs.amazonaws.com/groups/global/AllUsers"
#define MINE BY_ID("main", "FULL_CONTROL")

static const struct { const char *xml; enum error_kind kind; bool is_public; } bodies[] = {
	{ACL(OWNER("main"), MINE), ERROR_NONE, false},
	{ACL(OWNER("main"), MINE BY_URI(ALL, "READ")), ERROR_NONE, true},
	{ACL(OWNER("main"), BY_URI(ALL, "READ") MINE MINE), ERROR_NONE, true},
	{ACL(OWNER("main"), BY_URI(ALL, "READ")), ERROR_INVALID_REQUEST, false},
	{ACL(OWNER("main"), ""), ERROR_INVALID_REQUEST, false},
	{ACL(OWNER("other"), BY_ID("other", "FULL_CONTROL")), ERROR_INVALID_REQUEST, false},
	{ACL(OWNER("main"), MINE BY_ID("other", "READ")), ERROR_INVALID_REQUEST, false},
	{ACL(OWNER("main"), BY_ID("main", "READ")), ERROR_INVALID_REQUEST, false},
	{ACL(OWNER("main"), MINE BY_URI(ALL, "WRITE")), ERROR_INVALID_REQUEST, false},
	{ACL(OWNER("main"), MINE BY_URI("http://acs.amazonaws.com/groups/global/AuthenticatedUsers", "READ")), ERROR_INVALID_REQUEST, false},
	{ACL(OWNER("main"), MINE "<Grant><Permission>READ</Permission></Grant>"), ERROR_MALFORMED_XML, false},
	{ACL(OWNER("main"), MINE "<Grant><Grantee><URI>" ALL "</URI></Grantee></Grant>"), ERROR_MALFORMED_XML, false},
	{ACL("", MINE), ERROR_MALFORMED_XML, false},
	{"<AccessControlPolicy>" OWNER("main") "</AccessControlPolicy>", ERROR_MALFORMED_XML, false},
	{"<Other/>", ERROR_MALFORMED_XML, false},
	{"", ERROR_MALFORMED_XML, false},
};

START_TEST(test_bodies)
{
	struct arena *const arena = arena_new(64 * 1024);
	struct error err = {0};
	bool is_public = false;
	const int result = acl_parse(span_text(bodies[_i].xml), span_text("main"), arena, &is_public, &err);
	ck_assert_msg(err.kind == bodies[_i].kind, "%s: %s", bodies[_i].xml, err.text);
	ck_assert_int_eq(result, bodies[_i].kind == ERROR_NONE ? 0 : -1);
	if (result == 0)
		ck_assert_int_eq(is_public, bodies[_i].is_public);
	arena_free(arena);
}
END_TEST

Suite *test_s3_acl_suite(void);
Suite *test_s3_acl_suite(void)
{
	Suite *const suite = suite_create("s3_acl");
	TCase *const acl = tcase_create("acl");
	tcase_add_loop_test(acl, test_canned, 0, sizeof(canned) / sizeof(canned[0]));
	tcase_add_loop_test(acl, test_bodies, 0, sizeof(bodies) / sizeof(bodies[0]));
	suite_add_tcase(suite, acl);
	return suite;
}
