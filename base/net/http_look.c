/* libcurl gives the certificate as texts, which differ with the TLS library below it. */
#include "base/net/http_look.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/net/http_client_internal.h"

static void take_times(CURL *easy, struct http_look *look);
static enum http_reach find_reach(CURL *easy, int code, const struct http_look *look);
static void take_address(CURL *easy, struct http_look *look);
static void take_certificate(CURL *easy, struct http_look *look);
static void take_line(struct http_look *look, struct span line);
static bool take_text(struct span line, const char *label, char *out, size_t capacity);
static int64_t parse_end(const char *text);

void http_look_begin(const struct http_transfer *transfer)
{
	if (transfer->request->look == NULL)
		return;
	*transfer->request->look = (struct http_look){.date_ms = -1, .ends_ms = -1};
	curl_easy_setopt(transfer->easy, CURLOPT_CERTINFO, 1L);
	curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, 1L);
}

void http_look_end(const struct http_transfer *transfer, int code)
{
	struct http_look *const look = transfer->request->look;
	long proxy_status = 0;
	if (look == NULL)
		return;
	take_times(transfer->easy, look);
	take_address(transfer->easy, look);
	take_certificate(transfer->easy, look);
	curl_easy_getinfo(transfer->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
	look->through_proxy = proxy_status != 0;
	look->date_ms = transfer->response->date_ms;
	look->reach = find_reach(transfer->easy, code, look);
}

static void take_times(CURL *easy, struct http_look *look)
{
	curl_off_t times[4] = {0};
	curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &times[0]);
	curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &times[1]);
	curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &times[2]);
	curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &times[3]);
	look->named_us = times[0];
	look->connected_us = times[1];
	look->secured_us = times[2];
	look->answered_us = times[3];
}

static enum http_reach find_reach(CURL *easy, int code, const struct http_look *look)
{
	long status = 0;
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 0)
		return HTTP_REACH_ANSWERED;
	if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY)
		return HTTP_REACH_NOTHING;
	if (code == CURLE_COULDNT_CONNECT ||
		(code == CURLE_OPERATION_TIMEDOUT && look->connected_us == 0))
		return HTTP_REACH_ADDRESS;
	return look->secured_us == 0 ? HTTP_REACH_PEER : HTTP_REACH_SECURED;
}

static void take_address(CURL *easy, struct http_look *look)
{
	char *address = NULL;
	long port = 0;
	curl_easy_getinfo(easy, CURLINFO_PRIMARY_IP, &address);
	curl_easy_getinfo(easy, CURLINFO_PRIMARY_PORT, &port);
	if (address == NULL || address[0] == '\0')
		return;
	const bool is_ipv6 = strchr(address, ':') != NULL;
	snprintf(look->address, sizeof(look->address), "%s%s%s:%ld", is_ipv6 ? "[" : "", address,
		is_ipv6 ? "]" : "", port);
}

/* The first certificate of the chain is the server's own. */
static void take_certificate(CURL *easy, struct http_look *look)
{
	struct curl_certinfo *chain = NULL;
	curl_easy_getinfo(easy, CURLINFO_CERTINFO, &chain);
	if (chain == NULL || chain->num_of_certs < 1)
		return;
	look->has_certificate = true;
	for (const struct curl_slist *line = chain->certinfo[0]; line != NULL; line = line->next)
		take_line(look, span_text(line->data));
}

static void take_line(struct http_look *look, struct span line)
{
	char end[64];
	if (take_text(line, "Subject:", look->subject, sizeof(look->subject)) ||
		take_text(line, "Issuer:", look->issuer, sizeof(look->issuer)))
		return;
	if (take_text(line, "Expire date:", end, sizeof(end)))
		look->ends_ms = parse_end(end);
}

/* Versions of libcurl differ in the case of the labels. */
static bool take_text(struct span line, const char *label, char *out, size_t capacity)
{
	const size_t len = strlen(label);
	if (!span_equal_nocase(span_slice(line, 0, len), label))
		return false;
	const struct span text = span_trim(span_slice(line, len, line.len));
	snprintf(out, capacity, "%.*s", (int)text.len, (const char *)text.data);
	return true;
}

/* "2027-03-27 21:08:00 GMT" with GnuTLS, "Mar 27 21:08:00 2027 GMT" with OpenSSL. */
static int64_t parse_end(const char *text)
{
	static const char *const FORMS[] = {"%Y-%m-%d %H:%M:%S GMT", "%b %d %H:%M:%S %Y GMT"};
	for (size_t i = 0; i < sizeof(FORMS) / sizeof(FORMS[0]); i++) {
		struct tm parts = {0};
		const char *const rest = strptime(text, FORMS[i], &parts);
		if (rest != NULL && *rest == '\0')
			return (int64_t)timegm(&parts) * 1000;
	}
	return -1;
}
