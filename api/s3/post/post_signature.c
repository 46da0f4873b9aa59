/* The string to sign of a form is its policy, in base64 as it arrived. The fields show the version:
 * a form with AWSAccessKeyId is signed with version 2, any other with version 4. Secrets are wiped
 * from memory after use. */
#include "api/s3/post/post_signature.h"

#include <string.h>

#include "api/auth/keyring.h"
#include "api/auth/signature_v2.h"
#include "api/auth/signature_v4.h"

static bool has_any(const struct post_form *form, const char *const *names, size_t count);
static int missing(struct exchange *exchange, const char *field, struct error *err);
static int check_v2(struct exchange *exchange, const struct post_form *form, struct span policy,
	struct span key_id, struct error *err);
static int unknown_key(struct exchange *exchange, struct span key_id, struct error *err);
static int refuse(struct exchange *exchange, struct span key_id, struct span policy,
	struct span signature, struct error *err);
static int check_v4(struct exchange *exchange, const struct post_form *form, struct span policy,
	struct error *err);
static int parse_v4(struct exchange *exchange, const struct post_form *form,
	struct signature_v4 *out, struct error *err);

int post_signature_check(struct exchange *exchange, const struct post_form *form, struct error *err)
{
	static const char *const signs[] = {
		"AWSAccessKeyId", "signature", "x-amz-signature", "x-amz-credential"};
	struct span policy;
	struct span key_id;
	const bool is_signed = has_any(form, signs, sizeof(signs) / sizeof(signs[0]));
	if (!post_form_find(form, "policy", &policy))
		return is_signed ? missing(exchange, "policy", err) : 0;
	if (post_form_find(form, "AWSAccessKeyId", &key_id))
		return check_v2(exchange, form, policy, key_id, err);
	return is_signed ? check_v4(exchange, form, policy, err)
			 : missing(exchange, "AWSAccessKeyId", err);
}

static bool has_any(const struct post_form *form, const char *const *names, size_t count)
{
	struct span value;
	for (size_t i = 0; i < count; i++)
		if (post_form_find(form, names[i], &value))
			return true;
	return false;
}

static int missing(struct exchange *exchange, const char *field, struct error *err)
{
	exchange_error_field(exchange, "ArgumentName", span_text(field));
	exchange_error_field(exchange, "ArgumentValue", span_text(""));
	return error_set(err, ERROR_INVALID,
		"Bucket POST must contain a field named '%s'. If it is specified, please check the order of the fields.",
		field);
}

static int check_v2(struct exchange *exchange, const struct post_form *form, struct span policy,
	struct span key_id, struct error *err)
{
	struct span signature;
	struct span secret = {NULL, 0};
	if (!exchange->context->sigv2)
		return error_set(err, ERROR_INVALID_REQUEST,
			"Signature version 2 is switched off on this server. Please use AWS4-HMAC-SHA256.");
	if (!post_form_find(form, "signature", &signature))
		return missing(exchange, "Signature", err);
	const struct principal *const principal =
		keyring_find_id(exchange->context->keyring, key_id, exchange->arena, &secret);
	if (principal == NULL)
		return unknown_key(exchange, key_id, err);
	const bool good = signature_v2_matches(secret, policy, span_trim(signature));
	explicit_bzero((void *)(uintptr_t)secret.data, secret.len);
	if (!good)
		return refuse(exchange, key_id, policy, signature, err);
	exchange->principal = principal;
	return 0;
}

static int unknown_key(struct exchange *exchange, struct span key_id, struct error *err)
{
	exchange_error_field(exchange, "AWSAccessKeyId", key_id);
	return error_set(err, ERROR_UNKNOWN_KEY_ID,
		"The AWS Access Key Id you provided does not exist in our records.");
}

static int refuse(struct exchange *exchange, struct span key_id, struct span policy,
	struct span signature, struct error *err)
{
	exchange_error_field(exchange, "AWSAccessKeyId", key_id);
	exchange_error_field(exchange, "StringToSign", policy);
	exchange_error_field(exchange, "SignatureProvided", signature);
	exchange_error_bytes(exchange, "StringToSignBytes", policy);
	return error_set(err, ERROR_SIGNATURE,
		"The signature is not the one that this key makes for the policy as it arrived.");
}

static int check_v4(struct exchange *exchange, const struct post_form *form, struct span policy,
	struct error *err)
{
	struct signature_v4 signature = {.key_id = {NULL, 0}};
	struct span token;
	uint8_t key[SHA256_BYTES];
	if (parse_v4(exchange, form, &signature, err) != 0)
		return -1;
	if (post_form_find(form, "x-amz-security-token", &token))
		return error_set(err, ERROR_INVALID_TOKEN,
			"The x-amz-security-token is not valid, because this server does not give out temporary credentials.");
	const struct principal *const principal =
		keyring_find_signing_key(exchange->context->keyring, signature.key_id,
			signature.date, signature.region, exchange->arena, key);
	if (principal == NULL)
		return unknown_key(exchange, signature.key_id, err);
	const bool good = signature_v4_matches(key, policy, signature.signature);
	explicit_bzero(key, sizeof(key));
	if (!good)
		return refuse(exchange, signature.key_id, policy, signature.signature, err);
	exchange->principal = principal;
	return 0;
}

/* Finds and parses the fields of version 4. */
static int parse_v4(struct exchange *exchange, const struct post_form *form,
	struct signature_v4 *out, struct error *err)
{
	struct span algorithm = {NULL, 0};
	struct span credential = {NULL, 0};
	struct span date = {NULL, 0};
	struct error cause = {0};
	int64_t ms;
	const struct {
		const char *name;
		struct span *value;
	} fields[] = {{"x-amz-algorithm", &algorithm}, {"x-amz-credential", &credential},
		{"x-amz-date", &date}, {"x-amz-signature", &out->signature}};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!post_form_find(form, fields[i].name, fields[i].value))
			return missing(exchange, fields[i].name, err);
	if (!span_equal_text(algorithm, "AWS4-HMAC-SHA256"))
		return error_set(
			err, ERROR_INVALID, "The field x-amz-algorithm must be AWS4-HMAC-SHA256.");
	if (signature_v4_parse_credential(credential, out, &cause) != 0) {
		*err = cause;
		err->kind = ERROR_INVALID;
		return error_wrap(err, "The field x-amz-credential");
	}
	if (!clock_parse_amz(date, &ms) || !span_equal(out->date, span_slice(date, 0, 8)))
		return error_set(err, ERROR_INVALID,
			"The field x-amz-date must have the form yyyymmddThhmmssZ and the day of x-amz-credential.");
	return 0;
}
