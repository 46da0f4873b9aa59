#include "api/auth/signed_url.h"

#include <string.h>

#include "api/auth/canonical_request.h"
#include "api/auth/keyring.h"
#include "api/exchange/base_url.h"
#include "api/exchange/principal.h"
#include "base/encode.h"

static int set_host(struct url_signer *signer, struct exchange *exchange, struct error *err);
static bool drops_port(const char *base, size_t len);
static int check_parameters(const struct url_request *request, struct error *err);
static void print_path(const struct url_request *request, struct buffer *out);
static int print_query(const struct url_signer *signer, const struct url_request *request,
	struct buffer *out, struct error *err);
static void print_signature(const struct url_signer *signer, enum method method, struct span path,
	struct span query, struct buffer *out);

int url_signer_init(
	struct url_signer *signer, struct exchange *exchange, int64_t expires_s, struct error *err)
{
	const struct api_context *const context = exchange->context;
	const struct principal *const principal = exchange->principal;
	ASSERT(principal != NULL);
	*signer = (struct url_signer){.expires_s = expires_s};
	clock_format_amz(context->clock->wall_ms(context->clock), signer->date);
	const struct span day = span_of(signer->date, 8);
	if (exchange->control ||
		keyring_find_signing_key(context->keyring, principal->key_id, day,
			span_text(context->region), exchange->arena, signer->key) == NULL)
		return error_set(err, ERROR_DENIED,
			"Only a caller with a key of its own can have URLs signed.");
	signer->scope = arena_format(exchange->arena, "%.*s/%.8s/%s/s3/aws4_request",
		(int)principal->key_id.len, (const char *)principal->key_id.data, signer->date,
		context->region);
	return set_host(signer, exchange, err);
}

int url_signer_print(const struct url_signer *signer, const struct url_request *request,
	struct buffer *out, struct error *err)
{
	struct buffer path;
	struct buffer query;
	if (check_parameters(request, err) != 0)
		return -1;
	buffer_init(&path, SIGNED_URL_MAX_BYTES);
	buffer_init(&query, SIGNED_URL_MAX_BYTES);
	print_path(request, &path);
	int outcome = print_query(signer, request, &query, err);
	if (outcome == 0)
		outcome = buffer_check(&path, "The path of a URL", err);
	if (outcome == 0) {
		buffer_add_text(out, signer->base);
		buffer_add_span(out, buffer_span(&path));
		buffer_add_byte(out, '?');
		buffer_add_span(out, buffer_span(&query));
		print_signature(
			signer, request->method, buffer_span(&path), buffer_span(&query), out);
	}
	buffer_release(&path);
	buffer_release(&query);
	return outcome;
}

/* Browsers write a host in lower case, and without the port that the scheme has anyway. */
static int set_host(struct url_signer *signer, struct exchange *exchange, struct error *err)
{
	char *const base = arena_text(exchange->arena, span_text(base_url(exchange)));
	if (base == NULL || signer->scope == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	for (char *at = base; *at != '\0'; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at = (char)(*at - 'A' + 'a');
	char *const colon = strrchr(base, ':');
	if (colon != NULL && drops_port(base, (size_t)(colon - base)))
		*colon = '\0';
	signer->base = base;
	signer->host = strstr(base, "://") + 3;
	return 0;
}

/* `len`: up to the last colon. */
static bool drops_port(const char *base, size_t len)
{
	const char *const port = base + len;
	return (strncmp(base, "https:", 6) == 0 && strcmp(port, ":443") == 0) ||
		(strncmp(base, "http:", 5) == 0 && strcmp(port, ":80") == 0);
}

static int check_parameters(const struct url_request *request, struct error *err)
{
	static const char *const own[] = {"x-amz-algorithm", "x-amz-credential", "x-amz-date",
		"x-amz-expires", "x-amz-signedheaders", "x-amz-signature", "x-amz-security-token",
		"awsaccesskeyid", "signature", "expires"};
	for (size_t i = 0; i < request->parameter_count; i++)
		for (size_t j = 0; j < sizeof(own) / sizeof(own[0]); j++)
			if (span_equal_nocase(request->parameters[i].name, own[j]))
				return error_set(err, ERROR_INVALID,
					"The parameter %s belongs to the signature.", own[j]);
	return 0;
}

static void print_path(const struct url_request *request, struct buffer *out)
{
	buffer_add_byte(out, '/');
	encode_percent(request->bucket, false, out);
	if (request->key.len == 0)
		return;
	buffer_add_byte(out, '/');
	encode_percent(request->key, true, out);
}

/* Without the signature, in its canonical form. */
static int print_query(const struct url_signer *signer, const struct url_request *request,
	struct buffer *out, struct error *err)
{
	struct buffer pairs;
	buffer_init(&pairs, SIGNED_URL_MAX_BYTES);
	for (size_t i = 0; i < request->parameter_count; i++) {
		encode_percent(request->parameters[i].name, false, &pairs);
		buffer_add_byte(&pairs, '=');
		encode_percent(request->parameters[i].value, false, &pairs);
		buffer_add_byte(&pairs, '&');
	}
	buffer_add_text(&pairs, "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=");
	encode_percent(span_text(signer->scope), false, &pairs);
	buffer_format(&pairs, "&X-Amz-Date=%s&X-Amz-Expires=%lld&X-Amz-SignedHeaders=host",
		signer->date, (long long)signer->expires_s);
	int outcome = buffer_check(&pairs, "The query of a URL", err);
	if (outcome == 0)
		outcome = canonical_request_query(buffer_span(&pairs), NULL, out, err);
	buffer_release(&pairs);
	return outcome == 0 ? buffer_check(out, "The query of a URL", err) : -1;
}

static void print_signature(const struct url_signer *signer, enum method method, struct span path,
	struct span query, struct buffer *out)
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	struct buffer text;
	buffer_init(&text, 3 * (size_t)SIGNED_URL_MAX_BYTES);
	buffer_format(&text, "%s\n", canonical_request_method(method));
	buffer_add_span(&text, path);
	buffer_add_byte(&text, '\n');
	buffer_add_span(&text, query);
	buffer_format(&text, "\nhost:%s\n\nhost\nUNSIGNED-PAYLOAD", signer->host);
	sha256(buffer_span(&text), digest);
	encode_hex(span_of(digest, sizeof(digest)), hex);
	buffer_reset(&text);
	buffer_format(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", signer->date,
		strchr(signer->scope, '/') + 1, hex);
	hmac_sha256(span_of(signer->key, sizeof(signer->key)), buffer_span(&text), digest);
	encode_hex(span_of(digest, sizeof(digest)), hex);
	buffer_format(out, "&X-Amz-Signature=%s", hex);
	buffer_release(&text);
}
