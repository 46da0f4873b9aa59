#include "api/s3/request/acl.h"

#include "tests/unit/unit.h"

static const struct {
	const char *name;
	enum error_kind kind;
	enum canned_acl acl;
} canned[] = {
	{"private", ERROR_NONE, ACL_PRIVATE},
	{"public-read", ERROR_NONE, ACL_PUBLIC_READ},
	{"bucket-owner-full-control", ERROR_NONE, ACL_PRIVATE},
	{"bucket-owner-read", ERROR_NONE, ACL_PRIVATE},
	{"public-read-write", ERROR_NONE, ACL_PUBLIC_READ_WRITE},
	{"authenticated-read", ERROR_NONE, ACL_AUTHENTICATED_READ},
	{"log-delivery-write", ERROR_UNSUPPORTED, ACL_PRIVATE},
	{"Private", ERROR_INVALID, ACL_PRIVATE},
	{"", ERROR_INVALID, ACL_PRIVATE},
};

START_TEST(test_canned)
{
	struct error err = {0};
	enum canned_acl acl = ACL_PRIVATE;
	const int result = acl_canned(span_text(canned[_i].name), &acl, &err);
	ck_assert_int_eq(err.kind, canned[_i].kind);
	ck_assert_int_eq(result, canned[_i].kind == ERROR_NONE ? 0 : -1);
	if (result == 0)
		ck_assert_int_eq(acl, canned[_i].acl);
}
END_TEST

#define XSI       "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
#define OWNER(id) "<Owner><ID>" id "</ID><DisplayName>any</DisplayName></Owner>"
#define BY_ID(id, permission)                                       \
	"<Grant><Grantee " XSI "xsi:type=\"CanonicalUser\"><ID>" id \
	"</ID></Grantee><Permission>" permission "</Permission></Grant>"
#define BY_URI(uri, permission)                               \
	"<Grant><Grantee " XSI "xsi:type=\"Group\"><URI>" uri \
	"</URI></Grantee><Permission>" permission "</Permission></Grant>"
#define ACL(owner, grants)                                         \
	"<AccessControlPolicy>" owner "<AccessControlList>" grants \
	"</AccessControlList></AccessControlPolicy>"
#define ALL      "http://acs.amazonaws.com/groups/global/AllUsers"
#define ACCOUNTS "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"
#define MINE     BY_ID("main", "FULL_CONTROL")

static const struct {
	const char *xml;
	enum error_kind kind;
	enum canned_acl acl;
} bodies[] = {
	{ACL(OWNER("main"), MINE), ERROR_NONE, ACL_PRIVATE},
	{ACL(OWNER("main"), MINE BY_URI(ALL, "READ")), ERROR_NONE, ACL_PUBLIC_READ},
	{ACL(OWNER("main"), BY_URI(ALL, "READ") MINE MINE), ERROR_NONE, ACL_PUBLIC_READ},
	{ACL(OWNER("main"), BY_URI(ALL, "READ")), ERROR_INVALID_REQUEST, ACL_PRIVATE},
	{ACL(OWNER("main"), ""), ERROR_INVALID_REQUEST, ACL_PRIVATE},
	{ACL(OWNER("other"), BY_ID("other", "FULL_CONTROL")), ERROR_INVALID_REQUEST, ACL_PRIVATE},
	{ACL(OWNER("main"), MINE BY_ID("other", "READ")), ERROR_INVALID_REQUEST, ACL_PRIVATE},
	{ACL(OWNER("main"), BY_ID("main", "READ")), ERROR_INVALID_REQUEST, ACL_PRIVATE},
	{ACL(OWNER("main"), MINE BY_URI(ALL, "WRITE")), ERROR_INVALID_REQUEST, ACL_PRIVATE},
	{ACL(OWNER("main"), MINE BY_URI(ALL, "WRITE") BY_URI(ALL, "READ")), ERROR_NONE,
		ACL_PUBLIC_READ_WRITE},
	{ACL(OWNER("main"), MINE BY_URI(ACCOUNTS, "READ")), ERROR_NONE, ACL_AUTHENTICATED_READ},
	{ACL(OWNER("main"), MINE BY_URI(ACCOUNTS, "WRITE")), ERROR_INVALID_REQUEST, ACL_PRIVATE},
	{ACL(OWNER("main"), MINE BY_URI(ACCOUNTS, "READ") BY_URI(ALL, "READ")),
		ERROR_INVALID_REQUEST, ACL_PRIVATE},
	{ACL(OWNER("main"), MINE BY_URI(ALL, "READ_ACP")), ERROR_INVALID_REQUEST, ACL_PRIVATE},
	{ACL(OWNER("main"), MINE "<Grant><Permission>READ</Permission></Grant>"),
		ERROR_MALFORMED_XML, ACL_PRIVATE},
	{ACL(OWNER("main"), MINE "<Grant><Grantee><URI>" ALL "</URI></Grantee></Grant>"),
		ERROR_MALFORMED_XML, ACL_PRIVATE},
	{ACL("", MINE), ERROR_MALFORMED_XML, ACL_PRIVATE},
	{"<AccessControlPolicy>" OWNER("main") "</AccessControlPolicy>", ERROR_MALFORMED_XML,
		ACL_PRIVATE},
	{"<Other/>", ERROR_MALFORMED_XML, ACL_PRIVATE},
	{"", ERROR_MALFORMED_XML, ACL_PRIVATE},
};

START_TEST(test_bodies)
{
	struct arena *const arena = arena_new(64 * 1024);
	struct error err = {0};
	enum canned_acl acl = ACL_PRIVATE;
	const int result =
		acl_parse(span_text(bodies[_i].xml), span_text("main"), arena, &acl, &err);
	ck_assert_msg(err.kind == bodies[_i].kind, "%s: %s", bodies[_i].xml, err.text);
	ck_assert_int_eq(result, bodies[_i].kind == ERROR_NONE ? 0 : -1);
	if (result == 0)
		ck_assert_int_eq(acl, bodies[_i].acl);
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
