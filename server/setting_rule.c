/* A table gives each setting either a list of words or a function. Settings without a row may have
 * any value. The functions check only the form of a text; whether a host exists is found out
 * later. */
#include "server/setting_rule.h"

#include <arpa/inet.h>
#include <string.h>

#include "api/auth/keyring.h"
#include "base/net/client_address.h"
#include "server/listener_socket.h"
#include "storage/far/far_place.h"

enum { LABEL_MAX_BYTES = 63, HOST_MAX_BYTES = 253 };

typedef int rule_fn(const char *name, const char *value, struct error *err);

static int check_address(const char *name, const char *value, struct error *err);
static int check_network(const char *name, const char *value, struct error *err);
static int check_base_url(const char *name, const char *value, struct error *err);
static int need(
	bool holds, const char *rule, const char *name, const char *value, struct error *err);
static int check_certified(const char *name, const char *value, struct error *err);
static bool is_host(struct span host);
static bool is_label(struct span label);
static int check_domain(const char *name, const char *value, struct error *err);
static int check_hook_host(const char *name, const char *value, struct error *err);
static int check_namespace(const char *name, const char *value, struct error *err);
static int check_filled(const char *name, const char *value, struct error *err);
static int check_packs(const char *name, const char *value, struct error *err);
static int check_present(const char *name, const char *value, struct error *err);
static bool has_word(const char *words, const char *value);

static const struct {
	const char *name;
	const char *words; /* the allowed words; NULL: `check` decides */
	rule_fn *check;
} rules[] = {
	{"after_damage", "refuse, read-only or serve", NULL},
	{"etag", "md5 or fast", NULL},
	{"hub_default_visibility", "private or public", NULL},
	{"log_level", "error, warning, info or debug", NULL},
	{"listen", NULL, check_address},
	{"trusted_proxies", NULL, check_network},
	{"public_url", NULL, check_base_url},
	{"tls_name", NULL, check_certified},
	{"domain", NULL, check_domain},
	{"webhook_hosts", NULL, check_hook_host},
	{"default_namespace", NULL, check_namespace},
	{"region", NULL, check_filled},
	{"packs", NULL, check_packs},
	{"tls_priorities", NULL, check_present},
};

int setting_rule_check(const char *name, const char *value, struct error *err)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (strcmp(rules[i].name, name) != 0)
			continue;
		ASSERT((rules[i].words == NULL) != (rules[i].check == NULL));
		if (rules[i].words == NULL)
			return rules[i].check(name, value, err);
		return need(has_word(rules[i].words, value), rules[i].words, name, value, err);
	}
	return 0;
}

static int check_address(const char *name, const char *value, struct error *err)
{
	return listener_socket_check(value, err) == 0 ? 0 : error_wrap(err, "%s", name);
}

static int check_network(const char *name, const char *value, struct error *err)
{
	struct client_network ignored;
	return client_network_parse(value, &ignored, err) == 0 ? 0 : error_wrap(err, "%s", name);
}

/* Paths such as "/xet" are added to it, so it must have no path and no slash at its end. */
static int check_base_url(const char *name, const char *value, struct error *err)
{
	const size_t scheme = strncmp(value, "https://", 8) == 0 ? 8
		: strncmp(value, "http://", 7) == 0              ? 7
								 : 0;
	const bool is_base =
		scheme > 0 && value[scheme] != '\0' && strpbrk(value + scheme, "/?# \t") == NULL;
	return need(value[0] == '\0' || is_base,
		"https://HOST[:PORT] or http://HOST[:PORT] without a path", name, value, err);
}

static int need(
	bool holds, const char *rule, const char *name, const char *value, struct error *err)
{
	if (holds)
		return 0;
	return error_set(err, ERROR_INVALID, "%s must be %s, not '%.200s'", name, rule, value);
}

static int check_certified(const char *name, const char *value, struct error *err)
{
	uint8_t address[sizeof(struct in6_addr)];
	const bool is_address =
		inet_pton(AF_INET, value, address) == 1 || inet_pton(AF_INET6, value, address) == 1;
	const struct span host = span_text(strncmp(value, "*.", 2) == 0 ? value + 2 : value);
	return need(is_address || is_host(host), "a host name or an address", name, value, err);
}

static bool is_host(struct span host)
{
	struct span rest = host;
	struct span label;
	while (span_split(&rest, '.', &label))
		if (!is_label(label))
			return false;
	return host.len > 0 && host.len <= HOST_MAX_BYTES && host.data[host.len - 1] != '.';
}

/* 1 to 63 letters, digits, '-' and '_', without '-' at the beginning and the end. */
static bool is_label(struct span label)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	for (size_t i = 0; i < label.len; i++)
		if (label.data[i] == '\0' || strchr(plain, label.data[i]) == NULL)
			return false;
	return label.len > 0 && label.len <= LABEL_MAX_BYTES && label.data[0] != '-' &&
		label.data[label.len - 1] != '-';
}

static int check_domain(const char *name, const char *value, struct error *err)
{
	return need(value[0] == '\0' || is_host(span_text(value)), "a host name", name, value, err);
}

/* NAME, NAME:PORT, .DOMAIN, an address or "*". */
static int check_hook_host(const char *name, const char *value, struct error *err)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:*[]";
	const bool is_plain = value[strspn(value, plain)] == '\0';
	return need(is_plain, "a host name or an address", name, value, err);
}

static int check_namespace(const char *name, const char *value, struct error *err)
{
	return need(keyring_is_namespace(span_text(value)),
		"1 to 63 of a-z 0-9 . _ -, without --, and without - at the beginning and the end",
		name, value, err);
}

static int check_filled(const char *name, const char *value, struct error *err)
{
	return need(value[0] != '\0' && strpbrk(value, " \t") == NULL, "a word without blanks",
		name, value, err);
}

static int check_present(const char *name, const char *value, struct error *err)
{
	return need(value[0] != '\0', "set", name, value, err);
}

/* Whether a list such as "a, b or c" contains the word. */
static bool has_word(const char *words, const char *value)
{
	struct span rest = span_text(words);
	struct span word;
	while (span_split(&rest, ' ', &word)) {
		if (span_ends_text(word, ","))
			word.len--;
		if (!span_equal_text(word, "or") && span_equal_text(word, value))
			return true;
	}
	return false;
}

static int check_packs(const char *name, const char *value, struct error *err)
{
	struct far_place place = {.endpoint = NULL};
	(void)name;
	const int result = value[0] == '\0' ? 0 : far_place_parse(value, &place, err);
	far_place_release(&place);
	return result;
}
