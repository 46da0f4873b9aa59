#include "api/s3/acl.h"

#include "api/s3/s3_error.h"
#include "api/s3/s3_request.h"
#include "api/s3/xml_tree.h"
#include "api/s3/xml_writer.h"

enum { BODY_MAX_BYTES = 16 * 1024 };

static const char everyone[] = "http://acs.amazonaws.com/groups/global/AllUsers";

enum meaning { IS_PRIVATE, IS_PUBLIC, IS_REFUSED };
static const struct { const char *name; enum meaning meaning; } canned[] = {
	{"private", IS_PRIVATE},
	{"bucket-owner-full-control", IS_PRIVATE},
	{"bucket-owner-read", IS_PRIVATE},
	{"public-read", IS_PUBLIC},
	{"public-read-write", IS_REFUSED},
	{"authenticated-read", IS_REFUSED},
	{"aws-exec-read", IS_REFUSED},
	{"log-delivery-write", IS_REFUSED},
};

int acl_canned(const struct span name, bool *const out_public, struct error *const err)
{
	for (size_t i = 0; i < sizeof(canned) / sizeof(canned[0]); i++) {
		if (!span_equal_text(name, canned[i].name))
			continue;
		*out_public = canned[i].meaning == IS_PUBLIC;
		return canned[i].meaning != IS_REFUSED ? 0
			: error_set(err, ERROR_UNSUPPORTED, "The canned ACL %s is not implemented: private and public-read are.", canned[i].name);
	}
	return error_set(err, ERROR_INVALID, "There is no canned ACL of this name.");
}

int acl_headers(struct exchange *const exchange, bool *const out_given, bool *const out_public, struct error *const err)
{
	static const struct s3_request_refusal grants = {"x-amz-grant-", NULL, NULL};
	const struct span name = span_trim(exchange_header(exchange, "x-amz-acl"));
	*out_given = name.len > 0;
	*out_public = false;
	if (s3_request_refused(exchange, &grants, 1) != NULL)
		return error_set(err, ERROR_UNSUPPORTED, "Grants in headers (x-amz-grant-...) are not implemented: x-amz-acl private and public-read are.");
	return *out_given ? acl_canned(name, out_public, err) : 0;
}

struct listed {
	bool owner_has_all;
	bool everyone_reads;
};

static int take_grant(const struct xml_node *const grant, const struct span owner, struct listed *const listed, struct error *const err)
{
	const struct xml_node *const grantee = xml_tree_child(grant, "Grantee");
	const struct span permission = xml_tree_text(grant, "Permission");
	const struct span id = xml_tree_text(grantee, "ID");
	const struct span uri = xml_tree_text(grantee, "URI");
	if (grantee == NULL || permission.len == 0)
		return error_set(err, ERROR_MALFORMED_XML, "A Grant has a Grantee and a Permission.");
	if (id.len > 0 && uri.len == 0 && span_equal(id, owner) && span_equal_text(permission, "FULL_CONTROL"))
		listed->owner_has_all = true;
	else if (id.len == 0 && span_equal_text(uri, everyone) && span_equal_text(permission, "READ"))
		listed->everyone_reads = true;
	else
		return error_set(err, ERROR_INVALID_REQUEST,
			"This ACL holds a grant that is not implemented: FULL_CONTROL of the owner, and READ of everyone, are. A bucket policy can name accounts.");
	return 0;
}

int acl_parse(const struct span xml, const struct span owner, struct arena *const arena, bool *const out_public, struct error *const err)
{
	struct xml_node *root;
	struct listed listed = {false, false};
	if (xml_tree_parse(xml, "AccessControlPolicy", arena, &root, err) != 0)
		return -1;
	const struct xml_node *const list = xml_tree_child(root, "AccessControlList");
	const struct span named = xml_tree_text(xml_tree_child(root, "Owner"), "ID");
	if (list == NULL || named.len == 0)
		return error_set(err, ERROR_MALFORMED_XML, "An AccessControlPolicy has an Owner with an ID, and an AccessControlList.");
	if (!span_equal(named, owner))
		return error_set(err, ERROR_INVALID_REQUEST, "The Owner of this ACL is not the bucket's: that cannot be changed.");
	for (const struct xml_node *grant = xml_tree_child(list, "Grant"); grant != NULL; grant = xml_tree_again(grant))
		if (take_grant(grant, owner, &listed, err) != 0)
			return -1;
	if (!listed.owner_has_all)
		return error_set(err, ERROR_INVALID_REQUEST, "An ACL without FULL_CONTROL of the owner is not implemented.");
	*out_public = listed.everyone_reads;
	return 0;
}

static void write_grant(struct xml_writer *const xml, const char *const type, const char *const element, const struct span grantee,
	const char *const permission)
{
	xml_writer_open(xml, "Grant");
	buffer_format(xml->out, "<Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"%s\">", type);
	xml_writer_text(xml, element, grantee);
	if (element[0] == 'I')
		xml_writer_text(xml, "DisplayName", grantee);
	buffer_add_text(xml->out, "</Grantee>");
	xml_writer_text(xml, "Permission", span_text(permission));
	xml_writer_close(xml);
}

enum next acl_reply(struct exchange *const exchange, const struct span owner, const bool is_public)
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
	if (is_public)
		write_grant(&xml, "Group", "URI", span_text(everyone), "READ");
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

enum next acl_fail(struct exchange *const exchange, const struct error *const err)
{
	if (err->kind == ERROR_UNSUPPORTED)
		return s3_error_not_implemented(exchange, "x-amz-acl", arena_format(exchange->arena, "%s", err->text));
	if (err->kind == ERROR_INVALID)
		return s3_error_argument(exchange, "x-amz-acl", exchange_header(exchange, "x-amz-acl"), err->text);
	if (err->kind != ERROR_MALFORMED_XML && err->kind != ERROR_INVALID_REQUEST)
		return exchange_fail(exchange, err);
	const char *const code = err->kind == ERROR_MALFORMED_XML ? "MalformedACLError" : "AccessControlListNotSupported";
	return s3_error_reply(exchange, &(struct s3_error){.kind = ERROR_INVALID, .code = code, .message = err->text});
}

size_t acl_bucket_grants(const bool is_public, struct bucket_grant out[1])
{
	out[0] = bucket_grant_public_read();
	return is_public ? 1 : 0;
}
