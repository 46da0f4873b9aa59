#include "base/net/trusted_proxies.h"

#include <stdlib.h>

#include "base/memory.h"

struct trusted_proxies {
	size_t count;
	struct client_network networks[];
};

static bool take_last(struct span *list, struct span *out_entry);

struct trusted_proxies *trusted_proxies_new(char *const *texts, size_t count, struct error *err)
{
	struct trusted_proxies *const proxies =
		memory_new(sizeof(*proxies) + count * sizeof(proxies->networks[0]));
	proxies->count = count;
	for (size_t i = 0; i < count; i++)
		if (client_network_parse(texts[i], &proxies->networks[i], err) != 0) {
			free(proxies);
			return NULL;
		}
	return proxies;
}

void trusted_proxies_free(struct trusted_proxies *proxies)
{
	free(proxies);
}

bool trusted_proxies_have(
	const struct trusted_proxies *proxies, const struct client_address *address)
{
	for (size_t i = 0; proxies != NULL && i < proxies->count; i++)
		if (client_network_has(&proxies->networks[i], address))
			return true;
	return false;
}

struct client_address trusted_proxies_client(const struct trusted_proxies *proxies,
	const struct client_address *peer, struct span forwarded)
{
	struct client_address client = *peer;
	struct client_address before;
	struct span list = forwarded;
	struct span entry;
	while (trusted_proxies_have(proxies, &client) && take_last(&list, &entry) &&
		client_address_parse(entry, &before))
		client = before;
	return client;
}

/* Removes the last entry from the list; false when there is none. */
static bool take_last(struct span *list, struct span *out_entry)
{
	if (list->len == 0)
		return false;
	size_t begin = list->len;
	while (begin > 0 && list->data[begin - 1] != ',')
		begin--;
	*out_entry = span_trim(span_slice(*list, begin, list->len - begin));
	*list = span_slice(*list, 0, begin > 0 ? begin - 1 : 0);
	return true;
}
