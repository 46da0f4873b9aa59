/* A generation is the chain and the key that one handshake uses. A replaced generation is kept for
 * KEEP_MS, because a handshake that began with it may still be signing; that is far longer than the
 * longest idle timeout.
 *
 * The CA of a data folder is made once. If its files are damaged, the start fails and nothing is
 * made again, because clients trust the old CA. A leaf is issued at each start and reload. */
#include "server/certificate.h"

#include <arpa/inet.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread/lock.h"
#include "server/data_folder.h"

#define DAY_MS INT64_C(86400000)
enum {
	CHAIN_MAX = 16,
	PEM_MAX_BYTES = 1024 * 1024,
	LEAF_DAYS = 120,
	RENEW_DAYS = 30,
	CA_DAYS = 3650,
	SERIAL_BYTES = 16
};
static const int64_t KEEP_MS = 2 * 3600 * 1000;

struct generation {
	gnutls_pcert_st chain[CHAIN_MAX];
	unsigned chain_len;
	gnutls_privkey_t key;
	int64_t ends_ms;
	int64_t retired_ms;
	struct generation *older;
};

struct certificate {
	struct certificate_options options;
	char *ca_path;
	char *ca_key_path;
	char *ca_pem;         /* NULL for given files */
	gnutls_x509_crt_t ca; /* NULL for given files */
	gnutls_x509_privkey_t ca_key;
	struct lock lock; /* guards current and its list */
	struct generation *current;
};

/* The certificate of the process, because GnuTLS calls back without an argument of ours. Set by
 * open, cleared by close. */
static _Atomic(struct certificate *) served;

static int tls_error(struct error *err, int code, const char *what)
{
	return error_set(err, ERROR_IO, "%s: %s", what, gnutls_strerror(code));
}

static void generation_free(struct generation *generation)
{
	for (unsigned i = 0; i < generation->chain_len; i++)
		gnutls_pcert_deinit(&generation->chain[i]);
	if (generation->key != NULL)
		gnutls_privkey_deinit(generation->key);
	free(generation);
}

/* Sets version, serial number and lifetime. The lifetime begins a day early, because clocks of
 * clients differ. */
static int set_lifetime(gnutls_x509_crt_t crt, int64_t now_ms, int days)
{
	uint8_t serial[SERIAL_BYTES];
	random_bytes(serial, sizeof(serial));
	serial[0] = (uint8_t)((serial[0] & 0x3f) | 0x40);
	int code = gnutls_x509_crt_set_version(crt, 3);
	if (code == 0)
		code = gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
	if (code == 0)
		code = gnutls_x509_crt_set_activation_time(crt, (time_t)((now_ms - DAY_MS) / 1000));
	if (code == 0)
		code = gnutls_x509_crt_set_expiration_time(
			crt, (time_t)((now_ms + days * DAY_MS) / 1000));
	return code;
}

static int make_private_key(gnutls_x509_privkey_t *out)
{
	int code = gnutls_x509_privkey_init(out);
	if (code == 0)
		code = gnutls_x509_privkey_generate(
			*out, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	return code;
}

/* Key identifiers let clients distinguish the CA of this data folder from another CA with the same
 * name. */
static int set_key_id(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, bool authority)
{
	uint8_t id[64];
	size_t len = sizeof(id);
	int code = gnutls_x509_privkey_get_key_id(key, 0, id, &len);
	if (code == 0)
		code = authority ? gnutls_x509_crt_set_authority_key_id(crt, id, len)
				 : gnutls_x509_crt_set_subject_key_id(crt, id, len);
	return code;
}

static int fill_ca(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, int64_t now_ms)
{
	static const char name[] = "deltabucket private CA";
	int code = set_lifetime(crt, now_ms, CA_DAYS);
	if (code == 0)
		code = gnutls_x509_crt_set_dn_by_oid(
			crt, GNUTLS_OID_X520_COMMON_NAME, 0, name, sizeof(name) - 1);
	if (code == 0)
		code = gnutls_x509_crt_set_basic_constraints(crt, 1, 0);
	if (code == 0)
		code = gnutls_x509_crt_set_key_usage(
			crt, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
	if (code == 0)
		code = gnutls_x509_crt_set_key(crt, key);
	if (code == 0)
		code = set_key_id(crt, key, false);
	if (code == 0)
		code = gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0);
	return code;
}

static int publish_pem(const struct certificate *certificate, const char *path, gnutls_datum_t *pem,
	mode_t mode, struct error *err)
{
	const int outcome = file_publish(
		certificate->options.files, path, span_of(pem->data, pem->size), mode, err);
	explicit_bzero(pem->data, pem->size);
	gnutls_free(pem->data);
	return outcome;
}

/* Writes the key before the certificate, so that a crash in between leaves no CA without its
 * key. */
static int make_ca(struct certificate *certificate, struct error *err)
{
	gnutls_datum_t pem;
	int code = make_private_key(&certificate->ca_key);
	if (code == 0)
		code = gnutls_x509_crt_init(&certificate->ca);
	if (code == 0)
		code = fill_ca(certificate->ca, certificate->ca_key,
			certificate->options.clock->wall_ms(certificate->options.clock));
	if (code == 0)
		code = gnutls_x509_privkey_export2(certificate->ca_key, GNUTLS_X509_FMT_PEM, &pem);
	if (code != 0)
		return tls_error(err, code, "cannot make the private CA");
	if (publish_pem(certificate, certificate->ca_key_path, &pem, 0600, err) != 0)
		return -1;
	code = gnutls_x509_crt_export2(certificate->ca, GNUTLS_X509_FMT_PEM, &pem);
	if (code != 0)
		return tls_error(err, code, "cannot write the private CA");
	if (publish_pem(certificate, certificate->ca_path, &pem, 0644, err) != 0)
		return -1;
	/* Clients may read it, whatever the umask of this process is (folder_modes.h). */
	(void)chmod(certificate->ca_path, 0644);
	return 0;
}

/* Clients trust the CA, so its files are never replaced without the operator. */
static int refuse_ca(
	const struct certificate *certificate, const char *path, const char *why, struct error *err)
{
	return error_set(err, ERROR_CORRUPT,
		"%s is not as the server wrote it: %s. Restore it from a backup; or move %s and %s away,"
		" and the server makes another CA, whose certificate its clients then need.",
		path, why, certificate->ca_path, certificate->ca_key_path);
}

static int import_ca(struct certificate *certificate, const struct buffer *crt_pem,
	const struct buffer *key_pem, struct error *err)
{
	const gnutls_datum_t crt = {crt_pem->data, (unsigned)crt_pem->len};
	const gnutls_datum_t key = {key_pem->data, (unsigned)key_pem->len};
	int code = gnutls_x509_crt_init(&certificate->ca);
	if (code == 0)
		code = gnutls_x509_crt_import(certificate->ca, &crt, GNUTLS_X509_FMT_PEM);
	if (code != 0)
		return refuse_ca(certificate, certificate->ca_path, gnutls_strerror(code), err);
	code = gnutls_x509_privkey_init(&certificate->ca_key);
	if (code == 0)
		code = gnutls_x509_privkey_import(certificate->ca_key, &key, GNUTLS_X509_FMT_PEM);
	if (code == 0)
		code = gnutls_x509_privkey_verify_params(certificate->ca_key);
	return code == 0
		? 0
		: refuse_ca(certificate, certificate->ca_key_path, gnutls_strerror(code), err);
}

/* False when a bit of the certificate has changed. */
static bool signs_itself(gnutls_x509_crt_t crt)
{
	static const unsigned flags = GNUTLS_VERIFY_DO_NOT_ALLOW_SAME |
		GNUTLS_VERIFY_DISABLE_TIME_CHECKS | GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS;
	unsigned status = 0;
	return gnutls_x509_crt_verify(crt, &crt, 1, flags, &status) == 0 && status == 0;
}

static bool is_key_of(gnutls_x509_privkey_t key, gnutls_x509_crt_t crt)
{
	uint8_t ids[2][64];
	size_t lens[2] = {sizeof(ids[0]), sizeof(ids[1])};
	return gnutls_x509_crt_get_key_id(crt, 0, ids[0], &lens[0]) == 0 &&
		gnutls_x509_privkey_get_key_id(key, 0, ids[1], &lens[1]) == 0 &&
		span_equal(span_of(ids[0], lens[0]), span_of(ids[1], lens[1]));
}

static int check_ca(const struct certificate *certificate, struct error *err)
{
	if (!signs_itself(certificate->ca))
		return refuse_ca(certificate, certificate->ca_path,
			"it does not match its own signature", err);
	if (!is_key_of(certificate->ca_key, certificate->ca))
		return refuse_ca(certificate, certificate->ca_key_path,
			"it is not the key of the certificate", err);
	return 0;
}

static int load_ca(struct certificate *certificate, struct error *err)
{
	struct buffer crt_pem;
	struct buffer key_pem;
	buffer_init(&crt_pem, PEM_MAX_BYTES);
	buffer_init(&key_pem, PEM_MAX_BYTES);
	int outcome = file_read_all(certificate->ca_path, &crt_pem, err);
	if (outcome == 0)
		outcome = file_read_all(certificate->ca_key_path, &key_pem, err);
	if (outcome == 0)
		outcome = import_ca(certificate, &crt_pem, &key_pem, err);
	if (outcome == 0)
		outcome = check_ca(certificate, err);
	if (key_pem.data != NULL)
		explicit_bzero(key_pem.data, key_pem.len);
	buffer_release(&key_pem);
	buffer_release(&crt_pem);
	return outcome;
}

/* The DNS names and addresses of the leaf, each once. */
struct names {
	gnutls_x509_crt_t crt;
	char **seen;
	size_t count;
	int code;
};

static void add_name(struct names *names, const char *name)
{
	uint8_t address[16];
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->seen[i], name) == 0)
			return;
	names->seen = memory_grow(names->seen, names->count + 1, sizeof(*names->seen));
	names->seen[names->count++] = memory_copy_text(name);
	unsigned len = inet_pton(AF_INET, name, address) == 1 ? 4
		: inet_pton(AF_INET6, name, address) == 1     ? 16
							      : 0;
	const gnutls_x509_subject_alt_name_t type =
		len > 0 ? GNUTLS_SAN_IPADDRESS : GNUTLS_SAN_DNSNAME;
	const void *const data = len > 0 ? (const void *)address : name;
	if (len == 0)
		len = (unsigned)strlen(name);
	if (names->code == 0)
		names->code = gnutls_x509_crt_set_subject_alt_name(
			names->crt, type, data, len, GNUTLS_FSAN_APPEND);
}

static void add_interfaces(struct names *names)
{
	struct ifaddrs *first = NULL;
	if (getifaddrs(&first) != 0)
		return;
	for (const struct ifaddrs *each = first; each != NULL; each = each->ifa_next) {
		char text[INET6_ADDRSTRLEN];
		if (each->ifa_addr == NULL)
			continue;
		const struct sockaddr_in *const v4 = (const void *)each->ifa_addr;
		const struct sockaddr_in6 *const v6 = (const void *)each->ifa_addr;
		if (each->ifa_addr->sa_family == AF_INET &&
			inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text)) != NULL)
			add_name(names, text);
		const bool routable = each->ifa_addr->sa_family == AF_INET6 &&
			!IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
		if (routable && inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)) != NULL)
			add_name(names, text);
	}
	freeifaddrs(first);
}

static int add_names(const struct certificate_options *options, gnutls_x509_crt_t crt)
{
	struct names names = {.crt = crt};
	char host[256] = {0};
	static const char *const always[] = {"localhost", "127.0.0.1", "::1"};
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		add_name(&names, always[i]);
	if (gethostname(host, sizeof(host) - 1) == 0 && host[0] != '\0')
		add_name(&names, host);
	add_interfaces(&names);
	if (options->domain != NULL) {
		const size_t wildcard_bytes = strlen(options->domain) + 3;
		char *const wildcard = memory_new(wildcard_bytes);
		snprintf(wildcard, wildcard_bytes, "*.%s", options->domain);
		add_name(&names, options->domain);
		add_name(&names, wildcard);
		free(wildcard);
	}
	for (size_t i = 0; i < options->name_count; i++)
		add_name(&names, options->names[i]);
	for (size_t i = 0; i < names.count; i++)
		free(names.seen[i]);
	free(names.seen);
	return names.code;
}

static int fill_leaf(
	const struct certificate *certificate, gnutls_x509_crt_t crt, gnutls_x509_privkey_t key)
{
	static const char name[] = "deltabucket";
	int code = set_lifetime(
		crt, certificate->options.clock->wall_ms(certificate->options.clock), LEAF_DAYS);
	if (code == 0)
		code = gnutls_x509_crt_set_dn_by_oid(
			crt, GNUTLS_OID_X520_COMMON_NAME, 0, name, sizeof(name) - 1);
	if (code == 0)
		code = gnutls_x509_crt_set_basic_constraints(crt, 0, -1);
	if (code == 0)
		code = gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (code == 0)
		code = gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (code == 0)
		code = add_names(&certificate->options, crt);
	if (code == 0)
		code = gnutls_x509_crt_set_key(crt, key);
	if (code == 0)
		code = set_key_id(crt, key, false);
	if (code == 0)
		code = set_key_id(crt, certificate->ca_key, true);
	if (code == 0)
		code = gnutls_x509_crt_sign2(
			crt, certificate->ca, certificate->ca_key, GNUTLS_DIG_SHA256, 0);
	return code;
}

/* Copies `key`. The x509 structures still belong to the caller. */
static int fill_generation(struct generation *generation, gnutls_x509_crt_t *crts, unsigned count,
	gnutls_x509_privkey_t key)
{
	int code = 0;
	for (unsigned i = 0; code == 0 && i < count; i++) {
		code = gnutls_pcert_import_x509(&generation->chain[i], crts[i], 0);
		if (code == 0)
			generation->chain_len++;
	}
	if (code == 0)
		code = gnutls_privkey_init(&generation->key);
	if (code == 0)
		code = gnutls_privkey_import_x509(generation->key, key, GNUTLS_PRIVKEY_IMPORT_COPY);
	generation->ends_ms = (int64_t)gnutls_x509_crt_get_expiration_time(crts[0]) * 1000;
	return code;
}

static struct generation *finish_generation(
	struct generation *generation, int code, const char *what, struct error *err)
{
	if (code == 0)
		return generation;
	tls_error(err, code, what);
	generation_free(generation);
	return NULL;
}

static struct generation *issue(const struct certificate *certificate, struct error *err)
{
	struct generation *const generation = memory_new(sizeof(*generation));
	gnutls_x509_privkey_t key = NULL;
	gnutls_x509_crt_t crts[2] = {NULL, certificate->ca};
	int code = make_private_key(&key);
	if (code == 0)
		code = gnutls_x509_crt_init(&crts[0]);
	if (code == 0)
		code = fill_leaf(certificate, crts[0], key);
	if (code == 0)
		code = fill_generation(generation, crts, 2, key);
	if (crts[0] != NULL)
		gnutls_x509_crt_deinit(crts[0]);
	if (key != NULL)
		gnutls_x509_privkey_deinit(key);
	return finish_generation(generation, code, "cannot issue the server's certificate", err);
}

static int import_files(
	struct generation *generation, const struct buffer *cert_pem, const struct buffer *key_pem)
{
	const gnutls_datum_t cert = {cert_pem->data, (unsigned)cert_pem->len};
	const gnutls_datum_t key_text = {key_pem->data, (unsigned)key_pem->len};
	gnutls_x509_crt_t crts[CHAIN_MAX];
	unsigned count = CHAIN_MAX;
	gnutls_x509_privkey_t key = NULL;
	int code = gnutls_x509_crt_list_import(crts, &count, &cert, GNUTLS_X509_FMT_PEM,
		GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
	if (code < 0)
		return code;
	code = gnutls_x509_privkey_init(&key);
	if (code == 0)
		code = gnutls_x509_privkey_import2(key, &key_text, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (code == 0 && !is_key_of(key, crts[0]))
		code = GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
	if (code == 0)
		code = fill_generation(generation, crts, count, key);
	if (key != NULL)
		gnutls_x509_privkey_deinit(key);
	for (unsigned i = 0; i < count; i++)
		gnutls_x509_crt_deinit(crts[i]);
	return code;
}

static struct generation *load_files(const struct certificate *certificate, struct error *err)
{
	struct generation *generation = NULL;
	struct buffer cert;
	struct buffer key;
	buffer_init(&cert, PEM_MAX_BYTES);
	buffer_init(&key, PEM_MAX_BYTES);
	if (file_read_all(certificate->options.cert_file, &cert, err) == 0 &&
		file_read_all(certificate->options.key_file, &key, err) == 0) {
		generation = memory_new(sizeof(*generation));
		const int code = import_files(generation, &cert, &key);
		char what[ERROR_TEXT_BYTES];
		snprintf(what, sizeof(what), "cannot use %s with %s",
			certificate->options.cert_file, certificate->options.key_file);
		generation = finish_generation(generation, code, what, err);
	}
	if (key.data != NULL)
		explicit_bzero(key.data, key.len);
	buffer_release(&key);
	buffer_release(&cert);
	return generation;
}

static void drop_retired(struct certificate *certificate, int64_t now_ms)
{
	ASSERT(certificate->current != NULL);
	struct generation **place = &certificate->current->older;
	while (*place != NULL) {
		struct generation *const each = *place;
		if (now_ms - each->retired_ms <= KEEP_MS) {
			place = &each->older;
			continue;
		}
		*place = each->older;
		generation_free(each);
	}
}

int certificate_reload(struct certificate *certificate, struct error *err)
{
	struct generation *const fresh = certificate->options.cert_file != NULL
		? load_files(certificate, err)
		: issue(certificate, err);
	if (fresh == NULL)
		return -1;
	const int64_t now_ms = certificate->options.clock->wall_ms(certificate->options.clock);
	lock_enter(&certificate->lock);
	fresh->older = certificate->current;
	if (fresh->older != NULL)
		fresh->older->retired_ms = now_ms;
	certificate->current = fresh;
	drop_retired(certificate, now_ms);
	lock_leave(&certificate->lock);
	return 0;
}

static int keep_pem(struct certificate *certificate, struct error *err)
{
	gnutls_datum_t pem;
	const int code = gnutls_x509_crt_export2(certificate->ca, GNUTLS_X509_FMT_PEM, &pem);
	if (code != 0)
		return tls_error(err, code, "cannot read the private CA");
	certificate->ca_pem = memory_new(pem.size + 1);
	memcpy(certificate->ca_pem, pem.data, pem.size);
	gnutls_free(pem.data);
	return 0;
}

static int open_ca(struct certificate *certificate, struct error *err)
{
	certificate->ca_path = data_folder_path(certificate->options.folder, "ca.pem");
	certificate->ca_key_path = data_folder_path(certificate->options.folder, "ca.key");
	if (file_make_folder(certificate->options.files, certificate->options.folder, 0700, err) !=
		0)
		return -1;
	const int outcome = file_exists(certificate->ca_path) ? load_ca(certificate, err)
							      : make_ca(certificate, err);
	return outcome == 0 ? keep_pem(certificate, err) : -1;
}

struct certificate *certificate_open(const struct certificate_options *options, struct error *err)
{
	ASSERT((options->cert_file == NULL) == (options->key_file == NULL));
	ASSERT(options->cert_file != NULL || options->folder != NULL);
	struct certificate *const certificate = memory_new(sizeof(*certificate));
	certificate->options = *options;
	if (options->files == NULL)
		certificate->options.files = file_system();
	lock_init(&certificate->lock, LOCK_CERTIFICATE);
	int outcome = 0;
	if (options->cert_file == NULL)
		outcome = open_ca(certificate, err);
	if (outcome == 0)
		outcome = certificate_reload(certificate, err);
	if (outcome != 0) {
		certificate_close(certificate);
		return NULL;
	}
	atomic_store(&served, certificate);
	return certificate;
}

void certificate_close(struct certificate *certificate)
{
	if (certificate == NULL)
		return;
	struct certificate *expected = certificate;
	atomic_compare_exchange_strong(&served, &expected, NULL);
	while (certificate->current != NULL) {
		struct generation *const older = certificate->current->older;
		generation_free(certificate->current);
		certificate->current = older;
	}
	if (certificate->ca != NULL)
		gnutls_x509_crt_deinit(certificate->ca);
	if (certificate->ca_key != NULL)
		gnutls_x509_privkey_deinit(certificate->ca_key);
	lock_release(&certificate->lock);
	free(certificate->ca_path);
	free(certificate->ca_key_path);
	free(certificate->ca_pem);
	free(certificate);
}

int64_t certificate_ends_ms(const struct certificate *certificate)
{
	return certificate->current->ends_ms;
}

bool certificate_is_due(const struct certificate *certificate)
{
	const struct clock_source *const clock = certificate->options.clock;
	return certificate->options.cert_file == NULL &&
		certificate->current->ends_ms - clock->wall_ms(clock) < RENEW_DAYS * DAY_MS;
}

const char *certificate_ca_pem(const struct certificate *certificate)
{
	return certificate->ca_pem;
}

const char *certificate_ca_path(const struct certificate *certificate)
{
	return certificate->ca_path;
}

void certificate_print(struct certificate *certificate, struct buffer *out)
{
	lock_enter(&certificate->lock);
	for (unsigned i = 0; i < certificate->current->chain_len; i++) {
		gnutls_datum_t pem;
		if (gnutls_pem_base64_encode2(
			    "CERTIFICATE", &certificate->current->chain[i].cert, &pem) != 0)
			continue;
		buffer_add(out, pem.data, pem.size);
		gnutls_free(pem.data);
	}
	lock_leave(&certificate->lock);
}

static int certificate_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
	gnutls_pcert_st **certs, unsigned *certs_length, gnutls_ocsp_data_st **ocsp,
	unsigned *ocsp_length, gnutls_privkey_t *key, unsigned *flags)
{
	(void)session;
	(void)info;
	struct certificate *const certificate = atomic_load(&served);
	if (certificate == NULL)
		return -1;
	lock_enter(&certificate->lock);
	*certs = certificate->current->chain;
	*certs_length = certificate->current->chain_len;
	*key = certificate->current->key;
	lock_leave(&certificate->lock);
	*ocsp = NULL;
	*ocsp_length = 0;
	*flags = 0; /* GnuTLS must not free chain and key */
	return 0;
}

certificate_callback_fn *certificate_callback(void)
{
	gnutls_certificate_retrieve_function3 *const typed = certificate_retrieve;
	return (certificate_callback_fn *)typed;
}
