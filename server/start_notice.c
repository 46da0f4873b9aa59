/* Finds an address that clients can use: the setting public_url, or the first TCP address; for
 * other machines the first that is not a loopback address, with the name of the certificate if one
 * is configured. The notice has shell lines for this machine and a login command for others. */
#include "server/start_notice.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/fingerprint.h"
#include "base/memory.h"

enum { TEXT_MAX_BYTES = 8192 };

/* A part of the key that the operator chose is not printed. The clients' variable then refers to
 * the variable that it came from. */
struct part {
	const char *label;
	const char *wanted;
	const char *made;
	const char *variable;
	const char *reference;
};

static bool find_host(const struct configuration *configuration, bool for_others, struct span *out,
	size_t *out_number);
static bool is_loopback(struct span host);
static char *make_endpoint(
	const struct configuration *configuration, struct span host, unsigned port);
static bool is_any(struct span host);
static void print_hidden(const struct start_place *place, struct buffer *out);
static void print_key(const struct part *parts, struct buffer *out);
static void print_block(
	const struct start_place *place, const struct part *parts, struct buffer *out);
static void add_line(struct buffer *out, const char *name, const char *value);
static void add_variable(struct buffer *out, const char *name, const char *value);
static const char *value_of(const struct part *part);
static void print_others(const struct start_place *place, struct buffer *out);
static void print_login(const struct start_place *place, const char *endpoint, struct buffer *out);

char *start_notice_endpoint(const struct configuration *configuration, const unsigned *ports)
{
	struct span host;
	size_t number;
	if (configuration->public_url != NULL)
		return memory_copy_text(configuration->public_url);
	if (!find_host(configuration, false, &host, &number))
		return NULL;
	return make_endpoint(
		configuration, is_any(host) ? span_text("127.0.0.1") : host, ports[number]);
}

char *start_notice_others(const struct configuration *configuration, const unsigned *ports)
{
	struct span host;
	size_t number;
	if (configuration->public_url != NULL)
		return memory_copy_text(configuration->public_url);
	if (!find_host(configuration, true, &host, &number))
		return NULL;
	if (configuration->tls_name.count > 0)
		host = span_text(configuration->tls_name.items[0]);
	return make_endpoint(configuration, is_any(host) ? span_text("HOST") : host, ports[number]);
}

void start_notice_print(const struct start_place *place, const struct keyring_new_key *wanted,
	const struct keyring_made_key *made, struct buffer *out)
{
	const struct part parts[3] = {
		{"key id  ", wanted->id, made->id, "DELTABUCKET_ROOT_KEY_ID",
			"$DELTABUCKET_ROOT_KEY_ID"},
		{"secret  ", wanted->secret, made->secret, "DELTABUCKET_ROOT_SECRET",
			"$DELTABUCKET_ROOT_SECRET"},
		{"token   ", wanted->token, made->token, "DELTABUCKET_ROOT_TOKEN",
			"$DELTABUCKET_ROOT_TOKEN"},
	};
	if (place != NULL && place->hidden_in != NULL) {
		print_hidden(place, out);
		return;
	}
	print_key(parts, out);
	if (place == NULL || place->endpoint == NULL)
		return;
	print_block(place, parts, out);
	print_others(place, out);
}

/* Finds HOST of the first TCP address, or of the first that other machines can reach. */
static bool find_host(const struct configuration *configuration, bool for_others, struct span *out,
	size_t *out_number)
{
	for (size_t i = 0; i < configuration->listen.count; i++) {
		const char *const address = configuration->listen.items[i];
		const char *const colon = strrchr(address, ':');
		if (strncmp(address, "unix:", 5) == 0)
			continue;
		*out = span_of(
			address, colon != NULL ? (size_t)(colon - address) : strlen(address));
		*out_number = i;
		if (!for_others || !is_loopback(*out))
			return true;
	}
	return false;
}

static bool is_loopback(struct span host)
{
	return span_equal_text(host, "localhost") || span_equal_text(host, "[::1]") ||
		span_starts(host, span_text("127."));
}

static char *make_endpoint(
	const struct configuration *configuration, struct span host, unsigned port)
{
	struct buffer text;
	buffer_init(&text, TEXT_MAX_BYTES);
	buffer_format(&text, "%s://%.*s:%u", configuration->http ? "http" : "https", (int)host.len,
		(const char *)host.data, port);
	char *const endpoint = memory_copy_text(buffer_text(&text));
	buffer_release(&text);
	return endpoint;
}

/* Clients cannot connect to 0.0.0.0 and [::]. */
static bool is_any(struct span host)
{
	return host.len == 0 || span_equal_text(host, "0.0.0.0") || span_equal_text(host, "[::]");
}

static void print_hidden(const struct start_place *place, struct buffer *out)
{
	buffer_format(out,
		"A root key was made and is not shown here (show_root_key). On this machine, as root, a key of your own:\n\n"
		"  deltabucketd keys add --data %s --name NAME\n\n"
		"and a link that signs a browser in to the console:\n\n"
		"  deltabucketd console --data %s\n\n",
		place->hidden_in, place->hidden_in);
	if (place->endpoint == NULL)
		return;
	buffer_add_text(out, "The key comes with a token. The command line takes it on stdin:\n\n");
	print_login(place, place->endpoint, out);
}

static void print_key(const struct part *parts, struct buffer *out)
{
	const char *gap = "";
	buffer_add_text(out, "The root key, shown only once:\n");
	for (size_t i = 0; i < 3; i++)
		if (parts[i].wanted == NULL)
			buffer_format(out, "  %s%s\n", parts[i].label, parts[i].made);
	buffer_add_text(out, "To choose it yourself, start the server with ");
	for (size_t i = 0; i < 3; i++) {
		if (parts[i].wanted != NULL)
			continue;
		buffer_format(out, "%s%s", gap, parts[i].variable);
		gap = ", ";
	}
	buffer_add_text(out, ".\n");
}

static void print_block(
	const struct start_place *place, const struct part *parts, struct buffer *out)
{
	ASSERT(place->endpoint != NULL);
	buffer_add_text(out, "\nFor clients on this machine, to paste into a shell:\n\n");
	add_line(out, "DELTABUCKET_ENDPOINT", place->endpoint);
	if (place->ca_path != NULL)
		add_line(out, "DELTABUCKET_CA", place->ca_path);
	add_line(out, "DELTABUCKET_TOKEN", value_of(&parts[2]));
	add_line(out, "AWS_ENDPOINT_URL", place->endpoint);
	if (place->ca_path != NULL)
		add_line(out, "AWS_CA_BUNDLE", place->ca_path);
	add_line(out, "AWS_DEFAULT_REGION", place->region);
	add_line(out, "AWS_ACCESS_KEY_ID", value_of(&parts[0]));
	add_line(out, "AWS_SECRET_ACCESS_KEY", value_of(&parts[1]));
}

static void add_line(struct buffer *out, const char *name, const char *value)
{
	buffer_add_text(out, "  export");
	add_variable(out, name, value);
	buffer_add_byte(out, '\n');
}

/* Adds " NAME=value", quoted for a shell. */
static void add_variable(struct buffer *out, const char *name, const char *value)
{
	const bool is_plain =
		value[strspn(value,
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:-+=@%,$")] ==
		'\0';
	buffer_format(out, " %s=%s", name, is_plain ? "" : "'");
	for (const char *at = value; *at != '\0'; at++)
		buffer_add_text(
			out, *at == '\'' && !is_plain ? "'\\''" : (const char[]){*at, '\0'});
	buffer_add_text(out, is_plain ? "" : "'");
}

static const char *value_of(const struct part *part)
{
	return part->wanted == NULL ? part->made : part->reference;
}

static void print_others(const struct start_place *place, struct buffer *out)
{
	if (place->others == NULL) {
		buffer_add_text(out,
			"\nOther machines cannot reach it: it listens only on this machine (README.md, \"Workers on other machines\").\n\n");
		return;
	}
	if (place->ca_pem == NULL)
		return;
	buffer_add_text(out,
		"\nOn other machines (README.md, \"Workers on other machines\"), with the token on stdin:\n\n");
	print_login(place, place->others, out);
}

static void print_login(const struct start_place *place, const char *endpoint, struct buffer *out)
{
	struct fingerprint fingerprint;
	char text[FINGERPRINT_TEXT_BYTES];
	const bool has_ca =
		place->ca_pem != NULL && fingerprint_of_pem(span_text(place->ca_pem), &fingerprint);
	if (has_ca)
		fingerprint_format(&fingerprint, text);
	buffer_format(out, "  deltabucket login %s%s%s\n\n", endpoint,
		has_ca ? " --fingerprint " : "", has_ca ? text : "");
}
