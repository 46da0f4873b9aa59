/* An address is always 16 bytes; IPv4 addresses carry the mapped prefix. Networks compare the
 * leading bits of these bytes, and the bits of an IPv4 network count from behind the prefix. */
#include "base/net/client_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/digest/xxh3.h"

enum {
	PREFIX_BYTES = 12, /* before an IPv4 address */
	NETWORK_BYTES = 8, /* one client controls all addresses of such an IPv6 network */
	BITS = 8 * CLIENT_ADDRESS_BYTES,
	PORT_MAX = 65535
};

static const uint8_t ipv4_prefix[PREFIX_BYTES] = {[10] = 0xff, [11] = 0xff};

static struct client_address from_ipv4(const void *bytes);
static bool is_port(struct span text);
static bool parse_bare(struct span text, struct client_address *out);
static bool is_ipv4(const struct client_address *address);
static bool parse_network(const char *text, struct client_network *out);
static bool has_bits_beyond(const struct client_network *network);

struct client_address client_address_of(const struct sockaddr *address)
{
	struct client_address made = {0};
	if (address != NULL && address->sa_family == AF_INET)
		return from_ipv4(&((const struct sockaddr_in *)(const void *)address)->sin_addr);
	if (address != NULL && address->sa_family == AF_INET6)
		memcpy(made.bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
			CLIENT_ADDRESS_BYTES);
	else
		made.is_unix = true;
	return made;
}

bool client_address_parse(struct span text, struct client_address *out)
{
	const ptrdiff_t end = span_find(text, ']');
	const ptrdiff_t colon = span_find(text, ':');
	if (text.len > 0 && text.data[0] == '[')
		return end > 0 && is_port(span_slice(text, (size_t)end + 1, text.len)) &&
			parse_bare(span_slice(text, 1, (size_t)end - 1), out) &&
			memchr(text.data, ':', (size_t)end) != NULL;
	if (colon >= 0 && span_find(span_slice(text, (size_t)colon + 1, text.len), ':') < 0)
		return is_port(span_slice(text, (size_t)colon, text.len)) &&
			parse_bare(span_slice(text, 0, (size_t)colon), out);
	return parse_bare(text, out);
}

void client_address_format(
	const struct client_address *address, char out[CLIENT_ADDRESS_TEXT_BYTES])
{
	const char *made = "unix";
	if (is_ipv4(address))
		made = inet_ntop(
			AF_INET, address->bytes + PREFIX_BYTES, out, CLIENT_ADDRESS_TEXT_BYTES);
	else if (!address->is_unix)
		made = inet_ntop(AF_INET6, address->bytes, out, CLIENT_ADDRESS_TEXT_BYTES);
	ASSERT(made != NULL);
	if (made != out)
		memcpy(out, made, strlen(made) + 1);
}

uint64_t client_address_hash(const struct client_address *address)
{
	if (address->is_unix)
		return 0;
	if (is_ipv4(address))
		return xxh3_64(span_of(
			address->bytes + PREFIX_BYTES, CLIENT_ADDRESS_BYTES - PREFIX_BYTES));
	return xxh3_64(span_of(address->bytes, NETWORK_BYTES));
}

int client_network_parse(const char *text, struct client_network *out, struct error *err)
{
	if (parse_network(text, out))
		return 0;
	return error_set(err, ERROR_INVALID,
		"\"%s\" is neither an address (10.0.0.7, fd00::7), nor a network (10.0.0.0/8, fd00::/64, "
		"with zeros after its prefix), nor unix",
		text);
}

bool client_network_has(const struct client_network *network, const struct client_address *address)
{
	ASSERT(network->bits <= BITS);
	if (network->address.is_unix || address->is_unix)
		return network->address.is_unix && address->is_unix;
	for (unsigned bit = 0; bit < network->bits; bit++)
		if (((network->address.bytes[bit / 8] ^ address->bytes[bit / 8]) >> (7 - bit % 8) &
			    1) != 0)
			return false;
	return true;
}

static struct client_address from_ipv4(const void *bytes)
{
	struct client_address made = {0};
	memcpy(made.bytes, ipv4_prefix, PREFIX_BYTES);
	memcpy(made.bytes + PREFIX_BYTES, bytes, sizeof(struct in_addr));
	return made;
}

/* True for nothing, or a colon and a port. */
static bool is_port(struct span text)
{
	uint64_t port;
	return text.len == 0 ||
		(text.data[0] == ':' && span_parse_u64(span_slice(text, 1, text.len), &port) &&
			port <= PORT_MAX);
}

/* Parses an address without brackets and port. */
static bool parse_bare(struct span text, struct client_address *out)
{
	char copy[CLIENT_ADDRESS_TEXT_BYTES];
	struct in_addr v4;
	if (text.len == 0 || text.len >= sizeof(copy) || memchr(text.data, '\0', text.len) != NULL)
		return false;
	memcpy(copy, text.data, text.len);
	copy[text.len] = '\0';
	*out = (struct client_address){0};
	if (inet_pton(AF_INET, copy, &v4) != 1)
		return inet_pton(AF_INET6, copy, out->bytes) == 1;
	*out = from_ipv4(&v4);
	return true;
}

static bool is_ipv4(const struct client_address *address)
{
	return !address->is_unix && memcmp(address->bytes, ipv4_prefix, PREFIX_BYTES) == 0;
}

static bool parse_network(const char *text, struct client_network *out)
{
	struct span rest = span_text(text);
	struct span address;
	uint64_t bits = BITS;
	*out = (struct client_network){.address.is_unix = strcmp(text, "unix") == 0};
	if (out->address.is_unix)
		return true;
	if (!span_split(&rest, '/', &address) || !parse_bare(address, &out->address))
		return false;
	if (strchr(text, '/') != NULL) {
		const unsigned before = is_ipv4(&out->address) ? 8 * PREFIX_BYTES : 0;
		if (!span_parse_u64(rest, &bits) || bits > BITS - before)
			return false;
		bits += before;
	}
	out->bits = (unsigned)bits;
	return !has_bits_beyond(out);
}

static bool has_bits_beyond(const struct client_network *network)
{
	for (unsigned bit = network->bits; bit < BITS; bit++)
		if ((network->address.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0)
			return true;
	return false;
}
