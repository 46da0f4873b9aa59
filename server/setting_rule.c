#include "server/setting_rule.h"

#include <string.h>

#include "api/keyring.h"
#include "base/client_address.h"
#include "server/listener_socket.h"

typedef int rule_fn(const char *value, struct error *err);

static int need(bool holds, const char *rule, const char *value, struct error *err)
{
	return holds ? 0 : error_set(err, ERROR_INVALID, "it must be %s, not '%.200s'", rule, value);
}

static int check_network(const char *value, struct error *err)
{
	struct client_network ignored;
	return client_network_parse(value, &ignored, err);
}

/* Behind it comes "/xet", "/api/...": no slash, no path. */
static int check_base_url(const char *value, struct error *err)
{
	const size_t scheme = strncmp(value, "https://", 8) == 0 ? 8 : strncmp(value, "http://", 7) == 0 ? 7 : 0;
	const bool is_base = scheme > 0 && value[scheme] != '\0' && strpbrk(value + scheme, "/?# \t") == NULL;
	return need(value[0] == '\0' || is_base, "https://HOST[:PORT] or http://HOST[:PORT] without a path", value, err);
}

static int check_name(const char *value, struct error *err)
{
	const char *const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:*[]";
	return need(value[strspn(value, plain)] == '\0', "a host name or an address", value, err);
}

static int check_namespace(const char *value, struct error *err)
{
	return need(keyring_is_namespace(span_text(value)), "1 to 63 of a-z 0-9 . _ -, without -- and neither begin nor end with -", value, err);
}

static int check_filled(const char *value, struct error *err)
{
	return need(value[0] != '\0' && strpbrk(value, " \t") == NULL, "a word without blanks", value, err);
}

static int check_present(const char *value, struct error *err)
{
	return need(value[0] != '\0', "set", value, err);
}

static const struct {
	const char *name;
	const char *words;  /* the choice; NULL: `check` says */
	rule_fn *check;
} rules[] = {
	{"after_damage", "refuse, read-only or serve", NULL},
	{"etag", "md5 or fast", NULL},
	{"hub_default_visibility", "private or public", NULL},
	{"log_level", "error, warning, info or debug", NULL},
	{"listen", NULL, listener_socket_check},
	{"trusted_proxies", NULL, check_network},
	{"public_url", NULL, check_base_url},
	{"tls_name", NULL, check_name},
	{"domain", NULL, check_name},
	{"webhook_hosts", NULL, check_name},
	{"default_namespace", NULL, check_namespace},
	{"region", NULL, check_filled},
	{"tls_priorities", NULL, check_present},
};

/* "a, b or c" has the word b. */
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

int setting_rule_check(const char *name, const char *value, struct error *err)
{
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		if (strcmp(rules[i].name, name) != 0)
			continue;
		return rules[i].words != NULL ? need(has_word(rules[i].words, value), rules[i].words, value, err) : rules[i].check(value, err);
	}
	return 0;
}
