/* An ACL is the owner's FULL_CONTROL and a set of grants to groups. Each group grant has a bit, so
 * a body is reduced to a set of bits, and a table says which canned ACL has these bits. The same
 * table gives the grants of a reply. A set without a canned ACL is refused. */
#include "api/s3/request/acl.h"

#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/xml/xml_tree.h"
#include "api/s3/xml/xml_writer.h"

enum { BODY_MAX_BYTES = 16 * 1024 };

static const char grants_prefix[] = "x-amz-grant-";
static const char everyone[] = "http://acs.amazonaws.com/groups/global/AllUsers";
static const char all_accounts[] = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers";

static const struct {
	const char *name;
	bool is_refused;
	enum canned_acl acl;
} canned[] = {
	{"private", false, ACL_PRIVATE},
	{"bucket-owner-full-control", false, ACL_PRIVATE},
	{"bucket-owner-read", false, ACL_PRIVATE},
	{"public-read", false, ACL_PUBLIC_READ},
	{"public-read-write", false, ACL_PUBLIC_READ_WRITE},
	{"authenticated-read", false, ACL_AUTHENTICATED_READ},
	{"aws-exec-read", true, ACL_PRIVATE},
	{"log-delivery-write", true, ACL_PRIVATE},
};
#define CHOICES "private, public-read, public-read-write or authenticated-read"

enum { ALL_READ = 1, ALL_WRITE = 2, ACCOUNTS_READ = 4, GROUP_GRANTS = 3 };
static const struct {
	unsigned bit;
	const char *group;
	const char *permission;
} group_grants[GROUP_GRANTS] = {
	{ALL_READ, everyone, "READ"},
	{ALL_WRITE, everyone, "WRITE"},
	{ACCOUNTS_READ, all_accounts, "READ"},
};
static const struct {
	enum canned_acl acl;
	unsigned bits;
} meanings[] = {
	{ACL_PRIVATE, 0},
	{ACL_PUBLIC_READ, ALL_READ},
	{ACL_PUBLIC_READ_WRITE, ALL_READ | ALL_WRITE},
	{ACL_AUTHENTICATED_READ, ACCOUNTS_READ},
};
enum { MEANINGS = sizeof(meanings) / sizeof(meanings[0]) };

struct listed { /* the grants of a body */
	bool owner_has_all;
	unsigned groups; /* bits of group_grants */
};

static int take_grant(
	const struct xml_node *grant, struct span owner, struct listed *listed, struct error *err);
static bool take_group(struct span uri, struct span permission, struct listed *listed);
static int find_meaning(const struct listed *listed, enum canned_acl *out, struct error *err);
static void write_grant(struct xml_writer *xml, const char *type, const char *element,
	struct span grantee, const char *permission);
static unsigned groups_of(enum canned_acl acl);

int acl_canned(struct span name, enum canned_acl *out, struct error *err)
{
	for (size_t i = 0; i < sizeof(canned) / sizeof(canned[0]); i++) {
		if (!span_equal_text(name, canned[i].name))
			continue;
		*out = canned[i].acl;
		return !canned[i].is_refused
			? 0
			: error_set(err, ERROR_UNSUPPORTED,
				  "The canned ACL %s is not implemented. Use " CHOICES ".",
				  canned[i].name);
	}
	return error_set(err, ERROR_INVALID, "A canned ACL must be " CHOICES ".");
}

int acl_headers(struct exchange *exchange, bool *out_given, enum canned_acl *out, struct error *err)
{
	const struct span name = span_trim(exchange_header(exchange, "x-amz-acl"));
	*out_given = name.len > 0;
	*out = ACL_PRIVATE;
	if (s3_request_find_header(exchange, grants_prefix) != NULL)
		return error_set(err, ERROR_UNSUPPORTED,
			"Grants in headers (x-amz-grant-...) are not implemented. Use x-amz-acl with " CHOICES
			".");
	return *out_given ? acl_canned(name, out, err) : 0;
}

int acl_parse(struct span xml, struct span owner, struct arena *arena, enum canned_acl *out,
	struct error *err)
{
	struct xml_node *root;
	struct listed listed = {false, 0};
	if (xml_tree_parse(xml, "AccessControlPolicy", arena, &root, err) != 0)
		return -1;
	const struct xml_node *const list = xml_tree_child(root, "AccessControlList");
	const struct span named = xml_tree_text(xml_tree_child(root, "Owner"), "ID");
	if (list == NULL || named.len == 0)
		return error_set(err, ERROR_MALFORMED_XML,
			"An AccessControlPolicy must have an Owner with an ID, and an AccessControlList.");
	if (!span_equal(named, owner))
		return error_set(err, ERROR_INVALID_REQUEST,
			"The Owner of this ACL must be the bucket's owner, which an ACL cannot change.");
	for (const struct xml_node *grant = xml_tree_child(list, "Grant"); grant != NULL;
		grant = xml_tree_again(grant))
		if (take_grant(grant, owner, &listed, err) != 0)
			return -1;
	return find_meaning(&listed, out, err);
}

enum next acl_reply(struct exchange *exchange, struct span owner, enum canned_acl acl)
{
	struct buffer body;
	struct xml_writer xml;
	buffer_init(&body, BODY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "AccessControlPolicy", true);
	xml_writer_open(&xml, "Owner");
	xml_writer_text(&xml, "ID", owner);
	xml_writer_text(&xml, "DisplayName", owner);
	xml_writer_close(&xml);
	xml_writer_open(&xml, "AccessControlList");
	write_grant(&xml, "CanonicalUser", "ID", owner, "FULL_CONTROL");
	for (size_t i = 0; i < GROUP_GRANTS; i++)
		if ((groups_of(acl) & group_grants[i].bit) != 0)
			write_grant(&xml, "Group", "URI", span_text(group_grants[i].group),
				group_grants[i].permission);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

enum next acl_fail(struct exchange *exchange, const struct error *err)
{
	const char *const grant = s3_request_find_header(exchange, grants_prefix);
	if (err->kind == ERROR_UNSUPPORTED)
		return s3_error_not_implemented(exchange, grant != NULL ? grant : "x-amz-acl",
			arena_format(exchange->arena, "%s", err->text));
	if (err->kind == ERROR_INVALID)
		return s3_error_argument(
			exchange, "x-amz-acl", exchange_header(exchange, "x-amz-acl"), err->text);
	if (err->kind != ERROR_MALFORMED_XML && err->kind != ERROR_INVALID_REQUEST)
		return exchange_fail(exchange, err);
	const char *const code = err->kind == ERROR_MALFORMED_XML ? "MalformedACLError"
								  : "AccessControlListNotSupported";
	return s3_error_reply(exchange,
		&(struct s3_error){.kind = ERROR_INVALID, .code = code, .message = err->text});
}

static int take_grant(
	const struct xml_node *grant, struct span owner, struct listed *listed, struct error *err)
{
	const struct xml_node *const grantee = xml_tree_child(grant, "Grantee");
	const struct span permission = xml_tree_text(grant, "Permission");
	const struct span id = xml_tree_text(grantee, "ID");
	const struct span uri = xml_tree_text(grantee, "URI");
	if (grantee == NULL || permission.len == 0)
		return error_set(
			err, ERROR_MALFORMED_XML, "A Grant must have a Grantee and a Permission.");
	if (id.len == 0 && take_group(uri, permission, listed))
		return 0;
	if (uri.len > 0 || id.len == 0 || !span_equal(id, owner) ||
		!span_equal_text(permission, "FULL_CONTROL"))
		return error_set(err, ERROR_INVALID_REQUEST,
			"This ACL has a grant that is not implemented. It may grant FULL_CONTROL to the owner,"
			" READ and WRITE to everyone, and READ to all accounts. A bucket policy can name accounts.");
	listed->owner_has_all = true;
	return 0;
}

static bool take_group(struct span uri, struct span permission, struct listed *listed)
{
	for (size_t i = 0; i < GROUP_GRANTS; i++) {
		if (!span_equal_text(uri, group_grants[i].group) ||
			!span_equal_text(permission, group_grants[i].permission))
			continue;
		listed->groups |= group_grants[i].bit;
		return true;
	}
	return false;
}

static int find_meaning(const struct listed *listed, enum canned_acl *out, struct error *err)
{
	ASSERT(listed->groups < 1U << GROUP_GRANTS);
	if (!listed->owner_has_all)
		return error_set(err, ERROR_INVALID_REQUEST,
			"An ACL must grant FULL_CONTROL to the owner; others are not implemented.");
	for (size_t i = 0; i < MEANINGS; i++) {
		if (meanings[i].bits != listed->groups)
			continue;
		*out = meanings[i].acl;
		return 0;
	}
	return error_set(err, ERROR_INVALID_REQUEST,
		"The grants to groups must be those of a canned ACL, which are " CHOICES ".");
}

static void write_grant(struct xml_writer *xml, const char *type, const char *element,
	struct span grantee, const char *permission)
{
	xml_writer_open(xml, "Grant");
	buffer_format(xml->out,
		"<Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"%s\">",
		type);
	xml_writer_text(xml, element, grantee);
	if (element[0] == 'I')
		xml_writer_text(xml, "DisplayName", grantee);
	buffer_add_text(xml->out, "</Grantee>");
	xml_writer_text(xml, "Permission", span_text(permission));
	xml_writer_close(xml);
}

static unsigned groups_of(enum canned_acl acl)
{
	unsigned bits = 0;
	for (size_t i = 0; i < MEANINGS; i++)
		if (meanings[i].acl == acl)
			bits = meanings[i].bits;
	return bits;
}
